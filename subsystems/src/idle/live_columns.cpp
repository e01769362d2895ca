#include "idle/live_columns.hpp"

namespace portwave {

LiveColumns::LiveColumns(const Signature& signature, const std::vector<bool>& idle) {
  signature_ = signature;
  signature_.ports.clear();
  int input = 0;
  const auto add = [&](bool is_live) {
    place_.push_back(is_live ? static_cast<int>(inputs_.size()) : -1);
    if (is_live) inputs_.push_back(input);
    ++input;
  };
  for (std::size_t k = 0; k < signature.ports.size(); ++k) {
    if (!idle[k]) signature_.ports.push_back(signature.ports[k]);
    for (int c = 0; c < signature.ports[k].dimension; ++c) add(!idle[k]);
  }
  ports_ = inputs_;
  for (int j = 0; j < signature.input_size(); ++j) add(true);
}

void LiveColumns::take_columns(const SparseMatrix& from, SparseMatrix& to) const {
  take(from, false, to);
}

void LiveColumns::take(const SparseMatrix& from, bool rows_too, SparseMatrix& to) const {
  const auto columns = static_cast<Eigen::Index>(inputs_.size());
  const Eigen::Index rows = rows_too ? columns : from.rows();
  if (to.rows() != rows || to.cols() != columns) to.resize(rows, columns);
  if (!to.isCompressed()) to.makeCompressed();
  if (from.isCompressed() && (!rows_too || from.nonZeros() == 0)) {
    return take_whole_columns(from, to);
  }
  const auto row_of = [&](Eigen::Index row) {
    return rows_too ? place_[static_cast<std::size_t>(row)] : static_cast<int>(row);
  };
  const auto for_entries = [&](int column, const auto& visit) {
    for (SparseMatrix::InnerIterator it(from, column); it; ++it) {
      if (row_of(it.row()) >= 0) visit(it);
    }
  };
  Eigen::Index count = 0;
  for (const int column : inputs_) for_entries(column, [&](const auto&) { ++count; });
  to.resizeNonZeros(count);
  int next = 0;
  int* begin = to.outerIndexPtr();
  for (const int column : inputs_) {
    *begin++ = next;
    for_entries(column, [&](const SparseMatrix::InnerIterator& it) {
      to.innerIndexPtr()[next] = row_of(it.row());
      to.valuePtr()[next++] = it.value();
    });
  }
  *begin = next;
}

/// Of compressed matrices.
void LiveColumns::take_whole_columns(const SparseMatrix& from, SparseMatrix& to) const {
  const int* const begins = from.outerIndexPtr();
  Eigen::Index count = 0;
  for (const int column : inputs_) count += begins[column + 1] - begins[column];
  to.resizeNonZeros(count);
  int next = 0;
  int* begin = to.outerIndexPtr();
  for (const int column : inputs_) {
    *begin++ = next;
    for (int k = begins[column]; k < begins[column + 1]; ++k, ++next) {
      to.innerIndexPtr()[next] = from.innerIndexPtr()[k];
      to.valuePtr()[next] = from.valuePtr()[k];
    }
  }
  *begin = next;
}

void LiveColumns::take(const Structure& from, Structure& to) const {
  to.J = from.J;
  to.R = from.R;
  take(from.G, false, to.G);
  take(from.P, false, to.P);
  take(from.S, true, to.S);
  take(from.N, true, to.N);
}

}  // namespace portwave

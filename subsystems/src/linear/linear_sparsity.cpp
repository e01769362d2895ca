#include "linear/linear_sparsity.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace portwave {
namespace {

using Place = std::pair<int, int>;

}  // namespace

LinearSparsity::LinearSparsity(const SparseMatrix& Q_of_part, const Structure& structure, int ports)
    : states_(structure.states()), inputs_(structure.inputs()) {
  const auto own = matrices(Q_of_part, structure);
  for (int m = 0; m < kMatrices; ++m) {
    const SparseMatrix& M = *own[static_cast<std::size_t>(m)];
    Positions& to = positions_[static_cast<std::size_t>(m)];
    to.outer.assign(M.outerIndexPtr(), M.outerIndexPtr() + M.outerSize() + 1);
    to.inner.assign(M.innerIndexPtr(), M.innerIndexPtr() + M.nonZeros());
    for (int k = 0; k < M.nonZeros(); ++k) to.is_zero.push_back(M.valuePtr()[k] == 0.0 ? 1 : 0);
  }

  using Terms = std::array<EntryList::Term, 2>;
  std::map<Place, Terms> found;
  // Adds the entries of a matrix, moved to where it stands in a larger one.
  const auto add = [&](int matrix, double factor, bool transposed, int row, int column) {
    const SparseMatrix& M = *own[static_cast<std::size_t>(matrix)];
    for (int j = 0; j < M.outerSize(); ++j) {
      for (int k = M.outerIndexPtr()[j]; k < M.outerIndexPtr()[j + 1]; ++k) {
        if (M.valuePtr()[k] == 0.0) continue;
        const int i = M.innerIndexPtr()[k];
        const Place place = transposed ? Place{row + j, column + i} : Place{row + i, column + j};
        Terms& terms = found[place];
        (terms[0].matrix == EntryList::kNone ? terms[0] : terms[1]) = {matrix, k, factor};
      }
    }
  };
  const auto take = [&](EntryList& list, const auto& wanted) {
    for (const auto& [place, terms] : found) {
      const auto& [row, column] = place;
      if (!wanted(row, column)) continue;
      list.at_.push_back({row, column});
      list.terms_.push_back(terms);
    }
    found.clear();
  };
  const auto all = [](int, int) { return true; };
  const auto of_port = [ports](int row, int) { return row < ports; };
  const int n = states_;

  add(kQ, 1.0, false, 0, 0);
  take(Q, all);
  add(kQ, 1.0, false, 0, 0);
  take(storage, [](int row, int column) { return row <= column; });
  for (std::size_t k = 0; k < storage.size(); ++k) {
    if (storage.at_[k].row == storage.at_[k].column) storage.terms_[k][0].factor = 0.5;
  }
  add(kJ, 1.0, false, 0, 0);
  add(kR, -1.0, false, 0, 0);
  take(JR, all);
  add(kG, 1.0, false, 0, 0);
  add(kP, -1.0, false, 0, 0);
  take(B, all);
  add(kG, 1.0, true, 0, 0);
  add(kP, 1.0, true, 0, 0);
  take(C, of_port);
  add(kS, 1.0, false, 0, 0);
  add(kN, 1.0, false, 0, 0);
  take(D, of_port);

  add(kR, 1.0, false, 0, 0);
  add(kP, 1.0, false, 0, n);
  add(kP, 1.0, true, n, 0);
  add(kS, 1.0, false, n, n);
  take(dissipation, all);
  add(kG, 1.0, true, 0, 0);
  add(kP, 1.0, true, 0, 0);
  add(kS, 1.0, false, 0, n);
  add(kN, 1.0, false, 0, n);
  take(output, [ports](int row, int) { return row >= ports; });
  for (LinearEntry& e : output.at_) e.row -= ports;
}

bool LinearSparsity::fits(const SparseMatrix& Q_of_part, const Structure& structure) const {
  const auto own = matrices(Q_of_part, structure);
  for (int m = 0; m < kMatrices; ++m) {
    const SparseMatrix& M = *own[static_cast<std::size_t>(m)];
    const Positions& of = positions_[static_cast<std::size_t>(m)];
    if (M.nonZeros() != static_cast<Eigen::Index>(of.inner.size()) ||
        !std::equal(of.outer.begin(), of.outer.end(), M.outerIndexPtr(),
                    M.outerIndexPtr() + M.outerSize() + 1) ||
        !std::equal(of.inner.begin(), of.inner.end(), M.innerIndexPtr())) {
      return false;
    }
    for (std::size_t k = 0; k < of.is_zero.size(); ++k) {
      if ((M.valuePtr()[k] == 0.0) != (of.is_zero[k] != 0)) return false;
    }
  }
  return true;
}

std::size_t LinearSparsity::hash_of(const SparseMatrix& Q_of_part, const Structure& structure) {
  std::size_t hash = 0;
  for (const SparseMatrix* M : matrices(Q_of_part, structure)) {
    const auto mix = [&hash](std::size_t value) {
      hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 29;
    };
    for (int j = 0; j <= M->outerSize(); ++j) mix(static_cast<std::size_t>(M->outerIndexPtr()[j]));
    const int count = M->outerIndexPtr()[M->outerSize()];  // it is compressed
    for (int k = 0; k < count; ++k) {
      mix(2 * static_cast<std::size_t>(M->innerIndexPtr()[k]) + (M->valuePtr()[k] == 0.0 ? 1 : 0));
    }
  }
  return hash;
}

void LinearSparsity::read(const EntryList& list, const SparseMatrix& Q_of_part,
                          const Structure& structure, double factor, double* out,
                          std::size_t step) {
  std::array<const double*, kMatrices> values{};
  const auto own = matrices(Q_of_part, structure);
  for (std::size_t m = 0; m < own.size(); ++m) values[m] = own[m]->valuePtr();
  for (std::size_t k = 0; k < list.terms_.size(); ++k) {
    const auto& [first, second] = list.terms_[k];
    double sum = first.factor * values[static_cast<std::size_t>(first.matrix)][first.index];
    if (second.matrix != EntryList::kNone) {
      sum += second.factor * values[static_cast<std::size_t>(second.matrix)][second.index];
    }
    out[k * step] = factor * sum;
  }
}

}  // namespace portwave

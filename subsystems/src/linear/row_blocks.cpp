#include "linear/row_blocks.hpp"

namespace portwave {

RowBlocks RowBlocks::balanced(int rows, int at_most) {
  RowBlocks out;
  const int blocks = (rows + at_most - 1) / at_most;
  for (int k = 0; k < blocks; ++k) out.add(rows / blocks + (k < rows % blocks ? 1 : 0));
  return out;
}

RowBlocks RowBlocks::of(int rows, int each) {
  RowBlocks out;
  for (; rows >= each; rows -= each) out.add(each);
  for (; rows > 0; --rows) out.add(1);
  return out;
}

void RowBlocks::add(int rows) {
  const auto begin = static_cast<int>(places_.size());
  sizes_.push_back(static_cast<unsigned char>(rows));
  places_.insert(places_.end(), static_cast<std::size_t>(rows), Place{begin, rows});
}

void RowBlocks::append(std::span<const int> rows, std::span<const Eigen::MatrixXd* const> matrices,
                       std::vector<double>& out) const {
  std::size_t begin = 0;
  for (const unsigned char size : sizes_) {
    for (const Eigen::MatrixXd* m : matrices) {
      for (Eigen::Index j = 0; j < m->cols(); ++j) {
        for (const int row : rows.subspan(begin, size)) out.push_back((*m)(row, j));
      }
    }
    begin += size;
  }
}

}  // namespace portwave

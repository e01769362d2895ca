#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/linear_kernels.hpp"
#include "linear/linear_sparsity.hpp"
#include "linear/step_rows.hpp"

namespace portwave {

/// The entries that the energies of a dense linear batch need, which lie lane by lane in a group's
/// `energy` block: where any of its parts has one. A coefficient of 0 where a part has none changes no
/// bit of a sum.
class EnergyPattern {
 public:
  /// Sets what `shape` says of energies, for parts of these sparsities; it refers to this.
  void arrange(std::span<const LinearSparsity> sparsities, bool staged, int width,
               LinearShape& shape);

  /// The coefficients of a part of one of them, given by its number, behind what is there.
  void append(std::size_t sparsity, const SparseMatrix& Q, const Structure& structure,
              double step_s, std::vector<double>& out);

  std::span<const LinearEntry> storage() const { return storage_.at; }
  std::span<const LinearEntry> output() const { return output_.at; }
  /// Rows of z that are wanted by maps.
  std::span<const int> mapped() const { return mapped_; }

 private:
  struct Pattern {
    std::vector<LinearEntry> at;
    Offsets offsets;
  };
  /// A list of a sparsity, and where in the block its entries go; −1: nowhere.
  struct Target {
    const EntryList* list = nullptr;
    double factor = 1.0;
    bool per_step = false;  ///< times h
    std::vector<int> places;
  };

  std::size_t size_ = 0;
  Pattern storage_, gradient_, dissipation_, output_;
  std::vector<unsigned char> diagonal_gradient_;
  std::vector<int> mapped_;
  std::vector<std::vector<Target>> targets_;  ///< by sparsity
  std::vector<double> values_;
};

}  // namespace portwave

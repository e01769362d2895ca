#pragma once

#include <set>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "kernels/linear_kernels.hpp"
#include "linear/linear_sparsity.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// Which rows of w = Σⱼ dⱼδⱼ, what several damped stages take energy by (LinearShape::damping), follow from rows of z
/// that the account of a step has anyway: those of a state whose δ is a sum of such z, as of a position, and those of a
/// state with no other in its row of Q, whose X(cⱼ) is its own zⱼ/(√bⱼ Q). All other rows are maps of (x, a, ū).
/// Which rows these are, each part decides by itself: coefficients of other parts' ways are 0 there, so that no bit
/// depends on what is stepped beside a part.
class DerivedDamping {
 public:
  struct Part {
    const LinearPortHamiltonian* physics;
    const LinearSparsity* sparsity;
  };
  /// For parts that are side by side, `of_sparsity` being the number of their sparsity. Sets what `shape` says of it,
  /// and refers to this. Another part of the same sparsity may take the place of one of them.
  void arrange(std::span<const LinearPortHamiltonian* const> parts,
               std::span<const int> of_sparsity, std::span<const LinearSparsity> sparsities,
               int stages, int width, LinearShape& shape);

  /// The rows of w by maps of a part, of all that it has, and the coefficients of the others, behind what is there. Where
  /// none is derived, all rows and nothing.
  void append_rows(const Part& part, const Eigen::MatrixXd& w, std::vector<double>& out) const;
  void append(const Part& part, const StageRule& rule, double step_s,
              std::vector<double>& out) const;

 private:
  enum class Way : unsigned char { mapped, by_rate, by_own };
  struct Row {
    Way way = Way::mapped;
    std::set<int> columns;  ///< the states whose z it is a sum of
  };
  std::vector<Row> rows_of(const Part& part) const;

  int n_ = 0, ports_ = 0, stages_ = 0;
  std::vector<unsigned char> is_mapped_;  ///< by state, in some part
  std::vector<LinearEntry> entries_;      ///< by rows: state, row of z
  std::vector<LinearOffsets> offsets_;
};

}  // namespace portwave

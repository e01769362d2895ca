#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// A connected component of a symmetric matrix that has a negative eigenvalue beyond round-off.
struct NegativeBlock {
  std::vector<int> indices;                   ///< rows of the component, ascending
  std::optional<double> smallest_eigenvalue;  ///< of the component; absent for large ones
};

/// The worst negative component of a symmetric, finite matrix; nothing when the matrix is positive
/// semidefinite (see is_positive_semidefinite). Components of up to 400 rows are judged pivot by
/// pivot of LDLᵀ, each beside its own diagonal entry; larger ones by a sparse LDLᵀ of the shifted
/// component.
std::optional<NegativeBlock> find_negative_block(const SparseMatrix& M, double relative_tolerance);

/// What the checks of matrices take for round-off, relative to the matrix.
inline constexpr double kMatrixTolerance = 1e-12;
/// And relative to the terms of a product of matrices that are themselves known to round-off only.
inline constexpr double kTermTolerance = 1e-13;

/// One named matrix of a part; the checks append what they find and return whether it passed.
class MatrixCheck {
 public:
  /// `where` of what is found: "/" and the name unless given. `terms`: of a matrix that is
  /// computed, the sums of the magnitudes that its entries are made of.
  MatrixCheck(Issues& issues, std::string_view name, const SparseMatrix& matrix,
              std::string_view where = {}, const SparseMatrix* terms = nullptr);

  bool has_shape(int rows, int columns);
  bool is_finite();
  bool is_skew() { return is_mirrored("skew", -1.0); }
  bool is_symmetric() { return is_mirrored("symmetric", 1.0); }
  /// Of a symmetric matrix. `names` as in StructureRules; `more` ends the message.
  bool is_semidefinite(int states, const std::vector<std::string>& names,
                       std::string_view more = {}, double tolerance = kMatrixTolerance);

 private:
  bool is_mirrored(std::string_view property, double sign);
  bool is_mirrored_exactly(double sign);
  bool fail(std::string what);

  Issues& issues_;
  std::string_view name_;
  const SparseMatrix& matrix_;
  const SparseMatrix* terms_;
  std::string where_;
};

/// "smallest eigenvalue −1 (block of v1, coupling)", shortened where the block is long.
std::string describe(const NegativeBlock& found, int states, const std::vector<std::string>& names);

/// Name of a state or input, "state 3" where there is none.
std::string name_of(int index, int states, const std::vector<std::string>& names);

/// "v1, coupling and 3 more".
std::string list_names(const std::vector<int>& indices, int states,
                       const std::vector<std::string>& names);

}  // namespace portwave

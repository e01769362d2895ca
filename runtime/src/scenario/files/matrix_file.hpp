#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"

namespace portwave::scenario_file {

/// Reads a matrix, by the ending of the file's name:
///   .mtx  Matrix Market: coordinate or array; real, integer or pattern; general, symmetric or
///         skew-symmetric;
///   .npz  SciPy's sparse matrices: csr, csc, coo, dia or bsr;
///   .npy  a dense NumPy array of two dimensions;
///   .mat  MATLAB's, of level 5 (to version 7) or 7.3: dense or sparse, real numbers or logical.
/// Numbers of NumPy files are f4, f8, integers of 1 to 8 bytes or booleans, in either byte order.
/// Equal places add up, as in SciPy.
/// Each defect goes on after the name of the file: ", line 3: ...". Nothing of the matrix is of use
/// where there is any. `variable`: of a .mat file, "" for its only one; of others "".
ShapedMatrix read_matrix_file(const std::filesystem::path& file, std::vector<std::string>& defects,
                              const std::string& variable = "");

/// While alive, `read_matrix_file` finds these in this thread, by their names.
class MatricesInMemory {
 public:
  explicit MatricesInMemory(std::span<const NamedMatrix> matrices);
  ~MatricesInMemory();
  MatricesInMemory(const MatricesInMemory&) = delete;
  MatricesInMemory& operator=(const MatricesInMemory&) = delete;

  /// Null: there is none of this name.
  static const ShapedMatrix* find(std::string_view name);

 private:
  std::span<const NamedMatrix> outer_;
};

/// Whether it holds matrices by name.
bool is_mat_file(const std::filesystem::path& file);

/// The same from the bytes of a file.
ShapedMatrix parse_matrix_market(std::string_view text, std::vector<std::string>& defects);
ShapedMatrix parse_sparse_npz(std::string_view bytes, std::vector<std::string>& defects);
ShapedMatrix parse_dense_npy(std::string_view bytes, std::vector<std::string>& defects);
ShapedMatrix parse_mat(std::string_view bytes, const std::string& variable,
                       std::vector<std::string>& defects);

/// Thrown inside the readers by what makes the rest of a file unreadable: a defect as above.
struct MatrixFileDefect {
  std::string text;
};

}  // namespace portwave::scenario_file

#include "scenario/files/matrix_file.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "scenario/reader/limits.hpp"
#include "scenario/reader/text.hpp"

namespace portwave::scenario_file {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

using MatrixParser = std::function<ShapedMatrix(std::string_view, std::vector<std::string>&)>;

MatrixParser parser_of(const std::filesystem::path& file, const std::string& variable) {
  const std::string ending = lower_case(file.extension().string());
  if (ending == ".mtx") return parse_matrix_market;
  if (ending == ".npz") return parse_sparse_npz;
  if (ending == ".npy") return parse_dense_npy;
  if (ending != ".mat") return nullptr;
  return [&variable](std::string_view bytes, std::vector<std::string>& defects) {
    return parse_mat(bytes, variable, defects);
  };
}

thread_local std::span<const NamedMatrix> in_memory;

}  // namespace

MatricesInMemory::MatricesInMemory(std::span<const NamedMatrix> matrices)
    : outer_(std::exchange(in_memory, matrices)) {}
MatricesInMemory::~MatricesInMemory() { in_memory = outer_; }

const ShapedMatrix* MatricesInMemory::find(std::string_view name) {
  const auto found = std::ranges::find(in_memory, name, &NamedMatrix::name);
  return found == in_memory.end() ? nullptr : &found->matrix;
}

bool is_mat_file(const std::filesystem::path& file) {
  return lower_case(file.extension().string()) == ".mat";
}

ShapedMatrix read_matrix_file(const std::filesystem::path& file, std::vector<std::string>& defects,
                              const std::string& variable) {
  const MatrixParser parse = parser_of(file, variable);
  if (parse == nullptr) {
    defects.emplace_back(
        " must end in .mtx (Matrix Market), .npz (SciPy sparse), .npy (NumPy dense) or .mat "
        "(MATLAB)");
    return {};
  }
  const FileText content = read_text_file(file, Pipes::refused, scenario_limits::kMatrixFileBytes);
  if (!content.ok()) {
    defects.push_back(" " + content.problem);
    return {};
  }
  try {
    return parse(content.text, defects);
  } catch (const MatrixFileDefect& defect) {
    defects.push_back(defect.text);
  }
  return {};
}

}  // namespace portwave::scenario_file

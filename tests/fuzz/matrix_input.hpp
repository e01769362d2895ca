#pragma once

#include <string>
#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "scenario/files/matrix_file.hpp"

namespace portwave::fuzz {

template <typename Parse>
void read_matrix(Parse parse, std::string_view bytes) {
  std::vector<std::string> defects;
  try {
    const ShapedMatrix matrix = parse(bytes, defects);
    if (!defects.empty()) return;
    for (const auto& entry : matrix.entries) {
      expect(entry.row >= 0 && entry.row < matrix.rows && entry.column >= 0 &&
                 entry.column < matrix.columns,
             "entries lie inside the shape");
    }
  } catch (const scenario_file::MatrixFileDefect& defect) {
    expect(!defect.text.empty(), "a defect has a text");
  }
}

}  // namespace portwave::fuzz

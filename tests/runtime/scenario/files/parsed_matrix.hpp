#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include "scenario/files/matrix_file.hpp"

namespace portwave::testing {

using Parser = ShapedMatrix (*)(std::string_view, std::vector<std::string>&);

struct Parsed {
  Eigen::MatrixXd M;
  std::vector<std::string> defects;
};

/// A text with a defect, and a part of what is said of it.
struct DefectCase {
  std::string name, text, message;
};

inline Parsed parsed(Parser parser, const std::string& bytes) {
  Parsed result;
  try {
    const ShapedMatrix matrix = parser(bytes, result.defects);
    if (!result.defects.empty()) return result;
    result.M = Eigen::MatrixXd::Zero(matrix.rows, matrix.columns);
    for (const MatrixEntry& entry : matrix.entries)
      result.M(entry.row, entry.column) += entry.value;
  } catch (const scenario_file::MatrixFileDefect& defect) {
    result.defects.push_back(defect.text);
  }
  return result;
}

inline Eigen::MatrixXd matrix(int rows, int columns, const std::vector<double>& by_rows) {
  return Eigen::Map<const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>>(by_rows.data(), rows,
                                                                          columns);
}

inline void expect_matrix(const Parsed& found, const Eigen::MatrixXd& expected,
                          const std::string& what) {
  EXPECT_EQ(found.defects, std::vector<std::string>()) << what;
  ASSERT_EQ(found.M.rows(), expected.rows()) << what;
  ASSERT_EQ(found.M.cols(), expected.cols()) << what;
  EXPECT_EQ(found.M, expected) << what;
}

inline void expect_defect(const Parsed& found, const std::string& part, const std::string& what) {
  ASSERT_FALSE(found.defects.empty()) << what;
  EXPECT_NE(found.defects.front().find(part), std::string::npos)
      << what << ": " << found.defects.front();
}

// Whatever is cut off or overwritten: a matrix or a defect, and no crash.
inline void damage(Parser parser, const std::string& sound) {
  int refused = 0;
  for (std::size_t size = 0; size < sound.size(); ++size) {
    refused += parsed(parser, sound.substr(0, size)).defects.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, static_cast<int>(sound.size()) / 2);
  for (std::size_t i = 0; i < sound.size(); ++i) {
    for (const char byte : {'\0', '\xff', '9', '-'}) {
      std::string text = sound;
      text[i] = byte;
      const Parsed found = parsed(parser, text);
      EXPECT_TRUE(found.defects.empty() || found.M.size() == 0) << "byte " << i;
      EXPECT_TRUE(found.M.allFinite()) << "byte " << i;
    }
  }
}

}  // namespace portwave::testing

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/scenario/scenario.hpp>

#include "runtime/scenario/files/matrix_bytes.hpp"
#include "scenario/files/matrix_file.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_matrix_files_mat {
namespace {

using scenario_file::MatrixFileDefect;

struct Found {
  Eigen::MatrixXd M;  ///< unless it is large
  int rows = 0;
  std::string defect;  ///< the first
};

Found found_in(const std::string& bytes, const std::string& variable) {
  Found out;
  std::vector<std::string> defects;
  try {
    const ShapedMatrix matrix = scenario_file::parse_mat(bytes, variable, defects);
    out.rows = matrix.rows;
    const bool is_small = std::int64_t{matrix.rows} * matrix.columns < 1'000'000;
    if (defects.empty() && is_small) {
      out.M = Eigen::MatrixXd::Zero(matrix.rows, matrix.columns);
      for (const MatrixEntry& entry : matrix.entries) out.M(entry.row, entry.column) += entry.value;
    }
  } catch (const MatrixFileDefect& defect) {
    defects.push_back(defect.text);
  }
  if (!defects.empty()) out.defect = defects.front();
  return out;
}

Eigen::MatrixXd known(const std::string& variable) {
  Eigen::MatrixXd K(3, 2);
  K << 4, 0, -1.5, 2, 0.25, -3e5;
  if (variable == "I") K << 4, 0, -1, 2, 0, -3;
  if (variable == "L") K << 1, 0, 0, 0, 1, 1;
  return K;
}

std::string golden(const std::string& name) {
  return testing::read_text(testing::source_file("tests/fixtures/matlab/" + name));
}

std::vector<std::string> golden_files() {
  std::vector<std::string> names = {"matio_5_plain.mat", "matio_5_packed.mat"};
  if (has_hdf5()) names.insert(names.end(), {"matio_73_plain.mat", "matio_73_packed.mat"});
  return names;
}

// --- files of libmatio (tests/tools/matio_golden.c), which shares no code ------------------------

TEST(MatFiles, MatricesOfEveryClassThatLibmatioWrote) {
  for (const std::string& file : golden_files()) {
    const std::string bytes = golden(file);
    for (const char* const variable : {"K", "F", "I", "L", "S"}) {
      const Found found = found_in(bytes, variable);
      EXPECT_EQ(found.defect, "") << file << " " << variable;
      ASSERT_EQ(found.M.rows(), 3) << file << " " << variable;
      EXPECT_EQ(found.M, known(variable)) << file << " " << variable;
    }
    EXPECT_EQ(found_in(bytes, "E").defect, "") << file;
    EXPECT_EQ(found_in(bytes, "E").M.cols(), 2) << file;
  }
}

TEST(MatFiles, WhatIsNoMatrixIsToldByItsName) {
  struct Case {
    const char *variable, *words;
  };
  for (const std::string& file : golden_files()) {
    const std::string bytes = golden(file);
    for (const Case& each : std::vector<Case>{{"C", ", variable \"C\": is complex"},
                                              {"T", ", variable \"T\": is text"},
                                              {"Z", ", variable \"Z\": is a cell array"},
                                              {"R", ", variable \"R\": is a struct"},
                                              {"D", ", variable \"D\": has 3 dimensions"},
                                              {"k", "has no variable \"k\".\n  variables: "},
                                              {"k", "Did you mean \"K\"?"},
                                              {"", "holds several variables: name one by"}}) {
      const std::string defect = found_in(bytes, each.variable).defect;
      EXPECT_NE(defect.find(each.words), std::string::npos) << file << ": " << defect;
    }
  }
}

TEST(MatFiles, CutAnywhereTheyAreToldToBeDamaged) {
  for (const std::string& file : golden_files()) {
    const std::string whole = golden(file);
    const std::size_t step = whole.size() > 4000 ? 97 : 1;
    // The last variable is the empty one: what is lost without it shows in the first name only.
    for (std::size_t size = 0; size < whole.size(); size += step) {
      const Found found = found_in(whole.substr(0, size), "K");
      if (found.defect.empty()) {
        EXPECT_EQ(found.M, known("K")) << file << " cut to " << size;
      }
    }
    EXPECT_NE(found_in(whole.substr(0, whole.size() / 3), "D").defect, "") << file;
  }
}

TEST(MatFiles, SpoiltBytesDoNoHarm) {
  for (const std::string& file : golden_files()) {
    const std::string whole = golden(file);
    const std::size_t step = whole.size() > 4000 ? 61 : 1;
    for (std::size_t at = 0; at < whole.size(); at += step) {
      for (const char wrong : {'\0', '\x7f', '\xff', static_cast<char>(whole[at] ^ 1)}) {
        std::string spoilt = whole;
        spoilt[at] = wrong;
        for (const char* const variable : {"K", "S"}) {
          const Found found = found_in(spoilt, variable);
          EXPECT_TRUE(!found.defect.empty() || found.rows >= 0) << file << " " << at;
        }
      }
    }
  }
}

// --- level 5, written here ------------------------------------------------------------------------

using testing::little;

std::string element(std::uint32_t type, const std::string& data) {
  std::string out = little(type, 4) + little(data.size(), 4) + data;
  out.append((8 - data.size() % 8) % 8, '\0');
  return out;
}

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  std::string out(numbers.size() * sizeof(Number), '\0');
  if (!numbers.empty()) std::memcpy(out.data(), numbers.data(), out.size());
  return out;
}

std::string header() {
  std::string out = "MATLAB 5.0 MAT-file, written by a test";
  out.resize(124, ' ');
  return out + std::string("\0\1IM", 4);
}

std::string head_of(std::uint32_t kind, const std::vector<std::int32_t>& shape,
                    const std::string& name) {
  return element(6, little(kind, 4) + little(0, 4)) + element(5, bytes_of(shape)) +
         element(1, name);
}

std::string dense(const std::vector<std::int32_t>& shape, const std::string& numbers,
                  std::uint32_t kind = 6) {
  return header() + element(14, head_of(kind, shape, "M") + numbers);
}

TEST(MatFiles, NumbersMayBeStoredInLessRoomThanTheirClassHas) {
  const Eigen::MatrixXd row = (Eigen::MatrixXd(1, 3) << 1, 200, 7).finished();
  EXPECT_EQ(found_in(dense({1, 3}, element(2, "\x01\xc8\x07")), "").M, row);
  const std::string small = little(2 | 3U << 16, 4) + std::string("\x01\xc8\x07\0", 4);
  EXPECT_EQ(found_in(dense({1, 3}, small), "M").M, row);
  EXPECT_EQ(found_in(dense({1, 3}, element(3, bytes_of<std::int16_t>({1, 200, 7}))), "M").M, row);
  EXPECT_EQ(found_in(dense({1, 3}, element(13, bytes_of<std::uint64_t>({1, 200, 7}))), "M").M, row);
}

std::string swapped(std::string bytes, std::size_t each) {
  for (std::size_t i = 0; i + each <= bytes.size(); i += each) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + each));
  }
  return bytes;
}

TEST(MatFiles, EitherByteOrder) {
  const auto big = [](std::uint32_t type, const std::string& data, std::size_t each) {
    std::string out = swapped(little(type, 4) + little(data.size(), 4), 4) + swapped(data, each);
    out.append((8 - data.size() % 8) % 8, '\0');
    return out;
  };
  const std::string content = big(6, little(6, 4) + little(0, 4), 4) +
                              big(5, bytes_of<std::int32_t>({2, 1}), 4) + big(1, "M", 1) +
                              big(9, bytes_of<double>({1.5, -2.25}), 8);
  const std::string file = header().substr(0, 124) + std::string("\1\0MI", 4) +
                           swapped(little(14, 4) + little(content.size(), 4), 4) + content;
  const Found found = found_in(file, "M");
  EXPECT_EQ(found.defect, "");
  EXPECT_EQ(found.M, (Eigen::MatrixXd(2, 1) << 1.5, -2.25).finished());
}

TEST(MatFiles, WhatAFileSaysOfItsSizeTakesNoMemory) {
  struct Case {
    std::string what, bytes, words;
  };
  const std::string one = element(9, bytes_of<double>({1.0}));
  const auto sparse = [](int rows, int columns, const std::vector<std::int32_t>& places,
                         const std::vector<std::int32_t>& begins, std::size_t values) {
    return dense({rows, columns},
                 element(5, bytes_of(places)) + element(5, bytes_of(begins)) +
                     element(9, bytes_of(std::vector<double>(values, 1.0))),
                 5);
  };
  const double nan = std::nan("");
  const std::vector<Case> cases = {
      {"a huge dense matrix", dense({30000, 30000}, one), "must hold 30000 × 30000 numbers, and"},
      {"the largest", dense({2147483647, 2147483647}, one), "numbers, and holds 1"},
      {"a negative size", dense({-1, 1}, one), "cut short or damaged"},
      {"no shape", dense({}, one), "has 0 dimensions"},
      {"a size beyond the file", header() + little(14, 4) + little(0xFFFFFFFFU, 4) + one,
       "cut short or damaged"},
      {"an element of no type of numbers", dense({1, 1}, element(99, "12345678")), "damaged"},
      {"half a number", dense({1, 1}, element(9, "1234")), "damaged"},
      {"columns without beginnings", sparse(3, 2000000000, {0}, {0, 1}, 1), "no beginnings"},
      {"columns out of order", sparse(3, 2, {0, 1}, {0, 2, 1}, 2), "one after the other"},
      {"columns beyond the numbers", sparse(3, 2, {0, 1}, {0, 1, 9}, 2), "one after the other"},
      {"a row outside", sparse(3, 1, {3}, {0, 1}, 1), "entry (4,1) is outside the matrix"},
      {"a negative row", sparse(3, 1, {-2}, {0, 1}, 1), "is outside the matrix"},
      {"NaN", dense({1, 1}, element(9, bytes_of<double>({-nan}))),
       "entry (1,1) must be finite, got nan"},
      {"no variable", header(), "holds no variable"},
      {"level 4", std::string(200, '\0'), "is no file of MATLAB's level 5 or 7.3"},
      {"nothing", "", "is no file of MATLAB's"},
      {"rubbish of HDF5", "\x89HDF\r\n\x1a\n" + std::string(600, 'x'),
       has_hdf5() ? "cut short or damaged" : "has no HDF5"},
  };
  for (const Case& each : cases) {
    const std::string defect = found_in(each.bytes, "").defect;
    EXPECT_NE(defect.find(each.words), std::string::npos) << each.what << ": " << defect;
  }
}

// --- in scenarios ---------------------------------------------------------------------------------

std::string report_of(const std::filesystem::path& folder, const std::string& matrix) {
  const std::string scenario = R"({
    "name": "m", "time": {"step_s": 0.01, "end_s": 0.1},
    "subsystems": [{"name": "m", "type": "second_order_system", "parameters": {
      "coordinates": {"count": 2, "name": "q"},
      "ports": [{"name": "end", "domain": "translation", "causality": "effort_in"}],
      "M": [[1, 0], [0, 1]], "K": )" +
                               matrix + R"(, "B": [[1], [0]]}}],
    "couplings": [{"kind": "free", "ports": ["m.end"]}], "method": {"kind": "auto"}})";
  try {
    (void)parse_scenario(scenario, "m.json", folder);
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return "";
}

TEST(MatFiles, AScenarioNamesTheVariable) {
  const testing::TemporaryFolder folder;
  const std::string K = element(9, bytes_of<double>({4, -1, -1, 3}));
  testing::write_text(folder / "one.mat", dense({2, 2}, K));
  testing::write_text(folder / "two.mat",
                      dense({2, 2}, K) + element(14, head_of(6, {2, 2}, "K") + K));
  testing::write_text(folder / "M.mtx", "%%MatrixMarket matrix array real general\n1 1\n3\n");
  EXPECT_EQ(report_of(folder.path(), R"({"file": "one.mat"})"), "");
  EXPECT_EQ(report_of(folder.path(), R"({"file": "two.mat", "variable": "K"})"), "");
  const std::string several = report_of(folder.path(), R"({"file": "two.mat"})");
  EXPECT_NE(several.find("/K/file: the matrix \"two.mat\" holds several variables"),
            std::string::npos)
      << several;
  const std::string other = report_of(folder.path(), R"({"file": "M.mtx", "variable": "K"})");
  EXPECT_NE(other.find("/K/variable: is for .mat files"), std::string::npos) << other;
}

}  // namespace
}  // namespace portwave::test_matrix_files_mat

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/scenario/files/parsed_matrix.hpp"
#include "scenario/files/matrix_file.hpp"

namespace portwave::test_matrix_market {
namespace {

using testing::damage;
using testing::DefectCase;
using testing::expect_defect;
using testing::expect_matrix;
using testing::matrix;
using testing::Parsed;
using testing::parsed;

Parsed market(const std::string& text) { return parsed(scenario_file::parse_matrix_market, text); }

struct MarketCase {
  std::string name, text;
  Eigen::MatrixXd M;
};

TEST(MatrixMarket, FormatsFieldsAndSymmetries) {
  const std::string head = "%%MatrixMarket matrix ";
  const std::vector<MarketCase> cases = {
      {"coordinate real general",
       head + "coordinate real general\n2 3 3\n1 1 1.5\n2 3 -2e-3\n1 2 4\n",
       matrix(2, 3, {1.5, 4, 0, 0, 0, -2e-3})},
      {"comments, blank lines, tabs, carriage returns, a plus and no last line end",
       head + "COORDINATE Real GENERAL\r\n% a comment\r\n\r\n 2\t2 2\r\n%another\r\n\t1 1 "
              "+1.5\r\n2 2 3",
       matrix(2, 2, {1.5, 0, 0, 3})},
      {"equal places add up", head + "coordinate real general\n1 1 2\n1 1 1.5\n1 1 2\n",
       matrix(1, 1, {3.5})},
      {"coordinate integer symmetric",
       head + "coordinate integer symmetric\n2 2 2\n1 1 7\n2 1 -3\n", matrix(2, 2, {7, -3, -3, 0})},
      {"coordinate real skew-symmetric",
       head + "coordinate real skew-symmetric\n3 3 2\n2 1 1\n3 2 -5\n",
       matrix(3, 3, {0, -1, 0, 1, 0, 5, 0, -5, 0})},
      {"coordinate pattern general", head + "coordinate pattern general\n2 2 2\n1 2\n2 1\n",
       matrix(2, 2, {0, 1, 1, 0})},
      {"coordinate pattern symmetric", head + "coordinate pattern symmetric\n2 2 1\n2 1\n",
       matrix(2, 2, {0, 1, 1, 0})},
      {"array real general", head + "array real general\n2 3\n1\n2\n3\n4\n5\n6\n",
       matrix(2, 3, {1, 3, 5, 2, 4, 6})},
      {"array, several numbers on a line", head + "array real general\n2 2\n1 2 3\n4\n",
       matrix(2, 2, {1, 3, 2, 4})},
      {"array integer symmetric", head + "array integer symmetric\n2 2\n1\n2\n3\n",
       matrix(2, 2, {1, 2, 2, 3})},
      {"array real skew-symmetric", head + "array real skew-symmetric\n3 3\n1\n2\n3\n",
       matrix(3, 3, {0, -1, -2, 1, 0, -3, 2, 3, 0})},
      {"skew of one row", head + "array real skew-symmetric\n1 1\n", matrix(1, 1, {0})},
      {"no entries", head + "coordinate real general\n2 1 0\n", matrix(2, 1, {0, 0})},
      {"a byte order mark", "\xEF\xBB\xBF" + head + "array real general\n1 1\n3\n",
       matrix(1, 1, {3})},
      {"exponents of Fortran",
       head +
           "array real general\n2 4\n1.5D+02\n-2d0\n.5Q-1\n1.25-003\n-7.+002\n+3.D1\n4D2\n5E-1\n",
       matrix(2, 4, {150, 0.05, -700, 400, -2, 1.25e-3, 30, 0.5})},
      {"no rows", head + "coordinate real general\n0 2 0\n", Eigen::MatrixXd(0, 2)},
  };
  for (const MarketCase& each : cases) expect_matrix(market(each.text), each.M, each.name);
}

TEST(MatrixMarket, DefectsNameTheirLine) {
  const std::string head = "%%MatrixMarket matrix ";
  const std::string general = head + "coordinate real general\n";
  const std::vector<DefectCase> cases = {
      {"empty", "", "line 1: the file is empty"},
      {"no header", "2 2 1\n1 1 1\n", "line 1: must be \"%%MatrixMarket"},
      {"vector", "%%MatrixMarket vector array real general\n", "line 1: must be"},
      {"complex", head + "coordinate complex general\n1 1 0\n", "complex matrices are not"},
      {"hermitian", head + "coordinate real hermitian\n1 1 0\n", "complex matrices are not"},
      {"array of a pattern", head + "array pattern general\n1 1\n", "line 1: must be"},
      {"more words", head + "coordinate real general 7\n1 1 0\n", "line 1: must be"},
      {"no sizes", general + "% none\n", "line 2: the file ends before the line"},
      {"two sizes", general + "2 2\n", "line 2: must be \"rows columns entries\", got \"2 2\""},
      {"negative size", general + "2 -2 1\n", "line 2: must be"},
      {"size beyond 64 bits", general + "99999999999999999999 1 1\n", "line 2: must be"},
      {"size beyond 32 bits", general + "3000000000 1 1\n", "line 2: must be"},
      {"symmetric, not square", head + "coordinate real symmetric\n2 3 0\n",
       "line 2: a symmetric or skew-symmetric matrix must be square, got 2×3"},
      {"row 0", general + "2 2 1\n0 1 1\n", "line 3: (0,1) is outside the matrix, which is 2×2"},
      {"negative row", general + "2 2 1\n-1 1 1\n", "line 3: (-1,1) is outside"},
      {"column too large", general + "% c\n2 2 1\n2 3 1\n", "line 4: (2,3) is outside"},
      {"index beyond 64 bits", general + "2 2 1\n99999999999999999999 1 1\n",
       "line 3: must be \"row column value\""},
      {"no value", general + "2 2 1\n1 1\n", "line 3: must be \"row column value\", got \"1 1\""},
      {"a word", general + "2 2 1\n1 1 one\n", "line 3: must be"},
      {"a word too many", general + "2 2 1\n1 1 1 1\n", "line 3: must be"},
      {"NaN", general + "2 2 1\n1 1 nan\n", "line 3: must be finite, got nan"},
      {"infinity", general + "2 2 1\n1 1 -inf\n", "line 3: must be finite, got -inf"},
      {"a date", general + "2 2 1\n1 1 2020-01\n", "line 3: must be"},
      {"two exponents", general + "2 2 1\n1 1 1.5D+01E2\n", "line 3: must be"},
      {"an exponent alone", general + "2 2 1\n1 1 D+01\n", "line 3: must be"},
      {"overflow", general + "2 2 1\n1 1 1e400\n", "line 3: must be"},
      {"upper triangle", head + "coordinate real symmetric\n2 2 1\n1 2 1\n",
       "line 3: (1,2) lies above the diagonal"},
      {"diagonal of a skew one", head + "coordinate real skew-symmetric\n2 2 1\n1 1 1\n",
       "line 3: (1,1) lies on the diagonal"},
      {"too few", general + "2 2 2\n1 1 1\n", "line 3: the file ends after 1 of 2 entries"},
      {"too many", general + "2 2 1\n1 1 1\n2 2 1\n", "line 4: entries go on after the 1"},
      {"a promise of everything", general + "2 2 9223372036854775807\n1 1 1\n",
       "the file ends after 1 of 9223372036854775807"},
      {"array too short", head + "array real general\n2 2\n1\n2\n3\n",
       "line 5: the file ends after 3 of 4 numbers"},
      {"array too long", head + "array real general\n1 1\n1\n2\n", "line 4: numbers go on"},
      {"array NaN", head + "array real general\n1 1\nnan\n", "line 3: must be a finite number"},
      {"array of a huge size", head + "array real general\n2000000000 2000000000\n1\n",
       "the file ends after 1 of 4000000000000000000"},
      {"binary", general + std::string("2 2 1\n\0\x01\xff 1 1\n", 13), "line 3: must be"},
  };
  for (const DefectCase& each : cases) expect_defect(market(each.text), each.message, each.name);
}

TEST(MatrixMarket, AllDefectsAtOnceUpToTen) {
  std::string text = "%%MatrixMarket matrix coordinate real general\n2 2 20\n";
  for (int i = 0; i < 3; ++i) text += "3 3 1\n";
  EXPECT_EQ(market(text).defects.size(), 4U);  // three lines, and the end
  for (int i = 0; i < 17; ++i) text += "3 3 1\n";
  EXPECT_EQ(market(text).defects.size(), 10U);
}

TEST(MatrixMarket, DamagedFiles) {
  damage(
      scenario_file::parse_matrix_market,
      "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 2.5\n2 1 -1\n3 3 1e-3\n3 2 7\n");
}

TEST(MatrixMarket, APromiseReservesNoMoreThanTheFileCanHold) {
  std::vector<std::string> defects;
  const std::string text =
      "%%MatrixMarket matrix coordinate pattern general\n9 9 9000000000000\n" + []() {
        std::string entries;
        for (int i = 0; i < 1000; ++i) entries += "1 1\n";
        return entries;
      }();
  EXPECT_THROW(scenario_file::parse_matrix_market(text, defects), scenario_file::MatrixFileDefect);
  std::string sound = "%%MatrixMarket matrix coordinate pattern general\n9 9 1000\n";
  for (int i = 0; i < 1000; ++i) sound += "1 1\n";
  const ShapedMatrix matrix = scenario_file::parse_matrix_market(sound, defects);
  EXPECT_EQ(matrix.entries.size(), 1000U);
  EXPECT_LE(matrix.entries.capacity(), 1100U);
}

}  // namespace
}  // namespace portwave::test_matrix_market

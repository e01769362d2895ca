#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/scenario/files/matrix_bytes.hpp"
#include "runtime/scenario/files/parsed_matrix.hpp"
#include "scenario/files/matrix_file.hpp"
#include "scenario/files/matrix_file_zip.hpp"
#include "support/files/subprocess.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_matrix_files {
namespace {

using testing::damage;
using testing::DefectCase;
using testing::deflated;
using testing::expect_defect;
using testing::expect_matrix;
using testing::little;
using testing::matrix;
using testing::npy;
using testing::npy_of;
using testing::packed;
using testing::Parsed;
using testing::parsed;
using testing::TemporaryFolder;
using testing::zip;
using testing::ZipEntry;
using testing::ZipOptions;

Parsed dense(const std::string& bytes) { return parsed(scenario_file::parse_dense_npy, bytes); }
Parsed sparse(const std::string& bytes) { return parsed(scenario_file::parse_sparse_npz, bytes); }

// --- NumPy, dense ----------------------------------------------------------------------------

TEST(DenseNumpy, OrdersTypesAndByteOrders) {
  const Eigen::MatrixXd M = matrix(2, 3, {1, 2, 3, 4, 5, -6});
  expect_matrix(dense(npy_of("<f8", "2, 3", packed<double>({1, 2, 3, 4, 5, -6}))), M, "f8");
  expect_matrix(dense(npy_of("<f8", "2, 3", packed<double>({1, 4, 2, 5, 3, -6}), true)), M,
                "columns first");
  expect_matrix(dense(npy_of("<f4", "2, 3", packed<float>({1, 2, 3, 4, 5, -6}))), M, "f4");
  expect_matrix(dense(npy_of(">f8", "2, 3", packed<double>({1, 2, 3, 4, 5, -6}, true))), M, ">f8");
  expect_matrix(dense(npy_of(">f4", "2, 3", packed<float>({1, 2, 3, 4, 5, -6}, true))), M, ">f4");
  expect_matrix(dense(npy_of("<i8", "2, 3", packed<std::int64_t>({1, 2, 3, 4, 5, -6}))), M, "i8");
  expect_matrix(dense(npy_of(">i4", "2, 3", packed<std::int32_t>({1, 2, 3, 4, 5, -6}, true))), M,
                ">i4");
  expect_matrix(dense(npy_of("<i2", "2, 3", packed<std::int16_t>({1, 2, 3, 4, 5, -6}))), M, "i2");
  expect_matrix(dense(npy_of("|i1", "2, 3", packed<std::int8_t>({1, 2, 3, 4, 5, -6}))), M, "i1");
  const Eigen::MatrixXd U = matrix(1, 2, {250, 1});
  expect_matrix(dense(npy_of("|u1", "1, 2", packed<std::uint8_t>({250, 1}))), U, "u1");
  expect_matrix(dense(npy_of("<u2", "1, 2", packed<std::uint16_t>({250, 1}))), U, "u2");
  expect_matrix(dense(npy_of(">u4", "1, 2", packed<std::uint32_t>({250, 1}, true))), U, "u4");
  expect_matrix(dense(npy_of("<u8", "1, 2", packed<std::uint64_t>({250, 1}))), U, "u8");
  expect_matrix(dense(npy_of("|b1", "1, 2", packed<std::uint8_t>({0, 1}))), matrix(1, 2, {0, 1}),
                "b1");
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }";
  for (const int version : {1, 2, 3}) {
    expect_matrix(dense(npy(header, packed<double>({2.5}), version)), matrix(1, 1, {2.5}),
                  "version");
  }
  expect_matrix(dense(npy_of("<f8", "0, 3", "")), Eigen::MatrixXd(0, 3), "no rows");
}

TEST(DenseNumpy, Defects) {
  const std::string sound = npy_of("<f8", "1, 2", packed<double>({1, 2}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<DefectCase> cases = {
      {"empty", "", "no .npy array"},
      {"text", "1 2\n3 4\n and so on", "no .npy array"},
      {"version", std::string("\x93NUMPY\x09\0\0\0", 10), "version 9 of the .npy format"},
      {"header cut", sound.substr(0, 40), "cut short"},
      {"data cut", sound.substr(0, sound.size() - 1), "must hold 2 numbers of 8 bytes, got 15"},
      {"data too long", sound + "x", "must hold 2 numbers of 8 bytes, got 17 bytes"},
      {"one dimension", npy_of("<f8", "2,", packed<double>({1, 2})),
       "must have two dimensions, got 1"},
      {"three dimensions", npy_of("<f8", "1, 1, 1", packed<double>({1})),
       "must have two dimensions"},
      {"complex", npy_of("<c16", "1, 1", packed<double>({1, 2})), "complex matrices are not"},
      {"records", npy("{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (1, 1), }", ""),
       "records"},
      {"objects", npy_of("|O", "1, 1", "x"), "numbers of type \"|O\" cannot be read"},
      {"no shape", npy("{'descr': '<f8', 'fortran_order': False, }", ""), "header must hold"},
      {"product overflows", npy_of("<f8", "4294967296, 4294967296", ""), "too large"},
      {"extent overflows", npy_of("<f8", "99999999999999999999, 1", ""), "header must hold"},
      {"negative extent", npy_of("<f8", "-1, 1", ""), "header must hold"},
      {"NaN", npy_of("<f8", "1, 2", packed<double>({1, nan})),
       "entry (0,1): must be finite, got nan"},
  };
  for (const DefectCase& each : cases) expect_defect(dense(each.text), each.message, each.name);
  damage(scenario_file::parse_dense_npy, sound);
}

// --- SciPy, sparse ---------------------------------------------------------------------------

// [1 0 2; 0 0 3], in each format.
Eigen::MatrixXd small() { return matrix(2, 3, {1, 0, 2, 0, 0, 3}); }

ZipEntry member(const std::string& name, const std::string& type, std::size_t count,
                const std::string& data) {
  return {name + ".npy", npy_of(type, fmt::format("{},", count), data)};
}
ZipEntry numbers(const std::string& name, const std::vector<std::int64_t>& values) {
  return member(name, "<i8", values.size(), packed(values));
}
ZipEntry format_is(const std::string& format) {
  return {"format.npy", npy_of(fmt::format("|S{}", format.size()), "", format)};
}
ZipEntry values_are(const std::vector<double>& values) {
  return member("data", "<f8", values.size(), packed(values));
}

std::vector<ZipEntry> csr() {
  return {numbers("indices", {0, 2, 2}), numbers("indptr", {0, 2, 3}), format_is("csr"),
          numbers("shape", {2, 3}), values_are({1, 2, 3})};
}
std::vector<ZipEntry> csc() {
  return {member("indices", "<i4", 3, packed<std::int32_t>({0, 0, 1})),
          member("indptr", "<i4", 4, packed<std::int32_t>({0, 1, 1, 3})), format_is("csc"),
          numbers("shape", {2, 3}), values_are({1, 2, 3})};
}
std::vector<ZipEntry> coo() {
  return {numbers("row", {1, 0, 0, 0}), numbers("col", {2, 0, 2, 2}), format_is("coo"),
          numbers("shape", {2, 3}), values_are({3, 1, 0.5, 1.5})};
}
std::vector<ZipEntry> coo_by_coordinates() {
  return {{"coords.npy", npy_of("<i8", "2, 3", packed<std::int64_t>({1, 0, 0, 2, 0, 2}))},
          format_is("coo"),
          numbers("shape", {2, 3}),
          values_are({3, 1, 2})};
}
// Rows of the data are the diagonals 0, 1 and 2; NaN where there is only padding.
std::vector<ZipEntry> dia() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {numbers("offsets", {0, 1, 2}),
          format_is("dia"),
          numbers("shape", {2, 3}),
          {"data.npy", npy_of("<f8", "3, 3", packed<double>({1, 0, nan, nan, 0, 3, nan, nan, 2}))}};
}
std::vector<ZipEntry> dia_by_columns() {
  return {numbers("offsets", {0, 1, 2}),
          format_is("dia"),
          numbers("shape", {2, 3}),
          {"data.npy", npy_of("<f8", "3, 3", packed<double>({1, 0, 0, 0, 0, 0, 0, 3, 2}), true)}};
}
// Blocks of 2 × 1.
std::vector<ZipEntry> bsr() {
  return {numbers("indices", {0, 2}),
          numbers("indptr", {0, 2}),
          format_is("bsr"),
          numbers("shape", {2, 3}),
          {"data.npy", npy_of("<f8", "2, 2, 1", packed<double>({1, 0, 2, 3}))}};
}

TEST(SparseNumpy, FormatsStoredAndDeflated) {
  for (const auto& make : {csr, csc, coo, coo_by_coordinates, dia, dia_by_columns, bsr}) {
    const std::vector<ZipEntry> entries = make();
    for (const bool deflate : {false, true}) {
      for (const bool large : {false, true}) {
        const ZipOptions options{.deflate = deflate, .large_sizes = large, .comment = "a comment"};
        expect_matrix(sparse(zip(entries, options)), small(), entries[0].name);
      }
    }
  }
}

TEST(SparseNumpy, FormatNamesAndByteOrders) {
  std::vector<ZipEntry> entries = csr();
  std::string wide;
  for (const char c : std::string("csr")) wide += std::string{c, '\0', '\0', '\0'};
  entries[2] = {"format.npy", npy_of("<U3", "", wide)};
  expect_matrix(sparse(zip(entries)), small(), "characters of four bytes");
  entries = csr();
  entries[0] = member("indices", ">i4", 3, packed<std::int32_t>({0, 2, 2}, true));
  entries[4] = member("data", ">f4", 3, packed<float>({1, 2, 3}, true));
  expect_matrix(sparse(zip(entries)), small(), "big-endian");
  entries[4] = member("data", "|b1", 3, packed<std::uint8_t>({1, 0, 1}));
  expect_matrix(sparse(zip(entries)), matrix(2, 3, {1, 0, 0, 0, 0, 1}), "booleans");
}

std::vector<ZipEntry> with(std::vector<ZipEntry> entries, const ZipEntry& changed) {
  for (ZipEntry& entry : entries) {
    if (entry.name == changed.name) entry = changed;
  }
  return entries;
}

TEST(SparseNumpy, Defects) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<ZipEntry> without = csr();
  without.erase(without.begin());
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  const std::vector<DefectCase> cases = {
      {"no archive", "rubbish", "not a zip archive"},
      {"an array", npy_of("<f8", "1, 1", packed<double>({1})), "not a zip archive"},
      {"cut", zip(csr()).substr(0, 300), "cut short"},
      {"crc", zip(csr(), {.wrong_crc = 1}), "\"format.npy\" in the zip archive is damaged"},
      {"crc of a deflated one", zip(csr(), {.deflate = true, .wrong_crc = 1}), "is damaged"},
      {"encrypted", zip(csr(), {.flags = 1}), "is encrypted"},
      {"bzip2", zip(csr(), {.method = 12}), "packed by method 12"},
      {"claims too much", zip(csr(), {.deflate = true, .claimed = 1U << 30}), "cannot hold"},
      {"claims a little too much", zip(csr(), {.deflate = true, .claimed = 1000}), "is damaged"},
      {"claims beyond 32 bits",
       zip(csr(), {.deflate = true, .large_sizes = true, .claimed = std::uint64_t{1} << 62}),
       "cannot hold"},
      {"claims too little", zip(csr(), {.deflate = true, .claimed = 10}), "is damaged"},
      {"missing", zip(without), "has no array \"indices\""},
      {"other format", zip(with(csr(), format_is("lil"))), "format \"lil\" cannot be read"},
      {"shape", zip(with(csr(), numbers("shape", {2}))), "array \"shape\": must be two"},
      {"negative shape", zip(with(csr(), numbers("shape", {-2, 3}))), "array \"shape\""},
      {"huge shape", zip(with(csr(), numbers("shape", {1LL << 40, 3}))), "array \"shape\""},
      {"pointers fall", zip(with(csr(), numbers("indptr", {0, 4, 3}))), "array \"indptr\""},
      {"pointers from 1", zip(with(csr(), numbers("indptr", {1, 2, 3}))), "array \"indptr\""},
      {"too few pointers", zip(with(csr(), numbers("indptr", {0, 3}))), "array \"indptr\""},
      {"no pointers", zip(with(csr(), numbers("indptr", {}))), "array \"indptr\""},
      {"negative pointers", zip(with(csr(), numbers("indptr", {0, lowest, 3}))), "\"indptr\""},
      {"negative index", zip(with(csr(), numbers("indices", {0, -1, 2}))),
       "entry 1: (0,-1) is outside the matrix, which is 2×3"},
      {"index too large", zip(with(csr(), numbers("indices", {0, 2, 3}))),
       "entry 2: (1,3) is outside"},
      {"infinite", zip(with(csr(), values_are({1, inf, 3}))), "entry 1: (0,2) must be finite"},
      {"real indices", zip(with(csr(), member("indices", "<f8", 3, packed<double>({0, 2, 2})))),
       "array \"indices\": numbers of type \"<f8\" cannot be read; integers can"},
      {"rows and columns differ", zip(with(coo(), numbers("row", {1, 0, 0}))),
       "4 values stand in 3 rows and 4 columns"},
      {"coordinates of three dimensions",
       zip(with(coo_by_coordinates(),
                {"coords.npy", npy_of("<i8", "3, 2", packed<std::int64_t>({1, 0, 0, 2, 0, 2}))})),
       "array \"coords\": must be two rows"},
      {"diagonals without offsets", zip(with(dia(), numbers("offsets", {0, 1}))),
       "must have a row for each of the 2 offsets"},
      {"blocks that do not fit", zip(with(bsr(), numbers("shape", {3, 3}))), "divides the shape"},
      {"flat blocks", zip(with(bsr(), values_are({1, 2, 3, 4}))), "divides the shape"},
      {"column of a block", zip(with(bsr(), numbers("indices", {0, 3}))),
       "block 1: its column 3 is outside"},
  };
  for (const DefectCase& each : cases) expect_defect(sparse(each.text), each.message, each.name);
  const Parsed far = sparse(zip(with(dia(), numbers("offsets", {lowest, 1, 2}))));
  expect_matrix(far, matrix(2, 3, {0, 0, 2, 0, 0, 3}), "a diagonal outside the matrix is empty");
}

TEST(SparseNumpy, DamagedArchives) {
  damage(scenario_file::parse_sparse_npz, zip(coo(), {.deflate = true}));
  damage(scenario_file::parse_sparse_npz, zip(csr()));
}

// A kilobyte that unpacks to a gigabyte is refused by its size, or by what it holds.
TEST(SparseNumpy, ABombIsRefusedByTheSizesInItsDirectory) {
  std::vector<ZipEntry> entries;
  for (int i = 0; i < 5; ++i)
    entries.push_back({fmt::format("{}.npy", i), std::string(600'000, 'x')});
  const std::string bomb = zip(entries, {.deflate = true, .claimed = 600'000'000});
  expect_defect(sparse(bomb), "cannot hold", "claims a thousand times what is packed");
}

// An array of zeros, as its header and a deflated body that unpacks to what it claims.
ZipEntry zeros(const std::string& name, const std::string& type, std::size_t count,
               std::size_t bytes) {
  return member(name, type, count, std::string(count * bytes, '\0'));
}

// Arrays that do not fit together are refused by their headers: of the data, whose checksum is wrong as
// well, nothing has been unpacked, or that would be said.
TEST(SparseNumpy, ArraysThatDoNotFitTogetherAreRefusedByTheirHeaders) {
  constexpr std::size_t kMany = 3'000'000;
  const auto refused = [](std::vector<ZipEntry> entries, const std::string& part) {
    const std::string sound = zip(entries, {.deflate = true});
    expect_defect(sparse(sound), part, part);
    if (sound.size() < 20'000) return;
    std::string damaged = sound;
    // The stream of the data, which comes last, from its tenth kilobyte on.
    const std::size_t data = damaged.rfind("PK\x03\x04");
    std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(data) + 1000, 500, '\xff');
    expect_defect(sparse(damaged), part, "damaged: " + part);
  };
  const auto data = zeros("data", "<f8", kMany, 8);
  refused({numbers("indices", {0, 0}), numbers("indptr", {0, 1, 2}), format_is("csr"),
           numbers("shape", {2, 3}), data},
          "array \"indptr\"");
  refused({numbers("indices", {0, 0}), numbers("indptr", {0, 1, 2}), format_is("csc"),
           numbers("shape", {2, 3}), data},
          "array \"indptr\"");
  refused({numbers("row", {0, 0}), numbers("col", {0, 0}), format_is("coo"),
           numbers("shape", {2, 3}), data},
          "3000000 values stand in 2 rows and 2 columns");
  refused({numbers("offsets", {0}), format_is("dia"), numbers("shape", {2, 3}), data},
          "must have a row for each of the 1 offsets");
  refused({numbers("indices", {0, 2}), numbers("indptr", {0, 2}), format_is("bsr"),
           numbers("shape", {2, 3}), data},
          "divides the shape");
  refused({numbers("indices", {0, 0}), numbers("indptr", {0, 1, 2}), format_is("csr"),
           numbers("shape", {2, 3}), zeros("data", "<c16", kMany, 16)},
          "complex matrices are not");
  std::vector<ZipEntry> says_too_much = csr();
  says_too_much[4] = {"data.npy", npy_of("<f8", "3000000,", std::string(80'000, '\0'))};
  refused(says_too_much, "must hold 3000000 numbers of 8 bytes, got 80000 bytes");
  // The control: where they fit, the damage is noticed, for it is unpacked.
  std::vector<ZipEntry> fits = {zeros("row", "<i4", kMany, 4), zeros("col", "<i4", kMany, 4),
                                format_is("coo"), numbers("shape", {2, 3}), data};
  std::string archive = zip(fits, {.deflate = true});
  EXPECT_EQ(sparse(archive).defects, std::vector<std::string>());
  const std::size_t last = archive.rfind("PK\x03\x04");
  std::fill_n(archive.begin() + static_cast<std::ptrdiff_t>(last) + 1000, 500, '\xff');
  expect_defect(sparse(archive), "damaged", "control");
}

TEST(SparseNumpy, AnArchiveThatSwellsTooMuchIsRefusedByItsDirectory) {
  constexpr std::size_t kMany = 9'000'000;  // 72 MB of zeros in some 70 kB
  std::vector<ZipEntry> entries = {numbers("indices", {}), format_is("coo"),
                                   numbers("shape", {2, 3}), zeros("data", "<f8", kMany, 8)};
  const std::string bomb = zip(entries, {.deflate = true});
  ASSERT_LT(bomb.size(), 200'000U);
  expect_defect(sparse(bomb), "is more than 200 times as large when unpacked", "deflated");
  // The control: as large without compression it is read, and only what is missing is told.
  expect_defect(sparse(zip(entries)), "has no array \"coords\"", "stored");
}

// --- files -----------------------------------------------------------------------------------

std::vector<std::string> file_defects(const std::filesystem::path& file) {
  std::vector<std::string> defects;
  scenario_file::read_matrix_file(file, defects);
  return defects;
}

TEST(MatrixFiles, AreToldByTheirEnding) {
  const TemporaryFolder folder;
  testing::write_text(folder / "M.MTX", "%%MatrixMarket matrix array real general\n1 1\n3\n");
  EXPECT_EQ(file_defects(folder / "M.MTX"), std::vector<std::string>());
  testing::write_text(folder / "M.csv", "3\n");
  ASSERT_EQ(file_defects(folder / "M.csv").size(), 1U);
  EXPECT_NE(file_defects(folder / "M.csv")[0].find(".mtx (Matrix Market)"), std::string::npos);
  EXPECT_EQ(file_defects(folder / "missing.npz").size(), 1U);
  EXPECT_EQ(file_defects(folder.path()).size(), 1U);
}

constexpr const char* kScenario = R"({
  "name": "bar", "time": {"step_s": 0.01, "end_s": 0.1},
  "subsystems": [{"name": "bar", "type": "second_order_system", "parameters": {
    "coordinates": {"count": 2, "name": "q"},
    "ports": [{"name": "end", "domain": "translation", "causality": "effort_in"}],
    "M": {"file": "matrices/M.mtx"}, "K": {"file": "matrices/K.npz"}, "B": [[1], [0]]}}],
  "couplings": [{"kind": "free", "ports": ["bar.end"]}],
  "method": {"kind": "auto"}})";

struct BarFolder {
  TemporaryFolder folder;
  BarFolder() {
    std::filesystem::create_directory(folder / "matrices");
    write("M.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 2\n2 2 3\n");
    write("K.npz", zip({numbers("row", {0, 0, 1, 1}), numbers("col", {0, 1, 0, 1}),
                        format_is("coo"), numbers("shape", {2, 2}), values_are({4, -4, -4, 4})},
                       {.deflate = true}));
  }
  void write(const std::string& name, const std::string& bytes) const {
    testing::write_text(folder / ("matrices/" + name), bytes);
  }
  std::string report() const {
    try {
      parse_scenario(kScenario, "bar.json", folder.path());
    } catch (const ScenarioError& error) {
      return error.report();
    }
    return "";
  }
};

TEST(MatrixFiles, PathsAreRelativeToTheScenario) {
  const BarFolder bar;
  EXPECT_EQ(bar.report(), "");
  EXPECT_THROW(parse_scenario(kScenario, "bar.json", bar.folder.path() / "elsewhere"),
               ScenarioError);
}

TEST(MatrixFiles, EveryDefectOfEveryFileIsNamedAtItsPlace) {
  const BarFolder bar;
  bar.write("M.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 2\n5 5 3\n");
  bar.write("K.npz", "rubbish");
  const std::string report = bar.report();
  EXPECT_NE(report.find("/subsystems/0/parameters/M/file: the matrix \"matrices/M.mtx\", line 4: "
                        "(5,5) is outside the matrix"),
            std::string::npos)
      << report;
  EXPECT_NE(
      report.find("/subsystems/0/parameters/K/file: the matrix \"matrices/K.npz\" is no .npz"),
      std::string::npos)
      << report;
}

TEST(MatrixFiles, WhatIsWrongWithAMatrixNamesItsFile) {
  const BarFolder bar;
  bar.write("M.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 2\n2 1 3\n");
  std::string report = bar.report();
  EXPECT_NE(report.find("/parameters/M: the matrix \"matrices/M.mtx\": "), std::string::npos)
      << report;
  EXPECT_NE(report.find("symmetric"), std::string::npos) << report;
  bar.write("M.mtx", "%%MatrixMarket matrix coordinate real general\n3 2 1\n1 1 2\n");
  report = bar.report();
  EXPECT_NE(report.find("3×2"), std::string::npos) << report;
}

// The files that NumPy and SciPy write themselves, where they are installed.
TEST(MatrixFiles, ThoseThatScipyWrites) {
  const TemporaryFolder folder;
  const std::string script = R"(
import sys, numpy as np
try:
    import scipy.sparse as sp, scipy.io as io
except ImportError:
    sys.exit(77)
out = sys.argv[1] + '/'
M = np.array([[1.5, 0, 2, 0], [0, 0, -3, 0], [0, 0, 0, 0], [7, 0, 0, 0.25]])
for form in ('csr', 'csc', 'coo', 'dia', 'bsr'):
    for kind, make in (('matrix', sp.coo_matrix), ('array', getattr(sp, 'coo_array', sp.coo_matrix))):
        for packed in (False, True):
            sp.save_npz(f'{out}{form}_{kind}_{packed}.npz', make(M).asformat(form), compressed=packed)
np.save(out + 'c.npy', M)
np.save(out + 'f.npy', np.asfortranarray(M))
np.save(out + 'big.npy', M.astype('>f8'))
np.save(out + 'f4.npy', M.astype('f4'))
io.mmwrite(out + 'dense.mtx', M)
io.mmwrite(out + 'sparse.mtx', sp.coo_matrix(M))
)";
  testing::write_text(folder / "make.py", script);
  int exit_code = 77;
  try {
    exit_code = testing::Subprocess({"/usr/bin/env", "python3", (folder / "make.py").string(),
                                     folder.path().string()})
                    .wait()
                    .exit_code;
  } catch (const std::exception&) {  // no python3
  }
  if (exit_code != 0) GTEST_SKIP() << "python3 with NumPy and SciPy is not installed";
  const Eigen::MatrixXd M = matrix(4, 4, {1.5, 0, 2, 0, 0, 0, -3, 0, 0, 0, 0, 0, 7, 0, 0, 0.25});
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".py") continue;
    Parsed found;
    const ShapedMatrix read = scenario_file::read_matrix_file(entry.path(), found.defects);
    found.M = Eigen::MatrixXd::Zero(read.rows, read.columns);
    for (const MatrixEntry& each : read.entries) found.M(each.row, each.column) += each.value;
    expect_matrix(found, M, entry.path().filename().string());
    ++files;
  }
  EXPECT_EQ(files, 26);
}

}  // namespace
}  // namespace portwave::test_matrix_files

// NumPy arrays and the sparse matrices that SciPy makes of them.
// Source: NumPy Enhancement Proposal 1 (the .npy format); scipy.sparse.save_npz.

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/matrix_file.hpp"
#include "scenario/matrix_file_zip.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::size_t kMostNumpyDefects = 10;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40;

struct NumpyArray {
  std::string type;  ///< "<f8"
  bool is_fortran = false;
  std::vector<std::uint64_t> shape;
  std::string_view data;

  std::uint64_t size() const {
    std::uint64_t product = 1;
    for (const std::uint64_t extent : shape) product *= extent;
    return product;
  }
  /// The place of entry (i, j) of an array of two dimensions among its numbers.
  std::size_t place(std::size_t i, std::size_t j) const {
    return is_fortran ? j * shape[0] + i : i * shape[1] + j;
  }
};

// The readers of one array; `name` is what messages call it, "" for the file itself.
class NumpyReader {
 public:
  NumpyReader(std::string_view bytes, std::string name)
      : bytes_(bytes), name_(name.empty() ? "" : fmt::format(", array {}", in_quotes(name))) {}

  [[noreturn]] void fail(std::string_view what) const {
    throw MatrixFileDefect{fmt::format("{}: {}", name_, what)};
  }

  NumpyArray read() const {
    constexpr std::string_view kMagic = "\x93NUMPY";
    if (!bytes_.starts_with(kMagic) || bytes_.size() < 10) fail("this is no .npy array");
    const auto byte = [this](std::size_t i) {
      return static_cast<std::size_t>(static_cast<unsigned char>(bytes_[i]));
    };
    const std::size_t version = byte(6);
    if (version < 1 || version > 3) {
      fail(fmt::format("version {} of the .npy format is not known", version));
    }
    const std::size_t begin = version == 1 ? 10 : 12;
    if (bytes_.size() < begin) fail("the array is cut short");
    std::size_t length = byte(8) + 256 * byte(9);
    if (version > 1) length += 65536 * (byte(10) + 256 * byte(11));
    if (bytes_.size() - begin < length) fail("the array is cut short");
    const std::string_view header = bytes_.substr(begin, length);
    NumpyArray array;
    array.type = type_in(header);
    const std::string_view order = value_in(header, "fortran_order");
    if (!order.starts_with("True") && !order.starts_with("False")) fail_header();
    array.is_fortran = order.starts_with("True");
    array.shape = shape_in(header);
    array.data = bytes_.substr(begin + length);
    return array;
  }

  /// The numbers, checked against the size of the array: in the order of its bytes.
  template <class Number>
  std::vector<Number> numbers(const NumpyArray& array) const {
    const std::string_view kind = std::string_view(array.type).substr(array.type.empty() ? 0 : 1);
    if constexpr (std::is_floating_point_v<Number>) {
      if (kind == "f8") return convert<Number, double>(array);
      if (kind == "f4") return convert<Number, float>(array);
    }
    if (kind == "i8") return convert<Number, std::int64_t>(array);
    if (kind == "i4") return convert<Number, std::int32_t>(array);
    if (kind == "i2") return convert<Number, std::int16_t>(array);
    if (kind == "i1") return convert<Number, std::int8_t>(array);
    if (kind == "u8") return convert<Number, std::uint64_t>(array);
    if (kind == "u4") return convert<Number, std::uint32_t>(array);
    if (kind == "u2") return convert<Number, std::uint16_t>(array);
    if (kind == "u1" || kind == "b1") return convert<Number, std::uint8_t>(array);
    if (kind.starts_with('c')) fail("complex matrices are not supported");
    fail(fmt::format(
        "numbers of type {} cannot be read; {} can", in_quotes(array.type),
        std::is_floating_point_v<Number> ? "\"f8\", \"f4\", integers and booleans" : "integers"));
  }

 private:
  static_assert(std::endian::native == std::endian::little, "arrays are copied as they are");

  [[noreturn]] void fail_header() const {
    fail("the header must hold \"descr\", \"fortran_order\" and \"shape\"");
  }

  // What follows "'key':" in {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }.
  std::string_view value_in(std::string_view header, std::string_view key) const {
    const std::size_t at = header.find(fmt::format("'{}':", key));
    if (at == std::string_view::npos) fail_header();
    std::string_view value = header.substr(at + key.size() + 3);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    return value;
  }

  std::string type_in(std::string_view header) const {
    const std::string_view value = value_in(header, "descr");
    if (!value.starts_with('\'')) fail("arrays of records cannot be read");
    const std::size_t end = value.find('\'', 1);
    if (end == std::string_view::npos) fail_header();
    return std::string(value.substr(1, end - 1));
  }

  std::vector<std::uint64_t> shape_in(std::string_view header) const {
    std::string_view value = value_in(header, "shape");
    const std::size_t end = value.find(')');
    if (!value.starts_with('(') || end == std::string_view::npos) fail_header();
    value = value.substr(1, end - 1);
    std::vector<std::uint64_t> shape;
    std::uint64_t product = 1;
    while (true) {
      value.remove_prefix(std::min(value.find_first_not_of(" ,"), value.size()));
      if (value.empty()) return shape;
      std::uint64_t extent = 0;
      const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), extent);
      if (error != std::errc{} || extent > kMostElements) fail_header();
      if (extent > 0 && product > kMostElements / extent) fail("the array is too large");
      product *= extent;
      shape.push_back(extent);
      value.remove_prefix(static_cast<std::size_t>(stop - value.data()));
    }
  }

  template <class Number, class Stored>
  std::vector<Number> convert(const NumpyArray& array) const {
    const std::uint64_t count = array.size();
    if (array.data.size() != count * sizeof(Stored)) {
      fail(fmt::format("must hold {} numbers of {} bytes, got {} bytes", count, sizeof(Stored),
                       array.data.size()));
    }
    const bool is_big_endian = array.type.starts_with('>');
    std::vector<Number> values(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      Stored stored;
      char bytes[sizeof(Stored)];
      std::memcpy(bytes, array.data.data() + i * sizeof(Stored), sizeof(Stored));
      if (is_big_endian) std::reverse(bytes, bytes + sizeof(Stored));
      std::memcpy(&stored, bytes, sizeof(Stored));
      values[i] = static_cast<Number>(stored);
    }
    return values;
  }

  std::string_view bytes_;
  std::string name_;
};

// A sparse matrix out of the arrays of an archive.
class SparseNpz {
 public:
  SparseNpz(std::string_view bytes, std::vector<std::string>& defects)
      : members_(unzip(bytes)), defects_(defects) {}

  ShapedMatrix read() {
    const std::string format = read_format();
    const std::vector<std::int64_t> shape = integers("shape");
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    const auto fits = [](std::int64_t extent) { return extent >= 0 && extent <= kMost; };
    if (shape.size() != 2 || !fits(shape[0]) || !fits(shape[1])) {
      throw MatrixFileDefect{", array \"shape\": must be two numbers of rows and columns"};
    }
    matrix_.rows = static_cast<int>(shape[0]);
    matrix_.columns = static_cast<int>(shape[1]);
    const NumpyReader reader = reader_of("data");
    const NumpyArray data = reader.read();
    const std::vector<double> values = reader.numbers<double>(data);
    if (format == "coo") {
      read_places(values);
    } else if (format == "dia") {
      read_diagonals(reader, data, values);
    } else if (format == "bsr") {
      read_blocks(reader, data, values);
    } else {
      read_compressed(values, format == "csr");
    }
    return std::move(matrix_);
  }

 private:
  NumpyReader reader_of(const std::string& name) const {
    const auto found = members_.find(name + ".npy");
    if (found == members_.end()) {
      throw MatrixFileDefect{fmt::format(
          " has no array {}: it is no sparse matrix of scipy.sparse.save_npz", in_quotes(name))};
    }
    return {found->second, name};
  }

  std::vector<std::int64_t> integers(const std::string& name) const {
    const NumpyReader reader = reader_of(name);
    const NumpyArray array = reader.read();
    return reader.numbers<std::int64_t>(array);
  }

  // Bytes "|S3", or characters of four bytes each "<U3" in older files.
  std::string read_format() const {
    const NumpyReader reader = reader_of("format");
    const NumpyArray array = reader.read();
    std::string format;
    for (const char c : array.data) {
      if (c != '\0') format += c;
    }
    constexpr std::array<std::string_view, 5> kFormats = {"csr", "csc", "coo", "dia", "bsr"};
    if (std::find(kFormats.begin(), kFormats.end(), format) != kFormats.end()) return format;
    throw MatrixFileDefect{
        fmt::format(": sparse matrices of format {} cannot be read; \"csr\", \"csc\", \"coo\", "
                    "\"dia\" and \"bsr\" can",
                    in_quotes(format))};
  }

  void note(std::string what) { defects_.push_back(std::move(what)); }
  bool is_full() const { return defects_.size() >= kMostNumpyDefects; }

  void add(std::int64_t row, std::int64_t column, double value, std::size_t place) {
    if (row < 0 || row >= matrix_.rows || column < 0 || column >= matrix_.columns) {
      return note(fmt::format(", entry {}: ({},{}) is outside the matrix, which is {}×{}", place,
                              row, column, matrix_.rows, matrix_.columns));
    }
    if (!std::isfinite(value)) {
      return note(
          fmt::format(", entry {}: ({},{}) must be finite, got {}", place, row, column, value));
    }
    matrix_.entries.push_back({static_cast<int>(row), static_cast<int>(column), value});
  }

  void read_places(const std::vector<double>& values) {
    std::vector<std::int64_t> rows, columns;
    if (members_.contains("row.npy")) {
      rows = integers("row");
      columns = integers("col");
    } else {  // arrays of any dimension, from SciPy 1.13 on
      const NumpyReader reader = reader_of("coords");
      const NumpyArray array = reader.read();
      if (array.shape.size() != 2 || array.shape[0] != 2 || array.is_fortran) {
        reader.fail("must be two rows of numbers");
      }
      const std::vector<std::int64_t> places = reader.numbers<std::int64_t>(array);
      const auto half = static_cast<std::ptrdiff_t>(places.size() / 2);
      rows.assign(places.begin(), places.begin() + half);
      columns.assign(places.begin() + half, places.end());
    }
    if (rows.size() != values.size() || columns.size() != values.size()) {
      throw MatrixFileDefect{fmt::format(": {} values stand in {} rows and {} columns",
                                         values.size(), rows.size(), columns.size())};
    }
    matrix_.entries.reserve(values.size());
    for (std::size_t i = 0; i < values.size() && !is_full(); ++i) {
      add(rows[i], columns[i], values[i], i);
    }
  }

  void read_compressed(const std::vector<double>& values, bool by_rows) {
    const std::vector<std::int64_t> inner = integers("indices"), begin = integers("indptr");
    const auto lines = static_cast<std::size_t>(by_rows ? matrix_.rows : matrix_.columns);
    check_pointers(begin, inner, lines, values.size());
    matrix_.entries.reserve(values.size());
    for (std::size_t line = 0; line < lines; ++line) {
      for (auto i = static_cast<std::size_t>(begin[line]);
           std::cmp_less(i, begin[line + 1]) && !is_full(); ++i) {
        const auto outer = static_cast<std::int64_t>(line);
        add(by_rows ? outer : inner[i], by_rows ? inner[i] : outer, values[i], i);
      }
    }
  }

  // Row k of the data is the diagonal of offset o: entry (j − o, j) stands in its column j.
  void read_diagonals(const NumpyReader& reader, const NumpyArray& data,
                      const std::vector<double>& values) {
    const std::vector<std::int64_t> offsets = integers("offsets");
    if (data.shape.size() != 2 || data.shape[0] != offsets.size()) {
      reader.fail(fmt::format("must have a row for each of the {} offsets", offsets.size()));
    }
    const auto columns =
        std::min<std::uint64_t>(data.shape[1], static_cast<std::uint64_t>(matrix_.columns));
    for (std::size_t k = 0; k < offsets.size(); ++k) {
      if (offsets[k] <= -std::int64_t{matrix_.rows} || offsets[k] >= matrix_.columns) continue;
      for (std::size_t j = 0; j < columns && !is_full(); ++j) {
        const std::int64_t row = static_cast<std::int64_t>(j) - offsets[k];
        const std::size_t place = data.place(k, j);
        // What stands before the first row or after the last is padding.
        const bool is_inside = offsets[k] <= static_cast<std::int64_t>(j) && row < matrix_.rows;
        if (is_inside && values[place] != 0.0) {
          add(row, static_cast<std::int64_t>(j), values[place], place);
        }
      }
    }
  }

  // Compressed rows of dense blocks.
  void read_blocks(const NumpyReader& reader, const NumpyArray& data,
                   const std::vector<double>& values) {
    const std::vector<std::int64_t> inner = integers("indices"), begin = integers("indptr");
    const auto fail = [&] {
      reader.fail("must be blocks of one shape that divides the shape of the matrix");
    };
    if (data.shape.size() != 3) fail();
    const std::uint64_t blocks = data.shape[0], height = data.shape[1], width = data.shape[2];
    const auto rows = static_cast<std::uint64_t>(matrix_.rows);
    if (height == 0 || width == 0 || rows % height != 0 ||
        static_cast<std::uint64_t>(matrix_.columns) % width != 0) {
      fail();
    }
    check_pointers(begin, inner, rows / height, blocks);
    for (std::size_t line = 0; line < rows / height; ++line) {
      for (auto block = static_cast<std::size_t>(begin[line]);
           std::cmp_less(block, begin[line + 1]) && !is_full(); ++block) {
        if (std::cmp_less(inner[block], 0) ||
            std::cmp_greater_equal(inner[block],
                                   static_cast<std::uint64_t>(matrix_.columns) / width)) {
          note(fmt::format(", block {}: its column {} is outside the matrix", block, inner[block]));
          continue;
        }
        for (std::size_t entry = 0; entry < height * width; ++entry) {
          const std::size_t r = entry / width, c = entry % width;
          const std::size_t place =
              data.is_fortran ? block + blocks * (r + height * c) : block * height * width + entry;
          if (values[place] == 0.0 || is_full()) continue;
          add(static_cast<std::int64_t>(line * height + r),
              inner[block] * static_cast<std::int64_t>(width) + static_cast<std::int64_t>(c),
              values[place], place);
        }
      }
    }
  }

  static void check_pointers(const std::vector<std::int64_t>& begin,
                             const std::vector<std::int64_t>& inner, std::uint64_t lines,
                             std::uint64_t values) {
    const bool is_sound = begin.size() == lines + 1 && begin.front() == 0 &&
                          std::is_sorted(begin.begin(), begin.end()) &&
                          std::cmp_equal(begin.back(), values) && inner.size() == values;
    if (is_sound) return;
    throw MatrixFileDefect{
        fmt::format(", array \"indptr\": must rise from 0 to the number of values, {}, in {} "
                    "numbers, beside as many \"indices\" as values",
                    values, lines + 1)};
  }

  std::map<std::string, std::string> members_;
  std::vector<std::string>& defects_;
  ShapedMatrix matrix_;
};

}  // namespace

ShapedMatrix parse_sparse_npz(std::string_view bytes, std::vector<std::string>& defects) {
  return SparseNpz(bytes, defects).read();
}

ShapedMatrix parse_dense_npy(std::string_view bytes, std::vector<std::string>& defects) {
  const NumpyReader reader(bytes, "");
  const NumpyArray array = reader.read();
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
  if (array.shape.size() != 2 || array.shape[0] > kMost || array.shape[1] > kMost) {
    reader.fail(fmt::format("must have two dimensions, got {}", array.shape.size()));
  }
  const std::vector<double> values = reader.numbers<double>(array);
  ShapedMatrix matrix{static_cast<int>(array.shape[0]), static_cast<int>(array.shape[1]), {}, {}};
  const auto rows = static_cast<std::size_t>(matrix.rows);
  const auto columns = static_cast<std::size_t>(matrix.columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const double value = values[array.place(i, j)];
      if (!std::isfinite(value)) {
        defects.push_back(fmt::format(", entry ({},{}): must be finite, got {}", i, j, value));
        if (defects.size() >= kMostNumpyDefects) return matrix;
      } else if (value != 0.0) {
        matrix.entries.push_back({static_cast<int>(i), static_cast<int>(j), value});
      }
    }
  }
  return matrix;
}

}  // namespace portwave::scenario_file

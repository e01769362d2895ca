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
#include "scenario/files/matrix_file.hpp"
#include "scenario/files/matrix_file_zip.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::size_t kMostNumpyDefects = 10;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40;

struct NumpyArray {
  std::string type;  ///< "<f8"
  bool is_fortran = false;
  std::vector<std::uint64_t> shape;
  std::uint64_t header = 0;  ///< bytes before the data
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

/// How a number is stored.
template <class Number>
struct NumpyKind {
  std::uint64_t bytes;
  Number (*read)(const char* from, bool is_big_endian);

  template <class Stored>
  static NumpyKind of() {
    return {sizeof(Stored), [](const char* from, bool is_big_endian) {
              Stored stored;
              char bytes[sizeof(Stored)];
              std::memcpy(bytes, from, sizeof(Stored));
              if (is_big_endian) std::reverse(bytes, bytes + sizeof(Stored));
              std::memcpy(&stored, bytes, sizeof(Stored));
              return static_cast<Number>(stored);
            }};
  }
};

/// The numbers of an array, which are read where they are: in the order of its bytes.
template <class Number>
class NumpyNumbers {
 public:
  NumpyNumbers(const NumpyArray& array, NumpyKind<Number> kind)
      : data_(array.data.data()),
        size_(array.size()),
        is_big_endian_(array.type.starts_with('>')),
        kind_(kind) {}

  std::size_t size() const { return size_; }
  Number operator[](std::size_t i) const {
    return kind_.read(data_ + i * kind_.bytes, is_big_endian_);
  }

 private:
  const char* data_;
  std::size_t size_;
  bool is_big_endian_;
  NumpyKind<Number> kind_;
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
    array.header = begin + length;
    array.data = bytes_.substr(begin + length);
    return array;
  }

  /// Fails where numbers of this type cannot be read as such.
  template <class Number>
  NumpyKind<Number> kind_of(const std::string& type) const {
    using Kind = NumpyKind<Number>;
    const std::string_view kind = std::string_view(type).substr(type.empty() ? 0 : 1);
    if constexpr (std::is_floating_point_v<Number>) {
      if (kind == "f8") return Kind::template of<double>();
      if (kind == "f4") return Kind::template of<float>();
    }
    if (kind == "i8") return Kind::template of<std::int64_t>();
    if (kind == "i4") return Kind::template of<std::int32_t>();
    if (kind == "i2") return Kind::template of<std::int16_t>();
    if (kind == "i1") return Kind::template of<std::int8_t>();
    if (kind == "u8") return Kind::template of<std::uint64_t>();
    if (kind == "u4") return Kind::template of<std::uint32_t>();
    if (kind == "u2") return Kind::template of<std::uint16_t>();
    if (kind == "u1" || kind == "b1") return Kind::template of<std::uint8_t>();
    if (kind.starts_with('c')) fail("complex matrices are not supported");
    fail(fmt::format(
        "numbers of type {} cannot be read; {} can", in_quotes(type),
        std::is_floating_point_v<Number> ? "\"f8\", \"f4\", integers and booleans" : "integers"));
  }

  /// The numbers, of which there are as many bytes as the array says.
  template <class Number>
  NumpyNumbers<Number> numbers(const NumpyArray& array) const {
    const NumpyKind<Number> kind = kind_of<Number>(array.type);
    expect_bytes(array, kind.bytes, array.data.size());
    return {array, kind};
  }

  void expect_bytes(const NumpyArray& array, std::uint64_t each, std::uint64_t found) const {
    if (found == array.size() * each) return;
    fail(fmt::format("must hold {} numbers of {} bytes, got {} bytes", array.size(), each, found));
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

  std::string_view bytes_;
  std::string name_;
};

// A sparse matrix out of the arrays of an archive. What these say of their sizes is compared before they
// are unpacked, so that an archive whose arrays do not fit together costs nothing.
class SparseNpz {
 public:
  SparseNpz(std::string_view bytes, std::vector<std::string>& defects)
      : archive_(bytes), defects_(defects) {}

  ShapedMatrix read() {
    const std::string format = read_format();
    const Integers shape = integers("shape", 2);
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    const auto fits = [](std::int64_t extent) { return extent >= 0 && extent <= kMost; };
    if (!fits(shape[0]) || !fits(shape[1])) fail_shape();
    matrix_.rows = static_cast<int>(shape[0]);
    matrix_.columns = static_cast<int>(shape[1]);
    check_sizes(format, announced<double>("data"));
    const NumpyReader reader = reader_of("data");
    const NumpyArray data = reader.read();
    const NumpyNumbers<double> values = reader.numbers<double>(data);
    if (format == "coo") {
      read_places(values);
    } else if (format == "dia") {
      read_diagonals(data, values);
    } else if (format == "bsr") {
      read_blocks(data, values);
    } else {
      read_compressed(values, format == "csr");
    }
    return std::move(matrix_);
  }

 private:
  using Integers = NumpyNumbers<std::int64_t>;

  [[noreturn]] static void fail_shape() {
    throw MatrixFileDefect{", array \"shape\": must be two numbers of rows and columns"};
  }

  std::string member_of_archive(const std::string& name) const {
    if (archive_.contains(name + ".npy")) return name + ".npy";
    throw MatrixFileDefect{fmt::format(
        " has no array {}: it is no sparse matrix of scipy.sparse.save_npz", in_quotes(name))};
  }

  /// An array without its numbers, of which there are as many as it says.
  template <class Number>
  NumpyArray announced(const std::string& name) const {
    constexpr std::uint64_t kLongestHeader = 1 << 16;
    const std::string member = member_of_archive(name);
    const std::string beginning = archive_.beginning(member, kLongestHeader);
    const NumpyReader reader(beginning, name);
    NumpyArray array = reader.read();
    array.data = {};
    reader.expect_bytes(array, reader.kind_of<Number>(array.type).bytes,
                        archive_.size(member) - array.header);
    return array;
  }
  std::uint64_t count_of(const std::string& name) const {
    return announced<std::int64_t>(name).size();
  }

  NumpyReader reader_of(const std::string& name) {
    const std::string member = member_of_archive(name);
    const auto [content, is_new] = contents_.try_emplace(name);
    if (is_new) content->second = archive_.content(member);
    return {content->second, name};
  }

  Integers integers(const std::string& name) {
    const NumpyReader reader = reader_of(name);
    return reader.numbers<std::int64_t>(reader.read());
  }
  Integers integers(const std::string& name, std::uint64_t count) {
    if (count_of(name) != count) fail_shape();
    return integers(name);
  }

  // Bytes "|S3", or characters of four bytes each "<U3" in older files.
  std::string read_format() {
    constexpr std::uint64_t kLongest = 1024;  // with its header
    std::string format;
    if (archive_.size(member_of_archive("format")) <= kLongest) {
      for (const char c : reader_of("format").read().data) {
        if (c != '\0') format += c;
      }
    }
    constexpr std::array<std::string_view, 5> kFormats = {"csr", "csc", "coo", "dia", "bsr"};
    if (std::find(kFormats.begin(), kFormats.end(), format) != kFormats.end()) return format;
    throw MatrixFileDefect{
        fmt::format(": sparse matrices of format {} cannot be read; \"csr\", \"csc\", \"coo\", "
                    "\"dia\" and \"bsr\" can",
                    in_quotes(format))};
  }

  /// Whether the arrays fit together, by what they say.
  void check_sizes(const std::string& format, const NumpyArray& data) const {
    const auto fail = [](std::string_view what) {
      throw MatrixFileDefect{fmt::format(", array \"data\": {}", what)};
    };
    if (format == "coo") return check_places(data.size());
    if (format == "dia") {
      const std::uint64_t offsets = count_of("offsets");
      if (data.shape.size() == 2 && data.shape[0] == offsets) return;
      fail(fmt::format("must have a row for each of the {} offsets", offsets));
    }
    const auto rows = static_cast<std::uint64_t>(matrix_.rows),
               columns = static_cast<std::uint64_t>(matrix_.columns);
    if (format != "bsr") return check_pointers(format == "csr" ? rows : columns, data.size());
    const bool are_blocks = data.shape.size() == 3 && data.shape[1] > 0 && data.shape[2] > 0 &&
                            rows % data.shape[1] == 0 && columns % data.shape[2] == 0;
    if (!are_blocks) fail("must be blocks of one shape that divides the shape of the matrix");
    check_pointers(rows / data.shape[1], data.shape[0]);
  }

  void check_places(std::uint64_t values) const {
    std::uint64_t rows = 0, columns = 0;
    if (archive_.contains("row.npy")) {
      rows = count_of("row");
      columns = count_of("col");
    } else {  // arrays of any dimension, from SciPy 1.13 on
      const NumpyArray coordinates = announced<std::int64_t>("coords");
      if (coordinates.shape.size() != 2 || coordinates.shape[0] != 2 || coordinates.is_fortran) {
        throw MatrixFileDefect{", array \"coords\": must be two rows of numbers"};
      }
      rows = columns = coordinates.shape[1];
    }
    if (rows == values && columns == values) return;
    throw MatrixFileDefect{
        fmt::format(": {} values stand in {} rows and {} columns", values, rows, columns)};
  }

  void check_pointers(std::uint64_t lines, std::uint64_t values) const {
    if (count_of("indptr") != lines + 1 || count_of("indices") != values) {
      fail_pointers(lines, values);
    }
  }
  [[noreturn]] static void fail_pointers(std::uint64_t lines, std::uint64_t values) {
    throw MatrixFileDefect{
        fmt::format(", array \"indptr\": must rise from 0 to the number of values, {}, in {} "
                    "numbers, beside as many \"indices\" as values",
                    values, lines + 1)};
  }

  void note(std::string what) { defects_.push_back(std::move(what)); }
  bool is_full() const { return defects_.size() >= kMostNumpyDefects; }

  void add(std::int64_t row, std::int64_t column, double value, std::size_t place) {
    if (row < 0 || row >= matrix_.rows || column < 0 || column >= matrix_.columns) {
      return note(fmt::format(", entry {}: ({},{}) is outside the matrix, which is {}×{}", place,
                              row, column, matrix_.rows, matrix_.columns));
    }
    if (!std::isfinite(value)) {
      return note(fmt::format(", entry {}: ({},{}) must be finite, got {}", place, row, column,
                              shown_number(value)));
    }
    matrix_.entries.push_back({static_cast<int>(row), static_cast<int>(column), value});
  }

  void read_places(const NumpyNumbers<double>& values) {
    const bool is_apart = archive_.contains("row.npy");
    const Integers rows = integers(is_apart ? "row" : "coords");
    const Integers columns = is_apart ? integers("col") : rows;
    const std::size_t first = is_apart ? 0 : values.size();
    matrix_.entries.reserve(values.size());
    for (std::size_t i = 0; i < values.size() && !is_full(); ++i) {
      add(rows[i], columns[first + i], values[i], i);
    }
  }

  void read_compressed(const NumpyNumbers<double>& values, bool by_rows) {
    const Integers inner = integers("indices"), begin = integers("indptr");
    const auto lines = static_cast<std::size_t>(by_rows ? matrix_.rows : matrix_.columns);
    expect_rising(begin, values.size());
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
  void read_diagonals(const NumpyArray& data, const NumpyNumbers<double>& values) {
    const Integers offsets = integers("offsets");
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
  void read_blocks(const NumpyArray& data, const NumpyNumbers<double>& values) {
    const Integers inner = integers("indices"), begin = integers("indptr");
    const std::uint64_t blocks = data.shape[0], height = data.shape[1], width = data.shape[2];
    const auto rows = static_cast<std::uint64_t>(matrix_.rows);
    expect_rising(begin, blocks);
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

  static void expect_rising(const Integers& begin, std::uint64_t values) {
    std::int64_t last = 0;
    bool is_sound = begin[0] == 0;
    for (std::size_t i = 0; i < begin.size() && is_sound; ++i) {
      is_sound = begin[i] >= last;
      last = begin[i];
    }
    if (!is_sound || !std::cmp_equal(last, values)) fail_pointers(begin.size() - 1, values);
  }

  ZipArchive archive_;
  std::map<std::string, std::string> contents_;  ///< of members, unpacked
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
  const NumpyNumbers<double> values = reader.numbers<double>(array);
  ShapedMatrix matrix{static_cast<int>(array.shape[0]), static_cast<int>(array.shape[1]), {}, {}};
  const auto rows = static_cast<std::size_t>(matrix.rows);
  const auto columns = static_cast<std::size_t>(matrix.columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const double value = values[array.place(i, j)];
      if (!std::isfinite(value)) {
        defects.push_back(
            fmt::format(", entry ({},{}): must be finite, got {}", i, j, shown_number(value)));
        if (defects.size() >= kMostNumpyDefects) return matrix;
      } else if (value != 0.0) {
        matrix.entries.push_back({static_cast<int>(i), static_cast<int>(j), value});
      }
    }
  }
  return matrix;
}

}  // namespace portwave::scenario_file

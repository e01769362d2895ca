// MATLAB's files: level 5, and what levels share. Level 7.3 is in matrix_file_mat_hdf5.cpp.
// Source: The MathWorks, MAT-File Format (R2019b), chapter 1.

#include "scenario/files/matrix_file_mat.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/few_of.hpp"
#include "portwave/subsystems/base/name_search.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/files/matrix_file_zip.hpp"
#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::size_t kHeaderBytes = 128;
constexpr std::uint64_t kFirstBytes = 1024;  // flags, dimensions and name, unless that is made up
constexpr std::uint32_t kMatrixType = 14, kCompressedType = 15;

/// Classes by number, in the words of MATLAB.
constexpr std::array<std::string_view, 18> kClasses = {
    "",       "cell",   "struct",          "object", "char",   "sparse", "double",
    "single", "int8",   "uint8",           "int16",  "uint16", "int32",  "uint32",
    "int64",  "uint64", "function_handle", "opaque"};
constexpr std::uint32_t kSparseClass = 5;

[[noreturn]] void damaged() { throw MatrixFileDefect{": the file is cut short or damaged"}; }

template <class Stored>
double number_from(const char* from, bool swapped) {
  char bytes[sizeof(Stored)];
  std::memcpy(bytes, from, sizeof(Stored));
  if (swapped) std::reverse(bytes, bytes + sizeof(Stored));
  Stored stored;
  std::memcpy(&stored, bytes, sizeof(Stored));
  return static_cast<double>(stored);
}

/// How the numbers of an element are stored.
struct MatNumbers {
  std::string_view data;
  std::size_t each = 0;
  double (*read)(const char* from, bool swapped) = nullptr;
  bool swapped = false;

  std::uint64_t size() const { return each == 0 ? 0 : data.size() / each; }
  /// Precondition: k < size().
  double operator[](std::uint64_t k) const { return read(data.data() + k * each, swapped); }
  /// What counts something is no more than 2³¹ − 1.
  std::int64_t whole(std::uint64_t k) const {
    const double value = (*this)[k];
    return value >= 0.0 && value <= std::numeric_limits<int>::max()
               ? static_cast<std::int64_t>(value)
               : -1;
  }
};

/// An element: a tag of type and size, and so many bytes.
struct MatElement {
  std::uint32_t type = 0;
  std::string_view data;
};

/// The elements of a text, one after the other.
class MatElements {
 public:
  MatElements(std::string_view bytes, bool swapped) : rest_(bytes), swapped_(swapped) {}

  bool at_end() const { return rest_.empty(); }

  /// `is_whole`: false: the bytes may end before the element does, which then has those that are there.
  MatElement next(bool is_whole = true) {
    if (rest_.size() < 8) damaged();
    const auto first = word(0);
    if (first >> 16 != 0) {  // a small one, in its tag
      const std::uint32_t size = first >> 16;
      if (size > 4) damaged();
      const MatElement element{first & 0xFFFFU, rest_.substr(4, size)};
      rest_.remove_prefix(8);
      return element;
    }
    const std::uint64_t size = word(4);
    rest_.remove_prefix(8);
    if (is_whole && size > rest_.size()) damaged();
    const MatElement element{first, rest_.substr(0, size)};
    // Only what is compressed may end anywhere.
    const std::uint64_t padded = first == kCompressedType ? size : (size + 7) / 8 * 8;
    rest_.remove_prefix(std::min<std::uint64_t>(padded, rest_.size()));
    return element;
  }

  MatNumbers numbers() {
    const MatElement element = next();
    MatNumbers out{element.data, 0, nullptr, swapped_};
    const auto as = [&out]<class Stored>(Stored) {
      out.each = sizeof(Stored);
      out.read = number_from<Stored>;
    };
    switch (element.type) {
      case 1:
        as(std::int8_t{});
        break;
      case 2:
        as(std::uint8_t{});
        break;
      case 3:
        as(std::int16_t{});
        break;
      case 4:
        as(std::uint16_t{});
        break;
      case 5:
        as(std::int32_t{});
        break;
      case 6:
        as(std::uint32_t{});
        break;
      case 7:
        as(float{});
        break;
      case 9:
        as(double{});
        break;
      case 12:
        as(std::int64_t{});
        break;
      case 13:
        as(std::uint64_t{});
        break;
      default:
        damaged();
    }
    if (out.data.size() % out.each != 0) damaged();
    return out;
  }

 private:
  std::uint32_t word(std::size_t offset) const {
    std::uint32_t value;
    std::memcpy(&value, rest_.data() + offset, sizeof(value));
    return swapped_ ? __builtin_bswap32(value) : value;
  }

  std::string_view rest_;
  bool swapped_;
};

/// A variable: what stands before its numbers.
struct MatVariable {
  std::string name;
  std::uint32_t kind = 0;
  bool is_complex = false;
  std::vector<std::int64_t> extents;
};

MatVariable read_variable(MatElements& elements) {
  MatVariable out;
  const MatNumbers flags = elements.numbers();
  if (flags.each != 4 || flags.size() < 2) damaged();
  const auto word = static_cast<std::uint32_t>(flags[0]);
  out.kind = word & 0xFFU;
  out.is_complex = (word & 0x800U) != 0;
  const MatNumbers extents = elements.numbers();
  for (std::uint64_t k = 0; k < extents.size(); ++k) {
    out.extents.push_back(extents.whole(k));
    if (out.extents.back() < 0) damaged();
  }
  out.name = std::string(elements.next().data);
  return out;
}

class LevelFive {
 public:
  LevelFive(std::string_view bytes, bool swapped) : bytes_(bytes), swapped_(swapped) {
    MatElements elements(bytes.substr(kHeaderBytes), swapped);
    while (!elements.at_end()) {
      if (places_.size() == kMostVariables) {
        throw MatrixFileDefect{fmt::format(" has more than {} variables", kMostVariables)};
      }
      const MatElement element = elements.next();
      Place place{"", element.data, element.type == kCompressedType, element.data.size()};
      if (place.is_packed) measure(place);
      if (!place.is_packed && element.type != kMatrixType) continue;
      const std::string first = place.is_packed ? content(place, kFirstBytes) : "";
      MatElements inside(place.is_packed ? std::string_view(first) : place.data, swapped);
      place.name = read_variable(inside).name;
      if (!place.name.empty()) places_.push_back(std::move(place));  // else an annex of MATLAB's
    }
  }

  ShapedMatrix read(const std::string& variable, std::vector<std::string>& defects) const {
    std::vector<std::string> names;
    for (const Place& place : places_) names.push_back(place.name);
    const std::string meant = variable_meant(names, variable);
    // Of several of one name the last one counts, as in SciPy.
    const auto found = std::find_if(places_.rbegin(), places_.rend(),
                                    [&meant](const Place& own) { return own.name == meant; });
    const std::string unpacked = found->is_packed ? content(*found, found->size) : "";
    MatElements inside(found->is_packed ? std::string_view(unpacked) : found->data, swapped_);
    const MatVariable head = read_variable(inside);
    const auto fail = [&meant](const std::string& what) {
      throw MatrixFileDefect{fmt::format(", variable {}: {}", in_quotes(meant), what)};
    };
    if (head.kind == 0 || head.kind >= kClasses.size()) damaged();
    if (std::string defect = defect_of_class(kClasses[head.kind]); !defect.empty()) fail(defect);
    if (head.is_complex) fail("is complex; complex matrices are not supported");
    if (head.extents.size() != 2) {
      fail(fmt::format("has {} dimensions, and a matrix has two", head.extents.size()));
    }
    const int rows = static_cast<int>(head.extents[0]), columns = static_cast<int>(head.extents[1]);
    MatEntries entries(rows, columns, meant, defects);
    if (head.kind == kSparseClass) {
      read_sparse(inside, columns, entries);
    } else {
      const MatNumbers values = inside.numbers();
      if (values.size() != static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(columns)) {
        fail(fmt::format("must hold {} × {} numbers, and holds {}", rows, columns, values.size()));
      }
      entries.add_dense([&values](std::size_t k) { return values[k]; });
    }
    return entries.take();
  }

 private:
  static constexpr std::size_t kMostVariables = 10'000;

  struct Place {
    std::string name;
    std::string_view data;
    bool is_packed = false;
    std::uint64_t size = 0;  ///< of the content, unpacked
  };

  static void read_sparse(MatElements& inside, int columns, MatEntries& entries) {
    const MatNumbers rows = inside.numbers(), begins = inside.numbers(), values = inside.numbers();
    if (begins.size() < static_cast<std::uint64_t>(columns) + 1) {
      entries.fail("its columns have no beginnings: the file is damaged");
    }
    entries.add_columns(
        std::min(rows.size(), values.size()),
        [&rows](std::int64_t k) { return rows.whole(static_cast<std::uint64_t>(k)); },
        [&begins](int column) { return begins.whole(static_cast<std::uint64_t>(column)); },
        [&values](std::int64_t k) { return values[static_cast<std::uint64_t>(k)]; });
  }

  /// What a compressed variable comes to, by its own tag, and whether that may be.
  void measure(Place& place) const {
    const auto tag = unpacked(place, 8);
    const auto word = [&tag, this](std::size_t at) {
      return static_cast<std::uint64_t>(number_from<std::uint32_t>(tag.data() + at, swapped_));
    };
    place.is_packed = word(0) == kMatrixType;
    place.size = word(4);
    // Deflate packs 258 bytes into 2 bits at best.
    if (place.size / 1032 > place.data.size() + 8) damaged();
    if (place.size <= ZipArchive::kFreeBytes ||
        place.size / ZipArchive::kMostRatio <= bytes_.size()) {
      return;
    }
    throw MatrixFileDefect{fmt::format(
        " has {} bytes and is more than {} times as large when unpacked, which no matrix needs; if "
        "it is sound, write it without compression (scipy.io.savemat(..., do_compression=False))",
        bytes_.size(), ZipArchive::kMostRatio)};
  }

  /// The first bytes of the content, after its tag.
  static std::string content(const Place& place, std::uint64_t most) {
    std::string all = unpacked(place, 8 + std::min(most, place.size));
    all.erase(0, 8);
    return all;
  }
  static std::string unpacked(const Place& place, std::uint64_t size) {
    constexpr int kWithHeader = 15;  // bits of the window
    auto out = inflated(place.data, size, /*is_all=*/false, kWithHeader);
    if (!out) damaged();
    return *std::move(out);
  }

  std::string_view bytes_;
  bool swapped_;
  std::vector<Place> places_;
};

}  // namespace

void MatEntries::add(std::int64_t row, std::int64_t column, double value) {
  if (is_full()) return;
  const auto note = [this](const std::string& what) {
    defects_.push_back(fmt::format(", variable {}: {}", in_quotes(variable_), what));
  };
  if (row < 0 || row >= matrix_.rows || column < 0 || column >= matrix_.columns) {
    return note(fmt::format("entry ({},{}) is outside the matrix, which is {}×{}", row + 1,
                            column + 1, matrix_.rows, matrix_.columns));
  }
  if (!std::isfinite(value)) {
    return note(fmt::format("entry ({},{}) must be finite, got {}", row + 1, column + 1,
                            shown_number(value)));
  }
  if (value == 0.0) return;
  matrix_.entries.push_back({static_cast<int>(row), static_cast<int>(column), value});
}

void MatEntries::fail(std::string_view what) const {
  throw MatrixFileDefect{fmt::format(", variable {}: {}", in_quotes(variable_), what)};
}

std::string variable_meant(const std::vector<std::string>& names, const std::string& variable) {
  if (names.empty()) throw MatrixFileDefect{" holds no variable"};
  if (std::ranges::find(names, variable) != names.end()) return variable;
  if (!variable.empty()) {
    throw MatrixFileDefect{fmt::format(" has no variable {}.\n  variables: {}.{}",
                                       in_quotes(variable), few_of(names),
                                       did_you_mean(variable, names))};
  }
  if (names.size() == 1) return names[0];
  throw MatrixFileDefect{fmt::format(
      " holds several variables: name one by \"variable\".\n  variables: {}", few_of(names))};
}

std::string defect_of_class(std::string_view matlab_class) {
  if (matlab_class == "cell") return "is a cell array: give it one matrix";
  if (matlab_class == "struct") return "is a struct: save its matrix as a variable of its own";
  if (matlab_class == "char") return "is text, and no matrix";
  const bool is_number = matlab_class == "double" || matlab_class == "single" ||
                         matlab_class == "sparse" || matlab_class == "logical" ||
                         matlab_class.find("int") != std::string_view::npos;
  if (is_number) return "";
  return fmt::format("is of class {}, and no matrix of numbers", in_quotes(matlab_class));
}

ShapedMatrix parse_mat(std::string_view bytes, const std::string& variable,
                       std::vector<std::string>& defects) {
  constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";
  if (bytes.starts_with(kHdf5) || (bytes.size() > 512 && bytes.substr(512).starts_with(kHdf5))) {
    return parse_mat_hdf5(bytes, variable, defects);
  }
  const std::string_view version = bytes.size() < kHeaderBytes ? "" : bytes.substr(124, 4);
  const bool little = version == std::string_view("\0\1IM", 4);
  const bool big = version == std::string_view("\1\0MI", 4);
  if (!little && !big) {
    throw MatrixFileDefect{
        " is no file of MATLAB's level 5 or 7.3: write it by save(..., \"-v7\") or by "
        "scipy.io.savemat"};
  }
  return LevelFive(bytes, big).read(variable, defects);
}

}  // namespace portwave::scenario_file

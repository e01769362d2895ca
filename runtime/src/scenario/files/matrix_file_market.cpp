// Matrix Market files: a header, comments, a line of sizes, and one line per entry.
// Source: Boisvert, Pozo & Remington, The Matrix Market Exchange Formats, NISTIR 5935 (1996).

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/files/matrix_file.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::size_t kMostDefects = 10;
constexpr std::string_view kMarketHeader =
    "%%MatrixMarket matrix coordinate|array real|integer|pattern "
    "general|symmetric|skew-symmetric";

enum class Symmetry { general, symmetric, skew };

struct MarketHeader {
  bool is_array = false;
  bool is_pattern = false;
  Symmetry symmetry = Symmetry::general;
};

// The lines of a text, and the words of each.
class MarketLines {
 public:
  explicit MarketLines(std::string_view text) : rest_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }

  int number() const { return number_; }
  /// Characters after the line.
  std::size_t rest() const { return rest_.size(); }
  std::string_view line() const { return line_; }
  /// The next line; false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    words_ = line_;
    ++number_;
    return true;
  }
  /// The next line with words on it that is no comment.
  bool next_data() {
    while (next()) {
      const std::size_t first = line_.find_first_not_of(" \t");
      if (first != std::string_view::npos && line_[first] != '%') return true;
    }
    return false;
  }
  /// The next word of the line; empty at its end.
  std::string_view word() {
    const std::size_t first = std::min(words_.find_first_not_of(" \t"), words_.size());
    words_.remove_prefix(first);
    const std::size_t end = std::min(words_.find_first_of(" \t"), words_.size());
    const std::string_view found = words_.substr(0, end);
    words_.remove_prefix(end);
    return found;
  }

 private:
  std::string_view rest_, line_, words_;
  int number_ = 0;
};

// A number as Fortran writes it, 1.5D+03 or 1.5-103, with the exponent that C has; empty where it is
// none such.
std::string with_exponent_of_c(std::string_view word) {
  constexpr std::size_t kLongest = 64;
  const std::size_t end = std::min(word.find_first_not_of("+-.0123456789"), word.size());
  const std::size_t sign = word.find_first_of("+-", 1);
  if (word.size() > kLongest || word.find_first_of("0123456789") >= std::min(end, sign)) return "";
  if (end < word.size()) {
    if (std::string_view("DdQq").find(word[end]) == std::string_view::npos) return "";
    if (sign != std::string_view::npos && sign < end) return "";
    std::string own(word);
    own[end] = 'e';
    return own;
  }
  // Without its letter an exponent has three digits, after a number with a point.
  if (sign == std::string_view::npos || word.size() - sign != 4 || word.find('.') >= sign)
    return "";
  std::string own(word);
  return own.insert(sign, 1, 'e');
}

template <class Number>
bool read_number_word(std::string_view word, Number& value) {
  if (word.starts_with('+')) word.remove_prefix(1);
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error == std::errc{} && stop == end) return true;
  if constexpr (std::is_floating_point_v<Number>) {
    const std::string own = with_exponent_of_c(word);
    if (own.empty()) return false;
    const auto again = std::from_chars(own.data(), own.data() + own.size(), value);
    return again.ec == std::errc{} && again.ptr == own.data() + own.size();
  }
  return false;
}

class MarketReader {
 public:
  MarketReader(std::string_view text, std::vector<std::string>& defects)
      : lines_(text), defects_(defects) {}

  ShapedMatrix read() {
    read_header();
    read_sizes();
    if (header_.is_array) {
      read_array();
    } else {
      read_coordinates();
    }
    return std::move(matrix_);
  }

 private:
  [[noreturn]] void stop(const std::string& what) const {
    throw MatrixFileDefect{fmt::format(", line {}: {}", std::max(lines_.number(), 1), what)};
  }
  void note(const std::string& what) {
    defects_.push_back(fmt::format(", line {}: {}", lines_.number(), what));
  }

  void read_header() {
    const auto lower = [](std::string_view word) {
      std::string text(word);
      for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return text;
    };
    const auto wrong = [this] {
      stop(fmt::format("must be \"{}\", got {}", kMarketHeader, in_quotes(lines_.line())));
    };
    if (!lines_.next())
      stop(fmt::format("the file is empty; it must begin with \"{}\"", kMarketHeader));
    if (lower(lines_.word()) != "%%matrixmarket" || lower(lines_.word()) != "matrix") wrong();
    const std::string format = lower(lines_.word()), field = lower(lines_.word()),
                      symmetry = lower(lines_.word());
    if (field == "complex" || symmetry == "hermitian") stop("complex matrices are not supported");
    const bool knows_format = format == "coordinate" || format == "array";
    const bool knows_field = field == "real" || field == "double" || field == "integer" ||
                             (field == "pattern" && format != "array");
    const bool knows_symmetry =
        symmetry == "general" || symmetry == "symmetric" || symmetry == "skew-symmetric";
    if (!knows_format || !knows_field || !knows_symmetry || !lines_.word().empty()) wrong();
    header_.is_array = format == "array";
    header_.is_pattern = field == "pattern";
    if (symmetry == "symmetric") header_.symmetry = Symmetry::symmetric;
    if (symmetry == "skew-symmetric") header_.symmetry = Symmetry::skew;
  }

  void read_sizes() {
    const std::string_view expected =
        header_.is_array ? "\"rows columns\"" : "\"rows columns entries\"";
    if (!lines_.next_data()) stop(fmt::format("the file ends before the line {}", expected));
    std::int64_t rows = -1, columns = -1;
    bool is_sound =
        read_number_word(lines_.word(), rows) && read_number_word(lines_.word(), columns);
    if (!header_.is_array) is_sound = is_sound && read_number_word(lines_.word(), count_);
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    is_sound = is_sound && lines_.word().empty() && rows >= 0 && columns >= 0 && count_ >= 0 &&
               rows <= kMost && columns <= kMost;
    if (!is_sound) stop(fmt::format("must be {}, got {}", expected, in_quotes(lines_.line())));
    if (header_.symmetry != Symmetry::general && rows != columns) {
      stop(fmt::format("a symmetric or skew-symmetric matrix must be square, got {}×{}", rows,
                       columns));
    }
    matrix_.rows = static_cast<int>(rows);
    matrix_.columns = static_cast<int>(columns);
  }

  void read_coordinates() {
    // A file may promise more than it holds: an entry takes at least four characters, "1 1\n".
    const auto most = static_cast<std::int64_t>(lines_.rest() / 4 + 1);
    const std::int64_t mirrored = header_.symmetry == Symmetry::general ? 1 : 2;
    matrix_.entries.reserve(static_cast<std::size_t>(mirrored * std::min(count_, most)));
    std::int64_t found = 0;
    while (defects_.size() < kMostDefects && lines_.next_data()) {
      if (++found > count_) {
        stop(fmt::format("entries go on after the {} that the line of sizes announces", count_));
      }
      read_entry();
    }
    if (found < count_ && defects_.size() < kMostDefects) {
      stop(fmt::format("the file ends after {} of {} entries", found, count_));
    }
  }

  void read_entry() {
    std::int64_t row = 0, column = 0;
    double value = 1.0;
    const bool is_sound =
        read_number_word(lines_.word(), row) && read_number_word(lines_.word(), column) &&
        (header_.is_pattern || read_number_word(lines_.word(), value)) && lines_.word().empty();
    if (!is_sound) {
      return note(fmt::format("must be \"row column{}\", got {}",
                              header_.is_pattern ? "" : " value", in_quotes(lines_.line())));
    }
    if (row < 1 || row > matrix_.rows || column < 1 || column > matrix_.columns) {
      return note(fmt::format("({},{}) is outside the matrix, which is {}×{}, counted from 1", row,
                              column, matrix_.rows, matrix_.columns));
    }
    if (!std::isfinite(value))
      return note(fmt::format("must be finite, got {}", shown_number(value)));
    if (header_.symmetry != Symmetry::general && row < column) {
      return note(
          fmt::format("({},{}) lies above the diagonal, of which symmetric and "
                      "skew-symmetric files hold the lower triangle only",
                      row, column));
    }
    if (header_.symmetry == Symmetry::skew && row == column) {
      return note(
          fmt::format("({},{}) lies on the diagonal of a skew-symmetric matrix", row, column));
    }
    add(static_cast<int>(row) - 1, static_cast<int>(column) - 1, value);
  }

  void add(int row, int column, double value) {
    matrix_.entries.push_back({row, column, value});
    if (header_.symmetry == Symmetry::general || row == column) return;
    matrix_.entries.push_back({column, row, header_.symmetry == Symmetry::skew ? -value : value});
  }

  // Column by column; of symmetric matrices the lower triangle, of skew ones without the diagonal.
  void read_array() {
    const std::int64_t n = matrix_.rows;
    std::int64_t wanted = n * matrix_.columns;
    if (header_.symmetry == Symmetry::symmetric) wanted = n * (n + 1) / 2;
    if (header_.symmetry == Symmetry::skew) wanted = n * (n - 1) / 2;
    const auto first_row = [this](int column) {
      if (header_.symmetry == Symmetry::general) return 0;
      return header_.symmetry == Symmetry::skew ? column + 1 : column;
    };
    int row = first_row(0), column = 0;
    std::int64_t found = 0;
    while (defects_.size() < kMostDefects && lines_.next_data()) {
      for (std::string_view word = lines_.word(); !word.empty(); word = lines_.word()) {
        if (++found > wanted) stop(fmt::format("numbers go on after the {} of the matrix", wanted));
        double value = 0.0;
        if (!read_number_word(word, value) || !std::isfinite(value)) {
          note(fmt::format("must be a finite number, got {}", in_quotes(word)));
        } else if (value != 0.0) {
          add(row, column, value);
        }
        if (++row < matrix_.rows) continue;
        ++column;
        row = first_row(column);
      }
    }
    if (found < wanted && defects_.size() < kMostDefects) {
      stop(fmt::format("the file ends after {} of {} numbers", found, wanted));
    }
  }

  MarketLines lines_;
  std::vector<std::string>& defects_;
  MarketHeader header_;
  std::int64_t count_ = 0;
  ShapedMatrix matrix_;
};

}  // namespace

ShapedMatrix parse_matrix_market(std::string_view text, std::vector<std::string>& defects) {
  return MarketReader(text, defects).read();
}

}  // namespace portwave::scenario_file

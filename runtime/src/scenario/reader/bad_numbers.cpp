#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/reader/document.hpp"
#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_in_word(char c) {
  const char letter = static_cast<char>(c | 0x20);
  return is_digit(c) || (letter >= 'a' && letter <= 'z') || c == '+' || c == '-' || c == '.' ||
         c == '_';
}

bool is_word(std::string_view text, std::string_view word) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [&lower](char found, char wanted) { return lower(found) == wanted; });
}

// True for a decimal number beyond the largest double; one that is too small is taken as 0.
bool is_too_large(std::string_view text) {
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc::result_out_of_range || stop != end) return false;
  // Out of range on which side: the place of the first digit that counts, moved by the exponent.
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::size_t sign = std::min(e + 1, text.size());
  std::int64_t exponent = 0;
  const char* const digits = text.data() + sign + (text.substr(sign).starts_with('+') ? 1 : 0);
  if (std::from_chars(digits, end, exponent).ec == std::errc::result_out_of_range) {
    return !text.substr(sign).starts_with('-');
  }
  const std::size_t first = text.find_first_of("123456789");
  const std::size_t point = std::min(text.find('.'), e);
  const auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  return place > -exponent;
}

// "" unless the word was meant as a number and is none.
std::string number_defect(std::string_view word) {
  constexpr std::size_t kSafeDigits = 300;  // without an exponent
  if (word.size() < kSafeDigits && is_digit(word.front()) &&
      std::all_of(word.begin(), word.end(), [](char c) { return is_digit(c) || c == '.'; })) {
    return {};
  }
  const std::string_view magnitude =
      word.starts_with('-') || word.starts_with('+') ? word.substr(1) : word;
  for (const std::string_view name : {"nan", "infinity", "inf"}) {
    if (is_word(magnitude, name)) return fmt::format("must be a finite number, got {}", word);
  }
  if (is_too_large(word)) return fmt::format("the number {} is too large", printable(word, 40));
  return {};
}

bool is_key(std::string_view rest) {
  const std::size_t next = rest.find_first_not_of(" \t\r\n");
  return next != std::string_view::npos && rest[next] == ':';
}

}  // namespace

std::vector<BadNumber> blank_bad_numbers(std::string& text) {
  std::vector<BadNumber> found;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && is_in_word(text[i])) {
      const auto stop =
          std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(i), text.end(), is_in_word);
      const auto end = static_cast<std::size_t>(stop - text.begin());
      const std::string_view word = std::string_view(text).substr(i, end - i);
      std::string problem = number_defect(word);
      if (!problem.empty() && !is_key(std::string_view(text).substr(end))) {
        std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(i), end - i, ' ');
        text[i] = text[i + 1] = '"';  // every bad number has two characters or more
        if (found.size() < scenario_limits::kDefects) found.push_back({i + 2, std::move(problem)});
      }
      i = end - 1;
    }
  }
  return found;
}

}  // namespace portwave::scenario_file

#include "portwave/subsystems/base/printable.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace portwave {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i])) : 0U;
}

// The code point of a well-formed character.
unsigned code_point(std::string_view character) {
  const unsigned first = byte_at(character, 0);
  if (character.size() == 1) return first;
  unsigned code = first & (0x7FU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) {
    code = code << 6U | (byte_at(character, i) & 0x3FU);
  }
  return code;
}

bool is_control(unsigned code) {
  const bool is_c0_or_c1 = code < 0x20U || (code >= 0x7FU && code < 0xA0U);
  const bool ends_line = code == 0x2028U || code == 0x2029U;
  const bool turns = code == 0x200EU || code == 0x200FU || (code >= 0x202AU && code <= 0x202EU) ||
                     (code >= 0x2066U && code <= 0x2069U);
  return is_c0_or_c1 || ends_line || turns;
}

std::string escaped(unsigned code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  return fmt::format("\\u{:04x}", code);
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return byte_at(text, i); };
  const auto continues = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  if (text.empty()) return 0;
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first <= 0xDFU) return continues(1) ? 2 : 0;
  if (first >= 0xE0U && first <= 0xEFU) {
    const bool overlong = first == 0xE0U && byte(1) < 0xA0U;
    const bool surrogate = first == 0xEDU && byte(1) > 0x9FU;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0U && first <= 0xF4U) {
    const bool overlong = first == 0xF0U && byte(1) < 0x90U;
    const bool too_high = first == 0xF4U && byte(1) > 0x8FU;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_high ? 4 : 0;
  }
  return 0;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string result;
  for (std::size_t shown = 0; !text.empty(); ++shown) {
    if (shown == most) return result + "...";
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length);
    if (length == 0) {
      result += '?';
    } else if (const unsigned code = code_point(character); is_control(code)) {
      result += escaped(code);
    } else {
      result += character;
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string in_quotes(std::string_view text) { return '"' + printable(text) + '"'; }

std::string shown_number(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

}  // namespace portwave

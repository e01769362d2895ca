#include "scenario_text.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "scenario_limits.hpp"

namespace portwave::scenario_file {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Length of the well-formed UTF-8 character at the front of `text`, or 0 (Unicode, table 3-7).
std::size_t character_length(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i])) : 0U;
  };
  const auto continues = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
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

std::string escaped(char c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  return fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  std::string result;
  for (std::size_t shown = 0; !text.empty(); ++shown) {
    if (shown == most) return result + "...";
    const std::size_t length = character_length(text);
    const bool is_control = static_cast<unsigned char>(text[0]) < 0x20U || text[0] == 0x7F;
    if (length == 0) {
      result += '?';
    } else if (is_control) {
      result += escaped(text[0]);
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string in_quotes(std::string_view text) { return '"' + printable(text) + '"'; }

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t length = character_length(text.substr(offset));
    if (length == 0) return offset;
    offset += length;
  }
  return std::nullopt;
}

std::size_t line_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
}

std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  const std::string_view line =
      newline == std::string_view::npos ? before : before.substr(newline + 1);
  const auto continued = std::count_if(line.begin(), line.end(), is_continuation);
  return fmt::format("line {}, column {}", line_of(text, offset),
                     line.size() - static_cast<std::size_t>(continued) + 1);
}

FileText read_text_file(const std::filesystem::path& file) {
  const auto failed = [](std::string problem) { return FileText{{}, std::move(problem)}; };
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) return failed("is a folder, not a file");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return failed(fmt::format("cannot be opened: {}", std::generic_category().message(errno)));

  std::string text;
  std::string block(std::size_t{1} << 20, '\0');
  while (stream) {
    stream.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block, 0, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > scenario_limits::kFileBytes) {
      return failed(fmt::format("is larger than {} MiB", scenario_limits::kFileBytes >> 20));
    }
  }
  if (stream.bad()) return failed("cannot be read");
  return {std::move(text), {}};
}

}  // namespace portwave::scenario_file

#include "verbs/columns.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace portwave::cli {
namespace {

/// Characters of UTF-8 text, near enough to columns for names, units and numbers.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], width_of(row[c]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += " " + row[c] + std::string(widths[c] - width_of(row[c]) + 1, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string section(std::string_view title, const std::vector<std::vector<std::string>>& rows) {
  return rows.empty() ? std::string() : fmt::format("\n{}\n{}", title, aligned(rows));
}

}  // namespace portwave::cli

#include "adapters/files/xml_file.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"

namespace portwave::files {
namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  const std::size_t last = text.find_last_not_of(kBlanks);
  return last == std::string_view::npos ? std::string_view() : text.substr(first, last + 1 - first);
}

constexpr std::size_t kLineBlock = 4096;  // bytes, of which the newlines before are known
constexpr int kMostLevels = 1000;         // readers go into elements by recursion

/// The first element that lies too deep; null: none.
pugi::xml_node too_deep(const pugi::xml_document& document) {
  int level = 0;
  pugi::xml_node at = document.first_child();
  while (at) {
    if (level >= kMostLevels) return at;
    if (const pugi::xml_node inner = at.first_child()) {
      at = inner;
      ++level;
      continue;
    }
    while (level > 0 && !at.next_sibling()) {
      at = at.parent();
      --level;
    }
    at = at.next_sibling();
  }
  return {};
}

}  // namespace

XmlFile::XmlFile(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {
  std::ptrdiff_t lines = 0;
  for (std::size_t i = 0; i < text_.size(); i += kLineBlock) {
    lines_before_.push_back(lines);
    const std::string_view block = std::string_view(text_).substr(i, kLineBlock);
    lines += std::count(block.begin(), block.end(), '\n');
  }
  // Entities are those of XML alone, and a document type, which could define others, is not read.
  const pugi::xml_parse_result result = document_.load_buffer(text_.data(), text_.size());
  if (result) {
    if (const pugi::xml_node at = too_deep(document_)) {
      throw ConfigError("", fmt::format("{}: elements lie in one another, more than {} deep",
                                        place(at), kMostLevels));
    }
    return;
  }
  throw ConfigError("", fmt::format("{}, line {}: is no XML: {}", name_, line_at(result.offset),
                                    result.description()));
}

std::string XmlFile::place(pugi::xml_node element) const {
  return fmt::format("{}, line {}", name_, line_at(element.offset_debug()));
}

std::ptrdiff_t XmlFile::line_at(std::ptrdiff_t offset) const {
  const std::size_t end =
      std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), text_.size());
  if (lines_before_.empty()) return 1;
  const std::size_t block = std::min(end / kLineBlock, lines_before_.size() - 1);
  const std::string_view own = std::string_view(text_).substr(block * kLineBlock);
  return 1 + lines_before_[block] +
         std::count(own.begin(),
                    own.begin() + static_cast<std::ptrdiff_t>(end - block * kLineBlock), '\n');
}

std::string_view local_name(pugi::xml_node element) {
  const std::string_view name = element.name();
  const std::size_t colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

pugi::xml_node child(pugi::xml_node element, std::string_view name) {
  for (const pugi::xml_node own : element.children()) {
    if (own.type() == pugi::node_element && local_name(own) == name) return own;
  }
  return {};
}

std::vector<pugi::xml_node> children(pugi::xml_node element, std::string_view name) {
  std::vector<pugi::xml_node> out;
  for (const pugi::xml_node own : element.children()) {
    if (own.type() != pugi::node_element) continue;
    if (name.empty() || local_name(own) == name) out.push_back(own);
  }
  return out;
}

std::string attribute(pugi::xml_node element, const char* name) {
  return element.attribute(name).value();
}

std::optional<double> number_in(std::string_view text) {
  text = without_blanks(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text == "INF") return std::numeric_limits<double>::infinity();
  if (text == "-INF") return -std::numeric_limits<double>::infinity();
  double value = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<bool> truth_in(std::string_view text) {
  text = without_blanks(text);
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

}  // namespace portwave::files

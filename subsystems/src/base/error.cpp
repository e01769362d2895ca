#include "portwave/subsystems/base/error.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

std::string describe(const Issues& issues) {
  constexpr std::size_t kShown = 50;
  std::string text;
  for (const Issue& issue : std::span(issues).first(std::min(issues.size(), kShown))) {
    if (!text.empty()) text += '\n';
    if (!issue.where.empty()) text += printable(issue.where, issue.where.size()) + ": ";
    text += issue.what;
  }
  if (issues.size() > kShown) text += fmt::format("\n... and {} more", issues.size() - kShown);
  return text;
}

}  // namespace

std::string escape_key(std::string_view key) {
  std::string escaped;
  for (const char c : key) {
    if (c == '~') {
      escaped += "~0";
    } else if (c == '/') {
      escaped += "~1";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

void append(Issues& issues, std::string_view prefix, const Issues& more) {
  for (const Issue& issue : more) issues.push_back({std::string(prefix) + issue.where, issue.what});
}

ConfigError::ConfigError(Issues issues)
    : std::runtime_error(describe(issues)), issues_(std::move(issues)) {}

ConfigError::ConfigError(std::string where, std::string what)
    : ConfigError(Issues{{std::move(where), std::move(what)}}) {}

void throw_if_any(Issues issues) {
  if (!issues.empty()) throw ConfigError(std::move(issues));
}

}  // namespace portwave

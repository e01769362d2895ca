#include "scenario/settings/patterns.hpp"

#include <algorithm>
#include <utility>

#include "output/recording/quantity.hpp"

namespace portwave::scenario_file {
namespace {

bool asks_for_waves(std::string_view pattern) {
  return pattern.find(".incident") != std::string_view::npos ||
         pattern.find(".outgoing") != std::string_view::npos;
}

bool is_wave_label(std::string_view label) {
  const std::string_view bare = label.substr(0, label.rfind('['));
  return bare.ends_with(".incident") || bare.ends_with(".outgoing");
}

}  // namespace

bool is_pattern(std::string_view text) {
  return text.find_first_of("*?") != std::string_view::npos;
}

bool matches(std::string_view text, std::string_view pattern) {
  // Where a "*" has led to a dead end, it takes one character more.
  std::size_t t = 0, p = 0;
  std::size_t star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] != '*' && pattern[p] == text[t]))) {
      ++t, ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<Quantity> quantities_like(const std::string& pattern, Names& names,
                                      const SignalGraph* signals, MethodKind method) {
  const bool waves = asks_for_waves(pattern);
  std::vector<Quantity> found;
  for (const std::string& label : names.labels(method)) {
    if (!matches(label, pattern) || (!waves && is_wave_label(label))) continue;
    std::string defect;
    if (auto one = names.find_quantity(label, method, defect)) found.push_back(*std::move(one));
  }
  for (int signal = 0; signals != nullptr && signal < signals->signals(); ++signal) {
    const std::string label = signals->label(signal);
    if (matches(label, pattern)) {
      found.push_back({label, Quantity::Kind::signal, 0, signal, ""});
    }
  }
  return found;
}

std::vector<Quantity> quantities_of_part(const std::string& name, Names& names, MethodKind method) {
  std::vector<Quantity> found;
  for (const std::string& label : names.labels_of(name, method)) {
    if (is_wave_label(label)) continue;
    std::string defect;
    if (auto one = names.find_quantity(label, method, defect)) found.push_back(*std::move(one));
  }
  return found;
}

}  // namespace portwave::scenario_file

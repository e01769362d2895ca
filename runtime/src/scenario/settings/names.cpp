#include "scenario/settings/names.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "output/recording/quantity.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::scenario_file {
namespace {

std::vector<std::string> port_paths(const System& system) {
  std::vector<std::string> paths;
  for (const Part& part : system.parts()) {
    for (const Port& port : part.component->signature().ports) {
      paths.push_back(part.name + "." + port.name);
    }
  }
  return paths;
}

}  // namespace

bool Names::is_missing(const std::string& path) const {
  if (is_complete_) return false;
  for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
    if (missing_.contains(path.substr(0, end))) return true;
    if (end == std::string::npos) break;
  }
  const std::size_t last = path.rfind('.');  // a termination's ports are "part.port.resistor"
  return last != std::string::npos && system_.find_port(path.substr(0, last)).first >= 0;
}

NameSearch& Names::parts() {
  if (!parts_) {
    parts_.emplace(names_of_parts(system_));
  }
  return *parts_;
}

NameSearch& Names::ports() {
  if (!ports_) {
    std::vector<std::string> paths = port_paths(system_);
    for (const CutName& cut : system_.cuts()) {
      for (const Port& port : cut.whole.ports) {
        paths.push_back(cut.name + "." + port.name);
      }
    }
    ports_.emplace(std::move(paths));
  }
  return *ports_;
}

std::optional<Quantity> Names::find_quantity(const std::string& label, MethodKind method,
                                             std::string& defect) {
  const auto part_names = [this]() -> NameSearch& { return parts(); };
  return portwave::find_quantity(system_, label, method, part_names, defect);
}

std::pair<int, int> Names::find_port(const std::string& path) const {
  return system_.find_port(label_by_pieces(system_, path));
}

std::vector<int> Names::parts_of(const std::string& name) const {
  if (const CutName* const cut = system_.find_cut(name)) {
    std::vector<int> parts;
    for (int i = 0; i < cut->pieces; ++i) parts.push_back(cut->first_part + i);
    return parts;
  }
  const int part = system_.find_part(name);
  return part < 0 ? std::vector<int>{} : std::vector<int>{part};
}

std::vector<Quantity> Names::all_states() const {
  std::vector<Quantity> quantities;
  for (NamedState& state : state_names(system_).named) {
    quantities.push_back({std::move(state.name), Quantity::Kind::state, state.part, state.index,
                          std::move(state.unit)});
  }
  return quantities;
}

std::vector<std::string> Names::labels_of_cut(const CutName& cut) {
  std::vector<std::string> labels;
  for (const StateVariable& state : cut.whole.states) labels.push_back(cut.name + "." + state.name);
  labels.push_back(cut.name + ".storage");
  return labels;
}

std::vector<std::string> Names::labels(MethodKind method) const {
  std::vector<std::string> all;
  const auto add = [&all](std::vector<std::string> labels) {
    std::move(labels.begin(), labels.end(), std::back_inserter(all));
  };
  for (int part = 0; part < static_cast<int>(system_.parts().size());) {
    const CutName* const cut = system_.cut_with(part);
    add(cut == nullptr ? portwave::labels_of(system_, part, method) : labels_of_cut(*cut));
    part += cut == nullptr ? 1 : cut->pieces;
  }
  return all;
}

std::vector<std::string> Names::labels_of(const std::string& name, MethodKind method) const {
  if (const CutName* const cut = system_.find_cut(name)) return labels_of_cut(*cut);
  const int part = system_.find_part(name);
  return part < 0 ? std::vector<std::string>() : portwave::labels_of(system_, part, method);
}

namespace {

/// Quantities that are found only where their kind is written.
constexpr std::string_view kOnlyByKind[] = {".incident", ".outgoing", ".coenergy"};

bool names_such_a_kind(std::string_view pattern) {
  return std::ranges::any_of(kOnlyByKind, [pattern](std::string_view kind) {
    return pattern.find(kind) != std::string_view::npos;
  });
}

bool is_of_such_a_kind(std::string_view label) {
  const std::string_view bare = label.substr(0, label.rfind('['));
  return std::ranges::any_of(kOnlyByKind,
                             [bare](std::string_view kind) { return bare.ends_with(kind); });
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
  const bool are_all_meant = names_such_a_kind(pattern);
  std::vector<Quantity> found;
  for (const std::string& label : names.labels(method)) {
    if (!matches(label, pattern) || (!are_all_meant && is_of_such_a_kind(label))) continue;
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
    if (is_of_such_a_kind(label)) continue;
    std::string defect;
    if (auto one = names.find_quantity(label, method, defect)) found.push_back(*std::move(one));
  }
  return found;
}

}  // namespace portwave::scenario_file

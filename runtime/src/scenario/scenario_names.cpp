#include "scenario/scenario_names.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "output/observable.hpp"
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

template <class Items>
int number_of(const Items& items, std::string_view name) {
  const auto found = std::find_if(items.begin(), items.end(),
                                  [name](const auto& each) { return each.name == name; });
  return found == items.end() ? -1 : static_cast<int>(found - items.begin());
}

std::string unknown_in_cut(const CutName& cut, const std::string& name) {
  constexpr std::size_t kShown = 12;
  const Signature& whole = cut.whole->signature();
  std::vector<std::string> names = {"storage"};
  for (const Port& port : whole.ports) {
    names.push_back(port.name + ".effort");
    names.push_back(port.name + ".flow");
  }
  for (const StateVariable& state : whole.states) names.push_back(state.name);
  std::string shown;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    shown += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  return fmt::format("subsystem {} has nothing named {}.\n  It has: {}{}.{}", in_quotes(cut.name),
                     in_quotes(name), shown, names.size() > kShown ? ", ..." : "",
                     did_you_mean(name, names));
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
    std::vector<std::string> names = names_of_parts(system_);
    for (const CutName& cut : cuts_) names.push_back(cut.name);
    parts_.emplace(std::move(names));
  }
  return *parts_;
}

NameSearch& Names::ports() {
  if (!ports_) {
    std::vector<std::string> paths = port_paths(system_);
    for (const CutName& cut : cuts_) {
      for (const Port& port : cut.whole->signature().ports) {
        paths.push_back(cut.name + "." + port.name);
      }
    }
    ports_.emplace(std::move(paths));
  }
  return *ports_;
}

const CutName* Names::cut_of(std::string_view name) const {
  const int number = number_of(cuts_, name);
  return number < 0 ? nullptr : &cuts_[at(number)];
}

// Names of parts may contain dots: the longest that fits is tried first.
template <class Visitor>
void Names::for_each_cut_in(std::string_view label, const Visitor& visit) const {
  if (cuts_.empty()) return;
  for (auto dot = label.rfind('.'); dot != std::string_view::npos && dot > 0;
       dot = label.rfind('.', dot - 1)) {
    const CutName* const cut = cut_of(label.substr(0, dot));
    if (cut != nullptr && visit(*cut, label.substr(dot + 1))) return;
  }
}

std::string Names::by_pieces(const std::string& label) const {
  std::string path = label;
  for_each_cut_in(label, [&](const CutName& cut, std::string_view rest) {
    const Signature& whole = cut.whole->signature();
    if (const int state = number_of(whole.states, rest); state >= 0) {
      const Cut::Place& place = cut.cut->states[at(state)];
      path = fmt::format("{}/{}.{}", cut.name, cut.cut->pieces[at(place.piece)].name, rest);
      return true;
    }
    const std::size_t end = std::min(rest.find_first_of(".["), rest.size());
    const int port = number_of(whole.ports, rest.substr(0, end));
    if (port < 0) return false;
    path = path_of(cut.name, *cut.cut, cut.cut->ports[at(port)]);
    path += rest.substr(end);
    return true;
  });
  return path;
}

std::optional<Observable> Names::find_quantity(const std::string& label, MethodKind method,
                                               std::string& defect) {
  std::optional<Observable> found;
  const std::string path = by_pieces(label);
  if (path == label) {
    for_each_cut_in(label, [&](const CutName& cut, std::string_view rest) {
      if (rest == "storage") {
        const int pieces = static_cast<int>(cut.cut->pieces.size());
        found = Observable{label, Observable::Kind::storage, cut.first_part, pieces - 1, "J"};
      } else if (defect.empty()) {
        defect = unknown_in_cut(cut, std::string(rest));
      }
      return found.has_value();
    });
    if (found) defect.clear();
    if (found || !defect.empty()) return found;
  }
  const auto part_names = [this]() -> NameSearch& { return parts(); };
  found = find_observable(system_, path, method, part_names, defect);
  if (found) found->label = label;
  return found;
}

std::pair<int, int> Names::find_port(const std::string& path) const {
  return system_.find_port(by_pieces(path));
}

std::vector<int> Names::parts_of(const std::string& name) const {
  if (const CutName* const cut = cut_of(name)) {
    std::vector<int> parts;
    for (std::size_t i = 0; i < cut->cut->pieces.size(); ++i) {
      parts.push_back(cut->first_part + static_cast<int>(i));
    }
    return parts;
  }
  const int part = system_.find_part(name);
  return part < 0 ? std::vector<int>{} : std::vector<int>{part};
}

std::vector<Observable> Names::all_states() const {
  std::vector<Observable> observables;
  const auto add = [&](const std::string& part_name, const StateVariable& state, int part,
                       int index) {
    observables.push_back(
        {part_name + "." + state.name, Observable::Kind::state, part, index, state.unit});
  };
  for (int part = 0; part < static_cast<int>(system_.parts().size());) {
    const auto cut = std::find_if(cuts_.begin(), cuts_.end(),
                                  [part](const CutName& each) { return each.first_part == part; });
    if (cut != cuts_.end()) {
      const std::vector<StateVariable>& states = cut->whole->signature().states;
      for (std::size_t k = 0; k < states.size(); ++k) {
        const Cut::Place& place = cut->cut->states[k];
        add(cut->name, states[k], part + place.piece, place.state);
      }
      part += static_cast<int>(cut->cut->pieces.size());
      continue;
    }
    const Part& each = system_.parts()[at(part)];
    const std::vector<StateVariable>& states = each.component->signature().states;
    for (std::size_t k = 0; k < states.size(); ++k) {
      add(each.name, states[k], part, static_cast<int>(k));
    }
    ++part;
  }
  return observables;
}

std::vector<std::string> Names::labels_of_cut(const CutName& cut) {
  std::vector<std::string> labels;
  for (const StateVariable& state : cut.whole->signature().states) {
    labels.push_back(cut.name + "." + state.name);
  }
  labels.push_back(cut.name + ".storage");
  return labels;
}

std::vector<std::string> Names::labels(MethodKind method) const {
  std::vector<std::string> all;
  const auto add = [&all](std::vector<std::string> labels) {
    std::move(labels.begin(), labels.end(), std::back_inserter(all));
  };
  for (int part = 0; part < static_cast<int>(system_.parts().size());) {
    const auto cut = std::find_if(cuts_.begin(), cuts_.end(),
                                  [part](const CutName& each) { return each.first_part == part; });
    if (cut == cuts_.end()) {
      add(portwave::labels_of(system_, part++, method));
    } else {
      add(labels_of_cut(*cut));
      part += static_cast<int>(cut->cut->pieces.size());
    }
  }
  return all;
}

std::vector<std::string> Names::labels_of(const std::string& name, MethodKind method) const {
  if (const CutName* const cut = cut_of(name)) return labels_of_cut(*cut);
  const int part = system_.find_part(name);
  return part < 0 ? std::vector<std::string>() : portwave::labels_of(system_, part, method);
}

}  // namespace portwave::scenario_file

#include "scenario/scenario_names.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

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

std::string Names::by_pieces(const std::string& label) const {
  const std::size_t dot = label.find('.');
  const CutName* const cut = dot == std::string::npos ? nullptr : cut_of(label.substr(0, dot));
  if (cut == nullptr) return label;
  const std::string rest = label.substr(dot + 1);
  const Signature& whole = cut->whole->signature();
  if (const int state = number_of(whole.states, rest); state >= 0) {
    const Cut::Place& place = cut->cut->states[at(state)];
    return fmt::format("{}/{}.{}", cut->name, cut->cut->pieces[at(place.piece)].name, rest);
  }
  const std::size_t end = std::min(rest.find_first_of(".["), rest.size());
  const int port = number_of(whole.ports, std::string_view(rest).substr(0, end));
  if (port < 0) return label;
  return path_of(cut->name, *cut->cut, cut->cut->ports[at(port)]) + rest.substr(end);
}

std::optional<Observable> Names::find_quantity(const std::string& label, MethodKind method,
                                               std::string& defect) {
  const auto part_names = [this]() -> NameSearch& { return parts(); };
  const std::size_t dot = std::min(label.find('.'), label.size());
  const CutName* const cut = cut_of(std::string_view(label).substr(0, dot));
  if (cut != nullptr && std::string_view(label).substr(dot) == ".storage") {
    return Observable{label, Observable::Kind::storage, cut->first_part,
                      static_cast<int>(cut->cut->pieces.size()) - 1, "J"};
  }
  const std::string path = by_pieces(label);
  if (cut != nullptr && path == label) {
    std::vector<std::string> names = {"storage"};
    for (const StateVariable& state : cut->whole->signature().states) names.push_back(state.name);
    const std::string rest = label.substr(std::min(dot + 1, label.size()));
    std::string shown;
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 12); ++i) {
      shown += (i == 0 ? "" : ", ") + printable(names[i]);
    }
    defect = fmt::format("subsystem {} has nothing named {}.\n  It has: {}{}.{}",
                         in_quotes(cut->name), in_quotes(rest), shown,
                         names.size() > 12 ? ", ..." : "", did_you_mean(rest, names));
    return std::nullopt;
  }
  auto found = find_observable(system_, path, method, part_names, defect);
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

}  // namespace portwave::scenario_file

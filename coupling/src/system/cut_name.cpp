#include "portwave/coupling/system/cut_name.hpp"

#include <algorithm>
#include <cstddef>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

template <class Items>
int place_of_name(const Items& items, std::string_view name) {
  const auto found =
      std::ranges::find_if(items, [name](const auto& each) { return each.name == name; });
  return found == items.end() ? -1 : static_cast<int>(found - items.begin());
}

/// `rest`: what follows the name of the part; empty where it names nothing in it.
std::string by_pieces(const System& system, const CutName& cut, std::string_view rest) {
  if (const int state = place_of_name(cut.whole.states, rest); state >= 0) {
    const int piece = cut.states[at(state)].piece;
    return system.parts()[at(cut.first_part + piece)].name + "." + std::string(rest);
  }
  const std::size_t end = std::min(rest.find_first_of(".["), rest.size());
  const int port = place_of_name(cut.whole.ports, rest.substr(0, end));
  return port < 0 ? "" : cut.ports[at(port)] + std::string(rest.substr(end));
}

}  // namespace

std::string label_by_pieces(const System& system, const std::string& label) {
  if (system.cuts().empty()) return label;
  // Names of parts may contain dots: the longest that fits is tried first.
  for (auto dot = label.rfind('.'); dot != std::string::npos && dot > 0;
       dot = label.rfind('.', dot - 1)) {
    const CutName* const cut = system.find_cut(std::string_view(label).substr(0, dot));
    if (cut == nullptr) continue;
    std::string path = by_pieces(system, *cut, std::string_view(label).substr(dot + 1));
    if (!path.empty()) return path;
  }
  return label;
}

StateNames state_names(const System& system) {
  StateNames out;
  std::vector<int> first_state = {0};
  for (const Part& part : system.parts()) {
    first_state.push_back(first_state.back() + part.component->signature().state_size());
  }
  out.name_of.resize(at(first_state.back()), -1);
  const auto add = [&](const std::string& part_name, const StateVariable& state, int part,
                       int index) {
    out.place.push_back(first_state[at(part)] + index);
    out.named.push_back({part_name + "." + state.name, state.unit, part, index});
  };
  for (int part = 0; part < static_cast<int>(system.parts().size());) {
    const int first = static_cast<int>(out.named.size());
    if (const CutName* const cut = system.cut_with(part)) {
      for (std::size_t k = 0; k < cut->states.size(); ++k) {
        const CutName::State& own = cut->states[k];
        add(cut->name, cut->whole.states[k], part + own.piece, own.index);
      }
      for (const std::vector<int>& copies : cut->copies) {
        for (std::size_t k = 0; k < copies.size(); ++k) {
          out.name_of[at(first_state[at(part)]) + k] = first + copies[k];
        }
        ++part;
      }
      continue;
    }
    const Part& own = system.parts()[at(part)];
    const std::vector<StateVariable>& states = own.component->signature().states;
    for (std::size_t k = 0; k < states.size(); ++k) {
      out.name_of[at(first_state[at(part)]) + k] = static_cast<int>(out.named.size());
      add(own.name, states[k], part, static_cast<int>(k));
    }
    ++part;
  }
  return out;
}

}  // namespace portwave

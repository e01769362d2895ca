// What a scenario may mean, but probably does not.

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/parts/system_draft.hpp"

namespace portwave::scenario_file {
namespace {

/// A port that tells which way something moves or turns.
struct MovingPort {
  std::string path;
  bool takes_effort = true;
  bool turns = false;
};

class MovingPorts {
 public:
  explicit MovingPorts(const SystemDraft& draft) {
    for (const PartDraft& part : draft.parts) {
      if (part.part != nullptr) parts_.emplace(part.name, part.part.get());
    }
  }

  /// Empty for ports of other domains, and for those of parts that have no direction of their own: a
  /// spring that ends at rest is the same from either side.
  std::optional<MovingPort> find(const std::string& path) const {
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return std::nullopt;
    const auto part = parts_.find(std::string_view(path).substr(0, dot));
    if (part == parts_.end()) return std::nullopt;
    const std::vector<Port>& ports = part->second->signature().ports;
    const Port* own = nullptr;
    bool has_direction = false;
    for (const Port& port : ports) {
      if (port.name == std::string_view(path).substr(dot + 1)) own = &port;
      has_direction = has_direction || (is_moving(port) && takes_effort(port));
    }
    if (own == nullptr || !is_moving(*own) || !has_direction) return std::nullopt;
    return MovingPort{path, takes_effort(*own), own->domain == Domain::rotation};
  }

 private:
  static bool is_moving(const Port& port) {
    return port.dimension == 1 &&
           (port.domain == Domain::translation || port.domain == Domain::rotation);
  }
  static bool takes_effort(const Port& port) { return port.causality == Causality::effort_in; }

  std::unordered_map<std::string_view, const Component*> parts_;
};

}  // namespace

Issues notes_of(const SystemDraft& draft) {
  const MovingPorts moving(draft);
  Issues notes;
  for (std::size_t i = 0; i < draft.couplings.size(); ++i) {
    const CouplingDraft& coupling = draft.couplings[i];
    const bool is_connection = std::holds_alternative<joint::Connection>(coupling.joint);
    const bool is_common_flow = std::holds_alternative<joint::CommonFlow>(coupling.joint);
    if (!coupling.is_sound || coupling.ports.size() != 2 || !(is_connection || is_common_flow)) {
      continue;
    }
    const auto first = moving.find(coupling.ports[0]), second = moving.find(coupling.ports[1]);
    if (!first || !second) continue;
    // A port that takes effort gives the speed of its part; one that takes flow counts against it.
    const bool keeps_direction = (first->takes_effort == second->takes_effort) == is_common_flow;
    if (keeps_direction) continue;
    notes.push_back(
        {fmt::format("/couplings/{}", i),
         fmt::format("\"{}\" lets {} and {} {} against each other; \"{}\" lets them {} together",
                     is_connection ? "connection" : "common_flow", printable(first->path),
                     printable(second->path), first->turns ? "turn" : "move",
                     is_connection ? "common_flow" : "connection",
                     first->turns ? "turn" : "move")});
  }
  return notes;
}

}  // namespace portwave::scenario_file

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/parts/system_draft.hpp"
#include "scenario/parts/values.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/reader/text.hpp"
#include "scenario/templates/template_schema.hpp"

namespace portwave::scenario_file {
namespace {

// Takes any number of ports and, having no gain, is judged by its ports alone.
Joint stand_in() { return joint::SkewGain{}; }

// What the rest of a coupling needs beside its own members.
struct JointContext {
  int size;  ///< its scalar ports, -1 when not known
  const std::filesystem::path& folder;
};

struct CouplingKeys {
  std::optional<Node> ports, gain, E, F;
  std::optional<double> factor;  ///< ratio or resistance
};

using JointMaker = std::optional<Joint> (*)(const CouplingKeys& keys, const JointContext& context);

template <class Kind>
std::optional<Joint> plain_joint(const CouplingKeys&, const JointContext&) {
  return Kind{};
}

template <class Kind>
std::optional<Joint> joint_with_factor(const CouplingKeys& keys, const JointContext&) {
  return keys.factor ? std::optional<Joint>(Kind{*keys.factor}) : std::nullopt;
}

std::optional<Eigen::MatrixXd> joint_matrix(const std::optional<Node>& given,
                                            const JointContext& context) {
  if (!given) return std::nullopt;
  if (context.size >= 0) return read_dense_matrix(*given, context.size, context.folder);
  read_matrix(*given, context.folder);  // its defects, though its size is not known
  return std::nullopt;
}

std::optional<Joint> skew_gain(const CouplingKeys& keys, const JointContext& context) {
  auto gain = joint_matrix(keys.gain, context);
  return gain ? std::optional<Joint>(joint::SkewGain{*std::move(gain)}) : std::nullopt;
}

std::optional<Joint> kernel(const CouplingKeys& keys, const JointContext& context) {
  auto E = joint_matrix(keys.E, context);
  auto F = joint_matrix(keys.F, context);
  if (!E || !F) return std::nullopt;
  return joint::Kernel{*std::move(E), *std::move(F)};
}

struct CouplingKind {
  std::string name;
  KeyTable<CouplingKeys> keys;
  JointMaker make;
};

constexpr std::size_t kMany = scenario_limits::kCouplingPorts;
constexpr const char* kPortPath = "^[^\\s.]+\\.[^\\s.]+$";

Key<CouplingKeys> ports_key(std::size_t fewest, std::size_t most) {
  Json ports = list({{"type", "string"}, {"pattern", kPortPath}}, fewest);
  ports["maxItems"] = most;
  return required_key("ports", "ports, each \"part.port\"",
                      later(&CouplingKeys::ports, std::move(ports)));
}

/// The builder of systems judges the number.
Key<CouplingKeys> factor_key(std::string_view name, const std::string& text, Json schema) {
  return required_key(name, text,
                      to(&CouplingKeys::factor, form::number_judged_later(std::move(schema))));
}

Key<CouplingKeys> matrix_key(std::string_view name, const std::string& text,
                             std::optional<Node> CouplingKeys::*member) {
  return required_key(name, text, later(member, {{"allOf", Json::array({reference("matrix")})}}));
}

/// In the order of the documentation.
const std::vector<CouplingKind>& kinds() {
  static const std::vector<CouplingKind> all = [] {
    std::vector<CouplingKind> every;
    const auto add = [&every](const std::string& name, Key<CouplingKeys> ports, JointMaker make,
                              std::vector<Key<CouplingKeys>> own = {}) {
      std::vector<Key<CouplingKeys>> rows = {kind_key<CouplingKeys>(name), std::move(ports)};
      rows.insert(rows.end(), own.begin(), own.end());
      rows.push_back(optional_key("for", "", elsewhere<CouplingKeys>(indices_schema())));
      every.push_back({name, KeyTable<CouplingKeys>(std::move(rows)), make});
    };
    using Rows = std::vector<Key<CouplingKeys>>;
    add("connection", ports_key(2, 2), plain_joint<joint::Connection>);
    add("common_effort", ports_key(2, kMany), plain_joint<joint::CommonEffort>);
    add("common_flow", ports_key(2, kMany), plain_joint<joint::CommonFlow>);
    add("transformer", ports_key(2, 2), joint_with_factor<joint::Transformer>,
        Rows{factor_key("ratio", "n in e1 = n e2, f2 = -n f1; not 0", not_zero())});
    add("gyrator", ports_key(2, 2), joint_with_factor<joint::Gyrator>,
        Rows{factor_key("ratio", "r in e1 = r f2, e2 = -r f1; not 0", not_zero())});
    add("skew_gain", ports_key(1, kMany), skew_gain,
        Rows{matrix_key("gain", "skew matrix, inputs by outputs", &CouplingKeys::gain)});
    add("kernel", ports_key(1, kMany), kernel,
        Rows{matrix_key("E", "matrix of the efforts", &CouplingKeys::E),
             matrix_key("F", "matrix of the flows", &CouplingKeys::F)});
    add("free", ports_key(1, 1), plain_joint<joint::Free>);
    add("fixed", ports_key(1, 1), plain_joint<joint::Fixed>);
    add("resistive", ports_key(1, 1), joint_with_factor<joint::Resistive>,
        Rows{factor_key("resistance", "effort per flow", non_negative())});
    return every;
  }();
  return all;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const CouplingKind& kind : kinds()) names.push_back(kind.name);
  return names;
}

// The dimensions of the ports of all parts that were built.
class PortSizes {
 public:
  explicit PortSizes(const std::vector<PartDraft>& parts) {
    parts_.reserve(parts.size());
    for (const PartDraft& part : parts) {
      if (part.part != nullptr) parts_.emplace(part.name, part.part.get());
    }
  }

  // Of "part.port"; -1 when it is not known.
  int of(std::string_view path) const {
    const std::size_t dot = std::min(path.rfind('.'), path.size());
    const auto [begin, end] = parts_.equal_range(path.substr(0, dot));
    for (auto part = begin; part != end; ++part) {
      for (const Port& port : part->second->signature().ports) {
        if (path.substr(std::min(dot + 1, path.size())) == port.name) return port.dimension;
      }
    }
    return -1;
  }

 private:
  std::unordered_multimap<std::string_view, const Component*> parts_;
};

int scalar_size(const std::vector<std::string>& ports, const PortSizes& sizes) {
  int size = 0;
  for (const std::string& port : ports) {
    const int dimension = sizes.of(port);
    if (dimension < 0) return -1;
    size += dimension;
  }
  return size;
}

// The names in "ports". False when one of them names no port.
bool read_port_names(const std::optional<Node>& ports, std::vector<std::string>& names) {
  if (!ports || !ports->is_array("an array of ports \"part.port\"")) return false;
  bool is_sound = true;
  names.reserve(ports->size());
  for (std::size_t i = 0; i < ports->size(); ++i) {
    const Node element = ports->at(i);
    auto name = element.text();
    is_sound = is_sound && name && name->find('.') != std::string::npos;
    names.push_back(std::move(name).value_or(""));
  }
  return is_sound;
}

CouplingDraft read_coupling(const Node& node, const std::filesystem::path& folder,
                            const std::vector<std::string>& names, const PortSizes& sizes,
                            bool& knows_ports) {
  CouplingDraft draft{stand_in(), {}, false};
  const auto kind_name = read_kind(node, names);
  const CouplingKind* kind = nullptr;
  if (kind_name) kind = &*std::ranges::find(kinds(), *kind_name, &CouplingKind::name);
  CouplingKeys keys;
  if (kind != nullptr) {
    kind->keys.read(node, keys);
  } else {
    keys.ports = ObjectReader(node).require("ports");
  }
  knows_ports = read_port_names(keys.ports, draft.ports) && knows_ports;
  const int size = scalar_size(draft.ports, sizes);
  const int fewest = std::max(size, static_cast<int>(draft.ports.size()));
  if (fewest > scenario_limits::kCouplingPorts) {
    node.fail(fmt::format("a coupling must have at most {} scalar ports, got {}",
                          scenario_limits::kCouplingPorts, fewest));
    return draft;
  }
  if (kind == nullptr) return draft;
  if (auto joint = kind->make(keys, {size, folder})) {
    draft.joint = *std::move(joint);
    draft.is_sound = true;
  }
  return draft;
}

}  // namespace

void read_couplings(const Node& node, const std::filesystem::path& folder, SystemDraft& draft) {
  if (!node.is_array("an array of couplings")) {
    draft.knows_all_ports = false;
    return;
  }
  const PortSizes sizes(draft.parts);
  const std::vector<std::string> names = kind_names();
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (node.defects().is_full()) {
      draft.knows_all_ports = false;
      return;
    }
    const Node element = node.at(i);
    draft.couplings.push_back(read_coupling(element, folder, names, sizes, draft.knows_all_ports));
  }
}

Json coupling_schema() {
  std::vector<std::pair<std::string, Json>> variants;
  for (const CouplingKind& kind : kinds()) variants.emplace_back(kind.name, kind.keys.schema());
  return described(by_kind(variants),
                   "connection: e1 = e2, f1 + f2 = 0; common_effort: all e equal, sum of f is 0; "
                   "common_flow: all f equal, sum of e is 0; transformer; gyrator; skew_gain: "
                   "u = -gain y; kernel: E e + F f = 0; free: e = 0; fixed: f = 0; resistive: "
                   "e = -resistance f");
}

// Notes on couplings that are sound, but probably not meant.

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

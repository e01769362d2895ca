#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "system/system_draft.hpp"

namespace portwave {
namespace {

struct DomainPair {
  Domain first;
  Domain second;
  std::string_view joined_by;
};

constexpr std::array kDomainPairs = {
    DomainPair{Domain::electrical, Domain::rotation,
               "a part of type \"dc_motor\", or a gyrator whose ratio is the motor constant"},
    DomainPair{Domain::electrical, Domain::translation,
               "a gyrator whose ratio is the force per current, as of a voice coil"},
    DomainPair{Domain::electrical, Domain::magnetic,
               "a gyrator whose ratio is the number of turns of the winding"},
    DomainPair{Domain::rotation, Domain::translation,
               "a part of type \"rack_and_pinion\", or a transformer, the rotation port first, "
               "whose ratio is the radius"},
    DomainPair{Domain::hydraulic, Domain::translation,
               "a transformer, the translation port first, whose ratio is the area of the piston"},
    DomainPair{
        Domain::hydraulic, Domain::rotation,
        "a transformer, the rotation port first, whose ratio is the volume that the pump moves per "
        "radian"},
};

std::string hint_for_domains(Domain first, Domain second) {
  for (const DomainPair& pair : kDomainPairs) {
    if ((pair.first == first && pair.second == second) ||
        (pair.first == second && pair.second == first)) {
      return fmt::format(". Between {} and {}: {}", to_string(pair.first), to_string(pair.second),
                         pair.joined_by);
    }
  }
  return {};
}

constexpr int kAnyNumber = std::numeric_limits<int>::max();

struct JointRules {
  std::string_view name;
  int fewest_ports;
  int most_ports;
  bool entry_by_entry;  ///< all ports have one dimension
  bool same_domain;
};

JointRules rules_of(const Joint& joint) {
  struct Visitor {
    JointRules operator()(const joint::Connection&) { return {"a connection", 2, 2, true, true}; }
    JointRules operator()(const joint::CommonEffort&) {
      return {"a common-effort junction", 2, kAnyNumber, true, true};
    }
    JointRules operator()(const joint::CommonFlow&) {
      return {"a common-flow junction", 2, kAnyNumber, true, true};
    }
    JointRules operator()(const joint::Transformer&) {
      return {"a transformer", 2, 2, true, false};
    }
    JointRules operator()(const joint::Gyrator&) { return {"a gyrator", 2, 2, true, false}; }
    JointRules operator()(const joint::SkewGain&) {
      return {"a skew gain", 1, kAnyNumber, false, false};
    }
    JointRules operator()(const joint::Kernel&) {
      return {"a kernel", 1, kAnyNumber, false, false};
    }
    JointRules operator()(const joint::Free&) { return {"a free end", 1, 1, true, true}; }
    JointRules operator()(const joint::Fixed&) { return {"a fixed end", 1, 1, true, true}; }
    JointRules operator()(const joint::Resistive&) { return {"a resistive end", 1, 1, true, true}; }
  };
  return std::visit(Visitor{}, joint);
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& things) {
  std::vector<std::string> names;
  names.reserve(things.size());
  for (const Named& thing : things) names.push_back(thing.name);
  return names;
}

// ", ... (30 in all)" where not all are shown.
constexpr std::size_t kShownNames = 12;
std::string the_rest(std::size_t count) {
  return count > kShownNames ? fmt::format(", ... ({} in all)", count) : "";
}

std::string list_ports(const std::vector<Port>& ports) {
  if (ports.empty()) return "It has no ports.";
  std::string text = "ports: ";
  for (std::size_t i = 0; i < std::min(ports.size(), kShownNames); ++i) {
    text += fmt::format("{}{} ({})", i > 0 ? ", " : "", in_quotes(ports[i].name),
                        to_string(ports[i].domain));
  }
  return text + the_rest(ports.size()) + ".";
}

std::string list_inputs(const std::vector<ExternalInput>& inputs) {
  if (inputs.empty()) return "It has no inputs.";
  std::string text = "inputs: ";
  for (std::size_t i = 0; i < std::min(inputs.size(), kShownNames); ++i) {
    text += fmt::format("{}{}", i > 0 ? ", " : "", in_quotes(inputs[i].name));
  }
  return text + the_rest(inputs.size()) + ".";
}

std::string list_states(const std::vector<StateVariable>& states) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < states.size() && i < kShown; ++i) {
    text += (i > 0 ? ", " : "") + printable(states[i].name);
  }
  return states.size() > kShown ? text + ", …" : text;
}

}  // namespace

void SystemBuilder::Draft::add(std::string where, std::string what) {
  issues.push_back({std::move(where), std::move(what)});
}

void SystemBuilder::Draft::check_parts() {
  shares_name.assign(parts.size(), false);
  part_by_name.reserve(parts.size());
  first_use.reserve(parts.size() + 1);
  if (parts.empty()) add("/subsystems", "a system needs at least one subsystem");
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    check_name(i);
    first_use.push_back(uses.size());
    if (parts[i].component == nullptr) continue;
    uses.resize(uses.size() + parts[i].component->signature().ports.size());
    check_signature(i);
    check_initial_state(i);
    check_inputs(i);
    check_substeps(i);
  }
  first_use.push_back(uses.size());
}

void SystemBuilder::Draft::check_name(int part) {
  const std::string& name = parts[part].name;
  const auto where = [part] { return fmt::format("/subsystems/{}/name", part); };
  if (name.empty()) return add(where(), "must not be empty");
  if (!is_plain_name(name)) {
    add(where(), fmt::format("must not contain dots, brackets, blanks, commas or quotes (it names "
                             "columns of results), got {}",
                             in_quotes(name)));
  }
  const auto [known, is_new] = part_by_name.emplace(name, part);
  if (is_new) return;
  shares_name[part] = true;
  shares_name[known->second] = true;
  add(where(), fmt::format("the name {} is already taken by /subsystems/{}", in_quotes(name),
                           known->second));
}

void SystemBuilder::Draft::check_signature(int part) {
  const PendingPart& pending = parts[part];
  const std::vector<Port>& ports = pending.component->signature().ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    const bool is_new = index_of(port.name, ports) == static_cast<int>(i);
    if (is_new && !port.name.empty() && port.dimension > 0) continue;
    add(fmt::format("/subsystems/{}", part),
        fmt::format("a part of type {} must give its ports distinct names and dimensions >= 1; "
                    "see port {} of dimension {}",
                    in_quotes(pending.component->signature().type), in_quotes(port.name),
                    port.dimension));
  }
}

namespace {

/// Why a nonlinear part cannot start from here; empty where it can, as far as is known.
std::string storage_defect(const Component& component, const std::vector<double>& x) {
  if (component.port_hamiltonian() == nullptr) return {};
  const Subsystem& part = *component.port_hamiltonian();
  if (part.is_linear()) return {};
  std::vector<double> g(x.size());
  try {
    const double H = part.storage(x.data());
    if (!std::isfinite(H)) return fmt::format("H = {} there", H);
    part.gradient(x.data(), g.data());
  } catch (const std::exception& error) {
    return fmt::format("its storage function threw: {}", error.what());
  }
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (std::isfinite(g[i])) continue;
    return fmt::format("∂H/∂{} = {} there", printable(part.signature().states[i].name), g[i]);
  }
  return {};
}

/// "q = 1e-12, p = 0", shortened.
std::string list_values(const std::vector<StateVariable>& states, const std::vector<double>& x) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < x.size() && i < kShown; ++i) {
    text += fmt::format("{}{} = {:.6g}", i == 0 ? "" : ", ", printable(states[i].name), x[i]);
  }
  return x.size() > kShown ? text + ", …" : text;
}

}  // namespace

void SystemBuilder::Draft::check_initial_state(int part) {
  const PendingPart& pending = parts[part];
  const std::vector<StateVariable>& states = pending.component->signature().states;
  const bool is_given = !pending.options.initial_state.empty();
  const std::vector<double> by_default =
      is_given ? std::vector<double>() : pending.component->default_state();
  const std::vector<double>& state = is_given ? pending.options.initial_state : by_default;
  const auto where = [&] {
    return fmt::format("/subsystems/{}{}", part, is_given ? "/initial_state" : "");
  };
  if (state.size() != states.size()) {
    return add(where(), fmt::format("{} must have {} numbers ({}), got {}",
                                    is_given ? "the initial state" : "the part's default state",
                                    states.size(), list_states(states), state.size()));
  }
  bool is_finite = true;
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (std::isfinite(state[i])) continue;
    is_finite = false;
    add(is_given ? fmt::format("{}/{}", where(), i) : where(),
        fmt::format("{} must be finite, got {}", printable(states[i].name),
                    shown_number(state[i])));
  }
  if (!is_finite) return;
  for (Issue& issue : pending.component->check_initial_state(state.data())) {
    add(where(), std::move(issue.what));
  }
  const std::string defect = storage_defect(*pending.component, state);
  if (!defect.empty()) {
    add(where(), fmt::format("{} (a {}) cannot start at {}: {}", in_quotes(pending.name),
                             in_quotes(pending.component->signature().type),
                             list_values(states, state), defect));
  }
}

void SystemBuilder::Draft::check_substeps(int part) {
  const PendingPart& pending = parts[part];
  const int substeps = pending.options.substeps;
  const auto where = [&] { return fmt::format("/subsystems/{}/substeps", part); };
  if (substeps < 1 || substeps > kMostPartSubsteps) {
    return add(where(), fmt::format("must be 1 to {}, got {}", kMostPartSubsteps, substeps));
  }
  if (substeps == 1) return;
  const std::string defect = substepping_defect(*pending.component);
  if (defect.empty()) return;
  add(where(), fmt::format("must be 1: {} (a {}) {}", in_quotes(pending.name),
                           in_quotes(pending.component->signature().type), defect));
}

void SystemBuilder::Draft::check_inputs(int part) {
  const PendingPart& pending = parts[part];
  const std::vector<ExternalInput>& inputs = pending.component->signature().inputs;
  std::optional<NameSearch> names;
  std::unordered_set<std::string_view> known;
  if (!pending.options.inputs.empty()) {
    for (const ExternalInput& input : inputs) known.insert(input.name);
  }
  for (const auto& [name, signal] : pending.options.inputs) {
    if (known.contains(name)) continue;
    if (!names) names.emplace(names_of(inputs));
    add(fmt::format("/subsystems/{}/inputs/{}", part, escape_key(name)),
        fmt::format("subsystem {} has no input {}.\n{}{}", in_quotes(pending.name), in_quotes(name),
                    list_inputs(inputs), names->did_you_mean(name)));
  }
}

void SystemBuilder::Draft::check_joints() {
  for (int j = 0; j < static_cast<int>(joints.size()); ++j) {
    references.begin_joint();
    for (std::size_t i = 0; i < joints[j].ports.size(); ++i) {
      references.add(resolve(j, i));
      note_use(j, i);
    }
    check_arity(j);
    check_ports_match(j);
    check_values(j);
    check_places(j);
  }
}

std::string SystemBuilder::Draft::path_of(int joint, std::size_t position) {
  return fmt::format("/couplings/{}/ports/{}", joint, position);
}

std::span<SystemBuilder::Draft::Use> SystemBuilder::Draft::uses_of(int part) {
  return std::span(uses).subspan(first_use[part], first_use[part + 1] - first_use[part]);
}

SystemBuilder::Draft::PortReference SystemBuilder::Draft::resolve(int joint, std::size_t position) {
  const std::string& path = joints[joint].ports[position];
  const std::size_t dot = path.find('.');
  const std::string_view part_name = std::string_view(path).substr(0, dot);
  const auto found = part_by_name.find(part_name);
  if (dot == std::string::npos) {
    std::string hint;
    if (found != part_by_name.end() && parts[found->second].component != nullptr) {
      hint = "\n" + list_ports(parts[found->second].component->signature().ports);
      excuse(found->second, "");
    }
    add(path_of(joint, position),
        fmt::format("expected \"part.port\", got {}.{}", in_quotes(path), hint));
    return {};
  }
  const std::string_view port_name = std::string_view(path).substr(dot + 1);
  if (found == part_by_name.end()) {
    report_unknown_part(part_name, port_name, path_of(joint, position));
    return {};
  }
  const int part = found->second;
  if (parts[part].component == nullptr) return {part, -1};
  const int port = index_of(port_name, parts[part].component->signature().ports);
  if (port < 0) report_unknown_port(part, port_name, path_of(joint, position));
  return {part, port};
}

NameSearch& SystemBuilder::Draft::part_names() {
  if (!part_names_) part_names_.emplace(names_of(parts));
  return *part_names_;
}

NameSearch& SystemBuilder::Draft::port_names(int part) {
  const Component* const owner = parts[part].component.get();
  if (owner_of_port_names_ != owner) port_names_.emplace(names_of(owner->signature().ports));
  owner_of_port_names_ = owner;
  return *port_names_;
}

void SystemBuilder::Draft::report_unknown_part(std::string_view name, std::string_view port,
                                               const std::string& where) {
  constexpr std::size_t kListed = 8;
  std::string list;
  for (std::size_t i = 0; i < parts.size() && parts.size() <= kListed; ++i) {
    list += fmt::format("{}{}", i > 0 ? ", " : "\nsubsystems: ", in_quotes(parts[i].name));
  }
  if (!list.empty()) list += ".";
  const std::string nearest = part_names().nearest(name);
  add(where, fmt::format("there is no subsystem {}.{}{}", in_quotes(name), list,
                         suggestion(nearest, name)));
  const auto meant = part_by_name.find(nearest);
  if (meant != part_by_name.end()) excuse(meant->second, port);
}

void SystemBuilder::Draft::report_unknown_port(int part, std::string_view port,
                                               const std::string& where) {
  const std::vector<Port>& ports = parts[part].component->signature().ports;
  const std::string nearest = port_names(part).nearest(port);
  add(where, fmt::format("subsystem {} has no port {}.\n{}{}", in_quotes(parts[part].name),
                         in_quotes(port), list_ports(ports), suggestion(nearest, port)));
  excuse(part, nearest);
}

void SystemBuilder::Draft::excuse(int part, std::string_view port) {
  if (parts[part].component == nullptr) return;
  const int meant = index_of(port, parts[part].component->signature().ports);
  const std::span<Use> its_uses = uses_of(part);
  for (int k = 0; k < static_cast<int>(its_uses.size()); ++k) {
    if (meant < 0 || k == meant) its_uses[k].excused = true;
  }
}

void SystemBuilder::Draft::note_use(int joint, std::size_t position) {
  const PortReference reference = references.of(joint)[position];
  if (!reference.known() || shares_name[reference.part]) return;
  Use& use = uses_of(reference.part)[reference.port];
  if (use.joint < 0) {
    use.joint = joint;
    use.position = position;
    return;
  }
  add(path_of(joint, position),
      fmt::format("port {} is already used by /couplings/{}/ports/{}; a port belongs to exactly "
                  "one coupling",
                  in_quotes(joints[joint].ports[position]), use.joint, use.position));
}

void SystemBuilder::Draft::check_arity(int joint) {
  const PendingJoint& pending = joints[joint];
  const JointRules rules = rules_of(pending.joint);
  const int count = static_cast<int>(pending.ports.size());
  if (count >= rules.fewest_ports && count <= rules.most_ports) return;
  const bool exact = rules.fewest_ports == rules.most_ports;
  add(fmt::format("/couplings/{}/ports", joint),
      fmt::format("{} needs {}{} port{}, got {}", rules.name, exact ? "" : "at least ",
                  rules.fewest_ports, rules.fewest_ports == 1 ? "" : "s", count));
}

void SystemBuilder::Draft::check_ports_match(int joint) {
  const PendingJoint& pending = joints[joint];
  const std::span<const PortReference> joined = references.of(joint);
  const JointRules rules = rules_of(pending.joint);
  const std::size_t none = joined.size();
  std::size_t with_dimension = none;  // the first port, and the first that is not generic
  std::size_t with_domain = none;
  for (std::size_t i = 0; i < joined.size(); ++i) {
    if (!joined[i].known()) continue;
    const Port& port = port_of(joined[i]);
    if (with_dimension == none) with_dimension = i;
    if (with_domain == none && port.domain != Domain::generic) with_domain = i;
    const Port& first = port_of(joined[with_dimension]);
    if (rules.entry_by_entry && port.dimension != first.dimension) {
      add(path_of(joint, i),
          fmt::format("port {} has dimension {}, but {} has {}; {} joins ports "
                      "component by component",
                      in_quotes(pending.ports[i]), port.dimension,
                      in_quotes(pending.ports[with_dimension]), first.dimension, rules.name));
    }
    if (!rules.same_domain || with_domain == none || port.domain == Domain::generic) continue;
    const Domain domain = port_of(joined[with_domain]).domain;
    if (port.domain == domain) continue;
    add(path_of(joint, i),
        fmt::format("port {} is {}, but {} is {}; different domains meet only in a "
                    "transformer, gyrator, skew gain or kernel{}",
                    in_quotes(pending.ports[i]), to_string(port.domain),
                    in_quotes(pending.ports[with_domain]), to_string(domain),
                    hint_for_domains(domain, port.domain)));
  }
}

void SystemBuilder::Draft::check_open_ports() {
  // Too many wrong names to tell which ports they mean.
  if (part_names_ && part_names_->gave_up()) return;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].component == nullptr || shares_name[i] || parts[i].is_outside) continue;
    const std::vector<Port>& ports = parts[i].component->signature().ports;
    for (std::size_t k = 0; k < ports.size(); ++k) {
      const Use& use = uses[first_use[i] + k];
      if (use.joint >= 0 || use.excused) continue;
      add(fmt::format("/subsystems/{}", i),
          fmt::format("port {} is neither connected nor terminated; connect it or terminate "
                      "it with \"free\", \"fixed\" or \"resistive\"",
                      in_quotes(parts[i].name + "." + ports[k].name)));
    }
  }
}

const Port& SystemBuilder::Draft::port_of(PortReference reference) const {
  return parts[reference.part].component->signature().ports[reference.port];
}

int SystemBuilder::Draft::scalar_size(int joint) const {
  int size = 0;
  for (const PortReference reference : references.of(joint)) {
    if (!reference.known()) return -1;
    size += port_of(reference).dimension;
  }
  return size;
}

}  // namespace portwave

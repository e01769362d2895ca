#include "portwave/coupling/system/system.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/catalogue/catalogue_part.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "system/system_draft.hpp"

namespace portwave {
namespace {

/// Union-find.
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0); }

  int find(int member) {
    while (parent_[member] != member) {
      parent_[member] = parent_[parent_[member]];
      member = parent_[member];
    }
    return member;
  }
  void join(int a, int b) {
    const auto [low, high] = std::minmax({find(a), find(b)});
    parent_[high] = low;
  }

 private:
  std::vector<int> parent_;
};

DiracStructure dirac_of(const Joint& joint, int ports, const std::vector<Causality>& causalities) {
  struct Visitor {
    int ports;
    const std::vector<Causality>& causalities;

    DiracStructure operator()(const joint::Connection&) { return DiracStructure::connection(); }
    DiracStructure operator()(const joint::CommonEffort&) {
      return DiracStructure::common_effort(ports);
    }
    DiracStructure operator()(const joint::CommonFlow&) {
      return DiracStructure::common_flow(ports);
    }
    DiracStructure operator()(const joint::Transformer& transformer) {
      return DiracStructure::transformer(transformer.ratio);
    }
    DiracStructure operator()(const joint::Gyrator& gyrator) {
      return DiracStructure::gyrator(gyrator.ratio);
    }
    DiracStructure operator()(const joint::SkewGain& gain) {
      return DiracStructure::skew_gain(gain.gain, causalities);
    }
    DiracStructure operator()(const joint::Kernel& kernel) {
      return with_separate_rows({kernel.E, kernel.F});
    }
    DiracStructure operator()(const joint::Free&) { return DiracStructure::free(); }
    DiracStructure operator()(const joint::Fixed&) { return DiracStructure::fixed(); }
    DiracStructure operator()(const joint::Resistive&) { return DiracStructure::connection(); }
  };
  return std::visit(Visitor{ports, causalities}, joint);
}

/// True when the structure follows from the kind of joint and its number of ports.
bool is_plain(const Joint& joint) {
  return std::holds_alternative<joint::Connection>(joint) ||
         std::holds_alternative<joint::CommonEffort>(joint) ||
         std::holds_alternative<joint::CommonFlow>(joint) ||
         std::holds_alternative<joint::Free>(joint) ||
         std::holds_alternative<joint::Fixed>(joint) ||
         std::holds_alternative<joint::Resistive>(joint);
}

bool runs_over_all_scalar_ports(const Joint& joint) {
  return std::holds_alternative<joint::SkewGain>(joint) ||
         std::holds_alternative<joint::Kernel>(joint);
}

}  // namespace

/// One structure for all junctions of a kind and size that has no parameters.
class SystemBuilder::Draft::SharedStructures {
 public:
  std::shared_ptr<const DiracStructure> find(const Joint& joint, int ports,
                                             const std::vector<Causality>& causalities) {
    const auto make = [&] {
      return std::make_shared<const DiracStructure>(dirac_of(joint, ports, causalities));
    };
    if (!is_plain(joint)) return make();
    std::shared_ptr<const DiracStructure>& shared = structures_[{joint.index(), ports}];
    if (shared == nullptr) shared = make();
    return shared;
  }

 private:
  std::map<std::pair<std::size_t, int>, std::shared_ptr<const DiracStructure>> structures_;
};

int System::first_scalar_port(int part, int port) const {
  const std::vector<Port>& ports = parts_[part].component->signature().ports;
  int scalar_port = first_scalar_port(part);
  for (int i = 0; i < port; ++i) scalar_port += ports[i].dimension;
  return scalar_port;
}

int System::find_part(std::string_view name) const {
  const auto found = std::lower_bound(
      parts_by_name_.begin(), parts_by_name_.end(), name,
      [this](int part, std::string_view wanted) { return parts_[part].name < wanted; });
  return found == parts_by_name_.end() || parts_[*found].name != name ? -1 : *found;
}

std::pair<int, int> System::find_port(std::string_view path) const {
  // Terminations have a dot in their name, ports have none.
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {-1, -1};
  const int part = find_part(path.substr(0, dot));
  if (part < 0) return {-1, -1};
  const std::vector<Port>& ports = parts_[part].component->signature().ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == path.substr(dot + 1)) return {part, static_cast<int>(i)};
  }
  return {-1, -1};
}

const CutName* System::find_cut(std::string_view name) const {
  const auto found = std::ranges::find(cuts_, name, &CutName::name);
  return found == cuts_.end() ? nullptr : &*found;
}

const CutName* System::cut_with(int part) const {
  const auto found =
      std::ranges::find_if(cuts_, [part](const CutName& own) { return own.has_part(part); });
  return found == cuts_.end() ? nullptr : &*found;
}

const std::string& System::name_of_part(int part) const {
  const CutName* const cut = cut_with(part);
  return cut != nullptr ? cut->name : parts_[part].name;
}

int System::find_setting(int part, int input) const {
  if (part < 0 || part >= static_cast<int>(parts_.size()) || input < 0) return -1;
  const std::vector<Signal>& inputs = parts_[part].inputs;
  if (input >= static_cast<int>(inputs.size()) || !inputs[input].is_settable()) return -1;
  return inputs[input].slot();
}

std::string System::input_label(const SettableInput& input) const {
  return name_of_part(input.part) + "." +
         parts_[input.part].component->signature().inputs[input.input].name;
}

std::string System::port_label(int scalar_port) const {
  const ScalarPort& scalar = scalar_ports_[scalar_port];
  const Part& part = parts_[scalar.part];
  const Port& port = part.component->signature().ports[scalar.port];
  const std::string label = part.name + "." + port.name;
  return port.dimension == 1 ? label : label + "[" + std::to_string(scalar.entry) + "]";
}

std::string opaque_defect(const Part& part) {
  return fmt::format("subsystem {} ({}) is opaque: it has ports and a step, but shows no equations",
                     in_quotes(part.name), printable(part.component->signature().type));
}

std::optional<Issue> wave_only_defect(const Part& part, std::size_t index) {
  if (part.port_hamiltonian() == nullptr) {
    return Issue{fmt::format("/subsystems/{}", index), opaque_defect(part)};
  }
  if (part.port_hamiltonian()->has_port_laws()) {
    return Issue{fmt::format("/subsystems/{}", index),
                 fmt::format("subsystem {} has a nonlinear resistance at its ports: only wave "
                             "coupling solves that",
                             in_quotes(part.name))};
  }
  if (part.substeps == 1) return std::nullopt;
  return Issue{fmt::format("/subsystems/{}/substeps", index),
               fmt::format("must be 1 for subsystem {}: a solver without waves, also one for "
                           "comparison only, steps all parts alike",
                           in_quotes(part.name))};
}

SystemBuilder& SystemBuilder::add(std::string name, std::shared_ptr<const Component> component,
                                  PartOptions options) {
  parts_.push_back({std::move(name), std::move(component), std::move(options)});
  return *this;
}

SystemBuilder& SystemBuilder::add(std::string name, const CataloguePart& part,
                                  PartOptions options) {
  Issues defects;
  try {
    return add(name, part.build(), options);
  } catch (const ConfigError& error) {
    defects = error.issues();
  }
  const std::string own = in_quotes(part.type()) + ": ";
  for (Issue& issue : defects) {
    if (issue.what.starts_with(own)) issue.what.erase(0, own.size());
    issue.what = fmt::format("{} ({}): {}", in_quotes(name), printable(part.type()), issue.what);
    issue.where = issue.where.empty() ? "/type" : "/parameters" + issue.where;
  }
  parts_.push_back({std::move(name), nullptr, std::move(options), false, std::move(defects)});
  return *this;
}

SystemBuilder& SystemBuilder::add_outside(std::string name,
                                          std::shared_ptr<const Component> component) {
  parts_.push_back({std::move(name), std::move(component), {}, /*is_outside=*/true});
  return *this;
}

SystemBuilder& SystemBuilder::begin_cut(CutName cut) {
  cut.first_part = static_cast<int>(parts_.size());
  cuts_.push_back(std::move(cut));
  return *this;
}

SystemBuilder& SystemBuilder::join(Joint joint, std::vector<std::string> ports) {
  joints_.push_back({std::move(joint), std::move(ports)});
  return *this;
}

SystemBuilder& SystemBuilder::reserve(std::size_t parts, std::size_t couplings) {
  parts_.reserve(parts);
  joints_.reserve(couplings);
  return *this;
}

SystemBuilder& SystemBuilder::connect(std::string port_1, std::string port_2) {
  return join(joint::Connection{}, {std::move(port_1), std::move(port_2)});
}

Issues SystemBuilder::check_into(Draft& draft) const {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    append(draft.issues, fmt::format("/subsystems/{}", i), parts_[i].defects);
  }
  draft.check_parts();
  draft.check_joints();
  draft.check_open_ports();
  return std::move(draft.issues);
}

Issues SystemBuilder::check() const {
  Draft draft(*this);
  return check_into(draft);
}

System SystemBuilder::build() {
  Draft draft(*this);
  Issues issues = check_into(draft);
  for (std::size_t i = 0; issues.empty() && i < parts_.size(); ++i) {
    if (parts_[i].component != nullptr) continue;
    issues.push_back({"/subsystems/" + std::to_string(i),
                      "subsystem \"" + parts_[i].name + "\" could not be built"});
  }
  throw_if_any(std::move(issues));

  System system = draft.assemble(parts_, std::move(cuts_));
  parts_.clear();
  joints_.clear();
  cuts_.clear();
  return system;
}

System SystemBuilder::Draft::assemble(std::vector<PendingPart>& from,
                                      std::vector<CutName> cuts) const {
  const auto is_resistive = [](const PendingJoint& pending) {
    return std::holds_alternative<joint::Resistive>(pending.joint);
  };
  System system;
  system.cuts_ = std::move(cuts);
  system.parts_.reserve(from.size() + static_cast<std::size_t>(std::count_if(
                                          joints.begin(), joints.end(), is_resistive)));
  system.junctions_.reserve(joints.size());
  for (PendingPart& pending : from) {
    Part part;
    part.name = std::move(pending.name);
    part.component = std::move(pending.component);
    part.substeps = pending.options.substeps;
    part.integrator = pending.options.integrator;
    part.damping = pending.options.damping;
    part.initial_state = pending.options.initial_state.empty()
                             ? part.component->default_state()
                             : std::move(pending.options.initial_state);
    const std::vector<ExternalInput>& inputs = part.component->signature().inputs;
    part.inputs.resize(inputs.size());
    part.input_is_driven.resize(inputs.size(), false);
    std::unordered_map<std::string_view, std::size_t> numbers;
    for (std::size_t i = 0; i < inputs.size() && !pending.options.inputs.empty(); ++i) {
      numbers.emplace(inputs[i].name, i);
    }
    for (const auto& [name, signal] : pending.options.inputs) {
      const std::size_t number = numbers.at(name);
      part.inputs[number] = signal;
      if (signal.is_settable()) {
        const System::SettableInput input{static_cast<int>(system.parts_.size()),
                                          static_cast<int>(number), signal(0.0)};
        part.inputs[number].set_slot(slot_of(system, input, name));
      }
      part.input_is_driven[number] = true;
    }
    insert(system, std::move(part));
  }
  SharedStructures structures;
  for (std::size_t j = 0; j < joints.size(); ++j) {
    join(system, joints[j].joint, references.of(j), structures);
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!from[i].is_outside) continue;
    const std::size_t ports = system.parts_[i].component->signature().ports.size();
    for (std::size_t k = 0; k < ports; ++k) {
      if (uses[first_use[i] + k].joint >= 0) continue;
      const PortReference open{static_cast<int>(i), static_cast<int>(k)};
      join(system, joint::Free{}, std::span(&open, 1), structures);
    }
  }
  number_islands(system);
  order_names(system);
  return system;
}

void make_slice(System& system, SystemSlice slice, std::vector<int> island_of_part) {
  system.island_count_ = static_cast<int>(slice.islands.size());
  system.island_of_part_ = std::move(island_of_part);
  system.slice_ = std::make_shared<const SystemSlice>(std::move(slice));
}

std::vector<double> System::initial_settings() const {
  std::vector<double> values;
  for (const SettableInput& input : settable_inputs_) values.push_back(input.initial);
  return values;
}

int SystemBuilder::Draft::slot_of(System& system, const System::SettableInput& input,
                                  const std::string& name) {
  if (const CutName* const cut = system.cut_with(input.part)) {
    for (int piece = cut->first_part; piece < input.part; ++piece) {
      const Part& other = system.parts_[piece];
      const int same = index_of(name, other.component->signature().inputs);
      if (same >= 0 && other.inputs[same].is_settable()) return other.inputs[same].slot();
    }
  }
  system.settable_inputs_.push_back(input);
  return static_cast<int>(system.settable_inputs_.size()) - 1;
}

void SystemBuilder::Draft::insert(System& system, Part part) {
  const int number = static_cast<int>(system.parts_.size());
  system.first_scalar_port_.push_back(static_cast<int>(system.scalar_ports_.size()));
  const std::vector<Port>& ports = part.component->signature().ports;
  for (int port = 0; port < static_cast<int>(ports.size()); ++port) {
    for (int entry = 0; entry < ports[port].dimension; ++entry) {
      system.scalar_ports_.push_back({number, port, entry});
    }
  }
  system.parts_.push_back(std::move(part));
}

// A resistive end is a resistor part of its own, joined by a connection: e₁ = e₂ = r f₂ = −r f₁.
SystemBuilder::Draft::PortReference SystemBuilder::Draft::add_termination(System& system,
                                                                          double resistance,
                                                                          PortReference port) {
  const Part& ended = system.parts_[port.part];
  Port end = ended.component->signature().ports[port.port];
  Part resistor;
  resistor.name = ended.name + "." + end.name;
  end.name = "resistor";
  resistor.component = make_resistor(resistance, end);
  resistor.is_termination = true;
  insert(system, std::move(resistor));
  return {static_cast<int>(system.parts_.size()) - 1, 0};
}

void SystemBuilder::Draft::join(System& system, const Joint& joint,
                                std::span<const PortReference> ports,
                                SharedStructures& structures) {
  std::vector<PortReference> joined(ports.begin(), ports.end());
  if (const auto* end = std::get_if<joint::Resistive>(&joint)) {
    joined.push_back(add_termination(system, end->resistance, ports.front()));
  }
  std::vector<int> scalar_ports;
  std::vector<Causality> causalities;
  int dimension = 0;
  for (const PortReference& reference : joined) {
    const Port& port = system.parts_[reference.part].component->signature().ports[reference.port];
    const int first = system.first_scalar_port(reference.part, reference.port);
    dimension = port.dimension;
    for (int entry = 0; entry < dimension; ++entry) {
      scalar_ports.push_back(first + entry);
      causalities.push_back(port.causality);
    }
  }
  const auto dirac = structures.find(joint, static_cast<int>(joined.size()), causalities);
  if (runs_over_all_scalar_ports(joint)) {
    system.junctions_.emplace_back(dirac, std::move(scalar_ports));
    return;
  }
  for (int entry = 0; entry < dimension; ++entry) {
    std::vector<int> places;
    for (std::size_t i = 0; i < joined.size(); ++i) {
      places.push_back(scalar_ports[i * dimension + entry]);
    }
    system.junctions_.emplace_back(dirac, std::move(places));
  }
}

void SystemBuilder::Draft::order_names(System& system) {
  const std::vector<Part>& parts = system.parts_;
  system.parts_by_name_.resize(parts.size());
  std::iota(system.parts_by_name_.begin(), system.parts_by_name_.end(), 0);
  std::sort(system.parts_by_name_.begin(), system.parts_by_name_.end(),
            [&parts](int a, int b) { return parts[a].name < parts[b].name; });
}

void SystemBuilder::Draft::number_islands(System& system) {
  Sets sets(system.parts_.size());
  for (const Junction& junction : system.junctions_) {
    for (const int port : junction.waves) {
      sets.join(system.scalar_ports_[junction.waves.front()].part, system.scalar_ports_[port].part);
    }
  }
  std::vector<int> island(system.parts_.size(), -1);  // by representative
  for (int part = 0; part < static_cast<int>(system.parts_.size()); ++part) {
    int& number = island[sets.find(part)];
    if (number < 0) number = system.island_count_++;
    system.island_of_part_.push_back(number);
  }
}

}  // namespace portwave

#include "portwave/coupling/system/derived_systems.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave {

bool has_substeps(const System& system) {
  return std::ranges::any_of(system.parts(), [](const Part& part) { return part.substeps > 1; });
}

Issues check_stages(const System& system) {
  Issues issues;
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Part& part = system.parts()[i];
    const std::string defect = staging_defect(*part.component);
    if (defect.empty()) continue;
    issues.push_back(
        {fmt::format("/subsystems/{}", i),
         fmt::format("\"stages\" must be 1: subsystem {} ({}) {}", in_quotes(part.name),
                     printable(part.component->signature().type), defect)});
  }
  return issues;
}

int staged_port(const System& system, int stages, int scalar_port, int stage) {
  const int part = system.scalar_ports()[at(scalar_port)].part;
  const int first = system.first_scalar_port(part);
  const int ports = system.parts()[at(part)].component->signature().wave_size();
  return stages * first + stage * ports + (scalar_port - first);
}

Issues check_damping(const System& system, const StagePlan& plan) {
  Issues issues;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    if (!plan.damps(i)) continue;
    const Part& part = system.parts()[at(i)];
    std::string defect = damping_defect(*part.component, plan.stages);
    const StageDamping damping = plan.damping_of(i);
    if (!(damping.theta >= 0.0 && damping.theta <= 1.0)) {
      issues.push_back({fmt::format("/subsystems/{}/theta", i),
                        fmt::format("must be 0 to 1, got {}", damping.theta)});
    }
    if (defect.empty() && damping.conserved != 0 && !can_damp_single_states(*part.component)) {
      defect = fmt::format(
          "has more than {} states or sparse step maps, so that single states of it cannot be",
          kMostMasked);
    }
    if (defect.empty()) continue;
    issues.push_back({fmt::format("/subsystems/{}/integrator", i),
                      fmt::format("subsystem {} ({}) cannot be damped: it {}", in_quotes(part.name),
                                  printable(part.component->signature().type), defect)});
  }
  return issues;
}

namespace {

/// By island, whether its parts see their inputs at the nodes of the plan. With one stage that is all that nodes mean
/// to a part without damping, so that islands without damped parts keep the middle of the step.
std::vector<bool> islands_on_nodes(const System& system, const StagePlan& plan) {
  const bool is_one = plan.stages == 1 && !plan.is_damped.empty() && system.slice() == nullptr;
  std::vector<bool> out(at(system.island_count()), !is_one);
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    if (plan.damps(i)) out[at(system.island_of_part(i))] = true;
  }
  return out;
}

}  // namespace

System staged_system(const System& system, const StagePlan& plan) {
  const int stages = plan.stages;
  if (stages < 1 || stages > kMostStages) {
    throw ConfigError("/stages", fmt::format("must be 1 to {}, got {}", kMostStages, stages));
  }
  if (stages > 1) throw_if_any(check_stages(system));
  throw_if_any(check_damping(system, plan));
  const StageRule& rule = plan.rule();
  const std::vector<bool> on_nodes = islands_on_nodes(system, plan);
  System out;
  out.settable_inputs_ = system.settable_inputs_;
  std::map<std::tuple<const Component*, int, bool, StageDamping>, std::shared_ptr<const Component>>
      staged;
  for (const Part& part : system.parts_) {
    const int number = static_cast<int>(out.parts_.size());
    std::shared_ptr<const Component>& component =
        staged[{part.component.get(), part.substeps, plan.damps(number), plan.damping_of(number)}];
    const bool is_kept = plan.keeps(number, part.substeps);
    if (component == nullptr) {
      component = is_kept ? part.component
                  : part.substeps > 1
                      ? staged_part(part.component, plan.rule_of(number), part.substeps)
                      : staged_live_part(part.component, plan.rule_of(number));
    }
    Part own{part.name, component, part.initial_state, {}, {}, part.is_termination, {}};
    for (int node = 0; node < part.substeps * stages; ++node) {
      const int k = node / stages, i = node % stages;
      for (std::size_t j = 0; j < part.inputs.size(); ++j) {
        const bool driven = part.input_is_driven[j];
        own.inputs.push_back(driven ? part.inputs[j] : Signal());
        own.input_is_driven.push_back(driven);
        const bool has_nodes =
            plan.nodes != StageNodes::gauss && on_nodes[at(system.island_of_part(number))];
        if (is_kept && !has_nodes) continue;
        own.input_nodes.push_back({(k + rule.c[at(i)]) / part.substeps - 0.5,
                                   std::sqrt(rule.b[at(i)] / part.substeps),
                                   static_cast<double>(k) / part.substeps - 0.5,
                                   1.0 / part.substeps, rule.c[at(i)], stages});
      }
    }
    out.parts_.push_back(std::move(own));
    out.first_scalar_port_.push_back(static_cast<int>(out.scalar_ports_.size()));
    const std::vector<Port>& ports = component->signature().ports;
    for (std::size_t k = 0; k < ports.size(); ++k) {
      for (int c = 0; c < ports[k].dimension; ++c) {
        out.scalar_ports_.push_back({number, static_cast<int>(k), c});
      }
    }
  }
  for (const Junction& junction : system.junctions_) {
    for (int i = 0; i < stages; ++i) {
      std::vector<int> ports;
      for (const int port : junction.waves) {
        ports.push_back(staged_port(system, stages, port, i));
      }
      out.junctions_.emplace_back(junction.shared, std::move(ports));
    }
  }
  out.island_of_part_ = system.island_of_part_;
  out.island_count_ = system.island_count_;
  out.parts_by_name_ = system.parts_by_name_;
  out.cuts_ = system.cuts_;
  out.slice_ = system.slice_;
  return out;
}

std::vector<bool> idle_ports(const System& system) {
  std::vector<bool> out(system.scalar_ports().size(), false);
  for (const Junction& junction : system.junctions()) {
    if (junction.dirac.size() != 1) continue;
    const ScalarPort port = system.scalar_ports()[at(junction.waves.front())];
    if (system.slice() != nullptr && !system.slice()->is_own(port.part)) continue;
    const Signature& signature = system.parts()[at(port.part)].component->signature();
    const bool takes_effort = signature.ports[at(port.port)].causality == Causality::effort_in;
    // The matrix of the other variable is 0, so that this one is.
    const Eigen::MatrixXd& other = takes_effort ? junction.dirac.F : junction.dirac.E;
    out[at(junction.waves.front())] = other(0, 0) == 0.0;
  }
  int first = 0;
  for (const Part& part : system.parts()) {
    for (const Port& port : part.component->signature().ports) {
      const auto begin = out.begin() + first, end = begin + port.dimension;
      if (std::find(begin, end, false) != end) std::fill(begin, end, false);
      first += port.dimension;
    }
  }
  return out;
}

namespace {

/// By port of a part: whether it is idle.
std::vector<bool> idle_ports_of(const System& system, const std::vector<bool>& idle, int part) {
  std::vector<bool> out;
  int first = system.first_scalar_port(part);
  for (const Port& port : system.parts()[at(part)].component->signature().ports) {
    out.push_back(port.dimension > 0 && idle[at(first)]);
    first += port.dimension;
  }
  return out;
}

/// The component without idle ports; null where it stays as it is.
std::shared_ptr<const Component> live_component(const Part& part, const std::vector<bool>& idle,
                                                int stages) {
  if (part.substeps > 1) return nullptr;
  const Subsystem* const physics = part.component->port_hamiltonian();
  if (stages > 1 && (physics == nullptr || physics->linear_form().E != nullptr)) return nullptr;
  return without_idle_ports(part.component, idle);
}

}  // namespace

std::shared_ptr<const Component> live_component(const System& system,
                                                std::span<const int> number_of_port, int part,
                                                int stages) {
  const Part& own = system.parts()[at(part)];
  std::vector<bool> idle;
  int first = system.first_scalar_port(part);
  for (const Port& port : own.component->signature().ports) {
    idle.push_back(port.dimension > 0 && number_of_port[at(first)] < 0);
    first += port.dimension;
  }
  if (std::ranges::find(idle, true) == idle.end()) return own.component;
  auto live = live_component(own, idle, stages);
  return live != nullptr ? live : own.component;
}

LiveSystem live_system(const System& system, int stages) {
  System out;
  std::vector<int> number_of_port;
  const std::vector<bool> idle = idle_ports(system);
  // Equal linear parts share a component; others have scratch of their own.
  std::map<std::pair<const Component*, std::vector<bool>>, std::shared_ptr<const Component>> known;
  for (int number = 0; number < static_cast<int>(system.parts_.size()); ++number) {
    const Part& part = system.parts_[at(number)];
    const std::vector<bool> own = idle_ports_of(system, idle, number);
    std::shared_ptr<const Component> live;
    if (std::ranges::find(own, true) != own.end()) {
      if (part.component->capabilities().linear) {
        const auto [found, is_new] = known.try_emplace({part.component.get(), own});
        if (is_new) found->second = live_component(part, own, stages);
        live = found->second;
      } else {
        live = live_component(part, own, stages);
      }
    }
    out.first_scalar_port_.push_back(static_cast<int>(out.scalar_ports_.size()));
    const std::vector<Port>& ports = part.component->signature().ports;
    int next = 0;  // port of the component without idle ones
    for (std::size_t k = 0; k < ports.size(); ++k) {
      const bool is_there = live == nullptr || !own[k];
      for (int c = 0; c < ports[k].dimension; ++c) {
        number_of_port.push_back(is_there ? static_cast<int>(out.scalar_ports_.size()) : -1);
        if (is_there) out.scalar_ports_.push_back({number, next, c});
      }
      if (is_there) ++next;
    }
    out.parts_.push_back(part);
    if (live != nullptr) out.parts_.back().component = std::move(live);
  }
  for (const Junction& junction : system.junctions_) {
    std::vector<int> ports;
    for (const int port : junction.waves) ports.push_back(number_of_port[at(port)]);
    if (ports.front() >= 0) out.junctions_.emplace_back(junction.shared, std::move(ports));
  }
  out.island_of_part_ = system.island_of_part_;
  out.island_count_ = system.island_count_;
  out.settable_inputs_ = system.settable_inputs_;
  out.parts_by_name_ = system.parts_by_name_;
  out.cuts_ = system.cuts_;
  out.slice_ = system.slice_;
  return {std::move(out), std::move(number_of_port)};
}

System gathered_system(std::span<const System* const> systems, const double* states) {
  System out;
  for (const System* const own : systems) {
    const int first_part = static_cast<int>(out.parts_.size());
    const int first_port = static_cast<int>(out.scalar_ports_.size());
    const int first_slot = static_cast<int>(out.settable_inputs_.size());
    for (const Part& part : own->parts_) {
      out.parts_.push_back(part);
      if (states != nullptr) {
        std::vector<double>& own_state = out.parts_.back().initial_state;
        std::copy_n(states, own_state.size(), own_state.begin());
        states += own_state.size();
      }
      for (Signal& input : out.parts_.back().inputs) {
        if (input.slot() >= 0) input.set_slot(first_slot + input.slot());
      }
    }
    for (const ScalarPort& port : own->scalar_ports_) {
      out.scalar_ports_.push_back({first_part + port.part, port.port, port.entry});
    }
    for (const int port : own->first_scalar_port_) {
      out.first_scalar_port_.push_back(first_port + port);
    }
    for (const Junction& junction : own->junctions_) {
      std::vector<int> ports = junction.waves;
      for (int& port : ports) port += first_port;
      out.junctions_.emplace_back(junction.shared, std::move(ports));
    }
    for (const int island : own->island_of_part_) {
      out.island_of_part_.push_back(out.island_count_ + island);
    }
    out.island_count_ += own->island_count_;
    for (CutName cut : own->cuts_) {
      cut.first_part += first_part;
      out.cuts_.push_back(std::move(cut));
    }
    for (const System::SettableInput& input : own->settable_inputs_) {
      out.settable_inputs_.push_back({first_part + input.part, input.input, input.initial});
    }
  }
  out.parts_by_name_.resize(out.parts_.size());
  std::iota(out.parts_by_name_.begin(), out.parts_by_name_.end(), 0);
  std::ranges::stable_sort(out.parts_by_name_, {}, [&out](int part) -> const std::string& {
    return out.parts_[static_cast<std::size_t>(part)].name;
  });
  return out;
}

namespace {

bool have_same_ports(const Signature& a, const Signature& b) {
  return std::ranges::equal(a.ports, b.ports, [](const Port& x, const Port& y) {
    return x.name == y.name && x.causality == y.causality && x.domain == y.domain &&
           x.dimension == y.dimension;
  });
}

bool are_equal(const Capabilities& a, const Capabilities& b) {
  return a.linear == b.linear && a.repeatable == b.repeatable && a.knows_energy == b.knows_energy &&
         a.thread_safe == b.thread_safe && a.linearisable == b.linearisable &&
         a.restorable == b.restorable;
}

std::string told_states(const Signature& signature) {
  constexpr std::size_t kMostNames = 8;
  const std::vector<StateVariable>& states = signature.states;
  if (states.empty()) return "none";
  if (states.size() > kMostNames) return fmt::format("{}", states.size());
  std::vector<std::string> names;
  for (const StateVariable& state : states) names.push_back(in_quotes(state.name));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string exchange_defect(const Component& present, const Component& other) {
  const Signature& a = present.signature();
  const Signature& b = other.signature();
  if (a.type != b.type) {
    return fmt::format("it is of type {}, and the part of type {}", b.type, a.type);
  }
  if (!std::ranges::equal(a.states, b.states, {}, &StateVariable::name, &StateVariable::name)) {
    return fmt::format("its states are others: it has {}, and the part {}", told_states(b),
                       told_states(a));
  }
  if (!have_same_ports(a, b)) return "its ports are others, which needs a new system";
  if (!std::ranges::equal(a.inputs, b.inputs, {}, &ExternalInput::name, &ExternalInput::name)) {
    return "its external inputs are others";
  }
  if (typeid(present) != typeid(other) ||
      !are_equal(present.capabilities(), other.capabilities()) ||
      present.batch_key() != other.batch_key()) {
    return "it is solved in another way";
  }
  if (other.is_active() && !present.is_active()) return "it is active, and the part is not";
  return {};
}

void exchange_component(System& system, int part, std::shared_ptr<const Component> component) {
  system.parts_[at(part)].component = std::move(component);
}

}  // namespace portwave

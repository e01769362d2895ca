#include "impedance/rigid_ties.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <numeric>

#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave {

bool is_without_energy(const Subsystem& physics) {
  std::vector<double> x(physics.signature().states.size());
  try {
    for (int exponent = -9; exponent <= 9; exponent += 3) {
      for (const double sign : {1.0, -1.0}) {
        std::ranges::fill(x, sign * std::pow(10.0, exponent));
        if (physics.storage(x.data()) != 0.0) return false;
      }
    }
  } catch (const std::exception&) {  // of a callback, outside its domain
    return false;
  }
  return true;
}

int port_of_physics(const Component& component, int scalar_port) {
  const Subsystem* const physics = component.port_hamiltonian();
  return physics == nullptr ? scalar_port : scalar_port % physics->signature().wave_size();
}

const Subsystem* storage_of(const Part& part) {
  const Subsystem* const physics = part.component->port_hamiltonian();
  if (physics == nullptr || physics->signature().states.empty()) return nullptr;
  if (const auto* const linear = dynamic_cast<const LinearPortHamiltonian*>(physics)) {
    return linear->uses_sparse_step_maps() ? nullptr : linear;
  }
  const bool may_store = physics->linear_form().E == nullptr && physics->constant_structure() &&
                         !physics->has_port_laws() && can_damp_single_states(*part.component);
  if (!may_store) return nullptr;
  // What is solved in lanes of its own, as Duffing oscillators are, would lose them for a single step.
  const Component* const own = physics;
  return damps_each_lane(*own->make_batch(std::span(&own, 1))) ? physics : nullptr;
}

bool RigidTies::may_take(int part) const {
  return storage_of(system_.parts()[at(part)]) != nullptr && may_take_(part);
}

std::vector<int> RigidTies::with(std::span<const int> parts) {
  find();
  std::vector<int> out(parts.begin(), parts.end());
  for (const int part : parts) {
    if (group_[at(part)] < 0) continue;
    const std::vector<int>& own = tied_[at(root(group_[at(part)]))];
    out.insert(out.end(), own.begin(), own.end());
  }
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  // The travel of a switch, which is open at the start, stores nothing.
  const auto stores = [&](int part) {
    const Component& component = *system_.parts()[at(part)].component;
    const Subsystem* const physics = component.port_hamiltonian();
    return component.signature().state_size() > 0 &&
           (physics == nullptr || !is_without_energy(*physics));
  };
  std::erase_if(out, [&](int part) { return !stores(part); });
  if (!std::ranges::all_of(out, [&](int part) { return may_take(part); })) out.clear();
  return out;
}

void RigidTies::find() {
  if (!group_.empty()) return;
  group_.assign(system_.parts().size(), -1);
  // Of steps with stages nobody asks what is damped together.
  const auto has_stages = [](const Part& part) {
    return part.component->stages() * part.component->substeps() > 1;
  };
  if (std::ranges::any_of(system_.parts(), has_stages)) return;
  const StateConstraints constraints(system_, [this](int part) -> std::span<const double> {
    return system_.parts()[at(part)].initial_state;
  });
  parent_.resize(at(constraints.size()));
  std::iota(parent_.begin(), parent_.end(), 0);
  std::vector<int> tied;
  for (int c = 0; c < constraints.size(); ++c) {
    for (const int part : constraints.parts(c)) {
      int& group = group_[at(part)];
      if (group < 0) {
        group = c;
        tied.push_back(part);
      } else {
        parent_[at(root(c))] = root(group);
      }
    }
  }
  tied_.resize(parent_.size());
  for (const int part : tied) tied_[at(root(group_[at(part)]))].push_back(part);
}

int RigidTies::root(int group) {
  while (parent_[at(group)] != group) {
    parent_[at(group)] = parent_[at(parent_[at(group)])];
    group = parent_[at(group)];
  }
  return group;
}

}  // namespace portwave

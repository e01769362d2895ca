#include "step/staged_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "portwave/coupling/impedance/one_sided_decays.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave {
namespace {

/// By part: whether parameters of it follow signals, in runs that judge what these do step by step.
std::vector<char> exchanged_parts(const System& system, const StepperOptions& options) {
  const bool judges = !options.sizes && !options.time.active() && system.slice() == nullptr &&
                      options.method.waves().integrator == StageKind::automatic;
  if (options.signals == nullptr || !judges) return {};
  std::vector<char> out(system.parts().size(), 0);
  for (const SignalGraph::ParameterActuator& own : options.signals->parameter_actuators()) {
    out[at(own.part)] = 1;
  }
  return out;
}

}  // namespace

StagedRun::StagedRun(const System& system, const StepperOptions& options)
    : given_(&system),
      options_(options),
      exchanged_(exchanged_parts(system, options)),
      choice_(choose_integrators(system, options.method.waves(), options.step_s,
                                 options.sizes.has_value(), exchanged_)) {
  const int stages = choice_.plan.stages;
  if (stages > 1) unstaged_ = without_idle_ports(system);
  const System& unstaged = unstaged_ != nullptr ? *unstaged_ : system;
  if (stages > 1 || has_substeps(system) || choice_.plan.nodes == StageNodes::radau) {
    stepped_ = std::make_unique<System>(staged_system(unstaged, choice_.plan));
  }
  if (stages == 1) {
    if (auto live = without_idle_ports(stepped())) stepped_ = std::move(live);
  }
  find_change_over();
  const WaveCoupling& asked = options.method.waves();
  const bool is_automatic = asked.integrator == StageKind::automatic;
  const auto is_nonlinear = [](const Part& part) { return !part.component->capabilities().linear; };
  const bool may_be_cut = options.method.kind() == WaveUpdate::automatic &&
                          asked.integrator != StageKind::gauss && !options.sizes &&
                          !options.time.active();
  const bool overshoots =
      stages > 1 && choice_.damped_parts > 0 &&
      (choice_.beside >= 0 || (is_automatic && std::ranges::any_of(system.parts(), is_nonlinear)));
  may_overshoot_ = may_be_cut && (overshoots || (is_automatic && may_throw(system)));
  if (is_as_given()) return;
  WaveCoupling& method = options_.method.waves();
  const std::size_t stepped_ports = stepped().scalar_ports().size();
  const bool is_stepped = std::exchange(method.by_stepped_port, true);
  const auto is_by_stepped_port = [&](const std::vector<double>& values) {
    return is_stepped && values.size() == stepped_ports;
  };
  if (method.impedance.size() > 1 && !is_by_stepped_port(method.impedance)) {
    method.impedance = at_all_stages(method.impedance);
  }
  if (is_by_stepped_port(method.initial_waves)) return;
  const bool is_by_stage = method.initial_waves.size() != system.scalar_ports().size();  // or none
  method.initial_waves = at_all_stages(method.initial_waves);
  if (is_by_stage) return;
  for (int port = 0; stages > 1 && port < static_cast<int>(system.scalar_ports().size()); ++port) {
    for (int i = 0; i < stages && !is_idle(port); ++i)
      method.initial_waves[at(this->port(port, i))] *= weight(i);
  }
}

/// Whether conserving steps may throw a decay across its rest, and nothing else takes care of it.
bool StagedRun::may_throw(const System& system) const {
  return choice_.thrown >= 0 && !may_change_over_ && !may_throw_substeps_ && can_return(system);
}

bool StagedRun::can_return(const System& system) {
  return std::ranges::all_of(system.parts(), [](const Part& part) {
    return part.port_hamiltonian() != nullptr && part.component->capabilities().repeatable;
  });
}

/// Null where there are none that can be left.
std::unique_ptr<System> StagedRun::without_idle_ports(const System& system) {
  const std::vector<bool> idle = idle_ports(system);
  if (std::ranges::find(idle, true) == idle.end()) return nullptr;
  LiveSystem live = live_system(system, stages());
  if (live.system.scalar_ports().size() == idle.size()) return nullptr;
  live_ = std::move(live.number_of_port);
  return std::make_unique<System>(std::move(live.system));
}

/// Where storages may need damped steps, the stepped system is one whose parts can be exchanged.
void StagedRun::find_change_over() {
  if (stages() > 1 || options_.sizes || options_.time.active() || given_->slice() != nullptr ||
      options_.method.waves().integrator != StageKind::automatic) {
    return;
  }
  const OneSidedDecays decays = one_sided_decays(options_.step_s);
  may_throw_substeps_ = !decays_of_substeps(options_.step_s).empty();
  const SharedDecays shared = shared_decays(options_.step_s);
  may_change_over_ = !decays.empty() || !shared.empty();
  if (!may_change_over_) return;
  std::vector<int> parts;
  for (const auto sets : {decays.sets(), shared.sets()}) {
    for (const std::vector<int>& set : sets) parts.insert(parts.end(), set.begin(), set.end());
  }
  if (is_as_given()) stepped_ = std::make_unique<System>(staged_system(*given_, choice_.plan));
  // In batches of their own: the bits of others must not depend on what shares a batch with them.
  may_change_.assign(given_->parts().size(), 0);
  shown_.assign(given_->parts().size(), 0);
  const auto show = [this](const auto& own) {
    for (const int state : own.shown) {
      if (!own.is_linear) shown_[at(own.part)] |= std::uint64_t{1} << state;  // kMostMasked at most
    }
  };
  std::ranges::for_each(decays.storages(), show);
  std::ranges::for_each(shared.storages(), show);
  for (const int part : parts) {
    if (may_change_[at(part)] != 0) continue;
    may_change_[at(part)] = 1;
    exchange_component(*stepped_, part, apart(stepped_->parts()[at(part)].component));
  }
}

/// The component with one stage of its own, without damping: with the steps that it has, and another key of its batch.
std::shared_ptr<const Component> StagedRun::apart(
    const std::shared_ptr<const Component>& component) {
  std::shared_ptr<const Component>& own = apart_[component.get()];
  if (own == nullptr) own = staged_live_part(component, rule());
  return own;
}

OneSidedDecays StagedRun::one_sided_decays(double step_s) const {
  return {stepped(), step_s, resolved_decay(1), [this](int part) { return may_damp(part); },
          [this](int part) { return is_exchanged(part); }};
}

OneSidedDecays StagedRun::decays_of_substeps(double step_s) const {
  const bool any = has_substeps(*given_);
  return {stepped(), step_s, resolved_decay(1), [any](int) { return any; },
          [this](int part) { return is_exchanged(part); }};
}

SharedDecays StagedRun::shared_decays(double step_s) const {
  return {stepped(), step_s, shared_decay(1), [this](int part) { return may_damp(part); },
          [this](int part) { return is_exchanged(part); }};
}

bool StagedRun::may_damp(int part) const {
  const Part& own = given_->parts()[at(part)];
  return !own.integrator && own.substeps == 1 && !choice_.plan.damps(part);
}

void StagedRun::set_damped(int part, bool damped) {
  if (undamped_.contains(part) == damped) return;
  if (!damped) {
    exchange_component(*stepped_, part, std::move(undamped_.extract(part).mapped()));
    return;
  }
  const std::shared_ptr<const Component> own = stepped_->parts()[at(part)].component;
  Twins& twins = damped_[own.get()];
  if (twins.damped == nullptr) {
    StageRule damping = portwave::damped(rule());
    // A pendulum whose bearing sticks for a moment keeps its height.
    if (shown_[at(part)] != 0) {
      const int states = own->signature().state_size();
      damping.conserved = (~std::uint64_t{0} >> (kMostMasked - states)) & ~shown_[at(part)];
    }
    twins = {own, staged_live_part(own, damping)};
  }
  exchange_component(*stepped_, part, twins.damped);
  undamped_.emplace(part, own);
}

void StagedRun::component_changed(int part) {
  if (is_as_given()) return;
  const Part& own = given_->parts()[at(part)];
  const bool is_kept = choice_.plan.keeps(part, own.substeps);
  left_ = stepped_->parts()[at(part)].component;  // batches refer to it until they are made anew
  left_undamped_ = nullptr;
  if (auto undamped = undamped_.extract(part)) left_undamped_ = std::move(undamped.mapped());
  if (auto twins = damped_.extract((left_undamped_ != nullptr ? left_undamped_ : left_).get())) {
    left_twins_ = std::move(twins.mapped());
  }
  const bool is_live = !live_.empty() && (is_kept || stages() > 1);
  std::shared_ptr<const Component> next =
      is_live ? live_component(*given_, live_, part, stages()) : own.component;
  if (!is_kept) {
    const StageRule rule = choice_.plan.rule_of(part);
    next = own.substeps > 1 ? staged_part(std::move(next), rule, own.substeps)
                            : staged_live_part(std::move(next), rule);
  }
  if (!may_change_.empty() && may_change_[at(part)] != 0) {
    next = staged_live_part(std::move(next), rule());
  }
  exchange_component(*stepped_, part, std::move(next));
}

void StagedRun::component_restored(int part) {
  if (is_as_given()) return;
  exchange_component(*stepped_, part, std::move(left_));
  if (left_undamped_ != nullptr) undamped_.emplace(part, std::move(left_undamped_));
}

int StagedRun::port(int scalar_port, int stage) const {
  const int own = live_.empty() ? scalar_port : live_[at(scalar_port)];
  if (stages() == 1) return own;
  return staged_port(unstaged_ != nullptr ? *unstaged_ : *given_, stages(), own, stage);
}

double StagedRun::weight(int stage) const { return std::sqrt(rule().b[at(stage)]); }

std::vector<double> StagedRun::at_all_stages(std::span<const double> by_port) const {
  const std::size_t ports = given_->scalar_ports().size();
  if (unstaged_ != nullptr && by_port.size() == ports * at(stages())) {  // idle ones, too
    std::vector<double> out(stepped().scalar_ports().size());
    for (int j = 0; j < static_cast<int>(ports); ++j) {
      for (int i = 0; i < stages() && !is_idle(j); ++i) {
        out[at(port(j, i))] = by_port[at(staged_port(*given_, stages(), j, i))];
      }
    }
    return out;
  }
  // Arrays of another length are left to the code that checks them.
  if (is_as_given() || by_port.size() != given_->scalar_ports().size()) {
    return {by_port.begin(), by_port.end()};
  }
  std::vector<double> out(stepped().scalar_ports().size());
  for (int j = 0; j < static_cast<int>(by_port.size()); ++j) {
    for (int i = 0; i < stages() && !is_idle(j); ++i) out[at(port(j, i))] = by_port[at(j)];
  }
  return out;
}

}  // namespace portwave

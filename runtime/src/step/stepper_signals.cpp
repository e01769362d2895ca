// Steps that signals, events, observers or a check of the start take part in.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "signals/signal_run.hpp"
#include "step/event_watch.hpp"
#include "step/states/start_check.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

/// Jumps of parameters in a step, or between two samples, at which it is cut.
constexpr std::size_t kMostCuts = 1000;

/// Rounding of the ends of steps, as a share of a step.
constexpr double kSame = 1e-7;

/// Parameters have the values halfway between the two of `bounds` that `now_s` lies between. Returns the later one.
double hold_at(SignalRun& signals, std::span<const double> bounds, double now_s, double same_s) {
  const auto inner = bounds.subspan(1, bounds.size() - 2);
  const auto later = std::ranges::upper_bound(inner, now_s + same_s);
  const auto next = static_cast<std::size_t>(later - inner.begin()) + 1;
  signals.hold_between(bounds[next - 1], bounds[next]);
  return bounds[next];
}

template <class Of>
std::vector<std::byte> archived(Of& of) {
  std::vector<std::byte> bytes;
  StateArchive writer = StateArchive::writer(bytes);
  of.archive(writer);
  writer.finish();
  return bytes;
}

template <class Of>
void put_back(Of& of, std::span<const std::byte> bytes) {
  StateArchive reader = StateArchive::reader(bytes);
  of.archive(reader);
}

}  // namespace

StepReport Stepper::step_with_others(double limit_s, Acting& acting) {
  engine_->enter();
  const double start_s = time_s();
  // Of the time from sample to sample: its begin, the jumps of parameters in it, and its end; empty without a jump.
  std::vector<double> bounds, cuts;
  const double same_s = kSame * options_.step_s;
  if (signals_ != nullptr) {
    sample_signals();
    if (options_.sizes) limit_s = std::min(limit_s, next_sample_s());
    const bool follows = options_.sizes || engine_->can_cut_steps();
    if (follows && signals_->has_jumping_parameters()) {
      const bool is_each = signals_every_s_ == 0.0;
      const double end_s = is_each ? start_s + options_.step_s : next_sample_s();
      const double begin_s = is_each ? start_s : end_s - signals_every_s_;
      bounds = signals_->parameter_jumps(begin_s, end_s, kMostCuts);
      if (!bounds.empty()) {
        bounds.insert(bounds.begin(), begin_s);
        bounds.push_back(end_s);
        const double next_s = hold_at(*signals_, bounds, start_s, same_s);
        if (options_.sizes) limit_s = std::min(limit_s, next_s);
      }
    }
    for (const double jump_s : bounds) {
      if (options_.sizes) break;
      if (jump_s > start_s + same_s && jump_s < start_s + options_.step_s - same_s) {
        cuts.push_back(jump_s);
      }
    }
    drive_parameters();
  }
  // Switches that open and close within the step let impulses act.
  if (engine_->can_cut_steps() && start_check_ != nullptr &&
      start_check_->constraints().may_change()) {
    for (const double jump_s : engine_->sudden_inputs()) {
      const auto is_same = [&](double other_s) { return std::abs(other_s - jump_s) <= same_s; };
      if (std::ranges::none_of(cuts, is_same)) cuts.push_back(jump_s);
    }
    std::ranges::sort(cuts);
  }
  if (start_check_ != nullptr) {
    const double most_s =
        cuts.empty() ? std::min(options_.step_s, limit_s - start_s) : cuts.front() - start_s;
    limit_s = std::min(limit_s, start_check_->before_step(most_s));
  }
  StepReport report;
  if (cuts.empty()) {
    report = engine_->step_towards(limit_s);
    if (start_check_ != nullptr) start_check_->after_step(report);
  } else {
    std::map<int, std::shared_ptr<const Component>> components;
    std::vector<std::byte> signals;
    if (signals_ != nullptr) {
      for (const SignalGraph::ParameterActuator& own : signals_->graph().parameter_actuators()) {
        components.emplace(own.part, system().parts()[at(own.part)].component);
      }
      signals = archived(*signals_);
    }
    const std::vector<std::byte> check =
        start_check_ != nullptr ? archived(*start_check_) : std::vector<std::byte>();
    StepReport between;  // energies of impulses at the ends of parts
    const auto before = [&](double begin_s, double end_s) {
      if (start_check_ != nullptr) start_check_->after_step(between);
      if (!bounds.empty()) hold_at(*signals_, bounds, begin_s, same_s);
      if (signals_ != nullptr) drive_parameters();
      if (start_check_ != nullptr) start_check_->before_step(end_s - begin_s);
    };
    const auto undo = [&] {
      for (const auto& [part, component] : components) {
        const std::shared_ptr<const Component> present = system().parts()[at(part)].component;
        if (present == component) continue;
        exchange_component(*own_system_, part, component);
        engine_->component_changed(part, 0.0);
        note_exchange(part, present);
      }
    };
    try {
      report = engine_->step_with_cuts(options_.step_s, {cuts, before, undo});
    } catch (const std::exception&) {
      if (signals_ != nullptr) put_back(*signals_, signals);
      if (!check.empty()) {
        start_check_ = StartCheck::made(*engine_, options_);
        put_back(*start_check_, check);
      }
      throw;
    }
    if (start_check_ != nullptr) start_check_->after_step(report);
    report.energy.changed_J += between.energy.changed_J;
    report.energy.supplied_J += between.energy.supplied_J;
  }
  if (signals_ != nullptr) sample_if_possible();
  if (events_ != nullptr) events_->look(*engine_, start_s, time_s());
  look(report);
  if (!observers_.empty()) {
    acting.be(Activity::Kind::told);
    tell(report);
  }
  return report;
}

}  // namespace portwave

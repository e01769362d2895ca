#include "step/sizes/trial_steps.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/coenergy.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave {
namespace {

constexpr double kWithoutEnd = std::numeric_limits<double>::infinity();

/// Places at which an input is seen at least.
constexpr int kSeen = 3;

}  // namespace

/// Errors of steps add up, and the finer they are the more there are of them: with this share of the tolerance errors
/// at the end go with the tolerance itself, not with its power p/(p+1).
double TrialSteps::tolerance_of_step(const StepSizes& sizes, int order) {
  constexpr double kOfStep = 0.25, kCoarse = 1e-3;
  return kOfStep * std::pow(std::min(sizes.tolerance / kCoarse, 1.0), 1.0 / order) *
         sizes.tolerance;
}

TrialSteps::TrialSteps(const NetworkModel& model, NetworkMethod& method, NetworkTrials& trials,
                       const StepSizes& sizes, double largest_s, std::span<const Watch> watches)
    : model_(&model),
      method_(&method),
      trials_(&trials),
      smallest_s_(sizes.smallest_s),
      tolerance_(tolerance_of_step(sizes, trials.order())),
      of_whole_(tolerance_ / sizes.tolerance),
      control_(trials.suited_step_s(tolerance_),
               longest_for_periods(model.system(), sizes, largest_s), sizes.smallest_s,
               trials.power()),
      scales_(model.system(), model.blocks()),
      crossings_(*this, watches,
                 sizes.event_tolerance_s > 0.0 ? sizes.event_tolerance_s
                                               : StepSizes::kEventShare * largest_s,
                 method.state().data()),
      changes_(model.system()),
      pulses_(model.system(), gauss_stages(kSeen)) {}

NetworkStep TrialSteps::step(double limit_s, const ForEach& each, StepReport& report) {
  const double start_s = method_->clock().time_s();
  const double kink_s = changes_.next(start_s, 2.0 * control_.step_s());
  double end_s = std::min(limit_s, kink_s);
  if (event_s_ > start_s) end_s = std::min(end_s, event_s_);
  for (report.rejected_steps = 0;; ++report.rejected_steps) {
    const SizeControl::Next next = control_.next(start_s, end_s);
    if (control_.can_shrink(next, start_s) && pulses_.within(start_s, next.step_s)) {
      ++statistics_.rejected;
      control_.halve(next);
      continue;
    }
    double error = 0.0;
    if (!attempt(next, start_s, each, error)) continue;
    const double reached_s = next.reaches_limit ? end_s : start_s + next.step_s;
    if (!ends_at_event(start_s, next.step_s, reached_s)) {
      ++statistics_.shortened;
      end_s = std::min(end_s, event_s_);
      continue;
    }
    const NetworkStep done = trials_->commit(reached_s);
    scales_.accept();
    crossings_.accept(reached_s, method_->state().data());
    control_.accept(next, error);
    report.step_s = next.step_s;
    report.error = error * of_whole_;
    count(next.step_s);
    if (next.reaches_limit && (end_s == kink_s || (end_s == event_s_ && event_changes_))) {
      inputs_jump();
    }
    return done;
  }
}

/// Whether a step was good enough. `error`: relative to the tolerance.
bool TrialSteps::attempt(const SizeControl::Next& next, double start_s, const ForEach& each,
                         double& error) {
  error = kWithoutEnd;
  if (trials_->attempt(next.step_s, each)) {
    trials_->measure(scales_.start(), scales_.energies());
    error = trials_->error_of(scales_.amplitude(), tolerance_) / tolerance_;
    if (error <= 1.0) return true;
  }
  if (!control_.can_shrink(next, start_s)) give_up(next.step_s, error);
  ++statistics_.rejected;
  control_.reject(next, error);
  return false;
}

void TrialSteps::exchange(const NetworkModel& model, NetworkMethod& method, NetworkTrials& trials) {
  model_ = &model;
  method_ = &method;
  trials_ = &trials;
  restart();
}

void TrialSteps::restart() {
  inputs_jump();
  crossings_.accept(method_->clock().time_s(), method_->state().data());
}

/// False if an event lies before the end of an attempted step, which must then end there.
bool TrialSteps::ends_at_event(double start_s, double step_s, double end_s) {
  if (crossings_.empty()) return true;
  const CrossingSearch::End event =
      crossings_.end_for(start_s, step_s, control_.step_s(), trials_->attempted().data());
  if (!(event.time_s < end_s)) return true;
  event_s_ = event.time_s;
  event_changes_ = event.changes_equations;
  return false;
}

int TrialSteps::size_of(int part) const {
  const int block = model_->block_of_part(part);
  return block < 0 ? 0 : model_->blocks()[at(block)].size;
}

void TrialSteps::get_state(int part, const double* record, double* state) const {
  const int block = model_->block_of_part(part);
  if (block < 0) return;
  const NetworkBlock& own = model_->blocks()[at(block)];
  std::copy_n(record + own.first, own.size, state);
}

double TrialSteps::within(int part, int state, double /*x*/, double theta) const {
  const NetworkBlock& block = model_->blocks()[at(model_->block_of_part(part))];
  double value = 0.0;
  trials_->state_within(NetworkTrials::Step::attempted, block.first + state, theta, {&value, 1});
  return value;
}

double TrialSteps::quantity(const Sensor& of, double theta) const {
  using Step = NetworkTrials::Step;
  const auto find_state = [&](int part) {
    const NetworkBlock& block = model_->blocks()[at(model_->block_of_part(part))];
    state_.resize(at(block.size));
    trials_->state_within(Step::attempted, block.first, theta, state_);
  };
  const std::span<const Part> parts = model_->system().parts();
  if (of.kind == Sensor::Kind::coenergy) {
    find_state(of.part);
    return coenergy(*parts[at(of.part)].component, state_.data(), of.index);
  }
  if (of.kind == Sensor::Kind::storage) {
    double stored_J = 0.0;
    for (int part = of.part; part <= of.part + of.index; ++part) {
      if (model_->block_of_part(part) < 0) continue;
      find_state(part);
      stored_J += parts[at(part)].port_hamiltonian()->storage(state_.data());
    }
    return stored_J;
  }
  effort_.resize(model_->system().scalar_ports().size());
  flow_.resize(effort_.size());
  trials_->ports_within(Step::attempted, theta, effort_, flow_);
  return (of.kind == Sensor::Kind::effort ? effort_ : flow_)[at(of.index)];
}

void TrialSteps::count(double step_s) {
  if (step_s != statistics_.last_s) ++statistics_.changes;
  statistics_.last_s = step_s;
  statistics_.smallest_s = std::min(statistics_.smallest_s, step_s);
  statistics_.largest_s = std::max(statistics_.largest_s, step_s);
}

void TrialSteps::give_up(double step_s, double error) const {
  const std::string limit =
      smallest_s_ > 0.0 ? fmt::format("allowed (/time/step/smallest_s is {:g})", smallest_s_)
                        : std::string("possible");
  if (std::isinf(error)) {
    throw NetworkFault(-1, -1, StepFault::too_inaccurate,
                       fmt::format("a step of {:.3g} s cannot be taken, and shorter ones are not "
                                   "{}: {}",
                                   step_s, limit, trials_->obstacle()));
  }
  throw NetworkFault(
      scales_.worst_part(), -1, StepFault::too_inaccurate,
      fmt::format(
          "a step of {:.3g} s is off by {:.3g} times the tolerance, and shorter ones are not "
          "{}. Remedies: a larger /time/step/tolerance, a smaller /time/step/smallest_s, or "
          "wave coupling ({{\"kind\": \"auto\"}})",
          step_s, error, limit));
}

void TrialSteps::archive(StateArchive& archive) {
  trials_->archive_trials(archive);
  control_.archive(archive);
  scales_.archive(archive);
  crossings_.archive(archive);
  changes_.archive(archive);
  pulses_.archive(archive);
  archive.values(event_s_, event_changes_, statistics_);
  archive.expect(!std::isnan(event_s_), "the time that a step ends at");
  const StepSizeStatistics& s = statistics_;
  archive.expect_counts(
      {s.rejected, s.rejected_for_coupling, s.comparisons, s.shortened, s.changes},
      "the number of steps so far");
}

}  // namespace portwave

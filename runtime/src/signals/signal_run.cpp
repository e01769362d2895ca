#include "signals/signal_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/state_bytes.hpp"
#include "signals/table_span.hpp"

namespace portwave {

namespace {

/// Rounded down, also below 0.
std::int64_t quotient(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

constexpr double kNone = std::numeric_limits<double>::infinity();

/// The first time in (after_s, until_s] at which a table or an expression jumps, or changes by a twentieth in less than
/// `short_s`. Infinite if there is none.
double next_jump(const Signal& f, double after_s, double until_s, double short_s) {
  constexpr double kJump = 1e-6, kSteep = 0.05;
  const auto next = [&](double time_s) {
    return std::min(f.next_kink(time_s), f.next_change(time_s, until_s));
  };
  // Beside what it is a little before and after: at a kink from 0 on all values next to it are small.
  const auto differ = [&](double a_s, double b_s, double share) {
    double size = 0.0;
    for (const double time_s : {a_s - short_s, a_s, b_s, b_s + short_s}) {
      size = std::max(size, std::abs(f(time_s)));
    }
    return std::abs(f(a_s) - f(b_s)) > share * size;
  };
  for (double time_s = next(after_s); time_s <= until_s;) {
    const double beside_s =
        16.0 * std::numeric_limits<double>::epsilon() * std::max(std::abs(time_s), short_s);
    if (differ(time_s - beside_s, time_s + beside_s, kJump)) return time_s;
    const double other_s = next(time_s);
    if (other_s - time_s < short_s && differ(time_s, other_s, kSteep)) {
      return std::midpoint(time_s, other_s);
    }
    time_s = other_s;
  }
  return kNone;
}

}  // namespace

SignalRun::SignalRun(std::shared_ptr<const SignalGraph> graph, double step_s, std::int64_t first,
                     Reader reader)
    : graph_(std::move(graph)), step_s_(step_s), first_(first), reader_(std::move(reader)) {
  values_.assign(at(graph_->signals()), 0.0);
  states_.assign(at(graph_->states()), 0.0);
  std::size_t most = 0;
  for (const SignalGraph::Node& node : graph_->nodes()) {
    most = std::max(most, node.inputs.size());
    if (node.block == nullptr) continue;
    node.block->start({states_.data() + node.first_state, at(node.block->shape().states)});
    if (node.block->is_settable())
      settable_.push_back(static_cast<int>(&node - graph_->nodes().data()));
  }
  next_values_ = values_;
  next_states_ = states_;
  gathered_.resize(most);
  in_force_.assign(graph_->parameter_actuators().size(), kNone);
  for (const SignalGraph::ParameterActuator& own : graph_->parameter_actuators()) {
    const Signal* const function = held_function(*graph_, own);
    if (function == nullptr) continue;
    const bool has_knots = function->table_span().has_value();
    if (has_knots || (function->expression() != nullptr && function->can_change_over())) {
      jumping_.push_back({function, own.signal, -kNone, kNone});
    }
  }
}

std::vector<double> SignalRun::parameter_jumps(double begin_s, double end_s, std::size_t most) {
  constexpr double kSame = 1e-7, kShort = 1.0 / 64.0, kAhead = 64.0;  // of the time
  const double whole_s = end_s - begin_s, same_s = kSame * whole_s, short_s = kShort * whole_s;
  std::vector<double> out;
  for (Jumping& own : jumping_) {
    if (own.calm_from_s <= begin_s && end_s <= own.calm_until_s) continue;
    const double ahead_s = begin_s + kAhead * whole_s;
    double time_s = next_jump(*own.function, begin_s + same_s, ahead_s, short_s);
    own.calm_from_s = begin_s;
    own.calm_until_s = std::min(time_s, ahead_s) - same_s;
    while (time_s < end_s - same_s) {
      if (out.size() == most) return {};
      out.push_back(time_s);
      // What is as steep as a jump lies on both sides of its middle.
      time_s = next_jump(*own.function, time_s + same_s, end_s, short_s);
    }
  }
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(
      out, [same_s](double before, double after) { return after - before <= same_s; });
  out.erase(repeated.begin(), repeated.end());
  return out;
}

void SignalRun::hold_between(double begin_s, double end_s) {
  for (const Jumping& own : jumping_) {
    values_[at(own.signal)] =
        own.function->at_sample(std::midpoint(begin_s, end_s), end_s - begin_s);
  }
}

SampleFault SignalRun::sample(std::int64_t step, double time_s) {
  std::ranges::copy(values_, next_values_.begin());
  std::ranges::copy(states_, next_states_.begin());
  int current = -1;
  try {
    for (const int number : graph_->order()) {
      const SignalGraph::Node& node = graph_->nodes()[at(number)];
      if (!is_due(node, step)) continue;
      current = number;
      evaluate(node, step, time_s);
      for (int i = 0; i < node.outputs; ++i) {
        const double value = next_values_[at(node.first_output + i)];
        if (!std::isfinite(value)) {
          return {number, false,
                  fmt::format("{} is {}", graph_->label(node.first_output + i), value)};
        }
      }
    }
    for (const int number : graph_->order()) {
      const SignalGraph::Node& node = graph_->nodes()[at(number)];
      if (!is_due(node, step) || node.block == nullptr) continue;
      if (node.block->shape().feeds_through) continue;  // done with its outputs
      current = number;
      node.block->update(when(node, step, time_s), gather(node),
                         {&next_values_[at(node.first_output)], at(node.outputs)},
                         {next_states_.data() + node.first_state, at(node.block->shape().states)});
    }
  } catch (const std::exception& error) {
    return {current, true, error.what()};
  } catch (...) {
    return {current, true, "an exception that is no std::exception"};
  }
  values_.swap(next_values_);
  states_.swap(next_states_);
  sampled_s_ = time_s;
  return {};
}

/// Samples of a block are counted from its first one in the run.
SampleTime SignalRun::when(const SignalGraph::Node& node, std::int64_t step, double time_s) const {
  const std::int64_t index = quotient(multiple(step), node.every) - quotient(first_, node.every);
  return {time_s, node.every * step_s_, index};
}

void SignalRun::evaluate(const SignalGraph::Node& node, std::int64_t step, double time_s) {
  double* const out = &next_values_[at(node.first_output)];
  if (node.block == nullptr) {
    *out = reader_(node.sensor);
    return;
  }
  const SampleTime when = this->when(node, step, time_s);
  const std::span<double> x(next_states_.data() + node.first_state, at(node.block->shape().states));
  const std::span<double> y(out, at(node.outputs));
  if (node.block->shape().feeds_through) {
    // All that its inputs follow from has been evaluated: they do not change any more.
    node.block->sample(when, gather(node), y, x);
  } else {
    node.block->output(when, gather(node), x, y);
  }
}

std::span<const double> SignalRun::gather(const SignalGraph::Node& node) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    gathered_[i] = next_values_[at(node.inputs[i])];
  }
  return {gathered_.data(), node.inputs.size()};
}

bool SignalRun::actuate(std::span<double> settings) const {
  bool changes = false;
  for (const SignalGraph::Actuator& actuator : graph_->actuators()) {
    double& held = settings[at(actuator.slot)];
    const double value = values_[at(actuator.signal)];
    changes |= held != value;
    held = value;
  }
  return changes;
}

int SignalRun::next_change(int first) const {
  while (first < std::ssize(in_force_) && in_force_[at(first)] == wanted(first)) ++first;
  return first;
}

void SignalRun::archive(StateArchive& archive) {
  archive.value(first_);
  archive.expect(std::abs(first_) <= StateArchive::kMostSteps, "the first sample");
  archive.array(values_);
  archive.array(states_);
  archive.expect_finite(values_, "a signal");
  archive.array(in_force_);
  archive_programs(archive, states_);
  if (settable_.empty()) return;
  archive.array(next_values_);
  archive.array(next_states_);
  archive_programs(archive, next_states_);
  archive.value(sampled_s_);
}

/// States that blocks keep by themselves, as FMUs do, go as bytes.
void SignalRun::archive_programs(StateArchive& archive, std::vector<double>& states) {
  for (const SignalGraph::Node& node : graph_->nodes()) {
    const auto* const program = dynamic_cast<const StateBytes*>(node.block.get());
    if (program == nullptr) continue;
    double* const x = states.data() + node.first_state;
    std::vector<std::byte> bytes;
    if (!archive.reads()) bytes = program->write_states(x);
    archive.vector(bytes);
    if (!archive.reads()) continue;
    try {
      program->read_states(bytes, x);
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("block {}: {}", in_quotes(node.name), error.what()));
    }
  }
}

std::size_t SignalRun::bytes() const {
  return sizeof(double) * (2 * values_.capacity() + 2 * states_.capacity() + gathered_.capacity() +
                           in_force_.capacity());
}

}  // namespace portwave

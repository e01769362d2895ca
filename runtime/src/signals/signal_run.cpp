#include "signals/signal_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {

namespace {

/// Rounded down, also below 0.
std::int64_t quotient(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

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
  }
  next_values_ = values_;
  next_states_ = states_;
  gathered_.resize(most);
  in_force_.assign(graph_->parameter_actuators().size(), std::numeric_limits<double>::infinity());
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
}

std::size_t SignalRun::bytes() const {
  return sizeof(double) * (2 * values_.capacity() + 2 * states_.capacity() + gathered_.capacity() +
                           in_force_.capacity());
}

}  // namespace portwave

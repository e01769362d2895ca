#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "portwave/runtime/signals/signal_graph.hpp"

namespace portwave {

class StateArchive;

/// The failure of a sample: its node and its cause.
struct SampleFault {
  int node = -1;
  bool threw = false;
  std::string detail;

  bool ok() const { return node < 0; }
};

/// The signals of one run: their values, and the states of the blocks. A sample is taken or
/// discarded as a whole. Does not allocate after construction.
class SignalRun {
 public:
  /// Reads a sensor. Errors: as it likes, which end the sample.
  using Reader = std::function<double(const Sensor&)>;

  /// `first`: multiple of the period of samples at or before the start of the run.
  SignalRun(std::shared_ptr<const SignalGraph> graph, double step_s, std::int64_t first,
            Reader reader);

  const SignalGraph& graph() const { return *graph_; }
  /// Sample `step` of the run, at `time_s`. A block that is sampled every so many times is at the first,
  /// and then at multiples of its period. A fault leaves everything as it was.
  SampleFault sample(std::int64_t step, double time_s);
  /// The multiple of the period of samples that sample `step` is at.
  std::int64_t multiple(std::int64_t step) const { return first_ + step; }
  std::span<const double> values() const { return values_; }
  /// Writes the actuators' values to the settings of the system. True when any of them changes.
  bool actuate(std::span<double> settings) const;
  /// Whether parameters follow signals whose values are others than those in force, from number `first` on:
  /// the number of the first one, or that of all.
  int next_change(int first) const;
  /// The value that a parameter is to have, and that it has it now.
  double wanted(int parameter) const {
    return values_[static_cast<std::size_t>(
        graph_->parameter_actuators()[static_cast<std::size_t>(parameter)].signal)];
  }
  double in_force(int parameter) const { return in_force_[static_cast<std::size_t>(parameter)]; }
  void note_in_force(int parameter) {
    in_force_[static_cast<std::size_t>(parameter)] = wanted(parameter);
  }
  /// Whether parameters follow functions of time (held_function) that may jump.
  bool has_jumping_parameters() const { return !jumping_.empty(); }
  /// The times in (begin_s, end_s) at which they jump, in order; no more than `most`, else none, and the value halfway
  /// holds. A piece of less than 1/64 of that time, such as the edge of a table, counts as a jump.
  std::vector<double> parameter_jumps(double begin_s, double end_s, std::size_t most);
  /// From now on these parameters have the values halfway between two times, instead of those of the sample.
  void hold_between(double begin_s, double end_s);
  /// Nodes that can be set, in order (Block::is_settable).
  std::span<const int> settable() const { return settable_; }
  double setting(int k) const { return states_[state_of(k)]; }
  /// `undo`: the last sample is to be taken again, and is undone; no sample may have been read back since.
  void set(int k, double value, bool undo) {
    if (undo) {
      values_.swap(next_values_);
      states_.swap(next_states_);
    }
    states_[state_of(k)] = value;
  }
  /// When the last sample was taken [s].
  double sampled_s() const { return sampled_s_; }
  std::size_t bytes() const;
  void archive(StateArchive& archive);

 private:
  /// A function of time that a parameter follows, and that may jump.
  struct Jumping {
    const Signal* function;
    int signal;
    double calm_until_s;  ///< it is known not to jump before
    double calm_from_s;   ///< from here on
  };
  bool is_due(const SignalGraph::Node& node, std::int64_t step) const {
    return step == 0 || multiple(step) % node.every == 0;
  }
  SampleTime when(const SignalGraph::Node& node, std::int64_t step, double time_s) const;
  void evaluate(const SignalGraph::Node& node, std::int64_t step, double time_s);
  std::size_t state_of(int k) const {
    const int node = settable_[static_cast<std::size_t>(k)];
    return static_cast<std::size_t>(graph_->nodes()[static_cast<std::size_t>(node)].first_state);
  }
  std::span<const double> gather(const SignalGraph::Node& node);
  void archive_programs(StateArchive& archive, std::vector<double>& states);

  std::shared_ptr<const SignalGraph> graph_;
  double step_s_;
  std::int64_t first_;
  Reader reader_;
  std::vector<double> values_, next_values_;
  std::vector<double> states_, next_states_;  // after a sample "next" are those before it
  std::vector<int> settable_;
  double sampled_s_ = -std::numeric_limits<double>::infinity();
  std::vector<double> gathered_;  // inputs of one block
  std::vector<Jumping> jumping_;
  std::vector<double> in_force_;  // of parameters that follow signals; infinite: as the part began
};

}  // namespace portwave

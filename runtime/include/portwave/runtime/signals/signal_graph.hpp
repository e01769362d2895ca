#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/signals/block.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A sensor: measures a state of a part or its co-energy variable, its stored energy, or effort or flow of a scalar port (means over
/// the last step, 0 before the first).
struct Sensor {
  enum class Kind { state, effort, flow, storage, coenergy };
  Kind kind = Kind::state;
  int part = 0;
  /// State of the part, or scalar port of the system; the storage of the part includes that of this many
  /// parts after it.
  int index = 0;
};

/// Sensors, blocks and actuators, joined and put in order: a controller, immutable. A stepper that
/// is given one (StepperOptions::signals) samples it before every step and holds the settable
/// inputs that it drives.
class SignalGraph {
 public:
  /// A sensor or a block in place.
  struct Node {
    std::string name;
    int every = 1;  ///< sampled before every this many macro-steps, the first included
    std::shared_ptr<const Block> block;  ///< null: a sensor
    Sensor sensor;
    std::vector<int> inputs;  ///< signals
    int first_output = 0;     ///< its signals begin here
    int outputs = 1;
    int first_state = 0;
    std::uint64_t digest = 0;  ///< Block::digest, or the digest given for a block that has none
  };
  /// A settable input and the signal that drives it.
  struct Actuator {
    int signal;
    int slot;
  };
  /// Makes the component that takes the place of `present`, with another value of one parameter.
  /// Errors: ConfigError for a value that the parameter may not have; std::exception.
  using ParameterChange =
      std::function<std::shared_ptr<const Component>(const Component& present, double value)>;
  /// A parameter of a part and the signal that it follows. Where a sample has changed the value, the part is
  /// exchanged before the step (Stepper::set_component): the value holds over the whole step, and the stored energy
  /// that the change adds or takes counts as supplied.
  struct ParameterActuator {
    int signal;
    int part;
    std::string parameter;
    ParameterChange with;
  };

  /// In the order in which they were added.
  std::span<const Node> nodes() const { return nodes_; }
  /// Node numbers in the order of evaluation.
  std::span<const int> order() const { return order_; }
  std::span<const Actuator> actuators() const { return actuators_; }
  std::span<const ParameterActuator> parameter_actuators() const { return parameter_actuators_; }
  int signals() const { return signals_; }  ///< scalar signals: the outputs of all nodes
  int states() const { return states_; }
  /// Number of a signal: "name", or "name[1]" of a block with several outputs; −1: none.
  int find_signal(std::string_view label) const;
  /// "name" or "name[1]".
  std::string label(int signal) const;
  /// The same for steps of half the size: what is sampled before every step still is, the rest at the times it was.
  SignalGraph at_half_steps() const;

 private:
  friend class SignalGraphBuilder;
  std::vector<Node> nodes_;
  std::vector<int> order_;
  std::vector<Actuator> actuators_;
  std::vector<ParameterActuator> parameter_actuators_;
  int signals_ = 0;
  int states_ = 0;
};

/// Collects what a graph is made of, then checks everything at once. Signals are named by their
/// nodes: "pid", or "observer[1]" where a block has several outputs.
class SignalGraphBuilder {
 public:
  explicit SignalGraphBuilder(const System& system) : system_(&system) {}

  SignalGraphBuilder& sensor(std::string name, Sensor sensor, int every = 1);
  /// A null block stands for one that could not be built: its name stays known. `digest`: that of the options
  /// of a block that has none of its own.
  SignalGraphBuilder& block(std::string name, std::shared_ptr<const Block> block,
                            std::vector<std::string> inputs, int every = 1,
                            std::uint64_t digest = 0);
  /// `signal` drives an external input that is Signal::settable.
  SignalGraphBuilder& actuate(std::string signal, int part, int input);
  /// `signal` drives a parameter of a part by its name, such as "damping_Ns_per_m" or "masses_kg[1]": one number,
  /// in the parameter's unit. `with`: for parts that cannot tell their parameters (description_of), which are
  /// those with lists and matrices, and parts built by hand; null for others.
  SignalGraphBuilder& actuate_parameter(std::string signal, int part, std::string parameter,
                                        SignalGraph::ParameterChange with = nullptr);

  /// Every defect, `where` being "/blocks/3/name", "/blocks/3/inputs/0", "/actuators/0",
  /// "/parameter_actuators/0": names that are taken or not plain, signals that are not there, wrong numbers of
  /// inputs, algebraic loops (named block by block), inputs and parameters that are driven twice or cannot be
  /// set.
  Issues check() const;
  /// Errors: ConfigError with everything that `check` finds.
  SignalGraph build() const;

 private:
  struct PendingNode {
    std::string name;
    std::shared_ptr<const Block> block;
    bool is_sensor = false;
    Sensor sensor;
    std::vector<std::string> inputs;
    int every = 1;
    std::uint64_t digest = 0;
  };
  struct PendingActuator {
    std::string signal;
    int part;
    int input;
  };
  struct PendingParameter {
    std::string signal;
    int part;
    std::string parameter;
    SignalGraph::ParameterChange with;
  };
  class Draft;

  const System* system_;
  std::vector<PendingNode> nodes_;
  std::vector<PendingActuator> actuators_;
  std::vector<PendingParameter> parameters_;
};

}  // namespace portwave

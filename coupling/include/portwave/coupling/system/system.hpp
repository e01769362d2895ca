#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/system/cut_name.hpp"
#include "portwave/coupling/system/dirac.hpp"
#include "portwave/coupling/system/system_slice.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/signal.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace PORTWAVE_EXPORT portwave {

class CataloguePart;

/// How ports are joined. Ports of dimension d are joined entry by entry, except by
/// SkewGain and Kernel, whose matrices run over all scalar ports in the order given.
namespace joint {
struct Connection {};    ///< two ports: e₁ = e₂, f₁ + f₂ = 0
struct CommonEffort {};  ///< 0-junction, two or more ports
struct CommonFlow {};    ///< 1-junction, two or more ports
struct Transformer {     ///< two ports: e₁ = n e₂, f₂ = −n f₁
  double ratio = 1.0;
};
struct Gyrator {  ///< two ports: e₁ = r f₂, e₂ = −r f₁
  double ratio = 1.0;
};
struct SkewGain {  ///< u = −Ĉ y
  Eigen::MatrixXd gain;
};
struct Kernel {  ///< E e + F f = 0
  Eigen::MatrixXd E;
  Eigen::MatrixXd F;
};
struct Free {};     ///< one port: e = 0
struct Fixed {};    ///< one port: f = 0
struct Resistive {  ///< one port: e = −r f
  double resistance = 0.0;
};
}  // namespace joint

using Joint = std::variant<joint::Connection, joint::CommonEffort, joint::CommonFlow,
                           joint::Transformer, joint::Gyrator, joint::SkewGain, joint::Kernel,
                           joint::Free, joint::Fixed, joint::Resistive>;

/// The point at which a step from t of size h samples an external input: scale · u(t + h/2 + shift·h). With
/// one stage, the middle of the step. `begin` and `length`: its substep, also relative to the middle of the
/// step and in shares of h; `tau`, `stages`: as Signal::StepPlace.
struct InputNode {
  double shift = 0.0;
  double scale = 1.0;
  double begin = -0.5;
  double length = 1.0;
  double tau = 0.5;
  int stages = 1;
};

/// A part in place: its name, component, initial state and external inputs.
struct Part {
  std::string name;
  std::shared_ptr<const Component> component;  ///< immutable: equal parts may share one
  std::vector<double> initial_state;
  std::vector<Signal> inputs;                ///< one per external input
  std::vector<bool> input_is_driven;         ///< false: that input stays 0
  bool is_termination = false;               ///< made by joint::Resistive, named "<part>.<port>"
  std::vector<InputNode> input_nodes = {};   ///< one per external input; empty: the middle for all
  int substeps = 1;                          ///< its own steps within each step (staged_part)
  std::optional<StageKind> integrator = {};  ///< empty: that of the run
  StageDamping damping = {};                 ///< where `integrator` is `damped`

  /// ū of an input in the step of `step_s` around `mid_s`; settable inputs are taken from
  /// `set_values` (see Signal::at). `moved`: as in Signal::in_step.
  double input_at(std::size_t input, double mid_s, double step_s,
                  std::span<const double> set_values = {},
                  const Signal::MovedJump* moved = nullptr) const {
    const InputNode node = input_nodes.empty() ? InputNode{} : input_nodes[input];
    return node.scale *
           inputs[input].in_step({mid_s + node.shift * step_s, mid_s + node.begin * step_s,
                                  node.length * step_s, node.tau, node.stages},
                                 set_values, moved);
  }

  /// Its physics; null: the part is opaque.
  const Subsystem* port_hamiltonian() const { return component->port_hamiltonian(); }
};

/// Why a method that works on the equations of parts cannot take this one: "… is opaque: …". For
/// parts without physics.
std::string opaque_defect(const Part& part);

/// The objection of a solver without waves to part number `index`: it is opaque, has a nonlinear resistance
/// at its ports, or takes substeps. Empty if there is none.
std::optional<Issue> wave_only_defect(const Part& part, std::size_t index);

/// One scalar port of the system: entry `entry` of port `port` of part `part`.
struct ScalarPort {
  int part;
  int port;
  int entry;
};

struct LiveSystem;
struct StagePlan;

/// A coupled system, immutable: parts, and junctions over scalar ports numbered in part order.
/// Steppers and references keep its address: do not move it while one is alive.
class System {
 public:
  System(System&&) = default;
  System& operator=(System&&) = default;

  std::span<const Part> parts() const { return parts_; }
  /// Junctions, `waves` being scalar port numbers.
  std::span<const Junction> junctions() const { return junctions_; }
  std::span<const ScalarPort> scalar_ports() const { return scalar_ports_; }

  /// The settable inputs, by slot (Signal::settable). Pieces of a part that was cut share those of the
  /// part, and the first piece is named here.
  struct SettableInput {
    int part;
    int input;
    double initial;
  };
  std::span<const SettableInput> settable_inputs() const { return settable_inputs_; }
  /// Initial values of the settable inputs, by slot.
  std::vector<double> initial_settings() const;
  /// The slot of an external input of a part; -1 where there is none or it is not settable.
  int find_setting(int part, int input) const;
  /// "part.input" of a settable input.
  std::string input_label(const SettableInput& input) const;

  /// Number of the first scalar port of a part, or of one of its ports.
  int first_scalar_port(int part) const {
    return first_scalar_port_[static_cast<std::size_t>(part)];
  }
  int first_scalar_port(int part, int port) const;

  /// -1 when there is none of that name.
  int find_part(std::string_view name) const;
  /// {part, port} of "part.port"; {-1, -1} when there is none.
  std::pair<int, int> find_port(std::string_view path) const;

  /// Parts that were cut (add_pieces), in the order of their pieces.
  std::span<const CutName> cuts() const { return cuts_; }
  /// The cut of that name, or the cut that made a part; null where there is none.
  const CutName* find_cut(std::string_view name) const;
  const CutName* cut_with(int part) const;
  /// A part's name for users: a piece has the name of the part that was cut.
  const std::string& name_of_part(int part) const;

  /// Islands: the connected components of the coupling graph, numbered by their first part.
  int island_count() const { return island_count_; }
  int island_of_part(int part) const { return island_of_part_[static_cast<std::size_t>(part)]; }

  /// "part.port" or "part.port[entry]".
  std::string port_label(int scalar_port) const;

  /// Null unless this is a slice of a larger system.
  const SystemSlice* slice() const { return slice_.get(); }

 private:
  friend class SystemBuilder;
  friend System staged_system(const System& system, const StagePlan& plan);
  friend LiveSystem live_system(const System& system, int stages);
  friend void exchange_component(System& system, int part,
                                 std::shared_ptr<const Component> component);
  friend System gathered_system(std::span<const System* const> systems, const double* states);
  friend void make_slice(System& system, SystemSlice slice, std::vector<int> island_of_part);
  System() = default;

  std::vector<Part> parts_;
  std::vector<Junction> junctions_;
  std::vector<ScalarPort> scalar_ports_;
  std::vector<int> first_scalar_port_;
  std::vector<int> island_of_part_;
  int island_count_ = 0;
  std::vector<SettableInput> settable_inputs_;
  std::vector<int> parts_by_name_;  ///< part numbers in the order of the names
  std::vector<CutName> cuts_;
  std::shared_ptr<const SystemSlice> slice_;
};

/// Collects parts and couplings, then checks everything at once.
///
/// Ports are written "part.port". Issues carry JSON pointers into the lists as they were added:
/// "/subsystems/2/initial_state", "/couplings/0/ports/1".
class SystemBuilder {
 public:
  struct PartOptions {
    std::vector<double> initial_state = {};  ///< empty: the part's default
    std::map<std::string, Signal, std::less<>> inputs = {};
    /// 1 to kMostPartSubsteps: steps that the part takes within each step, for one that is faster than
    /// those it is coupled with. Wave coupling only.
    int substeps = 1;
    /// Whether its steps are damped; empty: as the method of the run says. Wave coupling only.
    std::optional<StageKind> integrator = {};
    /// How much of it is damped, where `integrator` is `damped`.
    StageDamping damping = {};
  };

  /// Adds a part. A null component stands for one that could not be built (its defects are reported
  /// elsewhere): the name stays known, and couplings to it are not reported as missing.
  /// Equal parts may share one component.
  SystemBuilder& add(std::string name, std::shared_ptr<const Component> component,
                     PartOptions options);
  SystemBuilder& add(std::string name, std::shared_ptr<const Component> component) {
    return add(std::move(name), std::move(component), {});
  }
  /// Adds a part of the catalogue, as in add("wheel", parts::mass({.mass_kg = 2})). Its defects are those of the
  /// builder, and name the part.
  SystemBuilder& add(std::string name, const CataloguePart& part, PartOptions options);
  SystemBuilder& add(std::string name, const CataloguePart& part) {
    return add(std::move(name), part, {});
  }
  /// For a slice (SliceBuilder): a part that another process steps. Ports without a joint here are
  /// free.
  SystemBuilder& add_outside(std::string name, std::shared_ptr<const Component> component);
  /// Declares that the parts added next, as many as the cut has pieces, are those of a cut part; called by
  /// add_pieces.
  SystemBuilder& begin_cut(CutName cut);
  SystemBuilder& join(Joint joint, std::vector<std::string> ports);
  /// Reserves room for this many further parts and couplings.
  SystemBuilder& reserve(std::size_t parts, std::size_t couplings);
  /// join(Connection)
  SystemBuilder& connect(std::string port_1, std::string port_2);

  /// Every defect: parameters that are not allowed, duplicate or empty names, wrong state sizes, unknown inputs, parts or ports,
  /// wrong arities, dimensions and domains, ports used twice or left open, matrices that are no
  /// Dirac structure, non-finite numbers.
  Issues check() const;

  /// Errors: ConfigError with everything `check` finds. The builder is spent afterwards.
  System build();

 private:
  struct PendingPart {
    std::string name;
    std::shared_ptr<const Component> component;
    PartOptions options;
    bool is_outside = false;
    Issues defects = {};  ///< why there is no component
  };
  struct PendingJoint {
    Joint joint;
    std::vector<std::string> ports;
  };
  struct Draft;

  Issues check_into(Draft& draft) const;

  std::vector<PendingPart> parts_;
  std::vector<PendingJoint> joints_;
  std::vector<CutName> cuts_;
};

}  // namespace portwave

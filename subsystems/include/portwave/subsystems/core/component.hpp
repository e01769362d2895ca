#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/port.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace PORTWAVE_EXPORT portwave {

class Subsystem;
struct PartType;

/// Names, units and shapes of a part: everything that a coupling, a recorder or a listing needs to know.
struct Signature {
  std::string type;                   ///< catalogue name, e.g. "duffing_oscillator"
  std::vector<StateVariable> states;  ///< n entries
  std::vector<Port> ports;
  std::vector<ExternalInput> inputs;  ///< external inputs

  int state_size() const { return static_cast<int>(states.size()); }
  /// Scalar ports: the sum of the ports' dimensions.
  int wave_size() const;
  int input_size() const { return static_cast<int>(inputs.size()); }
};

/// True for names that paths ("part.port") and columns of results can hold: not empty, and without
/// dots, brackets, blanks, commas, quotes and control characters.
bool is_plain_name(std::string_view name);

/// Names of the states, the scalar ports ("port" or "port[entry]") and the external inputs, in
/// the order of the structure matrices (see StructureRules::names).
std::vector<std::string> variable_names(const Signature& signature);

/// The capabilities of a component beside ports and a step with rollback. None by default.
struct Capabilities {
  /// Its port map is affine, b = b⁰ + D a, and its batches give D (StepBatch::affine_matrix).
  bool linear = false;
  /// The same calls give the same bits. Without it nothing that repeated steps would show is claimed: no
  /// measured costs, no sampled margins, no fixed point of a step, and a NaN is attributed to the part that
  /// noticed it, not to the one that made it.
  bool repeatable = false;
  /// Its batches write the change of its stored energy and its dissipation (StepBatch::advance). Without it,
  /// its energy is the energy received through its ports since the start, and whether it is passive is not
  /// judged.
  bool knows_energy = false;
  /// Batches of it may be used by several threads at once, each on lanes of its own, and asked about
  /// lanes by several (StepBatch). Without it, a system that holds it is stepped by one thread.
  bool thread_safe = false;
  /// Differences of port solves from one frozen record give the derivative of its port map: they are smooth
  /// enough for that, and port solves for arbitrary waves do no harm.
  bool linearisable = false;
  /// Records of its batches hold its states as numbers: a copy of a record stays valid forever.
  /// Without it a run cannot go back to a state that it had before (Stepper::restore).
  bool restorable = false;
};

/// The catalogue type and parameters of a component: its type, and for each of the type's parameters, in
/// their order, and for `allow_active` a number that stands for its value. For numbers, integers and truth
/// values these are the bits of a double.
struct BuiltFrom {
  const PartType* type = nullptr;
  std::vector<std::uint64_t> values;
};

/// One piece of a system, as a coupling sees it: ports, and one-step solvers for them (StepBatch).
///
/// Wave coupling needs no more. A component may be a foreign program whose equations nobody knows: *opaque*.
/// A `Subsystem` is a component that shows its physics in port-Hamiltonian form. Methods that work on
/// equations need that: splitting, dynamic iteration, the monolithic reference, the laws of the conformance
/// suite. Immutable once built; const functions may be called from several threads, unless it is not
/// thread-safe.
class Component {
 public:
  explicit Component(Signature signature)
      : Component(std::make_shared<const Signature>(std::move(signature))) {}
  /// With a signature that other components of the type share; not null.
  explicit Component(std::shared_ptr<const Signature> signature)
      : signature_(std::move(signature)) {}
  virtual ~Component() = default;
  Component(const Component&) = delete;
  Component& operator=(const Component&) = delete;

  const Signature& signature() const { return *signature_; }
  virtual Capabilities capabilities() const = 0;
  /// The physics, where it is known; null: opaque.
  virtual const Subsystem* port_hamiltonian() const { return nullptr; }
  /// Stages of its step. Above 1 its ports and external inputs are those of port_hamiltonian() this many
  /// times (see staged_part); the states are the same.
  int stages() const { return stage_rule().count; }
  /// How they follow from one another.
  virtual const StageRule& stage_rule() const { return gauss_stages(1); }
  /// Substeps of its step, each of that many stages. Above 1 its external inputs are those of
  /// port_hamiltonian() once for every stage of every substep; its ports are those of its stages.
  virtual int substeps() const { return 1; }
  /// True when it may create energy by its owner's explicit wish (`allow_active`).
  virtual bool is_active() const { return false; }

  /// The state that a scenario starts from when it names none. Zero unless overridden.
  virtual std::vector<double> default_state() const;
  /// Usual sizes > 0 of the states, in their own units, one per state, which scale difference steps and probe
  /// states. Unless overridden the default state's, 1 where that is zero. May be costly; called at set-up.
  virtual std::vector<double> typical_state() const;
  /// Objections to starting from x (n finite doubles) however the ports are joined, `where`
  /// being "/initial_state". None unless overridden.
  virtual Issues check_initial_state(const double* x) const;

  /// Components of the same class with equal keys may share a batch; they are equally capable.
  /// Empty: never shared.
  virtual std::string batch_key() const { return {}; }
  /// A batch of `parts`, all of this class and with this component's key; parts[0] is this one.
  /// They must outlive it.
  virtual std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const = 0;
  /// The same for steps of 2 to kMostStages Gauss stages, with ports, inputs and energies as in
  /// `staged_part`. Null, the default: it has no such solver of its own, and the general one steps it.
  virtual std::unique_ptr<StepBatch> make_staged_batch(std::span<const Component* const> /*parts*/,
                                                       int /*stages*/) const {
    return nullptr;
  }

  /// Null for components that were built by hand (build_part).
  const BuiltFrom* built_from() const { return built_from_.get(); }
  /// Called by the builder, before others know the component.
  void note_built_from(BuiltFrom what) {
    built_from_ = std::make_unique<const BuiltFrom>(std::move(what));
  }

 private:
  std::shared_ptr<const Signature> signature_;
  std::unique_ptr<const BuiltFrom> built_from_;
};

}  // namespace portwave

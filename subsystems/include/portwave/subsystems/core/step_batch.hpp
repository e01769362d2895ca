#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/base/lane_group.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Lanes [first, last) of a batch.
struct LaneRange {
  int first = 0;
  int last = 0;
};

/// Why a port solve failed.
enum class StepFault : std::uint8_t {
  none,
  not_converged,   ///< the Newton iteration of the implicit step did not converge
  not_finite,      ///< a state or wave came out as NaN or infinity
  threw,           ///< a callback of the part threw
  too_inaccurate,  ///< no step that is allowed keeps to the tolerance of adaptive steps
  at_odds,         ///< the states violate what rigid joints ask of them: an impulse would act
};

std::string_view to_string(StepFault fault);

/// Outcome of a scatter or advance: the first lane that failed, or ok().
struct [[nodiscard]] LaneStatus {
  int lane = -1;
  StepFault fault = StepFault::none;

  bool ok() const { return fault == StepFault::none; }
};

/// Known facts about a solve that failed. Vectors are those of the lane alone, empty where unknown.
struct FailedSolve {
  std::vector<double> state;   ///< xⁿ
  std::vector<double> inputs;  ///< ū, the external inputs of the step
  std::vector<double> waves;   ///< a
  /// Residual of the equations of the step, relative to their terms, where no solution was found; round-off
  /// below about 1e-15. NaN: not known.
  double residual = std::numeric_limits<double>::quiet_NaN();
};

/// Energies of one part over one committed step [J].
struct StepEnergy {
  /// H(x⁺) − H(x) of the states as they are stored, formed from ∇̄H and the increment x⁺ − x: never
  /// as the difference of two energies, whose rounding may exceed it (a stiff spring far from the
  /// origin).
  double change_J = 0.0;
  double external_supply_J = 0.0;  ///< h Σ u·y over the external inputs
  /// h [z; u]ᵀ[R P; Pᵀ S][z; u], and what damped stages take
  double dissipated_J = 0.0;
  /// Of that, what damped stages take (StageRule): an error of the step, not physics.
  double numerical_dissipation_J = 0.0;
};

/// Where a batch writes the energies of a step: one array per quantity, one entry per lane and
/// StepBatch::stride() entries in all, since whole lane groups are written.
struct EnergyColumns {
  double* change_J = nullptr;
  double* external_supply_J = nullptr;
  double* dissipated_J = nullptr;
  /// Null: nobody asks, since no stage is damped. Else batches without damped stages leave it as it is.
  double* numerical_dissipation_J = nullptr;

  bool wanted() const { return change_J != nullptr; }
  void set(int lane, const StepEnergy& energy) const;
  StepEnergy at(int lane) const;
  /// The columns of lanes from `lane` on.
  EnergyColumns from(int lane) const;
};

/// A scatter or advance with its arguments set up once, for loops in which that and a virtual call
/// would count.
struct BoundCall {
  static constexpr std::size_t kTaskBytes = 192;

  /// Runs it; returns the first lane that failed, or −1.
  int operator()() const { return run(task); }
  explicit operator bool() const { return run != nullptr; }

  template <class Task>
  static BoundCall of(int (*function)(const void*), const Task& arguments) {
    static_assert(sizeof(Task) <= kTaskBytes && std::is_trivially_copyable_v<Task>);
    BoundCall out;
    out.run = function;
    std::memcpy(out.task, &arguments, sizeof(Task));
    return out;
  }

  int (*run)(const void* task) = nullptr;
  alignas(16) unsigned char task[kTaskBytes];
};

/// The region of a record that belongs to one lane group: `doubles` doubles at `begin`, followed by as many
/// for each further lane group.
struct RecordRegion {
  std::size_t begin = 0;
  std::size_t doubles = 0;
};

/// The functions of a batch that will be used.
struct BatchUse {
  bool inputs = true;             ///< records may be frozen with external inputs, or hold some
  bool stage_increments = false;  ///< StageMotion::stage_increments
};

class AffineMap;
class BoundCalls;
class PortSolves;
class StageMotion;
class StepRoundings;

/// An exception that a part's callback threw inside a batch, with the lane it came from.
class LaneException : public std::runtime_error {
 public:
  LaneException(int lane, const std::string& what) : std::runtime_error(what), lane_(lane) {}
  int lane() const { return lane_; }

 private:
  int lane_;
};

/// The one-step solver of a batch of equal-shaped parts: the frozen port map S: a ↦ b.
///
/// After `prepare` a batch is const: it holds step maps and nothing that a step or `freeze` changes. These
/// data lie in a *record* that the caller keeps, `record_size()` doubles aligned to 64 bytes: the committed
/// states xⁿ, the external inputs ū, values that the batch derives from them, and its scratch. With two
/// records a step is taken or discarded as a whole:
///
///   set_state  puts a state into the record;
///   freeze     completes a record for the step with external inputs ū;
///   scatter    b = S(a), any number of times; discards the trial state;
///   inexact_scatter  the same, only as exact as an inner iteration that is on its way can use;
///   advance    the same solve, kept: writes x⁺ into another record and freezes it with ū = 0, so
///              that `freeze` need only be called again where external inputs are driven. It may be
///              called again with another a, which takes back what it wrote before.
///
/// The state of a foreign program is not a vector of doubles. Its batch keeps states in slots and
/// the record a number that says which: `set_state` and `advance` write a slot of their own and put
/// its number into the record, `scatter` restores the slot of its record and steps from there. Two
/// slots per lane do, for `advance` may take the one that its record does not name: only the
/// records of the last two steps are in use. A record may be copied as it is; the copy is good for
/// `scatter` as long as the record that it was copied from. A number of the slot's generation
/// beside it tells a record whose state is gone (tests/support/systems/opaque_parts.hpp shows this).
///
/// Ranges begin at multiples of `lane_group()` and end there or at lanes(). Different ranges may be
/// worked on by different threads at the same time, if the component is thread-safe. `scatter` and
/// `advance` depend on (xⁿ, ū, a) and on nothing of other lanes. `advance` does so bit by bit; for
/// `scatter` a solver may keep a warm start in the record, so that the last bits also depend on the
/// lane's own scatters since it was frozen; what `inexact_scatter` gives depends, by the error that
/// it may make, on the lane's own inexact scatters since. The same calls give the same bits, whether a
/// part is alone or in a batch. `prepare` may allocate and throw; the others do not allocate, and
/// throw only if a user's callback does (LaneException where the lane is known).
class StepBatch {
 public:
  virtual ~StepBatch() = default;

  StepBatch(int lanes, int state_size, int wave_size, int input_size)
      : lanes_(lanes), state_size_(state_size), wave_size_(wave_size), input_size_(input_size) {}
  StepBatch(const StepBatch&) = delete;
  StepBatch& operator=(const StepBatch&) = delete;

  int lanes() const { return lanes_; }
  int state_size() const { return state_size_; }  ///< doubles per part in x
  int wave_size() const { return wave_size_; }    ///< scalar ports per part
  int input_size() const { return input_size_; }  ///< external inputs per part

  /// Distance between the waves of one port and the next.
  int stride() const {
    return lanes_ == 1 ? 1 : (lanes_ + kLaneGroup - 1) / kLaneGroup * kLaneGroup;
  }
  /// Lanes that belong together: ranges begin at multiples of it.
  virtual int lane_group() const { return lanes_ == 1 ? 1 : kLaneGroup; }
  /// Doubles in a wave array of the whole batch.
  int wave_count() const { return stride() * wave_size_; }

  /// A guess at the cost of one port solve and of one commit of a lane [ns]; a measurement replaces
  /// it where it matters.
  virtual double scatter_cost_ns() const;
  virtual double advance_cost_ns() const;

  /// (Re)computes the step maps for step h [s] and impedances γ > 0, laid out like waves.
  /// Errors: ConfigError when the implicit step is singular.
  virtual void prepare(double step_s, const double* impedance) = 0;

  /// Declares the functions that will be used. Before `prepare`.
  virtual void expect([[maybe_unused]] const BatchUse& use) {}

  /// Doubles in a record of the whole batch.
  virtual std::size_t record_size() const = 0;
  /// The regions of a record that hold all data of a lane group, so that they can be copied from a record of
  /// another process. Empty where a state is more than its record (a foreign program), or by default.
  virtual std::vector<RecordRegion> record_regions() const { return {}; }
  /// The committed state of one lane, in signature order.
  virtual void set_state(int lane, const double* x, double* record) const = 0;
  virtual void get_state(int lane, const double* record, double* x) const = 0;

  /// Completes the record for the step with external inputs ū (lanes × input_size; null: all zero).
  virtual void freeze(LaneRange lanes, double* record, const double* input) const = 0;

  /// b = S(a).
  virtual LaneStatus scatter(LaneRange lanes, double* record, const double* a, double* b) const = 0;

  /// b ≈ S(a) for the inner iteration, whose incident waves approach a limit. The error of a lane
  /// is at most kInexactScatterError·|a − a′|, a′ being its incident wave at its previous call
  /// since it was frozen: |a − a′| is its share of the residual of that iteration. It is round-off
  /// where the residual says nothing about the error that matters: in the first two calls (a
  /// budget of one or two evaluations commits what they give) and when a repeats. A repeated a
  /// moves what follows by round-off at the most. Fails only where `scatter` fails too. Where the
  /// implicit step has several solutions, it may follow another one than `scatter`.
  virtual LaneStatus inexact_scatter(LaneRange lanes, double* record, const double* a,
                                     double* b) const {
    return scatter(lanes, record, a, b);
  }
  static constexpr double kInexactScatterError = 1e-4;

  /// The committed step with incident wave a: writes `next`, b and, if wanted, the energies.
  virtual LaneStatus advance(LaneRange lanes, double* record, const double* a, double* next,
                             double* b, const EnergyColumns& energy) const = 0;

  /// Facts about the last scatter or advance from `record` that failed in this lane. May solve it once more.
  virtual FailedSolve failed_solve([[maybe_unused]] int lane,
                                   [[maybe_unused]] const double* record) const {
    return {};
  }

  /// Optional facets of a batch (batch_facets.hpp, port_solves.hpp); null where it has none.
  virtual const AffineMap* affine_map() const { return nullptr; }
  virtual const StepRoundings* roundings() const { return nullptr; }
  virtual const StageMotion* stage_motion() const { return nullptr; }
  virtual const BoundCalls* bound_calls() const { return nullptr; }
  virtual const PortSolves* port_solves() const { return nullptr; }

 private:
  int lanes_;
  int state_size_;
  int wave_size_;
  int input_size_;
};

/// A batch whose lanes are solved one by one by a virtual call each, for parts that cost far more
/// than that: sparse linear parts, the generic Newton, users' own solvers. The record is, per lane,
/// x, ū, room for a and b, and `extra` doubles of the solver's own.
class LanewiseBatch : public StepBatch {
 public:
  LanewiseBatch(int lanes, int state_size, int wave_size, int input_size, int extra = 0);

  int lane_group() const final { return 1; }
  std::size_t record_size() const final;
  std::vector<RecordRegion> record_regions() const final { return {{0, lane_size_}}; }
  void set_state(int lane, const double* x, double* record) const final;
  void get_state(int lane, const double* record, double* x) const final;
  void freeze(LaneRange lanes, double* record, const double* input) const final;
  LaneStatus scatter(LaneRange lanes, double* record, const double* a, double* b) const final;
  LaneStatus inexact_scatter(LaneRange lanes, double* record, const double* a,
                             double* b) const final;
  LaneStatus advance(LaneRange lanes, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const final;
  FailedSolve failed_solve(int lane, const double* record) const final;

 protected:
  /// Data for the solver of a lane; a and b are wave_size doubles.
  struct Lane {
    const double* x;
    const double* input;  ///< zeros where no external input is driven
    double* extra;
  };
  const double* state_of(int lane, const double* record) const {
    return record + static_cast<std::size_t>(lane) * lane_size_;
  }
  const double* extra_of(int lane, const double* record) const {
    return record + static_cast<std::size_t>(lane) * lane_size_ + lane_size_ - extra_;
  }

 private:
  virtual void freeze_lane(int lane, const Lane& frozen) const = 0;
  virtual StepFault scatter_lane(int lane, const Lane& frozen, const double* a,
                                 double* b) const = 0;
  virtual StepFault inexact_scatter_lane(int lane, const Lane& frozen, const double* a,
                                         double* b) const {
    return scatter_lane(lane, frozen, a, b);
  }
  virtual StepFault advance_lane(int lane, const Lane& frozen, const double* a, double* x_next,
                                 double* b, StepEnergy& energy) const = 0;
  /// FailedSolve::residual of a solve that did not converge.
  virtual double residual_of_lane([[maybe_unused]] int lane, [[maybe_unused]] const Lane& frozen,
                                  [[maybe_unused]] const double* a) const {
    return std::numeric_limits<double>::quiet_NaN();
  }

  Lane lane_of(int lane, double* record) const;
  template <class Solve>
  LaneStatus for_lanes(LaneRange lanes, double* record, const double* a, double* b,
                       const Solve& solve) const;

  std::size_t extra_;
  std::size_t lane_size_;
};

}  // namespace portwave

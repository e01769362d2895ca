#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/system/interconnection.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/coupling/waves/part_order_reduction.hpp"
#include "portwave/coupling/waves/phase_status.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The position of a part in a WaveDiscretisation.
struct PartSlot {
  int batch = 0;
  int lane = 0;
  int wave = 0;    ///< offset of its first scalar port in the wave vector; the others follow at
  int stride = 1;  ///< this distance
  int entry = 0;   ///< offset in arrays with one entry per lane
};

/// A batch of equal-shaped parts and where its lanes begin.
struct BatchSlot {
  const StepBatch* batch = nullptr;          ///< prepared; owned by the slot's owner
  const AffineMap* affine = nullptr;         ///< of the batch; null: it has none
  const StepRoundings* roundings = nullptr;  ///< likewise
  const BoundCalls* calls = nullptr;         ///< likewise
  std::vector<int> parts;                    ///< part of each lane
  int island_group = 0;                      ///< its island group (see WaveDiscretisation)
  std::size_t record = 0;                    ///< offset in the record of the system
  int wave = 0;                              ///< offset in the wave vector
  std::size_t input = 0;                     ///< offset in the input vector
  int entry = 0;                             ///< offset in arrays with one entry per lane
  bool driven = false;                       ///< some external input of some lane is driven
  Capabilities capabilities = {};            ///< of each of its parts

  LaneRange all() const { return {0, batch->lanes()}; }
  void use(const StepBatch& own) {
    batch = &own;
    affine = own.affine_map();
    roundings = own.roundings();
    calls = own.bound_calls();
  }
};

/// An external input of a part, without stages, that jumps within a step.
struct MovedInputJump {
  int part = 0;
  int input = 0;
  Signal::MovedJump jump = {};
};

/// A system cut for one step size and one impedance per scalar port: parts gathered into batches,
/// their one-step solvers prepared, the coupling turned into waves. The System must outlive it.
///
/// Parts are taken in an order that puts coupled ones close to one another (see locality_order).
/// Whole islands are gathered into *island groups*: a large island is an island group of its own,
/// small ones share an island group. A batch never holds parts of two island groups, so
/// island groups touch no common cache line of states or waves. Waves lie batch by batch, port by
/// port, lane by lane (StepBatch::stride); between batches there may be padding, which holds zeros.
/// None of this depends on the number of threads.
class WaveDiscretisation {
 public:
  /// Whether parts can report the stages of their steps.
  enum class StageIncrements { none, kept };

  enum class Grouping {
    by_shape,  ///< parts of one class and key share a batch
    none,      ///< every part is a batch of its own
    together,  ///< as by_shape, all islands being one island group
  };

  /// `impedance`: one per scalar port of the system. Errors: ConfigError (step ≤ 0, impedance ≤ 0,
  /// not finite, a singular implicit step).
  /// `increments`: whether parts are prepared for StepBatch::stage_increments.
  WaveDiscretisation(const System& system, double step_s, std::span<const double> impedance,
                     Grouping grouping = Grouping::by_shape,
                     StageIncrements increments = StageIncrements::none);
  /// Keeps the system's address: a temporary would be gone.
  WaveDiscretisation(const System&& system, double step_s, std::span<const double> impedance,
                     Grouping grouping = Grouping::by_shape,
                     StageIncrements increments = StageIncrements::none) = delete;

  /// Prepares the junctions and the step maps of parts whose impedances differ, and of those that lie in
  /// a batch with them, for other impedances, by scalar port; offsets stay.
  /// Records must be frozen again, and junctions and bound calls compiled from this object are stale.
  /// Allocates only what Interconnection::set_impedance and the batches concerned allocate for this
  /// preparation, and at the first call.
  /// Errors: as for the constructor; the old impedances are then in force again.
  void set_impedance(std::span<const double> impedance);

  /// All data that depend on the step size and the impedances: prepared parts and junctions.
  struct Preparation {
    double step_s = 0.0;
    std::vector<double> impedance;  ///< by scalar port
    std::vector<std::unique_ptr<StepBatch>> batches;
    std::unique_ptr<Interconnection> interconnection;
  };
  /// For another step size, in the same layout. Allocates. Errors: as for the constructor.
  Preparation prepared_for(double step_s, std::span<const double> impedance) const;
  /// Puts another preparation in force, one of `prepared_for` or of an earlier exchange, and returns the
  /// previous one. States and waves in records stay in place; the same objects become stale as after
  /// set_impedance.
  Preparation exchange(Preparation other);

  /// A part has another component than at construction (exchange_component), which is prepared in its lane:
  /// the batch, other lanes, bound calls and records stay as they are, except that places of coefficients
  /// that were asked for (PortSolves) are stale. False, nothing having changed, where the batch cannot do
  /// that: then `batch_anew` is to follow. Errors: ConfigError, nothing having changed.
  bool exchange_part(int part);
  /// The batch of a part that has another component than at construction, prepared again. Errors: ConfigError, `where` being within the part.
  std::unique_ptr<StepBatch> batch_anew(int batch) const;
  /// Puts it in force. States must be written into records again; the same objects become stale as after
  /// set_impedance. Precondition: its records are of the size of the present one's.
  void take_batch(int batch, std::unique_ptr<StepBatch> prepared);

  const System& system() const { return system_; }
  double step_s() const { return own_.step_s; }
  std::span<const BatchSlot> batches() const { return batches_; }
  const BatchSlot& batch(int i) const { return batches_[static_cast<std::size_t>(i)]; }
  const Interconnection& interconnection() const { return *own_.interconnection; }
  std::span<const PartSlot> slots() const { return slots_; }
  const PartSlot& slot(int part) const { return slots_[static_cast<std::size_t>(part)]; }

  std::size_t record_size() const { return record_size_; }
  int wave_size() const { return wave_size_; }  ///< with padding
  std::size_t input_size() const { return input_size_; }
  int entry_count() const { return entry_count_; }  ///< lanes of all batches, with padding
  /// Some external input is driven.
  bool driven() const { return !driven_.empty(); }

  int island_group_count() const { return island_group_count_; }
  int island_group_of_part(int part) const {
    return island_group_of_part_[static_cast<std::size_t>(part)];
  }
  /// Sums over the parts of an island or of the system.
  const PartOrderReduction& reduction() const { return reduction_; }
  /// Position of a part in the locality order.
  int position_of_part(int part) const { return position_of_part_[static_cast<std::size_t>(part)]; }

  /// Impedance by offset in the wave vector; 1 at padding.
  std::span<const double> impedance() const { return impedance_; }
  /// Offset in the wave vector of a scalar port of the system.
  int wave_of_port(int scalar_port) const {
    return wave_of_port_[static_cast<std::size_t>(scalar_port)];
  }
  /// Part at an offset of the wave vector; −1 at padding.
  int part_of_wave(int wave) const { return part_of_wave_[static_cast<std::size_t>(wave)]; }

  /// Memory of offsets, numberings, impedances and junctions; batches with their step maps apart.
  std::size_t bytes() const;

  /// A record at the system's initial states, frozen without external inputs. Only one at a time, if a
  /// component keeps its states elsewhere (StepBatch).
  AlignedVector initial_record() const;
  /// The state of a part in a record, in signature order.
  void get_state(int part, const double* record, double* x) const;

  /// The functions of StepBatch for lanes of one batch; arrays are the whole system's. False when a lane
  /// fails: `failure` then names it, an exception of a callback being StepFault::threw.
  bool freeze(int batch, LaneRange lanes, double* record, const double* input,
              PhaseStatus& failure) const;
  bool scatter(int batch, LaneRange lanes, double* record, const double* a, double* b,
               PhaseStatus& failure) const;
  bool inexact_scatter(int batch, LaneRange lanes, double* record, const double* a, double* b,
                       PhaseStatus& failure) const;
  bool advance(int batch, LaneRange lanes, double* record, const double* a, double* next, double* b,
               const EnergyColumns& energy, PhaseStatus& failure) const;
  /// All batches, on this thread. `driven_only`: those with driven inputs.
  PhaseStatus freeze_all(double* record, const double* input, bool driven_only = false) const;
  PhaseStatus scatter_all(double* record, const double* a, double* b) const;
  PhaseStatus inexact_scatter_all(double* record, const double* a, double* b) const;
  PhaseStatus advance_all(double* record, const double* a, double* next, double* b,
                          const EnergyColumns& energy) const;

  /// ū of the step that starts at `time_s`: every driven input at its sample point
  /// (InputNode), settable ones being `set_values` by slot; none: their initial values.
  /// A callback's exception becomes StepFault::threw, naming the part and the input. Inputs of
  /// ignored parts are not sampled. Jumps in `moved` come at an end of the step.
  bool sample_inputs(double time_s, double* input, PhaseStatus& failure,
                     std::span<const double> set_values = {},
                     std::span<const MovedInputJump> moved = {}) const;

  /// Failures of these parts do not count from now on, by part: 1 where it is ignored; empty: none is.
  /// Their waves and states are then meaningless.
  void set_ignored(std::vector<char> parts) { ignored_ = std::move(parts); }
  bool is_ignored(int part) const {
    return !ignored_.empty() && ignored_[static_cast<std::size_t>(part)] != 0;
  }

 private:
  struct DrivenInput {
    const Part* in;
    std::size_t slot;
    int part;
    int input;
    bool is_of_switch;  // the share of the step for which it closes that
  };

  static int input_before_stages(const DrivenInput& driven);
  void gather_island_groups(std::span<const int> order, bool together);
  void add_batch(const std::vector<int>& parts);
  void put_in_force(Preparation preparation);
  std::unique_ptr<StepBatch> made_batch(const BatchSlot& slot) const;
  void announce(const BatchSlot& slot, StepBatch& batch) const;
  std::vector<std::unique_ptr<StepBatch>> made_batches() const;
  void prepare(Preparation& preparation) const;
  /// These batches, for impedances by wave.
  void prepare(Preparation& preparation, std::span<const int> batches,
               std::span<const double> by_wave) const;
  void put_by_wave(std::span<const double> by_port, std::span<double> by_wave) const;

  const System& system_;
  StageIncrements increments_;
  Preparation own_;
  std::vector<BatchSlot> batches_;  // whose batches are those of own_
  std::vector<PartSlot> slots_;
  std::vector<int> wave_of_port_;
  std::vector<int> part_of_wave_;
  std::vector<int> island_group_of_part_;
  std::vector<int> position_of_part_;
  PartOrderReduction reduction_;
  AlignedVector impedance_;
  // For set_impedance: impedances by wave to be put in force, and the batches concerned.
  AlignedVector wanted_;
  std::vector<int> affected_;
  std::vector<DrivenInput> driven_;
  std::vector<char> ignored_;  // by part
  std::size_t record_size_ = 0;
  std::size_t input_size_ = 0;
  int wave_size_ = 0;
  int entry_count_ = 0;
  int island_group_count_ = 0;
};

/// The parts, island by island in the order of their numbers, within an island so that coupled
/// parts are close: the given order or, where the distances over the junctions are shorter, that of
/// Cuthill and McKee from the part farthest from the first one.
std::vector<int> locality_order(const System& system);

}  // namespace portwave

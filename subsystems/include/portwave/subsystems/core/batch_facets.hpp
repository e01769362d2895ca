#pragma once

#include <optional>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

// Facets: optional abilities of a batch beside stepping. StepBatch has a function for each, which returns
// null for a batch without it. Users of a facet ask for it once, at their construction.

namespace PORTWAVE_EXPORT portwave {

/// Linear parts: S(a) = b⁰ + D a with D constant between calls of `prepare`. Several threads may ask at
/// once, of the same lanes too.
class AffineMap {
 public:
  virtual ~AffineMap() = default;

  /// D into `matrix`, wave_size × wave_size, row-major.
  virtual void affine_matrix(int lane, double* matrix) const = 0;
  /// b⁰ of a frozen record into `offset`, wave_size doubles.
  virtual void affine_offset(int lane, const double* record, double* offset) const = 0;
  /// Writes incident waves of a frozen record at which `scatter` knows b without a solve, as long as it has not been
  /// asked for others, to their places in the waves `a` of the batch. Lanes without such waves are left as they are.
  virtual void known_waves([[maybe_unused]] LaneRange lanes, [[maybe_unused]] const double* record,
                           [[maybe_unused]] double* a) const {}
};

/// Bounds on the energy [J] that the rounding of a committed step may have left in the balance of a lane:
/// by its states, by x⁺ − x and by the outgoing waves.
class StepRoundings {
 public:
  virtual ~StepRoundings() = default;

  /// A bound for one lane. Asked for by one thread at a time, and only where an account is out by more than
  /// ε of the energies of the step explains, so it may cost as much as some steps. Empty where this
  /// step cannot be bounded.
  virtual std::optional<double> step_rounding(int lane, const double* record, const double* a,
                                              const double* next) const = 0;
  /// The same of all lanes of the group that `lane` is in (StepBatch::lane_group): `out[i]` is that of its
  /// i-th lane. False where they are only known one by one.
  virtual bool step_roundings([[maybe_unused]] int lane, [[maybe_unused]] const double* record,
                              [[maybe_unused]] const double* a, [[maybe_unused]] const double* next,
                              [[maybe_unused]] double* out) const {
    return false;
  }
  /// A coarser bound for the same lanes: never less than `step_roundings`, perhaps far more, and found
  /// in a small part of the time. False where none is known. Several threads may ask at once.
  virtual bool step_rounding_bounds([[maybe_unused]] int lane,
                                    [[maybe_unused]] const double* record,
                                    [[maybe_unused]] const double* a,
                                    [[maybe_unused]] const double* next,
                                    [[maybe_unused]] double* out) const {
    return false;
  }
};

/// How the stages of a step moved.
class StageMotion {
 public:
  virtual ~StageMotion() = default;

  virtual int stages() const = 0;
  /// √bᵢ h ẋᵢ of the step that `a` made of `record`, the last that was advanced from it, into `next`:
  /// stages × state_size rows of stride() lanes. Needs BatchUse::stage_increments.
  virtual void stage_increments(LaneRange lanes, const double* record, const double* a,
                                const double* next, double* out) const = 0;
};

/// Stages of a step: 1 without StageMotion.
int stages_of(const StepBatch& batch);
/// StageMotion::stage_increments, and without it x⁺ − x.
void stage_increments(const StepBatch& batch, LaneRange lanes, const double* record,
                      const double* a, const double* next, double* out);

/// The scatter and the advance as calls that allocate and throw nothing. The arrays must stay where
/// they are for as long as a call is used.
class BoundCalls {
 public:
  virtual ~BoundCalls() = default;

  virtual BoundCall bind_scatter(LaneRange lanes, double* record, const double* a,
                                 double* b) const = 0;
  virtual BoundCall bind_advance(LaneRange lanes, double* record, const double* a, double* next,
                                 double* b, const EnergyColumns& energy) const = 0;
};

}  // namespace portwave

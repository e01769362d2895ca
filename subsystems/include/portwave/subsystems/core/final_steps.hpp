#pragma once

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Energies of a step that was taken for good [J].
struct FinalStep {
  double defect_J = 0.0;     ///< what went into the part beyond what `advance` told
  double astray_J = 0.0;     ///< the same as a sum of sizes over its ports
  double received_J = 0.0;   ///< all that went into the part through its ports
  double exchanged_J = 0.0;  ///< sizes of the energies through its ports
  // Squares of waves at its ports, û being what the part takes and ŷ what it answers:
  double carried_J = 0.0;  ///< û² + ŷ²
  double missed_J = 0.0;   ///< of what ŷ is beyond what `advance` told
};

/// A batch of parts whose steps cannot be taken back: programs that save no state. Until everybody has agreed on the
/// waves, `scatter` and `advance` answer by a model of the part, and leave the part alone. Then it steps once, with
/// what `advance` has put into `next`. What it answers is not quite what its neighbours were told; the difference is a
/// *defect*, energy from nowhere or to nowhere, that the caller accounts for.
///
/// A facet that few batches have: whoever steps asks each batch for it (dynamic_cast).
class FinalSteps {
 public:
  virtual ~FinalSteps() = default;

  /// The step that the last `advance` from `record` to `next` has prepared. Completes `next`. Neither `record` nor any
  /// older one serves a further step. Throws as StepBatch does. `energies`: one for each lane.
  virtual LaneStatus take(LaneRange lanes, const double* record, double* next,
                          FinalStep* energies) const = 0;
};

}  // namespace portwave

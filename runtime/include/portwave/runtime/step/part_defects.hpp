#pragma once

#include <cstdint>
#include <span>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/final_steps.hpp"

namespace PORTWAVE_EXPORT portwave {

class Stepper;

/// What the steps of a part that cannot take them back have done beyond what was foretold (FinalSteps), over a run.
/// In the ledger it is energy that is supplied to the part.
struct PartDefects {
  int part = -1;
  std::int64_t steps = 0;
  double net_J = 0.0;     ///< sum of FinalStep::defect_J
  double astray_J = 0.0;  ///< and of the others
  double exchanged_J = 0.0;
  double carried_J = 0.0, missed_J = 0.0;
  double received_J = 0.0;             ///< net, so far
  double least_J = 0.0, most_J = 0.0;  ///< the least and the largest of it
  double worst_J = 0.0;                ///< the largest FinalStep::astray_J, and its step
  std::int64_t worst_step = -1;

  void add(const FinalStep& own);
  /// The larger of two shares: of what went astray in the energy that went through its ports to and fro, and of its
  /// sum in the range of the energy that the part received: what adds up changes its motion. 0 where that is rounding,
  /// and where the ports let nothing through, being free or fixed, and the waves are as foretold.
  double share() const;
};

/// Of each part that takes no step back, in order; empty where all parts do.
std::span<const PartDefects> defects_of(const Stepper& stepper);

/// What knows them: an engine.
class PartDefectsView {
 public:
  virtual ~PartDefectsView() = default;
  virtual std::span<const PartDefects> defects() const = 0;
};

}  // namespace portwave

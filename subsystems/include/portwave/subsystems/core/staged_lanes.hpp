#pragma once

#include <memory>
#include <span>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A facet of components that bring a solver of their own for stages which Component::make_staged_batch does not have:
/// damped ones, or on other nodes than Gauss's. Asked for by dynamic_cast.
class StagedLanes {
 public:
  /// Of parts of one class and key, with ports, inputs and energies as in `staged_part`. Null where these stages are for
  /// the general solver.
  virtual std::unique_ptr<StepBatch> make_lanes(std::span<const Component* const> parts,
                                                const StageRule& stages) const = 0;

 protected:
  ~StagedLanes() = default;
};

}  // namespace portwave

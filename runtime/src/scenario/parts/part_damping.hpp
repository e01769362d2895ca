#pragma once

#include <optional>

#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// What else a part says that decides its damping.
struct DampedPart {
  std::optional<StageKind> integrator;
  std::optional<double> theta;
  const Component* component;  ///< null where it could not be built
  bool is_cut;
};

/// "damped_states" and "theta" of a part. Notes what is wrong.
StageDamping read_damping(const Node& part, const DampedPart& given);

}  // namespace portwave::scenario_file

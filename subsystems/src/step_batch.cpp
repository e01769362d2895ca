#include "portwave/subsystems/step_batch.hpp"

namespace portwave {

std::string_view to_string(StepFault fault) {
  switch (fault) {
    case StepFault::none:
      return "none";
    case StepFault::not_converged:
      return "not_converged";
    case StepFault::not_finite:
      return "not_finite";
    case StepFault::threw:
      return "threw";
  }
  return "unknown";
}

}  // namespace portwave

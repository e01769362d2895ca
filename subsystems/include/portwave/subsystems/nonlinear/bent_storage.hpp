#pragma once

#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// For subsystems that know in which states their storage is not quadratic. Of others a method that needs that looks at
/// ∇²H in some places, and may miss a kink between them.
class BentStorage {
 public:
  virtual ~BentStorage() = default;
  /// Increasing.
  virtual const std::vector<int>& bent_states() const = 0;
};

}  // namespace portwave

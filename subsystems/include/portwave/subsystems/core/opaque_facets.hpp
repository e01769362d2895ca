#pragma once

#include <cstddef>
#include <optional>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A component that does not know its energy (Capabilities), of which somebody says that it has no source: what leaves
/// it through its ports is what it held at the start, and what it received. The ledger meters that, and finds it
/// active where it gives more. A facet that few components have (dynamic_cast).
class HoldsEnergy {
 public:
  virtual ~HoldsEnergy() = default;

  /// What it holds at the start, at most [J]; none: it may be a source.
  virtual std::optional<double> held_J() const = 0;
};

/// A component of which some states are means over its last step: at one time steps of two sizes have different ones,
/// though both are right. A facet, as above.
class ShowsMeans {
 public:
  virtual ~ShowsMeans() = default;

  virtual bool is_mean(std::size_t state) const = 0;
};

}  // namespace portwave

#pragma once

#include <span>

namespace portwave {

/// What a step leads from and to: records, and the waves of the commit that led there. All are of the
/// whole system, or of the slice that this process has.
struct WaveState {
  std::span<double> record;
  std::span<double> a;  ///< incident
  std::span<double> b;  ///< outgoing
};

}  // namespace portwave

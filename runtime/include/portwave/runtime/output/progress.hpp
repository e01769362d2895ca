#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// What a call that may take long is doing.
struct Phase {
  std::string_view what;  ///< "building the parts"; only as long as the callback runs
  std::int64_t item = 0;  ///< which one is begun, from 1; 0: they are not counted
  std::int64_t items = 0;
};

/// Told at the beginning of every phase, and of its items, by the thread that made the call; empty:
/// nobody listens. What is computed does not depend on it. What it throws ends the call.
using PhaseCallback = std::function<void(const Phase&)>;

inline void tell(const PhaseCallback& listener, const Phase& phase) {
  if (listener) listener(phase);
}

}  // namespace portwave

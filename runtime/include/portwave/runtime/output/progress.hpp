#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Progress of a call that may take long.
struct Phase {
  std::string_view what;  ///< "building the parts"; valid only during the callback
  std::int64_t item = 0;  ///< number of the item that begins, from 1; 0: items are not counted
  std::int64_t items = 0;
};

/// Called at the beginning of every phase, and of its items, by the thread that made the call; empty:
/// no reports. Results do not depend on it. Its exception ends the call.
using PhaseCallback = std::function<void(const Phase&)>;

inline void tell(const PhaseCallback& listener, const Phase& phase) {
  if (listener) listener(phase);
}

}  // namespace portwave

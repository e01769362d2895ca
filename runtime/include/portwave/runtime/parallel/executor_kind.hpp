#pragma once

#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

inline constexpr int kMaxThreads = 1024;

/// Who runs the tasks of a step. Results do not depend on it.
enum class ExecutorKind {
  automatic,  ///< serial where a step is too small for threads, else whichever is faster lately
  serial,     ///< the calling thread
  async,      ///< tasks claimed by workers that never wait for one another
  graph,      ///< a plain tbb::flow::graph, for comparison
  barrier,    ///< tbb::parallel_for with a barrier per phase, for comparison
};

std::string_view to_string(ExecutorKind kind);

}  // namespace portwave

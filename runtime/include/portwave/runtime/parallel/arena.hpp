#pragma once

#include <memory>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Worker threads of oneTBB that steppers and ensembles share: together they use no more threads than the
/// arena has. oneTBB chooses which threads these are, and has no more of them than the machine has
/// processors. Results do not depend on it.
///
/// Several threads may step steppers of one arena at a time, each its own.
class Arena {
 public:
  /// `threads` ≥ 1: a caller and the workers that help it; fewer if this user may not have as many.
  /// Errors: std::invalid_argument.
  explicit Arena(int threads);
  /// The arena that the calling thread is in: inside a oneTBB task, the arena of the task.
  static std::shared_ptr<Arena> current();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int threads() const;

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  explicit Arena(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

/// How many of the wanted threads, including the calling one, oneTBB may have: at least 1. oneTBB ends the
/// program if it is refused a thread, so that this must be known before. It is found out once, for more
/// threads than were found; meanwhile oneTBB must not need any. Where address space is limited
/// (ulimit -v, -d) half of it stays free of threads. `others`: further threads that are started later; they
/// take precedence.
int threads_allowed(int wanted, int others = 0);

/// Where address space is limited: starts oneTBB's workers, as many as `threads` and oneTBB allow, so that
/// none is refused in the middle of a run. Elsewhere does nothing; workers start when needed.
void start_workers(int threads);

/// How many of that many additional threads this user may have. Costs some 20 us each, because they exist
/// for a moment.
int threads_to_be_had(int most);

}  // namespace portwave

#pragma once

#include <memory>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Worker threads of oneTBB that steppers and ensembles share. Whatever they ask for, no more
/// threads than the arena has work for all of them together; which threads they are is oneTBB's
/// business, and it has no more of them than the machine has processors. Results do not depend
/// on it.
///
/// Several threads may step steppers of one arena at a time, each its own.
class Arena {
 public:
  /// `threads` ≥ 1: a caller, and workers that help it; fewer of them where this user may not have as
  /// many. Errors: std::invalid_argument.
  explicit Arena(int threads);
  /// The arena that the calling thread is in: inside a oneTBB task that of the task.
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

/// Of the threads that are wanted, the calling one among them, as many as oneTBB may have: at least 1.
/// It ends the program where it is refused one, so that has to be found out before. That is done once,
/// and for more than were found: while it is being found out oneTBB must not need any.
/// Where address space is limited (ulimit -v, -d) half of what there is stays free of threads.
/// `others`: further threads that are begun later; those come first.
int threads_allowed(int wanted, int others = 0);

/// Where address space is limited: begins oneTBB's workers, as many as `threads` and oneTBB allow, so that
/// it is not refused one in the middle of a run. Elsewhere nothing; they come when they are needed.
void start_workers(int threads);

/// Of so many threads beside those that there are as many as this user may have. Costs some 20 us each,
/// because for a moment they are there.
int threads_to_be_had(int most);

}  // namespace portwave

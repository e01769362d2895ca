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
  /// `threads` ≥ 1: a caller, and workers that help it. Errors: std::invalid_argument.
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

}  // namespace portwave

#pragma once

#include <atomic>
#include <chrono>
#include <nanobind/nanobind.h>
#include <stdexcept>
#include <thread>

#include "callbacks.hpp"

namespace nb = nanobind;

/// Records which thread steps a stepper, so that no other use interferes. Functions that step and
/// release the interpreter's lock hold a `Stepping`; all others check first, with the lock held.
/// Errors: std::runtime_error.
class User {
 public:
  /// No other thread steps it: it may be read.
  void expect_readable() const {
    const std::thread::id user = user_.load();
    if (user != std::thread::id() && user != std::this_thread::get_id()) refuse(user);
  }
  /// Nobody steps it: it may be changed.
  void expect_idle() const {
    const std::thread::id user = user_.load();
    if (user != std::thread::id()) refuse(user);
  }

 private:
  friend class Stepping;
  [[noreturn]] static void refuse(std::thread::id user) {
    throw std::runtime_error(user == std::this_thread::get_id()
                                 ? "the stepper is in a step: a function that it calls "
                                   "cannot step or change it"
                                 : "another thread is stepping the stepper: one thread at a "
                                   "time may use it. Give each thread its own (clone)");
  }
  std::atomic<std::thread::id> user_;
};

class Stepping {
 public:
  explicit Stepping(User& user) : user_(user) {
    std::thread::id nobody;
    if (!user.user_.compare_exchange_strong(nobody, std::this_thread::get_id())) {
      User::refuse(nobody);
    }
    forget_raised();
  }
  ~Stepping() { user_.user_.store({}); }
  Stepping(const Stepping&) = delete;
  Stepping& operator=(const Stepping&) = delete;

 private:
  User& user_;
};

/// Checks from time to time whether the user has pressed Ctrl-C.
class Interrupts {
 public:
  /// Called without the interpreter's lock. Throws the exception that Python raises.
  void check() {
    raise_interrupt();
    if (++calls_ % kCalls != 0) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(50)) return;
    last_ = now;
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

 private:
  static constexpr int kCalls = 16;
  int calls_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

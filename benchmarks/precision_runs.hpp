#pragma once

// Runs of the work–precision benchmark, by the engine and by its peers.

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "peers/ode.hpp"
#include "peers/sundials_ode.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "precision_systems.hpp"

namespace portwave::bench {

constexpr double kMostSeconds = 2.0;  ///< of one run; beyond that: too slow

/// One integration that can be repeated.
class Run {
 public:
  virtual ~Run() = default;
  virtual void restart() = 0;  ///< not timed
  virtual void solve() = 0;
  virtual std::vector<double> state() const = 0;  ///< in the physical order
};

struct TooSlow : std::runtime_error {
  TooSlow() : std::runtime_error("too slow") {}
};

class EngineRun final : public Run {
 public:
  EngineRun(const Problem& problem, StepperOptions options, long steps)
      : problem_(problem), options_(std::move(options)), steps_(steps) {}

  /// Linear parts do the same work in every step, so that timing goes on where the last run ended:
  /// setting up may take longer than the run.
  void restart() override {
    if (stepper_ != nullptr && problem_.linear && steps_ > 0) return;
    stepper_ = std::make_unique<Stepper>(problem_.system, options_);
  }
  /// Errors: TooSlow.
  void solve() override {
    if (steps_ == 0) return solve_to_tolerance();
    const auto start = std::chrono::steady_clock::now();
    const auto passed = [start] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    for (long done = 0, piece = 1; done < steps_; done += piece) {
      if (passed() > 2.0 * kMostSeconds) throw TooSlow();
      if (piece < 64 && passed() < 0.01 * kMostSeconds) piece *= 2;
      piece = std::min(piece, steps_ - done);
      stepper_->step(piece);
    }
  }
  std::vector<double> state() const override { return problem_.read(*stepper_); }

 private:
  /// Step sizes that come into use on the way are set up on the run's time.
  void solve_to_tolerance() {
    const auto start = std::chrono::steady_clock::now();
    while (stepper_->time_s() < problem_.end_s) {
      stepper_->step_towards(problem_.end_s);
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      if (passed.count() > 2.0 * kMostSeconds) throw TooSlow();
    }
  }

  const Problem& problem_;
  StepperOptions options_{.method = WaveCoupling{}};
  long steps_;
  std::unique_ptr<Stepper> stepper_;
};

class PeerRun final : public Run {
 public:
  PeerRun(const Ode& ode, std::unique_ptr<OdeSolver> solver)
      : ode_(ode), solver_(std::move(solver)) {}
  void restart() override { solver_->restart(); }
  void solve() override { solver_->solve(); }
  std::vector<double> state() const override { return ode_.physical(solver_->state()); }

 private:
  const Ode& ode_;
  std::unique_ptr<OdeSolver> solver_;
};

}  // namespace portwave::bench

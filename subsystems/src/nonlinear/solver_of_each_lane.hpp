#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

/// The solvers of the lanes of a batch. A solver works in memory of its own, too large for every record:
/// matrices of the part, and whatever structure a user's part writes. It holds nothing between two calls. So
/// each lane has one, which a call takes for as long as it lasts; a second thread that solves the same lane
/// at the same time, with another record, makes one for that call.
template <class Solver>
class SolverOfEachLane {
 public:
  using Make = std::function<std::unique_ptr<Solver>(int lane)>;

  SolverOfEachLane(int lanes, int ports, Make make)
      : make_(std::move(make)),
        ports_(ports),
        taken_(std::make_unique<std::atomic<bool>[]>(at(lanes))) {
    solvers_.reserve(at(lanes));
    for (int l = 0; l < lanes; ++l) solvers_.push_back(make_(l));
  }

  /// As StepBatch::prepare; the impedances of a port lie `stride` apart from those of the next.
  void prepare(double step_s, const double* impedance, int stride) {
    step_s_ = step_s;
    impedance_.clear();
    for (std::size_t l = 0; l < solvers_.size(); ++l) {
      for (int j = 0; j < ports_; ++j) {
        impedance_.push_back(impedance[at(j * stride) + l]);
      }
    }
    for (std::size_t l = 0; l < solvers_.size(); ++l) solvers_[l]->prepare(step_s, impedance_of(l));
  }

  /// The solver of a lane is that of another part, whose one solver `other` has; prepares it for the step size
  /// in force. `impedance` as in `prepare`. `make` of this lane has to make such solvers from now on.
  /// Errors: those of preparing it, nothing having changed.
  void take(int lane, SolverOfEachLane& other, const double* impedance, int stride) {
    std::unique_ptr<Solver>& solver = other.solvers_.front();
    std::vector<double> own;
    for (int j = 0; j < ports_; ++j) own.push_back(impedance[at(j * stride) + at(lane)]);
    solver->prepare(step_s_, own.data());
    std::ranges::copy(own, impedance_.begin() + static_cast<std::ptrdiff_t>(at(lane) * at(ports_)));
    solvers_[at(lane)] = std::move(solver);
  }

  /// act(solver of the lane, prepared).
  template <class Act>
  std::invoke_result_t<const Act&, Solver&> with(int lane, const Act& act) const {
    if (taken_[at(lane)].exchange(true, std::memory_order_acquire)) {
      const std::unique_ptr<Solver> another = make_(lane);
      another->prepare(step_s_, impedance_of(at(lane)));
      return act(*another);
    }
    struct Return {
      std::atomic<bool>& taken;
      ~Return() { taken.store(false, std::memory_order_release); }
    } const give_back{taken_[at(lane)]};  // also where a callback throws
    return act(*solvers_[at(lane)]);
  }

 private:
  const double* impedance_of(std::size_t lane) const {
    return impedance_.data() + lane * at(ports_);
  }

  Make make_;
  int ports_;
  double step_s_ = 0.0;
  std::vector<double> impedance_;  // lane by lane
  std::unique_ptr<std::atomic<bool>[]> taken_;
  std::vector<std::unique_ptr<Solver>> solvers_;  // of lane l: whoever has set taken_[l]
};

}  // namespace portwave

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// Whether all lanes have the same part.
inline bool are_one(std::span<const Subsystem* const> parts) {
  return std::ranges::all_of(parts, [&](const Subsystem* part) { return part == parts[0]; });
}

/// The solvers of the lanes of a batch. A solver works in memory of its own, too large for every record:
/// matrices of the part, and whatever structure a user's part writes. It holds nothing between two calls but what is
/// kept with its key. So each lane has one, which a call takes for as long as it lasts; a second thread that solves the
/// same lane at the same time, with another record, makes one for that call. Lanes of one part without ports, as
/// replicas have them, share one solver for each thread that is at work: those of all would not stay in the cache.
template <class Solver>
class SolverOfEachLane {
 public:
  using Make = std::function<std::unique_ptr<Solver>(int lane)>;

  /// `are_equal`: `make` makes equal ones for all lanes.
  SolverOfEachLane(int lanes, int ports, bool are_equal, Make make)
      : make_(std::move(make)),
        ports_(ports),
        is_shared_(ports == 0 && are_equal),
        taken_(std::make_unique<std::atomic<bool>[]>(at(lanes))),
        solvers_(at(lanes)) {
    for (int l = 0; l < (is_shared_ ? 1 : lanes); ++l) solvers_[at(l)] = make_(l);
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
    for (std::size_t l = 0; l < solvers_.size(); ++l) {
      if (solvers_[l] != nullptr) solvers_[l]->prepare(step_s, impedance_of(l));
    }
  }

  /// The solver of a lane is that of another part, whose one solver `other` has; prepares it for the step size
  /// in force. `impedance` as in `prepare`. `make` of this lane has to make such solvers from now on.
  /// Errors: those of preparing it, nothing having changed.
  void take(int lane, SolverOfEachLane& other, const double* impedance, int stride) {
    std::unique_ptr<Solver>& solver = other.solvers_.front();
    std::vector<double> own;
    for (int j = 0; j < ports_; ++j) own.push_back(impedance[at(j * stride) + at(lane)]);
    solver->prepare(step_s_, own.data());
    if (is_shared_) {  // lanes differ from now on
      for (int l = 0; l < lanes(); ++l) {
        if (l != lane && solvers_[at(l)] == nullptr) solvers_[at(l)] = made(l);
      }
      is_shared_ = false;
    }
    std::ranges::copy(own, impedance_.begin() + static_cast<std::ptrdiff_t>(at(lane) * at(ports_)));
    solvers_[at(lane)] = std::move(solver);
  }

  /// act(solver of the lane, prepared).
  template <class Act>
  std::invoke_result_t<const Act&, Solver&> with(int lane, const Act& act) const {
    struct Return {
      std::atomic<bool>& taken;
      ~Return() { taken.store(false, std::memory_order_release); }
    };
    int place = is_shared_ ? 0 : lane;
    while (taken_[at(place)].exchange(true, std::memory_order_acquire)) {
      if (!is_shared_ || ++place == lanes()) return act(*made(lane));
    }
    const Return give_back{taken_[at(place)]};  // also where a callback throws
    std::unique_ptr<Solver>& own = solvers_[at(place)];
    if (own == nullptr) own = made(place);
    return act(*own);
  }

 private:
  int lanes() const { return static_cast<int>(solvers_.size()); }
  std::unique_ptr<Solver> made(int lane) const {
    std::unique_ptr<Solver> out = make_(lane);
    out->prepare(step_s_, impedance_of(at(lane)));
    return out;
  }
  const double* impedance_of(std::size_t lane) const {
    return impedance_.data() + lane * at(ports_);
  }

  Make make_;
  int ports_;
  bool is_shared_;  // any lane may take any solver
  double step_s_ = 0.0;
  std::vector<double> impedance_;  // lane by lane
  std::unique_ptr<std::atomic<bool>[]> taken_;
  // Of lane l, or of the l-th thread at work: whoever has set taken_[l]. Of shared ones some are yet to be made.
  mutable std::vector<std::unique_ptr<Solver>> solvers_;
};

}  // namespace portwave

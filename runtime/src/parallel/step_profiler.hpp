#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "parallel/clock.hpp"
#include "parallel/step_trace.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/parallel/profile.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

/// Samples steps of a run, and sums up their times.
class StepProfiler {
 public:
  /// `workers`: threads whose tasks are followed; 0: none are.
  StepProfiler(ProfileOptions options, int workers);

  StepTrace* trace() { return trace_.get(); }
  /// For one thread: where guard and ledger find the loops that they would share with others, so that these are
  /// timed. Null for more threads, or where tasks are not followed.
  const ForEach* loops() const { return trace_ && trace_->workers() == 1 ? &loops_ : nullptr; }

  /// Called when the inner iteration of a step begins, also of another attempt at it.
  void begin(std::int64_t step);
  struct Times {
    Clock::time_point start, ready, inner_end, end;
  };
  void end(std::int64_t step, const Times& times, int iterations);
  /// Likewise where a step is taken in pieces, for all but the last, which tells the iterations of all.
  void end_piece(std::int64_t step, const Times& times);

  /// `waves`: null for methods without waves. `costs`: by batch; null if they are not known.
  Profile profile(const WaveDiscretisation* waves, const LaneCosts* costs, const Partition* tasks,
                  const Partition* serial) const;

 private:
  /// One after another, and timed within the steps that are sampled.
  class TimedLoops final : public ForEach {
   public:
    explicit TimedLoops(const StepProfiler& own) : own_(own) {}
    mutable double sum_s = 0.0;
    mutable std::int64_t count = 0;

   private:
    void run(int count_of, void (*call)(const void* body, int i), const void* body) const override {
      const auto start = Clock::now();
      ForEach::run(count_of, call, body);
      if (!own_.trace_->is_on()) return;
      sum_s += seconds(Clock::now() - start);
      ++count;
    }

    const StepProfiler& own_;
  };

  bool is_sampled(std::int64_t step) const { return step % every_ == 0; }
  void take(std::int64_t step, const Times& times);
  void take_tasks(std::int64_t step, const Times& times);
  void keep(const ProfileEvent& event);
  /// Drops the events of every second sampled step, and samples half as often from now on.
  void thin();

  ProfileOptions options_;
  std::unique_ptr<StepTrace> trace_;
  TimedLoops loops_{*this};
  std::int64_t every_ = 1;
  Profile sums_;
  std::map<int, ProfileTask> tasks_;
  std::int64_t origin_ns_ = 0;
  bool has_origin_ = false, is_after_step_ = false;
  Clock::time_point last_end_{};
  double other_s_ = 0.0;
  std::int64_t others_ = 0;
};

}  // namespace portwave

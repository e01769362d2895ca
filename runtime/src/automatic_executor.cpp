#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "executor.hpp"

namespace portwave {
namespace {

/// Runs each step with one of two executors. Their results are the same bits, so the clock may
/// choose: every so often a block of steps is given to the one that is not in use, and the faster
/// of the two goes on. A machine that is shared with others shows up as a slow parallel block.
class AutomaticExecutor final : public Executor {
 public:
  AutomaticExecutor(std::unique_ptr<Executor> serial, std::unique_ptr<Executor> parallel)
      : executors_{std::move(serial), std::move(parallel)} {}

  int threads() const override { return executors_[1]->threads(); }
  int tasks() const override { return executors_[1]->tasks(); }
  std::size_t bytes() const override { return executors_[0]->bytes() + executors_[1]->bytes(); }

  void bind(const StepArrays& arrays) override {
    for (const auto& executor : executors_) executor->bind(arrays);
  }
  void recompile() override {
    for (const auto& executor : executors_) executor->recompile();
  }
  StepResult run(const StepArrays& arrays, const StepPlan& plan,
                 std::span<IslandOutcome> outcomes) override {
    if (!plan.recommit.empty()) return executors_[used_]->run(arrays, plan, outcomes);
    const auto start = Clock::now();
    StepResult result = executors_[used_]->run(arrays, plan, outcomes);
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    block_s_ += took;
    // Under a deadline a step takes what it may: what counts then is the time per iteration.
    block_work_ +=
        plan.deadline == nullptr || outcomes.empty() ? 1.0 : 1.0 + outcomes.front().iterations;
    ++block_steps_;
    if (block_s_ >= block_length_s_ && block_steps_ >= kShortestBlock) {
      end_block(/*may_try=*/plan.deadline == nullptr || !known_[0] || !known_[1]);
    }
    return result;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kSerial = 0, kParallel = 1;
  static constexpr int kShortestBlock = 4;
  /// Trials are short, terms of office long: trying costs a few per cent at the most.
  static constexpr double kTrial_s = 300e-6;
  static constexpr double kFirstTerm_s = 5e-3;
  static constexpr double kLongestTerm_s = 320e-3;
  static constexpr double kLongestPenance_s = 2.0;
  /// What threads must bring to be used.
  static constexpr double kWorthwhile = 0.97;

  /// Under a deadline the first comparison stands: a trial of the slower one might miss it.
  void end_block(bool may_try) {
    cost_s_[used_] = block_s_ / block_work_;
    block_work_ = 0.0;
    known_[used_] = true;
    block_s_ = 0.0;
    block_steps_ = 0;
    if (!known_[1 - used_]) return start(1 - used_, kTrial_s, /*on_trial=*/true);
    const int better = cost_s_[kParallel] < kWorthwhile * cost_s_[kSerial] ? kParallel : kSerial;
    if (on_trial_) {
      if (better == chosen_) {
        term_s_[chosen_] = std::min(2.0 * term_s_[chosen_], longest_term(chosen_));
      } else if (better == kParallel) {
        term_s_[kParallel] = kFirstTerm_s;  // on probation: a trial is too short to meet a stall
      }
      chosen_ = better;
      return start(chosen_, term_s_[chosen_], false);
    }
    if (used_ == kParallel) {
      if (better == kSerial) {
        // What a trial promised the term did not keep: others use the machine. Longer and longer
        // until the next trial.
        term_s_[kSerial] = std::min(4.0 * term_s_[kSerial], kLongestPenance_s);
        chosen_ = kSerial;
        return start(kSerial, term_s_[kSerial], false);
      }
      term_s_[kSerial] = kFirstTerm_s;
    }
    if (may_try) {
      start(1 - used_, kTrial_s, true);
    } else {
      start(used_, term_s_[used_], false);
    }
  }

  double longest_term(int executor) const {
    return executor == kSerial ? std::max(kLongestTerm_s, term_s_[kSerial]) : kLongestTerm_s;
  }

  void start(int executor, double length_s, bool on_trial) {
    used_ = executor;
    block_length_s_ = length_s;
    on_trial_ = on_trial;
  }

  std::unique_ptr<Executor> executors_[2];
  int used_ = kSerial;
  int chosen_ = kSerial;
  bool on_trial_ = false;
  bool known_[2] = {false, false};
  double cost_s_[2] = {0.0, 0.0};
  double block_s_ = 0.0;
  double block_work_ = 0.0;
  double block_length_s_ = kTrial_s;
  double term_s_[2] = {kFirstTerm_s, kFirstTerm_s};
  int block_steps_ = 0;
};

}  // namespace

std::unique_ptr<Executor> make_automatic_executor(std::unique_ptr<Executor> serial,
                                                  std::unique_ptr<Executor> parallel) {
  return std::make_unique<AutomaticExecutor>(std::move(serial), std::move(parallel));
}

}  // namespace portwave

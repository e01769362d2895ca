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
  StepResult run(const StepArrays& arrays, const StepPlan& plan,
                 std::span<IslandOutcome> outcomes) override {
    const auto start = Clock::now();
    StepResult result = executors_[used_]->run(arrays, plan, outcomes);
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    block_s_ += took;
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
  static constexpr double kFirstTerm_s = 10e-3;
  static constexpr double kLongestTerm_s = 320e-3;
  /// What threads must bring to be used.
  static constexpr double kWorthwhile = 0.97;

  /// Under a deadline the first comparison stands: a trial of the slower one might miss it.
  void end_block(bool may_try) {
    const double step_s = block_s_ / block_steps_;
    block_s_ = 0.0;
    block_steps_ = 0;
    cost_s_[used_] = step_s;
    known_[used_] = true;
    if (!known_[1 - used_]) {
      try_the_other();
      return;
    }
    const int better = cost_s_[kParallel] < kWorthwhile * cost_s_[kSerial] ? kParallel : kSerial;
    if (on_trial_) {
      // Terms grow as long as trials confirm the choice.
      term_s_ = better == chosen_ ? std::min(2.0 * term_s_, kLongestTerm_s) : kFirstTerm_s;
      chosen_ = better;
      on_trial_ = false;
      used_ = chosen_;
      block_length_s_ = term_s_;
      return;
    }
    if (may_try) try_the_other();
  }

  void try_the_other() {
    used_ = 1 - used_;
    on_trial_ = true;
    block_length_s_ = kTrial_s;
  }

  std::unique_ptr<Executor> executors_[2];
  int used_ = kSerial;
  int chosen_ = kSerial;
  bool on_trial_ = false;
  bool known_[2] = {false, false};
  double cost_s_[2] = {0.0, 0.0};
  double block_s_ = 0.0;
  double block_length_s_ = kTrial_s;
  double term_s_ = kFirstTerm_s;
  int block_steps_ = 0;
};

}  // namespace

std::unique_ptr<Executor> make_automatic_executor(std::unique_ptr<Executor> serial,
                                                  std::unique_ptr<Executor> parallel) {
  return std::make_unique<AutomaticExecutor>(std::move(serial), std::move(parallel));
}

}  // namespace portwave

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "parallel/clock.hpp"
#include "parallel/executors/executor.hpp"
#include "parallel/threads/faster_of_two.hpp"

namespace portwave {
namespace {

/// Runs each step with one of two executors, whichever is the faster lately.
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
  bool keeps_places() const override {
    return executors_[0]->keeps_places() || executors_[1]->keeps_places();
  }
  StepResult do_execute(const StepArrays& arrays, const StepPlan& plan,
                        std::span<IslandOutcome> outcomes) override {
    const auto used = static_cast<std::size_t>(choice_.used());
    if (!plan.recommit.empty()) return executors_[used]->execute(arrays, plan, outcomes);
    const auto start = Clock::now();
    StepResult result = executors_[used]->execute(arrays, plan, outcomes);
    const double took = seconds(Clock::now() - start);
    // Under a deadline a step takes what it may: what counts then is the time per iteration. And
    // the first comparison stands: a trial of the slower one might miss it.
    const bool is_fixed = plan.deadline == nullptr;
    choice_.add(took, is_fixed || outcomes.empty() ? 1.0 : 1.0 + outcomes.front().iterations,
                /*may_try=*/is_fixed);
    return result;
  }
  const ForEach& for_each() const override { return each_; }
  const ForEach& for_each_within() const override { return within_; }

 private:
  /// As the one that is used.
  class UsedForEach final : public ForEach {
   public:
    using Of = const ForEach& (Executor::*)() const;
    UsedForEach(const AutomaticExecutor& own, Of of) : own_(own), of_(of) {}

   private:
    void run(int count, void (*call)(const void* body, int i), const void* body) const override {
      (own_.used().*of_)()(count, [&](int i) { call(body, i); });
    }

    const AutomaticExecutor& own_;
    Of of_;
  };

  const Executor& used() const { return *executors_[static_cast<std::size_t>(choice_.used())]; }

  std::unique_ptr<Executor> executors_[2];  // serial, parallel
  FasterOfTwo choice_;
  UsedForEach each_{*this, &Executor::for_each}, within_{*this, &Executor::for_each_within};
};

}  // namespace

std::unique_ptr<Executor> make_automatic_executor(std::unique_ptr<Executor> serial,
                                                  std::unique_ptr<Executor> parallel) {
  return std::make_unique<AutomaticExecutor>(std::move(serial), std::move(parallel));
}

}  // namespace portwave

// The sums of an evaluation travel while the next one is made, where it is not expected to be the last.
// Where it was the last, the step is that of one process nevertheless.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "support/systems/counting_part.hpp"
#include "support/systems/networks.hpp"
#include "support/thread_ranks.hpp"
#include "support/trace.hpp"

namespace portwave::test_sums_ahead {
namespace {

using testing::ThreadRanks;

/// What a rank did with messages, in order: s: sent sums, r: received sums, w: sent waves.
class Listening final : public Ranks {
 public:
  Listening(std::shared_ptr<Ranks> ranks, std::string& log) : ranks_(std::move(ranks)), log_(log) {}
  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  void gather(std::span<const std::byte> own, std::span<const std::size_t> bytes,
              std::span<std::byte> all) override {
    ranks_->gather(own, bytes, all);
  }
  void broadcast(std::span<std::byte> bytes) override { ranks_->broadcast(bytes); }
  std::unique_ptr<NeighbourMessages> connect(std::span<const Neighbour> neighbours, int slots,
                                             Carries carries) override {
    return std::make_unique<Messages>(ranks_->connect(neighbours, slots, carries),
                                      carries == Carries::sums, log_);
  }
  std::shared_ptr<Ranks> first(int count) override { return ranks_->first(count); }
  void rest() override { ranks_->rest(); }
  RankTraffic traffic() const override { return ranks_->traffic(); }

 private:
  class Messages final : public NeighbourMessages {
   public:
    Messages(std::unique_ptr<NeighbourMessages> messages, bool are_sums, std::string& log)
        : messages_(std::move(messages)), are_sums_(are_sums), log_(log) {}
    std::span<double> outgoing(int i, std::uint64_t number) override {
      return messages_->outgoing(i, number);
    }
    void send(std::uint64_t number) override {
      log_ += are_sums_ ? 's' : 'w';
      messages_->send(number);
    }
    void receive(std::uint64_t number) override {
      messages_->receive(number);
      if (are_sums_) log_ += 'r';
    }
    bool arrived(int i, std::uint64_t number, std::uint64_t now) override {
      return messages_->arrived(i, number, now);
    }
    std::span<const double> incoming(int i, std::uint64_t number) override {
      return messages_->incoming(i, number);
    }
    void release(std::uint64_t number) override { messages_->release(number); }
    void release(int i, std::uint64_t number) override { messages_->release(i, number); }

   private:
    std::unique_ptr<NeighbourMessages> messages_;
    bool are_sums_;
    std::string& log_;
  };

  std::shared_ptr<Ranks> ranks_;
  std::string& log_;
};

StepperOptions options_of(double tolerance, int budget) {
  StepperOptions options{.method = WaveCoupling{}};
  options.step_s = 0.05;
  options.executor = ExecutorKind::serial;
  options.grain = Grain::of_parts(4);
  options.method.waves().iterations = budget;
  options.method.waves().tolerance = tolerance;
  return options;
}

std::vector<int> counts_of(const System& system, const StepperOptions& options, int steps) {
  Stepper stepper(system, options);
  std::vector<int> counts;
  for (int n = 0; n < steps; ++n) counts.push_back(stepper.step().iterations);
  return counts;
}

std::vector<std::pair<const char*, System>> networks() {
  std::vector<std::pair<const char*, System>> all;
  all.emplace_back("net", testing::net(4, 6));
  all.emplace_back("line", testing::line(37));
  all.emplace_back("lines", testing::lines_of({30, 3, 20, 1}));
  return all;
}

TEST(SumsAhead, GiveTheBitsOfOneProcessWhereCountsJump) {
  const int steps = 60;
  int rises = 0, falls = 0;
  for (const auto& [name, system] : networks()) {
    for (const double tolerance : {1e-3, 1e-8}) {
      for (const int budget : {9, 200}) {
        StepperOptions options = options_of(tolerance, budget);
        const std::vector<int> counts = counts_of(system, options, steps);
        for (std::size_t n = 1; n < counts.size(); ++n) {
          rises += counts[n] > counts[n - 1] ? 1 : 0;
          falls += counts[n] < counts[n - 1] ? 1 : 0;
        }
        const std::vector<double> alone = testing::trace(system, options, steps);
        for (const int ranks : {2, 3, 5}) {
          options.threads = ranks == 3 ? 2 : 1;
          std::vector<double> together;
          ThreadRanks::run(
              ranks,
              [&](const std::shared_ptr<Ranks>& own) {
                StepperOptions shared = options;
                shared.ranks = own;
                if (own->rank() == 0) {
                  together = testing::trace(system, shared, steps);
                } else {
                  RankedStepper(Stepper(system, shared)).follow();
                }
              },
              /*seed=*/static_cast<unsigned>(ranks));
          EXPECT_TRUE(testing::same_bits(together, alone))
              << name << " tolerance " << tolerance << " budget " << budget << " ranks " << ranks;
        }
      }
    }
  }
  // Else nothing was expected wrongly.
  EXPECT_GT(rises, 10);
  EXPECT_GT(falls, 10);
}

TEST(SumsAhead, TravelWhileTheNextEvaluationIsMade) {
  const System system = testing::line(37);
  const int steps = 30, budget = 200;
  StepperOptions options = options_of(1e-6, budget);
  options.method.waves().guard = false;  // it commits again
  const std::vector<int> counts = counts_of(system, options, steps);
  std::string log;
  std::int64_t sent = 0;
  ThreadRanks::run(2, [&](const std::shared_ptr<Ranks>& own) {
    std::string other;
    StepperOptions shared = options;
    shared.ranks = std::make_shared<Listening>(own, own->rank() == 0 ? log : other);
    Stepper stepper(system, shared);
    if (own->rank() != 0) return RankedStepper(stepper).follow();
    const std::int64_t before = own->traffic().messages;
    for (int n = 0; n < steps; ++n) stepper.step();
    sent = own->traffic().messages - before;
  });
  std::int64_t ahead = 0, waves = 0, expected = 0;
  for (const int count : counts) {
    ahead += std::min<std::int64_t>(count, std::max<std::int64_t>(expected - 1, 0));
    waves += count + (count < expected ? 1 : 0) + 1;  // and of the commit
    expected = count;
  }
  std::int64_t between = 0;  // sums that were under way when waves of the next evaluation were sent
  for (std::size_t i = 0; i + 2 < log.size(); ++i) between += log.substr(i, 3) == "swr" ? 1 : 0;
  EXPECT_GT(between, steps);
  EXPECT_EQ(between, ahead);
  EXPECT_EQ(sent, waves);
}

/// Fails in one evaluation of one step, which are counted from 1.
struct Fault {
  int step = 0, evaluation = 0;
};
/// The step that is being made. Others than rank 0 are at no other when they evaluate anything.
std::atomic<int> step_in_progress = 0;

class FailingBatch final : public testing::ExactBatch {
 public:
  FailingBatch(std::unique_ptr<StepBatch> batch, Fault fault)
      : ExactBatch(std::move(batch)), fault_(fault) {}
  LaneStatus scatter(LaneRange lanes, double* record, const double* a, double* b) const override {
    if (++evaluation_ == fault_.evaluation && step_in_progress == fault_.step) {
      return {lanes.first, StepFault::not_converged};
    }
    return ExactBatch::scatter(lanes, record, a, b);
  }
  LaneStatus advance(LaneRange lanes, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    evaluation_ = 0;
    return ExactBatch::advance(lanes, record, a, next, b, energy);
  }
  void freeze(LaneRange lanes, double* record, const double* input) const override {
    evaluation_ = 0;
    ExactBatch::freeze(lanes, record, input);
  }

 private:
  Fault fault_;
  mutable int evaluation_ = 0;
};

class FailingPart final : public testing::CountingPart {
 public:
  FailingPart(std::shared_ptr<const Subsystem> physics, Fault fault)
      : CountingPart(std::move(physics)), fault_(fault) {}
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    return std::make_unique<FailingBatch>(Subsystem::make_batch(parts), fault_);
  }

 private:
  Fault fault_;
};

/// A line whose last link but one fails.
System failing_line(Fault fault) {
  const int links = 24;
  SystemBuilder builder;
  for (int i = 0; i < links; ++i) {
    SystemBuilder::PartOptions options;
    if (i == 0) {
      options.initial_state = {0.1, 0, 0};
      options.inputs = {{"force_1", Signal::sine_product(2.0, {{1.5, 0.2}})}};
    }
    std::unique_ptr<Subsystem> link = testing::line_link(i);
    if (i == links - 2) link = std::make_unique<FailingPart>(std::move(link), fault);
    builder.add("link" + std::to_string(i), std::move(link), std::move(options));
  }
  for (int i = 0; i + 1 < links; ++i) {
    builder.connect("link" + std::to_string(i) + ".right",
                    "link" + std::to_string(i + 1) + ".left");
  }
  builder.join(joint::Free{}, {"link0.left"});
  builder.join(joint::Fixed{}, {"link" + std::to_string(links - 1) + ".right"});
  return builder.build();
}

/// What a run came to, or what it said when it failed.
std::string outcome_of(const System& system, const StepperOptions& options, int steps) {
  step_in_progress = 0;
  try {
    Stepper stepper(system, options);
    std::vector<double> values;
    for (int n = 0; n < steps; ++n) {
      step_in_progress = n + 1;
      const StepReport report = stepper.step();
      values.insert(values.end(), {static_cast<double>(report.iterations), report.residual,
                                   report.energy.stored_J, report.energy.dissipated_J});
    }
    testing::append_interface(stepper, values);
    std::string text;
    for (const double value : values) {
      text += std::to_string(std::bit_cast<std::uint64_t>(value)) + " ";
    }
    return text;
  } catch (const StepError& error) {
    return error.what();
  }
}

TEST(SumsAhead, AFaultThatOneProcessNeverComesToIsNone) {
  const int steps = 60;
  StepperOptions options = options_of(1e-7, 200);
  options.method.waves().guard = false;  // commits once
  const std::vector<int> counts = counts_of(failing_line({}), options, steps);
  int falls = 0;
  for (std::size_t n = 1; n < counts.size(); ++n) {
    if (counts[n] >= counts[n - 1]) continue;
    ++falls;
    for (const int late : {1, 0}) {
      const System system = failing_line({static_cast<int>(n) + 1, counts[n] + late});
      const std::string alone = outcome_of(system, options, steps);
      EXPECT_EQ(alone.find("link22") == std::string::npos, late == 1) << alone;
      for (const int ranks : {2, 3}) {
        std::string together;
        ThreadRanks::run(ranks, [&](const std::shared_ptr<Ranks>& own) {
          StepperOptions shared = options;
          shared.ranks = own;
          if (own->rank() == 0) {
            together = outcome_of(system, shared, steps);
          } else {
            RankedStepper(Stepper(system, shared)).follow();
          }
        });
        EXPECT_EQ(together, alone) << "step " << n << " late " << late << " ranks " << ranks;
      }
    }
  }
  EXPECT_GT(falls, 2) << ::testing::PrintToString(counts);
}

TEST(SumsAheadControl, WhereNothingIsExpectedNothingIsAhead) {
  const System system = testing::line(37);
  std::string log;
  ThreadRanks::run(2, [&](const std::shared_ptr<Ranks>& own) {
    std::string other;
    StepperOptions shared = options_of(1e-6, 200);
    shared.ranks = std::make_shared<Listening>(own, own->rank() == 0 ? log : other);
    Stepper stepper(system, shared);
    if (own->rank() != 0) return RankedStepper(stepper).follow();
    stepper.step();
  });
  EXPECT_EQ(log.find("swr"), std::string::npos);
  EXPECT_NE(log.find("sr"), std::string::npos);
}

}  // namespace
}  // namespace portwave::test_sums_ahead

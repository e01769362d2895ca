// What a rank does in which order: first what others wait for, then, while that travels, the rest.

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/chain.hpp>

#include "support/systems/counting_part.hpp"
#include "support/thread_ranks.hpp"

namespace portwave::test_rank_order {
namespace {

constexpr int kSend = -1, kReceive = -2;

/// What this rank, a thread, has done: parts that it solved, and messages of waves.
thread_local std::vector<int> done;

/// Says which parts are solved.
class NotedBatch final : public testing::ExactBatch {
 public:
  NotedBatch(std::unique_ptr<StepBatch> batch, std::vector<int> parts)
      : ExactBatch(std::move(batch)), parts_(std::move(parts)) {}
  LaneStatus scatter(LaneRange lanes, double* record, const double* a, double* b) const override {
    done.insert(done.end(), parts_.begin() + lanes.first, parts_.begin() + lanes.last);
    return ExactBatch::scatter(lanes, record, a, b);
  }

 private:
  std::vector<int> parts_;
};

/// A block of a chain.
class NotedPart final : public testing::CountingPart {
 public:
  NotedPart(std::shared_ptr<const Subsystem> physics, int number)
      : CountingPart(physics), physics_(std::move(physics)), number_(number) {}
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    std::vector<const Component*> physics;
    std::vector<int> numbers;
    for (const Component* part : parts) {
      const auto& own = static_cast<const NotedPart&>(*part);
      physics.push_back(own.physics_.get());
      numbers.push_back(own.number_);
    }
    return std::make_unique<NotedBatch>(physics_->make_batch(physics), std::move(numbers));
  }

 private:
  std::shared_ptr<const Subsystem> physics_;
  int number_;
};

class NotedMessages final : public NeighbourMessages {
 public:
  explicit NotedMessages(std::unique_ptr<NeighbourMessages> messages)
      : messages_(std::move(messages)) {}
  std::span<double> outgoing(int i, std::uint64_t number) override {
    return messages_->outgoing(i, number);
  }
  void send(std::uint64_t number) override {
    done.push_back(kSend);
    messages_->send(number);
  }
  void receive(std::uint64_t number) override {
    done.push_back(kReceive);
    messages_->receive(number);
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
};

class NotedRanks final : public Ranks {
 public:
  explicit NotedRanks(std::shared_ptr<Ranks> ranks) : ranks_(std::move(ranks)) {}
  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  void gather(std::span<const std::byte> own, std::span<const std::size_t> bytes,
              std::span<std::byte> all) override {
    ranks_->gather(own, bytes, all);
  }
  void broadcast(std::span<std::byte> bytes) override { ranks_->broadcast(bytes); }
  std::unique_ptr<NeighbourMessages> connect(std::span<const Neighbour> neighbours, int slots,
                                             Carries carries) override {
    auto messages = ranks_->connect(neighbours, slots, carries);
    if (carries != Carries::waves) return messages;
    return std::make_unique<NotedMessages>(std::move(messages));
  }
  std::shared_ptr<Ranks> first(int count) override { return ranks_->first(count); }
  void rest() override { ranks_->rest(); }
  RankTraffic traffic() const override { return ranks_->traffic(); }

 private:
  std::shared_ptr<Ranks> ranks_;
};

constexpr int kParts = 96;

System noted_chain() {
  SystemBuilder builder;
  const auto block = [](ChainEnd end) {
    return std::shared_ptr<const Subsystem>(
        mass_spring_damper_chain({.masses = 2,
                                  .mass_kg = 1.0,
                                  .stiffness_N_per_m = 30.0,
                                  .coupling_stiffness_N_per_m = 30.0,
                                  .right_end = end}));
  };
  const auto inner = block(ChainEnd::spring), last = block(ChainEnd::mass);
  for (int i = 0; i < kParts; ++i) {
    builder.add("p" + std::to_string(i),
                std::make_shared<NotedPart>(i + 1 < kParts ? inner : last, i));
    if (i == 0) continue;
    builder.connect("p" + std::to_string(i - 1) + ".right", "p" + std::to_string(i) + ".left");
  }
  builder.join(joint::Free{}, {"p0.left"});
  builder.join(joint::Free{}, {"p" + std::to_string(kParts - 1) + ".right"});
  return builder.build();
}

TEST(RankOrder, WhatOthersWaitForIsSentBeforeTheRestIsDone) {
  const System system = noted_chain();
  constexpr int kRanks = 3, kEvaluations = 4;
  std::mutex mutex;
  int looked_at = 0;
  testing::ThreadRanks::run(kRanks, [&](const std::shared_ptr<Ranks>& own) {
    StepperOptions options{.method = WaveCoupling{}};
    options.step_s = 0.01;
    options.certify = Certify::none;
    options.method.waves().iterations = kEvaluations;
    options.method.waves().guard = false;
    options.ranks = std::make_shared<NotedRanks>(own);
    Stepper stepper(system, options);
    done.clear();
    own->rank() == 0 ? static_cast<void>(stepper.step()) : RankedStepper(stepper).follow();
    const std::lock_guard lock(mutex);
    auto at = done.begin();
    for (int k = 0; k < kEvaluations; ++k) {
      const auto sent = std::find(at, done.end(), kSend);
      const auto received = std::find(sent, done.end(), kReceive);
      ASSERT_NE(received, done.end()) << "rank " << own->rank() << " evaluation " << k;
      const std::set<int> before(at, sent), after(sent + 1, received);
      at = received + 1;
      ++looked_at;
      EXPECT_FALSE(before.empty()) << "rank " << own->rank() << " evaluation " << k;
      EXPECT_GE(after.size(), before.size()) << "rank " << own->rank() << " evaluation " << k;
      for (const int part : before) EXPECT_EQ(after.count(part), 0U) << part;
    }
  });
  EXPECT_EQ(looked_at, kRanks * kEvaluations);
}

}  // namespace
}  // namespace portwave::test_rank_order

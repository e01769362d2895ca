// Scaling over ranks, which are threads of this process (support/thread_ranks.hpp): what is measured and
// what predicted, and that all come to an end whatever fails. Never times.

#include <cmath>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rank_study/rank_scaling.hpp"
#include "support/systems/systems.hpp"
#include "support/thread_ranks.hpp"

namespace portwave {
namespace {

using testing::ThreadRanks;

Scenario chain(int blocks) {
  CouplingMethod method = WaveCoupling{};
  method.waves().iterations = 3;
  method.waves().guard = false;
  StepperOptions options;
  options.step_s = 0.01;
  options.method = method;
  return {"chain", testing::chain_of_blocks(blocks, 3), options, 10};
}

RankScalingOptions quick() {
  RankScalingOptions options;
  options.repetitions = 2;
  options.steps = 2;
  options.cores = 2;
  options.grain = Grain::of_parts(4);
  return options;
}

/// What rank 0 is told; all others are to get a study without rows.
template <class Study>
RankScalingStudy on_ranks(int count, const Study& study, unsigned seed = 0) {
  RankScalingStudy first;
  ThreadRanks::run(
      count,
      [&](const std::shared_ptr<Ranks>& own) {
        RankScalingStudy result = study(own);
        if (own->rank() == 0) {
          first = std::move(result);
        } else {
          EXPECT_TRUE(result.rows.empty());
        }
      },
      seed);
  return first;
}

void expect_consistent(const std::vector<RankScalingRow>& rows) {
  for (const RankScalingRow& row : rows) {
    EXPECT_GT(row.step_s, 0.0) << row.ranks;
    EXPECT_NEAR(row.efficiency * row.ranks * row.threads, row.speed_up, 1e-9 * row.speed_up);
    EXPECT_EQ(row.spread.has_value(), !row.predicted);
    const RankStepTime& time = row.prediction;
    for (const double term :
         {time.work_s, time.imbalance_s, time.common_s, time.messages_s, time.gathers_s}) {
      EXPECT_GE(term, 0.0) << row.ranks;
    }
    // The closed formula against the events. With three evaluations, who has the order last is not the
    // one whose entries are there last.
    EXPECT_LE(row.simulated_s, 1.02 * time.total_s()) << row.ranks;
    EXPECT_GE(row.simulated_s, 0.75 * time.total_s()) << row.ranks;
    if (row.predicted) {
      EXPECT_EQ(row.step_s, time.total_s());
    }
    if (row.ranks == 1) {
      EXPECT_EQ(time.messages_s + time.gathers_s, 0.0);
    }
  }
}

TEST(RankScaling, MeasuresTheRanksThatThereAreAndPredictsTheRest) {
  const Scenario scenario = chain(64);
  for (const unsigned seed : {0U, 5U}) {
    const RankScalingStudy study = on_ranks(
        3,
        [&](const std::shared_ptr<Ranks>& world) {
          RankScalingOptions options = quick();
          options.world = world;
          options.ranks = {8, 2, 1, 3};
          options.threads = {1, 2};
          return study_rank_scaling(scenario, options);
        },
        seed);
    ASSERT_EQ(study.rows.size(), 8u);
    EXPECT_EQ(study.started, 3);
    EXPECT_EQ(study.steps, 2);
    const int ranks[] = {1, 1, 2, 2, 3, 3, 8, 8};
    for (std::size_t i = 0; i < 8; ++i) {
      const RankScalingRow& row = study.rows[i];
      EXPECT_EQ(row.ranks, ranks[i]);
      EXPECT_EQ(row.threads, i % 2 == 0 ? 1 : 2);
      EXPECT_EQ(row.predicted, row.ranks > 3);
      EXPECT_EQ(row.oversubscribed, row.ranks <= 3 && row.ranks * row.threads > 2) << i;
      EXPECT_EQ(row.size, 64);
    }
    EXPECT_TRUE(study.rows[2].execution.find("2 ranks") != std::string::npos)
        << study.rows[2].execution;
    EXPECT_EQ(study.network_source, "measured");
    EXPECT_EQ(study.messages.size(), 6u);
    EXPECT_GE(study.network.latency_s, 0.0);
    EXPECT_GT(study.network.bandwidth_B_per_s, 0.0);
    expect_consistent(study.rows);
    expect_consistent(study.curve);
    // As long as each rank has a part.
    EXPECT_EQ(study.curve.back().ranks, 64);
  }
}

TEST(RankScaling, InOneProcessPredicts) {
  const Scenario scenario = chain(256);
  RankScalingOptions options = quick();
  options.ranks = {1, 2, 16};
  options.network = Interconnect{.latency_s = 1e-3, .bandwidth_B_per_s = 1e9};
  const RankScalingStudy study = study_rank_scaling(scenario, options);
  ASSERT_EQ(study.rows.size(), 3u);
  EXPECT_FALSE(study.rows[0].predicted);
  EXPECT_TRUE(study.rows[1].predicted);
  EXPECT_EQ(study.network_source, "given");
  // A message each way in three evaluations, an order, and a gather.
  EXPECT_GT(study.rows[1].step_s, 4e-3);
  EXPECT_LT(study.rows[1].speed_up, 1.0);
  EXPECT_EQ(study.rows[1].neighbours, 1);
  EXPECT_EQ(study.rows[2].neighbours, 2);
  EXPECT_EQ(study.rows[2].message_bytes, 4.0 * 16.0);
  // Each rank has some 16 parts, a quarter of a chunk: in four rounds six entries of each, and how it went.
  const double per_part = 4.0 * 48.0, heads = 16.0 * 24.0;
  EXPECT_GE(study.rows[2].gathered_bytes, per_part * 16.0 + heads);
  EXPECT_LE(study.rows[2].gathered_bytes, per_part * 63.0 + heads);
  expect_consistent(study.rows);
}

/// Without ledger and tolerance it is little; with them it is entries of chunks that are cut, or else sums.
TEST(RankScaling, ComparesWhatRanksAgreeUpon) {
  const Scenario scenario = chain(256);
  const RankScalingStudy study = study_rank_scaling(scenario, quick());
  ASSERT_EQ(study.protocols.size(), 4u);
  std::vector<double> cut, whole;
  for (const RankProtocol& protocol : study.protocols) {
    ASSERT_EQ(protocol.curve.size(), study.curve.size());
    cut.push_back(protocol.curve[4].gathered_bytes);
    whole.push_back(protocol.curve[2].gathered_bytes);
  }
  EXPECT_EQ(study.curve[4].ranks, 16);
  const double heads = 16.0 * 24.0;
  EXPECT_EQ(cut[0], heads);
  // Entries of parts: three of each evaluation for the gap, six for the ledger.
  const double gaps = cut[1] - heads, ledger = cut[2] - heads;
  // Cuts go by measured costs, for each protocol by itself: a rank has 16 parts or some more, but no whole chunk.
  const double per_part_gaps = 4.0 * 3.0 * 24.0, per_part_ledger = 4.0 * 48.0;
  EXPECT_GE(gaps, per_part_gaps * 16.0);
  EXPECT_LE(gaps, per_part_gaps * 63.0);
  EXPECT_GE(ledger, per_part_ledger * 16.0);
  EXPECT_LE(ledger, per_part_ledger * 63.0);
  EXPECT_GE(cut[3] - heads, (per_part_gaps + per_part_ledger) * 16.0);
  EXPECT_LE(cut[3] - heads, (per_part_gaps + per_part_ledger) * 63.0);
  // Of four ranks, in two rounds: a rank has two chunks that are cut at most, and a branch.
  EXPECT_EQ(study.curve[2].ranks, 4);
  EXPECT_LE(whole[3], 4.0 * 24.0 + 2.0 * (126.0 * (3.0 * 24.0 + 48.0) + 3.0 * 32.0 + 56.0));
}

TEST(WeakRankScaling, PairsSizesWithRanks) {
  std::vector<RankedScenario> scenarios;
  for (const int ranks : {1, 2, 4}) scenarios.push_back({chain(64 * ranks), ranks});
  const RankScalingStudy study = on_ranks(2, [&](const std::shared_ptr<Ranks>& world) {
    RankScalingOptions options = quick();
    options.world = world;
    return study_weak_rank_scaling(scenarios, options);
  });
  ASSERT_EQ(study.rows.size(), 3u);
  EXPECT_TRUE(study.weak);
  EXPECT_EQ(study.rows[0].efficiency, 1.0);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(study.rows[i].size, 64 * scenarios[i].ranks);
    EXPECT_EQ(study.rows[i].predicted, scenarios[i].ranks > 2);
  }
  expect_consistent(study.rows);
  expect_consistent(study.curve);
  EXPECT_EQ(study.curve.back().ranks, 10'000);
  for (const RankScalingRow& row : study.curve) {
    EXPECT_EQ(row.size, 64 * row.ranks);
    const double work_s = study.curve.front().prediction.work_s;
    EXPECT_NEAR(row.prediction.work_s, work_s, 1e-9 * work_s);
    EXPECT_EQ(row.neighbours, std::min(row.ranks - 1, 2));
  }
  // What a rank tells of sums grows with the rounds, and the notes with the ranks.
  const double few = study.curve[4].gathered_bytes, many = study.curve.back().gathered_bytes;
  EXPECT_DOUBLE_EQ((many - 24e4) / 14.0, (few - 24.0 * 16.0) / 4.0);
}

/// Adds to the first wave that comes in.
class Spoiled final : public Ranks {
 public:
  explicit Spoiled(std::shared_ptr<Ranks> inner) : inner_(std::move(inner)) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void gather(std::span<const std::byte> own, std::span<const std::size_t> bytes,
              std::span<std::byte> all) override {
    inner_->gather(own, bytes, all);
  }
  void broadcast(std::span<std::byte> bytes) override { inner_->broadcast(bytes); }
  std::unique_ptr<NeighbourMessages> connect(std::span<const Neighbour> neighbours, int slots,
                                             Carries carries) override {
    auto messages = inner_->connect(neighbours, slots, carries);
    if (carries != Carries::waves) return messages;
    return std::make_unique<Messages>(std::move(messages));
  }
  std::shared_ptr<Ranks> first(int count) override {
    auto some = inner_->first(count);
    return some == nullptr ? nullptr : std::make_shared<Spoiled>(std::move(some));
  }
  void rest() override { inner_->rest(); }
  RankTraffic traffic() const override { return inner_->traffic(); }

 private:
  class Messages final : public NeighbourMessages {
   public:
    explicit Messages(std::unique_ptr<NeighbourMessages> inner) : inner_(std::move(inner)) {}
    std::span<double> outgoing(int i, std::uint64_t number) override {
      return inner_->outgoing(i, number);
    }
    void send(std::uint64_t number) override { inner_->send(number); }
    void receive(std::uint64_t number) override { inner_->receive(number); }
    std::span<const double> incoming(int i, std::uint64_t number) override {
      const auto waves = inner_->incoming(i, number);
      spoiled_.assign(waves.begin(), waves.end());
      spoiled_.front() += 1e-3;
      return spoiled_;
    }
    bool arrived(int i, std::uint64_t number, std::uint64_t now) override {
      return inner_->arrived(i, number, now);
    }
    void release(std::uint64_t number) override { inner_->release(number); }
    void release(int i, std::uint64_t number) override { inner_->release(i, number); }

   private:
    std::unique_ptr<NeighbourMessages> inner_;
    std::vector<double> spoiled_;
  };
  std::shared_ptr<Ranks> inner_;
};

/// Results that are not those of one thread are noticed, and nobody waits for ever then.
TEST(RankScalingControl, NoticesAWaveThatIsWrong) {
  const Scenario scenario = chain(64);
  std::string told;
  on_ranks(3, [&](const std::shared_ptr<Ranks>& world) {
    RankScalingOptions options = quick();
    options.world = std::make_shared<Spoiled>(world);
    options.ranks = {2, 3};
    try {
      study_rank_scaling(scenario, options);
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(world->rank(), 0);
      told = error.what();
    }
    return RankScalingStudy{};
  });
  EXPECT_NE(told.find("differ from those of one thread"), std::string::npos) << told;
}

TEST(RankScalingErrors, AreToldAtOnce) {
  const Scenario scenario = chain(8);
  RankScalingOptions options = quick();
  options.ranks = {0, 20'000};
  options.threads = {0};
  options.repetitions = 0;
  options.steps = -1;
  options.network = Interconnect{.latency_s = -1.0, .bandwidth_B_per_s = 0.0};
  try {
    study_rank_scaling(scenario, options);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().size(), 7u);
  }
  EXPECT_THROW(study_weak_rank_scaling({}, {}), ConfigError);
  Scenario without = chain(8);
  without.options.method = CouplingMethod(Splitting{});
  EXPECT_THROW(study_rank_scaling(without, quick()), ConfigError);
}

TEST(RankMessages, AreFittedByLatencyAndBandwidth) {
  const double alpha = 3e-6, beta = 2e9;
  std::vector<RankScalingStudy::Message> messages;
  for (const std::int64_t bytes : {8, 1000, 100'000}) {
    messages.push_back({bytes, alpha + static_cast<double>(bytes) / beta});
  }
  EXPECT_NEAR(fitted(messages).latency_s, alpha, 1e-12);
  EXPECT_NEAR(fitted(messages).bandwidth_B_per_s, beta, 1.0);
  // Control: a message that takes longer is seen.
  messages.back().time_s *= 2.0;
  EXPECT_LT(fitted(messages).bandwidth_B_per_s, 0.8 * beta);
  messages.resize(1);
  EXPECT_THROW(fitted(messages), std::invalid_argument);
}

}  // namespace
}  // namespace portwave

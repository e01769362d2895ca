// No rank has the whole system: each builds a slice of it. Bits are those of one process that has it all.
// The ranks are threads of this process (support/thread_ranks.hpp); tests/mpi has processes.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/runtime/ranks/slice_builder.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>
#include <portwave/subsystems/catalogue/parts.hpp>

#include "support/sliced_runs.hpp"
#include "support/systems/counting_part.hpp"
#include "support/thread_ranks.hpp"
#include "support/trace.hpp"

namespace portwave::test_slices {
namespace {

using testing::block;
using testing::chain;
using testing::Cuts;
using testing::even_cuts;
using testing::expect_same;
using testing::grid;
using testing::History;
using testing::islands;
using testing::moving;
using testing::options_of;
using testing::run_in_slices;
using testing::run_whole;
using testing::SlicedNetwork;
using testing::star;
using testing::ThreadRanks;

void expect_says(const std::string& text, const std::string& what) {
  EXPECT_NE(text.find(what), std::string::npos) << "says: " << text << "\nnot: " << what;
}

struct Case {
  std::string name;
  StepperOptions options{.method = WaveCoupling{}};
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::string name, const auto& change) {
    StepperOptions options = options_of();
    change(options);
    all.push_back({std::move(name), options});
  };
  add("K=0", [](StepperOptions& o) { o.method.waves().iterations = 0; });
  add("K=6", [](StepperOptions&) {});
  add("two threads, small tasks", [](StepperOptions& o) {
    o.threads = 2;
    o.grain = Grain::of_parts(9);
  });
  add("a task per part", [](StepperOptions& o) { o.grain = Grain::per_part(); });
  add("no ledger", [](StepperOptions& o) { o.certify = Certify::none; });
  add("a tank", [](StepperOptions& o) {
    o.method.waves().tank.initial_fraction = 0.1;
    o.method.waves().tank.cap_J = 50.0;
  });
  add("two stages", [](StepperOptions& o) { o.method.waves().stages = 2; });
  add("three stages", [](StepperOptions& o) { o.method.waves().stages = 3; });
  for (const int stages : {1, 2, 3}) {
    add("damped, stages: " + std::to_string(stages), [stages](StepperOptions& o) {
      o.method.waves().stages = stages;
      o.method.waves().integrator = StageKind::damped;
    });
  }
  add("Peaceman-Rachford", [](StepperOptions& o) {
    o.method.waves().kind = WaveUpdate::peaceman_rachford;
    o.method.waves().relaxation = 0.7;
  });
  add("tolerance", [](StepperOptions& o) {
    o.method.waves().iterations = 200;
    o.method.waves().tolerance = 1e-6;
  });
  add("tolerance that is missed", [](StepperOptions& o) {
    o.method.waves().iterations = 3;
    o.method.waves().tolerance = 1e-9;
    o.method.waves().tolerance_per_part = true;
  });
  add("a tolerance per part that only rounding meets", [](StepperOptions& o) {
    o.method.waves().iterations = 400;
    o.method.waves().tolerance = 1e-17;
    o.method.waves().tolerance_per_part = true;
  });
  add("energy tolerance", [](StepperOptions& o) {
    o.method.waves().iterations = 100;
    o.method.waves().energy_tolerance_J = 1e-6;
  });
  add("acceleration", [](StepperOptions& o) {
    o.method.waves().iterations = 60;
    o.method.waves().tolerance = 1e-9;
    o.method.waves().acceleration = 4;
  });
  return all;
}

TEST(Slices, GiveTheBitsOfOneProcessWithEveryMethod) {
  const SlicedNetwork network = chain(64 * 5 + 17);
  for (const Case& own : cases()) {
    SCOPED_TRACE(own.name);
    const History whole = run_whole(network, own.options, 8);
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(ranks);
      expect_same(run_in_slices(network, own.options, even_cuts(network, ranks), 8,
                                static_cast<unsigned>(ranks)),
                  whole);
    }
  }
}

TEST(Slices, GiveTheBitsOfOneProcessOfEveryNetwork) {
  const std::vector<std::pair<std::string, SlicedNetwork>> networks = {
      {"ring", chain(64 * 4 + 1, /*closed=*/true)},
      {"grid", grid(24, 16)},
      {"grid whose rows are cut", grid(16, 20)},
      {"star", star(64 * 5)},
  };
  for (const auto& [name, network] : networks) {
    SCOPED_TRACE(name);
    StepperOptions options = options_of(name.starts_with("grid") ? 30.0 : 0.8);
    for (const double tolerance : {0.0, 1e-7}) {
      options.method.waves().tolerance = tolerance;
      const History whole = run_whole(network, options, 6);
      for (const int ranks : {2, 3, 5}) {
        SCOPED_TRACE(ranks);
        expect_same(run_in_slices(network, options, even_cuts(network, ranks), 6), whole);
      }
    }
  }
}

// No rule damps single parts there, and no watch sees what rings: the fastest decay is told, on every rank.
TEST(Slices, TellWhatDecaysFasterThanAStep) {
  SlicedNetwork network = chain(64 * 3 + 7);
  const auto told = [&](const StepperOptions& options) {
    std::vector<std::string> out(3);
    ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& own) {
      const Cuts cuts = even_cuts(network, 3);
      const auto r = static_cast<std::size_t>(own->rank());
      const System system = network.slice(cuts[r], cuts[r + 1]).build(*own);
      StepperOptions shared = options;
      shared.ranks = own;
      Stepper stepper(system, shared);
      out[r] = stepper.waves()->integrator();
      if (r > 0) return RankedStepper(stepper).follow();
      stepper.step();
    });
    for (const std::string& own : out) {  // what is told is the same on all
      if (out[0].find("slices") != std::string::npos) {
        EXPECT_EQ(own, out[0]);
      }
    }
    return out[0];
  };
  EXPECT_EQ(told(options_of()), "");  // control
  const auto add_braked = [&](const std::string& name, double damping_Ns_per_m) {
    network.parts.push_back(
        {name, parts::mass({.mass_kg = 1.0, .damping_Ns_per_m = damping_Ns_per_m}).build(), {}});
    network.joints.push_back(
        {joint::Free{}, {{static_cast<int>(network.parts.size()) - 1, "port"}}});
  };
  add_braked("slow", 300.0);  // hλ = 3
  EXPECT_EQ(told(options_of()), "");
  add_braked("braked", 1e6);
  expect_says(told(options_of()), "\"braked\" decays by h·λ = 1e+04 within a step");
  for (const StageKind integrator : {StageKind::gauss, StageKind::damped}) {
    StepperOptions options = options_of();
    options.method.waves().integrator = integrator;
    EXPECT_EQ(told(options).find("slices"), std::string::npos);
  }
}

// So far out that what parts store does not balance, and is formed again from their states.
TEST(Slices, CloseAccountsFarFromTheOrigin) {
  SlicedNetwork network = chain(64 * 3 + 7);
  for (std::size_t i = 0; i < network.parts.size(); ++i) {
    std::vector<double>& state = network.parts[i].options.initial_state;
    if (i < 130) state[0] = state[2] = 1e12;
  }
  const StepperOptions options = options_of();
  expect_same(run_in_slices(network, options, even_cuts(network, 3), 6),
              run_whole(network, options, 6));
}

TEST(Slices, HaveTheIslandsOfTheWhole) {
  const SlicedNetwork network = islands();
  const StepperOptions options = options_of();
  // The long line begins with part 81; the cuts leave 64 and 128 parts of it to those before.
  for (const Cuts& cuts : {Cuts{0, 81, 145, 361}, Cuts{0, 145, 209, 361}, Cuts{0, 20, 273, 361}}) {
    expect_same(run_in_slices(network, options, cuts, 6), run_whole(network, options, 6));
  }
  // Small islands beside the end of one that is cut stop when they are done, and so does it.
  StepperOptions checked = options;
  checked.method.waves().iterations = 60;
  checked.method.waves().tolerance = 1e-4;
  expect_same(run_in_slices(network, checked, Cuts{0, 145, 273, 361}, 6),
              run_whole(network, checked, 6));
  ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& own) {
    const Cuts cuts{0, 145, 209, 361};
    const auto r = static_cast<std::size_t>(own->rank());
    const System slice = network.slice(cuts[r], cuts[r + 1]).build(*own);
    const System whole = network.whole();
    ASSERT_EQ(slice.island_count(), whole.island_count());
    for (int i = 0; i < cuts[r + 1] - cuts[r]; ++i) {
      ASSERT_EQ(slice.island_of_part(i), whole.island_of_part(cuts[r] + i));
    }
    ASSERT_TRUE(slice.slice()->is_cut(41));
    ASSERT_FALSE(slice.slice()->is_cut(40));
  });
}

TEST(Slices, OfARandomNetworkOfRandomCuts) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SlicedNetwork network;
    const int units = 3 + static_cast<int>(random() % 3);
    const int count = 64 * units + static_cast<int>(random() % 50);
    for (int i = 0; i < count; ++i) {
      const int masses = 1 + static_cast<int>(random() % 3);
      network.parts.push_back({"p" + std::to_string(i), block(i, masses), moving(i, masses)});
    }
    // Springs and masses are joined one to one, whoever has them.
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    for (std::size_t i = 0; i < order.size(); ++i) {
      network.joints.push_back(
          {joint::Connection{}, {{order[i], "right"}, {order[(i + 1) % order.size()], "left"}}});
    }
    StepperOptions options = options_of();
    options.threads = 1 + static_cast<int>(seed % 2);
    options.method.waves().tolerance = seed % 3 == 0 ? 1e-5 : 0.0;
    const Cuts cuts = even_cuts(network, 2 + static_cast<int>(seed % 2));
    expect_same(run_in_slices(network, options, cuts, 4, seed), run_whole(network, options, 4));
  }
}

/// Throws in its `nth` evaluation.
class FailingBatch final : public testing::ExactBatch {
 public:
  FailingBatch(std::unique_ptr<StepBatch> batch, int nth)
      : ExactBatch(std::move(batch)), left_(nth) {}
  LaneStatus scatter(LaneRange lanes, double* record, const double* a, double* b) const override {
    if (--left_ == 0) throw std::runtime_error("out of order");
    return ExactBatch::scatter(lanes, record, a, b);
  }

 private:
  mutable int left_;
};
using FailingPart = testing::NumberedPart<FailingBatch>;

/// What a run ends with, and the time of the last committed state.
struct End {
  std::string text, part;
  std::int64_t step = -1;
  int iteration = -1;
  double time_s = 0.0;
  bool operator==(const End&) const = default;
};
End end_of(Stepper& stepper, int steps) {
  End end;
  try {
    for (int n = 0; n < steps; ++n) stepper.step();
  } catch (const StepError& error) {
    end = {error.what(), error.part(), error.step(), error.iteration(), 0.0};
  }
  end.time_s = stepper.time_s();
  return end;
}

TEST(Slices, NameThePartThatFails) {
  // Evaluation 6·3 + 4 + 1 is iteration 4 of step 3: on the first and on the last rank, or on both.
  const std::vector<std::vector<int>> failing = {{3}, {250}, {250, 130}, {10, 140, 260}};
  for (const std::vector<int>& parts : failing) {
    SlicedNetwork network = chain(64 * 4 + 5);
    for (const int part : parts) {
      network.parts[static_cast<std::size_t>(part)].component =
          std::make_shared<FailingPart>(block(part), 6 * 3 + 4 + 1);
    }
    const StepperOptions options = options_of();
    const System whole = network.whole();
    Stepper alone(whole, options);
    const End expected = end_of(alone, 10);
    ASSERT_EQ(expected.part, "b" + std::to_string(std::ranges::min(parts)));
    ASSERT_EQ(expected.step, 3);
    ASSERT_EQ(expected.iteration, 4);
    ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& own) {
      const Cuts cuts = even_cuts(network, 3);
      const auto r = static_cast<std::size_t>(own->rank());
      const System slice = network.slice(cuts[r], cuts[r + 1]).build(*own);
      StepperOptions shared = options;
      shared.ranks = own;
      Stepper stepper(slice, shared);
      if (r > 0) return RankedStepper(stepper).follow();
      const End found = end_of(stepper, 10);
      EXPECT_EQ(found.text, expected.text);
      EXPECT_TRUE(found == expected);
    });
  }
}

/// What each rank is told: what() of ConfigErrors and RankErrors.
std::vector<std::string> told(int ranks,
                              const std::function<void(const std::shared_ptr<Ranks>&)>& body) {
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  ThreadRanks::run(ranks, [&](const std::shared_ptr<Ranks>& own) {
    try {
      body(own);
    } catch (const std::exception& error) {
      texts[static_cast<std::size_t>(own->rank())] = error.what();
    }
  });
  return texts;
}

/// Has no batch, and so no maps.
class UnmadePart final : public testing::CountingPart {
 public:
  using CountingPart::CountingPart;
  std::unique_ptr<StepBatch> make_batch(
      std::span<const Component* const> /*parts*/) const override {
    throw std::runtime_error("no maps");
  }
};

TEST(Slices, HearOfMapsThatAnotherRankCannotMake) {
  SlicedNetwork network = chain(64 * 4 + 5);
  network.parts[150].component = std::make_shared<UnmadePart>(block(150));
  const Cuts cuts = even_cuts(network, 3);
  const auto texts = told(3, [&](const std::shared_ptr<Ranks>& own) {
    const auto r = static_cast<std::size_t>(own->rank());
    const System slice = network.slice(cuts[r], cuts[r + 1]).build(*own);
    StepperOptions options = options_of();
    options.ranks = own;
    const Stepper stepper(slice, options);
  });
  for (std::size_t r = 0; r < texts.size(); ++r) {
    const bool has_it = cuts[r] <= 150 && 150 < cuts[r + 1];
    expect_says(texts[r], has_it ? "no maps" : "the slice of another rank has defects");
  }
}

TEST(Slices, AreRefusedWhereTheyDoNotFit) {
  const SlicedNetwork network = chain(64 * 4);
  const auto build = [&](const Cuts& cuts) {
    return told(static_cast<int>(cuts.size()) - 1, [&](const std::shared_ptr<Ranks>& own) {
      const auto r = static_cast<std::size_t>(own->rank());
      network.slice(cuts[r], cuts[r + 1]).build(*own);
    });
  };
  for (const std::string& text : build({0, 64, 256})) EXPECT_EQ(text, "");
  for (const std::string& text : build({0, 63, 256})) {
    expect_says(text, "rank 0 has 63 parts of an island that goes on on rank 1");
    expect_says(text, "a multiple of 64");
  }
  const auto gap = told(2, [&](const std::shared_ptr<Ranks>& own) {
    network.slice(own->rank() == 0 ? 0 : 128, own->rank() == 0 ? 64 : 256).build(*own);
  });
  for (const std::string& text : gap) {
    expect_says(text, "rank 1 begins with part 128, where 64 is the next");
  }
  const auto alone = told(2, [&](const std::shared_ptr<Ranks>& own) {
    SliceBuilder builder = network.slice(64 * own->rank(), 64 * own->rank() + 64);
    if (own->rank() == 1) builder.add("b3", block(3)).join(joint::Resistive{2.0}, {"b3.left"});
    builder.build(*own);
  });
  expect_says(alone[0], "the slice of rank 1 has defects");
  expect_says(alone[1], "add a resistor as a part");
  expect_says(alone[1], "\"b3.right\" is neither connected nor terminated");
  const auto stranger = told(2, [&](const std::shared_ptr<Ranks>& own) {
    SliceBuilder builder = network.slice(128 * own->rank(), 128 * own->rank() + 128);
    if (own->rank() == 0) builder.add_outside(200, "b200", block(200));
    builder.build(*own);
  });
  expect_says(stranger[0], "\"b200\" is outside, and shares no coupling");
  const auto mistaken = told(2, [&](const std::shared_ptr<Ranks>& own) {
    if (own->rank() == 1) {
      network.slice(128, 256).build(*own);
      return;
    }
    SliceBuilder builder(0);
    for (int i = 0; i < 128; ++i)
      builder.add(network.parts[static_cast<std::size_t>(i)].name, block(i));
    for (int i = 0; i < 128; ++i)
      builder.join(network.joints[static_cast<std::size_t>(i)].joint,
                   network.names_of(network.joints[static_cast<std::size_t>(i)]));
    builder.join(joint::Free{}, {"b0.left"}).add_outside(300, "b128", block(128));
    builder.build(*own);
  });
  for (const std::string& text : mistaken) {
    expect_says(text, "part 300 is no part of another rank, and outside the slice of rank 0");
  }
}

TEST(Slices, AreRefusedWhereBothSidesOfACutDiffer) {
  const SlicedNetwork network = chain(64 * 4);
  const auto step = [&](const SlicedNetwork& last, double impedance, bool turned) {
    return told(3, [&](const std::shared_ptr<Ranks>& own) {
      const Cuts cuts{0, 64, 192, 256};
      const auto r = static_cast<std::size_t>(own->rank());
      SlicedNetwork seen = r == 2 ? last : network;
      if (turned && r == 2) std::ranges::reverse(seen.joints[191].ports);
      const System slice = seen.slice(cuts[r], cuts[r + 1]).build(*own);
      StepperOptions options = options_of(r == 2 ? impedance : 0.8);
      options.ranks = own;
      Stepper stepper(slice, options);
      if (r > 0) return RankedStepper(stepper).follow();
      stepper.step();
    });
  };
  for (const std::string& text : step(network, 0.8, false)) EXPECT_EQ(text, "");
  for (const std::string& text : step(network, 0.9, false)) {
    expect_says(text, "ranks 1 and 2 differ in what joins their slices");
  }
  for (const std::string& text : step(network, 0.8, true)) {
    expect_says(text, "ranks 1 and 2 differ in what joins their slices");
  }
  SlicedNetwork scaled = network;
  scaled.joints[191].joint = joint::Transformer{1.5};
  for (const std::string& text : step(scaled, 0.8, false)) {
    expect_says(text, "ranks 1 and 2 differ in what joins their slices");
  }
}

/// No rank knows all of an impulse.
TEST(Slices, RefuseStatesAtOdds) {
  const auto step = [&](double speed) {
    SlicedNetwork network = chain(64 * 2);
    const auto first = static_cast<int>(network.parts.size());
    for (const auto& [name, own] : {std::pair("left", 1.0), std::pair("right", speed)}) {
      network.parts.push_back(
          {name, make_part("inertia", {{"inertia_kgm2", 1.0}}), {.initial_state = {0.0, own}}});
    }
    network.joints.push_back({joint::CommonFlow{}, {{first, "shaft"}, {first + 1, "shaft"}}});
    return told(2, [&](const std::shared_ptr<Ranks>& own) {
      const Cuts cuts{0, 64, first + 2};
      const auto r = static_cast<std::size_t>(own->rank());
      const System slice = network.slice(cuts[r], cuts[r + 1]).build(*own);
      StepperOptions options = options_of(0.8);
      options.start = Start::consistent;
      options.ranks = own;
      Stepper stepper(slice, options);
      if (r > 0) return RankedStepper(stepper).follow();
      stepper.step();
    });
  };
  for (const std::string& text : step(1.0)) EXPECT_EQ(text, "");
  const std::vector<std::string> texts = step(2.0);
  expect_says(texts.at(1), "no impulse acts");
  EXPECT_NE(texts.at(0), "");
}

TEST(Slices, SayWhatTheyCannotDo) {
  const SlicedNetwork network = chain(64 * 2);
  const auto options_refused = [&](const std::function<void(StepperOptions&)>& change) {
    return told(2, [&](const std::shared_ptr<Ranks>& own) {
      const System slice = network.slice(64 * own->rank(), 64 * own->rank() + 64).build(*own);
      StepperOptions options = options_of();
      options.ranks = own;
      change(options);
      Stepper stepper(slice, options);
      if (own->rank() > 0) return RankedStepper(stepper).follow();
      stepper.step();
    });
  };
  for (const std::string& text : options_refused([](StepperOptions&) {})) EXPECT_EQ(text, "");
  const std::vector<std::pair<std::string, std::function<void(StepperOptions&)>>> refused = {
      {"/method/kind", [](StepperOptions& o) { o.method.waves() = WaveCoupling::automatic(); }},
      {"/method/impedance",
       [](StepperOptions& o) { o.method.waves().impedance_kind = ImpedanceKind::automatic; }},
      {"/certify", [](StepperOptions& o) { o.certify = Certify::full; }},
      {"/time/step", [](StepperOptions& o) { o.sizes.emplace(); }},
      {"/method/start",
       [](StepperOptions& o) { o.method.waves().start = InnerStart::extrapolated; }},
      {"/method/exchange/kind",
       [](StepperOptions& o) { o.method.waves().exchange.kind = ExchangeKind::asynchronous; }},
      {"/ranks", [](StepperOptions& o) { o.ranks = nullptr; }},
  };
  for (const auto& [where, change] : refused) {
    SCOPED_TRACE(where);
    for (const std::string& text : options_refused(change)) expect_says(text, where);
  }
}

TEST(Slices, KnowTheirOwnPartsOnly) {
  const SlicedNetwork network = chain(64 * 2);
  ThreadRanks::run(2, [&](const std::shared_ptr<Ranks>& own) {
    const System slice = network.slice(64 * own->rank(), 64 * own->rank() + 64).build(*own);
    StepperOptions options = options_of();
    options.ranks = own;
    Stepper stepper(slice, options);
    if (own->rank() > 0) return RankedStepper(stepper).follow();
    stepper.step();
    EXPECT_NO_THROW(stepper.state(63));
    EXPECT_THROW(stepper.state(64), std::out_of_range);
    EXPECT_THROW(stepper.storage(64), std::out_of_range);
    EXPECT_THROW(stepper.waves()->energies_of(64), std::out_of_range);
    EXPECT_THROW(stepper.waves()->outgoing(slice.first_scalar_port(64)), std::out_of_range);
    EXPECT_THROW(stepper.snapshot(), std::invalid_argument);
    EXPECT_THROW(stepper.step_by(0.005), ConfigError);
    stepper.step();
    EXPECT_EQ(stepper.step_index(), 2);
  });
}

TEST(Slices, OfOneRankAreTheWhole) {
  const SlicedNetwork network = chain(64 * 2 + 3);
  ThreadRanks::run(1, [&](const std::shared_ptr<Ranks>& own) {
    const System slice = network.slice(0, 64 * 2 + 3).build(*own);
    EXPECT_EQ(slice.slice(), nullptr);
    StepperOptions options = options_of();
    options.ranks = own;
    EXPECT_EQ(testing::trace(slice, options, 4), testing::trace(network.whole(), options_of(), 4));
  });
}

// What no rank is to hold: memory of a rank that goes with the whole system.
TEST(Slices, TakeTheMemoryOfTheirParts) {
  constexpr int kBlocks = 64 * 256, kRanks = 4;
  const SlicedNetwork network = chain(kBlocks);
  const System whole = network.whole();
  const Stepper alone(whole, options_of());
  const double allowed = 1.1 * static_cast<double>(alone.overhead_bytes()) / kRanks;
  ThreadRanks::run(kRanks, [&](const std::shared_ptr<Ranks>& own) {
    const auto [first, end] = even_slice(kBlocks, own->rank(), kRanks);
    const System slice = network.slice(static_cast<int>(first), static_cast<int>(end)).build(*own);
    EXPECT_LE(slice.parts().size(), static_cast<std::size_t>(kBlocks / kRanks + 2));
    StepperOptions options = options_of();
    options.ranks = own;
    Stepper stepper(slice, options);
    EXPECT_LT(static_cast<double>(stepper.overhead_bytes()), allowed);
    if (own->rank() > 0) RankedStepper(stepper).follow();
  });
}

TEST(EvenSlice, CutsInUnits) {
  std::int64_t next = 0;
  for (int r = 0; r < 7; ++r) {
    const auto [first, end] = even_slice(10'000'003, r, 7);
    EXPECT_EQ(first, next);
    EXPECT_EQ(first % SliceBuilder::kUnit, 0);
    EXPECT_NEAR(static_cast<double>(end - first), 10'000'003 / 7.0, 64.0);
    next = end;
  }
  EXPECT_EQ(next, 10'000'003);
}

}  // namespace
}  // namespace portwave::test_slices

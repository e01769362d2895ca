// Several ranks step one system: bits do not depend on how many, on their threads, or on when messages
// come. The ranks are threads of this process (support/thread_ranks.hpp); tests/mpi has processes.

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "ranks/rank_cut.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/systems.hpp"
#include "support/thread_ranks.hpp"
#include "support/trace.hpp"

namespace portwave::test_ranks {
namespace {

using testing::ThreadRanks;

/// The trace of rank 0, all others following it.
std::vector<double> trace_on_ranks(int ranks, const System& system, StepperOptions options,
                                   int steps, unsigned seed = 0) {
  std::vector<double> out;
  ThreadRanks::run(
      ranks,
      [&](const std::shared_ptr<Ranks>& own) {
        StepperOptions shared = options;
        shared.ranks = own;
        if (own->rank() == 0) {
          out = testing::trace(system, shared, steps);
        } else {
          RankedStepper(Stepper(system, shared)).follow();
        }
      },
      seed);
  return out;
}

StepperOptions options_of(CouplingMethod method) {
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.method = std::move(method);
  options.executor = ExecutorKind::serial;
  options.grain = Grain::of_parts(4);
  return options;
}

/// A chain and apart from it small islands, some of them nonlinear.
System islands() {
  SystemBuilder builder;
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    builder.add("d" + n,
                duffing_oscillator({.mass_kg = 1.0 + i,
                                    .stiffness_N_per_m = 20,
                                    .cubic_stiffness_N_per_m3 = 300,
                                    .coupling_stiffness_N_per_m = 10}),
                {.initial_state = {0.1 * i, 1.0, 0.05}});
    builder.add(
        "l" + n, linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 8}),
        {.initial_state = {}, .inputs = {{"force", Signal::sine_product(2.0 + i, {{1.5, 0.2}})}}});
    builder.connect("d" + n + ".coupling", "l" + n + ".coupling");
  }
  return builder.build();
}

struct Case {
  const char* name;
  CouplingMethod method = WaveCoupling{};
};

std::vector<Case> methods() {
  std::vector<Case> all;
  const auto add = [&](const char* name, const auto& change) {
    CouplingMethod method = WaveCoupling{};
    change(method.waves());
    all.push_back({name, method});
  };
  add("K=0", [](WaveCoupling& w) { w.iterations = 0; });
  add("K=1", [](WaveCoupling& w) { w.iterations = 1; });
  add("K=7", [](WaveCoupling& w) { w.iterations = 7; });
  add("K=2 guarded", [](WaveCoupling& w) {
    w.iterations = 2;
    w.guard = true;
  });
  add("tolerance", [](WaveCoupling& w) {
    w.iterations = 60;
    w.tolerance = 1e-9;
  });
  add("tolerance per part, guarded", [](WaveCoupling& w) {
    w.iterations = 12;
    w.tolerance = 1e-8;
    w.tolerance_per_part = true;
    w.guard = true;
  });
  add("accelerated", [](WaveCoupling& w) {
    w.iterations = 40;
    w.tolerance = 1e-10;
    w.acceleration = 5;
  });
  add("rescued", [](WaveCoupling& w) {
    w.iterations = 40;
    w.tolerance = 1e-10;
    w.rescue_after = 3;
  });
  add("interface", [](WaveCoupling& w) {
    w.kind = WaveUpdate::interface;
    w.iterations = 40;
    w.tolerance = 1e-10;
  });
  add("two stages", [](WaveCoupling& w) {
    w.stages = 2;
    w.iterations = 5;
  });
  all.push_back({"auto", CouplingMethod::automatic()});
  return all;
}

std::vector<std::pair<const char*, System>> systems() {
  std::vector<std::pair<const char*, System>> all;
  all.emplace_back("chain", testing::chain_of_blocks(24, 3));
  all.emplace_back("islands", islands());
  all.emplace_back("star", testing::star());
  all.emplace_back("ring", testing::ring_of_junctions());
  return all;
}

TEST(Ranks, GiveTheBitsOfOneProcess) {
  for (const auto& [name, system] : systems()) {
    for (const Case& method : methods()) {
      StepperOptions options = options_of(method.method);
      const std::vector<double> expected = testing::trace(system, options, 25);
      for (const int ranks : {1, 2, 3, 4}) {
        EXPECT_TRUE(testing::same_bits(expected, trace_on_ranks(ranks, system, options, 25)))
            << name << " " << method.name << " ranks=" << ranks;
      }
    }
  }
}

/// Its tasks are cut by the graph of exchanges: those of a rank are not one after another.
TEST(Ranks, GiveTheBitsOfOneProcessWhereBlocksOfAGridAreTheirs) {
  const System system = testing::duffing_grid(48, 48);
  CouplingMethod method = WaveCoupling{};
  method.waves().iterations = 3;
  StepperOptions options = options_of(method);
  options.grain = Grain::automatic();
  const WaveDiscretisation waves(system, options.step_s,
                                 std::vector<double>(system.scalar_ports().size(), 1.0));
  ASSERT_TRUE(
      cut_for_ranks(waves, declared_costs(waves), options.grain, 9, 1, 3, false).is_by_graph);
  const std::vector<double> expected = testing::trace(system, options, 6);
  EXPECT_TRUE(testing::same_bits(expected, trace_on_ranks(9, system, options, 6)));
  options.method.waves().tolerance = 1e-3;
  options.method.waves().iterations = 20;
  EXPECT_TRUE(testing::same_bits(testing::trace(system, options, 4),
                                 trace_on_ranks(9, system, options, 4)));
}

/// Whoever looks at a step has all of it shared: what a step itself needs of the others shows where
/// nobody does.
TEST(Ranks, GiveTheSameBitsWhereNobodyLooksInBetween) {
  for (const auto& named : systems()) {
    const System& system = named.second;  // Clang 14 captures no structured binding
    for (const Case& method : methods()) {
      const StepperOptions options = options_of(method.method);
      std::vector<double> expected, found;
      {
        Stepper alone(system, options);
        alone.step(40);
        testing::append_interface(alone, expected);
      }
      ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& own) {
        StepperOptions shared = options;
        shared.ranks = own;
        Stepper stepper(system, shared);
        if (own->rank() != 0) return RankedStepper(stepper).follow();
        stepper.step(40);
        testing::append_interface(stepper, found);
      });
      EXPECT_TRUE(testing::same_bits(expected, found)) << named.first << " " << method.name;
    }
  }
}

TEST(Ranks, GiveTheSameBitsHoweverLateMessagesAre) {
  const System system = testing::chain_of_blocks(24, 3);
  for (const Case& method : methods()) {
    const StepperOptions options = options_of(method.method);
    const std::vector<double> expected = testing::trace(system, options, 10);
    for (const unsigned seed : {1U, 2U}) {
      EXPECT_TRUE(testing::same_bits(expected, trace_on_ranks(3, system, options, 10, seed)))
          << method.name << " seed=" << seed;
    }
  }
}

TEST(Ranks, HaveThreadsOfTheirOwn) {
  const System system = testing::chain_of_blocks(40, 3);
  StepperOptions options = options_of(methods()[4].method);
  const std::vector<double> expected = testing::trace(system, options, 20);
  options.executor = ExecutorKind::automatic;
  options.threads = 2;
  EXPECT_TRUE(testing::same_bits(expected, trace_on_ranks(2, system, options, 20)));
}

TEST(Ranks, KeepTheAccountOfFullCertificates) {
  const System system = testing::chain_of_blocks(24, 3);
  StepperOptions options = options_of(methods()[3].method);
  options.certify = Certify::full;
  const std::vector<double> expected = testing::trace(system, options, 15);
  EXPECT_TRUE(testing::same_bits(expected, trace_on_ranks(3, system, options, 15)));
}

TEST(Ranks, ChooseTheSameStepSizes) {
  const System system = testing::chain_of_blocks(12, 3);
  StepperOptions options = options_of(CouplingMethod::automatic());
  options.sizes.emplace().tolerance = 1e-5;
  const auto run = [&](const std::shared_ptr<Ranks>& ranks) {
    StepperOptions own = options;
    own.ranks = ranks;
    Stepper stepper(system, own);
    std::vector<double> out;
    if (ranks != nullptr && ranks->rank() != 0) {
      RankedStepper(stepper).follow();
      return out;
    }
    while (stepper.time_s() < 0.3) {
      const StepReport report = stepper.step_towards(0.3);
      out.insert(out.end(), {report.step_s, report.error, static_cast<double>(report.iterations)});
      testing::append_interface(stepper, out);
    }
    return out;
  };
  const std::vector<double> expected = run(nullptr);
  std::vector<double> found;
  ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& ranks) {
    std::vector<double> own = run(ranks);
    if (ranks->rank() == 0) found = std::move(own);
  });
  EXPECT_TRUE(testing::same_bits(expected, found));
}

/// Rank 0 steps such a system by itself.
TEST(Ranks, GiveTheBitsOfOneProcessWithoutWaves) {
  const System system = islands();
  for (const bool chosen : {false, true}) {
    StepperOptions options = options_of(Splitting{.kind = SplittingKind::kick_drift});
    if (chosen) options.sizes = StepSizes{.tolerance = 1e-6};
    const std::vector<double> expected = testing::trace(system, options, 25);
    for (const int ranks : {2, 3}) {
      EXPECT_TRUE(testing::same_bits(expected, trace_on_ranks(ranks, system, options, 25)))
          << chosen << " ranks=" << ranks;
    }
    options.method = Splitting{.kind = SplittingKind::kick_drift, .order = 4};
    EXPECT_FALSE(testing::same_bits(expected, trace_on_ranks(2, system, options, 25))) << "control";
  }
}

/// Without the waves of the others a chain is another system: the comparison can fail.
TEST(RanksControl, AMessageThatIsNotTheSentOneIsSeen) {
  const System system = testing::chain_of_blocks(24, 3);
  const StepperOptions options = options_of(methods()[2].method);
  const std::vector<double> expected = testing::trace(system, options, 25);
  std::vector<double> other = expected;
  other[other.size() / 2] = std::nextafter(other[other.size() / 2], 1e300);
  EXPECT_FALSE(testing::same_bits(expected, other));
}

/// Iterations with a fixed budget cost a message for each neighbour and evaluation, and the commit one;
/// the waves that cross are what they hold. At the end of a step all learn how it went, in rounds: of three
/// ranks the second gives its note to the first, and is told of the others by it.
TEST(Ranks, SendWhatTheorySays) {
  const System system = testing::chain_of_blocks(24, 3);
  const int budget = 7, steps = 10;
  StepperOptions options = options_of(methods()[2].method);
  options.certify = Certify::none;
  options.method.waves().guard = false;  // it commits again
  RankTraffic start, middle;
  ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& own) {
    StepperOptions shared = options;
    shared.ranks = own;
    Stepper stepper(system, shared);
    if (own->rank() == 1) start = own->traffic();
    if (own->rank() == 0) {
      stepper.step(steps);
    } else {
      RankedStepper(stepper).follow();
    }
    if (own->rank() == 1) middle = own->traffic();
  });
  // Rank 1 has two neighbours, and a junction of one wave with each.
  EXPECT_EQ(middle.messages, 2 * (budget + 1) * steps);
  EXPECT_EQ(middle.message_bytes, 2 * (budget + 1) * steps * 8);
  EXPECT_EQ(middle.sum_messages, 2 * steps);
  EXPECT_EQ(middle.sum_bytes, 24 * steps);
  // A step takes none; but nobody asks for convergence, and after 1, 2, 4 and 8 steps the residual is
  // looked at.
  EXPECT_EQ(middle.gathers, start.gathers + 4);
}

/// The interface after twelve more steps.
std::vector<double> twelve_on(Stepper& stepper) {
  std::vector<double> out;
  stepper.step(12);
  testing::append_interface(stepper, out);
  return out;
}

/// A snapshot that ranks take after five steps, and what twelve more lead to: before they go back to it, after that,
/// and in one process that starts from it.
struct GoneBack {
  std::vector<double> first, second, resumed;
};
GoneBack go_back(const System& system, const StepperOptions& options, int ranks) {
  GoneBack out;
  std::vector<std::byte> bytes;
  ThreadRanks::run(ranks, [&](const std::shared_ptr<Ranks>& own) {
    StepperOptions shared = options;
    shared.ranks = own;
    Stepper stepper(system, shared);
    if (own->rank() != 0) return RankedStepper(stepper).follow();
    stepper.step(5);
    const Snapshot snapshot = stepper.snapshot();
    bytes = snapshot.to_bytes();
    out.first = twelve_on(stepper);
    stepper.restore(snapshot);
    out.second = twelve_on(stepper);
  });
  Stepper stepper(system, options);
  stepper.restore(Snapshot::from_bytes(bytes));
  out.resumed = twelve_on(stepper);
  return out;
}

TEST(Ranks, GoBackToASnapshot) {
  const System system = testing::chain_of_blocks(24, 3);
  const StepperOptions options = options_of(methods()[4].method);
  Stepper stepper(system, options);
  stepper.step(5);
  const std::vector<double> alone = twelve_on(stepper);
  const GoneBack shared = go_back(system, options, 3);
  EXPECT_TRUE(testing::same_bits(shared.first, alone));
  EXPECT_TRUE(testing::same_bits(shared.second, alone));
  // It is good for any number of ranks. (Its bytes may differ in what lies between members.)
  EXPECT_TRUE(testing::same_bits(shared.resumed, alone));
}

// Whether substeps are looked at differs by the number of ranks.
TEST(Ranks, GoBackWherePartsHaveSubstepsBesideADiode) {
  const Scenario own = parse_scenario(R"({"name": "c", "time": {"step_s": 1e-4, "steps": 100},
    "subsystems": [
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-5}, "substeps": 2,
       "initial_state": {"voltage": 5}},
      {"name": "d", "type": "diode", "parameters": {"saturation_current_A": 1e-9}},
      {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 1000, "gives": "current"}}],
    "couplings": [{"kind": "common_effort", "ports": ["c.terminals", "d.terminals", "r.terminals"]}],
    "method": {"kind": "auto"}})",
                                      "ranks.json", ".");
  const GoneBack shared = go_back(own.system, own.options, 2);
  EXPECT_TRUE(testing::same_bits(shared.first, shared.second));
  EXPECT_TRUE(std::ranges::all_of(shared.resumed, [](double wave) { return std::isfinite(wave); }));
}

TEST(Ranks, TakeInputsFromTheFirst) {
  SystemBuilder builder;
  builder.add("a", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
              {.initial_state = {1, 0}, .inputs = {{"force", Signal::settable(0.5)}}});
  builder.add("b", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}),
              {.initial_state = {-1, 0}, .inputs = {{"force", Signal::settable(0.0)}}});
  builder.connect("a.coupling", "b.coupling");
  const System system = builder.build();
  StepperOptions options = options_of(methods()[2].method);
  options.grain = Grain::per_part();
  const auto drive = [](Stepper& stepper, std::vector<double>& out) {
    for (int n = 0; n < 20; ++n) {
      stepper.set_input(stepper.find_input("b.force"), 0.3 * n);
      stepper.step();
      testing::append_interface(stepper, out);
    }
  };
  std::vector<double> alone, found;
  {
    Stepper stepper(system, options);
    drive(stepper, alone);
  }
  ThreadRanks::run(2, [&](const std::shared_ptr<Ranks>& own) {
    StepperOptions shared = options;
    shared.ranks = own;
    Stepper stepper(system, shared);
    if (own->rank() != 0) return RankedStepper(stepper).follow();
    drive(stepper, found);
  });
  EXPECT_TRUE(testing::same_bits(found, alone));
}

/// What a step failed with, and the state after it.
struct Failure {
  std::string text;
  std::vector<double> state;
  bool operator==(const Failure&) const = default;
};

TEST(Ranks, FailWithTheSamePartAndKeepTheLastState) {
  // A part whose step has no finite solution once it moves: its stiffness overflows.
  SystemBuilder builder;
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    const double cubic = i == 7 ? 1e306 : 10.0;
    builder.add("d" + n,
                duffing_oscillator({.mass_kg = 1,
                                    .stiffness_N_per_m = 20,
                                    .cubic_stiffness_N_per_m3 = cubic,
                                    .coupling_stiffness_N_per_m = 10}),
                {.initial_state = {i == 7 ? 0.0 : 0.3, i == 7 ? 0.0 : 5.0, 0.1}});
    builder.add("l" + n, linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 8}));
    builder.connect("d" + n + ".coupling", "l" + n + ".coupling");
  }
  const System system = builder.build();
  for (const Case& method : methods()) {
    const StepperOptions options = options_of(method.method);
    const auto run = [&](Stepper& stepper) {
      Failure failure;
      try {
        stepper.step(200);
      } catch (const StepError& error) {
        failure.text = error.what();
      }
      testing::append_interface(stepper, failure.state);
      return failure;
    };
    Failure expected;
    try {
      Stepper alone(system, options);
      expected = run(alone);
    } catch (const ConfigError&) {
      continue;
    }
    Failure found;
    ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& own) {
      StepperOptions shared = options;
      shared.ranks = own;
      Stepper stepper(system, shared);
      if (own->rank() != 0) return RankedStepper(stepper).follow();
      found = run(stepper);
    });
    EXPECT_EQ(found.text, expected.text) << method.name;
    EXPECT_TRUE(testing::same_bits(found.state, expected.state)) << method.name;
  }
}

TEST(Ranks, OfDifferentSystemsAreRefused) {
  const System one = testing::chain_of_blocks(12, 3), other = testing::chain_of_blocks(13, 3);
  std::mutex mutex;
  std::vector<std::string> texts;
  ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& own) {
    StepperOptions shared = options_of({});
    shared.ranks = own;
    try {
      Stepper stepper(own->rank() == 2 ? other : one, shared);
    } catch (const RankError& error) {
      const std::lock_guard lock(mutex);
      texts.emplace_back(error.what());
    }
  });
  ASSERT_EQ(texts.size(), 3u);
  for (const std::string& text : texts) EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
}

TEST(Ranks, RefuseWhatGoesByTheClock) {
  const System system = testing::chain_of_blocks(12, 3);
  ThreadRanks::run(1, [&](const std::shared_ptr<Ranks>& own) {
    StepperOptions shared = options_of({});
    shared.ranks = own;
    shared.time.deadline_s = 1e-3;
    EXPECT_THROW(Stepper(system, shared), ConfigError);
    shared.time = {};
    shared.executor = ExecutorKind::graph;
    EXPECT_THROW(Stepper(system, shared), ConfigError);
  });
}

/// Some of them are ranks of their own, and all others are not.
TEST(Ranks, CanBeTheFirstOnly) {
  ThreadRanks::run(4, [](const std::shared_ptr<Ranks>& own) {
    for (const int count : {1, 3, 4}) {
      const std::shared_ptr<Ranks> some = own->first(count);
      EXPECT_EQ(some != nullptr, own->rank() < count);
      if (some == nullptr) continue;
      EXPECT_EQ(some->size(), count);
      EXPECT_EQ(some->rank(), own->rank());
      EXPECT_EQ(gather_values(*some, own->rank()).back(), count - 1);
    }
    own->rest();
  });
}

/// Rank 0 has two steppers, one of three ranks and one of two, and the others follow them by turns.
TEST(Ranks, FollowTwoSteppersInTurn) {
  const System system = testing::chain_of_blocks(48, 3);
  CouplingMethod method = WaveCoupling{};
  method.waves().iterations = 4;
  const StepperOptions options = options_of(method);
  constexpr int kTurns = 3, kSteps = 2;
  Stepper alone(system, options);
  alone.step(kTurns * kSteps);
  const auto made = [&](const std::shared_ptr<Ranks>& ranks) {
    StepperOptions shared = options;
    shared.ranks = ranks;
    return ranks == nullptr ? nullptr : std::make_unique<Stepper>(system, shared);
  };
  ThreadRanks::run(
      3,
      [&](const std::shared_ptr<Ranks>& own) {
        std::unique_ptr<Stepper> steppers[] = {made(own), made(own->first(2))};
        if (own->rank() != 0) {
          // Turns, a look at the states, and the end.
          for (int turn = 0; turn < kTurns + 2; ++turn) {
            for (const auto& stepper : steppers) {
              if (stepper != nullptr) RankedStepper(*stepper).follow();
            }
          }
          return;
        }
        for (int turn = 0; turn < kTurns; ++turn) {
          for (const auto& stepper : steppers) {
            stepper->step(kSteps);
            RankedStepper(*stepper).release_followers();
          }
        }
        for (const auto& stepper : steppers) {
          for (int part = 0; part < 48; ++part) {
            EXPECT_TRUE(std::ranges::equal(stepper->state(part), alone.state(part))) << part;
          }
          RankedStepper(*stepper).release_followers();
        }
        // They end in the order in which they are followed.
        for (auto& stepper : steppers) stepper.reset();
      },
      7);
}

}  // namespace
}  // namespace portwave::test_ranks

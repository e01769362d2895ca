// The iteration of a small island as one call is that of WaveIteration, which goes batch by batch and
// junction by junction, to the last bit; and where it fails it has done nothing.

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/waves/small_island.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "support/systems/small_systems.hpp"

namespace portwave::test_small_island {
namespace {

using testing::small_system;
using testing::SmallSystem;

std::unique_ptr<SmallIsland> whole(const WaveDiscretisation& waves, double* record) {
  std::vector<SmallIsland::Lanes> lanes;
  for (int i = 0; i < static_cast<int>(waves.batches().size()); ++i) {
    lanes.push_back({i, waves.batch(i).all()});
  }
  std::vector<int> junctions(static_cast<std::size_t>(waves.interconnection().size()));
  std::iota(junctions.begin(), junctions.end(), 0);
  std::vector<int> numbers(static_cast<std::size_t>(waves.wave_size()), -1);
  auto island = SmallIsland::of(waves, lanes, junctions, record, numbers);
  for (const int number : numbers) EXPECT_EQ(number, -1);
  return island;
}

std::vector<double> impedances(const System& system, double scale, bool alike, unsigned seed) {
  testing::RandomNumbers random(seed);
  std::vector<double> out;
  for (std::size_t i = 0; i < system.scalar_ports().size(); ++i) {
    out.push_back(alike ? 0.7 * scale : scale * random.logarithmic(0.1, 10.0));
  }
  return out;
}

std::vector<double> at_ports(const WaveDiscretisation& waves, const double* array) {
  std::vector<double> out;
  for (int port = 0; port < static_cast<int>(waves.system().scalar_ports().size()); ++port) {
    out.push_back(array[waves.wave_of_port(port)]);
  }
  return out;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// Some macro-steps with K evaluations each. Returns how many of them came out as WaveIteration's: â and what
/// the port solves carry along to an evaluation after it. `more`: evaluations too many for the
/// island, a control.
struct Agreement {
  int agree = 0, steps = 0;
};
Agreement compare(const System& system, const std::vector<double>& gamma, const InnerUpdate& update,
                  int evaluations, int more = 0) {
  constexpr int kSteps = 4;
  const WaveDiscretisation waves(system, 0.01, gamma);
  WaveIteration iteration(waves, update, WaveIteration::Scatter::inexact);
  AlignedVector record = waves.initial_record(), next(record.size()), own(record.size());
  const auto size = static_cast<std::size_t>(waves.wave_size());
  AlignedVector b(size, 0.0), a(size, 0.0), after(size, 0.0), expected(size, 0.0);
  const auto island = whole(waves, own.data());
  Agreement out;
  if (!island) return out;
  for (int n = 0; n < kSteps; ++n) {
    own = record;
    iteration.start(b);
    for (int k = 0; k < evaluations; ++k) {
      if (k > 0) iteration.update();
      EXPECT_TRUE(iteration.evaluate(record.data()).ok());
    }
    const auto shadow = iteration.shadow();
    EXPECT_TRUE(island->iterate(update, evaluations + more, b.data(), a.data()));
    bool same = same_bits(at_ports(waves, shadow.data()), at_ports(waves, a.data()));
    // One more evaluation, of both records, sees the warm starts that are left there.
    EXPECT_TRUE(waves.inexact_scatter_all(record.data(), shadow.data(), expected.data()).ok());
    EXPECT_TRUE(waves.inexact_scatter_all(own.data(), shadow.data(), after.data()).ok());
    same = same && same_bits(at_ports(waves, expected.data()), at_ports(waves, after.data()));
    out.agree += same ? 1 : 0;
    ++out.steps;
    EXPECT_TRUE(iteration.commit(record.data(), next.data(), b.data()).ok());
    record.swap(next);
  }
  return out;
}

const std::vector<InnerUpdate> kUpdates = {{&douglas_rachford(), 1.0},
                                           {&douglas_rachford(), 1.4},
                                           {&peaceman_rachford(), 1.0},
                                           {&peaceman_rachford(), 0.7}};

class SmallIslandIteration : public ::testing::TestWithParam<bool> {};

TEST_P(SmallIslandIteration, IsWaveIterationToTheLastBit) {
  int systems = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SmallSystem kind{.pair = GetParam()};
    kind.scale = seed % 3 == 0 ? 1.0 : seed % 3 == 1 ? 1e9 : 1e-9;
    kind.offset = seed % 4 == 0 ? 1e3 : 0.0;
    const System system = small_system(kind, seed);
    const auto gamma = impedances(system, kind.scale, seed % 2 == 0, seed);
    bool is_small = false;
    for (const InnerUpdate& update : kUpdates) {
      for (const int evaluations : {0, 1, 2, 3, 7, 30}) {
        const Agreement found = compare(system, gamma, update, evaluations);
        EXPECT_EQ(found.agree, found.steps) << fmt::format(
            "seed {} {} {} K={}", seed, update.rule()->name(), update.relaxation(), evaluations);
        is_small = is_small || found.steps > 0;
      }
    }
    systems += is_small ? 1 : 0;
  }
  // The others have too many waves, or several roots of a batch.
  EXPECT_GE(systems, GetParam() ? 55 : 40);
}
INSTANTIATE_TEST_SUITE_P(, SmallIslandIteration, ::testing::Bool(), [](const auto& kind) {
  return std::string(kind.param ? "OfTwoParts" : "OfSeveral");
});

TEST(SmallIslandIterationControl, SeesAnEvaluationTooMany) {
  int off = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const System system = small_system({.pair = seed % 2 == 0}, seed);
    const Agreement found =
        compare(system, impedances(system, 1.0, false, seed), kUpdates[1], 2, /*more=*/1);
    off += found.agree < found.steps ? 1 : 0;
  }
  EXPECT_GE(off, 12);
}

// A wave that is not a number is no failure of a linear part, and one of a cubic.
TEST(SmallIslands, DoNothingWhereAPortSolveFails) {
  int failed = 0, fine = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const System system = small_system({.pair = seed % 2 == 0}, seed);
    const WaveDiscretisation waves(system, 0.01, impedances(system, 1.0, seed % 3 == 0, seed));
    AlignedVector record = waves.initial_record();
    const auto island = whole(waves, record.data());
    if (!island) continue;
    const AlignedVector before = record;
    const auto size = static_cast<std::size_t>(waves.wave_size());
    AlignedVector b(size, 0.1), a(size, 3.0);
    b[static_cast<std::size_t>(waves.wave_of_port(0))] = std::numeric_limits<double>::quiet_NaN();
    WaveIteration iteration(waves, kUpdates[0], WaveIteration::Scatter::inexact);
    AlignedVector other = record;
    iteration.start(b);
    bool sound = true;
    for (int k = 0; k < 3 && sound; ++k) {
      if (k > 0) iteration.update();
      sound = iteration.evaluate(other.data()).ok();
    }
    EXPECT_EQ(island->iterate(kUpdates[0], 3, b.data(), a.data()), sound) << seed;
    sound ? ++fine : ++failed;
    if (sound) continue;
    EXPECT_EQ(std::memcmp(record.data(), before.data(), record.size() * sizeof(double)), 0) << seed;
    for (const double wave : a) EXPECT_EQ(wave, 3.0) << seed;
  }
  EXPECT_GE(failed, 8);
  EXPECT_GE(fine, 4);
}

// Many lanes are better taken side by side, and parts of other forms know their solve alone.
TEST(SmallIslands, AreNoneOfManyPartsOrOtherForms) {
  SystemBuilder many;
  for (int i = 0; i < 6; ++i) {
    const std::string name = "s" + std::to_string(i);
    many.add(name, linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 2.0}));
    many.join(joint::Free{}, {name + ".coupling"});
  }
  const System system = many.build();
  const WaveDiscretisation waves(system, 0.01, impedances(system, 1.0, true, 1));
  AlignedVector record = waves.initial_record();
  EXPECT_EQ(whole(waves, record.data()), nullptr);
}

// Roots of one batch are found side by side, unless all waves fit into registers.
TEST(SmallIslands, AreNoneOfSeveralRootsOfABatch) {
  const auto is_small = [](const System& system) {
    const WaveDiscretisation waves(system, 0.01, impedances(system, 1.0, true, 1));
    AlignedVector record = waves.initial_record();
    return whole(waves, record.data()) != nullptr;
  };
  const auto oscillators = [](bool with_a_third) {
    SystemBuilder builder;
    for (const char* const name : {"a", "b"}) {
      builder.add(name, duffing_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 2.0}));
    }
    if (with_a_third) {
      builder.add("c", linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 2.0}));
      builder.join(joint::CommonFlow{}, {"a.coupling", "b.coupling", "c.coupling"});
    } else {
      builder.connect("a.coupling", "b.coupling");
    }
    return builder.build();
  };
  EXPECT_TRUE(is_small(oscillators(false)));
  EXPECT_FALSE(is_small(oscillators(true)));
}

}  // namespace
}  // namespace portwave::test_small_island

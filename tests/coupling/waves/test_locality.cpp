// How a discretisation lays out a system: coupled parts close to one another, islands in
// island groups, and junctions in long runs. Results do not depend on it; speed does.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/system/interconnection.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "support/systems/networks.hpp"

namespace portwave::test_locality {
namespace {

using testing::archipelago;
using testing::line;
using testing::net;

constexpr int kLinks = 200;

/// The links of a line in some order far from its own.
std::vector<int> shuffled(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(3));
  return numbers;
}

/// Σ over junctions of the distance between its farthest parts, parts being in this order.
long stretch(const System& system, const std::vector<int>& order) {
  std::vector<int> rank(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  long sum = 0;
  for (const Junction& junction : system.junctions()) {
    int low = static_cast<int>(order.size()), high = 0;
    for (const int port : junction.waves) {
      const int part = system.scalar_ports()[static_cast<std::size_t>(port)].part;
      low = std::min(low, rank[static_cast<std::size_t>(part)]);
      high = std::max(high, rank[static_cast<std::size_t>(part)]);
    }
    sum += high - low;
  }
  return sum;
}

std::vector<int> as_given(const System& system) {
  std::vector<int> order(system.parts().size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

WaveDiscretisation discretise(const System& system) {
  return WaveDiscretisation(system, 0.01, std::vector<double>(system.scalar_ports().size(), 0.1));
}

TEST(LocalityOrder, IsAPermutationWithContiguousIslands) {
  std::vector<System> systems;
  systems.push_back(line(1));
  systems.push_back(line(kLinks, shuffled(kLinks)));
  systems.push_back(net(6, 7));
  systems.push_back(archipelago());
  systems.push_back(testing::ring_of_junctions());
  for (const System& system : systems) {
    const std::vector<int> order = locality_order(system);
    std::vector<int> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, as_given(system));
    std::vector<int> islands;
    for (const int part : order) islands.push_back(system.island_of_part(part));
    EXPECT_TRUE(std::is_sorted(islands.begin(), islands.end()));
  }
}

TEST(LocalityOrder, FindsTheLineInAShuffledLine) {
  const System system = line(kLinks, shuffled(kLinks));
  const std::vector<int> order = locality_order(system);
  EXPECT_EQ(stretch(system, order), kLinks - 1);
  EXPECT_GT(stretch(system, as_given(system)), 40 * kLinks) << "control: shuffled it is far longer";
}

TEST(LocalityOrder, KeepsAnOrderThatIsGood) {
  for (const System& system : {line(kLinks), net(6, 7)}) {
    const std::vector<int> order = locality_order(system);
    EXPECT_LE(stretch(system, order), stretch(system, as_given(system)));
  }
  const System good = line(kLinks);
  EXPECT_EQ(locality_order(good), as_given(good));
}

TEST(LocalityOrder, ANetHasAStretchOfItsShorterSide) {
  const System system = net(4, 30);
  // Diagonal by diagonal: a connection reaches at most two diagonals of four.
  EXPECT_LE(stretch(system, locality_order(system)), 8l * 2 * 4 * 30);
  EXPECT_LT(stretch(system, locality_order(system)), stretch(system, as_given(system)));
}

TEST(IslandGroups, SmallIslandsShareOneLargeOnesDoNot) {
  const System system = archipelago();
  const WaveDiscretisation waves = discretise(system);
  EXPECT_EQ(waves.island_group_count(), 3);
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const int island = system.island_of_part(part);
    EXPECT_EQ(waves.island_group_of_part(part), std::max(island - 4, 0))
        << system.parts()[static_cast<std::size_t>(part)].name;
  }
}

TEST(IslandGroups, AreFullBeforeTheNextBegins) {
  SystemBuilder builder;
  constexpr int kPairs = 100;
  for (int i = 0; i < 2 * kPairs; ++i) {
    builder.add("m" + std::to_string(i), linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}));
  }
  for (int i = 0; i < kPairs; ++i) {
    builder.connect("m" + std::to_string(i) + ".coupling",
                    "m" + std::to_string(i + kPairs) + ".coupling");
  }
  const System system = builder.build();
  const WaveDiscretisation waves = discretise(system);
  std::vector<int> size(static_cast<std::size_t>(waves.island_group_count()), 0);
  for (int part = 0; part < 2 * kPairs; ++part)
    ++size[static_cast<std::size_t>(waves.island_group_of_part(part))];
  EXPECT_EQ(size, (std::vector<int>{64, 64, 64, 8}));
}

TEST(IslandGroups, BatchesNeverMixThemAndShareNoCacheLine) {
  for (const auto grouping :
       {WaveDiscretisation::Grouping::by_shape, WaveDiscretisation::Grouping::none}) {
    const System system = archipelago();
    const WaveDiscretisation waves(
        system, 0.01, std::vector<double>(system.scalar_ports().size(), 0.1), grouping);
    for (const BatchSlot& slot : waves.batches()) {
      for (const int part : slot.parts)
        EXPECT_EQ(waves.island_group_of_part(part), slot.island_group);
    }
    for (std::size_t i = 1; i < waves.batches().size(); ++i) {
      const BatchSlot& before = waves.batches()[i - 1];
      const BatchSlot& slot = waves.batches()[i];
      if (before.island_group == slot.island_group) continue;
      EXPECT_EQ(slot.wave % kLaneGroup, 0);
      EXPECT_EQ(slot.entry % kLaneGroup, 0);
      EXPECT_EQ(slot.record % kLaneGroup, 0u);
      EXPECT_LE(before.wave + before.batch->wave_count(), slot.wave);
    }
  }
}

TEST(Places, EveryPortHasItsOwnAndPaddingBelongsToNobody) {
  const System system = archipelago();
  const WaveDiscretisation waves = discretise(system);
  std::set<int> used;
  for (int j = 0; j < static_cast<int>(system.scalar_ports().size()); ++j) {
    const int slot = waves.wave_of_port(j);
    EXPECT_TRUE(used.insert(slot).second);
    const ScalarPort& port = system.scalar_ports()[static_cast<std::size_t>(j)];
    EXPECT_EQ(waves.part_of_wave(slot), port.part);
    const PartSlot& own = waves.slot(port.part);
    EXPECT_EQ(slot, own.wave + (j - system.first_scalar_port(port.part)) * own.stride);
  }
  int padding = 0;
  for (int slot = 0; slot < waves.wave_size(); ++slot) {
    if (waves.part_of_wave(slot) < 0) {
      ++padding;
      EXPECT_EQ(waves.impedance()[static_cast<std::size_t>(slot)], 1.0);
    }
  }
  EXPECT_EQ(padding + static_cast<int>(used.size()), waves.wave_size());
  EXPECT_GT(padding, 0);
}

/// Connections in the longest contiguous run, and in runs that are not.
struct Runs {
  int longest_contiguous = 0;
  int scattered = 0;
};

Runs runs_of(const CompiledJunctions& compiled) {
  Runs out;
  for (const JunctionRun& run : compiled.runs()) {
    if (run.arity != 2) continue;
    if (run.contiguous) {
      out.longest_contiguous = std::max(out.longest_contiguous, run.count);
    } else {
      out.scattered += run.count;
    }
  }
  return out;
}

TEST(JunctionRuns, ALinesConnectionsAreOneContiguousRun) {
  const System in_order = line(kLinks), mixed = line(kLinks, shuffled(kLinks));
  for (const System* system : {&in_order, &mixed}) {
    const WaveDiscretisation waves = discretise(*system);
    const Runs runs = runs_of(waves.interconnection().all());
    EXPECT_EQ(runs.longest_contiguous, kLinks - 1);
    EXPECT_EQ(runs.scattered, 0);
  }
}

TEST(JunctionRunsControl, ShuffledPlacesAreNoRun) {
  // The same connections over offsets as the shuffled links would have them without an order.
  const std::vector<int> link = shuffled(kLinks);
  std::vector<Junction> junctions;
  for (std::size_t i = 0; i + 1 < link.size(); ++i) {
    junctions.push_back({DiracStructure::connection(), {link[i], kLinks + link[i + 1]}});
  }
  std::vector<int> slot_of(2 * kLinks);
  std::iota(slot_of.begin(), slot_of.end(), 0);
  junctions.push_back({DiracStructure::connection(), {link.back(), kLinks + link.front()}});
  const Interconnection coupling(junctions, slot_of, std::vector<double>(2 * kLinks, 0.1));
  const Runs runs = runs_of(coupling.all());
  EXPECT_EQ(runs.longest_contiguous, 0);
  EXPECT_EQ(runs.scattered, kLinks);
}

TEST(JunctionRuns, ProgramsOfPiecesAndTheWholeGiveTheSameBits) {
  const System system = net(6, 7);
  const WaveDiscretisation waves = discretise(system);
  const Interconnection& coupling = waves.interconnection();
  const auto size = static_cast<std::size_t>(waves.wave_size());
  AlignedVector b(size), a(size, 0.0), u(size, 0.0), piece_a(size, 0.0), piece_u(size, 0.0);
  for (std::size_t i = 0; i < size; ++i) b[i] = std::sin(1.0 + static_cast<double>(i));
  coupling.exchange(b.data(), a.data());
  coupling.all().resolve(1.3, b.data(), u.data());
  std::vector<int> all(static_cast<std::size_t>(coupling.size()));
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), std::mt19937_64(5));
  for (std::size_t first = 0; first < all.size(); first += 11) {
    const std::size_t count = std::min<std::size_t>(11, all.size() - first);
    const CompiledJunctions piece = coupling.compile(std::span(all).subspan(first, count));
    piece.exchange(b.data(), piece_a.data());
    piece.resolve(1.3, b.data(), piece_u.data());
  }
  EXPECT_EQ(a, piece_a);
  EXPECT_EQ(u, piece_u);
}

}  // namespace
}  // namespace portwave::test_locality

// No budget, method, step, impedance or change of impedance makes the coupling create energy: the
// two laws of the passivity guard over a box of runs drawn at random, and that the same runs
// without it break them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/energy/guard.hpp"
#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/energy_laws.hpp"
#include "support/guard_of.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_energy_safety {
namespace {

using testing::EnergyLaws;
using testing::NamedSystem;

/// Parts that lose nothing, one of them displaced.
System lossless_line() {
  SystemBuilder builder;
  for (int i = 0; i < 4; ++i) {
    builder.add("part" + std::to_string(i), testing::sprung_mass({.mass = 1.0 + 0.5 * i,
                                                                  .stiffness = 10.0,
                                                                  .up_stiffness = 40.0,
                                                                  .rigid_ports = 1,
                                                                  .velocity = i == 0 ? 1.0 : 0.0}));
  }
  for (int i = 0; i + 1 < 4; ++i) {
    builder.connect("part" + std::to_string(i) + ".up", "part" + std::to_string(i + 1) + ".p0");
  }
  builder.join(joint::Free{}, {"part0.p0"});
  builder.join(joint::Fixed{}, {"part3.up"});
  return builder.build();
}

struct Sample {
  std::string name;
  System (*make)();
  bool small;
};

void PrintTo(const Sample& sample, std::ostream* out) { *out << sample.name; }

std::vector<Sample> samples() {
  return {{"duffing_linear_pair", testing::duffing_linear_pair, true},
          {"lossless_pair", testing::lossless_pair, true},
          {"linear_pair", [] { return testing::stiff_soft_pair(50.0, 3.0, false); }, true},
          {"stiff_soft_duffing", [] { return testing::stiff_soft_pair(1e4, 10.0, true); }, true},
          {"lossless_line", lossless_line, false},
          {"chain", [] { return testing::chain_of_blocks(4, 3); }, false},
          {"driven_star", testing::star, false},
          {"star_on_hub", [] { return testing::star_on_hub(4, 10.0); }, false},
          {"ring", testing::ring_of_junctions, false},
          {"islands",
           [] {
             return testing::archipelago({0, 1, 2, 3, 4});
           },
           false}};
}

struct Variant {
  WaveUpdate kind;
  double relaxation;
  int acceleration;
};
constexpr Variant kVariants[] = {
    {WaveUpdate::douglas_rachford, 1.0, 0},  {WaveUpdate::peaceman_rachford, 1.0, 0},
    {WaveUpdate::peaceman_rachford, 0.5, 0}, {WaveUpdate::douglas_rachford, 1.0, 5},
    {WaveUpdate::peaceman_rachford, 1.0, 3}, {WaveUpdate::peaceman_rachford, 0.5, 10}};

/// A run of the box.
struct Draw {
  StepperOptions options = {.start = Start::as_given, .method = WaveCoupling{}};
  int steps = 0;
  int change_every = 0;  ///< impedances anew before every so many steps; 0: never
  std::uint64_t seed = 0;
  std::vector<double> matched;  ///< impedances, of which changes are multiples
  std::string replay;
};

Draw draw(const Sample& sample, const System& system, int iterations, const Variant& variant,
          std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const auto one_in = [&](std::uint64_t n) { return random() % n == 0; };
  Draw d;
  d.seed = seed;
  StepperOptions& o = d.options;
  o.step_s = std::pow(10.0, -2.5 + 1.5 * unit(random));
  const PortResponses responses(system, o.step_s);
  d.matched = tune_impedance(responses, ImpedanceKind::matched).by_port;
  std::vector<double> impedance = d.matched;
  const double factor = std::pow(10.0, 3.0 * unit(random));
  const bool port_by_port = one_in(3);
  for (double& gamma : impedance) {
    gamma *= port_by_port ? std::pow(10.0, 3.0 * unit(random)) : factor;
  }
  o.method.waves().kind = variant.kind;
  o.method.waves().relaxation = variant.relaxation;
  o.method.waves().acceleration = variant.acceleration;
  o.method.waves().iterations = iterations;
  o.method.waves().impedance = impedance;
  double stored = 0.0;
  for (const Part& part : system.parts()) {
    stored += part.port_hamiltonian()->storage(part.initial_state.data());
  }
  const bool waves = one_in(2);
  if (waves) {
    const double size = 0.3 * std::sqrt(stored + 0.01);
    for (std::size_t j = 0; j < impedance.size(); ++j) {
      o.method.waves().initial_waves.push_back(size * unit(random));
    }
  }
  const auto tank = random() % 6;
  if (tank == 1) o.method.waves().tank.initial_J = 0.0;
  if (tank == 2) o.method.waves().tank.initial_fraction = 0.01;
  if (tank == 3) o.method.waves().tank.initial_J = 0.1 * stored;
  if (tank == 4) o.method.waves().tank.cap_J = 0.01 * stored;
  if (one_in(3)) d.change_every = 1 + 6 * static_cast<int>(random() % 2);
  if (one_in(10)) o.method.waves().tolerance = 1e-6;
  if (one_in(16)) {
    o.threads = 2;
    o.executor = ExecutorKind::async;
    o.grain = Grain::per_part();
  }
  d.steps = sample.small ? 120 : 60;
  d.replay = fmt::format(
      "{}, seed {}: {} theta {}, acceleration {}, K={}, h={:.3g}, {} x matched, b0 {}, tank {}, "
      "impedances change every {} steps, {} threads",
      sample.name, seed, to_string(variant.kind), variant.relaxation, variant.acceleration,
      iterations, o.step_s, port_by_port ? std::string("1e-3..1e3") : fmt::format("{:.3g}", factor),
      waves, tank, d.change_every, o.threads);
  return d;
}

struct Outcome {
  std::string breach;  ///< empty: the laws hold
  GuardStatistics guard;
  double lowest_share = 0.0;  ///< lowest tank over H₀ + T₀
};

Outcome run(const System& system, const Draw& d, bool guarded) {
  StepperOptions options = d.options;
  options.method.waves().guard = guarded;
  Stepper stepper(system, options);
  EnergyLaws laws(stepper);
  std::mt19937_64 random(d.seed + 1);
  std::uniform_real_distribution<double> exponent(-3.0, 3.0);
  std::vector<double> impedance = d.matched;
  for (int n = 0; n < d.steps; ++n) {
    if (d.change_every > 0 && n % d.change_every == 0) {
      for (std::size_t j = 0; j < impedance.size(); ++j) {
        impedance[j] = d.matched[j] * std::pow(10.0, exponent(random));
      }
      stepper.waves()->set_impedance(impedance);
    }
    const StepReport report = stepper.step();
    laws.observe(stepper, report);
    if (!laws.hold()) break;
  }
  return {laws.first_breach(), testing::guard_of(stepper),
          laws.lowest_tank() / laws.initial_energy()};
}

std::vector<int> budgets(const Sample& sample) {
  if (!sample.small) return {0, 1, 2, 3, 4, 5, 7, 10, 14, 20, 33, 50};
  std::vector<int> all;
  for (int K = 0; K <= 50; ++K) all.push_back(K);
  return all;
}

template <class Visit>
void for_box(const Sample& sample, int draws, std::uint64_t seed, const Visit& visit) {
  const System system = sample.make();
  for (const int iterations : budgets(sample)) {
    for (const Variant& variant : kVariants) {
      for (int i = 0; i < draws; ++i)
        visit(system, draw(sample, system, iterations, variant, ++seed));
    }
  }
}

class EnergySafety : public ::testing::TestWithParam<Sample> {};

TEST_P(EnergySafety, TheLawsHoldOverTheBox) {
  int runs = 0, acted = 0, breaches = 0;
  std::int64_t uses = 0, trials = 0;
  for_box(GetParam(), GetParam().small ? 5 : 8, 1000, [&](const System& system, const Draw& d) {
    ++runs;
    const Outcome outcome = run(system, d, true);
    if (outcome.guard.steps > 0) ++acted;
    uses += outcome.guard.uses;
    trials += outcome.guard.trials;
    EXPECT_LE(outcome.guard.trials, (PassivityGuard::kMaxTrials + 1) * outcome.guard.uses)
        << d.replay;
    if (!outcome.breach.empty() && ++breaches <= 5) {
      ADD_FAILURE() << outcome.breach << "\n" << d.replay;
    }
    const TankOptions& tank = d.options.method.waves().tank;
    if (d.options.method.waves().iterations == 0 && d.change_every == 0 && !tank.initial_J &&
        std::isinf(tank.cap_J)) {
      EXPECT_EQ(outcome.guard.uses, 0) << d.replay;
    }
  });
  EXPECT_EQ(breaches, 0) << "of " << runs << " runs";
  EXPECT_GT(acted, runs / 8) << "of " << runs << " runs the guard acted in";
  EXPECT_LE(trials, 3 * uses);
}

TEST_P(EnergySafety, WithoutTheGuardManyRunsBreakThem) {
  int runs = 0, breaches = 0, plainly = 0;
  for_box(GetParam(), 2, 1000, [&](const System& system, const Draw& d) {
    ++runs;
    const Outcome outcome = run(system, d, false);
    if (!outcome.breach.empty()) ++breaches;
    if (outcome.lowest_share < -1e-6) ++plainly;
  });
  EXPECT_GT(breaches, runs / 8) << "of " << runs;
  EXPECT_GT(plainly, runs / 12) << "of " << runs;
}

INSTANTIATE_TEST_SUITE_P(Systems, EnergySafety, ::testing::ValuesIn(samples()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace portwave::test_energy_safety

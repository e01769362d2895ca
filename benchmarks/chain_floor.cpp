// One macro-step of 1024 blocks of five masses, K = 2, serial, beside the propagators x⁺ = Φx + Ψa
// of the blocks alone; and what one more inner iteration costs a block. "indexed": every block is
// put in one way round or the other at random, so that couplings lie in no order; shuffling the
// parts alone would be undone by the engine's locality order. And steps with damped stages beside those
// that conserve.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "chain_system.hpp"
#include "peers/block_propagators.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Certify;
using portwave::ChainEnd;
using portwave::Stepper;
using portwave::System;

constexpr std::size_t kBlocks = 1024;
constexpr double kStep = 1e-3;
constexpr double kTolerance = 1e-12;

/// How the chain is put together: parts by place, in the order they are added.
struct Layout {
  std::vector<std::size_t> order;
  std::vector<bool> turned;  ///< by block: its mass end is called "right"
};

Layout straight() {
  Layout layout{std::vector<std::size_t>(kBlocks), std::vector<bool>(kBlocks, false)};
  std::iota(layout.order.begin(), layout.order.end(), 0);
  return layout;
}
Layout shuffled() {
  Layout layout = straight();
  std::sort(layout.order.begin(), layout.order.end(),
            [](std::size_t a, std::size_t b) { return evenly(a, 13) < evenly(b, 13); });
  return layout;
}
Layout indexed() {
  Layout layout = shuffled();
  for (std::size_t b = 0; b + 1 < kBlocks; ++b) layout.turned[b] = evenly(7 * b * b, 17) < 0.5;
  return layout;
}

System laid_out(const Chain& chain, const Layout& layout) {
  portwave::SystemBuilder builder;
  const auto name = [](std::size_t b) { return "block" + std::to_string(b); };
  const auto port = [&](std::size_t b, bool mass_side) {
    return name(b) + (mass_side == layout.turned[b] ? ".right" : ".left");
  };
  for (const std::size_t b : layout.order) {
    const Block& block = chain.blocks[b];
    const bool turned = layout.turned[b], spring_end = b + 1 < kBlocks;
    std::vector<double> state;
    for (std::size_t i = 0; i < kMasses; ++i) {
      const std::size_t m = b * kMasses + (turned ? kMasses - 1 - i : i);
      state.insert(state.end(), {chain.q[m], chain.v[m]});
    }
    if (spring_end) state.push_back(chain.q[(b + 1) * kMasses] - chain.q[(b + 1) * kMasses - 1]);
    const ChainEnd far = spring_end ? ChainEnd::spring : ChainEnd::mass;
    builder.add(name(b),
                portwave::mass_spring_damper_chain(
                    {.masses = static_cast<int>(kMasses),
                     .mass_kg = block.mass_kg,
                     .stiffness_N_per_m = block.stiffness_N_per_m,
                     .damping_Ns_per_m = block.damping_Ns_per_m,
                     .coupling_stiffness_N_per_m = block.coupling_stiffness_N_per_m,
                     .left_end = turned ? far : ChainEnd::mass,
                     .right_end = turned ? ChainEnd::mass : far}),
                {.initial_state = state});
  }
  for (std::size_t b = 0; b + 1 < kBlocks; ++b) builder.connect(port(b, false), port(b + 1, true));
  builder.join(portwave::joint::Free{}, {port(0, true)});
  builder.join(portwave::joint::Free{}, {port(kBlocks - 1, false)});
  return builder.build();
}

portwave::StepperOptions options(const Chain& chain, const Layout& layout, int iterations,
                                 Certify certify) {
  portwave::StepperOptions options = chain_options(chain, kStep, iterations);
  options.certify = certify;
  const std::vector<double> straight = options.method.waves().impedance;
  std::size_t place = 0;
  for (const std::size_t b : layout.order) {
    const std::size_t turned = layout.turned[b] ? 1 : 0;
    options.method.waves().impedance[place++] = straight[2 * b + turned];
    options.method.waves().impedance[place++] = straight[2 * b + 1 - turned];
  }
  return options;
}

/// Position of a mass.
double position(const Stepper& engine, const Layout& layout, std::size_t mass) {
  const std::size_t b = mass / kMasses, i = mass % kMasses;
  return engine.state("block" + std::to_string(b))[2 * (layout.turned[b] ? kMasses - 1 - i : i)];
}

void require(const std::string& name, double difference, bool agrees) {
  fmt::print(stderr, "  {:44} {:.1e}\n", name, difference);
  if ((difference <= kTolerance) == agrees) return;
  throw std::runtime_error(name + (agrees ? ": wrong answer" : ": the check saw nothing wrong"));
}

/// The propagators, given the waves that the engine committed with, against the engine. Ends that lead nowhere have
/// other waves in the engine, of the same effort and flow.
double difference(Stepper& engine, BlockPropagators& floor, const std::vector<double>& impedance,
                  double wave_error) {
  double worst = 0.0;
  for (int n = 0; n < 20; ++n) {
    engine.step();
    for (std::size_t b = 0; b < kBlocks; ++b) {
      for (std::size_t port = 0; port < kBlockPorts; ++port) {
        const auto number = static_cast<int>(2 * b + port);
        const double a = portwave::WaveTransform(impedance[2 * b + port], kStep)
                             .to_waves({engine.effort(number), engine.flow(number)})
                             .incident;
        floor.set_wave(b, port, a * (1.0 + wave_error));
      }
    }
    floor.step();
    for (std::size_t m = 0; m < (kBlocks - 1) * kMasses; ++m) {
      const auto state = engine.state(static_cast<int>(m / kMasses));
      const double q = state[2 * (m % kMasses)], v = state[2 * (m % kMasses) + 1];
      const double off =
          std::max(std::abs(q - floor.position(m)) / 0.1, std::abs(v - floor.velocity(m)));
      worst = off <= worst ? worst : std::isfinite(off) ? off : HUGE_VAL;
    }
  }
  return worst;
}

/// Share of the couplings that the engine reaches through an index.
double indexed_share(const System& system, const portwave::StepperOptions& options) {
  const portwave::WaveDiscretisation waves(system, kStep, options.method.waves().impedance);
  std::vector<int> all(static_cast<std::size_t>(waves.interconnection().size()));
  std::iota(all.begin(), all.end(), 0);
  double scattered = 0.0;
  const portwave::CompiledJunctions compiled = waves.interconnection().compile(all);
  for (const auto& run : compiled.runs()) {
    if (!run.contiguous) scattered += run.count;
  }
  return scattered / static_cast<double>(all.size());
}

struct Case {
  std::string name;
  Chain chain;
  Layout layout;
  bool shared;
  bool has_floor;
  std::optional<double> goal_ns;  ///< of one more iteration
};

void compare(const Report& report, const Case& c) {
  const System system = laid_out(c.chain, c.layout);
  const auto make = [&](int iterations, Certify certify) {
    return std::make_unique<Stepper>(system, options(c.chain, c.layout, iterations, certify));
  };
  const std::vector<double> impedance = matched_impedance(c.chain, kStep);
  const auto floor = block_propagators(c.chain, impedance, kStep, c.shared);
  if (c.has_floor) {
    for (const double error : {0.0, 1e-6}) {
      const auto fresh = block_propagators(c.chain, impedance, kStep, c.shared);
      require(
          c.name + (error > 0.0 ? ", waves 1e-6 off (control)" : ": propagators"),
          difference(*make(2, Certify::energy), error > 0.0 ? *fresh : *floor, impedance, error),
          error == 0.0);
    }
  } else {
    const System plain = laid_out(c.chain, straight());
    Stepper expected(plain, options(c.chain, straight(), 2, Certify::energy));
    const auto engine = make(2, Certify::energy);
    expected.step(50);
    engine->step(50);
    double worst = 0.0;
    for (std::size_t m = 0; m < kBlocks * kMasses; m += 3) {
      const double off =
          std::abs(position(*engine, c.layout, m) - position(expected, straight(), m)) / 0.1;
      worst = off <= worst ? worst : std::isfinite(off) ? off : HUGE_VAL;
    }
    require(c.name + ": against the chain in order", worst, true);
  }

  // With a reserve that it never uses up, the guard has to look and not to act.
  portwave::StepperOptions guarded = options(c.chain, c.layout, 2, Certify::energy);
  guarded.method.waves().guard = true;
  guarded.method.waves().tank.initial_J = 1e3;
  Stepper guarded2(system, guarded);

  const auto none2 = make(2, Certify::none), energy2 = make(2, Certify::energy),
             none10 = make(10, Certify::none);
  const Contest contest = take_turns(
      {processor_timed([&] { none2->step(); }), processor_timed([&] { energy2->step(); }),
       processor_timed([&] { none10->step(); }), processor_timed([&] { floor->step(); }),
       processor_timed([&] { guarded2.step(); })},
      {.rounds = 61, .turn_s = 4e-3});
  const std::string note = fmt::format(
      "{}; {:.0f} % of the couplings through an index", to_string(portwave::instruction_set()),
      100.0 * indexed_share(system, options(c.chain, c.layout, 2, Certify::none)));
  if (c.has_floor) {
    report.add({.name = fmt::format("chain_floor/{}/no_ledger", c.name),
                .sense = Sense::at_most,
                .goal = c.shared ? std::optional(1.4) : std::nullopt,
                .note = note},
               contest, 0, 3);
    report.add({.name = fmt::format("chain_floor/{}/ledger", c.name),
                .sense = Sense::at_most,
                .goal = c.shared ? std::optional(1.8) : std::nullopt,
                .note = note},
               contest, 1, 3);
    std::vector<double> share;
    for (std::size_t i = 0; i < contest.seconds(0).size(); ++i) {
      share.push_back(1.0 - contest.seconds(0)[i] / contest.seconds(1)[i]);
    }
    report.add({.name = fmt::format("chain_floor/{}/ledger_share", c.name),
                .sense = Sense::at_most,
                .goal = 0.25,
                .note = note},
               share, "of the step");
  }
  if (guarded2.waves()->guard()->steps > 0)
    throw std::runtime_error(c.name + ": the guard was not idle");
  report.add({.name = fmt::format("chain_floor/{}/idle_guard", c.name),
              .sense = Sense::at_most,
              .goal = 1.03,
              .note = note + "; over the same step without guard"},
             contest, 4, 1);
  std::vector<double> iteration_ns;
  for (std::size_t i = 0; i < contest.seconds(0).size(); ++i) {
    iteration_ns.push_back((contest.seconds(2)[i] - contest.seconds(0)[i]) * 1e9 / 8.0 / kBlocks);
  }
  report.add({.name = fmt::format("chain_floor/{}/one_more_iteration", c.name),
              .sense = Sense::at_most,
              .goal = c.goal_ns,
              .note = note + "; per block, from K=2 and K=10 without ledger"},
             iteration_ns, "ns");
}

/// Blocks that are all different beside equal ones: what coefficients of their own cost.
void compare_different(const Report& report, const Chain& equal, const Chain& varied) {
  const System of_equal = laid_out(equal, straight()), of_varied = laid_out(varied, straight());
  for (const Certify certify : {Certify::none, Certify::energy}) {
    Stepper one(of_equal, options(equal, straight(), 2, certify));
    Stepper other(of_varied, options(varied, straight(), 2, certify));
    const Contest contest =
        take_turns({processor_timed([&] { other.step(); }), processor_timed([&] { one.step(); })},
                   {.rounds = 61, .turn_s = 4e-3});
    report.add({.name = fmt::format("chain_floor/different_to_equal/{}",
                                    certify == Certify::none ? "no_ledger" : "ledger"),
                .sense = Sense::at_most,
                .goal = 1.5,
                .note = std::string(to_string(portwave::instruction_set()))},
               contest, 0, 1);
  }
}

/// Blocks whose stages are damped beside the same that conserve: the same maps with other coefficients, and with several
/// stages a few rows for the account.
void compare_damped(const Report& report, const std::string& name, const Chain& chain) {
  const System system = laid_out(chain, straight());
  for (int stages = 1; stages <= portwave::kMostStages; ++stages) {
    portwave::StepperOptions own = options(chain, straight(), 2, Certify::energy);
    own.method.waves().stages = stages;
    own.method.waves().integrator = portwave::StageKind::gauss;
    Stepper conserving(system, own);
    own.method.waves().integrator = portwave::StageKind::damped;
    Stepper damped(system, own);
    damped.step(20);
    const portwave::EnergyTotals e = damped.energy();
    const std::string row = fmt::format("{}/{}", name, stages);
    require(row + ": account of damped steps",
            (e.final_J - e.initial_J - e.supplied_J + e.dissipated_J + e.mismatch_J +
             e.numerical_dissipation_J) /
                e.initial_J,
            true);
    if (!(e.numerical_dissipation_J > 0.0)) throw std::runtime_error(row + ": nothing is damped");
    const auto row_of = [&](Stepper& ours, Stepper& reference, const char* ledger) {
      const Contest contest = take_turns(
          {processor_timed([&] { ours.step(); }), processor_timed([&] { reference.step(); })},
          {.rounds = 61, .turn_s = 4e-3});
      report.add({.name = fmt::format("chain_floor/damped_to_conserving/{}/{}", row, ledger),
                  .sense = Sense::at_most,
                  .goal = 1.05,
                  .note = std::string(to_string(portwave::instruction_set())) + "; by stages"},
                 contest, 0, 1);
    };
    row_of(damped, conserving, "ledger");
    own.certify = Certify::none;
    Stepper damped_alone(system, own);
    own.method.waves().integrator = portwave::StageKind::gauss;
    Stepper conserving_alone(system, own);
    row_of(damped_alone, conserving_alone, "no_ledger");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("chain_floor", 5);
  if (report.only_lists(argc, argv)) return 0;
  const Chain equal = equal_chain(kBlocks), varied = varied_chain(kBlocks);
  compare(report, {"equal", equal, straight(), true, true, 0.5});
  compare(report, {"different", varied, straight(), false, true, 1.0});
  compare_different(report, equal, varied);
  compare_damped(report, "equal", equal);
  compare_damped(report, "different", varied);
  compare(report, {"shuffled", varied, shuffled(), false, false, std::nullopt});
  compare(report, {"indexed", varied, indexed(), false, false, 2.0});
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "chain_floor: {}\n", error.what());
  return 1;
}

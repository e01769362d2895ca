// One chain of 3200 masses in 64 blocks of 50, stepped by every way of coupling the blocks:
//   threads/<method>   two threads against one
//   midpoint/<method>  one thread against the monolithic midpoint rule by one sparse LU of the whole
// All but Strang splitting are the midpoint rule, to their tolerances, and are checked to be.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "portwave/coupling/network/collocation.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::CouplingMethod;
using portwave::ExecutorKind;
using portwave::Stepper;

constexpr int kBlocks = 64;
constexpr int kMasses = 50;
constexpr double kStep_s = 1e-3;
constexpr int kWindow = 10;

std::string block(int i, const char* port = "") { return fmt::format("block_{}{}", i, port); }

portwave::System chain() {
  const std::shared_ptr<const portwave::Subsystem> physics =
      portwave::mass_spring_damper_chain({.masses = kMasses,
                                          .mass_kg = 0.3,
                                          .stiffness_N_per_m = 50,
                                          .damping_Ns_per_m = 0.1,
                                          .coupling_stiffness_N_per_m = 50});
  portwave::SystemBuilder builder;
  for (int i = 0; i < kBlocks; ++i) {
    std::vector<double> start(2 * kMasses + 1);
    for (std::size_t k = 0; k < start.size(); ++k) {
      start[k] =
          0.01 * std::sin(0.37 * static_cast<double>(k * k + 7 * static_cast<std::size_t>(i)));
    }
    builder.add(block(i), physics, {.initial_state = start});
  }
  for (int i = 0; i + 1 < kBlocks; ++i) builder.connect(block(i, ".right"), block(i + 1, ".left"));
  builder.join(portwave::joint::Free{}, {block(0, ".left")});
  builder.join(portwave::joint::Fixed{}, {block(kBlocks - 1, ".right")});
  return builder.build();
}

struct Contender {
  const char* name;
  CouplingMethod method = portwave::WaveCoupling{};
  int steps;         ///< per call: whole windows
  double tolerance;  ///< of the check against the midpoint rule
};

std::vector<Contender> contenders() {
  const portwave::WaveCoupling waves{.kind = portwave::WaveUpdate::peaceman_rachford,
                                     .iterations = 2,
                                     .impedance_kind = portwave::ImpedanceKind::matched};
  const portwave::Splitting strang{.kind = portwave::SplittingKind::strang};
  const portwave::DynamicIteration lions_mercier{.kind = portwave::IterationKind::lions_mercier,
                                                 .iterations = 100,
                                                 .tolerance = 1e-12,
                                                 .window_steps = kWindow};
  return {{"waves", waves, 1, 1e-10},
          {"strang", strang, 1, 1e-3},
          {"lions-mercier", lions_mercier, kWindow, 1e-10}};
}

std::unique_ptr<Stepper> stepper(const portwave::System& system, const Contender& contender,
                                 int threads) {
  portwave::StepperOptions options;
  options.step_s = kStep_s;
  options.method = contender.method;
  options.threads = threads;
  options.executor = threads == 1 ? ExecutorKind::serial : ExecutorKind::async;
  return std::make_unique<Stepper>(system, options);
}

void check(const portwave::System& system, const portwave::CondensedSystem& condensed,
           const Contender& contender) {
  constexpr int kSteps = 40;
  portwave::CollocationReference midpoint(condensed, kStep_s, portwave::Integrator::midpoint);
  const auto one = stepper(system, contender, 1), two = stepper(system, contender, 2);
  for (int n = 0; n < kSteps; ++n) midpoint.step();
  one->step(kSteps);
  two->step(kSteps);
  double difference = 0.0, size = 0.0;
  for (int i = 0; i < kBlocks; ++i) {
    const auto x = one->state(i), y = two->state(i);
    if (!std::equal(x.begin(), x.end(), y.begin()))
      throw std::runtime_error(fmt::format("{}: two threads give other bits", contender.name));
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double exact =
          midpoint.state()[static_cast<std::size_t>(
                               condensed.blocks()[static_cast<std::size_t>(i)].first) +
                           k];
      difference = std::max(difference, std::abs(x[k] - exact));
      size = std::max(size, std::abs(exact));
    }
  }
  if (!(difference <= contender.tolerance * size)) {
    throw std::runtime_error(
        fmt::format("{}: {:.2g} from the midpoint rule", contender.name, difference / size));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("network_methods", 3);
  if (report.only_lists(argc, argv)) return 0;
  const portwave::System system = chain();
  const portwave::CondensedSystem condensed(system);
  for (const Contender& contender : contenders()) {
    check(system, condensed, contender);
    const auto one = stepper(system, contender, 1), two = stepper(system, contender, 2);
    portwave::CollocationReference midpoint(condensed, kStep_s, portwave::Integrator::midpoint);
    // After a while in which threads can come back.
    const auto steps = [&contender](auto& engine) -> Timer {
      const auto call = [&engine, n = contender.steps] {
        for (int i = 0; i < n; ++i) engine.step();
      };
      return [call, inner = timed(call)](std::int64_t calls) {
        const auto start = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(800)) call();
        return inner(calls);
      };
    };
    const Contest contest =
        take_turns({steps(*one), steps(*two), steps(midpoint)}, {.rounds = 31, .turn_s = 10e-3});
    const std::string note =
        fmt::format("{}; {} step{} per call; {}", to_string(portwave::instruction_set()),
                    contender.steps, contender.steps == 1 ? "" : "s", two->execution());
    report.add(
        {fmt::format("network_methods/threads/{}", contender.name), Sense::at_least, 1.7, note},
        contest, 1, 0);
    report.add(
        {fmt::format("network_methods/midpoint/{}", contender.name), Sense::at_least, {}, note},
        contest, 0, 2);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "network_methods: {}\n", error.what());
  return 1;
}

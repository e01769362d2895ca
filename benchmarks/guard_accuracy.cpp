// What the passivity guard costs in accuracy: the root mean square of the error against the
// monolithic step with the guard, over that without it, for budgets, methods, steps and impedances
// at random.
//   error   √(mean over steps of Σ_parts H(x − x_ref)) / √H₀, x_ref the same step solved as one
// Both are counted from 1e-9 up: what is below is as good as converged.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::duffing_oscillator;
using portwave::linear_oscillator;
using portwave::mass_spring_damper_chain;
using portwave::System;
using portwave::SystemBuilder;
using portwave::WaveUpdate;

constexpr int kMostSteps = 400, kRandomPairs = 16;
/// Duffing pairs drawn at random forget what they were within some tens of seconds.
constexpr double kHorizon_s = 10.0;
constexpr double kConverged = 1e-9, kLargestExponent = 3.0;
constexpr double kStepSizes[] = {1e-4, 1e-3, 1e-2, 1e-1};
constexpr int kBudgets[] = {0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 50};

struct Variant {
  WaveUpdate kind;
  double relaxation;
  int acceleration;
};
constexpr Variant kVariants[] = {
    {WaveUpdate::douglas_rachford, 1.0, 0},  {WaveUpdate::peaceman_rachford, 1.0, 0},
    {WaveUpdate::peaceman_rachford, 0.5, 0}, {WaveUpdate::douglas_rachford, 1.0, 5},
    {WaveUpdate::peaceman_rachford, 1.0, 3}, {WaveUpdate::peaceman_rachford, 0.5, 10}};

// Systems -----------------------------------------------------------------------------------------

/// The pair of arXiv 2603.16424.
System duffing_linear_pair() {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120,
                                  .coupling_damping_Ns_per_m = 0.05}),
              {.initial_state = {0.4, 0, -0.4}});
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

/// Lossless, both effort-in.
System lossless_pair() {
  SystemBuilder builder;
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
              {.initial_state = {1, 0}});
  builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}),
              {.initial_state = {-1, 0}});
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

/// A spring end on a mass, masses and stiffnesses over two orders of magnitude; every other one
/// with a cubic spring, every third one damped.
System random_pair(int number) {
  std::mt19937_64 random(static_cast<std::uint64_t>(100 + number));
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const auto spread = [&](double middle) { return middle * std::pow(10.0, unit(random)); };
  const bool damped = number % 3 == 0;
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = spread(1.0),
                                  .stiffness_N_per_m = spread(30.0),
                                  .cubic_stiffness_N_per_m3 = number % 2 == 0 ? 0.0 : spread(3e3),
                                  .damping_Ns_per_m = damped ? spread(0.1) : 0.0,
                                  .coupling_stiffness_N_per_m = spread(60.0),
                                  .coupling_damping_Ns_per_m = damped ? spread(0.1) : 0.0}),
              {.initial_state = {0.4 * unit(random), unit(random), 0.4 * unit(random)}});
  builder.add("B", linear_oscillator({.mass_kg = spread(1.0), .stiffness_N_per_m = spread(30.0)}),
              {.initial_state = {0.4 * unit(random), unit(random)}});
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

System chain(double damping) {
  SystemBuilder builder;
  for (int i = 0; i < 4; ++i) {
    const bool last = i == 3;
    std::vector<double> x(last ? 6 : 7, 0.0);
    if (i == 0) x[0] = 0.1;
    builder.add("block" + std::to_string(i),
                mass_spring_damper_chain(
                    {.masses = 3,
                     .mass_kg = 0.3,
                     .stiffness_N_per_m = 50,
                     .damping_Ns_per_m = damping,
                     .coupling_stiffness_N_per_m = 50,
                     .right_end = last ? portwave::ChainEnd::mass : portwave::ChainEnd::spring}),
                {.initial_state = x});
  }
  for (int i = 0; i < 3; ++i) {
    builder.connect("block" + std::to_string(i) + ".right",
                    "block" + std::to_string(i + 1) + ".left");
  }
  builder.join(portwave::joint::Free{}, {"block0.left"});
  builder.join(portwave::joint::Free{}, {"block3.right"});
  return builder.build();
}

/// Duffing limbs on a common effort.
System star() {
  SystemBuilder builder;
  std::vector<std::string> ports;
  for (int i = 0; i < 3; ++i) {
    const std::string name = "limb" + std::to_string(i);
    builder.add(name,
                duffing_oscillator({.mass_kg = 1.0 + i,
                                    .stiffness_N_per_m = 20,
                                    .cubic_stiffness_N_per_m3 = 50.0 * i,
                                    .coupling_stiffness_N_per_m = 10.0 + i,
                                    .coupling_damping_Ns_per_m = 0.1}),
                {.initial_state = {0.1 * i, 0.2, 0.05}});
    ports.push_back(name + ".coupling");
  }
  builder.add("hub", linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 8}));
  ports.push_back("hub.coupling");
  builder.join(portwave::joint::CommonEffort{}, ports);
  return builder.build();
}

struct Named {
  std::string name;
  System system;
};

std::vector<Named> systems() {
  std::vector<Named> all;
  all.push_back({"duffing_linear_pair", duffing_linear_pair()});
  all.push_back({"lossless_pair", lossless_pair()});
  all.push_back({"damped_chain", chain(0.1)});
  all.push_back({"lossless_chain", chain(0.0)});
  all.push_back({"star", star()});
  for (int i = 0; i < kRandomPairs; ++i) {
    all.push_back({fmt::format("random_pair_{}", i), random_pair(i)});
  }
  return all;
}

// Errors ------------------------------------------------------------------------------------------

/// States of all parts by step.
using Trajectory = std::vector<std::vector<double>>;

Trajectory reference_run(const System& system, double h) {
  portwave::MonolithicReference reference(system, h);
  Trajectory out;
  const int steps = std::min(kMostSteps, static_cast<int>(std::lround(kHorizon_s / h)));
  for (int n = 0; n < steps; ++n) {
    reference.step();
    std::vector<double> x;
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      x.insert(x.end(), reference.state(i).begin(), reference.state(i).end());
    }
    out.push_back(std::move(x));
  }
  return out;
}

double energy_of(const System& system, const std::vector<double>& x) {
  double sum = 0.0;
  std::size_t first = 0;
  for (const portwave::Part& part : system.parts()) {
    sum += part.port_hamiltonian()->storage(x.data() + first);
    first += static_cast<std::size_t>(part.component->signature().state_size());
  }
  return sum;
}

struct Result {
  double error = 0.0;
  std::int64_t uses = 0;
  double min_alpha = 1.0;
};

Result run(const System& system, const portwave::StepperOptions& options,
           const Trajectory& reference) {
  portwave::Stepper stepper(system, options);
  double sum = 0.0;
  std::vector<double> difference;
  for (const std::vector<double>& expected : reference) {
    stepper.step();
    difference = expected;
    std::size_t place = 0;
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      for (const double x : stepper.state(i)) difference[place++] -= x;
    }
    sum += energy_of(system, difference);
  }
  Result result;
  result.error =
      std::sqrt(sum / static_cast<double>(reference.size()) / stepper.energy().initial_J);
  if (const portwave::GuardStatistics* const guard = stepper.waves()->guard(); guard != nullptr) {
    result.uses = guard->uses;
    result.min_alpha = guard->min_alpha;
  }
  return result;
}

/// A setting of the guard and of the impedances.
struct Setting {
  std::string name;
  double share;  ///< T₀ over H₀, beside ½|b⁰|² = 0
  bool matched;  ///< else each port or all of them by a random factor
};

struct Case {
  double ratio;
  double with, without;
  std::int64_t uses;
  double min_alpha;
  std::string replay;
};

std::vector<Case> sweep(const Setting& setting, const std::vector<Named>& all) {
  std::vector<Case> cases;
  std::uint64_t seed = 0;
  for (const Named& named : all) {
    for (const double h : kStepSizes) {
      const Trajectory reference = reference_run(named.system, h);
      const portwave::PortResponses responses(named.system, h);
      const std::vector<double> matched =
          tune_impedance(responses, portwave::ImpedanceKind::matched).by_port;
      for (const int iterations : kBudgets) {
        for (const Variant& variant : kVariants) {
          std::mt19937_64 random(++seed);
          std::uniform_real_distribution<double> exponent(-kLargestExponent, kLargestExponent);
          const double factor = setting.matched ? 1.0 : std::pow(10.0, exponent(random));
          const bool each = !setting.matched && random() % 3 == 0;
          portwave::StepperOptions o{.method = portwave::WaveCoupling{}};
          o.start = portwave::Start::as_given;  // states are drawn at random
          o.step_s = h;
          o.method.waves().kind = variant.kind;
          o.method.waves().relaxation = variant.relaxation;
          o.method.waves().acceleration = variant.acceleration;
          o.method.waves().iterations = iterations;
          o.method.waves().impedance = matched;
          for (double& gamma : o.method.waves().impedance) {
            gamma *= each ? std::pow(10.0, exponent(random)) : factor;
          }
          o.method.waves().tank.initial_fraction = setting.share;
          const Result with = run(named.system, o, reference);
          o.method.waves().guard = false;
          const Result without = with.uses == 0 ? with : run(named.system, o, reference);
          cases.push_back({(with.error + kConverged) / (without.error + kConverged), with.error,
                           without.error, with.uses, with.min_alpha,
                           fmt::format("{} h={:g} K={} {} {} acceleration {} gamma {} seed {}",
                                       named.name, h, iterations, to_string(variant.kind),
                                       variant.relaxation, variant.acceleration,
                                       each ? "by port" : fmt::format("x {:.3g}", factor), seed)});
        }
      }
    }
  }
  return cases;
}

void report_on(const Report& report, const Setting& setting, std::vector<Case> cases) {
  std::vector<double> ratios, where_it_acts;
  std::size_t worse = 0;
  for (const Case& c : cases) {
    ratios.push_back(c.ratio);
    if (c.uses > 0) where_it_acts.push_back(c.ratio);
    worse += c.ratio > 1.1 ? 1 : 0;
  }
  const std::string note =
      fmt::format("{} runs, the guard acts in {}, {} are worse by more than 10 per cent",
                  cases.size(), where_it_acts.size(), worse);
  const auto row = [&](const char* name, double value, std::optional<double> goal) {
    report.add({"guard_accuracy/" + setting.name + "/" + name, Sense::at_most, goal, note}, {value},
               "of the error without the guard");
  };
  const bool strict = setting.matched && setting.share > 0.0;
  row("median", quantile(ratios, 0.5), 1.01);
  row("p95", quantile(ratios, 0.95), strict ? 1.1 : 1.5);
  row("p99", quantile(ratios, 0.99), strict ? std::optional(1.1) : std::nullopt);
  row("worst", quantile(ratios, 1.0), strict ? std::optional(1.1) : std::nullopt);
  row("median_where_it_acts", quantile(where_it_acts, 0.5), std::nullopt);
  row("p95_where_it_acts", quantile(where_it_acts, 0.95), std::nullopt);
  std::sort(cases.begin(), cases.end(),
            [](const Case& a, const Case& b) { return a.ratio > b.ratio; });
  fmt::print(stderr, "{}: {}\n", setting.name, note);
  for (std::size_t i = 0; i < std::min<std::size_t>(8, cases.size()); ++i) {
    const Case& c = cases[i];
    fmt::print(stderr, "  {:8.4g}  {:.2e} against {:.2e}, {} uses, least alpha {:.3g}: {}\n",
               c.ratio, c.with, c.without, c.uses, c.min_alpha, c.replay);
  }
}

/// Many iterations meet the reference, few do not.
void check_answers(const std::vector<Named>& all) {
  const Trajectory reference = reference_run(all.front().system, 1e-2);
  for (const int iterations : {200, 3}) {
    portwave::StepperOptions o{.method = portwave::WaveCoupling{}};
    o.start = portwave::Start::as_given;  // states are drawn at random
    o.step_s = 1e-2;
    o.method.waves().iterations = iterations;
    o.method.waves().impedance = {0.4};
    const double error = run(all.front().system, o, reference).error;
    fmt::print(stderr, "  K={:<4} {:.1e}\n", iterations, error);
    if ((error < kConverged) == (iterations == 200)) continue;
    throw std::runtime_error("wrong answer against the monolithic step");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("guard_accuracy", 1);
  if (report.only_lists(argc, argv)) return 0;
  const std::vector<Named> all = systems();
  check_answers(all);
  for (const Setting& setting :
       {Setting{"default_tank", 0.0, false}, Setting{"default_tank_matched", 0.0, true},
        Setting{"one_per_cent", 0.01, false}, Setting{"one_per_cent_matched", 0.01, true}}) {
    report_on(report, setting, sweep(setting, all));
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "guard_accuracy: {}\n", error.what());
  return 1;
}

// The error of a run under a deadline, from 1 % to 200 % of the time that a step takes to converge: `auto` beside the
// best of the methods that one could have fixed, on five systems. An error is the distance of all states, after some
// steps, from the same run without a deadline, over the size of these.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "friction_ring.hpp"
#include "portwave/runtime/generate/generate.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::ImpedanceKind;
using portwave::Scenario;
using portwave::Stepper;
using portwave::WaveCoupling;
using portwave::WaveUpdate;

/// Below that, errors count as equal: they are those of the tolerance.
constexpr double kConverged = 1e-7;
constexpr int kMostIterations = 1000, kRepetitions = 5;
constexpr double kShares[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0};

struct Subject {
  std::string name;
  std::function<Scenario()> make;
  std::int64_t steps = 150;
};

Scenario generated(const portwave::Network& network) {
  return portwave::parse_scenario(portwave::generate_scenario(network), "generated.json", ".");
}

Scenario example(const char* name) {
  return portwave::load_scenario(std::filesystem::path(PORTWAVE_EXAMPLES) / name);
}

std::vector<Subject> subjects() {
  return {{"chain of 1024", [] { return generated(portwave::network::Chain{.blocks = 1024}); }},
          {"grid of 32 x 32",
           [] {
             return generated(portwave::network::Grid{32, 32});
           }},
          {"network of 2000", [] { return friction_ring(true); }},
          {"arm", [] { return example("robot_arm.json"); }, 2000},
          {"crane", [] { return example("crane.json"); }, 3000}};
}

struct Fixed {
  const char* name;
  WaveUpdate kind;
  ImpedanceKind impedance;
  double relaxation = 1.0;
  int acceleration = 0;
};

constexpr Fixed kFixed[] = {
    {"Douglas-Rachford", WaveUpdate::douglas_rachford, ImpedanceKind::matched},
    {"Peaceman-Rachford, matched", WaveUpdate::peaceman_rachford, ImpedanceKind::matched},
    {"Peaceman-Rachford, leaf", WaveUpdate::peaceman_rachford, ImpedanceKind::leaf},
    {"Peaceman-Rachford, adapted", WaveUpdate::peaceman_rachford, ImpedanceKind::adapted},
    {"averaged, accelerated", WaveUpdate::peaceman_rachford, ImpedanceKind::matched, 0.5, 5},
    {"interface, matched", WaveUpdate::interface, ImpedanceKind::matched},
    {"interface, across", WaveUpdate::interface, ImpedanceKind::across},
};

WaveCoupling coupling_of(const Fixed& fixed) {
  WaveCoupling waves = WaveCoupling::automatic(1e-10);
  waves.kind = fixed.kind;
  waves.impedance_kind = fixed.impedance;
  waves.relaxation = fixed.relaxation;
  waves.acceleration = fixed.acceleration;
  return waves;
}

/// `fixed` null: auto. `deadline_s` 0: none.
Stepper stepper_of(const Subject& subject, const Fixed* fixed, double deadline_s) {
  Scenario scenario = subject.make();
  portwave::StepperOptions options = scenario.options;
  options.method = fixed != nullptr ? coupling_of(*fixed) : WaveCoupling::automatic(1e-10);
  if (deadline_s > 0.0) {
    options.method.waves().iterations = kMostIterations;
    options.time.deadline_s = deadline_s;
  }
  return {std::move(scenario.system), options};
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> all;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    const auto own = stepper.state(part);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

double distance(std::span<const double> a, std::span<const double> b) {
  double off = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    off += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  if (!(size > 0.0)) throw std::runtime_error("nothing moves: there is nothing to compare");
  const double error = std::sqrt(off / size);
  return std::isfinite(error) ? error : std::numeric_limits<double>::max();
}

/// The median of some runs; HUGE_VAL where the method is not for the system.
double error_of(const Subject& subject, const Fixed* fixed, double deadline_s,
                std::span<const double> converged) {
  std::vector<double> errors;
  try {
    for (int i = 0; i < kRepetitions; ++i) {
      Stepper stepper = stepper_of(subject, fixed, deadline_s);
      stepper.step(subject.steps);
      errors.push_back(distance(states_of(stepper), converged));
    }
  } catch (const portwave::ConfigError&) {
    return HUGE_VAL;
  } catch (const portwave::StepError&) {
    return HUGE_VAL;
  }
  return quantile(errors, 0.5);
}

void measure(const Report& report, const Subject& subject) {
  Stepper converged = stepper_of(subject, nullptr, 0.0);
  std::vector<double> seconds;
  for (std::int64_t n = 0; n < subject.steps; ++n) {
    seconds.push_back(timed([&] { converged.step(); })(1));
  }
  const double step_s = quantile(seconds, 0.5);
  const std::vector<double> states = states_of(converged);
  fmt::print(stderr, "  {}: {:.1f} us by step, {}\n", subject.name, 1e6 * step_s,
             converged.method().reason);
  double last = HUGE_VAL, worst_rise = 0.0;
  for (const double share : kShares) {
    const double deadline_s = share * step_s;
    const double own = error_of(subject, nullptr, deadline_s, states);
    double best = HUGE_VAL;
    const char* best_name = "none";
    for (const Fixed& fixed : kFixed) {
      const double error = error_of(subject, &fixed, deadline_s, states);
      if (error >= best) continue;
      best = error;
      best_name = fixed.name;
    }
    const auto visible = [](double error) { return std::max(error, kConverged); };
    worst_rise = std::max(worst_rise, visible(own) / visible(last));
    last = own;
    report.add({fmt::format("deadline_error/{}/{:.0f} %", subject.name, 100.0 * share),
                Sense::at_most, 1.5,
                fmt::format("deadline {:.1f} us; error {:.1e}, best fixed {:.1e} ({})",
                            1e6 * deadline_s, own, best, best_name)},
               {visible(own) / visible(best)}, "of the best fixed method's error");
  }
  report.add({fmt::format("deadline_error/{}/rise", subject.name), Sense::at_most, 1.5,
              "the largest error under a longer deadline over that under the next shorter one"},
             {worst_rise}, "times");
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("deadline_error", 1);
  if (report.only_lists(argc, argv)) return 0;
  for (const Subject& subject : subjects()) {
    const bool is_wanted = argc < 2 || subject.name.find(argv[1]) != std::string::npos;
    if (is_wanted) measure(report, subject);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "deadline_error: {}\n", error.what());
  return 1;
}

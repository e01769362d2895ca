// A step of 2000 nonlinear parts of four kinds (friction_ring.hpp) beside a sparse Newton written by hand for them,
// at equal accuracy; and two threads beside one, and beside two independent rings at once, one on each core: more than
// these no machine gives.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "friction_ring.hpp"
#include "peers/sparse_newton.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Scenario;
using portwave::Stepper;

constexpr double kTolerance = 1e-7;
constexpr int kChecked = 100;
constexpr int kManyCells = 5000;

Stepper stepper_with(int threads, int cells = kCells) {
  Scenario scenario = friction_ring(true, cells);
  portwave::StepperOptions options = scenario.options;
  options.threads = threads;
  return {std::move(scenario.system), options};
}

std::vector<double> numbers() {
  std::vector<double> out;
  for (int i = 0; i < kCells; ++i) {
    const Cell c = friction_cell(i, true);
    out.insert(out.end(), {c.mass_kg, c.stiffness_N_per_m, c.damping_Ns_per_m, c.start_m_per_s,
                           c.oscillator_mass_kg, c.oscillator_stiffness_N_per_m,
                           c.cubic_stiffness_N_per_m3, c.coupling_stiffness_N_per_m,
                           c.coupling_damping_Ns_per_m, c.friction_N, c.creep_speed_m_per_s});
  }
  return out;
}

/// A step of either of two that run at once, each on a thread of its own.
Timer at_once(Stepper& here, Stepper& there) {
  return [&](std::int64_t calls) {
    return timed([&] {
             std::thread other([&] { there.step(static_cast<int>(calls)); });
             here.step(static_cast<int>(calls));
             other.join();
           })(1) /
           2.0;
  };
}

/// Largest difference of the states, of the largest state.
double difference(const Stepper& stepper, const double* peer) {
  double worst = 0.0, largest = 0.0;
  for (int i = 0; i < kCells; ++i) {
    const auto mass = stepper.state(4 * i), spring = stepper.state(4 * i + 1),
               duffing = stepper.state(4 * i + 2);
    const double own[] = {mass[1], spring[0], duffing[0], duffing[1], duffing[2]};
    for (int k = 0; k < 5; ++k) {
      const double theirs = peer[5 * i + k];
      largest = std::max(largest, std::abs(theirs));
      const double off = std::abs(own[k] - theirs);
      worst = off <= worst ? worst : std::isfinite(off) ? off : HUGE_VAL;
    }
  }
  return worst / largest;
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("nonlinear_network", 3);
  if (report.only_lists(argc, argv)) return 0;
  try {
    Stepper one = stepper_with(1), two = stepper_with(2), copy = stepper_with(1);
    SparseNewton newton(numbers().data(), kCells, kRingStep_s);
    const double start = difference(one, newton.state());
    if (start != 0.0) throw std::runtime_error("they do not start alike");
    newton.step();
    if (difference(one, newton.state()) < 1e-3) {
      throw std::runtime_error("control: a step makes no difference");
    }
    one.step();
    two.step();
    for (int n = 1; n < kChecked; ++n) {
      newton.step();
      one.step();
      two.step();
    }
    copy.step(kChecked);
    const double off = difference(one, newton.state());
    fmt::print(stderr, "  difference after {} steps {:.1e}, Newton steps {}\n  {}\n", kChecked, off,
               newton.iterations(), one.method().reason);
    if (!(off <= kTolerance)) throw std::runtime_error("the two disagree");
    const Contest contest = take_turns({timed([&] { one.step(); }), timed([&] { newton.step(); }),
                                        timed([&] { two.step(); }), at_once(one, copy)},
                                       {.rounds = 31, .turn_s = 20e-3});
    report.add({.name = "friction ring, one thread, times as fast as a sparse Newton by hand",
                .goal = 3.0,
                .note = "2000 parts"},
               contest, 0, 1);
    report.add({.name = "friction ring, two threads, times as fast as a sparse Newton by hand",
                .goal = 3.0 * 1.7,
                .note = "2000 parts"},
               contest, 2, 1);
    report.add({.name = "friction ring, two threads over one", .goal = 1.7, .note = "2000 parts"},
               contest, 2, 0);
    report.add({.name = "two friction rings at once over one", .note = "2000 parts each"}, contest,
               3, 0);
    Stepper large_one = stepper_with(1, kManyCells), large_two = stepper_with(2, kManyCells),
            large_copy = stepper_with(1, kManyCells);
    // Past what is examined and tuned at the start, as those of the small ring are.
    for (int n = 0; n < kChecked; ++n) {
      large_one.step();
      large_two.step();
      large_copy.step();
    }
    const Contest large =
        take_turns({timed([&] { large_one.step(); }), timed([&] { large_two.step(); }),
                    at_once(large_one, large_copy)},
                   {.rounds = 15, .turn_s = 40e-3});
    report.add({.name = "friction ring, two threads over one", .goal = 1.7, .note = "20 000 parts"},
               large, 1, 0);
    report.add({.name = "two friction rings at once over one", .note = "20 000 parts each"}, large,
               2, 0);
  } catch (const std::exception& error) {
    fmt::print(stderr, "nonlinear_network: {}\n", error.what());
    return 1;
  }
  return 0;
}

// One macro-step of 100 × 100 Duffing nodes, K = 5, serial, beside a hand-written loop over the
// whole step: four nodes side by side, and one by one. Kicks and drifts of order 6, with their account
// and balance of energy, beside a hand-written loop that has neither.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "peers/grid_loop.hpp"
#include "peers/kick_loop.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Certify;
using portwave::Stepper;
using portwave::System;

constexpr int kIterations = 5, kChecked = 200;
constexpr double kTolerance = 1e-10;
constexpr GridSetting kSetting;

System grid_system(double stiffer = 1.0, std::size_t rows = kSetting.rows) {
  const std::size_t columns = rows;
  portwave::SystemBuilder builder;
  const auto name = [](std::size_t i, std::size_t j) {
    return "n" + std::to_string(i) + "_" + std::to_string(j);
  };
  const std::shared_ptr<const portwave::Subsystem> node =
      portwave::duffing_node({.mass_kg = 8,
                              .stiffness_N_per_m = 100,
                              .cubic_stiffness_N_per_m3 = 8000 * stiffer,
                              .coupling_stiffness_N_per_m = 120,
                              .coupling_damping_Ns_per_m = 0.05});
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t n = i * columns + j;
      const double q = grid_position(n);
      const double east = j + 1 < columns ? grid_position(n + 1) - q : 0.0;
      const double south = i + 1 < rows ? grid_position(n + columns) - q : 0.0;
      builder.add(name(i, j), node, {.initial_state = {q, grid_velocity(n), east, south}});
    }
  }
  const auto end = [&](std::size_t i, std::size_t j, const char* port) {
    builder.join(portwave::joint::Free{}, {name(i, j) + port});
  };
  for (std::size_t i = 0; i < rows; ++i) {
    end(i, 0, ".west");
    end(i, columns - 1, ".east");
    for (std::size_t j = 0; j + 1 < columns; ++j) {
      builder.connect(name(i, j) + ".east", name(i, j + 1) + ".west");
    }
  }
  for (std::size_t j = 0; j < columns; ++j) {
    end(0, j, ".north");
    end(rows - 1, j, ".south");
    for (std::size_t i = 0; i + 1 < rows; ++i) {
      builder.connect(name(i, j) + ".south", name(i + 1, j) + ".north");
    }
  }
  return builder.build();
}

portwave::StepperOptions options(Certify certify) {
  portwave::StepperOptions options{.method = portwave::WaveCoupling{}};
  options.step_s = kSetting.step_s;
  options.method.waves().iterations = kIterations;
  options.method.waves().impedance = {kSetting.impedance_Ns_per_m};
  options.certify = certify;
  options.method.waves().guard = false;
  return options;
}

/// Largest difference of positions (against 0.2 m) and velocities (against 1 m/s).
double difference(const System& system, GridFactory* make) {
  Stepper engine(system, options(Certify::energy));
  const auto loop = make(kSetting);
  engine.step(kChecked);
  for (int n = 0; n < kChecked; ++n) loop->step(kIterations);
  double worst = 0.0;
  for (std::size_t n = 0; n < kSetting.rows * kSetting.columns; ++n) {
    const auto state = engine.state(static_cast<int>(n));
    const double off = std::max(std::abs(state[0] - loop->position(n)) / 0.2,
                                std::abs(state[1] - loop->velocity(n)));
    worst = off <= worst ? worst : std::isfinite(off) ? off : HUGE_VAL;
  }
  return worst;
}

void require(const std::string& name, double difference, bool agrees,
             double tolerance = kTolerance) {
  fmt::print(stderr, "  {:36} {:.1e}\n", name, difference);
  if ((difference <= tolerance) == agrees) return;
  throw std::runtime_error(name + (agrees ? ": wrong answer" : ": the check saw nothing wrong"));
}

void compare(const Report& report) {
  const System system = grid_system();
  const double off = difference(system, vector_grid);
  require("four by four", off, true);
  require("four by four, series", difference(system, vector_series_grid), true);
  require("one by one", difference(system, scalar_grid), true);
  require("springs 1e-6 stiffer (control)", difference(grid_system(1.0 + 1e-6), vector_grid),
          false);

  Stepper bare(system, options(Certify::none)), booked(system, options(Certify::energy));
  const auto vector = vector_grid(kSetting), series = vector_series_grid(kSetting),
             scalar = scalar_grid(kSetting);
  const Contest contest =
      take_turns({processor_timed([&] { bare.step(); }), processor_timed([&] { booked.step(); }),
                  processor_timed([&] { vector->step(kIterations); }),
                  processor_timed([&] { series->step(kIterations); }),
                  processor_timed([&] { scalar->step(kIterations); })},
                 {.rounds = 61, .turn_s = 5e-3});
  const std::string note = fmt::format("{}; differs by {:.1e} after {} steps",
                                       to_string(portwave::instruction_set()), off, kChecked);
  const struct {
    const char* name;
    std::size_t engine, reference;
    Sense sense;
    std::optional<double> goal;
  } rows[] = {{"no_ledger/vector_loop", 0, 2, Sense::at_most, 1.5},
              {"ledger/vector_loop", 1, 2, Sense::at_most, 1.5},
              {"no_ledger/vector_series_loop", 0, 3, Sense::at_most, std::nullopt},
              {"no_ledger/scalar_loop", 0, 4, Sense::at_least, 2.0},
              {"ledger/scalar_loop", 1, 4, Sense::at_least, 2.0}};
  for (const auto& row : rows) {
    report.add({.name = fmt::format("grid_floor/{}", row.name),
                .sense = row.sense,
                .goal = row.goal,
                .note = note},
               contest, row.engine, row.reference);
  }
}

portwave::StepperOptions kick_options(double step_s) {
  portwave::StepperOptions options;
  options.step_s = step_s;
  options.method = portwave::Splitting{.kind = portwave::SplittingKind::kick_drift};
  return options;
}

/// Both are of order 6 and differ by their errors, which the balance makes smaller.
double kick_difference(const System& system, double step_s, int steps) {
  Stepper engine(system, kick_options(step_s));
  const auto loop = kick_loop(kSetting.rows);
  engine.step(steps);
  for (int n = 0; n < steps; ++n) loop->step(step_s);
  double worst = 0.0;
  for (std::size_t n = 0; n < kSetting.rows * kSetting.columns; ++n) {
    const auto state = engine.state(static_cast<int>(n));
    worst = std::max({worst, std::abs(state[0] - loop->position(n)) / 0.2,
                      std::abs(state[1] - loop->velocity(n))});
  }
  return worst;
}

void compare_kicks(const Report& report) {
  constexpr double kStep_s = 0.1, kGoal = 1.3, kAlike = 1e-7;
  const System system = grid_system();
  const double off = kick_difference(system, 0.01, 20);
  require("kicks and drifts", off, true, kAlike);
  require("springs 1e-6 stiffer (control)", kick_difference(grid_system(1.0 + 1e-6), 0.01, 20),
          false, kAlike);
  Stepper engine(system, kick_options(kStep_s));
  const auto loop = kick_loop(kSetting.rows);
  const Contest contest = take_turns(
      {processor_timed([&] { engine.step(); }), processor_timed([&] { loop->step(kStep_s); })},
      {.rounds = 61, .turn_s = 5e-3});
  report.add({.name = "grid_floor/kick_drift/loop",
              .sense = Sense::at_most,
              .goal = kGoal,
              .note = fmt::format("{}; with its account and balance, which the loop lacks; differs "
                                  "by {:.1e} after 20 steps of 0.01 s",
                                  to_string(portwave::instruction_set()), off)},
             contest, 0, 1);
}

/// What a node and a step cost in grids of other sizes, beside that in 100 × 100, and the engine's memory per
/// node. Each runs in turns with the loop of its own size.
void scale_kicks(const Report& report) {
  constexpr double kStep_s = 0.1, kGoal = 1.3;
  const auto per_node = [&](std::size_t size, std::size_t* bytes) {
    const System system = grid_system(1.0, size);
    Stepper engine(system, kick_options(kStep_s));
    const auto loop = kick_loop(size);
    engine.step(2);
    const Contest contest = take_turns(
        {processor_timed([&] { engine.step(); }), processor_timed([&] { loop->step(kStep_s); })},
        {.rounds = 21, .turn_s = 5e-3});
    const double nodes = static_cast<double>(size * size);
    *bytes = static_cast<std::size_t>(static_cast<double>(engine.overhead_bytes()) / nodes);
    return std::pair{1e3 * contest.median_us(0) / nodes, quantile(contest.ratios(0, 1), 0.5)};
  };
  std::size_t bytes = 0;
  const auto [usual_ns, usual_ratio] = per_node(kSetting.rows, &bytes);
  for (const std::size_t size : {32, 316, 1000}) {
    const auto [own_ns, own_ratio] = per_node(size, &bytes);
    report.add({.name = fmt::format("grid_floor/kick_drift/{0}x{0}/100x100", size),
                .sense = Sense::at_most,
                .goal = kGoal,
                .note = fmt::format("{:.1f} ns per node and step beside {:.1f}; {:.2f} times "
                                    "the loop of this size; {} bytes per node",
                                    own_ns, usual_ns, own_ratio, bytes)},
               {own_ns / usual_ns}, "times");
  }
}

/// A grid of one island on two threads beside one: kicks and drifts, and Taylor series of the linear grid.
void share_grids(const Report& report) {
  constexpr double kStep_s = 0.1;
  const auto options = [](portwave::SplittingKind kind, portwave::ExecutorKind executor) {
    portwave::StepperOptions out = kick_options(kStep_s);
    portwave::Splitting method{.kind = kind};
    if (kind == portwave::SplittingKind::taylor) method.order = 16;
    out.method = method;
    out.executor = executor;
    out.threads = executor == portwave::ExecutorKind::serial ? 1 : 2;
    return out;
  };
  const struct {
    const char* name;
    portwave::SplittingKind kind;
    double cubic;
  } methods[] = {{"kick_drift", portwave::SplittingKind::kick_drift, 1.0},
                 {"taylor", portwave::SplittingKind::taylor, 0.0}};
  for (const auto& method : methods) {
    for (const std::size_t size : {100, 316}) {
      const System system = grid_system(method.cubic, size);
      Stepper one(system, options(method.kind, portwave::ExecutorKind::serial));
      Stepper two(system, options(method.kind, portwave::ExecutorKind::async));
      one.step(3);
      two.step(3);
      for (int part = 0; part < static_cast<int>(size * size); ++part) {
        if (std::ranges::equal(one.state(part), two.state(part))) continue;
        throw std::runtime_error("two threads give other bits");
      }
      const Contest contest = take_turns({warmed([&] { one.step(); }), warmed([&] { two.step(); })},
                                         {.rounds = 61, .turn_s = 1e-2});
      report.add({.name = fmt::format("grid_floor/{0}/two_threads/{1}x{1}", method.name, size),
                  .sense = Sense::at_least,
                  .goal = size == 100 ? 1.5 : 1.8,
                  .note = fmt::format("{}; same bits", to_string(portwave::instruction_set()))},
                 contest, 1, 0);
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("grid_floor", 11);
  if (report.only_lists(argc, argv)) return 0;
  compare(report);
  compare_kicks(report);
  scale_kicks(report);
  share_grids(report);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "grid_floor: {}\n", error.what());
  return 1;
}

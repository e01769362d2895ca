// A step that fails leaves nothing behind, however far the islands beside the one that failed had come: the
// next ones lead to the bits of a run in which nothing has failed, in every way of running it.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/ranks/ranked_stepper.hpp"
#include "portwave/runtime/ranks/thread_ranks.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave::repeatability {
namespace {

/// A callback that throws at one of its next calls and at some that follow, or at all until it is
/// disarmed.
class Trap {
 public:
  void arm(int calls, int times = kNever) {
    left_ = calls;
    last_ = times == kNever ? -kNever : -times;
  }
  void disarm() { left_ = kNever; }
  void call() {
    ++calls_;
    if (left_ != kNever && --left_ < 0 && left_ >= last_) throw std::runtime_error("a trap");
  }
  int calls() const { return calls_; }

 private:
  static constexpr int kNever = 1'000'000'000;
  std::atomic<int> left_ = kNever, last_ = -kNever, calls_ = 0;
};

/// A hardening spring between its port and the ground.
std::shared_ptr<const Subsystem> trapped_spring(Trap& trap) {
  Hamiltonian H;
  H.value = [](const double* x) { return 50.0 * x[0] * x[0] + 400.0 * std::pow(x[0], 4); };
  H.gradient = [&trap](const double* x, double* g) {
    trap.call();
    g[0] = 100.0 * x[0] + 1600.0 * std::pow(x[0], 3);
  };
  Structure s = Structure::zero(1, 1);
  s.G.insert(0, 0) = 1.0;
  s.S.insert(0, 0) = 0.3;
  NonlinearPortHamiltonian::Options options;
  options.discrete_gradient = DiscreteGradient::mean_value;
  options.check_derivatives = false;
  return std::make_shared<NonlinearPortHamiltonian>(
      Signature{"trapped_spring",
                {{"q", "m"}},
                {{"end", Causality::flow_in, Domain::translation, 1}},
                {}},
      std::move(s), std::move(H), options);
}

/// A pair with the spring, and grids of 12 and of 64 nodes apart from it.
System system_with(Trap& trap) {
  SystemBuilder builder;
  const auto add = [&](const std::string& name, double q) {
    builder.add(name,
                duffing_node({.mass_kg = 1.0,
                              .stiffness_N_per_m = 30.0,
                              .cubic_stiffness_N_per_m3 = 3000.0,
                              .damping_Ns_per_m = 0.01,
                              .coupling_stiffness_N_per_m = 150.0,
                              .coupling_damping_Ns_per_m = 0.05}),
                {.initial_state = {q, 2.0 * q, 0.1, -0.1}});
  };
  builder.add("spring", trapped_spring(trap), {.initial_state = {0.2}});
  add("a", 0.5);
  add("b", -0.3);
  builder.connect("a.east", "b.west");
  builder.connect("spring.end", "a.north");
  builder.join(joint::Free{}, {"a.west"});
  builder.join(joint::Free{}, {"b.north"});
  for (const char* port : {"a.south", "b.east", "b.south"}) builder.join(joint::Fixed{}, {port});
  const auto add_grid = [&](const std::string& grid, int rows, int columns) {
    const auto node = [&](int i, int j) { return fmt::format("{}{}_{}", grid, i, j); };
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) add(node(i, j), 0.9 * std::sin(1.0 + 3.0 * i + 7.0 * j));
    }
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        j + 1 < columns ? builder.connect(node(i, j) + ".east", node(i, j + 1) + ".west")
                        : builder.join(joint::Fixed{}, {node(i, j) + ".east"});
        i + 1 < rows ? builder.connect(node(i, j) + ".south", node(i + 1, j) + ".north")
                     : builder.join(joint::Fixed{}, {node(i, j) + ".south"});
        if (j == 0) builder.join(joint::Free{}, {node(i, j) + ".west"});
        if (i == 0) builder.join(joint::Free{}, {node(i, j) + ".north"});
      }
    }
  };
  add_grid("small", 3, 4);
  add_grid("large", 8, 8);
  return builder.build();
}

/// b = a/2, off by a rounding more at every scatter since it was frozen: as a warm start may be.
class RestlessBatch final : public StepBatch {
 public:
  explicit RestlessBatch(int lanes) : StepBatch(lanes, 0, 1, 0) {}
  int lane_group() const override { return 1; }
  void prepare(double /*step_s*/, const double* /*impedance*/) override {}
  std::size_t record_size() const override { return static_cast<std::size_t>(lanes()); }
  std::vector<RecordRegion> record_regions() const override { return {{0, 1}}; }
  void set_state(int /*lane*/, const double* /*x*/, double* /*record*/) const override {}
  void get_state(int /*lane*/, const double* /*record*/, double* /*x*/) const override {}
  void freeze(LaneRange lanes, double* record, const double* /*input*/) const override {
    std::fill(record + lanes.first, record + lanes.last, 0.0);
  }
  LaneStatus scatter(LaneRange lanes, double* record, const double* a, double* b) const override {
    for (int l = lanes.first; l < lanes.last; ++l) {
      record[l] += 1.0;
      b[l] = 0.5 * a[l] * (1.0 + 1e-15 * record[l]);
    }
    return {};
  }
  LaneStatus advance(LaneRange lanes, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    freeze(lanes, next, nullptr);
    for (int l = lanes.first; l < lanes.last; ++l) {
      b[l] = 0.5 * a[l] * (1.0 + 0.0 * record[l]);
      if (energy.wanted()) energy.set(l, {0.0, 0.0, 0.375 * a[l] * a[l]});
    }
    return {};
  }
};

/// A damper, as far as anybody asks for its equations.
class Restless final : public Component {
 public:
  Restless()
      : Restless(make_part("coulomb_damper", {{"friction_N", 1.0}, {"creep_speed_m_per_s", 1.0}})) {
  }
  Capabilities capabilities() const override {
    return {.repeatable = true,
            .knows_energy = true,
            .thread_safe = true,
            .linearisable = true,
            .restorable = true};
  }
  const Subsystem* port_hamiltonian() const override { return physics_->port_hamiltonian(); }
  std::string batch_key() const override { return "restless"; }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    return std::make_unique<RestlessBatch>(static_cast<int>(parts.size()));
  }

 private:
  explicit Restless(std::unique_ptr<Component> physics)
      : Component(physics->signature()), physics_(std::move(physics)) {}

  std::unique_ptr<Component> physics_;
};

struct Failing {
  std::string name;
  CouplingMethod method = WaveCoupling{};
};

std::vector<Failing> methods() {
  std::vector<Failing> all = {{"auto", CouplingMethod::automatic(1e-9)}};
  CouplingMethod interface = WaveCoupling{};
  interface.waves() = WaveCoupling::of_kind(WaveUpdate::interface);
  all.push_back({"interface", interface});
  CouplingMethod rescued = WaveCoupling{};
  rescued.waves().kind = WaveUpdate::peaceman_rachford;
  rescued.waves().impedance = {20.0};
  rescued.waves().iterations = 40;
  rescued.waves().tolerance = 1e-9;
  rescued.waves().rescue_after = 3;
  all.push_back({"rescued", rescued});
  CouplingMethod accelerated = WaveCoupling{};
  accelerated.waves().iterations = 40;
  accelerated.waves().impedance = {20.0};
  accelerated.waves().tolerance = 1e-9;
  accelerated.waves().acceleration = 4;
  all.push_back({"accelerated", accelerated});
  return all;
}

constexpr int kSteps = 60;

/// The step fails, after so many calls: a commit makes one, too.
void fail_after(int calls, Stepper& stepper, std::span<Trap> traps) {
  for (Trap& trap : traps) trap.arm(calls);
  EXPECT_THROW(stepper.step(), StepError) << calls << " calls";
  for (Trap& trap : traps) trap.disarm();
}

/// States and waves after every step. Before some of them it is tried, and fails, after a few of the
/// `calls` that the step takes (by step; empty: it is not tried). `traps`: of all ranks.
std::vector<double> run(Stepper& stepper, std::span<Trap> traps, std::span<const int> calls = {}) {
  std::vector<double> out;
  for (int n = 0; n < kSteps; ++n) {
    if (!calls.empty() && n % 4 == 3) {
      for (const double share : {0.0, 0.2, 0.4, 0.6}) {
        fail_after(static_cast<int>(share * calls[static_cast<std::size_t>(n)]), stepper, traps);
      }
    }
    stepper.step();
    for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
      const auto x = stepper.state(part);
      out.insert(out.end(), x.begin(), x.end());
    }
    const WaveView& waves = *stepper.waves();
    for (int j = 0; j < static_cast<int>(stepper.system().scalar_ports().size()); ++j) {
      out.insert(out.end(), {waves.incident(j), waves.outgoing(j)});
    }
  }
  const IterationStatistics& counted = stepper.iterations();
  out.insert(out.end(), {static_cast<double>(counted.total), static_cast<double>(counted.rescues),
                         static_cast<double>(counted.linearisations)});
  return out;
}

class FailedSteps : public ::testing::Test {
 private:
  tbb::global_control allowed_{tbb::global_control::max_allowed_parallelism, 8};
};

TEST_F(FailedSteps, LeaveNothingBehind) {
  Trap trap;
  const System system = system_with(trap);
  const std::span<Trap> only(&trap, 1);
  for (const Failing& method : methods()) {
    StepperOptions options;
    options.start = Start::as_given;
    options.step_s = 0.01;
    options.method = method.method;
    // Port solves alone are to meet the trap.
    options.method.waves().guard = false;
    options.method.waves().retune_factor = 0.0;
    options.certify = Certify::none;
    options.executor = ExecutorKind::serial;
    Stepper untroubled(system, options);
    std::vector<int> calls = {trap.calls()};
    untroubled.on_step([&](const Stepper&, const StepReport&) { calls.push_back(trap.calls()); });
    const std::vector<double> expected = run(untroubled, only);
    std::adjacent_difference(calls.begin(), calls.end(), calls.begin());
    calls.erase(calls.begin());
    struct Way {
      ExecutorKind executor;
      int threads;
      Grain grain;
    };
    for (const Way& way : {Way{ExecutorKind::serial, 1, Grain::automatic()},
                           Way{ExecutorKind::async, 2, Grain::of_parts(16)},
                           Way{ExecutorKind::async, 1, Grain::per_part()},
                           Way{ExecutorKind::graph, 2, Grain::of_parts(16)}}) {
      options.executor = way.executor;
      options.threads = way.threads;
      options.grain = way.grain;
      Stepper stepper(system, options);
      EXPECT_TRUE(expected == run(stepper, only, calls))
          << method.name << ", " << to_string(way.executor) << ", grain "
          << portwave::to_string(way.grain);
    }
    options.executor = ExecutorKind::automatic;
    options.threads = 1;
    std::vector<double> found;
    std::array<Trap, 2> traps;  // as processes would have them
    run_thread_ranks(2, [&](const std::shared_ptr<Ranks>& ranks) {
      const System of_rank = system_with(traps[static_cast<std::size_t>(ranks->rank())]);
      StepperOptions own = options;
      own.ranks = ranks;
      Stepper stepper(of_rank, own);
      if (ranks->rank() != 0) return RankedStepper(stepper).follow();
      found = run(stepper, traps, calls);
    });
    EXPECT_TRUE(expected == found) << method.name << ", ranks";
  }
}

/// Replicas lie side by side in one task. A port solve of the first one fails at a trial, which is
/// rejected; nothing of the others is solved once more on that account.
TEST_F(FailedSteps, ATrialThatFailsLeavesOtherReplicasAlone) {
  constexpr int kReplicas = 3;
  std::array<Trap, kReplicas> traps;
  const auto system_of = [&](int replica) {
    SystemBuilder builder;
    builder.add("spring", trapped_spring(traps[static_cast<std::size_t>(replica)]),
                {.initial_state = {0.2}});
    for (const char* name : {"a", "b"}) {
      const double q = 0.5 - 0.1 * replica;
      builder.add(name,
                  duffing_node({.mass_kg = 1.0,
                                .stiffness_N_per_m = 30.0,
                                .cubic_stiffness_N_per_m3 = 3000.0,
                                .coupling_stiffness_N_per_m = 150.0}),
                  {.initial_state = {q, 2.0 * q, 0.1, -0.1}});
    }
    builder.add("restless", std::make_shared<const Restless>());
    builder.connect("spring.end", "a.north");
    builder.connect("a.east", "b.west");
    builder.connect("restless.end", "b.north");
    builder.join(joint::Free{}, {"a.west"});
    for (const char* port : {"a.south", "b.south", "b.east"}) builder.join(joint::Fixed{}, {port});
    return builder.build();
  };
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.method.waves().impedance = {30.0};
  options.method.waves().iterations = 60;
  options.method.waves().tolerance = 1e-9;
  options.method.waves().acceleration = 3;
  options.method.waves().guard = false;
  options.certify = Certify::none;
  options.method.waves().integrator = StageKind::gauss;  // all replicas side by side
  Ensemble ensemble(kReplicas, system_of, options);
  ASSERT_TRUE(ensemble.in_lanes()) << ensemble.execution();
  constexpr int kTrials = 40;
  std::vector<int> calls = {0};
  {
    const System system = system_of(0);
    Stepper alone(system, ensemble.options_of(0));
    const int before = traps[0].calls();
    alone.on_step(
        [&](const Stepper&, const StepReport&) { calls.push_back(traps[0].calls() - before); });
    alone.step(kTrials);
  }
  // In an evaluation that is a trial, by the warm solve and the cold one.
  const auto arm = [&](int n) {
    const auto step = static_cast<std::size_t>(n);
    traps[0].arm((calls[step + 1] - calls[step]) * 6 / 10, 2);
  };
  for (int n = 0; n < kTrials; ++n) {
    arm(n);
    ensemble.step();
    traps[0].disarm();
  }
  std::vector<double> found(static_cast<std::size_t>(ensemble.state_size()));
  for (int replica = 0; replica < kReplicas; ++replica) {
    const System system = system_of(replica);
    std::int64_t evaluations[2] = {};
    for (const bool fails : {false, true}) {
      Stepper alone(system, ensemble.options_of(replica));
      for (int n = 0; n < kTrials; ++n) {
        if (fails) arm(n);
        alone.step();
        traps[0].disarm();
      }
      evaluations[fails ? 1 : 0] = alone.iterations().total;
      if (!fails) continue;
      std::vector<double> expected;
      for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
        const auto x = alone.state(part);
        expected.insert(expected.end(), x.begin(), x.end());
      }
      ensemble.get_state(replica, found);
      EXPECT_EQ(expected, found) << "replica " << replica;
      EXPECT_EQ(ensemble.status(replica).iterations, alone.iterations().total);
    }
    if (replica == 0) {
      EXPECT_GT(evaluations[1], evaluations[0]) << "trials are rejected";
    } else {
      EXPECT_EQ(evaluations[1], evaluations[0]);
    }
  }
}

}  // namespace
}  // namespace portwave::repeatability

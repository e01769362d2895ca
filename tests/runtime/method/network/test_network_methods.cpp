// Methods without waves, stepped by a Stepper: splitting and dynamic iteration.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <portwave/coupling/energy/compensated_sum.hpp>
#include <portwave/coupling/reference/monolithic.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>

#include "network/block_groups.hpp"
#include "runtime/method/network/network_method_runs.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/systems.hpp"
#include "support/trace.hpp"

namespace portwave::test_network_methods {
namespace {

using testing::kKinds;
using testing::method_of;
using testing::options_of;
using testing::refused;
using testing::same_bits;
using testing::set_fast;
using testing::set_tolerance;
using testing::set_window;
using testing::trace;

/// The largest difference of a state from the monolithic step's, after `steps`.
double deviation(const System& system, const StepperOptions& options, int steps) {
  Stepper stepper(system, options);
  MonolithicReference reference(system, options.step_s);
  double worst = 0.0;
  for (int n = 0; n < steps; ++n) {
    stepper.step();
    reference.step();
    for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
      const auto x = stepper.state(part), expected = reference.state(part);
      EXPECT_EQ(x.size(), expected.size());
      for (std::size_t k = 0; k < x.size(); ++k) {
        worst = std::max(worst, std::abs(x[k] - expected[k]));
      }
    }
  }
  return worst;
}

class NetworkMethods : public ::testing::TestWithParam<MethodKind> {};

std::string name_of(const ::testing::TestParamInfo<MethodKind>& info) {
  std::string name(to_string(info.param));
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kinds, NetworkMethods, ::testing::ValuesIn(kKinds), name_of);

class DynamicIterations : public NetworkMethods {};
INSTANTIATE_TEST_SUITE_P(Kinds, DynamicIterations,
                         ::testing::Values(IterationKind::lions_mercier, IterationKind::jacobi,
                                           IterationKind::gauss_seidel),
                         name_of);

class Splittings : public NetworkMethods {};
INSTANTIATE_TEST_SUITE_P(Kinds, Splittings,
                         ::testing::Values(SplittingKind::strang, SplittingKind::impulse), name_of);

TEST_P(DynamicIterations, ComeToTheMonolithicStep) {
  const System system = testing::two_masses();
  for (const int window : {1, 5}) {
    StepperOptions options = options_of(GetParam());
    set_iterations(options.method, 4000);
    set_tolerance(options.method, 1e-13);
    set_window(options.method, window);
    EXPECT_LT(deviation(system, options, 50), 1e-10) << window;
  }
}

TEST_P(DynamicIterations, Control_TooFewIterationsDoNot) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(GetParam());
  set_iterations(options.method, 2);
  EXPECT_GT(deviation(system, options, 50), 1e-9);
}

TEST_P(Splittings, ApproachTheMonolithicTrajectoryInSecondOrder) {
  const System system = testing::two_masses();
  const double coarse = deviation(system, options_of(GetParam(), 0.02), 100);
  const double fine = deviation(system, options_of(GetParam(), 0.01), 200);
  EXPECT_NEAR(std::log2(coarse / fine), 2.0, 0.1) << coarse << " " << fine;
}

/// Eight threads whatever the machine has.
class EightThreads {
 private:
  tbb::global_control control_{tbb::global_control::max_allowed_parallelism, 8};
};

/// Every lane group of subsystems is a task of its own while it lives, however small the network.
class GroupByGroup {
 public:
  GroupByGroup() : before_ns_(task_nanoseconds()) { set_task_nanoseconds(0.0); }
  ~GroupByGroup() { set_task_nanoseconds(before_ns_); }
  GroupByGroup(const GroupByGroup&) = delete;
  GroupByGroup& operator=(const GroupByGroup&) = delete;

 private:
  double before_ns_;
};

System chains() { return testing::chain_of_blocks(9, 4); }

/// Twelve chains of three kinds on the springs of one mass: all that Gauss–Seidel solves after the
/// mass can be solved at once.
System star_of_chains() {
  SystemBuilder builder;
  builder.add("hub", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 10.0}),
              {.initial_state = {0.2, 0.1}});
  std::vector<std::string> ports = {"hub.coupling"};
  for (int i = 0; i < 12; ++i) {
    const std::string name = "limb" + std::to_string(i);
    const int masses = 2 + i % 3;
    std::vector<double> x(static_cast<std::size_t>(2 * masses + 1), 0.0);
    x[0] = 0.01 * i;
    builder.add(name,
                mass_spring_damper_chain({.masses = masses,
                                          .mass_kg = 0.3,
                                          .stiffness_N_per_m = 50,
                                          .damping_Ns_per_m = 0.1,
                                          .coupling_stiffness_N_per_m = 20}),
                {.initial_state = x});
    builder.join(joint::Free{}, {name + ".left"});
    ports.push_back(name + ".right");
  }
  builder.join(joint::CommonFlow{}, ports);
  return builder.build();
}

struct Shared {
  const char* name;
  System (*make)();
  std::vector<std::string> fast;
  bool always_parallel;  ///< Gauss–Seidel goes along a chain one by one
};

TEST_P(NetworkMethods, ThreadsAndExecutorsChangeNoBit) {
  const EightThreads allowed;
  const Shared networks[] = {{"chains", chains, {"block0", "block8"}, false},
                             {"star", star_of_chains, {"limb0", "limb1", "limb2"}, true}};
  for (const Shared& network : networks) {
    const System system = network.make();
    for (const int window : {1, 3}) {
      StepperOptions options = options_of(GetParam(), 0.005);
      set_iterations(options.method, 6);
      set_fast(options.method, network.fast);
      set_window(options.method, window);
      options.executor = ExecutorKind::serial;
      const std::vector<double> expected = trace(system, options, 7);
      const GroupByGroup cut;
      for (const ExecutorKind executor :
           {ExecutorKind::async, ExecutorKind::graph, ExecutorKind::automatic}) {
        for (const int threads : {1, 2, 3, 8}) {
          options.executor = executor;
          options.threads = threads;
          EXPECT_TRUE(same_bits(expected, trace(system, options, 7)))
              << network.name << ", " << to_string(executor) << ", " << threads
              << " threads, window " << window;
        }
      }
      if (network.always_parallel || GetParam() != IterationKind::gauss_seidel) {
        options.executor = ExecutorKind::async;
        EXPECT_GT(Stepper(system, options).tasks(), 1) << network.name << ", window " << window;
      }
      options.step_s *= 1.01;
      EXPECT_FALSE(same_bits(expected, trace(system, options, 7))) << "control";
    }
  }
}

TEST_P(NetworkMethods, TellOfTheirTasks) {
  const EightThreads allowed;
  const System system = star_of_chains();
  StepperOptions options = options_of(GetParam());
  set_fast(options.method, {"limb0", "limb1", "limb2"});
  options.threads = 2;
  options.executor = ExecutorKind::async;
  const GroupByGroup cut;
  const Stepper fine(system, options);
  const std::string tasks = std::to_string(fine.tasks()) + " tasks";
  EXPECT_NE(fine.execution().find(tasks), std::string::npos) << fine.execution();
  options.executor = ExecutorKind::serial;
  EXPECT_EQ(Stepper(system, options).tasks(), 1);
  EXPECT_EQ(Stepper(system, options).execution(), "serial");
}

TEST_P(NetworkMethods, TheLedgerClosesAndTheCertificateHolds) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(GetParam());
  set_iterations(options.method, 4000);
  set_tolerance(options.method, 1e-15);
  Stepper stepper(system, options);
  CompensatedSum supplied_sum, dissipated_sum, mismatch_sum;
  double stored = 0.0;
  for (int n = 0; n < 100; ++n) {
    const StepReport report = stepper.step();
    supplied_sum.add(report.energy.supplied_J);
    dissipated_sum.add(report.energy.dissipated_J);
    mismatch_sum.add(report.energy.mismatch_J);
    stored = report.energy.stored_J;
  }
  const double supplied = supplied_sum.value(), dissipated = dissipated_sum.value(),
               mismatch = mismatch_sum.value();
  const EnergyTotals& energy = stepper.energy();
  EXPECT_TRUE(stepper.keeps_ledger());
  EXPECT_DOUBLE_EQ(energy.initial_J, 0.5 * 0.1 * 0.1 / 2.0);
  EXPECT_DOUBLE_EQ(energy.max_J, energy.initial_J) << "nothing is supplied";
  EXPECT_DOUBLE_EQ(energy.max_energy_ratio, 1.0);
  EXPECT_EQ(energy.final_J, stored);
  EXPECT_EQ(energy.supplied_J, supplied);
  EXPECT_EQ(energy.dissipated_J, dissipated);
  EXPECT_EQ(energy.mismatch_J, mismatch);
  EXPECT_NEAR(energy.final_J - energy.initial_J, supplied - dissipated - mismatch,
              1e-14 * energy.initial_J);
  EXPECT_NEAR(energy.final_J, stepper.storage(0) + stepper.storage(1), 1e-14 * energy.initial_J);
  EXPECT_GT(dissipated, 0.0);
  const Certificate& certificate = stepper.certificate();
  EXPECT_EQ(certificate.status, CertificateStatus::holds);
  EXPECT_EQ(certificate.worst_passivity_part, -1);
  EXPECT_GE(certificate.worst_passivity_step, 0);
  EXPECT_EQ(certificate.steps_with_excess, 0);
}

TEST_P(NetworkMethods, PortsObeyTheJunctions) {
  const System system = testing::two_masses();
  Stepper stepper(system, options_of(GetParam()));
  EXPECT_NEAR(stepper.effort(0), stepper.effort(1), 1e-14) << "at the start";
  EXPECT_NEAR(stepper.flow(0), -stepper.flow(1), 1e-14);
  for (int n = 0; n < 20; ++n) {
    const std::vector<double> before(stepper.state(0).begin(), stepper.state(0).end());
    stepper.step();
    EXPECT_NEAR(stepper.effort(0), stepper.effort(1), 1e-14);
    EXPECT_NEAR(stepper.flow(0), -stepper.flow(1), 1e-14);
    // The spring's force at the mean of its elongations.
    const double elongation = 0.5 * (before[2] + stepper.state(0)[2]);
    EXPECT_NEAR(std::abs(stepper.effort(0)), std::abs(4.0 * elongation), 1e-14);
  }
  EXPECT_NE(stepper.effort(0), 0.0);
}

TEST_P(NetworkMethods, HaveNoWavesImpedancesTanksOrGuard) {
  const System system = testing::two_masses();
  Stepper stepper(system, options_of(GetParam()));
  stepper.step(3);
  EXPECT_EQ(stepper.waves(), nullptr);
  EXPECT_NE(Stepper(system, {}).waves(), nullptr);
  Quantity incident;
  incident.kind = Quantity::Kind::incident;
  incident.label = "A.port.incident";
  EXPECT_THROW(observe(stepper, incident), std::invalid_argument) << "it is no number";
  EXPECT_FALSE(stepper.deadline()) << "there is no time budget";
  EXPECT_EQ(stepper.method().method.kind(), GetParam());
  EXPECT_FALSE(stepper.method().reason.empty());
}

TEST_P(NetworkMethods, CountIterations) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(GetParam());
  set_iterations(options.method, 30);
  Stepper stepper(system, options);
  stepper.step(4);
  const int expected = GetParam().is<IterationKind>() ? 30 : 0;
  EXPECT_EQ(stepper.iterations().steps, 4);
  EXPECT_EQ(stepper.iterations().max, expected);
  EXPECT_EQ(stepper.iterations().not_converged, 0) << "there is no tolerance";
  set_tolerance(options.method, 1e-300);
  set_iterations(options.method, 1);
  Stepper strict(system, options);
  EXPECT_FALSE(strict.step().converged);
  EXPECT_EQ(strict.iterations().not_converged, GetParam().is<IterationKind>() ? 1 : 0);
  set_tolerance(options.method, 1e-2);
  set_iterations(options.method, 4000);
  Stepper loose(system, options);
  EXPECT_EQ(loose.step().converged, GetParam().is<IterationKind>());
}

// What a window took is counted once, when it is iterated: also of a window that the run does not
// finish.
TEST_P(DynamicIterations, CountAWindowOnce) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(GetParam());
  set_iterations(options.method, 7);
  set_window(options.method, 5);
  Stepper stepper(system, options);
  for (int n = 0; n < 12; ++n) {
    const StepReport report = stepper.step();
    EXPECT_EQ(report.begins_window, n % 5 == 0) << n;
    EXPECT_EQ(report.iterations, 7) << n;
  }
  const IterationStatistics& iterations = stepper.iterations();
  EXPECT_EQ(iterations.steps, 12);
  EXPECT_EQ(iterations.windows, 3);
  EXPECT_EQ(iterations.total, 21);
  EXPECT_EQ(iterations.max, 7);
  EXPECT_EQ(iterations.histogram[7], 3);
  EXPECT_EQ(iterations.reasons[static_cast<std::size_t>(StopReason::budget)], 3);
  EXPECT_EQ(iterations.mean(), 7.0);
  EXPECT_EQ(iterations.per_step(), 21.0 / 12.0);

  set_tolerance(options.method, 1e-300);
  set_iterations(options.method, 2);  // far from where a change may come to nothing at all
  Stepper strict(system, options);
  strict.step(12);
  EXPECT_EQ(strict.iterations().not_converged, 3);
}

// Control: where windows are steps, as with every other method.
TEST_P(NetworkMethods, CountStepsAsWindowsOfOne) {
  const System system = testing::two_masses();
  Stepper stepper(system, options_of(GetParam()));
  stepper.step(4);
  EXPECT_EQ(stepper.iterations().windows, 4);
  EXPECT_EQ(stepper.iterations().mean(), stepper.iterations().per_step());
}

// No tolerance is met by rounding: an iteration that cannot get better says so and goes on.
TEST_P(DynamicIterations, ThatRoundingStopsHaveNotConverged) {
  const System system = star_of_chains();
  StepperOptions options = options_of(GetParam());
  set_iterations(options.method, 100'000);
  set_tolerance(options.method, std::numeric_limits<double>::denorm_min());
  set_window(options.method, 5);
  Stepper stepper(system, options);
  for (int n = 0; n < 25; ++n) {
    const StepReport report = stepper.step();
    const bool is_still = report.residual == 0.0;  // not one bit changed
    EXPECT_EQ(report.converged, is_still) << n;
    EXPECT_EQ(report.reason, is_still ? StopReason::tolerance : StopReason::stalled) << n;
    EXPECT_LT(report.residual, 1e-11);
  }
  const auto& reasons = stepper.iterations().reasons;
  EXPECT_EQ(std::accumulate(reasons.begin(), reasons.end(), std::int64_t{0}), 5);
  EXPECT_EQ(stepper.iterations().not_converged,
            reasons[static_cast<std::size_t>(StopReason::stalled)]);
}

TEST_P(DynamicIterations, CountTheirWaveforms) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(GetParam());
  const std::size_t of_one_step = Stepper(system, options).overhead_bytes();
  set_window(options.method, 1000);
  const std::size_t more = Stepper(system, options).overhead_bytes() - of_one_step;
  EXPECT_GT(more, 999 * 5 * sizeof(double)) << "five states at every step";
}

TEST_P(NetworkMethods, SayWhatTheRunShowed) {
  const System system = testing::two_masses();
  Stepper stepper(system, options_of(GetParam()));
  EXPECT_EQ(stepper.remarks(), "");
  stepper.step(3);
  EXPECT_EQ(stepper.remarks().empty(), !GetParam().is<IterationKind>()) << stepper.remarks();
}

TEST_P(NetworkMethods, WithoutACertificateKeepNoLedger) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(GetParam());
  Stepper with(system, options);
  options.certify = Certify::none;
  Stepper without(system, options);
  with.step(10);
  without.step(10);
  EXPECT_FALSE(without.keeps_ledger());
  EXPECT_TRUE(same_bits({with.state(1).begin(), with.state(1).end()},
                        {without.state(1).begin(), without.state(1).end()}));
  EXPECT_EQ(with.storage(0), without.storage(0));
}

/// Two masses of the catalogue on a spring, one of them pushed while the switch is on.
System pushed_pair(std::atomic<int>* mode) {
  SystemBuilder builder;
  builder.add("first",
              mass_spring_damper_chain({.masses = 1,
                                        .mass_kg = 1.0,
                                        .stiffness_N_per_m = 3.0,
                                        .damping_Ns_per_m = 0.3,
                                        .coupling_stiffness_N_per_m = 5.0}),
              {.initial_state = {0.1, 0.0, 0.0}});
  builder.add(
      "second",
      linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 1.0, .damping_Ns_per_m = 0.1}),
      {.initial_state = {}, .inputs = {{"force", Signal::callback([mode](double) {
                                          if (*mode == 1) {
                                            throw std::runtime_error("the trap is shut");
                                          }
                                          return *mode == 2 ? NAN : 1.0;
                                        })}}});
  builder.join(joint::Free{}, {"first.left"});
  builder.connect("first.right", "second.coupling");
  return builder.build();
}

std::vector<double> whole(const Stepper& stepper) {
  std::vector<double> out;
  for (const int part : {0, 1}) {
    out.insert(out.end(), stepper.state(part).begin(), stepper.state(part).end());
    out.push_back(stepper.storage(part));
  }
  for (int port = 0; port < 3; ++port) {
    out.insert(out.end(), {stepper.effort(port), stepper.flow(port)});
  }
  out.insert(out.end(), {stepper.energy().final_J, stepper.energy().supplied_J, stepper.time_s()});
  return out;
}

TEST_P(NetworkMethods, AFaultKeepsTheStateAndNamesThePart) {
  for (const int mode : {1, 2}) {
    std::atomic<int> trap = 0;
    const System system = pushed_pair(&trap);
    Stepper stepper(system, options_of(GetParam()));
    Stepper untouched(system, options_of(GetParam()));
    stepper.step(3);
    untouched.step(3);
    EXPECT_GT(stepper.energy().supplied_J, 0.0);
    trap = mode;
    try {
      stepper.step();
      ADD_FAILURE() << "the fault was not seen, mode " << mode;
    } catch (const StepError& error) {
      EXPECT_EQ(error.part(), "second") << error.what();
      EXPECT_EQ(error.step(), 3);
      EXPECT_EQ(error.fault(), mode == 1 ? StepFault::threw : StepFault::not_finite);
      const std::string text = error.what();
      EXPECT_NE(text.find("part \"second\" failed in step 3: "), std::string::npos) << text;
      EXPECT_EQ(text.find("the trap is shut") != std::string::npos, mode == 1) << text;
    }
    trap = 0;
    // Ports are computed when they are asked for: still those of the last step that was committed.
    EXPECT_TRUE(same_bits(whole(untouched), whole(stepper))) << mode;
    stepper.step(3);
    untouched.step(3);
    EXPECT_TRUE(same_bits(whole(untouched), whole(stepper))) << mode;
  }
}

TEST_P(NetworkMethods, RefuseNonlinearPartsADeadlineAndWhatIsOutOfRange) {
  const System nonlinear = testing::duffing_linear_pair();
  StepperOptions options = options_of(GetParam());
  set_fast(options.method, {"B"});
  const Issues issues = refused(nonlinear, options);
  ASSERT_FALSE(issues.empty());
  EXPECT_EQ(issues.front().where.rfind("/subsystems/0", 0), 0U) << issues.front().where;

  const System system = testing::two_masses();
  options = options_of(GetParam());
  options.time.deadline_s = 1e-3;
  const Issues late = refused(system, options);
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late.front().where, "/deadline_s");
  options.time = {};
  options.step_s = -1.0;
  EXPECT_FALSE(refused(system, options).empty());
  options.step_s = 0.01;
  options.threads = 0;
  EXPECT_EQ(refused(system, options).size(), 1U);
}

// What is about waves alone changes nothing.
TEST_P(NetworkMethods, HaveNoOptionsOfWaveCoupling) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(GetParam());
  EXPECT_EQ(options.method.as<WaveCoupling>(), nullptr);
  EXPECT_THROW(options.method.waves().relaxation = 7.0, ConfigError);
  const std::vector<double> expected = trace(system, options, 5);
  options.certify = Certify::full;
  EXPECT_TRUE(same_bits(expected, trace(system, options, 5)));
}

// An iteration that is stopped early may create energy; it says so.
TEST_P(DynamicIterations, StoppedEarlyAreConditionalWhereTheyCreateEnergy) {
  const System system = testing::rotation(15.0, 0.01, 2.0);
  StepperOptions options = options_of(GetParam(), 0.1);
  bool some = false;
  for (int iterations = 0; iterations < 12; ++iterations) {
    set_iterations(options.method, iterations);
    Stepper stepper(system, options);
    try {
      stepper.step(3);
    } catch (const StepError&) {
      continue;
    }
    const Certificate& certificate = stepper.certificate();
    const bool excess = certificate.steps_with_excess > 0;
    EXPECT_EQ(certificate.status,
              excess ? CertificateStatus::conditional : CertificateStatus::holds);
    EXPECT_EQ(certificate.max_passivity_residual_J > 1e-9, excess);
    some = some || excess;
  }
  EXPECT_TRUE(some);
}

}  // namespace
}  // namespace portwave::test_network_methods

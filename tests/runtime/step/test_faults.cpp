// Faults inside a step, thrown in by the thousand: at random parts and iterations, on one to eight
// threads, with every executor, oversubscribed and on a single processor. Nothing may be committed,
// the error must name the earliest iteration and of that the lowest part, and the stepper must go
// on as if nothing had happened.

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "support/guard_of.hpp"

namespace portwave::test_faults {
namespace {

constexpr int kParts = 24;
constexpr int kIterations = 4;

/// What a part is to do wrong in the next step: in which of its port solves since it was frozen,
/// and how. The commit is the last one. Or in which of its commits, counted from the order: those
/// after the first are the guard's.
struct Order {
  int solve = -1;  ///< −1: nothing
  StepFault fault = StepFault::none;
  int commit = -1;  ///< −1: nothing
  mutable int commits = 0;
};
using Orders = std::array<Order, kParts>;

/// A linear oscillator, solved in closed form, that follows orders.
class FaultyBatch final : public LanewiseBatch {
 public:
  FaultyBatch(const Subsystem& honest, const Order& order)
      : LanewiseBatch(1, 2, 1, 1), order_(order) {
    const Component* parts[] = {&honest};
    honest_ = honest.make_batch(parts);
    record_.resize(honest_->record_size());
    next_.resize(honest_->record_size());
  }
  void prepare(double h, const double* impedance) override { honest_->prepare(h, impedance); }

 private:
  void freeze_lane(int /*lane*/, const Lane& frozen) const override {
    solves_ = 0;
    load(frozen);
  }
  StepFault scatter_lane(int /*lane*/, const Lane& frozen, const double* a,
                         double* b) const override {
    load(frozen);
    return solve(b, false, [&] { return honest_->scatter({0, 1}, record_.data(), a, b); });
  }
  StepFault advance_lane(int /*lane*/, const Lane& frozen, const double* a, double* x_next,
                         double* b, StepEnergy& energy) const override {
    load(frozen);
    return solve(b, order_.commits++ == order_.commit, [&] {
      const LaneStatus status =
          honest_->advance({0, 1}, record_.data(), a, next_.data(), b,
                           {&energy.change_J, &energy.external_supply_J, &energy.dissipated_J});
      honest_->get_state(0, next_.data(), x_next);
      return status;
    });
  }

  void load(const Lane& frozen) const {
    honest_->set_state(0, frozen.x, record_.data());
    honest_->freeze({0, 1}, record_.data(), frozen.input);
  }
  template <class Act>
  StepFault solve(double* b, bool ordered, const Act& act) const {
    const int index = solves_++;
    if (index != order_.solve && !ordered) return act().fault;
    switch (order_.fault) {
      case StepFault::threw:
        throw std::runtime_error("ordered");
      case StepFault::not_finite:
        (void)act();
        *b = std::numeric_limits<double>::quiet_NaN();
        return StepFault::none;
      default:
        return order_.fault;
    }
  }

  const Order& order_;
  std::unique_ptr<StepBatch> honest_;
  mutable AlignedVector record_, next_;
  mutable int solves_ = 0;  // a test may look at what a batch is not to remember
};

class FaultyPart final : public Subsystem {
 public:
  explicit FaultyPart(const Order& order, double mass)
      : FaultyPart(linear_oscillator({.mass_kg = mass, .stiffness_N_per_m = 50}), order) {}
  double storage(const double* x) const override { return honest_->storage(x); }
  void gradient(const double* x, double* g) const override { honest_->gradient(x, g); }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    honest_->discrete_gradient(x, y, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& out) const override {
    honest_->discrete_gradient_jacobian(x, y, out);
  }
  const Structure& structure() const override { return honest_->structure(); }
  std::unique_ptr<StepBatch> make_batch(
      std::span<const Component* const> /*parts*/) const override {
    return std::make_unique<FaultyBatch>(*honest_, order_);
  }

 private:
  FaultyPart(std::unique_ptr<Subsystem> honest, const Order& order)
      : Subsystem(honest->signature()), honest_(std::move(honest)), order_(order) {}
  std::unique_ptr<Subsystem> honest_;
  const Order& order_;
};

/// Two rings of junctions with three parts each would hide order; this is a tree of stars: parts
/// 0 to 7, 8 to 15 and 16 to 23 meet in a junction each.
System faulty_system(const Orders& orders) {
  SystemBuilder builder;
  for (int i = 0; i < kParts; ++i) {
    builder.add("p" + std::to_string(i),
                std::make_unique<FaultyPart>(orders[static_cast<std::size_t>(i)], 1.0 + 0.1 * i),
                {.initial_state = {0.1 * i, 1.0 - 0.05 * i}});
  }
  for (int star = 0; star < 3; ++star) {
    std::vector<std::string> ports;
    for (int i = 0; i < kParts / 3; ++i) {
      ports.push_back("p" + std::to_string(star * kParts / 3 + i) + ".coupling");
    }
    builder.join(joint::CommonEffort{}, std::move(ports));
  }
  return builder.build();
}

std::vector<double> everything(const Stepper& stepper) {
  std::vector<double> out = {stepper.energy().final_J, stepper.energy().mismatch_J,
                             stepper.time_s()};
  for (int i = 0; i < kParts; ++i) {
    out.insert(out.end(), stepper.state(i).begin(), stepper.state(i).end());
    out.insert(out.end(), {stepper.waves()->incident(i), stepper.waves()->outgoing(i)});
  }
  return out;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

struct Expected {
  int part = -1;
  int solve = kIterations + 1;
};

/// One to three orders at random; the one that must be reported. NaNs are found at the commit.
Expected give_orders(Orders& orders, std::mt19937_64& random, bool with_nan) {
  orders.fill({});
  Expected expected;
  const int count = 1 + static_cast<int>(random() % 3);
  constexpr StepFault kFaults[] = {StepFault::threw, StepFault::not_converged,
                                   StepFault::not_finite};
  for (int k = 0; k < count; ++k) {
    const int part = static_cast<int>(random() % kParts);
    const int solve = static_cast<int>(random() % (kIterations + 1));
    const StepFault fault = kFaults[random() % (with_nan ? 3 : 2)];
    orders[static_cast<std::size_t>(part)] = {solve, fault};
  }
  for (int part = 0; part < kParts; ++part) {
    const Order& order = orders[static_cast<std::size_t>(part)];
    if (order.solve >= 0 && order.solve < expected.solve) expected = {part, order.solve};
  }
  return expected;
}

struct Setting {
  ExecutorKind executor;
  int threads;
  Grain grain;
};

void torment(const Setting& setting, int faults, std::uint64_t seed) {
  SCOPED_TRACE(::testing::Message()
               << to_string(setting.executor) << ", " << setting.threads << " threads, grain "
               << to_string(setting.grain) << ", seed " << seed);
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  Orders orders, peace;
  const System system = faulty_system(orders), twin_system = faulty_system(peace);
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.method.waves().iterations = kIterations;
  options.method.waves().impedance = {20.0};
  Stepper twin(twin_system, options);
  options.executor = setting.executor;
  options.threads = setting.threads;
  options.grain = setting.grain;
  Stepper stepper(system, options);
  std::mt19937_64 random(seed);
  for (int n = 0; n < faults; ++n) {
    const bool with_nan = n % 4 == 3;
    const Expected expected = give_orders(orders, random, with_nan);
    const std::vector<double> before = everything(stepper);
    try {
      stepper.step();
      FAIL() << "fault " << n << " was not noticed";
    } catch (const StepError& error) {
      if (!with_nan) {
        ASSERT_EQ(error.part(), "p" + std::to_string(expected.part)) << "fault " << n;
        ASSERT_EQ(error.iteration(), expected.solve) << "fault " << n;
      }
      ASSERT_EQ(error.step(), stepper.step_index());
    }
    ASSERT_TRUE(same_bits(everything(stepper), before)) << "fault " << n << " left a trace";
    orders.fill({});
    if (n % 8 != 0) continue;
    stepper.step();
    twin.step();
    ASSERT_TRUE(same_bits(everything(stepper), everything(twin))) << "after fault " << n;
  }
}

TEST(Faults, LeaveNothingBehindOnAnyNumberOfThreads) {
  std::uint64_t seed = 1;
  for (const int threads : {1, 2, 3, 5, 8}) {  // eight on two processors: oversubscribed
    for (const Grain grain : {Grain::per_part(), Grain::of_parts(2), Grain::of_parts(7)}) {
      torment({ExecutorKind::async, threads, grain}, 1000, seed++);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Faults, LeaveNothingBehindInTheOtherExecutors) {
  torment({ExecutorKind::serial, 1, {}}, 1500, 101);
  for (const int threads : {2, 4}) {
    torment({ExecutorKind::graph, threads, Grain::per_part()}, 300, 103);
  }
}

TEST(Faults, LeaveNothingBehindOnASingleProcessor) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);  // workers are born with it
  torment({ExecutorKind::async, 4, Grain::per_part()}, 400, 201);
  torment({ExecutorKind::async, 2, Grain::of_parts(3)}, 400, 202);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

/// What a step did: how it failed, if it did, and all there is to see afterwards.
struct Done {
  std::string error;
  std::vector<double> state;
};

Done attempt(Stepper& stepper) {
  Done done;
  try {
    stepper.step();
  } catch (const StepError& error) {
    done.error = error.what();
  }
  done.state = everything(stepper);
  return done;
}

struct Tally {
  int failed = 0;
  int survived = 0;
};

/// Steps with faults, as they go on one thread and with an executor: alike in errors and in every
/// bit; failed ones leave no trace.
template <class GiveOrders>
Tally compare(const Setting& setting, const StepperOptions& options, int steps,
              const GiveOrders& give, GuardStatistics* guard = nullptr,
              IterationStatistics* iterations = nullptr) {
  SCOPED_TRACE(::testing::Message() << to_string(setting.executor) << ", " << setting.threads
                                    << " threads, grain " << to_string(setting.grain));
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  Orders orders, same;
  const System system = faulty_system(orders), twin_system = faulty_system(same);
  Stepper twin(twin_system, options);
  StepperOptions own = options;
  own.executor = setting.executor;
  own.threads = setting.threads;
  own.grain = setting.grain;
  Stepper stepper(system, own);
  Tally tally;
  for (int n = 0; n < steps; ++n) {
    give(orders, n);
    same = orders;
    const std::vector<double> before = everything(stepper);
    const double tanks[] = {stepper.waves()->tank(0), stepper.waves()->tank(1),
                            stepper.waves()->tank(2)};
    const std::int64_t uses = testing::guard_of(stepper).uses;
    const Done one = attempt(stepper), other = attempt(twin);
    EXPECT_EQ(one.error, other.error) << "step " << n;
    EXPECT_TRUE(same_bits(one.state, other.state)) << "step " << n;
    EXPECT_EQ(testing::guard_of(stepper).uses, testing::guard_of(twin).uses) << "step " << n;
    if (one.error.empty()) {
      ++tally.survived;
    } else {
      ++tally.failed;
      EXPECT_TRUE(same_bits(one.state, before)) << "step " << n << " left a trace";
      for (int i = 0; i < 3; ++i) EXPECT_EQ(stepper.waves()->tank(i), tanks[i]) << "step " << n;
      EXPECT_EQ(testing::guard_of(stepper).uses, uses) << "step " << n;
    }
    if (::testing::Test::HasFailure()) break;
  }
  if (guard != nullptr) *guard = testing::guard_of(stepper);
  if (iterations != nullptr) *iterations = stepper.iterations();
  return tally;
}

const std::vector<Setting> kSettings = {{ExecutorKind::serial, 1, {}},
                                        {ExecutorKind::async, 1, Grain::per_part()},
                                        {ExecutorKind::async, 3, Grain::of_parts(2)},
                                        {ExecutorKind::graph, 2, Grain::per_part()}};

// A port solve that fails at an accelerated trial is a rejected trial, one that fails anywhere else
// a fault.
TEST(Faults, AtAcceleratedTrialsAreRejections) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.method.waves().iterations = 6;
  options.method.waves().impedance = {20.0};
  options.method.waves().acceleration = 4;
  for (const Setting& setting : kSettings) {
    std::mt19937_64 random(501);
    IterationStatistics iterations;
    const Tally tally = compare(
        setting, options, 400,
        [&](Orders& orders, int n) { give_orders(orders, random, n % 2 == 0); }, nullptr,
        &iterations);
    EXPECT_GT(tally.failed, 50);
    EXPECT_GT(tally.survived, 50);
    EXPECT_GT(iterations.rejected_trials, 50);
    if (HasFailure()) return;
  }
}

// A commit that fails when the guard makes it again is one that is not feasible; another is tried.
// Parts of other islands that are committed along with it have no such excuse.
TEST(Faults, WhenTheGuardCommitsAgainAreInfeasibleTrials) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.method.waves().iterations = 1;
  options.method.waves().impedance = {200.0};
  options.method.waves().tank.initial_J = 0.0;
  for (const Setting& setting : kSettings) {
    std::mt19937_64 random(7);
    GuardStatistics guard;
    const auto give = [&](Orders& orders, int /*n*/) {
      orders.fill({});
      const auto part = static_cast<std::size_t>(random() % kParts);
      const bool with_nan = random() % 3 == 0;
      orders[part] = {-1, with_nan ? StepFault::not_finite : StepFault::threw,
                      1 + static_cast<int>(random() % 2)};
    };
    const Tally tally = compare(setting, options, 150, give, &guard);
    EXPECT_GT(tally.survived, 50);
    EXPECT_GT(guard.trials, guard.uses + 10) << "no trial failed: nothing was tested";
    if (HasFailure()) return;
  }
}

TEST(FaultsControl, WithoutOrdersEverythingAgreesAndAnOrderChangesThat) {
  Orders orders;
  const System system = faulty_system(orders);
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.method.waves().iterations = kIterations;
  options.method.waves().impedance = {20.0};
  Stepper stepper(system, options);
  const std::vector<double> start = everything(stepper);
  EXPECT_NO_THROW(stepper.step());
  EXPECT_FALSE(same_bits(everything(stepper), start));
  orders[3] = {2, StepFault::threw};
  EXPECT_THROW(stepper.step(), StepError);
}

}  // namespace
}  // namespace portwave::test_faults

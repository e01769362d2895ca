// Ideal switches and diodes in waves: by complementarity written out here, alone, in lanes and with stages.

#include <cmath>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/core/component_digest.hpp"
#include "portwave/subsystems/nonlinear/ideal_switch.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "portwave/subsystems/nonlinear/switch_steps.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_ideal_switch {
namespace {

Signature one_port(bool has_input) {
  Signature out{"s", {}, {{"port", Causality::effort_in, Domain::electrical, 1}}, {}};
  if (has_input) out.inputs = {{"closed", ""}};
  return out;
}

std::shared_ptr<const IdealSwitch> diode() {
  return std::make_shared<IdealSwitch>(one_port(false), IdealSwitch::Rule::one_way);
}
std::shared_ptr<const IdealSwitch> ideal_switch() {
  return std::make_shared<IdealSwitch>(one_port(true), IdealSwitch::Rule::controlled);
}

/// e and f of a port from its waves.
struct PortValue {
  double e, f;
};
PortValue value_of(double a, double b, double h, double gamma) {
  return {std::sqrt(0.5 * gamma / h) * (a + b), (a - b) / std::sqrt(2.0 * gamma * h)};
}

/// Waves of one step of lanes of a part, with the same input in all; `columns` may be empty.
std::vector<double> step_of(const StepBatch& batch, const std::vector<double>& a,
                            const std::vector<double>& input, const EnergyColumns& columns = {}) {
  AlignedVector record(batch.record_size()), next(batch.record_size());
  const LaneRange all{0, batch.lanes()};
  for (int l = 0; l < batch.lanes(); ++l) batch.set_state(l, nullptr, record.data());
  batch.freeze(all, record.data(), input.empty() ? nullptr : input.data());
  std::vector<double> b(a.size()), again(a.size());
  EXPECT_TRUE(batch.scatter(all, record.data(), a.data(), b.data()).ok());
  EXPECT_TRUE(batch.advance(all, record.data(), a.data(), next.data(), again.data(), columns).ok());
  EXPECT_EQ(b, again);
  return b;
}

TEST(IdealSwitch, ADiodeObeysItsComplementarity) {
  const auto part = diode();
  const Component* const parts[] = {part.get()};
  const auto batch = part->make_batch(parts);
  for (const double h : {1e-9, 1e-3, 10.0}) {
    for (const double gamma : {1e-6, 1.0, 1e6}) {
      batch->prepare(h, &gamma);
      for (const double a : {-3.0, -1e-12, 0.0, 1e-12, 5.0}) {
        const double b = step_of(*batch, {a}, {})[0];
        const PortValue at = value_of(a, b, h, gamma);
        EXPECT_GE(at.f, 0.0) << a;
        EXPECT_LE(at.e, 0.0) << a;
        EXPECT_EQ(at.e * at.f, 0.0) << a;
        EXPECT_EQ(b * b, a * a) << "lossless, to the last bit";
      }
    }
  }
}

TEST(IdealSwitch, ASwitchIsAShortOrOpenAsItsInputSays) {
  const auto part = ideal_switch();
  const Component* const parts[] = {part.get()};
  const auto batch = part->make_batch(parts);
  const double gamma = 3.0;
  batch->prepare(0.1, &gamma);
  for (const double a : {-3.0, 2.0}) {
    EXPECT_EQ(step_of(*batch, {a}, {1.0})[0], -a);
    EXPECT_EQ(step_of(*batch, {a}, {0.5})[0], -a);
    EXPECT_EQ(step_of(*batch, {a}, {0.49})[0], a);
    EXPECT_EQ(step_of(*batch, {a}, {})[0], a) << "without an input it is open";
    EXPECT_EQ(step_of(*batch, {a}, {std::nan("")})[0], a);
  }
}

TEST(SwitchSteps, TheShareOfAStepForWhichAnInputClosesASwitch) {
  EXPECT_EQ(closed_share(Signal::constant(0.3), 0.0, 0.1), 0.0) << "a value is no share";
  EXPECT_EQ(closed_share(Signal::constant(0.7), 0.0, 0.1), 1.0);
  EXPECT_EQ(closed_share(Signal::settable(0.5), 0.0, 0.1), 1.0);
  const Signal pulses = Signal::expression("mod(t, 1) < 0.4");
  EXPECT_NEAR(closed_share(pulses, 0.0, 1.0), 0.4, 1e-9);
  EXPECT_NEAR(closed_share(pulses, 7.3, 0.2), 0.5, 1e-9);
  EXPECT_NEAR(closed_share(pulses, 0.2, 3.0), 0.4, 1e-9);
  EXPECT_EQ(closed_share(pulses, 2.4, 0.6), 0.0) << "an end belongs to the time before it";
  EXPECT_EQ(closed_share(pulses, 3.0, 0.4), 1.0);
  const Signal table = Signal::piecewise_linear({{0.0, 0.0}, {1.0, 1.0}, {1.0, 0.0}, {2.0, 0.0}});
  EXPECT_NEAR(closed_share(table, 0.0, 2.0), 0.25, 1e-9) << "from .5 s to 1 s";
  const Signal sine = Signal::callback([](double t) { return std::sin(t); });
  EXPECT_NEAR(closed_share(sine, 0.0, 1.0), 1.0 - std::asin(0.5), 1e-9);
}

// What one step is closed for too long the next one with a change is closed for less: the mean is exact.
TEST(SwitchSteps, TheMeanIsThatOfTheInput) {
  const auto part = ideal_switch();
  const Component* const parts[] = {part.get()};
  const auto batch = part->make_batch(parts);
  const double gamma = 1.0, h = 0.1;
  batch->prepare(h, &gamma);
  const auto& steps = dynamic_cast<const SwitchSteps&>(*batch);
  for (const double share : {0.4, 0.5, 1.0 / 3.0, 0.07, 0.9}) {
    AlignedVector record(batch->record_size()), next(batch->record_size());
    batch->set_state(0, nullptr, record.data());
    int closed = 0, rounded = 0;
    for (int n = 1; n <= 600; ++n) {
      // Twice, as after a step that failed: it counts once.
      for (int again = 0; again < 2; ++again) batch->freeze({0, 1}, record.data(), &share);
      const double a = 1.0;
      double b = 0.0;
      ASSERT_TRUE(batch->advance({0, 1}, record.data(), &a, next.data(), &b, {}).ok());
      closed += b < 0.0 ? 1 : 0;
      rounded += share >= 0.5 ? 1 : 0;
      EXPECT_LE(std::abs(closed - share * n), 0.5 + 1e-6) << share << " after " << n;
      std::swap(record, next);
    }
    EXPECT_GT(std::abs(rounded - share * 600), 40.0) << "control: each step by itself is far off";
    const SwitchTimes times = steps.switch_times(0, record.data());
    EXPECT_NEAR(times.closed_s, 600 * h * share, 1e-9);
    EXPECT_NEAR(times.open_s, 600 * h * (1.0 - share), 1e-9);
    EXPECT_GT(times.moved_share(h), 0.05) << share;
  }
}

TEST(SwitchSteps, ChangesAtTheEndsOfStepsAreNotMoved) {
  EXPECT_TRUE(closes_in_step(1.0, -0.5)) << "a whole step is what it is, whatever came before";
  EXPECT_FALSE(closes_in_step(0.0, 0.5));
  EXPECT_TRUE(closes_in_step(0.3, 0.25));
  EXPECT_FALSE(closes_in_step(0.3, 0.0)) << "control";
  const SwitchTimes once{.closed_s = 1.0, .open_s = 1.0, .moved_s = 0.05, .lag_s = 0.05};
  EXPECT_EQ(once.moved_share(0.1), 0.0) << "a single change is moved by a part of a step";
  const SwitchTimes often{.closed_s = 1.0, .open_s = 2.0, .moved_s = 0.2, .lag_s = 0.0};
  EXPECT_DOUBLE_EQ(often.moved_share(0.1), 0.1);
}

// The general solver, by port_law_point, finds the same waves.
TEST(IdealSwitch, TheGeneralSolverFindsTheSameWaves) {
  const double gamma = 0.7, h = 0.02;
  for (const auto& part : {diode(), ideal_switch()}) {
    const Component* const own[] = {part.get()};
    const Subsystem* const physics[] = {part.get()};
    const auto batch = part->make_batch(own);
    const auto general = make_newton_batch(physics);
    batch->prepare(h, &gamma);
    general->prepare(h, &gamma);
    for (const double closed : {0.0, 1.0}) {
      const std::vector<double> input(part->signature().inputs.size(), closed);
      for (const double a : {-2.0, 0.3}) {
        EXPECT_NEAR(step_of(*batch, {a}, input)[0], step_of(*general, {a}, input)[0],
                    1e-15 * std::abs(a));
      }
    }
  }
}

// Stages are ports of their own; a switch keeps one branch for all, by the mean of its input.
TEST(IdealSwitch, KeepsItsBranchForAllStages) {
  for (const StageNodes nodes : {StageNodes::gauss, StageNodes::radau}) {
    for (const int stages : {2, 3}) {
      const StageRule& rule = stage_rule(stages, nodes);
      const auto staged = staged_part(ideal_switch(), rule, 1);
      const Component* const parts[] = {staged.get()};
      const auto batch = staged->make_batch(parts);
      const std::vector<double> gamma(static_cast<std::size_t>(stages), 1.0);
      batch->prepare(0.1, gamma.data());
      const std::vector<double> a = {1.0, -2.0, 3.0};
      for (const double mean : {0.4, 0.5, 0.6}) {
        std::vector<double> input, wave;
        for (int i = 0; i < stages; ++i) {
          const auto own = static_cast<std::size_t>(i);
          // A line with this mean, beyond [0, 1] at its ends.
          const double closed = mean + 3.0 * (rule.c[own] - 0.5);
          input.push_back(std::sqrt(rule.b[own]) * closed);
          wave.push_back(a[own]);
        }
        const std::vector<double> b = step_of(*batch, wave, input);
        for (std::size_t i = 0; i < wave.size(); ++i) {
          EXPECT_EQ(b[i], mean >= 0.5 ? -wave[i] : wave[i]) << mean;
        }
      }
    }
  }
  const auto staged = staged_part(diode(), gauss_stages(3), 1);
  const Component* const parts[] = {staged.get()};
  const auto batch = staged->make_batch(parts);
  const std::vector<double> gamma = {1.0, 2.0, 3.0};
  batch->prepare(0.1, gamma.data());
  EXPECT_EQ(step_of(*batch, {1.0, -2.0, 3.0}, {}), (std::vector<double>{-1.0, -2.0, -3.0}));
}

TEST(IdealSwitch, LanesAreSteppedSideBySide) {
  const auto part = ideal_switch();
  const std::vector<const Component*> parts(11, part.get());
  const auto batch = part->make_batch(parts);
  const int stride = batch->stride();
  batch->prepare(0.1, std::vector<double>(static_cast<std::size_t>(stride), 1.0).data());
  std::vector<double> a(static_cast<std::size_t>(stride)), input;
  for (int l = 0; l < 11; ++l) {
    a[static_cast<std::size_t>(l)] = 1.0 + l;
    input.push_back(l % 3 == 0 ? 1.0 : 0.0);
  }
  std::vector<double> change(a), supply(a), dissipated(a);
  EnergyColumns columns;
  columns.change_J = change.data();
  columns.external_supply_J = supply.data();
  columns.dissipated_J = dissipated.data();
  const std::vector<double> b = step_of(*batch, a, input, columns);
  for (std::size_t l = 0; l < 11; ++l) {
    EXPECT_EQ(b[l], l % 3 == 0 ? -a[l] : a[l]);
    EXPECT_EQ(change[l], 0.0);
    EXPECT_EQ(supply[l], 0.0);
    EXPECT_EQ(dissipated[l], 0.0);
  }
}

TEST(IdealSwitch, ReflectionsDoNotExpand) {
  const auto part = diode();
  const Component* const parts[] = {part.get()};
  const auto batch = part->make_batch(parts);
  const double gamma = 1.0;
  batch->prepare(0.1, &gamma);
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 200; ++trial) {
    const double x = normal(random), y = normal(random);
    EXPECT_LE(std::abs(step_of(*batch, {x}, {})[0] - step_of(*batch, {y}, {})[0]), std::abs(x - y));
  }
}

TEST(IdealSwitch, RefusesOtherSignatures) {
  const auto issues = [](Signature signature, IdealSwitch::Rule rule) {
    try {
      const IdealSwitch part(std::move(signature), rule);
    } catch (const ConfigError& error) {
      return error.issues().size();
    }
    return std::size_t{0};
  };
  EXPECT_EQ(issues(one_port(true), IdealSwitch::Rule::controlled), 0U);
  EXPECT_EQ(issues(one_port(false), IdealSwitch::Rule::controlled), 1U);
  EXPECT_EQ(issues(one_port(true), IdealSwitch::Rule::one_way), 1U);
  Signature other = one_port(false);
  other.ports[0].causality = Causality::flow_in;
  other.states = {{"x", ""}};
  EXPECT_EQ(issues(other, IdealSwitch::Rule::one_way), 2U);
}

TEST(IdealSwitch, DigestsTellThemApart) {
  EXPECT_EQ(component_digest(*diode()), component_digest(*diode()));
  EXPECT_NE(component_digest(*diode()), component_digest(*ideal_switch()));
}

}  // namespace
}  // namespace portwave::test_ideal_switch

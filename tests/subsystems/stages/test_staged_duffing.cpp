// Steps of Duffing parts with stages, eight lanes at a time: beside the general solver, which shares
// no code with them, and by the laws that hold for any solver.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "support/lane_major.hpp"

namespace portwave::test_staged_duffing {
namespace {

using PartPointer = std::shared_ptr<const Component>;

/// A part without the solvers of its own, so that the general one steps it.
class WithoutOwnSolver final : public Component {
 public:
  explicit WithoutOwnSolver(PartPointer part) : Component(part->signature()), part_(part) {}
  Capabilities capabilities() const override { return part_->capabilities(); }
  const Subsystem* port_hamiltonian() const override { return part_->port_hamiltonian(); }
  std::unique_ptr<StepBatch> make_batch(
      std::span<const Component* const> /*parts*/) const override {
    const Component* own[] = {part_.get()};
    return part_->make_batch(own);
  }

 private:
  PartPointer part_;
};

class Random {
 public:
  explicit Random(unsigned seed) : generator_(seed) {}
  double operator()(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(generator_);
  }
  double log(double low, double high) { return std::exp((*this)(std::log(low), std::log(high))); }

 private:
  std::mt19937_64 generator_;
};

/// Where parts are looked at: units of mass, length and time, and how far from the origin.
struct Setting {
  double mass = 1.0, length = 1.0, time = 1.0;
  double offset = 0.0;
  double step = 0.02;      ///< per unit of time
  double hardness = 8000;  ///< of the cubic spring, at most
};

struct Sample {
  bool node = false;
  int stages = 2;
  double theta = 0.0;
  DuffingOscillatorParameters parameters;
  double step_s = 0.0;
  std::vector<double> gamma, x, a, input;

  PartPointer part() const {
    return node ? PartPointer(duffing_node(parameters))
                : PartPointer(duffing_oscillator(parameters));
  }
  StageRule rule() const {
    return theta > 0.0 ? damped(gauss_stages(stages), {.theta = theta}) : gauss_stages(stages);
  }
  PartPointer staged() const { return staged_part(part(), rule()); }
  PartPointer general() const {
    return staged_part(std::make_shared<const WithoutOwnSolver>(part()), rule());
  }
  std::size_t waves() const { return static_cast<std::size_t>(stages * (node ? 4 : 1)); }
  /// Force of the ground spring by its terms.
  double spring_force() const {
    const double q = std::abs(x[0]);
    return q * (parameters.stiffness_N_per_m + parameters.cubic_stiffness_N_per_m3 * q * q);
  }
};

Sample draw(Random& random, bool node, int stages, const Setting& setting) {
  Sample s;
  s.node = node;
  s.stages = stages;
  const double stiffness = setting.mass / (setting.time * setting.time);
  const double damping = setting.mass / setting.time, force = stiffness * setting.length;
  s.parameters = {.mass_kg = random(0.5, 8.0) * setting.mass,
                  .stiffness_N_per_m = random(0.0, 100.0) * stiffness,
                  .cubic_stiffness_N_per_m3 =
                      random(0.0, setting.hardness) * stiffness / (setting.length * setting.length),
                  .damping_Ns_per_m = random(0.0, 0.5) * damping,
                  .coupling_stiffness_N_per_m = random(0.0, 120.0) * stiffness,
                  .coupling_damping_Ns_per_m = random(0.0, 0.1) * damping};
  s.step_s = setting.step * setting.time;
  for (std::size_t j = 0; j < s.waves(); ++j) s.gamma.push_back(random.log(0.1, 10.0) * damping);
  s.x = {(setting.offset + random(-0.5, 0.5)) * setting.length,
         random(-1.0, 1.0) * setting.length / setting.time, random(-0.3, 0.3) * setting.length};
  if (node) s.x.push_back(random(-0.3, 0.3) * setting.length);
  // e of the size of the unit of force: a = e √(h/2γ).
  for (const double gamma : s.gamma) {
    s.a.push_back(random(-5.0, 5.0) * force * std::sqrt(0.5 * s.step_s / gamma));
  }
  for (int i = 0; i < stages; ++i) s.input.push_back(random(-3.0, 3.0) * force);
  return s;
}

struct Step {
  LaneStatus status;
  std::vector<double> b, x_next;
  StepEnergy energy;
};

Step take(const Component& part, const Sample& sample) {
  testing::LaneMajor map = testing::batch_of_one(part);
  map.prepare(sample.step_s, sample.gamma.data());
  map.freeze({0, 1}, sample.x.data(), sample.input.data());
  Step step{{}, std::vector<double>(sample.waves()), std::vector<double>(sample.x.size()), {}};
  step.status =
      map.advance({0, 1}, sample.a.data(), step.x_next.data(), step.b.data(), &step.energy);
  return step;
}

double square_of(const std::vector<double>& v) {
  double sum = 0.0;
  for (const double value : v) sum += value * value;
  return sum;
}

/// Energies that meet in the step, beside those of an offset.
double energies_of(const Sample& sample, const Step& step) {
  const double m = sample.parameters.mass_kg;
  return square_of(sample.a) + square_of(step.b) + m * sample.x[1] * sample.x[1] +
         m * step.x_next[1] * step.x_next[1] + std::abs(step.energy.change_J) +
         std::abs(step.energy.external_supply_J);
}

/// What rounding of q and of the force at q is worth in energy: ε of the force, and of the position,
/// times what the other moves by.
double rounding_of_offset(const Sample& sample, const Step& step) {
  const double moved = std::abs(step.x_next[0] - sample.x[0]) +
                       sample.step_s * (std::abs(sample.x[1]) + std::abs(step.x_next[1]));
  return std::numeric_limits<double>::epsilon() * sample.spring_force() *
         (moved + std::abs(sample.x[0]));
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {},
      {.step = 1e-6},
      {.step = 0.2},
      {.mass = 1e9},
      {.mass = 1e-9},
      {.length = 1e9},
      {.length = 1e-9},
      {.mass = 1e9, .length = 1e-9, .time = 1e-9},
      {.time = 1e9},
      {.step = 1e3, .hardness = 0.0},  // far beyond the period
      {.step = 1e6, .hardness = 0.0},
      {.offset = 1e3},
      {.offset = 1e6, .step = 1e-4, .hardness = 1e-6},
      {.offset = 1e9, .hardness = 0.0},
  };
  return all;
}

template <class Act>
void for_samples(int count, const Act& act) {
  for (const bool node : {false, true}) {
    for (const int stages : {2, 3}) {
      for (const Setting& setting : settings()) {
        Random random(11);
        for (int n = 0; n < count; ++n) {
          const Sample sample = draw(random, node, stages, setting);
          SCOPED_TRACE(::testing::Message()
                       << (node ? "node, " : "oscillator, ") << stages << " stages, units "
                       << setting.mass << " " << setting.length << " " << setting.time
                       << ", offset " << setting.offset << ", h " << setting.step << ", draw "
                       << n);
          act(sample);
        }
      }
    }
  }
}

/// The largest difference of waves and of momentum and elongations, in energies, over what rounding
/// allows.
double disagreement(const Sample& sample, const Step& own, const Step& other) {
  double difference = 0.0;
  for (std::size_t j = 0; j < own.b.size(); ++j) {
    difference += std::pow(own.b[j] - other.b[j], 2);
  }
  const double m = sample.parameters.mass_kg, k12 = sample.parameters.coupling_stiffness_N_per_m;
  difference += m * std::pow(own.x_next[1] - other.x_next[1], 2);
  for (std::size_t i = 2; i < own.x_next.size(); ++i) {
    difference += k12 * std::pow(own.x_next[i] - other.x_next[i], 2);
  }
  // The force of an offset, known to ε, acts for the length of the step: an impulse.
  double stretch = std::numeric_limits<double>::epsilon() * sample.spring_force() * sample.step_s;
  double softest = m / sample.step_s;
  for (const double gamma : sample.gamma) softest = std::min(softest, gamma);
  const double of_force = stretch * stretch / (softest * sample.step_s);
  return std::sqrt(difference / (1e-24 * energies_of(sample, own) + 1e3 * of_force));
}

TEST(StagedDuffing, AgreesWithTheGeneralSolver) {
  for_samples(40, [](const Sample& sample) {
    const Step own = take(*sample.staged(), sample), other = take(*sample.general(), sample);
    ASSERT_TRUE(own.status.ok());
    ASSERT_TRUE(other.status.ok());
    EXPECT_LE(disagreement(sample, own, other), 1.0);
    const double scale = energies_of(sample, own), rounding = rounding_of_offset(sample, own);
    EXPECT_NEAR(own.energy.dissipated_J, other.energy.dissipated_J, 1e-12 * scale + 10 * rounding);
    EXPECT_NEAR(own.energy.external_supply_J, other.energy.external_supply_J,
                1e-12 * scale + 10 * rounding);
    EXPECT_NEAR(own.energy.change_J, other.energy.change_J, 1e-12 * scale + 10 * rounding);
  });
}

// A relative change of 1e-6 in the hardening spring is seen.
TEST(StagedDuffingControl, DisagreesAboutAnotherSpring) {
  Random random(3);
  for (const int stages : {2, 3}) {
    Sample sample = draw(random, true, stages, {});
    const Step other = take(*sample.general(), sample);
    sample.parameters.cubic_stiffness_N_per_m3 *= 1.0 + 1e-6;
    EXPECT_GT(disagreement(sample, take(*sample.staged(), sample), other), 1.0);
  }
}

/// H⁺ − H − ½(|a|² − |b|²) − supply + dissipated, over what rounding allows.
double imbalance(const Sample& sample, const Step& step, double change_J) {
  const double defect = change_J - 0.5 * (square_of(sample.a) - square_of(step.b)) -
                        step.energy.external_supply_J + step.energy.dissipated_J;
  return std::abs(defect) /
         (2e-14 * energies_of(sample, step) + 8.0 * rounding_of_offset(sample, step));
}

TEST(StagedDuffing, BalancesItsEnergyExactly) {
  for_samples(60, [](const Sample& sample) {
    const Step step = take(*sample.staged(), sample);
    ASSERT_TRUE(step.status.ok());
    EXPECT_LE(imbalance(sample, step, step.energy.change_J), 1.0);
    if (sample.x[0] != 0.0 && std::abs(sample.x[0]) < 1.0) {
      const PartPointer part = sample.part();
      const Subsystem& physics = *part->port_hamiltonian();
      const double before = physics.storage(sample.x.data());
      EXPECT_NEAR(step.energy.change_J, physics.storage(step.x_next.data()) - before,
                  1e-14 * (before + energies_of(sample, step)));
    }
  });
}

// One damped stage: a cubic with other coefficients.
TEST(StagedDuffing, OneDampedStageAgreesWithTheGeneralSolverAndBalances) {
  for (const bool node : {false, true}) {
    for (const double theta : {0.4, 1.0}) {
      for (const Setting& setting : settings()) {
        Random random(17);
        for (int n = 0; n < 20; ++n) {
          Sample sample = draw(random, node, 1, setting);
          sample.theta = theta;
          SCOPED_TRACE(::testing::Message()
                       << (node ? "node, " : "oscillator, ") << theta << ", units " << setting.mass
                       << " " << setting.length << " " << setting.time << ", offset "
                       << setting.offset << ", h " << setting.step << ", draw " << n);
          const Step own = take(*sample.staged(), sample), other = take(*sample.general(), sample);
          ASSERT_TRUE(own.status.ok());
          ASSERT_TRUE(other.status.ok());
          EXPECT_LE(disagreement(sample, own, other), 1.0);
          EXPECT_LE(imbalance(sample, own, own.energy.change_J), 1.0);
          const double scale = energies_of(sample, own), rounding = rounding_of_offset(sample, own);
          EXPECT_NEAR(own.energy.dissipated_J, other.energy.dissipated_J,
                      1e-12 * scale + 10 * rounding);
          Sample near = sample;  // control
          near.theta -= 1e-6;
          if (setting.step != 0.2) continue;
          EXPECT_GT(disagreement(sample, take(*near.staged(), sample), other), 1.0);
        }
      }
    }
  }
}

// A relative error of 1e-9 in the mean force of the hardening spring is seen.
TEST(StagedDuffingControl, DoesNotBalanceTheEnergyOfAnotherSpring) {
  Random random(5);
  for (const int stages : {2, 3}) {
    const Sample sample = draw(random, true, stages, {.step = 0.2});
    const Step step = take(*sample.staged(), sample);
    const double q = sample.x[0], r = step.x_next[0];
    const double quartic =
        0.25 * sample.parameters.cubic_stiffness_N_per_m3 * (r * r * r * r - q * q * q * q);
    EXPECT_GT(imbalance(sample, step, step.energy.change_J + 1e-9 * quartic), 1.0) << stages;
  }
}

/// Lanes of one kind with their own parameters.
struct Lanes {
  std::vector<Sample> samples;
  std::vector<PartPointer> parts;
  std::vector<const Component*> pointers;

  Lanes(int count, bool node, int stages, const std::vector<Setting>& settings) {
    Random random(29);
    for (int l = 0; l < count; ++l) {
      const Setting& setting = settings[static_cast<std::size_t>(l) % settings.size()];
      samples.push_back(draw(random, node, stages, setting));
      samples.back().step_s = samples.front().step_s;
      parts.push_back(samples.back().staged());
      pointers.push_back(parts.back().get());
    }
  }
  int count() const { return static_cast<int>(parts.size()); }
  std::vector<double> all(std::vector<double> Sample::*of) const {
    std::vector<double> out;
    for (const Sample& s : samples) out.insert(out.end(), (s.*of).begin(), (s.*of).end());
    return out;
  }
};

struct Outcome {
  LaneStatus scattered, advanced;
  std::vector<double> b, x_next;
};

/// Scatters twice, then commits.
Outcome step_of(std::span<const Component* const> parts, double step_s,
                const std::vector<double>& gamma, const std::vector<double>& x,
                const std::vector<double>& input, const std::vector<double>& a) {
  testing::LaneMajor map(parts[0]->make_batch(parts));
  const LaneRange range{0, map.lanes()};
  map.prepare(step_s, gamma.data());
  map.freeze(range, x.data(), input.data());
  Outcome out{{}, {}, std::vector<double>(a.size()), std::vector<double>(x.size())};
  std::vector<double> other = a;
  for (double& value : other) value *= 0.75;
  out.scattered = map.scatter(range, other.data(), out.b.data());
  std::vector<StepEnergy> energy(parts.size());
  out.advanced = map.advance(range, a.data(), out.x_next.data(), out.b.data(), energy.data());
  for (const StepEnergy& e : energy) {
    out.b.insert(out.b.end(), {e.change_J, e.external_supply_J, e.dissipated_J});
  }
  return out;
}

/// What lane l has in an outcome of all.
Outcome lane_of(const Outcome& all, int lanes, int l) {
  const auto n = all.x_next.size() / static_cast<std::size_t>(lanes);
  const auto p = all.b.size() / static_cast<std::size_t>(lanes) - 3;
  const auto lane = static_cast<std::size_t>(l);
  Outcome own;
  for (std::size_t i = 0; i < n; ++i) own.x_next.push_back(all.x_next[lane * n + i]);
  for (std::size_t i = 0; i < p; ++i) own.b.push_back(all.b[lane * p + i]);
  for (std::size_t i = 0; i < 3; ++i) {
    own.b.push_back(all.b[static_cast<std::size_t>(lanes) * p + lane * 3 + i]);
  }
  return own;
}

Outcome step_of(const Lanes& lanes) {
  return step_of(lanes.pointers, lanes.samples[0].step_s, lanes.all(&Sample::gamma),
                 lanes.all(&Sample::x), lanes.all(&Sample::input), lanes.all(&Sample::a));
}

/// Steps of which some need the damped iteration, beside easy ones.
const std::vector<Setting> kHardAndEasy = {
    {.step = 1.0, .hardness = 0.01}, {.hardness = 1e4}, {.hardness = 0.0}, {.offset = 3.0}};

TEST(StagedDuffing, LanesGiveTheSameBitsAloneAndInABatch) {
  for (const bool node : {false, true}) {
    for (const int stages : {2, 3}) {
      const Lanes lanes(21, node, stages, kHardAndEasy);
      const Outcome together = step_of(lanes);
      ASSERT_TRUE(together.advanced.ok()) << together.advanced.lane;
      for (int l = 0; l < lanes.count(); ++l) {
        const Sample& s = lanes.samples[static_cast<std::size_t>(l)];
        const Component* const own[] = {lanes.pointers[static_cast<std::size_t>(l)]};
        const Outcome alone = step_of(own, s.step_s, s.gamma, s.x, s.input, s.a);
        const Outcome among = lane_of(together, lanes.count(), l);
        EXPECT_EQ(alone.b, among.b) << "lane " << l << ", " << stages << " stages";
        EXPECT_EQ(alone.x_next, among.x_next) << "lane " << l << ", " << stages << " stages";
      }
    }
  }
}

TEST(StagedDuffing, OneLaneThatFailsLeavesTheOthersAlone) {
  for (const int stages : {2, 3}) {
    Lanes lanes(11, true, stages, {{}});
    const Outcome sound = step_of(lanes);
    ASSERT_TRUE(sound.advanced.ok());
    lanes.samples[5].a[2] = std::numeric_limits<double>::quiet_NaN();
    const Outcome broken = step_of(lanes);
    EXPECT_EQ(broken.advanced.lane, 5);
    EXPECT_EQ(broken.advanced.fault, StepFault::not_finite);
    EXPECT_EQ(broken.scattered.lane, 5);
    for (int l = 0; l < lanes.count(); ++l) {
      if (l == 5) continue;
      EXPECT_EQ(lane_of(broken, lanes.count(), l).b, lane_of(sound, lanes.count(), l).b) << l;
      EXPECT_EQ(lane_of(broken, lanes.count(), l).x_next, lane_of(sound, lanes.count(), l).x_next);
    }
  }
}

TEST(StagedDuffing, WarmStartsMoveTheLastBitsOnly) {
  Random random(31);
  for (const bool node : {false, true}) {
    for (const int stages : {2, 3}) {
      for (int n = 0; n < 50; ++n) {
        const Sample sample = draw(random, node, stages, {.step = 0.05});
        const PartPointer part = sample.staged();
        testing::LaneMajor map = testing::batch_of_one(*part);
        map.prepare(sample.step_s, sample.gamma.data());
        map.freeze({0, 1}, sample.x.data(), sample.input.data());
        std::vector<double> cold(sample.waves()), warm(sample.waves()), again(sample.waves());
        ASSERT_TRUE(map.scatter({0, 1}, sample.a.data(), cold.data()).ok());
        std::vector<double> other = sample.a;
        for (double& value : other) value = -3.0 * value;
        ASSERT_TRUE(map.scatter({0, 1}, other.data(), warm.data()).ok());
        ASSERT_TRUE(map.scatter({0, 1}, sample.a.data(), warm.data()).ok());
        ASSERT_TRUE(map.scatter({0, 1}, sample.a.data(), again.data()).ok());
        const double size = std::sqrt(square_of(other) + square_of(cold));
        for (std::size_t j = 0; j < cold.size(); ++j) {
          EXPECT_NEAR(warm[j], cold[j], 1e-14 * size) << n;
          EXPECT_EQ(again[j], warm[j]) << "an incident wave that repeats";
        }
      }
    }
  }
}

TEST(StagedDuffing, SaysWhatRoundingMayLeaveFarFromTheOrigin) {
  double largest = 0.0;
  for_samples(20, [&](const Sample& sample) {
    const PartPointer part = sample.staged();
    const Component* const parts[] = {part.get()};
    const std::unique_ptr<StepBatch> batch = part->make_batch(parts);
    batch->prepare(sample.step_s, sample.gamma.data());
    AlignedVector record(batch->record_size()), next(record.size());
    AlignedVector a(sample.a.begin(), sample.a.end()), b(a.size());
    batch->set_state(0, sample.x.data(), record.data());
    batch->freeze({0, 1}, record.data(), sample.input.data());
    StepEnergy energy;
    const EnergyColumns columns{&energy.change_J, &energy.external_supply_J, &energy.dissipated_J};
    ASSERT_TRUE(
        batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(), columns).ok());
    const std::optional<double> bound =
        batch->roundings()->step_rounding(0, record.data(), a.data(), next.data());
    ASSERT_TRUE(bound.has_value());
    const double in = square_of(sample.a), out = square_of({b.begin(), b.end()});
    const double defect =
        energy.change_J - 0.5 * (in - out) - energy.external_supply_J + energy.dissipated_J;
    EXPECT_LE(std::abs(defect), *bound);
    largest = std::max(largest, std::abs(defect) / *bound);
  });
  EXPECT_GT(largest, 1e-3) << "a bound that says something";
}

}  // namespace
}  // namespace portwave::test_staged_duffing

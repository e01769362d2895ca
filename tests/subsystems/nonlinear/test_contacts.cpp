// The port solve of contacts against bisection of their law, written again; of one side and both, damped and not, with
// several ports, in units of 1e±9.

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/port_slopes.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_contacts {
namespace {

struct Case {
  double force, compression, damping, gap, d, step_s;
  std::string side, law;
  std::vector<double> normal, gamma, a;
  bool is_damped;
};

std::shared_ptr<const Component> part_of(const Case& own) {
  Parameters parameters = {{"force_N", own.force},
                           {"compression_m", own.compression},
                           {"damping_s_per_m", own.damping},
                           {"gap_m", own.gap},
                           {"side", own.side},
                           {"law", own.law}};
  if (own.normal.size() > 1) parameters.emplace("normal", own.normal);
  std::shared_ptr<const Component> part = make_part("contact", parameters);
  return own.is_damped ? staged_part(part, damped(gauss_stages(1))) : part;
}

/// The effort along the normal at a rate v, by the law alone.
double effort(const Case& own, double v) {
  const double power = own.law == "hertz" ? 1.5 : 1.0;
  const double k = own.force / std::pow(own.compression, power);
  const double to = own.d + own.step_s * v;
  double sum = 0.0;
  for (const double side : {1.0, -1.0}) {
    if (own.side == (side > 0.0 ? "negative" : "positive")) continue;
    const auto pressed = [&](double d) { return std::max(0.0, side * d - own.gap); };
    const auto energy = [&](double d) {
      return k * std::pow(pressed(d), power + 1.0) / (power + 1.0);
    };
    const bool is_short = std::abs(to - own.d) < 1e-6 * (pressed(own.d) + pressed(to));
    double elastic = k * std::pow(pressed(to), power);
    if (!own.is_damped) {
      elastic = is_short      ? k * std::pow(pressed(0.5 * (own.d + to)), power)
                : to == own.d ? 0.0
                              : (energy(to) - energy(own.d)) / (side * (to - own.d));
    }
    sum += side * elastic * std::max(0.0, 1.0 + side * own.damping * v);
  }
  return sum;
}

/// v + c E(v) = v₀ by bisection.
double rate(const Case& own) {
  double free = 0.0, c = 0.0;
  for (std::size_t j = 0; j < own.normal.size(); ++j) {
    free += own.normal[j] * std::sqrt(2.0 * own.gamma[j] / own.step_s) * own.a[j] / own.gamma[j];
    c += own.normal[j] * own.normal[j] / own.gamma[j];
  }
  double low = std::min(free, free - c * effort(own, free));
  double high = std::max(free, free - c * effort(own, free));
  for (int k = 0; k < 200; ++k) {
    const double middle = 0.5 * (low + high);
    (middle + c * effort(own, middle) > free ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

struct Step {
  std::vector<double> b, slopes;
  double x_next = 0.0;
  StepEnergy energy;
};

Step step_of(StepBatch& batch, const Case& own) {
  batch.prepare(own.step_s, own.gamma.data());
  AlignedVector record(batch.record_size()), next(batch.record_size());
  batch.set_state(0, &own.d, record.data());
  batch.freeze({0, 1}, record.data(), nullptr);
  Step out;
  out.b.resize(own.a.size());
  const EnergyColumns columns{&out.energy.change_J, &out.energy.external_supply_J,
                              &out.energy.dissipated_J};
  EXPECT_TRUE(
      batch.advance({0, 1}, record.data(), own.a.data(), next.data(), out.b.data(), columns).ok());
  batch.get_state(0, next.data(), &out.x_next);
  if (const auto* const slopes = dynamic_cast<const PortSlopes*>(&batch)) {
    out.slopes.resize(own.a.size() * own.a.size());
    EXPECT_TRUE(slopes->port_slopes(0, record.data(), own.a.data(), 1, out.slopes.data()));
  }
  return out;
}

Case random_case(std::mt19937& random) {
  std::uniform_real_distribution<double> share(0.0, 1.0), signed_share(-1.0, 1.0);
  const auto one_of = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  const double metre = std::pow(10.0, 9.0 * (one_of(3) - 1)),
               newton = std::pow(10.0, 9.0 * (one_of(3) - 1));
  const std::vector<std::string> sides = {"positive", "negative", "both"};
  Case own{};
  own.side = sides[static_cast<std::size_t>(one_of(3))];
  own.law = one_of(2) == 0 ? "linear" : "hertz";
  own.is_damped = one_of(2) == 0;
  own.force = newton * (1.0 + share(random));
  own.compression = metre * (0.5 + share(random));
  own.gap = (own.side == "both" ? share(random) : signed_share(random)) * metre;
  own.step_s = std::pow(10.0, -4.0 * share(random));
  own.damping = one_of(3) == 0 ? 0.0 : share(random) / metre;
  own.d = 3.0 * signed_share(random) * metre;
  own.normal = {1.0};
  if (one_of(2) == 0) own.normal = {0.48, -0.6, 0.64};
  for (std::size_t j = 0; j < own.normal.size(); ++j) {
    own.gamma.push_back(newton / metre * std::pow(10.0, 4.0 * signed_share(random)));
    const double flow = 20.0 * signed_share(random) * metre * (one_of(4) == 0 ? 1e-4 : 1.0);
    own.a.push_back(flow * own.gamma[j] / std::sqrt(2.0 * own.gamma[j] / own.step_s));
  }
  return own;
}

TEST(Contacts, SolveTheirLaw) {
  std::mt19937 random(7);
  int pressed = 0, free = 0;
  for (int n = 0; n < 4000; ++n) {
    const Case own = random_case(random);
    const std::shared_ptr<const Component> part = part_of(own);
    const std::vector<const Component*> parts = {part.get()};
    const Step step = step_of(*part->make_batch(parts), own);
    const double v = rate(own), E = effort(own, v);
    const double span = std::abs(own.d) + own.step_s * std::abs(v);
    ASSERT_NEAR(step.x_next, own.d + own.step_s * v, 1e-8 * span) << n;
    double size = 0.0, supplied_J = 0.0;
    for (std::size_t j = 0; j < own.a.size(); ++j) {
      const double s = std::sqrt(2.0 * own.gamma[j] / own.step_s);
      const double f = (s * own.a[j] - own.normal[j] * E) / own.gamma[j];
      const double b = own.a[j] - 2.0 * own.gamma[j] / s * f;
      ASSERT_NEAR(step.b[j], b, 1e-7 * (std::abs(own.a[j]) + std::abs(b))) << n;
      supplied_J += 0.5 * (own.a[j] * own.a[j] - step.b[j] * step.b[j]);
      size += own.a[j] * own.a[j] + step.b[j] * step.b[j];
    }
    // Rounding of waves and terms; of the state, of which energies are as it is stored, and what that does to the effort.
    const double steep =
        (effort(own, v + 1e-6 * std::abs(v)) - effort(own, v - 1e-6 * std::abs(v))) / 2e-6;
    const double moved = std::abs(step.x_next - own.d), change_J = std::abs(step.energy.change_J);
    const double of_state = moved > 0.0 ? 1e-15 * change_J * span / moved : 0.0;
    ASSERT_NEAR(supplied_J, step.energy.change_J + step.energy.dissipated_J,
                5e-14 * (size + change_J + step.energy.dissipated_J) + of_state +
                    4e-14 * (std::abs(E) + steep) * span)
        << n;
    ASSERT_GE(step.energy.dissipated_J, 0.0) << n;
    (E == 0.0 ? free : pressed)++;
  }
  EXPECT_GT(pressed, 1000);
  EXPECT_GT(free, 500);
}

/// With the general solver, which knows of contacts what any part tells of itself.
TEST(Contacts, TakeTheStepsOfTheGeneralSolver) {
  std::mt19937 random(8);
  for (int n = 0; n < 500; ++n) {
    Case own = random_case(random);
    own.is_damped = false;
    const std::shared_ptr<const Component> part = part_of(own);
    const std::vector<const Subsystem*> physics = {part->port_hamiltonian()};
    const std::vector<const Component*> parts = {part.get()};
    const Step general = step_of(*make_newton_batch(physics), own);
    const Step step = step_of(*part->make_batch(parts), own);
    const double span = std::abs(own.d) + std::abs(step.x_next - own.d);
    ASSERT_NEAR(step.x_next, general.x_next, 1e-9 * span) << n;
    ASSERT_NEAR(step.energy.change_J, general.energy.change_J,
                1e-8 * (std::abs(general.energy.change_J) + own.force * span * 1e-6))
        << n;
  }
}

TEST(Contacts, KnowHowWavesMoveWithWaves) {
  std::mt19937 random(9);
  for (int n = 0; n < 500; ++n) {
    const Case own = random_case(random);
    const std::shared_ptr<const Component> part = part_of(own);
    const std::vector<const Component*> parts = {part.get()};
    const std::unique_ptr<StepBatch> batch = part->make_batch(parts);
    const Step here = step_of(*batch, own);
    ASSERT_FALSE(here.slopes.empty());
    const std::size_t p = own.a.size();
    double largest = 0.0;
    for (std::size_t j = 0; j < p; ++j) {
      largest = std::max({largest, std::abs(own.a[j]), std::abs(here.b[j])});
    }
    for (std::size_t j = 0; j < p; ++j) {
      const double by = 1e-6 * largest;
      Case more = own, less = own;
      more.a[j] += by;
      less.a[j] -= by;
      const Step above = step_of(*batch, more), below = step_of(*batch, less);
      for (std::size_t i = 0; i < p; ++i) {
        const double scale =
            std::sqrt(own.gamma[i] / own.gamma[j]) + std::sqrt(own.gamma[j] / own.gamma[i]);
        const double slope = (above.b[i] - below.b[i]) / (2.0 * by);
        const double kink = std::abs(above.b[i] - 2.0 * here.b[i] + below.b[i]) / by;
        ASSERT_NEAR(here.slopes[i * p + j], slope, 1e-4 * scale + kink) << n;
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_contacts

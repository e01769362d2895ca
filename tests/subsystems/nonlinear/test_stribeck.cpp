// Friction that is larger at rest than while it slides: the port solve against bisection, the level of a step
// against the mean speed of the one before, with any stages; and why the level is held within a step.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/conformance/conformance.hpp"
#include "portwave/subsystems/core/component_digest.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_stribeck {
namespace {

constexpr double kSliding = 2.0, kAtRest = 5.0, kFallsAt = 0.3, kCreep = 0.02, kViscosity = 0.4;

std::shared_ptr<const Component> friction(double at_rest = kAtRest, double falls_at = kFallsAt,
                                          double sliding = kSliding) {
  return make_part("coulomb_damper", {{"friction_N", sliding},
                                      {"creep_speed_m_per_s", kCreep},
                                      {"viscosity_Ns_per_m", kViscosity},
                                      {"static_friction_N", at_rest},
                                      {"stribeck_speed_m_per_s", falls_at}});
}

double level(double s) {
  return kSliding + (kAtRest - kSliding) * std::exp(-(s / kFallsAt) * (s / kFallsAt));
}

struct Step {
  std::vector<double> b;
  double x_next = 0.0;
  StepEnergy energy;
};

Step step_of(StepBatch& batch, double x, double h, double gamma, const std::vector<double>& a) {
  batch.prepare(h, std::vector<double>(a.size(), gamma).data());
  AlignedVector record(batch.record_size()), next(batch.record_size());
  batch.set_state(0, &x, record.data());
  batch.freeze({0, 1}, record.data(), nullptr);
  Step out;
  out.b.resize(a.size());
  const EnergyColumns columns{&out.energy.change_J, &out.energy.external_supply_J,
                              &out.energy.dissipated_J};
  EXPECT_TRUE(
      batch.advance({0, 1}, record.data(), a.data(), next.data(), out.b.data(), columns).ok());
  batch.get_state(0, next.data(), &out.x_next);
  return out;
}

/// γu + L tanh(u/r) + cu = right.
double speed_by_bisection(double gamma, double L, double right) {
  double low = std::min(0.0, right / gamma), high = std::max(0.0, right / gamma);
  for (int i = 0; i < 300; ++i) {
    const double u = 0.5 * (low + high);
    (gamma * u + L * std::tanh(u / kCreep) + kViscosity * u > right ? high : low) = u;
  }
  return 0.5 * (low + high);
}

std::vector<StageRule> rules() {
  return {gauss_stages(1),
          gauss_stages(2),
          gauss_stages(3),
          damped(stage_rule(1, StageNodes::radau)),
          damped(stage_rule(2, StageNodes::radau)),
          stage_rule(3, StageNodes::radau)};
}

TEST(Stribeck, HoldsTheLevelOfTheSpeedOfTheStepBefore) {
  for (const StageRule& rule : rules()) {
    const std::shared_ptr<const Component> part =
        rule == gauss_stages(1) ? friction() : staged_part(friction(), rule);
    const Component* const parts[] = {part.get()};
    const auto batch = part->make_batch(parts);
    for (const double h : {1e-6, 1e-3, 1.0, 100.0}) {
      for (const double gamma : {1e-3, 1.0, 1e4}) {
        for (const double x : {0.0, -0.2, 0.5, 30.0}) {
          const double s = std::sqrt(2.0 * gamma / h);
          std::vector<double> a;
          double mean = 0.0, lost_J = 0.0;
          std::vector<double> b;
          for (int i = 0; i < rule.count; ++i) {
            const double root = std::sqrt(rule.b[static_cast<std::size_t>(i)]);
            const double w = i == 1 ? -7.0 : 4.0 + 3.0 * i;  // e + γf
            a.push_back(root * w / s);
            const double v = speed_by_bisection(gamma, level(x), w);
            mean += root * root * v;
            lost_J += h * root * root * v * (level(x) * std::tanh(v / kCreep) + kViscosity * v);
            b.push_back(root * (w - 2.0 * gamma * v) / s);
          }
          const Step own = step_of(*batch, x, h, gamma, a);
          double in_J = 0.0, size_J = 0.0;
          for (std::size_t i = 0; i < a.size(); ++i) {
            EXPECT_NEAR(own.b[i], b[i], 1e-13 * (std::abs(a[i]) + std::abs(b[i])));
            in_J += 0.5 * (a[i] * a[i] - own.b[i] * own.b[i]);
            size_J += 0.5 * (a[i] * a[i] + own.b[i] * own.b[i]);
          }
          EXPECT_NEAR(own.x_next, mean, 1e-12 * (std::abs(mean) + 10.0 / gamma));
          EXPECT_NEAR(own.energy.dissipated_J, lost_J, 1e-11 * size_J);
          EXPECT_NEAR(own.energy.dissipated_J, in_J, 1e-12 * size_J);
          EXPECT_EQ(own.energy.change_J, 0.0);
          EXPECT_GE(own.energy.dissipated_J, 0.0);
        }
      }
    }
  }
}

TEST(StribeckControl, ALawThatFallsWithinTheStepHasSeveralSolutions) {
  // Solutions of γu + F(u) = w with the level at u itself, and with one that is held.
  const double gamma = 0.5, w = 4.1234567;
  int falling = 0, held = 0;
  const auto defect = [&](double u, double L) { return gamma * u + L * std::tanh(u / kCreep) - w; };
  for (int i = 0; i < 100000; ++i) {
    const double u = 1e-4 * i, v = u + 1e-4;
    falling += defect(u, level(u)) * defect(v, level(v)) < 0.0 ? 1 : 0;
    held += defect(u, kAtRest) * defect(v, kAtRest) < 0.0 ? 1 : 0;
  }
  EXPECT_EQ(falling, 3);
  EXPECT_EQ(held, 1);
}

TEST(Stribeck, KeepsAllLawsOfAPart) {
  for (const char* type : {"coulomb_damper", "rotational_coulomb_damper"}) {
    const bool turns = std::string(type) != "coulomb_damper";
    const auto part =
        make_part(type, {{turns ? "friction_Nm" : "friction_N", 2.0},
                         {turns ? "static_friction_Nm" : "static_friction_N", 3.5},
                         {turns ? "creep_speed_rad_per_s" : "creep_speed_m_per_s", 0.1},
                         {turns ? "stribeck_speed_rad_per_s" : "stribeck_speed_m_per_s", 0.7},
                         {turns ? "viscosity_Nms_per_rad" : "viscosity_Ns_per_m", 0.3}});
    for (const double scale : {1.0, 1e3, 1e-3}) {
      for (const std::uint64_t seed : {1u, 2u, 3u}) {
        ConformanceOptions options;
        options.seed = seed;
        options.state_scale = scale;
        options.nonexpansive = true;  // within a step it is monotone
        options.steps_s = {1e-6, 1e-4, 1e-2, 1.0, 10.0};
        for (const LawReport& report : check_all(*part->port_hamiltonian(), options)) {
          EXPECT_TRUE(report.holds) << type << " breaks " << report.law << " by " << report.worst
                                    << ": " << report.detail;
        }
      }
    }
    EXPECT_TRUE(check_rollback(*part).holds);
    EXPECT_THROW((void)staged_part(friction(), 1, 2), ConfigError);  // substeps
  }
}

TEST(Stribeck, WithTheFrictionOfSlidingAtRestIsThePartWithoutAState) {
  const auto plain = make_part("coulomb_damper", {{"friction_N", kSliding},
                                                  {"creep_speed_m_per_s", kCreep},
                                                  {"viscosity_Ns_per_m", kViscosity}});
  for (const double at_rest : {0.0, kSliding}) {
    const auto own = friction(at_rest);
    EXPECT_EQ(own->signature().state_size(), 0);
    EXPECT_EQ(own->batch_key(), plain->batch_key());
    EXPECT_EQ(component_digest(*own), component_digest(*plain));
    const Component *const parts[] = {own.get()}, *const others[] = {plain.get()};
    for (const double wave : {-3.0, 0.01, 8.0}) {
      EXPECT_EQ(step_of(*own->make_batch(parts), 0.0, 1e-3, 2.0, {wave}).b,
                step_of(*plain->make_batch(others), 0.0, 1e-3, 2.0, {wave}).b);
    }
  }
  EXPECT_EQ(friction()->signature().state_size(), 1);
}

TEST(Stribeck, EveryParameterIsInItsDigest) {
  const std::uint64_t own = component_digest(*friction());
  EXPECT_EQ(own, component_digest(*friction()));
  EXPECT_NE(own, component_digest(*friction(5.1)));
  EXPECT_NE(own, component_digest(*friction(kAtRest, 0.31)));
  EXPECT_NE(own, component_digest(*friction(kAtRest, kFallsAt, 2.1)));
}

TEST(Stribeck, SaysWhatIsWrongWithItsParameters) {
  const auto where = [](double at_rest, double falls_at) -> std::string {
    try {
      (void)friction(at_rest, falls_at);
    } catch (const ConfigError& error) {
      return error.issues().front().where + ": " + error.issues().front().what;
    }
    return "";
  };
  EXPECT_EQ(where(5.0, 0.1), "");
  EXPECT_EQ(where(0.0, 0.0), "");
  EXPECT_EQ(where(1.5, 0.1),
            "/static_friction_N: must be at least friction_N = 2, or 0 for as much, got 1.5");
  EXPECT_EQ(where(5.0, 0.0),
            "/stribeck_speed_m_per_s: must be > 0 where static_friction_N exceeds friction_N: the "
            "speed at which friction falls");
}

}  // namespace
}  // namespace portwave::test_stribeck

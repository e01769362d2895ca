// Parts that are held under a load: their increments shrink to round-off, and every step must be found.

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "support/systems/nonlinear_parts.hpp"

namespace portwave::test_rest_under_load {
namespace {

/// A linear damped oscillator written as a nonlinear part, H = k q²/2 + p²/(2m), whose only input is a
/// force.
std::unique_ptr<NonlinearPortHamiltonian> oscillator(double mass_kg, double stiffness,
                                                     double damping, bool with_hessian,
                                                     DiscreteGradient gradient) {
  Hamiltonian H;
  H.value = [=](const double* x) {
    return 0.5 * stiffness * x[0] * x[0] + 0.5 * x[1] * x[1] / mass_kg;
  };
  H.gradient = [=](const double* x, double* g) {
    g[0] = stiffness * x[0];
    g[1] = x[1] / mass_kg;
  };
  if (with_hessian) {
    H.hessian = [=](const double*, double* hessian) {
      hessian[0] = stiffness;
      hessian[1] = hessian[2] = 0.0;
      hessian[3] = 1.0 / mass_kg;
    };
  }
  Structure s = Structure::zero(2, 1);
  s.J.insert(0, 1) = 1.0;
  s.J.insert(1, 0) = -1.0;
  s.R.insert(1, 1) = damping;
  s.G.insert(1, 0) = 1.0;
  NonlinearPortHamiltonian::Options options;
  options.discrete_gradient = gradient;
  return std::make_unique<NonlinearPortHamiltonian>(
      Signature{"oscillator", {{"q", "m"}, {"p", "kg m/s"}}, {}, {{"force", "N"}}}, std::move(s),
      std::move(H), std::move(options));
}

/// The number of the step that failed, from x; −1: none of them.
int first_failure(const Subsystem& part, std::array<double, 2>& x, double load, double step_s,
                  int steps) {
  const Component* parts[] = {&part};
  const auto batch = part.make_batch(parts);
  batch->prepare(step_s, nullptr);
  AlignedVector record(batch->record_size()), next(batch->record_size());
  batch->set_state(0, x.data(), record.data());
  for (int k = 0; k < steps; ++k) {
    batch->freeze({0, 1}, record.data(), &load);
    if (!batch->advance({0, 1}, record.data(), nullptr, next.data(), nullptr, {}).ok()) return k;
    record.swap(next);
  }
  batch->get_state(0, record.data(), x.data());
  return -1;
}

TEST(RestUnderLoad, ADampedOscillatorSettlesWhereItsSpringCarriesTheForce) {
  for (const double mass_kg : {1e-3, 50.0}) {
    for (const double stiffness : {1.0, 40.0, 1e5}) {
      for (const double load : {0.0, 0.1, -1234.5}) {
        for (const bool with_hessian : {true, false}) {
          for (const auto kind : {DiscreteGradient::gonzalez, DiscreteGradient::mean_value,
                                  DiscreteGradient::itoh_abe}) {
            const double frequency = std::sqrt(stiffness / mass_kg);
            const double damping = 0.4 * mass_kg * frequency;
            const auto part = oscillator(mass_kg, stiffness, damping, with_hessian, kind);
            for (const double step : {0.02, 0.3}) {
              std::array<double, 2> x = {0.7, -0.1};
              const int failed =
                  first_failure(*part, x, load, step / frequency, static_cast<int>(300 / step));
              const std::string where =
                  std::string(to_string(kind)) + ", m=" + std::to_string(mass_kg) +
                  ", k=" + std::to_string(stiffness) + ", F=" + std::to_string(load) +
                  ", h=" + std::to_string(step) + "/omega";
              EXPECT_EQ(failed, -1) << where;
              if (failed >= 0) continue;
              EXPECT_NEAR(x[0], load / stiffness, 1e-13 * std::abs(load) / stiffness + 1e-18)
                  << where;
              EXPECT_LE(std::abs(x[1]) / mass_kg,
                        1e-13 * frequency * std::abs(load) / stiffness + 1e-18 * frequency)
                  << where;
            }
          }
        }
      }
    }
  }
}

// An arm whose tip is as good as locked along the wall's normal meets an impedance of 4e5 there, and waves to
// match. Newton's method from rest ends where no step is better, and the solution is the free motion.
TEST(NewtonBatch, FindsTheStepOfAnArmBesideAWallThatItDoesNotTouch) {
  const auto part = make_part("planar_arm", {{"lengths_m", std::vector<double>{0.6322505391780302}},
                                             {"masses_kg", std::vector<double>{1.6168072765418169}},
                                             {"tip_port", true}});
  const Component* parts[] = {part.get()};
  const auto batch = part->make_batch(parts);
  const std::array<double, 3> impedance = {43.086577220154041, 369342.99270967458,
                                           107.80602171411314};
  const std::array<double, 3> a = {-4.9952079013261512, -11.776682997022366, 4.9916114542326637};
  const std::array<double, 2> x = {-1.58432, 2.29349};
  batch->prepare(0.01, impedance.data());
  AlignedVector record(batch->record_size()), next(batch->record_size());
  batch->set_state(0, x.data(), record.data());
  batch->freeze({0, 1}, record.data(), nullptr);
  std::array<double, 3> b = {};
  ASSERT_TRUE(batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(), {}).ok());
  std::array<double, 2> moved = {};
  batch->get_state(0, next.data(), moved.data());
  EXPECT_NEAR(moved[0] - x[0], 0.107, 0.003);
}

}  // namespace
}  // namespace portwave::test_rest_under_load

// Parts whose H is written down as it stands in a book: near its minimum it is the difference of energies
// that are far larger, and known to their rounding only.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>
#include <portwave/subsystems/nonlinear/nonlinear_part.hpp>

namespace portwave::test_plain_storage {
namespace {

/// mgl(1 − cos φ) + L²/2J, with mgl and J times `unit`.
std::shared_ptr<const Component> plain_pendulum(DiscreteGradient kind, double unit = 1.0) {
  Signature signature;
  signature.type = "plain_pendulum";
  signature.states = {{"angle", "rad"}, {"momentum", "kg m^2/s"}};
  signature.ports = {{"shaft", Causality::effort_in, Domain::rotation, 1}};
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.G.insert(1, 0) = 1.0;
  const double weight = 9.4 * unit, inertia = 0.77 * unit;
  Hamiltonian hamiltonian;
  hamiltonian.value = [=](const double* x) {
    return weight * (1.0 - std::cos(x[0])) + x[1] * x[1] / (2.0 * inertia);
  };
  hamiltonian.gradient = [=](const double* x, double* g) {
    g[0] = weight * std::sin(x[0]);
    g[1] = x[1] / inertia;
  };
  NonlinearPortHamiltonian::Options options;
  options.discrete_gradient = kind;
  return std::make_shared<NonlinearPortHamiltonian>(signature, structure, hamiltonian, options);
}

struct Case {
  std::string name;
  DiscreteGradient kind;
  double unit = 1.0;
  int stages = 1;
};

class PlainStorage : public ::testing::TestWithParam<Case> {};

/// One swings and pulls the other, which hangs at rest, by a spring.
TEST_P(PlainStorage, FromRestAtTheMinimumIsNoViolation) {
  const Case& own = GetParam();
  SystemBuilder builder;
  const auto part = plain_pendulum(own.kind, own.unit);
  builder.add("one", part, {.initial_state = {1.5, 0.0}});
  builder.add("two", part, {.initial_state = {0.0, 0.0}});
  builder.add("spring", make_part("torsional_spring", {{"stiffness_Nm_per_rad", 2.0 * own.unit}}));
  builder.connect("one.shaft", "spring.left");
  builder.connect("two.shaft", "spring.right");
  StepperOptions options;
  options.step_s = 0.01;
  options.method = WaveCoupling::automatic(1e-10);
  options.method.waves().stages = own.stages;
  Stepper stepper(builder.build(), options);
  stepper.step(500);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds)
      << stepper.certificate().max_passivity_residual_J << " J in step "
      << stepper.certificate().worst_passivity_step;
  EXPECT_LE(std::abs(stepper.energy().final_J - stepper.energy().initial_J),
            1e-7 * stepper.energy().initial_J);
  EXPECT_GT(std::abs(stepper.state("two")[0]), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, PlainStorage,
    ::testing::Values(Case{"gonzalez", DiscreteGradient::gonzalez},
                      Case{"gonzalez_small", DiscreteGradient::gonzalez, 1e-9},
                      Case{"gonzalez_two_stages", DiscreteGradient::gonzalez, 1.0, 2},
                      Case{"mean_value", DiscreteGradient::mean_value},
                      Case{"mean_value_small", DiscreteGradient::mean_value, 1e-9},
                      Case{"mean_value_large", DiscreteGradient::mean_value, 1e9},
                      Case{"itoh_abe", DiscreteGradient::itoh_abe}),
    [](const auto& test) { return test.param.name; });

/// What counts as rounding is that: next to nothing beside what the part works with.
TEST(PlainStorageControl, WhatCountsAsRoundingIsNextToNothing) {
  const auto part = plain_pendulum(DiscreteGradient::gonzalez);
  const double terms = part->port_hamiltonian()->storage_terms();
  EXPECT_GT(terms, 1.0);
  EXPECT_LT(terms, 1000.0);
  EXPECT_EQ(make_part("pendulum", {{"mass_kg", 1.0}, {"length_m", 1.0}})
                ->port_hamiltonian()
                ->storage_terms(),
            0.0);
}

}  // namespace
}  // namespace portwave::test_plain_storage

// A pendulum as a part of one's own, whose torque moves a sprung mass through a lever of constant
// ratio. See docs/tutorial/your-own-part.md.

#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include <portwave/extend/conformance.hpp>
#include <portwave/portwave.hpp>

/// H(θ, p) = p²/(2 m l²) + m g l (1 − cos θ); the port is the pivot's torque e and rate f.
std::unique_ptr<portwave::Subsystem> pendulum(double mass_kg, double length_m, double friction) {
  const double inertia = mass_kg * length_m * length_m;
  const double weight = mass_kg * 9.81 * length_m;

  portwave::Signature signature;
  signature.type = "pendulum";
  signature.states = {{"angle", "rad"}, {"momentum", "kg m^2/s"}};
  signature.ports = {{"pivot", portwave::Causality::effort_in, portwave::Domain::rotation, 1}};

  portwave::Structure structure = portwave::Structure::zero(/*states=*/2, /*inputs=*/1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.R.insert(1, 1) = friction;
  structure.G.insert(1, 0) = 1.0;

  portwave::Hamiltonian hamiltonian;
  hamiltonian.value = [=](const double* x) {
    return 0.5 * x[1] * x[1] / inertia + weight * (1.0 - std::cos(x[0]));
  };
  hamiltonian.gradient = [=](const double* x, double* g) {
    g[0] = weight * std::sin(x[0]);
    g[1] = x[1] / inertia;
  };
  hamiltonian.hessian = [=](const double* x, double* h) {  // optional; column-major
    h[0] = weight * std::cos(x[0]);
    h[1] = h[2] = 0.0;
    h[3] = 1.0 / inertia;
  };
  return std::make_unique<portwave::NonlinearPortHamiltonian>(
      std::move(signature), std::move(structure), std::move(hamiltonian),
      portwave::NonlinearPortHamiltonian::Options{});
}

int main() {
  portwave::ConformanceOptions usual;
  usual.steps_s = {1e-4, 1e-2};
  for (const portwave::LawReport& law : check_all(*pendulum(0.5, 1.0, 0.01), usual)) {
    std::printf("%-28s %s\n", law.law.c_str(), law.holds ? "holds" : law.detail.c_str());
    if (!law.holds) return 1;
  }

  portwave::SystemBuilder builder;
  builder.add("pendulum", pendulum(0.5, 1.0, 0.01), {.initial_state = {1.0, 0.0}});
  builder.add("mass", portwave::linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 10}));
  builder.join(portwave::joint::Transformer{0.3}, {"pendulum.pivot", "mass.coupling"});
  const portwave::System system = builder.build();
  portwave::Stepper stepper(
      system,
      {.step_s = 0.01, .method = portwave::WaveCoupling{.iterations = 40, .impedance = {1.0}}});
  for (int n = 0; n < 500; ++n) {
    const portwave::StepReport report = stepper.step();
    if (n % 100 == 0) {
      std::printf("t = %.2f s  angle = %+.5f rad  H = %.5f J\n", stepper.time_s(),
                  stepper.state("pendulum")[0], report.energy.stored_J);
    }
  }
  return stepper.certificate().status == portwave::CertificateStatus::violated ? 1 : 0;
}

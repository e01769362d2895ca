// What ports cost that lead nowhere: a step of a part with such ports beside one of the same part without
// them, and beside one whose ends are solved by waves. On one thread, with the ledger and the guard.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Causality;
using portwave::Component;
using portwave::Domain;
using portwave::Stepper;
using portwave::System;
using portwave::SystemBuilder;
namespace joint = portwave::joint;

using Part = std::shared_ptr<const Component>;

enum class Ends { idle, by_waves, none };

/// The part "p" from a state, with ports that lead nowhere (`idle`) and dampers at the others.
System system_of(const Part& part, const std::vector<double>& state,
                 const std::vector<std::string>& idle, Ends ends) {
  SystemBuilder builder;
  builder.add("p", part, {.initial_state = state});
  joint::Kernel kernel;
  std::vector<std::string> joined;
  Eigen::Index size = 0;
  const auto grow = [&](bool of_effort, int dimension) {
    for (int c = 0; c < dimension; ++c) {
      kernel.E.conservativeResizeLike(Eigen::MatrixXd::Zero(size + 1, size + 1));
      kernel.F.conservativeResizeLike(Eigen::MatrixXd::Zero(size + 1, size + 1));
      (of_effort ? kernel.E : kernel.F)(size, size) = 1.0;
      ++size;
    }
  };
  for (const portwave::Port& port : part->signature().ports) {
    const std::string name = "p." + port.name;
    const bool takes_effort = port.causality == Causality::effort_in;
    if (std::find(idle.begin(), idle.end(), port.name) == idle.end()) {
      builder.join(joint::Resistive{2.0}, {name});
    } else if (ends == Ends::by_waves) {
      joined.push_back(name);
      grow(takes_effort, port.dimension);
    } else {
      builder.join(takes_effort ? portwave::Joint(joint::Free{}) : joint::Fixed{}, {name});
    }
  }
  if (ends == Ends::by_waves) {  // one kernel joins them to a body at rest
    builder.add("rest", portwave::make_part("mass", {{"mass_kg", 1.0}}));
    joined.emplace_back("rest.port");
    grow(true, 1);
    builder.join(std::move(kernel), std::move(joined));
  }
  return builder.build();
}

struct Case {
  std::string name;
  Part part, without;  ///< with the ports and without them
  std::vector<double> state;
  std::vector<std::string> idle;
  double step_s = 0.005;
};

void compare(const Report& report, const Case& own) {
  portwave::StepperOptions options;
  options.step_s = own.step_s;
  std::vector<std::unique_ptr<Stepper>> steppers;
  std::vector<Timer> timers;
  for (const Ends ends : {Ends::idle, Ends::none, Ends::by_waves}) {
    const Part& part = ends == Ends::none ? own.without : own.part;
    steppers.push_back(
        std::make_unique<Stepper>(system_of(part, own.state, own.idle, ends), options));
    Stepper& stepper = *steppers.back();
    stepper.step(200);
    timers.push_back(processor_timed([&stepper] { stepper.step(); }));
  }
  const std::span<const double> there = steppers[1]->state(0);
  for (std::size_t i = 0; i < there.size(); ++i) {
    for (const std::size_t other : {0, 2}) {
      const double error = std::abs(steppers[other]->state(0)[i] - there[i]);
      if (!(error <= 1e-6 * (1.0 + std::abs(there[i])))) {
        throw std::runtime_error(fmt::format("{}: state {} is off by {}", own.name, i, error));
      }
    }
  }
  const Contest contest = take_turns(timers);
  report.add({.name = fmt::format("idle_ports/{}", own.name), .sense = Sense::at_most, .goal = 1.1},
             contest, 0, 1);
  report.add({.name = fmt::format("idle_ports/{}/by_waves", own.name), .sense = Sense::at_most},
             contest, 2, 1);
}

Part arm(bool tip) {
  return portwave::make_part("planar_arm", {{"lengths_m", std::vector<double>{1.0, 0.8, 0.6}},
                                            {"masses_kg", std::vector<double>{5.0, 4.0, 3.0}},
                                            {"tip_port", tip}});
}

Part pendulum(bool shaft) {
  portwave::Signature signature;
  signature.type = "pendulum";
  signature.states = {{"angle", "rad"}, {"momentum", ""}};
  if (shaft) signature.ports = {{"shaft", Causality::effort_in, Domain::rotation, 1}};
  auto s = portwave::Structure::zero(2, shaft ? 1 : 0);
  s.J.insert(0, 1) = 1.0;
  s.J.insert(1, 0) = -1.0;
  if (shaft) s.G.insert(1, 0) = -1.0;
  const portwave::Hamiltonian H{
      [](const double* x) { return 0.5 * x[1] * x[1] - 9.81 * std::cos(x[0]); },
      [](const double* x, double* g) {
        g[0] = 9.81 * std::sin(x[0]);
        g[1] = x[1];
      },
      {}};
  return std::make_shared<portwave::NonlinearPortHamiltonian>(
      signature, s, H, portwave::NonlinearPortHamiltonian::Options{.typical_state = {1.0, 1.0}});
}

Part without_inputs(const Part& part) {
  const auto& own = dynamic_cast<const portwave::LinearPortHamiltonian&>(*part);
  portwave::Signature signature = own.signature();
  signature.ports.clear();
  signature.inputs.clear();
  auto s = portwave::Structure::zero(signature.state_size(), 0);
  s.J = own.structure().J;
  s.R = own.structure().R;
  return std::make_shared<portwave::LinearPortHamiltonian>(signature, s, own.Q());
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("idle_ports", 3);
  if (report.only_lists(argc, argv)) return 0;
  const std::vector<double> bent = {1.0, 0.5, -0.2, 0.0, 0.0, 0.0};
  compare(report, {"arm_with_dampers", arm(true), arm(false), bent, {"tip"}});
  // Of this one all ports lead nowhere, without the tip those of the joints.
  compare(report,
          {"lone_arm", arm(true), arm(false), bent, {"joint_1", "joint_2", "joint_3", "tip"}});
  compare(report, {"pendulum", pendulum(true), pendulum(false), {1.0, 0.0}, {"shaft"}});
  const Part chain = portwave::make_part(
      "mass_spring_damper_chain", {{"masses", 20}, {"mass_kg", 1.0}, {"stiffness_N_per_m", 100.0}});
  std::vector<double> pulled(static_cast<std::size_t>(chain->signature().state_size()), 0.0);
  pulled[0] = 0.1;
  compare(report, {"chain", chain, without_inputs(chain), pulled, {"left", "right"}});
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "idle_ports: {}\n", error.what());
  return 1;
}

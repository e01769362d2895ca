#include "differential/engine_run.hpp"

#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <portwave/coupling/system/system.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/descriptor/descriptor_part.hpp>
#include <portwave/subsystems/linear/linear_part.hpp>

namespace portwave::differential {
namespace {

SparseMatrix sparse(const Matrix& m) { return m.sparseView(0.0, 0.0); }

Signal signal_of(const Drive& drive) {
  switch (drive.kind) {
    case Drive::Kind::none:
      return {};
    case Drive::Kind::constant:
      return Signal::constant(drive.amplitude);
    case Drive::Kind::harmonic:
      return Signal::sine_product(drive.amplitude, {{drive.frequency_Hz, drive.phase_rad}});
    case Drive::Kind::step:
      return Signal::piecewise_linear({{drive.from_s, 0.0}, {drive.until_s, drive.amplitude}});
  }
  return {};
}

std::shared_ptr<const Subsystem> subsystem_of(const PartData& part) {
  Signature signature;
  signature.type = "random";
  for (int k = 0; k < part.states(); ++k) signature.states.push_back({fmt::format("x{}", k), ""});
  for (int j = 0; j < part.ports(); ++j) {
    const bool effort_in = part.effort_in[static_cast<std::size_t>(j)];
    signature.ports.push_back({fmt::format("p{}", j),
                               effort_in ? Causality::effort_in : Causality::flow_in,
                               Domain::generic, 1});
  }
  for (std::size_t k = 0; k < part.drives.size(); ++k) {
    signature.inputs.push_back({fmt::format("u{}", k), ""});
  }
  LinearPortHamiltonian::Options options;
  options.allow_active = part.active;
  if (part.descriptor) {
    return std::make_shared<DescriptorPortHamiltonian>(
        signature,
        DescriptorForm{sparse(part.E), sparse(part.J), sparse(part.R), sparse(part.Q),
                       sparse(part.G)},
        options);
  }
  return std::make_shared<LinearPortHamiltonian>(
      signature,
      Structure{sparse(part.J), sparse(part.R), sparse(part.G), sparse(part.P), sparse(part.S),
                sparse(part.N)},
      sparse(part.Q), options);
}

Joint joint_of(const JointData& joint) {
  switch (joint.kind) {
    case JointKind::connection:
      return joint::Connection{};
    case JointKind::common_effort:
      return joint::CommonEffort{};
    case JointKind::common_flow:
      return joint::CommonFlow{};
    case JointKind::transformer:
      return joint::Transformer{joint.value};
    case JointKind::gyrator:
      return joint::Gyrator{joint.value};
    case JointKind::skew_gain:
      return joint::SkewGain{joint.first};
    case JointKind::kernel:
      return joint::Kernel{joint.first, joint.second};
    case JointKind::free:
      return joint::Free{};
    case JointKind::fixed:
      return joint::Fixed{};
    case JointKind::resistive:
      return joint::Resistive{joint.value};
  }
  return joint::Free{};
}

System system_of(const Network& network) {
  SystemBuilder builder;
  for (std::size_t i = 0; i < network.parts.size(); ++i) {
    const PartData& part = network.parts[i];
    SystemBuilder::PartOptions options;
    options.initial_state.assign(part.start.data(), part.start.data() + part.start.size());
    for (std::size_t k = 0; k < part.drives.size(); ++k) {
      if (part.drives[k].kind == Drive::Kind::none) continue;
      options.inputs.emplace(fmt::format("u{}", k), signal_of(part.drives[k]));
    }
    builder.add(fmt::format("s{}", i), subsystem_of(part), std::move(options));
  }
  for (const JointData& joint : network.joints) {
    std::vector<std::string> ports;
    for (const PortRef& port : joint.ports)
      ports.push_back(fmt::format("s{}.p{}", port.part, port.port));
    builder.join(joint_of(joint), std::move(ports));
  }
  return builder.build();
}

void record(const Network& network, const System& system, const Stepper& stepper, Course& course) {
  LongVector x(network.states()), e(network.ports()), f(network.ports());
  Eigen::Index state = 0, port = 0;
  for (std::size_t i = 0; i < network.parts.size(); ++i) {
    const int part = system.find_part(fmt::format("s{}", i));
    for (const double value : stepper.state(part)) x[state++] = value;
    for (int j = 0; j < network.parts[i].ports(); ++j, ++port) {
      const int scalar_port = system.first_scalar_port(part, j);
      e[port] = stepper.effort(scalar_port);
      f[port] = stepper.flow(scalar_port);
    }
  }
  course.x.push_back(std::move(x));
  course.e.push_back(std::move(e));
  course.f.push_back(std::move(f));
}

}  // namespace

EngineRun run_engine(const Network& network, const EngineSettings& settings) {
  EngineRun run;
  StepperOptions options;
  options.step_s = network.step_s;
  options.start = Start::as_given;  // states are drawn at random, and the reference takes them so
  if (settings.without_waves) {
    options.method = *settings.without_waves;
  } else {
    options.method = CouplingMethod::automatic(settings.tolerance);
    options.method.waves().integrator = StageKind::gauss;  // as the reference
    options.method.waves().guard = settings.guard;
  }
  std::optional<System> system;
  std::optional<Stepper> stepper;
  try {
    system.emplace(system_of(network));
    stepper.emplace(*system, options);
  } catch (const std::exception& error) {
    run.refused = error.what();
    return run;
  }
  run.method = stepper->method().reason;
  run.stored.push_back(stepper->energy().initial_J);
  record(network, *system, *stepper, run.course);
  for (int n = 0; n < network.steps; ++n) {
    StepReport report;
    try {
      report = stepper->step();
    } catch (const StepError& error) {
      run.failed = error.what();
      break;
    }
    record(network, *system, *stepper, run.course);
    run.stored.push_back(report.energy.stored_J);
    run.supplied.push_back(report.energy.supplied_J);
    run.dissipated.push_back(report.energy.dissipated_J);
    run.evaluations.push_back(report.iterations);
  }
  run.status = to_string(stepper->certificate().status);
  run.not_converged = stepper->iterations().not_converged;
  if (stepper->waves() == nullptr) return run;
  if (const GuardStatistics* const guard = stepper->waves()->guard(); guard != nullptr) {
    run.guarded_steps = guard->steps;
    run.min_alpha = guard->min_alpha;
  }
  return run;
}

}  // namespace portwave::differential

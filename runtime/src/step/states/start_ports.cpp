#include "step/states/start_ports.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include "portwave/coupling/network/linearisation.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

/// A first step of another stepper, without reports.
std::optional<PortValues> first_step(StepEngine& engine, StepperOptions options) {
  const System& system = engine.system();
  const bool can_go_back = std::ranges::all_of(
      system.parts(), [](const Part& part) { return part.component->capabilities().restorable; });
  if (!can_go_back) return std::nullopt;
  options.start_s = engine.clock().time_s();
  Stepper stepper(system, options);
  const std::span<const double> held = engine.settings();
  if (!held.empty()) stepper.set_inputs(held);
  stepper.step();
  PortValues out;
  for (int port = 0; port < static_cast<int>(system.scalar_ports().size()); ++port) {
    out.effort.push_back(stepper.effort(port));
    out.flow.push_back(stepper.flow(port));
  }
  return out;
}

std::optional<PortValues> by_equations(StepEngine& engine) {
  const System& system = engine.system();
  OperatingPoint point;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const std::span<const double> own = engine.first_state(part);
    point.state.insert(point.state.end(), own.begin(), own.end());
  }
  const std::span<const double> held = engine.settings();
  point.input.assign(held.begin(), held.end());
  point.time_s = engine.clock().time_s();
  return port_values(system, point);
}

}  // namespace

StartPorts::StartPorts(const StepperOptions& options)
    : options_{.step_s = options.step_s,
               .sizes = options.sizes,
               .start = options.start,
               .method = options.method} {}

EffortFlow StartPorts::of(int scalar_port, StepEngine& engine) {
  if (effort_.empty()) find(engine);
  return {effort_[at(scalar_port)], flow_[at(scalar_port)]};
}

void StartPorts::find(StepEngine& engine) {
  const std::size_t ports = engine.system().scalar_ports().size();
  effort_.assign(ports, 0.0);
  flow_.assign(ports, 0.0);
  if (!engine.together().has_whole()) return;
  std::optional<PortValues> found;
  try {
    found = by_equations(engine);
    if (!found) found = first_step(engine, options_);
  } catch (const std::exception&) {
    return;  // the first step of the run fails likewise, and says why
  }
  if (!found) return;
  effort_ = std::move(found->effort);
  flow_ = std::move(found->flow);
}

}  // namespace portwave

#include "portwave/runtime/output/linearise.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

Linearisation linearise(const Stepper& stepper, const std::vector<std::string>& outputs) {
  const System& system = stepper.system();
  OperatingPoint point;
  std::vector<int> first_state;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    first_state.push_back(static_cast<int>(point.state.size()));
    const std::span<const double> own = stepper.state(i);
    point.state.insert(point.state.end(), own.begin(), own.end());
  }
  for (const System::SettableInput& input : system.settable_inputs()) {
    const bool by_waves = stepper.method().method.couples_by_waves();
    point.input.push_back(by_waves ? stepper.input(input.part, input.input) : input.initial);
  }
  for (int j = 0; j < static_cast<int>(system.scalar_ports().size()); ++j) {
    point.effort.push_back(stepper.effort(j));
    point.flow.push_back(stepper.flow(j));
  }
  point.time_s = stepper.time_s();
  std::vector<LinearOutput> wanted;
  for (const std::string& label : outputs) {
    const Quantity found = find_quantity(stepper, label);
    switch (found.kind) {
      case Quantity::Kind::state:
        wanted.push_back({LinearOutput::Kind::state, first_state[at(found.part)] + found.index});
        break;
      case Quantity::Kind::effort:
        wanted.push_back({LinearOutput::Kind::effort, found.index});
        break;
      case Quantity::Kind::flow:
        wanted.push_back({LinearOutput::Kind::flow, found.index});
        break;
      default:
        throw std::invalid_argument(fmt::format(
            "\"{}\" is no state, effort or flow: a linearisation has no such output", label));
    }
  }
  return linearised(system, point, wanted);
}

}  // namespace portwave

// A controller of one's own within the stepper: a function of C++ as a block of a signal graph.
// See docs/concepts/signals.md.

#include <cmath>
#include <cstdio>
#include <memory>
#include <span>

#include <portwave/portwave.hpp>

int main() {
  portwave::SystemBuilder builder;
  builder.add(
      "slide",
      portwave::linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 4, .damping_Ns_per_m = 5}),
      {.inputs = {{"force", portwave::Signal::settable()}}});
  builder.join(portwave::joint::Free{}, {"slide.coupling"});
  const portwave::System system = builder.build();
  portwave::StepperOptions options{.step_s = 0.001,
                                   .method = portwave::CouplingMethod::automatic()};

  // [controller]
  const auto my_controller = [](const portwave::SampleTime&, std::span<const double> u,
                                std::span<double> y) { y[0] = 40.0 * (1.0 - u[0]); };

  const int slide = system.find_part("slide");
  portwave::SignalGraphBuilder graph(system);
  graph.sensor("position", {portwave::Sensor::Kind::state, slide, 0});
  graph.block("controller", portwave::block::callback(1, 1, my_controller), {"position"},
              /*every=*/20);
  graph.actuate("controller", slide, 0);  // its input 0, which is Signal::settable()
  options.signals = std::make_shared<const portwave::SignalGraph>(graph.build());
  // [controller]

  portwave::Stepper stepper(system, options);
  stepper.step(10000);
  const double position = stepper.state("slide")[0];
  std::printf("at rest at %.6f m, where 40 N/m (1 m - x) = 4 N/m x\n", position);
  return std::abs(position - 40.0 / 44.0) < 1e-6 ? 0 : 1;
}

// Replicas of a servo, each with a voltage of its own. See docs/concepts/ensembles.md.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <vector>

#include <portwave/portwave.hpp>

int main() try {
  const portwave::Scenario scenario = portwave::load_scenario("examples/embedding/servo.json");
  const portwave::System& system = scenario.system;
  const portwave::StepperOptions& options = scenario.options;
  const int steps = 20;

  // [ensemble]
  portwave::Ensemble ensemble(system, 10000, options, {.threads = 2});

  const std::size_t N = 10000, T = steps, n = ensemble.state_size(), m = ensemble.input_size();
  std::vector<double> x0;  // [N, n], or empty: each starts as the system does
  std::vector<double> u(N * T * m), x(N * T * n);
  for (std::size_t i = 0; i < u.size(); ++i) u[i] = 24.0 * static_cast<double>(i / (T * m)) / N;
  ensemble.rollout(x0, u, steps, x);  // u [N, T, m] -> x [N, T, n]
  // [ensemble]

  // The servo is linear: half the voltage, half the speed.
  const std::size_t speed =
      static_cast<std::size_t>(ensemble.first_state(system.find_part("motor"))) + 1;
  const auto last = [&](std::size_t replica) { return x[(replica * T + T - 1) * n + speed]; };
  std::printf("motor speed after %d steps: %.6f rad/s at 6 V, %.6f rad/s at 12 V\n", steps,
              last(N / 4), last(N / 2));
  return std::abs(last(N / 2) - 2.0 * last(N / 4)) < 1e-6 * std::abs(last(N / 2)) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

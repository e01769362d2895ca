#pragma once

// The inner iteration of a macro-step, run plainly on one thread.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/interface_solver.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave::testing {

/// What some macro-steps took.
struct InnerRun {
  int most_evaluations = 0;  ///< of any step after the first; the limit if it was met
  double contraction = 0.0;  ///< of the last step: mean factor of the residual per evaluation
  bool converged = true;
};

/// Puts the islands of `method` that take it in charge of the interface update.
inline void use_interface(InterfaceSolver& solver, const System& system,
                          const WaveCoupling& method) {
  for (int island = 0; island < system.island_count(); ++island) {
    const bool named = std::find(method.interface_islands.begin(), method.interface_islands.end(),
                                 island) != method.interface_islands.end();
    if (named || method.kind == WaveUpdate::interface) solver.use(island, true);
  }
}

/// |P b̂ − u|², |u|² and |b̂|² by island.
struct IslandGaps {
  std::vector<double> square, incident, outgoing;

  double largest_residual() const {
    double largest = 0.0;
    for (std::size_t i = 0; i < square.size(); ++i) {
      if (square[i] == 0.0) continue;
      largest = std::max(largest, std::sqrt(square[i] / std::max(incident[i], outgoing[i])));
    }
    return largest;
  }
};

inline IslandGaps gaps_of(WaveIteration& iteration) {
  const WaveDiscretisation& waves = iteration.waves();
  const System& system = waves.system();
  const auto islands = static_cast<std::size_t>(system.island_count());
  IslandGaps out{std::vector<double>(islands), std::vector<double>(islands),
                 std::vector<double>(islands)};
  const std::span<const double> u = iteration.u(), b = iteration.b(), shadow = iteration.shadow();
  for (int port = 0; port < static_cast<int>(system.scalar_ports().size()); ++port) {
    const auto w = static_cast<std::size_t>(waves.wave_of_port(port));
    const auto island = static_cast<std::size_t>(
        system.island_of_part(system.scalar_ports()[static_cast<std::size_t>(port)].part));
    out.square[island] += (shadow[w] - u[w]) * (shadow[w] - u[w]);
    out.incident[island] += u[w] * u[w];
    out.outgoing[island] += b[w] * b[w];
  }
  return out;
}

/// Runs `steps` macro-steps from the initial states to `tolerance` on every island, with the kind,
/// relaxation and impedances (by port) of `method`.
inline InnerRun run_steps(const System& system, double step_s, const WaveCoupling& method,
                          int steps = 5, double tolerance = 1e-10, int limit = 200) {
  WaveDiscretisation waves(system, step_s, method.impedance);
  WaveIteration iteration(waves, inner_update_of(method));
  AlignedVector record = waves.initial_record(), next = record;
  AlignedVector input(waves.input_size(), 0.0);
  AlignedVector b(static_cast<std::size_t>(waves.wave_size()), 0.0);
  InterfaceSolver solver(waves);
  use_interface(solver, system, method);
  InnerRun run;
  for (int step = 0; step < steps; ++step) {
    PhaseStatus failure;
    if (waves.driven() && !waves.sample_inputs(step * step_s, input.data(), failure)) return run;
    if (!waves.freeze_all(record.data(), input.data()).ok()) return run;
    iteration.start(b);
    solver.begin();
    int evaluations = 0;
    double first = 0.0, residual = 0.0;
    while (evaluations < limit) {
      if (!iteration.evaluate(record.data()).ok()) return run;
      ++evaluations;
      const IslandGaps gaps = gaps_of(iteration);
      residual = gaps.largest_residual();
      if (evaluations == 1) first = residual;
      if (!(residual > tolerance)) break;
      for (int island = 0; island < system.island_count(); ++island) {
        if (!solver.engaged(island)) continue;
        solver.measure(island, iteration.u().data(), iteration.shadow().data());
        solver.accept(island, gaps.square[static_cast<std::size_t>(island)],
                      gaps.outgoing[static_cast<std::size_t>(island)]);
        solver.advance(island, record.data());
      }
      iteration.update();
      for (int w = 0; w < waves.wave_size(); ++w) {
        const int part = waves.part_of_wave(w);
        const int island = part < 0 ? -1 : system.island_of_part(part);
        if (island < 0 || !solver.active(island)) continue;
        const auto at = static_cast<std::size_t>(w);
        iteration.u()[at] = solver.next(island).of(at);
      }
    }
    run.converged = run.converged && residual <= tolerance;
    if (step > 0 || steps == 1) run.most_evaluations = std::max(run.most_evaluations, evaluations);
    run.contraction =
        evaluations > 1 && first > 0.0 ? std::pow(residual / first, 1.0 / (evaluations - 1)) : 0.0;
    if (!iteration.commit(record.data(), next.data(), b.data()).ok()) {
      run.converged = false;
      return run;
    }
    std::swap(record, next);
  }
  return run;
}

}  // namespace portwave::testing

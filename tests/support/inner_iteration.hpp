#pragma once

// The inner iteration of a macro-step, run plainly on one thread.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/interface_solver.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"

namespace portwave::testing {

/// What some macro-steps took.
struct InnerRun {
  int most_evaluations = 0;  ///< of any step after the first; the limit if it was met
  double contraction = 0.0;  ///< of the last step: mean factor of the residual per evaluation
  bool converged = true;
};

/// Puts the islands of `method` that take it in charge of the interface update.
inline void use_interface(InterfaceSolver& solver, const System& system,
                          const CouplingMethod& method) {
  for (int island = 0; island < system.island_count(); ++island) {
    const bool named = std::find(method.interface_islands.begin(), method.interface_islands.end(),
                                 island) != method.interface_islands.end();
    if (named || method.kind == MethodKind::interface) solver.use(island, true);
  }
}

/// Runs `steps` macro-steps from the initial states to `tolerance` on every island, with the kind,
/// relaxation and impedances (by port) of `method`.
inline InnerRun run_steps(const System& system, double step_s, const CouplingMethod& method,
                          int steps = 5, double tolerance = 1e-10, int limit = 200) {
  WaveDiscretisation waves(system, step_s, method.impedance);
  const auto size = static_cast<std::size_t>(waves.wave_size());
  AlignedVector record = waves.initial_record(), next = record;
  AlignedVector input(waves.input_size(), 0.0);
  AlignedVector u(size, 0.0), b(size, 0.0), exchanged(size, 0.0);
  InterfaceSolver solver(waves);
  use_interface(solver, system, method);
  InnerRun run;
  for (int step = 0; step < steps; ++step) {
    PhaseStatus failure;
    if (waves.driven() && !waves.sample_inputs(step * step_s, input.data(), failure)) return run;
    if (!waves.freeze_all(record.data(), input.data()).ok()) return run;
    waves.interconnection().exchange(b.data(), u.data());
    solver.begin();
    int evaluations = 0;
    double first = 0.0, residual = 0.0;
    while (evaluations < limit) {
      if (!waves.scatter_all(record.data(), u.data(), b.data()).ok()) return run;
      ++evaluations;
      waves.interconnection().exchange(b.data(), exchanged.data());
      const auto islands = static_cast<std::size_t>(system.island_count());
      std::vector<double> gap(islands), incident(islands), outgoing(islands);
      for (int port = 0; port < static_cast<int>(system.scalar_ports().size()); ++port) {
        const auto w = static_cast<std::size_t>(waves.wave_of_port(port));
        const auto island = static_cast<std::size_t>(
            system.island_of_part(system.scalar_ports()[static_cast<std::size_t>(port)].part));
        gap[island] += (exchanged[w] - u[w]) * (exchanged[w] - u[w]);
        incident[island] += u[w] * u[w];
        outgoing[island] += b[w] * b[w];
      }
      residual = 0.0;
      for (std::size_t i = 0; i < islands; ++i) {
        if (gap[i] == 0.0) continue;
        residual = std::max(residual, std::sqrt(gap[i] / std::max(incident[i], outgoing[i])));
      }
      if (evaluations == 1) first = residual;
      if (!(residual > tolerance)) break;
      for (int island = 0; island < system.island_count(); ++island) {
        if (!solver.engaged(island)) continue;
        solver.accept(island, gap[static_cast<std::size_t>(island)]);
        solver.advance(island, record.data(), u.data(), exchanged.data());
      }
      if (method.kind == MethodKind::douglas_rachford) {
        waves.interconnection().douglas_rachford(method.relaxation, b.data(), u.data());
      } else {
        for (std::size_t w = 0; w < size; ++w) u[w] += method.relaxation * (exchanged[w] - u[w]);
      }
      for (int w = 0; w < waves.wave_size(); ++w) {
        const int part = waves.part_of_wave(w);
        if (part < 0 || !solver.active(system.island_of_part(part))) continue;
        u[static_cast<std::size_t>(w)] = solver.u()[w];
      }
    }
    run.converged = run.converged && residual <= tolerance;
    if (step > 0 || steps == 1) run.most_evaluations = std::max(run.most_evaluations, evaluations);
    run.contraction =
        evaluations > 1 && first > 0.0 ? std::pow(residual / first, 1.0 / (evaluations - 1)) : 0.0;
    if (!waves.advance_all(record.data(), exchanged.data(), next.data(), b.data(), {}).ok()) {
      run.converged = false;
      return run;
    }
    std::swap(record, next);
  }
  return run;
}

}  // namespace portwave::testing

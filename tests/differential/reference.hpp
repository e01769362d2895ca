#pragma once

// The monolithic implicit midpoint step of a whole network, without waves, by one dense (large
// networks: sparse) factorisation. Shares no code with the engine.

#include <vector>

#include "differential/network.hpp"

namespace portwave::differential {

using LongVector = Eigen::Matrix<long double, Eigen::Dynamic, 1>;

/// What happened, step by step; row 0 is the start, ports have no values there (zero).
struct Course {
  std::vector<LongVector> x;  ///< states of all parts, in part order
  std::vector<LongVector> e;  ///< mean efforts of the step that ends here, by port
  std::vector<LongVector> f;
};

/// Errors that are put into a run to learn what they do. Noise of junctions is that of an inner
/// iteration that stops at `tolerance`: (δe, δf) of a port has the size of `tolerance` times the
/// waves of its island.
struct Noise {
  double tolerance = 0.0;
  double rounding = 0.0;  ///< relative change of every state after every step
  /// Needed with `tolerance`: an energy by island [J], and an impedance by port.
  std::vector<double> island_energy = {};
  std::vector<double> impedance = {};
};

/// How well the step's equations, scaled to unit rows and columns, can be solved: 1/condition; 0:
/// singular.
struct StepQuality {
  double reciprocal_condition = 0.0;
};

/// In long double.
Course run_reference(const Network& network, StepQuality* quality = nullptr,
                     const Noise* noise = nullptr);
/// The same equations in double: what rounding does to them.
Course run_reference_in_double(const Network& network);

/// Impedance of every port at which the part alone, its other ports closed by u = 0, does not
/// reflect in one step; 0 or less where there is none.
std::vector<double> port_impedances(const Network& network);

/// The orthogonal projector onto (ker E)^⊥.
Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic> projector(const PartData& part);

}  // namespace portwave::differential

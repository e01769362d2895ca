#pragma once

#include <string>
#include <vector>

#include "portwave/coupling/system/system.hpp"

namespace portwave {

/// What the junctions of a system make of its parts' outputs: with y = y⁰ + D u, y⁰ = (G + P)ᵀz,
///   u = M y⁰,
/// by scalar port. `issues` says which junctions do not give the inputs of their ports;
/// M is then of no use. Junctions that no feedthrough ties together are solved one by one, densely.
/// `left_out`: by scalar port, those that are alone in their junctions and whose rows of M stay empty.
SparseMatrix port_gains(const System& system, const SparseMatrix& D, Issues& issues,
                        const std::vector<bool>& left_out = {});

/// S + N of the scalar ports of all parts: block-diagonal, ports × ports.
SparseMatrix port_feedthrough(const System& system);

/// True for scalar ports whose input is the effort.
std::vector<bool> effort_inputs(const System& system);

/// Names of ports, at most six.
std::string port_names(const System& system, const std::vector<int>& ports);

}  // namespace portwave

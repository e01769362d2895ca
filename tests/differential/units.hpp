#pragma once

#include "differential/network.hpp"
#include "differential/random.hpp"

namespace portwave::differential {

/// The same network in other units: energies times `energy`, the efforts of all ports of a joint
/// times a power of two of its own within 10^±decades, flows by what keeps their product an energy
/// rate, the states of a part times another one. All factors are powers of two: the solution is the
/// same, scaled. `per_state`: states of ordinary parts are scaled one by one.
void change_units(Random& random, Network& network, double energy, double decades, bool per_state);

}  // namespace portwave::differential

#pragma once

#include "differential/network.hpp"
#include "differential/parts.hpp"
#include "differential/random.hpp"

namespace portwave::differential {

/// How random parts are put together.
struct NetworkSpec {
  int parts = 4;
  int loops = 0;  ///< couplings beyond a tree
  int islands = 1;
  double descriptors = 0.0;        ///< share of descriptor parts
  double driven = 0.2;             ///< share of parts with an external input
  double stiffness_decades = 0.0;  ///< spread of Q over the parts
  double gain_decades = 0.0;       ///< spread of G over the parts
  double lossless = 0.5;           ///< share of parts without dissipation
  double feedthrough = 0.3;        ///< share with P, S, N
  double singular_Q = 0.1;
  double ends =
      0.3;  ///< share of parts with one more port that is free, fixed or closed by a resistor
  bool at_rest = false;       ///< starts from zero; every island is driven
  bool plain_joints = false;  ///< connections and 0- and 1-junctions only
  int max_states = 6;
};

/// Parts and joints; step size and number of steps are left open.
void add_random_network(Random& random, const NetworkSpec& spec, Network& network);

/// A random Dirac structure as a kernel, written in rows that mix everything.
JointData random_kernel(Random& random, const Network& network, std::vector<PortRef> ports);

/// h from hω within these bounds, ω being the fastest rate of the parts; and the drives of all
/// parts, which need h: constants, harmonics of 20 to 200 steps, jumps.
void choose_step(Random& random, Network& network, double smallest, double largest);
void choose_drives(Random& random, Network& network);

/// Makes one damper negative, so that energy grows by e^(2·rate) over the run. False when no part
/// has a state that could.
bool make_active(Random& random, Network& network, double rate);

}  // namespace portwave::differential

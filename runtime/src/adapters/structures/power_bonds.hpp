#pragma once

#include <string>
#include <vector>

#include "adapters/structures/structure.hpp"

namespace portwave::structures {

/// One end of a bond: a pair of variables of an element that becomes a port.
struct BondEnd {
  std::size_t element = 0;
  std::string input, output;  ///< variables
  std::string name = {};      ///< of the port, where the FMU declares it; else empty
  bool answers_effort = false;
  bool counts_outward = false;
  bool says_direction = false;  ///< the FMU, or who wrote the structure, says so
};

/// Connections there and back that carry power, between one element and one or more others: what the hub answers
/// goes to all members (q_i = n_i q), and what they answer goes to it in sum (p = − Σ n_i p_i, flows into the
/// parts).
struct Bond {
  BondEnd hub;
  std::vector<BondEnd> members;
  std::vector<double> ratios = {};  ///< n_i, by member
};

struct BondOptions {
  bool in_a_process = false;
  double step_s = 1e-3;  ///< that responses are measured over
};

/// The power bonds among the connections of a structure, each input in one at most, and why others are none
/// (Structure::notes). Pairs are known from what FMUs declare, from names of bonds in the structure, from those
/// that the user lists, or by units. Which way power counts is what FMUs declare, or else measured: of a part
/// that gives no power of its own, the mean answer to a larger input is larger where it counts inwards. For this
/// FMUs are started. Defects are added to `issues`.
std::vector<Bond> find_bonds(Structure& structure, const BondOptions& options, Issues& issues);

}  // namespace portwave::structures

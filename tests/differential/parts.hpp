#pragma once

#include "differential/network.hpp"
#include "differential/random.hpp"

namespace portwave::differential {

/// What a random part is made of. Matrices that must be semidefinite are exactly so: their factors
/// lie on a coarse grid.
struct PartSpec {
  int states = 2;
  int ports = 1;
  int drives = 0;
  double stiffness = 1.0;    ///< a power of two: Q and, with it, frequencies
  double gain = 1.0;         ///< a power of two: G, and impedances by its square
  double damping = 0.0;      ///< a power of two: of [R P; Pᵀ S]; 0: lossless
  bool feedthrough = false;  ///< P, S and N
  bool singular_Q = false;   ///< Q has a kernel: motions that store nothing
  bool at_rest = false;      ///< starts from zero
};

/// Dense J, Q, G: states of no special meaning.
PartData random_part(Random& random, const PartSpec& spec);

/// A descriptor part of index ≤ 1. `dense`: E is a full matrix of low rank, else diagonal with
/// zeros.
PartData descriptor_part(Random& random, const PartSpec& spec, bool dense);

/// Masses in a row between springs, (q, p), and ports at both ends.
struct BlockSpec {
  int masses = 3;
  double mass = 1.0;
  double stiffness = 1.0;
  double damper = 0.0;  ///< between neighbours
  double spring = 0.0;  ///< > 0: the right port is the end of one more spring, as a state (flow-in)
  bool right_port = true;
  int drives = 0;  ///< 1: a force on the first mass
};
PartData chain_block(const BlockSpec& spec);

/// A bar (1 dof per node) or an Euler–Bernoulli beam (2 dof per node: deflection, rotation) of
/// equal elements with consistent mass matrix: x = (q, p), K singular: it floats. Effort-in ports
/// at all degrees of freedom of both ends, the left end first.
struct ElementSpec {
  bool beam = false;
  int elements = 2;
  double length = 1.0;    ///< of an element; a power of two keeps the rigid motions exact
  double rigidity = 1.0;  ///< EA or EI
  double density = 1.0;   ///< mass per length
  double damping = 0.0;   ///< stiffness proportional: R = damping·K on p
};
PartData element_piece(const ElementSpec& spec);

/// The largest |λ| of the part's own motion [1/s], ports left open; roughly so for descriptor
/// parts.
double fastest_rate(const PartData& part);

}  // namespace portwave::differential

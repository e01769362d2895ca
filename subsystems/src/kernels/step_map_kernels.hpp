#pragma once

#include "kernels/linear_kernels.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {

/// The implicit midpoint step of W linear parts of one shape with their scalar ports closed, in
/// δ = x_mid − x and the port inputs u (see ClosedStep):
///   (2/h) δ = (J − R) z + B [u; ū],  z = Q(x + δ),  y = C z + D [u; ū],  αu + βy = s a.
/// Values of parts lie W side by side.
struct StepMapTask {
  int width = kLaneGroup;  ///< W: kLaneGroup or 1
  int n = 0;               ///< states
  int p = 0;               ///< scalar ports
  int q = 0;               ///< external inputs
  /// The entries of a matrix, where any of the parts has one.
  struct Entries {
    const LinearEntry* at = nullptr;
    int count = 0;
    const double* values = nullptr;  ///< count × W
  };
  Entries Q;  ///< by rows
  Entries JR, B;
  Entries C, D;                             ///< of ports alone
  const int* Q_rows = nullptr;              ///< n + 1: where each row of Q begins
  const unsigned char* at_ports = nullptr;  ///< n: whether C has entries for that z
  double step_s = 0.0;
  /// What δ is multiplied and u divided by to be roots of energies; (n + p) × W.
  const double* scale = nullptr;
  /// α, β, s and the impedance γ of the ports; p × W each.
  const double* closures = nullptr;
  enum Closure { kAlpha, kBeta, kRoot, kImpedance, kClosureCount };
  const unsigned char* effort_in = nullptr;  ///< p

  double* work = nullptr;      ///< StepMapKernels::work doubles
  double* delta = nullptr;     ///< n × (n + p + q), column by column, of (x, a, ū)
  double* outgoing = nullptr;  ///< b − σa: p × (n + p + q), column by column
  double* sigma = nullptr;  ///< p: ±1, so that what is on the diagonal of b − σa is the smaller
  /// W: 0 where the maps are as exact as doubles can be, but for what is less than 1e-10 of its column,
  /// else not: such a part is to be solved for otherwise.
  double* inexact = nullptr;
};

struct StepMapKernels {
  /// Doubles of scratch.
  long (*work)(int width, int n, int p, int q);
  /// Each column by an LU without pivoting, in variables scaled to roots of energies, and a
  /// correction whose residual has twice the digits of a double.
  void (*solve)(const StepMapTask&);
};

/// The kernels for the instruction set in use.
const StepMapKernels& step_map_kernels();

PORTWAVE_DECLARE_KERNELS(const StepMapKernels kStepMapKernels)

}  // namespace portwave

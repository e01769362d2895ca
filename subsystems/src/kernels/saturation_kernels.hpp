#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

/// Ports without a state, each of which obeys y = F tanh(u/r) + c u: with its wave relation αu + βy = s a,
///   k u + G tanh(u/r) = s a,  k = α + βc,  G = βF;   b = slope·u + sign·a.
namespace saturation {

/// The coefficients of a lane, in order; W values for each.
enum Coefficient {
  kRight,     ///< s
  kOwn,       ///< k > 0
  kLimit,     ///< G ≥ 0
  kPerReach,  ///< 1/r
  kSlope,
  kSign,
  kForce,      ///< F
  kViscosity,  ///< c
  kCoefficientCount
};

struct Task {
  const double* coefficients = nullptr;  ///< group by group, port by port
  int ports = 1;
  int first = 0;  ///< lane groups
  int last = 0;
  int stride = 0;
  double step_s = 0.0;
  const double* a = nullptr;
  double* b = nullptr;
  EnergyColumns energy;  ///< that nothing is stored and nothing supplied is written, too
};

/// Those that return an int return the first lane whose waves are not finite, or −1.
struct Kernels {
  int (*scatter)(const void* task);
  int (*scatter_alone)(const void* task);  ///< lane groups of one lane
  int (*advance)(const void* task);        ///< the same, with what is dissipated
  int (*advance_alone)(const void* task);
};

const Kernels& kernels();

}  // namespace saturation

PORTWAVE_DECLARE_KERNELS(const saturation::Kernels kSaturation)

}  // namespace portwave

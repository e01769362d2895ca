#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

/// A mass on a hardening spring with S spring ports (flow-in, the free end of a coupling spring and
/// damper) and M mass ports (effort-in, on the mass), in this order. State q, v, δ₁ … δ_S; one
/// force F.
///
/// With the mean velocity w = v̄ and per port r = Σ drive_j a_j, the step is the root d = w − w₀ of
/// the increasing cubic ((c₃d + c₂)d + c₁)d + c₀ − r = 0, and b_j = (a_j − b⁰_j − T_j a_j) − W_j d.
/// With damping θ > 0 the stage sees ∇̄H + θ(∇H(x⁺) − ∇̄H), H being convex: w is v̄ + ½θ(v⁺ − v).
namespace duffing {

/// Coefficients of the scatter block, in order; then drive, T, W of every port.
enum ScatterCoefficient { kCubic, kScatterCount };
/// Coefficients of the step block, in order; then those of every spring port, then of every mass
/// port.
enum StepCoefficient {
  kStep,
  kInertia,
  kLinear,
  kStiffness,
  kCubicStiffness,
  kMass,
  kDamping,
  kQuadraticBend,  ///< (1 + 2θ)k₃
  kLinearBend,     ///< ³⁄₂(1 + θ)k₃
  kVelocityShare,  ///< 2/(1 + θ): of w − v, what v moves
  kStepCount
};
enum SpringCoefficient {
  kCouplingStiffness,
  kCouplingDamping,
  kKappa,
  kShare,            ///< 1/(κ + γ)
  kWaveScale,        ///< s
  kElongationForce,  ///< γ k₁₂/(κ + γ)
  kWavePerForce,     ///< 2γ/(s (κ + γ))
  kSpringCount
};
enum MassCoefficient { kWavePerVelocity /* 2γ/s */, kMassCount };

/// Offsets in a record: what a scatter reads first. b⁰ has one entry per port, δ one per spring.
enum RecordSlot {
  kC2,
  kC1,
  kC0,
  kWarmIncrement,
  kWarmDrive,
  kWarmInverse,
  kColdInverse,  ///< 1/c₁: the warm start of a lane that has just been frozen
  kFixedRecord
};

inline constexpr int record_size(int springs, int masses) {
  return kFixedRecord + (springs + masses) + 1 /* w₀ */ + 2 + springs + 1 /* F */;
}
inline constexpr int offset_slot(int port) { return kFixedRecord + port; }
inline constexpr int base_slot(int ports) { return kFixedRecord + ports; }
inline constexpr int state_slot(int ports) { return base_slot(ports) + 1; }
inline constexpr int force_slot(int springs, int masses) {
  return record_size(springs, masses) - 1;
}

struct Group {
  const double* scatter;
  const double* step;
  bool shared;
};

struct Task {
  const Group* groups = nullptr;
  int first = 0;
  int last = 0;
  int width = kLaneGroup;
  int stride = 0;
  const double* a = nullptr;
  double* b = nullptr;
  double* record = nullptr;
  double* next = nullptr;
  double theta = 0.0;  ///< of all lanes
  EnergyColumns energy;
};

/// What the coefficients of a part depend on beside its impedances, in this order.
enum Parameter {
  kPartMass,
  kPartStiffness,
  kPartDamping,
  kPartCubicStiffness,
  kPartCouplingStiffness,
  kPartCouplingDamping,
  kParameterCount
};

inline constexpr int scatter_size(int springs, int masses) {
  return kScatterCount + 3 * (springs + masses);
}
inline constexpr int step_size(int springs, int masses) {
  return kStepCount + kSpringCount * springs + kMassCount * masses;
}

/// The coefficients of one lane group: W values for each, or one where the lanes have everything in
/// common. `scatter` and `step` have room for W of each.
struct MapTask {
  int width = kLaneGroup;
  double step_s = 0.0;
  double theta = 0.0;
  const double* parameters = nullptr;  ///< W values for each
  const double* impedance = nullptr;   ///< of port j of lane l at [j·stride + l]
  int stride = 0;
  double* scatter = nullptr;
  double* step = nullptr;
  bool shared = false;  ///< set: there is one of each
};
enum class MapDefect { none, singular, overflow };

/// Those that return an int return the first lane that failed, or −1.
struct Kernels {
  int (*scatter)(const void* task);        ///< a Task
  int (*scatter_alone)(const void* task);  ///< a Task of width 1
  int (*advance)(const void* task);
  int (*freeze)(const Task&);
  /// |H| + Σ|∂H/∂xᵢ xᵢ| of the states in `record` and `next`, together, or |a|² where that is larger: W
  /// values for a lane group.
  void (*energy_terms)(const Task&, int group, double* out);
  MapDefect (*maps)(MapTask&);
};

/// For (S, M) = (1, 0) and (2, 2).
const Kernels& oscillator_kernels();
const Kernels& node_kernels();

}  // namespace duffing

PORTWAVE_DECLARE_KERNELS(const duffing::Kernels kDuffingOscillator, kDuffingNode)

}  // namespace portwave

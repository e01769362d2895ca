#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

/// The mass of duffing_kernels.hpp, S spring ports and M mass ports, with s Gauss stages. Waves and
/// inputs are those of a part with stages, number stage·(S + M) + port.
///
/// With ηᵢ = h wᵢ, w the velocity at the stages, the step is the root η of s cubics, linear but for
/// the hardening spring,
///   Lη + k₃ (1/bᵢ)∫₀¹ lᵢ X³ dτ + … = rᵢ,   X(τ) = q + Σⱼ λⱼ(τ) ηⱼ,  λⱼ = ∫₀^τ lⱼ,
/// r = Σ drive_j a_j, and b_j = a_j − T_j a_j − b⁰_j − W_j d with the increment d = η − h w₀. The
/// integrand is of degree 4s − 1, so 2s Gauss points give the integral.
namespace staged_duffing {

inline constexpr int kMostNodes = 2 * kMostStages;

/// Numbers of s alone, of which the first s or 2s of each dimension are used.
struct Rule {
  double c[kMostStages], b[kMostStages];
  double root_b[kMostStages];                          ///< √bᵢ
  double inverse_sum[kMostStages];                     ///< Σⱼ (A⁻¹)ᵢⱼ
  double inverse[kMostStages][kMostStages];            ///< A⁻¹
  double final_rate[kMostStages];                      ///< (bᵀA⁻¹)ⱼ
  double final_rate_sum;                               ///< 1 − (−1)^s
  double node[kMostNodes];                             ///< τ
  double reach[kMostNodes][kMostStages];               ///< λⱼ(τ)
  double weight[kMostStages][kMostNodes];              ///< of the quadrature, times lᵢ(τ)/bᵢ
  double slope[kMostStages][kMostStages][kMostNodes];  ///< 3 weight λⱼ
};

/// The scatter block: k₃; L; of every spring port drive, T, W, each s×s row by row; of every mass
/// port drive and W, which are diagonal.
inline constexpr int kCubic = 0;
enum SpringMap { kDrive, kThrough, kWave, kSpringMaps };
inline constexpr int spring_at(int stages, int spring, int map, int i, int j) {
  return 1 + stages * stages * (1 + kSpringMaps * spring + map) + stages * i + j;
}
enum MassMap { kMassDrive, kMassWave, kMassMaps };
inline constexpr int mass_at(int stages, int springs, int mass, int map, int i) {
  return 1 + stages * stages * (1 + kSpringMaps * springs) + stages * (kMassMaps * mass + map) + i;
}

/// The step block: these; the drag at w₀ of each stage; of every spring port its own; of every mass
/// port b − a per velocity at each stage.
enum StepCoefficient {
  kStep,
  kPerStep,  ///< 1/h
  kInertia,  ///< 2m/h
  kPull,     ///< of the linear spring and the dampers, to be compared with it
  kStiffness,
  kCubicStiffness,
  kMass,
  kDamping,
  kStepCount
};
/// With M = Γ + K, K = k₁₂hA + c₁₂ of a spring's end, the slip u − w = M⁻¹(s a/√b − k₁₂δ − Γw).
enum SpringCoefficient { kCouplingStiffness, kCouplingDamping, kSpringCount };
enum SpringRow {
  kElongationForce,    ///< ΓM⁻¹k₁₂
  kWavePerElongation,  ///< (2γ/s)√b M⁻¹k₁₂
  kWavePerVelocity,    ///< (2γ/s)√b M⁻¹K
  kSlipPerElongation,  ///< M⁻¹k₁₂
  kSlipPerVelocity,    ///< M⁻¹Γ, of a velocity that all stages share
  kSpringRows
};
enum SlipMap { kSlipPerWave, kSlipPerIncrement, kSlipMaps };  // M⁻¹s/√b and M⁻¹Γ/h
inline constexpr int spring_block(int stages) {
  return kSpringCount + kSpringRows * stages + kSlipMaps * stages * stages;
}
inline constexpr int drag_at(int i) { return kStepCount + i; }
inline constexpr int of_spring_at(int stages, int spring, int i) {
  return kStepCount + stages + spring_block(stages) * spring + i;
}
inline constexpr int spring_row_at(int stages, int spring, int row, int i) {
  return of_spring_at(stages, spring, kSpringCount + stages * row + i);
}
inline constexpr int slip_at(int stages, int spring, int map, int i, int j) {
  return of_spring_at(stages, spring,
                      kSpringCount + kSpringRows * stages + stages * (stages * map + i) + j);
}
inline constexpr int of_mass_at(int stages, int springs, int mass, int i) {
  return of_spring_at(stages, springs, 0) + stages * mass + i;
}

/// Offsets in a record; what a scatter reads stands first.
template <int kSprings, int kMasses, int kStages>
struct Slots {
  static constexpr int kPorts = kSprings + kMasses;
  static constexpr int kWarm = 0;                               ///< d of the last solve
  static constexpr int kWarmDrive = kWarm + kStages;            ///< r it was solved for
  static constexpr int kInverse = kWarmDrive + kStages;         ///< of the Jacobian near it
  static constexpr int kNodes = kInverse + kStages * kStages;   ///< X at d = 0
  static constexpr int kOffset = kNodes + 2 * kStages;          ///< b⁰, like waves
  static constexpr int kConstant = kOffset + kPorts * kStages;  ///< r at d = 0
  static constexpr int kColdInverse = kConstant + kStages;
  static constexpr int kBase = kColdInverse + kStages * kStages;  ///< w₀
  static constexpr int kState = kBase + 1;
  static constexpr int kForce = kState + 2 + kSprings;  ///< √bᵢFᵢ
  static constexpr int kSize = kForce + kStages;
};

struct Group {
  const double* scatter;
  const double* step;
  bool shared;
};

struct Task {
  const Rule* rule = nullptr;
  const Group* groups = nullptr;
  int first = 0;
  int last = 0;
  int width = kLaneGroup;
  int stride = 0;
  const double* a = nullptr;
  double* b = nullptr;
  double* record = nullptr;
  double* next = nullptr;
  EnergyColumns energy;
};

/// Each returns the first lane that failed, or −1.
struct Kernels {
  int springs, masses, stages;
  int record_size, state_slot, force_slot;
  int (*scatter)(const void* task);        ///< a Task
  int (*scatter_alone)(const void* task);  ///< a Task of width 1
  int (*advance)(const void* task);
  int (*freeze)(const Task&);
  /// √bᵢ h ẋᵢ of the step that was advanced last from the records, which `a` made of them.
  void (*increments)(const Task&, double* out);
};

/// (S, M) = (1, 0) and (2, 2), each with 2 and 3 stages.
inline constexpr int kKinds = 4;

}  // namespace staged_duffing

PORTWAVE_DECLARE_KERNELS(const staged_duffing::Kernels kStagedDuffing[staged_duffing::kKinds])

}  // namespace portwave

#pragma once

#include <memory>
#include <span>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The whole coupled system by s Gauss stages, without waves: one sparse Newton on
///   Δᵢ = h[(J − R)∇̄ᵢH + (G − P)uᵢ],   yᵢ = (G + P)ᵀ∇̄ᵢH + (S + N)uᵢ   for every part and stage,
///   E eᵢ + F fᵢ = 0                                                   for every junction and stage,
/// with X(τ) = x + Σⱼ (∫₀^τ lⱼ) Δⱼ, ∇̄ᵢH = (1/bᵢ) ∫₀¹ lᵢ ∇H(X), J, R, G, P, S, N at X(cᵢ), and
/// x⁺ = x + Σᵢ bᵢΔᵢ. If a part has an E, E Δᵢ stands for Δᵢ, and the components of x⁺ that E does not see
/// are those of the polynomial through the X(cᵢ) at the end of the step. With s = 1 that is the mean-value
/// discrete gradient. It shares no code with the stages of steps by waves: nodes, weights and integrals are
/// computed separately, ∇²H by differences of ∇H. A reference: it allocates, and one thread does it all.
/// Errors   ConfigError (step ≤ 0, stages outside 1 to 3, opaque parts);
///          std::runtime_error when Newton fails, state unchanged.
/// Source   Hairer, JNAIAM 5 (2010); Cohen & Hairer, BIT 51 (2011).
class GaussReference {
 public:
  GaussReference(const System& system, double step_s, int stages);
  /// Keeps the system's address: a temporary would be gone by the first step.
  GaussReference(const System&& system, double step_s, int stages) = delete;
  ~GaussReference();

  /// One macro-step.
  void step();

  double time_s() const;
  std::span<const double> state(int part) const;
  /// Σᵢ bᵢeᵢ and Σᵢ bᵢfᵢ of the last step, by scalar port of the system.
  std::span<const double> effort() const;
  std::span<const double> flow() const;
  /// Σ H(x) [J].
  double storage() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave

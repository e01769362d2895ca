#pragma once

#include <memory>
#include <span>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The whole coupled discrete-gradient step in effort and flow, without waves: one sparse Newton on
///   x⁺ − x − h[(J − R)∇̄H + (G − P)ū] = 0,   ȳ = (G + P)ᵀ∇̄H + (S + N)ū   for every part,
///   E e + F f = 0                                                          for every junction,
/// in the unknowns (x⁺, e, f); for descriptor parts with E(x⁺ − x) in place of x⁺ − x. It shares no
/// code with the wave coupling beyond the parts' physics (storage, discrete gradient, structure),
/// so it is independent evidence for the limit of the inner iteration. A reference: it allocates, and one
/// thread does it all.
/// Errors: ConfigError (step ≤ 0, opaque parts: they show no equations); std::runtime_error when
/// Newton fails, state unchanged.
class MonolithicReference {
 public:
  struct Options {
    int max_newton_steps = 50;
  };

  MonolithicReference(const System& system, double step_s, Options options);
  MonolithicReference(const System& system, double step_s)
      : MonolithicReference(system, step_s, {}) {}
  /// Keeps the system's address: a temporary would be gone by the first step.
  MonolithicReference(const System&& system, double step_s, Options options) = delete;
  MonolithicReference(const System&& system, double step_s) = delete;
  ~MonolithicReference();

  /// One macro-step.
  void step();

  double time_s() const;
  std::span<const double> state(int part) const;
  /// Replaces the state of a part (n doubles).
  void set_state(int part, std::span<const double> x);
  /// Mean effort and flow of the last step, by scalar port of the system.
  std::span<const double> effort() const;
  std::span<const double> flow() const;
  /// Σ H(x) [J].
  double storage() const;
  int last_newton_steps() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave

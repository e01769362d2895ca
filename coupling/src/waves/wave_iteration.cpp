#include "portwave/coupling/waves/wave_iteration.hpp"

#include <algorithm>
#include <cstddef>

// The symbols are those of wave_iteration.hpp: u the iterate, b̂ = S(u), â = P b̂.

namespace portwave {

WaveIteration::WaveIteration(const WaveDiscretisation& waves, const InnerUpdate& update,
                             Scatter scatter)
    : waves_(waves), update_(update), scatter_(scatter) {
  for (AlignedVector* wave : {&u_, &b_, &shadow_}) {
    wave->assign(static_cast<std::size_t>(waves.wave_size()), 0.0);
  }
}

PhaseStatus WaveIteration::step(double* record, std::span<const double> b, int evaluations,
                                double* next, double* b_next, const EnergyColumns& energy) {
  start(b);
  for (int k = 0; k < evaluations; ++k) {
    if (k > 0) update();
    PhaseStatus status = evaluate(record);
    if (!status.ok()) return status;
  }
  return commit(record, next, b_next, energy);
}

/// u⁰ = P bⁿ: what the parts sent last arrives at their neighbours. At the first step bⁿ is b⁰, the
/// initial waves of the scenario.
void WaveIteration::start(std::span<const double> b) {
  waves_.interconnection().exchange(b.data(), u_.data());
  evaluated_ = false;
}

void WaveIteration::start_at(std::span<const double> u) {
  std::ranges::copy(u, u_.begin());
  evaluated_ = false;
}

/// b̂ = S(u): every part, by itself, answers the incident waves u with outgoing waves. It solves
/// one step from its frozen state and throws the new state away.
PhaseStatus WaveIteration::evaluate(double* record) {
  evaluated_ = true;
  return scatter_ == Scatter::exact ? waves_.scatter_all(record, u_.data(), b_.data())
                                    : waves_.inexact_scatter_all(record, u_.data(), b_.data());
}

/// â = P b̂: the junctions, each by itself, turn outgoing into incident waves, conserving |·|².
/// The shadow is committed, not the next iterate: it satisfies the junctions' equations exactly.
std::span<const double> WaveIteration::shadow() {
  if (!evaluated_) return u_;  // K = 0: â = P bⁿ
  waves_.interconnection().exchange(b_.data(), shadow_.data());
  return shadow_;
}

/// u ← u + a term that vanishes with the gap P b̂ − u: see UpdateRule.
void WaveIteration::update() { waves_.interconnection().update(update_, b_.data(), u_.data()); }

/// (xⁿ, â) ↦ (xⁿ⁺¹, bⁿ⁺¹): every part, by itself, steps once and for good.
PhaseStatus WaveIteration::commit(double* record, double* next, double* b_next,
                                  const EnergyColumns& energy) {
  return waves_.advance_all(record, shadow().data(), next, b_next, energy);
}

}  // namespace portwave

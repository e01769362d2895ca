#pragma once

#include <span>

#include "portwave/coupling/method/update_rule.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The inner iteration of a macro-step as the method describes it: serial, on whole arrays. Start
/// reading here. The executors do the same in pieces, on many threads; tests compare them with this
/// class, and everything that iterates apart from a run uses it.
///
///   symbol    meaning                                                          here
///   xⁿ        states of all parts at the start of the step                     record
///   a, b      incident and outgoing waves of all scalar ports; ½|·|² is        arrays of
///             energy [J], and ½(|a|² − |b|²) what the parts receive            waves.wave_size()
///   S         frozen port maps, part by part: b = S(a) is one trial step       evaluate
///             from xⁿ, thrown away afterwards
///   P         wave map of the junctions, orthogonal: a = P b                   Interconnection
///   u         inner iterate: incident waves as far as they are known           u()
///   b̂         S(u)                                                             b()
///   P b̂ − u   the gap; zero where u is the common interface u†                 shadow() and u()
///   â         P b̂ of the last evaluation, the shadow: what is committed        shadow()
///   K         evaluations of S before the commit                               step
///
/// One macro-step with budget K:
///   start     u⁰ = P bⁿ
///   evaluate  b̂ᵏ = S(uᵏ)                                        k = 0 … K − 1
///   update    uᵏ⁺¹ from uᵏ and b̂ᵏ, by an UpdateRule              between two evaluations
///   shadow    â = P b̂ᴷ⁻¹; with K = 0, â = P bⁿ
///   commit    every part steps once from xⁿ with â: xⁿ⁺¹, bⁿ⁺¹
///
/// Not here: when an island stops, acceleration and the interface equation (IslandIteration in
/// runtime), and the passivity guard, which may shorten â (PassivityGuard).
/// Cost           the parts' port solves and one pass over the junctions per evaluation; allocates
///                on construction only.
/// Thread-safety  one thread at a time; the WaveDiscretisation must outlive it and may be shared.
class WaveIteration {
 public:
  /// How b̂ = S(u) is solved: as exactly as a part can, or only as exactly as needed for an iterate that
  /// will be replaced. Runs iterate inexactly; their commit is exact.
  enum class Scatter { exact, inexact };

  WaveIteration(const WaveDiscretisation& waves, const InnerUpdate& update,
                Scatter scatter = Scatter::exact);
  WaveIteration(const WaveDiscretisation&& waves, const InnerUpdate& update,
                Scatter scatter = Scatter::exact) = delete;

  /// u⁰ = P bⁿ.
  void start(std::span<const double> b);
  /// u⁰ as given.
  void start_at(std::span<const double> u);
  /// b̂ = S(u), the record being frozen at xⁿ. A failure names the part with the lowest number.
  PhaseStatus evaluate(double* record);
  /// â = P b̂; before the first evaluation u⁰.
  std::span<const double> shadow();
  /// u ← the next iterate, from u and b̂.
  void update();
  /// xⁿ⁺¹ into `next`, bⁿ⁺¹ into `b_next`, for the incident waves â.
  PhaseStatus commit(double* record, double* next, double* b_next,
                     const EnergyColumns& energy = {});

  /// All of a macro-step, with K = `evaluations` ≥ 0.
  PhaseStatus step(double* record, std::span<const double> b, int evaluations, double* next,
                   double* b_next, const EnergyColumns& energy = {});

  const WaveDiscretisation& waves() const { return waves_; }
  /// The current iterate. Writing to it makes it another one.
  std::span<double> u() { return u_; }
  std::span<const double> b() const { return b_; }

 private:
  const WaveDiscretisation& waves_;
  InnerUpdate update_;
  Scatter scatter_;
  bool evaluated_ = false;  // since the start
  AlignedVector u_, b_, shadow_;
};

}  // namespace portwave

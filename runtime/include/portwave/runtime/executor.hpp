#pragma once

#include <memory>

#include "portwave/coupling/residual.hpp"
#include "portwave/coupling/wave_discretisation.hpp"

namespace portwave {

/// What an inner iteration is to do.
struct InnerIteration {
  int budget = 0;           ///< K ≥ 0: evaluations of S at the most
  double relaxation = 1.0;  ///< λ
  double tolerance = 0.0;   ///< 0: spend the budget
  bool tolerance_per_part = false;
};

/// What it did.
struct InnerResult {
  int iterations = 0;      ///< evaluations of S
  double residual = 0.0;   ///< at the last of them; 0 without a tolerance
  bool converged = false;  ///< the tolerance was met
  int failed_at = -1;      ///< iteration whose scatter failed
  PhaseStatus status;
};

/// Runs a macro-step's work on some number of threads: freeze, iterate, advance. Everything is
/// elementwise over lanes or junctions and sums run in index order, so results do not depend on the
/// executor, the grain or the schedule.
///
/// A call returns when all its work is done, also after a failure; it reports the failing part with
/// the lowest number. Vectors are the whole system's.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual int threads() const = 0;
  /// Freezes every part at x; `input` is null when no external input is driven.
  virtual PhaseStatus freeze(const double* x, const double* input) = 0;
  /// From u⁰ in `u`: up to K times b̂ = S(u), then the Douglas–Rachford update of u. Leaves the
  /// shadow â = P b̂^{K−1} in `a`, or â = u⁰ for K = 0. `b` is work.
  virtual InnerResult iterate(const InnerIteration& inner, double* u, double* b, double* a) = 0;
  virtual PhaseStatus advance(const double* a, double* x_next, double* b, StepEnergy* energy) = 0;
  /// a = P b.
  virtual void exchange(const double* b, double* a) = 0;
};

/// Everything on the calling thread, batch by batch.
std::unique_ptr<Executor> make_serial_executor(WaveDiscretisation& waves);

/// oneTBB: each phase is a parallel loop over tasks of about `lanes_per_task` lanes or junctions, in
/// an arena of `threads` threads. The plain version behind the interface: one barrier per phase.
std::unique_ptr<Executor> make_tbb_executor(WaveDiscretisation& waves, int threads,
                                            int lanes_per_task = 64);

}  // namespace portwave

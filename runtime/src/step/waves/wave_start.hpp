#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "step/staged_run.hpp"

namespace portwave {

class StateArchive;

// The waves that a run, and each of its steps, starts from.

/// b⁰ in the order of `waves`: WaveCoupling::initial_waves, or zeros.
AlignedVector initial_waves(const WaveDiscretisation& waves, const WaveCoupling& method);

/// Converts the waves a and b from the impedances `old` and the step size `old_step_s` to those of `waves`.
/// Efforts and flows stay the same.
void rescatter(const WaveDiscretisation& waves, std::span<const double> old, double old_step_s,
               std::span<double> a, std::span<double> b);

/// ½|wave|².
double half_square(const WaveDiscretisation& waves, std::span<const double> wave);

/// Extrapolates the outgoing waves from which an inner iteration starts: the effort and the flow of every
/// port continue along the polynomial through their values at the stages of the last step. With one stage,
/// which gives one value per step, they continue along the line through the values of two steps.
///
/// It changes the start of an iteration, not its limit. Allocates at construction only.
class ExtrapolatedStart {
 public:
  /// `waves` are those of the system that `run` steps; both must outlive it.
  ExtrapolatedStart(const WaveDiscretisation& waves, const StagedRun& run);

  /// Notes the waves that a step of size `step_s` has committed.
  void observe(const double* a, const double* b, double step_s);
  /// Forgets earlier steps, because they say nothing about the next one.
  void forget() { known_steps_ = 0; }
  /// Writes the b from which the next step starts; `waves` has the size and the impedances of that step.
  /// Returns false, and writes nothing, if too few steps are known.
  bool form(double* b) const;

  std::size_t bytes() const;
  void archive(StateArchive& archive);

 private:
  int needed_steps() const { return stages_ == 1 ? 2 : 1; }

  const WaveDiscretisation& waves_;
  int stages_;
  const StageRule& rule_;
  std::vector<int> wave_;       // by scalar port and stage
  std::vector<double> weight_;  // √bᵢ
  struct Step {
    AlignedVector effort, flow;  // by scalar port and stage, of the system as it was given
    double step_s = 0.0;
  };
  Step last_, before_;
  int known_steps_ = 0;
};

}  // namespace portwave

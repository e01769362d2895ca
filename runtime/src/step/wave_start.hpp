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

/// The waves a and b for the impedances and the step size of `waves`, in place of `old` ones:
/// effort and flow stay.
void rescatter(const WaveDiscretisation& waves, std::span<const double> old, double old_step_s,
               std::span<double> a, std::span<double> b);

/// ½|wave|².
double half_square(const WaveDiscretisation& waves, std::span<const double> wave);

/// Outgoing waves to start an inner iteration from: what effort and flow of every port would be if
/// they went on as in the last step, by the polynomial through their values at its stages. With one
/// stage there is one value per step, and the line goes through those of two steps.
///
/// It changes the start of an iteration, not its limit. Allocates at construction only.
class ExtrapolatedStart {
 public:
  /// `waves` are those of the system that `run` steps; both must outlive it.
  ExtrapolatedStart(const WaveDiscretisation& waves, const StagedRun& run);

  /// A step of `step_s` has committed these waves.
  void observe(const double* a, const double* b, double step_s);
  /// Earlier steps say nothing about the next one.
  void forget() { known_steps_ = 0; }
  /// b to start the next step from, whose size and impedances are those of `waves`. False, and
  /// nothing is written, where too few steps are known.
  bool form(double* b) const;

  std::size_t bytes() const;
  void archive(StateArchive& archive);

 private:
  int needed_steps() const { return stages_ == 1 ? 2 : 1; }

  const WaveDiscretisation& waves_;
  int stages_;
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

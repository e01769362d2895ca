#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "energy/account_limits.hpp"
#include "portwave/coupling/energy/committed_step.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/lane_group.hpp"

namespace portwave {

/// Examines single parts for a ledger whose account is off by more than the rounding of waves explains.
/// Nothing is allocated after construction.
class StepRounding {
 public:
  explicit StepRounding(const WaveDiscretisation& waves);
  ~StepRounding();
  StepRounding(const StepRounding&) = delete;
  StepRounding& operator=(const StepRounding&) = delete;

  /// ½|S(0)|² of a part with driven external inputs: its emission without incident waves. Zero if it has no
  /// driven inputs or is not linear. Of an opaque part, a source that is metered: what went through its ports.
  /// The record is frozen.
  double sent_by_itself(int part, const CommittedStep& step) const;
  /// H of a part that has equations, in a record [J].
  double storage(int part, const double* record) const;
  /// H⁺ − H of a linear part, formed in a precision in which nothing cancels; empty for others.
  std::optional<double> change(int part, const CommittedStep& step) const;
  /// The results of of_states for the lanes of one group.
  struct Beside {
    int batch = -1, first = 0, last = 0;
    std::array<double, kLaneGroup> rounding{};
  };

  /// Bound on the rounding in the balance of a part in this step, states included: given by its batch or, if
  /// that has none, estimated. `tolerance_J`: the tolerance of its passivity residual. Far from the origin a
  /// state, or a sum Σ Qᵢⱼxⱼ that cancels, is known only to ε of its terms, and forces and waves multiply
  /// this error. With M the terms of H and S the energies of the step, the result is some √(MS) ε. It costs a
  /// sweep over the part.
  /// `beside`: keeps results for neighbouring lanes, so that many parts of one step cost one sweep for each
  /// group of lanes. Use a new one for every step.
  double of_states(int part, const CommittedStep& step, double tolerance_J,
                   Beside* beside = nullptr) const;

  /// An upper bound on the sum of `of_states` over these parts, found in a small fraction of the time;
  /// infinite if unknown.
  double bound_of_states(std::span<const int> parts, const CommittedStep& step) const;

  std::size_t bytes() const;

 private:
  std::optional<double> known_of(const PartSlot& slot, const CommittedStep& step,
                                 Beside* beside) const;

  const WaveDiscretisation& waves_;
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace portwave

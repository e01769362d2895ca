#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// How far a run agrees with one of finer steps: of half the size or, where steps choose their size, of a
/// tenth of the tolerance. The two share nothing but the model, so that errors of steps show here whatever
/// their cause.
struct StepAgreement {
  double finer = 0.0;           ///< size of the finer steps [s], or their tolerance
  bool is_chosen = false;       ///< `finer` is a tolerance
  bool samples_faster = false;  ///< controllers, which nobody gave a rate, have theirs doubled
  double until_s = 0.0;         ///< compared up to that time
  bool is_whole = false;        ///< which is the end of the run
  std::int64_t instants = 0;    ///< compared
  bool is_skipped =
      false;  ///< the model is too large for a beginning worth it: nothing was compared
  /// The state with the largest difference, "part.state"; empty where nothing moves.
  std::string state;
  /// Its largest lasting difference, relative to the range of its values, or to kLeastOfKind of the range of
  /// any state of its unit in parts of its type in its island. It lasts where half of a window of instants in a row
  /// and more differ by as much, or three instants anywhere, unless these are a hundredth of all at most and beyond
  /// `limit`.
  double share = 0.0;
  double time_s = 0.0;  ///< of that difference
  /// The largest difference of any state at any instant, relative as `share`, which may last for that instant alone:
  /// the first row after a jump, or one by which a switch opens later. At least `share`.
  std::string state_of_instant;
  double instant_share = 0.0;
  double instant_s = 0.0;
  /// What an error is of a difference: half steps halve one of order 1, and leave a quarter of one of order 2.
  double error_of_difference = 1.0;
  bool grows =
      false;  ///< larger in the second half of the time compared than in the first, by half
  double expected =
      0.0;  ///< where it grows, and a beginning was compared: at the end, if it goes on like that
  /// A state that moves too little beside others to be judged, by its energy or by the range of its kind, and differs by
  /// more than `limit` of its own range; empty: there is none.
  std::string unjudged;
  double unjudged_share = 0.0;  ///< of its own range
  /// `state` moves too little for a tolerance that is relative to the waves of all parts together: with one that every
  /// part meets by itself it moves otherwise. `share` is then relative to its own range.
  bool is_beneath_waves = false;
  std::string failure;  ///< why the finer run ended early; empty: it did not

  /// Differences at single instants say little: a jump comes a step earlier, a stiff decay takes one step. So do those
  /// of a few steps in a long run, and where there are few instants each counts.
  static constexpr std::int64_t kFew = 20;
  static constexpr int window(std::int64_t instants) {
    constexpr std::int64_t kLeast = 3, kMost = 16, kShare = 32;
    return static_cast<int>(instants < kFew ? 1 : std::clamp(instants / kShare, kLeast, kMost));
  }
  static constexpr double kLeastOfKind = 1e-3;
  /// The run is off by more than this: half steps see three quarters of an error of order 2, and half of one
  /// of order 1.
  static constexpr double kFar = 0.125, kFarOfFirstOrder = 1.0 / 12.0;
  double limit = kFar;
  /// An error at a single instant that the watch on steps is right about, of 4 % and more.
  static constexpr double kFarInstant = 0.04;
  /// Of steps of that order.
  static constexpr double error_of_half(int order) {
    return order == 1 ? 2.0 : order == 2 ? 4.0 / 3.0 : 1.0;
  }
  double error() const { return error_of_difference * share; }
  double instant_error() const { return error_of_difference * instant_share; }
  /// Whether a single instant is off by much more than what lasts.
  bool has_far_instant() const {
    constexpr double kMore = 1.5, kSeen = 1e-4;
    return instant_share > kMore * share && instant_error() > kSeen;
  }
  bool is_far() const { return share > limit || expected > limit || !failure.empty(); }
};

}  // namespace portwave

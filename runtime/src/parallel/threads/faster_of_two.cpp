#include "parallel/threads/faster_of_two.hpp"

#include <algorithm>

namespace portwave {
namespace {

/// Steps of a block, unless one takes so long that it tells enough.
constexpr int kShortestBlock = 4;
constexpr double kLongStep_s = 5e-3;
/// A term is so many times as long as the trial before it at least, so that steps that take long
/// are not spent on trials.
constexpr double kTermPerTrial = 24.0;
constexpr double kLongestTerm_s = 320e-3;
constexpr double kLongestPenance_s = 2.0;
/// What threads must bring to be used.
constexpr double kWorthwhile = 0.97;

}  // namespace

void FasterOfTwo::add(double took_s, double amount, bool may_try) {
  block_s_ += took_s;
  block_work_ += amount;
  ++block_steps_;
  const bool tells_enough =
      block_steps_ >= kShortestBlock || block_s_ >= kLongStep_s * block_steps_;
  if (block_s_ >= block_length_s_ && tells_enough) {
    end_block(may_try || !known_[0] || !known_[1]);
  }
}

void FasterOfTwo::end_block(bool may_try) {
  cost_s_[used_] = block_s_ / block_work_;
  block_work_ = 0.0;
  known_[used_] = true;
  if (on_trial_) trial_took_s_ = block_s_;
  block_s_ = 0.0;
  block_steps_ = 0;
  if (!known_[1 - used_]) return start(1 - used_, kTrial_s, /*on_trial=*/true);
  const int better = cost_s_[kParallel] < kWorthwhile * cost_s_[kSerial] ? kParallel : kSerial;
  if (on_trial_) {
    if (better == chosen_) {
      term_s_[chosen_] = std::min(2.0 * term_s_[chosen_], longest_term(chosen_));
    } else if (better == kParallel) {
      term_s_[kParallel] = kFirstTerm_s;  // on probation: a trial is too short to meet a stall
    }
    chosen_ = better;
    return start(chosen_, term_s_[chosen_], false);
  }
  if (used_ == kParallel) {
    if (better == kSerial) {
      // What a trial promised the term did not keep: others use the machine. Longer and longer
      // until the next trial.
      term_s_[kSerial] = std::min(4.0 * term_s_[kSerial], kLongestPenance_s);
      chosen_ = kSerial;
      return start(kSerial, term_s_[kSerial], false);
    }
    term_s_[kSerial] = kFirstTerm_s;
  }
  if (may_try) {
    start(1 - used_, kTrial_s, true);
  } else {
    start(used_, term_s_[used_], false);
  }
}

double FasterOfTwo::longest_term(int which) const {
  return which == kSerial ? std::max(kLongestTerm_s, term_s_[kSerial]) : kLongestTerm_s;
}

void FasterOfTwo::start(int which, double length_s, bool on_trial) {
  used_ = which;
  block_length_s_ = on_trial ? length_s : std::max(length_s, kTermPerTrial * trial_took_s_);
  on_trial_ = on_trial;
}

}  // namespace portwave

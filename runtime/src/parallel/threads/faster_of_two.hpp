#pragma once

namespace portwave {

/// Chooses, by the clock, between doing the same work serially or in parallel. Results are the same
/// bits, so it may: every so often a block of work is given to the one that is not in use, and the
/// faster of the two goes on. A machine that is shared with others shows up as a slow parallel
/// block.
class FasterOfTwo {
 public:
  static constexpr int kSerial = 0, kParallel = 1;

  int used() const { return used_; }
  /// `amount` of work was done by the one in use. `may_try`: others may be tried once both are
  /// known.
  void add(double took_s, double amount, bool may_try = true);

 private:
  void end_block(bool may_try);
  double longest_term(int which) const;
  void start(int which, double length_s, bool on_trial);

  /// Trials are short, terms of office long: trying costs a few per cent at the most.
  static constexpr double kTrial_s = 300e-6;
  static constexpr double kFirstTerm_s = 5e-3;

  int used_ = kSerial;
  int chosen_ = kSerial;
  bool on_trial_ = false;
  bool known_[2] = {false, false};
  double cost_s_[2] = {0.0, 0.0};
  double block_s_ = 0.0;
  double block_work_ = 0.0;
  double block_length_s_ = kTrial_s;
  double trial_took_s_ = 0.0;  // the last one
  double term_s_[2] = {kFirstTerm_s, kFirstTerm_s};
  int block_steps_ = 0;
};

}  // namespace portwave

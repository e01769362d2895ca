#pragma once

#include <cstdint>
#include <optional>

#include "rank_study/rank_layout.hpp"
#include "rank_study/rank_scaling.hpp"

namespace portwave {

/// The measurement of a network on one thread: with the energy ledger and, where possible, without it.
struct MeasuredNetwork {
  const Scenario* scenario = nullptr;
  std::optional<MeasuredStep> with_ledger, without;
  bool keeps_ledger = true;  ///< in the study itself
  double memory_bytes = 0.0;
};

/// The data on which ranks agree in a step.
struct Agreement {
  bool has_ledger = false;
  bool is_judged = false;
};

/// Predicts the steps of a network on any number of ranks.
class RankPredictor {
 public:
  RankPredictor(const MeasuredNetwork& measured, const Interconnect& network);

  /// The agreement of the study itself.
  const Agreement& own() const { return own_; }
  bool can_do_without_ledger() const { return without_.has_value(); }
  /// All but speed-up and efficiency, which compare a row with others.
  RankScalingRow strong(int ranks, int threads, const Agreement& agreement) const;
  /// So many ranks like the busiest of `like`, each with as many parts as those have in the mean.
  RankScalingRow weak(int ranks, int threads, int like, const Agreement& agreement) const;
  std::int64_t parts() const { return parts_; }
  /// Time for the accounts of all islands, if a ledger is kept.
  double ledger_s() const { return with_ ? with_->ledger_s() : 0.0; }

 private:
  const RankLayout& layout_for(const Agreement& agreement) const;
  RankScalingRow row_of(const RankStepModel& model, int threads) const;

  std::optional<RankLayout> with_, without_;
  Interconnect network_;
  Agreement own_;
  std::int64_t parts_;
  double memory_bytes_;
};

}  // namespace portwave

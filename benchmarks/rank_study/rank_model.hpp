#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace portwave {

/// The network between ranks, by the two numbers of the α–β model: a message of n bytes takes α + n/β.
struct Interconnect {
  double latency_s = 2e-6;          ///< α ≥ 0
  double bandwidth_B_per_s = 1e10;  ///< β > 0

  double message_s(double bytes) const { return latency_s + bytes / bandwidth_B_per_s; }
};

/// The work of one rank in a macro-step, with its threads.
struct RankWork {
  double edge_s = 0.0;    ///< of an evaluation: lanes that other ranks wait for
  double core_s = 0.0;    ///< of an evaluation: all others, while messages travel
  double commit_s = 0.0;  ///< of its own parts
  std::int64_t parts = 0;
  std::int64_t note_bytes = 0;  ///< its report on its step and on islands of its own
  /// Bytes of its sums in every round of an exchange: after an evaluation, where gaps are judged, and after
  /// the commit.
  std::int64_t evaluation_bytes = 0, step_bytes = 0;
  /// Bytes to each of its neighbours in every evaluation, and once more at the commit. A neighbour sends too,
  /// though perhaps another number of bytes.
  struct Message {
    int to = 0;
    std::int64_t bytes = 0;
  };
  std::vector<Message> messages;
};

/// A macro-step of ranks (docs/decisions/0053-ranks.md): rank 0 tells the others to step; each does K
/// evaluations, edge first, then, while messages travel, the rest; where gaps are judged, everyone
/// receives them after every evaluation; then it commits, and everyone receives the energies.
struct RankStepModel {
  std::vector<RankWork> ranks;
  int iterations = 0;            ///< K ≥ 0, evaluations
  double begin_s = 0.0;          ///< first work of every rank, for all parts: inputs
  double common_s = 0.0;         ///< last work of every rank, for all islands: accounts, guard
  std::int64_t order_bytes = 0;  ///< from rank 0 to all, before a step
  bool is_judged = false;        ///< gaps are judged after every evaluation
  double copy_s_per_B = 0.0;     ///< copying gathered sums into place
  /// Inputs are sampled, and ranks tell one another whether that succeeded.
  bool is_driven = false;

  std::int64_t parts() const;
  /// The largest of any rank.
  std::int64_t evaluation_bytes() const;
  std::int64_t step_bytes() const;
};

/// Distribution of the time of a macro-step.
struct RankStepTime {
  double work_s = 0.0;       ///< own work of a rank, the mean
  double imbalance_s = 0.0;  ///< excess of the busiest rank
  double common_s = 0.0;     ///< work of every rank for all islands, and copying of gathered data
  double messages_s = 0.0;   ///< waiting for neighbours, beside the work that hides it
  double gathers_s = 0.0;    ///< orders, gaps and sums of the ledger, to everyone

  double total_s() const { return work_s + imbalance_s + common_s + messages_s + gathers_s; }
};

/// The report of a rank on the sampling of its inputs [B].
inline constexpr double kStatusBytes = 16.0;

/// ⌈log₂ ranks⌉.
int rounds_of(int ranks);
/// Errors: std::invalid_argument where a message goes to no rank or to its own.
void check_messages(const RankStepModel& model);

/// From every rank to all, by doubling: ⌈log₂ R⌉ rounds, in which each receives the data that it lacks,
/// `bytes` being those of all ranks together. 0 for one rank.
double gather_s(double bytes, int ranks, const Interconnect& network);
/// The same number of bytes in every round, and notes of all ranks on the way.
double exchange_s(double bytes, double notes, int ranks, const Interconnect& network);
/// From one to all, by doubling.
double broadcast_s(double bytes, int ranks, const Interconnect& network);

/// The step by a closed formula: every evaluation takes the time of the slowest rank,
///   max over r of max(e_r + c_r, e_q + α + n_q/β),   q being a neighbour and n_q all that it sends.
/// If all ranks have as many parts it is an upper bound of `simulate_ranks`: a rank that waits for
/// neighbours only may hide some delays elsewhere.
/// Errors: std::invalid_argument where a message goes to no rank or to its own.
RankStepTime rank_step_time(const RankStepModel& model, const Interconnect& network);

/// The same step, event by event: each rank a process, messages in order, one after another through the
/// rank's link (n/β each) and then α on their way; data for all in rounds of doubling (Bruck et al., IEEE
/// Trans. Parallel Distrib. Syst. 8, 1997), of which notes grow and sums do not; the order by a binomial
/// tree. Returns when the last rank is done [s].
/// Deterministic; time and memory grow with ranks × (evaluations × neighbours + gathers × log₂ ranks).
/// Errors: as rank_step_time.
double simulate_ranks(const RankStepModel& model, const Interconnect& network);

/// When the last task ends if `threads` ≥ 1 threads take tasks in order, each the next when it is free.
double list_schedule_s(std::span<const double> tasks_s, int threads);

}  // namespace portwave

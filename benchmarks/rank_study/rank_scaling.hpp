#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "portwave/runtime/ranks/ranks.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "rank_study/rank_model.hpp"

namespace portwave {

struct RankScalingOptions {
  std::vector<int> ranks = {1, 2, 4};  ///< of strong scaling; each ≥ 1
  std::vector<int> threads = {1};      ///< of each rank; of weak scaling one number
  int repetitions = 9;
  std::int64_t steps = 0;  ///< macro-steps of one measurement; 0: chosen, about 50 ms
  Grain grain;
  int cores = 0;  ///< of this machine; 0: ask the system
  /// Between ranks. Empty: as measured between ranks 0 and 1, or, in one process, the defaults.
  std::optional<Interconnect> network;
  /// This process and others; null: alone. All of them call the study, with the same arguments.
  std::shared_ptr<Ranks> world;
};

/// A number of ranks with a number of threads each: measured, or predicted where fewer were started.
struct RankScalingRow {
  std::int64_t size = 0;  ///< parts
  int ranks = 1, threads = 1;
  bool predicted = false;
  /// All ranks' threads on one machine exceed its cores: correct, but no measurement of speed.
  bool oversubscribed = false;
  double step_s = 0.0;  ///< wall time of a macro-step: median of the repetitions, or predicted
  /// Half the distance of the quartiles over the median, and the extremes; only if measured.
  std::optional<double> spread, fastest_s, slowest_s;
  /// Strong scaling: time on one thread over this time; of measured rows the median of the repetitions'
  /// ratios. Weak: cores · efficiency.
  double speed_up = 1.0;
  /// Strong: speed-up / (ranks · threads). Weak: time of the first row over this time, likewise.
  double efficiency = 1.0;
  RankStepTime prediction;   ///< always
  double simulated_s = 0.0;  ///< the same step, event by event
  int tasks = 1;
  /// Bytes that a rank sends in a step, the most of any, as planned: to its neighbours; and for sums and
  /// outcomes that all ranks need.
  int neighbours = 0;
  double message_bytes = 0.0, gathered_bytes = 0.0;
  double memory_bytes =
      0.0;                ///< at least, of a rank: needs of the engine beside the parts themselves
  std::string execution;  ///< as Stepper::execution, or "predicted"
};

/// The same steps by a protocol with more, or less, agreement between ranks.
struct RankProtocol {
  std::string name;
  std::vector<RankScalingRow> curve;
};

struct RankScalingStudy {
  bool weak = false;
  std::string name;
  int cores = 1, started = 1;  ///< of this machine; ranks
  int repetitions = 0;
  std::int64_t steps = 0;  ///< macro-steps of one measurement
  Interconnect network;
  std::string network_source;  ///< "measured", "given" or "assumed"
  /// Measured values: bytes of a message, and half a round trip [s].
  struct Message {
    std::int64_t bytes;
    double time_s;
  };
  std::vector<Message> messages;
  double serial_step_s = 0.0, iterations = 0.0;
  double begin_s = 0.0;   ///< inputs, of all parts on every rank
  double ledger_s = 0.0;  ///< closing the accounts of islands where a ledger is kept, likewise
  std::vector<RankScalingRow> rows;
  /// 1, 2, 4, … 10⁴ ranks of the first number of threads, as long as each has a part. Weak scaling: each with
  /// as many parts as in the last network, every rank being like the busiest there.
  std::vector<RankScalingRow> curve;
  std::vector<RankProtocol> protocols;
};

/// A network and the ranks that it is meant for.
struct RankedScenario {
  Scenario scenario;
  int ranks = 1;
};

/// Steps the scenario with every number of ranks and of threads, in turn, over the same steps, if that many
/// ranks exist, and predicts the rest. Rank 0 receives the study, all others an empty one.
/// Errors: ConfigError ("/ranks", "/threads", …; methods without waves), StepError, RankError;
/// std::runtime_error when results differ by configuration.
RankScalingStudy study_rank_scaling(const Scenario& scenario, const RankScalingOptions& options,
                                    const PhaseCallback& listener = {});

/// The same with one network for each number of ranks; `options.ranks` is not used.
RankScalingStudy study_weak_rank_scaling(const std::vector<RankedScenario>& scenarios,
                                         const RankScalingOptions& options,
                                         const PhaseCallback& listener = {});

/// Half the time of a round trip between ranks 0 and 1 (the fastest tenth), for several sizes, by messages
/// as steps send them. All ranks call it, at least two; only rank 0 receives the result.
std::vector<RankScalingStudy::Message> measure_messages(Ranks& ranks);

/// α and β of messages, so that the relative errors are least. Errors: std::invalid_argument with fewer
/// than two sizes.
Interconnect fitted(const std::vector<RankScalingStudy::Message>& messages);

}  // namespace portwave

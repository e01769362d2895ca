#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "rank_study/rank_scaling.hpp"
#include "study/scaling_subject.hpp"

namespace portwave {

/// One configuration of a study: a scenario stepped by the first `ranks` ranks. On ranks beyond them
/// there is no subject.
struct RankEntrant {
  const Scenario* scenario = nullptr;
  int ranks = 1, threads = 1;
  std::unique_ptr<Subject> subject;
};

/// All configurations that can be measured. Rank 0 steps one of them at a time; the ranks that take part
/// follow it, and all others rest.
class RankEntrants {
 public:
  /// All ranks construct it, with the same options, and call `add` in the same order.
  explicit RankEntrants(const RankScalingOptions& options);
  ~RankEntrants();
  RankEntrants(const RankEntrants&) = delete;
  RankEntrants& operator=(const RankEntrants&) = delete;

  int started() const { return world_ == nullptr ? 1 : world_->size(); }
  bool is_leading() const { return world_ == nullptr || world_->rank() == 0; }
  /// Whether some machine has more threads than cores.
  bool is_oversubscribed(int ranks, int threads) const;

  /// Runs `act`. If it throws on one rank, all ranks throw: those whose `act` succeeded throw RankError.
  void together(const std::function<void()>& act);

  /// Adds a configuration and returns its number. Precondition: ranks ≤ started().
  std::size_t add(const Scenario& scenario, int ranks, int threads);
  const Subject& subject(std::size_t i) const { return *entrants_[i].subject; }
  std::size_t size() const { return entrants_.size(); }

  /// On ranks other than 0: carries out the orders of rank 0 until its RankEntrants is destroyed.
  void follow();
  /// From now on, others follow.
  void lead() { leads_ = world_ != nullptr; }
  /// On rank 0: calls act(subject) while the ranks that take part follow.
  void with(std::size_t i, const std::function<void(Subject&)>& act);

 private:
  static constexpr int kEnd = -1;

  void announce(int number);
  void dismiss() noexcept;

  const RankScalingOptions& options_;
  std::shared_ptr<Ranks> world_;
  struct Host {
    std::uint64_t name;
    int cores, own_cores;  ///< of the machine; that this rank may use
  };
  std::vector<Host> hosts_;                         // by rank
  std::map<int, std::shared_ptr<Ranks>> first_of_;  // by their number
  std::vector<RankEntrant> entrants_;
  bool leads_ = false;
};

}  // namespace portwave

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

/// All configurations that can be measured. Rank 0 has one of them step at a time; those that take part
/// follow it, and all others rest.
class RankEntrants {
 public:
  /// `world`: null for one process. All ranks make it, with the same options, and say what to measure in
  /// the same order.
  explicit RankEntrants(const RankScalingOptions& options);
  ~RankEntrants();
  RankEntrants(const RankEntrants&) = delete;
  RankEntrants& operator=(const RankEntrants&) = delete;

  int started() const { return world_ == nullptr ? 1 : world_->size(); }
  bool is_leading() const { return world_ == nullptr || world_->rank() == 0; }
  /// More threads on a machine than cores there.
  bool is_oversubscribed(int ranks, int threads) const;

  /// Does what may fail on some ranks only, and fails on all then. Errors: what `act` throws; RankError
  /// where it went well here.
  void together(const std::function<void()>& act);

  /// Precondition: ranks ≤ started(). Gives its number.
  std::size_t add(const Scenario& scenario, int ranks, int threads);
  const Subject& subject(std::size_t i) const { return *entrants_[i].subject; }
  std::size_t size() const { return entrants_.size(); }

  /// On other ranks than 0: does what rank 0 says until its entrants are gone.
  void follow();
  /// From now on, others follow.
  void lead() { leads_ = world_ != nullptr; }
  /// On rank 0: act(subject), those that take part following.
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

#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/explicit/explicit_island.hpp"
#include "network/explicit/kick_drift/motion_energies.hpp"
#include "network/explicit/network_form.hpp"
#include "network/explicit/storage_check.hpp"
#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/coupling/network/network_method.hpp"
#include "portwave/coupling/network/network_trials.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {

/// Steps the islands of a network, each by itself, and keeps the account of the whole.
class ExplicitStepper {
 public:
  /// The network must outlive it. `islands`: those with states, of the islands `numbers` of the system.
  ExplicitStepper(const NetworkForm& network, double start_s, double step_s,
                  std::vector<std::unique_ptr<ExplicitIsland>> islands, std::vector<int> numbers);

  /// States by island, for the islands' constructors; empty for those without states.
  static std::vector<std::vector<int>> states_by_island(const NetworkForm& network);

  /// Ranks share the islands from now on: the rows of large ones, and others island by island; states and accounts have
  /// the same bits as in one process. All ranks call it, and then all functions that step or archive, and `fetch`. False,
  /// and nothing has changed, where there is nothing to share.
  bool share_among(NetworkPeers& peers);
  /// What other ranks know of the states of the whole.
  void fetch();

  /// Inputs are sampled, and steps halved, on the calling thread: callbacks may ask for it.
  NetworkStep step(const ForEach& each);
  const StepClock& clock() const { return clock_; }
  double step_s() const { return step_s_; }
  /// Steps to come are of this size [s].
  void set_step(double step_s);
  /// Goes on from another state of the whole: no step leads to it.
  void set_state(std::span<const double> x);
  /// Goes on where `before` is, whose network was that of another component of a part; the present one stores `more_J`
  /// more in the same state. No step leads to that.
  void take_over(ExplicitStepper& before, int part, double more_J);
  const std::vector<double>& state();
  const std::vector<double>& previous_state();
  double storage(int block);
  /// See StorageCheck::part_astray, of the present states. `by_all`: all ranks call it.
  int part_astray(bool by_all) {
    if (check_.empty()) return -1;
    if (by_all) fetch();
    return check_.part_astray(state());
  }
  /// Bodies of the largest parallel loop.
  int tasks() const;
  double cost_ns() const;
  std::size_t bytes() const;
  std::string remarks() const;
  void archive(StateArchive& archive);
  /// What would do is halved once more from now on: the run with finer steps of one that has halved its own.
  void halve_once_more() { halves_once_more_ = true; }
  std::int64_t halved_steps() const { return halved_steps_; }
  /// The last step consisted of steps of h/2^depth, at least in part.
  int depth_of_last_step() const { return depth_; }

  // Steps that are tried, as in NetworkTrials. What islands do not tell of their error is the difference of one
  // step and two of half its size; these two are what is committed.
  bool attempt(double step_s, const ForEach& each);
  const std::string& obstacle() const { return obstacle_; }
  NetworkStep commit(double end_s);
  void measure(std::span<const double> start, std::span<NetworkTrials::Energies> by_block);
  std::span<const double> attempted() const { return trial_->x; }
  bool compares() const { return compares_; }
  /// Halfway in the attempted or the committed step. Precondition: `compares`.
  std::span<const double> middle(NetworkTrials::Step step);
  void archive_trials(StateArchive& archive);

 private:
  /// What attempts need beside what steps do.
  struct Trial {
    explicit Trial(const NetworkForm& network) : energies(network) {}
    MotionEnergies energies;
    std::vector<double> x, error;  ///< at the end
    std::vector<IslandState> coarse, middle;
    std::vector<IslandEnergies> energies_of_coarse;
    std::vector<double> middle_x, committed_middle_x;
    bool is_middle_gathered = false;

    std::size_t bytes() const;
  };
  Trial& trial();
  /// body(i) for all islands: one after another for those that share their own loops, and at once for the others.
  /// Bodies must not throw.
  template <class Body>
  void for_islands(const ForEach& each, const Body& body) {
    for (const int i : sharing_) {
      islands_[at(i)]->share_with(&each);
      body(at(i));
      islands_[at(i)]->share_with(nullptr);
    }
    each(static_cast<int>(alone_.size()), [&](int k) { body(at(alone_[at(k)])); });
  }
  /// Calls body(). On ranks: if it throws NetworkFault on some, all throw one of these.
  template <class Body>
  void together(const Body& body) {
    if (peers_ == nullptr) return body();
    std::optional<NetworkFault> fault;
    try {
      body();
    } catch (const NetworkFault& own) {
      fault = own;
    }
    agree_on(fault);
  }
  void agree_on(const std::optional<NetworkFault>& fault);
  void sample(double start_s, int depth);
  bool is_of_all(std::size_t island) const {
    return peers_ != nullptr && rank_of_island_[island] == kEvery;
  }
  bool is_own(std::size_t island) const {
    return peers_ == nullptr || rank_of_island_[island] == peers_->rank();
  }
  void complete_attempt();
  using Give = std::function<void(std::size_t island, std::vector<double>& out)>;
  using Take = std::function<const double*(std::size_t island, const double* in)>;
  void gather_of_islands(const Give& give, const Take& take);
  void complete(std::vector<IslandState>& states);
  void share_energies();
  void share_success();

  template <class Attempt>
  bool all_succeed(double start_s, int depth, const ForEach& each, const Attempt& attempt);
  void note_obstacle();

  void load();
  void gather();
  void halve(std::size_t island, double start_s);
  [[noreturn]] void fail(const InputFault& fault) const;
  [[noreturn]] void fail_by(std::size_t island, const std::exception_ptr& own) const;
  [[noreturn]] void refuse(std::size_t island) const;
  std::string advice_of(std::size_t island) const;
  int part_to_blame(std::size_t island) const;
  void close(NetworkStep& result);

  const NetworkForm& network_;
  StorageCheck check_;
  double step_s_;
  StepClock clock_;
  std::vector<double> x_, previous_x_;
  bool is_gathered_ = true;
  bool has_inputs_ = false;
  bool has_whole_islands_ = true;  ///< islands whose rows are not shared by ranks
  std::vector<int> block_parts_;
  std::vector<std::unique_ptr<ExplicitIsland>> islands_;
  std::vector<int> sharing_, alone_;  ///< islands with loops that threads share, and those without
  // If ranks share islands.
  static constexpr int kEvery = -1;
  NetworkPeers* peers_ = nullptr;
  std::vector<int> rank_of_island_;  ///< kEvery: they share its rows
  struct {
    std::vector<double> own, one, all;
    std::vector<std::size_t> counts;
  } gathered_;                               ///< scratch
  bool has_now_ = true, has_before_ = true;  ///< all of the states
  std::vector<int> part_of_island_;
  std::vector<IslandState> now_, next_, before_;
  std::vector<IslandEnergies> energies_;
  std::vector<char> succeeded_;
  std::vector<std::exception_ptr> thrown_;
  CompensatedSum stored_;
  std::int64_t halvings_ = 0, halved_steps_ = 0;
  int depth_ = 0;
  bool halves_once_more_ = false;
  bool compares_ = false;
  std::unique_ptr<Trial> trial_;  ///< null before the first attempt
  std::string obstacle_;
};

}  // namespace portwave

#include "ranks/rank_executor.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "parallel/executors/layered_executor.hpp"
#include "parallel/threads/fork_join.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "ranks/agreement.hpp"
#include "ranks/newest_waves.hpp"
#include "ranks/shared_sums.hpp"

namespace portwave {
namespace {

/// Iteration by iteration: first the lanes that other ranks wait for, then, while their messages
/// travel, all others. With an asynchronous exchange nobody waits then either: an iteration takes the
/// newest waves there are. Commits, and the waves that they give, are exchanged by all in any case.
class RankExecutor final : public LayeredExecutor {
 public:
  RankExecutor(const WaveDiscretisation& waves, const Partition& partition, int threads,
               std::shared_ptr<RankShares> shares, int max_delay)
      : LayeredExecutor(waves, partition, threads,
                        {shares->own_tasks().begin(), shares->own_tasks().end()}),
        waves_(waves),
        slice_(waves.system().slice()),
        shares_(std::move(shares)),
        fork_join_(threads) {
    if (slice_ != nullptr) expect_same_cut_junctions(waves, shares_->ranks());
    connect(max_delay);
    list_outcomes();
    make_sums(waves);
    is_edge_.resize(at(graph().size()), 0);
    for (const int task : own()) {
      const bool is_awaited = std::ranges::any_of(
          graph().task(task).neighbours(), [&](int other) { return !shares_->is_own(other); });
      if (!is_awaited) continue;
      is_edge_[at(task)] = 1;
      edge_.push_back(task);
    }
  }

  const ForEach& for_each() const override { return each_; }

 private:
  using Link = TaskGraph::Link;
  using Array = RankShares::Array;

  /// Waves in a row, in a link and in a message.
  struct Run {
    const Link* link;
    std::size_t first, count, place;
  };
  /// What is exchanged with another rank, message by message.
  struct Peer {
    int rank = 0;
    std::vector<const Link*> links_to, links_from;
    std::vector<Run> sent, received;
  };

  /// How the step went on a rank, in front of the outcomes of the islands that it alone knows of.
  struct Head {
    int failed_at = -1;
    int part = -1;
    StepFault fault = StepFault::none;
    std::uint64_t detail_bytes = 0;
  };
  static_assert(std::is_trivially_copyable_v<Head> && std::is_trivially_copyable_v<IslandOutcome>);

  void connect(int max_delay) {
    std::map<int, Peer> peers;
    for (const Link& link : graph().links()) {
      const int from = shares_->rank_of_task(link.from), to = shares_->rank_of_task(link.to);
      if (from == to || from == RankShares::kEvery || to == RankShares::kEvery) continue;
      if (from == shares_->rank()) peers[to].links_to.push_back(&link);
      if (to == shares_->rank()) peers[from].links_from.push_back(&link);
    }
    std::vector<Ranks::Neighbour> neighbours;
    for (auto& [rank, peer] : peers) {
      Ranks::Neighbour& own = neighbours.emplace_back();
      own.rank = peer.rank = rank;
      own.sent = place(peer.links_to, peer.sent);
      own.received = place(peer.links_from, peer.received);
      peers_.push_back(std::move(peer));
    }
    messages_ = shares_->ranks().connect(neighbours, NewestWaves::slots(max_delay));
    if (max_delay == 0) return;
    std::vector<std::size_t> sizes;
    for (const Ranks::Neighbour& own : neighbours) sizes.push_back(own.received);
    newest_ = std::make_unique<NewestWaves>(sizes, max_delay);
  }

  /// Where the waves of links lie in a message: link by link, where both ranks have all tasks. Slices may
  /// be cut into other tasks elsewhere: a wave is then sent once, in the order of the parts of the whole.
  /// Gives the doubles of a message.
  std::size_t place(const std::vector<const Link*>& links, std::vector<Run>& runs) const {
    if (slice_ == nullptr) {
      std::size_t size = 0;
      for (const Link* link : links) {
        runs.push_back({link, 0, link->offsets.size(), size});
        size += link->offsets.size();
      }
      return size;
    }
    std::map<SliceWave, std::vector<std::pair<const Link*, std::size_t>>> places;
    for (const Link* link : links) {
      for (std::size_t i = 0; i < link->offsets.size(); ++i) {
        places[wave_of_slice(waves_, link->offsets[i])].emplace_back(link, i);
      }
    }
    std::size_t size = 0;
    for (const auto& [wave, copies] : places) {
      for (const auto& [link, i] : copies) {
        const bool goes_on = !runs.empty() && runs.back().link == link &&
                             runs.back().first + runs.back().count == i &&
                             runs.back().place + runs.back().count == size;
        if (goes_on) {
          ++runs.back().count;
        } else {
          runs.push_back({link, i, 1, size});
        }
      }
      ++size;
    }
    return size;
  }
  /// Islands that are whole within a task: only the rank of that task knows what becomes of them.
  void list_outcomes() {
    islands_.resize(at(shares_->ranks().size()));
    if (slice_ != nullptr) return list_outcomes_of_slices();
    for (int t = 0; t < graph().size(); ++t) {
      const int rank = shares_->rank_of_task(t);
      const Task& task = graph().task(t);
      if (!task.alone()) {
        cut_.insert(cut_.end(), task.islands().begin(), task.islands().end());
      } else if (rank != RankShares::kEvery) {
        islands_[at(rank)].insert(islands_[at(rank)].end(), task.islands().begin(),
                                  task.islands().end());
      }
    }
    std::ranges::sort(cut_);
    cut_.erase(std::unique(cut_.begin(), cut_.end()), cut_.end());
    lay_out_notes();
  }

  void list_outcomes_of_slices() {
    for (std::size_t i = 0; i < slice_->islands.size(); ++i) {
      const int island = static_cast<int>(i);
      if (slice_->is_cut(island)) {
        cut_.push_back(island);
      } else {
        islands_[at(slice_->islands[i].front().rank)].push_back(island);
      }
    }
    lay_out_notes();
  }
  void lay_out_notes() {
    for (const auto& islands : islands_) {
      note_bytes_.push_back(sizeof(Head) + islands.size() * sizeof(IslandOutcome));
    }
    const auto own = note_bytes_.begin() + shares_->rank();
    own_note_ = std::accumulate(note_bytes_.begin(), own, std::size_t{0});
    notes_.resize(std::accumulate(own, note_bytes_.end(), own_note_));
    flags_.resize(islands_.size());
    flag_bytes_.assign(islands_.size(), 1);
  }

  void make_sums(const WaveDiscretisation& waves) {
    std::vector<int> all(at(waves.system().island_count()));
    std::iota(all.begin(), all.end(), 0);
    const auto ranks = shares_->ranks().size(), rank = shares_->rank();
    if (slice_ != nullptr) {
      energies_.emplace(waves.reduction(), *slice_, all, ranks);
      gaps_.emplace(waves.reduction(), *slice_, cut_, ranks);
      return;
    }
    energies_.emplace(waves.reduction(), shares_->ranks_of_entries(), all, ranks, rank);
    gaps_.emplace(waves.reduction(), shares_->ranks_of_entries(), cut_, ranks, rank);
  }

  void for_some(std::span<const int> tasks, const std::function<void(int)>& body) {
    if (threads() == 1) {
      for (const int task : tasks) body(task);
    } else if (!tasks.empty()) {
      fork_join_.run(static_cast<int>(tasks.size()), [&](int i) { body(tasks[at(i)]); });
    }
  }
  void for_tasks(const std::function<void(int)>& body) override { for_some(own(), body); }

  void iterate_all(int k) override {
    const bool is_exchanging = is_any_cut_open();
    const std::uint64_t number = number_of(k);
    if (k == 0 && newest_ != nullptr) begin_newest();
    for_some(edge_, [&](int task) { iterate_edge(task, k); });
    if (is_exchanging) send(number);
    for_some(own(),
             [&](int task) { is_edge_[at(task)] != 0 ? iterate_core(task, k) : iterate(task, k); });
    if (!is_exchanging) return;
    newest_ == nullptr ? receive(number) : take_newest(number);
  }
  bool run_fixed(int iterations) override {
    // Also after a failure: others wait for the messages.
    for (int k = 0; k < iterations; ++k) iterate_all(k);
    return true;
  }

  /// Messages `number` to all peers: pack(run, to) writes some waves of a link.
  template <class Pack>
  void send_packed(std::uint64_t number, const Pack& pack) {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      double* const to = messages_->outgoing(static_cast<int>(i), number).data();
      for (const Run& run : peers_[i].sent) pack(run, to + run.place);
    }
    messages_->send(number);
  }
  template <class Unpack>
  void receive_packed(std::uint64_t number, const Unpack& unpack) {
    messages_->receive(number);
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const double* const from = messages_->incoming(static_cast<int>(i), number).data();
      for (const Run& run : peers_[i].received) unpack(run, from + run.place);
    }
    messages_->release(number);
  }
  void publish(std::uint64_t number) {
    for (const Peer& peer : peers_) {
      for (const Link* link : peer.links_from) link->channel->publish(number);
    }
  }
  void send(std::uint64_t number) {
    send_packed(number, [number](const Run& run, double* to) {
      std::copy_n(run.link->channel->waves(number) + run.first, run.count, to);
    });
  }
  void receive(std::uint64_t number) {
    receive_packed(number, [number](const Run& run, const double* from) {
      std::copy_n(from, run.count, run.link->channel->waves(number) + run.first);
    });
    publish(number);
  }
  /// Before anything of a step has come there are the waves of the commit before it.
  void begin_newest() {
    newest_->begin(number_of(0));
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      double* const to = newest_->waves(static_cast<int>(i)).data();
      for (const Run& run : peers_[i].received) {
        copy_waves(run, arrays().b, to + run.place);
      }
    }
  }
  void take_newest(std::uint64_t number) {
    newest_->take(*messages_, number, number_of(plan().rule.budget - 1));
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const double* const from = newest_->waves(static_cast<int>(i)).data();
      for (const Run& run : peers_[i].received) {
        std::copy_n(from + run.place, run.count, run.link->channel->waves(number) + run.first);
      }
    }
    publish(number);
  }
  static void copy_waves(const Run& run, const double* waves, double* to) {
    for (std::size_t i = 0; i < run.count; ++i) to[i] = waves[run.link->offsets[run.first + i]];
  }
  /// The next step begins with the committed waves of neighbours.
  void send_committed(std::uint64_t number) {
    send_packed(number,
                [b = arrays().b_next](const Run& run, double* to) { copy_waves(run, b, to); });
  }
  void receive_committed(std::uint64_t number) {
    receive_packed(number, [b = arrays().b_next](const Run& run, const double* from) {
      for (std::size_t i = 0; i < run.count; ++i) b[run.link->offsets[run.first + i]] = from[i];
    });
  }

  bool begin_gaps(int k, const StepResult& result) override {
    if (!plan().rule.checked() || !is_any_cut_open()) return false;
    flags_[at(shares_->rank())] = static_cast<std::byte>(result.failed_at >= 0 ? 1 : 0);
    const GapSums sums = gap_sums();
    gaps_->begin(shares_->ranks(), sums.used(), flags_, flag_bytes_);
    // Not where this iteration is expected to be the last: the next one would be made for nothing. All
    // ranks expect the same. Nor where waves may be late: these have an order of their own.
    return plan().may_go_ahead && newest_ == nullptr && k + 1 < expected_ &&
           k + 1 < plan().rule.budget;
  }
  bool complete_gaps(int k, const StepResult& /*result*/) override {
    if (!plan().rule.checked() || !is_any_cut_open()) return true;
    const StepArrays& s = arrays();
    const GapSums sums = gap_sums();
    gaps_->finish(sums.used(), flags_);
    if (needs_waves(k + 1)) {
      shares_->share({{Array::waves, s.u}, {Array::waves, s.a}, {Array::record, s.record}});
      for (const int island : cut_) {
        if (s.next_iterate.is_solved(island)) s.next_iterate.measure(island, s.u, s.a);
      }
    }
    return std::ranges::all_of(flags_, [](std::byte failed) { return failed == std::byte{0}; });
  }
  struct GapSums {
    std::array<IslandSums*, 2> all;
    std::size_t count;
    std::span<IslandSums* const> used() const { return {all.data(), count}; }
  };
  GapSums gap_sums() const {
    const StepArrays& s = arrays();
    return {{s.residual, s.next_iterate.acceleration()}, s.next_iterate.is_accelerated() ? 2U : 1U};
  }
  /// The interface equation of an island that is cut may be solved next: by every rank, from all of it.
  bool needs_waves(int evaluations) const {
    const StepArrays& s = arrays();
    if (!s.next_iterate.may_solve()) return false;
    const int rescue_after = plan().rule.rescue_after;
    if (rescue_after > 0 && evaluations >= rescue_after) return true;
    return std::ranges::any_of(cut_, [&](int island) { return s.next_iterate.is_solved(island); });
  }
  void complete(StepResult& result) override {
    const bool is_first = plan().recommit.empty();
    if (is_first && !plan().rule.checked()) {
      for (const int island : cut_) outcomes()[at(island)].iterations = plan().rule.budget;
    }
    write_note(result);
    const std::uint64_t number = number_of(is_first ? plan().rule.budget : -1);
    if (newest_ != nullptr && is_first && plan().rule.budget > 0 && !peers_.empty()) {
      newest_->drain(*messages_, number - 1);
    }
    send_committed(number);
    IslandSums* const sums[] = {arrays().ledger};
    energies_->exchange(shares_->ranks(), {sums, arrays().ledger != nullptr ? 1U : 0U}, notes_,
                        note_bytes_);
    read_notes(result);
    receive_committed(number);
    if (is_first) expected_ = result.failed_at < 0 ? last_iterations() : 0;
  }
  /// Of the islands that are cut: what became of them every rank knows.
  int last_iterations() const {
    int most = 0;
    for (const int island : cut_) most = std::max(most, outcomes()[at(island)].iterations);
    return most;
  }
  void write_note(const StepResult& result) {
    const Head head{result.failed_at, shares_->number_of(result.failure.part), result.failure.fault,
                    result.failure.detail.size()};
    std::byte* to = notes_.data() + own_note_;
    std::memcpy(to, &head, sizeof(Head));
    to += sizeof(Head);
    for (const int island : islands_[at(shares_->rank())]) {
      std::memcpy(to, &outcomes()[at(island)], sizeof(IslandOutcome));
      to += sizeof(IslandOutcome);
    }
  }
  void read_notes(StepResult& result) {
    std::vector<Head> heads;
    bool is_sound = true;
    const std::byte* from = notes_.data();
    for (const auto& islands : islands_) {
      std::memcpy(&heads.emplace_back(), from, sizeof(Head));
      is_sound = is_sound && heads.back().failed_at < 0;
      from += sizeof(Head);
      for (const int island : islands) {
        std::memcpy(&outcomes()[at(island)], from, sizeof(IslandOutcome));
        from += sizeof(IslandOutcome);
      }
    }
    if (!is_sound) merge_failures(heads, result);
  }
  /// The earliest one, and of that the lowest part, with its text.
  void merge_failures(const std::vector<Head>& heads, StepResult& result) {
    std::vector<std::size_t> bytes;
    for (const Head& head : heads) bytes.push_back(head.detail_bytes);
    const std::string own = result.failure.detail;
    const auto all = shares_->share({}, std::as_bytes(std::span(own)), bytes);
    const char* text = reinterpret_cast<const char*>(all.data());
    StepResult merged = result;
    merged.failed_at = -1;
    merged.failure = {};
    for (const Head& head : heads) {
      PartOrderReduction::take_failure(
          merged.failed_at, merged.failure, head.failed_at,
          {head.part, head.fault, std::string(text, head.detail_bytes)});
      text += head.detail_bytes;
    }
    result = std::move(merged);
  }

  const WaveDiscretisation& waves_;
  const SystemSlice* slice_;  // null: every rank has the whole system
  std::shared_ptr<RankShares> shares_;
  ForkJoin fork_join_;
  ForkJoinForEach each_{fork_join_};
  std::vector<int> edge_;      // own tasks with a neighbour on another rank
  std::vector<char> is_edge_;  // by task
  std::vector<Peer> peers_;
  std::unique_ptr<NeighbourMessages> messages_;
  std::unique_ptr<NewestWaves> newest_;    // null: every evaluation waits for the one before
  std::vector<int> cut_;                   // islands that are cut into tasks
  std::vector<std::vector<int>> islands_;  // by rank: those that are not
  std::vector<std::size_t> note_bytes_;    // by rank
  std::vector<std::byte> notes_;           // one after another
  std::size_t own_note_ = 0;               // where that of this rank begins
  std::vector<std::byte> flags_;           // by rank: it has failed
  std::vector<std::size_t> flag_bytes_;
  int expected_ = 0;                           // iterations of a step, as of the last one
  std::optional<SharedSums> energies_, gaps_;  // of all islands; of those that are cut
};

}  // namespace

std::unique_ptr<Executor> make_rank_executor(const WaveDiscretisation& waves,
                                             const Partition& partition, int threads,
                                             std::shared_ptr<RankShares> shares, int max_delay) {
  return std::make_unique<RankExecutor>(waves, partition, threads, std::move(shares), max_delay);
}

}  // namespace portwave

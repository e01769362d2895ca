#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "portwave/subsystems/base/index.hpp"
#include "rank_study/rank_model.hpp"

namespace portwave {
namespace {

/// An action of a rank in a step. All ranks have the same list of actions.
struct Act {
  enum Kind {
    take_order,  ///< from the rank above it in the tree, and pass it on
    begin,
    edge,
    send,
    core,
    receive,
    gather,
    copy,  ///< gathered data into place
    commit,
    close,
  };
  enum Gathered { status, gaps, energies };
  Kind kind;
  Gathered what = status;  ///< of gather and copy
};

std::vector<Act> acts_of(const RankStepModel& model) {
  std::vector<Act> acts = {{Act::take_order}, {Act::begin}};
  if (model.is_driven) acts.push_back({Act::gather, Act::status});
  for (int k = 0; k < model.iterations; ++k) {
    for (const Act::Kind kind : {Act::edge, Act::send, Act::core, Act::receive}) {
      acts.push_back({kind});
    }
    if (model.is_judged) {
      acts.push_back({Act::gather, Act::gaps});
      acts.push_back({Act::copy, Act::gaps});
    }
  }
  acts.push_back({Act::commit});
  acts.push_back({Act::send});
  acts.push_back({Act::gather, Act::energies});
  acts.push_back({Act::copy, Act::energies});
  acts.push_back({Act::receive});
  acts.push_back({Act::close});
  return acts;
}

class RankSimulation {
 public:
  RankSimulation(const RankStepModel& model, const Interconnect& network)
      : model_(model),
        network_(network),
        count_(static_cast<int>(model.ranks.size())),
        rounds_(rounds_of(count_)),
        acts_(acts_of(model)),
        processes_(model.ranks.size()),
        arrived_in_round_(model.ranks.size() * at(rounds_), 0) {
    list_links();
    for (std::vector<double>& before : bytes_before_) before.push_back(0.0);
    // Twice around: a gather gives those of ranks r, r + 1, … beyond the last.
    for (int i = 0; i < 2 * count_; ++i) {
      const RankWork& rank = model.ranks[at(i % count_)];
      add(Act::status, kStatusBytes);
      add(Act::gaps, 1.0);
      add(Act::energies, static_cast<double>(rank.note_bytes));
    }
  }

  double run() {
    for (int r = 0; r < count_; ++r) go_on(r, 0.0);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      happen(event);
    }
    double last = 0.0;
    for (const Process& process : processes_) last = std::max(last, process.done_s);
    return last;
  }

 private:
  /// A rank goes on, or a message comes to it.
  struct Event {
    enum Kind { work_done, message, round, order };
    double at_s;
    std::int64_t number;  ///< among equal times the first that was foreseen comes first
    Kind kind;
    int rank;
    int what = 0;  ///< of a message its link, of a gather its round
    bool operator<(const Event& other) const {
      return at_s != other.at_s ? at_s > other.at_s : number > other.number;
    }
  };
  struct Process {
    std::size_t act = 0;
    bool is_begun = false;     ///< the act
    double link_free_s = 0.0;  ///< what it sent before has left
    int evaluations = 0;       ///< messages taken from each neighbour
    int missing = 0;           ///< of those it waits for
    int gathers = 0;           ///< that it has been through
    int round = 0;
    bool has_order = false;
    double done_s = 0.0;
  };

  void add(Act::Gathered what, double bytes) {
    bytes_before_[what].push_back(bytes_before_[what].back() + bytes);
  }
  void list_links() {
    first_link_.assign(at(count_) + 1, 0);
    incoming_.resize(processes_.size());
    for (int r = 0; r < count_; ++r) {
      for (const RankWork::Message& message : model_.ranks[at(r)].messages) {
        incoming_[at(message.to)].push_back(static_cast<int>(arrived_.size()));
        arrived_.push_back(0);
      }
      first_link_[at(r) + 1] = static_cast<int>(arrived_.size());
    }
  }

  void plan(double at_s, Event::Kind kind, int rank, int what = 0) {
    events_.push({at_s, foreseen_++, kind, rank, what});
  }
  /// Gives a message to the rank's link; when it will arrive.
  double arrival_of(Process& process, double now_s, double bytes) const {
    process.link_free_s = std::max(process.link_free_s, now_s) + bytes / network_.bandwidth_B_per_s;
    return process.link_free_s + network_.latency_s;
  }

  void happen(const Event& event) {
    Process& process = processes_[at(event.rank)];
    switch (event.kind) {
      case Event::work_done:
        next(event.rank, event.at_s);
        break;
      case Event::message:
        ++arrived_[at(event.what)];
        if (process.missing > 0 && arrived_[at(event.what)] == process.evaluations + 1 &&
            --process.missing == 0) {
          received(event.rank, event.at_s);
        }
        break;
      case Event::round:
        ++arrived_in_round_[at(event.rank * rounds_ + event.what)];
        go_on(event.rank, event.at_s);
        break;
      case Event::order:
        process.has_order = true;
        go_on(event.rank, event.at_s);
        break;
    }
  }

  void next(int rank, double now_s) {
    Process& process = processes_[at(rank)];
    ++process.act;
    process.is_begun = false;
    process.done_s = now_s;
    go_on(rank, now_s);
  }
  void received(int rank, double now_s) {
    ++processes_[at(rank)].evaluations;
    next(rank, now_s);
  }

  /// As far as the rank comes without waiting.
  void go_on(int rank, double now_s) {
    Process& process = processes_[at(rank)];
    if (process.act >= acts_.size()) return;
    const RankWork& own = model_.ranks[at(rank)];
    const Act& act = acts_[process.act];
    switch (act.kind) {
      case Act::take_order:
        if (rank == 0 || process.has_order) pass_order(rank, now_s);
        break;
      case Act::begin:
        work(rank, now_s, model_.begin_s);
        break;
      case Act::edge:
        work(rank, now_s, own.edge_s);
        break;
      case Act::core:
        work(rank, now_s, own.core_s);
        break;
      case Act::commit:
        work(rank, now_s, own.commit_s);
        break;
      case Act::close:
        work(rank, now_s, model_.common_s);
        break;
      case Act::copy:
        work(rank, now_s, copy_s(act));
        break;
      case Act::send:
        send(rank, now_s);
        break;
      case Act::receive:
        receive(rank, now_s);
        break;
      case Act::gather:
        gather(rank, now_s, act);
        break;
    }
  }

  void work(int rank, double now_s, double work_s) {
    Process& process = processes_[at(rank)];
    if (process.is_begun) return;
    process.is_begun = true;
    plan(now_s + work_s, Event::work_done, rank);
  }
  /// Rank r has it from r less its highest bit, and passes it to r + 2ʲ for all higher bits.
  void pass_order(int rank, double now_s) {
    Process& process = processes_[at(rank)];
    for (int j = rounds_of(rank + 1); j < rounds_; ++j) {
      const int to = rank + (1 << j);
      if (to >= count_) break;
      plan(arrival_of(process, now_s, static_cast<double>(model_.order_bytes)), Event::order, to);
    }
    next(rank, now_s);
  }
  void send(int rank, double now_s) {
    const auto& messages = model_.ranks[at(rank)].messages;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      plan(arrival_of(processes_[at(rank)], now_s, static_cast<double>(messages[i].bytes)),
           Event::message, messages[i].to, first_link_[at(rank)] + static_cast<int>(i));
    }
    next(rank, now_s);
  }
  void receive(int rank, double now_s) {
    Process& process = processes_[at(rank)];
    if (process.is_begun) return;
    process.is_begun = true;
    for (const int link : incoming_[at(rank)]) {
      if (arrived_[at(link)] <= process.evaluations) ++process.missing;
    }
    if (process.missing == 0) received(rank, now_s);
  }
  /// In round j what it has, of ranks r … r + 2ʲ − 1, goes to r − 2ʲ, and as much comes from r + 2ʲ.
  void gather(int rank, double now_s, const Act& act) {
    Process& process = processes_[at(rank)];
    for (;;) {
      if (process.is_begun) {
        if (arrived_in_round_[at(rank * rounds_ + process.round)] <= process.gathers) return;
        ++process.round;
      }
      process.is_begun = true;
      if (process.round == rounds_) break;
      const int distance = 1 << process.round;
      const int count = std::min(distance, count_ - distance);
      const auto to = at((rank - distance + count_) % count_);
      plan(arrival_of(process, now_s, bytes_of(rank, count, act)), Event::round,
           static_cast<int>(to), process.round);
    }
    process.round = 0;
    ++process.gathers;
    next(rank, now_s);
  }
  double copy_s(const Act& act) const {
    if (count_ == 1) return 0.0;
    const auto bytes = act.what == Act::gaps ? model_.evaluation_bytes() : model_.step_bytes();
    return model_.copy_s_per_B * rounds_ * static_cast<double>(bytes);
  }
  double bytes_of(int rank, int count, const Act& act) const {
    const double notes =
        bytes_before_[act.what][at(rank + count)] - bytes_before_[act.what][at(rank)];
    if (act.what == Act::status) return notes;
    const RankWork& own = model_.ranks[at(rank)];
    return notes +
           static_cast<double>(act.what == Act::gaps ? own.evaluation_bytes : own.step_bytes);
  }

  const RankStepModel& model_;
  const Interconnect& network_;
  int count_, rounds_;
  std::vector<Act> acts_;
  std::vector<Process> processes_;
  std::vector<int> first_link_, arrived_;   // by sender; by link: messages so far
  std::vector<std::vector<int>> incoming_;  // by rank: links to it
  std::vector<int> arrived_in_round_;       // by rank and round: gathers so far
  std::vector<double> bytes_before_[3];     // by Act::Gathered: notes of the ranks before
  std::priority_queue<Event> events_;
  std::int64_t foreseen_ = 0;
};

}  // namespace

double simulate_ranks(const RankStepModel& model, const Interconnect& network) {
  check_messages(model);
  if (model.ranks.empty()) return 0.0;
  return RankSimulation(model, network).run();
}

}  // namespace portwave

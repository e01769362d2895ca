#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "choices.hpp"

namespace portwave::weak_memory {

/// What one step of a thread was.
enum class Effect {
  local,      ///< no atomic access
  read,       ///< an atomic load
  wrote,      ///< an atomic store
  exchanged,  ///< an atomic read-modify-write
  abandoned,  ///< a load or failed compare-exchange after which the thread starts over
};

/// Where a thread may be interrupted.
///
///   everywhere    after every atomic access.
///   after_writes  after every store and read-modify-write. Loads are taken together with the write
///                 that follows, and attempts that come to nothing are left out.
///   before_reads  between a write and the load or read-modify-write after it, so that a step is:
///                 loads, at most one read-modify-write, stores.
///
/// The coarser ones lose no error. A load can wait: what could be read stays readable until the
/// reader has seen something newer. A store can be early: nobody has to read it, and the writes of
/// others still fit before and behind it. What an abandoned attempt has seen only takes choices
/// away. Plain accesses are no reason to interrupt: whether two of them race depends on what
/// happens before what, not on which came first. The tests compare the three.
enum class Interrupt { everywhere, after_writes, before_reads };

/// Breadth first finds a shortest way to a violation; depth first needs far less memory.
enum class Search { breadth_first, depth_first };

struct Exploration {
  std::size_t states = 0;
  std::size_t ends = 0;            ///< states in which thread 0 has finished
  std::string violation;           ///< empty if there was none
  std::vector<std::string> trace;  ///< a way to it

  bool holds() const { return violation.empty(); }
  std::string report() const {
    std::string text = violation + '\n';
    for (const std::string& line : trace) text += "    " + line + '\n';
    return text;
  }
};

/// Visits every state that `Program` can reach: every interleaving, every value that a load may
/// return. Stops at the first Violation.
///
///   using State                               with  memory : Memory  and  append_to(key)
///   State start() const
///   int threads() const
///   bool runs(const State&, int thread) const      false: it has ended
///   bool holds_up(const State&, int thread) const  others may have to wait for it
///   bool stores_next(const State&, int thread) const  its next atomic access is a store
///   bool hopeless(const State&, int thread) const  its attempt fails unless others write something
///   bool finished(const State&) const
///   Effect step(State&, int thread, Choices&) const
///
/// Instead of stores_next, hopeless and step a program may have
///   bool advance(State&, int thread, Choices&, Interrupt) const
/// which runs the thread until it may be interrupted, and returns false if nothing came of it.
///
/// Then checks progress: from every state in which no other thread holds anything up, thread 0 must
/// be able to finish alone; from every state, it must be able to when the threads that hold it up
/// go on. Stale values do not count here: a store becomes visible in the end.
template <class Program>
class Explorer {
 public:
  Explorer(const Program& program, Interrupt interrupt, Search search)
      : program_(program), interrupt_(interrupt), search_(search) {}

  Exploration run() {
    State start = program_.start();
    visit(start, {});
    while (!waiting_.empty() && result_.holds()) {
      const auto [state, id] = take();
      if (program_.finished(state)) ends_.push_back(id);
      // Threads that go on after the end must not touch anything either.
      for (int thread = 0; thread < program_.threads() && result_.holds(); ++thread) {
        if (program_.runs(state, thread)) expand(state, id, thread);
      }
      if (origins_.size() > kMostStates) result_.violation = "too many states";
    }
    if (result_.holds()) check_progress();
    result_.states = origins_.size();
    result_.ends = ends_.size();
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kMostStates = 4'000'000;

  using State = typename Program::State;
  struct Waiting {
    State state;
    std::uint32_t id;
  };
  struct Key {
    std::uint64_t a, b;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return key.a; }
  };
  struct Origin {
    std::uint64_t choices = 0;
    std::uint32_t state = 0;
    std::int8_t thread = -1;
    bool held_up = false;  ///< by another thread than 0
  };
  struct Edge {
    std::uint32_t from, to;
    bool alone;  ///< a step of thread 0
  };

  Waiting take() {
    const bool newest = search_ == Search::depth_first;
    Waiting taken = std::move(newest ? waiting_.back() : waiting_.front());
    newest ? waiting_.pop_back() : waiting_.pop_front();
    return taken;
  }

  /// Runs `thread` on `state` until it may be interrupted; false if nothing came of it.
  bool advance(State& state, int thread, Choices& choices) const {
    if constexpr (requires { program_.advance(state, thread, choices, interrupt_); }) {
      return program_.advance(state, thread, choices, interrupt_);
    } else {
      return step_on(state, thread, choices);
    }
  }
  bool step_on(State& state, int thread, Choices& choices) const {
    for (;;) {
      switch (program_.step(state, thread, choices)) {
        case Effect::local:
          break;
        case Effect::abandoned:
          return interrupt_ == Interrupt::everywhere;
        case Effect::read:
          if (interrupt_ == Interrupt::everywhere) return true;
          if (program_.hopeless(state, thread)) return false;
          break;
        case Effect::exchanged:
        case Effect::wrote:
          if (interrupt_ != Interrupt::before_reads || !program_.stores_next(state, thread)) {
            return true;
          }
          break;
      }
    }
  }

  void expand(const State& state, std::uint32_t id, int thread) {
    const bool helps = thread == 0 || program_.holds_up(state, thread);
    Choices choices;
    State next;
    do {
      choices.rewind();
      next = state;
      try {
        if (!advance(next, thread, choices)) continue;
      } catch (const Violation& violation) {
        result_.violation = violation.what;
        result_.trace = retrace({choices.packed(), id, std::int8_t(thread)});
        return;
      }
      const std::uint32_t to = visit(next, {choices.packed(), id, std::int8_t(thread)});
      if (helps && choices.newest() && to != id) edges_.push_back({id, to, thread == 0});
    } while (choices.advance());
  }

  /// Makes `state` canonical; takes it if it is new.
  std::uint32_t visit(State& state, Origin origin) {
    state.memory.make_canonical();
    bytes_.clear();
    state.append_to(bytes_);
    const auto [at, is_new] = known_.try_emplace(fingerprint(bytes_), origins_.size());
    if (is_new) {
      for (int t = 1; t < program_.threads(); ++t) origin.held_up |= program_.holds_up(state, t);
      origins_.push_back(origin);
      waiting_.push_back({std::move(state), at->second});
    }
    return at->second;
  }

  /// 128 bits of a state stand for it. With 10⁷ states the odds of a mistake are below 10⁻²⁴.
  static Key fingerprint(const std::vector<std::uint8_t>& bytes) {
    std::uint64_t a = 0x9e3779b97f4a7c15, b = 0xc2b2ae3d27d4eb4f ^ bytes.size();
    const auto mix = [](std::uint64_t x) {
      x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
      x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
      return x ^ (x >> 31);
    };
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = 0;
      for (std::size_t j = i; j < std::min(i + 8, bytes.size()); ++j) {
        word = word << 8 | bytes[j];
      }
      a = mix(a ^ word) + 0x9e3779b97f4a7c15;
      b = mix(b + word * 0xff51afd7ed558ccd) ^ (b << 7);
    }
    return {mix(a), mix(b ^ a)};
  }

  void check_progress() {
    std::vector<char> alone = leading_to_an_end(/*only_alone=*/true);
    std::vector<char> helped = leading_to_an_end(/*only_alone=*/false);
    for (std::uint32_t id = 0; id < origins_.size(); ++id) {
      if (origins_[id].held_up ? helped[id] : alone[id]) continue;
      result_.violation = origins_[id].held_up ? "no progress, although every thread goes on"
                                               : "no progress of thread 0 alone";
      result_.trace = retrace(origins_[id]);
      return;
    }
  }

  std::vector<char> leading_to_an_end(bool only_alone) const {
    std::vector<std::uint32_t> first(origins_.size() + 1, 0);
    for (const Edge& e : edges_) ++first[e.to + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    std::vector<std::uint32_t> into(edges_.size());
    std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
    for (std::uint32_t e = 0; e < edges_.size(); ++e) into[at[edges_[e].to]++] = e;

    std::vector<char> good(origins_.size(), 0);
    std::vector<std::uint32_t> found = ends_;
    for (std::uint32_t id : found) good[id] = 1;
    while (!found.empty()) {
      const std::uint32_t to = found.back();
      found.pop_back();
      for (std::uint32_t i = first[to]; i < first[to + 1]; ++i) {
        const Edge& e = edges_[into[i]];
        if (good[e.from] || (only_alone && !e.alone)) continue;
        good[e.from] = 1;
        found.push_back(e.from);
      }
    }
    return good;
  }

  /// What happened on the way to and in a step.
  std::vector<std::string> retrace(Origin last) const {
    std::vector<Origin> way;
    for (Origin o = last; o.thread >= 0; o = origins_[o.state]) way.push_back(o);
    std::vector<std::string> log;
    State state = program_.start();
    state.memory.make_canonical();
    for (auto o = way.rbegin(); o != way.rend(); ++o) {
      Choices choices = Choices::replay(o->choices, &log);
      try {
        advance(state, o->thread, choices);
      } catch (const Violation& violation) {
        log.push_back(violation.what);
        break;
      }
      state.memory.make_canonical();
    }
    return log;
  }

  const Program program_;
  const Interrupt interrupt_;
  const Search search_;
  Exploration result_;
  std::unordered_map<Key, std::uint32_t, KeyHash> known_;
  std::vector<Origin> origins_;  ///< of each state
  std::deque<Waiting> waiting_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint8_t> bytes_;
};

template <class Program>
Exploration explore(const Program& program, Interrupt interrupt,
                    Search search = Search::breadth_first) {
  return Explorer<Program>(program, interrupt, search).run();
}

}  // namespace portwave::weak_memory

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "explorer.hpp"
#include "instrumented.hpp"
#include "memory_model.hpp"

namespace portwave::weak_memory {

/// Ways to get the protocol wrong that are more than a weaker order.
enum class Defect {
  none,
  plain_hint,           ///< a thread that holds nothing reads a plain variable
  single_slot,          ///< one message slot instead of one per parity
  arrivals_counted,     ///< readiness by messages per task instead of epochs per neighbour
  words_restart,        ///< words count from 0 in each step
  epochs_restart,       ///< message numbers count from 1 in each step
  epochs_from_zero,     ///< the first message has the number that epochs start with
  fault_after_publish,  ///< a message goes out before the fault behind it is noted
  no_drain,             ///< behind a fault no message is published
  commit_stores_next,   ///< a step that stops early does not use up its phases
};

struct Fault {
  static constexpr int kCommit = 100;

  int step, task;
  int k;              ///< the iteration that fails, or kCommit
  bool late = false;  ///< behind the message of the iteration, not before it
};

struct Scenario {
  std::string name;
  int tasks = 2;
  std::vector<std::pair<int, int>> junctions;
  int threads = 2;                   ///< thread 0 is the master
  std::vector<int> budgets;          ///< K of each macro-step
  bool checked = false;              ///< decide after every iteration
  std::vector<int> iterations = {};  ///< checked: those the decision allows, 1 … K
  bool timed = false;                ///< a clock may stop the iteration, whenever it likes
  std::vector<Fault> faults = {};
  std::vector<Weakening> weakenings = {};
  Defect defect = Defect::none;
};

/// The wave exchange as a Program of the explorer: the shipped AsyncSchedule and Channel, with
/// atomics of the memory model and tasks without arithmetic. A message is the stamp of its number,
/// a committed state the number of its step, and every read expects one.
class Protocol {
 public:
  /// What a thread is about.
  enum class Piece : std::uint8_t {
    choose,  ///< nothing: it holds nothing and chooses what to do next
    claim,   ///< AsyncSchedule::claim of a task
    run,     ///< AsyncSchedule::run of a task that it holds
    close,   ///< the master: waits for the end of the step and accepts it
    open,    ///< the master: starts the next step
    done,
  };
  struct Thread {
    Piece piece = Piece::choose;
    std::uint8_t task = 0;
    std::uint8_t phase = 0;  ///< claimed
    std::uint8_t limit = 0;  ///< with which it was claimed
    Log log;
  };
  struct State {
    Memory memory;
    std::array<Thread, 3> threads;
    std::uint8_t step = 0;  ///< of the master
    void append_to(std::vector<std::uint8_t>& key) const;
  };

  explicit Protocol(const Scenario& scenario);

  State start() const;
  int threads() const;
  bool runs(const State& state, int thread) const {
    return state.threads[thread].piece != Piece::done;
  }
  bool holds_up(const State& state, int thread) const {
    return state.threads[thread].piece == Piece::run;
  }
  bool finished(const State& state) const { return state.threads[0].piece == Piece::done; }
  bool advance(State& state, int thread, Choices& choices, Interrupt interrupt) const;

 private:
  class Machine;

  std::shared_ptr<Machine> machine_;
};

}  // namespace portwave::weak_memory

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "explorer.hpp"
#include "memory_model.hpp"

namespace portwave::weak_memory {

/// Every memory order of the protocol; as shipped.
struct Orders {
  Order limit_load = Order::acquire;
  Order limit_store = Order::release;
  Order word_load = Order::relaxed;   ///< a look before the claim
  Order word_claim = Order::acquire;  ///< the compare-exchange
  Order word_store = Order::release;
  Order word_await = Order::acquire;  ///< the master waits for the end of the step
  Order epoch_load = Order::acquire;
  Order epoch_store = Order::release;
  Order fault = Order::relaxed;  ///< load and minimum
  Order arrive = Order::acq_rel;
  Order horizon_load = Order::acquire;
  Order horizon_store = Order::release;
};

/// Where a thread that holds nothing learns the first phase of the step.
enum class Base {
  with_limit,      ///< from the load of the limit
  relaxed_atomic,  ///< from an atomic of its own
  plain,           ///< from the plain parameters: a defect
};

/// Ways to get the protocol wrong.
enum class Defect {
  none,
  single_slot,          ///< one message slot instead of one per parity
  arrivals_counted,     ///< readiness by messages per task instead of epochs per neighbour
  words_restart,        ///< words count from 0 in each step
  epochs_restart,       ///< message numbers count from 1 in each step
  epochs_from_zero,     ///< the first message has the number that epochs start with
  fault_after_publish,  ///< epochs go out before the minimum of the fault phase
  no_drain,             ///< behind a fault no epoch is published
  commit_stores_next,   ///< tolerance mode: a step that stops early leaves words below its limit
};

struct Fault {
  int step, task, offset;  ///< phase − base
};

struct Scenario {
  std::string name;
  int tasks = 2;
  std::vector<std::pair<int, int>> junctions;
  int threads = 2;                   ///< thread 0 is the master
  std::vector<int> budgets;          ///< K of each macro-step
  bool tolerance = false;            ///< decide after every iteration
  std::vector<int> iterations = {};  ///< tolerance mode: those the decision allows, 1 … K
  std::vector<Fault> faults = {};
  Orders orders = {};
  Base base = Base::with_limit;
  Defect defect = Defect::none;
};

/// The wave exchange as a Program of the explorer. Arithmetic is replaced by stamps: a payload is
/// the number of its message, a committed state the number of its step, and every read expects one.
class Protocol {
 public:
  enum class Pc : std::uint8_t {
    // Holding nothing.
    idle,
    look,
    look_for_base,
    look_for_horizon,
    ready,
    claim,
    // Holding a task.
    work,
    raise,
    publish,
    arrive,
    decide,
    finish,
    // The master between two steps.
    await,
    accept,
    open,
    done,
  };
  struct Thread {
    Pc pc = Pc::idle;
    std::uint8_t step = 0;  ///< the one whose limit was read
    std::uint8_t task = 0;
    std::uint8_t word = 0;  ///< its phase, as the word has it
    std::uint8_t phase = 0;
    std::uint8_t base = 0;
    std::uint8_t index = 0;  ///< of a neighbour, a task or a store
    bool last = false;       ///< the phase commits
    bool skips = false;      ///< the phase comes after a fault
  };
  struct State {
    Memory memory;
    std::array<Thread, 3> threads;
    std::uint8_t step = 0;  ///< of the master
    void append_to(std::vector<std::uint8_t>& key) const;
  };

  explicit Protocol(Scenario scenario);

  State start() const;
  int threads() const { return s_.threads; }
  bool runs(const State& state, int thread) const { return state.threads[thread].pc != Pc::done; }
  bool holds_up(const State& state, int thread) const {
    const Pc pc = state.threads[thread].pc;
    return pc >= Pc::work && pc <= Pc::finish;
  }
  bool stores_next(const State& state, int thread) const;
  bool hopeless(const State& state, int thread) const;
  bool finished(const State& state) const { return state.threads[0].pc == Pc::done; }
  Effect step(State& state, int thread, Choices& choices) const;

 private:
  static constexpr int kNoFault = 255;
  struct Opening {
    int location, value;
    Order order;
  };
  struct Step {
    int base = 0, limit = 0;  ///< phases base … limit − 1 may be run
    int commit = 0;           ///< the last phase
    int end = 0;              ///< of the words when all is done
    int iterations = 0;
    int earlier_messages = 0;  ///< between two neighbours, in one direction
    int accepted = 0;          ///< earlier steps without a fault
    int fault = kNoFault;      ///< the phase to be reported
    int fault_task = -1;
    std::vector<Opening> opening = {};  ///< what the master stores to start it
  };
  struct Neighbour {
    int task, in, out;  ///< and the numbers of the pair in both directions
  };
  class Running;  ///< a thread at a step

  void lay_out();
  void plan(int step);
  bool fails(const Thread& t) const;
  int slot(int phase, int base) const;
  int number(int phase, int base) const;

  int word(int task) const { return word_ + task; }
  int epoch(int pair, int slot) const { return epoch_ + 2 * pair + slot; }
  int arrivals(int task) const { return epoch_ + task; }
  int payload(int pair, int slot) const { return payload_ + 2 * pair + slot; }
  int committed(int buffer, int task) const { return committed_ + buffer % 2 * s_.tasks + task; }

  Scenario s_;
  std::vector<Step> steps_;  ///< numbered from 1
  std::vector<std::vector<Neighbour>> neighbours_;
  std::vector<int> initial_values_;  ///< of the atomics
  std::vector<std::string> atomics_, cells_;
  int limit_ = 0, word_ = 0, epoch_ = 0, base_ = 0, fault_phase_ = 0, counter_ = 0, horizon_ = 0;
  int parameters_ = 0, own_ = 0, payload_ = 0, committed_ = 0, fault_ = 0, norm_ = 0, residual_ = 0;
};

}  // namespace portwave::weak_memory

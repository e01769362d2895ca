#include <algorithm>
#include <tuple>

#include "protocol.hpp"

namespace portwave::weak_memory {

Protocol::Protocol(Scenario scenario) : s_(std::move(scenario)), neighbours_(s_.tasks) {
  int pairs = 0;
  for (const auto& [a, b] : s_.junctions) {
    neighbours_[a].push_back({.task = b, .in = pairs + 1, .out = pairs});
    neighbours_[b].push_back({.task = a, .in = pairs, .out = pairs + 1});
    pairs += 2;
  }
  lay_out();
  steps_.resize(1);
  for (int step = 1; step <= int(s_.budgets.size()); ++step) plan(step);
}

/// Only what a scenario uses is there, to keep its states small.
void Protocol::lay_out() {
  const auto atomic = [&](const std::string& name, int value = 0) {
    atomics_.push_back(name);
    initial_values_.push_back(value);
    return int(atomics_.size()) - 1;
  };
  const auto cell = [&](const std::string& name) {
    cells_.push_back(name);
    return int(cells_.size()) - 1;
  };
  const auto of_tasks = [&](const std::string& name, const auto& add) {
    const int first = add(name + "[0]");
    for (int t = 1; t < s_.tasks; ++t) add(name + "[" + std::to_string(t) + "]");
    return first;
  };
  const auto of_slots = [&](const std::string& name, const auto& add) {
    int first = -1;
    for (const auto& [a, b] : s_.junctions) {
      for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
        for (int slot = 0; slot < 2; ++slot) {
          const int added = add(name + "[" + std::to_string(from) + "→" + std::to_string(to) +
                                "][" + std::to_string(slot) + "]");
          if (first < 0) first = added;
        }
      }
    }
    return first;
  };

  limit_ = atomic("limit");
  word_ = of_tasks("word", atomic);
  epoch_ = s_.defect == Defect::arrivals_counted ? of_tasks("arrivals", atomic)
                                                 : of_slots("epoch", atomic);
  if (s_.base == Base::relaxed_atomic) base_ = atomic("base");
  if (!s_.faults.empty()) fault_phase_ = atomic("fault_phase", kNoFault);
  if (s_.tolerance) counter_ = atomic("counter");
  if (s_.tolerance) horizon_ = atomic("horizon");

  parameters_ = cell("parameters");
  own_ = of_tasks("own", cell);
  payload_ = of_slots("payload", cell);
  committed_ = of_tasks("committed[even]", cell);
  of_tasks("committed[odd]", cell);
  if (!s_.faults.empty()) fault_ = of_tasks("fault", cell);
  if (s_.tolerance) norm_ = of_tasks("norm", cell);
  if (s_.tolerance) residual_ = cell("residual");
}

void Protocol::plan(int number) {
  const Step before = steps_.back();
  const int budget = s_.budgets[number - 1];
  Step step{.base = before.end,
            .iterations = s_.tolerance ? s_.iterations[number - 1] : budget,
            .earlier_messages = before.earlier_messages + before.iterations,
            .accepted = before.accepted + (number > 1 && before.fault == kNoFault)};
  for (const Fault& f : s_.faults) {
    if (f.step != number) continue;
    const std::pair found(step.base + f.offset, f.task);
    if (found < std::pair(step.fault, step.fault_task)) {
      std::tie(step.fault, step.fault_task) = found;
      // The decision ends the iteration in which a fault occurs.
      if (s_.tolerance) step.iterations = std::min(step.iterations, f.offset / 2 + 1);
    }
  }
  const int per_iteration = s_.tolerance ? 2 : 1;
  step.limit = step.base + per_iteration * budget + 1;
  step.commit = step.base + per_iteration * step.iterations;
  step.end = s_.defect == Defect::commit_stores_next ? step.commit + 1 : step.limit;

  if (s_.base == Base::relaxed_atomic) {
    step.opening.push_back({base_, step.base, Order::relaxed});
  }
  for (int t = 0; s_.defect == Defect::words_restart && t < s_.tasks; ++t) {
    step.opening.push_back({word(t), 0, s_.orders.word_store});
  }
  if (!s_.faults.empty()) step.opening.push_back({fault_phase_, kNoFault, Order::relaxed});
  if (s_.tolerance) {
    const int horizon = step.iterations > 0 ? 2 * (step.base + 2) : 2 * (step.base + 1) + 1;
    step.opening.push_back({horizon_, horizon, Order::relaxed});
  }
  step.opening.push_back({limit_, number, s_.orders.limit_store});
  steps_.push_back(std::move(step));
}

Protocol::State Protocol::start() const {
  State state;
  state.memory = Memory(s_.threads, int(cells_.size()), initial_values_);
  state.step = 1;
  state.threads[0].pc = Pc::open;
  return state;
}

void Protocol::State::append_to(std::vector<std::uint8_t>& key) const {
  memory.append_to(key);
  key.push_back(step);
  for (const Thread& t : threads) {
    for (int field : {int(t.pc), int(t.step), int(t.task), int(t.word), int(t.phase), int(t.base),
                      int(t.index), int(t.last), int(t.skips)}) {
      key.push_back(std::uint8_t(field));
    }
  }
}

bool Protocol::stores_next(const State& state, int thread) const {
  const Thread& t = state.threads[thread];
  const bool counts = s_.defect == Defect::arrivals_counted;
  const bool measures = s_.tolerance && (t.phase - t.base) % 2 != 0;
  switch (t.pc) {
    case Pc::work:
      return s_.faults.empty() && !counts && !measures;
    case Pc::publish:
      return !counts;
    case Pc::decide:
      return s_.faults.empty();
    case Pc::finish:
    case Pc::open:
      return true;
    default:
      return false;
  }
}

/// Only where no plain access lies ahead before the claim.
bool Protocol::hopeless(const State& state, int thread) const {
  const Thread& t = state.threads[thread];
  const bool attempts = t.pc > Pc::look_for_base && t.pc <= Pc::claim;
  return attempts && !state.memory.can_exchange(thread, word(t.task), 2 * t.word);
}

bool Protocol::fails(const Thread& t) const {
  return std::any_of(s_.faults.begin(), s_.faults.end(), [&](const Fault& f) {
    return f.step == t.step && f.task == t.task && t.base + f.offset == t.phase;
  });
}

int Protocol::slot(int phase, int base) const {
  if (s_.defect == Defect::single_slot) return 0;
  return (s_.tolerance ? (phase - base) / 2 : phase - base) & 1;
}

int Protocol::number(int phase, int base) const {
  const int first = s_.defect == Defect::epochs_from_zero ? 0 : 1;
  return first + phase - (s_.defect == Defect::epochs_restart ? base : 0);
}

}  // namespace portwave::weak_memory

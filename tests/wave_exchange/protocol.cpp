#include "protocol.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <tuple>

#include "parallel/channel.hpp"
#include "parallel/executors/async_schedule.hpp"

namespace portwave::weak_memory {
namespace {

constexpr int kNoFault = 255;

std::string text(int value) { return std::to_string(value); }
std::string indexed(const std::string& name, std::size_t i) {
  return name + "[" + std::to_string(i) + "]";
}

/// What should come of a macro-step.
struct Plan {
  int base = 0;
  int end = 0;               ///< the phase of all tasks when all is done
  int iterations = 0;        ///< before the commit; −1 when the clock decides
  int earlier_messages = 0;  ///< between two neighbours, in one direction
  int accepted = 0;          ///< earlier steps without a fault
  int fault = kNoFault;      ///< the iteration to be reported, or Fault::kCommit
  int fault_task = -1;
};

/// Macro-steps from 1 on; [0] is what was before.
std::vector<Plan> plans_of(const Scenario& s) {
  std::vector<Plan> plans(1);
  for (std::size_t i = 0; i < s.budgets.size(); ++i) {
    const Plan& before = plans.back();
    const int budget = s.budgets[i];
    Plan plan{.base = s.defect == Defect::words_restart ? 0 : before.end,
              .iterations = s.checked ? s.iterations[i] : budget,
              .earlier_messages = before.earlier_messages + before.iterations,
              .accepted = before.accepted + (i > 0 && before.fault == kNoFault)};
    for (const Fault& f : s.faults) {
      if (f.step != int(i) + 1 || (f.k >= plan.iterations && f.k != Fault::kCommit)) continue;
      std::tie(plan.fault, plan.fault_task) =
          std::min(std::tuple(plan.fault, plan.fault_task), std::tuple(f.k, f.task));
    }
    plan.end = plan.base + 2 * budget + 4;
    if (s.defect == Defect::commit_stores_next) {
      plan.end = plan.base + (s.checked ? 2 : 1) * plan.iterations + 1;
    }
    if (s.timed) plan.iterations = -1;
    plans.push_back(plan);
  }
  return plans;
}

/// PhaseNumbers, unless the scenario wants them wrong.
struct Numbers {
  static inline Defect defect = Defect::none;
  static inline std::uint64_t base_of_step = 0;  ///< where it does not follow from the limit

  static std::uint64_t next_base(std::uint64_t limit) {
    const bool wrong = defect == Defect::words_restart || defect == Defect::commit_stores_next;
    return wrong ? base_of_step : PhaseNumbers::next_base(limit);
  }
  static std::uint64_t after_commit(std::uint64_t current, std::uint64_t limit) {
    return defect == Defect::commit_stores_next ? current + 1
                                                : PhaseNumbers::after_commit(current, limit);
  }
  static std::uint64_t message(std::uint64_t base, std::int64_t k) {
    if (defect == Defect::epochs_restart) return PhaseNumbers::message(0, k);
    if (defect == Defect::epochs_from_zero) return PhaseNumbers::message(base, k) - 1;
    return PhaseNumbers::message(base, k);
  }
};

}  // namespace

/// What the states of an exploration have in common: the shipped objects, which keep everything
/// that changes in the Memory of a state, and the tasks, in place of those with arithmetic.
class Protocol::Machine {
 public:
  explicit Machine(const Scenario& scenario)
      : s_(scenario),
        plans_(plans_of(s_)),
        schedule_(s_.tasks, std::vector<int>{s_.tasks}),
        arrivals_(std::size_t(s_.tasks)),
        own_(std::size_t(s_.tasks)),
        fault_(own_.size()),
        norm_(own_.size()),
        iterations_(own_.size()),
        committed_(2 * own_.size()) {
    join_tasks();
    lay_out();
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const Scenario& scenario() const { return s_; }
  Memory memory() const { return Memory(s_.threads, cells_, initial_values_); }

  // ---- The threads. ----

  bool advance(State& state, int thread, Choices& choices, Interrupt interrupt) {
    step_ = state.step;
    Numbers::defect = s_.defect;
    Numbers::base_of_step = std::uint64_t(plan().base);
    Thread& t = state.threads[thread];
    Execution execution(state.memory, thread, choices, interrupt);
    for (;;) {
      if (t.piece == Piece::choose) choose(t, thread, choices);
      const bool claims = t.piece == Piece::claim;
      execution.begin(t.log, claims ? word_of_task_[t.task] : nullptr, hint_);
      Next next = Next::interrupt;
      try {
        next = run(state, t, choices);
      } catch (const Execution::Interrupted&) {
        return true;
      }
      t.log = {};
      if (next == Next::give_up) t = {};
      if (next == Next::give_up) return interrupt == Interrupt::everywhere;
      if (next == Next::interrupt) return true;
      // A claim is followed by loads, as a rule; that others may come in between costs least here.
      const Effect last = execution.last();
      if (last == Effect::wrote || last == Effect::exchanged) return true;
      if (last == Effect::read && interrupt == Interrupt::everywhere) return true;
    }
  }

  // ---- What AsyncSchedule calls: tasks without arithmetic. ----

  struct Task;

  Task& task(int index) { return tasks_[std::size_t(index)]; }
  int allowed(int done, int budget) { return done + Execution::current().any(budget - done + 1); }

  void iterate(Task& task, std::int64_t k, std::uint64_t number) {
    const int before = s_.checked ? 2 * int(number - 1) + 1 : 2 * int(number - 1);
    hold(task, k == 0 ? stamp_of_start() : before, 2 * int(number));
    if (k == 0) {
      read_committed(task);
    } else {
      read_messages(task, number - 1);
    }
    const bool late = s_.defect == Defect::fault_after_publish;
    bool failed = false;
    const auto note = [&] {
      failed = true;
      if (!late) fail(task, k);
    };
    iterate_edge_first(
        true, [&] { return !fails(task, int(k), /*late=*/false); },
        [&] { return !fails(task, int(k), /*late=*/true); }, note,
        [&] {
          const std::uint64_t own = failed ? kSpoiled : stamp(number);
          send(
              task, [own](auto* waves) { waves->set(own); }, number);
        });
    if (failed && late) fail(task, k);
  }

  void measure(Task& task, std::uint64_t number) {
    hold(task, 2 * int(number), 2 * int(number) + 1);
    read_messages(task, number, /*may_be_spoiled=*/true);
    norm_[task.index].set(int(number));
  }

  bool judge(Task&, std::int64_t k) {
    const int number = int(Numbers::message(std::uint64_t(plan().base), k));
    for (auto& norm : norm_) expect(norm, number, "norm");
    outcome_.set(int(k) + 2);
    return k + 1 == plan().iterations || k + 1 == s_.budgets[std::size_t(step_) - 1];
  }

  void commit(Task& task, std::int64_t k, std::uint64_t number) {
    const int stamp = 2 * int(number) + (s_.checked ? 1 : 0);
    const bool is_void = schedule_.is_void(Schedule::kNever);
    const int before = k == 0 ? stamp_of_start() : stamp;
    hold(task, is_void ? kAnyStamp : before, stamp_of_end());
    if ((!s_.checked || k == 0) && task.index == 0) outcome_.set(int(k) + 1);
    if (s_.timed) iterations_[task.index].set(int(k) + 1);
    if (is_void) return;
    if (k == 0) read_committed(task);
    if (k > 0 && !s_.checked) read_messages(task, number);
    if (fails(task, Fault::kCommit, false)) return fail(task, Schedule::kNever);
    committed(1, task.index).set(plan().accepted + 1);
  }

  bool run_alone(int /*index*/, Task&, int /*to*/) { throw std::logic_error("no task is alone"); }

  struct Inbound {
    BasicChannel<ModelAtomics>* channel;
  };
  struct Task {
    Machine& machine;
    std::size_t index;
    std::vector<std::size_t> neighbours = {};
    std::vector<Inbound> inbound = {};
    std::vector<BasicChannel<ModelAtomics>*> outbound = {};

    bool alone() const { return false; }
    int island_group() const { return 0; }
    bool ready(std::uint64_t number) const {
      return machine.s_.defect == Defect::arrivals_counted ? machine.counted(*this, number)
                                                           : all_arrived(inbound, number);
    }
    /// Behind a fault.
    void publish(std::uint64_t number) {
      machine.hold(*this, kAnyStamp, 2 * int(number));
      if (machine.s_.defect != Defect::no_drain)
        machine.send(
            *this, [](auto*) {}, number);
    }
  };

 private:
  using Schedule = AsyncSchedule<ModelAtomics, Numbers>;
  using Cell = ModelAtomics::Plain<int>;
  static constexpr int kAnyStamp = -1;
  static constexpr std::uint64_t kSpoiled = 1000;  ///< of waves from a failed port solve

  enum class Next {
    interrupt,  ///< the piece is done
    go_on,      ///< with the piece that follows
    give_up,    ///< nothing came of it
  };

  /// Tasks are tried in any order, and the limit is read again for each. A thread that keeps the
  /// limit it read is among the cases: a load may return the same value as before.
  void choose(Thread& t, int thread, Choices& choices) const {
    const int chosen = choices.any(s_.tasks + (thread == 0 ? 1 : 0));
    t.piece = chosen < s_.tasks ? Piece::claim : Piece::close;
    if (chosen < s_.tasks) t.task = std::uint8_t(chosen);
  }

  Next run(State& state, Thread& t, Choices& choices) {
    switch (t.piece) {
      case Piece::claim: {
        const std::uint64_t limit = schedule_.limit();
        const std::uint64_t phase = schedule_.claim(*this, t.task, limit);
        if (phase == Schedule::kNoPhase) return Next::give_up;
        t.piece = Piece::run;
        t.phase = std::uint8_t(phase);
        t.limit = std::uint8_t(limit);
        return Next::go_on;
      }
      case Piece::run:
        schedule_.run(*this, t.task, t.phase, t.limit);
        t = {};
        return Next::interrupt;
      case Piece::close: {
        for (int task = 0; task < s_.tasks; ++task) {
          if (!schedule_.at_end(task, std::uint64_t(plan().end))) return Next::give_up;
        }
        accept();
        if (choices.logs()) choices.say("step " + text(step_) + " is accepted");
        const bool more = step_ + 1 < int(plans_.size());
        t.piece = more ? Piece::open : Piece::done;
        if (more) state.step = std::uint8_t(++step_);
        Numbers::base_of_step = std::uint64_t(plan().base);
        return more ? Next::go_on : Next::interrupt;
      }
      case Piece::open:
        open();
        t = {};
        return Next::interrupt;
      default:
        throw Violation{"a finished thread ran"};
    }
  }

  void open() {
    arrays_.set(step_);
    if (s_.defect == Defect::words_restart) {
      for (const Variable* word : word_of_task_) {
        Execution::current().store(*word, 0, std::memory_order_release);
      }
    }
    schedule_.open(*this, s_.budgets[std::size_t(step_) - 1], s_.checked, s_.timed);
  }

  void accept() {
    const Plan& now = plan();
    std::tuple first(kNoFault, -1);
    for (std::size_t t = 0; !s_.faults.empty() && t < fault_.size(); ++t) {
      const int found = fault_[t].get();
      if (found > 0) first = std::min(first, std::tuple(found - 1, int(t)));
      fault_[t].set(0);
    }
    if (first != std::tuple(now.fault, now.fault_task)) {
      throw Violation{"the fault reported depends on the schedule"};
    }
    for (std::size_t t = 0; now.fault == kNoFault && t < own_.size(); ++t) {
      expect(committed(1, t), now.accepted + 1, "committed");
      if (s_.timed) expect(iterations_[t], outcome_.get(), "iterations");
    }
    if (now.fault == kNoFault && now.iterations >= 0) {
      expect(outcome_, now.iterations + 1, "outcome");
    }
    (void)schedule_.out_of_time();
  }

  const Plan& plan() const { return plans_[std::size_t(step_)]; }
  int stamp_of_end() const { return 200 + step_; }
  int stamp_of_start() const { return step_ == 1 ? 0 : 200 + step_ - 1; }

  /// The task's own data: whoever runs it reads and writes them. Its phases come in order.
  void hold(Task& task, int before, int after) {
    if (arrays_.get() != step_) throw Violation{"wrong data: arrays of another step"};
    if (before == kAnyStamp || has_fault()) {
      (void)own_[task.index].get();
    } else {
      expect(own_[task.index], before, "own");
    }
    own_[task.index].set(after);
  }
  bool has_fault() const { return plan().fault != kNoFault; }

  void read_committed(const Task& task) {
    expect(committed(0, task.index), plan().accepted, "committed");
    for (const std::size_t n : task.neighbours)
      expect(committed(0, n), plan().accepted, "committed");
  }
  /// The waves of a failed port solve are sent, but no iteration may use them. A check may: nobody
  /// asks for its result.
  void read_messages(const Task& task, std::uint64_t number, bool may_be_spoiled = false) {
    for (const Inbound& in : task.inbound) {
      const std::uint64_t found = in.channel->waves(number)->get();
      if (may_be_spoiled && found == kSpoiled) continue;
      if (found != stamp(number)) wrong("payload", int(found), int(stamp(number)));
    }
  }
  /// Never twice, even if the number is.
  std::uint64_t stamp(std::uint64_t number) const {
    return s_.defect == Defect::epochs_restart || s_.defect == Defect::words_restart
               ? 100 * std::uint64_t(step_) + number
               : number + 1;
  }
  template <class Write>
  void send(const Task& task, const Write& write, std::uint64_t number) {
    for (std::size_t i = 0; i < task.outbound.size(); ++i) {
      if (s_.defect == Defect::arrivals_counted) {
        write(task.outbound[i]->waves(number));
        arrivals_[task.neighbours[i]].fetch_add(1, std::memory_order_release);
      } else {
        task.outbound[i]->send(number, write);
      }
    }
  }
  bool counted(const Task& task, std::uint64_t number) const {
    for (std::size_t step = plans_.size(); step-- > 1;) {
      const Plan& p = plans_[step];
      if (int(number) <= p.base) continue;
      const int awaited = int(task.neighbours.size()) * (p.earlier_messages + int(number) - p.base);
      return arrivals_[task.index].load(std::memory_order_acquire) >= awaited;
    }
    return true;
  }

  bool fails(const Task& task, int k, bool late) const {
    return std::any_of(s_.faults.begin(), s_.faults.end(), [&](const Fault& f) {
      return f.step == step_ && f.task == int(task.index) && f.k == k && f.late == late;
    });
  }
  void fail(Task& task, std::int64_t k) {
    fault_[task.index].set(1 + (k == Schedule::kNever ? Fault::kCommit : int(k)));
    schedule_.note_fault(k);
  }

  Cell& committed(int ahead, std::size_t task) {
    return committed_[std::size_t((plan().accepted + ahead) % 2) * own_.size() + task];
  }
  void expect(const Cell& cell, int stamp, const char* name) const {
    const int found = cell.get();
    if (found != stamp) wrong(name, found, stamp);
  }
  [[noreturn]] static void wrong(const char* name, int found, int due) {
    throw Violation{std::string("wrong data: ") + name + " has stamp " + text(found) + " where " +
                    text(due) + " is due"};
  }

  // ---- What there is. ----

  std::size_t last_slot() const { return s_.defect == Defect::single_slot ? 0 : 1; }

  void join_tasks() {
    for (std::size_t t = 0; t < own_.size(); ++t) tasks_.push_back({*this, t});
    const auto channel = [&](int from, int to) {
      slots_.emplace_back();
      channels_.emplace_back(ModelAtomics::Slots{&slots_.back(), last_slot()});
      names_.push_back(text(from) + "→" + text(to));
      tasks_[std::size_t(from)].outbound.push_back(&channels_.back());
      tasks_[std::size_t(from)].neighbours.push_back(std::size_t(to));
      tasks_[std::size_t(to)].inbound.push_back({&channels_.back()});
    };
    for (const auto& [a, b] : s_.junctions) {
      channel(a, b);
      channel(b, a);
    }
  }

  /// Gives every variable its place in the memory. Only what a scenario uses has one, to keep its
  /// states small.
  void lay_out() {
    schedule_.for_variables([&](const std::string& name, std::size_t i, auto& variable) {
      add(name, name == "word" ? std::optional(i) : std::nullopt, variable, kind_of(name));
    });
    const bool counts = s_.defect == Defect::arrivals_counted;
    for (std::size_t t = 0; t < own_.size(); ++t) {
      if (counts) add("arrivals", t, arrivals_[t], Variable::Kind::atomic);
      add("own", t, own_[t], Variable::Kind::plain);
      add("committed[even]", t, committed_[t], Variable::Kind::plain);
      add("committed[odd]", t, committed_[own_.size() + t], Variable::Kind::plain);
      if (!s_.faults.empty()) add("fault", t, fault_[t], Variable::Kind::plain);
      if (s_.checked) add("norm", t, norm_[t], Variable::Kind::plain);
      if (s_.timed) add("iterations", t, iterations_[t], Variable::Kind::plain);
    }
    add("arrays", std::nullopt, arrays_, Variable::Kind::plain);
    add("outcome", std::nullopt, outcome_, Variable::Kind::plain);
    for (std::size_t c = 0; c < slots_.size(); ++c) {
      for (std::size_t slot = 0; slot <= last_slot(); ++slot) {
        ModelAtomics::SlotMemory& memory = slots_[c];
        const std::string name = "[" + names_[c] + "]" + indexed("", slot);
        if (!counts) add("epoch", name, memory.epochs[slot], Variable::Kind::atomic);
        add("payload", name, memory.stamps[slot], Variable::Kind::plain);
      }
    }
  }

  Variable::Kind kind_of(const std::string& name) const {
    using Kind = Variable::Kind;
    const bool same_budgets = std::count(s_.budgets.begin(), s_.budgets.end(),
                                         s_.budgets.front()) == std::ptrdiff_t(s_.budgets.size());
    if (name == "parameters") return Kind::plain;
    if (name == "hint" && s_.defect == Defect::plain_hint) return Kind::plain;
    if (name == "horizon of all" && s_.checked) return Kind::ignored;
    if (name == "horizon of all" && same_budgets && !s_.timed) return Kind::constant;
    if (name == "fault_at" && s_.faults.empty()) return Kind::constant;
    if (name == "out_of_time" && !s_.timed) return Kind::constant;
    if ((name == "arrived" || name == "horizon") && !s_.checked) return Kind::ignored;
    return Kind::atomic;
  }

  template <class T>
  void add(const std::string& name, std::optional<std::size_t> index, T& variable,
           Variable::Kind kind) {
    add(name, index ? indexed("", *index) : "", variable, kind);
  }
  template <class T>
  void add(const std::string& name, const std::string& suffix, T& variable, Variable::Kind kind) {
    variables_.push_back({.name = name + suffix, .kind = kind, .initial = variable.initial()});
    Variable& added = variables_.back();
    if (kind == Variable::Kind::atomic) {
      added.at = int(initial_values_.size());
      initial_values_.push_back(added.initial);
    } else if (kind == Variable::Kind::plain) {
      added.at = cells_++;
    } else if (name == "horizon of all") {
      added.initial = 2 * s_.budgets.front() + 1;
    }
    for (const Weakening& w : s_.weakenings) {
      if (w.variable == name) added.weakened.push_back(w);
    }
    variable.bind(added);
    if (name == "word") word_of_task_.push_back(&added);
    if (name == "hint") hint_ = &added;
  }

  const Scenario s_;
  const std::vector<Plan> plans_;
  int step_ = 1;  ///< of the master in the state at hand, which is that of whoever holds a task
  Schedule schedule_;
  std::deque<Task> tasks_;
  std::deque<ModelAtomics::SlotMemory> slots_;
  std::deque<BasicChannel<ModelAtomics>> channels_;
  std::vector<std::string> names_;  ///< of channels
  std::vector<ModelAtomics::Atomic<int>> arrivals_;
  std::vector<Cell> own_, fault_, norm_, iterations_, committed_;
  Cell arrays_, outcome_;
  std::deque<Variable> variables_;
  std::vector<const Variable*> word_of_task_;
  const Variable* hint_ = nullptr;
  std::vector<int> initial_values_;
  int cells_ = 0;
};

Protocol::Protocol(const Scenario& scenario) : machine_(std::make_shared<Machine>(scenario)) {}

Protocol::State Protocol::start() const {
  State state;
  state.memory = machine_->memory();
  state.step = 1;
  state.threads[0].piece = Piece::open;
  return state;
}

int Protocol::threads() const { return machine_->scenario().threads; }

bool Protocol::advance(State& state, int thread, Choices& choices, Interrupt interrupt) const {
  return machine_->advance(state, thread, choices, interrupt);
}

void Protocol::State::append_to(std::vector<std::uint8_t>& key) const {
  memory.append_to(key);
  key.push_back(step);
  for (const Thread& t : threads) {
    for (const int field :
         {int(t.piece), int(t.task), int(t.phase), int(t.limit), int(t.log.size)}) {
      key.push_back(std::uint8_t(field));
    }
    key.insert(key.end(), t.log.values.begin(), t.log.values.begin() + t.log.size);
  }
}

}  // namespace portwave::weak_memory

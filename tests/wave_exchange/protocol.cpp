#include "protocol.hpp"

#include <algorithm>

namespace portwave::weak_memory {

namespace {
std::string text(int value) { return std::to_string(value); }
}  // namespace

/// One thread at one step: the protocol as a worker and the master see it.
class Protocol::Running {
 public:
  Running(const Protocol& protocol, State& state, int thread, Choices& choices)
      : p_(protocol),
        s_(protocol.s_),
        orders_(protocol.s_.orders),
        state_(state),
        t_(state.threads[thread]),
        thread_(thread),
        choices_(choices) {}

  Effect go() {
    switch (t_.pc) {
      case Pc::idle:
        return choose();
      case Pc::look:
        return look();
      case Pc::look_for_base:
        return look_for_base();
      case Pc::look_for_horizon:
        return look_for_horizon();
      case Pc::ready:
        return ready();
      case Pc::claim:
        return claim();
      case Pc::work:
        return work();
      case Pc::raise:
        return raise();
      case Pc::publish:
        return publish();
      case Pc::arrive:
        return arrive();
      case Pc::decide:
        return decide();
      case Pc::finish:
        return finish();
      case Pc::await:
        return await();
      case Pc::accept:
        return accept();
      case Pc::open:
        return open();
      case Pc::done:
        break;
    }
    throw Violation{"a finished thread ran"};
  }

 private:
  // ---- Looking for a task. Nothing is held, everything seen may be out of date. ----

  /// Tasks are tried in any order, and the limit is read again for each. A thread that keeps the
  /// limit it read is among the cases: a load may return the same value as before.
  Effect choose() {
    const bool master = thread_ == 0;
    const int chosen = choices_.any(s_.tasks + (master ? 1 : 0));
    if (chosen == s_.tasks) {
      t_.pc = Pc::await;
      return Effect::local;
    }
    t_.task = std::uint8_t(chosen);
    t_.step = std::uint8_t(load(p_.limit_, orders_.limit_load));
    if (t_.step == 0) return abandon();
    t_.base = std::uint8_t(step().base);
    t_.pc = Pc::look;
    return Effect::read;
  }

  Effect look() {
    const int value = load(p_.word(t_.task), orders_.word_load);
    const bool busy = value % 2 != 0;
    t_.word = std::uint8_t(value / 2);
    t_.phase = std::uint8_t(phase_of_word());
    if (busy || t_.phase >= step().limit) return abandon();
    t_.pc = s_.base == Base::with_limit ? after_base() : Pc::look_for_base;
    return Effect::read;
  }

  Effect look_for_base() {
    if (s_.base == Base::plain) {
      t_.base = std::uint8_t(p_.steps_[read(p_.parameters_)].base);
      t_.pc = after_base();
      return Effect::local;
    }
    t_.base = std::uint8_t(load(p_.base_, Order::relaxed));
    t_.pc = after_base();
    return Effect::read;
  }

  /// Tolerance mode. The horizon: twice the first phase that may not be run yet, plus one if the
  /// phase before it commits.
  Effect look_for_horizon() {
    const int horizon = load(p_.horizon_, orders_.horizon_load);
    if (t_.phase >= horizon / 2) return abandon();
    t_.last = horizon % 2 != 0 && t_.phase == horizon / 2 - 1;
    t_.pc = consumes() ? Pc::ready : Pc::claim;
    return Effect::read;
  }

  Effect ready() {
    if (s_.defect == Defect::arrivals_counted) {
      const int awaited = int(neighbours().size()) * (step().earlier_messages + t_.phase - t_.base);
      if (load(p_.arrivals(t_.task), orders_.epoch_load) < awaited) return abandon();
      t_.pc = Pc::claim;
      return Effect::read;
    }
    const int message = t_.phase - 1;
    const int epoch = p_.epoch(neighbours()[t_.index].in, p_.slot(message, t_.base));
    if (load(epoch, orders_.epoch_load) < p_.number(message, t_.base)) return abandon();
    if (++t_.index == neighbours().size()) {
      t_.index = 0;
      t_.pc = Pc::claim;
    }
    return Effect::read;
  }

  Effect claim() {
    const int word = p_.word(t_.task);
    const bool won = state_.memory.exchange_if(thread_, word, 2 * t_.word, 2 * t_.word + 1,
                                               orders_.word_claim, choices_);
    if (choices_.logs())
      say(std::string(won ? "claims" : "fails to claim") + " task " + text(t_.task) + ", phase " +
          text(t_.phase));
    if (!won) return abandon();
    t_.pc = Pc::work;
    return Effect::exchanged;
  }

  // ---- Running a phase. The task is held. ----

  Effect work() {
    t_.step = std::uint8_t(read(p_.parameters_));
    t_.base = std::uint8_t(step().base);
    t_.phase = std::uint8_t(phase_of_word());
    if (!s_.tolerance) t_.last = t_.phase == step().commit;
    Effect effect = Effect::local;
    if (!s_.faults.empty()) {
      t_.skips = t_.phase > load(p_.fault_phase_, orders_.fault);
      effect = Effect::read;
    }
    expect(p_.own_ + t_.task, 2 * t_.phase);
    write(p_.own_ + t_.task, 2 * t_.phase + 1);
    if (!t_.skips) compute();
    proceed();
    return effect;
  }

  void compute() {
    if (t_.phase == t_.base) {
      expect(p_.committed(step().accepted, t_.task), step().accepted);
      for (const Neighbour& n : neighbours()) {
        expect(p_.committed(step().accepted, n.task), step().accepted);
      }
    }
    if (consumes()) {
      const int message = t_.phase - 1;
      for (const Neighbour& n : neighbours()) {
        expect(p_.payload(n.in, p_.slot(message, t_.base)), message + 1);
      }
    }
    if (fails()) {
      write(p_.fault_ + t_.task, t_.phase + 1);
      return;  // and leaves stale payloads
    }
    if (publishes()) {
      for (const Neighbour& n : neighbours()) {
        write(p_.payload(n.out, p_.slot(t_.phase, t_.base)), t_.phase + 1);
      }
    }
    if (measures()) write(p_.norm_ + t_.task, t_.phase + 1);
  }

  Effect raise() {
    state_.memory.exchange(
        thread_, p_.fault_phase_, orders_.fault,
        [&](int phase) { return std::min<int>(phase, t_.phase); }, choices_);
    if (choices_.logs()) say("faults at task " + text(t_.task) + ", phase " + text(t_.phase));
    proceed();
    return Effect::exchanged;
  }

  Effect publish() {
    const Neighbour& n = neighbours()[t_.index];
    const bool counts = s_.defect == Defect::arrivals_counted;
    if (counts) {
      state_.memory.exchange(
          thread_, p_.arrivals(n.task), orders_.epoch_store, [](int count) { return count + 1; },
          choices_);
      if (choices_.logs()) say("adds 1 to " + p_.atomics_[p_.arrivals(n.task)]);
    } else {
      store(p_.epoch(n.out, p_.slot(t_.phase, t_.base)), p_.number(t_.phase, t_.base),
            orders_.epoch_store);
    }
    if (++t_.index == neighbours().size()) proceed();
    return counts ? Effect::exchanged : Effect::wrote;
  }

  Effect arrive() {
    const int before = state_.memory.exchange(
        thread_, p_.counter_, orders_.arrive, [](int count) { return count + 1; }, choices_);
    if (choices_.logs())
      say("arrives with task " + text(t_.task) + " as number " + text(before + 1));
    t_.index = 0;
    t_.pc = (before + 1) % s_.tasks == 0 ? Pc::decide : Pc::finish;
    return Effect::exchanged;
  }

  /// By the last to arrive. A fault ends the iteration.
  Effect decide() {
    if (t_.index == 0 && !s_.faults.empty()) {
      t_.skips = t_.phase >= load(p_.fault_phase_, orders_.fault);
      t_.index = 1;
      return Effect::read;
    }
    if (!t_.skips) {
      for (int task = 0; task < s_.tasks; ++task) expect(p_.norm_ + task, t_.phase + 1);
    }
    write(p_.residual_, t_.phase + 1);
    const bool enough = t_.skips || t_.phase + 1 == step().commit;
    store(p_.horizon_, enough ? 2 * (t_.phase + 2) + 1 : 2 * (t_.phase + 3), orders_.horizon_store);
    t_.pc = Pc::finish;
    return Effect::wrote;
  }

  Effect finish() {
    const int next = t_.last ? step().end : t_.phase + 1;
    expect(p_.own_ + t_.task, 2 * t_.phase + 1);
    write(p_.own_ + t_.task, 2 * next);
    if (t_.last && !t_.skips && !fails()) {
      write(p_.committed(step().accepted + 1, t_.task), step().accepted + 1);
    }
    const bool restart = s_.defect == Defect::words_restart;
    store(p_.word(t_.task), 2 * (next - (restart ? t_.base : 0)), orders_.word_store);
    t_ = {};
    return Effect::wrote;
  }

  // ---- The master between two steps. ----

  Effect await() {
    const Step& now = p_.steps_[state_.step];
    const int end = now.end - (s_.defect == Defect::words_restart ? now.base : 0);
    if (load(p_.word(t_.index), orders_.word_await) != 2 * end) return abandon();
    if (++t_.index == s_.tasks) t_.pc = Pc::accept;
    return Effect::read;
  }

  Effect accept() {
    const Step& now = p_.steps_[state_.step];
    const Effect effect = s_.faults.empty() ? Effect::local : Effect::read;
    if (!s_.faults.empty()) {
      const int phase = load(p_.fault_phase_, orders_.fault);
      std::pair first(kNoFault, -1);
      for (int task = 0; task < s_.tasks; ++task) {
        const int found = read(p_.fault_ + task);
        if (found > 0) first = std::min(first, std::pair(found - 1, task));
        write(p_.fault_ + task, 0);
      }
      if (first != std::pair(now.fault, now.fault_task) || phase != now.fault) {
        throw Violation{"the fault reported depends on the schedule"};
      }
    }
    for (int task = 0; now.fault == kNoFault && task < s_.tasks; ++task) {
      expect(p_.committed(now.accepted + 1, task), now.accepted + 1);
    }
    if (s_.tolerance && now.iterations > 0) expect(p_.residual_, now.commit);
    const bool more = state_.step + 1 < int(p_.steps_.size());
    if (choices_.logs()) say("accepts step " + text(state_.step));
    t_ = {};
    t_.pc = more ? Pc::open : Pc::done;
    if (more) ++state_.step;
    return more ? effect : Effect::wrote;
  }

  Effect open() {
    const Step& next = p_.steps_[state_.step];
    if (t_.index == 0) write(p_.parameters_, state_.step);
    const Opening& opening = next.opening[t_.index];
    store(opening.location, opening.value, opening.order);
    if (++t_.index == next.opening.size()) t_ = {};
    return Effect::wrote;
  }

  // ---- Helpers. ----

  const Step& step() const { return p_.steps_[t_.step]; }
  const std::vector<Neighbour>& neighbours() const { return p_.neighbours_[t_.task]; }
  int phase_of_word() const { return t_.word + (s_.defect == Defect::words_restart ? t_.base : 0); }
  bool publishes() const { return !t_.last && !(s_.tolerance && measures()); }
  bool consumes() const { return s_.tolerance ? measures() : t_.phase != t_.base; }
  /// Tolerance mode: the second half of an iteration.
  bool measures() const { return s_.tolerance && (t_.phase - t_.base) % 2 != 0; }
  bool fails() const { return !t_.skips && p_.fails(t_); }

  Pc after_base() const {
    if (s_.tolerance) return Pc::look_for_horizon;
    return consumes() ? Pc::ready : Pc::claim;
  }

  /// To the next part of the phase that there is.
  void proceed() {
    const bool late = s_.defect == Defect::fault_after_publish;
    const std::array<Pc, 5> order = {Pc::work, late ? Pc::publish : Pc::raise,
                                     late ? Pc::raise : Pc::publish, Pc::arrive, Pc::finish};
    const auto wanted = [&](Pc pc) {
      if (pc == Pc::raise) return fails();
      if (pc == Pc::publish) {
        return publishes() && !(t_.skips && s_.defect == Defect::no_drain);
      }
      return pc == Pc::finish || (pc == Pc::arrive && measures());
    };
    t_.pc = *std::find_if(std::find(order.begin(), order.end(), t_.pc) + 1, order.end(), wanted);
    t_.index = 0;
  }

  Effect abandon() {
    t_ = {};
    return Effect::abandoned;
  }

  int load(int location, Order order) {
    const int value = state_.memory.load(thread_, location, order, choices_);
    if (choices_.logs()) say("reads " + p_.atomics_[location] + " = " + text(value));
    return value;
  }
  void store(int location, int value, Order order) {
    state_.memory.store(thread_, location, value, order, choices_);
    if (choices_.logs()) say("sets " + p_.atomics_[location] + " = " + text(value));
  }
  int read(int cell) { return state_.memory.read(thread_, cell, p_.cells_[cell].c_str()); }
  void write(int cell, int value) {
    state_.memory.write(thread_, cell, value, p_.cells_[cell].c_str());
  }
  void expect(int cell, int stamp) {
    const int found = read(cell);
    if (found == stamp) return;
    throw Violation{"wrong data: " + p_.cells_[cell] + " has stamp " + text(found) + " where " +
                    text(stamp) + " is due"};
  }
  void say(const std::string& what) {
    if (choices_.logs()) choices_.say("thread " + text(thread_) + " " + what);
  }

  const Protocol& p_;
  const Scenario& s_;
  const Orders& orders_;
  State& state_;
  Thread& t_;
  const int thread_;
  Choices& choices_;
};

Effect Protocol::step(State& state, int thread, Choices& choices) const {
  return Running(*this, state, thread, choices).go();
}

}  // namespace portwave::weak_memory

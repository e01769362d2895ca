#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "adapters/fmi/instance/fmu_access3.hpp"
#include "adapters/fmi/instance/fmu_clocks.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

using Run = VariableList::Run;

constexpr int kNotYetKnown = 0;          // an interval
constexpr int kMostUpdates = 1000;       // of discrete states at one time
constexpr int kMostStandstills = 100;    // early returns at one time
constexpr int kMostReturns = 1'000'000;  // early returns from one step

class Instance3 final : public Access3 {
 public:
  Instance3(const v3::Functions& functions, InstanceOrigin from, FmuLog* log)
      : Access3(functions, std::move(from), log),
        uses_(origin().uses),
        ticks_(origin().uses.clocks),
        held_(uses_.clocked.size()),
        means_(uses_.watched.size()),
        last_(uses_.watched.size()),
        next_(uses_.watched.size()) {
    for (const Run& run : uses_.clocked.runs()) {
      for (std::size_t k = 0; k < run.size(); ++k) held_at_[number_in(run, k)] = run.first + k;
    }
    std::vector<Reference> within;
    if (uses_.intermediate) {
      for (const Run& run : uses_.watched.runs()) {
        if (tells_within(run))
          within.insert(within.end(), run.references.begin(), run.references.end());
      }
    }
    instance_ = make(within);
    // There are FMUs that declare an event mode and have none. Without it they treat their events by themselves.
    if (instance_ == nullptr && uses_.events && uses_.clocks.empty()) {
      uses_.events = uses_.early_return = false;
      instance_ = make(within);
    }
    expect_ok(instance_ == nullptr ? kError : kOk, "fmi3InstantiateCoSimulation");
  }
  ~Instance3() override {
    if (instance_ == nullptr || was_fatal()) return;
    if (!is_dead() && initialised_) f_.Terminate(instance_);
    f_.FreeInstance(instance_);
  }

  void set_text(Reference which, const std::string& text) override {
    const char* const bytes = text.c_str();
    expect_ok(f_.SetString(instance_, &which, 1, &bytes, 1), "fmi3SetString");
  }
  void configure(const VariableList& list, const double* values) override {
    expect_ok(f_.EnterConfigurationMode(instance_), "fmi3EnterConfigurationMode");
    std::vector<double> taken(list.size());
    for (const Run& run : list.runs()) write(run, values);
    for (const Run& run : list.runs()) read(run, taken.data());
    expect_ok(f_.ExitConfigurationMode(instance_), "fmi3ExitConfigurationMode");
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (taken[i] == values[i]) continue;
      fail(
          fmt::format("has {} where a structural parameter was set to {}: its arrays are not of "
                      "the size that was asked for; the defect is in the FMU",
                      taken[i], values[i]));
    }
  }
  void initialise(double start_s) override {
    expect_ok(f_.EnterInitializationMode(instance_, false, 0.0, start_s, false, 0.0),
              "fmi3EnterInitializationMode");
    if (uses_.events) ask_intervals();
    ticks_.start_at(start_s);
    now_s_ = start_s;
    ticks_are_old_ = true;
    expect_ok(f_.ExitInitializationMode(instance_), "fmi3ExitInitializationMode");
    initialised_ = true;
    if (!uses_.events) return;
    hold(~ClockMask{0});
    end_event(start_s);
  }

  void get(const VariableList& list, double* values) override {
    expect_alive();
    for (const Run& run : list.runs()) {
      if (run.type == VariableType::clock) {
        for (std::size_t k = 0; k < run.size(); ++k)
          values[run.first + k] = (ticked_ & run.clocks) != 0 ? 1.0 : 0.0;
      } else if (run.clocks == 0 || !take_held(run, values)) {
        read(run, values);
      }
    }
  }
  void set(const VariableList& list, const double* values) override {
    expect_alive();
    forget_old_ticks();
    bool needs_event = false;
    for (const Run& run : list.runs()) {
      const bool is_at_ticks = initialised_ && uses_.events && run.clocks != 0;
      const bool is_in_event = initialised_ && uses_.events && run.is_discrete && !is_at_ticks;
      if (is_at_ticks) set_at_ticks(run, values);
      if (!is_at_ticks && !is_in_event) write(run, values);
      needs_event = needs_event || is_in_event;
    }
    if (!needs_event) return;
    expect_ok(f_.EnterEventMode(instance_), "fmi3EnterEventMode");
    for (const Run& run : list.runs()) {
      if (run.is_discrete && run.clocks == 0) write(run, values);
    }
    end_event(now_s_);
  }
  void step(double time_s, double step_s) override {
    expect_alive();
    const KeptArithmetic arithmetic;
    forget_old_ticks();
    now_s_ = time_s;
    const double end_s = time_s + step_s;
    is_due_ = false;
    close_s_ = 1e-10 * step_s + 4.0 * kEpsilon * std::abs(end_s);
    tick(time_s, step_s);
    begin_means(time_s);
    int standstills = 0;
    for (int returns = 0;; ++returns) {
      const Return back = do_step(goal_before(end_s), time_s, step_s);
      sample_means(back.time_s);
      standstills = back.time_s > now_s_ ? 0 : standstills + 1;
      now_s_ = back.time_s;
      // Steps of any size are taken to the very time that was announced.
      const bool is_event_time = next_event_s_ <= now_s_ + (uses_.any_step ? 0.0 : close_s_);
      if (uses_.events && (back.has_event || is_event_time)) {
        expect_ok(f_.EnterEventMode(instance_), "fmi3EnterEventMode");
        const bool was_due = std::exchange(is_due_, false);
        end_event(now_s_);
        // Its own sum of times may be a rounding short of what it announced: one more step, of a rounding.
        is_due_ = next_event_s_ == now_s_ && !was_due;
        restart_means();
      }
      if (is_at_end(end_s, standstills > 0)) break;
      if (standstills > kMostStandstills || returns > kMostReturns) {
        fail(
            fmt::format("returns early again and again from fmi3DoStep{}, at {} s: the step "
                        "does not come to its end; the defect is in the FMU",
                        span(time_s, step_s), now_s_));
      }
    }
    ticks_are_old_ = true;
    for (double& mean : means_) mean /= step_s;
  }
  void ask_means(double* means) override { std::copy(means_.begin(), means_.end(), means); }

  void save(StateHandle& state) override {
    expect_alive();
    auto saved = std::make_unique<Saved>();
    expect_ok(f_.GetFMUState(instance_, &saved->of_fmu), "fmi3GetFMUState");
    saved->now_s = now_s_;
    saved->next_event_s = next_event_s_;
    saved->ticked = ticked_;
    saved->ticks_are_old = ticks_are_old_;
    saved->held = held_;
    state = saved.get();
    saved_.emplace(state, std::move(saved));
  }
  void restore(StateHandle state) override {
    expect_alive();
    const auto found = saved_.find(state);
    if (found == saved_.end()) throw std::logic_error("a state that was not saved");
    const Saved& own = *found->second;
    expect_ok(f_.SetFMUState(instance_, own.of_fmu), "fmi3SetFMUState");
    now_s_ = own.now_s;
    next_event_s_ = own.next_event_s;
    ticked_ = own.ticked;
    ticks_are_old_ = own.ticks_are_old;
    held_ = own.held;
  }
  void release(StateHandle& state) override {
    if (const auto found = saved_.find(state); found != saved_.end()) {
      StateHandle& own = found->second->of_fmu;
      if (own != nullptr && !is_dead()) f_.FreeFMUState(instance_, &own);
      saved_.erase(found);
    }
    state = nullptr;
  }
  /// What the FMU writes, and before it what belongs to it beside.
  std::vector<std::byte> to_bytes(StateHandle state) override {
    expect_alive();
    if (!f_.SerializeFMUState || !f_.SerializedFMUStateSize || !f_.DeserializeFMUState)
      fail(kNoBytes);
    const Saved& own = *saved_.at(state);
    std::size_t size = 0;
    expect_ok(f_.SerializedFMUStateSize(instance_, own.of_fmu, &size),
              "fmi3SerializedFMUStateSize");
    std::vector<std::byte> out(sizeof(SavedHead) + own.held.size() * sizeof(double) + size);
    const SavedHead head = {own.now_s, own.next_event_s, own.ticked, own.ticks_are_old ? 1U : 0U};
    std::memcpy(out.data(), &head, sizeof(head));
    std::ranges::copy(std::as_bytes(std::span(own.held)), out.begin() + sizeof(head));
    expect_ok(f_.SerializeFMUState(instance_, own.of_fmu, out.data() + out.size() - size, size),
              "fmi3SerializeFMUState");
    return out;
  }
  StateHandle from_bytes(std::span<const std::byte> bytes) override {
    expect_alive();
    const std::size_t held = held_.size() * sizeof(double);
    SavedHead head;
    if (bytes.size() < sizeof(head) + held) fail("was given bytes that are no state of it");
    std::memcpy(&head, bytes.data(), sizeof(head));
    auto saved = std::make_unique<Saved>();
    saved->now_s = head.now_s;
    saved->next_event_s = head.next_event_s;
    saved->ticked = head.ticked;
    saved->ticks_are_old = head.ticks_are_old != 0;
    saved->held.resize(held_.size());
    if (held > 0) std::memcpy(saved->held.data(), bytes.data() + sizeof(head), held);
    const auto rest = bytes.subspan(sizeof(head) + held);
    expect_ok(f_.DeserializeFMUState(instance_, rest.data(), rest.size(), &saved->of_fmu),
              "fmi3DeserializeFMUState");
    const StateHandle out = saved.get();
    saved_.emplace(out, std::move(saved));
    return out;
  }

 private:
  struct SavedHead {
    double now_s, next_event_s;
    ClockMask ticked;
    std::uint64_t ticks_are_old;
  };
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

  /// A state: what the FMU saved, whose handles may be equal or null, and what belongs to it beside.
  struct Saved {
    StateHandle of_fmu = nullptr;
    double now_s = 0.0, next_event_s = kNever;
    ClockMask ticked = 0;
    bool ticks_are_old = false;
    std::vector<double> held;
  };
  struct Return {
    double time_s;
    bool has_event;
  };

  void* make(const std::vector<Reference>& within) {
    return f_.InstantiateCoSimulation(
        origin().name.c_str(), origin().token.c_str(), origin().resources.c_str(), false, true,
        uses_.events, uses_.early_return, within.empty() ? nullptr : within.data(), within.size(),
        this, &Instance3::say, within.empty() ? nullptr : &Instance3::update);
  }
  static std::string span(double time_s, double step_s) {
    return fmt::format(" from {} s over {} s", time_s, step_s);
  }

  /// An announced event within the step, else its end. One that is as good as at the end is met too: whoever compares
  /// times strictly is not there before.
  double goal_before(double end_s) const {
    if (is_due_ && uses_.any_step)
      return now_s_ + 2.0 * kEpsilon * std::max(std::abs(now_s_), end_s - now_s_);
    const bool stops =
        uses_.any_step && next_event_s_ > now_s_ && next_event_s_ <= end_s + close_s_;
    return stops ? next_event_s_ : end_s;
  }
  bool is_at_end(double end_s, bool stands_still) const {
    if (goal_before(end_s) > now_s_) return stands_still && now_s_ >= end_s - close_s_;
    return now_s_ >= end_s;
  }
  /// Ticks are of a step with the inputs set before it.
  void forget_old_ticks() {
    if (std::exchange(ticks_are_old_, false)) ticked_ = 0;
  }

  /// From now to the goal, or less far if the FMU returns early. The step that it is part of is named in faults.
  Return do_step(double goal_s, double time_s, double step_s) {
    const bool is_first = now_s_ == time_s, is_whole = is_first && goal_s == time_s + step_s;
    bool event = false, terminates = false, early = false;
    double last_s = goal_s;
    goal_s_ = goal_s;
    // Of a step in pieces the beginning of the first is where a state may be set again.
    const int status = f_.DoStep(instance_, now_s_, is_whole ? step_s : goal_s - now_s_,
                                 kNoReturnBefore && is_first, &event, &terminates, &early, &last_s);
    if (fault_within_) std::rethrow_exception(std::exchange(fault_within_, nullptr));
    if (status != kOk) expect_ok(status, "fmi3DoStep", span(time_s, step_s));
    if (terminates) ask_to_end("fmi3DoStep" + span(time_s, step_s));
    if (!early) return {goal_s, event};
    if (!uses_.early_return) {
      fail(fmt::format("returned early from fmi3DoStep{}, at {} s: it was not allowed to",
                       span(time_s, step_s), last_s));
    }
    if (!(last_s >= now_s_ - close_s_ && last_s <= goal_s + close_s_)) {
      fail(
          fmt::format("returned early from fmi3DoStep{}, and says that it has come to {} s, which "
                      "is not within the step; the defect is in the FMU",
                      span(time_s, step_s), last_s));
    }
    return {std::clamp(last_s, now_s_, goal_s), event};
  }

  /// Discrete states are updated until they stay, and clocks that tick thereby are heard. Then steps go on.
  void end_event(double time_s) {
    for (int count = 0;; ++count) {
      hear_clocks();
      bool again = false, terminates = false, nominals = false, values = false, has_next = false;
      double next_s = kNever;
      expect_ok(f_.UpdateDiscreteStates(instance_, &again, &terminates, &nominals, &values,
                                        &has_next, &next_s),
                "fmi3UpdateDiscreteStates");
      if (terminates) ask_to_end(fmt::format("fmi3UpdateDiscreteStates at {} s", time_s));
      if (has_next && !(next_s >= time_s - close_s_)) {
        fail(
            fmt::format("says in fmi3UpdateDiscreteStates at {} s that its next event is at "
                        "{} s, which has passed or is no time; the defect is in the FMU",
                        time_s, next_s));
      }
      next_event_s_ = has_next ? std::max(next_s, time_s) : kNever;
      if (!again) break;
      if (count >= kMostUpdates) {
        fail(
            fmt::format("does not leave event mode: at {} s it wants its discrete states "
                        "updated more than {} times; the defect is in the FMU",
                        time_s, kMostUpdates));
      }
    }
    expect_ok(f_.EnterStepMode(instance_), "fmi3EnterStepMode");
  }

  void ask_intervals() {
    for (ClockUse& own : ticks_.clocks()) {
      if (!own.asks_interval) continue;
      if (f_.GetIntervalDecimal != nullptr) {
        int qualifier = 0;
        double told_s = 0.0;
        expect_ok(f_.GetIntervalDecimal(instance_, &own.reference, 1, &told_s, &qualifier),
                  "fmi3GetIntervalDecimal");
        // It may not know it yet: then that of the description counts.
        if (qualifier != kNotYetKnown) own.interval_s = told_s;
      }
      if (f_.GetShiftDecimal != nullptr) {
        expect_ok(f_.GetShiftDecimal(instance_, &own.reference, 1, &own.shift_s),
                  "fmi3GetShiftDecimal");
      }
      if (own.interval_s > 0.0 && own.shift_s >= 0.0 && std::isfinite(own.interval_s + own.shift_s))
        continue;
      fail(
          fmt::format("does not tell the interval of its clock {} when it is initialised: {} s, "
                      "shifted by {} s",
                      in_quotes(own.name), own.interval_s, own.shift_s));
    }
  }
  /// Clocks that tick at the beginning of a step, with the inputs that wait for them.
  void tick(double time_s, double step_s) {
    if (ticks_.clocks().empty()) return;
    std::string refusal;
    const ClockMask now = ticks_.at(time_s, step_s, refusal);
    if (!refusal.empty()) fail(refusal);
    if (now == 0) return;
    expect_ok(f_.EnterEventMode(instance_), "fmi3EnterEventMode");
    const bool does_tick = true;
    for (const ClockUse& own : ticks_.clocks()) {
      if ((own.bit & now) == 0) continue;
      expect_ok(f_.SetClock(instance_, &own.reference, 1, &does_tick), "fmi3SetClock");
    }
    ticked_ |= now;
    for (const auto& [references, own] : waiting_) {
      if ((own.run.clocks & now) != 0) write(own.run, own.values.data());
    }
    hold(now);
    end_event(time_s);
  }
  void hear_clocks() {
    ClockMask now = 0;
    for (const ClockUse& own : ticks_.clocks()) {
      if (!own.is_output) continue;
      bool ticks = false;
      expect_ok(f_.GetClock(instance_, &own.reference, 1, &ticks), "fmi3GetClock");
      if (ticks) now |= own.bit;
    }
    ticked_ |= now;
    if (now != 0) hold(now);
  }
  /// Reads what changes at these ticks. Between them it may have any value.
  void hold(ClockMask ticks) {
    for (const Run& run : uses_.clocked.runs()) {
      if ((run.clocks & ticks) != 0) read(run, held_.data());
    }
  }
  bool take_held(const Run& run, double* values) const {
    for (std::size_t k = 0; k < run.size(); ++k) {
      const auto found = held_at_.find(number_in(run, k));
      if (found == held_at_.end()) return false;
      values[run.first + k] = held_[found->second];
    }
    return true;
  }
  /// What tells one number of a run from others.
  static std::pair<Reference, std::uint64_t> number_in(const Run& run, std::size_t k) {
    if (run.is_array()) return {run.references.front(), run.places[k]};
    return {run.references[k], 0};
  }
  void set_at_ticks(const Run& run, const double* values) {
    Waiting& own = waiting_[{run.references.front(), run.places}];
    own.run = run;
    own.run.first = 0;
    own.values.assign(values + run.first, values + run.first + run.size());
  }

  /// Values of it are told within steps.
  bool tells_within(const Run& run) const {
    return uses_.intermediate && run.is_within && run.clocks == 0;
  }
  /// As it is now: between ticks, what changes at them is held.
  void look(const Run& run, double* values) {
    if (run.clocks == 0 || !take_held(run, values)) read(run, values);
  }
  void begin_means(double time_s) {
    if (means_.empty()) return;
    std::ranges::fill(means_, 0.0);
    for (double& own : sampled_s_) own = time_s;
    restart_means();
  }
  /// Values after an event, from which on they go on.
  void restart_means() {
    for (const Run& run : uses_.watched.runs()) look(run, last_.data());
  }
  /// At the end of a piece of a step.
  void sample_means(double time_s) {
    if (means_.empty()) return;
    for (const bool within : {false, true}) sample_means(time_s, within);
  }
  void sample_means(double time_s, bool within) {
    double& sampled_s = sampled_s_[within ? 1 : 0];
    for (const Run& run : uses_.watched.runs()) {
      if (tells_within(run) != within) continue;
      look(run, next_.data());
      for (std::size_t i = run.first; i < run.first + run.size(); ++i) {
        means_[i] += 0.5 * (last_[i] + next_[i]) * (time_s - sampled_s);
        last_[i] = next_[i];
      }
    }
    sampled_s = time_s;
  }

  static void say(void* environment, int status, const char* /*category*/, const char* message) {
    auto* const own = static_cast<Instance3*>(environment);
    if (own != nullptr && message != nullptr) own->log().note(status, message);
  }
  /// Called by the FMU within a step, after one of its own steps.
  static void update(void* environment, double time_s, bool /*wants_inputs*/, bool may_get,
                     bool step_finished, bool /*can_return_early*/, bool* early,
                     double* /*early_time*/) {
    if (early != nullptr) *early = false;
    auto* const own = static_cast<Instance3*>(environment);
    if (own == nullptr || !may_get || !step_finished || own->fault_within_) return;
    try {
      const double last_s = own->sampled_s_[1];
      const double near_s = std::max(1e-9 * (own->goal_s_ - own->now_s_), own->close_s_);
      // Some tell of the beginning too, by a time that they add up themselves.
      if (time_s <= last_s && time_s >= last_s - near_s) return;
      if (!(time_s > last_s && time_s <= own->goal_s_ + near_s)) {
        own->fail(
            fmt::format("tells values at {} s in a step from {} s to {} s, after those at {} "
                        "s; the defect is in the FMU",
                        time_s, own->now_s_, own->goal_s_, last_s));
      }
      own->sample_means(time_s, true);
    } catch (...) {
      own->fault_within_ = std::current_exception();
    }
  }

  struct Waiting {
    Run run;
    std::vector<double> values;
  };

  InstanceUses uses_;
  ClockTicks ticks_;
  bool initialised_ = false;
  double now_s_ = 0.0, goal_s_ = 0.0, next_event_s_ = kNever;
  double close_s_ = 0.0;        ///< times that differ by rounding alone, in the step
  ClockMask ticked_ = 0;        ///< during the last step, and by inputs set since
  bool is_due_ = false;         ///< an event that was announced for now
  bool ticks_are_old_ = false;  ///< the step that they are of is over
  std::vector<double> held_;
  std::map<std::pair<Reference, std::uint64_t>, std::size_t> held_at_;  ///< places
  std::map<std::pair<Reference, std::vector<std::uint64_t>>, Waiting> waiting_;
  std::map<StateHandle, std::unique_ptr<Saved>> saved_;  ///< by their addresses
  // Of the variables that are watched: integrals, and values of the last sample.
  std::vector<double> means_, last_, next_;
  double sampled_s_[2] = {};  ///< at ends of pieces, and within them
  std::exception_ptr fault_within_;
};

}  // namespace

std::unique_ptr<Instance> make_instance_3(const v3::Functions& functions, InstanceOrigin origin,
                                          FmuLog* log) {
  return std::make_unique<Instance3>(functions, std::move(origin), log);
}

}  // namespace portwave::fmi

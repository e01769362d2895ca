#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "adapters/fmi/fmu_clocks.hpp"
#include "adapters/fmi/fmu_loaded.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

using Run = VariableList::Run;

constexpr int kMostUpdates = 1000;       // of discrete states at one time
constexpr int kMostStandstills = 100;    // early returns at one time
constexpr int kMostReturns = 1'000'000;  // early returns from one step

/// Memory that an FMU writes an array to: what it left as it was, and what it wrote behind the end, can be seen.
class ArrayMemory {
 public:
  template <class Number>
  Number* prepare(std::size_t count) {
    bytes_ = count * sizeof(Number);
    memory_.resize(std::max(memory_.size(), bytes_ + kGuard));
    Number* const begin = reinterpret_cast<Number*>(memory_.data());
    std::fill_n(begin, count, untouched<Number>());
    std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(bytes_), kGuard, kMark);
    return begin;
  }
  bool was_overrun() const {
    return !std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(bytes_),
                        memory_.begin() + static_cast<std::ptrdiff_t>(bytes_ + kGuard),
                        [](std::byte own) { return own == kMark; });
  }
  /// A number that no FMU answers by chance: only real numbers have one.
  template <class Number>
  static bool is_untouched(Number value) {
    if constexpr (!std::is_floating_point_v<Number>) return false;
    const Number mark = untouched<Number>();
    return std::memcmp(&value, &mark, sizeof(Number)) == 0;
  }

 private:
  static constexpr std::size_t kGuard = 1024;
  static constexpr std::byte kMark{0xa5};

  template <class Number>
  static Number untouched() {
    if constexpr (std::is_same_v<Number, double>) {
      return std::bit_cast<double>(std::uint64_t{0x7ff8'5a5a'1234'5a5a});
    } else if constexpr (std::is_same_v<Number, float>) {
      return std::bit_cast<float>(std::uint32_t{0x7fc5'a123});
    } else {
      return Number{};
    }
  }

  std::vector<std::byte> memory_;
  std::size_t bytes_ = 0;
};

/// Gets and sets numbers of an instance, whatever mode it is in.
class Access3 : public LoadedInstance {
 protected:
  Access3(const v3::Functions& functions, InstanceOrigin from, FmuLog* log)
      : LoadedInstance(std::move(from), log), f_(functions) {}

  void read(const Run& run, double* values) {
    if (run.is_array()) return read_array(run, values);
    if (run.type == VariableType::float64) {
      return expect_ok(f_.GetFloat64(instance_, run.references.data(), run.references.size(),
                                     values + run.first, run.references.size()),
                       "fmi3GetFloat64");
    }
    with_type(run.type, [&]<class Number>(v3::Get<Number> getter, v3::Set<Number>) {
      get_converted<Number>(run, values,
                            [&](const Reference* which, std::size_t count, Number* to) {
                              expect_ok(getter(instance_, which, count, to, count), "fmi3Get");
                            });
    });
  }
  void write(const Run& run, const double* values) {
    if (run.is_array()) return write_array(run, values);
    if (run.type == VariableType::float64) {
      return expect_ok(f_.SetFloat64(instance_, run.references.data(), run.references.size(),
                                     values + run.first, run.references.size()),
                       "fmi3SetFloat64");
    }
    with_type(run.type, [&]<class Number>(v3::Get<Number>, v3::Set<Number> setter) {
      set_converted<Number>(run, values,
                            [&](const Reference* which, std::size_t count, const Number* from) {
                              expect_ok(setter(instance_, which, count, from, count), "fmi3Set");
                            });
    });
  }
  /// What the FMU does wrong, told with its name.
  [[noreturn]] void fail(const std::string& what) const {
    throw FmuFault(fmt::format("the FMU {} {}", in_quotes(origin().file), what));
  }

  const v3::Functions f_;
  void* instance_ = nullptr;

 private:
  template <class Number>
  const Number* all_of(const Run& run, v3::Get<Number> getter) {
    Number* const all = array_.prepare<Number>(run.elements);
    const int status = getter(instance_, run.references.data(), 1, all, run.elements);
    if (array_.was_overrun()) {
      fail(fmt::format("wrote more than the {} elements of its array {}: the defect is in the FMU",
                       run.elements, in_quotes(run.array)));
    }
    if (status != kOk) expect_ok(status, "fmi3Get", of_array(run));
    return all;
  }
  void read_array(const Run& run, double* values) {
    with_type(run.type, [&]<class Number>(v3::Get<Number> getter, v3::Set<Number>) {
      const Number* const all = all_of<Number>(run, getter);
      for (std::size_t k = 0; k < run.places.size(); ++k) {
        const Number own = all[run.places[k]];
        if (ArrayMemory::is_untouched(own)) {
          fail(
              fmt::format("gave no value for element {} of the {} of its array {}: it is smaller "
                          "than its modelDescription.xml says",
                          run.places[k] + 1, run.elements, in_quotes(run.array)));
        }
        values[run.first + k] = static_cast<double>(own);
      }
    });
  }
  /// Arrays are set as a whole: elements that are not in the run stay as they are.
  void write_array(const Run& run, const double* values) {
    with_type(run.type, [&]<class Number>(v3::Get<Number> getter, v3::Set<Number> setter) {
      Number* const all = run.places.size() == run.elements
                              ? array_.prepare<Number>(run.elements)
                              : const_cast<Number*>(all_of<Number>(run, getter));
      for (std::size_t k = 0; k < run.places.size(); ++k)
        all[run.places[k]] = number_of<Number>(values[run.first + k]);
      const int status = setter(instance_, run.references.data(), 1, all, run.elements);
      if (status != kOk) expect_ok(status, "fmi3Set", of_array(run));
    });
  }
  static std::string of_array(const Run& run) {
    return fmt::format(" of the {} elements of the array {}", run.elements, in_quotes(run.array));
  }

  template <class Act>
  void with_type(VariableType type, const Act& act) {
    switch (type) {
      case VariableType::float64:
        return act(f_.GetFloat64, f_.SetFloat64);
      case VariableType::float32:
        return act(f_.GetFloat32, f_.SetFloat32);
      case VariableType::int8:
        return act(f_.GetInt8, f_.SetInt8);
      case VariableType::uint8:
        return act(f_.GetUInt8, f_.SetUInt8);
      case VariableType::int16:
        return act(f_.GetInt16, f_.SetInt16);
      case VariableType::uint16:
        return act(f_.GetUInt16, f_.SetUInt16);
      case VariableType::int32:
        return act(f_.GetInt32, f_.SetInt32);
      case VariableType::uint32:
        return act(f_.GetUInt32, f_.SetUInt32);
      case VariableType::int64:
        return act(f_.GetInt64, f_.SetInt64);
      case VariableType::uint64:
        return act(f_.GetUInt64, f_.SetUInt64);
      case VariableType::boolean:
        return act(f_.GetBoolean, f_.SetBoolean);
      case VariableType::text:
      case VariableType::clock:
      case VariableType::other:
        break;
    }
    throw std::logic_error("a variable that is no number");
  }

  ArrayMemory array_;
};

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
      for (const Run& run : uses_.watched.runs())
        within.insert(within.end(), run.references.begin(), run.references.end());
    }
    instance_ = f_.InstantiateCoSimulation(
        origin().name.c_str(), origin().token.c_str(), origin().resources.c_str(), false, true,
        uses_.events, uses_.early_return, within.empty() ? nullptr : within.data(), within.size(),
        this, &Instance3::say, within.empty() ? nullptr : &Instance3::update);
    if (instance_ == nullptr) expect_ok(kError, "fmi3InstantiateCoSimulation");
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
    now_s_ = time_s;
    ticked_ = 0;
    tick(time_s, step_s);
    begin_means(time_s);
    const double end_s = time_s + step_s, close_s = 1e-10 * step_s;
    int standstills = 0;
    for (int returns = 0;; ++returns) {
      const bool stops_between =
          uses_.any_step && next_event_s_ > now_s_ + close_s && next_event_s_ < end_s - close_s;
      const double goal_s = stops_between ? next_event_s_ : end_s;
      const Return back = do_step(goal_s, time_s, step_s);
      sample_means(back.time_s);
      standstills = back.time_s > now_s_ ? 0 : standstills + 1;
      now_s_ = back.time_s;
      const bool is_event_time = next_event_s_ <= now_s_ + close_s;
      if (uses_.events && (back.has_event || is_event_time)) {
        expect_ok(f_.EnterEventMode(instance_), "fmi3EnterEventMode");
        end_event(now_s_);
        restart_means();
      }
      if (now_s_ >= end_s - close_s) break;
      if (standstills > kMostStandstills || returns > kMostReturns) {
        fail(
            fmt::format("returns early again and again from fmi3DoStep{}, at {:.17g} s: the step "
                        "does not come to its end; the defect is in the FMU",
                        span(time_s, step_s), now_s_));
      }
    }
    for (double& mean : means_) mean /= step_s;
  }
  void ask_means(double* means) override { std::copy(means_.begin(), means_.end(), means); }

  void save(StateHandle& state) override {
    expect_alive();
    expect_ok(f_.GetFMUState(instance_, &state), "fmi3GetFMUState");
    if (uses_.events) beside_[state] = {now_s_, next_event_s_, ticked_, held_};
  }
  void restore(StateHandle state) override {
    expect_alive();
    expect_ok(f_.SetFMUState(instance_, state), "fmi3SetFMUState");
    if (!uses_.events) return;
    const Beside& own = beside_.at(state);
    now_s_ = own.now_s;
    next_event_s_ = own.next_event_s;
    ticked_ = own.ticked;
    held_ = own.held;
  }
  void release(StateHandle& state) override {
    if (uses_.events) beside_.erase(state);
    if (state != nullptr && !is_dead()) f_.FreeFMUState(instance_, &state);
    state = nullptr;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// What belongs to a state beside what the FMU saves.
  struct Beside {
    double now_s, next_event_s;
    ClockMask ticked;
    std::vector<double> held;
  };
  struct Return {
    double time_s;
    bool has_event;
  };

  static std::string span(double time_s, double step_s) {
    return fmt::format(" from {:.17g} s over {:.17g} s", time_s, step_s);
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
    const double close_s = 1e-10 * step_s;
    if (!(last_s >= now_s_ - close_s && last_s <= goal_s + close_s)) {
      fail(
          fmt::format("returned early from fmi3DoStep{}, and says that it has come to {} s, which "
                      "is not within the step; the defect is in the FMU",
                      span(time_s, step_s), last_s));
    }
    return {std::clamp(last_s, now_s_, goal_s), event};
  }

  [[noreturn]] void ask_to_end(const std::string& where) const {
    fail(fmt::format("asks to end the simulation, in {}", where));
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
      if (has_next && !(next_s >= time_s)) {
        fail(
            fmt::format("says in fmi3UpdateDiscreteStates at {} s that its next event is at "
                        "{} s, which has passed or is no time; the defect is in the FMU",
                        time_s, next_s));
      }
      next_event_s_ = has_next && next_s > time_s ? next_s : kNever;
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
      int qualifier = 0;
      if (f_.GetIntervalDecimal != nullptr) {
        expect_ok(f_.GetIntervalDecimal(instance_, &own.reference, 1, &own.interval_s, &qualifier),
                  "fmi3GetIntervalDecimal");
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

  void begin_means(double time_s) {
    if (means_.empty()) return;
    std::ranges::fill(means_, 0.0);
    sampled_s_ = time_s;
    restart_means();
  }
  /// Values after an event, from which on they go on.
  void restart_means() {
    for (const Run& run : uses_.watched.runs()) read(run, last_.data());
  }
  void sample_means(double time_s) {
    if (means_.empty()) return;
    for (const Run& run : uses_.watched.runs()) read(run, next_.data());
    for (std::size_t i = 0; i < means_.size(); ++i)
      means_[i] += 0.5 * (last_[i] + next_[i]) * (time_s - sampled_s_);
    last_.swap(next_);
    sampled_s_ = time_s;
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
      // Some tell of the beginning too.
      if (time_s == own->sampled_s_) return;
      const double most_s = own->goal_s_ + 1e-9 * (own->goal_s_ - own->now_s_);
      if (!(time_s > own->sampled_s_ && time_s <= most_s)) {
        own->fail(
            fmt::format("tells values at {} s in a step from {} s to {} s, after those at {} "
                        "s; the defect is in the FMU",
                        time_s, own->now_s_, own->goal_s_, own->sampled_s_));
      }
      own->sample_means(time_s);
    } catch (...) {
      own->fault_within_ = std::current_exception();
    }
  }

  struct Waiting {
    Run run;
    std::vector<double> values;
  };

  const InstanceUses& uses_;
  ClockTicks ticks_;
  bool initialised_ = false;
  double now_s_ = 0.0, goal_s_ = 0.0, next_event_s_ = kNever;
  ClockMask ticked_ = 0;  ///< during the last step
  std::vector<double> held_;
  std::map<std::pair<Reference, std::uint64_t>, std::size_t> held_at_;  ///< places
  std::map<std::pair<Reference, std::vector<std::uint64_t>>, Waiting> waiting_;
  std::map<StateHandle, Beside> beside_;
  // Of the variables that are watched: integrals, and values of the last sample.
  std::vector<double> means_, last_, next_;
  double sampled_s_ = 0.0;
  std::exception_ptr fault_within_;
};

}  // namespace

std::unique_ptr<Instance> make_instance_3(const v3::Functions& functions, InstanceOrigin origin,
                                          FmuLog* log) {
  return std::make_unique<Instance3>(functions, std::move(origin), log);
}

}  // namespace portwave::fmi

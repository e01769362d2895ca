#include "portwave/runtime/step/stepper.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "parallel/expect_number.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/name_search.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/coenergy.hpp"
#include "ranks/rank_together.hpp"
#include "signals/signal_run.hpp"
#include "step/event_watch.hpp"
#include "step/states/start_check.hpp"
#include "step/states/step_identity.hpp"
#include "step/step_engine.hpp"
#include "step/stepper_options.hpp"

namespace portwave {
namespace {

std::unique_ptr<StepEngine> make_engine(const System& system, const StepperOptions& options) {
  checked(system, options);
  std::string note;
  StepperOptions chosen = with_choice(system, options, note);
  if (options.arena == nullptr) chosen.threads = threads_allowed(options.threads);
  std::unique_ptr<Together> together = together_of(system, options.ranks);
  together->agree("the systems, or the options of their steps,",
                  [&] { return digest_of_inputs(system, chosen); });
  std::unique_ptr<StepEngine> engine;
  if (!chosen.method.couples_by_waves()) {
    engine = make_network_engine(system, chosen, std::move(together));
  } else {
    if (options.method.waves().stages == 0) {
      chosen.method.waves().stages = chosen_stages(system, options);
    }
    chosen.method.waves().start = chosen_start(system, chosen);
    engine = make_wave_engine(system, chosen, std::move(together));
  }
  engine->note_choice(std::move(note));
  return engine;
}

/// The digest of what was derived: impedances and energies, which depend on parameters. Slices have
/// impedances of their own.
std::uint64_t digest_of_start(const StepEngine& engine) {
  Digest digest;
  const CouplingMethod& method = engine.method().method;
  if (engine.together().has_whole() && method.couples_by_waves()) {
    for (const double gamma : method.waves().impedance) digest.add(gamma);
  }
  digest.add(engine.energy().initial_J);
  digest.add(engine.energy().initial_tank_J);
  return digest.value();
}

/// Reads sensors off an engine, which stays where it is when its stepper is moved.
SignalRun::Reader reader_of(StepEngine& engine) {
  return [&engine](const Sensor& sensor) -> double {
    switch (sensor.kind) {
      case Sensor::Kind::state:
        return engine.state(sensor.part)[at(sensor.index)];
      case Sensor::Kind::effort:
        return engine.effort_flow(sensor.index).effort;
      case Sensor::Kind::flow:
        return engine.effort_flow(sensor.index).flow;
      case Sensor::Kind::coenergy:
        return coenergy(*engine.system().parts()[at(sensor.part)].component,
                        engine.state(sensor.part).data(), sensor.index);
      case Sensor::Kind::storage:
        break;
    }
    double stored = engine.storage(sensor.part);
    for (int i = 1; i <= sensor.index; ++i) stored += engine.storage(sensor.part + i);
    return stored;
  };
}

/// The multiple of a period at a time or, but for rounding, before it.
std::int64_t multiple_before(double time_s, double period_s) {
  constexpr double kMost = 9e15;
  const double ratio = time_s / period_s;
  const double rounding = 1e-6 + 4.0 * std::numeric_limits<double>::epsilon() * std::abs(ratio);
  return static_cast<std::int64_t>(std::clamp(std::floor(ratio + rounding), -kMost, kMost));
}

std::unique_ptr<StartCheck> checked_start(StepEngine& engine, const StepperOptions& options) {
  auto check = StartCheck::made(engine, options);
  engine.together().check([&] {
    if (check != nullptr) check->begin();
  });
  return check;
}

void expect_finite_time(double time_s) {
  if (std::isfinite(time_s)) return;
  throw std::invalid_argument(
      fmt::format("the time to step to must be finite, got {} s", shown_number(time_s)));
}

void expect_part(const System& system, int part) {
  expect_number("part", part, system.parts().size());
}

void expect_scalar_port(const System& system, int port) {
  expect_number("scalar port", port, system.scalar_ports().size());
}

/// Of a step of fixed size: its end may be as much earlier than a sample by rounding.
constexpr double kEarlySample = 1e-6;

void expect_to_end(const StepEngine* engine) noexcept {
  if (engine != nullptr) engine->activity().expect_to_end("a stepper");
}

}  // namespace

namespace {

/// Null where the system of a stepper may be somebody else's.
std::unique_ptr<System> copy_to_change(const System& system, const StepperOptions& options) {
  if (options.signals == nullptr || options.signals->parameter_actuators().empty()) return nullptr;
  const System* const one[] = {&system};
  return std::make_unique<System>(gathered_system(one));
}

}  // namespace

Stepper::Stepper(const System& system, const StepperOptions& options)
    : Stepper(copy_to_change(system, options), system, options) {}
Stepper::Stepper(System&& system, const StepperOptions& options)
    : Stepper(std::make_unique<System>(std::move(system)), options) {}
Stepper::Stepper(std::unique_ptr<System> system, const StepperOptions& options)
    : Stepper(nullptr, std::as_const(*system), options) {
  own_system_ = std::move(system);
}
Stepper::Stepper(std::unique_ptr<System> own, const System& given, const StepperOptions& options)
    : own_system_(std::move(own)),
      engine_(make_engine(own_system_ != nullptr ? *own_system_ : given, options)),
      options_(options) {
  const System& system = this->system();
  for (const Part& part : system.parts()) {
    gradient_.resize(std::max(gradient_.size(), part.initial_state.size()));
  }
  if (options.signals != nullptr) {
    signals_every_s_ = options.signals_every_s;
    const double period_s = signals_every_s_ > 0.0 ? signals_every_s_ : options.step_s;
    signals_ = std::make_unique<SignalRun>(
        options.signals, period_s, multiple_before(options.start_s, period_s), reader_of(*engine_));
    sample_if_possible();
  }
  start_check_ = checked_start(*engine_, options);
  if (std::vector<Watch> watches = watches_of(system, options); !watches.empty()) {
    const SignalRun* const signals = signals_.get();
    events_ = std::make_unique<EventWatch>(
        std::move(watches),
        [read = reader_of(*engine_), signals](const Watch& watch) {
          return watch.signal >= 0 ? signals->values()[at(watch.signal)] : read(watch.of);
        },
        system);
  }
  engine_->together().agree("the parameters of parts", [&] { return digest_of_start(*engine_); });
  engine_->together().lead();
}

Stepper::~Stepper() {
  if (engine_ != nullptr) engine_->activity().expect_to_end("a stepper");
}
Stepper::Stepper(Stepper&&) noexcept = default;
Stepper& Stepper::operator=(Stepper&&) noexcept = default;

Stepper::Engine::Engine(std::unique_ptr<StepEngine> made) : unique_ptr(std::move(made)) {}
Stepper::Engine::~Engine() = default;
Stepper::Engine::Engine(Engine&& other) noexcept
    : unique_ptr((expect_to_end(other.get()), std::move(other))) {}
Stepper::Engine& Stepper::Engine::operator=(Engine&& other) noexcept {
  expect_to_end(get());
  expect_to_end(other.get());
  unique_ptr::operator=(std::move(other));
  return *this;
}

StepReport Stepper::step() { return step_to(std::numeric_limits<double>::infinity()); }

StepReport Stepper::step_to(double limit_s) {
  Acting acting(engine_->activity(), Activity::Kind::step);
  if (signals_ != nullptr || events_ != nullptr || !observers_.empty() || start_check_ != nullptr) {
    return step_with_others(limit_s, acting);
  }
  engine_->enter();
  StepReport report = engine_->step_towards(limit_s);
  look(report);
  return report;
}

StepReport Stepper::step_by(double step_s) {
  if (!(step_s > 0.0) || !std::isfinite(step_s)) {
    throw std::invalid_argument(
        fmt::format("a step must be finite and > 0, got {} s", shown_number(step_s)));
  }
  Acting acting(engine_->activity(), Activity::Kind::step);
  if (step_sizes() != nullptr) throw std::logic_error("steps choose their size themselves");
  if (signals_ != nullptr) {
    throw std::logic_error("controllers are sampled every step: all must be of one size");
  }
  engine_->enter();
  const double start_s = time_s();
  if (start_check_ != nullptr) start_check_->before_step(step_s);
  StepReport report = engine_->step_by(step_s);
  if (start_check_ != nullptr) start_check_->after_step(report);
  if (events_ != nullptr) events_->look(*engine_, start_s, time_s());
  look(report);
  if (!observers_.empty()) {
    acting.be(Activity::Kind::told);
    tell(report);
  }
  return report;
}

/// The energy of a part's motion since the start (CouplingLooks::moved_J).
double Stepper::motion_of(int part) const {
  const Part& own = system().parts()[at(part)];
  const Subsystem* const physics = own.port_hamiltonian();
  if (physics == nullptr) return std::abs(engine_->storage(part));
  const std::vector<double>& start = own.initial_state;
  const double change_J = engine_->storage(part) - physics->storage(start.data());
  if (physics->linear_form().E != nullptr) return std::abs(change_J);
  const std::span<const double> x = engine_->state(part);
  physics->gradient(start.data(), gradient_.data());
  double along_J = 0.0;
  for (std::size_t i = 0; i < start.size(); ++i) along_J += gradient_[i] * (x[i] - start[i]);
  const double bent_J = change_J - along_J;
  return std::max(std::abs(change_J), std::isfinite(bent_J) ? std::abs(bent_J) : 0.0);
}

/// After steps 1, 2, 4, 8, …; under a deadline in time that these and later ones leave.
void Stepper::look(StepReport& report) noexcept {
  const auto step = static_cast<std::uint64_t>(step_index());
  const bool iterates = waves() != nullptr || options_.method.is<DynamicIteration>();
  const bool begins = (step & (step - 1)) == 0 && iterates;
  if (begins) looked_at_ = 0;
  if (looked_at_ >= 0) {
    try {
      look_on();
    } catch (...) {  // the step stands: what a part throws here it throws in the next one, too
      looked_at_ = -1;
    }
  }
  if (begins || looked_at_ >= 0 || signals_ != nullptr || events_ != nullptr) {
    engine_->extend(report);
  }
}

/// Goes on with the look that is under way, some parts at a time, as long as there is time.
void Stepper::look_on() {
  constexpr int kParts = 32;
  constexpr double kGuess_s = 0.5e-6, kMargin = 2.0;  // of a part
  const int parts = static_cast<int>(system().parts().size());
  const auto left_s = [this] { return engine_->time_left_s(); };
  double before_s = left_s();
  const bool is_limited = std::isfinite(before_s);
  const auto fits = [&](int count) {
    return !is_limited || before_s >= kMargin * count * std::max(look_at_part_s_, kGuess_s);
  };
  if (looked_at_ == 0) {
    if (!fits(parts / 4)) return;  // about what the residual takes
    ++looks_.count;
    looked_J_ = 0.0;
    if (const auto residual = engine_->coupling_residual()) {
      looks_.residual = std::max(looks_.residual, *residual);
    }
    if (!keeps_ledger() || !engine_->together().has_whole()) looked_at_ = parts;
    if (is_limited) before_s = left_s();
  }
  while (looked_at_ < parts && fits(kParts)) {
    const int end = is_limited ? std::min(looked_at_ + kParts, parts) : parts;
    const int count = end - looked_at_;
    while (looked_at_ < end) looked_J_ += motion_of(looked_at_++);
    if (!is_limited) continue;
    const double now_s = left_s();
    look_at_part_s_ = std::max((before_s - now_s) / count, 0.9 * look_at_part_s_);
    before_s = now_s;
  }
  if (looked_at_ < parts) return;
  looks_.moved_J = std::max(looks_.moved_J, looked_J_);
  looked_at_ = -1;
}

CouplingLooks Stepper::coupling() const {
  CouplingLooks all = looks_;
  if (looked_at_ < 0 || !keeps_ledger() || !engine_->together().has_whole()) return all;
  const int parts = static_cast<int>(system().parts().size());
  double moved_J = 0.0;
  for (int part = 0; part < parts; ++part) moved_J += motion_of(part);
  all.moved_J = std::max(all.moved_J, moved_J);
  return all;
}

void Stepper::tell(const StepReport& report) const {
  for (const auto& observer : observers_) observer(*this, report);
}

void Stepper::on_step(std::function<void(const Stepper&, const StepReport&)> observer) {
  engine_->activity().expect_none();
  observers_.push_back(std::move(observer));
}

void Stepper::clear_observers() {
  engine_->activity().expect_none();
  observers_.clear();
}

/// Infinite where samples do not limit the size of steps.
double Stepper::next_sample_s() const {
  if (signals_every_s_ == 0.0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(signals_->multiple(sampled_ + 1)) * signals_every_s_;
}

void Stepper::sample_signals() {
  std::int64_t sample = step_index();
  if (signals_every_s_ > 0.0) {
    // Steps of one size end there but for the rounding of their times.
    const double early_s = options_.sizes ? 0.0 : kEarlySample * options_.step_s;
    if (sampled_ >= 0 && time_s() < next_sample_s() - early_s) return;
    sample = sampled_ + 1;
  }
  if (sampled_ == sample) return;
  if (const SampleFault fault = signals_->sample(sample, time_s()); !fault.ok()) {
    throw StepError::of_signal(signals_->graph().nodes()[at(fault.node)].name, step_index(),
                               fault.threw ? StepFault::threw : StepFault::not_finite,
                               fault.detail);
  }
  sampled_ = sample;
  if (signals_->actuate(engine_->settings())) engine_->settings_changed();
}

void Stepper::sample_if_possible() {
  try {
    sample_signals();
  } catch (const StepError&) {
    // The committed step stands. The next one samples again, and fails.
  }
}

std::span<const double> Stepper::signals() const {
  return signals_ == nullptr ? std::span<const double>() : signals_->values();
}

std::span<const Watch> Stepper::watches() const {
  return events_ == nullptr ? std::span<const Watch>() : events_->watches();
}

std::span<const Event> Stepper::events() const {
  return events_ == nullptr ? std::span<const Event>() : events_->events();
}

const Watch* Stepper::ending_watch() const {
  for (const Event& event : events()) {
    const Watch& watch = watches()[at(event.watch)];
    if (watch.ends_run) return &watch;
  }
  return nullptr;
}

std::span<const EventCount> Stepper::event_counts() const {
  return events_ == nullptr ? std::span<const EventCount>() : events_->counts();
}

StepReport Stepper::step_towards(double limit_s) {
  if (step_sizes() == nullptr) {
    throw std::logic_error("all steps are of one size: none can be made to end at a given time");
  }
  expect_finite_time(limit_s);
  if (!(limit_s > time_s())) {
    throw std::out_of_range(
        fmt::format("a step towards {:g} s was asked for at {:g} s", limit_s, time_s()));
  }
  return step_to(limit_s);
}

std::optional<StepReport> Stepper::step_if_before(double end_s) {
  expect_finite_time(end_s);
  const double most_s = static_cast<double>(StateArchive::kMostSteps) * options_.step_s;
  if (end_s - time_s() > most_s) {
    throw std::invalid_argument(
        fmt::format("{:g} s is more than 2^53 steps of {:g} s away, too far for a run", end_s,
                    options_.step_s));
  }
  if (step_sizes() != nullptr) {
    if (!(time_s() < end_s)) return std::nullopt;
    return step_towards(end_s);
  }
  const double left = end_s - time_s();
  const double rounding_s =
      4.0 * std::numeric_limits<double>::epsilon() * std::max(std::abs(end_s), std::abs(time_s()));
  const double same_s = std::max(1e-9 * options_.step_s, rounding_s);
  if (!(left > same_s)) return std::nullopt;
  return left >= options_.step_s - same_s ? step() : step_by(left);
}

void Stepper::run_until(double end_s) {
  while (step_if_before(end_s) && ending_watch() == nullptr) {
  }
}

namespace {

void check_within_last_step(const StepEngine& engine, bool is_dense, double time_s) {
  if (!is_dense) {
    throw std::logic_error("all steps are of one size: there are states at their ends only");
  }
  const StepClock& clock = engine.clock();
  const double end_s = clock.time_s();
  // The beginning of a step is known to a rounding of the time, which may be as long as the step.
  const double rounding_s =
      4.0 * std::numeric_limits<double>::epsilon() * std::max(std::abs(end_s), std::abs(time_s));
  const double begin_s = end_s - clock.last_step_s() * (1.0 + 1e-9) - rounding_s;
  if (!(time_s >= begin_s && time_s <= end_s)) {
    throw std::out_of_range(
        fmt::format("{:g} s is not within the last step, which led to {:g} s", time_s, end_s));
  }
}

}  // namespace

void Stepper::state_at(int part, double time_s, std::span<double> state) const {
  check_within_last_step(*engine_, engine_->has_states_within(), time_s);
  expect_part(system(), part);
  expect_room(at(system().parts()[at(part)].component->signature().state_size()), state.size());
  engine_->state_at(part, time_s, state);
}

EffortFlow Stepper::port_at(int scalar_port, double time_s) const {
  check_within_last_step(*engine_, engine_->step_sizes() != nullptr, time_s);
  expect_scalar_port(system(), scalar_port);
  return engine_->port_at(scalar_port, time_s);
}

StepReport Stepper::step(std::int64_t steps) {
  if (steps < 0 || steps > StateArchive::kMostSteps) {
    throw std::invalid_argument(
        fmt::format("the number of steps must be from 0 to 2^53, got {}", steps));
  }
  StepReport report;
  for (std::int64_t i = 0; i < steps; ++i) {
    report = step();
    if (ending_watch() != nullptr) break;
  }
  return report;
}

const System& Stepper::system() const { return engine_->system(); }
std::int64_t Stepper::step_index() const { return engine_->clock().steps(); }
double Stepper::time_s() const { return engine_->clock().time_s(); }
int Stepper::threads() const { return engine_->threads(); }
int Stepper::tasks() const { return engine_->tasks(); }
const std::string& Stepper::execution() const { return engine_->execution(); }

std::span<const double> Stepper::state(int part) const {
  expect_part(system(), part);
  return engine_->state(part);
}

std::span<const double> Stepper::state(std::string_view part) const {
  const int index = system().find_part(part);
  if (index >= 0) return state(index);
  if (const CutName* const cut = system().find_cut(part)) return state_of_cut(*cut);
  std::vector<std::string> names;
  for (const Part& own : system().parts()) names.push_back(own.name);
  for (const CutName& cut : system().cuts()) names.push_back(cut.name);
  throw std::out_of_range(fmt::format("no part is named {}.{}", in_quotes(part),
                                      NameSearch(std::move(names)).did_you_mean(part)));
}

std::span<const double> Stepper::state_of_cut(const CutName& cut) const {
  std::vector<double>& whole = whole_states_[cut.name];
  whole.clear();
  for (const CutName::State& own : cut.states) {
    whole.push_back(state(cut.first_part + own.piece)[at(own.index)]);
  }
  return whole;
}

double Stepper::effort(int scalar_port) const {
  expect_scalar_port(system(), scalar_port);
  return engine_->effort_flow(scalar_port).effort;
}
double Stepper::flow(int scalar_port) const {
  expect_scalar_port(system(), scalar_port);
  return engine_->effort_flow(scalar_port).flow;
}
double Stepper::storage(int part) const {
  expect_part(system(), part);
  return engine_->storage(part);
}

const WaveView* Stepper::waves() const { return engine_->waves(); }
WaveView* Stepper::waves() { return engine_->waves(); }
const MethodChoice& Stepper::method() const { return engine_->method(); }
std::string Stepper::remarks() const {
  const std::string& choice = engine_->choice_note();
  const std::string own = engine_->remarks();
  return choice.empty() || own.empty() ? choice + own : choice + "; " + own;
}

std::int64_t Stepper::halved_steps() const { return engine_->halved_steps(); }

const StartsAtOdds& Stepper::starts_at_odds() const {
  static const StartsAtOdds none;
  return start_check_ == nullptr ? none : start_check_->notes();
}

const Impulses& Stepper::impulses() const {
  static const Impulses none;
  return start_check_ == nullptr ? none : start_check_->impulses();
}

bool Stepper::keeps_ledger() const { return engine_->keeps_ledger(); }
EnergyTotals Stepper::energy() const { return engine_->energy(); }
const Certificate& Stepper::certificate() const { return engine_->certificate(); }
std::string Stepper::name_of_part(int number) const { return engine_->name_of_part(number); }
const IterationStatistics& Stepper::iterations() const { return engine_->iterations(); }
const StepSizeStatistics* Stepper::step_sizes() const { return engine_->step_sizes(); }
std::optional<Resolution> Stepper::resolution() const {
  const std::optional<Resolution> motion = engine_->resolution();
  if (start_check_ == nullptr || (motion && motion->kind != Resolution::Kind::resolved)) {
    return motion;
  }
  const Resolution pulses = start_check_->pulses();
  return pulses.kind == Resolution::Kind::resolved ? motion : pulses;
}
std::optional<DeadlineScheduler::Statistics> Stepper::deadline() const {
  return engine_->deadline();
}
Profile Stepper::profile() const {
  const Acting acting(engine_->activity(), Activity::Kind::step);
  return engine_->profile();
}

std::size_t Stepper::overhead_bytes() const {
  return engine_->overhead_bytes() + (events_ == nullptr ? 0 : events_->bytes());
}

}  // namespace portwave

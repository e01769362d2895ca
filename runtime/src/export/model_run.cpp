#include "export/model_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::exported {
namespace {

/// Shares of a macro-step: within the first a communication step counts as a whole number of them, and within the
/// second it begins where the run is. Times that others add up are not exact.
constexpr double kWhole = 1e-6, kSameTime = 1e-5;
constexpr double kMostSteps = 1e9;  // of one communication step

double energy_of(const EnergyTotals& totals, std::string_view word) {
  if (word == "stored") return totals.final_J;
  if (word == "supplied") return totals.supplied_J;
  if (word == "dissipated") return totals.dissipated_J + totals.numerical_dissipation_J;
  if (word == "mismatch") return totals.mismatch_J;
  return totals.tank_J;
}

std::vector<double> start_values_of(const ExportedModel& model) {
  std::vector<double> out;
  for (const Variable& own : model.variables) out.push_back(own.is_settable() ? own.start : 0.0);
  return out;
}

// Serialised states.

constexpr std::array<char, 8> kMagic = {'p', 'w', '-', 'f', 'm', 'u', '-', '1'};

class Writer {
 public:
  template <class Number>
  void number(Number value) {
    bytes({reinterpret_cast<const std::byte*>(&value), sizeof value});
  }
  void numbers(const std::vector<double>& values) {
    number<std::uint64_t>(values.size());
    bytes(std::as_bytes(std::span(values)));
  }
  void block(std::span<const std::byte> all) {
    number<std::uint64_t>(all.size());
    bytes(all);
  }
  void bytes(std::span<const std::byte> all) { out_.insert(out_.end(), all.begin(), all.end()); }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::vector<double> numbers(std::size_t expected) {
    if (number<std::uint64_t>() != expected) refuse();
    std::vector<double> values(expected);
    const auto from = take(expected * sizeof(double));
    if (!values.empty()) std::memcpy(values.data(), from.data(), from.size());
    for (const double value : values) {
      if (!std::isfinite(value)) refuse();
    }
    return values;
  }
  std::span<const std::byte> block() { return take(number<std::uint64_t>()); }
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > rest_.size()) refuse();
    const auto out = rest_.first(count);
    rest_ = rest_.subspan(count);
    return out;
  }
  bool is_at_end() const { return rest_.empty(); }
  [[noreturn]] static void refuse() {
    throw std::invalid_argument(
        "these bytes are no state of this FMU: they are incomplete or were changed");
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

std::vector<std::byte> RunState::to_bytes(const std::string& token) const {
  Writer out;
  out.bytes(std::as_bytes(std::span(kMagic)));
  out.block(std::as_bytes(std::span(token)));
  out.number<std::uint8_t>(is_running ? 1 : 0);
  out.number(start_s);
  out.numbers(values);
  out.numbers(start_values);
  out.numbers(integrals);
  out.block(snapshot.empty() ? std::vector<std::byte>() : snapshot.to_bytes());
  return out.take();
}

RunState RunState::from_bytes(std::span<const std::byte> bytes, const ExportedModel& model) {
  Reader in(bytes);
  const auto magic = in.take(kMagic.size());
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) Reader::refuse();
  const auto token = in.block();
  const std::string own = model.token();
  if (!std::ranges::equal(token, std::as_bytes(std::span(own)))) {
    throw std::invalid_argument("this state was saved by another FMU");
  }
  const std::size_t count = model.variables.size();
  RunState out;
  out.is_running = in.number<std::uint8_t>() != 0;
  out.start_s = in.number<double>();
  out.values = in.numbers(count);
  out.start_values = in.numbers(count);
  out.integrals = in.numbers(count);
  const auto snapshot = in.block();
  if (!in.is_at_end() || !std::isfinite(out.start_s)) Reader::refuse();
  if (out.is_running != !snapshot.empty()) Reader::refuse();
  if (!snapshot.empty()) out.snapshot = Snapshot::from_bytes(snapshot);
  return out;
}

ModelRun::ModelRun(ExportedModel model, const std::filesystem::path& folder)
    : model_(std::move(model)),
      scenario_(parse_scenario(model_.scenario, "scenario.json", folder)),
      own_start_s_(scenario_.options.start_s),
      values_(start_values_of(model_)),
      start_values_(values_),
      integrals_(values_.size(), 0.0) {
  scenario_.options.threads = 1;
  scenario_.options.executor = ExecutorKind::serial;
}

void ModelRun::set_start(double start_s) {
  if (!std::isfinite(start_s)) throw Refusal("the start time is not finite");
  scenario_.options.start_s = start_s;
  is_stale_ = true;
}

System ModelRun::system_with(const std::vector<double>& values) const {
  std::vector<ParameterChange> changes;
  for (std::size_t i = 0; i < model_.variables.size(); ++i) {
    const Variable& own = model_.variables[i];
    if (own.kind == Variable::Kind::parameter && values[i] != own.start) {
      changes.push_back({own.path, values[i]});
    }
  }
  return changed_system(scenario_.system, scenario_, changes);
}

void ModelRun::build(const std::vector<double>& values) {
  stepper_.reset();
  last_.is_known = false;
  is_stale_ = true;
  stepper_.emplace(system_with(values), scenario_.options);
  start_values_ = values;
  std::ranges::fill(integrals_, 0.0);
  find_variables();
  is_stale_ = false;
}

void ModelRun::find_variables() {
  const std::size_t count = model_.variables.size();
  inputs_.assign(count, {});
  quantities_.assign(count, std::nullopt);
  for (std::size_t i = 0; i < count; ++i) {
    const Variable& own = model_.variables[i];
    if (own.kind == Variable::Kind::input) {
      inputs_[i] = stepper_->find_input(own.path);
    } else if (own.kind == Variable::Kind::quantity || own.kind == Variable::Kind::integral) {
      quantities_[i] = find_quantity(*stepper_, own.path);
    }
  }
}

void ModelRun::prepare() {
  if (is_running_ || !is_stale_) return;
  build(values_);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (model_.variables[i].kind == Variable::Kind::input)
      stepper_->set_input(inputs_[i], values_[i]);
  }
}

void ModelRun::begin() {
  prepare();
  is_running_ = true;
}

void ModelRun::reset() {
  stepper_.reset();
  last_.is_known = false;
  is_running_ = false;
  is_stale_ = true;
  scenario_.options.start_s = own_start_s_;
  values_ = start_values_of(model_);
  start_values_ = values_;
  std::ranges::fill(integrals_, 0.0);
}

Stepper& ModelRun::stepper() {
  prepare();
  return *stepper_;
}

double ModelRun::time_s() const {
  return stepper_ && !is_stale_ ? stepper_->time_s() : scenario_.options.start_s;
}

double ModelRun::value(std::size_t variable) {
  const Variable& own = model_.variables.at(variable);
  switch (own.kind) {
    case Variable::Kind::time:
      return time_s();
    case Variable::Kind::input:
    case Variable::Kind::parameter:
      return values_[variable];
    case Variable::Kind::quantity: {
      const Stepper& run = stepper();
      return observe(run, *quantities_[variable]);
    }
    case Variable::Kind::integral:
      return is_running_ ? integrals_[variable] : 0.0;
    case Variable::Kind::energy:
      return energy_of(stepper().energy(), own.path);
  }
  return 0.0;
}

void ModelRun::set_value(std::size_t variable, double value) {
  const Variable& own = model_.variables.at(variable);
  if (!own.is_settable()) throw Refusal(fmt::format("{} cannot be set", in_quotes(own.name)));
  if (!std::isfinite(value)) {
    throw Refusal(
        fmt::format("{} must be finite, got {}", in_quotes(own.name), shown_number(value)));
  }
  if (values_[variable] == value) return;
  if (own.kind == Variable::Kind::parameter) {
    const auto refuse = [&](const std::exception& error) {
      throw Refusal(fmt::format("{} cannot be {}: {}", in_quotes(own.name), value, error.what()));
    };
    try {
      if (is_running_) {
        set_parameter(*stepper_, scenario_, own.path, value);
      } else {
        std::vector<double> values = values_;
        values[variable] = value;
        static_cast<void>(system_with(values));
        is_stale_ = true;
      }
    } catch (const ConfigError& error) {
      refuse(error);
    } catch (const std::logic_error& error) {  // it would be another part
      refuse(error);
    }
  } else if (stepper_ && !is_stale_) {
    stepper_->set_input(inputs_[variable], value);
  }
  values_[variable] = value;
}

bool ModelRun::step(double from_s, double size_s, bool is_whole) {
  if (!is_running_)
    throw std::invalid_argument("there are no steps before the initialisation is over");
  const double end_s = from_s + size_s;
  if (!(size_s > 0.0) || !std::isfinite(end_s)) {
    throw std::invalid_argument(
        fmt::format("a step must be longer than 0 s and finite, got {} s from {} s",
                    shown_number(size_s), shown_number(from_s)));
  }
  const double now_s = stepper_->time_s();
  const double slack_s =
      std::max(kSameTime * std::min(size_s, model_.step_s), 1e-12 * std::abs(now_s));
  if (!(std::abs(from_s - now_s) <= slack_s)) {
    throw std::invalid_argument(
        fmt::format("the step begins at {:.17g} s, and the FMU is at {:.17g} s", from_s, now_s));
  }
  last_.is_known = false;
  save_to(last_.before);
  const bool ends = take_step(from_s, size_s, is_whole);
  last_.is_whole = is_whole;
  last_.from_s = from_s;
  last_.size_s = size_s;
  last_.is_known = is_whole || !ends;  // another one may end elsewhere
  return ends;
}

const Watch* ModelRun::ending_watch() const {
  return is_running_ ? stepper_->ending_watch() : nullptr;
}

bool ModelRun::take_step(double from_s, double size_s, bool is_whole) {
  const double end_s = from_s + size_s, now_s = stepper_->time_s();
  if (!is_whole) return make_steps(end_s, /*stops_at_ends=*/true);
  // One macro-step is all or nothing anyway.
  const bool is_one = !scenario_.options.sizes && end_s - now_s <= (1.0 + kWhole) * model_.step_s;
  if (is_one) return make_steps(end_s, /*stops_at_ends=*/false);
  stepper_->snapshot(before_);
  const std::vector<double> integrals = integrals_;
  try {
    return make_steps(end_s, /*stops_at_ends=*/false);
  } catch (...) {
    stepper_->restore(before_);
    integrals_ = integrals;
    throw;
  }
}

bool ModelRun::make_steps(double end_s, bool stops_at_ends) {
  Stepper& run = *stepper_;
  bool ends = false;
  const auto goes_on = [&] { return !(ends && stops_at_ends); };
  const auto make = [&](double steps, const auto& one) {
    for (double i = 0.0; i < steps && goes_on(); ++i) ends = account(one()) || ends;
    return ends;
  };
  if (scenario_.options.sizes) {
    while (goes_on()) {
      const auto report = run.step_if_before(end_s);
      if (!report) break;
      ends = account(*report) || ends;
    }
    return ends;
  }
  const double count = (end_s - run.time_s()) / model_.step_s;
  if (count > kMostSteps) {
    throw Refusal(
        fmt::format("the step is longer than {} macro-steps of {} s", kMostSteps, model_.step_s));
  }
  const double whole = std::round(count);
  if (whole >= 1.0 && std::abs(count - whole) <= kWhole) {
    return make(whole, [&] { return run.step(); });
  }
  if (!model_.takes_any_step) {
    throw Refusal(fmt::format(
        "steps must be whole numbers of macro-steps of {} s (signals are sampled then, or "
        "the method has one step size), and {} s are {} of them",
        model_.step_s, end_s - run.time_s(), count));
  }
  const double steps = std::ceil(count);
  const double size_s = (end_s - run.time_s()) / steps;
  return make(steps, [&] { return run.step_by(size_s); });
}

bool ModelRun::account(const StepReport& report) {
  for (std::size_t i = 0; i < integrals_.size(); ++i) {
    if (model_.variables[i].kind != Variable::Kind::integral) continue;
    integrals_[i] += report.step_s * observe(*stepper_, *quantities_[i]);
  }
  return stepper_->ending_watch() != nullptr;
}

RunState ModelRun::save() const {
  RunState out;
  save_to(out);
  return out;
}

void ModelRun::save_to(RunState& out) const {
  out.is_running = is_running_;
  out.start_s = scenario_.options.start_s;
  out.values = values_;
  out.start_values = start_values_;
  out.integrals = integrals_;
  if (is_running_) {
    stepper_->snapshot(out.snapshot);
  } else {
    out.snapshot = {};
  }
}

void ModelRun::restore(const RunState& state) {
  if (state.values.size() != values_.size())
    throw std::invalid_argument("this state was saved by another FMU");
  last_.is_known = false;
  if (!state.is_running) {
    scenario_.options.start_s = state.start_s;
    is_running_ = false;
    is_stale_ = true;
    values_ = state.values;
    return;
  }
  const bool began_so = stepper_ && !is_stale_ && state.start_s == scenario_.options.start_s &&
                        state.start_values == start_values_;
  if (began_so) {
    stepper_->restore(state.snapshot);
  } else {
    restore_anew(state);
  }
  is_running_ = true;
  values_ = state.values;
  integrals_ = state.integrals;
}

void ModelRun::restore_anew(const RunState& state) {
  std::optional<Stepper> old = std::move(stepper_);
  const double start_s = scenario_.options.start_s;
  const std::vector<double> start_values = start_values_, integrals = integrals_;
  const bool was_stale = is_stale_;
  try {
    scenario_.options.start_s = state.start_s;
    build(state.start_values);
    stepper_->restore(state.snapshot);
  } catch (...) {
    stepper_ = std::move(old);
    scenario_.options.start_s = start_s;
    start_values_ = start_values;
    integrals_ = integrals;
    is_stale_ = was_stale;
    throw;
  }
}

const Certificate* ModelRun::certificate() const {
  return stepper_ && !is_stale_ && stepper_->keeps_ledger() ? &stepper_->certificate() : nullptr;
}

}  // namespace portwave::exported

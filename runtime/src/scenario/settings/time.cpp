#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "scenario/reader/key_table.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/settings/settings.hpp"

namespace portwave::scenario_file {
namespace {

/// Steps of a run at least, where nothing is said of the largest one.
constexpr double kStepsAtLeast = 8.0;

/// The end of the run, later than its start. 0 where it could not be read, then or at the start.
void read_end_time(const Node& node, RunSettings& settings) {
  const double start_s = settings.options.start_s;
  const auto end_s = node.number(start_s == 0.0 ? NumberRange::positive() : NumberRange{});
  settings.end_s = end_s.value_or(start_s);
  if (!end_s || *end_s > start_s) return;
  node.fail(fmt::format("must be later than \"start_s\", which is {} s, got {}", start_s, *end_s));
  settings.end_s = start_s;
}

/// `h` is 0 where the step size could not be read.
void read_end(const Node& node, double h, RunSettings& settings) {
  read_end_time(node, settings);
  const double start_s = settings.options.start_s, length_s = settings.end_s - start_s;
  if (!(length_s > 0.0) || h <= 0.0) return;
  if (length_s / h > static_cast<double>(scenario_limits::kSteps)) {
    return node.fail(fmt::format("{} s in steps of {} s are more than {} steps", length_s, h,
                                 scenario_limits::kSteps));
  }
  const auto steps = whole_steps(length_s, h, settings.end_s);
  if (steps) {
    settings.steps = *steps;
    return;
  }
  const double below = std::max(std::floor(length_s / h), 1.0);
  node.fail(fmt::format("must be a whole number of steps of {} s{}, got {}.\n{} or {} would do.", h,
                        start_s == 0.0 ? "" : fmt::format(" after \"start_s\" = {}", start_s),
                        settings.end_s, start_s + below * h, start_s + (below + 1.0) * h));
}

struct StepKeys : StepSizes {
  std::optional<Node> largest, smallest, event_tolerance;
};

const KeyTable<StepKeys>& step_keys() {
  static const KeyTable<StepKeys> keys({
      kind_key<StepKeys>("adaptive"),
      required_key("tolerance", "relative tolerance of the local error",
                   to(&StepSizes::tolerance, form::number(StepSizes::tolerances()))),
      optional_key("largest_s", "largest step [s]; absent: an eighth of the run",
                   later(&StepKeys::largest, positive())),
      optional_key("smallest_s", "no shorter step is tried [s]; absent: as short as it has to be",
                   later(&StepKeys::smallest, positive())),
      optional_key(
          "event_tolerance_s",
          "longest time from an event to the end of its step [s]; absent: 1e-9 of the largest step",
          later(&StepKeys::event_tolerance, positive())),
  });
  return keys;
}

/// "step": how steps choose their size.
void read_sizes(const Node& node, RunSettings& settings) {
  StepKeys keys;
  if (node.json().is_object()) read_kind(node, {"adaptive"});
  step_keys().read(node, keys);
  if (!node.json().is_object()) return;
  StepSizes sizes = keys;
  double largest_s = (settings.end_s - settings.options.start_s) / kStepsAtLeast;
  if (keys.largest) {
    largest_s = keys.largest->number(NumberRange::positive()).value_or(largest_s);
  }
  const auto read_length = [largest_s](const std::optional<Node>& given, double& length_s) {
    if (!given) return;
    length_s = given->number(NumberRange::positive()).value_or(0.0);
    if (largest_s > 0.0 && length_s > largest_s) {
      given->fail(
          fmt::format("must be at most {} s, the largest step, got {}", largest_s, length_s));
    }
  };
  read_length(keys.smallest, sizes.smallest_s);
  read_length(keys.event_tolerance, sizes.event_tolerance_s);
  if (largest_s > 0.0) settings.options.step_s = largest_s;
  settings.options.sizes = sizes;
}

struct TimeKeys {
  double start_s = 0.0;
  Start start = Start::consistent;
  std::optional<Node> step, step_s, end, steps;
};

Json pairs_of_keys() {
  return {{"oneOf", Json::array({{{"required", Json::array({"step_s", "end_s"})}},
                                 {{"required", Json::array({"step_s", "steps"})}},
                                 {{"required", Json::array({"step", "end_s"})}}})}};
}

const KeyTable<TimeKeys>& time_keys() {
  static const KeyTable<TimeKeys> keys(
      {
          optional_key("start_s", "start of the run [s]", to(&TimeKeys::start_s, form::number()),
                       0),
          optional_key("step_s", "macro-step h [s]", later(&TimeKeys::step_s, positive())),
          optional_key("step", "how steps choose their size, in place of step_s",
                       later(&TimeKeys::step, by_kind({{"adaptive", step_keys().schema()}}))),
          optional_key("end_s",
                       "end of the run [s], later than start_s; with step_s a whole number of "
                       "steps after that",
                       later(&TimeKeys::end, number())),
          optional_key("steps", "number of macro-steps",
                       later(&TimeKeys::steps, integer(1, scenario_limits::kSteps))),
          optional_key("start",
                       "states that violate a rigid joint, at the start or where an input jumps: "
                       "they jump by the impulse of physics, are stepped as they are, or refused",
                       to(&TimeKeys::start, form::choice<Start>({{"consistent", Start::consistent},
                                                                 {"as_given", Start::as_given},
                                                                 {"refuse", Start::refuse}})),
                       "consistent"),
      },
      pairs_of_keys());
  return keys;
}

/// Steps of chosen size go to an end, not for a number of steps.
void read_chosen_steps(const Node& node, const TimeKeys& keys, RunSettings& settings) {
  if (keys.steps) {
    keys.steps->fail("steps choose their size: their number is not known before; give \"end_s\"");
  }
  if (const auto end = ObjectReader(node).require("end_s")) read_end_time(*end, settings);
  if (keys.step_s) {
    keys.step_s->fail(
        "steps either are of one size or choose it: give \"step_s\" or \"step\", not both");
  }
  read_sizes(*keys.step, settings);
}

void read_equal_steps(const Node& node, const TimeKeys& keys, RunSettings& settings) {
  const auto given = ObjectReader(node).require("step_s");
  double step_s = 0.0;
  if (given) step_s = given->number(NumberRange::positive()).value_or(0.0);
  if (step_s > 0.0) settings.options.step_s = step_s;
  if (keys.end.has_value() == keys.steps.has_value()) {
    node.fail(fmt::format("must have either \"end_s\" or \"steps\", got {}",
                          keys.end ? "both" : "neither"));
  }
  if (keys.end) read_end(*keys.end, step_s, settings);
  if (!keys.steps) return;
  settings.steps = keys.steps->integer(1, scenario_limits::kSteps).value_or(0);
  settings.end_s = settings.options.start_s + static_cast<double>(settings.steps) * step_s;
}

}  // namespace

std::optional<std::int64_t> whole_steps(double length_s, double step_s, double end_s) {
  const double ratio = length_s / step_s;
  const double steps = std::round(ratio);
  const double far = std::max(ratio, std::abs(end_s) / step_s);
  const double round_off = 1e-6 + 4.0 * std::numeric_limits<double>::epsilon() * far;
  if (steps < 1.0 || std::abs(ratio - steps) > round_off) return std::nullopt;
  return static_cast<std::int64_t>(steps);
}

void read_time(const Node& node, RunSettings& settings) {
  TimeKeys keys;
  time_keys().read(node, keys);
  if (!node.json().is_object()) return;
  settings.options.start_s = keys.start_s;
  settings.options.start = keys.start;
  if (keys.step) return read_chosen_steps(node, keys, settings);
  read_equal_steps(node, keys, settings);
}

Json time_schema() { return time_keys().schema(); }

}  // namespace portwave::scenario_file

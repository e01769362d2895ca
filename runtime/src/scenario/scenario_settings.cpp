#include "scenario/scenario_settings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "output/observable.hpp"
#include "output/rank_recording.hpp"
#include "portwave/runtime/output/file_recorder.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/scenario_limits.hpp"
#include "scenario/scenario_patterns.hpp"

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

/// "step": how steps choose their size.
void read_sizes(const Node& node, RunSettings& settings) {
  const ObjectReader object(node,
                            {"kind", "tolerance", "largest_s", "smallest_s", "event_tolerance_s"});
  if (!object.is_object()) return;
  read_kind(node, {"adaptive"});
  StepSizes sizes;
  if (const auto tolerance = object.require("tolerance")) {
    sizes.tolerance = tolerance->number(StepSizes::tolerances()).value_or(sizes.tolerance);
  }
  double largest_s = (settings.end_s - settings.options.start_s) / kStepsAtLeast;
  if (const auto largest = object.find("largest_s")) {
    largest_s = largest->number(NumberRange::positive()).value_or(largest_s);
  }
  if (const auto smallest = object.find("smallest_s")) {
    sizes.smallest_s = smallest->number(NumberRange::positive()).value_or(0.0);
    if (largest_s > 0.0 && sizes.smallest_s > largest_s) {
      smallest->fail(fmt::format("must be at most {} s, the largest step, got {}", largest_s,
                                 sizes.smallest_s));
    }
  }
  if (const auto tolerance = object.find("event_tolerance_s")) {
    sizes.event_tolerance_s = tolerance->number(NumberRange::positive()).value_or(0.0);
    if (largest_s > 0.0 && sizes.event_tolerance_s > largest_s) {
      tolerance->fail(fmt::format("must be at most {} s, the largest step, got {}", largest_s,
                                  sizes.event_tolerance_s));
    }
  }
  if (largest_s > 0.0) settings.options.step_s = largest_s;
  settings.options.sizes = sizes;
}

/// Steps of chosen size go to an end, not for a number of steps.
void read_chosen_steps(const ObjectReader& object, RunSettings& settings) {
  if (const auto steps = object.find("steps")) {
    steps->fail("steps choose their size: their number is not known before; give \"end_s\"");
  }
  if (const auto end = object.require("end_s")) {
    read_end_time(*end, settings);
  }
  if (const auto step = object.find("step_s")) {
    step->fail("steps either are of one size or choose it: give \"step_s\" or \"step\", not both");
  }
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
  const ObjectReader object(node, {"start_s", "step_s", "step", "end_s", "steps", "start"});
  if (!object.is_object()) return;
  if (const auto start = object.find("start_s")) {
    settings.options.start_s = start->number().value_or(0.0);
  }
  if (const auto start = object.find("start")) {
    const auto kind = start->choice({"consistent", "as_given"});
    if (kind == "as_given") settings.options.start = Start::as_given;
  }
  if (const auto sizes = object.find("step")) {
    read_chosen_steps(object, settings);
    return read_sizes(*sizes, settings);
  }
  const auto step_node = object.require("step_s");
  double step_s = 0.0;
  if (step_node) step_s = step_node->number(NumberRange::positive()).value_or(0.0);
  if (step_s > 0.0) settings.options.step_s = step_s;
  const auto end = object.find("end_s");
  const auto steps = object.find("steps");
  if (end.has_value() == steps.has_value()) {
    node.fail(
        fmt::format("must have either \"end_s\" or \"steps\", got {}", end ? "both" : "neither"));
  }
  if (end) read_end(*end, step_s, settings);
  if (steps) settings.steps = steps->integer(1, scenario_limits::kSteps).value_or(0);
  if (steps) {
    settings.end_s = settings.options.start_s + static_cast<double>(settings.steps) * step_s;
  }
}

namespace {

/// Rows at a fixed grid of times: with steps of one size, at every so many of them.
void read_grid(const Node& node, RunSettings& settings) {
  const auto every_s = node.number(NumberRange::positive());
  if (!every_s) return;
  if (settings.options.sizes) {
    settings.recording.every_s = *every_s;
    return;
  }
  const double h = settings.options.step_s;
  const auto steps = whole_steps(*every_s, h);
  if (steps && *steps <= scenario_limits::kRecordEvery) {
    settings.recording.every = static_cast<int>(*steps);
    return;
  }
  const double below = std::max(std::floor(*every_s / h), 1.0);
  node.fail(fmt::format("must be a whole number of steps of {} s, got {}.\n{} or {} would do.", h,
                        *every_s, below * h, (below + 1.0) * h));
}

void read_format(const Node& node, RecordingOptions& recording) {
  const auto name = node.text();
  if (!name) return;
  for (const ResultFormat format : {ResultFormat::csv, ResultFormat::hdf5, ResultFormat::none}) {
    if (*name == to_string(format)) recording.format = format;
  }
  if (*name != to_string(recording.format)) {
    return node.fail(
        fmt::format("must be \"csv\", \"hdf5\" or \"none\", got {}", in_quotes(*name)));
  }
  if (recording.format == ResultFormat::hdf5 && !has_hdf5()) {
    node.fail("portwave was built without HDF5: results can be written as \"csv\"");
  }
}

void read_per_rank(const Node& node, RecordingOptions& recording) {
  recording.per_rank = node.boolean().value_or(false);
  if (!recording.per_rank) return;
  if (recording.format != ResultFormat::hdf5) node.fail(kOfHdf5Alone);
  if (recording.last_s > 0.0) node.fail(kNotOfTheLastSeconds);
}

}  // namespace

void read_outputs(const Node& node, RunSettings& settings) {
  const ObjectReader object(node, {"observe", "every", "every_s", "envelope", "last_s", "energies",
                                   "format", "per_rank"});
  RecordingOptions& recording = settings.recording;
  if (const auto every_s = object.find("every_s")) {
    if (object.find("every")) {
      every_s->fail("either every so many steps or every so many seconds: not both");
    } else {
      read_grid(*every_s, settings);
    }
  }
  if (const auto every = object.find("every")) {
    recording.every =
        static_cast<int>(every->integer(1, scenario_limits::kRecordEvery).value_or(1));
  }
  if (const auto envelope = object.find("envelope")) {
    recording.envelope = envelope->boolean().value_or(false);
  }
  if (const auto last = object.find("last_s")) {
    recording.last_s = last->number(NumberRange::positive()).value_or(0.0);
  }
  if (const auto energies = object.find("energies")) {
    recording.energies = energies->boolean().value_or(false);
    if (recording.energies && !settings.options.method.couples_by_waves()) {
      energies->fail(
          fmt::format("the method \"{}\" couples without waves: what each part does with "
                      "energy is not known",
                      to_string(settings.options.method.kind())));
    }
  }
  if (const auto format = object.find("format")) read_format(*format, recording);
  if (const auto per_rank = object.find("per_rank")) read_per_rank(*per_rank, recording);
  const auto observe = object.find("observe");
  if (!observe || !observe->is_array("an array of quantities \"part.state\"")) return;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < observe->size(); ++i) {
    const Node element = observe->at(i);
    const auto label = element.text();
    if (!label) continue;
    const auto [first, is_new] = places.emplace(*label, i);
    if (is_new) continue;
    element.fail(fmt::format("{} is already observed by /outputs/observe/{}", in_quotes(*label),
                             first->second));
  }
}

namespace {

void refuse_wave(const Node& element, const WaveCoupling& waves, const std::string& label) {
  element.fail(
      fmt::format("with {} stages a port has as many waves: there is no {}; observe its "
                  "effort and flow, or ask for one stage (\"stages\": 1)",
                  waves.stages == 0 ? std::string("several") : std::to_string(waves.stages),
                  in_quotes(label)));
}

bool is_refused_wave(const Observable& observable, const CouplingMethod& method) {
  return is_wave(observable.kind) && method.waves().stages != 1;
}

/// Takes what a pattern or the name of a part stands for, but what is `present` already; false where
/// the label is neither.
bool read_many(const Node& element, const std::string& label, Names& names,
               std::unordered_set<std::string>& present, RunSettings& settings) {
  const SignalGraph* const signals = settings.options.signals.get();
  const CouplingMethod& method = settings.options.method;
  if (signals != nullptr && signals->find_signal(label) >= 0) return false;
  const bool is_like = is_pattern(label);
  std::vector<Observable> found = is_like ? quantities_like(label, names, signals, method.kind())
                                          : quantities_of_part(label, names, method.kind());
  if (found.empty()) {
    if (is_like && names.is_complete()) {
      element.fail(fmt::format("nothing is called like {}", in_quotes(label)));
    }
    return is_like;
  }
  for (Observable& one : found) {
    if (is_refused_wave(one, method)) return refuse_wave(element, method.waves(), one.label), true;
    if (present.insert(one.label).second) settings.recording.observables.push_back(std::move(one));
  }
  return true;
}

}  // namespace

void read_observables(const Node& node, Names& names, RunSettings& settings) {
  const ObjectReader object(node);
  const auto observe = object.find("observe");
  if (!observe) {
    settings.recording.observables = names.all_states();
    return;
  }
  if (!observe->json().is_array()) return;
  std::unordered_set<std::string> present;  // labels of what is observed
  for (std::size_t i = 0; i < observe->size(); ++i) {
    const Node element = observe->at(i);
    if (!element.json().is_string()) continue;
    const auto& label = element.json().get_ref<const std::string&>();
    if (node.defects().is_full()) return;
    if (names.is_missing(label) || node.defects().has(element.where())) continue;
    if (read_many(element, label, names, present, settings)) continue;
    if (const SignalGraph* const graph = settings.options.signals.get()) {
      if (const int signal = graph->find_signal(label); signal >= 0) {
        settings.recording.observables.push_back({label, Observable::Kind::signal, 0, signal, ""});
        present.insert(label);
        continue;
      }
    }
    if (const std::string name = label.substr(0, label.rfind('['));
        settings.signal_names.contains(name)) {
      if (settings.options.signals != nullptr) {
        element.fail(fmt::format("{} has several outputs: write \"{}[0]\"", in_quotes(name),
                                 printable(name)));
      }
      continue;
    }
    std::string defect;
    auto observable = names.find_quantity(label, settings.options.method.kind(), defect);
    const CouplingMethod& method = settings.options.method;
    if (observable && is_refused_wave(*observable, method)) {
      refuse_wave(element, method.waves(), label);
      continue;
    }
    if (observable && !present.insert(observable->label).second) continue;  // by a name before
    if (observable) {
      settings.recording.observables.push_back(*std::move(observable));
    } else {
      element.fail(std::move(defect));
    }
  }
}

}  // namespace portwave::scenario_file

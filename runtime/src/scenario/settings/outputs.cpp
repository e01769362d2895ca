#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "output/recording/quantity.hpp"
#include "output/recording/rank_recording.hpp"
#include "portwave/runtime/output/file_recorder.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/settings/names.hpp"
#include "scenario/settings/settings.hpp"

namespace portwave::scenario_file {
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

struct OutputKeys : RecordingOptions {
  std::optional<Node> observe, grid;
};

Form<ResultFormat> result_format() {
  return form::choice<ResultFormat>(
      {{"csv", ResultFormat::csv}, {"hdf5", ResultFormat::hdf5}, {"none", ResultFormat::none}});
}

Json labels_schema() {
  Json labels = list(text());
  labels["uniqueItems"] = true;
  return labels;
}

const KeyTable<OutputKeys>& output_keys() {
  static const KeyTable<OutputKeys> keys({
      optional_key("observe",
                   "\"part.state\", \"part.state.coenergy\", \"part.storage\" or "
                   "\"part.port.effort\", .flow, .incident, "
                   ".outgoing; absent: every state",
                   later(&OutputKeys::observe, labels_schema())),
      optional_key("every", "steps between two recorded rows",
                   to(&RecordingOptions::every, form::integer(1, scenario_limits::kRecordEvery)),
                   1),
      optional_key("every_s",
                   "seconds between two recorded rows: a whole number of steps, or any time where "
                   "steps choose their size",
                   later(&OutputKeys::grid, positive())),
      optional_key("envelope",
                   "also record the smallest and the largest value of each quantity since the "
                   "previous row",
                   to(&RecordingOptions::envelope, form::boolean()), false),
      optional_key("last_s", "length of the end of the run that is kept [s]",
                   to(&RecordingOptions::last_s, form::number(NumberRange::positive()))),
      optional_key("energies", "also record the energies of each part and each junction",
                   to(&RecordingOptions::energies, form::boolean()), false),
      optional_key("format", "tables as text, as one file results.h5, or none",
                   to(&RecordingOptions::format, result_format()), "csv"),
      optional_key("per_rank",
                   "with \"hdf5\" on several ranks: each rank writes a file of its parts, to "
                   "which results.h5 refers",
                   to(&RecordingOptions::per_rank, form::boolean()), false),
  });
  return keys;
}

/// What the values of "outputs" demand of one another and of the run.
void check_outputs(const ObjectReader& object, const RunSettings& settings) {
  const RecordingOptions& recording = settings.recording;
  const auto refuse = [&object](std::string_view key, std::string what) {
    if (const auto given = object.find(key)) given->fail(std::move(what));
  };
  if (recording.energies && !settings.options.method.couples_by_waves()) {
    refuse("energies", fmt::format("the method \"{}\" couples without waves: what each part does "
                                   "with energy is not known",
                                   to_string(settings.options.method.kind())));
  }
  if (recording.format == ResultFormat::hdf5 && !has_hdf5()) {
    refuse("format", "portwave was built without HDF5: results can be written as \"csv\"");
  }
  if (recording.per_rank && recording.format != ResultFormat::hdf5) {
    refuse("per_rank", kOfHdf5Alone);
  }
  if (recording.per_rank && recording.last_s > 0.0) refuse("per_rank", kNotOfTheLastSeconds);
}

void check_labels(const Node& observe) {
  if (!observe.is_array("an array of quantities \"part.state\"")) return;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < observe.size(); ++i) {
    const Node element = observe.at(i);
    const auto label = element.text();
    if (!label) continue;
    const auto [first, is_new] = places.emplace(*label, i);
    if (is_new) continue;
    element.fail(fmt::format("{} is already observed by /outputs/observe/{}", in_quotes(*label),
                             first->second));
  }
}

}  // namespace

void read_outputs(const Node& node, RunSettings& settings) {
  OutputKeys keys;
  output_keys().read(node, keys);
  settings.recording = keys;
  const ObjectReader object(node);
  if (keys.grid && object.find("every")) {
    keys.grid->fail("give \"every\" (steps) or \"every_s\" (seconds), not both");
  } else if (keys.grid) {
    read_grid(*keys.grid, settings);
  }
  check_outputs(object, settings);
  if (keys.observe) check_labels(*keys.observe);
}

Json outputs_schema() { return output_keys().schema(); }

namespace {

void refuse_wave(const Node& element, const WaveCoupling& waves, const std::string& label) {
  element.fail(fmt::format(
      "with {} stages a port has as many waves: there is no {}; observe its "
      "effort and flow, or ask for one stage (\"stages\": 1)",
      waves.stages == 0 ? std::string("several") : std::to_string(waves.stages), in_quotes(label)));
}

bool is_refused_wave(const Quantity& quantity, const CouplingMethod& method) {
  return is_wave(quantity.kind) && method.waves().stages != 1;
}

/// Takes what a pattern or the name of a part stands for, but what is `present` already; false where
/// the label is neither.
bool read_many(const Node& element, const std::string& label, Names& names,
               std::unordered_set<std::string>& present, RunSettings& settings) {
  const SignalGraph* const signals = settings.options.signals.get();
  const CouplingMethod& method = settings.options.method;
  if (signals != nullptr && signals->find_signal(label) >= 0) return false;
  const bool is_like = is_pattern(label);
  std::vector<Quantity> found = is_like ? quantities_like(label, names, signals, method.kind())
                                        : quantities_of_part(label, names, method.kind());
  if (found.empty()) {
    if (is_like && names.is_complete()) {
      element.fail(fmt::format("nothing is called like {}", in_quotes(label)));
    }
    return is_like;
  }
  for (Quantity& one : found) {
    if (is_refused_wave(one, method)) return refuse_wave(element, method.waves(), one.label), true;
    if (present.insert(one.label).second) settings.recording.quantities.push_back(std::move(one));
  }
  return true;
}

}  // namespace

void read_quantities(const Node& node, Names& names, RunSettings& settings) {
  const ObjectReader object(node);
  const auto observe = object.find("observe");
  if (!observe) {
    settings.recording.quantities = names.all_states();
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
        settings.recording.quantities.push_back({label, Quantity::Kind::signal, 0, signal, ""});
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
    auto quantity = names.find_quantity(label, settings.options.method.kind(), defect);
    const CouplingMethod& method = settings.options.method;
    if (quantity && is_refused_wave(*quantity, method)) {
      refuse_wave(element, method.waves(), label);
      continue;
    }
    if (quantity && !present.insert(quantity->label).second) continue;  // by a name before
    if (quantity) {
      settings.recording.quantities.push_back(*std::move(quantity));
    } else {
      element.fail(std::move(defect));
    }
  }
}

}  // namespace portwave::scenario_file

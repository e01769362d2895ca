#include "scenario/scenario_events.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/scenario_signals.hpp"

namespace portwave::scenario_file {
namespace {

using Direction = Watch::Direction;

const std::vector<std::string>& direction_names() {
  static const std::vector<std::string> names = {"both", "rising", "falling"};
  return names;
}

Direction direction_called(const std::string& name) {
  if (name == "rising") return Direction::rising;
  return name == "falling" ? Direction::falling : Direction::both;
}

/// What is watched, a signal or a quantity of the system; false where that is neither.
bool read_watched(const Node& node, Names& names, const RunSettings& settings, Watch& watch) {
  const auto label = node.text();
  if (!label) return false;
  const SignalGraph* const graph = settings.options.signals.get();
  if (graph != nullptr) {
    watch.signal = graph->find_signal(*label);
    if (watch.signal >= 0) return true;
  }
  if (const std::string name = label->substr(0, label->rfind('['));
      settings.signal_names.contains(name)) {
    if (graph != nullptr) {
      node.fail(
          fmt::format("{} has several outputs: write \"{}[0]\"", in_quotes(name), printable(name)));
    }
    return false;
  }
  const auto sensor = read_sensor_label(*label, node.where(), settings.options.method.kind(), names,
                                        node.defects());
  if (sensor) watch.of = *sensor;
  return sensor.has_value();
}

std::optional<Watch> read_watch(const Node& node, Names& names, const RunSettings& settings) {
  const ObjectReader object(node, {"name", "of", "level", "direction", "end_run"});
  if (!object.is_object()) return std::nullopt;
  Watch watch;
  bool is_sound = true;
  const auto of = object.require("of");
  is_sound = of && read_watched(*of, names, settings, watch);
  if (of && of->json().is_string()) watch.name = of->json().get<std::string>();
  if (const auto name = object.find("name")) {
    const auto text = name->text();
    if (text && text->empty()) name->fail("must not be empty");
    is_sound = is_sound && text && !text->empty();
    if (text) watch.name = *text;
  }
  if (const auto level = object.find("level")) {
    const auto value = level->number();
    is_sound = is_sound && value;
    watch.level = value.value_or(0.0);
  }
  if (const auto direction = object.find("direction")) {
    const auto name = direction->choice(direction_names());
    is_sound = is_sound && name;
    if (name) watch.direction = direction_called(*name);
  }
  if (const auto ends = object.find("end_run")) {
    const auto value = ends->boolean();
    is_sound = is_sound && value;
    watch.ends_run = value.value_or(false);
  }
  if (!is_sound) return std::nullopt;
  return watch;
}

}  // namespace

void read_events(const Node& node, Names& names, RunSettings& settings) {
  if (!node.is_array("an array of events")) return;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node element = node.at(i);
    std::optional<Watch> watch = read_watch(element, names, settings);
    if (!watch) continue;
    const auto [first, is_new] = places.emplace(watch->name, i);
    if (!is_new) {
      element.fail(fmt::format("{} is already the name of /events/{}: give each a \"name\"",
                               in_quotes(watch->name), first->second));
      continue;
    }
    settings.options.watches.push_back(*std::move(watch));
  }
}

Json events_schema() {
  Json of = described(text(),
                      "what is watched: \"part.state\", \"part.storage\", \"part.port.effort\" or "
                      "\".flow\", or a signal");
  return list(object(
      {{"name",
        described({{"type", "string"}, {"minLength", 1}}, "name of the event; absent: as \"of\"")},
       {"of", std::move(of)},
       {"level", with_default(described(number(), "an event where it passes this"), 0)},
       {"direction", with_default(described(choice(direction_names()), "of the passage"), "both")},
       {"end_run", with_default(described(boolean(), "the run ends there"), false)}},
      {"of"}));
}

}  // namespace portwave::scenario_file

#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/settings/settings.hpp"

namespace portwave::scenario_file {
namespace {

struct EventKeys : Watch {
  std::optional<Node> watched;
};

const KeyTable<EventKeys>& event_keys() {
  static const KeyTable<EventKeys> keys({
      optional_key("name", "name of the event; absent: as \"of\"", to(&Watch::name, form::name())),
      required_key("of",
                   "watched quantity: \"part.state\", \"part.state.coenergy\", \"part.storage\", "
                   "\"part.port.effort\" or "
                   "\".flow\", or a signal",
                   later(&EventKeys::watched, text())),
      optional_key("level", "level whose passage is an event", to(&Watch::level, form::number()),
                   0),
      optional_key("direction", "direction of the passage",
                   to(&Watch::direction,
                      form::choice<Watch::Direction>({{"both", Watch::Direction::both},
                                                      {"rising", Watch::Direction::rising},
                                                      {"falling", Watch::Direction::falling}})),
                   "both"),
      optional_key("end_run", "the run ends there", to(&Watch::ends_run, form::boolean()), false),
  });
  return keys;
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
  EventKeys keys;
  bool is_sound = event_keys().read(node, keys);
  if (!keys.watched) return std::nullopt;
  if (!ObjectReader(node).find("name") && keys.watched->json().is_string()) {
    keys.name = keys.watched->json().get<std::string>();
  }
  is_sound = read_watched(*keys.watched, names, settings, keys) && is_sound;
  if (!is_sound) return std::nullopt;
  return Watch(std::move(keys));
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

Json events_schema() { return list(event_keys().schema()); }

}  // namespace portwave::scenario_file

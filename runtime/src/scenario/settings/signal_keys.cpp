#include "scenario/settings/signal_keys.hpp"

#include <algorithm>
#include <cmath>

#include "scenario/parts/sources.hpp"
#include "scenario/parts/values.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/templates/template_schema.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::int64_t kMostEvery = 1'000'000'000;

/// `blocks`: the schema of all of them, which follows from the kinds that there are now.
KeyTable<SignalsKeys> keys_with(Json blocks) {
  return KeyTable<SignalsKeys>(
      {optional_key("every_s",
                    "time between samples [s]; with steps of one size a whole number of them",
                    later(&SignalsKeys::every_s, positive())),
       optional_key("every",
                    "macro-steps between two samples, for blocks without a number of their own",
                    to(&SignalsKeys::every, form::integer(1, kMostEvery)), 1),
       optional_key("blocks", "what is computed at each sample",
                    later(&SignalsKeys::blocks, std::move(blocks)))});
}

Json field_schema(const BlockField& field) {
  switch (field.kind) {
    case BlockField::Kind::signal:
      return reference("signal_name");
    case BlockField::Kind::signals:
      return list(reference("signal_name"), 1);
    case BlockField::Kind::named_signals:
      return {{"anyOf",
               Json::array({map_of(reference("signal_name")), list(reference("signal_name"))})}};
    case BlockField::Kind::text:
      return text();
    case BlockField::Kind::number:
      return range_schema(field.range);
    case BlockField::Kind::integer: {
      const auto [least, most] = integers_of(field);
      return integer(least, most);
    }
    case BlockField::Kind::boolean:
      return boolean();
    case BlockField::Kind::choice:
      return with_default(choice(field.choices), field.choices.front());
    case BlockField::Kind::numbers:
      return list(number());
    case BlockField::Kind::matrix:
      return list(list(number()));
    case BlockField::Kind::texts:
      return list(text());
    case BlockField::Kind::named_values:
      return map_of(named_value_schema());
    case BlockField::Kind::pairs:
      break;
  }
  const Json pair = {{"type", "array"}, {"items", number()}, {"minItems", 2}, {"maxItems", 2}};
  return list(pair, 1);
}

Json block_field_schema(const BlockField& field) {
  Json schema = field_schema(field);
  if (schema.contains("$ref")) schema = {{"allOf", Json::array({schema})}};
  schema = described(std::move(schema),
                     field.unit.empty() ? field.summary : field.summary + " [" + field.unit + "]");
  if (field.required || !std::isfinite(field.default_number)) return schema;
  if (field.kind == BlockField::Kind::number || field.kind == BlockField::Kind::integer) {
    return with_default(std::move(schema), plain(field.default_number));
  }
  if (field.kind == BlockField::Kind::boolean) {
    return with_default(std::move(schema), field.default_number != 0.0);
  }
  return schema;
}

/// The schema of a kind with the keys that all blocks have after its own.
Json block_schema(Json own) {
  const Json common = block_keys().schema();
  own["properties"].update(common["properties"]);
  Json& required = own["required"];
  required.insert(required.begin() + 1, "name");  // after "kind"
  return own;
}

Json made_schema(const BlockKind& kind) {
  Json properties = {{"kind", {{"const", kind.name}}}};
  std::vector<std::string> required = {"kind"};
  for (const BlockField& field : kind.fields) {
    properties[field.name] = block_field_schema(field);
    if (field.required) required.push_back(field.name);
  }
  return described(block_schema(object(std::move(properties), required)), kind.summary);
}

}  // namespace

const KeyTable<SignalsKeys>& signals_keys() {
  static const KeyTable<SignalsKeys> keys = keys_with(Json());
  return keys;
}

const KeyTable<BlockKeys>& block_keys() {
  static const KeyTable<BlockKeys> keys({
      required_key("name", "name of its signal", to(&BlockKeys::name, form::name())),
      optional_key("every", "macro-steps between two samples; absent: as for all blocks",
                   to(&BlockKeys::every, form::integer(1, kMostEvery))),
      optional_key(
          "unit",
          "unit of its output, such as \"rad/s\" or \"km/h\": nothing is converted, but where the "
          "signal meets another unit that is an error",
          to(&BlockKeys::unit, form::text())),
      optional_key("count", "", elsewhere<BlockKeys>(count_schema())),
  });
  return keys;
}

const KeyTable<SensorKeys>& sensor_keys() {
  static const KeyTable<SensorKeys> keys(
      {kind_key<SensorKeys>("sensor"),
       required_key("of",
                    "\"part.state\", \"part.state.coenergy\", \"part.storage\", "
                    "\"part.port.effort\" or \".flow\"",
                    later(&SensorKeys::of, text()))});
  return keys;
}

const BlockKind* find_block_kind(const std::string& name) {
  const auto found = std::ranges::find(block_kinds(), name, &BlockKind::name);
  return found == block_kinds().end() ? nullptr : &*found;
}

std::vector<std::string> all_block_kinds() {
  std::vector<std::string> names = {"sensor"};
  for (const SourceKind& source : source_kinds()) {
    if (find_block_kind(source.name) == nullptr) names.push_back(source.name);
  }
  for (const BlockKind& kind : block_kinds()) names.push_back(kind.name);
  return names;
}

std::pair<std::int64_t, std::int64_t> integers_of(const BlockField& field) {
  const double most = scenario_limits::kInteger;
  return {static_cast<std::int64_t>(std::clamp(field.range.minimum, 0.0, most)),
          static_cast<std::int64_t>(std::clamp(field.range.maximum, 0.0, most))};
}

Json signal_name_schema() {
  Json schema = {{"description", "a signal by name, a quantity \"part.state\", or a number"}};
  schema["anyOf"] = Json::array({text(), number()});
  return schema;
}

Json signals_schema() {
  std::vector<std::pair<std::string, Json>> variants;
  variants.emplace_back("sensor", block_schema(sensor_keys().schema()));
  for (const SourceKind& source : source_kinds()) {
    if (find_block_kind(source.name) != nullptr) continue;
    variants.emplace_back(source.name, block_schema(source.schema));
  }
  for (const BlockKind& kind : block_kinds()) variants.emplace_back(kind.name, made_schema(kind));
  Json blocks = list(by_kind(variants));
  allow_computed_values(blocks["items"]);
  return keys_with(std::move(blocks)).schema();
}

}  // namespace portwave::scenario_file

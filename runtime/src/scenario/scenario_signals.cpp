#include "scenario/scenario_signals.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "output/observable.hpp"
#include "portwave/runtime/scenario/block_kinds.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/scenario_limits.hpp"
#include "scenario/scenario_text.hpp"
#include "scenario/scenario_values.hpp"
#include "scenario/template_schema.hpp"

namespace portwave::scenario_file {
namespace {

/// The least and the most that an integer of a block may be.
std::pair<std::int64_t, std::int64_t> integers_of(const BlockField& field) {
  const double most = scenario_limits::kInteger;
  return {static_cast<std::int64_t>(std::clamp(field.range.minimum, 0.0, most)),
          static_cast<std::int64_t>(std::clamp(field.range.maximum, 0.0, most))};
}

constexpr std::int64_t kMostEvery = 1'000'000'000;
constexpr int kMostMatrixRows = 1000;  // of a controller

bool is_block_kind(const std::string& name) {
  return std::ranges::find(block_kinds(), name, &BlockKind::name) != block_kinds().end();
}

std::vector<std::string> all_block_kinds() {
  std::vector<std::string> names = {"sensor"};
  for (const std::string& kind : signal_kinds()) {
    if (!is_block_kind(kind)) names.push_back(kind);
  }
  for (const BlockKind& kind : block_kinds()) names.push_back(kind.name);
  return names;
}

// Reads "signals" into a graph. What parts of it name is kept with the place in the file.
class SignalReader {
 public:
  SignalReader(const std::filesystem::path& folder, Names& names, StepperOptions& options,
               Defects& defects)
      : folder_(folder),
        names_(names),
        options_(options),
        defects_(defects),
        builder_(names.system()) {}

  void read(const Node& node) {
    const ObjectReader object(node, {"every", "every_s", "blocks"});
    if (const auto every_s = object.find("every_s")) read_period(*every_s);
    if (const auto every = object.find("every")) every_ = read_every(*every);
    const auto blocks = object.require("blocks");
    if (!blocks || !blocks->is_array("an array of blocks")) return;
    for (std::size_t i = 0; i < blocks->size(); ++i) {
      const Node element = blocks->at(i);
      if (element.json().is_object() && element.json().contains("name") &&
          element.json()["name"].is_string()) {
        given_.insert(element.json()["name"].get<std::string>());
      }
    }
    for (std::size_t i = 0; i < blocks->size(); ++i) {
      const Node element = blocks->at(i);
      read_block(element);
    }
  }

  void drive(const DrivenInput& input) {
    // None: it has defects of its own. Several: the pieces of a part that was cut, which share the input.
    for (const int part : names_.parts_of(input.part)) {
      const std::vector<InputChannel>& channels =
          names_.system().parts()[at(part)].component->signature().inputs;
      const auto channel = std::ranges::find(channels, input.input, &InputChannel::name);
      if (channel == channels.end()) continue;
      builder_.actuate(labelled(input.signal, input.where), part,
                       static_cast<int>(channel - channels.begin()));
      actuator_places_.push_back(input.where);
      return;
    }
  }

  void finish() {
    Issues issues = builder_.check();
    for (Issue& issue : issues) issue.where = place_of(issue.where);
    std::erase_if(issues, [&](const Issue& issue) { return defects_.has_within(issue.where); });
    defects_.add(issues);
    if (defects_.count() == 0) {
      options_.signals = std::make_shared<const SignalGraph>(builder_.build());
    }
  }

  std::set<std::string> take_names() { return std::move(given_); }

 private:
  struct BlockPlaces {
    std::string block;
    std::vector<std::string> inputs;
  };

  void read_period(const Node& node) {
    options_.signals_every_s = node.number(NumberRange::positive()).value_or(0.0);
    if (options_.sizes) return;
    node.fail(
        "is for steps that choose their size; with steps of one size signals are sampled before "
        "every so many of them: give \"every\"");
  }

  int read_every(const Node& node) {
    return static_cast<int>(node.integer(1, kMostEvery).value_or(1));
  }

  void add(const std::string& name, block::Handle block, std::vector<std::string> inputs, int every,
           BlockPlaces places, std::uint64_t digest = 0) {
    builder_.block(name, std::move(block), std::move(inputs), every, digest);
    places_.push_back(std::move(places));
  }

  void read_block(const Node& node) {
    if (!node.is_object("a block")) return;
    const auto kind = read_kind(node, all_block_kinds());
    const ObjectReader object(node);
    const auto name_node = object.require("name");
    const auto name = name_node ? name_node->text() : std::nullopt;
    int every = every_;
    if (const auto own = object.find("every")) every = read_every(*own);
    if (!kind || !name) return;
    if (*kind == "sensor") return read_sensor(node, *name, every);
    if (!is_block_kind(*kind)) {
      const auto signal = read_signal(node, folder_, {"name", "every", "count"});
      return add(*name, signal ? block::source(*signal) : nullptr, {}, every, {node.where(), {}});
    }
    read_made(node, *std::ranges::find(block_kinds(), *kind, &BlockKind::name), *name, every);
  }

  void read_sensor(const Node& node, const std::string& name, int every) {
    const ObjectReader object(node, {"name", "kind", "every", "count", "of"});
    const auto of = object.require("of");
    const auto label = of ? of->text() : std::nullopt;
    std::optional<Sensor> sensor;
    if (label) sensor = sensor_of(*label, of->where());
    if (sensor) {
      builder_.sensor(name, *sensor, every);
    } else {
      builder_.block(name, nullptr, {}, every);
    }
    places_.push_back({node.where(), {}});
  }

  void read_made(const Node& node, const BlockKind& kind, const std::string& name, int every) {
    std::vector<std::string_view> keys = {"name", "kind", "every", "count"};
    for (const BlockField& field : kind.fields) keys.push_back(field.name);
    const ObjectReader object(node, keys);
    BlockValues values;
    std::vector<std::string> inputs;
    BlockPlaces places{node.where(), {}};
    bool is_sound = true;
    for (const BlockField& field : kind.fields) {
      is_sound = read_field(object, field, values, inputs, places) && is_sound;
    }
    block::Handle made;
    if (is_sound) made = make(node, kind, values, static_cast<int>(inputs.size()));
    Digest digest;
    digest.add(kind.name);
    digest.add(values.digest());
    add(name, std::move(made), std::move(inputs), every, std::move(places), digest.value());
  }

  block::Handle make(const Node& node, const BlockKind& kind, const BlockValues& values,
                     int inputs) {
    try {
      return kind.make(values, inputs);
    } catch (const ConfigError& error) {
      for (const Issue& issue : error.issues()) {
        defects_.add(node.where() + issue.where, issue.what);
      }
    }
    return nullptr;
  }

  bool read_field(const ObjectReader& object, const BlockField& field, BlockValues& values,
                  std::vector<std::string>& inputs, BlockPlaces& places) {
    const auto given = field.required ? object.require(field.name) : object.find(field.name);
    if (!given) {
      if (!field.required) set_default(field, values);
      return !field.required;
    }
    switch (field.kind) {
      case BlockField::Kind::signal:
        return read_input(*given, inputs, places);
      case BlockField::Kind::signals:
        return read_inputs(*given, inputs, places);
      case BlockField::Kind::named_signals:
        return read_named_inputs(*given, field, values, inputs, places);
      case BlockField::Kind::text:
        return keep(field, given->text(), values);
      case BlockField::Kind::number:
        return keep(field, given->number(field.range), values);
      case BlockField::Kind::integer: {
        const auto [least, most] = integers_of(field);
        return keep(field, given->integer(least, most), values);
      }
      case BlockField::Kind::boolean:
        return keep(field, given->boolean(), values);
      case BlockField::Kind::choice:
        return keep(field, given->choice(field.choices), values);
      case BlockField::Kind::numbers:
        return keep(field, read_numbers(*given), values);
      case BlockField::Kind::pairs:
        return keep(field, read_pairs(*given), values);
      case BlockField::Kind::matrix:
        break;
    }
    const auto matrix = read_controller_matrix(*given);
    if (matrix) values.set(field.name, *matrix);
    return matrix.has_value();
  }

  template <class T>
  static bool keep(const BlockField& field, std::optional<T> value, BlockValues& values) {
    if (!value) return false;
    if constexpr (std::is_arithmetic_v<T>) {
      values.set(field.name, static_cast<double>(*value));
    } else {
      values.set(field.name, *std::move(value));
    }
    return true;
  }

  static void set_default(const BlockField& field, BlockValues& values) {
    switch (field.kind) {
      case BlockField::Kind::choice:
        return values.set(field.name, field.choices.front());
      case BlockField::Kind::named_signals:
        return values.set(field.name, std::vector<std::string>());
      case BlockField::Kind::text:
        return values.set(field.name, std::string());
      case BlockField::Kind::numbers:
        return values.set(field.name, std::vector<double>());
      case BlockField::Kind::matrix:
        return values.set(field.name, Eigen::MatrixXd());
      default:
        values.set(field.name, field.default_number);
    }
  }

  /// A matrix by rows or from a file.
  std::optional<Eigen::MatrixXd> read_controller_matrix(const Node& node) const {
    const auto matrix = read_matrix(node, folder_);
    if (!matrix) return std::nullopt;
    if (const auto* const shaped = std::get_if<ShapedMatrix>(&*matrix)) {
      if (std::max(shaped->rows, shaped->columns) > kMostMatrixRows) {
        node.fail(fmt::format("must have at most {} rows and columns, got {}×{}", kMostMatrixRows,
                              shaped->rows, shaped->columns));
        return std::nullopt;
      }
      Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(shaped->rows, shaped->columns);
      for (const MatrixEntry& entry : shaped->entries) {
        dense(entry.row, entry.column) += entry.value;
      }
      return dense;
    }
    const auto* const rows = std::get_if<MatrixRows>(&*matrix);
    if (rows == nullptr) {
      node.fail("must be given by rows or by a file");
      return std::nullopt;
    }
    const auto columns = rows->empty() ? Eigen::Index{0} : std::ssize(rows->front());
    Eigen::MatrixXd dense(std::ssize(*rows), columns);
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const std::vector<double>& row = (*rows)[i];
      if (std::ssize(row) != columns) {
        node.fail(fmt::format("row {} has {} numbers, but row 0 has {}", i, row.size(), columns));
        return std::nullopt;
      }
      dense.row(static_cast<Eigen::Index>(i)) =
          Eigen::Map<const Eigen::RowVectorXd>(row.data(), columns);
    }
    return dense;
  }

  bool read_inputs(const Node& node, std::vector<std::string>& inputs, BlockPlaces& places) {
    if (!node.is_array("an array of signals")) return false;
    if (node.size() == 0) {
      node.fail("needs at least one signal");
      return false;
    }
    bool is_sound = true;
    for (std::size_t i = 0; i < node.size(); ++i) {
      const Node element = node.at(i);
      is_sound = read_input(element, inputs, places) && is_sound;
    }
    return is_sound;
  }

  // Keeps the names of the inputs.
  bool read_named_inputs(const Node& node, const BlockField& field, BlockValues& values,
                         std::vector<std::string>& inputs, BlockPlaces& places) {
    std::vector<std::string> names;
    bool is_sound = true;
    if (node.json().is_object()) {
      for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
        const Node member = node.member(key, value);
        names.push_back(key);
        is_sound = read_input(member, inputs, places) && is_sound;
      }
    } else if (node.is_array("an object or an array of signals")) {
      for (std::size_t i = 0; i < node.size(); ++i) {
        const Node element = node.at(i);
        names.push_back(fmt::format("u{}", i + 1));
        is_sound = read_input(element, inputs, places) && is_sound;
      }
    } else {
      return false;
    }
    values.set(field.name, std::move(names));
    return is_sound;
  }

  // A number stands for a constant, a quantity for a sensor: they become blocks of their own.
  bool read_input(const Node& node, std::vector<std::string>& inputs, BlockPlaces& places) {
    places.inputs.push_back(node.where());
    if (node.json().is_number()) {
      const auto value = node.number();
      if (!value) return false;
      inputs.push_back(constant(*value));
      return true;
    }
    if (!node.json().is_string()) {
      node.fail_expected("the name of a signal, a quantity \"part.state\" or a number");
      return false;
    }
    inputs.push_back(labelled(*node.text(), node.where()));
    return true;
  }

  std::string constant(double value) {
    const std::string name = fmt::format("constant/{}", constants_++);
    builder_.block(name, block::source(Signal::constant(value)), {});
    places_.push_back({});
    return name;
  }

  bool is_given(const std::string& label) const {
    return given_.contains(label) || given_.contains(label.substr(0, label.rfind('[')));
  }

  // The name of the signal: a quantity gets a sensor the first time that it is asked for.
  std::string labelled(const std::string& label, const std::string& where) {
    if (is_given(label) || label.find('.') == std::string::npos) return label;
    const auto [known, is_new] = sensors_.emplace(label, std::string());
    if (!is_new) return known->second;
    known->second = fmt::format("sensor/{}", sensors_.size() - 1);
    const auto sensor = sensor_of(label, where);
    if (sensor) {
      builder_.sensor(known->second, *sensor);
    } else {
      builder_.block(known->second, nullptr, {});
    }
    places_.push_back({});
    return known->second;
  }

  std::optional<Sensor> sensor_of(const std::string& label, const std::string& where) {
    return read_sensor_label(label, where, options_.method.kind(), names_, defects_);
  }

  static std::optional<std::vector<Signal::Knot>> read_pairs(const Node& node) {
    if (!node.json().is_array() || node.size() == 0) {
      node.fail_expected("an array of at least one pair of numbers");
      return std::nullopt;
    }
    std::vector<Signal::Knot> pairs;
    bool is_sound = true;
    for (std::size_t i = 0; i < node.size(); ++i) {
      const Node element = node.at(i);
      const bool is_pair = element.json().is_array() && element.size() == 2;
      const auto pair = is_pair ? read_numbers(element) : std::nullopt;
      if (!is_pair) element.fail_expected("a pair of numbers");
      is_sound = is_sound && pair;
      if (!pair) continue;
      if (!pairs.empty() && (*pair)[0] <= pairs.back().time_s) {
        element.fail(fmt::format("first numbers must increase: {} follows {}", (*pair)[0],
                                 pairs.back().time_s));
        is_sound = false;
      }
      pairs.push_back({(*pair)[0], (*pair)[1]});
    }
    if (!is_sound) return std::nullopt;
    return pairs;
  }

  // "/blocks/3/inputs/0" of the graph as the place in the file.
  std::string place_of(const std::string& where) const {
    const auto number_after = [&where](std::string_view prefix) -> std::optional<std::size_t> {
      if (!where.starts_with(prefix)) return std::nullopt;
      return std::stoul(where.substr(prefix.size()));
    };
    if (const auto i = number_after("/actuators/")) return actuator_places_[*i];
    const auto i = number_after("/blocks/");
    if (!i) return where;
    const BlockPlaces& places = places_[*i];
    const std::size_t slash = where.find('/', std::string_view("/blocks/").size());
    if (slash == std::string::npos) return places.block;
    const std::string rest = where.substr(slash);
    if (!rest.starts_with("/inputs")) return places.block + rest;
    if (rest == "/inputs") return places.block;
    return places.inputs[std::stoul(rest.substr(std::string_view("/inputs/").size()))];
  }

  const std::filesystem::path& folder_;
  Names& names_;
  StepperOptions& options_;
  Defects& defects_;
  SignalGraphBuilder builder_;
  int every_ = 1;
  int constants_ = 0;
  std::set<std::string> given_;  // names of the blocks in the file
  std::map<std::string, std::string> sensors_;
  std::vector<BlockPlaces> places_;  // by number in the builder
  std::vector<std::string> actuator_places_;
};

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

}  // namespace

std::optional<Sensor> read_sensor_label(const std::string& label, const std::string& where,
                                        MethodKind method, Names& names, Defects& defects) {
  if (names.is_missing(label)) return std::nullopt;
  std::string defect;
  const auto found = names.find_quantity(label, method, defect);
  if (!found) {
    defects.add(where, defect);
    return std::nullopt;
  }
  switch (found->kind) {
    case Observable::Kind::state:
      return Sensor{Sensor::Kind::state, found->part, found->index};
    case Observable::Kind::effort:
      return Sensor{Sensor::Kind::effort, found->part, found->index};
    case Observable::Kind::flow:
      return Sensor{Sensor::Kind::flow, found->part, found->index};
    case Observable::Kind::storage:
      return Sensor{Sensor::Kind::storage, found->part, found->index};
    default:
      break;
  }
  defects.add(where, "waves cannot be measured: take the effort or the flow of the port");
  return std::nullopt;
}

std::set<std::string> read_signals(const Node* node, const std::vector<DrivenInput>& inputs,
                                   const std::filesystem::path& folder, Names& names,
                                   StepperOptions& options, Defects& defects) {
  if (node == nullptr && inputs.empty()) return {};
  SignalReader reader(folder, names, options, defects);
  if (node != nullptr) reader.read(*node);
  for (const DrivenInput& input : inputs) reader.drive(input);
  reader.finish();
  return reader.take_names();
}

Json signals_schema() {
  const Json name = described({{"type", "string"}, {"minLength", 1}}, "name of its signal");
  const Json every = integer(1, kMostEvery);
  const auto with_name = [&](Json properties) {
    properties["name"] = name;
    properties["every"] =
        described(every, "sample it before every so many macro-steps; absent: as all blocks");
    properties["count"] = count_schema();
    return properties;
  };
  std::vector<std::pair<std::string, Json>> variants;
  variants.emplace_back("sensor",
                        variant("sensor",
                                with_name({{"of", described(text(),
                                                            "\"part.state\", \"part.storage\", "
                                                            "\"part.port.effort\" or \".flow\"")}}),
                                {"name", "of"}));
  for (const SignalKindSchema& source : signal_kind_schemas()) {
    if (is_block_kind(source.kind)) continue;
    std::vector<std::string> keys = source.required;
    keys.insert(keys.begin(), "name");
    Json schema = variant(source.kind, with_name(source.properties), keys);
    schema.update(source.rules);
    variants.emplace_back(source.kind, std::move(schema));
  }
  for (const BlockKind& kind : block_kinds()) {
    Json properties = Json::object();
    std::vector<std::string> keys = {"name"};
    for (const BlockField& field : kind.fields) {
      properties[field.name] = block_field_schema(field);
      if (field.required) keys.push_back(field.name);
    }
    variants.emplace_back(kind.name,
                          described(variant(kind.name, with_name(properties), keys), kind.summary));
  }
  Json blocks = list(by_kind(variants));
  allow_computed_values(blocks["items"]);
  return object({{"every_s", described(positive(),
                                       "time between samples [s], for steps that choose their "
                                       "size")},
                 {"every", with_default(described(every,
                                                  "sample blocks before every so many "
                                                  "macro-steps, unless they say otherwise"),
                                        1)},
                 {"blocks", std::move(blocks)}},
                {"blocks"});
}

}  // namespace portwave::scenario_file

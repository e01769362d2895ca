#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "output/recording/quantity.hpp"
#include "portwave/runtime/scenario/block_kinds.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/parts/sources.hpp"
#include "scenario/parts/values.hpp"
#include "scenario/reader/text.hpp"
#include "scenario/settings/settings.hpp"
#include "scenario/settings/signal_keys.hpp"
#include "scenario/settings/signal_units.hpp"

namespace portwave::scenario_file {
namespace {

constexpr int kMostMatrixRows = 1000;  // of a controller

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
    SignalsKeys keys;
    signals_keys().read(node, keys);
    if (keys.every_s) read_period(*keys.every_s);
    every_ = keys.every;
    const auto& blocks = keys.blocks;
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
      const std::vector<ExternalInput>& inputs =
          names_.system().parts()[at(part)].component->signature().inputs;
      const auto found = std::ranges::find(inputs, input.input, &ExternalInput::name);
      if (found == inputs.end()) continue;
      const std::string signal = labelled(input.signal, input.where);
      builder_.actuate(signal, part, static_cast<int>(found - inputs.begin()));
      units_.drive(signal, found->unit, fmt::format("{}.{}", input.part, input.input), input.where);
      actuator_places_.push_back(input.where);
      return;
    }
  }

  void drive(const DrivenParameter& own, const std::shared_ptr<PartRecipes>& recipes) {
    const std::vector<int> parts = names_.parts_of(own.part);
    if (parts.empty()) return;  // it has defects of its own
    if (names_.system().find_cut(own.part) != nullptr) {
      return defects_.add(own.where,
                          fmt::format("part {} is cut into pieces: its parameters cannot "
                                      "be changed while it is stepped",
                                      in_quotes(own.part)));
    }
    std::string signal;
    if (own.source) {
      signal = fmt::format("parameter/{}", actuator_of_parameters_.size());
      // A function of time needs no sample of anything: it holds for a step, at whatever rate controllers work.
      builder_.block(signal, block::held_source(*own.source), {}, 1);
      places_.push_back({own.where, {}});
    } else {
      signal = labelled(own.signal, own.where);
      units_.drive(signal, own.unit, fmt::format("{}.{}", own.part, own.parameter), own.where);
    }
    builder_.actuate_parameter(
        signal, parts.front(), own.parameter,
        [recipes, parameter = own.parameter](const Component& present, double value) {
          return recipes->with(present, parameter, value);
        });
    actuator_of_parameters_.push_back(own.where);
  }

  void finish() {
    defects_.add(units_.check());
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
  }

  void add(const std::string& name, block::Handle block, std::vector<std::string> inputs, int every,
           BlockPlaces places, std::uint64_t digest = 0) {
    builder_.block(name, std::move(block), std::move(inputs), every, digest);
    places_.push_back(std::move(places));
  }

  void read_block(const Node& node) {
    if (!node.is_object("a block")) return;
    const auto kind = read_kind(node, all_block_kinds());
    BlockKeys keys{.every = every_};
    block_keys().read_values(ObjectReader(node), keys);
    if (!kind || keys.name.empty()) return;
    if (!keys.unit.empty()) units_.declare(keys.name, keys.unit, node.where() + "/unit");
    if (*kind == "sensor") return read_sensor(node, keys);
    if (const BlockKind* const made = find_block_kind(*kind)) return read_made(node, *made, keys);
    const auto signal = find_source_kind(*kind)->read(node, folder_, block_keys().names());
    add(keys.name, signal ? block::source(*signal) : nullptr, {}, keys.every, {node.where(), {}});
  }

  void read_sensor(const Node& node, const BlockKeys& block) {
    SensorKeys keys;
    std::optional<Sensor> sensor;
    if (sensor_keys().read(node, keys, block_keys().names())) {
      if (const auto label = keys.of->text()) sensor = sensor_of(*label, keys.of->where());
    }
    if (sensor) {
      units_.measure(block.name, unit_of(names_.system(), *sensor), keys.of->where());
      builder_.sensor(block.name, *sensor, block.every);
    } else {
      builder_.block(block.name, nullptr, {}, block.every);
    }
    places_.push_back({node.where(), {}});
  }

  void read_made(const Node& node, const BlockKind& kind, const BlockKeys& block) {
    std::vector<std::string_view> keys = block_keys().names();
    keys.emplace_back("kind");
    for (const BlockField& field : kind.fields) keys.push_back(field.name);
    const ObjectReader object(node, keys);
    BlockValues values;
    std::vector<std::string> inputs;
    BlockPlaces places{node.where(), {}};
    bool is_sound = true;
    for (const BlockField& field : kind.fields) {
      is_sound = read_field(object, field, values, inputs, places) && is_sound;
    }
    // Weights may convert.
    const bool is_weighted = is_sound && kind.name == "sum" &&
                             std::ranges::any_of(values.numbers("weights"), [](double weight) {
                               return std::abs(weight) != 1.0;
                             });
    units_.add(block.name, is_weighted ? "weighted sum" : kind.name, inputs, places.inputs);
    block::Handle made;
    if (is_sound) made = make(node, kind, values, static_cast<int>(inputs.size()));
    Digest digest;
    digest.add(kind.name);
    digest.add(values.digest());
    add(block.name, std::move(made), std::move(inputs), block.every, std::move(places),
        digest.value());
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
      case BlockField::Kind::texts:
        return keep(field, read_texts(*given), values);
      case BlockField::Kind::named_values:
        return keep(field, read_named_values(*given), values);
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
      case BlockField::Kind::texts:
        return values.set(field.name, std::vector<std::string>());
      case BlockField::Kind::named_values:
        return values.set(field.name, BlockValues::NamedValues());
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
    const auto* const shaped = std::get_if<ShapedMatrix>(&*matrix);
    if (shaped != nullptr && std::max(shaped->rows, shaped->columns) > kMostMatrixRows) {
      node.fail(fmt::format("must have at most {} rows and columns, got {}×{}", kMostMatrixRows,
                            shaped->rows, shaped->columns));
      return std::nullopt;
    }
    if (std::holds_alternative<MatrixEntries>(*matrix)) {
      node.fail("must be given by rows or by a file");
      return std::nullopt;
    }
    return dense_matrix(*matrix);
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
      units_.measure(known->second, unit_of(names_.system(), *sensor), where, label);
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
    if (const auto i = number_after("/parameter_actuators/")) return actuator_of_parameters_[*i];
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
  SignalUnits units_;
  int every_ = 1;
  int constants_ = 0;
  std::set<std::string> given_;  // names of the blocks in the file
  std::map<std::string, std::string> sensors_;
  std::vector<BlockPlaces> places_;  // by number in the builder
  std::vector<std::string> actuator_places_, actuator_of_parameters_;
};

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
    case Quantity::Kind::state:
      return Sensor{Sensor::Kind::state, found->part, found->index};
    case Quantity::Kind::effort:
      return Sensor{Sensor::Kind::effort, found->part, found->index};
    case Quantity::Kind::flow:
      return Sensor{Sensor::Kind::flow, found->part, found->index};
    case Quantity::Kind::storage:
      return Sensor{Sensor::Kind::storage, found->part, found->index};
    case Quantity::Kind::coenergy:
      return Sensor{Sensor::Kind::coenergy, found->part, found->index};
    default:
      break;
  }
  defects.add(where, "waves cannot be measured: take the effort or the flow of the port");
  return std::nullopt;
}

std::set<std::string> read_signals(const Node* node, const SystemDraft& draft,
                                   const std::filesystem::path& folder, Names& names,
                                   StepperOptions& options, Defects& defects) {
  if (node == nullptr && draft.driven_inputs.empty() && draft.driven_parameters.empty()) return {};
  SignalReader reader(folder, names, options, defects);
  if (node != nullptr) reader.read(*node);
  for (const DrivenInput& input : draft.driven_inputs) reader.drive(input);
  for (const DrivenParameter& own : draft.driven_parameters) reader.drive(own, draft.recipes);
  reader.finish();
  return reader.take_names();
}

}  // namespace portwave::scenario_file

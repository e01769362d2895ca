#include "scenario/settings/method_keys.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "parallel/fast_parts.hpp"
#include "portwave/coupling/method/number_range.hpp"
#include "portwave/subsystems/base/few_of.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {
namespace {

// One number for each of `count` scalar ports: a number for all of them, or an array.
bool read_per_component(const Node& node, const NumberRange& range, double* values, int count) {
  if (node.json().is_array() && std::cmp_equal(node.size(), count)) {
    bool is_sound = true;
    for (int i = 0; i < count; ++i) {
      const Node element = node.at(static_cast<std::size_t>(i));
      const auto number = element.number(range);
      is_sound = is_sound && number;
      values[i] = number.value_or(1.0);
    }
    return is_sound;
  }
  if (node.json().is_array()) {
    node.fail(fmt::format("must be {}, or an array of {}, one per component of the port, got {}",
                          range.describe(), count, describe(node.json())));
    return false;
  }
  const auto number = node.number(range);
  std::fill_n(values, count, number.value_or(1.0));
  return number.has_value();
}

void fail_unknown_port(const Node& node, const std::string& path, Names& names) {
  if (node.defects().is_full() || names.is_missing(path)) return;
  node.fail(fmt::format("there is no port {}.\nports: {}.{}", in_quotes(path),
                        few_of(names.ports().names()), names.ports().did_you_mean(path)));
}

// Reads {"part.port": number or array, …} into values by scalar port. Returns which were given.
std::vector<bool> read_by_port(const Node& node, Names& names, const NumberRange& range,
                               std::vector<double>& values) {
  std::vector<bool> is_given(values.size(), false);
  if (!node.is_object("an object of ports, {\"part.port\": number, ...}")) return is_given;
  for (const auto& [path, value] : node.json().get_ref<const Json::object_t&>()) {
    const Node member = node.member(path, value);
    const auto [part, port] = names.find_port(path);
    if (part < 0) {
      fail_unknown_port(member, path, names);
      continue;
    }
    const Part& owner = names.system().parts()[static_cast<std::size_t>(part)];
    const int count = owner.component->signature().ports[static_cast<std::size_t>(port)].dimension;
    const int first = names.system().first_scalar_port(part, port);
    read_per_component(member, range, values.data() + first, count);
    for (int i = first; i < first + count; ++i) is_given[static_cast<std::size_t>(i)] = true;
  }
  return is_given;
}

// A resistor that ends a port takes the impedance of that port unless it has one of its own.
void match_terminations(const System& system, const std::vector<bool>& is_given,
                        std::vector<double>& impedance) {
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Part& part = system.parts()[static_cast<std::size_t>(i)];
    if (!part.is_termination) continue;
    const auto [ended, port] = system.find_port(part.name);
    const auto from = static_cast<std::size_t>(system.first_scalar_port(ended, port));
    const auto to = static_cast<std::size_t>(system.first_scalar_port(i));
    const auto count = static_cast<std::size_t>(part.component->signature().wave_size());
    for (std::size_t k = 0; k < count; ++k) {
      if (!is_given[to + k]) impedance[to + k] = impedance[from + k];
    }
  }
}

Json by_port(const Json& values) {
  Json value;
  value["anyOf"] = Json::array({values, list(values)});
  return map_of(std::move(value));
}

struct ImpedanceKeys {
  double value = 1.0;
  std::optional<Node> ports, retune_factor;
};

/// A kind of "impedance". The ports of those that are given are read once ports have names.
struct ImpedanceForm {
  std::string name;
  ImpedanceKind kind;
  KeyTable<ImpedanceKeys> keys;
};

Json factor_schema() {
  return {{"anyOf", Json::array({{{"const", 0}}, {{"type", "number"}, {"exclusiveMinimum", 1}}})}};
}

const std::vector<ImpedanceForm>& impedance_forms() {
  static const std::vector<ImpedanceForm> all = [] {
    std::vector<ImpedanceForm> forms;
    const auto add = [&forms](const std::string& name, ImpedanceKind kind,
                              std::vector<Key<ImpedanceKeys>> rows) {
      rows.insert(rows.begin(), kind_key<ImpedanceKeys>(name));
      forms.push_back({name, kind, KeyTable<ImpedanceKeys>(std::move(rows))});
    };
    const Key<ImpedanceKeys> value =
        required_key("value", "effort per flow, at every port that is not listed",
                     to(&ImpedanceKeys::value, form::number(NumberRange::positive())));
    add("uniform", ImpedanceKind::given, {value});
    add("per_port", ImpedanceKind::given,
        {value, optional_key("ports", "by \"part.port\": a number, or one per component",
                             later(&ImpedanceKeys::ports, by_port(positive())))});
    for (const ImpedanceKind kind : kTunedImpedances) {
      // The method's check judges the factor.
      add(std::string(to_string(kind)), kind,
          {optional_key("retune_factor",
                        "retune when the state makes one wrong by more than this factor; 0: never",
                        later(&ImpedanceKeys::retune_factor, factor_schema()),
                        plain(WaveCoupling().retune_factor))});
    }
    return forms;
  }();
  return all;
}

void read_impedance(const Node& node, CouplingMethod& method) {
  const auto name = read_kind(node, impedance_kinds());
  if (!name) return;
  const ImpedanceForm& form = *std::ranges::find(impedance_forms(), *name, &ImpedanceForm::name);
  WaveCoupling& waves = method.waves();
  waves.impedance_kind = form.kind;
  ImpedanceKeys keys;
  const bool is_sound = form.keys.read(node, keys);
  if (form.kind == ImpedanceKind::given && is_sound) waves.impedance = {keys.value};
  if (!keys.retune_factor) return;
  if (keys.retune_factor->json().is_number()) {
    waves.retune_factor = keys.retune_factor->number().value_or(waves.retune_factor);
  } else {
    keys.retune_factor->fail_expected(kRetuneFactorRange);
  }
}

void read_port_impedances(const Node& node, Names& names, CouplingMethod& method) {
  WaveCoupling& waves = method.waves();
  if (waves.impedance_kind != ImpedanceKind::given || !node.json().is_object()) return;
  const ObjectReader object(node);
  const std::optional<Node> ports = object.find("ports");
  if (!ports) return;
  waves.impedance.assign(names.system().scalar_ports().size(), waves.impedance.front());
  const std::vector<bool> is_given =
      read_by_port(*ports, names, NumberRange::positive(), waves.impedance);
  match_terminations(names.system(), is_given, waves.impedance);
}

Json impedance_reference() { return reference("impedance"); }

Json impedance_narrowed_by(MethodKind kind) {
  if (kind != WaveUpdate::automatic) return nullptr;
  return {{"properties", {{"kind", {{"const", "auto"}}}}}};
}

void read_initial_waves(const Node& node, Names& names, CouplingMethod& method) {
  WaveCoupling& waves = method.waves();
  waves.initial_waves.assign(names.system().scalar_ports().size(), 0.0);
  read_by_port(node, names, {}, waves.initial_waves);
}

Json initial_waves_schema() { return by_port(number()); }

void read_fast(const Node& node, CouplingMethod& method) {
  if (!node.is_array("an array of names of subsystems")) return;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node element = node.at(i);
    const auto name = element.text();
    if (!name) continue;
    if (!seen.insert(*name).second)
      element.fail(fmt::format("{} is there already", in_quotes(*name)));
    method.splitting().fast.push_back(*name);
  }
}

void check_fast_names(const Node& node, Names& names, CouplingMethod&) {
  if (!node.json().is_array()) return;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node element = node.at(i);
    if (!element.json().is_string()) continue;
    const auto& name = element.json().get_ref<const std::string&>();
    if (element.defects().is_full()) return;
    if (names.is_missing(name) || element.defects().has(element.where())) continue;
    if (names.system().find_part(name) >= 0) continue;
    element.fail(fast_part_defect(name, names.parts()));
  }
}

Json fast_schema() {
  Json names = list(text(), 1);
  names["uniqueItems"] = true;
  return names;
}

void read_nothing(const Node&, CouplingMethod&) {}
Json not_narrowed(MethodKind) { return nullptr; }

}  // namespace

std::span<const SpecialOptionFormat> special_options() {
  static constexpr std::array kFormats = {
      SpecialOptionFormat{"impedance", read_impedance, read_port_impedances, impedance_reference,
                          impedance_narrowed_by, R"({"kind":"matched"})"},
      SpecialOptionFormat{"initial_waves", read_nothing, read_initial_waves, initial_waves_schema,
                          not_narrowed},
      SpecialOptionFormat{"fast", read_fast, check_fast_names, fast_schema, not_narrowed,
                          R"(["..."])"}};
  return kFormats;
}

const SpecialOptionFormat& special_option(std::string_view key) {
  const auto formats = special_options();
  return *std::find_if(formats.begin(), formats.end(),
                       [&](const SpecialOptionFormat& each) { return each.key == key; });
}

const std::vector<std::string>& impedance_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> names;
    for (const ImpedanceForm& form : impedance_forms()) names.push_back(form.name);
    return names;
  }();
  return kinds;
}

Json impedance_schema() {
  std::vector<std::pair<std::string, Json>> variants;
  for (const ImpedanceForm& form : impedance_forms()) {
    variants.emplace_back(form.name, form.keys.schema());
  }
  return described(
      by_kind(variants),
      "wave impedances of the ports: given; or tuned to the parts' one-step responses. fne: the "
      "largest that keep every part firmly nonexpansive; matched: no port reflects into its own "
      "part; leaf: both ports of a connection matched to the side whose ports interact less; "
      "adapted: from the leaves of a tree to its root; across: as matched, nonlinear parts to what "
      "they see across their junctions; auto: the best of these by predicted rate, for the "
      "interface "
      "equation across");
}

namespace {

/// The key of one option; `defaults` is of its family.
class OptionKey {
 public:
  OptionKey(const OptionInfo& option, const CouplingMethod& defaults)
      : option_(option), defaults_(defaults) {}

  Key<CouplingMethod> operator()(const OptionField<int>& place) const {
    const auto least = static_cast<std::int64_t>(option_.range.minimum);
    const auto most = static_cast<std::int64_t>(
        std::min<double>(option_.range.maximum, scenario_limits::kIterations));
    const auto read = [least, most, &option = option_](const Node& node, int& value) {
      if (is_word(node, option)) {
        value = 0;
      } else if (!option.word.empty() && !node.json().is_number()) {
        node.fail_expected(fmt::format("\"{}\" or an integer from {} to {}", option.word,
                                       option.range.minimum, option.range.maximum));
      } else if (const auto number = node.integer(least, most)) {
        value = static_cast<int>(*number);
      }
    };
    const int usual = place.of(defaults_);
    const bool is_word_usual = usual == 0 && !option_.word.empty();
    return key(place, or_word(integer(least, most)), read,
               is_word_usual ? Json(std::string(option_.word)) : Json(usual));
  }

  Key<CouplingMethod> operator()(const OptionField<double>& place) const {
    const double usual = place.of(defaults_);
    const Json otherwise = std::isfinite(usual) ? plain(usual) : Json();
    Json schema = or_word(range_schema(option_.range));
    if (option_.range_of != nullptr) {
      return {.value = {std::move(schema),
                        [place, &option = option_](const Node& node, CouplingMethod& method) {
                          return read_dependent(node, option, method, place.in(method));
                        }},
              .otherwise = otherwise};
    }
    const auto read = [&option = option_](const Node& node, double& value) {
      if (is_word(node, option)) {
        value = std::numeric_limits<double>::infinity();
      } else if (const auto number = number_or_word(node, option)) {
        value = *number;
      }
    };
    return key(place, std::move(schema), read, otherwise);
  }

  Key<CouplingMethod> operator()(const OptionField<std::optional<double>>& place) const {
    const auto read = [&option = option_](const Node& node, std::optional<double>& value) {
      if (is_word(node, option)) {
        value.reset();
      } else if (const auto number = number_or_word(node, option)) {
        value = number;
      }
    };
    return key(place, or_word(range_schema(option_.range)), read,
               option_.word.empty() ? Json() : Json(std::string(option_.word)));
  }

  Key<CouplingMethod> operator()(const OptionField<bool>& place) const {
    const auto read = [](const Node& node, bool& value) { value = node.boolean().value_or(value); };
    return key(place, boolean(), read, place.of(defaults_));
  }

  Key<CouplingMethod> operator()(const OptionChoice& words) const {
    const std::vector<std::string> names(words.names.begin(), words.names.end());
    const auto read = [words, names](const Node& node, CouplingMethod& method) {
      const auto name = node.choice(names);
      if (name)
        words.set(method, static_cast<int>(std::ranges::find(names, *name) - names.begin()));
      return name.has_value();
    };
    return {.value = {choice(names), read},
            .otherwise = names[static_cast<std::size_t>(words.get(defaults_))]};
  }

  Key<CouplingMethod> operator()(const OptionGroup& group) const {
    std::vector<Key<CouplingMethod>> rows;
    for (const OptionInfo& option : group.options()) {
      rows.push_back(OptionKey(option, defaults_).made());
      rows.back().required = false;
    }
    const KeyTable<CouplingMethod> table(std::move(rows));
    return {.value = {table.schema(), [table](const Node& node, CouplingMethod& method) {
                        return table.read(node, method);
                      }}};
  }

  Key<CouplingMethod> operator()(const SpecialOption&) const {
    const SpecialOptionFormat& format = special_option(option_.key);
    return {.value = {format.schema(), [&format](const Node& node, CouplingMethod& method) {
                        format.read(node, method);
                        return true;
                      }}};
  }

  Key<CouplingMethod> made() const {
    Key<CouplingMethod> own = std::visit(*this, option_.value);
    own.name = option_.key;
    own.text = option_.summary;
    if (!option_.unit.empty()) own.text += fmt::format(" [{}]", option_.unit);
    own.text += option_.note;
    return own;
  }

 private:
  template <class T, class Read>
  static Key<CouplingMethod> key(const OptionField<T>& place, Json schema, Read read,
                                 Json otherwise) {
    return {.value = {std::move(schema),
                      [place, read](const Node& node, CouplingMethod& method) {
                        read(node, place.in(method));
                        return true;
                      }},
            .otherwise = std::move(otherwise)};
  }

  static bool is_word(const Node& node, const OptionInfo& option) {
    const Json& json = node.json();
    return !option.word.empty() && json.is_string() &&
           json.get_ref<const std::string&>() == option.word;
  }
  static std::optional<double> number_or_word(const Node& node, const OptionInfo& option) {
    if (option.word.empty()) return node.number(option.range);
    const Json& json = node.json();
    if (json.is_number() && option.range.contains(json.get<double>())) return json.get<double>();
    node.fail_expected(fmt::format("\"{}\" or {}", option.word, option.range.describe()));
    return std::nullopt;
  }
  /// Here only that it is a number: the method's check judges it, with what its range follows from.
  static bool read_dependent(const Node& node, const OptionInfo& option,
                             const CouplingMethod& method, double& value) {
    const auto dependent = option.range_of(method);
    const NumberRange& range = dependent ? dependent->range : option.range;
    if (node.json().is_number()) {
      value = node.number().value_or(value);
    } else {
      node.fail_expected(range.describe());
    }
    return node.json().is_number();
  }
  Json or_word(Json schema) const {
    if (option_.word.empty()) return schema;
    Json either;
    either["anyOf"] = Json::array({std::move(schema), {{"const", std::string(option_.word)}}});
    return either;
  }

  const OptionInfo& option_;
  const CouplingMethod& defaults_;
};

}  // namespace

const std::vector<Key<CouplingMethod>>& option_keys(const MethodFamily& family) {
  static const std::map<const MethodFamily*, std::vector<Key<CouplingMethod>>> all = [] {
    std::map<const MethodFamily*, std::vector<Key<CouplingMethod>>> keys;
    for (const MethodFamily* const own : method_families()) {
      const CouplingMethod defaults = CouplingMethod::of_kind(own->kinds.front().kind);
      for (const OptionInfo& option : own->options) {
        keys[own].push_back(OptionKey(option, defaults).made());
      }
    }
    return keys;
  }();
  return all.at(&family);
}

}  // namespace portwave::scenario_file

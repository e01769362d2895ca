#include "scenario/parts/inputs.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenario/parts/fmu_entry.hpp"
#include "scenario/parts/sources.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/reader/text.hpp"

namespace portwave::scenario_file {
namespace {

struct DrivenKeys {
  std::optional<Node> signal;
};

const KeyTable<DrivenKeys>& driven_keys() {
  static const KeyTable<DrivenKeys> keys(
      {kind_key<DrivenKeys>("signal"),
       required_key("signal", "", later(&DrivenKeys::signal, reference("signal_name")))});
  return keys;
}

struct SettableKeys {
  double initial = 0.0;
};

const KeyTable<SettableKeys>& settable_keys() {
  static const KeyTable<SettableKeys> keys(
      {kind_key<SettableKeys>("settable"),
       optional_key("initial", "value until it is set", to(&SettableKeys::initial, form::number()),
                    0)});
  return keys;
}

constexpr std::string_view kSignalsHaveAKind =
    "\nA signal of \"signals\" is given as {\"kind\": \"signal\", \"signal\": its name}";

/// Whether the input is given without an object: by a number, or by an expression.
bool is_short(const Node& node) { return node.json().is_number() || node.json().is_string(); }

struct RateKeys {
  std::optional<Node> of;
};

/// A function of time that may be a displacement, by its kind or as an expression.
Json displacement_schema() {
  std::vector<std::pair<std::string, Json>> variants;
  for (const SourceKind& source : source_kinds()) variants.emplace_back(source.name, source.schema);
  return {{"anyOf", Json::array({text(), by_kind(variants)})}};
}

const KeyTable<RateKeys>& rate_keys() {
  static const KeyTable<RateKeys> keys(
      {kind_key<RateKeys>("rate_of"),
       required_key(
           "of",
           "displacement whose rate the input is: an expression in t [s], or an input of a "
           "kind that is a function of time",
           later(&RateKeys::of, displacement_schema()))});
  return keys;
}

// A displacement that a flow source follows.
std::optional<Signal> read_rate(const Node& node, const std::filesystem::path& folder) {
  RateKeys keys;
  if (!rate_keys().read(node, keys)) return std::nullopt;
  const Node& of = *keys.of;
  try {
    if (of.json().is_string()) {
      const auto displacement = read_short(of);
      return displacement ? std::optional(Signal::rate_of(*displacement)) : std::nullopt;
    }
    std::vector<std::string> kinds;
    for (const SourceKind& source : source_kinds()) kinds.push_back(source.name);
    const auto given = of.json().find("kind");
    if (of.json().is_object() && given != of.json().end() &&
        (*given == "settable" || *given == "signal")) {
      of.fail(
          "what is set between steps is held over each step and has no rate: give a table or an "
          "expression, or drive the flow itself");
      return std::nullopt;
    }
    const auto kind = read_kind(of, kinds);
    if (!kind) return std::nullopt;
    const auto signal = find_source_kind(*kind)->read(of, folder, {});
    if (signal) return Signal::rate_of(*signal);
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) of.fail(issue.what);
  }
  return std::nullopt;
}

// An input that a signal of "signals" drives; what else is wrong with it is told with the signals.
Signal read_driven(const Node& node, const std::string& input, const PartDraft& draft,
                   std::vector<DrivenInput>& driven) {
  DrivenKeys keys;
  if (!driven_keys().read(node, keys)) return Signal::settable();
  const Node& name = *keys.signal;
  if (name.json().is_number()) return Signal::constant(name.number().value_or(0.0));
  if (const auto signal = name.text()) {
    driven.push_back({draft.name, input, *signal, name.where()});
  }
  return Signal::settable();
}

std::optional<Signal> read_input(const Node& node, const std::string& input, const PartDraft& draft,
                                 const std::filesystem::path& folder,
                                 std::vector<DrivenInput>& driven) {
  if (is_short(node)) return read_short(node, kSignalsHaveAKind);
  std::vector<std::string> kinds;
  for (const SourceKind& source : source_kinds()) kinds.push_back(source.name);
  kinds.insert(kinds.end(), {"rate_of", "signal", "settable"});
  const auto kind = read_kind(node, kinds);
  if (!kind) return std::nullopt;
  if (*kind == "rate_of") return read_rate(node, folder);
  if (*kind == "signal") return read_driven(node, input, draft, driven);
  if (*kind != "settable") return find_source_kind(*kind)->read(node, folder, {});
  SettableKeys keys;
  settable_keys().read(node, keys);
  return Signal::settable(keys.initial);
}

// The parameter that a key of "inputs" names, which is no input of the part: a number, or one of a list, as in
// "masses_kg[1]"; null: none.
const ParameterInfo* parameter_named(const PartDraft& draft, const std::string& key) {
  if (draft.type == nullptr) return nullptr;
  if (draft.part != nullptr) {
    const std::vector<ExternalInput>& inputs = draft.part->signature().inputs;
    if (std::ranges::find(inputs, key, &ExternalInput::name) != inputs.end()) return nullptr;
  }
  const bool is_of_list = key.ends_with(']');
  const std::string name = is_of_list ? key.substr(0, key.find('[')) : key;
  const ParameterKind kind = is_of_list ? ParameterKind::numbers : ParameterKind::number;
  for (const ParameterInfo& info : draft.type->parameters) {
    if (info.name == name && info.kind == kind) return &info;
  }
  return nullptr;
}

// A parameter that follows a signal, or a function of time.
void read_driven_parameter(const Node& node, const std::string& key, const ParameterInfo& info,
                           const PartDraft& draft, const std::filesystem::path& folder,
                           SystemDraft& whole) {
  if (node.json().is_object() && node.json().contains("kind") &&
      node.json()["kind"] == "settable") {
    node.fail(
        fmt::format("{} is a parameter, which programs change between steps without more: by "
                    "set_parameter. Here it can follow a signal or a function of time",
                    in_quotes(key)));
    return;
  }
  std::vector<std::string> kinds;
  for (const SourceKind& source : source_kinds()) kinds.push_back(source.name);
  kinds.emplace_back("signal");
  const auto kind = is_short(node) ? std::optional<std::string>("short") : read_kind(node, kinds);
  if (!kind) return;
  DrivenParameter driven{draft.name, key, info.unit, {}, {}, node.where()};
  if (*kind == "short") {
    driven.source = read_short(node, kSignalsHaveAKind);
    if (!driven.source) return;
  } else if (*kind == "signal") {
    DrivenKeys keys;
    if (!driven_keys().read(node, keys)) return;
    driven.where = keys.signal->where();
    if (keys.signal->json().is_number()) {
      driven.source = Signal::constant(keys.signal->number().value_or(0.0));
    } else if (const auto signal = keys.signal->text()) {
      driven.signal = *signal;
    } else {
      return;
    }
  } else {
    driven.source = find_source_kind(*kind)->read(node, folder, {});
    if (!driven.source) return;
  }
  if (draft.part == nullptr) return;  // its defects are told
  try {
    static_cast<void>(whole.recipes->value(*draft.part, key));
  } catch (const std::exception& error) {
    node.fail(error.what());
    return;
  }
  whole.driven_parameters.push_back(std::move(driven));
}

}  // namespace

void read_inputs(const Node& node, PartDraft& draft, const std::filesystem::path& folder,
                 SystemDraft& whole) {
  if (!node.is_object("an object of inputs")) return;
  std::vector<DrivenInput>& driven = whole.driven_inputs;
  for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
    const Node member = node.member(key, value);
    if (const ParameterInfo* const info = parameter_named(draft, key)) {
      read_driven_parameter(member, key, *info, draft, folder, whole);
      continue;
    }
    const std::string name = draft.is_fmu ? input_of_fmu(key) : key;
    // An input that cannot be read still has its name checked.
    draft.options.inputs.insert_or_assign(
        name, read_input(member, name, draft, folder, driven).value_or(Signal{}));
  }
}

Json input_schema() {
  std::vector<std::pair<std::string, Json>> variants;
  for (const SourceKind& source : source_kinds()) variants.emplace_back(source.name, source.schema);
  variants.emplace_back("rate_of", rate_keys().schema());
  variants.emplace_back("signal", driven_keys().schema());
  variants.emplace_back("settable", settable_keys().schema());
  const Json forms = Json::array({number(), text(), by_kind(variants)});
  return described({{"anyOf", forms}},
                   "external input u(t): a number; an expression in t [s]; or by its kind: "
                   "constant; offset + amplitude times the product of sines; "
                   "linear between the knots of a table; chirp; noise; an expression in t; the "
                   "rate of such a function; a signal of \"signals\", held "
                   "over each step; or set by the program that steps");
}

}  // namespace portwave::scenario_file

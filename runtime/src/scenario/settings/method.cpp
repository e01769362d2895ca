#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/method/method_table.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "scenario/settings/method_keys.hpp"
#include "scenario/settings/settings.hpp"

namespace portwave::scenario_file {
namespace {

bool contains(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// The keys of "method" that a kind has, "kind" first.
std::vector<std::string> keys_of(MethodKind kind) {
  std::vector<std::string> keys = {"kind"};
  for (const OptionInfo& option : family_of(kind).options) {
    if (option.is_for(kind)) keys.emplace_back(option.key);
  }
  return keys;
}

/// Of all kinds, each once.
std::vector<std::string> all_keys() {
  std::vector<std::string> all = {"kind"};
  for (const MethodFamily* const family : method_families()) {
    for (const OptionInfo& option : family->options) {
      if (!contains(all, option.key)) all.emplace_back(option.key);
    }
  }
  return all;
}

/// Where a key belongs: "wave coupling", or the kinds that have it; "" when none has.
std::string owners_of(std::string_view key) {
  std::string waves;
  std::vector<std::string> kinds;
  for (const MethodInfo& method : all_methods()) {
    if (!contains(keys_of(method.kind), key)) continue;
    if (method.kind.couples_by_waves()) {
      waves = family_of(method.kind).title;
    } else {
      kinds.emplace_back(method.name);
    }
  }
  return waves + (waves.empty() || kinds.empty() ? "" : " and ") + list_of(kinds);
}

/// How to write the whole method: its kind and the options that it cannot do without.
std::string shortest_method(MethodKind kind) {
  std::string text = fmt::format("\"kind\":\"{}\"", to_string(kind));
  for (const OptionInfo& option : family_of(kind).options) {
    if (!option.is_required_by(kind)) continue;
    text += fmt::format(",\"{}\":{}", option.key, special_option(option.key).example);
  }
  return "{" + text + "}";
}

std::string foreign_key(MethodKind kind, const std::string& owners, bool is_first) {
  const bool by_waves = kind.couples_by_waves();
  std::string text =
      fmt::format("is no key of the method \"{}\", which couples {}: it belongs to {}",
                  to_string(kind), by_waves ? "by waves" : "without waves", owners);
  if (!is_first) return text;
  text += fmt::format(".\nkeys: {}", list_of(keys_of(kind)));
  if (by_waves) return text;
  return text +
         fmt::format(".\nTo replace the whole method: --set '/method={}'", shortest_method(kind));
}

/// Notes every key of "method" that its kind has not, and those that no kind has. Without a kind it
/// cannot be told, so that only the latter are wrong.
void check_keys(const Node& node, std::optional<MethodKind> kind) {
  bool is_first = true;
  for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
    if (kind && contains(keys_of(*kind), key)) continue;
    const Node member = node.member(key, value);
    const std::string owners = owners_of(key);
    if (owners.empty()) {
      const auto known = kind ? keys_of(*kind) : all_keys();
      member.fail(fmt::format("unknown key {}.\nkeys: {}.{}", in_quotes(key), list_of(known),
                              did_you_mean(key, known)));
    } else if (kind) {
      member.fail(foreign_key(*kind, owners, std::exchange(is_first, false)));
    }
  }
}

/// Nothing when it cannot be told. Impedances belong to a method that is not chosen.
std::optional<MethodKind> kind_in(const ObjectReader& object) {
  const auto kind = object.find("kind");
  if (!kind) {
    return MethodKind(object.find("impedance") ? WaveUpdate::douglas_rachford
                                               : WaveUpdate::automatic);
  }
  const auto name = kind->choice(method_names());
  return name ? find_method_kind(*name) : std::nullopt;
}

/// An energy tolerance alone takes the place of the tolerance that some kinds have of their own.
void prefer_energy_tolerance(const ObjectReader& object, CouplingMethod& method) {
  auto* const waves = method.as<WaveCoupling>();
  if (waves == nullptr || object.find("tolerance") || !object.find("energy_tolerance_J")) return;
  waves->tolerance = 0.0;
}

}  // namespace

void read_method(const Node& node, CouplingMethod& method) {
  if (!node.is_object(R"(an object such as {"kind": "auto"})")) return;
  const ObjectReader object(node);
  const std::optional<MethodKind> known = kind_in(object);
  check_keys(node, known);
  const MethodKind kind = known.value_or(WaveUpdate::douglas_rachford);
  method = CouplingMethod::of_kind(kind);
  const MethodFamily& family = family_of(kind);
  for (std::size_t i = 0; i < family.options.size(); ++i) {
    const OptionInfo& option = family.options[i];
    if (!option.is_for(kind)) continue;
    const bool is_required = known && option.is_required_by(kind);
    const auto value = is_required ? object.require(option.key) : object.find(option.key);
    if (!value) continue;
    if (const std::string_view why = option.refusal_by(kind); !why.empty()) {
      value->fail(std::string(why));
    } else {
      option_keys(family)[i].value.read(*value, method);
    }
  }
  prefer_energy_tolerance(object, method);
  for (Issue& issue : check_method(method)) {
    if (node.defects().has(issue.where)) continue;
    node.defects().add(std::move(issue.where), std::move(issue.what));
  }
}

void prefer_what_suits_steps(const Json& method, StepperOptions& options) {
  if (!options.method.couples_by_waves() || !method.is_object()) return;
  WaveCoupling& waves = options.method.waves();
  const auto says = [&](const char* key) { return method.contains(key); };
  if (options.sizes) {
    if (!says("stages")) waves.stages = 0;
    return;
  }
  const bool is_chosen =
      waves.kind == WaveUpdate::automatic && !says("tolerance") && !says("energy_tolerance_J");
  if (is_chosen && waves.stages >= 1 && waves.stages <= kMostStages) {
    waves.tolerance = WaveCoupling::automatic_with_stages(waves.stages).tolerance;
  }
}

void read_method_names(const Node& node, Names& names, CouplingMethod& method) {
  const ObjectReader object(node);
  for (const OptionInfo& option : family_of(method.kind()).options) {
    if (!std::holds_alternative<SpecialOption>(option.value) || !option.is_for(method.kind())) {
      continue;
    }
    if (const auto value = object.find(option.key)) {
      special_option(option.key).read_names(*value, names, method);
    }
  }
}

}  // namespace portwave::scenario_file

#include "scenario/scenario_network_method.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "execution/method_rules.hpp"
#include "scenario/scenario_limits.hpp"
#include "scenario/scenario_text.hpp"

namespace portwave::scenario_file {
namespace {

using Keys = std::vector<std::string_view>;

constexpr std::array kMethodKinds = {MethodKind::douglas_rachford, MethodKind::peaceman_rachford,
                                     MethodKind::interface,        MethodKind::automatic,
                                     MethodKind::strang,           MethodKind::impulse,
                                     MethodKind::lions_mercier,    MethodKind::jacobi,
                                     MethodKind::gauss_seidel};
constexpr std::array kFlows = {CouplingFlow::automatic, CouplingFlow::scalar,
                               CouplingFlow::low_rank};
constexpr std::array kIntegrators = {Integrator::automatic, Integrator::midpoint,
                                     Integrator::radau_iia};
constexpr std::array kMetrics = {IterationMetric::automatic, IterationMetric::identity,
                                 IterationMetric::energy};

bool contains(const Keys& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::vector<std::string> strings(const Keys& keys) { return {keys.begin(), keys.end()}; }

/// Of all kinds, each once.
std::vector<std::string> all_keys() {
  std::vector<std::string> all;
  for (const MethodKind kind : kMethodKinds) {
    for (const std::string_view key : method_keys(kind)) {
      if (std::find(all.begin(), all.end(), key) == all.end()) all.emplace_back(key);
    }
  }
  return all;
}

/// Where a key belongs: "wave coupling", or the kinds that have it; "" when none has.
std::string owners_of(std::string_view key) {
  std::vector<std::string> kinds;
  for (const MethodKind kind : kMethodKinds) {
    if (!contains(method_keys(kind), key)) continue;
    if (!is_wave_method(kind)) {
      kinds.emplace_back(to_string(kind));
    } else if (kinds.empty()) {
      kinds.emplace_back();
    }
  }
  const bool waves = !kinds.empty() && kinds.front().empty();
  if (waves) kinds.erase(kinds.begin());
  std::string text = waves ? "wave coupling" : "";
  if (waves && !kinds.empty()) text += " and ";
  return text + list_of(kinds);
}

std::string foreign_key(MethodKind kind, const std::string& owners, bool is_first) {
  const std::string_view name = to_string(kind);
  std::string text =
      fmt::format("is no key of the method \"{}\", which couples {}: it belongs to {}", name,
                  is_wave_method(kind) ? "by waves" : "without waves", owners);
  if (!is_first) return text;
  text += fmt::format(".\nkeys: {}", list_of(strings(method_keys(kind))));
  if (is_wave_method(kind)) return text;
  const std::string_view fast = kind == MethodKind::impulse ? ",\"fast\":[\"...\"]" : "";
  return text + fmt::format(".\nTo replace the whole method: --set '/method={{\"kind\":\"{}\"{}}}'",
                            name, fast);
}

template <typename Value, std::size_t size>
std::vector<std::string> method_words(const std::array<Value, size>& values) {
  std::vector<std::string> names;
  names.reserve(size);
  for (const Value value : values) names.emplace_back(to_string(value));
  return names;
}

template <typename Value, std::size_t size>
void read_choice(const ObjectReader& object, std::string_view key,
                 const std::array<Value, size>& values, Value& value) {
  const auto node = object.find(key);
  const auto name = node ? node->choice(method_words(values)) : std::nullopt;
  for (const Value each : values) {
    if (name && to_string(each) == *name) value = each;
  }
}

void read_count(const ObjectReader& object, std::string_view key, int& value) {
  const auto node = object.find(key);
  if (!node) return;
  value = static_cast<int>(node->integer(1, method_rules::kMostSteps).value_or(value));
}

/// A number, or a word for none; nothing when it is neither.
std::optional<double> number_or(const Node& node, std::string_view word, double value_of_word,
                                const NumberRange& range) {
  const Json& json = node.json();
  if (json.is_string() && json.get_ref<const std::string&>() == word) return value_of_word;
  if (json.is_number() && range.contains(json.get<double>())) return json.get<double>();
  node.fail_expected(fmt::format("\"{}\" or {}", word, range.describe()));
  return std::nullopt;
}

/// "auto" is left to the method.
void read_chosen(const ObjectReader& object, std::string_view key, const NumberRange& range,
                 std::optional<double>& value) {
  constexpr double kAuto = std::numeric_limits<double>::infinity();  // no number in JSON
  const auto node = object.find(key);
  const auto number = node ? number_or(*node, "auto", kAuto, range) : std::nullopt;
  if (number && *number != kAuto) value = number;
}

void read_splitting(const ObjectReader& object, CouplingMethod& method) {
  SplittingOptions& splitting = method.splitting;
  if (method.kind == MethodKind::strang) {
    read_choice(object, "coupling_flow", kFlows, splitting.coupling_flow);
    const auto split = object.find("split_dissipation");
    if (split) splitting.split_dissipation = split->boolean().value_or(false);
    return;
  }
  read_count(object, "factor", splitting.factor);
  const auto fast = object.require("fast");
  if (!fast || !fast->is_array("an array of names of subsystems")) return;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < fast->size(); ++i) {
    const Node element = fast->at(i);
    const auto name = element.text();
    if (!name) continue;
    if (!seen.insert(*name).second)
      element.fail(fmt::format("{} is there already", in_quotes(*name)));
    splitting.fast.push_back(*name);
  }
}

void read_dynamic(const ObjectReader& object, CouplingMethod& method) {
  DynamicIterationOptions& dynamic = method.dynamic;
  if (const auto tolerance = object.find("tolerance")) {
    method.tolerance = tolerance->number(method_rules::tolerance()).value_or(0.0);
  }
  read_count(object, "window_steps", dynamic.window_steps);
  read_choice(object, "integrator", kIntegrators, dynamic.integrator);
  if (method.kind != MethodKind::lions_mercier) {
    const auto limit = object.find("divergence_limit");
    const auto number = limit ? number_or(*limit, "none", std::numeric_limits<double>::infinity(),
                                          method_rules::divergence_limit())
                              : std::nullopt;
    dynamic.divergence_limit = number.value_or(dynamic.divergence_limit);
    return;
  }
  read_chosen(object, "lambda", method_rules::lambda(), dynamic.lambda);
  read_chosen(object, "mu", method_rules::mu(), dynamic.mu);
  read_chosen(object, "omega", method_rules::omega(), dynamic.omega);
  if (const auto alpha = object.find("alpha")) {
    dynamic.alpha = alpha->number(method_rules::alpha()).value_or(dynamic.alpha);
  }
  read_choice(object, "metric", kMetrics, dynamic.metric);
}

}  // namespace

const Keys& method_keys(MethodKind kind) {
  static const Keys waves = {"kind",
                             "iterations",
                             "tolerance",
                             "energy_tolerance_J",
                             "tolerance_per_part",
                             "relaxation",
                             "acceleration",
                             "impedance",
                             "guard",
                             "tank",
                             "initial_waves"};
  static const Keys strang = {"kind", "coupling_flow", "split_dissipation"};
  static const Keys impulse = {"kind", "fast", "factor"};
  static const Keys lions_mercier = {"kind",  "iterations", "tolerance",    "lambda",     "mu",
                                     "omega", "alpha",      "window_steps", "integrator", "metric"};
  static const Keys relaxation = {"kind",         "iterations", "tolerance",
                                  "window_steps", "integrator", "divergence_limit"};
  switch (kind) {
    case MethodKind::strang:
      return strang;
    case MethodKind::impulse:
      return impulse;
    case MethodKind::lions_mercier:
      return lions_mercier;
    case MethodKind::jacobi:
    case MethodKind::gauss_seidel:
      return relaxation;
    default:
      return waves;
  }
}

void check_method_keys(const Node& node, const MethodKind* kind) {
  bool is_first = true;
  for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
    if (kind != nullptr && contains(method_keys(*kind), key)) continue;
    const Node member = node.member(key, value);
    const std::string owners = owners_of(key);
    if (owners.empty()) {
      const auto known = kind != nullptr ? strings(method_keys(*kind)) : all_keys();
      member.fail(fmt::format("unknown key {}.\nkeys: {}.{}", in_quotes(key), list_of(known),
                              did_you_mean(key, known)));
    } else if (kind != nullptr) {
      member.fail(foreign_key(*kind, owners, std::exchange(is_first, false)));
    }
  }
}

void read_network_method(const ObjectReader& object, CouplingMethod& method) {
  if (is_splitting(method.kind)) return read_splitting(object, method);
  read_dynamic(object, method);
}

void read_fast(const ObjectReader& object, Names& names) {
  const auto fast = object.find("fast");
  if (!fast || !fast->json().is_array()) return;
  for (std::size_t i = 0; i < fast->size(); ++i) {
    const Node element = fast->at(i);
    if (!element.json().is_string()) continue;
    const auto& name = element.json().get_ref<const std::string&>();
    if (element.defects().is_full()) return;
    if (names.is_missing(name) || element.defects().has(element.where())) continue;
    if (names.system().find_part(name) >= 0) continue;
    element.fail(method_rules::fast_defect(name, names.parts()));
  }
}

const std::vector<std::string>& coupling_flows() {
  static const std::vector<std::string> names = method_words(kFlows);
  return names;
}
const std::vector<std::string>& integrators() {
  static const std::vector<std::string> names = method_words(kIntegrators);
  return names;
}
const std::vector<std::string>& iteration_metrics() {
  static const std::vector<std::string> names = method_words(kMetrics);
  return names;
}

}  // namespace portwave::scenario_file

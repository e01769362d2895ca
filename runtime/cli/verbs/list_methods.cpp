// portwave list --methods

#include <cmath>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/coupling/method/method_table.hpp>
#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "line/commands.hpp"
#include "verbs/columns.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The values of an option, in words and as JSON; the default is that of `method`.
struct OptionFacts {
  std::string_view kind;
  Json default_value = nullptr;
  std::string range = "";
  std::vector<std::string_view> choices = {};
};

std::string range_text(const OptionInfo& option, const CouplingMethod& method) {
  const auto dependent = option.range_of != nullptr ? option.range_of(method) : std::nullopt;
  const NumberRange& range = dependent ? dependent->range : option.range;
  std::string text = range.describe().substr(std::string_view("a number").size());
  if (text.starts_with(' ')) text.erase(0, 1);
  return option.word.empty() ? text : fmt::format("{} or {}", option.word, text);
}

class FactsOf {
 public:
  FactsOf(const OptionInfo& option, const CouplingMethod& method)
      : option_(option), method_(method) {}

  OptionFacts operator()(const OptionField<int>& place) const {
    return {.kind = "integer",
            .default_value = place.of(method_),
            .range = range_text(option_, method_)};
  }
  OptionFacts operator()(const OptionField<double>& place) const {
    const double value = place.of(method_);
    return {.kind = "number",
            .default_value = std::isfinite(value) ? Json(value) : Json(nullptr),
            .range = range_text(option_, method_)};
  }
  OptionFacts operator()(const OptionField<std::optional<double>>&) const {
    return {.kind = "number",
            .default_value = option_.word.empty() ? Json(nullptr) : Json(std::string(option_.word)),
            .range = range_text(option_, method_)};
  }
  OptionFacts operator()(const OptionField<bool>& place) const {
    return {.kind = "boolean", .default_value = place.of(method_)};
  }
  OptionFacts operator()(const OptionChoice& choice) const {
    const auto own = choice.names[static_cast<std::size_t>(choice.get(method_))];
    return {.kind = "choice",
            .default_value = std::string(own),
            .range = fmt::format("{}", fmt::join(choice.names, "|")),
            .choices = {choice.names.begin(), choice.names.end()}};
  }
  OptionFacts operator()(const OptionGroup&) const { return {.kind = "object"}; }
  OptionFacts operator()(const SpecialOption&) const { return {.kind = "see the reference"}; }

 private:
  const OptionInfo& option_;
  const CouplingMethod& method_;
};

/// Calls `visit` with each option that a kind takes, its path "tank.cap_J" and its facts.
template <typename Visit>
void each_option(std::span<const OptionInfo> options, const std::string& prefix, MethodKind kind,
                 const Visit& visit) {
  const CouplingMethod defaults = CouplingMethod::of_kind(kind);
  for (const OptionInfo& option : options) {
    if (!option.is_for(kind) || !option.refusal_by(kind).empty()) continue;
    const std::string path = prefix + std::string(option.key);
    visit(option, path, std::visit(FactsOf(option, defaults), option.value));
    if (const auto* const group = std::get_if<OptionGroup>(&option.value)) {
      each_option(group->options(), path + ".", kind, visit);
    }
  }
}

Json method_json(const MethodInfo& method) {
  const MethodFamily& family = family_of(method.kind);
  Json options = Json::array();
  each_option(family.options, "", method.kind,
              [&](const OptionInfo& option, const std::string& path, const OptionFacts& facts) {
                Json json = {{"name", path},
                             {"kind", std::string(facts.kind)},
                             {"unit", std::string(option.unit)},
                             {"summary", std::string(option.summary) + std::string(option.note)},
                             {"required", option.is_required_by(method.kind)},
                             {"default", facts.default_value},
                             {"range", facts.range}};
                if (!facts.choices.empty()) json["choices"] = facts.choices;
                options.push_back(std::move(json));
              });
  return {{"method", std::string(method.name)},
          {"family", std::string(family.title)},
          {"waves", family.couples_by_waves},
          {"summary", std::string(method.summary)},
          {"options", std::move(options)}};
}

std::string default_text(const OptionInfo& option, MethodKind kind, const Json& value) {
  if (option.is_required_by(kind)) return "required";
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:g}", value.get<double>()) : value.dump();
}

std::string method_text(const MethodInfo& method) {
  std::vector<std::vector<std::string>> rows = {
      {"key", "unit", "kind", "default", "range", "meaning"}};
  each_option(family_of(method.kind).options, "", method.kind,
              [&](const OptionInfo& option, const std::string& path, const OptionFacts& facts) {
                rows.push_back({path, option.unit.empty() ? "-" : std::string(option.unit),
                                std::string(facts.kind),
                                default_text(option, method.kind, facts.default_value),
                                facts.range.empty() ? "-" : facts.range,
                                std::string(option.summary) + std::string(option.note)});
              });
  return fmt::format("{}: {}\n", method.name, method.summary) +
         section("keys of \"method\", beside \"kind\"", rows);
}

std::string methods_text() {
  std::vector<std::vector<std::string>> rows;
  for (const MethodInfo& method : all_methods()) {
    rows.push_back({std::string(method.name), std::string(family_of(method.kind).title),
                    std::string(method.summary)});
  }
  return aligned(rows);
}

const MethodInfo& known_method(const std::string& name) {
  if (const auto kind = find_method_kind(name)) return *family_of(*kind).find(*kind);
  throw ConfigError(
      "", fmt::format("there is no method {}.\n  methods: {}.{}", in_quotes(name),
                      fmt::join(method_names(), ", "), did_you_mean(name, method_names())));
}

}  // namespace

int list_methods(const ListArguments& arguments, std::ostream& out, std::ostream& err) {
  if (arguments.type) {
    const MethodInfo& method = known_method(*arguments.type);
    out << (arguments.json ? method_json(method).dump(2) + "\n" : method_text(method));
    return kOk;
  }
  if (arguments.json) {
    Json methods = Json::array();
    for (const MethodInfo& method : all_methods()) methods.push_back(method_json(method));
    out << methods.dump(2) << '\n';
    return kOk;
  }
  out << methods_text();
  err << "\"portwave list --methods METHOD\" shows the keys of one.\n";
  return kOk;
}

}  // namespace portwave::cli

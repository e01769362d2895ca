#include "scenario/reader/node.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/few_of.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/reader/text.hpp"

namespace portwave::scenario_file {
namespace {

// The integer that a JSON number is: 20, 20.0 and 2e1 are all the integer 20.
std::optional<std::int64_t> exact_integer(const Json& value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(std::min(number, kMost));
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (number != std::floor(number)) return std::nullopt;
  if (std::abs(number) <= kExact) return static_cast<std::int64_t>(number);
  return number > 0.0 ? std::numeric_limits<std::int64_t>::max()
                      : std::numeric_limits<std::int64_t>::min();
}

}  // namespace

const Json* member_of(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json* member_of(Json& object, std::string_view key) {
  return const_cast<Json*>(member_of(std::as_const(object), key));
}

Defects::Defects(const Document& document) : settled_(document.settled), issues_(document.issues) {
  for (const Issue& issue : issues_) places_.insert(issue.where);
}

bool Defects::has_within(const std::string& where) const {
  if (has(where)) return true;
  const auto inside = places_.lower_bound(where + '/');
  return inside != places_.end() && inside->starts_with(where + '/');
}

void Defects::add(std::string where, std::string what) {
  if (settled_.contains(where) || overflowed_) return;
  if (place_) {
    const std::string own = where;
    places_.insert(own);
    std::optional<Issue> placed = place_({std::move(where), std::move(what)});
    if (!placed || settled_.contains(placed->where) || is_told(placed->where)) return;
    where = std::move(placed->where);
    what = std::move(placed->what);
  }
  if (issues_.size() >= scenario_limits::kDefects) {
    overflowed_ = true;
    issues_.push_back({"", "there are more errors than can be listed"});
    return;
  }
  if (!place_) places_.insert(where);
  issues_.push_back({std::move(where), std::move(what)});
}

void Defects::add(const Issues& issues) {
  for (const Issue& issue : issues) add(issue.where, issue.what);
}

void Defects::place_by(std::function<std::optional<Issue>(Issue)> place) {
  place_ = std::move(place);
  told_ = std::exchange(places_, {});
}

bool Defects::is_told(const std::string& where) const {
  const auto inside = told_.lower_bound(where + '/');
  if (inside != told_.end() && inside->starts_with(where + '/')) return true;
  for (std::string around = where; !around.empty(); around.resize(around.rfind('/'))) {
    if (told_.contains(around)) return true;
  }
  return false;
}

Issues Defects::take() { return std::exchange(issues_, {}); }

std::string describe(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return fmt::format("an array of {}", value.size());
    case Json::value_t::string:
      return fmt::format("the string {}", in_quotes(value.get_ref<const std::string&>()));
    case Json::value_t::number_float:
      return fmt::format("{}", value.get<double>());
    default:
      return value.dump();
  }
}

std::string list_of(const std::vector<std::string>& names) { return few_of(names, names.size()); }

std::string Node::where() const {
  if (parent_ == nullptr) return {};
  const bool in_array = parent_->json().is_array();
  return parent_->where() + '/' + (in_array ? std::to_string(index_) : escape_key(key_));
}

void Node::fail_expected(std::string_view expected) const {
  fail(fmt::format("must be {}, got {}", expected, describe(*value_)));
}

std::optional<double> Node::number(const NumberRange& range) const {
  if (value_->is_number()) {
    const auto value = value_->get<double>();
    if (range.contains(value)) return value;
  }
  fail_expected(range.describe());
  return std::nullopt;
}

std::optional<std::int64_t> Node::integer(std::int64_t minimum, std::int64_t maximum) const {
  const std::optional<std::int64_t> value = exact_integer(*value_);
  if (value && *value >= minimum && *value <= maximum) return value;
  fail_expected(fmt::format("an integer from {} to {}", minimum, maximum));
  return std::nullopt;
}

std::optional<bool> Node::boolean() const {
  if (value_->is_boolean()) return value_->get<bool>();
  fail_expected("true or false");
  return std::nullopt;
}

std::optional<std::string> Node::text() const {
  if (value_->is_string()) return value_->get<std::string>();
  fail_expected("a string");
  return std::nullopt;
}

std::optional<std::string> Node::choice(const std::vector<std::string>& choices) const {
  std::string hint;
  if (value_->is_string()) {
    const auto& word = value_->get_ref<const std::string&>();
    if (std::find(choices.begin(), choices.end(), word) != choices.end()) return word;
    hint = did_you_mean(word, choices);
  }
  fail(fmt::format("must be one of {}; got {}.{}", list_of(choices), describe(*value_), hint));
  return std::nullopt;
}

bool Node::is_array(std::string_view expected) const {
  if (value_->is_array()) return true;
  fail_expected(expected);
  return false;
}

bool Node::is_object(std::string_view expected) const {
  if (value_->is_object()) return true;
  fail_expected(expected);
  return false;
}

ObjectReader::ObjectReader(const Node& node, Keys keys) : node_(node) {
  if (!node.is_object("an object")) return;
  for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
    if (node.defects().is_full()) return;
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const std::vector<std::string> known(keys.begin(), keys.end());
    node.member(key, value)
        .fail(fmt::format("unknown key {}.\nkeys: {}.{}", in_quotes(key), list_of(known),
                          did_you_mean(key, known)));
  }
}

std::optional<Node> ObjectReader::find(std::string_view key) const {
  const Json* const value = member_of(node_.json(), key);
  if (value == nullptr) return std::nullopt;
  return node_.member(key, *value);
}

std::optional<Node> ObjectReader::require(std::string_view key) const {
  std::optional<Node> found = find(key);
  if (!found && is_object()) {
    node_.defects().add(node_.where() + '/' + escape_key(key), "is required");
  }
  return found;
}

std::optional<std::string> read_kind(const Node& node, const std::vector<std::string>& kinds) {
  if (!node.json().is_object()) {
    node.fail_expected(fmt::format("an object with the key \"kind\", one of {}", list_of(kinds)));
    return std::nullopt;
  }
  const Json* const kind = member_of(node.json(), "kind");
  if (kind == nullptr) {
    node.defects().add(node.where() + "/kind",
                       fmt::format("is required: one of {}", list_of(kinds)));
    return std::nullopt;
  }
  return node.member("kind", *kind).choice(kinds);
}

}  // namespace portwave::scenario_file

#include "scenario/templates/template_filler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/templates/assemblies.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::size_t kMostText = 10'000;  // characters of a text that is made
constexpr std::size_t kCharactersOfValue = TemplateFiller::kCharactersOfValue;

/// 3 rather than 3.0, so that integers may be computed.
Json number_json(double value) {
  const bool is_whole = std::trunc(value) == value && std::abs(value) < 9e15;
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

/// The text of {"<key>": "text"}, an object of one member.
const std::string* only_text(const Json& value, std::string_view key) {
  if (!value.is_object() || value.size() != 1) return nullptr;
  const auto& [name, member] = *value.get_ref<const Json::object_t&>().begin();
  return name == key && member.is_string() ? &member.get_ref<const std::string&>() : nullptr;
}

std::size_t weight_of(std::size_t characters) { return 1 + characters / kCharactersOfValue; }

std::size_t weight_of(const Json& value) {
  std::size_t weight = 1;
  if (value.is_string()) {
    weight = weight_of(value.get_ref<const std::string&>().size());
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
      weight += key.size() / kCharactersOfValue + weight_of(member);
    }
  } else if (value.is_array()) {
    for (const Json& each : value) weight += weight_of(each);
  }
  return weight;
}

template <class Predicate>
bool any_value(const Json& value, const Predicate& predicate) {
  if (predicate(value)) return true;
  if (value.is_object()) {
    return std::ranges::any_of(value.get_ref<const Json::object_t&>(), [&](const auto& member) {
      return any_value(member.second, predicate);
    });
  }
  return value.is_array() &&
         std::ranges::any_of(value, [&](const Json& each) { return any_value(each, predicate); });
}

}  // namespace

Scope Scope::of_assembly() {
  Scope scope;
  scope.is_template_ = true;
  return scope;
}

Scope Scope::of_index(const Scope& outer, std::string_view name, const Json& value) {
  Scope scope = of_assembly();
  scope.outer_ = &outer;
  scope.add(name, value);
  return scope;
}

const Json* Scope::find(std::string_view name) const {
  const auto found = std::ranges::find(variables_, name, &Variable::name);
  if (found != variables_.end()) return found->value;
  return outer_ == nullptr ? nullptr : outer_->find(name);
}

std::vector<std::string> Scope::names() const {
  std::vector<std::string> all;
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    for (const Variable& variable : scope->variables_) all.emplace_back(variable.name);
  }
  return all;
}

bool Scope::has_names(std::span<const std::string> names) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    const std::size_t count = scope->variables_.size();
    if (names.size() < count ||
        !std::ranges::equal(scope->variables_, names.first(count), {}, &Variable::name)) {
      return false;
    }
    names = names.subspan(count);
  }
  return names.empty();
}

const Json& Scope::value(std::size_t number) const {
  const Scope* scope = this;
  for (; number >= scope->variables_.size(); scope = scope->outer_) {
    number -= scope->variables_.size();
  }
  return *scope->variables_[number].value;
}

std::string with_use(std::string what, const std::string& use) {
  if (use.empty()) return what;
  const std::size_t line = std::min({what.find('\n'), what.find(" Did you mean "), what.size()});
  const bool has_stop = line > 0 && what[line - 1] == '.';
  return what.insert(line - (has_stop ? 1 : 0), fmt::format(" (in {})", in_quotes(use)));
}

bool TemplateFiller::has_expression(const Json& value) {
  return any_value(value, [](const Json& each) {
    return only_text(each, "expression") != nullptr || only_text(each, "parameter") != nullptr;
  });
}

bool TemplateFiller::is_computed(const Json& value) {
  return any_value(value, [](const Json& each) {
    return only_text(each, "expression") != nullptr || only_text(each, "parameter") != nullptr ||
           (each.is_string() && each.get_ref<const std::string&>().find('{') != std::string::npos);
  });
}

void TemplateFiller::fail(const std::string& where, const std::string& what) {
  if (!defects_.has(where)) defects_.add(where, with_use(what, use_));
}

bool TemplateFiller::charge(const Node& node, std::size_t values) {
  const bool was_exhausted = is_exhausted();
  spent_ += std::min(values, kMostValues + 1);
  if (is_exhausted() && !was_exhausted) give_up(node.where());
  return !is_exhausted();
}

void TemplateFiller::give_up(const std::string& where) {
  spent_ = kMostValues + 1;
  fail(where, fmt::format("with this the scenario has more than {} values", kMostValues));
}

Json TemplateFiller::fill(const Node& node, const Scope& scope, bool is_formula) {
  const Json& value = node.json();
  if (!charge(node, 1)) return nullptr;
  if (const std::string* const name = only_text(value, "parameter")) {
    return named(node, *name, scope);
  }
  if (const std::string* const text = only_text(value, "expression")) {
    return number_json(computed(node, *text, scope).value_or(1.0));
  }
  if (value.is_object()) {
    Json out = Json::object();
    auto& members = out.get_ref<Json::object_t&>();
    members.reserve(value.size());
    for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
      if (!charge(node, key.size() / kCharactersOfValue)) return nullptr;
      const Node child = node.member(key, member);
      members.emplace_back(key, fill(child, scope, key == "expression"));
    }
    return out;
  }
  if (value.is_array()) {
    Json out = Json::array();
    out.get_ref<Json::array_t&>().reserve(value.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      const Node child = node.at(i);
      out.push_back(fill(child, scope, false));
    }
    return out;
  }
  return value.is_string() ? filled_text(node, scope, is_formula) : value;
}

Json TemplateFiller::named(const Node& node, const std::string& name, const Scope& scope) {
  if (const Json* const found = scope.find(name)) {
    return charge(node, weight_of(*found)) ? *found : Json();
  }
  const std::vector<std::string> known = scope.names();
  fail(node, known.empty()
                 ? fmt::format("there is no parameter {}: parameters are those of "
                               "assemblies, and indices",
                               in_quotes(name))
                 : fmt::format("there is no parameter {}.\nparameters: {}.{}", in_quotes(name),
                               list_of(known), did_you_mean(name, known)));
  return 1;
}

const TemplateFiller::Compiled& TemplateFiller::compiled(const Node& node, std::string_view text,
                                                         const Scope& scope) {
  const auto [found, is_new] = compiled_.try_emplace(text.data());
  Compiled& own = found->second;
  // One with a defect, which was told, need not be compared: it may be long, and stand for many.
  const bool is_known_defect = !is_new && !own.expression && own.text.size() == text.size();
  // Another text may stand where one stood that was made and is gone.
  if (is_known_defect || (!is_new && own.text == text && scope.has_names(own.names))) return own;
  own = {std::string(text), scope.names(), std::nullopt, {}};
  try {
    own.expression = Expression::parse(text, own.names);
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) fail(node, issue.what);
    return own;
  }
  for (std::size_t i = 0; i < own.names.size(); ++i) {
    if (own.expression->uses(static_cast<int>(i))) own.used.push_back(i);
  }
  return own;
}

std::optional<double> TemplateFiller::computed(const Node& node, std::string_view text,
                                               const Scope& scope) {
  const Compiled& own = compiled(node, text, scope);
  if (!own.expression) return std::nullopt;
  values_.assign(own.names.size(), 0.0);
  for (const std::size_t number : own.used) {
    const Json& given = scope.value(number);
    if (!given.is_number()) {
      fail(node, fmt::format("in the expression {}: {} is no number but {}", in_quotes(text),
                             in_quotes(own.names[number]), describe(given)));
      return std::nullopt;
    }
    values_[number] = given.get<double>();
  }
  const double value = (*own.expression)(values_);
  if (std::isfinite(value)) return value;
  fail(node, fmt::format("the expression {} is {}", in_quotes(text), value));
  return std::nullopt;
}

/// What stands for "{inner}": a text, or a number that is whole unless it is for a formula.
std::optional<std::string> TemplateFiller::word_of(const Node& node, std::string_view inner,
                                                   const Scope& scope, bool is_formula) {
  if (const Json* const word = scope.find(inner); word != nullptr && word->is_string()) {
    return word->get<std::string>();
  }
  const std::optional<double> value = computed(node, inner, scope);
  if (!value) return std::nullopt;
  const Json number = number_json(*value);
  if (is_formula) return *value < 0.0 ? fmt::format("({})", *value) : fmt::format("{}", *value);
  if (number.is_number_integer()) return number.dump();
  fail(node, fmt::format("{} in a text must be a whole number, got {}",
                         in_quotes(fmt::format("{{{}}}", inner)), *value));
  return std::nullopt;
}

/// "line_{i+1}" with i = 3 as "line_4".
Json TemplateFiller::filled_text(const Node& node, const Scope& scope, bool is_formula) {
  const auto& text = node.json().get_ref<const std::string&>();
  if (!charge(node, text.size() / kCharactersOfValue)) return nullptr;
  if (!scope.is_template() || text.find('{') == std::string::npos) return text;
  const std::string_view whole = text;
  std::string out;
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t open = std::min(whole.find('{', at), whole.size());
    out += whole.substr(at, open - at);
    if (open == whole.size()) break;
    const std::size_t close = whole.find('}', open);
    if (close == std::string_view::npos) {
      fail(node, fmt::format("\"{{\" without \"}}\" in {}", in_quotes(text)));
      return text;
    }
    const auto word = word_of(node, whole.substr(open + 1, close - open - 1), scope, is_formula);
    if (!word) return text;
    if (out.size() + word->size() > kMostText) {
      fail(node, fmt::format("with the values of its parameters this text has more than {} "
                             "characters",
                             kMostText));
      return text;
    }
    out += *word;
    at = close + 1;
  }
  return charge(node, out.size() / kCharactersOfValue) ? Json(std::move(out)) : Json();
}

namespace {

std::optional<std::int64_t> integer_of(const Json& value, std::int64_t least, std::int64_t most) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (number != std::floor(number)) return std::nullopt;
  if (number < static_cast<double>(least) || number > static_cast<double>(most)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::optional<std::int64_t> count_of_entry(TemplateFiller& filler, const Node& entry,
                                           const Scope& scope) {
  const Json* const given = member_of(entry.json(), "count");
  if (given == nullptr) return -1;
  const Node node = entry.member("count", *given);
  const Json value = filler.fill(node, scope);
  // None is a slip where it is written, but may well come out of a computation.
  const std::int64_t least = given->is_number() ? 1 : 0;
  if (const auto count = integer_of(value, least, scenario_limits::kInteger)) return count;
  filler.fail(node, fmt::format("must be an integer from {} to {}, got {}", least,
                                scenario_limits::kInteger, describe(value)));
  return std::nullopt;
}

bool check_indices(TemplateFiller& filler, const Node& ranges) {
  if (!ranges.json().is_object() || ranges.size() == 0) {
    filler.fail(ranges, fmt::format("must be an object such as {{\"i\": [0, 9]}}, the first and "
                                    "the last of each index, got {}",
                                    describe(ranges.json())));
    return false;
  }
  bool is_sound = true;
  for (const auto& [name, range] : ranges.json().get_ref<const Json::object_t&>()) {
    const bool is_name = Expression::is_name(name);
    if (is_name && !Expression::is_reserved(name)) continue;
    const Node node = ranges.member(name, range);
    filler.fail(node,
                is_name ? fmt::format("{} has a meaning of its own in expressions", in_quotes(name))
                        : fmt::format("the name of an index {}", kVariableNameRule));
    is_sound = false;
  }
  return is_sound;
}

std::optional<std::pair<std::int64_t, std::int64_t>> index_range(TemplateFiller& filler,
                                                                 const Node& node,
                                                                 const Scope& scope) {
  const Json value = filler.fill(node, scope);
  if (filler.is_exhausted()) return std::nullopt;
  const bool is_pair = value.is_array() && value.size() == 2;
  const auto first = is_pair
                         ? integer_of(value[0], -scenario_limits::kIndex, scenario_limits::kIndex)
                         : std::nullopt;
  const auto last = is_pair
                        ? integer_of(value[1], -scenario_limits::kIndex, scenario_limits::kIndex)
                        : std::nullopt;
  if (!first || !last) {
    filler.fail(node, fmt::format("must be [first, last], two integers within {} of 0, got {}",
                                  scenario_limits::kIndex,
                                  is_pair ? printable(value.dump()) : describe(value)));
    return std::nullopt;
  }
  // None is a slip where it is written, but may well come out of a computation.
  const Json& written = node.json();
  const bool is_written = written.is_array() && written[0].is_number() && written[1].is_number();
  if (*first > *last && is_written) {
    filler.fail(node,
                fmt::format("is empty: the first index {} is after the last, {}", *first, *last));
    return std::nullopt;
  }
  return std::pair(*first, *last);
}

}  // namespace portwave::scenario_file

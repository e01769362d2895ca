#include "scenario/settings/method_keys.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {
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
    return key(place, or_word(integer(least, most)), read, place.of(defaults_));
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

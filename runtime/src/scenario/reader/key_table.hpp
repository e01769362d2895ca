#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "portwave/coupling/method/number_range.hpp"
#include "scenario/reader/document.hpp"
#include "scenario/reader/node.hpp"

/// The keys of the objects of a scenario file as tables: each key's name, text, unit, range, default and
/// reader stand in one row. From a table come the checks of unknown and missing keys, the values and the
/// JSON Schema, and from that the page of all keys. The keys of "method" have a table of their own that users
/// see too (method_table.hpp), as have the parameters of parts and the fields of blocks.
namespace portwave::scenario_file {

// Pieces of JSON Schema (draft 07).

/// 0 rather than 0.0 where a number is whole.
Json plain(double value);
/// A reference to one of the schema's definitions.
Json reference(const std::string& definition);

Json described(Json schema, const std::string& description);
Json with_default(Json schema, Json value);

Json text();
Json boolean();
Json number();
Json positive();
Json not_zero();
Json non_negative();
Json integer(std::int64_t minimum, std::int64_t maximum);
Json range_schema(const NumberRange& range);
Json choice(const std::vector<std::string>& choices);
Json list(Json items, std::size_t fewest = 0);

/// An object with these keys and no others.
Json object(Json properties, const std::vector<std::string>& required);
/// An object whose keys are names of the user's.
Json map_of(Json values);

Json when_key_is(const std::string& key, const std::string& value, Json then);
/// An object that "kind" tells apart; each variant is the schema of one kind, "kind" among its keys.
Json by_kind(const std::vector<std::pair<std::string, Json>>& variants);

/// What a value may be: a reader, which notes what is wrong and then returns nothing, and a schema.
template <class T>
struct Form {
  std::function<std::optional<T>(const Node&)> read;
  Json schema;
};

namespace form {

Form<double> number(const NumberRange& range = {});
/// Any number; whoever uses it demands what the schema says.
Form<double> number_judged_later(Json schema);
Form<std::int64_t> integer(std::int64_t minimum, std::int64_t maximum);
Form<bool> boolean();
Form<std::string> text();
/// A text that is not empty.
Form<std::string> name();

/// One of some words.
template <class T>
Form<T> choice(std::vector<std::pair<std::string, T>> words) {
  std::vector<std::string> names;
  for (const auto& [word, value] : words) names.push_back(word);
  Json schema = scenario_file::choice(names);
  return {[words = std::move(words), names = std::move(names)](const Node& node) {
            std::optional<T> value;
            if (const auto name = node.choice(names)) {
              value = std::ranges::find(words, *name, &std::pair<std::string, T>::first)->second;
            }
            return value;
          },
          std::move(schema)};
}

}  // namespace form

/// The value of a key: a schema, and how it gets to where it belongs. False, and noted, where it does not fit.
template <class Target>
struct KeyValue {
  Json schema = {};
  std::function<bool(const Node&, Target&)> read = {};

  /// The same, into what has the members of `Target` and more.
  template <class Derived>
  requires std::derived_from<Derived, Target>
  operator KeyValue<Derived>() const { return {schema, read}; }
};

/// The value is kept in a member.
template <class Target, class Member, class T>
KeyValue<Target> to(Member Target::*member, Form<T> form) {
  return {std::move(form.schema),
          [member, read = std::move(form.read)](const Node& node, Target& target) {
            auto value = read(node);
            if (!value) return false;
            if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<Member>) {
              target.*member = static_cast<Member>(*value);
            } else {
              target.*member = *std::move(value);
            }
            return true;
          }};
}

/// The value is read once all keys are known, which it depends on.
template <class Target>
KeyValue<Target> later(std::optional<Node> Target::*member, Json schema) {
  return {std::move(schema), [member](const Node& node, Target& target) {
            target.*member = node;
            return true;
          }};
}

/// The value is read before this table or after it.
template <class Target>
KeyValue<Target> elsewhere(Json schema) {
  return {std::move(schema), [](const Node&, Target&) { return true; }};
}

template <class Target>
struct Key {
  std::string_view name = "";
  std::string text = "";  ///< one line, with the unit in brackets; empty where the name says all
  KeyValue<Target> value = {};
  bool required = false;
  Json otherwise = nullptr;  ///< what stands for an absent key; null: nothing

  template <class Derived>
  requires std::derived_from<Derived, Target>
  operator Key<Derived>() const { return {name, text, value, required, otherwise}; }

  Json schema() const {
    Json schema = value.schema;
    if (!text.empty()) schema = described(std::move(schema), text);
    if (!otherwise.is_null()) schema = with_default(std::move(schema), otherwise);
    return schema;
  }
};

template <class Target>
Key<Target> required_key(std::string_view name, std::string text, KeyValue<Target> value) {
  return {name, std::move(text), std::move(value), true};
}

template <class Target>
Key<Target> optional_key(std::string_view name, std::string text, KeyValue<Target> value,
                         Json otherwise = nullptr) {
  return {name, std::move(text), std::move(value), false, std::move(otherwise)};
}

/// The key that tells kinds of an object apart, in the table of one of them.
template <class Target>
Key<Target> kind_key(const std::string& kind) {
  return required_key("kind", "", elsewhere<Target>({{"const", kind}}));
}

template <class Target>
class KeyTable {
 public:
  /// `rules`: what the schema says beside the keys.
  explicit KeyTable(std::vector<Key<Target>> keys, Json rules = Json::object())
      : keys_(std::move(keys)), rules_(std::move(rules)) {
    for (const Key<Target>& key : keys_) names_.push_back(key.name);
  }

  /// Reads all keys, in the order of the table. False, and noted, where one is missing or does not fit.
  /// Notes unknown keys too. `also`: keys that others read.
  bool read(const Node& node, Target& target,
            const std::vector<std::string_view>& also = {}) const {
    std::vector<std::string_view> all;
    if (!also.empty()) {
      all = names_;
      all.insert(all.end(), also.begin(), also.end());
    }
    const ObjectReader object(node, also.empty() ? names_ : all);
    return read_values(object, target);
  }
  /// The same of an object whose keys somebody else checks.
  bool read_values(const ObjectReader& object, Target& target) const {
    if (!object.is_object()) return false;
    bool is_sound = true;
    for (const Key<Target>& key : keys_) {
      const auto given = key.required ? object.require(key.name) : object.find(key.name);
      if (given) {
        is_sound = key.value.read(*given, target) && is_sound;
      } else if (key.required) {
        is_sound = false;
      } else if (!key.otherwise.is_null()) {
        key.value.read(Node(key.otherwise, object.node().defects()), target);
      }
    }
    return is_sound;
  }

  const std::vector<std::string_view>& names() const { return names_; }

  Json schema() const {
    Json properties = Json::object();
    std::vector<std::string> required;
    for (const Key<Target>& key : keys_) {
      properties[std::string(key.name)] = key.schema();
      if (key.required) required.emplace_back(key.name);
    }
    Json schema = object(std::move(properties), required);
    schema.update(rules_);
    return schema;
  }

 private:
  std::vector<Key<Target>> keys_;
  std::vector<std::string_view> names_;
  Json rules_;
};

}  // namespace portwave::scenario_file

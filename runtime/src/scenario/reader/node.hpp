#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/coupling/method/number_range.hpp"
#include "scenario/reader/document.hpp"

namespace portwave::scenario_file {

/// The defects found so far.
class Defects {
 public:
  Defects() = default;
  /// Starts with what is wrong with a document as JSON.
  explicit Defects(const Document& document);

  /// Notes a defect, unless the same place is settled or there are too many already.
  void add(std::string where, std::string what);
  void add(const Issues& issues);
  /// From now on places are those of a document that was made of the given one: `place` tells where
  /// an issue is in that, or nothing when it is not to be told. Nor is what lies within a place that
  /// has a defect already, or around it.
  void place_by(std::function<std::optional<Issue>(Issue)> place);
  /// True when a defect was noted at exactly this place.
  bool has(const std::string& where) const { return places_.contains(where); }
  /// True when a defect was noted at this place or inside the value there.
  bool has_within(const std::string& where) const;
  std::size_t count() const { return issues_.size(); }
  /// True when no more are noted, so that there is no use in looking for words.
  bool is_full() const { return overflowed_; }
  Issues take();

 private:
  bool is_told(const std::string& where) const;

  std::set<std::string> settled_;
  std::set<std::string> told_;  ///< places in the given document, before place_by
  std::function<std::optional<Issue>(Issue)> place_;
  std::set<std::string> places_;
  Issues issues_;
  bool overflowed_ = false;
};

/// The member under `key`; null when the value is no object or has none.
const Json* member_of(const Json& object, std::string_view key);
Json* member_of(Json& object, std::string_view key);

/// "the string \"abc\"", "an array of 3", …: a value as messages call it.
std::string describe(const Json& value);
/// "\"a\", \"b\", \"c\"".
std::string list_of(const std::vector<std::string>& names);

/// A value in the document and its place. Each reader returns nothing, and notes what was expected,
/// when the value does not fit. A child refers to its parent, which must outlive it.
class Node {
 public:
  Node(const Json& root, Defects& defects) : value_(&root), defects_(&defects) {}

  const Json& json() const { return *value_; }
  Defects& defects() const { return *defects_; }
  std::string where() const;
  void fail(std::string what) const { defects_->add(where(), std::move(what)); }
  /// "must be <expected>, got <found>".
  void fail_expected(std::string_view expected) const;

  std::optional<double> number(const NumberRange& range = {}) const;
  std::optional<std::int64_t> integer(std::int64_t minimum, std::int64_t maximum) const;
  std::optional<bool> boolean() const;
  std::optional<std::string> text() const;
  std::optional<std::string> choice(const std::vector<std::string>& choices) const;
  /// True for an array; `expected` describes what should be there.
  bool is_array(std::string_view expected) const;
  bool is_object(std::string_view expected) const;

  std::size_t size() const { return value_->size(); }
  Node at(std::size_t index) const& { return {(*value_)[index], *this, {}, index}; }
  Node at(std::size_t index) const&& = delete;
  /// Of an object: the member under `key`, which must outlive the node.
  Node member(std::string_view key, const Json& value) const& { return {value, *this, key, 0}; }
  Node member(std::string_view key, const Json& value) const&& = delete;

 private:
  Node(const Json& value, const Node& parent, std::string_view key, std::size_t index)
      : value_(&value), defects_(parent.defects_), parent_(&parent), key_(key), index_(index) {}

  const Json* value_;
  Defects* defects_;
  const Node* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

/// An object with a known set of keys.
class ObjectReader {
 public:
  using Keys = std::span<const std::string_view>;

  /// Notes a value that is not an object, and every key that is not in `keys`.
  ObjectReader(const Node& node, Keys keys);
  ObjectReader(const Node& node, std::initializer_list<std::string_view> keys)
      : ObjectReader(node, Keys(keys.begin(), keys.size())) {}
  ObjectReader(const Node&& node, Keys keys) = delete;
  ObjectReader(const Node&& node, std::initializer_list<std::string_view> keys) = delete;
  /// For an object whose keys are not known: notes nothing.
  explicit ObjectReader(const Node& node) : node_(node) {}
  explicit ObjectReader(const Node&& node) = delete;

  const Node& node() const { return node_; }
  bool is_object() const { return node_.json().is_object(); }
  std::optional<Node> find(std::string_view key) const;
  /// Like find; notes a missing key.
  std::optional<Node> require(std::string_view key) const;

 private:
  const Node& node_;
};

/// The member "kind" of an object, one of `kinds`. Notes what is wrong.
std::optional<std::string> read_kind(const Node& node, const std::vector<std::string>& kinds);

}  // namespace portwave::scenario_file

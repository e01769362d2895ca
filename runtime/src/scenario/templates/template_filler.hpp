#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/expression.hpp"
#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// What names stand for in an entry of which there may be many: parameters of an assembly, and
/// indices, the innermost of which hides others of its name. Refers to the values.
class Scope {
 public:
  /// Of entries that stand for themselves.
  Scope() = default;
  /// Of the inside of an assembly: nothing else is seen there.
  static Scope of_assembly();
  /// What `outer` sees and an index.
  static Scope of_index(const Scope& outer, std::string_view name, const Json& value);

  void add(std::string_view name, const Json& value) { variables_.push_back({name, &value}); }
  /// Whether texts may hold "{…}".
  bool is_template() const { return is_template_; }
  const Json* find(std::string_view name) const;
  /// The innermost first.
  std::vector<std::string> names() const;
  /// Whether names() would be these.
  bool has_names(std::span<const std::string> names) const;
  /// By number in names().
  const Json& value(std::size_t number) const;

 private:
  struct Variable {
    std::string_view name;
    const Json* value;
  };
  const Scope* outer_ = nullptr;
  std::vector<Variable> variables_;
  bool is_template_ = false;
};

/// Fills in what stands for values: {"parameter": "m"}, {"expression": "2*m"}, "cell_{i+1}.left".
/// Counts what it makes, so that a small file does not become a huge one.
class TemplateFiller {
 public:
  explicit TemplateFiller(Defects& defects) : defects_(defects) {}

  /// A value with everything filled in. What is wrong is noted in its place in the file, once.
  Json fill(const Node& node, const Scope& scope) { return fill(node, scope, false); }
  /// True where fill() may make something else of the value, in an assembly.
  static bool is_computed(const Json& value);
  /// The same outside of one, where texts stand for themselves.
  static bool has_expression(const Json& value);

  /// Notes a defect unless the place has one; says for which use of it, if there are several.
  void fail(const Node& node, const std::string& what) { fail(node.where(), what); }
  void fail(const std::string& where, const std::string& what);
  /// Such as "leg_3/knee"; empty where an entry stands for itself.
  void set_use(std::string use) { use_ = std::move(use); }

  /// False, and noted, when this makes too much.
  bool charge(const Node& node, std::size_t values);
  bool is_exhausted() const { return spent_ > kMostValues; }
  std::size_t spent() const { return spent_; }
  /// What is found out to make too much before it is made; noted.
  void give_up(const std::string& where);
  static constexpr std::size_t kMostValues = 20'000'000;
  static constexpr std::size_t kCharactersOfValue = 32;  ///< that weigh as much as a value

 private:
  struct Compiled {
    std::string text;
    std::vector<std::string> names;        ///< of the scope's variables, the own ones first
    std::optional<Expression> expression;  ///< nothing: it has a defect, which is noted
    std::vector<std::size_t> used;         ///< variables, by number in the scope
  };

  Json fill(const Node& node, const Scope& scope, bool is_formula);
  Json named(const Node& node, const std::string& name, const Scope& scope);
  std::optional<double> computed(const Node& node, std::string_view text, const Scope& scope);
  const Compiled& compiled(const Node& node, std::string_view text, const Scope& scope);
  std::optional<std::string> word_of(const Node& node, std::string_view inner, const Scope& scope,
                                     bool is_formula);
  Json filled_text(const Node& node, const Scope& scope, bool is_formula);

  Defects& defects_;
  std::string use_;
  std::size_t spent_ = 0;
  std::unordered_map<const char*, Compiled> compiled_;  ///< by where the text stands
  std::vector<double> values_;
};

/// " (in \"leg_3\")" after the first line of a message.
std::string with_use(std::string what, const std::string& use);

// Entries that stand for many: "count" and "for".

/// How many an entry stands for, −1 where it is no array; nothing, and noted, where that is wrong.
std::optional<std::int64_t> count_of_entry(TemplateFiller& filler, const Node& entry,
                                           const Scope& scope);

/// "for", by the names of its indices; false, and noted, where these are wrong.
bool check_indices(TemplateFiller& filler, const Node& ranges);

/// The first and the last value of an index; nothing where there are none, or, noted, where that is wrong.
std::optional<std::pair<std::int64_t, std::int64_t>> index_range(TemplateFiller& filler,
                                                                 const Node& node,
                                                                 const Scope& scope);

}  // namespace portwave::scenario_file

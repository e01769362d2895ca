#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/expression.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/templates/assemblies.hpp"
#include "scenario/templates/template_filler.hpp"

namespace portwave::scenario_file {
namespace {

/// Values that are looked at more than once; beyond that all counts as its least.
constexpr std::int64_t kMostRepeated = 2'000'000;
constexpr std::size_t kMostRemembered = 10'000;

/// What is known of a parameter or an index without writing anything out.
struct Variable {
  std::string_view name;
  double weight = 1.0;                ///< of its value
  std::optional<double> number = {};  ///< nothing: it is none, or differs from entry to entry
};

struct Variables {
  const Variables* outer = nullptr;
  std::vector<Variable> own = {};

  const Variable* find(std::string_view name) const {
    const auto found = std::ranges::find(own, name, &Variable::name);
    if (found != own.end()) return &*found;
    return outer == nullptr ? nullptr : outer->find(name);
  }
};

/// A value as it is written: so many values, and the parameters that stand for more.
struct Written {
  double values = 0.0;
  double references = 0.0;                        ///< of them: what is replaced by something else
  std::map<std::string_view, double> times = {};  ///< by name
  std::map<std::string_view, double> in_texts = {};  ///< as "{name}"

  /// What filling it in makes.
  double charge(const Variables& scope) const { return values + of_parameters(scope); }
  /// What it is then.
  double result(const Variables& scope) const { return values - references + of_parameters(scope); }

 private:
  double of_parameters(const Variables& scope) const {
    double sum = 0.0;
    for (const auto& [name, count] : times) {
      const Variable* const own = scope.find(name);
      sum += count * (own == nullptr ? 1.0 : own->weight);
    }
    for (const auto& [name, count] : in_texts) {
      const Variable* const own = scope.find(name);
      sum += own == nullptr ? 0.0 : count * (own->weight - 1.0);
    }
    return sum;
  }
};

const std::string* sole_text(const Json& value, std::string_view key) {
  if (value.size() != 1) return nullptr;
  const Json* const member = member_of(value, key);
  return member != nullptr && member->is_string() ? &member->get_ref<const std::string&>()
                                                  : nullptr;
}

class ExpansionWeight {
 public:
  ExpansionWeight(const Json& root, const AssemblyList& assemblies, double most)
      : root_(root), assemblies_(assemblies), most_(most) {}

  std::optional<std::string> entry_of_too_much() {
    Variables top;
    double sum = 0.0;
    if (const Json* const given = member_of(root_, "parameters"); given && given->is_object()) {
      for (const auto& [name, value] : given->get_ref<const Json::object_t&>()) {
        const double charge = add_parameter(name, value, top);
        if (TemplateFiller::is_computed(value)) sum += charge;
        if (sum > most_) return fmt::format("/parameters/{}", escape_key(name));
      }
    }
    const Json* const signals = member_of(root_, "signals");
    const auto is_too_much = [&](const Json* list, auto&& weight) -> std::optional<std::size_t> {
      if (list == nullptr || !list->is_array()) return std::nullopt;
      for (std::size_t k = 0; k < list->size(); ++k) {
        sum += weight((*list)[k]);
        if (sum > most_) return k;
      }
      return std::nullopt;
    };
    const auto of_part = [&](const Json& entry) { return of_array(entry, top); };
    const auto of_joint = [&](const Json& entry) { return of_loops(entry, top); };
    if (const auto k = is_too_much(member_of(root_, "subsystems"), of_part)) {
      return fmt::format("/subsystems/{}", *k);
    }
    if (const auto k = is_too_much(member_of(root_, "couplings"), of_joint)) {
      return fmt::format("/couplings/{}", *k);
    }
    const Json* const blocks = signals == nullptr ? nullptr : member_of(*signals, "blocks");
    if (const auto k = is_too_much(blocks, of_part)) return fmt::format("/signals/blocks/{}", *k);
    return std::nullopt;
  }

 private:
  struct Formula {
    std::vector<std::string> names;
    std::optional<Expression> expression;
    std::vector<std::size_t> used;
  };
  struct Remembered {
    double weight = 0.0;
    bool is_unsure = false;
  };

  Written written(const Json& value) {
    Written out;
    add_to(out, value);
    return out;
  }

  void add_to(Written& out, const Json& value) {
    ++out.values;
    ++looked_at_;
    if (value.is_string()) {
      add_text_to(out, value.get_ref<const std::string&>());
    } else if (value.is_object()) {
      if (sole_text(value, "expression") != nullptr) return;
      if (const std::string* const name = sole_text(value, "parameter")) {
        ++out.references;
        ++out.times[*name];
        return;
      }
      for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) add_to(out, member);
    } else if (value.is_array()) {
      for (const Json& each : value) add_to(out, each);
    }
  }

  void add_text_to(Written& out, std::string_view text) {
    const auto weight = static_cast<double>(text.size() / TemplateFiller::kCharactersOfValue);
    out.values += weight;
    std::size_t open = text.find('{');
    if (open != std::string_view::npos) out.references += weight;  // another text comes of it
    while (open != std::string_view::npos) {
      const std::size_t close = text.find('}', open);
      if (close == std::string_view::npos) return;
      ++out.in_texts[text.substr(open + 1, close - open - 1)];
      open = text.find('{', close);
    }
  }

  /// The number that a value comes to. Nothing, and unsure, where that depends on what is not known.
  std::optional<double> number_of(const Json& value, const Variables& scope) {
    if (value.is_number()) return value.get<double>();
    if (!value.is_object()) return std::nullopt;
    if (const std::string* const name = sole_text(value, "parameter")) {
      const Variable* const own = scope.find(*name);
      if (own == nullptr || !own->number) is_unsure_ = true;
      return own == nullptr ? std::nullopt : own->number;
    }
    const std::string* const text = sole_text(value, "expression");
    return text == nullptr ? std::nullopt : computed(*text, scope);
  }

  std::optional<double> computed(const std::string& text, const Variables& scope) {
    const auto [found, is_new] = formulas_.try_emplace(&text);
    Formula& own = found->second;
    if (is_new) {
      for (const Variables* each = &scope; each != nullptr; each = each->outer) {
        for (const Variable& variable : each->own) own.names.emplace_back(variable.name);
      }
      try {
        own.expression = Expression::parse(text, own.names);
      } catch (const ConfigError&) {  // told by whoever writes it out
      }
      for (std::size_t i = 0; own.expression && i < own.names.size(); ++i) {
        if (own.expression->uses(static_cast<int>(i))) own.used.push_back(i);
      }
    }
    if (!own.expression) return std::nullopt;
    std::vector<double> values(own.names.size(), 0.0);
    for (const std::size_t i : own.used) {
      const Variable* const variable = scope.find(own.names[i]);
      if (variable == nullptr || !variable->number) {
        is_unsure_ = true;
        return std::nullopt;
      }
      values[i] = *variable->number;
    }
    const double value = (*own.expression)(values);
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  }

  /// Adds a parameter with its default; returns what filling that in makes.
  double add_parameter(std::string_view name, const Json& value, Variables& scope) {
    const Written own = written(value);
    const Variable variable = {name, own.result(scope), number_of(value, scope)};
    const double charge = own.charge(scope);
    scope.own.push_back(variable);
    return charge;
  }

  /// So many of what `each` weighs, which may depend on the index.
  template <class Each>
  double of_many(std::string_view index, double first, double count, const Variables& outer,
                 const Each& each) {
    if (count <= 0.0) return 0.0;
    const bool was_unsure = std::exchange(is_unsure_, false);
    Variables scope = {&outer, {{index, 1.0, {}}}};
    const double least = each(scope);
    double sum = count * least;
    if (is_unsure_ && sum <= most_) {
      bool is_unsure = false;
      double one_by_one = 0.0;
      for (double i = 0.0; i < count && one_by_one <= most_; ++i) {
        looked_at_ += 8;
        if (looked_at_ > kMostRepeated) {
          one_by_one += (count - i) * least;
          break;
        }
        is_unsure_ = false;
        scope.own[0].number = first + i;
        one_by_one += each(scope);
        is_unsure = is_unsure || is_unsure_;
      }
      is_unsure_ = is_unsure;
      sum = std::max(sum, one_by_one);
    }
    is_unsure_ = is_unsure_ || was_unsure;
    return sum;
  }

  /// A part, a block or an array of them.
  double of_array(const Json& entry, const Variables& scope) {
    if (!entry.is_object()) return 0.0;
    const std::int64_t before = looked_at_;
    const Written own = written(entry);
    if (open_.empty()) looked_at_ = before;  // once for every entry of the file
    const auto one = [&](const Variables& inner) { return of_part(entry, own, inner); };
    const Json* const count = member_of(entry, "count");
    if (count == nullptr) return one(scope);
    const double charge = written(*count).charge(scope);
    const auto number = number_of(*count, scope);
    if (!number || *number != std::floor(*number) || *number > scenario_limits::kInteger) {
      return charge;
    }
    return charge + of_many("i", 0.0, *number, scope, one);
  }

  double of_part(const Json& entry, const Written& own, const Variables& scope) {
    const double weight = own.charge(scope);
    const Json* const of = member_of(entry, "assembly");
    if (of == nullptr || !of->is_string()) return weight;
    const AssemblyList::Assembly* const assembly =
        assemblies_.find(of->get_ref<const std::string&>());
    const bool can_be_used = assembly != nullptr && assembly->json != nullptr &&
                             open_.size() < AssemblyList::kMostLevels &&
                             std::ranges::find(open_, assembly) == open_.end();
    if (!can_be_used || looked_at_ > kMostRepeated) return weight;
    return weight + static_cast<double>(AssemblyList::kWeightOfUse) +
           of_use(*assembly, member_of(entry, "parameters"), scope);
  }

  double of_use(const AssemblyList::Assembly& assembly, const Json* said, const Variables& scope) {
    Variables inside;
    double sum = 0.0;
    for (const AssemblyList::Parameter& parameter : assembly.parameters) {
      const Json* const value = said == nullptr ? nullptr : member_of(*said, parameter.name);
      if (value != nullptr && !value->is_null()) {
        // Of a parameter that is not known nothing is to be said as long as nobody asks.
        const bool was_unsure = is_unsure_;
        inside.own.push_back(
            {parameter.name, written(*value).result(scope), number_of(*value, scope)});
        is_unsure_ = was_unsure;
      } else if (parameter.otherwise == nullptr) {
        return 0.0;  // it is required, which is told
      } else {
        const bool was_unsure = is_unsure_;
        const double charge = add_parameter(parameter.name, *parameter.otherwise, inside);
        if (parameter.is_computed) sum += charge;
        is_unsure_ = was_unsure;
      }
    }
    std::vector<double> key;
    for (const Variable& own : inside.own) {
      key.push_back(own.weight);
      key.push_back(own.number ? 1.0 : 0.0);
      key.push_back(own.number.value_or(0.0));
    }
    std::map<std::vector<double>, Remembered>& remembered = remembered_[&assembly];
    if (const auto found = remembered.find(key); found != remembered.end()) {
      is_unsure_ = is_unsure_ || found->second.is_unsure;
      return sum + found->second.weight;
    }
    const bool was_unsure = std::exchange(is_unsure_, false);
    open_.push_back(&assembly);
    double weight = 0.0;
    if (const Json* const parts = member_of(*assembly.json, "subsystems"); is_list(parts)) {
      for (const Json& part : *parts) weight += of_array(part, inside);
    }
    if (const Json* const joints = member_of(*assembly.json, "couplings"); is_list(joints)) {
      for (const Json& joint : *joints) weight += of_loops(joint, inside);
    }
    open_.pop_back();
    if (remembered.size() < kMostRemembered) {
      remembered.emplace(std::move(key), Remembered{weight, is_unsure_});
    }
    is_unsure_ = is_unsure_ || was_unsure;
    return sum + weight;
  }

  static bool is_list(const Json* value) { return value != nullptr && value->is_array(); }

  /// A coupling, or one for every value of its indices.
  double of_loops(const Json& entry, const Variables& scope) {
    if (!entry.is_object()) return 0.0;
    const std::int64_t before = looked_at_;
    const Written own = written(entry);
    if (open_.empty()) looked_at_ = before;
    const Json* const loop = member_of(entry, "for");
    if (loop == nullptr || !loop->is_object() || loop->empty()) return own.charge(scope);
    return of_level(own, loop->get_ref<const Json::object_t&>(), 0, scope);
  }

  double of_level(const Written& entry, const Json::object_t& ranges, std::size_t level,
                  const Variables& scope) {
    if (level == ranges.size()) return entry.charge(scope);
    const auto& [index, range] = ranges.begin()[static_cast<std::ptrdiff_t>(level)];
    const double charge = written(range).charge(scope);
    if (!range.is_array() || range.size() != 2) return charge;
    const auto first = number_of(range[0], scope), last = number_of(range[1], scope);
    const auto fits = [](const std::optional<double>& value) {
      return value && *value == std::floor(*value) &&
             std::abs(*value) <= static_cast<double>(scenario_limits::kIndex);
    };
    if (!fits(first) || !fits(last)) return charge;
    return charge +
           of_many(index, *first, *last - *first + 1.0, scope, [&](const Variables& inner) {
             return 1.0 + of_level(entry, ranges, level + 1, inner);
           });
  }

  const Json& root_;
  const AssemblyList& assemblies_;
  const double most_;
  std::int64_t looked_at_ = 0;  ///< values, again
  bool is_unsure_ = false;      ///< a number was asked for that is not known
  std::vector<const AssemblyList::Assembly*> open_;
  std::unordered_map<const AssemblyList::Assembly*, std::map<std::vector<double>, Remembered>>
      remembered_;
  std::unordered_map<const std::string*, Formula> formulas_;
};

}  // namespace

std::optional<std::string> entry_of_too_many_values(const Json& root,
                                                    const AssemblyList& assemblies, double most) {
  return ExpansionWeight(root, assemblies, most).entry_of_too_much();
}

}  // namespace portwave::scenario_file

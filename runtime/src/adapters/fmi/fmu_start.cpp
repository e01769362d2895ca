#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "adapters/fmi/fmu_setup.hpp"
#include "adapters/fmi/standard/fmu_words.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

bool may_start(const Variable& variable) {
  return variable.type < VariableType::clock && !variable.is_constant &&
         (variable.role == Role::parameter || variable.role == Role::structural_parameter ||
          variable.role == Role::input ||
          (variable.has_start && (variable.role == Role::output || variable.role == Role::local)));
}

/// A structural parameter that sizes may be: one number.
bool is_size(const Variable& variable) {
  return is_number(variable.type) && !variable.is_array && variable.array.empty();
}

constexpr double kMostExact = 9007199254740992.0;  // 2^53: further whole numbers are rounded

bool is_whole(VariableType type) {
  return type >= VariableType::int8 && type <= VariableType::uint64;
}

/// What a value of a type must be that this one is not; empty: it may be it.
std::string_view defect_of(VariableType type, double value) {
  using Limits = std::pair<double, double>;
  constexpr Limits kOfWhole[] = {{-128, 127},
                                 {0, 255},
                                 {-32768, 32767},
                                 {0, 65535},
                                 {-2147483648.0, 2147483647.0},
                                 {0, 4294967295.0},
                                 {1 - kMostExact, kMostExact - 1},
                                 {0, kMostExact - 1}};
  if (!std::isfinite(value)) return "finite";
  if (type == VariableType::boolean && value != 0.0 && value != 1.0) return "true or false, 1 or 0";
  if (!is_whole(type)) return {};
  if (value != std::nearbyint(value)) return "a whole number";
  const auto [least, most] =
      kOfWhole[static_cast<int>(type) - static_cast<int>(VariableType::int8)];
  if (value >= least && value <= most) return {};
  return std::abs(value) < kMostExact ? "within its type of whole numbers"
                                      : "below 2^53, from which on whole numbers are rounded";
}

/// A start value as a description writes it; nothing where a number would not be the same.
std::optional<double> start_number(VariableType type, std::string_view word) {
  if (word == "true") return 1.0;
  if (word == "false") return 0.0;
  if (word.starts_with('+')) word.remove_prefix(1);
  double value = 0.0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  if (is_whole(type) && std::abs(value) >= kMostExact) return std::nullopt;
  return value;
}

/// Finds variables with start values.
class StartFinder {
 public:
  StartFinder(FmuVariables& variables, Issues& issues) : variables_(variables), issues_(issues) {}

  std::vector<StartValue> find(const std::map<std::string, FmuValue>& start) {
    for (const auto& [name, value] : start) add(name, "/start/" + escape_key(name), value);
    for (auto& [array, elements] : elements_) {
      if (are_given_once(*array, elements)) add_elements(*array, elements);
    }
    return std::move(out_);
  }

 private:
  /// Of an array of which single elements are given.
  struct Element {
    std::size_t place;
    double value;
    std::string where;
  };
  struct Elements {
    std::vector<Element> given;
    std::size_t count = 0;
  };

  void fail(const std::string& where, std::string what) {
    issues_.push_back({where, std::move(what)});
  }
  /// A text such as "30 deg" as a number in the variable's unit. Nothing, and noted, where it is no such text.
  std::optional<double> with_unit(const Variable& variable, const std::string& where,
                                  std::string_view text) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const auto number = start_number(variable.type, text.substr(0, blank));
    const std::string_view unit = blank < text.size() ? text.substr(blank + 1) : std::string_view();
    if (!number || unit.empty()) {
      fail(where, fmt::format("{} takes a number, or a text of a number and a unit",
                              in_quotes(variable.name)));
      return std::nullopt;
    }
    if (unit == variable.unit) return number;
    std::vector<std::string> names = {variable.unit};
    const auto& units = variables_.fmu().description().units;
    if (const auto own = units.find(variable.unit); own != units.end()) {
      for (const DisplayUnit& shown : own->second.display_units) {
        if (unit == shown.name) return shown.value_of(*number);
        names.push_back(shown.name);
      }
      for (const auto& [name, other] : units) {
        if (!own->second.is_known || !other.is_known || other.powers != own->second.powers)
          continue;
        if (unit == name)
          return (*number * other.factor + other.offset - own->second.offset) / own->second.factor;
        if (name != variable.unit) names.push_back(name);
      }
    }
    fail(where, variable.unit.empty()
                    ? fmt::format("{} has no unit: it takes a number", in_quotes(variable.name))
                    : fmt::format("the FMU knows no unit {} of {}. It has: {}", in_quotes(unit),
                                  in_quotes(variable.name), some_of(names)));
    return std::nullopt;
  }
  /// Of its type, and between the limits that the FMU gives; else that is noted.
  bool may_be(const Variable& variable, const std::string& where, double value) {
    if (const auto defect = defect_of(variable.type, value); !defect.empty()) {
      fail(where, fmt::format("must be {}, got {}", defect, value));
    } else if (value < variable.least.value_or(value)) {
      fail(where,
           fmt::format("must be at least {}, as the FMU says, got {}", *variable.least, value));
    } else if (value > variable.most.value_or(value)) {
      fail(where,
           fmt::format("must be at most {}, as the FMU says, got {}", *variable.most, value));
    } else {
      return true;
    }
    return false;
  }
  void add(const std::string& name, const std::string& where, const FmuValue& value) {
    const Variable* const variable = variables_.find(name);
    const bool is_text = std::holds_alternative<std::string>(value);
    const auto* const array = std::get_if<NumberArray>(&value);
    if (variable == nullptr) {
      find_number(variables_, name, std::nullopt, where, issues_);
    } else if (!may_start(*variable)) {
      fail(where,
           fmt::format("{} cannot be set: it is {}{}.\nTo be set: {}", in_quotes(name),
                       variable->type >= VariableType::clock ? std::string(kind_of(variable->type))
                                                             : with_article(variable->role),
                       variable->is_constant ? ", constant" : "",
                       some_of(variables_.fmu().description().names(&may_start))));
    } else if (variable->role == Role::structural_parameter && !is_size(*variable)) {
      fail(where, fmt::format("{} is a structural parameter that is {}, which cannot be set",
                              in_quotes(name), is_number(variable->type) ? "an array" : "a text"));
    } else if (variable->is_array) {
      add_array(*variable, where, value);
    } else if (is_text && is_number(variable->type)) {
      const auto number = with_unit(*variable, where, std::get<std::string>(value));
      if (number) add(name, where, *number);
    } else if (array != nullptr || is_text != (variable->type == VariableType::text)) {
      const bool takes_text = variable->type == VariableType::text;
      fail(where, fmt::format("{} takes a {}", in_quotes(name), takes_text ? "text" : "number"));
    } else if (is_text && !variable->array.empty()) {
      fail(where, "is an element of an array of texts, which cannot be set");
    } else if (!is_text && !may_be(*variable, where, std::get<double>(value))) {
      return;
    } else if (!variable->array.empty()) {
      Elements& own = elements_[variables_.fmu().description().find(variable->array)];
      own.given.push_back({variable->element, std::get<double>(value), where});
      own.count = variable->elements;
    } else {
      out_.push_back({variable, value});
    }
  }
  void add_array(const Variable& variable, const std::string& where, const FmuValue& value) {
    std::string why;
    const auto shape = variables_.shape_of(variable, why);
    const auto* const array = std::get_if<NumberArray>(&value);
    if (!shape || variable.type == VariableType::text) {
      fail(where, fmt::format("{} cannot be set: {}", in_quotes(variable.name),
                              shape ? "it is an array of texts" : why));
      return;
    }
    std::size_t count = 1;
    for (const std::size_t own : *shape) count *= own;
    if (array == nullptr) {
      fail(where, fmt::format("{} is an array of {}: give an array of numbers, or name an element, "
                              "such as {}",
                              in_quotes(variable.name), shown_shape(*shape),
                              count > 0 ? in_quotes(variables_.elements_of(variable, 1)[0]->name)
                                        : "none: it is empty"));
      return;
    }
    // A flat array is taken by rows.
    if (array->values.size() != count || (array->shape.size() > 1 && array->shape != *shape)) {
      fail(where,
           fmt::format(
               "{} is an array of {}, and {} numbers are given{}", in_quotes(variable.name),
               shown_shape(*shape), array->values.size(),
               array->shape.size() > 1 ? fmt::format(" as {}", shown_shape(array->shape)) : ""));
      return;
    }
    const bool may_all = std::ranges::all_of(
        array->values, [&](double own) { return may_be(variable, where, own); });
    if (may_all) out_.push_back({&variable, value});
  }
  /// Which of two numbers counts would depend on their order.
  bool are_given_once(const Variable& array, Elements& elements) {
    const bool is_whole = std::ranges::find(out_, &array, &StartValue::variable) != out_.end();
    std::ranges::stable_sort(elements.given, {}, &Element::place);
    bool are_sound = !is_whole;
    for (std::size_t k = 0; k < elements.given.size(); ++k) {
      const Element& own = elements.given[k];
      const bool is_again = k > 0 && elements.given[k - 1].place == own.place;
      if (is_whole) {
        fail(own.where, fmt::format("is given with all of {} too: write its number there",
                                    in_quotes(array.name)));
      } else if (is_again) {
        fail(own.where, "is given twice: indices may be written in one way alone");
        are_sound = false;
      }
    }
    return are_sound;
  }
  /// Arrays are set as a whole: other elements keep the start values of the description.
  void add_elements(const Variable& array, const Elements& elements) {
    const std::string& where = elements.given.front().where;
    const bool is_all = elements.given.size() == elements.count;
    NumberArray all{{elements.count}, {}};
    std::istringstream words(array.start);
    for (std::string word; !is_all && words >> word;) {
      const auto number = start_number(array.type, word);
      if (!number) {
        return fail(where,
                    fmt::format("another element of {} starts at {}, which is no number of a "
                                "double's digits: give all elements",
                                in_quotes(array.name), in_quotes(word)));
      }
      all.values.push_back(*number);
    }
    if (is_all || all.values.size() == 1)
      all.values.resize(elements.count, is_all ? 0.0 : all.values[0]);
    if (all.values.size() != elements.count) {
      fail(where,
           fmt::format("{} has {} elements, and the FMU gives start values of {}: give all of them",
                       in_quotes(array.name), elements.count, all.values.size()));
      return;
    }
    for (const Element& own : elements.given) all.values[own.place] = own.value;
    out_.push_back({&array, std::move(all)});
  }

  FmuVariables& variables_;
  Issues& issues_;
  std::vector<StartValue> out_;
  std::map<const Variable*, Elements> elements_;
};

}  // namespace

std::vector<StartValue> find_start_values(FmuVariables& variables,
                                          const std::map<std::string, FmuValue>& start,
                                          Issues& issues) {
  return StartFinder(variables, issues).find(start);
}

}  // namespace portwave::fmi

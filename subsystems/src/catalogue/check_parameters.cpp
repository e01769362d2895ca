#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

constexpr std::string_view kAllowActive = "allow_active";

std::string_view describe(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::number:
      return "a number";
    case ParameterKind::numbers:
      return "a list of numbers";
    case ParameterKind::integer:
      return "an integer";
    case ParameterKind::boolean:
      return "true or false";
    case ParameterKind::choice:
      return "a text";
    case ParameterKind::matrix:
      return "a matrix";
    case ParameterKind::ports:
      return "a list of ports";
    case ParameterKind::inputs:
      return "a list of inputs";
    case ParameterKind::states:
      return "a list of states";
    case ParameterKind::expression:
      return "an expression";
    case ParameterKind::expressions:
      return "a list of expressions";
    case ParameterKind::expression_matrix:
      return "a matrix of expressions or numbers";
    case ParameterKind::constants:
      return "named numbers";
    case ParameterKind::texts:
      return "a list of texts";
  }
  return "a value";
}

std::string describe(const ParameterValue& value) {
  struct Visitor {
    std::string operator()(double number) { return fmt::format("the number {}", number); }
    std::string operator()(int number) { return fmt::format("the integer {}", number); }
    std::string operator()(bool truth) { return truth ? "true" : "false"; }
    std::string operator()(const std::string& text) { return in_quotes(text); }
    std::string operator()(const std::vector<double>&) { return "a list of numbers"; }
    std::string operator()(const MatrixRows&) { return "a matrix"; }
    std::string operator()(const MatrixEntries&) { return "a matrix"; }
    std::string operator()(const ShapedMatrix&) { return "a matrix"; }
    std::string operator()(const std::vector<Port>&) { return "a list of ports"; }
    std::string operator()(const std::vector<ExternalInput>&) { return "a list of inputs"; }
    std::string operator()(const std::vector<StateVariable>&) { return "a list of states"; }
    std::string operator()(const std::vector<std::string>&) { return "a list of texts"; }
    std::string operator()(const ExpressionRows&) { return "a matrix of texts"; }
    std::string operator()(const std::vector<NamedNumber>&) { return "named numbers"; }
  };
  return std::visit(Visitor{}, value);
}

/// Checks one given value; `where` is "/<parameter>".
class ValueCheck {
 public:
  ValueCheck(Issues& issues, const ParameterInfo& info, bool allow_active)
      : issues_(issues), info_(info), allow_active_(allow_active), where_("/" + info.name) {}

  void check_value(ParameterValue& value) {
    convert_number(value);
    switch (info_.kind) {
      case ParameterKind::number:
        return with<double>(value, [this](double number) { check_range(where_, number); });
      case ParameterKind::numbers:
        return with<std::vector<double>>(value, [this](const std::vector<double>& numbers) {
          for (std::size_t i = 0; i < numbers.size(); ++i) {
            check_range(fmt::format("{}/{}", where_, i), numbers[i]);
          }
        });
      case ParameterKind::integer:
        return with<int>(value, [this](int number) { check_range(where_, number); });
      case ParameterKind::boolean:
        return with<bool>(value, [](bool) {});
      case ParameterKind::choice:
        return with<std::string>(value,
                                 [this](const std::string& text) { check_choice(where_, text); });
      case ParameterKind::matrix:
        return check_matrix(value);
      case ParameterKind::ports:
        return with<std::vector<Port>>(value, [this](const std::vector<Port>& ports) {
          check_names(ports);
          check_dimensions(ports);
        });
      case ParameterKind::inputs:
        return with<std::vector<ExternalInput>>(
            value, [this](const auto& inputs) { check_names(inputs); });
      case ParameterKind::states:
        return with<std::vector<StateVariable>>(
            value, [this](const auto& states) { check_names(states); });
      case ParameterKind::expression:
        return with<std::string>(value, [](const std::string&) {});
      case ParameterKind::expressions:
        return with<std::vector<std::string>>(value, [](const auto&) {});
      case ParameterKind::expression_matrix:
        if (const auto* rows = std::get_if<ExpressionRows>(&value)) return check_shape(*rows);
        return check_matrix(value);
      case ParameterKind::constants:
        return with<std::vector<NamedNumber>>(value, [this](const auto& constants) {
          check_names(constants);
          check_constants(constants);
        });
      case ParameterKind::texts:
        return with<std::vector<std::string>>(value, [this](const auto& texts) {
          for (std::size_t i = 0; i < texts.size() && !info_.choices.empty(); ++i) {
            check_choice(fmt::format("{}/{}", where_, i), texts[i]);
          }
        });
    }
  }

 private:
  // 3 is a number and 3.0 an integer.
  void convert_number(ParameterValue& value) const {
    if (info_.kind == ParameterKind::number && std::holds_alternative<int>(value)) {
      value = static_cast<double>(std::get<int>(value));
    } else if (info_.kind == ParameterKind::integer && std::holds_alternative<double>(value)) {
      const double number = std::get<double>(value);
      const bool fits = std::abs(number) <= std::numeric_limits<int>::max();
      if (fits && std::trunc(number) == number) value = static_cast<int>(number);
    }
  }

  template <class T, class Check>
  void with(const ParameterValue& value, Check check) {
    if (const T* held = std::get_if<T>(&value)) return check(*held);
    report(where_, fmt::format("expected {}, got {}", describe(info_.kind), describe(value)));
  }

  void check_range(const std::string& where, double number) {
    if (!std::isfinite(number)) {
      return report(where, fmt::format("must be finite, got {}", shown_number(number)));
    }
    const std::string unit = info_.unit.empty() ? "" : " " + info_.unit;
    const bool too_small =
        info_.minimum_excluded ? number <= info_.minimum : number < info_.minimum;
    if (too_small && !(info_.passive_only && allow_active_)) {
      report(where, fmt::format("must be {} {}{}, got {}{}",
                                info_.minimum_excluded ? ">" : ">=", info_.minimum, unit, number,
                                info_.passive_only
                                    ? "; a part that may create energy must say allow_active"
                                    : ""));
    }
    if (number > info_.maximum) {
      report(where, fmt::format("must be <= {}{}, got {}", info_.maximum, unit, number));
    }
  }

  void check_choice(const std::string& where, const std::string& text) {
    if (std::find(info_.choices.begin(), info_.choices.end(), text) != info_.choices.end()) return;
    report(where,
           fmt::format("must be one of \"{}\", got {}.{}", fmt::join(info_.choices, "\", \""),
                       in_quotes(text), did_you_mean(text, info_.choices)));
  }

  void check_matrix(const ParameterValue& value) {
    if (const auto* entries = std::get_if<MatrixEntries>(&value)) return check_entries(*entries);
    if (const auto* shaped = std::get_if<ShapedMatrix>(&value)) return check_shaped(*shaped);
    with<MatrixRows>(value, [this](const MatrixRows& rows) { check_rows(rows); });
  }

  void check_shaped(const ShapedMatrix& matrix) {
    check_entries(matrix.entries);
    if (matrix.rows < 0 || matrix.columns < 0) report(where_, "rows and columns must be >= 0");
    for (const MatrixEntry& entry : matrix.entries) {
      if (entry.row < matrix.rows && entry.column < matrix.columns) continue;
      return report(where_, fmt::format("({},{}) is outside the matrix, which is {}×{}", entry.row,
                                        entry.column, matrix.rows, matrix.columns));
    }
  }

  void check_entries(const MatrixEntries& entries) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const MatrixEntry& entry = entries[i];
      if (entry.row >= 0 && entry.column >= 0 && std::isfinite(entry.value)) continue;
      const std::string where = fmt::format("{}/{}", where_, i);
      if (entry.row < 0 || entry.column < 0) {
        report(where,
               fmt::format("rows and columns count from 0, got ({},{})", entry.row, entry.column));
      }
      if (!std::isfinite(entry.value)) {
        report(where, fmt::format("must be finite, got {}", shown_number(entry.value)));
      }
    }
  }

  template <class Entry>
  void check_shape(const std::vector<std::vector<Entry>>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].size() == rows.front().size()) continue;
      report(fmt::format("{}/{}", where_, i),
             fmt::format("has {} numbers, but row 0 has {}", rows[i].size(), rows.front().size()));
    }
  }

  void check_constants(const std::vector<NamedNumber>& constants) {
    for (const NamedNumber& constant : constants) {
      if (std::isfinite(constant.value)) continue;
      report(fmt::format("{}/{}", where_, constant.name),
             fmt::format("must be finite, got {}", shown_number(constant.value)));
    }
  }

  void check_rows(const MatrixRows& rows) {
    check_shape(rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < rows[i].size(); ++j) {
        if (std::isfinite(rows[i][j])) continue;
        report(fmt::format("{}/{}/{}", where_, i, j),
               fmt::format("must be finite, got {}", shown_number(rows[i][j])));
      }
    }
  }

  // Names appear in "part.name" paths and as columns of results.
  template <class Named>
  void check_names(const std::vector<Named>& things) {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < things.size(); ++i) {
      const std::string& name = things[i].name;
      const std::string where = fmt::format("{}/{}/name", where_, i);
      if (name.empty()) {
        report(where, "must not be empty");
      } else if (!is_plain_name(name)) {
        report(where,
               fmt::format("must not contain dots, brackets, blanks, commas or quotes, got {}",
                           in_quotes(name)));
      } else if (!seen.insert(name).second) {
        report(where, fmt::format("the name {} is already taken", in_quotes(name)));
      }
    }
  }

  void check_dimensions(const std::vector<Port>& ports) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (ports[i].dimension >= 1) continue;
      report(fmt::format("{}/{}/dimension", where_, i),
             fmt::format("must be >= 1, got {}", ports[i].dimension));
    }
  }

  void report(std::string where, std::string what) {
    issues_.push_back({std::move(where), std::move(what)});
  }

  Issues& issues_;
  const ParameterInfo& info_;
  bool allow_active_;
  std::string where_;
};

/// [] for a matrix, by rows or by entries: where the matrix is optional, as good as not given.
bool is_empty_matrix(const ParameterInfo& info, const ParameterValue& value) {
  const bool is_matrix =
      info.kind == ParameterKind::matrix || info.kind == ParameterKind::expression_matrix;
  if (!is_matrix) return false;
  if (const auto* const texts = std::get_if<ExpressionRows>(&value)) return texts->empty();
  const auto* const rows = std::get_if<MatrixRows>(&value);
  const auto* const entries = std::get_if<MatrixEntries>(&value);
  return (rows != nullptr && rows->empty()) || (entries != nullptr && entries->empty());
}

void check_known(Issues& issues, const PartType& type, const Parameters& parameters) {
  std::vector<std::string> names;
  for (const ParameterInfo& info : type.parameters) names.push_back(info.name);
  for (const auto& [name, value] : parameters) {
    if (name == kAllowActive || std::find(names.begin(), names.end(), name) != names.end())
      continue;
    issues.push_back(
        {"/" + name, fmt::format("{} has no such parameter.\nparameters: \"{}\".{}", type.name,
                                 fmt::join(names, "\", \""), did_you_mean(name, names))});
  }
}

}  // namespace

Issues check_parameters(const PartType& type, Parameters& parameters, bool allow_active) {
  Issues issues;
  check_known(issues, type, parameters);
  if (const auto given = parameters.find(kAllowActive); given != parameters.end()) {
    if (const bool* allowed = std::get_if<bool>(&given->second)) {
      allow_active = allow_active || *allowed;
    } else {
      issues.push_back({"/allow_active", "expected true or false, got " + describe(given->second)});
    }
  }
  parameters.insert_or_assign(std::string(kAllowActive), allow_active);
  for (const ParameterInfo& info : type.parameters) {
    const auto given = parameters.find(info.name);
    if (given != parameters.end() && info.default_value && is_empty_matrix(info, given->second)) {
      given->second = *info.default_value;
    } else if (given != parameters.end()) {
      ValueCheck(issues, info, allow_active).check_value(given->second);
    } else if (info.default_value) {
      parameters.emplace(info.name, *info.default_value);
    } else {
      issues.push_back(
          {"/" + info.name, fmt::format("is required: {}{}", info.summary,
                                        info.unit.empty() ? "" : fmt::format(" [{}]", info.unit))});
    }
  }
  return issues;
}

}  // namespace portwave

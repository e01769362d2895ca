#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "part_types.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/catalogue/catalogue_part.hpp"

namespace portwave {
namespace {

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) names.push_back(type.name);
  return names;
}

Issues check_new_type(const PartType& type) {
  Issues issues = check_part_type(type);
  if (find_part_type(type.name) != nullptr) {
    issues.insert(issues.begin(),
                  {"/name", fmt::format("there is a type {} already", in_quotes(type.name))});
  }
  return issues;
}

}  // namespace

Catalogue::Catalogue()
    : types_{
#define PORTWAVE_PART_TYPE(name) name##_type(),
#include "part_types.def"
#undef PORTWAVE_PART_TYPE
      } {
}

Catalogue& Catalogue::instance() {
  static Catalogue all;
  return all;
}

void Catalogue::add(PartType type) {
  throw_if_any(check_new_type(type));
  instance().types_.push_back(std::move(type));
}

void Catalogue::add(std::vector<PartType> types) {
  Issues issues;
  std::set<std::string_view> names;
  for (const PartType& type : types) {
    append(issues, "/" + type.name, check_new_type(type));
    if (names.insert(type.name).second) continue;
    issues.push_back({"/" + type.name, "is there twice"});
  }
  throw_if_any(std::move(issues));
  std::deque<PartType>& all = instance().types_;
  std::move(types.begin(), types.end(), std::back_inserter(all));
}

const PartType* Catalogue::find(std::string_view name) const {
  const auto found = std::find_if(types_.begin(), types_.end(),
                                  [name](const PartType& type) { return type.name == name; });
  return found == types_.end() ? nullptr : &*found;
}

const Catalogue& catalogue() { return Catalogue::instance(); }

const PartType* find_part_type(std::string_view name) { return catalogue().find(name); }

namespace {

/// Equal for equal values. Of a matrix: of its entries that are not zero, in whatever order.
std::uint64_t mark_of(const ParameterValue& value) {
  struct Visitor {
    Digest digest = {};

    std::uint64_t operator()(double number) { return std::bit_cast<std::uint64_t>(number); }
    std::uint64_t operator()(int number) { return (*this)(static_cast<double>(number)); }
    std::uint64_t operator()(bool truth) { return (*this)(truth ? 1.0 : 0.0); }
    std::uint64_t operator()(const std::string& text) {
      digest.add(text);
      return digest.value();
    }
    std::uint64_t operator()(const std::vector<double>& numbers) {
      for (const double number : numbers) digest.add(number);
      return digest.value();
    }
    std::uint64_t operator()(const MatrixRows& rows) {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = 0; j < rows[i].size(); ++j) {
          sum += mark_of_entry({static_cast<int>(i), static_cast<int>(j), rows[i][j]});
        }
      }
      return sum;
    }
    std::uint64_t operator()(const MatrixEntries& entries) {
      std::uint64_t sum = 0;
      for (const MatrixEntry& entry : entries) sum += mark_of_entry(entry);
      return sum;
    }
    std::uint64_t operator()(const ShapedMatrix& matrix) { return (*this)(matrix.entries); }
    std::uint64_t operator()(const std::vector<Port>& ports) {
      for (const Port& port : ports) {
        digest.add(port.name);
        digest.add(to_string(port.causality));
        digest.add(to_string(port.domain));
        digest.add(port.dimension);
      }
      return digest.value();
    }
    std::uint64_t operator()(const std::vector<ExternalInput>& list) {
      for (const ExternalInput& own : list) {
        digest.add(own.name);
        digest.add(own.unit);
      }
      return digest.value();
    }
    std::uint64_t operator()(const std::vector<StateVariable>& list) {
      for (const StateVariable& own : list) {
        digest.add(own.name);
        digest.add(own.unit);
      }
      return digest.value();
    }

    std::uint64_t operator()(const std::vector<std::string>& list) {
      for (const std::string& text : list) digest.add(text);
      return digest.value();
    }
    std::uint64_t operator()(const ExpressionRows& rows) {
      for (const std::vector<std::string>& row : rows) {
        digest.add(static_cast<int>(row.size()));
        for (const std::string& text : row) digest.add(text);
      }
      return digest.value();
    }
    std::uint64_t operator()(const std::vector<NamedNumber>& list) {
      for (const NamedNumber& own : list) {
        digest.add(own.name);
        digest.add(own.value);
      }
      return digest.value();
    }

    static std::uint64_t mark_of_entry(const MatrixEntry& entry) {
      if (entry.value == 0.0) return 0;
      Digest digest;
      digest.add(entry.row);
      digest.add(entry.column);
      digest.add(entry.value);
      return digest.value();
    }
  };
  return std::visit(Visitor{}, value);
}

std::uint64_t mark_of(const Parameters& parameters, std::string_view name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? 0 : mark_of(found->second);
}

}  // namespace

std::unique_ptr<Component> build_part(const PartType& type, const Parameters& parameters) {
  std::unique_ptr<Component> part = type.build(parameters);
  if (part == nullptr) return nullptr;
  BuiltFrom what{&type, {}};
  what.values.reserve(type.parameters.size() + 1);
  for (const ParameterInfo& info : type.parameters) {
    what.values.push_back(mark_of(parameters, info.name));
  }
  what.values.push_back(mark_of(parameters, "allow_active"));
  part->note_built_from(std::move(what));
  return part;
}

std::optional<Parameters> recorded_parameters(const PartType& type,
                                              std::span<const std::uint64_t> values) {
  if (values.size() != type.parameters.size() + 1) return std::nullopt;
  Parameters out;
  out.emplace("allow_active", std::bit_cast<double>(values.back()) != 0.0);
  for (std::size_t k = 0; k < type.parameters.size(); ++k) {
    const ParameterInfo& info = type.parameters[k];
    const double number = std::bit_cast<double>(values[k]);
    switch (info.kind) {
      case ParameterKind::number:
        out.emplace(info.name, number);
        break;
      case ParameterKind::integer:
        if (!(std::abs(number) <= std::numeric_limits<int>::max())) return std::nullopt;
        out.emplace(info.name, static_cast<int>(number));
        break;
      case ParameterKind::boolean:
        out.emplace(info.name, number != 0.0);
        break;
      case ParameterKind::choice: {
        const auto own = std::ranges::find_if(info.choices, [&](const std::string& choice) {
          return mark_of(ParameterValue(choice)) == values[k];
        });
        if (own == info.choices.end()) return std::nullopt;
        out.emplace(info.name, *own);
        break;
      }
      default:
        if (!info.default_value || mark_of(*info.default_value) != values[k]) return std::nullopt;
        out.emplace(info.name, *info.default_value);
    }
  }
  return out;
}

std::optional<CataloguePart> description_of(const Component& part) {
  const BuiltFrom* const built = part.built_from();
  if (built == nullptr) return std::nullopt;
  std::optional<Parameters> parameters = recorded_parameters(*built->type, built->values);
  if (!parameters) return std::nullopt;
  return CataloguePart(built->type->name, *std::move(parameters));
}

std::unique_ptr<Component> make_part(std::string_view type, Parameters parameters,
                                     bool allow_active) {
  const PartType* found = find_part_type(type);
  if (found == nullptr) {
    const std::vector<std::string> names = type_names();
    throw ConfigError("", fmt::format("there is no part type \"{}\". types: \"{}\".{}", type,
                                      fmt::join(names, "\", \""), did_you_mean(type, names)));
  }
  throw_if_any(check_parameters(*found, parameters, allow_active));
  std::unique_ptr<Component> part = build_part(*found, parameters);
  if (part == nullptr) throw ConfigError("", fmt::format("the type \"{}\" built nothing", type));
  return part;
}

ParameterInfo positive_number(std::string name, std::string unit, std::string summary) {
  ParameterInfo info = non_negative_number(std::move(name), std::move(unit), std::move(summary));
  info.minimum_excluded = true;
  return info;
}

ParameterInfo non_negative_number(std::string name, std::string unit, std::string summary) {
  ParameterInfo info;
  info.name = std::move(name);
  info.unit = std::move(unit);
  info.summary = std::move(summary);
  info.minimum = 0.0;
  return info;
}

ParameterInfo damper(std::string name, std::string unit, std::string summary) {
  ParameterInfo info = non_negative_number(std::move(name), std::move(unit), std::move(summary));
  info.default_value = 0.0;
  info.passive_only = true;
  return info;
}

void require_valid(const PartType& type, Parameters parameters, bool allow_active) {
  throw_if_any(check_parameters(type, parameters, allow_active));
}

}  // namespace portwave

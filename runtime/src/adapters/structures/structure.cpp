#include "adapters/structures/structure.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave::structures {
namespace {

using fmi::Role;

bool has_value_of_its_own(Role role) {
  return role == Role::output || role == Role::local || role == Role::calculated_parameter ||
         role == Role::independent;
}

std::optional<Variable> variable_named(const Structure& structure, const std::string& name) {
  for (std::size_t i = 0; i < structure.elements.size(); ++i) {
    const Element& element = structure.elements[i];
    if (!name.starts_with(element.name + ".")) continue;
    const std::string rest = name.substr(element.name.size() + 1);
    if (element.find(rest) != nullptr) return Variable{i, rest};
  }
  return std::nullopt;
}

}  // namespace

bool convert(Expression& value, const fmi::Unit& to) {
  if (!value.unit) return true;
  const fmi::Unit& from = *value.unit;
  // Angles count as numbers, as tools write them.
  if (!std::equal(from.powers.begin(), from.powers.end() - 1, to.powers.begin())) return false;
  const double factor = from.factor / to.factor;
  const double offset = (from.offset - to.offset) / to.factor;
  if (factor != 1.0) {
    for (Expression::Term& term : value.terms) term.factor *= factor;
    value.offset *= factor;
  }
  value.offset += offset;
  value.is_converted = value.is_converted || factor != 1.0 || offset != 0.0;
  return true;
}

std::string shown(const std::optional<fmi::Unit>& unit, const std::string& name) {
  if (!name.empty()) return printable(name);
  if (!unit) return "?";
  constexpr const char* kNames[fmi::Unit::kBases] = {"kg", "m", "s", "A", "K", "mol", "cd", "rad"};
  std::string out;
  for (std::size_t i = 0; i < fmi::Unit::kBases; ++i) {
    if (unit->powers[i] == 0) continue;
    if (!out.empty()) out += ' ';
    out += kNames[i];
    if (unit->powers[i] != 1) out += fmt::format("^{}", unit->powers[i]);
  }
  return out.empty() ? "1" : out;
}

std::optional<fmi::Unit> unit_of(const fmi::Fmu& fmu, const fmi::Variable& variable) {
  const fmi::Unit* const unit = fmu.description().unit_of(variable);
  return unit == nullptr ? std::nullopt : std::optional(*unit);
}

void open_element(Element& element, Issues& issues) {
  try {
    element.fmu = fmi::Fmu::open(element.file);
    Issues none;
    element.variables = std::make_shared<fmi::FmuVariables>(element.fmu, element.start, none);
    element.ports = element.fmu->declared_ports();
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) {
      issues.push_back({element.where, fmt::format("{}: {} {}", in_quotes(element.name),
                                                   in_quotes(element.source), issue.what)});
    }
  }
}

const fmi::Variable* find_variable(const Element& element, const std::string& name,
                                   const std::string& where, Issues& issues) {
  if (element.fmu == nullptr) return nullptr;
  const fmi::Variable* const found = element.find(name);
  if (found == nullptr) {
    if (const std::string defect = element.variables->element_defect(name); !defect.empty()) {
      issues.push_back({where, fmt::format("{}: {}", in_quotes(element.name), defect)});
      return nullptr;
    }
    std::vector<std::string> names;
    for (const fmi::Variable& own : element.fmu->description().variables) names.push_back(own.name);
    issues.push_back({where, fmt::format("{} has no variable {}.{}", in_quotes(element.name),
                                         in_quotes(name), did_you_mean(name, names))});
    return nullptr;
  }
  if (!found->is_array && fmi::is_number(found->type)) return found;
  issues.push_back(
      {where,
       fmt::format("{} of {} is {}, and connections carry single numbers", in_quotes(name),
                   in_quotes(element.name),
                   found->is_array ? "an array, whose elements are named as in \"" + name + "[1]\""
                   : found->type == fmi::VariableType::text ? "a text"
                                                            : "neither number nor text")});
  return nullptr;
}

void take_noted_bonds(Structure& structure, const std::string& where, Issues& issues) {
  const auto fail = [&](std::string what) { issues.push_back({where, std::move(what)}); };
  for (const char* const key : {"bonds", "not_bonds"}) {
    const auto noted = structure.own.find(key);
    if (noted == structure.own.end()) continue;
    auto& pairs = std::string_view(key) == "bonds" ? structure.bonds : structure.not_bonds;
    for (const Json& own : *noted) {
      std::vector<Variable> pair;
      for (const Json& end : own) {
        const auto name = end.get<std::string>();
        if (const auto found = variable_named(structure, name)) {
          pair.push_back(*found);
        } else {
          fail(fmt::format("\"{}\": there is no variable {}", key, in_quotes(name)));
        }
      }
      if (pair.size() == 2) pairs.emplace_back(pair[0], pair[1]);
    }
    structure.own.erase(key);
  }
}

std::optional<Expression> Connector::output(std::size_t element, const std::string& variable,
                                            const std::string& where) {
  const Element& own = structure_.elements[element];
  const fmi::Variable* const found = find_variable(own, variable, where, issues_);
  if (found == nullptr) return std::nullopt;
  if (!has_value_of_its_own(found->role)) {
    issues_.push_back(
        {where, fmt::format("{} of {} is {}: a connection starts at an output", in_quotes(variable),
                            in_quotes(own.name),
                            found->role == Role::input ? "an input" : "a parameter")});
    return std::nullopt;
  }
  Expression out;
  out.terms.push_back({{Source::Kind::output, element, variable}, 1.0});
  out.unit = unit_of(*own.fmu, *found);
  out.unit_name = found->unit;
  out.where = where;
  return out;
}

void Connector::connect(std::size_t element, const std::string& variable, Expression value,
                        const std::string& where) {
  Element& own = structure_.elements[element];
  const fmi::Variable* const found = find_variable(own, variable, where, issues_);
  if (found == nullptr) return;
  value.where = where;
  if (found->role == Role::parameter || found->role == Role::structural_parameter) {
    if (value.is_constant()) {
      own.start.insert_or_assign(variable, value.offset);
      return;
    }
    issues_.push_back(
        {where, fmt::format("{} of {} is a parameter: it takes a value before the "
                            "run, and none from {}",
                            in_quotes(variable), in_quotes(own.name),
                            value.terms.front().source.kind == Source::Kind::input ? "an input"
                                                                                   : "an output")});
    return;
  }
  if (found->role != Role::input) {
    issues_.push_back({where, fmt::format("{} of {} is no input: a connection ends at an input",
                                          in_quotes(variable), in_quotes(own.name))});
    return;
  }
  if (value.is_constant()) {  // no tool sends it at each step
    own.start.insert_or_assign(variable, value.offset);
    return;
  }
  if (!own.inputs.emplace(variable, std::move(value)).second) {
    issues_.push_back({where, fmt::format("{} of {} is connected already", in_quotes(variable),
                                          in_quotes(own.name))});
  }
}

}  // namespace portwave::structures

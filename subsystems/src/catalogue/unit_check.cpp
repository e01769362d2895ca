#include "catalogue/unit_check.hpp"

#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/units.hpp"
#include "portwave/subsystems/core/port.hpp"

namespace portwave {
namespace {
namespace unit_check {

/// A quantity with its unit, as far as that says something.
struct Quantity {
  std::string name, text;
  std::optional<Unit> unit;

  Quantity(std::string own_name, std::string own_text)
      : name(std::move(own_name)), text(std::move(own_text)) {
    if (!text.empty() && text != "-" && text != "1") unit = parse_unit(text);
  }
};

/// The inputs of the scalar ports, then the external ones.
std::vector<Quantity> inputs_of(const Signature& signature) {
  std::vector<Quantity> out;
  for (const Port& port : signature.ports) {
    const DomainUnits own = units(port.domain);
    const bool takes_effort = port.causality == Causality::effort_in;
    for (int i = 0; i < port.dimension; ++i) {
      out.emplace_back(
          fmt::format("the {} of port {}", takes_effort ? "effort" : "flow", in_quotes(port.name)),
          std::string(takes_effort ? own.effort : own.flow));
    }
  }
  for (const ExternalInput& input : signature.inputs)
    out.emplace_back("input " + in_quotes(input.name), input.unit);
  return out;
}

/// "/J/0/1", whose number is `value` and whose unit is `unit`; `of` says what it leads from and to.
void see_entry(std::string where, double value, const Unit& unit, const std::string& of,
               Issues& issues) {
  if (std::abs(value) != 1.0) return;
  const UnitRelation own = relation(unit, Unit{});
  if (own.converts()) return;
  const std::string remedy =
      own.is_same_dimension
          ? fmt::format("in these units it is {:.6g}", value / own.factor)
          : fmt::format(
                "correct a unit, or name a constant of that unit in \"constants\" and write "
                "{} there",
                value > 0.0 ? "its name" : "minus its name");
  issues.push_back(
      {std::move(where), fmt::format("a plain {:g} does not lead from {}: {}", value, of, remedy)});
}

}  // namespace unit_check
}  // namespace

Issues check_unit_names(const Signature& signature) {
  Issues issues;
  const auto see = [&](const std::string& where, const std::string& unit) {
    if (unit == "-" || parse_unit(unit)) return;
    const std::string near = nearest_unit(unit);
    issues.push_back(
        {where,
         fmt::format("the unit {} is not known.{} Units are products such as \"kg m/s\", "
                     "\"N m/rad\" or \"C\"; \"\" is none",
                     in_quotes(unit),
                     near.empty() ? "" : fmt::format(" Did you mean {}?", in_quotes(near)))});
  };
  for (std::size_t i = 0; i < signature.states.size(); ++i)
    see(fmt::format("/states/{}/unit", i), signature.states[i].unit);
  for (std::size_t i = 0; i < signature.inputs.size(); ++i)
    see(fmt::format("/inputs/{}/unit", i), signature.inputs[i].unit);
  return issues;
}

Issues check_matrix_units(const Signature& signature, const std::vector<PlainEntry>& J,
                          const std::vector<PlainEntry>& G) {
  using unit_check::Quantity;
  Issues issues;
  const Unit second = *parse_unit("s"), joule_second = *parse_unit("J s");
  std::vector<Quantity> states;
  for (const StateVariable& own : signature.states)
    states.emplace_back(std::string(printable(own.name)), own.unit);
  const std::vector<Quantity> inputs = unit_check::inputs_of(signature);
  for (const PlainEntry& own : J) {
    const Quantity &to = states[at(own.row)], &from = states[at(own.column)];
    if (own.row > own.column || !to.unit || !from.unit) continue;  // J is skew: once
    unit_check::see_entry(
        fmt::format("/J/{}/{}", own.row, own.column), own.value,
        product(product(*to.unit, *from.unit), joule_second, -1),
        fmt::format("dH/d{} in J/({}) to d{}/dt in {}/s", from.name, from.text, to.name, to.text),
        issues);
  }
  for (const PlainEntry& own : G) {
    const Quantity &to = states[at(own.row)], &from = inputs[at(own.column)];
    if (!to.unit || !from.unit) continue;
    unit_check::see_entry(
        fmt::format("/G/{}/{}", own.row, own.column), own.value,
        product(product(*to.unit, second, -1), *from.unit, -1),
        fmt::format("{} in {} to d{}/dt in {}/s", from.name, from.text, to.name, to.text), issues);
  }
  return issues;
}

}  // namespace portwave

#include "adapters/structures/ssp_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave::structures {

using namespace files;
namespace {

constexpr std::string_view kWholeNumbers[] = {"Integer", "Int8",   "UInt8", "Int16", "UInt16",
                                              "Int32",   "UInt32", "Int64", "UInt64"};

bool is_real(std::string_view kind) {
  return kind == "Real" || kind == "Float64" || kind == "Float32";
}
bool is_whole(std::string_view kind) {
  return std::ranges::find(kWholeNumbers, kind) != std::end(kWholeNumbers);
}

/// The number behind a name of an <Enumeration>.
std::optional<double> item_of(pugi::xml_node set, const std::string& enumeration,
                              const std::string& item) {
  for (const pugi::xml_node own : children(child(set, "Enumerations"), "Enumeration")) {
    if (!enumeration.empty() && attribute(own, "name") != enumeration) continue;
    for (const pugi::xml_node entry : children(own, "Item")) {
      if (attribute(entry, "name") == item) return number_in(attribute(entry, "value"));
    }
  }
  return std::nullopt;
}

}  // namespace

double Transformation::of(double value) const {
  const auto found = std::ranges::find(points, value, &std::pair<double, double>::first);
  return found != points.end() ? found->second : factor * value + offset;
}

std::string ReadingOf::required(pugi::xml_node at, const char* name) const {
  std::string value = attribute(at, name);
  if (value.empty()) fail(at, fmt::format("<{}> has no {}", local_name(at), name));
  return value;
}

double ReadingOf::number(pugi::xml_node at, const char* name, double otherwise) const {
  const auto given = at.attribute(name);
  if (!given) return otherwise;
  const auto value = number_in(given.value());
  if (value && std::isfinite(*value)) return *value;
  fail(at, fmt::format("{} of <{}> must be a finite number, got {}", name, local_name(at),
                       in_quotes(given.value())));
  return otherwise;
}

bool ReadingOf::truth(pugi::xml_node at, const char* name, bool otherwise) const {
  const auto given = at.attribute(name);
  if (!given) return otherwise;
  const auto value = truth_in(given.value());
  if (!value) {
    fail(at, fmt::format("{} of <{}> must be true or false, got {}", name, local_name(at),
                         in_quotes(given.value())));
  }
  return value.value_or(otherwise);
}

void read_units(pugi::xml_node list, const ReadingOf& reading, Units& units) {
  constexpr const char* kNames[fmi::Unit::kBases] = {"kg", "m", "s", "A", "K", "mol", "cd", "rad"};
  for (const pugi::xml_node own : children(list, "Unit")) {
    fmi::Unit unit{.name = reading.required(own, "name")};
    const pugi::xml_node base = child(own, "BaseUnit");
    if (!base) continue;
    unit.is_known = true;
    for (std::size_t i = 0; i < fmi::Unit::kBases; ++i) {
      const double power = reading.number(base, kNames[i], 0.0);
      if (power != std::round(power) || std::abs(power) > 100.0) {
        reading.fail(base,
                     fmt::format("{} of unit {} must be a whole number from -100 to 100, got {}",
                                 kNames[i], in_quotes(unit.name), power));
        continue;
      }
      unit.powers[i] = static_cast<int>(power);
    }
    unit.factor = reading.number(base, "factor", 1.0);
    unit.offset = reading.number(base, "offset", 0.0);
    if (unit.factor == 0.0) {
      reading.fail(own, fmt::format("the factor of unit {} is 0", in_quotes(unit.name)));
      continue;
    }
    units.insert_or_assign(unit.name, unit);
  }
}

std::vector<NamedParameter> read_parameter_set(pugi::xml_node set, const ReadingOf& reading,
                                               const Units& outer) {
  Units units = outer;
  read_units(child(set, "Units"), reading, units);
  std::vector<NamedParameter> out;
  for (const pugi::xml_node own : children(child(set, "Parameters"), "Parameter")) {
    NamedParameter parameter{reading.required(own, "name"), {}};
    parameter.value.where = reading.file.place(own);
    pugi::xml_node type;
    for (const pugi::xml_node part : children(own)) {
      const std::string_view kind = local_name(part);
      if (kind != "Annotations" && kind != "MetaData" && kind != "Signature") type = part;
    }
    if (!type) {
      reading.fail(own, fmt::format("the parameter {} has no value", in_quotes(parameter.name)));
      continue;
    }
    const std::string_view kind = local_name(type);
    const std::string text = attribute(type, "value");
    std::optional<FmuValue> value;
    if (is_real(kind) || is_whole(kind)) {
      if (const auto number = number_in(text)) value = *number;
      const std::string unit = attribute(type, "unit");
      parameter.value.unit_name = unit;
      if (const auto known = units.find(unit); known != units.end()) {
        parameter.value.unit = known->second;
      } else if (!unit.empty() && child(set, "Units")) {
        std::vector<std::string> names;
        for (const auto& [name, ignored] : units) names.push_back(name);
        reading.fail(
            type,
            fmt::format("the unit {} of the parameter {} is not among the <Units>.{}",
                        in_quotes(unit), in_quotes(parameter.name), did_you_mean(unit, names)));
        continue;
      }
    } else if (kind == "Boolean") {
      if (const auto truth = truth_in(text)) value = *truth ? 1.0 : 0.0;
    } else if (kind == "String") {
      value = text;
    } else if (kind == "Enumeration") {
      const auto number = number_in(text);
      const auto item = number ? number : item_of(set, attribute(type, "name"), text);
      if (item) value = *item;
    } else {
      reading.fail(type, fmt::format("the parameter {} is a <{}>, which is not taken",
                                     in_quotes(parameter.name), printable(type.name())));
      continue;
    }
    if (!value) {
      reading.fail(type, fmt::format("the value of parameter {} must be one {}, got {}",
                                     in_quotes(parameter.name),
                                     kind == "Boolean"       ? "truth value"
                                     : kind == "Enumeration" ? "number or a name that is declared"
                                                             : "number",
                                     in_quotes(text)));
      continue;
    }
    parameter.value.value = *std::move(value);
    out.push_back(std::move(parameter));
  }
  return out;
}

std::vector<NamedParameter> map_parameters(pugi::xml_node mapping, const ReadingOf& reading,
                                           const std::vector<NamedParameter>& parameters) {
  std::vector<NamedParameter> out;
  for (const pugi::xml_node own : children(mapping, "MappingEntry")) {
    const std::string source = attribute(own, "source");
    if (!own.attribute("source")) reading.fail(own, "<MappingEntry> has no source");
    if (source.empty()) continue;  // tools list what might be mapped
    const std::string target = reading.required(own, "target");
    const Transformation transformation = read_transformation(own, reading);
    const bool keeps_unit = !reading.truth(own, "suppressUnitConversion", false);
    bool is_found = false;
    for (const NamedParameter& parameter : parameters) {
      if (parameter.name != source) continue;
      is_found = true;
      NamedParameter mapped{target, parameter.value};
      mapped.value.then = transformation;
      if (!keeps_unit) {
        mapped.value.unit.reset();
        mapped.value.unit_name.clear();
      }
      out.push_back(std::move(mapped));
    }
    if (!is_found) {
      std::vector<std::string> names;
      for (const NamedParameter& parameter : parameters) names.push_back(parameter.name);
      reading.notes.push_back(
          {reading.file.place(own), fmt::format("there is no parameter {} to map.{}",
                                                in_quotes(source), did_you_mean(source, names))});
    }
  }
  return out;
}

Transformation read_transformation(pugi::xml_node at, const ReadingOf& reading) {
  Transformation out;
  for (const pugi::xml_node own : children(at)) {
    const std::string_view kind = local_name(own);
    if (kind == "LinearTransformation") {
      out.factor = reading.number(own, "factor", 1.0);
      out.offset = reading.number(own, "offset", 0.0);
    } else if (kind == "BooleanMappingTransformation") {
      double at_false = 0.0, at_true = 1.0;
      for (const pugi::xml_node entry : children(own, "MapEntry")) {
        const bool target = reading.truth(entry, "target", false);
        (reading.truth(entry, "source", false) ? at_true : at_false) = target ? 1.0 : 0.0;
      }
      out.factor = at_true - at_false;
      out.offset = at_false;
    } else if (kind == "IntegerMappingTransformation") {
      for (const pugi::xml_node entry : children(own, "MapEntry")) {
        out.points.emplace_back(reading.number(entry, "source", 0.0),
                                reading.number(entry, "target", 0.0));
      }
      std::ranges::sort(out.points);
      const bool is_function =
          std::ranges::adjacent_find(out.points, {}, &std::pair<double, double>::first) ==
          out.points.end();
      if (out.points.size() < 2 || !is_function) {
        reading.fail(own,
                     "an IntegerMappingTransformation needs two entries or more, of different "
                     "sources");
        out.points.clear();
      }
    } else if (kind == "EnumerationMappingTransformation") {
      reading.fail(own,
                   "an EnumerationMappingTransformation is not taken: map the numbers by an "
                   "IntegerMappingTransformation");
    }
  }
  return out;
}

std::optional<fmi::Unit> read_type_unit(pugi::xml_node at, const ReadingOf& reading,
                                        const Units& units, std::string& name) {
  for (const pugi::xml_node own : children(at)) {
    if (!is_real(local_name(own))) continue;
    name = attribute(own, "unit");
    if (name.empty()) return std::nullopt;
    const auto found = units.find(name);
    if (found != units.end()) return found->second;
    if (units.empty()) return std::nullopt;  // tools that give names alone
    std::vector<std::string> names;
    for (const auto& [known, unit] : units) names.push_back(known);
    reading.fail(at, fmt::format("the unit {} is not among the <Units>.{}", in_quotes(name),
                                 did_you_mean(name, names)));
  }
  return std::nullopt;
}

}  // namespace portwave::structures

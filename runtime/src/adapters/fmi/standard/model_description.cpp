#include "adapters/fmi/standard/model_description.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <pugixml.hpp>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "adapters/files/xml_file.hpp"
#include "adapters/fmi/standard/description_rules.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

using pugi::xml_node;

constexpr std::size_t kMostVariables = 1'000'000;
constexpr std::size_t kMostClocks = 64;  // bits of a mask

struct TypeName {
  std::string_view word;
  VariableType type;
};

constexpr TypeName kTypes2[] = {{"Real", VariableType::float64},
                                {"Integer", VariableType::int32},
                                {"Enumeration", VariableType::int32},
                                {"Boolean", VariableType::boolean},
                                {"String", VariableType::text}};
constexpr TypeName kTypes3[] = {
    {"Float64", VariableType::float64},   {"Float32", VariableType::float32},
    {"Int8", VariableType::int8},         {"UInt8", VariableType::uint8},
    {"Int16", VariableType::int16},       {"UInt16", VariableType::uint16},
    {"Int32", VariableType::int32},       {"UInt32", VariableType::uint32},
    {"Int64", VariableType::int64},       {"UInt64", VariableType::uint64},
    {"Enumeration", VariableType::int64}, {"Boolean", VariableType::boolean},
    {"String", VariableType::text},       {"Binary", VariableType::other},
    {"Clock", VariableType::clock}};

/// A whole number that fits; nothing if it is none.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<VariableType> type_of(std::span<const TypeName> types, std::string_view word) {
  const auto found = std::ranges::find(types, word, &TypeName::word);
  if (found == types.end()) return std::nullopt;
  return found->type;
}

std::optional<Role> role_of(std::string_view word) {
  constexpr std::pair<std::string_view, Role> kRoles[] = {
      {"", Role::local},
      {"local", Role::local},
      {"parameter", Role::parameter},
      {"structuralParameter", Role::structural_parameter},
      {"calculatedParameter", Role::calculated_parameter},
      {"input", Role::input},
      {"output", Role::output},
      {"independent", Role::independent},
      {"dependent", Role::local}};
  const auto found = std::ranges::find(kRoles, word, &std::pair<std::string_view, Role>::first);
  if (found == std::end(kRoles)) return std::nullopt;
  return found->second;
}

class Reader {
 public:
  explicit Reader(std::string_view xml) : file_(std::string(kFile), std::string(xml)) {}

  ModelDescription read() {
    const xml_node root = file_.root();
    if (std::string_view(root.name()) != "fmiModelDescription")
      throw ConfigError("", fmt::format("{} holds no fmiModelDescription", kFile));
    read_version(root);
    out_.name = required(root, "modelName");
    out_.token = required(root, out_.version == Version::v2 ? "guid" : "instantiationToken");
    out_.tool = root.attribute("generationTool").value();
    read_co_simulation(root);
    read_units(root);
    read_types(root);
    const xml_node experiment = root.child("DefaultExperiment");
    if (experiment.attribute("stepSize")) out_.usual_step_s = positive(experiment, "stepSize");
    out_.usual_stop_s = files::number_in(experiment.attribute("stopTime").value());
    read_variables(root);
    if (out_.version == Version::v3) expect_references_of_one();
    check_schema(root);
    throw_if_any(std::move(issues_));
    return std::move(out_);
  }

 private:
  static constexpr std::string_view kFile = "modelDescription.xml";

  void fail(xml_node at, std::string_view what) {
    constexpr std::size_t kMost = 50;
    if (issues_.size() < kMost)
      issues_.push_back({"", fmt::format("{}: {}", file_.place(at), what)});
  }
  std::string required(xml_node node, const char* attribute) {
    const std::string value = node.attribute(attribute).value();
    if (value.empty()) fail(node, fmt::format("<{}> has no {}", node.name(), attribute));
    return value;
  }
  /// Nothing where it is not given, or is no number: that is noted.
  std::optional<double> number_of(xml_node node, const char* name) {
    const auto given = node.attribute(name);
    if (!given) return std::nullopt;
    const auto value = files::number_in(given.value());
    if (value && std::isfinite(*value)) return value;
    fail(node, fmt::format("{} of <{}> must be a finite number, got {}", name, node.name(),
                           in_quotes(given.value())));
    return std::nullopt;
  }
  std::optional<double> positive(xml_node node, const char* name) {
    const auto value = number_of(node, name);
    if (!value || *value > 0.0) return value;
    fail(node, fmt::format("{} of <{}> must be a number above 0, got {}", name, node.name(),
                           in_quotes(node.attribute(name).value())));
    return std::nullopt;
  }
  bool flag(xml_node node, const char* name) {
    const auto given = node.attribute(name);
    const auto truth = files::truth_in(given.value());
    if (given && !truth) {
      fail(node, fmt::format("{} of <{}> must be true or false, got {}", name, node.name(),
                             in_quotes(given.value())));
    }
    return truth.value_or(false);
  }

  void read_version(xml_node root) {
    const std::string version = root.attribute("fmiVersion").value();
    if (version == "2.0") {
      out_.version = Version::v2;
    } else if (version == "3.0" || version.starts_with("3.0.")) {
      out_.version = Version::v3;
    } else if (version.starts_with("1.")) {
      throw ConfigError(
          "",
          "is an FMU of FMI 1.0, which cannot say that it goes back: FMI 2.0 or 3.0 is needed."
          "\nMost tools export both; choose \"FMI 2.0, co-simulation\"");
    } else {
      throw ConfigError(
          "", fmt::format("{}: fmiVersion must be 2.0 or 3.0, got {}", kFile, in_quotes(version)));
    }
  }

  void read_co_simulation(xml_node root) {
    const xml_node own = root.child("CoSimulation");
    if (!own) {
      const char* const other = root.child("ModelExchange") ? "is for model exchange only"
                                : root.child("ScheduledExecution")
                                    ? "is for scheduled execution only"
                                    : "has no <CoSimulation>";
      throw ConfigError("", fmt::format("{}: co-simulation is needed.\nExport the model as "
                                        "\"co-simulation\", with a solver inside",
                                        other));
    }
    constexpr std::size_t kLongest = 200;  // of a name of a file
    out_.library = required(own, "modelIdentifier");
    const bool is_plain = std::ranges::all_of(out_.library, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
    });
    if (!is_plain || out_.library.starts_with('.') || out_.library.size() > kLongest) {
      fail(own, fmt::format("modelIdentifier must be the name of a file, got {}",
                            in_quotes(out_.library)));
    }
    out_.needs_tool = flag(own, "needsExecutionTool");
    out_.saves_state =
        flag(own, out_.version == Version::v2 ? "canGetAndSetFMUstate" : "canGetAndSetFMUState");
    const bool is_2 = out_.version == Version::v2;
    out_.writes_state =
        flag(own, is_2 ? "canSerializeFMUstate" : "canSerializeFMUState") && out_.saves_state;
    out_.is_only_once = flag(own, "canBeInstantiatedOnlyOncePerProcess");
    out_.takes_any_step = flag(own, "canHandleVariableCommunicationStepSize");
    if (out_.version == Version::v3) {
      out_.has_event_mode = flag(own, "hasEventMode");
      out_.might_return_early = flag(own, "mightReturnEarlyFromDoStep");
      out_.provides_intermediate = flag(own, "providesIntermediateUpdate");
    }
    out_.internal_step_s = positive(own, "fixedInternalStepSize");
  }

  void read_units(xml_node root) {
    constexpr const char* kNames[Unit::kBases] = {"kg", "m", "s", "A", "K", "mol", "cd", "rad"};
    for (const xml_node node : root.child("UnitDefinitions").children("Unit")) {
      Unit unit{.name = required(node, "name")};
      if (const xml_node base = node.child("BaseUnit")) {
        unit.is_known = true;
        for (std::size_t k = 0; k < Unit::kBases; ++k) {
          const auto given = base.attribute(kNames[k]);
          const auto power = whole_number<int>(given.value());
          if (given && !power) {
            fail(base, fmt::format("the power of {} in unit {} must be a whole number, got {}",
                                   kNames[k], in_quotes(unit.name), in_quotes(given.value())));
          }
          unit.powers[k] = power.value_or(0);
        }
        unit.factor = number_of(base, "factor").value_or(1.0);
        unit.offset = number_of(base, "offset").value_or(0.0);
        if (unit.factor == 0.0)
          fail(base, fmt::format("the factor of unit {} is 0", in_quotes(unit.name)));
      }
      for (const xml_node shown : node.children("DisplayUnit")) {
        unit.display_units.push_back(
            {required(shown, "name"), number_of(shown, "factor").value_or(1.0),
             number_of(shown, "offset").value_or(0.0), flag(shown, "inverse")});
        if (unit.display_units.back().factor == 0.0)
          fail(shown, fmt::format("the factor of unit {} is 0",
                                  in_quotes(shown.attribute("name").value())));
      }
      if (out_.units.emplace(unit.name, unit).first->second != unit)
        fail(node, fmt::format("there is another unit {}", in_quotes(unit.name)));
    }
  }

  /// Types that variables name, and take units and limits from.
  void read_types(xml_node root) {
    for (const xml_node node : root.child("TypeDefinitions").children()) {
      types_.emplace(node.attribute("name").value(),
                     out_.version == Version::v2 ? node.first_child() : node);
    }
  }

  void read_variables(xml_node root) {
    const xml_node list = root.child("ModelVariables");
    if (!list) return fail(root, "there is no <ModelVariables>");
    std::set<std::string, std::less<>> names;
    for (const xml_node node : list.children()) {
      if (node.type() != pugi::node_element) continue;
      if (out_.variables.size() >= kMostVariables) {
        return fail(node, fmt::format("there are more than {} variables", kMostVariables));
      }
      std::optional<Variable> variable =
          out_.version == Version::v2 ? read_variable_2(node) : read_variable_3(node);
      if (!variable) continue;
      if (!names.insert(variable->name).second) {
        fail(node, fmt::format("there are two variables {}", in_quotes(variable->name)));
        continue;
      }
      if (variable->type == VariableType::clock) add_clock(node, *variable);
      for (const xml_node own : node.children("Alias")) {
        const std::string alias = required(own, "name");
        if (!alias.empty() && !names.insert(alias).second)
          fail(own, fmt::format("there are two variables {}", in_quotes(alias)));
        out_.aliases.emplace(alias, out_.variables.size());
      }
      out_.variables.push_back(*std::move(variable));
      elements_.push_back(node);
    }
    for (std::size_t i = 0; i < out_.variables.size(); ++i) {
      if (elements_[i].attribute("clocks")) find_clocks(elements_[i], out_.variables[i]);
    }
  }

  /// FMI 2 has several variables of one reference for one value; FMI 3 has aliases for that, and a reference is of one
  /// variable, whatever its type: which of two is set and read would be anybody's guess.
  void expect_references_of_one() {
    std::map<Reference, std::size_t> known;
    for (std::size_t i = 0; i < out_.variables.size(); ++i) {
      const Variable& own = out_.variables[i];
      const auto [first, is_new] = known.emplace(own.reference, i);
      if (is_new) continue;
      fail(elements_[i],
           fmt::format(
               "variables {} and {} have the same valueReference, {}: in FMI 3 each has its "
               "own, and other names of one are <Alias> elements",
               in_quotes(out_.variables[first->second].name), in_quotes(own.name), own.reference));
    }
  }
  /// What was found amiss in a line already is not told twice.
  void check_schema(xml_node root) {
    const Issues known = issues_;
    check_description(root, out_.version, [&](xml_node at, const std::string& what) {
      const std::string place = file_.place(at) + ":";
      const bool is_known =
          std::ranges::any_of(known, [&](const Issue& own) { return own.what.starts_with(place); });
      if (!is_known) fail(at, what);
    });
  }

  void add_clock(xml_node node, Variable& variable) {
    if (out_.clocks.size() >= kMostClocks) {
      return fail(node, fmt::format("there are more than {} clocks", kMostClocks));
    }
    variable.clocks = ClockMask{1} << out_.clocks.size();
    Clock clock{.name = variable.name, .reference = variable.reference, .role = variable.role};
    clock.variability = node.attribute("intervalVariability").value();
    const auto resolution = positive(node, "resolution");
    if (node.attribute("intervalDecimal")) {
      clock.interval_s = positive(node, "intervalDecimal");
    } else if (const auto counter = positive(node, "intervalCounter"); counter && resolution) {
      clock.interval_s = *counter / *resolution;
    }
    if (const auto decimal = number_of(node, "shiftDecimal")) {
      clock.shift_s = *decimal;
    } else if (const auto counted = number_of(node, "shiftCounter"); counted && resolution) {
      clock.shift_s = *counted / *resolution;
    }
    if (clock.shift_s < 0.0) {
      fail(node, fmt::format("the shift of clock {} must not be below 0, got {}",
                             in_quotes(variable.name), clock.shift_s));
    }
    out_.clocks.push_back(std::move(clock));
  }
  /// The clocks that a variable names, by reference.
  void find_clocks(xml_node node, Variable& variable) {
    std::istringstream in(node.attribute("clocks").value());
    for (std::string word; in >> word;) {
      const auto reference = whole_number<Reference>(word);
      const auto found = reference ? std::ranges::find(out_.clocks, *reference, &Clock::reference)
                                   : out_.clocks.end();
      if (found == out_.clocks.end()) {
        fail(node, fmt::format("variable {} is of the clock {}, which there is not",
                               in_quotes(variable.name), in_quotes(word)));
      } else if (variable.type != VariableType::clock) {
        variable.clocks |= ClockMask{1} << (found - out_.clocks.begin());
      }
    }
  }
  void read_dimensions(xml_node node, Variable& variable) {
    for (const xml_node own : node.children("Dimension")) {
      Dimension dimension;
      const auto start = own.attribute("start"), parameter = own.attribute("valueReference");
      const auto size = whole_number<std::uint64_t>(start.value());
      dimension.parameter = whole_number<Reference>(parameter.value());
      dimension.size = size.value_or(0);
      if (size.has_value() == dimension.parameter.has_value()) {
        fail(own, fmt::format("a dimension of variable {} must have a size, \"start\", or the "
                              "\"valueReference\" of a structural parameter",
                              in_quotes(variable.name)));
      }
      variable.dimensions.push_back(dimension);
    }
    variable.is_array = !variable.dimensions.empty();
  }

  std::optional<Variable> read_variable_2(xml_node node) {
    if (std::string_view(node.name()) != "ScalarVariable") {
      fail(node, fmt::format("<{}> among the variables", printable(node.name())));
      return std::nullopt;
    }
    xml_node details;
    std::optional<VariableType> type;
    for (const xml_node child : node.children()) {
      if (const auto own = type_of(kTypes2, child.name())) {
        type = own;
        details = child;
      }
    }
    if (!type) {
      fail(node, fmt::format("variable {} has no type", in_quotes(node.attribute("name").value())));
      return std::nullopt;
    }
    return read_common(node, details, *type);
  }
  std::optional<Variable> read_variable_3(xml_node node) {
    const auto type = type_of(kTypes3, node.name());
    if (!type) {
      fail(node, fmt::format("<{}> is no type of a variable", printable(node.name())));
      return std::nullopt;
    }
    auto variable = read_common(node, node, *type);
    if (!variable) return variable;
    read_dimensions(node, *variable);
    variable->is_within = flag(node, "intermediateUpdate");
    return variable;
  }

  std::optional<Variable> read_common(xml_node node, xml_node details, VariableType type) {
    Variable out{.name = required(node, "name"), .type = type};
    if (out.name.empty()) return std::nullopt;
    const std::string_view reference = node.attribute("valueReference").value();
    const auto number = whole_number<Reference>(reference);
    const auto role = role_of(node.attribute("causality").value());
    if (!number) {
      fail(node, fmt::format("the valueReference of variable {} must be a whole number, got {}",
                             in_quotes(out.name), in_quotes(reference)));
      return std::nullopt;
    }
    if (!role) {
      fail(node, fmt::format("variable {} has the unknown causality {}", in_quotes(out.name),
                             in_quotes(node.attribute("causality").value())));
      return std::nullopt;
    }
    out.reference = *number;
    out.role = *role;
    const std::string_view variability = node.attribute("variability").value();
    const bool is_real = type == VariableType::float64 || type == VariableType::float32;
    out.is_constant = variability == "constant";
    out.is_tunable = out.role == Role::parameter && variability == "tunable";
    // In event mode tunable parameters are set as discrete inputs are.
    out.is_discrete = variability.empty() ? !is_real : variability == "discrete" || out.is_tunable;
    out.has_start = !details.attribute("start").empty();
    out.start = details.attribute("start").value();
    out.derivative_of = whole_number<std::uint32_t>(details.attribute("derivative").value());
    for (const xml_node note : node.child("Annotations")) {
      const std::string_view whose =
          note.attribute(note.attribute("name") ? "name" : "type").value();
      out.is_mean = out.is_mean || (whose == kNoteOfMeans.first && note.child(kNoteOfMeans.second));
    }
    const auto declared = types_.find(details.attribute("declaredType").value());
    const auto detail = [&](const char* name) -> std::string_view {
      const auto own = details.attribute(name);
      return own || declared == types_.end() ? own.value()
                                             : declared->second.attribute(name).value();
    };
    out.unit = detail("unit");
    out.least = files::number_in(detail("min"));
    out.most = files::number_in(detail("max"));
    return out;
  }

  files::XmlFile file_;
  ModelDescription out_;
  std::map<std::string, xml_node, std::less<>> types_;  ///< details of types by name
  std::vector<xml_node> elements_;                      ///< the element of each variable
  Issues issues_;
};

struct DomainUnit {
  Domain domain;
  Unit effort, flow;
};

Unit si(std::string name, std::array<int, Unit::kBases> powers) {
  return {std::move(name), powers, 1.0, 0.0, true};
}

const std::array<DomainUnit, 6>& domain_units() {
  // kg, m, s, A, K, mol, cd, rad
  static const std::array<DomainUnit, 6> all = {{
      {Domain::translation, si("N", {1, 1, -2}), si("m/s", {0, 1, -1})},
      {Domain::rotation, si("N m", {1, 2, -2}), si("rad/s", {0, 0, -1, 0, 0, 0, 0, 1})},
      {Domain::electrical, si("V", {1, 2, -3, -1}), si("A", {0, 0, 0, 1})},
      {Domain::magnetic, si("A", {0, 0, 0, 1}), si("Wb/s", {1, 2, -3, -1})},
      {Domain::hydraulic, si("Pa", {1, -1, -2}), si("m^3/s", {0, 3, -1})},
      {Domain::thermal, si("K", {0, 0, 0, 0, 1}), si("W/K", {1, 2, -3, 0, -1})},
  }};
  return all;
}

/// Angles count as numbers: a tool may write a speed of rotation in 1/s or rad/s.
bool are_alike(const Unit& a, const Unit& b) {
  return std::equal(a.powers.begin(), a.powers.end() - 1, b.powers.begin());
}

const Unit& unit_of_domain(Domain domain, Unit DomainUnit::*side) {
  static const Unit kNone;
  for (const DomainUnit& own : domain_units()) {
    if (own.domain == domain) return own.*side;
  }
  return kNone;
}

/// The only variable below an element; empty: there is none, or there are several.
std::string only_variable(xml_node element) {
  const xml_node variable = element.child("Variable");
  if (!variable || variable.next_sibling("Variable")) return {};
  return variable.attribute("ref").value();
}

}  // namespace

const Variable* ModelDescription::find(std::string_view wanted) const {
  const auto found = std::ranges::find(variables, wanted, &Variable::name);
  if (found != variables.end()) return &*found;
  const auto alias = aliases.find(wanted);
  return alias == aliases.end() ? nullptr : &variables[alias->second];
}

const Variable* ModelDescription::integral_of(const Variable& variable) const {
  if (!variable.derivative_of) return nullptr;
  if (version == Version::v3) {
    const auto found = std::ranges::find(variables, *variable.derivative_of, &Variable::reference);
    return found == variables.end() ? nullptr : &*found;
  }
  const std::size_t place = *variable.derivative_of;
  return place == 0 || place > variables.size() ? nullptr : &variables[place - 1];
}

std::vector<std::string> ModelDescription::names(bool (*wanted)(const Variable&)) const {
  std::vector<std::string> out;
  for (const Variable& variable : variables) {
    if (wanted(variable)) out.push_back(variable.name);
  }
  return out;
}

const Unit* ModelDescription::unit_of(const Variable& variable) const {
  const auto found = units.find(variable.unit);
  return found == units.end() || !found->second.is_known ? nullptr : &found->second;
}

ModelDescription read_model_description(std::string_view xml) { return Reader(xml).read(); }

std::vector<DeclaredPort> read_terminals(std::string_view xml) {
  const files::XmlFile file("terminalsAndIcons.xml", std::string(xml));
  std::vector<DeclaredPort> ports;
  for (const xml_node terminal : file.root().child("Terminals").children("Terminal")) {
    DeclaredPort port{.name = terminal.attribute("name").value()};
    bool is_pair = true;
    for (const xml_node member : terminal.children("TerminalMemberVariable")) {
      const std::string_view kind = member.attribute("variableKind").value();
      std::string& side = kind == "signal" ? port.effort : port.flow;
      is_pair =
          is_pair && side.empty() && (kind == "signal" || kind == "inflow" || kind == "outflow");
      port.counts_outward = port.counts_outward || kind == "outflow";
      port.says_direction = true;
      side = member.attribute("variableName").value();
    }
    if (is_pair && !port.effort.empty() && !port.flow.empty()) ports.push_back(std::move(port));
  }
  return ports;
}

std::vector<DeclaredPort> read_osp_ports(std::string_view xml) {
  const files::XmlFile file("OspModelDescription.xml", std::string(xml));
  std::vector<DeclaredPort> ports;
  for (const xml_node group : file.root().child("VariableGroups").children()) {
    for (const OspPort& kind : kOspPorts) {
      if (std::string_view(group.name()) != kind.port) continue;
      DeclaredPort port{group.attribute("name").value(), only_variable(group.child(kind.effort)),
                        only_variable(group.child(kind.flow))};
      if (!port.effort.empty() && !port.flow.empty()) ports.push_back(std::move(port));
    }
  }
  return ports;
}

const Unit& effort_unit(Domain domain) { return unit_of_domain(domain, &DomainUnit::effort); }
const Unit& flow_unit(Domain domain) { return unit_of_domain(domain, &DomainUnit::flow); }

Domain domain_of(const Unit& effort, const Unit& flow) {
  for (const DomainUnit& own : domain_units()) {
    // A torque in N m is told from an energy by the speed that goes with it.
    if (are_alike(own.effort, effort) && are_alike(own.flow, flow)) return own.domain;
  }
  return Domain::generic;
}

bool make_power(const Unit& effort, const Unit& flow) {
  constexpr std::array<int, Unit::kBases> kWatt = {1, 2, -3};
  for (std::size_t k = 0; k + 1 < Unit::kBases; ++k) {
    if (effort.powers[k] + flow.powers[k] != kWatt[k]) return false;
  }
  return true;
}

}  // namespace portwave::fmi

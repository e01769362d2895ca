#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "adapters/fmi/standard/model_description.hpp"
#include "export/fmu/fmu_contents.hpp"

namespace portwave::exported {
namespace {

using pugi::xml_node;

/// kg, m, s, A, K, mol, cd, rad.
constexpr std::size_t kBases = 8;
using Powers = std::array<int, kBases>;
constexpr std::array<const char*, kBases> kBaseNames = {"kg", "m",   "s",  "A",
                                                        "K",  "mol", "cd", "rad"};

struct Symbol {
  std::string_view name;
  Powers powers;
};
constexpr Symbol kSymbols[] = {
    {"kg", {1}},
    {"m", {0, 1}},
    {"s", {0, 0, 1}},
    {"A", {0, 0, 0, 1}},
    {"K", {0, 0, 0, 0, 1}},
    {"mol", {0, 0, 0, 0, 0, 1}},
    {"rad", {0, 0, 0, 0, 0, 0, 0, 1}},
    {"1", {}},
    {"N", {1, 1, -2}},
    {"J", {1, 2, -2}},
    {"W", {1, 2, -3}},
    {"Pa", {1, -1, -2}},
    {"Hz", {0, 0, -1}},
    {"C", {0, 0, 1, 1}},
    {"V", {1, 2, -3, -1}},
    {"ohm", {1, 2, -3, -2}},
    {"F", {-1, -2, 4, 2}},
    {"H", {1, 2, -2, -2}},
    {"Wb", {1, 2, -2, -1}},
    {"T", {1, 0, -2, -1}},
};

/// The powers of "N m s/rad" and the like; nothing where it is written otherwise.
std::optional<Powers> powers_of(std::string_view unit) {
  Powers out = {};
  int sign = 1;
  while (!unit.empty()) {
    const std::size_t end = std::min(unit.find_first_of(" /"), unit.size());
    std::string_view word = unit.substr(0, end);
    const char mark = end < unit.size() ? unit[end] : ' ';
    unit.remove_prefix(std::min(end + 1, unit.size()));
    int power = 1;
    if (const std::size_t hat = word.find('^'); hat != std::string_view::npos) {
      if (hat + 2 != word.size() || word[hat + 1] < '1' || word[hat + 1] > '9') return std::nullopt;
      power = word[hat + 1] - '0';
      word = word.substr(0, hat);
    }
    const auto symbol = std::ranges::find(kSymbols, word, &Symbol::name);
    if (symbol == std::end(kSymbols)) return std::nullopt;
    for (std::size_t k = 0; k < kBases; ++k) out[k] += sign * power * symbol->powers[k];
    if (mark == '/') {
      if (sign < 0) return std::nullopt;  // "a/b/c": not written so
      sign = -1;
    }
  }
  return out;
}

/// XML has no control characters.
std::string without_controls(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

void add(xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name).set_value(value.c_str());
}
void add(xml_node node, const char* name, double value) {
  add(node, name, fmt::format("{}", value));
}
void add(xml_node node, const char* name, bool value) {
  node.append_attribute(name).set_value(value ? "true" : "false");
}
void add(xml_node node, const char* name, std::size_t value) {
  add(node, name, fmt::format("{}", value));
}

std::string text_of(const pugi::xml_document& document) {
  std::ostringstream out;
  document.save(out, "  ", pugi::format_default, pugi::encoding_utf8);
  return out.str();
}

xml_node begin(pugi::xml_document& document, const char* root) {
  xml_node declaration = document.append_child(pugi::node_declaration);
  add(declaration, "version", std::string("1.0"));
  add(declaration, "encoding", std::string("UTF-8"));
  return document.append_child(root);
}

/// Whether names are like "a.b[1].c", so that tools may show them as a tree.
bool are_structured(const std::vector<Variable>& variables) {
  const auto is_structured = [](const std::string& name) {
    bool is_at_start = true;
    for (std::size_t i = 0; i < name.size(); ++i) {
      const auto c = static_cast<unsigned char>(name[i]);
      if (c == '.') {
        if (is_at_start) return false;
        is_at_start = true;
      } else if (c == '[' && !is_at_start) {
        const std::size_t end = name.find(']', i);
        if (end == std::string::npos || end == i + 1) return false;
        for (std::size_t k = i + 1; k < end; ++k) {
          if (std::isdigit(static_cast<unsigned char>(name[k])) == 0) return false;
        }
        if (end + 1 < name.size() && name[end + 1] != '.') return false;
        i = end;
      } else {
        if (c >= 128 || (std::isalpha(c) == 0 && c != '_' && (is_at_start || std::isdigit(c) == 0)))
          return false;
        is_at_start = false;
      }
    }
    return !is_at_start;
  };
  return std::ranges::all_of(variables, is_structured, &Variable::name);
}

class DescriptionWriter {
 public:
  DescriptionWriter(const ExportedModel& model, const Description& description)
      : model_(model), own_(description), is_2_(description.fmi == 2) {}

  std::string write() {
    pugi::xml_document document;
    xml_node root = begin(document, "fmiModelDescription");
    add(root, "fmiVersion", std::string(is_2_ ? "2.0" : "3.0"));
    add(root, "modelName", model_.name);
    add(root, is_2_ ? "guid" : "instantiationToken", model_.token());
    if (!own_.about.empty()) add(root, "description", without_controls(own_.about));
    add(root, "generationTool", std::string("portwave " PORTWAVE_VERSION));
    add(root, "variableNamingConvention",
        std::string(are_structured(model_.variables) ? "structured" : "flat"));
    // Who reads the flags of derivatives expects those at the communication point, which are all 0: they are not set.
    root.append_child(pugi::node_comment)
        .set_value(
            " The functions for directional derivatives are there, and no flag says so: they give "
            "those by inputs and parameters that were held over the last communication step, not "
            "those at the communication point. ");
    write_interface(root.append_child("CoSimulation"));
    write_units(root);
    xml_node categories = root.append_child("LogCategories");
    for (const char* name : {"logStatusWarning", "logStatusDiscard", "logStatusError"}) {
      add(categories.append_child("Category"), "name", std::string(name));
    }
    xml_node experiment = root.append_child("DefaultExperiment");
    add(experiment, "startTime", own_.start_s);
    if (own_.end_s > own_.start_s) add(experiment, "stopTime", own_.end_s);
    add(experiment, "stepSize", model_.step_s);
    xml_node variables = root.append_child("ModelVariables");
    // FMI 2 need not list the time, and there are importers that then ask for its start value.
    for (std::size_t i = is_2_ ? 1 : 0; i < model_.variables.size(); ++i)
      write_variable(variables, i);
    write_structure(root.append_child("ModelStructure"));
    return text_of(document);
  }

 private:
  void write_interface(xml_node node) {
    add(node, "modelIdentifier", identifier_of(model_.name));
    add(node, "canHandleVariableCommunicationStepSize", model_.takes_any_step);
    if (is_2_) {
      add(node, "canNotUseMemoryManagementFunctions", true);
      add(node, "canGetAndSetFMUstate", true);
      add(node, "canSerializeFMUstate", true);
    } else {
      add(node, "canGetAndSetFMUState", true);
      add(node, "canSerializeFMUState", true);
      if (!model_.takes_any_step) add(node, "fixedInternalStepSize", model_.step_s);
    }
  }

  void write_units(xml_node root) {
    std::map<std::string, std::optional<Powers>> units;
    for (const Variable& own : model_.variables) {
      if (!own.unit.empty()) units.try_emplace(own.unit, powers_of(own.unit));
    }
    if (units.empty()) return;
    xml_node list = root.append_child("UnitDefinitions");
    for (const auto& [name, powers] : units) {
      xml_node unit = list.append_child("Unit");
      add(unit, "name", name);
      if (!powers) continue;
      xml_node base = unit.append_child("BaseUnit");
      for (std::size_t k = 0; k < kBases; ++k) {
        if ((*powers)[k] != 0) add(base, kBaseNames[k], fmt::format("{}", (*powers)[k]));
      }
    }
  }

  void write_variable(xml_node list, std::size_t i) {
    const Variable& own = model_.variables[i];
    xml_node node = list.append_child(is_2_ ? "ScalarVariable" : "Float64");
    add(node, "name", own.name);
    add(node, "valueReference", i);
    if (!own.about.empty()) add(node, "description", own.about);
    switch (own.kind) {
      case Variable::Kind::time:
        add(node, "causality", std::string("independent"));
        break;
      case Variable::Kind::input:
        add(node, "causality", std::string("input"));
        break;
      case Variable::Kind::parameter:
        add(node, "causality", std::string("parameter"));
        break;
      default:
        add(node, "causality", std::string("output"));
    }
    const bool is_parameter = own.kind == Variable::Kind::parameter;
    add(node, "variability", std::string(is_parameter ? "tunable" : "continuous"));
    if (is_parameter) {
      add(node, "initial", std::string("exact"));
    } else if (is_output(own)) {
      add(node, "initial", std::string("calculated"));
    }
    xml_node real = is_2_ ? node.append_child("Real") : node;
    if (!own.unit.empty()) add(real, "unit", own.unit);
    if (own.integral >= 0) {
      // In FMI 2 its place in the list, from 1; the time, which is not in it, has the number 0.
      add(real, "derivative", static_cast<std::size_t>(own.integral));
    }
    if (own.is_settable()) add(real, "start", own.start);
    if (own.integral >= 0) note_mean(node);
  }

  /// For importers that compare steps of two sizes: at one time both have other means, though both are right.
  void note_mean(xml_node node) {
    const auto [owner, name] = fmi::kNoteOfMeans;
    xml_node note = node.append_child("Annotations").append_child(is_2_ ? "Tool" : "Annotation");
    add(note, is_2_ ? "name" : "type", std::string(owner));
    note.append_child(name);
  }

  /// What is shown at a communication point is of the step before it: no output depends on an input there.
  void write_structure(xml_node node) {
    xml_node outputs = is_2_ ? node.append_child("Outputs") : node;
    if (is_2_ && std::ranges::none_of(model_.variables, is_output)) node.remove_child(outputs);
    for (std::size_t i = 0; i < model_.variables.size(); ++i) {
      if (!is_output(model_.variables[i])) continue;
      xml_node own = refer(outputs, is_2_ ? "Unknown" : "Output", i);
      add(own, "dependencies", std::string());
      if (is_2_) add(own, "dependenciesKind", std::string());
    }
    if (std::ranges::none_of(model_.variables, is_output)) return;
    xml_node initial = is_2_ ? node.append_child("InitialUnknowns") : node;
    for (std::size_t i = 0; i < model_.variables.size(); ++i) {
      if (is_output(model_.variables[i])) refer(initial, is_2_ ? "Unknown" : "InitialUnknown", i);
    }
  }
  xml_node refer(xml_node list, const char* element, std::size_t i) {
    xml_node own = list.append_child(element);
    add(own, is_2_ ? "index" : "valueReference", i);
    return own;
  }
  static bool is_output(const Variable& own) {
    return own.kind != Variable::Kind::time && !own.is_settable();
  }

  const ExportedModel& model_;
  const Description& own_;
  bool is_2_;
};

/// A kind of port of the Open Simulation Platform.
struct OspKind {
  std::string_view domain;
  const char *port, *effort, *flow;
};
constexpr OspKind kOspKinds[] = {{"translation", "LinearMechanicalPort", "Force", "LinearVelocity"},
                                 {"rotation", "AngularMechanicalPort", "Torque", "AngularVelocity"},
                                 {"electrical", "ElectromagneticPort", "Voltage", "Current"},
                                 {"hydraulic", "HydraulicPort", "Pressure", "VolumeFlowRate"}};

const OspKind* osp_kind_of(const PowerPort& port) {
  const auto kind = std::ranges::find(kOspKinds, port.domain, &OspKind::domain);
  return kind == std::end(kOspKinds) ? nullptr : kind;
}

}  // namespace

std::string identifier_of(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 128 && std::isalnum(byte) != 0 ? c : '_';
  }
  constexpr std::size_t kMost = 64;
  out.resize(std::min(out.size(), kMost));
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out.front())) != 0) out.insert(0, "m");
  return out;
}

std::string integral_unit(const std::string& unit) {
  if (unit.empty()) return {};
  if (unit.ends_with("/s")) return unit.substr(0, unit.size() - 2);
  std::string out = unit;
  return out.insert(std::min(out.find('/'), out.size()), " s");
}

std::string model_description(const ExportedModel& model, const Description& description) {
  return DescriptionWriter(model, description).write();
}

std::string terminals(const ExportedModel& model) {
  if (model.ports.empty()) return {};
  pugi::xml_document document;
  xml_node root = begin(document, "fmiTerminalsAndIcons");
  add(root, "fmiVersion", std::string("3.0"));
  xml_node list = root.append_child("Terminals");
  for (const PowerPort& port : model.ports) {
    xml_node terminal = list.append_child("Terminal");
    add(terminal, "name", port.name);
    add(terminal, "matchingRule", std::string("plug"));
    // What adds up to zero where terminals meet, which in mechanics is the force, is their flow.
    const bool is_mechanical = port.domain == "translation" || port.domain == "rotation";
    for (const bool is_effort : {true, false}) {
      xml_node member = terminal.append_child("TerminalMemberVariable");
      const int place = is_effort ? port.effort : port.flow;
      add(member, "variableName", model.variables[static_cast<std::size_t>(place)].name);
      add(member, "memberName", std::string(is_effort ? "effort" : "flow"));
      add(member, "variableKind", std::string(is_effort == is_mechanical ? "inflow" : "signal"));
    }
  }
  return text_of(document);
}

std::string osp_description(const ExportedModel& model) {
  pugi::xml_document document;
  xml_node root = begin(document, "OspModelDescription");
  add(root, "xmlns", std::string("http://opensimulationplatform.com/MSMI/OSPModelDescription"));
  add(root, "version", std::string("1.0"));
  xml_node groups = root.append_child("VariableGroups");
  bool is_empty = true;
  for (const PowerPort& port : model.ports) {
    const OspKind* const kind = osp_kind_of(port);
    if (kind == nullptr) continue;
    is_empty = false;
    xml_node group = groups.append_child(kind->port);
    add(group, "name", port.name);
    for (const bool is_effort : {true, false}) {
      xml_node side = group.append_child(is_effort ? kind->effort : kind->flow);
      add(side, "name", port.name + (is_effort ? ".effort" : ".flow"));
      const int place = is_effort ? port.effort : port.flow;
      add(side.append_child("Variable"), "ref",
          model.variables[static_cast<std::size_t>(place)].name);
    }
  }
  return is_empty ? std::string() : text_of(document);
}

bool is_known_to_osp(const PowerPort& port) { return osp_kind_of(port) != nullptr; }

}  // namespace portwave::exported

#include "export/fmu/fmu_scenario.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/reader/document.hpp"
#include "scenario/reader/node.hpp"
#include "scenario/templates/expansion.hpp"

namespace portwave::exported {
namespace {

using Json = nlohmann::ordered_json;

/// The list of objects under a key; added where there is none.
Json& list_under(Json& document, const char* key) {
  Json& list = document[key];
  if (!list.is_array()) list = Json::array();
  return list;
}

bool has_port(const Json& coupling, const std::string& path) {
  const Json* const ports = scenario_file::member_of(coupling, "ports");
  return ports != nullptr && ports->is_array() &&
         std::ranges::find(*ports, Json(path)) != ports->end();
}

std::string text_under(const Json& object, const char* key) {
  const Json* const member = scenario_file::member_of(object, key);
  return member != nullptr && member->is_string() ? member->get<std::string>() : std::string();
}

/// Tables and matrices are the texts under "file". They have to be found again from the resources of the FMU.
void refuse_files_elsewhere(const Json& node, const std::string& where, Issues& issues) {
  for (const auto& [key, member] : node.items()) {
    const std::string place = fmt::format("{}/{}", where, key);
    if (member.is_structured()) refuse_files_elsewhere(member, place, issues);
    if (!node.is_object() || key != "file" || !member.is_string()) continue;
    const std::filesystem::path path = member.get<std::string>();
    if (path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end()) {
      issues.push_back(
          {place, fmt::format("{} cannot go into an FMU: the file has to lie in the folder of the "
                              "scenario; give its path relative to the folder of the scenario",
                              in_quotes(path.string()))});
    } else if (path.string().find('\\') != std::string::npos) {
      issues.push_back({place, fmt::format("{} cannot go into an FMU: its name has a backslash",
                                           in_quotes(path.string()))});
    }
  }
}

}  // namespace

nlohmann::ordered_json expanded_scenario(const ScenarioText& given) {
  scenario_file::Document document = scenario_file::parse_document(given.text);
  if (document.readable) scenario_file::apply_overrides(document, given.overrides);
  scenario_file::Defects defects(document);
  Json root = std::move(document.root);
  if (document.readable && scenario_file::has_assemblies(root)) {
    scenario_file::ExpandedDocument whole = scenario_file::expand_assemblies(root, defects);
    root = std::move(whole.root);
  }
  if (!document.readable || defects.count() > 0 || !root.is_object()) {
    Issues issues = defects.take();
    if (issues.empty()) issues.push_back({"", "must be an object"});
    throw ScenarioError(given.file, std::move(issues));
  }
  for (const char* const key : {"$schema", "assemblies", "parameters"}) root.erase(key);
  return root;
}

std::map<std::string, double> settable_signals(const Scenario& scenario) {
  std::map<std::string, double> out;
  const SignalGraph* const graph = scenario.options.signals.get();
  if (graph == nullptr) return out;
  for (const SignalGraph::Node& own : graph->nodes()) {
    if (own.block != nullptr && own.block->is_settable()) own.block->start({&out[own.name], 1});
  }
  return out;
}

FmuScenario::FmuScenario(const ScenarioText& given)
    : given_(given), document_(expanded_scenario(given)) {}

Scenario FmuScenario::parse() const { return parse_scenario(text(), given_.file, given_.folder); }

std::string FmuScenario::about() const { return text_under(document_, "description"); }

Json* FmuScenario::part_named(const std::string& name) {
  for (Json& part : list_under(document_, "subsystems")) {
    if (text_under(part, "name") == name) return &part;
  }
  return nullptr;
}

Json* FmuScenario::block_named(const std::string& name) {
  if (!document_.contains("signals")) return nullptr;
  for (Json& block : list_under(document_["signals"], "blocks")) {
    if (text_under(block, "name") == name) return &block;
  }
  return nullptr;
}

void FmuScenario::refuse_what_stays_outside(Issues& issues) const {
  if (const Json* const plugins = scenario_file::member_of(document_, "plugins");
      plugins != nullptr && !plugins->empty()) {
    issues.push_back({"/plugins", "plugins cannot go into an FMU: it holds the engine alone"});
  }
  const auto refuse_fmus = [&](const Json* list, const char* key, const char* where) {
    if (list == nullptr || !list->is_array()) return;
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (text_under((*list)[i], key) != "fmu") continue;
      issues.push_back({fmt::format("{}/{}", where, i), "an FMU cannot hold another FMU"});
    }
  };
  refuse_fmus(scenario_file::member_of(document_, "subsystems"), "type", "/subsystems");
  if (const Json* const signals = scenario_file::member_of(document_, "signals")) {
    refuse_fmus(scenario_file::member_of(*signals, "blocks"), "kind", "/signals/blocks");
  }
  refuse_files_elsewhere(document_, "", issues);
}

void FmuScenario::open_ports(const std::vector<std::string>& paths, Issues& issues) {
  Json& couplings = list_under(document_, "couplings");
  std::set<std::string> seen;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string where = fmt::format("/ports/{}", i);
    OpenPort port;
    port.place = i;
    const std::size_t equals = paths[i].find('=');
    port.path = paths[i].substr(0, equals);
    if (equals != std::string::npos) {
      port.asked = paths[i].substr(equals + 1);
      if (port.asked != "effort" && port.asked != "flow") {
        issues.push_back({where, fmt::format("what the FMU takes is \"effort\" or \"flow\", got {}",
                                             in_quotes(port.asked))});
      }
    }
    if (!seen.insert(port.path).second) {
      issues.push_back({where, fmt::format("{} is named twice", in_quotes(port.path))});
      continue;
    }
    const auto joint = std::ranges::find_if(
        couplings, [&](const Json& coupling) { return has_port(coupling, port.path); });
    port.coupling = static_cast<std::size_t>(joint - couplings.begin());
    port.is_joined = joint != couplings.end();
    if (port.is_joined) {
      const std::string kind = text_under(*joint, "kind");
      if (kind != "free" && kind != "fixed") {
        issues.push_back(
            {where,
             fmt::format("{} is joined by a {}: only a port that is free, fixed or joined to "
                         "nothing can be a port of the FMU",
                         in_quotes(port.path), printable(kind.empty() ? "coupling" : kind))});
        continue;
      }
      port.input = kind == "free" ? Causality::effort_in : Causality::flow_in;
    }
    if (port.asked == "effort") port.input = Causality::effort_in;
    if (port.asked == "flow") port.input = Causality::flow_in;
    port.source = port.path;
    std::ranges::replace(port.source, '.', '_');
    while (part_named(port.source) != nullptr) port.source += "_";
    port.subsystem = list_under(document_, "subsystems").size();
    list_under(document_, "subsystems").push_back(Json::object());
    if (!port.is_joined) couplings.push_back(Json::object());
    write_source(port);
    ports_.push_back(std::move(port));
  }
}

void FmuScenario::write_source(const OpenPort& port) {
  const bool is_effort = port.input == Causality::effort_in;
  const char* const side = is_effort ? "effort" : "flow";
  document_["subsystems"][port.subsystem] = {{"name", port.source},
                                             {"type", is_effort ? "effort_source" : "flow_source"},
                                             {"parameters", {{"domain", to_string(port.domain)}}},
                                             {"inputs", {{side, {{"kind", "settable"}}}}}};
  // A source of a force has e = −effort, other sources of an effort e = effort; sources of a flow f = −flow. So the
  // effort or flow of the port is that of the source.
  const bool is_mechanical = port.domain == Domain::translation || port.domain == Domain::rotation;
  document_["couplings"][port.coupling] = {
      {"kind", is_effort && is_mechanical ? "common_flow" : "connection"},
      {"ports", {port.path, port.source + ".port"}}};
}

void FmuScenario::settle_ports(const System& system, Issues& issues) {
  for (OpenPort& port : ports_) {
    for (const Part& part : system.parts()) {
      for (const Port& own : part.component->signature().ports) {
        if (part.name + "." + own.name != port.path) continue;
        port.domain = own.domain;
        if (!port.is_joined && port.asked.empty()) port.input = own.causality;
        if (own.dimension != 1) {
          issues.push_back({fmt::format("/ports/{}", port.place),
                            fmt::format("{} has {} components: only ports of one can be exported",
                                        in_quotes(port.path), own.dimension)});
        }
      }
    }
    write_source(port);
  }
}

std::vector<std::string> FmuScenario::input_names(const System& system) {
  std::set<std::string> sources;
  for (const OpenPort& port : ports_) sources.insert(port.source);
  std::vector<std::string> names;
  for (const Part& part : system.parts()) {
    if (sources.contains(part.name) || part_named(part.name) == nullptr) continue;
    for (const ExternalInput& own : part.component->signature().inputs) {
      names.push_back(part.name + "." + own.name);
    }
  }
  for (const System::SettableInput& own : system.settable_inputs()) {  // also of parts in pieces
    const std::string name = system.input_label(own);
    const std::string part = name.substr(0, name.rfind('.'));
    if (!sources.contains(part) && std::ranges::find(names, name) == names.end())
      names.push_back(name);
  }
  return names;
}

void FmuScenario::take_inputs(const std::vector<std::string>& inputs, const Scenario& first,
                              Issues& issues) {
  const System& system = first.system;
  const double start_s = first.options.start_s;
  std::vector<std::string> names = input_names(system);
  std::map<std::string, double> signals;  // and their values at the start
  if (const SignalGraph* const graph = first.options.signals.get(); graph != nullptr) {
    const Stepper stepper(system, first.options);
    for (const SignalGraph::Node& node : graph->nodes()) {
      if (node.outputs != 1 || block_named(node.name) == nullptr) continue;
      signals[node.name] = stepper.signals()[static_cast<std::size_t>(node.first_output)];
      names.push_back(node.name);
    }
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& path = inputs[i];
    const std::string where = fmt::format("/inputs/{}", i);
    if (std::ranges::find(names, path) == names.end()) {
      const std::string hint = did_you_mean(path, names);
      issues.push_back(
          {where,
           fmt::format("the scenario has no input {}.{}{}", in_quotes(path), hint,
                       names.empty()  ? " Its parts have no inputs"
                       : hint.empty() ? fmt::format(" It has: {}", scenario_file::list_of(names))
                                      : "")});
      continue;
    }
    if (!seen.insert(path).second) {
      issues.push_back({where, fmt::format("{} is named twice", in_quotes(path))});
      continue;
    }
    if (const auto signal = signals.find(path); signal != signals.end()) {
      Json& block = *block_named(path);
      Json own = {{"name", path}, {"kind", "settable"}, {"initial", signal->second}};
      if (block.contains("every")) own["every"] = block["every"];
      block = std::move(own);
      continue;
    }
    const std::size_t dot = path.rfind('.');
    Json* const part = part_named(path.substr(0, dot));
    if (part == nullptr) continue;  // a part in pieces, whose input is settable already
    double initial = 0.0;
    for (const Part& own : system.parts()) {
      const auto& signature = own.component->signature();
      for (std::size_t k = 0; k < signature.inputs.size(); ++k) {
        if (own.name + "." + signature.inputs[k].name == path && own.input_is_driven[k]) {
          initial = own.inputs[k](start_s);
        }
      }
    }
    (*part)["inputs"][path.substr(dot + 1)] = {{"kind", "settable"}, {"initial", initial}};
  }
}

void FmuScenario::observe(const std::vector<std::string>& labels) {
  document_["outputs"] = {{"observe", labels}};
}

}  // namespace portwave::exported

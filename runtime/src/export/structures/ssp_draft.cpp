#include "export/structures/ssp_draft.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::exported {
namespace {

std::string text_of(const Json& object, const char* key, const std::string& otherwise = {}) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

std::size_t numbers_in(const Json& value) {
  if (!value.is_array()) return 1;
  std::size_t count = 0;
  for (const Json& own : value) count += numbers_in(own);
  return count;
}

/// An array of which something is used; empty: none.
std::string array_of(const fmi::PartSetup& setup, const Json& entry) {
  std::vector<const fmi::Variable*> used = setup.outputs;
  for (const fmi::PortVariables& port : setup.ports) {
    for (const fmi::Variable* const own : {port.input, port.output, port.integral}) {
      if (own != nullptr) used.push_back(own);
    }
  }
  for (const char* const key : {"inputs", "signals"}) {
    if (!entry.contains(key) || !entry[key].is_object()) continue;
    for (const auto& [name, value] : entry[key].items())
      used.push_back(setup.variables->find(name));
  }
  for (const fmi::Variable* const own : used) {
    if (own != nullptr && !own->array.empty()) return own->array;
  }
  for (const fmi::StartValue& own : setup.start) {
    if (own.variable->is_array) return own.variable->name;
  }
  return {};
}

std::map<std::string, FmuValue> start_of(const Json& entry) {
  std::map<std::string, FmuValue> out;
  if (!entry.contains("start")) return out;
  for (const auto& [name, value] : entry["start"].items()) {
    if (value.is_string()) {
      out.emplace(name, value.get<std::string>());
    } else if (value.is_array()) {
      out.emplace(name, NumberArray{{}, std::vector<double>(numbers_in(value), 0.0)});
    } else if (value.is_boolean()) {
      out.emplace(name, value.get<bool>() ? 1.0 : 0.0);
    } else {
      out.emplace(name, value.get<double>());
    }
  }
  return out;
}

FmuPort port_of(const Json& entry) {
  FmuPort out;
  out.name = text_of(entry, "name");
  out.effort = text_of(entry, "effort");
  out.flow = text_of(entry, "flow");
  out.integral = text_of(entry, "integral");
  out.input = text_of(entry, "input") == "flow" ? Causality::flow_in : Causality::effort_in;
  out.counts_outward = text_of(entry, "power") == "out";
  constexpr Domain kDomains[] = {Domain::generic,    Domain::translation, Domain::rotation,
                                 Domain::electrical, Domain::magnetic,    Domain::hydraulic,
                                 Domain::thermal};
  for (const Domain domain : kDomains) {
    if (text_of(entry, "domain") == to_string(domain)) out.domain = domain;
  }
  return out;
}

/// `given`: the port as the scenario has it; null: the FMU declares it.
Json noted_port(const fmi::PortVariables& port, const Json& given) {
  const bool takes_effort = port.causality == Causality::effort_in;
  Json out = {{"name", port.name},
              {"effort", (takes_effort ? port.input : port.output)->name},
              {"flow", (takes_effort ? port.output : port.input)->name},
              {"input", takes_effort ? "effort" : "flow"}};
  if (port.integral != nullptr) out["integral"] = port.integral->name;
  if (given.is_object() && given.contains("domain")) out["domain"] = given["domain"];
  if (port.output_factor < 0.0) out["power"] = "out";
  return out;
}

/// Whether a value names a file, such as the points of a table.
bool names_file(const Json& value) {
  if (!value.is_structured()) return false;
  if (value.is_object() && value.contains("file")) return true;
  return std::ranges::any_of(value, names_file);
}

/// Keys of which a package says what they say, by elements of SSP or by a note.
constexpr std::string_view kPartKeys[] = {"name",   "type",    "path",    "ports",       "start",
                                          "inputs", "outputs", "process", "time_limit_s"};
constexpr std::string_view kFmuBlockKeys[] = {"kind",    "name",  "path",    "signals",
                                              "outputs", "start", "process", "time_limit_s",
                                              "every",   "unit"};
constexpr std::string_view kPortKeys[] = {"name",     "effort", "flow", "input",
                                          "integral", "domain", "power"};
constexpr std::string_view kGainKeys[] = {"kind", "name", "signal", "factor", "offset", "every"};
constexpr std::string_view kSensorKeys[] = {"kind", "name", "of", "every"};

class Drafter {
 public:
  Drafter(const Json& scenario, const std::filesystem::path& folder, double step_s, SspDraft& out,
          Issues& issues)
      : scenario_(scenario), folder_(folder), step_s_(step_s), out_(out), issues_(issues) {}

  void draft() {
    const Json& parts = scenario_["subsystems"];
    if (parts.size() == 1 && is_idle(parts[0])) idle_ = text_of(parts[0], "name");
    for (std::size_t i = 0; i < parts.size() && idle_.empty(); ++i) {
      add_part(parts[i], fmt::format("/subsystems/{}", i));
    }
    const Json blocks = list("/signals/blocks"_json_pointer);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      add_block(blocks[i], fmt::format("/signals/blocks/{}", i));
    }
    const Json couplings = list("/couplings"_json_pointer);
    out_.own["couplings"] = Json::array();
    for (std::size_t i = 0; i < couplings.size() && idle_.empty(); ++i) {
      add_coupling(couplings[i], fmt::format("/couplings/{}", i));
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      connect_inputs(parts[i], "inputs", fmt::format("/subsystems/{}", i));
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (text_of(blocks[i], "kind") == "fmu") {
        connect_inputs(blocks[i], "signals", fmt::format("/signals/blocks/{}", i));
      }
    }
    show_gains(blocks);
    keep_the_rest();
  }

 private:
  /// A block that is no FMU, and how its value comes about.
  struct Signal {
    std::string of = {};  ///< another signal; empty: a connector of the system
    double factor = 1.0, offset = 0.0;
    std::string connector = {};
  };

  void fail(const std::string& where, std::string what) {
    issues_.push_back({where, std::move(what)});
  }

  Json list(const Json::json_pointer& place) const {
    return scenario_.contains(place) && scenario_.at(place).is_array() ? scenario_.at(place)
                                                                       : Json::array();
  }

  /// The part beside which blocks alone are stepped, as import writes it.
  bool is_idle(const Json& entry) const {
    const std::string name = text_of(entry, "name");
    // In any order of keys.
    using Plain = nlohmann::json;
    const Plain same = {{"name", name}, {"type", "mass"}, {"parameters", {{"mass_kg", 1}}}};
    const Plain joined =
        Plain::array({{{"kind", "free"}, {"ports", Plain::array({name + ".port"})}}});
    return name.starts_with("at_rest") && Plain(entry) == same &&
           Plain(list("/couplings"_json_pointer)) == joined;
  }

  /// A key that a package does not keep would change the results without a word.
  void check_keys(const Json& entry, const std::string& where,
                  std::span<const std::string_view> kept, const char* remedy) {
    for (const auto& [key, value] : entry.items()) {
      if (std::ranges::find(kept, key) != kept.end()) continue;
      fail(fmt::format("{}/{}", where, escape_key(key)),
           fmt::format("{} cannot go into a package: {}", in_quotes(key), remedy));
    }
  }

  /// Connections pass values on at every sample: a block of its own rate is none.
  void check_rate(const Json& entry, const std::string& where) {
    const auto every = entry.find("every");
    const Json usual = scenario_.value("/signals/every"_json_pointer, Json(1));
    if (every == entry.end() || *every == usual) return;
    fail(
        where + "/every",
        fmt::format("{} is sampled every {} steps, and connections pass values on at every sample: "
                    "leave \"every\" out, or make an FMU of it",
                    in_quotes(text_of(entry, "name")), every->dump()));
  }

  bool refuse_file(const Json& value, const std::string& name, const std::string& where) {
    if (!names_file(value)) return false;
    fail(where, fmt::format("{} reads a file, which no package holds for other tools: write its "
                            "rows into the scenario",
                            in_quotes(name)));
    return true;
  }

  std::string parameters_of(std::string name) {
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; }, '_');
    std::string out = fmt::format("parameters/{}.ssv", name);
    for (int n = 2; !parameters_.insert(out).second; ++n) {
      out = fmt::format("parameters/{}_{}.ssv", name, n);
    }
    return out;
  }

  std::string source_of(const std::filesystem::path& file) {
    const std::string key = file.lexically_normal().string();
    if (const auto known = sources_.find(key); known != sources_.end()) return known->second;
    const std::string stem = file.stem().string(), extension = file.extension().string();
    std::string name = file.filename().string();
    for (int n = 2; !taken_.insert(name).second; ++n) {
      name = fmt::format("{}_{}{}", stem, n, extension);
    }
    return sources_.emplace(key, "resources/" + name).first->second;
  }

  bool add_component(const Json& entry, const std::string& where, bool is_part) {
    SspComponent own{.name = text_of(entry, "name"), .file = folder_ / text_of(entry, "path")};
    FmuPartOptions options;
    options.file = own.file;
    options.start = start_of(entry);
    if (entry.contains("ports")) {
      for (const Json& port : entry["ports"]) options.ports.push_back(port_of(port));
    }
    if (entry.contains("outputs")) {
      options.outputs = entry["outputs"].get<std::vector<std::string>>();
    }
    try {
      if (is_part) {
        own.setup = fmi::find_variables(options);
      } else {
        Issues found;
        own.setup.fmu = fmi::Fmu::open(own.file);
        own.setup.variables =
            std::make_shared<fmi::FmuVariables>(own.setup.fmu, options.start, found);
        own.setup.start = fmi::find_start_values(*own.setup.variables, options.start, found);
        own.setup.outputs = fmi::find_outputs(*own.setup.variables, options.outputs, found);
        throw_if_any(std::move(found));
      }
    } catch (const ConfigError& error) {
      append(issues_, where, error.issues());
      return false;
    }
    if (const std::string array = array_of(own.setup, entry); !array.empty()) {
      issues_.push_back(
          {where, fmt::format("uses the array {} of its FMU: packages of SSP 1.0 have "
                              "scalars only",
                              in_quotes(array))});
      return false;
    }
    own.source = source_of(own.file);
    if (entry.contains("start")) own.start = entry["start"];
    own.parameters = parameters_of(own.name);
    for (const char* const key : {"process", "time_limit_s", "outputs"}) {
      if (entry.contains(key)) own.own[key] = entry[key];
    }
    keep_more(entry, is_part, own.own);
    if (const auto ports = entry.find("ports"); ports != entry.end() && ports->is_array()) {
      for (std::size_t i = 0; i < ports->size(); ++i) {
        check_keys((*ports)[i], fmt::format("{}/ports/{}", where, i), kPortKeys, "leave it out");
      }
    }
    for (const fmi::Variable* const output : own.setup.outputs) {
      own.connectors.insert(output->name);
    }
    if (is_part) {
      for (const fmi::PortVariables& port : own.setup.ports) {
        own.own["ports"].push_back(noted_port(port, given_port(entry, port.name)));
      }
    }
    index_.emplace(own.name, out_.components.size());
    out_.components.push_back(std::move(own));
    return true;
  }

  /// Settings of a part or block that only portwave has: noted as they are.
  static void keep_more(const Json& entry, bool is_part, Json& own) {
    const std::span<const std::string_view> said =
        is_part ? std::span<const std::string_view>(kPartKeys) : kFmuBlockKeys;
    for (const auto& [key, value] : entry.items()) {
      const bool is_said = std::ranges::find(said, key) != said.end();
      if (!is_said || key == "unit") own["settings"][key] = value;
    }
  }
  static Json given_port(const Json& entry, const std::string& name) {
    if (!entry.contains("ports")) return {};
    for (const Json& own : entry["ports"]) {
      const std::string usual = text_of(own, "effort") + "_" + text_of(own, "flow");
      if (text_of(own, "name", plain_fmu_name(usual)) == name) return own;
    }
    return {};
  }

  void add_part(const Json& entry, const std::string& where) {
    if (text_of(entry, "type") != "fmu") {
      fail(where,
           fmt::format("{} is of the type {}: a system structure holds FMUs.\nportwave fmu "
                       "writes parts as FMUs",
                       in_quotes(text_of(entry, "name")), in_quotes(text_of(entry, "type"))));
      return;
    }
    if (add_component(entry, where, true)) is_part_.insert(text_of(entry, "name"));
  }

  void add_block(const Json& entry, const std::string& where) {
    const std::string kind = text_of(entry, "kind"), name = text_of(entry, "name");
    if (kind == "fmu") {
      if (!add_component(entry, where, false)) return;
      if (const auto every = entry.find("every"); every != entry.end() && every->is_number()) {
        out_.components.back().step_s = every->get<double>() * step_s_;
      }
      return;
    }
    if (kind == "gain" || kind == "sensor") {
      check_keys(entry, where,
                 kind == "gain" ? std::span<const std::string_view>(kGainKeys) : kSensorKeys,
                 "leave it out");
      check_rate(entry, where);
    }
    if (kind == "gain") {
      signals_[name] = {text_of(entry, "signal"), entry.value("factor", 1.0),
                        entry.value("offset", 0.0)};
      return;
    }
    if (kind == "sensor") {
      signals_[name] = {.of = text_of(entry, "of")};
      return;
    }
    const bool is_of_time = !entry.contains("signal") && !entry.contains("signals") &&
                            kind != "pid" && kind != "selector" && kind != "product";
    if (!is_of_time) {
      fail(where, fmt::format("{} is a block of the kind {}, which connections cannot say: make an "
                              "FMU of it",
                              in_quotes(name), in_quotes(kind)));
      return;
    }
    refuse_file(entry, name, where);
    SspConnector connector{.name = name};
    if (kind == "constant") {
      connector.value = entry.value("value", 0.0);
      if (entry.size() > 3) out_.own["inputs"][name] = entry;
    } else {
      out_.own["inputs"][name] = entry;
      out_.notes.push_back(
          fmt::format("{} is an input of the structure: other tools do not learn "
                      "what it does in time",
                      in_quotes(name)));
    }
    out_.connectors.push_back(std::move(connector));
    signals_[name] = {.connector = name};
  }

  struct PortAt {
    SspComponent* component = nullptr;
    const fmi::PortVariables* port = nullptr;
  };
  PortAt port_named(const std::string& label) {
    const std::size_t dot = label.find('.');
    const auto found = index_.find(label.substr(0, dot));
    if (found == index_.end() || dot == std::string::npos) return {};
    SspComponent& component = out_.components[found->second];
    for (const fmi::PortVariables& port : component.setup.ports) {
      if (port.name == label.substr(dot + 1)) return {&component, &port};
    }
    return {};
  }

  void add_coupling(const Json& entry, const std::string& where) {
    const std::vector<std::string> ports = entry["ports"].get<std::vector<std::string>>();
    const std::string kind = text_of(entry, "kind");
    std::vector<PortAt> ends;
    for (const std::string& label : ports) {
      ends.push_back(port_named(label));
      if (ends.back().port != nullptr) continue;
      // Of a part with defects, which are told, or of none.
      if (issues_.empty())
        fail(where, fmt::format("there is no FMU with the port {}", in_quotes(label)));
      return;
    }
    if (ports.size() == 1 && (kind == "free" || kind == "fixed")) {
      out_.own["couplings"].push_back(entry);
      return;
    }
    const bool is_pair = ports.size() == 2 && (kind == "connection" || kind == "common_effort" ||
                                               kind == "common_flow" || kind == "transformer");
    if (!is_pair) {
      fail(where,
           fmt::format("a coupling {} of {} port{} cannot be said by connections: two ports, "
                       "and connection, common_effort, common_flow or transformer, can",
                       in_quotes(kind), ports.size(), ports.size() == 1 ? "" : "s"));
      return;
    }
    const bool first_takes_effort = ends[0].port->causality == Causality::effort_in;
    if (first_takes_effort == (ends[1].port->causality == Causality::effort_in)) {
      fail(where,
           fmt::format("both ports take the {}: nobody answers it, so that no connection can "
                       "join them",
                       first_takes_effort ? "effort" : "flow"));
      return;
    }
    // e_Z = n e_X, f_X = −n f_Z of X, which answers the effort, and Z, which takes it.
    const PortAt x = first_takes_effort ? ends[1] : ends[0];
    const PortAt z = first_takes_effort ? ends[0] : ends[1];
    double ratio = 1.0;
    if (kind == "common_flow") ratio = -1.0;
    if (kind == "transformer") {
      const double given = entry.value("ratio", 1.0);
      ratio = first_takes_effort ? given : 1.0 / given;
    }
    connect(x, z, ratio);
    connect(z, x, -ratio);
    out_.own["couplings"].push_back(entry);
  }

  /// The answer of one port is the input of another: factor · answer, both counted inwards and in SI units.
  void connect(const PortAt& from, const PortAt& to, double factor) {
    const fmi::PortVariables &y = *from.port, &u = *to.port;
    if (y.output_factor < 0.0) factor = -factor;
    const auto is_known = [](const PortAt& at, const fmi::Variable* variable) {
      return at.component->setup.fmu->description().unit_of(*variable) != nullptr;
    };
    // Units are converted on the way only where both are known.
    const bool converts = is_known(from, y.output) && is_known(to, u.input);
    if (!converts) factor *= std::abs(y.output_factor) / u.input_factor;
    from.component->connectors.insert(y.output->name);
    to.component->connectors.insert(u.input->name);
    out_.connections.push_back({{from.component->name, y.output->name},
                                {to.component->name, u.input->name},
                                factor,
                                0.0,
                                converts});
  }

  /// The end that a signal comes from, with all gains on the way. Nothing, and noted, where it has none.
  std::optional<SspConnection> from_signal(const std::string& label, const std::string& where,
                                           int depth = 0) {
    constexpr int kMostGains = 1000;
    if (const auto own = signals_.find(label); own != signals_.end() && depth < kMostGains) {
      const Signal& signal = own->second;
      if (!signal.connector.empty()) return SspConnection{{"", signal.connector}, {}};
      auto out = from_signal(signal.of, where, depth + 1);
      if (!out) return std::nullopt;
      out->factor *= signal.factor;
      out->offset = signal.factor * out->offset + signal.offset;
      return out;
    }
    const std::size_t bracket = label.rfind('[');
    const auto block = index_.find(label.substr(0, bracket));
    if (block != index_.end() && !is_part_.contains(block->first)) {
      SspComponent& component = out_.components[block->second];
      const std::size_t place =
          bracket == std::string::npos ? 0 : std::stoul(label.substr(bracket + 1));
      if (place < component.setup.outputs.size()) {
        return SspConnection{{component.name, component.setup.outputs[place]->name}, {}};
      }
    }
    const std::size_t dot = label.find('.');
    const auto part = index_.find(label.substr(0, dot));
    if (part != index_.end() && dot != std::string::npos) {
      for (const fmi::Variable* const output : out_.components[part->second].setup.outputs) {
        if (plain_fmu_name(output->name) == label.substr(dot + 1)) {
          return SspConnection{{part->first, output->name}, {}};
        }
      }
    }
    fail(where, fmt::format("the signal {} is no output of an FMU: connections start there",
                            in_quotes(label)));
    return std::nullopt;
  }

  const fmi::Variable* input_of(const SspComponent& component, const std::string& key) const {
    return component.setup.fmu->description().find(key);
  }

  void connect_inputs(const Json& entry, const char* list, const std::string& where) {
    const auto found = index_.find(text_of(entry, "name"));
    if (found == index_.end() || !entry.contains(list)) return;
    SspComponent& component = out_.components[found->second];
    for (const auto& [key, given] : entry[list].items()) {
      const std::string place = fmt::format("{}/{}/{}", where, list, escape_key(key));
      Json value = given;
      if (value.is_object() && text_of(value, "kind") == "signal") value = value["signal"];
      const bool is_signal =
          value.is_string() && (given.is_object() || !is_part_.contains(component.name));
      std::optional<SspConnection> wire;
      if (is_signal) {
        wire = from_signal(value.get<std::string>(), place);
      } else if (!refuse_file(value, component.name + "." + key, place)) {
        wire = from_time(component.name + "." + key, value);
      }
      const fmi::Variable* const input = input_of(component, key);
      if (!wire || input == nullptr) continue;
      wire->to = {component.name, input->name};
      component.connectors.insert(input->name);
      out_.connections.push_back(*std::move(wire));
    }
  }

  /// An input that is a number or a function of time is one of the structure.
  SspConnection from_time(const std::string& name, const Json& value) {
    SspConnector connector{.name = name};
    if (value.is_number()) {
      connector.value = value.get<double>();
    } else if (value.is_object() && text_of(value, "kind") == "constant") {
      connector.value = value.value("value", 0.0);
    } else {
      out_.notes.push_back(
          fmt::format("{} is an input of the structure: other tools do not learn "
                      "what it does in time",
                      in_quotes(name)));
    }
    out_.own["inputs"][name] = {{"direct", value}};
    out_.connectors.push_back(std::move(connector));
    return {{"", name}, {}};
  }

  /// Gains are outputs of the structure, which keeps their names.
  void show_gains(const Json& blocks) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::string name = text_of(blocks[i], "name");
      const auto own = signals_.find(name);
      if (own == signals_.end() || !own->second.connector.empty()) continue;
      auto wire = from_signal(name, fmt::format("/signals/blocks/{}", i));
      if (!wire) continue;
      wire->to = {"", name};
      out_.connectors.push_back({.name = name, .is_input = false});
      out_.connections.push_back(*std::move(wire));
    }
  }

  void keep_the_rest() {
    Json& rest = out_.own["scenario"];
    rest = Json::object();
    for (const auto& [key, value] : scenario_.items()) {
      if (key == "name" || key == "description" || key == "subsystems" || key == "couplings") {
        continue;
      }
      rest[key] = value;
      if (key == "signals") rest[key].erase("blocks");
    }
    if (rest.contains("signals") && rest["signals"].empty()) rest.erase("signals");
  }

  const Json& scenario_;
  const std::filesystem::path& folder_;
  double step_s_;
  SspDraft& out_;
  Issues& issues_;
  std::string idle_;  // the part beside which blocks alone are stepped; empty: none
  std::map<std::string, std::string> sources_;
  std::set<std::string> taken_, is_part_, parameters_;
  std::map<std::string, std::size_t> index_;  // of components
  std::map<std::string, Signal> signals_;
};

}  // namespace

SspDraft draft_ssp(const Json& scenario, const std::filesystem::path& folder, double start_s,
                   double end_s, double step_s, Issues& issues) {
  SspDraft out{.name = text_of(scenario, "name"),
               .description = text_of(scenario, "description"),
               .start_s = start_s,
               .end_s = end_s};
  Drafter(scenario, folder, step_s, out, issues).draft();
  return out;
}

}  // namespace portwave::exported

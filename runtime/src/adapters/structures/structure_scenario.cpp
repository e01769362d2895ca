#include "adapters/structures/structure_scenario.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "adapters/structures/structure_files.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/component.hpp"

namespace portwave::structures {
namespace {

constexpr std::size_t kMostOutputs = 200;  // of a block, that are shown unless connected

/// Names that may stand in a scenario, each once.
class Names {
 public:
  std::string take(const std::string& wanted) {
    std::string plain = plain_fmu_name(wanted);
    std::ranges::replace(plain, '/', '_');
    if (plain.empty()) plain = "unnamed";
    std::string name = plain;
    for (int n = 2; !taken_.insert(name).second; ++n) name = fmt::format("{}_{}", plain, n);
    return name;
  }

 private:
  std::set<std::string> taken_;
};

Json value_of(const FmuValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  if (const auto* const array = std::get_if<NumberArray>(&value)) return array->values;
  return std::get<double>(value);
}

/// A number as a program reads it back.
std::string exact(double value) { return fmt::format("{}", value); }

class Writer {
 public:
  Writer(Structure& structure, const std::vector<Bond>& bonds, double step_s,
         const ScenarioOptions& options, Issues& issues)
      : all_(structure), bonds_(bonds), step_s_(step_s), options_(options), issues_(issues) {}

  Json write() {
    is_part_.assign(all_.elements.size(), false);
    for (const Bond& bond : bonds_) {
      add_end(bond.hub);
      for (const BondEnd& own : bond.members) add_end(own);
    }
    for (std::size_t i = 0; i < all_.elements.size(); ++i) {
      if (all_.elements[i].own.contains("ports")) add_own_ports(i);
    }
    for (const Element& element : all_.elements) names_of_.push_back(names_.take(element.name));
    for (const StructureInput& input : all_.inputs) add_input(input);
    choose_outputs();
    for (std::size_t i = 0; i < all_.elements.size(); ++i) {
      if (!is_part_[i]) add_block(i);
    }
    for (std::size_t i = 0; i < all_.elements.size(); ++i) {
      if (is_part_[i]) add_part(i);
    }
    for (const Bond& bond : bonds_) add_coupling(bond);
    add_own_couplings();
    for (const StructureOutput& output : all_.outputs) show(output.name, output.value);
    if (parts_.empty()) add_idle_part();
    return whole();
  }

 private:
  struct Port {
    std::string name;
    Json entry;
  };

  /// The port of an end of a bond.
  void add_end(const BondEnd& end) {
    is_part_[end.element] = true;
    const Element& element = all_.elements[end.element];
    const std::string& effort = end.answers_effort ? end.output : end.input;
    const std::string& flow = end.answers_effort ? end.input : end.output;
    std::vector<Port>& ports = ports_[end.element];
    Json entry;
    if (const auto own = element.own.find("ports"); own != element.own.end() && own->is_array()) {
      for (const Json& noted : *own) {
        if (noted.is_object() && noted.value("effort", "") == effort &&
            noted.value("flow", "") == flow) {
          entry = noted;
        }
      }
    }
    if (entry.is_null()) {
      Names names;
      for (const Port& port : ports) names.take(port.name);
      entry["name"] = names.take(end.name.empty() ? effort + "_" + flow : end.name);
      entry["effort"] = effort;
      entry["flow"] = flow;
      entry["input"] = end.answers_effort ? "flow" : "effort";
    }
    entry.erase("power");
    if (end.counts_outward) entry["power"] = "out";
    if (!entry.contains("name")) entry["name"] = plain_fmu_name(effort + "_" + flow);
    const std::string name = entry["name"].is_string() ? entry["name"].get<std::string>() : "";
    ports.push_back({name, std::move(entry)});
    port_variables_.insert({end.element, end.input});
  }

  /// What portwave has noted of an input of the structure; null: nothing.
  const Json* noted_input(const std::string& name) const {
    const auto noted = all_.own.find("inputs");
    if (noted == all_.own.end() || !noted->is_object() || !noted->contains(name)) return nullptr;
    const Json& own = (*noted)[name];
    return own.is_object() ? &own : nullptr;
  }

  /// An input of the structure is a block, which may be given another kind.
  void add_input(const StructureInput& input) {
    input_names_.push_back(names_.take(input.name));
    const Json* const noted = noted_input(input.name);
    if (noted != nullptr && noted->contains("direct")) return;
    Json block = {
        {"kind", "constant"}, {"name", input_names_.back()}, {"value", input.value.value_or(0.0)}};
    if (noted != nullptr) {
      const Json value = block["value"];
      block = *noted;
      block["name"] = input_names_.back();
      if (input.value && block.contains("value")) block["value"] = value;
    }
    blocks_.push_back(std::move(block));
  }

  /// The value of an input that the scenario gives without a signal; null: it has none of that kind.
  const Json* direct_value(const Expression& value) const {
    if (value.terms.size() != 1 || value.terms[0].source.kind != Source::Kind::input)
      return nullptr;
    const Json* const noted = noted_input(all_.inputs[value.terms[0].source.index].name);
    const auto own = noted == nullptr ? Json::const_iterator() : noted->find("direct");
    return noted == nullptr || own == noted->end() ? nullptr : &*own;
  }

  /// Ports that portwave has noted and no connection joins, such as free ends.
  void add_own_ports(std::size_t index) {
    const Json& noted = all_.elements[index].own["ports"];
    if (!noted.is_array()) return;
    for (const Json& entry : noted) {
      if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) continue;
      const std::string name = entry["name"];
      std::vector<Port>& ports = ports_[index];
      const bool is_known =
          std::ranges::any_of(ports, [&](const Port& own) { return own.name == name; });
      if (is_known || !has_own_coupling(all_.elements[index].name, name)) continue;
      ports.push_back({name, entry});
      is_part_[index] = true;
      port_variables_.insert({index, entry.value("input", "effort") == "flow"
                                         ? entry.value("flow", "")
                                         : entry.value("effort", "")});
    }
  }

  bool has_own_coupling(const std::string& element, const std::string& port) const {
    const auto noted = all_.own.find("couplings");
    if (noted == all_.own.end() || !noted->is_array()) return false;
    const std::string label = plain_fmu_name(element) + "." + port;
    return std::ranges::any_of(*noted, [&](const Json& own) {
      return own.is_object() && own.contains("ports") && own["ports"].is_array() &&
             own["ports"].size() == 1 && own["ports"][0] == label;
    });
  }

  /// Outputs that a part or block has to show, in order.
  void choose_outputs() {
    shown_.resize(all_.elements.size());
    for (std::size_t i = 0; i < all_.elements.size(); ++i) {
      const Element& element = all_.elements[i];
      if (const auto own = element.own.find("outputs"); own != element.own.end()) {
        for (const Json& name : *own) {
          if (name.is_string()) need({i, name.get<std::string>()});
        }
        continue;
      }
      std::size_t count = 0;
      for (const fmi::Variable& variable : element.fmu->description().variables) {
        const bool is_shown = variable.role == fmi::Role::output && !variable.is_array &&
                              fmi::is_number(variable.type);
        if (is_shown && count++ < kMostOutputs) need({i, variable.name});
      }
    }
    const auto need_all = [&](const Expression& value) {
      for (const Expression::Term& term : value.terms) {
        if (term.source.kind == Source::Kind::output) {
          need({term.source.index, term.source.variable});
        }
      }
    };
    for (const Element& element : all_.elements) {
      for (const auto& [name, value] : element.inputs) need_all(value);
    }
    for (const StructureOutput& own : all_.outputs) need_all(own.value);
    for (const LookupTable& own : all_.lookups) need_all(own.of);
  }
  void need(const Variable& variable) {
    if (needed_.insert(variable).second) shown_[variable.element].push_back(variable.name);
  }

  /// A signal that is an output of an element.
  std::string label_of(std::size_t element, const std::string& variable) const {
    if (is_part_[element]) return names_of_[element] + "." + plain_fmu_name(variable);
    const std::vector<std::string>& shown = shown_[element];
    if (shown.size() == 1) return names_of_[element];
    const auto at = std::ranges::find(shown, variable) - shown.begin();
    return fmt::format("{}[{}]", names_of_[element], at);
  }

  std::string label_of(const Source& source) {
    switch (source.kind) {
      case Source::Kind::output:
        return label_of(source.index, source.variable);
      case Source::Kind::input:
        return input_names_[source.index];
      case Source::Kind::lookup:
        break;
    }
    const auto known = lookup_names_.find(source.index);
    if (known != lookup_names_.end()) return known->second;
    const std::string name = names_.take(fmt::format("mapped_{}", source.index + 1));
    const LookupTable& table = all_.lookups[source.index];
    Json points = Json::array();
    for (const auto& [from, to] : table.points) points.push_back({from, to});
    const std::string of = signal_of(table.of, name + "_of");
    blocks_.push_back({{"kind", "lookup"}, {"name", name}, {"signal", of}, {"points", points}});
    lookup_names_.emplace(source.index, name);
    return name;
  }

  static bool is_plain(const Expression& value) {
    return value.terms.size() == 1 && value.terms[0].factor == 1.0 && value.offset == 0.0;
  }

  /// The name of a signal that is the value; a block is made where it is no output as it is.
  std::string signal_of(const Expression& value, const std::string& name, bool as_block = false) {
    if (is_plain(value) && !as_block) return label_of(value.terms[0].source);
    if (value.terms.size() == 1) {
      Json block = {{"kind", "gain"},
                    {"name", names_.take(name)},
                    {"signal", label_of(value.terms[0].source)},
                    {"factor", value.terms[0].factor}};
      if (value.offset != 0.0) block["offset"] = value.offset;
      blocks_.push_back(std::move(block));
      return blocks_.back()["name"];
    }
    std::string text;
    Json signals = Json::array();
    for (const Expression::Term& term : value.terms) {
      signals.push_back(label_of(term.source));
      if (!text.empty()) text += " + ";
      if (term.factor != 1.0) text += fmt::format("({})*", exact(term.factor));
      text += fmt::format("u{}", signals.size());
    }
    if (value.offset != 0.0 || text.empty()) {
      text += fmt::format("{}({})", text.empty() ? "" : " + ", exact(value.offset));
    }
    blocks_.push_back({{"kind", "expression"}, {"name", names_.take(name)}, {"expression", text}});
    if (!signals.empty()) blocks_.back()["signals"] = std::move(signals);
    return blocks_.back()["name"];
  }

  /// A value that is shown under a name of its own.
  void show(const std::string& name, const Expression& value) {
    observe_.push_back(signal_of(value, name, true));
  }

  bool is_of_port(std::size_t element, const std::string& input) const {
    return port_variables_.contains({element, input});
  }

  Json start_of(const Element& element) {
    Json out = Json::object();
    for (const auto& [name, value] : element.start) out[name] = value_of(value);
    return out;
  }

  int every_of(const Element& element) {
    if (element.step_s <= 0.0) return 1;
    const double ratio = element.step_s / step_s_;
    const int every = std::max(1, static_cast<int>(std::lround(std::min(ratio, 1e6))));
    if (std::abs(ratio - every) > 1e-6 * ratio) {
      all_.notes.push_back(
          {element.where, fmt::format("{} asks for steps of {} s: it gets {} of {} s",
                                      in_quotes(element.name), element.step_s, every, step_s_)});
    }
    return every;
  }

  void add_process(Json& entry, const Element& element) const {
    const bool noted = element.own.contains("process") && element.own["process"] == true;
    if (!options_.in_a_process && !noted && proxied_file(element.source).empty()) return;
    entry["process"] = true;
    if (element.own.contains("time_limit_s")) entry["time_limit_s"] = element.own["time_limit_s"];
  }

  /// Settings that only portwave has, in no place of what the structure says itself.
  static void add_settings(Json& entry, const Element& element) {
    const auto settings = element.own.find("settings");
    if (settings == element.own.end()) return;
    for (const auto& [key, value] : settings->items()) {
      constexpr std::string_view kSaid[] = {"ports",   "start",   "inputs",      "signals",
                                            "outputs", "process", "time_limit_s"};
      if (std::ranges::find(kSaid, key) == std::end(kSaid) && !entry.contains(key)) {
        entry[key] = value;
      }
    }
  }

  void add_block(std::size_t index) {
    const Element& element = all_.elements[index];
    Json entry = {{"kind", "fmu"}, {"name", names_of_[index]}, {"path", options_.path_of(element)}};
    Json signals = Json::object();
    for (const auto& [name, value] : element.inputs) {
      if (const Json* const direct = direct_value(value)) {
        signals[name] = *direct;
        continue;
      }
      signals[name] = signal_of(value, fmt::format("to_{}_{}", names_of_[index], name));
    }
    if (!signals.empty()) entry["signals"] = std::move(signals);
    if (shown_[index].empty()) {
      issues_.push_back({element.where, fmt::format("{} has no output that is a number: it does "
                                                    "nothing here",
                                                    in_quotes(element.name))});
      return;
    }
    entry["outputs"] = shown_[index];
    if (Json start = start_of(element); !start.empty()) entry["start"] = std::move(start);
    if (const int every = every_of(element); every > 1) entry["every"] = every;
    add_process(entry, element);
    add_settings(entry, element);
    blocks_.push_back(std::move(entry));
    for (const std::string& output : shown_[index]) {
      Expression value;
      value.terms.push_back({{Source::Kind::output, index, output}, 1.0});
      if (!all_.own.contains("scenario")) show(element.name + "." + output, value);
    }
  }

  void add_part(std::size_t index) {
    const Element& element = all_.elements[index];
    Json entry = {{"name", names_of_[index]}, {"type", "fmu"}, {"path", options_.path_of(element)}};
    for (const Port& port : ports_[index]) entry["ports"].push_back(port.entry);
    if (Json start = start_of(element); !start.empty()) entry["start"] = std::move(start);
    Json inputs = Json::object();
    for (const auto& [name, value] : element.inputs) {
      if (is_of_port(index, name)) continue;
      if (const Json* const direct = direct_value(value)) {
        inputs[name] = *direct;
        continue;
      }
      // Units are converted already: a gain has none.
      const std::string signal = signal_of(value, fmt::format("to_{}_{}", names_of_[index], name),
                                           value.terms[0].source.kind == Source::Kind::output);
      inputs[name] = {{"kind", "signal"}, {"signal", signal}};
    }
    if (!inputs.empty()) entry["inputs"] = std::move(inputs);
    entry["outputs"] = shown_[index];
    if (every_of(element) > 1) {
      all_.notes.push_back({element.where, fmt::format("{} has power ports: it is stepped with all "
                                                       "others, every {} s",
                                                       in_quotes(element.name), step_s_)});
    }
    add_process(entry, element);
    add_settings(entry, element);
    parts_.push_back(std::move(entry));
    std::set<std::string> plain;
    for (const std::string& output : shown_[index]) {
      const std::string name = plain_fmu_name(output);
      if (plain.insert(name).second) observe_.push_back(names_of_[index] + "." + name);
    }
  }

  std::string port_label(const BondEnd& end) const {
    for (const Port& port : ports_.at(end.element)) {
      const std::string effort = port.entry.value("effort", ""),
                        flow = port.entry.value("flow", "");
      const std::string& own_effort = end.answers_effort ? end.output : end.input;
      const std::string& own_flow = end.answers_effort ? end.input : end.output;
      if (effort == own_effort && flow == own_flow) {
        return names_of_[end.element] + "." + port.name;
      }
    }
    return names_of_[end.element];
  }

  void add_coupling(const Bond& bond) {
    constexpr double kOne = 1e-12;
    Json ports = Json::array({port_label(bond.hub)});
    for (const BondEnd& own : bond.members) ports.push_back(port_label(own));
    const bool shares_effort = bond.hub.answers_effort;
    const auto all_are = [&](double value) {
      return std::ranges::all_of(bond.ratios,
                                 [&](double own) { return std::abs(own - value) < kOne; });
    };
    Json entry;
    if (all_are(1.0)) {
      const bool is_pair = bond.members.size() == 1;
      entry = {{"kind", !shares_effort ? "common_flow"
                        : is_pair      ? "connection"
                                       : "common_effort"},
               {"ports", ports}};
    } else if (bond.members.size() == 1 && all_are(-1.0)) {
      // With the sign in one pair: e_1 = −e_2, f_1 = f_2, or the other way round.
      entry = {{"kind", shares_effort ? "common_flow" : "connection"}, {"ports", ports}};
    } else if (bond.members.size() == 1) {
      // e_1 = n e_2, f_2 = −n f_1
      entry = {{"kind", "transformer"},
               {"ports", shares_effort ? Json::array({ports[1], ports[0]}) : ports},
               {"ratio", shares_effort ? bond.ratios[0] : -bond.ratios[0]}};
    } else {
      entry = kernel(bond, std::move(ports));
    }
    couplings_.push_back(as_noted(std::move(entry)));
  }

  /// E e + F f = 0 with q_i = n_i q and p = − Σ n_i p_i.
  static Json kernel(const Bond& bond, Json ports) {
    const std::size_t size = bond.members.size() + 1;
    std::vector<std::vector<double>> across(size, std::vector<double>(size, 0.0)), through = across;
    for (std::size_t i = 1; i < size; ++i) {
      across[i][i] = 1.0;
      across[i][0] = -bond.ratios[i - 1];
      through[0][i] = bond.ratios[i - 1];
    }
    through[0][0] = 1.0;
    const bool shares_effort = bond.hub.answers_effort;
    return {{"kind", "kernel"},
            {"ports", std::move(ports)},
            {"E", shares_effort ? across : through},
            {"F", shares_effort ? through : across}};
  }

  static std::set<std::string> ports_of(const Json& coupling) {
    std::set<std::string> out;
    if (!coupling.is_object() || !coupling.contains("ports") || !coupling["ports"].is_array()) {
      return out;
    }
    for (const Json& port : coupling["ports"]) {
      if (port.is_string()) out.insert(port.get<std::string>());
    }
    return out;
  }
  static std::string law_of(const Json& coupling) {
    const std::string kind = coupling.value("kind", "");
    const bool is_pair = ports_of(coupling).size() == 2;
    return kind == "common_effort" && is_pair ? "connection" : kind;
  }

  /// The coupling as portwave has noted it, in its order, if it says the same.
  Json as_noted(Json entry) {
    const auto noted = all_.own.find("couplings");
    if (noted == all_.own.end() || !noted->is_array()) return entry;
    for (const Json& own : *noted) {
      const bool is_same = ports_of(own) == ports_of(entry) && law_of(own) == law_of(entry) &&
                           own.value("ratio", Json()) == entry.value("ratio", Json());
      if (is_same && law_of(own) != "kernel") return own;
    }
    return entry;
  }

  /// Ends that are free or fixed, which connections cannot say; and the order of all.
  void add_own_couplings() {
    const auto noted = all_.own.find("couplings");
    if (noted == all_.own.end() || !noted->is_array()) return;
    std::set<std::string> joined;
    for (const Json& own : couplings_) joined.merge(ports_of(own));
    std::set<std::string> known;
    for (const auto& [index, ports] : ports_) {
      for (const Port& port : ports) known.insert(names_of_[index] + "." + port.name);
    }
    std::vector<Json> in_order;
    for (const Json& own : *noted) {
      const auto ports = ports_of(own);
      const auto same = std::ranges::find(couplings_, own);
      if (same != couplings_.end()) {
        in_order.push_back(*same);
        couplings_.erase(same);
      } else if (ports.size() == 1 && known.contains(*ports.begin()) &&
                 !joined.contains(*ports.begin())) {
        in_order.push_back(own);
      } else {
        all_.notes.push_back({"", fmt::format("the coupling of {} is not that of the connections: "
                                              "these are taken",
                                              ports.empty() ? "?" : in_quotes(*ports.begin()))});
      }
    }
    for (Json& own : couplings_) in_order.push_back(std::move(own));
    couplings_ = std::move(in_order);
  }

  /// A system has a part at least: blocks alone are stepped beside one that rests.
  void add_idle_part() {
    const std::string name = names_.take("at_rest");
    parts_.push_back({{"name", name}, {"type", "mass"}, {"parameters", {{"mass_kg", 1}}}});
    couplings_.push_back({{"kind", "free"}, {"ports", {name + ".port"}}});
    if (observe_.empty()) observe_.push_back(name);
  }

  Json time() {
    const auto noted_whole = all_.own.find("scenario");
    if (noted_whole != all_.own.end() && noted_whole->is_object() &&
        noted_whole->contains("time")) {
      Json noted = (*noted_whole)["time"];
      const bool is_same =
          noted.is_object() && noted.value("start_s", 0.0) == all_.start_s.value_or(0.0) &&
          (!noted.contains("end_s") || noted["end_s"] == all_.stop_s.value_or(0.0));
      if (is_same) return noted;
    }
    Json out = Json::object();
    const double start_s = all_.start_s.value_or(0.0);
    if (start_s != 0.0) out["start_s"] = start_s;
    out["step_s"] = step_s_;
    const double end_s = all_.stop_s.value_or(start_s + kUsualSteps * step_s_);
    const double steps = (end_s - start_s) / step_s_;
    if (!(steps > 0.0)) {
      issues_.push_back(
          {"", fmt::format("the run ends at {} s, and begins at {} s", end_s, start_s)});
    } else if (std::abs(steps - std::round(steps)) < 1e-6 && steps > 0.5) {
      out["end_s"] = end_s;
    } else {
      out["steps"] = static_cast<std::int64_t>(std::ceil(std::min(steps, 1e15)));
      all_.notes.push_back({"", fmt::format("the end at {} s is no whole number of steps of {} s: "
                                            "the run goes on to the next step",
                                            end_s, step_s_)});
    }
    return out;
  }

  Json whole() {
    Json out = Json::object();
    out["name"] = all_.name;
    if (!all_.description.empty()) out["description"] = all_.description;
    out["time"] = time();
    out["subsystems"] = std::move(parts_);
    if (!couplings_.empty()) out["couplings"] = std::move(couplings_);
    if (!blocks_.empty()) out["signals"]["blocks"] = std::move(blocks_);
    out["outputs"]["observe"] = std::move(observe_);
    const auto noted = all_.own.find("scenario");
    if (noted != all_.own.end() && noted->is_object()) {
      for (const auto& [key, value] : noted->items()) {
        if (key == "signals" && value.is_object()) {
          for (const auto& [own, setting] : value.items()) {
            if (own != "blocks") out["signals"][own] = setting;
          }
        } else if (key != "subsystems" && key != "couplings" && key != "time") {
          out[key] = value;
        }
      }
    }
    return out;
  }

  Structure& all_;
  const std::vector<Bond>& bonds_;
  double step_s_;
  const ScenarioOptions& options_;
  Issues& issues_;
  Names names_;
  std::vector<bool> is_part_;
  std::map<std::size_t, std::vector<Port>> ports_;
  std::set<std::pair<std::size_t, std::string>> port_variables_;
  std::vector<std::string> names_of_, input_names_;
  std::vector<std::vector<std::string>> shown_;
  std::set<Variable> needed_;
  std::map<std::size_t, std::string> lookup_names_;
  std::vector<Json> parts_, couplings_, blocks_;
  std::vector<std::string> observe_;
};

}  // namespace

Json scenario_of(Structure& structure, const std::vector<Bond>& bonds, double step_s,
                 const ScenarioOptions& options, Issues& issues) {
  return Writer(structure, bonds, step_s, options, issues).write();
}

}  // namespace portwave::structures

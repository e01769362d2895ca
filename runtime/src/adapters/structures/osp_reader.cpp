#include "adapters/structures/osp_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "adapters/files/xml_file.hpp"
#include "adapters/structures/osp_groups.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::structures {

using namespace files;
namespace {

constexpr long kMostInputs = 10'000;      // of a function
constexpr long kMostSignals = 1'000'000;  // of all its inputs
constexpr long kMostGuesses = 1'000;      // names that a misspelt one is compared with

struct Function {
  enum class Kind { linear, sum };
  Kind kind = Kind::sum;
  double factor = 1.0, offset = 0.0;
  long inputs = 1, dimension = 1;
  bool is_vector = false;
  std::string where;
};

/// A signal of a function: "in", "out", "in[2]", "in[2][0]" or "out[0]".
struct Signal {
  bool is_input = false;
  std::vector<long> places;
};

std::optional<Signal> signal_in(std::string_view name) {
  Signal out;
  if (name.starts_with("in")) {
    out.is_input = true;
    name.remove_prefix(2);
  } else if (name.starts_with("out")) {
    name.remove_prefix(3);
  } else {
    return std::nullopt;
  }
  while (!name.empty()) {
    long place = -1;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), place);
    const bool is_closed = error == std::errc() && end != name.data() + name.size() && *end == ']';
    // As it is written by numbers: no sign, no zeros before.
    const auto length = static_cast<std::size_t>(end - name.data());
    if (name.front() != '[' || !is_closed || place < 0 ||
        name.substr(1, length - 1) != std::to_string(place)) {
      return std::nullopt;
    }
    out.places.push_back(place);
    name.remove_prefix(length + 1);
  }
  return out;
}

/// "in[2]" of a function of vectors is a group, "in[2][0]" one of its signals.
std::string signal_name(const std::string& group, long component) {
  return fmt::format("{}[{}]", group, component);
}

class OspReader {
 public:
  OspReader(const StructureFiles& files, Issues& issues)
      : files_(files),
        file_(files.main(), StructureFiles::text_of(files.folder() / files.main())),
        issues_(issues),
        connector_(out_, issues) {}

  Structure read() {
    const pugi::xml_node root = file_.root();
    if (local_name(root) != "OspSystemStructure") {
      throw ConfigError("", fmt::format("{} holds no OspSystemStructure", file_.name()));
    }
    if (const std::string version = attribute(root, "version"); version != "0.1") {
      fail(root, fmt::format("version must be 0.1, got {}", in_quotes(version)));
    }
    out_.name = "osp_system";
    out_.start_s = number_of(root, "StartTime", false);
    out_.stop_s = number_of(root, "EndTime", false);
    out_.step_s = number_of(root, "BaseStepSize", true);
    note_algorithm(root);
    for (const pugi::xml_node own : children(child(root, "Simulators"))) read_simulator(own);
    for (const pugi::xml_node own : children(child(root, "Functions"))) read_function(own);
    for (const pugi::xml_node own : children(child(root, "Connections"))) read_connection(own);
    check_bonds();
    connect_all();
    return std::move(out_);
  }

 private:
  struct Wire {
    pugi::xml_node at;
    bool from_function = false;
    std::string from, from_name;  // simulator or function, variable or signal
    bool to_function = false;
    std::string to, to_name;
    std::string bond = {};
  };

  void fail(pugi::xml_node at, std::string what) {
    issues_.push_back({file_.place(at), std::move(what)});
  }

  std::optional<double> number_of(pugi::xml_node root, const char* name, bool is_positive) {
    const pugi::xml_node own = child(root, name);
    if (!own) return std::nullopt;
    const auto value = number_in(own.text().get());
    if (!value || !(std::abs(*value) < 1e300) || (is_positive && *value <= 0.0)) {
      fail(own, fmt::format("<{}> must be a number{}, got {}", name, is_positive ? " above 0" : "",
                            in_quotes(own.text().get())));
      return std::nullopt;
    }
    return value;
  }

  double attribute_number(pugi::xml_node at, const char* name, double otherwise) {
    if (!at.attribute(name)) return otherwise;
    const auto value = number_in(at.attribute(name).value());
    if (!value || !std::isfinite(*value)) {
      fail(at, fmt::format("{} must be a finite number, got {}", name,
                           in_quotes(at.attribute(name).value())));
    }
    return value && std::isfinite(*value) ? *value : otherwise;
  }

  long attribute_count(pugi::xml_node at, const char* name) {
    const std::string text = attribute(at, name);
    long value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= 1 &&
        value <= kMostInputs) {
      return value;
    }
    fail(at, fmt::format("{} must be a whole number from 1 to {}, got {}", name, kMostInputs,
                         in_quotes(text)));
    return 1;
  }

  std::string required(pugi::xml_node at, const char* name) {
    std::string value = attribute(at, name);
    if (value.empty()) fail(at, fmt::format("<{}> has no {}", local_name(at), name));
    return value;
  }

  void note_algorithm(pugi::xml_node root) {
    const pugi::xml_node own = child(root, "Algorithm");
    if (!own) return;
    const std::string name = own.text().get();
    if (name != "fixedStep" && name != "ecco") {
      return fail(own,
                  fmt::format("<Algorithm> must be fixedStep or ecco, got {}", in_quotes(name)));
    }
    if (name != "ecco") return;
    out_.notes.push_back({file_.place(own),
                          "the step size of ecco is not taken over: steps are of BaseStepSize, and "
                          "power bonds are iterated within each"});
  }

  void read_simulator(pugi::xml_node at) {
    if (local_name(at) != "Simulator") {
      return fail(at, fmt::format("<{}> among the simulators", printable(at.name())));
    }
    if (out_.elements.size() >= kMostElements) {
      if (out_.elements.size() == kMostElements) fail(at, "there are too many simulators");
      return;
    }
    Element element{
        .name = required(at, "name"), .source = required(at, "source"), .where = file_.place(at)};
    if (element.name.empty() || element.source.empty()) return;
    element.step_s = attribute_number(at, "stepSize", 0.0);
    if (element.step_s < 0.0) fail(at, "stepSize must be above 0");
    if (!index_.emplace(element.name, out_.elements.size()).second) {
      return fail(at, fmt::format("there are two simulators {}", in_quotes(element.name)));
    }
    std::string refusal;
    if (const auto path = files_.find(element.source, refusal)) {
      element.file = *path;
      open_element(element, issues_);
    } else {
      fail(at, fmt::format("the source of {} {}", in_quotes(element.name), refusal));
    }
    VariableGroups groups;
    try {
      groups = read_groups(element, files_.folder());
    } catch (const ConfigError& error) {
      for (const Issue& issue : error.issues()) fail(at, issue.what);
    }
    groups_.push_back(std::move(groups));
    read_initial_values(child(at, "InitialValues"), element);
    out_.elements.push_back(std::move(element));
  }

  void read_initial_values(pugi::xml_node list, Element& element) {
    for (const pugi::xml_node own : children(list, "InitialValue")) {
      const std::string variable = required(own, "variable");
      const auto values = children(own);
      if (values.size() != 1) {
        fail(own, fmt::format("the initial value of {} needs one <Real>, <Integer>, <Boolean> or "
                              "<String>",
                              in_quotes(variable)));
        continue;
      }
      const pugi::xml_node value = values.front();
      const std::string_view kind = local_name(value);
      const std::string text = attribute(value, "value");
      std::optional<FmuValue> read;
      if (kind == "String") {
        read = text;
      } else if (kind == "Boolean") {
        if (const auto truth = truth_in(text)) read = *truth ? 1.0 : 0.0;
      } else if (kind == "Real" || kind == "Integer") {
        if (const auto number = number_in(text)) read = *number;
      } else {
        fail(value, fmt::format("<{}> is no initial value", printable(value.name())));
        continue;
      }
      if (!read) {
        fail(value, fmt::format("the initial value of {} must be {}, got {}", in_quotes(variable),
                                kind == "Boolean" ? "true or false" : "a number", in_quotes(text)));
        continue;
      }
      if (element.fmu != nullptr && element.find(variable) == nullptr) {
        std::vector<std::string> names;
        for (const auto& known : element.fmu->description().variables) names.push_back(known.name);
        fail(own, fmt::format("{} has no variable {}.{}", in_quotes(element.name),
                              in_quotes(variable), did_you_mean(variable, names)));
        continue;
      }
      element.start.insert_or_assign(variable, *std::move(read));
    }
  }

  void read_function(pugi::xml_node at) {
    Function function{.where = file_.place(at)};
    const std::string name = required(at, "name");
    const std::string_view kind = local_name(at);
    if (kind == "LinearTransformation") {
      function.kind = Function::Kind::linear;
      function.factor = attribute_number(at, "factor", 1.0);
      function.offset = attribute_number(at, "offset", 0.0);
    } else if (kind == "Sum" || kind == "VectorSum") {
      function.inputs = attribute_count(at, "inputCount");
      function.is_vector = kind == "VectorSum";
      if (function.is_vector) function.dimension = attribute_count(at, "dimension");
      if (function.inputs * function.dimension > kMostSignals) {
        return fail(
            at, fmt::format("the function {} has {} inputs of {} components, and may have {} "
                            "signals in all",
                            in_quotes(name), function.inputs, function.dimension, kMostSignals));
      }
    } else {
      return fail(at, fmt::format("the function <{}> is not known: LinearTransformation, Sum and "
                                  "VectorSum are",
                                  printable(at.name())));
    }
    if (!functions_.emplace(name, function).second) {
      fail(at, fmt::format("there are two functions {}", in_quotes(name)));
    }
  }

  /// Names of simulators and functions are checked.
  bool has_simulator(pugi::xml_node at, const std::string& name) {
    if (index_.contains(name)) return true;
    std::vector<std::string> names;
    for (const auto& [own, index] : index_) names.push_back(own);
    fail(at,
         fmt::format("there is no simulator {}.{}", in_quotes(name), did_you_mean(name, names)));
    return false;
  }
  const Function* find_function(pugi::xml_node at, const std::string& name) {
    const auto found = functions_.find(name);
    if (found != functions_.end()) return &found->second;
    std::vector<std::string> names;
    for (const auto& [own, function] : functions_) names.push_back(own);
    fail(at, fmt::format("there is no function {}.{}", in_quotes(name), did_you_mean(name, names)));
    return nullptr;
  }

  const std::vector<std::string>* group_of(pugi::xml_node at) {
    const std::string simulator = required(at, "simulator"), name = required(at, "name");
    if (!has_simulator(at, simulator)) return nullptr;
    const std::size_t index = index_.at(simulator);
    if (out_.elements[index].fmu == nullptr) return nullptr;
    const VariableGroups& groups = groups_[index];
    const auto found = groups.find(name);
    if (found != groups.end()) return &found->second;
    std::vector<std::string> names;
    for (const auto& [own, variables] : groups) names.push_back(own);
    fail(at,
         fmt::format("{} has no group of variables {}.{}{}", in_quotes(simulator), in_quotes(name),
                     names.empty() ? " There is no OspModelDescription.xml of it" : "",
                     did_you_mean(name, names)));
    return nullptr;
  }

  bool is_output(const std::string& simulator, const std::string& variable) const {
    const Element& element = out_.elements[index_.at(simulator)];
    const fmi::Variable* const found = element.find(variable);
    return found != nullptr && found->role != fmi::Role::input &&
           found->role != fmi::Role::parameter;
  }

  void join(pugi::xml_node at, const std::string& a, const std::string& a_name,
            const std::string& b, const std::string& b_name, const std::string& bond) {
    // In either order.
    const bool forwards = is_output(a, a_name) || !is_output(b, b_name);
    wires_.push_back(forwards ? Wire{at, false, a, a_name, false, b, b_name, bond}
                              : Wire{at, false, b, b_name, false, a, a_name, bond});
  }

  void read_connection(pugi::xml_node at) {
    const std::string_view kind = local_name(at);
    const std::string bond = attribute(at, "powerBond");
    const auto variables = children(at, "Variable"), groups = children(at, "VariableGroup");
    const auto signals = children(at, "Signal"), signal_groups = children(at, "SignalGroup");
    if (kind == "VariableConnection" && variables.size() == 2) {
      const std::string a = required(variables[0], "simulator"),
                        b = required(variables[1], "simulator");
      const bool is_known = has_simulator(variables[0], a);
      if (!has_simulator(variables[1], b) || !is_known) return;
      join(at, a, required(variables[0], "name"), b, required(variables[1], "name"), bond);
    } else if (kind == "VariableGroupConnection" && groups.size() == 2) {
      const auto* const a = group_of(groups[0]);
      const auto* const b = group_of(groups[1]);
      if (a == nullptr || b == nullptr) return;
      if (a->size() != b->size()) {
        return fail(at, fmt::format("the groups have {} and {} variables", a->size(), b->size()));
      }
      for (std::size_t i = 0; i < a->size(); ++i) {
        join(at, attribute(groups[0], "simulator"), (*a)[i], attribute(groups[1], "simulator"),
             (*b)[i], bond.empty() || a->size() == 2 ? bond : "");
      }
      if (!bond.empty() && a->size() != 2) {
        out_.notes.push_back(
            {file_.place(at),
             fmt::format("the power bond {} joins groups of {} variables, and a bond "
                         "has two: its pairs are known from what the FMUs declare, or "
                         "from units",
                         in_quotes(bond), a->size())});
      }
    } else if (kind == "SignalConnection" && variables.size() == 1 && signals.size() == 1) {
      const std::string simulator = required(variables[0], "simulator"),
                        variable = required(variables[0], "name");
      if (!has_simulator(variables[0], simulator)) return;
      signal_wire(at, signals[0], required(signals[0], "name"), simulator, variable);
    } else if (kind == "SignalGroupConnection" && groups.size() == 1 && signal_groups.size() == 1) {
      const auto* const own = group_of(groups[0]);
      if (own == nullptr) return;
      const std::string group = required(signal_groups[0], "name");
      for (std::size_t i = 0; i < own->size(); ++i) {
        signal_wire(at, signal_groups[0], signal_name(group, static_cast<long>(i)),
                    attribute(groups[0], "simulator"), (*own)[i]);
      }
    } else {
      fail(at,
           fmt::format("<{}> is no connection with two ends: VariableConnection, "
                       "SignalConnection, VariableGroupConnection and SignalGroupConnection are",
                       printable(at.name())));
    }
  }

  void signal_wire(pugi::xml_node at, pugi::xml_node end, const std::string& signal,
                   const std::string& simulator, const std::string& variable) {
    const std::string name = required(end, "function");
    const Function* const function = find_function(end, name);
    if (function == nullptr) return;
    const auto own = signal_in(signal);
    if (!own || !has_signal(*function, *own)) {
      return fail(end, fmt::format("the function {} has no signal {}.{}", in_quotes(name),
                                   in_quotes(signal), did_you_mean(signal, signals_of(*function))));
    }
    if (own->is_input) {
      wires_.push_back({at, false, simulator, variable, true, name, signal});
    } else {
      wires_.push_back({at, true, name, signal, false, simulator, variable});
    }
  }

  static bool has_signal(const Function& function, const Signal& signal) {
    std::vector<long> sizes;
    if (signal.is_input && function.kind == Function::Kind::sum) sizes.push_back(function.inputs);
    if (function.is_vector) sizes.push_back(function.dimension);
    return std::ranges::equal(signal.places, sizes,
                              [](long place, long size) { return place < size; });
  }

  /// The first of them, for guesses.
  static std::vector<std::string> signals_of(const Function& function) {
    if (function.kind == Function::Kind::linear) return {"in", "out"};
    std::vector<std::string> out;
    for (long k = 0; k < std::min(function.dimension, kMostGuesses); ++k) {
      out.push_back(function.is_vector ? signal_name("out", k) : "out");
      for (long i = 0; i < std::min(function.inputs, kMostGuesses / function.dimension + 1); ++i) {
        const std::string group = fmt::format("in[{}]", i);
        out.push_back(function.is_vector ? signal_name(group, k) : group);
      }
    }
    return out;
  }

  /// A name of a power bond stands on two connections between the same two simulators.
  void check_bonds() {
    std::map<std::string, std::vector<const Wire*>> by_name;
    for (const Wire& wire : wires_) {
      if (!wire.bond.empty()) by_name[wire.bond].push_back(&wire);
    }
    for (const auto& [name, wires] : by_name) {
      if (wires.size() != 2) {
        fail(wires.front()->at,
             fmt::format("the power bond {} has {} connection{}, and needs two", in_quotes(name),
                         wires.size(), wires.size() == 1 ? "" : "s"));
      } else if (wires[0]->from != wires[1]->to || wires[0]->to != wires[1]->from) {
        fail(wires[1]->at,
             fmt::format("the power bond {} needs a connection there and one back between the "
                         "same two simulators",
                         in_quotes(name)));
      }
    }
  }

  void connect_all() {
    for (const Wire& wire : wires_) {
      if (!wire.to_function) continue;
      if (!into_functions_.emplace(std::pair(wire.to, wire.to_name), &wire).second) {
        fail(wire.at, fmt::format("{} of the function {} is connected already",
                                  in_quotes(wire.to_name), in_quotes(wire.to)));
      }
    }
    for (const Wire& wire : wires_) {
      if (wire.to_function) continue;
      auto value = value_of(wire);
      if (!value) continue;
      value->bond = wire.bond;
      note_units(wire, *value);
      connector_.connect(index_.at(wire.to), wire.to_name, *std::move(value), file_.place(wire.at));
    }
  }

  /// OSP-IS sends values as they are.
  void note_units(const Wire& wire, const Expression& value) {
    const Element& to = out_.elements[index_.at(wire.to)];
    if (wire.from_function || !value.unit || to.fmu == nullptr) return;
    const fmi::Variable* const input = to.find(wire.to_name);
    const auto unit = input == nullptr ? std::nullopt : unit_of(*to.fmu, *input);
    if (!unit) return;
    Expression converted = value;
    if (convert(converted, *unit) && !converted.is_converted) return;
    out_.notes.push_back(
        {file_.place(wire.at),
         fmt::format("{} is in {}, and {} in {}: its values are sent as they are",
                     in_quotes(wire.from + "." + wire.from_name),
                     shown(value.unit, value.unit_name), in_quotes(wire.to + "." + wire.to_name),
                     shown(unit, input->unit))});
  }

  std::optional<Expression> value_of(const Wire& wire) {
    if (!wire.from_function) {
      return connector_.output(index_.at(wire.from), wire.from_name, file_.place(wire.at));
    }
    const Function& function = functions_.at(wire.from);
    Expression out;
    // By number; an input that nothing sets is 0.
    std::map<long, const Wire*> inputs;
    const Signal answer = signal_in(wire.from_name).value();
    const std::pair<std::string, std::string> first(wire.from, "");
    for (auto at = into_functions_.lower_bound(first);
         at != into_functions_.end() && at->first.first == wire.from; ++at) {
      const Signal input = signal_in(at->first.second).value();
      // The component of each vector that this output sums.
      if (function.is_vector && input.places.back() != answer.places.front()) continue;
      inputs.emplace(input.places.empty() ? 0 : input.places.front(), at->second);
    }
    for (const auto& [number, input] : inputs) {
      const auto value = value_of(*input);
      if (!value) return std::nullopt;
      for (const Expression::Term& term : value->terms) {
        out.terms.push_back({term.source, function.factor * term.factor});
      }
      out.offset += function.factor * value->offset;
    }
    out.offset += function.offset;
    return out;
  }

  const StructureFiles& files_;
  XmlFile file_;
  Issues& issues_;
  Structure out_;
  Connector connector_;
  std::map<std::string, std::size_t> index_;  // of simulators
  std::vector<VariableGroups> groups_;        // by simulator
  std::map<std::string, Function> functions_;
  std::vector<Wire> wires_;
  std::map<std::pair<std::string, std::string>, const Wire*> into_functions_;
};

}  // namespace

Structure read_osp(const StructureFiles& files, Issues& issues) {
  return OspReader(files, issues).read();
}

}  // namespace portwave::structures

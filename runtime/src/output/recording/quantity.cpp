// Names of recorded quantities: from "part.state" and the like to places in a system.

#include "output/recording/quantity.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/coenergy.hpp"

namespace portwave {
namespace {

constexpr std::string_view kForms =
    "\"part.state\", \"part.state.coenergy\", \"part.port.effort\", \".flow\", \".incident\", "
    "\".outgoing\", "
    "\"part.storage\" or the name of a signal";
constexpr std::string_view kCoenergy = ".coenergy";
constexpr std::size_t kMostListed = 12;

struct PortQuantity {
  std::string_view name;
  Quantity::Kind kind;
};
constexpr PortQuantity kPortQuantities[] = {{"effort", Quantity::Kind::effort},
                                            {"flow", Quantity::Kind::flow},
                                            {"incident", Quantity::Kind::incident},
                                            {"outgoing", Quantity::Kind::outgoing}};

const Signature& signature_of(const System& system, int part) {
  return system.parts()[static_cast<std::size_t>(part)].component->signature();
}

const std::string& name_of(const System& system, int part) {
  return system.parts()[static_cast<std::size_t>(part)].name;
}

/// Splits "name[3]" into "name" and 3.
std::optional<int> take_entry(std::string_view& text) {
  const auto open = text.rfind('[');
  if (open == std::string_view::npos || text.back() != ']') return std::nullopt;
  int entry = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto parsed = std::from_chars(text.data() + open + 1, end, entry);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  text = text.substr(0, open);
  return entry;
}

std::string unit_of(const Port& port, Quantity::Kind kind) {
  if (kind == Quantity::Kind::effort) return std::string(units(port.domain).effort);
  if (kind == Quantity::Kind::flow) return std::string(units(port.domain).flow);
  return "sqrt(J)";
}

bool find_state(const Signature& signature, std::string_view name, Quantity& out) {
  const auto& states = signature.states;
  const auto state = std::find_if(states.begin(), states.end(),
                                  [&](const StateVariable& s) { return s.name == name; });
  if (state == states.end()) return false;
  out.kind = Quantity::Kind::state;
  out.index = static_cast<int>(state - states.begin());
  out.unit = state->unit;
  return true;
}

/// "state.coenergy".
bool find_coenergy(const Component& part, std::string_view name, Quantity& out) {
  if (!name.ends_with(kCoenergy) || part.port_hamiltonian() == nullptr) return false;
  if (!find_state(part.signature(), name.substr(0, name.size() - kCoenergy.size()), out))
    return false;
  out.kind = Quantity::Kind::coenergy;
  out.unit = coenergy_unit(out.unit);
  return true;
}

enum class PortMatch { none, found, bad_entry };

/// "port.effort", "port.effort[1]" or "port[1].effort"; `defect` receives the defect of [1].
PortMatch find_port_variable(const System& system, int part, std::string_view name, Quantity& out,
                             std::string& defect) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return PortMatch::none;
  std::string_view port_name = name.substr(0, dot);
  std::string_view quantity_name = name.substr(dot + 1);
  std::optional<int> entry = take_entry(quantity_name);
  if (!entry) entry = take_entry(port_name);

  const auto quantity =
      std::find_if(std::begin(kPortQuantities), std::end(kPortQuantities),
                   [&](const PortQuantity& q) { return q.name == quantity_name; });
  const auto& ports = signature_of(system, part).ports;
  const auto port =
      std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == port_name; });
  if (quantity == std::end(kPortQuantities) || port == ports.end()) return PortMatch::none;

  if ((!entry && port->dimension > 1) || (entry && (*entry < 0 || *entry >= port->dimension))) {
    defect = fmt::format("port \"{0}.{1}\" has {2} component{3}: write \"{0}.{1}.{4}[0]\"",
                         printable(name_of(system, part)), printable(port->name), port->dimension,
                         port->dimension == 1 ? "" : "s", quantity->name);
    if (port->dimension > 1) defect += fmt::format(" to [{}]", port->dimension - 1);
    return PortMatch::bad_entry;
  }
  out.kind = quantity->kind;
  out.index =
      system.first_scalar_port(part, static_cast<int>(port - ports.begin())) + entry.value_or(0);
  out.unit = unit_of(*port, quantity->kind);
  return PortMatch::found;
}

PortMatch find_in_part(const System& system, int part, std::string_view name, Quantity& out,
                       std::string& defect) {
  out.part = part;
  if (find_state(signature_of(system, part), name, out)) return PortMatch::found;
  if (find_coenergy(*system.parts()[at(part)].component, name, out)) return PortMatch::found;
  if (name == "storage") {
    out.kind = Quantity::Kind::storage;
    out.index = 0;
    out.unit = "J";
    return PortMatch::found;
  }
  return find_port_variable(system, part, name, out, defect);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostListed); ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  if (names.size() > kMostListed) text += fmt::format(", ... ({} in all)", names.size());
  return text;
}

std::string unknown_quantity(const System& system, int part, const std::string& label,
                             MethodKind method) {
  const std::vector<std::string> labels = labels_of(system, part, method);
  std::vector<std::string> listed = labels;
  std::erase_if(listed, [](const std::string& own) { return own.ends_with(kCoenergy); });
  const std::string& name = name_of(system, part);
  return fmt::format("subsystem {} has nothing named {}.\n  It has: {}.{}", in_quotes(name),
                     in_quotes(std::string_view(label).substr(name.size() + 1)), joined(listed),
                     did_you_mean(label, labels));
}

std::string unknown_in_cut(const CutName& cut, const std::string& name) {
  if (name.ends_with(kCoenergy)) {
    return fmt::format("subsystem {} is cut, and has no co-energy variables", in_quotes(cut.name));
  }
  std::vector<std::string> names = {"storage"};
  for (const Port& port : cut.whole.ports) {
    names.push_back(port.name + ".effort");
    names.push_back(port.name + ".flow");
  }
  for (const StateVariable& state : cut.whole.states) names.push_back(state.name);
  return fmt::format("subsystem {} has nothing named {}.\n  It has: {}.{}", in_quotes(cut.name),
                     in_quotes(name), joined(names), did_you_mean(name, names));
}

/// What is of a part that was cut as a whole; nothing, and `defect`, where it has nothing of the name.
std::optional<Quantity> find_in_cut(const System& system, const std::string& label,
                                    std::string& defect) {
  if (system.cuts().empty()) return std::nullopt;
  for (auto dot = label.rfind('.'); dot != std::string::npos && dot > 0;
       dot = label.rfind('.', dot - 1)) {
    const CutName* const cut = system.find_cut(std::string_view(label).substr(0, dot));
    if (cut == nullptr) continue;
    const std::string rest = label.substr(dot + 1);
    if (rest == "storage") {
      defect.clear();
      return Quantity{label, Quantity::Kind::storage, cut->first_part, cut->pieces - 1, "J"};
    }
    if (defect.empty()) defect = unknown_in_cut(*cut, rest);
  }
  return std::nullopt;
}

std::string unknown_part(const System& system, const std::string& label, NameSearch& names) {
  const auto dot = label.find('.');
  if (dot != std::string::npos) {
    const std::string name = label.substr(0, dot);
    return fmt::format("there is no subsystem {}.\n  subsystems: {}.{}", in_quotes(name),
                       joined(names.names()), names.did_you_mean(name));
  }
  // A bare state name is the likely slip: offer the parts that have it.
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    Quantity ignored;
    std::string defect;
    if (find_in_part(system, part, label, ignored, defect) == PortMatch::found) {
      return fmt::format("{} names no subsystem; expected {}. Did you mean {}?", in_quotes(label),
                         kForms, in_quotes(name_of(system, part) + "." + label));
    }
  }
  return fmt::format("{} is not a quantity; expected {}", in_quotes(label), kForms);
}

}  // namespace

std::string coenergy_unit(const std::string& unit) {
  constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"kg m/s", "m/s"}, {"kg m^2/s", "rad/s"}, {"m/s", "kg m/s"}, {"rad/s", "kg m^2/s"},
      {"m", "N"},        {"rad", "N m"},        {"V", "C"},        {"C", "V"},
      {"A", "Wb"},       {"Wb", "A"},           {"V s", "A"},      {"Pa", "m^3"},
      {"m^3", "Pa"}};
  for (const auto& [of, is] : kKnown) {
    if (of == unit) return std::string(is);
  }
  return unit.empty() ? "J" : "J/(" + unit + ")";
}

std::vector<std::string> labels_of(const System& system, int part, MethodKind method) {
  const Signature& signature = signature_of(system, part);
  const std::string& name = name_of(system, part);
  std::vector<std::string> labels;
  for (const StateVariable& state : signature.states) {
    labels.push_back(fmt::format("{}.{}", name, state.name));
  }
  for (const Port& port : signature.ports) {
    for (const PortQuantity& quantity : kPortQuantities) {
      if (is_wave(quantity.kind) && !method.couples_by_waves()) continue;
      const std::string label = fmt::format("{}.{}.{}", name, port.name, quantity.name);
      if (port.dimension == 1) {
        labels.push_back(label);
        continue;
      }
      for (int c = 0; c < port.dimension; ++c) labels.push_back(fmt::format("{}[{}]", label, c));
    }
  }
  labels.push_back(name + ".storage");
  if (system.parts()[at(part)].port_hamiltonian() == nullptr) return labels;
  for (const StateVariable& state : signature.states) {
    labels.push_back(fmt::format("{}.{}{}", name, state.name, kCoenergy));
  }
  return labels;
}

bool is_wave(Quantity::Kind kind) {
  return kind == Quantity::Kind::incident || kind == Quantity::Kind::outgoing;
}

std::vector<std::string> names_of_parts(const System& system) {
  std::vector<std::string> names;
  for (int part = 0; part < static_cast<int>(system.parts().size());) {
    const CutName* const cut = system.cut_with(part);
    names.push_back(system.name_of_part(part));
    part += cut == nullptr ? 1 : cut->pieces;
  }
  return names;
}

std::optional<Quantity> find_quantity(const System& system, const std::string& label,
                                      MethodKind method,
                                      const std::function<NameSearch&()>& part_names,
                                      std::string& defect) {
  const std::string path = label_by_pieces(system, label);
  if (path == label) {
    auto of_cut = find_in_cut(system, label, defect);
    if (of_cut || !defect.empty()) return of_cut;
  }
  Quantity found;
  found.label = label;
  int nearest_part = -1;
  // Names of parts may contain dots: the longest that fits is tried first.
  for (auto dot = path.rfind('.'); dot != std::string::npos && dot > 0;
       dot = path.rfind('.', dot - 1)) {
    const std::string_view text = path;
    const int part = system.find_part(text.substr(0, dot));
    if (part < 0) continue;
    nearest_part = part;
    if (find_in_part(system, part, text.substr(dot + 1), found, defect) != PortMatch::found)
      continue;
    if (!is_wave(found.kind) || method.couples_by_waves()) return found;
    defect = fmt::format("the method \"{}\" couples without waves: there is no {}",
                         to_string(method), in_quotes(label));
    break;
  }
  if (defect.empty()) {
    defect = nearest_part >= 0 ? unknown_quantity(system, nearest_part, label, method)
                               : unknown_part(system, label, part_names());
  }
  return std::nullopt;
}

bool resolve_quantity(const System& system, const std::string& label, const std::string& where,
                      Quantity& out, Issues& issues, MethodKind method) {
  std::optional<NameSearch> search;
  const auto part_names = [&]() -> NameSearch& { return search.emplace(names_of_parts(system)); };
  std::string defect;
  std::optional<Quantity> found = find_quantity(system, label, method, part_names, defect);
  if (!found) {
    issues.push_back({where, std::move(defect)});
    return false;
  }
  out = *std::move(found);
  return true;
}

Quantity find_quantity(const Stepper& stepper, const std::string& label) {
  Quantity out;
  if (const SignalGraph* graph = stepper.signal_graph()) {
    if (const int signal = graph->find_signal(label); signal >= 0) {
      out.label = label;
      out.kind = Quantity::Kind::signal;
      out.index = signal;
      return out;
    }
  }
  Issues issues;
  if (!resolve_quantity(stepper.system(), label, {}, out, issues, stepper.method().method.kind())) {
    throw std::out_of_range(issues.front().what);
  }
  return out;
}

namespace {

/// The value of that number, which comes from the caller. Errors: std::out_of_range.
double value_of(std::span<const double> values, const Quantity& quantity) {
  if (quantity.index >= 0 && at(quantity.index) < values.size()) {
    return values[at(quantity.index)];
  }
  throw std::out_of_range(fmt::format("there is no number {} of {}: {} is not of this run",
                                      quantity.index, values.size(), in_quotes(quantity.label)));
}

double coenergy_of(const Stepper& stepper, const Quantity& quantity, std::span<const double> x) {
  (void)value_of(x, quantity);  // a number that there is
  return coenergy(*stepper.system().parts()[at(quantity.part)].component, x.data(), quantity.index);
}

}  // namespace

double observe(const Stepper& stepper, const Quantity& quantity) {
  if (is_wave(quantity.kind) && stepper.waves() == nullptr) {
    throw std::invalid_argument(
        fmt::format("the method \"{}\" couples without waves: there is no {}",
                    to_string(stepper.method().method.kind()), in_quotes(quantity.label)));
  }
  if (is_wave(quantity.kind) && stepper.waves()->stages() > 1) {
    throw std::invalid_argument(
        fmt::format("with {} stages a port has as many waves: there is no {}",
                    stepper.waves()->stages(), in_quotes(quantity.label)));
  }
  switch (quantity.kind) {
    case Quantity::Kind::state:
      return value_of(stepper.state(quantity.part), quantity);
    case Quantity::Kind::effort:
      return stepper.effort(quantity.index);
    case Quantity::Kind::flow:
      return stepper.flow(quantity.index);
    case Quantity::Kind::incident:
      return stepper.waves()->incident(quantity.index);
    case Quantity::Kind::outgoing:
      return stepper.waves()->outgoing(quantity.index);
    case Quantity::Kind::signal:
      return value_of(stepper.signals(), quantity);
    case Quantity::Kind::coenergy:
      return coenergy_of(stepper, quantity, stepper.state(quantity.part));
    case Quantity::Kind::storage:
      break;
  }
  double stored = stepper.storage(quantity.part);
  for (int i = 1; i <= quantity.index; ++i) stored += stepper.storage(quantity.part + i);
  return stored;
}

double observe_at(const Stepper& stepper, const Quantity& quantity, double time_s) {
  const auto part_of = [&](int part) -> const Component& {
    (void)stepper.state(part);  // there is such a part
    return *stepper.system().parts()[at(part)].component;
  };
  const auto state = [&](int part) {
    std::vector<double> x(at(part_of(part).signature().state_size()));
    stepper.state_at(part, time_s, x);
    return x;
  };
  switch (quantity.kind) {
    case Quantity::Kind::state:
      return value_of(state(quantity.part), quantity);
    case Quantity::Kind::coenergy:
      return coenergy_of(stepper, quantity, state(quantity.part));
    case Quantity::Kind::storage: {
      double stored = 0.0;
      for (int part = quantity.part; part <= quantity.part + quantity.index; ++part) {
        stored += part_of(part).port_hamiltonian()->storage(state(part).data());
      }
      return stored;
    }
    case Quantity::Kind::effort:
      return stepper.port_at(quantity.index, time_s).effort;
    case Quantity::Kind::flow:
      return stepper.port_at(quantity.index, time_s).flow;
    default:
      return observe(stepper, quantity);
  }
}

}  // namespace portwave

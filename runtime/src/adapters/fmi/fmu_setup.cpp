#include "adapters/fmi/fmu_setup.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "adapters/fmi/standard/fmu_words.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

constexpr std::size_t kMostOutputs = 1000;  // shown as states unless they are named

/// Units and domain of a port: what the FMU says of its variables, held against what is given.
class PortUnits {
 public:
  PortUnits(const Fmu& fmu, const FmuPort& port, const std::string& where, PortVariables& out,
            std::vector<std::string>& notes, Issues& issues)
      : fmu_(fmu.description()),
        port_(port),
        where_(where),
        out_(out),
        notes_(notes),
        issues_(issues) {}

  void settle() {
    const bool takes_effort = port_.input == Causality::effort_in;
    const Variable& effort = takes_effort ? *out_.input : *out_.output;
    const Variable& flow = takes_effort ? *out_.output : *out_.input;
    const Unit* const effort_unit = fmu_.unit_of(effort);
    const Unit* const flow_unit = fmu_.unit_of(flow);
    refuse_offset(effort, effort_unit, "effort");
    refuse_offset(flow, flow_unit, "flow");
    out_.domain = port_.domain.value_or(Domain::generic);
    if (effort_unit != nullptr && flow_unit != nullptr) {
      settle_domain(effort, *effort_unit, flow, *flow_unit);
    } else {
      std::vector<std::string> unknown;
      for (const Variable* const own : {&effort, &flow}) {
        if (fmu_.unit_of(*own) != nullptr) continue;
        unknown.push_back(own->unit.empty() ? own->name
                                            : fmt::format("{} ({}, which it does not define)",
                                                          own->name, in_quotes(own->unit)));
      }
      notes_.push_back(
          fmt::format("port {}: the FMU does not tell the units of {}: they are taken as SI units",
                      out_.name, fmt::join(unknown, " and ")));
    }
    const double effort_factor = effort_unit != nullptr ? effort_unit->factor : 1.0;
    const double flow_factor = flow_unit != nullptr ? flow_unit->factor : 1.0;
    out_.input_factor = takes_effort ? effort_factor : flow_factor;
    out_.output_factor = takes_effort ? flow_factor : effort_factor;
    if (out_.integral == nullptr) take_declared_integral();
    if (!is_integral(out_.integral)) refuse_integral();
    if (port_.counts_outward) out_.output_factor = -out_.output_factor;
  }

 private:
  void refuse_offset(const Variable& variable, const Unit* unit, const char* key) {
    if (unit == nullptr || unit->offset == 0.0) return;
    issues_.push_back(
        {fmt::format("{}/{}", where_, key),
         fmt::format("{} is in {}, whose zero is not that of its SI unit: it carries no power",
                     in_quotes(variable.name), in_quotes(variable.unit))});
  }
  void settle_domain(const Variable& effort, const Unit& effort_unit, const Variable& flow,
                     const Unit& flow_unit) {
    if (!make_power(effort_unit, flow_unit)) {
      issues_.push_back(
          {where_, fmt::format("{} [{}] times {} [{}] is no power: a port needs, for instance, "
                               "a force and a velocity",
                               in_quotes(effort.name), printable(effort.unit), in_quotes(flow.name),
                               printable(flow.unit))});
      return;
    }
    const Domain found = domain_of(effort_unit, flow_unit);
    if (!port_.domain) {
      out_.domain = found;
    } else if (*port_.domain != Domain::generic && *port_.domain != found) {
      const DomainUnits asked = units(*port_.domain);
      issues_.push_back(
          {where_ + "/domain",
           fmt::format(
               "is {}, whose effort is in {} and whose flow in {}, but {} is in {} and {} in {}",
               to_string(*port_.domain), asked.effort, asked.flow, in_quotes(effort.name),
               printable(effort.unit), in_quotes(flow.name), printable(flow.unit))});
    }
  }
  /// Its unit must be that of the answer times a second, to the factor.
  bool is_integral(const Variable* variable) const {
    if (variable == nullptr) return true;
    const Unit* const rate = fmu_.unit_of(*out_.output);
    const Unit* const own = fmu_.unit_of(*variable);
    if (rate == nullptr || own == nullptr) return true;
    std::array<int, Unit::kBases> powers = rate->powers;
    ++powers[2];
    return std::equal(powers.begin(), powers.end() - 1, own->powers.begin()) &&
           std::abs(own->factor / rate->factor - 1.0) < 1e-12;
  }
  /// What the FMU says that its answer is the derivative of.
  void take_declared_integral() {
    const Variable* const own = fmu_.integral_of(*out_.output);
    const bool is_usable =
        own != nullptr && own != out_.output && !own->is_array &&
        (own->type == VariableType::float64 || own->type == VariableType::float32) &&
        own->role != Role::input && own->role != Role::independent && is_integral(own);
    if (is_usable) out_.integral = own;
  }
  void refuse_integral() {
    issues_.push_back({where_ + "/integral",
                       fmt::format("{} [{}] is not the integral of {} [{}] over time",
                                   in_quotes(out_.integral->name), printable(out_.integral->unit),
                                   in_quotes(out_.output->name), printable(out_.output->unit))});
  }

  const ModelDescription& fmu_;
  const FmuPort& port_;
  const std::string& where_;
  PortVariables& out_;
  std::vector<std::string>& notes_;
  Issues& issues_;
};

/// A port that the FMU declares, as if the user had named it; nothing if its variables do not make one.
std::optional<FmuPort> named_port(const ModelDescription& model, const DeclaredPort& declared) {
  const Variable* first = model.find(declared.effort);
  const Variable* second = model.find(declared.flow);
  if (first == nullptr || second == nullptr) return std::nullopt;
  const Unit *a = model.unit_of(*first), *b = model.unit_of(*second);
  if (a != nullptr && b != nullptr) {
    // Terminals call what adds up to zero a flow, which in mechanics is the force.
    const bool is_swapped =
        domain_of(*a, *b) == Domain::generic && domain_of(*b, *a) != Domain::generic;
    if (is_swapped) std::swap(first, second);
    if (!make_power(*a, *b)) return std::nullopt;
  }
  const bool effort_goes_in = first->role == Role::input;
  if (effort_goes_in == (second->role == Role::input)) return std::nullopt;
  return FmuPort{.name = plain_fmu_name(declared.name),
                 .effort = first->name,
                 .flow = second->name,
                 .input = effort_goes_in ? Causality::effort_in : Causality::flow_in,
                 .counts_outward = declared.counts_outward};
}

std::vector<FmuPort> declared_ports(const Fmu& fmu) {
  std::vector<FmuPort> out;
  for (const DeclaredPort& declared : fmu.declared_ports()) {
    if (auto port = named_port(fmu.description(), declared)) out.push_back(*std::move(port));
  }
  return out;
}

PortVariables find_port(FmuVariables& variables, const FmuPort& port, const std::string& where,
                        std::vector<std::string>& notes, Issues& issues) {
  PortVariables out;
  out.causality = port.input;
  out.name = port.name.empty() ? plain_fmu_name(port.effort + "_" + port.flow) : port.name;
  const bool takes_effort = port.input == Causality::effort_in;
  const std::size_t before = issues.size();
  out.input = find_number(variables, takes_effort ? port.effort : port.flow, Role::input,
                          where + (takes_effort ? "/effort" : "/flow"), issues);
  out.output = find_number(variables, takes_effort ? port.flow : port.effort, Role::output,
                           where + (takes_effort ? "/flow" : "/effort"), issues);
  if (!port.integral.empty()) {
    out.integral = find_number(variables, port.integral, std::nullopt, where + "/integral", issues);
  }
  if (issues.size() == before) {
    PortUnits(variables.fmu(), port, where, out, notes, issues).settle();
  }
  return out;
}

/// What it is the value of, whatever its name: aliases have the same.
auto value_of(const Variable& own) { return std::tuple(own.type, own.reference, own.element); }

void expect_different(const std::vector<PortVariables>& ports, Issues& issues) {
  std::set<std::string> names;
  std::set<decltype(value_of({}))> values;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string where = fmt::format("/ports/{}", i);
    if (!names.insert(ports[i].name).second) {
      issues.push_back(
          {where + "/name", fmt::format("there are two ports {}", in_quotes(ports[i].name))});
    }
    for (const Variable* const own : {ports[i].input, ports[i].output}) {
      if (own == nullptr || values.insert(value_of(*own)).second) continue;
      issues.push_back(
          {where, fmt::format("{} belongs to another port already", in_quotes(own->name))});
    }
  }
}

/// What to write in place of the name of an array.
std::string array_hint(FmuVariables& variables, const Variable& array) {
  std::string why;
  const auto shape = variables.shape_of(array, why);
  if (!shape) return "an array whose size is not fixed: " + why;
  const auto elements = variables.elements_of(array, 1);
  if (elements.empty()) return "an array without elements";
  return fmt::format("an array of {}: name an element, such as {}", shown_shape(*shape),
                     in_quotes(elements.front()->name));
}

/// Clocks that an instance ticks or hears.
ClockMask usable_clocks(const ModelDescription& model) {
  ClockMask out = 0;
  for (std::size_t i = 0; i < model.clocks.size() && model.has_event_mode; ++i) {
    const Clock& own = model.clocks[i];
    const bool is_known = own.variability == "fixed" || own.interval_s.has_value();
    if ((own.is_periodic_input() && is_known) || own.is_triggered_output())
      out |= ClockMask{1} << i;
  }
  return out;
}

}  // namespace

std::string why_no_state_bytes(const Fmu& fmu) {
  const ModelDescription& model = fmu.description();
  if (model.saves_state && model.writes_state) return {};
  return fmt::format(
      "its FMU does not write its state as bytes: {} is not true",
      model.version == Version::v2 ? "canSerializeFMUstate" : "canSerializeFMUState");
}

Isolation isolation_of(bool in_a_process, double time_limit_s) {
  constexpr double kLeast_s = 1e-3;  // so long may a processor be another program's
  if (!(time_limit_s >= kLeast_s && std::isfinite(time_limit_s))) {
    throw ConfigError(
        "/time_limit_s",
        fmt::format(
            "must be finite and at least {} s, got {}: a call takes that long where processors "
            "are busy",
            kLeast_s, time_limit_s));
  }
  return {in_a_process, time_limit_s};
}

std::shared_ptr<const Fmu> open_fmu(const std::filesystem::path& file, const Isolation& isolation) {
  try {
    std::shared_ptr<const Fmu> fmu = Fmu::open(file);
    if (!isolation.in_a_process) fmu->functions();
    return fmu;
  } catch (const ConfigError& error) {
    Issues issues = error.issues();
    for (Issue& issue : issues) {
      issue.where = "/path";
      issue.what = fmt::format("{} {}", in_quotes(file.filename().string()), issue.what);
    }
    throw ConfigError(std::move(issues));
  }
}

const Variable* find_number(FmuVariables& variables, const std::string& name,
                            std::optional<Role> role, const std::string& where, Issues& issues) {
  const ModelDescription& model = variables.fmu().description();
  const Variable* const found = variables.find(name);
  if (found == nullptr) {
    if (const std::string defect = variables.element_defect(name); !defect.empty()) {
      issues.push_back({where, defect});
      return nullptr;
    }
    std::vector<std::string> names;
    for (const Variable& own : model.variables) {
      if (!role || own.role == *role) names.push_back(own.name);
    }
    const std::string hint = did_you_mean(name, names);
    issues.push_back(
        {where, fmt::format("the FMU has no variable {}.\n{}s: {}.{}", in_quotes(name),
                            role ? role_name(*role) : "variable", some_of(names), hint)});
    return nullptr;
  }
  if (role && found->role != *role) {
    issues.push_back({where, fmt::format("{} must be {} of the FMU, and is {}", in_quotes(name),
                                         with_article(*role), with_article(found->role))});
    return nullptr;
  }
  if (found->is_array || !is_number(found->type)) {
    issues.push_back({where, fmt::format("{} must be a single number, and is {}", in_quotes(name),
                                         found->is_array ? array_hint(variables, *found)
                                                         : std::string(kind_of(found->type)))});
    return nullptr;
  }
  return found;
}

const Variable* find_driven(FmuVariables& variables, const std::string& name,
                            const std::string& where, Issues& issues) {
  const Variable* const found = variables.find(name);
  const bool is_parameter = found != nullptr && found->role == Role::parameter;
  if (is_parameter && !found->is_tunable) {
    issues.push_back({where, fmt::format("{} is a parameter that is not tunable: it cannot change "
                                         "in a run. Set it in \"start\"",
                                         in_quotes(name))});
    return nullptr;
  }
  return find_number(variables, name, is_parameter ? Role::parameter : Role::input, where, issues);
}

std::vector<const Variable*> find_outputs(FmuVariables& variables,
                                          const std::optional<std::vector<std::string>>& names,
                                          Issues& issues) {
  std::vector<const Variable*> out;
  const auto show = [&](const Variable& own) {
    const std::size_t most =
        names ? static_cast<std::size_t>(-1) : kMostOutputs - std::min(out.size(), kMostOutputs);
    if (most == 0) return;
    const auto elements = own.is_array ? variables.elements_of(own, most) : std::vector{&own};
    out.insert(out.end(), elements.begin(), elements.end());
  };
  if (!names) {
    const ModelDescription& model = variables.fmu().description();
    const ClockMask usable = usable_clocks(model);
    for (const Variable& own : model.variables) {
      const bool has_values = own.clocks == 0 || (own.clocks & usable) != 0;
      if (own.role == Role::output && is_number(own.type) && has_values) show(own);
    }
    return out;
  }
  for (std::size_t i = 0; i < names->size(); ++i) {
    const std::string where = fmt::format("/outputs/{}", i);
    const Variable* own = variables.find((*names)[i]);
    const bool is_array = own != nullptr && own->is_array && is_number(own->type);
    const bool is_clock = own != nullptr && own->type == VariableType::clock;
    std::string why;
    if (is_array && !variables.shape_of(*own, why)) {
      issues.push_back({where, fmt::format("{} cannot be used: {}", in_quotes(own->name), why)});
      continue;
    }
    if (!is_array && !is_clock)
      own = find_number(variables, (*names)[i], std::nullopt, where, issues);
    if (own != nullptr) show(*own);
  }
  return out;
}

void check_clocks(const PartSetup& setup, Issues& issues) {
  const ModelDescription& model = setup.fmu->description();
  const ClockMask usable = usable_clocks(model);
  for (std::size_t i = 0; i < model.clocks.size() && model.has_event_mode; ++i) {
    const Clock& own = model.clocks[i];
    const bool is_used = (usable & (ClockMask{1} << i)) != 0;
    if (is_used || own.variability == "triggered") continue;
    issues.push_back(
        {"/path",
         fmt::format("the clock {} of the FMU has an interval that is {}{}: portwave ticks clocks "
                     "of intervals that are constant or fixed.\nExport the model with such a "
                     "clock, or without clocks",
                     in_quotes(own.name),
                     own.variability.empty() ? "not said" : printable(own.variability),
                     own.is_periodic_input() ? ", and no value of it" : "")});
  }
  const auto check = [&](const Variable* variable) {
    if (variable == nullptr || variable->clocks == 0) return;
    if ((variable->clocks & usable) != 0) return;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < model.clocks.size(); ++i) {
      if ((variable->clocks & (ClockMask{1} << i)) != 0) names.push_back(model.clocks[i].name);
    }
    issues.push_back({"/path", fmt::format("{} waits for {}, which nobody ticks: {}.\nLeave it out "
                                           "of inputs and outputs",
                                           in_quotes(variable->name), some_of(names),
                                           model.has_event_mode
                                               ? "only periodic input clocks and triggered output "
                                                 "clocks are used"
                                               : "the FMU has no event mode")});
  };
  for (const Variable* const own : setup.inputs) check(own);
  for (const Variable* const own : setup.outputs) check(own);
  for (const PortVariables& port : setup.ports) {
    for (const Variable* const own : {port.input, port.output, port.integral}) check(own);
  }
}

namespace {

void note_silent_clocks(PartSetup& setup) {
  const ModelDescription& model = setup.fmu->description();
  if (!model.has_event_mode) return;
  for (const Clock& own : model.clocks) {
    if (own.role != Role::input || own.variability != "triggered") continue;
    setup.notes.push_back(
        fmt::format("the clock {} is triggered from outside: it never ticks", in_quotes(own.name)));
  }
}

}  // namespace

PartSetup find_variables(const FmuPartOptions& options) {
  PartSetup out;
  out.isolation = isolation_of(options.process, options.time_limit_s);
  out.held_J = options.held_J;
  if (out.held_J && !(std::isfinite(*out.held_J) && *out.held_J >= 0.0)) {
    throw ConfigError("/held_J",
                      fmt::format("must be finite and not negative, got {}", *out.held_J));
  }
  out.fmu = open_fmu(options.file, out.isolation);
  out.name = options.name.empty() ? out.fmu->description().name : options.name;
  out.start_s = options.start_s;
  if (out.fmu->description().needs_tool) {
    out.notes.emplace_back(
        "the FMU needs another program to run (needsExecutionTool), such as an interpreter");
  }
  note_silent_clocks(out);
  Issues issues;
  out.variables = std::make_shared<FmuVariables>(out.fmu, options.start, issues);
  out.start = find_start_values(*out.variables, options.start, issues);
  const std::vector<FmuPort> ports =
      options.ports.empty() ? declared_ports(*out.fmu) : options.ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    out.ports.push_back(
        find_port(*out.variables, ports[i], fmt::format("/ports/{}", i), out.notes, issues));
  }
  if (ports.empty()) {
    issues.push_back(
        {"/ports",
         fmt::format("the FMU declares no ports: name pairs of an effort and a flow, such as "
                     "[{{\"effort\": \"F\", \"flow\": \"v\", \"input\": \"effort\"}}], or "
                     "use it as a block of \"signals\".\nIts inputs: {}; its outputs: {}",
                     some_of(out.fmu->description().names(
                         [](const Variable& own) { return own.role == Role::input; })),
                     some_of(out.fmu->description().names(
                         [](const Variable& own) { return own.role == Role::output; })))});
  }
  expect_different(out.ports, issues);
  for (const std::string& name : options.inputs) {
    const std::string where = "/inputs/" + escape_key(name);
    const Variable* const own = find_driven(*out.variables, name, where, issues);
    if (own == nullptr) continue;
    const bool is_of_port = std::ranges::any_of(out.ports, [&](const PortVariables& port) {
      return port.input != nullptr && value_of(*port.input) == value_of(*own);
    });
    if (is_of_port) {
      issues.push_back(
          {where, fmt::format("{} belongs to a port: it cannot be driven too", in_quotes(name))});
    } else {
      out.inputs.push_back(own);
    }
  }
  out.outputs = find_outputs(*out.variables, options.outputs, issues);
  check_clocks(out, issues);
  throw_if_any(std::move(issues));
  return out;
}

std::unique_ptr<Program> PartSetup::start_program() const {
  return std::make_unique<Program>(fmu, name, start, start_s, isolation, shown(),
                                   fmu->description().saves_state);
}

Shown PartSetup::shown() const {
  Shown shown;
  const auto add_clocked = [&](const Variable* own) {
    const bool is_clocked = own != nullptr && own->clocks != 0 && own->type != VariableType::clock;
    if (is_clocked) shown.clocked.add(*own);
  };
  for (const Variable* const own : outputs) add_clocked(own);
  for (const PortVariables& port : ports) {
    add_clocked(port.output);
    add_clocked(port.integral);
    if (watches() && port.integral == nullptr) shown.watched.add(*port.output);
  }
  return shown;
}

bool PartSetup::watches() const {
  const ModelDescription& model = fmu->description();
  const bool tells =
      model.provides_intermediate || model.has_event_mode || model.might_return_early;
  return tells && std::ranges::any_of(
                      ports, [](const PortVariables& port) { return port.integral == nullptr; });
}

}  // namespace portwave::fmi

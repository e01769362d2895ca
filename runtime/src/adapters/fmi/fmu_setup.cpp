#include "adapters/fmi/fmu_setup.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

constexpr std::size_t kMostShown = 12;      // names in a message
constexpr std::size_t kMostOutputs = 1000;  // shown as states unless they are named

std::string_view role_name(Role role) {
  switch (role) {
    case Role::parameter:
      return "parameter";
    case Role::structural_parameter:
      return "structural parameter";
    case Role::calculated_parameter:
      return "calculated parameter";
    case Role::input:
      return "input";
    case Role::output:
      return "output";
    case Role::local:
      return "local variable";
    case Role::independent:
      return "independent variable";
  }
  return "variable";
}

std::string with_article(Role role) {
  const std::string_view name = role_name(role);
  const bool is_vowel = std::string_view("aeiou").find(name.front()) != std::string_view::npos;
  return fmt::format("{} {}", is_vowel ? "an" : "a", name);
}

std::string some_of(std::vector<std::string> names) {
  if (names.size() <= kMostShown) return fmt::format("{}", fmt::join(names, ", "));
  const std::size_t all = names.size();
  names.resize(kMostShown);
  return fmt::format("{}, ... ({} in all)", fmt::join(names, ", "), all);
}

bool may_start(const Variable& variable) {
  return variable.type < VariableType::clock && !variable.is_constant &&
         (variable.role == Role::parameter || variable.role == Role::structural_parameter ||
          variable.role == Role::input ||
          (variable.has_start && (variable.role == Role::output || variable.role == Role::local)));
}

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
      notes_.push_back(fmt::format(
          "port {}: the FMU does not tell the units of {}: they are taken as SI units", out_.name,
          effort_unit == nullptr && flow_unit == nullptr
              ? fmt::format("{} and {}", effort.name, flow.name)
              : (effort_unit == nullptr ? effort.name : flow.name)));
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

void expect_different(const std::vector<PortVariables>& ports, Issues& issues) {
  std::set<std::string> names;
  std::set<const Variable*> variables;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string where = fmt::format("/ports/{}", i);
    if (!names.insert(ports[i].name).second) {
      issues.push_back(
          {where + "/name", fmt::format("there are two ports {}", in_quotes(ports[i].name))});
    }
    for (const Variable* const own : {ports[i].input, ports[i].output}) {
      if (own == nullptr || variables.insert(own).second) continue;
      issues.push_back(
          {where, fmt::format("{} belongs to another port already", in_quotes(own->name))});
    }
  }
}

std::string_view kind_of(VariableType type) {
  switch (type) {
    case VariableType::text:
      return "a text";
    case VariableType::clock:
      return "a clock";
    default:
      return "binary data";
  }
}

/// What to write in place of the name of an array.
std::string array_hint(FmuVariables& variables, const Variable& array) {
  std::string why;
  const auto shape = variables.shape_of(array, why);
  if (!shape) return "an array whose size is not fixed: " + why;
  const auto elements = variables.elements_of(array);
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

/// Finds variables with start values.
class StartFinder {
 public:
  StartFinder(FmuVariables& variables, Issues& issues) : variables_(variables), issues_(issues) {}

  std::vector<StartValue> find(const std::map<std::string, FmuValue>& start) {
    for (const auto& [name, value] : start) add(name, "/start/" + escape_key(name), value);
    for (auto& [array, elements] : elements_) add_elements(*array, elements);
    return std::move(out_);
  }

 private:
  /// Of an array of which single elements are given.
  struct Elements {
    std::vector<std::pair<std::size_t, double>> given;
    std::size_t count = 0;
    std::string where;
  };

  void fail(const std::string& where, std::string what) {
    issues_.push_back({where, std::move(what)});
  }
  void add(const std::string& name, const std::string& where, const FmuValue& value) {
    const Variable* const variable = variables_.find(name);
    const bool is_text = std::holds_alternative<std::string>(value);
    const auto* const array = std::get_if<NumberArray>(&value);
    if (variable == nullptr) {
      find_number(variables_, name, std::nullopt, where, issues_);
    } else if (!may_start(*variable)) {
      fail(where,
           fmt::format("{} cannot be set: it is {}{}.\nTo be set: {}", in_quotes(name),
                       variable->type >= VariableType::clock ? std::string(kind_of(variable->type))
                                                             : with_article(variable->role),
                       variable->is_constant ? ", constant" : "",
                       some_of(variables_.fmu().description().names(&may_start))));
    } else if (variable->is_array) {
      add_array(*variable, where, value);
    } else if (array != nullptr || is_text != (variable->type == VariableType::text)) {
      const bool takes_text = variable->type == VariableType::text;
      fail(where, fmt::format("{} takes a {}", in_quotes(name), takes_text ? "text" : "number"));
    } else if (is_text && !variable->array.empty()) {
      fail(where, "is an element of an array of texts, which cannot be set");
    } else if (!is_text && !std::isfinite(std::get<double>(value))) {
      fail(where, "must be finite");
    } else if (!variable->array.empty()) {
      Elements& own = elements_[variables_.fmu().description().find(variable->array)];
      own.given.emplace_back(variable->element, std::get<double>(value));
      own.count = variable->elements;
      own.where = where;
    } else {
      out_.push_back({variable, value});
    }
  }
  void add_array(const Variable& variable, const std::string& where, const FmuValue& value) {
    std::string why;
    const auto shape = variables_.shape_of(variable, why);
    const auto* const array = std::get_if<NumberArray>(&value);
    if (!shape || variable.type == VariableType::text) {
      fail(where, fmt::format("{} cannot be set: {}", in_quotes(variable.name),
                              shape ? "it is an array of texts" : why));
      return;
    }
    std::size_t count = 1;
    for (const std::size_t own : *shape) count *= own;
    if (array == nullptr) {
      fail(where, fmt::format("{} is an array of {}: give an array of numbers, or name an element, "
                              "such as {}",
                              in_quotes(variable.name), shown_shape(*shape),
                              count > 0 ? in_quotes(variables_.elements_of(variable)[0]->name)
                                        : "none: it is empty"));
      return;
    }
    // A flat array is taken by rows.
    if (array->values.size() != count || (array->shape.size() > 1 && array->shape != *shape)) {
      fail(where,
           fmt::format(
               "{} is an array of {}, and {} numbers are given{}", in_quotes(variable.name),
               shown_shape(*shape), array->values.size(),
               array->shape.size() > 1 ? fmt::format(" as {}", shown_shape(array->shape)) : ""));
      return;
    }
    if (!std::ranges::all_of(array->values, [](double own) { return std::isfinite(own); })) {
      fail(where, "must be finite");
      return;
    }
    out_.push_back({&variable, value});
  }
  /// Arrays are set as a whole: other elements keep the start values of the description.
  void add_elements(const Variable& array, const Elements& elements) {
    NumberArray all{{elements.count}, {}};
    std::istringstream words(array.start);
    for (std::string word; words >> word;) {
      const bool is_true = word == "true";
      all.values.push_back(is_true ? 1.0 : std::strtod(word.c_str(), nullptr));
    }
    if (all.values.size() == 1) all.values.resize(elements.count, all.values[0]);
    const bool is_all = elements.given.size() == elements.count;
    if (is_all) all.values.resize(elements.count);
    if (all.values.size() != elements.count) {
      fail(elements.where,
           fmt::format("{} has {} elements, and the FMU gives start values of {}: give all of them",
                       in_quotes(array.name), elements.count, all.values.size()));
      return;
    }
    for (const auto& [place, value] : elements.given) all.values[place] = value;
    out_.push_back({&array, std::move(all)});
  }

  FmuVariables& variables_;
  Issues& issues_;
  std::vector<StartValue> out_;
  std::map<const Variable*, Elements> elements_;
};

}  // namespace

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

std::vector<StartValue> find_start_values(FmuVariables& variables,
                                          const std::map<std::string, FmuValue>& start,
                                          Issues& issues) {
  return StartFinder(variables, issues).find(start);
}

std::vector<const Variable*> find_outputs(FmuVariables& variables,
                                          const std::optional<std::vector<std::string>>& names,
                                          Issues& issues) {
  std::vector<const Variable*> out;
  const auto show = [&](const Variable& own) {
    const auto elements = own.is_array ? variables.elements_of(own) : std::vector{&own};
    for (const Variable* const element : elements) {
      if (names || out.size() < kMostOutputs) out.push_back(element);
    }
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

PartSetup find_variables(const FmuPartOptions& options) {
  PartSetup out;
  out.isolation = isolation_of(options.process, options.time_limit_s);
  out.fmu = open_fmu(options.file, out.isolation);
  out.name = options.name.empty() ? out.fmu->description().name : options.name;
  out.start_s = options.start_s;
  if (out.fmu->description().needs_tool) {
    out.notes.emplace_back(
        "the FMU needs another program to run (needsExecutionTool), such as an interpreter");
  }
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
    const Variable* const own = find_number(*out.variables, name, Role::input, where, issues);
    if (own == nullptr) continue;
    const bool is_of_port =
        std::ranges::find(out.ports, own, &PortVariables::input) != out.ports.end();
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
  return std::make_unique<Program>(fmu, name, start, start_s, isolation, shown);
}

bool PartSetup::watches() const {
  const ModelDescription& model = fmu->description();
  const bool tells =
      model.provides_intermediate || model.has_event_mode || model.might_return_early;
  return tells && std::ranges::any_of(
                      ports, [](const PortVariables& port) { return port.integral == nullptr; });
}

}  // namespace portwave::fmi

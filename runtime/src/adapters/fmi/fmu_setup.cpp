#include "adapters/fmi/fmu_setup.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
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
  return variable.type != VariableType::other && !variable.is_array && !variable.is_constant &&
         (variable.role == Role::parameter || variable.role == Role::input ||
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

PortVariables find_port(const Fmu& fmu, const FmuPort& port, const std::string& where,
                        std::vector<std::string>& notes, Issues& issues) {
  PortVariables out;
  out.causality = port.input;
  out.name = port.name.empty() ? plain_fmu_name(port.effort + "_" + port.flow) : port.name;
  const bool takes_effort = port.input == Causality::effort_in;
  const std::size_t before = issues.size();
  out.input = find_number(fmu, takes_effort ? port.effort : port.flow, Role::input,
                          where + (takes_effort ? "/effort" : "/flow"), issues);
  out.output = find_number(fmu, takes_effort ? port.flow : port.effort, Role::output,
                           where + (takes_effort ? "/flow" : "/effort"), issues);
  if (!port.integral.empty()) {
    out.integral = find_number(fmu, port.integral, std::nullopt, where + "/integral", issues);
  }
  if (issues.size() == before) PortUnits(fmu, port, where, out, notes, issues).settle();
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

const Variable* find_number(const Fmu& fmu, const std::string& name, std::optional<Role> role,
                            const std::string& where, Issues& issues) {
  const ModelDescription& model = fmu.description();
  const Variable* const found = model.find(name);
  if (found == nullptr) {
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
                                         found->is_array ? "an array" : "none")});
    return nullptr;
  }
  return found;
}

std::vector<StartValue> find_start_values(const Fmu& fmu,
                                          const std::map<std::string, FmuValue>& start,
                                          Issues& issues) {
  std::vector<StartValue> out;
  for (const auto& [name, value] : start) {
    const std::string where = "/start/" + escape_key(name);
    const bool is_text = std::holds_alternative<std::string>(value);
    const Variable* const variable = fmu.description().find(name);
    const bool takes_text = variable != nullptr && variable->type == VariableType::text;
    if (variable == nullptr || (!is_text && !takes_text)) {
      if (find_number(fmu, name, std::nullopt, where, issues) == nullptr) continue;
    }
    if (is_text != takes_text) {
      issues.push_back(
          {where, fmt::format("{} takes a {}", in_quotes(name), takes_text ? "text" : "number")});
    } else if (!is_text && !std::isfinite(std::get<double>(value))) {
      issues.push_back({where, "must be finite"});
    } else if (!may_start(*variable)) {
      issues.push_back({where, fmt::format("{} cannot be set: it is {}{}.\nTo be set: {}",
                                           in_quotes(name), with_article(variable->role),
                                           variable->is_constant ? ", constant" : "",
                                           some_of(fmu.description().names(&may_start)))});
    } else {
      out.push_back({variable, value});
    }
  }
  return out;
}

std::vector<const Variable*> find_outputs(const Fmu& fmu,
                                          const std::optional<std::vector<std::string>>& names,
                                          Issues& issues) {
  std::vector<const Variable*> out;
  if (!names) {
    for (const Variable& own : fmu.description().variables) {
      const bool is_shown = own.role == Role::output && is_number(own.type) && !own.is_array;
      if (is_shown && out.size() < kMostOutputs) out.push_back(&own);
    }
    return out;
  }
  for (std::size_t i = 0; i < names->size(); ++i) {
    const Variable* const own =
        find_number(fmu, (*names)[i], std::nullopt, fmt::format("/outputs/{}", i), issues);
    if (own != nullptr) out.push_back(own);
  }
  return out;
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
  out.start = find_start_values(*out.fmu, options.start, issues);
  const std::vector<FmuPort> ports =
      options.ports.empty() ? declared_ports(*out.fmu) : options.ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    out.ports.push_back(
        find_port(*out.fmu, ports[i], fmt::format("/ports/{}", i), out.notes, issues));
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
    const Variable* const own = find_number(*out.fmu, name, Role::input, where, issues);
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
  out.outputs = find_outputs(*out.fmu, options.outputs, issues);
  throw_if_any(std::move(issues));
  return out;
}

std::unique_ptr<Program> PartSetup::start_program() const {
  return std::make_unique<Program>(fmu, name, start, start_s, isolation);
}

}  // namespace portwave::fmi

#include "scenario/parts/fmu_entry.hpp"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/files/foreign_code.hpp"
#include "scenario/parts/values.hpp"
#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {
namespace {

struct FmuPortKeys : FmuPort {
  std::string direction = "in";
};

Form<std::optional<Domain>> domain_form() {
  constexpr Domain kDomains[] = {Domain::generic,    Domain::translation, Domain::rotation,
                                 Domain::electrical, Domain::magnetic,    Domain::hydraulic,
                                 Domain::thermal};
  std::vector<std::pair<std::string, std::optional<Domain>>> words;
  for (const Domain domain : kDomains) words.emplace_back(to_string(domain), domain);
  return form::choice(std::move(words));
}

const KeyTable<FmuPortKeys>& fmu_port_keys() {
  static const KeyTable<FmuPortKeys> keys({
      optional_key("name", "name of the port; absent: \"<effort>_<flow>\"",
                   to(&FmuPort::name, form::name())),
      required_key("effort", "variable that is the effort, such as a force or a voltage",
                   to(&FmuPort::effort, form::name())),
      required_key("flow", "variable that is the flow, such as a velocity or a current",
                   to(&FmuPort::flow, form::name())),
      required_key("input", "which of them the FMU takes; the other one is its answer",
                   to(&FmuPort::input, form::choice<Causality>({{"effort", Causality::effort_in},
                                                                {"flow", Causality::flow_in}}))),
      optional_key(
          "integral",
          "variable whose rate the answer is, such as the position to a velocity: the mean answer "
          "over a step is then exact",
          to(&FmuPort::integral, form::name())),
      optional_key("domain", "physical domain; absent: as the units of the FMU say",
                   to(&FmuPort::domain, domain_form())),
      optional_key(
          "power", "whether effort times flow is power into the FMU or out of it",
          to(&FmuPortKeys::direction, form::choice<std::string>({{"in", "in"}, {"out", "out"}})),
          "in"),
  });
  return keys;
}

std::optional<std::vector<FmuPort>> read_fmu_ports(const Node& node) {
  if (!node.is_array("an array of ports")) return std::nullopt;
  if (node.size() == 0 || node.size() > static_cast<std::size_t>(scenario_limits::kPartPorts)) {
    node.fail(
        fmt::format("must have 1 to {} ports, got {}", scenario_limits::kPartPorts, node.size()));
    return std::nullopt;
  }
  std::vector<FmuPort> out;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node element = node.at(i);
    FmuPortKeys keys;
    if (!fmu_port_keys().read(element, keys)) continue;
    keys.counts_outward = keys.direction == "out";
    out.push_back(keys);
  }
  if (out.size() != node.size()) return std::nullopt;
  return out;
}

}  // namespace

Json fmu_ports_schema() {
  return described(
      list(fmu_port_keys().schema(), 1),
      "of an FMU: pairs of variables that carry power; absent: those that it declares");
}

Json fmu_start_schema() {
  return described(map_of(named_value_schema()),
                   "of an FMU: start values by variable, each in its own unit");
}

Json fmu_rollback_schema() {
  return described(
      boolean(),
      "of an FMU: whether its steps are taken back and repeated; absent: where it can. "
      "Without, they are foretold and taken once");
}

Json fmu_process_schema() {
  return with_default(
      described(boolean(),
                "of an FMU: it runs in a process of its own, whose crash or hang ends the run at "
                "the last committed state"),
      false);
}

Json fmu_time_limit_schema() {
  return with_default(
      described(range_schema(NumberRange::positive()),
                "of an FMU in a process of its own: how long a call of one of its functions may "
                "take [s]"),
      plain(FmuPartOptions().time_limit_s));
}

Json fmu_held_schema() {
  return described(
      range_schema({.minimum = 0.0}),
      "of an FMU without a source: energy that it holds at the start, at most [J]. Where it "
      "gives more than that and what it received, the certificate is violated; absent: it "
      "may be a source");
}

std::string input_of_fmu(const std::string& variable) { return plain_fmu_name(variable); }

std::shared_ptr<const Component> read_fmu(const Node& node, const std::string& name,
                                          const FmuKeys& keys, const Node* inputs,
                                          SystemDraft& draft) {
  FmuPartOptions options;
  options.name = name;
  if (const ForeignCode* const code = ForeignCode::current()) {
    options.start_s = code->start_s;
    options.step_s = code->step_s;
  }
  bool is_sound = true;
  if (!keys.path) {
    node.fail("needs \"path\", the file of the FMU");
    return nullptr;
  }
  if (const auto path = keys.path->text()) {
    std::string refusal;
    const auto file = ForeignCode::allowed_file(*path, refusal);
    if (!file) keys.path->fail(refusal);
    is_sound = file.has_value();
    options.file = file.value_or("");
  } else {
    is_sound = false;
  }
  if (keys.ports) {
    auto ports = read_fmu_ports(*keys.ports);
    is_sound = is_sound && ports.has_value();
    if (ports) options.ports = *std::move(ports);
  }
  if (keys.start) {
    auto start = read_named_values(*keys.start);
    is_sound = is_sound && start.has_value();
    if (start) options.start = *std::move(start);
  }
  if (keys.outputs) {
    options.outputs = read_texts(*keys.outputs);
    is_sound = is_sound && options.outputs.has_value();
  }
  if (keys.rollback) {
    options.rollback = keys.rollback->boolean();
    is_sound = is_sound && options.rollback.has_value();
  }
  if (keys.process) {
    const auto process = keys.process->boolean();
    is_sound = is_sound && process.has_value();
    options.process = process.value_or(true);
  }
  if (keys.time_limit) {
    const auto limit = keys.time_limit->number(NumberRange::positive());
    is_sound = is_sound && limit.has_value();
    options.time_limit_s = limit.value_or(options.time_limit_s);
    if (!options.process) {
      keys.time_limit->fail("needs \"process\": true: calls in this process cannot be ended");
      is_sound = false;
    }
  }
  if (keys.held) {
    options.held_J = keys.held->number({.minimum = 0.0});
    is_sound = is_sound && options.held_J.has_value();
  }
  if (inputs != nullptr && inputs->json().is_object()) {
    for (const auto& [key, value] : inputs->json().items()) options.inputs.push_back(key);
  }
  if (!is_sound) return nullptr;
  try {
    FmuPart part = make_fmu_part(options);
    draft.fmu_energy_J += part.available_J;
    for (std::string& note : part.notes) draft.notes.push_back({node.where(), std::move(note)});
    return part.component;
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) {
      node.defects().add(node.where() + issue.where, issue.what);
    }
  } catch (const std::exception& error) {
    node.fail(fmt::format("the FMU could not be used: {}", printable(error.what())));
  }
  return nullptr;
}

}  // namespace portwave::scenario_file

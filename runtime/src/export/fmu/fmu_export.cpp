#include "portwave/runtime/export/fmu_export.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "adapters/fmi/file/fmu.hpp"
#include "export/fmu/fmu_contents.hpp"
#include "export/fmu/fmu_scenario.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "scenario/reader/node.hpp"

namespace portwave {
namespace exported {
namespace {

constexpr std::string_view kEnergyPrefix = "energy.";
constexpr const char* kLibrary = "portwave_fmu.so";

/// The word of "energy.stored" and the like; none where it is another name.
const EnergyName* energy_named(std::string_view name) {
  if (!name.starts_with(kEnergyPrefix)) return nullptr;
  name.remove_prefix(kEnergyPrefix.size());
  const auto found = std::ranges::find(energy_names(), name, &EnergyName::word);
  return found == energy_names().end() ? nullptr : &*found;
}

/// Whether the steps of a run can have any size, by one that has. Steps it.
bool takes_any_step(Stepper& stepper, const StepperOptions& options) {
  if (options.sizes) return true;
  try {
    stepper.step_by(0.5 * options.step_s);
    return true;
  } catch (const std::logic_error&) {
    return false;
  } catch (const ConfigError&) {
    return false;
  } catch (const StepError&) {
    return true;  // the run says it again
  }
}

/// Of "part.mass_kg" or "part.masses_kg[1]"; null where the catalogue does not have it.
const ParameterInfo* parameter_info(const System& system, const std::string& path) {
  const std::size_t dot = path.rfind('.');
  for (const Part& part : system.parts()) {
    if (part.name != path.substr(0, dot)) continue;
    const PartType* const type = find_part_type(part.component->signature().type);
    if (type == nullptr) return nullptr;
    const std::string name = path.substr(dot + 1, path.find('[', dot) - dot - 1);
    const auto info = std::ranges::find(type->parameters, name, &ParameterInfo::name);
    if (info != type->parameters.end()) return &*info;
  }
  return nullptr;
}

/// The values of the parameters that are shown.
std::vector<double> parameter_values(const Stepper& stepper, const Scenario& scenario,
                                     const std::vector<std::string>& paths, Issues& issues) {
  std::vector<double> out;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string where = fmt::format("/parameters/{}", i);
    if (!seen.insert(paths[i]).second) {
      issues.push_back({where, fmt::format("{} is named twice", in_quotes(paths[i]))});
    }
    try {
      out.push_back(parameter(stepper, scenario, paths[i]));
      const ParameterInfo* const info = parameter_info(scenario.system, paths[i]);
      if (info != nullptr && info->kind != ParameterKind::number &&
          info->kind != ParameterKind::numbers) {
        issues.push_back(
            {where, fmt::format("{} decides how the part is built: only numbers that may "
                                "change in a run can be parameters",
                                in_quotes(paths[i]))});
      }
    } catch (const std::exception& error) {
      issues.push_back({where, error.what()});
      out.push_back(0.0);
    }
  }
  return out;
}

std::string unit_of_input(const System& system, const std::string& path) {
  for (const System::SettableInput& own : system.settable_inputs()) {
    if (system.input_label(own) != path) continue;
    const Part& part = system.parts()[static_cast<std::size_t>(own.part)];
    return part.component->signature().inputs[static_cast<std::size_t>(own.input)].unit;
  }
  return {};
}

/// Collects the variables.
class Interface {
 public:
  Interface(const Scenario& scenario, const FmuScenario& source, const FmuExportOptions& options,
            const std::vector<double>& parameters)
      : scenario_(scenario), source_(source), options_(options), parameters_(parameters) {
    model.variables.push_back(
        {.kind = Variable::Kind::time, .name = "time", .unit = "s", .about = "simulated time"});
    names_.insert("time");
  }

  /// Notes a signal that has the name of the time.
  void add_all(Issues& issues) {
    for (const OpenPort& port : source_.ports()) add_input_of(port);
    add_inputs();
    for (std::size_t i = 0; i < options_.parameters.size(); ++i) add_parameter(i);
    for (std::size_t i = 0; i < source_.ports().size(); ++i) add_answer_of(i);
    for (const Quantity& own : scenario_.recording.quantities) {
      if (!shows_quantities()) break;
      if (own.label == model.variables.front().name) refuse_name(own.label, issues);
      if (names_.contains(own.label)) continue;  // of a port
      add({.kind = Variable::Kind::quantity,
           .name = own.label,
           .path = own.label,
           .unit = own.unit});
    }
    for (const std::string& name : options_.outputs) {
      const EnergyName* const energy = energy_named(name);
      if (energy == nullptr || names_.contains(name)) continue;
      add({.kind = Variable::Kind::energy,
           .name = name,
           .path = std::string(energy->word),
           .unit = "J",
           .about = std::string(energy->about)});
    }
  }

  ExportedModel model;

 private:
  /// Not where energies alone were asked for.
  bool shows_quantities() const {
    const auto is_quantity = [](const std::string& own) { return energy_named(own) == nullptr; };
    return options_.outputs.empty() || std::ranges::any_of(options_.outputs, is_quantity);
  }
  void refuse_name(const std::string& name, Issues& issues) const {
    const auto place = std::ranges::find(options_.outputs, name) - options_.outputs.begin();
    const bool is_listed = place < std::ssize(options_.outputs);
    issues.push_back(
        {is_listed ? fmt::format("/outputs/{}", place) : "/outputs",
         fmt::format("{} is the FMU's own name: give the signal another one", in_quotes(name))});
  }
  int add(Variable variable) {
    names_.insert(variable.name);
    model.variables.push_back(std::move(variable));
    return static_cast<int>(model.variables.size()) - 1;
  }
  void add_input_of(const OpenPort& port) {
    const bool is_effort = port.input == Causality::effort_in;
    const DomainUnits units = portwave::units(port.domain);
    const char* const side = is_effort ? "effort" : "flow";
    const int place = add({.kind = Variable::Kind::input,
                           .name = fmt::format("{}.{}", port.path, side),
                           .path = fmt::format("{}.{}", port.source, side),
                           .unit = std::string(is_effort ? units.effort : units.flow),
                           .about = fmt::format("{} of the port {}", side, port.path)});
    PowerPort pair{.name = port.path, .domain = std::string(to_string(port.domain))};
    (is_effort ? pair.effort : pair.flow) = place;
    model.ports.push_back(std::move(pair));
  }
  void add_answer_of(std::size_t i) {
    const OpenPort& port = source_.ports()[i];
    const bool is_effort = port.input == Causality::flow_in;
    const DomainUnits units = portwave::units(port.domain);
    const char* const side = is_effort ? "effort" : "flow";
    const std::string unit(is_effort ? units.effort : units.flow);
    const std::string path = fmt::format("{}.{}", port.path, side);
    const int place = add(
        {.kind = Variable::Kind::quantity,
         .name = path,
         .path = path,
         .unit = unit,
         .about = fmt::format("{} of the port {}, its mean over the last step", side, port.path)});
    const int integral = add(
        {.kind = Variable::Kind::integral,
         .name = path + "_integral",
         .path = path,
         .unit = integral_unit(unit),
         .about = fmt::format("{} of the port {}, integrated from the start", side, port.path)});
    model.variables[static_cast<std::size_t>(place)].integral = integral;
    (is_effort ? model.ports[i].effort : model.ports[i].flow) = place;
  }
  void add_inputs() {
    std::vector<std::string> paths = options_.inputs;
    const std::map<std::string, double> signals = settable_signals(scenario_);
    if (paths.empty()) {
      paths = settable_by_importers();
      for (const auto& [name, start] : signals) paths.push_back(name);
    }
    for (const std::string& path : paths) {
      double start = 0.0;
      for (const System::SettableInput& own : scenario_.system.settable_inputs()) {
        if (scenario_.system.input_label(own) == path) start = own.initial;
      }
      if (const auto signal = signals.find(path); signal != signals.end()) start = signal->second;
      add({.kind = Variable::Kind::input,
           .name = path,
           .path = path,
           .unit = unit_of_input(scenario_.system, path),
           .start = start,
           .about = "external input"});
    }
  }
  /// Neither those of sources at ports, which are there already, nor those that the signal graph drives.
  std::vector<std::string> settable_by_importers() const {
    std::set<std::string> others;
    for (const OpenPort& port : source_.ports()) {
      others.insert(fmt::format("{}.{}", port.source,
                                port.input == Causality::effort_in ? "effort" : "flow"));
    }
    const std::span<const System::SettableInput> all = scenario_.system.settable_inputs();
    if (const SignalGraph* const graph = scenario_.options.signals.get()) {
      for (const SignalGraph::Actuator& own : graph->actuators()) {
        others.insert(scenario_.system.input_label(all[static_cast<std::size_t>(own.slot)]));
      }
    }
    std::vector<std::string> paths;
    for (const System::SettableInput& own : all) {
      const std::string label = scenario_.system.input_label(own);
      if (!others.contains(label)) paths.push_back(label);
    }
    return paths;
  }
  void add_parameter(std::size_t i) {
    const std::string& path = options_.parameters[i];
    const ParameterInfo* const info = parameter_info(scenario_.system, path);
    add({.kind = Variable::Kind::parameter,
         .name = path,
         .path = path,
         .unit = info == nullptr ? std::string() : info->unit,
         .start = parameters_[i],
         .about = "parameter"});
  }

  const Scenario& scenario_;
  const FmuScenario& source_;
  const FmuExportOptions& options_;
  const std::vector<double>& parameters_;
  std::set<std::string> names_;
};

/// Tables and matrices, below the folder of the scenario.
std::vector<Member> files_of(const Scenario& scenario, const std::filesystem::path& folder,
                             Issues& issues) {
  std::vector<Member> out;
  std::set<std::string> names;
  const std::filesystem::path base =
      std::filesystem::absolute(folder.empty() ? "." : folder).lexically_normal();
  for (const ScenarioFile& own : scenario.files) {
    const std::filesystem::path whole = std::filesystem::absolute(own.path).lexically_normal();
    const std::string name = whole.lexically_relative(base).generic_string();
    if (name == "model.json" || name == "scenario.json") {
      issues.push_back({"", fmt::format("the file {} of the scenario cannot go into the FMU: there "
                                        "is another one of this name in it",
                                        in_quotes(own.path.string()))});
    } else if (names.insert(name).second) {
      out.push_back({.name = "resources/" + name, .content = {}, .file = whole});
    }
  }
  return out;
}

void add_engine(const Engine& engine, const std::filesystem::path& folder,
                const std::string& platform, const std::string& identifier,
                std::vector<Member>& members) {
  const auto add = [&members](std::string name, std::filesystem::path file) {
    members.push_back({.name = std::move(name), .content = {}, .file = std::move(file)});
  };
  const std::string binaries = fmt::format("binaries/{}/", platform);
  add(fmt::format("{}{}.so", binaries, identifier), folder / kLibrary);
  for (Member& own : engine.companions()) add(binaries + own.name, std::move(own.file));
  std::vector<std::filesystem::path> notices;
  std::error_code error;
  for (const auto& own : std::filesystem::directory_iterator(folder / "licenses", error)) {
    notices.push_back(own.path());
  }
  std::ranges::sort(notices);
  for (const std::filesystem::path& own : notices) {
    add("documentation/licenses/" + own.filename().string(), own);
  }
}

std::filesystem::path library_folder(const FmuExportOptions& options, Issues& issues) {
  std::filesystem::path folder = options.library;
  if (folder.empty()) {
    std::error_code ignored;
    folder =
        find_fmu_library(std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path());
  }
  std::error_code error;
  if (folder.empty() || !std::filesystem::is_regular_file(folder / kLibrary, error)) {
    issues.push_back(
        {"/library",
         fmt::format(
             "{} was not found{}: it is built with portwave (target portwave_fmu) and lies in "
             "the folder portwave_fmu beside the program or in its ../lib",
             kLibrary, folder.empty() ? "" : fmt::format(" in {}", in_quotes(folder.string())))});
  }
  return folder;
}

/// Issues of "outputs" in their place among the options.
ScenarioError with_places(const ScenarioError& error, const std::vector<std::size_t>& observed,
                          Issues& options) {
  constexpr std::string_view kObserve = "/outputs/observe/";
  Issues rest;
  for (const Issue& issue : error.issues()) {
    std::size_t place = observed.size();
    if (issue.where.starts_with(kObserve)) {
      const std::string number = issue.where.substr(kObserve.size());
      if (!number.empty() && number.find_first_not_of("0123456789") == std::string::npos &&
          number.size() < 9) {
        place = static_cast<std::size_t>(std::stoul(number));
      }
    }
    if (place < observed.size()) {
      options.push_back({fmt::format("/outputs/{}", observed[place]), issue.what});
    } else {
      rest.push_back(issue);
    }
  }
  return {error.file(), std::move(rest)};
}

/// Issues of ports that were opened in their place among the options.
ScenarioError with_places(const ScenarioError& error, const std::vector<OpenPort>& ports,
                          Issues& options) {
  Issues rest;
  for (const Issue& issue : error.issues()) {
    const auto port = std::ranges::find_if(ports, [&issue](const OpenPort& own) {
      return issue.where == fmt::format("/couplings/{}/ports/0", own.coupling);
    });
    if (port == ports.end()) {
      rest.push_back(issue);
    } else {
      options.push_back({fmt::format("/ports/{}", port->place), issue.what});
    }
  }
  return {error.file(), std::move(rest)};
}

/// What the scenario with its open ports tells.
struct FirstLook {
  std::vector<double> parameters;  ///< their values
  bool takes_any_step = false;
};

FirstLook first_look(FmuScenario& source, const ScenarioText& given,
                     const FmuExportOptions& options, Issues& issues) {
  try {
    const Scenario first = source.parse();
    source.settle_ports(first.system, issues);
    source.take_inputs(options.inputs, first, issues);
    FirstLook look;
    try {
      Stepper stepper(first.system, first.options);
      look.parameters = parameter_values(stepper, first, options.parameters, issues);
      look.takes_any_step = takes_any_step(stepper, first.options);
    } catch (const ConfigError& error) {
      throw ScenarioError(given.file, error.issues());
    }
    return look;
  } catch (const ScenarioError& error) {
    ScenarioError rest = with_places(error, source.ports(), issues);
    if (issues.empty()) throw rest;
    append(issues, "", rest.issues());
    throw ConfigError(std::move(issues));
  }
}

/// For the first start.
void write_resources(const std::vector<Member>& members, const std::filesystem::path& folder) {
  for (const Member& own : members) {
    if (!own.name.starts_with("resources/")) continue;
    const std::filesystem::path to = folder / own.name;
    std::error_code error;
    std::filesystem::create_directories(to.parent_path(), error);
    if (!error && !own.file.empty()) std::filesystem::copy_file(own.file, to, error);
    if (!error && own.file.empty()) {
      std::ofstream file(to, std::ios::binary);
      file << own.content;
      file.close();
      if (!file) error = std::make_error_code(std::errc::io_error);
    }
    if (error) {
      throw ConfigError(
          "", fmt::format("{} cannot be written: {}", in_quotes(to.string()), error.message()));
    }
  }
}

void refuse_out(const std::filesystem::path& out, std::string_view why, Issues& issues) {
  issues.push_back({"/out", fmt::format("{} cannot be written: {}", in_quotes(out.string()), why)});
}

/// The FMU must not take the place of a file that goes into it.
void refuse_to_replace(const std::vector<Member>& members, const std::filesystem::path& out,
                       Issues& issues) {
  for (const Member& own : members) {
    std::error_code error;
    if (own.file.empty() || !std::filesystem::equivalent(own.file, out, error)) continue;
    refuse_out(out, "it is a file that goes into the FMU", issues);
  }
}

/// Texts that XML and JSON can hold: all names of the FMU come from these.
void expect_texts(const FmuExportOptions& options, Issues& issues) {
  const auto expect = [&issues](const std::string& where, const std::string& text) {
    if (printable(text, text.size()) == text) return;
    issues.push_back({where, fmt::format("{} has characters that cannot be printed, or is no UTF-8",
                                         in_quotes(text))});
  };
  const auto expect_all = [&expect](const char* where, const std::vector<std::string>& texts) {
    for (std::size_t i = 0; i < texts.size(); ++i) expect(fmt::format("{}/{}", where, i), texts[i]);
  };
  expect("/name", options.name);
  expect_all("/inputs", options.inputs);
  expect_all("/outputs", options.outputs);
  expect_all("/parameters", options.parameters);
  expect_all("/ports", options.ports);
}

/// The same of the names that the scenario gives.
void expect_texts(const ExportedModel& model, Issues& issues) {
  const auto expect = [&issues](const std::string& name) {
    if (printable(name, name.size()) == name) return;
    issues.push_back({"", fmt::format("the name {} of the scenario has characters that cannot be "
                                      "printed",
                                      in_quotes(name))});
  };
  expect(model.name);
  for (const Variable& own : model.variables) expect(own.name);
}

/// By way of a file beside it.
void write_fmu(const std::vector<Member>& members, const std::filesystem::path& out) {
  std::filesystem::path part = out;
  part += fmt::format(".{}.part", ::getpid());
  try {
    write_archive(members, part, out);
    std::error_code error;
    std::filesystem::rename(part, out, error);
    if (error) {
      Issues issues;
      refuse_out(out, error.message(), issues);
      throw ConfigError(std::move(issues));
    }
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw;
  }
}

}  // namespace
}  // namespace exported

std::filesystem::path find_fmu_library(const std::filesystem::path& beside) {
  for (const std::filesystem::path& folder :
       {beside / "portwave_fmu", beside / "../lib/portwave_fmu",
        beside / "../lib64/portwave_fmu"}) {
    std::error_code error;
    if (std::filesystem::is_regular_file(folder / exported::kLibrary, error)) return folder;
  }
  return {};
}

FmuExport export_fmu(const ScenarioText& given, const FmuExportOptions& options,
                     const std::filesystem::path& out) {
  using namespace exported;  // NOLINT(google-build-using-namespace): all of it is of this export
  Issues issues;
  if (options.fmi != 2 && options.fmi != 3) {
    issues.push_back({"/fmi", fmt::format("must be 2 or 3, got {}", options.fmi)});
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(out, ignored)) refuse_out(out, "it is a folder", issues);
  const std::filesystem::path library = library_folder(options, issues);
  FmuScenario source(given);
  const std::size_t before = issues.size();
  expect_texts(options, issues);
  source.refuse_what_stays_outside(issues);
  const bool can_be_read = issues.size() == before;
  source.open_ports(options.ports, issues);
  if (!can_be_read) throw ConfigError(std::move(issues));
  if (options.ports.empty()) {  // with the places of the file as it was given
    static_cast<void>(parse_scenario(given.text, given.file, given.folder, given.overrides));
  }

  std::vector<std::string> labels;
  std::vector<std::size_t> observed;
  for (std::size_t i = 0; i < options.outputs.size(); ++i) {
    if (energy_named(options.outputs[i]) != nullptr) continue;
    labels.push_back(options.outputs[i]);
    observed.push_back(i);
  }
  const FirstLook look = first_look(source, given, options, issues);
  if (!labels.empty()) source.observe(labels);
  std::optional<Scenario> scenario;
  try {
    scenario = source.parse();
  } catch (const ScenarioError& error) {
    ScenarioError rest = with_places(error, observed, issues);
    if (!rest.issues().empty()) throw rest;
  }
  throw_if_any(std::move(issues));

  Interface interface(*scenario, source, options, look.parameters);
  interface.add_all(issues);
  ExportedModel& model = interface.model;
  model.name = options.name.empty() ? scenario->name : options.name;
  model.step_s = scenario->options.step_s;
  model.takes_any_step = look.takes_any_step;
  model.scenario = source.text();

  expect_texts(model, issues);

  const std::string platform =
      fmi::platform_of(options.fmi == 2 ? fmi::Version::v2 : fmi::Version::v3);
  std::vector<Member> members = {
      {.name = "modelDescription.xml",
       .content = model_description(model, {.fmi = options.fmi,
                                            .about = source.about(),
                                            .start_s = scenario->options.start_s,
                                            .end_s = scenario->end_s}),
       .file = {}},
      {.name = "resources/model.json", .content = model.interface_text(), .file = {}},
      {.name = "resources/scenario.json", .content = model.scenario, .file = {}}};
  const std::string ports = options.fmi == 3 ? terminals(model) : osp_description(model);
  if (!ports.empty()) {
    members.push_back({.name = options.fmi == 3
                                   ? "terminalsAndIcons/terminalsAndIcons.xml"
                                   : "extra/org.open-simulation-platform/OspModelDescription.xml",
                       .content = ports,
                       .file = {}});
  }
  for (Member& own : files_of(*scenario, given.folder, issues)) members.push_back(std::move(own));
  throw_if_any(issues);
  const Engine engine(library / kLibrary);
  add_engine(engine, library, platform, identifier_of(model.name), members);
  refuse_to_replace(members, out, issues);
  throw_if_any(std::move(issues));

  const files::ScratchFolder scratch;
  write_resources(members, scratch.path());
  engine.expect_start(options.fmi, model.token(), scratch.path() / "resources",
                      scenario->options.start_s);
  write_fmu(members, out);

  FmuExport done;
  for (const Variable& own : model.variables) {
    if (own.kind == Variable::Kind::time) continue;
    std::size_t& count = own.kind == Variable::Kind::input       ? done.inputs
                         : own.kind == Variable::Kind::parameter ? done.parameters
                                                                 : done.outputs;
    ++count;
  }
  for (const PowerPort& own : model.ports) {
    if (options.fmi != 2 || is_known_to_osp(own)) continue;
    done.notes.push_back(
        fmt::format("the port {} ({}) is not declared in the FMU: FMI 2 has no ports, and OSP none "
                    "of this kind. Importers have to name its variables",
                    own.name, own.domain));
  }
#ifdef PORTWAVE_NATIVE
  done.notes.emplace_back(
      "the engine was built for the processor of this machine (PORTWAVE_NATIVE), and the FMU may "
      "not run on others");
#endif
  if (!model.takes_any_step) {
    done.notes.push_back(
        fmt::format("communication steps have to be whole numbers of the macro-step, {} s: signals "
                    "are sampled between "
                    "steps, or the method has one step size",
                    model.step_s));
  }
  return done;
}

}  // namespace portwave

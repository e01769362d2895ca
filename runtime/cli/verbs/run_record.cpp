#include "verbs/run_record.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> absolute(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::string> out;
  for (const std::filesystem::path& path : paths) {
    out.push_back(std::filesystem::absolute(path).string());
  }
  return out;
}

ExecutorKind executor_of(const std::string& name) {
  for (const ExecutorKind kind :
       {ExecutorKind::automatic, ExecutorKind::serial, ExecutorKind::async, ExecutorKind::graph}) {
    if (to_string(kind) == name) return kind;
  }
  throw std::runtime_error(fmt::format("there is no executor {}", in_quotes(name)));
}

Json arguments_json(const RunArguments& run) {
  Json overrides = Json::array();
  for (const Override& own : run.scenario.overrides) overrides.push_back({own.pointer, own.value});
  return {
      {"file", run.scenario.file},
      {"overrides", overrides},
      {"plugins", absolute(run.scenario.plugins)},
      {"steps", run.scenario.steps ? Json(*run.scenario.steps) : Json(nullptr)},
      {"checkpoint_steps", run.checkpoint_every->steps},
      {"checkpoint_wall_s", run.checkpoint_every->wall_s},
      {"threads", run.threads},
      {"grain", {static_cast<int>(run.grain.kind), run.grain.count}},
      {"executor", std::string(to_string(run.executor))},
      {"deadline_s", run.time.deadline_s},
      {"pace", run.time.pace},
      {"certify", static_cast<int>(run.certify)},
      {"compare", static_cast<int>(run.compare)},
  };
}

/// A number of the record. Errors: std::runtime_error where no run has it.
template <class Number>
Number number_of(const Json& json, std::string_view name, double least, double most) {
  const auto number = json.get<double>();
  if (number >= least && number <= most) return static_cast<Number>(number);  // NaN is not
  throw std::runtime_error(
      fmt::format("the checkpoint describes an impossible run: {} is {}", name, number));
}
template <class Number>
Number number_in(const Json& json, const char* key, double least, double most) {
  return number_of<Number>(json.at(key), key, least, most);
}

constexpr double kMostSeconds = 1e9;

/// The options of a run, without its permissions.
RunArguments arguments_of(const Json& json) {
  RunArguments run;
  run.scenario.file = json.at("file").get<std::string>();
  for (const Json& own : json.at("overrides")) {
    run.scenario.overrides.push_back({own.at(0).get<std::string>(), own.at(1).get<std::string>()});
  }
  if (!json.at("steps").is_null()) {
    run.scenario.steps = number_in<std::int64_t>(json, "steps", 1, kMostSteps);
  }
  run.checkpoint_every =
      CheckpointEvery{number_in<std::int64_t>(json, "checkpoint_steps", 0, kMostSteps),
                      number_in<double>(json, "checkpoint_wall_s", 0.0, kMostSeconds)};
  run.threads = number_in<int>(json, "threads", 1, kMaxThreads);
  const Json& grain = json.at("grain");
  run.grain = {
      number_of<Grain::Kind>(grain.at(0), "grain", 0, static_cast<int>(Grain::Kind::parts)),
      number_of<int>(grain.at(1), "grain", 0, kMostParts)};
  run.executor = executor_of(json.at("executor").get<std::string>());
  run.time = {number_in<double>(json, "deadline_s", 0.0, kMostSeconds),
              number_in<double>(json, "pace", 0.0, kMostSeconds)};
  run.certify = number_in<Certify>(json, "certify", 0, static_cast<int>(Certify::full));
  run.compare = number_in<StepComparison::Extent>(json, "compare", 0,
                                                  static_cast<int>(StepComparison::Extent::none));
  return run;
}

/// The scenario with the changes of the command line, and all files that it reads.
Scenario asked_for(Scenario scenario, const ScenarioArguments& arguments) {
  if (arguments.steps) scenario.steps = *arguments.steps;
  std::vector<std::filesystem::path>& inputs = scenario.recording.inputs;
  inputs.insert(inputs.end(), arguments.plugins.begin(), arguments.plugins.end());
  inputs.emplace_back(arguments.file);
  return scenario;
}

std::string plugins_wanted(const std::vector<std::string>& plugins) {
  std::string flags;
  for (const std::string& plugin : plugins) {
    flags += " --plugin " + printable(plugin, plugin.size());
  }
  const bool is_one = plugins.size() == 1;
  return fmt::format(
      "the run was begun with {}, and a checkpoint loads no code.\n  If you trust {}, give{}",
      is_one ? "a plugin" : "plugins", is_one ? "it" : "them", flags);
}

/// The same files with the same bytes, told by path from where they are not.
void expect_same(const std::vector<ScenarioFile>& then, const std::vector<ScenarioFile>& now) {
  if (then == now) return;
  std::vector<std::string> changed;
  for (std::size_t i = 0; i < then.size() && i < now.size(); ++i) {
    if (then[i] != now[i]) changed.push_back(in_quotes(then[i].path.string()));
  }
  throw std::runtime_error(fmt::format("the run cannot continue: {} changed since it began",
                                       changed.empty()
                                           ? "the files of the scenario have"
                                           : fmt::format("{}", fmt::join(changed, ", ")) +
                                                 (changed.size() == 1 ? " has" : " have")));
}

}  // namespace

std::string RunRecord::to_json() const {
  Json read = Json::array();
  for (const ScenarioFile& file : files) read.push_back({file.path.string(), file.checksum});
  return Json{{"arguments", arguments_json(arguments)},
              {"text", text},
              {"folder", folder.string()},
              {"files", read}}
      .dump();
}

RunRecord RunRecord::from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    RunRecord out;
    out.arguments = arguments_of(json.at("arguments"));
    out.plugins = json.at("arguments").at("plugins").get<std::vector<std::string>>();
    out.text = json.at("text").get<std::string>();
    out.folder = json.at("folder").get<std::string>();
    for (const Json& own : json.at("files")) {
      out.files.push_back({own.at(0).get<std::string>(), own.at(1).get<std::uint32_t>()});
    }
    return out;
  } catch (const Json::exception& error) {
    throw std::runtime_error(
        fmt::format("the checkpoint does not describe its run: {}", printable(error.what(), 400)));
  }
}

Scenario RunRecord::scenario(const PhaseCallback& listener) const {
  const ScenarioArguments& own = arguments.scenario;
  load_plugins(own.plugins);
  return asked_for(parse_scenario(text, own.file, folder, own.overrides, listener,
                                  own.plugins_of_scenario, own.outside_files),
                   own);
}

Scenario RunRecord::kept_scenario(const std::filesystem::path& results,
                                  const PhaseCallback& listener) const {
  const ScenarioArguments& own = arguments.scenario;
  if (own.plugins.empty() && !plugins.empty()) throw ConfigError("", plugins_wanted(plugins));
  load_plugins(own.plugins);
  return asked_for(parse_scenario(KeptScenario{text, own.file, folder, results}, own.overrides,
                                  listener, own.plugins_of_scenario, own.outside_files),
                   own);
}

void RunRecord::expect_same_files(const Scenario& now) const { expect_same(files, now.files); }

}  // namespace portwave::cli

#include "run_record.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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
       {ExecutorKind::automatic, ExecutorKind::serial, ExecutorKind::async, ExecutorKind::graph,
        ExecutorKind::barrier}) {
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
      {"allow_plugins", run.scenario.plugins_of_scenario == Plugins::allowed},
      {"allow_outside_files", run.scenario.outside_files == OutsideFiles::allowed},
      {"steps", run.scenario.steps ? Json(*run.scenario.steps) : Json(nullptr)},
      {"checkpoint_steps", run.checkpoint_every->steps},
      {"checkpoint_wall_s", run.checkpoint_every->wall_s},
      {"threads", run.threads},
      {"grain", {static_cast<int>(run.grain.kind), run.grain.count}},
      {"executor", std::string(to_string(run.executor))},
      {"deadline_s", run.time.deadline_s},
      {"pace", run.time.pace},
      {"certify", static_cast<int>(run.certify)},
  };
}

RunArguments arguments_of(const Json& json) {
  RunArguments run;
  run.scenario.file = json.at("file").get<std::string>();
  for (const Json& own : json.at("overrides")) {
    run.scenario.overrides.push_back({own.at(0).get<std::string>(), own.at(1).get<std::string>()});
  }
  for (const Json& own : json.at("plugins"))
    run.scenario.plugins.emplace_back(own.get<std::string>());
  if (json.at("allow_plugins").get<bool>()) run.scenario.plugins_of_scenario = Plugins::allowed;
  if (json.at("allow_outside_files").get<bool>()) {
    run.scenario.outside_files = OutsideFiles::allowed;
  }
  if (!json.at("steps").is_null()) run.scenario.steps = json.at("steps").get<std::int64_t>();
  run.checkpoint_every = CheckpointEvery{json.at("checkpoint_steps").get<std::int64_t>(),
                                         json.at("checkpoint_wall_s").get<double>()};
  run.threads = json.at("threads").get<int>();
  run.grain = {static_cast<Grain::Kind>(json.at("grain").at(0).get<int>()),
               json.at("grain").at(1).get<int>()};
  run.executor = executor_of(json.at("executor").get<std::string>());
  run.time = {json.at("deadline_s").get<double>(), json.at("pace").get<double>()};
  run.certify = static_cast<Certify>(json.at("certify").get<int>());
  return run;
}

/// The same files with the same bytes, told by path from where they are not.
void expect_same(const std::vector<ScenarioFile>& then, const std::vector<ScenarioFile>& now) {
  if (then == now) return;
  std::vector<std::string> changed;
  for (std::size_t i = 0; i < then.size() && i < now.size(); ++i) {
    if (then[i] != now[i]) changed.push_back(in_quotes(then[i].path.string()));
  }
  throw std::runtime_error(fmt::format(
      "the run cannot go on: {} not what {} when it was begun",
      changed.empty()
          ? "the files of the scenario are"
          : fmt::format("{}", fmt::join(changed, ", ")) + (changed.size() == 1 ? " is" : " are"),
      changed.size() == 1 ? "it was" : "they were"));
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
    out.text = json.at("text").get<std::string>();
    out.folder = json.at("folder").get<std::string>();
    for (const Json& own : json.at("files")) {
      out.files.push_back({own.at(0).get<std::string>(), own.at(1).get<std::uint32_t>()});
    }
    return out;
  } catch (const Json::exception& error) {
    throw std::runtime_error(
        fmt::format("the checkpoint says nothing of its run: {}", error.what()));
  }
}

Scenario RunRecord::scenario(const PhaseCallback& listener) const {
  load_plugins(arguments.scenario.plugins);
  Scenario out =
      parse_scenario(text, arguments.scenario.file, folder, arguments.scenario.overrides, listener,
                     arguments.scenario.plugins_of_scenario, arguments.scenario.outside_files);
  if (arguments.scenario.steps) out.steps = *arguments.scenario.steps;
  return out;
}

void RunRecord::expect_same_files(const Scenario& now) const { expect_same(files, now.files); }

}  // namespace portwave::cli

#include "line/shared_options.hpp"

#include <fmt/format.h>

#include <portwave/subsystems/base/printable.hpp>

namespace portwave::cli {

void add_json(Verb& verb, bool& json, const std::string& what) {
  verb.flag("--json", "Write " + what + " as JSON to stdout", json);
}

void add_out(Verb& verb, std::optional<std::filesystem::path>& out, const std::string& what) {
  verb.path("--out", "DIR", "Folder to write " + what + " to", out);
}

void add_threads(Verb& verb, int& threads) {
  verb.integer("--threads", "Threads; the results do not depend on it", {1, kMaxThreads},
               [&threads](std::int64_t count) { threads = static_cast<int>(count); })
      ->default_str(std::to_string(threads));
}

void add_overrides(Verb& verb, std::vector<Override>& overrides) {
  verb.texts(
      "--set", "/json/pointer=value", "Change an entry of the scenario; may be repeated",
      [](const std::string& setting) {
        const bool good = setting.rfind('/', 0) == 0 && setting.find('=') != std::string::npos;
        return good ? std::string()
                    : fmt::format("{} is not of the form /json/pointer=value", in_quotes(setting));
      },
      [&overrides](const std::vector<std::string>& settings) {
        for (const std::string& setting : settings) {
          const auto equals = setting.find('=');
          overrides.push_back({setting.substr(0, equals), setting.substr(equals + 1)});
        }
      });
}

void add_plugins(Verb& verb, std::vector<std::filesystem::path>& plugins) {
  verb.texts(
      "--plugin", "FILE", "Load types of parts from a shared library; may be repeated",
      [](const std::string& file) { return file.empty() ? "needs a file" : std::string(); },
      [&plugins](const std::vector<std::string>& files) {
        plugins.assign(files.begin(), files.end());
      });
}

void add_permissions(Verb& verb, ScenarioArguments& scenario) {
  add_plugins(verb, scenario.plugins);
  verb.app().add_flag_callback(
      "--allow-plugins", [&scenario] { scenario.plugins_of_scenario = Plugins::allowed; },
      "Load the scenario's plugins; their code has all your rights");
  verb.app().add_flag_callback(
      "--allow-outside-files", [&scenario] { scenario.outside_files = OutsideFiles::allowed; },
      "Read tables and matrices outside the scenario's folder");
}

CLI::Option* add_scenario(Verb& verb, ScenarioArguments& scenario) {
  CLI::Option* const file =
      verb.app().add_option("SCENARIO", scenario.file, "Scenario file (JSON)");
  file->required()->type_name("");
  add_overrides(verb, scenario.overrides);
  add_permissions(verb, scenario);
  return file;
}

void add_steps(Verb& verb, std::optional<std::int64_t>& steps) {
  verb.integer("--steps", "Number of macro-steps, in place of the scenario's", {1, kMostSteps},
               [&steps](std::int64_t count) { steps = count; });
}

void add_certify(Verb& verb, Certify& certify) {
  verb.choice("--certify", {"none", "energy", "full"},
              "none keeps no energy ledger unless the guard needs it; full adds sampled FNE "
              "margins and augmented residuals, "
              "at a cost",
              [&certify](std::size_t i) {
                constexpr Certify kLevels[] = {Certify::none, Certify::energy, Certify::full};
                certify = kLevels[i];
              })
      ->default_str("energy");
}

void add_grain(Verb& verb, Grain& grain) {
  verb.text(
          "--grain", "auto|part|N",
          "How finely a step is cut into tasks: by cost, a task per part, or about N parts each",
          [](const std::string& text) {
            if (text == "auto" || text == "part") return std::string();
            const std::string defect = IntegerRange{1, kMostParts}.defect(text);
            return defect.empty()
                       ? defect
                       : fmt::format("{} is neither auto, part nor an integer from 1 to {}",
                                     in_quotes(text), kMostParts);
          },
          [&grain](const std::string& text) {
            grain = text == "auto"   ? Grain::automatic()
                    : text == "part" ? Grain::per_part()
                                     : Grain::of_parts(static_cast<int>(integer(text)));
          })
      ->default_str("auto");
}

namespace {
constexpr ExecutorKind kExecutors[] = {ExecutorKind::automatic, ExecutorKind::serial,
                                       ExecutorKind::async, ExecutorKind::graph};
}

const std::vector<std::string>& executor_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> names;
    for (const ExecutorKind kind : kExecutors) names.emplace_back(to_string(kind));
    return names;
  }();
  return words;
}

ExecutorKind executor_at(std::size_t place) { return kExecutors[place]; }

void add_execution(Verb& verb, Grain& grain, ExecutorKind& executor) {
  add_grain(verb, grain);
  verb.choice("--executor", executor_words(),
              "Executor of the tasks; graph is a plain flow graph of oneTBB",
              [&executor](std::size_t i) { executor = executor_at(i); })
      ->default_str("auto");
}

void add_study_report(Verb& verb, const std::optional<std::filesystem::path>& out, bool& report) {
  verb.flag("--report", "Also draw it: report.html in DIR", report);
  verb.check([&out, &report] {
    return report && !out ? std::vector<std::string>{kReportNeedsOut} : std::vector<std::string>{};
  });
}

}  // namespace portwave::cli

#include "arguments.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <memory>
#include <ostream>
#include <string_view>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <portwave/runtime/summary.hpp>
#include <portwave/subsystems/error.hpp>

#include "generate.hpp"

namespace portwave::cli {
namespace {

constexpr std::string_view kExamples = R"(Examples:
  portwave run examples/two_oscillators.json --out results
  portwave run examples/two_oscillators.json --set /method/iterations=8 --certify full
  portwave validate examples/two_oscillators.json
  portwave list duffing_oscillator
  portwave study budget examples/two_oscillators.json --budgets 0,3,8,20,35,50
  portwave generate chain --blocks 1000 --out chain.json

Data goes to stdout, everything else to stderr.
Exit codes: 0 done, 1 certificate violated, 2 bad input, 3 failure while running.)";

constexpr std::string_view kRunExamples = R"(Examples:
  portwave run examples/two_oscillators.json --out results --threads 4
  portwave run examples/two_oscillators.json --json --quiet | jq .energy
  portwave run examples/two_oscillators.json --set /subsystems/0/parameters/mass_kg=9

With --out the folder gets summary.json, trajectory.csv and energy.csv. Ctrl-C stops after the
current step and keeps what was recorded.)";

constexpr std::string_view kStudyExamples = R"(Examples:
  portwave study budget examples/two_oscillators.json --budgets 0,3,8,20,35,50
  portwave study budget examples/two_oscillators.json --budgets 20 --json)";

constexpr std::string_view kGenerateExamples = R"(Examples:
  portwave generate chain --blocks 1000 --vary 0.2 --out chain.json
  portwave generate grid --rows 30 --columns 40 --step 0.01 | portwave validate /dev/stdin

"portwave generate KIND --help" shows the options of one kind.)";

/// What the options are read into, whichever verb they belong to.
struct Draft {
  RunArguments run;
  ValidateArguments validate;
  ListArguments list;
  StudyBudgetArguments study;
  GenerateArguments generate;
};

constexpr std::int64_t kMostSteps = 9'000'000'000'000'000;
constexpr std::int64_t kMostIterations = 1'000'000;

/// A whole number from `least` to `most`, in decimal digits and nothing else.
struct IntegerRange {
  std::int64_t least;
  std::int64_t most;

  /// What is wrong with `text`, or nothing. CLI11's own check takes "0x2", " 2" and "010" for 8.
  std::string defect(std::string_view text) const {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ptr != end || read.ec == std::errc::invalid_argument) {
      return fmt::format("\"{}\" must be an integer from {} to {}", text, least, most);
    }
    const bool inside = read.ec == std::errc{} && value >= least && value <= most;
    return inside ? std::string() : fmt::format("{} is not in {} to {}", text, least, most);
  }
};

/// Of a text without defect.
std::int64_t integer(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "3,8," is "3", "8" and "".
std::vector<std::string_view> split_at_commas(std::string_view list) {
  std::vector<std::string_view> entries;
  for (;;) {
    const auto comma = list.find(',');
    entries.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return entries;
    list.remove_prefix(comma + 1);
  }
}

CLI::Validator check(std::function<std::string(const std::string&)> defect_of) {
  return {[defect_of = std::move(defect_of)](std::string& text) { return defect_of(text); }, ""};
}

CLI::Option* add_integer(CLI::App& app, const std::string& name, const std::string& what,
                         IntegerRange range, std::function<void(std::int64_t)> take) {
  return app
      .add_option_function<std::string>(
          name, [take = std::move(take)](const std::string& text) { take(integer(text)); }, what)
      ->type_name("N")
      ->check(check([range](const std::string& text) { return range.defect(text); }));
}

void add_json(CLI::App& app, bool& json, const std::string& what) {
  app.add_flag("--json", json, "Write " + what + " as JSON to stdout");
}

void add_out(CLI::App& app, std::optional<std::filesystem::path>& out, const std::string& what) {
  app.add_option_function<std::string>(
         "--out", [&out](const std::string& folder) { out = folder; },
         "Folder to write " + what + " to")
      ->type_name("DIR")
      ->check(check([](const std::string& folder) {
        return folder.empty() ? std::string("needs a folder") : std::string();
      }));
}

void add_threads(CLI::App& app, int& threads) {
  add_integer(app, "--threads", "Threads; the results do not depend on it", {1, kMaxThreads},
              [&threads](std::int64_t count) { threads = static_cast<int>(count); })
      ->default_str(std::to_string(threads));
}

/// "/json/pointer=value"
void add_overrides(CLI::App& app, std::vector<Override>& overrides) {
  app.add_option_function<std::vector<std::string>>(
         "--set",
         [&overrides](const std::vector<std::string>& settings) {
           for (const std::string& setting : settings) {
             const auto equals = setting.find('=');
             overrides.push_back({setting.substr(0, equals), setting.substr(equals + 1)});
           }
         },
         "Change an entry of the scenario; may be repeated")
      ->type_name("/json/pointer=value")
      ->allow_extra_args(false)
      ->check(check([](const std::string& setting) {
        const bool good = setting.rfind('/', 0) == 0 && setting.find('=') != std::string::npos;
        return good ? std::string()
                    : fmt::format("\"{}\" is not of the form /json/pointer=value", setting);
      }));
}

void add_scenario(CLI::App& app, ScenarioArguments& scenario) {
  app.add_option("SCENARIO", scenario.file, "Scenario file (JSON)")->required()->type_name("");
  add_overrides(app, scenario.overrides);
}

void add_steps(CLI::App& app, std::optional<std::int64_t>& steps) {
  add_integer(app, "--steps", "Number of macro-steps, in place of the scenario's", {1, kMostSteps},
              [&steps](std::int64_t count) { steps = count; });
}

void add_certify(CLI::App& app, Certify& certify) {
  app.add_option_function<std::string>(
         "--certify",
         [&certify](const std::string& name) {
           certify = name == "full" ? Certify::full : Certify::energy;
         },
         "full adds sampled FNE margins and augmented residuals, at a cost")
      ->type_name("energy|full")
      ->check(check([](const std::string& name) {
        const bool known = name == "energy" || name == "full";
        return known ? std::string() : fmt::format("\"{}\" is neither energy nor full", name);
      }));
}

std::string budgets_defect(const std::string& list) {
  const auto entries = split_at_commas(list);
  for (const std::string_view entry : entries) {
    if (entry.empty()) {
      return fmt::format("\"{}\" has an empty entry; write integers with a comma between them",
                         list);
    }
    if (std::string defect = IntegerRange{0, kMostIterations}.defect(entry); !defect.empty()) {
      return defect;
    }
  }
  return {};
}

/// In the order given, each once.
std::vector<int> distinct_budgets(const std::vector<std::string>& lists) {
  std::vector<int> budgets;
  for (const std::string& list : lists) {
    for (const std::string_view entry : split_at_commas(list)) {
      const int budget = static_cast<int>(integer(entry));
      if (std::find(budgets.begin(), budgets.end(), budget) == budgets.end()) {
        budgets.push_back(budget);
      }
    }
  }
  return budgets;
}

void add_budgets(CLI::App& app, std::vector<int>& budgets) {
  app.add_option_function<std::vector<std::string>>(
         "--budgets",
         [&budgets](const std::vector<std::string>& lists) { budgets = distinct_budgets(lists); },
         "Inner iterations per step, one run each")
      ->type_name("K,K,...")
      ->allow_extra_args(false)
      ->check(check(budgets_defect))
      ->default_str("0,3,8,20,35,50");
}

void add_run(CLI::App& app, RunArguments& run) {
  CLI::App& verb = *app.add_subcommand("run", "Step a scenario and certify it");
  add_scenario(verb, run.scenario);
  add_out(verb, run.out, "summary.json, trajectory.csv and energy.csv");
  add_threads(verb, run.threads);
  add_steps(verb, run.scenario.steps);
  add_certify(verb, run.certify);
  add_json(verb, run.json, "the summary");
  verb.add_flag("--quiet", run.quiet, "No progress and no summary on stderr");
  verb.footer(std::string(kRunExamples));
}

void add_study(CLI::App& app, StudyBudgetArguments& study) {
  CLI::App& group = *app.add_subcommand("study", "Studies over many runs of a scenario");
  group.require_subcommand(1);
  CLI::App& verb = *group.add_subcommand(
      "budget", "Error against the monolithic reference, by inner iterations");
  add_scenario(verb, study.scenario);
  add_budgets(verb, study.budgets);
  add_out(verb, study.out, "study.json");
  add_threads(verb, study.threads);
  add_steps(verb, study.scenario.steps);
  add_json(verb, study.json, "the rows");
  verb.footer(std::string(kStudyExamples));
}

/// The values are read later, so that everything wrong with them is told at once.
void add_generate(CLI::App& app, GenerateArguments& generate) {
  CLI::App& group = *app.add_subcommand("generate", "Write the scenario of a regular network");
  group.require_subcommand(1);
  group.footer(std::string(kGenerateExamples));
  for (const GenerateKind& kind : generate_kinds()) {
    CLI::App& verb = *group.add_subcommand(std::string(kind.name), std::string(kind.summary));
    for (const GenerateOption& option : kind.options) {
      const std::string name(option.name);
      verb.add_option_function<std::string>(
              name, [&generate, name](const std::string& text) { generate.given[name] = text; },
              std::string(option.summary))
          ->type_name(std::string(option.value))
          ->default_str(std::string(option.by_default));
    }
    verb.add_option_function<std::string>(
            "--out", [&generate](const std::string& file) { generate.out = file; },
            "File to write, in place of stdout")
        ->type_name("FILE")
        ->check(check([](const std::string& file) {
          return file.empty() ? std::string("needs a file") : std::string();
        }));
  }
}

void add_verbs(CLI::App& app, Draft& draft) {
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("portwave {}", version()));
  app.footer(std::string(kExamples));

  add_run(app, draft.run);
  CLI::App& validate = *app.add_subcommand("validate", "Check a scenario and run nothing");
  add_scenario(validate, draft.validate.scenario);
  CLI::App& list = *app.add_subcommand("list", "Show the catalogue, or one type of part in full");
  list.add_option_function<std::string>(
          "TYPE", [&draft](const std::string& type) { draft.list.type = type; }, "Type of part")
      ->type_name("");
  add_json(list, draft.list.json, "the catalogue");
  app.add_subcommand("schema", "Write the JSON Schema of scenario files to stdout");
  add_study(app, draft.study);
  add_generate(app, draft.generate);
}

/// The innermost verb that the line reached.
CLI::App& innermost(CLI::App& app) {
  const auto verbs = app.get_subcommands();
  return verbs.empty() ? app : innermost(*verbs.front());
}

std::string full_name(const CLI::App& verb) {
  const CLI::App* const parent = verb.get_parent();
  return parent == nullptr ? verb.get_name() : full_name(*parent) + " " + verb.get_name();
}

std::vector<std::string> names_of_verbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// A first word that is no verb, told with the nearest one. CLI11 would only miss a subcommand.
std::string unknown_verb(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* at = &app;
  for (const std::string& word : arguments) {
    const std::vector<std::string> verbs = names_of_verbs(*at);
    if (verbs.empty()) break;
    if (word.rfind('-', 0) == 0) continue;
    if (std::find(verbs.begin(), verbs.end(), word) == verbs.end()) {
      return fmt::format("\"{} {}\" is not a command.{} Commands: {}.", full_name(*at), word,
                         did_you_mean(word, verbs), fmt::join(verbs, ", "));
    }
    at = at->get_subcommand(word);
  }
  return {};
}

/// What CLI11 could not place, with the nearest option.
std::string leftovers(const CLI::App& verb) {
  std::vector<std::string> rest = verb.remaining();
  if (rest.empty()) return {};
  const auto is_option = [](const std::string& word) { return word.rfind('-', 0) == 0; };
  const auto option = std::find_if(rest.begin(), rest.end(), is_option);
  if (option == rest.end()) return fmt::format("unexpected argument \"{}\".", rest.front());
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("unknown option \"{}\".{}", name, did_you_mean(name, names_of_options(verb)));
}

Command command_of(const CLI::App& verb, Draft& draft) {
  if (verb.get_name() == "run") return std::move(draft.run);
  if (verb.get_name() == "validate") return std::move(draft.validate);
  if (verb.get_name() == "list") return std::move(draft.list);
  if (verb.get_name() == "schema") return SchemaArguments{};
  if (verb.get_parent()->get_name() == "generate") {
    draft.generate.kind = verb.get_name();
    return std::move(draft.generate);
  }
  return std::move(draft.study);
}

void allow_extras(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) allow_extras(*verb);
}

CommandLine refuse(const CLI::App& verb, const std::string& why, std::ostream& err) {
  err << fmt::format("portwave: {}\nSee \"{} --help\".\n", why, full_name(verb));
  return {std::nullopt, kBadInput};
}

}  // namespace

CommandLine parse_arguments(const std::vector<std::string>& arguments, std::ostream& out,
                            std::ostream& err) {
  CLI::App app("Passive co-simulation of port-Hamiltonian subsystems", "portwave");
  Draft draft;
  add_verbs(app, draft);
  allow_extras(app);

  if (arguments.empty()) {
    err << app.help();
    return {std::nullopt, kBadInput};
  }
  if (const std::string why = unknown_verb(app, arguments); !why.empty()) {
    return refuse(app, why, err);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& help_or_version) {
    app.exit(help_or_version, out, err);
    return {std::nullopt, kOk};
  } catch (const CLI::ParseError& error) {
    CLI::App& verb = innermost(app);
    const std::string rest = leftovers(verb);
    return refuse(verb, rest.empty() ? error.what() : rest, err);
  }
  CLI::App& verb = innermost(app);
  if (const std::string rest = leftovers(app); !rest.empty()) return refuse(app, rest, err);
  if (const std::string rest = leftovers(verb); !rest.empty()) return refuse(verb, rest, err);
  return {command_of(verb, draft), kOk};
}

}  // namespace portwave::cli

#include "arguments.hpp"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <portwave/runtime/output/summary.hpp>
#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "help_examples.hpp"
#include "line/shared_options.hpp"
#include "verb_options.hpp"
#include "verbs/generate.hpp"

namespace portwave::cli {
namespace {

/// Receives the options of all verbs.
struct Draft {
  RunArguments run;
  ReportArguments report;
  ValidateArguments validate;
  ListArguments list;
  SchemaArguments schema;
  TuneArguments tune;
  PartitionArguments partition;
  StudyArguments studies;
  GenerateArguments generate;
};

constexpr std::int64_t kMostRanks = 100'000;

void add_partition(Verb& top, PartitionArguments& partition) {
  Verb verb = top.add("partition", "Show how a scenario would be divided among several processes");
  add_scenario(verb, partition.scenario);
  RankPlanOptions& plan = partition.plan;
  verb.integer("--ranks", "Number of processes", {1, kMostRanks},
               [&plan](std::int64_t count) { plan.ranks = static_cast<int>(count); })
      ->default_str(std::to_string(plan.ranks));
  verb.integer("--threads", "Threads per process", {1, kMaxThreads},
               [&plan](std::int64_t count) { plan.threads = static_cast<int>(count); })
      ->default_str(std::to_string(plan.threads));
  verb.real("--latency-us", "US", "Latency of a message", {0.0, 1e9},
            [&plan](double us) { plan.latency_s = 1e-6 * us; })
      ->default_str("2");
  verb.real("--bandwidth-GBs", "GBS", "Bandwidth of the network in 10^9 bytes per second",
            {1e-6, 1e9}, [&plan](double gigabytes) { plan.bandwidth_B_per_s = 1e9 * gigabytes; })
      ->default_str("10");
  verb.integer("--show", "Number of ranks to show; --json shows all", {0, kMostRanks},
               [&partition](std::int64_t count) { partition.shown = static_cast<int>(count); })
      ->default_str(std::to_string(partition.shown));
  add_json(verb, partition.json, "the plan");
  verb.app().footer(std::string(kPartitionExamples));
}

/// The values are read later, so that everything wrong with them is told at once.
void add_generate(Verb& top, GenerateArguments& generate) {
  Verb group = top.add("generate", "Write the scenario of a regular network");
  group.app().require_subcommand(1);
  group.app().footer(std::string(kGenerateExamples));
  for (const GenerateKind& kind : generate_kinds()) {
    Verb verb = group.add(std::string(kind.name), std::string(kind.summary));
    for (const GenerateOption& option : kind.options) {
      const std::string name(option.name);
      verb.text(
              name, std::string(option.value), std::string(option.summary),
              [](const std::string&) { return std::string(); },
              [&generate, name](const std::string& text) { generate.given[name] = text; })
          ->default_str(std::string(option.by_default));
    }
    verb.path("--out", "FILE", "File to write, in place of stdout", generate.out);
  }
}

void add_verbs(Verb& top, Draft& draft) {
  top.app().require_subcommand(1);
  top.app().set_version_flag("--version", fmt::format("portwave {}", version()));
  top.app().footer(std::string(kExamples));

  add_run(top, draft.run);
  add_report(top, draft.report);
  Verb validate = top.add("validate", "Check a scenario without running it");
  add_scenario(validate, draft.validate.scenario);
  validate.app().footer(std::string(kValidateExamples));
  Verb list = top.add("list", "Show the catalogue, or one type of part in full");
  list.text(
      "TYPE", "", "Type of part", [](const std::string&) { return std::string(); },
      [&draft](const std::string& type) { draft.list.type = type; });
  list.flag("--markdown", "Write types of parts as Markdown, the form of docs/reference/parts.md",
            draft.list.markdown);
  list.flag("--blocks", "Show the blocks of controllers instead; with TYPE, one block",
            draft.list.blocks);
  list.flag("--methods", "Show the coupling methods instead; with TYPE, one method",
            draft.list.methods);
  add_json(list, draft.list.json, "the catalogue");
  add_plugins(list, draft.list.plugins);
  list.app().footer(std::string(kListExamples));
  add_tune(top, draft.tune);
  add_partition(top, draft.partition);
  Verb schema = top.add("schema", "Write the JSON Schema of scenario files to stdout");
  add_plugins(schema, draft.schema.plugins);
  schema.app().footer(std::string(kSchemaExamples));
  add_study(top, draft.studies);
  add_generate(top, draft.generate);
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
/// Leaves `at` at the innermost verb that is one.
std::string unknown_verb(const CLI::App*& at, const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    const std::vector<std::string> verbs = names_of_verbs(*at);
    if (verbs.empty()) break;
    if (word.rfind('-', 0) == 0) continue;
    if (std::find(verbs.begin(), verbs.end(), word) == verbs.end()) {
      return fmt::format("{} is not a command.{} Commands: {}.",
                         in_quotes(full_name(*at) + " " + word), did_you_mean(word, verbs),
                         fmt::join(verbs, ", "));
    }
    at = at->get_subcommand(word);
  }
  return {};
}

/// What CLI11 misses, for people.
std::string missing(const CLI::App& verb, const CLI::ParseError& error) {
  const std::string raw = error.what();
  const std::string text = printable(raw, raw.size());
  const std::vector<std::string> verbs = names_of_verbs(verb);
  const bool is_required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (is_required && !verbs.empty()) {
    return fmt::format("\"{}\" needs one of: {}.", full_name(verb), fmt::join(verbs, ", "));
  }
  if (is_required && text.starts_with("SCENARIO ")) return text + ": a scenario file (JSON)";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return text.substr(0, text.find(':')) + ": needs a value";
  }
  return text;
}

/// What CLI11 could not place, with the nearest option.
std::string leftovers(const CLI::App& verb) {
  std::vector<std::string> rest = verb.remaining();
  if (rest.empty()) return {};
  const auto is_option = [](const std::string& word) { return word.rfind('-', 0) == 0; };
  const auto option = std::find_if(rest.begin(), rest.end(), is_option);
  if (option == rest.end()) return fmt::format("unexpected argument {}.", in_quotes(rest.front()));
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("unknown option {}.{}", in_quotes(name),
                     did_you_mean(name, names_of_options(verb)));
}

Command command_of(const CLI::App& verb, Draft& draft) {
  if (verb.get_name() == "run") return std::move(draft.run);
  if (verb.get_name() == "report") return std::move(draft.report);
  if (verb.get_name() == "validate") return std::move(draft.validate);
  if (verb.get_name() == "list") return std::move(draft.list);
  if (verb.get_name() == "schema") return std::move(draft.schema);
  if (verb.get_parent()->get_name() == "generate") {
    draft.generate.kind = verb.get_name();
    return std::move(draft.generate);
  }
  if (verb.get_name() == "tune") return std::move(draft.tune);
  if (verb.get_name() == "partition") return std::move(draft.partition);
  if (verb.get_name() == "rate") return std::move(draft.studies.rate);
  if (verb.get_name() == "delay") return std::move(draft.studies.delay);
  if (verb.get_name() == "order") return std::move(draft.studies.order);
  if (verb.get_name() == "tolerance") return std::move(draft.studies.tolerance);
  if (verb.get_name() == "iteration") return std::move(draft.studies.iteration);
  if (verb.get_name() == "scaling") return std::move(draft.studies.scaling);
  return std::move(draft.studies.budget);
}

void allow_extras(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) allow_extras(*verb);
}

/// Everything that is wrong, a line each.
CommandLine refuse(const CLI::App& verb, const std::vector<std::string>& whys, std::ostream& err) {
  for (const std::string& why : whys) err << fmt::format("portwave: {}\n", why);
  err << fmt::format("See \"{} --help\".\n", full_name(verb));
  return {std::nullopt, kBadInput};
}

}  // namespace

CommandLine parse_arguments(const std::vector<std::string>& arguments, std::ostream& out,
                            std::ostream& err) {
  CLI::App app("Passive co-simulation of port-Hamiltonian subsystems", "portwave");
  Draft draft;
  std::vector<std::string> defects;
  Verb top(app, defects);
  add_verbs(top, draft);
  allow_extras(app);

  if (arguments.empty()) {
    err << app.help();
    return {std::nullopt, kBadInput};
  }
  const CLI::App* known = &app;
  if (const std::string why = unknown_verb(known, arguments); !why.empty()) {
    return refuse(*known, {why}, err);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& help_or_version) {
    app.exit(help_or_version, out, err);
    return {std::nullopt, kOk};
  } catch (const CLI::ParseError& error) {
    CLI::App& verb = innermost(app);
    const std::string rest = leftovers(verb);
    defects.insert(defects.begin(), rest.empty() ? missing(verb, error) : rest);
    return refuse(verb, defects, err);
  }
  CLI::App& verb = innermost(app);
  for (const CLI::App* at : {&app, &verb}) {
    if (std::string rest = leftovers(*at); !rest.empty()) {
      defects.insert(defects.begin(), std::move(rest));
      return refuse(*at, defects, err);
    }
  }
  if (!defects.empty()) return refuse(verb, defects, err);
  return {command_of(verb, draft), kOk};
}

}  // namespace portwave::cli

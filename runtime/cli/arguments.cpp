#include "arguments.hpp"

#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <portwave/runtime/output/summary.hpp>

#include "help_examples.hpp"
#include "line/reading.hpp"
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
  CheckArguments check;
  ListArguments list;
  SchemaArguments schema;
  TuneArguments tune;
  StudyArguments studies;
  GenerateArguments generate;
  ImportArguments import;
};

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

void add_check(Verb& top, CheckArguments& check) {
  Verb verb = top.add("check", "Check that parts keep the laws of port-Hamiltonian steps");
  verb.app()
      .add_option("SCENARIO|TYPE", check.scenario.file,
                  "Scenario file (JSON), or a type of part with the parameters of its example")
      ->required()
      ->type_name("");
  verb.texts(
      "--part", "NAME", "Check this part only; may be repeated",
      [](const std::string&) { return std::string(); },
      [&check](const std::vector<std::string>& names) { check.parts = names; });
  verb.reals("--steps-s", "T,T...", "Step sizes to try [s]", {1e-300, 1e300},
             [&check](std::vector<double> steps) { check.steps_s = std::move(steps); });
  verb.integer("--trials", "Random states, waves, inputs and impedances for each step size",
               {1, 100000},
               [&check](std::int64_t count) { check.trials = static_cast<int>(count); })
      ->default_str("4");
  verb.integer("--seed", "Seed of the random numbers", {0, kMostSteps},
               [&check](std::int64_t seed) { check.seed = seed; })
      ->default_str("1");
  add_json(verb, check.json, "the verdicts");
  add_overrides(verb, check.scenario.overrides);
  add_permissions(verb, check.scenario);
  verb.app().footer(std::string(kCheckExamples));
}

void add_import(Verb& top, ImportArguments& import) {
  Verb verb = top.add("import", "Write the scenario of a robot from a URDF file");
  verb.app().add_option("FILE", import.file, "URDF file")->required()->type_name("");
  verb.real("--step", "S", "Macro-step [s]", {1e-12, 1e12},
            [&import](double value) { import.step_s = value; })
      ->default_str("0.001");
  verb.real("--duration", "S", "Simulated time [s], a whole number of steps", {1e-12, 1e12},
            [&import](double value) { import.duration_s = value; })
      ->default_str("5");
  verb.flag("--free-base", "The root link is free, in place of being fixed to the world",
            import.free_base);
  verb.flag("--hold", "A PID controller at each joint keeps it where it starts", import.hold);
  verb.path("--out", "FILE", "File to write, in place of stdout", import.out);
  verb.app().footer(std::string(kImportExamples));
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
  add_check(top, draft.check);
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
  Verb schema = top.add("schema", "Write the JSON Schema of scenario files to stdout");
  add_plugins(schema, draft.schema.plugins);
  schema.app().footer(std::string(kSchemaExamples));
  add_study(top, draft.studies);
  add_generate(top, draft.generate);
  add_import(top, draft.import);
}

Command command_of(const CLI::App& verb, Draft& draft) {
  if (verb.get_name() == "run") return std::move(draft.run);
  if (verb.get_name() == "report") return std::move(draft.report);
  if (verb.get_name() == "validate") return std::move(draft.validate);
  if (verb.get_name() == "check") return std::move(draft.check);
  if (verb.get_name() == "list") return std::move(draft.list);
  if (verb.get_name() == "schema") return std::move(draft.schema);
  if (verb.get_parent()->get_name() == "generate") {
    draft.generate.kind = verb.get_name();
    return std::move(draft.generate);
  }
  if (verb.get_name() == "import") return std::move(draft.import);
  if (verb.get_name() == "tune") return std::move(draft.tune);
  if (verb.get_name() == "rate") return std::move(draft.studies.rate);
  if (verb.get_name() == "delay") return std::move(draft.studies.delay);
  if (verb.get_name() == "order") return std::move(draft.studies.order);
  if (verb.get_name() == "tolerance") return std::move(draft.studies.tolerance);
  if (verb.get_name() == "iteration") return std::move(draft.studies.iteration);
  if (verb.get_name() == "scaling") return std::move(draft.studies.scaling);
  return std::move(draft.studies.budget);
}

}  // namespace

CommandLine parse_arguments(const std::vector<std::string>& arguments, std::ostream& out,
                            std::ostream& err) {
  CLI::App app("Passive co-simulation of port-Hamiltonian subsystems", "portwave");
  Draft draft;
  std::vector<std::string> defects;
  Verb top(app, defects);
  add_verbs(top, draft);
  const LineRead read = read_line(app, defects, arguments, out, err);
  if (read.verb == nullptr) return {std::nullopt, read.exit_code};
  return {command_of(*read.verb, draft), kOk};
}

}  // namespace portwave::cli

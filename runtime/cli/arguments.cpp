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
  FmuArguments fmu;
  SspArguments ssp;
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

/// "a,b" as often as one likes.
void add_names(Verb& verb, const std::string& name, const std::string& what,
               std::vector<std::string>& names) {
  verb.texts(
      name, "NAME,NAME...", what,
      [](const std::string& list) {
        for (const std::string_view own : split_at_commas(list)) {
          if (own.empty()) return std::string("has an empty entry");
        }
        return std::string();
      },
      [&names](const std::vector<std::string>& lists) {
        for (const std::string& list : lists) {
          for (const std::string_view own : split_at_commas(list)) names.emplace_back(own);
        }
      });
}

void add_import(Verb& top, ImportArguments& import) {
  Verb verb = top.add("import", "Write the scenario of a robot or of a system of FMUs");
  verb.app()
      .add_option("FILE", import.file,
                  "Robot (URDF, MJCF), or system structure (SSP, OspSystemStructure.xml)")
      ->required()
      ->type_name("");
  verb.real("--step", "S", "Macro-step [s]", {1e-12, 1e12},
            [&import](double value) { import.step_s = value; })
      ->default_str("0.001 for robots, else as the structure says");
  verb.real("--duration", "S", "Simulated time [s], a whole number of steps", {1e-12, 1e12},
            [&import](double value) { import.duration_s = value; })
      ->default_str("5 for robots, else as the structure says");
  add_names(verb, "--cut",
            "Joints at which the robot is cut into parts that are stepped in parallel", import.cut);
  verb.flag("--free-base", "The root link is free, in place of being fixed to the world",
            import.free_base);
  verb.flag(
      "--ground",
      "Spheres of <collision> touch the ground z = 0, with friction; a free base starts on it",
      import.ground);
  verb.flag("--hold", "A PID controller at each joint keeps it where it starts", import.hold);
  verb.flag("--motors", "A motor with a gear drives each joint, at 0 V or at the voltage of --hold",
            import.motors);
  verb.flag("--no-limits", "No end stops where the file gives a joint a range",
            import.without_limits);
  verb.real("--stop-time", "S", "Time of a bounce off an end stop [s], which sets its stiffness",
            {1e-12, 1e12}, [&import](double value) { import.stop_time_s = value; })
      ->default_str("20 steps, at least 0.01");
  verb.flag("--allow-plugins", "Load the FMUs of a system structure: they are code",
            import.loads_fmus);
  verb.flag("--samples", "FMUs exchange samples, and no connections are power bonds",
            import.as_samples);
  verb.flag("--process", "Each FMU runs in a process of its own", import.process);
  verb.path("--out", "FILE", "File to write, in place of stdout", import.out);
  verb.app().footer(std::string(kImportExamples));
}

void add_fmu(Verb& top, FmuArguments& fmu) {
  Verb verb = top.add("fmu", "Write a scenario as an FMU, with the engine inside");
  verb.app()
      .add_option("SCENARIO", fmu.scenario.file, "Scenario file (JSON)")
      ->required()
      ->type_name("");
  add_names(verb, "--inputs", "External inputs \"part.input\"; absent: all that are settable",
            fmu.options.inputs);
  add_names(
      verb, "--outputs",
      "Quantities as in \"outputs\" of scenarios, and energies such as energy.stored; absent: "
      "those that the scenario observes",
      fmu.options.outputs);
  add_names(verb, "--parameters", "Numbers of parts \"part.mass_kg\": tunable parameters",
            fmu.options.parameters);
  add_names(verb, "--ports",
            "Ports \"part.port\" that are free, fixed or not joined: power ports of the FMU; with "
            "=effort or =flow, what it takes",
            fmu.options.ports);
  verb.choice("--fmi", {"2", "3"}, "Version of FMI",
              [&fmu](std::size_t i) { fmu.options.fmi = static_cast<int>(i) + 2; })
      ->default_str("2");
  verb.text(
      "--name", "NAME", "Name of the model, in place of the scenario's",
      [](const std::string& name) { return std::string(name.empty() ? "is empty" : ""); },
      [&fmu](const std::string& name) { fmu.options.name = name; });
  verb.path("--out", "FILE", "FMU to write", fmu.out)->required();
  add_overrides(verb, fmu.scenario.overrides);
  verb.app().footer(std::string(kFmuExamples));
}

void add_ssp(Verb& top, SspArguments& ssp) {
  Verb verb = top.add("ssp", "Write a scenario of FMUs as a package of a system structure");
  add_scenario(verb, ssp.scenario);
  verb.path("--out", "FILE", "Package (.ssp) to write", ssp.out)->required();
  verb.app().footer(std::string(kSspExamples));
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
  add_fmu(top, draft.fmu);
  add_ssp(top, draft.ssp);
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
  if (verb.get_name() == "fmu") return std::move(draft.fmu);
  if (verb.get_name() == "ssp") return std::move(draft.ssp);
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

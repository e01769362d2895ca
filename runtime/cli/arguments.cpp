#include "arguments.hpp"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <portwave/coupling/method/method_table.hpp>
#include <portwave/runtime/output/summary.hpp>
#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/core/gauss_stages.hpp>

#include "generate.hpp"
#include "help_examples.hpp"
#include "verb.hpp"

namespace portwave::cli {
namespace {

/// What the options are read into, whichever verb they belong to.
struct Draft {
  RunArguments run;
  ReportArguments report;
  ValidateArguments validate;
  ListArguments list;
  SchemaArguments schema;
  TuneArguments tune;
  PartitionArguments partition;
  StudyBudgetArguments budget;
  StudyRateArguments rate;
  StudyDelayArguments delay;
  StudyOrderArguments order;
  StudyToleranceArguments tolerance;
  StudyIterationArguments iteration;
  StudyScalingArguments scaling;
  GenerateArguments generate;
};

constexpr std::int64_t kMostIterations = 1'000'000;
constexpr std::int64_t kMostObservedSteps = 1'000'000;
constexpr std::int64_t kMostRepetitions = 10'000;
constexpr std::int64_t kMostRanks = 100'000;
constexpr std::int64_t kMostStudiedRanks = 10'000;

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

/// "/json/pointer=value"
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
      "--plugin", "FILE", "Take types of parts from a shared library; may be repeated",
      [](const std::string& file) { return file.empty() ? "needs a file" : std::string(); },
      [&plugins](const std::vector<std::string>& files) {
        plugins.assign(files.begin(), files.end());
      });
}

/// What a scenario may have beside its own text.
void add_permissions(Verb& verb, ScenarioArguments& scenario) {
  add_plugins(verb, scenario.plugins);
  verb.app().add_flag_callback(
      "--allow-plugins", [&scenario] { scenario.plugins_of_scenario = Plugins::allowed; },
      "Load the plugins of the scenario: code that may do all that you may");
  verb.app().add_flag_callback(
      "--allow-outside-files", [&scenario] { scenario.outside_files = OutsideFiles::allowed; },
      "Read tables and matrices that lie outside of the scenario's folder");
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

/// How a step is executed: the results do not depend on it.
void add_execution(Verb& verb, Grain& grain, ExecutorKind& executor) {
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
  static constexpr ExecutorKind kKinds[] = {ExecutorKind::automatic, ExecutorKind::serial,
                                            ExecutorKind::async, ExecutorKind::graph};
  std::vector<std::string> names;
  for (const ExecutorKind kind : kKinds) names.emplace_back(to_string(kind));
  verb.choice("--executor", names, "Who runs the tasks; graph is a plain flow graph of oneTBB",
              [&executor](std::size_t i) { executor = kKinds[i]; }, {{"waves", "async"}})
      ->default_str("auto");
}

void add_time_budget(Verb& verb, TimeBudget& time) {
  verb.real("--deadline-us", "T",
            "Stop the inner iteration so that a step is committed within T us of its beginning; "
            "results then depend on the clock",
            {1e-3, 1e12}, [&time](double us) { time.deadline_s = 1e-6 * us; });
  verb.real("--pace", "X",
            "Simulated time per wall time, 1 for real time: no step begins early, and each is to "
            "be committed when the next is due; results then depend on the clock",
            {1e-6, 1e9}, [&time](double pace) { time.pace = pace; });
}

/// "500", or "10s".
void add_checkpoint_every(Verb& verb, std::optional<CheckpointEvery>& every) {
  constexpr RealRange kSeconds = {1e-3, 1e9};
  constexpr IntegerRange kSteps = {1, kMostSteps};
  const auto is_time = [](const std::string& text) { return text.ends_with('s'); };
  verb.text(
      "--checkpoint-every", "N|Ts",
      "Keep in DIR what --resume needs, every N steps or every T seconds, as in 10s",
      [=](const std::string& text) {
        if (is_time(text))
          return kSeconds.defect(std::string_view(text).substr(0, text.size() - 1));
        const std::string defect = kSteps.defect(text);
        return defect.empty()
                   ? defect
                   : fmt::format("{} is neither a number of steps nor a time such as 10s",
                                 in_quotes(text));
      },
      [=, &every](const std::string& text) {
        every = CheckpointEvery{};
        if (is_time(text)) {
          every->wall_s = real(std::string_view(text).substr(0, text.size() - 1));
        } else {
          every->steps = integer(text);
        }
      });
}

/// Options that a run which is gone on with takes from its beginning. Permissions are not among them.
std::vector<std::string> options_beside_resume(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    const std::vector<std::string> may = {
        "--resume", "--plugin", "--allow-plugins", "--allow-outside-files",
        "--strict", "--report", "--profile",       "--json",
        "--quiet",  "--help"};
    const std::string name = option->get_name();
    if (option->count() > 0 && std::find(may.begin(), may.end(), name) == may.end()) {
      names.push_back(name);
    }
  }
  return names;
}

constexpr const char* kReportNeedsOut = "--report needs --out: the page lies with the results";

/// The page of a study.
void add_study_report(Verb& verb, const std::optional<std::filesystem::path>& out, bool& report) {
  verb.flag("--report", "Also draw it: report.html in DIR", report);
  verb.check([&out, &report] {
    return report && !out ? std::vector<std::string>{kReportNeedsOut} : std::vector<std::string>{};
  });
}

/// What does not go together.
std::vector<std::string> run_defects(const CLI::App& verb, const RunArguments& run) {
  std::vector<std::string> defects;
  if (run.resume) {
    const std::vector<std::string> others = options_beside_resume(verb);
    if (!others.empty()) {
      defects.push_back(fmt::format("--resume takes the run as it was begun: not with {}",
                                    fmt::join(others, ", ")));
    }
  } else if (run.scenario.file.empty()) {
    defects.push_back("SCENARIO is required: a scenario file (JSON)");
  }
  if (run.checkpoint_every && !run.out) {
    defects.push_back("--checkpoint-every needs --out: checkpoints lie with the results");
  }
  if (run.live && run.quiet) defects.emplace_back("--live shows what --quiet hides");
  const std::pair<bool, const char*> beyond_slices[] = {
      {run.checkpoint_every.has_value(), "--checkpoint-every"},
      {run.live, "--live"},
      {run.serve.has_value(), "--serve"},
      {run.report, "--report"},
      {run.profile, "--profile"}};
  for (const auto& [is_given, name] : beyond_slices) {
    if (!run.slices || !is_given) continue;
    defects.push_back(fmt::format("{} needs all of the system: not with --slices", name));
  }
  if (run.report && !run.out && !run.resume) defects.emplace_back(kReportNeedsOut);
  return defects;
}

void add_run(Verb& top, RunArguments& run) {
  Verb verb = top.add("run", "Step a scenario and certify it");
  add_scenario(verb, run.scenario)->required(false);
  add_out(verb, run.out, "summary.json, network.json, trajectory.csv and energy.csv");
  add_checkpoint_every(verb, run.checkpoint_every);
  verb.path("--resume", "DIR",
            "Go on with a run from its last checkpoint, in place of SCENARIO; plugins, and files "
            "outside of DIR, are to be allowed anew",
            run.resume);
  add_threads(verb, run.threads);
  add_execution(verb, run.grain, run.executor);
  add_time_budget(verb, run.time);
  add_steps(verb, run.scenario.steps);
  add_certify(verb, run.certify);
  verb.flag("--strict",
            "Exit code 1 also where the certificate is conditional or steps missed the tolerance",
            run.strict);
  verb.flag("--report", "Also make a page of it: report.html in DIR", run.report);
  verb.flag("--profile", "Say where the time goes; with --out also trace.json for ui.perfetto.dev",
            run.profile);
  verb.flag("--live", "Show how the run goes on: its rate, energy, residual, guard and worst part",
            run.live);
  verb.integer("--serve", "Show the run to browsers on this machine, on that port; 0: any",
               {0, 65535}, [&run](std::int64_t port) { run.serve = static_cast<int>(port); });
  add_json(verb, run.json, "the summary");
  verb.flag("--quiet", "No progress and no summary on stderr", run.quiet);
  verb.flag("--slices",
            "With mpirun: each process reads only the subsystems that it steps, and writes what is "
            "observed of them to DIR/rank-0, DIR/rank-1 ...",
            run.slices);
  verb.app().footer(std::string(kRunExamples));
  verb.check([&app = verb.app(), &run] { return run_defects(app, run); });
}

void add_report(Verb& top, ReportArguments& report) {
  Verb verb = top.add("report", "Make a page of what a run has left, or compare two runs");
  verb.app()
      .add_option("DIR", report.folders, "Folder of results; of two the runs are compared")
      ->required()
      ->expected(1, -1)
      ->type_name("");
  verb.path("--out", "FILE", "File to write, in place of report.html or comparison.html in DIR",
            report.out);
  verb.app().footer(std::string(kReportExamples));
  verb.check([&report] {
    return report.folders.size() > 2
               ? std::vector<std::string>{"a page is of one folder, or compares two"}
               : std::vector<std::string>{};
  });
}

void add_tune(Verb& top, TuneArguments& tune) {
  Verb verb =
      top.add("tune", "Impedances and iteration that suit a scenario, and what they promise");
  add_scenario(verb, tune.scenario);
  verb.choice("--impedance", impedance_words(), "Rule to take the impedances from",
              [&tune](std::size_t i) { tune.impedance = impedance_words()[i]; })
      ->default_str(tune.impedance);
  verb.integer("--ports", "Ports to show; --json has them all", {0, kMostParts},
               [&tune](std::int64_t ports) { tune.ports = static_cast<int>(ports); })
      ->default_str(std::to_string(tune.ports));
  add_out(verb, tune.out, "tune.json");
  add_json(verb, tune.json, "the report");
  verb.app().footer(std::string(kTuneExamples));
}

void add_partition(Verb& top, PartitionArguments& partition) {
  Verb verb = top.add("partition", "Show how a scenario would be dealt out to several processes");
  add_scenario(verb, partition.scenario);
  RankPlanOptions& plan = partition.plan;
  verb.integer("--ranks", "Processes", {1, kMostRanks},
               [&plan](std::int64_t count) { plan.ranks = static_cast<int>(count); })
      ->default_str(std::to_string(plan.ranks));
  verb.integer("--threads", "Threads of each", {1, kMaxThreads},
               [&plan](std::int64_t count) { plan.threads = static_cast<int>(count); })
      ->default_str(std::to_string(plan.threads));
  verb.real("--latency-us", "US", "Latency of a message", {0.0, 1e9},
            [&plan](double us) { plan.latency_s = 1e-6 * us; })
      ->default_str("2");
  verb.real("--bandwidth-GBs", "GBS", "Bandwidth of the network in 10^9 bytes per second",
            {1e-6, 1e9}, [&plan](double gigabytes) { plan.bandwidth_B_per_s = 1e9 * gigabytes; })
      ->default_str("10");
  verb.integer("--show", "Ranks to show; --json has them all", {0, kMostRanks},
               [&partition](std::int64_t count) { partition.shown = static_cast<int>(count); })
      ->default_str(std::to_string(partition.shown));
  add_json(verb, partition.json, "the plan");
}

std::vector<std::string> names_of(const std::vector<MethodKind>& kinds) {
  std::vector<std::string> names;
  names.reserve(kinds.size());
  for (const MethodKind kind : kinds) names.emplace_back(to_string(kind));
  return names;
}

/// What the budget is combined with.
void add_budget_axes(Verb& verb, StudyBudgetArguments& study) {
  std::vector<MethodKind> kinds;
  for (const MethodInfo& method : all_methods()) {
    if (!method.kind.is<SplittingKind>()) kinds.push_back(method.kind);
  }
  const std::vector<std::string> words = names_of(kinds);
  verb.choices("--methods", "M,M,...", words, "Iterations to compare",
               [&study, kinds](const std::vector<std::size_t>& places) {
                 for (const std::size_t i : places) study.axes.methods.push_back(kinds[i]);
               });
  verb.choices("--impedances", "R,R,...", impedance_words(), "Rules of impedances to compare",
               [&study](const std::vector<std::size_t>& places) {
                 for (const std::size_t i : places)
                   study.impedances.push_back(impedance_words()[i]);
               });
  verb.choices("--guard", "on,off", {"on", "off"}, "With and without passivity guard",
               [&study](const std::vector<std::size_t>& places) {
                 for (const std::size_t i : places) study.axes.guards.push_back(i == 0);
               });
}

void add_study_budget(Verb& group, StudyBudgetArguments& study) {
  Verb verb = group.add("budget", "Error against the monolithic reference, by inner iterations");
  add_scenario(verb, study.scenario);
  verb.integers("--budgets", "K,K,...", "Inner iterations per step, one run each",
                {0, kMostIterations},
                [&study](std::vector<int> budgets) { study.axes.budgets = std::move(budgets); })
      ->default_str("0,3,8,20,35,50");
  add_budget_axes(verb, study);
  add_out(verb, study.out, "study.json and budget.csv");
  add_study_report(verb, study.out, study.report);
  add_threads(verb, study.threads);
  add_steps(verb, study.scenario.steps);
  add_json(verb, study.json, "the rows");
  verb.app().footer(std::string(kStudyExamples));
}

void add_study_rate(Verb& group, StudyRateArguments& study) {
  Verb verb = group.add("rate", "Contraction per evaluation, predicted and observed");
  add_scenario(verb, study.scenario);
  verb.integer("--steps", "Macro-steps to observe, at most the scenario's", {1, kMostObservedSteps},
               [&study](std::int64_t steps) { study.options.steps = static_cast<int>(steps); })
      ->default_str(std::to_string(study.options.steps));
  add_out(verb, study.out, "rate.json");
  add_study_report(verb, study.out, study.report);
  add_json(verb, study.json, "the rows");
  verb.app().footer(std::string(kRateExamples));
}

void add_study_delay(Verb& group, StudyDelayArguments& study) {
  Verb verb =
      group.add("delay", "Error of an asynchronous exchange (experimental), by how late waves are");
  add_scenario(verb, study.scenario);
  verb.integers("--delays", "D,D,...",
                "Evaluations that waves of other ranks are late, one run each",
                {0, ExchangeOptions::kMostDelay},
                [&study](std::vector<int> delays) { study.options.delays = std::move(delays); })
      ->default_str("0,1,2,4");
  verb.integers("--budgets", "K,K,...", "Inner iterations per step, in place of the scenario's",
                {0, kMostIterations},
                [&study](std::vector<int> budgets) { study.options.budgets = std::move(budgets); });
  verb.integer("--ranks", "Ranks, as threads of this process", {2, 256},
               [&study](std::int64_t n) { study.options.ranks = static_cast<int>(n); })
      ->default_str(std::to_string(study.options.ranks));
  verb.flag("--scattered", "Messages are late at random, up to the delay, and overtake one another",
            study.options.scattered);
  add_out(verb, study.out, "delay.json");
  add_study_report(verb, study.out, study.report);
  add_steps(verb, study.scenario.steps);
  add_json(verb, study.json, "the rows");
  verb.app().footer(std::string(kDelayExamples));
}

void add_study_order(Verb& group, StudyOrderArguments& study) {
  Verb verb = group.add("order", "Error, order and cost of a method, by step size");
  add_scenario(verb, study.scenario);
  verb.reals("--steps", "H,H,...", "Step sizes [s]; each divides the end time", {1e-12, 1e12},
             [&study](std::vector<double> steps_s) { study.options.steps_s = std::move(steps_s); })
      ->required();
  static const std::string kMidpoint = "midpoint";  // takes part anyway
  std::vector<MethodKind> kinds;                    // those without waves first
  for (const bool by_waves : {false, true}) {
    for (const MethodInfo& method : all_methods()) {
      if (method.kind.couples_by_waves() == by_waves) kinds.push_back(method.kind);
    }
  }
  std::vector<std::string> words = names_of(kinds);
  words.insert(words.begin(), kMidpoint);
  verb.choices("--methods", "M,M,...", words,
               "Methods to compare, in place of the scenario's own and strang",
               [&study, kinds](const std::vector<std::size_t>& places) {
                 study.options.methods.emplace();
                 for (const std::size_t i : places) {
                   if (i > 0) study.options.methods->push_back(kinds[i - 1]);
                 }
               });
  verb.integer("--repeat", "Runs of each row; the fastest counts", {1, kMostRepetitions},
               [&study](std::int64_t n) { study.options.repeat = static_cast<int>(n); })
      ->default_str(std::to_string(study.options.repeat));
  add_threads(verb, study.options.threads);
  add_out(verb, study.out, "study.json and order.csv");
  add_study_report(verb, study.out, study.report);
  add_json(verb, study.json, "the study");
  verb.app().footer(std::string(kOrderExamples));
}

void add_study_tolerance(Verb& group, StudyToleranceArguments& study) {
  Verb verb = group.add("tolerance", "Work against precision of steps that choose their size");
  add_scenario(verb, study.scenario);
  const NumberRange range = StepSizes::tolerances();
  verb.reals("--tolerances", "T,T,...", "Tolerances of the local error, one run each",
             {range.minimum, range.maximum},
             [&study](std::vector<double> tolerances) {
               study.options.tolerances = std::move(tolerances);
             })
      ->default_str("1e-3,1e-4,1e-5,1e-6,1e-7,1e-8");
  verb.integers("--stages", "S,S,...", "Stages to compare, in place of the scenario's",
                {1, kMostStages},
                [&study](std::vector<int> stages) { study.options.stages = std::move(stages); });
  verb.integer("--repeat", "Runs of each row; the fastest counts", {1, kMostRepetitions},
               [&study](std::int64_t n) { study.options.repeat = static_cast<int>(n); })
      ->default_str(std::to_string(study.options.repeat));
  add_threads(verb, study.options.threads);
  add_out(verb, study.out, "study.json and tolerance.csv");
  add_study_report(verb, study.out, study.report);
  add_json(verb, study.json, "the study");
  verb.app().footer(std::string(kToleranceExamples));
}

std::string start_error_defect(const std::string& text) {
  std::string defect = list_defect(text, RealRange{-1e300, 1e300});
  if (!defect.empty() || split_at_commas(text).size() == 2) return defect;
  return fmt::format("{} is not two numbers, D and tau, with a comma between them",
                     in_quotes(text));
}

void add_study_iteration(Verb& group, StudyIterationArguments& study) {
  Verb verb = group.add("iteration", "Error of a dynamic iteration, iterate by iterate");
  add_scenario(verb, study.scenario);
  verb.integer("--iterations", "Iterations per window, in place of the scenario's",
               {0, kMostIterations},
               [&study](std::int64_t n) { study.iterations = static_cast<int>(n); });
  verb.text(
          "--windows", "all|N", "Windows to follow, from the start",
          [](const std::string& text) {
            return text == "all" ? std::string() : IntegerRange{1, kMostSteps}.defect(text);
          },
          [&study](const std::string& text) {
            study.options.windows = text == "all" ? kMostSteps : integer(text);
          })
      ->default_str(std::to_string(study.options.windows));
  verb.text("--start-error", "D,TAU",
            "jacobi and gauss-seidel: start from the solution and D t exp(-TAU t) in every state",
            start_error_defect, [&study](const std::string& text) {
              const auto entries = split_at_commas(text);
              study.options.start_error = StartError{real(entries[0]), real(entries[1])};
            });
  add_out(verb, study.out, "study.json and iteration.csv");
  add_study_report(verb, study.out, study.report);
  add_json(verb, study.json, "the study");
  verb.app().footer(std::string(kIterationExamples));
}

void add_study_scaling(Verb& group, StudyScalingArguments& study) {
  Verb verb =
      group.add("scaling", "Time per step by threads, or ranks: measured, and predicted for more");
  verb.app()
      .add_option("SCENARIO", study.scenario.file, "Scenario file (JSON): strong scaling")
      ->type_name("");
  add_overrides(verb, study.scenario.overrides);
  add_permissions(verb, study.scenario);
  verb.choice("--generate", scaling_kinds(), "A generated network in place of a file",
              [&study](std::size_t i) { study.kind = scaling_kinds()[i]; });
  verb.integers("--sizes", "N,N,...",
                "Blocks, limbs or nodes of the network. One: strong scaling; one per thread count, "
                "in proportion to them: weak scaling",
                {1, kMostParts},
                [&study](std::vector<int> sizes) { study.sizes = std::move(sizes); });
  verb.integers("--threads", "N,N,...",
                "Thread counts; those beyond this machine's cores are predicted, not measured",
                {1, kMaxThreads},
                [&study](std::vector<int> threads) {
                  study.options.threads = std::move(threads);
                  study.is_threads_given = true;
                })
      ->default_str("1,2,4");
  verb.integers(
      "--ranks", "N,N,...",
      "Processes, of one thread each unless --threads says more: those that mpirun started "
      "are measured, more are predicted",
      {1, kMostStudiedRanks}, [&study](std::vector<int> ranks) { study.ranks = std::move(ranks); });
  verb.real("--latency-us", "US", "With --ranks: latency of a message; otherwise measured, or 2",
            {0.0, 1e9}, [&study](double us) { study.latency_s = 1e-6 * us; });
  verb.real("--bandwidth-GBs", "GBS",
            "With --ranks: bandwidth in 10^9 bytes per second; otherwise measured, or 10",
            {1e-6, 1e9}, [&study](double gigabytes) { study.bandwidth_B_per_s = 1e9 * gigabytes; });
  add_execution(verb, study.options.grain, study.options.executor);
  add_certify(verb, study.certify);
  verb.integer("--repetitions", "Measurements of each configuration, taken in turn",
               {1, kMostRepetitions},
               [&study](std::int64_t n) { study.options.repetitions = static_cast<int>(n); })
      ->default_str(std::to_string(study.options.repetitions));
  verb.integer("--steps", "Macro-steps of one measurement; otherwise chosen by what they take",
               {1, kMostSteps}, [&study](std::int64_t steps) { study.options.steps = steps; });
  add_out(verb, study.out, "scaling.json");
  add_study_report(verb, study.out, study.report);
  add_json(verb, study.json, "the rows");
  verb.app().footer(std::string(kScalingExamples));
}

void add_study(Verb& top, Draft& draft) {
  Verb group = top.add("study", "Studies over many runs of a scenario");
  group.app().require_subcommand(1);
  add_study_budget(group, draft.budget);
  add_study_rate(group, draft.rate);
  add_study_delay(group, draft.delay);
  add_study_order(group, draft.order);
  add_study_tolerance(group, draft.tolerance);
  add_study_iteration(group, draft.iteration);
  add_study_scaling(group, draft.scaling);
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
  Verb validate = top.add("validate", "Check a scenario and run nothing");
  add_scenario(validate, draft.validate.scenario);
  Verb list = top.add("list", "Show the catalogue, or one type of part in full");
  list.text(
      "TYPE", "", "Type of part", [](const std::string&) { return std::string(); },
      [&draft](const std::string& type) { draft.list.type = type; });
  list.flag("--markdown", "Write types of parts as Markdown, the form of docs/reference/parts.md",
            draft.list.markdown);
  list.flag("--blocks", "Show the blocks of controllers instead, or the one of that name",
            draft.list.blocks);
  list.flag("--methods", "Show the methods of coupling instead, or the one of that name",
            draft.list.methods);
  add_json(list, draft.list.json, "the catalogue");
  add_plugins(list, draft.list.plugins);
  add_tune(top, draft.tune);
  add_partition(top, draft.partition);
  Verb schema = top.add("schema", "Write the JSON Schema of scenario files to stdout");
  add_plugins(schema, draft.schema.plugins);
  add_study(top, draft);
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
  if (verb.get_name() == "rate") return std::move(draft.rate);
  if (verb.get_name() == "delay") return std::move(draft.delay);
  if (verb.get_name() == "order") return std::move(draft.order);
  if (verb.get_name() == "tolerance") return std::move(draft.tolerance);
  if (verb.get_name() == "iteration") return std::move(draft.iteration);
  if (verb.get_name() == "scaling") return std::move(draft.scaling);
  return std::move(draft.budget);
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
  LineNotes notes;
  std::vector<std::string>& defects = notes.defects;
  Verb top(app, notes);
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
  for (const std::string& hint : notes.hints) err << fmt::format("portwave: {}\n", hint);
  return {command_of(verb, draft), kOk};
}

}  // namespace portwave::cli

#include <utility>

#include <fmt/format.h>

#include <portwave/coupling/method/method_table.hpp>
#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/core/stage_rule.hpp>

#include "help_examples.hpp"
#include "line/shared_options.hpp"
#include "verb_options.hpp"

namespace portwave::cli {
namespace {

constexpr std::int64_t kMostIterations = 1'000'000;
constexpr std::int64_t kMostObservedSteps = 1'000'000;

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
      group.add("delay", "Error of an asynchronous exchange (experimental), by the delay of waves");
  add_scenario(verb, study.scenario);
  verb.integers("--delays", "D,D,...",
                "Delays of the waves of other ranks, in evaluations; one run each",
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
  Verb verb = group.add("scaling", "Time per step by threads: measured, and predicted for more");
  add_networks(verb, study.networks, "Several: one after another, each on all threads");
  verb.flag(
      "--weak",
      "Weak scaling: one size per thread count, in proportion to them, or one size for the first",
      study.weak);
  verb.integers("--threads", "N,N,...",
                "Thread counts; those beyond this machine's cores are predicted, not measured",
                {1, kMaxThreads},
                [&study](std::vector<int> threads) { study.options.threads = std::move(threads); })
      ->default_str("1,2,4");
  add_grain(verb, study.options.grain);
  verb.choices("--executors,--executor", "E,E,...", executor_words(), "Executors to compare",
               [&study](const std::vector<std::size_t>& places) {
                 study.options.executors.clear();
                 for (const std::size_t i : places)
                   study.options.executors.push_back(executor_at(i));
               })
      ->default_str("auto");
  add_measurements(verb, study.options.repetitions, study.options.steps);
  add_out(verb, study.out, "scaling.json and scaling.csv");
  study.files.add_to(verb);
  add_study_report(verb, study.out, study.report);
  add_json(verb, study.json, "the rows");
  verb.app().footer(std::string(kScalingExamples));
}

}  // namespace

void add_tune(Verb& top, TuneArguments& tune) {
  Verb verb = top.add(
      "tune", "Choose impedances and an iteration for a scenario, and predict its convergence");
  add_scenario(verb, tune.scenario);
  verb.choice("--impedance", impedance_words(), "Rule for the impedances",
              [&tune](std::size_t i) { tune.impedance = impedance_words()[i]; })
      ->default_str(tune.impedance);
  verb.integer("--ports", "Number of ports to show; --json shows all", {0, kMostParts},
               [&tune](std::int64_t ports) { tune.ports = static_cast<int>(ports); })
      ->default_str(std::to_string(tune.ports));
  add_out(verb, tune.out, "tune.json");
  add_json(verb, tune.json, "the report");
  verb.app().footer(std::string(kTuneExamples));
}

void add_study(Verb& top, StudyArguments& studies) {
  Verb group = top.add("study", "Studies over many runs of a scenario");
  group.app().require_subcommand(1);
  group.app().footer(std::string(kStudiesExamples));
  add_study_budget(group, studies.budget);
  add_study_rate(group, studies.rate);
  add_study_delay(group, studies.delay);
  add_study_order(group, studies.order);
  add_study_tolerance(group, studies.tolerance);
  add_study_iteration(group, studies.iteration);
  add_study_scaling(group, studies.scaling);
}

}  // namespace portwave::cli

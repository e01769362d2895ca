#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <portwave/subsystems/base/printable.hpp>

#include "help_examples.hpp"
#include "line/shared_options.hpp"
#include "verb_options.hpp"

namespace portwave::cli {
namespace {

void add_time_budget(Verb& verb, TimeBudget& time) {
  verb.real(
      "--deadline-us", "T",
      "Stop the inner iteration so that each step is committed within T us; results then depend "
      "on the clock",
      {1e-3, 1e12}, [&time](double us) { time.deadline_s = 1e-6 * us; });
  verb.real("--pace", "X",
            "Simulated time per wall time, 1 for real time: no step begins early, and each is to "
            "be committed before the next is due; results then depend on the clock",
            {1e-6, 1e9}, [&time](double pace) { time.pace = pace; });
}

/// "500", or "10s".
void add_checkpoint_every(Verb& verb, std::optional<CheckpointEvery>& every) {
  constexpr RealRange kSeconds = {1e-3, 1e9};
  constexpr IntegerRange kSteps = {1, kMostSteps};
  const auto is_time = [](const std::string& text) { return text.ends_with('s'); };
  verb.text(
      "--checkpoint-every", "N|Ts",
      "Write a checkpoint for --resume to DIR every N steps, or every T seconds as in 10s",
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

/// Options that exclude one another.
std::vector<std::string> run_defects(const CLI::App& verb, const RunArguments& run) {
  std::vector<std::string> defects;
  if (run.resume) {
    const std::vector<std::string> others = options_beside_resume(verb);
    if (!others.empty()) {
      defects.push_back(fmt::format("--resume continues the run with its own options: not with {}",
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
    defects.push_back(fmt::format("{} needs the whole system: not with --slices", name));
  }
  if (run.report && !run.out && !run.resume) defects.emplace_back(kReportNeedsOut);
  return defects;
}

}  // namespace

void add_run(Verb& top, RunArguments& run) {
  Verb verb = top.add("run", "Step a scenario and certify it");
  add_scenario(verb, run.scenario)->required(false);
  add_out(verb, run.out, "summary.json, network.json, trajectory.csv and energy.csv");
  add_checkpoint_every(verb, run.checkpoint_every);
  verb.path("--resume", "DIR",
            "Continue a run from its last checkpoint, in place of SCENARIO; plugins and files "
            "outside DIR must be allowed again",
            run.resume);
  add_threads(verb, run.threads);
  add_execution(verb, run.grain, run.executor);
  add_time_budget(verb, run.time);
  add_steps(verb, run.scenario.steps);
  add_certify(verb, run.certify);
  verb.choice("--compare", {"beginning", "whole", "none"},
              "What is run again with finer steps and compared: its beginning, up to five million "
              "numbers (steps times states), all of it, or nothing",
              [&run](std::size_t i) {
                using Extent = StepComparison::Extent;
                constexpr std::array kExtents = {Extent::beginning, Extent::whole, Extent::none};
                run.compare = kExtents[i];
              });
  verb.flag(
      "--strict",
      "Exit code 1 also where the certificate is conditional (but for parts whose energy nobody "
      "knows, such as FMUs), steps missed the tolerance, or the summary calls the run poor, not "
      "resolved or its accuracy not known",
      run.strict);
  verb.flag("--report", "Also write a page on the run: report.html in DIR", run.report);
  verb.flag("--profile",
            "Report where the time goes; with --out also write trace.json for ui.perfetto.dev",
            run.profile);
  verb.flag("--live", "Show the progress of the run: rate, energy, residual, guard and worst part",
            run.live);
  verb.integer("--serve",
               "Serve a live page to browsers on this machine at this port; 0: any free port",
               {0, 65535}, [&run](std::int64_t port) { run.serve = static_cast<int>(port); });
  add_json(verb, run.json, "the summary");
  verb.flag("--quiet", "No progress and no summary on stderr", run.quiet);
  verb.flag("--slices",
            "With mpirun: each process reads only the parts that it steps, and writes their "
            "quantities to DIR/rank-0, DIR/rank-1 ...",
            run.slices);
  verb.app().footer(std::string(kRunExamples));
  verb.check([&app = verb.app(), &run] { return run_defects(app, run); });
}

void add_report(Verb& top, ReportArguments& report) {
  Verb verb = top.add("report", "Write a page on a run, or compare two runs");
  verb.app()
      .add_option("DIR", report.folders,
                  "Folder of results; with two folders the runs are compared")
      ->required()
      ->expected(1, -1)
      ->type_name("");
  verb.path("--out", "FILE", "File to write, in place of report.html or comparison.html in DIR",
            report.out);
  verb.app().footer(std::string(kReportExamples));
  verb.check([&report] {
    return report.folders.size() > 2
               ? std::vector<std::string>{"a page shows one folder, or compares two"}
               : std::vector<std::string>{};
  });
}

}  // namespace portwave::cli

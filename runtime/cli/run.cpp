// portwave run, portwave validate

#include <chrono>
#include <memory>
#include <ostream>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/output/summary.hpp>
#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/descriptor/descriptor_part.hpp>

#include "commands.hpp"
#include "interrupt.hpp"
#include "status_line.hpp"
#include "thread_allowance.hpp"

namespace portwave::cli {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void tell_notes(const Scenario& scenario, std::ostream& err) {
  for (const Issue& note : scenario.notes)
    err << fmt::format("note: {}: {}\n", note.where, note.what);
}

/// What the run is recorded with.
using Recorders = std::vector<std::unique_ptr<Recorder>>;

Recorders recorders_for(const Scenario& scenario, const RunArguments& arguments) {
  Recorders recorders;
  if (arguments.out) {
    recorders.push_back(std::make_unique<CsvRecorder>(
        *arguments.out, scenario.observables, scenario.record_every, scenario.record_every_s));
  }
  return recorders;
}

/// Steps that choose their size are not counted but what they have covered, in so many parts.
constexpr std::int64_t kPartsOfRun = 100000;
std::int64_t done_of(double share) {
  return static_cast<std::int64_t>(share * static_cast<double>(kPartsOfRun));
}

/// Steps and records until the end or a signal; returns the signal or 0. Adds up the times of the
/// phases.
int step_through(Stepper& stepper, const Scenario& scenario, Recorders& recorders,
                 StatusLine& status, const InterruptWatch& interrupt, StepTimes& times) {
  const bool is_chosen = stepper.step_sizes() != nullptr;
  const auto goes_on = [&] {
    const bool has_steps = scenario.steps == 0 || stepper.step_index() < scenario.steps;
    return has_steps && (!is_chosen || stepper.time_s() < scenario.end_s);
  };
  for (const auto& recorder : recorders) recorder->record_initial(stepper);
  while (goes_on()) {
    if (const int signal = interrupt.signal(); signal != 0) return signal;
    StepReport report;
    try {
      report = is_chosen ? stepper.step_towards(scenario.end_s) : stepper.step();
    } catch (const StepError&) {
      if (const int signal = interrupt.signal(); signal != 0) return signal;
      throw;
    }
    times.begin_s += report.times.begin_s;
    times.iterate_s += report.times.iterate_s;
    times.commit_s += report.times.commit_s;
    for (const auto& recorder : recorders) recorder->record(stepper, report);
    status.steps_done(is_chosen ? done_of(stepper.time_s() / scenario.end_s)
                                : stepper.step_index());
    if (ending_watch(stepper) != nullptr) break;
  }
  return 0;
}

/// Steps that are computed at once.
std::int64_t window_steps_of(const CouplingMethod& method) {
  const auto* const dynamic = method.as<DynamicIteration>();
  return dynamic != nullptr ? dynamic->window_steps : 1;
}

StepperOptions options_of(const Scenario& scenario, const RunArguments& arguments) {
  StepperOptions options = scenario.options;
  options.threads = arguments.threads;
  options.certify = arguments.certify;
  options.grain = arguments.grain;
  options.executor = arguments.executor;
  options.time = arguments.time;
  return options;
}

int exit_code_of(const RunSummary& summary, int signal, bool strict) {
  if (signal != 0) return 128 + signal;
  const CertificateStatus status = summary.certificate.status;
  if (status == CertificateStatus::violated) return kViolated;
  const bool all_well = status == CertificateStatus::holds && summary.iterations.not_converged == 0;
  return strict && !all_well ? kViolated : kOk;
}

/// "descriptor: part "x": 6 states, 3 algebraic, index 1", a line for each of the first few.
void describe_descriptors(const System& system, std::ostream& err) {
  constexpr int kShown = 8;
  int count = 0;
  for (const Part& part : system.parts()) {
    const auto* const own = dynamic_cast<const DescriptorPortHamiltonian*>(part.component.get());
    if (own == nullptr || ++count > kShown) continue;
    err << fmt::format("descriptor: part {}: {} states, {} algebraic, index {}\n",
                       in_quotes(part.name), own->signature().state_size(),
                       own->analysis().algebraic, own->index());
  }
  if (count > kShown) err << fmt::format("descriptor: {} more parts\n", count - kShown);
}

}  // namespace

int run_command(const RunArguments& arguments, std::ostream& out, std::ostream& err) {
  StatusLine status(err, !arguments.quiet && stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  StepperOptions options = options_of(scenario, arguments);
  const ThreadAllowance allowance(options.threads);
  const InterruptWatch interrupt;
  options.interrupted = [&interrupt] { return interrupt.signal() != 0; };
  Stepper stepper = make_stepper(scenario, options, arguments.scenario.file, status);

  Recorders recorders = recorders_for(scenario, arguments);

  const auto start = std::chrono::steady_clock::now();
  StepTimes times;
  if (stepper.step_sizes() != nullptr) {
    status.begin_share(kPartsOfRun);
  } else {
    status.begin_steps(scenario.steps, window_steps_of(scenario.options.method));
  }
  const int signal = step_through(stepper, scenario, recorders, status, interrupt, times);
  RunSummary summary = summarize(scenario.name, options, stepper, seconds_since(start), times);
  summary.completed = signal == 0;

  status.show({"writing the results"});
  for (const auto& recorder : recorders) recorder->finish(summary);
  if (arguments.json) out << summary_json(summary).dump(2) + "\n";
  status.finish();
  if (!arguments.quiet) {
    err << summary_text(summary);
    tell_notes(scenario, err);
    if (arguments.out) err << fmt::format("  written to   {}\n", arguments.out->string());
  }
  return exit_code_of(summary, signal, arguments.strict);
}

int run_command(const ValidateArguments& arguments, std::ostream&, std::ostream& err) {
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  // Some defects show only when the step maps are made, such as a singular implicit step.
  make_stepper(scenario, scenario.options, arguments.scenario.file, status);
  status.finish();
  const auto counted = [](std::size_t count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  const std::string steps =
      scenario.options.sizes
          ? fmt::format("steps of up to {:g} s to {:g} s", scenario.options.step_s, scenario.end_s)
          : fmt::format("{} steps of {:g} s", scenario.steps, scenario.options.step_s);
  err << fmt::format("{}: valid; {}, {}, {}\n", arguments.scenario.file,
                     counted(scenario.system.parts().size(), "subsystem"),
                     counted(scenario.system.junctions().size(), "junction"), steps);
  describe_descriptors(scenario.system, err);
  tell_notes(scenario, err);
  return kOk;
}

}  // namespace portwave::cli

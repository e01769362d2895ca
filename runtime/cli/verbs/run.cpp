// portwave run, portwave validate

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/output/summary.hpp>
#include <portwave/runtime/ranks/followers.hpp>
#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/runtime/ranks/slice_builder.hpp>
#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/descriptor/descriptor_part.hpp>

#include "line/commands.hpp"
#include "line/ranks.hpp"
#include "line/report_page.hpp"
#include "line/thread_allowance.hpp"
#include "live/interrupt.hpp"
#include "live/live_feed.hpp"
#include "live/live_server.hpp"
#include "live/status_line.hpp"
#include "verbs/remedies.hpp"
#include "verbs/run_checkpoints.hpp"
#include "verbs/run_record.hpp"

namespace portwave::cli {
namespace {

void tell_notes(const Scenario& scenario, std::ostream& err) {
  for (const Issue& note : scenario.notes)
    err << fmt::format("note: {}: {}\n", note.where, note.what);
}

/// The folder that this process writes to.
std::optional<std::filesystem::path> folder_of(const RunArguments& arguments) {
  if (!arguments.slices || ranks() == nullptr || !arguments.out) return arguments.out;
  return *arguments.out / fmt::format("rank-{}", ranks()->rank());
}

/// `folder`: null without checkpoints.
Recorders recorders_for(const Scenario& scenario, const RunArguments& arguments,
                        CheckpointFolder* folder) {
  Recorders recorders;
  const auto add = [&](auto&& where) {
    recorders.push_back(std::make_unique<FileRecorder>(where, scenario.recording));
  };
  if (folder != nullptr) {
    add(*folder);
  } else if (const auto out = folder_of(arguments)) {
    add(*out);
  }
  return recorders;
}

constexpr const char* kTraceFile = "trace.json";

/// Number of parts in which the covered time is counted where steps choose their size.
constexpr std::int64_t kPartsOfRun = 100000;
std::int64_t done_of(double share) {
  return static_cast<std::int64_t>(share * static_cast<double>(kPartsOfRun));
}

/// The objects of a run in progress.
struct Running {
  const Scenario& scenario;
  Stepper& stepper;
  Recorders& recorders;
  RunCheckpoints* checkpoints;  // null: none are made
  RunClock& clock;
  StepComparison& comparison;
  StatusLine& status;
  LiveFeed* live;  // null: nobody looks
  const InterruptWatch& interrupt;
};

/// Steps and records until the end or a signal; returns the signal or 0.
int step_through(const Running& run) {
  Stepper& stepper = run.stepper;
  const Scenario& scenario = run.scenario;
  const bool is_chosen = stepper.step_sizes() != nullptr;
  const auto goes_on = [&] {
    const bool has_steps = scenario.steps == 0 || stepper.step_index() < scenario.steps;
    return has_steps && stepper.ending_watch() == nullptr &&
           (!is_chosen || stepper.time_s() < scenario.end_s);
  };
  while (goes_on()) {
    if (const int signal = run.interrupt.signal(); signal != 0) return signal;
    StepReport report;
    try {
      report = is_chosen ? stepper.step_towards(scenario.end_s) : stepper.step();
    } catch (const StepError&) {
      if (const int signal = run.interrupt.signal(); signal != 0) return signal;
      throw;
    }
    run.clock.add(report.times);
    for (const auto& recorder : run.recorders) recorder->record(stepper, report);
    run.comparison.record(stepper);
    run.status.steps_done(is_chosen ? done_of((stepper.time_s() - stepper.start_s()) /
                                              (scenario.end_s - stepper.start_s()))
                                    : stepper.step_index());
    if (run.live != nullptr) run.live->step(stepper, report);
    if (run.checkpoints != nullptr && run.checkpoints->is_due(stepper.step_index())) {
      run.checkpoints->save(stepper, run.recorders, run.clock);
    }
  }
  return 0;
}

/// An error of a step that the comparison does not see may be no error: where an input jumps, the rates of steps that
/// follow it well jump as well.
void look_again(RunSummary& summary, const StepComparison& comparison) {
  if (summary.is_resolved() || summary.is_unresolved_damped) return;
  const bool is_seen_right = summary.agreement && summary.agreement->is_whole &&
                             !summary.agreement->is_far() &&
                             summary.resolution->kind == Resolution::Kind::jumps;
  if (is_seen_right && comparison.holds_with_damped_stages()) summary.resolution = Resolution{};
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
  if (arguments.profile) options.profile.emplace();
  return options;
}

/// Ranks step one system together; a run that certifies nothing is not compared either.
StepComparison::Extent extent_of_comparison(const RunArguments& arguments) {
  const bool is_alone = ranks() == nullptr && !arguments.slices;
  return is_alone && arguments.certify != Certify::none ? arguments.compare
                                                        : StepComparison::Extent::none;
}

int exit_code_of(const RunSummary& summary, int signal, bool strict) {
  if (!summary.failure.empty()) return kFailed;
  if (signal != 0) return 128 + signal;
  const CertificateStatus status = summary.certificate.status;
  if (status == CertificateStatus::violated) return kViolated;
  return strict && !summary.is_all_well() ? kViolated : kOk;
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

/// The point where a run begins or continues.
struct Begun {
  RunArguments arguments;
  Scenario scenario;
  std::unique_ptr<CheckpointFolder> folder;  // null: no checkpoints are made
  std::string record;                        // what they say of the run
  std::optional<Checkpoint> checkpoint;      // to go on from
};

/// Called before anything is created: results must not replace files that the run reads.
void spare_inputs(const RunArguments& arguments, const RecordingOptions& recording) {
  if (!arguments.out) return;
  FileRecorder::refuse_inputs(*arguments.out, recording);
  if (!arguments.checkpoint_every) return;
  refuse_to_overwrite(recording.inputs, CheckpointFolder::place_in(*arguments.out));
}

Begun begin(const RunArguments& arguments, StatusLine& status) {
  if (!arguments.checkpoint_every) {
    if (arguments.out) CheckpointFolder::refuse_unfinished(*arguments.out);
    Scenario scenario = load(arguments.scenario, status, arguments.slices);
    spare_inputs(arguments, scenario.recording);
    return {arguments, std::move(scenario), {}, {}, {}};
  }
  RunRecord record = {.arguments = arguments,
                      .text = read_scenario_text(arguments.scenario.file),
                      .folder = std::filesystem::absolute(arguments.scenario.file).parent_path()};
  record.arguments.scenario.file = std::filesystem::absolute(arguments.scenario.file).string();
  Scenario scenario = record.scenario(status.listener());
  record.files = scenario.files;
  spare_inputs(arguments, scenario.recording);
  auto folder =
      std::make_unique<CheckpointFolder>(*arguments.out, CheckpointFolder::For::a_new_run);
  return {arguments, std::move(scenario), std::move(folder), record.to_json(), {}};
}

/// Continues from a checkpoint. `terminal`: the arguments of this line, which alone give permissions.
Begun go_on(const RunArguments& terminal, std::unique_ptr<CheckpointFolder> folder,
            Checkpoint checkpoint, StatusLine& status) {
  RunRecord record = RunRecord::from_json(checkpoint.run);
  record.arguments.scenario.plugins = terminal.scenario.plugins;
  record.arguments.scenario.plugins_of_scenario = terminal.scenario.plugins_of_scenario;
  record.arguments.scenario.outside_files = terminal.scenario.outside_files;
  RunArguments arguments = record.arguments;
  arguments.out = terminal.resume;
  arguments.report = terminal.report;
  arguments.profile = terminal.profile;
  arguments.live = terminal.live;
  arguments.serve = terminal.serve;
  arguments.strict = terminal.strict;
  arguments.json = terminal.json;
  arguments.quiet = terminal.quiet;
  Scenario scenario = record.kept_scenario(*terminal.resume, status.listener());
  record.expect_same_files(scenario);
  spare_inputs(arguments, scenario.recording);
  std::string text = checkpoint.run;
  return {std::move(arguments), std::move(scenario), std::move(folder), std::move(text),
          std::move(checkpoint)};
}

/// Exit code of a run, by its summary. Errors: nlohmann::json::exception.
int exit_code_of(const nlohmann::ordered_json& summary, bool strict) {
  if (!summary.at("failure").is_null()) return kFailed;
  const bool violated = summary.at("certificate").at("status") == "violated";
  return violated || (strict && summary.at("all_well") != true) ? kViolated : kOk;
}

/// A run that stopped while its results were given their names.
int tell_finished(const std::string& outcome, const RunArguments& arguments, std::ostream& out,
                  std::ostream& err) {
  int exit_code = kOk;
  try {
    exit_code = exit_code_of(nlohmann::ordered_json::parse(outcome), arguments.strict);
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(
        fmt::format("the record of the run in \"{}\" is no summary of a run: it was changed",
                    arguments.resume->string()));
  }
  if (arguments.json) out << outcome;
  if (!arguments.quiet) {
    err << fmt::format("the run had already finished; its results are in {}\n",
                       arguments.resume->string());
  }
  if (arguments.report) write_run_report(*arguments.resume, arguments.quiet, err);
  return exit_code;
}

/// The command to continue with, including the permissions that must be given again.
void tell_how_to_go_on(const RunCheckpoints& checkpoints, const RunArguments& arguments,
                       const Scenario& scenario, std::ostream& err) {
  const std::filesystem::path& results = checkpoints.folder().results();
  std::string flags;
  for (const std::filesystem::path& plugin : arguments.scenario.plugins) {
    flags += " --plugin " + plugin.string();
  }
  if (arguments.scenario.plugins_of_scenario == Plugins::allowed) flags += " --allow-plugins";
  if (reads_outside(scenario, results)) flags += " --allow-outside-files";
  err << fmt::format(
      "The run stopped after step {}; continue it with: portwave run --resume {}{}\n",
      checkpoints.step_index(), results.string(), flags);
}

/// The views of a run in progress: at the terminal and in browsers.
struct LiveView {
  std::optional<LiveReport> page;
  std::optional<LiveServer> server;
  std::optional<LiveFeed> feed;

  void begin(const RunArguments& arguments, const Scenario& scenario, const Stepper& stepper,
             StatusLine& status, std::ostream& err) {
    if (!arguments.live && !arguments.serve) return;
    const bool is_chosen = stepper.step_sizes() != nullptr;
    const double end_s = is_chosen ? scenario.end_s
                                   : stepper.start_s() + static_cast<double>(scenario.steps) *
                                                             scenario.options.step_s;
    if (arguments.serve) {
      page.emplace(stepper, scenario.name, end_s, scenario.recording.quantities);
      server.emplace(*arguments.serve, *page);
      status.finish();
      if (!arguments.quiet) err << fmt::format("the run is shown at {}\n", server->address());
    }
    LiveFeed::Show show = LiveFeed::Show::nothing;
    if (arguments.live) {
      status.finish();
      show = stderr_is_terminal() ? LiveFeed::Show::panel : LiveFeed::Show::lines;
    }
    feed.emplace(err, show, scenario.name, is_chosen ? 0 : scenario.steps, stepper.start_s(), end_s,
                 stepper.step_index(), page ? &*page : nullptr);
  }
  void end(const RunSummary& summary) {
    if (feed) feed->finish();
    if (page) page->end(summary);
  }
};

void tell_profile(const Profile& profile, const RunArguments& arguments, std::ostream& err) {
  err << profile_text(profile);
  if (!arguments.out) return;
  const std::filesystem::path path = *arguments.out / kTraceFile;
  write_file_atomically(path, trace_json(profile));
  err << fmt::format("  trace: {} (open it in ui.perfetto.dev or chrome://tracing)\n",
                     path.string());
}

/// Those of the files, of the line or panel that shows the run, and of the server.
int threads_beside(const RunArguments& arguments) {
  return 2 + (arguments.serve ? LiveServer::kThreads : 0);
}

/// For ranks other than the first. A rank that fails alone reports it itself.
int follow(const std::function<void()>& follow_rank_0) {
  try {
    follow_rank_0();
    return kOk;
  } catch (const RankError&) {
    throw;
  } catch (const std::runtime_error& error) {  // of this rank alone
    std::cerr << fmt::format("portwave: rank {}: {}\n", ranks()->rank(), error.what());
    return kFailed;
  }
}

/// Defects of a slice are known to its rank alone.
Stepper make_stepper_of_slice(const Scenario& scenario, const StepperOptions& options,
                              const RunArguments& arguments, StatusLine& status) {
  try {
    return make_stepper(scenario, options, arguments.scenario.file, status);
  } catch (const ScenarioError& error) {
    Issues issues;
    for (const Issue& own : error.issues()) {
      issues.push_back(placed_in_whole(own, scenario.system));
    }
    const ScenarioError placed(error.file(), std::move(issues));
    const bool is_of_part = std::ranges::any_of(
        placed.issues(), [](const Issue& own) { return own.where.starts_with("/subsystems/"); });
    if (!is_first_rank() && is_of_part) std::cerr << placed.report();
    throw placed;
  }
}

/// For ranks other than the first, where each has a slice: records its own quantities, and takes part in sums.
void follow_in_slices(Stepper& stepper, const RunArguments& arguments, const Scenario& scenario,
                      const StepperOptions& options) {
  class Recording final : public Follower {
   public:
    explicit Recording(Recorders recorders) : recorders_(std::move(recorders)) {}
    void stepped(const Stepper& stepper, const StepReport& report) override {
      clock_.add(report.times);
      for (const auto& recorder : recorders_) recorder->record(stepper, report);
    }
    void told(const Stepper& /*stepper*/, std::span<const std::byte> /*message*/) override {}
    void begin(const Stepper& stepper) {
      for (const auto& recorder : recorders_) recorder->record_initial(stepper);
    }
    void finish(RunSummary summary) {
      for (const auto& recorder : recorders_) summary.recording_wait_s += recorder->waited_s();
      for (const auto& recorder : recorders_) recorder->finish(summary);
    }
    RunClock& clock() { return clock_; }

   private:
    Recorders recorders_;
    RunClock clock_;
  };
  Recording recording(recorders_for(scenario, arguments, nullptr));
  recording.begin(stepper);
  RankedStepper(stepper).follow(recording);
  RunSummary summary = summarize(scenario.name, options, stepper, recording.clock().wall_s(),
                                 recording.clock().times());
  summary.completed = stepper.step_index() == scenario.steps;
  if (!summary.completed) summary.failure = "it ended early: see the message of rank 0";
  recording.finish(std::move(summary));
}

int run(Begun begun, StatusLine& status, std::ostream& out, std::ostream& err) {
  const RunArguments& arguments = begun.arguments;
  const Scenario& scenario = begun.scenario;
  StepperOptions options = options_of(scenario, arguments);
  const ThreadAllowance allowance(options.threads, threads_beside(arguments));
  options.threads = allowance.threads();
  const InterruptWatch interrupt;
  options.interrupted = [&interrupt] { return interrupt.signal() != 0; };
  options.ranks = ranks();
  Stepper stepper = arguments.slices
                        ? make_stepper_of_slice(scenario, options, arguments, status)
                        : make_stepper(scenario, options, arguments.scenario.file, status);
  if (!is_first_rank()) {
    return follow([&] {
      if (arguments.slices) return follow_in_slices(stepper, arguments, scenario, options);
      RankedStepper(stepper).follow(*make_recording_follower(scenario.recording));
    });
  }
  Recorders recorders = recorders_for(scenario, arguments, begun.folder.get());

  RunClock clock;
  std::optional<RunCheckpoints> checkpoints;
  if (begun.folder != nullptr) {
    checkpoints.emplace(*begun.folder, *arguments.checkpoint_every, std::move(begun.record));
  }
  if (stepper.step_sizes() != nullptr) {
    status.begin_share(kPartsOfRun);
  } else {
    status.begin_steps(scenario.steps, window_steps_of(scenario.options.method));
  }
  StepComparison comparison(scenario, options, extent_of_comparison(arguments));
  int signal = 0;
  std::string failure, circumstances, remedy;
  LiveView live;
  try {
    if (begun.checkpoint) {
      RunCheckpoints::restore(*begun.checkpoint, stepper, recorders, clock);
      begun.checkpoint.reset();
    } else {
      for (const auto& recorder : recorders) recorder->record_initial(stepper);
    }
    // A first checkpoint exists before the first step.
    if (checkpoints) checkpoints->save(stepper, recorders, clock);
    live.begin(arguments, scenario, stepper, status, err);
    signal =
        step_through({scenario, stepper, recorders, checkpoints ? &*checkpoints : nullptr, clock,
                      comparison, status, live.feed ? &*live.feed : nullptr, interrupt});
    if (signal != 0 && checkpoints) {
      checkpoints->save(stepper, recorders, clock);
      if (live.feed) live.feed->finish();
      status.finish();
      tell_how_to_go_on(*checkpoints, arguments, scenario, err);
      return 128 + signal;
    }
  } catch (const StepError& error) {
    failure = error.what();
    circumstances = error.circumstances();
    remedy = remedy_of(error, scenario);
  } catch (const std::runtime_error& error) {
    if (live.feed) live.feed->finish();
    if (!checkpoints || !begun.folder->has_checkpoint()) throw;
    status.finish();
    err << "portwave: " << error.what() << '\n';
    tell_how_to_go_on(*checkpoints, arguments, scenario, err);
    return kFailed;
  }
  RunSummary summary = summarize(scenario.name, options, stepper, clock.wall_s(), clock.times());
  summary.completed = signal == 0 && failure.empty();
  summary.failure = failure;
  for (const auto& recorder : recorders) summary.recording_wait_s += recorder->waited_s();
  if (summary.completed) {
    summary.take(comparison.finish(stepper.step_index(), summary.moved_J, status.listener()));
    look_again(summary, comparison);
  }

  live.end(summary);

  status.show({"writing the results"});
  for (const auto& recorder : recorders) recorder->finish(summary);
  if (arguments.json) out << summary_json(summary).dump(2) + "\n";
  status.finish();
  if (!failure.empty()) {
    err << fmt::format(
        "portwave: {}{}{}\nThe run ended there, after {} steps{}.\n{}{}", failure,
        circumstances.empty() ? "" : "\n  ", circumstances, summary.steps,
        arguments.out ? "; what was recorded is in " + arguments.out->string() : std::string(),
        remedy, remedy.empty() ? "" : "\n");
    tell_notes(scenario, err);  // a remedy may be among them
  } else if (!arguments.quiet) {
    err << summary_text(summary);
    allowance.tell(err);
    tell_notes(scenario, err);
    if (arguments.out) {
      const bool is_split = arguments.slices && ranks() != nullptr;
      err << fmt::format("  written to   {}{}\n", arguments.out->string(),
                         is_split ? fmt::format("/rank-0 to rank-{}", ranks()->size() - 1) : "");
    }
  }
  if (arguments.profile) tell_profile(stepper.profile(), arguments, err);
  if (arguments.report) write_run_report(*arguments.out, arguments.quiet, err);
  return exit_code_of(summary, signal, arguments.strict);
}

}  // namespace

namespace {

/// Started by rank 0; the others take part: they read the scenario, or receive it, and write nothing.
int run_on_ranks(const RunArguments& arguments, std::ostream& out, std::ostream& err) {
  StatusLine status(err, !arguments.quiet && stderr_is_terminal());
  std::unique_ptr<CheckpointFolder> folder;
  std::optional<Checkpoint> checkpoint;
  std::string record = together([&]() -> std::string {
    if (!arguments.resume || !is_first_rank()) return {};
    folder = std::make_unique<CheckpointFolder>(*arguments.resume, CheckpointFolder::For::going_on);
    if (std::string outcome; folder->finish(outcome)) {
      tell_finished(outcome, arguments, out, err);
      return {};
    }
    std::vector<std::string> refused;
    checkpoint = folder->load(refused);
    for (const std::string& why : refused) err << why << '\n';
    return checkpoint->run;
  });
  record = told_by_first(record);
  if (arguments.resume && record.empty()) return kOk;  // it had finished
  Begun begun = together([&] {
    if (arguments.resume) {
      if (!checkpoint) checkpoint.emplace().run = record;
      Begun resumed = go_on(arguments, std::move(folder), std::move(*checkpoint), status);
      if (!is_first_rank()) resumed.checkpoint.reset();
      return resumed;
    }
    RunArguments own = arguments;
    if (!is_first_rank()) own.checkpoint_every.reset();
    return begin(own, status);
  });
  return run(std::move(begun), status, out, err);
}

}  // namespace

int run_command(const RunArguments& arguments, std::ostream& out, std::ostream& err) {
  if (ranks() != nullptr) return run_on_ranks(arguments, out, err);
  expect_report(arguments.report || arguments.serve);
  const bool live = !arguments.quiet && stderr_is_terminal();
  if (!arguments.resume) {
    StatusLine status(err, live);
    return run(begin(arguments, status), status, out, err);
  }
  auto folder =
      std::make_unique<CheckpointFolder>(*arguments.resume, CheckpointFolder::For::going_on);
  if (std::string outcome; folder->finish(outcome)) {
    return tell_finished(outcome, arguments, out, err);
  }
  std::vector<std::string> refused;
  Checkpoint checkpoint = folder->load(refused);
  for (const std::string& why : refused) err << why << '\n';
  StatusLine status(err, live);
  return run(go_on(arguments, std::move(folder), std::move(checkpoint), status), status, out, err);
}

int run_command(const ValidateArguments& arguments, std::ostream&, std::ostream& err) {
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  // Some defects show only when the step maps are made, such as a singular implicit step.
  const Stepper stepper = make_stepper(scenario, scenario.options, arguments.scenario.file, status);
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
  if (stepper.starts_at_odds().count > 0) {
    err << fmt::format("note: /time/start: the start is at odds: {}\n",
                       stepper.starts_at_odds().first);
  }
  for (const Impulse& own : stepper.impulses().first) {
    err << fmt::format("note: an impulse acts at the start, and takes {:.6g} J: {} at {}\n",
                       own.energies.impact_J, own.jumps, own.joint);
  }
  return kOk;
}

}  // namespace portwave::cli

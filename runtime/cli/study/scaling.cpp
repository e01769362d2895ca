// portwave study scaling

#include "study/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include <portwave/runtime/generate/generate.hpp>
#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/output/summary.hpp>
#include <portwave/runtime/study/study_json.hpp>
#include <portwave/subsystems/base/instruction_set.hpp>

#include "line/commands.hpp"
#include "line/thread_allowance.hpp"
#include "live/status_line.hpp"
#include "verbs/report.hpp"

namespace portwave::cli {
namespace {

std::string_view source_of(const ScalingRow& row) {
  return row.predicted ? "predicted" : "measured";
}

std::string executor_cell(const ScalingRow& row) {
  if (!row.fell_back) return "serial|async";
  if (*row.fell_back) return "serial (fell back)";
  if (row.predicted) return row.tasks > 1 ? "parallel" : "serial";
  return row.execution.substr(0, row.execution.find(','));
}

constexpr std::string_view kLine =
    "{:>9} {:>8} {:>8} {:>10} {:>8} {:>8} {:>10} {:>13} {:>9} {:>10} {:>9} {:>6} {:>9}  {:<18}\n";

std::string row_line(const ScalingRow& row) {
  const auto phase = [&](double StepTimes::*time) {
    return row.phases ? us((*row.phases).*time) : std::string("-");
  };
  return fmt::format(kLine, source_of(row), row.size, row.threads, us(row.step_s),
                     row.spread ? fmt::format("{:.1f} %", 100.0 * *row.spread) : "-",
                     fmt::format("{:.3f}", row.speed_up), fmt::format("{:.3f}", row.efficiency),
                     us(row.predicted_step_s), phase(&StepTimes::begin_s),
                     phase(&StepTimes::iterate_s), phase(&StepTimes::commit_s), row.tasks,
                     fmt::format("{:.3f}", row.imbalance), executor_cell(row));
}

/// Where the time of the threads goes, or nothing.
std::string loss_table(const ScalingStudy& study) {
  constexpr std::string_view kLossLine = "{:>9} {:>8} {:>10} {:>13} {:>10} {:>12} {:>10}\n";
  std::string text;
  for (const ScalingRow& row : study.rows) {
    if (!row.loss) continue;
    if (text.empty()) {
      text = "\nWhere the time of the threads goes (executor async, tasks followed):\n" +
             fmt::format(kLossLine, "parts", "threads", "steps", "one_thread", "waiting",
                         "more_work", "imbalance");
    }
    const auto percent = [](double share) { return fmt::format("{:.1f} %", 100.0 * share); };
    text += fmt::format(kLossLine, row.size, row.threads, row.loss->steps,
                        percent(row.loss->one_thread), percent(row.loss->waiting),
                        percent(row.loss->more_work), fmt::format("{:.3f}", row.loss->imbalance));
  }
  return text;
}

/// Measured and asked-for rows, then the predicted curve, columns aligned.
std::string study_table(const ScalingStudy& study) {
  std::string text = fmt::format(kLine, "source", "parts", "threads", "step_us", "spread",
                                 "speed_up", "efficiency", "predicted_us", "begin_us", "iterate_us",
                                 "commit_us", "tasks", "imbalance", "executor");
  for (const ScalingRow& row : study.rows) text += row_line(row);
  for (const ScalingRow& row : study.curve) text += row_line(row);
  return text + loss_table(study);
}

/// Rows and columns of a grid of so many nodes, as square as can be.
network::Grid grid_of(int nodes) {
  int rows = std::max(static_cast<int>(std::sqrt(static_cast<double>(nodes))), 1);
  while (nodes % rows != 0) --rows;
  return {.rows = rows, .columns = nodes / rows};
}

Network network_of(const std::string& kind, int size) {
  if (kind == "grid") return grid_of(size);
  if (kind == "star") return network::Star{.limbs = size};
  return network::Chain{.blocks = size, .closed = kind == "ring"};
}

/// The sizes that go with the thread counts, as far as they come out whole.
std::string fitting_sizes(const std::vector<int>& threads, int first) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(threads.size());
  for (const int count : threads) {
    sizes.push_back(std::int64_t{first} * count / threads.front());
  }
  return fmt::format("{}", fmt::join(sizes, ","));
}

Issues check(const StudyScalingArguments& arguments) {
  Issues issues;
  const bool has_file = !arguments.scenario.file.empty();
  const std::vector<int>& sizes = arguments.sizes;
  const bool has_ranks = !arguments.ranks.empty();
  const std::vector<int>& counts = has_ranks ? arguments.ranks : arguments.options.threads;
  const char* const counted = has_ranks ? "rank" : "thread";
  if (!has_ranks && (arguments.latency_s || arguments.bandwidth_B_per_s)) {
    issues.push_back({"--ranks", "is needed: there are messages between ranks only"});
  }
  if (has_ranks && arguments.options.executor != ExecutorKind::automatic &&
      arguments.options.executor != ExecutorKind::serial) {
    issues.push_back({"--executor", "runs in one process: ranks take \"auto\""});
  }
  if (has_file && !arguments.kind.empty()) {
    issues.push_back({"--generate", "takes the place of the scenario file; give one of them"});
  }
  if (!has_file && arguments.kind.empty()) {
    issues.push_back({"", "needs a scenario file, or --generate and --sizes"});
  }
  if (!sizes.empty() && arguments.kind.empty()) {
    issues.push_back({"--sizes", "needs --generate: a scenario file has one size"});
  }
  if (sizes.empty() && !arguments.kind.empty()) {
    issues.push_back({"--sizes", "is required with --generate"});
  }
  if (sizes.size() > 1 && sizes.size() != counts.size()) {
    issues.push_back({"--sizes", fmt::format("must be one size, or one for each of the {} {} "
                                             "counts, got {}",
                                             counts.size(), counted, sizes.size())});
  } else if (sizes.size() > 1) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (std::int64_t{sizes[i]} * counts.front() == std::int64_t{sizes.front()} * counts[i]) {
        continue;
      }
      issues.push_back(
          {"--sizes", fmt::format("must be in proportion to the {}s {}: {} would do", counted,
                                  fmt::join(counts, ","), fitting_sizes(counts, sizes.front()))});
      break;
    }
    if (has_ranks && arguments.is_threads_given && arguments.options.threads.size() > 1) {
      issues.push_back({"--threads", "must be one number where sizes grow with the ranks"});
    }
  }
  if (arguments.kind.empty()) return issues;
  for (const int size : sizes) {
    for (const Issue& issue : check_network(network_of(arguments.kind, size))) {
      issues.push_back(
          {"--sizes", fmt::format("a {} of {}: {}", arguments.kind, size, issue.what)});
    }
  }
  return issues;
}

ScalingStudy study_of_threads(const StudyScalingArguments& arguments, StatusLine& status) {
  const std::string name = arguments.kind.empty() ? arguments.scenario.file : arguments.kind;
  try {
    if (arguments.kind.empty()) {
      return study_strong_scaling(loaded(arguments, status), arguments.options, status.listener());
    }
    if (arguments.sizes.size() == 1) {
      return study_strong_scaling(generated(arguments, arguments.sizes.front(), status),
                                  arguments.options, status.listener());
    }
    std::vector<SizedScenario> scenarios;
    for (std::size_t i = 0; i < arguments.sizes.size(); ++i) {
      scenarios.push_back(
          {generated(arguments, arguments.sizes[i], status), arguments.options.threads[i]});
    }
    return study_weak_scaling(scenarios, arguments.options, status.listener());
  } catch (const ScenarioError&) {
    throw;
  } catch (const ConfigError& error) {
    throw ScenarioError(name, error.issues());
  }
}

}  // namespace

Scenario loaded(const StudyScalingArguments& arguments, StatusLine& status) {
  Scenario scenario = load(arguments.scenario, status);
  if (arguments.out) {
    for (const char* name : {kScalingFile, kReportPage}) {
      refuse_to_overwrite(scenario.recording.inputs, *arguments.out / name);
    }
  }
  scenario.options.certify = arguments.certify;
  return scenario;
}

Scenario generated(const StudyScalingArguments& arguments, int size, StatusLine& status) {
  status.show({"generating the network"});
  Scenario scenario =
      parse_scenario(generate_scenario(network_of(arguments.kind, size)),
                     fmt::format("{} of {}", arguments.kind, size), std::filesystem::current_path(),
                     arguments.scenario.overrides, status.listener());
  scenario.options.certify = arguments.certify;
  return scenario;
}

const std::vector<std::string>& scaling_kinds() {
  static const std::vector<std::string> kinds = {"chain", "ring", "grid", "star"};
  return kinds;
}

int run_command(const StudyScalingArguments& arguments, std::ostream& out, std::ostream& err) {
  expect_report(arguments.report);
  throw_if_any(check(arguments));
  if (!arguments.ranks.empty()) return study_over_ranks(arguments, out, err);
  std::optional<OutputFolder> folder;
  if (arguments.out)
    folder.emplace(*arguments.out, std::initializer_list<const char*>{kScalingFile});
  const std::vector<int>& threads = arguments.options.threads;
  const ThreadAllowance allowance(*std::max_element(threads.begin(), threads.end()));
  allowance.tell(err);

  StatusLine status(err, stderr_is_terminal());
  const ScalingStudy result = study_of_threads(arguments, status);
  status.finish();
  const std::string json = study_json(result, arguments.options);
  out << (arguments.json ? json : study_table(result));  // before the file, which may fail
  if (folder) {
    write_file_atomically(folder->file(kScalingFile), json);
    folder->keep();
    err << fmt::format("written to {}\n", folder->file(kScalingFile).string());
    if (arguments.report) {
      write_study_report(arguments.out, json, "scaling", result.name, err);
    }
  }
  return kOk;
}

}  // namespace portwave::cli

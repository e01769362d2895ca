// portwave study scaling

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/study/study_json.hpp>

#include "line/commands.hpp"
#include "line/report_page.hpp"
#include "line/thread_allowance.hpp"
#include "live/status_line.hpp"
#include "study/cells.hpp"

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
    "{:>9} {:>8} {:>8} {:>10} {:>8} {:>8} {:>10} {:>8} {:>13} {:>9} {:>13} {:>9} {:>9} {:>10} "
    "{:>9} "
    "{:>6} {:>9}  {:<9} {:<18}\n";

std::string short_cell(std::optional<double> value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

std::string row_line(const ScalingRow& row) {
  const auto phase = [&](double StepTimes::*time) {
    return row.phases ? us((*row.phases).*time) : std::string("-");
  };
  return fmt::format(
      kLine, source_of(row), row.size, row.threads, us(row.step_s),
      row.spread ? fmt::format("{:.1f} %", 100.0 * *row.spread) : "-", short_cell(row.speed_up),
      short_cell(row.efficiency), short_cell(row.weak_efficiency),
      fmt::format("{:.4g}", row.parts_steps_per_s()),
      row.energy_per_step_J ? fmt::format("{:.3g}", *row.energy_per_step_J) : "-",
      us(row.predicted_step_s), short_cell(row.predicted_over_measured()),
      phase(&StepTimes::begin_s), phase(&StepTimes::iterate_s), phase(&StepTimes::commit_s),
      row.tasks, short_cell(row.imbalance), to_string(row.executor), executor_cell(row));
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
                        percent(row.loss->more_work), short_cell(row.loss->imbalance));
  }
  return text;
}

/// The largest batches of linear parts under the roofs of this machine, or nothing.
std::string roof_table(const ScalingStudy& study) {
  constexpr std::string_view kRoofLine =
      "{:>9} {:>9} {:>6} {:>6} {:>6} {:>10} {:>9} {:>9} {:>9} {:>9}  {:<10} {}\n";
  std::string text;
  for (const KernelRoof& kernel : study.kernels) {
    if (20 * static_cast<std::int64_t>(kernel.parts) < kernel.size) continue;
    if (text.empty()) {
      text = fmt::format(
                 "\nRoofline of the port solves, one thread, peak {:.3g} GFLOP/s (not fused):\n",
                 1e-9 * study.peak_flop_per_s) +
             fmt::format(kRoofLine, "parts", "of_type", "ports", "FLOP", "bytes", "FLOP/byte", "ns",
                         "GFLOP/s", "roof", "GB/s", "bound", "type");
    }
    const double roof = kernel.roof(study.peak_flop_per_s);
    text += fmt::format(
        kRoofLine, kernel.size, kernel.parts, kernel.ports, kernel.flop, kernel.bytes,
        fmt::format("{:.3f}", kernel.intensity()), fmt::format("{:.3g}", 1e9 * kernel.solve_s),
        fmt::format("{:.3g}", 1e-9 * kernel.flop_per_s()), fmt::format("{:.3g}", 1e-9 * roof),
        fmt::format("{:.3g}", 1e-9 * kernel.stream_B_per_s),
        kernel.is_memory_bound(study.peak_flop_per_s) ? "memory" : "arithmetic", kernel.type);
  }
  return text;
}

/// The rows, of a single network and executor also the predicted curve, columns aligned; and what belongs
/// to them.
std::string study_table(const ScalingStudy& study) {
  std::string text =
      fmt::format(kLine, "source", "parts", "threads", "step_us", "spread", "speed_up",
                  "efficiency", "weak_eff", "parts_steps/s", "J/step", "predicted_us", "pred/meas",
                  "begin_us", "iterate_us", "commit_us", "tasks", "imbalance", "asked", "executor");
  for (const ScalingRow& row : study.rows) text += row_line(row);
  if (study.models.size() == 1 || study.weak) {
    for (const ScalingRow& row : study.curve) text += row_line(row);
  }
  return text + "\nEnergy: " + study.energy_note + ".\n" + roof_table(study) + loss_table(study);
}

ScalingStudy study_of_threads(const StudyScalingArguments& arguments, StatusLine& status) {
  const NetworkArguments& networks = arguments.networks;
  try {
    if (networks.sizes.empty()) {
      return study_strong_scaling(single_network(networks, arguments.out, status),
                                  arguments.options, status.listener());
    }
    std::vector<SizedScenario> scenarios;
    std::vector<Scenario> plain;
    for (std::size_t i = 0; i < networks.sizes.size(); ++i) {
      Scenario made = sized_network(networks, networks.sizes[i], status);
      if (arguments.weak) {
        scenarios.push_back({std::move(made), arguments.options.threads[i]});
      } else {
        plain.push_back(std::move(made));
      }
    }
    if (!arguments.weak) return study_strong_scaling(plain, arguments.options, status.listener());
    return study_weak_scaling(scenarios, arguments.options, status.listener());
  } catch (const ScenarioError&) {
    throw;
  } catch (const ConfigError& error) {
    throw ScenarioError(networks.name(), error.issues());
  }
}

/// One size of weak scaling is that of the first count.
void complete_sizes(StudyScalingArguments& arguments) {
  std::vector<int>& sizes = arguments.networks.sizes;
  const std::vector<int>& threads = arguments.options.threads;
  if (!arguments.weak || sizes.size() != 1 || threads.size() < 2) return;
  const std::int64_t first = sizes.front();
  sizes.clear();
  for (const int count : threads) {
    const std::int64_t size = first * count / threads.front();
    sizes.push_back(static_cast<int>(std::min<std::int64_t>(size, kMostParts)));
  }
}

Issues defects_of(const StudyScalingArguments& arguments) {
  Issues issues = check(arguments.networks, arguments.weak, arguments.options.threads, "thread");
  if (arguments.weak && arguments.networks.kind.empty() &&
      arguments.networks.size_pointer.empty()) {
    issues.push_back({"--weak", "needs --generate or --size-of: a scenario file has one size"});
  }
  for (Issue& issue : arguments.files.defects()) issues.push_back(std::move(issue));
  return issues;
}

}  // namespace

int run_command(const StudyScalingArguments& given, std::ostream& out, std::ostream& err) {
  StudyScalingArguments arguments = given;
  expect_report(arguments.report);
  complete_sizes(arguments);
  throw_if_any(defects_of(arguments));
  std::optional<OutputFolder> folder;
  if (arguments.out) {
    folder.emplace(*arguments.out, std::initializer_list<const char*>{kScalingFile, kScalingTable});
  }
  const std::vector<int>& threads = arguments.options.threads;
  const ThreadAllowance allowance(*std::max_element(threads.begin(), threads.end()));
  allowance.tell(err);

  StatusLine status(err, stderr_is_terminal());
  const ScalingStudy result = study_of_threads(arguments, status);
  status.finish();
  const std::string json = study_json(result, arguments.options);
  out << (arguments.json ? json : study_table(result));  // before the files, which may fail
  arguments.files.write(result, study_csv(result), err);
  if (folder) {
    write_file_atomically(folder->file(kScalingFile), json);
    write_file_atomically(folder->file(kScalingTable), study_csv(result));
    folder->keep();
    err << fmt::format("written to {} and {}\n", folder->file(kScalingFile).string(),
                       kScalingTable);
    if (arguments.report) {
      write_study_report(arguments.out, json, "scaling", result.name, err);
    }
  }
  return kOk;
}

}  // namespace portwave::cli

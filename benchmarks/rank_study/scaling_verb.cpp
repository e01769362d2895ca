// rank_study scaling

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/output/summary.hpp>
#include <portwave/subsystems/base/instruction_set.hpp>

#include "line/ranks.hpp"
#include "line/report_page.hpp"
#include "line/thread_allowance.hpp"
#include "live/status_line.hpp"
#include "rank_study/verbs.hpp"
#include "study/cells.hpp"
#include "study/columns.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string_view source_of(const RankScalingRow& row) {
  return row.predicted ? "predicted" : "measured";
}

Json time_json(const RankStepTime& time) {
  return {{"work_s", time.work_s},       {"imbalance_s", time.imbalance_s},
          {"common_s", time.common_s},   {"messages_s", time.messages_s},
          {"gathers_s", time.gathers_s}, {"total_s", time.total_s()}};
}

Json row_json(const RankScalingRow& row) {
  return {{"source", std::string(source_of(row))},
          {"size", row.size},
          {"ranks", row.ranks},
          {"threads", row.threads},
          {"oversubscribed", row.oversubscribed},
          {"step_s", number(row.step_s)},
          {"spread", number(row.spread)},
          {"fastest_s", number(row.fastest_s)},
          {"slowest_s", number(row.slowest_s)},
          {"speed_up", number(row.speed_up)},
          {"efficiency", number(row.efficiency)},
          {"prediction", time_json(row.prediction)},
          {"simulated_s", number(row.simulated_s)},
          {"tasks", row.tasks},
          {"neighbours", row.neighbours},
          {"message_bytes", row.message_bytes},
          {"gathered_bytes", row.gathered_bytes},
          {"memory_bytes", row.memory_bytes},
          {"execution", row.execution}};
}

Json rows_json(const std::vector<RankScalingRow>& rows) {
  Json json = Json::array();
  for (const RankScalingRow& row : rows) json.push_back(row_json(row));
  return json;
}

/// The rows with the terms of their predictions.
std::string rows_csv(const std::vector<RankScalingRow>& rows) {
  std::string text;
  for (const RankScalingRow& row : rows) {
    std::string names, fields;
    const Json flat = row_json(row).flatten();
    for (const auto& [name, value] : flat.items()) {
      std::string column = name.substr(1);
      std::ranges::replace(column, '/', '_');
      names += (names.empty() ? "" : ",") + column;
      fields += (fields.empty() ? "" : ",") + study_text::csv_field(value);
    }
    if (text.empty()) text = names + "\n";
    text += fields + "\n";
  }
  return text;
}

/// For the figure, over processes.
ScalingStudy as_figure(const RankScalingStudy& study) {
  ScalingStudy out;
  out.weak = study.weak;
  out.name = study.name;
  out.workers = "processes";
  const auto copy = [](const std::vector<RankScalingRow>& from, std::vector<ScalingRow>& to) {
    for (const RankScalingRow& row : from) {
      ScalingRow& own = to.emplace_back();
      own.size = row.size;
      own.threads = row.ranks;
      own.predicted = row.predicted;
      own.step_s = row.step_s;
      own.spread = row.spread;
      own.fastest_s = row.fastest_s;
      own.slowest_s = row.slowest_s;
      own.speed_up = row.speed_up;
      own.efficiency = row.efficiency;
    }
  };
  copy(study.rows, out.rows);
  copy(study.curve, out.curve);
  return out;
}

Json study_json(const RankScalingStudy& study, const RankScalingOptions& options) {
  Json messages = Json::array();
  for (const auto& [bytes, time_s] : study.messages) {
    messages.push_back({{"bytes", bytes}, {"time_s", time_s}});
  }
  Json protocols = Json::array();
  for (const RankProtocol& protocol : study.protocols) {
    protocols.push_back({{"protocol", protocol.name}, {"curve", rows_json(protocol.curve)}});
  }
  return {{"study", study.weak ? "weak scaling over ranks" : "strong scaling over ranks"},
          {"scenario", study.name},
          {"version", std::string(version())},
          {"instruction_set", std::string(to_string(instruction_set()))},
          {"cores", study.cores},
          {"started_ranks", study.started},
          {"grain", to_string(options.grain)},
          {"repetitions", study.repetitions},
          {"steps_per_repetition", study.steps},
          {"network", study.network_source},
          {"latency_s", study.network.latency_s},
          {"bandwidth_B_per_s", study.network.bandwidth_B_per_s},
          {"messages", std::move(messages)},
          {"serial_step_s", study.serial_step_s},
          {"iterations", study.iterations},
          {"begin_s", study.begin_s},
          {"ledger_s", study.ledger_s},
          {"rows", rows_json(study.rows)},
          {"predicted_curve", rows_json(study.curve)},
          {"protocols", std::move(protocols)}};
}

std::string row_line(const RankScalingRow& row, std::string_view line) {
  const RankStepTime& time = row.prediction;
  return fmt::format(fmt::runtime(line), source_of(row), row.size, row.ranks, row.threads,
                     us(row.step_s),
                     row.spread ? fmt::format("{:.1f} %", 100.0 * *row.spread) : "-",
                     fmt::format("{:.4g}", row.speed_up), fmt::format("{:.3f}", row.efficiency),
                     us(time.total_s()), us(row.simulated_s), us(time.work_s), us(time.imbalance_s),
                     us(time.common_s), us(time.messages_s), us(time.gathers_s),
                     row.oversubscribed ? "oversubscribed" : "-");
}

/// The largest term of a step besides the work itself.
std::string_view dominant_of(const RankStepTime& time) {
  const std::pair<double, std::string_view> terms[] = {{time.imbalance_s, "imbalance"},
                                                       {time.common_s, "common"},
                                                       {time.messages_s, "messages"},
                                                       {time.gathers_s, "gathers"}};
  return std::max_element(std::begin(terms), std::end(terms))->second;
}

std::string protocol_table(const RankScalingStudy& study) {
  constexpr std::string_view kLine = "{:>28} {:>7} {:>12} {:>10} {:>10} {:>12} {:>11} {:>18}\n";
  std::string text = "\nPredicted for protocols in which ranks share more, or less:\n" +
                     fmt::format(kLine, "protocol", "ranks", "step_us", "efficiency", "work_us",
                                 "gathers_us", "common_us", "most_beside_work");
  for (const RankProtocol& protocol : study.protocols) {
    for (const RankScalingRow& row : protocol.curve) {
      const bool is_shown = row.ranks == 2 || row.ranks == 16 || row.ranks == 128 ||
                            row.ranks == 1024 || &row == &protocol.curve.back();
      if (!is_shown) continue;
      text += fmt::format(kLine, protocol.name, row.ranks, us(row.step_s),
                          fmt::format("{:.3f}", row.efficiency), us(row.prediction.work_s),
                          us(row.prediction.gathers_s), us(row.prediction.common_s),
                          row.ranks == 1 ? "-" : dominant_of(row.prediction));
    }
  }
  return text;
}

/// The assumptions of the predictions.
std::string assumptions(const RankScalingStudy& study) {
  std::string text = fmt::format(
      "\nPredictions assume: {:.3g} us and {:.3g} GB/s between any two ranks ({}); costs of the "
      "parts as\nmeasured here on one thread, scaled so that one thread takes {} us per step with "
      "{:.3g} evaluations; a core\nfor each thread, with the caches and memory of one alone. "
      "Every rank samples the inputs of all parts ({} us)\nand, with a ledger, accounts for all "
      "islands ({} us). The time to measure and sum up gaps is not\nincluded.\n",
      1e6 * study.network.latency_s, 1e-9 * study.network.bandwidth_B_per_s, study.network_source,
      us(study.serial_step_s), study.iterations, us(study.begin_s), us(study.ledger_s));
  if (study.weak) {
    text +=
        "For weak scaling: every rank has the work of the busiest rank of the last network, and "
        "the neighbours of\na rank in its middle; work for all parts, or for all of several "
        "islands, grows with their number.\n";
  }
  const RankScalingRow& last = study.curve.back();
  text += fmt::format("Every rank holds the whole system: {:.3g} GB and its parts, on {} ranks.\n",
                      1e-9 * last.memory_bytes, last.ranks);
  return text;
}

std::string study_table(const RankScalingStudy& study) {
  constexpr std::string_view kLine =
      "{:>9} {:>10} {:>6} {:>7} {:>12} {:>8} {:>9} {:>10} {:>12} {:>12} {:>11} {:>12} {:>11} "
      "{:>11} {:>11} {:>14}\n";
  std::string text =
      fmt::format(kLine, "source", "parts", "ranks", "threads", "step_us", "spread", "speed_up",
                  "efficiency", "predicted_us", "simulated_us", "work_us", "imbalance_us",
                  "common_us", "messages_us", "gathers_us", "note");
  for (const RankScalingRow& row : study.rows) text += row_line(row, kLine);
  for (const RankScalingRow& row : study.curve) text += row_line(row, kLine);
  return text + protocol_table(study) + assumptions(study);
}

/// Several sizes are of weak scaling.
bool is_weak(const ScalingArguments& arguments) { return arguments.networks.sizes.size() > 1; }

RankScalingStudy study_of_ranks(const ScalingArguments& arguments,
                                const RankScalingOptions& options, StatusLine& status) {
  const NetworkArguments& networks = arguments.networks;
  try {
    if (!is_weak(arguments)) {
      const Scenario scenario =
          together([&] { return single_network(networks, arguments.out, status); });
      return study_rank_scaling(scenario, options, status.listener());
    }
    const auto scenarios = together([&] {
      std::vector<RankedScenario> made;
      for (std::size_t i = 0; i < networks.sizes.size(); ++i) {
        made.push_back({sized_network(networks, networks.sizes[i], status), options.ranks[i]});
      }
      return made;
    });
    return study_weak_rank_scaling(scenarios, options, status.listener());
  } catch (const ScenarioError&) {
    throw;
  } catch (const ConfigError& error) {
    throw ScenarioError(networks.name(), error.issues());
  }
}

Issues defects_of(const ScalingArguments& arguments) {
  Issues issues = check(arguments.networks, is_weak(arguments), arguments.options.ranks, "rank");
  if (is_weak(arguments) && arguments.options.threads.size() > 1) {
    issues.push_back({"--threads", "must be one number where sizes grow with the ranks"});
  }
  if (arguments.files.plot && arguments.options.threads.size() > 1) {
    issues.push_back({"--threads", "must be one number for --plot, which draws over processes"});
  }
  for (Issue& issue : arguments.files.defects()) issues.push_back(std::move(issue));
  return issues;
}

/// Says so if fewer ranks were started than are asked for.
void tell_started(const RankScalingStudy& result, const RankScalingOptions& options,
                  std::ostream& err) {
  const int most = *std::ranges::max_element(options.ranks);
  if (most <= result.started) return;
  err << fmt::format(
      "note: {} rank{} started; rows with more are predicted, not measured (start all with "
      "mpirun -n {})\n",
      result.started, result.started == 1 ? " was" : "s were", most);
}

}  // namespace

int run_command(const ScalingArguments& arguments, std::ostream& out, std::ostream& err) {
  expect_report(arguments.report);
  throw_if_any(defects_of(arguments));
  std::optional<OutputFolder> folder;
  together([&] {
    if (arguments.out && is_first_rank()) {
      folder.emplace(*arguments.out,
                     std::initializer_list<const char*>{kScalingFile, kScalingTable});
    }
    return true;
  });
  RankScalingOptions options = arguments.options;
  options.world = ranks();
  const ThreadAllowance allowance(*std::ranges::max_element(options.threads));
  allowance.tell(err);
  StatusLine status(err, stderr_is_terminal() && is_first_rank());
  const RankScalingStudy result = study_of_ranks(arguments, options, status);
  status.finish();
  if (!is_first_rank()) return kOk;
  tell_started(result, options, err);
  const std::string json = study_json(result, options).dump(2) + "\n";
  out << (arguments.json ? json : study_table(result));  // before the file, which may fail
  const std::string rows = rows_csv(result.rows);
  arguments.files.write(as_figure(result), rows, err);
  if (folder) {
    write_file_atomically(folder->file(kScalingFile), json);
    write_file_atomically(folder->file(kScalingTable), rows);
    folder->keep();
    err << fmt::format("written to {} and {}\n", folder->file(kScalingFile).string(),
                       kScalingTable);
    if (arguments.report) {
      write_study_report(arguments.out, json, "rank_study scaling", result.name, err);
    }
  }
  return kOk;
}

}  // namespace portwave::cli

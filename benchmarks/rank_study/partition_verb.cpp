// rank_study partition

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/summary.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "live/status_line.hpp"
#include "rank_study/verbs.hpp"

namespace portwave::cli {
namespace {

nlohmann::ordered_json plan_json(const Scenario& scenario, const RankPlanOptions& options,
                                 const RankPlan& plan) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const PlannedRank& rank : plan.ranks) {
    ranks.push_back({{"parts", rank.parts},
                     {"tasks", rank.tasks},
                     {"iterate_s", rank.iterate_s},
                     {"commit_s", rank.commit_s},
                     {"neighbours", rank.neighbours},
                     {"waves_sent", rank.waves_sent}});
  }
  return {{"scenario", scenario.name},
          {"version", std::string(version())},
          {"threads", options.threads},
          {"latency_s", options.latency_s},
          {"bandwidth_B_per_s", options.bandwidth_B_per_s},
          {"parts", plan.parts},
          {"whole_parts", plan.whole_parts},
          {"iterations", plan.iterations},
          {"imbalance", plan.imbalance()},
          {"messages", plan.messages},
          {"waves_sent", plan.waves_sent},
          {"gathered_bytes_per_evaluation", plan.gathered_bytes_per_evaluation},
          {"gathered_bytes_per_step", plan.gathered_bytes_per_step},
          {"serial_step_s", plan.serial_step_s},
          {"common_s", plan.common_s},
          {"waiting_s", plan.waiting_s},
          {"step_s", plan.step_s},
          {"speed_up", plan.speed_up()},
          {"ranks", std::move(ranks)}};
}

std::string microseconds(double time_s) { return fmt::format("{:.3g} us", 1e6 * time_s); }

std::string plan_text(const Scenario& scenario, const RankPlanOptions& options,
                      const RankPlan& plan, int shown) {
  std::string text =
      fmt::format("{}: {} parts on {} rank{} of {} thread{}\n", printable(scenario.name),
                  plan.parts, options.ranks, options.ranks == 1 ? "" : "s", options.threads,
                  options.threads == 1 ? "" : "s");
  const auto add = [&](std::string_view name, const std::string& what) {
    text += fmt::format("  {:<12} {}\n", name, what);
  };
  add("balance", fmt::format("the busiest rank has {:.3f} times the mean work", plan.imbalance()));
  add("cut", fmt::format("{} messages and {} waves per evaluation ({:.2g} % of all waves)",
                         plan.messages, plan.waves_sent,
                         plan.waves > 0 ? 100.0 * static_cast<double>(plan.waves_sent) /
                                              static_cast<double>(plan.waves)
                                        : 0.0));
  add("evaluations", fmt::format("{:.3g} per step, as measured here", plan.iterations));
  add("shared",
      fmt::format("a rank sends {} bytes per evaluation to judge gaps, {} per step for the ledger",
                  plan.gathered_bytes_per_evaluation, plan.gathered_bytes_per_step));
  if (plan.whole_parts > 0) {
    add("by all", fmt::format("{} parts, in islands whose interface equation may be solved",
                              plan.whole_parts));
  }
  add("one thread", microseconds(plan.serial_step_s) + " per step, measured here");
  add("predicted", fmt::format("{} per step: {} waiting, {} work of every rank for all parts",
                               microseconds(plan.step_s), microseconds(plan.waiting_s),
                               microseconds(plan.common_s)));
  add("speed-up",
      fmt::format("{:.2f} against one thread, with {:g} us and {:g} GB/s", plan.speed_up(),
                  1e6 * options.latency_s, 1e-9 * options.bandwidth_B_per_s));
  const auto count = std::min<std::size_t>(plan.ranks.size(), static_cast<std::size_t>(shown));
  constexpr std::string_view kLine = "{:>6} {:>10} {:>7} {:>12} {:>11} {:>11}\n";
  if (count > 0) {
    text += fmt::format(fmt::runtime(std::string("\n") + std::string(kLine)), "rank", "parts",
                        "tasks", "work_us", "neighbours", "waves_sent");
  }
  for (std::size_t r = 0; r < count; ++r) {
    const PlannedRank& rank = plan.ranks[r];
    text += fmt::format(fmt::runtime(kLine), r, rank.parts, rank.tasks,
                        fmt::format("{:.4g}", 1e6 * (rank.iterate_s + rank.commit_s)),
                        rank.neighbours, rank.waves_sent);
  }
  if (const std::size_t more = plan.ranks.size() - count; more > 0) {
    text += fmt::format("{} more rank{} (--show {} shows all, --json too)\n", more,
                        more == 1 ? "" : "s", plan.ranks.size());
  }
  return text;
}

}  // namespace

int run_command(const PartitionArguments& arguments, std::ostream& out, std::ostream& err) {
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  RankPlan plan;
  try {
    plan = plan_ranks(scenario, arguments.plan);
  } catch (const ConfigError& error) {
    throw ScenarioError(arguments.scenario.file, error.issues());
  }
  status.finish();
  if (arguments.json) {
    out << plan_json(scenario, arguments.plan, plan).dump(2) + "\n";
  } else {
    out << plan_text(scenario, arguments.plan, plan, arguments.shown);
  }
  return kOk;
}

}  // namespace portwave::cli

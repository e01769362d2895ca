// rank_study: divides the steps of a scenario among ranks, and measures or predicts their time. See --help.

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <portwave/runtime/output/summary.hpp>

#include "line/program.hpp"
#include "line/reading.hpp"
#include "line/shared_options.hpp"
#include "rank_study/verbs.hpp"

namespace portwave::cli {
namespace {

constexpr std::int64_t kMostStudiedRanks = 10'000;
constexpr std::int64_t kMostPlannedRanks = 100'000;

constexpr const char* kExamples = R"(Examples:
  rank_study partition examples/msd_64x50.json --ranks 8 --threads 2
  rank_study scaling --generate chain --sizes 2000 --ranks 1,2,4,64
  mpirun -n 4 rank_study scaling big.json --ranks 1,2,4,256 --threads 1,2

Data goes to stdout, everything else to stderr.
Exit codes: 0 done, 2 bad input, 3 failure while running.)";

constexpr const char* kScalingExamples = R"(Examples:
  rank_study scaling --generate chain --sizes 2000 --ranks 1,2,4,64 --certify none
  mpirun -n 4 rank_study scaling big.json --ranks 1,2,4,256 --threads 1,2 --out results
  mpirun -n 4 rank_study scaling big.json --ranks 1,2,4,16 --csv ranks.csv --plot ranks.pdf
  mpirun -n 4 rank_study scaling --generate grid --sizes 10000,20000,40000 --ranks 1,2,4

Rows marked "predicted" were not run: they follow from costs measured on one thread, and from the latency
and the bandwidth of messages. Speed-ups are relative to one thread, with weak scaling to the first size.)";

void add_scaling(Verb& top, ScalingArguments& study) {
  Verb verb = top.add("scaling", "Time per step by ranks: measured, and predicted for more");
  RankScalingOptions& options = study.options;
  add_networks(verb, study.networks,
               "One: strong scaling; one per rank count, in proportion to them: weak scaling");
  verb.integers("--ranks", "N,N,...",
                "Processes: those that mpirun started are measured, more are predicted",
                {1, kMostStudiedRanks},
                [&options](std::vector<int> ranks) { options.ranks = std::move(ranks); })
      ->default_str("1,2,4");
  verb.integers("--threads", "N,N,...", "Threads of each process", {1, kMaxThreads},
                [&options](std::vector<int> threads) { options.threads = std::move(threads); })
      ->default_str("1");
  const auto network = [&options]() -> Interconnect& {
    return options.network ? *options.network : options.network.emplace();
  };
  verb.real("--latency-us", "US",
            "Latency of a message. Default: measured between two processes; 2 for one process, or "
            "with --bandwidth-GBs",
            {0.0, 1e9}, [network](double us) { network().latency_s = 1e-6 * us; });
  verb.real("--bandwidth-GBs", "GBS",
            "Bandwidth in 10^9 bytes per second. Default: measured between two processes; 10 for "
            "one process, or with --latency-us",
            {1e-6, 1e9},
            [network](double gigabytes) { network().bandwidth_B_per_s = 1e9 * gigabytes; });
  add_grain(verb, options.grain);
  add_measurements(verb, options.repetitions, options.steps);
  add_out(verb, study.out, "scaling.json and scaling.csv");
  study.files.add_to(verb);
  add_study_report(verb, study.out, study.report);
  add_json(verb, study.json, "the rows");
  verb.app().footer(kScalingExamples);
}

void add_partition(Verb& top, PartitionArguments& partition) {
  Verb verb = top.add("partition", "Show how a scenario would be divided among several processes");
  add_scenario(verb, partition.scenario);
  RankPlanOptions& plan = partition.plan;
  verb.integer("--ranks", "Number of processes", {1, kMostPlannedRanks},
               [&plan](std::int64_t count) { plan.ranks = static_cast<int>(count); })
      ->default_str(std::to_string(plan.ranks));
  verb.integer("--threads", "Threads per process", {1, kMaxThreads},
               [&plan](std::int64_t count) { plan.threads = static_cast<int>(count); })
      ->default_str(std::to_string(plan.threads));
  verb.real("--latency-us", "US", "Latency of a message", {0.0, 1e9},
            [&plan](double us) { plan.latency_s = 1e-6 * us; })
      ->default_str("2");
  verb.real("--bandwidth-GBs", "GBS", "Bandwidth of the network in 10^9 bytes per second",
            {1e-6, 1e9}, [&plan](double gigabytes) { plan.bandwidth_B_per_s = 1e9 * gigabytes; })
      ->default_str("10");
  verb.integer("--show", "Number of ranks to show; --json shows all", {0, kMostPlannedRanks},
               [&partition](std::int64_t count) { partition.shown = static_cast<int>(count); })
      ->default_str(std::to_string(partition.shown));
  add_json(verb, partition.json, "the plan");
}

template <class Arguments>
AskedFor command_of(Arguments arguments, bool on_all_ranks) {
  return {.command = [arguments = std::move(arguments)](
                         std::ostream& out,
                         std::ostream& err) { return run_command(arguments, out, err); },
          .on_all_ranks = on_all_ranks};
}

AskedFor asked_for(const std::vector<std::string>& arguments, std::ostream& out,
                   std::ostream& err) {
  CLI::App app("Steps on several processes: their division and their time", "rank_study");
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("rank_study of portwave {}", version()));
  app.footer(kExamples);
  std::vector<std::string> defects;
  Verb top(app, defects);
  ScalingArguments scaling;
  PartitionArguments partition;
  add_scaling(top, scaling);
  add_partition(top, partition);
  const LineRead read = read_line(app, defects, arguments, out, err);
  if (read.verb == nullptr) return {.command = {}, .exit_code = read.exit_code};
  if (read.verb->get_name() == "scaling") return command_of(std::move(scaling), true);
  return command_of(std::move(partition), false);
}

}  // namespace
}  // namespace portwave::cli

int main(int argc, char** argv) {
  return portwave::cli::run_program("rank_study", {argv + 1, argv + argc},
                                    portwave::cli::asked_for);
}

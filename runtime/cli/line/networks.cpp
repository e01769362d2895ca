#include "line/networks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <portwave/runtime/generate/generate.hpp>
#include <portwave/runtime/output/recorder.hpp>

#include "line/report_page.hpp"
#include "line/shared_options.hpp"
#include "live/status_line.hpp"

namespace portwave::cli {
namespace {

const std::vector<std::string>& kinds_of_networks() {
  static const std::vector<std::string> kinds = {"chain", "ring", "grid", "star"};
  return kinds;
}

/// The grid of that many nodes that is closest to a square.
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

/// Sizes in proportion to the counts, rounded down.
std::string fitting_sizes(const std::vector<int>& counts, int first) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(counts.size());
  for (const int count : counts) {
    sizes.push_back(std::int64_t{first} * count / counts.front());
  }
  return fmt::format("{}", fmt::join(sizes, ","));
}

void check_proportion(const std::vector<int>& sizes, const std::vector<int>& counts,
                      const std::string& counted, Issues& issues) {
  if (sizes.size() != counts.size()) {
    issues.push_back({"--sizes", fmt::format("must be one size, or one for each of the {} {} "
                                             "counts, got {}",
                                             counts.size(), counted, sizes.size())});
    return;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (std::int64_t{sizes[i]} * counts.front() == std::int64_t{sizes.front()} * counts[i]) {
      continue;
    }
    issues.push_back(
        {"--sizes", fmt::format("must be in proportion to the {}s {}: {} would do", counted,
                                fmt::join(counts, ","), fitting_sizes(counts, sizes.front()))});
    return;
  }
}

}  // namespace

void add_networks(Verb& verb, NetworkArguments& networks, const std::string& sizes) {
  verb.app().add_option("SCENARIO", networks.scenario.file, "Scenario file (JSON)")->type_name("");
  add_overrides(verb, networks.scenario.overrides);
  add_permissions(verb, networks.scenario);
  verb.choice("--generate", kinds_of_networks(), "A generated network in place of a file",
              [&networks](std::size_t i) { networks.kind = kinds_of_networks()[i]; });
  verb.integers("--sizes", "N,N,...",
                "Blocks, limbs or nodes of the network, or values of --size-of. " + sizes,
                {1, kMostParts},
                [&networks](std::vector<int> given) { networks.sizes = std::move(given); });
  verb.app()
      .add_option("--size-of", networks.size_pointer,
                  "What of a scenario file is its size, such as /parameters/cells")
      ->type_name("POINTER");
  add_certify(verb, networks.certify);
}

void add_measurements(Verb& verb, int& repetitions, std::int64_t& steps) {
  verb.integer("--repetitions", "Measurements of each configuration, taken in turn",
               {1, kMostRepetitions},
               [&repetitions](std::int64_t n) { repetitions = static_cast<int>(n); })
      ->default_str(std::to_string(repetitions));
  verb.integer("--steps", "Macro-steps of one measurement; default: chosen by their time",
               {1, kMostSteps}, [&steps](std::int64_t n) { steps = n; });
}

Issues check(const NetworkArguments& networks, bool is_weak, const std::vector<int>& counts,
             const std::string& counted) {
  Issues issues;
  const bool has_file = !networks.scenario.file.empty(), has_kind = !networks.kind.empty();
  if (has_file && has_kind) {
    issues.push_back({"--generate", "takes the place of the scenario file; give one of them"});
  }
  if (!has_file && !has_kind) {
    issues.push_back({"", "needs a scenario file, or --generate and --sizes"});
  }
  const bool has_pointer = !networks.size_pointer.empty();
  if (!networks.sizes.empty() && !has_kind && !has_pointer) {
    issues.push_back(
        {"--sizes",
         "needs --generate, or --size-of to say what of the scenario file is its size, "
         "such as /parameters/cells"});
  }
  if (networks.sizes.empty() && (has_kind || has_pointer)) {
    issues.push_back(
        {"--sizes", has_kind ? "is required with --generate" : "is required with --size-of"});
  }
  if (has_kind && has_pointer) {
    issues.push_back({"--size-of", "is for scenario files"});
  }
  if (is_weak && (has_kind || has_pointer) && !networks.sizes.empty()) {
    check_proportion(networks.sizes, counts, counted, issues);
  }
  if (!has_kind) return issues;
  for (const int size : networks.sizes) {
    for (const Issue& issue : check_network(network_of(networks.kind, size))) {
      issues.push_back({"--sizes", fmt::format("a {} of {}: {}", networks.kind, size, issue.what)});
    }
  }
  return issues;
}

Scenario single_network(const NetworkArguments& networks,
                        const std::optional<std::filesystem::path>& out, StatusLine& status) {
  if (!networks.sizes.empty()) return sized_network(networks, networks.sizes.front(), status);
  Scenario scenario = load(networks.scenario, status);
  if (out) {
    for (const char* name : {kScalingFile, kScalingTable, kReportPage}) {
      refuse_to_overwrite(scenario.recording.inputs, *out / name);
    }
  }
  scenario.options.certify = networks.certify;
  return scenario;
}

Scenario sized_network(const NetworkArguments& networks, int size, StatusLine& status) {
  if (networks.kind.empty()) {
    ScenarioArguments sized = networks.scenario;
    sized.overrides.push_back({networks.size_pointer, std::to_string(size)});
    Scenario scenario = load(sized, status);
    scenario.options.certify = networks.certify;
    return scenario;
  }
  status.show({"generating the network"});
  Scenario scenario =
      parse_scenario(generate_scenario(network_of(networks.kind, size)),
                     fmt::format("{} of {}", networks.kind, size), std::filesystem::current_path(),
                     networks.scenario.overrides, status.listener());
  scenario.options.certify = networks.certify;
  return scenario;
}

}  // namespace portwave::cli

// Runs as many cases as one likes and prints a line for each that is not right, then a table by
// family.
//   portwave_differential_soak [--box NAME] [--seed FIRST] [--cases N] [--dump FILE] [--quiet]
// NAME is a family, or guard, matrices, all; N cases of each family, of the seeds from FIRST on.
// --dump writes each case's scenario file, so that `portwave run` can take it: with --cases 1.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "differential/families.hpp"
#include "differential/judge.hpp"

namespace {

using namespace portwave::differential;

struct Tally {
  int cases = 0, active = 0, visible = 0, skipped = 0, wrong = 0;
  std::array<int, kDefects> defects = {};
  std::map<int, std::int64_t> evaluations;  // steps of passive cases by evaluations
};

struct Arguments {
  std::string box = "all", dump;
  std::uint64_t seed = 0;
  int cases = 10;
  bool quiet = false;
};

Arguments read(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (key == "--quiet") {
      arguments.quiet = true;
      continue;
    }
    if (key == "--box" || key == "--family")
      arguments.box = value;
    else if (key == "--seed")
      arguments.seed = std::strtoull(value, nullptr, 10);
    else if (key == "--cases")
      arguments.cases = std::atoi(value);
    else if (key == "--dump")
      arguments.dump = value;
    else {
      fmt::print(stderr,
                 "usage: {} [--box NAME] [--seed FIRST] [--cases N] [--dump FILE] [--quiet]\n",
                 argv[0]);
      std::exit(2);
    }
    ++i;
  }
  return arguments;
}

void run_family(const std::string& family, const Arguments& arguments, Tally& tally) {
  for (int i = 0; i < arguments.cases; ++i) {
    const std::uint64_t seed = arguments.seed + static_cast<std::uint64_t>(i);
    const Network network = make_case(family, seed);
    if (!arguments.dump.empty())
      std::ofstream(arguments.dump) << scenario_of(network).dump(1) << "\n";
    const Result result = run_case(network);
    ++tally.cases;
    tally.active += network.active ? 1 : 0;
    tally.visible += result.visibly_active ? 1 : 0;
    if (result.skipped) {
      ++tally.skipped;
      if (!arguments.quiet) fmt::print("{} {} skipped: {}\n", family, seed, result.why_skipped);
      continue;
    }
    if (!network.active) {
      for (const int k : result.run.evaluations) ++tally.evaluations[k];
    }
    std::array<bool, kDefects> seen = {};
    for (const Finding& finding : result.findings) {
      seen[static_cast<std::size_t>(finding.defect)] = true;
      fmt::print("{} {} {}: {} [{} parts, {} steps{}; {}]\n", family, seed,
                 to_string(finding.defect), finding.text, network.parts.size(), network.steps,
                 network.active ? ", active" : "", result.run.method);
    }
    tally.wrong += result.findings.empty() ? 0 : 1;
    for (std::size_t k = 0; k < seen.size(); ++k) tally.defects[k] += seen[k] ? 1 : 0;
  }
}

void add(const Tally& tally, Tally& all) {
  all.cases += tally.cases;
  all.active += tally.active;
  all.visible += tally.visible;
  all.skipped += tally.skipped;
  all.wrong += tally.wrong;
  for (std::size_t k = 0; k < all.defects.size(); ++k) all.defects[k] += tally.defects[k];
  for (const auto& [k, count] : tally.evaluations) all.evaluations[k] += count;
}

void print_row(const std::string& name, const Tally& t) {
  fmt::print("{:<12} {:>6} {:>6} {:>7} {:>5} {:>6}", name, t.cases, t.active, t.visible, t.skipped,
             t.wrong);
  for (const int count : t.defects) fmt::print(" {:>11}", count);
  std::int64_t total = 0, few = 0;
  int most = 0;
  for (const auto& [k, count] : t.evaluations) {
    total += count;
    few += k <= 4 ? count : 0;
    most = std::max(most, k);
  }
  fmt::print(" {:>8.2f} {:>5}\n",
             total > 0 ? 100.0 * static_cast<double>(few) / static_cast<double>(total) : 100.0,
             most);
}

int run(const Arguments& arguments) {
  std::vector<std::pair<std::string, Tally>> table;
  Tally all;
  for (const std::string& family : families_of_box(arguments.box)) {
    Tally tally;
    run_family(family, arguments, tally);
    table.emplace_back(family, tally);
    add(tally, all);
  }
  fmt::print("\n{:<12} {:>6} {:>6} {:>7} {:>5} {:>6}", "family", "cases", "active", "visible",
             "skip", "wrong");
  for (int k = 0; k < kDefects; ++k) fmt::print(" {:>11}", to_string(static_cast<Defect>(k)));
  fmt::print(" {:>8} {:>5}\n", "<=4 ev %", "most");
  for (const auto& [name, tally] : table) print_row(name, tally);
  print_row("all", all);
  fmt::print("evaluations per step (steps of passive cases):");
  for (const auto& [k, count] : all.evaluations) fmt::print(" {}:{}", k, count);
  fmt::print("\n");
  return all.wrong > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(read(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

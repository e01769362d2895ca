// Runs a system for as many steps as one likes and says whether it is still what it was: energies,
// memory, clock and files. Times are told, and nothing is judged by them.
//   portwave_soak [--case NAME] [--steps N] [--break energy|memory|clock]
// Without --case all, without --steps as many as each is meant to have.

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "soak/run.hpp"
#include "support/files/temporary_folder.hpp"

namespace {

using namespace portwave::soak;

const std::map<std::string, Defect> kDefects = {
    {"energy", Defect::energy}, {"memory", Defect::memory}, {"clock", Defect::clock}};

struct Arguments {
  std::string name = "all";
  std::optional<std::int64_t> steps;
  Defect defect = Defect::none;
};

[[noreturn]] void refuse() {
  fmt::print(stderr,
             "usage: portwave_soak [--case NAME] [--steps N] [--break energy|memory|clock]\n");
  for (const Case& each : cases()) {
    fmt::print(stderr, "  {:<24} {} ({} steps)\n", each.name, each.summary, each.steps);
  }
  std::exit(2);
}

Arguments read(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i];
    if (i + 1 == argc) refuse();
    const std::string value = argv[i + 1];
    if (key == "--case") {
      arguments.name = value;
    } else if (key == "--steps") {
      arguments.steps = static_cast<std::int64_t>(std::strtod(value.c_str(), nullptr));
      if (*arguments.steps < 100) refuse();
    } else if (key == "--break" && kDefects.contains(value)) {
      arguments.defect = kDefects.at(value);
    } else {
      refuse();
    }
  }
  return arguments;
}

void print(const Figures& f) {
  const auto joule = [](long double v) { return static_cast<double>(v); };
  fmt::print("  steps               {}, to {:.17g} s\n", f.steps, f.time_s);
  fmt::print(
      "  time per step       {:.0f} ns in the first tenth, {:.0f} ns in the last (ratio {:.2f})\n",
      f.first_ns, f.last_ns, f.last_ns / f.first_ns);
  fmt::print("  certificate         {}; the guard acted in {} steps\n", f.certificate,
             f.guarded_steps);
  fmt::print("  H at start and end  {:.17g} J, {:.17g} J (change {:.3g}); supplied {:.6g} J\n",
             joule(f.stored_at_start_J), joule(f.stored_J),
             joule((f.stored_J - f.stored_at_start_J) / f.stored_at_start_J), joule(f.supplied_J));
  fmt::print("  rounding allowed    {:.3g} J, of which H + T took {:.2g} at most\n", f.rounding_J,
             f.largest_beyond);
  fmt::print("  ledger and formula  differ by {:.2g} of the energies moved\n", f.ledger_difference);
  if (f.error >= 0.0) fmt::print("  error of the state  {:.3g} of its amplitude\n", f.error);
  fmt::print(
      "  memory              {} bytes more resident, {} bytes more allocated than after a fifth\n",
      f.resident_growth_bytes, f.heap_growth_bytes);
  fmt::print("  recorded            {} rows\n", f.rows);
  fmt::print("  subnormal numbers   {} at once at most", f.most_subnormal);
  if (f.subnormal_stretches > 0) {
    fmt::print("; in {} of 500 stretches, {:.0f} ns a step there and {:.0f} ns elsewhere",
               f.subnormal_stretches, f.subnormal_ns, f.normal_ns);
  }
  fmt::print("\n");
}

int run_all(const Arguments& arguments) {
  bool any = false, good = true;
  for (const Case& each : cases()) {
    if (arguments.name != "all" && arguments.name != each.name) continue;
    any = true;
    fmt::print("{}: {}\n", each.name, each.summary);
    std::fflush(stdout);
    const portwave::testing::TemporaryFolder folder;
    const Outcome outcome =
        run(each, arguments.steps.value_or(each.steps), arguments.defect, folder.path() / "run");
    print(outcome.figures);
    for (const std::string& finding : outcome.findings) fmt::print("  WRONG: {}\n", finding);
    good = good && outcome.findings.empty();
  }
  if (!any) refuse();
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = read(argc, argv);
  try {
    return run_all(arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

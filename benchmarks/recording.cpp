// What recording costs the thread that steps: 100 quantities of every step as text, or as numbers that become
// an HDF5 file at the end, beside the same run without. Another thread writes.

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "chain_system.hpp"
#include "portwave/runtime/output/file_recorder.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "report.hpp"

namespace {

using namespace portwave;
using namespace portwave::bench;

constexpr int kQuantities = 100;

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / fmt::format("portwave-{}", ::getpid())) {}
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<Quantity> quantities(const System& system) {
  std::vector<Quantity> out;
  for (int i = 0; static_cast<int>(out.size()) < kQuantities; ++i) {
    const int part = i % static_cast<int>(system.parts().size());
    const int state = i / static_cast<int>(system.parts().size());
    out.push_back({fmt::format("{}.{}", part, state), Quantity::Kind::state, part, state, ""});
  }
  return out;
}

/// The last row of the file is what the stepper has.
void check(const System& system, const StepperOptions& options) {
  const Folder folder;
  Stepper stepper(system, options);
  const std::vector<Quantity> observed = quantities(system);
  FileRecorder recorder(folder.path(), {.quantities = observed});
  recorder.record_initial(stepper);
  for (int i = 0; i < 5000; ++i) recorder.record(stepper, stepper.step());
  recorder.finish();
  std::ifstream file(folder.path() / "trajectory.csv");
  std::string line, last;
  int rows = -1;
  for (; std::getline(file, line); ++rows) last = line;
  std::string expected = fmt::format("{:.17g}", stepper.time_s());
  for (const Quantity& one : observed) expected += fmt::format(",{:.17g}", observe(stepper, one));
  if (rows != 5001 || last != expected) throw std::runtime_error("rows are missing, or others");
}

void measure(const Report& report, int blocks, ResultFormat format) {
  const System system = chain_system(equal_chain(static_cast<std::size_t>(blocks)));
  StepperOptions options{.method = WaveCoupling{}};
  options.step_s = 0.01;
  check(system, options);
  Stepper bare(system, options), recorded(system, options);
  const Folder folder;
  FileRecorder recorder(folder.path(), {.quantities = quantities(system), .format = format});
  recorder.record_initial(recorded);
  std::vector<Timer> contenders = {
      timed([&] { bare.step(); }),
      timed([&] { recorder.record(recorded, recorded.step()); }),
  };
  const Contest contest = take_turns(contenders, {.rounds = 21, .turn_s = 5e-2});
  report.add(
      {.name = fmt::format("recording/chain_{}/{}_over_unrecorded", blocks, to_string(format)),
       .sense = Sense::at_most,
       .goal = 1.05,
       .note = fmt::format("{} quantities of steps of {:.0f} us; the run waited {:.3g} s",
                           kQuantities, contest.median_us(0), recorder.waited_s())},
      contest, 1, 0);
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("recording", 1);
  if (report.only_lists(argc, argv)) return 0;
  for (const int blocks : {100, 300, 1000}) {
    measure(report, blocks, ResultFormat::csv);
    if (has_hdf5()) measure(report, blocks, ResultFormat::hdf5);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "recording: {}\n", error.what());
  return 1;
}

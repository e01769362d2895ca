// What a checkpoint says of recorders: the bytes given are changes of what recorders of this build wrote
// (tests/support/files/made_up_bytes.hpp). Recording goes on from it, or the files are as they were.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include <portwave/runtime/output/checkpoint.hpp>
#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/base/state_archive.hpp>

#include "fuzz/fuzz_target.hpp"
#include "support/files/made_up_bytes.hpp"

namespace {

using namespace portwave;
using testing::Bytes;
using Path = std::filesystem::path;
using For = CheckpointFolder::For;

std::string pair_with(const std::string& rest) {
  return R"({"name": "pair",
    "subsystems": [
      {"name": "A", "type": "linear_oscillator", "initial_state": {"q2": 0.4},
       "parameters": {"mass_kg": 8, "stiffness_N_per_m": 100, "damping_Ns_per_m": 0}},
      {"name": "B", "type": "linear_oscillator",
       "parameters": {"mass_kg": 4, "stiffness_N_per_m": 50, "damping_Ns_per_m": 0}}],
    "couplings": [{"kind": "connection", "ports": ["A.coupling", "B.coupling"]}],
    "method": {"kind": "douglas-rachford", "iterations": 2,
               "impedance": {"kind": "uniform", "value": 0.4}},
    "time": {"step_s": 0.01, "steps": 99},
    "events": [{"name": "middle", "of": "A.q2", "level": 0.39}], )" +
         rest + "}";
}

std::map<std::string, std::string> files_in(const Path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    out[entry.path().filename().string()].assign(std::istreambuf_iterator<char>(in), {});
  }
  return out;
}

/// A run with a checkpoint, in a folder that goes with the program.
struct Subject {
  Subject(const std::string& text, Path where)
      : folder(std::move(where)),
        scenario(parse_scenario(text, "recorded.json", ".")),
        stepper(scenario.system, scenario.options) {
    std::filesystem::remove_all(folder);
    CheckpointFolder results(folder / "results", For::a_new_run);
    FileRecorder recorder(results, scenario.recording);
    recorder.record_initial(stepper);
    for (int i = 0; i < 30; ++i) {
      const StepReport report = stepper.step();
      recorder.record(stepper, report);
    }
    Checkpoint checkpoint{"a pair", stepper.snapshot(), {}};
    StateArchive writer = StateArchive::writer(checkpoint.recorded);
    recorder.archive(stepper, writer);
    writer.finish();
    results.save(checkpoint);
    recorded = checkpoint.recorded;
    start = checkpoint.snapshot;
  }
  ~Subject() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  Path folder;
  Scenario scenario;
  Stepper stepper;
  Bytes recorded;
  Snapshot start;
};

bool goes_on(Subject& subject, const Path& copy, const Bytes& recorded) {
  CheckpointFolder results(copy, For::going_on);
  FileRecorder recorder(results, subject.scenario.recording);
  subject.stepper.restore(subject.start);
  try {
    StateArchive reader = StateArchive::reader(recorded);
    recorder.archive(subject.stepper, reader);
    reader.finish();
  } catch (const StateArchive::Mismatch&) {
    return false;
  } catch (const std::runtime_error&) {  // a file is not so long
    return false;
  }
  for (int i = 0; i < 10; ++i) {
    const StepReport report = subject.stepper.step();
    recorder.record(subject.stepper, report);
  }
  recorder.finish("{}");
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Path folder =
      std::filesystem::temp_directory_path() / ("portwave_fuzz_" + std::to_string(::getpid()));
  static const std::vector<std::unique_ptr<Subject>> subjects = [] {
    std::vector<std::unique_ptr<Subject>> out;
    for (const char* outputs : {R"({"observe": ["A.q2"], "last_s": 0.1})",
                                R"({"observe": ["A.q2", "B.q2"], "every": 4, "envelope": true,
                                    "energies": true})",
                                R"({"observe": ["A.q2"], "every_s": 0.02})"}) {
      out.push_back(std::make_unique<Subject>(pair_with(std::string("\"outputs\": ") + outputs),
                                              folder / std::to_string(out.size())));
    }
    return out;
  }();
  if (size == 0) return 0;
  Subject& subject = *subjects[data[0] % subjects.size()];
  Bytes recorded = subject.recorded;
  testing::Choices choices(std::as_bytes(std::span(data, size).subspan(1)));
  while (choices.are_left()) testing::change_one(recorded, choices);
  const Path copy = subject.folder / "copy";
  std::filesystem::remove_all(copy);
  std::filesystem::copy(subject.folder / "results", copy, std::filesystem::copy_options::recursive);
  const auto before = files_in(copy);
  if (goes_on(subject, copy, recorded)) return 0;
  const auto after = files_in(copy);
  for (const auto& [name, text] : before) {
    fuzz::expect(after.contains(name) && after.at(name) == text, "files are as they were");
  }
  return 0;
}

// Checkpoints and the snapshots in them, as they are and with their checksums made right. A snapshot
// that is taken for one of a stepper here is gone back to.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>
#include <zlib.h>

#include <portwave/runtime/output/checkpoint.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "fuzz/fuzz_target.hpp"
#include "support/files/made_up_bytes.hpp"

namespace {

using namespace portwave;

using Bytes = std::vector<std::byte>;

// Places in a file (runtime/src/output/recording/checkpoint.cpp) and in a snapshot (execution/snapshot.cpp).
constexpr std::size_t kFileChecksum = 28, kFileVersion = 32, kFileSizes = 48, kFileHead = 72;
constexpr std::size_t kChecksum = 40, kIdentity = 48, kHead = 72;

template <typename Number>
void put(Bytes& bytes, std::size_t at, Number value) {
  if (at + sizeof(value) <= bytes.size()) std::memcpy(bytes.data() + at, &value, sizeof(value));
}

template <typename Number>
Number get(const Bytes& bytes, std::size_t at) {
  Number value{};
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

const Scenario& scenario() {
  static const Scenario scenario = parse_scenario(R"({
    "name": "pair",
    "time": {"step_s": 0.01, "steps": 2},
    "subsystems": [
      {"name": "A", "type": "duffing_oscillator",
       "parameters": {"mass_kg": 8, "stiffness_N_per_m": 100, "cubic_stiffness_N_per_m3": 8000,
                      "damping_Ns_per_m": 0, "coupling_stiffness_N_per_m": 120,
                      "coupling_damping_Ns_per_m": 0.05},
       "initial_state": {"q1": 0.4, "delta": -0.4}},
      {"name": "B", "type": "linear_oscillator",
       "parameters": {"mass_kg": 4, "stiffness_N_per_m": 50, "damping_Ns_per_m": 0}}],
    "couplings": [{"kind": "connection", "ports": ["A.coupling", "B.coupling"]}],
    "method": {"kind": "douglas-rachford", "iterations": 5,
               "impedance": {"kind": "uniform", "value": 0.4}},
    "outputs": {"observe": ["A.q1"], "every": 1}
  })",
                                                  "pair.json", ".");
  return scenario;
}

Bytes checkpoint_of(const Stepper& stepper) {
  Checkpoint checkpoint;
  checkpoint.run = R"({"run": "pair"})";
  checkpoint.snapshot = stepper.snapshot();
  checkpoint.recorded.resize(16);
  return checkpoint.to_bytes();
}

/// The bytes with what this build writes in heads, sizes and checksums, so that the members are reached;
/// what the snapshot is of is as much of theirs as they have.
Bytes repaired(const Bytes& bytes, const Bytes& genuine) {
  if (bytes.size() < kFileHead + kHead) return bytes;
  Bytes out = bytes;
  std::copy_n(genuine.begin(), kFileChecksum, out.begin());
  std::copy_n(genuine.begin() + kFileVersion, 16, out.begin() + kFileVersion);
  const std::uint64_t rest = out.size() - kFileHead;
  const auto run = get<std::uint64_t>(out, kFileSizes) % (rest - kHead + 1);
  const auto recorded = get<std::uint64_t>(out, kFileSizes + 8) % (rest - kHead - run + 1);
  put(out, kFileSizes, run);
  put(out, kFileSizes + 8, recorded);
  put(out, kFileSizes + 16, rest - run - recorded);
  const std::size_t at = kFileHead + static_cast<std::size_t>(run + recorded);
  const auto sizes =
      get<std::uint64_t>(genuine, kFileSizes) + get<std::uint64_t>(genuine, kFileSizes + 8);
  const std::size_t from = kFileHead + static_cast<std::size_t>(sizes);
  std::copy_n(genuine.begin() + static_cast<std::ptrdiff_t>(from), kChecksum,
              out.begin() + static_cast<std::ptrdiff_t>(at));
  put(out, at + kIdentity, get<std::uint64_t>(out, at + kIdentity) % (out.size() - at - kHead + 1));
  const Bytes sealed =
      testing::SnapshotBytes(Bytes(out.begin() + static_cast<std::ptrdiff_t>(at), out.end()))
          .sealed();
  std::ranges::copy(sealed, out.begin() + static_cast<std::ptrdiff_t>(at));
  const auto* const checked = reinterpret_cast<const unsigned char*>(out.data()) + kFileVersion;
  put(out, kFileChecksum,
      static_cast<std::uint32_t>(::crc32_z(0, checked, out.size() - kFileVersion)));
  return out;
}

/// Whether they were accepted.
bool read(const Bytes& bytes, Stepper& stepper) {
  try {
    const Checkpoint checkpoint = Checkpoint::from_bytes(bytes);
    fuzz::expect(checkpoint.to_bytes() == bytes, "what is accepted has the same bytes again");
    if (checkpoint.snapshot.empty()) return true;
    const Bytes before = stepper.snapshot().to_bytes();
    try {
      stepper.restore(checkpoint.snapshot);
    } catch (const std::invalid_argument& error) {  // of something else, or no state of a run
      fuzz::expect(*error.what() != '\0', "an error says what is wrong");
      fuzz::expect(stepper.snapshot().to_bytes() == before, "nothing has changed");
      return true;
    }
    try {
      stepper.waves()->set_iterations(3);  // nobody waits for more
      stepper.step();
    } catch (const StepError&) {
      // Numbers that are too large.
    } catch (const ConfigError&) {
      // Step sizes and impedances that are none.
    }
    return true;
  } catch (const std::invalid_argument& error) {
    fuzz::expect(*error.what() != '\0', "an error says what is wrong");
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Stepper origin(scenario().system, scenario().options);
  static const Bytes genuine = checkpoint_of(origin);
  static const bool is_control = [] {
    Stepper stepper = origin.clone();
    fuzz::expect(read(genuine, stepper), "a checkpoint is accepted");
    fuzz::expect(repaired(genuine, genuine) == genuine, "the layout is the one described here");
    return true;
  }();
  (void)is_control;
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  const Bytes bytes(first, first + size);
  for (const Bytes& input : {bytes, repaired(bytes, genuine)}) {
    Stepper stepper(scenario().system, scenario().options);
    read(input, stepper);
  }
  return 0;
}

// Snapshots with checksums that are right: the bytes given are changes of the state in a genuine one of a
// stepper of this build (tests/support/files/made_up_bytes.hpp). It is refused, and nothing has changed, or the
// run goes on from it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "fuzz/fuzz_target.hpp"
#include "support/files/made_up_bytes.hpp"

namespace {

using namespace portwave;
using testing::Bytes;

std::string with_method(const std::string& rest) {
  return R"({"name": "pair",
    "subsystems": [
      {"name": "A", "type": "duffing_oscillator",
       "parameters": {"mass_kg": 8, "stiffness_N_per_m": 100, "cubic_stiffness_N_per_m3": 8000,
                      "damping_Ns_per_m": 0, "coupling_stiffness_N_per_m": 120,
                      "coupling_damping_Ns_per_m": 0.05},
       "initial_state": {"q1": 0.4, "delta": -0.4}},
      {"name": "B", "type": "linear_oscillator",
       "parameters": {"mass_kg": 4, "stiffness_N_per_m": 50, "damping_Ns_per_m": 0}}],
    "couplings": [{"kind": "connection", "ports": ["A.coupling", "B.coupling"]}],
    "outputs": {"observe": ["A.q1"]}, )" +
         rest + "}";
}

std::string linear_pair(const std::string& rest) {
  return R"({"name": "linear",
    "subsystems": [
      {"name": "A", "type": "mass_spring_damper_chain",
       "parameters": {"masses": 3, "mass_kg": 2, "stiffness_N_per_m": 40, "damping_Ns_per_m": 0.2,
                      "left_end": "mass", "right_end": "mass"}, "initial_state": {"v1": 1}},
      {"name": "B", "type": "mass_spring_damper_chain",
       "parameters": {"masses": 2, "mass_kg": 1, "stiffness_N_per_m": 30, "damping_Ns_per_m": 0.1,
                      "left_end": "spring", "right_end": "mass"}}],
    "couplings": [{"kind": "connection", "ports": ["A.right", "B.left"]},
                  {"kind": "free", "ports": ["A.left"]}, {"kind": "free", "ports": ["B.right"]}],
    "outputs": {"observe": ["A.v1"]}, "time": {"step_s": 0.01, "steps": 9}, )" +
         rest + "}";
}

const std::string kFixed = R"("time": {"step_s": 0.01, "steps": 9}, )";

/// One for each kind of thing that snapshots hold.
std::vector<std::string> scenarios() {
  return {
      with_method(kFixed + R"("method": {"kind": "douglas-rachford", "iterations": 5, "guard": true,
        "impedance": {"kind": "uniform", "value": 0.4}})"),
      with_method(kFixed + R"("method": {"kind": "interface", "tolerance": 1e-12,
        "impedance": {"kind": "matched"}})"),
      with_method(kFixed + R"("method": {"kind": "peaceman-rachford", "iterations": 30,
        "tolerance": 1e-9, "acceleration": 3, "relaxation": 0.5, "start": "extrapolated",
        "impedance": {"kind": "matched", "retune_factor": 1.02}})"),
      with_method(R"("time": {"step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": 10},
        "events": [{"name": "middle", "of": "A.q1", "level": 0.39}],
        "method": {"kind": "auto", "stages": 2})"),
      with_method(kFixed + R"("method": {"kind": "auto"}, "signals": {"every": 2, "blocks": [
        {"name": "law", "kind": "pid", "setpoint": 0.1, "measurement": "A.q1", "proportional": 2,
         "integral": 3, "derivative": 0.1},
        {"name": "late", "kind": "delay", "signal": "law", "samples": 3}]})"),
      linear_pair(R"("method": {"kind": "strang"})"),
      linear_pair(R"("method": {"kind": "lions-mercier", "window_steps": 3, "iterations": 20})"),
      with_method(kFixed + R"("method": {"kind": "kick-drift", "order": 6})"),
      linear_pair(R"("method": {"kind": "taylor", "order": 12})"),
      with_method(R"("time": {"step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": 10},
        "method": {"kind": "kick-drift", "order": 4})"),
  };
}

/// A stepper some steps into its run.
struct Subject {
  explicit Subject(const std::string& text)
      : scenario(parse_scenario(text, "snapshot.json", ".")),
        stepper(scenario.system, scenario.options) {
    stepper.step(6);
    start = stepper.snapshot();
    genuine = start.to_bytes();
    fuzz::expect(testing::SnapshotBytes(genuine).sealed() == genuine,
                 "the layout is the one described here");
  }

  Scenario scenario;
  Stepper stepper;
  Snapshot start;
  Bytes genuine;
};

void go_on(Stepper& stepper) {
  if (WaveView* waves = stepper.waves()) waves->set_iterations(3);  // nobody waits for more
  try {
    stepper.step(2);
  } catch (const StepError&) {
  } catch (const ConfigError&) {  // step sizes and impedances that are none
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::unique_ptr<Subject>> subjects = [] {
    std::vector<std::unique_ptr<Subject>> out;
    for (const std::string& text : scenarios()) out.push_back(std::make_unique<Subject>(text));
    return out;
  }();
  if (size == 0) return 0;
  Subject& subject = *subjects[data[0] % subjects.size()];
  testing::SnapshotBytes bytes(subject.genuine);
  Bytes state = bytes.state();
  testing::Choices choices(std::as_bytes(std::span(data, size).subspan(1)));
  while (choices.are_left()) testing::change_one(state, choices);
  bytes.set_state(state);
  const Snapshot mutant = Snapshot::from_bytes(bytes.sealed());
  try {
    subject.stepper.restore(mutant);
  } catch (const std::invalid_argument& error) {
    fuzz::expect(*error.what() != '\0', "an error says what is wrong");
    fuzz::expect(subject.stepper.snapshot().to_bytes() == subject.genuine,
                 "where it is refused nothing has changed");
    return 0;
  }
  go_on(subject.stepper);
  subject.stepper.restore(subject.start);
  return 0;
}

// Settings from the command line: a line "/json/pointer=value" each.

#include "fuzz/scenario_input.hpp"

namespace {

constexpr const char* kScenario = R"({
    "name": "pair",
    "time": {"step_s": 0.01, "steps": 2},
    "parameters": {"k": 100, "left": "A"},
    "subsystems": [
      {"name": "A", "type": "duffing_oscillator",
       "parameters": {"mass_kg": 8, "stiffness_N_per_m": "k", "cubic_stiffness_N_per_m3": 8000,
                      "damping_Ns_per_m": 0, "coupling_stiffness_N_per_m": 120,
                      "coupling_damping_Ns_per_m": 0.05},
       "initial_state": {"q1": 0.4, "delta": -0.4}},
      {"name": "B", "type": "linear_oscillator",
       "parameters": {"mass_kg": 4, "stiffness_N_per_m": 50, "damping_Ns_per_m": 0}}],
    "couplings": [{"kind": "connection", "ports": ["A.coupling", "B.coupling"]}],
    "method": {"kind": "douglas-rachford", "iterations": 5,
               "impedance": {"kind": "uniform", "value": 0.4}},
    "outputs": {"observe": ["A.q1"], "every": 1}
  })";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = portwave::fuzz::text_of(data, size);
  std::vector<portwave::Override> overrides;
  while (!text.empty() && overrides.size() < 16) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t equals = std::min(line.find('='), line.size());
    overrides.push_back({std::string(line.substr(0, equals)),
                         std::string(line.substr(std::min(equals + 1, line.size())))});
  }
  portwave::fuzz::read_and_step(kScenario, overrides);
  return 0;
}

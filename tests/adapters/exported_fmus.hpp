#pragma once

// FMUs that are exported for the tests, each once.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "adapters/fmi/fmu_archive.hpp"
#include "adapters/fmi/model_description.hpp"
#include "adapters/raw_fmu.hpp"
#include "portwave/runtime/export/fmu_export.hpp"
#include "support/temporary_folder.hpp"

namespace portwave::testing {

inline const std::filesystem::path& fmu_folder() {
  static const std::filesystem::path folder = PORTWAVE_FMU_FOLDER;
  return folder;
}

/// An exported FMU, and what is in it.
struct Exported {
  Exported(const ScenarioText& scenario, FmuExportOptions options) : version(options.fmi) {
    options.library = fmu_folder();
    file = folder.path() / "exported.fmu";
    done = export_fmu(scenario, options, file);
    const fmi::FmuArchive archive(file);
    archive.unpack("resources/", folder.path());
    xml = archive.content("modelDescription.xml");
    description = fmi::read_model_description(xml);
  }

  /// Value reference by name.
  std::uint32_t operator[](const std::string& name) const {
    if (name == "time") return 0;  // which FMI 2 need not list
    const fmi::Variable* const found = description.find(name);
    if (found == nullptr) throw std::out_of_range("no variable " + name);
    return found->reference;
  }
  std::string resources() const {
    const std::string path = (folder.path() / "resources").string();
    return version == 2 ? "file://" + path : path + "/";
  }
  std::unique_ptr<RawFmu> raw() const {
    return std::make_unique<RawFmu>(fmu_folder() / "portwave_fmu.so", version);
  }
  /// An instance that is ready to step.
  std::unique_ptr<RawFmu> started(double start_s = 0.0) const {
    auto out = raw();
    if (!out->start(description.token, resources(), start_s)) throw std::runtime_error(out->log);
    return out;
  }

  TemporaryFolder folder;
  std::filesystem::path file;
  int version;
  FmuExport done;
  std::string xml;
  fmi::ModelDescription description;
};

/// Two oscillators: A with a hardening spring, and B, whose force is an input.
inline std::string oscillators(const std::string& more = "") {
  return R"({"name": "two oscillators", "time": {"step_s": 0.01, "end_s": 10},
    "subsystems": [
      {"name": "A", "type": "duffing_oscillator",
       "parameters": {"mass_kg": 8, "stiffness_N_per_m": 100, "cubic_stiffness_N_per_m3": 8000,
                      "coupling_stiffness_N_per_m": 120, "coupling_damping_Ns_per_m": 0.05},
       "initial_state": {"q1": 0.4, "delta": -0.4}},
      {"name": "B", "type": "linear_oscillator",
       "parameters": {"mass_kg": 4, "stiffness_N_per_m": 50},
       "inputs": {"force": {"kind": "constant", "value": 1.5}}}],
    "couplings": [{"kind": "connection", "ports": ["A.coupling", "B.coupling"]}])" +
         more + "}";
}

/// The export that most tests use.
inline const Exported& exported_oscillators(int version) {
  static std::map<int, std::unique_ptr<Exported>> all;
  std::unique_ptr<Exported>& own = all[version];
  if (own == nullptr) {
    own = std::make_unique<Exported>(
        ScenarioText{oscillators(), "test", "."},
        FmuExportOptions{.inputs = {"B.force"},
                         .outputs = {"A", "A.coupling.incident", "B.q2", "B.v2", "energy.stored",
                                     "energy.supplied"},
                         .parameters = {"A.mass_kg", "B.stiffness_N_per_m"},
                         .ports = {},
                         .fmi = version,
                         .name = {},
                         .library = {}});
  }
  return *own;
}

}  // namespace portwave::testing

#pragma once

// FMUs that are exported for the tests, each once.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/files/archive.hpp"
#include "adapters/fmi/standard/model_description.hpp"
#include "adapters/raw_fmu.hpp"
#include "portwave/runtime/export/fmu_export.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::testing {

inline const std::filesystem::path& fmu_folder() {
  static const std::filesystem::path folder = PORTWAVE_FMU_FOLDER;
  return folder;
}

/// An exported FMU, and what is in it.
struct Exported {
  Exported(const ScenarioText& scenario, FmuExportOptions options)
      : file(folder.path() / "exported.fmu"), version(options.fmi) {
    options.library = fmu_folder();
    done = export_fmu(scenario, options, file);
    read();
  }
  Exported(std::filesystem::path made, int fmi) : file(std::move(made)), version(fmi) { read(); }
  void read() {
    const files::Archive archive(file);
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

/// Two oscillators: A with a hardening spring, and B, whose force is an input. `more`: further keys.
inline std::string oscillators(const std::string& more = "") {
  std::string text = read_text(source_file("tests/fixtures/fmu/oscillators.json"));
  return text.insert(text.rfind('}'), more);
}

/// The FMU that most tests use; the build has made it of that file (tests/CMakeLists.txt).
inline const Exported& exported_oscillators(int version) {
  static std::map<int, std::unique_ptr<Exported>> all;
  std::unique_ptr<Exported>& own = all[version];
  if (own == nullptr) {
    const std::string name = "oscillators_" + std::to_string(version) + ".fmu";
    own = std::make_unique<Exported>(std::filesystem::path(PORTWAVE_EXPORTED_FMUS) / name, version);
  }
  return *own;
}

}  // namespace portwave::testing

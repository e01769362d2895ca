#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/output/progress.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/plugins.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A file that a scenario names.
struct ScenarioFile {
  std::filesystem::path path;
  std::uint32_t checksum = 0;  ///< CRC-32 of its bytes

  friend bool operator==(const ScenarioFile&, const ScenarioFile&) = default;
};

/// A scenario file, checked and built.
struct Scenario {
  std::string name;
  System system;
  StepperOptions options;  ///< step, method; threads and certify stay at their defaults
  std::int64_t steps = 0;  ///< 0: to `end_s`, by steps that choose their size
  double end_s = 0.0;
  RecordingOptions recording = {};
  /// Things that are allowed but probably not meant, such as shafts that turn against each other.
  Issues notes = {};
  /// The parameters of the parts (set_parameter); not null.
  std::shared_ptr<PartRecipes> recipes = std::make_shared<PartRecipes>();
  /// Tables and matrices that were read, in the order of reading.
  std::vector<ScenarioFile> files = {};
};

/// A setting from the command line, "/json/pointer=value".
struct Override {
  std::string pointer;
  std::string value;  ///< JSON; taken as a string when it is not
};

/// Thrown with every defect of a scenario file.
class ScenarioError : public ConfigError {
 public:
  ScenarioError(std::string file, Issues issues);
  const std::string& file() const { return file_; }
  /// The error for people: "file pointer: text" per issue, then the count.
  std::string report() const;

 private:
  std::string file_;
};

/// Whether tables and matrices may lie outside the folder of the scenario, links followed: an untrusted
/// scenario may name any file, and the file's contents show in errors and results.
enum class OutsideFiles { refused, allowed };

/// Reads, overrides, checks and builds. Relative paths inside (tables, matrices, plugins) are
/// relative to the file. Plugins that were loaded stay, also where the scenario has defects.
/// Errors: ScenarioError with every defect; nothing is written anywhere.
Scenario load_scenario(const std::filesystem::path& file,
                       const std::vector<Override>& overrides = {},
                       const PhaseCallback& listener = {}, Plugins plugins = Plugins::refused,
                       OutsideFiles outside = OutsideFiles::refused);

/// The same in slices, for a scenario that is too large for one process: each rank reads the file piece
/// by piece and keeps its slice, a run of subsystems whose length is a multiple of 64, and those beside
/// it. `system` is a slice (SliceBuilder), and recorded quantities are those of this rank's subsystems. The
/// file may be of any size. All ranks call it; a single rank reads it as load_scenario.
/// Errors: on all ranks, ScenarioError with every defect of all slices, or with features that reach beyond
/// one: signals, events, assemblies, cut parts, patterns of observed quantities.
Scenario load_scenario_slice(const std::filesystem::path& file, Ranks& ranks,
                             const std::vector<Override>& overrides = {},
                             const PhaseCallback& listener = {}, Plugins plugins = Plugins::refused,
                             OutsideFiles outside = OutsideFiles::refused);

/// The text of a scenario file. Errors: ScenarioError.
std::string read_scenario_text(const std::filesystem::path& file);

/// A matrix that a program holds. In a scenario that it parses {"file": name} stands for it.
struct NamedMatrix {
  std::string name;
  ShapedMatrix matrix;
};

/// The same from text; `file` names it in errors, `folder` resolves relative paths and holds all files.
Scenario parse_scenario(const std::string& text, const std::string& file,
                        const std::filesystem::path& folder,
                        const std::vector<Override>& overrides = {},
                        const PhaseCallback& listener = {}, Plugins plugins = Plugins::refused,
                        OutsideFiles outside = OutsideFiles::refused);
/// The same with matrices in memory, whose names come before those of files. Entries outside a matrix, or that
/// are not finite, are defects.
Scenario parse_scenario(const std::string& text, const std::string& file,
                        const std::filesystem::path& folder, const std::vector<Override>& overrides,
                        Plugins plugins, std::span<const NamedMatrix> matrices);

/// Origin of a scenario that was kept by a run (`portwave run --resume`). Its own statements permit
/// nothing.
struct KeptScenario {
  std::string text;
  std::string file;              ///< names it in errors
  std::filesystem::path folder;  ///< the original folder: relative paths are relative to it
  std::filesystem::path keeper;  ///< the folder of the results: files are read there and below
};
/// The same. Errors: ScenarioError, also for files that lie elsewhere than in `keeper` unless
/// `outside` allows them.
Scenario parse_scenario(const KeptScenario& kept, const std::vector<Override>& overrides = {},
                        const PhaseCallback& listener = {}, Plugins plugins = Plugins::refused,
                        OutsideFiles outside = OutsideFiles::refused);
/// Whether some of its files lie outside a folder, so that a scenario kept there needs
/// OutsideFiles::allowed.
bool reads_outside(const Scenario& scenario, const std::filesystem::path& folder);

/// The JSON Schema (draft 7) of scenario files, generated from the catalogue.
nlohmann::ordered_json scenario_schema();

}  // namespace portwave

#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "portwave/coupling/system/cut.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/output/progress.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// One entry of "subsystems", as far as it could be read.
struct PartDraft {
  std::string name;                ///< empty: not known
  std::string given_name;          ///< as in the file, fit for a name or not
  const PartType* type = nullptr;  ///< null: not known, or an FMU
  bool is_fmu = false;
  std::shared_ptr<const Component> part;  ///< null: could not be built
  SystemBuilder::PartOptions options;
  std::shared_ptr<const Cut> cut;  ///< null: in one piece
};

/// An input of a part that a signal drives, as in the file.
struct DrivenInput {
  std::string part;
  std::string input;
  std::string signal;
  std::string where;  ///< of the signal's name
};

/// A parameter of a part that follows a signal or a function of time, as in the file.
struct DrivenParameter {
  std::string part;
  std::string parameter;  ///< "damping_Ns_per_m", or "masses_kg[1]"
  std::string unit;
  std::string signal;            ///< empty: `source` in its place
  std::optional<Signal> source;  ///< a function of time, sampled before every step
  std::string where;
};

/// One entry of "couplings", as far as it could be read.
struct CouplingDraft {
  Joint joint;
  std::vector<std::string> ports;
  bool is_sound = true;  ///< false: `joint` stands in for one that could not be read
};

/// All of "subsystems" and "couplings".
struct SystemDraft {
  std::vector<PartDraft> parts;
  std::vector<CouplingDraft> couplings;
  std::vector<DrivenInput> driven_inputs;
  std::vector<DrivenParameter> driven_parameters;
  double fmu_energy_J = 0.0;  ///< that FMUs can give in a first step
  Issues notes;               ///< what a user should know of parts that were read
  std::shared_ptr<PartRecipes> recipes = std::make_shared<PartRecipes>();
  bool knows_all_types = true;  ///< false: some plugin is missing, and unknown types may be its own
  bool knows_all_parts = true;  ///< false: some entry was not read
  bool knows_all_ports = true;  ///< false: some coupling does not say which ports it joins
};

/// Where the parts and couplings of a slice are in the whole file.
struct SlicePlaces {
  std::int64_t first_part = 0;          ///< of this rank
  int own_parts = 0;                    ///< they come first
  std::vector<std::int64_t> outside;    ///< numbers of the parts after them
  std::vector<std::int64_t> couplings;  ///< entries of the file that they come from
  Ranks* ranks = nullptr;

  /// An entry of the file that stands for many subsystems.
  struct Array {
    std::int64_t entry, count;
  };
  std::vector<Array> arrays;  ///< in their order
  /// The entry of the file that a subsystem comes from.
  std::int64_t entry_of_part(std::int64_t number) const {
    std::int64_t beyond = 0;  // of the arrays before
    for (const Array& array : arrays) {
      if (number < array.entry + beyond) break;
      if (number < array.entry + beyond + array.count) return array.entry;
      beyond += array.count - 1;
    }
    return number - beyond;
  }
};

/// Reads "subsystems" into `draft`.
void read_parts(const Node& node, const std::filesystem::path& folder, SystemDraft& draft,
                const PhaseCallback& listener);
/// Reads "couplings" into `draft`, whose parts are read already.
void read_couplings(const Node& node, const std::filesystem::path& folder, SystemDraft& draft);

/// Builds the system out of the draft, noting every defect; nothing if it has any. The
/// draft's couplings and the options of its parts are spent.
std::optional<System> build_system(SystemDraft& draft, Defects& defects);
/// The same of a slice. All ranks call it, and all get a system, or none does.
std::optional<System> build_slice(SystemDraft& draft, const SlicePlaces& places, Defects& defects);
/// The parts of a spent draft that are sound, with all ports free: it knows the names that other
/// sections may use. Nothing if no part is sound.
std::optional<System> build_name_table(const SystemDraft& draft, const Defects& defects);

/// Schemas: of a part without what depends on its type, of an external input, of a coupling.
Json part_schema();
Json input_schema();
Json coupling_schema();

/// What is allowed, but probably not meant: shafts that are joined so that they turn against each
/// other. `where` is as in errors.
Issues notes_of(const SystemDraft& draft);

}  // namespace portwave::scenario_file

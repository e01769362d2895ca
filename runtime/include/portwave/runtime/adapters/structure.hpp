#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

struct StructureOptions {
  /// FMUs are code, which may be run: the directions in which they count power are measured so.
  bool may_run_fmus = false;
  /// Pairs of connections that carry power become couplings by waves; false: all become signals.
  bool finds_bonds = true;
  /// Each FMU runs in a process of its own.
  bool process = false;
  double step_s = 0.0;      ///< 0: as the structure says
  double duration_s = 0.0;  ///< 0: as the structure says
};

/// A system structure of FMUs, as a scenario.
struct StructureScenario {
  struct Fmu {
    std::string path;            ///< as the scenario names it
    std::filesystem::path file;  ///< where it lies now
  };
  std::string text;       ///< JSON; paths of FMUs are those of `fmus`
  std::vector<Fmu> fmus;  ///< each file once
  /// What was left out or chosen, each with the place in the structure.
  Issues notes;
  std::shared_ptr<const void> files;  ///< keeps files that were unpacked
};

/// Whether a file is a system structure: a package or description of SSP (.ssp, .ssd), or an
/// OspSystemStructure.xml.
bool is_structure_file(const std::filesystem::path& file);

/// Reads a system structure: SSP 1.0 and 2.0 with systems within systems, parameter sets and mappings, and signal
/// dictionaries; OSP-IS with functions and groups of variables.
///
/// Two connections there and back between a pair of FMUs whose variables are effort and flow are a power bond:
/// FMUs with bonds become parts that couple by waves, all others blocks of signals. Bonds are known from
/// terminals of FMI 3, from groups of OspModelDescription.xml, from "powerBond" of OSP-IS, from units, or from
/// what the structure notes for portwave. Units are converted where SSP asks for it.
///
/// FMUs are named by their absolute paths where `folder` is empty, else as files of their own names in it.
/// Errors  ConfigError with every defect, `where` being file and line: broken XML, names that are not there,
///         components that are no FMUs for co-simulation, inputs that are connected twice, loops without a
///         component, units that differ, paths that lead out of a package; a permission that is missing.
StructureScenario read_structure(const std::filesystem::path& file, const StructureOptions& options,
                                 const std::filesystem::path& folder = {});

}  // namespace portwave

#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/fmi/fmu_setup.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave::exported {

using Json = nlohmann::ordered_json;

/// A component of a package that is written.
struct SspComponent {
  std::string name;
  std::filesystem::path file;
  std::string source = {};      ///< in the package
  std::string parameters = {};  ///< its parameter set in the package, if it has start values
  fmi::PartSetup setup = {};
  Json start = Json::object();
  Json own = Json::object();  ///< its annotation
  std::set<std::string> connectors = {};
  double step_s = 0.0;  ///< of a block that is sampled less often; 0: as all
};

/// An end of a connection; `component` empty: a connector of the system.
struct SspEnd {
  std::string component, connector;
};
struct SspConnection {
  SspEnd from, to;
  double factor = 1.0, offset = 0.0;
  bool converts_units = false;  ///< by who reads it; signals of a scenario are numbers as they are
};
/// A connector of the system.
struct SspConnector {
  std::string name;
  bool is_input = true;
  std::optional<double> value = {};
};

/// What is written of a scenario.
struct SspDraft {
  std::string name, description;
  double start_s = 0.0, end_s = 0.0;
  std::vector<SspComponent> components = {};
  std::vector<SspConnector> connectors = {};
  std::vector<SspConnection> connections = {};
  Json own = Json::object();
  std::vector<std::string> notes = {};
};

/// The draft of a scenario that is sound and without assemblies; paths are relative to `folder`. Defects are added
/// to `issues`, each with its place.
SspDraft draft_ssp(const Json& scenario, const std::filesystem::path& folder, double start_s,
                   double end_s, double step_s, Issues& issues);

/// SystemStructure.ssd, and the parameter set of a component (empty where it has no start values).
std::string structure_description(const SspDraft& draft);
std::string parameter_set(const SspComponent& component);

}  // namespace portwave::exported

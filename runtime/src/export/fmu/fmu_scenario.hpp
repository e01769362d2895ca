#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "portwave/runtime/export/fmu_export.hpp"
#include "portwave/subsystems/core/port.hpp"

namespace portwave::exported {

/// A scenario as JSON, with what the command line sets, and without assemblies. Errors: ScenarioError.
nlohmann::ordered_json expanded_scenario(const ScenarioText& given);

/// A port of the scenario that becomes a power port of the FMU, and the source that stands for the importer.
struct OpenPort {
  std::size_t place = 0;  ///< among the ports that were named
  std::string path;       ///< "part.port"
  std::string source;     ///< name of the part that was added
  std::string asked;      ///< "effort", "flow", or empty
  Causality input = Causality::effort_in;
  Domain domain = Domain::generic;
  std::size_t subsystem = 0, coupling = 0;  ///< their places in the document
  bool is_joined = false;                   ///< by a free or a fixed end, which is replaced
};

/// Blocks of signals that can be set, and their values at the start.
std::map<std::string, double> settable_signals(const Scenario& scenario);

/// A scenario as it is put into an FMU: without assemblies, with sources at open ports, and with settable inputs
/// in place of what the importer drives.
class FmuScenario {
 public:
  /// Errors: ScenarioError.
  explicit FmuScenario(const ScenarioText& given);

  /// Adds sources at ports, at first of no domain; notes ports that cannot be opened.
  void open_ports(const std::vector<std::string>& paths, Issues& issues);
  /// Gives the sources domain and causality of their ports. Notes ports of several components.
  void settle_ports(const System& system, Issues& issues);
  /// Makes inputs, and blocks of signals, settable. `first`: the present document. Notes unknown ones.
  void take_inputs(const std::vector<std::string>& inputs, const Scenario& first, Issues& issues);
  void observe(const std::vector<std::string>& labels);
  /// What no FMU can hold: foreign code, and files that are not named from the scenario's folder down.
  void refuse_what_stays_outside(Issues& issues) const;

  const std::vector<OpenPort>& ports() const { return ports_; }
  std::string about() const;
  std::string text() const { return document_.dump(1) + "\n"; }
  /// Errors: ScenarioError.
  Scenario parse() const;

 private:
  nlohmann::ordered_json* part_named(const std::string& name);
  nlohmann::ordered_json* block_named(const std::string& name);
  std::vector<std::string> input_names(const System& system);
  void write_source(const OpenPort& port);

  const ScenarioText& given_;
  nlohmann::ordered_json document_;
  std::vector<OpenPort> ports_;
};

}  // namespace portwave::exported

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/name_search.hpp"
#include "scenario/scenario_reader.hpp"

namespace portwave::scenario_file {

/// All of a scenario but its name and its system.
struct RunSettings {
  StepperOptions options;
  std::int64_t steps = 0;
  std::vector<Observable> observables;
  int record_every = 1;
};

/// The names that "method" and "outputs" may use.
class Names {
 public:
  explicit Names(const System& system) : system_(system) {}
  /// Of a system that lacks the terminations and these subsystems, which have defects of their own.
  Names(const System& system, std::unordered_set<std::string> missing)
      : system_(system), is_complete_(false), missing_(std::move(missing)) {}

  const System& system() const { return system_; }
  /// True when a path leads to what is lacking, so that nothing can be said about it.
  bool is_missing(const std::string& path) const;

  /// To find what misspelt names mean: subsystems, and paths "part.port".
  NameSearch& parts();
  NameSearch& ports();

 private:
  const System& system_;
  bool is_complete_ = true;
  std::unordered_set<std::string> missing_;
  std::optional<NameSearch> parts_, ports_;
};

/// The number of steps that make `end_s`; nothing unless it is a whole number up to round-off.
std::optional<std::int64_t> whole_steps(double end_s, double step_s);

/// "time".
void read_time(const Node& node, RunSettings& settings);

/// "method", all but what names ports or subsystems.
void read_method(const Node& node, CouplingMethod& method);
/// The impedances, initial waves and fast subsystems of "method".
void read_method_ports(const Node& node, Names& names, CouplingMethod& method);

/// "outputs", all but what names quantities.
void read_outputs(const Node& node, RunSettings& settings);
/// The observed quantities of "outputs".
void read_observables(const Node& node, Names& names, RunSettings& settings);
/// Every state of every part.
std::vector<Observable> all_states(const System& system);

/// The kinds of methods and of impedances, in the order of the documentation.
const std::vector<std::string>& method_kinds();
const std::vector<std::string>& impedance_kinds();
/// Those that are computed, and take no value.
const std::vector<std::string>& tuned_impedance_kinds();

/// The relative tolerance of a method "auto" without a tolerance of its own.
inline constexpr double kAutomaticTolerance = 1e-10;

}  // namespace portwave::scenario_file

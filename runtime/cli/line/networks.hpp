#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/subsystems/base/error.hpp>

#include "line/scenario_file.hpp"
#include "line/verb.hpp"

/// The networks of a scaling study: a scenario file, in several sizes where one of its values says its size, or
/// generated networks of one kind.
namespace portwave::cli {

inline constexpr const char* kScalingFile = "scaling.json";
inline constexpr const char* kScalingTable = "scaling.csv";

struct NetworkArguments {
  ScenarioArguments scenario;
  std::string kind;            ///< of generated networks; "": the scenario file
  std::vector<int> sizes;      ///< of the generated networks, or values of `size_pointer`
  std::string size_pointer{};  ///< JSON pointer to the size of the scenario; "": it has one size
  Certify certify = Certify::energy;

  /// The name for messages: the scenario file, or the kind of network.
  const std::string& name() const { return kind.empty() ? scenario.file : kind; }
};

/// The options that describe the networks, and --certify. `sizes`: what several sizes mean.
void add_networks(Verb& verb, NetworkArguments& networks, const std::string& sizes);
/// --repetitions and --steps.
void add_measurements(Verb& verb, int& repetitions, std::int64_t& steps);

/// All defects of the options together. In weak scaling sizes are as many as the counts of threads or ranks
/// (`counted`), in proportion to them.
Issues check(const NetworkArguments& networks, bool is_weak, const std::vector<int>& counts,
             const std::string& counted);

/// The only network: the scenario file, or the generated network of one size. Errors: ConfigError,
/// ScenarioError, also where a file of the study in `out` is one of the scenario's inputs.
Scenario single_network(const NetworkArguments& networks,
                        const std::optional<std::filesystem::path>& out, StatusLine& status);
/// The generated network, or the scenario, of that size.
Scenario sized_network(const NetworkArguments& networks, int size, StatusLine& status);

}  // namespace portwave::cli

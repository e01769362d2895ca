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

/// The networks of a scaling study: a scenario file, or generated networks of one kind.
namespace portwave::cli {

inline constexpr const char* kScalingFile = "scaling.json";

struct NetworkArguments {
  ScenarioArguments scenario;
  std::string kind;        ///< of generated networks; "": the scenario file
  std::vector<int> sizes;  ///< of them; several: weak scaling
  Certify certify = Certify::energy;

  /// What errors are told of.
  const std::string& name() const { return kind.empty() ? scenario.file : kind; }
  bool is_weak() const { return sizes.size() > 1; }
};

/// The options that describe the networks, --certify among them. `counted`: "thread" or "rank", of which
/// sizes go with the counts.
void add_networks(Verb& verb, NetworkArguments& networks, const std::string& counted);
/// --repetitions and --steps.
void add_measurements(Verb& verb, int& repetitions, std::int64_t& steps);

/// Everything that does not fit together. Several sizes go with as many counts, in proportion.
Issues check(const NetworkArguments& networks, const std::vector<int>& counts,
             const std::string& counted);

/// The only network: the scenario file, or the generated network of one size. Errors: ConfigError,
/// ScenarioError, also where scaling.json or the page in `out` is one of the scenario's inputs.
Scenario single_network(const NetworkArguments& networks,
                        const std::optional<std::filesystem::path>& out, StatusLine& status);
/// The generated network of that size.
Scenario generated_network(const NetworkArguments& networks, int size, StatusLine& status);

}  // namespace portwave::cli

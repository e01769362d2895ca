#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "differential/network.hpp"
#include "differential/reference.hpp"
#include "portwave/coupling/method/splitting.hpp"

namespace portwave::differential {

/// What the engine did with a network.
struct EngineRun {
  std::string refused;  ///< why it was not run; empty: it was
  std::string failed;   ///< why a step was not made; the course ends there
  Course course;
  std::vector<double> stored, supplied,
      dissipated;                ///< its ledger: of the start (stored only) and by step
  std::vector<int> evaluations;  ///< by step
  std::string status;            ///< of the certificate
  std::string method;
  std::int64_t not_converged = 0;
  std::int64_t guarded_steps = 0;  ///< in which the guard acted
  double min_alpha = 1.0;
};

struct EngineSettings {
  bool guard = true;
  double tolerance = 1e-10;
  std::optional<Splitting> without_waves = {};  ///< in place of waves
};

/// Default settings but for what `settings` change.
EngineRun run_engine(const Network& network, const EngineSettings& settings = {});

/// The network as a scenario file with default method, all states and port variables observed.
nlohmann::ordered_json scenario_of(const Network& network);

}  // namespace portwave::differential

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "soak/physics.hpp"

namespace portwave::soak {

/// What can be broken on purpose, to see that it is noticed.
enum class Defect {
  none,
  energy,  ///< a damper gives energy, less per step than the certificate of a step can see
  memory,  ///< something is kept of every step
  clock,   ///< recorded times are added up instead of multiplied
};

/// What a run came to, for people; times are of the processor, and nothing is judged by them.
struct Figures {
  std::int64_t steps = 0;
  double time_s = 0.0;  ///< simulated
  std::string certificate;
  long double stored_at_start_J = 0.0L, stored_J = 0.0L, supplied_J = 0.0L;
  double rounding_J = 0.0;      ///< what the certificate allows for
  double largest_beyond = 0.0;  ///< of H + T − (H₀ + T₀ + supply) in units of rounding_J
  double ledger_difference =
      0.0;              ///< largest difference to the ledger's H, relative to the energies moved
  double error = -1.0;  ///< of the state, where it is known in closed form
  std::size_t rows = 0;
  std::int64_t guarded_steps = 0;
  std::ptrdiff_t resident_growth_bytes = 0, heap_growth_bytes = 0;  ///< after the first fifth
  std::size_t most_subnormal = 0;        ///< states and port variables at once
  double first_ns = 0.0, last_ns = 0.0;  ///< a step in the first and the last tenth
  /// The median of a step in stretches of the run that end with subnormal numbers, and in others.
  double subnormal_ns = 0.0, normal_ns = 0.0;
  std::size_t subnormal_stretches = 0;
};

struct Outcome {
  Figures figures;
  std::vector<std::string> findings;  ///< what is wrong
};

/// Runs a case in `folder`, which its results are written to and read back from.
Outcome run(const Case& what, std::int64_t steps, Defect defect,
            const std::filesystem::path& folder);

}  // namespace portwave::soak

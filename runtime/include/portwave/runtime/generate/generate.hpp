#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Regular networks of catalogue parts, of any size: to try the method on and to measure it.
/// Unless it says otherwise a block is a `mass_spring_damper_chain` of m = 0.3 kg, k = k_c = 50 N/m
/// and r = 0.1 N s/m, with a mass at its left end and a coupling spring at its right.
namespace network {

/// Blocks "b1" … in a line, each spring joined to the mass of the next; both ends free.
struct Chain {
  int blocks = 1;          ///< ≥ 1; closed: ≥ 2
  int masses = 5;          ///< of each block, ≥ 1
  double vary = 0.0;       ///< in [0, 1): each block's m, k, k_c and r differ by up to this part
  std::uint64_t seed = 1;  ///< of those differences
  bool closed = false;     ///< the last block joined to the first: a ring
};

/// `duffing_node`s "n1_1" … by row and column, each joined to its east and south neighbours, the
/// border free. m = 8 kg, k₁ = 100 N/m, k₃ = 8000 N/m³, k₁₂ = 120 N/m, c₁₂ = 0.05 N s/m.
struct Grid {
  int rows = 1;     ///< ≥ 1
  int columns = 1;  ///< ≥ 1
};

/// Blocks "b1" … whose springs meet in one rigid, massless hub: a common-flow junction. Their other
/// ends are free.
struct Star {
  int limbs = 2;   ///< 2 to 1000
  int masses = 5;  ///< of each limb, ≥ 1
};

/// A chain whose middle block has `factor` times as many masses as the others, so that committing
/// its step costs about as many times as much.
struct Imbalanced {
  int parts = 2;          ///< ≥ 2
  int masses = 5;         ///< of the other blocks, ≥ 1
  double factor = 100.0;  ///< ≥ 1
};

}  // namespace network

using Network = std::variant<network::Chain, network::Grid, network::Star, network::Imbalanced>;

/// How a generated scenario is run.
struct GenerateOptions {
  std::optional<double> step_s = {};  ///< > 0; 0.001 unless given, of a grid 0.01
  double duration_s = 1.0;            ///< a whole number of steps
  int iterations = 20;                ///< ≥ 0
  /// One impedance for all ports [N s/m], > 0. Unless given: a share of the smallest matched
  /// impedance (that of the port's own discrete step) of a block.
  std::optional<double> impedance_Ns_per_m = {};
};

/// Every number out of its range, `where` being "/blocks", "/step", … as the command line names
/// them.
Issues check_network(const Network& network, const GenerateOptions& options = {});

/// The scenario file, a part or coupling a line: the same text on every machine. Every tenth part
/// starts moving, the others at rest; a few states are observed.
/// Errors: ConfigError with everything check_network finds, or when the file would be larger than a
/// scenario may be.
std::string generate_scenario(const Network& network, const GenerateOptions& options = {});

}  // namespace portwave

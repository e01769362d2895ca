#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "output/recording/table_reader.hpp"
#include "report/page.hpp"

namespace portwave::report {

/// Energies of a part over a run [J].
struct PartTotals {
  double stored = 0.0, supplied = 0.0, through_ports = 0.0, dissipated = 0.0;
};

/// Sums of energy_parts and energy_junctions; empty where there are no such tables, or they do not
/// fit the network.
struct NetworkEnergies {
  std::vector<PartTotals> parts;             ///< by part; stored: at the end
  std::vector<std::vector<double>> through;  ///< by junction and port: into the part

  static NetworkEnergies read(const nlohmann::json& network, TableReader* parts,
                              TableReader* junctions);
};

/// A node for each part and each junction of more than two ports, a link for each connection; of
/// more than `kMostNodes` parts a node stands for an island, or for neighbours of one, by their
/// number. Nothing where `network` names no parts. `network`: network.json.
std::optional<Network> draw_network(const nlohmann::json& network, const NetworkEnergies& energies);

inline constexpr std::size_t kMostNodes = 300;

}  // namespace portwave::report

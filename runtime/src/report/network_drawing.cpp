#include "report/network_drawing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "report/run_folder.hpp"

namespace portwave::report {
namespace {

using Json = nlohmann::json;

/// Approximate number of nodes in the drawing of many parts.
constexpr std::size_t kGroups = 120;

struct DrawnPart {
  std::string name, type;
  int island;
};

struct DrawnJunction {
  std::vector<std::size_t> parts;  // by port
  std::vector<std::string> ports;
};

struct Topology {
  std::vector<DrawnPart> parts;
  std::vector<DrawnJunction> junctions;
};

int island_of(const Json& part) {
  const double number = number_or(at(part, "island"), 0.0);
  return number >= 0.0 && number <= std::numeric_limits<int>::max() ? static_cast<int>(number) : 0;
}

/// Empty where the JSON does not have the expected form.
std::optional<Topology> topology_of(const Json& network) {
  const Json& parts = at(network, "parts");
  const Json& junctions = at(network, "junctions");
  if (!parts.is_array() || parts.empty() || !junctions.is_array()) return {};
  Topology out;
  for (const Json& part : parts) {
    out.parts.push_back(
        {text_or(at(part, "name"), "?"), text_or(at(part, "type"), "?"), island_of(part)});
  }
  for (const Json& junction : junctions) {
    if (!junction.is_array()) return {};
    DrawnJunction drawn;
    for (const Json& end : junction) {
      const double part = number_or(at(end, "part"), -1.0);
      if (!(part >= 0.0 && part < static_cast<double>(parts.size()))) return {};
      drawn.parts.push_back(static_cast<std::size_t>(part));
      drawn.ports.push_back(text_or(at(end, "port"), "?"));
    }
    out.junctions.push_back(std::move(drawn));
  }
  return out;
}

std::string joules(double energy) { return fmt::format("{:.4g} J", energy); }

/// Which node a part is in.
struct Grouping {
  std::vector<std::size_t> node_of_part;
  std::size_t nodes = 0;
  bool is_coarse = false;
};

/// Islands that are small are one node each; large ones are cut by the numbers of their parts.
Grouping group(const Topology& net) {
  Grouping out;
  out.node_of_part.resize(net.parts.size());
  if (net.parts.size() <= kMostNodes) {
    for (std::size_t i = 0; i < net.parts.size(); ++i) out.node_of_part[i] = i;
    out.nodes = net.parts.size();
    return out;
  }
  out.is_coarse = true;
  const std::size_t parts_of_node = (net.parts.size() + kGroups - 1) / kGroups;
  std::map<int, std::vector<std::size_t>> islands;
  for (std::size_t i = 0; i < net.parts.size(); ++i) islands[net.parts[i].island].push_back(i);
  std::vector<const std::vector<std::size_t>*> by_size;
  for (const auto& [number, members] : islands) by_size.push_back(&members);
  std::ranges::stable_sort(by_size,
                           [](const auto* a, const auto* b) { return a->size() > b->size(); });
  for (const auto* members : by_size) {
    if (out.nodes + 1 >= kMostNodes) {  // all that are left together
      for (const std::size_t i : *members) out.node_of_part[i] = out.nodes;
      continue;
    }
    for (std::size_t k = 0; k < members->size(); ++k) {
      if (k > 0 && k % parts_of_node == 0) ++out.nodes;
      out.node_of_part[(*members)[k]] = out.nodes;
    }
    ++out.nodes;
  }
  out.nodes = 1 + *std::ranges::max_element(out.node_of_part);
  return out;
}

Json node_json(std::string name, std::string type, std::size_t count, bool is_junction,
               std::string says) {
  return {{"name", std::move(name)},
          {"type", std::move(type)},
          {"count", count},
          {"junction", is_junction},
          {"says", std::move(says)}};
}

std::string says_of(const PartTotals& totals) {
  return fmt::format(
      "; at the end it stores {}, it was supplied {}, took {} through its ports and "
      "dissipated {}",
      joules(totals.stored), joules(totals.supplied), joules(totals.through_ports),
      joules(totals.dissipated));
}

void add_nodes(const Topology& net, const Grouping& groups, const NetworkEnergies& energies,
               Network& out) {
  std::vector<std::vector<std::size_t>> members(groups.nodes);
  for (std::size_t i = 0; i < net.parts.size(); ++i) members[groups.node_of_part[i]].push_back(i);
  for (const std::vector<std::size_t>& own : members) {
    PartTotals totals;
    std::map<std::string, std::size_t> types;
    std::set<int> islands;
    for (const std::size_t i : own) {
      ++types[net.parts[i].type];
      islands.insert(net.parts[i].island);
      if (energies.parts.empty()) continue;
      totals.stored += energies.parts[i].stored;
      totals.supplied += energies.parts[i].supplied;
      totals.through_ports += energies.parts[i].through_ports;
      totals.dissipated += energies.parts[i].dissipated;
    }
    const auto most = std::ranges::max_element(
        types, [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::string energy = energies.parts.empty() ? "" : says_of(totals);
    const DrawnPart& first = net.parts[own.front()];
    if (own.size() == 1) {
      out.nodes.push_back(node_json(first.name, first.type, 1, false,
                                    fmt::format("{}: {}{}", first.name, first.type, energy)));
      continue;
    }
    const std::string name = islands.size() > 1
                                 ? fmt::format("{} islands", islands.size())
                                 : fmt::format("{} … {}", first.name, net.parts[own.back()].name);
    std::string kinds;
    for (const auto& [type, count] : types) {
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, type);
      if (kinds.size() > 120) break;
    }
    out.nodes.push_back(
        node_json(name, most->first, own.size(), false,
                  fmt::format("{} (island {}): {} parts, {}{}", name,
                              islands.size() > 1 ? "several" : std::to_string(first.island),
                              own.size(), kinds, energy)));
  }
}

/// Flows between two nodes, and junctions of more than two.
void add_links(const Topology& net, const Grouping& groups, const NetworkEnergies& energies,
               Network& out) {
  std::map<std::pair<std::size_t, std::size_t>, double> links;  // energy into the second one
  std::set<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t j = 0; j < net.junctions.size(); ++j) {
    const DrawnJunction& junction = net.junctions[j];
    const std::vector<double>* through = energies.through.empty() ? nullptr : &energies.through[j];
    std::vector<double> into(junction.parts.size(), 0.0);
    if (through != nullptr) into = *through;
    std::map<std::size_t, double> nodes;
    for (std::size_t k = 0; k < junction.parts.size(); ++k) {
      nodes[groups.node_of_part[junction.parts[k]]] += into[k];
    }
    if (nodes.size() < 2) continue;
    if (nodes.size() == 2) {
      links[{nodes.begin()->first, nodes.rbegin()->first}] += nodes.rbegin()->second;
      continue;
    }
    std::string says = "joins";
    for (std::size_t k = 0; k < junction.parts.size() && k < 8; ++k) {
      says += fmt::format("{} {}.{}", k == 0 ? "" : ",", net.parts[junction.parts[k]].name,
                          junction.ports[k]);
    }
    if (junction.parts.size() > 8) says += fmt::format(" and {} more", junction.parts.size() - 8);
    const std::size_t own = out.nodes.size();
    out.nodes.push_back(node_json("", "junction", 1, true, std::move(says)));
    for (const auto& [node, energy] : nodes) links[{own, node}] += energy;
  }
  for (const auto& [ends, energy] : links) {
    Json link = {{"a", ends.first}, {"b", ends.second}};
    if (!energies.through.empty()) link["energy_J"] = energy;
    out.links.push_back(std::move(link));
  }
}

bool sum_rows(TableReader& table, std::vector<double>& sums, std::vector<double>& last) {
  sums.assign(table.columns().size(), 0.0);
  std::vector<double> row;
  bool any = false;
  while (table.next(row)) {
    for (std::size_t i = 0; i < row.size(); ++i) sums[i] += row[i];
    last = row;
    any = true;
  }
  return any;
}

/// Numbers of columns by name; the HDF5 file has them in another order.
std::map<std::string, std::size_t> places_of(const TableReader& table) {
  std::map<std::string, std::size_t> out;
  for (std::size_t i = 0; i < table.columns().size(); ++i) out[table.columns()[i]] = i;
  return out;
}

}  // namespace

NetworkEnergies NetworkEnergies::read(const Json& network, TableReader* parts,
                                      TableReader* junctions) {
  NetworkEnergies out;
  const std::optional<Topology> net = topology_of(network);
  if (!net || parts == nullptr || junctions == nullptr) return out;
  std::vector<double> sums, last;
  if (!sum_rows(*parts, sums, last)) return out;
  auto places = places_of(*parts);
  for (const DrawnPart& part : net->parts) {
    const auto of = [&](const char* what, const std::vector<double>& from) {
      const auto found = places.find(part.name + what);
      return found == places.end() ? 0.0 : from[found->second];
    };
    out.parts.push_back({of(".stored_J", last), of(".supplied_J", sums),
                         of(".through_ports_J", sums), of(".dissipated_J", sums)});
  }
  if (!sum_rows(*junctions, sums, last)) return out;
  places = places_of(*junctions);
  for (const DrawnJunction& junction : net->junctions) {
    std::vector<double> through;
    for (std::size_t k = 0; k < junction.parts.size(); ++k) {
      const std::string port = net->parts[junction.parts[k]].name + "." + junction.ports[k];
      double energy = 0.0;
      if (const auto found = places.find(port + ".through_J"); found != places.end()) {
        energy = sums[found->second];
      }
      for (int c = 0;; ++c) {  // the components of a wider port
        const auto found = places.find(fmt::format("{}[{}].through_J", port, c));
        if (found == places.end()) break;
        energy += sums[found->second];
      }
      through.push_back(energy);
    }
    out.through.push_back(std::move(through));
  }
  return out;
}

std::optional<Network> draw_network(const Json& network, const NetworkEnergies& energies) {
  const std::optional<Topology> net = topology_of(network);
  if (!net) return {};
  const Grouping groups = group(*net);
  Network out;
  add_nodes(*net, groups, energies, out);
  add_links(*net, groups, energies, out);
  const auto islands = static_cast<std::size_t>(number_or(at(network, "islands"), 1.0));
  out.summary = fmt::format("{} part{} in {} island{}, {} junction{}", net->parts.size(),
                            net->parts.size() == 1 ? "" : "s", islands, islands == 1 ? "" : "s",
                            net->junctions.size(), net->junctions.size() == 1 ? "" : "s");
  if (groups.is_coarse) {
    out.note = "A circle stands for an island, or for neighbouring parts of one. ";
  }
  out.note += energies.through.empty()
                  ? "With `\"energies\": true` in the scenario's outputs lines are as wide as the "
                    "energy that went along them."
                  : "Lines are as wide as the energy that went along them in all.";
  return out;
}

}  // namespace portwave::report

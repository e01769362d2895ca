#include "output/summary/network_json.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

using Json = nlohmann::ordered_json;

Json parts_json(const System& system) {
  Json parts = Json::array();
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Part& part = system.parts()[i];
    parts.push_back({{"name", part.name},
                     {"type", std::string(part.component->signature().type)},
                     {"island", system.island_of_part(static_cast<int>(i))}});
  }
  return parts;
}

Json junction_json(const System& system, const Junction& junction) {
  Json ports = Json::array();
  std::pair<int, int> before = {-1, -1};
  for (const int wave : junction.waves) {
    const ScalarPort& scalar = system.scalar_ports()[at(wave)];
    const std::pair<int, int> own = {scalar.part, scalar.port};
    if (std::exchange(before, own) == own) continue;
    const Part& part = system.parts()[at(scalar.part)];
    ports.push_back(
        {{"part", scalar.part}, {"port", part.component->signature().ports[at(scalar.port)].name}});
  }
  return ports;
}

}  // namespace

std::string network_json(const System& system, std::span<const Quantity> quantities) {
  Json units = Json::object();
  for (const Quantity& one : quantities) units[one.label] = one.unit;
  Json parts = Json::array(), junctions = Json::array();
  if (system.parts().size() <= kMostPartsTold) {
    parts = parts_json(system);
    for (const Junction& junction : system.junctions()) {
      junctions.push_back(junction_json(system, junction));
    }
  }
  return Json{{"part_count", system.parts().size()}, {"junction_count", system.junctions().size()},
              {"islands", system.island_count()},    {"units", std::move(units)},
              {"parts", std::move(parts)},           {"junctions", std::move(junctions)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace portwave

#include "system/domain_hints.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace portwave {
namespace {

struct DomainPair {
  Domain first;
  Domain second;
  std::string_view joined_by;
};

constexpr std::array kDomainPairs = {
    DomainPair{Domain::electrical, Domain::rotation,
               "a part of type \"dc_motor\", or a gyrator whose ratio is the motor constant"},
    DomainPair{Domain::electrical, Domain::translation,
               "a gyrator whose ratio is the force per current, as of a voice coil"},
    DomainPair{Domain::electrical, Domain::magnetic,
               "a gyrator whose ratio is the number of turns of the winding"},
    DomainPair{Domain::rotation, Domain::translation,
               "a part of type \"rack_and_pinion\", or a transformer, the rotation port first, "
               "whose ratio is the radius"},
    DomainPair{Domain::hydraulic, Domain::translation,
               "a transformer, the translation port first, whose ratio is the area of the piston"},
    DomainPair{
        Domain::hydraulic, Domain::rotation,
        "a transformer, the rotation port first, whose ratio is the volume that the pump moves per "
        "radian"},
};

}  // namespace

std::string hint_for_domains(Domain first, Domain second) {
  for (const DomainPair& pair : kDomainPairs) {
    if ((pair.first == first && pair.second == second) ||
        (pair.first == second && pair.second == first)) {
      return fmt::format(". Between {} and {}: {}", to_string(pair.first), to_string(pair.second),
                         pair.joined_by);
    }
  }
  return {};
}

}  // namespace portwave

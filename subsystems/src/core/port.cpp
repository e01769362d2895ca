#include "portwave/subsystems/core/port.hpp"

namespace portwave {

DomainUnits units(Domain domain) {
  switch (domain) {
    case Domain::generic:
      return {"", "", ""};
    case Domain::translation:
      return {"N", "m/s", "N s/m"};
    case Domain::rotation:
      return {"N m", "rad/s", "N m s/rad"};
    case Domain::electrical:
      return {"V", "A", "ohm"};
    case Domain::magnetic:
      return {"A", "Wb/s", "A s/Wb"};
    case Domain::hydraulic:
      return {"Pa", "m^3/s", "Pa s/m^3"};
    case Domain::thermal:
      return {"K", "W/K", "K^2/W"};
  }
  return {"", "", ""};
}

std::string_view to_string(Domain domain) {
  switch (domain) {
    case Domain::generic:
      return "generic";
    case Domain::translation:
      return "translation";
    case Domain::rotation:
      return "rotation";
    case Domain::electrical:
      return "electrical";
    case Domain::magnetic:
      return "magnetic";
    case Domain::hydraulic:
      return "hydraulic";
    case Domain::thermal:
      return "thermal";
  }
  return "unknown";
}

std::string_view to_string(Causality causality) {
  return causality == Causality::effort_in ? "effort_in" : "flow_in";
}

}  // namespace portwave

#include "portwave/coupling/method.hpp"

namespace portwave {

std::string_view to_string(MethodKind kind) {
  switch (kind) {
    case MethodKind::douglas_rachford:
      return "douglas-rachford";
    case MethodKind::peaceman_rachford:
      return "peaceman-rachford";
    case MethodKind::automatic:
      return "auto";
  }
  return "unknown";
}

std::string_view to_string(ImpedanceKind kind) {
  switch (kind) {
    case ImpedanceKind::given:
      return "given";
    case ImpedanceKind::fne:
      return "fne";
    case ImpedanceKind::matched:
      return "matched";
    case ImpedanceKind::leaf:
      return "leaf";
    case ImpedanceKind::adapted:
      return "adapted";
    case ImpedanceKind::automatic:
      return "auto";
  }
  return "unknown";
}

}  // namespace portwave

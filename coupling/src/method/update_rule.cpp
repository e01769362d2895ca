#include "portwave/coupling/method/update_rule.hpp"

#include <array>

#include "portwave/coupling/method/method.hpp"

namespace portwave {

std::span<const UpdateRule* const> update_rules() {
  static const std::array<const UpdateRule*, 2> rules = {&douglas_rachford(), &peaceman_rachford()};
  return rules;
}

const UpdateRule* update_rule_of(MethodKind kind) {
  switch (kind) {
    case MethodKind::douglas_rachford:
      return &douglas_rachford();
    case MethodKind::peaceman_rachford:
    case MethodKind::interface:
      return &peaceman_rachford();
    case MethodKind::automatic:
    case MethodKind::strang:
    case MethodKind::impulse:
    case MethodKind::lions_mercier:
    case MethodKind::jacobi:
    case MethodKind::gauss_seidel:
      return nullptr;
  }
  return nullptr;
}

InnerUpdate inner_update_of(const CouplingMethod& method) {
  const UpdateRule* rule =
      method.own_rule != nullptr ? method.own_rule : update_rule_of(method.kind);
  return {rule, method.relaxation};
}

}  // namespace portwave

#include "portwave/coupling/method/update_rule.hpp"

#include <array>

#include "portwave/coupling/method/wave_coupling.hpp"

namespace portwave {

std::span<const UpdateRule* const> update_rules() {
  static const std::array<const UpdateRule*, 2> rules = {&douglas_rachford(), &peaceman_rachford()};
  return rules;
}

const UpdateRule* update_rule_of(WaveUpdate kind) {
  switch (kind) {
    case WaveUpdate::douglas_rachford:
      return &douglas_rachford();
    case WaveUpdate::peaceman_rachford:
    case WaveUpdate::interface:
      return &peaceman_rachford();
    case WaveUpdate::automatic:
      return nullptr;
  }
  return nullptr;
}

InnerUpdate inner_update_of(const WaveCoupling& method) {
  const UpdateRule* rule =
      method.own_rule != nullptr ? method.own_rule : update_rule_of(method.kind);
  return {rule, method.relaxation};
}

}  // namespace portwave

#include <fmt/format.h>

#include "portwave/coupling/method/update_rule.hpp"

namespace portwave {
namespace {

/// The wave iteration: S and P are the reflected resolvents of parts and junctions, so that
/// u ← P b̂ is Peaceman–Rachford, and u ← (1 − θ)u + θ P b̂ its average with the identity.
/// For θ < 1 it converges where every part map is nonexpansive, whatever the impedances are.
class PeacemanRachford final : public UpdateRule {
 public:
  std::string_view name() const override { return "peaceman-rachford"; }
  std::string title(double relaxation) const override {
    if (relaxation == 0.5) return "The averaged wave iteration";
    if (relaxation == 1.0) return "Peaceman-Rachford";
    return fmt::format("Peaceman-Rachford (relaxation {:g})", relaxation);
  }

  RelaxationRange relaxation_range() const override { return {1.0, true}; }
  PartCondition part_condition() const override { return PartCondition::nonexpansive; }
  double fejer_gain(double theta) const override { return (1.0 - theta) / theta; }

  JunctionPasses passes(double theta) const override {
    if (theta == 1.0) return {{JunctionPass::Kind::exchange, 1.0}};
    return {{JunctionPass::Kind::average, theta}};
  }
};

}  // namespace

const UpdateRule& peaceman_rachford() {
  static const PeacemanRachford rule;
  return rule;
}

}  // namespace portwave

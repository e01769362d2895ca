#include <fmt/format.h>

#include "portwave/coupling/method/update_rule.hpp"

namespace portwave {
namespace {

/// The iteration of arXiv 2603.16424, eq. 25. With R = (2I − P)⁻¹ and g = P b̂ − u,
///   R(2b̂ − u) − b̂ = R(2b̂ − u − 2b̂ + P b̂) = R g,
/// so that the update is u ← u + λ R g, and vanishes to the last bit at the fixed point.
/// Converges where every part map is firmly nonexpansive, which bounds the impedances.
class DouglasRachford final : public UpdateRule {
 public:
  std::string_view name() const override { return "douglas-rachford"; }
  std::string title(double relaxation) const override {
    if (relaxation == 1.0) return "Douglas-Rachford";
    return fmt::format("Douglas-Rachford (relaxation {:g})", relaxation);
  }

  RelaxationRange relaxation_range() const override { return {2.0, false}; }
  PartCondition part_condition() const override { return PartCondition::firmly_nonexpansive; }
  double fejer_gain(double lambda) const override { return (2.0 - lambda) / lambda; }

  JunctionPasses passes(double lambda) const override {
    return {{JunctionPass::Kind::resolve, lambda}};
  }
};

}  // namespace

const UpdateRule& douglas_rachford() {
  static const DouglasRachford rule;
  return rule;
}

}  // namespace portwave

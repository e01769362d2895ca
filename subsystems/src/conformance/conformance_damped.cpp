#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/conformance_tools.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave {

using namespace conformance;

namespace {

/// All states damped, on both kinds of nodes; and every second one, where single states may be.
std::vector<StageRule> rules_of(const Subsystem& part, int stages) {
  constexpr std::uint64_t kEverySecond = 0x5555555555555555;
  std::vector<StageRule> out = {damped(stage_rule(stages, StageNodes::gauss)),
                                damped(stage_rule(stages, StageNodes::radau))};
  if (part.signature().state_size() > 1 && can_damp_single_states(part)) {
    out.push_back(damped(stage_rule(stages, StageNodes::radau), {.conserved = kEverySecond}));
  }
  return out;
}

}  // namespace

LawReport check_damped_stages(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("damped_stages");
  const Signature& signature = part.signature();
  if (signature.state_size() == 0) return std::move(tally).report();
  Random random(options.seed);
  for (int stages = 1; stages <= kMostStages; ++stages) {
    if (!damping_defect(part, stages).empty()) continue;
    for (const StageRule& rule : rules_of(part, stages)) {
      const auto staged =
          staged_part(std::shared_ptr<const Component>(&part, [](const Component*) {}), rule);
      const Component* const alone[] = {staged.get()};
      const std::string name =
          fmt::format("{} damped stage{}, {} nodes{}", stages, stages == 1 ? "" : "s",
                      rule.nodes == StageNodes::gauss ? "Gauss" : "Radau",
                      rule.conserved != 0 ? ", every second state conserved" : "");
      sweep(part, options, [&](Sampler& sampler, double h, const std::string& at) {
        const std::string where = fmt::format("{}, {}", name, at);
        const VectorXd impedance = sampler.impedance(), x = sampler.state();
        const bool is_exact = part.is_linear() || stages == 1;
        if (!is_exact && !(h * fastest_rate(part, x, impedance) < 0.05)) return;
        const VectorXd a = random.vector(signature.wave_size() * stages, options.wave_scale);
        const VectorXd u = random.vector(signature.input_size() * stages, options.input_scale);
        tally.see_rule(name);
        FrozenMap map(staged->make_batch(alone), h, impedance.replicate(stages, 1), x, u);
        const FrozenMap::Outcome out = map.advance(a);
        if (!out.status.ok()) {
          return tally.fail(fmt::format("port solve: {}, {}", to_string(out.status.fault), where));
        }
        // A stiffness that begins on the way counts, too.
        if (!is_exact && !(h * fastest_rate(part, out.x_next, impedance) < 0.05)) return;
        const StepEnergy& energy = out.energy;
        const double stored = part.storage(out.x_next.data()) - part.storage(x.data());
        const double supplied =
            0.5 * (a.squaredNorm() - out.b.squaredNorm()) + energy.external_supply_J;
        const double allowed =
            1e-12 * (energy_size(part, x, a, out) + energy.numerical_dissipation_J);
        const double defect = stored - supplied + energy.dissipated_J;
        tally.see(std::abs(defect), allowed,
                  [&] { return fmt::format("energy balance off by {:.3e} J, {}", defect, where); });
        tally.see(-energy.numerical_dissipation_J, allowed, [&] {
          return fmt::format("numerical dissipation {:.3e} J < 0, {}",
                             energy.numerical_dissipation_J, where);
        });
        if (part.is_active()) return;
        tally.see(energy.numerical_dissipation_J - energy.dissipated_J, allowed, [&] {
          return fmt::format("numerical dissipation {:.3e} J of {:.3e} J, {}",
                             energy.numerical_dissipation_J, energy.dissipated_J, where);
        });
      });
    }
  }
  return std::move(tally).report();
}

}  // namespace portwave

#include "conformance/conformance_tools.hpp"

// Under a constant load a part with losses comes to rest: its increments become as small as round-off,
// and every step on the way there must be found.

namespace portwave {
namespace {

using conformance::energy_size;
using conformance::fastest_rate;
using conformance::FrozenMap;
using conformance::own_batch;
using conformance::Sampler;
using conformance::Tally;
using Eigen::VectorXd;

constexpr int kSteps = 400;

/// From a random state, with incident waves of e + γf = √(2γ)w and inputs that stay.
void hold(const Subsystem& part, Sampler& sampler, const VectorXd& impedance, VectorXd x, double h,
          const std::string& where, Tally& tally) {
  FrozenMap map(own_batch(part), h, impedance, std::move(x), sampler.inputs());
  const VectorXd a = std::sqrt(h) * sampler.waves();
  for (int k = 0; k < kSteps; ++k) {
    const auto at = [&] { return fmt::format("step {} of h={:g}, {}", k, h, where); };
    const FrozenMap::Outcome out = map.advance(a);
    if (!out.status.ok()) {
      tally.fail(fmt::format("port solve: {}, {}", to_string(out.status.fault), at()));
      return;
    }
    const double supplied =
        0.5 * (a.squaredNorm() - out.b.squaredNorm()) + out.energy.external_supply_J;
    const double defect = out.energy.change_J - supplied + out.energy.dissipated_J;
    tally.see(std::abs(defect), 1e-12 * energy_size(part, map.state(), a, out),
              [&] { return fmt::format("energy balance off by {:.3e} J, {}", defect, at()); });
    map.move_to(out.x_next);
  }
}

}  // namespace

LawReport check_rest_under_load(const Subsystem& part, const ConformanceOptions& options) {
  Tally tally("rest_under_load");
  Sampler sampler(part, options);
  if (sampler.usual().size() == 0) return std::move(tally).report();
  for (int trial = 0; trial < options.trials; ++trial) {
    const std::string where = fmt::format("trial={}, seed={}", trial, options.seed);
    const VectorXd impedance = sampler.impedance(), x = sampler.state();
    const double rate = fastest_rate(part, x, impedance);
    if (!(rate > 0.0) || !std::isfinite(rate)) continue;
    for (const double share : {0.05, 0.5}) {
      hold(part, sampler, impedance, x, share / rate, where, tally);
    }
  }
  return std::move(tally).report();
}

}  // namespace portwave

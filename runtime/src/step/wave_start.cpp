#include "step/wave_start.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <Eigen/Core>
#include <fmt/format.h>

namespace portwave {

AlignedVector initial_waves(const WaveDiscretisation& waves, const WaveCoupling& method) {
  AlignedVector out(static_cast<std::size_t>(waves.wave_size()), 0.0);
  const std::vector<double>& by_port = method.initial_waves;
  for (std::size_t j = 0; j < by_port.size(); ++j) {
    out[static_cast<std::size_t>(waves.wave_of_port(static_cast<int>(j)))] = by_port[j];
  }
  return out;
}

void refuse_non_finite_start(const WaveDiscretisation& waves, const EnergyLedger& ledger,
                             std::span<const double> b, const TankOptions& tank) {
  Issues issues;
  for (std::size_t i = 0; i < waves.slots().size(); ++i) {
    if (std::isfinite(ledger.storage(static_cast<int>(i)))) continue;
    issues.push_back({fmt::format("/subsystems/{}/initial_state", i),
                      "the stored energy of this state is not finite"});
  }
  if (issues.empty() && !std::isfinite(ledger.totals().initial_tank_J)) {
    const bool by_waves = !tank.initial_J && std::isfinite(half_square(waves, b));
    issues.push_back({by_waves || tank.initial_J ? "/method/tank" : "/method/initial_waves",
                      "the energy that the tanks start with is not finite"});
  } else if (issues.empty() && !std::isfinite(half_square(waves, b))) {
    issues.push_back({"/method/initial_waves", "the energy of these waves is not finite"});
  }
  throw_if_any(std::move(issues));
}

// As WaveTransform has it wave by wave, in the same order of operations.
void rescatter(const WaveDiscretisation& waves, std::span<const double> old, double old_step_s,
               std::span<double> a, std::span<double> b) {
  constexpr Eigen::Index kBlock = 64;
  using Values = Eigen::Array<double, Eigen::Dynamic, 1, Eigen::ColMajor, kBlock, 1>;
  const double step_s = waves.step_s();
  const auto size = static_cast<Eigen::Index>(old.size());
  for (Eigen::Index first = 0; first < size; first += kBlock) {
    const Eigen::Index count = std::min(kBlock, size - first);
    const Eigen::Map<const Eigen::ArrayXd> before(old.data() + first, count);
    const Eigen::Map<const Eigen::ArrayXd> gamma(waves.impedance().data() + first, count);
    Eigen::Map<Eigen::ArrayXd> incident(a.data() + first, count), outgoing(b.data() + first, count);
    const bool same_step = old_step_s == step_s;
    if (same_step && (before == gamma).all()) continue;
    const Values old_scale = (2.0 * before / old_step_s).sqrt();
    const Values scale = (2.0 * gamma / step_s).sqrt();
    const Values effort = 0.5 * old_scale * (incident + outgoing);
    const Values across = gamma * (0.5 * old_scale / before * (incident - outgoing));
    const Values new_incident = (effort + across) / scale, new_outgoing = (effort - across) / scale;
    if (same_step) {  // waves that keep their impedance keep their bits
      incident = (before == gamma).select(incident, new_incident);
      outgoing = (before == gamma).select(outgoing, new_outgoing);
    } else {
      incident = new_incident;
      outgoing = new_outgoing;
    }
  }
}

double half_square(const WaveDiscretisation& waves, std::span<const double> wave) {
  const auto add = [&](double& sum, int part) {
    const PartSlot& slot = waves.slot(part);
    const int ports = waves.batch(slot.batch).batch->wave_size();
    for (int j = 0; j < ports; ++j) {
      const double own = wave[static_cast<std::size_t>(slot.wave + j * slot.stride)];
      sum += own * own;
    }
  };
  return 0.5 * waves.reduction().fold_all(0.0, add);
}

}  // namespace portwave

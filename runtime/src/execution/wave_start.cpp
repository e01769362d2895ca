#include "execution/wave_start.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/impedance/wave_scale.hpp"
#include "portwave/subsystems/core/wave.hpp"

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

std::vector<char> islands_at_risk(const WaveDiscretisation& waves, const WaveCoupling& method) {
  if (!method.guard || method.impedance_kind != ImpedanceKind::given) return {};
  const PortResponses responses(waves.system(), waves.step_s());
  std::vector<double> by_port;
  for (int port = 0; port < static_cast<int>(waves.system().scalar_ports().size()); ++port) {
    by_port.push_back(waves.impedance()[static_cast<std::size_t>(waves.wave_of_port(port))]);
  }
  return islands_drowned_by_waves(responses, by_port);
}

void rescatter(const WaveDiscretisation& waves, std::span<const double> old, double old_step_s,
               std::span<double> a, std::span<double> b) {
  const bool same_step = old_step_s == waves.step_s();
  for (std::size_t w = 0; w < old.size(); ++w) {
    const double gamma = waves.impedance()[w];
    if (gamma == old[w] && same_step) continue;
    const EffortFlow port = WaveTransform(old[w], old_step_s).to_effort_flow({a[w], b[w]});
    const WavePair wave = WaveTransform(gamma, waves.step_s()).to_waves(port);
    a[w] = wave.incident;
    b[w] = wave.outgoing;
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

#include "step/non_finite.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "step/waves/wave_start.hpp"

namespace portwave {

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

std::optional<FoundFault> find_non_finite(const WaveDiscretisation& waves,
                                          const InnerUpdate& update, double* record,
                                          const double* input, std::span<const double> b,
                                          int noticed_at, std::span<const IslandOutcome> outcomes) {
  const bool at_commit = noticed_at == TaskOutcome::kCommit;
  int last = at_commit ? 0 : noticed_at;
  for (const IslandOutcome& outcome : outcomes) {
    if (at_commit) last = std::max(last, outcome.iterations);
  }
  WaveIteration iteration(waves, update, WaveIteration::Scatter::inexact);
  const auto spoiled = [&](int part) {
    const PartSlot& slot = waves.slot(part);
    for (int j = 0; j < waves.batch(slot.batch).batch->wave_size(); ++j) {
      const double own = iteration.b()[static_cast<std::size_t>(slot.wave + j * slot.stride)];
      if (!std::isfinite(own)) return true;
    }
    return false;
  };
  // Warm starts may hold the NaN.
  PhaseStatus status = waves.freeze_all(record, input);
  if (!status.ok()) return FoundFault{-1, std::move(status)};
  iteration.start(b);
  for (int k = 0; k < last; ++k) {
    if (k > 0) iteration.update();
    status = iteration.evaluate(record);
    const int part = waves.reduction().first_part([&](int candidate) {
      const int island = waves.system().island_of_part(candidate);
      const IslandOutcome& outcome = outcomes[static_cast<std::size_t>(island)];
      if ((at_commit || outcome.converged) && k >= outcome.iterations) return false;
      return (!status.ok() && status.part == candidate) || spoiled(candidate);
    });
    if (part < 0) continue;
    if (status.part == part) return FoundFault{k, std::move(status)};
    return FoundFault{k, {part, StepFault::not_finite, {}}};
  }
  return std::nullopt;
}

}  // namespace portwave

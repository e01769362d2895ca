// What an energy ledger books between steps: parts that were exchanged, and impulses; and parts that are metered, but
// have no source.

#include <algorithm>
#include <cmath>
#include <optional>

#include "energy/island_accounts.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/opaque_facets.hpp"

namespace portwave {

void EnergyLedger::find_held() {
  for (const int part : metered_) {
    const Component& component = *waves_.system().parts()[at(part)].component;
    const auto* const limited = dynamic_cast<const HoldsEnergy*>(&component);
    const auto held_J = limited == nullptr ? std::nullopt : limited->held_J();
    if (held_J) held_.push_back({waves_.slot(part).entry, *held_J, 0.0});
  }
}

void EnergyLedger::judge_held(int first, int last) {
  // Where the work of a step is not exact, as of means without an integral, what goes to and fro has an error.
  constexpr double kOfExchange = 1e-3;
  for (const Held& own : held_) {
    if (own.entry < first || own.entry >= last) continue;
    const double exchanged_J = own.exchanged_J + std::abs(column(kChange)[own.entry]);
    const double beyond_J = -column(kStorage)[own.entry] - own.held_J - kOfExchange * exchanged_J;
    column(kResidual)[own.entry] = std::max(0.0, beyond_J);
  }
}

void EnergyLedger::revalue(int part, double more_J) {
  column(kStorageBefore)[waves_.slot(part).entry] += more_J;
  revalued_J_ += more_J;
  accounts_->revalue(waves_.system().island_of_part(part), more_J);
  if (!adds_up_) return;
  stored_.add(more_J);
  run_.supplied.add(more_J);
  totals_.supplied_J = run_.supplied.value();
  totals_.final_J = stored_.value();
  totals_.max_J = std::max(totals_.max_J, totals_.final_J);
}

void EnergyLedger::impulse(std::span<const ImpulseAtPart> parts, bool is_start) {
  std::erase_if(impulses_, [this](const KnownImpulse& own) { return own.step < steps_ - 1; });
  for (const ImpulseAtPart& own : parts) {
    const PartSlot& slot = waves_.slot(static_cast<int>(own.part));
    impulses_.push_back({is_start ? -1 : steps_, own});
    if (!is_start) jumped_.add(own.energies);
    column(kStorageBefore)[slot.entry] += own.energies.changed_J;
    accounts_->add_impulse(waves_.system().island_of_part(static_cast<int>(own.part)),
                           own.energies);
    if (!adds_up_) continue;
    stored_.add(own.energies.changed_J);
    run_.supplied.add(own.energies.supplied_J);
    run_.impact.add(own.energies.impact_J);
  }
  accounts_->end_impulse();
  if (!adds_up_) return;
  totals_.supplied_J = run_.supplied.value();
  totals_.impact_J = run_.impact.value();
  totals_.final_J = stored_.value();
  totals_.max_J = std::max(totals_.max_J, totals_.final_J);
}

}  // namespace portwave

// What an energy ledger books between steps: parts that were exchanged, and impulses.

#include <algorithm>

#include "energy/island_accounts.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

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

// The findings of an energy ledger on a run and on its islands.

#include <algorithm>

#include "energy/island_accounts.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {

double EnergyLedger::storage(int part) const {
  return column(kStorageBefore)[waves_.slot(part).entry];
}

PartEnergies EnergyLedger::part_energies(int part) const {
  PartEnergies out;
  if (steps_ > 0) {
    const int entry = waves_.slot(part).entry;
    out = {.changed_J = column(kChange)[entry],
           .supplied_J = column(kSupply)[entry],
           .through_ports_J = -column(kMismatch)[entry],
           .dissipated_J = column(kDissipated)[entry] - column(kNumerical)[entry],
           .numerical_dissipation_J = column(kNumerical)[entry]};
  }
  for (const KnownImpulse& own : impulses_) {
    if (own.at_part.part != part || own.step != steps_ - 1) continue;
    const ImpulseEnergies& energies = own.at_part.energies;
    out.changed_J += energies.changed_J;
    out.supplied_J += energies.supplied_J;
    out.through_ports_J += energies.changed_J + energies.impact_J - energies.supplied_J;
    out.impact_J += energies.impact_J;
  }
  return out;
}

EnergyTotals EnergyLedger::totals() const {
  EnergyTotals out = adds_up_ ? totals_ : accounts_->totals(0);
  out.metered_J = metered_J_.value();
  for (const CompensatedSum& own : numerical_in_all_J_) {
    out.numerical_dissipation_J += own.value();
  }
  if (!adds_up_) out.dissipated_J -= out.numerical_dissipation_J;
  return out;
}

EnergyTotals EnergyLedger::totals(int island) const {
  if (!accounts_->is_open(island)) return kept_[at(island)]->totals;
  EnergyTotals out = accounts_->totals(island);
  if (damps_) out.numerical_dissipation_J = numerical_in_all_J_[at(island)].value();
  out.dissipated_J -= out.numerical_dissipation_J;
  return out;
}

const LawFinding& EnergyLedger::finding(int island) const { return accounts_->finding(island); }

LawFinding EnergyLedger::finding() const {
  LawFinding out = finding(0);
  for (int island = 1; island < accounts_->count(); ++island) {
    const LawFinding& own = finding(island);
    out.is_part_active = out.is_part_active || own.is_part_active;
    const bool is_as_bad = own.worst_ratio == out.worst_ratio;
    const bool is_earlier = own.worst_step < out.worst_step ||
                            (own.worst_step == out.worst_step && own.worst_part < out.worst_part);
    if (own.worst_ratio > out.worst_ratio || (is_as_bad && is_earlier)) {
      out.worst_ratio = own.worst_ratio;
      out.worst_part = own.worst_part;
      out.worst_step = own.worst_step;
    }
    if (own.broken_law && (!out.broken_law || own.broken_law->step < out.broken_law->step)) {
      out.broken_law = own.broken_law;
    }
    const auto is_larger = [](const EnergyGrowth& a, const EnergyGrowth& b) {
      return a.beyond_J > b.beyond_J || (a.beyond_J == b.beyond_J && a.step < b.step);
    };
    if (own.growth && (!out.growth || is_larger(*own.growth, *out.growth))) out.growth = own.growth;
  }
  return out;
}

Certificate EnergyLedger::certificate(int island) const {
  if (!accounts_->is_open(island)) return kept_[at(island)]->certificate;
  const LawFinding& finding = accounts_->finding(island);
  Certificate out;
  const bool is_judged = accounts_->is_judged(island);
  if (finding.growth || !is_judged) out.status = CertificateStatus::conditional;
  if (finding.is_part_active || finding.broken_law) out.status = CertificateStatus::violated;
  out.uncomputable_islands = is_judged ? 0 : 1;
  out.max_passivity_residual_J = accounts_->max_residual(island);
  out.is_part_active = finding.is_part_active;
  if (finding.worst_part >= 0) {
    out.worst_passivity_part =
        static_cast<int>(finding.worst_part) - parts_.parts_of(island).front();
  }
  out.worst_passivity_step = finding.worst_step;
  out.broken_law = finding.broken_law;
  out.growth = finding.growth;
  if (out.broken_law) out.broken_law->island = 0;
  if (out.growth) out.growth->island = 0;
  return out;
}

int EnergyLedger::unjudged_islands() const { return accounts_->unjudged(); }

double EnergyLedger::tank_sum() const {
  double sum = 0.0;
  for (int island = 0; island < accounts_->count(); ++island) sum += tank(island);
  return sum;
}

void EnergyLedger::update_energy_ratio() {
  double reserve = 0.0;
  for (int island = 0; island < accounts_->count(); ++island) {
    reserve += std::max(tank(island), 0.0);
  }
  totals_.max_energy_ratio =
      std::max(totals_.max_energy_ratio,
               (totals_.final_J + reserve - totals_.supplied_J) * per_initial_energy_);
}

std::size_t EnergyLedger::bytes() const {
  return memory_.bytes() + accounts_->bytes() +
         by_chunk_.capacity() * (sizeof(LedgerTotals) + 1 + sizeof(int)) +
         is_known_.capacity() * (1 + sizeof(double)) +
         small_.capacity() * sizeof(std::vector<PartPorts>) + 2 * first_.capacity() * sizeof(int) +
         kept_.capacity() * sizeof(void*);
}

void EnergyLedger::archive(StateArchive& archive) {
  if (archive.reads()) has_entries_ = true;
  archive.array(columns_[kStorageBefore]);
  archive.array(accepted_);
  accounts_->archive(archive);
  archive.values(tallied_, stored_, metered_J_, totals_, run_, per_initial_energy_, steps_,
                 found_at_, joined_, max_residual_, revalued_J_, jumped_);
  archive.vector(impulses_);
  archive.array(std::span(numerical_in_all_J_));
  for (Held& own : held_) archive.values(own.exchanged_J);
}

}  // namespace portwave

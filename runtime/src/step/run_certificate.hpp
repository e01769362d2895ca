#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "parallel/island_iteration.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/energy/step_certifier.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

class StateArchive;

/// Archives the findings of a run so far, except those known from the start.
void archive_findings(StateArchive& archive, const System& system, Certificate& certificate);

/// The certificate of a run with waves, built step by step: the findings of the ledger, the steps that
/// missed the tolerance and, with Certify::full, the findings of a StepCertifier.
class RunCertificate {
 public:
  /// `full`: as with Certify::full. `unrepeatable`: the parts whose steps do not repeat.
  RunCertificate(const WaveDiscretisation& waves, const InnerUpdate& update,
                 const EnergyLedger& ledger, bool full, std::span<const int> unrepeatable);

  const Certificate& value() const { return certificate_; }
  void archive(StateArchive& archive) { archive_findings(archive, waves_.system(), certificate_); }

  /// Called for every step. `b`: the outgoing waves from which it starts.
  void begin(std::span<const double> b) {
    if (certifier_) waves_.interconnection().exchange(b.data(), u_start_.data());
  }
  /// With Certify::full: examines step `index`. `record` was frozen for it; `energy` is its ledger entry.
  void examine(double* record, std::int64_t index, std::span<const IslandOutcome> outcomes,
               const StepLedger& energy, bool accelerated);
  /// Takes over the findings of the ledger so far.
  void take(const EnergyLedger& ledger) {
    certificate_.max_passivity_residual_J = ledger.max_passivity_residual();
    if (ledger.found_at() == ledger.steps() - 1) take_findings(ledger);
  }
  /// Notes that step `index` missed the tolerance. The worst such step is kept, with the part that has the largest
  /// share of its gap.
  void note_miss(std::int64_t index, const StepReport& report,
                 const std::function<InterfaceResidual::Share()>& largest_share);

 private:
  void take_findings(const EnergyLedger& ledger);
  void condition();

  const WaveDiscretisation& waves_;
  Certificate certificate_;
  // With Certify::full only.
  std::optional<StepCertifier> certifier_;
  AlignedVector u_start_;
  std::vector<int> iterations_by_island_;
};

}  // namespace portwave

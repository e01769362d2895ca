#include "step/run_certificate.hpp"

#include <cstddef>

#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

bool is_island(const System& system, int island) {
  return island >= 0 && island < system.island_count();
}

}  // namespace

void archive_findings(StateArchive& archive, const System& system, Certificate& certificate) {
  Certificate& c = certificate;
  archive.values(c.status, c.max_passivity_residual_J, c.is_part_active, c.worst_passivity_part,
                 c.worst_passivity_step, c.broken_law, c.growth, c.uncomputable_islands, c.missed,
                 c.max_augmented_residual_J, c.max_fejer_residual_J, c.min_fne_margin,
                 c.min_nonexpansiveness_margin, c.steps_with_excess, c.steps_without_fixed_point,
                 c.steps_without_margin);
  const auto is_part = [parts = std::ssize(system.parts())](int part) {
    return part >= -1 && part < parts;
  };
  archive.expect(c.status >= CertificateStatus::holds && c.status <= CertificateStatus::violated,
                 "the status of the certificate");
  archive.expect(is_part(c.worst_passivity_part) && is_part(c.missed.part),
                 "a part that the certificate names");
  archive.expect(!c.broken_law || (c.broken_law->law >= BrokenLaw::Law::tank &&
                                   c.broken_law->law <= BrokenLaw::Law::form &&
                                   is_island(system, c.broken_law->island)),
                 "the law that did not hold");
  archive.expect(!c.growth || is_island(system, c.growth->island), "the island that grew");
  archive.expect(c.uncomputable_islands >= 0 && c.uncomputable_islands <= system.island_count(),
                 "the number of islands that are not judged");
  archive.expect_counts(
      {c.missed.steps, c.steps_with_excess, c.steps_without_fixed_point, c.steps_without_margin},
      "the number of steps so far");
}

RunCertificate::RunCertificate(const WaveDiscretisation& waves, const InnerUpdate& update,
                               const EnergyLedger& ledger, bool full,
                               std::span<const int> unrepeatable)
    : waves_(waves) {
  certificate_.max_passivity_residual_J = ledger.max_passivity_residual();
  const std::span<const int> metered = ledger.metered_parts();
  certificate_.unjudged_parts.assign(metered.begin(), metered.end());
  if (!metered.empty()) condition();
  if (!full) return;
  certificate_.unrepeatable_parts.assign(unrepeatable.begin(), unrepeatable.end());
  u_start_.resize(static_cast<std::size_t>(waves.wave_size()), 0.0);
  iterations_by_island_.resize(static_cast<std::size_t>(waves.system().island_count()));
  certifier_.emplace(waves, update);
}

void RunCertificate::examine(double* record, std::int64_t index,
                             std::span<const IslandOutcome> outcomes, const StepLedger& energy,
                             bool accelerated) {
  if (!certifier_) return;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    iterations_by_island_[i] = outcomes[i].iterations;
  }
  certifier_->examine(record,
                      {.index = index,
                       .iterations = iterations_by_island_,
                       .u_start = u_start_,
                       // by the step alone
                       .stored_change_J = energy.changed_J + energy.impact_J,
                       .mismatch_J = energy.mismatch_J,
                       .supplied_J = energy.supplied_J,
                       .accelerated = accelerated},
                      certificate_);
}

void RunCertificate::take_findings(const EnergyLedger& ledger) {
  const LawFinding finding = ledger.finding();
  certificate_.worst_passivity_part = static_cast<int>(finding.worst_part);
  certificate_.worst_passivity_step = finding.worst_step;
  certificate_.is_part_active = finding.is_part_active;
  certificate_.broken_law = finding.broken_law;
  if (finding.growth) {
    certificate_.growth = finding.growth;
    condition();
  }
  const bool was_unjudged = certificate_.uncomputable_islands > 0;
  certificate_.uncomputable_islands = ledger.unjudged_islands();
  if (certificate_.uncomputable_islands > 0) {
    condition();
  } else if (was_unjudged && !certificate_.growth && certificate_.unjudged_parts.empty() &&
             !certifier_ && certificate_.status == CertificateStatus::conditional) {
    certificate_.status = CertificateStatus::holds;  // that was at a start from rest
  }
  if (finding.is_violated()) certificate_.status = CertificateStatus::violated;
}

void RunCertificate::condition() {
  if (certificate_.status == CertificateStatus::holds) {
    certificate_.status = CertificateStatus::conditional;
  }
}

void RunCertificate::note_miss(std::int64_t index, const StepReport& report,
                               const std::function<InterfaceResidual::Share()>& largest_share) {
  MissedTolerance& missed = certificate_.missed;
  ++missed.steps;
  if (missed.step >= 0 && !(report.residual > missed.residual)) return;
  const InterfaceResidual::Share share = largest_share();
  missed.residual = report.residual;
  missed.gap_J = report.gap_J;
  missed.step = index;
  missed.part = share.part;
  missed.part_gap_J = share.energy_J;
}

}  // namespace portwave

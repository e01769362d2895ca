// Steps of one size that are taken in pieces (docs/decisions/0115-steps-in-pieces.md).

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "step/waves/wave_engine.hpp"

namespace portwave {

void WaveEngine::begin_whole(double step_s) {
  whole_.emplace();
  whole_->step_s = step_s;
  whole_->time_s = step_.clock().time_s();
  whole_->end_s = whole_->time_s + step_s;
  whole_->clock = step_.clock();
}

/// Decays are over within some steps: what is rough in every step is motion that they do not resolve, and is told.
bool WaveEngine::takes_pieces() const {
  constexpr std::int64_t kMostInARow = 16;
  if (!pieces_ || in_pieces_.left_at >= 0) return false;
  return !pieces_->is_of_conserving() || in_pieces_.in_a_row < kMostInARow;
}

void WaveEngine::end_whole() {
  const int pieces = whole_->pieces;
  const bool is_cut = whole_->is_cut;
  const double left_error = whole_->left_error;
  whole_.reset();
  if (left_error > 0.0 && in_pieces_.left_at < 0) leave_pieces(left_error * pieces_->smooth());
  if (is_cut) {
    ++cut_steps_;
  } else if (pieces > 1) {
    ++in_pieces_.steps;
    in_pieces_.pieces += pieces;
  }
  if (!is_cut) in_pieces_.in_a_row = pieces > 1 ? in_pieces_.in_a_row + 1 : 0;
  if (!takes_pieces() && in_pieces_.left_at < 0 && watch_) {
    watch_->look_closely(step_.clock().steps(), ResolutionWatch::kOutside);
  }
}

/// Back to before the first piece, which was committed.
void WaveEngine::go_back_to_begin() {
  whole_.reset();
  StateArchive reader = StateArchive::reader(before_pieces_);
  archive(reader);
  step_.stale() = true;
}

/// A step of several stages beside one-sided parts: damped ones overshoot where such a part changes over within them
/// (method.md, section 15), and then the step is taken again in pieces. Where that does not lead to its end the step is
/// taken as it is, and so are all later ones.
StepReport WaveEngine::step_in_pieces(double step_s) {
  begin_whole(step_s);
  StepReport report;
  try {
    report = step_part(whole_->end_s, step_s);
  } catch (const std::exception&) {
    const bool has_gone_on = whole_->pieces > 0;
    if (!has_gone_on) {
      whole_.reset();
      throw;
    }
    go_back_to_begin();
    leave_pieces(1.0);
    return step_as_a_whole(step_s);
  }
  end_whole();
  return report;
}

/// From where the whole step has come to on to `end_s`: in pieces that choose their size, if there may be such.
/// `size_s`: of that way, the same for equal ones. What very many pieces do not lead to is one piece, and all later steps
/// are whole.
StepReport WaveEngine::step_part(double end_s, double size_s) {
  constexpr int kMostPieces = 5000;
  StepReport report;
  if (takes_pieces()) {
    pieces_->begin_step(size_s);
    while (whole_->time_s < end_s && whole_->pieces < kMostPieces) report = pieces_->step(end_s);
    whole_->left_error = std::max(whole_->left_error, pieces_->left_error());
    if (!(whole_->time_s < end_s)) return report;
    leave_pieces(1.0);
    size_s = end_s - whole_->time_s;
  }
  use(size_s);
  retune();
  attempted_ = {};
  if (is_timed()) attempted_.start = Clock::now();
  step_.freeze(whole_->time_s);
  iterate(attempted_);
  const int repeated = change_over_ ? damp_what_changes_over(attempted_) : 0;
  guard_step(attempted_);
  report = step_.report();
  report.rejected_steps = repeated;
  commit(report, end_s);
  if (change_over_) leave_what_has_settled();
  return report;
}

/// Whether inputs jump in the step that is to come, and where.
bool WaveEngine::finds_sudden(double step_s) {
  constexpr std::size_t kMost = 16;
  sudden_s_.clear();
  if (!sudden_ || !step_.moved_jumps().empty()) return false;
  try {
    sudden_->find_sudden(step_.clock().time_s(), step_s, kMost, may_damp(), sudden_s_);
  } catch (const std::exception&) {  // the step itself tells it, if it meets that too
    sudden_s_.clear();
  }
  return !sudden_s_.empty();
}

/// What dies within the first step of a run may leave no trace: damped, a body that friction stops goes nowhere, however
/// long the step. So it does in half of the step; a comparison takes that in parts, as if an input had jumped.
bool WaveEngine::begins_in_parts() const {
  return options_.halves_once_more && step_.clock().steps() == 0 && may_damp() && can_cut_steps() &&
         !takes_pieces();
}

/// From where the whole step has come to on to `end_s`. A damped step with one stage leaves 1/(1 + hλ) of what a jump
/// throws, wherever that lies, and so does half of it: the way behind a jump is taken in many parts, or where there are
/// many jumps that behind the last one. In comparisons the way before the first one is, too: an input may have jumped
/// where the step begins. The first of their parts is taken in octaves, since what a jump throws may be over within it.
StepReport WaveEngine::step_past_inputs(double end_s, std::size_t cuts) {
  constexpr int kOfOneStage = 16, kOfMore = 4;
  constexpr std::size_t kMany = 16;
  constexpr int kOctaves = 8;
  const int finer = options_.halves_once_more ? 2 : 1;
  const int behind = finer * (run_.stages() == 1 ? kOfOneStage : kOfMore);
  const double first_s = whole_->end_s - whole_->step_s;
  const double same_s = 1e-7 * whole_->step_s;
  StepReport report;
  double begin_s = whole_->time_s;
  auto next = std::ranges::upper_bound(sudden_s_, begin_s + same_s);
  while (begin_s < end_s) {
    const bool is_last = next == sudden_s_.end() || !(*next < end_s - same_s);
    const double to_s = is_last ? end_s : *next;
    const bool is_behind = (options_.halves_once_more || begin_s > first_s + same_s) &&
                           (cuts <= kMany || to_s == whole_->end_s);
    const int parts = is_behind && may_damp() && !takes_pieces() ? behind : 1;
    const double size_s = (to_s - begin_s) / parts;
    if (pieces_) pieces_->restart();
    const bool is_graded = options_.halves_once_more && parts > 1;
    for (int octave = is_graded ? kOctaves : 0; octave > 0; --octave) {
      const double end = std::exp2(1 - octave), long_s = size_s * std::exp2(-octave);
      if (octave == kOctaves) step_part(begin_s + long_s, long_s);
      step_part(begin_s + end * size_s, long_s);
    }
    for (int part = is_graded ? 2 : 1; part < parts; ++part) {
      step_part(begin_s + part * size_s, size_s);
    }
    report = step_part(to_s, size_s);
    begin_s = to_s;
    if (!is_last) ++next;
  }
  return report;
}

StepReport WaveEngine::step_with_cuts(double step_s, const Cuts& cuts) {
  const bool has_cut_inputs = finds_sudden(step_s);
  begin_whole(step_s);
  whole_->is_cut = true;
  whole_->has_cut_inputs = has_cut_inputs;
  StepReport report;
  try {
    for (std::size_t i = 0; i <= cuts.times_s.size(); ++i) {
      const double end_s = i < cuts.times_s.size() ? cuts.times_s[i] : whole_->end_s;
      if (i > 0) {
        step_.clock() = whole_->clock.within(whole_->time_s);
        cuts.before(whole_->time_s, end_s);
      }
      report = step_past_inputs(end_s, std::max(cuts.times_s.size(), sudden_s_.size()));
    }
  } catch (const std::exception&) {
    step_.clock() = whole_->clock;
    if (whole_->pieces > 0) {
      if (cuts.undo) cuts.undo();
      go_back_to_begin();
    }
    whole_.reset();
    throw;
  }
  end_whole();
  if (pieces_) pieces_->restart();
  return report;
}

/// The error of the last step is told, as an amplitude, and steps are whole from now on.
void WaveEngine::leave_pieces(double error) {
  in_pieces_.left_at = std::max<std::int64_t>(step_.clock().steps() - 1, 0);
  const int worst = pieces_->estimate().worst_part();
  // Next to nothing moves, such as the current through a diode that blocks from the start.
  constexpr double kWorthMentioning = 1e-10;
  const EnergyTotals energy = step_.ledger().totals();
  const double moved_J = std::abs(energy.supplied_J) + energy.dissipated_J;
  if (worst >= 0 && pieces_->estimate().island_J(worst) <= kWorthMentioning * moved_J) {
    return pieces_->restart();
  }
  const IntegratorChoice& choice = run_.integrators();
  in_pieces_.left_part = worst >= 0 ? worst : std::max({choice.beside, choice.fastest, 0});
  in_pieces_.left_error = error;
  if (watch_) watch_->look_closely(step_.clock().steps(), ResolutionWatch::kOutside);
}

/// A step of a part with substeps that was thrown across a one-sided part, or one of which some pieces had errors that
/// no shorter ones made smaller.
Resolution WaveEngine::of_changes() const {
  Resolution out = watch_->value();
  if (change_over_ && change_over_->thrown().kind != Resolution::Kind::resolved) {
    return change_over_->thrown();
  }
  if (in_pieces_.left_at < 0) return out;
  out.kind = Resolution::Kind::jumps;
  out.share = in_pieces_.left_error;
  out.step = in_pieces_.left_at;
  out.part = in_pieces_.left_part;
  return out;
}

/// A piece of the step under way, but for the last: accounts close, the time of the run does not go on.
void WaveEngine::commit_piece(StepReport& report, double end_s) {
  if (whole_->pieces == 0) {
    before_pieces_.clear();
    StateArchive writer = StateArchive::writer(before_pieces_);
    archive(writer);
    writer.finish();
  }
  report.step_s = waves_.step_s();
  if (step_.keeps_ledger()) report.energy = step_.close();
  step_.accept(waves_.step_s());
  states_.forget();
  if (step_.keeps_ledger()) {
    if (options_.certify == Certify::full) {
      certificate_->examine(step_.next().record.data(), step_.clock().steps(), step_.outcomes(),
                            report.energy, step_.is_accelerated() || step_.is_any_engaged());
    }
    certificate_->take(step_.ledger());
  }
  if (!report.converged && step_.has_tolerance() && !std::exchange(whole_->has_missed, true)) {
    note_miss(step_.clock().steps(), report);
  }
  join_pieces(report);
  if (step_.keeps_ledger()) step_.ledger().join_next();
  if (is_timed()) note_times(report, attempted_, true);
  whole_->report = report;
  whole_->time_s = end_s;
}

/// Adds what the piece that was committed last has moved, and the shares that its efforts and flows have of means.
void WaveEngine::add_piece() {
  const auto parts = at(static_cast<int>(system().parts().size()));
  const auto ports = at(static_cast<int>(system().scalar_ports().size()));
  if (whole_->pieces == 0) {
    part_energies_.assign(parts, {});
    port_means_.assign(ports, {0.0, 0.0});
  }
  for (std::size_t i = 0; i < parts && step_.keeps_ledger(); ++i) {
    const PartEnergies own = step_.ledger().part_energies(static_cast<int>(i));
    PartEnergies& sum = part_energies_[i];
    sum.changed_J += own.changed_J;
    sum.supplied_J += own.supplied_J;
    sum.through_ports_J += own.through_ports_J;
    sum.dissipated_J += own.dissipated_J;
    sum.numerical_dissipation_J += own.numerical_dissipation_J;
    sum.impact_J += own.impact_J;
  }
  const double share = waves_.step_s() / whole_->step_s;
  for (std::size_t i = 0; i < ports; ++i) {
    const EffortFlow own = mean_at(static_cast<int>(i));
    port_means_[i].effort += share * own.effort;
    port_means_[i].flow += share * own.flow;
  }
}

/// Into `report`, of a piece that was committed, what those before it have reported.
void WaveEngine::join_pieces(StepReport& report) {
  // A step that is one piece has its energies and means where they always are.
  has_pieces_ = whole_->pieces > 0;
  if (has_pieces_ || whole_->time_s + waves_.step_s() < whole_->end_s) add_piece();
  if (whole_->pieces++ == 0) return;
  const StepReport& before = whole_->report;
  report.iterations += before.iterations;
  report.residual = std::max(report.residual, before.residual);
  report.gap_J = std::max(report.gap_J, before.gap_J);
  if (!before.converged) report.reason = before.reason;
  report.converged = report.converged && before.converged;
  report.rejected_trials += before.rejected_trials;
  report.linearisations += before.linearisations;
  report.rescues += before.rescues;
  report.rejected_steps += before.rejected_steps;
  report.error = std::max(report.error, before.error);
  StepLedger& now = report.energy;
  const StepLedger& then = before.energy;
  now.changed_J += then.changed_J;
  now.supplied_J += then.supplied_J;
  now.dissipated_J += then.dissipated_J;
  now.numerical_dissipation_J += then.numerical_dissipation_J;
  now.mismatch_J += then.mismatch_J;
  now.max_passivity_residual_J =
      std::max(now.max_passivity_residual_J, then.max_passivity_residual_J);
  now.alpha = std::min(now.alpha, then.alpha);
  now.withheld_J += then.withheld_J;
  now.tolerated_J += then.tolerated_J;
  now.impact_J += then.impact_J;
}

}  // namespace portwave

// Checkpoints and snapshots of an engine of wave coupling.

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/state_bytes.hpp"
#include "step/waves/wave_engine.hpp"
#include "step/waves/wave_start.hpp"

namespace portwave {
namespace {

/// Largest credible number of evaluations of S in a step, unless its budget is larger.
constexpr int kMostIterations = 10'000'000;

}  // namespace

void WaveEngine::archive(StateArchive& archive) {
  if (!together().has_whole()) {
    throw std::invalid_argument("the state of a system in slices cannot be kept: no rank has it");
  }
  together().fetch();
  together().fetch_energies();
  const int most_iterations = std::max(options_.method.waves().iterations, kMostIterations);
  archive_damping(archive);
  archive_levels(archive);
  archive.values(step_.clock(), step_.stale(), options_.method.waves().iterations, tuning_);
  archive.array(step_.now().record);
  archive_programs(archive);
  archive.array(step_.now().a);
  archive.array(step_.now().b);
  archive.array(step_.settings());
  archive.array(step_.outcomes());
  step_.ledger().archive(archive);
  certificate_->archive(archive);
  portwave::archive(archive, statistics_);
  if (auto& guard = step_.passivity_guard()) guard->archive(archive);
  if (auto& interface = step_.interface()) interface->archive_watch(archive);
  if (sizes_) sizes_->archive(archive);
  if (pieces_) {
    pieces_->archive(archive);
    archive.values(in_pieces_.steps, in_pieces_.pieces, in_pieces_.left_at, in_pieces_.left_part,
                   in_pieces_.left_error, in_pieces_.in_a_row);
    archive.expect(in_pieces_.left_error >= 0.0, "the error of pieces");
    archive.expect_counts(
        {in_pieces_.steps, in_pieces_.pieces, in_pieces_.left_at + 1, in_pieces_.in_a_row},
        "the number of steps in pieces");
    archive.expect(
        in_pieces_.left_part >= -1 && in_pieces_.left_part < std::ssize(waves_.system().parts()),
        "a part whose steps no pieces resolve");
  }
  if (archive.reads()) has_pieces_ = false;  // energies and means are those of the last part
  archive.value(cut_steps_);
  archive.expect_counts({cut_steps_}, "the number of steps that were cut");
  if (sudden_ && archive.reads()) sudden_.emplace(system());  // what is searched ahead
  if (watch_) watch_->archive(archive);
  if (changes_) changes_->archive(archive);
  if (hidden_) hidden_->archive(archive);
  if (auto& extrapolated = step_.extrapolated()) extrapolated->archive(archive);
  if (!archive.reads()) return;
  const int budget = options_.method.waves().iterations;
  archive.expect(budget >= 0 && budget <= most_iterations, "the budget of iterations");
  if (archive.checks()) expect_sound(archive);
  step_.plan().rule.budget = budget;
  start_ports_.forget();
  states_.forget();
  pace_.restart();
  tuned_.reset();
  step_.read_back();
  together().send_state();
}

/// States that programs keep, to which records refer.
void WaveEngine::archive_programs(StateArchive& archive) {
  for (const int batch : programs_) {
    const BatchSlot& slot = waves_.batch(batch);
    const auto& states = dynamic_cast<const StateBytes&>(*slot.batch);
    double* const record = step_.now().record.data() + slot.record;
    std::vector<std::byte> bytes;
    if (!archive.reads()) bytes = states.write_states(record);
    archive.vector(bytes);
    if (!archive.reads()) continue;
    try {
      states.read_states(bytes, record);
    } catch (const std::exception& error) {
      const Part& own = waves_.system().parts()[at(slot.parts.front())];
      throw std::runtime_error(fmt::format("part {}: {}", in_quotes(own.name), error.what()));
    }
  }
}

/// Checks of members that were read and that their owners do not check: numbers of parts and islands, counts,
/// and numbers that must be finite.
void WaveEngine::expect_sound(const StateArchive& archive) const {
  const System& stepped = waves_.system();
  const auto is_island = [&](int island) { return island >= 0 && island < stepped.island_count(); };
  archive.expect(step_.clock().is_sound(), "the time");
  archive.expect_finite(step_.settings(), "an input that is set");
  std::vector<double>& x = end_state_;
  for (int part = 0; part < static_cast<int>(stepped.parts().size()); ++part) {
    x.resize(at(waves_.batch(waves_.slot(part).batch).batch->state_size()));
    waves_.get_state(part, step_.now().record.data(), x.data());
    archive.expect_finite(x, "the state of a part");
  }
  for (int port = 0; port < static_cast<int>(stepped.scalar_ports().size()); ++port) {
    const std::size_t wave = at(waves_.wave_of_port(port));
    const double both[] = {step_.now().a[wave], step_.now().b[wave]};
    archive.expect_finite(both, "a wave");
  }
  for (const IslandOutcome& own : step_.outcomes()) {
    archive.expect(own.iterations >= 0 && own.rejected_trials >= 0,
                   "the number of iterations of an island");
  }
  archive.expect_counts({tuning_.changes, tuning_.failures, step_.ledger().steps()},
                        "the number of changes or steps so far");
  for (int island = 0; island < stepped.island_count(); ++island) {
    const LawFinding& own = step_.ledger().finding(island);
    archive.expect(own.worst_part >= -1 && own.worst_part < std::ssize(stepped.parts()),
                   "a part that the energy account names");
    archive.expect((!own.broken_law || own.broken_law->island == island) &&
                       (!own.growth || own.growth->island == island),
                   "an island that the energy account names");
  }
  for (int island = 0; island < stepped.island_count(); ++island) {
    archive.expect(!std::isnan(step_.ledger().tank(island)), "the energy of a tank");
  }
  const auto& guard = guarded();
  if (!guard) return;
  archive.expect(std::ranges::all_of(guard->uses(), is_island, &GuardUse::island),
                 "an island that the guard names");
  const GuardStatistics& s = guard->statistics();
  archive.expect_counts({s.steps, s.uses, s.trials}, "the number of times that the guard acted");
}

/// If they cannot be read, those in use fit one another, but are not the previous ones.
void WaveEngine::archive_levels(StateArchive& archive) {
  try {
    if (levels_.archive(archive, in_force())) rebind();
  } catch (...) {
    if (archive.reads()) rebind();
    throw;
  }
}

/// Which parts are damped, and which have maps for both: steps after reading have the bits of those after writing.
void WaveEngine::archive_damping(StateArchive& archive) {
  // Also where there is none, as on several ranks: checkpoints are for any number of these.
  ChangeOver::Kept kept = change_over_ ? change_over_->kept() : ChangeOver::Kept();
  const std::vector<char> present = kept.states;
  kept.archive(archive);
  if (!archive.reads() || !change_over_) return;
  if (!change_over_->fits(kept)) return change_over_->forget();  // parts had other parameters
  if (kept.states != present) arrange_damping(kept.states);
  change_over_->take(kept);
}

/// Makes the batches of parts that may be damped as they are after these have been: `states` as ChangeOver::Kept.
void WaveEngine::arrange_damping(std::span<const char> states) {
  std::vector<int> batches;
  for (const int part : change_over_->parts()) {
    run_.set_damped(part, false);
    batches.push_back(waves_.slot(part).batch);
  }
  std::ranges::sort(batches);
  const auto repeated = std::ranges::unique(batches);
  batches.erase(repeated.begin(), repeated.end());
  for (const int batch : batches) renew_batch(batch);
  damp_and_leave(states);
  levels_.leave_others();
  take_over_maps();
}

/// From batches of parts none of which has been damped.
void WaveEngine::damp_and_leave(std::span<const char> states) {
  const std::span<const int> parts = change_over_->parts();
  const auto exchange = [&](char least, char most, bool damped) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (states[i] < least || states[i] > most) continue;
      run_.set_damped(parts[i], damped);
      exchange_part(parts[i]);
    }
  };
  exchange(1, 3, true);
  exchange(1, 2, false);
}

StepLevels::InForce WaveEngine::in_force() {
  auto& interface = step_.interface();
  return {waves_, interface ? &*interface : nullptr,
          [this](StepLevels::SingleSteps how) { put_singles(how); }};
}

/// Steps of a size that is new have batches that are made for damped lanes, too, once others have.
void WaveEngine::put_singles(StepLevels::SingleSteps how) {
  using enum StepLevels::SingleSteps;
  if (!change_over_) return;
  const std::vector<char> states = change_over_->kept().states;
  if (std::ranges::all_of(states, [](char own) { return own == 0; })) return;
  step_.stale() = true;
  if (how == arranged) return damp_and_leave(states);
  constexpr char kDamped = 3;
  for (std::size_t i = 0; i < states.size(); ++i) {
    run_.set_damped(change_over_->parts()[i], how == as_they_were && states[i] == kDamped);
  }
}

}  // namespace portwave

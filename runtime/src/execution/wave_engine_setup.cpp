#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "execution/event_watch.hpp"
#include "execution/fault_replay.hpp"
#include "execution/wave_engine.hpp"
#include "execution/wave_start.hpp"
#include "portwave/runtime/execution/slice_builder.hpp"

namespace portwave {
namespace {

bool has_failed_anywhere(Ranks& ranks, bool here) {
  const std::vector<char> all = gather_values(ranks, static_cast<char>(here ? 1 : 0));
  return std::ranges::any_of(all, [](char own) { return own != 0; });
}

/// What `make` gives. Of slices it may fail on one rank alone, and the others hear of that in
/// `made_by_all`.
template <class Make>
auto or_tell_others(const System& system, const StepperOptions& given, const Make& make) {
  try {
    return make();
  } catch (...) {
    if (system.slice() != nullptr) has_failed_anywhere(*given.ranks, true);
    throw;
  }
}

/// Null where this is no slice.
std::unique_ptr<SliceSums> made_by_all(const System& system, const WaveDiscretisation& waves,
                                       const StepperOptions& given) {
  if (system.slice() == nullptr) return nullptr;
  if (has_failed_anywhere(*given.ranks, false)) {
    throw SliceDefects("the slice of another rank has defects");
  }
  return std::make_unique<SliceSums>(waves, given.ranks);
}

}  // namespace

WaveEngine::WaveEngine(const System& system, const StepperOptions& given)
    : StepEngine(given.step_s),
      run_(system, given),
      options_(run_.options()),
      levels_(run_.stepped(), options_.step_s, options_.method.waves()),
      waves_(or_tell_others(system, given,
                            [&] {
                              return WaveDiscretisation(
                                  run_.stepped(), options_.step_s,
                                  tuner().choice().method.waves().impedance, grouping_for(options_),
                                  given.sizes || run_.stages() > 1
                                      ? WaveDiscretisation::StageIncrements::kept
                                      : WaveDiscretisation::StageIncrements::none);
                            })),
      memory_({{2, waves_.record_size()}, {6, static_cast<std::size_t>(waves_.wave_size())}}),
      now_{memory_.take(waves_.initial_record()),
           memory_.take(static_cast<std::size_t>(waves_.wave_size())),
           memory_.take(initial_waves(waves_, options_.method.waves()))},
      next_{memory_.take(now_.record.size()), memory_.take(now_.a.size()),
            memory_.take(now_.b.size())},
      u_(memory_.take(now_.b.size())),
      b_trial_(memory_.take(now_.b.size())),
      input_(waves_.input_size(), 0.0),
      settings_(system.initial_settings()),
      outcomes_(static_cast<std::size_t>(system.island_count())),
      slices_(made_by_all(system, waves_, given)),
      ledger_(waves_, now_.record.data(), now_.b.data(), given.method.waves().tank,
              given.method.waves().guard, slices_.get()),
      residual_(waves_),
      costs_(declared_costs(waves_)),
      pace_(given.time.pace, given.interrupted),
      clock_(given.start_s),
      states_(waves_),
      start_ports_(given) {
  is_driven_ = slices_ ? slices_->any(waves_.driven()) : waves_.driven();
  resolve_method();
  const auto refuse = [&] {
    refuse_non_finite_start(waves_, ledger_, now_.b, options_.method.waves().tank);
  };
  slices_ ? slices_->check_together(refuse) : refuse();
  prepare_iteration();
  const std::vector<int> unrepeatable = unrepeatable_parts(waves_);
  is_repeatable_ = unrepeatable.empty();
  certificate_.emplace(waves_, update_, ledger_, options_.certify == Certify::full, unrepeatable);
  make_executor();
  plan_step();
  if (!slices_ && options_.certify != Certify::none) {
    watch_.emplace(waves_, run_.stages(), now_.record.data(),
                   static_cast<int>(system.scalar_ports().size()));
    begin_watching();
  }
  if (options_.sizes) {
    sizes_.emplace(static_cast<StepTrials&>(*this), waves_, system, run_.stages(), *options_.sizes,
                   given.step_s, now_.record.data(), watches_of(system, given));
  }
}

/// Where the watch finds what it looks at.
void WaveEngine::begin_watching() {
  if (!options_.sizes && is_driven_) changes_.emplace(system());
  const int stages = run_.stages();
  for (int i = 0; i < stages; ++i) port_weights_.push_back(stages == 1 ? 1.0 : run_.weight(i));
  for (int port = 0; port < static_cast<int>(system().scalar_ports().size()); ++port) {
    for (int i = 0; i < stages; ++i) {
      port_waves_.push_back(static_cast<int>(offset_of(port, i)));
    }
  }
}

/// Takes over the method that was chosen, and what follows from it.
void WaveEngine::resolve_method() {
  options_.method = tuner().choice().method;
  WaveCoupling& m = options_.method.waves();
  if (options_.method.kind() == WaveUpdate::interface) {
    m.relaxation = 1.0;
    m.acceleration = 0;
  }
  update_ = inner_update_of(m);
  has_tolerance_ = options_.sizes || has_tolerance(options_.method);
  // A part that does not know its energy has no other account of it.
  uses_ledger_ = options_.certify != Certify::none || m.guard || !ledger_.metered_parts().empty();
}

/// What the inner iteration has beside the plain update, and the guard.
void WaveEngine::prepare_iteration() {
  const WaveCoupling& m = options_.method.waves();
  if (m.guard) guard_.emplace(waves_, slices_.get());
  if (m.guard && has_tolerance_) met_gap_J_.resize(outcomes_.size());
  if (m.start == InnerStart::extrapolated) {
    extrapolated_.emplace(waves_, run_);
    start_.assign(now_.b.begin(), now_.b.end());
  }
  if (m.acceleration > 0) acceleration_.emplace(waves_, m.acceleration);
  if (InterfaceSolvers::are_needed(m)) interface_.emplace(waves_, m);
}

void WaveEngine::make_executor() {
  if (options_.profile) {
    options_.timed = true;
    const bool follows = options_.executor != ExecutorKind::graph && options_.ranks == nullptr;
    profiler_.emplace(*options_.profile, follows ? options_.threads : 0);
  }
  runner_ = make_runner(waves_, options_, tuner().expected_iterations(), interface_.has_value(),
                        now_.record.data(), costs_, profiler_ ? profiler_->trace() : nullptr);
  if (runner_.shares != nullptr) {
    lead_ = std::make_unique<RankLead>(*this, waves_, runner_.partition, runner_.shares, ledger_,
                                       settings_, now_, next_);
  }
  bind_executor();
  const Executor& executor = *runner_.executor;
  ledger_.share_with(&executor.for_each(), executor.threads());
  if (guard_) guard_->share_with(&executor.for_each(), executor.threads());
  if (!options_.time.active()) return;
  const Partition whole = whole_island_groups(waves_, costs_);
  scheduler_.emplace(options_.time.deadline_s, 1e-9 * whole.iteration_cost_ns,
                     1e-9 * whole.commit_cost_ns);
  rehearse_solves();
}

/// Steps under a deadline are to know what a solve of the interface equation takes, and to have factors to
/// begin with.
void WaveEngine::rehearse_solves() {
  if (!interface_) return;
  AlignedVector record(now_.record.begin(), now_.record.end());
  AlignedVector u(now_.b.size(), 0.0), b(u), exchanged(u);
  waves_.interconnection().exchange(now_.b.data(), u.data());
  if (!waves_.scatter_all(record.data(), u.data(), b.data()).ok()) return;
  waves_.interconnection().exchange(b.data(), exchanged.data());
  using Effort = InterfaceSolver::Effort;
  const auto time = [&](int island, Effort effort, DeadlineScheduler::Solve what) {
    const auto start = Clock::now();
    if (!interface_->current().rehearse(island, record.data(), u.data(), exchanged.data(), effort))
      return;
    scheduler_->rehearse(what, seconds(Clock::now() - start));
  };
  for (int island = 0; island < waves_.system().island_count(); ++island) {
    if (!interface_->current().is_used(island) && options_.method.waves().rescue_after == 0)
      continue;
    time(island, Effort::renew, DeadlineScheduler::Solve::anew);
    time(island, Effort::solve, DeadlineScheduler::Solve::with_factors);
  }
}

void WaveEngine::bind_executor() {
  arrays_[0] = arrays_between(now_, next_);
  arrays_[1] = arrays_between(next_, now_);
  for (const StepArrays& arrays : arrays_) runner_.executor->bind(arrays);
}

/// What of the plan of a step does not change from one to the next.
void WaveEngine::plan_step() {
  const WaveCoupling& m = options_.method.waves();
  const bool interface = m.kind == WaveUpdate::interface || !m.interface_islands.empty();
  // All ranks have to find the same.
  const bool is_repeatable = slices_ ? !slices_->any(!is_repeatable_) : is_repeatable_;
  plan_ = {.rule = {m.iterations, update_, m.tolerance, m.energy_tolerance_J, m.tolerance_per_part,
                    acceleration_.has_value(), interface, m.rescue_after,
                    scheduler_ ? &*scheduler_ : nullptr},
           .deadline = scheduler_ ? &*scheduler_ : nullptr,
           .may_go_ahead = options_.certify != Certify::full && !options_.sizes && !scheduler_ &&
                           !acceleration_ && !interface_ && is_repeatable};
}

std::unique_ptr<StepEngine> make_wave_engine(const System& system, const StepperOptions& options) {
  return std::make_unique<WaveEngine>(system, options);
}

}  // namespace portwave

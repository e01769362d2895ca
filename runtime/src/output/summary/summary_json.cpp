// A summary as summary.json holds it.

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "output/summary/summary_facts.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {
namespace {

using Json = nlohmann::ordered_json;

/// Not all numbers have a place in JSON.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

/// As scenario files write it.
Json impedance_json(const WaveCoupling& method) {
  if (method.impedance_kind != ImpedanceKind::given) {
    return {{"kind", std::string(to_string(method.impedance_kind))},
            {"retune_factor", number(method.retune_factor)}};
  }
  if (method.impedance.size() != 1) return {{"kind", "per_port"}};
  return {{"kind", "uniform"}, {"value", number(method.impedance.front())}};
}

/// Null: half the squares of the initial waves; no cap.
Json tank_json(const TankOptions& tank) {
  return {{"initial_J", number(tank.initial_J)},
          {"initial_fraction", number(tank.initial_fraction)},
          {"cap_J", number(tank.cap_J)}};
}

Json exchange_json(const ExchangeOptions& exchange) {
  Json json = {{"kind", std::string(to_string(exchange.kind))}};
  if (exchange.kind == ExchangeKind::asynchronous) json["max_delay"] = exchange.max_delay;
  return json;
}

Json options_json(const Splitting& splitting) {
  Json json = {{"order", order_of(splitting)}};
  if (splitting.kind == SplittingKind::strang) {
    json["coupling_flow"] = std::string(to_string(splitting.coupling_flow));
    json["split_dissipation"] = splitting.split_dissipation;
  } else if (splitting.kind == SplittingKind::impulse) {
    json["fast"] = splitting.fast;
    json["factor"] = splitting.factor;
  }
  return json;
}

/// Null: left to the method; no limit.
Json options_json(const DynamicIteration& dynamic) {
  Json json = {{"iterations", dynamic.iterations},
               {"tolerance", number(dynamic.tolerance)},
               {"window_steps", dynamic.window_steps},
               {"integrator", std::string(to_string(dynamic.integrator))}};
  if (dynamic.kind != IterationKind::lions_mercier) {
    json["divergence_limit"] = number(dynamic.divergence_limit);
    return json;
  }
  json.update({{"lambda", number(dynamic.lambda)},
               {"mu", number(dynamic.mu)},
               {"omega", number(dynamic.omega)},
               {"alpha", number(dynamic.alpha)},
               {"metric", std::string(to_string(dynamic.metric))}});
  return json;
}

Json options_json(const WaveCoupling& waves) {
  const bool chooses = waves.kind == WaveUpdate::automatic;
  Json json = {{"iterations", waves.iterations},
               {"stages", waves.stages == 0 ? Json("auto") : Json(waves.stages)},
               {"integrator", std::string(to_string(waves.integrator))},
               {"relaxation", chooses ? Json(nullptr) : number(waves.relaxation)},
               {"tolerance", number(waves.tolerance)},
               {"energy_tolerance_J", number(waves.energy_tolerance_J)},
               {"tolerance_per_part", waves.tolerance_per_part},
               {"acceleration", chooses ? Json(nullptr) : Json(waves.acceleration)},
               {"impedance", impedance_json(waves)},
               {"start", std::string(to_string(waves.start))},
               {"exchange", exchange_json(waves.exchange)},
               {"guard", waves.guard},
               {"tank", tank_json(waves.tank)}};
  if (waves.explicit_steps) json["explicit_steps"] = true;
  return json;
}

Json method_options_json(const CouplingMethod& method) {
  if (const auto* const splitting = method.as<Splitting>()) return options_json(*splitting);
  if (const auto* const dynamic = method.as<DynamicIteration>()) return options_json(*dynamic);
  return options_json(method.waves());
}

/// The choices of "auto"; null if it had none to make.
Json choice_json(const RunSummary& summary) {
  if (!is_automatic(summary.method)) return nullptr;
  const MethodChoice& choice = summary.choice;
  Json candidates = Json::array();
  for (const MethodCandidate& candidate : choice.candidates) {
    candidates.push_back(
        {{"kind", std::string(to_string(candidate.kind))},
         {"relaxation", number(candidate.relaxation)},
         {"impedance", std::string(to_string(candidate.impedance))},
         {"acceleration", candidate.acceleration},
         {"contraction", number(candidate.rate.contraction)},
         {"cost", number(candidate.cost)},
         {"evaluations",
          candidate.rate.converges ? Json(candidate.rate.evaluations) : Json(nullptr)}});
  }
  const WaveCoupling& chosen = choice.method.waves();
  return {{"kind", std::string(to_string(chosen.kind))},
          {"relaxation", number(chosen.relaxation)},
          {"impedance", std::string(to_string(chosen.impedance_kind))},
          {"acceleration", chosen.acceleration},
          {"interface_islands", chosen.interface_islands.size()},
          {"rescue_after", chosen.rescue_after},
          {"cost", number(choice.cost)},
          {"reason", choice.reason},
          {"candidates", std::move(candidates)}};
}

/// Null where impedances stay as they are.
Json tuning_json(const RunSummary& summary) {
  if (!has_waves(summary)) return nullptr;
  if (summary.method.waves().impedance_kind == ImpedanceKind::given &&
      !is_automatic(summary.method)) {
    return nullptr;
  }
  return {{"changes", summary.tuning.changes},
          {"failures", summary.tuning.failures},
          {"rescattered_J", number(summary.tuning.rescattered_J)}};
}

Json guard_json(const RunSummary& summary) {
  if (!has_waves(summary) || !summary.method.waves().guard) return nullptr;
  const GuardStatistics& guard = summary.guard;
  return {{"steps", guard.steps},
          {"uses", guard.uses},
          {"trials", guard.trials},
          {"min_alpha", number(guard.min_alpha)},
          {"withheld_J", number(guard.withheld_J)},
          {"missed_steps", guard.missed_steps},
          {"worst_step", guard.worst_step < 0 ? Json(nullptr) : Json(guard.worst_step)},
          {"part", summary.guarded_part.empty() ? Json(nullptr) : Json(summary.guarded_part)}};
}

/// Energy supplied to parts that do not know their energy; only where there are such parts.
void add_metered(const RunSummary& summary, Json& json) {
  if (!summary.unjudged_parts.empty()) json["metered_J"] = number(summary.energy.metered_J);
  for (std::size_t i = 0; i < summary.metered_J.size(); ++i) {
    json["metered_by_part_J"][summary.unjudged_parts[i]] = number(summary.metered_J[i]);
  }
}

/// Names of parts that there is something to say about; only where there are some.
void add_unjudged(const RunSummary& summary, Json& json) {
  if (!summary.unjudged_parts.empty()) json["unjudged_parts"] = summary.unjudged_parts;
  if (!summary.unrepeatable_parts.empty()) json["unrepeatable_parts"] = summary.unrepeatable_parts;
}

Json coupling_json(const RunSummary& summary) {
  Json json = {
      {"poor", summary.is_coupled_poorly()},
      {"missing_share", summary.has_ledger ? Json(number(summary.missing_share())) : Json(nullptr)},
      {"mismatch_share",
       summary.has_ledger ? Json(number(summary.mismatch_share())) : Json(nullptr)},
      {"blind_share", number(summary.blind_share())},
      {"moved_J", summary.has_ledger ? Json(number(summary.moved_J)) : Json(nullptr)},
      {"asked_to_converge", !is_open(summary)}};
  if (is_open(summary)) json["largest_residual"] = number(summary.coupling.residual);
  for (std::size_t i = 0; i < summary.defects.size(); ++i) {
    const PartDefects& own = summary.defects[i];
    json["defects"].push_back(
        {{"part", summary.forward_parts[i]},
         {"share", number(own.share())},
         {"astray_J", number(own.astray_J)},
         {"net_J", number(own.net_J)},
         {"exchanged_J", number(own.exchanged_J)},
         {"worst_step", own.worst_step < 0 ? Json(nullptr) : Json(own.worst_step)}});
  }
  if (!summary.defects.empty()) json["defect_share"] = number(summary.defect_share());
  if (summary.is_coupled_poorly() && !summary.ideal_part.empty()) {
    json["ideal_part"] = summary.ideal_part;
  }
  return json;
}

Json energy_json(const RunSummary& summary) {
  if (!summary.has_ledger) return nullptr;
  const EnergyTotals& energy = summary.energy;
  Json json = {{"initial_J", number(energy.initial_J)},
               {"final_J", number(energy.final_J)},
               {"max_J", number(energy.max_J)},
               {"supplied_J", number(energy.supplied_J)},
               {"dissipated_J", number(energy.dissipated_J)},
               {"numerical_dissipation_J", number(energy.numerical_dissipation_J)},
               {"mismatch_J", number(energy.mismatch_J)},
               {"impact_J", number(energy.impact_J)},
               {"initial_tank_J", number(energy.initial_tank_J)},
               {"tank_J", number(energy.tank_J)},
               {"given_up_J", number(energy.given_up_J)},
               {"tolerated_J", number(energy.tolerated_J)},
               {"rounding_J", number(energy.rounding_J)},
               {"max_energy_ratio", number(energy.max_energy_ratio)}};
  add_metered(summary, json);
  return json;
}

Json broken_law_json(const Certificate& certificate) {
  if (!certificate.broken_law) return nullptr;
  return {{"law", std::string(name_of(certificate.broken_law->law))},
          {"island", certificate.broken_law->island},
          {"step", certificate.broken_law->step}};
}

Json energy_safety_json(const RunSummary& summary) {
  const std::optional<EnergyGrowth>& growth = summary.certificate.growth;
  return {{"status", std::string(energy_safety(summary))},
          {"beyond_J", growth ? number(growth->beyond_J) : Json(nullptr)},
          {"ratio", growth ? number(growth->ratio) : Json(nullptr)},
          {"island", growth ? Json(growth->island) : Json(nullptr)},
          {"step", growth ? Json(growth->step) : Json(nullptr)}};
}

/// Null where no tolerance was missed.
Json missed_json(const RunSummary& summary) {
  const MissedTolerance& missed = summary.certificate.missed;
  if (missed.steps == 0) return nullptr;
  return {{"steps", missed.steps},
          {"largest_residual", number(missed.residual)},
          {"gap_J", number(missed.gap_J)},
          {"step", missed.step},
          {"part", summary.missed_part.empty() ? Json(nullptr) : Json(summary.missed_part)},
          {"part_gap_J", number(missed.part_gap_J)}};
}

/// Null where nobody looked.
Json resolution_json(const RunSummary& summary) {
  if (!summary.resolution) return nullptr;
  const Resolution& worst = *summary.resolution;
  Json json = {{"status", std::string(to_string(worst.kind))}};
  if (summary.is_resolved()) return json;
  json["part"] = summary.unresolved_part;
  json["name"] = summary.unresolved_name;
  json["port"] = summary.unresolved_port.empty() ? Json(nullptr) : Json(summary.unresolved_port);
  json["share"] = number(worst.share);
  json["h_lambda"] = worst.h_lambda > 0.0 ? number(worst.h_lambda) : Json(nullptr);
  json["step"] = worst.step;
  return json;
}

/// Null where nothing was compared.
Json agreement_json(const RunSummary& summary) {
  if (!summary.agreement) return nullptr;
  const StepAgreement& own = *summary.agreement;
  if (own.is_skipped) return nullptr;
  return {{own.is_chosen ? "tolerance" : "step_s", number(own.finer)},
          {"until_s", number(own.until_s)},
          {"whole", own.is_whole},
          {"instants", own.instants},
          {"state", own.state.empty() ? Json(nullptr) : Json(own.state)},
          {"share", number(own.share)},
          {"time_s", number(own.time_s)},
          {"error", number(own.error())},
          {"instant",
           {{"state", own.state_of_instant.empty() ? Json(nullptr) : Json(own.state_of_instant)},
            {"share", number(own.instant_share)},
            {"error", number(own.instant_error())},
            {"time_s", number(own.instant_s)}}},
          {"expected", own.expected > 0.0 ? number(own.expected) : Json(nullptr)},
          {"far", own.is_far()},
          {"samples_faster", own.samples_faster},
          {"beneath_waves", own.is_beneath_waves},
          {"unjudged", own.unjudged.empty() ? Json(nullptr) : Json(own.unjudged)},
          {"unjudged_share", own.unjudged.empty() ? Json(nullptr) : number(own.unjudged_share)},
          {"failure", own.failure.empty() ? Json(nullptr) : Json(own.failure)}};
}

Json switches_json(const RunSummary& summary) {
  const RunSummary::MovedSwitch& own = summary.moved_switch;
  return {{"part", own.part},
          {"moved_share", number(own.share)},
          {"closed_s", number(own.times.closed_s)},
          {"open_s", number(own.times.open_s)},
          {"moved_s", number(own.times.moved_s)}};
}

Json certificate_json(const RunSummary& summary) {
  const Certificate& certificate = summary.certificate;
  const bool has_worst = certificate.worst_passivity_step >= 0;
  const bool is_of_part = certificate.worst_passivity_part >= 0;
  const bool is_checked = summary.has_ledger;
  Json json = {
      {"status", is_checked ? std::string(to_string(certificate.status)) : "not_checked"},
      {"max_passivity_residual_J",
       is_checked ? number(certificate.max_passivity_residual_J) : Json(nullptr)},
      {"worst_passivity_part",
       has_worst && is_of_part ? Json(summary.worst_passivity_part) : Json(nullptr)},
      {"worst_passivity_step", has_worst ? Json(certificate.worst_passivity_step) : Json(nullptr)},
      {"steps_with_excess", certificate.steps_with_excess},
      {"broken_law", broken_law_json(certificate)},
      {"energy_safety", energy_safety_json(summary)},
      {"missed_tolerance", missed_json(summary)},
      {"uncomputable_islands", certificate.uncomputable_islands},
      {"max_augmented_residual_J", number(certificate.max_augmented_residual_J)},
      {"max_fejer_residual_J", number(certificate.max_fejer_residual_J)},
      {"min_fne_margin", number(certificate.min_fne_margin)},
      {"min_nonexpansiveness_margin", number(certificate.min_nonexpansiveness_margin)},
      {"steps_without_fixed_point", certificate.steps_without_fixed_point},
      {"steps_without_margin", certificate.steps_without_margin}};
  add_unjudged(summary, json);
  return json;
}

/// Non-zero bins, [iterations, steps] each.
Json histogram_json(const IterationStatistics& iterations) {
  Json bins = Json::array();
  for (std::size_t k = 0; k < iterations.histogram.size(); ++k) {
    if (iterations.histogram[k] > 0) bins.push_back({k, iterations.histogram[k]});
  }
  return bins;
}

/// Null where only a lower bound is known: in the histogram's last bin.
Json exact_quantile(const IterationStatistics& iterations, double level) {
  const int quantile = iteration_quantile(iterations, level);
  return quantile < IterationStatistics::kHistogram - 1 ? Json(quantile) : Json(nullptr);
}

/// Null for a method that does not iterate.
Json iterations_json(const RunSummary& summary) {
  if (summary.method.is<Splitting>()) return nullptr;
  const IterationStatistics& iterations = summary.iterations;
  Json reasons = Json::object();
  for (std::size_t i = 0; i < iterations.reasons.size(); ++i) {
    reasons[std::string(to_string(static_cast<StopReason>(i)))] = iterations.reasons[i];
  }
  return {{"windows", iterations.windows},
          {"total", iterations.total},
          {"mean", number(iterations.mean())},
          {"max", iterations.max},
          {"p50", exact_quantile(iterations, 0.5)},
          {"p95", exact_quantile(iterations, 0.95)},
          {"not_converged", iterations.not_converged},
          {"rejected_trials", iterations.rejected_trials},
          {"linearisations", iterations.linearisations},
          {"rescues", iterations.rescues},
          {"histogram", histogram_json(iterations)},
          {"stop_reasons", std::move(reasons)}};
}

Json execution_json(const RunSummary& summary) {
  return {{"description", summary.execution},
          {"executor", std::string(to_string(summary.executor))},
          {"grain", to_string(summary.grain)},
          {"threads", summary.threads},
          {"tasks", summary.tasks},
          {"instruction_set", std::string(to_string(instruction_set()))}};
}

Json time_budget_json(const RunSummary& summary) {
  if (!summary.time.active()) return nullptr;
  const auto given = [](double value) { return value > 0.0 ? number(value) : Json(nullptr); };
  const auto d = summary.deadline.value_or(DeadlineScheduler::Statistics{});
  return {{"deadline_s", given(summary.time.deadline_s)},
          {"pace", given(summary.time.pace)},
          {"steps", d.steps},
          {"misses", d.misses},
          {"unexplained_misses", d.misses - d.preempted_misses},
          {"guard_misses", d.guard_misses},
          {"late_misses", d.late_misses},
          {"trial_misses", d.trial_misses},
          {"unused_share", number(d.unused_share)},
          {"jitter_s", number(d.jitter_s())},
          {"slack_p01_s", number(d.slack_p01_s)},
          {"slack_p50_s", number(d.slack_p50_s)},
          {"slack_p99_s", number(d.slack_p99_s)},
          {"worst_slack_s", number(d.worst_slack_s)}};
}

Json times_json(const RunSummary& summary) {
  if (!summary.timed) return nullptr;
  return {{"begin_s", number(summary.times.begin_s)},
          {"iterate_s", number(summary.times.iterate_s)},
          {"commit_s", number(summary.times.commit_s)}};
}

Json step_sizes_json(const RunSummary& summary) {
  if (!summary.sizes) return nullptr;
  const StepSizeStatistics& s = summary.step_sizes;
  return {{"tolerance", number(summary.sizes->tolerance)},
          {"smallest_s", number(s.smallest_s)},
          {"largest_s", number(s.largest_s)},
          {"rejected", s.rejected},
          {"rejected_for_coupling", s.rejected_for_coupling},
          {"changes", s.changes},
          {"comparisons", s.comparisons}};
}

Json starts_at_odds_json(const RunSummary& summary) {
  const StartsAtOdds& odds = summary.starts_at_odds;
  if (odds.count == 0) return nullptr;
  return {{"count", odds.count}, {"first_s", number(odds.first_s)}, {"first", odds.first}};
}

/// Null where there was none.
Json impulses_json(const RunSummary& summary) {
  const Impulses& all = summary.impulses;
  if (all.count == 0) return nullptr;
  Json first = Json::array();
  for (const Impulse& own : all.first) {
    first.push_back({{"time_s", number(own.time_s)},
                     {"cause", own.cause},
                     {"joint", own.joint},
                     {"jumps", own.jumps},
                     {"impact_J", number(own.energies.impact_J)},
                     {"supplied_J", number(own.energies.supplied_J)}});
  }
  return {{"count", all.count},
          {"impact_J", number(all.in_all.impact_J)},
          {"supplied_J", number(all.in_all.supplied_J)},
          {"first", std::move(first)}};
}

Json events_json(const RunSummary& summary) {
  Json events = Json::array();
  for (const RunSummary::Events& each : summary.events) {
    const EventCount& count = each.count;
    events.push_back({{"name", each.name},
                      {"rising", count.rising},
                      {"falling", count.falling},
                      {"last_s", count.all() == 0 ? Json(nullptr) : Json(number(count.last_s))}});
  }
  return events;
}

}  // namespace

nlohmann::ordered_json summary_json(const RunSummary& summary) {
  const CouplingMethod& method = summary.method;
  Json json = {
      {"scenario", summary.scenario},
      {"version", std::string(version())},
      {"all_well", summary.is_all_well()},
      {"steps", summary.steps},
      {"step_s", number(summary.step_s)},
      {"start_s", number(summary.start_s)},
      {"time_s", number(summary.time_s)},
      {"step_sizes", step_sizes_json(summary)},
      {"starts_at_odds", starts_at_odds_json(summary)},
      {"impulses", impulses_json(summary)},
      {"stages", summary.stages},
      {"damped_parts", summary.damped_parts},
      {"integrator", summary.integrator.empty() ? Json(nullptr) : Json(summary.integrator)},
      {"completed", summary.completed},
      {"failure", summary.failure.empty() ? Json(nullptr) : Json(summary.failure)},
      {"method", std::string(name_of(method))},
      {"method_options", method_options_json(method)},
      {"method_description", has_waves(summary) ? Json(nullptr) : Json(summary.choice.reason)},
      {"method_remarks", summary.remarks.empty() ? Json(nullptr) : Json(summary.remarks)},
      {"choice", choice_json(summary)},
      {"tuning", tuning_json(summary)},
      {"iterations", iterations_json(summary)},
      {"guard", guard_json(summary)},
      {"coupling", coupling_json(summary)},
      {"energy", energy_json(summary)},
      {"certificate", certificate_json(summary)},
      {"resolution", resolution_json(summary)},
      {"agreement", agreement_json(summary)},
      {"execution", execution_json(summary)},
      {"time_budget", time_budget_json(summary)},
      {"times", times_json(summary)},
      {"threads", summary.threads},
      {"wall_s", number(summary.wall_s)},
      {"recording_wait_s", number(summary.recording_wait_s)},
      {"steps_per_s", number(summary.steps_per_s())},
      {"real_time_factor", number(summary.real_time_factor())}};
  if (!summary.moved_switch.part.empty()) json["switches"] = switches_json(summary);
  if (!summary.notes.empty()) json["notes"] = summary.notes;
  if (!summary.events.empty()) {
    json["events"] = events_json(summary);
    json["ended_by"] = summary.ended_by.empty() ? Json(nullptr) : Json(summary.ended_by);
  }
  return json;
}

}  // namespace portwave

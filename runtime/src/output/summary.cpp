#include "portwave/runtime/output/summary.hpp"

#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/base/printable.hpp"

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

Json options_json(const Splitting& splitting) {
  if (splitting.kind == SplittingKind::strang) {
    return {{"coupling_flow", std::string(to_string(splitting.coupling_flow))},
            {"split_dissipation", splitting.split_dissipation}};
  }
  return {{"fast", splitting.fast}, {"factor", splitting.factor}};
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
  return {{"iterations", waves.iterations},
          {"relaxation", chooses ? Json(nullptr) : number(waves.relaxation)},
          {"tolerance", number(waves.tolerance)},
          {"energy_tolerance_J", number(waves.energy_tolerance_J)},
          {"tolerance_per_part", waves.tolerance_per_part},
          {"acceleration", chooses ? Json(nullptr) : Json(waves.acceleration)},
          {"impedance", impedance_json(waves)},
          {"guard", waves.guard},
          {"tank", tank_json(waves.tank)}};
}

Json method_options_json(const CouplingMethod& method) {
  if (const auto* const splitting = method.as<Splitting>()) return options_json(*splitting);
  if (const auto* const dynamic = method.as<DynamicIteration>()) return options_json(*dynamic);
  return options_json(method.waves());
}

bool has_waves(const RunSummary& summary) { return summary.method.couples_by_waves(); }

bool is_automatic(const CouplingMethod& method) {
  const auto* const waves = method.as<WaveCoupling>();
  return waves != nullptr && (waves->kind == WaveUpdate::automatic ||
                              waves->impedance_kind == ImpedanceKind::automatic);
}

/// What "auto" came to; null where nothing was left to it.
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
          {"withheld_J", number(guard.withheld_J)}};
}

Json energy_json(const RunSummary& summary) {
  if (!summary.has_ledger) return nullptr;
  const EnergyTotals& energy = summary.energy;
  return {{"initial_J", number(energy.initial_J)},
          {"final_J", number(energy.final_J)},
          {"max_J", number(energy.max_J)},
          {"supplied_J", number(energy.supplied_J)},
          {"dissipated_J", number(energy.dissipated_J)},
          {"mismatch_J", number(energy.mismatch_J)},
          {"initial_tank_J", number(energy.initial_tank_J)},
          {"tank_J", number(energy.tank_J)},
          {"given_up_J", number(energy.given_up_J)},
          {"rounding_J", number(energy.rounding_J)},
          {"max_energy_ratio", number(energy.max_energy_ratio)}};
}

std::string_view name_of(BrokenLaw::Law law) {
  return law == BrokenLaw::Law::tank ? "tank >= 0" : "energy + tank <= start + supply";
}

Json broken_law_json(const Certificate& certificate) {
  if (!certificate.broken_law) return nullptr;
  return {{"law", std::string(name_of(certificate.broken_law->law))},
          {"island", certificate.broken_law->island},
          {"step", certificate.broken_law->step}};
}

/// Whether H ever exceeded what was there and supplied.
std::string_view energy_safety(const RunSummary& summary) {
  if (!summary.has_ledger) return "not_checked";
  const Certificate& certificate = summary.certificate;
  if (certificate.growth || certificate.status == CertificateStatus::violated ||
      certificate.steps_with_excess > 0) {
    return "not_kept";
  }
  return has_waves(summary) && summary.method.waves().guard && summary.guard.steps > 0
             ? "kept_by_guard"
             : "kept";
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

Json certificate_json(const RunSummary& summary) {
  const Certificate& certificate = summary.certificate;
  const bool has_worst = certificate.worst_passivity_step >= 0;
  const bool is_of_part = certificate.worst_passivity_part >= 0;
  const bool is_checked = summary.has_ledger;
  return {
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
  const DeadlineScheduler::Statistics& d = summary.deadline;
  return {{"deadline_s", given(summary.time.deadline_s)},
          {"pace", given(summary.time.pace)},
          {"steps", d.steps},
          {"misses", d.misses},
          {"unexplained_misses", d.misses - d.preempted_misses},
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

std::string impedance_text(const RunSummary& summary) {
  const WaveCoupling& method = summary.method.waves();
  if (method.impedance_kind == ImpedanceKind::given) {
    if (method.impedance.size() != 1) return "given by port";
    return fmt::format("{:g} at every port", method.impedance.front());
  }
  std::string text(to_string(method.impedance_kind));
  if (method.retune_factor > 0.0 && summary.follows_state) {
    text += fmt::format(", set anew when off by a factor {:g}: {} times", method.retune_factor,
                        summary.tuning.changes);
    if (summary.tuning.failures > 0) text += fmt::format(" ({} failed)", summary.tuning.failures);
  }
  return text;
}

std::string guard_text(const RunSummary& summary) {
  const WaveCoupling& method = summary.method.waves();
  if (!method.guard) return "off";
  std::string text = "on";
  if (method.tank.initial_J) text += fmt::format(", tank {:g} J", *method.tank.initial_J);
  if (method.tank.initial_fraction > 0.0) {
    text += fmt::format("{}{:g} of the stored energy", method.tank.initial_J ? " and " : ", tank ",
                        method.tank.initial_fraction);
  }
  if (std::isfinite(method.tank.cap_J)) text += fmt::format(", at most {:g} J", method.tank.cap_J);
  const GuardStatistics& guard = summary.guard;
  if (guard.steps == 0) return text + "; it never had to act";
  text += fmt::format("; it acted in {} step{}, largest 1 - alpha {:.3g}, withheld {:.3g} J",
                      guard.steps, guard.steps == 1 ? "" : "s", 1.0 - guard.min_alpha,
                      guard.withheld_J);
  return text;
}

/// What was asked for, and what that came to.
std::string network_method_text(const RunSummary& summary) {
  std::string text(to_string(summary.method.kind()));
  if (const auto* const dynamic = summary.method.as<DynamicIteration>()) {
    const int window = dynamic->window_steps;
    text += fmt::format(", at most {} iteration{} of a window of {} step{}", dynamic->iterations,
                        dynamic->iterations == 1 ? "" : "s", window, window == 1 ? "" : "s");
    if (dynamic->tolerance > 0.0) text += fmt::format(", tolerance {:g}", dynamic->tolerance);
  }
  text += "\n               " + summary.choice.reason;
  if (!summary.remarks.empty()) text += "\n               " + summary.remarks;
  return text;
}

/// What was asked for; one line, and one each for the impedance and the guard.
std::string method_text(const RunSummary& summary) {
  if (!has_waves(summary)) return network_method_text(summary);
  const WaveCoupling& method = summary.method.waves();
  std::string text = fmt::format("{}, at most {} iteration{}", name_of(method), method.iterations,
                                 method.iterations == 1 ? "" : "s");
  if (method.kind != WaveUpdate::automatic && method.kind != WaveUpdate::interface) {
    text += fmt::format(", relaxation {:g}", method.relaxation);
  }
  if (method.acceleration > 0) text += fmt::format(", acceleration {}", method.acceleration);
  if (method.tolerance > 0.0) {
    text += fmt::format(", tolerance {:g}{}", method.tolerance,
                        method.tolerance_per_part ? " per part" : "");
  }
  if (method.energy_tolerance_J > 0.0) {
    text += fmt::format(", energy tolerance {:g} J", method.energy_tolerance_J);
  }
  if (is_automatic(summary.method)) text += "\n               " + summary.choice.reason;
  return text;
}

/// "20" or, of the histogram's last entry, "256 or more".
std::string bin_text(const IterationStatistics& iterations, int count) {
  const bool is_last = count == IterationStatistics::kHistogram - 1 && iterations.max > count;
  return fmt::format("{}{}", count, is_last ? " or more" : "");
}

std::string reason_text(StopReason reason) {
  if (reason == StopReason::stalled) return "round-off";
  std::string name(to_string(reason));
  for (char& c : name) c = c == '_' ? ' ' : c;
  return name;
}

/// Steps, or windows of several: what is iterated at once.
bool has_windows(const CouplingMethod& method) {
  const auto* const dynamic = method.as<DynamicIteration>();
  return dynamic != nullptr && dynamic->window_steps > 1;
}

std::string iterations_text(const RunSummary& summary) {
  const IterationStatistics& iterations = summary.iterations;
  const bool by_window = has_windows(summary.method);
  std::string text =
      by_window ? fmt::format("{:.6g} per window of {} steps ({:.6g} per step)", iterations.mean(),
                              summary.method.dynamic().window_steps, iterations.per_step())
                : fmt::format("{:.6g} per step", iterations.per_step());
  if (iterations.steps == 0) return text;
  text += fmt::format(": {} (p50) {} (p95) {} (max)",
                      bin_text(iterations, iteration_quantile(iterations, 0.5)),
                      bin_text(iterations, iteration_quantile(iterations, 0.95)), iterations.max);
  if (iterations.linearisations > 0) {
    text += fmt::format("\n               and {} evaluations of nonlinear parts to linearise them",
                        iterations.linearisations);
  }
  if (iterations.rescues > 0) {
    text += fmt::format("\n               {} time{} an island went on with the interface equation",
                        iterations.rescues, iterations.rescues == 1 ? "" : "s");
  }
  const bool may_be_late = has_waves(summary) && summary.time.active();
  if (!has_tolerance(summary.method) && !may_be_late) return text;
  const char* const noun = by_window ? "windows" : "steps";
  text += fmt::format("\n               {} ended by", noun);
  const char* separator = " ";
  for (std::size_t i = 0; i < iterations.reasons.size(); ++i) {
    if (iterations.reasons[i] == 0) continue;
    text += fmt::format("{}{} {}", separator, reason_text(static_cast<StopReason>(i)),
                        iterations.reasons[i]);
    separator = ", ";
  }
  if (has_tolerance(summary.method)) {
    text += fmt::format("; {} of {} {} missed the tolerance", iterations.not_converged,
                        by_window ? iterations.windows : summary.steps, noun);
  }
  return text;
}

std::string energy_text(const RunSummary& summary) {
  if (!summary.has_ledger) return "no ledger was kept";
  const EnergyTotals& energy = summary.energy;
  std::string text = fmt::format("{:.6g} J -> {:.6g} J, largest {:.6g} J\n", energy.initial_J,
                                 energy.final_J, energy.max_J);
  text += fmt::format("               supplied {:.6g} J, dissipated {:.6g} J, {} {:.6g} J",
                      energy.supplied_J, energy.dissipated_J,
                      has_waves(summary) ? "interface mismatch" : "mismatch", energy.mismatch_J);
  if (std::isfinite(energy.max_energy_ratio)) {
    text += fmt::format(
        "\n               energy{}, less what was supplied, at most {:.6g} times the start",
        has_waves(summary) ? " and tank" : "", energy.max_energy_ratio);
  }
  return text;
}

std::string energy_safety_text(const RunSummary& summary) {
  const std::string_view status = energy_safety(summary);
  if (status == "not_checked") return "not checked";
  const Certificate& certificate = summary.certificate;
  if (status != "not_kept") {
    std::string text = status == "kept_by_guard" ? "kept, by the guard" : "kept";
    text += ": energy never exceeded the start and what was supplied";
    if (!has_waves(summary)) return text;  // their accounts are of whole steps, without a bound
    return text + fmt::format("; the rounding of the account is at most {:.2g} J",
                              summary.energy.rounding_J);
  }
  if (!certificate.growth) return "not kept: energy was created, see the certificate";
  const EnergyGrowth& growth = *certificate.growth;
  const std::string times = std::isfinite(growth.ratio)
                                ? fmt::format("{:.6g} times the start", growth.ratio)
                                : fmt::format("{:.3g} J, from nothing", growth.beyond_J);
  std::string text = fmt::format("NOT KEPT: energy beyond what was supplied grew to {} in step {}",
                                 times, growth.step);
  if (std::isfinite(growth.ratio)) {
    text += fmt::format(" ({:.3g} J too much)", growth.beyond_J);
  }
  if (has_waves(summary) && !summary.method.waves().guard) {
    text += "\n               the coupling created it; the guard (\"guard\": true) prevents that";
  }
  return text;
}

/// The largest gap of the steps that missed the tolerance.
std::string missed_text(const RunSummary& summary) {
  const MissedTolerance& missed = summary.certificate.missed;
  std::string text = fmt::format("largest residual {:.3g} ({:.3g} J) in step {}", missed.residual,
                                 missed.gap_J, missed.step);
  if (!summary.missed_part.empty()) {
    text += fmt::format(", of which {:.3g} J at \"{}\"", missed.part_gap_J,
                        printable(summary.missed_part));
  }
  return text;
}

std::string certificate_text(const RunSummary& summary) {
  if (!summary.has_ledger) return "not checked";
  const Certificate& certificate = summary.certificate;
  std::vector<std::string> lines;
  if (certificate.missed.steps > 0) lines.push_back(missed_text(summary));
  if (certificate.uncomputable_islands > 0) {
    lines.push_back(fmt::format(
        "on {} island{} the impedances are so far from the parts' own that waves drown the energy; "
        "the guard limits its growth",
        certificate.uncomputable_islands, certificate.uncomputable_islands == 1 ? "" : "s"));
  }
  if (certificate.growth && certificate.status == CertificateStatus::conditional) {
    lines.push_back("energy came from the coupling");
  }
  if (certificate.broken_law) {
    lines.push_back(fmt::format("{} does not hold on island {} in step {}",
                                name_of(certificate.broken_law->law),
                                certificate.broken_law->island, certificate.broken_law->step));
  }
  if (certificate.worst_passivity_step >= 0) {
    const bool is_beyond = certificate.is_part_active || certificate.steps_with_excess > 0;
    const std::string part = certificate.worst_passivity_part < 0
                                 ? ""
                                 : fmt::format(" \"{}\"", printable(summary.worst_passivity_part));
    lines.push_back(fmt::format("largest passivity residual {:.3g} J; {} its limit{} in step {}",
                                certificate.max_passivity_residual_J,
                                is_beyond ? "farthest beyond" : "nearest to", part,
                                certificate.worst_passivity_step));
  }
  if (certificate.steps_with_excess > 0) {
    lines.push_back(fmt::format(
        "in {} of {} steps the error of the iteration created energy: at most {:.3g} J",
        certificate.steps_with_excess, summary.steps, certificate.max_passivity_residual_J));
  }
  const auto add = [&lines](const char* what, const std::optional<double>& value) {
    if (value) lines.push_back(fmt::format("{} {:.3g}", what, *value));
  };
  if (certificate.max_augmented_residual_J) {
    lines.push_back(
        fmt::format("largest augmented residual {:.3g} J", *certificate.max_augmented_residual_J));
  }
  if (certificate.max_fejer_residual_J) {
    lines.push_back(
        fmt::format("largest Fejer residual {:.3g} J", *certificate.max_fejer_residual_J));
  }
  add("smallest firm-nonexpansiveness margin", certificate.min_fne_margin);
  add("smallest nonexpansiveness margin", certificate.min_nonexpansiveness_margin);
  if (certificate.steps_without_fixed_point > 0) {
    lines.push_back(
        fmt::format("fixed point not found in {} steps", certificate.steps_without_fixed_point));
  }
  if (certificate.steps_without_margin > 0) {
    lines.push_back(
        fmt::format("margin not sampled in {} steps", certificate.steps_without_margin));
  }
  std::string text(to_string(certificate.status));
  const char* const next_line = "\n               ";
  if (certificate.missed.steps > 0) {
    text += fmt::format(", but {} of {} steps missed the tolerance{}", certificate.missed.steps,
                        summary.steps, next_line);
  } else if (!lines.empty()) {
    text += ": ";
  }
  return text + fmt::format("{}", fmt::join(lines, next_line));
}

std::string execution_text(const RunSummary& summary) {
  return fmt::format("{}, {} thread{}, {}", printable(summary.execution), summary.threads,
                     summary.threads == 1 ? "" : "s", to_string(instruction_set()));
}

/// Four digits, in a unit that needs no exponent.
std::string duration_text(double time_s) {
  const double size = std::abs(time_s);
  if (size >= 10.0) return fmt::format("{:.4g} s", time_s);
  return size >= 10e-3 ? fmt::format("{:.4g} ms", 1e3 * time_s)
                       : fmt::format("{:.4g} us", 1e6 * time_s);
}

/// The line of the time budget, or nothing.
std::string time_budget_text(const RunSummary& summary) {
  if (!summary.time.active()) return {};
  std::string text = "  deadline     ";
  if (summary.time.deadline_s > 0.0) text += duration_text(summary.time.deadline_s);
  if (summary.time.deadline_s > 0.0 && summary.time.pace > 0.0) text += ", ";
  if (summary.time.pace > 0.0) {
    text += fmt::format("pace {:g} (a step every {})", summary.time.pace,
                        duration_text(summary.step_s / summary.time.pace));
  }
  text += has_waves(summary) ? "; the results depend on the clock\n" : "\n";
  const DeadlineScheduler::Statistics& d = summary.deadline;
  if (d.steps == 0) return text;
  text += fmt::format("               {} of {} steps missed it, {} not explained by preemption\n",
                      d.misses, d.steps, d.misses - d.preempted_misses);
  text += fmt::format("               slack {} (p1) {} (p50) {} (p99), worst {}\n",
                      duration_text(d.slack_p01_s), duration_text(d.slack_p50_s),
                      duration_text(d.slack_p99_s), duration_text(d.worst_slack_s));
  return text;
}

/// The line of the times per phase, or nothing.
std::string phases_text(const RunSummary& summary) {
  if (!summary.timed || summary.steps == 0) return {};
  const auto us = [&](double s) { return 1e6 * s / static_cast<double>(summary.steps); };
  return fmt::format(
      "  phases       begin {:.3g} us, iterate {:.3g} us, commit {:.3g} us per step\n",
      us(summary.times.begin_s), us(summary.times.iterate_s), us(summary.times.commit_s));
}

std::string speed_text(const RunSummary& summary) {
  std::string text = fmt::format("{:.3g} s", summary.wall_s);
  if (summary.steps > 0 && summary.wall_s > 0.0) {
    text += fmt::format(", {:.3g} steps/s, {:.3g} times real time", summary.steps_per_s(),
                        summary.real_time_factor());
  }
  return text;
}

}  // namespace

RunSummary summarize(std::string scenario, const StepperOptions& options, const Stepper& stepper,
                     double wall_s, const StepTimes& times) {
  RunSummary summary;
  summary.scenario = std::move(scenario);
  summary.steps = stepper.step_index();
  summary.step_s = options.step_s;
  summary.method = options.method;
  summary.choice = stepper.method();
  summary.remarks = stepper.remarks();
  summary.tuning = stepper.tuning();
  summary.follows_state = stepper.follows_state();
  summary.guard = stepper.guard();
  summary.has_ledger = stepper.keeps_ledger();
  summary.iterations = stepper.iterations();
  summary.energy = stepper.energy();
  summary.certificate = stepper.certificate();
  if (const int worst = summary.certificate.worst_passivity_part; worst >= 0) {
    summary.worst_passivity_part = stepper.system().parts()[static_cast<std::size_t>(worst)].name;
  }
  if (const int part = summary.certificate.missed.part; part >= 0) {
    summary.missed_part = stepper.system().parts()[static_cast<std::size_t>(part)].name;
  }
  summary.certify = options.certify;
  summary.time = options.time;
  summary.deadline = stepper.deadline();
  summary.timed = options.timed || options.time.active();
  summary.times = times;
  summary.threads = stepper.threads();
  summary.tasks = stepper.tasks();
  summary.grain = options.grain;
  summary.executor = options.executor;
  summary.execution = stepper.execution();
  summary.wall_s = wall_s;
  return summary;
}

int iteration_quantile(const IterationStatistics& iterations, double level) {
  const std::vector<std::int64_t>& bins = iterations.histogram;
  const std::int64_t all = std::accumulate(bins.begin(), bins.end(), std::int64_t{0});
  const double wanted = level * static_cast<double>(all);
  std::int64_t windows = 0;
  for (std::size_t k = 0; k < bins.size(); ++k) {
    windows += bins[k];
    if (windows > 0 && static_cast<double>(windows) >= wanted) return static_cast<int>(k);
  }
  return 0;
}

nlohmann::ordered_json summary_json(const RunSummary& summary) {
  const CouplingMethod& method = summary.method;
  return {{"scenario", summary.scenario},
          {"version", std::string(version())},
          {"steps", summary.steps},
          {"step_s", number(summary.step_s)},
          {"completed", summary.completed},
          {"method", std::string(name_of(method))},
          {"method_options", method_options_json(method)},
          {"method_description", has_waves(summary) ? Json(nullptr) : Json(summary.choice.reason)},
          {"method_remarks", summary.remarks.empty() ? Json(nullptr) : Json(summary.remarks)},
          {"choice", choice_json(summary)},
          {"tuning", tuning_json(summary)},
          {"iterations", iterations_json(summary)},
          {"guard", guard_json(summary)},
          {"energy", energy_json(summary)},
          {"certificate", certificate_json(summary)},
          {"execution", execution_json(summary)},
          {"time_budget", time_budget_json(summary)},
          {"times", times_json(summary)},
          {"threads", summary.threads},
          {"wall_s", number(summary.wall_s)},
          {"steps_per_s", number(summary.steps_per_s())},
          {"real_time_factor", number(summary.real_time_factor())}};
}

std::string summary_text(const RunSummary& summary) {
  const auto line = [](const char* head, const std::string& text) {
    return fmt::format("  {:<11}  {}\n", head, text);
  };
  std::string text = fmt::format("{}: {} steps of {:g} s, {:g} s in all{}\n",
                                 printable(summary.scenario), summary.steps, summary.step_s,
                                 summary.simulated_s(), summary.completed ? "" : " (interrupted)");
  text += line("method", method_text(summary));
  if (has_waves(summary)) {
    text += line("impedance", impedance_text(summary)) + line("guard", guard_text(summary));
  }
  if (!summary.method.is<Splitting>()) text += line("iterations", iterations_text(summary));
  text += line("energy", energy_text(summary)) + line("safety", energy_safety_text(summary)) +
          line("certificate", certificate_text(summary)) +
          line("execution", execution_text(summary));
  return text + time_budget_text(summary) + phases_text(summary) +
         line("time", speed_text(summary));
}

std::string_view version() { return PORTWAVE_VERSION; }

}  // namespace portwave

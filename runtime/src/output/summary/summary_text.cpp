// A summary as people read it.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "output/summary/defects_text.hpp"
#include "output/summary/resolution_text.hpp"
#include "output/summary/starts_text.hpp"
#include "output/summary/summary_facts.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

std::string impedance_text(const RunSummary& summary) {
  const WaveCoupling& method = summary.method.waves();
  if (method.impedance_kind == ImpedanceKind::given) {
    if (method.impedance.size() != 1) return "given by port";
    return fmt::format("{:g} at every port", method.impedance.front());
  }
  std::string text(to_string(method.impedance_kind));
  if (method.retune_factor > 0.0 && summary.follows_state) {
    text += fmt::format(", retuned when off by a factor {:g}: {} times", method.retune_factor,
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
  return text + fmt::format("; it acted in {} step{}, largest 1 - alpha {:.3g}, withheld {:.3g} J",
                            guard.steps, guard.steps == 1 ? "" : "s", 1.0 - guard.min_alpha,
                            guard.withheld_J);
}

/// Empty where waves are never late.
std::string exchange_text(const RunSummary& summary) {
  const ExchangeOptions& exchange = summary.method.waves().exchange;
  if (exchange.kind == ExchangeKind::synchronous) return {};
  return fmt::format(
      "asynchronous, waves at most {} evaluation{} late: on several ranks results depend on timing",
      exchange.max_delay, exchange.max_delay == 1 ? "" : "s");
}

/// The chosen settings, and their result.
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

/// What to do about an ideal part: more iterations do not solve what has no solution.
std::string ideal_text(const RunSummary& summary) {
  return fmt::format(
      "\"{}\" is ideal, and may contradict a source\n               or another ideal part. Put a "
      "small resistance, such as 1 mOhm, in series with it",
      printable(summary.ideal_part));
}

/// Agreement of the waves where no tolerance was set, and energy that went astray between the parts; empty
/// where neither matters.
std::string coupling_text(const RunSummary& summary) {
  std::vector<std::string> lines;
  if (summary.blind_share() > RunSummary::kPoorMismatch) {
    lines.push_back(
        fmt::format("poor: {:.3g} % of the steps had no time for an evaluation; their parts saw "
                    "the waves of the",
                    100.0 * summary.blind_share()));
    lines.emplace_back(
        "step before. This is not the solution: allow more time or more threads, or");
    lines.emplace_back("take larger steps");
  }
  if (summary.mismatch_share() > RunSummary::kPoorMismatch) {
    const std::string remedy =
        !summary.ideal_part.empty() ? "This is not the solution: " + ideal_text(summary)
        : is_automatic(summary.method)
            ? "This is not the solution: allow more time or more iterations"
            : "This is not the solution: allow more iterations or more time, or give\n"
              "               --set '/method={\"kind\": \"auto\"}'";
    lines.push_back(fmt::format(
        "poor: {:.3g} J went astray between the parts, {:.3g} % of the {:.3g} J that the run "
        "moved.",
        std::abs(summary.energy.mismatch_J), 100.0 * summary.mismatch_share(), summary.moved_J));
    lines.push_back(remedy);
  }
  if (std::string defects = defects_text(summary); !defects.empty())
    lines.push_back(std::move(defects));
  if (is_open(summary) && summary.coupling.count > 0) {
    lines.push_back(
        fmt::format("no tolerance was set; the waves of neighbours differ by up to {:.2g}",
                    summary.coupling.residual));
  }
  return fmt::format("{}", fmt::join(lines, "\n               "));
}

/// The settings: one line, and one each for the impedance and the guard.
std::string method_text(const RunSummary& summary) {
  if (!has_waves(summary)) return network_method_text(summary);
  const WaveCoupling& method = summary.method.waves();
  std::string text = fmt::format("{}, at most {} iteration{}", name_of(method), method.iterations,
                                 method.iterations == 1 ? "" : "s");
  if (summary.stages > 1) text += fmt::format(", {} stages", summary.stages);
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
  if (!summary.integrator.empty()) text += "\n               " + summary.integrator;
  if (is_automatic(summary.method)) text += "\n               " + summary.choice.reason;
  if (!summary.remarks.empty()) text += "\n               " + summary.remarks;
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

/// Steps, or windows of several steps, that are iterated together.
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

/// What parts that do not know their energy took and gave, or nothing.
std::string metered_text(const RunSummary& summary) {
  constexpr std::size_t kShown = 6;
  const auto net = [](double taken) {
    return fmt::format("{} {:.6g} J net", taken < 0.0 ? "gave" : "took", std::abs(taken));
  };
  if (summary.unjudged_parts.empty()) return {};
  if (summary.metered_J.size() != summary.unjudged_parts.size() ||
      summary.metered_J.size() > kShown) {
    return "\n               " + subsystems_text(summary.unjudged_parts) + " " +
           net(summary.energy.metered_J);
  }
  std::string text = "\n              ";
  for (std::size_t i = 0; i < summary.metered_J.size(); ++i) {
    text += fmt::format("{} \"{}\" {}", i == 0 ? "" : ",", printable(summary.unjudged_parts[i]),
                        net(summary.metered_J[i]));
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
  if (summary.impulses.count > 0) text += fmt::format(", impulses {:.6g} J", energy.impact_J);
  if (summary.damped_parts > 0 || energy.numerical_dissipation_J != 0.0) {
    text += fmt::format(", damped steps {:.6g} J", energy.numerical_dissipation_J);
  }
  if (std::isfinite(energy.max_energy_ratio)) {
    text += fmt::format(
        "\n               energy{}, less what was supplied, at most {:.6g} times the start",
        has_waves(summary) ? " and tank" : "", energy.max_energy_ratio);
  }
  return text + metered_text(summary);
}

double energy_to_pay_with(const EnergyTotals& energy) {
  return std::abs(energy.initial_J) + energy.initial_tank_J + std::abs(energy.supplied_J);
}

std::string energy_safety_text(const RunSummary& summary) {
  const std::string_view status = energy_safety(summary);
  if (status == "not_checked") return "not checked";
  const Certificate& certificate = summary.certificate;
  if (status == "not_judged") {
    return fmt::format("not judged: rounding may have left {:.2g} J in the account, of {:.2g} J",
                       summary.energy.rounding_J, energy_to_pay_with(summary.energy));
  }
  if (status != "not_kept") {
    std::string text = status == "kept_by_guard" ? "kept, by the guard" : "kept";
    text += ": energy never exceeded the start and what was supplied";
    if (!summary.unjudged_parts.empty()) {
      text += ", by " + subsystems_text(summary.unjudged_parts) + " too";
    }
    if (!has_waves(summary)) return text;  // their accounts are of whole steps, without a bound
    if (const double more_J = summary.energy.tolerated_J; more_J > 0.0) {
      text += fmt::format(
          "\n               but for {:.2g} J, which the tolerance of the iteration explains",
          more_J);
    }
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
  const bool is_told = summary.is_coupled_poorly() || summary.guard.missed_steps > 0;
  if (!summary.ideal_part.empty() && !is_told) text += "\n               " + ideal_text(summary);
  return text;
}

/// Noticeable changes by the guard, and the remedy.
std::string changed_text(const RunSummary& summary) {
  std::string remedy = is_automatic(summary.method)
                           ? "Allow more iterations, or a smaller tolerance (--set "
                             "/method/tolerance=1e-14)"
                           : "Allow more iterations, a smaller tolerance (--set "
                             "/method/tolerance=1e-14), or have the method\n               chosen "
                             "(--set '/method={\"kind\": \"auto\"}')";
  if (!summary.ideal_part.empty()) remedy = ideal_text(summary);
  return fmt::format(
      "by up to {:.3g} of the waves, most in step {} on the island of \"{}\": its waves did not "
      "agree "
      "well enough.\n               {}",
      1.0 - summary.guard.min_alpha, summary.guard.worst_step, printable(summary.guarded_part),
      remedy);
}

std::string certificate_text(const RunSummary& summary) {
  if (!summary.has_ledger) return "not checked";
  const Certificate& certificate = summary.certificate;
  std::vector<std::string> lines;
  if (certificate.missed.steps > 0) lines.push_back(missed_text(summary));
  if (summary.guard.missed_steps > 0) lines.push_back(changed_text(summary));
  if (certificate.uncomputable_islands > 0) {
    lines.push_back(fmt::format(
        "on {} island{} rounding may be more than a millionth of all energy there: the waves are "
        "too "
        "large, the states far from the origin, or the run very long",
        certificate.uncomputable_islands, certificate.uncomputable_islands == 1 ? "" : "s"));
  }
  if (certificate.growth && certificate.status == CertificateStatus::conditional) {
    lines.emplace_back("energy came from the coupling");
  }
  if (certificate.broken_law && certificate.broken_law->law == BrokenLaw::Law::form) {
    lines.push_back(fmt::format(
        "the energy of \"{}\" by step {} is not the one that was stepped, which is quadratic where "
        "a few\n"
        "               places say so: states and energies are wrong. Take wave coupling (--set\n"
        "               '/method={{\"kind\": \"auto\"}}'), or give the energy by an expression",
        printable(summary.worst_passivity_part), certificate.broken_law->step));
  } else if (certificate.broken_law) {
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
  // A part whose energy at the start was given is judged by that where it gave more.
  std::vector<std::string> unjudged = summary.unjudged_parts;
  if (certificate.is_part_active) std::erase(unjudged, summary.worst_passivity_part);
  if (!unjudged.empty()) {
    const bool is_one = unjudged.size() == 1;
    lines.push_back(fmt::format(
        "whether {} {} passive is not judged: {} energy is not known{}", subsystems_text(unjudged),
        is_one ? "is" : "are", is_one ? "its" : "their",
        summary.holds_as_measured() ? ".\n               All that is measured kept its limits"
                                    : ""));
  }
  if (!summary.unrepeatable_parts.empty()) {
    lines.push_back(fmt::format("no fixed point was looked for: the steps of {} do not repeat",
                                subsystems_text(summary.unrepeatable_parts)));
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
  std::vector<std::string> exceptions;
  if (certificate.missed.steps > 0) {
    exceptions.push_back(fmt::format("{} of {} steps missed the tolerance",
                                     certificate.missed.steps, summary.steps));
  }
  if (summary.guard.missed_steps > 0) {
    exceptions.push_back(fmt::format("in {} of {} steps the guard changed the motion",
                                     summary.guard.missed_steps, summary.steps));
  }
  if (!exceptions.empty()) {
    text += fmt::format(", but {}{}", fmt::join(exceptions, ", and "), next_line);
  } else if (!lines.empty()) {
    text += ": ";
  }
  return text + fmt::format("{}", fmt::join(lines, next_line));
}

std::string balance_text(const RunSummary& summary) {
  return fmt::format(
      "NOT KEPT: {:.2g} % of the {:.3g} J that the run moved is in no entry of the account. With "
      "several\n"
      "               stages, energies that are no polynomials are integrated numerically, and "
      "steps that are too\n"
      "               long leave something out: take shorter ones, or one stage (--set "
      "/method/stages=1)",
      100.0 * summary.missing_share(), summary.moved_J);
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
  if (!summary.deadline || summary.deadline->steps == 0) return text;
  const DeadlineScheduler::Statistics& d = *summary.deadline;
  text += fmt::format("               {} of {} steps missed it, {} not explained by preemption",
                      d.misses, d.steps, d.misses - d.preempted_misses);
  std::vector<std::string> causes;
  if (d.guard_misses > 0) {
    causes.push_back(fmt::format("{} by the guard or an examination of the run", d.guard_misses));
  }
  if (d.late_misses > 0) {
    causes.push_back(fmt::format("{} began late, after a step that ended late", d.late_misses));
  }
  if (d.trial_misses > 0) causes.push_back(fmt::format("{} by a trial", d.trial_misses));
  text += causes.empty() ? "\n" : fmt::format(" ({})\n", fmt::join(causes, ", "));
  if (d.unused_share > 0.0) {
    text += fmt::format("               steps that could have used more time left {:.2g} % of it\n",
                        100.0 * d.unused_share);
  }
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

/// "1000 steps of 0.01 s", "812 steps of 0.0012 to 0.01 s".
std::string steps_text(const RunSummary& summary) {
  if (!summary.sizes) return fmt::format("{} steps of {:g} s", summary.steps, summary.step_s);
  if (summary.steps == 0) return "no steps";
  const StepSizeStatistics& s = summary.step_sizes;
  const std::string sizes = s.smallest_s == s.largest_s
                                ? fmt::format("{:.4g} s", s.largest_s)
                                : fmt::format("{:.4g} to {:.4g} s", s.smallest_s, s.largest_s);
  return fmt::format("{} steps of {}", summary.steps, sizes);
}

/// The line of the step sizes, or nothing.
std::string step_sizes_text(const RunSummary& summary) {
  if (!summary.sizes) return {};
  const StepSizeStatistics& s = summary.step_sizes;
  std::string text = fmt::format("  step size    tolerance {:g}; {} rejected",
                                 summary.sizes->tolerance, s.rejected);
  if (s.rejected_for_coupling > 0) {
    text += fmt::format(" ({} of them for the coupling)", s.rejected_for_coupling);
  }
  return text +
         fmt::format(", {} changes, {} comparisons with half the size\n", s.changes, s.comparisons);
}

/// "ball: 12 closes, 11 opens, the last at 3.2 s", a line for each of the first few that saw any.
std::string events_text(const RunSummary& summary) {
  constexpr int kShown = 5;
  std::string text;
  int shown = 0, more = 0;
  for (const RunSummary::Events& each : summary.events) {
    const EventCount& count = each.count;
    if (count.all() == 0) continue;
    if (++shown > kShown) {
      ++more;
      continue;
    }
    text += fmt::format("  {:<11}  {}:", shown == 1 ? "events" : "", printable(each.name));
    const char* separator = " ";
    if (count.rising > 0) {
      text += fmt::format("{}{} {}", separator, count.rising, printable(each.rising));
      separator = ", ";
    }
    if (count.falling > 0)
      text += fmt::format("{}{} {}", separator, count.falling, printable(each.falling));
    text += fmt::format("; the last at {:g} s\n", count.last_s);
  }
  if (shown == 0 && !summary.events.empty()) text += fmt::format("  {:<11}  none\n", "events");
  if (more > 0) text += fmt::format("  {:<11}  and {} more\n", "", more);
  return text;
}

std::string start_text(const RunSummary& summary) {
  return summary.start_s == 0.0 ? std::string() : fmt::format(" from {:g} s", summary.start_s);
}

std::string ending_text(const RunSummary& summary) {
  if (!summary.failure.empty()) return " (failed)";
  if (!summary.completed) return " (interrupted)";
  if (summary.ended_by.empty()) return {};
  return fmt::format(" (ended by {})", in_quotes(summary.ended_by));
}

std::string speed_text(const RunSummary& summary) {
  std::string text = fmt::format("{:.3g} s", summary.wall_s);
  if (summary.recording_wait_s > 0.01 * summary.wall_s) {
    text += fmt::format(" ({:.3g} s of it waiting for the files)", summary.recording_wait_s);
  }
  if (summary.steps > 0 && summary.wall_s > 0.0) {
    text += fmt::format(", {:.3g} steps/s, {:.3g} times real time", summary.steps_per_s(),
                        summary.real_time_factor());
  }
  return text;
}

}  // namespace

std::string summary_text(const RunSummary& summary) {
  const auto line = [](const char* head, const std::string& text) {
    return fmt::format("  {:<11}  {}\n", head, text);
  };
  std::string text =
      fmt::format("{}: {}, {:g} s in all{}{}\n", printable(summary.scenario), steps_text(summary),
                  summary.time_s - summary.start_s, start_text(summary), ending_text(summary));
  text += line("method", method_text(summary));
  if (has_waves(summary)) {
    text += line("impedance", impedance_text(summary)) + line("guard", guard_text(summary));
    if (const std::string exchange = exchange_text(summary); !exchange.empty()) {
      text += line("exchange", exchange);
    }
  }
  if (summary.starts_at_odds.count > 0) text += line("at odds", starts_at_odds_text(summary));
  if (summary.impulses.count > 0) text += line("impulses", impulses_text(summary));
  text += step_sizes_text(summary) + events_text(summary);
  for (const std::string& note : summary.notes) text += line("note", note);
  if (!summary.method.is<Splitting>()) text += line("iterations", iterations_text(summary));
  if (const std::string coupling = coupling_text(summary); !coupling.empty()) {
    text += line("coupling", coupling);
  }
  text += line("energy", energy_text(summary)) + line("safety", energy_safety_text(summary)) +
          line("certificate", certificate_text(summary));
  if (summary.missing_share() > RunSummary::kMissing)
    text += line("balance", balance_text(summary));
  if (!summary.is_resolved()) text += line("resolution", resolution_text(summary));
  if (summary.agreement) text += line("accuracy", agreement_text(summary));
  if (summary.is_switch_moved()) text += line("switches", switches_text(summary));
  text += line("execution", execution_text(summary));
  return text + time_budget_text(summary) + phases_text(summary) +
         line("time", speed_text(summary));
}

}  // namespace portwave

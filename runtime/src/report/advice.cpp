#include "report/advice.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "portwave/runtime/output/summary.hpp"
#include "report/run_folder.hpp"

namespace portwave::report {
namespace {

using Json = nlohmann::json;

double count(const Json& json) { return number_or(json, 0.0); }

/// Windows in which an inner iteration did not meet its tolerance, as a share.
double missed_share(const Json& summary) {
  const double windows = count(at(summary, "iterations", "windows"));
  return windows > 0.0 ? count(at(summary, "iterations", "not_converged")) / windows : 0.0;
}

/// Opaque parts take steps of one size only. They are those whose energy is not known.
std::string or_chosen_steps(const Json& summary) {
  const Json& opaque = at(summary, "certificate", "unjudged_parts");
  if (opaque.is_array() && !opaque.empty()) return {};
  return ", or let them choose their size (`\"step\": {\"kind\": \"adaptive\", \"tolerance\": "
         "1e-6}`)";
}

bool has_tolerance(const Json& summary) {
  const Json& options = at(summary, "method_options");
  return count(at(options, "tolerance")) > 0.0 || count(at(options, "energy_tolerance_J")) > 0.0;
}

bool has_deadline(const Json& summary) { return at(summary, "time_budget").is_object(); }

bool has_waves(const Json& summary) {
  return at(summary, "method_options", "impedance").is_object();
}

/// Impedances that somebody has written down.
bool has_given_impedance(const Json& summary) {
  const std::string kind = text_or(at(summary, "method_options", "impedance", "kind"), "");
  return kind == "uniform" || kind == "per_port";
}

constexpr const char* kLetChoose =
    "Let the impedances be chosen: `\"impedance\": {\"kind\": \"auto\"}` in the scenario's method, "
    "or "
    "the method `\"auto\"`, which also chooses the iteration; `portwave tune SCENARIO` shows "
    "the prediction for each.";

std::optional<Advice> failed(const Json& summary) {
  const std::string failure = text_or(at(summary, "failure"), "");
  if (failure.empty()) return {};
  return Advice{Level::bad, "The run failed",
                failure +
                    ". The charts below show the run up to there. Where a part is at its "
                    "limits, a smaller `step_s` often helps; `\"last_s\"` with `\"every\": 1` "
                    "in the outputs keeps the rows before the failure."};
}

std::optional<Advice> violated(const Json& summary) {
  if (text_or(at(summary, "certificate", "status"), "") != "violated") return {};
  const std::string law = text_or(at(summary, "certificate", "broken_law", "law"), "");
  const std::string part = text_or(at(summary, "certificate", "worst_passivity_part"), "");
  if (law == "energy as stepped") {
    return Advice{
        Level::bad, "An energy is not the one that was stepped",
        fmt::format(
            "That of `{}` is quadratic in the few places where it was looked at, and not where "
            "the run went: states and energies are wrong. Take wave coupling "
            "(`\"method\": {{\"kind\": \"auto\"}}`), or give the energy by an expression.",
            part)};
  }
  if (!law.empty()) {
    return Advice{
        Level::bad, "A law of the guard did not hold",
        fmt::format("{}, first in step {:.0f}. This is a defect of the program or of one of "
                    "your own parts: please report it with the scenario.",
                    law, number_or(at(summary, "certificate", "broken_law", "step"), 0.0))};
  }
  return Advice{
      Level::bad, "A part creates energy",
      fmt::format("{} gives off more energy than it stored and received: look for a negative "
                  "resistance, a force in "
                  "its interior that should be an input, or a discretisation that is not passive.",
                  part.empty() ? "One of them" : "`" + part + "`")};
}

std::optional<Advice> coupling_creates_energy(const Json& summary) {
  if (text_or(at(summary, "certificate", "status"), "") != "conditional") return {};
  if (text_or(at(summary, "certificate", "energy_safety", "status"), "") != "not_kept") return {};
  if (!at(summary, "guard").is_null() || !has_waves(summary)) return {};
  return Advice{Level::warn, "The coupling created energy",
                "The iteration is stopped before it has converged, and no guard acts: turn the "
                "guard on (`\"guard\": true`), or give it more iterations."};
}

bool is_coupled_poorly(const Json& summary) { return at(summary, "coupling", "poor") == true; }

std::optional<Advice> coupled_poorly(const Json& summary) {
  if (!is_coupled_poorly(summary)) return {};
  const double blind = count(at(summary, "coupling", "blind_share"));
  if (blind > RunSummary::kPoorMismatch) {
    return Advice{
        Level::bad, "The coupling is poor",
        fmt::format(
            "{:.2g} % of the steps had no time for an evaluation: their parts saw the waves "
            "of the step before. This is safe, but not the solution. Allow more time or "
            "more threads, or take larger steps.",
            100.0 * blind)};
  }
  const double defects = count(at(summary, "coupling", "defect_share"));
  if (defects > RunSummary::kPoorMismatch) {
    return Advice{
        Level::bad, "The coupling is poor",
        fmt::format("What was foretold of parts that take no step back missed {:.2g} % of the "
                    "energy through their ports: this is not the solution. Take shorter steps, or "
                    "export their FMUs such that they save their states.",
                    100.0 * defects)};
  }
  const std::string ideal = text_or(at(summary, "coupling", "ideal_part"), "");
  const std::string remedy =
      ideal.empty() ? "Allow more iterations or more time, or let the method be chosen (`--set "
                      "'/method={\"kind\": \"auto\"}'`)."
                    : fmt::format(
                          "\"{}\" is ideal, and may contradict a source or another ideal "
                          "part: put a small resistance, such as 1 mΩ, in series with it.",
                          ideal);
  return Advice{
      Level::bad, "The coupling is poor",
      fmt::format(
          "{:.3g} J went astray between the parts, {:.2g} % of the {:.3g} J that the run moved: "
          "this is "
          "safe, but not the solution. {}",
          std::abs(count(at(summary, "energy", "mismatch_J"))),
          100.0 * count(at(summary, "coupling", "mismatch_share")),
          count(at(summary, "coupling", "moved_J")), remedy)};
}

std::optional<Advice> starts_at_odds(const Json& summary) {
  const Json& odds = at(summary, "starts_at_odds");
  if (count(at(odds, "count")) == 0.0) return {};
  return Advice{
      Level::warn, "A start is at odds",
      fmt::format(
          "{:.0f} time{}, first at {:.6g} s: {}. In physics an impulse acts there. The steps "
          "oscillate about its result, and the energy that it would dissipate stays. Give "
          "consistent "
          "states, or put a small compliance or resistance between the parts.",
          count(at(odds, "count")), count(at(odds, "count")) == 1.0 ? "" : "s",
          number_or(at(odds, "first_s"), 0.0), text_or(at(odds, "first"), "?"))};
}

std::optional<Advice> impulses(const Json& summary) {
  const Json& all = at(summary, "impulses");
  const double number = count(at(all, "count"));
  if (number == 0.0 || !at(all, "first").is_array() || at(all, "first").empty()) return {};
  const Json& first = at(all, "first").front();
  return Advice{
      Level::good, number == 1.0 ? "An impulse acted" : "Impulses acted",
      fmt::format("{:.0f} in all took {:.6g} J. The first, at {:.6g} s ({}): {}. States did "
                  "not fit a rigid joint there ({}), and jumped to where it holds. If the "
                  "parts yield, put a small compliance or resistance between them.",
                  number, count(at(all, "impact_J")), number_or(at(first, "time_s"), 0.0),
                  text_or(at(first, "cause"), "?"), text_or(at(first, "jumps"), "?"),
                  text_or(at(first, "joint"), "?"))};
}

std::optional<Advice> budget_too_small(const Json& summary) {
  if (!has_tolerance(summary) || has_deadline(summary) || missed_share(summary) <= 0.02) return {};
  const double budget = count(at(summary, "method_options", "iterations"));
  std::string text = fmt::format(
      "{:.0f} % of the {} ended with {:.0f} iterations before the tolerance was met.",
      100.0 * missed_share(summary),
      count(at(summary, "method_options", "window_steps")) > 1.0 ? "windows" : "steps", budget);
  text += has_waves(summary) && has_given_impedance(summary)
              ? std::string(" ") + kLetChoose + " Or allow more: `--set /method/iterations=" +
                    fmt::format("{:.0f}", std::max(2.0 * budget, 10.0)) + "`."
              : fmt::format(
                    " Allow more: `--set /method/iterations={:.0f}`; `portwave study "
                    "budget SCENARIO` shows the error by budget.",
                    std::max(2.0 * budget, 10.0));
  return Advice{Level::warn, "The budget of iterations is too small", std::move(text)};
}

std::optional<Advice> wrong_impedance(const Json& summary) {
  const double mean = count(at(summary, "iterations", "mean"));
  if (!has_waves(summary) || !has_given_impedance(summary) || mean < 12.0) return {};
  if (missed_share(summary) > 0.02) return {};  // told with the budget
  return Advice{Level::warn, "The iteration converges slowly",
                fmt::format("A step takes {:.3g} iterations on average, with impedances that the "
                            "scenario gives. ",
                            mean) +
                    kLetChoose};
}

std::optional<Advice> not_looked_at(const Json& summary) {
  if (!has_waves(summary) || has_tolerance(summary) || has_deadline(summary)) return {};
  if (is_coupled_poorly(summary)) return {};  // told above
  const double mismatch = std::abs(count(at(summary, "energy", "mismatch_J")));
  const double largest = std::abs(count(at(summary, "energy", "max_J")));
  if (mismatch <= 1e-3 * largest || largest == 0.0) return {};
  return Advice{
      Level::warn, "The coupling takes part in the energy",
      fmt::format(
          "It took {:.3g} J, {:.2g} % of the largest stored energy, because every step ends "
          "after its budget whatever the residual. Set a tolerance and allow more: "
          "`--set /method/tolerance=1e-8 --set /method/iterations={:.0f}`.",
          mismatch, 100.0 * mismatch / largest,
          std::max(50.0, 4.0 * count(at(summary, "method_options", "iterations"))))};
}

std::optional<Advice> guard_changed_the_motion(const Json& summary) {
  const double missed = count(at(summary, "guard", "missed_steps"));
  if (missed == 0.0) return {};
  return Advice{
      Level::warn, "The guard changed the motion",
      fmt::format(
          "In {:.0f} of {:.0f} steps the iteration had not converged, and would have created "
          "energy. The committed waves are safe, but not the solution: they were changed by up to "
          "{:.3g} of their size, most in step {:.0f} on the island of {}. "
          "Let the method be chosen (`--set '/method={{\"kind\": \"auto\"}}'`), or allow "
          "more iterations.",
          missed, count(at(summary, "steps")), 1.0 - count(at(summary, "guard", "min_alpha")),
          count(at(summary, "guard", "worst_step")), text_or(at(summary, "guard", "part"), "?"))};
}

std::optional<Advice> not_resolved(const Json& summary) {
  const Json& resolution = at(summary, "resolution");
  const std::string status = text_or(at(resolution, "status"), "resolved");
  if (status == "resolved") return {};
  if (status == "pulses") {
    return Advice{
        Level::warn, "The steps do not resolve the motion",
        fmt::format("{} jumps to and fro within steps, first in step {:.0f}: {:.2g} % of its mean "
                    "square is of pulses that no row shows. Motion has their mean; what is "
                    "dissipated is off. Take steps that are shorter than a pulse{}.",
                    text_or(at(resolution, "part"), "?"), count(at(resolution, "step")),
                    100.0 * count(at(resolution, "share")), or_chosen_steps(summary))};
  }
  const double h_lambda = count(at(resolution, "h_lambda"));
  const std::string rate =
      h_lambda > 0.0 ? fmt::format(" A step is {:.2g} times as long as the motion there.", h_lambda)
                     : std::string();
  return Advice{
      Level::warn, "The steps do not resolve the motion",
      fmt::format(
          "Most in step {:.0f}, at {}: an error of {:.2g} % of all motion there.{} Such steps "
          "conserve "
          "energy, and a motion that should decay overshoots its rest position. Take shorter "
          "steps{}; "
          "joints between states that are at odds need a consistent start, or a stiff spring and "
          "damper.",
          count(at(resolution, "step")),
          text_or(at(resolution, "port"), text_or(at(resolution, "part"), "?")),
          100.0 * count(at(resolution, "share")), rate, or_chosen_steps(summary))};
}

bool is_far_from_finer(const Json& summary) { return at(summary, "agreement", "far") == true; }

std::optional<Advice> finer_steps_differ(const Json& summary) {
  if (!is_far_from_finer(summary)) return {};
  const Json& agreement = at(summary, "agreement");
  const std::string failure = text_or(at(agreement, "failure"), "");
  if (!failure.empty()) {
    return Advice{Level::warn, "The accuracy is not known",
                  fmt::format("The same run with finer steps failed: {}", failure)};
  }
  return Advice{
      Level::warn, "Finer steps lead elsewhere",
      fmt::format(
          "With steps of half the size, or a tenth of the tolerance, {} differs by {:.2g} % "
          "of its range, at {:.4g} s. Take shorter steps{}.{}",
          text_or(at(agreement, "state"), "?"), 100.0 * count(at(agreement, "share")),
          count(at(agreement, "time_s")), or_chosen_steps(summary),
          at(agreement, "samples_faster") == true
              ? " The controllers sampled twice as fast there: if they are to keep the rate that "
                "they have here, give `every_s` in `signals`."
              : "")};
}

std::optional<Advice> guard_acts_often(const Json& summary) {
  const double steps = count(at(summary, "steps"));
  const double used = count(at(summary, "guard", "steps"));
  if (count(at(summary, "guard", "missed_steps")) > 0.0) return {};  // told above
  if (steps == 0.0 || used <= 0.05 * steps) return {};
  return Advice{
      Level::warn, "The guard acts often",
      fmt::format(
          "In {:.0f} % of the steps it withheld energy that had no source ({:.3g} J in all): "
          "the run is safe, but less accurate than it could be. More iterations, better "
          "impedances, or a tank (`\"tank\": {{\"initial_fraction\": 0.01}}`) make that "
          "unnecessary.",
          100.0 * used / steps, count(at(summary, "guard", "withheld_J")))};
}

std::optional<Advice> deadline_missed(const Json& summary) {
  const double steps = count(at(summary, "time_budget", "steps"));
  const double misses = count(at(summary, "time_budget", "misses"));
  const double unexplained = count(at(summary, "time_budget", "unexplained_misses"));
  if (steps == 0.0 || misses <= 0.001 * steps) return {};
  return Advice{
      Level::warn, "Deadlines are missed",
      fmt::format(
          "{:.2g} % of the steps were late, {:.0f} of {:.0f} misses without preemption. Use a "
          "larger "
          "`step_s`, a later deadline or cheaper parts; against preemption, use real-time priority "
          "and a core of its own.",
          100.0 * misses / steps, unexplained, misses)};
}

std::optional<Advice> waits_for_files(const Json& summary) {
  const double wall = count(at(summary, "wall_s"));
  const double waited = count(at(summary, "recording_wait_s"));
  if (wall <= 0.0 || waited <= 0.1 * wall) return {};
  return Advice{
      Level::warn, "Steps wait for the files",
      fmt::format("{:.0f} % of the time. Record fewer rows (`\"every\"`), fewer quantities "
                  "(`\"observe\"`), or numbers in place of texts (`\"format\": \"hdf5\"`).",
                  100.0 * waited / wall)};
}

std::optional<Advice> steps_rejected(const Json& summary) {
  const double steps = count(at(summary, "steps"));
  const double rejected = count(at(summary, "step_sizes", "rejected"));
  if (steps == 0.0 || rejected <= 0.2 * steps) return {};
  const double for_coupling = count(at(summary, "step_sizes", "rejected_for_coupling"));
  return Advice{
      Level::warn, "Many steps are taken back",
      fmt::format("{:.0f} rejected steps beside {:.0f} accepted ones. {}", rejected, steps,
                  for_coupling > 0.5 * rejected
                      ? "Most because the coupling did not converge: allow more iterations."
                      : "Something changes faster than the steps can foresee: watch it as an "
                        "event, or ask for more stages.")};
}

std::optional<Advice> far_impedances(const Json& summary) {
  if (count(at(summary, "certificate", "uncomputable_islands")) == 0.0) return {};
  return Advice{
      Level::warn, "Energy is not judged",
      std::string(
          "Rounding may have left more than a millionth of all energy in the account of some "
          "island. Mostly its waves are too large, because impedances are far from those of "
          "the parts. ") +
          kLetChoose};
}

std::optional<Advice> unjudged(const Json& summary) {
  const Json& parts = at(summary, "certificate", "unjudged_parts");
  if (!parts.is_array() || parts.empty()) return {};
  return Advice{Level::good, "Not all parts are judged",
                fmt::format("{} of them do not know their energy; what went through their ports is "
                            "metered, and their passivity cannot be judged.",
                            parts.size())};
}

struct Rule {
  std::string_view name;
  std::optional<Advice> (*look)(const Json& summary);
};

/// The worst first.
constexpr Rule kRules[] = {
    {"failed", failed},
    {"violated", violated},
    {"coupling_creates_energy", coupling_creates_energy},
    {"coupled_poorly", coupled_poorly},
    {"starts_at_odds", starts_at_odds},
    {"budget_too_small", budget_too_small},
    {"wrong_impedance", wrong_impedance},
    {"not_looked_at", not_looked_at},
    {"guard_changed_the_motion", guard_changed_the_motion},
    {"not_resolved", not_resolved},
    {"finer_steps_differ", finer_steps_differ},
    {"guard_acts_often", guard_acts_often},
    {"deadline_missed", deadline_missed},
    {"steps_rejected", steps_rejected},
    {"far_impedances", far_impedances},
    {"waits_for_files", waits_for_files},
    {"impulses", impulses},
    {"unjudged", unjudged},
};

std::string conditional_text(const Json& certificate) {
  if (count(at(certificate, "uncomputable_islands")) > 0.0) {
    return "the account of some island is not known well enough to judge it";
  }
  if (text_or(at(certificate, "energy_safety", "status"), "") == "not_kept") {
    return "energy came from the coupling, without a guard";
  }
  if (at(certificate, "unjudged_parts").is_array() && !at(certificate, "unjudged_parts").empty()) {
    return "some part does not know its energy";
  }
  if (count(at(certificate, "steps_with_excess")) > 0.0) {
    return "the error of the iteration created energy";
  }
  return "a sampled margin was negative";
}

}  // namespace

Verdict verdict_of(const Json& summary) {
  const Json& certificate = at(summary, "certificate");
  const std::string status = text_or(at(certificate, "status"), "not_checked");
  if (!text_or(at(summary, "failure"), "").empty()) {
    return {Level::bad,
            fmt::format("The run failed after {:.0f} steps.", count(at(summary, "steps")))};
  }
  std::string text;
  Level level = Level::good;
  if (status == "holds") {
    text =
        "The certificate holds: every part gave off at most the energy that it stored and received";
    text += at(summary, "guard").is_object()
                ? ", and with the guard the stored energy never exceeded the initial and the "
                  "supplied energy."
                : ".";
  } else if (status == "conditional") {
    level = at(summary, "all_well") == true ? Level::good : Level::warn;
    text = "The certificate is conditional: parts were passive as far as they can be judged, but " +
           conditional_text(certificate) + ".";
  } else if (status == "violated") {
    level = Level::bad;
    text =
        "The certificate is violated: a part created energy, or a law of the guard did not hold.";
  } else {
    level = Level::warn;
    text = "Energy was not checked: no ledger was kept.";
  }
  const double missed = count(at(summary, "iterations", "not_converged"));
  if (missed > 0.0 && has_tolerance(summary)) {
    level = std::max(level, Level::warn);
    text += fmt::format(" In {:.0f} of {:.0f} steps the coupling did not meet its tolerance.",
                        missed, count(at(summary, "iterations", "windows")));
  }
  if (const double changed = count(at(summary, "guard", "missed_steps")); changed > 0.0) {
    level = std::max(level, Level::warn);
    text += fmt::format(" In {:.0f} of {:.0f} steps the guard changed the motion.", changed,
                        count(at(summary, "steps")));
  }
  if (text_or(at(summary, "resolution", "status"), "resolved") != "resolved") {
    level = std::max(level, Level::warn);
    text += " The steps do not resolve the motion.";
  }
  if (is_far_from_finer(summary)) {
    level = std::max(level, Level::warn);
    text += " Finer steps lead elsewhere.";
  }
  if (is_coupled_poorly(summary)) {
    level = Level::bad;
    const double blind = count(at(summary, "coupling", "blind_share"));
    text += blind > RunSummary::kPoorMismatch
                ? fmt::format(
                      " The coupling is poor: {:.2g} % of the steps had no time for an "
                      "evaluation.",
                      100.0 * blind)
                : fmt::format(
                      " The coupling is poor: {:.2g} % of the energy that the run moved "
                      "went astray.",
                      100.0 * count(at(summary, "coupling", "mismatch_share")));
  }
  if (count(at(summary, "starts_at_odds", "count")) > 0.0) {
    level = std::max(level, Level::warn);
    text += " States at odds were stepped as they were given.";
  }
  if (at(summary, "completed").is_boolean() && !at(summary, "completed").get<bool>()) {
    level = std::max(level, Level::warn);
    text += " The run was interrupted.";
  }
  return {level, std::move(text)};
}

std::vector<Advice> advice_for(const Json& summary) {
  std::vector<Advice> out;
  for (const Rule& rule : kRules) {
    if (auto advice = rule.look(summary)) out.push_back(std::move(*advice));
  }
  return out;
}

std::vector<std::string_view> advice_rules() {
  std::vector<std::string_view> names;
  for (const Rule& rule : kRules) names.push_back(rule.name);
  return names;
}

}  // namespace portwave::report

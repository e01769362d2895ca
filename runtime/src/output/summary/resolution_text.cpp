#include "output/summary/resolution_text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

constexpr const char* kNextLine = "\n               ";

/// A share as a percentage of two digits. What is larger than all motion that was seen says no more than that.
std::string of_all(double share) {
  if (share >= 1.0) return "more than 100 %";
  return share < 0.1 ? fmt::format("{:.2g} %", 100.0 * share)
                     : fmt::format("{:.0f} %", 100.0 * share);
}

std::string what_was_seen(const RunSummary& summary) {
  const Resolution& worst = *summary.resolution;
  const std::string part = printable(summary.unresolved_name);
  const char* const all = worst.state >= 0 ? "its own" : "all its";
  switch (worst.kind) {
    case Resolution::Kind::jumps:
      return fmt::format("step {} moves \"{}\" by an error of {} of {} motion", worst.step, part,
                         of_all(worst.share), all);
    case Resolution::Kind::alternates:
      return fmt::format("\"{}\" oscillates from step to step, by {} of {} motion, as in step {}",
                         part, of_all(worst.share), all, worst.step);
    case Resolution::Kind::undersampled:
      return fmt::format(
          "\"{}\" changes too fast for the steps: what they take for its mean is off by {} of its{}"
          "size, first in step {}",
          part, of_all(worst.share), kNextLine, worst.step);
    case Resolution::Kind::pulses:
      return fmt::format(
          "\"{}\" jumps to and fro within steps, first in step {}: {} of its mean square", part,
          worst.step, of_all(worst.share));
    case Resolution::Kind::damped_away:
      return fmt::format(
          "damped steps take {:.3g} % of all energy there was from what oscillates about \"{}\"",
          std::min(100.0 * worst.share, 100.0), part);
    default:
      return fmt::format(
          "the {} at \"{}\" oscillates from step to step, by {} of its largest value, as in step "
          "{}",
          worst.kind == Resolution::Kind::flow_alternates ? "flow" : "effort",
          printable(summary.unresolved_port), of_all(worst.share), worst.step);
  }
}

/// Settings of the command line that halve the steps so many times, whether the scenario has "end_s" or "steps".
std::string shorter_by(const RunSummary& summary, int halvings) {
  const double step_s = std::ldexp(summary.step_s, -halvings);
  const std::string start =
      summary.start_s != 0.0 ? fmt::format("\"start_s\": {}, ", summary.start_s) : std::string();
  const double end_s = summary.start_s + static_cast<double>(summary.steps) * summary.step_s;
  return fmt::format("--set '/time={{{}\"step_s\": {:.15g}, \"end_s\": {:.15g}}}'", start, step_s,
                     end_s);
}

/// Opaque parts take no other steps. They are those whose energy is not known.
bool takes_one_size(const RunSummary& summary) { return !summary.unjudged_parts.empty(); }

std::string chosen_steps(const RunSummary& summary) {
  return fmt::format(
      "--set '/time={{\"step\": {{\"kind\": \"adaptive\", \"tolerance\": 1e-6}}, \"end_s\": "
      "{:.6g}}}'",
      summary.time_s);
}

std::string shorter_steps(const RunSummary& summary) {
  constexpr int kHalvings = 3;
  if (takes_one_size(summary)) {
    return fmt::format("take shorter steps:{}{}", kNextLine, shorter_by(summary, kHalvings));
  }
  return fmt::format("take shorter steps, or let them choose their size:{}{}", kNextLine,
                     chosen_steps(summary));
}

std::string remedy(const RunSummary& summary) {
  const Resolution& worst = *summary.resolution;
  if (worst.kind == Resolution::Kind::pulses) {
    const std::string text = fmt::format(
        "is of pulses that no row shows. Motion has their mean; what is dissipated and{0}what "
        "springs take from "
        "them is off. Take steps that are shorter than a pulse",
        kNextLine);
    if (takes_one_size(summary)) return text;
    return fmt::format("{}, or let{}them end at its edges: {}", text, kNextLine,
                       chosen_steps(summary));
  }
  if (worst.kind == Resolution::Kind::undersampled) {
    std::string steps = shorter_steps(summary);
    steps.front() = 'T';
    return steps;
  }
  if (worst.kind == Resolution::Kind::damped_away) {
    return fmt::format(
        "Take shorter steps, or more stages, which take far less{}(--set /method/stages=3)",
        kNextLine);
  }
  if (worst.port >= 0) {
    return "Start with states that their joints allow, or join them by a stiff spring and damper";
  }
  if (summary.sizes) return "Ask for a smaller tolerance (--set /time/step/tolerance=1e-8)";
  if (summary.has_unresolved_substeps) {
    return fmt::format(
        "Its substeps meet the mean of what is beside it: take none (\"substeps\": 1),{}with which "
        "auto damps it there, or {}",
        kNextLine, shorter_steps(summary));
  }
  if (summary.is_unresolved_damped) {
    return fmt::format("Take one stage (--set /method/stages=1),{}or {}", kNextLine,
                       shorter_steps(summary));
  }
  if (summary.is_unresolved_contact) {
    std::string steps = shorter_steps(summary);
    steps.front() = 'T';
    return steps + " (damped steps would stop what springs back)";
  }
  return fmt::format("If it should decay, damp it{}(--set /method/integrator=\"damped\"); else {}",
                     kNextLine, shorter_steps(summary));
}

}  // namespace

std::string resolution_text(const RunSummary& summary) {
  const Resolution& worst = *summary.resolution;
  std::string text = "NOT RESOLVED: " + what_was_seen(summary) + kNextLine;
  const bool is_of_input =
      worst.kind == Resolution::Kind::pulses || worst.kind == Resolution::Kind::undersampled;
  if (worst.kind == Resolution::Kind::damped_away || is_of_input) {
    return text + remedy(summary);
  }
  if (worst.h_lambda > 0.0) {
    text += worst.h_lambda < 1e6
                ? fmt::format("A step is {:.2g} times as long as the motion there (h lambda). ",
                              worst.h_lambda)
                : std::string("A step is far longer than the motion there. ");
  }
  text +=
      summary.is_unresolved_damped
          ? fmt::format(
                "Damped steps of several stages overshoot where a{}part changes over within them. ",
                kNextLine)
          : fmt::format(
                "Such steps conserve energy, and a motion that should decay{}overshoots its rest "
                "position. ",
                kNextLine);
  return text + remedy(summary);
}

/// Controllers that sample once per step may be what differs.
std::string asked_rate(const RunSummary& summary) {
  return fmt::format(
      "Controllers sampled twice as fast there. If they are to keep the rate that they have here, "
      "say{}so: --set /signals/every_s={}; else ",
      kNextLine, summary.step_s);
}

/// Steps without waves keep to a tolerance each; what they add up to may be more.
std::string beside_tolerance(const RunSummary& summary) {
  constexpr double kMuch = 10.0;
  if (!summary.sizes || summary.method.couples_by_waves()) return {};
  const double times = summary.agreement->share / summary.sizes->tolerance;
  if (!(times > kMuch)) return {};
  return fmt::format(
      ",{}which is {:.2g} times the tolerance: errors of steps add up here. Ask for a "
      "smaller one{}(--set /time/step/tolerance={:.3g})",
      kNextLine, times, kNextLine, summary.sizes->tolerance / times);
}

/// Half steps halve an error of first order: it is twice what shows.
std::string of_first_order(const StepAgreement& own) {
  constexpr double kSeen = 1e-3;
  const bool is_twice = own.error_of_difference >= StepAgreement::error_of_half(1);
  if (!is_twice || own.error() < kSeen) return {};
  return fmt::format(", an error of about {}", of_all(own.error()));
}

/// What no second instant shows: the row after a jump, or one by which a switch has opened later.
std::string at_an_instant(const RunSummary& summary) {
  const StepAgreement& own = *summary.agreement;
  if (!own.has_far_instant()) return {};
  std::string text =
      fmt::format("{}at single instants \"{}\" is off by {}{}, most at {:.4g} s", kNextLine,
                  printable(own.state_of_instant), own.instant_error() < 1.0 ? "up to about " : "",
                  of_all(own.instant_error()), own.instant_s);
  if (own.instant_error() > StepAgreement::kFarInstant && !own.is_chosen) {
    text += fmt::format(":{}what begins there is faster than a step. If such rows count, {}",
                        kNextLine, shorter_steps(summary));
  }
  return text;
}

std::string agreement_text(const RunSummary& summary) {
  const StepAgreement& own = *summary.agreement;
  if (own.is_skipped) return "not measured: too large a model to run twice (--compare whole)";
  const std::string finer =
      own.is_chosen ? fmt::format("a tolerance of {:.3g}", own.finer) : "steps of half the size";
  const std::string until =
      own.is_whole
          ? ""
          : fmt::format(" up to {:.4g} s{}(--compare whole compares all)", own.until_s, kNextLine);
  if (!own.failure.empty()) {
    return fmt::format("NOT KNOWN: with {} the run fails: {}", finer, printable(own.failure));
  }
  const std::string unjudged =
      own.unjudged.empty()
          ? ""
          : fmt::format(
                "{}\"{}\" moves too little beside others to be judged: it differs by {} of "
                "its own range",
                kNextLine, printable(own.unjudged), of_all(own.unjudged_share));
  const std::string instant = at_an_instant(summary);
  if (own.state.empty()) {
    return fmt::format("with {} nothing changes{}{}{}", finer, until, instant, unjudged);
  }
  if (!own.is_far()) {
    return fmt::format("with {} no state differs by more than {} of its range{} (\"{}\"){}{}{}{}",
                       finer, own.share < 1e-8 ? std::string("1e-6 %") : of_all(own.share), until,
                       printable(own.state), of_first_order(own), beside_tolerance(summary),
                       instant, unjudged);
  }
  if (own.is_beneath_waves) {
    return fmt::format(
        "POOR: \"{}\" differs by {} of its range from a run whose parts meet the tolerance each, "
        "at {:.4g} s{}{}"
        "Motion or waves of other parts are far larger than its own. Ask for a tolerance of every "
        "part, and look "
        "here again:{}--set /method/tolerance_per_part=true{}",
        printable(own.state), of_all(own.share), own.time_s, until, kNextLine, kNextLine, unjudged);
  }
  // The errors of one stage go with the square of the step; those of kinks and jumps with the step.
  constexpr double kWanted = 0.02;
  const double share = std::max(own.share, own.expected);
  const int halvings =
      std::clamp(static_cast<int>(std::ceil(0.5 * std::log2(share / kWanted))), 1, 6);
  const std::string remedy =
      own.is_chosen ? fmt::format("Ask for a smaller tolerance (--set /time/step/tolerance={:.3g})",
                                  own.finer)
                    : fmt::format("{}ake shorter steps, and look here again:{}{}",
                                  own.samples_faster ? asked_rate(summary) + "t" : "T", kNextLine,
                                  shorter_by(summary, halvings));
  const std::string later =
      own.share > own.limit
          ? std::string()
          : fmt::format("; it grows, and may come to {} at the end", of_all(own.expected));
  return fmt::format("POOR: with {} \"{}\" differs by {} of its range, at {:.4g} s{}{}{}{}{}",
                     finer, printable(own.state), of_all(own.share), own.time_s, later, until,
                     kNextLine, remedy, unjudged);
}

std::string switches_text(const RunSummary& summary) {
  const RunSummary::MovedSwitch& own = summary.moved_switch;
  const std::string text = fmt::format(
      "MOVED: steps open and close \"{}\" as a whole, {:.2g} % of the time between two changes "
      "away\n               "
      "from those of its input. The time for which it is closed is right in the mean, single "
      "changes "
      "are\n               not. Choose steps that end at the changes, or much shorter ones "
      "(--set /time/step_s={:.3g})",
      printable(own.part), 100.0 * own.share,
      // A step that the end of the run is a multiple of, too.
      std::ldexp(summary.step_s,
                 -static_cast<int>(std::ceil(std::log2(2.0 * own.share / RunSummary::kFarMoved)))));
  if (takes_one_size(summary)) return text;
  return fmt::format("{}, or let{}them choose their size: {}", text, kNextLine,
                     chosen_steps(summary));
}

}  // namespace portwave

#include "output/summary/resolution_text.hpp"

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

/// A share as a percentage of two digits; shares above 1 as they are.
std::string of_all(double share) { return fmt::format("{:.2g} %", 100.0 * share); }

}  // namespace

std::string resolution_text(const RunSummary& summary) {
  const Resolution& worst = *summary.resolution;
  const char* const next_line = "\n               ";
  std::string text = "NOT RESOLVED: ";
  const bool is_of_port = worst.port >= 0;
  switch (worst.kind) {
    case Resolution::Kind::jumps:
      text += fmt::format("step {} moves \"{}\" by an error of {} of all its motion", worst.step,
                          printable(summary.unresolved_part), of_all(worst.share));
      break;
    case Resolution::Kind::alternates:
      text +=
          fmt::format("\"{}\" oscillates from step to step, by {} of all its motion, as in step {}",
                      printable(summary.unresolved_part), of_all(worst.share), worst.step);
      break;
    default:
      text += fmt::format(
          "the {} at \"{}\" oscillates from step to step, by {} of its largest value, "
          "as in step {}",
          worst.kind == Resolution::Kind::flow_alternates ? "flow" : "effort",
          printable(summary.unresolved_port), of_all(worst.share), worst.step);
  }
  text += next_line;
  if (worst.h_lambda > 0.0) {
    text += worst.h_lambda < 1e6
                ? fmt::format("A step is {:.2g} times as long as the motion there (h lambda). ",
                              worst.h_lambda)
                : std::string("A step is far longer than the motion there. ");
  }
  text +=
      summary.is_unresolved_damped
          ? "Damped steps of several stages overshoot where a\n               part changes over "
            "within them. "
          : "Such steps conserve energy, and a motion that should decay\n               "
            "overshoots its rest position. ";
  if (is_of_port) {
    text += "Start with states that their joints allow, or join them by a stiff spring and damper";
  } else if (summary.sizes) {
    text += "Ask for a smaller tolerance (--set /time/step/tolerance=1e-8)";
  } else {
    text += summary.is_unresolved_damped
                ? "Take one stage (--set /method/stages=1),\n               "
                : "If it should decay, damp it (--set\n               "
                  "/method/integrator=\"damped\"); else take ";
    text += fmt::format(
        "shorter steps, or let them choose their size:{}"
        "--set '/time={{\"step\": {{\"kind\": \"adaptive\", \"tolerance\": 1e-6}}, \"end_s\": "
        "{:.6g}}}'",
        next_line, summary.time_s);
  }
  return text;
}

std::string switches_text(const RunSummary& summary) {
  const RunSummary::MovedSwitch& own = summary.moved_switch;
  return fmt::format(
      "MOVED: steps open and close \"{}\" as a whole, {:.2g} % of the time between two changes "
      "away\n               "
      "from those of its input. The time for which it is closed is right in the mean, single "
      "changes "
      "are\n               not. Choose steps that end at the changes, or much shorter ones "
      "(--set /time/step_s={:.3g}), or let\n               them choose their size: --set "
      "'/time={{\"step\": {{\"kind\": \"adaptive\", \"tolerance\": 1e-6}}, \"end_s\": "
      "{:.6g}}}'",
      printable(own.part), 100.0 * own.share,
      summary.step_s * 0.5 * RunSummary::kFarMoved / own.share, summary.time_s);
}

}  // namespace portwave

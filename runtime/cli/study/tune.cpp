// portwave tune

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include <portwave/runtime/study/study_json.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "line/commands.hpp"
#include "study/cells.hpp"
#include "study/results.hpp"

namespace portwave::cli {
namespace {

/// Two cells of a column of `rules_text`. The first column is narrower.
std::string cells(std::size_t column, std::string_view contraction, std::string_view evaluations) {
  return fmt::format(" {:>{}} {:>12}", contraction, column == 0 ? 12 : 14, evaluations);
}

std::string rules_text(const TuningReport& report) {
  std::string names = fmt::format("{:<10}", ""), heads = fmt::format("{:<10}", "impedance");
  std::size_t column = 0;
  const auto add_column = [&](std::string_view name) {
    names += fmt::format(" {:^{}}", name, column == 0 ? 25 : 27);
    heads += cells(column++, "contraction", "evaluations");
  };
  for (const UpdateRule* rule : update_rules()) add_column(rule->name());
  add_column("averaged (theta 1/2)");
  std::string text = names + "\n" + heads + "\n";
  for (const RuleRates& rule : report.rules) {
    text += fmt::format("{:<10}", rule.rule);
    if (!rule.problem.empty()) {
      text += fmt::format(" {}\n", printable(rule.problem, 200));
      continue;
    }
    column = 0;
    const auto add = [&](const PredictedRate& rate) {
      text += cells(column++, contraction_text(rate.contraction), evaluations_text(rate));
    };
    for (const UpdateRate& own : rule.updates) add(own.predicted);
    add(rule.averaged);
    text += "\n";
  }
  return text;
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Zero up to round-off is written as zero.
std::string margin_text(double margin) {
  constexpr double kRoundOff = 1e-10;
  return fmt::format("{:.3g}", std::abs(margin) < kRoundOff ? 0.0 : margin);
}

std::string match_text(double match) {
  return match > 0.0 && std::isfinite(match) ? fmt::format("{:#.6g}", match) : "-";
}

/// A port per line; the margins are those of its part.
std::string ports_text(const TuningReport& report, int most) {
  const std::size_t shown = std::min(report.ports.size(), static_cast<std::size_t>(most));
  std::size_t width = 4;
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, report.ports[i].port.size());
  std::string text;
  const auto add = [&](std::string_view port, std::string_view impedance, std::string_view match,
                       std::string_view firm, std::string_view nonexpansive) {
    text += fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>19}\n", port, width, impedance, match, firm,
                        nonexpansive);
  };
  if (shown > 0) add("port", "impedance", "match", "fne_margin", "nonexpansive_margin");
  for (std::size_t i = 0; i < shown; ++i) {
    const PortTuning& port = report.ports[i];
    const PartMargins& part = report.parts[static_cast<std::size_t>(port.part)];
    add(printable(port.port, width), fmt::format("{:#.6g}", port.impedance), match_text(port.match),
        margin_text(part.firm), margin_text(part.nonexpansive));
  }
  if (const std::size_t more = report.ports.size() - shown; more > 0) {
    text += fmt::format("{} more port{} (--ports {} shows all, --json too)\n", more,
                        more == 1 ? "" : "s", report.ports.size());
  }
  return text;
}

std::string choice_text(const MethodChoice& choice) {
  const WaveCoupling& method = choice.method.waves();
  std::string text = fmt::format("choice     {}, impedance {}, relaxation {:g}",
                                 to_string(method.kind), impedance_rule(method), method.relaxation);
  if (method.acceleration > 0) text += fmt::format(", acceleration {}", method.acceleration);
  return text + fmt::format("\nreason     {}\n", printable(choice.reason, choice.reason.size()));
}

std::string report_text(const Scenario& scenario, const TuningReport& report, int most) {
  const int stages = scenario.options.method.waves().stages;
  std::string text = fmt::format("{}: {}, {}{}, steps of {:g} s\n\n{}\n", printable(scenario.name),
                                 counted(scenario.system.parts().size(), "subsystem"),
                                 counted(scenario.system.scalar_ports().size(), "scalar port"),
                                 stages > 1 ? fmt::format(" at {} stages", stages) : "",
                                 scenario.options.step_s, rules_text(report));
  if (!report.ports.empty()) text += ports_text(report, most) + "\n";
  return text + choice_text(report.choice);
}

}  // namespace

int run_command(const TuneArguments& arguments, std::ostream& out, std::ostream& err) {
  const auto study = [&](const Scenario& scenario, const PhaseCallback& listener) {
    const ImpedanceKind rule =
        impedance_kinds(scenario, {arguments.impedance}, arguments.scenario.file).front();
    const TuningReport report = tune(scenario, rule, listener);
    return StudyOutput{.text = report_text(scenario, report, arguments.ports),
                       .json = study_json(report, scenario)};
  };
  return run_study(arguments, {nullptr, "tune.json"}, std::nullopt, study, out, err);
}

}  // namespace portwave::cli

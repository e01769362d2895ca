// portwave tune

#include "portwave/runtime/study/tune.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <ostream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/output/summary.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "commands.hpp"
#include "rate_text.hpp"
#include "status_line.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTuneFile = "tune.json";

Json choice_json(const MethodChoice& choice) {
  return {{"method", std::string(to_string(choice.method.kind()))},
          {"relaxation", choice.method.waves().relaxation},
          {"impedance", impedance_rule(choice.method)},
          {"acceleration", choice.method.waves().acceleration},
          {"rate", rate_json(choice.rate)},
          {"reason", choice.reason}};
}

Json rule_json(const RuleRates& rule) {
  if (!rule.problem.empty()) return {{"impedance", rule.rule}, {"problem", rule.problem}};
  Json json = {{"impedance", rule.rule}, {"problem", nullptr}};
  for (const UpdateRate& own : rule.updates) {
    json[std::string(own.update.rule()->name())] = rate_json(own.predicted);
  }
  json["averaged"] = rate_json(rule.averaged);
  return json;
}

Json report_json(const Scenario& scenario, const TuningReport& report) {
  Json rules = Json::array(), parts = Json::array(), ports = Json::array();
  for (const RuleRates& rule : report.rules) rules.push_back(rule_json(rule));
  for (const PartMargins& part : report.parts) {
    parts.push_back({{"part", part.part},
                     {"fne_margin", finite_or_null(part.firm)},
                     {"nonexpansiveness_margin", finite_or_null(part.nonexpansive)}});
  }
  for (const PortTuning& port : report.ports) {
    ports.push_back({{"port", port.port},
                     {"impedance", finite_or_null(port.impedance)},
                     {"match", finite_or_null(port.match)}});
  }
  return {{"scenario", scenario.name},         {"version", std::string(version())},
          {"step_s", scenario.options.step_s}, {"choice", choice_json(report.choice)},
          {"rules", std::move(rules)},         {"parts", std::move(parts)},
          {"ports", std::move(ports)}};
}

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

TuningReport tuned(const Scenario& scenario, const TuneArguments& arguments, StatusLine& status) {
  const ImpedanceKind rule =
      impedance_kinds(scenario, {arguments.impedance}, arguments.scenario.file).front();
  try {
    return tune(scenario, rule, status.listener());
  } catch (const ConfigError& error) {
    throw ScenarioError(arguments.scenario.file, error.issues());
  }
}

}  // namespace

int run_command(const TuneArguments& arguments, std::ostream& out, std::ostream& err) {
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  std::optional<OutputFolder> folder;
  if (arguments.out) {
    folder.emplace(*arguments.out, std::initializer_list<const char*>{kTuneFile},
                   scenario.recording.inputs);
  }
  const TuningReport report = tuned(scenario, arguments, status);
  const std::string json = report_json(scenario, report).dump(2) + "\n";
  out << (arguments.json ? json : report_text(scenario, report, arguments.ports));
  if (folder) {
    write_file_atomically(folder->file(kTuneFile), json);
    folder->keep();
    status.finish();
    err << fmt::format("written to {}\n", folder->file(kTuneFile).string());
  }
  return kOk;
}

}  // namespace portwave::cli

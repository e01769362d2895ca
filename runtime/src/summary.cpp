#include "portwave/runtime/summary.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "portwave/subsystems/printable.hpp"

namespace portwave {
namespace {

using Json = nlohmann::ordered_json;

/// Not all numbers have a place in JSON.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

std::string_view name_of(MethodKind kind) {
  switch (kind) {
    case MethodKind::douglas_rachford:
      break;
  }
  return "douglas-rachford";
}

Json energy_json(const EnergyTotals& energy) {
  return {{"initial_J", number(energy.initial_J)},
          {"final_J", number(energy.final_J)},
          {"max_J", number(energy.max_J)},
          {"supplied_J", number(energy.supplied_J)},
          {"dissipated_J", number(energy.dissipated_J)},
          {"mismatch_J", number(energy.mismatch_J)},
          {"initial_tank_J", number(energy.initial_tank_J)},
          {"tank_J", number(energy.tank_J)},
          {"max_energy_ratio", number(energy.max_energy_ratio)}};
}

Json certificate_json(const RunSummary& summary) {
  const Certificate& certificate = summary.certificate;
  const bool has_worst = certificate.worst_passivity_step >= 0;
  return {
      {"status", std::string(to_string(certificate.status))},
      {"max_passivity_residual_J", number(certificate.max_passivity_residual_J)},
      {"worst_passivity_part", has_worst ? Json(summary.worst_passivity_part) : Json(nullptr)},
      {"worst_passivity_step", has_worst ? Json(certificate.worst_passivity_step) : Json(nullptr)},
      {"max_augmented_residual_J", number(certificate.max_augmented_residual_J)},
      {"max_fejer_residual_J", number(certificate.max_fejer_residual_J)},
      {"min_fne_margin", number(certificate.min_fne_margin)},
      {"steps_without_fixed_point", certificate.steps_without_fixed_point},
      {"steps_without_margin", certificate.steps_without_margin}};
}

std::string method_text(const RunSummary& summary) {
  const CouplingMethod& method = summary.method;
  std::string text = fmt::format("{}, at most {} iterations, relaxation {:g}", name_of(method.kind),
                                 method.iterations, method.relaxation);
  if (method.tolerance > 0.0) {
    text += fmt::format(", tolerance {:g}{}", method.tolerance,
                        method.tolerance_per_part ? " per part" : "");
  }
  return text;
}

std::string iterations_text(const RunSummary& summary) {
  std::string text =
      fmt::format("{:.6g} per step, at most {}", summary.iterations.mean(), summary.iterations.max);
  if (summary.method.tolerance > 0.0) {
    text += fmt::format("; {} of {} steps missed the tolerance", summary.iterations.not_converged,
                        summary.steps);
  }
  return text;
}

std::string energy_text(const EnergyTotals& energy) {
  std::string text = fmt::format("{:.6g} J -> {:.6g} J, largest {:.6g} J\n", energy.initial_J,
                                 energy.final_J, energy.max_J);
  text += fmt::format(
      "               supplied {:.6g} J, dissipated {:.6g} J, interface mismatch {:.6g} J",
      energy.supplied_J, energy.dissipated_J, energy.mismatch_J);
  if (std::isfinite(energy.max_energy_ratio)) {
    text += fmt::format("\n               energy and tank at most {:.6g} times the start",
                        energy.max_energy_ratio);
  }
  return text;
}

std::string certificate_text(const RunSummary& summary) {
  const Certificate& certificate = summary.certificate;
  std::string text(to_string(certificate.status));
  if (certificate.worst_passivity_step >= 0) {
    const bool violated = certificate.status == CertificateStatus::violated;
    text += fmt::format(": largest passivity residual {:.3g} J; {} its limit \"{}\" in step {}",
                        certificate.max_passivity_residual_J,
                        violated ? "farthest beyond" : "nearest to",
                        printable(summary.worst_passivity_part), certificate.worst_passivity_step);
  }
  if (certificate.max_augmented_residual_J) {
    text += fmt::format("\n               largest augmented residual {:.3g} J",
                        *certificate.max_augmented_residual_J);
  }
  if (certificate.max_fejer_residual_J) {
    text += fmt::format("\n               largest Fejer residual {:.3g} J",
                        *certificate.max_fejer_residual_J);
  }
  if (certificate.min_fne_margin) {
    text += fmt::format("\n               smallest firm-nonexpansiveness margin {:.3g}",
                        *certificate.min_fne_margin);
  }
  if (certificate.steps_without_fixed_point > 0) {
    text += fmt::format("\n               fixed point not found in {} steps",
                        certificate.steps_without_fixed_point);
  }
  if (certificate.steps_without_margin > 0) {
    text += fmt::format("\n               margin not sampled in {} steps",
                        certificate.steps_without_margin);
  }
  return text;
}

std::string speed_text(const RunSummary& summary) {
  std::string text = fmt::format("{:.3g} s on {} thread{}", summary.wall_s, summary.threads,
                                 summary.threads == 1 ? "" : "s");
  if (summary.steps > 0 && summary.wall_s > 0.0) {
    text += fmt::format(", {:.3g} steps/s, {:.3g} times real time", summary.steps_per_s(),
                        summary.real_time_factor());
  }
  return text;
}

}  // namespace

RunSummary summarize(std::string scenario, const StepperOptions& options, const Stepper& stepper,
                     double wall_s) {
  RunSummary summary;
  summary.scenario = std::move(scenario);
  summary.steps = stepper.step_index();
  summary.step_s = options.step_s;
  summary.method = options.method;
  summary.iterations = stepper.iterations();
  summary.energy = stepper.energy();
  summary.certificate = stepper.certificate();
  if (const int worst = summary.certificate.worst_passivity_part; worst >= 0) {
    summary.worst_passivity_part = stepper.system().parts()[static_cast<std::size_t>(worst)].name;
  }
  summary.threads = stepper.threads();
  summary.wall_s = wall_s;
  return summary;
}

nlohmann::ordered_json summary_json(const RunSummary& summary) {
  const CouplingMethod& method = summary.method;
  return {{"scenario", summary.scenario},
          {"version", std::string(version())},
          {"steps", summary.steps},
          {"step_s", number(summary.step_s)},
          {"completed", summary.completed},
          {"method", std::string(name_of(method.kind))},
          {"method_options",
           {{"iterations", method.iterations},
            {"relaxation", number(method.relaxation)},
            {"tolerance", number(method.tolerance)},
            {"tolerance_per_part", method.tolerance_per_part}}},
          {"iterations",
           {{"mean", number(summary.iterations.mean())},
            {"max", summary.iterations.max},
            {"not_converged", summary.iterations.not_converged}}},
          {"energy", energy_json(summary.energy)},
          {"certificate", certificate_json(summary)},
          {"threads", summary.threads},
          {"wall_s", number(summary.wall_s)},
          {"steps_per_s", number(summary.steps_per_s())},
          {"real_time_factor", number(summary.real_time_factor())}};
}

std::string summary_text(const RunSummary& summary) {
  return fmt::format(
      "{}: {} steps of {:g} s, {:g} s in all{}\n"
      "  method       {}\n"
      "  iterations   {}\n"
      "  energy       {}\n"
      "  certificate  {}\n"
      "  time         {}\n",
      printable(summary.scenario), summary.steps, summary.step_s, summary.simulated_s(),
      summary.completed ? "" : " (interrupted)", method_text(summary), iterations_text(summary),
      energy_text(summary.energy), certificate_text(summary), speed_text(summary));
}

std::string_view version() { return PORTWAVE_VERSION; }

}  // namespace portwave

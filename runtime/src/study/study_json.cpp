#include "portwave/runtime/study/study_json.hpp"

#include <cstddef>
#include <utility>

#include "portwave/runtime/output/summary.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "study/columns.hpp"

namespace portwave {
namespace {

using namespace study_text;

std::string text_of(const Json& json) { return json.dump(2) + "\n"; }

template <class Row>
Json status_json(const Row& row) {
  return std::string(row.failure.empty() ? to_string(row.status) : "failed");
}

template <class Row>
Column<Row> failure_column() {
  return {"failure", [](const Row& row) { return word_or_null(row.failure); }, false};
}

const Columns<BudgetRow>& budget_columns() {
  using Row = BudgetRow;
  static const Columns<Row> columns = {
      {"method", [](const Row& row) -> Json { return std::string(to_string(row.method)); }},
      {"impedance", &Row::impedance},
      {"guard", &Row::guard},
      {"iterations", &Row::iterations},
      {"rms", &Row::rms},
      {"max", &Row::max},
      {"final", &Row::final},
      {"max_passivity_residual_J", &Row::max_passivity_residual_J},
      {"max_augmented_residual_J", &Row::max_augmented_residual_J},
      {"min_fne_margin", &Row::min_fne_margin},
      {"min_nonexpansiveness_margin", &Row::min_nonexpansiveness_margin},
      {"max_energy_ratio", &Row::max_energy_ratio},
      {"guard_steps", &Row::guard_steps},
      {"status", status_json<Row>},
      failure_column<Row>()};
  return columns;
}

const Columns<DelayRow>& delay_columns() {
  using Row = DelayRow;
  static const Columns<Row> columns = {{"delay", &Row::delay},
                                       {"iterations", &Row::iterations},
                                       {"status", status_json<Row>},
                                       {"rms", &Row::rms},
                                       {"max", &Row::max},
                                       {"final", &Row::final},
                                       {"guard_steps", &Row::guard_steps},
                                       {"withheld_J", &Row::withheld_J},
                                       {"messages", &Row::messages},
                                       failure_column<Row>()};
  return columns;
}

Json rate_json(const PredictedRate& rate) {
  return {{"contraction", number(rate.contraction)},
          {"evaluations", rate.evaluations},
          {"converges", rate.converges}};
}

Json observed_json(const ObservedRate& seen) {
  const auto if_known = [&seen](double value) {
    return seen.steps > 0 ? number(value) : Json(nullptr);
  };
  return {{"steps", seen.steps},
          {"contraction", if_known(seen.contraction)},
          {"worst_contraction", if_known(seen.worst_contraction)},
          {"evaluations", if_known(seen.evaluations)},
          {"max_evaluations", if_known(seen.max_evaluations)},
          {"not_converged", seen.not_converged}};
}

const Columns<RateRow>& rate_columns() {
  using Row = RateRow;
  static const Columns<Row> columns = {
      {"method", [](const Row& row) -> Json { return std::string(row.update.rule()->name()); }},
      {"relaxation", [](const Row& row) -> Json { return row.update.relaxation(); }},
      {"impedance", &Row::impedance},
      {"problem", [](const Row& row) { return word_or_null(row.problem); }},
      {"predicted",
       [](const Row& row) {
         return row.predicted.evaluations > 0 ? rate_json(row.predicted) : Json(nullptr);
       }},
      {"observed", [](const Row& row) { return observed_json(row.observed); }}};
  return columns;
}

const Columns<OrderRow>& order_columns() {
  using Row = OrderRow;
  static const Columns<Row> columns = {
      {"method", &Row::method},
      {"step_s", &Row::step_s},
      {"steps", &Row::steps},
      {"error", &Row::error},
      {"order", &Row::order},
      {"operations", &Row::operations},
      {"operations_sparse", &Row::operations_sparse},
      {"time_s", &Row::time_s},
      {"time_per_step_s",
       [](const Row& row) { return number(row.time_s / static_cast<double>(row.steps)); }},
      failure_column<Row>()};
  return columns;
}

const Columns<EqualErrorCost>& cost_columns() {
  using Row = EqualErrorCost;
  static const Columns<Row> columns = {
      {"method", &Row::method},         {"baseline", &Row::baseline},
      {"error", &Row::error},           {"extrapolated", &Row::extrapolated},
      {"operations", &Row::operations}, {"time", &Row::time}};
  return columns;
}

const Columns<ToleranceRow>& tolerance_columns() {
  using Row = ToleranceRow;
  static const Columns<Row> columns = {{"stages", &Row::stages},
                                       {"tolerance", &Row::tolerance},
                                       {"error", &Row::error},
                                       {"steps", &Row::steps},
                                       {"rejected", &Row::rejected},
                                       {"missed", &Row::missed},
                                       {"smallest_s", &Row::smallest_s},
                                       {"largest_s", &Row::largest_s},
                                       {"evaluations", &Row::evaluations},
                                       {"time_s", &Row::time_s},
                                       failure_column<Row>()};
  return columns;
}

const Columns<IterationRow>& iteration_columns() {
  using Row = IterationRow;
  static const Columns<Row> columns = {
      {"iteration", &Row::iteration}, {"x_error", &Row::x_error}, {"x_relative", &Row::x_relative},
      {"x_largest", &Row::x_largest}, {"z_error", &Row::z_error}, {"z_weighted", &Row::z_weighted},
      {"ratio", &Row::ratio}};
  return columns;
}

bool contracts(const IterationStudy& study) {
  return study.parameters.kind == IterationKind::lions_mercier;
}

/// What is known before the first iteration. Null for Jacobi and Gauss–Seidel.
Json predicted_json(const IterationStudy& study) {
  if (!contracts(study)) return nullptr;
  const LionsMercierBounds& bounds = study.parameters.bounds;
  return {{"rate", number(bounds.rate)},
          {"optimal_rate", number(bounds.optimal_rate)},
          {"optimal_lambda", number(bounds.optimal_lambda)},
          {"norm_K", number(bounds.norm_K)},
          {"norm_inverse", number(bounds.norm_inverse)},
          {"rank_mu", bounds.rank_mu},
          {"rank_alpha", bounds.rank_alpha},
          {"rank_plain", bounds.rank_plain},
          {"x_converges", bounds.x_converges()},
          {"monotone", bounds.monotone}};
}

const Columns<IterationWindow>& window_columns() {
  using Row = IterationWindow;
  static const Columns<Row> columns = {
      {"start_s", &Row::start_s},
      {"largest_rise", &Row::largest_rise},
      {"beyond_single_precision", &Row::beyond_single},
      {"gives_up", &Row::gives_up},
      failure_column<Row>(),
      {"rows", [](const Row& row) { return rows_json(row.rows, iteration_columns()); }}};
  return columns;
}

Json phases_json(const std::optional<StepTimes>& phases) {
  if (!phases) return nullptr;
  return {{"begin_s", number(phases->begin_s)},
          {"iterate_s", number(phases->iterate_s)},
          {"commit_s", number(phases->commit_s)}};
}

Json loss_json(const std::optional<ScalingLoss>& loss) {
  if (!loss) return nullptr;
  return {{"one_thread", number(loss->one_thread)},
          {"waiting", number(loss->waiting)},
          {"more_work", number(loss->more_work)},
          {"imbalance", number(loss->imbalance)},
          {"steps", loss->steps}};
}

/// With the phases one by one in CSV, where an object has no place.
Json phase_json(const ScalingRow& row, double StepTimes::*time) {
  return row.phases ? number((*row.phases).*time) : Json(nullptr);
}

const Columns<ScalingRow>& scaling_columns() {
  using Row = ScalingRow;
  static const Columns<Row> columns = {
      {"source", [](const Row& row) -> Json { return row.predicted ? "predicted" : "measured"; }},
      {"size", &Row::size},
      {"threads", &Row::threads},
      {"executor", [](const Row& row) -> Json { return std::string(to_string(row.executor)); }},
      {"step_s", &Row::step_s},
      {"spread", &Row::spread},
      {"fastest_s", &Row::fastest_s},
      {"slowest_s", &Row::slowest_s},
      {"speed_up", &Row::speed_up},
      {"efficiency", &Row::efficiency},
      {"weak_efficiency", &Row::weak_efficiency},
      {"parts_steps_per_s", [](const Row& row) { return number(row.parts_steps_per_s()); }},
      {"energy_per_step_J", &Row::energy_per_step_J},
      {"predicted_step_s", &Row::predicted_step_s},
      {"predicted_over_measured",
       [](const Row& row) { return number(row.predicted_over_measured()); }},
      {"phases", [](const Row& row) { return phases_json(row.phases); }, false},
      {"begin_s", [](const Row& row) { return phase_json(row, &StepTimes::begin_s); }},
      {"iterate_s", [](const Row& row) { return phase_json(row, &StepTimes::iterate_s); }},
      {"commit_s", [](const Row& row) { return phase_json(row, &StepTimes::commit_s); }},
      {"tasks", &Row::tasks},
      {"imbalance", &Row::imbalance},
      {"fell_back_to_serial", &Row::fell_back},
      {"execution", [](const Row& row) -> Json { return row.execution; }, false},
      {"loss", [](const Row& row) { return loss_json(row.loss); }, false}};
  return columns;
}

const Columns<ScalingModel>& model_columns() {
  using Row = ScalingModel;
  static const Columns<Row> columns = {
      {"size", &Row::size},
      {"executor", [](const Row& row) -> Json { return std::string(to_string(row.executor)); }},
      {"serial_step_s", &Row::serial_step_s},
      {"serial_phases", [](const Row& row) { return phases_json(row.serial_phases); }},
      {"iterations", &Row::iterations},
      {"one_thread_s", &Row::one_thread_s},
      {"shared_s", &Row::shared_s},
      {"shared_loops", &Row::shared_loops},
      {"iterate_s", &Row::iterate_s},
      {"commit_s", &Row::commit_s},
      {"recommits", &Row::recommits},
      {"phase_ns", &Row::phase_ns},
      {"message_ns", &Row::message_ns},
      {"line_ns", &Row::line_ns},
      {"start_ns", &Row::start_ns},
      {"lines", &Row::lines}};
  return columns;
}

std::string executors_text(const ScalingOptions& options) {
  std::string text;
  for (const ExecutorKind executor : options.executors) {
    text += text.empty() ? "" : ",";
    text += to_string(executor);
  }
  return text;
}

Json kernels_json(const ScalingStudy& study) {
  Json json = Json::array();
  for (const KernelRoof& kernel : study.kernels) {
    const double peak = study.peak_flop_per_s;
    json.push_back({{"size", kernel.size},
                    {"type", kernel.type},
                    {"parts", kernel.parts},
                    {"ports", kernel.ports},
                    {"flop", number(kernel.flop)},
                    {"bytes", number(kernel.bytes)},
                    {"flop_per_byte", number(kernel.intensity())},
                    {"solve_s", number(kernel.solve_s)},
                    {"flop_per_s", number(kernel.flop_per_s())},
                    {"stream_B_per_s", number(kernel.stream_B_per_s)},
                    {"roof_flop_per_s", number(kernel.roof(peak))},
                    {"bound", kernel.is_memory_bound(peak) ? "memory" : "arithmetic"}});
  }
  return json;
}

const Columns<PartMargins>& margin_columns() {
  using Row = PartMargins;
  static const Columns<Row> columns = {{"part", &Row::part},
                                       {"fne_margin", &Row::firm},
                                       {"nonexpansiveness_margin", &Row::nonexpansive}};
  return columns;
}

const Columns<PortTuning>& tuning_columns() {
  using Row = PortTuning;
  static const Columns<Row> columns = {
      {"port", &Row::port}, {"impedance", &Row::impedance}, {"match", &Row::match}};
  return columns;
}

Json choice_json(const MethodChoice& choice) {
  const WaveCoupling& waves = choice.method.waves();
  return {{"method", std::string(to_string(choice.method.kind()))},
          {"relaxation", waves.relaxation},
          {"impedance", impedance_rule(choice.method)},
          {"acceleration", waves.acceleration},
          {"rate", rate_json(choice.rate)},
          {"reason", choice.reason}};
}

Json rule_json(const RuleRates& rule) {
  Json json = {{"impedance", rule.rule}, {"problem", word_or_null(rule.problem)}};
  if (!rule.problem.empty()) return json;
  for (const UpdateRate& own : rule.updates) {
    json[std::string(own.update.rule()->name())] = rate_json(own.predicted);
  }
  json["averaged"] = rate_json(rule.averaged);
  return json;
}

}  // namespace

std::string study_json(const std::vector<BudgetRow>& rows) {
  return text_of(rows_json(rows, budget_columns()));
}

std::string study_json(const std::vector<DelayRow>& rows) {
  return text_of(rows_json(rows, delay_columns()));
}

std::string study_json(const std::vector<RateRow>& rows) {
  return text_of(rows_json(rows, rate_columns()));
}

std::string study_json(const OrderStudy& study, const Scenario& scenario) {
  return text_of({{"study", "order"},
                  {"scenario", scenario.name},
                  {"states", study.states},
                  {"end_s", study.end_s},
                  {"reference", study.reference},
                  {"rows", rows_json(study.rows, order_columns())},
                  {"equal_error", rows_json(study.equal_error, cost_columns())}});
}

std::string study_json(const ToleranceStudy& study, const Scenario& scenario) {
  return text_of({{"study", "tolerance"},
                  {"scenario", scenario.name},
                  {"method", study.method},
                  {"end_s", study.end_s},
                  {"reference", study.reference},
                  {"rows", rows_json(study.rows, tolerance_columns())}});
}

std::string study_json(const IterationStudy& study, const Scenario& scenario) {
  const DynamicParameters& used = study.parameters;
  const auto if_contracts = [&](auto value) { return contracts(study) ? Json(value) : Json(); };
  return text_of({{"study", "iteration"},
                  {"scenario", scenario.name},
                  {"method", std::string(to_string(used.kind))},
                  {"integrator", std::string(to_string(used.integrator))},
                  {"metric", if_contracts(std::string(to_string(used.metric)))},
                  {"lambda", if_contracts(used.lambda)},
                  {"mu", if_contracts(used.mu)},
                  {"omega", if_contracts(used.omega)},
                  {"alpha", if_contracts(used.alpha)},
                  {"states", study.states},
                  {"step_s", study.step_s},
                  {"window_steps", study.window_steps},
                  {"predicted", predicted_json(study)},
                  {"windows", rows_json(study.windows, window_columns())}});
}

std::string study_json(const ScalingStudy& study, const ScalingOptions& options) {
  return text_of({{"study", study.weak ? "weak scaling" : "strong scaling"},
                  {"scenario", study.name},
                  {"version", std::string(version())},
                  {"instruction_set", std::string(to_string(instruction_set()))},
                  {"cores", study.cores},
                  {"executor", executors_text(options)},
                  {"grain", to_string(options.grain)},
                  {"repetitions", study.repetitions},
                  {"steps_per_repetition", study.steps},
                  {"rows", rows_json(study.rows, scaling_columns())},
                  {"predicted_curve", rows_json(study.curve, scaling_columns())},
                  {"models", rows_json(study.models, model_columns())},
                  {"energy", study.energy_note},
                  {"peak_flop_per_s", number(study.peak_flop_per_s)},
                  {"kernels", kernels_json(study)}});
}

std::string study_json(const TuningReport& report, const Scenario& scenario) {
  Json rules = Json::array();
  for (const RuleRates& rule : report.rules) rules.push_back(rule_json(rule));
  return text_of({{"scenario", scenario.name},
                  {"version", std::string(version())},
                  {"step_s", scenario.options.step_s},
                  {"choice", choice_json(report.choice)},
                  {"rules", std::move(rules)},
                  {"parts", rows_json(report.parts, margin_columns())},
                  {"ports", rows_json(report.ports, tuning_columns())}});
}

std::string study_csv(const std::vector<BudgetRow>& rows) {
  return rows_csv(rows, budget_columns());
}

std::string study_csv(const OrderStudy& study) { return rows_csv(study.rows, order_columns()); }

std::string study_csv(const ToleranceStudy& study) {
  return rows_csv(study.rows, tolerance_columns());
}

std::string study_csv(const ScalingStudy& study) { return rows_csv(study.rows, scaling_columns()); }

std::string study_csv(const IterationStudy& study) {
  std::string text = "window," + csv_header(iteration_columns()) + "\n";
  for (std::size_t i = 0; i < study.windows.size(); ++i) {
    for (const IterationRow& row : study.windows[i].rows) {
      text += fmt::format("{},{}\n", i, csv_line(row, iteration_columns()));
    }
  }
  return text;
}

}  // namespace portwave

#include "adapters/fmi/fmu_forward.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <Eigen/LU>
#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

constexpr double kScatterCost_ns = 500.0, kAdvanceCost_ns = 1e3;

using Vector = Eigen::Map<Eigen::VectorXd>;
using ConstVector = Eigen::Map<const Eigen::VectorXd>;
using ConstMatrix = Eigen::Map<const Eigen::MatrixXd>;

}  // namespace

struct ForwardBatch::Work {
  Work(std::size_t ports, std::size_t others)
      : u(static_cast<Eigen::Index>(ports)),
        y(u.size()),
        right(u.size()),
        matrix(u.size(), u.size()),
        through(Eigen::MatrixXd::Zero(u.size(), u.size())),
        lu(u.size()),
        forecast(ports, others),
        step(ports, others),
        first(ports, others) {}

  Eigen::VectorXd u, y, right;  // u and y in SI units
  Eigen::MatrixXd matrix, through;
  Eigen::PartialPivLU<Eigen::MatrixXd> lu;
  Forecast forecast;
  PortStep step;
  std::unique_ptr<ForwardProgram> program;
  // The first step, as fresh instances tell it.
  AffineAnswer first;
  bool tries_first = false;
  int trials = 0;
  double trust = 1.0;  ///< relative error of what `first` tells of moves
  std::mutex mutex;
};

ForwardBatch::Layout::Layout(std::size_t ports, std::size_t inputs_count, std::size_t outputs_count)
    : at(1),
      y(at + ports + inputs_count),
      slopes(y + ports),
      told(slopes + ports * (ports + inputs_count)),
      inputs(told + 2 * ports),
      outputs(inputs + inputs_count),
      size(outputs + outputs_count) {}

ForwardBatch::ForwardBatch(const PartSetup& setup, TrialRuns& trials)
    : StepBatch(1, static_cast<int>(setup.outputs.size()), static_cast<int>(setup.ports.size()),
                static_cast<int>(setup.inputs.size())),
      setup_(setup),
      trials_(trials),
      layout_(setup.ports.size(), setup.inputs.size(), setup.outputs.size()),
      work_(std::make_unique<Work>(setup.ports.size(), setup.inputs.size())) {}

ForwardBatch::~ForwardBatch() = default;

double ForwardBatch::scatter_cost_ns() const { return kScatterCost_ns; }
double ForwardBatch::advance_cost_ns() const { return kAdvanceCost_ns; }

void ForwardBatch::prepare(double step_s, const double* impedance) {
  if (work_->program != nullptr && step_s != h_) {
    throw ConfigError("/time/step_s",
                      fmt::format("part {} cannot go back: it takes steps of one size, {} s",
                                  in_quotes(setup_.name), h_));
  }
  h_ = step_s;
  known_ = trials_.of(step_s);
  wave_factors(setup_, step_s, impedance, wave_of_u_, wave_of_y_);
}

/// Every run has an instance of its own, which starts with its first step.
void ForwardBatch::set_state(int /*lane*/, const double* /*x*/, double* record) const {
  const std::lock_guard lock(work_->mutex);
  work_->program.reset();
  work_->forecast = known_->forecast;
  work_->forecast.begin();
  work_->first = work_->forecast.next();
  work_->tries_first = !work_->forecast.is_linear() && !known_->is_silent;
  work_->trials = 0;
  work_->trust = 1.0;
  std::fill(record, record + layout_.size, 0.0);
  store(work_->forecast.next(), record);
  std::copy(known_->shown.begin(), known_->shown.end(), record + layout_.outputs);
}

void ForwardBatch::get_state(int /*lane*/, const double* record, double* x) const {
  std::copy_n(record + layout_.outputs, setup_.outputs.size(), x);
}

void ForwardBatch::freeze(LaneRange /*lanes*/, double* record, const double* input) const {
  for (std::size_t k = 0; k < setup_.inputs.size(); ++k) {
    record[layout_.inputs + k] = input == nullptr ? 0.0 : input[k];
  }
}

void ForwardBatch::store(const AffineAnswer& answer, double* record) const {
  std::copy_n(answer.at.data(), answer.at.size(), record + layout_.at);
  std::copy_n(answer.y.data(), answer.y.size(), record + layout_.y);
  std::copy_n(answer.slopes.data(), answer.slopes.size(), record + layout_.slopes);
}

/// û + Wy (y + Y (u − u₀) + V (v − v₀)) = a, with û = Wu u: u and y of an affine answer, whose numbers begin at
/// `answer` as in records.
StepFault ForwardBatch::solve_affine(const double* answer, const double* others_now,
                                     const double* a) const {
  Work& work = *work_;
  const auto ports = static_cast<Eigen::Index>(setup_.ports.size());
  const auto others = static_cast<Eigen::Index>(setup_.inputs.size());
  const std::size_t of_answer = layout_.at;
  const ConstVector incident(a, ports), at(answer, ports + others);
  const ConstVector v(others_now, others);
  const ConstMatrix slopes(answer + (layout_.slopes - of_answer), ports, ports + others);
  if (!incident.allFinite() || !v.allFinite()) return StepFault::not_finite;
  const auto Y = slopes.leftCols(ports);
  work.y = ConstVector(answer + (layout_.y - of_answer), ports);
  work.y.noalias() += slopes.rightCols(others) * (v - at.tail(others));
  work.matrix.noalias() = wave_of_y_.asDiagonal() * Y;
  work.matrix.diagonal() += wave_of_u_;
  work.right = incident - wave_of_u_.cwiseProduct(at.head(ports)) - wave_of_y_.cwiseProduct(work.y);
  work.lu.compute(work.matrix);
  work.u = work.lu.solve(work.right);
  work.y.noalias() += Y * work.u;
  work.u += at.head(ports);
  return work.u.allFinite() && work.y.allFinite() ? StepFault::none : StepFault::not_finite;
}

/// The first step of an FMU that is not linear. What it answers to an input a fresh instance can tell: the affine
/// answer is corrected by secants until it is right at the solution. So many instances are tried in a run at most.
bool ForwardBatch::solve_first(const double* record, const double* a) const {
  constexpr int kMostTrials = 40, kMostOfSolve = 8;
  constexpr double kExact = 1e-10;
  Work& work = *work_;
  const auto ports = static_cast<Eigen::Index>(setup_.ports.size());
  const ConstVector incident(a, ports), v(record + layout_.inputs, work.first.at.size() - ports);
  std::vector<double> answer(layout_.told), shown(setup_.outputs.size());
  PortStep step(setup_.ports.size(), setup_.inputs.size());
  for (int count = 0; count < kMostOfSolve; ++count) {
    store(work.first, answer.data());
    if (solve_affine(answer.data() + layout_.at, v.data(), a) != StepFault::none) return false;
    const Eigen::VectorXd moved = wave_of_u_.cwiseProduct(work.u - work.first.at.head(ports));
    const double exact = kExact * (incident.norm() + wave_of_u_.cwiseProduct(work.u).norm());
    const bool is_same = (v - work.first.at.tail(v.size())).isZero(0.0);
    if (is_same && work.trust * moved.norm() <= exact) return true;
    if (work.trials++ >= kMostTrials) return false;
    ForwardProgram(setup_, known_->looks_first)
        .step(h_, work.u.data(), v.data(), step, shown.data());
    if (!step.mean.allFinite()) return false;
    const Eigen::VectorXd missed = step.mean - work.y;
    const double miss = wave_of_y_.cwiseProduct(missed).norm();
    if (moved.norm() > 0.0) {
      work.trust = std::max(miss / moved.norm(), 0.1 * work.trust);
      work.first.slopes.leftCols(ports) +=
          missed * wave_of_u_.cwiseProduct(moved).transpose() / moved.squaredNorm();
    }
    work.first.at.head(ports) = work.u;
    work.first.at.tail(v.size()) = v;
    work.first.y = work.y = step.mean;
    if (miss <= exact) return true;
  }
  return false;
}

StepFault ForwardBatch::solve(const double* record, const double* a, double* b) const {
  Work& work = *work_;
  const auto ports = static_cast<Eigen::Index>(setup_.ports.size());
  bool is_tried = false;
  try {
    is_tried = work.tries_first && record[0] == 0.0 && solve_first(record, a);
  } catch (const FmuFault&) {  // such inputs are too much for it
  }
  if (!is_tried) {
    const StepFault fault = solve_affine(record + layout_.at, record + layout_.inputs, a);
    if (fault != StepFault::none) return fault;
  }
  for (Eigen::Index j = 0; j < ports; ++j) {
    const bool takes_effort =
        setup_.ports[static_cast<std::size_t>(j)].causality == Causality::effort_in;
    b[j] = a[j] - 2.0 * (takes_effort ? wave_of_y_[j] * work.y[j] : wave_of_u_[j] * work.u[j]);
  }
  return StepFault::none;
}

LaneStatus ForwardBatch::scatter(LaneRange /*lanes*/, double* record, const double* a,
                                 double* b) const {
  const std::lock_guard lock(work_->mutex);
  const StepFault fault = solve(record, a, b);
  return {fault == StepFault::none ? -1 : 0, fault};
}

LaneStatus ForwardBatch::advance(LaneRange /*lanes*/, double* record, const double* a, double* next,
                                 double* b, const EnergyColumns& energy) const {
  const std::lock_guard lock(work_->mutex);
  const StepFault fault = solve(record, a, b);
  if (fault != StepFault::none) return {0, fault};
  if (energy.wanted()) energy.set(0, {});  // what it holds nobody knows
  std::copy_n(record, layout_.size, next);
  next[0] = record[0] + 1.0;
  std::fill_n(next + layout_.inputs, setup_.inputs.size(), 0.0);
  std::copy_n(work_->u.data(), work_->u.size(), next + layout_.told);
  std::copy_n(work_->y.data(), work_->y.size(), next + layout_.told + work_->u.size());
  return {};
}

/// An answer that is no number, in words.
void ForwardBatch::expect_finite(const PortStep& step, double time_s) const {
  for (std::size_t j = 0; j < setup_.ports.size(); ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    if (std::isfinite(step.mean[i]) && std::isfinite(step.end[i])) continue;
    const PortVariables& port = setup_.ports[j];
    throw FmuFault(fmt::format(
        "the FMU {}: its answer {} is not finite after a step from {} s over {} s, with {} = {}; "
        "shorter steps may help, or other start values",
        in_quotes(setup_.fmu->file().filename().string()), in_quotes(port.output->name), time_s, h_,
        port.input->name, step.inputs[i] / port.input_factor));
  }
}

LaneStatus ForwardBatch::take(LaneRange /*lanes*/, const double* record, double* next,
                              FinalStep* energies) const {
  Work& work = *work_;
  const std::lock_guard lock(work.mutex);
  try {
    if (work.program == nullptr && record[0] == 0.0) {
      work.program = std::make_unique<ForwardProgram>(setup_, known_->looks_first);
    }
    if (work.program == nullptr || static_cast<double>(work.program->steps()) != record[0]) {
      throw FmuFault(
          fmt::format("the FMU {} cannot go back to a step that it has passed: begin a new run",
                      in_quotes(setup_.fmu->file().filename().string())));
    }
    const double time_s = setup_.start_s + record[0] * h_;
    const double* const u = next + layout_.told;
    const double* const y = u + setup_.ports.size();
    work.program->step(h_, u, record + layout_.inputs, work.step, next + layout_.outputs);
    expect_finite(work.step, time_s);
    FinalStep& out = *energies;
    out = {};
    for (std::size_t j = 0; j < setup_.ports.size(); ++j) {
      const double mean = work.step.mean[static_cast<Eigen::Index>(j)];
      const double defect_J = h_ * u[j] * (mean - y[j]);
      out.defect_J += defect_J;
      out.astray_J += std::abs(defect_J);
      out.received_J += h_ * u[j] * mean;
      out.exchanged_J += std::abs(h_ * u[j] * mean);
      const auto i = static_cast<Eigen::Index>(j);
      const double taken = wave_of_u_[i] * u[j], answered = wave_of_y_[i] * mean;
      const double missed = wave_of_y_[i] * (mean - y[j]);
      out.carried_J += taken * taken + answered * answered;
      out.missed_J += missed * missed;
    }
    if (known_->feeds_through) work.program->feel_through(work.through);
    constexpr double kNothing = 1e-6;  // of the waves
    const auto ports = static_cast<Eigen::Index>(setup_.ports.size());
    const double taken = wave_of_u_.cwiseProduct(work.step.inputs.head(ports)).norm();
    work.forecast.take(work.step, work.through, kNothing * taken / wave_of_y_.maxCoeff());
    store(work.forecast.next(), next);
    const bool is_finite =
        std::all_of(next, next + layout_.size, [](double value) { return std::isfinite(value); });
    return is_finite ? LaneStatus{} : LaneStatus{0, StepFault::not_finite};
  } catch (const FmuFault& fault) {
    throw LaneException(0, fault.what());
  }
}

}  // namespace portwave::fmi

#include "adapters/fmi/fmu_batch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "adapters/fmi/fmu_forecast.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

constexpr double kExact = 1e-12;    // of the waves: scatter and commit
constexpr double kInexact = 1e-10;  // inexact_scatter
constexpr double kRounding = 4.0 * std::numeric_limits<double>::epsilon();
constexpr int kMostEvaluations = 40;
/// Steps that do not repeat, or an inner solver with a tolerance of its own, let a solve end here.
constexpr double kStagnates = 1e-7;
constexpr double kStagnatesUnrepeated = 1e-3;  // of the largest waves so far
/// A solver within that chooses its steps answers inputs that hardly differ by jumps: after so many evaluations that
/// gain nothing, a solve ends with what steps that do not repeat may leave.
constexpr int kGivesUp = 5;

std::vector<const Variable*> inputs_of(const PartSetup& setup) {
  std::vector<const Variable*> out;
  for (const PortVariables& port : setup.ports) out.push_back(port.input);
  out.insert(out.end(), setup.inputs.begin(), setup.inputs.end());
  return out;
}

std::vector<const Variable*> answers_of(const PartSetup& setup) {
  std::vector<const Variable*> out;
  for (const PortVariables& port : setup.ports) {
    out.push_back(port.integral != nullptr ? port.integral : port.output);
  }
  return out;
}

}  // namespace

PortAccess::PortAccess(const PartSetup& setup)
    : ports_(&setup.ports),
      watches_(setup.watches()),
      inputs_(inputs_of(setup)),
      answers_(answers_of(setup)),
      sent_(inputs_.size()),
      read_(answers_.size()),
      start_(answers_.size()),
      began_(answers_.size()),
      roundings_(answers_.size()),
      means_(answers_.size()) {}

void PortAccess::set_inputs(Instance& instance, const double* u, const double* others) {
  for (std::size_t j = 0; j < ports(); ++j) sent_[j] = u[j] / (*ports_)[j].input_factor;
  std::copy(others, others + (sent_.size() - ports()),
            sent_.begin() + static_cast<std::ptrdiff_t>(ports()));
  instance.set(inputs_, sent_.data());
}

void PortAccess::begin(Instance& instance) {
  const bool needs_start = std::ranges::any_of(
      *ports_, [](const PortVariables& port) { return port.integral == nullptr; });
  if (needs_start) instance.ask(answers_, began_.data());
}

void PortAccess::end(Instance& instance, double step_s, double* mean) {
  if (watches_) instance.ask_means(means_.data());
  instance.get(answers_, read_.data());
  std::size_t watched = 0;
  for (std::size_t j = 0; j < ports(); ++j) {
    const PortVariables& port = (*ports_)[j];
    const bool is_increment = port.integral != nullptr;
    if (!is_increment) start_[j] = began_[j] * port.output_factor;
    const double at_end = read_[j] * port.output_factor;
    const double sum = std::abs(start_[j]) + std::abs(at_end);
    mean[j] = is_increment ? (at_end - start_[j]) / step_s : 0.5 * (start_[j] + at_end);
    if (watches_ && !is_increment) mean[j] = means_[watched++] * port.output_factor;
    roundings_[j] = kRounding * (is_increment ? sum / step_s : 0.5 * sum);
  }
}

void PortAccess::take_integrals(double* integrals) {
  for (std::size_t j = 0; j < ports(); ++j) integrals[j] = read_[j] * (*ports_)[j].output_factor;
}

struct FmuBatch::Work {
  explicit Work(Eigen::Index ports)
      : u(ports),
        y(ports),
        in_si(ports),
        out_si(ports),
        largest_si(Eigen::VectorXd::Zero(ports)),
        matrix(ports, ports),
        lu(ports) {}

  Model model;
  Eigen::VectorXd u, y, in_si, out_si;
  double rounding = 0.0;       ///< of y
  Eigen::VectorXd largest_si;  ///< magnitudes of the answers of all commits
  Eigen::MatrixXd matrix;
  Eigen::PartialPivLU<Eigen::MatrixXd> lu;
};

namespace {

/// Doubles of a model: its knowledge, the step it is for, trust, the largest wave, u₀, ȳ₀ and Y.
std::size_t model_size(std::size_t ports) { return 4 + 2 * ports + ports * ports; }

constexpr std::size_t kSlot = 0, kGeneration = 1, kModel = 2;  // places in a record

}  // namespace

FmuBatch::Layout::Layout(std::size_t ports, std::size_t inputs_count, std::size_t outputs_count)
    : model(kModel),
      warm(model + model_size(ports)),
      integrals(warm + model_size(ports)),
      inputs(integrals + ports),
      outputs(inputs + inputs_count),
      size(outputs + outputs_count) {}

FmuBatch::FmuBatch(const PartSetup& setup, std::shared_ptr<Program> program, double floor)
    : StepBatch(1, static_cast<int>(setup.outputs.size()), static_cast<int>(setup.ports.size()),
                static_cast<int>(setup.inputs.size())),
      setup_(setup),
      program_(std::move(program)),
      floor_(floor),
      layout_(setup.ports.size(), setup.inputs.size(), setup.outputs.size()),
      shown_(setup.outputs),
      access_(setup),
      work_(std::make_unique<Work>(static_cast<Eigen::Index>(setup.ports.size()))) {}

FmuBatch::~FmuBatch() {
  const std::lock_guard lock(program_->mutex);
  for (SavedState& slot : slots_) program_->release(slot);
}

void wave_factors(const PartSetup& setup, double step_s, const double* impedance,
                  Eigen::VectorXd& of_u, Eigen::VectorXd& of_y) {
  const auto ports = static_cast<Eigen::Index>(setup.ports.size());
  of_u.resize(ports);
  of_y.resize(ports);
  for (Eigen::Index j = 0; j < ports; ++j) {
    const WaveTransform transform(impedance[j], step_s);
    const double of_effort = 1.0 / transform.scale();
    const double of_flow = transform.impedance() / transform.scale();
    const bool takes_effort =
        setup.ports[static_cast<std::size_t>(j)].causality == Causality::effort_in;
    of_u[j] = takes_effort ? of_effort : of_flow;
    of_y[j] = takes_effort ? of_flow : of_effort;
  }
}

void FmuBatch::prepare(double step_s, const double* impedance) {
  h_ = step_s;
  wave_factors(setup_, step_s, impedance, wave_of_u_, wave_of_y_);
}

/// The state is the program's; x holds outputs, which nobody can set.
void FmuBatch::set_state(int /*lane*/, const double* /*x*/, double* record) const {
  const std::lock_guard lock(program_->mutex);
  std::fill(record, record + layout_.size, 0.0);
  try {
    program_->restore(program_->initial());
    keep(0, {.time_s = setup_.start_s}, record);
  } catch (const FmuFault& fault) {
    throw LaneException(0, fmt::format("part {}: {}", in_quotes(setup_.name), fault.what()));
  }
}

void FmuBatch::get_state(int /*lane*/, const double* record, double* x) const {
  std::copy_n(record + layout_.outputs, setup_.outputs.size(), x);
}

void FmuBatch::freeze(LaneRange /*lanes*/, double* record, const double* input) const {
  double* const own = record + layout_.inputs;
  for (std::size_t k = 0; k < setup_.inputs.size(); ++k) {
    const double value = input == nullptr ? 0.0 : input[k];
    // What the part answers under other inputs is not known.
    if (value != own[k]) record[layout_.model] = std::min<double>(record[layout_.model], kSlopes);
    own[k] = value;
  }
  record[layout_.warm] = kNothing;
}

LaneStatus FmuBatch::scatter(LaneRange /*lanes*/, double* record, const double* a,
                             double* b) const {
  const std::lock_guard lock(program_->mutex);
  const StepFault fault = solve(record, a, Aim::exact, b);
  return {fault == StepFault::none ? -1 : 0, fault};
}

LaneStatus FmuBatch::inexact_scatter(LaneRange /*lanes*/, double* record, const double* a,
                                     double* b) const {
  const std::lock_guard lock(program_->mutex);
  const StepFault fault = solve(record, a, Aim::inexact, b);
  return {fault == StepFault::none ? -1 : 0, fault};
}

LaneStatus FmuBatch::advance(LaneRange /*lanes*/, double* record, const double* a, double* next,
                             double* b, const EnergyColumns& energy) const {
  const std::lock_guard lock(program_->mutex);
  const StepFault fault = solve(record, a, Aim::exact, b);
  if (fault != StepFault::none) return {0, fault};
  if (energy.wanted()) energy.set(0, {});  // what it holds nobody knows
  try {
    expect_repeats(record);
    // The program is at the end of the step that was solved last.
    keep(1 - static_cast<std::size_t>(record[kSlot]), after(slot_of(record)), next);
  } catch (const FmuFault& failure) {
    throw LaneException(0, failure.what());
  }
  std::fill_n(next + layout_.inputs, setup_.inputs.size(), 0.0);
  store(next + layout_.model);
  next[layout_.model] = kSlopes;
  next[layout_.warm] = kNothing;
  for (std::size_t k = 0; k < setup_.outputs.size(); ++k) {
    if (std::isfinite(next[layout_.outputs + k])) continue;
    throw LaneException(0, fmt::format("the FMU {}: its output {} is not finite",
                                       in_quotes(setup_.fmu->file().filename().string()),
                                       in_quotes(setup_.outputs[k]->name)));
  }
  const bool is_finite = std::all_of(next + layout_.integrals, next + layout_.inputs,
                                     [](double value) { return std::isfinite(value); });
  return is_finite ? LaneStatus{} : LaneStatus{0, StepFault::not_finite};
}

std::vector<std::byte> FmuBatch::write_states(const double* record) const {
  const std::lock_guard lock(program_->mutex);
  return program_->to_bytes(slot_of(record), *setup_.fmu);
}

void FmuBatch::read_states(std::span<const std::byte> bytes, double* record) const {
  const std::lock_guard lock(program_->mutex);
  const bool is_first = record[kSlot] == 0.0;
  SavedState& slot = slots_[is_first ? 0 : 1];
  program_->adopt(slot, bytes, *setup_.fmu);
  record[kSlot] = is_first ? 0.0 : 1.0;
  record[kGeneration] = static_cast<double>(slot.generation);
}

const SavedState& FmuBatch::slot_of(const double* record) const {
  const SavedState& slot = slots_[static_cast<std::size_t>(record[kSlot])];
  if (static_cast<double>(slot.generation) != record[kGeneration]) {
    throw std::logic_error("the state of this record is gone");
  }
  return slot;
}

SavedState FmuBatch::after(const SavedState& from) const {
  SavedState out = from;
  if (from.step_s != h_) {
    out.since_s = from.time_s;
    out.step_s = h_;
    out.steps = 0;
  }
  out.time_s = out.since_s + static_cast<double>(++out.steps) * h_;
  return out;
}

void FmuBatch::keep(std::size_t slot, const SavedState& when, double* record) const {
  access_.ask_integrals(program_->instance());
  program_->instance().ask(shown_, record + layout_.outputs);
  program_->save(slots_[slot], when.time_s);
  slots_[slot].since_s = when.since_s;
  slots_[slot].step_s = when.step_s;
  slots_[slot].steps = when.steps;
  program_->instance().finish();
  access_.take_integrals(record + layout_.integrals);
  record[kSlot] = static_cast<double>(slot);
  record[kGeneration] = static_cast<double>(slots_[slot].generation);
}

void FmuBatch::load(const double* from) const {
  Model& model = work_->model;
  const auto ports = static_cast<Eigen::Index>(setup_.ports.size());
  using Vector = Eigen::Map<const Eigen::VectorXd>;
  const double* const u0 = from + 4;
  model.knows = from[1] == h_ ? static_cast<Knowledge>(static_cast<int>(from[0])) : kNothing;
  model.trust = model.knows == kNothing ? 1.0 : from[2];
  model.largest = from[3];
  model.u0 = wave_of_u_.cwiseProduct(Vector(u0, ports));
  model.y0 = wave_of_y_.cwiseProduct(Vector(u0 + ports, ports));
  model.Y = wave_of_y_.asDiagonal() *
            Eigen::Map<const Eigen::MatrixXd>(u0 + 2 * ports, ports, ports) *
            wave_of_u_.cwiseInverse().asDiagonal();
}

void FmuBatch::store(double* to) const {
  const Model& model = work_->model;
  const auto ports = static_cast<Eigen::Index>(setup_.ports.size());
  using Vector = Eigen::Map<Eigen::VectorXd>;
  double* const u0 = to + 4;
  to[0] = model.knows;
  to[1] = h_;
  to[2] = model.trust;
  to[3] = model.largest;
  Vector(u0, ports) = model.u0.cwiseQuotient(wave_of_u_);
  Vector(u0 + ports, ports) = model.y0.cwiseQuotient(wave_of_y_);
  Eigen::Map<Eigen::MatrixXd>(u0 + 2 * ports, ports, ports) =
      wave_of_y_.cwiseInverse().asDiagonal() * model.Y * wave_of_u_.asDiagonal();
}

/// An answer that is no number, in words.
void FmuBatch::refuse_answer(double time_s) const {
  const auto ports = static_cast<Eigen::Index>(setup_.ports.size());
  Eigen::Index bad = 0;
  while (bad + 1 < ports && std::isfinite(work_->out_si[bad])) ++bad;
  const PortVariables& port = setup_.ports[static_cast<std::size_t>(bad)];
  throw FmuFault(fmt::format(
      "the FMU {}: its answer {} is not finite after a step from {} s over {} s, with {} = {}; "
      "shorter steps may help, or other start values",
      in_quotes(setup_.fmu->file().filename().string()), in_quotes(port.output->name), time_s, h_,
      port.input->name, work_->in_si[bad] / port.input_factor));
}

/// ŷ of a step from the record's state with û held. False: it is not finite, as û is too large for a number.
bool FmuBatch::evaluate(const double* record, const Eigen::VectorXd& u, Eigen::VectorXd& y) const {
  const SavedState& slot = slot_of(record);
  work_->in_si = u.cwiseQuotient(wave_of_u_);
  if (!work_->in_si.allFinite()) return false;
  program_->restore(slot);
  access_.set_integrals(record + layout_.integrals);
  access_.set_inputs(program_->instance(), work_->in_si.data(), record + layout_.inputs);
  access_.begin(program_->instance());
  program_->step(slot.time_s, h_);
  access_.end(program_->instance(), h_, work_->out_si.data());
  if (!work_->out_si.allFinite()) refuse_answer(slot.time_s);
  y = wave_of_y_.cwiseProduct(work_->out_si);
  const std::vector<double>& roundings = access_.roundings();
  work_->rounding =
      wave_of_y_.cwiseProduct(Eigen::Map<const Eigen::VectorXd>(roundings.data(), y.size())).norm();
  return y.allFinite();
}

/// Ŷ by differences of whole steps about (û₀, ŷ₀).
bool FmuBatch::measure_slopes(const double* record) const {
  constexpr double kRelativeStep = 1e-3, kLeastStep = 1e-6;
  Model& model = work_->model;
  constexpr double kOverRounding = 1e6;
  const double step = std::max({kRelativeStep * (model.u0.norm() + model.y0.norm()), kLeastStep,
                                kOverRounding * work_->rounding});
  Eigen::VectorXd &u = work_->u, &y = work_->y;
  for (Eigen::Index j = 0; j < model.u0.size(); ++j) {
    u = model.u0;
    u[j] += step;
    if (!evaluate(record, u, y)) return false;
    model.Y.col(j) = (y - model.y0) / (u[j] - model.u0[j]);
  }
  model.trust = 1.0;
  return true;
}

/// What an evaluation tells of the model, which moves to it.
void FmuBatch::learn(const Eigen::VectorXd& u, const Eigen::VectorXd& y, double scale) const {
  constexpr double kForgets = 0.1;                          // so fast trust grows at the most
  constexpr double kLeastMove = 1e-7, kOverRounding = 1e6;  // a smaller one tells of rounding
  constexpr double kOverFloor = 100.0;                      // or of steps that do not repeat
  Model& model = work_->model;
  const auto move = (u - model.u0).eval();
  const double size = move.norm();
  const double least =
      std::max({kLeastMove * scale, kOverRounding * work_->rounding, kOverFloor * floor_ * scale});
  if (model.knows == kAnswers && size > least) {
    const auto miss = (y - model.y0 - model.Y * move).eval();
    model.trust = std::max(miss.norm() / size, kForgets * model.trust);
    model.Y += miss * (move.transpose() / (size * size));
  }
  model.u0 = u;
  model.y0 = y;
  model.knows = kAnswers;
}

/// b = û − ŷ or ŷ − û, by a = û + ŷ such that what is small is not a difference.
void FmuBatch::outgoing(const double* a, const Eigen::VectorXd& u, const Eigen::VectorXd& y,
                        double* b) const {
  for (Eigen::Index j = 0; j < y.size(); ++j) {
    const bool takes_effort =
        setup_.ports[static_cast<std::size_t>(j)].causality == Causality::effort_in;
    const double flow = takes_effort ? y[j] : u[j];
    b[j] = a[j] - 2.0 * flow;
  }
}

/// The model at the record's state: it answers at the input of the last commit.
StepFault FmuBatch::begin(double* record) const {
  Model& model = work_->model;
  load(record + layout_.model);
  if (model.knows == kAnswers) return StepFault::none;
  if (!evaluate(record, model.u0, model.y0)) return StepFault::not_finite;
  if (model.knows == kNothing && !measure_slopes(record)) return StepFault::not_finite;
  model.knows = kAnswers;
  store(record + layout_.model);
  load(record + layout_.model);  // as others will find it
  return StepFault::none;
}

/// Before the commit of the step that was solved last: now and then that step is taken once more, and must answer the
/// same. What set-up has tried may have ceased to be so.
void FmuBatch::expect_repeats(const double* record) const {
  constexpr std::uint64_t kFirst = 16;
  constexpr double kRepeated = 1e-5;  // of what repeated bit by bit before the run
  Work& work = *work_;
  work.largest_si = work.largest_si.cwiseMax(work.out_si.cwiseAbs());
  const SavedState& slot = slot_of(record);
  const auto number = static_cast<std::uint64_t>(slot.steps);
  if (number < kFirst || !std::has_single_bit(number)) return;
  const Eigen::VectorXd answers = work.out_si;
  // Another step between: what stays behind of the last one would be the same again.
  const Eigen::VectorXd other = 0.5 * work.u;
  bool has_other = true;
  try {
    has_other = evaluate(record, other, work.y);
  } catch (const FmuFault&) {  // that step was not asked for
    has_other = false;
  }
  if (!evaluate(record, work.u, work.y) || !has_other) return;
  // At rest answers are noise: what counts is their size in the run.
  double difference = 0.0;
  for (Eigen::Index j = 0; j < answers.size(); ++j) {
    const double own = std::abs(work.out_si[j] - answers[j]);
    if (own > 0.0) difference = std::max(difference, own / work.largest_si[j]);
  }
  if (difference <= (floor_ > 0.0 ? kNoRollback : kRepeated)) return;
  throw FmuFault(fmt::format(
      "the FMU {} no longer goes back: its step from {} s, taken back and repeated, differs by "
      "{:.2g} of its largest answers{}; \"rollback\": false takes each step once",
      in_quotes(setup_.fmu->file().filename().string()), slot.time_s, difference,
      floor_ > 0.0 ? "" : " (before the run it repeated)"));
}

StepFault FmuBatch::solve(double* record, const double* a, Aim aim, double* b) const {
  const bool is_finite =
      std::all_of(a, a + setup_.ports.size(), [](double wave) { return std::isfinite(wave); });
  if (!is_finite) return StepFault::not_finite;
  try {
    const bool is_warm =
        aim == Aim::inexact && record[layout_.warm] == static_cast<double>(kAnswers);
    if (is_warm) {
      load(record + layout_.warm);
    } else if (const StepFault fault = begin(record); fault != StepFault::none) {
      return fault;
    }
    const StepFault fault = iterate(record, a, aim, b);
    if (aim == Aim::inexact && fault == StepFault::none) store(record + layout_.warm);
    return fault;
  } catch (const FmuFault& fault) {
    throw LaneException(0, fault.what());
  }
}

StepFault FmuBatch::iterate(const double* record, const double* a, Aim aim, double* b) const {
  Work& work = *work_;
  Model& model = work.model;
  const Eigen::Map<const Eigen::VectorXd> incident(a,
                                                   static_cast<Eigen::Index>(setup_.ports.size()));
  const double tolerance = std::max(aim == Aim::exact ? kExact : kInexact, 4.0 * floor_);
  double last = std::numeric_limits<double>::infinity();
  int stalls = 0;
  bool has_measured = false;
  for (int count = 0; count < kMostEvaluations; ++count) {
    // û + ŷ₀ + Ŷ(û − û₀) = a
    work.matrix = model.Y;
    work.matrix.diagonal().array() += 1.0;
    work.lu.compute(work.matrix);
    work.u = model.u0 + work.lu.solve(incident - model.u0 - model.y0);
    const double scale = incident.norm() + model.u0.norm() + model.y0.norm();
    const double move = (work.u - model.u0).norm();
    if (aim == Aim::inexact && model.trust * move <= std::max(tolerance * scale, work.rounding)) {
      work.y = model.y0 + model.Y * (work.u - model.u0);
      outgoing(a, work.u, work.y, b);
      return StepFault::none;
    }
    if (!evaluate(record, work.u, work.y)) return StepFault::not_finite;
    learn(work.u, work.y, scale);
    const double residual = (work.u + work.y - incident).norm();
    const double size = incident.norm() + work.u.norm() + work.y.norm();
    stalls = residual > 0.5 * last ? stalls + 1 : 0;
    last = residual;
    // Where a port is far from its match, the rounding of û alone is more than what is small beside the waves.
    const double of_input = kRounding * model.Y.norm() * work.u.norm();
    const double goal = std::max(tolerance * size, work.rounding + of_input);
    model.largest = std::max(model.largest, size);
    const bool is_rough = floor_ > 0.0 || stalls >= kGivesUp;
    const double least = is_rough ? kStagnatesUnrepeated * model.largest : kStagnates * size;
    const bool has_stalled = stalls >= 2 && has_measured && residual <= least;
    if (residual <= goal || has_stalled) {
      outgoing(a, work.u, work.y, b);
      return StepFault::none;
    }
    if (stalls < 2 || has_measured) continue;
    if (!measure_slopes(record)) return StepFault::not_finite;
    has_measured = true;
    stalls = 0;
  }
  return StepFault::not_converged;
}

namespace {

/// Steps of a program from its initial state with inputs held.
class FirstStep {
 public:
  FirstStep(const PartSetup& setup, Program& program, double step_s)
      : setup_(setup),
        program_(program),
        h_(step_s),
        access_(setup),
        at_start_(setup.ports.size()),
        integrals_(setup.ports.size()),
        others_(setup.inputs.size(), 0.0) {
    program_.restore(program_.initial());
    program_.instance().get(VariableList(setup.inputs), others_.data());
    read_integrals(at_start_);
  }

  void go_back() { program_.restore(program_.initial()); }
  /// Step n after the start; the mean answers.
  Eigen::VectorXd take(int n, const Eigen::VectorXd& u) {
    Eigen::VectorXd mean(u.size());
    // As in a run, integrals at the start are remembered, not read again after going back.
    if (n > 0) read_integrals(integrals_);
    access_.set_integrals(n > 0 ? integrals_.data() : at_start_.data());
    access_.set_inputs(program_.instance(), u.data(), others_.data());
    access_.begin(program_.instance());
    program_.step(setup_.start_s + n * h_, h_);
    access_.end(program_.instance(), h_, mean.data());
    return mean;
  }

 private:
  void read_integrals(std::vector<double>& to) {
    access_.ask_integrals(program_.instance());
    program_.instance().finish();
    access_.take_integrals(to.data());
  }

  const PartSetup& setup_;
  Program& program_;
  double h_;
  PortAccess access_;
  std::vector<double> at_start_, integrals_, others_;
};

/// Whether steps that are repeated differ from one time to the next by the same again and again, after two runs that
/// began with these answers.
bool drifts(FirstStep& step, const Eigen::VectorXd& u, const Eigen::VectorXd& first,
            const Eigen::VectorXd& second) {
  constexpr int kMoreRuns = 4;
  constexpr double kAlike = 0.25;  // differences of the same size, not those of an inner solver
  const Eigen::VectorXd difference = second - first;
  Eigen::VectorXd last = second;
  for (int run = 0; run < kMoreRuns; ++run) {
    step.go_back();
    const Eigen::VectorXd own = step.take(0, u);
    step.take(1, u);
    if (!((own - last - difference).norm() <= kAlike * difference.norm())) return false;
    last = own;
  }
  return true;
}

}  // namespace

FirstSteps try_first_steps(const PartSetup& setup, Program& program, double step_s) {
  constexpr double kInput = 1e-3;  // so that a part at rest moves
  FirstStep step(setup, program, step_s);
  const auto ports = static_cast<Eigen::Index>(setup.ports.size());
  const Eigen::VectorXd small = Eigen::VectorXd::Constant(ports, kInput);
  FirstSteps out;
  Eigen::VectorXd means[2][2];
  for (auto& run : means) {
    step.go_back();
    for (int n = 0; n < 2; ++n) run[n] = step.take(n, small);
  }
  for (int n = 0; n < 2; ++n) {
    const double difference = (means[0][n] - means[1][n]).norm();
    if (difference > 0.0)
      out.worst = std::max(out.worst, difference / (means[0][n].norm() + means[1][n].norm()));
    if (!means[0][n].allFinite()) out.worst = std::numeric_limits<double>::quiet_NaN();
  }
  constexpr double kRoundings = 1e-12;  // of sums in the FMU
  out.drifts = out.worst > kRoundings && drifts(step, small, means[0][0], means[1][0]);
  step.go_back();
  const Eigen::VectorXd rest = step.take(0, Eigen::VectorXd::Zero(ports));
  Eigen::MatrixXd Y(ports, ports);
  for (Eigen::Index j = 0; j < ports; ++j) {
    step.go_back();
    Y.col(j) = (step.take(0, kInput * Eigen::VectorXd::Unit(ports, j)) - rest) / kInput;
  }
  out.available_J = available_energy(Y, rest, step_s);
  out.least_response = least_response(Y);
  return out;
}

}  // namespace portwave::fmi

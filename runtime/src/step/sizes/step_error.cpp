#include "step/sizes/step_error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "step/sizes/part_kinds.hpp"

namespace portwave {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Cₛ (2s)!; for damped stages what makes up for their larger error, found with x' = iωx.
double error_constant(const StageRule& rule) {
  constexpr double kOfTwoDamped = 3.0;
  const int stages = rule.count;
  if (stages == 1 && rule.is_damped()) return 0.5;
  const double more = stages == 2 && rule.is_damped() ? kOfTwoDamped : 1.0;
  double factorial = 1.0, of_stages = 1.0;  // (2s + 1)!, s!
  for (int i = 2; i <= 2 * stages + 1; ++i) factorial *= i;
  for (int i = 2; i <= stages; ++i) of_stages *= i;
  return more * of_stages * of_stages / factorial;
}

/// ½ eᵀQᵀE e; `z` is scratch.
double quadratic_energy(const LinearForm& form, const double* e, double* z) {
  double sum = 0.0;
  if (form.E == nullptr) {
    for (int j = 0; j < form.Q->outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(*form.Q, j); it; ++it) {
        sum += e[it.row()] * it.value() * e[j];
      }
    }
    return 0.5 * sum;
  }
  std::fill(z, z + form.Q->rows(), 0.0);
  for (int k = 0; k < form.Q->outerSize(); ++k) {
    for (SparseMatrix::InnerIterator it(*form.Q, k); it; ++it) z[it.row()] += it.value() * e[k];
  }
  for (int j = 0; j < form.E->outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(*form.E, j); it; ++it) {
      sum += z[it.row()] * it.value() * e[j];
    }
  }
  return 0.5 * sum;
}

}  // namespace

StepErrorEstimate::StepErrorEstimate(const WaveDiscretisation& waves, const StageRule& rule,
                                     const double* record, OtherParts others, IdealParts ideal)
    : waves_(waves), stages_(rule), is_first_order_(rule.count == 1 && rule.is_damped()) {
  const int stages = rule.count;
  constexpr std::size_t kLine = kAlignment / sizeof(double);
  std::size_t size = 0, states = 0;
  for (const BatchSlot& slot : waves.batches()) {
    const bool takes_substeps = std::ranges::any_of(slot.parts, [&](int part) {
      return waves.system().parts()[at(part)].component->substeps() != 1;
    });
    batch_tells_.push_back(stages_of(*slot.batch) == stages && !takes_substeps ? 1 : 0);
    if (batch_tells_.back() == 0 && others == OtherParts::none) {
      throw std::logic_error("a batch does not tell the increments of its stages");
    }
    batch_offset_.push_back(size);
    const auto rows = static_cast<std::size_t>(stages * slot.batch->state_size());
    size += (rows * static_cast<std::size_t>(slot.batch->stride()) + kLine - 1) / kLine * kLine;
  }
  for (Step& step : steps_) step.increments.resize(size, 0.0);
  difference_.resize(size, 0.0);
  std::map<std::pair<int, std::string>, int> kinds;
  std::size_t largest = 0;
  for (int i = 0; i < static_cast<int>(waves.slots().size()); ++i) {
    first_state_.push_back(states);
    const auto n = static_cast<std::size_t>(waves.batch(waves.slot(i).batch).batch->state_size());
    largest = std::max(largest, n);
    initial_.resize(states + n);
    waves.get_state(i, record, initial_.data() + states);
    states += n;
    const Part& part = waves.system().parts()[at(i)];
    const auto [it, is_new] =
        kinds.try_emplace({waves.system().island_of_part(i), kind_name(*part.component)},
                          static_cast<int>(kinds.size()));
    kind_of_part_.push_back(it->second);
  }
  is_nonlinear_.resize(at(waves.system().island_count()), 0);
  for (int i = 0; i < static_cast<int>(waves.slots().size()); ++i) {
    const Part& part = waves.system().parts()[at(i)];
    if (part.component->capabilities().linear) continue;
    // What an ideal switch or diode ties or frees jumps in its rates: no polynomial, and no error.
    const Subsystem* const physics = part.port_hamiltonian();
    const bool is_ideal = physics != nullptr && physics->has_vertical_laws();
    if (is_ideal && ideal == IdealParts::without_errors) continue;
    has_laws_ = has_laws_ || (physics != nullptr && physics->has_port_laws());
    is_nonlinear_[at(waves.system().island_of_part(i))] = 1;
  }
  told_.resize(waves.slots().size());
  diagonal_.resize(states);
  dies_.resize(states);
  for (int i = 0; i < static_cast<int>(waves.slots().size()); ++i) ask(i);
  kinds_.resize(kinds.size());
  for (const auto& [key, number] : kinds) kinds_[at(number)].island = key.first;
  for (std::vector<double>* energies :
       {&island_J_, &next_island_J_, &before_J_, &attempt_J_, &apart_J_, &wave_J_}) {
    energies->resize(at(waves.system().island_count()), 0.0);
  }
  for (std::vector<double>* scratch : {&x_, &other_, &moved_, &gradient_, &gradient_other_}) {
    scratch->resize(largest, 0.0);
  }
}

/// Offset of row `row` of a part's increments.
std::size_t StepErrorEstimate::offset(int part, int row) const {
  const PartSlot& slot = waves_.slot(part);
  const int stride = waves_.batch(slot.batch).batch->stride();
  return batch_offset_[at(slot.batch)] + at(row * stride + slot.lane);
}

void StepErrorEstimate::take(const double* record, const double* a, const double* next) {
  for (std::size_t i = 0; i < waves_.batches().size(); ++i) {
    const BatchSlot& slot = waves_.batches()[i];
    if (batch_tells_[i] == 0) continue;
    stage_increments(*slot.batch, slot.all(), record + slot.record, a + slot.wave,
                     next + slot.record, steps_[0].increments.data() + batch_offset_[i]);
  }
  steps_[0].step_s = waves_.step_s();
}

void StepErrorEstimate::accept(const double* next) {
  if (is_motion_due()) measure_motion(next);
  ++accepted_;
  for (Kind& kind : kinds_) {
    kind.scale_J = kind.next_J;
    island_J_[at(kind.island)] = std::max(island_J_[at(kind.island)], kind.scale_J);
  }
  go_on();
}

void StepErrorEstimate::go_on() {
  std::swap(steps_[1], steps_[2]);
  std::swap(steps_[0], steps_[1]);
  has_before_ = known_steps_ > 0;
  known_steps_ = std::min(known_steps_ + 1, 2);
}

void StepErrorEstimate::set_aside() {
  aside_.known = known_steps_;
  aside_.has_before = has_before_;
  for (int i = 0; i < known_steps_; ++i) aside_.steps[at(i)] = steps_[at(i + 1)];
}

void StepErrorEstimate::take_back() {
  known_steps_ = aside_.known;
  has_before_ = aside_.has_before;
  for (int i = 0; i < known_steps_; ++i) steps_[at(i + 1)] = aside_.steps[at(i)];
}

/// Weight in the divided difference of all nodes, times Cₛ (2s)! h²ˢ⁺¹, of the increment of a stage
/// of the step `back` steps ago.
double StepErrorEstimate::weight(Window window, int back, int stage) const {
  const double h = steps_[0].step_s;
  const auto time = [&](int b, int i) {  // in units of h, from the start of the step
    double start = 0.0;
    for (int k = 1; k <= b; ++k) start -= steps_[at(k)].step_s / h;
    return start + stages_.c[at(i)] * steps_[at(b)].step_s / h;
  };
  const double own = time(back, stage);
  double product = 1.0;
  for (int b = 0; b <= 2; ++b) {
    for (int i = 0; i < stages_.count; ++i) {
      if (is_node(window, b, i) && (b != back || i != stage)) product *= own - time(b, i);
    }
  }
  const double per_rate = error_constant(stages_) * h / product;
  return per_rate / (std::sqrt(stages_.b[at(stage)]) * steps_[at(back)].step_s);
}

std::optional<double> StepErrorEstimate::error(const double* next, const double* a, Window window) {
  if (!form_difference(window)) return std::nullopt;
  return share(next, a, is_motion_due());
}

std::optional<double> StepErrorEstimate::error_of_laws(const double* next, const double* a) {
  if (!has_laws_ || stages_.count == 1) return error(next, a);
  const std::optional<double> other = error(next, a, Window::latest_but_one);
  const std::optional<double> own = error(next, a);
  return other && *other > *own ? other : own;
}

bool StepErrorEstimate::is_node(Window window, int back, int stage) const {
  if (is_first_order_) return window == Window::latest ? back < 2 : back > 0;
  if (window == Window::earliest) return back > 0 || stage == 0;
  return back < 2 || stage == (window == Window::latest ? stages_.count - 1 : 0);
}

/// The estimate, in `difference_`; false after fewer than two earlier steps.
bool StepErrorEstimate::form_difference(Window window) {
  if (known_steps_ < 2) return false;
  std::fill(difference_.begin(), difference_.end(), 0.0);
  for (int back = 0; back <= 2; ++back) {
    for (int i = 0; i < stages_.count; ++i) {
      if (!is_node(window, back, i)) continue;
      const double w = weight(window, back, i);
      for (std::size_t k = 0; k < waves_.batches().size(); ++k) {
        const StepBatch& batch = *waves_.batches()[k].batch;
        const auto block = at(batch.state_size() * batch.stride());
        const double* const own =
            steps_[at(back)].increments.data() + batch_offset_[k] + at(i) * block;
        double* const sum = difference_.data() + batch_offset_[k];
        for (std::size_t j = 0; j < block; ++j) sum[j] += w * own[j];
      }
    }
  }
  return true;
}

/// h ẋ; `back`: 0 for the step taken, 1 for the one before.
double StepErrorEstimate::rate(int back, int part, int stage, int state) const {
  const int n = waves_.batch(waves_.slot(part).batch).batch->state_size();
  return steps_[at(back)].increments[offset(part, stage * n + state)] /
         std::sqrt(stages_.b[at(stage)]);
}

std::pair<std::size_t, int> StepErrorEstimate::place_of(int part, int stage) const {
  const StepBatch& batch = *waves_.batch(waves_.slot(part).batch).batch;
  return {offset(part, stage * batch.state_size()), batch.stride()};
}

void StepErrorEstimate::ask(int part) const {
  const Part& own = waves_.system().parts()[at(part)];
  const StageRule& rule = own.component->stage_rule();
  Told& out = told_[at(part)];
  out.component = own.component;
  out.physics = own.port_hamiltonian();
  out.form = out.physics != nullptr ? out.physics->linear_form() : LinearForm();
  out.states = waves_.batch(waves_.slot(part).batch).batch->state_size();
  const bool is_nonlinear = is_nonlinear_[at(waves_.system().island_of_part(part))] != 0;
  out.is_judged = batch_tells_[at(waves_.slot(part).batch)] != 0 && out.physics != nullptr &&
                  (!lets_die(rule) || rule.conserved != 0 || (rule.count > 1 && is_nonlinear));
  const std::size_t first = first_state_[at(part)];
  for (int i = 0; i < out.states; ++i) dies_[first + at(i)] = dies_alone(rule, i) ? 1 : 0;
  const SparseMatrix* const Q = out.form.E == nullptr ? out.form.Q : nullptr;
  out.is_diagonal = Q != nullptr;
  for (int j = 0; out.is_diagonal && j < Q->outerSize(); ++j) {
    diagonal_[first + at(j)] = 0.0;
    for (SparseMatrix::InnerIterator it(*Q, j); it; ++it) {
      out.is_diagonal = out.is_diagonal && it.row() == j;
      diagonal_[first + at(j)] = it.value();
    }
  }
}

double StepErrorEstimate::energy_of(int part, const double* next, const double* e) {
  try {
    waves_.get_state(part, next, x_.data());
    return energy_between(part, x_.data(), e);
  } catch (const std::exception&) {  // of a callback, outside its domain
    return kInfinity;
  }
}

double StepErrorEstimate::energy_of_error(int part, const double* next, const double* e) {
  const double energy = energy_of(part, next, e);
  return std::isfinite(energy) && energy <= floor_J(part, x_.data(), e) ? 0.0 : energy;
}

/// The error from `difference_`; 0 if round-off explains it, or if it cannot be formed.
double StepErrorEstimate::error_of_part(int part, const double* next) {
  if (!is_judged(part)) return 0.0;
  const StepBatch& batch = *waves_.batch(waves_.slot(part).batch).batch;
  const double* const own = difference_.data() + offset(part, 0);
  const char* const dies = dies_.data() + first_state_[at(part)];
  for (int i = 0; i < batch.state_size(); ++i)
    other_[at(i)] = dies[i] != 0 ? 0.0 : own[i * batch.stride()];
  const double energy = energy_of_error(part, next, other_.data());
  return std::isfinite(energy) ? energy : 0.0;
}

double StepErrorEstimate::distance(const double* other, const double* next, const double* a) {
  for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
    waves_.get_state(part, other, other_.data());
    waves_.get_state(part, next, x_.data());
    const int n = waves_.batch(waves_.slot(part).batch).batch->state_size();
    for (int i = 0; i < n; ++i) {
      const int stride = waves_.batch(waves_.slot(part).batch).batch->stride();
      difference_[offset(part, 0) + at(i * stride)] = x_[at(i)] - other_[at(i)];
    }
  }
  before_J_ = island_J_;
  try {
    measure_attempts(other, next);
  } catch (const std::exception&) {  // outside the domain of a callback
    return kInfinity;
  }
  const double worst = share(next, a, /*measure=*/true);
  for (std::size_t i = 0; i < before_J_.size(); ++i) {
    island_J_[i] = std::max(before_J_[i], attempt_J_[i]);
  }
  for (Kind& kind : kinds_) {
    kind.next_J =
        std::max({kind.scale_J, least_share() * island_J_[at(kind.island)], kLeastMotion_J});
  }
  return worst;
}

double StepErrorEstimate::motion(const double* record, const double* next) {
  double most = 0.0;
  for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
    waves_.get_state(part, record, other_.data());
    waves_.get_state(part, next, x_.data());
    const int n = waves_.batch(waves_.slot(part).batch).batch->state_size();
    for (int i = 0; i < n; ++i) other_[at(i)] = x_[at(i)] - other_[at(i)];
    try {
      const double energy = energy_between(part, x_.data(), other_.data());
      const double scale = kinds_[at(kind_of_part_[at(part)])].next_J;
      most = std::max(most, energy > 0.0 ? energy / scale : 0.0);
      if (std::isnan(energy)) return kInfinity;
    } catch (const std::exception&) {  // of a callback, outside its domain
      return kInfinity;
    }
  }
  return std::sqrt(most);
}

/// The largest energies of motion of two attempts, by island: in island_J_ for the comparison of the
/// two, and in attempt_J_, to stay, where they agree.
void StepErrorEstimate::measure_attempts(const double* other, const double* next) {
  std::ranges::fill(attempt_J_, 0.0);
  std::ranges::fill(apart_J_, 0.0);
  for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
    const std::size_t island = at(waves_.system().island_of_part(part));
    for (const double* record : {other, next}) {
      attempt_J_[island] = std::max(attempt_J_[island], motion_J(part, record));
    }
    const StepBatch& batch = *waves_.batch(waves_.slot(part).batch).batch;
    const double* const own = difference_.data() + offset(part, 0);
    for (int i = 0; i < batch.state_size(); ++i) other_[at(i)] = own[i * batch.stride()];
    const double energy = energy_between(part, x_.data(), other_.data());
    apart_J_[island] = std::isfinite(energy) ? std::max(apart_J_[island], energy) : kInfinity;
  }
  for (std::size_t i = 0; i < attempt_J_.size(); ++i) {
    island_J_[i] = std::max(island_J_[i], attempt_J_[i]);
    if (!(apart_J_[i] <= kRoughlyEqual * attempt_J_[i])) attempt_J_[i] = 0.0;
  }
}

/// The largest share of energy in `difference_`, as an amplitude; infinite if it is not a number.
double StepErrorEstimate::share(const double* next, const double* a, bool measure) {
  try {
    if (measure) measure_motion(next);
    double worst = 0.0;
    worst_part_ = -1;
    measure_waves(a);
    for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
      const StepBatch& batch = *waves_.batch(waves_.slot(part).batch).batch;
      const double* const own = difference_.data() + offset(part, 0);
      for (int i = 0; i < batch.state_size(); ++i) other_[at(i)] = own[i * batch.stride()];
      waves_.get_state(part, next, x_.data());
      const double energy = energy_between(part, x_.data(), other_.data());
      if (!std::isfinite(energy)) return kInfinity;
      const double scale = kinds_[at(kind_of_part_[at(part)])].next_J;
      if (energy <= worst * scale) continue;
      if (energy <= floor_J(part, x_.data(), other_.data())) continue;
      worst = scale > 0.0 ? energy / scale : kInfinity;
      worst_part_ = part;
    }
    return std::sqrt(worst);
  } catch (const std::exception&) {  // of a callback, outside its domain
    return kInfinity;
  }
}

/// ½ eᵀ∇²H e around x, or ½|eᵀ(∇H(x) − ∇H(x − e))|.
double StepErrorEstimate::energy_between(int part, const double* x, const double* e) {
  const Told& own = told(part);
  if (own.physics == nullptr || own.states == 0) return 0.0;
  if (own.is_diagonal) {
    const double* const Q = diagonal_.data() + first_state_[at(part)];
    double sum = 0.0;
    for (int i = 0; i < own.states; ++i) {
      if (Q[i] != 0.0) sum += e[i] * Q[i] * e[i];
    }
    return std::abs(0.5 * sum);
  }
  if (own.form.Q != nullptr) return std::abs(quadratic_energy(own.form, e, gradient_.data()));
  const Subsystem* const physics = own.physics;
  const int n = own.states;
  physics->gradient(x, gradient_.data());
  for (int i = 0; i < n; ++i) moved_[at(i)] = x[i] - e[i];
  physics->gradient(moved_.data(), gradient_other_.data());
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += e[i] * (gradient_[at(i)] - gradient_other_[at(i)]);
  return 0.5 * std::abs(sum);
}

double StepErrorEstimate::energy_of_motion(int part, int state, double size) const {
  const Subsystem* physics = waves_.system().parts()[at(part)].port_hamiltonian();
  if (physics == nullptr) return 0.0;
  if (const LinearForm form = physics->linear_form(); form.Q != nullptr) {
    return form.E != nullptr ? 0.0 : 0.5 * form.Q->coeff(state, state) * size * size;
  }
  const auto n = at(physics->signature().state_size());
  const auto start = initial_.begin() + static_cast<std::ptrdiff_t>(first_state_[at(part)]);
  std::vector<double> x(start, start + static_cast<std::ptrdiff_t>(n)), g(n), there(n);
  try {
    physics->gradient(x.data(), g.data());
    x[at(state)] += size;
    physics->gradient(x.data(), there.data());
  } catch (const std::exception&) {  // of a callback, outside its domain
    return 0.0;
  }
  const double energy = 0.5 * std::abs(size * (there[at(state)] - g[at(state)]));
  return std::isfinite(energy) ? energy : 0.0;
}

/// Motion grows fast at the start only. Less frequent updates compare errors with smaller motion.
bool StepErrorEstimate::is_motion_due() const {
  constexpr std::int64_t kAlways = 16, kInterval = 4;
  return accepted_ < kAlways || accepted_ % kInterval == 0;
}

/// ½(x − x⁰)ᵀ∇²H(x − x⁰) of a part; 0 where it cannot be computed. Leaves x in x_.
double StepErrorEstimate::motion_J(int part, const double* record) {
  waves_.get_state(part, record, x_.data());
  const double* const start = initial_.data() + first_state_[at(part)];
  const int n = waves_.batch(waves_.slot(part).batch).batch->state_size();
  for (int i = 0; i < n; ++i) other_[at(i)] = x_[at(i)] - start[i];
  const double own = energy_between(part, x_.data(), other_.data());
  return std::isfinite(own) ? own : 0.0;
}

void StepErrorEstimate::start_beside_stored(const double* record) {
  for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
    waves_.get_state(part, record, x_.data());
    const int n = waves_.batch(waves_.slot(part).batch).batch->state_size();
    std::copy_n(x_.begin(), n, other_.begin());
    const double own_J = energy_of(part, record, other_.data());
    if (!std::isfinite(own_J)) continue;
    Kind& kind = kinds_[at(kind_of_part_[at(part)])];
    kind.scale_J = std::max(kind.scale_J, own_J);
    island_J_[at(kind.island)] = std::max(island_J_[at(kind.island)], own_J);
  }
}

void StepErrorEstimate::measure_motion(const double* next) {
  for (Kind& kind : kinds_) kind.next_J = kind.scale_J;
  for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
    double& largest = kinds_[at(kind_of_part_[at(part)])].next_J;
    largest = std::max(largest, motion_J(part, next));
  }
  // A step that is only tried counts for itself.
  next_island_J_ = island_J_;
  for (const Kind& kind : kinds_) {
    double& largest = next_island_J_[at(kind.island)];
    largest = std::max(largest, kind.next_J);
  }
  for (Kind& kind : kinds_) {
    kind.next_J =
        std::max({kind.next_J, least_share() * next_island_J_[at(kind.island)], kLeastMotion_J});
  }
}

double StepErrorEstimate::smallest_scale_J() const {
  double smallest = kInfinity;
  for (const Kind& kind : kinds_) {
    if (kind.scale_J > 0.0) smallest = std::min(smallest, kind.scale_J);
  }
  return std::isfinite(smallest) ? smallest : 0.0;
}

double StepErrorEstimate::error_between(const double* next, const double* a) {
  const int s = stages_.count;
  const double h = steps_[1].step_s, after = steps_[0].step_s;
  constexpr double kMiddle = 0.5;
  std::array<double, 2 * kMostStages> nodes = {};
  for (int j = 0; j < s; ++j) {
    nodes[at(j)] = stages_.c[at(j)];
    nodes[at(s + j)] = 1.0 + stages_.c[at(j)] * after / h;
  }
  std::ranges::fill(difference_, 0.0);
  for (int j = 0; j < 2 * s; ++j) {
    const bool is_own = j < s;
    const int stage = is_own ? j : j - s;
    const double alone = is_own ? stages_.integral(stage, kMiddle) : 0.0;
    const double weight = (integral_of_lagrange(nodes, j, 0.0, kMiddle) - alone) *
                          (is_own ? 1.0 : h / after) / std::sqrt(stages_.b[at(stage)]);
    for (std::size_t k = 0; k < waves_.batches().size(); ++k) {
      const StepBatch& batch = *waves_.batches()[k].batch;
      const auto block = at(batch.state_size() * batch.stride());
      const double* const own =
          steps_[is_own ? 1 : 0].increments.data() + batch_offset_[k] + at(stage) * block;
      double* const sum = difference_.data() + batch_offset_[k];
      for (std::size_t i = 0; i < block; ++i) sum[i] += weight * own[i];
    }
  }
  return share(next, a, /*measure=*/false);
}

/// `x`: at the end of the step.
void StepErrorEstimate::archive(StateArchive& archive) {
  for (Step& step : steps_) {
    archive.array(step.increments);
    archive.value(step.step_s);
  }
  archive.values(known_steps_, has_before_);
  archive.expect(known_steps_ >= 0 && known_steps_ <= 2, "the number of steps that are known");
  const int used = has_before_ ? 2 : known_steps_;
  for (int i = 1; archive.reads() && i <= used; ++i) {
    const Step& step = steps_[at(i)];
    archive.expect(step.step_s > 0.0 && std::isfinite(step.step_s), "the size of an earlier step");
    archive.expect_finite(step.increments, "an increment of an earlier step");
  }
  archive_scales(archive);
}

void StepErrorEstimate::archive_scales(StateArchive& archive) {
  archive.value(accepted_);
  for (std::vector<double>* own :
       {&initial_, &island_J_, &next_island_J_, &attempt_J_, &apart_J_, &wave_J_}) {
    archive.array(*own);
  }
  for (Kind& kind : kinds_) archive.values(kind.scale_J, kind.next_J);
  archive.expect_counts({accepted_}, "the number of steps");
  archive.expect_finite(initial_, "a state at the start");
}

std::size_t StepErrorEstimate::bytes() const {
  std::size_t doubles = difference_.capacity() + initial_.capacity();
  for (const Step& step : steps_) doubles += step.increments.capacity();
  return (doubles + diagonal_.capacity()) * sizeof(double) + dies_.capacity() +
         told_.capacity() * sizeof(Told);
}

}  // namespace portwave

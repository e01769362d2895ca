#include "energy/step_rounding.hpp"

#include <algorithm>
#include <cmath>

#include "portwave/subsystems/core/batch_facets.hpp"

namespace portwave {
namespace {

/// Σ_i (|Q||x|)_i (|E||x|)_i: the terms of 2H, however much they cancel.
double storage_terms(const LinearForm& form, const double* x, std::vector<double>& moved) {
  double sum = 0.0;
  if (form.E != nullptr) {
    std::fill(moved.begin(), moved.end(), 0.0);
    for (int j = 0; j < form.E->outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(*form.E, j); it; ++it) {
        moved[static_cast<std::size_t>(it.row())] += std::abs(it.value() * x[j]);
      }
    }
  }
  for (int j = 0; j < form.Q->outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(*form.Q, j); it; ++it) {
      const auto row = static_cast<std::size_t>(it.row());
      const double other = form.E != nullptr ? moved[row] : std::abs(x[row]);
      sum += std::abs(it.value() * x[j]) * other;
    }
  }
  return sum;
}

/// A number of twice the digits of a double, the sum of two that do not overlap (Dekker, Numer. Math. 18, 1971).
struct Wide {
  double high = 0.0, low = 0.0;

  /// a + b, exactly.
  static Wide sum(double a, double b) {
    const double high = a + b, of_b = high - a;
    return {high, (a - (high - of_b)) + (b - of_b)};
  }
  static Wide product(double a, double b) {
    const double high = a * b;
    return {high, std::fma(a, b, -high)};
  }
  void add(const Wide& other) {
    const Wide own = sum(high, other.high);
    *this = sum(own.high, own.low + (low + other.low));
  }
};

Wide operator*(const Wide& x, double a) {
  const Wide own = Wide::product(x.high, a);
  return Wide::sum(own.high, own.low + x.low * a);
}
Wide operator*(const Wide& x, const Wide& y) {
  const Wide own = Wide::product(x.high, y.high);
  return Wide::sum(own.high, own.low + (x.high * y.low + x.low * y.high));
}

/// ½(x⁺ + x)ᵀQ(x⁺ − x), or ½(x⁺ + x)ᵀQᵀE(x⁺ − x), in a precision in which nothing cancels.
/// `z` is scratch.
double stored_change(const LinearForm& form, const double* x, const double* x_next, Wide* z) {
  const auto moved = [&](int j) { return Wide::sum(x_next[j], -x[j]); };
  const auto twice_mean = [&](int j) { return Wide::sum(x_next[j], x[j]); };
  const Eigen::Index rows = form.Q->rows();
  std::fill(z, z + rows, Wide{});  // 2Qx̄, or 2Qᵀx̄
  for (int j = 0; j < form.Q->outerSize(); ++j) {
    const Wide own = twice_mean(j);
    for (SparseMatrix::InnerIterator it(*form.Q, j); it; ++it) {
      form.E == nullptr ? z[j].add(twice_mean(static_cast<int>(it.row())) * it.value())
                        : z[it.row()].add(own * it.value());
    }
  }
  Wide sum;
  for (int j = 0; j < rows; ++j) {
    if (form.E == nullptr) {
      sum.add(z[j] * moved(j));
      continue;
    }
    const Wide own = moved(j);  // zᵀE(x⁺ − x)
    for (SparseMatrix::InnerIterator it(*form.E, j); it; ++it) {
      sum.add(z[it.row()] * it.value() * own);
    }
  }
  return 0.5 * sum.high + 0.5 * sum.low;
}

}  // namespace

struct StepRounding::Scratch {
  explicit Scratch(std::size_t states) : x(states), x_next(states), gradient(states), z(states) {}

  std::vector<double> x, x_next, gradient;
  std::vector<Wide> z;
  std::vector<double> waves;  // of a part
};

StepRounding::StepRounding(const WaveDiscretisation& waves) : waves_(waves) {
  std::size_t largest = 0;
  for (const BatchSlot& slot : waves.batches()) {
    largest = std::max(largest, static_cast<std::size_t>(slot.batch->state_size()));
  }
  scratch_ = std::make_unique<Scratch>(largest);
  std::size_t most_waves = 0;
  for (const BatchSlot& slot : waves.batches()) {
    most_waves = std::max(most_waves, static_cast<std::size_t>(slot.batch->wave_size()));
  }
  scratch_->waves.resize(most_waves);
}

StepRounding::~StepRounding() = default;

double StepRounding::storage(int part, const double* record) const {
  waves_.get_state(part, record, scratch_->x.data());
  return waves_.system().parts()[static_cast<std::size_t>(part)].port_hamiltonian()->storage(
      scratch_->x.data());
}

double StepRounding::sent_by_itself(int part, const CommittedStep& step) const {
  const PartSlot& slot = waves_.slot(part);
  const BatchSlot& batch = waves_.batch(slot.batch);
  double sum = 0.0;
  if (!batch.capabilities.knows_energy) {
    for (int j = 0; j < batch.batch->wave_size(); ++j) {
      const int at = slot.wave + j * slot.stride;
      const double a = step.a[at], b = step.b[at];
      sum += 0.5 * (a - b) * (a + b);
    }
    return std::abs(sum);
  }
  if (!batch.driven || batch.batch->wave_size() == 0) return 0.0;
  double* const offset = scratch_->waves.data();
  if (batch.affine == nullptr) return 0.0;
  batch.affine->affine_offset(slot.lane, step.record + batch.record, offset);
  for (int j = 0; j < batch.batch->wave_size(); ++j) sum += 0.5 * offset[j] * offset[j];
  return sum;
}

std::optional<double> StepRounding::change(int part, const CommittedStep& step) const {
  const Subsystem* physics =
      waves_.system().parts()[static_cast<std::size_t>(part)].port_hamiltonian();
  const LinearForm form = physics != nullptr ? physics->linear_form() : LinearForm{};
  if (form.Q == nullptr) return std::nullopt;
  waves_.get_state(part, step.record, scratch_->x.data());
  waves_.get_state(part, step.next, scratch_->x_next.data());
  return stored_change(form, scratch_->x.data(), scratch_->x_next.data(), scratch_->z.data());
}

/// From the batch of a part, for its whole group of lanes at once if possible and if there is a place.
std::optional<double> StepRounding::known_of(const PartSlot& slot, const CommittedStep& step,
                                             Beside* beside) const {
  const auto kept = [&] {
    return beside->rounding[static_cast<std::size_t>(slot.lane - beside->first)];
  };
  if (beside != nullptr && slot.batch == beside->batch && slot.lane >= beside->first &&
      slot.lane < beside->last) {
    return kept();
  }
  const BatchSlot& own = waves_.batch(slot.batch);
  if (own.roundings == nullptr) return std::nullopt;
  const double* const record = step.record + own.record;
  const double* const a = step.a + own.wave;
  const double* const next = step.next + own.record;
  const int group = own.batch->lane_group();
  if (beside == nullptr || group > kLaneGroup ||
      !own.roundings->step_roundings(slot.lane, record, a, next, beside->rounding.data())) {
    return own.roundings->step_rounding(slot.lane, record, a, next);
  }
  beside->batch = slot.batch;
  beside->first = slot.lane / group * group;
  beside->last = beside->first + group;
  return kept();
}

double StepRounding::bound_of_states(std::span<const int> parts, const CommittedStep& step) const {
  constexpr double kPerTerm = 64.0 * kEpsilon, kOfTheSum = 1.01;
  if (step.record == nullptr) return 0.0;
  Beside beside;
  double sum = 0.0;
  for (const int part : parts) {
    const PartSlot& slot = waves_.slot(part);
    if (slot.batch != beside.batch || slot.lane < beside.first || slot.lane >= beside.last) {
      const BatchSlot& own = waves_.batch(slot.batch);
      if (!own.capabilities.knows_energy) continue;
      const int group = own.batch->lane_group();
      if (group > kLaneGroup || own.roundings == nullptr ||
          !own.roundings->step_rounding_bounds(slot.lane, step.record + own.record,
                                               step.a + own.wave, step.next + own.record,
                                               beside.rounding.data())) {
        return std::numeric_limits<double>::infinity();
      }
      beside.batch = slot.batch;
      beside.first = slot.lane / group * group;
      beside.last = beside.first + group;
    }
    sum += beside.rounding[static_cast<std::size_t>(slot.lane - beside.first)];
    const Subsystem* const physics =
        waves_.system().parts()[static_cast<std::size_t>(part)].port_hamiltonian();
    if (physics != nullptr) sum += kPerTerm * physics->storage_terms();
  }
  return kOfTheSum * sum;
}

double StepRounding::of_states(int part, const CommittedStep& step, double tolerance_J,
                               Beside* beside) const {
  if (step.record == nullptr) return 0.0;
  constexpr double kPerTerm = 64.0 * kEpsilon;
  const PartSlot& slot = waves_.slot(part);
  const BatchSlot& batch = waves_.batch(slot.batch);
  if (!batch.capabilities.knows_energy) return 0.0;  // by definition it balances
  const std::optional<double> known = known_of(slot, step, beside);
  const Subsystem* physics =
      waves_.system().parts()[static_cast<std::size_t>(part)].port_hamiltonian();
  // A batch knows the rounding of its own sums, but not the computation of H.
  if (known && physics == nullptr) return *known;
  if (known) return *known + kPerTerm * physics->storage_terms();
  const double moved = kTermsPerTolerance * tolerance_J;
  if (physics == nullptr) return kPerTerm * moved;
  const Subsystem& subsystem = *physics;
  const LinearForm form = subsystem.linear_form();
  double terms = 0.0;
  for (const double* record : {step.record, step.next}) {
    waves_.get_state(part, record, scratch_->x.data());
    if (form.Q != nullptr) {
      terms += storage_terms(form, scratch_->x.data(), scratch_->gradient);
      continue;
    }
    subsystem.gradient(scratch_->x.data(), scratch_->gradient.data());
    terms += std::abs(subsystem.storage(scratch_->x.data()));
    for (int k = 0; k < subsystem.signature().state_size(); ++k) {
      terms += std::abs(scratch_->gradient[static_cast<std::size_t>(k)] *
                        scratch_->x[static_cast<std::size_t>(k)]);
    }
  }
  // The terms of parts that are not quadratic are Σ|∂H/∂xᵢ xᵢ|: the factor of the state's ε.
  if (form.Q == nullptr) return kPerTerm * std::max({terms, moved, subsystem.storage_terms()});
  return kPerTerm * std::sqrt(terms * (moved + kPerTerm * kPerTerm * terms));
}

std::size_t StepRounding::bytes() const {
  return scratch_->x.capacity() * (3 * sizeof(double) + sizeof(Wide)) +
         scratch_->waves.capacity() * sizeof(double);
}

}  // namespace portwave

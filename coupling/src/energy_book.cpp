#include "portwave/coupling/energy_book.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace portwave {
namespace {

double half_square(const double* w, int first, int last) {
  double sum = 0.0;
  for (int j = first; j < last; ++j) sum += w[j] * w[j];
  return 0.5 * sum;
}

/// StepEnergy::magnitude_J of a state that no step has made: |H| + Σ|∂H/∂xᵢ xᵢ|.
double magnitude(const Subsystem& subsystem, const double* x, double storage) {
  std::vector<double> g(static_cast<std::size_t>(subsystem.signature().state_size()));
  subsystem.gradient(x, g.data());
  double sum = std::abs(storage);
  for (std::size_t i = 0; i < g.size(); ++i) sum += std::abs(g[i] * x[i]);
  return sum;
}

}  // namespace

EnergyBook::EnergyBook(const WaveDiscretisation& waves, const double* x, const double* b)
    : tank_(static_cast<std::size_t>(waves.system().island_count()), 0.0),
      max_residual_(-std::numeric_limits<double>::infinity()) {
  const auto batches = waves.batches();
  for (std::size_t i = 0; i < waves.places().size(); ++i) {
    const PartPlace& place = waves.places()[i];
    const BatchPlace& batch = batches[static_cast<std::size_t>(place.batch)];
    const int island = waves.system().island_of_part(static_cast<int>(i));
    parts_.push_back(
        {place.wave, place.wave + batch.batch->wave_size(), batch.energy + place.lane, island});
    const Subsystem& subsystem = *waves.system().parts()[i].subsystem;
    storage_.push_back(subsystem.storage(x + place.state));
    magnitude_.push_back(magnitude(subsystem, x + place.state, storage_.back()));
    totals_.initial_J += storage_.back();
    tank_[static_cast<std::size_t>(island)] +=
        half_square(b, parts_.back().wave_first, parts_.back().wave_last);
  }
  totals_.final_J = totals_.max_J = totals_.initial_J;
  totals_.tank_J = totals_.initial_tank_J = tank_sum();
  totals_.max_energy_ratio = -std::numeric_limits<double>::infinity();
  update_energy_ratio();
}

StepLedger EnergyBook::book(const double* a, const double* b, const StepEnergy* energy) {
  StepLedger step;
  step.max_passivity_residual_J = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const PartBook& part = parts_[i];
    const StepEnergy& e = energy[part.energy];
    const double in = half_square(a, part.wave_first, part.wave_last);
    const double out = half_square(b, part.wave_first, part.wave_last);
    const double residual = (e.storage_J - storage_[i]) - (in - out) - e.external_supply_J;
    check_passivity(i, residual,
                    magnitude_[i] + e.magnitude_J + in + out + std::abs(e.external_supply_J), step);
    storage_[i] = e.storage_J;
    magnitude_[i] = e.magnitude_J;
    tank_[static_cast<std::size_t>(part.island)] += out - in;
    step.stored_J += e.storage_J;
    step.supplied_J += e.external_supply_J;
    step.dissipated_J += e.dissipated_J;
    step.mismatch_J += out - in;
  }
  step.tank_J = tank_sum();
  totals_.final_J = step.stored_J;
  totals_.max_J = std::max(totals_.max_J, step.stored_J);
  totals_.supplied_J += step.supplied_J;
  totals_.dissipated_J += step.dissipated_J;
  totals_.mismatch_J += step.mismatch_J;
  totals_.tank_J = step.tank_J;
  update_energy_ratio();
  ++steps_;
  return step;
}

void EnergyBook::check_passivity(std::size_t part, double residual, double magnitude,
                                 StepLedger& step) {
  step.max_passivity_residual_J = std::max(step.max_passivity_residual_J, residual);
  max_residual_ = std::max(max_residual_, residual);
  const double tolerance = passivity_tolerance(magnitude);
  if (!(residual <= tolerance)) violated_ = true;
  // Products, not quotients: a part at rest has tolerance 0.
  if (worst_part_ < 0 || residual * worst_tolerance_ > worst_residual_ * tolerance) {
    worst_residual_ = residual;
    worst_tolerance_ = tolerance;
    worst_part_ = static_cast<int>(part);
    worst_step_ = steps_;
  }
}

double EnergyBook::tank_sum() const {
  double sum = 0.0;
  for (const double tank : tank_) sum += tank;
  return sum;
}

void EnergyBook::update_energy_ratio() {
  double reserve = 0.0;
  for (const double tank : tank_) reserve += std::max(tank, 0.0);
  const double bound = initial_energy();
  if (bound > 0.0) {
    totals_.max_energy_ratio = std::max(totals_.max_energy_ratio,
                                        (totals_.final_J + reserve - totals_.supplied_J) / bound);
  } else {
    totals_.max_energy_ratio = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace portwave

#include "portwave/coupling/guard.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace portwave {
namespace {

/// How much more than needed may be withheld, as a share of 1 − α.
constexpr double kExcess = 0.02;

template <class Visit>
void for_waves(const WaveDiscretisation& waves, std::span<const int> parts, const Visit& visit) {
  for (const int part : parts) {
    const PartPlace& place = waves.place(part);
    const int ports = waves.batch(place.batch).batch->wave_size();
    for (int j = 0; j < ports; ++j) visit(static_cast<std::size_t>(place.wave + j * place.stride));
  }
}

}  // namespace

double largest_feasible_scaling(double A0, double A1, double A2) {
  if (!(A0 >= 0.0)) return 0.0;
  // Products of very large or small terms must neither overflow nor vanish.
  const double largest = std::max({A0, std::abs(A1), std::abs(A2)});
  if (!(largest > 0.0) || !std::isfinite(largest)) return 0.0;
  const int exponent = -std::ilogb(largest);
  A0 = std::scalbn(A0, exponent);
  A1 = std::scalbn(A1, exponent);
  A2 = std::scalbn(A2, exponent);
  const double root = std::sqrt(std::max(A1 * A1 - 4.0 * A2 * A0, 0.0));
  // The only root in [0, 1): for A1 ≥ 0 the value at 1 is negative only with A2 < 0.
  double alpha = 0.0;
  if (A1 >= 0.0) {
    if (A2 < 0.0) alpha = (A1 + root) / (-2.0 * A2);
  } else {
    alpha = 2.0 * A0 / (root - A1);
  }
  return alpha > 0.0 ? std::min(alpha, 1.0) : 0.0;  // 0 for a NaN
}

PassivityGuard::PassivityGuard(const WaveDiscretisation& waves)
    : waves_(waves),
      parts_(waves.system()),
      affine_(static_cast<std::size_t>(parts_.count()), 1),
      searching_(affine_.size(), 0),
      full_(static_cast<std::size_t>(waves.wave_size()), 0.0) {
  searches_.reserve(affine_.size());
  std::vector<double> matrix;
  const AlignedVector record(waves.record_size(), 0.0);
  for (int island = 0; island < parts_.count(); ++island) {
    for (const int part : parts_.of(island)) {
      const PartPlace& place = waves.place(part);
      const BatchPlace& batch = waves.batch(place.batch);
      const auto ports = static_cast<std::size_t>(batch.batch->wave_size());
      offset_.resize(std::max(offset_.size(), ports));
      matrix.resize(std::max(matrix.size(), ports * ports));
      if (ports == 0) continue;
      if (!batch.batch->affine_matrix(place.lane, matrix.data()) ||
          !batch.batch->affine_offset(place.lane, record.data() + batch.record, offset_.data())) {
        affine_[static_cast<std::size_t>(island)] = 0;
      }
    }
  }
}

double PassivityGuard::squares(int island, const double* waves) const {
  double sum = 0.0;
  for_waves(waves_, parts_.of(island), [&](std::size_t w) { sum += waves[w] * waves[w]; });
  return sum;
}

bool PassivityGuard::begin(const EnergyBook& book, const double* record, const double* a,
                           const double* b) {
  searches_.clear();
  alpha_ = 1.0;
  withheld_J_ = 0.0;
  uses_ = 0;
  trials_ = 0;
  for (int island = 0; island < parts_.count(); ++island) {
    if (!(book.prospect(island) < 0.0) || !book.overdraws(island, a, b)) continue;
    for_waves(waves_, parts_.of(island), [&](std::size_t w) { full_[w] = a[w]; });
    Search search;
    search.island = island;
    search.tank = book.tank(island);
    search.incident = std::sqrt(squares(island, a));
    const double value = psi(search, b);
    search.psi_previous = value;
    search.bound = 1.0 + 0.5 * value / search.incident;  // ψ' ≥ −2|â|
    if (affine_[static_cast<std::size_t>(island)] != 0) {
      search.closed_form = true;
      search.alpha = linear_scaling(search, book, record, b);
    } else {
      search.slope = -search.incident;  // as if S did not depend on α
      choose_next(search, value);
    }
    searching_[static_cast<std::size_t>(island)] = 1;
    searches_.push_back(search);
  }
  uses_ = static_cast<int>(searches_.size());
  return !searches_.empty();
}

/// g(α) = A₀ + A₁α + A₂α² with A₀ = T + ½|b⁰|², A₁ = b⁰ᵀDâ, A₂ = ½(|Dâ|² − |â|²).
double PassivityGuard::linear_scaling(const Search& search, const EnergyBook& book,
                                      const double* record, const double* b) {
  double still = 0.0, mixed = 0.0, moved = 0.0;
  for (const int part : parts_.of(search.island)) {
    const PartPlace& place = waves_.place(part);
    const BatchPlace& batch = waves_.batch(place.batch);
    const int ports = batch.batch->wave_size();
    if (ports == 0) continue;
    batch.batch->affine_offset(place.lane, record + batch.record, offset_.data());
    for (int j = 0; j < ports; ++j) {
      const double offset = offset_[static_cast<std::size_t>(j)];
      const double response = b[place.wave + j * place.stride] - offset;
      still += offset * offset;
      mixed += offset * response;
      moved += response * response;
    }
  }
  return largest_feasible_scaling(book.tank(search.island) + 0.5 * still, mixed,
                                  0.5 * (moved - search.incident * search.incident));
}

/// ψ(α) = √(|S(αâ)|² + 2T) − α|â| for b = S(αâ).
double PassivityGuard::psi(const Search& search, const double* b) const {
  const double square = squares(search.island, b) + 2.0 * search.tank;
  return std::sqrt(std::max(square, 0.0)) - search.alpha * search.incident;
}

/// Where the secant through the last point says, and a little further to the feasible side.
void PassivityGuard::choose_next(Search& search, double value) const {
  double root = search.alpha - value / search.slope;
  if (!std::isfinite(root)) root = search.bound;
  root = std::min(root, search.bound);
  double next = root - 0.5 * kExcess * (1.0 - root);
  // Where all of this is round-off, by ever longer steps.
  const double clear = std::ldexp(std::numeric_limits<double>::epsilon(), search.trials);
  next = std::min(next, search.infeasible - clear);
  const double lowest = std::max(search.best, 0.0);
  if (!(next > lowest)) next = 0.5 * (lowest + search.bound);
  search.alpha = std::clamp(next, 0.0, 1.0);
}

void PassivityGuard::propose(double* a) {
  for (const Search& search : searches_) {
    if (searching_[static_cast<std::size_t>(search.island)] == 0) continue;
    for_waves(waves_, parts_.of(search.island),
              [&](std::size_t w) { a[w] = search.alpha * full_[w]; });
  }
}

bool PassivityGuard::review(const EnergyBook& book, const double* a, const double* b) {
  bool all_settled = true;
  for (Search& search : searches_) {
    char& open = searching_[static_cast<std::size_t>(search.island)];
    if (open == 0) continue;
    ++trials_;
    const bool feasible = !book.overdraws(search.island, a, b);
    if (search.last || settle(search, feasible, psi(search, b))) {
      open = 0;
      alpha_ = std::min(alpha_, search.alpha);
      withheld_J_ += 0.5 * (1.0 - search.alpha * search.alpha) * search.incident * search.incident;
    } else {
      all_settled = false;
    }
  }
  return all_settled;
}

/// Takes in a trial. True when it stands; otherwise search.alpha is what to commit next.
bool PassivityGuard::settle(Search& search, bool feasible, double value) {
  ++search.trials;
  if (feasible && search.closed_form) return true;
  search.closed_form = false;  // round-off: a little less will do
  const double change = value - search.psi_previous;
  const double slope = change / (search.alpha - search.previous);
  search.previous = search.alpha;
  search.psi_previous = value;
  // −2|â| ≤ ψ' ≤ 0 where S is nonexpansive; a flat one must be more than what port solves leave.
  const bool seen = slope < -1e-3 * search.incident || std::abs(change) > 1e-10 * search.incident;
  const bool plausible = slope < 0.0 && slope >= -4.0 * search.incident && seen;
  search.slope = plausible ? slope : -search.incident;
  if (feasible) {
    search.best = std::max(search.best, search.alpha);
    const double root = std::min(search.alpha - value / search.slope, search.bound);
    if (root - search.alpha <= kExcess * (1.0 - search.alpha)) return true;
  } else {
    search.bound =
        std::min(search.bound, search.alpha + 0.5 * std::min(value, 0.0) / search.incident);
  }
  if (search.trials >= kMaxTrials) {
    if (search.best == search.alpha) return true;
    search.last = true;
    search.alpha =
        search.best >= 0.0
            ? search.best
            : std::min(1.0, std::sqrt(2.0 * std::max(search.tank, 0.0)) / search.incident);
    return false;
  }
  choose_next(search, value);
  return false;
}

void PassivityGuard::count() {
  if (uses_ == 0) return;
  ++statistics_.steps;
  statistics_.uses += uses_;
  statistics_.trials += trials_;
  statistics_.min_alpha = std::min(statistics_.min_alpha, alpha_);
  statistics_.withheld_J += withheld_J_;
}

std::size_t PassivityGuard::bytes() const {
  return full_.capacity() * sizeof(double) + parts_.bytes() + affine_.capacity() +
         searching_.capacity() + searches_.capacity() * sizeof(Search) +
         offset_.capacity() * sizeof(double);
}

}  // namespace portwave

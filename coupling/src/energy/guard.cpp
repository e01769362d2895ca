#include "portwave/coupling/energy/guard.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {
namespace {

/// How much more than needed may be withheld, as a share of 1 − α.
constexpr double kExcess = 0.02;

template <class Visit>
void for_waves_of_part(const WaveDiscretisation& waves, int part, const Visit& visit) {
  const PartSlot& slot = waves.slot(part);
  const int ports = waves.batch(slot.batch).batch->wave_size();
  for (int j = 0; j < ports; ++j) visit(static_cast<std::size_t>(slot.wave + j * slot.stride));
}

template <class Visit>
void for_waves(const WaveDiscretisation& waves, int island, const Visit& visit) {
  for (const int part : waves.reduction().parts_of(island)) for_waves_of_part(waves, part, visit);
}

}  // namespace

double largest_feasible_scaling(double A0, double A1, double A2) {
  if (!(A0 >= 0.0)) return 0.0;
  if (A0 + A1 + A2 >= 0.0) return 1.0;  // it is round-off that says otherwise
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
      parts_(waves.reduction()),
      affine_(static_cast<std::size_t>(parts_.island_count()), 1),
      searching_(affine_.size(), 0),
      full_(static_cast<std::size_t>(waves.wave_size()), 0.0),
      direction_(full_.size(), 0.0),
      exchanged_(full_.size(), 0.0) {
  searches_.reserve(affine_.size());
  uses_.reserve(affine_.size());
  const AlignedVector record(waves.record_size(), 0.0);
  std::size_t widest = 0;
  for (int island = 0; island < parts_.island_count(); ++island) {
    std::size_t ports_of_island = 0;
    for (const int part : parts_.parts_of(island)) {
      const PartSlot& slot = waves.slot(part);
      const BatchSlot& batch = waves.batch(slot.batch);
      const auto ports = static_cast<std::size_t>(batch.batch->wave_size());
      ports_of_island += ports;
      offset_.resize(std::max(offset_.size(), ports));
      matrix_.resize(std::max(matrix_.size(), ports * ports));
      if (ports == 0) continue;
      if (!batch.batch->affine_matrix(slot.lane, matrix_.data()) ||
          !batch.batch->affine_offset(slot.lane, record.data() + batch.record, offset_.data())) {
        affine_[static_cast<std::size_t>(island)] = 0;
      }
    }
    if (affine_[static_cast<std::size_t>(island)] != 0) widest = std::max(widest, ports_of_island);
  }
  weight_.resize(widest);
  reflection_.resize(widest);
}

double PassivityGuard::squares(int island, const double* waves) const {
  // Differences of such sums decide.
  const auto add = [&](long double& sum, int part) {
    for_waves_of_part(waves_, part, [&](std::size_t w) {
      sum += static_cast<long double>(waves[w]) * static_cast<long double>(waves[w]);
    });
  };
  return static_cast<double>(parts_.fold(island, 0.0L, add));
}

bool PassivityGuard::begin(const GuardedAccounts& ledger, const double* record,
                           const CommittedStep& step) {
  searches_.clear();
  std::fill(searching_.begin(), searching_.end(), 0);
  alpha_ = 1.0;
  withheld_J_ = 0.0;
  uses_.clear();
  trials_ = 0;
  record_ = record;
  has_exchanged_ = false;
  for (int island = 0; island < parts_.island_count(); ++island) {
    if (!ledger.overdraws(island, step)) continue;
    ledger.need_states();
    for_waves(waves_, island, [&](std::size_t w) { full_[w] = step.a[w]; });
    Search search;
    search.island = island;
    search.tank = ledger.tank(island);
    search.mismatch = ledger.mismatch(island);
    search.deficit = -(std::max(search.tank, 0.0) + search.mismatch);
    search.incident = std::sqrt(squares(island, step.a));
    if (!(search.incident > 0.0)) continue;  // there is nothing to change
    search.psi_full = psi(search, step.b);
    choose_path(search, step);
    searching_[static_cast<std::size_t>(island)] = 1;
    searches_.push_back(search);
  }
  return !searches_.empty();
}

void PassivityGuard::choose_path(Search& search, const CommittedStep& step) {
  // Where the tank is not short it is rounding of large waves that creates energy: smaller ones
  // will do.
  if (search.deficit > 0.0) {
    const bool affine = affine_[static_cast<std::size_t>(search.island)] != 0;
    if (affine && (find_gradient(search, step.b) || find_projection(search, step.b))) {
      search.path = Path::nearest;
      return;
    }
    if (!affine && find_onward(search, step.b)) {
      search.path = Path::onward;
      return;
    }
  }
  begin_scaling(search);
}

/// The direction ∇m = Dᵀb − â, and s with m(â) + s|∇m|² − ½s²(|∇m|² − |D∇m|²) = −T. False where no
/// s is enough, or it is a long way.
bool PassivityGuard::find_gradient(Search& search, const double* b) {
  struct Squares {
    long double own = 0.0L, image = 0.0L;
  };
  const auto add = [&](Squares& squares, int part) {
    const PartSlot& slot = waves_.slot(part);
    const StepBatch& batch = *waves_.batch(slot.batch).batch;
    const int ports = batch.wave_size();
    if (ports == 0) return;
    batch.affine_matrix(slot.lane, matrix_.data());
    const double* D = matrix_.data();
    for (int j = 0; j < ports; ++j) {
      double sum = 0.0;
      for (int i = 0; i < ports; ++i) sum += D[i * ports + j] * b[slot.wave + i * slot.stride];
      const auto w = static_cast<std::size_t>(slot.wave + j * slot.stride);
      direction_[w] = sum - full_[w];
      squares.own += static_cast<long double>(direction_[w]) * direction_[w];
    }
    for (int i = 0; i < ports; ++i) {
      long double sum = 0.0L;
      for (int j = 0; j < ports; ++j) {
        sum += static_cast<long double>(D[i * ports + j]) *
               direction_[static_cast<std::size_t>(slot.wave + j * slot.stride)];
      }
      squares.image += sum * sum;
    }
  };
  const auto [square, image] = parts_.fold(search.island, Squares{}, add);
  const long double deficit = search.deficit;
  const long double root = square * square - 2.0L * (square - image) * deficit;
  if (!(square > 0.0L) || !(root >= 0.0L)) return false;
  search.reach = static_cast<double>(2.0L * deficit / (square + std::sqrt(root)));
  search.length = static_cast<double>(std::sqrt(square));
  // On a long way the gradient may lead up to twice as far as need be.
  constexpr double kShort = 0.5;
  return search.reach * search.length <= kShort * search.incident;
}

/// The nearest a with T + m(a) ≥ 0: with M = I − DᵀD, part by part, a − â = μ(I + μM)⁻¹∇m, and μ
/// such that the sum over the eigenvectors of M, λ their eigenvalues and w those parts of ∇m,
///   Σ w² μ(1 + ½λμ)/(1 + λμ)²  is the deficit; it increases with μ.
bool PassivityGuard::find_projection(Search& search, const double* b) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  struct Block {
    const PartSlot* slot;
    Eigen::MatrixXd vectors;
  };
  std::vector<Block> blocks;
  std::size_t count = 0;
  for (const int part : parts_.parts_of(search.island)) {
    const PartSlot& slot = waves_.slot(part);
    const StepBatch& batch = *waves_.batch(slot.batch).batch;
    const int ports = batch.wave_size();
    if (ports == 0) continue;
    batch.affine_matrix(slot.lane, matrix_.data());
    const Eigen::Map<const Matrix> D(matrix_.data(), ports, ports);
    const Eigen::MatrixXd M = Eigen::MatrixXd::Identity(ports, ports) - D.transpose() * D;
    const SymmetricEigen eigen = symmetric_eigen(M);
    Eigen::VectorXd outgoing(ports), incident(ports);
    for (int j = 0; j < ports; ++j) {
      outgoing[j] = b[slot.wave + j * slot.stride];
      incident[j] = full_[static_cast<std::size_t>(slot.wave + j * slot.stride)];
    }
    const Eigen::VectorXd w = eigen.vectors.transpose() * (D.transpose() * outgoing - incident);
    for (int j = 0; j < ports; ++j, ++count) {
      weight_[count] = w[j];
      reflection_[count] = std::max(eigen.values[j], 0.0);
    }
    blocks.push_back({&slot, eigen.vectors});
  }
  const auto gain = [&](double mu) {
    double sum = 0.0;
    for (std::size_t k = 0; k < count; ++k) {
      const double scaled = 1.0 + reflection_[k] * mu;
      sum += weight_[k] * weight_[k] * (mu / scaled) * (0.5 + 0.5 / scaled);
    }
    return sum;
  };
  double low = 0.0, high = 1.0;
  for (int k = 0; !(gain(high) >= search.deficit); ++k) {
    if (k == 60) return false;
    low = high;
    high *= 4.0;
  }
  for (int k = 0; k < 60 && high - low > 1e-10 * high; ++k) {
    const double middle = 0.5 * (low + high);
    (gain(middle) >= search.deficit ? high : low) = middle;
  }
  double square = 0.0;
  std::size_t first = 0;
  for (const Block& block : blocks) {
    const Eigen::Index ports = block.vectors.rows();
    Eigen::VectorXd moved(ports);
    for (Eigen::Index j = 0; j < ports; ++j) {
      const std::size_t k = first + static_cast<std::size_t>(j);
      moved[j] = weight_[k] * (high / (1.0 + reflection_[k] * high));
    }
    first += static_cast<std::size_t>(ports);
    const Eigen::VectorXd change = block.vectors * moved;
    for (Eigen::Index j = 0; j < ports; ++j) {
      direction_[static_cast<std::size_t>(block.slot->wave +
                                          static_cast<int>(j) * block.slot->stride)] = change[j];
    }
    square += change.squaredNorm();
  }
  search.reach = 1.0;
  search.length = std::sqrt(square);
  return square > 0.0 && std::isfinite(square);
}

/// The direction P b − â, where that is short.
bool PassivityGuard::find_onward(Search& search, const double* b) {
  constexpr double kNearlyBalanced = 1e-3;
  if (!has_exchanged_) waves_.interconnection().exchange(b, exchanged_.data());
  has_exchanged_ = true;
  for_waves(waves_, search.island,
            [&](std::size_t w) { direction_[w] = exchanged_[w] - full_[w]; });
  search.length = std::sqrt(squares(search.island, direction_.data()));
  search.reach = 1.0;
  return search.length > 0.0 && search.length <= kNearlyBalanced * search.incident;
}

void PassivityGuard::begin_scaling(Search& search) {
  search.path = Path::scaling;
  search.psi_previous = search.psi_full;
  search.bound = 1.0 + 0.5 * std::min(search.psi_full, 0.0) / search.incident;  // ψ' ≥ −2|â|
  if (affine_[static_cast<std::size_t>(search.island)] != 0) {
    search.closed_form = true;
    search.alpha = linear_scaling(search);
  } else {
    search.slope = -search.incident;  // as if S did not depend on α
    choose_next(search, search.psi_full);
  }
}

/// g(α) = A₀ + A₁α + A₂α² with A₀ = T + ½|b⁰|², A₁ = b⁰ᵀDâ, A₂ = ½(|Dâ|² − |â|²).
double PassivityGuard::linear_scaling(const Search& search) {
  struct Terms {
    long double still = 0.0L, mixed = 0.0L, moved = 0.0L;
  };
  const auto add = [&](Terms& terms, int part) {
    const PartSlot& slot = waves_.slot(part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    const int ports = batch.batch->wave_size();
    if (ports == 0) return;
    batch.batch->affine_offset(slot.lane, record_ + batch.record, offset_.data());
    batch.batch->affine_matrix(slot.lane, matrix_.data());
    for (int i = 0; i < ports; ++i) {
      const long double offset = offset_[static_cast<std::size_t>(i)];
      long double response = 0.0L;
      for (int j = 0; j < ports; ++j) {
        response += static_cast<long double>(matrix_[static_cast<std::size_t>(i * ports + j)]) *
                    full_[static_cast<std::size_t>(slot.wave + j * slot.stride)];
      }
      terms.still += offset * offset;
      terms.mixed += offset * response;
      terms.moved += response * response;
    }
  };
  const auto [still, mixed, moved] = parts_.fold(search.island, Terms{}, add);
  const long double incident = search.incident;
  return largest_feasible_scaling(static_cast<double>(search.tank + 0.5L * still),
                                  static_cast<double>(mixed),
                                  static_cast<double>(0.5L * (moved - incident * incident)));
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
    for_waves(waves_, search.island, [&](std::size_t w) {
      a[w] = search.path == Path::scaling ? search.alpha * full_[w]
                                          : full_[w] + search.reach * direction_[w];
    });
  }
}

bool PassivityGuard::review(const GuardedAccounts& ledger, const CommittedStep& step) {
  bool all_settled = true;
  for (Search& search : searches_) {
    char& open = searching_[static_cast<std::size_t>(search.island)];
    if (open == 0) continue;
    ++trials_;
    const bool feasible = !ledger.overdraws(search.island, step);
    const double before = search.deficit;
    search.deficit = -(std::max(search.tank, 0.0) + ledger.mismatch(search.island));
    const bool settled = search.path == Path::scaling
                             ? search.last || settle_scaling(search, feasible, psi(search, step.b))
                             : feasible || !try_further(search, before);
    if (settled) {
      open = 0;
      note_use(ledger, search);
    } else {
      all_settled = false;
    }
  }
  return all_settled;
}

/// After an infeasible commit on one of the first two paths: chooses the next. Always true: there
/// is one.
bool PassivityGuard::try_further(Search& search, double deficit_before) {
  ++search.attempts;
  if (search.path == Path::nearest && search.attempts < 3) {
    // What is missing is rounding, or of its size.
    search.reach *= 1.0 + std::clamp(2.0 * search.deficit / deficit_before, 1e-3, 1.0);
    return true;
  }
  if (search.path == Path::onward && search.attempts < 2 && search.deficit < deficit_before) {
    constexpr double kExcessive = 1.05;
    const double root = kExcessive * deficit_before / (deficit_before - search.deficit);
    if (root <= kFarthest) {
      search.reach = root;
      return true;
    }
  }
  begin_scaling(search);
  return true;
}

void PassivityGuard::note_use(const GuardedAccounts& ledger, const Search& search) {
  const double alpha = search.path == Path::scaling
                           ? search.alpha
                           : std::max(1.0 - search.reach * search.length / search.incident, 0.0);
  const double withheld = std::max(ledger.mismatch(search.island) - search.mismatch, 0.0);
  uses_.push_back({search.island, alpha, withheld});
  alpha_ = std::min(alpha_, alpha);
  withheld_J_ += withheld;
}

/// Takes in a trial. True when it stands; otherwise search.alpha is what to commit next.
bool PassivityGuard::settle_scaling(Search& search, bool feasible, double value) {
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
    search.infeasible = std::min(search.infeasible, search.alpha);
    search.bound =
        std::min(search.bound, search.alpha + 0.5 * std::min(value, 0.0) / search.incident);
  }
  if (search.trials >= kMaxTrials) {
    if (search.best == search.alpha) return true;
    choose_last(search);
  } else if (!feasible && value > 1e-10 * search.incident) {
    search.alpha *= 0.1;  // not the tank but rounding of these waves is what creates energy
  } else {
    choose_next(search, value);
  }
  return false;
}

/// The best that was feasible, or what needs no trial.
void PassivityGuard::choose_last(Search& search) const {
  search.last = true;
  search.alpha = search.best >= 0.0
                     ? search.best
                     : std::min(1.0, std::sqrt(2.0 * std::max(search.tank, 0.0)) / search.incident);
}

bool PassivityGuard::reject(int island) {
  for (Search& search : searches_) {
    if (search.island != island || searching_[static_cast<std::size_t>(island)] == 0) continue;
    if (search.path == Path::scaling && search.last) return false;
    ++trials_;
    if (search.path != Path::scaling) {
      begin_scaling(search);
      return true;
    }
    ++search.trials;
    search.closed_form = false;
    search.infeasible = std::min(search.infeasible, search.alpha);
    search.bound = std::min(search.bound, search.alpha);
    if (search.trials >= kMaxTrials) {
      choose_last(search);
    } else {
      search.alpha = 0.5 * (std::max(search.best, 0.0) + search.bound);
    }
    return true;
  }
  return false;
}

void PassivityGuard::count() {
  if (uses_.empty()) return;
  ++statistics_.steps;
  statistics_.uses += static_cast<std::int64_t>(uses_.size());
  statistics_.trials += trials_;
  statistics_.min_alpha = std::min(statistics_.min_alpha, alpha_);
  statistics_.withheld_J += withheld_J_;
}

void PassivityGuard::archive(StateArchive& archive) {
  archive.vector(uses_);
  archive.values(alpha_, withheld_J_, trials_, statistics_);
}

std::size_t PassivityGuard::bytes() const {
  return (full_.capacity() + direction_.capacity() + exchanged_.capacity() + matrix_.capacity() +
          weight_.capacity() + reflection_.capacity()) *
             sizeof(double) +
         affine_.capacity() + searching_.capacity() + searches_.capacity() * sizeof(Search) +
         uses_.capacity() * sizeof(GuardUse) + offset_.capacity() * sizeof(double);
}

}  // namespace portwave

#include "portwave/coupling/energy/guard.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "energy/account_limits.hpp"
#include "energy/part_gradient.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {
namespace {

/// Without a tolerance: largest gap, in units of the waves, of a commit that counts as having met it.
constexpr double kAsGoodAsMet = 1e-10;

/// Share of the energy available.
constexpr double kNotWorthATrial = 1e-12;
/// Where time is short, a deficit of such a share is not examined for rounding, which takes longer than a commit.
constexpr double kNoRounding = 1e-9;

double deficit_of(const GuardedAccounts& ledger, int island) {
  return -(std::max(ledger.tank(island), 0.0) + ledger.mismatch(island));
}

bool overdraws(const GuardedAccounts& ledger, int island, const CommittedStep& step,
               bool is_hurried) {
  const bool is_clear =
      is_hurried && deficit_of(ledger, island) > kNoRounding * ledger.energies(island);
  return is_clear || ledger.overdraws(island, step);
}

template <class Visit>
void for_waves_of_part(const WaveDiscretisation& waves, int part, const Visit& visit) {
  const PartSlot& slot = waves.slot(part);
  const int ports = waves.batch(slot.batch).batch->wave_size();
  for (int j = 0; j < ports; ++j) visit(static_cast<std::size_t>(slot.wave + j * slot.stride));
}

}  // namespace

PassivityGuard::PassivityGuard(const WaveDiscretisation& waves, SlicesTogether* slices)
    : waves_(waves),
      parts_(waves.reduction()),
      slices_(slices),
      sums_(waves.system(), parts_, static_cast<std::size_t>(parts_.island_count()), slices),
      loop_(parts_),
      affine_(static_cast<std::size_t>(parts_.island_count()), 1),
      searching_(affine_.size(), 0),
      full_(static_cast<std::size_t>(waves.wave_size()), 0.0),
      direction_(full_.size(), 0.0),
      exchanged_(full_.size(), 0.0) {
  searches_.reserve(affine_.size());
  uses_.reserve(affine_.size());
  tolerated_.reserve(affine_.size());
  asked_.reserve(affine_.size());
  find_affine();
}

/// The islands of linear parts only, and room for the widest of them.
void PassivityGuard::find_affine() {
  std::vector<std::size_t> ports_of_island(affine_.size(), 0);
  for (int island = 0; island < parts_.island_count(); ++island) asked_.push_back(island);
  sums_.find_in_order(asked_, [&](ExtendedSums::Terms& others, int part) {
    const PartSlot& slot = waves_.slot(part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    const auto ports = static_cast<std::size_t>(batch.batch->wave_size());
    ports_of_island[static_cast<std::size_t>(waves_.system().island_of_part(part))] += ports;
    matrix_.resize(std::max(matrix_.size(), ports * ports));
    if (ports > 0 && batch.affine == nullptr) others[0] += 1.0L;
  });
  std::size_t widest = 0;
  for (std::size_t island = 0; island < affine_.size(); ++island) {
    affine_[island] = sums_.of(island)[0] > 0.0L ? 0 : 1;
    if (affine_[island] != 0) widest = std::max(widest, ports_of_island[island]);
  }
  weight_.resize(widest);
  reflection_.resize(widest);
}

/// visit(wave) for the waves of an island, several at once.
template <class Visit>
void PassivityGuard::for_waves(int island, const Visit& visit) {
  loop_.visit_chunks(std::span(&island, 1), [&](std::size_t /*k*/, int chunk) {
    for (const int part : parts_.parts_of_chunk(chunk)) for_waves_of_part(waves_, part, visit);
  });
}

int PassivityGuard::island_of(int part) const {
  const System& system = waves_.system();
  if (slices_ == nullptr) return system.island_of_part(part);
  int own = -1;
  for (int i = 0; i < parts_.part_count(); ++i) {
    if (slices_->number_of(i) == part) own = system.island_of_part(i);
  }
  return std::ranges::max(slices_->gathered(own));
}

void PassivityGuard::add_squares(long double& sum, int part, const double* waves) const {
  // Differences of such sums decide the outcome.
  for_waves_of_part(waves_, part, [&](std::size_t w) {
    sum += static_cast<long double>(waves[w]) * static_cast<long double>(waves[w]);
  });
}

/// Sums over the islands of the searches that are wanted, in their order.
template <class Wanted, class Add>
void PassivityGuard::find_sums(const Wanted& wanted, const Add& add) {
  ask_for(wanted);
  if (!asked_.empty()) sums_.find(asked_, add);
}

template <class Wanted>
void PassivityGuard::ask_for(const Wanted& wanted) {
  asked_.clear();
  for (const Search& search : searches_) {
    if (wanted(search)) asked_.push_back(search.island);
  }
}

bool PassivityGuard::begin(const GuardedAccounts& ledger, const double* record,
                           const CommittedStep& step, std::span<const double> gap_J) {
  const bool is_hurried = is_hurried_;
  forget();
  record_ = record;
  ledger.prepare(step);
  for (int island = 0; island < parts_.island_count(); ++island) {
    if (!overdraws(ledger, island, step, is_hurried)) continue;
    ledger.need_states();
    for_waves(island, [&](std::size_t w) { full_[w] = step.a[w]; });
    Search search;
    search.island = island;
    search.tank = ledger.tank(island);
    search.mismatch = ledger.mismatch(island);
    search.deficit = -(std::max(search.tank, 0.0) + search.mismatch);
    search.paid = ledger.energies(island);
    if (!gap_J.empty()) search.gap = gap_J[static_cast<std::size_t>(island)];
    if (search.gap > 0.0) search.gap = std::sqrt(2.0 * search.gap);
    searches_.push_back(search);
  }
  if (searches_.empty()) return false;
  is_hurried_ = is_hurried;
  begin_searches(step, ledger);
  find_gaps(step);
  choose_paths(step, ledger);
  for (const Search& search : searches_) searching_[static_cast<std::size_t>(search.island)] = 1;
  return !searches_.empty();
}

void PassivityGuard::begin_searches(const CommittedStep& step, const GuardedAccounts& ledger) {
  find_sums([](const Search&) { return true; },
            [&](ExtendedSums::Terms& squares, int part) {
              add_squares(squares[0], part, step.a);
              add_squares(squares[1], part, step.b);
            });
  for (std::size_t i = 0; i < searches_.size(); ++i) {
    Search& search = searches_[i];
    const auto [incident, outgoing, unused] = sums_.of(i);
    search.incident = std::sqrt(static_cast<double>(incident));
    search.psi_full = psi(search, static_cast<double>(outgoing));
    if (ledger.is_too_loud(search.island, step)) {
      // With the emission of its sources, if that has been examined only now.
      search.most =
          std::min(1.0, std::sqrt(2.0 * ledger.energies(search.island)) / search.incident);
    }
  }
  // Without incident waves there is nothing to change.
  std::erase_if(searches_, [](const Search& search) { return !(search.incident > 0.0); });
}

void PassivityGuard::exchange(const double* b) {
  if (has_exchanged_) return;
  waves_.interconnection().exchange(b, exchanged_.data());
  has_exchanged_ = true;
}

/// The gap of a commit that was not judged is |P b − â|, if that is small. It is unknown if no process has
/// all of b.
void PassivityGuard::find_gaps(const CommittedStep& step) {
  const auto wanted = [](const Search& search) { return search.gap == kNotJudged; };
  if (slices_ != nullptr || std::ranges::none_of(searches_, wanted)) return;
  exchange(step.b);
  find_sums(wanted, [&](ExtendedSums::Terms& squares, int part) {
    for_waves_of_part(waves_, part, [&](std::size_t w) {
      const long double gap = exchanged_[w] - full_[w];
      squares[0] += gap * gap;
    });
  });
  std::size_t i = 0;
  for (Search& search : searches_) {
    if (!wanted(search)) continue;
    const double gap = std::sqrt(static_cast<double>(sums_.of(i++)[0]));
    if (gap <= kAsGoodAsMet * search.incident) search.gap = gap;
  }
}

void PassivityGuard::choose_paths(const CommittedStep& step, const GuardedAccounts& ledger) {
  // Large waves that agree are required by the interface, and their rounding is reported.
  std::erase_if(searches_, [](const Search& search) {
    return search.is_met() && search.most < 1.0 && !(search.deficit > 0.0);
  });
  for (Search& search : searches_) {
    // Such a deficit is more than a tolerance leaves.
    if (search.deficit > search.explained()) search.gap = kMissed;
    // Along a nonlinear S one moves by trial. Such a deficit is not worth one.
    if (search.is_met() && !is_affine(search) && search.deficit <= kNotWorthATrial * search.paid &&
        tolerate(ledger, step, search)) {
      search.path = Path::stays;
    }
  }
  find_gradients(step.b);
  find_onward(step.b);
  for (Search& search : searches_) {
    if (search.path != Path::none) continue;
    if (search.is_met()) {
      if (tolerate(ledger, step, search)) {
        search.path = Path::stays;
        continue;
      }
      search.gap = kMissed;
    }
    const bool is_linear = search.deficit > 0.0 && search.most == 1.0 && is_affine(search);
    if (is_linear && find_projection(search, step.b)) {
      search.path = Path::nearest;
    } else {
      // If the tank is not short, rounding of large waves creates the energy: smaller waves
      // will do.
      begin_scaling(search);
    }
  }
  std::erase_if(searches_, [](const Search& search) { return search.path == Path::stays; });
}

/// Keeps the waves, and has the account take the deficit, if it still can.
bool PassivityGuard::tolerate(const GuardedAccounts& ledger, const CommittedStep& step,
                              const Search& search) {
  if (!ledger.takes(search.island, search.deficit, step)) return false;
  tolerated_.push_back({search.island, search.deficit});
  return true;
}

/// Whether waves may be moved that far: at most `most` if they did not meet their tolerance.
bool PassivityGuard::may_go(const Search& search, double way, double most) const {
  return search.most == 1.0 && way <= (search.is_met() ? search.leeway() : most);
}

/// The direction of parts, with its |∇m|² and |D∇m|².
void PassivityGuard::add_gradients(ExtendedSums::Terms& squares, std::span<const int> parts,
                                   const double* b) {
  GuardPortMap map;
  Gradient found;
  for (const int part : parts) {
    const PartSlot& slot = waves_.slot(part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    const int ports = batch.batch->wave_size();
    if (ports == 0) continue;
    map.fit(ports);
    batch.affine->affine_matrix(slot.lane, map.matrix());
    const auto w = static_cast<std::size_t>(slot.wave);
    const PortsOfPart own{ports, slot.stride,      map.matrix(),
                          b + w, full_.data() + w, direction_.data() + w};
    ports == 2 ? add_gradient<2>(own, found) : add_gradient<0>(own, found);
  }
  squares[0] += found.square;
  squares[1] += found.image;
}

/// For linear parts, the direction ∇m = Dᵀb − â, and whether it leads far enough.
void PassivityGuard::find_gradients(const double* b) {
  const auto wanted = [this](const Search& search) {
    return search.deficit > 0.0 && is_affine(search);
  };
  ask_for(wanted);
  if (asked_.empty()) return;
  sums_.find_chunks(asked_, [&](ExtendedSums::Terms& squares, std::span<const int> parts) {
    add_gradients(squares, parts, b);
  });
  std::size_t i = 0;
  for (Search& search : searches_) {
    if (!wanted(search)) continue;
    const auto [own, image, unused] = sums_.of(i++);
    if (leads_far_enough(search, own, image)) search.path = Path::nearest;
  }
}

/// s with m(â) + s|∇m|² − ½s²(|∇m|² − |D∇m|²) = −T. False if no s suffices, or if it is a long way.
bool PassivityGuard::leads_far_enough(Search& search, long double square, long double image) const {
  const long double deficit = search.deficit;
  const long double root = square * square - 2.0L * (square - image) * deficit;
  if (!(square > 0.0L) || !(root >= 0.0L)) return false;
  search.reach = static_cast<double>(2.0L * deficit / (square + std::sqrt(root)));
  search.length = static_cast<double>(std::sqrt(square));
  // On a long way the gradient may lead up to twice as far as necessary.
  constexpr double kShort = 0.5;
  return may_go(search, search.reach * search.length, kShort * search.incident);
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
    const BatchSlot& batch = waves_.batch(slot.batch);
    const int ports = batch.batch->wave_size();
    if (ports == 0) continue;
    batch.affine->affine_matrix(slot.lane, matrix_.data());
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
  // The parts are asked for in the order of the blocks.
  std::size_t next = 0;
  const auto next_waves = [&](int part) {
    const std::size_t first = next;
    next += static_cast<std::size_t>(waves_.batch(waves_.slot(part).batch).batch->wave_size());
    return std::pair(first, next);
  };
  const auto gain = [&](double mu) {
    next = 0;
    const ExtendedSums::Terms& sums =
        sums_.find_in_order(search.island, [&](ExtendedSums::Terms& sum, int part) {
          const auto [first, last] = next_waves(part);
          for (std::size_t k = first; k < last; ++k) {
            const double scaled = 1.0 + reflection_[k] * mu;
            const double own = weight_[k] * weight_[k] * (mu / scaled) * (0.5 + 0.5 / scaled);
            sum[0] = static_cast<double>(sum[0]) + own;
          }
        });
    return static_cast<double>(sums[0]);
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
  std::size_t block = 0;
  next = 0;
  const auto move = [&](ExtendedSums::Terms& sum, int part) {
    const auto [first, last] = next_waves(part);
    if (first == last) return;
    const Block& own = blocks[block++];
    Eigen::VectorXd moved(own.vectors.rows());
    for (std::size_t k = first; k < last; ++k) {
      moved[static_cast<Eigen::Index>(k - first)] =
          weight_[k] * (high / (1.0 + reflection_[k] * high));
    }
    const Eigen::VectorXd change = own.vectors * moved;
    for (Eigen::Index j = 0; j < change.size(); ++j) {
      direction_[static_cast<std::size_t>(own.slot->wave +
                                          static_cast<int>(j) * own.slot->stride)] = change[j];
    }
    sum[0] = static_cast<double>(sum[0]) + change.squaredNorm();
  };
  const auto square = static_cast<double>(sums_.find_in_order(search.island, move)[0]);
  search.reach = 1.0;
  search.length = std::sqrt(square);
  return square > 0.0 && std::isfinite(square);
}

/// For other parts, the direction P b − â, if it is short.
void PassivityGuard::find_onward(const double* b) {
  constexpr double kNearlyBalanced = 1e-3;
  const auto wanted = [this](const Search& search) {
    return search.deficit > 0.0 && search.path == Path::none && !is_affine(search);
  };
  if (std::ranges::any_of(searches_, wanted)) exchange(b);
  find_sums(wanted, [&](ExtendedSums::Terms& squares, int part) {
    for_waves_of_part(waves_, part,
                      [&](std::size_t w) { direction_[w] = exchanged_[w] - full_[w]; });
    add_squares(squares[0], part, direction_.data());
  });
  std::size_t i = 0;
  for (Search& search : searches_) {
    if (!wanted(search)) continue;
    search.length = std::sqrt(static_cast<double>(sums_.of(i++)[0]));
    search.reach = 1.0;
    if (search.length > 0.0 && may_go(search, search.length, kNearlyBalanced * search.incident)) {
      search.path = Path::onward;
    }
  }
}

/// g(α) = A₀ + A₁α + A₂α² with A₀ = T + ½|b⁰|², A₁ = b⁰ᵀDâ, A₂ = ½(|Dâ|² − |â|²).
double PassivityGuard::linear_scaling(const Search& search) {
  const auto add = [&](ExtendedSums::Terms& terms, int part, GuardPortMap& map) {
    const PartSlot& slot = waves_.slot(part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    const int ports = batch.batch->wave_size();
    if (ports == 0) return;
    auto& [still, mixed, moved] = terms;
    map.fit(ports);
    batch.affine->affine_offset(slot.lane, record_ + batch.record, map.offset());
    batch.affine->affine_matrix(slot.lane, map.matrix());
    for (int i = 0; i < ports; ++i) {
      const long double offset = map.offset()[i];
      long double response = 0.0L;
      for (int j = 0; j < ports; ++j) {
        response += static_cast<long double>(map.matrix()[i * ports + j]) *
                    full_[static_cast<std::size_t>(slot.wave + j * slot.stride)];
      }
      still += offset * offset;
      mixed += offset * response;
      moved += response * response;
    }
  };
  sums_.find_chunks(std::span(&search.island, 1),
                    [&](ExtendedSums::Terms& terms, std::span<const int> parts) {
                      GuardPortMap map;
                      for (const int part : parts) add(terms, part, map);
                    });
  const auto [still, mixed, moved] = sums_.of(0);
  const long double incident = search.incident;
  return largest_feasible_scaling(static_cast<double>(search.tank + 0.5L * still),
                                  static_cast<double>(mixed),
                                  static_cast<double>(0.5L * (moved - incident * incident)));
}

void PassivityGuard::propose(double* a) {
  for (const Search& search : searches_) {
    if (searching_[static_cast<std::size_t>(search.island)] == 0) continue;
    for_waves(search.island, [&](std::size_t w) {
      a[w] = search.path == Path::scaling ? search.alpha * full_[w]
                                          : full_[w] + search.reach * direction_[w];
    });
  }
}

bool PassivityGuard::review(const GuardedAccounts& ledger, const CommittedStep& step) {
  ledger.prepare(step);
  const auto is_open = [this](const Search& search) {
    return searching_[static_cast<std::size_t>(search.island)] != 0;
  };
  const auto is_scaled = [&](const Search& search) {
    return is_open(search) && search.path == Path::scaling && !search.last;
  };
  find_sums(is_scaled,
            [&](ExtendedSums::Terms& squares, int part) { add_squares(squares[0], part, step.b); });
  std::size_t i = 0;
  for (Search& search : searches_) {
    if (is_scaled(search)) search.square = static_cast<double>(sums_.of(i++)[0]);
  }
  bool all_settled = true;
  for (Search& search : searches_) {
    if (!is_open(search)) continue;
    ++trials_;
    const bool feasible = !overdraws(ledger, search.island, step, is_hurried_);
    const double before = search.deficit;
    search.deficit = -(std::max(search.tank, 0.0) + ledger.mismatch(search.island));
    const double alpha = search.alpha;
    bool settled = false;
    if (search.path != Path::scaling) {
      settled = feasible || !try_further(search, before, ledger, step);
    } else {
      settled = search.last || (is_hurried_ && feasible) ||
                settle_scaling(search, feasible, psi(search, search.square));
    }
    if (is_hurried_ && !settled) shorten(search, alpha);
    if (settled) {
      searching_[static_cast<std::size_t>(search.island)] = 0;
      note_use(ledger, search);
    } else {
      all_settled = false;
    }
  }
  if (all_settled) is_hurried_ = false;
  return all_settled;
}

/// After an infeasible commit on one of the first two paths: chooses the next. False if this one stands,
/// since the remaining deficit is tolerated.
bool PassivityGuard::try_further(Search& search, double deficit_before,
                                 const GuardedAccounts& ledger, const CommittedStep& step) {
  ++search.attempts;
  if (search.path == Path::nearest && search.attempts < 3) {
    // The remaining deficit is rounding, or of its size.
    const double further = 1.0 + std::clamp(2.0 * search.deficit / deficit_before, 1e-3, 1.0);
    if (may_go(search, further * search.reach * search.length, search.incident)) {
      search.reach *= further;
      return true;
    }
  }
  if (search.path == Path::onward && search.attempts < 2 && search.deficit < deficit_before) {
    constexpr double kExcessive = 1.05;
    const double root = kExcessive * deficit_before / (deficit_before - search.deficit);
    if (root <= kFarthest && may_go(search, root * search.length, root * search.length)) {
      search.reach = root;
      return true;
    }
  }
  if (search.is_met()) {
    if (search.deficit <= search.explained() && tolerate(ledger, step, search)) return false;
    search.gap = kMissed;
  }
  begin_scaling(search);
  return true;
}

void PassivityGuard::note_use(const GuardedAccounts& ledger, const Search& search) {
  const double alpha = search.path == Path::scaling
                           ? search.alpha
                           : std::max(1.0 - search.reach * search.length / search.incident, 0.0);
  const double withheld = std::max(ledger.mismatch(search.island) - search.mismatch, 0.0);
  const double there = ledger.stored(search.island) + ledger.supplied(search.island);
  const bool is_known = withheld > kUnderflow_J;
  const bool is_miss =
      !search.is_met() && is_known &&
      (1.0 - alpha > GuardUse::kHarmlessChange || withheld > GuardUse::kHarmlessEnergy * there);
  uses_.push_back({search.island, alpha, withheld, is_miss});
  alpha_ = std::min(alpha_, alpha);
  withheld_J_ += withheld;
}

bool PassivityGuard::reject(int island) {
  for (Search& search : searches_) {
    if (search.island != island || searching_[static_cast<std::size_t>(island)] == 0) continue;
    if (search.path == Path::scaling && search.last) return false;
    ++trials_;
    if (search.path != Path::scaling) {
      search.gap = kMissed;
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

void PassivityGuard::count(std::int64_t step) {
  if (uses_.empty()) return;
  ++statistics_.steps;
  statistics_.trials += trials_;
  statistics_.withheld_J += withheld_J_;
  for (const GuardUse& use : uses_) statistics_.take(use, step);
}

void PassivityGuard::forget() {
  searches_.clear();
  tolerated_.clear();
  std::fill(searching_.begin(), searching_.end(), 0);
  alpha_ = 1.0;
  withheld_J_ = 0.0;
  uses_.clear();
  trials_ = 0;
  has_exchanged_ = false;
  is_hurried_ = false;
}

void PassivityGuard::archive(StateArchive& archive) {
  archive.vector(uses_);
  archive.vector(tolerated_);
  archive.values(alpha_, withheld_J_, trials_, statistics_);
}

std::size_t PassivityGuard::bytes() const {
  return (full_.capacity() + direction_.capacity() + exchanged_.capacity() + matrix_.capacity() +
          weight_.capacity() + reflection_.capacity()) *
             sizeof(double) +
         affine_.capacity() + searching_.capacity() + searches_.capacity() * sizeof(Search) +
         uses_.capacity() * sizeof(GuardUse) + tolerated_.capacity() * sizeof(ToleratedDeficit) +
         asked_.capacity() * sizeof(int) + sums_.bytes() + loop_.bytes();
}

}  // namespace portwave

#include "network/explicit/kick_drift/kick_drift_model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "network/explicit/shared_rows.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {
namespace kick_drift_model {

constexpr int kPositionRows = 2048;  ///< of a block of positions

/// The largest |eigenvalue| of a matrix, from a fixed start.
double spectral_radius(const RowMatrix& m) {
  constexpr int kIterations = 20;
  if (m.rows() == 0 || m.nonZeros() == 0) return 0.0;
  Eigen::VectorXd x(m.rows());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    x[i] = 0.5 + std::fmod(0.618033988749895 * static_cast<double>(i + 1), 1.0);
    if (i % 2 == 1) x[i] = -x[i];
  }
  double size = 0.0;
  for (int k = 0; k < kIterations; ++k) {
    const double norm = x.norm();
    if (!(norm > 0.0) || !std::isfinite(norm)) return size;
    x = m * (x / norm);
    size = x.norm();
  }
  return size;
}

RowMatrix row_matrix(int rows, int columns, const SparseEntries& entries) {
  RowMatrix out(rows, columns);
  out.setFromTriplets(entries.begin(), entries.end());
  return out;
}

/// Where a row does not follow the one before it, with rows and columns at their places.
std::vector<int> run_starts(const RowMatrix& m, const std::vector<int>& place) {
  std::vector<int> starts;
  std::vector<int> before, own;
  for (int i = 0; i < m.outerSize(); ++i) {
    own.clear();
    for (RowMatrix::InnerIterator it(m, i); it; ++it) {
      own.push_back(place[at(static_cast<int>(it.col()))] - place[at(i)]);
    }
    if (i == 0 || place[at(i)] != place[at(i - 1)] + 1 || own != before) starts.push_back(i);
    before.swap(own);
  }
  return starts;
}

void append(const RowMatrix& m, int column, SparseEntries& entries) {
  for (int i = 0; i < m.outerSize(); ++i) {
    for (RowMatrix::InnerIterator it(m, i); it; ++it) {
      entries.emplace_back(i, column + static_cast<int>(it.col()), it.value());
    }
  }
}

}  // namespace kick_drift_model
}  // namespace

using kick_drift_model::row_matrix;

KickDriftModel::KickDriftModel(const SeparableNetwork& network_, const std::vector<int>& states,
                               int order, double step_s, std::vector<int>& row_numbers)
    : network(network_), row_of(&row_numbers) {
  order_states(states);
  leave_gaps();
  const int np = momenta(), nq = positions(), nd = decays();
  W = picked(network.hessian, SeparableKind::momentum, momentum.size(), momentum);
  mass.assign(at(np), 0.0);
  for (int i = 0; i < np; ++i) {
    for (RowMatrix::InnerIterator it(W, i); it; ++it) {
      if (it.col() == i) mass[at(i)] = it.value();
      if (it.col() != i) has_diagonal_mass = false;
    }
  }
  damping = picked(network.R, SeparableKind::momentum, momentum.size(), momentum) * W;
  damping.prune(0.0);
  for (const int state : decaying) {
    decay_stiffness.push_back(network.hessian.coeff(state, state));
    decay_rate.push_back(network.R.coeff(state, state) * decay_stiffness.back());
    const double at_rest = network.constant[at(state)];
    decay_shift.push_back(at_rest != 0.0 ? at_rest / decay_stiffness.back() : 0.0);
  }
  find_damping(order, step_s);
  fill_gaps();

  const RowMatrix A_qp = picked(network.A, SeparableKind::position, position.size(), momentum),
                  A_pq = picked(network.A, SeparableKind::momentum, momentum.size(), position),
                  A_dp = picked(network.A, SeparableKind::decaying, decaying.size(), momentum),
                  A_pd = picked(network.A, SeparableKind::momentum, momentum.size(), decaying);
  V = picked(network.hessian, SeparableKind::position, position.size(), position);
  stiffness.assign(at(nq), 0.0);
  for (int i = 0; i < nq; ++i) {
    for (RowMatrix::InnerIterator it(V, i); it; ++it) {
      if (it.col() == i) stiffness[at(i)] = it.value();
      if (it.col() != i) has_diagonal_stiffness = false;
    }
    const int state = position[at(i)];
    constant.push_back(network.constant[at(state)]);
    position_cubic.push_back(network.cubic[at(state)]);
    has_constant = has_constant || constant.back() != 0.0;
    has_position_cubic = has_position_cubic || position_cubic.back() != 0.0;
  }
  if (!has_diagonal_stiffness) {
    RowMatrix tied = V;
    tied.prune([](Eigen::Index i, Eigen::Index j, double) { return i != j; });
    tied_stiffness = StrokeMap(tied);
  }
  constant_force.assign(at(np), 0.0);
  for (int i = 0; i < np; ++i) {
    for (RowMatrix::InnerIterator it(A_pq, i); it; ++it) {
      constant_force[at(i)] += it.value() * constant[at(static_cast<int>(it.col()))];
    }
  }
  for (const int state : dead.states) {
    dead.stiffness.push_back(network.hessian.coeff(state, state));
    dead.rate.push_back(network.R.coeff(state, state) * dead.stiffness.back());
  }
  find_inputs();

  SparseEntries k_entries;
  kick_drift_model::append(RowMatrix(A_qp * W), 0, k_entries);
  for (int f = 0; f < static_cast<int>(flows.size()); ++f) {
    for (SparseMatrix::InnerIterator it(network.B, inputs[at(flows[at(f)])]); it; ++it) {
      const auto state = static_cast<int>(it.row());
      if (network.kind[at(state)] != SeparableKind::position || !is_own(state)) continue;
      k_entries.emplace_back((*row_of)[at(state)], np + f, it.value());
    }
  }
  K = row_matrix(nq, strokes(), k_entries);
  K.prune(0.0);
  const RowMatrix force_of_position = A_pq * V;
  SparseEntries s_entries;
  kick_drift_model::append(RowMatrix(force_of_position * K), 0, s_entries);
  RowMatrix decay_force = A_pd;
  for (int i = 0; i < np; ++i) {
    for (RowMatrix::InnerIterator it(decay_force, i); it; ++it) {
      it.valueRef() *= decay_stiffness[at(static_cast<int>(it.col()))];
    }
  }
  kick_drift_model::append(decay_force, strokes(), s_entries);
  const RowMatrix S = row_matrix(np, strokes() + nd, s_entries);
  find_blocks(S);
  find_bent(A_pq);
  std::vector<char> damped(at(np), 0);
  for (int i = 0; i < np; ++i) damped[at(i)] = lumped ? shared[at(i)] : 0;
  force = StrokeMap(
      S, damping,
      {.real = is_real, .damped = damped, .cubic = cubic, .blocks = blocks, .has_room = has_gaps});
  find_mixed(S);
  of_positions = StrokeMap::of_rows(force_of_position, is_real, blocks, has_gaps);
  of_decaying = StrokeMap::of_rows(decay_force, is_real, blocks);
  position_blocks = {0};
  if (blocks.size() > 1) position_blocks = SharedRows::cut(nq, kick_drift_model::kPositionRows);
  positions_of_strokes = StrokeMap::of_rows(K, std::vector<char>(at(nq), 1), position_blocks);
  std::vector<char> dampers = shared;
  for (int i = 0; i < np; ++i) dampers[at(i)] = dampers[at(i)] != 0 && is_real[at(i)] != 0 ? 1 : 0;
  damping_map = StrokeMap::of_rows(damping, dampers, blocks, has_gaps);
  damping_map.mark_even({mass});
  positions_of_strokes.mark_even({stiffness, constant, position_cubic});
  decay_of_momenta = A_dp * W;
  find_rates(A_pq);
}

std::size_t KickDriftModel::bytes() const {
  std::size_t sum = 0;
  for (const StrokeMap* own :
       {&force, &mixed, &of_positions, &of_decaying, &base, &positions_of_strokes, &tied_stiffness,
        &bent_of_strokes, &force_of_bent, &damping_map}) {
    sum += own->bytes();
  }
  for (const RowMatrix* own : {&W, &damping, &K, &V, &decay_of_momenta}) {
    sum += static_cast<std::size_t>(own->nonZeros()) * (sizeof(double) + sizeof(int)) +
           static_cast<std::size_t>(own->outerSize()) * sizeof(int);
  }
  const std::size_t numbers = mass.size() + cubic.size() + own_damping.size() +
                              constant_force.size() + stiffness.size() + constant.size() +
                              position_cubic.size();
  return sum + numbers * sizeof(double) +
         (momentum.size() + position.size() + decaying.size() + dead.states.size()) * sizeof(int);
}

/// The rows of one kind in the columns of some states.
RowMatrix KickDriftModel::picked(const SparseMatrix& m, SeparableKind kind, std::size_t rows,
                                 const std::vector<int>& columns) const {
  SparseEntries entries;
  for (int c = 0; c < static_cast<int>(columns.size()); ++c) {
    if (columns[at(c)] == kGap) continue;
    for (SparseMatrix::InnerIterator it(m, columns[at(c)]); it; ++it) {
      const auto state = static_cast<int>(it.row());
      if (network.kind[at(state)] != kind || it.value() == 0.0) continue;
      entries.emplace_back((*row_of)[at(state)], c, it.value());
    }
  }
  RowMatrix out(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns.size()));
  out.setFromTriplets(entries.begin(), entries.end());
  return out;
}

void KickDriftModel::order_states(const std::vector<int>& states) {
  island = network.island_of(states.front());
  for (const int state : network.ordered_by_type(states)) {
    switch (network.kind[at(state)]) {
      case SeparableKind::momentum:
        momentum.push_back(state);
        break;
      case SeparableKind::position:
        position.push_back(state);
        break;
      case SeparableKind::decaying:
        decaying.push_back(state);
        break;
      case SeparableKind::dead:
        dead.states.push_back(state);
    }
  }
  number_rows();
}

void KickDriftModel::number_rows() {
  for (const std::vector<int>* own : {&momentum, &position, &decaying}) {
    for (int i = 0; i < static_cast<int>(own->size()); ++i) {
      if ((*own)[at(i)] != kGap) (*row_of)[at((*own)[at(i)])] = i;
    }
  }
  is_real.clear();
  for (const int state : momentum) is_real.push_back(state != kGap ? 1 : 0);
}

/// A gap goes where no two neighbours act on one another, as at the ends of a grid's rows. Where gaps would
/// break more runs than there were, none are left.
void KickDriftModel::leave_gaps() {
  constexpr int kLanes = 8, kLong = 24, kWorth = 64;
  const int np = momenta();
  if (np < kWorth) return;
  const RowMatrix A_qp = picked(network.A, SeparableKind::position, position.size(), momentum),
                  A_pq = picked(network.A, SeparableKind::momentum, momentum.size(), position),
                  H = picked(network.curvature, SeparableKind::position, position.size(), position),
                  R = picked(network.R, SeparableKind::momentum, momentum.size(), momentum);
  RowMatrix acts = RowMatrix(A_pq * H * A_qp) + R;
  acts.prune(0.0);
  std::vector<int> place(at(np));
  std::iota(place.begin(), place.end(), 0);
  const std::vector<int> starts = kick_drift_model::run_starts(acts, place);
  std::vector<int> gap(at(np), 0);
  int shift = 0, free_from = 0;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const int first = starts[k], last = k + 1 < starts.size() ? starts[k + 1] : np;
    if (last - first < kLong) continue;
    const int missing = (kLanes - (first + shift) % kLanes) % kLanes;
    for (int i = first; missing > 0 && i >= free_from; --i) {
      if (i > 0 && (acts.coeff(i, i - 1) != 0.0 || acts.coeff(i - 1, i) != 0.0)) continue;
      gap[at(i)] += missing;
      shift += missing;
      break;
    }
    free_from = last;
  }
  for (int i = 0, sum = 0; i < np; ++i) place[at(i)] += (sum += gap[at(i)]);
  if (kick_drift_model::run_starts(acts, place).size() > starts.size()) {
    std::ranges::fill(gap, 0);
  }
  std::vector<int> spread;
  for (int i = 0; i < np; ++i) {
    spread.insert(spread.end(), at(gap[at(i)]), kGap);
    spread.push_back(momentum[at(i)]);
  }
  const std::size_t rest = at(kLanes) - spread.size() % at(kLanes);
  spread.insert(spread.end(), at(kLanes) + rest, kGap);
  momentum = std::move(spread);
  has_gaps = true;
  number_rows();
}

/// Blocks of some hundred momenta, which threads share; where they act on a few others only, stages can follow one
/// another through the cache (KickDriftIsland::Impl::sweep).
void KickDriftModel::find_blocks(const RowMatrix& S) {
  constexpr int kRows = 960, kLanes = 8;
  constexpr int kWorthSharing = 1 << 12;  // momenta whose kicks are worth a fork and join
  const int np = momenta();
  blocks = {0};
  if (np < kWorthSharing) return;
  const auto acts = [](const RowMatrix& m, int i, int j) { return m.coeff(i, j) != 0.0; };
  const auto are_apart = [&](int i, int j) {
    return !acts(S, i, j) && !acts(S, j, i) && !acts(damping, i, j) && !acts(damping, j, i);
  };
  std::vector<int> block_of(at(np), 0);
  for (int i = 0; i < np; ++i) {
    const int rows = i - blocks.back();
    if (i % kLanes == 0 && (rows >= 2 * kRows || (rows >= kRows && are_apart(i - 1, i)))) {
      blocks.push_back(i);
    }
    block_of[at(i)] = static_cast<int>(blocks.size()) - 1;
  }
  reach = 1;
  for (const RowMatrix* m : {&S, static_cast<const RowMatrix*>(&damping)}) {
    for (int i = 0; i < np; ++i) {
      for (RowMatrix::InnerIterator it(*m, i); it; ++it) {
        if (it.col() >= np || it.value() == 0.0) continue;
        reach =
            std::max(reach, std::abs(block_of[at(i)] - block_of[at(static_cast<int>(it.col()))]));
      }
    }
  }
}

/// Springs beside dampers in one proportion, as in a net of equal links.
void KickDriftModel::find_mixed(const RowMatrix& S) {
  constexpr double kRounding = 1e-14;
  const int np = momenta();
  if (!lumped || S.cols() != np) return;
  RowMatrix beside = S, dampers = damping;
  const auto off_diagonal = [](Eigen::Index i, Eigen::Index j, double) { return i != j; };
  beside.prune(off_diagonal);
  dampers.prune(off_diagonal);
  for (int i = 0; i < np && mix_per_s == 0.0; ++i) {
    const RowMatrix::InnerIterator first(dampers, i);
    if (first) mix_per_s = beside.coeff(i, first.col()) / first.value();
  }
  if (mix_per_s == 0.0) return;
  for (int i = 0; i < np; ++i) {
    for (const RowMatrix* m : {&beside, &dampers}) {
      for (RowMatrix::InnerIterator it(*m, i); it; ++it) {
        const auto j = static_cast<int>(it.col());
        const double s = beside.coeff(i, j), d = mix_per_s * dampers.coeff(i, j);
        if (std::abs(s - d) > kRounding * std::abs(s)) return;
      }
    }
  }
  std::vector<double> rest(at(np), 0.0);
  for (int i = 0; i < np; ++i) rest[at(i)] = S.coeff(i, i) - mix_per_s * damping.coeff(i, i);
  const std::vector<char> none;
  mixed = StrokeMap::mixed(
      damping, rest,
      {.real = is_real, .damped = none, .cubic = cubic, .blocks = blocks, .has_room = has_gaps});
}

/// As what stands next to them, so that ranges of like momenta do not end there.
void KickDriftModel::fill_gaps() {
  const int np = momenta();
  int like = np - 1;
  while (like >= 0 && is_real[at(like)] == 0) --like;
  for (int i = np - 1; i >= 0; --i) {
    if (is_real[at(i)] != 0) like = i;
    mass[at(i)] = mass[at(like)];
    shared[at(i)] = shared[at(like)];
    own_damping[at(i)] = own_damping[at(like)];
  }
}

/// Which dampers are shared, and how exactly drifts take them: the error of degree 1, lumped, is about
/// 10⁻³(h‖𝒟‖)²(hω)² of the motion, and that of the scheme 10⁻⁶(hω)⁶.
void KickDriftModel::find_damping(int order, double step_s) {
  const int np = momenta();
  shared.assign(at(np), 0);
  own_damping.assign(at(np), 0.0);
  bool is_plain = true;
  for (int i = 0; i < np; ++i) {
    for (RowMatrix::InnerIterator it(damping, i); it; ++it) {
      if (it.col() != i) shared[at(i)] = 1;
    }
    if (shared[at(i)] != 0) {
      has_shared = true;
      for (RowMatrix::InnerIterator it(W, i); it; ++it) is_plain = is_plain && it.col() == i;
      continue;
    }
    own_damping[at(i)] = damping.coeff(i, i);
    has_own = has_own || own_damping[at(i)] != 0.0;
  }
  const double of_momenta = kick_drift_model::spectral_radius(damping);
  double most = 0.0;
  const auto see = [&](double rate, int state) {
    if (rate > most) fastest_state = state;
    most = std::max(most, rate);
  };
  for (int i = 0; i < np; ++i) see(damping.coeff(i, i), momentum[at(i)]);
  for (int i = 0; i < decays(); ++i) see(decay_rate[at(i)], decaying[at(i)]);
  fastest_damping = has_shared ? std::max(of_momenta, most) : most;
  if (!has_shared) return;
  // ω² of the quadratic part is enough here.
  constexpr int kMostDegree = 8;
  const RowMatrix A_qp = picked(network.A, SeparableKind::position, position.size(), momentum),
                  A_pq = picked(network.A, SeparableKind::momentum, momentum.size(), position),
                  H = picked(network.curvature, SeparableKind::position, position.size(), position);
  const double omega = std::sqrt(kick_drift_model::spectral_radius(A_pq * H * A_qp * W));
  const double hd = step_s * of_momenta, hw = step_s * omega;
  const double accuracy = std::max(1e-11, 1e-6 * std::pow(hw, order));
  if (order == 6 && is_plain && decaying.empty() && 1e-3 * hd * hd * hw * hw <= accuracy) {
    lumped = true;
    degree = 1;
    return;
  }
  constexpr double kLongestDrift = 0.61;
  double term = kLongestDrift * hd / 2.0;  // of wₖ₊₁ beside w₀
  degree = 2;
  for (int k = 2; k < kMostDegree; ++k) {
    term *= kLongestDrift * hd / (k + 1);
    if (0.1 * term <= accuracy) break;
    degree = k + 1;
  }
}

/// Cubic springs of one momentum go into its kick; all other bent positions are evaluated before.
void KickDriftModel::find_bent(const RowMatrix& force_of_position) {
  const int np = momenta(), nq = positions();
  cubic.assign(at(np), 0.0);
  const SparseMatrix by_position = force_of_position;
  SparseEntries y0;
  std::vector<int> bent_of_position(at(nq), -1);
  for (int i = 0; i < nq; ++i) {
    const int state = position[at(i)];
    const bool callback = network.by_callback[at(state)] != 0;
    const double c = network.cubic[at(state)];
    if (c == 0.0 && !callback) continue;
    int row = -1;
    double pull = 0.0;
    if (by_position.col(i).nonZeros() == 1) {
      const SparseMatrix::InnerIterator it(by_position, i);
      row = static_cast<int>(it.row());
      pull = it.value();
    }
    const RowMatrix::InnerIterator own(K, i);
    const bool alone = !callback && row >= 0 && K.row(i).nonZeros() == 1 && own.col() == row &&
                       cubic[at(row)] == 0.0;
    if (alone) {
      const double k = own.value();
      cubic[at(row)] = -pull * c * k * k * k;
      y0.emplace_back(row, i, 1.0 / k);
      has_cubic = true;
      continue;
    }
    bent_of_position[at(i)] = static_cast<int>(bent.size());
    bent.push_back(i);
    bent_cubic.push_back(callback ? 0.0 : c);
    has_callback.push_back(callback ? 1 : 0);
  }
  std::vector<char> is_cubic(at(np), 0);
  for (int i = 0; i < np; ++i) is_cubic[at(i)] = cubic[at(i)] != 0.0 ? 1 : 0;
  base = StrokeMap::of_rows(row_matrix(np, nq, y0), is_cubic, blocks);
  SparseEntries moves, pulls;
  for (int b = 0; b < static_cast<int>(bent.size()); ++b) {
    for (RowMatrix::InnerIterator it(K, bent[at(b)]); it; ++it) {
      moves.emplace_back(b, static_cast<int>(it.col()), it.value());
    }
    for (SparseMatrix::InnerIterator it(by_position, bent[at(b)]); it; ++it) {
      pulls.emplace_back(static_cast<int>(it.row()), b, it.value());
    }
  }
  const int count = static_cast<int>(bent.size());
  bent_of_strokes = StrokeMap(row_matrix(count, strokes(), moves));
  force_of_bent = StrokeMap::of_rows(row_matrix(np, count, pulls), is_real);
  std::map<int, std::size_t> callback_of_part;
  for (int b = 0; b < count; ++b) {
    if (has_callback[at(b)] == 0) continue;
    const int state = position[at(bent[at(b)])], part = network.part_of(state);
    const auto [found, is_new] = callback_of_part.try_emplace(part, callbacks.size());
    if (is_new) {
      const Part& placed = network.system().parts()[at(part)];
      callbacks.push_back({placed.port_hamiltonian(), placed.initial_state, {}, {}});
    }
    callbacks[found->second].state.push_back(state - network.first_state(part));
    callbacks[found->second].bent.push_back(b);
  }
}

void KickDriftModel::find_inputs() {
  for (int k = 0; k < static_cast<int>(network.inputs.size()); ++k) {
    const int own = static_cast<int>(inputs.size());
    std::vector<double> b;
    bool any = false, pushes = false, flows_in = false;
    for (SparseMatrix::InnerIterator it(network.B, k); it; ++it) {
      const auto state = static_cast<int>(it.row());
      if (it.value() == 0.0 || !is_own(state)) continue;
      const int row = (*row_of)[at(state)];
      any = true;
      if (network.kind[at(state)] == SeparableKind::momentum) {
        effort_kicks.push_back({own, row, it.value()});
        if (b.empty()) b.assign(momentum.size(), 0.0);
        b[at(row)] = it.value();
        pushes = true;
      } else if (network.kind[at(state)] == SeparableKind::position) {
        flow_power.push_back({own, row, it.value()});
        flows_in = true;
      } else {
        decay_flows.push_back({own, row, it.value()});
      }
    }
    for (int i = 0; i < momenta() && pushes; ++i) {
      double power = 0.0;
      for (RowMatrix::InnerIterator it(W, i); it; ++it) {
        power += it.value() * b[at(static_cast<int>(it.col()))];
      }
      if (power != 0.0) effort_power.push_back({own, i, power});
    }
    if (flows_in) flows.push_back(own);
    if (any) inputs.push_back(k);
  }
}

/// Whether a state that an input acts on belongs to the island: inputs may act on several.
bool KickDriftModel::is_own(int state) const { return network.island_of(state) == island; }

void KickDriftModel::find_rates(const RowMatrix& force_of_position) {
  const RowMatrix H = picked(network.curvature, SeparableKind::position, position.size(), position);
  RowMatrix omega = force_of_position * H * RowMatrix(K.leftCols(momenta()));
  RowMatrix decay_force = picked(network.A, SeparableKind::momentum, momentum.size(), decaying);
  for (int i = 0; i < momenta(); ++i) {
    for (RowMatrix::InnerIterator it(decay_force, i); it; ++it) {
      it.valueRef() *= decay_stiffness[at(static_cast<int>(it.col()))];
    }
  }
  omega += RowMatrix(decay_force * decay_of_momenta);
  highest_frequency = std::sqrt(kick_drift_model::spectral_radius(omega));
}

}  // namespace portwave

#include "network/explicit/taylor/taylor_island.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {
namespace taylor {

/// Blocks of states that threads share, where a product is worth a fork and join.
std::vector<int> blocks(int states) {
  constexpr int kWorthSharing = 1 << 13, kRows = 2048;
  return states < kWorthSharing ? std::vector<int>{0} : SharedRows::cut(states, kRows);
}

/// The root nearest to 1 of ½ aλ² + bλ = m.
std::optional<double> root(double a, double b, double m) {
  const double discriminant = b * b + 2.0 * a * m;
  if (!(discriminant >= 0.0)) return std::nullopt;
  const double far = -(b + std::copysign(std::sqrt(discriminant), b));
  if (far == 0.0) return std::nullopt;
  const double near = -2.0 * m / far, other = a != 0.0 ? far / a : near;
  return std::abs(near - 1.0) <= std::abs(other - 1.0) ? near : other;
}

}  // namespace taylor
}  // namespace

bool sample_powers(const NetworkForm& network, int input, const GaussInterpolation& interpolation,
                   double start_s, double h, double* powers) {
  const auto value_at = [&](double share) {
    double value = 0.0;
    try {
      value = network.input_in_step(input, {start_s + share * h, start_s, h, share, 3});
    } catch (const std::exception& error) {
      throw InputFault{input, true, error.what()};
    } catch (...) {
      throw InputFault{input, true, "an unknown exception"};
    }
    if (!std::isfinite(value)) throw InputFault{input, false, {}};
    return value;
  };
  SuddenChange change;
  change.see(value_at(0.0));
  for (int g = 0; g < interpolation.points(); ++g) {
    powers[g] = value_at(interpolation.places()[at(g)]);
    change.see(powers[g]);
  }
  change.see(value_at(1.0));
  interpolation.to_powers(powers);
  return change.is_sudden();
}

double fastest_rate_of(const RowMatrix& m) {
  constexpr int kPairs = 20;
  if (m.rows() == 0 || m.nonZeros() == 0) return 0.0;
  Eigen::VectorXd x(m.rows());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    x[i] = 0.5 + std::fmod(0.618033988749895 * static_cast<double>(i + 1), 1.0);
    if (i % 2 == 1) x[i] = -x[i];
  }
  double rate = 0.0;
  for (int k = 0; k < kPairs; ++k) {
    const double norm = x.norm();
    if (!(norm > 0.0) || !std::isfinite(norm)) return rate;
    x = m * (m * (x / norm));
    rate = std::sqrt(x.norm());
  }
  return rate;
}

double TaylorScheme::longest_angle(double left_out) const {
  return std::exp((std::lgamma(order + 2.0) + std::log(left_out)) / (order + 1.0));
}

LinearNetwork::LinearNetwork(const System& system)
    : NetworkForm(system, {.name = "Taylor series", .takes_damped_inputs = true}) {
  Issues issues;
  FewIssues bent(issues);
  for (int i = 0; i < size(); ++i) {
    if (!is_bent(i)) continue;
    bent.add(fmt::format("/subsystems/{}", part_of(i)),
             fmt::format("the storage of {} is not quadratic, and Taylor series need linear parts; "
                         "\"kick-drift\" takes springs of any law, and wave coupling ({{\"kind\": "
                         "\"auto\"}}) every part",
                         label(i)));
  }
  throw_if_any(std::move(issues));
  output = hessian * Seen;
}

TaylorIsland::TaylorIsland(const LinearNetwork& network, const std::vector<int>& states,
                           const TaylorScheme& scheme, double step_s, std::vector<int>& row_numbers)
    : network_(network),
      scheme_(scheme),
      kernels_(stroke_kernels()),
      step_s_(step_s),
      rows_({0}, 0) {
  for (const int state : network.ordered_by_type(states)) {
    if (network.is_dead[at(state)] != 0) {
      const double stiffness = network.hessian.coeff(state, state);
      dead_.states.push_back(state);
      dead_.stiffness.push_back(stiffness);
      dead_.rate.push_back(network.R.coeff(state, state) * stiffness);
      continue;
    }
    row_numbers[at(state)] = static_cast<int>(states_.size());
    states_.push_back(state);
  }
  const RowMatrix Q = own(network.hessian, row_numbers), A = own(network.A, row_numbers);
  RowMatrix rate = A * Q;
  rate.prune(0.0);
  const auto count = static_cast<int>(states_.size());
  const std::vector<int> blocks = taylor::blocks(count);
  const std::vector<char> all(states_.size(), 1);
  rows_ = SharedRows(blocks, count);
  rate_ = StrokeMap::of_rows(rate, all, blocks);
  fastest_rate_ = fastest_rate_of(rate);
  fastest_damping_ = fastest_rate_of(own(network.R, row_numbers) * Q);
  const std::size_t n = states_.size();
  stiffness_.assign(n, 0.0);
  for (int i = 0; i < Q.outerSize(); ++i) {
    for (RowMatrix::InnerIterator it(Q, i); it; ++it) {
      if (it.col() == i) stiffness_[at(i)] = it.value();
      if (it.col() != i && it.value() != 0.0) has_diagonal_ = false;
    }
  }
  if (!has_diagonal_) hessian_ = StrokeMap::of_rows(Q, all, blocks);
  for (const int state : states_) constant_.push_back(network.constant[at(state)]);
  if (std::ranges::all_of(constant_, [](double c) { return c == 0.0; })) constant_.clear();
  for (int i = 0; i < A.outerSize() && !constant_.empty(); ++i) {
    double sum = 0.0;
    for (RowMatrix::InnerIterator it(A, i); it; ++it) {
      sum += it.value() * constant_[at(static_cast<int>(it.col()))];
    }
    if (sum != 0.0) offsets_.emplace_back(i, sum);
  }
  is_lossless_ = own(network.R, row_numbers).nonZeros() == 0;
  find_inputs(row_numbers);
  seen_.assign(power_.size() * at(scheme.order + 1), 0.0);
  power_of_block_.resize(at(rows_.count()));
  for (int e = 0; e < static_cast<int>(power_.size()); ++e) {
    power_of_block_[at(rows_.block_of(power_[at(e)].row))].push_back(e);
  }
  for (const int state : states_) row_numbers[at(state)] = -1;
  for (Array* own : {&first_, &second_, &other_, &last_, &sum_}) own->assign(n, 0.0);
  if (!is_lossless_) weighted_.assign(n, 0.0);
  if (!has_diagonal_) pull_ = middle_pull_ = middle_ = sum_;
  powers_.assign(inputs_.size() * at(scheme.inputs.points()), 0.0);
  output_.assign(inputs_.size(), 0.0);
  dead_kept(0);
}

RowMatrix TaylorIsland::own(const SparseMatrix& m, const std::vector<int>& row_of) const {
  SparseEntries entries;
  for (int j = 0; j < static_cast<int>(states_.size()); ++j) {
    for (SparseMatrix::InnerIterator it(m, states_[at(j)]); it; ++it) {
      const int row = row_of[at(static_cast<int>(it.row()))];
      if (row >= 0 && it.value() != 0.0) entries.emplace_back(row, j, it.value());
    }
  }
  const auto n = static_cast<Eigen::Index>(states_.size());
  RowMatrix out(n, n);
  out.setFromTriplets(entries.begin(), entries.end());
  return out;
}

void TaylorIsland::find_inputs(const std::vector<int>& row_of) {
  const int island = network_.island_of((states_.empty() ? dead_.states : states_).front());
  std::vector<int> number(network_.inputs.size(), -1);
  for (int k = 0; k < static_cast<int>(network_.inputs.size()); ++k) {
    const int own = static_cast<int>(inputs_.size());
    bool is_own = network_.system().island_of_part(network_.inputs[at(k)].part) == island;
    const auto add = [&](const SparseMatrix& m, std::vector<Entry>& entries) {
      for (SparseMatrix::InnerIterator it(m, k); it; ++it) {
        const int row = row_of[at(static_cast<int>(it.row()))];
        if (row < 0 || it.value() == 0.0) continue;
        entries.push_back({own, row, it.value()});
        is_own = true;
      }
    };
    add(network_.B, driven_);
    add(network_.output, power_);
    double steady = 0.0;
    for (SparseMatrix::InnerIterator it(network_.Seen, k); it && !constant_.empty(); ++it) {
      const int row = row_of[at(static_cast<int>(it.row()))];
      if (row >= 0) steady += it.value() * constant_[at(row)];
    }
    if (!is_own) continue;
    number[at(k)] = own;
    inputs_.push_back(k);
    steady_power_.push_back(steady);
  }
  for (int k = 0; k < network_.Through.outerSize(); ++k) {
    if (number[at(k)] < 0) continue;
    for (SparseMatrix::InnerIterator it(network_.Through, k); it; ++it) {
      const int row = number[at(static_cast<int>(it.row()))];
      if (row < 0 || it.value() == 0.0) continue;
      through_.push_back({row, number[at(k)], it.value()});
      is_lossless_ = false;
    }
  }
  const SparseMatrix apart = network_.Seen - network_.B;
  for (const int k : inputs_) {
    for (SparseMatrix::InnerIterator it(apart, k); it; ++it) {
      const double size = std::abs(network_.Seen.coeff(it.row(), k));
      if (std::abs(it.value()) > 1e-12 * size) is_lossless_ = false;
    }
  }
}

void TaylorIsland::load(const double* x, IslandState& state) const {
  const auto read = [x](const std::vector<int>& states, Array& to) {
    to.resize(states.size());
    for (std::size_t i = 0; i < states.size(); ++i) to[i] = x[states[i]];
  };
  read(states_, state.position);
  read(dead_.states, state.dead);
}

void TaylorIsland::store(const IslandState& state, double* x) const {
  for (std::size_t i = 0; i < states_.size(); ++i) x[states_[i]] = state.position[i];
  for (std::size_t i = 0; i < dead_.states.size(); ++i) x[dead_.states[i]] = state.dead[i];
}

std::size_t TaylorIsland::at_power(int input, int k) const {
  return at(input) * at(scheme_.inputs.points()) + at(k);
}

void TaylorIsland::set_step(double step_s) {
  step_s_ = step_s;
  for (Array& kept : dead_kept_) kept.clear();
  dead_kept(0);
}

const TaylorIsland::Array& TaylorIsland::dead_kept(int depth) {
  Array& kept = dead_kept_[at(depth)];
  if (kept.empty() && !dead_.rate.empty()) kept = dead_.kept(std::ldexp(step_s_, -depth));
  return kept;
}

void TaylorIsland::sample(double start_s, int depth) {
  is_sudden_ = false;
  for (int i = 0; i < static_cast<int>(inputs_.size()); ++i) {
    is_sudden_ |= sample_powers(network_, inputs_[at(i)], scheme_.inputs, start_s,
                                std::ldexp(step_s_, -depth), powers_.data() + at_power(i, 0));
  }
}

/// wₖ₊₁; every second term also adds it, and the one before, to the sums.
void TaylorIsland::add_term(const double* w, double* next, int k, double h) {
  const double factor = h / (k + 1), order = scheme_.order;
  const bool adds = k % 2 == 1 && k < scheme_.order;
  const double weight = 1.0 / (k + order + 1.0), next_weight = 1.0 / (k + order + 2.0);
  rows_.run([&](int block) {
    kernels_.series({.map = rate_.view(block),
                     .w = w,
                     .next = next,
                     .factor = factor,
                     .sum = adds ? sum_.data() : nullptr,
                     .weighted = adds && !is_lossless_ ? weighted_.data() : nullptr,
                     .weight = weight,
                     .next_weight = next_weight,
                     .starts = k == 1});
  });
  const auto more = [&](int row, double term) {
    next[row] += term;
    if (!adds) return;
    sum_[at(row)] += term;
    if (!is_lossless_) weighted_[at(row)] += next_weight * term;
  };
  if (k == 0) {
    for (const auto& [row, value] : offsets_) more(row, factor * value);
  }
  if (k >= scheme_.inputs.points()) return;
  for (const Entry& entry : driven_) more(entry.row, factor * entry.value * power(entry.input, k));
}

void TaylorIsland::note_seen(const double* w, int k) {
  for (std::size_t e = 0; e < power_.size(); ++e) {
    seen_[e * at(scheme_.order + 1) + at(k)] = w[power_[e].row];
  }
}

/// ∫ sᵀSeenᵀzₖθᵏ over the step, per unit of h.
void TaylorIsland::add_supply() {
  rows_.gather(seen_.data(), at(scheme_.order + 1),
               [&](int block) { return std::span(power_of_block_[at(block)]); });
  for (int k = 0; k <= scheme_.order; ++k) {
    for (std::size_t i = 0; i < output_.size(); ++i) output_[i] = k == 0 ? steady_power_[i] : 0.0;
    for (std::size_t e = 0; e < power_.size(); ++e) {
      output_[at(power_[e].input)] += power_[e].value * seen_[e * at(scheme_.order + 1) + at(k)];
    }
    for (int i = 0; i < static_cast<int>(output_.size()); ++i) {
      double mean = 0.0;
      for (int j = 0; j < scheme_.inputs.points(); ++j) mean += power(i, j) / (j + k + 1);
      supplied_.add(mean * output_[at(i)]);
    }
  }
}

/// States that are near one another belong to parts with near numbers, whatever their types.
void TaylorIsland::share_among(NetworkPeers& peers) {
  std::vector<double> place;
  for (int block = 0; block < rows_.count(); ++block) {
    double sum = 0.0;
    for (int row = rows_.first(block); row < rows_.end(block); ++row) {
      sum += network_.part_of(states_[at(row)]);
    }
    place.push_back(sum / (rows_.end(block) - rows_.first(block)));
  }
  const std::vector<int> of_blocks = ranks_of_blocks(rows_, place, peers.size());
  rows_.share_among(peers, of_blocks);
  const std::vector<int> of_rows = ranks_of_rows(rows_, of_blocks);
  const RowExchange::Reads reads[] = {{rate_, of_rows}};
  exchange_.emplace(peers, of_rows, reads, 1);
}

bool TaylorIsland::attempt(const IslandState& from, IslandState& to, int depth,
                           IslandEnergies& energies) {
  const double h = std::ldexp(step_s_, -depth);
  supplied_ = CompensatedSum();
  const double* w = from.position.data();
  for (int k = 0; k <= scheme_.order; ++k) {
    note_seen(w, k);
    Array& next = k == scheme_.order   ? last_
                  : k == 1             ? second_
                  : w == first_.data() ? other_
                                       : first_;
    add_term(w, next.data(), k, h);
    if (exchange_) exchange_->exchange({next.data()});
    w = next.data();
  }
  if (!inputs_.empty()) add_supply();
  for (const Entry& entry : through_) {
    for (int i = 0; i < scheme_.inputs.points(); ++i) {
      for (int j = 0; j < scheme_.inputs.points(); ++j) {
        supplied_.add(power(entry.input, i) * entry.value * power(entry.row, j) / (i + j + 1));
      }
    }
  }
  return settle(from, to, depth, h * supplied_.value(), energies);
}

SeriesSums TaylorIsland::sums(const IslandState& from, const Array& direction) {
  if (!has_diagonal_) {
    multiply_by_hessian(direction, pull_);
    for (std::size_t i = 0; i < middle_.size(); ++i) {
      middle_[i] = from.position[i] + 0.5 * sum_[i];
    }
    multiply_by_hessian(middle_, middle_pull_);
  }
  const auto all = rows_.sums([&](int block) {
    const int first = rows_.first(block);
    const auto from_first = [first](const Array& all_rows) {
      return all_rows.empty() ? nullptr : all_rows.data() + first;
    };
    const SeriesSums own =
        kernels_.series_balance({.count = rows_.end(block) - first,
                                 .order = static_cast<double>(scheme_.order),
                                 .stiffness = has_diagonal_ ? stiffness_.data() + first : nullptr,
                                 .pull = from_first(pull_),
                                 .middle_pull = from_first(middle_pull_),
                                 .constant = from_first(constant_),
                                 .x = from_first(from.position),
                                 .d = from_first(sum_),
                                 .e = from_first(direction),
                                 .y = from_first(weighted_)});
    return std::array{own.change, own.size, own.stored, own.slope, own.square, own.residual};
  });
  return {all[0], all[1], all[2], all[3], all[4], all[5]};
}

void TaylorIsland::multiply_by_hessian(const Array& x, Array& product) {
  rows_.run([&](int block) { kernels_.apply(hessian_.view(block), x.data(), product.data()); });
}

double TaylorIsland::end(const IslandState& from, IslandState& to, const Array& direction,
                         double lambda, double* size) {
  const auto [energy, energy_size] = rows_.sums([&](int block) {
    const int first = rows_.first(block);
    double size_of_block = 0.0;
    const double gained =
        kernels_.series_end({.count = rows_.end(block) - first,
                             .lambda = lambda,
                             .x = from.position.data() + first,
                             .d = sum_.data() + first,
                             .e = direction.data() + first,
                             .after = to.position.data() + first,
                             .stiffness = has_diagonal_ ? stiffness_.data() + first : nullptr,
                             .constant = constant_.empty() ? nullptr : constant_.data() + first},
                            &size_of_block);
    return std::array{gained, size_of_block};
  });
  *size = energy_size;
  if (has_diagonal_) return energy;
  constexpr std::size_t kChunk = 512;
  const Array &x = from.position, &after = to.position;
  for (std::size_t i = 0; i < middle_.size(); ++i) middle_[i] = 0.5 * (x[i] + after[i]);
  multiply_by_hessian(middle_, middle_pull_);
  CompensatedSum change;
  *size = 0.0;
  for (std::size_t first = 0; first < middle_.size(); first += kChunk) {
    const std::size_t last = std::min(first + kChunk, middle_.size());
    double own = 0.0, own_size = 0.0;
    for (std::size_t i = first; i < last; ++i) {
      const double pull = middle_pull_[i] + (constant_.empty() ? 0.0 : constant_[i]);
      own += pull * (after[i] - x[i]);
      own_size += std::abs(pull * (after[i] - x[i]));
    }
    change.add(own);
    *size += own_size;
  }
  return change.value();
}

bool TaylorIsland::settle(const IslandState& from, IslandState& to, int depth, double supply,
                          IslandEnergies& energies) {
  // The first omitted term may have a thousandth of the amplitude of the motion; λ be 2, or, along the second
  // term, a thousandth.
  constexpr double kOmitted = 1e-6, kFar = 2.0, kCurved = 1e-3;
  constexpr double kRounding = 8.0, kLeft = 1e-12, kAtRest = 16.0;
  constexpr int kMostTurns = 4;
  const SeriesSums first = sums(from, last_);
  if (!std::isfinite(first.size + first.square + first.slope + first.residual)) return false;
  if (0.5 * std::abs(first.square) > kOmitted * (first.stored + first.size)) return false;
  double lost = 0.0;
  if (!is_lossless_) {
    lost = supply - first.change - (scheme_.order + 1) * first.residual;
    if (!network_.has_active()) lost = std::max(lost, 0.0);
  }
  const double rounding =
      std::numeric_limits<double>::epsilon() *
      (kRounding * (first.size + std::abs(supply) + std::abs(lost)) + std::abs(from.stored_J));
  const Array* direction = &last_;
  double lambda = 1.0, slope = first.slope, square = first.square;
  std::optional<SeriesSums> second;
  const auto can_meet = [&](double missing) {
    direction = &last_;
    lambda = 1.0;
    slope = first.slope;
    square = first.square;
    if (std::abs(missing - (slope + 0.5 * square)) <= rounding) return true;
    const std::optional<double> near = taylor::root(square, slope, missing);
    if (near && std::abs(*near) <= kFar) {
      lambda = *near;
      return true;
    }
    if (!second) second = sums(from, second_);
    if (second->slope == 0.0 || !taylor::root(second->square, second->slope, missing)) return false;
    const double along = missing / second->slope;
    if (!(std::abs(along) <= kCurved)) return false;
    direction = &second_;
    lambda = along;
    slope = second->slope;
    square = second->square;
    return true;
  };
  double taken = from.tank_J, missing = taken + supply - lost - first.change;
  if (!can_meet(missing)) {
    // Near rest nothing moves that could make up for what roundings of earlier steps add up to.
    taken = 0.0;
    missing = supply - lost - first.change;
    if (!can_meet(missing)) {
      if (!(std::abs(missing) <= kAtRest * rounding)) return false;
      direction = &last_;
      lambda = 1.0;
      slope = first.slope;
      square = first.square;
    }
  }
  const double expected = taken + supply - lost;
  double size = 0.0, change = end(from, to, *direction, lambda, &size);
  for (int turn = 1; turn < kMostTurns; ++turn) {
    const double more = (expected - change) / (slope + square * lambda);
    if (std::abs(expected - change) <= rounding || !(std::abs(lambda + more) <= kFar)) break;
    lambda += more;
    change = end(from, to, *direction, lambda, &size);
  }
  along_last_ = direction == &last_ ? lambda : 0.0;
  along_second_ = direction == &second_ ? lambda : 0.0;
  const double left = expected - change;
  const double scale = size + std::abs(supply) + std::abs(lost) + std::abs(from.stored_J);
  if (!(std::abs(left) <= kLeft * scale)) return false;
  if (exchange_) exchange_->exchange({to.position.data()});
  to.tank_J = (from.tank_J - taken) + left;
  const double gone = dead_.decay(dead_kept(depth), from.dead, to.dead);
  lost += gone;
  CompensatedSum all(change);
  all.add(-gone);
  to.stored_J = from.stored_J + all.value();
  energies.changed_J += all.value();
  energies.supplied_J += supply;
  energies.dissipated_J += lost;
  energies.size_J += size + std::abs(supply) + std::abs(lost);
  return true;
}

void TaylorIsland::error(double* x) {
  Array& next = other_;
  rows_.run([&](int block) {
    kernels_.series({.map = rate_.view(block),
                     .w = last_.data(),
                     .next = next.data(),
                     .factor = step_s_ / (scheme_.order + 2.0)});
  });
  const double of_last = std::abs(1.0 - along_last_), of_second = std::abs(along_second_);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    next[i] = std::abs(next[i]) + of_last * std::abs(last_[i]) + of_second * std::abs(second_[i]);
  }
  if (exchange_) exchange_->complete(next.data());
  for (std::size_t i = 0; i < states_.size(); ++i) x[states_[i]] = next[i];
  for (const int state : dead_.states) x[state] = 0.0;
  for (int i = 0; i < static_cast<int>(inputs_.size()); ++i) output_[at(i)] = left_out_of_input(i);
  for (const Entry& entry : driven_) {
    x[states_[at(entry.row)]] += step_s_ * std::abs(entry.value) * output_[at(entry.input)];
  }
}

/// About the size of what the polynomial of an input leaves out and a step sees, by its last two Legendre coefficients.
/// Smooth inputs leave out less than these, and Gauss points hide most of it: the smaller the coefficients beside the
/// input, the more. Of functions whose kinks nobody knows they count in full. The polynomial of the rate of a displacement
/// has its moments up to the degree 2: of what it leaves out, Legendre's third, states see ∫P₃ (hλθ)³/3! dθ.
double TaylorIsland::left_out_of_input(int input) const {
  constexpr double kTrusted = 5.0, kOfJump = 2.0, kThird = 1.0 / 840.0;
  constexpr int kOfRate =
      2;  // the degree of the polynomial by which a rate of a displacement is seen
  const Signal& signal = *network_.inputs[at(inputs_[at(input)])].signal;
  const bool has_moments = signal.is_rate() && !signal.is_callback();
  const int n = signal.is_rate() ? kOfRate : scheme_.inputs.points() - 1;
  // The leading coefficient of the shifted Legendre polynomial Pₙ is C(2n, n), that of its next power −n C(2n, n)/2.
  const auto leading = [](int degree) {
    return std::exp(std::lgamma(2.0 * degree + 1.0) - 2.0 * std::lgamma(degree + 1.0));
  };
  const double last = power(input, n) / leading(n);
  if (has_moments) {
    return kOfJump * std::abs(last) * std::min(1.0, kThird * std::pow(step_s_ * fastest_rate_, 3));
  }
  const double one_before = (power(input, n - 1) + 0.5 * n * leading(n) * last) / leading(n - 1);
  const double left_out = std::abs(last) + std::abs(one_before);
  if (signal.is_callback()) return left_out;
  double size = left_out;
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    double value = 0.0;
    for (int k = n; k >= 0; --k) value = power(input, k) + share * value;
    size = std::max(size, std::abs(value));
  }
  return size > 0.0 ? left_out * std::min(1.0, kTrusted * left_out / size) : 0.0;
}

bool TaylorIsland::is_too_long(double h) const {
  constexpr double kLeftOut = 1e-3;
  return h * fastest_damping_ > scheme_.longest_angle(kLeftOut);
}

std::string TaylorIsland::advice() const {
  return fmt::format(
      "its fastest motion has a rate of {:.3g} 1/s (times h: should be below {:.2g})",
      fastest_rate_, scheme_.longest_angle());
}

double TaylorIsland::cost_ns() const {
  constexpr double kPerState_ns = 1.0;
  return kPerState_ns * static_cast<double>(scheme_.order + 3) *
         static_cast<double>(states_.size());
}

std::size_t TaylorIsland::bytes() const {
  std::size_t sum = rate_.bytes() + hessian_.bytes() + rows_.bytes();
  for (const Array* own :
       {&stiffness_, &constant_, &powers_, &first_, &second_, &other_, &last_, &sum_, &weighted_,
        &seen_, &pull_, &middle_pull_, &middle_, &steady_power_, &output_}) {
    sum += own->capacity() * sizeof(double);
  }
  for (const Array& kept : dead_kept_) sum += kept.capacity() * sizeof(double);
  return sum;
}

}  // namespace portwave

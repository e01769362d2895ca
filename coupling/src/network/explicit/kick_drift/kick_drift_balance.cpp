#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "network/explicit/kick_drift/kick_drift_island.hpp"

namespace portwave {

bool KickDriftIsland::is_plain() const {
  return model.has_diagonal_mass && model.decays() == 0 && model.flows.empty() &&
         model.bent.empty() && !model.has_constant && model.effort_kicks.empty();
}

KickDriftIsland::Balance KickDriftIsland::balance(const IslandState& from, IslandState& to) {
  if (is_plain()) {
    const auto [change, size, kinetic, slope, of_momenta] = momentum_rows.sums([&](int block) {
      const int first = momentum_rows.first(block);
      const BalanceSums sums =
          kernels.balance({.count = momentum_rows.end(block) - first,
                           .mass = model.mass.data() + first,
                           .c = c.data() + first,
                           .u_before = from.u.data() + first,
                           .u = to.u.data() + first,
                           .force_before = force_before.data() + first,
                           .force = force_after.data() + first,
                           .strokes = strokes.data() + first,
                           .base = base.data() + first,
                           .cubic = model.has_cubic ? model.cubic.data() + first : nullptr,
                           .moved = moved.data() + first});
      return std::array{sums.change, sums.size, sums.kinetic, sums.slope, sums.of_momenta};
    });
    return {change, size, kinetic, slope, of_momenta};
  }
  Balance out;
  out.change = energy_change(from, to, &out.size);
  const auto [kinetic, slope, of_momenta] =
      momentum_rows.sums([&](int block) { return kinetic_and_slope(block, from, to); });
  out.kinetic = kinetic;
  out.slope = slope;
  out.slope_of_momenta = of_momenta;
  return out;
}

std::array<double, 3> KickDriftIsland::kinetic_and_slope(int block, const IslandState& from,
                                                         const IslandState& to) {
  // W(ũ) and W f̃ in turn, row by row.
  CompensatedSum kinetic, slope, of_momenta;
  for (int i = momentum_rows.first(block); i < momentum_rows.end(block); ++i) {
    double mu = 0.0, mf = 0.0;
    if (model.has_diagonal_mass) {
      mu = model.mass[at(i)] * to.u[at(i)];
      mf = model.mass[at(i)] * force_after[at(i)];
    } else {
      for (RowMatrix::InnerIterator it(model.W, i); it; ++it) {
        const auto j = at(static_cast<int>(it.col()));
        mu += it.value() * to.u[j];
        mf += it.value() * force_after[j];
      }
    }
    kinetic.add(0.5 * mu * to.u[at(i)]);
    const double worked = mu * (force_after[at(i)] - force_before[at(i)]);
    moved[at(i)] = to.u[at(i)] - from.u[at(i)];
    slope.add(worked - mf * moved[at(i)]);
    of_momenta.add(worked);
  }
  for (const int number : power_of_block[at(block)]) {
    const InputEntry& entry = model.effort_power[at(number)];
    const double worked = entry.value * change_of_input(entry.input) * to.u[at(entry.row)];
    slope.add(worked);
    of_momenta.add(worked);
  }
  return {kinetic.value(), slope.value(), of_momenta.value()};
}

double KickDriftIsland::change_of_input(int input) const {
  return kick_value(input, scheme.stages()) - kick_value(input, 0);
}

double KickDriftIsland::energy_change(const IslandState& from, IslandState& to, double* size) {
  CompensatedSum change;
  const auto take = [&](double energy) {
    change.add(energy);
    *size += std::abs(energy);
  };
  const auto take_sums = [&](const std::array<double, 2>& sums) {
    change.add(sums[0]);
    *size += sums[1];
  };
  take_sums(position_rows.sums([&](int block) {
    double own_size = 0.0;
    const double energy = kernels.positions(
        {.map = model.positions_of_strokes.view(block),
         .strokes = strokes.data(),
         .before = from.position.data(),
         .after = to.position.data(),
         .stiffness = model.stiffness.data(),
         .constant = model.has_constant ? model.constant.data() : nullptr,
         .cubic = model.has_position_cubic ? model.position_cubic.data() : nullptr},
        &own_size);
    return std::array{energy, own_size};
  }));
  if (model.has_diagonal_mass) {
    take_sums(momentum_rows.sums([&](int block) {
      const int first = momentum_rows.first(block);
      double own_size = 0.0;
      const double energy =
          kernels.kinetic(momentum_rows.end(block) - first, model.mass.data() + first,
                          from.u.data() + first, to.u.data() + first, &own_size);
      return std::array{energy, own_size};
    }));
  } else {
    for (int i = 0; i < model.momenta(); ++i) {
      for (RowMatrix::InnerIterator it(model.W, i); it; ++it) {
        const auto j = at(static_cast<int>(it.col()));
        take(0.5 * it.value() * (to.u[at(i)] - from.u[at(i)]) * (to.u[j] + from.u[j]));
      }
    }
  }
  if (!model.has_diagonal_stiffness) change.add(tied_change(from, to, size));
  const double* const increments = strokes.data() + model.strokes();
  for (int i = 0; i < model.decays(); ++i) {
    const double q0 = from.decaying[at(i)], q1 = q0 + increments[at(i)];
    to.decaying[at(i)] = q1;
    take(0.5 * model.decay_stiffness[at(i)] * (q1 - q0) * (q1 + q0));
  }
  for (const CallbackPart& part : model.callbacks) take(callback_change(part, from, to));
  return change.value();
}

double KickDriftIsland::tied_change(const IslandState& from, const IslandState& to, double* size) {
  constexpr std::size_t kChunk = 512;
  for (std::size_t i = 0; i < tied_sum.size(); ++i) tied_sum[i] = to.position[i] + from.position[i];
  kernels.apply(model.tied_stiffness.view(), tied_sum.data(), tied_pull.data());
  CompensatedSum change;
  for (std::size_t first = 0; first < tied_sum.size(); first += kChunk) {
    const std::size_t last = std::min(first + kChunk, tied_sum.size());
    double own = 0.0, own_size = 0.0;
    for (std::size_t i = first; i < last; ++i) {
      const double energy = 0.5 * tied_pull[i] * (to.position[i] - from.position[i]);
      own += energy;
      own_size += std::abs(energy);
    }
    change.add(own);
    *size += own_size;
  }
  return change.value();
}

double KickDriftIsland::callback_change(const CallbackPart& part, const IslandState& from,
                                        const IslandState& to) {
  std::ranges::copy(part.rest, callback_from.begin());
  std::ranges::copy(part.rest, callback_to.begin());
  for (std::size_t k = 0; k < part.state.size(); ++k) {
    const auto row = at(model.bent[at(part.bent[k])]);
    callback_from[at(part.state[k])] = from.position[row];
    callback_to[at(part.state[k])] = to.position[row];
  }
  part.part->discrete_gradient(callback_from.data(), callback_to.data(), callback_gradient.data());
  double sum = 0.0;
  for (std::size_t k = 0; k < part.state.size(); ++k) {
    const auto own = at(part.state[k]);
    sum += callback_gradient[own] * (callback_to[own] - callback_from[own]);
  }
  return sum;
}

void KickDriftIsland::move(IslandState& to, double step) {
  momentum_rows.run([&](int block) {
    const int first = momentum_rows.first(block);
    kernels.move({.count = momentum_rows.end(block) - first,
                  .step = step,
                  .force_before = force_before.data() + first,
                  .force = force_after.data() + first,
                  .moved = moved.data() + first,
                  .u = to.u.data() + first,
                  .strokes = strokes.data() + first});
  });
  if (momentum_exchange) momentum_exchange->exchange({strokes.data()});
  for (const InputEntry& entry : model.effort_kicks) {
    to.u[at(entry.row)] += step * entry.value * change_of_input(entry.input);
  }
  double* const increments = strokes.data() + model.strokes();
  for (int i = 0; i < model.decays(); ++i) {
    for (RowMatrix::InnerIterator it(model.decay_of_momenta, i); it; ++it) {
      increments[at(i)] += step * it.value() * moved[at(static_cast<int>(it.col()))];
    }
  }
}

bool KickDriftIsland::bends_little(const Balance& first) const {
  constexpr double kLeft = 0.3;
  const bool is_damped = model.has_own || model.has_shared || model.decays() > 0;
  if (!is_damped && model.effort_power.empty()) return false;
  const double own = first.slope_of_momenta, of_positions = first.slope - own;
  return std::abs(first.slope) <= kLeft * (std::abs(own) + std::abs(of_positions));
}

double KickDriftIsland::bent_step(double missing, const Balance& first) {
  if (momentum_exchange) momentum_exchange->exchange({moved.data()});
  const auto [second, third, fourth] = momentum_rows.sums([&](int block) {
    kernels.apply(model.force.view(block), moved.data(), c_bent.data());
    const int first_row = momentum_rows.first(block);
    const BendSums sums =
        kernels.bend({.count = momentum_rows.end(block) - first_row,
                      .mass = model.mass.data() + first_row,
                      .force_before = force_before.data() + first_row,
                      .force = force_after.data() + first_row,
                      .moved = moved.data() + first_row,
                      .pull = c_bent.data() + first_row,
                      .strokes = strokes.data() + first_row,
                      .base = base.data() + first_row,
                      .cubic = model.has_cubic ? model.cubic.data() + first_row : nullptr});
    return std::array{sums.second, sums.third, sums.fourth};
  });
  constexpr int kTurns = 6;
  const double linear = -missing / first.slope;
  double step = linear;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double bends = step * step * (second + step * (third + step * fourth));
    step = linear - bends / first.slope;
  }
  return std::isfinite(step) ? step : linear;
}

bool KickDriftIsland::settle(const IslandState& from, IslandState& to, const Level& own,
                             double supply, double lost, IslandEnergies& energies) {
  constexpr double kCurved = 1e-3, kScaled = 0.02, kRounding = 8.0, kLeft = 1e-12;
  constexpr double kOfTank = 1e-6, kTiny = 1e-9, kAtRest = 16.0, kStraight = 1e-7;
  constexpr int kMostTurns = 8;
  const double h = own.h;
  const Balance first = balance(from, to);
  const double slope = h * first.slope;
  // What earlier roundings have left is made up for as far as that hardly moves the state: not near rest, where it
  // may be as large as the energy of all motion.
  const double most = kOfTank * std::abs(slope);
  const double taken = model.momenta() == 0 ? from.tank_J : std::clamp(from.tank_J, -most, most);
  double expected = taken + supply - lost;
  const double level = std::abs(from.stored_J) + first.kinetic;
  const auto rounding = [&](double terms) {
    return std::numeric_limits<double>::epsilon() *
           (kRounding * (terms + std::abs(supply) + std::abs(lost)) + level);
  };
  if (model.momenta() == 0 && first.change <= taken + supply) {
    // Nothing but decays, which have no curvature to move along: what is gone was dissipated.
    lost = taken + supply - first.change;
    expected = first.change;
  }
  double missing = first.change - expected;
  if (!std::isfinite(missing) || !std::isfinite(first.size)) return false;
  const bool scales = std::abs(missing) <= kScaled * first.kinetic;
  const bool curved =
      std::abs(missing) <= kCurved * std::abs(slope) &&
      !(scales && std::abs(missing) > kTiny * std::abs(slope) && bends_little(first));
  if (std::abs(missing) > rounding(first.size)) {
    if (curved && is_plain() && std::abs(missing) > kStraight * std::abs(slope)) {
      move(to, bent_step(missing, first));
    } else if (curved) {
      move(to, -missing / slope * h);
    } else if (scales) {
      const double factor = std::sqrt(1.0 - missing / first.kinetic);
      for (double& u : to.u) u *= factor;
    } else if (!(std::abs(missing) <= kAtRest * rounding(first.size))) {
      return false;  // else at rest: the tank holds what roundings of steps add up to
    }
  }
  double size = 0.0;
  double change = energy_change(from, to, &size);
  for (int turn = 1; turn < kMostTurns && curved; ++turn) {
    missing = change - expected;
    if (!(std::abs(missing) > rounding(size))) break;
    if (turn == 1 && std::abs(first.change - expected) <= rounding(first.size)) break;
    move(to, -missing / slope * h);
    size = 0.0;
    change = energy_change(from, to, &size);
  }
  if (position_exchange) position_exchange->exchange({to.position.data()});
  const double left = expected - change;
  if (!(std::abs(left) <= kLeft * (size + std::abs(supply) + std::abs(lost) + level))) return false;
  to.tank_J = (from.tank_J - taken) + left;
  CompensatedSum all(change);
  const double fall = model.dead.decay(own.dead_kept, from.dead, to.dead);
  all.add(-fall);
  lost += fall;
  to.stored_J = from.stored_J + all.value();
  energies.changed_J += all.value();
  energies.supplied_J += supply;
  energies.dissipated_J += lost;
  energies.size_J += size + std::abs(supply) + lost;
  return true;
}

}  // namespace portwave

#include <algorithm>
#include <cmath>

#include "network/explicit/kick_drift/kick_drift_island.hpp"

namespace portwave {
namespace {
namespace kick_drift_drifts {

constexpr double kGaussWeight[3] = {5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0};
/// Of Lobatto's rule with four points: the two within.
constexpr double kLobattoPlace[2] = {0.27639320225002104, 0.72360679774997896};

/// Gauss' rule of five points on [0, 1].
constexpr double kPlace[5] = {0.046910077030668004, 0.23076534494715845, 0.5, 0.76923465505284155,
                              0.95308992296933200};
constexpr double kWeight[5] = {0.11846344252809454, 0.23931433524968324, 0.28444444444444444,
                               0.23931433524968324, 0.11846344252809454};

/// ∫₀ᵗ e^{−ρ(t−s)} g(s) ds, by Gauss' rule of five points: ρt is no more than about 1.
template <class Function>
double decayed(double rate, double t, const Function& g) {
  double sum = 0.0;
  for (int k = 0; k < 5; ++k) {
    const double s = kPlace[k] * t;
    sum += kWeight[k] * std::exp(-rate * (t - s)) * g(s);
  }
  return sum * t;
}

/// Lagrange's polynomial of the Gauss points of [0, τ].
double lagrange(int m, double tau, double s) {
  double value = 1.0;
  for (int k = 0; k < 3; ++k) {
    if (k == m) continue;
    value *= (s / tau - kick_drift::kGaussPlace[k]) /
             (kick_drift::kGaussPlace[m] - kick_drift::kGaussPlace[k]);
  }
  return value;
}

}  // namespace kick_drift_drifts
}  // namespace

using kick_drift::DecayMaps;
using kick_drift::Drift;
using kick_drift::kGaussPlace;

void KickDriftIsland::find_even_rows() {
  even.assign(at(model.decays()), 1);
  even_damping.assign(at(model.decays()), 0.0);
  for (const InputEntry& entry : model.decay_flows) even[at(entry.row)] = 0;
  for (int i = 0; i < model.decays(); ++i) {
    bool first = true;
    for (RowMatrix::InnerIterator it(model.decay_of_momenta, i); it; ++it) {
      const auto l = at(static_cast<int>(it.col()));
      const double d = model.own_damping[l];
      if (model.shared[l] != 0 || (!first && d != even_damping[at(i)])) even[at(i)] = 0;
      even_damping[at(i)] = d;
      first = false;
    }
  }
  all_even = std::ranges::all_of(even, [](char e) { return e != 0; });
}

const KickDriftIsland::Level& KickDriftIsland::level(int depth) {
  Level& own = levels[at(depth)];
  if (!own.drifts.empty()) return own;
  own = {};
  own.h = std::ldexp(step_s, -depth);
  for (int k = 0; k < scheme.drift_kinds(); ++k) {
    own.drifts.push_back(drift_of(own.h * scheme.drifts[at(k)]));
  }
  own.dead_kept = model.dead.kept(own.h);
  return own;
}

Drift KickDriftIsland::drift_of(double tau) const {
  Drift drift;
  drift.tau = tau;
  if (model.has_own) {
    for (int l = 0; l < model.momenta(); ++l) {
      const double d = model.own_damping[at(l)];
      drift.psi.push_back(d == 0.0 ? tau : -std::expm1(-d * tau) / d);
      drift.factor.push_back(std::exp(-d * tau));
      drift.lost.push_back(-0.5 * model.mass[at(l)] * std::expm1(-2.0 * d * tau));
    }
  }
  if (model.decays() == 0) return drift;
  drift.end = decay_maps(tau, tau, std::vector<char>(even.size(), 1));
  if (!all_even) {
    std::vector<char> uneven(even.size());
    for (std::size_t i = 0; i < even.size(); ++i) uneven[i] = even[i] != 0 ? 0 : 1;
    for (int g = 0; g < 2; ++g) {
      drift.within[g] = decay_maps(tau, kick_drift_drifts::kLobattoPlace[g] * tau, uneven);
    }
  }
  for (int i = 0; i < model.decays(); ++i) even_energy(i, tau, drift);
  return drift;
}

DecayMaps KickDriftIsland::decay_maps(double tau, double t, const std::vector<char>& rows) const {
  DecayMaps maps;
  const int terms = 1 + (model.has_shared ? model.degree : 0);
  for (int k = 0; k < terms; ++k) {
    RowMatrix m = model.decay_of_momenta;
    double factorial = 1.0;
    for (int j = 2; j <= k; ++j) factorial *= j;
    for (int i = 0; i < m.outerSize(); ++i) {
      for (RowMatrix::InnerIterator it(m, i); it; ++it) {
        const auto l = at(static_cast<int>(it.col()));
        const bool is_shared = model.shared[l] != 0;
        const double d = model.own_damping[l];
        it.valueRef() *=
            k > 0 && !is_shared
                ? 0.0
                : kick_drift_drifts::decayed(model.decay_rate[at(i)], t, [&](double s) {
                    return is_shared ? std::pow(-s, k) / factorial : std::exp(-d * s);
                  });
      }
    }
    m.prune(0.0);
    maps.of_terms.push_back(StrokeMap::of_rows(m, rows));
  }
  for (int i = 0; i < model.decays(); ++i) {
    maps.kept.push_back(std::exp(-model.decay_rate[at(i)] * t));
  }
  for (const InputEntry& entry : model.decay_flows) {
    std::array<double, 3> share{};
    for (int m = 0; m < 3; ++m) {
      share[at(m)] = entry.value *
                     kick_drift_drifts::decayed(model.decay_rate[at(entry.row)], t, [&](double s) {
                       return kick_drift_drifts::lagrange(m, tau, s);
                     });
    }
    maps.flows.push_back(share);
  }
  return maps;
}

void KickDriftIsland::even_energy(int i, double tau, Drift& drift) const {
  const double rate = model.decay_rate[at(i)], d = even_damping[at(i)];
  const auto phi = [&](double t) {
    return kick_drift_drifts::decayed(rate, t, [d](double s) { return std::exp(-d * s); });
  };
  double sums[3] = {};
  for (int k = 0; k < 5; ++k) {
    const double t = kick_drift_drifts::kPlace[k] * tau;
    const double beta = phi(t) / phi(tau);
    const double alpha = std::exp(-rate * t) - beta * std::exp(-rate * tau);
    const double weight = kick_drift_drifts::kWeight[k] * tau * rate * model.decay_stiffness[at(i)];
    sums[0] += weight * alpha * alpha;
    sums[1] += 2.0 * weight * alpha * beta;
    sums[2] += weight * beta * beta;
  }
  const double is_even = even[at(i)] != 0 ? 1.0 : 0.0;
  drift.energy_00.push_back(is_even * sums[0]);
  drift.energy_01.push_back(is_even * sums[1]);
  drift.energy_11.push_back(is_even * sums[2]);
}

void KickDriftIsland::supply_efforts(int stage, double tau, int k, const double* u) {
  for (const InputEntry& entry : model.effort_power) {
    const bool is_shared = model.shared[at(entry.row)] != 0;
    if (k > 0 && !is_shared) continue;
    supplied.add(entry.value * u[at(entry.row)] *
                 moment(entry.input, stage, tau, k, model.own_damping[at(entry.row)]));
  }
}

double KickDriftIsland::moment(int input, int stage, double tau, int k, double damping) const {
  double sum = 0.0;
  for (int g = 0; g < 3; ++g) {
    const double t = kGaussPlace[g] * tau;
    double share = kick_drift_drifts::kGaussWeight[g] * gauss_value(input, stage, g);
    for (int j = 1; j <= k; ++j) share *= -t / j;
    if (damping != 0.0) share *= std::exp(-damping * t);
    sum += share;
  }
  return sum * tau;
}

void KickDriftIsland::drift(IslandState& to, const IslandState& from, int stage, const Level& own) {
  const Drift& d = own.drifts[at(scheme.drift_kind(stage))];
  const bool is_middle = 2 * stage + 1 == scheme.stages();
  supply_efforts(stage, d.tau, 0, to.u.data());
  if (model.decays() > 0) begin_decays(from, to, stage, d);
  if (model.has_shared) {
    if (model.lumped && !is_middle && model.effort_power.empty()) {
      dissipated.add(momentum_rows.sum([&](int block) {
        StrokeTask task = stroke_task(to, d);
        task.map = model.damping_map.view(block);
        return kernels.stroke(task);
      }));
    } else if (model.lumped) {
      lumped_drift(to, stage, d, is_middle, own.h);
    } else {
      drift_by_series(to, stage, d);
    }
  }
  dissipated.add(momentum_rows.sum([&](int block) {
    CompensatedSum lost;
    drift_alone(to, d, ranges_alone(block), lost);
    return lost.value();
  }));
  if (model.decays() > 0) end_decays(d);
  for (int f = 0; f < static_cast<int>(model.flows.size()); ++f) {
    strokes[at(model.momenta() + f)] += moment(model.flows[at(f)], stage, d.tau, 0, 0.0);
  }
}

void KickDriftIsland::lumped_drift(IslandState& to, int stage, const Drift& d, bool is_middle,
                                   double h) {
  kernels.apply(model.damping_map.view(), to.u.data(), term.data());
  const double cubes_s3 = is_middle ? scheme.cubes * h * h * h : 0.0;
  // Elsewhere it counts for nothing, and must not be what an attempt left that overflowed.
  std::ranges::fill(next_term, 0.0);
  if (is_middle) kernels.apply(model.damping_map.view(), term.data(), next_term.data());
  supply_efforts(stage, d.tau, 1, term.data());
  if (is_middle) {
    for (const InputEntry& entry : model.effort_power) {
      if (model.shared[at(entry.row)] == 0) continue;
      supplied.add(cubes_s3 / 6.0 * entry.value * next_term[at(entry.row)] *
                   gauss_value(entry.input, stage, 1));
    }
  }
  for (const auto& [first, last] : shared_ranges)
    lump(to, d, cubes_s3, first, last, 0.0, dissipated);
}

void KickDriftIsland::drift_by_series(IslandState& to, int stage, const Drift& d) {
  double factor = d.tau;
  for_shared([&](int i) {
    term[at(i)] = to.u[at(i)];
    w[at(i)] = factor * to.u[at(i)];
  });
  const double* before = to.u.data();
  for (int k = 1; k <= model.degree; ++k) {
    kernels.apply(model.damping_map.view(), before, next_term.data());
    factor *= -d.tau / (k + 1);
    for_shared([&](int i) { w[at(i)] += factor * next_term[at(i)]; });
    supply_efforts(stage, d.tau, k, next_term.data());
    if (model.decays() > 0) add_decay_terms(d, k, next_term.data());
    term.swap(next_term);
    before = term.data();
  }
  // 𝒟 of a row may reach momenta without a damper; their stroke is τu.
  for (const auto& [first, last, is_uniform] : other_ranges) {
    for (int i = first; i < last; ++i) w[at(i)] = d.tau * to.u[at(i)];
  }
  kernels.apply(model.damping_map.view(), w.data(), given.data());
  CompensatedSum lost;
  if (model.has_diagonal_mass) {
    for_shared([&](int i) {
      lost.add(model.mass[at(i)] * given[at(i)] * (to.u[at(i)] - 0.5 * given[at(i)]));
    });
  } else {
    for_shared([&](int i) {
      for (RowMatrix::InnerIterator it(model.W, i); it; ++it) {
        const auto j = at(static_cast<int>(it.col()));
        const double change = model.shared[j] != 0 ? given[j] : 0.0;
        lost.add(given[at(i)] * it.value() * (to.u[j] - 0.5 * change));
      }
    });
  }
  dissipated.add(lost.value());
  for_shared([&](int i) {
    to.u[at(i)] -= given[at(i)];
    strokes[at(i)] += w[at(i)];
  });
}

void KickDriftIsland::begin_decays(const IslandState& from, const IslandState& to, int stage,
                                   const Drift& d) {
  const auto begin = [&](const DecayMaps& maps, Array& q) {
    kernels.relax({.count = model.decays(),
                   .start = from.decaying.data(),
                   .increments = strokes.data() + model.strokes(),
                   .kept = maps.kept.data(),
                   .before = decay_before.data(),
                   .after = q.data()});
    kernels.add(maps.of_terms[0].view(), to.u.data(), 1.0, q.data());
    for (std::size_t k = 0; k < maps.flows.size(); ++k) {
      const InputEntry& entry = model.decay_flows[k];
      for (int m = 0; m < 3; ++m) {
        q[at(entry.row)] += maps.flows[k][at(m)] * gauss_value(entry.input, stage, m);
      }
    }
  };
  begin(d.end, decay_after);
  if (all_even) return;
  for (int g = 0; g < 2; ++g) begin(d.within[g], decay_within[g]);
}

void KickDriftIsland::add_decay_terms(const Drift& d, int k, const double* term_k) {
  kernels.add(d.end.of_terms[at(k)].view(), term_k, 1.0, decay_after.data());
  if (all_even) return;
  for (int g = 0; g < 2; ++g) {
    kernels.add(d.within[g].of_terms[at(k)].view(), term_k, 1.0, decay_within[g].data());
  }
}

void KickDriftIsland::end_decays(const Drift& d) {
  const std::size_t nd = at(model.decays());
  dissipated.add(kernels.relaxed({.count = model.decays(),
                                  .before = decay_before.data(),
                                  .after = decay_after.data(),
                                  .energy_00 = d.energy_00.data(),
                                  .energy_01 = d.energy_01.data(),
                                  .energy_11 = d.energy_11.data(),
                                  .increments = strokes.data() + model.strokes()}));
  if (all_even) return;
  CompensatedSum lost;
  for (std::size_t i = 0; i < nd; ++i) {
    if (even[i] != 0) continue;
    const double squares =
        (decay_before[i] * decay_before[i] + decay_after[i] * decay_after[i]) +
        5.0 * (decay_within[0][i] * decay_within[0][i] + decay_within[1][i] * decay_within[1][i]);
    lost.add(d.tau / 12.0 * model.decay_rate[i] * model.decay_stiffness[i] * squares);
  }
  dissipated.add(lost.value());
}

}  // namespace portwave

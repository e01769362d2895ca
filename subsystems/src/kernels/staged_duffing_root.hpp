#pragma once

#include "kernels/staged_duffing_kernels.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

// The equations of the stages of Duffing parts, and their solution by Newton's method.

namespace portwave::PORTWAVE_ISA {
namespace {

using staged_duffing::Rule;

/// The equations of W parts: what a solve is given, and what it solves for.
template <int W, int kStages>
struct StagedRoot {
  using V = Vec<W>;
  static constexpr int kNodes = 2 * kStages;

  /// Relative error of a root that counts as round-off.
  static constexpr double kRoundOff = 1e-17;
  /// A Newton step that leaves more than this of the one before it leads nowhere.
  static constexpr double kContraction = 0.5;
  /// After them a lane is left to the damped iteration.
  static constexpr int kMostSteps = 25;

  const Rule& rule;
  V k3;
  V L[kStages * kStages];
  V p[kNodes];                   ///< X at the nodes, at d
  V R[kStages];                  ///< residual at d
  V d[kStages];                  ///< the unknown
  V inverse[kStages * kStages];  ///< of the Jacobian, near d

  [[gnu::always_inline]] static V all(double value) { return V::all(value); }

  [[gnu::always_inline]] static V norm(const V* x) {
    V sum = abs(x[0]);
    for (int i = 1; i < kStages; ++i) sum = sum + abs(x[i]);
    return sum;
  }

  /// delta = inverse · R
  [[gnu::always_inline]] void step(V* delta) const {
    for (int i = 0; i < kStages; ++i) {
      V sum = inverse[kStages * i] * R[0];
      for (int j = 1; j < kStages; ++j) sum = fma(inverse[kStages * i + j], R[j], sum);
      delta[i] = sum;
    }
  }

  /// What X moves by at node k when d does by delta.
  [[gnu::always_inline]] V moved(int k, const V* delta) const {
    V sum = all(rule.reach[k][0]) * delta[0];
    for (int j = 1; j < kStages; ++j) sum = fma(all(rule.reach[k][j]), delta[j], sum);
    return sum;
  }

  /// p and R at d − delta. The change of R is formed from delta, so that rounding leaves in it a part of
  /// that change and no more, and steps go on shrinking until nothing is left.
  [[gnu::always_inline]] void move(const V* delta) {
    V cubic[kStages];
    for (int k = 0; k < kNodes; ++k) {
      const V m = moved(k, delta);
      const V next = p[k] - m;
      // p³ − (p − m)³
      const V change = m * fma(p[k], p[k] + next, next * next);
      p[k] = next;
      for (int i = 0; i < kStages; ++i) {
        cubic[i] = k == 0 ? all(rule.weight[i][k]) * change
                          : fma(all(rule.weight[i][k]), change, cubic[i]);
      }
    }
    for (int i = 0; i < kStages; ++i) {
      V change = k3 * cubic[i];
      for (int j = 0; j < kStages; ++j) change = fma(L[kStages * i + j], delta[j], change);
      R[i] = R[i] - change;
    }
  }

  /// The inverse of the Jacobian at p.
  [[gnu::always_inline]] void invert(V* out) const {
    V J[kStages * kStages];
    V square[kNodes];
    for (int k = 0; k < kNodes; ++k) square[k] = p[k] * p[k];
    for (int i = 0; i < kStages; ++i) {
      for (int j = 0; j < kStages; ++j) {
        V sum = all(rule.slope[i][j][0]) * square[0];
        for (int k = 1; k < kNodes; ++k) sum = fma(all(rule.slope[i][j][k]), square[k], sum);
        J[kStages * i + j] = fma(k3, sum, L[kStages * i + j]);
      }
    }
    if constexpr (kStages == 2) {
      const V det = fma(J[0], J[3], negate(J[1] * J[2]));
      const V scale = all(1.0) / det;
      out[0] = J[3] * scale;
      out[1] = negate(J[1]) * scale;
      out[2] = negate(J[2]) * scale;
      out[3] = J[0] * scale;
    } else {
      const auto minor = [&](int i, int j, int k, int l) {
        return fma(J[i], J[j], negate(J[k] * J[l]));
      };
      const V cofactor[9] = {minor(4, 8, 5, 7), minor(2, 7, 1, 8), minor(1, 5, 2, 4),
                             minor(5, 6, 3, 8), minor(0, 8, 2, 6), minor(2, 3, 0, 5),
                             minor(3, 7, 4, 6), minor(1, 6, 0, 7), minor(0, 4, 1, 3)};
      const V det = fma(J[0], cofactor[0], fma(J[1], cofactor[3], J[2] * cofactor[6]));
      const V scale = all(1.0) / det;
      for (int i = 0; i < 9; ++i) out[i] = cofactor[i] * scale;
    }
  }

  /// Newton's method with one Jacobian for as long as that will do. Steps by one Jacobian shrink at a
  /// constant rate at the least, which says what error a step leaves. A lane stops on its own test,
  /// whatever the others do. Fills `open`: 0 where a lane was solved, 1 where it was not.
  [[gnu::always_inline]] void solve(V& open) {
    const V one = all(1.0), zero = all(0.0);
    V delta[kStages], ahead[kStages], end[kStages];
    step(delta);
    const V first = norm(delta);
    V length = first;
    V fresh = zero;  // 1 where the Jacobian is that of the start of the step
    V lost = zero;   // 1 where a step has led nowhere
    open = one;
    for (int n = 0; n < kMostSteps; ++n) {
      move(delta);
      step(ahead);
      V left = norm(ahead);
      for (int i = 0; i < kStages; ++i) {
        delta[i] = d[i] - delta[i];
        end[i] = delta[i] - ahead[i];
      }
      const V enough = all(kRoundOff) * (norm(end) + first);
      const V error = left * left, bound = enough * length;
      for (int i = 0; i < kStages; ++i) {
        d[i] = where_at_most(open, zero, d[i], where_at_most(error, bound, end[i], delta[i]));
      }
      open = where_at_most(error, bound, zero, open);
      if (all_at_most(open, zero)) break;

      // A new Jacobian where this one would need more than two steps more.
      const V too_slow = where_at_most(error * error, bound * length * length, zero, one);
      lost = where_at_most(left, all(kContraction) * length, lost,
                           where_at_most(fresh, zero, lost, one));
      open = where_at_most(lost, zero, open, zero);
      if (all_at_most(open, zero)) break;
      fresh = zero;
      if (!all_at_most(where_at_most(open, zero, zero, too_slow), zero)) {
        V better[kStages * kStages];
        invert(better);
        for (int i = 0; i < kStages * kStages; ++i) {
          inverse[i] = where_at_most(open, zero, inverse[i],
                                     where_at_most(too_slow, zero, inverse[i], better[i]));
        }
        fresh = too_slow;
        step(ahead);
        left = norm(ahead);
      }
      for (int i = 0; i < kStages; ++i) delta[i] = ahead[i];
      length = left;
    }
    open = where_at_most(lost, zero, open, one);
  }
};

/// Newton's method from d = 0 whose steps are halved until the next step, by the same Jacobian,
/// becomes shorter. For the lanes that the plain one loses: steps far beyond the period of a hard
/// spring. `root` stands at d = 0.
template <int kStages>
[[gnu::noinline]] bool solve_damped(StagedRoot<1, kStages>& root) {
  using Root = StagedRoot<1, kStages>;
  using V = Vec<1>;
  constexpr int kMostDampedSteps = 200, kMostHalvings = 40;
  V first = V::all(0.0);
  for (int n = 0; n < kMostDampedSteps; ++n) {
    V delta[kStages];
    root.invert(root.inverse);
    root.step(delta);
    const V length = Root::norm(delta);
    if (!(length.part <= 1e300)) return false;  // no number
    if (n == 0) first = length;
    bool shorter = false;
    double share = 1.0;
    for (int halvings = 0; halvings < kMostHalvings && !shorter; ++halvings, share *= 0.5) {
      Root trial = root;
      V part[kStages], ahead[kStages];
      for (int i = 0; i < kStages; ++i) part[i] = V::all(share) * delta[i];
      trial.move(part);
      trial.step(ahead);
      const V left = Root::norm(ahead);
      shorter = left.part <= (1.0 - 0.25 * share) * length.part;
      if (!shorter) continue;
      for (int i = 0; i < kStages; ++i) trial.d[i] = root.d[i] - part[i];
      for (int i = 0; i < kStages; ++i) root.d[i] = trial.d[i];
      for (int i = 0; i < kStages; ++i) root.R[i] = trial.R[i];
      for (int k = 0; k < Root::kNodes; ++k) root.p[k] = trial.p[k];
      if (share == 1.0 && left.part * left.part <=
                              Root::kRoundOff * (Root::norm(root.d) + first).part * length.part) {
        for (int i = 0; i < kStages; ++i) root.d[i] = root.d[i] - ahead[i];
        return true;
      }
    }
    if (!shorter) return false;
  }
  return false;
}

}  // namespace
}  // namespace portwave::PORTWAVE_ISA

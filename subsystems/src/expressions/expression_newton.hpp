#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/least_terms.hpp"
#include "base/workspace.hpp"
#include "expressions/expression_maps.hpp"
#include "expressions/lane_row.hpp"
#include "expressions/split_energy.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

/// What Newton's method works on, for a lane group.
template <int W>
struct IncrementSolve {
  static constexpr int kMostBent = 4;  ///< states by which ∇²H changes

  double y[kMostBent * W], delta[kMostBent * W], mean[kMostBent * W], noise[kMostBent * W];
  double jacobian[kMostBent * kMostBent * W];
  double known[kMostBent * W],
      known_size[kMostBent * W];  // δ but for V̄, and the size of its terms
  bool is_done[W];
  bool fails[W];
};

/// Newton's method on the increments δ of the bent states of a lane group, from the step linearised at x, and what
/// takes its place where there is one: see make_expression_batch.
class ExpressionNewton {
 public:
  static constexpr int kMostBent = IncrementSolve<1>::kMostBent;

  /// Both must outlive it.
  ExpressionNewton(const SplitEnergy& energy, const ExpressionMaps& maps, int ports)
      : energy_(energy), maps_(maps), p_(ports), r_(static_cast<int>(energy.bent().size())) {}

  /// Below, all places are those of a lane group in its record and in its coefficients. The bent states of x.
  template <int W>
  void gather(const double* x, double* y) const {
    for (int k = 0; k < r_; ++k) Row<W>::put(y, k, Row<W>::at(x, energy_.bent()[at(k)]));
  }

  /// Fills `s`; lanes that come to nothing fail. `warm`: from the last δ in the record, where there is one.
  template <int W>
  void find_increments(double* own, const double* coefficient, const double* waves, int lanes_used,
                       bool warm, IncrementSolve<W>& s) const {
    gather<W>(own + maps_.state * W, s.y);
    for (int k = 0; k < r_; ++k) {
      const int i = energy_.bent()[at(k)];
      LaneValues<W> sum = Row<W>::at(own, maps_.offset + i), size = abs(sum);
      for (int j = 0; j < p_; ++j) {
        const LaneValues<W> term =
            Row<W>::at(coefficient, maps_.of_wave.entry(i, j)) * Row<W>::at(waves, j);
        sum += term;
        size += abs(term);
      }
      Row<W>::put(s.known, k, sum);
      Row<W>::put(s.known_size, k, size);
    }
    predict<W>(own, coefficient, s);
    for (int l = 0; l < W; ++l) {
      s.is_done[l] = l >= lanes_used;
      s.fails[l] = false;
      if (!warm || std::isnan(own[maps_.warm * W + l])) continue;
      for (int k = 0; k < r_; ++k) s.delta[k * W + l] = own[(maps_.warm + k) * W + l];
    }
    iterate<W>(own, coefficient, s);
    if (!warm) return;
    for (int l = 0; l < W; ++l) {
      constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
      for (int k = 0; k < r_; ++k) {
        own[(maps_.warm + k) * W + l] = s.fails[l] ? kNone : s.delta[k * W + l];
      }
    }
  }

  /// A lane from a δ that is nearly right. False, and nothing has changed, where that is as good as can be found.
  template <int W>
  bool polish(const double* own, const double* coefficient, const double* delta, int l,
              IncrementSolve<W>& s) const {
    IncrementSolve<W> next = s;
    std::fill_n(next.is_done, W, true);
    next.is_done[l] = next.fails[l] = false;
    for (int k = 0; k < r_; ++k) next.delta[k * W + l] = delta[k];
    iterate<W>(own, coefficient, next);
    if (next.fails[l]) return false;
    for (int k = 0; k < r_; ++k) {
      s.delta[k * W + l] = next.delta[k * W + l];
      s.mean[k * W + l] = next.mean[k * W + l];
    }
    return true;
  }

  /// One equation δ = known + gain V̄: what rounding leaves of it is taken for one of V̄ where δ is the small difference
  /// of the two others. The energy that it moves is smaller then: δ times that, in place of V̄ times that of δ.
  template <int W>
  void settle(const double* coefficient, int l, IncrementSolve<W>& s) const {
    const double gain = coefficient[maps_.of_mean.entry(energy_.bent()[0], 0) * W + l];
    if (std::abs(s.delta[l]) < std::abs(gain * s.mean[l])) {
      s.mean[l] = (s.delta[l] - s.known[l]) / gain;
    }
  }

  /// One equation, where Newton's method runs to and fro between the swings of a sine: its root is between a δ
  /// with F < 0 and one with F > 0. Looked for from the step without V̄ on, ever farther out on both sides; then
  /// by Newton's method where it stays between the two, else by halves.
  template <int W>
  bool solve_bracketed(const double* own, const double* coefficient, int l,
                       IncrementSolve<W>& s) const {
    detail::Workspace room(energy_.scratch_size(1));
    const double gain = coefficient[maps_.of_mean.entry(energy_.bent()[0], 0) * W + l];
    const double y = s.y[l], known = s.known[l], V_before = own[maps_.V * W + l];
    double mean = 0.0, slope = 0.0, noise = 0.0, size = 0.0;
    const auto residual = [&](double delta) {
      energy_.mean<1>(&y, &delta, &V_before, &mean, &slope, &noise, room.data());
      const double F = delta - known - gain * mean;
      const double terms = std::abs(delta) + s.known_size[l] +
                           std::abs(gain) * (std::abs(mean) + noise) + kLeastTerms;
      size = F == 0.0 ? 0.0 : std::abs(F) / terms;
      return F;
    };
    // Where V has no value there is a wall, beyond which F is taken to lead back.
    const auto residual_or_wall = [&](double delta) {
      const double F = residual(delta);
      return std::isfinite(F) ? F : std::copysign(std::numeric_limits<double>::infinity(), delta);
    };
    double low = known, high = known;
    double F_low = residual_or_wall(low), F_high = F_low;
    double reach = std::isfinite(F_low) ? std::abs(F_low) : std::abs(known);
    for (int k = 0; k < kMostDoublings && !(F_low <= 0.0 && F_high >= 0.0); ++k, reach *= 2.0) {
      if (F_low > 0.0) F_low = residual_or_wall(low = known - reach);
      if (F_high < 0.0) F_high = residual_or_wall(high = known + reach);
    }
    if (!(F_low <= 0.0 && F_high >= 0.0)) return false;
    double delta = 0.5 * (low + high);
    for (int k = 0; k < kMostBisections; ++k) {
      const double F = residual_or_wall(delta);
      s.delta[l] = delta;
      s.mean[l] = mean;
      if (F == 0.0) return true;
      (F > 0.0 ? high : low) = delta;
      const double newton = delta - F / (1.0 - gain * slope);
      const double middle = 0.5 * (low + high);
      const bool is_within = k % 2 == 0 && newton > low && newton < high;
      delta = is_within ? newton : middle;
      if (delta == low || delta == high) break;
    }
    return size <= kStagnation;
  }

 private:
  static constexpr int kMostNewtonSteps = 12;
  static constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  /// As in LaneSolver: a residual that is round-off; one from which a step that does not gain a factor 4 is the last.
  static constexpr double kRoundOff = 4.0 * kEpsilon;
  static constexpr double kStagnation = 1e-12;
  /// Of a bracket around the root of one equation.
  static constexpr int kMostDoublings = 60, kMostBisections = 400;

  double N(const double* coefficient, int row, int k, int l, int W) const {
    return coefficient[maps_.of_mean.entry(energy_.bent()[at(row)], k) * W + l];
  }

  /// δ of the step linearised at x: (I − ½N∇²V)δ = known + N∇V.
  template <int W>
  void predict(const double* own, const double* coefficient, IncrementSolve<W>& s) const {
    const double* const slopes = own + maps_.bent_slope * W;
    const double* curvature = slopes + r_ * W;
    const double share = maps_.is_one ? 1.0 : 0.5;
    for (int j = 0; j < r_; ++j) {
      for (int i = j; i < r_; ++i, curvature += W) {
        for (int l = 0; l < W; ++l) {
          s.jacobian[(j * r_ + i) * W + l] = s.jacobian[(i * r_ + j) * W + l] =
              share * curvature[l];
        }
      }
    }
    double right[kMostBent * W];
    for (int k = 0; k < r_; ++k) {
      for (int l = 0; l < W; ++l) {
        double sum = s.known[k * W + l];
        for (int j = 0; j < r_; ++j) sum += N(coefficient, k, j, l, W) * slopes[j * W + l];
        right[k * W + l] = sum;
      }
    }
    solve_linear<W>(coefficient, s.jacobian, right, s.delta);
  }

  /// (I − N·jacobian) out = right, lane by lane, with pivots.
  template <int W>
  void solve_linear(const double* coefficient, const double* jacobian, const double* right,
                    double* out) const {
    if (r_ == 1) {
      const double* const gain = coefficient + maps_.of_mean.entry(energy_.bent()[0], 0) * W;
      for (int l = 0; l < W; ++l) out[l] = right[l] / (1.0 - gain[l] * jacobian[l]);
      return;
    }
    for (int l = 0; l < W; ++l) {
      double M[kMostBent][kMostBent + 1];
      for (int i = 0; i < r_; ++i) {
        for (int j = 0; j < r_; ++j) {
          M[i][j] = i == j ? 1.0 : 0.0;
          for (int k = 0; k < r_; ++k) {
            M[i][j] -= N(coefficient, i, k, l, W) * jacobian[(j * r_ + k) * W + l];
          }
        }
        M[i][r_] = right[i * W + l];
      }
      for (int c = 0; c < r_; ++c) {
        int pivot = c;
        for (int i = c + 1; i < r_; ++i) {
          if (std::abs(M[i][c]) > std::abs(M[pivot][c])) pivot = i;
        }
        std::swap(M[c], M[pivot]);
        for (int i = c + 1; i < r_; ++i) {
          const double factor = M[i][c] / M[c][c];
          for (int j = c; j <= r_; ++j) M[i][j] -= factor * M[c][j];
        }
      }
      for (int i = r_ - 1; i >= 0; --i) {
        double sum = M[i][r_];
        for (int j = i + 1; j < r_; ++j) sum -= M[i][j] * out[j * W + l];
        out[i * W + l] = sum / M[i][i];
      }
    }
  }

  /// A lane is done, or fails, by its own numbers alone, and its δ stays then.
  template <int W>
  void iterate(const double* own, const double* coefficient, IncrementSolve<W>& s) const {
    detail::Workspace room(energy_.scratch_size(W));
    double residual[kMostBent * W], step[kMostBent * W], before[W];
    double last_delta[kMostBent * W], last_mean[kMostBent * W];
    bool was_rounding[W] = {};
    std::fill(before, before + W, std::numeric_limits<double>::infinity());
    for (int k = 0; k <= kMostNewtonSteps; ++k) {
      energy_.mean<W>(s.y, s.delta, own + maps_.V * W, s.mean, s.jacobian, s.noise, room.data());
      double size[W], beside_terms[W];
      std::fill(size, size + W, 0.0);
      std::fill(beside_terms, beside_terms + W, 0.0);
      for (int i = 0; i < r_; ++i) {
        LaneValues<W> F = Row<W>::at(s.delta, i), w = abs(F), unknown = LaneValues<W>::all(0.0);
        F -= Row<W>::at(s.known, i);
        w += Row<W>::at(s.known_size, i);
        for (int j = 0; j < r_; ++j) {
          const LaneValues<W> gain =
              Row<W>::at(coefficient, maps_.of_mean.entry(energy_.bent()[at(i)], j));
          const LaneValues<W> term = gain * Row<W>::at(s.mean, j);
          F -= term;
          w += abs(term);
          unknown += abs(gain) * Row<W>::at(s.noise, j);
        }
        double weight[W], noise[W];
        w.to(weight);
        unknown.to(noise);
        F.to(residual + i * W);
        for (int l = 0; l < W; ++l) {
          const double value = std::abs(residual[i * W + l]);
          const auto take = [value](double terms, double& largest) {
            const double share = value == 0.0 ? 0.0 : value / (terms + kLeastTerms);
            largest = share <= largest ? largest : share;  // NaN counts as larger
          };
          take(weight[l] + noise[l], size[l]);
          take(weight[l], beside_terms[l]);
        }
      }
      bool all = true;
      for (int l = 0; l < W; ++l) {
        if (s.is_done[l]) continue;
        // What roundings may have moved is a bound, which changes from step to step: as long as these gain much, more is
        // known.
        const bool gains = beside_terms[l] <= 0.25 * before[l];
        const bool improves = beside_terms[l] < before[l];
        const bool is_last = !gains && was_rounding[l];
        was_rounding[l] = size[l] <= kStagnation;
        s.is_done[l] = beside_terms[l] <= kRoundOff || is_last ||
                       (k == kMostNewtonSteps && size[l] <= kRoundOff);
        if (is_last && !improves) {
          for (int i = 0; i < r_; ++i) {
            s.delta[i * W + l] = last_delta[i * W + l];
            s.mean[i * W + l] = last_mean[i * W + l];
          }
        }
        s.fails[l] =
            !s.is_done[l] && (!improves || k == kMostNewtonSteps || !std::isfinite(size[l]));
        s.is_done[l] = s.is_done[l] || s.fails[l];
        all = all && s.is_done[l];
        before[l] = beside_terms[l];
      }
      if (all) return;
      solve_linear<W>(coefficient, s.jacobian, residual, step);
      for (int i = 0; i < r_; ++i) {
        for (int l = 0; l < W; ++l) {
          last_mean[i * W + l] = s.mean[i * W + l];
          last_delta[i * W + l] = s.delta[i * W + l];
          if (!s.is_done[l]) s.delta[i * W + l] -= step[i * W + l];
        }
      }
    }
  }

  const SplitEnergy& energy_;
  const ExpressionMaps& maps_;
  int p_, r_;
};

}  // namespace portwave

// The guard's last resort: â scaled towards zero.

#include <algorithm>
#include <cmath>

#include "portwave/coupling/energy/guard.hpp"

namespace portwave {

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

void PassivityGuard::begin_scaling(Search& search) {
  search.path = Path::scaling;
  search.psi_previous = search.psi_full;
  search.bound = 1.0 + 0.5 * std::min(search.psi_full, 0.0) / search.incident;  // ψ' ≥ −2|â|
  if (is_affine(search)) {
    search.closed_form = true;
    search.alpha = linear_scaling(search);
  } else {
    search.slope = -search.incident;  // as if S did not depend on α
    choose_next(search, search.psi_full);
  }
  if (search.most == 1.0) return;
  search.bound = std::min(search.bound, search.most);
  search.alpha = std::min(search.alpha, search.most);
}

/// ψ(α) = √(|S(αâ)|² + 2T) − α|â|, `square` being |S(αâ)|².
double PassivityGuard::psi(const Search& search, double square) const {
  return std::sqrt(std::max(square + 2.0 * search.tank, 0.0)) - search.alpha * search.incident;
}

/// The root of the secant through the last point, and a little further to the feasible side.
void PassivityGuard::choose_next(Search& search, double value) const {
  double root = search.alpha - value / search.slope;
  if (!std::isfinite(root)) root = search.bound;
  root = std::min(root, search.bound);
  double next = root - 0.5 * kExcess * (1.0 - root);
  // If all of this is round-off, by ever longer steps.
  const double clear = std::ldexp(std::numeric_limits<double>::epsilon(), search.trials);
  next = std::min(next, search.infeasible - clear);
  const double lowest = std::max(search.best, 0.0);
  if (!(next > lowest)) next = 0.5 * (lowest + search.bound);
  search.alpha = std::clamp(next, 0.0, 1.0);
}

/// Takes in a trial. True when it stands; otherwise search.alpha is the next commit.
bool PassivityGuard::settle_scaling(Search& search, bool feasible, double value) {
  ++search.trials;
  if (feasible && search.closed_form) return true;
  search.closed_form = false;  // round-off: a little less will do
  const double change = value - search.psi_previous;
  const double slope = change / (search.alpha - search.previous);
  search.previous = search.alpha;
  search.psi_previous = value;
  // −2|â| ≤ ψ' ≤ 0 if S is nonexpansive; a flat slope must exceed the error of port solves.
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

/// After an infeasible commit, `last_alpha` if it was scaled, where time is short.
void PassivityGuard::shorten(Search& search, double last_alpha) {
  if (search.last) return;
  if (search.path != Path::scaling) {
    search.gap = kMissed;
    begin_scaling(search);
  }
  if (++search.hurried > kHurriedTrials) return choose_last(search);
  search.alpha = std::clamp(1.0 - 2.0 * (1.0 - last_alpha), 0.0, search.alpha);
}

/// The best feasible α, or the one that needs no trial.
void PassivityGuard::choose_last(Search& search) const {
  search.last = true;
  search.alpha =
      search.best >= 0.0
          ? search.best
          : std::min(search.most, std::sqrt(2.0 * std::max(search.tank, 0.0)) / search.incident);
}

}  // namespace portwave

// The floor of `expressions_beside_mujoco.py`: many pendula by a loop that one would write by hand, each step by
// the discrete gradient of H = p²/(2J) + w(1 − cos q), which conserves H where nothing damps:
//   q⁺ = q + h v,  p⁺ = p + h(u − c v − w (cos q − cos q⁺)/(q⁺ − q)),  v = (p + p⁺)/(2J).
// One unknown, by Newton's method with its exact derivative. The script compiles it.

#include <cmath>

namespace {

/// sin(x)/x and its derivative.
struct Sinc {
  double value, slope;
};

Sinc sinc(double x) {
  if (std::abs(x) < 1e-3) return {1.0 - x * x / 6.0, -x / 3.0};
  const double s = std::sin(x), c = std::cos(x);
  return {s / x, (c - s / x) / x};
}

}  // namespace

extern "C" {

/// Advances `count` pendula by `steps`: x holds (q, p) of each, u a torque that is held. Returns the most
/// Newton steps that one took.
int pendulum_loop(long count, long steps, double h, double J, double w, double c, const double* u,
                  double* x) {
  int most = 0;
  for (long step = 0; step < steps; ++step) {
    for (long i = 0; i < count; ++i) {
      double* const own = x + 2 * i;
      const double q = own[0], p = own[1];
      double v = p / J;
      int k = 0;
      for (; k < 20; ++k) {
        // (cos q − cos q⁺)/(q⁺ − q) = sin(q + hv/2) sinc(hv/2)
        const double half = 0.5 * h * v;
        const Sinc shape = sinc(half);
        const double s = std::sin(q + half), co = std::cos(q + half);
        const double F = 2.0 * (J * v - p) - h * (u[i] - c * v - w * s * shape.value);
        const double slope =
            2.0 * J + h * c + h * w * 0.5 * h * (co * shape.value + s * shape.slope);
        const double change = F / slope;
        v -= change;
        if (std::abs(change) <= 4e-16 * std::abs(v) + 1e-300) break;
        if (k > 2 && std::abs(change) <= 1e-14 * std::abs(v)) break;
      }
      if (k > most) most = k;
      own[0] = q + h * v;
      own[1] = 2.0 * J * v - p;
    }
  }
  return most;
}
}

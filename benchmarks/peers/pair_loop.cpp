// All three share the arithmetic of the step and differ in how they find the root d of
//   ((c₃d + c₂)d + c₁)d + c₀ − ρs u₁ = 0,  the increment of the mean velocity.

#include "pair_loop.hpp"

#include <cmath>

namespace portwave::bench {
namespace {

struct Constants {
  double h, gamma;
  double k1 = 100, k3 = 8000, k12 = 120, k2 = 50, m1 = 8, m2 = 4, c12 = 0.05;
  double s = std::sqrt(2 * gamma / h);
  double kappa = 0.5 * h * k12 + c12, share = 1 / (kappa + gamma);
  double rho_s = kappa * share * s, c3 = 0.25 * k3 * h * h * h;
  double inertia = 2 * m1 / h, linear = 0.5 * h * k1 + gamma * kappa * share;
  double transmission = 2 * gamma * share;
  double wave_per_force = 2 * gamma / s * share, elongation = gamma * k12 * share;
  double wave_per_root = wave_per_force * kappa;
  // The linear side: 2m(w − v)/h = −k(q + hw/2) − e, e = s a + γw, b = (e + γw)/s.
  double side = 1 / (2 * m2 / h + 0.5 * h * k2 + gamma);
  double xq = -k2 * side, xv = 2 * m2 / h * side, xa = -s * side;
  double cq = 2 * gamma / s * xq, cv = 2 * gamma / s * xv, reflect = 1 + 2 * gamma / s * xa;
};

/// How the root is found is the policy's.
template <class Root>
class Pair final : public PairLoop {
 public:
  explicit Pair(const PairSetting& setting) : c_{setting.step_s, setting.impedance_Ns_per_m} {}

  void step(int iterations) override {
    const Constants c = c_;
    // Around w = v, so that the increment d is small.
    const double w2 = c.k3 * q1_ * c.h * c.h, w1 = c.linear + 1.5 * c.k3 * q1_ * q1_ * c.h;
    const double c2 = w2 + 3.0 * c.c3 * v1_;
    const double c1 = c.inertia + w1 + (2.0 * w2 + 3.0 * c.c3 * v1_) * v1_;
    const double c0 = ((c.c3 * v1_ + w2) * v1_ + w1) * v1_ + (c.k1 + c.k3 * q1_ * q1_) * q1_ -
                      c.elongation * delta_;
    const double a0 = c.wave_per_force * (c.kappa * v1_ - c.k12 * delta_);
    const double b0 = c.cq * q2_ + c.cv * v2_;
    const double through = 1.0 - c.transmission;
    root_.freeze(c.c3, c2, c1, c0, c.rho_s);
    Root root = root_;
    // uₙ₊₁ = (u + 2b_other − 2u…)/3: with λ = 1, u₁ += (2(b₂ − u₁) + (b₁ − u₂))/3.
    constexpr double kThird = 1.0 / 3.0;
    double u1 = wave_2_, u2 = wave_1_, a1 = u1, a2 = u2;
    for (int k = 0; k < iterations; ++k) {
      const double d = root.predict(u1);
      const double b1 = (through * u1 - a0) - c.wave_per_root * d;
      const double b2 = c.reflect * u2 + b0;
      a1 = b2;
      a2 = b1;
      const double rest1 = u1 + (2.0 * b2 - 2.0 * u1 - u2) * kThird;
      const double rest2 = u2 + (b2 - u1 - 2.0 * u2) * kThird;
      u1 = rest1 + kThird * b1;
      u2 = rest2 + 2.0 * kThird * b1;
    }
    const double d = root.converge(a1);
    root_ = root;
    wave_1_ = (through * a1 - a0) - c.wave_per_root * d;
    wave_2_ = c.reflect * a2 + b0;
    const double w = v1_ + d;
    const double u = (c.s * a1 - c.k12 * delta_ + c.kappa * w) * c.share;
    q1_ += c.h * w;
    v1_ += 2.0 * d;
    delta_ += c.h * (u - w);
    const double side = c.xq * q2_ + c.xv * v2_ + c.xa * a2;
    q2_ += c.h * side;
    v2_ = 2.0 * side - v2_;
  }
  double q1() const override { return q1_; }
  double q2() const override { return q2_; }

 private:
  const Constants c_;
  Root root_{};
  double q1_ = 0.4, v1_ = 0, delta_ = -0.4, q2_ = 0, v2_ = 0, wave_1_ = 0, wave_2_ = 0;
};

struct PlainRoot {
  double c3, c2, c1, c0, rho_s;

  void freeze(double c3_, double c2_, double c1_, double c0_, double rho_s_) {
    *this = {c3_, c2_, c1_, c0_, rho_s_};
  }
  double predict(double u) const { return converge(u); }
  double converge(double u) const {
    const double constant = c0 - rho_s * u;
    double d = 0.0;
    for (int i = 0; i < 200; ++i) {
      const double change =
          (((c3 * d + c2) * d + c1) * d + constant) / ((3.0 * c3 * d + 2.0 * c2) * d + c1);
      d -= change;
      if (std::abs(change) <= 1e-9 * std::abs(d)) break;
    }
    return d;
  }
};

/// What is left after the correction is of third order in the increment, with a coefficient of the
/// order of (f''/f')²: the commit makes it round-off.
struct WarmRoot {
  double c3, c2, c1, c0, rho_s;
  double d, inverse = 0.0;
  double value, curved;  ///< f(d) + ρs u and ½f''/f', both known before u is

  void freeze(double c3_, double c2_, double c1_, double c0_, double rho_s_) {
    c3 = c3_, c2 = c2_, c1 = c1_, c0 = c0_, rho_s = rho_s_;
    d = 0.0;
    value = c0;
    // One step for the reciprocal leaves defect², one more defect⁴.
    const double defect = 1.0 - c1 * inverse;
    if (std::abs(defect) < 0.03) {
      inverse += inverse * defect * (1.0 + defect);
    } else {
      inverse = 1.0 / c1;
    }
    curved = c2 * inverse;
  }
  double predict(double u) {
    const double linear = (rho_s * u - value) * inverse;
    d += linear - linear * linear * curved;
    value = ((c3 * d + c2) * d + c1) * d + c0;
    const double bend = 3.0 * c3 * d + c2, slope = (bend + c2) * d + c1;
    inverse += inverse * (1.0 - slope * inverse);
    curved = bend * inverse;
    return d;
  }
  double converge(double u) {
    for (int i = 0; i < 200; ++i) {
      const double before = d;
      predict(u);
      const double change = d - before;
      // The next error is (2 curved²) change³; 1e-9 of d for change ~ 1e-3.
      if (2.0 * curved * curved * std::abs(change * change * change) <= 1e-16 * std::abs(d)) break;
      if (!std::isfinite(d)) break;
    }
    return d;
  }
};

/// x = (ρs u − c₀)/c₁,  d = x − βx² + (2β² − γ)x³ + …,  β = c₂/c₁, γ = c₃/c₁.
struct SeriesRoot {
  double c3, c2, c1, c0, rho_s;
  double inverse = 0.0, x0, x_per_u, second, third;

  void freeze(double c3_, double c2_, double c1_, double c0_, double rho_s_) {
    c3 = c3_, c2 = c2_, c1 = c1_, c0 = c0_, rho_s = rho_s_;
    double defect = 1.0 - c1 * inverse;
    if (std::abs(defect) < 0.03) {
      inverse += inverse * defect * (1.0 + defect);
      inverse += inverse * (1.0 - c1 * inverse);
    } else {
      inverse = 1.0 / c1;
    }
    x0 = -c0 * inverse;
    x_per_u = rho_s * inverse;
    second = -c2 * inverse;
    third = 2.0 * second * second - c3 * inverse;
  }
  double predict(double u) const {
    const double x = x_per_u * u + x0;
    return x + (x * x) * (third * x + second);
  }
  double converge(double u) {
    double d = predict(u);
    const double constant = c0 - rho_s * u;
    for (int i = 0; i < 200; ++i) {
      const double slope = (3.0 * c3 * d + 2.0 * c2) * d + c1;
      const double value = ((c3 * d + c2) * d + c1) * d + constant;
      const double defect = 1.0 - slope * inverse;
      const double change = value * inverse * (1.0 + defect);  // 1/slope to defect²
      d -= change;
      if (std::abs(change) * (defect * defect + std::abs(2.0 * c2 * inverse * change)) <=
          1e-15 * std::abs(d)) {
        break;
      }
      if (std::abs(defect) > 0.1) inverse = 1.0 / slope;
    }
    return d;
  }
};

}  // namespace

std::unique_ptr<PairLoop> plain_pair(const PairSetting& setting) {
  return std::make_unique<Pair<PlainRoot>>(setting);
}
std::unique_ptr<PairLoop> warm_pair(const PairSetting& setting) {
  return std::make_unique<Pair<WarmRoot>>(setting);
}
std::unique_ptr<PairLoop> series_pair(const PairSetting& setting) {
  return std::make_unique<Pair<SeriesRoot>>(setting);
}

}  // namespace portwave::bench

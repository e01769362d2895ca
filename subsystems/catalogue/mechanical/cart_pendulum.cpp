#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/sinc.hpp"
#include "catalogue/part_types.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave {
namespace {
namespace cart_part {

enum State { kPosition, kAngle, kMomentum, kAngularMomentum, kStates };
enum Input { kCart, kForce, kTorque, kInputs };

struct CartParameters {
  double total_mass = 1.0;   ///< of cart and pendulum
  double moment = 1.0;       ///< m l
  double inertia = 1.0;      ///< J about the joint
  double determinant = 1.0;  ///< of the mass matrix at angle 0
  double gravity = 0.0;
};

/// Mass matrix [m_t, ml cos q; ml cos q, J] at an angle, and what follows from the momenta.
struct Motion {
  double sine, cosine;
  double inverse_xx, inverse_xq, inverse_qq;
  double speed, rate;

  Motion(const CartParameters& p, const double* x)
      : sine(std::sin(x[kAngle])), cosine(std::cos(x[kAngle])) {
    // m_t J − (ml cos q)², a sum of terms ≥ 0.
    const double determinant = p.determinant + p.moment * p.moment * sine * sine;
    inverse_xx = p.inertia / determinant;
    inverse_xq = -p.moment * cosine / determinant;
    inverse_qq = p.total_mass / determinant;
    speed = inverse_xx * x[kMomentum] + inverse_xq * x[kAngularMomentum];
    rate = inverse_xq * x[kMomentum] + inverse_qq * x[kAngularMomentum];
  }
};

Hamiltonian cart_storage(const CartParameters& p) {
  Hamiltonian H;
  H.value = [p](const double* x) {
    const Motion v(p, x);
    const double half = std::sin(0.5 * x[kAngle]);
    return 0.5 * (x[kMomentum] * v.speed + x[kAngularMomentum] * v.rate) +
           2.0 * p.moment * p.gravity * half * half;
  };
  // With M' = ∂M/∂q: ∂H/∂q = −½ vᵀM'v + V'.
  H.gradient = [p](const double* x, double* g) {
    const Motion v(p, x);
    g[kPosition] = 0.0;
    g[kAngle] = p.moment * v.sine * (v.speed * v.rate + p.gravity);
    g[kMomentum] = v.speed;
    g[kAngularMomentum] = v.rate;
  };
  // ∂v/∂q = −M⁻¹M'v,  ∂²H/∂q² = (M'v)ᵀM⁻¹(M'v) − ½ vᵀM''v + V''.
  H.hessian = [p](const double* x, double* hessian) {
    const Motion v(p, x);
    std::fill_n(hessian, kStates * kStates, 0.0);
    const auto set = [hessian](int i, int j, double value) {
      hessian[i * kStates + j] = hessian[j * kStates + i] = value;
    };
    const double turned = -p.moment * v.sine;  // the off-diagonal entries of M'
    const double a = turned * v.rate, b = turned * v.speed;
    const double speed_slope = -(v.inverse_xx * a + v.inverse_xq * b);
    const double rate_slope = -(v.inverse_xq * a + v.inverse_qq * b);
    set(kMomentum, kMomentum, v.inverse_xx);
    set(kMomentum, kAngularMomentum, v.inverse_xq);
    set(kAngularMomentum, kAngularMomentum, v.inverse_qq);
    set(kAngle, kMomentum, speed_slope);
    set(kAngle, kAngularMomentum, rate_slope);
    set(kAngle, kAngle,
        -(a * speed_slope + b * rate_slope) + p.moment * v.cosine * (v.speed * v.rate + p.gravity));
  };
  return H;
}

/// (cos q⁺ − cos q)/(q⁺ − q) and the quotients of the increments of M⁻¹, with their derivatives by
/// q⁺: all in products, so that small increments do not cancel.
struct Quotients {
  double cosine, cosine_slope;
  double xx, xq, qq;
  double xx_slope, xq_slope, qq_slope;

  Quotients(const CartParameters& p, double from, double to) {
    const double b = p.moment, b2 = b * b;
    const double c = std::cos(from), c_next = std::cos(to), s = std::sin(from),
                 s_next = std::sin(to);
    const double det = p.determinant + b2 * s * s, det_next = p.determinant + b2 * s_next * s_next;
    const double middle = 0.5 * (from + to);
    const Sinc sinc(0.5 * (to - from));
    cosine = -std::sin(middle) * sinc.value;
    cosine_slope = -0.5 * (std::cos(middle) * sinc.value + std::sin(middle) * sinc.slope);
    const double both = det * det_next, growth = 2.0 * b2 * s_next * c_next / det_next;
    const double direct = b2 * (c + c_next) * cosine / both;
    const double direct_slope =
        b2 * (-s_next * cosine + (c + c_next) * cosine_slope) / both - growth * direct;
    const double mixed = p.determinant + b2 + b2 * c * c_next;
    xx = p.inertia * direct;
    qq = p.total_mass * direct;
    xq = -b * cosine * mixed / both;
    xx_slope = p.inertia * direct_slope;
    qq_slope = p.total_mass * direct_slope;
    xq_slope = -b * (cosine_slope * mixed - cosine * b2 * c * s_next) / both - growth * xq;
  }
};

/// ½pᵀM⁻¹p changes by p̄ᵀM̄⁻¹Δp + ½ ΔM⁻¹ : Q, with the means of both ends and Q = ½(p pᵀ + p⁺p⁺ᵀ).
class CartPendulum final : public NonlinearPortHamiltonian {
 public:
  CartPendulum(const CartParameters& p, Signature signature, Structure structure, Options options)
      : NonlinearPortHamiltonian(std::move(signature), std::move(structure), cart_storage(p),
                                 std::move(options)),
        p_(p) {}

  void discrete_gradient(const double* x, const double* y, double* g) const override {
    const Quotients slope(p_, x[kAngle], y[kAngle]);
    const Motion from(p_, x), to(p_, y);
    const double px = x[kMomentum], px_next = y[kMomentum];
    const double pq = x[kAngularMomentum], pq_next = y[kAngularMomentum];
    g[kPosition] = 0.0;
    g[kAngle] = 0.25 * ((px * px + px_next * px_next) * slope.xx +
                        2.0 * (px * pq + px_next * pq_next) * slope.xq +
                        (pq * pq + pq_next * pq_next) * slope.qq) -
                p_.moment * p_.gravity * slope.cosine;
    const double xq = from.inverse_xq + to.inverse_xq;
    g[kMomentum] =
        0.25 * ((from.inverse_xx + to.inverse_xx) * (px + px_next) + xq * (pq + pq_next));
    g[kAngularMomentum] =
        0.25 * (xq * (px + px_next) + (from.inverse_qq + to.inverse_qq) * (pq + pq_next));
  }

  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    const Quotients slope(p_, x[kAngle], y[kAngle]);
    const Quotients at_end(p_, y[kAngle], y[kAngle]);
    const Motion from(p_, x), to(p_, y);
    const double px = x[kMomentum], px_next = y[kMomentum];
    const double pq = x[kAngularMomentum], pq_next = y[kAngularMomentum];
    const auto add = [&](int i, int j, double value) { jacobian.emplace_back(i, j, value); };
    add(kAngle, kAngle,
        0.25 * ((px * px + px_next * px_next) * slope.xx_slope +
                2.0 * (px * pq + px_next * pq_next) * slope.xq_slope +
                (pq * pq + pq_next * pq_next) * slope.qq_slope) -
            p_.moment * p_.gravity * slope.cosine_slope);
    add(kAngle, kMomentum, 0.5 * (px_next * slope.xx + pq_next * slope.xq));
    add(kAngle, kAngularMomentum, 0.5 * (px_next * slope.xq + pq_next * slope.qq));
    add(kMomentum, kAngle, 0.25 * (at_end.xx * (px + px_next) + at_end.xq * (pq + pq_next)));
    add(kAngularMomentum, kAngle, 0.25 * (at_end.xq * (px + px_next) + at_end.qq * (pq + pq_next)));
    const double xq = 0.25 * (from.inverse_xq + to.inverse_xq);
    add(kMomentum, kMomentum, 0.25 * (from.inverse_xx + to.inverse_xx));
    add(kMomentum, kAngularMomentum, xq);
    add(kAngularMomentum, kMomentum, xq);
    add(kAngularMomentum, kAngularMomentum, 0.25 * (from.inverse_qq + to.inverse_qq));
  }

 private:
  CartParameters p_;
};

Structure cart_structure(double cart_damping, double joint_damping) {
  Structure s = Structure::zero(kStates, kInputs);
  for (const auto& [place, momentum] :
       {std::pair{kPosition, kMomentum}, std::pair{kAngle, kAngularMomentum}}) {
    s.J.insert(place, momentum) = 1.0;
    s.J.insert(momentum, place) = -1.0;
  }
  s.R.insert(kMomentum, kMomentum) = cart_damping;
  s.R.insert(kAngularMomentum, kAngularMomentum) = joint_damping;
  s.G.insert(kMomentum, kCart) = -1.0;
  s.G.insert(kMomentum, kForce) = 1.0;
  s.G.insert(kAngularMomentum, kTorque) = 1.0;
  return s;
}

std::unique_ptr<Subsystem> build_cart_pendulum(const Parameters& parameters) {
  const double cart = number_of(parameters, "cart_mass_kg");
  const double mass = number_of(parameters, "mass_kg");
  const double length = number_of(parameters, "length_m");
  const double inertia = number_of(parameters, "inertia_kgm2");
  const CartParameters p = {.total_mass = cart + mass,
                            .moment = mass * length,
                            .inertia = inertia + mass * length * length,
                            .determinant = (cart + mass) * inertia + cart * mass * length * length,
                            .gravity = number_of(parameters, "gravity_m_per_s2")};
  NonlinearPortHamiltonian::Options options;
  options.allow_active = allows_active(parameters);
  // A swing to the horizontal, or 1 rad/s where gravity does not count.
  const double swing = std::sqrt(2.0 * p.moment * p.gravity / p.inertia);
  const double rate = swing > 0.0 ? swing : 1.0;
  options.typical_state = {length, std::numbers::pi / 2.0, p.total_mass * length * rate,
                           p.inertia * rate};
  Signature signature{"cart_pendulum",
                      {{"position", "m"},
                       {"angle", "rad"},
                       {"momentum", "kg m/s"},
                       {"angular_momentum", "kg m^2/s"}},
                      {{"cart", Causality::effort_in, Domain::translation, 1}},
                      {{"force", "N"}, {"torque", "N m"}}};
  return std::make_unique<CartPendulum>(
      p, std::move(signature),
      cart_structure(number_of(parameters, "cart_damping_Ns_per_m"),
                     number_of(parameters, "damping_Nms_per_rad")),
      std::move(options));
}

}  // namespace cart_part
}  // namespace

PartType cart_pendulum_type() {
  PartType type;
  type.name = "cart_pendulum";
  type.group = "translation";
  type.summary =
      "A cart on a rail with a pendulum, which hangs at angle 0; the port acts on the cart.";
  type.equations =
      "H = [p; P]^T M(q)^-1 [p; P]/2 + m g l (1 - cos q)\n"
      "M = [m_c + m, m l cos q; m l cos q, J_c + m l^2],  [x'; q'] = M^-1 [p; P]\n"
      "p' = -c_x x' - e + F,  P' = -m l sin q (x' q' + g) - c q' + T,  f = -x'";
  ParameterInfo inertia = non_negative_number(
      "inertia_kgm2", "kg m^2", "moment of inertia J_c of the pendulum about its mass centre");
  inertia.default_value = 0.0;
  ParameterInfo gravity =
      non_negative_number("gravity_m_per_s2", "m/s^2", "acceleration g of gravity");
  gravity.default_value = 9.81;
  type.parameters = {
      positive_number("cart_mass_kg", "kg", "mass m_c of the cart"),
      positive_number("mass_kg", "kg", "mass m of the pendulum"),
      positive_number("length_m", "m", "distance l from the joint to the mass centre"),
      std::move(inertia),
      damper("cart_damping_Ns_per_m", "N s/m", "damper c_x between cart and rail"),
      damper("damping_Nms_per_rad", "N m s/rad", "damper c in the joint"),
      std::move(gravity),
  };
  type.build = cart_part::build_cart_pendulum;
  type.example = {{"cart_mass_kg", 30.0},
                  {"mass_kg", 10.0},
                  {"length_m", 4.0},
                  {"inertia_kgm2", 5.0},
                  {"cart_damping_Ns_per_m", 2.0},
                  {"damping_Nms_per_rad", 3.0}};
  return type;
}

}  // namespace portwave

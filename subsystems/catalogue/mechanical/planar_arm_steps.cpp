#include <array>
#include <cmath>
#include <numbers>

#include "catalogue/mechanical/planar_arm.hpp"

namespace portwave::planar {
namespace {

class ArmMechanism final : public Mechanism {
 public:
  ArmMechanism(const Arm& arm, const Numbers& damping, const ArmPorts& ports) : arm_(arm) {
    const int n = arm.links;
    layout_.positions = layout_.velocities = n;
    layout_.damping = damping;
    int port = 0;
    double weight = 0.0;
    bounds_.resize(n);
    for (int k = 0; k < n; ++k) {
      layout_.slides.push_back({k, k});
      layout_.port.push_back(ports.joints[static_cast<std::size_t>(k)] ? port++ : -1);
    }
    for (int k = n - 1; k >= 0; --k) bounds_[k] = weight += arm.weights[k];
    layout_.first_point_port = port;
    layout_.point_ports = ports.tip ? 2 : 0;
  }

  const Layout& layout() const override { return layout_; }
  double weight_bound(int velocity, double /*M_kk*/) const override { return bounds_[velocity]; }
  void mass_matrix(const double* q, articulated::MassMatrix& M) const override {
    const int n = arm_.links;
    Vector cosine(n), sine(n);
    double angle = 0.0;
    for (int k = 0; k < n; ++k) {
      angle += q[k];
      cosine[k] = std::cos(angle);
      sine[k] = std::sin(angle);
    }
    M.resize(n, n);
    for (int b = n - 1; b >= 0; --b) {
      for (int a = n - 1; a >= 0; --a) {
        double own =
            a == b ? arm_.A(a, a) : arm_.A(a, b) * (cosine[a] * cosine[b] + sine[a] * sine[b]);
        if (a + 1 < n) own += M(a + 1, b);
        if (b + 1 < n) own += M(a, b + 1);
        if (a + 1 < n && b + 1 < n) own -= M(a + 1, b + 1);
        M(a, b) = own;
      }
    }
  }
  void point_forces(const double* q, double* out) const override {
    const auto theta = absolute_angles(arm_, q);
    tip_forces([&](int k) { return theta[static_cast<std::size_t>(k)]; }, [](int) { return 0.0; },
               out);
  }
  void mean_point_forces(double* out) const override {
    tip_forces([this](int k) { return theta_[k]; }, [this](int k) { return turn_[k]; }, out);
  }
  void start_at(const double* q) override {
    const int n = arm_.links;
    theta_.resize(n);
    double angle = 0.0;
    for (int k = 0; k < n; ++k) {
      const bool is_wound = std::abs(q[k]) > 2.0 * std::numbers::pi;
      start_[static_cast<std::size_t>(k)] = q[k];
      theta_[k] = angle += is_wound ? std::remainder(q[k], 2.0 * std::numbers::pi) : q[k];
    }
  }
  void run(const double* q_next, const double* v, const double* v_next, double* slope,
           double* momentum) override {
    const int n = arm_.links;
    Vector& turn = turn_;
    turn.resize(n);
    Vector from(n), to(n), cosine(n), sine(n);
    double turned = 0.0, rate = 0.0, next_rate = 0.0;
    for (int k = 0; k < n; ++k) {
      turn[k] = turned += q_next[k] - start_[static_cast<std::size_t>(k)];
      from[k] = rate += v[k];
      to[k] = next_rate += v_next[k];
      cosine[k] = std::cos(theta_[k] + turned);
      sine[k] = std::sin(theta_[k] + turned);
    }
    double torque = 0.0, p = 0.0;
    for (int k = n - 1; k >= 0; --k) {
      double work = 0.0, own = arm_.A(k, k) * to[k];
      for (int b = 0; b < n; ++b) {
        if (b == k) continue;
        own += arm_.A(k, b) * (cosine[k] * cosine[b] + sine[k] * sine[b]) * to[b];
        work += arm_.A(k, b) * mean_sine(theta_[k] - theta_[b], turn[k] - turn[b]) *
                (to[k] * from[b] + to[b] * from[k]);
      }
      momentum[k] = p += own;
      slope[k] = torque += 0.5 * work + arm_.weights[k] * mean_sine(theta_[k], turn[k]);
    }
  }

 private:
  template <class AngleAt, class TurnAt>
  void tip_forces(const AngleAt& angle_at, const TurnAt& turn_at, double* out) const {
    for_tip_moments(arm_, angle_at, turn_at, [&](int k, double across, double along) {
      out[k] = across;
      out[arm_.links + k] = along;
    });
  }
  /// MeanSine without its slope.
  static double mean_sine(double from, double step) {
    const double half = 0.5 * step;
    return std::sin(from + half) * sinc(half);
  }

  const Arm& arm_;
  Layout layout_;
  Vector bounds_;  ///< of the moments of weights
  std::array<double, kMostLinks> start_;
  Vector theta_;  ///< absolute, at the start, without whole turns
  Vector turn_;   ///< of the last run
};

}  // namespace

std::unique_ptr<Mechanism> make_arm_mechanism(const Arm& arm, const Numbers& damping,
                                              const ArmPorts& ports) {
  return std::make_unique<ArmMechanism>(arm, damping, ports);
}

}  // namespace portwave::planar

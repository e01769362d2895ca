#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "catalogue/mechanical/planar_arm.hpp"
#include "mechanisms/half_turn.hpp"

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
  void start_at(const double* q) override {
    double angle = 0.0;
    for (std::size_t k = 0; k < links(); ++k) {
      const bool is_wound = std::abs(q[k]) > 2.0 * std::numbers::pi;
      start_[k] = q[k];
      angle += is_wound ? std::remainder(q[k], 2.0 * std::numbers::pi) : q[k];
      from_[k] = {std::cos(angle), std::sin(angle)};
    }
  }
  void mass_matrix(articulated::MassMatrix& M) const override {
    const int n = arm_.links;
    M.resize(n, n);
    for (int b = n - 1; b >= 0; --b) {
      for (int a = n - 1; a >= 0; --a) {
        double own = a == b ? arm_.A(a, a) : arm_.A(a, b) * along(from_[at(a)], from_[at(b)]);
        if (a + 1 < n) own += M(a + 1, b);
        if (b + 1 < n) own += M(a, b + 1);
        if (a + 1 < n && b + 1 < n) own -= M(a + 1, b + 1);
        M(a, b) = own;
      }
    }
  }
  void point_forces(double* out) const override {
    tip_forces([this](std::size_t k) { return from_[k]; }, out);
  }
  /// Δ sin θ = Δθ cos θ̄ sinc ½Δθ.
  void mean_point_forces(double* out) const override {
    tip_forces(
        [this](std::size_t k) {
          return Direction{sinc_[k] * middle_[k].cosine, sinc_[k] * middle_[k].sine};
        },
        out);
  }
  /// Of angles and of their differences, sines of means and cosines at the end follow from those of the start and of
  /// half the turns.
  void run(const double* q_next, const double* v, const double* v_next, double* slope,
           double* momentum) override {
    const std::size_t n = links();
    std::array<double, kMostLinks> half, from, to, work, own;
    std::array<Direction, kMostLinks> end;
    double turned = 0.0, rate = 0.0, next_rate = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      half[k] = 0.5 * (turned += q_next[k] - start_[k]);
      from[k] = rate += v[k];
      to[k] = next_rate += v_next[k];
      const HalfTurn by(half[k]);
      sinc_[k] = by.sinc;
      middle_[k] = turned_by(from_[k], by);
      end[k] = turned_by(middle_[k], by);
      work[k] = 0.0;
      own[k] = arm_.A(at(k), at(k)) * to[k];
    }
    for (std::size_t k = 1; k < n; ++k) {
      for (std::size_t b = 0; b < k; ++b) {
        const double A = arm_.A(at(k), at(b));
        const double mass = A * along(end[k], end[b]);
        own[k] += mass * to[b];
        own[b] += mass * to[k];
        const double sine =
            middle_[k].sine * middle_[b].cosine - middle_[k].cosine * middle_[b].sine;
        const double bend =
            A * (sine * HalfTurn::sinc_of(half[k] - half[b])) * (to[k] * from[b] + to[b] * from[k]);
        work[k] += bend;
        work[b] -= bend;
      }
    }
    double torque = 0.0, p = 0.0;
    for (std::size_t k = n; k-- > 0;) {
      momentum[k] = p += own[k];
      slope[k] = torque += 0.5 * work[k] + arm_.weights[at(k)] * (middle_[k].sine * sinc_[k]);
    }
  }

 private:
  struct Direction {
    double cosine, sine;
  };

  static Eigen::Index at(std::size_t k) { return static_cast<Eigen::Index>(k); }
  static std::size_t at(int k) { return static_cast<std::size_t>(k); }
  std::size_t links() const { return at(arm_.links); }
  /// The cosine of the angle between both.
  static double along(const Direction& a, const Direction& b) {
    return a.cosine * b.cosine + a.sine * b.sine;
  }
  static Direction turned_by(const Direction& a, const HalfTurn& by) {
    return {a.cosine * by.cosine - a.sine * by.sine, a.sine * by.cosine + a.cosine * by.sine};
  }

  /// Forces of 1 N along x and y; link_at(k): the direction of a link, with its share of the length.
  template <class LinkAt>
  void tip_forces(const LinkAt& link_at, double* out) const {
    double across = 0.0, along = 0.0;
    for (std::size_t k = links(); k-- > 0;) {
      const Direction link = link_at(k);
      out[k] = across += arm_.lengths[at(k)] * link.cosine;
      out[links() + k] = along += arm_.lengths[at(k)] * link.sine;
    }
  }

  const Arm& arm_;
  Layout layout_;
  Vector bounds_;  ///< of the moments of weights
  std::array<double, kMostLinks> start_;
  std::array<Direction, kMostLinks> from_;    ///< at the start, of absolute angles
  std::array<Direction, kMostLinks> middle_;  ///< of the last run
  std::array<double, kMostLinks> sinc_;       ///< of half its turns
};

}  // namespace

std::unique_ptr<Mechanism> make_arm_mechanism(const Arm& arm, const Numbers& damping,
                                              const ArmPorts& ports) {
  return std::make_unique<ArmMechanism>(arm, damping, ports);
}

}  // namespace portwave::planar

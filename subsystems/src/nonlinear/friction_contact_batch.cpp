// The implicit step of a contact with friction at given incident waves, without an iteration over its state:
//   f = Γ⁻¹(s a − e),  u = Bf = u₀ − C E,  u₀ = B Γ⁻¹ s a,  C = B Γ⁻¹ Bᵀ,  E = −n N + friction.
// In the axes of n and of C beside it, friction τᵢ = σuᵢ with one σ for all of its directions:
//   w = w₀ − c N + Σ kᵢτᵢ,   uᵢ = (qᵢ + kᵢN)/(1 + cᵢσ),   w: approach, kᵢ: what ties it to slip i.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <Eigen/Eigenvalues>

#include "core/port_closure.hpp"
#include "nonlinear/friction_contact.hpp"
#include "nonlinear/monotone_root.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/port_slopes.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// A root of a continuous function between two places where its signs differ, to round-off: regula falsi with
/// Illinois' weights, and bisection where that is slow.
template <class Function>
double bracketed_root(double low, double at_low, double high, double at_high,
                      const Function& function) {
  constexpr int kMostSteps = 400;
  if (at_low == 0.0) return low;
  if (at_high == 0.0) return high;
  double width = std::abs(high - low);
  for (int step = 0; step < kMostSteps; ++step) {
    double next = (low * at_high - high * at_low) / (at_high - at_low);
    if (step % 4 == 3 && std::abs(high - low) > 0.25 * width) next = low + 0.5 * (high - low);
    if (step % 4 == 3) width = std::abs(high - low);
    if (!(next > std::min(low, high) && next < std::max(low, high))) {
      next = low + 0.5 * (high - low);
    }
    if (next == low || next == high) return next;
    const double value = function(next);
    if (value == 0.0) return next;
    if ((value > 0.0) == (at_high > 0.0)) {
      high = next;
      at_high = value;
      at_low *= 0.5;
    } else {
      low = next;
      at_low = value;
      at_high *= 0.5;
    }
    if (std::abs(high - low) <= 2.0 * kEpsilon * (std::abs(high) + std::abs(low))) return next;
  }
  return low + 0.5 * (high - low);
}

/// A part with the impedances of its ports.
struct ClosedContact {
  const FrictionContact* part = nullptr;
  std::vector<PortClosure> closures;
  Eigen::Matrix3d axes = Eigen::Matrix3d::Identity();  ///< columns: n, and those of slip
  Eigen::Matrix<double, 3, Eigen::Dynamic, Eigen::ColMajor, 3, 6> to_surface;  ///< axesᵀB
  double c = 0.0;                                                              ///< nᵀCn
  std::array<double, 2> slip_c = {}, tie = {};                                 ///< cᵢ, kᵢ
  bool is_plain = false;  ///< the flow of the ports is u

  int ports() const { return static_cast<int>(to_surface.cols()); }

  ClosedContact(const FrictionContact& own, double step_s, const double* impedance, int stride)
      : part(&own), to_surface(3, own.law().B.cols()) {
    std::vector<double> gamma;
    const auto ports = static_cast<int>(own.law().B.cols());
    for (int j = 0; j < ports; ++j) gamma.push_back(impedance[j * stride]);
    closures = port_closures(own.signature(), step_s, gamma.data());
    close(own.law(), gamma);
  }

 private:
  void close(const FrictionContactLaw& law, const std::vector<double>& gamma) {
    const auto d = static_cast<int>(law.n.size());
    const Eigen::Map<const Eigen::VectorXd> impedances(gamma.data(), law.B.cols());
    const Eigen::MatrixXd C = law.B * impedances.cwiseInverse().asDiagonal() * law.B.transpose();
    is_plain = law.B.isIdentity(0.0);
    // The least component of n names the axis that the first direction of slip is made of.
    Eigen::MatrixXd T(d, d - 1);
    Eigen::Index least = 0;
    law.n.cwiseAbs().minCoeff(&least);
    if (d == 2) {
      T << -law.n[1], law.n[0];
    } else {
      const Eigen::Vector3d n = law.n.head<3>();
      T.col(0) = n.cross(Eigen::Vector3d(Eigen::Vector3d::Unit(least))).normalized();
      T.col(1) = n.cross(Eigen::Vector3d(T.col(0)));
    }
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> own(T.transpose() * C * T);
    T = (T * own.eigenvectors()).eval();
    axes.setZero();
    axes.block(0, 0, d, 1) = law.n;
    axes.block(0, 1, d, d - 1) = T;
    to_surface = axes.topRows(d).transpose() * law.B;
    c = law.n.dot(C * law.n);
    for (int i = 0; i < d - 1; ++i) {
      slip_c[at(i)] = own.eigenvalues()[i];
      const double tied = law.n.dot(C * T.col(i));
      const bool is_rounding = std::abs(tied) <= 16.0 * kEpsilon * C.trace();
      tie[at(i)] = is_rounding ? 0.0 : tied;
    }
  }
};

/// What a step does at the surface.
struct ContactStep {
  double approach = 0.0;         ///< w
  double normal = 0.0;           ///< N
  double elastic = 0.0;          ///< of N, what the spring gives
  std::array<double, 2> u = {};  ///< slip
  double resistance = 0.0;       ///< σ
};

class FrictionContactBatch final : public LanewiseBatch, public LaneExchange, public PortSlopes {
 public:
  FrictionContactBatch(const std::vector<const FrictionContact*>& parts, const StageRule& rule)
      : LanewiseBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                      parts[0]->signature().wave_size(), 0, 1),
        theta_(2.0 * rule.damping),
        parts_(parts) {}

  double scatter_cost_ns() const override { return kSolve_ns; }
  double advance_cost_ns() const override { return kSolve_ns; }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    closed_.clear();
    for (int l = 0; l < lanes(); ++l) {
      closed_.emplace_back(*parts_[at(l)], step_s, impedance + l, stride());
    }
  }
  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    const auto* const other = dynamic_cast<const FrictionContactBatch*>(&one);
    if (other == nullptr || other->theta_ != theta_) return false;
    closed_[at(lane)] = ClosedContact(*other->parts_.front(), step_s_, impedance + lane, stride());
    parts_[at(lane)] = other->parts_.front();
    return true;
  }

  /// With L = ∂E/∂u and C in the axes of the contact, du = (1 + C L)⁻¹ of what u₀ moves by.
  bool port_slopes(int l, const double* record, const double* a, int stride,
                   double* matrix) const override {
    const ClosedContact& own = closed_[at(l)];
    const int p = own.ports();
    std::array<double, 6> wave{};
    for (int j = 0; j < p; ++j) wave[at(j)] = a[j * stride];
    const double d = extra_of(l, record)[0];
    ContactStep step;
    if (!solve(own, d, wave.data(), step)) return false;
    const Eigen::Matrix3d L = force_slopes(*own.part, d, step);
    Eigen::Matrix3d moves = Eigen::Matrix3d::Identity();
    for (int j = 0; j < p; ++j) {
      const Eigen::Vector3d column = own.to_surface.col(j);
      moves += column * (column.transpose() * L) / own.closures[at(j)].alpha;
    }
    const Eigen::Matrix3d forces = L * moves.inverse();
    for (int j = 0; j < p; ++j) {
      const PortClosure& from = own.closures[at(j)];
      const double flow = from.s / from.alpha;
      const Eigen::Vector3d dE = forces * (own.to_surface.col(j) * flow);
      for (int i = 0; i < p; ++i) {
        const PortClosure& to = own.closures[at(i)];
        const double back = own.to_surface.col(i).dot(dE) / to.alpha;
        matrix[i * p + j] = to.slope * ((i == j ? flow : 0.0) - back) + (i == j ? to.sign : 0.0);
      }
    }
    return true;
  }

 private:
  static constexpr double kSolve_ns = 400.0;

  struct Force {
    double value = 0.0, slope = 0.0, elastic = 0.0;
  };

  void freeze_lane(int l, const Lane& frozen) const override {
    frozen.extra[0] = parts_[at(l)]->height(frozen.x);
  }
  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) const override {
    ContactStep step;
    if (!solve(closed_[at(l)], frozen.extra[0], a, step)) return StepFault::not_converged;
    std::array<double, 6> f{};
    return reflect(closed_[at(l)], step, a, f, b);
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    ContactStep step;
    const ClosedContact& own = closed_[at(l)];
    if (!solve(own, frozen.extra[0], a, step)) return StepFault::not_converged;
    std::array<double, 6> f{};
    const StepFault fault = reflect(own, step, a, f, b);
    if (fault != StepFault::none) return fault;
    const Eigen::Vector3d u =
        own.is_plain
            ? velocity(own, step)
            : Eigen::Vector3d(own.axes * (own.to_surface * Eigen::Map<const Eigen::VectorXd>(
                                                               f.data(), own.ports())));
    for (int i = 0; i < state_size(); ++i) x_next[i] = frozen.x[i] + step_s_ * u[i];
    const ContactFace& face = own.part->face();
    const double from = frozen.extra[0], to = own.part->height(x_next);
    const double mean = std::abs(face.mean_force(from, to));
    energy.change_J = mean * (from - to);
    energy.external_supply_J = 0.0;
    energy.numerical_dissipation_J =
        theta_ > 0.0 ? std::max(0.0, step_s_ * (step.elastic - mean) * step.approach) : 0.0;
    const double slip = std::hypot(step.u[0], step.u[1]);
    energy.dissipated_J =
        energy.numerical_dissipation_J +
        step_s_ * ((step.normal - step.elastic) * step.approach + step.resistance * slip * slip);
    return StepFault::none;
  }

  /// N at an approach w from the height d.
  Force normal_force(const FrictionContact& part, double d, double w) const {
    const ContactFace& face = part.face();
    const double to = d - step_s_ * w, a = part.law().normal.damping;
    Force out;
    if (theta_ < 1.0) {
      out.elastic += (1.0 - theta_) * std::abs(face.mean_force(d, to));
      out.slope += (1.0 - theta_) * face.mean_slope(d, to);
    }
    if (theta_ > 0.0) {
      out.elastic += theta_ * std::abs(face.force(to));
      out.slope += theta_ * face.slope(to);
    }
    const double factor = 1.0 + a * w;
    if (!(factor > 0.0)) return {0.0, 0.0, out.elastic};
    out.value = out.elastic * factor;
    out.slope = step_s_ * out.slope * factor + out.elastic * a;
    return out;
  }

  /// ∂E/∂u in the axes of the contact: E = −n N(−u_n) + N grip(|v|) v with the slip v.
  Eigen::Matrix3d force_slopes(const FrictionContact& part, double d,
                               const ContactStep& step) const {
    Eigen::Matrix3d L = Eigen::Matrix3d::Zero();
    const double N_slope = normal_force(part, d, step.approach).slope;
    const double speed = std::hypot(step.u[0], step.u[1]);
    const double grip = part.grip(speed), t = std::tanh(speed / part.law().creep_speed);
    // The slope of grip over the speed.
    const double steepness = part.law().friction * (1.0 - t * t) / part.law().creep_speed;
    const double bend = speed > 0.0 ? (steepness - grip) / (speed * speed) : 0.0;
    L(0, 0) = N_slope;
    for (int i = 0; i < 2; ++i) {
      L(1 + i, 0) = -N_slope * grip * step.u[at(i)];
      for (int j = 0; j < 2; ++j) {
        L(1 + i, 1 + j) =
            step.normal * ((i == j ? grip : 0.0) + bend * step.u[at(i)] * step.u[at(j)]);
      }
    }
    return L;
  }

  /// σ and slip under a normal force, from q.
  static void slide(const ClosedContact& own, double normal, std::array<double, 2> q,
                    ContactStep& step) {
    for (std::size_t i = 0; i < 2; ++i) q[i] += own.tie[i] * normal;
    const double free = std::hypot(q[0], q[1]), most = own.part->law().friction * normal;
    step.resistance = normal * own.part->grip(0.0);
    step.u = q;
    if (!(most > 0.0)) return;
    const double creep = own.part->law().creep_speed;
    const auto law = [creep](double v) {
      const double t = std::tanh(v / creep);
      return PortLawValue{t, (1.0 - t * t) / creep};
    };
    const bool is_flat = own.part->law().n.size() == 2;
    const double other = is_flat ? own.slip_c[0] : own.slip_c[1];
    const double soft = std::min(own.slip_c[0], other), hard = std::max(own.slip_c[0], other);
    const auto at_speed = [&](double speed) {
      step.resistance = normal * own.part->grip(speed);
      for (std::size_t i = 0; i < 2; ++i)
        step.u[i] = q[i] / (1.0 + own.slip_c[i] * step.resistance);
      return speed - std::hypot(step.u[0], step.u[1]);
    };
    double speed = monotone_root(1.0, soft * most, free, law);
    if (hard - soft > 4.0 * kEpsilon * hard) {
      // The larger of both holds back more.
      const double slower = monotone_root(1.0, hard * most, free, law);
      const double at_slower = at_speed(slower), at_faster = at_speed(speed);
      if (at_slower < 0.0 && at_faster > 0.0) {
        speed = bracketed_root(slower, at_slower, speed, at_faster, at_speed);
      } else if (std::abs(at_slower) < std::abs(at_faster)) {
        speed = slower;
      }
    }
    (void)at_speed(speed);
  }

  /// From the height d.
  bool solve(const ClosedContact& own, double d, const double* a, ContactStep& step) const {
    Eigen::Vector3d free = Eigen::Vector3d::Zero();
    for (int j = 0; j < own.ports(); ++j) {
      const PortClosure& port = own.closures[at(j)];
      const double f = port.s * a[j] / port.alpha;
      for (int i = 0; i < 3; ++i) free[i] += own.to_surface(i, j) * f;
    }
    const double w0 = -free[0];
    const std::array<double, 2> q = {free[1], free[2]};
    const auto take = [&](double w) {
      const Force N = normal_force(*own.part, d, w);
      step.approach = w;
      step.normal = N.value;
      step.elastic = N.elastic;
      slide(own, N.value, q, step);
      // w − w₀ + c N − Σ kᵢτᵢ
      return w - w0 + own.c * N.value -
             step.resistance * (own.tie[0] * step.u[0] + own.tie[1] * step.u[1]);
    };
    const auto law = [&](double w) {
      const Force N = normal_force(*own.part, d, w);
      return PortLawValue{N.value, N.slope};
    };
    const double untied = rising_root(own.c, w0, law, w0);
    if (own.tie[0] == 0.0 && own.tie[1] == 0.0) {
      (void)take(untied);
      return true;
    }
    const double at_untied = take(untied);
    if (at_untied == 0.0) return true;
    // Friction moves the approach from there: away until the sign changes.
    double other = untied, at_other = at_untied;
    double reach = std::abs(at_untied);
    constexpr int kMostDoublings = 60;
    for (int k = 0; k < kMostDoublings && (at_other > 0.0) == (at_untied > 0.0); ++k) {
      other = untied + (at_untied > 0.0 ? -reach : reach);
      at_other = take(other);
      reach *= 2.0;
      if (at_other == 0.0) return true;
    }
    if ((at_other > 0.0) == (at_untied > 0.0) || !std::isfinite(at_other)) return false;
    (void)take(bracketed_root(other, at_other, untied, at_untied, take));
    return true;
  }

  static Eigen::Vector3d velocity(const ClosedContact& own, const ContactStep& step) {
    return own.axes * Eigen::Vector3d(-step.approach, step.u[0], step.u[1]);
  }

  /// The flows of the ports, and the waves that leave.
  static StepFault reflect(const ClosedContact& own, const ContactStep& step, const double* a,
                           std::array<double, 6>& f, double* b) {
    const Eigen::Vector3d u = velocity(own, step);
    const Eigen::Vector3d E(-step.normal, step.resistance * step.u[0], step.resistance * step.u[1]);
    for (int j = 0; j < own.ports(); ++j) {
      const PortClosure& port = own.closures[at(j)];
      if (own.is_plain) {
        f[at(j)] = u[j];
      } else {
        double effort = 0.0;
        for (int i = 0; i < 3; ++i) {
          effort += own.to_surface(i, j) * E[i];
        }
        f[at(j)] = (port.s * a[j] - effort) / port.alpha;
      }
      if (!std::isfinite(f[at(j)])) return StepFault::not_finite;
      b[j] = port.slope * f[at(j)] + port.sign * a[j];
    }
    return StepFault::none;
  }

  double theta_;  ///< share of the force at the end of the step
  double step_s_ = 0.0;
  std::vector<const FrictionContact*> parts_;
  std::vector<ClosedContact> closed_;
};

}  // namespace

std::unique_ptr<StepBatch> make_friction_contact_batch(std::span<const Subsystem* const> parts,
                                                       const StageRule& rule) {
  std::vector<const FrictionContact*> own;
  own.reserve(parts.size());
  for (const Subsystem* const part : parts) {
    own.push_back(dynamic_cast<const FrictionContact*>(part));
  }
  return std::make_unique<FrictionContactBatch>(own, rule);
}

}  // namespace portwave

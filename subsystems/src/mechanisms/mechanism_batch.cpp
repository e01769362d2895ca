#include "mechanisms/mechanism_batch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/least_terms.hpp"
#include "core/port_closure.hpp"
#include "nonlinear/lane_solver.hpp"
#include "nonlinear/solver_of_each_lane.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/port_slopes.hpp"

namespace portwave {
namespace {
namespace mechanism_steps {

using articulated::factorise;
using articulated::kMostPositions;
using articulated::kMostVelocities;
using articulated::MassMatrix;
using articulated::Vec3;
using articulated::VelocityVector;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
/// As in LaneSolver: a residual of this size beside its terms is round-off; below this one, a step that does not
/// gain a factor 4 has met the noise of the recursions.
constexpr double kRoundOff = 4.0 * kEpsilon, kStagnation = 1e-12;
/// What a simplified step must gain to be continued.
constexpr double kContraction = 0.1;
constexpr int kMostSteps = 16;

// Warm solves.
/// An error of b of this size relative to the waves is round-off.
constexpr double kWaveRoundOff = 16.0 * kEpsilon;
/// A step that gains less is none to estimate an error by.
constexpr double kWarmContraction = 0.5;
/// The error is estimated from the contraction of v⁺, not of b: aim lower than what is promised.
constexpr double kAim = 0.1 * StepBatch::kInexactScatterError;
/// What an error of b may be beside the next move of the inner iteration.
constexpr double kOfNextMove = 1e-2;

/// What an inexact scatter leaves to the next one, in the record of its lane.
struct LastMotion {
  LastMotion(double* room, int waves)
      : count(room[0]), distance(room[1]), a(room + 2), v_next(a + waves) {}
  static int size(int waves, int velocities) { return 2 + waves + velocities; }

  void forget() const { count = 0.0; }

  double& count;     ///< inexact scatters since the record was frozen; 0: nothing below is valid
  double& distance;  ///< |a − a′| of the last two
  double* a;         ///< incident wave
  double* v_next;    ///< v⁺
};

/// Of the step of one part.
class StepSolver {
 public:
  StepSolver(const Subsystem& part, std::unique_ptr<Mechanism> mechanism, NewtonOptions options)
      : part_(part),
        mechanism_(std::move(mechanism)),
        layout_(mechanism_->layout()),
        nq_(layout_.positions),
        nv_(layout_.velocities),
        newton_(part, options) {
    for (VelocityVector* v : {&v_, &v_next_, &mean_, &force_, &push_, &F_, &terms_, &sizes_}) {
      v->setZero(nv_);
    }
    resistance_.setZero(nv_);
    mass_.setZero(nv_);
    step_.setZero(nv_);
    start_.assign(at(nq_ + nv_), 0.0);
    efforts_.assign(at(part.signature().wave_size()), 0.0);
    point_forces_.assign(at(layout_.point_ports * nv_), 0.0);
    start_forces_ = point_forces_;
  }

  void prepare(double step_s, const double* impedance) {
    h_ = step_s;
    is_started_ = false;
    closures_ = port_closures(part_.signature(), step_s, impedance);
    for (int k = 0; k < nv_; ++k) {
      resistance_[k] = layout_.damping[at(k)];
      if (const int port = layout_.port[at(k)]; port >= 0) {
        resistance_[k] += closures_[at(port)].impedance;
      }
    }
    newton_.prepare(step_s, impedance);
  }

  StepFault solve(const double* x, const double* input, const double* a, double* b) {
    is_simple_ = solve_simply(x, input, a);
    if (!is_simple_) {
      newton_.part().freeze(x, input);
      return newton_.solve(a, b);
    }
    outgoing(a, b);
    return StepFault::none;
  }

  /// StepBatch::inexact_scatter: from the last solution and what the change of a makes of it to first order.
  StepFault inexact_scatter(const double* x, const double* input, const double* a, double* b,
                            const LastMotion& last) {
    const auto waves = static_cast<Eigen::Index>(efforts_.size());
    const double count = last.count;
    const double distance = count > 0.0 ? (Eigen::Map<const VelocityVector>(a, waves) -
                                           Eigen::Map<const VelocityVector>(last.a, waves))
                                              .norm()
                                        : 0.0;
    const bool repeats = count > 0.0 && distance == 0.0;
    if (repeats) return solve(x, input, a, b);
    last.forget();
    if (count == 0.0 || !std::isfinite(distance) ||
        !solve_warm(x, input, a, count < 2.0 ? 0.0 : tolerance_of(distance, last), last, b)) {
      if (const StepFault fault = solve(x, input, a, b); fault != StepFault::none) return fault;
      if (!is_simple_) return StepFault::none;
    }
    last.count = count + 1.0;
    last.distance = distance;
    std::copy_n(a, waves, last.a);
    std::copy_n(v_next_.data(), nv_, last.v_next);
    return StepFault::none;
  }

  /// PortSlopes::port_slopes: with ∂v⁺/∂a = −A⁻¹ ∂F/∂a, A being the matrix of the simplified steps.
  bool slopes(const double* x, double* D) {
    if (!start_at(x)) return false;
    const int waves = static_cast<int>(efforts_.size());
    for (int j = 0; j < waves; ++j) {
      force_column(j);
      articulated::solve(matrix_, step_.data());
      for (int i = 0; i < waves; ++i) {
        const PortClosure& own = closures_[at(i)];
        const double straight = i == j ? own.slope * own.s + own.sign : 0.0;
        D[i * waves + j] = straight - h_ * closures_[at(j)].s * wave_of(i, step_);
      }
    }
    return true;
  }

  /// Of the last `solve`, which went well.
  StepEnergy commit(const double* x, const double* input, double* x_next) {
    if (!is_simple_) return newton_.part().commit(newton_.increment(), x_next);
    StepEnergy energy;
    for (int k = 0; k < nq_; ++k) {
      x_next[k] = q_next_[at(k)];
      energy.change_J += slope_[at(k)] * (x_next[k] - x[k]);
    }
    for (int k = 0; k < nv_; ++k) {
      const double rate = mean_[k], p = x[nq_ + k];
      x_next[nq_ + k] = p + h_ * push_[k];
      energy.change_J += rate * (x_next[nq_ + k] - p);
      energy.external_supply_J += h_ * input[k] * rate;
      energy.dissipated_J += h_ * layout_.damping[at(k)] * rate * rate;
    }
    return energy;
  }

  double residual(const double* x, const double* input, const double* a, double* b) {
    newton_.part().freeze(x, input);
    const bool fails = newton_.solve(a, b) == StepFault::not_converged;
    return fails ? newton_.residual() : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  /// What simplified steps from x have in common; false where M is not positive definite. A function of x: that
  /// of the last x is kept.
  bool start_at(const double* x) {
    const std::size_t bytes = start_.size() * sizeof(double);
    if (is_started_ && std::memcmp(start_.data(), x, bytes) == 0) return is_sound_;
    std::copy_n(x, start_.size(), start_.data());
    is_started_ = true;
    return is_sound_ = take_start(x);
  }

  bool take_start(const double* x) {
    mechanism_->start_at(x);
    mechanism_->mass_matrix(matrix_);
    v_ = Eigen::Map<const VelocityVector>(x + nq_, nv_);
    factor_ = matrix_;
    if (!factorise(factor_)) return false;
    articulated::solve(factor_, v_.data());
    const double motion = v_.dot(Eigen::Map<const VelocityVector>(x + nq_, nv_));
    mass_ = matrix_.diagonal();
    sizes_ = mass_.cwiseSqrt() * std::sqrt(std::max(0.0, motion));
    for (int k = 0; k < nv_; ++k) {
      sizes_[k] += h_ * mechanism_->weight_bound(k, matrix_(k, k));
    }
    matrix_.diagonal() += 0.5 * h_ * resistance_;
    if (layout_.point_ports > 0) mechanism_->point_forces(start_forces_.data());
    for (int j = 0; j < layout_.point_ports; ++j) {
      const Eigen::Map<const VelocityVector> own(start_forces_.data() + j * nv_, nv_);
      const double impedance = closures_[at(layout_.first_point_port + j)].impedance;
      matrix_.noalias() += (0.5 * h_ * impedance) * own * own.transpose();
    }
    return factorise(matrix_);
  }

  /// False: no steps can be taken from x.
  bool begin(const double* x, const double* input, const double* a) {
    if (!start_at(x)) return false;
    for (int k = 0; k < nv_; ++k) {
      force_[k] = input[k];
      const int port = layout_.port[at(k)];
      if (port >= 0) force_[k] -= closures_[at(port)].s * a[port];
    }
    return true;
  }

  /// False where it does not come closer quickly; then nothing is known.
  bool solve_simply(const double* x, const double* input, const double* a) {
    if (!begin(x, input, a)) return false;
    v_next_ = v_;
    double before = std::numeric_limits<double>::infinity();
    for (int step = 0; step < kMostSteps; ++step) {
      const double size = evaluate(x, a);
      if (!std::isfinite(size)) return false;
      if (size <= kRoundOff) return true;
      const double contraction = size / before;
      if (step > 0 && contraction > kContraction) return size <= kStagnation;
      articulated::solve(matrix_, F_.data());
      v_next_ -= F_;
      // The next residual would be round-off: what it would say of ∂̄_qH is not needed.
      if (step > 0 && size * contraction <= kRoundOff) {
        move(x);
        find_push(x, a);
        return true;
      }
      before = size;
    }
    return false;
  }

  /// Error of b that the inner iteration will not notice: its next move is about as much smaller as the last one
  /// was.
  static double tolerance_of(double distance, const LastMotion& last) {
    const double contraction = std::min(1.0, distance / last.distance);
    return std::min(kAim, kOfNextMove * contraction) * std::min(distance, last.distance);
  }

  /// From the last solution; false when it comes to nothing. With θ the contraction of the last step δ of v⁺ the
  /// error that it leaves is about θ/(1 − θ) δ. The first step follows from how a has changed: F is linear in a.
  bool solve_warm(const double* x, const double* input, const double* a, double tolerance,
                  const LastMotion& last, double* b) {
    if (!begin(x, input, a)) return false;
    const int waves = static_cast<int>(efforts_.size());
    F_.setZero();
    for (int j = 0; j < waves; ++j) {
      force_column(j);
      F_ += (h_ * closures_[at(j)].s * (a[j] - last.a[j])) * step_;
    }
    articulated::solve(matrix_, F_.data());
    v_next_ = Eigen::Map<const VelocityVector>(last.v_next, nv_) - F_;
    double before = length(F_);
    for (int step = 0; step < kMostSteps; ++step) {
      const double size = evaluate(x, a);
      if (!std::isfinite(size)) return false;
      outgoing(a, b);
      if (size <= kRoundOff) return true;
      articulated::solve(matrix_, F_.data());
      v_next_ -= F_;
      const double own = length(F_), contraction = own / before;
      double moved = 0.0, sum = 0.0;
      for (int j = 0; j < waves; ++j) {
        const double change = wave_of(j, F_);
        moved += change * change;
        sum += a[j] * a[j] + b[j] * b[j];
      }
      const double most = std::max(tolerance, kWaveRoundOff * std::sqrt(sum));
      const bool is_noise =
          size <= kStagnation && std::sqrt(moved) <= kWaveRoundOff * std::sqrt(sum);
      const double error = std::sqrt(moved) * contraction / (1.0 - contraction);
      if (is_noise || (contraction < kWarmContraction && error <= most)) {
        move(x);
        find_push(x, a);
        outgoing(a, b);
        return true;
      }
      if (!(contraction < kWarmContraction)) return false;
      before = own;
    }
    return false;
  }

  /// √ of an energy.
  double length(const VelocityVector& v) const { return std::sqrt(mass_.dot(v.cwiseAbs2())); }

  /// What a force of 1 at a scalar port does to the velocities at the start, into step_: ∂F/∂a = h s times that.
  void force_column(int port) {
    const int point = port - layout_.first_point_port;
    if (point >= 0) {
      step_ = Eigen::Map<const VelocityVector>(start_forces_.data() + point * nv_, nv_);
      return;
    }
    for (int k = 0; k < nv_; ++k) step_[k] = layout_.port[at(k)] == port ? 1.0 : 0.0;
  }

  /// How b at a scalar port moves with v⁺.
  double wave_of(int port, const VelocityVector& by) const {
    const PortClosure& own = closures_[at(port)];
    const int point = port - layout_.first_point_port;
    double speed = 0.0;
    if (point >= 0) {
      speed = Eigen::Map<const VelocityVector>(start_forces_.data() + point * nv_, nv_).dot(by);
    } else {
      for (int k = 0; k < nv_; ++k) {
        if (layout_.port[at(k)] == port) speed = by[k];
      }
    }
    return own.slope * own.impedance * 0.5 * speed;
  }

  /// Of the motion at hand.
  void outgoing(const double* a, double* b) {
    for (int k = 0; k < nv_; ++k) {
      const int port = layout_.port[at(k)];
      if (port < 0) continue;
      const PortClosure& own = closures_[at(port)];
      efforts_[at(port)] = own.s * a[port] + own.impedance * mean_[k];
    }
    for (std::size_t j = 0; j < efforts_.size(); ++j) {
      b[j] = closures_[j].slope * efforts_[j] + closures_[j].sign * a[j];
    }
  }

  /// F at v⁺; the largest of its entries beside its own terms.
  double evaluate(const double* x, const double* a) {
    move(x);
    mechanism_->run(q_next_.data(), v_.data(), v_next_.data(), slope_.data(), momentum_.data());
    if (layout_.point_ports > 0) mechanism_->mean_point_forces(point_forces_.data());
    find_push(x, a);
    double largest = 0.0;
    for (int k = 0; k < nv_; ++k) {
      const double p_next = momentum_[at(k)], p = x[nq_ + k];
      F_[k] = p_next - p - h_ * push_[k];
      if (F_[k] == 0.0) continue;
      const double terms =
          sizes_[k] + std::abs(p_next) + std::abs(p) + h_ * terms_[k] + kLeastTerms;
      const double ratio = std::abs(F_[k]) / terms;
      if (!std::isfinite(ratio)) return std::numeric_limits<double>::infinity();
      largest = std::max(largest, ratio);
    }
    return largest;
  }

  /// p' over the step, and the sizes of its terms.
  void find_push(const double* x, const double* a) {
    for (int k = 0; k < nv_; ++k) {
      const double loss = resistance_[k] * mean_[k];
      push_[k] = force_[k] - loss;
      terms_[k] = std::abs(force_[k]) + std::abs(loss);
    }
    const auto add = [this](int k, double term) {
      push_[k] += term;
      terms_[k] += std::abs(term);
    };
    for (const Mechanism::Slide& slide : layout_.slides) add(slide.v, -slope_[at(slide.q)]);
    for (const auto [q, v] : layout_.turns) {
      // p × ω − ½Ξ(q)ᵀ∂̄_qH, both at the middle.
      const double* const slope = slope_.data() + q;
      double m[4], p[3];
      for (int k = 0; k < 4; ++k) m[k] = 0.25 * (x[q + k] + q_next_[at(q + k)]);
      for (int k = 0; k < 3; ++k) p[k] = 0.5 * (x[nq_ + v + k] + momentum_[at(v + k)]);
      for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        add(v + i, p[j] * mean_[v + k] - p[k] * mean_[v + j]);
        add(v + i, m[1 + i] * slope[0] - m[0] * slope[1 + i] - m[1 + k] * slope[1 + j] +
                       m[1 + j] * slope[1 + k]);
      }
    }
    const double* forces = point_forces_.data();
    const double* const mean = mean_.data();
    double *const push = push_.data(), *const terms = terms_.data();
    for (int j = 0; j < layout_.point_ports; ++j, forces += nv_) {
      const int port = layout_.first_point_port + j;
      double speed = 0.0;
      for (int k = 0; k < nv_; ++k) speed += forces[k] * mean[k];
      const double effort = closures_[at(port)].s * a[port] + closures_[at(port)].impedance * speed;
      efforts_[at(port)] = effort;
      for (int k = 0; k < nv_; ++k) {
        const double force = forces[k] * effort;
        push[k] -= force;
        terms[k] += std::abs(force);
      }
    }
  }

  /// q⁺ from v̄; of quaternions q⁺ − q = ¼h(q + q⁺)(0, ω̄), which keeps their length.
  void move(const double* x) {
    mean_ = 0.5 * (v_ + v_next_);
    for (const Mechanism::Slide& slide : layout_.slides) {
      q_next_[at(slide.q)] = x[slide.q] + h_ * mean_[slide.v];
    }
    for (const auto [first, v] : layout_.turns) {
      const double* const q = x + first;
      const Vec3 w = {0.25 * h_ * mean_[v], 0.25 * h_ * mean_[v + 1], 0.25 * h_ * mean_[v + 2]};
      const double square = dot(w, w), gain = 2.0 / (1.0 + square);
      const Vec3 axis = {q[1], q[2], q[3]};
      const Vec3 moved = q[0] * w + cross(axis, w) - square * axis;
      double* const next = q_next_.data() + first;
      next[0] = q[0] - gain * (square * q[0] + dot(axis, w));
      next[1] = q[1] + gain * moved.x;
      next[2] = q[2] + gain * moved.y;
      next[3] = q[3] + gain * moved.z;
    }
  }

  const Subsystem& part_;
  std::unique_ptr<Mechanism> mechanism_;
  const Mechanism::Layout& layout_;
  int nq_, nv_;  ///< positions and velocities
  double h_ = 0.0;
  std::vector<PortClosure> closures_;
  VelocityVector resistance_;  ///< D of the joints
  LaneSolver newton_;
  bool is_simple_ = false;  ///< the last solve needed no derivatives
  // Of the last start.
  std::vector<double> start_;  ///< x
  bool is_started_ = false;    ///< there was one since `prepare`
  bool is_sound_ = false;
  MassMatrix matrix_, factor_;        ///< factors of ∂F/∂v⁺ and of M
  VelocityVector mass_;               ///< diagonal of M
  std::vector<double> start_forces_;  ///< as point_forces_

  VelocityVector v_, v_next_, mean_, force_, push_, terms_, F_, step_;
  /// Bounds of what p and weights are made of, where they cancel: |p_k|² ≤ M_kk vᵀMv, and g√(m M_kk) with the
  /// mass m that hangs on a joint.
  VelocityVector sizes_;
  std::array<double, kMostPositions> q_next_, slope_;
  std::array<double, kMostVelocities> momentum_;
  std::vector<double> efforts_;       ///< by scalar port
  std::vector<double> point_forces_;  ///< over the step
};

class MechanismBatch final : public LanewiseBatch, public LaneExchange, public PortSlopes {
 public:
  MechanismBatch(std::span<const Subsystem* const> parts, MakeMechanism make, NewtonOptions options)
      : LanewiseBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                      parts[0]->signature().wave_size(), parts[0]->signature().input_size(),
                      LastMotion::size(parts[0]->signature().wave_size(),
                                       make(*parts[0])->layout().velocities)),
        parts_(parts.begin(), parts.end()),
        solvers_(
            lanes(), wave_size(), are_one(parts_), [this, make = std::move(make), options](int l) {
              return std::make_unique<StepSolver>(*parts_[at(l)], make(*parts_[at(l)]), options);
            }) {}

  double scatter_cost_ns() const override { return 2000.0 + 1000.0 * state_size(); }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  void prepare(double step_s, const double* impedance) override {
    solvers_.prepare(step_s, impedance, stride());
  }
  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    auto* const other = dynamic_cast<MechanismBatch*>(&one);
    if (other == nullptr) return false;
    solvers_.take(lane, other->solvers_, impedance, stride());
    parts_[at(lane)] = other->parts_.front();
    return true;
  }

  bool port_slopes(int lane, const double* record, const double* /*a*/, int /*step*/,
                   double* matrix) const override {
    return solvers_.with(
        lane, [&](StepSolver& own) { return own.slopes(state_of(lane, record), matrix); });
  }

 private:
  void freeze_lane(int /*lane*/, const Lane& frozen) const override {
    LastMotion(frozen.extra, wave_size()).forget();
  }
  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) const override {
    return solvers_.with(l,
                         [&](StepSolver& own) { return own.solve(frozen.x, frozen.input, a, b); });
  }
  StepFault inexact_scatter_lane(int l, const Lane& frozen, const double* a,
                                 double* b) const override {
    return solvers_.with(l, [&](StepSolver& own) {
      return own.inexact_scatter(frozen.x, frozen.input, a, b,
                                 LastMotion(frozen.extra, wave_size()));
    });
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    return solvers_.with(l, [&](StepSolver& own) {
      const StepFault fault = own.solve(frozen.x, frozen.input, a, b);
      if (fault == StepFault::none) energy = own.commit(frozen.x, frozen.input, x_next);
      return fault;
    });
  }
  double residual_of_lane(int l, const Lane& frozen, const double* a) const override {
    std::vector<double> b(at(wave_size()));
    return solvers_.with(
        l, [&](StepSolver& own) { return own.residual(frozen.x, frozen.input, a, b.data()); });
  }

  std::vector<const Subsystem*> parts_;
  SolverOfEachLane<StepSolver> solvers_;
};

}  // namespace mechanism_steps
}  // namespace

std::unique_ptr<StepBatch> make_mechanism_batch(std::span<const Subsystem* const> parts,
                                                MakeMechanism make, NewtonOptions options) {
  return std::make_unique<mechanism_steps::MechanismBatch>(parts, std::move(make), options);
}

}  // namespace portwave

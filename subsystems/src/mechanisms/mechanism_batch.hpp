#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "mechanisms/articulated_tree.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave {

/// A part with the state (q, p), p = M(q)v, and H = ½pᵀM⁻¹p + V(q), as its steps of one stage see it.
/// Errors of size: at most articulated::kMostVelocities velocities and kMostPositions positions.
class Mechanism {
 public:
  /// A quaternion and the angular velocity and momentum in the axes that it turns.
  struct Turn {
    int q, v;
  };
  /// A position whose rate is a velocity.
  struct Slide {
    int q, v;
  };
  struct Layout {
    int positions = 0, velocities = 0;
    std::vector<Slide> slides;
    std::vector<Turn> turns;
    std::vector<double> damping;  ///< by velocity
    std::vector<int> port;        ///< by velocity: the scalar port that acts on it alone, or −1
    int first_point_port = 0;     ///< ports of points come last
    int point_ports = 0;
  };

  virtual ~Mechanism() = default;
  virtual const Layout& layout() const = 0;
  /// Starts from q.
  virtual void start_at(const double* q) = 0;
  /// At the start.
  virtual void mass_matrix(articulated::MassMatrix& M) const = 0;
  /// What weights alone may do to a velocity, M_kk being its own entry of M [N m or N].
  virtual double weight_bound(int velocity, double M_kk) const = 0;
  /// What forces of 1 at the ports of points do to the velocities at the start, column by column.
  virtual void point_forces(double* out) const = 0;
  /// The same over the step of the last `run`: mean velocities give the ways of the points by them, exactly.
  virtual void mean_point_forces(double* out) const = 0;
  /// ∂̄_qH with ½(v + v⁺)ᵀΔp + ∂̄_qHᵀΔq = ΔH, and M(q⁺)v⁺.
  virtual void run(const double* q_next, const double* v, const double* v_next, double* slope,
                   double* momentum) = 0;
};

using MakeMechanism = std::function<std::unique_ptr<Mechanism>(const Subsystem&)>;

/// Steps of one stage of mechanisms. In v⁺, with q⁺ from v̄ = ½(v + v⁺), the step is
///   F(v⁺) = M(q⁺)v⁺ − p − h(T − D v̄ − ∂̄_qH) = 0,  D: dampers and impedances of the ports,
/// with p̄ × ω̄ and quaternions where joints have them, and ∂F/∂v⁺ = M(q) + ½hD + O(h). Simplified Newton steps
/// with that matrix need no derivatives; where they do not gain a digit each time, LaneSolver solves the step with
/// all of them.
/// Cost     one mass matrix, two Cholesky factors, and some five evaluations of F.
std::unique_ptr<StepBatch> make_mechanism_batch(std::span<const Subsystem* const> parts,
                                                MakeMechanism make, NewtonOptions options);

}  // namespace portwave

#pragma once

#include <array>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "mechanisms/articulated_vector.hpp"
#include "mechanisms/half_turn.hpp"

namespace portwave::articulated {

struct Poses;

inline constexpr int kMostBodies = 64;
/// Derivatives are taken by as many directions side by side.
inline constexpr int kDirections = 8;
/// Of velocities, and of positions: a spherical joint has four positions, a free body seven.
inline constexpr int kMostVelocities = 64;
inline constexpr int kMostPositions = 88;

using VelocityVector = Eigen::Matrix<double, Eigen::Dynamic, 1, 0, kMostVelocities, 1>;
using MassMatrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kMostVelocities, kMostVelocities>;

enum class JointKind { revolute, prismatic, spherical, free };

/// A body and the joint on which it hangs. The body's axes are those of its joint, of which z is the
/// axis of a revolute or prismatic one:
///   revolute  q [rad], v = q';   prismatic  q [m], v = q';
///   spherical a unit quaternion (w, x, y, z) that turns the body's axes into the joint's, v = ω in the
///             body's axes;
///   free      (r, quaternion), v = (r' in world axes, ω in the body's axes); of bodies without parent.
struct Body {
  JointKind kind = JointKind::revolute;
  int parent = -1;             ///< −1: the world; smaller than the body's own number
  int q = 0, v = 0;            ///< its first position and velocity
  Mat3 to_joint = identity();  ///< from the parent's axes to those of the joint at rest
  Vec3 place = {0, 0, 0};      ///< of the joint, in the parent's axes
  double mass = 0.0;
  Vec3 moment = {0, 0, 0};  ///< mass times mass centre
  Mat3 inertia = {};        ///< about the joint, symmetric

  int position_count() const;
  int velocity_count() const;
};

/// Where a force acts on a body, in the body's axes, or that a torque acts on it.
struct Point {
  int body = 0;
  Vec3 place = {0, 0, 0};
  bool turns = false;  ///< a torque, which acts on the body as a whole
};

/// A tree of rigid bodies under gravity against z:
///   T = ½ Σ Vᵢᵀ Iᵢ Vᵢ = ½ vᵀM(q)v,  V = g Σ mᵢ zᵢ + const,  H = ½pᵀM⁻¹p + V.
/// Bodies are in an order in which parents come first. Functions are pure and do not allocate.
/// Cost     O(n) for the kinematics and forces of n bodies, O(n d) for the mass matrix at depth d.
/// Source   Featherstone, Rigid Body Dynamics Algorithms (2008), for the recursions in body axes.
struct Tree {
  std::vector<Body> bodies;
  double gravity = 0.0;
  double potential_at_origin = 0.0;  ///< the constant in V
  std::vector<double> weight;        ///< g times the mass of a body and of those that hang on it
  int positions = 0, velocities = 0;

  /// Numbers the coordinates, adds up the weights and sets the constant in V: without free bodies V is 0
  /// where all mass would hang below the origin as far as the joints reach.
  void complete();

  double potential(const double* q) const;
  /// ∇H at x = (q, p): ∂H/∂q and v = M⁻¹p, which is not a number where M is not positive definite.
  void gradient(const double* x, double* g) const;
  void mass_matrix(const double* q, MassMatrix& M) const;
  /// Adds the terms that cancel in ∇H: |M⁻¹||M||v| in v, and those of kinetic energy in ∂H/∂q.
  void add_gradient_terms(const double* q, const double* v, double* terms) const;
  bool is_free() const;
  /// What forces of 1 N in world axes at points of bodies, or torques of 1 N m, do to the velocities: `out` is
  /// velocities × 3 for each point, column by column. Its transpose takes velocities to those of the points, and
  /// to angular velocities.
  void point_forces(const double* q, std::span<const Point> points, double* out) const;
  /// In the world.
  Vec3 place_of(const double* q, const Point& point) const;
};

/// The rotation of a quaternion of any length other than 0, from the axes that it turns.
Mat3 rotation(const double* quaternion);

/// M = L Lᵀ in the lower triangle, with 1/L_kk on the diagonal. False where M is not positive definite: then there
/// is 1/0 where that shows.
bool factorise(MassMatrix& M);
/// x = (L Lᵀ)⁻¹x
void solve(const MassMatrix& L, double* x);

/// How a tree moves from (q, v) to (q⁺, v⁺). Of the products of which E = vᵀM(q)v⁺ is made the increments are
/// taken exactly, Δ(ab) = ā Δb + b̄ Δa, from the base on and back: ΔE = gᵀΔq without a difference of energies.
/// With v = M⁻¹p at both ends
///   H⁺ − H = ½(v + v⁺)ᵀΔp + ∂̄_qHᵀΔq,   ∂̄_qH = −½g + ∂̄_qV,
/// a symmetric discrete gradient, exact to round-off at every step.
/// Quaternions need not have length 1: E and V are of their direction, so that what rounding makes of their
/// length does not matter.
class Motion {
 public:
  struct Turn;

  explicit Motion(const Tree& tree) : tree_(tree) {}

  void start_at(const double* q);
  Poses start_poses() const;
  void end_at(const double* q_next);
  /// ∂̄_qH, and p⁺ = M(q⁺)v⁺.
  void run(const double* v, const double* v_next, double* slope, double* momentum);
  /// Tree::point_forces over a step. Where q⁺ follows from q with mean velocities v̄, the transpose times v̄ is
  /// exactly (r⁺ − r)/h of a point, and (4/h) tan(¼angle) along the axis about which the body turns from its
  /// attitude at the start to that at the end: bodies whose ports have the same flow keep their places and
  /// attitudes to one another.
  void point_forces(std::span<const Point> points, double* out) const;
  /// After `run`: the derivatives of ∂̄_qH by q⁺ and v⁺, and of M(q⁺)v⁺, column by column for the positions and
  /// then the velocities: (positions + velocities) columns of `slopes` (positions) and `momenta` (velocities).
  void differentiate(const double* q_next, double* slopes, double* momenta) const;

 private:
  using Pair = LaneValues<2>;
  using Lanes = LaneValues<kDirections>;

  /// The joint at both ends: E from the parent's axes to the body's, the place ρ of the joint, and
  /// ΔE = Σ D_k Δq_k, Δρ = axis Δq.
  struct Path {
    Mat3 from, to, mean;
    std::array<Mat3, 4> turn;
    Vec3 place_from, place_to, place_mean, axis;
    double cosine, sine;  ///< of a revolute joint at the start
    HalfTurn by;          ///< half its turn
    double half;
    std::array<double, 4> middle;  ///< of a quaternion
  };
  /// Of the two velocities v and v⁺: at the parent and at the joint in the parent's axes, at the end and in
  /// the mean of both ends.
  struct Link {
    Spatial<Pair> from, to;
    Spatial<Pair> before_to, before_mean;
    Spatial<Pair> force;  ///< dual to the increment of its velocity, with those of what hangs on it
    Spatial<double> momentum;  ///< of v⁺ at the end, with that of what hangs on it
    Vec3 up_from, up_to;       ///< the vertical in the body's axes
    Vec3 up_before_to, up_before_mean;
    Vec3 lift;  ///< dual to the increment of the vertical
  };
  struct WorldPath;
  struct Tangent;
  struct OwnSlopes;
  struct Directions;

  void end_of_turn(const Body& body, const double* q_next, Path& path) const;
  void end_of_angle(const Body& body, double angle, Path& path) const;
  void follow(std::span<WorldPath> worlds, bool turns) const;
  Turn turn_of_joint(std::size_t i) const;
  void torque_at(std::size_t i, const WorldPath& own, const Vec3& torque, double* out) const;
  void force_at(std::size_t i, const WorldPath& own, const Vec3& force, const Vec3& place,
                double* out) const;
  void run_out(const double* v, const double* v_next);
  void run_back(double* slope, double* momentum);
  OwnSlopes own_slopes(int i, const double* q_next) const;
  void tangents_out(const Directions& directions, Tangent* tangents) const;
  void tangents_back(const Directions& directions, Tangent* tangents, double* slopes,
                     double* momenta) const;
  Lanes tangent_of_slide(const Directions& directions, std::size_t i, const Tangent& own) const;
  Lanes tangent_of_turn(const Directions& directions, std::size_t i, std::size_t k,
                        const Tangent& own) const;
  void carry_tangents(const Directions& directions, std::size_t i, const Tangent& own,
                      Tangent& parent) const;

  const Tree& tree_;
  std::array<double, kMostPositions> q_;
  std::array<Path, kMostBodies> paths_;
  std::array<Link, kMostBodies> links_;
};

}  // namespace portwave::articulated

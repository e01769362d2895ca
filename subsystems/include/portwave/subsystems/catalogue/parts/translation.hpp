#pragma once

// Made from the catalogue by subsystems/catalogue/part_factories.py: change the type there.
// clang-format off

#include <optional>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/catalogue/catalogue_part.hpp"

namespace PORTWAVE_EXPORT portwave {
namespace parts {

/// Parameters of `duffing_oscillator`.
struct DuffingOscillatorParameters {
  /// mass m [kg]; > 0; required
  std::optional<double> mass_kg = {};
  /// stiffness k1 of the spring to ground [N/m]; >= 0; required
  std::optional<double> stiffness_N_per_m = {};
  /// its hardening k3 [N/m^3]; >= 0
  double cubic_stiffness_N_per_m3 = 0.0;
  /// damper c1 to ground [N s/m]; >= 0 (less with allow_active)
  double damping_Ns_per_m = 0.0;
  /// stiffness k12 of the coupling spring [N/m]; >= 0
  double coupling_stiffness_N_per_m = 0.0;
  /// damper c12 beside the coupling spring [N s/m]; >= 0 (less with allow_active)
  double coupling_damping_Ns_per_m = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Mass on a hardening spring, with a coupling spring whose free end is the port.
///   H(q,v,d) = m v^2/2 + k1 q^2/2 + k3 q^4/4 + k12 d^2/2
///   q' = v,  d' = u - v,  m v' = -k1 q - k3 q^3 - c1 v + e + F,  e = k12 d + c12 (u - v)
/// Ports:   coupling (translation)
/// States:  q1 [m], v1 [m/s], delta [m]
/// Inputs:  force [N]
CataloguePart duffing_oscillator(const DuffingOscillatorParameters& parameters);

/// Parameters of `duffing_node`.
struct DuffingNodeParameters {
  /// mass m [kg]; > 0; required
  std::optional<double> mass_kg = {};
  /// stiffness k1 of the spring to ground [N/m]; >= 0; required
  std::optional<double> stiffness_N_per_m = {};
  /// its hardening k3 [N/m^3]; >= 0
  double cubic_stiffness_N_per_m3 = 0.0;
  /// damper c1 to ground [N s/m]; >= 0 (less with allow_active)
  double damping_Ns_per_m = 0.0;
  /// stiffness k12 of the coupling spring [N/m]; >= 0
  double coupling_stiffness_N_per_m = 0.0;
  /// damper c12 beside the coupling spring [N s/m]; >= 0 (less with allow_active)
  double coupling_damping_Ns_per_m = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Node of a grid: a Duffing mass with springs to the east and south.
///   H = m v^2/2 + k1 q^2/2 + k3 q^4/4 + k12 (d_east^2 + d_south^2)/2
///   q' = v,  m v' = -k1 q - k3 q^3 - c1 v + e_east + e_south - e_west - e_north + F
///   east, south: d' = f - v,  e = k12 d + c12 (f - v)
///   west, north: f = -v
/// Ports:   east (translation), south (translation), west (translation), north (translation)
/// States:  q [m], v [m/s], delta_east [m], delta_south [m]
/// Inputs:  force [N]
CataloguePart duffing_node(const DuffingNodeParameters& parameters);

/// Parameters of `linear_oscillator`.
struct LinearOscillatorParameters {
  /// mass m [kg]; > 0; required
  std::optional<double> mass_kg = {};
  /// stiffness k of the spring to ground [N/m]; >= 0; required
  std::optional<double> stiffness_N_per_m = {};
  /// damper c to ground [N s/m]; >= 0 (less with allow_active)
  double damping_Ns_per_m = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Mass on a spring and damper; the port acts on the mass.
///   H(q,v) = m v^2/2 + k q^2/2
///   q' = v,  m v' = -k q - c v - e + F,  f = -v
/// Ports:   coupling (translation)
/// States:  q2 [m], v2 [m/s]
/// Inputs:  force [N]
CataloguePart linear_oscillator(const LinearOscillatorParameters& parameters);

/// Parameters of `mass_spring_damper_chain`.
struct MassSpringDamperChainParameters {
  /// number of masses; >= 1 and <= 1e+06; required
  std::optional<int> masses = {};
  /// each mass m [kg]; > 0; required
  std::optional<double> mass_kg = {};
  /// springs k between neighbours [N/m]; >= 0; required
  std::optional<double> stiffness_N_per_m = {};
  /// damper from each mass to ground [N s/m]; >= 0 (less with allow_active)
  double damping_Ns_per_m = 0.0;
  /// damper beside each spring between neighbours [N s/m]; >= 0 (less with allow_active)
  double internal_damping_Ns_per_m = 0.0;
  /// spring k_g from each mass to ground [N/m]; >= 0
  double ground_stiffness_N_per_m = 0.0;
  /// springs k_c of the spring ends [N/m]; >= 0
  double coupling_stiffness_N_per_m = 1.0;
  /// dampers c_c beside the springs of spring ends [N s/m]; >= 0 (less with allow_active)
  double coupling_damping_Ns_per_m = 0.0;
  /// what the left port acts on: the end mass, or a spring on it; one of "mass", "spring"
  std::string left_end = "mass";
  /// what the right port acts on: the end mass, or a spring on it; one of "mass", "spring"
  std::string right_end = "spring";
  /// the part may create energy
  bool allow_active = false;
};

/// A line of equal masses joined by springs and dampers, with a port at either end.
///   H = sum m v_i^2/2 + sum k (q_{i+1} - q_i)^2/2 + sum k_g q_i^2/2
///       + k_c (d_left^2 + d_right^2)/2
///   mass end:   f = -v, the mass feels -e
///   spring end: d' = f - v, e = k_c d + c_c (f - v), the mass feels e
/// Ports:   left (translation), right (translation)
/// States:  q1 [m], v1 [m/s], q2 [m], v2 [m/s], q3 [m], v3 [m/s], ...
/// Inputs:  force_1 [N], force_2 [N], force_3 [N]
CataloguePart mass_spring_damper_chain(const MassSpringDamperChainParameters& parameters);

/// Parameters of `mass`.
struct MassParameters {
  /// mass m [kg]; > 0; required
  std::optional<double> mass_kg = {};
  /// damper c to ground [N s/m]; >= 0 (less with allow_active)
  double damping_Ns_per_m = 0.0;
  /// number of ports, one for each part that acts on it; the ports of more than one are numbered
  ///   from _1; >= 1 and <= 1000
  int ports = 1;
  /// the part may create energy
  bool allow_active = false;
};

/// Mass that moves along a line; its ports act on it.
///   H = m v^2/2
///   q' = v,  m v' = -c v - sum of e_i + F,  f_i = -v
///   Join a spring's end to a port by a connection, another mass by common_flow.
/// Ports:   port (translation)
/// States:  position [m], velocity [m/s]
/// Inputs:  force [N]
CataloguePart mass(const MassParameters& parameters);

/// Parameters of `spring`.
struct SpringParameters {
  /// stiffness k [N/m]; > 0; required
  std::optional<double> stiffness_N_per_m = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Spring between two ends.
///   H = k d^2/2
///   d' = f_right - f_left,  e_right = k d,  e_left = -e_right
///   The flows are the velocities of the ends. Join an end to a mass by a connection.
///   d is a state of its own, with a start of its own: positions elsewhere do not set it.
/// Ports:   left (translation), right (translation)
/// States:  elongation [m]
CataloguePart spring(const SpringParameters& parameters);

/// Parameters of `damper`.
struct DamperParameters {
  /// damping c [N s/m]; >= 0 (less with allow_active); required
  std::optional<double> damping_Ns_per_m = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Damper between two ends.
///   H = 0
///   e_right = c (f_right - f_left),  e_left = -e_right
///   The flows are the velocities of the ends. Join an end to a mass by a connection.
/// Ports:   left (translation), right (translation)
CataloguePart damper(const DamperParameters& parameters);

/// Parameters of `spring_damper`.
struct SpringDamperParameters {
  /// stiffness k [N/m]; > 0; required
  std::optional<double> stiffness_N_per_m = {};
  /// damping c [N s/m]; >= 0 (less with allow_active); required
  std::optional<double> damping_Ns_per_m = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Spring and damper side by side between two ends.
///   H = k d^2/2
///   d' = f_right - f_left,  e_right = k d + c d',  e_left = -e_right
///   The flows are the velocities of the ends. Join an end to a mass by a connection.
///   d is a state of its own, with a start of its own: positions elsewhere do not set it.
/// Ports:   left (translation), right (translation)
/// States:  elongation [m]
CataloguePart spring_damper(const SpringDamperParameters& parameters);

/// Parameters of `lever`.
struct LeverParameters {
  /// velocity of the input over that of the output, n; not 0; required
  std::optional<double> ratio = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Lever, or any massless link of a fixed ratio between two points.
///   v_input = n v_output,  f_input = v_input,  f_output = -v_output
///   e_input = e_output/n
///   The input behaves like the end of a spring, the output like a mass.
///   n is the arm of the input over that of the output, < 0 with the pivot between them.
/// Ports:   input (translation), output (translation)
CataloguePart lever(const LeverParameters& parameters);

/// Parameters of `string`.
struct StringParameters {
  /// number of cells n; the error falls as 1/n^2; >= 1 and <= 1e+06; required
  std::optional<int> cells = {};
  /// length [m]; > 0; required
  std::optional<double> length_m = {};
  /// tension T [N]; > 0; required
  std::optional<double> tension_N = {};
  /// mass per length rho [kg/m]; > 0; required
  std::optional<double> density_kg_per_m = {};
  /// damping c by the air, per length [N s/m^2]; >= 0 (less with allow_active)
  double damping_Ns_per_m2 = 0.0;
  /// damping eta within the string [N s]; >= 0 (less with allow_active)
  double internal_damping_Ns = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Taut string that swings sideways, with a port at either end.
///   rho w_tt = (T w_x)_x - c w_t + eta w_txx + F
///   n cells of length l, their masses in the middle: displacements q_i, velocities v_i
///   H = sum rho l v_i^2/2 + sum T (q_{i+1} - q_i)^2/(2 l) + T (d_left^2 + d_right^2)/l
///   d' = f - v,  e = 2 (T d + eta d')/l at the ends, whose displacements are q + d
/// Ports:   left (translation), right (translation)
/// States:  q1 [m], v1 [m/s], q2 [m], v2 [m/s], q3 [m], v3 [m/s], ...
/// Inputs:  force_1 [N], force_2 [N], force_3 [N]
CataloguePart string(const StringParameters& parameters);

/// Parameters of `euler_bernoulli_beam`.
struct EulerBernoulliBeamParameters {
  /// number of elements n; the error of a frequency falls as 1/n^4; >= 2 and <= 1000; required
  std::optional<int> elements = {};
  /// length [m]; > 0; required
  std::optional<double> length_m = {};
  /// bending stiffness EI: modulus times second moment of area [N m^2]; > 0; required
  std::optional<double> bending_stiffness_Nm2 = {};
  /// mass per length rho [kg/m]; > 0; required
  std::optional<double> density_kg_per_m = {};
  /// damping a in proportion to the mass [1/s]; >= 0 (less with allow_active)
  double mass_damping_1_per_s = 0.0;
  /// damping b in proportion to the stiffness [s]; >= 0 (less with allow_active)
  double stiffness_damping_s = 0.0;
  /// left and right end: clamped and free, both clamped, clamped and pinned, both pinned; one of
  ///   "cantilever", "clamped", "propped", "simple"
  std::string supports = "cantilever";
  /// the part may create energy
  bool allow_active = false;
};

/// Slender beam that bends in a plane, by cubic finite elements.
///   rho w_tt + EI w_xxxx = load, and damping by mass and stiffness: a M + b K
///   H = v^T M v/2 + w^T K w/2,  w' = v,  M v' = -K w - (a M + b K) v + forces
///   w: displacement and slope of the nodes 0 to n that are not held; M: consistent mass matrix
///   The ports act on node n of a cantilever, else on node n/2 rounded down, like those of a mass:
///   f_force = -v,  f_moment = -slope_rate.  The load is the same all over the beam.
/// Ports:   force (translation), moment (rotation)
/// States:  w1 [m], slope1 [rad], w2 [m], slope2 [rad], w3 [m], slope3 [rad], ...
/// Inputs:  load [N/m]
CataloguePart euler_bernoulli_beam(const EulerBernoulliBeamParameters& parameters);

/// Parameters of `coulomb_damper`.
struct CoulombDamperParameters {
  /// friction F while it slides [N]; >= 0; required
  std::optional<double> friction_N = {};
  /// speed v0 at which it has three quarters of F: sticking is creep below it [m/s]; > 0; required
  std::optional<double> creep_speed_m_per_s = {};
  /// viscous part c [N s/m]; >= 0
  double viscosity_Ns_per_m = 0.0;
  /// friction Fs at rest, at least F; 0: F [N]; >= 0
  double static_friction_N = 0.0;
  /// speed vs at which friction has fallen by 63 % of Fs - F; > 0 with Fs > F [m/s]; >= 0
  double stribeck_speed_m_per_s = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Dry friction with a viscous part, between its port and the ground.
///   e = F tanh(f/v0) + c f
///   With a static friction Fs > F:  e = L tanh(f/v0) + c f,  L = F + (Fs - F) exp(-(s/vs)^2),
///   s being the mean of f over the step before: a state without energy, 0 at rest. L is held in a
///   step, of order 1: take steps in which f changes little beside vs, and v0 well below vs.
/// Ports:   end (translation)
CataloguePart coulomb_damper(const CoulombDamperParameters& parameters);

/// Parameters of `contact`.
struct ContactParameters {
  /// force at rest where the compression is compression_m [N]; > 0; required
  std::optional<double> force_N = {};
  /// compression s at which the force is force_N [m]; > 0; required
  std::optional<double> compression_m = {};
  /// a: about 1.5 (1 - restitution)/speed for impacts of that speed [s/m]; >= 0
  double damping_s_per_m = 0.0;
  /// distance of the faces where d is 0; >= 0 with both sides, and then the play is twice as large
  ///   [m]
  double gap_m = 0.0;
  /// whether the faces touch as the approach d grows, as it falls, or either way; one of
  ///   "positive", "negative", "both"
  std::string side = "positive";
  /// n: linear, or Hertz's law of round bodies; one of "linear", "hertz"
  std::string law = "linear";
  /// direction in which d grows, for a face that moves in a plane or in space: 2 or 3 components,
  ///   of any length; absent: along a line
  std::vector<double> normal = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Contact: pushes where it is compressed and lets go elsewhere, on one side or both.
///   d' = f,  s = max(0, d - gap), or max(0, -d - gap) with side "negative",
///   or max(0, |d| - gap) with "both": a spring with play, or a pair of end stops
///   H = k s^(n+1)/(n+1)
///   e = +-k s^n max(0, 1 + a s'),  n = 1 (linear) or 3/2 (Hertz),  k = force/compression^n
///   with a normal N of 2 or 3 components:  d' = N^T f,  e = N times the above; no friction
/// Ports:   face (translation)
/// States:  approach [m]
CataloguePart contact(const ContactParameters& parameters);

/// Parameters of `ground_contact`.
struct GroundContactParameters {
  /// force at rest where the compression is compression_m [N]; > 0; required
  std::optional<double> force_N = {};
  /// compression s at which the force is force_N [m]; > 0; required
  std::optional<double> compression_m = {};
  /// a: about 1.5 (1 - restitution)/speed for impacts of that speed [s/m]; >= 0
  double damping_s_per_m = 0.0;
  /// coefficient mu of friction; >= 0; required
  std::optional<double> friction = {};
  /// slip v0 at which friction is three quarters of mu N: sticking is creep below it [m/s]; > 0;
  ///   required
  std::optional<double> creep_speed_m_per_s = {};
  /// direction n out of the ground, of any length: 2 or 3 components; absent: z, in space
  std::vector<double> normal = {};
  /// of the ground, from the origin along n [m]
  double height_m = 0.0;
  /// radius R of the sphere; 0: a point [m]; >= 0
  double radius_m = 0.0;
  /// whether a port "spin" takes the angular velocity, so that the sphere rolls; else it carries no
  ///   torque
  bool rolls = false;
  /// m: linear, or Hertz's law of round bodies; one of "linear", "hertz"
  std::string law = "linear";
  /// the part may create energy
  bool allow_active = false;
};

/// A point or a sphere of a body on the ground, with Coulomb friction by the normal force.
///   r' = u,  s = max(0, height + R - n^T r):  r, the point or the sphere's centre, in world axes
///   H = k s^(m+1)/(m+1),  N = k s^m max(0, 1 + a s'),  m = 1 (linear) or 3/2 (Hertz),
///   k = force/compression^m:  the ground pushes and never pulls
///   e = -n N + mu N tanh(|u_t|/v0) u_t/|u_t|,  u_t = u - n n^T u:  at most mu N, against the slip
///   u = f_point;  with rolls:  u = f_point + R n x f_spin,  e_spin = R (n x .)^T e,  and r is
///   how far the surface has moved and slid. Start r where the body has the point.
/// Ports:   point (translation, 3 entries), spin (rotation, 3 entries)
/// States:  x [m], y [m], z [m]
CataloguePart ground_contact(const GroundContactParameters& parameters);

/// Parameters of `cart_pendulum`.
struct CartPendulumParameters {
  /// mass m_c of the cart [kg]; > 0; required
  std::optional<double> cart_mass_kg = {};
  /// mass m of the pendulum [kg]; > 0; required
  std::optional<double> mass_kg = {};
  /// distance l from the joint to the mass centre [m]; > 0; required
  std::optional<double> length_m = {};
  /// moment of inertia J_c of the pendulum about its mass centre [kg m^2]; >= 0
  double inertia_kgm2 = 0.0;
  /// damper c_x between cart and rail [N s/m]; >= 0 (less with allow_active)
  double cart_damping_Ns_per_m = 0.0;
  /// damper c in the joint [N m s/rad]; >= 0 (less with allow_active)
  double damping_Nms_per_rad = 0.0;
  /// acceleration g of gravity [m/s^2]; >= 0
  double gravity_m_per_s2 = 9.81;
  /// the part may create energy
  bool allow_active = false;
};

/// A cart on a rail with a pendulum, which hangs at angle 0; the port acts on the cart.
///   H = [p; P]^T M(q)^-1 [p; P]/2 + m g l (1 - cos q)
///   M = [m_c + m, m l cos q; m l cos q, J_c + m l^2],  [x'; q'] = M^-1 [p; P]
///   p' = -c_x x' - e + F,  P' = -m l sin q (x' q' + g) - c q' + T,  f = -x'
/// Ports:   cart (translation)
/// States:  position [m], angle [rad], momentum [kg m/s], angular_momentum [kg m^2/s]
/// Inputs:  force [N], torque [N m]
CataloguePart cart_pendulum(const CartPendulumParameters& parameters);

/// Parameters of `rigid_body`.
struct RigidBodyParameters {
  /// mass m [kg]; > 0; required
  std::optional<double> mass_kg = {};
  /// principal moment of inertia I_1 [kg m^2]; > 0; required
  std::optional<double> inertia_1_kgm2 = {};
  /// principal moment of inertia I_2 [kg m^2]; > 0; required
  std::optional<double> inertia_2_kgm2 = {};
  /// principal moment of inertia I_3 [kg m^2]; > 0; required
  std::optional<double> inertia_3_kgm2 = {};
  /// damper c against the velocity [N s/m]; >= 0 (less with allow_active)
  double damping_Ns_per_m = 0.0;
  /// damper c_w against the rotation [N m s/rad]; >= 0 (less with allow_active)
  double angular_damping_Nms_per_rad = 0.0;
  /// acceleration g of gravity, against z [m/s^2]; >= 0
  double gravity_m_per_s2 = 9.81;
  /// names of ports on points of the body, in world axes
  std::vector<std::string> frames = {};
  /// x, y, z of each frame from the mass centre, in the principal axes; 0 if absent [m]
  MatrixParameter frame_points_m = {};
  /// the part may create energy
  bool allow_active = false;
};

/// A rigid body in space: forces at its mass centre and torques, both in world axes.
///   H = |p|^2/(2 m) + m g z + L_1^2/(2 I_1) + L_2^2/(2 I_2) + L_3^2/(2 I_3),  w_i = L_i/I_i
///   r' = p/m,  p' = -m g e_z - c r' - e_force + F
///   q' = q (0, w)/2,  L' = L x w - c_w w + A(q)^T (T - e_torque)
///   f_force = -r',  f_torque = -A(q) w
///   frame at a point s: f = -(r + A(q) s)', the point feels -e
///   L, w in body axes, the principal ones; A(q) turns them into world axes, z being up
/// Ports:   force (translation, 3 entries), torque (rotation, 3 entries)
/// States:  x [m], y [m], z [m], p_x [kg m/s], p_y [kg m/s], p_z [kg m/s], ...
/// Inputs:  force_x [N], force_y [N], force_z [N], torque_x [N m], torque_y [N m], torque_z [N m]
CataloguePart rigid_body(const RigidBodyParameters& parameters);

/// Parameters of `articulated`.
struct ArticulatedParameters {
  /// how each body hangs on its parent, one body to a joint; one of "revolute", "prismatic",
  ///   "spherical", "free", "fixed"; required
  std::vector<std::string> joints = {};
  /// names of the joints, from which those of ports, states and inputs are made; joint_1, joint_2,
  ///   ... if absent
  std::vector<std::string> names = {};
  /// the number of the body on which each hangs, from 1, and 0 for the world; the one before if
  ///   absent
  std::vector<double> parents = {};
  /// x, y, z of each joint in the axes of its parent; 0 if absent [m]
  MatrixParameter places_m = {};
  /// roll, pitch, yaw of the axes of each joint in those of its parent, as in URDF; 0 if absent
  ///   [rad]
  MatrixParameter turns_rad = {};
  /// axis of each revolute and prismatic joint in its own axes; z if absent
  MatrixParameter axes = {};
  /// masses of the bodies [kg]; >= 0; required
  std::vector<double> masses_kg = {};
  /// x, y, z of each mass centre in the axes of its joint; 0 if absent [m]
  MatrixParameter centres_m = {};
  /// xx, xy, xz, yy, yz, zz of each body about its mass centre, in the axes of its joint; 0 if
  ///   absent [kg m^2]
  MatrixParameter inertias_kgm2 = {};
  /// dampers d in the joints, in N m s/rad or N s/m; none if absent; >= 0
  std::vector<double> damping = {};
  /// acceleration g of gravity, against z [m/s^2]; >= 0
  double gravity_m_per_s2 = 9.81;
  /// whether the joints have ports
  bool joint_ports = true;
  /// names of ports on points of bodies, in world axes
  std::vector<std::string> frames = {};
  /// the joint whose body each frame is on
  std::vector<std::string> frame_joints = {};
  /// x, y, z of each frame in the axes of that body; 0 if absent [m]
  MatrixParameter frame_points_m = {};
  /// what each frame has a port for: the force on the point, the torque on the body, or, as wrench,
  ///   both, the torque at a port <frame>_torque; force if absent; one of "force", "torque",
  ///   "wrench"
  std::vector<std::string> frame_kinds = {};
  /// the part may create energy
  bool allow_active = false;
};

/// A tree of rigid bodies in space, such as a robot: it hangs in the world or is free.
///   H(q,p) = p^T M(q)^-1 p/2 + V(q),  V: weights against z,  v = M^-1 p
///   revolute, prismatic: q' = v,  p' = -dH/dq - d v - e + T,  f = -v
///   spherical: q' = q (0, w)/2,  L' = L x w - (q (0, .)/2)^T dH/dq - d w - e + T, in the body's axes
///   free: position r and p = dT/dr' in world axes beside q and L of a spherical joint
///   frame at a point of a body: f = -its velocity in world axes, the point feels -e; torque: f = -w, the body feels -e
/// Ports:   base (rotation), shoulder (rotation), boom (translation), load (rotation, 3 entries),
///   tip (translation, 3 entries), tip_torque (rotation, 3 entries)
/// States:  base_angle [rad], shoulder_angle [rad], boom_position [m], load_q_w, load_q_x,
///   load_q_y, ...
/// Inputs:  base_torque [N m], shoulder_torque [N m], boom_force [N], load_torque_1 [N m],
///   load_torque_2 [N m], load_torque_3 [N m]
CataloguePart articulated(const ArticulatedParameters& parameters);

}  // namespace parts
}  // namespace portwave

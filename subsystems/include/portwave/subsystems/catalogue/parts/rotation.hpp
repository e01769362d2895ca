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

/// Parameters of `inertia`.
struct InertiaParameters {
  /// moment of inertia J [kg m^2]; > 0; required
  std::optional<double> inertia_kgm2 = {};
  /// damper b to ground [N m s/rad]; >= 0 (less with allow_active)
  double damping_Nms_per_rad = 0.0;
  /// number of ports, one for each part that acts on it; the ports of more than one are numbered
  ///   from _1; >= 1 and <= 1000
  int ports = 1;
  /// the part may create energy
  bool allow_active = false;
};

/// Body that turns about an axis; its ports act on it.
///   H = J w^2/2
///   angle' = w,  J w' = -b w - sum of e_i + T,  f_i = -w
///   Join a torsional spring's end to a port by a connection, another inertia by common_flow.
/// Ports:   shaft (rotation)
/// States:  angle [rad], speed [rad/s]
/// Inputs:  torque [N m]
CataloguePart inertia(const InertiaParameters& parameters);

/// Parameters of `torsional_spring`.
struct TorsionalSpringParameters {
  /// stiffness k [N m/rad]; > 0; required
  std::optional<double> stiffness_Nm_per_rad = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Torsional spring between two ends.
///   H = k d^2/2
///   d' = f_right - f_left,  e_right = k d,  e_left = -e_right
///   The flows are the angular velocities of the ends. Join an end to an inertia by a connection.
///   d is a state of its own, with a start of its own: positions elsewhere do not set it.
/// Ports:   left (rotation), right (rotation)
/// States:  twist [rad]
CataloguePart torsional_spring(const TorsionalSpringParameters& parameters);

/// Parameters of `rotational_damper`.
struct RotationalDamperParameters {
  /// damping c [N m s/rad]; >= 0 (less with allow_active); required
  std::optional<double> damping_Nms_per_rad = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Rotational damper between two ends.
///   H = 0
///   e_right = c (f_right - f_left),  e_left = -e_right
///   The flows are the angular velocities of the ends. Join an end to an inertia by a connection.
/// Ports:   left (rotation), right (rotation)
CataloguePart rotational_damper(const RotationalDamperParameters& parameters);

/// Parameters of `torsional_spring_damper`.
struct TorsionalSpringDamperParameters {
  /// stiffness k [N m/rad]; > 0; required
  std::optional<double> stiffness_Nm_per_rad = {};
  /// damping c [N m s/rad]; >= 0 (less with allow_active); required
  std::optional<double> damping_Nms_per_rad = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Torsional spring and damper side by side between two ends.
///   H = k d^2/2
///   d' = f_right - f_left,  e_right = k d + c d',  e_left = -e_right
///   The flows are the angular velocities of the ends. Join an end to an inertia by a connection.
///   d is a state of its own, with a start of its own: positions elsewhere do not set it.
/// Ports:   left (rotation), right (rotation)
/// States:  twist [rad]
CataloguePart torsional_spring_damper(const TorsionalSpringDamperParameters& parameters);

/// Parameters of `gear`.
struct GearParameters {
  /// speed of the input over that of the output, n; not 0; required
  std::optional<double> ratio = {};
  /// friction b, seen at the input [N m s/rad]; >= 0 (less with allow_active)
  double damping_Nms_per_rad = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Gear between two shafts, without inertia and play.
///   w_input = n w_output,  f_input = w_input,  f_output = -w_output
///   e_input = e_output/n + b w_input
///   The input behaves like the end of a torsional spring, the output like an inertia.
///   n < 0: the shafts turn against each other, as those of two spur gears.
/// Ports:   input (rotation), output (rotation)
CataloguePart gear(const GearParameters& parameters);

/// Parameters of `flexible_joint`.
struct FlexibleJointParameters {
  /// moment of inertia J of the rotor [kg m^2]; > 0; required
  std::optional<double> motor_inertia_kgm2 = {};
  /// stiffness k, seen at the link [N m/rad]; > 0; required
  std::optional<double> stiffness_Nm_per_rad = {};
  /// damping c beside the stiffness [N m s/rad]; >= 0 (less with allow_active)
  double damping_Nms_per_rad = 0.0;
  /// friction b of the rotor [N m s/rad]; >= 0 (less with allow_active)
  double motor_damping_Nms_per_rad = 0.0;
  /// turns of the rotor for one of the link, n; not 0
  double ratio = 1.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Robot joint: a rotor that drives a link through a gear and an elastic shaft.
///   H = J w^2/2 + k d^2/2
///   angle' = w,  d' = w_link - w/n,  s = k d + c d'
///   J w' = T - b w - e_motor + s/n,  f_motor = -w
///   f_link = w_link,  e_link = s
///   Join the link to an inertia or the joint of an arm by a connection, the motor to the shaft of a
///   dc_motor by common_flow.
/// Ports:   motor (rotation), link (rotation)
/// States:  angle [rad], speed [rad/s], twist [rad]
/// Inputs:  torque [N m]
CataloguePart flexible_joint(const FlexibleJointParameters& parameters);

/// Parameters of `rotational_coulomb_damper`.
struct RotationalCoulombDamperParameters {
  /// friction F while it slides [N m]; >= 0; required
  std::optional<double> friction_Nm = {};
  /// speed v0 at which it has three quarters of F: sticking is creep below it [rad/s]; > 0;
  ///   required
  std::optional<double> creep_speed_rad_per_s = {};
  /// viscous part c [N m s/rad]; >= 0
  double viscosity_Nms_per_rad = 0.0;
  /// friction Fs at rest, at least F; 0: F [N m]; >= 0
  double static_friction_Nm = 0.0;
  /// speed vs at which friction has fallen by 63 % of Fs - F; > 0 with Fs > F [rad/s]; >= 0
  double stribeck_speed_rad_per_s = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Dry friction of a bearing or brake with a viscous part.
///   e = F tanh(f/v0) + c f
///   With a static friction Fs > F:  e = L tanh(f/v0) + c f,  L = F + (Fs - F) exp(-(s/vs)^2),
///   s being the mean of f over the step before: a state without energy, 0 at rest. L is held in a
///   step, of order 1: take steps in which f changes little beside vs, and v0 well below vs.
/// Ports:   shaft (rotation)
CataloguePart rotational_coulomb_damper(const RotationalCoulombDamperParameters& parameters);

/// Parameters of `rotational_contact`.
struct RotationalContactParameters {
  /// torque at rest where the compression is angle_rad [N m]; > 0; required
  std::optional<double> torque_Nm = {};
  /// compression s at which the torque is torque_Nm [rad]; > 0; required
  std::optional<double> angle_rad = {};
  /// a: about 1.5 (1 - restitution)/speed for impacts of that speed [s/rad]; >= 0
  double damping_s_per_rad = 0.0;
  /// distance of the faces where d is 0; >= 0 with both sides, and then the play is twice as large
  ///   [rad]
  double gap_rad = 0.0;
  /// whether the faces touch as the approach d grows, as it falls, or either way; one of
  ///   "positive", "negative", "both"
  std::string side = "positive";
  /// n: linear, or Hertz's law of round bodies; one of "linear", "hertz"
  std::string law = "linear";
  /// the part may create energy
  bool allow_active = false;
};

/// End stop of a shaft: pushes where it is compressed and lets go elsewhere, on one side or both.
///   d' = f,  s = max(0, d - gap), or max(0, -d - gap) with side "negative",
///   or max(0, |d| - gap) with "both": a torsional spring with play, or a pair of end stops
///   H = k s^(n+1)/(n+1)
///   e = +-k s^n max(0, 1 + a s'),  n = 1 (linear) or 3/2 (Hertz),  k = torque/angle^n
/// Ports:   shaft (rotation)
/// States:  approach [rad]
CataloguePart rotational_contact(const RotationalContactParameters& parameters);

/// Parameters of `gear_with_backlash`.
struct GearWithBacklashParameters {
  /// torque at the output that twists the teeth by angle_rad [N m]; > 0; required
  std::optional<double> torque_Nm = {};
  /// twist of the teeth by torque_Nm, seen at the output, with the input held [rad]; > 0; required
  std::optional<double> angle_rad = {};
  /// a: about 1.5 (1 - restitution)/speed for impacts of that speed [s/rad]; >= 0
  double damping_s_per_rad = 0.0;
  /// play b from one flank to the other, seen at the output [rad]; >= 0; required
  std::optional<double> backlash_rad = {};
  /// speed of the input over that of the output, n; not 0; required
  std::optional<double> ratio = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Gear between two shafts, with elastic teeth and play between them, without inertia.
///   d' = w_input/n - w_output,  s = max(0, |d| - b/2)
///   H = k s^2/2,  T = sign(d) k s max(0, 1 + a s'),  k = torque/angle
///   f_input = w_input,  e_input = T/n,  f_output = w_output,  e_output = -T
///   Both ends behave like those of a torsional spring: join them to inertias by connections.
///   The twist d is how far the input is ahead, seen at the output; it starts in the middle of the
///   play unless set. n < 0: the shafts turn against each other, as those of two spur gears.
/// Ports:   input (rotation), output (rotation)
/// States:  twist [rad]
CataloguePart gear_with_backlash(const GearWithBacklashParameters& parameters);

/// Parameters of `pendulum`.
struct PendulumParameters {
  /// mass m [kg]; > 0; required
  std::optional<double> mass_kg = {};
  /// distance l from the shaft to the mass centre [m]; > 0; required
  std::optional<double> length_m = {};
  /// moment of inertia J_c about the mass centre [kg m^2]; >= 0
  double inertia_kgm2 = 0.0;
  /// damper c in the bearing [N m s/rad]; >= 0 (less with allow_active)
  double damping_Nms_per_rad = 0.0;
  /// acceleration g of gravity [m/s^2]; >= 0
  double gravity_m_per_s2 = 9.81;
  /// the part may create energy
  bool allow_active = false;
};

/// A rigid pendulum under gravity; it hangs at angle 0, and the port is its shaft.
///   H(q,p) = p^2/(2 J) + m g l (1 - cos q),  J = J_c + m l^2
///   q' = p/J,  p' = -m g l sin q - c q' - e + T,  f = -q'
/// Ports:   shaft (rotation)
/// States:  angle [rad], momentum [kg m^2/s]
/// Inputs:  torque [N m]
CataloguePart pendulum(const PendulumParameters& parameters);

/// Parameters of `planar_arm`.
struct PlanarArmParameters {
  /// lengths l of the links, from the base on [m]; > 0; required
  std::vector<double> lengths_m = {};
  /// their masses [kg]; > 0; required
  std::vector<double> masses_kg = {};
  /// distances from a joint to the mass centre of its link; its middle if absent [m]
  std::vector<double> centres_m = {};
  /// moments of inertia about their mass centres; those of thin rods if absent [kg m^2]; >= 0
  std::vector<double> inertias_kgm2 = {};
  /// dampers d in the joints; none if absent [N m s/rad]; >= 0
  std::vector<double> damping_Nms_per_rad = {};
  /// acceleration g of gravity [m/s^2]; >= 0
  double gravity_m_per_s2 = 9.81;
  /// whether there is a port "tip" for forces (x, y) on the end of the last link
  bool tip_port = false;
  /// the part may create energy
  bool allow_active = false;
};

/// An arm of up to 20 links in a vertical plane; it hangs where all angles are 0.
///   H(q,p) = p^T M(q)^-1 p/2 + V(q),  q: relative joint angles,  theta_k = q_1 + ... + q_k
///   q' = M^-1 p,  p_k' = -dH/dq_k - d_k q_k' - e_k + T_k,  f_k = -q_k'
///   tip at sum l_k (sin theta_k, -cos theta_k):  f_tip = -velocity, the tip feels -e_tip
/// Ports:   joint_1 (rotation), joint_2 (rotation), tip (translation, 2 entries)
/// States:  angle_1 [rad], angle_2 [rad], momentum_1 [kg m^2/s], momentum_2 [kg m^2/s]
/// Inputs:  torque_1 [N m], torque_2 [N m]
CataloguePart planar_arm(const PlanarArmParameters& parameters);

}  // namespace parts
}  // namespace portwave

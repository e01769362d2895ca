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

/// Parameters of `rack_and_pinion`.
struct RackAndPinionParameters {
  /// radius r of the pinion; not 0, < 0: turned round [m]; required
  std::optional<double> radius_m = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Pinion on a shaft that moves a rack, or a wheel that rolls.
///   v = r w,  f_pinion = w,  f_rack = -v
///   e_pinion = r e_rack
///   The pinion behaves like the end of a torsional spring, the rack like a mass.
/// Ports:   pinion (rotation), rack (translation)
CataloguePart rack_and_pinion(const RackAndPinionParameters& parameters);

/// Parameters of `dc_motor`.
struct DcMotorParameters {
  /// inductance L of the winding [H]; > 0; required
  std::optional<double> inductance_H = {};
  /// resistance R of the winding [ohm]; >= 0 (less with allow_active)
  double resistance_ohm = 0.0;
  /// constant k: voltage per speed, and torque per current [V s/rad]; required
  std::optional<double> motor_constant_Vs_per_rad = {};
  /// moment of inertia J of the rotor [kg m^2]; > 0; required
  std::optional<double> inertia_kgm2 = {};
  /// friction b of the bearings [N m s/rad]; >= 0 (less with allow_active)
  double damping_Nms_per_rad = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Direct current motor: winding, magnet and rotor.
///   H = L i^2/2 + J w^2/2
///   L i' = e_terminals - R i - k w,  angle' = w
///   J w' = k i - b w - e_shaft,  f_terminals = i,  f_shaft = -w
///   Join the shaft to a gear's input or a torsional spring by a connection, to another inertia or
///   the rotor of a flexible_joint by common_flow: a connection would turn the two against each other.
/// Ports:   terminals (electrical), shaft (rotation)
/// States:  current [A], angle [rad], speed [rad/s]
CataloguePart dc_motor(const DcMotorParameters& parameters);

/// Parameters of `synchronous_machine`.
struct SynchronousMachineParameters {
  /// resistance r of a winding [ohm]; >= 0 (less with allow_active)
  double resistance_ohm = 0.0;
  /// inductance L_d along the magnets [H]; > 0; required
  std::optional<double> inductance_d_H = {};
  /// inductance L_q across the magnets [H]; > 0; required
  std::optional<double> inductance_q_H = {};
  /// flux linkage psi_m of the magnets; 0: a reluctance machine [V s]; >= 0; required
  std::optional<double> magnet_flux_Vs = {};
  /// pairs of poles n; >= 1 and <= 1000
  int pole_pairs = 1;
  /// moment of inertia J of the rotor [kg m^2]; > 0; required
  std::optional<double> inertia_kgm2 = {};
  /// damper c in the bearings [N m s/rad]; >= 0 (less with allow_active)
  double damping_Nms_per_rad = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// A synchronous machine with permanent magnets in the frame of its rotor (d, q), power invariant.
///   H = (psi_d - psi_m)^2/(2 L_d) + psi_q^2/(2 L_q) + p^2/(2 J),  w = p/J
///   i_d = (psi_d - psi_m)/L_d,  i_q = psi_q/L_q
///   psi_d' = e_d - r i_d + n w psi_q,  psi_q' = e_q - r i_q - n w psi_d
///   p' = n (psi_d i_q - psi_q i_d) - c w - e_shaft + T
///   f_d = i_d,  f_q = i_q,  f_shaft = -w
/// Ports:   d (electrical), q (electrical), shaft (rotation)
/// States:  flux_d [V s], flux_q [V s], momentum [kg m^2/s]
/// Inputs:  torque [N m]
CataloguePart synchronous_machine(const SynchronousMachineParameters& parameters);

/// Parameters of `park_transform`.
struct ParkTransformParameters {
  /// pairs of poles n of the machine; >= 1 and <= 1000; required
  std::optional<int> pole_pairs = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Park's transformation: windings seen from the rotor (d, q) and from the stator (alpha, beta).
///   angle' = n f_shaft,  e_shaft = 0
///   [e_d; e_q] = A [e_alpha; e_beta],  [f_alpha; f_beta] = -A^T [f_d; f_q]
///   A = [cos angle, sin angle; -sin angle, cos angle]: power invariant, no energy
///   d and q go to a synchronous_machine, alpha and beta to voltages; shaft to the machine's shaft.
/// Ports:   d (electrical), q (electrical), alpha (electrical), beta (electrical), shaft (rotation)
/// States:  angle [rad]
CataloguePart park_transform(const ParkTransformParameters& parameters);

}  // namespace parts
}  // namespace portwave

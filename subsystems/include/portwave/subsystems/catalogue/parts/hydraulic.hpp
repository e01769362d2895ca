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

/// Parameters of `tank`.
struct TankParameters {
  /// area A of the surface [m^2]; > 0; required
  std::optional<double> area_m2 = {};
  /// density rho of the liquid [kg/m^3]; > 0
  double density_kg_per_m3 = 1000.0;
  /// gravity g [m/s^2]; > 0
  double gravity_m_per_s2 = 9.80665;
  /// the part may create energy
  bool allow_active = false;
};

/// Open tank with upright walls; pressure is that at its bottom above the ambient.
///   H = rho g A h^2/2
///   A h' = f + inflow,  e = rho g h
///   Below 0 the level goes on like that of a full pipe: no outlet runs dry.
/// Ports:   outlet (hydraulic)
/// States:  level [m]
/// Inputs:  inflow [m^3/s]
CataloguePart tank(const TankParameters& parameters);

/// Parameters of `fluid_line`.
struct FluidLineParameters {
  /// number of cells n; the error falls as 1/n^2; >= 1 and <= 1e+06; required
  std::optional<int> cells = {};
  /// of the whole line: density times length over area [kg/m^4]; > 0; required
  std::optional<double> inertance_kg_per_m4 = {};
  /// of the whole line: volume over bulk modulus [m^3/Pa]; > 0; required
  std::optional<double> capacitance_m3_per_Pa = {};
  /// pressure lost per flow by the whole line [Pa s/m^3]; >= 0 (less with allow_active)
  double friction_Pas_per_m3 = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Pipe as a line of cells: half the inertance of a cell, its capacitance, the other half.
///   H = sum I_j Q_j^2/2 + sum C p_i^2/2,  I and C of the whole line divided by n
///   I_j Q_j' = p_{j-1} - p_j - R_j Q_j,  C p_i' = Q_i - Q_{i+1}
///   Q_1 and Q_{n+1} have half a cell's I and R;  p_0 = e_left,  p_{n+1} = e_right
///   f_left = Q_1,  f_right = -Q_{n+1}
/// Ports:   left (hydraulic), right (hydraulic)
/// States:  flow_1 [m^3/s], pressure_1 [Pa], flow_2 [m^3/s], pressure_2 [Pa], flow_3 [m^3/s],
///   pressure_3 [Pa], ...
CataloguePart fluid_line(const FluidLineParameters& parameters);

/// Parameters of `valve`.
struct ValveParameters {
  /// flow at the nominal pressure [m^3/s]; > 0; required
  std::optional<double> nominal_flow_m3_per_s = {};
  /// pressure drop at the nominal flow [Pa]; > 0; required
  std::optional<double> nominal_pressure_Pa = {};
  /// p0, below which the flow is laminar [Pa]; > 0; required
  std::optional<double> laminar_pressure_Pa = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Turbulent restriction: the flow goes with the root of the pressure drop.
///   f = C e/(e^2 + p0^2)^(1/4), which is C sqrt(|e|) sign(e) where |e| >> p0
///   C = nominal flow/sqrt(nominal pressure)
/// Ports:   line (hydraulic)
CataloguePart valve(const ValveParameters& parameters);

/// Parameters of `check_valve`.
struct CheckValveParameters {
  /// the part may create energy
  bool allow_active = false;
};

/// Ideal check valve: lets a flow pass forward without a drop of pressure, and none back.
///   0 <= f,  e <= 0,  e f = 0
///   It opens where it would else have a forward pressure, and closes where its flow would
///   reverse. Without loss. In series with a pump, a valve or a line: common_flow.
/// Ports:   line (hydraulic)
CataloguePart check_valve(const CheckValveParameters& parameters);

}  // namespace parts
}  // namespace portwave

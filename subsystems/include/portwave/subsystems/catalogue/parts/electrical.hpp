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

/// Parameters of `resistor`.
struct ResistorParameters {
  /// resistance R [ohm]; >= 0 (less with allow_active); required
  std::optional<double> resistance_ohm = {};
  /// what the port gives: voltage for a current (flow_in), or current for a voltage; one of
  ///   "voltage", "current"
  std::string gives = "voltage";
  /// the part may create energy
  bool allow_active = false;
};

/// Resistor between two terminals.
///   e = R f
///   Methods without waves want it to give a current where it meets a capacitor, and a voltage
///   where it meets an inductor.
/// Ports:   terminals (electrical)
CataloguePart resistor(const ResistorParameters& parameters);

/// Parameters of `inductor`.
struct InductorParameters {
  /// inductance L [H]; > 0; required
  std::optional<double> inductance_H = {};
  /// winding resistance R, in series [ohm]; >= 0 (less with allow_active)
  double resistance_ohm = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Coil with its winding resistance.
///   H = L i^2/2
///   L i' = e - R i,  f = i
/// Ports:   terminals (electrical)
/// States:  current [A]
CataloguePart inductor(const InductorParameters& parameters);

/// Parameters of `capacitor`.
struct CapacitorParameters {
  /// capacitance C [F]; > 0; required
  std::optional<double> capacitance_F = {};
  /// leakage conductance G, in parallel [S]; >= 0 (less with allow_active)
  double leakage_S = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Capacitor with its leakage.
///   H = C u^2/2
///   C u' = f - G u,  e = u
/// Ports:   terminals (electrical)
/// States:  voltage [V]
CataloguePart capacitor(const CapacitorParameters& parameters);

/// Parameters of `electrical_transformer`.
struct ElectricalTransformerParameters {
  /// turns of the primary over those of the secondary, n; not 0; required
  std::optional<double> ratio = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Ideal transformer of voltages and currents.
///   e_primary = n e_secondary,  f_secondary = -n f_primary
///   The currents f flow into the part.
/// Ports:   primary (electrical), secondary (electrical)
CataloguePart electrical_transformer(const ElectricalTransformerParameters& parameters);

/// Parameters of `rlc_ladder`.
struct RlcLadderParameters {
  /// number of cells n; >= 1 and <= 1e+06; required
  std::optional<int> cells = {};
  /// each capacitance C [F]; > 0; required
  std::optional<double> capacitance_F = {};
  /// each inductance L [H]; > 0; required
  std::optional<double> inductance_H = {};
  /// resistance R in series with each inductance [ohm]; >= 0 (less with allow_active)
  double resistance_ohm = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Ladder of equal cells: a capacitor across, then a coil with its resistance along.
///   H = sum C u_i^2/2 + sum L i_i^2/2
///   C u_i' = i_{i-1} - i_i,  L i_i' = u_i - u_{i+1} - R i_i
///   i_0 = f_left,  e_left = u_1;  u_{n+1} = e_right,  f_right = -i_n
/// Ports:   left (electrical), right (electrical)
/// States:  voltage_1 [V], current_1 [A], voltage_2 [V], current_2 [A], voltage_3 [V], current_3
///   [A]
CataloguePart rlc_ladder(const RlcLadderParameters& parameters);

/// Parameters of `diode`.
struct DiodeParameters {
  /// saturation current Is [A]; > 0; required
  std::optional<double> saturation_current_A = {};
  /// emission coefficient n, 1 to 2; > 0
  double emission_coefficient = 1.0;
  /// thermal voltage VT, kT/q [V]; > 0
  double thermal_voltage_V = 0.025852;
  /// conductance G beside it [S]; >= 0
  double leakage_S = 1e-12;
  /// the part may create energy
  bool allow_active = false;
};

/// Diode by Shockley's equation, with a leakage beside it.
///   i = Is (exp(u/(n VT)) - 1) + G u
///   beyond u = 40 n VT the exponential goes on as its tangent
/// Ports:   terminals (electrical)
CataloguePart diode(const DiodeParameters& parameters);

/// Parameters of `saturating_inductor`.
struct SaturatingInductorParameters {
  /// inductance L at small currents [H]; > 0; required
  std::optional<double> inductance_H = {};
  /// flux flux_s at which the current is twice that without saturation [V s]; > 0; required
  std::optional<double> saturation_flux_Vs = {};
  /// resistance R of the winding [ohm]; >= 0 (less with allow_active)
  double resistance_ohm = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Coil whose core saturates: the current grows with the cube of the flux.
///   H = flux^2/(2 L) + flux^4/(4 L flux_s^2)
///   i = flux/L (1 + (flux/flux_s)^2),  flux' = u - R i,  f = i
/// Ports:   terminals (electrical)
/// States:  flux [V s]
CataloguePart saturating_inductor(const SaturatingInductorParameters& parameters);

/// Parameters of `electrical_switch`.
struct ElectricalSwitchParameters {
  /// conductance when closed [S]; > 0; required
  std::optional<double> on_S = {};
  /// conductance when open [S]; >= 0
  double off_S = 0.0;
  /// the part may create energy
  bool allow_active = false;
};

/// Switch or breaker: a conductance that closes as its contacts travel from 0 to 1.
///   H = 0,  x' = speed, x stops at 0 (open) and at 1 (closed)
///   f = g e,  g = off + (on - off) x^2 (3 - 2 x)
///   A speed of 1/T for the time T or longer closes it, -1/T opens it. In series with a voltage
///   source, a load or a line: common_flow.
/// Ports:   terminals (electrical)
/// States:  travel
/// Inputs:  speed [1/s]
CataloguePart electrical_switch(const ElectricalSwitchParameters& parameters);

/// Parameters of `ideal_diode`.
struct IdealDiodeParameters {
  /// the part may create energy
  bool allow_active = false;
};

/// Ideal diode: lets a current pass forward without a voltage, and none back.
///   0 <= i,  u <= 0,  u i = 0
///   It conducts where it would else have a forward voltage, and stops where its current would
///   reverse. Without loss. In series with a source, a load or a line: common_flow.
/// Ports:   terminals (electrical)
CataloguePart ideal_diode(const IdealDiodeParameters& parameters);

/// Parameters of `ideal_switch`.
struct IdealSwitchParameters {
  /// the part may create energy
  bool allow_active = false;
};

/// Ideal switch: a short while its input is 0.5 or more, else open.
///   u = 0 where closed >= 0.5,  i = 0 elsewhere
///   Without loss. A step has it open or closed throughout, and its duty is right in the mean. Where
///   it opens under the current of an inductor, or closes on a charged capacitor, an impulse acts.
/// Ports:   terminals (electrical)
/// Inputs:  closed
CataloguePart ideal_switch(const IdealSwitchParameters& parameters);

}  // namespace parts
}  // namespace portwave

#include <algorithm>
#include <utility>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave {
namespace {

enum State { kFluxD, kFluxQ, kMomentum, kStates };
enum Input { kPortD, kPortQ, kShaft, kTorque, kInputs };

struct MachineParameters {
  double resistance = 0.0;
  double inductance_d = 0.0;
  double inductance_q = 0.0;
  double magnet_flux = 0.0;
  double pole_pairs = 1.0;
  double inertia = 1.0;
  double damping = 0.0;
};

/// The speed voltages, which rotate the fluxes and give the torque.
void set_flux_rotation(const MachineParameters& p, const double* x, SparseMatrix& J) {
  const auto set = [&](int flux, double value) {
    J.coeffRef(flux, kMomentum) = value;
    J.coeffRef(kMomentum, flux) = -value;
  };
  set(kFluxD, p.pole_pairs * x[kFluxQ]);
  set(kFluxQ, -p.pole_pairs * x[kFluxD]);
}

Structure machine_structure(const MachineParameters& p, const double* x) {
  Structure s = Structure::zero(kStates, kInputs);
  set_flux_rotation(p, x, s.J);
  s.R.insert(kFluxD, kFluxD) = p.resistance;
  s.R.insert(kFluxQ, kFluxQ) = p.resistance;
  s.R.insert(kMomentum, kMomentum) = p.damping;
  s.G.insert(kFluxD, kPortD) = 1.0;
  s.G.insert(kFluxQ, kPortQ) = 1.0;
  s.G.insert(kMomentum, kShaft) = -1.0;
  s.G.insert(kMomentum, kTorque) = 1.0;
  return s;
}

Hamiltonian machine_storage(const MachineParameters& p) {
  Hamiltonian H;
  H.value = [p](const double* x) {
    const double d = x[kFluxD] - p.magnet_flux;
    return 0.5 * (d * d / p.inductance_d + x[kFluxQ] * x[kFluxQ] / p.inductance_q +
                  x[kMomentum] * x[kMomentum] / p.inertia);
  };
  H.gradient = [p](const double* x, double* g) {
    g[kFluxD] = (x[kFluxD] - p.magnet_flux) / p.inductance_d;
    g[kFluxQ] = x[kFluxQ] / p.inductance_q;
    g[kMomentum] = x[kMomentum] / p.inertia;
  };
  H.hessian = [p](const double* /*x*/, double* hessian) {
    std::fill_n(hessian, kStates * kStates, 0.0);
    hessian[kFluxD * kStates + kFluxD] = 1.0 / p.inductance_d;
    hessian[kFluxQ * kStates + kFluxQ] = 1.0 / p.inductance_q;
    hessian[kMomentum * kStates + kMomentum] = 1.0 / p.inertia;
  };
  return H;
}

std::unique_ptr<Subsystem> build_synchronous_machine(const Parameters& parameters) {
  const MachineParameters p = {
      .resistance = number_of(parameters, "resistance_ohm"),
      .inductance_d = number_of(parameters, "inductance_d_H"),
      .inductance_q = number_of(parameters, "inductance_q_H"),
      .magnet_flux = number_of(parameters, "magnet_flux_Vs"),
      .pole_pairs = static_cast<double>(value_of<int>(parameters, "pole_pairs")),
      .inertia = number_of(parameters, "inertia_kgm2"),
      .damping = number_of(parameters, "damping_Nms_per_rad")};
  NonlinearPortHamiltonian::Options options;
  // One point is exact for a quadratic H.
  options.discrete_gradient = DiscreteGradient::mean_value;
  options.quadrature_points = 1;
  options.polynomial_degree = 2;
  options.allow_active = allows_active(parameters);
  options.default_state = {p.magnet_flux, 0.0, 0.0};  // at rest without currents
  // Fluxes of 1 A beside the magnet, and 1 rad/s.
  options.typical_state = {p.magnet_flux + p.inductance_d, p.magnet_flux + p.inductance_q,
                           p.inertia};
  options.structure_at = [p](const double* x, Structure& out) { set_flux_rotation(p, x, out.J); };
  Signature signature{"synchronous_machine",
                      {{"flux_d", "V s"}, {"flux_q", "V s"}, {"momentum", "kg m^2/s"}},
                      {{"d", Causality::effort_in, Domain::electrical, 1},
                       {"q", Causality::effort_in, Domain::electrical, 1},
                       {"shaft", Causality::effort_in, Domain::rotation, 1}},
                      {{"torque", "N m"}}};
  Structure structure = machine_structure(p, options.default_state.data());
  return std::make_unique<NonlinearPortHamiltonian>(std::move(signature), std::move(structure),
                                                    machine_storage(p), std::move(options));
}

}  // namespace

PartType synchronous_machine_type() {
  PartType type;
  type.name = "synchronous_machine";
  type.group = "transducers";
  type.summary =
      "A synchronous machine with permanent magnets in the frame of its rotor (d, q), power "
      "invariant.";
  type.equations =
      "H = (psi_d - psi_m)^2/(2 L_d) + psi_q^2/(2 L_q) + p^2/(2 J),  w = p/J\n"
      "i_d = (psi_d - psi_m)/L_d,  i_q = psi_q/L_q\n"
      "psi_d' = e_d - r i_d + n w psi_q,  psi_q' = e_q - r i_q - n w psi_d\n"
      "p' = n (psi_d i_q - psi_q i_d) - c w - e_shaft + T\n"
      "f_d = i_d,  f_q = i_q,  f_shaft = -w";
  ParameterInfo pairs = positive_number("pole_pairs", "", "pairs of poles n");
  pairs.kind = ParameterKind::integer;
  pairs.minimum = 1.0;
  pairs.minimum_excluded = false;
  pairs.maximum = 1000.0;
  pairs.default_value = 1;
  type.parameters = {
      damper("resistance_ohm", "ohm", "resistance r of a winding"),
      positive_number("inductance_d_H", "H", "inductance L_d along the magnets"),
      positive_number("inductance_q_H", "H", "inductance L_q across the magnets"),
      non_negative_number("magnet_flux_Vs", "V s",
                          "flux linkage psi_m of the magnets; 0: a reluctance machine"),
      std::move(pairs),
      positive_number("inertia_kgm2", "kg m^2", "moment of inertia J of the rotor"),
      damper("damping_Nms_per_rad", "N m s/rad", "damper c in the bearings"),
  };
  type.build = build_synchronous_machine;
  type.example = {{"resistance_ohm", 0.4},      {"inductance_d_H", 0.3}, {"inductance_q_H", 0.5},
                  {"magnet_flux_Vs", 0.2},      {"pole_pairs", 2},       {"inertia_kgm2", 0.6},
                  {"damping_Nms_per_rad", 0.01}};
  return type;
}

}  // namespace portwave

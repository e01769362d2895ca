// Made from the catalogue by subsystems/catalogue/part_factories.py: change the type there.
// clang-format off

#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::parts {
namespace {

/// Values in the order of the catalogue, and at last that of allow_active.
template <class... Values>
CataloguePart part_of(const char* type, const Values&... values) {
  CataloguePart part(type);
  const std::vector<ParameterInfo>& known = find_part_type(type)->parameters;
  std::size_t i = 0;
  const auto next_name = [&] { return i < known.size() ? known[i++].name : "allow_active"; };
  (part.give(next_name(), values), ...);
  return part;
}

}  // namespace

CataloguePart duffing_oscillator(const DuffingOscillatorParameters& p) {
  return part_of("duffing_oscillator", p.mass_kg, p.stiffness_N_per_m, p.cubic_stiffness_N_per_m3,
                 p.damping_Ns_per_m, p.coupling_stiffness_N_per_m, p.coupling_damping_Ns_per_m,
                 p.allow_active);
}

CataloguePart duffing_node(const DuffingNodeParameters& p) {
  return part_of("duffing_node", p.mass_kg, p.stiffness_N_per_m, p.cubic_stiffness_N_per_m3,
                 p.damping_Ns_per_m, p.coupling_stiffness_N_per_m, p.coupling_damping_Ns_per_m,
                 p.allow_active);
}

CataloguePart linear_oscillator(const LinearOscillatorParameters& p) {
  return part_of("linear_oscillator", p.mass_kg, p.stiffness_N_per_m, p.damping_Ns_per_m,
                 p.allow_active);
}

CataloguePart mass_spring_damper_chain(const MassSpringDamperChainParameters& p) {
  return part_of("mass_spring_damper_chain", p.masses, p.mass_kg, p.stiffness_N_per_m,
                 p.damping_Ns_per_m, p.internal_damping_Ns_per_m, p.ground_stiffness_N_per_m,
                 p.coupling_stiffness_N_per_m, p.coupling_damping_Ns_per_m, p.left_end, p.right_end,
                 p.allow_active);
}

CataloguePart mass(const MassParameters& p) {
  return part_of("mass", p.mass_kg, p.damping_Ns_per_m, p.ports, p.allow_active);
}

CataloguePart spring(const SpringParameters& p) {
  return part_of("spring", p.stiffness_N_per_m, p.allow_active);
}

CataloguePart damper(const DamperParameters& p) {
  return part_of("damper", p.damping_Ns_per_m, p.allow_active);
}

CataloguePart spring_damper(const SpringDamperParameters& p) {
  return part_of("spring_damper", p.stiffness_N_per_m, p.damping_Ns_per_m, p.allow_active);
}

CataloguePart lever(const LeverParameters& p) {
  return part_of("lever", p.ratio, p.allow_active);
}

CataloguePart string(const StringParameters& p) {
  return part_of("string", p.cells, p.length_m, p.tension_N, p.density_kg_per_m,
                 p.damping_Ns_per_m2, p.internal_damping_Ns, p.allow_active);
}

CataloguePart euler_bernoulli_beam(const EulerBernoulliBeamParameters& p) {
  return part_of("euler_bernoulli_beam", p.elements, p.length_m, p.bending_stiffness_Nm2,
                 p.density_kg_per_m, p.mass_damping_1_per_s, p.stiffness_damping_s, p.supports,
                 p.allow_active);
}

CataloguePart coulomb_damper(const CoulombDamperParameters& p) {
  return part_of("coulomb_damper", p.friction_N, p.creep_speed_m_per_s, p.viscosity_Ns_per_m,
                 p.static_friction_N, p.stribeck_speed_m_per_s, p.allow_active);
}

CataloguePart contact(const ContactParameters& p) {
  return part_of("contact", p.force_N, p.compression_m, p.damping_s_per_m, p.gap_m, p.side, p.law,
                 p.normal, p.allow_active);
}

CataloguePart ground_contact(const GroundContactParameters& p) {
  return part_of("ground_contact", p.force_N, p.compression_m, p.damping_s_per_m, p.friction,
                 p.creep_speed_m_per_s, p.normal, p.height_m, p.radius_m, p.rolls, p.law,
                 p.allow_active);
}

CataloguePart cart_pendulum(const CartPendulumParameters& p) {
  return part_of("cart_pendulum", p.cart_mass_kg, p.mass_kg, p.length_m, p.inertia_kgm2,
                 p.cart_damping_Ns_per_m, p.damping_Nms_per_rad, p.gravity_m_per_s2,
                 p.allow_active);
}

CataloguePart rigid_body(const RigidBodyParameters& p) {
  return part_of("rigid_body", p.mass_kg, p.inertia_1_kgm2, p.inertia_2_kgm2, p.inertia_3_kgm2,
                 p.damping_Ns_per_m, p.angular_damping_Nms_per_rad, p.gravity_m_per_s2, p.frames,
                 p.frame_points_m, p.allow_active);
}

CataloguePart articulated(const ArticulatedParameters& p) {
  return part_of("articulated", p.joints, p.names, p.parents, p.places_m, p.turns_rad, p.axes,
                 p.masses_kg, p.centres_m, p.inertias_kgm2, p.damping, p.gravity_m_per_s2,
                 p.joint_ports, p.frames, p.frame_joints, p.frame_points_m, p.frame_kinds,
                 p.allow_active);
}

CataloguePart linear_port_hamiltonian(const LinearPortHamiltonianParameters& p) {
  return part_of("linear_port_hamiltonian", p.states, p.ports, p.inputs, p.J, p.R, p.G, p.P, p.S,
                 p.N, p.Q, p.step_maps, p.allow_active);
}

CataloguePart descriptor_port_hamiltonian(const DescriptorPortHamiltonianParameters& p) {
  return part_of("descriptor_port_hamiltonian", p.states, p.ports, p.inputs, p.E, p.J, p.R, p.B,
                 p.Q, p.step_maps, p.allow_active);
}

CataloguePart second_order_system(const SecondOrderSystemParameters& p) {
  return part_of("second_order_system", p.coordinates, p.ports, p.inputs, p.M, p.D, p.K, p.B,
                 p.step_maps, p.allow_active);
}

CataloguePart port_hamiltonian(const PortHamiltonianParameters& p) {
  return part_of("port_hamiltonian", p.states, p.ports, p.inputs, p.constants, p.energy, p.J, p.R,
                 p.G, p.P, p.S, p.N, p.characteristics, p.characteristic_range, p.default_state,
                 p.typical_state, p.discrete_gradient, p.allow_active);
}

CataloguePart inertia(const InertiaParameters& p) {
  return part_of("inertia", p.inertia_kgm2, p.damping_Nms_per_rad, p.ports, p.allow_active);
}

CataloguePart torsional_spring(const TorsionalSpringParameters& p) {
  return part_of("torsional_spring", p.stiffness_Nm_per_rad, p.allow_active);
}

CataloguePart rotational_damper(const RotationalDamperParameters& p) {
  return part_of("rotational_damper", p.damping_Nms_per_rad, p.allow_active);
}

CataloguePart torsional_spring_damper(const TorsionalSpringDamperParameters& p) {
  return part_of("torsional_spring_damper", p.stiffness_Nm_per_rad, p.damping_Nms_per_rad,
                 p.allow_active);
}

CataloguePart gear(const GearParameters& p) {
  return part_of("gear", p.ratio, p.damping_Nms_per_rad, p.allow_active);
}

CataloguePart flexible_joint(const FlexibleJointParameters& p) {
  return part_of("flexible_joint", p.motor_inertia_kgm2, p.stiffness_Nm_per_rad,
                 p.damping_Nms_per_rad, p.motor_damping_Nms_per_rad, p.ratio, p.allow_active);
}

CataloguePart rotational_coulomb_damper(const RotationalCoulombDamperParameters& p) {
  return part_of("rotational_coulomb_damper", p.friction_Nm, p.creep_speed_rad_per_s,
                 p.viscosity_Nms_per_rad, p.static_friction_Nm, p.stribeck_speed_rad_per_s,
                 p.allow_active);
}

CataloguePart rotational_contact(const RotationalContactParameters& p) {
  return part_of("rotational_contact", p.torque_Nm, p.angle_rad, p.damping_s_per_rad, p.gap_rad,
                 p.side, p.law, p.allow_active);
}

CataloguePart gear_with_backlash(const GearWithBacklashParameters& p) {
  return part_of("gear_with_backlash", p.torque_Nm, p.angle_rad, p.damping_s_per_rad,
                 p.backlash_rad, p.ratio, p.allow_active);
}

CataloguePart pendulum(const PendulumParameters& p) {
  return part_of("pendulum", p.mass_kg, p.length_m, p.inertia_kgm2, p.damping_Nms_per_rad,
                 p.gravity_m_per_s2, p.allow_active);
}

CataloguePart planar_arm(const PlanarArmParameters& p) {
  return part_of("planar_arm", p.lengths_m, p.masses_kg, p.centres_m, p.inertias_kgm2,
                 p.damping_Nms_per_rad, p.gravity_m_per_s2, p.tip_port, p.allow_active);
}

CataloguePart rack_and_pinion(const RackAndPinionParameters& p) {
  return part_of("rack_and_pinion", p.radius_m, p.allow_active);
}

CataloguePart dc_motor(const DcMotorParameters& p) {
  return part_of("dc_motor", p.inductance_H, p.resistance_ohm, p.motor_constant_Vs_per_rad,
                 p.inertia_kgm2, p.damping_Nms_per_rad, p.allow_active);
}

CataloguePart synchronous_machine(const SynchronousMachineParameters& p) {
  return part_of("synchronous_machine", p.resistance_ohm, p.inductance_d_H, p.inductance_q_H,
                 p.magnet_flux_Vs, p.pole_pairs, p.inertia_kgm2, p.damping_Nms_per_rad,
                 p.allow_active);
}

CataloguePart park_transform(const ParkTransformParameters& p) {
  return part_of("park_transform", p.pole_pairs, p.allow_active);
}

CataloguePart resistor(const ResistorParameters& p) {
  return part_of("resistor", p.resistance_ohm, p.gives, p.allow_active);
}

CataloguePart inductor(const InductorParameters& p) {
  return part_of("inductor", p.inductance_H, p.resistance_ohm, p.allow_active);
}

CataloguePart capacitor(const CapacitorParameters& p) {
  return part_of("capacitor", p.capacitance_F, p.leakage_S, p.allow_active);
}

CataloguePart electrical_transformer(const ElectricalTransformerParameters& p) {
  return part_of("electrical_transformer", p.ratio, p.allow_active);
}

CataloguePart rlc_ladder(const RlcLadderParameters& p) {
  return part_of("rlc_ladder", p.cells, p.capacitance_F, p.inductance_H, p.resistance_ohm,
                 p.allow_active);
}

CataloguePart diode(const DiodeParameters& p) {
  return part_of("diode", p.saturation_current_A, p.emission_coefficient, p.thermal_voltage_V,
                 p.leakage_S, p.allow_active);
}

CataloguePart saturating_inductor(const SaturatingInductorParameters& p) {
  return part_of("saturating_inductor", p.inductance_H, p.saturation_flux_Vs, p.resistance_ohm,
                 p.allow_active);
}

CataloguePart electrical_switch(const ElectricalSwitchParameters& p) {
  return part_of("electrical_switch", p.on_S, p.off_S, p.allow_active);
}

CataloguePart ideal_diode(const IdealDiodeParameters& p) {
  return part_of("ideal_diode", p.allow_active);
}

CataloguePart ideal_switch(const IdealSwitchParameters& p) {
  return part_of("ideal_switch", p.allow_active);
}

CataloguePart tank(const TankParameters& p) {
  return part_of("tank", p.area_m2, p.density_kg_per_m3, p.gravity_m_per_s2, p.allow_active);
}

CataloguePart fluid_line(const FluidLineParameters& p) {
  return part_of("fluid_line", p.cells, p.inertance_kg_per_m4, p.capacitance_m3_per_Pa,
                 p.friction_Pas_per_m3, p.allow_active);
}

CataloguePart valve(const ValveParameters& p) {
  return part_of("valve", p.nominal_flow_m3_per_s, p.nominal_pressure_Pa, p.laminar_pressure_Pa,
                 p.allow_active);
}

CataloguePart check_valve(const CheckValveParameters& p) {
  return part_of("check_valve", p.allow_active);
}

CataloguePart effort_source(const EffortSourceParameters& p) {
  return part_of("effort_source", p.domain, p.allow_active);
}

CataloguePart flow_source(const FlowSourceParameters& p) {
  return part_of("flow_source", p.domain, p.allow_active);
}

}  // namespace portwave::parts

// Made from the catalogue by subsystems/catalogue/part_factories.py: change the type there.
// clang-format off

#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::parts {

CataloguePart duffing_oscillator(const DuffingOscillatorParameters& parameters) {
  CataloguePart part("duffing_oscillator");
  part.give("mass_kg", parameters.mass_kg);
  part.give("stiffness_N_per_m", parameters.stiffness_N_per_m);
  part.give("cubic_stiffness_N_per_m3", parameters.cubic_stiffness_N_per_m3);
  part.give("damping_Ns_per_m", parameters.damping_Ns_per_m);
  part.give("coupling_stiffness_N_per_m", parameters.coupling_stiffness_N_per_m);
  part.give("coupling_damping_Ns_per_m", parameters.coupling_damping_Ns_per_m);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart duffing_node(const DuffingNodeParameters& parameters) {
  CataloguePart part("duffing_node");
  part.give("mass_kg", parameters.mass_kg);
  part.give("stiffness_N_per_m", parameters.stiffness_N_per_m);
  part.give("cubic_stiffness_N_per_m3", parameters.cubic_stiffness_N_per_m3);
  part.give("damping_Ns_per_m", parameters.damping_Ns_per_m);
  part.give("coupling_stiffness_N_per_m", parameters.coupling_stiffness_N_per_m);
  part.give("coupling_damping_Ns_per_m", parameters.coupling_damping_Ns_per_m);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart linear_oscillator(const LinearOscillatorParameters& parameters) {
  CataloguePart part("linear_oscillator");
  part.give("mass_kg", parameters.mass_kg);
  part.give("stiffness_N_per_m", parameters.stiffness_N_per_m);
  part.give("damping_Ns_per_m", parameters.damping_Ns_per_m);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart mass_spring_damper_chain(const MassSpringDamperChainParameters& parameters) {
  CataloguePart part("mass_spring_damper_chain");
  part.give("masses", parameters.masses);
  part.give("mass_kg", parameters.mass_kg);
  part.give("stiffness_N_per_m", parameters.stiffness_N_per_m);
  part.give("damping_Ns_per_m", parameters.damping_Ns_per_m);
  part.give("internal_damping_Ns_per_m", parameters.internal_damping_Ns_per_m);
  part.give("ground_stiffness_N_per_m", parameters.ground_stiffness_N_per_m);
  part.give("coupling_stiffness_N_per_m", parameters.coupling_stiffness_N_per_m);
  part.give("coupling_damping_Ns_per_m", parameters.coupling_damping_Ns_per_m);
  part.give("left_end", parameters.left_end);
  part.give("right_end", parameters.right_end);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart mass(const MassParameters& parameters) {
  CataloguePart part("mass");
  part.give("mass_kg", parameters.mass_kg);
  part.give("damping_Ns_per_m", parameters.damping_Ns_per_m);
  part.give("ports", parameters.ports);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart spring(const SpringParameters& parameters) {
  CataloguePart part("spring");
  part.give("stiffness_N_per_m", parameters.stiffness_N_per_m);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart damper(const DamperParameters& parameters) {
  CataloguePart part("damper");
  part.give("damping_Ns_per_m", parameters.damping_Ns_per_m);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart spring_damper(const SpringDamperParameters& parameters) {
  CataloguePart part("spring_damper");
  part.give("stiffness_N_per_m", parameters.stiffness_N_per_m);
  part.give("damping_Ns_per_m", parameters.damping_Ns_per_m);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart lever(const LeverParameters& parameters) {
  CataloguePart part("lever");
  part.give("ratio", parameters.ratio);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart string(const StringParameters& parameters) {
  CataloguePart part("string");
  part.give("cells", parameters.cells);
  part.give("length_m", parameters.length_m);
  part.give("tension_N", parameters.tension_N);
  part.give("density_kg_per_m", parameters.density_kg_per_m);
  part.give("damping_Ns_per_m2", parameters.damping_Ns_per_m2);
  part.give("internal_damping_Ns", parameters.internal_damping_Ns);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart euler_bernoulli_beam(const EulerBernoulliBeamParameters& parameters) {
  CataloguePart part("euler_bernoulli_beam");
  part.give("elements", parameters.elements);
  part.give("length_m", parameters.length_m);
  part.give("bending_stiffness_Nm2", parameters.bending_stiffness_Nm2);
  part.give("density_kg_per_m", parameters.density_kg_per_m);
  part.give("mass_damping_1_per_s", parameters.mass_damping_1_per_s);
  part.give("stiffness_damping_s", parameters.stiffness_damping_s);
  part.give("supports", parameters.supports);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart coulomb_damper(const CoulombDamperParameters& parameters) {
  CataloguePart part("coulomb_damper");
  part.give("friction_N", parameters.friction_N);
  part.give("creep_speed_m_per_s", parameters.creep_speed_m_per_s);
  part.give("viscosity_Ns_per_m", parameters.viscosity_Ns_per_m);
  part.give("static_friction_N", parameters.static_friction_N);
  part.give("stribeck_speed_m_per_s", parameters.stribeck_speed_m_per_s);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart contact(const ContactParameters& parameters) {
  CataloguePart part("contact");
  part.give("force_N", parameters.force_N);
  part.give("compression_m", parameters.compression_m);
  part.give("damping_s_per_m", parameters.damping_s_per_m);
  part.give("gap_m", parameters.gap_m);
  part.give("side", parameters.side);
  part.give("law", parameters.law);
  part.give("normal", parameters.normal);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart ground_contact(const GroundContactParameters& parameters) {
  CataloguePart part("ground_contact");
  part.give("force_N", parameters.force_N);
  part.give("compression_m", parameters.compression_m);
  part.give("damping_s_per_m", parameters.damping_s_per_m);
  part.give("friction", parameters.friction);
  part.give("creep_speed_m_per_s", parameters.creep_speed_m_per_s);
  part.give("normal", parameters.normal);
  part.give("height_m", parameters.height_m);
  part.give("radius_m", parameters.radius_m);
  part.give("rolls", parameters.rolls);
  part.give("law", parameters.law);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart cart_pendulum(const CartPendulumParameters& parameters) {
  CataloguePart part("cart_pendulum");
  part.give("cart_mass_kg", parameters.cart_mass_kg);
  part.give("mass_kg", parameters.mass_kg);
  part.give("length_m", parameters.length_m);
  part.give("inertia_kgm2", parameters.inertia_kgm2);
  part.give("cart_damping_Ns_per_m", parameters.cart_damping_Ns_per_m);
  part.give("damping_Nms_per_rad", parameters.damping_Nms_per_rad);
  part.give("gravity_m_per_s2", parameters.gravity_m_per_s2);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart rigid_body(const RigidBodyParameters& parameters) {
  CataloguePart part("rigid_body");
  part.give("mass_kg", parameters.mass_kg);
  part.give("inertia_1_kgm2", parameters.inertia_1_kgm2);
  part.give("inertia_2_kgm2", parameters.inertia_2_kgm2);
  part.give("inertia_3_kgm2", parameters.inertia_3_kgm2);
  part.give("damping_Ns_per_m", parameters.damping_Ns_per_m);
  part.give("angular_damping_Nms_per_rad", parameters.angular_damping_Nms_per_rad);
  part.give("gravity_m_per_s2", parameters.gravity_m_per_s2);
  part.give("frames", parameters.frames);
  part.give("frame_points_m", parameters.frame_points_m);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart articulated(const ArticulatedParameters& parameters) {
  CataloguePart part("articulated");
  part.give("joints", parameters.joints);
  part.give("names", parameters.names);
  part.give("parents", parameters.parents);
  part.give("places_m", parameters.places_m);
  part.give("turns_rad", parameters.turns_rad);
  part.give("axes", parameters.axes);
  part.give("masses_kg", parameters.masses_kg);
  part.give("centres_m", parameters.centres_m);
  part.give("inertias_kgm2", parameters.inertias_kgm2);
  part.give("damping", parameters.damping);
  part.give("gravity_m_per_s2", parameters.gravity_m_per_s2);
  part.give("joint_ports", parameters.joint_ports);
  part.give("frames", parameters.frames);
  part.give("frame_joints", parameters.frame_joints);
  part.give("frame_points_m", parameters.frame_points_m);
  part.give("frame_kinds", parameters.frame_kinds);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart linear_port_hamiltonian(const LinearPortHamiltonianParameters& parameters) {
  CataloguePart part("linear_port_hamiltonian");
  part.give("states", parameters.states);
  part.give("ports", parameters.ports);
  part.give("inputs", parameters.inputs);
  part.give("J", parameters.J);
  part.give("R", parameters.R);
  part.give("G", parameters.G);
  part.give("P", parameters.P);
  part.give("S", parameters.S);
  part.give("N", parameters.N);
  part.give("Q", parameters.Q);
  part.give("step_maps", parameters.step_maps);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart descriptor_port_hamiltonian(const DescriptorPortHamiltonianParameters& parameters) {
  CataloguePart part("descriptor_port_hamiltonian");
  part.give("states", parameters.states);
  part.give("ports", parameters.ports);
  part.give("inputs", parameters.inputs);
  part.give("E", parameters.E);
  part.give("J", parameters.J);
  part.give("R", parameters.R);
  part.give("B", parameters.B);
  part.give("Q", parameters.Q);
  part.give("step_maps", parameters.step_maps);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart second_order_system(const SecondOrderSystemParameters& parameters) {
  CataloguePart part("second_order_system");
  part.give("coordinates", parameters.coordinates);
  part.give("ports", parameters.ports);
  part.give("inputs", parameters.inputs);
  part.give("M", parameters.M);
  part.give("D", parameters.D);
  part.give("K", parameters.K);
  part.give("B", parameters.B);
  part.give("step_maps", parameters.step_maps);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart port_hamiltonian(const PortHamiltonianParameters& parameters) {
  CataloguePart part("port_hamiltonian");
  part.give("states", parameters.states);
  part.give("ports", parameters.ports);
  part.give("inputs", parameters.inputs);
  part.give("constants", parameters.constants);
  part.give("energy", parameters.energy);
  part.give("J", parameters.J);
  part.give("R", parameters.R);
  part.give("G", parameters.G);
  part.give("P", parameters.P);
  part.give("S", parameters.S);
  part.give("N", parameters.N);
  part.give("characteristics", parameters.characteristics);
  part.give("characteristic_range", parameters.characteristic_range);
  part.give("default_state", parameters.default_state);
  part.give("typical_state", parameters.typical_state);
  part.give("discrete_gradient", parameters.discrete_gradient);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart inertia(const InertiaParameters& parameters) {
  CataloguePart part("inertia");
  part.give("inertia_kgm2", parameters.inertia_kgm2);
  part.give("damping_Nms_per_rad", parameters.damping_Nms_per_rad);
  part.give("ports", parameters.ports);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart torsional_spring(const TorsionalSpringParameters& parameters) {
  CataloguePart part("torsional_spring");
  part.give("stiffness_Nm_per_rad", parameters.stiffness_Nm_per_rad);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart rotational_damper(const RotationalDamperParameters& parameters) {
  CataloguePart part("rotational_damper");
  part.give("damping_Nms_per_rad", parameters.damping_Nms_per_rad);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart torsional_spring_damper(const TorsionalSpringDamperParameters& parameters) {
  CataloguePart part("torsional_spring_damper");
  part.give("stiffness_Nm_per_rad", parameters.stiffness_Nm_per_rad);
  part.give("damping_Nms_per_rad", parameters.damping_Nms_per_rad);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart gear(const GearParameters& parameters) {
  CataloguePart part("gear");
  part.give("ratio", parameters.ratio);
  part.give("damping_Nms_per_rad", parameters.damping_Nms_per_rad);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart flexible_joint(const FlexibleJointParameters& parameters) {
  CataloguePart part("flexible_joint");
  part.give("motor_inertia_kgm2", parameters.motor_inertia_kgm2);
  part.give("stiffness_Nm_per_rad", parameters.stiffness_Nm_per_rad);
  part.give("damping_Nms_per_rad", parameters.damping_Nms_per_rad);
  part.give("motor_damping_Nms_per_rad", parameters.motor_damping_Nms_per_rad);
  part.give("ratio", parameters.ratio);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart rotational_coulomb_damper(const RotationalCoulombDamperParameters& parameters) {
  CataloguePart part("rotational_coulomb_damper");
  part.give("friction_Nm", parameters.friction_Nm);
  part.give("creep_speed_rad_per_s", parameters.creep_speed_rad_per_s);
  part.give("viscosity_Nms_per_rad", parameters.viscosity_Nms_per_rad);
  part.give("static_friction_Nm", parameters.static_friction_Nm);
  part.give("stribeck_speed_rad_per_s", parameters.stribeck_speed_rad_per_s);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart rotational_contact(const RotationalContactParameters& parameters) {
  CataloguePart part("rotational_contact");
  part.give("torque_Nm", parameters.torque_Nm);
  part.give("angle_rad", parameters.angle_rad);
  part.give("damping_s_per_rad", parameters.damping_s_per_rad);
  part.give("gap_rad", parameters.gap_rad);
  part.give("side", parameters.side);
  part.give("law", parameters.law);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart gear_with_backlash(const GearWithBacklashParameters& parameters) {
  CataloguePart part("gear_with_backlash");
  part.give("torque_Nm", parameters.torque_Nm);
  part.give("angle_rad", parameters.angle_rad);
  part.give("damping_s_per_rad", parameters.damping_s_per_rad);
  part.give("backlash_rad", parameters.backlash_rad);
  part.give("ratio", parameters.ratio);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart pendulum(const PendulumParameters& parameters) {
  CataloguePart part("pendulum");
  part.give("mass_kg", parameters.mass_kg);
  part.give("length_m", parameters.length_m);
  part.give("inertia_kgm2", parameters.inertia_kgm2);
  part.give("damping_Nms_per_rad", parameters.damping_Nms_per_rad);
  part.give("gravity_m_per_s2", parameters.gravity_m_per_s2);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart planar_arm(const PlanarArmParameters& parameters) {
  CataloguePart part("planar_arm");
  part.give("lengths_m", parameters.lengths_m);
  part.give("masses_kg", parameters.masses_kg);
  part.give("centres_m", parameters.centres_m);
  part.give("inertias_kgm2", parameters.inertias_kgm2);
  part.give("damping_Nms_per_rad", parameters.damping_Nms_per_rad);
  part.give("gravity_m_per_s2", parameters.gravity_m_per_s2);
  part.give("tip_port", parameters.tip_port);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart rack_and_pinion(const RackAndPinionParameters& parameters) {
  CataloguePart part("rack_and_pinion");
  part.give("radius_m", parameters.radius_m);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart dc_motor(const DcMotorParameters& parameters) {
  CataloguePart part("dc_motor");
  part.give("inductance_H", parameters.inductance_H);
  part.give("resistance_ohm", parameters.resistance_ohm);
  part.give("motor_constant_Vs_per_rad", parameters.motor_constant_Vs_per_rad);
  part.give("inertia_kgm2", parameters.inertia_kgm2);
  part.give("damping_Nms_per_rad", parameters.damping_Nms_per_rad);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart synchronous_machine(const SynchronousMachineParameters& parameters) {
  CataloguePart part("synchronous_machine");
  part.give("resistance_ohm", parameters.resistance_ohm);
  part.give("inductance_d_H", parameters.inductance_d_H);
  part.give("inductance_q_H", parameters.inductance_q_H);
  part.give("magnet_flux_Vs", parameters.magnet_flux_Vs);
  part.give("pole_pairs", parameters.pole_pairs);
  part.give("inertia_kgm2", parameters.inertia_kgm2);
  part.give("damping_Nms_per_rad", parameters.damping_Nms_per_rad);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart park_transform(const ParkTransformParameters& parameters) {
  CataloguePart part("park_transform");
  part.give("pole_pairs", parameters.pole_pairs);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart resistor(const ResistorParameters& parameters) {
  CataloguePart part("resistor");
  part.give("resistance_ohm", parameters.resistance_ohm);
  part.give("gives", parameters.gives);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart inductor(const InductorParameters& parameters) {
  CataloguePart part("inductor");
  part.give("inductance_H", parameters.inductance_H);
  part.give("resistance_ohm", parameters.resistance_ohm);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart capacitor(const CapacitorParameters& parameters) {
  CataloguePart part("capacitor");
  part.give("capacitance_F", parameters.capacitance_F);
  part.give("leakage_S", parameters.leakage_S);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart electrical_transformer(const ElectricalTransformerParameters& parameters) {
  CataloguePart part("electrical_transformer");
  part.give("ratio", parameters.ratio);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart rlc_ladder(const RlcLadderParameters& parameters) {
  CataloguePart part("rlc_ladder");
  part.give("cells", parameters.cells);
  part.give("capacitance_F", parameters.capacitance_F);
  part.give("inductance_H", parameters.inductance_H);
  part.give("resistance_ohm", parameters.resistance_ohm);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart diode(const DiodeParameters& parameters) {
  CataloguePart part("diode");
  part.give("saturation_current_A", parameters.saturation_current_A);
  part.give("emission_coefficient", parameters.emission_coefficient);
  part.give("thermal_voltage_V", parameters.thermal_voltage_V);
  part.give("leakage_S", parameters.leakage_S);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart saturating_inductor(const SaturatingInductorParameters& parameters) {
  CataloguePart part("saturating_inductor");
  part.give("inductance_H", parameters.inductance_H);
  part.give("saturation_flux_Vs", parameters.saturation_flux_Vs);
  part.give("resistance_ohm", parameters.resistance_ohm);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart electrical_switch(const ElectricalSwitchParameters& parameters) {
  CataloguePart part("electrical_switch");
  part.give("on_S", parameters.on_S);
  part.give("off_S", parameters.off_S);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart ideal_diode(const IdealDiodeParameters& parameters) {
  CataloguePart part("ideal_diode");
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart ideal_switch(const IdealSwitchParameters& parameters) {
  CataloguePart part("ideal_switch");
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart tank(const TankParameters& parameters) {
  CataloguePart part("tank");
  part.give("area_m2", parameters.area_m2);
  part.give("density_kg_per_m3", parameters.density_kg_per_m3);
  part.give("gravity_m_per_s2", parameters.gravity_m_per_s2);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart fluid_line(const FluidLineParameters& parameters) {
  CataloguePart part("fluid_line");
  part.give("cells", parameters.cells);
  part.give("inertance_kg_per_m4", parameters.inertance_kg_per_m4);
  part.give("capacitance_m3_per_Pa", parameters.capacitance_m3_per_Pa);
  part.give("friction_Pas_per_m3", parameters.friction_Pas_per_m3);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart valve(const ValveParameters& parameters) {
  CataloguePart part("valve");
  part.give("nominal_flow_m3_per_s", parameters.nominal_flow_m3_per_s);
  part.give("nominal_pressure_Pa", parameters.nominal_pressure_Pa);
  part.give("laminar_pressure_Pa", parameters.laminar_pressure_Pa);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart check_valve(const CheckValveParameters& parameters) {
  CataloguePart part("check_valve");
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart effort_source(const EffortSourceParameters& parameters) {
  CataloguePart part("effort_source");
  part.give("domain", parameters.domain);
  part.give("allow_active", parameters.allow_active);
  return part;
}

CataloguePart flow_source(const FlowSourceParameters& parameters) {
  CataloguePart part("flow_source");
  part.give("domain", parameters.domain);
  part.give("allow_active", parameters.allow_active);
  return part;
}

}  // namespace portwave::parts

# Made from the catalogue by subsystems/catalogue/part_factories.py: change the type there.
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from .catalogue_part import CataloguePart

__all__ = [
    "part_types",
    "duffing_oscillator",
    "duffing_node",
    "linear_oscillator",
    "mass_spring_damper_chain",
    "mass",
    "spring",
    "damper",
    "spring_damper",
    "lever",
    "string",
    "euler_bernoulli_beam",
    "coulomb_damper",
    "contact",
    "ground_contact",
    "cart_pendulum",
    "rigid_body",
    "articulated",
    "linear_port_hamiltonian",
    "descriptor_port_hamiltonian",
    "second_order_system",
    "port_hamiltonian",
    "inertia",
    "torsional_spring",
    "rotational_damper",
    "torsional_spring_damper",
    "gear",
    "flexible_joint",
    "rotational_coulomb_damper",
    "rotational_contact",
    "gear_with_backlash",
    "pendulum",
    "planar_arm",
    "rack_and_pinion",
    "dc_motor",
    "synchronous_machine",
    "park_transform",
    "resistor",
    "inductor",
    "capacitor",
    "electrical_transformer",
    "rlc_ladder",
    "diode",
    "saturating_inductor",
    "electrical_switch",
    "ideal_diode",
    "ideal_switch",
    "tank",
    "fluid_line",
    "valve",
    "check_valve",
    "effort_source",
    "flow_source",
]

def part_types() -> Dict[str, Dict[str, Any]]: ...
def duffing_oscillator(
    *,
    mass_kg: float,
    stiffness_N_per_m: float,
    cubic_stiffness_N_per_m3: float = 0.0,
    damping_Ns_per_m: float = 0.0,
    coupling_stiffness_N_per_m: float = 0.0,
    coupling_damping_Ns_per_m: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def duffing_node(
    *,
    mass_kg: float,
    stiffness_N_per_m: float,
    cubic_stiffness_N_per_m3: float = 0.0,
    damping_Ns_per_m: float = 0.0,
    coupling_stiffness_N_per_m: float = 0.0,
    coupling_damping_Ns_per_m: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def linear_oscillator(
    *,
    mass_kg: float,
    stiffness_N_per_m: float,
    damping_Ns_per_m: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def mass_spring_damper_chain(
    *,
    masses: int,
    mass_kg: float,
    stiffness_N_per_m: float,
    damping_Ns_per_m: float = 0.0,
    internal_damping_Ns_per_m: float = 0.0,
    ground_stiffness_N_per_m: float = 0.0,
    coupling_stiffness_N_per_m: float = 1.0,
    coupling_damping_Ns_per_m: float = 0.0,
    left_end: str = "mass",
    right_end: str = "spring",
    allow_active: bool = False,
) -> CataloguePart: ...
def mass(
    *,
    mass_kg: float,
    damping_Ns_per_m: float = 0.0,
    ports: int = 1,
    allow_active: bool = False,
) -> CataloguePart: ...
def spring(
    *,
    stiffness_N_per_m: float,
    allow_active: bool = False,
) -> CataloguePart: ...
def damper(
    *,
    damping_Ns_per_m: float,
    allow_active: bool = False,
) -> CataloguePart: ...
def spring_damper(
    *,
    stiffness_N_per_m: float,
    damping_Ns_per_m: float,
    allow_active: bool = False,
) -> CataloguePart: ...
def lever(
    *,
    ratio: float,
    allow_active: bool = False,
) -> CataloguePart: ...
def string(
    *,
    cells: int,
    length_m: float,
    tension_N: float,
    density_kg_per_m: float,
    damping_Ns_per_m2: float = 0.0,
    internal_damping_Ns: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def euler_bernoulli_beam(
    *,
    elements: int,
    length_m: float,
    bending_stiffness_Nm2: float,
    density_kg_per_m: float,
    mass_damping_1_per_s: float = 0.0,
    stiffness_damping_s: float = 0.0,
    supports: str = "cantilever",
    allow_active: bool = False,
) -> CataloguePart: ...
def coulomb_damper(
    *,
    friction_N: float,
    creep_speed_m_per_s: float,
    viscosity_Ns_per_m: float = 0.0,
    static_friction_N: float = 0.0,
    stribeck_speed_m_per_s: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def contact(
    *,
    force_N: float,
    compression_m: float,
    damping_s_per_m: float = 0.0,
    gap_m: float = 0.0,
    side: str = "positive",
    law: str = "linear",
    normal: Optional[Sequence[float]] = None,
    allow_active: bool = False,
) -> CataloguePart: ...
def ground_contact(
    *,
    force_N: float,
    compression_m: float,
    friction: float,
    creep_speed_m_per_s: float,
    damping_s_per_m: float = 0.0,
    normal: Optional[Sequence[float]] = None,
    height_m: float = 0.0,
    radius_m: float = 0.0,
    rolls: bool = False,
    law: str = "linear",
    allow_active: bool = False,
) -> CataloguePart: ...
def cart_pendulum(
    *,
    cart_mass_kg: float,
    mass_kg: float,
    length_m: float,
    inertia_kgm2: float = 0.0,
    cart_damping_Ns_per_m: float = 0.0,
    damping_Nms_per_rad: float = 0.0,
    gravity_m_per_s2: float = 9.81,
    allow_active: bool = False,
) -> CataloguePart: ...
def rigid_body(
    *,
    mass_kg: float,
    inertia_1_kgm2: float,
    inertia_2_kgm2: float,
    inertia_3_kgm2: float,
    damping_Ns_per_m: float = 0.0,
    angular_damping_Nms_per_rad: float = 0.0,
    gravity_m_per_s2: float = 9.81,
    frames: Optional[Sequence[str]] = None,
    frame_points_m: Optional[Any] = None,
    allow_active: bool = False,
) -> CataloguePart: ...
def articulated(
    *,
    joints: Sequence[str],
    masses_kg: Sequence[float],
    names: Optional[Sequence[str]] = None,
    parents: Optional[Sequence[float]] = None,
    places_m: Optional[Any] = None,
    turns_rad: Optional[Any] = None,
    axes: Optional[Any] = None,
    centres_m: Optional[Any] = None,
    inertias_kgm2: Optional[Any] = None,
    damping: Optional[Sequence[float]] = None,
    gravity_m_per_s2: float = 9.81,
    joint_ports: bool = True,
    frames: Optional[Sequence[str]] = None,
    frame_joints: Optional[Sequence[str]] = None,
    frame_points_m: Optional[Any] = None,
    frame_kinds: Optional[Sequence[str]] = None,
    allow_active: bool = False,
) -> CataloguePart: ...
def linear_port_hamiltonian(
    *,
    states: Union[Sequence[Any], Mapping[str, Any]],
    ports: Sequence[Mapping[str, Any]],
    J: Any,
    G: Any,
    Q: Any,
    inputs: Optional[Union[Sequence[Any], Mapping[str, Any]]] = None,
    R: Optional[Any] = None,
    P: Optional[Any] = None,
    S: Optional[Any] = None,
    N: Optional[Any] = None,
    step_maps: str = "automatic",
    allow_active: bool = False,
) -> CataloguePart: ...
def descriptor_port_hamiltonian(
    *,
    states: Union[Sequence[Any], Mapping[str, Any]],
    ports: Sequence[Mapping[str, Any]],
    E: Any,
    J: Any,
    B: Any,
    inputs: Optional[Union[Sequence[Any], Mapping[str, Any]]] = None,
    R: Optional[Any] = None,
    Q: Optional[Any] = None,
    step_maps: str = "automatic",
    allow_active: bool = False,
) -> CataloguePart: ...
def second_order_system(
    *,
    coordinates: Union[Sequence[Any], Mapping[str, Any]],
    ports: Sequence[Mapping[str, Any]],
    M: Any,
    K: Any,
    B: Any,
    inputs: Optional[Union[Sequence[Any], Mapping[str, Any]]] = None,
    D: Optional[Any] = None,
    step_maps: str = "automatic",
    allow_active: bool = False,
) -> CataloguePart: ...
def port_hamiltonian(
    *,
    states: Union[Sequence[Any], Mapping[str, Any]],
    ports: Sequence[Mapping[str, Any]],
    inputs: Optional[Union[Sequence[Any], Mapping[str, Any]]] = None,
    constants: Optional[Mapping[str, float]] = None,
    energy: str = "0",
    J: Optional[Any] = None,
    R: Optional[Any] = None,
    G: Optional[Any] = None,
    P: Optional[Any] = None,
    S: Optional[Any] = None,
    N: Optional[Any] = None,
    characteristics: Optional[Sequence[str]] = None,
    characteristic_range: float = 1000000.0,
    default_state: Optional[Sequence[float]] = None,
    typical_state: Optional[Sequence[float]] = None,
    discrete_gradient: str = "mean_value",
    allow_active: bool = False,
) -> CataloguePart: ...
def inertia(
    *,
    inertia_kgm2: float,
    damping_Nms_per_rad: float = 0.0,
    ports: int = 1,
    allow_active: bool = False,
) -> CataloguePart: ...
def torsional_spring(
    *,
    stiffness_Nm_per_rad: float,
    allow_active: bool = False,
) -> CataloguePart: ...
def rotational_damper(
    *,
    damping_Nms_per_rad: float,
    allow_active: bool = False,
) -> CataloguePart: ...
def torsional_spring_damper(
    *,
    stiffness_Nm_per_rad: float,
    damping_Nms_per_rad: float,
    allow_active: bool = False,
) -> CataloguePart: ...
def gear(
    *,
    ratio: float,
    damping_Nms_per_rad: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def flexible_joint(
    *,
    motor_inertia_kgm2: float,
    stiffness_Nm_per_rad: float,
    damping_Nms_per_rad: float = 0.0,
    motor_damping_Nms_per_rad: float = 0.0,
    ratio: float = 1.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def rotational_coulomb_damper(
    *,
    friction_Nm: float,
    creep_speed_rad_per_s: float,
    viscosity_Nms_per_rad: float = 0.0,
    static_friction_Nm: float = 0.0,
    stribeck_speed_rad_per_s: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def rotational_contact(
    *,
    torque_Nm: float,
    angle_rad: float,
    damping_s_per_rad: float = 0.0,
    gap_rad: float = 0.0,
    side: str = "positive",
    law: str = "linear",
    allow_active: bool = False,
) -> CataloguePart: ...
def gear_with_backlash(
    *,
    torque_Nm: float,
    angle_rad: float,
    backlash_rad: float,
    ratio: float,
    damping_s_per_rad: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def pendulum(
    *,
    mass_kg: float,
    length_m: float,
    inertia_kgm2: float = 0.0,
    damping_Nms_per_rad: float = 0.0,
    gravity_m_per_s2: float = 9.81,
    allow_active: bool = False,
) -> CataloguePart: ...
def planar_arm(
    *,
    lengths_m: Sequence[float],
    masses_kg: Sequence[float],
    centres_m: Optional[Sequence[float]] = None,
    inertias_kgm2: Optional[Sequence[float]] = None,
    damping_Nms_per_rad: Optional[Sequence[float]] = None,
    gravity_m_per_s2: float = 9.81,
    tip_port: bool = False,
    allow_active: bool = False,
) -> CataloguePart: ...
def rack_and_pinion(
    *,
    radius_m: float,
    allow_active: bool = False,
) -> CataloguePart: ...
def dc_motor(
    *,
    inductance_H: float,
    motor_constant_Vs_per_rad: float,
    inertia_kgm2: float,
    resistance_ohm: float = 0.0,
    damping_Nms_per_rad: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def synchronous_machine(
    *,
    inductance_d_H: float,
    inductance_q_H: float,
    magnet_flux_Vs: float,
    inertia_kgm2: float,
    resistance_ohm: float = 0.0,
    pole_pairs: int = 1,
    damping_Nms_per_rad: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def park_transform(
    *,
    pole_pairs: int,
    allow_active: bool = False,
) -> CataloguePart: ...
def resistor(
    *,
    resistance_ohm: float,
    gives: str = "voltage",
    allow_active: bool = False,
) -> CataloguePart: ...
def inductor(
    *,
    inductance_H: float,
    resistance_ohm: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def capacitor(
    *,
    capacitance_F: float,
    leakage_S: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def electrical_transformer(
    *,
    ratio: float,
    allow_active: bool = False,
) -> CataloguePart: ...
def rlc_ladder(
    *,
    cells: int,
    capacitance_F: float,
    inductance_H: float,
    resistance_ohm: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def diode(
    *,
    saturation_current_A: float,
    emission_coefficient: float = 1.0,
    thermal_voltage_V: float = 0.025852,
    leakage_S: float = 1e-12,
    allow_active: bool = False,
) -> CataloguePart: ...
def saturating_inductor(
    *,
    inductance_H: float,
    saturation_flux_Vs: float,
    resistance_ohm: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def electrical_switch(
    *,
    on_S: float,
    off_S: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def ideal_diode(
    *,
    allow_active: bool = False,
) -> CataloguePart: ...
def ideal_switch(
    *,
    allow_active: bool = False,
) -> CataloguePart: ...
def tank(
    *,
    area_m2: float,
    density_kg_per_m3: float = 1000.0,
    gravity_m_per_s2: float = 9.80665,
    allow_active: bool = False,
) -> CataloguePart: ...
def fluid_line(
    *,
    cells: int,
    inertance_kg_per_m4: float,
    capacitance_m3_per_Pa: float,
    friction_Pas_per_m3: float = 0.0,
    allow_active: bool = False,
) -> CataloguePart: ...
def valve(
    *,
    nominal_flow_m3_per_s: float,
    nominal_pressure_Pa: float,
    laminar_pressure_Pa: float,
    allow_active: bool = False,
) -> CataloguePart: ...
def check_valve(
    *,
    allow_active: bool = False,
) -> CataloguePart: ...
def effort_source(
    *,
    domain: str,
    allow_active: bool = False,
) -> CataloguePart: ...
def flow_source(
    *,
    domain: str,
    allow_active: bool = False,
) -> CataloguePart: ...

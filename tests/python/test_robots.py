"""Robots in Python: inverse dynamics, for one state and for all replicas."""

import pathlib
import sys

import numpy as np
import pytest

import portwave as pw

L1, L2, M1, M2, G = 0.5, 0.4, 2.0, 1.0, 9.81


def arm(**more):
    system = pw.System("arm", step_s=1e-3, **more)
    own = pw.planar_arm(lengths_m=[L1, L2], masses_kg=[M1, M2], damping_Nms_per_rad=[0.3, 0.1])
    system.add("arm", own, inputs={"torque_1": "settable", "torque_2": "settable"})
    return system.join("free", "arm.joint_1").join("free", "arm.joint_2")


def lagrange(q, v, a):
    """Two thin rods that hang: by Lagrange's equations, in relative angles."""
    c, s = np.cos(q[1]), np.sin(q[1])
    i1, i2 = M1 * L1**2 / 12, M2 * L2**2 / 12
    h = M2 * L1 * L2 / 2
    m22 = i2 + M2 * L2**2 / 4
    m12 = m22 + h * c
    m11 = i1 + M1 * L1**2 / 4 + M2 * L1**2 + m22 + 2 * h * c
    outer = M2 * G * L2 / 2 * np.sin(q[0] + q[1])
    own = (M1 / 2 + M2) * G * L1 * np.sin(q[0])
    return np.array([
        m11 * a[0] + m12 * a[1] - h * s * v[1] * (2 * v[0] + v[1]) + own + outer + 0.3 * v[0],
        m12 * a[0] + m22 * a[1] + h * s * v[0] ** 2 + outer + 0.1 * v[1],
    ])


def test_inverse_dynamics_is_that_of_lagranges_equations():
    model = pw.InverseDynamics(arm(), "arm")
    assert (model.positions, model.velocities) == (2, 2)
    rng = np.random.default_rng(1)
    q, v, a = rng.normal(size=(3, 50, 2)) * 3
    expected = np.array([lagrange(*row) for row in zip(q, v, a)])
    np.testing.assert_allclose(model.torques(q, v, a), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(model.torques(q[0], v[0], a[0]), expected[0], atol=1e-11)
    held = np.array([lagrange(row, [0, 0], [0, 0]) for row in q])
    np.testing.assert_allclose(model.gravity(q), held, atol=1e-12)
    np.testing.assert_allclose(model.velocities_of(q, model.momenta(q, v)), v, atol=1e-12)
    assert np.abs(expected).max() > 10  # the control: there is something to compare


def test_inverse_dynamics_says_what_is_wrong():
    with pytest.raises(pw.UnknownName, match='there is no part "arms". Did you mean "arm"?'):
        pw.InverseDynamics(arm(), "arms")
    system = pw.System("mass", step_s=1e-3)
    system.add("mass", pw.mass(mass_kg=2.0)).join("free", "mass.port")
    with pytest.raises(pw.ConfigError):
        pw.InverseDynamics(system, "mass")
    model = pw.InverseDynamics(arm(), "arm")
    with pytest.raises(ValueError, match="q must be of shape"):
        model.gravity([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="v must be of shape"):
        model.momenta([[1.0, 2.0]] * 2, [[1.0, 2.0]] * 3)


def test_all_replicas_follow_a_path():
    """Computed torque, once per sample for all replicas."""
    model = pw.InverseDynamics(arm(), "arm")
    ensemble = pw.Ensemble(arm(), 20)
    rng = np.random.default_rng(2)
    start = np.zeros((20, 4))
    start[:, :2] = 0.3 * rng.normal(size=(20, 2))

    def law(t, x):
        q, v = x[:, :2], model.velocities_of(x[:, :2], x[:, 2:])
        w = 2 * np.pi
        goal, speed, bend = np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t)
        return model.torques(q, v, bend + 40 * (speed - v) + 400 * (goal - q))

    ensemble.control(law, steps=1000, x0=start)
    off = ensemble.states()[:, :2] - np.sin(2 * np.pi * 1.0)
    assert np.abs(off).max() < 0.02
    assert np.abs(start[:, :2]).max() > 0.3  # the control: they began elsewhere


@pytest.mark.parametrize("by", ["kernel", "lever"])
def test_friction_between_two_bodies_that_move(by):
    """A block slides on a plank that a spring holds, beside SciPy."""
    integrate = pytest.importorskip("scipy.integrate")
    M1, M2, F, V0, K = 1.0, 3.0, 4.0, 0.05, 40.0

    def at_the_end(step_s):
        system = pw.System("plank", step_s=step_s)
        system.add("block", pw.mass(mass_kg=M1), initial_state=[0, 2.0])
        system.add("plank", pw.mass(mass_kg=M2, ports=2))
        system.add("spring", pw.spring(stiffness_N_per_m=K))
        system.add("friction", pw.coulomb_damper(friction_N=F, creep_speed_m_per_s=V0))
        if by == "kernel":
            E, F_ = [[1, 0, -1], [0, 1, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [1, -1, 1]]
            system.join("kernel", "block.port", "plank.port_1", "friction.end", E=E, F=F_)
        else:  # which turns the flow of the plank about
            system.add("other", pw.lever(ratio=1.0))
            system.join("common_effort", "block.port", "other.input", "friction.end")
            system.join("common_flow", "other.output", "plank.port_1")
        system.connect("plank.port_2", "spring.left").join("fixed", "spring.right")
        stepper = pw.Stepper(system)
        stepper.step(round(2.0 / step_s))
        assert stepper.certificate == "holds"
        names = ("block.position", "block.velocity", "plank.position", "plank.velocity")
        return np.array([stepper[name] for name in names])

    def rates(t, y):
        e = F * np.tanh((y[1] - y[3]) / V0)
        return [y[1], -e / M1, y[3], (e - K * y[2]) / M2]

    expected = integrate.solve_ivp(rates, (0, 2), [0, 2.0, 0, 0], "Radau", rtol=1e-11, atol=1e-12).y[:, -1]
    coarse, fine = at_the_end(1e-3), at_the_end(5e-4)
    assert np.abs(coarse - expected).max() < 1e-5
    np.testing.assert_allclose((4 * fine - coarse) / 3, expected, rtol=0, atol=1e-8)
    # The control: they rub, and move on together.
    assert expected[1] == pytest.approx(expected[3], abs=0.05) and expected[2] < -0.05


def apart_from_scipy(system, names, rates, y0, end_s=0.5, step_s=2e-3):
    """The largest difference of the states, in the order of y, between three stages and DOP853."""
    integrate = pytest.importorskip("scipy.integrate")
    stepper = pw.Stepper(system)
    stepper.step(round(end_s / step_s))
    expected = integrate.solve_ivp(rates, (0, end_s), y0, "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    own = np.array([stepper[name] for name in names])
    assert np.abs(expected - y0).max() > 0.1  # the control: it has moved
    return np.abs(own - expected).max()


THREE_STAGES = {"kind": "auto", "stages": 3}


def test_arm_agrees_with_scipy():
    system = pw.System("arm", step_s=2e-3, method=THREE_STAGES)
    own = pw.planar_arm(lengths_m=[L1, L2], masses_kg=[M1, M2], damping_Nms_per_rad=[0.3, 0.1])
    system.add("arm", own, initial_state=[1.5, -0.7, 0, 0]).join("free", "arm.joint_1").join("free", "arm.joint_2")

    def rates(t, y):
        at_rest = lagrange(y[:2], y[2:], [0, 0])
        M = np.array([lagrange(y[:2], y[2:], a) - at_rest for a in np.eye(2)]).T
        return np.concatenate([y[2:], -np.linalg.solve(M, at_rest)])

    names = ["arm.angle_1", "arm.angle_2"]
    start = np.array([1.5, -0.7, 0, 0])
    integrate = pytest.importorskip("scipy.integrate")
    expected = integrate.solve_ivp(rates, (0, 0.5), start, "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    stepper = pw.Stepper(system)
    stepper.step(250)
    np.testing.assert_allclose([stepper[name] for name in names], expected[:2], rtol=0, atol=1e-9)
    assert np.abs(expected[:2] - start[:2]).min() > 0.1  # the control: it has moved


def turned(q):
    w, x, y, z = q
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])


def turning(q, w):
    """q' = q (0, w)/2."""
    s, u = q[0], q[1:]
    return 0.5 * np.concatenate([[-u @ w], s * w + np.cross(u, w)])


def test_free_body_agrees_with_scipy():
    inertia, mass = np.array([0.03, 0.05, 0.07]), 2.0
    start = np.concatenate([[0, 0, 1], [0.2, 0, 4.0], [1, 0, 0, 0], inertia * [4.0, 0.3, -2.0]])
    system = pw.System("body", step_s=2e-3, method=THREE_STAGES)
    own = pw.rigid_body(mass_kg=mass, gravity_m_per_s2=G, inertia_1_kgm2=0.03, inertia_2_kgm2=0.05, inertia_3_kgm2=0.07)
    system.add("body", own, initial_state=start.tolist()).join("free", "body.force").join("free", "body.torque")
    names = [f"body.{name}" for name in "x y z p_x p_y p_z q_w q_x q_y q_z L_1 L_2 L_3".split()]

    def rates(t, y):
        w = y[10:] / inertia
        return np.concatenate([y[3:6] / mass, [0, 0, -mass * G], turning(y[6:10], w), np.cross(y[10:], w)])

    assert apart_from_scipy(system, names, rates, start) < 1e-9


def test_quadrotor_with_a_slung_load_agrees_with_scipy():
    pages = str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks")
    sys.path.insert(0, pages)
    try:
        import expressions_beside_mujoco as own
    finally:
        sys.path.remove(pages)
    start = own.QUADROTOR_START.copy()
    start[3:6], start[10:13] = [0.6, -0.2, 0.1], [0.01, -0.02, 0.03]
    thrust, torque = 16.0, np.array([0.01, 0.02, -0.01])
    system = pw.System("quadrotor", step_s=2e-3, method=THREE_STAGES)
    inputs = {"thrust": thrust, **{f"torque_{k + 1}": float(torque[k]) for k in range(3)}}
    part = own.quadrotor_part()
    system.add("drone", part, initial_state=start.tolist(), inputs=inputs)
    names = [name for name in pw.Stepper(system).state_names]
    inertia = np.array(own.INERTIA)

    def rates(t, y):
        x, p, q, L, load, load_p = y[:3], y[3:6], y[6:10], y[10:13], y[13:16], y[16:]
        cable = x - load
        length = np.linalg.norm(cable)
        pull = own.CABLE_N_PER_M * (length - own.CABLE_M) * cable / length
        w, down = L / inertia, np.array([0, 0, -G])
        return np.concatenate([
            p / own.BODY_KG, turned(q) @ [0, 0, thrust] - pull + own.BODY_KG * down,
            turning(q, w), np.cross(L, w) + torque, load_p / own.LOAD_KG, pull + own.LOAD_KG * down,
        ])

    assert apart_from_scipy(system, names, rates, start) < 1e-9

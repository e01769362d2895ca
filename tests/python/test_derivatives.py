"""Derivatives of steps: against finite differences, closed formulas, and what has none."""

import numpy as np
import pytest

import portwave as pw

METHOD = {"kind": "auto", "tolerance": 1e-13}
PARAMETERS = ["pendulum.length_m", "spring.stiffness_Nm_per_rad", "flywheel.inertia_kgm2"]
INPUTS = 0.5 * np.sin(np.arange(12.0))[:, np.newaxis]


def driven_pendulum(stages=1, part="pendulum", **how):
    """A pendulum, or a flywheel in its place, on an elastic shaft with a flywheel that a torque drives.

    `how` the pendulum is stepped, as for `pw.System.add`; and the `kind` of method.
    """
    kind = how.pop("kind", "auto")
    system = pw.System("driven", step_s=0.01, method={**METHOD, "kind": kind, "stages": stages})
    if part == "pendulum":
        own = pw.pendulum(mass_kg=1.0, length_m=0.5, damping_Nms_per_rad=0.02)
        system.add("pendulum", own, initial_state=[1.2, 0.3], **how)
        port = "pendulum.shaft"
    elif part == "energy":
        own = pw.port_hamiltonian(
            states={"q": "rad", "p": "kg m^2/s"},
            constants={"J": 0.25, "w": 5.0, "c": 0.02},
            energy="p^2/(2*J) + w*(1 - cos(q))",
            J=[[0, 1], [-1, 0]],
            R=[[0, 0], [0, "c"]],
            G=[[0], [-1]],
            ports=[{"name": "shaft", "causality": "effort_in", "domain": "rotation"}],
        )
        system.add("pendulum", own, initial_state=[1.2, 0.3], **how)
        port = "pendulum.shaft"
    else:
        system.add("pendulum", pw.inertia(inertia_kgm2=0.25))
        port = "pendulum.shaft"
    system.add("spring", pw.torsional_spring(stiffness_Nm_per_rad=20.0))
    system.add("flywheel", pw.inertia(inertia_kgm2=0.1))
    source = pw.effort_source(domain="rotation")
    system.add("drive", source, inputs={"effort": "settable"})
    system.connect(port, "spring.left")
    system.join("common_flow", "spring.right", "flywheel.shaft", "drive.port")
    return system


def differences(run, start, delta):
    """d run(v)/dv at `start` by differences of fourth order, a column for each entry."""
    columns = []
    for i in range(len(start)):
        d = []
        for s in (1.0, 2.0):
            ahead, back = start.copy(), start.copy()
            ahead[i] += s * delta[i]
            back[i] -= s * delta[i]
            d.append((run(ahead) - run(back)) / (2.0 * s * delta[i]))
        columns.append((4.0 * d[0] - d[1]) / 3.0)
    return np.stack(columns, axis=-1)


def assert_close(found, wanted, share):
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= share * np.abs(wanted).max()


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("part", ["pendulum", "energy"])
def test_derivatives_are_those_of_differences(part, stages):
    check_by_differences(driven_pendulum(stages, part), PARAMETERS if part == "pendulum" else PARAMETERS[1:])


DAMPED = {"integrator": "damped"}


@pytest.mark.parametrize(
    "stages, part, how",
    [
        (1, "pendulum", {"substeps": 3}),
        (1, "energy", {"substeps": 4}),
        (2, "pendulum", {"substeps": 2}),
        (1, "pendulum", DAMPED),
        (2, "energy", {**DAMPED, "kind": "interface"}),
        (1, "pendulum", {**DAMPED, "theta": 0.5}),
        (1, "energy", {**DAMPED, "damped_states": ["p"]}),
        (1, "pendulum", {**DAMPED, "substeps": 2}),
    ],
)
def test_derivatives_of_substeps_and_damped_parts_are_those_of_differences(stages, part, how):
    system = driven_pendulum(stages, part, **how)
    check_by_differences(system, PARAMETERS if part == "pendulum" else PARAMETERS[1:])
    # The control: these are other steps than plain ones.
    plain, own = (pw.Stepper(s).differentiate(INPUTS) for s in (driven_pendulum(stages, part), system))
    with pytest.raises(AssertionError):
        assert_close(own.by_state(), plain.by_state(), 1e-9)


def check_by_differences(system, parameters):
    stepper = pw.Stepper(system)
    begin = stepper.snapshot()
    x0 = stepper.states()
    n, k = len(x0), len(parameters)
    theta0 = np.array([stepper.parameter(name) for name in parameters])

    def end(x, u, theta):
        stepper.restore(begin)
        for name, value in zip(parameters, theta):
            stepper.set_parameter(name, value)
        stepper.set_states(x)
        for row in u.reshape(-1, 1):
            stepper.set_inputs(row)
            stepper.step()
        return stepper.states()

    by_x = differences(lambda x: end(x, INPUTS, theta0), x0, np.full(n, 1e-3))
    by_u = differences(lambda u: end(x0, u, theta0), INPUTS[:, 0].copy(), np.full(12, 1e-2))
    by_theta = differences(lambda t: end(x0, INPUTS, t), theta0, 1e-3 * theta0)
    stepper.restore(begin)
    stepper.set_states(x0)
    run = stepper.differentiate(INPUTS, parameters=parameters)
    assert run.states.shape == (13, n)
    assert np.array_equal(run.states[0], x0)
    assert np.array_equal(run.states[-1], stepper.states())

    rows = [run.gradient(row) for row in np.eye(n)]
    assert_close(np.stack([own.x0 for own in rows]), by_x, 1e-9)
    assert_close(np.stack([own.inputs[:, 0] for own in rows]), by_u, 1e-9)
    assert_close(np.stack([own.parameters for own in rows]), by_theta, 1e-9)
    columns = [run.tangent(x0=column)[-1] for column in np.eye(n)]
    assert_close(np.stack(columns, axis=-1), by_x, 1e-9)
    columns = [run.tangent(inputs=column[:, np.newaxis])[-1] for column in np.eye(12)]
    assert_close(np.stack(columns, axis=-1), by_u, 1e-9)
    columns = [run.tangent(parameters=column)[-1] for column in np.eye(k)]
    assert_close(np.stack(columns, axis=-1), by_theta, 1e-9)
    # The comparison notices another step, and a derivative that is off by a hundred-millionth.
    with pytest.raises(AssertionError):
        assert_close(run.by_state(), by_x, 1e-9)
    with pytest.raises(AssertionError):
        assert_close((1.0 + 1e-8) * np.stack([own.x0 for own in rows]), by_x, 1e-9)


def test_forward_and_backward_are_transposes():
    run = pw.Stepper(driven_pendulum()).differentiate(INPUTS, parameters=PARAMETERS)
    random = np.random.default_rng(5)
    weights = random.normal(size=run.states.shape)
    dx, du = random.normal(size=run.states.shape[1]), random.normal(size=INPUTS.shape)
    dtheta = random.normal(size=3)
    forward = np.sum(weights * run.tangent(dx, du, dtheta))
    own = run.gradient(weights)
    terms = [own.x0 @ dx, np.sum(own.inputs * du), own.parameters @ dtheta]
    assert sum(terms) == pytest.approx(forward, rel=1e-11)
    assert min(np.abs(terms)) > 1e-6 * abs(forward)
    single = np.linalg.multi_dot([run.by_state(i) for i in range(11, -1, -1)])
    assert_close(np.stack([run.gradient(row).x0 for row in np.eye(len(dx))]), single, 1e-12)


@pytest.mark.parametrize("stages", [1, 2])
def test_linear_steps_have_the_closed_map(stages):
    stepper = pw.Stepper(driven_pendulum(stages, "flywheel"))
    own = stepper.linearise()
    A, B = (np.asarray(m.todense() if hasattr(m, "todense") else m) for m in (own.A, own.B))
    n, h = len(A), 0.01
    one, hA = np.eye(n), h * A
    if stages == 1:
        above, below = one + hA / 2, one - hA / 2
    else:  # Padé (2, 2) of the exponential
        above, below = one + hA / 2 + hA @ hA / 12, one - hA / 2 + hA @ hA / 12
    run = stepper.differentiate([[1.0]])
    closed = np.linalg.solve(below, above)
    assert_close(run.by_state(), closed, 1e-11)
    assert_close(run.by_input(), np.linalg.solve(below, h * B), 1e-11)
    # Other stages have another map.
    other = np.linalg.solve(one - hA / 2 + hA @ hA / (12 if stages == 1 else 1e9), above)
    with pytest.raises(AssertionError):
        assert_close(other, run.by_state(), 1e-11)


def test_a_parameter_is_fitted_by_gradients():
    true = pw.Stepper(driven_pendulum())
    true.set_parameter("flywheel.inertia_kgm2", 0.13)
    data = true.differentiate(INPUTS).states
    stepper = pw.Stepper(driven_pendulum())
    begin = stepper.snapshot()
    value = stepper.parameter("flywheel.inertia_kgm2")
    for _ in range(8):  # Gauss-Newton
        stepper.restore(begin)
        stepper.set_parameter("flywheel.inertia_kgm2", value)
        run = stepper.differentiate(INPUTS, parameters=["flywheel.inertia_kgm2"])
        slope = run.tangent(parameters=[1.0])
        gap = run.states - data
        assert run.gradient(gap).parameters[0] == pytest.approx(np.sum(slope * gap), rel=1e-9, abs=1e-12)
        value -= np.sum(slope * gap) / np.sum(slope**2)
    assert value == pytest.approx(0.13, rel=1e-9)


def test_what_has_no_derivatives_is_refused_by_name():
    free = pw.System("free", step_s=0.01, method={"kind": "strang"})
    free.add("left", pw.inertia(inertia_kgm2=0.2), initial_state=[0.1, 0.0])
    free.add("spring", pw.torsional_spring(stiffness_Nm_per_rad=20.0))
    free.add("right", pw.inertia(inertia_kgm2=0.1))
    free.connect("left.shaft", "spring.left")
    free.connect("spring.right", "right.shaft")
    stepper = pw.Stepper(free)
    with pytest.raises(ValueError, match="without waves"):
        stepper.differentiate()
    assert stepper.step_index == 0
    with_waves = pw.Stepper(free, overrides={"/method": {"kind": "auto"}})
    assert len(with_waves.differentiate(steps=3)) == 3
    stepper = pw.Stepper(driven_pendulum())
    with pytest.raises(pw.UnknownName, match="inertia_kgm2"):
        stepper.differentiate(parameters=["flywheel.inertia"])
    assert stepper.step_index == 0
    zero = {"/subsystems/0/parameters/damping_Nms_per_rad": 0.0}
    with pytest.raises(ValueError, match="damping_Nms_per_rad.* is 0"):
        pw.Stepper(driven_pendulum(), overrides=zero).differentiate(
            parameters=["pendulum.damping_Nms_per_rad"]
        )
    few = {
        "kind": "douglas-rachford",
        "iterations": 1,
        "tolerance": 1e-13,
        "impedance": {"kind": "uniform", "value": 1.0},
    }
    poor = pw.Stepper(driven_pendulum(), overrides={"/method": few})
    with pytest.raises(RuntimeError, match="did not converge"):
        poor.differentiate([[1.0]] * 5)


def refused_before_a_step(system, told, **options):
    stepper = pw.Stepper(system, **options)
    before = stepper.states()
    with pytest.raises(ValueError, match=told):
        stepper.differentiate()
    assert stepper.step_index == 0
    np.testing.assert_array_equal(stepper.states(), before)


def test_other_systems_without_derivatives_are_refused_before_a_step():
    chosen = {"/time": {"step": {"kind": "adaptive", "tolerance": 1e-4}, "end_s": 1.0}}
    refused_before_a_step(driven_pendulum(), "choose their size: give `step_s`", overrides=chosen)
    controlled = driven_pendulum()
    controlled.add_controller(
        "law", lambda t, u, x: (np.array([-u[0]]), x), inputs=["flywheel.speed"], state=[0.0], outputs=1
    )
    refused_before_a_step(controlled, 'blocks of a controller: make their inputs "settable"')
    M, K = np.eye(4), 2.0 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)
    cut = pw.System("cut", step_s=0.01).add_second_order("bar", M, K, 0.1 * M, np.eye(4)[:, :1], cut=2)
    refused_before_a_step(cut, 'part "bar" is cut into pieces')
    # The controls: without the cut, and with the step given.
    whole = pw.System("cut", step_s=0.01).add_second_order("bar", M, K, 0.1 * M, np.eye(4)[:, :1])
    assert len(pw.Stepper(whole).differentiate()) == 1


def on_the_ground(approach_m, speed_m_per_s):
    """A body against an end stop, which it meets where the approach is 0."""
    system = pw.System("stop", step_s=0.01, method=METHOD)
    system.add("body", pw.mass(mass_kg=1.0), initial_state=[approach_m, speed_m_per_s])
    stop = pw.contact(force_N=100.0, compression_m=0.1)
    return system.add("stop", stop, initial_state=[approach_m]).connect("body.port", "stop.face")


def test_a_part_that_changes_over_is_refused_by_name_after_the_step():
    stepper = pw.Stepper(on_the_ground(0.0, 0.0))
    with pytest.raises(RuntimeError, match='part "stop" has a kink at this state'):
        stepper.differentiate()
    assert stepper.step_index == 1  # the step was made
    # The controls: on either side of the kink there are derivatives, with the stop and without it.
    pressed, free = (pw.Stepper(on_the_ground(d, 0.0)).differentiate().by_state() for d in (0.05, -0.05))
    speed, approach = 1, 2
    assert pressed[speed, approach] < -1.0  # -h k/m, less what a step of 0.01 s bends
    assert abs(free[speed, approach]) < 1e-9


def test_a_jump_of_states_is_refused_after_the_step():
    system = pw.System("two", step_s=0.01, method=METHOD)
    system.add("left", pw.inertia(inertia_kgm2=0.2), initial_state={"speed": 1.0})
    system.add("right", pw.inertia(inertia_kgm2=0.1), initial_state={"speed": 1.0})
    stepper = pw.Stepper(system.join("common_flow", "left.shaft", "right.shaft"))
    assert len(stepper.differentiate()) == 1
    x = stepper.states()
    x[stepper.state_names.index("left.speed")] = 3.0
    stepper.set_states(x)
    with pytest.raises(RuntimeError, match="an impulse made states jump"):
        stepper.differentiate()
    assert stepper.step_index == 2
    assert len(stepper.differentiate()) == 1  # the step after it has no jump

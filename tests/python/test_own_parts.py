"""Parts from Python: matrices that depend on the state, ports of several entries, discrete gradients of one's own."""

import math

import numpy as np
import pytest

import portwave as pw

INERTIA = np.array([1.0, 2.0, 3.5])


def cross(L):
    return np.array([[0.0, -L[2], L[1]], [L[2], 0.0, -L[0]], [-L[1], L[0], 0.0]])


def top(name, **changes):
    """A free rigid body by its angular momentum in body axes: L' = L x w + torque, w = dH/dL."""
    given = {
        "states": [("L1", "kg m^2/s"), ("L2", "kg m^2/s"), ("L3", "kg m^2/s")],
        "ports": [("torque", "rotation", "effort_in", 3)],
        "energy": lambda L: 0.5 * float(L @ (L / INERTIA)),
        "gradient": lambda L: L / INERTIA,
        "hessian": lambda L: np.diag(1.0 / INERTIA),
        "J": cross,
        "G": np.eye(3),
    }
    pw.add_part_type(name, **{**given, **changes})


def free_top(name, step_s=0.01, start=(1.0, 0.1, 2.0)):
    system = pw.System(step_s=step_s)
    system.add("top", name, initial_state=dict(zip(("L1", "L2", "L3"), start)))
    system.join("free", "top.torque")
    return pw.Stepper(system)


def euler(start, until, steps=20000):
    """Euler's equations by the classical method of order 4, written without portwave."""
    L, h = np.array(start), until / steps

    def rate(x):
        return np.cross(x, x / INERTIA)

    for _ in range(steps):
        a = rate(L)
        b = rate(L + h / 2 * a)
        c = rate(L + h / 2 * b)
        L = L + h / 6 * (a + 2 * b + 2 * c + rate(L + h * c))
    return L


def test_a_structure_that_depends_on_the_state_keeps_energy_and_casimir_and_has_order_two():
    top("py_top")
    exact = euler((1.0, 0.1, 2.0), 2.0)
    errors = []
    for steps in (50, 100, 200):
        stepper = free_top("py_top", 2.0 / steps)
        stepper.step(steps)
        L = stepper.state("top")
        assert stepper["top.storage"] == pytest.approx(0.5 * (1.0 + 0.01 / 2.0 + 4.0 / 3.5), rel=1e-13)
        assert L @ L == pytest.approx(5.01, rel=1e-13)  # L' is normal to L at the middle of each step
        errors.append(np.linalg.norm(L - exact))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2.0, atol=0.05)
    # The control: the matrix that J is at the start, held, is another motion.
    top("py_held_top", J=cross((1.0, 0.1, 2.0)))
    held = free_top("py_held_top", 0.01)
    held.step(200)
    assert np.linalg.norm(held.state("top") - exact) > 0.1


def test_functions_and_expressions_are_the_same_part_in_a_network():
    """Ports with two entries and one, R and G by the state, against `port_hamiltonian` with the same equations."""
    states = {"x": "m", "y": "m", "p": "kg m/s", "s": "kg m/s"}
    ports = [("push", "translation", "effort_in", 2), ("turn", "rotation", "flow_in")]
    pw.add_part_type(
        "py_plate",
        states=list(states.items()),
        ports=ports,
        inputs=[("wind", "N")],
        energy=lambda z: 0.5 * (z[2] ** 2 / 2 + z[3] ** 2 / 3) + z[0] ** 4 / 4 + z[0] ** 2 + z[1] ** 2,
        gradient=lambda z: [z[0] ** 3 + 2 * z[0], 2 * z[1], z[2] / 2, z[3] / 3],
        J=[[0, 0, 1, 0], [0, 0, 0, 1], [-1, 0, 0, 0], [0, -1, 0, 0]],
        R=lambda z: np.diag([0, 0, 0.5 * z[0] ** 2, 0.2]),
        G=lambda z: [[0] * 4, [0] * 4, [1, 0, z[1], 1], [0, 1, -z[0], 0]],
        discrete_gradient="mean_value",
    )
    by_expressions = pw.port_hamiltonian(
        states=states,
        ports=[
            {"name": "push", "domain": "translation", "causality": "effort_in", "dimension": 2},
            {"name": "turn", "domain": "rotation", "causality": "flow_in"},
        ],
        inputs=[{"name": "wind", "unit": "N"}],
        energy="0.5*(p^2/2 + s^2/3) + x^4/4 + x^2 + y^2",
        J=[[0, 0, 1, 0], [0, 0, 0, 1], [-1, 0, 0, 0], [0, -1, 0, 0]],
        R=[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, "0.5*x^2", 0], [0, 0, 0, "0.2"]],
        G=[[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, "y", 1], [0, 1, "-x", 0]],
    )

    def run(part):
        system = pw.System(step_s=0.01, method={"kind": "auto", "tolerance": 1e-13})
        system.add("plate", part, initial_state={"x": 0.5, "s": 0.3}, inputs={"wind": 0.4})
        system.add("wheel", pw.inertia(inertia_kgm2=0.7), initial_state={"speed": 0.2})
        pw.add_part_type(
            "py_weight",
            states=[("p", "kg m/s"), ("s", "kg m/s")],
            ports=[("held", "translation", "effort_in", 2)],
            energy=lambda z: 0.5 * (z[0] ** 2 + z[1] ** 2),
            gradient=lambda z: z,
            J=np.zeros((2, 2)),
            G=np.eye(2),
        )
        system.add("weight", "py_weight", initial_state={"p": 0.1})
        system.connect("plate.turn", "wheel.shaft").connect("plate.push", "weight.held")
        stepper = pw.Stepper(system)
        stepper.step(300)
        return stepper

    own, other = run("py_plate"), run(by_expressions)
    np.testing.assert_allclose(own.states(), other.states(), atol=1e-10)
    assert abs(own["plate.x"] - 0.5) > 0.1 and abs(own["wheel.speed"] - 0.2) > 0.01
    assert own.certificate == other.certificate == "holds"


@pytest.mark.parametrize(
    "change, told",
    [
        ({"J": lambda L: cross(L) + np.eye(3)}, r"at L1 = 1, L2 = 0, L3 = 0.5: J is not skew: J\(0,0\) = 1"),
        ({"J": lambda L: cross(L)[:2]}, r"J must have the shape \(3, 3\), got \(2, 3\)"),
        ({"J": lambda L: cross(L) * math.nan}, "py_wrong.*nan is not finite"),
        ({"R": lambda L: -np.eye(3)}, "at L1 = 1.*: R is not positive semidefinite"),
        ({"R": -np.eye(3)}, "R is not positive semidefinite"),
        ({"J": np.eye(3)}, "J is not skew"),
        ({"R": lambda L: [[0, 1, 0], [0, 0, 0], [0, 0, 0]]}, "R.*symmetric"),
        ({"R": lambda L: np.diag([1, 1, -0.1 * L[1]])}, "not positive semidefinite"),  # near the default state
        ({"G": lambda L: np.eye(2)}, r"G must have the shape \(3, 3\), got \(2, 2\)"),
        ({"G": lambda L: 1 / 0}, "division by zero"),
        ({"discrete_gradient": lambda a, b: b / INERTIA}, "times the step is"),
        ({"discrete_gradient": lambda a, b: 0.5 * (a + b)}, "discrete_gradient"),
        ({"discrete_gradient": lambda a, b: [1.0]}, "the discrete gradient must have 3 entries, got 1"),
        ({"discrete_gradient": lambda a, b: (a + b) * 0 / (b - a)}, "not finite"),
        ({"discrete_gradient": lambda a, b: None}, "it returned None, where numbers are needed"),
    ],
)
def test_what_is_no_structure_and_no_discrete_gradient_is_refused(change, told):
    if "J" not in change:
        change = {**change, "J": lambda L: cross(L + 1.0)}
    with pytest.raises(pw.ConfigError, match=told) as caught, np.errstate(all="ignore"):
        top("py_wrong", default_state=[1.0, 0.0, 0.5], **change)
    assert '"py_wrong"' in str(caught.value)


def test_functions_are_checked_within_half_of_a_usual_state():
    """A dissipation that is one only where x < 0.3."""

    def R(z):
        return [[0, 0], [0, 0.3 - z[0]]]

    with pytest.raises(pw.ConfigError, match="at x = 0.5, p = 0: R is not positive semidefinite"):
        slide("py_near", R=R)
    stepper = slide("py_near", R=R, typical_state=[0.5, 1.0])
    stepper.step(2)  # 10 m/s and 0.01 s
    with pytest.raises(pw.StepError, match=": R is not positive semidefinite"):
        stepper.step(3)
    with pytest.raises(pw.ConfigError, match="typical size of x must be > 0"):
        slide("py_near", R=R, typical_state=[0.0, 1.0])
    with pytest.raises(pw.ConfigError, match="must have 2 entries, got 1"):
        slide("py_near", R=R, typical_state=[1.0])


@pytest.mark.parametrize(
    "port, told",
    [
        (("a", "rotation"), "a port is"),
        (("a", "rotation", "effort_in", 0), "must be > 0, got 0"),
        (("a", "rotation", "effort_in", 1.5), "size of port 'a'"),
        (("a", "rotation", "effort"), "effort_in"),
    ],
)
def test_ports_that_are_none_are_refused(port, told):
    with pytest.raises((ValueError, TypeError), match=told):
        top("py_ports", ports=[port], G=np.eye(3)[:, :1])


def test_a_matrix_of_another_shape_than_the_ports_is_refused():
    with pytest.raises(ValueError, match=r"G must be of shape \[3, 3\], got \[3, 2\]"):
        top("py_shape", G=np.eye(3)[:, :2])


def slide(name, **changes):
    """A body that slides freely, until one of its functions no longer holds."""
    given = {
        "states": [("x", "m"), ("p", "kg m/s")],
        "ports": [("port", "translation", "effort_in")],
        "energy": lambda z: 0.5 * z[1] ** 2 + 0.0 * z[0],
        "gradient": lambda z: [0.0, z[1]],
        "J": [[0, 1], [-1, 0]],
        "G": [[0], [1]],
    }
    pw.add_part_type(name, **{**given, **changes})
    system = pw.System(step_s=0.01)
    system.add("body", name, initial_state={"p": 10.0})
    system.join("free", "body.port")
    return pw.Stepper(system)


class Beyond(Exception):
    pass


def raises_beyond(limit, value):
    def function(z):
        if z[0] > limit:
            raise Beyond(f"x = {z[0]:.3f}")
        return value(z)

    return function


J0, G0 = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([[0.0], [1.0]])


@pytest.mark.parametrize(
    "change, told",
    [
        ({"R": lambda z: np.diag([0.0, min(0.0, 2.0 - z[0])])}, ": R is not positive semidefinite"),
        ({"R": lambda z: [[0, max(0.0, z[0] - 2.0)], [0, 1]]}, ": R is not symmetric"),
        ({"J": lambda z: J0 + max(0.0, z[0] - 2.0)}, ": J is not skew"),
        ({"G": lambda z: G0 if z[0] < 2.0 else [[0], [math.inf]]}, r": G\(1,0\) = inf is not finite"),
        ({"G": lambda z: G0 if z[0] < 2.0 else [1.0]}, r"G must have the shape \(2, 1\), got \(1\)"),
        ({"J": lambda z: J0 if z[0] < 2.0 else "no matrix"}, "could not convert"),
    ],
)
def test_a_step_ends_where_a_matrix_no_longer_holds_and_names_part_and_state(change, told):
    stepper = slide("py_slide", **change)
    with pytest.raises(pw.StepError, match=told) as caught:
        stepper.step(100)
    assert (caught.value.part, caught.value.fault) == ("body", "threw")
    assert "body" in str(caught.value)
    if "shape" not in told and "convert" not in told:
        assert "at x = 2" in str(caught.value)
    # The last committed state is there, and what a shorter run has.
    assert 1.8 < stepper["body.x"] <= 2.05
    assert list(stepper.state("body")) == caught.value.state
    shorter = slide("py_slide", **change)
    shorter.step(stepper.step_index)
    np.testing.assert_array_equal(shorter.states(), stepper.states())
    # The control: another start goes through the same functions.
    shorter.set_states([0.0, -10.0])
    shorter.step(100)


@pytest.mark.parametrize(
    "change",
    [
        {"energy": raises_beyond(2.0, lambda z: 0.5 * z[1] ** 2)},
        {"gradient": raises_beyond(2.0, lambda z: [0.0, z[1]])},
        {"hessian": raises_beyond(2.0, lambda z: [[0, 0], [0, 1]])},
        {"J": raises_beyond(2.0, lambda z: J0)},
        {"R": raises_beyond(2.0, lambda z: np.zeros((2, 2)))},
        {"G": raises_beyond(2.0, lambda z: G0)},
        {
            "discrete_gradient": lambda a, b: raises_beyond(2.0, lambda z: [0.0, 0.5 * (a[1] + b[1])])(b),
            "gradient": lambda z: [0.0, z[1]],
        },
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_exception_of_a_function_ends_the_step_and_is_its_cause(change):
    stepper = slide("py_raises", **change)
    with pytest.raises(pw.StepError) as caught:
        stepper.step(100)
    assert isinstance(caught.value.__cause__, Beyond)
    assert caught.value.part == "body"
    assert 1.8 < stepper["body.x"] <= 2.05
    assert list(stepper.state("body")) == caught.value.state


def test_an_exception_is_the_cause_however_many_threads_step():
    pw.add_part_type(
        "py_worker",
        states=[("x", "m"), ("p", "kg m/s")],
        ports=[("port", "translation", "effort_in")],
        energy=lambda z: 0.5 * (z[0] ** 2 + z[1] ** 2),
        gradient=raises_beyond(2.0, lambda z: [z[0], z[1]]),
        J=J0,
        G=G0,
    )
    for last in (0, 30, 63):  # enough parts for several threads
        system = pw.System(step_s=0.01)
        for i in range(64):
            system.add(f"b{i}", "py_worker", initial_state={"p": 10.0 if i == last else 1.0})
            system.add(f"s{i}", pw.spring(stiffness_N_per_m=2.0))
            system.add(f"w{i}", pw.flow_source(domain="translation"))
            system.connect(f"b{i}.port", f"s{i}.left").connect(f"s{i}.right", f"w{i}.port")
        stepper = pw.Stepper(system, threads=3)
        with pytest.raises(pw.StepError) as caught:
            stepper.step(100)
        assert isinstance(caught.value.__cause__, Beyond)
        assert caught.value.part == f"b{last}"
        assert list(stepper.state(f"b{last}")) == caught.value.state


def test_ctrl_c_in_a_function_is_raised_itself():
    def interrupted(z):
        if z[0] > 2.0:
            raise KeyboardInterrupt
        return J0

    stepper = slide("py_interrupted", J=interrupted)
    with pytest.raises(KeyboardInterrupt):
        stepper.step(100)
    assert 1.8 < stepper["body.x"] <= 2.05


def test_ctrl_c_in_a_function_ends_an_ensemble_and_a_definition():
    def interrupted(L):
        if L[0] > 3.0:
            raise KeyboardInterrupt
        return cross(L)

    top("py_interrupted_top", J=interrupted, typical_state=[1.0, 1.0, 1.0])
    system = pw.System(step_s=0.01)
    system.add("top", "py_interrupted_top", initial_state={"L1": 1.0, "L2": 0.1, "L3": 2.0})
    system.join("free", "top.torque")
    for threads in (1, 2):
        ensemble = pw.Ensemble(system, replicas=4, threads=threads)
        start = np.tile([1.0, 0.1, 2.0], (4, 1))
        start[2, 0] = 4.0
        with pytest.raises(KeyboardInterrupt):
            ensemble.rollout(start, steps=5)
        ensemble.rollout(start[[0, 0, 0, 0]], steps=5)  # what was raised is over
        assert ensemble.failures == 0
    with pytest.raises(KeyboardInterrupt):
        top("py_interrupted_at_once", J=interrupted, default_state=[4.0, 0.1, 2.0])


@pytest.mark.parametrize(
    "change, told",
    [
        ({"J": lambda L: cross(L) + 1j * cross(L)}, "real numbers are needed, got complex ones"),
        ({"gradient": lambda L: (1.0 + 1.0j) * L}, "real numbers are needed, got complex ones"),
    ],
)
def test_complex_numbers_are_refused(change, told):
    with pytest.raises((pw.ConfigError, RuntimeError), match=told):
        top("py_complex", **change)


def test_two_states_of_one_name_are_refused():
    with pytest.raises(ValueError, match='"py_twins": two states have the name "L1"'):
        top("py_twins", states=[("L1", ""), ("L1", ""), ("L3", "")])
    with pytest.raises(ValueError, match='"py_twins": two ports have the name "torque"'):
        top("py_twins", ports=[("torque", "rotation", "effort_in", 3)] * 2, G=np.ones((3, 6)))


def pendulum_step(a, b):
    """The mean gradient of the pendulum along a step, in closed form: nothing cancels."""
    half = 0.5 * (b[0] - a[0])
    return [9.81 * math.sin(0.5 * (a[0] + b[0])) * np.sinc(half / math.pi), 0.5 * (a[1] + b[1])]


def pendulum(name, **changes):
    given = {
        "states": [("angle", "rad"), ("momentum", "kg m^2/s")],
        "ports": [("pivot", "rotation", "effort_in")],
        "energy": lambda x: 0.5 * x[1] ** 2 + 2 * 9.81 * math.sin(0.5 * x[0]) ** 2,
        "gradient": lambda x: [9.81 * math.sin(x[0]), x[1]],
        "J": [[0, 1], [-1, 0]],
        "G": [[0], [1]],
    }
    pw.add_part_type(name, **{**given, **changes})


def swing(part, steps, port="pivot"):
    system = pw.System(step_s=0.02)
    system.add("p", part, initial_state={"angle": 2.0})
    system.join("free", f"p.{port}")
    stepper = pw.Stepper(system)
    stepper.step(steps)
    return stepper


def test_a_discrete_gradient_of_ones_own_is_the_one_that_steps():
    pendulum("py_own_gradient", discrete_gradient=pendulum_step)
    own = swing("py_own_gradient", 500)
    assert own["p.storage"] == pytest.approx(2 * 9.81 * math.sin(1.0) ** 2, rel=1e-12)
    assert own.certificate == "holds"
    # The part of the catalogue, whose discrete gradient is the same function by hand.
    catalogue = swing(pw.pendulum(mass_kg=1.0, length_m=1.0, gravity_m_per_s2=9.81), 500, "shaft")
    assert own["p.angle"] == pytest.approx(catalogue["p.angle"], abs=1e-9)
    # The control: Gonzalez' is another one, with an error of the same order.
    pendulum("py_gonzalez")
    other = swing("py_gonzalez", 500)
    assert 1e-6 < abs(other["p.angle"] - own["p.angle"]) < 0.5


def test_a_discrete_gradient_that_breaks_the_law_far_away_is_found_by_the_ledger():
    """Checks look near the default state; what a step gains in energy elsewhere is not hidden."""

    def wrong(a, b):
        g = pendulum_step(a, b)
        return g if abs(b[0]) < 1.9 else [0.9 * g[0], g[1]]

    pendulum("py_lawless", discrete_gradient=wrong)
    stepper = swing("py_lawless", 200)
    ledger = stepper.energy
    gap = ledger["final_J"] - ledger["initial_J"] - (
        ledger["supplied_J"] - ledger["dissipated_J"] - ledger["mismatch_J"]
    )
    assert stepper.certificate != "holds" or abs(gap) > 1e-6


def test_derivatives_and_ensembles_take_such_parts():
    top("py_top_d")
    stepper = free_top("py_top_d")
    run = stepper.differentiate(steps=20)
    moved = np.array([1.0, 0.1, 2.0])
    tangent = run.tangent(x0=[0.0, 1.0, 0.0])[-1]
    ends = []
    for change in (-1e-5, 1e-5):
        other = free_top("py_top_d", start=moved + [0.0, change, 0.0])
        other.step(20)
        ends.append(other.states())
    np.testing.assert_allclose(tangent, (ends[1] - ends[0]) / 2e-5, atol=1e-8)

    system = pw.System(step_s=0.01)
    system.add("top", "py_top_d", initial_state={"L1": 1.0, "L2": 0.1, "L3": 2.0})
    system.join("free", "top.torque")
    replicas = pw.Ensemble(system, 3)
    states = replicas.rollout(x0=np.array([moved, moved + 0.1, moved - 0.1]), steps=20)
    stepper = free_top("py_top_d")
    stepper.step(20)
    np.testing.assert_array_equal(states[0, -1], stepper.states())
    assert replicas.failures == 0


def test_a_hessian_of_another_length_is_refused_by_the_name_of_the_type():
    with pytest.raises(pw.ConfigError, match=r'"py_slide": .*the Hessian must have 4 entries, got 3') as caught:
        slide("py_slide", hessian=lambda z: np.zeros(3))
    assert str(caught.value).startswith("/hamiltonian/hessian")
    slide("py_slide", hessian=lambda z: np.diag([0.0, 1.0]))  # the control


@pytest.mark.parametrize("entry", [-1.0 - 1e-9, "-1 - 1e-9", "-1 - 1e-9*q"])
def test_a_matrix_that_is_hardly_skew_is_refused_by_part_row_column_and_values(entry):
    system = pw.System("one", step_s=0.01)
    part = pw.port_hamiltonian(
        states={"q": "m", "p": "kg m/s"},
        ports=[{"name": "port", "causality": "effort_in", "domain": "translation"}],
        energy="q^2/2 + p^2/2",
        J=[[0, 1], [entry, 0]],
        G=[[0], [-1]],
    )
    system.add("body", part).join("free", "body.port")
    with pytest.raises(pw.ConfigError) as caught:
        pw.Stepper(system)
    told = str(caught.value)
    assert told.count('"body" (port_hamiltonian)') == 1 and '"port_hamiltonian":' not in told
    if isinstance(entry, str) and "q" in entry:
        assert "/J/0/1" in told and "(1,0)" in told
    else:
        assert "J(0,1) = 1, J(1,0) = -1.000000001" in told

"""Blocks whose law is a Python function."""

import math

import numpy as np
import pytest

import portwave as pw

PERIOD = 0.01
GAINS = {"proportional": 20.0, "integral": 15.0, "derivative": 8.0}


def pid(t, u, x):
    """The pid of docs/concepts/signals.md. x: integral, slope, argument before, whether there was one."""
    integral, slope, before, begun = x
    argument = -u[1]
    d = (0.02 * slope + argument - before) / (0.02 + PERIOD) if begun else 0.0
    wanted = GAINS["proportional"] * (u[0] - u[1]) + integral + GAINS["derivative"] * d
    y = min(max(wanted, -6.0), 6.0)
    integral += GAINS["integral"] * PERIOD * (u[0] - u[1]) + (y - wanted)
    return y, [integral, d, argument, 1.0]


def slide(step_s=1e-3):
    system = pw.System("slide", step_s=step_s)
    system.add("slide", "linear_oscillator", mass_kg=1, stiffness_N_per_m=4, damping_Ns_per_m=0.2)
    system.join("free", "slide.coupling")
    system.add_block("target", "step", time_s=0.5)
    return system


def loop(law=pid, state=(0, 0, 0, 0), **options):
    options = {"inputs": ["target", "slide.q2"], "every": 10, "drives": "slide.force", **options}
    return slide().add_controller("law", law, state=state, **options)


def test_a_loop_is_that_of_the_built_in_pid():
    built_in = slide().add_block(
        "law", "pid", setpoint="target", measurement="slide.q2", **GAINS,
        derivative_filter_s=0.02, minimum=-6.0, maximum=6.0, every=10, drives="slide.force",
    )
    seen = ["slide.q2", "slide.v2", "law"]
    expected = pw.Stepper(built_in).record(until=5.0, observe=seen)
    own = pw.Stepper(loop()).record(until=5.0, observe=seen)
    assert np.abs(expected["law"]).max() == 6.0  # it is at its bounds for a while
    np.testing.assert_allclose(own.values, expected.values, rtol=0.0, atol=1e-11)

    def other(t, u, x):  # a control: another law is seen
        y, after = pid(t, u, x)
        return 1.001 * y, after

    worse = pw.Stepper(loop(other)).record(until=5.0, observe=seen)
    assert np.abs(worse.values - expected.values).max() > 1e-6


def test_its_state_goes_back_bit_by_bit_and_clones_have_their_own():
    stepper = pw.Stepper(loop())
    stepper.step(700)
    snapshot, clone = stepper.snapshot(), stepper.clone()
    first = stepper.record(steps=500, observe=["slide.q2", "law"]).values
    stepper.restore(snapshot)
    assert np.array_equal(stepper.record(steps=500, observe=["slide.q2", "law"]).values, first)
    assert np.array_equal(clone.record(steps=500, observe=["slide.q2", "law"]).values, first)


def test_what_it_keeps_to_itself_does_not_go_back():  # a control
    sums = [0.0]

    def law(t, u):
        sums[0] += u[0] - u[1]
        return 20.0 * (u[0] - u[1]) + 0.15 * sums[0]

    stepper = pw.Stepper(loop(law, state=()))
    stepper.step(700)
    snapshot = stepper.snapshot()
    first = stepper.record(steps=500, observe=["slide.q2"]).values
    stepper.restore(snapshot)
    assert not np.array_equal(stepper.record(steps=500, observe=["slide.q2"]).values, first)


def test_it_is_called_once_per_sample_with_the_time_and_copies():
    times, kept = [], []

    def law(t, u, x):
        times.append(t)
        kept.append((u, x))
        u[0] = 7.0  # its own
        x += 1.0
        return np.array([x[0], 2.0 * x[0]]), x

    system = slide().add_controller(
        "law", law, inputs=["slide.q2", 3.5], outputs=2, state=[0.0], every=10,
    )
    system.drive("slide.force", "law[1]")
    stepper = pw.Stepper(system)
    result = stepper.record(steps=35, observe=["law[0]", "law[1]"])
    np.testing.assert_allclose(times, [0.0, 0.01, 0.02, 0.03], atol=1e-12)
    assert [float(u[1]) for u, _ in kept] == [3.5] * 4
    assert [float(x[0]) for _, x in kept] == [1.0, 2.0, 3.0, 4.0]
    assert result["law[1]"][-1] == 8.0


def test_an_exception_ends_the_step_and_leaves_the_state():
    class Broken(Exception):
        pass

    fails = [True]

    def law(t, u, x):
        if fails[0] and t > 0.1495:
            raise Broken("no sensor")
        return pid(t, u, x)

    stepper = pw.Stepper(loop(law))
    with pytest.raises(pw.StepError, match="no sensor") as caught:
        stepper.step(1000)
    assert isinstance(caught.value.__cause__, Broken)
    assert caught.value.__cause__.__traceback__ is not None
    assert caught.value.fault == "threw" and caught.value.step == 150
    assert stepper.step_index == 150
    fails[0] = False
    stepper.step(850)
    undisturbed = pw.Stepper(loop())
    undisturbed.step(1000)
    assert np.array_equal(stepper.states(), undisturbed.states())


@pytest.mark.parametrize(
    "law, words",
    [
        (lambda t, u, x: 1.0, r"must return \(outputs, next state\)"),
        (lambda t, u, x: (1.0, x, x), r"must return \(outputs, next state\)"),
        (lambda t, u, x: ([1.0, 2.0], x), "outputs must have 1 entries, got 2"),
        (lambda t, u, x: (1.0, [0.0]), "the next state must have 4 entries, got 1"),
        (lambda t, u, x: (1.0, x * math.nan), "next state is not finite"),
        (lambda t, u, x: (math.inf, x), "law is inf"),
        (lambda t, u, x: ("much", x), "could not convert string"),
        (lambda t, u, x: (None, x), "it returned None, where numbers are needed"),
        (lambda t, u, x: (1.0, None), "it returned None, where numbers are needed"),
        (lambda t, u: 1.0, "positional argument"),
    ],
)
def test_what_a_law_must_not_return_is_told(law, words):
    stepper = pw.Stepper(loop(law))
    with pytest.raises(pw.StepError, match=words):
        stepper.step()
    assert stepper.step_index == 0


def test_a_kind_has_keys_like_others():
    pw.add_block_kind(
        "py_gain", lambda t, u, gain, offset: gain * u[0] + offset,
        inputs=["of"], numbers={"gain": 2.0, "offset": 0.0}, summary="Twice.",
    )
    system = slide().add_block("twice", "py_gain", of=3.0).add_block("more", "py_gain", of="twice", gain=5)
    stepper = pw.Stepper(system)
    assert (stepper["twice"], stepper["more"]) == (6.0, 30.0)
    assert pw.Stepper(system, overrides={"/signals/blocks/2/gain": -1.0})["more"] == -6.0
    system.override("/signals/blocks/2/gian", 1.0)
    with pytest.raises(pw.ConfigError) as caught:
        pw.Stepper(system)
    assert any("gian" in where + what for where, what in caught.value.issues)


def test_a_cell_that_is_run_again_puts_another_kind_or_type_in_its_place():
    for factor in (2.0, 3.0):
        pw.add_block_kind("py_again", lambda t, u, f=factor: f * u[0], inputs=["of"])
        assert pw.Stepper(slide().add_block("b", "py_again", of=1.0))["b"] == factor
    for mass in (1.0, 4.0):
        pw.add_part_type(
            "py_again",
            states=[("x", "m"), ("p", "kg m/s")],
            ports=[("port", "translation", "effort_in")],
            energy=lambda x, m=mass: 0.5 * x[0] ** 2 + 0.5 * x[1] ** 2 / m,
            gradient=lambda x, m=mass: [x[0], x[1] / m],
            J=[[0, 1], [-1, 0]],
            G=[[0], [1]],
        )
        system = pw.System().add("a", "py_again", initial_state={"p": 2.0}).join("free", "a.port")
        assert pw.Stepper(system)["a.storage"] == 2.0 / mass
    for taken in ("pid", "constant", "sensor", ""):
        with pytest.raises(pw.ConfigError):
            pw.add_block_kind(taken, lambda t, u: 0.0)
    with pytest.raises(pw.ConfigError, match="already"):
        pw.add_part_type(
            "mass", states=[("p", "kg m/s")], energy=lambda x: 0.5 * x[0] ** 2,
            gradient=lambda x: x, J=[[0]], G=np.zeros((1, 0)),
        )


def test_controllers_are_checked_where_they_are_added():
    with pytest.raises(ValueError, match="1 outputs, and drives 2"):
        loop(drives=["slide.force", "slide.force"])
    with pytest.raises(KeyError, match="no part 'slyde'"):
        loop(drives="slyde.force")
    with pytest.raises(ValueError, match="finite"):
        pw.add_block_kind("py_nan", lambda t, u, x: (0.0, x), state=[math.nan])
    with pytest.raises(pw.ConfigError):
        pw.Stepper(loop(inputs=["target", "slide.q3"]))


def test_replicas_have_states_of_their_own():
    ensemble = pw.Ensemble(loop(), parameters={"slide.mass_kg": [1.0, 2.0]}, threads=2)
    x = ensemble.rollout(steps=900)
    one = pw.Stepper(loop())
    one.step(900)
    assert np.array_equal(x[0, -1], one.states())
    assert not np.array_equal(x[0, -1], x[1, -1])


def suspension(driven):
    system = pw.System("suspension", step_s=1e-3)
    system.add("body", pw.mass(mass_kg=300.0), initial_state={"velocity": 0.5})
    system.add("damper", pw.spring_damper(stiffness_N_per_m=2e4, damping_Ns_per_m=300.0))
    system.join("fixed", "damper.left").connect("body.port", "damper.right")
    if driven:
        system.add_controller(
            "skyhook", lambda t, u: 3000.0 if u[0] > 0.0 else 300.0, inputs=["body.velocity"],
            drives="damper.damping_Ns_per_m",
        )
    return system


def test_a_controller_sets_a_parameter_as_a_loop_does():
    own, loop = pw.Stepper(suspension(True)), pw.Stepper(suspension(False))
    values = set()
    for _ in range(500):
        values.add(loop["body.velocity"] > 0.0)
        loop.set_parameter("damper.damping_Ns_per_m", 3000.0 if loop["body.velocity"] > 0.0 else 300.0)
        own.step()
        loop.step()
        assert abs(own["body.velocity"] - loop["body.velocity"]) < 1e-12
    assert len(values) == 2  # both had their time
    assert own.parameter("damper.damping_Ns_per_m") == loop.parameter("damper.damping_Ns_per_m")
    wrong = suspension(False)
    wrong.add_controller("law", lambda t, u: 300.0 - 1e5 * t, drives="damper.damping_Ns_per_m")
    stepper = pw.Stepper(wrong)
    with pytest.raises(pw.StepError, match='signal "law" failed before step 4: damper.damping_Ns_per_m must be >= 0'):
        stepper.step(100)
    assert stepper.step_index == 4

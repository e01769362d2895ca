"""Replicas, parameters that change, and linearisation, as a Python program sees them."""

import math

import numpy as np
import pytest

import portwave as pw

PAIR = "examples/published_douglas_rachford.json"
SERVO = "examples/embedding/servo.json"


def test_replicas_have_the_bits_of_steppers_of_their_own():
    masses = np.linspace(1.0, 6.0, 11)
    ensemble = pw.Ensemble(PAIR, parameters={"B.mass_kg": masses}, threads=2)
    assert len(ensemble) == 11
    assert "lanes" in ensemble.execution
    x = ensemble.rollout(steps=50, every=10)
    assert x.shape == (11, 5, 5)
    for i in (0, 4, 10):
        stepper = pw.Stepper(PAIR, overrides={"/subsystems/1/parameters/mass_kg": masses[i]})
        stepper.step(50)
        assert stepper.states().tolist() == x[i, -1].tolist()
    assert not np.array_equal(x[0], x[1])
    assert ensemble.certificate(3) == "holds"
    book = ensemble.energy(3)
    assert math.isclose(
        book["final_J"] - book["initial_J"],
        book["supplied_J"] - book["dissipated_J"] - book["mismatch_J"],
        abs_tol=1e-9 * book["initial_J"],
    )


def test_replicas_start_and_are_driven_each_by_itself():
    ensemble = pw.Ensemble(SERVO, 3)
    u = np.zeros((3, 40, 1))
    u[1] = 5.0
    u[2, 20:] = 5.0
    x0 = np.zeros((3, len(ensemble.state_names)))
    x = ensemble.rollout(x0, u)
    assert np.all(x[0] == 0.0)
    speed = ensemble.state_names.index("motor.speed")
    assert x[1, -1, speed] > x[2, -1, speed] > 0.0
    assert np.array_equal(x[2, 20:], x[1, :20])
    again = np.empty_like(x)
    assert ensemble.rollout(x0, u, out=again) is again
    assert np.array_equal(again, x)
    assert np.array_equal(ensemble.states(), x[:, -1])
    ensemble.start_from(x0)
    ensemble.set_inputs([5.0])
    ensemble.step(40)
    assert np.array_equal(ensemble.states()[0], x[1, -1])


def test_a_replica_that_fails_stops_alone():
    ensemble = pw.Ensemble(SERVO, 3)
    x0 = np.zeros((3, len(ensemble.state_names)))
    x0[1, 0] = 1e200  # more energy than there are numbers
    x = ensemble.rollout(x0, steps=5)
    assert np.isnan(x[1]).all()
    assert np.isfinite(x[[0, 2]]).all()
    assert ensemble.failures == 1
    assert ensemble.status(1)["failed"] and "cannot start" in ensemble.status(1)["error"]
    assert ensemble.status(1)["error"].startswith("replica 1: part ")
    assert not ensemble.status(0)["failed"]
    before = ensemble.states()
    x0[1, 0] = math.nan
    with pytest.raises(ValueError, match='replica 1, part ".*": state ".*" is not finite: nan'):
        ensemble.start_from(x0)
    x0[2, 1] = math.inf
    names = ensemble.state_names
    with pytest.raises(ValueError) as caught:
        ensemble.rollout(x0, steps=7)
    assert str(caught.value).splitlines() == [
        f"x0[1, 0] is nan: must be finite (replica 1, {names[0]!r})",
        f"x0[2, 1] is inf: must be finite (replica 2, {names[1]!r})",
    ]
    assert ensemble.step_index == 5
    assert np.array_equal(ensemble.states(), before, equal_nan=True)


def test_a_parameter_of_one_replica_changes():
    inertia = [0.02, 0.02, 0.05]
    one = pw.Ensemble(SERVO, 3, parameters={"load.inertia_kgm2": [0.02] * 3})
    other = pw.Ensemble(SERVO, 3, parameters={"load.inertia_kgm2": inertia})
    before = one.rollout(u=[[12.0]] * 50)
    one.set_parameter(2, "load.inertia_kgm2", 0.05)
    assert [one.parameter(i, "load.inertia_kgm2") for i in range(3)] == inertia
    x = one.rollout(u=[[12.0]] * 50)
    assert np.array_equal(x, other.rollout(u=[[12.0]] * 50))
    assert np.array_equal(x[:2], before[:2]) and not np.array_equal(x[2], before[2])
    named = r'"load" \(inertia\): has no parameter "inertia". Did you mean "inertia_kgm2"'
    with pytest.raises(pw.UnknownName, match=named):
        one.set_parameter(2, "load.inertia", 1.0)
    with pytest.raises(pw.UnknownName, match=named):
        one.parameter(2, "load.inertia")
    with pytest.raises(pw.UnknownName, match=named):
        pw.Ensemble(SERVO, parameters={"load.inertia": inertia})
    with pytest.raises(IndexError, match="replica 3 of 3"):
        one.set_parameter(3, "load.inertia_kgm2", 1.0)
    with pytest.raises(pw.ConfigError, match="replica 1, load.inertia_kgm2"):
        one.set_parameter(1, "load.inertia_kgm2", -1.0)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda e: e.rollout(np.zeros((2, 4)), steps=5), "x0 must be of shape [3, "),
        (lambda e: e.rollout(u=np.zeros((3, 5, 2))), "u must be of shape [3, T, 1], got [3, 5, 2]"),
        (lambda e: e.rollout(u=np.zeros((3, 5, 1)), steps=4), "u is for 5 steps"),
        (lambda e: e.rollout(), "say how many steps"),
        (lambda e: e.rollout(steps=5, every=2), "`every` must divide the 5 steps"),
        (lambda e: e.rollout(steps=5, out=np.zeros(3)), "`out` must be of shape (3, 5, "),
        (lambda e: e.set_inputs(np.zeros((3, 2))), "u must be of shape [3, 1]"),
        (lambda e: e.set_inputs([[0.0], [math.inf], [0.0]]), "replica 1, 'supply.effort'"),
        (lambda e: e.rollout(u=[[0.0], [math.nan]]), "all replicas, 'supply.effort'"),
        (lambda e: e.step(-1), "the number of steps must be from 0"),
        (lambda e: e.rollout(steps=-1), "`steps` must be at least 0"),
        (lambda e: pw.Ensemble(SERVO, 3, parameters={"load.inertia_kgm2": [1.0, 2.0]}), "has 2 numbers"),
        (lambda e: pw.Ensemble(SERVO), "say how many replicas"),
    ],
)
def test_wrong_shapes_are_told(call, words):
    with pytest.raises(ValueError) as told:
        call(pw.Ensemble(SERVO, 3))
    assert words in str(told.value)


def test_wrong_parameters_are_told():
    with pytest.raises(KeyError, match="inertia_kgm2"):
        pw.Ensemble(SERVO, parameters={"load.inertia": [1.0]})
    with pytest.raises(pw.ConfigError) as caught:
        pw.Ensemble(
            SERVO,
            parameters={
                "motor.resistance_ohm": [1.0, 1.0, -1.0, -2.0],
                "load.inertia_kgm2": [1.0, 1.0, -3.0, 1.0],
            },
        )
    told = str(caught.value).splitlines()
    assert [what for _, what in caught.value.issues] == told
    assert len(told) == 3
    assert told[0].startswith("replica 2, motor.resistance_ohm: must be >= 0 ohm, got -1")
    assert told[1].startswith("replica 2, load.inertia_kgm2: must be > 0 kg m^2, got -3")
    assert told[2].startswith("replica 3, motor.resistance_ohm: must be >= 0 ohm, got -2")
    with pytest.raises(pw.ConfigError) as caught:
        pw.Ensemble(SERVO, parameters={"load.inertia_kgm2": [-1.0] * 50})
    told = str(caught.value).splitlines()
    assert told[-2].startswith("replica 19, ") and told[-1] == "and 30 more replicas"
    with pytest.raises(pw.ConfigError):
        pw.Ensemble(SERVO, 0)


def test_a_parameter_changes_between_steps():
    stepper = pw.Stepper(SERVO)
    stepper["supply.effort"] = 12.0
    stepper.step(300)
    before = stepper.parameter("load.inertia_kgm2")
    stored, supplied = stepper["load.storage"], stepper.energy["supplied_J"]
    stepper.set_parameter("load.inertia_kgm2", 3.0 * before, tune=True)
    assert stepper.parameter("load.inertia_kgm2") == 3.0 * before
    assert math.isclose(stepper["load.storage"], 3.0 * stored, rel_tol=1e-12)
    assert math.isclose(stepper.energy["supplied_J"] - supplied, 2.0 * stored, rel_tol=1e-9)
    stepper.step(300)
    assert stepper.certificate == "holds"
    assert stepper.clone().parameter("load.inertia_kgm2") == 3.0 * before
    with pytest.raises(KeyError, match="inertia_kgm2"):
        stepper.set_parameter("load.inertia", 1.0)
    with pytest.raises(pw.ConfigError):
        stepper.set_parameter("load.inertia_kgm2", 0.0)


def test_a_linearisation_is_what_small_changes_do():
    # Steps that are short against the time constant of the coil, 1 ms.
    stepper = pw.Stepper(SERVO, overrides={"/time/step_s": 1e-4})
    own = stepper.linearise(["load.speed", "motor.shaft.flow"])
    assert own.A.shape == (len(own.state_names), len(own.state_names))
    assert own.recover.shape == (len(stepper.state_names), len(own.state_names))
    assert own.input_names == ["supply.effort"]
    # The servo is linear: its run is that of the matrices.
    scipy_linalg = pytest.importorskip("scipy.linalg")
    assert own.is_explicit
    stepper["supply.effort"] = 3.0
    stepper.run_until(0.2)
    n = own.A.shape[0]
    block = np.zeros((n + 1, n + 1))
    block[:n, :n] = own.A
    block[:n, n] = own.B[:, 0] * 3.0
    expected = scipy_linalg.expm(0.2 * block)[:n, n]
    assert np.allclose(stepper.states(), own.recover @ expected, rtol=2e-3, atol=1e-4)
    with pytest.raises(KeyError):
        stepper.linearise(["load.sped"])


def test_a_law_is_called_once_per_sample_for_all_replicas():
    parameters = {"load.inertia_kgm2": [0.1, 0.2, 0.4]}
    ensemble = pw.Ensemble(SERVO, parameters=parameters, threads=2)
    angle = ensemble.state_names.index("load.angle")
    speed = ensemble.state_names.index("motor.speed")
    target = np.array([0.5, 1.0, 2.0])
    calls = []

    def law(t, x):
        calls.append(t)
        out = 30.0 * (target - x[:, angle]) - 0.15 * x[:, speed]
        x[:] = math.nan  # a copy
        return out[:, np.newaxis]

    n = len(ensemble.state_names)
    x, u = ensemble.control(law, 60, every=4)
    assert x.shape == (3, 15, n)
    assert u.shape == (3, 15, 1)
    assert calls == [4 * k * ensemble.step_s for k in range(15)]
    end = ensemble.states()

    for i, inertia in enumerate(parameters["load.inertia_kgm2"]):
        alone = pw.Stepper(SERVO)
        alone.set_parameter("load.inertia_kgm2", inertia)
        places = [alone.state_names.index(name) for name in ensemble.state_names]
        for k in range(15):
            own = alone.states()[places]
            assert own == pytest.approx(x[i, k], rel=1e-10, abs=1e-12)
            volts = 30.0 * (target[i] - own[angle]) - 0.15 * own[speed]
            assert volts == pytest.approx(u[i, k, 0], rel=1e-10)
            alone.set_inputs([volts])
            alone.step(4)
        assert alone.states()[places] == pytest.approx(end[i], rel=1e-10, abs=1e-12)
    # The replicas differ, so that a law whose rows were mixed up would be noticed.
    assert np.ptp(end[:, angle]) > 1e-3

    # The run goes on, or begins anew.
    again, _ = ensemble.control(law, 4, every=4)
    assert np.array_equal(again[:, 0], end)
    anew, _ = ensemble.control(law, 60, every=4, x0=np.zeros(n))
    assert np.array_equal(anew, x)


def test_a_law_for_all_replicas_equals_a_rollout():
    ensemble = pw.Ensemble(SERVO, parameters={"load.inertia_kgm2": [0.1, 0.4]})
    n = len(ensemble.state_names)
    by_rollout = ensemble.rollout(np.zeros(n), [[5.0]] * 20)
    x, u = ensemble.control(lambda t, x: [5.0], 20, x0=np.zeros(n))
    assert np.array_equal(x[:, 1:], by_rollout[:, :-1])
    assert np.array_equal(ensemble.states(), by_rollout[:, -1])
    assert np.all(u == 5.0)


def test_a_law_need_not_know_of_replicas_that_failed():
    ensemble = pw.Ensemble(SERVO, 3)
    n = len(ensemble.state_names)
    x0 = np.zeros((3, n))
    x0[1, 0] = 1e200
    ensemble.rollout(x0, steps=1)
    assert ensemble.failures == 1
    x, u = ensemble.control(lambda t, x: 1.0 - x[:, :1], 8)
    assert np.isnan(x[1]).all() and np.isnan(u[1]).all()
    assert np.isfinite(x[[0, 2]]).all() and np.isfinite(u[[0, 2]]).all()
    statuses = ensemble.statuses()
    assert statuses["failed"].tolist() == [False, True, False]
    assert statuses["steps"].tolist() == [ensemble.status(i)["steps"] for i in range(3)]
    assert statuses["error"][1] == ensemble.status(1)["error"] != ""
    energies = ensemble.energies()
    assert set(energies) == set(ensemble.energy(0))
    assert energies["supplied_J"][2] == ensemble.energy(2)["supplied_J"] != 0.0
    assert ensemble.certificates() == [ensemble.certificate(i) for i in range(3)]


@pytest.mark.parametrize(
    ("law", "steps", "every", "words"),
    [
        (lambda t, x: [[1.0, 2.0]] * 3, 4, 1, "u"),
        (lambda t, x: np.ones((2, 1)), 4, 1, "u"),
        (lambda t, x: [[1.0], [math.nan], [1.0]], 4, 1, "replica 1, 'supply.effort'"),
        (lambda t, x: [1.0], 5, 2, "must divide"),
        (lambda t, x: [1.0], -1, 1, "at least 0"),
    ],
)
def test_what_a_law_must_not_return(law, steps, every, words):
    ensemble = pw.Ensemble(SERVO, 3)
    with pytest.raises(ValueError, match=words):
        ensemble.control(law, steps, every=every)
    assert ensemble.step_index == 0

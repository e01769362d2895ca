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
    x0[1, 0] = math.nan
    x = ensemble.rollout(x0, steps=5)
    assert np.isnan(x[1]).all()
    assert np.isfinite(x[[0, 2]]).all()
    assert ensemble.failures == 1
    assert ensemble.status(1)["failed"] and "cannot start" in ensemble.status(1)["error"]
    assert ensemble.status(1)["error"].startswith("replica 1: part ")
    assert not ensemble.status(0)["failed"]
    before = ensemble.states()
    with pytest.raises(ValueError, match='replica 1, part ".*": state ".*" is not finite: nan'):
        ensemble.start_from(x0)
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
    with pytest.raises(KeyError, match="inertia_kgm2"):
        one.set_parameter(2, "load.inertia", 1.0)
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
    with pytest.raises(pw.ConfigError):
        pw.Ensemble(SERVO, parameters={"load.inertia_kgm2": [1.0, -1.0]})
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

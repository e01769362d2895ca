"""A number is a number of any kind: of Python, of NumPy, or an array of one entry."""

import fractions
import json
import math
import warnings

import numpy as np
import pytest

import portwave as pw

SERVO = "examples/embedding/servo.json"
PAIR = "examples/published_douglas_rachford.json"

KINDS = {
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    "longdouble": np.longdouble,
    "int8": np.int8,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint64": np.uint64,
    "array of no dimension": np.array,
    "the same of float32": lambda x: np.array(x, dtype=np.float32),
    "array of one entry": lambda x: np.array([x]),
    "fraction": fractions.Fraction,
    "float": float,
}


def servo(step_s=1e-3, inertia=0.02):
    system = pw.System("servo", step_s=step_s)
    system.add("supply", "effort_source", domain="electrical", inputs={"effort": "settable"})
    system.add("motor", "dc_motor", inductance_H=1e-3, resistance_ohm=1.0,
               motor_constant_Vs_per_rad=0.05, inertia_kgm2=1e-4)
    system.add("load", "inertia", inertia_kgm2=inertia)
    system.connect("supply.port", "motor.terminals")
    return system.join("common_flow", "motor.shaft", "load.shaft")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_steppers_take_numbers_of_any_kind(kind):
    def run(k):
        s = pw.Stepper(servo(), threads=k(1), certify=k(1))
        s["supply.effort"] = k(2)
        s.step_by(k(1))
        s.step(k(3))
        s.set_parameter("load.inertia_kgm2", k(2), tune=k(0))
        s.run_until(k(2))
        s.set_inputs(np.ravel([k(3)]))
        out = [s.record(k(3), observe=["load.speed"], every=k(2)).values]
        out.append(s.record(steps=k(4), observe=["load.speed"]).values)
        out.append(s.rollout(np.ravel([k(2), k(1)]), ["load.speed"]))
        return out + [s.read(k(s.find("load.angle")))]

    for own, expected in zip(run(kind), run(int)):
        assert np.array_equal(own, expected)


@pytest.mark.parametrize("kind", [k for n, k in KINDS.items() if "one entry" not in n])
def test_systems_hold_numbers_of_any_kind_as_json_has_them(kind):
    def made(k):
        system = pw.System("all", step_s=k(1), end_s=k(2), method={"kind": "auto", "iterations": k(7)})
        system.add("a", "type", initial_state={"x": k(1)}, substeps=k(2), number=k(3), list=[k(1), (k(2),)],
                   inputs={"one": k(4), "two": {"kind": "constant", "value": k(5)}})
        system.join("transformer", "a.b", "c.d", ratio=k(3))
        system.override("/time/step_s", k(2)).add_block("block", "gain", every=k(2), factor=k(3))
        return system.drive("a.three", k(1))

    assert json.loads(made(kind).to_json()) == json.loads(made(int).to_json())
    assert pw.System("a", tolerance=kind(1), end_s=kind(1)).to_dict()["time"]["step"]["tolerance"] == 1
    document = {"a": {"b": [kind(3)]}}
    assert json.loads(pw.System.from_dict(document).to_json()) == {"a": {"b": [3]}}


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    text = servo().to_json()
    (tmp_path / "servo.json").write_text(text, encoding="utf-8-sig")
    assert pw.System.from_file(tmp_path / "servo.json").to_json() == text


def test_arrays_are_lists_in_a_system():
    system = pw.System().add("a", "type", M=np.eye(2, dtype=np.float32), flag=np.bool_(True), nothing=None)
    parameters = system.to_dict()["subsystems"][0]["parameters"]
    assert parameters == {"M": [[1.0, 0.0], [0.0, 1.0]], "flag": True, "nothing": None}
    for wrong in (np.complex128(1), np.array([1j]), np.datetime64("2020-01-01")):
        with pytest.raises(TypeError, match="real numbers"):
            pw.System().add("a", "type", M=wrong)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_ensembles_parts_and_studies_take_numbers_of_any_kind(kind):
    ensemble = pw.Ensemble(SERVO, kind(2), threads=kind(1), chunk=kind(1), certify=kind(1))
    n = len(ensemble.state_names)
    assert ensemble.rollout(x0=np.ravel([kind(1)] * n), steps=kind(4), every=kind(2)).shape == (2, 2, n)
    ensemble.step(kind(2))
    assert ensemble.status(kind(1))["steps"] == 6
    assert ensemble.energy(kind(0)) == ensemble.energy(0) and ensemble.certificate(kind(0))
    assert len(pw.study.budget(PAIR, [kind(1)], guard=[kind(1)], threads=kind(1))) == 1
    assert len(pw.study.rate(PAIR, steps=kind(1), limit=kind(5))) > 0
    assert len(pw.study.tolerance(PAIR, [0.1], stages=[kind(1)], repeat=kind(1), threads=kind(1),
                                  overrides={"/time": {"step": {"kind": "adaptive", "tolerance": 1e-3}, "end_s": 1}})) == 1


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_laws_take_and_give_numbers_of_any_kind(kind):
    def moved(k):
        system = pw.System.from_file(SERVO)
        system.add_controller("law", lambda t, u, x: (k(2), k(1)), inputs=["load.angle", 1.0], state=[k(0)],
                              outputs=k(1), every=k(2), drives="supply.effort")
        stepper = pw.Stepper(system)
        stepper.step(20)
        return stepper["load.angle"]

    assert moved(kind) == moved(float) != 0.0


@pytest.mark.parametrize("wrong, error", [("3", TypeError), (1j, TypeError), (np.complex64(1), TypeError),
                                          (None, TypeError), ([1, 2], TypeError), (np.ones(2), TypeError)])
def test_what_is_no_number_is_told_by_its_name(wrong, error):
    stepper = pw.Stepper(SERVO)
    for call, name in (
        (lambda: stepper.__setitem__("supply.effort", wrong), "supply.effort"),
        (lambda: stepper.set_parameter("load.inertia_kgm2", wrong), "load.inertia_kgm2"),
        (lambda: stepper.step_by(wrong), "the step"),
        (lambda: stepper.step(wrong), "`steps`"),
        (lambda: stepper.record(steps=1, every=wrong), "`every`"),
    ):
        with pytest.raises(error, match=name):
            call()
    assert stepper.step_index == 0


def test_numbers_that_are_not_whole_are_refused():
    stepper = pw.Stepper(SERVO)
    with pytest.raises(ValueError, match="`steps` must be a whole number, got 2.5"):
        stepper.step(np.float32(2.5))
    with pytest.raises(ValueError, match="`certify` must be true or false, got 2"):
        pw.Stepper(SERVO, certify=2)
    assert stepper.step_index == 0


def test_ensembles_refuse_what_is_not_finite_before_the_first_step():
    ensemble = pw.Ensemble(SERVO, 2)
    bad_u = np.zeros((2, 5, 1))
    bad_u[1, 3, 0] = math.nan
    for call, words in (
        (lambda: ensemble.rollout(u=bad_u), r"u\[1, 3, 0\] is nan"),
        (lambda: ensemble.rollout(u=bad_u[1]), r"u\[3, 0\] is nan"),
        (lambda: ensemble.set_inputs([math.nan]), r"u\[0\] is nan"),
        (lambda: pw.Ensemble(SERVO, parameters={"load.inertia_kgm2": [1.0, math.nan]}), r"load.inertia_kgm2\[1\] is nan"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert ensemble.step_index == 0 and ensemble.failures == 0


# Notes of `portwave validate`


def mirrored():
    system = servo()
    system._document["couplings"][1]["kind"] = "connection"
    return system


@pytest.mark.parametrize("use", [pw.Stepper, lambda s: pw.Ensemble(s, 2), pw.study.tune],
                         ids=["stepper", "ensemble", "study"])
def test_what_a_system_probably_does_not_mean_is_a_warning_of_the_line_that_uses_it(use):
    with pytest.warns(pw.ScenarioWarning, match=r"/couplings/1: .*motor.shaft.*against each other") as told:
        use(mirrored())
    assert len(told) == 1 and issubclass(pw.ScenarioWarning, UserWarning)
    with warnings.catch_warnings():  # the control: of the same system with the other joint
        warnings.simplefilter("error")
        use(servo())
    with warnings.catch_warnings():
        warnings.simplefilter("error", pw.ScenarioWarning)
        with pytest.raises(pw.ScenarioWarning):
            pw.Stepper(mirrored())


def test_a_warning_names_the_file_of_the_caller():
    with pytest.warns(pw.ScenarioWarning) as told:
        pw.Stepper(mirrored())
    assert told[0].filename == __file__


# Snapshots as bytes


def test_snapshots_go_to_bytes_and_back():
    stepper = pw.Stepper(servo())
    stepper["supply.effort"] = 5.0
    stepper.step(100)
    kept = stepper.snapshot().to_bytes()
    assert isinstance(kept, bytes)
    stepper.step(50)
    expected = stepper.states().tolist()
    other = pw.Stepper(servo())
    snapshot = pw.Snapshot.from_bytes(kept)
    assert snapshot.step_index == 100
    other.restore(snapshot)
    other.step(50)
    assert other.states().tolist() == expected
    with pytest.raises(ValueError, match="load.*inertia_kgm2|inertia_kgm2.*load"):
        pw.Stepper(servo(inertia=0.03)).restore(snapshot)
    for wrong in (b"", kept[:-1], kept[:100], bytes(len(kept))):
        with pytest.raises(ValueError, match="snapshot"):
            pw.Snapshot.from_bytes(wrong)

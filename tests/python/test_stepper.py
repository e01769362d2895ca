"""The Python package against what physics says, and against itself."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import portwave as pw

SERVO = "examples/embedding/servo.json"


def test_a_scenario_without_a_method_means_auto_with_the_guard():
    scenario = json.loads(open("examples/two_oscillators.json", encoding="utf-8").read())

    def last_state(method):
        given = {key: value for key, value in scenario.items() if key != "method"}
        stepper = pw.Stepper(given if method is None else {**given, "method": method})
        stepper.step(50)
        return [stepper["A.q1"], stepper["B.q2"]]

    usual = last_state(None)
    assert usual == last_state({"kind": "auto", "guard": True, "tolerance": 1e-10})
    assert usual != last_state({"kind": "auto", "stages": 3})


def test_a_motor_reaches_its_speed():
    stepper = pw.Stepper(SERVO)
    assert stepper.input_names == ["supply.effort"]
    stepper["supply.effort"] = 12.0
    stepper.step(1000)
    assert stepper.step_index == 1000
    assert stepper.time_s == pytest.approx(1.0)
    assert stepper["motor.speed"] == pytest.approx(240.0, abs=2.0)  # 12 V / (0.05 V s/rad)
    assert stepper["supply.effort"] == 12.0
    assert stepper.unit("motor.speed") == "rad/s"
    energy = stepper.energy
    change = energy["supplied_J"] - energy["dissipated_J"] - energy["mismatch_J"]
    assert energy["final_J"] - energy["initial_J"] == pytest.approx(change, rel=1e-9)
    assert stepper.certificate == "holds"
    assert stepper.coupling["poor"] is False
    assert stepper.report["iterations"] >= 1
    assert "portwave.Stepper at 1 s" in repr(stepper)


SHAFTS = {
    "name": "shafts",
    "time": {"step_s": 0.01, "steps": 20},
    "subsystems": [
        {"name": "a", "type": "inertia", "parameters": {"inertia_kgm2": 1}, "initial_state": {"speed": 10}},
        {"name": "b", "type": "inertia", "parameters": {"inertia_kgm2": 3}, "initial_state": {"speed": 2}},
    ],
    "couplings": [{"kind": "common_flow", "ports": ["a.shaft", "b.shaft"]}],
    "method": {"kind": "auto"},
}


def test_states_at_odds_jump_and_the_impact_is_told():
    stepper = pw.Stepper(SHAFTS)
    assert stepper["a.speed"] == pytest.approx(4.0, rel=1e-14)
    assert stepper.impulses["count"] == 1
    first = stepper.impulses["first"][0]
    assert first["time_s"] == 0.0 and first["impact_J"] == pytest.approx(24.0)
    assert "a.speed 10 -> 4 rad/s" in first["jumps"]
    result = stepper.record(observe=["a.speed", "b.speed"])
    assert result.success and result.impulses == stepper.impulses
    energy = stepper.energy
    assert energy["initial_J"] == pytest.approx(56.0)
    assert energy["impact_J"] == pytest.approx(24.0)
    assert energy["final_J"] == pytest.approx(32.0)
    given = pw.Stepper({**SHAFTS, "time": {**SHAFTS["time"], "start": "as_given"}})
    assert given.impulses is None and given.energy["impact_J"] == 0.0
    with pytest.raises(pw.ConfigError, match="at odds"):
        pw.Stepper({**SHAFTS, "time": {**SHAFTS["time"], "start": "refuse"}})


def test_states_and_names_agree():
    stepper = pw.Stepper(SERVO)
    stepper["supply.effort"] = 5.0
    stepper.step(10)
    states = dict(zip(stepper.state_names, stepper.states()))
    assert states["load.angle"] == stepper["load.angle"]
    view = stepper.state("load")
    assert not view.flags.owndata and not view.flags.writeable
    assert stepper["load.angle"] in view


def test_it_goes_back_bit_by_bit():
    stepper = pw.Stepper(SERVO)
    stepper["supply.effort"] = 5.0
    stepper.step(50)
    snapshot = stepper.snapshot()
    clone = stepper.clone()
    stepper.step(100)
    expected = stepper.states()
    stepper["supply.effort"] = -20.0
    stepper.step(7)
    assert not np.array_equal(stepper.states(), expected)
    stepper.restore(snapshot)
    assert stepper["supply.effort"] == 5.0
    stepper.step(100)
    assert np.array_equal(stepper.states(), expected)
    clone.step(100)
    assert np.array_equal(clone.states(), expected)
    with pytest.raises(ValueError, match="empty"):
        stepper.restore(pw.Snapshot())
    other = pw.Stepper("examples/published_douglas_rachford.json")
    with pytest.raises(ValueError, match="another system"):
        stepper.restore(other.snapshot())


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_damped_steps_are_booked_and_repeat_bit_by_bit(stages):
    scenario = json.loads(open("examples/published_douglas_rachford.json", encoding="utf-8").read())

    def with_integrator(integrator):
        return {**scenario, "method": {"kind": "auto", "integrator": integrator, "stages": stages}}

    stepper = pw.Stepper(with_integrator("damped"))
    stepper.step(20)
    snapshot, clone = stepper.snapshot(), stepper.clone()
    stepper.step(80)
    expected, energy = stepper.states(), stepper.energy
    assert energy["numerical_dissipation_J"] > 1e-9 * energy["initial_J"]
    lost = energy["dissipated_J"] + energy["numerical_dissipation_J"] + energy["mismatch_J"]
    change = energy["final_J"] - energy["initial_J"]
    assert change == pytest.approx(energy["supplied_J"] - lost, abs=1e-12 * energy["initial_J"])
    assert stepper.certificate == "holds"
    clone.step(80)
    assert np.array_equal(clone.states(), expected)
    stepper.restore(pw.Snapshot.from_bytes(snapshot.to_bytes()))
    stepper.step(80)
    assert np.array_equal(stepper.states(), expected)
    ensemble = pw.Ensemble(with_integrator("damped"), 3)
    ensemble.step(100)
    assert all(np.array_equal(own, expected) for own in ensemble.states())
    assert ensemble.energy(2)["numerical_dissipation_J"] == energy["numerical_dissipation_J"]
    conserving = pw.Stepper(with_integrator("gauss"))
    conserving.step(100)
    assert conserving.energy["numerical_dissipation_J"] == 0.0
    assert not np.array_equal(conserving.states(), expected)


def test_snapshots_bring_their_parameters():
    stepper = pw.Stepper(SERVO)
    stepper["supply.effort"] = 12.0
    stepper.step(5)
    before, inertia = stepper.snapshot(), stepper.parameter("load.inertia_kgm2")
    stepper.step(3)
    there = stepper.states()
    stepper.set_parameter("load.inertia_kgm2", 2.0 * inertia)
    stepper.step(3)
    after, heavy = stepper.snapshot(), stepper.states()
    stepper.restore(before)
    assert stepper.parameter("load.inertia_kgm2") == inertia
    stepper.step(3)
    assert np.array_equal(stepper.states(), there)
    fresh = pw.Stepper(SERVO)
    fresh.restore(pw.Snapshot.from_bytes(after.to_bytes()))
    assert fresh.parameter("load.inertia_kgm2") == 2.0 * inertia
    assert np.array_equal(fresh.states(), heavy)
    other = pw.Stepper(SERVO, overrides={"/subsystems/3/parameters/inertia_kgm2": 3.0 * inertia})
    with pytest.raises(ValueError, match='part "load": inertia_kgm2 is'):
        other.restore(before)


def test_states_are_set():
    stepper = pw.Stepper(SERVO)
    stepper["supply.effort"] = 12.0
    stepper.step(50)
    x = 2.0 * stepper.states()
    stored, supplied = stepper.energy["final_J"], stepper.energy["supplied_J"]
    stepper.set_states(x)
    assert np.array_equal(stepper.states(), x) and stepper.step_index == 50
    more = stepper.energy["final_J"] - stored
    assert more > 0.0
    assert math.isclose(stepper.energy["supplied_J"] - supplied, more, rel_tol=1e-12)
    stepper.step(5)
    assert stepper.certificate == "holds"
    x[0] = math.nan
    before = stepper.states()
    with pytest.raises(ValueError, match="must be finite, got nan"):
        stepper.set_states(x)
    with pytest.raises(ValueError, match=r"states must be of shape"):
        stepper.set_states(x[1:])
    assert np.array_equal(stepper.states(), before)


def test_results_are_recorded():
    result = pw.Stepper("examples/published_douglas_rachford.json").record(until=1.0, every=10)
    assert result.names == ["A.q1", "B.q2"]
    assert result.t.shape == (11,) and result.y.shape == (2, 11) and len(result) == 11
    np.testing.assert_allclose(result.t, np.arange(11) * 0.1, atol=1e-12)
    assert np.array_equal(result.time_s, result.t) and np.array_equal(result.values, result.y.T)
    assert np.array_equal(result["B.q2"], result.y[1])
    assert result["A.q1"][0] == 0.4
    with pytest.raises(KeyError, match="A.q1, B.q2"):
        result["A.q2"]
    frame = result.to_dataframe()
    assert list(frame.columns) == ["A.q1", "B.q2"] and frame.index.name == "time_s"
    data = result.to_xarray()
    assert data["A.q1"].attrs["units"] == "m"
    assert float(data["A.q1"][0]) == 0.4
    axes = result.plot()
    assert axes[-1].get_xlabel() == "time [s]"
    assert len(axes[0].get_lines()) == 2


@pytest.mark.filterwarnings("ignore::portwave.ScenarioWarning")  # its shafts turn against each other
def test_a_result_says_whether_the_run_succeeded():
    def recorded(**method):
        overrides = {"/method": {"guard": True, **method}}
        return pw.Stepper("examples/lossless_pair.json", overrides=overrides).record(until=10.0)

    good = recorded(kind="auto")
    assert good.success and good.message == "The run reached its end, and every check holds."
    poor = recorded(
        kind="peaceman-rachford", iterations=1, impedance={"kind": "uniform", "value": 20.0}
    )
    assert not poor.success and poor.coupling["poor"]
    assert "the coupling is poor" in poor.message
    assert "no success" in repr(poor) and "no success" not in repr(good)


@pytest.mark.filterwarnings("ignore::portwave.ScenarioWarning")  # its shafts turn against each other
def test_a_stepper_says_in_words_what_is_not_well():
    def stepped(**method):
        overrides = {"/method": {"guard": True, **method}}
        stepper = pw.Stepper("examples/lossless_pair.json", overrides=overrides)
        stepper.run_until(10.0)
        return stepper

    good = stepped(kind="auto")
    assert good.all_well and good.shortcomings == []
    poor = stepped(
        kind="peaceman-rachford", iterations=1, impedance={"kind": "uniform", "value": 20.0}
    )
    assert not poor.all_well
    assert any("the coupling is poor" in phrase for phrase in poor.shortcomings)
    with pytest.raises(TypeError, match="portwave.Arena"):
        pw.Stepper("examples/lossless_pair.json", arena=2)


def test_running_on_is_the_same_as_running_at_once():
    once = pw.Stepper("examples/published_douglas_rachford.json").record(until=1.0, observe=["A.q1"])
    stepper = pw.Stepper("examples/published_douglas_rachford.json")
    parts = [stepper.record(until=0.4, observe=["A.q1"]), stepper.record(steps=60, observe=["A.q1"])]
    joined = np.concatenate([parts[0]["A.q1"], parts[1]["A.q1"][1:]])
    assert np.array_equal(once["A.q1"], joined)


def test_roll_outs():
    stepper = pw.Stepper(SERVO)
    u = np.linspace(0.0, 10.0, 50)[:, None]
    x = stepper.rollout(u, ["load.angle", "motor.speed"])
    assert x.shape == (50, 2)
    by_hand = pw.Stepper(SERVO)
    for row, expected in zip(u, x):
        by_hand["supply.effort"] = row[0]
        by_hand.step()
        assert by_hand["load.angle"] == expected[0]
    with pytest.raises(ValueError, match=r"inputs must be of shape \[T, 1\], got \[4, 3\]"):
        stepper.rollout(np.zeros((4, 3)), ["load.angle"])


def test_systems_are_built_part_by_part(tmp_path):
    system = pw.System("servo", step_s=1e-3)
    system.add("supply", "effort_source", domain="electrical", inputs={"effort": "settable"})
    system.add("motor", "dc_motor", inductance_H=1e-3, resistance_ohm=1.0,
               motor_constant_Vs_per_rad=0.05, inertia_kgm2=1e-4)
    system.add("joint", "flexible_joint", motor_inertia_kgm2=1e-5, stiffness_Nm_per_rad=200.0,
               damping_Nms_per_rad=0.1, ratio=50.0)
    system.add("load", "inertia", inertia_kgm2=0.2)
    system.connect("supply.port", "motor.terminals")
    system.join("common_flow", "motor.shaft", "joint.motor")
    system.connect("joint.link", "load.shaft")
    assert system.parts == ["supply", "motor", "joint", "load"]
    built, read = pw.Stepper(system), pw.Stepper(SERVO)
    for stepper in (built, read):
        stepper["supply.effort"] = 3.0
        stepper.step(20)
    assert np.array_equal(built.states(), read.states())
    system.save(tmp_path / "servo.json")
    again = pw.Stepper(tmp_path / "servo.json")
    assert again.state_names == built.state_names


def test_defects_are_told_all_at_once():
    system = pw.System.from_file(SERVO)
    system.override("/subsystems/3/parameters/inertia_kgm2", -1.0).override("/time/step_s", 0)
    with pytest.raises(pw.ConfigError) as caught:
        pw.Stepper(system)
    where = {pointer for pointer, _ in caught.value.issues}
    assert where == {"/time/step_s", "/subsystems/3/parameters/inertia_kgm2"}
    assert isinstance(caught.value, ValueError)
    stepper = pw.Stepper(SERVO)
    with pytest.raises(KeyError, match="load.angle"):
        stepper["load.angel"]
    with pytest.raises(KeyError, match="supply.effort"):
        stepper["supply.efort"] = 1.0
    with pytest.raises(ValueError, match="finite"):
        stepper["supply.effort"] = math.nan
    with pytest.raises(ValueError, match="not both"):
        stepper.record(1.0, steps=3)
    assert stepper.step_index == 0


def test_a_step_that_fails_says_why():
    stepper = pw.Stepper(SERVO)
    stepper["supply.effort"] = 1e308
    with pytest.raises(pw.StepError) as caught:
        stepper.step(1000)
    assert caught.value.fault in ("not_finite", "not_converged")
    assert caught.value.step == stepper.step_index
    stepper["supply.effort"] = 0.0


def pendulum(name, energy=None):
    """1 kg at 1 m; the port is the torque at the pivot."""
    pw.add_part_type(
        name,
        states=[("angle", "rad"), ("momentum", "kg m^2/s")],
        ports=[("pivot", "rotation", "effort_in")],
        energy=energy or (lambda x: 0.5 * x[1] ** 2 + 9.81 * (1.0 - math.cos(x[0]))),
        gradient=lambda x: [9.81 * math.sin(x[0]), x[1]],
        J=[[0, 1], [-1, 0]],
        G=[[0], [1]],
    )


def test_a_part_from_python_is_a_pendulum():
    pendulum("py_pendulum")
    system = pw.System(step_s=0.002)
    system.add("p", "py_pendulum", initial_state={"angle": 2.0})
    system.join("free", "p.pivot")
    result = pw.Stepper(system).record(until=10.0, observe=["p.angle", "p.storage"])
    # Swings between +-2 rad with the period 4 K(sin 1) / sqrt(g), by the mean of AGM.
    a, b = 1.0, math.cos(1.0)
    for _ in range(8):
        a, b = (a + b) / 2, math.sqrt(a * b)
    period = 2 * math.pi / math.sqrt(9.81) / a
    turns = np.flatnonzero(np.diff(np.sign(result["p.angle"])))
    crossings = [
        result.t[i] - result["p.angle"][i] * 0.002 / (result["p.angle"][i + 1] - result["p.angle"][i])
        for i in turns
    ]
    np.testing.assert_allclose(np.diff(crossings), period / 2, rtol=2e-4)
    np.testing.assert_allclose(result["p.storage"], result["p.storage"][0], rtol=1e-11)


def test_a_part_from_python_comes_to_rest_under_a_load_with_every_discrete_gradient():
    for kind in ("gonzalez", "mean_value", "itoh_abe"):
        pw.add_part_type(
            f"py_loaded_{kind}",
            states=[("angle", "rad"), ("momentum", "kg m^2/s")],
            inputs=[("torque", "N m")],
            energy=lambda x: 0.5 * x[1] ** 2 + 9.81 * (1.0 - math.cos(x[0])),
            gradient=lambda x: [9.81 * math.sin(x[0]), x[1]],
            J=[[0, 1], [-1, 0]],
            R=[[0, 0], [0, 2.0]],
            G=[[0], [1]],
            discrete_gradient=kind,
        )
        system = pw.System(step_s=0.01)
        system.add(
            "p",
            f"py_loaded_{kind}",
            initial_state={"angle": 1.0},
            inputs={"torque": {"kind": "constant", "value": 3.0}},
        )
        result = pw.Stepper(system).record(until=40.0, observe=["p.angle"])
        assert abs(result["p.angle"][-1] - math.asin(3.0 / 9.81)) < 1e-14, kind


def test_an_unknown_discrete_gradient_is_refused():
    with pytest.raises(ValueError, match="itoh_abe"):
        pw.add_part_type(
            "py_unknown",
            states=[("x", "m")],
            energy=lambda x: 0.5 * x[0] ** 2,
            gradient=lambda x: x,
            J=[[0]],
            G=[[]],
            discrete_gradient="midpoint",
        )


def test_a_step_that_fails_says_from_where_and_what_is_left():
    # x' = -dH/dx with H = -x^4 has no solution from where it runs away.
    pw.add_part_type(
        "py_runaway",
        states=[("x", "m"), ("p", "kg m/s")],
        inputs=[("force", "N")],
        energy=lambda x: 0.5 * x[1] ** 2 - x[0] ** 4,
        gradient=lambda x: [-4.0 * x[0] ** 3, x[1]],
        J=[[0, 1], [-1, 0]],
        G=[[0], [1]],
    )
    system = pw.System(step_s=0.1)
    system.add(
        "a",
        "py_runaway",
        initial_state={"x": 1.0},
        inputs={"force": {"kind": "constant", "value": 2.0}},
    )
    stepper = pw.Stepper(system)
    with pytest.raises(pw.StepError) as caught:
        stepper.step(100)
    assert caught.value.part == "a"
    assert list(caught.value.state) == [stepper["a.x"], stepper["a.p"]]
    assert list(caught.value.inputs) == [2.0]
    assert caught.value.fault != "not_converged" or 1e-14 < caught.value.residual <= 1.0


def test_a_part_from_python_whose_gradient_is_wrong_is_refused():
    with pytest.raises(pw.ConfigError, match="gradient"):
        pendulum("py_wrong", energy=lambda x: x[1] ** 2)


def test_the_interpreter_ends_well_with_types_of_its_own():
    """Types outlive the interpreter; their functions must not be given back after its end."""
    code = (
        "import portwave as pw\n"
        "pw.add_part_type('t', states=[('x', 'm'), ('p', 'kg m/s')], "
        "ports=[('port', 'translation', 'effort_in')], energy=lambda x: 0.5 * (x[0]**2 + x[1]**2), "
        "gradient=lambda x: x, J=[[0, 1], [-1, 0]], G=[[0], [1]])\n"
        "s = pw.System(); s.add('a', 't', initial_state={'x': 1.0}); s.join('free', 'a.port')\n"
        "stepper = pw.Stepper(s); stepper.step(3); print(stepper.step_index)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
    assert done.stderr == ""


def test_an_error_in_a_callback_is_told():
    calls = [0]

    def energy(x):
        calls[0] += 1
        if abs(x[0]) > 2.5:
            raise RuntimeError("too far out")
        return 0.5 * x[1] ** 2 + 9.81 * (1.0 - math.cos(x[0]))

    pendulum("py_limited", energy)
    system = pw.System(step_s=0.01)
    system.add("p", "py_limited", initial_state={"angle": 2.0, "momentum": 5.0})
    system.join("free", "p.pivot")
    with pytest.raises((pw.StepError, RuntimeError), match="too far out"):
        pw.Stepper(system).step(500)
    assert calls[0] > 0


def test_the_lock_is_released_while_it_steps():
    stepper = pw.Stepper(SERVO)
    stepper["supply.effort"] = 1.0
    done = threading.Event()

    def work():
        stepper.step(30_000)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    counted = 0
    while not done.is_set():
        counted += 1
        time.sleep(0)
    thread.join()
    # With the lock held this thread would count a few before the other begins, and then none.
    assert counted > 10


def test_ctrl_c_ends_a_run():
    stepper = pw.Stepper(SERVO)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        stepper.step(10**12)
    steps = stepper.step_index
    assert steps > 0
    stepper.step()
    assert stepper.step_index == steps + 1


def test_sweeps():
    runs = pw.sweep(
        "examples/published_douglas_rachford.json",
        {"/subsystems/1/parameters/mass_kg": [2.0, 4.0], "/method/iterations": [5, 20]},
        until=0.5,
        observe=["B.q2"],
    )
    assert [settings["/method/iterations"] for settings, _ in runs] == [5, 20, 5, 20]
    assert runs[0][1]["B.q2"][-1] != runs[2][1]["B.q2"][-1]


def test_progress_is_a_bar_if_there_is_one(capsys):
    pytest.importorskip("tqdm")
    pw.Stepper(SERVO).record(until=0.2, observe=["load.angle"], progress=True)
    assert "simulated" in capsys.readouterr().err


def test_a_run_begins_where_it_is_told():
    system = pw.System("late", step_s=0.01, start_s=5.0, end_s=6.0)
    system.add("m", "mass", mass_kg=2.0,
               inputs={"force": {"kind": "table", "knots": [[0, 0], [5.005, 0], [5.005, 4], [9, 4]]}})
    system.join("free", "m.port")
    stepper = pw.Stepper(system)
    assert stepper.time_s == 5.0
    result = stepper.record(observe=["m.velocity"])
    assert result.t[0] == 5.0 and result.time_s[-1] == pytest.approx(6.0)
    # The step that the force jumps in takes in its half of the impulse.
    assert result["m.velocity"][1] == pytest.approx(0.01, rel=1e-12)
    assert result["m.velocity"][-1] == pytest.approx(1.99, rel=1e-12)
    assert result.coupling["poor"] is False


@pytest.mark.parametrize("kind", ["auto", "kick-drift", "taylor", "strang"])
def test_the_report_tells_the_size_of_the_step(kind):
    system = pw.System("swing", step_s=0.02, end_s=1, method={"kind": kind})
    system.add("A", "linear_oscillator", mass_kg=1, stiffness_N_per_m=4, initial_state={"q2": 1})
    system.join("free", "A.coupling")
    stepper = pw.Stepper(system)
    stepper.step(2)
    assert stepper.report["step_s"] == 0.02
    if kind != "strang":  # whose size is fixed
        stepper.step_by(0.01)
        assert stepper.report["step_s"] == 0.01

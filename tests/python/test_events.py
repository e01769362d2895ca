"""Events of a scenario: they act in Python as `portwave run` lets them act."""

import json
import math
import subprocess

import numpy as np
import pytest

import portwave as pw
from conftest import ROOT

HALF_S = math.pi / 6.0  # cos 2t = 1/2
QUICK_S = math.asin(0.75) / 2.0  # -2 sin 2t = -1.5
CHOSEN = {"step": {"kind": "adaptive", "tolerance": 1e-9, "largest_s": 0.05}, "end_s": 2}
EXPLICIT = {"kind": "kick-drift", "order": 4}


def swing(time=None, ends=True, **more):
    """q2 = cos 2t, which an event watches as it falls."""
    return {
        "name": "swing",
        "time": time or {"step_s": 0.01, "end_s": 2},
        "subsystems": [
            {
                "name": "A",
                "type": "linear_oscillator",
                "parameters": {"mass_kg": 1, "stiffness_N_per_m": 4},
                "initial_state": {"q2": 1},
                "inputs": {"force": {"kind": "settable"}},
            }
        ],
        "couplings": [{"kind": "free", "ports": ["A.coupling"]}],
        "method": {"kind": "auto"},
        "outputs": {"observe": ["A.q2", "A.v2"]},
        "events": [
            {"name": "half", "of": "A.q2", "level": 0.5, "direction": "falling", "end_run": ends},
            {"of": "A.v2", "level": -1.5},
        ],
        **more,
    }


def last_of_program(scenario, folder):
    program = ROOT / "build/dev/bin/portwave"
    if not program.exists():
        pytest.skip("the program is not built")
    file = folder / "swing.json"
    file.write_text(json.dumps(scenario))
    run = subprocess.run(
        [program, "run", str(file), "--json", "--quiet", "--out", str(folder / "out")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    table = np.genfromtxt(folder / "out/trajectory.csv", delimiter=",", names=True, deletechars="")
    events = (folder / "out/events.csv").read_text().splitlines()[1:]
    return json.loads(run.stdout)["ended_by"], table[-1], events


@pytest.mark.parametrize("time", [None, CHOSEN])
def test_a_recorded_run_ends_where_that_of_the_program_does(time, tmp_path):
    scenario = swing(time)
    result = pw.Stepper(scenario).record()
    ended_by, last, events = last_of_program(scenario, tmp_path)
    assert result.ended_by == ended_by == "half"
    assert [result.t[-1], result["A.q2"][-1], result["A.v2"][-1]] == list(last)[:3]
    assert [f"{e['time_s']},{e['event']},{e['direction']}" for e in result.events] == [
        ",".join([repr(float(row.split(",")[0])), *row.split(",")[1:]]) for row in events
    ]
    assert result.message == 'The run was ended by the event "half", and every check holds.'
    # The control: it is the event that ends it.
    free = pw.Stepper(swing(time, ends=False)).record()
    assert free.t[-1] == pytest.approx(2.0) and free.ended_by is None
    assert free.message == "The run reached its end, and every check holds."
    assert [e["event"] for e in free.events].count("half") == 1


def test_events_have_their_times():
    result = pw.Stepper(swing(CHOSEN)).record()
    assert [e["event"] for e in result.events] == ["A.v2", "half"]
    assert [e["direction"] for e in result.events] == ["falling", "falling"]
    assert result.events[0]["time_s"] == pytest.approx(QUICK_S, abs=1e-7)
    assert result.events[1]["time_s"] == pytest.approx(HALF_S, abs=1e-7)
    assert 0.0 <= result.t[-1] - result.events[1]["time_s"] <= 1e-10


@pytest.mark.parametrize(
    "run",
    [
        lambda s: s.run_until(2.0),
        lambda s: s.step(200),
        lambda s: s.record(steps=200),
        lambda s: s.rollout(np.zeros((200, 1)), ["A.q2"]),
        lambda s: s.differentiate(steps=200),
    ],
)
def test_every_call_of_several_steps_ends_with_the_event(run):
    stepper = pw.Stepper(swing())
    made = run(stepper)
    assert stepper.time_s == pytest.approx(0.53)
    assert stepper["A.q2"] < 0.5 and stepper.ended_by == "half"
    assert [e["event"] for e in stepper.events] == ["A.v2", "half"]
    if isinstance(made, np.ndarray):
        assert made.shape == (53, 1) and made[-1, 0] == stepper["A.q2"]
    stepper.step()  # goes on
    assert stepper.step_index == 54 and stepper.ended_by is None and stepper.events == []
    run(stepper)
    assert stepper.time_s > 2.0 - 1e-9


def test_events_of_a_loop_of_ones_own():
    stepper = pw.Stepper(swing())
    seen = []
    while stepper.ended_by is None:
        stepper.step()
        seen += stepper.events
    assert [e["event"] for e in seen] == ["A.v2", "half"] and stepper.step_index == 53
    at_the_end = stepper.snapshot()
    assert stepper.clone().ended_by == "half" and stepper.clone().events == stepper.events
    stepper.step_by(0.003)
    assert stepper.ended_by is None
    stepper.restore(at_the_end)
    assert stepper.ended_by == "half" and [e["event"] for e in stepper.events] == ["half"]


def test_a_part_names_the_events_of_its_own():
    stepper = pw.Stepper(
        {
            "name": "ball",
            "time": CHOSEN,
            "subsystems": [
                {"name": "ball", "type": "mass", "parameters": {"mass_kg": 2},
                 "inputs": {"force": {"kind": "constant", "value": 19.62}},
                 "initial_state": {"position": -1}},
                {"name": "floor", "type": "contact",
                 "parameters": {"force_N": 2000, "compression_m": 0.01, "damping_s_per_m": 0},
                 "initial_state": {"approach": -1}},
            ],
            "couplings": [{"kind": "connection", "ports": ["ball.port", "floor.face"]}],
        }
    )  # fmt: skip
    stepper.run_until(1.0)
    assert [(e["event"], e["direction"]) for e in stepper.events] == [("floor", "closes"), ("floor", "opens")]
    assert stepper.events[0]["time_s"] == pytest.approx(math.sqrt(2.0 / 9.81), abs=1e-6)


@pytest.mark.parametrize("more", [{"time": CHOSEN}, {"method": EXPLICIT}])
def test_states_within_a_step_are_those_of_the_motion(more):
    stepper = pw.Stepper({**swing(ends=False), **more})
    stepper.step(20)
    end_s = stepper.time_s
    begin_s = end_s - stepper.report["step_s"]
    assert begin_s < end_s
    for share in [0.0, 0.3, 0.7, 1.0]:
        time_s = begin_s + share * (end_s - begin_s)
        expected = {"A.q2": math.cos(2.0 * time_s), "A.v2": -2.0 * math.sin(2.0 * time_s)}
        x = dict(zip(stepper.state_names, stepper.state_at(time_s)))
        for name, value in expected.items():
            assert x[name] == pytest.approx(value, abs=1e-6), (name, share)
    assert np.array_equal(stepper.state_at(end_s), stepper.states())
    with pytest.raises(IndexError, match="not within the last step"):
        stepper.state_at(begin_s - 0.01)
    with pytest.raises(IndexError, match="not within the last step"):
        stepper.state_at(math.nan)


def test_steps_of_one_size_have_no_states_within():
    stepper = pw.Stepper(swing(ends=False))
    stepper.step(3)
    with pytest.raises(RuntimeError, match="steps are of one size"):
        stepper.state_at(stepper.time_s)


def test_an_ensemble_refuses_events_by_name():
    with pytest.raises(pw.ConfigError, match='/events: .*"half", "A.v2".*"events": \\[\\]'):
        pw.Ensemble(swing(), 2)
    assert len(pw.Ensemble(swing(), 2, overrides={"/events": []})) == 2

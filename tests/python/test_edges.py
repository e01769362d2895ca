"""What goes wrong in programs: interrupts, shapes, threads, lives of objects."""

import gc
import math
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import portwave as pw

SERVO = "examples/embedding/servo.json"


def long_inputs():
    return np.zeros((2_000_000, 1))


# Ctrl-C


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.step(10**12),
        lambda s: s.record(until=1e9, observe=[], every=10**9),
        lambda s: s.record(until=1e9, observe=[], every=10**9, progress=True),
        lambda s: s.run_until(1e9),
        lambda s: [s.rollout(long_inputs(), ["load.angle"]) for _ in range(1000)],
    ],
    ids=["step", "record", "record with progress", "run_until", "rollout"],
)
def test_ctrl_c_ends_whatever_steps(call):
    stepper = pw.Stepper(SERVO)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        call(stepper)
    steps = stepper.step_index
    assert steps > 0
    stepper.step()
    assert stepper.step_index == steps + 1


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", ["run", "rollout"])
def test_ctrl_c_ends_an_ensemble_which_then_begins_anew(call, threads):
    ensemble = pw.Ensemble(SERVO, 64, threads=threads, chunk=8)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        if call == "run":
            ensemble.step(10**12)
        else:
            ensemble.rollout(steps=10**8, every=10**8)
    x = ensemble.rollout(steps=10)
    assert np.array_equal(x, pw.Ensemble(SERVO, 64).rollout(steps=10))


def test_an_unknown_name_is_told_as_people_write():
    with pytest.raises(pw.UnknownName) as told:
        pw.Stepper(SERVO)["load.angel"]
    assert str(told.value).startswith('subsystem "load" has nothing named "angel".\n  It has: load.')


def test_one_name_in_place_of_a_list_is_not_its_letters():
    stepper = pw.Stepper(SERVO)
    for call in (
        lambda: stepper.rollout([1.0], "load.angle"),
        lambda: stepper.record(steps=1, observe="load.angle"),
        lambda: stepper.linearise("load.angle"),
    ):
        with pytest.raises(TypeError, match="list"):
            call()
    assert stepper.step_index == 0


def with_law(law):
    system = pw.System.from_file(SERVO)
    return pw.Stepper(system.add_controller("law", law, inputs=["load.angle"], drives="supply.effort"))


def test_ctrl_c_within_a_controller_is_no_fault_of_the_step():
    at = [50]

    def law(t, u):
        at[0] -= 1
        if at[0] == 0:
            raise KeyboardInterrupt
        return 1.0

    for go_on in (lambda s: s.step(1000), lambda s: [s.step() for _ in range(1000)]):
        at[0] = 50
        stepper = with_law(law)
        with pytest.raises(KeyboardInterrupt):
            go_on(stepper)
        assert 0 < stepper.step_index < 60
        stepper.step(100)
        assert stepper.step_index > 100


def test_ctrl_c_ends_a_study():
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(10_000):
            pw.study.budget("examples/published_douglas_rachford.json", [1, 2, 3, 4, 5])


# Arrays


def test_arrays_of_other_layouts_and_numbers_are_taken():
    u = np.linspace(0.0, 6.0, 40)
    expected = pw.Stepper(SERVO).rollout(u[:, None], ["load.angle"])
    strided = np.zeros((80, 3))
    strided[::2, 1] = u
    for same in (u, u.tolist(), strided[::2, 1:2], np.asfortranarray(u[:, None]), u[:, None].tolist()):
        assert np.array_equal(pw.Stepper(SERVO).rollout(same, ["load.angle"]), expected)
    small = pw.Stepper(SERVO).rollout(u.astype(np.float32), ["load.angle"])
    np.testing.assert_allclose(small, expected, rtol=1e-5)
    assert np.array_equal(
        pw.Stepper(SERVO).rollout(np.full(9, 3, dtype=np.int8), ["load.angle"]),
        pw.Stepper(SERVO).rollout(np.full(9, 3.0), ["load.angle"]),
    )


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda s: s.rollout(np.zeros((4, 3)), []), ValueError, "inputs must be of shape [T, 1], got [4, 3]"),
        (lambda s: s.rollout(np.zeros((4, 1, 1)), []), ValueError, "shape [T, 1], got [4, 1, 1]"),
        (lambda s: s.rollout(3.0, []), ValueError, "shape [T, 1], got []"),
        (lambda s: s.rollout([[1.0], [1.0, 2.0]], []), ValueError, "inputs must be of shape [T, 1]"),
        (lambda s: s.rollout(np.zeros((4, 1), complex), []), TypeError, "real numbers, got an array of complex128"),
        (lambda s: s.rollout([["a"]], []), TypeError, "inputs must hold real numbers"),
        (lambda s: s.rollout([[0.0], [math.nan]], []), ValueError, "inputs[1, 0] is nan"),
        (lambda s: s.rollout([0.0, 0.0, -math.inf], []), ValueError, "inputs[2] is -inf"),
        (lambda s: s.set_inputs([1.0, 2.0]), ValueError, "inputs must be of shape [1], got [2]"),
        (lambda s: s.set_inputs([math.nan]), ValueError, "inputs[0] is nan"),
        (lambda s: s.set_inputs(1.0), ValueError, "inputs must be of shape [1], got []"),
        (lambda s: s.__setitem__("supply.effort", math.nan), ValueError, "must be finite"),
        (lambda s: s.step_by(-1.0), ValueError, "must be finite and > 0"),
        (lambda s: s.step_by(math.nan), ValueError, "must be finite and > 0"),
        (lambda s: s.step_by(math.inf), ValueError, "must be finite and > 0"),
        (lambda s: s.step_by(0.0), ValueError, "must be finite and > 0"),
        (lambda s: s.run_until(math.nan), ValueError, "must be finite"),
        (lambda s: s.run_until(math.inf), ValueError, "must be finite"),
        (lambda s: s.run_until(-math.inf), ValueError, "must be finite"),
        (lambda s: s.run_until(1e300), ValueError, "more than 2^53 steps"),
        (lambda s: s.record(1e300), ValueError, "more than 2^53 steps"),
        (lambda s: s.record(math.nan), ValueError, "must be finite"),
        (lambda s: s.record(steps=2**62), ValueError, "from 0 to 2**53"),
        (lambda s: s.record(1.0, every=0), ValueError, "`every` must be at least 1"),
        (lambda s: s.step(2**62), ValueError, "from 0 to 2**53"),
        (lambda s: s.set_parameter("load.inertia_kgm2", math.nan), ValueError, ""),
        (lambda s: s.set_parameter("load.inertia_kgm2", -1.0), ValueError, ""),
        (lambda s: s.record(math.inf), ValueError, "must be finite"),
        (lambda s: s.record(steps=-1), ValueError, "from 0 to 2**53"),
        (lambda s: s.step(-1), ValueError, "from 0 to 2**53"),
        (lambda s: s.read(10**6), IndexError, "no quantity of number 1000000"),
        (lambda s: s.state("lode"), KeyError, "lode"),
        (lambda s: s.restore(None), TypeError, ""),
    ],
)
def test_what_cannot_be_is_told_and_nothing_has_happened(call, kind, words):
    stepper = pw.Stepper(SERVO)
    with pytest.raises(kind) as told:
        call(stepper)
    assert words in str(told.value)
    assert stepper.step_index == 0 and stepper["supply.effort"] == 0.0


def test_matrices_of_parts_are_checked():
    with pytest.raises(ValueError, match=r"G must be of shape \[2, 1\], got \[1, 2\]"):
        pw.add_part_type(
            "py_misshaped", states=[("x", "m"), ("p", "kg m/s")],
            ports=[("port", "translation", "effort_in")], energy=lambda x: 0.0,
            gradient=lambda x: x, J=[[0, 1], [-1, 0]], G=[[0, 1]],
        )


# Lives


def test_a_view_of_a_state_outlives_its_stepper():
    stepper = pw.Stepper(SERVO)
    stepper["supply.effort"] = 5.0
    stepper.step(50)
    view, copy = stepper.state("load"), stepper.state("load").copy()
    assert not view.flags.owndata and not view.flags.writeable
    del stepper
    gc.collect()
    churn = [np.random.default_rng(0).random(1000) for _ in range(100)]
    assert np.array_equal(view, copy)
    del churn


def test_a_stepper_that_was_never_made_raises():
    with pytest.raises((TypeError, AttributeError)):
        pw._portwave.Stepper.__new__(pw._portwave.Stepper).step()
    with pytest.raises(AttributeError):
        pw.Stepper.__new__(pw.Stepper).step()


def test_clones_and_snapshots_outlive_the_stepper_they_are_of():
    stepper = pw.Stepper(SERVO)
    stepper["supply.effort"] = 5.0
    stepper.step(50)
    clone, snapshot, states = stepper.clone(), stepper.snapshot(), stepper.states()
    del stepper
    gc.collect()
    assert np.array_equal(clone.states(), states)
    clone.step(10)
    clone.restore(snapshot)
    assert np.array_equal(clone.states(), states)


def test_snapshots_are_pickled_also_for_another_process(tmp_path):
    stepper = pw.Stepper("examples/drive_pid.json")
    stepper.step(700)
    snapshot = pickle.loads(pickle.dumps(stepper.snapshot()))
    assert snapshot.step_index == 700 and snapshot.time_s == stepper.time_s
    (tmp_path / "snapshot").write_bytes(pickle.dumps(snapshot))
    stepper.step(300)
    expected = stepper.states().tolist()
    code = (
        "import pickle, sys, portwave as pw\n"
        "s = pw.Stepper('examples/drive_pid.json')\n"
        "s.restore(pickle.load(open(sys.argv[1], 'rb')))\n"
        "s.step(300); print(s.states().tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "snapshot")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{expected}\n"
    whole = stepper.snapshot().__getstate__()
    for damaged in (b"", whole[:-1], whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]):
        with pytest.raises(ValueError, match="snapshot"):
            pw.Snapshot.__new__(pw.Snapshot).__setstate__(damaged)


@pytest.mark.parametrize("make", [lambda: pw.Stepper(SERVO), lambda: pw.Ensemble(SERVO, 2)])
def test_what_cannot_be_pickled_says_so(make):
    with pytest.raises(TypeError):
        pickle.dumps(make())


# Threads


def test_steppers_in_several_threads_do_not_disturb_one_another():
    alone = pw.Stepper(SERVO)
    alone["supply.effort"] = 5.0
    alone.step(3000)
    expected = alone.states()
    ends = {}

    def work(i):
        own = pw.Stepper(SERVO)
        own["supply.effort"] = 5.0
        for _ in range(30):
            own.step(100)
        ends[i] = own.states()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ends) == 4 and all(np.array_equal(end, expected) for end in ends.values())


def test_controllers_in_several_threads_have_the_errors_of_their_own_runs():
    caught = {}

    def work(i):
        def law(t, u):
            if t > 0.05 + 0.01 * i:
                raise RuntimeError(f"number {i}")
            return 1.0

        try:
            with_law(law).step(1000)
        except pw.StepError as error:
            caught[i] = str(error.__cause__)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert caught == {i: f"number {i}" for i in range(4)}


def test_a_stepper_that_two_threads_use_says_so():
    inside, go_on = threading.Event(), threading.Event()

    def law(t, u):
        if t > 0.0095:
            inside.set()
            go_on.wait(60)
        return 1.0

    stepper = with_law(law)
    first = threading.Thread(target=lambda: stepper.step(20))
    first.start()
    assert inside.wait(60)
    for call in (
        stepper.step,
        lambda: stepper.step(1),
        stepper.snapshot,
        stepper.clone,
        stepper.states,
        lambda: stepper.state("load"),
        lambda: stepper["load.angle"],
        lambda: stepper.set_parameter("load.inertia_kgm2", 1.0),
        lambda: stepper.time_s,
        lambda: stepper.rollout(np.zeros((3, 1)), ["load.angle"]),
    ):
        with pytest.raises(RuntimeError, match="one thread at a time"):
            call()
    go_on.set()
    first.join()
    assert stepper.step_index == 20
    stepper.step()  # it is free again


def test_a_controller_may_read_its_stepper_and_not_step_it():
    seen = []

    def law(t, u):
        if t > 0.0045 and not seen:
            seen.append(stepper["load.angle"])
            with pytest.raises(RuntimeError, match="is in a step"):
                stepper.step()
            with pytest.raises(RuntimeError, match="is in a step"):
                stepper["supply.effort"] = 1.0
        return 1.0

    stepper = with_law(law)
    stepper.step(20)
    assert len(seen) == 1 and stepper.step_index == 20


def test_what_an_ensemble_calls_cannot_use_it():
    """The run would begin anew under itself."""
    told = []

    def law(t, u):
        if t > 0.0005 and not told:
            for call in (
                lambda: ensemble.step(1),
                lambda: ensemble.states(),
                lambda: ensemble.status(0),
                lambda: ensemble.start_from([0.0] * len(ensemble.state_names)),
                lambda: ensemble.rollout(steps=1),
            ):
                with pytest.raises(RuntimeError, match="in a step"):
                    call()
                told.append(call)
        return 1.0

    system = pw.System.from_file(SERVO)
    ensemble = pw.Ensemble(system.add_controller("law", law, inputs=["load.angle"], drives="supply.effort"), 2)
    core, short = ensemble._core, np.zeros(1)
    for call in (core.states, core.set_states):
        with pytest.raises(ValueError, match="1 numbers are given"):
            call(short)
    ensemble.step(3)
    assert ensemble.step_index == 3 and len(told) == 5
    with pytest.raises(ValueError, match="2.53"):
        ensemble.step(-1)
    with pytest.raises(ValueError, match="2.53"):
        ensemble.step(2**62)
    assert ensemble.step_index == 3


def test_a_system_is_not_saved_over_what_it_reads(tmp_path):
    table, other = tmp_path / "force.csv", tmp_path / "same.csv"
    table.write_text("0,1\n1,2\n")
    other.hardlink_to(table) if hasattr(other, "hardlink_to") else other.symlink_to(table)
    system = pw.System.from_dict(
        {
            "name": "s",
            "subsystems": [{"name": "m", "inputs": {"force": {"kind": "table", "file": "force.csv"}}}],
        },
        tmp_path,
    )
    for path in (table, other, tmp_path / "." / "force.csv"):
        with pytest.raises(ValueError, match="is a file that the system reads"):
            system.save(path)
        assert table.read_text() == "0,1\n1,2\n"
    # The control: elsewhere, and over the file that it came from, in one piece.
    system.save(tmp_path / "s.json")
    again = pw.System.from_file(tmp_path / "s.json").override("/name", "t")
    again.save(tmp_path / "s.json")
    assert pw.System.from_file(tmp_path / "s.json").to_dict()["name"] == "t"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["force.csv", "s.json", "same.csv"]


def test_parts_from_python_step_in_several_threads():
    """Workers call the functions while the interpreter's lock is free."""
    pw.add_part_type(
        "py_threaded",
        states=[("x", "m"), ("p", "kg m/s")],
        ports=[("port", "translation", "effort_in")],
        energy=lambda x: 0.5 * (x[0] ** 2 + x[1] ** 2) + 0.25 * x[0] ** 4,
        gradient=lambda x: [x[0] + x[0] ** 3, x[1]],
        J=[[0, 1], [-1, 0]],
        G=[[0], [1]],
    )
    ends = []
    for threads in (1, 3):
        system = pw.System(step_s=0.01)
        for i in range(6):
            system.add(f"a{i}", "py_threaded", initial_state={"x": 0.1 * i})
            system.add(f"s{i}", "spring", stiffness_N_per_m=2.0)
            system.add(f"w{i}", "flow_source", domain="translation", inputs={"flow": 0.0})
            system.connect(f"a{i}.port", f"s{i}.left").connect(f"s{i}.right", f"w{i}.port")
        stepper = pw.Stepper(system, threads=threads)
        stepper.step(20)
        ends.append(stepper.states())
    assert np.array_equal(ends[0], ends[1])


# Types


def names_in_stub(text):
    import ast

    out = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            out[node.name] = None
        elif isinstance(node, ast.ClassDef):
            out[node.name] = {own.name for own in node.body if isinstance(own, ast.FunctionDef)}
    return out


def test_the_stub_has_the_names_of_the_module():
    folder = pathlib.Path(pw.__file__).parent
    assert (folder / "py.typed").exists()
    stub = names_in_stub((folder / "_portwave.pyi").read_text(encoding="utf-8"))
    module = {
        name: own for name, own in vars(pw._portwave).items() if not name.startswith("_")
    }
    assert set(stub) == set(module)
    for name, methods in stub.items():
        if methods is None:
            continue
        own = {m for m in vars(module[name]) if not (m.startswith("__") and m.endswith("__"))}
        assert {m for m in methods if not m.startswith("__")} == own, name


TYPED = """
import numpy as np
import portwave as pw

system: pw.System = pw.System("servo", step_s=1e-3)
system.add("supply", "effort_source", domain="electrical", inputs={"effort": "settable"})
wheel: pw.CataloguePart = pw.inertia(inertia_kgm2=0.1, ports=2)
system.add("wheel", wheel)
system.add_controller("law", lambda t, u: 2.0 * u[0], inputs=["load.angle"], drives="supply.effort")
stepper = pw.Stepper(system, threads=2)
angle: float = stepper["load.angle"]
angles: np.ndarray = stepper.rollout(np.zeros((5, 1)), ["load.angle"])
many: np.ndarray = stepper.read_all(stepper.find_all(["load.angle"]))
result: pw.Result = stepper.record(until=1.0, every=10)
names: list[str] = result.names
snapshot: pw.Snapshot = stepper.snapshot()
stepper.restore(snapshot)
table: pw.study.Table = pw.study.order(system, [0.1, 0.05])
x = pw.Ensemble(system, 3).rollout(steps=4)
shape: tuple[int, ...] = x.shape
"""


@pytest.fixture
def check(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")

    def run(text):
        program = tmp_path / "program.py"
        program.write_text(text, encoding="utf-8")
        environment = dict(os.environ)
        root = pathlib.Path(pw.__file__).resolve().parents[1]
        if root.name != "site-packages":  # of a build: mypy finds installed packages by itself
            environment["MYPYPATH"] = str(root)
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
        done = subprocess.run(
            [*command, str(program)], capture_output=True, text=True, env=environment, cwd=tmp_path
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_typed_program_passes_strict_mypy(check):
    status, text = check(TYPED)
    assert status == 0, text


@pytest.mark.parametrize(
    "wrong",
    [
        'stepper.step("ten")',
        'text: str = stepper["load.angle"]',
        "stepper.restore(stepper)",
        "stepper.set_inptus([1.0])",
        "pw.study.order(system)",
        "pw.mass()",
        "pw.mass(mass_kg=2, mass_lb=4)",
    ],
)
def test_mypy_sees_what_is_wrong(check, wrong):  # the control
    status, text = check(TYPED + wrong + "\n")
    assert status == 1 and "Found 1 error" in text, text

"""FMUs of a quarter car, made in every way there is, in portwave and in the masters of others.

Masters and FMUs are those of the benchmark `fmus_beside_other_masters.py`; what is right is a matrix exponential.
"""

import importlib
import importlib.util
import math
import shutil
import subprocess
import sys
from pathlib import Path

import portwave as pw
import pytest

from test_fmu import needs_export, reference

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
bench = pytest.importorskip("fmus_beside_other_masters", reason="SciPy is not there")

CAR = bench.CASES["quarter_car"]
NEEDS = {"pythonfmu": "pythonfmu", "libcosim": "libcosimpy", "ecos": "ecospy", "fmpy_jacobi": "fmpy"}


def needs(name):
    """Skip where a package of others is missing."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not there (pip install {NEEDS[name]})")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Makers of FMUs by name, which make them once; and the counter of their steps."""
    needs_export()
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("masters")
    counter = bench.Counter(folder / "steps")
    kept = {}

    def make(by):
        needs(by)
        if by not in kept:
            kept[by] = bench.Masters(bench.Fmus(folder, CAR, by))
        return kept[by]

    return make, counter


def error(run, step_s):
    times, positions, _ = run(step_s)
    return CAR.error(times, positions)


@pytest.mark.filterwarnings("ignore::portwave.ScenarioWarning")
@pytest.mark.parametrize("by", ["c", "pythonfmu", "portwave"])
def test_waves_have_order_2_and_need_two_steps_each(made, by):
    make, counter = made
    masters = make(by)
    errors = []
    for step_s in (0.0125, 0.00625) if by == "portwave" else (0.01, 0.005):
        counter.reset()
        errors.append(error(masters.waves, step_s))
        # Two calls of doStep in a step of each FMU, and some to get to know it.
        assert int(counter) <= 4 * CAR.end_s / step_s + 100
    assert errors[0] < 2e-3
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


@pytest.mark.filterwarnings("ignore::portwave.ScenarioWarning")
@pytest.mark.parametrize("by", ["c", "portwave"])
def test_waves_are_stable_where_an_exchange_of_samples_is_not(made, by):
    masters = made[0](by)
    for step_s in (0.1, 0.05, 0.025):
        assert error(masters.waves, step_s) < 1
        assert error(masters.our_jacobi, step_s) > 10  # the control
    # 99 % less error at equal step, from steps that both can take.
    assert error(masters.waves, 0.0025) < 0.01 * error(masters.our_jacobi, 0.0025)


@pytest.mark.parametrize("by", ["c", "pythonfmu", "portwave"])
@pytest.mark.parametrize("master", ["fmpy_jacobi", "libcosim", "ecos"])
def test_other_masters_run_these_fmus_as_our_exchange_of_samples_does(made, master, by):
    needs(master)
    masters = made[0](by)
    ours = error(masters.our_jacobi, 0.005)
    assert 0.01 < ours < 0.1
    assert error(getattr(masters, master), 0.005) == pytest.approx(ours, rel=1e-6)


@pytest.mark.filterwarnings("ignore::portwave.ScenarioWarning")
@pytest.mark.parametrize("by", ["c", "portwave"])
def test_an_exchange_that_is_iterated_on_the_same_integrals_has_the_errors_of_waves(made, by):
    needs("fmpy_jacobi")
    masters = made[0](by)
    for step_s in (0.05, 0.01):
        ours = error(masters.waves, step_s)
        assert error(masters.iterated_integrals, step_s) == pytest.approx(ours, rel=1e-3)
        assert error(masters.iterated_secant, step_s) > 10 * ours  # the control


def test_what_integrals_are_worth(made):
    masters = made[0]("c")
    errors = []
    for step_s in (0.01, 0.005):
        with pytest.warns(pw.ScenarioWarning):
            errors.append(error(masters.waves_without_integral, step_s))
        with pytest.warns(pw.ScenarioWarning):
            assert errors[-1] > 10 * error(masters.waves, step_s)
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


def test_waves_need_a_fifth_of_the_steps_of_ecco(made):
    needs("libcosim")
    make, counter = made
    masters = make("c")
    counter.reset()
    times, positions, _ = masters.ecco(1e-3)
    theirs, their_steps = CAR.error(times, positions), int(counter)
    assert 1e-3 < theirs < 1e-2
    counter.reset()
    with pytest.warns(pw.ScenarioWarning, match="starts with"):
        assert error(masters.waves, 0.0125) < theirs
    assert 4 * int(counter) < their_steps


@pytest.mark.parametrize("version", [2, 3])
def test_python_fmus_run_in_a_program_without_python(version, tmp_path):
    """Which has to load it: an FMU in Python finds the interpreter where the program has one."""
    needs_export()
    package = {2: "pythonfmu", 3: "pythonfmu3"}[version]
    pytest.importorskip(package, reason=f"{package} is not there (pip install {package})")
    # In a process of its own: pythonfmu changes the path of modules.
    subprocess.run([sys.executable, bench.models.__file__, str(tmp_path), "--by", package], check=True)
    system = pw.System("car", step_s=0.01, end_s=1.0, allow_plugins=True)
    hub = {"name": "hub", "effort": "F", "flow": "v"}
    system.add_fmu("chassis", tmp_path / "chassis.fmu",
                   ports=[{**hub, "input": "flow", "power": "out", "integral": "impulse"}])
    system.add_fmu("wheel", tmp_path / "wheel.fmu", ports=[{**hub, "input": "effort", "integral": "x"}])
    system.join("common_flow", "chassis.hub", "wheel.hub").observe("wheel.x")
    with pytest.warns(pw.ScenarioWarning):
        stepper = pw.Stepper(system)
    stepper.step(100)
    assert stepper["wheel.x"] == pytest.approx(CAR.truth([1.0])[0, 1], abs=2e-4)


def test_libcosim_runs_an_exported_system(tmp_path):
    needs("libcosim")
    path, expected = oscillators(tmp_path)
    from libcosimpy.CosimEnums import CosimVariableType
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    execution = CosimExecution.from_step_size(1e7)
    slave = CosimLocalSlave(str(path), "pair")
    index = execution.add_local_slave(slave)
    names = {own.name.decode(): own.reference for own in execution.slave_variables(index)}
    assert execution.real_initial_value(index, names["A.mass_kg"], 6.0)
    observer = CosimObserver.create_time_series(1000)
    execution.add_observer(observer)
    observer.start_time_series(index, names["A.q1"], CosimVariableType.REAL)
    assert execution.simulate_until(2_000_000_000)
    _, _, samples = observer.time_series_real_samples(index, names["A.q1"], 1, 1000)
    assert len(samples) == 200
    assert samples == list(expected[1:, 1])


def test_ecos_runs_an_exported_system(tmp_path):
    needs("ecos")
    path, expected = oscillators(tmp_path)
    from ecospy import EcosSimulation, EcosSimulationStructure

    structure = EcosSimulationStructure()
    structure.add_model("pair", str(path))
    structure.add_parameter_set("own", {"pair::A.mass_kg": 6.0})
    with EcosSimulation(structure=structure, step_size=0.01) as simulation:
        simulation.init(parameter_set="own")
        samples = []
        for _ in range(200):
            simulation.step()
            samples.append(simulation.get_real("pair::A.q1"))
        simulation.terminate()
    assert samples == pytest.approx(list(expected[1:, 1]), rel=0, abs=1e-9)


def oscillators(folder):
    """Two oscillators as an FMU, and the same run by portwave itself, with another mass."""
    needs_export()
    system = pw.System.from_file("examples/two_oscillators.json")
    path = system.to_fmu(folder / "pair.fmu", inputs=["B.force"], outputs=["A.q1"], parameters=["A.mass_kg"])
    expected = reference(mass=6.0)
    assert abs(expected[-1, 1] - reference()[-1, 1]) > 1e-3  # the control: the mass matters
    return path, expected

"""Systems as FMUs: written by `System.to_fmu`, checked and run by FMPy."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import portwave as pw
import pytest

OSCILLATORS = "examples/two_oscillators.json"


def needs_export():
    """Skip where portwave was built without FMI."""
    try:
        pw.System().to_fmu("/nowhere/x.fmu")
    except pw.ConfigError as error:
        if any("built without FMI" in text for _, text in error.issues):
            pytest.skip("portwave was built without FMI")


@pytest.fixture(scope="module")
def fmpy():
    return pytest.importorskip("fmpy", reason="FMPy is not there: exported FMUs are not checked by it")


@pytest.fixture(scope="module", params=[2, 3])
def fmu(request, tmp_path_factory):
    """The oscillators with a force, a tunable mass and some outputs."""
    needs_export()
    return oscillators().to_fmu(
        tmp_path_factory.mktemp("fmu") / "pair.fmu",
        inputs=["B.force"],
        outputs=["A.q1", "B.q2", "energy.stored"],
        parameters=["A.mass_kg"],
        fmi=request.param,
    )


def oscillators():
    return pw.System.from_file(OSCILLATORS)


def reference(mass=8.0, force=None, until=2.0):
    """The same run by portwave itself: rows of time, A.q1, B.q2 and the stored energy."""
    system = oscillators()
    system.override("/subsystems/1/inputs", {"force": {"kind": "settable"}})
    system.override("/subsystems/0/parameters/mass_kg", mass)
    stepper = pw.Stepper(system)
    rows = []
    while True:
        rows.append((stepper.time_s, stepper["A.q1"], stepper["B.q2"], stepper.energy["final_J"]))
        if stepper.time_s > until - 1e-9:
            return np.array(rows)
        if force is not None:
            stepper["B.force"] = force(stepper.time_s)
        stepper.step()


def test_fmpy_finds_no_fault(fmpy, fmu):
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(fmu)) == []
    description = fmpy.read_model_description(
        str(fmu), validate=True, validate_variable_names=True, validate_model_structure=True
    )
    causality = {own.name: own.causality for own in description.modelVariables}
    assert causality["B.force"] == "input"
    assert causality["A.mass_kg"] == "parameter"
    assert causality["energy.stored"] == "output"
    assert description.coSimulation.canSerializeFMUstate
    with zipfile.ZipFile(fmu) as archive:
        text = archive.read("modelDescription.xml").decode()
    # The flags would promise derivatives at the communication point, which are others than those that it gives.
    assert "providesDirectionalDerivative" not in text and "providesAdjointDerivatives" not in text
    assert "held over the last communication step" in text


def test_fmpy_finds_a_fault_that_was_made(fmpy, fmu, tmp_path):
    """The control of the test before."""
    from fmpy.validation import validate_fmu

    broken = tmp_path / "folder"
    fmpy.extract(str(fmu), str(broken))
    description = broken / "modelDescription.xml"
    text = description.read_text(encoding="utf-8")
    description.write_text(text.replace('start="8"', ""), encoding="utf-8")
    archive = shutil.make_archive(str(tmp_path / "broken"), "zip", broken)
    assert validate_fmu(archive) != []


def test_fmpy_runs_it_as_portwave_does(fmpy, fmu):
    result = fmpy.simulate_fmu(str(fmu), stop_time=2.0, output_interval=0.01)
    expected = reference()
    assert len(result) == len(expected)
    for column, name in enumerate(("A.q1", "B.q2", "energy.stored"), start=1):
        assert np.array_equal(result[name], expected[:, column])


def test_fmpy_drives_inputs_and_parameters(fmpy, fmu):
    times = np.arange(0.0, 2.0, 0.01)
    force = np.array(list(zip(times, 5 * np.sin(times))), dtype=[("time", float), ("B.force", float)])
    result = fmpy.simulate_fmu(
        str(fmu), stop_time=2.0, output_interval=0.01, input=force, start_values={"A.mass_kg": 6.0}
    )
    expected = reference(mass=6.0, force=lambda t: 5 * np.sin(t))
    assert np.allclose(result["B.q2"], expected[:, 2], rtol=0, atol=1e-12)
    assert not np.allclose(result["B.q2"], reference()[:, 2], rtol=0, atol=1e-3)


def test_states_go_through_bytes(fmpy, fmu):
    description = fmpy.read_model_description(str(fmu))
    folder = fmpy.extract(str(fmu))
    arguments = {
        "guid": description.guid,
        "unzipDirectory": folder,
        "modelIdentifier": description.coSimulation.modelIdentifier,
        "instanceName": "one",
    }
    is_2 = description.fmiVersion == "2.0"
    q1 = next(own.valueReference for own in description.modelVariables if own.name == "A.q1")

    def started():
        from fmpy.fmi2 import FMU2Slave
        from fmpy.fmi3 import FMU3Slave

        own = FMU2Slave(**arguments) if is_2 else FMU3Slave(**arguments)
        own.instantiate()
        if is_2:
            own.setupExperiment(startTime=0.0)
        own.enterInitializationMode()
        own.exitInitializationMode()
        return own

    def read(own):
        return own.getReal([q1])[0] if is_2 else own.getFloat64([q1])[0]

    def step(own, first, last):
        for n in range(first, last):
            own.doStep(currentCommunicationPoint=0.01 * n, communicationStepSize=0.01)
        return read(own)

    one, two = started(), started()
    step(one, 0, 20)
    state = one.getFMUState()
    data = one.serializeFMUState(state)
    one.freeFMUState(state)
    there = step(one, 20, 50)
    copy = two.deserializeFMUState(data)
    two.setFMUState(copy)
    two.freeFMUState(copy)
    assert step(two, 20, 50) == there
    assert step(started(), 0, 30) != there
    for own in (one, two):
        own.terminate()
        own.freeInstance()
    shutil.rmtree(folder, ignore_errors=True)


def test_power_ports(fmpy, tmp_path):
    needs_export()
    system = pw.System("mass", step_s=0.01, end_s=1.0)
    system.add("m", pw.mass(mass_kg=2.0))
    path = system.to_fmu(tmp_path / "mass.fmu", ports=["m.port"], outputs=["m.velocity"], fmi=3)
    result = fmpy.simulate_fmu(str(path), stop_time=1.0, output_interval=0.1, start_values={"m.port.effort": 3.0})
    assert result["m.velocity"][-1] == pytest.approx(-1.5, abs=1e-12)
    assert result["m.port.flow_integral"][-1] == pytest.approx(0.75, abs=1e-12)


def test_what_runs_fmus_in_processes_is_in_the_package():
    needs_export()
    host = Path(pw.__file__).resolve().parent / "portwave-fmu-host"
    # Started by hand it says what it is.
    result = subprocess.run([str(host)], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert "portwave starts it" in result.stderr


def test_errors_come_at_once(tmp_path):
    needs_export()
    path = tmp_path / "x.fmu"
    with pytest.raises(pw.ConfigError) as caught:
        oscillators().to_fmu(path, inputs=["B.forse"], outputs=["A.q9"], parameters=["A.mas"])
    places = [where for where, _ in caught.value.issues]
    assert places == ["/inputs/0", "/parameters/0", "/outputs/0"]
    assert 'Did you mean "B.force"?' in str(caught.value)
    assert not path.exists()
    with pytest.raises(TypeError):
        oscillators().to_fmu(path, fmi="two")


def test_python_functions_are_refused(tmp_path):
    needs_export()
    system = oscillators()
    system.add_controller("law", lambda t, u: -u[0], inputs=["A.q1"])
    with pytest.raises(pw.ConfigError, match="the FMU does not start"):
        system.to_fmu(tmp_path / "x.fmu")


def test_one_step_size_is_a_warning(tmp_path):
    needs_export()
    system = oscillators()
    system.add_block("law", "expression", expression="-3*x", signals={"x": "A.q1"})
    with pytest.warns(pw.ScenarioWarning, match="whole numbers of the macro-step"):
        system.to_fmu(tmp_path / "x.fmu")


def spring_and_mass(tmp_path):
    """A mass and a spring as FMUs, with their names of ports."""
    needs_export()
    mass = pw.System("mass", step_s=0.01).add("mass", "mass", mass_kg=1.0, initial_state={"position": 0.1})
    spring = pw.System("spring", step_s=0.01).add(
        "spring", "spring", stiffness_N_per_m=400.0, initial_state={"elongation": 0.1}
    )
    spring = pw.System.from_dict({**spring.to_dict(), "couplings": [{"kind": "fixed", "ports": ["spring.left"]}]})
    return (
        mass.to_fmu(tmp_path / "mass.fmu", ports=["mass.port"]),
        spring.to_fmu(tmp_path / "spring.fmu", ports=["spring.right"], fmi=3),
    )


def joined(mass, spring, **options):
    system = pw.System("joined", step_s=0.01, **options)
    system.add_fmu("mass", mass).add_fmu("spring", spring)
    return system.connect("mass.mass_port", "spring.spring_right")


def test_fmus_are_parts_of_systems_in_python(tmp_path):
    system = joined(*spring_and_mass(tmp_path), allow_plugins=True)
    system.observe("mass.mass_position")
    whole = pw.System("whole", step_s=0.01)
    whole.add("mass", "mass", mass_kg=1.0, initial_state={"position": 0.1})
    whole.add("spring", "spring", stiffness_N_per_m=400.0, initial_state={"elongation": 0.1})
    whole.connect("mass.port", "spring.right")
    whole = pw.System.from_dict(
        {**whole.to_dict(), "couplings": [*whole.to_dict()["couplings"], {"kind": "fixed", "ports": ["spring.left"]}]}
    )
    whole.observe("mass.position")
    for own in (system, system.copy()):
        stepper, expected = pw.Stepper(own), pw.Stepper(whole)
        worst = furthest = 0.0
        for _ in range(100):
            stepper.step()
            expected.step()
            worst = max(worst, abs(stepper["mass.mass_position"] - expected["mass.position"]))
            furthest = max(furthest, abs(expected["mass.position"] - 0.1))
        assert furthest > 0.1
        assert worst < 1e-6


def test_fmus_are_loaded_only_where_that_is_allowed(tmp_path):
    system = joined(*spring_and_mass(tmp_path))
    with pytest.raises(pw.ConfigError, match="allow_plugins=True"):
        pw.Stepper(system)
    with pytest.raises(pw.ConfigError, match="allow_plugins=True"):
        pw.study.rate(system)
    path = tmp_path / "joined.json"
    system.save(path)
    with pytest.raises(pw.ConfigError, match="allow_plugins=True"):
        pw.Stepper(path)
    pw.Stepper(pw.System.from_file(path, allow_plugins=True)).step()
    system.allow_plugins = True
    pw.Stepper(system).step()


def test_system_structures_are_written_and_read(tmp_path):
    system = joined(*spring_and_mass(tmp_path), allow_plugins=True)
    system.observe("mass.mass_position")
    package = system.to_ssp(tmp_path / "joined.ssp")
    with pytest.raises(pw.ConfigError, match="allow_plugins=True"):
        pw.System.from_file(package)
    back = pw.System.from_file(package, allow_plugins=True)
    assert list(back.parts) == ["mass", "spring"]
    copied = back.copy()
    del back  # the copy keeps the files that were unpacked
    stepper, expected = pw.Stepper(copied), pw.Stepper(system)
    for _ in range(50):
        stepper.step()
        expected.step()
    assert stepper["mass.mass_position"] == expected["mass.mass_position"] != 0.1
    system.add("own", "mass", mass_kg=1.0).join("free", "own.port")
    with pytest.raises(pw.ConfigError, match="is of the type"):
        system.to_ssp(tmp_path / "other.ssp")
    assert not (tmp_path / "other.ssp").exists()


def test_a_missing_fmu_is_named():
    needs_export()
    system = pw.System(allow_plugins=True).add_fmu("mass", "nowhere.fmu")
    with pytest.raises(pw.ConfigError, match="nowhere.fmu"):
        pw.Stepper(system)


def test_ports_that_are_no_list_are_refused():
    system = pw.System(allow_plugins=True)
    for wrong in ("F,v", {"effort": "F", "flow": "v", "input": "effort"}):
        with pytest.raises(TypeError, match="`ports` is a list of mappings"):
            system.add_fmu("mass", "mass.fmu", ports=wrong)

"""Parts of plugins, written in C++, from Python."""

import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import portwave as pw
from plugin_files import built_plugin

COIL = {
    "turns": 800,
    "area_m2": 2e-4,
    "iron_inductance_H": 0.6,
    "saturation_flux_Vs": 0.2,
    "resistance_ohm": 12,
    "mass_kg": 0.05,
    "spring_N_per_m": 400,
    "preload_m": 0.01,
    "damping_Ns_per_m": 0.5,
    "stroke_m": 0.004,
    "residual_gap_m": 1e-4,
    "stop_N_per_m2": 1e9,
}


@pytest.fixture
def plugin():
    return pw.load_plugin(built_plugin("solenoid"))


def valve(plugin, **time):
    """A coil that pulls at a valve body through a rod; the voltage is settable."""
    system = pw.System("valve", **{"step_s": 2e-5, **time})
    system.add("supply", pw.effort_source(domain="electrical"), inputs={"effort": "settable"})
    system.add("coil", plugin.solenoid(**COIL))
    system.add("rod", pw.spring_damper(stiffness_N_per_m=1e5, damping_Ns_per_m=20))
    system.add("valve", pw.mass(mass_kg=0.02))
    system.connect("supply.port", "coil.terminals")
    system.connect("rod.left", "coil.armature")
    return system.connect("rod.right", "valve.port")


def copy_of_faulty(folder, name):
    file = folder / f"{name}.so"
    shutil.copyfile(built_plugin("faulty"), file)
    return file


def problem_of(file):
    with pytest.raises(pw.ConfigError) as caught:
        pw.load_plugin(file)
    assert str(file) in str(caught.value)
    return str(caught.value)


def test_a_plugin_has_functions_for_its_types(plugin):
    assert plugin.part_types == ("solenoid",)
    assert plugin.file == built_plugin("solenoid").resolve()
    assert "solenoid" in dir(plugin) and "solenoid" in repr(plugin)
    assert "turns : float" in plugin.solenoid.__doc__
    assert plugin.solenoid(**COIL).part_type == "solenoid"
    with pytest.raises(AttributeError, match="did you mean 'solenoid'"):
        plugin.solenoit
    with pytest.raises(TypeError, match="did you mean 'turns'"):
        plugin.solenoid(turn=3)
    with pytest.raises(TypeError, match="missing a required argument: 'turns'"):
        plugin.solenoid(**{key: value for key, value in COIL.items() if key != "turns"})
    assert [port["name"] for port in pw.part_types()["solenoid"]["ports"]] == ["terminals", "armature"]


def test_a_library_is_loaded_once(plugin, tmp_path):
    before = len(pw.part_types())
    (tmp_path / "link.so").symlink_to(plugin.file)
    for again in (str(plugin.file), tmp_path / "link.so"):
        assert pw.load_plugin(again).file == plugin.file
    assert len(pw.part_types()) == before


def test_steps_have_the_bits_of_the_program(plugin, tmp_path):
    """The same scenario, by `portwave run` and by Python."""
    program = pathlib.Path(pw.__file__).resolve().parents[2] / "bin" / "portwave"
    if not program.exists():
        pytest.skip(f"there is no {program}")
    scenario = json.loads(pathlib.Path("examples/plugin/solenoid.json").read_text(encoding="utf-8"))
    scenario["plugins"] = [str(plugin.file)]
    scenario["time"]["end_s"] = 0.02
    (tmp_path / "s.json").write_text(json.dumps(scenario))
    out = tmp_path / "out"
    subprocess.run(
        [program, "run", tmp_path / "s.json", "--plugin", plugin.file, "--out", out], check=True, capture_output=True
    )
    rows = np.genfromtxt(out / "trajectory.csv", delimiter=",", names=True, deletechars="")
    result = pw.Stepper(scenario).record(observe=["coil.flux", "coil.position"], every=10)
    assert result.y.shape[1] == len(rows) > 50
    for name in ("coil.flux", "coil.position"):
        column = next(each for each in rows.dtype.names if each.startswith(name))
        np.testing.assert_array_equal(result[name], rows[column])
    assert result["coil.position"][-1] > 1e-5
    assert result.success


def test_a_scenario_names_a_plugin_only_if_the_program_has_loaded_it(plugin, tmp_path):
    scenario = valve(plugin).to_dict()
    scenario["plugins"] = [str(plugin.file)]
    pw.Stepper(scenario).step(3)
    foreign = copy_of_faulty(tmp_path, "runs")
    with pytest.raises(pw.ConfigError, match="in Python allow_plugins=True"):
        pw.Stepper({**scenario, "plugins": [str(foreign)]})


ALLOWED = """
import sys
import portwave as pw

system = pw.System.from_file(sys.argv[1], allow_plugins=len(sys.argv) > 2)
try:
    pw.Stepper(system).step()
    print("stepped")
except pw.ConfigError as error:
    print("allow_plugins=True" in str(error))
"""


@pytest.mark.parametrize("argument, said", [([], "True"), (["allowed"], "stepped")])
def test_a_system_loads_the_plugins_that_it_names_where_that_is_allowed(plugin, tmp_path, argument, said):
    """In a process that has loaded none."""
    scenario = tmp_path / "valve.json"
    shutil.copy(plugin.file, tmp_path / "coil.so")
    scenario.write_text(json.dumps({**valve(plugin).to_dict(), "plugins": ["./coil.so"]}))
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ALLOWED, str(scenario), *argument], capture_output=True, text=True
    )
    assert run.stdout.strip() == said, run.stderr


def test_a_part_of_a_plugin_obeys_a_controller_in_python(plugin):
    """The current is held at 1 A: the flux settles where a fine run by constant voltage of the same current has it."""
    system = valve(plugin)
    system.add_controller(
        "law", lambda t, u: 12.0 * 1.0 + 200.0 * (1.0 - u[0]), inputs=["coil.terminals.flow"], drives="supply.effort"
    )
    held = pw.Stepper(system)
    held.step(10000)
    assert held["coil.terminals.flow"] == pytest.approx(1.0, abs=1e-6)
    # The control: without the law, 12 V drive 1 A through 12 ohm at rest, to the same place.
    plain = pw.Stepper(valve(plugin))
    plain["supply.effort"] = 12.0
    plain.step(30000)
    assert held["coil.position"] == pytest.approx(plain["coil.position"], abs=1e-8)
    assert held["coil.flux"] == pytest.approx(plain["coil.flux"], rel=1e-5)
    assert held.certificate == plain.certificate == "holds"


def test_an_ensemble_has_the_bits_of_single_runs(plugin):
    volts = np.array([6.0, 12.0, 24.0])
    replicas = pw.Ensemble(valve(plugin), parameters={"coil.spring_N_per_m": [200.0, 400.0, 800.0]})
    states = replicas.rollout(u=np.repeat(volts[:, None, None], 400, axis=1))
    assert replicas.failures == 0
    for i, spring in enumerate([200.0, 400.0, 800.0]):
        alone = pw.Stepper(valve(plugin), overrides={"/subsystems/1/parameters/spring_N_per_m": spring})
        alone["supply.effort"] = volts[i]
        alone.step(400)
        at = [replicas.state_names.index(f"coil.{name}") for name in ("flux", "position", "momentum")]
        np.testing.assert_array_equal(states[i, -1, at], alone.state("coil"))
    assert len({float(row[at[1]]) for row in states[:, -1]}) == 3


def test_derivatives_of_steps_match_differences(plugin):
    """Of the flux after 20 steps by the voltage."""

    def flux(volts):
        stepper = pw.Stepper(valve(plugin))
        stepper["supply.effort"] = volts
        stepper.step(20)
        return stepper["coil.flux"]

    stepper = pw.Stepper(valve(plugin))
    place = stepper.state_names.index("coil.flux")
    run = stepper.differentiate(np.full((20, 1), 24.0))
    slope = run.tangent(inputs=np.ones((20, 1)))[-1, place]
    assert slope == pytest.approx((flux(24.01) - flux(23.99)) / 0.02, rel=1e-8)
    assert slope > 1e-4


def test_what_is_no_plugin_is_refused(tmp_path):
    assert "cannot be opened: No such file" in problem_of(tmp_path / "nowhere.so")
    assert "is a folder" in problem_of(tmp_path)
    (tmp_path / "text.so").write_text("no library\n")
    assert "is not a shared library" in problem_of(tmp_path / "text.so")
    assert "is a shared library, but no plugin" in problem_of(built_plugin("no_entry"))
    assert "another generation of portwave" in problem_of(built_plugin("later_entry"))
    with pytest.raises(TypeError):
        pw.load_plugin(3)


def test_another_version_is_refused_before_its_code_runs(tmp_path):
    code = built_plugin("faulty").read_bytes()
    own = pw.__version__.encode().ljust(16, b"\0")
    assert code.count(own) == 1
    other = tmp_path / "runs.so"
    other.write_bytes(code.replace(own, b"0.0.9".ljust(16, b"\0")))
    told = problem_of(other)
    assert "was built with portwave 0.0.9, this program with portwave " + pw.__version__ in told
    # In a process of its own, since Python keeps a copy of the environment: its code did not run there.
    script = (
        "import ctypes, portwave as pw, sys\n"
        "getenv = ctypes.CDLL(None).getenv; getenv.restype = ctypes.c_char_p\n"
        "try: pw.load_plugin(sys.argv[1])\n"
        "except pw.ConfigError: pass\n"
        "print(getenv(b'PORTWAVE_TEST_PLUGIN_HAS_RUN'))\n"
    )

    def runs(file):
        return subprocess.run([sys.executable, "-c", script, file], capture_output=True, text=True, check=True).stdout

    assert runs(other) == "None\n"
    assert runs(copy_of_faulty(tmp_path, "same_version")) == "b'yes'\n"  # the control


def test_names_that_are_taken_are_told_with_their_plugin(tmp_path, plugin):
    before = len(pw.part_types())
    told = problem_of(copy_of_faulty(tmp_path, "takes_names"))
    assert 'there is a type "mass" already' in told and "is there twice" in told
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / "solenoid.so"
    shutil.copyfile(plugin.file, copy)
    assert f'there is a type "solenoid" already, from the plugin "{plugin.file}"' in problem_of(copy)
    assert len(pw.part_types()) == before, "all or none"


def test_a_plugin_that_has_changed_is_refused(tmp_path):
    file = copy_of_faulty(tmp_path, "changes")
    assert pw.load_plugin(file).part_types == ("changes",)
    file.unlink()
    copy_of_faulty(tmp_path, "changes")
    with open(file, "ab") as more:
        more.write(b"\0")
    assert "has changed since this program loaded it" in problem_of(file)


def test_symbols_that_are_nowhere_and_entries_that_fail_are_told(tmp_path):
    assert "it uses portwave::type_that_is_nowhere(int), which is nowhere" in problem_of(built_plugin("undefined"))
    assert "failed in its entry: the licence has expired" in problem_of(copy_of_faulty(tmp_path, "throws"))
    caught = problem_of(copy_of_faulty(tmp_path, "catches"))
    assert "failed in its entry: caught: /mass_kg: must be > 0 kg, got -1" in caught


@pytest.mark.parametrize("stem", ["solenoid_linked", "solenoid_with_copy"])
def test_a_plugin_that_brings_portwave_along_works_too(stem):
    """In a process of its own: the three libraries have the same type."""
    script = (
        "import portwave as pw, sys\n"
        "plugin = pw.load_plugin(sys.argv[1])\n"
        "s = pw.System.from_file('examples/plugin/solenoid.json')\n"
        "d = s.to_dict(); d['plugins'] = [sys.argv[1]]\n"
        "stepper = pw.Stepper(d); stepper.step(500); print(repr(stepper['coil.flux']), stepper.certificate)\n"
    )

    def run(name):
        return subprocess.run(
            [sys.executable, "-c", script, built_plugin(name)], capture_output=True, text=True, check=True
        ).stdout

    assert run(stem) == run("solenoid")
    assert run(stem).endswith(" holds\n")


def test_modules_show_nothing_before_a_plugin_is_loaded():
    """Libraries that come later must not take portwave's functions from the module by chance."""
    script = (
        "import ctypes, portwave as pw, sys\n"
        "symbol = '_ZN8portwave9catalogueEv'\n"
        "print(hasattr(ctypes.CDLL(None), symbol))\n"
        "pw.load_plugin(sys.argv[1])\n"
        "print(hasattr(ctypes.CDLL(None), symbol))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, built_plugin("solenoid")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\nTrue\n"

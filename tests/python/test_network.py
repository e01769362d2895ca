"""Networks in code: parts of the catalogue's types, deadlines, arenas, many readings at once."""

import inspect
import json
import math

import numpy as np
import pytest

import portwave as pw


def pair(system):
    return (
        system.connect("A.port_1", "S.left")
        .connect("A.port_2", "B.coupling")
        .join("fixed", "S.right")
    )


def described():
    system = pw.System("pair", step_s=0.01)
    system.add("A", pw.mass(mass_kg=2, ports=2), initial_state={"velocity": 1.0})
    system.add("S", pw.spring_damper(stiffness_N_per_m=50, damping_Ns_per_m=0.5))
    system.add(
        "B", pw.duffing_oscillator(mass_kg=1, stiffness_N_per_m=30, coupling_stiffness_N_per_m=20)
    )
    return pair(system)


def test_a_described_part_is_the_part_of_its_type():
    named = pw.System("pair", step_s=0.01)
    named.add("A", "mass", mass_kg=2, ports=2, initial_state={"velocity": 1.0})
    named.add("S", "spring_damper", stiffness_N_per_m=50, damping_Ns_per_m=0.5)
    named.add("B", "duffing_oscillator", mass_kg=1, stiffness_N_per_m=30, coupling_stiffness_N_per_m=20)
    assert described().to_dict() == pair(named).to_dict()
    stepper = pw.Stepper(described())
    stepper.step(10)
    stepper.set_parameter("A.mass_kg", 3.0)
    assert stepper.parameter("A.mass_kg") == 3.0


def test_every_type_has_its_function_with_the_defaults_of_the_catalogue():
    types = {name: own for name, own in pw.part_types().items() if hasattr(pw, name)}
    assert len(types) >= 44
    for name, own in types.items():
        signature = inspect.signature(getattr(pw, name))
        assert set(signature.parameters) == {each["name"] for each in own["parameters"]} | {"allow_active"}
        for each in own["parameters"]:
            default = signature.parameters[each["name"]].default
            if each["required"]:
                assert default is inspect.Parameter.empty, (name, each)
            elif default is not None:
                assert default == each["default"], (name, each)
            assert f"{each['name']} : " in getattr(pw, name).__doc__
        assert own["summary"] in getattr(pw, name).__doc__


def test_examples_of_all_types_are_taken():
    for name, own in pw.part_types().items():
        if not hasattr(pw, name):
            continue
        system = pw.System().add("part", getattr(pw, name)(**own["example"]))
        for port in own["ports"]:
            system.join("free", f"part.{port['name']}")
        document = system.to_dict()["subsystems"][0]
        assert document["type"] == name and document.get("parameters", {}) == own["example"]


def test_wrong_arguments_are_refused_at_once():
    with pytest.raises(TypeError, match=r"mass\(\): missing a required argument: 'mass_kg'"):
        pw.mass(ports=2)
    with pytest.raises(TypeError, match=r"mass\(\): .*'mas_kg'"):
        pw.mass(mass_kg=2, mas_kg=2)
    with pytest.raises(TypeError, match="further ones: ports"):
        pw.System().add("A", pw.mass(mass_kg=2), ports=2)


def test_every_defect_names_its_part():
    system = described()
    system.add("bad", pw.mass(mass_kg=-1, damping_Ns_per_m=-2))
    system.add("active", pw.mass(mass_kg=1, damping_Ns_per_m=-2, allow_active=True))
    system.add("unknown", pw.CataloguePart("mas", mass_kg=1))
    with pytest.raises(pw.ConfigError) as caught:
        pw.Stepper(system)
    issues = dict(caught.value.issues)
    assert issues["/subsystems/3/parameters/mass_kg"] == '"bad" (mass): must be > 0 kg, got -1'
    assert issues["/subsystems/3/parameters/damping_Ns_per_m"].startswith('"bad" (mass): must be >= 0')
    assert issues["/subsystems/5/type"].startswith('"unknown" (mas): ')
    assert not any(where.startswith("/subsystems/4/parameters") for where in issues)
    assert '"bad" (mass): must be > 0 kg' in str(caught.value)
    with pytest.raises(pw.ConfigError, match=r'"bad" \(mass\): must be > 0 kg'):
        pw.Ensemble(system, 2)


def test_types_that_a_program_adds_are_described():
    pw.add_part_type(
        "network_test_mass",
        states=[("p", "kg m/s")],
        ports=[("port", "translation", "effort_in")],
        energy=lambda x: 0.5 * x[0] ** 2,
        gradient=lambda x: [x[0]],
        J=[[0]],
        G=[[-1]],
    )
    assert [each["name"] for each in pw.part_types()["network_test_mass"]["ports"]] == ["port"]
    system = pw.System(step_s=0.01)
    system.add("own", pw.CataloguePart("network_test_mass"), initial_state={"p": 1.0})
    stepper = pw.Stepper(system.join("free", "own.port"))
    stepper.step()
    assert stepper["own.p"] == 1.0


def test_many_quantities_are_read_at_once():
    stepper = pw.Stepper(described())
    names = ["A.velocity", "B.q1", "S.left.effort"]
    watched = stepper.find_all(names)
    stepper.step(20)
    assert np.array_equal(stepper.read_all(watched), [stepper[name] for name in names])
    with pytest.raises(pw.UnknownName, match="velocity"):
        stepper.find_all(["A.velocty"])
    with pytest.raises(IndexError):
        stepper.read_all([99])
    with pytest.raises(TypeError):
        stepper.find_all("A.velocity")


def test_a_deadline_is_kept_and_an_arena_is_shared():
    arena = pw.Arena(2)
    assert arena.threads >= 1
    stepper = pw.Stepper(described(), threads=2, arena=arena, deadline_s=0.5)
    other = pw.Stepper(described(), threads=2, arena=arena)
    assert other.deadline is None
    del arena
    stepper.step(10)
    other.step(10)
    assert stepper.deadline["steps"] == 10
    told = stepper.deadline
    assert told["guard_misses"] + told["late_misses"] + told["trial_misses"] <= told["misses"]
    assert told["unused_share"] >= 0.0
    assert told["jitter_s"] == told["slack_p99_s"] - told["slack_p01_s"]
    assert stepper.clone().deadline is not None
    with pytest.raises(pw.ConfigError, match="deadline_s: must be finite and >= 0, got -1 s"):
        pw.Stepper(described(), deadline_s=-1.0)
    with pytest.raises(pw.ConfigError, match=r'"A" \(mass\): must be > 0 kg, got -1'):
        stepper.set_parameter("A.mass_kg", -1.0)
    with pytest.raises(ValueError):
        pw.Arena(0)


def test_a_misspelt_parameter_is_named():
    with pytest.raises(TypeError, match=r"mass\(\): there is no parameter 'mas_kg'; did you mean 'mass_kg'"):
        pw.mass(mas_kg=1.0)
    with pytest.raises(TypeError, match="missing a required"):
        pw.mass()


def test_json_of_a_described_system_is_a_scenario():
    document = json.loads(described().to_json())
    assert document["subsystems"][0]["parameters"] == {"mass_kg": 2, "ports": 2}


def test_a_part_may_be_given_by_its_energy():
    pendulum = pw.port_hamiltonian(
        states={"angle": "rad", "momentum": "kg m^2/s"},
        constants={"m": 1, "l": 0.5, "g": 9.81},
        energy="momentum^2/(2*m*l^2) + m*g*l*(1 - cos(angle))",
        J=[[0, 1], [-1, 0]],
        R=[[0, 0], [0, "0.02"]],
        G=[[0], [-1]],
        ports=[{"name": "shaft", "causality": "effort_in", "domain": "rotation"}],
    )
    ends = []
    for part in (pendulum, pw.pendulum(mass_kg=1, length_m=0.5, damping_Nms_per_rad=0.02)):
        system = pw.System("swing", step_s=0.01).add("arm", part, initial_state={"angle": 2.0})
        stepper = pw.Stepper(system.join("free", "arm.shaft"))
        stepper.step(100)
        ends.append(stepper.state("arm"))
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-10)
    with pytest.raises(pw.ConfigError, match='column 1: there is no "x"'):
        pw.Stepper(pw.System().add("arm", pw.port_hamiltonian(states=["q"], ports=[], energy="x")))


def bead(energy):
    return pw.port_hamiltonian(
        states={"x": "m", "p": "kg m/s"},
        energy=energy,
        J=lambda x: [[0, 1], [-1, 0]],
        R=lambda x: np.array([[0, 0], [0, 0.01 * (1 + x[0] ** 2)]], dtype=object),
        G=[[0], [-1]],
        ports=[{"name": "hook", "causality": "effort_in", "domain": "translation"}],
    )


def test_an_energy_may_be_a_function():
    mass_kg, curvature, g = 0.5, 2.0, 9.81

    def energy(state):
        x, p = state
        along = 1.0 + (curvature * x) ** 2
        return 0.5 * p**2 / (mass_kg * along) + mass_kg * g * np.log(np.cosh(curvature * x))

    by_text = "p^2/(2*0.5*(1 + 4*x^2)) + 0.5*9.81*log(cosh(2*x))"
    ends = []
    for part in (bead(energy), bead(by_text), bead(lambda state: 1.01 * energy(state))):
        system = pw.System("bead", step_s=0.01).add("bead", part, initial_state={"x": 0.4})
        stepper = pw.Stepper(system.join("free", "bead.hook"))
        stepper.step(100)
        ends.append(stepper.state("bead"))
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-12)
    assert np.abs(ends[0] - ends[2]).max() > 1e-4  # another energy is another motion
    assert bead(energy).parameters["energy"] == "0.5*p^2/(0.5*(1 + (2*x)^2)) + 4.905*log(cosh(2*x))"
    assert bead(energy).parameters["R"] == [["0", "0"], ["0", "0.01*(1 + x^2)"]]


def test_characteristics_may_be_functions_of_the_input():
    diode = pw.port_hamiltonian(
        states=[],
        ports=[{"name": "port", "causality": "effort_in", "domain": "electrical"}],
        characteristics=[lambda u: 1e-9 * (np.exp(pw.minimum(u, 1.0) / 0.05) - 1)],
    )
    assert diode.parameters["characteristics"] == ["1e-09*(exp(min(u, 1)/0.05) - 1)"]


def test_functions_of_arrays_are_written_down():
    x, y = pw.Symbol("x"), pw.Symbol("y")
    matrix = np.array([[2.0, 0.0], [1.0, 3.0]])
    assert pw.traced(lambda state: state @ matrix @ state / 2, ["x", "y"]) == "((x*2 + y)*x + y*3*y)/2"
    assert repr(-(x**2) - (-x) ** 2 - (x - y) + np.sqrt(abs(x)) % 2) == "-x^2 - (-x)^2 - (x - y) + mod(sqrt(abs(x)), 2)"
    assert repr(pw.select((x < 1) * (y >= 2), np.arctan2(y, x), 2**x)) == "if((x < 1)*(y >= 2), atan2(y, x), 2^x)"
    assert [repr(each) for each in np.array([1.0, -2.5]) * x] == ["x", "-2.5*x"]


@pytest.mark.parametrize(
    "function, error, what",
    [
        (lambda q: q[0] if q[0] > 0 else 0.0, TypeError, "energy: whether q > 0 holds is not known .* portwave.select"),
        (lambda q: math.sin(q[0]), TypeError, "energy: q has no value .* numpy.sin in place of math.sin"),
        (lambda q: float("nan") * q[0], ValueError, "energy: a number in a traced function must be finite, got nan"),
        (lambda q: np.log10(q[0]), TypeError, "energy: .*log10"),
        (lambda q: "q", TypeError, "energy: a traced function computes with numbers, got str"),
        (lambda q: q, TypeError, "energy: a traced function computes with numbers, got ndarray"),
    ],
)
def test_functions_that_no_expression_says_are_refused(function, error, what):
    with pytest.raises(error, match=what):
        pw.port_hamiltonian(states=["q", "p"], ports=[], energy=function)

"""Networks in code: parts of the catalogue's types, deadlines, arenas, many readings at once."""

import copy
import decimal
import fractions
import inspect
import json
import math
import pickle
import re

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


def test_a_part_is_named_though_its_name_begins_another_word():
    system = pw.System("n", step_s=1e-3).add("m", "mass", mass_kg=1, mass=1).join("free", "m.port")
    with pytest.raises(pw.ConfigError, match=r'"m" \(mass\): mass has no parameter "mass"'):
        pw.Stepper(system)


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
    with pytest.raises(pw.UnknownName) as caught:
        stepper.find_all(["A.velocty", *names, "C.q1"] + ["B.q9"] * 20)
    told = str(caught.value)
    assert '"A.velocity"' in told and 'no subsystem "C"' in told, told
    assert told.endswith("... and 14 more names"), told
    with pytest.raises(IndexError):
        stepper.read_all([99])
    with pytest.raises(TypeError):
        stepper.find_all("A.velocity")


def test_an_input_that_is_no_settable_one_comes_with_a_remedy():
    system = pw.System(step_s=0.01)
    system.add("A", pw.mass(mass_kg=1), inputs={"force": "settable"})
    system.add("B", pw.mass(mass_kg=1))
    stepper = pw.Stepper(system.join("common_flow", "A.port", "B.port"))
    remedies = {"A.froce": 'Did you mean "A.force"', "B.force": '"settable"', "A.velocity": "set_states"}
    for name, remedy in remedies.items():
        with pytest.raises(pw.UnknownName, match=remedy):
            stepper[name] = 1.0
    with pytest.raises(ValueError, match='"A.force" must be finite'):
        stepper["A.force"] = float("nan")
    stepper["A.force"] = 1.0
    stepper.step()
    assert stepper["B.velocity"] > 0.0


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
    for budget in ("deadline_s", "pace"):
        for value in (0, -1.0, float("nan"), float("inf")):
            with pytest.raises(pw.ConfigError, match=f"/{budget}: must be finite and > 0, or None for none, got"):
                pw.Stepper(described(), **{budget: value})
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


def value_of(text, **numbers):
    """Evaluate an expression as Python does."""
    names = {
        "asin": math.asin, "acos": math.acos, "atan": math.atan, "sign": np.sign, "min": min, "max": max,
        "mod": lambda a, b: a - b * math.floor(a / b), "if_": lambda c, a, b: a if c != 0 else b, "abs": abs,
    }  # fmt: skip
    of_math = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
    text = re.sub(r"\bif\(", "if_(", text.replace("^", "**"))
    return float(eval(text, {"__builtins__": {}}, {**of_math, **names, **numbers}))


OF_ONE = (
    "negative positive absolute fabs square reciprocal sqrt exp log sin cos tan arcsin arccos arctan sinh cosh tanh "
    "floor ceil trunc sign conjugate"
).split()
OF_TWO = (
    "add subtract multiply divide true_divide power float_power arctan2 minimum fmin maximum fmax hypot remainder mod "
    "less less_equal greater greater_equal equal not_equal"
).split()
# NumPy takes these of arrays of objects only where the other operand is one symbol.
OF_NUMBERS = (
    "float_power minimum fmin maximum fmax sign less less_equal greater greater_equal equal not_equal"
).split()


@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_one_number_have_the_values_of_numpy(name):
    function, x = getattr(np, name), pw.Symbol("x")
    for value in (0.3, 0.75, 1.0) if name.startswith("arc") or name in ("sqrt", "log") else (-2.5, -0.3, 0.6, 2.0):
        assert value_of(function(x).text, x=value) == pytest.approx(float(function(value)), rel=1e-14)
    if name not in OF_NUMBERS:
        (of_array,) = function(np.array([x]))
        assert value_of(of_array.text, x=0.6) == pytest.approx(float(function(0.6)), rel=1e-14)


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_numbers_have_the_values_of_numpy(name):
    function, x, y = getattr(np, name), pw.Symbol("x"), pw.Symbol("y")
    pairs = [(0.3, 2.0), (2.5, -0.75), (1.5, 1.5), (7.25, 2.5), (3.0, -1.0)]
    for a, b in pairs if "power" in name else [*pairs, (-7.25, 2.5), (-7.25, -2.5), (-2.0, 0.4)]:
        expected = pytest.approx(float(function(a, b)), rel=1e-14)
        assert value_of(function(x, y).text, x=a, y=b) == expected
        assert value_of(function(a, y).text, y=b) == expected
        assert value_of(function(x, np.float64(b)).text, x=a) == expected
        assert value_of(function(np.array(a), y).text, y=b) == expected
        below = function(np.array([[a], [2.0]]), y)
        assert below.shape == (2, 1) and value_of(below[0, 0].text, y=b) == expected
        assert value_of(function(x, np.array([b, 1.0]))[0].text, x=a) == expected
        if name not in OF_NUMBERS:
            of_arrays = function(np.array([x, y]), np.array([y, x]))
            assert value_of(of_arrays[0].text, x=a, y=b) == expected


def test_numbers_and_arrays_of_all_kinds_stand_beside_symbols():
    q, p = pw.Symbol("q"), pw.Symbol("p")
    state = np.array([q, p])
    assert repr(q + fractions.Fraction(1, 4) + np.float32(0.5) + np.True_ + np.array(2)) == "q + 0.25 + 0.5 + 1 + 2"
    assert repr(np.array(1.0) < q) == repr(np.float64(1) < q) == "1 < q"
    assert [repr(each) for each in q % np.array([1.0, 2.0])] == ["mod(q, 1)", "mod(q, 2)"]
    assert [repr(each) for each in np.array([1.0, 2.0]) >= q] == ["1 >= q", "2 >= q"]
    assert [repr(each) for each in pw.minimum(state, 1)] == ["min(q, 1)", "min(p, 1)"]
    assert [repr(each) for each in pw.maximum(0, state)] == ["max(0, q)", "max(0, p)"]
    assert [repr(each) for each in pw.select(q > 0, state, [1, 2])] == ["if(q > 0, q, 1)", "if(q > 0, p, 2)"]
    assert repr(np.linalg.norm(state)) == "sqrt(q*q + p*p)"
    assert repr(math.floor(q)) == "floor(q)"
    sums = np.zeros(2, dtype=object)
    sums += q
    assert [repr(each) for each in sums] == ["q", "q"]


def test_symbols_are_copied_and_cannot_be_keys():
    difference = pw.Symbol("q") - 1
    for other in (copy.copy(difference), copy.deepcopy(difference), pickle.loads(pickle.dumps(difference))):
        assert repr(other * 2) == "(q - 1)*2"
    with pytest.raises(TypeError, match="unhashable"):
        hash(difference)


def test_parts_by_the_name_of_their_type_take_functions_and_symbols():
    x, p, u = pw.Symbol("x"), pw.Symbol("p"), pw.Symbol("u")
    ports = [{"name": "hook", "causality": "effort_in", "domain": "translation"}]
    given = {
        "states": ["x", {"name": "p", "unit": "kg m/s"}],
        "energy": p**2 / 2 + x**4,
        "J": lambda state: [[0, 1], [-1, 0]],
        "R": [[0, 0], [0, 0.1 + x**2]],
        "G": np.array([[0], [-1 - 0 * x]]),
        "ports": ports,
    }
    written = {
        "states": ["x", {"name": "p", "unit": "kg m/s"}],
        "energy": "p^2/2 + x^4",
        "J": [["0", "1"], ["-1", "0"]],
        "R": [[0, 0], [0, "0.1 + x^2"]],
        "G": [[0], ["-1"]],
        "ports": ports,
    }
    for system in (
        pw.System().add("a", "port_hamiltonian", **given),
        pw.System().add("a", pw.port_hamiltonian(**given)),
        pw.System().add("a", pw.CataloguePart("port_hamiltonian", **given)),
    ):
        assert system.to_dict()["subsystems"][0]["parameters"] == written
        pw.Stepper(system.join("free", "a.hook")).step()
    counted = pw.port_hamiltonian(states={"count": 2, "name": "q"}, ports=[], energy=lambda q: q @ q / 2)
    assert counted.parameters["energy"] == "(q1*q1 + q2*q2)/2"
    characteristics = pw.port_hamiltonian(states=[], ports=ports, characteristics=[u**3]).parameters["characteristics"]
    assert characteristics == ["u^3"]
    with pytest.raises(ValueError, match="there is no type 'port_hamiltonan' .*did you mean 'port_hamiltonian'"):
        pw.System().add("a", "port_hamiltonan", energy=lambda q: 0)
    with pytest.raises(TypeError, match="energy: whether x > 0 holds"):
        pw.System().add("a", "port_hamiltonian", states=["x"], ports=[], energy=lambda x: 1 if x[0] > 0 else 0)
    with pytest.raises(TypeError, match="J: a function in place of a matrix gives rows of numbers, got Symbol"):
        pw.port_hamiltonian(states=["x"], ports=[], J=lambda x: x[0])
    with pytest.raises(TypeError, match="characteristics: it is a list of expressions or functions, got one"):
        pw.port_hamiltonian(states=[], ports=ports, characteristics=lambda u: u)


@pytest.mark.parametrize("name", ["a b", "1a", "", "ä", "pi", "sin", "atan2", "round", "if", "mod"])
def test_names_that_expressions_cannot_have_are_refused(name):
    with pytest.raises(ValueError, match=f"'{name}' cannot be the name of a number in an expression"):
        pw.Symbol(name)


def test_a_function_that_is_too_long_is_refused():
    def squared(q):
        out = q[0] + 1
        for _ in range(40):
            out = out * out
        return out

    with pytest.raises(ValueError, match="energy: .* more than 10000 characters .* is written out each time"):
        pw.port_hamiltonian(states=["q"], ports=[], energy=squared)
    longest = pw.traced(lambda q: sum([q[0]] * 2500), ["q"])  # " + " and "q", 2500 times, less the first " + "
    assert len(longest) == 9997
    pw.Stepper(pw.System().add("a", "port_hamiltonian", states=["q"], ports=[], energy=longest))


def added_to_floats(q):
    sums = np.zeros(2)
    sums += q
    return sums[0]


def stored_in_floats(q):
    entries = np.zeros(2)
    entries[0] = q[0]
    return entries[0]


@pytest.mark.parametrize(
    "function, error, what",
    [
        (lambda q: q[0] if q[0] > 0 else 0.0, TypeError, "energy: whether q > 0 holds is not known .* portwave.select"),
        (lambda q: math.sin(q[0]), TypeError, "energy: q has no value .* numpy.sin in place of math.sin"),
        (lambda q: float("nan") * q[0], ValueError, "energy: a number in a traced function must be finite, got nan"),
        (lambda q: np.log10(q[0]), TypeError, "energy: .*log10"),
        (lambda q: "q", TypeError, "energy: a traced function computes with numbers, got str"),
        (lambda q: q, TypeError, "energy: a traced function computes with numbers, got ndarray"),
        (lambda q: q[0] + 1j, TypeError, "energy: a traced function computes with numbers, got complex"),
        (lambda q: q[0] + b"1", TypeError, "energy: a traced function computes with numbers, got bytes"),
        (lambda q: q[0] + np.str_("1"), TypeError, "energy: a traced function computes with numbers, got str_"),
        (lambda q: q[0] * decimal.Decimal(1), TypeError, "energy: .* got Decimal"),
        (lambda q: q[0] * np.timedelta64(1, "s"), TypeError, "energy: .* got timedelta64"),
        (lambda q: q[0] * np.array(1j), TypeError, "energy: .* got complex"),
        (lambda q: q[0] + 10**400, ValueError, "energy: a number in a traced function is too large"),
        (added_to_floats, TypeError, "energy: Cannot cast ufunc 'add' output"),
        (lambda q: added_to_floats(q[0]), TypeError, "energy: an array of float64 cannot hold .* dtype=object"),
        (stored_in_floats, TypeError, "energy: q has no value .* arrays with dtype=object"),
        (lambda q: int(q[0]), TypeError, "energy: q has no value"),
        (lambda q: np.rint(q[0]), TypeError, "energy: numpy.rint rounds halves to even .* away from 0"),
        (lambda q: np.rint(q), TypeError, "energy: numpy.rint rounds halves to even numbers"),
        (lambda q: np.round(q[0], 2), TypeError, "energy: numpy.r.* rounds halves to even numbers"),
        (lambda q: round(q[0]), TypeError, "energy: numpy.round rounds halves to even numbers"),
        (lambda q: np.fmod(q[0], 2), TypeError, r"energy: numpy.fmod .*: use numpy.sign\(a\)\*\(abs"),
        (lambda q: np.fmod(2.0, q), TypeError, "energy: numpy.fmod of a number and an array"),
        (lambda q: np.linalg.solve(np.diag([q[0], 1.0]), q)[0], TypeError, "energy: numpy.linalg.solve .*: write its"),
        (lambda q: np.linalg.inv(np.diag([q[0], 1.0]))[0, 0], TypeError, "energy: numpy.linalg.inv .*: write its"),
        (lambda q: np.arctan2(1.0, q)[0], TypeError, "energy: numpy.arctan2 of a number and an array"),
        (lambda q: q[0] // 2, TypeError, r"energy: numpy.floor_divide .* use numpy.floor\(a/b\)"),
        (lambda q: np.log1p(q)[0], TypeError, r"energy: numpy.log1p .* use numpy.log\(1 \+ x\)"),
        (lambda q: (q[0] > 0) & (q[1] > 0), TypeError, r"energy: numpy.bitwise_and .* use \(a > 0\)\*\(b > 0\)"),
        (lambda q: np.spacing(q[0]), TypeError, "energy: numpy.spacing cannot be written down: expressions have"),
        (lambda q: np.add.reduce(q[0]), TypeError, "energy: numpy.add.reduce takes arrays"),
        (lambda q: np.exp(q[0], where=np.array(True)), TypeError, "energy: numpy.exp .* does not take where"),
        (lambda q: np.where(q[0] > 0, 1, 2), TypeError, "energy: whether q > 0 holds .* portwave.select"),
        (lambda q: np.minimum(q, 1)[0], TypeError, "energy: whether q <= 1 holds .* portwave.minimum"),
        (lambda q: np.clip(q[0], 0, 1), TypeError, "energy: whether .* portwave.minimum .* numpy.clip"),
        (lambda q: np.sign(q)[0], TypeError, "energy: whether .* numpy.sign of one number of an array at a time"),
    ],
)
def test_functions_that_no_expression_says_are_refused(function, error, what):
    with pytest.raises(error, match=what):
        pw.port_hamiltonian(states=["q", "p"], ports=[], energy=function)

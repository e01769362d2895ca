"""Parts whose functions are compiled: of ctypes, of SciPy and of Numba."""

import ctypes
import gc
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig

import numpy as np
import pytest

import portwave as pw

DOUBLES, DATA = ctypes.POINTER(ctypes.c_double), ctypes.c_void_p
STATES = [("angle", "rad"), ("momentum", "kg m^2/s")]
PIVOT = [("pivot", "rotation", "effort_in")]
J, G = [[0, 1], [-1, 0]], [[0], [1]]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """tests/python/part_functions.c, compiled."""
    compiler = shlex.split(os.environ.get("CC") or "") or shlex.split(sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        compiler = ["cc"]
    if shutil.which(compiler[0]) is None:
        pytest.skip("there is no C compiler")
    source = pathlib.Path(__file__).with_name("part_functions.c")
    out = tmp_path_factory.mktemp("compiled") / "part_functions.so"
    subprocess.run([*compiler[:1], "-O2", "-shared", "-fPIC", source, "-o", out, "-lm", "-lpthread"], check=True)
    return ctypes.CDLL(str(out))


def number(function, data=False):
    function.restype, function.argtypes = ctypes.c_double, [DOUBLES, *([DATA] if data else [])]
    return function


def array(function, arrays=2, data=False):
    function.restype, function.argtypes = None, [DOUBLES] * arrays + ([DATA] if data else [])
    return function


def add(name, energy, gradient, **more):
    given = {"states": STATES, "ports": PIVOT, "J": J, "G": G, **more}
    pw.add_part_type(name, energy=energy, gradient=gradient, **given)


def swing(part, steps=400, start=2.0, **settings):
    system = pw.System(step_s=0.01)
    system.add("p", part, initial_state={"angle": start})
    system.join("free", "p.pivot")
    stepper = pw.Stepper(system, **settings)
    stepper.step(steps)
    return stepper


def python_energy(x):
    return 0.5 * x[1] ** 2 + 2.0 * 9.81 * math.sin(0.5 * x[0]) ** 2


def python_gradient(x):
    return [9.81 * math.sin(x[0]), x[1]]


def python_step_gradient(a, b):
    half = 0.5 * (b[0] - a[0])
    share = 1.0 - half * half / 6.0 if abs(half) < 1e-4 else math.sin(half) / half
    return [9.81 * math.sin(0.5 * (a[0] + b[0])) * share, 0.5 * (a[1] + b[1])]


def test_compiled_functions_and_python_functions_are_the_same_part(library):
    kinds = {
        "gonzalez": ({}, {}),
        "hessian": (
            {"hessian": array(library.hessian)},
            {"hessian": lambda x: [[9.81 * math.cos(x[0]), 0.0], [0.0, 1.0]]},
        ),
        "mean_value": ({"discrete_gradient": "mean_value"},) * 2,
        "own": (
            {"discrete_gradient": array(library.step_gradient, 3)},
            {"discrete_gradient": python_step_gradient},
        ),
        "structure": (
            {"R": array(library.dissipation), "G": array(library.input)},
            {"R": lambda x: [[0, 0], [0, 0.3 * x[0] ** 2]], "G": lambda x: [[0.0], [math.cos(x[0])]]},
        ),
    }
    ends = {}
    for kind, (compiled, python) in kinds.items():
        add(f"c_{kind}", number(library.energy), array(library.gradient), **compiled)
        add(f"py_{kind}", python_energy, python_gradient, **python)
        ends[kind], expected = swing(f"c_{kind}"), swing(f"py_{kind}")
        np.testing.assert_allclose(ends[kind].states(), expected.states(), rtol=1e-11, atol=1e-11)
        assert ends[kind].certificate == "holds"
    # The controls: other kinds are other steps, which the comparison would tell apart.
    for kind in ("mean_value", "structure"):
        assert np.abs(ends[kind].states() - ends["gonzalez"].states()).max() > 1e-7


def test_constants_beside_functions_in_a_network(library):
    """A spring at the pivot, whose lever arm is a function."""

    def run(part):
        system = pw.System(step_s=0.01, method={"kind": "auto", "tolerance": 1e-12})
        system.add("p", part, initial_state={"angle": 0.5})
        system.add("spring", pw.torsional_spring(stiffness_Nm_per_rad=4.0))
        system.add("wall", pw.flow_source(domain="rotation"))
        system.connect("p.pivot", "spring.left").connect("spring.right", "wall.port")
        stepper = pw.Stepper(system)
        stepper.step(300)
        return stepper

    add("c_arm", number(library.energy), array(library.gradient), G=array(library.input), R=np.diag([0, 0.1]))
    add("py_arm", python_energy, python_gradient, G=lambda x: [[0.0], [math.cos(x[0])]], R=np.diag([0, 0.1]))
    np.testing.assert_allclose(run("c_arm").states(), run("py_arm").states(), atol=1e-9)


def test_no_step_holds_the_interpreters_lock(library):
    """Nor does any thread that steps. The control: a call through Python's own interface holds it."""
    holds = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p)
    library.watch.argtypes = [ctypes.c_void_p]
    library.call_count.restype = library.lock_count.restype = ctypes.c_long
    add("c_watched", number(library.energy), array(library.watched_gradient))
    system = pw.System(step_s=0.01)
    for i in range(32):
        system.add(f"p{i}", "c_watched", initial_state={"angle": 0.1 * i})
        system.join("free", f"p{i}.pivot")
    stepper = pw.Stepper(system, threads=3)
    library.watch(holds)
    stepper.step(20)
    assert library.call_count() > 32 * 20
    assert library.lock_count() == 0
    held = ctypes.PyDLL(library._name).watched_gradient
    held.restype, held.argtypes = None, [DOUBLES, DOUBLES]
    held((ctypes.c_double * 2)(), (ctypes.c_double * 2)())
    assert library.lock_count() == 1


def test_threads_do_not_change_a_bit(library):
    add("c_threads", number(library.energy), array(library.gradient))
    ends = []
    for threads in (1, 2, 3):
        system = pw.System(step_s=0.01)
        for i in range(48):
            system.add(f"p{i}", "c_threads", initial_state={"angle": 0.05 * i})
            system.add(f"s{i}", pw.torsional_spring(stiffness_Nm_per_rad=3.0))
            system.add(f"w{i}", pw.flow_source(domain="rotation"))
            system.connect(f"p{i}.pivot", f"s{i}.left").connect(f"s{i}.right", f"w{i}.port")
        stepper = pw.Stepper(system, threads=threads)
        stepper.step(50)
        ends.append(stepper.states())
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[0], ends[2])


def test_a_function_that_has_no_answer_ends_the_step(library):
    add("c_within", number(library.energy), array(library.gradient_within))
    system = pw.System(step_s=0.01)
    system.add("p", "c_within", initial_state={"angle": 0.5, "momentum": 3.0})
    system.join("free", "p.pivot")
    stepper = pw.Stepper(system)
    with pytest.raises(pw.StepError) as caught:
        stepper.step(200)
    assert (caught.value.part, caught.value.fault) == ("p", "not_finite")
    assert 0.9 < stepper["p.angle"] <= 1.0
    assert list(stepper.state("p")) == caught.value.state


def test_defects_of_compiled_functions_are_found(library):
    given = (number(library.energy), array(library.gradient))
    with pytest.raises(pw.ConfigError, match="does not match finite differences"):
        add("c_wrong", *given, default_state=[0.5, 0.0], hessian=array(library.dissipation))
    with pytest.raises(pw.ConfigError, match="J is not skew"):
        add("c_wrong", *given, default_state=[0.5, 0.0], J=array(library.hessian))


def test_other_signatures_are_refused(library):
    def refused(told, **change):
        given = {"energy": number(library.energy), "gradient": array(library.gradient), **change}
        with pytest.raises(TypeError, match=told):
            add("c_refused", **given)

    fresh = ctypes.CDLL(library._name)  # whose functions have no types yet
    refused("gradient: set `argtypes`", gradient=fresh.gradient)
    fresh.gradient.argtypes = [DOUBLES, DOUBLES]
    refused(r"gradient: .*void \(const double \*, double \*\).*got c_int", gradient=fresh.gradient)
    refused("energy: ", energy=array(fresh.energy, 1))
    refused("gradient: .*got None", gradient=array(fresh.gradient, 3))
    refused("discrete_gradient: ", discrete_gradient=array(library.gradient))
    fresh.hessian.restype, fresh.hessian.argtypes = None, [DOUBLES, ctypes.POINTER(ctypes.c_float)]
    refused("hessian: .*LP_c_float", hessian=fresh.hessian)
    prototype = ctypes.CFUNCTYPE(None, DOUBLES, DOUBLES)
    refused("gradient: the function pointer is null", gradient=prototype(0))
    refused("gradient: this ctypes function calls Python", gradient=prototype(lambda x, g: None))
    held = ctypes.PyDLL(library._name).gradient
    refused("gradient: .*needs the interpreter's lock", gradient=array(held))
    refused("gradient must be a function, got 3", gradient=3)


def test_compiled_functions_live_as_long_as_their_type(library):
    """A callback is kept by the type alone, also where the type is replaced while a stepper runs."""
    address = ctypes.cast(library.gradient, ctypes.c_void_p).value

    def made():
        return ctypes.CFUNCTYPE(None, DOUBLES, DOUBLES)(address)

    add("c_kept", number(library.energy), made())
    stepper = swing("c_kept", 10)
    add("c_kept", number(library.energy), made(), R=np.diag([0, 1.0]))
    gc.collect()
    stepper.step(100)
    add("c_kept_too", number(library.energy), array(library.gradient))
    np.testing.assert_array_equal(stepper.states(), swing("c_kept_too", 110).states())


def test_the_interpreter_ends_well(library):
    code = (
        "import ctypes, sys, portwave as pw\n"
        "D = ctypes.POINTER(ctypes.c_double); l = ctypes.CDLL(sys.argv[1])\n"
        "l.energy.restype, l.energy.argtypes = ctypes.c_double, [D]\n"
        "l.gradient.restype, l.gradient.argtypes = None, [D, D]\n"
        "pw.add_part_type('t', states=[('x', 'm'), ('p', 'kg m/s')], ports=[('port', 'translation', 'effort_in')], "
        "energy=l.energy, gradient=l.gradient, J=[[0, 1], [-1, 0]], G=[[0], [1]])\n"
        "s = pw.System(); s.add('a', 't', initial_state={'x': 1.0}); s.join('free', 'a.port')\n"
        "stepper = pw.Stepper(s); stepper.step(3); print(stepper.step_index)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, library._name], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_low_level_callables_with_and_without_user_data(library):
    LowLevelCallable = pytest.importorskip("scipy", reason="needs scipy").LowLevelCallable
    add("c_plain", number(library.energy), array(library.gradient))
    add("c_low", LowLevelCallable(number(library.energy)), LowLevelCallable(array(library.gradient)))
    np.testing.assert_array_equal(swing("c_low").states(), swing("c_plain").states())

    def on(name, gravity):
        data = ctypes.cast(ctypes.pointer(ctypes.c_double(gravity)), ctypes.c_void_p)
        add(
            name,
            LowLevelCallable(number(library.energy_by, True), data),
            LowLevelCallable(array(library.gradient_by, 2, True), data),
        )
        gc.collect()
        return swing(name)

    np.testing.assert_array_equal(on("c_earth", 9.81).states(), swing("c_plain").states())
    moon = on("c_moon", 1.62)
    assert moon["p.storage"] == pytest.approx(2 * 1.62 * math.sin(1.0) ** 2, rel=1e-11)

    with pytest.raises(TypeError, match="energy: .*got double"):
        add("c_refused", LowLevelCallable(number(library.energy), signature="double (double)"), python_gradient)
    with pytest.raises(TypeError, match="does not take them"):
        data = ctypes.cast(ctypes.pointer(ctypes.c_double(1.0)), ctypes.c_void_p)
        add("c_refused", LowLevelCallable(number(library.energy), data), python_gradient)


def test_cfuncs_of_numba(library):
    numba = pytest.importorskip("numba", reason="needs numba")
    pointer = numba.types.CPointer(numba.types.float64)

    @numba.cfunc(numba.types.float64(pointer))
    def energy(x):
        return 0.5 * x[1] ** 2 + 2.0 * 9.81 * math.sin(0.5 * x[0]) ** 2

    @numba.cfunc(numba.types.void(pointer, pointer))
    def gradient(x, g):
        g[0] = 9.81 * math.sin(x[0])
        g[1] = x[1]

    add("numba_pendulum", energy, gradient)
    add("c_beside", number(library.energy), array(library.gradient))
    np.testing.assert_allclose(swing("numba_pendulum").states(), swing("c_beside").states(), rtol=1e-11)
    with pytest.raises(TypeError, match="energy: "):
        add("numba_refused", gradient, gradient)

"""Parts given by expressions beside MuJoCo and beside a loop by hand: a quadrotor with a slung load, many pendula.

    python benchmarks/expressions_beside_mujoco.py [replicas] [steps]

needs the Python package and MuJoCo (pip install mujoco); the loop by hand is compiled by $CXX or c++, and its rows
are left out where there is none. Answers are compared first; then all take turns on one thread. One JSON object per
row, as the other benchmarks.

What differs: portwave steps by implicit discrete gradients (order 2 with one stage, 6 with three, exact energy,
guarded), MuJoCo by its explicit fourth-order Runge-Kutta method, in float64.
"""

import ctypes
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import portwave as pw

STEP_S = 1e-3

# The quadrotor: a rigid body with a thrust along its z axis and torques about its axes; the load hangs on an elastic
# cable at its mass centre.
BODY_KG, LOAD_KG, INERTIA = 1.2, 0.4, (0.012, 0.013, 0.022)
CABLE_M, CABLE_N_PER_M, GRAVITY = 0.8, 400.0, 9.81

# The pendula.
PENDULUM = {"m": 1.0, "l": 0.5, "g": GRAVITY, "c": 0.02}


def quadrotor_part():
    quaternion = ["w", "a", "b", "c"]
    states = {
        **{axis: "m" for axis in "xyz"},
        **{f"p{axis}": "kg m/s" for axis in "xyz"},
        **{name: "" for name in quaternion},
        **{f"L{k}": "kg m^2/s" for k in (1, 2, 3)},
        **{f"load_{axis}": "m" for axis in "xyz"},
        **{f"load_p{axis}": "kg m/s" for axis in "xyz"},
    }
    names = list(states)
    place = {name: k for k, name in enumerate(names)}
    n = len(names)
    J = [[0] * n for _ in range(n)]

    def couple(row, column, entry):
        J[place[row]][place[column]] = entry
        J[place[column]][place[row]] = f"-({entry})" if isinstance(entry, str) else -entry

    for axis in "xyz":
        couple(axis, f"p{axis}", 1)
        couple(f"load_{axis}", f"load_p{axis}", 1)
    # q' = q (0, omega)/2
    rates = [["-a", "-b", "-c"], ["w", "-c", "b"], ["c", "w", "-a"], ["-b", "a", "w"]]
    for name, row in zip(quaternion, rates):
        for k, entry in enumerate(row):
            couple(name, f"L{k + 1}", f"0.5*({entry})")
    couple("L1", "L2", "-L3")
    couple("L2", "L3", "-L1")
    couple("L3", "L1", "-L2")
    G = [[0] * 4 for _ in range(n)]
    G[place["px"]][0] = "2*(a*c + w*b)"
    G[place["py"]][0] = "2*(b*c - w*a)"
    G[place["pz"]][0] = "w^2 - a^2 - b^2 + c^2"
    for k in range(3):
        G[place[f"L{k + 1}"]][k + 1] = 1
    stretch = "sqrt((x - load_x)^2 + (y - load_y)^2 + (z - load_z)^2) - l"
    return pw.port_hamiltonian(
        states=states,
        constants={
            "m": BODY_KG, "ml": LOAD_KG, "I1": INERTIA[0], "I2": INERTIA[1], "I3": INERTIA[2],
            "l": CABLE_M, "k": CABLE_N_PER_M, "g": GRAVITY,
        },
        energy="(px^2 + py^2 + pz^2)/(2*m) + L1^2/(2*I1) + L2^2/(2*I2) + L3^2/(2*I3)"
        " + (load_px^2 + load_py^2 + load_pz^2)/(2*ml) + g*(m*z + ml*load_z)"
        f" + k*({stretch})^2/2",
        ports=[],
        J=J,
        G=G,
        inputs=[{"name": "thrust", "unit": "N"}]
        + [{"name": f"torque_{k}", "unit": "N m"} for k in (1, 2, 3)],
        default_state=QUADROTOR_START.tolist(),
    )


HANGS_M = CABLE_M + LOAD_KG * GRAVITY / CABLE_N_PER_M
QUADROTOR_START = np.array([0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2 - HANGS_M, 0, 0, 0], dtype=float)


def quadrotors(replicas, stages):
    system = pw.System("quadrotor", step_s=STEP_S, method={"kind": "auto", "stages": stages})
    inputs = {name: "settable" for name in ("thrust", "torque_1", "torque_2", "torque_3")}
    system.add("drone", quadrotor_part(), inputs=inputs)
    return pw.Ensemble(system, replicas, threads=1)


QUADROTOR_XML = """
<mujoco><option timestep="{step}" gravity="0 0 -{g}" integrator="RK4"><flag contact="disable"/></option>
<worldbody>
  <body name="drone" pos="0 0 2"><freejoint/><inertial pos="0 0 0" mass="{m}" diaginertia="{I[0]} {I[1]} {I[2]}"/>
    <site name="drone"/></body>
  <body name="load"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
    <joint type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="{ml}" diaginertia="1e-6 1e-6 1e-6"/>
    <site name="load"/></body>
</worldbody>
<tendon><spatial stiffness="{k}" springlength="{l}"><site site="drone"/><site site="load"/></spatial></tendon>
<actuator><motor site="drone" gear="0 0 1 0 0 0"/><motor site="drone" gear="0 0 0 1 0 0"/>
  <motor site="drone" gear="0 0 0 0 1 0"/><motor site="drone" gear="0 0 0 0 0 1"/></actuator></mujoco>"""


def quadrotor_model(mujoco, step_s):
    return mujoco.MjModel.from_xml_string(
        QUADROTOR_XML.format(
            step=step_s, g=GRAVITY, m=BODY_KG, ml=LOAD_KG, I=INERTIA, k=CABLE_N_PER_M, l=CABLE_M
        )
    )


def pendula(replicas, kind):
    """As replicas of one."""
    system = pw.System("pendulum", step_s=STEP_S)
    if kind == "expressions":
        part = pw.port_hamiltonian(
            states={"angle": "rad", "momentum": "kg m^2/s"},
            inputs=[{"name": "torque", "unit": "N m"}],
            constants=PENDULUM,
            energy="momentum^2/(2*m*l^2) + m*g*l*(1 - cos(angle))",
            ports=[],
            J=[[0, 1], [-1, 0]],
            R=[[0, 0], [0, "c"]],
            G=[[0], [1]],
        )
        system.add("pendulum", part, inputs={"torque": "settable"})
    else:
        own = pw.pendulum(mass_kg=PENDULUM["m"], length_m=PENDULUM["l"], damping_Nms_per_rad=PENDULUM["c"])
        system.add("pendulum", own, inputs={"torque": "settable"})
        system.join("free", "pendulum.shaft")
    return pw.Ensemble(system, replicas, threads=1)


def pendulum_model(mujoco, step_s):
    m, l = PENDULUM["m"], PENDULUM["l"]
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{step_s}" gravity="0 0 -{GRAVITY}" integrator="RK4">'
        '<flag contact="disable"/></option><worldbody><body><joint name="j" type="hinge" axis="0 -1 0" '
        f'damping="{PENDULUM["c"]}"/><inertial pos="0 0 {-l}" mass="{m}" diaginertia="1e-12 1e-12 1e-12"/>'
        "</body></worldbody><actuator><motor joint=\"j\"/></actuator></mujoco>"
    )


def compiled_loop():
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        return None
    source = pathlib.Path(__file__).with_name("peers") / "hand_pendula.cpp"
    folder = tempfile.mkdtemp()
    library = pathlib.Path(folder) / "pendulum_loop.so"
    command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)]
    if subprocess.run(command, check=False).returncode != 0:
        return None
    loop = ctypes.CDLL(str(library)).pendulum_loop
    shutil.rmtree(folder)
    loop.argtypes = [ctypes.c_long, ctypes.c_long] + [ctypes.c_double] * 4 + [ctypes.c_void_p] * 2
    return loop


def by_mujoco(rollout, model, data, first, control):
    state, _ = rollout.rollout(model, [data], first, control)
    return state


def differ(answers, reference, share, what):
    """Ends the run where they differ; and where a small error in them would not be seen."""
    size = np.abs(reference).max()
    apart = np.abs(answers - reference).max()
    if not apart < share * size or np.abs((1 + 10 * share) * answers - reference).max() < share * size:
        sys.exit(f"the answers differ for {what}: {apart:.3g} of {size:.3g}")
    return apart


def take_turns(contenders, times):
    seconds = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(times):
        for name, call in contenders.items():
            begin = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - begin)
    return seconds


def row(name, seconds, ours, theirs, count, goal, sense, note, suite="expressions_beside_mujoco"):
    ratios = [a / b for a, b in zip(seconds[ours], seconds[theirs])]
    quarter = statistics.quantiles(ratios, n=4)
    ratio = statistics.median(ratios)
    print(
        json.dumps(
            {
                "name": f"{suite}/{name}",
                "ours_us": 1e6 * statistics.median(seconds[ours]) / count,
                "reference_us": 1e6 * statistics.median(seconds[theirs]) / count,
                "sense": sense,
                "ratio": ratio,
                "spread": (quarter[2] - quarter[0]) / ratio,
                "goal": goal,
                "holds": None if goal is None else bool(ratio <= goal),
                "note": note,
                "processes": 1,
            }
        ),
        flush=True,
    )


def compare_quadrotors(mujoco, rollout, replicas, steps):
    rng = np.random.default_rng(2)
    hover = (BODY_KG + LOAD_KG) * GRAVITY
    control = np.empty((replicas, steps, 4))
    control[:, :, 0] = hover + rng.normal(size=(replicas, steps))
    control[:, :, 1:] = 0.02 * rng.normal(size=(replicas, steps, 3))
    start = np.tile(QUADROTOR_START, (replicas, 1))
    start[:, 3] = 0.5 * BODY_KG  # it flies ahead of the load
    first = np.zeros((replicas, 1 + 10 + 9))
    first[:, 1:11] = [0, 0, 2, 1, 0, 0, 0, 0, 0, 2 - HANGS_M]
    first[:, 11] = 0.5

    def places(state):  # of the drone, its attitude, of the load
        return state[..., 1:11]

    own_places = [0, 1, 2, 6, 7, 8, 9, 13, 14, 15]
    few = min(8, replicas)
    fine = quadrotor_model(mujoco, STEP_S / 10)
    repeated = np.repeat(control[:few], 10, axis=1)
    reference = places(by_mujoco(rollout, fine, mujoco.MjData(fine), first[:few], repeated)[:, 9::10])
    model = quadrotor_model(mujoco, STEP_S)
    data = mujoco.MjData(model)
    rk4 = places(by_mujoco(rollout, model, data, first[:few], control[:few]))
    error_rk4 = np.abs(rk4 - reference).max()
    contenders = {"rk4": lambda: by_mujoco(rollout, model, data, first, control)}
    notes = {}
    for stages in (1, 3):
        exact = quadrotors(few, stages)
        own = exact.rollout(start[:few], control[:few])[..., own_places]
        # Of order 2 and 6.
        error = differ(own, reference, 1e-9 if stages == 3 else 3e-8, f"the quadrotor, {stages} stages")
        notes[stages] = f"errors {error:.1e} and {error_rk4:.1e}"
        all_of_them = quadrotors(replicas, stages)
        out = np.empty((replicas, steps, len(QUADROTOR_START)))
        contenders[f"ours/{stages}"] = lambda e=all_of_them, out=out: e.rollout(start, control, out=out)
    seconds = take_turns(contenders, 5)
    for stages in (1, 3):
        row(f"quadrotor/{stages}_stage{'s' if stages > 1 else ''}", seconds, f"ours/{stages}", "rk4",
            replicas * steps, 1.5, "at most", notes[stages])


def compare_pendula(mujoco, rollout, count, steps):
    rng = np.random.default_rng(3)
    J = PENDULUM["m"] * PENDULUM["l"] ** 2
    w = PENDULUM["m"] * GRAVITY * PENDULUM["l"]
    start = np.stack([rng.uniform(-2, 2, count), 0.3 * rng.normal(size=count)], axis=1)
    torque = rng.uniform(-0.5, 0.5, count)
    control = np.tile(torque[:, np.newaxis, np.newaxis], (1, steps, 1))
    first = np.concatenate([np.zeros((count, 1)), start[:, :1], start[:, 1:] / J], axis=1)
    few = min(count, 200)
    fine = pendulum_model(mujoco, STEP_S / 10)
    repeated = np.repeat(control[:few], 10, axis=1)
    reference = by_mujoco(rollout, fine, mujoco.MjData(fine), first[:few], repeated)[:, 9::10, 1]
    contenders, notes = {}, {}
    for kind in ("expressions", "pendulum"):
        ensemble = pendula(count, kind)
        out = np.empty((count, steps, 2))
        ensemble.rollout(start, control, out=out)
        # Of order 2.
        notes[kind] = f"error {differ(out[:few, :, 0], reference, 1e-5, kind):.1e} rad; {ensemble.execution}"
        contenders[kind] = lambda e=ensemble, out=out: e.rollout(start, control, out=out)
    model = pendulum_model(mujoco, STEP_S)
    data = mujoco.MjData(model)
    contenders["rk4"] = lambda: by_mujoco(rollout, model, data, first, control)
    loop = compiled_loop()
    if loop is None:
        print("there is no compiler: rows beside the loop by hand are left out", file=sys.stderr)
    else:
        own = start.copy()

        def by_hand():
            own[:] = start
            loop(count, steps, STEP_S, J, w, PENDULUM["c"], torque.ctypes.data, own.ctypes.data)
            return own

        ensemble = pendula(count, "pendulum")
        last = ensemble.rollout(start, control)[:, -1]
        differ(by_hand(), last, 1e-7, "the loop by hand")
        contenders["loop"] = by_hand
    seconds = take_turns(contenders, 5)
    for kind in ("expressions", "pendulum"):
        note = notes[kind].replace('"', "'")
        row(f"pendula/{kind}/over_rk4", seconds, kind, "rk4", count * steps, 1.0, "at most", note)
        if loop is not None:
            row(f"pendula/{kind}/over_loop", seconds, kind, "loop", count * steps, 2.0, "at most", "")


def main():
    try:
        import mujoco
        from mujoco import rollout
    except ImportError:
        sys.exit("MuJoCo is not installed: pip install mujoco")
    replicas = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    compare_quadrotors(mujoco, rollout, replicas, steps)
    compare_pendula(mujoco, rollout, 10_000, min(steps, 20))


if __name__ == "__main__":
    main()

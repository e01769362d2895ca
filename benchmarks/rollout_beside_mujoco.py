"""An arm of seven links in 256 replicas, by portwave's Ensemble and by mujoco.rollout.

    python benchmarks/rollout_beside_mujoco.py [replicas] [steps]

needs the Python package and MuJoCo (pip install mujoco). Answers are compared first, with small steps
of MuJoCo; then both take turns, on one and on two threads. One JSON object per row, as the other
benchmarks.

What differs: portwave steps the arm by an implicit discrete gradient (order 2, exact energy, guarded);
MuJoCo by its explicit fourth-order Runge-Kutta method or its semi-implicit Euler method, in float64,
without contacts here. Both know the arm in minimal coordinates.
"""

import json
import math
import statistics
import sys
import time

import numpy as np

import portwave as pw

LENGTHS = [0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1]
MASSES = [4.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5]
DAMPING = [1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1]
STEP_S = 1e-3


def ours(replicas, threads, stages=1):
    system = pw.System("arm", step_s=STEP_S, method={"kind": "auto", "stages": stages})
    system.add(
        "arm",
        "planar_arm",
        lengths_m=LENGTHS,
        masses_kg=MASSES,
        damping_Nms_per_rad=DAMPING,
        inputs={f"torque_{k + 1}": "settable" for k in range(7)},
    )
    for k in range(7):
        system.join("free", f"arm.joint_{k + 1}")
    return pw.Ensemble(system, replicas, threads=threads)


def ours_articulated(replicas, threads, stages=1):
    """The same arm as a tree of bodies in space, without ports."""
    system = pw.System("arm", step_s=STEP_S, method={"kind": "auto", "stages": stages})
    moments = [m * l**2 / 12.0 for l, m in zip(LENGTHS, MASSES)]
    system.add(
        "arm",
        "articulated",
        joints=["revolute"] * 7,
        axes=[[0, -1, 0]] * 7,
        places_m=[[0, 0, -(LENGTHS[k - 1] if k else 0.0)] for k in range(7)],
        masses_kg=MASSES,
        centres_m=[[0, 0, -l / 2] for l in LENGTHS],
        inertias_kgm2=[[i, 0, 0, i, 0, 1e-6] for i in moments],
        damping=DAMPING,
        joint_ports=False,
        inputs={f"joint_{k + 1}_torque": "settable" for k in range(7)},
    )
    return pw.Ensemble(system, replicas, threads=threads)


def mujoco_model(mujoco, step_s, integrator):
    body = ""
    for k, (length, mass, damping) in enumerate(zip(LENGTHS, MASSES, DAMPING)):
        above = LENGTHS[k - 1] if k else 0.0
        inertia = mass * length**2 / 12.0
        body += (
            f'<body pos="0 0 {-above}"><joint name="j{k}" type="hinge" axis="0 -1 0" '
            f'damping="{damping}"/><inertial pos="0 0 {-length / 2}" mass="{mass}" '
            f'diaginertia="{inertia} {inertia} 1e-6"/>'
        )
    body += "</body>" * 7
    motors = "".join(f'<motor joint="j{k}"/>' for k in range(7))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{step_s}" gravity="0 0 -9.81" integrator="{integrator}">'
        f'<flag contact="disable"/></option><worldbody>{body}</worldbody>'
        f"<actuator>{motors}</actuator></mujoco>"
    )


def angles_of(ensemble, x):
    names = ensemble.state_names
    own = [n for n in names if "angle" in n]
    return x[..., [names.index(n) for n in own]]


def main():
    try:
        import mujoco
        from mujoco import rollout
    except ImportError:
        sys.exit("MuJoCo is not installed: pip install mujoco")
    replicas = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    rng = np.random.default_rng(1)
    torques = rng.normal(size=(replicas, steps, 7)) * np.array([8, 6, 4, 3, 2, 1, 0.3])

    single = ours(replicas, 1)
    start = np.zeros((replicas, len(single.state_names)))

    def by_mujoco(model, datas, control):
        first = np.zeros((replicas, 1 + model.nq + model.nv))
        state, _ = rollout.rollout(model, datas, first, control)
        return state[:, :, 1 : 1 + model.nq]

    # Answers: MuJoCo with a tenth of the step beside ours with three stages, of order 6.
    fine = mujoco_model(mujoco, STEP_S / 10, "RK4")
    reference = by_mujoco(fine, mujoco.MjData(fine), np.repeat(torques, 10, axis=1))[:, 9::10]
    few = min(replicas, 8)
    exact = ours(few, 1, stages=3)
    own = angles_of(exact, exact.rollout(start[:few], torques[:few]))
    moved = np.abs(reference).max()
    apart = np.abs(own - reference[:few]).max()
    if not apart < 1e-8 * moved or np.abs(own - (1 + 1e-7) * reference[:few]).max() < 1e-8 * moved:
        sys.exit(f"the answers differ: {apart:.3g} rad of {moved:.3g}")
    error = np.abs(angles_of(single, single.rollout(start, torques)) - reference).max()

    model = mujoco_model(mujoco, STEP_S, "RK4")
    euler = mujoco_model(mujoco, STEP_S, "implicitfast")
    error_rk4 = np.abs(by_mujoco(model, mujoco.MjData(model), torques) - reference).max()
    error_euler = np.abs(by_mujoco(euler, mujoco.MjData(euler), torques) - reference).max()

    out = np.empty((replicas, steps, len(single.state_names)))
    contenders = {"ours/1": lambda: single.rollout(start, torques, out=out)}
    tree = ours_articulated(replicas, 1)
    error_tree = np.abs(angles_of(tree, tree.rollout(start, torques)) - reference).max()
    contenders["articulated/1"] = lambda: tree.rollout(start, torques, out=out)
    same_order = ours_articulated(replicas, 1, stages=2)
    error_same = np.abs(angles_of(same_order, same_order.rollout(start, torques)) - reference).max()
    contenders["articulated_2_stages/1"] = lambda: same_order.rollout(start, torques, out=out)
    exact_tree = ours_articulated(replicas, 1, stages=3)
    error_exact = np.abs(angles_of(exact_tree, exact_tree.rollout(start, torques)) - reference).max()
    if not error_exact < 1e-8 * moved:
        sys.exit(f"the answers differ: {error_exact:.3g} rad of {moved:.3g}")
    contenders["articulated_3_stages/1"] = lambda: exact_tree.rollout(start, torques, out=out)
    double = ours(replicas, 2)
    contenders["ours/2"] = lambda: double.rollout(start, torques, out=out)
    for name, m in (("rk4", model), ("implicitfast", euler)):
        for threads in (1, 2):
            datas = [mujoco.MjData(m) for _ in range(threads)]
            contenders[f"mujoco_{name}/{threads}"] = (
                lambda m=m, datas=datas: by_mujoco(m, datas, torques)
            )
    times = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(7):
        for name, call in contenders.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)

    def row(name, a, b, note, goal=None):
        ratios = [y / x for x, y in zip(times[a], times[b])]
        quarter = statistics.quantiles(ratios, n=4)
        ratio = statistics.median(ratios)
        print(
            json.dumps(
                {
                    "name": f"rollout_beside_mujoco/{name}",
                    "ours_us": 1e6 * statistics.median(times[a]) / (replicas * steps),
                    "reference_us": 1e6 * statistics.median(times[b]) / (replicas * steps),
                    "sense": "at least",
                    "ratio": ratio,
                    "spread": (quarter[2] - quarter[0]) / ratio,
                    "goal": goal,
                    "holds": None if goal is None else bool(ratio >= goal),
                    "note": note,
                    "processes": 1,
                }
            )
        )

    how = single.execution.replace('"', "'")
    row("rk4/1_thread", "ours/1", "mujoco_rk4/1", f"errors {error:.1e} and {error_rk4:.1e} rad; {how}")
    row("articulated/1_thread", "articulated/1", "mujoco_rk4/1", f"error {error_tree:.1e} rad")
    row("articulated/2_stages", "articulated_2_stages/1", "mujoco_rk4/1", f"error {error_same:.1e} rad", 1 / 1.5)
    row("articulated/3_stages", "articulated_3_stages/1", "mujoco_rk4/1", f"error {error_exact:.1e} rad", 1 / 1.5)
    row("rk4/2_threads", "ours/2", "mujoco_rk4/2", "")
    row("implicitfast/1_thread", "ours/1", "mujoco_implicitfast/1", f"error {error_euler:.1e} rad")
    row("implicitfast/2_threads", "ours/2", "mujoco_implicitfast/2", "")
    row("our_threads", "ours/2", "ours/1", "")


if __name__ == "__main__":
    main()

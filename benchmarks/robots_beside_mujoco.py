"""Robots beside MuJoCo: a free body, a quadruped from its URDF file, two arms in a closed loop, arms at a wall.

    python benchmarks/robots_beside_mujoco.py [program] [replicas] [steps]

needs the Python package, MuJoCo (pip install mujoco) and the program `portwave`, which imports the URDF file.
Answers are compared first, with small steps of MuJoCo; then all take turns on one thread. One JSON object per row, as
the other benchmarks. Inverse dynamics is compared with mj_inverse, and the energy of an arm that nothing damps is
followed in both.

What differs: portwave steps by implicit discrete gradients (order 2, 4 or 6 with one, two or three stages, exact
energy, guarded), MuJoCo by its explicit fourth-order Runge-Kutta method, in float64. Loops are exact here, and stiff
springs of the solver there. Contacts have different laws: rest is compared.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from expressions_beside_mujoco import differ, row, take_turns

import portwave as pw

NAME = "robots_beside_mujoco"
STEP_S = 1e-3
URDF = pathlib.Path(__file__).resolve().parents[1] / "examples" / "quadruped.urdf"


def method(stages):
    return {"kind": "auto", "stages": stages}


def loaded(mujoco, body, step_s, integrator="RK4", more=""):
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{step_s}" gravity="0 0 -9.81" integrator="{integrator}" tolerance="1e-14" '
        f'iterations="100"/><worldbody>{body}</worldbody>{more}</mujoco>'
    )


def rolled_out(mujoco, model, data, first, control):
    """The states, with the forces of `control` on the velocities."""
    from mujoco import rollout

    state, _ = rollout.rollout(
        model, [data], first, control, control_spec=mujoco.mjtState.mjSTATE_QFRC_APPLIED
    )
    return state


def compare(mujoco, name, model_at, first, control, own_of, places_of, share, replicas, goals=None, fine=10,
            rows=slice(None)):
    """Rows of one robot. model_at(step): of MuJoCo; own_of(replicas, stages): rollout of ours; places_of(states of
    MuJoCo): what own_of returns; share: how far one, two and three stages may be from the finest steps; rows: where
    they are compared."""
    few = min(4, replicas)
    fine_model, model = model_at(STEP_S / fine), model_at(STEP_S)
    data = mujoco.MjData(model)
    repeated = np.repeat(control[:few], fine, axis=1)
    reference = places_of(
        rolled_out(mujoco, fine_model, mujoco.MjData(fine_model), first[:few], repeated)[:, fine - 1 :: fine]
    )
    theirs = places_of(rolled_out(mujoco, model, data, first[:few], control[:few]))
    error_rk4 = np.abs(theirs - reference)[:, rows].max()
    contenders = {"rk4": lambda: rolled_out(mujoco, model, data, first, control)}
    notes = {}
    for stages, most in share.items():
        own, call = own_of(few, stages)
        error = differ(own[:, rows], reference[:, rows], most, f"{name}, {stages} stages")
        notes[stages] = f"errors {error:.1e} and {error_rk4:.1e}"
        contenders[stages] = own_of(replicas, stages)[1]
    seconds = take_turns(contenders, 5)
    steps = control.shape[1]
    for stages in share:
        goal = (goals or {}).get(stages)
        row(f"{name}/{stages}_stage{'s' if stages > 1 else ''}", seconds, stages, "rk4", replicas * steps, goal,
            "at most", notes[stages], suite=NAME)


def ensemble_of(system, replicas, places, start, control):
    ensemble = pw.Ensemble(system, replicas, threads=1)
    columns = [ensemble.state_names.index(own) for own in places]
    x0, u = np.tile(start(ensemble.state_names), (replicas, 1)), control[:replicas]
    out = np.empty((replicas, u.shape[1], len(ensemble.state_names)))

    def call():
        return ensemble.rollout(x0, u, out=out)

    return call()[..., columns].copy(), call


# ---- A free body ----

BODY_KG, INERTIA = 2.0, (0.03, 0.05, 0.07)


def free_body(mujoco, steps):
    spin, speed = np.array([4.0, 0.3, -2.0]), np.array([0.5, 0.0, 3.0])
    control = np.zeros((1, steps, 6))
    first = np.concatenate([[0, 0, 0, 0, 1, 0, 0, 0], speed, spin])[np.newaxis]

    def model_at(step_s):
        inertia = " ".join(str(own) for own in INERTIA)
        return loaded(mujoco, f'<body><freejoint/><inertial pos="0 0 0" mass="{BODY_KG}" diaginertia="{inertia}"/>'
                      "</body>", step_s)

    def own_of(replicas, stages):
        system = pw.System("body", step_s=STEP_S, method=method(stages))
        names = {f"inertia_{k + 1}_kgm2": own for k, own in enumerate(INERTIA)}
        inputs = {f"{kind}_{axis}": "settable" for kind in ("force", "torque") for axis in "xyz"}
        system.add("body", pw.rigid_body(mass_kg=BODY_KG, gravity_m_per_s2=9.81, **names), inputs=inputs)
        system.join("free", "body.force").join("free", "body.torque")
        start = np.concatenate([[0, 0, 0], BODY_KG * speed, [1, 0, 0, 0], spin * INERTIA])
        places = [f"body.{own}" for own in ("x", "y", "z", "q_w", "q_x", "q_y", "q_z")]
        return ensemble_of(system, replicas, places, lambda names: start, control)

    compare(mujoco, "free_body", model_at, first, control, own_of, lambda s: s[..., 1:8],
            {1: 1e-5, 2: 1e-9, 3: 1e-9}, 1)


# ---- A quadruped from its URDF file, in flight ----


def quadruped_scenario(program):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "robot.json"
        command = [program, "import", str(URDF), "--free-base", "--no-limits", "--out", str(out)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return json.loads(out.read_text())


def quadruped_model(mujoco, step_s):
    """Read from the URDF file by MuJoCo, on a floating joint."""
    text = URDF.read_text()
    begin = '<robot name="quadruped">'
    text = text.replace(begin, begin + '<mujoco><compiler fusestatic="false"/></mujoco><link name="world"/>'
                        '<joint name="root" type="floating"><parent link="world"/><child link="trunk"/></joint>')
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = step_s
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    return model


def joints_of(mujoco, model):
    return [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k) for k in range(1, model.njnt)]


def quadruped(mujoco, scenario, replicas, steps):
    joints = joints_of(mujoco, quadruped_model(mujoco, STEP_S))
    rng = np.random.default_rng(4)
    control = np.zeros((replicas, steps, 6 + len(joints)))
    control[:, :, 6:] = rng.normal(size=(replicas, steps, len(joints)))
    model = quadruped_model(mujoco, STEP_S)
    first = np.zeros((replicas, 1 + model.nq + model.nv))
    first[:, 4] = 1.0

    def own_of(count, stages):
        own = json.loads(json.dumps(scenario))
        own["method"] = method(stages)
        own["time"] = {"step_s": STEP_S, "steps": 1}
        robot = next(part for part in own["subsystems"] if part["name"] == "robot")
        robot["initial_state"] = {"trunk_q_w": 1.0}
        robot["inputs"] = {f"{joint}_torque": {"kind": "settable", "initial": 0.0} for joint in joints}
        own.pop("output", None)
        system = pw.System.from_dict(own)
        base = ["x", "y", "z", "q_w", "q_x", "q_y", "q_z"]
        places = [f"robot.trunk_{k}" for k in base] + [f"robot.{joint}_angle" for joint in joints]

        def start(names):
            return [1.0 if name == "robot.trunk_q_w" else 0.0 for name in names]

        # Ours come in the order of the part's inputs.
        order = [joints.index(name.split(".")[1].removesuffix("_torque"))
                 for name in pw.Ensemble(system, 1).input_names]
        return ensemble_of(system, count, places, start, control[:, :, 6:][:, :, order])

    what = "single" if replicas == 1 else f"{replicas}_replicas"
    compare(mujoco, f"quadruped/{what}", lambda h: quadruped_model(mujoco, h), first, control, own_of,
            lambda s: s[..., 1 : 1 + model.nq], {1: 1e-3, 2: 1e-7}, replicas, {1: 1.0})


def inverse_dynamics(mujoco, scenario):
    """The largest difference to mj_inverse, relative to the largest torque."""
    model = quadruped_model(mujoco, STEP_S)
    data = mujoco.MjData(model)
    own = pw.InverseDynamics(pw.System.from_dict(scenario), "robot")
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(100):
        q, v, a = (rng.normal(size=size) for size in (model.nq, model.nv, model.nv))
        q[3:7] /= np.linalg.norm(q[3:7])
        data.qpos, data.qvel, data.qacc = q, v, a
        mujoco.mj_inverse(model, data)
        theirs = data.qfrc_inverse
        worst = max(worst, np.abs(own.torques(q, v, a) - theirs).max() / np.abs(theirs).max())
    if not worst < 1e-9:
        sys.exit(f"inverse dynamics: {worst:.3g} from mj_inverse")
    print(json.dumps({"name": f"{NAME}/inverse_dynamics", "sense": "at most", "ratio": worst, "goal": 1e-9,
                      "holds": True, "note": "largest difference to mj_inverse, by the largest torque"}))


# ---- Two arms of three joints whose hands are joined ----

ARM_M, ARM_KG = 0.5, 1.0
ARM_INERTIA = (0.01, 0.02, 0.021)
ARMS = {"left": ((-0.6, 0, 0), ((0, 1, 0), (0, 1, 0), (0, 0, 1)), (-1.2, 0.9, 0.3)),
        "right": (None, ((0, 0, 1), (0, 1, 0), (0, 1, 0)), (2.5, -0.8, 0.7))}


def turned(axis, angle):
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=float)
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def hand_of(base, axes, angles):
    R, at = np.eye(3), np.array(base, dtype=float)
    for axis, angle in zip(axes, angles):
        R = R @ turned(axis, angle)
        at = at + R @ [ARM_M, 0, 0]
    return at


def loop(mujoco, replicas, steps):
    left = hand_of(*ARMS["left"])
    bases = {"left": np.array(ARMS["left"][0], dtype=float),
             "right": left - hand_of((0, 0, 0), *ARMS["right"][1:])}
    rng = np.random.default_rng(6)
    control = np.tile(2.0 * rng.normal(size=(replicas, 1, 6)), (1, steps, 1))
    angles = np.concatenate([ARMS["left"][2], ARMS["right"][2]])
    first = np.concatenate([[0.0], angles, np.zeros(6)])
    first = np.tile(first, (replicas, 1))

    def model_at(step_s):
        body = ""
        for side, (_, axes, _) in ARMS.items():
            for k, axis in enumerate(axes):
                at = bases[side] if k == 0 else (ARM_M, 0, 0)
                place, turn = (" ".join(repr(float(own)) for own in given) for given in (at, axis))
                inertia = " ".join(str(own) for own in ARM_INERTIA)
                body += (f'<body name="{side}{k}" pos="{place}"><joint type="hinge" axis="{turn}" damping="0.1"/>'
                         f'<inertial pos="{ARM_M / 2} 0 0" mass="{ARM_KG}" diaginertia="{inertia}"/>')
            body += f'<site name="{side}" pos="{ARM_M} 0 0"/>' + "</body>" * 3
        stiff = f'solref="{2 * step_s} 1" solimp="0.9999 0.9999 0.001"'
        return loaded(mujoco, body, step_s,
                      more=f'<equality><connect site1="left" site2="right" {stiff}/></equality>')

    def own_of(count, stages):
        system = pw.System("loop", step_s=STEP_S, method=method(stages))
        for side, (_, axes, start) in ARMS.items():
            own = pw.articulated(
                joints=["revolute"] * 3, axes=[list(axis) for axis in axes],
                places_m=[bases[side].tolist(), [ARM_M, 0, 0], [ARM_M, 0, 0]], masses_kg=[ARM_KG] * 3,
                centres_m=[[ARM_M / 2, 0, 0]] * 3,
                inertias_kgm2=[[ARM_INERTIA[0], 0, 0, ARM_INERTIA[1], 0, ARM_INERTIA[2]]] * 3,
                damping=[0.1] * 3, joint_ports=False, frames=["hand"], frame_joints=["joint_3"],
                frame_points_m=[[ARM_M, 0, 0]],
            )
            inputs = {f"joint_{k + 1}_torque": "settable" for k in range(3)}
            system.add(side, own, initial_state=list(start) + [0, 0, 0], inputs=inputs)
        system.join("common_flow", "left.hand", "right.hand")
        places = [f"{side}.joint_{k}_angle" for side in ARMS for k in (1, 2, 3)]

        def start(names):
            own = dict.fromkeys(names, 0.0) | dict(zip(places, angles))
            return [own[name] for name in names]

        return ensemble_of(system, count, places, start, control)

    # Its constraint is soft: answers come together as its steps shrink.
    compare(mujoco, f"closed_loop/{replicas}_replica{'s' if replicas > 1 else ''}", model_at, first, control, own_of,
            lambda s: s[..., 1:7], {1: 1e-2}, replicas, fine=50)


# ---- Arms that are pressed against a wall ----

LINKS_M, LINKS_KG, DAMPING = [0.4, 0.3, 0.2], [2.0, 1.5, 1.0], [4.0, 2.0, 1.0]
WALL_M = 0.4


def arms_at_wall(mujoco, replicas, steps):
    rng = np.random.default_rng(7)
    control = np.tile(np.array([14.0, 6.0, 2.0]) * (1 + 0.1 * rng.normal(size=(replicas, 1, 3))), (1, steps, 1))
    first = np.zeros((replicas, 7))

    def model_at(step_s):
        body = ""
        for k, (length, mass, damping) in enumerate(zip(LINKS_M, LINKS_KG, DAMPING)):
            above = LINKS_M[k - 1] if k else 0.0
            I = mass * length**2 / 12
            body += (f'<body pos="0 0 {-above}"><joint type="hinge" axis="0 -1 0" damping="{damping}"/>'
                     f'<inertial pos="0 0 {-length / 2}" mass="{mass}" diaginertia="{I} {I} 1e-6"/>')
        body += f'<geom type="sphere" size="0.01" mass="0" pos="0 0 {-LINKS_M[-1]}" condim="1"/>' + "</body>" * 3
        wall = f'<geom type="plane" size="5 5 1" pos="{WALL_M + 0.01} 0 0" zaxis="-1 0 0" condim="1"/>'
        return loaded(mujoco, wall + body, step_s)

    def own_of(count, stages):
        system = pw.System("arm", step_s=STEP_S, method=method(stages))
        own = pw.planar_arm(lengths_m=LINKS_M, masses_kg=LINKS_KG, damping_Nms_per_rad=DAMPING, tip_port=True)
        system.add("arm", own, inputs={f"torque_{k}": "settable" for k in (1, 2, 3)})
        for k in (1, 2, 3):
            system.join("free", f"arm.joint_{k}")
        wall = pw.contact(force_N=100, compression_m=1e-3, damping_s_per_m=1.0, gap_m=WALL_M, normal=[-1, 0])
        system.add("wall", wall)
        system.join("common_flow", "arm.tip", "wall.face")
        places = [f"arm.angle_{k}" for k in (1, 2, 3)]
        return ensemble_of(system, count, places, lambda names: np.zeros(len(names)), control)

    compare(mujoco, f"arm_at_wall/{replicas}_replicas", model_at, first, control, own_of, lambda s: s[..., 1:4],
            {1: 1e-2}, replicas, {1: 1.0}, rows=slice(-1, None))


# ---- The energy of an arm that nothing damps ----


def energy_of_arm(mujoco, steps):
    from rollout_beside_mujoco import LENGTHS, MASSES

    body = ""
    for k, (length, mass) in enumerate(zip(LENGTHS, MASSES)):
        I = mass * length**2 / 12
        body += (f'<body pos="0 0 {-(LENGTHS[k - 1] if k else 0.0)}"><joint type="hinge" axis="0 -1 0"/>'
                 f'<inertial pos="0 0 {-length / 2}" mass="{mass}" diaginertia="{I} {I} 1e-6"/>')
    model = loaded(mujoco, body + "</body>" * 7, STEP_S)
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(model)
    data.qpos[0] = 2.0
    mujoco.mj_forward(model, data)
    start, drift = data.energy.sum(), 0.0
    for _ in range(steps):
        mujoco.mj_step(model, data)
        drift = max(drift, abs(data.energy.sum() - start))
    system = pw.System("arm", step_s=STEP_S)
    system.add("arm", pw.planar_arm(lengths_m=LENGTHS, masses_kg=MASSES), initial_state=[2.0] + [0.0] * 13)
    for k in range(7):
        system.join("free", f"arm.joint_{k + 1}")
    stepper, own = pw.Stepper(system), 0.0
    before = stepper["arm.storage"]
    for _ in range(steps):
        stepper.step()
        own = max(own, abs(stepper["arm.storage"] - before))
    print(json.dumps({"name": f"{NAME}/energy_of_arm", "ours_J": own, "reference_J": drift, "sense": "at most",
                      "ratio": own / drift, "goal": 1.0, "holds": bool(own <= drift),
                      "note": f"largest change of {before:.3g} J over {steps} steps of a falling arm, one stage"}))


def main():
    try:
        import mujoco
    except ImportError:
        sys.exit("MuJoCo is not installed: pip install mujoco")
    program = sys.argv[1] if len(sys.argv) > 1 else "portwave"
    replicas = int(sys.argv[2]) if len(sys.argv) > 2 else 256
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    energy_of_arm(mujoco, 2000)
    scenario = quadruped_scenario(program)
    inverse_dynamics(mujoco, scenario)
    free_body(mujoco, 20 * steps)
    quadruped(mujoco, scenario, 1, 20 * steps)
    quadruped(mujoco, scenario, replicas, steps)
    loop(mujoco, 1, 10 * steps)
    arms_at_wall(mujoco, replicas, 10 * steps)


if __name__ == "__main__":
    main()

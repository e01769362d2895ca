#!/usr/bin/env python3
"""Prints the golden numbers of tests/runtime/cli/verbs/test_cli_import_mjcf.cpp from MuJoCo.

    pip install mujoco==4.0.0
    mjcf_golden.py

The model is that of the test, from its source. MuJoCo integrates it by its Runge-Kutta method of
fourth order without contacts, with two step sizes: the difference of the two is printed to standard
error and bounds what the numbers are good for.
"""

import pathlib
import re
import sys

import mujoco

TEST = pathlib.Path(__file__).parents[1] / "runtime/cli/verbs/test_cli_import_mjcf.cpp"
COORDINATES = {
    mujoco.mjtJoint.mjJNT_FREE: ("_x", "_y", "_z", "_q_w", "_q_x", "_q_y", "_q_z"),
    mujoco.mjtJoint.mjJNT_BALL: ("_q_w", "_q_x", "_q_y", "_q_z"),
    mujoco.mjtJoint.mjJNT_SLIDE: ("_position",),
    mujoco.mjtJoint.mjJNT_HINGE: ("_angle",),
}


def after_half_a_second(text, step_s):
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.timestep = step_s
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    for _ in range(round(0.5 / step_s)):
        mujoco.mj_step(model, data)
    out = {}
    for j in range(model.njnt):
        first = model.jnt_qposadr[j]
        for k, coordinate in enumerate(COORDINATES[mujoco.mjtJoint(model.jnt_type[j])]):
            out[model.joint(j).name + coordinate] = data.qpos[first + k]
    return out


def main():
    text = re.search(r'kTrial = R"\((.*?)\)";', TEST.read_text(), re.DOTALL).group(1)
    coarse, fine = after_half_a_second(text, 2e-5), after_half_a_second(text, 1e-5)
    for name, value in fine.items():
        print(f'{{"{name}", {value:.9g}}},')
    print("difference of the two step sizes", max(abs(fine[n] - coarse[n]) for n in fine), file=sys.stderr)


main()

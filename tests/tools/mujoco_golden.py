#!/usr/bin/env python3
"""Prints the golden numbers of tests/subsystems/catalogue/test_mechanisms_golden.cpp from MuJoCo.

    pip install mujoco==4.0.0
    mujoco_golden.py

Each mechanism starts as the test says and moves freely. MuJoCo integrates it by its Runge-Kutta
method of fourth order, with two step sizes: the difference of the two is printed to standard error
and bounds what the numbers are good for. Angles are those of hinges about -y, so that a link that
hangs along -z swings towards +x; of a free body MuJoCo keeps the angular velocity in body axes.
"""

import sys

import mujoco
import numpy


def model(bodies, step_s, gravity):
    return mujoco.MjModel.from_xml_string(f"""<mujoco>
      <compiler angle="radian" autolimits="true"/>
      <option timestep="{step_s!r}" integrator="RK4" gravity="0 0 {-gravity!r}">
        <flag contact="disable" constraint="disable"/></option>
      <worldbody>{bodies}</worldbody></mujoco>""")


def arm(links, damping=0.0, index=0):
    """links: (length, mass, centre, inertia) of each."""
    if index == len(links):
        return ""
    length, mass, centre, inertia = links[index]
    above = links[index - 1][0] if index else 0.0
    return f"""<body pos="0 0 {-above!r}"><joint type="hinge" axis="0 -1 0" damping="{damping!r}"/>
      <inertial pos="0 0 {-centre!r}" mass="{mass!r}" diaginertia="{inertia!r} {inertia!r} {inertia!r}"/>
      {arm(links, damping, index + 1)}</body>"""


def run(bodies, gravity, angles, speeds, time_s, steps):
    physics = model(bodies, time_s / steps, gravity)
    data = mujoco.MjData(physics)
    data.qpos[:] = angles
    data.qvel[:] = speeds
    for _ in range(steps):
        mujoco.mj_step(physics, data)
    return numpy.concatenate([data.qpos, data.qvel])


def run_with_energy(bodies, gravity, angles, speeds, times, step_s):
    """At each time: angles, speeds, and kinetic and potential energy less what it was at the start."""
    physics = model(bodies, step_s, gravity)
    physics.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(physics)
    data.qpos[:] = angles
    data.qvel[:] = speeds
    mujoco.mj_forward(physics, data)
    start, done, rows = data.energy.sum(), 0, []
    for time_s in times:
        for _ in range(round(time_s / step_s) - done):
            mujoco.mj_step(physics, data)
        done = round(time_s / step_s)
        mujoco.mj_forward(physics, data)
        rows.append([time_s, *data.qpos, *data.qvel, data.energy.sum() - start])
    return numpy.array(rows)


def show_motion(name, *arguments):
    fine, coarse = run_with_energy(*arguments, 5e-5), run_with_energy(*arguments, 1e-4)
    print(f"{name}: the step sizes differ by {abs(fine - coarse).max():.1e}", file=sys.stderr)
    print(name)
    for row in fine:
        print("    {" + ", ".join(f"{value:.15g}" for value in row) + "},")


def show(name, *arguments):
    fine, coarse = run(*arguments, 20000), run(*arguments, 10000)
    print(f"{name}: the step sizes differ by {abs(fine - coarse).max():.1e}", file=sys.stderr)
    print(f"{name}\n    " + ",\n    ".join(f"{value:.15g}" for value in fine))


def main():
    show("pendulum", arm([(1.0, 1.2, 0.8, 0.1)]), 9.81, [2.5], [0.0], 2.0)
    two = [(1.0, 2.0, 0.5, 0.2), (0.8, 1.5, 0.4, 0.1)]
    show("two links", arm(two), 9.81, [2.0, -1.0], [0.0, 0.0], 1.0)
    seven = [(0.5 - 0.03 * k, 2.0 - 0.2 * k, 0.2, 0.05) for k in range(7)]
    show("seven links", arm(seven), 9.81, [0.3 * (k + 1) / 7 + 0.5 for k in range(7)], [0.0] * 7, 1.0)
    times = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0]
    three = [(0.6, 2.0, 0.3, 0.06), (0.5, 1.5, 0.25, 0.03), (0.3, 0.8, 0.15, 0.006)]
    show_motion("three links with damping", arm(three, 0.3), 9.81, [1.5, 0.8, -0.4],
                [0.0, 0.0, 0.0], times)
    show_motion("pendulum from nearly upright", arm([(1.0, 1.2, 0.8, 0.1)]), 9.81, [3.1], [0.0],
                times)
    body = """<body><freejoint/>
      <inertial pos="0 0 0" mass="2.0" diaginertia="1.0 1.5 2.0"/></body>"""
    start = [1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0]
    show("rigid body", body, 9.81, start, [0.5, -0.25, 4.0, 0.01, 3.0, 0.02], 5.0)


if __name__ == "__main__":
    main()

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


def arm(links, index=0):
    """links: (length, mass, centre, inertia) of each."""
    if index == len(links):
        return ""
    length, mass, centre, inertia = links[index]
    above = links[index - 1][0] if index else 0.0
    return f"""<body pos="0 0 {-above!r}"><joint type="hinge" axis="0 -1 0"/>
      <inertial pos="0 0 {-centre!r}" mass="{mass!r}" diaginertia="{inertia!r} {inertia!r} {inertia!r}"/>
      {arm(links, index + 1)}</body>"""


def run(bodies, gravity, angles, speeds, time_s, steps):
    physics = model(bodies, time_s / steps, gravity)
    data = mujoco.MjData(physics)
    data.qpos[:] = angles
    data.qvel[:] = speeds
    for _ in range(steps):
        mujoco.mj_step(physics, data)
    return numpy.concatenate([data.qpos, data.qvel])


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
    body = """<body><freejoint/>
      <inertial pos="0 0 0" mass="2.0" diaginertia="1.0 1.5 2.0"/></body>"""
    start = [1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0]
    show("rigid body", body, 9.81, start, [0.5, -0.25, 4.0, 0.01, 3.0, 0.02], 5.0)


if __name__ == "__main__":
    main()

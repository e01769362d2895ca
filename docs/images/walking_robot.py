#!/usr/bin/env python3
"""Draws the robot of examples/walking_robot.json from a recorded run: the robot at equal times as it is seen from its
right, and the way of one foot. Called by docs/images/make.sh:

    docs/images/walking_robot.py examples/walking_robot.json RUN/trajectory.csv >docs/images/walking_robot.svg

Places of joints follow from the angles of the run and the numbers of the scenario; feet are states of the run.
"""

import csv
import json
import math
import sys

PIXELS_PER_M = 180
MARGIN = 16
EVERY_S = 1.5
FOOT = "front_right_shank_ground"
NEAR, FAR, TRUNK, GROUND, PATH = "#1f4e79", "#a9bdd1", "#c55a11", "#777777", "#2e8b57"


def turn(axis, angle):
    """A rotation by Rodrigues' formula."""
    norm = math.sqrt(sum(x * x for x in axis))
    x, y, z = (part / norm for part in axis)
    c, s = math.cos(angle), math.sin(angle)
    d = 1 - c
    return [[c + x * x * d, x * y * d - z * s, x * z * d + y * s],
            [y * x * d + z * s, c + y * y * d, y * z * d - x * s],
            [z * x * d - y * s, z * y * d + x * s, c + z * z * d]]


def product(A, B):
    return [[sum(A[i][k] * B[k][j] for k in range(3)) for j in range(3)] for i in range(3)]


def moved(R, p, at):
    return [at[i] + sum(R[i][k] * p[k] for k in range(3)) for i in range(3)]


def of_quaternion(w, x, y, z):
    n = math.sqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = w / n, x / n, y / n, z / n
    return [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]


def poses(robot, row):
    """Turn and place of every body, by its joint's name."""
    out, names = {}, robot["names"]
    for i, name in enumerate(names):
        value = lambda state: float(row[f"robot.{name}_{state}"])
        if robot["joints"][i] == "free":
            out[name] = of_quaternion(*(value(q) for q in ("q_w", "q_x", "q_y", "q_z"))), [value(c) for c in "xyz"]
            continue
        R, at = out[names[int(robot["parents"][i]) - 1]]
        roll, pitch, yaw = robot["turns_rad"][i]
        given = product(turn((0, 0, 1), yaw), product(turn((0, 1, 0), pitch), turn((1, 0, 0), roll)))
        place = moved(R, robot["places_m"][i], at)
        out[name] = product(product(R, given), turn(robot["axes"][i], value("angle"))), place
    return out


def main():
    scenario_file, run_file = sys.argv[1:]
    with open(scenario_file, encoding="utf-8") as file:
        scenario = json.load(file)
    with open(run_file, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    parts = {part["name"]: part["parameters"] for part in scenario["subsystems"]}
    robot = parts["robot"]
    end = float(rows[-1]["time_s"])
    right = max(float(row["robot.trunk_x"]) for row in rows) + 0.33
    left, top = -0.33, 0.46
    px = lambda x: MARGIN + (x - left) * PIXELS_PER_M
    pz = lambda z: 24 + (top - z) * PIXELS_PER_M
    width, height = px(right) + MARGIN, pz(0) + 44
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
           f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica,Arial,sans-serif" font-size="13">',
           f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>']

    def line(points, colour, thickness, more=""):
        text = " ".join(f"{px(x):.1f},{pz(z):.1f}" for x, z in points)
        out.append(f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="{thickness}" '
                   f'stroke-linejoin="round" stroke-linecap="round"{more}/>')

    radius = parts[FOOT]["radius_m"]
    line([(left, 0), (right, 0)], GROUND, 1.5)
    for metre in range(0, int(right) + 1):
        line([(metre, 0), (metre, -0.015)], GROUND, 1.5)
        out.append(f'<text x="{px(metre):.1f}" y="{pz(-0.085):.1f}" fill="{GROUND}" text-anchor="middle">{metre} m</text>')
    line([(float(row[f"{FOOT}.x"]), float(row[f"{FOOT}.z"]) - radius) for row in rows], PATH, 1.2)

    def draw(row):
        body = poses(robot, row)
        legs = [name for name in robot["names"] if name.endswith("_knee")]
        for knee in sorted(legs, key=lambda name: "right" in name):
            leg = knee[: -len("_knee")]
            colour = NEAR if "right" in leg else FAR
            frame = robot["frame_joints"].index(knee)
            R, at = body[knee]
            foot = moved(R, robot["frame_points_m"][frame], at)
            hip = body[f"{leg}_pitch"][1]
            line([(hip[0], hip[2]), (at[0], at[2]), (foot[0], foot[2])], colour, 4)
            out.append(f'<circle cx="{px(foot[0]):.1f}" cy="{pz(foot[2]):.1f}" r="{radius * PIXELS_PER_M:.1f}" '
                       f'fill="{colour}"/>')
            if "rear_left" in leg:
                R0, at0 = body["trunk"]
                corners = [moved(R0, (x, 0, z), at0) for x, z in
                           ((-0.24, -0.04), (0.24, -0.04), (0.24, 0.04), (-0.24, 0.04), (-0.24, -0.04))]
                text = " ".join(f"{px(c[0]):.1f},{pz(c[2]):.1f}" for c in corners)
                out.append(f'<polygon points="{text}" fill="{TRUNK}" fill-opacity="0.85" stroke="{TRUNK}" '
                           f'stroke-width="2" stroke-linejoin="round"/>')
        trunk = [float(row[f"robot.trunk_{c}"]) for c in "xz"]
        out.append(f'<text x="{px(trunk[0]):.1f}" y="{pz(trunk[1]) + 4:.1f}" fill="white" text-anchor="middle" '
                   f'font-size="12">{float(row["time_s"]):.1f} s</text>')

    times = [k * EVERY_S for k in range(int(end / EVERY_S + 1e-9) + 1)]
    for time in times:
        draw(min(rows, key=lambda row: abs(float(row["time_s"]) - time)))
    out.append("</svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()

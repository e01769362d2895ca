#!/usr/bin/env python3
"""Golden numbers of examples/robot_arm.json, by an integrator that shares nothing with portwave.

Reads the numbers of the scenario, not its structure: Lagrange's equations of seven links from the
positions of their mass centres, motors with current, elastic gears, the wall as a one-sided spring
with damping, and the controller as difference equations sampled every millisecond; DOP853 of SciPy
at 1e-9 between samples. Needs numpy and scipy. Prints time_s, the seven angles, the force at the tip.
"""
import json
import pathlib
import sys

import numpy as np
from scipy.integrate import solve_ivp

FILE = pathlib.Path(__file__).parents[2] / "examples" / "robot_arm.json"
SCENARIO = json.loads(FILE.read_text())
PART = {p["name"]: p["parameters"] for p in SCENARIO["subsystems"]}
LENGTHS = np.array(PART["arm"]["lengths_m"])
MASSES = np.array(PART["arm"]["masses_kg"])
N = len(LENGTHS)
INERTIAS = MASSES * LENGTHS**2 / 12
JOINT_DAMPING = np.array(PART["arm"]["damping_Nms_per_rad"])
DRIVES = [PART[f"drive_{k + 1}"] for k in range(N)]


def of_drives(key):
    return np.array([d[key] for d in DRIVES])


RATIO, STIFFNESS = of_drives("ratio"), of_drives("stiffness_Nm_per_rad")
CONSTANT, RESISTANCE = of_drives("motor_constant_Vs_per_rad"), of_drives("resistance_ohm")
ROTOR = of_drives("inertia_kgm2")
DAMPING, INDUCTANCE, GEAR_FRICTION = STIFFNESS / 1000, RESISTANCE / 1000, 1e-4
WALL = PART["wall"]["gap_m"]
WALL_STIFFNESS = PART["wall"]["force_N"] / PART["wall"]["compression_m"]
WALL_DAMPING = PART["wall"]["damping_s_per_m"]
G, STEP = 9.81, 0.001
BLOCKS = {b["name"]: b for b in SCENARIO["signals"]["blocks"]}
# Coefficients of link a in the speed of mass centre k: l_a before it, half of it, none after it.
REACH = np.array([[LENGTHS[a] if a < k else LENGTHS[k] / 2 if a == k else 0.0 for a in range(N)]
                  for k in range(N)])
SUMS = np.tril(np.ones((N, N)))  # absolute angles of relative ones
A = np.einsum("k,ka,kb->ab", MASSES, REACH, REACH) + np.diag(INERTIAS)
PULL = G * MASSES @ REACH


def rate(_, y, volts):
    q, v, turn, w, i = y.reshape(5, N)
    theta, omega = SUMS @ q, SUMS @ v
    difference = theta[:, None] - theta[None, :]
    M = A * np.cos(difference)
    twist = q - turn / RATIO
    shaft = STIFFNESS * twist + DAMPING * (v - w / RATIO)
    tip = np.array([LENGTHS * np.cos(theta), LENGTHS * np.sin(theta)])
    depth, speed = LENGTHS @ np.sin(theta) - WALL, tip[0] @ omega
    push = WALL_STIFFNESS * max(depth, 0.0) * (1 + WALL_DAMPING * speed)
    relative = -shaft - JOINT_DAMPING * v
    # absolute torques: a relative torque acts on its link, and back on the one before
    absolute = relative - np.append(relative[1:], 0.0)
    absolute = absolute - (A * np.sin(difference)) @ omega**2 - PULL * np.sin(theta) - push * tip[0]
    alpha = np.linalg.solve(M, absolute)
    dv = alpha - np.append(0.0, alpha[:-1])
    dw = (CONSTANT * i - GEAR_FRICTION * w + shaft / RATIO) / ROTOR
    di = (volts - RESISTANCE * i - CONSTANT * w) / INDUCTANCE
    return np.concatenate((v, dv, w, dw, di))


def path(waypoints, t):
    if t <= waypoints[0][0]:
        return waypoints[0][1], 0.0
    for (a, x), (b, y) in zip(waypoints, waypoints[1:]):
        if t < b:
            s = (t - a) / (b - a)
            return (x + (y - x) * s**3 * (10 - 15 * s + 6 * s * s),
                    (y - x) * 30 * s * s * (1 - s)**2 / (b - a))
    return waypoints[-1][1], 0.0


def main():
    end = float(sys.argv[1]) if len(sys.argv) > 1 else SCENARIO["time"]["end_s"]
    y = np.zeros(5 * N)
    pid = BLOCKS["pid_1"]
    P, I, D = pid["proportional"], pid["integral"], pid["derivative"]
    limit, smooth, tracking = pid["maximum"], pid["derivative_filter_s"], pid["tracking_s"]
    pull = np.array([float(BLOCKS[f"pull_{k + 1}"]["expression"].split("*")[0]) for k in range(N)])
    forward = np.round(RESISTANCE / CONSTANT / RATIO, 6)
    integral, slope, last = np.zeros(N), np.zeros(N), None
    for n in range(round(end / STEP)):
        t = n * STEP
        to = np.array([path(BLOCKS[f"path_{k + 1}"]["waypoints"], t) for k in range(N)])
        hold = np.cumsum((pull * np.sin(np.cumsum(to[:, 0])))[::-1])[::-1]
        error = RATIO * (to[:, 0] + hold / STIFFNESS) - y[2 * N:3 * N]
        slope = (smooth * slope + error - last) / (smooth + STEP) if n > 0 else slope
        last = error
        wanted = P * error + integral + D * slope
        out = np.clip(wanted, -limit, limit)
        gain = min(1.0, STEP / tracking) if tracking > 0 else 1.0
        integral = integral + I * STEP * error + gain * (out - wanted)
        volts = np.clip(out + forward * hold + CONSTANT * RATIO * to[:, 1], -48, 48)
        if n % 500 == 0 and n > 0:
            theta = SUMS @ y[:N]
            depth = LENGTHS @ np.sin(theta) - WALL
            angles = ", ".join(f"{a:.9f}" for a in y[:N])
            print(f"{{{t:.1f}, {angles}, {WALL_STIFFNESS * max(depth, 0.0):.3f}}},", flush=True)
        y = solve_ivp(rate, (t, t + STEP), y, "DOP853", args=(volts,), rtol=1e-9, atol=1e-11).y[:, -1]


main()

#!/usr/bin/env python3
"""Golden numbers of examples/crane.json, by an integrator that shares nothing with portwave.

Lagrange's equations of trolley and load, rail buffers as one-sided springs with damping, the
controller as difference equations sampled every 10 ms; DOP853 of SciPy at 1e-11 between samples.
Needs numpy and scipy. Prints time_s, position, angle, drive.
"""
import numpy as np
from scipy.integrate import solve_ivp

CART, LOAD, ROPE, G = 500.0, 1000.0, 6.0, 9.81
STEP, EVERY, END = 0.002, 5, 60.0
STIFFNESS = 20000.0 / 0.1
WAYPOINTS = [(1, 0), (9, 8), (22, 8), (26, 13.5), (32, 13.5), (46, 0)]


def path(t):
    if t <= WAYPOINTS[0][0]:
        return WAYPOINTS[0][1], 0.0
    for (a, x), (b, y) in zip(WAYPOINTS, WAYPOINTS[1:]):
        if t < b:
            s = (t - a) / (b - a)
            return (x + (y - x) * s**3 * (10 - 15 * s + 6 * s * s),
                    (y - x) * 30 * s * s * (1 - s) ** 2 / (b - a))
    return WAYPOINTS[-1][1], 0.0


def buffer_force(x, v):
    right, left = max(0.0, x - 12.0), max(0.0, -x - 0.5)
    # e = k s + k a s ds/dt, and nothing pulls but the damping of what is still compressed
    return -(STIFFNESS * right * (1 + 0.5 * v)) + STIFFNESS * left * (1 - 0.5 * v)


def rate(_, y, drive):
    x, q, v, w = y
    M = np.array([[CART + LOAD, LOAD * ROPE * np.cos(q)],
                  [LOAD * ROPE * np.cos(q), LOAD * ROPE**2]])
    f = [drive - 50.0 * v + buffer_force(x, v) + LOAD * ROPE * w * w * np.sin(q),
         -LOAD * G * ROPE * np.sin(q) - 200.0 * w]
    return np.concatenate(([v, w], np.linalg.solve(M, f)))


def touches(_, y, drive):
    return y[0] - 12.0


def touches_left(_, y, drive):
    return -y[0] - 0.5


touches.terminal = touches_left.terminal = True


def advance(y, t, end, drive):
    """Steps end where a buffer is touched or left."""
    while end - t > 1e-12:
        found = solve_ivp(rate, (t, end), y, "DOP853", args=(drive,), rtol=1e-11, atol=1e-12,
                          events=(touches, touches_left))
        t, y = found.t[-1], found.y[:, -1]
        if found.status == 1 and end - t > 1e-12:  # just beyond the crossing
            short = solve_ivp(rate, (t, t + 1e-10), y, "RK45", args=(drive,))
            t, y = short.t[-1], short.y[:, -1]
    return y


def main():
    y = np.zeros(4)
    slope, last, speed = 0.0, 0.0, 0.0
    for n in range(round(END / (STEP * EVERY))):
        t = n * STEP * EVERY
        to, to_rate = path(t)
        if n > 0:
            slope = (0.02 * slope + (y[1] - last)) / (0.02 + STEP * EVERY)
        last = y[1]
        force = 3200 * (to - y[0]) + 4800 * (to_rate - speed) + 17500 * y[1] - 4250 * slope
        drive = min(max(force, -6000.0), 6000.0)
        if n % 200 == 0 and n > 0:
            print(f"{{{t:.0f}, {y[0]:.9f}, {y[1]:.9f}, {drive:.6f}}},")
        before = advance(y, t, t + STEP * (EVERY - 1), drive)
        y = advance(before, t + STEP * (EVERY - 1), t + STEP * EVERY, drive)
        speed = (y[0] - before[0]) / STEP  # the port's flow is the mean over the last step


main()

#!/usr/bin/env python3
"""Golden numbers of bodies on the ground with friction, by an integrator that shares nothing with portwave: DOP853 of
SciPy, from touch to release and on, on Newton's equations of one body. Needs numpy and scipy. The cases are those of
tests/runtime/step/one_sided/test_ground_contact.cpp.
"""
import numpy as np
from scipy.integrate import solve_ivp

G = 9.81


def forces(r, u, law):
    """Of the ground on a body whose lowest point moves with u, at the place r of its centre."""
    k, a, mu, v0, radius = law
    s = radius - r[2]
    if s <= 0.0:
        return np.zeros(3)
    normal = k * s * max(0.0, 1.0 - a * u[2])
    slip = np.hypot(u[0], u[1])
    grip = mu * normal * (np.tanh(slip / v0) / slip if slip > 0.0 else 1.0 / v0)
    return np.array([-grip * u[0], -grip * u[1], normal])


def body(law, mass, inertia):
    """(r, v, w) of a sphere; without inertia a point, whose w stays 0."""
    radius = law[4]

    def rate(_, y):
        r, v, w = y[:3], y[3:6], y[6:]
        arm = np.array([0.0, 0.0, -radius]) if inertia else np.zeros(3)
        force = forces(r, v + np.cross(w, arm), law)
        turn = np.cross(arm, force) / inertia if inertia else np.zeros(3)
        return np.concatenate([v, force / mass - [0, 0, G], turn])

    return rate


def run(rate, radius, y, times):
    """y at `times`, the integration starting anew where the body touches or leaves the ground."""
    t, out = 0.0, []
    touches = lambda _, x: x[2] - radius
    touches.terminal = True
    times = list(times)
    while times:
        part = solve_ivp(rate, (t, times[-1]), y, method="Radau" if y[2] <= radius else "DOP853", rtol=1e-11,
                         atol=1e-13, events=touches, dense_output=True)
        while times and times[0] <= part.t[-1]:
            out.append(part.sol(times.pop(0)))
        if not times:
            break
        t, y = part.t[-1], part.y[:, -1].copy()
        y[2] = radius + np.copysign(1e-15, y[5])
    return out


def show(name, times, states):
    print(name)
    for t, y in zip(times, states):
        print(f"  {t:4}: " + ", ".join(f"{x:.10g}" for x in y))


if __name__ == "__main__":
    thrown = (2e4, 1.5, 0.3, 0.02, 0.0)
    times = [0.5, 0.8, 1.2, 1.6]
    show("a point of 2 kg, thrown", times,
         run(body(thrown, 2.0, 0.0), 0.0, np.array([0, 0, 0.5, 3, 1, 1, 0, 0, 0.0]), times))
    ball = (2e4, 0.5, 0.2, 0.02, 0.1)
    times = [0.2, 0.5, 1.5]
    # It starts at rest on the ground.
    start = np.array([0, 0, 0.1 - 2 * G / 2e4, 2, 0, 0, 0, 0, 3.0])
    show("a ball of 2 kg that slides, then rolls", times, run(body(ball, 2.0, 0.4 * 2 * 0.1 ** 2), 0.1, start, times))

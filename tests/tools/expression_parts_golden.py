#!/usr/bin/env python3
"""Golden values of tests/subsystems/catalogue/test_expression_part.cpp: free motions by SciPy, with the gradients
written by hand. Its own error, by another method and another tolerance, is printed beside each."""

import numpy as np
from scipy.integrate import solve_ivp


def pendulum(_, x, m=1.0, l=0.5, g=9.81, c=0.02):
    q, p = x
    speed = p / (m * l**2)
    return [speed, -m * g * l * np.sin(q) - c * speed]


def double_well(_, x):
    q, p = x
    return [p, -(q**2 - 1.0) * q - 0.1 * p]


def motor(_, x, resistance=0.8, friction=0.02, constant=0.3):
    flux, momentum = x
    current = flux / 0.05 + 400.0 * flux**3
    speed = momentum / 0.01
    return [-resistance * current - constant * speed, constant * current - friction * speed]


def body(_, x, inertia=(1.0, 1.5, 2.0)):
    return np.cross(x, x / np.array(inertia))


def toda(_, x):
    q, p = x
    return [p, 1.0 - np.exp(q)]


CASES = {
    "pendulum": (pendulum, [2.8, 0.0], 2.0),
    "double_well": (double_well, [1.5, 0.2], 3.0),
    "motor": (motor, [0.1, 0.02], 0.2),
    "body": (body, [0.01, 4.5, 0.04], 5.0),
    "toda": (toda, [2.0, -1.0], 4.0),
}

for name, (rate, start, end) in CASES.items():
    fine = solve_ivp(rate, (0.0, end), start, method="DOP853", rtol=1e-13, atol=1e-15).y[:, -1]
    other = solve_ivp(rate, (0.0, end), start, method="Radau", rtol=1e-12, atol=1e-14).y[:, -1]
    print(name, ", ".join(f"{value:.15g}" for value in fine), f"  (Radau: {np.abs(fine - other).max():.1e})")

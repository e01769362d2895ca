#!/usr/bin/env python3
"""Golden numbers of examples/power_line.json with 2 blocks of 10 cells in each phase, by an
integrator that shares nothing with portwave: Park's equations of the machine, the line cell by cell,
the breaker, the governor as difference equations sampled every 2 ms; Radau of SciPy at 1e-10 between
samples. Needs numpy and scipy. Prints time_s, the voltage of the load and that at the machine in
phase alpha [V], and the speed [rad/s].
"""
import sys

import numpy as np
from scipy.integrate import solve_ivp

CELLS, PERIOD = 20, 0.002
L, C, R = 0.27 / CELLS, 3.8e-6 / CELLS, 9.0 / CELLS
LOAD, ON, OFF = 300.0, 1.0, 1e-9
RESISTANCE, LD, LQ, FLUX, PAIRS, INERTIA = 2.0, 0.15, 0.12, 320.0, 2, 12000.0
SPEED = 100 * np.pi / PAIRS


def conductance(t):
    # the contacts stop at 1, and open from there
    s = min(max(210 * (t - 0.1), 0.0), 1.0) - min(max(210 * (t - 0.3), 0.0), 1.0)
    return OFF + (ON - OFF) * s * s * (3 - 2 * s)


def rate(t, y, torque):
    psi_d, psi_q, p, angle = y[:4]
    w = p / INERTIA
    i_d, i_q = (psi_d - FLUX) / LD, psi_q / LQ
    lines = y[4:].reshape(2, 2, CELLS)  # phase; voltages, currents
    c, s = np.cos(angle), np.sin(angle)
    v_alpha, v_beta = lines[:, 0, 0]
    e_d, e_q = c * v_alpha + s * v_beta, -s * v_alpha + c * v_beta
    into = -np.array([c * i_d - s * i_q, s * i_d + c * i_q])  # from the machine into the lines
    out = np.empty_like(y)
    out[0] = e_d - RESISTANCE * i_d + PAIRS * w * psi_q
    out[1] = e_q - RESISTANCE * i_q - PAIRS * w * psi_d
    out[2] = PAIRS * (psi_d * i_q - psi_q * i_d) + torque
    out[3] = PAIRS * w
    g = conductance(t)
    rates = out[4:].reshape(2, 2, CELLS)
    for phase in range(2):
        v, i = lines[phase]
        end = i[-1] * (LOAD + 1 / g)
        rates[phase, 0] = (np.append(into[phase], i[:-1]) - i) / C
        rates[phase, 1] = (v - np.append(v[1:], end) - R * i) / L
    return out


def main():
    end = float(sys.argv[1]) if len(sys.argv) > 1 else 0.02
    y = np.zeros(4 + 4 * CELLS)
    y[0], y[2] = FLUX, INERTIA * SPEED
    integral, valve = 0.0, 0.0
    for n in range(round(end / PERIOD)):
        t = n * PERIOD
        error = SPEED - y[2] / INERTIA
        wanted = 200000 * error + integral
        governor = min(max(wanted, 0.0), 400000.0)
        integral += 400000 * PERIOD * error + governor - wanted
        change = 2e6 * PERIOD
        valve = governor if n == 0 else min(max(governor, valve - change), valve + change)
        # the kinks of the breaker are ends of steps: 0.1, 0.1048, 0.105, ...
        kinks = [k for k in (0.1, 0.1 + 1 / 210, 0.105, 0.3, 0.3 + 1 / 210, 0.305)
                 if t < k < t + PERIOD]
        for a, b in zip([t] + kinks, kinks + [t + PERIOD]):
            y = solve_ivp(rate, (a, b), y, "Radau", args=(valve,), rtol=1e-10, atol=1e-9).y[:, -1]
        if (n + 1) % 5 == 0:
            load = y[4:].reshape(2, 2, CELLS)[0, 1, -1] * LOAD
            print(f"{{{t + PERIOD:.3f}, {load:.6f}, {y[4]:.6f}, {y[2] / INERTIA:.9f}}},", flush=True)


main()

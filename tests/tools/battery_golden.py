#!/usr/bin/env python3
"""Golden numbers of examples/battery.json by an integrator that shares nothing with portwave: the loop as two equations
of SciPy's DOP853 at 1e-12, with a supervisor that does not wait for a sample. Needs numpy and scipy. Prints when the
load is cut off, the charge then, and the voltage at later times; then the same with "on_above" 11.3 V.
"""
import numpy as np
from scipy.integrate import solve_ivp

CHARGE, EMF = [0, 300, 900, 1500, 1800], [12.6, 11.9, 11.4, 10.9, 9.6]
INNER, PAIR, TIME, LOAD, BREAKER = 0.15, 0.25, 100.0, 6.0, 0.01


def emf(charge):
    return np.interp(charge, CHARGE, EMF)


def main(off_below, on_above, end):
    y, t, is_on = np.zeros(2), 0.0, True
    while t < end:
        def current(x):
            return (emf(x[0]) - x[1]) / (INNER + LOAD + BREAKER) if is_on else 0.0

        def rate(_, x):
            return [current(x), (current(x) - x[1] / PAIR) / (TIME / PAIR)]

        def passes(_, x):
            return emf(x[0]) - INNER * current(x) - x[1] - (off_below if is_on else on_above)
        passes.terminal, passes.direction = True, -1 if is_on else 1
        run = solve_ivp(rate, (t, end), y, method="DOP853", rtol=1e-12, atol=1e-13, events=passes, max_step=1.0,
                        dense_output=True)
        start, t, y = t, run.t[-1], run.y[:, -1]
        for moment in (100, 300, 404, 500, 900):
            if start <= moment <= t:
                x = run.sol(moment)
                print(f"  {moment} s: charge {x[0]:.6f} C, voltage {emf(x[0]) - INNER * current(x) - x[1]:.6f} V")
        if run.status == 1:
            print(f"  {'off' if is_on else 'on'} at {t:.6f} s, charge {y[0]:.6f} C")
            is_on = not is_on


if __name__ == "__main__":
    for limit in (11.9, 11.3):
        print(f"on above {limit} V")
        main(10.8, limit, 900.0)

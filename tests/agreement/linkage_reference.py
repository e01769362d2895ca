"""A four-bar linkage in its one coordinate, the angle of the crank, solved by SciPy: what
tests/runtime/step/test_mechanism_cuts.cpp compares with. Shares no equation with portwave.

Angles are from x towards z. The crank is driven by a torque that jumps; all joints but that of coupler and rocker are
damped.
"""

import numpy as np
from scipy.integrate import solve_ivp

G, A, B, C, D = 9.81, 0.3, 0.9, 0.7, 1.0  # crank, coupler, rocker, distance of the pivots
M1, M2, M3 = 1.0, 2.0, 1.5
D1, D2, D3 = 0.5, 0.2, 0.3


def others(theta):
    """Angles of coupler and rocker, on the branch on which the coupler is above."""
    p = A * np.array([np.cos(theta), np.sin(theta)])
    d = np.array([D, 0]) - p
    L = np.hypot(*d)
    phi = np.arctan2(d[1], d[0]) + np.arccos((B * B + L * L - C * C) / (2 * B * L))
    r = p + B * np.array([np.cos(phi), np.sin(phi)]) - [D, 0]
    return phi, np.arctan2(r[1], r[0])


def rate(theta, w, torque):
    phi, psi = others(theta)
    s = np.sin([theta, phi, psi]) * [A, B, -C]
    c = np.cos([theta, phi, psi]) * [A, B, -C]
    # The loop a e(theta) + b e(phi) - c e(psi) = const: Jq' = 0.
    inverse = np.linalg.inv(np.array([[-s[1], -s[2]], [c[1], c[2]]]))
    slope = np.concatenate([[1.0], -inverse @ [-s[0], c[0]]])
    v = slope * w
    bend = np.concatenate([[0.0], inverse @ [c @ v**2, s @ v**2]])
    I = lambda m, l: m * l * l / 3
    k = M2 * A * B / 2
    M = np.array([[I(M1, A) + M2 * A * A, k * np.cos(theta - phi), 0],
                  [k * np.cos(theta - phi), I(M2, B), 0], [0, 0, I(M3, C)]])
    coriolis = np.array([k * np.sin(theta - phi) * v[1] ** 2, -k * np.sin(theta - phi) * v[0] ** 2, 0])
    weight = G * np.array([(M1 / 2 + M2) * A * np.cos(theta), M2 * B / 2 * np.cos(phi), M3 * C / 2 * np.cos(psi)])
    loss = np.array([D1 * v[0] - D2 * (v[1] - v[0]), D2 * (v[1] - v[0]), D3 * v[2]])
    force = np.array([torque, 0, 0]) - coriolis - weight - loss
    return [w, slope @ (force - M @ bend) / (slope @ M @ slope)]


state = [1.0, 0.0]
# A torque about y turns from z towards x.
for begin, end, torque in [(0, 1, -3.0), (1, 2, 2.0), (2, 3, 0.0)]:
    state = solve_ivp(lambda t, y: rate(*y, torque), (begin, end), state, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    phi, psi = others(state[0])
    print(f"t = {end}: crank {-state[0]:.13g}, coupler {state[0] - phi:.13g}, rocker {-psi:.13g}, rate {-state[1]:.13g}")
print(f"start: coupler {1.0 - others(1.0)[0]:.16g}, rocker {-others(1.0)[1]:.16g}")

#!/usr/bin/env python3
"""Golden numbers of play and of friction that falls with speed, by integrators that share nothing with portwave:
DOP853 of SciPy from flank to flank for springs with play, whose laws are smooth between events, and Radau for
friction. Needs numpy and scipy. The cases are those of tests/runtime/step/one_sided/test_play.cpp and
test_static_friction.cpp.
"""
import numpy as np
from scipy.integrate import solve_ivp


def segment(rate, levels, y, end, wanted, touched):
    """y at the times `wanted`. `levels`: the twist d(y) and the gap; `touched`: the flank that is touched at first, or 0.
    `rate(t, y, region)` is smooth while the same flank is touched."""
    distance, gap = levels
    t, out, region = 0.0, {}, touched
    while t < end - 1e-14:
        signs = (1, -1) if region == 0 else (region,)
        events = []
        for sign in signs:
            def event(_, x, sign=sign):
                return sign * distance(x) - gap
            event.terminal = True
            event.direction = 1 if region == 0 else -1
            events.append(event)
        now = region
        run = solve_ivp(lambda s, x: rate(s, x, now), (t, end), y, method="DOP853", rtol=1e-12, atol=1e-14,
                        events=events, dense_output=True)
        for moment in wanted:
            if t <= moment <= run.t[-1]:
                out[moment] = run.sol(moment)
        y, t = run.y[:, -1], run.t[-1]
        if run.status == 1:
            hit = next(sign for sign, times in zip(signs, run.t_events) if len(times))
            print(f"  {'touches' if region == 0 else 'leaves'} {hit:+d} at {t:.12f} after the segment's start")
            region = hit if region == 0 else 0
    return out, y


def contact_power(d, rate_of_d, gap, k, a, region):
    """The force along d of a spring with play that is touched on the side `region`."""
    if region == 0:
        return 0.0
    s = region * d - gap
    return region * k * s * max(0.0, 1 + a * region * rate_of_d)


def gear():
    """The torque on the input turns round after 0.2 s; input and output start at rest in the middle of the play."""
    print("gear_with_backlash: time, input angle and speed, output angle and speed, work of the torque")
    J1, J2, n, k, a, b = 0.01, 0.2, 5.0, 1e4, 0.05, 0.02

    def rate_for(torque):
        def rate(t, y, region):
            d, d_rate = y[0] / n - y[2], y[1] / n - y[3]
            T = contact_power(d, d_rate, b / 2, k, a, region)
            return [y[1], (torque - T / n) / J1, y[3], T / J2, torque * y[1]]
        return rate

    state, start = np.zeros(5), 0.0
    for torque, span, wanted in ((1.0, 0.2, (0.03, 0.1, 0.2)), (-1.0, 0.3, (0.03, 0.1, 0.3))):
        # the region at the start of a segment: which flank is touched
        d = state[0] / n - state[2]
        touched = 0 if abs(d) < b / 2 else int(np.sign(d))
        found, state = segment(rate_for(torque), (lambda y: y[0] / n - y[2], b / 2), state, span, wanted, touched)
        for moment, y in sorted(found.items()):
            print(f"  {start + moment:.3f} " + " ".join(f"{v:.12g}" for v in y))
        start += span


def stops():
    """A pendulum-like flywheel on a weak spring between two end stops of Hertz's law."""
    print("rotational_contact, both sides: time, angle, speed")
    J, k_weak, k, gap = 0.5, 2.0, 800.0 / 0.01 ** 1.5, 0.3

    def rate(t, y, region):
        s = max(0.0, region * y[0] - gap)
        return [y[1], (-k_weak * y[0] - region * k * s ** 1.5) / J]

    found, _ = segment(rate, (lambda y: y[0], gap), np.array([0.0, 3.0]), 2.0, (0.5, 1.0, 2.0), 0)
    for moment, y in sorted(found.items()):
        print(f"  {moment:.3f} " + " ".join(f"{v:.12g}" for v in y))


def stick_slip(at_rest):
    """A mass on the ground with friction, which a spring pulls whose other end moves slowly."""
    m, k, pull, sliding, falls_at, creep, c = 1.0, 100.0, 0.005, 2.0, 0.02, 2e-4, 0.0

    def friction(v):
        level = sliding + (at_rest - sliding) * np.exp(-(v / falls_at) ** 2)
        return level * np.tanh(v / creep) + c * v

    def rate(t, y):
        return [pull - y[1], (k * y[0] - friction(y[1])) / m]

    def breaks(t, y):
        return y[1] - 2 * pull
    breaks.direction = 1
    run = solve_ivp(rate, (0, 30), [0.0, 0.0], method="Radau", rtol=1e-9, atol=1e-12, events=breaks, max_step=0.01)
    times = run.t_events[0]
    load = k * run.y[0]
    late = run.t > 12
    print(f"stick-slip, static friction {at_rest}: breaks away at", " ".join(f"{t:.6f}" for t in times[:5]))
    print(f"  periods {np.diff(times)}, spring from {load[late].min():.6f} to {load[late].max():.6f} N, "
          f"largest speed {run.y[1].max():.6f}")
    sticks = 2 * (at_rest - sliding) / (k * pull)
    omega = np.sqrt(k / m)
    slips = 2 / omega * (np.pi - np.arctan((at_rest - sliding) * omega / (k * pull))) if at_rest > sliding else 0
    print(f"  with a friction that falls at once: period {sticks + slips:.6f}")


if __name__ == "__main__":
    gear()
    stops()
    for static in (3.0, 2.0):
        stick_slip(static)

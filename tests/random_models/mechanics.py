"""Random drives, masses on springs by expressions, and bodies that exchange heat."""
import math
import re

import numpy as np

from models import Model, Signal, logarithmic, units


def drive(rng):
    """A motor on a voltage that jumps, a gear, a load with dry friction, and sometimes a shaft to a second body. Speeds
    may be at odds at the start, and angles far from 0."""
    m, volt, Nm = Model(units(rng)), units(rng), units(rng)
    ampere, kgm2, per_s = Nm / m.second / volt, Nm * m.second ** 2, 1 / m.second
    R, L_R, tau = logarithmic(rng, 1e-2, 1e2), logarithmic(rng, 1e-5, 1.0), logarithmic(rng, 0.03, 3.0)
    k, b, n = math.sqrt(R / tau), rng.choice([0.0, logarithmic(rng, 1e-3, 1)]), rng.choice([1.0, -3.0, 50.0, 0.2])
    size, J2, far = logarithmic(rng, 0.1, 10) * k, n * n * logarithmic(rng, 0.1, 10), rng.choice([0.0, 0.0, 1e3, 1e6])
    V, speed = Signal(rng, size), size / k / abs(n)  # of the load
    m.breaks |= set(V.times)
    F, creep = rng.choice([0.0, logarithmic(rng, 1e-2, 1.0)]) * k * size / R * abs(n), speed * logarithmic(rng, 1e-5, 1e-1)
    Fs, vs = (F * rng.uniform(1.1, 2.0), speed * logarithmic(rng, 1e-2, 1)) if rng.random() < 0.3 else (0.0, 0.0)
    w2, has_shaft = rng.uniform(-1, 1) * speed * rng.choice([0, 1]), rng.random() < 0.5
    w1 = rng.choice([n * w2, n * w2, rng.uniform(-1, 1) * speed * abs(n)])
    impulse = (w1 - n * w2) / (1 + n * n / J2)  # of the gear
    i, a1 = m.state("motor.current", "A", ampere, 0.0), m.state("motor.angle", "rad1", 1.0, far)
    at1, a2 = m.state("motor.speed", "rad/s", per_s, w1 - impulse), m.state("load.angle", "rad2", 1.0, far)
    at2 = m.state("load.speed", "rad/s2", per_s, w2 + n * impulse / J2)
    m.part("source", "effort_source", {"domain": "electrical"}, inputs={"effort": V.input(volt, m.second)})
    m.part("motor", "dc_motor", {"inductance_H": L_R * R * volt / ampere * m.second, "resistance_ohm": R * volt / ampere,
                                 "motor_constant_Vs_per_rad": k * volt * m.second, "inertia_kgm2": kgm2,
                                 "damping_Nms_per_rad": b * Nm * m.second},
           initial_state={"angle": far, "speed": w1 * per_s})
    m.part("gear", "gear", {"ratio": n})
    m.part("load", "inertia", {"inertia_kgm2": J2 * kgm2, "ports": 4},
           initial_state={"angle": far, "speed": w2 * per_s})
    m.part("bearing", "rotational_coulomb_damper", {
        "friction_Nm": F * Nm, "creep_speed_rad_per_s": creep * per_s,
        **({"static_friction_Nm": Fs * Nm, "stribeck_speed_rad_per_s": vs * per_s} if Fs > 0 else {})})
    for kind, *ports in (("connection", "source.port", "motor.terminals"), ("connection", "motor.shaft", "gear.input"),
                         ("common_flow", "gear.output", "load.shaft_1"), ("free", "load.shaft_4"),
                         ("connection", "bearing.shaft", "load.shaft_2")):
        m.join(kind, *ports)
    J3, omega = J2 * logarithmic(rng, 0.01, 1), logarithmic(rng, 1, 1e4)
    K, D = J3 * omega ** 2, J3 * omega * rng.choice([0.0, logarithmic(rng, 1e-2, 10)])
    if has_shaft:
        d, at3 = m.state("shaft.twist", "rad3", 1.0, 0.0), m.state("tool.speed", "rad/s3", per_s, w2)
        m.part("shaft", "torsional_spring_damper", {"stiffness_Nm_per_rad": K * Nm, "damping_Nms_per_rad": D * Nm / per_s})
        m.part("tool", "inertia", {"inertia_kgm2": J3 * kgm2}, initial_state={"speed": w2 * per_s})
        m.join("connection", "shaft.right", "tool.shaft")
    m.join("connection", "shaft.left", "load.shaft_3") if has_shaft else m.join("free", "load.shaft_3")

    def rhs(t, y):
        out = np.zeros(len(y))
        out[i] = (V(t) / R - y[i] - k * y[at1] / R) / L_R
        level = F + (Fs - F) * math.exp(-(y[at2] / vs) ** 2) if Fs > 0 else F
        torque = n * (k * y[i] - b * y[at1]) - level * math.tanh(y[at2] / creep)
        if has_shaft:
            out[d] = y[at3] - y[at2]
            pull = K * y[d] + D * out[d]
            torque, out[at3] = torque + pull, -pull / J3
        out[at2] = torque / (n * n + J2)
        out[at1], out[a1], out[a2] = n * out[at2], y[at1], y[at2]
        return out
    m.rhs = rhs
    return m


COORDINATE = r"\bq\b"
POTENTIALS = [  # of a coordinate q beside a length of 1: the text, and its derivative
    ("q^2/2", lambda q, a: q), ("q^4/4 + q^2/20", lambda q, a: q ** 3 + q / 10),
    ("abs(q)^1.5/1.5", lambda q, a: math.copysign(math.sqrt(abs(q)), q)),
    ("q^2/20 + 1000*max(0, q - {a})^2/2", lambda q, a: q / 10 + 1e3 * max(0.0, q - a)),
    ("q^2/2 + if(q > {a}, 1000*(q - {a})^3, 0)", lambda q, a: q + (3e3 * (q - a) ** 2 if q > a else 0.0)),
    ("q^2/20 + max(q, -{a}*q)", lambda q, a: q / 10 + (1.0 if q > 0 else -a)),
    ("sqrt(1 + q^2)", lambda q, a: q / math.sqrt(1 + q * q)), ("1 - cos(q)", lambda q, a: math.sin(q)),
    ("exp(q) - q", lambda q, a: math.exp(min(q, 700)) - 1.0)]


def masses(rng):
    """Masses on springs by expressions, with kinks, powers and walls, joined by springs and dampers."""
    m, joule, metre = Model(units(rng)), units(rng), units(rng)
    newton, count, far = joule / metre, rng.randint(1, 3), rng.choice([0.0, 0.0, 1e4])
    kg, bodies, ties = joule / (metre / m.second) ** 2, [], []
    for k in range(count):
        (text, force), a = rng.choice(POTENTIALS), rng.uniform(0.2, 1.0)
        mass, u = logarithmic(rng, 3e-3, 0.3) ** 2, Signal(rng, rng.choice([0.0, logarithmic(rng, 0.1, 10)]))
        c, links = rng.choice([0.0, logarithmic(rng, 1e-2, 1e2) * math.sqrt(mass)]), (k > 0) + (k < count - 1)
        m.breaks |= set(u.times)
        q = m.state(f"m{k}.x", "m", metre, far + rng.uniform(-1.5, 1.5))
        p = m.state(f"m{k}.p", "kg m/s", kg * metre / m.second, rng.choice([0, 1]) * rng.uniform(-1, 1) * math.sqrt(mass))
        m.part(f"m{k}", "port_hamiltonian", {
            "states": {"x": "m", "p": "kg m/s"}, "J": [[0, 1], [-1, 0]], "R": [[0, 0], [0, "c"]],
            "constants": {"m": mass * kg, "h": joule, "l": metre, "o": far * metre, "c": c * newton / metre * m.second},
            "energy": f"h*({re.sub(COORDINATE, '((x - o)/l)', text)}) + p^2/(2*m)"
            .replace("{a}", repr(a)), "G": [[0] * (links + 1), [-1] * links + [1]],
            "ports": [{"name": f"side_{i}", "causality": "effort_in", "domain": "translation"} for i in range(links)],
            "inputs": [{"name": "force", "unit": "N"}], "default_state": [m.start[q] * metre, 0]},
            initial_state=[m.start[q] * metre, m.start[p] * m.unit[p]], inputs={"force": u.input(newton, m.second)})
        bodies.append((q, p, mass, c, force, a, u))
    for k in range(count - 1):
        stiff, damp = logarithmic(rng, 1e-2, 1e4), rng.choice([0.0, logarithmic(rng, 1e-3, 1e2)])
        d = m.state(f"tie{k}.elongation", "d", metre, rng.uniform(-0.5, 0.5) * rng.choice([0, 1]) / stiff)
        m.part(f"tie{k}", "spring_damper", {"stiffness_N_per_m": stiff * newton / metre, "damping_Ns_per_m":
                                            damp * newton / metre * m.second}, initial_state=[m.start[d] * metre])
        m.join("connection", f"m{k}.side_{int(k > 0)}", f"tie{k}.left")
        m.join("connection", f"tie{k}.right", f"m{k + 1}.side_0")
        ties.append((d, stiff, damp))

    def rhs(t, y):
        out = np.zeros(len(y))
        for q, p, mass, c, force, a, u in bodies:
            out[q] = y[p] / mass
            out[p] = u(t) - force(y[q] - far, a) - c * out[q]
        for (d, stiff, damp), left, right in zip(ties, bodies, bodies[1:]):
            out[d] = out[right[0]] - out[left[0]]
            out[left[1]] += stiff * y[d] + damp * out[d]
            out[right[1]] -= stiff * y[d] + damp * out[d]
        return out
    m.rhs = rhs
    return m


def heat(rng):
    """Bodies of heat capacity c in a row, with T = exp(S/c); a heater puts entropy into the first one."""
    m, joule, count, u = Model(units(rng)), units(rng), rng.randint(2, 4), Signal(rng, rng.uniform(0, 2))
    m.breaks |= set(u.times)
    u.levels, u.sine = [abs(own) for own in u.levels], (0.0, 0.0, 0.0)
    c, g = [[logarithmic(rng, low, high) for _ in range(count)] for low, high in ((0.1, 10), (1e-2, 1e5))]
    J, T = [[0] * count for _ in c], [f"exp(S{k}/{own * joule!r})" for k, own in enumerate(c)]
    for k in range(count):
        m.state(f"rod.S{k}", "J/K", joule, rng.uniform(-0.5, 0.5) * c[k])
    for k in range(count - 1):
        J[k][k + 1] = f"{g[k] * joule / m.second!r}*({T[k + 1]} - {T[k]})/({T[k]}*{T[k + 1]})"
        J[k + 1][k] = f"-({J[k][k + 1]})"
    m.part("rod", "port_hamiltonian", {
        "states": {f"S{k}": "J/K" for k in range(count)}, "ports": [], "inputs": [{"name": "entropy", "unit": "W/K"}],
        "energy": " + ".join(f"{own * joule!r}*{t}" for own, t in zip(c, T)), "J": J, "G": [[1]] + [[0]] * (count - 1)},
        initial_state=[s * joule for s in m.start], inputs={"entropy": u.input(joule / m.second, m.second)})

    def rhs(t, y):
        T, out = np.exp(np.minimum(y / c, 300.0)), np.zeros(count)
        out[0] = u(t)
        flow = g[:-1] * np.diff(T)
        out[:-1] += flow / T[:-1]
        out[1:] -= flow / T[1:]
        return out
    m.rhs = rhs
    return m

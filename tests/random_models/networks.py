"""Random networks of one-ports, by nodal analysis: circuits, and tanks with valves."""
import math

import numpy as np

from models import Model, Signal, logarithmic, steps, units


def shockley(u, size, volt):
    """Shockley's law and its slope; beyond 40 volts of temperature its tangent, as in the catalogue."""
    x = min(u / volt, 40.0)
    e = math.exp(x)
    return size * (e - 1.0 + e * (u / volt - x)) + 1e-12 * u, size * e / volt + 1e-12


def valve(u, c, flat):
    w = u * u + flat * flat
    return c * u / w ** 0.25, c * (w - 0.5 * u * u) / w ** 1.25


def network(rng, is_hydraulic=False):
    """Nodes joined by branches of resistors, coils, capacitors, switches and diodes, with sources in series; or of
    tanks, valves and check valves."""
    m, volt, ampere = Model(units(rng)), units(rng), units(rng)
    ohm, nodes = volt / ampere, rng.randint(1, 4)
    height, fastest = rng.choice([1.0, 1.0, 10.0, 300.0, 1.5e5]), rng.choice([1e-6, 1e-2])
    tree, laws, sources, meshes = list(range(nodes + 1)), [], [], []

    def root(n):
        return n if tree[n] == n else root(tree[n])

    ends = [(n, rng.randint(0, n - 1)) for n in range(1, nodes + 1)]
    ends += [tuple(rng.sample(range(nodes + 1), 2)) for _ in range(rng.randint(1, 4))]
    A = np.array([[(n == a) - (n == b) for a, b in ends] for n in range(1, nodes + 1)], float)
    for k, (a, b) in enumerate(ends):
        kind = rng.choice(["valve", "valve", "check"] if is_hydraulic else ["R", "R", "L", "D", "S", "IS", "ID", "X"])
        if rng.random() < (0.9 if is_hydraulic else 0.4) and root(a) != root(b):
            kind = "C"
            tree[root(a)] = root(b)
        has_source = (k == 0 or rng.random() < 0.3) and not (is_hydraulic and kind == "C")
        s = Signal(rng, height) if has_source else None
        R, tau, start = logarithmic(rng, 1e-2, 1e2), logarithmic(rng, fastest, 10.0), rng.uniform(-1, 1) * height
        start, name = start * rng.choice([0, 1]), f"b{k}"
        own = [name + (".line" if is_hydraulic else ".terminals")]
        if kind == "C" and is_hydraulic:
            at, metre = m.state(name + ".level", "m", volt / 9806.65, start), volt / 9806.65
            m.part(name, "tank", {"area_m2": tau / R * ampere / metre * m.second}, initial_state=[start * metre])
            own, law = [name + ".outlet"], ("C", at, tau / R)
        elif kind == "C":
            at = m.state(name + ".voltage", "V", volt, start)
            m.part(name, "capacitor", {"capacitance_F": tau / R * m.second / ohm}, initial_state=[start * volt])
            law = ("C", at, tau / R)
        elif kind == "L":
            at = m.state(name + ".current", "A", ampere, start / R)
            m.part(name, "inductor", {"inductance_H": tau * R * ohm * m.second, "resistance_ohm": R * ohm},
                   initial_state=[start / R * ampere])
            law = ("L", at, tau * R, R)
        elif is_hydraulic:
            flat, is_one = logarithmic(rng, 1e-4, 1e-1) * height, kind == "check"
            m.part(name, "valve", {"nominal_flow_m3_per_s": height / R * ampere, "nominal_pressure_Pa": height * volt,
                                   "laminar_pressure_Pa": flat * volt})
            if is_one:
                m.part(name + "o", "check_valve")
                own.append(name + "o.line")
            law = ("G", lambda u, t, c=math.sqrt(height) / R, p=flat, one=is_one:
                   (0.0, 0.0) if one and u < 0 else valve(u, c, p))
        elif kind == "D":
            size, thermal = logarithmic(rng, 1e-12, 1e-6), rng.uniform(0.02, 0.06)
            m.part(name, "diode", {"saturation_current_A": size * ampere, "thermal_voltage_V": thermal * volt,
                                   "leakage_S": 1e-12 / ohm})
            law = ("G", lambda u, t, i=size, v=thermal: shockley(u, i, v))
        elif kind == "X":
            two, knee, V = logarithmic(rng, 0.1, 100) / R, rng.uniform(0, 0.5) * height, height * volt
            text, phi = rng.choice([
                (f"{two / ohm!r}*max(0, u - {knee * volt!r})", lambda u, g=two, k=knee: (g * max(0, u - k), g * (u > k))),
                (f"{two * V / ohm!r}*tanh(u/{V!r})",
                 lambda u, g=two: (g * height * math.tanh(u / height), g / math.cosh(min(abs(u / height), 300)) ** 2)),
                (f"{two * V / ohm!r}*(u/{V!r})^3",
                 lambda u, g=two: (g * height * (u / height) ** 3, 3 * g * (u / height) ** 2))])
            m.part(name, "port_hamiltonian", {
                "states": [], "ports": [{"name": "terminals", "causality": "effort_in", "domain": "electrical"}],
                "S": [[1 / R / ohm]], "characteristics": [text], "characteristic_range": 1e3 * V})
            law = ("G", lambda u, t, f=phi, g=1 / R: (f(u)[0] + g * u, f(u)[1] + g))
        elif kind == "S":
            on, off, ramp = 1 / R, logarithmic(rng, 1e-6, 1e-1) / R, logarithmic(rng, 1e-5, 1e-1)
            closes = rng.uniform(0.1, 0.5)
            opens = closes + ramp + rng.uniform(0.0, 0.3)
            times = [closes, closes + ramp, opens, opens + ramp]
            m.breaks |= set(times)
            m.part(name, "electrical_switch", {"on_S": on / ohm, "off_S": off / ohm}, inputs={"speed": steps(
                [t * m.second for t in times], [v / ramp / m.second for v in (0.0, 1.0, 0.0, -1.0, 0.0)])})

            def switch(u, t, a=closes, b=opens, r=ramp, on=on, off=off):
                x = min(1.0, max(0.0, (t - a) / r)) - min(1.0, max(0.0, (t - b) / r))
                g = off + (on - off) * x * x * (3 - 2 * x)
                return g * u, g
            law = ("G", switch)
        else:  # with a resistor in series where it is ideal
            m.part(name, "resistor", {"resistance_ohm": R * ohm})
            times, first = sorted(rng.uniform(0, 1) for _ in range(rng.randint(1, 4))), rng.randint(0, 1)
            law = ("G", lambda u, t, g=1 / R: (g * u, g))
            if kind == "ID":
                m.part(name + "o", "ideal_diode")
                law = ("G", lambda u, t, g=1 / R: (g * max(u, 0.0), g * (u > 0)))
            elif kind == "IS":
                m.breaks |= set(times)
                m.part(name + "o", "ideal_switch", inputs={"closed": steps(
                    [t * m.second for t in times], [float(first ^ i & 1) for i in range(len(times) + 1)])})
                law = ("G", lambda u, t, g=1 / R, times=times, first=first: (
                    (first ^ sum(own <= t for own in times) & 1) * g * u, (first ^ sum(own <= t for own in times) & 1) * g))
            own += [name + "o.terminals"] * (kind != "R")
        if s:
            m.breaks |= set(s.times)
            m.part(name + "s", "effort_source", {"domain": "hydraulic" if is_hydraulic else "electrical"},
                   inputs={"effort": s.input(volt, m.second)})
            own.append(name + "s.port")
        laws.append(law)
        sources.append(s)
        meshes.append(own)
    if is_hydraulic or rng.random() < 0.3:
        kirchhoff(m, A, meshes)
    else:
        junctions(m, ends, meshes)
    m.rhs = nodal(m, laws, A, sources)
    return m


def kirchhoff(m, A, meshes):
    """One joint of all ports: currents of nodes add up to 0, and voltages around meshes; a branch has one current."""
    nodes, count = A.shape
    loops = np.hstack([-np.rint(np.linalg.solve(A[:, :nodes], A[:, nodes:])).T, np.eye(count - nodes)])  # from a tree
    ports = [(k, i) for k, own in enumerate(meshes) for i in range(len(own))]
    E = [[float(loop[k]) for k, _ in ports] for loop in loops]
    F = [[float(node[k]) * (i == 0) for k, i in ports] for node in A]
    F += [[(p == (k, 0)) - float(p == (k, i)) for p in ports] for k, i in ports if i > 0]
    zeros = [0.0] * len(ports)
    m.join("kernel", *sum(meshes, []), E=E + [zeros] * len(F), F=[zeros] * len(E) + F)


def junctions(m, ends, meshes):
    """A mesh for each branch, and a node for each node, with transformers of ratio 1 between them."""
    at_node = {}
    for k, (own, (a, b)) in enumerate(zip(meshes, ends)):
        for n, ratio in ((a, -1), (b, 1)):
            if n:
                m.part(f"t{k}_{n}", "electrical_transformer", {"ratio": ratio})
                own.append(f"t{k}_{n}.primary")
                at_node.setdefault(n, []).append(f"t{k}_{n}.secondary")
        m.join("common_flow", *own)
    for own in at_node.values():
        m.join("common_effort" if len(own) > 1 else "fixed", *own)


def nodal(m, laws, A, sources):
    """y' by nodal analysis: Newton's method for what capacitors leave open of the voltages of nodes."""
    of = {kind: [k for k, law in enumerate(laws) if law[0] == kind] for kind in "CLG"}
    AC, AL, AG = (A[:, of[kind]] for kind in "CLG")
    open_ = np.linalg.svd(AC.T)[2][len(of["C"]):].T if of["C"] else np.eye(len(A))  # capacitors make no loops
    voltages, currents, w = np.linalg.pinv(AC.T), np.linalg.pinv(AC), np.zeros(len(A) - len(of["C"]))

    def rhs(t, y):
        nonlocal w
        s = np.array([own(t) if own else 0.0 for own in sources])
        known = voltages @ np.array([y[laws[k][1]] + s[k] for k in of["C"]])
        coils = AL @ np.array([y[laws[k][1]] for k in of["L"]])

        def nodes(w):
            pairs = np.array([laws[k][1](u - s[k], t) for k, u in zip(of["G"], AG.T @ (known + open_ @ w))])
            f, g = pairs.reshape(-1, 2).T
            return AG @ f + coils, (AG * g) @ AG.T
        out, slope = nodes(w)
        for _ in range(120 if len(w) else 0):
            step, cut = np.linalg.solve(open_.T @ slope @ open_, -open_.T @ out), 1.0
            while True:
                new = nodes(w + cut * step)
                if np.linalg.norm(open_.T @ new[0]) <= (1 - 0.1 * cut) * np.linalg.norm(open_.T @ out) or cut < 1e-15:
                    break
                cut *= 0.5
            w, (out, slope) = w + cut * step, new
            is_rest = np.linalg.norm(open_.T @ out) <= 1e-9 * max(abs(coils).max(), abs(out).max(), 1e-12)
            if cut < 1e-15 and is_rest or cut == 1 and (abs(step) <= 1e-12 * abs(known + open_ @ w).max()).all():
                break
        else:
            if len(w):
                raise ArithmeticError("no voltages are found")
        rates, v = np.zeros(len(m.start)), A.T @ (known + open_ @ w)
        for k, current in zip(of["C"], currents @ -out):
            rates[laws[k][1]] = current / laws[k][2]
        for k in of["L"]:
            _, at, henry, R = laws[k]
            rates[at] = (v[k] - s[k] - R * y[at]) / henry
        return rates
    return rhs

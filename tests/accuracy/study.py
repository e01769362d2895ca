#!/usr/bin/env python3
"""Runs random systems with a portwave program and compares what it records with solutions that share no code
with it: matrix exponentials, or SciPy's Radau where that is installed.

  study.py PROGRAM tolerance   steps that choose their size: the error is at most ten times the tolerance
  study.py PROGRAM resolution  steps of one size: what they do not resolve is told, what they do is not
  --networks N --seed S   which ones
  --doctor                changes what was recorded before it is looked at: the study must notice
  --nonlinear             with diodes, friction and pendulums (needs SciPy)
  --keep FOLDER           keeps the scenarios of what it finds
  --jobs J                processes at once

tolerance   In every row and state the error is compared with the largest motion that states of its unit had
            so far in the whole run. A run may end with an error message, but not with less than it says.
resolution  Linear systems whose rates are known. "Resolved" is every run with h|lambda| <= 0.25 and inputs that
            last twelve steps or more; with h|lambda| >= 20 a run that is
            off by a quarter of all motion within its first 20 steps must be told.
"""
import argparse
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor


def logarithmic(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


# ---- matrices as lists of rows -------------------------------------------------------------------

def product(A, B):
    columns = list(zip(*B))
    return [[sum(a * b for a, b in zip(row, column) if a and b) for column in columns] for row in A]


def exponential(A, t):
    """e^(At), by Taylor series of a scaled matrix, squared."""
    n = len(A)
    size = max(sum(abs(a) for a in row) for row in A) * t
    squarings = max(0, math.ceil(math.log2(size / 0.25))) if size > 0.25 else 0
    scale = t / 2 ** squarings
    S = [[a * scale for a in row] for row in A]
    total = [[float(i == j) for j in range(n)] for i in range(n)]
    term = [row[:] for row in total]
    for k in range(1, 16):
        term = [[a / k for a in row] for row in product(term, S)]
        total = [[a + b for a, b in zip(x, y)] for x, y in zip(total, term)]
    for _ in range(squarings):
        total = product(total, total)
    return total


def spectral_radius(A):
    """An upper estimate: |A^16|^(1/16)."""
    power, logarithm = A, 0.0
    for _ in range(4):
        size = max(sum(abs(a) for a in row) for row in power) or 1.0
        power = [[a / size for a in row] for row in power]
        logarithm = 2 * (logarithm + math.log(size))
        power = product(power, power)
    size = max(sum(abs(a) for a in row) for row in power)
    return math.exp((logarithm + math.log(size)) / 16) if size > 0 else 0.0


# ---- inputs: sums of sines and pulses ---------------------------------------------------------------

class Input:
    def __init__(self, rng, size, rate, end_s, jumps, shortest_s=0.0):
        self.constant = size * rng.choice([0.0, rng.uniform(-1, 1)])
        self.sines = [(size * rng.uniform(-1, 1), rate * rng.uniform(0.2, 1.5), rng.uniform(0, 6))
                      for _ in range(rng.randint(0, 2))]
        self.pulses = []
        for _ in range(jumps):
            begin = round(rng.uniform(0.02, 0.95) * end_s, rng.randint(1, 9))
            width = max(end_s * logarithmic(rng, 1e-6, 0.3), shortest_s)
            self.pulses.append((size * rng.uniform(-1, 1) * min(1.0 / (rate * width), 50.0), begin, begin + width))

    def text(self):
        terms = [repr(self.constant)]
        terms += [f"({a!r})*sin({w!r}*t+{p!r})" for a, w, p in self.sines]
        forms = ["({a!r})*(t>={b!r})*(t<{c!r})", "if(t<{b!r},0,if(t<{c!r},{a!r},0))",
                 "max(0,({a!r})*(t>{b!r})*(t<={c!r}))+min(0,({a!r})*(t>{b!r})*(t<={c!r}))",
                 "({a!r})*(abs(t-{m!r})<{r!r})"]
        for i, (a, b, c) in enumerate(self.pulses):
            terms.append(forms[i % len(forms)].format(a=a, b=b, c=c, m=0.5 * (b + c), r=0.5 * (c - b)))
        return " + ".join(terms)

    def breaks(self):
        return [t for _, b, c in self.pulses for t in (b, c)]

    def level(self, t):  # the constant part between two breaks, at a time between them
        return self.constant + sum(a for a, b, c in self.pulses if b <= t < c)


# ---- systems: a scenario, and y' = A y + sum of B_k u_k ----------------------------------------------

class System:
    def __init__(self, name):
        self.parts, self.couplings, self.names, self.kinds = [], [], [], []
        self.start, self.A, self.inputs = [], [], []  # inputs: (vector, Input)
        self.energies = []  # Q, diagonal
        self.name = name

    def state(self, name, kind, value, energy):
        self.names.append(name)
        self.kinds.append(kind)
        self.start.append(value)
        self.energies.append(energy)
        for row in self.A:
            row.append(0.0)
        self.A.append([0.0] * len(self.names))
        return len(self.names) - 1


def mechanical(rng, name, options):
    s = System(name)
    count = rng.randint(1, 4)
    grounded = not options["drifting"]
    masses = [logarithmic(rng, 0.1, 10.0) for _ in range(count)]
    q, v = [], []
    for i in range(count):
        q.append(s.state(f"m{i}.position", "m", rng.uniform(-1, 1), 0.0))
        v.append(s.state(f"m{i}.velocity", "m/s", rng.uniform(-1, 1) + (5.0 if not grounded else 0.0), masses[i]))
        s.A[q[i]][v[i]] = 1.0
    links = [(i - 1, i) for i in range(1, count)]
    links += [(-1, 0)] if grounded else []
    if count > 2 and rng.random() < 0.5:
        links.append((0, count - 1))
    ends = [[] for _ in range(count)]
    for k, (left, right) in enumerate(links):
        stiff = logarithmic(rng, 1.0, 1e3)
        damping = rng.choice([0.0, logarithmic(rng, 1e-2, 1.0)])
        if options["stiff"] and rng.random() < 0.5:
            damping = logarithmic(rng, 1e2, 1e5)
        d = s.state(f"s{k}.elongation", "m", rng.uniform(-0.5, 0.5), stiff)
        s.parts.append({"name": f"s{k}", "type": "spring_damper",
                        "parameters": {"stiffness_N_per_m": stiff, "damping_Ns_per_m": damping},
                        "initial_state": {"elongation": s.start[d]}})
        for end, sign, port in ((left, -1.0, "left"), (right, 1.0, "right")):
            if end < 0:
                s.couplings.append({"kind": "fixed", "ports": [f"s{k}.{port}"]})
                continue
            ends[end].append(f"s{k}.{port}")
            s.A[d][v[end]] += sign
            s.A[v[end]][d] -= sign * stiff / masses[end]
            for other, other_sign in ((left, -1.0), (right, 1.0)):
                if other >= 0:
                    s.A[v[end]][v[other]] -= sign * other_sign * damping / masses[end]
    for i in range(count):
        number = max(1, len(ends[i]))
        part = {"name": f"m{i}", "type": "mass", "parameters": {"mass_kg": masses[i], "ports": number},
                "initial_state": {"position": s.start[q[i]], "velocity": s.start[v[i]]}}
        s.parts.append(part)
        if not ends[i]:
            s.couplings.append({"kind": "free", "ports": [f"m{i}.port"]})
        for j, end in enumerate(ends[i]):
            s.couplings.append({"kind": "connection",
                                "ports": [end, f"m{i}.port" if number == 1 else f"m{i}.port_{j + 1}"]})
        if options["driven"] and (rng.random() < 0.6 or i == 0):
            own = Input(rng, masses[i] * rng.uniform(1, 10), 5.0, options["end_s"], options["jumps"],
                        options.get("shortest_s", 0.0))
            part["inputs"] = {"force": {"kind": "expression", "expression": own.text()}}
            column = [0.0] * len(s.names)
            column[v[i]] = 1.0 / masses[i]
            s.inputs.append((column, own))
    return s


def electrical(rng, name, options):
    s = System(name)
    C, L = logarithmic(rng, 1e-6, 1e-3), logarithmic(rng, 1e-4, 0.1)
    rate = 1.0 / math.sqrt(L * C)
    series = rng.random() < 0.5
    R = math.sqrt(L / C) * logarithmic(rng, 0.1, 10.0)
    if options["stiff"]:
        R = math.sqrt(L / C) * logarithmic(rng, 1e2, 1e4) ** (1 if series else -1)
    size = rng.uniform(1, 10)
    u = s.state("c.voltage", "V", rng.uniform(-1, 1) * size, C)
    i = s.state("l.current", "A", rng.uniform(-1, 1) * size / math.sqrt(L / C), L)
    s.parts = [{"name": "c", "type": "capacitor", "parameters": {"capacitance_F": C},
                "initial_state": {"voltage": s.start[u]}},
               {"name": "l", "type": "inductor", "parameters": {"inductance_H": L},
                "initial_state": {"current": s.start[i]}},
               {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": R}}]
    ports = ["c.terminals", "l.terminals", "r.terminals"]
    own = Input(rng, size if series else size / R, rate, options["end_s"], options["jumps"],
                options.get("shortest_s", 0.0))
    source = {"name": "q", "type": "effort_source" if series else "flow_source",
              "parameters": {"domain": "electrical"},
              "inputs": {"effort" if series else "flow": {"kind": "expression", "expression": own.text()}}}
    if options["driven"]:
        s.parts.append(source)
        ports.append("q.port")
    s.couplings = [{"kind": "common_flow" if series else "common_effort", "ports": ports}]
    if series:
        s.A[u][i] = 1.0 / C
        s.A[i][u], s.A[i][i] = -1.0 / L, -R / L
        column = [0.0, -1.0 / L]
    else:
        s.A[u][u], s.A[u][i] = -1.0 / (R * C), -1.0 / C
        s.A[i][u] = 1.0 / L
        column = [1.0 / C, 0.0]
    if options["driven"]:
        s.inputs.append((column, own))
    return s


def exact(s, times):
    """The states at `times`: between breaks of the inputs, with the sines as states of their own."""
    n = len(s.names)
    sines = [(column, a, w, p) for column, own in s.inputs for a, w, p in own.sines]
    size = n + 2 * len(sines) + 1
    breaks = sorted({t for _, own in s.inputs for t in own.breaks()})
    matrices = {}

    def matrix(level):
        A = [row + [0.0] * (size - n) for row in s.A] + [[0.0] * size for _ in range(size - n)]
        for k, (column, a, w, p) in enumerate(sines):
            at = n + 2 * k
            A[at][at + 1], A[at + 1][at] = w, -w  # sin, cos
            for r in range(n):
                A[r][at] += column[r] * a
        for r in range(n):
            A[r][size - 1] = level[r]
        return A

    y = list(s.start)
    for _, a, w, p in sines:
        y += [math.sin(p), math.cos(p)]
    y.append(1.0)
    t, rows = 0.0, []
    for goal in times:
        while t < goal:
            following = min([b for b in breaks if b > t + 1e-15 * abs(t)] + [goal])
            following = min(following, goal)
            middle = 0.5 * (t + following)
            level = tuple(sum(column[r] * own.level(middle) for column, own in s.inputs) for r in range(n))
            key = (level, round(following - t, 15))
            if key not in matrices:
                matrices[key] = exponential(matrix(level), following - t)
            y = [sum(a * b for a, b in zip(row, y)) for row in matrices[key]]
            t = following
        rows.append(y[:n])
    return rows


# ---- running -------------------------------------------------------------------------------------------

def run(program, scenario, folder):
    path = os.path.join(folder, "scenario.json")
    with open(path, "w") as f:
        json.dump(scenario, f)
    done = subprocess.run([program, "run", path, "--out", os.path.join(folder, "out"), "--quiet"],
                          capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(done.stderr)
    with open(os.path.join(folder, "out", "summary.json")) as f:
        summary = json.load(f)
    with open(os.path.join(folder, "out", "trajectory.csv")) as f:
        rows = list(csv.reader(f))
    return summary, rows[0], [[float(x) for x in row] for row in rows[1:]], done.stderr


def largest_error(s, header, rows, want):
    """Of all states and rows, beside the largest motion of states of its unit."""
    at = [header.index(name) for name in s.names]
    motion = {}
    for row in want:
        for k, kind in enumerate(s.kinds):
            motion[kind] = max(motion.get(kind, 0.0), abs(row[k] - s.start[k]))
    worst, where = 0.0, ""
    for row, right in zip(rows, want):
        for k, kind in enumerate(s.kinds):
            scale = motion[kind]
            if scale <= 1e-9 * max(abs(right[k]), 1e-300):
                continue
            error = abs(row[at[k]] - right[k]) / scale
            if not error <= worst:
                worst, where = error, f"{s.names[k]} at {row[0]:.6g} s"
    return worst, where


def scenario_of(s, time, method, every):
    return {"name": s.name, "time": time, "subsystems": s.parts, "couplings": s.couplings, "method": method,
            "outputs": {"observe": s.names, **every}}


KINDS = ["driven", "stiff", "eventful", "drifting", "electrical", "electrical_stiff"]


def tolerance_case(seed):
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    is_electrical = kind.startswith("electrical")
    end_s = rng.uniform(1, 4) * (1.0 if not is_electrical else 0.01)
    options = {"end_s": end_s, "stiff": kind in ("stiff", "electrical_stiff"), "drifting": kind == "drifting",
               "driven": kind != "stiff" or rng.random() < 0.5,
               "jumps": rng.randint(1, 3) if kind in ("eventful", "electrical") else rng.randint(0, 1)}
    s = (electrical if is_electrical else mechanical)(rng, f"{kind}_{seed}", options)
    tolerance = logarithmic(rng, 1e-9, 1e-2)
    method = {"kind": "auto"}
    time = {"step": {"kind": "adaptive", "tolerance": tolerance}, "end_s": end_s}
    return s, scenario_of(s, time, method, {"every_s": end_s / 20}), tolerance, kind


def check_tolerance(program, seed, doctor, keep):
    s, scenario, tolerance, kind = tolerance_case(seed)
    with tempfile.TemporaryDirectory() as folder:
        summary, header, rows, errors = run(program, scenario, folder)
    if summary["failure"] is not None:
        return kind, "failed", f"{seed}: {errors.splitlines()[0] if errors else '?'}", 0.0
    if doctor:
        rows[-1] = [x + 0.3 for x in rows[-1]]
    want = exact(s, [row[0] for row in rows])
    error, where = largest_error(s, header, rows, want)
    ratio = error / tolerance
    if ratio <= 10.0:
        return kind, "right", "", ratio
    if not summary["all_well"]:
        return kind, "told", "", ratio
    if keep:
        with open(os.path.join(keep, s.name + ".json"), "w") as f:
            json.dump(scenario, f, indent=1)
    return kind, "wrong", f"{seed} ({kind}, tolerance {tolerance:.2g}): {ratio:.3g} times it, {where}", ratio


def resolution_case(seed):
    rng = random.Random(seed)
    is_electrical = rng.random() < 0.3
    stiff = seed % 2 == 1
    end_s = 1.0
    options = {"end_s": end_s, "stiff": stiff, "drifting": rng.random() < 0.2, "driven": rng.random() < 0.6,
               "jumps": rng.randint(0, 2)}
    probe = (electrical if is_electrical else mechanical)(random.Random(seed), "probe", options)
    radius = max([spectral_radius(probe.A)] + [w for _, own in probe.inputs for _, w, _ in own.sines])
    h = 0.25 / max(radius, 1.0)
    steps = rng.randint(60, 400)
    if stiff:
        h *= logarithmic(rng, 1.0, 4e3)
    options.update(end_s=h * steps, shortest_s=12 * h)
    s = (electrical if is_electrical else mechanical)(random.Random(seed), f"resolution_{seed}", options)
    method = {"kind": "auto"}
    if rng.random() < 0.5:
        method["stages"] = rng.randint(2, 3)
    return s, scenario_of(s, {"step_s": h, "steps": steps}, method, {"every": 1}), h, radius


def check_resolution(program, seed, doctor, keep):
    s, scenario, h, radius = resolution_case(seed)
    with tempfile.TemporaryDirectory() as folder:
        summary, header, rows, errors = run(program, scenario, folder)
    told = (summary.get("resolution") or {}).get("status", "resolved") != "resolved"
    if doctor:
        told = not told
    want = exact(s, [row[0] for row in rows])
    # Phases that drift apart over many steps are a matter of order, which "portwave study order" shows.
    error, where = largest_error(s, header, rows[:20], want[:20])
    kind = "resolved" if h * radius <= 0.3 else "between" if h * radius < 20 else "coarse"
    if kind == "resolved" and told:
        verdict = f"told, and the largest error is {error:.2g}: {summary['resolution']}"
    elif kind == "coarse" and not told and error > 0.25:
        verdict = f"not told, and {where} is off by {error:.2g} of all motion; h lambda up to {h * radius:.3g}"
    else:
        return kind, "told" if told else "right", "", error
    if keep:
        with open(os.path.join(keep, s.name + ".json"), "w") as f:
            json.dump(scenario, f, indent=1)
    return kind, "wrong", f"{seed}: {verdict}", error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("study", choices=["tolerance", "resolution"])
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--doctor", action="store_true")
    arguments = parser.parse_args()
    check = check_tolerance if arguments.study == "tolerance" else check_resolution
    if arguments.keep:
        os.makedirs(arguments.keep, exist_ok=True)

    def one(seed):
        return check(os.path.abspath(arguments.program), seed, arguments.doctor, arguments.keep)

    counts, worst, all_ratios = {}, {}, {}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for kind, verdict, text, ratio in pool.map(one, range(arguments.seed, arguments.seed + arguments.networks)):
            counts.setdefault(kind, {}).setdefault(verdict, 0)
            counts[kind][verdict] += 1
            worst[kind] = max(worst.get(kind, 0.0), ratio)
            all_ratios.setdefault(kind, []).append(ratio)
            if text:
                print(("  " if verdict != "wrong" else "WRONG ") + text, flush=True)
    for kind, own in counts.items():
        ratios = sorted(all_ratios[kind])
        print(f"{kind}: {own}, median {ratios[len(ratios) // 2]:.3g}, largest {worst[kind]:.3g}")
    wrong = sum(own.get("wrong", 0) for own in counts.values())
    print(f"{arguments.networks} networks, wrong {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs random networks with a portwave program and checks the promises of the passivity guard from the
files that it writes.

  study.py PROGRAM energy   [--networks N] [--seed S]    no energy from nowhere, at any budget
  study.py PROGRAM idle     [--networks N] [--seed S]    steps that met their tolerance are left alone
  --doctor       changes a recorded number before it is looked at: the study must notice (its own control)
  --keep FOLDER  keeps the scenarios of what it finds
  --jobs J       processes at once

energy   H is computed here from the recorded states, and what constant forces supply from the recorded
         positions of the masses that they push. In every recorded row
           H + T <= H0 + T0 + supply + tolerated   and   T >= 0
         up to the rounding that the run tells and 1e-10 of all energy there, or its certificate is not "holds".
         It is not where that rounding is more than a millionth of all energy there.
idle     The same run with and without the guard: where every step of both met its tolerance, the guard
         changed no step noticeably and the states are the same to 1e-6 of their range; with chosen steps
         to ten times their tolerance.
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


# ---- energies of parts, from their states --------------------------------------------------------

def quadratic(Q):
    return lambda x: 0.5 * sum(x[i] * Q[i][j] * x[j] for i in range(len(x)) for j in range(len(x)))


def energy_of(part):
    """H of a part as a function of its states in the order of the file; None where it is not known here."""
    kind, p = part["type"], part.get("parameters", {})
    if kind == "linear_port_hamiltonian":
        return quadratic(p["Q"])
    if kind == "mass":
        return lambda x: 0.5 * p["mass_kg"] * x[1] ** 2
    if kind == "inertia":
        return lambda x: 0.5 * p["inertia_kgm2"] * x[1] ** 2
    if kind in ("spring", "spring_damper"):
        return lambda x: 0.5 * p["stiffness_N_per_m"] * x[0] ** 2
    if kind == "capacitor":
        return lambda x: 0.5 * p["capacitance_F"] * x[0] ** 2
    if kind == "inductor":
        return lambda x: 0.5 * p["inductance_H"] * x[0] ** 2
    if kind == "saturating_inductor":
        return lambda x: (x[0] ** 2 / 2 + x[0] ** 4 / (4 * p["saturation_flux_Vs"] ** 2)) / p["inductance_H"]
    if kind == "duffing_oscillator":
        return lambda x: (0.5 * p["mass_kg"] * x[1] ** 2 + 0.5 * p["stiffness_N_per_m"] * x[0] ** 2
                          + 0.25 * p["cubic_stiffness_N_per_m3"] * x[0] ** 4
                          + 0.5 * p["coupling_stiffness_N_per_m"] * x[2] ** 2)
    if kind in ("coulomb_damper", "rotational_coulomb_damper", "diode", "electrical_switch", "valve",
                "resistor", "damper", "effort_source"):
        return lambda x: 0.0
    return None


# ---- networks ------------------------------------------------------------------------------------

def linear_part(rng, name):
    n, ports = rng.randint(1, 4), rng.randint(1, 5)
    skew = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i):
            skew[i][j] = rng.gauss(0, 1)
            skew[j][i] = -skew[i][j]
    scale = logarithmic(rng, 0.1, 100.0)
    root = [[rng.gauss(0, 1) for _ in range(n)] for _ in range(n)]
    Q = [[scale * (sum(root[i][k] * root[j][k] for k in range(n)) + (0.2 if i == j else 0.0))
          for j in range(n)] for i in range(n)]
    parameters = {
        "states": [{"name": f"x{i}"} for i in range(n)],
        "ports": [{"name": f"p{j}", "causality": rng.choice(["effort_in", "flow_in"]), "domain": "generic"}
                  for j in range(ports)],
        "J": skew, "Q": Q,
        # Often of low rank: directions in which waves meet nothing that stores.
        "G": [[rng.choice([0.0, 1.0, -1.0, rng.gauss(0, 1)]) for _ in range(ports)] for _ in range(n)],
    }
    if rng.random() < 0.4:
        parameters["R"] = [[logarithmic(rng, 1e-3, 1.0) if i == j else 0.0 for j in range(n)]
                           for i in range(n)]
    return {"name": name, "type": "linear_port_hamiltonian", "parameters": parameters,
            "initial_state": [rng.uniform(-1, 1) for _ in range(n)]}, [f"{name}.p{j}" for j in range(ports)]


def mass_part(rng, name):
    ports = rng.randint(1, 4)
    part = {"name": name, "type": "mass",
            "parameters": {"mass_kg": logarithmic(rng, 0.1, 10.0), "ports": ports},
            "initial_state": [rng.uniform(-1, 1), rng.uniform(-1, 1)]}
    if rng.random() < 0.6:
        part["inputs"] = {"force": {"kind": "constant", "value": rng.uniform(-5, 5)}}
    return part, [f"{name}.port" if ports == 1 else f"{name}.port_{j + 1}" for j in range(ports)]


def spring_part(rng, name):
    part = {"name": name, "type": "spring_damper",
            "parameters": {"stiffness_N_per_m": logarithmic(rng, 1.0, 1e3),
                           "damping_Ns_per_m": rng.choice([0.0, 0.0, logarithmic(rng, 1e-3, 1.0)])},
            "initial_state": [rng.uniform(-0.3, 0.3)]}
    return part, [f"{name}.left", f"{name}.right"]


def junction(rng, ports):
    if len(ports) == 1:
        kind = rng.choice(["free", "fixed", "resistive"])
        out = {"kind": kind, "ports": ports}
        if kind == "resistive":
            out["resistance"] = logarithmic(rng, 0.01, 100.0)
        return out
    kind = rng.choice(["connection", "common_effort", "common_flow", "transformer", "gyrator", "skew_gain"]
                      if len(ports) == 2 else ["common_effort", "common_flow", "skew_gain"])
    out = {"kind": kind, "ports": ports}
    if kind in ("transformer", "gyrator"):
        out["ratio"] = logarithmic(rng, 0.2, 5.0) * rng.choice([1, -1])
    if kind == "skew_gain":
        n = len(ports)
        gain = [[0.0] * n for _ in range(n)]
        for i in range(n):
            for j in range(i):
                gain[i][j] = rng.gauss(0, 1)
                gain[j][i] = -gain[i][j]
        out["gain"] = gain
    return out


def impedance(rng, ports):
    kind = rng.choice(["uniform", "uniform", "per_port", "matched", "matched", "fne", "leaf", "adapted", "auto"])
    out = {"kind": kind}
    if kind in ("uniform", "per_port"):
        out["value"] = logarithmic(rng, 1e-3, 1e3)
    if kind == "per_port":
        out["ports"] = {port: logarithmic(rng, 1e-3, 1e3) for port in ports}
    return out


def any_budget(rng, ports):
    kind = rng.choice(["douglas-rachford"] * 4 + ["peaceman-rachford"] * 3 + ["interface", "auto"])
    method = {"kind": kind, "iterations": rng.randint(0, 12)}
    if kind in ("douglas-rachford", "peaceman-rachford"):
        method["impedance"] = impedance(rng, ports)
        method["relaxation"] = rng.uniform(0.05, 1.95 if kind == "douglas-rachford" else 1.0)
        if rng.random() < 0.2:
            method["acceleration"] = rng.randint(1, 8)
    stages = rng.randint(1, 3)
    if stages > 1:
        method["stages"] = stages
    if rng.random() < 0.2:
        method["tolerance"] = logarithmic(rng, 1e-12, 1e-2)
    if rng.random() < 0.2:
        method["tank"] = {"initial_fraction": logarithmic(rng, 1e-6, 0.1)}
    if rng.random() < 0.2:
        method["start"] = "extrapolated"
    return method


def energy_case(seed):
    rng = random.Random(seed)
    parts, open_ports = [], []
    if rng.random() < 0.35:  # masses and springs, joined as they are in mechanisms
        masses = [mass_part(rng, f"m{i}") for i in range(rng.randint(1, 5))]
        parts += [part for part, _ in masses]
        ends = [port for _, ports in masses for port in ports]
        rng.shuffle(ends)
        couplings = []
        count = 0
        while ends:
            part, (left, right) = spring_part(rng, f"s{count}")
            count += 1
            parts.append(part)
            couplings.append({"kind": "connection", "ports": [ends.pop(), left]})
            if ends and rng.random() < 0.8:
                couplings.append({"kind": "connection", "ports": [ends.pop(), right]})
            else:
                couplings.append({"kind": "fixed", "ports": [right]})
        open_ports = [port for coupling in couplings for port in coupling["ports"]]
    else:
        for i in range(rng.randint(2, 6)):
            part, ports = (mass_part if rng.random() < 0.25 else linear_part)(rng, f"s{i}")
            parts.append(part)
            open_ports += ports
        rest, couplings = list(open_ports), []
        rng.shuffle(rest)
        while rest:
            count = min(rng.randint(1, 4), len(rest))
            couplings.append(junction(rng, [rest.pop() for _ in range(count)]))
    step = logarithmic(rng, 1e-3, 0.3)
    scenario = {"name": f"energy_{seed}", "subsystems": parts, "couplings": couplings,
                "method": any_budget(rng, open_ports)}
    steps = rng.choice([60, 200, 600])
    if rng.random() < 0.25:
        scenario["time"] = {"step": {"kind": "adaptive", "tolerance": logarithmic(rng, 1e-5, 1e-2)},
                            "end_s": steps * step}
    else:
        scenario["time"] = {"step_s": step, "steps": steps}
    scenario["time"]["start"] = "as_given"  # states are drawn at random
    return scenario


def friction(rng, speed):
    return {"friction_N": logarithmic(rng, 0.1, 50.0), "creep_speed_m_per_s": speed * 10 ** rng.uniform(-8, -3),
            "viscosity_Ns_per_m": rng.choice([0.0, 0.0, logarithmic(rng, 1e-3, 1.0)])}


def mechanism(rng):
    """Masses in a row, with springs, dry friction and contacts."""
    parts, couplings = [], []
    speed = logarithmic(rng, 0.01, 100.0)
    count = rng.randint(1, 4)
    neighbours = [[] for _ in range(count)]
    for i in range(count - 1):
        neighbours[i].append("right")
        neighbours[i + 1].append("left")
    for i in range(count):
        extra = ["friction"] if rng.random() < 0.8 or count == 1 else []
        if rng.random() < 0.2:
            extra.append("contact")
        if rng.random() < 0.2:
            extra.append("duffing")
        own = neighbours[i] + extra
        name = f"m{i}"
        part = {"name": name, "type": "mass",
                "parameters": {"mass_kg": logarithmic(rng, 0.1, 10.0), "ports": len(own)},
                "initial_state": {"velocity": rng.uniform(-1, 1) * speed}}
        if rng.random() < 0.3:
            part["inputs"] = {"force": {"kind": "constant", "value": rng.uniform(-20, 20)}}
        parts.append(part)
        port = {what: f"{name}.port" if len(own) == 1 else f"{name}.port_{j + 1}" for j, what in enumerate(own)}
        if "left" in port:
            k = f"s{i - 1}"
            parts.append({"name": k, "type": "spring_damper",
                          "parameters": {"stiffness_N_per_m": logarithmic(rng, 1.0, 1e4), "damping_Ns_per_m": 0.0}})
            couplings.append({"kind": "connection", "ports": [previous, k + ".left"]})
            couplings.append({"kind": "connection", "ports": [port["left"], k + ".right"]})
        previous = port.get("right")
        if "friction" in port:
            parts.append({"name": f"d{i}", "type": "coulomb_damper", "parameters": friction(rng, speed)})
            couplings.append({"kind": "connection", "ports": [f"d{i}.end", port["friction"]]})
        if "contact" in port:
            parts.append({"name": f"c{i}", "type": "contact",
                          "parameters": {"force_N": logarithmic(rng, 1.0, 100.0), "compression_m": 0.01,
                                         "gap_m": rng.uniform(0.0, 0.05) * speed}})
            couplings.append({"kind": "connection", "ports": [f"c{i}.face", port["contact"]]})
        if "duffing" in port:
            parts.append({"name": f"n{i}", "type": "duffing_oscillator",
                          "parameters": {"mass_kg": 1.0, "stiffness_N_per_m": 100.0,
                                         "cubic_stiffness_N_per_m3": logarithmic(rng, 1.0, 1e4),
                                         "coupling_stiffness_N_per_m": logarithmic(rng, 10.0, 1e3)},
                          "initial_state": {"q1": rng.uniform(-0.3, 0.3)}})
            couplings.append({"kind": "connection", "ports": [f"n{i}.coupling", port["duffing"]]})
    return parts, couplings, logarithmic(rng, 1e-4, 1e-2)


def brake(rng):
    speed = logarithmic(rng, 1.0, 1000.0)
    parts = [{"name": "j", "type": "inertia", "parameters": {"inertia_kgm2": logarithmic(rng, 0.01, 10.0)},
              "initial_state": {"speed": speed}},
             {"name": "b", "type": "rotational_coulomb_damper",
              "parameters": {"friction_Nm": logarithmic(rng, 0.1, 100.0),
                             "creep_speed_rad_per_s": speed * 10 ** rng.uniform(-8, -3)}}]
    return parts, [{"kind": "connection", "ports": ["b.shaft", "j.shaft"]}], logarithmic(rng, 1e-4, 1e-2)


def circuit(rng):
    """A loop of a coil and what may stand in series with it, or a capacitor with what discharges it."""
    parts, ports = [], []

    def add(name, kind, parameters, port="terminals", **more):
        parts.append({"name": name, "type": kind, "parameters": parameters, **more})
        ports.append(f"{name}.{port}")

    coil = rng.random() < 0.7
    if coil and rng.random() < 0.5:
        add("l", "saturating_inductor",
            {"inductance_H": logarithmic(rng, 1e-3, 1.0), "saturation_flux_Vs": logarithmic(rng, 0.01, 1.0)},
            initial_state=[rng.uniform(-0.5, 0.5)])
    elif coil:
        add("l", "inductor", {"inductance_H": logarithmic(rng, 1e-3, 1.0)}, initial_state=[rng.uniform(-1, 1)])
    if not coil or rng.random() < 0.4:
        add("c", "capacitor", {"capacitance_F": logarithmic(rng, 1e-6, 1e-2)}, initial_state=[rng.uniform(-5, 5)])
    kind = rng.choice(["switch", "switch", "diode", "resistor"])
    step = logarithmic(rng, 1e-6, 1e-3)
    if kind == "switch":
        opens = rng.uniform(10, 40) * step
        closed = rng.random() < 0.7
        rate = logarithmic(rng, 1.0, 30.0)  # steps that the travel takes
        sign = -1 if closed else 1
        add("sw", "electrical_switch",
            {"on_S": logarithmic(rng, 1.0, 1e6), "off_S": logarithmic(rng, 1e-9, 1e-4)},
            initial_state={"travel": 1 if closed else 0},
            inputs={"speed": {"kind": "expression",
                              "expression": f"if(t < {opens}, 0, if(t < {opens + rate * step}, {sign / (rate * step)}, 0))"}})
    if kind == "diode":
        add("d", "diode", {"saturation_current_A": logarithmic(rng, 1e-14, 1e-9)})
    if kind == "resistor" or rng.random() < 0.5:
        add("r", "resistor", {"resistance_ohm": logarithmic(rng, 0.01, 1e3)})
    if rng.random() < 0.3:
        add("v", "effort_source", {"domain": "electrical"}, port="port",
            inputs={"effort": {"kind": "constant", "value": rng.uniform(-10, 10)}})
    return parts, [{"kind": "common_flow", "ports": ports}], step


def hydraulics(rng):
    parts = [{"name": "a", "type": "tank", "parameters": {"area_m2": logarithmic(rng, 0.01, 1.0)},
              "initial_state": [rng.uniform(0.5, 3.0)]},
             {"name": "b", "type": "tank", "parameters": {"area_m2": logarithmic(rng, 0.01, 1.0)},
              "initial_state": [rng.uniform(0.0, 2.0)]},
             {"name": "v", "type": "valve",
              "parameters": {"nominal_flow_m3_per_s": logarithmic(rng, 1e-4, 1e-2), "nominal_pressure_Pa": 1e4,
                             "laminar_pressure_Pa": logarithmic(rng, 1e-2, 100.0)}}]
    return parts, [{"kind": "common_flow", "ports": ["a.outlet", "v.line", "b.outlet"]}], logarithmic(rng, 1e-3, 0.3)


def idle_case(seed):
    rng = random.Random(seed)
    parts, couplings, step = rng.choice([mechanism, mechanism, mechanism, brake, circuit, circuit, hydraulics])(rng)
    kind = rng.choice(["auto", "auto", "auto", "peaceman-rachford", "douglas-rachford", "interface"])
    method = {"kind": kind, "iterations": 300}
    if kind in ("peaceman-rachford", "douglas-rachford"):
        method["impedance"] = {"kind": rng.choice(["matched", "leaf", "auto"])}
        method["tolerance"] = 1e-10
        if kind == "peaceman-rachford" and rng.random() < 0.5:
            method["relaxation"] = rng.uniform(0.5, 1.0)
        if rng.random() < 0.5:
            method["acceleration"] = 5
    if rng.random() < 0.5:
        method["stages"] = rng.randint(2, 3)
    steps = rng.choice([40, 100])
    scenario = {"name": f"idle_{seed}", "subsystems": parts, "couplings": couplings, "method": method,
                "time": {"step_s": step, "steps": steps}}
    if rng.random() < 0.2:
        scenario["time"] = {"step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": steps * step}
    return scenario


# ---- runs and their files ------------------------------------------------------------------------

class Run:
    def __init__(self, program, scenario):
        self.scenario = scenario
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scenario.json")
            with open(path, "w") as file:
                json.dump(scenario, file)
            out = os.path.join(folder, "out")
            done = subprocess.run([program, "run", path, "--out", out, "--quiet"], capture_output=True, text=True,
                                  timeout=300)
            self.code, self.error = done.returncode, done.stderr
            self.summary, self.states, self.energy = None, [], []
            if self.code in (0, 1, 3) and os.path.exists(os.path.join(out, "summary.json")):
                with open(os.path.join(out, "summary.json")) as file:
                    self.summary = json.load(file)
                self.names, self.states = self.table(os.path.join(out, "trajectory.csv"))
                self.columns, self.energy = self.table(os.path.join(out, "energy.csv"))

    @staticmethod
    def table(path):
        with open(path) as file:
            rows = list(csv.reader(file))
        return [n.split(" [")[0] for n in rows[0]], [[float(v) if v else math.nan for v in r] for r in rows[1:]]

    def column(self, name):
        if name not in self.columns:  # a program of before
            return [0.0] * len(self.energy)
        at = self.columns.index(name)
        return [row[at] for row in self.energy]


def states_of(run, part):
    """Columns of a part's states, in their order."""
    return [i for i, name in enumerate(run.names) if name.rpartition(".")[0] == part["name"]]


def law_broken(run, doctor):
    """None, or how far the law of energy is out, in units of all energy there."""
    stored, supplied = [0.0] * len(run.states), [0.0] * len(run.states)
    moved = 0.0
    for part in run.scenario["subsystems"]:
        energy = energy_of(part)
        columns = states_of(run, part)
        for n, row in enumerate(run.states):
            stored[n] += energy([row[i] for i in columns])
        force = part.get("inputs", {}).get("force")
        if force is not None:
            at = columns[0]
            for n in range(1, len(run.states)):
                work = force["value"] * (run.states[n][at] - run.states[n - 1][at])
                moved += abs(work)
                supplied[n] += force["value"] * (run.states[n][at] - run.states[0][at])
    if doctor:
        stored[len(stored) // 2] *= 1.0001
        stored[len(stored) // 2] += 1e-4
    tank, mismatch, tolerated = run.column("tank_J"), run.column("mismatch_J"), run.column("guard_tolerated_J")
    size = abs(stored[0]) + tank[0] + moved
    rounding = run.summary["energy"]["rounding_J"]
    if rounding is None:  # it is not finite
        return math.inf
    allowed = 1e-10 * size + rounding + 1e-280
    worst = 0.0
    more, kept = 0.0, tank[0]
    for n in range(1, len(run.states)):
        more += tolerated[n]
        kept += mismatch[n] + tolerated[n]
        excess = stored[n] + tank[n] - (stored[0] + tank[0] + supplied[n] + more)
        growth = stored[n] - (stored[0] + tank[0] + supplied[n] + more)
        beyond = stored[n] - (stored[0] + tank[0] + supplied[n]) - 0.011 * size
        # The tank that is told is the one that the recorded mismatches make.
        for out in (excess, growth, beyond, -tank[n], abs(kept - tank[n]) - 1e-6 * allowed * n):
            if not out <= allowed:
                worst = max(worst, out / size if size > 0 else math.inf)
            if math.isnan(out):
                return math.inf
    if size > 0 and rounding > 1.001e-6 * size:
        worst = max(worst, rounding / size)
    return worst if worst > 0.0 else None


def energy_study(program, seed, doctor):
    scenario = energy_case(seed)
    run = Run(program, scenario)
    if run.summary is None:
        return {"refused": run.code == 2, "crashed": run.code not in (2, 3), "text": run.error}
    if len(run.states) < 2:
        return {"refused": True, "text": "no step"}
    certificate = run.summary["certificate"]
    try:
        out = law_broken(run, doctor)
    except OverflowError:
        out = math.inf
    guard = run.summary["guard"]
    return {"out": out, "told": certificate["status"] != "holds", "status": certificate["status"],
            "guarded": guard["steps"] > 0, "missed": guard.get("missed_steps", 0) > 0, "failed": run.code == 3,
            "method": scenario["method"]["kind"], "unjudged": certificate["uncomputable_islands"] > 0}


def moved(scenario, factor):
    """The same from a start that differs by a factor."""
    other = json.loads(json.dumps(scenario))
    for part in other["subsystems"]:
        start = part.get("initial_state", [])
        for key in (start if isinstance(start, dict) else range(len(start))):
            start[key] *= 1.0 if key == "travel" else factor
    return other


def difference(run, other):
    """The largest difference of states in units of their range, and whether the steps are the same."""
    same_times = len(run.states) == len(other.states) and all(
        abs(a[0] - b[0]) <= 1e-9 * other.states[-1][0] for a, b in zip(run.states, other.states))
    # Chosen steps may turn out otherwise by what the tolerance leaves: then the ends are compared.
    rows = list(zip(run.states, other.states)) if same_times else [(run.states[-1], other.states[-1])]
    units, changed = {}, 0.0
    for i, name in enumerate(other.names[1:], 1):
        kind = name.rpartition(".")[2]
        units[kind] = max(units.get(kind, 0.0), max(abs(row[i]) for row in other.states))
    # What hardly moves is measured by what the energy there could move.
    speed = math.sqrt(2 * max(run.column("stored_J")) / 10.0)
    for kind, size in (("velocity", speed), ("speed", speed), ("position", speed * other.states[-1][0]),
                       ("angle", speed * other.states[-1][0])):
        if kind in units:
            units[kind] = max(units[kind], 1e-3 * size)
    for a, b in rows:
        for i, name in enumerate(other.names[1:], 1):
            size = units[name.rpartition(".")[2]]
            if size > 0.0:
                changed = max(changed, abs(a[i] - b[i]) / size)
    return changed, same_times


def idle_study(program, seed, doctor):
    scenario = idle_case(seed)
    runs = []
    for guard in (True, False):
        scenario["method"]["guard"] = guard
        runs.append(Run(program, json.loads(json.dumps(scenario))))
        if runs[-1].summary is None or runs[-1].code == 3:
            return {"refused": runs[-1].code == 2, "crashed": runs[-1].code not in (2, 3), "text": runs[-1].error}
    guarded, plain = runs
    if any(run.summary["iterations"]["not_converged"] for run in runs):
        return {"refused": False, "unconverged": True,
                "told": guarded.summary["guard"].get("missed_steps", 0) > 0, "changed": 0.0}
    if doctor:
        guarded.states[-1][1] += 1e-4 * max(abs(row[1]) for row in plain.states) + 1e-4
    changed, same_times = difference(guarded, plain)
    # Chosen steps converge to what their tolerance of 1e-5 asks for.
    limit = 1e-6 if "step_s" in scenario["time"] else 1e-4 if same_times else 1e-3
    if changed > limit:
        # Where the motion itself makes more of what a tolerance leaves, as at the end of sliding, starts that
        # differ by as little, and a smaller tolerance, say how much, without any guard.
        closer = json.loads(json.dumps(scenario))
        closer["method"]["tolerance"] = 1e-12
        others = [moved(scenario, 1.0 + share) for share in (1e-11, -3e-11, 1e-10)] + [closer]
        for other in (Run(program, each) for each in others):
            if other.summary is not None and other.states:
                limit = max(limit, 20 * difference(other, plain)[0])
    if (guarded.summary["guard"].get("missed_steps", 0) > 0
            and plain.summary["certificate"]["energy_safety"]["status"] == "not_kept"):
        # A residual that is met for its strong parts only: without the guard energy grows. It is told.
        return {"out": changed, "told": guarded.summary.get("all_well") is False, "changed": 0.0}
    return {"out": changed if changed > limit else None, "told": False, "changed": changed,
            "status": guarded.summary["certificate"]["status"], "guarded": guarded.summary["guard"]["steps"] > 0,
            "missed": guarded.summary["guard"].get("missed_steps", 0) > 0,
            "tolerated": guarded.summary["energy"].get("tolerated_J", 0.0) > 0.0}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("study", choices=["energy", "idle"])
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--doctor", action="store_true")
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    study = energy_study if arguments.study == "energy" else idle_study
    case = energy_case if arguments.study == "energy" else idle_case
    counts = dict.fromkeys(
        ["run", "refused", "failed", "unconverged", "guarded", "missed", "tolerated", "unjudged", "told", "wrong"], 0)
    largest = 0.0

    def look(seed):
        try:
            return seed, study(arguments.program, seed, arguments.doctor)
        except subprocess.TimeoutExpired:
            return seed, {"refused": False, "crashed": True, "text": "takes too long"}

    with ThreadPoolExecutor(arguments.jobs) as pool:
        for seed, found in pool.map(look, range(arguments.seed, arguments.seed + arguments.networks)):
            wrong = None
            if "text" in found:
                counts["refused" if found["refused"] else "failed"] += 1
                if found.get("crashed"):
                    wrong = "crashed: " + found["text"][-200:]
            else:
                counts["run"] += 1
                for key in ("unconverged", "guarded", "missed", "tolerated", "unjudged", "failed"):
                    counts[key] += bool(found.get(key))
                largest = max(largest, found.get("changed", 0.0) if not found.get("unconverged") else 0.0)
                if found.get("out") is not None:
                    if found["told"]:
                        counts["told"] += 1
                    else:
                        wrong = f"out by {found['out']:.3g}, certificate {found['status']}"
                elif arguments.study == "idle" and found.get("missed"):
                    wrong = "the guard changed a step that met its tolerance"
            if wrong is not None:
                counts["wrong"] += 1
                print(f"{arguments.study} {seed}: {wrong}", flush=True)
                if arguments.keep:
                    os.makedirs(arguments.keep, exist_ok=True)
                    with open(os.path.join(arguments.keep, f"{arguments.study}_{seed}.json"), "w") as file:
                        json.dump(case(seed), file, indent=1)
    print(", ".join(f"{key} {count}" for key, count in counts.items())
          + (f", largest change {largest:.2g}" if arguments.study == "idle" else ""))
    return 1 if counts["wrong"] > 0 or counts["run"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs random lines in one process and on several ranks, and compares what they write, byte by byte: kinds of parts,
stages, conserving and damped ones, chosen steps and steps of one size, inputs that are driven on one rank or on all. A run that does not end in
time is a failure: ranks that do not agree wait for each other for ever.

usage: sweep_ranks.py PORTWAVE SOURCES MPIRUN [--all] [--seed N] [--minutes M] [--break]

--all: every combination; else a few. --minutes: all of them again and again, of other seeds, for so long. --break: one
byte of a result is changed, which must be noticed. Ends with 77 where MPI cannot start.
"""

import argparse
import itertools
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compare_ranks import differences, facts, run

KINDS = ["chain", "duffing", "newton", "mixed"]
DRIVES = ["none", "first", "last", "all"]


def sine(rng):
    return {"kind": "sine_product", "amplitude": rng.uniform(0.5, 5), "sines": [{"frequency_Hz": rng.uniform(0.2, 3)}]}


def line(kind, name, parts, drive, rng):
    """Parts in a row, all a little different, and their couplings."""
    subsystems, couplings = [], []
    ports = ("left", "right") if kind == "chain" else ("west", "east")
    for i in range(parts):
        driven = drive == "all" or (drive == "first" and i == 0) or (drive == "last" and i + 1 == parts)
        own = {"name": f"{name}{i}"}
        if kind == "chain":
            own |= {"type": "mass_spring_damper_chain",
                    "parameters": {"masses": rng.randint(1, 3), "mass_kg": rng.uniform(0.5, 1), "stiffness_N_per_m": 60,
                                   "damping_Ns_per_m": 0.1, "coupling_stiffness_N_per_m": 50}}
            source = "force_1"
        else:
            own |= {"type": "duffing_node",
                    "parameters": {"mass_kg": rng.uniform(0.5, 2), "stiffness_N_per_m": 30,
                                   "cubic_stiffness_N_per_m3": rng.uniform(100, 1000),
                                   "coupling_stiffness_N_per_m": rng.uniform(50, 150),
                                   "coupling_damping_Ns_per_m": 0.05},
                    "initial_state": {"q": rng.uniform(-0.3, 0.3), "v": rng.uniform(-0.3, 0.3)}}
            source = "force"
        if driven:
            own["inputs"] = {source: sine(rng)}
        subsystems.append(own)
        if i > 0:
            couplings.append({"kind": "connection", "ports": [f"{name}{i - 1}.{ports[1]}", f"{name}{i}.{ports[0]}"]})
        if kind == "duffing":
            couplings += [{"kind": "free", "ports": [f"{name}{i}.north"]}, {"kind": "fixed", "ports": [f"{name}{i}.south"]}]
        elif kind == "newton":
            subsystems.append({"name": f"{name}{i}_brake", "type": "coulomb_damper",
                               "parameters": {"friction_N": rng.uniform(0.5, 2), "creep_speed_m_per_s": 0.01}})
            couplings += [{"kind": "connection", "ports": [f"{name}{i}_brake.end", f"{name}{i}.north"]},
                          {"kind": "fixed", "ports": [f"{name}{i}.south"]}]
    return subsystems, couplings, (f"{name}0.{ports[0]}", f"{name}{parts - 1}.{ports[1]}")


def scenario(kind, drive, stages, chosen, damped, seed):
    rng = random.Random(seed * 1000003 + stages)
    own = {"name": "line", "subsystems": [], "couplings": [],
           "method": {"kind": "auto", "tolerance": 1e-9, "stages": stages, "integrator": "damped" if damped else "auto"}}
    kinds = ["chain", "duffing", "newton"] if kind == "mixed" else [kind]
    for each in kinds:
        subsystems, couplings, (first, last) = line(each, each[0], 6 if kind == "mixed" else 12, drive, rng)
        own["subsystems"] += subsystems
        own["couplings"] += couplings + [{"kind": "free", "ports": [first]}, {"kind": "fixed", "ports": [last]}]
    own["time"] = ({"step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": 0.2} if chosen
                   else {"step_s": 0.01, "steps": 20})
    return own


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("portwave")
    parser.add_argument("sources", type=Path)
    parser.add_argument("mpirun")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--break", dest="spoil", action="store_true")
    arguments = parser.parse_args()
    if arguments.all or arguments.minutes > 0:
        combinations = list(itertools.product(KINDS, DRIVES, [1, 2, 3], [True, False], [True, False], [2, 3, 4]))
    else:
        combinations = list(itertools.product(["chain", "mixed"], ["last", "all"], [2, 3], [True], [False], [2, 3]))
        combinations += itertools.product(["mixed"], ["all"], [1, 2, 3], [False], [True], [2, 3])
        combinations += itertools.product(["mixed"], ["all"], [2, 3], [True], [True], [2])
    if arguments.spoil:
        combinations = combinations[:1]
    failures, count, end, seed = 0, 0, time.monotonic() + 60 * arguments.minutes, arguments.seed
    with tempfile.TemporaryDirectory() as scratch:
        while True:
            for kind, drive, stages, chosen, damped, ranks in combinations:
                if arguments.minutes > 0 and time.monotonic() > end:
                    break
                folder = Path(tempfile.mkdtemp(dir=scratch))
                (folder / "line.json").write_text(json.dumps(scenario(kind, drive, stages, chosen, damped, seed)))
                base = [arguments.portwave, "run", str(folder / "line.json"), "--compare", "none"]
                one, many = folder / "one", folder / "many"
                code, text = run(base, one)
                what = f"{kind} drive={drive} {'damped ' if damped else ''}stages={stages} {'chosen steps' if chosen else 'fixed steps'} ranks={ranks} seed={seed}"
                try:
                    line_of_many = [arguments.mpirun, "-n", str(ranks), *base, "--grain", "2"]
                    code_of_many, text_of_many = run(line_of_many, many, timeout_s=60)
                except subprocess.TimeoutExpired:
                    failures, count = failures + 1, count + 1
                    print(f"{what}: does not end")
                    continue
                if count == 0 and code_of_many != code and "mpirun" in text_of_many and not many.exists():
                    print(f"MPI cannot start here:\n{text_of_many}")
                    return 77
                count += 1
                if arguments.spoil:
                    rows = bytearray((many / "trajectory.csv").read_bytes())
                    rows[-3] ^= 1
                    (many / "trajectory.csv").write_bytes(rows)
                found = list(differences(one, many))
                if code != 0:
                    found.append(f"ends with {code}: {text}")
                elif damped and facts(one / "summary.json")["energy"]["numerical_dissipation_J"] <= 0:
                    found.append("nothing was damped")
                elif code_of_many != code:
                    found.append(f"ends with {code_of_many} on ranks: {text_of_many}")
                if found:
                    failures += 1
                    print(f"{what}:")
                    for each in found:
                        print("   ", each)
                sys.stdout.flush()
                shutil.rmtree(folder)
            seed += 1
            if time.monotonic() >= end:
                break
    print(f"{count} runs compared, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs random models with `portwave run` as it comes, and with SciPy: does what the summary says hold?

SILENT   a state is off in a row, beside its range, by more than three times what the summary tells and more than 1e-6,
         and `--strict` would pass.
ALARM    `--strict` would fail, and all states are right to 1e-4, or to a hundredth of what is told.
FAILURE  portwave ends with an error where SciPy does not.
Each is a finding until it is understood. Ends with 1 where a run was silent or failed, or where none was compared.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy.integrate import solve_ivp

from mechanics import drive, heat, masses
from models import logarithmic
from networks import network

KINDS = {"circuits": network, "fluids": partial(network, is_hydraulic=True), "drives": drive, "masses": masses,
         "heat": heat}


def reference(model, times, tolerance=1e-9, evaluations=50_000):
    """States at `times`, by SciPy between the breaks, by no more than so many evaluations."""
    left = evaluations

    def rate(t, z):
        nonlocal left
        left -= 1
        if left < 0:
            raise ArithmeticError("the reference takes too long")
        return model.rhs(min(t, last), z * scale) / scale

    y, rows, begin = np.array(model.start), [np.array(model.start)], times[0]
    for to in [*sorted(t for t in model.breaks if begin < t < times[-1]), times[-1]]:
        last = to - 1e-13 * to  # inputs at a jump are those behind it
        asked, scale = np.minimum(times[(times > begin) & (times <= to)], last), np.maximum(abs(y), 1e-3)
        for method in ("Radau", "BDF", "LSODA"):
            done = solve_ivp(rate, (begin, last), y / scale, method, rtol=tolerance, atol=1e-3 * tolerance,
                             t_eval=np.unique([*asked, last]))
            if done.success:
                break
        else:
            raise ArithmeticError(done.message)
        values = done.y.T * scale
        rows += list(values[np.searchsorted(done.t, asked)])
        y, begin = values[-1], to
    return np.array(rows)


def scenario_of(model, rng, options):
    count, tolerance = int(logarithmic(rng, 8, 400)), logarithmic(rng, 1e-8, 1e-2)
    time, outputs = {"step_s": model.second / count, "steps": count}, {"observe": model.names}
    if options.adaptive:
        time = {"step": {"kind": "adaptive", "tolerance": tolerance}, "end_s": model.second}
        outputs["every_s"] = model.second / count
    method = {"method": {"kind": "auto", "stages": options.stages}} if options.stages else {}
    return {"name": "random", "time": time, "subsystems": model.parts, "couplings": model.couplings,
            "outputs": outputs, **method}


def errors(model, rows, want):
    """Beside the range of a state, or a thousandth of the largest one of its kind; rounding is no error."""
    ranges, sizes = np.maximum(np.ptp(rows, axis=0), np.ptp(want, axis=0)), abs(want).max(axis=0)
    same = np.equal.outer(np.array(model.kinds), np.array(model.kinds))
    least = np.maximum((same * ranges).max(axis=1) * 1e-3, (same * sizes).max(axis=1) * 1e-6)
    return np.maximum(abs(rows - want) - 1e-12 * sizes, 0.0) / np.maximum(np.maximum(ranges, least), 1e-6)


def judge(model, rows, summary, text):
    times, impulses = rows[:, 0] / model.second, (summary["impulses"] or {"first": []})["first"]
    if any(own["time_s"] == rows[0, 0] for own in impulses):  # the first row is that behind what it tells
        want = reference(model, np.insert(times, 1, times[0] + 1e-7 * (times[1] - times[0])))[1:]
    else:
        want = reference(model, times)
    off = errors(model, rows[:, 1:] / model.unit, want)
    row, state = np.unravel_index(np.argmax(off), off.shape)
    error, told = off[row, state], summary["agreement"] or {"error": np.inf, "instant": {"error": 0.0}}
    told = max(told["error"] or np.inf, told["instant"]["error"] or np.inf) if told["error"] != 0 else 0.0
    line = f"{model.names[state]} in row {row} of {len(rows) - 1}: error {error:.3g}, told {told:.3g}"
    if not summary["all_well"]:
        words = ("NOT", "POOR", "VIOLATED", "poor", ", but ")
        why = [" ".join(own.split())[:160] for own in text.splitlines() if any(word in own for word in words)]
        is_right = error < 1e-4 or error < min(told / 100, 0.01)
        return ("ALARM", line + "; " + " | ".join(why)) if is_right else ("told", "")
    return ("SILENT", line) if error > max(3 * told, 1e-6) else ("right", "")


def run(program, folder):
    """(exit code, what it printed, the summary, its rows) of scenario.json in the folder; the last two None on failure."""
    try:
        done = subprocess.run([program, "run", folder + "/scenario.json", "--out", folder + "/out"], capture_output=True,
                              text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return -1, "no end within 20 s", None, None
    if done.returncode not in (0, 1):
        return done.returncode, done.stderr, None, None
    with open(folder + "/out/summary.json") as f:
        summary = json.load(f)
    rows = np.loadtxt(folder + "/out/trajectory.csv", delimiter=",", skiprows=1, ndmin=2)
    return done.returncode, done.stderr, summary, rows


def check(kind, options, seed):
    """(verdict, a line)."""
    warnings.simplefilter("ignore")
    rng = random.Random(f"{kind} {seed}")
    model = KINDS[kind](rng)
    scenario = scenario_of(model, rng, options)
    if not model.names:
        return "no states", ""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "scenario.json"), "w") as f:
            json.dump(scenario, f, indent=1)
        code, text, summary, rows = run(options.program, folder)
        try:
            if code in (0, 1):
                if options.doctor:
                    rows[-1, 1:] += 0.5 * np.ptp(rows[:, 1:], axis=0) + np.array(model.unit)
                verdict, line = judge(model, rows, summary, text)
            else:
                reference(model, np.array([0.0, 1.0]))
                verdict, line = "FAILURE", " ".join(text.split())[:300]
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            verdict, line = "no reference", ""
    if line and options.keep:
        os.makedirs(options.keep, exist_ok=True)
        with open(os.path.join(options.keep, f"{verdict}_{kind}_{seed}.json"), "w") as f:
            json.dump(scenario, f, indent=1)
    return verdict, line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/dev/bin/portwave")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=20, help="of each kind")
    parser.add_argument("--stages", type=int, help="of the method; a run without it takes 1")
    parser.add_argument("--adaptive", action="store_true", help="steps that choose their size")
    parser.add_argument("--doctor", action="store_true", help="changes the last row: it must be found")
    parser.add_argument("--keep", help="a folder for the scenarios of what is found")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    counts, seeds = {}, range(options.seed, options.seed + options.cases)
    with ProcessPoolExecutor(options.jobs) as pool:
        for kind in KINDS if options.kind == "all" else [options.kind]:
            for seed, (verdict, line) in zip(seeds, pool.map(partial(check, kind, options), seeds)):
                counts[verdict] = counts.get(verdict, 0) + 1
                if line:
                    print(f"{verdict} {kind} {seed}: {line}", flush=True)
    print("; ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))
    is_compared = counts.get("right") or counts.get("told") or counts.get("ALARM")
    return 1 if counts.get("SILENT") or counts.get("FAILURE") or not is_compared else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs random models in several systems of units that differ by powers of two: what `portwave run` says must be the same.

UNITS    the verdict differs, or a state by more than 1e-5 of the range of its kind.
Ends with 1 where there is one, or where nothing was compared.
"""
import argparse
import json
import os
import random
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

import models
from run import KINDS, run, scenario_of

# Of time and of two more quantities, such as volt and ampere: microseconds and megohms, pressures and flows as in pipes,
# much power, and gigawatts in a fraction of a second.
SYSTEMS = {"mega": (2.0**-20, 1.0, 2.0**-20), "pipes": (1.0, 2.0**17, 2.0**-13), "power": (1.0, 2.0**8, 2.0**8),
           "short": (2.0**-10, 2.0**12, 2.0**18)}


def results(kind, seed, units, options):
    """(verdict and told errors, rows in units of the equations, kinds of states); None: it has no states, or failed."""
    models.fixed_units = iter(units)
    rng = random.Random(f"{kind} {seed}")
    model = KINDS[kind](rng)
    if not model.names:
        return None
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "scenario.json"), "w") as f:
            json.dump(scenario_of(model, rng, options), f)
        code, text, summary, rows = run(options.program, folder)
    if code not in (0, 1):
        return code, " ".join(text.split())[-200:], None, None
    told = summary["agreement"] or {"error": None}
    return (summary["all_well"], summary["certificate"]["status"]), told["error"], rows[:, 1:] / model.unit, model.kinds


def difference(here, there, name, options):
    """A line on how two runs differ; empty: they do not."""
    (verdict, told, rows, kinds), (other, other_told, other_rows, _) = here, there
    if verdict != other:
        return f"{name}: {verdict}, told {told}, and {other}, told {other_told}"
    if rows is None:
        return ""
    if options.doctor:
        other_rows = other_rows + 1e-3 * np.ptp(other_rows, axis=0) + 1e-3
    if rows.shape != other_rows.shape:
        return f"{name}: {len(rows)} rows and {len(other_rows)}"
    same = np.equal.outer(np.array(kinds), np.array(kinds))
    scale = np.maximum((same * np.ptp(rows, axis=0)).max(axis=1), 1e-3)  # in these units all is about 1
    off = (abs(rows - other_rows) / scale).max()
    if off > 1e-5:
        return f"{name}: states differ by {off:.2g}; told {told} and {other_told}"
    return ""


def check(kind, options, seed):
    here = results(kind, seed, (1.0,) * 3, options)
    if here is None:
        return None
    lines = [difference(here, results(kind, seed, units, options), name, options)
             for name, units in SYSTEMS.items()]
    return [line for line in lines if line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/dev/bin/portwave")
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--stages", type=int, help="of the method; a run without it takes 1")
    parser.add_argument("--adaptive", action="store_true", help="steps that choose their size")
    parser.add_argument("--doctor", action="store_true", help="changes the rows of one run: it must be found")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    found, compared, seeds = 0, 0, range(options.seed, options.seed + options.cases)
    with ProcessPoolExecutor(options.jobs) as pool:
        for seed, lines in zip(seeds, pool.map(partial(check, options.kind, options), seeds)):
            compared += lines is not None
            for line in lines or []:
                found += 1
                print(f"UNITS {options.kind} {seed}: {line}", flush=True)
    print(f"compared {compared}; UNITS {found}")
    return 1 if found or not compared else 0


if __name__ == "__main__":
    sys.exit(main())

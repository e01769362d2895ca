#!/usr/bin/env python3
"""Prints the golden numbers of tests/agreement/test_circuits.cpp from ngspice.

    apt-get install ngspice   (39)
    ngspice_golden.py

A ladder of coils and capacitors behind a resistor, a rectifier and a voltage doubler. ngspice integrates by the
trapezoidal rule, here with steps of at most STEP_s and half of that; the numbers printed are
extrapolated from the two by its second order, and what they differ by goes to standard error.
"""
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

OPTIONS = (".options reltol=1e-7 abstol=1e-14 vntol=1e-10 chgtol=1e-16 trtol=1 gmin=1e-12 "
           "method=trap temp=27 tnom=27 ")
LADDER = "\n".join(f"C{k} n{k} 0 100n\nL{k} n{k} m{k} 10m\nR{k} m{k} n{k + 1} 1"
                   for k in range(1, 11)) + "\nRL n11 0 300"
DIODE = ".model DM D(IS=1e-9 N=1.8)"
CIRCUITS = {
    "ladder": ("V1 in 0 SIN(0 10 1k)\nRS in n1 50\n" + LADDER, ["v(n1)", "v(n5)", "v(n10)", "i(l10)"],
               [2.5e-4, 5e-4, 7.5e-4, 1e-3, 2e-3], 4e-8),
    "half wave": (f"V1 in 0 SIN(0 10 50)\nRS in a 10\nD1 a out DM\nC1 out 0 10u\nRL out 0 1k\n{DIODE}",
                  ["v(out)"], [2e-3, 5e-3, 8e-3, 1.5e-2, 2.2e-2, 2.5e-2, 4e-2], 1e-6),
    "doubler": (f"V1 in 0 SIN(0 12 50)\nRS in a 5\nLS a p 1m\nD1 p top DM\nC1 top 0 47u\n"
                f"R1 top 0 500\nD2 low p DM\nC2 0 low 22u\nR2 0 low 800\n{DIODE}",
                ["v(top)", "-v(low)", "i(ls)"], [2e-3, 5e-3, 8e-3, 1.3e-2, 1.8e-2, 3e-2, 4e-2], 1e-6),
}


def values(net, quantities, times, step_s):
    """The quantities at the times, between ngspice's steps by a cubic through the nearest four."""
    with tempfile.TemporaryDirectory() as folder:
        raw = pathlib.Path(folder) / "run.raw"
        lets = "\n".join(f"let x{j} = {q}" for j, q in enumerate(quantities))
        names = " ".join(f"x{j}" for j in range(len(quantities)))
        (pathlib.Path(folder) / "run.cir").write_text(
            f"* golden\n{net}\n{OPTIONS}\n.control\nset filetype=ascii\n"
            f"tran {step_s!r} {times[-1] * 1.001!r} 0 {step_s!r} uic\n{lets}\n"
            f"write {raw} {names}\nquit\n.endc\n.end\n")
        done = subprocess.run(["ngspice", "-b", f"{folder}/run.cir"], capture_output=True, text=True)
        if not raw.exists():
            sys.exit(done.stdout + done.stderr)
        words = raw.read_text().split("Values:")[1].split()
    rows = np.array(words, dtype=float).reshape(-1, len(quantities) + 2)[:, 1:]
    out = []
    for t in times:
        at = min(max(np.searchsorted(rows[:, 0], t) - 2, 0), len(rows) - 4)
        near = rows[at:at + 4]
        weights = [np.prod([(t - near[j, 0]) / (near[k, 0] - near[j, 0]) for j in range(4) if j != k])
                   for k in range(4)]
        out.append(weights @ near[:, 1:])
    return np.array(out)


def thermal_voltage():
    """That of ngspice, from the current of a diode at 0.7 V."""
    text = (f"* thermal voltage\nV1 a 0 0.7\nD1 a 0 DM\n{DIODE}\n{OPTIONS}\n"
            ".control\nop\nset filetype=ascii\nlet x = -i(v1)\nwrite out.raw x\nquit\n.endc\n.end\n")
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "run.cir").write_text(text)
        subprocess.run(["ngspice", "-b", "run.cir"], cwd=folder, capture_output=True, check=False)
        current = float((pathlib.Path(folder) / "out.raw").read_text().split()[-1])
    return 0.7 / 1.8 / math.log1p(current / 1e-9)


def main():
    print(f"thermal voltage {thermal_voltage():.12g}")
    for name, (net, quantities, times, step_s) in CIRCUITS.items():
        coarse = values(net, quantities, times, step_s)
        fine = values(net, quantities, times, step_s / 2)
        print(name, *quantities)
        for t, a, b in zip(times, coarse, fine):
            print("    {" + ", ".join(f"{x:.12g}" for x in [t, *(b + (b - a) / 3)]) + "},")
        differ = abs(fine - coarse).max(axis=0)
        print(f"{name}: the step sizes differ by", *(f"{d:.1e}" for d in differ), file=sys.stderr)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A chain that no process has as a whole (examples/mpi/chain_in_slices.cpp): energies and states are the same bits on
one process and on several, and a process takes the memory of its own blocks.

usage: compare_slices.py PROGRAM MPIRUN [--break]

--break: one run has a block more, which must be noticed. Ends with 77 where MPI cannot start.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from compare_ranks import ENVIRONMENT  # noqa: E402

PROGRAM, MPIRUN = sys.argv[1], sys.argv[2]
failures = []


def run(ranks, *arguments):
    return subprocess.run([MPIRUN, "-n", str(ranks), PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          env=dict(os.environ, **ENVIRONMENT), timeout=300)


def expect(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what)


def results(done):
    """Energies and states, and the bytes of a block."""
    lines = done.stdout.splitlines()
    return lines[:2], float(re.search(r"(\d+) bytes a block", done.stdout).group(1))


def same_bits():
    for vary in (0, 0.2):
        blocks = 64 * 9 + 31
        one = results(run(1, blocks, 20, vary))[0]
        for ranks in (2, 3, 4):
            own = blocks + (1 if "--break" in sys.argv and (ranks, vary) == (3, 0.2) else 0)
            done = run(ranks, own, 20, vary)
            expect(done.returncode == 0, f"{ranks} ranks end with {done.returncode}: {done.stderr}")
            expect(results(done)[0] == one, f"{ranks} ranks differ from one with blocks varied by {vary}: {done.stdout}")


def same_memory():
    # What a process takes by itself counts little with so many blocks.
    blocks = 200_000
    one, alone = results(run(1, blocks, 2))
    for ranks in (2, 4):
        many, each = results(run(ranks, blocks, 2))
        expect(many == one, f"{ranks} ranks differ from one")
        expect(each <= 1.1 * alone, f"{each} bytes a block on {ranks} ranks, and {alone} on one")


def errors():
    done = run(2, 0, 1)
    expect(done.returncode == 2 and "usage" in done.stderr, f"no blocks: {done.returncode} {done.stderr}")
    done = run(2, 64, 1)
    expect(done.returncode != 0 and "a slice needs at least one part" in done.stderr,
           f"fewer slices than ranks: {done.returncode} {done.stderr}")


if subprocess.run([MPIRUN, "-n", "1", "true"], env=dict(os.environ, **ENVIRONMENT)).returncode != 0:
    sys.exit(77)
same_bits()
same_memory()
errors()
print(f"{len(failures)} failures")
sys.exit(len(failures) > 0)

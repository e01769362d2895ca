#!/usr/bin/env python3
"""Runs scenarios in one process and on several ranks, and compares what they write, byte by byte.

usage: compare_ranks.py PORTWAVE SOURCES MPIRUN [--ranks 1,2,3,4] [--threads 1,2] [--steps N] [--grain 2]
         [--memory KB,...] [--set /KEY=JSON]... [--break] [--square N | SCENARIO...]

All scenarios of the examples without SCENARIO; --square: a grid of N by N nodes, generated. --memory: what ranks
share, from the first rank on and then again from the first; 0: messages go through MPI. Of summary.json what tells of
the run's times and of how it was executed is left out. --break: one byte of a result is changed, which must be noticed.
Ends with 77 where MPI cannot start.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LEFT_OUT = {"execution", "threads", "wall_s", "times", "steps_per_s", "recording_wait_s", "overhead_bytes_per_part",
            "overhead_bytes", "real_time_factor"}
FILES = ["trajectory.csv", "energy.csv", "events.csv", "energy_parts.csv", "energy_junctions.csv", "network.json"]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_hwloc_base_binding_policy": "none"}


def facts(path):
    summary = json.loads(path.read_text())
    return {key: value for key, value in summary.items() if key not in LEFT_OUT}


def run(line, folder, timeout_s=240):
    environment = dict(os.environ, **ENVIRONMENT)
    done = subprocess.run([*line, "--out", str(folder), "--quiet"], capture_output=True, text=True,
                          env=environment, timeout=timeout_s)
    return done.returncode, done.stderr


def children_of(parent):
    """As /proc has them: not everywhere is there a pgrep."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2]
        except OSError:  # gone
            continue
        if int(after_name.split()[1]) == parent:
            yield int(process)


def ranks_of(launcher, program):
    """The processes of a program that it has started: itself, or by another process, as that of MPICH does."""
    found = []
    for child in children_of(launcher):
        try:
            is_rank = os.path.samefile(f"/proc/{child}/exe", program)
        except OSError:
            continue
        found += [child] if is_rank else ranks_of(child, program)
    return sorted(found)


def memory_script(folder, kilobytes):
    """What starts a program with its share of memory, by its rank."""
    script = folder / "with_memory.sh"
    cases = " ".join(f"{i}) kb={own} ;;" for i, own in enumerate(kilobytes))
    script.write_text("#!/bin/sh\n"
                      f"case $(( ${{OMPI_COMM_WORLD_RANK:-${{PMI_RANK}}}} % {len(kilobytes)} )) in {cases} esac\n"
                      'PORTWAVE_SHARED_MEMORY_KB=$kb exec "$@"\n')
    script.chmod(0o755)
    return [str(script)]


def differences(one, many):
    for name in FILES:
        a, b = one / name, many / name
        if a.exists() != b.exists():
            yield f"{name} is there once only"
        elif a.exists() and a.read_bytes() != b.read_bytes():
            yield f"{name} differs"
    if (one / "summary.json").exists() != (many / "summary.json").exists():
        yield "summary.json is there once only"
    elif (one / "summary.json").exists():
        a, b = facts(one / "summary.json"), facts(many / "summary.json")
        for key in a.keys() | b.keys():
            if a.get(key) != b.get(key):
                yield f"summary.json: {key}: {a.get(key)} and {b.get(key)}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("portwave")
    parser.add_argument("sources", type=Path)
    parser.add_argument("mpirun")
    parser.add_argument("--ranks", default="1,2,3,4")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--grain", default="2", help="small, so that small examples are cut, too")
    parser.add_argument("--memory", default="", help="kB by rank")
    parser.add_argument("--set", action="append", default=[], help="as of portwave run")
    parser.add_argument("--square", type=int)
    parser.add_argument("--break", dest="spoil", action="store_true")
    parser.add_argument("scenarios", nargs="*", type=Path)
    arguments = parser.parse_intermixed_args()
    scenarios = arguments.scenarios or sorted((arguments.sources / "examples").glob("*.json"))
    failures, count = 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        with_memory = memory_script(Path(scratch), arguments.memory.split(",")) if arguments.memory else []
        if arguments.square:
            scenarios = [Path(scratch) / "square.json"]
            size = str(arguments.square)
            subprocess.run([arguments.portwave, "generate", "grid", "--rows", size, "--columns", size, "--out",
                            str(scenarios[0])], check=True, capture_output=True)
        for scenario in scenarios:
            base = [arguments.portwave, "run", str(scenario), "--steps", str(arguments.steps), "--compare", "none",
                    *(f"--set={one}" for one in arguments.set)]
            one = Path(scratch) / scenario.stem
            code, text = run(base, one)
            for ranks in map(int, arguments.ranks.split(",")):
                for threads in arguments.threads.split(","):
                    many = Path(scratch) / f"{scenario.stem}-{ranks}-{threads}"
                    line = [arguments.mpirun, "-n", str(ranks), *with_memory, *base, "--threads", threads,
                            "--grain", arguments.grain]
                    code_of_many, text_of_many = run(line, many)
                    if count == 0 and code_of_many != code and "mpirun" in text_of_many and not many.exists():
                        print(f"MPI cannot start here:\n{text_of_many}")
                        return 77
                    count += 1
                    if arguments.spoil and (many / "trajectory.csv").exists():
                        rows = bytearray((many / "trajectory.csv").read_bytes())
                        rows[-3] ^= 1
                        (many / "trajectory.csv").write_bytes(rows)
                    found = list(differences(one, many))
                    if code_of_many != code:
                        found.append(f"ends with {code_of_many}, not {code}: {text_of_many}")
                    if found:
                        failures += 1
                        print(f"{scenario.name} ranks={ranks} threads={threads}:")
                        for what in found:
                            print("   ", what)
    print(f"{count} runs compared, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

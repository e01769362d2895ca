#!/usr/bin/env python3
"""What goes wrong on ranks: a failing part, different scenarios, a killed rank, signals, checkpoints that are gone on
with on another number of ranks.

usage: check_faults.py PORTWAVE SOURCES MPIRUN
"""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from compare_ranks import ENVIRONMENT, differences, ranks_of  # noqa: E402

PORTWAVE, SOURCES, MPIRUN = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
EXAMPLES = SOURCES / "examples"
failures = []


def environment():
    return dict(os.environ, **ENVIRONMENT)


def on_ranks(count, *arguments):
    return [MPIRUN, "-n", str(count), PORTWAVE, *map(str, arguments)]


def call(line, seconds=300):
    return subprocess.run(line, capture_output=True, text=True, env=environment(), timeout=seconds)


def expect(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what)


def a_part_fails(folder):
    """The same message as in one process, the same exit code, the same rows up to there."""
    scenario = json.loads((EXAMPLES / "chain_64.json").read_text())
    scenario.pop("$schema", None)
    # A force that grows beyond all numbers, in the middle of the chain.
    scenario["subsystems"][20]["inputs"] = {
        "force_3": {"kind": "table", "knots": [[0, 0], [0.5, 0], [0.6, 1e160], [2, 1e160]]}}
    path = folder / "failing.json"
    path.write_text(json.dumps(scenario))
    one = call([PORTWAVE, "run", path, "--compare", "none", "--out", folder / "one"])
    told = [line for line in one.stderr.splitlines() if "failed in step" in line]
    expect(one.returncode == 3 and bool(told), f"the part does not fail: {one.returncode} {one.stderr}")
    for ranks in (2, 3):
        many = call(on_ranks(ranks, "run", path, "--compare", "none", "--grain", "4", "--out", folder / f"many{ranks}"))
        expect(many.returncode == 3, f"a failing part: exit code {many.returncode}")
        expect(all(line in many.stderr for line in told), f"a failing part: {told} and {many.stderr!r}")
        for what in differences(folder / "one", folder / f"many{ranks}"):
            expect(False, f"a failing part: {what}")


def bad_input_is_told_once(folder):
    done = call(on_ranks(3, "run", EXAMPLES / "chain_64.json", "--set", "/method/kindd=auto"))
    expect(done.returncode == 2, f"bad input ends with {done.returncode}")
    expect(done.stderr.count("unknown key") == 1, f"bad input is told once: {done.stderr}")


def ranks_differ(folder):
    """Rank 1 reads another scenario."""
    other = folder / "other.json"
    text = (EXAMPLES / "chain_64.json").read_text()
    (folder / "first.json").write_text(text)
    scenario = json.loads(text)
    scenario["time"]["step_s"] *= 2
    other.write_text(json.dumps(scenario))
    script = folder / "run.sh"
    script.write_text("#!/bin/sh\nfile=first.json\n"
                      '[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK}}" = 1 ] && file=other.json\n'
                      f'exec "{PORTWAVE}" run "{folder}/$file"\n')
    script.chmod(0o755)
    done = call([MPIRUN, "-n", "3", script])
    expect(done.returncode == 3 and "rank 1" in done.stderr, f"different scenarios: {done.returncode} {done.stderr}")


def build_id_of(program):
    """Where the note of the linker has it."""
    at = program.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
    expect(at > 0, "the program has no build id")
    return at + 16


def programs_differ(folder):
    """Rank 1 runs another build: the same program, which the linker has called something else."""
    program = bytearray(Path(PORTWAVE).read_bytes())
    program[build_id_of(program)] ^= 1
    other = folder / "portwave"
    other.write_bytes(program)
    other.chmod(0o755)
    shutil.copy(Path(PORTWAVE).parent / "libportwave_mpi.so", folder)
    script = folder / "run_builds.sh"
    script.write_text(f"#!/bin/sh\nprogram=\"{PORTWAVE}\"\n"
                      f'[ "${{OMPI_COMM_WORLD_RANK:-${{PMI_RANK}}}}" = 1 ] && program="{other}"\n'
                      f'exec "$program" run "{EXAMPLES}/chain_64.json" --steps 10\n')
    script.chmod(0o755)
    done = call([MPIRUN, "-n", "3", script])
    expect(done.returncode == 3 and "builds of one version" in done.stderr and "rank 1" in done.stderr,
           f"different builds: {done.returncode} {done.stderr}")


def interrupted_run(line, out, how):
    """Starts it, sends a signal soon after its first checkpoint, and says whether that stopped it. None: it does not end."""
    shutil.rmtree(out, ignore_errors=True)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    while process.poll() is None and not (out / "checkpoint" / "last.checkpoint").exists():
        time.sleep(0.002)
    time.sleep(0.03)
    ranks = ranks_of(process.pid, PORTWAVE)
    try:
        if process.poll() is None and len(ranks) == 3:
            os.kill(ranks[-1] if how == signal.SIGKILL else process.pid, how)
        process.communicate(timeout=60)
    except ProcessLookupError:
        process.communicate()
    except subprocess.TimeoutExpired:
        process.kill()
        return None
    return process.returncode != 0 and (out / "checkpoint" / "last.checkpoint").exists()


def a_rank_is_killed(folder):
    """All end, soon; the run goes on with from its checkpoint on another number of ranks, to the same files."""
    for how in (signal.SIGKILL, signal.SIGTERM):
        steps, stopped = 5000, False
        out = folder / f"killed{int(how)}"
        while stopped is False and steps < 10_000_000:  # else it was done before the signal came: a longer one
            steps *= 2
            scenario = ["run", EXAMPLES / "chain_64.json", "--steps", steps, "--compare", "none", "--set", "/method/tolerance=0", "--set",
                        "/method/iterations=2", "--grain", "4", "--quiet"]
            stopped = interrupted_run(on_ranks(3, *scenario, "--out", out, "--checkpoint-every", "100"), out, how)
        if not stopped:
            expect(False, f"signal {int(how)}: the ranks {'do not end' if stopped is None else 'were not stopped'}")
            continue
        whole = folder / f"whole{int(how)}"
        expect(call([PORTWAVE, *map(str, scenario), "--out", str(whole)]).returncode == 0, "the whole run")
        for ranks_after in (2, 1):
            copy = folder / f"resumed{int(how)}-{ranks_after}"
            shutil.copytree(out, copy)
            done = call(on_ranks(ranks_after, "run", "--resume", copy, "--quiet"))
            expect(done.returncode == 0, f"resumed on {ranks_after}: {done.returncode} {done.stderr}")
            for what in differences(whole, copy):
                expect(False, f"signal {int(how)}, resumed on {ranks_after}: {what}")


def waves_that_are_late(folder):
    """Energy and tank of every recorded step stay below those of the start; the summary says what results depend on."""
    out = folder / "late"
    done = call(on_ranks(3, "run", EXAMPLES / "chain_64.json", "--steps", "400", "--grain", "4",
                         "--out", out, "--set", "/method/tolerance=0", "--set", "/method/iterations=3", "--set",
                         '/method/exchange={"kind": "asynchronous", "max_delay": 2}'))
    expect(done.returncode == 0, f"late waves: {done.returncode} {done.stderr}")
    expect("results depend on timing" in done.stdout + done.stderr, f"late waves: {done.stdout} {done.stderr}")
    with open(out / "energy.csv", encoding="utf-8") as file:
        rows = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    expect(len(rows) > 100, f"late waves: {len(rows)} rows")
    start = rows[0]["stored_J"] + rows[0]["tank_J"]
    for row in rows:  # nothing is supplied to the chain
        if row["stored_J"] + row["tank_J"] > start * (1 + 1e-12) or row["tank_J"] < -1e-14 * start:
            expect(False, f"late waves: energy from nowhere in step {row['step']}")
            break
    expect(rows[-1]["stored_J"] < start, "late waves: nothing moved")


def what_is_refused(folder):
    for line, word in ((["--deadline-us", "100"], "deadline"), (["--executor", "graph"], "graph")):
        done = call(on_ranks(2, "run", EXAMPLES / "chain_64.json", "--steps", "10", *line))
        expect(done.returncode == 2 and word in done.stderr, f"{line}: {done.returncode} {done.stderr}")


def other_commands_are_one_process(folder):
    done = call(on_ranks(3, "list", "mass"))
    expect(done.returncode == 0 and done.stdout.count("mass_kg") == call([PORTWAVE, "list", "mass"]).stdout.count("mass_kg"),
           "list says it once")


def a_program_of_ones_own(folder):
    program = Path(PORTWAVE).parent / "example_on_ranks"
    told = {call([MPIRUN, "-n", str(ranks), program, EXAMPLES / "chain_64.json"]).stdout for ranks in (1, 2, 3)}
    expect(len(told) == 1 and "after 1 s" in next(iter(told)), f"a program of one's own: {told}")


def main():
    if call([MPIRUN, "-n", "2", "true"]).returncode != 0:
        print("MPI cannot start here")
        return 77
    for check in (a_part_fails, bad_input_is_told_once, ranks_differ, programs_differ, a_rank_is_killed, waves_that_are_late, what_is_refused,
                  other_commands_are_one_process, a_program_of_ones_own):
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

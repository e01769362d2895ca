#!/usr/bin/env python3
"""`rank_study scaling` on processes: rows of the ranks that were started are measured, more are predicted,
and bad options are told.

usage: check_scaling.py RANK_STUDY SOURCES MPIRUN [--break]

--break: more ranks are expected to be measured than were started, which must be noticed. Ends with 77 where MPI cannot
start.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from compare_ranks import ENVIRONMENT  # noqa: E402

RANK_STUDY, SOURCES, MPIRUN = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
STARTED = 8 if "--break" in sys.argv else 2
STUDY = ["scaling", str(SOURCES / "examples" / "chain_64.json"), "--steps", "3", "--repetitions", "2", "--grain",
         "4"]
failures = []


def call(line, seconds=120):
    return subprocess.run(line, capture_output=True, text=True, env=dict(os.environ, **ENVIRONMENT), timeout=seconds)


def on_ranks(count, *arguments):
    return call([MPIRUN, "-n", str(count), RANK_STUDY, *map(str, arguments)])


def expect(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what)


def rows_are_measured_or_predicted(folder):
    done = on_ranks(2, *STUDY, "--ranks", "1,2,8", "--threads", "1,2", "--out", folder / "out")
    expect(done.returncode == 0, f"the study ends with {done.returncode}: {done.stderr}")
    expect(sorted(os.listdir(folder / "out")) == ["scaling.csv", "scaling.json"], "rows and study are written")
    study = json.loads((folder / "out" / "scaling.json").read_text())
    rows = study["rows"]
    expect([(row["ranks"], row["threads"]) for row in rows] == [(r, t) for r in (1, 2, 8) for t in (1, 2)], "all rows")
    for row in rows:
        source = "measured" if row["ranks"] <= STARTED else "predicted"
        expect(row["source"] == source, f"{row['ranks']} ranks are {row['source']}")
        expect(row["step_s"] > 0 and row["prediction"]["total_s"] > 0, f"{row['ranks']} ranks have times")
    expect(study["started_ranks"] == 2 and study["network"] == "measured" and len(study["messages"]) == 6,
           "messages between ranks 0 and 1 are measured")
    expect("2 ranks were started" in done.stderr and "predicted, not measured" in done.stderr,
           f"too few ranks are told: {done.stderr}")
    expect(done.stdout.count("predicted_us") == 1, "the table is told once")


def weak(folder):
    done = on_ranks(2, "scaling", "--generate", "chain", "--sizes", "40,80", "--ranks", "1,2", "--steps", "3",
                    "--repetitions", "2", "--latency-us", "3", "--json")
    expect(done.returncode == 0, f"weak scaling ends with {done.returncode}: {done.stderr}")
    study = json.loads(done.stdout)
    expect([row["size"] for row in study["rows"]] == [40, 80], "sizes grow with ranks")
    expect(study["network"] == "given" and abs(study["latency_s"] - 3e-6) < 1e-12, "the latency is as given")
    expect(study["predicted_curve"][-1]["ranks"] == 10000, "the curve has 10000 ranks")


def bad_options_are_told(_):
    for line, word in ((["--ranks", "0"], "0 is not in 1 to 10000"), (["--ranks", "x"], "must be"),
                       (["--ranks", "2", "--executor", "async"], "unknown option"),
                       (["--ranks", "2", "--set", "/method/kindd=auto"], "unknown key")):
        done = on_ranks(2, *STUDY, *line)
        expect(done.returncode == 2 and done.stderr.count(word) == 1, f"{line}: {done.returncode} {done.stderr}")
    done = call([RANK_STUDY, *STUDY, "--ranks", "1,2"])
    expect(done.returncode == 0 and "1 rank was started" in done.stderr, f"one process: {done.returncode} {done.stderr}")


def partitions_are_told_once(_):
    done = on_ranks(2, "partition", STUDY[1], "--ranks", "4")
    expect(done.returncode == 0 and done.stdout.count("speed-up") == 1, f"a partition: {done.stdout}{done.stderr}")


def main():
    if call([MPIRUN, "-n", "2", "true"]).returncode != 0:
        print("MPI cannot start here")
        return 77
    for check in (rows_are_measured_or_predicted, weak, bad_options_are_told, partitions_are_told_once):
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

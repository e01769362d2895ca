#!/usr/bin/env python3
"""Makes deliberate defects in the engine, one at a time, and sees which test notices.

  mutate.py --check                        every defect of mutants.toml still fits the sources
  mutate.py [--folder F] [NAME...]         build and test them: all, or those whose names contain NAME

The sources stay as they are: a copy of them in the folder (build/mutation) is changed, built and
tested. A mutant is caught when one of its test programs fails, crashes or outlasts its time. Prints a
line for each as it goes on, and writes the table as Markdown to results.md in the folder.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TIMEOUT_S = 300


def read_mutants():
    with open(HERE / "mutants.toml", "rb") as file:
        text = tomllib.load(file)
    return text["suites"], text["mutant"]


def defects(root, suites, mutants):
    """What is wrong with the list itself."""
    found = []
    names = [mutant["name"] for mutant in mutants]
    found += [f"{name}: the name is taken" for name in set(names) if names.count(name) > 1]
    for mutant in mutants:
        path = root / mutant["file"]
        count = path.read_text().count(mutant["find"]) if path.exists() else 0
        if count != 1:
            found.append(f"{mutant['name']}: its text is {count} times in {mutant['file']}, and should be once")
        if mutant["find"] == mutant["replace"]:
            found.append(f"{mutant['name']}: it changes nothing")
        found += [f"{mutant['name']}: no suite {suite}" for suite in mutant["tests"] if suite not in suites]
    return found


def copy_tree(tree):
    """The files that git has or would take, those that are equal being left alone."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, tree / name
        if not source.is_file():
            continue
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


class Build:
    def __init__(self, folder, tree, jobs):
        self.tree = tree
        self.jobs = jobs
        self.log = folder / "build.log"

    def configure(self, alone):
        self.run(["cmake", "--preset", "dev", "-DPORTWAVE_BUILD_PYTHON=OFF", "-DPORTWAVE_BUILD_C=OFF",
                  "-DPORTWAVE_BUILD_BENCHMARKS=OFF",
                  "-DPORTWAVE_COMPILE_ALONE=" + ";".join(sorted(alone))], check=True)

    def make(self, targets):
        """Whether it could be built."""
        return self.run(["cmake", "--build", "build/dev", "--parallel", str(self.jobs),
                         "--target", *sorted(targets)])

    def run(self, command, check=False):
        with open(self.log, "w") as log:
            good = subprocess.run(command, cwd=self.tree, stdout=log, stderr=log).returncode == 0
        if check and not good:
            sys.exit(f"failed: {' '.join(command)}, see {self.log}")
        return good

    def first_failure(self, suite):
        """What fails first in a suite; empty: nothing."""
        command = ["./build/dev/bin/" + suite["program"], *suite.get("arguments", [])]
        if "filter" in suite:
            command += ["--gtest_filter=" + suite["filter"], "--gtest_fail_fast", "--gtest_brief=1"]
        try:
            done = subprocess.run(command, cwd=self.tree, capture_output=True, text=True, errors="replace",
                                  timeout=suite.get("timeout_s", TIMEOUT_S))
        except subprocess.TimeoutExpired:
            return f"{suite['program']} does not end"
        if done.returncode == 0:
            return ""
        text = done.stdout + done.stderr
        if failed := re.search(r"^\[  FAILED  \] ([^\s,]+)", text, re.M):
            return failed[1]
        if wrong := re.search(r"WRONG: (.*)", text):
            return f"{suite['program']}: {wrong[1][:60]}"
        return f"{suite['program']} ends with {done.returncode}"


def judge(build, suites, mutant):
    """The outcome, in a word or the name of a test."""
    path = build.tree / mutant["file"]
    original = path.read_text()
    path.write_text(original.replace(mutant["find"], mutant["replace"]))
    try:
        for name in mutant["tests"]:
            if not build.make({suites[name]["program"]}):
                return "does not compile"
            if failure := build.first_failure(suites[name]):
                return failure
        return "NOT CAUGHT"
    finally:
        path.write_text(original)


def table(rows):
    lines = ["| defect | law that it breaks | noticed by |", "|---|---|---|"]
    for mutant, outcome in rows:
        why = f"**not caught**: {mutant['harmless']}" if "harmless" in mutant and outcome == "NOT CAUGHT" else outcome
        lines.append(f"| `{mutant['name']}` | {mutant['law']} | {why} |")
    return "\n".join(lines) + "\n"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what is changed is put right
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--root", type=pathlib.Path, default=ROOT, help="the sources that --check looks at")
    arguments.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutation")
    arguments.add_argument("--tree", type=pathlib.Path, help="the copy of the sources, FOLDER/tree")
    arguments.add_argument("--trust", action="store_true", help="the suites are known to pass without a defect")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments.add_argument("names", nargs="*")
    given = arguments.parse_args()
    suites, mutants = read_mutants()
    wrong = defects(given.root, suites, mutants)
    print("\n".join(wrong) if wrong else f"{len(mutants)} defects fit the sources", flush=True)
    if wrong or given.check:
        return 1 if wrong else 0

    chosen = [m for m in mutants if not given.names or any(name in m["name"] for name in given.names)]
    given.folder.mkdir(parents=True, exist_ok=True)
    build = Build(given.folder.resolve(), (given.tree or given.folder / "tree").resolve(), given.jobs)
    copy_tree(build.tree)
    build.configure({m["file"] for m in mutants if m["file"].endswith(".cpp")})
    used = {name for mutant in chosen for name in mutant["tests"]}
    if not build.make({suites[name]["program"] for name in used}):
        sys.exit(f"the sources themselves cannot be built, see {build.log}")
    for name in sorted(used) if not given.trust else []:
        if failure := build.first_failure(suites[name]):
            sys.exit(f"without a defect, too, the suite {name} fails: {failure}")

    rows = []
    for mutant in chosen:
        start = time.monotonic()
        rows.append((mutant, judge(build, suites, mutant)))
        print(f"{mutant['name']:<44} {rows[-1][1]}  ({time.monotonic() - start:.0f} s)", flush=True)
        (given.folder / "results.md").write_text(table(rows))
    missed = [m["name"] for m, outcome in rows if outcome == "NOT CAUGHT" and "harmless" not in m]
    print(f"{len(rows)} defects, {sum(o not in ('NOT CAUGHT', 'does not compile') for _, o in rows)} caught; "
          f"not caught, and not known to be harmless: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compares what two builds of portwave write, bit by bit.

    golden_outputs.py record BINARY golden.json      run everything, keep a hash of every output
    golden_outputs.py compare golden.json new.json   list what differs; exit code 1 if anything does
    golden_outputs.py show BINARY CASE               run one case and print its outputs, for a diff

A case is a scenario, a method, an executor with its threads, and an instruction set. The scenarios
are all of examples/*.json and some small networks of `portwave generate`; steps are few, so that
the whole takes about half a minute. Recorded are stdout, the exit code, the files of --out, and stderr
where a run is refused. Times, rates of steps and paths are left out.

Recordings are comparable only on one kind of machine: the mathematical functions of the C library
need not round alike elsewhere.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = "20"

GENERATED = {
    "chain": ["chain", "--blocks", "12", "--masses", "3", "--vary", "0.3"],
    "chain_uniform": ["chain", "--blocks", "9", "--impedance", "0.3"],
    "ring": ["ring", "--blocks", "10", "--step", "0.02"],
    "grid": ["grid", "--rows", "4", "--columns", "5"],
    "star": ["star", "--limbs", "7"],
    "imbalanced": ["imbalanced", "--parts", "6", "--factor", "10"],
}


UNIFORM = {"kind": "uniform", "value": 0.5}


def wave_method(kind, **entries):
    return {"kind": kind, **entries}


# "own" is the scenario's method. Every other one replaces it.
METHODS = {
    "own": None,
    "dr": wave_method("douglas-rachford", iterations=6, impedance=UNIFORM),
    "dr_relaxed": wave_method("douglas-rachford", iterations=40, relaxation=1.4, tolerance=1e-9,
                              impedance={"kind": "matched"}),
    "dr_none": wave_method("douglas-rachford", iterations=0, impedance=UNIFORM),
    "dr_per_part": wave_method("douglas-rachford", iterations=60, tolerance=1e-8,
                               tolerance_per_part=True, impedance={"kind": "fne"}),
    "dr_accelerated": wave_method("douglas-rachford", iterations=50, tolerance=1e-10,
                                  acceleration=5, impedance={"kind": "leaf"}),
    "pr": wave_method("peaceman-rachford", iterations=4, impedance={"kind": "matched"}),
    "pr_averaged": wave_method("peaceman-rachford", iterations=30, relaxation=0.6,
                               energy_tolerance_J=1e-12, impedance={"kind": "adapted"}),
    "pr_accelerated": wave_method("peaceman-rachford", iterations=60, tolerance=1e-10,
                                  relaxation=0.9, acceleration=4, impedance=UNIFORM),
    "pr_guarded": wave_method("peaceman-rachford", iterations=2, guard=True,
                              tank={"initial_J": 0.0}, impedance=UNIFORM),
    "interface": wave_method("interface", iterations=20, tolerance=1e-11),
    "auto": wave_method("auto"),
    "auto_late": wave_method("auto", iterations=12, tolerance=1e-12),
    "auto_stages_2": wave_method("auto", stages=2),
    "auto_stages_3": wave_method("auto", stages=3),
    "dr_stages_3": wave_method("douglas-rachford", iterations=8, stages=3, guard=True,
                               impedance={"kind": "matched"}),
    "strang": wave_method("strang"),
    "lions_mercier": wave_method("lions-mercier", iterations=8, window_steps=5),
    "jacobi": wave_method("jacobi", iterations=8, window_steps=5),
    "gauss_seidel": wave_method("gauss-seidel", iterations=8, window_steps=5),
}

EXECUTORS = {
    "serial": ["--executor", "serial"],
    "auto": ["--executor", "auto", "--threads", "2"],
    "async1": ["--executor", "async", "--threads", "1", "--grain", "part"],
    "async2": ["--executor", "async", "--threads", "2", "--grain", "2"],
    "graph2": ["--executor", "graph", "--threads", "2", "--grain", "part"],
}

INSTRUCTION_SETS = {"baseline": "baseline", "v3": "x86-64-v3", "v4": "x86-64-v4"}

# Once per scenario, at the machine's best instruction set: what is not a run.
OTHERS = {
    "certified_dr": ["run", None, "--certify", "full", "--json", "--quiet", "--steps", "5",
                     "--set", "/method=" + json.dumps(METHODS["dr"])],
    "certified_pr": ["run", None, "--certify", "full", "--json", "--quiet", "--steps", "5",
                     "--set", "/method=" + json.dumps(METHODS["pr_averaged"])],
    "certified_interface": ["run", None, "--certify", "full", "--json", "--quiet", "--steps", "5",
                            "--set", "/method=" + json.dumps(METHODS["interface"])],
    "tune": ["tune", None, "--json", "--set", "/method=" + json.dumps(METHODS["dr"])],
    "tune_pr": ["tune", None, "--json", "--set",
                "/method=" + json.dumps(METHODS["pr_accelerated"])],
    "rate": ["study", "rate", None, "--steps", "3", "--json", "--set",
             "/method=" + json.dumps(METHODS["dr_relaxed"])],
    "rate_averaged": ["study", "rate", None, "--steps", "3", "--json", "--set",
                      "/method=" + json.dumps(METHODS["pr_accelerated"])],
    "budget": ["study", "budget", None, "--budgets", "0,1,3", "--steps", "10", "--json",
               "--methods", "douglas-rachford,peaceman-rachford,interface,auto",
               "--set", "/method=" + json.dumps(METHODS["dr"])],
    "iteration": ["study", "iteration", None, "--iterations", "5", "--json",
                  "--set", "/method=" + json.dumps(METHODS["lions_mercier"])],
    "tune_text": ["tune", None, "--set", "/method=" + json.dumps(METHODS["dr_relaxed"])],
    "rate_text": ["study", "rate", None, "--steps", "2", "--set",
                  "/method=" + json.dumps(METHODS["pr"])],
    "refused_relaxation": ["run", None, "--set", "/method=" + json.dumps(
        {**METHODS["pr"], "relaxation": 1.5})],
    "adaptive": ["run", None, "--json", "--quiet", "--steps", "10", "--set",
                 '/time/step={"kind": "adaptive", "tolerance": 1e-5}',
                 "--set", '/method={"kind": "auto"}'],
    "adaptive_stages_3": ["run", None, "--json", "--quiet", "--steps", "10", "--set",
                          '/time/step={"kind": "adaptive", "tolerance": 1e-6}',
                          "--set", '/method={"kind": "auto", "stages": 3}'],
    "validate": ["validate", None],
}

# Entries of JSON outputs that no two runs have in common. What ran on how many threads belongs to
# the case, and with --executor auto to the clock.
VOLATILE = {"wall_s", "recording_wait_s", "steps_per_s", "real_time_factor", "times", "execution", "threads"}


def without_volatile(value):
    if isinstance(value, dict):
        return {k: without_volatile(v) for k, v in value.items() if k not in VOLATILE}
    if isinstance(value, list):
        return [without_volatile(v) for v in value]
    return value


def stable_text(data):
    """The bytes of an output without its volatile entries. Numbers stay as they were spelled."""
    text = data.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_float=str)
    except ValueError:
        return text
    return json.dumps(without_volatile(value), indent=1)


def run(binary, arguments, isa, folder):
    """Outputs of one run, by name."""
    environment = dict(os.environ, PORTWAVE_ISA=isa)
    done = subprocess.run([binary, *arguments], cwd=ROOT, env=environment, capture_output=True,
                          check=False, timeout=120)
    outputs = {"exit": str(done.returncode), "stdout": stable_text(done.stdout)}
    if done.returncode not in (0, 1):
        outputs["stderr"] = done.stderr.decode("utf-8", "replace").replace(str(folder), "")
    if folder is not None:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                outputs[path.name] = stable_text(path.read_bytes())
    return outputs


def supported_sets(binary, scenario):
    """The instruction sets that this machine does not quietly replace by a smaller one."""
    found = []
    for name, reported in INSTRUCTION_SETS.items():
        done = subprocess.run(
            [binary, "run", str(scenario), "--steps", "1", "--json", "--quiet"], cwd=ROOT,
            env=dict(os.environ, PORTWAVE_ISA=name), capture_output=True, check=True)
        if json.loads(done.stdout)["execution"]["instruction_set"] == reported:
            found.append(name)
    return found


def scenarios(binary, folder):
    out = {p.stem: p.relative_to(ROOT) for p in sorted((ROOT / "examples").glob("*.json"))}
    for name, arguments in GENERATED.items():
        path = pathlib.Path(folder) / f"generated_{name}.json"
        subprocess.run([binary, "generate", *arguments, "--out", str(path)], check=True,
                       capture_output=True)
        out[f"generated_{name}"] = path
    islands = pathlib.Path(folder) / "generated_islands.json"
    islands.write_text(json.dumps(several_islands(
        [ROOT / path for path in (out["generated_ring"], out["published_douglas_rachford"],
                                  out["generated_chain"], out["generated_grid"],
                                  out["published_douglas_rachford"])])))
    out["generated_islands"] = islands
    return out


def several_islands(paths):
    """Scenarios side by side in one: islands that stop after different numbers of evaluations."""
    whole = {"name": "islands", "time": {"step_s": 0.01, "end_s": 1.0}, "subsystems": [],
             "couplings": [], "method": METHODS["dr"]}
    for number, path in enumerate(paths):
        one = json.loads(path.read_text())
        for part in one["subsystems"]:
            whole["subsystems"].append({**part, "name": f"i{number}_{part['name']}"})
        for coupling in one["couplings"]:
            ports = [f"i{number}_{port}" for port in coupling["ports"]]
            whole["couplings"].append({**coupling, "ports": ports})
    return whole


def all_cases(binary, folder):
    """(name, arguments, instruction set, writes files) of every case."""
    files = scenarios(binary, folder)
    sets = supported_sets(binary, next(iter(files.values())))
    cases = []
    for scenario, path in files.items():
        own = json.loads((ROOT / path).read_text()).get("method", {})
        for method, value in METHODS.items():
            arguments = ["run", str(path), "--steps", STEPS, "--json", "--quiet"]
            if value is not None:
                arguments += ["--set", "/method=" + json.dumps(value)]
            elif "window_steps" in own:
                arguments += ["--set", "/method/window_steps=10"]
            for executor, options in EXECUTORS.items():
                for isa in sets:
                    # The other executors add nothing to an instruction set but the last.
                    if isa != sets[-1] and executor not in ("serial", "async2"):
                        continue
                    cases.append((f"{scenario} {method} {executor} {isa}", arguments + options, isa,
                                  True))
        for other, template in OTHERS.items():
            arguments = [str(path) if a is None else a for a in template]
            cases.append((f"{scenario} {other} - {sets[-1]}", arguments, sets[-1], False))
    cases.append((f"- schema - {sets[-1]}", ["schema"], sets[-1], False))
    cases.append((f"- list - {sets[-1]}", ["list"], sets[-1], False))
    for name, arguments in GENERATED.items():
        cases.append((f"generated_{name} generate - {sets[-1]}", ["generate", *arguments], sets[-1],
                      False))
    return cases


def run_case(binary, case):
    _, arguments, isa, writes = case
    if not writes:
        return run(binary, arguments, isa, None)
    with tempfile.TemporaryDirectory() as folder:
        return run(binary, arguments + ["--out", folder], isa, folder)


def record(binary, target, jobs):
    # One fixed folder, since the paths of generated scenarios show in messages.
    with tempfile.TemporaryDirectory() as folder:
        link = pathlib.Path(tempfile.gettempdir()) / "portwave_golden_scenarios"
        link.unlink(missing_ok=True)
        link.symlink_to(folder)
        try:
            cases = all_cases(binary, link)
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                results = list(pool.map(lambda case: run_case(binary, case), cases))
        finally:
            link.unlink()
    hashes = {}
    for case, outputs in zip(cases, results):
        hashes[case[0]] = {name: hashlib.sha256(text.encode()).hexdigest()
                           for name, text in outputs.items()}
    pathlib.Path(target).write_text(json.dumps(hashes, indent=1, sort_keys=True) + "\n")
    refused = sum(outputs["exit"] not in ("0", "1") for outputs in results)
    print(f"{len(hashes)} cases, {refused} of them refused or failed, "
          f"{sum(len(h) for h in hashes.values())} outputs")
    return 0


def compare(first, second):
    old, new = (json.loads(pathlib.Path(p).read_text()) for p in (first, second))
    differences = []
    for case in sorted(old.keys() | new.keys()):
        if case not in old or case not in new:
            differences.append(f"{case}: only in {first if case in old else second}")
            continue
        names = [n for n in sorted(old[case].keys() | new[case].keys())
                 if old[case].get(n) != new[case].get(n)]
        if names:
            differences.append(f"{case}: {', '.join(names)}")
    for line in differences:
        print(line)
    print(f"{len(differences)} differences in {len(old.keys() | new.keys())} cases")
    return 1 if differences else 0


def show(binary, name):
    with tempfile.TemporaryDirectory() as folder:
        for case in all_cases(binary, folder):
            if case[0] != name:
                continue
            for output, text in run_case(binary, case).items():
                print(f"== {output}\n{text}")
            return 0
    print(f"there is no case {name!r}", file=sys.stderr)
    return 2


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recorder = verbs.add_parser("record", help="run everything and write the hashes")
    recorder.add_argument("binary")
    recorder.add_argument("target")
    recorder.add_argument("--jobs", type=int, default=2, help="runs at once")
    comparer = verbs.add_parser("compare", help="compare two recordings")
    comparer.add_argument("first")
    comparer.add_argument("second")
    shower = verbs.add_parser("show", help="run one case and print its outputs")
    shower.add_argument("binary")
    shower.add_argument("case")
    options = parser.parse_args()
    if options.verb == "record":
        return record(os.path.abspath(options.binary), options.target, options.jobs)
    if options.verb == "compare":
        return compare(options.first, options.second)
    return show(os.path.abspath(options.binary), options.case)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Records scenarios as HDF5 in one process and, with a file per rank, on several, and compares what h5py reads: groups,
datasets, types, attributes, and values bit by bit.

usage: compare_hdf5.py PORTWAVE SOURCES MPIRUN [--ranks 1,2,3,4] [--break value|attribute|missing] [SCENARIO...]

--break: a value in the file of the last rank is changed, or an attribute of the main file, or a file of a rank is away;
each must be noticed. Ends with 77 where MPI cannot start or h5py is not there.
"""

import argparse
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
from compare_ranks import ENVIRONMENT, ranks_of  # noqa: E402

try:
    import h5py
    import numpy
except ImportError:
    print("h5py is not there")
    sys.exit(77)

HDF5 = ["--set", '/outputs/format="hdf5"']
PER_RANK = [*HDF5, "--set", "/outputs/per_rank=true"]
failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what)


def call(line, seconds=200):
    return subprocess.run([str(word) for word in line], capture_output=True, text=True, timeout=seconds,
                          env=dict(os.environ, **ENVIRONMENT))


def plain(value):
    """References of scales differ from file to file: of them the number counts."""
    if isinstance(value, numpy.ndarray) and value.dtype.hasobject or isinstance(value, numpy.void):
        return len(numpy.atleast_1d(value))
    return value if isinstance(value, (str, bytes)) else numpy.asarray(value).tolist()


def content(path):
    """What somebody sees who reads the file: bytes, attributes and scales, by the names of datasets."""
    out = {}
    with h5py.File(path) as file:
        def note(name, thing):
            out[name, "attributes"] = {key: plain(value) for key, value in thing.attrs.items()}
            if not isinstance(thing, h5py.Dataset):
                return
            out[name, "form"] = (thing.shape, thing.dtype.str)
            out[name, "scales"] = [[scale.name for scale in axis.values()] for axis in thing.dims]
            values = thing[()]
            out[name, "values"] = values.tolist() if thing.dtype.hasobject else values.tobytes()
        out["", "attributes"] = dict(file.attrs)
        file.visititems(note)
    return out


def virtual_files(path):
    files = set()
    with h5py.File(path) as file:
        def note(_, thing):
            if isinstance(thing, h5py.Dataset) and thing.is_virtual:
                files.update(source.file_name for source in thing.virtual_sources())
        file.visititems(note)
    return files


def differences(one, many):
    a, b = content(one), content(many)
    return [f"{'/'.join(key)} differs" for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)]


def wide(folder):
    """More columns than there are datasets for: one matrix."""
    path = folder / "wide.json"
    made = call([arguments.portwave, "generate", "chain", "--blocks", "600", "--out", path])
    expect(made.returncode == 0, f"generate: {made.stderr}")
    return path


def spoil(how, many):
    main = many / "results.h5"
    last = sorted(virtual_files(main))[-1]
    if how == "value":
        with h5py.File(many / last, "r+") as file:
            name = [own for own in file["trajectory"] if own != "time_s"][-1]
            values = file["trajectory"][name]
            values[values.shape[0] - 1] = numpy.nextafter(values[values.shape[0] - 1], 2.0)
    elif how == "attribute":
        with h5py.File(main, "r+") as file:
            name = [own for own in file["trajectory"] if own != "time_s"][-1]
            file["trajectory"][name].attrs["units"] = "pints"
    elif how == "missing":
        (many / last).unlink()


def same_content(scratch, scenarios):
    for scenario in scenarios:
        for extra in ([], ["--set", "/outputs/every=7", "--set", "/outputs/envelope=true", "--set",
                           "/outputs/energies=true"]):
            base = [arguments.portwave, "run", scenario, "--steps", "40", "--quiet", "--compare", "none", *extra]
            one = scratch / "one"
            done = call([*base, *HDF5, "--out", one])
            if "/outputs/energies" in done.stderr or "end_s" in done.stderr:
                continue
            expect(done.returncode in (0, 1), f"{scenario.name}: {done.stderr}")
            for ranks in map(int, arguments.ranks.split(",")):
                many = scratch / f"many{ranks}"
                shutil.rmtree(many, ignore_errors=True)
                line = [arguments.mpirun, "-n", ranks, *base, *PER_RANK, "--grain", "2", "--out", many]
                done = call(line)
                what = f"{scenario.name} ranks={ranks} {' '.join(extra)}"
                expect(done.returncode in (0, 1), f"{what}: {done.stderr}")
                files = virtual_files(many / "results.h5")
                on_disk = {path.name for path in many.glob("results.rank-*")}
                expect(files == on_disk, f"{what}: refers to {files}, and there are {on_disk}")
                if arguments.spoil:
                    spoil(arguments.spoil, many)
                # Elsewhere, and from another folder, it is the same.
                moved = scratch / "moved"
                shutil.rmtree(moved, ignore_errors=True)
                many.rename(moved)
                found = differences(one / "results.h5", moved / "results.h5")
                expect(not found, f"{what}: {found[:5]}")
            shutil.rmtree(one)


def goes_on_with_other_ranks(scratch):
    """A run that is ended again and again, and goes on with other ranks, has the rows of one that was not."""
    base = ["run", arguments.sources / "examples/chain_64.json", "--steps", "20000", "--quiet", "--set",
            "/outputs/every=20", "--set", "/outputs/envelope=true", "--set", "/method/tolerance=0", "--set",
            "/method/iterations=2", "--set", '/outputs/observe=["*.storage"]', "--grain", "2"]
    one, out = scratch / "whole", scratch / "stopped"
    expect(call([arguments.portwave, *base, *HDF5, "--out", one]).returncode == 0, "the whole run")
    stops = 0
    for ranks in (3, 2, 1, 4):
        first = not (out / "checkpoint").exists()
        line = [arguments.mpirun, "-n", str(ranks), arguments.portwave]
        line += [*base, *PER_RANK, "--out", out, "--checkpoint-every", "500"] if first else ["run", "--resume", out]
        process = subprocess.Popen([str(word) for word in line], stderr=subprocess.PIPE,
                                   env=dict(os.environ, **ENVIRONMENT))
        while process.poll() is None and not (out / "checkpoint/last.checkpoint").exists():
            time.sleep(0.002)
        stamp = (out / "checkpoint/last.checkpoint").stat().st_mtime_ns
        while process.poll() is None:
            time.sleep(0.05)
            try:
                if (out / "checkpoint/last.checkpoint").stat().st_mtime_ns != stamp:
                    time.sleep(0.1)
                    break
            except FileNotFoundError:
                pass
        if process.poll() is None:
            own = ranks_of(process.pid, arguments.portwave)
            if stops % 2 and own:
                os.kill(own[-1], signal.SIGKILL)  # a rank, and with it all
            else:
                process.terminate()
            process.communicate(timeout=60)
            stops += 1
        else:
            process.communicate()
    if (out / "checkpoint").exists():
        done = call([arguments.mpirun, "-n", "3", arguments.portwave, "run", "--resume", out, "--quiet"])
        expect(done.returncode == 0, f"goes on: {done.stderr}")
    expect(stops > 1, f"was stopped {stops} times")
    found = differences(one / "results.h5", out / "results.h5")
    expect(not found, f"after {stops} stops: {found[:5]}")
    expect(not list(out.glob("*.rows")) and not (out / "checkpoint").exists(), "nothing is left behind")


def what_goes_wrong(scratch):
    base = [arguments.portwave, "run", arguments.sources / "examples/chain_64.json", "--steps", "20", "--quiet"]
    out = scratch / "out"
    line = [arguments.mpirun, "-n", "3", *base, *PER_RANK, "--grain", "2", "--set", '/outputs/observe=["*.storage"]']
    expect(call([*line, "--out", out]).returncode == 0, "a run")
    # HDF5 says nothing where a file is away; numbers that are none do.
    (out / "results.rank-2.h5").unlink()
    with h5py.File(out / "results.h5") as file:
        rows = file["trajectory"]
        missing = [name for name in rows if numpy.isnan(rows[name][()]).all()]
        expect(missing, "NaN for what is missing")
        expect(len(missing) < len(rows) - 1, "and no more")
    # What a run has left goes when the next one writes texts.
    expect(call([*base, "--out", out]).returncode == 0, "a run of texts")
    expect(not list(out.glob("results*")), f"files of the run before: {list(out.glob('results*'))}")
    expect(call(line).returncode == 0, "a run without files")
    # One rank cannot write: all end, soon, with its reason, and nothing has its name.
    script = scratch / "elsewhere.sh"
    script.write_text("#!/bin/sh\n[ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ] && ulimit -f 0\nexec \"$@\"\n")
    script.chmod(0o755)
    if call([arguments.mpirun, "-n", "3", script, arguments.portwave, "list", "mass"]).returncode != 0:
        print("not tried: a rank that cannot write, for this MPI does not start without files of its own")
        return
    line.insert(3, script)
    for steps in ("20", "20000"):  # found at the end, and on the way
        line[line.index("--steps") + 1] = steps
        folder = scratch / f"full{steps}"
        done = call([*line, "--out", folder])
        expect(done.returncode == 3 and "rank 1: cannot write" in done.stderr,
               f"a rank that cannot write: {done.returncode} {done.stderr}")
        expect(not list(folder.glob("results*")) and not (folder / "summary.json").exists(), "nothing half done")


parser = argparse.ArgumentParser()
parser.add_argument("portwave")
parser.add_argument("sources", type=Path)
parser.add_argument("mpirun")
parser.add_argument("--ranks", default="1,2,3,4")
parser.add_argument("--break", dest="spoil", choices=["value", "attribute", "missing"])
parser.add_argument("scenarios", nargs="*", type=Path)
arguments = parser.parse_intermixed_args()

if call([arguments.mpirun, "-n", "2", "true"]).returncode != 0:
    print("MPI cannot start here")
    sys.exit(77)
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    examples = arguments.sources / "examples"
    if arguments.scenarios:
        same_content(folder, arguments.scenarios)
    else:
        same_content(folder, [examples / "chain_64.json", examples / "msd_64x50.json", wide(folder)])
        goes_on_with_other_ranks(folder)
        what_goes_wrong(folder)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)

"""Set-up of a plate whose matrices are SciPy's, in one piece and in several: handed over as arrays, as entries in
JSON, and as files in SciPy's and Matrix Market's form. All in one process and in turn.

    python benchmarks/plate_from_scipy.py [side] [pieces]

needs the Python package and SciPy. The states after a step are compared first. One JSON object per row.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sparse

import portwave as pw

REPETITIONS = 5


def matrices(side):
    line = sparse.diags([2.0 * np.ones(side), -np.ones(side - 1), -np.ones(side - 1)], [0, 1, -1])
    laplace = sparse.kron(line, sparse.eye(side)) + sparse.kron(sparse.eye(side), line)
    K = (50.0 * laplace @ laplace).tocsr()
    M = (sparse.eye(side * side) * 1.5).tocsr()
    B = sparse.csr_matrix(([1.0], ([side * side // 2], [0])), shape=(side * side, 1))
    return {"M": M, "K": K, "D": (0.1 * M + 1e-3 * K).tocsr(), "B": B}


def system(given, pieces):
    made = pw.System("plate", step_s=1e-3)
    return made.add_second_order("plate", *(given[own] for own in "MKDB"), cut=pieces, inputs={"u1": 5.0})


def main():
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 101
    pieces = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    given = matrices(side)
    folder = tempfile.TemporaryDirectory()
    documents = {"json": system(given, pieces).to_dict()}
    for form, save in (("npz", sparse.save_npz), ("mtx", scipy.io.mmwrite)):
        own = system(given, pieces).to_dict()
        for name, matrix in given.items():
            save(str(Path(folder.name) / f"{name}.{form}"), matrix)
            own["subsystems"][0]["parameters"][name] = {"file": f"{name}.{form}"}
        documents[form] = own
    ways = {"arrays": lambda: pw.Stepper(system(given, pieces))}
    for form, own in documents.items():
        ways[form] = lambda own=own: pw.Stepper(pw.System.from_dict(own, folder.name))
    states = {}
    for name, make in ways.items():
        stepper = make()
        stepper.step()
        states[name] = stepper.states()
        assert np.array_equal(states[name], states["arrays"]) and np.any(states[name]), name
    seconds = {name: [] for name in ways}
    for _ in range(REPETITIONS):
        for name, make in ways.items():
            begin = time.process_time()
            make()
            seconds[name].append(time.process_time() - begin)
    for name, own in seconds.items():
        ratios = [a / b for a, b in zip(own, seconds["npz"])]
        print(json.dumps({"name": f"plate_from_scipy/{side}x{side}/{pieces}/{name}", "states": 2 * side * side,
                          "entries": int(sum(m.nnz for m in given.values())), "seconds": statistics.median(own),
                          "of_npz": round(statistics.median(ratios), 3)}))


if __name__ == "__main__":
    main()

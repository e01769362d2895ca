#!/usr/bin/env python3
"""Fifteen kilometres of rail as a finite-element model, written for portwave by SciPy.

An Euler-Bernoulli beam (Hermite elements, consistent masses) on ballast, that is on springs and
dampers all along. Its ends are free. Writes M.npz, D.npz, K.npz and B.npz beside this file. The
coordinates are deflection w [m] (downwards) and rotation [rad] of every node: q1 = w_0, q2 = the
rotation there, q3 = w_1, ...

    python3 export_beam.py                  # 25000 elements of 0.6 m: 50002 coordinates
    python3 export_beam.py --elements 50
"""
import argparse
import pathlib

import numpy as np
import scipy.sparse as sp

ELEMENT_M = 0.6  # from sleeper to sleeper
BENDING_STIFFNESS_NM2 = 6.4e6  # E I of a rail of 60 kg/m
RAIL_KG_PER_M = 60.0
BALLAST_N_PER_M2 = 4.0e7
BALLAST_NS_PER_M2 = 6.0e4
RAIL_DAMPING_S = 1.0e-5  # D of the rail per K of it


def element(length):
    """Stiffness of bending, and the integral of the shape functions' products, of one element."""
    l = length
    bending = BENDING_STIFFNESS_NM2 / l**3 * np.array(
        [[12, 6 * l, -12, 6 * l],
         [6 * l, 4 * l**2, -6 * l, 2 * l**2],
         [-12, -6 * l, 12, -6 * l],
         [6 * l, 2 * l**2, -6 * l, 4 * l**2]])
    product = l / 420 * np.array(
        [[156, 22 * l, 54, -13 * l],
         [22 * l, 4 * l**2, 13 * l, -3 * l**2],
         [54, 13 * l, 156, -22 * l],
         [-13 * l, -3 * l**2, -22 * l, 4 * l**2]])
    return bending, product


def assemble(block, elements):
    """Sum of the same 4x4 block over all elements."""
    first = 2 * np.arange(elements)[:, None, None]
    rows = (first + np.arange(4)[None, :, None]).repeat(4, axis=2)
    columns = (first + np.arange(4)[None, None, :]).repeat(4, axis=1)
    values = np.broadcast_to(block, (elements, 4, 4))
    size = 2 * elements + 2
    return sp.coo_matrix((values.ravel(), (rows.ravel(), columns.ravel())),
                         shape=(size, size)).tocsr()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=25000)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()

    bending, product = element(ELEMENT_M)
    M = assemble(RAIL_KG_PER_M * product, arguments.elements)
    K = assemble(bending + BALLAST_N_PER_M2 * product, arguments.elements)
    D = assemble(RAIL_DAMPING_S * bending + BALLAST_NS_PER_M2 * product, arguments.elements)
    # One column: the port "middle", on the node in the middle. Its flow is -v, as of type "mass".
    B = sp.csr_matrix(([-1.0], ([arguments.elements // 2 * 2], [0])), shape=(K.shape[0], 1))
    for name, matrix in {"M": M, "D": D, "K": K, "B": B}.items():
        sp.save_npz(arguments.folder / f"{name}.npz", matrix)
    print(f"{K.shape[0]} coordinates, {K.nnz} entries in K")


if __name__ == "__main__":
    main()

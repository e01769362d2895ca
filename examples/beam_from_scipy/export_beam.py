#!/usr/bin/env python3
"""Euler-Bernoulli beam by Hermite elements with consistent masses, written for portwave.

Writes M.npz, K.npz, D.npz and B.npz beside this file. The coordinates are deflection w [m] and
rotation phi [rad] of every node: w_0, phi_0, w_1, phi_1, ... Node 0 is clamped and left out.

    python3 export_beam.py                 # 25000 elements: 50000 coordinates, 100000 states
    python3 export_beam.py --elements 50
"""
import argparse
import pathlib

import numpy as np
import scipy.sparse as sp

LENGTH_M = 10.0
BENDING_STIFFNESS_NM2 = 4.0e4  # E I
MASS_PER_LENGTH_KG_PER_M = 8.0  # rho A
MASS_DAMPING_PER_S = 0.5  # D = alpha M + beta K
STIFFNESS_DAMPING_S = 1.0e-4


def element(length):
    """Stiffness and consistent mass of one element for (w, phi) at either end."""
    l = length
    stiffness = BENDING_STIFFNESS_NM2 / l**3 * np.array(
        [[12, 6 * l, -12, 6 * l],
         [6 * l, 4 * l**2, -6 * l, 2 * l**2],
         [-12, -6 * l, 12, -6 * l],
         [6 * l, 2 * l**2, -6 * l, 4 * l**2]])
    mass = MASS_PER_LENGTH_KG_PER_M * l / 420 * np.array(
        [[156, 22 * l, 54, -13 * l],
         [22 * l, 4 * l**2, 13 * l, -3 * l**2],
         [54, 13 * l, 156, -22 * l],
         [-13 * l, -3 * l**2, -22 * l, 4 * l**2]])
    return stiffness, mass


def assemble(block, elements):
    """Sum of the same 4x4 block over all elements, without the clamped node 0."""
    first = 2 * np.arange(elements)[:, None, None]
    rows = (first + np.arange(4)[None, :, None]).repeat(4, axis=2)
    columns = (first + np.arange(4)[None, None, :]).repeat(4, axis=1)
    values = np.broadcast_to(block, (elements, 4, 4))
    size = 2 * elements + 2
    matrix = sp.coo_matrix((values.ravel(), (rows.ravel(), columns.ravel())), shape=(size, size))
    return matrix.tocsr()[2:, 2:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=25000)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()

    stiffness, mass = element(LENGTH_M / arguments.elements)
    K = assemble(stiffness, arguments.elements)
    M = assemble(mass, arguments.elements)
    D = MASS_DAMPING_PER_S * M + STIFFNESS_DAMPING_S * K
    # Columns: the port "tip" (a force on the last node), then the input "load" (N/m, everywhere).
    load = assemble_load(arguments.elements)
    tip = sp.csr_matrix(([1.0], ([K.shape[0] - 2], [0])), shape=(K.shape[0], 1))
    B = sp.hstack([tip, load]).tocsr()
    for name, matrix in {"M": M, "D": D, "K": K, "B": B}.items():
        sp.save_npz(arguments.folder / f"{name}.npz", matrix)
    print(f"{K.shape[0]} coordinates, {K.nnz} entries in K")


def assemble_load(elements):
    """Consistent nodal loads of 1 N/m."""
    l = LENGTH_M / elements
    values = np.tile([l / 2, l**2 / 12, l / 2, -l**2 / 12], elements)
    rows = (2 * np.arange(elements)[:, None] + np.arange(4)[None, :]).ravel()
    load = sp.coo_matrix((values, (rows, np.zeros_like(rows))), shape=(2 * elements + 2, 1))
    return load.tocsr()[2:]


if __name__ == "__main__":
    main()

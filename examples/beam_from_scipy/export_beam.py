#!/usr/bin/env python3
"""A rail on its bed by finite elements, written for portwave: an Euler-Bernoulli beam by Hermite
elements with consistent masses, on an elastic foundation.

Writes M.npz, K.npz, D.npz and B.npz beside this file. The coordinates are deflection w [m, upwards]
and rotation phi [rad] of every node: w_0, phi_0, w_1, phi_1, ... Both ends are free.

    python3 export_beam.py                 # 25000 elements of 0.1 m: 50002 coordinates
    python3 export_beam.py --elements 50
"""
import argparse
import pathlib

import numpy as np
import scipy.sparse as sp

ELEMENT_M = 0.1
BENDING_STIFFNESS_NM2 = 6.4e6  # E I of a rail of 60 kg/m
MASS_PER_LENGTH_KG_PER_M = 60.0  # rho A
BED_STIFFNESS_N_PER_M2 = 3.0e7
BED_DAMPING_NS_PER_M2 = 5.0e4
BENDING_DAMPING_S = 1.0e-5  # of the bending stiffness


def element():
    """Bending stiffness and consistent mass of one element for (w, phi) at either end."""
    l = ELEMENT_M
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
    parser.add_argument("--elements", type=int, default=25000, help="an even number")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()

    stiffness, mass = element()
    bending = assemble(stiffness, arguments.elements)
    M = assemble(mass, arguments.elements)
    per_length = M / MASS_PER_LENGTH_KG_PER_M  # the bed acts on the same shapes as the mass
    K = bending + BED_STIFFNESS_N_PER_M2 * per_length
    D = BENDING_DAMPING_S * bending + BED_DAMPING_NS_PER_M2 * per_length
    # One column: the port "middle" at the deflection of the node there. With -1 it has the signs of
    # the masses of the catalogue, f = -w' and a force of -e, so that a spring is joined by a connection.
    middle = 2 * (arguments.elements // 2)
    B = sp.csr_matrix(([-1.0], ([middle], [0])), shape=(K.shape[0], 1))
    for name, matrix in {"M": M, "D": D, "K": K, "B": B}.items():
        sp.save_npz(arguments.folder / f"{name}.npz", matrix)
    print(f"{K.shape[0]} coordinates, {K.nnz} entries in K")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Reference motions of trees of rigid bodies, for tests/subsystems/catalogue/test_mechanisms_articulated.cpp.

    python3 tests/agreement/articulated_reference.py

Lagrange's equations by Uicker's method: the pose of a body is a product of 4x4 matrices, each of one angle or length,
which are differentiated one by one, once and twice; a body is a matrix of second moments. Ball joints and free bodies
are three Euler angles here. Nothing is shared with portwave. SciPy's DOP853 at 1e-13 solves them.
"""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

G = 9.81


def cross(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def still(place=(0, 0, 0), turn=(0, 0, 0)):
    X = np.eye(4)
    X[:3, :3] = Rotation.from_euler("xyz", turn).as_matrix()  # roll, pitch, yaw about fixed axes
    X[:3, 3] = place
    return X


class Turn:
    def __init__(self, axis):
        self.K = np.zeros((4, 4))
        self.K[:3, :3] = cross(np.asarray(axis, float) / np.linalg.norm(axis))

    def at(self, q):
        K2 = self.K @ self.K
        c, s = np.cos(q), np.sin(q)
        return np.eye(4) + s * self.K + (1 - c) * K2, c * self.K + s * K2, -s * self.K + c * K2


class Slide:
    def __init__(self, axis):
        self.K = np.zeros((4, 4))
        self.K[:3, 3] = np.asarray(axis, float) / np.linalg.norm(axis)

    def at(self, q):
        return np.eye(4) + q * self.K, self.K, 0 * self.K


def moments(mass, centre, inertia):
    xx, xy, xz, yy, yz, zz = inertia
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], float)
    c = np.asarray(centre, float)
    P = np.zeros((4, 4))
    P[:3, :3] = 0.5 * np.trace(I) * np.eye(3) - I + mass * np.outer(c, c)
    P[:3, 3] = P[3, :3] = mass * c
    P[3, 3] = mass
    return P


class Tree:
    """bodies: (parent or None, [still matrix or joint], second moments, dampers of its joints)."""

    def __init__(self, bodies, gravity=G):
        self.bodies, self.gravity = bodies, gravity
        self.joints, self.paths = [], []
        for parent, chain, _, damping in bodies:
            path = list(self.paths[parent]) if parent is not None else []
            for one in chain:
                if isinstance(one, np.ndarray):
                    path.append((one, None))
                else:
                    path.append((one, len(self.joints)))
                    self.joints.append(damping)
            self.paths.append(path)
        self.n = len(self.joints)

    def poses(self, q):
        """X and its first and second derivatives, of every body."""
        values = {}
        for path in self.paths:
            for joint, j in path:
                if j is not None and j not in values:
                    values[j] = joint.at(q[j])
        out = []
        for path in self.paths:
            own = [j for _, j in path if j is not None]

            def product(orders):
                X = np.eye(4)
                for one, j in path:
                    X = X @ (one if j is None else values[j][orders.get(j, 0)])
                return X

            first = {j: product({j: 1}) for j in own}
            second = {(j, k): product({j: 2} if j == k else {j: 1, k: 1}) for j in own for k in own if k >= j}
            out.append((product({}), first, second))
        return out

    def mass_matrix(self, q):
        M = np.zeros((self.n, self.n))
        for (_, first, _), (_, _, P, _) in zip(self.poses(q), self.bodies):
            for j, Xj in first.items():
                for k, Xk in first.items():
                    M[j, k] += np.trace(Xj @ P @ Xk.T)
        return M

    def rate(self, _, state):
        q, v = state[: self.n], state[self.n :]
        M, f = np.zeros((self.n, self.n)), -np.array(self.joints) * v
        for (_, first, second), (_, _, P, _) in zip(self.poses(q), self.bodies):
            bent = sum((1 if j == k else 2) * X * v[j] * v[k] for (j, k), X in second.items())
            for j, Xj in first.items():
                f[j] -= np.trace(Xj @ P @ bent.T) + self.gravity * (Xj @ P[:, 3])[2]
                for k, Xk in first.items():
                    M[j, k] += np.trace(Xj @ P @ Xk.T)
        return np.concatenate([v, np.linalg.solve(M, f)])

    def move(self, q, v, time_s):
        done = solve_ivp(self.rate, (0, time_s), np.concatenate([q, v]), method="DOP853", rtol=1e-13, atol=1e-14)
        return done.y[: self.n, -1], done.y[self.n :, -1]


def rate_of_turn(angles):
    """omega in the body's axes by the rates of angles about x, y, z one after another."""
    Ry, Rz = Rotation.from_euler("y", angles[1]).as_matrix(), Rotation.from_euler("z", angles[2]).as_matrix()
    return np.column_stack([(Ry @ Rz).T @ [1, 0, 0], Rz.T @ [0, 1, 0], [0, 0, 1]])


def states(tree, q, v, layout):
    """(q, p) as the part has them. layout: "s" a scalar joint, "b" three angles of a ball joint."""
    p, at, positions, momenta = tree.mass_matrix(q) @ v, 0, [], []
    for kind in layout:
        if kind == "s":
            positions.append(q[at])
            momenta.append(p[at])
            at += 1
            continue
        x, y, z, w = Rotation.from_euler("XYZ", q[at : at + 3]).as_quat()
        positions += [w, x, y, z]
        momenta += list(np.linalg.solve(rate_of_turn(q[at : at + 3]).T, p[at : at + 3]))
        at += 3
    return positions + momenta


def show(name, tree, q, v, time_s, layout):
    start = states(tree, q, v, layout)
    end = states(tree, *tree.move(np.array(q, float), np.array(v, float), time_s), layout)
    text = lambda values: ", ".join(f"{value:.15g}" for value in values)
    print(f"// {name}, {time_s} s\n{{{text(start)}}}\n{{{text(end)}}}\n")


X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)

show("crane: turns, slides along a skew axis, turns again; a second limb on the first body",
     Tree([(None, [still((0, 0, 0.5), (0.2, 0, 0)), Turn((0, 1, 1))], moments(3, (0, 0.1, 0), (1, 0.1, 0, 1.5, 0, 2)), 0.3),
           (0, [still((0.3, 0.1, 0), (0, 0.4, 0)), Slide((1, 1, 0))], moments(1, (0.1, 0, 0.2), (0.1, 0, 0, 0.2, 0, 0.15)), 0.5),
           (1, [still((-0.2, 0, 0.2), (0, 0, 1)), Turn(X)], moments(2, (0.1, 0, 0.1), (0.3, 0.02, 0, 0.2, 0, 0.4)), 0.1),
           (0, [still((0, -0.3, 0), (0, 0, 0)), Turn(Y)], moments(0.8, (0, 0, -0.3), (0.02, 0, 0.001, 0.02, 0, 0.01)), 0.0)]),
     [0.4, 0.2, -0.5, 0.7], [0.5, -0.3, 1.0, -0.8], 1.0, "ssss")

show("ball: two bodies on ball joints",
     Tree([(None, [still((0, 0, 1)), Turn(X), Turn(Y), Turn(Z)], moments(2, (0, 0.1, -0.4), (0.2, 0, 0.01, 0.25, 0, 0.05)), 0.0),
           (0, [still((0, 0, -0.8), (0.3, 0, 0)), Turn(X), Turn(Y), Turn(Z)],
            moments(1, (0.05, 0, -0.3), (0.06, 0, 0, 0.05, 0.004, 0.02)), 0.0)]),
     [0.3, -0.4, 0.2, 0.5, 0.2, -0.3], [0.4, 0.8, -0.5, -0.6, 0.3, 1.0], 0.8, "bb")

show("free: a free body with two arms",
     Tree([(None, [Slide(X), Slide(Y), Slide(Z), Turn(X), Turn(Y), Turn(Z)], moments(4, (0.05, 0, 0.1), (0.4, 0, 0.02, 0.5, 0, 0.3)), 0.0),
           (0, [still((0.3, 0, 0.1), (0, 0.5, 0)), Turn(Y)], moments(1, (0.2, 0, 0), (0.01, 0, 0, 0.04, 0, 0.04)), 0.0),
           (0, [still((-0.3, 0.1, 0)), Turn((0, 1, 1))], moments(1.5, (-0.2, 0, 0.1), (0.02, 0, 0, 0.05, 0, 0.05)), 0.0)]),
     [0.1, -0.2, 0.3, 0.2, -0.3, 0.4, 0.5, -0.6], [0.3, 0.1, -0.2, 0.7, 0.4, -0.5, 1.5, -1.0], 0.8, "sssbss")

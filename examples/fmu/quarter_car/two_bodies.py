"""The two models of two_bodies.c in Python: steps and states, without what makes them an FMU."""

from math import ceil, log2


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def exponential(a, h):
    """exp(h a) by a Taylor series of a part of the step, squared."""
    size = range(len(a))
    norm = max(abs(h * x) for row in a for x in row)
    squarings = max(0, ceil(log2(norm / 0.1))) if norm > 0 else 0
    part = [[h / 2**squarings * x for x in row] for row in a]
    out = [[float(i == j) for j in size] for i in size]
    term = out
    for n in range(1, 15):
        term = [[x / n for x in row] for row in product(term, part)]
        out = [[x + y for x, y in zip(*rows)] for rows in zip(out, term)]
    for _ in range(squarings):
        out = product(out, out)
    return out


class Body:
    """x' = A x + b u + c with u held in a step, which is exact."""

    STATES, INPUT, PARAMETERS = (), "", ()

    def __init__(self):
        self._known = {}

    def advance(self, h):
        key = (h, *(getattr(self, name) for name in self.PARAMETERS))
        if key not in self._known:
            rows = [list(row) for row in self.equations()]
            self._known = {key: exponential(rows + [[0.0] * len(rows[0])] * 2, h)}
        x = [getattr(self, name) for name in self.STATES] + [getattr(self, self.INPUT), 1.0]
        for name, row in zip(self.STATES, self._known[key]):
            setattr(self, name, sum(a * b for a, b in zip(row, x)))


    def state(self):
        return {name: getattr(self, name) for name in (*self.STATES, self.INPUT, *self.PARAMETERS)}

    def go_back(self, state):
        for name, value in state.items():
            setattr(self, name, value)


class ChassisBody(Body):
    STATES, INPUT, PARAMETERS = ("q", "vc", "x"), "v", ("m", "k", "d")
    OUTPUTS = ("F", "x", "vc", "impulse")

    def __init__(self):
        super().__init__()
        self.q = self.vc = self.x = self.v = 0.0
        self.m, self.k, self.d = 400.0, 15000.0, 1000.0

    F = property(lambda self: self.k * self.q + self.d * (self.vc - self.v))
    impulse = property(lambda self: -self.m * self.vc)

    def equations(self):
        k, d = self.k / self.m, self.d / self.m
        return (0, 1, 0, -1, 0), (-k, -d, 0, d, 0), (0, 1, 0, 0, 0)


class WheelBody(Body):
    STATES, INPUT, PARAMETERS = ("x", "v"), "F", ("m", "k", "d", "road")
    OUTPUTS = ("v", "x")

    def __init__(self):
        super().__init__()
        self.x = self.v = self.F = self.d = 0.0
        self.m, self.k, self.road = 40.0, 150000.0, 0.1

    def equations(self):
        k, d = self.k / self.m, self.d / self.m
        return (0, 1, 0, 0), (-k, -d, 1 / self.m, k * self.road)

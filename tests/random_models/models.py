"""What random models have in common: a scenario of portwave beside differential equations that share no code with it.

Equations are in units in which a run takes 1 and everything is about 1; `Model.unit` says what that is in the scenario.
"""
import math
from dataclasses import dataclass, field


@dataclass
class Model:
    """A scenario; and y' = rhs(t, y) between `breaks`, from `start`, of the states that are compared."""
    second: float = 1.0                          # of the equations, in seconds of the scenario
    parts: list = field(default_factory=list)
    couplings: list = field(default_factory=list)
    names: list = field(default_factory=list)
    kinds: list = field(default_factory=list)    # states of one kind are judged beside the largest range of it
    unit: list = field(default_factory=list)
    start: list = field(default_factory=list)
    breaks: set = field(default_factory=set)
    rhs: object = None

    def state(self, name, kind, unit, start):
        for own, value in ((self.names, name), (self.kinds, kind), (self.unit, unit), (self.start, start)):
            own.append(value)
        return len(self.names) - 1

    def part(self, name, kind, parameters=None, **more):
        self.parts.append({"name": name, "type": kind, **({"parameters": parameters} if parameters else {}), **more})

    def join(self, kind, *ports, **more):
        self.couplings.append({"kind": kind, "ports": list(ports), **more})


def logarithmic(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


fixed_units = None  # an iterator over those to take instead of random ones


def units(rng):
    drawn = rng.choice([1.0, 1.0, 1e9, 1e-9, logarithmic(rng, 1e-6, 1e6)])
    return drawn if fixed_units is None else next(fixed_units)


def steps(times, levels):
    """Of an expression in t: the levels before, between and behind `times`."""
    text = repr(levels[-1])
    for time, level in reversed(list(zip(times, levels))):
        text = f"if(t < {time!r}, {level!r}, {text})"
    return text


class Signal:
    """A step function of up to three jumps, and sometimes a sine, as an input and as a function."""

    def __init__(self, rng, size):
        times = {round(rng.uniform(0, 1), rng.choice([1, 2, 9])) for _ in range(rng.randint(0, 3))}
        self.times = sorted(times - {0.0, 1.0})
        self.levels = [size * rng.uniform(-1, 1) for _ in range(len(self.times) + 1)]
        self.levels[0] *= rng.choice([0.0, 1.0, 1.0])
        self.sine = (size * rng.uniform(0, 1), rng.uniform(1, 12) * rng.choice([0, 0, 1]), rng.uniform(0, 6))
        self.is_table = self.sine[1] == 0.0 and rng.random() < 0.5

    def __call__(self, t):
        amplitude, rate, phase = self.sine
        level = self.levels[sum(1 for own in self.times if own <= t)]
        return level + (amplitude * math.sin(rate * t + phase) if rate else 0.0)

    def input(self, unit, second):
        if self.is_table:
            knots = [[0.0, self.levels[0] * unit]]
            for time, before, after in zip(self.times, self.levels, self.levels[1:]):
                knots += [[time * second, before * unit], [time * second, after * unit]]
            return {"kind": "table", "knots": knots}
        amplitude, rate, phase = self.sine
        return steps([t * second for t in self.times], [level * unit for level in self.levels]) + (
            f" + {amplitude * unit!r}*sin({rate / second!r}*t + {phase!r})" if rate else "")

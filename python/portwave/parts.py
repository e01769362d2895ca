"""Types of parts and kinds of blocks of one's own, and what one does with many runs."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _portwave
from .arrays import Floats, as_floats, number, plain, whole
from .result import Result
from .stepper import Stepper
from .system import System, scenario_of


def add_part_type(
    name: str,
    *,
    states: Sequence[Tuple[str, str]],
    energy: Callable[[Floats], float],
    gradient: Callable[[Floats], Any],
    J: Any,
    G: Any,
    R: Any = None,
    ports: Sequence[Tuple[str, str, str]] = (),
    inputs: Sequence[Tuple[str, str]] = (),
    hessian: Optional[Callable[[Floats], Any]] = None,
    default_state: Sequence[float] = (),
    discrete_gradient: str = "gonzalez",
    summary: str = "A part from Python.",
) -> None:
    """Adds a type of part whose energy is a Python function:

        x' = (J - R) grad H(x) + G u,   y = G^T grad H(x).

    ``states``: ``(name, unit)`` of the n states. ``ports``: ``(name, domain, causality)``, the domain
    being "translation", "rotation", "electrical", "hydraulic", ..., the causality what u is,
    "effort_in" or "flow_in". ``inputs``: ``(name, unit)`` of external inputs, whose columns of G follow
    those of the ports. ``energy(x)``: H [J]. ``gradient(x)``: n numbers. ``hessian(x)``: n x n, optional:
    without it, differences of the gradient. J skew, R symmetric and positive semidefinite, n x n;
    G n x m. ``discrete_gradient``: how a step of one stage takes the gradient so that the energy law is
    exact. "gonzalez", from a few values; "mean_value", by 8 gradients along the step, exact where H is a
    polynomial of degree 16 or less; "itoh_abe", by increments of H, of first order unless H is a sum of
    functions of one state each.

    x and u are in the units that ``states``, ports and ``inputs`` have; time is in seconds. The functions
    must be pure: the step calls them many times, from any thread, a few microseconds each. A part like
    this is a hundred times slower than the like in C++; it is for trying things out. A type that was
    added from Python before is put in its place, for systems that are made from then on.
    Errors: ``ConfigError`` where matrices or gradient do not fit H, and for names that portwave has.
    """
    n = len(states)
    m = len(ports) + len(inputs)

    def matrix(name: str, value: Any, rows: int, columns: int) -> Floats:
        if value is None:
            return np.zeros((rows, columns))
        return as_floats(value, (rows, columns), "nm", name)

    _portwave.add_part_type(
        name,
        summary,
        list(states),
        list(ports),
        list(inputs),
        energy,
        gradient,
        hessian,
        matrix("J", J, n, n),
        matrix("R", R, n, n),
        matrix("G", G, n, m),
        as_floats(list(default_state), (None,), "n", "default_state").tolist(),
        discrete_gradient,
    )


def add_block_kind(
    name: str,
    function: Callable[..., Any],
    *,
    inputs: Sequence[str] = (),
    outputs: int = 1,
    state: Sequence[float] = (),
    numbers: Optional[Mapping[str, float]] = None,
    summary: str = "A block from Python.",
) -> None:
    """Adds a kind of block whose law is a Python function: a controller, a filter, a reference.

    Without ``state``: ``y = function(t, u)``. With the initial state: ``y, x_next = function(t, u, x)``.
    t: time of the sample [s]. u, x: arrays [len(inputs)], [len(state)]. y: ``outputs`` numbers, or one
    number. ``inputs``: keys by which systems name the signals, in the order of u. ``numbers``: keys and
    defaults of numbers, which the function is given by name.

        pw.add_block_kind("my_law", lambda t, u, gain: gain * (u[0] - u[1]),
                          inputs=["target", "angle"], numbers={"gain": 30.0})
        system.add_block("law", "my_law", target=1.0, angle="load.angle", gain=20.0, every=10)

    The function is called once per sample, and again where a step failed. All that it remembers must
    be in x: snapshots, clones and replicas have their own x, and a run that goes back repeats bit by
    bit. An exception ends the step (``StepError``, its ``__cause__``), and the state is that before
    it. The name may be that of a kind that was added from Python before; systems that are made from
    then on have the new one.
    Errors: ``ConfigError``.
    """
    own = {key: number(value, key) for key, value in (numbers or {}).items()}
    start = as_floats(list(state), (None,), "n", "state").tolist()
    _portwave.add_block_kind(
        name, summary, function, list(inputs), whole(outputs, "`outputs`"), start, list(own.items())
    )


def sweep(
    system: Union[System, Mapping[str, Any], str, "os.PathLike[str]"],
    values: Mapping[str, Iterable[Any]],
    *,
    until: Optional[float] = None,
    observe: Optional[Sequence[str]] = None,
    every: int = 1,
) -> List[Tuple[Dict[str, Any], Result]]:
    """Runs a system for every combination of values of JSON pointers into its scenario:

        sweep(system, {"/subsystems/0/parameters/mass_kg": [1, 2, 4]}, until=5, observe=["m.position"])

    Returns the settings and the result of each, in the order of the combinations.
    """
    from itertools import product

    own = scenario_of(system)
    keys = list(values)
    out = []
    for combination in product(*(list(values[key]) for key in keys)):
        settings = dict(zip(keys, combination))
        stepper = Stepper(own, set=settings)
        out.append((settings, stepper.run(until, observe=observe, every=every)))
    return out

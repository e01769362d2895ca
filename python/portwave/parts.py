"""Types of parts of one's own, and what one does with many runs."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _portwave
from .result import Result
from .stepper import Stepper
from .system import System, scenario_of


def add_part_type(
    name: str,
    *,
    states: Sequence[Tuple[str, str]],
    energy: Callable[[np.ndarray], float],
    gradient: Callable[[np.ndarray], Any],
    J: Any,
    G: Any,
    R: Any = None,
    ports: Sequence[Tuple[str, str, str]] = (),
    inputs: Sequence[Tuple[str, str]] = (),
    hessian: Optional[Callable[[np.ndarray], Any]] = None,
    default_state: Sequence[float] = (),
    summary: str = "A part from Python.",
) -> None:
    """Adds a type of part whose energy is a Python function:

        x' = (J - R) grad H(x) + G u,   y = G^T grad H(x).

    ``states``: ``(name, unit)`` of the n states. ``ports``: ``(name, domain, causality)``, the domain
    being "translation", "rotation", "electrical", "hydraulic", ..., the causality what u is,
    "effort_in" or "flow_in". ``inputs``: ``(name, unit)`` of external inputs, whose columns of G follow
    those of the ports. ``energy(x)``: H [J]. ``gradient(x)``: n numbers. ``hessian(x)``: n x n, optional:
    without it, differences of the gradient. J skew, R symmetric and positive semidefinite, n x n;
    G n x m.

    The functions must be pure: the step calls them many times, from any thread, a few microseconds each.
    A part like this is a hundred times slower than the like in C++; it is for trying things out.
    Errors: ``ConfigError`` where matrices or gradient do not fit H.
    """
    n = len(states)
    m = len(ports) + len(inputs)

    def matrix(value: Any, rows: int, columns: int) -> np.ndarray:
        if value is None:
            return np.zeros((rows, columns))
        return np.ascontiguousarray(value, dtype=np.float64).reshape(rows, columns)

    _portwave.add_part_type(
        name,
        summary,
        [tuple(s) for s in states],
        [tuple(p) for p in ports],
        [tuple(i) for i in inputs],
        energy,
        gradient,
        hessian,
        matrix(J, n, n),
        matrix(R, n, n),
        matrix(G, n, m),
        [float(x) for x in default_state],
    )


def sweep(
    system: Union[System, Mapping[str, Any], str],
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

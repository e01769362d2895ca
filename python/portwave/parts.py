"""Types of parts and kinds of blocks from Python functions, and parameter sweeps."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _portwave
from .arrays import Floats, as_floats, number, plain, whole
from .compiled import compiled, handed
from .result import Result
from .stepper import Stepper
from .system import System, scenario_of


def add_part_type(
    name: str,
    *,
    states: Sequence[Tuple[str, str]],
    energy: Any,
    gradient: Any,
    J: Any,
    G: Any,
    R: Any = None,
    ports: Sequence[Union[Tuple[str, str, str], Tuple[str, str, str, int]]] = (),
    inputs: Sequence[Tuple[str, str]] = (),
    hessian: Any = None,
    default_state: Sequence[float] = (),
    typical_state: Sequence[float] = (),
    discrete_gradient: Any = "gonzalez",
    summary: str = "A part from Python.",
) -> None:
    """Add a type of part that is defined by its energy, as functions of Python or compiled ones.

    The part obeys ``dx/dt = (J - R) grad H(x) + G u`` and ``y = G^T grad H(x)`` with n states x and
    m inputs u: those of its ports, then external ones.

    Parameters
    ----------
    name : str
        Name of the type. The name of a type that was added from Python before replaces that type
        for systems that are made from then on.
    states : sequence of (str, str)
        Name and unit of each of the n states.
    energy : callable
        ``energy(x)`` is the stored energy H [J] at the states x (n,).
    gradient : callable
        ``gradient(x)`` is the gradient of H, n numbers.
    J : (n, n) array_like or callable
        Skew-symmetric interconnection matrix, or ``J(x)`` that returns it.
    G : (n, m) array_like or callable
        Input matrix, with the columns of the ports before those of `inputs`, or ``G(x)``.
    R : (n, n) array_like or callable, optional
        Symmetric, positive semidefinite dissipation matrix, or ``R(x)``. Default: zeros.
    ports : sequence of (str, str, str) or (str, str, str, int), optional
        Name, domain, causality and size of each port. Domains are ``"translation"``, ``"rotation"``,
        ``"electrical"``, ``"magnetic"``, ``"hydraulic"``, ``"thermal"`` and ``"generic"``. The
        causality says what u is: ``"effort_in"`` or ``"flow_in"``. A port of size k has k columns
        of G. Default size: 1.
    inputs : sequence of (str, str), optional
        Name and unit of each external input.
    hessian : callable, optional
        ``hessian(x)`` is the Hessian of H, (n, n). Default: differences of the gradient.
    default_state : sequence of float, optional
        The n initial states of parts that do not state theirs. Default: zeros.
    typical_state : sequence of float, optional
        A usual size > 0 of each of the n states. The functions are checked at states within half of it
        from the default one. Default: found from H.
    discrete_gradient : {"gonzalez", "mean_value", "itoh_abe"} or callable, optional
        How a step of one stage takes the gradient so that the energy law holds exactly:
        ``"gonzalez"`` from a few values; ``"mean_value"`` by 8 gradients along the step, exact where
        H is a polynomial of degree 16 or less; ``"itoh_abe"`` by increments of H, of first order
        unless H is a sum of functions of one state each; or a function ``g(x, x_next)`` of n numbers
        with ``g @ (x_next - x) == H(x_next) - H(x)`` and ``g(x, x)`` the gradient, in a form in which
        nothing cancels where x_next is near x. Default: ``"gonzalez"``.
    summary : str, optional
        One sentence about the type.

    Raises
    ------
    ConfigError
        The gradient does not fit H, J is not skew-symmetric, R is not positive semidefinite, a discrete
        gradient of one's own is none, or the name is that of a type that portwave has.
    ValueError
        A matrix has another shape, or a domain, causality or discrete gradient is unknown.
    TypeError
        A compiled function has another signature.

    Notes
    -----
    x and u are in the units of states, ports and inputs; time is in seconds. The functions must be
    pure: a step calls them many times, from any thread. Matrices that are functions are checked
    wherever they are evaluated: a step ends (`StepError`) where J is not skew-symmetric or R not
    positive semidefinite. So it does where a function raises, with the exception as its ``__cause__``,
    and leaves the state before it.

    A call of a Python function takes a few microseconds, under the interpreter's lock. Each function may
    be compiled instead: a ``numba.cfunc``, a ``scipy.LowLevelCallable`` or a function of ctypes. It is
    called without that lock, so that parts step in parallel, and about as fast as C++. Its signature is::

        double energy(const double *x);
        void gradient(const double *x, double *g);
        void hessian(const double *x, double *h);                     (n, n)
        void J(const double *x, double *out);                         (n, n); likewise R, and G (n, m)
        void discrete_gradient(const double *x, const double *x_next, double *g);

    with matrices row by row, and ``void *user_data`` as a last argument where a LowLevelCallable has
    some. A function that cannot answer writes NaN, which ends the step.

    Examples
    --------
    >>> from math import cos, sin
    >>> pw.add_part_type(
    ...     "unit_pendulum",
    ...     states=[("angle", "rad"), ("momentum", "kg m^2/s")],
    ...     ports=[("pivot", "rotation", "effort_in")],
    ...     energy=lambda x: 0.5 * x[1] ** 2 + 9.81 * (1.0 - cos(x[0])),
    ...     gradient=lambda x: [9.81 * sin(x[0]), x[1]],
    ...     J=[[0, 1], [-1, 0]],
    ...     G=[[0], [1]],
    ... )
    """
    sized = [_sized_port(name, port) for port in ports]
    n = len(states)
    m = sum(port[3] for port in sized) + len(inputs)

    def matrix(key: str, value: Any, columns: int) -> Any:
        if value is None:
            return np.zeros((n, columns))
        if callable(value) or compiled(value, key, 2) is not None:
            return handed(value, key, 2)
        return as_floats(value, (n, columns), "nm", key)

    _portwave.add_part_type(
        name,
        summary,
        list(states),
        sized,
        list(inputs),
        handed(energy, "energy", 1, is_number=True),
        handed(gradient, "gradient", 2),
        None if hessian is None else handed(hessian, "hessian", 2),
        matrix("J", J, n),
        matrix("R", R, n),
        matrix("G", G, m),
        as_floats(list(default_state), (None,), "n", "default_state").tolist(),
        as_floats(list(typical_state), (None,), "n", "typical_state").tolist(),
        discrete_gradient if isinstance(discrete_gradient, str) else handed(discrete_gradient, "discrete_gradient", 3),
    )


def _sized_port(part_type: str, port: Sequence[Any]) -> Tuple[str, str, str, int]:
    if isinstance(port, str) or len(port) not in (3, 4):
        forms = "(name, domain, causality) or (name, domain, causality, size)"
        raise ValueError(f"{part_type!r}: a port is {forms}, got {port!r}")
    size = whole(port[3], f"the size of port {port[0]!r}") if len(port) == 4 else 1
    if size < 1:
        raise ValueError(f"{part_type!r}: the size of port {port[0]!r} must be > 0, got {size}")
    return port[0], port[1], port[2], size


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
    """Add a kind of block whose law is a Python function: a controller, a filter, a reference.

    Parameters
    ----------
    name : str
        Name of the kind. The name of a kind that was added from Python before replaces that kind
        for systems that are made from then on.
    function : callable
        The law: ``y = function(t, u)`` or, with `state`, ``y, x_next = function(t, u, x)``. t is the
        time of the sample [s]; u (m,) and x (n,) are copies of the inputs and the state; y holds
        `outputs` numbers, or is one number. `numbers` are passed by name.
    inputs : sequence of str, optional
        Keys by which systems name the m input signals, in the order of u.
    outputs : int, optional
        Number of outputs. Default: 1.
    state : sequence of float, optional
        Initial state of the block, n numbers. Default: no state.
    numbers : mapping of str to float, optional
        Keys of further numbers and their defaults.
    summary : str, optional
        One sentence about the kind.

    Raises
    ------
    ConfigError
        The name is that of a kind that portwave has, or a key cannot be used.
    ValueError
        `state` has a number that is not finite.

    Notes
    -----
    The function is called once per sample, and again where a step failed. It must keep all its
    memory in x: each clone, replica and snapshot has its own x, so that a run that returns to a
    snapshot repeats bit by bit. An exception ends the step (`StepError`, with the exception as its
    ``__cause__``) and leaves the state before it.

    Examples
    --------
    >>> pw.add_block_kind(
    ...     "proportional",
    ...     lambda t, u, gain: gain * (u[0] - u[1]),
    ...     inputs=["target", "angle"],
    ...     numbers={"gain": 30.0},
    ... )
    >>> system = pw.System.from_file("examples/embedding/servo.json")
    >>> system.add_block("law", "proportional", target=1.0, angle="load.angle", gain=20.0, every=10)
    <portwave.System 'servo': 4 parts>
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
    """Run a system for every combination of values.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        A system, a scenario as a dictionary, or the path of a scenario file.
    values : mapping of str to iterable
        Values to combine, by JSON pointer into the scenario.
    until, observe, every : optional
        As for `Stepper.record`.

    Returns
    -------
    list of (dict, Result)
        The overrides and the result of each run; the values of the last pointer vary fastest.

    Raises
    ------
    ConfigError
        A combination has defects.
    StepError
        A step of a run failed.

    Examples
    --------
    >>> mass = "/subsystems/0/parameters/mass_kg"
    >>> runs = pw.sweep("examples/two_oscillators.json", {mass: [1, 2, 4]}, until=1.0)
    >>> [overrides[mass] for overrides, result in runs]
    [1, 2, 4]
    """
    from itertools import product

    own = scenario_of(system)
    keys = list(values)
    out = []
    for combination in product(*(list(values[key]) for key in keys)):
        overrides = dict(zip(keys, combination))
        stepper = Stepper(own, overrides=overrides)
        out.append((overrides, stepper.record(until, observe=observe, every=every)))
    return out

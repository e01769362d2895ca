"""Types of the compiled half of portwave, made by nanobind.stubgen.

Tests compare the names with those of the module. Only `Arena` and `Snapshot` are public; the other classes and
functions serve the Python half.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

__version__: str

# Name, rows, columns; then row, column and value of each entry.
HandedMatrix = tuple[str, int, int, NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.float64]]


class Snapshot:
    """The complete state of a run between two steps."""
    def __init__(self) -> None: ...
    @property
    def time_s(self) -> float:
        """Simulated time of the state [s]."""
    @property
    def step_index(self) -> int:
        """Number of macro-steps that led to the state."""
    @property
    def size_bytes(self) -> int:
        """Memory that the state takes [bytes]."""
    def to_bytes(self) -> bytes:
        """Serialise the snapshot."""
    @staticmethod
    def from_bytes(data: bytes) -> Snapshot:
        """Restore a snapshot from its bytes."""
    def __getstate__(self) -> bytes: ...
    def __setstate__(self, arg: bytes, /) -> None: ...

class Arena:
    """Worker threads that several steppers share."""
    def __init__(self, threads: int) -> None: ...
    @property
    def threads(self) -> int:
        """Number of threads."""

class StepDerivatives:
    """The derivatives of one step."""

    def by_state(self) -> NDArray[numpy.float64]: ...
    def by_input(self) -> NDArray[numpy.float64]: ...
    def by_parameter(self) -> NDArray[numpy.float64]: ...
    def tangent(
        self,
        x: NDArray[numpy.float64],
        u: NDArray[numpy.float64],
        parameters: NDArray[numpy.float64],
    ) -> NDArray[numpy.float64]: ...
    def adjoint(
        self, ahead: NDArray[numpy.float64]
    ) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]: ...

class Stepper:
    def __init__(
        self,
        text: str,
        folder: str,
        matrices: Sequence[HandedMatrix],
        overrides: Sequence[tuple[str, str]],
        threads: int,
        certify: bool,
        deadline_s: float,
        pace: float,
        arena: Arena | None,
        allow_plugins: bool,
    ) -> None: ...
    def clone(self) -> Stepper: ...
    def step(self, steps: int) -> None: ...
    def step_by(self, step_s: float) -> None: ...
    def run_until(self, time_s: float) -> None: ...
    def record(
        self,
        steps: int | None,
        end_s: float,
        quantities: NDArray[numpy.int32],
        every: int,
        progress: Callable[[float], None] | None,
    ) -> NDArray[numpy.float64]: ...
    def differentiate(
        self, u: NDArray[numpy.float64] | None, steps: int, parameters: Sequence[str]
    ) -> tuple[list[StepDerivatives], NDArray[numpy.float64]]: ...
    def drive(
        self,
        u: NDArray[numpy.float64],
        quantities: NDArray[numpy.int32],
    ) -> NDArray[numpy.float64]: ...
    @property
    def time_s(self) -> float: ...
    @property
    def step_index(self) -> int: ...
    @property
    def step_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...
    @property
    def default_quantities(self) -> list[str]: ...
    def set_input(self, slot: int, value: float) -> None: ...
    def read_input(self, slot: int) -> float: ...
    def set_inputs(self, values: NDArray[numpy.float64]) -> None: ...
    def find_input(self, name: str) -> int: ...
    @property
    def input_names(self) -> list[str]: ...
    def find(self, name: str) -> int: ...
    def read(self, quantity: int) -> float: ...
    def read_all(self, quantities: NDArray[numpy.int32]) -> NDArray[numpy.float64]: ...
    def unit(self, quantity: int) -> str: ...
    def state(self, part: str) -> NDArray[numpy.float64]: ...
    def set_parameter(self, path: str, value: float) -> None: ...
    def set_states(self, states: NDArray[numpy.float64]) -> None: ...
    def parameter(self, path: str) -> float: ...
    def retune(self) -> None: ...
    def linearise(self, outputs: Sequence[str]) -> dict[str, Any]: ...
    def states(self) -> NDArray[numpy.float64]: ...
    def state_at(self, time_s: float) -> NDArray[numpy.float64]: ...
    @property
    def events(self) -> list[dict[str, Any]]: ...
    @property
    def ended_by(self) -> str | None: ...
    @property
    def state_names(self) -> list[str]: ...
    @property
    def notes(self) -> list[tuple[str, str]]: ...
    def snapshot(self, into: Snapshot) -> None: ...
    def restore(self, snapshot: Snapshot) -> None: ...
    @property
    def energy(self) -> dict[str, Any]: ...
    @property
    def certificate(self) -> str: ...
    @property
    def coupling(self) -> dict[str, Any]: ...
    @property
    def deadline(self) -> dict[str, Any] | None: ...
    @property
    def starts_at_odds(self) -> dict[str, Any] | None: ...
    @property
    def impulses(self) -> dict[str, Any] | None: ...
    @property
    def resolution(self) -> dict[str, Any] | None: ...
    @property
    def shortcomings(self) -> list[str]: ...
    @property
    def method(self) -> str: ...
    @property
    def report(self) -> dict[str, Any]: ...

class InverseDynamics:
    def __init__(
        self,
        text: str,
        folder: str,
        matrices: Sequence[HandedMatrix],
        part: str,
        allow_plugins: bool,
    ) -> None: ...
    @property
    def positions(self) -> int: ...
    @property
    def velocities(self) -> int: ...
    def torques(
        self,
        q: NDArray[numpy.float64],
        v: NDArray[numpy.float64],
        a: NDArray[numpy.float64],
        out: NDArray[numpy.float64],
    ) -> None: ...
    def gravity(self, q: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None: ...
    def momenta(
        self, q: NDArray[numpy.float64], v: NDArray[numpy.float64], out: NDArray[numpy.float64]
    ) -> None: ...
    def velocities_of(
        self, q: NDArray[numpy.float64], p: NDArray[numpy.float64], out: NDArray[numpy.float64]
    ) -> None: ...

class Ensemble:
    def __init__(
        self,
        text: str,
        folder: str,
        matrices: Sequence[HandedMatrix],
        overrides: Sequence[tuple[str, str]],
        replicas: int,
        paths: Sequence[str],
        values: NDArray[numpy.float64],
        threads: int,
        chunk: int,
        certify: bool,
        allow_plugins: bool,
    ) -> None: ...
    def rollout(
        self,
        x0: NDArray[numpy.float64] | None,
        u: NDArray[numpy.float64] | None,
        steps: int,
        x: NDArray[numpy.float64],
        every: int,
    ) -> None: ...
    def step(self, steps: int) -> None: ...
    def states(self, x: NDArray[numpy.float64]) -> None: ...
    def set_states(self, x: NDArray[numpy.float64]) -> None: ...
    def set_inputs(self, u: NDArray[numpy.float64]) -> None: ...
    def set_parameter(self, replica: int, path: str, value: float) -> None: ...
    def parameter(self, replica: int, path: str) -> float: ...
    def status(self, replica: int) -> dict[str, Any]: ...
    def energy(self, replica: int) -> dict[str, Any]: ...
    def certificate(self, replica: int) -> str: ...
    @property
    def state_names(self) -> list[str]: ...
    @property
    def notes(self) -> list[tuple[str, str]]: ...
    @property
    def state_places(self) -> tuple[list[int] | None, list[int] | None]: ...
    @property
    def input_names(self) -> list[str]: ...
    @property
    def replicas(self) -> int: ...
    @property
    def failures(self) -> int: ...
    @property
    def step_index(self) -> int: ...
    @property
    def execution(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def step_s(self) -> float: ...

def part_types() -> str: ...

def show_portwave_to_plugins() -> None: ...
def load_plugin(path: str) -> tuple[str, list[str]]: ...

# A compiled function: its address, whether it takes user data last, these data, and what keeps it alive.
CompiledFunction = tuple[int, bool, int, Any]
GivenFunction = Callable[..., Any] | CompiledFunction

def add_part_type(
    name: str,
    summary: str,
    states: Sequence[tuple[str, str]],
    ports: Sequence[tuple[str, str, str, int]],
    inputs: Sequence[tuple[str, str]],
    energy: GivenFunction,
    gradient: GivenFunction,
    hessian: GivenFunction | None,
    J: NDArray[numpy.float64] | GivenFunction,
    R: NDArray[numpy.float64] | GivenFunction,
    G: NDArray[numpy.float64] | GivenFunction,
    default_state: Sequence[float],
    typical_state: Sequence[float],
    discrete_gradient: str | GivenFunction,
) -> None: ...

def add_block_kind(
    name: str,
    summary: str,
    function: Callable[..., Any],
    inputs: Sequence[str],
    outputs: int,
    state: Sequence[float],
    numbers: Sequence[tuple[str, float]],
) -> None: ...

# The text of a scenario, its folder, whether it may load plugins, and what replaces its values.
Given = tuple[str, str, bool, Sequence[tuple[str, str]]]

def scenario_notes(given: Given) -> list[tuple[str, str]]: ...
def study_budget(
    given: Given,
    budgets: Sequence[int],
    methods: Sequence[str],
    impedances: Sequence[str],
    guards: Sequence[bool],
    threads: int,
) -> str: ...

def study_rate(given: Given, steps: int, limit: int) -> str: ...

def study_order(
    given: Given,
    steps_s: Sequence[float],
    methods: Sequence[str] | None,
    repeat: int,
    threads: int,
) -> str: ...

def study_accuracy(given: Given, whole: bool) -> dict[str, Any] | None: ...

def study_tolerance(
    given: Given,
    tolerances: Sequence[float],
    stages: Sequence[int],
    repeat: int,
    threads: int,
) -> str: ...

def study_iteration(
    given: Given,
    iterations: int,
    windows: int,
    start_error: tuple[float, float] | None,
) -> str: ...

def study_scaling(
    systems: Sequence[Given],
    threads: Sequence[int],
    executors: Sequence[str],
    repetitions: int,
    steps: int,
    cores: int,
    image: str,
) -> tuple[str, bytes]: ...

def is_structure_file(file: str) -> bool: ...

def read_structure(file: str, allow_plugins: bool) -> tuple[str, list[tuple[str, str]], Any]: ...

def write_fmu(
    text: str,
    folder: str,
    out: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    parameters: Sequence[str],
    ports: Sequence[str],
    fmi: int,
    name: str,
    library: str,
) -> list[str]: ...

def write_ssp(text: str, folder: str, out: str, allow_plugins: bool) -> list[str]: ...

def tune(given: Given, rule: str) -> str: ...

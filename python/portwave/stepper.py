"""A system under way: step it, set its inputs, read it, go back."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _portwave
from ._portwave import Snapshot
from .arrays import Floats, as_floats, dimensions, flag, number, whole
from .errors import ScenarioWarning, UnknownName
from .linear import Linearisation
from .result import Result
from .system import System, pointers, scenario_of


class Stepper:
    """Steps a system.

    ``stepper["load.angle"]`` reads a quantity: a state ``"part.state"``, ``"part.port.effort"`` or
    ``".flow"`` (means over the last step), ``"part.storage"`` [J] or a signal.
    ``stepper["supply.effort"] = 3.0`` sets an input that is ``"settable"``, for the steps to come.

    The interpreter's lock is released while it steps; Ctrl-C ends a run after the step that it is at.
    One thread at a time may use a stepper (``RuntimeError`` where two do); different ones run side by
    side. A snapshot can be pickled, for a process of the same version of portwave.
    """

    def __init__(
        self,
        system: Union[System, Mapping[str, Any], str, "os.PathLike[str]"],
        *,
        threads: int = 1,
        certify: bool = True,
        set: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """``system``: a ``System``, a scenario as a dictionary, or the path of a scenario file.
        ``threads``: results do not depend on it. ``certify``: keep the energy book. ``set``: JSON
        pointers and values, as ``--set`` of the program. Errors: ``ConfigError`` with all defects. What is
        allowed but probably not meant, such as shafts that turn against each other, is a
        ``ScenarioWarning``.
        """
        own = scenario_of(system)
        self._core = _portwave.Stepper(
            own.to_json(),
            str(own.folder),
            list(pointers(set or {})),
            whole(threads, "`threads`"),
            flag(certify, "`certify`"),
        )
        warn_of(self._core.notes)
        self._inputs: Dict[str, int] = {
            name: i for i, name in enumerate(self._core.input_names)
        }
        self._quantities: Dict[str, int] = {}
        # The shortest way for the loops of users.
        self.step = self._core.step

    # What `self.step` is, for readers and type checkers.
    step: Callable[[], None]
    """One step, all or nothing. Errors: ``StepError``."""

    def step_by(self, step_s: float) -> None:
        """One step of another size [s]."""
        self._core.step_by(number(step_s, "the step"))

    def run_until(self, time_s: float) -> None:
        """Steps until it is ``time_s`` [s]; the last step is shorter if need be."""
        time_s = number(time_s, "the time to run to")
        if not math.isfinite(time_s):
            raise ValueError(f"the time to run to must be finite, got {time_s}")
        self._core.run_until(time_s)

    def advance(self, steps: int) -> None:
        """So many steps."""
        steps = whole(steps, "`steps`")
        if steps < 0:
            raise ValueError(f"`steps` must be at least 0, got {steps}")
        self._core.run(steps)

    def run(
        self,
        until: Optional[float] = None,
        *,
        steps: Optional[int] = None,
        observe: Optional[Sequence[str]] = None,
        every: int = 1,
        progress: bool = False,
    ) -> Result:
        """Steps and records: a row now, and one after every ``every``-th step.

        ``until`` [s], or ``steps``, or neither: to the end that the scenario names. ``observe``: names
        as for reading, else those of the scenario. ``progress``: a bar by tqdm, if it is installed.
        """
        if until is not None and steps is not None:
            raise ValueError("give `until` or `steps`, not both")
        steps = None if steps is None else whole(steps, "`steps`")
        until = None if until is None else number(until, "`until`")
        every = whole(every, "`every`")
        if steps is not None and steps < 0:
            raise ValueError(f"`steps` must be at least 0, got {steps}")
        if until is not None and not math.isfinite(until):
            raise ValueError(f"`until` must be finite, got {until}")
        if every < 1:
            raise ValueError(f"`every` must be at least 1, got {every}")
        names = self._core.observables if observe is None else observe
        indices = self._indices(names)
        end_s = self._core.end_s if until is None else until
        tell, done = _progress_bar(progress, self.time_s, end_s if steps is None else None)
        try:
            table = self._core.record(
                -1 if steps is None else steps, end_s, indices, every, tell
            )
        finally:
            done()
        units = [self._core.unit(i) for i in indices]
        result = Result(
            table, list(names), units, self.energy, self.certificate, self.starts_at_odds
        )
        result.coupling = self.coupling
        result.resolution = self.resolution
        result.all_well = self.all_well
        return result

    def rollout(self, inputs: Any, observe: Sequence[str]) -> Floats:
        """Steps through ``inputs[T, m]``, a row per step, in the order of ``input_names``; [T] where
        there is one. Returns the quantities after each step, shape [T, k]. Errors: ``ValueError`` for
        another shape, or a number that is not finite, before the first step."""
        m = len(self._inputs)
        # A column may come without its second dimension.
        shape = (None,) if m == 1 and dimensions(inputs) == 1 else (None, m)
        u = as_floats(inputs, shape, "Tm", "inputs").reshape(-1, m)
        return self._core.drive(u, self._indices(observe))

    def _indices(self, names: Sequence[str]) -> NDArray[np.int32]:
        _refuse_text(names)
        return np.array([self.find(name) for name in names], dtype=np.int32)

    def find(self, name: str) -> int:
        """Number of a quantity, for ``read``. Errors: ``KeyError`` with the nearest name."""
        found = self._quantities.get(name)
        if found is None:
            try:
                found = self._quantities[name] = self._core.find(name)
            except IndexError as error:
                raise UnknownName(str(error)) from None
        return found

    def read(self, quantity: int) -> float:
        """A quantity by its number, without a search."""
        return self._core.read(whole(quantity, "the number of a quantity"))

    def __getitem__(self, name: str) -> float:
        slot = self._inputs.get(name)
        if slot is not None:
            return self._core.input(slot)
        return self._core.read(self.find(name))

    def __setitem__(self, name: str, value: float) -> None:
        slot = self._inputs.get(name)
        if slot is None:
            known = ", ".join(self._inputs) or "none"
            raise UnknownName(f"no settable input is named {name!r}; there are: {known}")
        self._core.set_input(slot, number(value, name))

    def set_inputs(self, values: Any) -> None:
        """All settable inputs at once, in the order of ``input_names``."""
        self._core.set_inputs(as_floats(values, (len(self._inputs),), "m", "inputs"))

    def unit(self, name: str) -> str:
        """Unit of a quantity, such as ``"rad/s"``."""
        return self._core.unit(self.find(name))

    def state(self, part: str) -> Floats:
        """The state of a part, in its units, without a copy: what it shows is good until the next
        step. It keeps the memory that it shows. Of a part that is cut into pieces it is a copy."""
        try:
            return self._core.state(part)
        except IndexError as error:
            raise UnknownName(str(error)) from None

    def states(self) -> Floats:
        """All states, in the order of ``state_names``; a copy."""
        return self._core.states()

    @property
    def state_names(self) -> List[str]:
        """ "part.state", for ``states``."""
        return self._core.state_names

    @property
    def input_names(self) -> List[str]:
        """Settable inputs, for ``set_inputs`` and ``rollout``."""
        return list(self._inputs)

    @property
    def time_s(self) -> float:
        """Simulated time [s]."""
        return self._core.time_s

    @property
    def step_index(self) -> int:
        """Steps made."""
        return self._core.step_index

    @property
    def energy(self) -> Dict[str, float]:
        """The energy book of the run [J]: final - initial = supplied - dissipated - mismatch."""
        return self._core.energy

    @property
    def certificate(self) -> str:
        """What the energy book comes to: "holds", "conditional" or "violated"."""
        return self._core.certificate

    @property
    def coupling(self) -> Dict[str, Any]:
        """How well the parts agreed: ``"poor"``, where more than 5 % of the energy that was moved went astray
        (``"mismatch_share"``, ``"moved_J"``); and for methods without a tolerance ``"largest_residual"``."""
        return self._core.coupling

    @property
    def starts_at_odds(self) -> Optional[Dict[str, Any]]:
        """With ``"start": "as_given"``: how often states that violate a rigid joint were stepped as they
        were (``"count"``), when first (``"first_s"``), and which (``"first"``). None: never."""
        return self._core.starts_at_odds

    @property
    def resolution(self) -> Optional[Dict[str, Any]]:
        """The worst that was seen of motion that the steps do not resolve: its ``"kind"``, ``"part"``,
        ``"port"``, ``"share"`` of all motion there, ``"h_lambda"`` and ``"step"``. None: nothing was."""
        return self._core.resolution

    @property
    def all_well(self) -> bool:
        """Whether ``portwave run --strict`` would exit with 0."""
        return self._core.all_well

    @property
    def report(self) -> Dict[str, Any]:
        """Of the last step: its size [s], inner iterations, residual, and whether it converged."""
        return self._core.report

    @property
    def method(self) -> str:
        """The method that was chosen, and why."""
        return self._core.method

    def set_parameter(self, path: str, value: float, *, tune: bool = False) -> None:
        """Changes a number of a part between steps, ``"load.inertia_kgm2"`` or
        ``"arm.masses_kg[1]"``, in its unit. States go on; what is stored more counts as supplied.
        ``tune``: choose impedances anew, where it changes by much.
        Errors: ``KeyError``; ``ConfigError`` where the number is not allowed."""
        try:
            self._core.set_parameter(path, number(value, path))
        except IndexError as error:
            raise UnknownName(str(error)) from None
        if flag(tune, "`tune`"):
            self._core.tune_anew()

    def parameter(self, path: str) -> float:
        """Such a number as it is at present."""
        try:
            return self._core.parameter(path)
        except IndexError as error:
            raise UnknownName(str(error)) from None

    def linearise(self, outputs: Sequence[str] = ()) -> Linearisation:
        """The system where the run has come to: A, B, C, D for the design of controllers.
        ``outputs``: states, efforts and flows by name; inputs are the settable ones."""
        _refuse_text(outputs)
        try:
            return Linearisation(self._core.linearise(list(outputs)), list(outputs))
        except IndexError as error:
            raise UnknownName(str(error)) from None

    def snapshot(self, into: Optional[Snapshot] = None) -> Snapshot:
        """The run as it stands. ``into``: a snapshot whose memory is used again."""
        out = Snapshot() if into is None else into
        self._core.snapshot(out)
        return out

    def restore(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot; what follows is then the same bit by bit.
        Errors: ``ValueError`` where it is of another system, other parameters or other options, which
        it names, or is no state of a run; nothing has changed then."""
        self._core.restore(snapshot)

    def clone(self) -> "Stepper":
        """Another stepper in the same state."""
        out = Stepper.__new__(Stepper)
        out._core = self._core.clone()
        out._inputs = dict(self._inputs)
        out._quantities = dict(self._quantities)
        out.step = out._core.step
        return out

    def __repr__(self) -> str:
        return f"<portwave.Stepper at {self.time_s:g} s, {self.step_index} steps>"


def warn_of(notes: Sequence[Tuple[str, str]], level: int = 3) -> None:
    """Raises what a system may say, but probably does not mean, as warnings: of the caller's caller, or of who
    is ``level`` calls away."""
    for where, what in notes:
        warnings.warn(f"{where}: {what}", ScenarioWarning, stacklevel=level)


def _refuse_text(names: Sequence[str]) -> None:
    """One name in place of a list of them would be taken for its letters."""
    if isinstance(names, str):
        raise TypeError(f"names of quantities are a list: [{names!r}]")


def _progress_bar(
    wanted: bool, start_s: float, end_s: Optional[float]
) -> Tuple[Optional[Callable[[float], None]], Callable[[], None]]:
    if not wanted:
        return None, lambda: None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None, lambda: None
    total = None if end_s is None else max(end_s - start_s, 0.0)
    bar = tqdm(total=total, unit="s", desc="simulated")

    def tell(time_s: float) -> None:
        bar.update(time_s - start_s - bar.n)

    return tell, bar.close

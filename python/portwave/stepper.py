"""The stepper: advance a system, set its inputs, read its quantities, return to earlier states."""

from __future__ import annotations

import math
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from . import _portwave
from ._portwave import Arena, Snapshot
from .arrays import Floats, as_floats, dimensions, flag, number, refuse_text, whole
from .derivatives import RolloutDerivatives
from .errors import ConfigError, errors_that_name, issue_warnings, unknown_names
from .linear import Linearisation
from .progress import progress_bar
from .readings import Readings
from .result import Result
from .system import System, pointers, scenario_of


def _time_budget(value: Optional[float], name: str) -> float:
    """Return a deadline or a pace; 0 for None. A budget that has shrunk to 0 does not ask for none."""
    if value is None:
        return 0.0
    budget = number(value, f"`{name}`")
    if not 0.0 < budget < math.inf:
        error = ConfigError()
        error.issues = [(f"/{name}", f"must be finite and > 0, or None for none, got {budget:g}")]
        raise error
    return budget


class Stepper(Readings):
    """Advance one system in macro-steps.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        A system, a scenario as a dictionary, or the path of a scenario file.
    threads : int, optional
        Number of threads. Results do not depend on it. Default: 1.
    certify : bool, optional
        Whether to keep the energy ledger, on which `energy` and `certificate` rest. Default: True.
    overrides : mapping of str to object, optional
        Values by JSON pointer, such as ``{"/time/step_s": 1e-3}``, that replace those of the
        scenario, as ``portwave run --set`` does.
    deadline_s : float, optional
        Time in which a step is committed [s], > 0; its inner iteration ends early if need be. Results then
        depend on the clock. Default: no deadline.
    pace : float, optional
        Simulated time per wall time, > 0. Default: as fast as possible.
    arena : Arena, optional
        Worker threads that help, shared with others. Default: the stepper's own.

    Raises
    ------
    ConfigError
        The system has defects; its `issues` lists all of them.

    Warns
    -----
    ScenarioWarning
        The system is allowed but probably not what was meant, for example because shafts turn
        against each other.

    See Also
    --------
    Ensemble : Thousands of replicas of one system.

    Notes
    -----
    ``stepper[name]`` reads a quantity in its unit: a state ``"part.state"``, ``"part.port.effort"``
    or ``"part.port.flow"`` (means over the last step), ``"part.storage"`` [J],
    ``"part.state.coenergy"`` (a velocity at the end of the step), a signal, or a
    settable input. ``stepper[name] = value`` sets an input of the kind ``"settable"`` for the
    following steps.

    Where an event of the scenario has ``"end_run"``, `step`, `run_until`, `record`, `rollout` and
    `differentiate` return after the step in which it happens, and `ended_by` is its name.

    The interpreter's lock is released during steps, and Ctrl-C ends a run after the current step.
    One thread at a time may use a stepper (else ``RuntimeError``); different steppers run side by
    side.

    Examples
    --------
    >>> stepper = pw.Stepper("examples/embedding/servo.json")
    >>> stepper["supply.effort"] = 12.0  # V
    >>> stepper.step(1000)
    >>> round(stepper["motor.speed"])  # rad/s
    240
    """

    def __init__(
        self,
        system: Union[System, Mapping[str, Any], str, "os.PathLike[str]"],
        *,
        threads: int = 1,
        certify: bool = True,
        overrides: Optional[Mapping[str, Any]] = None,
        deadline_s: Optional[float] = None,
        pace: Optional[float] = None,
        arena: Optional[Arena] = None,
    ) -> None:
        if not (arena is None or isinstance(arena, Arena)):
            raise TypeError(f"`arena` must be a portwave.Arena, got {arena!r}")
        own = scenario_of(system)
        text, matrices = own._handed_over()
        with errors_that_name(own.part_at):
            self._core = _portwave.Stepper(
                text,
                str(own.folder),
                matrices,
                list(pointers(overrides or {})),
                whole(threads, "`threads`"),
                flag(certify, "`certify`"),
                _time_budget(deadline_s, "deadline_s"),
                _time_budget(pace, "pace"),
                arena,
                own._may_load_plugins(),
            )
        issue_warnings(self._core.notes)
        self._inputs: Dict[str, int] = {
            name: i for i, name in enumerate(self._core.input_names)
        }
        self._quantities: Dict[str, int] = {}

    def step(self, steps: int = 1) -> None:
        """Advance by macro-steps of the scenario's size.

        Each step is all or nothing: where one fails, the state before it stands.

        Parameters
        ----------
        steps : int, optional
            Number of steps, from 0 to 2**53; fewer are made where an event ends the run. Default: 1.

        Raises
        ------
        StepError
            A step failed.
        """
        self._core.step(whole(steps, "`steps`"))

    def step_by(self, step_s: float) -> None:
        """Advance by one macro-step of another size.

        Parameters
        ----------
        step_s : float
            Size of the step [s], finite and > 0.

        Raises
        ------
        StepError
            The step failed.
        """
        self._core.step_by(number(step_s, "the step"))

    def run_until(self, time_s: float) -> None:
        """Advance to a given time.

        Parameters
        ----------
        time_s : float
            Simulated time to reach [s]; the last step is shortened to end there. Nothing happens
            where the stepper is already there or beyond. An event with ``"end_run"`` ends the call
            earlier (`ended_by`).

        Raises
        ------
        StepError
            A step failed.
        """
        time_s = number(time_s, "the time to run to")
        if not math.isfinite(time_s):
            raise ValueError(f"the time to run to must be finite, got {time_s}")
        self._core.run_until(time_s)

    def record(
        self,
        until: Optional[float] = None,
        *,
        steps: Optional[int] = None,
        observe: Optional[Sequence[str]] = None,
        every: int = 1,
        progress: bool = False,
    ) -> Result:
        """Advance and record quantities.

        Parameters
        ----------
        until : float, optional
            Simulated time to reach [s]. Default: the end that the scenario names.
        steps : int, optional
            Number of macro-steps, in place of `until`.
        observe : sequence of str, optional
            Names of the quantities to record, as for reading. Default: those of the scenario.
        every : int, optional
            Steps between two recorded rows. Default: 1.
        progress : bool, optional
            Whether to show a progress bar, where tqdm is installed. Default: False.

        Returns
        -------
        Result
            The present point and one after every `every`-th step, up to the end or to an event with
            ``"end_run"``; its `events` and `ended_by` tell.

        Raises
        ------
        StepError
            A step failed.
        UnknownName
            A name in `observe` stands for nothing.
        """
        if until is not None and steps is not None:
            raise ValueError("give `until` or `steps`, not both")
        steps = None if steps is None else whole(steps, "`steps`")
        until = None if until is None else number(until, "`until`")
        every = whole(every, "`every`")
        if until is not None and not math.isfinite(until):
            raise ValueError(f"`until` must be finite, got {until}")
        names = self._core.default_quantities if observe is None else observe
        indices = self._indices(names)
        end_s = self._core.end_s if until is None else until
        before = self.step_index
        tell, done = progress_bar(progress, self.time_s, end_s if steps is None else None)
        try:
            table = self._core.record(steps, end_s, indices, every, tell)
        finally:
            done()
        made = self.step_index > before
        return Result(
            t=np.ascontiguousarray(table[:, 0]),
            y=np.ascontiguousarray(table[:, 1:].T),
            names=names,
            units=[self._core.unit(i) for i in indices],
            shortcomings=self._core.shortcomings,
            energy=self.energy,
            certificate=self.certificate,
            coupling=self.coupling,
            resolution=self.resolution,
            starts_at_odds=self.starts_at_odds,
            impulses=self.impulses,
            events=self.events,
            ended_by=self.ended_by if made else None,
        )

    def rollout(self, inputs: Any, observe: Sequence[str]) -> Floats:
        """Advance under a sequence of inputs and return quantities.

        Parameters
        ----------
        inputs : (T, m) array_like
            Values of the m settable inputs in the order of `input_names`, one row per step, each
            held over its step. Shape (T,) will do where m is 1.
        observe : sequence of str
            Names of the k quantities to return.

        Returns
        -------
        (T, k) ndarray
            The quantities after each step, in their units; fewer rows where an event with
            ``"end_run"`` ends the run.

        Raises
        ------
        ValueError
            `inputs` has another shape or a number that is not finite; no step was made.
        StepError
            A step failed.
        UnknownName
            A name in `observe` stands for nothing.
        """
        m = len(self._inputs)
        # A column may come without its second dimension.
        shape = (None,) if m == 1 and dimensions(inputs) == 1 else (None, m)
        u = as_floats(inputs, shape, "Tm", "inputs").reshape(-1, m)
        return self._core.drive(u, self._indices(observe))

    def differentiate(
        self,
        inputs: Optional[Any] = None,
        *,
        steps: Optional[int] = None,
        parameters: Sequence[str] = (),
    ) -> RolloutDerivatives:
        """Advance and differentiate each step.

        Each step is differentiated by the implicit function theorem, as the step that it is: no step size goes to
        zero.

        Parameters
        ----------
        inputs : (T, m) array_like, optional
            Values of the m settable inputs in the order of `input_names`, one row per step, each held over its
            step. Shape (T,) will do where m is 1. Default: the inputs stay as they are.
        steps : int, optional
            Number T of macro-steps; where `inputs` is not given. Default: 1.
        parameters : sequence of str, optional
            Names of parameters by which to differentiate, as of `set_parameter`. Default: none.

        Returns
        -------
        RolloutDerivatives
            Up to the end or to an event with ``"end_run"``: the states, and the derivatives of all of them by those at the start, inputs and parameters.

        Raises
        ------
        UnknownName
            There is no such parameter.
        ValueError
            The system has no such derivatives: a method without waves, steps that choose their size, blocks of a
            controller, cut parts, foreign programs, or a parameter that is 0. No step was made.
        RuntimeError
            A step has none, the message says why: its iteration did not converge, the guard acted, states jumped,
            or a part, which is named, changed over. It was made.
        StepError
            A step failed.
        """
        m = len(self._inputs)
        refuse_text(parameters)
        u = None
        if inputs is not None:
            if steps is not None:
                raise ValueError("give `inputs` or `steps`, not both")
            shape = (None,) if m == 1 and dimensions(inputs) == 1 else (None, m)
            u = as_floats(inputs, shape, "Tm", "inputs").reshape(-1, m)
        count = len(u) if u is not None else 1 if steps is None else whole(steps, "`steps`")
        with unknown_names:
            made, states = self._core.differentiate(u, count, list(parameters))
        return RolloutDerivatives(
            made, states, self.state_names, list(self._inputs), list(parameters)
        )

    def __setitem__(self, name: str, value: float) -> None:
        """Set a settable input for the following steps, in its unit."""
        slot = self._inputs.get(name)
        if slot is None:
            with unknown_names:
                self._core.find_input(name)
        self._core.set_input(slot, number(value, name))

    def set_inputs(self, values: Any) -> None:
        """Set all settable inputs for the following steps.

        Parameters
        ----------
        values : (m,) array_like
            Finite values in the order of `input_names`, in their units.

        Raises
        ------
        ValueError
            `values` has another shape or a number that is not finite; nothing has changed.
        """
        self._core.set_inputs(as_floats(values, (len(self._inputs),), "m", "inputs"))

    def set_parameter(self, path: str, value: float, *, tune: bool = False) -> None:
        """Change a parameter of a part between two steps.

        The states stay; the change of the stored energy counts as supplied. Snapshots hold the value.

        Parameters
        ----------
        path : str
            Name of the parameter, such as ``"load.inertia_kgm2"`` or ``"arm.masses_kg[1]"``.
        value : float
            Its new value, in its unit.
        tune : bool, optional
            Whether to choose the wave impedances again; worthwhile after a large change.
            Default: False.

        Raises
        ------
        UnknownName
            There is no such parameter.
        ConfigError
            The value is not allowed.
        """
        with unknown_names:
            self._core.set_parameter(path, number(value, path))
        if flag(tune, "`tune`"):
            self._core.retune()

    def parameter(self, path: str) -> float:
        """Return the present value of a parameter.

        Parameters
        ----------
        path : str
            Name of the parameter, such as ``"load.inertia_kgm2"``.

        Returns
        -------
        float
            Its value, in its unit.

        Raises
        ------
        UnknownName
            There is no such parameter.
        """
        with unknown_names:
            return self._core.parameter(path)

    def set_states(self, states: Any) -> None:
        """Set all states between two steps; the change of the stored energy counts as supplied.

        Parameters
        ----------
        states : (n,) array_like
            Finite values in the order of `state_names`, in their units.

        Raises
        ------
        ValueError
            They have another shape, or a part, which is named, cannot be in its state.
        """
        n = len(self.state_names)
        self._core.set_states(as_floats(states, (n,), "n", "states", finite=False))

    def linearise(self, outputs: Sequence[str] = ()) -> Linearisation:
        """Linearise the system about its present state.

        Parameters
        ----------
        outputs : sequence of str, optional
            Names of the outputs: states, efforts and flows. Default: none. The inputs are the
            settable ones.

        Returns
        -------
        Linearisation
            The matrices E, A, B, C and D, with the names of states, inputs and outputs.

        Raises
        ------
        UnknownName
            A name in `outputs` stands for nothing.
        ValueError
            An output is neither a state nor an effort or flow, or a part cannot be linearised.
        RuntimeError
            Efforts and flows at the present state cannot be determined.
        """
        refuse_text(outputs)
        with unknown_names:
            return Linearisation(self._core.linearise(list(outputs)), list(outputs))

    def snapshot(self, into: Optional[Snapshot] = None) -> Snapshot:
        """Save the complete state of the run.

        Parameters
        ----------
        into : Snapshot, optional
            A snapshot to overwrite, whose memory is reused. Default: a new one.

        Returns
        -------
        Snapshot
            The state, for `restore`.
        """
        out = Snapshot() if into is None else into
        self._core.snapshot(out)
        return out

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a saved state and its parameters; the run continues as it did from there.

        Parameters
        ----------
        snapshot : Snapshot
            A state of this stepper, of a clone, or of one that began with the same system and options.

        Raises
        ------
        ValueError
            It is empty, or of another system or options, which the message names; nothing changed.
        """
        self._core.restore(snapshot)

    def clone(self) -> "Stepper":
        """Create an independent stepper with the same state and time.

        Returns
        -------
        Stepper
            The clone. To try out many futures, restoring one snapshot is cheaper.
        """
        out = Stepper.__new__(Stepper)
        out._core = self._core.clone()
        out._inputs = dict(self._inputs)
        out._quantities = dict(self._quantities)
        return out

    def __repr__(self) -> str:
        return f"<portwave.Stepper at {self.time_s:g} s, {self.step_index} steps>"

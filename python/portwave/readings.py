"""What can be read of a stepper: quantities, states, energies, reports."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _portwave
from .arrays import Floats, number, refuse_text, whole
from .errors import UnknownName, unknown_names

_MOST_TOLD = 8


class Readings:
    """The part of `Stepper` that changes nothing."""

    _core: _portwave.Stepper
    _inputs: Dict[str, int]
    _quantities: Dict[str, int]

    def _indices(self, names: Sequence[str]) -> NDArray[np.int32]:
        refuse_text(names)
        found: List[int] = []
        unknown: List[str] = []
        for name in names:
            try:
                found.append(self.find(name))
            except UnknownName as error:
                unknown.append(str(error))
        if unknown:
            more = [f"... and {len(unknown) - _MOST_TOLD} more names"] if len(unknown) > _MOST_TOLD else []
            raise UnknownName("\n".join(unknown[:_MOST_TOLD] + more))
        return np.array(found, dtype=np.int32)

    def find(self, name: str) -> int:
        """Resolve the name of a quantity once, for fast reading in a loop.

        Parameters
        ----------
        name : str
            Name of the quantity, such as ``"load.angle"``.

        Returns
        -------
        int
            Number of the quantity, for `read`.

        Raises
        ------
        UnknownName
            The name stands for nothing; the message names the nearest one.
        """
        found = self._quantities.get(name)
        if found is None:
            with unknown_names:
                found = self._quantities[name] = self._core.find(name)
        return found

    def read(self, quantity: int) -> float:
        """Read a quantity by its number.

        Parameters
        ----------
        quantity : int
            Number of the quantity, from `find`.

        Returns
        -------
        float
            Its present value, in its unit.

        Raises
        ------
        IndexError
            `find` has not returned this number.
        """
        return self._core.read(whole(quantity, "the number of a quantity"))

    def find_all(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Resolve the names of many quantities once, for fast reading in a loop.

        Parameters
        ----------
        names : sequence of str
            Names of k quantities.

        Returns
        -------
        (k,) array of int
            Their numbers, for `read_all`.

        Raises
        ------
        UnknownName
            Names stand for nothing; the message has all of them, each with the nearest one there is.
        """
        return self._indices(names)

    def read_all(self, quantities: NDArray[np.int32]) -> Floats:
        """Read many quantities by their numbers.

        Parameters
        ----------
        quantities : (k,) array of int
            Numbers of quantities, from `find_all`.

        Returns
        -------
        (k,) array
            Their present values, in their units.

        Raises
        ------
        IndexError
            `find_all` has not returned one of these numbers.
        """
        return self._core.read_all(np.asarray(quantities, dtype=np.int32))

    def __getitem__(self, name: str) -> float:
        """Read a quantity or a settable input by name, in its unit."""
        slot = self._inputs.get(name)
        if slot is not None:
            return self._core.read_input(slot)
        return self._core.read(self.find(name))

    def unit(self, name: str) -> str:
        """Return the unit of a quantity.

        Parameters
        ----------
        name : str
            Name of the quantity, such as ``"load.speed"``.

        Returns
        -------
        str
            Its unit, such as ``"rad/s"``; empty for a pure number.

        Raises
        ------
        UnknownName
            The name stands for nothing.
        """
        return self._core.unit(self.find(name))

    def state(self, part: str) -> Floats:
        """Return the state of one part.

        Parameters
        ----------
        part : str
            Name of the part.

        Returns
        -------
        (n,) ndarray
            Its states, in their units. The array is a read-only view that is valid until the next
            step and keeps its memory alive; for a part that is cut into pieces it is a copy.

        Raises
        ------
        UnknownName
            There is no such part.
        """
        with unknown_names:
            return self._core.state(part)

    def states(self) -> Floats:
        """Return the states of all parts.

        Returns
        -------
        (n,) ndarray
            A copy, in the order of `state_names`, in the units of the states.
        """
        return self._core.states()

    def state_at(self, time_s: float) -> Floats:
        """Return the states of all parts at a time within the last step.

        Parameters
        ----------
        time_s : float
            Simulated time [s], from the start to the end of the last step.

        Returns
        -------
        (n,) ndarray
            The states in the order of `state_names`, in their units, by the polynomial through the
            stages of the step.

        Raises
        ------
        RuntimeError
            Steps are of one size, and the method is neither ``"kick-drift"`` nor ``"taylor"``: there
            are states at the ends of steps only.
        IndexError
            The time is not within the last step.
        """
        return self._core.state_at(number(time_s, "the time"))

    @property
    def events(self) -> List[Dict[str, Any]]:
        """Events in the last call that made steps, in order of time.

        Each has ``"time_s"`` [s]; ``"event"``, the name of the entry of the scenario's ``"events"`` or
        of the part whose equations changed there; and ``"direction"``: ``"rising"``, ``"falling"``,
        or what the part calls it, such as ``"closes"``. After `restore`: those of the last step.
        """
        return self._core.events

    @property
    def ended_by(self) -> Optional[str]:
        """Name of the event with ``"end_run"`` that happened in the last step; None: none did.

        `step`, `run_until`, `record`, `rollout` and `differentiate` return after that step. A later
        call goes on from there.
        """
        return self._core.ended_by

    @property
    def state_names(self) -> List[str]:
        """Names ``"part.state"`` of the n states, in the order of `states`."""
        return self._core.state_names

    @property
    def input_names(self) -> List[str]:
        """Names of the m settable inputs, in the order of `set_inputs` and `rollout`."""
        return list(self._inputs)

    @property
    def time_s(self) -> float:
        """Simulated time [s]."""
        return self._core.time_s

    @property
    def step_index(self) -> int:
        """Number of macro-steps made."""
        return self._core.step_index

    @property
    def energy(self) -> Dict[str, float]:
        """Energy ledger of the run [J].

        ``final_J - initial_J = supplied_J - dissipated_J - numerical_dissipation_J - mismatch_J -
        impact_J`` up to rounding; ``numerical_dissipation_J`` is what damped steps took,
        ``tank_J`` what the passivity guard holds in reserve, and ``impact_J`` what impulses took.
        """
        return self._core.energy

    @property
    def certificate(self) -> str:
        """Verdict of the energy ledger: ``"holds"``, ``"conditional"`` or ``"violated"``."""
        return self._core.certificate

    @property
    def coupling(self) -> Dict[str, Any]:
        """How well the parts agree.

        ``"poor"`` (bool) is True where more than 5 % of the moved energy went astray between the
        parts. ``"mismatch_share"`` is that share, ``"moved_J"`` the moved energy [J], and
        ``"largest_residual"`` the largest residual of methods without a tolerance.
        """
        return self._core.coupling

    @property
    def starts_at_odds(self) -> Optional[Dict[str, Any]]:
        """Steps that started from states which violate a rigid joint; None: no step did.

        Such steps are made with ``"start": "as_given"``, or where ports have no physical domain.
        ``"count"`` is their number, ``"first_s"`` the time of the first one [s], and ``"first"``
        describes its states.
        """
        return self._core.starts_at_odds

    @property
    def impulses(self) -> Optional[Dict[str, Any]]:
        """Impulses that acted on states which violated a rigid joint; None: there were none.

        With ``"start": "consistent"`` states jump to where the joints hold. ``"count"`` is the
        number of impulses, ``"impact_J"`` what they took and ``"supplied_J"`` what sources
        supplied [J]. ``"first"`` lists the first few: ``"time_s"`` [s], ``"cause"``, ``"joint"``,
        ``"jumps"`` (the states), ``"impact_J"`` and ``"supplied_J"`` [J].
        """
        return self._core.impulses

    @property
    def resolution(self) -> Optional[Dict[str, Any]]:
        """Worst motion that the steps do not resolve; None: they resolve all of it.

        The keys are ``"kind"``, ``"part"``, ``"port"``, ``"share"`` (of all motion there),
        ``"h_lambda"`` (step size times the fastest rate there) and ``"step"`` (its number).
        """
        return self._core.resolution

    @property
    def all_well(self) -> bool:
        """Whether every check of the steps so far holds, as ``portwave run --strict`` requires.

        A step that failed has raised `StepError` and is not among them.
        """
        return not self.shortcomings

    @property
    def shortcomings(self) -> List[str]:
        """What keeps the steps so far from being `all_well`, in words; an empty list: nothing does."""
        return self._core.shortcomings

    @property
    def report(self) -> Dict[str, Any]:
        """Report of the last step.

        The keys are ``"step_s"`` (its size [s]), ``"iterations"`` (inner iterations),
        ``"residual"``, ``"converged"``, ``"rejected_steps"`` (attempts before it) and
        ``"stored_J"`` (energy stored after it [J]).
        """
        return self._core.report

    @property
    def method(self) -> str:
        """The chosen coupling method, and the reason for the choice."""
        return self._core.method

    @property
    def deadline(self) -> Optional[Dict[str, Any]]:
        """How well steps kept to the deadline; None without one.

        ``"steps"`` under the deadline, ``"misses"`` after it, of which ``"preempted_misses"`` lost the
        processor, ``"guard_misses"`` were in time but for the guard, or own work beside the steps,
        ``"late_misses"`` began late since the step before ended late, and ``"trial_misses"`` tried what did
        not seem to fit; ``"unused_share"``, the mean share of the time that was left in steps that could have
        used it; and slacks, deadline less duration [s]: ``"worst_slack_s"``, ``"slack_p01_s"``,
        ``"slack_p50_s"``, ``"slack_p99_s"``, and ``"jitter_s"`` from the one of 1 % to that of 99 %.
        """
        return self._core.deadline

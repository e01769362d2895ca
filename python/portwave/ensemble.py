"""Many replicas of one system, side by side."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _portwave
from .arrays import Floats, as_floats, flag, number, whole
from .arrays import dimensions as count_dimensions
from .errors import errors_that_name, issue_warnings, unknown_names
from .system import System, pointers, scenario_of

_MOST_TOLD = 8


class Ensemble:
    """N replicas of one system, each with its own parameters, initial states and inputs.

    Parts of one kind are stepped together over all replicas, in the lanes of the processor's vector
    units and on several threads. Each replica has the bits of a `Stepper` of its own. A replica that
    fails stops alone; its states are NaN from then on.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        A system, a scenario as a dictionary, or the path of a scenario file.
    replicas : int, optional
        Number N of replicas. Default: the length of the arrays in `parameters`.
    parameters : mapping of str to (N,) array_like, optional
        Parameters that differ between the replicas, such as ``{"load.inertia_kgm2": values}``, in
        their units.
    threads : int, optional
        Number of threads. Results do not depend on it. Default: 1.
    chunk : int, optional
        Number of replicas that are stepped together; 0: as many as suit the caches. Default: 0.
    certify : bool, optional
        Whether to keep an energy ledger for each replica. Default: True.
    overrides : mapping of str to object, optional
        Values by JSON pointer that replace those of the scenario, as for `Stepper`.

    Raises
    ------
    ConfigError
        The system has defects, or a parameter has a value that is not allowed.
    UnknownName
        A name in `parameters` stands for nothing.
    ValueError
        The arrays in `parameters` differ in length, or hold numbers that are not finite.

    Examples
    --------
    >>> inertias = [0.1, 0.2, 0.4]  # kg m^2
    >>> drives = pw.Ensemble(
    ...     "examples/embedding/servo.json", parameters={"load.inertia_kgm2": inertias}
    ... )
    >>> x = drives.rollout(u=[[24.0]] * 100)  # V
    >>> x.shape == (3, 100, len(drives.state_names))
    True
    """

    def __init__(
        self,
        system: Union[System, Mapping[str, Any], str, "os.PathLike[str]"],
        replicas: Optional[int] = None,
        *,
        parameters: Optional[Mapping[str, Any]] = None,
        threads: int = 1,
        chunk: int = 0,
        certify: bool = True,
        overrides: Optional[Mapping[str, Any]] = None,
    ) -> None:
        columns = {
            name: as_floats(values, (None,), "N", name)
            for name, values in (parameters or {}).items()
        }
        replicas = None if replicas is None else whole(replicas, "`replicas`")
        for name, column in columns.items():
            if replicas is None:
                replicas = len(column)
            if len(column) != replicas:
                raise ValueError(
                    f"{name!r} has {len(column)} numbers, and there are {replicas} replicas"
                )
        if replicas is None:
            raise ValueError("say how many replicas there are, or give `parameters`")
        values = np.zeros((replicas if replicas > 0 else 0, len(columns)))
        for k, column in enumerate(columns.values()):
            values[:, k] = column
        own = scenario_of(system)
        text, matrices = own._handed_over()
        with unknown_names, errors_that_name(own.part_at):
            self._core = _portwave.Ensemble(
                text,
                str(own.folder),
                matrices,
                list(pointers(overrides or {})),
                replicas,
                list(columns),
                values,
                whole(threads, "`threads`"),
                whole(chunk, "`chunk`"),
                flag(certify, "`certify`"),
                own._may_load_plugins(),
            )
        issue_warnings(self._core.notes)
        # Pieces of a part that is cut hold copies of states: where each state is kept and copied.
        self._kept, self._copies = self._core.state_places

    def rollout(
        self,
        x0: Optional[Any] = None,
        u: Optional[Any] = None,
        steps: Optional[int] = None,
        *,
        every: int = 1,
        out: Optional[Floats] = None,
    ) -> Floats:
        """Begin a new run at the start time, make T steps and return the states.

        Parameters
        ----------
        x0 : (N, n) or (n,) array_like, optional
            Initial states in the order of `state_names`, per replica or for all, in their units.
            Default: those of the system.
        u : (N, T, m) or (T, m) array_like, optional
            Inputs in the order of `input_names`, per replica or for all, in their units; each row is
            held over its step. Default: the inputs stay as they are.
        steps : int, optional
            Number T of macro-steps; needed where `u` is not given.
        every : int, optional
            Number of steps between two returned states; a divisor of T. Default: 1.
        out : (N, T // every, n) ndarray, optional
            Array of float64 in C order to write the result to. Default: a new one.

        Returns
        -------
        (N, T // every, n) ndarray
            The states after every `every`-th step, in their units; NaN after a replica has failed.

        Raises
        ------
        ValueError
            An argument has another shape, or an initial state or an input is not finite, whose replica
            and name the message has; no step was made.

        Notes
        -----
        Arrays of float64 in C order are not copied, unless a part is cut into pieces.
        """
        n, m = len(self.state_names), len(self.input_names)
        steps = None if steps is None else whole(steps, "`steps`")
        every = whole(every, "`every`")
        if u is not None:
            u = self._spread(u, 3, "u", (None, m), self.input_names)
            if steps is not None and steps != u.shape[1]:
                raise ValueError(f"u is for {u.shape[1]} steps, and `steps` is {steps}")
            steps = u.shape[1]
        if steps is None:
            raise ValueError("say how many steps, or give `u`")
        if steps < 0:
            raise ValueError(f"`steps` must be at least 0, got {steps}")
        if x0 is not None:
            x0 = self._of_pieces(self._spread(x0, 2, "x0", (n,), self.state_names))
        if every < 1 or steps % every != 0:
            raise ValueError(f"`every` must divide the {steps} steps, got {every}")
        shape = (self.replicas, steps // every, n)
        if out is None:
            out = np.empty(shape)
        elif out.shape != shape or out.dtype != np.float64 or not out.flags.c_contiguous:
            raise ValueError(f"`out` must be of shape {shape}, float64, in C order")
        if self._kept is None:
            self._core.rollout(x0, u, steps, out, every)
        else:
            own = np.empty((*shape[:2], len(self._copies)))
            self._core.rollout(x0, u, steps, own, every)
            out[...] = own[..., self._kept]
        return out

    def _of_pieces(self, x: Floats) -> Floats:
        return x if self._copies is None else np.ascontiguousarray(x[:, self._copies])

    def _spread(
        self,
        given: Any,
        dimensions: int,
        name: str,
        rest: Tuple[Optional[int], ...],
        names: Optional[List[str]] = None,
    ) -> Floats:
        """Return an array for all replicas; with ``names`` of its columns it has to be finite."""
        for_all = count_dimensions(given) == dimensions - 1
        wanted = rest if for_all else (self.replicas, *rest)
        array = as_floats(given, wanted, "T" * len(wanted), name, finite=False)
        if names is not None and not np.isfinite(array).all():
            wrong = [tuple(int(i) for i in where) for where in np.argwhere(~np.isfinite(array))]
            told = []
            for where in wrong[:_MOST_TOLD]:
                place = ", ".join(str(i) for i in where)
                whose = "all replicas" if for_all else f"replica {where[0]}"
                told.append(
                    f"{name}[{place}] is {array[where]}: must be finite ({whose}, {names[where[-1]]!r})"
                )
            if len(wrong) > _MOST_TOLD:
                told.append(f"... and {len(wrong) - _MOST_TOLD} more")
            raise ValueError("\n".join(told))
        if for_all:
            array = np.broadcast_to(array, (self.replicas, *array.shape))
        return np.ascontiguousarray(array)

    def step(self, steps: int = 1) -> None:
        """Advance all replicas that have not failed.

        Parameters
        ----------
        steps : int, optional
            Number of macro-steps, from 0 to 2**53. Default: 1.
        """
        self._core.step(whole(steps, "`steps`"))

    def states(self) -> Floats:
        """Return the present states.

        Returns
        -------
        (N, n) ndarray
            A copy, in the order of `state_names`, in their units; NaN for replicas that have failed.
        """
        names = self.state_names if self._copies is None else self._copies
        out = np.empty((self.replicas, len(names)))
        self._core.states(out)
        return out if self._kept is None else out[:, self._kept]

    def control(
        self,
        law: Callable[[float, Floats], Any],
        steps: int,
        *,
        every: int = 1,
        x0: Optional[Any] = None,
    ) -> Tuple[Floats, Floats]:
        """Advance under a law that is called once per sample for all replicas.

        Parameters
        ----------
        law : callable
            ``u = law(t, x)``: t is the time since the start of the run [s]; x (N, n) is a copy of the
            states in the order of `state_names`, NaN for replicas that have failed; u (N, m), or (m,)
            for all, holds the inputs in the order of `input_names`. All in their units.
        steps : int
            Number T of macro-steps.
        every : int, optional
            Macro-steps between two samples, over which inputs are held; a divisor of T. Default: 1.
        x0 : (N, n) or (n,) array_like, optional
            States from which a new run begins. Default: the present run goes on.

        Returns
        -------
        x : (N, T // every, n) ndarray
            The states that the law was given, sample by sample.
        u : (N, T // every, m) ndarray
            The inputs that it set; NaN for replicas that had failed.

        Raises
        ------
        ValueError
            An argument or what the law returns has another shape, or an input of a replica that has not
            failed is not finite, which the message names. Steps before that sample stand.

        Notes
        -----
        An exception of the law is passed on; steps before that sample stand. The states at the end are
        those of `states`.

        Examples
        --------
        >>> drives = pw.Ensemble("examples/embedding/servo.json", 3)
        >>> speed = drives.state_names.index("motor.speed")
        >>> x, u = drives.control(lambda t, x: 0.1 * (100.0 - x[:, [speed]]), 50, every=5)
        >>> u.shape
        (3, 10, 1)
        """
        steps, every = whole(steps, "`steps`"), whole(every, "`every`")
        if steps < 0:
            raise ValueError(f"`steps` must be at least 0, got {steps}")
        if every < 1 or steps % every != 0:
            raise ValueError(f"`every` must divide the {steps} steps, got {every}")
        if x0 is not None:
            self.start_from(x0)
        names = self.input_names
        samples = steps // every
        states = np.empty((self.replicas, samples, len(self.state_names)))
        inputs = np.empty((self.replicas, samples, len(names)))
        for k in range(samples):
            states[:, k] = self.states()
            given = law(self.step_index * self.step_s, states[:, k].copy())
            u = self._spread(given, 2, "the law's u", (len(names),)).copy()
            failed = self.statuses()["failed"] if self.failures else np.zeros(len(self), bool)
            # Nobody reads the inputs of these.
            u[failed] = 0.0
            self.set_inputs(u)
            u[failed] = np.nan
            inputs[:, k] = u
            self.step(every)
        return states, inputs

    def start_from(self, x0: Any) -> None:
        """Begin a new run at the start time from given states.

        Parameters
        ----------
        x0 : (N, n) or (n,) array_like
            Initial states in the order of `state_names`, per replica or for all, in their units.

        Raises
        ------
        ValueError
            `x0` has another shape, or a number that is not finite, whose replica, part and state
            the message names; nothing has changed.
        """
        x0 = self._spread(x0, 2, "x0", (len(self.state_names),))
        self._core.set_states(self._of_pieces(x0))

    def set_inputs(self, u: Any) -> None:
        """Set all settable inputs for the following steps.

        Parameters
        ----------
        u : (N, m) or (m,) array_like
            Finite values in the order of `input_names`, per replica or for all, in their units.

        Raises
        ------
        ValueError
            `u` has another shape or a number that is not finite; nothing has changed.
        """
        names = self.input_names
        self._core.set_inputs(self._spread(u, 2, "u", (len(names),), names))

    def set_parameter(self, replica: int, path: str, value: float) -> None:
        """Change a parameter of one replica from the next run on.

        Before the first step of a run it takes effect at once. The replica then takes the steps of an
        ensemble that was made with this value; the others keep theirs. The coupling method stays.

        Parameters
        ----------
        replica : int
            Number of the replica, from 0.
        path : str
            Name of the parameter, such as ``"load.inertia_kgm2"`` or ``"arm.masses_kg[1]"``.
        value : float
            Its new value, in its unit.

        Raises
        ------
        UnknownName
            There is no such parameter.
        IndexError
            There is no such replica.
        ConfigError
            The value is not allowed; the message names the replica, and nothing has changed.
        """
        replica = self._number(replica)
        with unknown_names:
            self._core.set_parameter(replica, path, number(value, path))

    def parameter(self, replica: int, path: str) -> float:
        """Return a parameter of one replica, as of the next run.

        Parameters
        ----------
        replica : int
            Number of the replica, from 0.
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
        IndexError
            There is no such replica.
        """
        replica = self._number(replica)
        with unknown_names:
            return self._core.parameter(replica, path)

    def _number(self, replica: int) -> int:
        replica = whole(replica, "`replica`")
        if not 0 <= replica < self.replicas:
            raise IndexError(f"there is no replica {replica} of {self.replicas}")
        return replica

    @property
    def replicas(self) -> int:
        """Number N of replicas."""
        return self._core.replicas

    def __len__(self) -> int:
        return self._core.replicas

    @property
    def state_names(self) -> List[str]:
        """Names ``"part.state"`` of the n states."""
        return self._core.state_names

    @property
    def input_names(self) -> List[str]:
        """Names of the m settable inputs."""
        return self._core.input_names

    @property
    def step_s(self) -> float:
        """Size of the macro-steps [s]."""
        return self._core.step_s

    @property
    def step_index(self) -> int:
        """Number of macro-steps of the present run."""
        return self._core.step_index

    @property
    def failures(self) -> int:
        """Number of replicas that have failed."""
        return self._core.failures

    @property
    def execution(self) -> str:
        """How the replicas are stepped; where they do not lie in lanes, the reason."""
        return self._core.execution

    @property
    def method(self) -> str:
        """The chosen coupling method, and the reason for the choice."""
        return self._core.method

    def status(self, replica: int) -> Dict[str, Any]:
        """Return the status of one replica.

        Parameters
        ----------
        replica : int
            Number of the replica, from 0.

        Returns
        -------
        dict
            ``"failed"`` (bool), ``"error"`` (the reason) and ``"part"`` (its name); ``"steps"``,
            ``"iterations"`` (evaluations over all steps), ``"not_converged"`` (steps that missed
            their tolerance) and ``"guard_uses"``.

        Raises
        ------
        IndexError
            There is no such replica.
        """
        return self._core.status(whole(replica, "`replica`"))

    def energy(self, replica: int) -> Dict[str, float]:
        """Return the energy ledger of one replica.

        Parameters
        ----------
        replica : int
            Number of the replica, from 0.

        Returns
        -------
        dict of str to float
            The ledger [J], as `Stepper.energy`.

        Raises
        ------
        IndexError
            There is no such replica.
        """
        return self._core.energy(whole(replica, "`replica`"))

    def certificate(self, replica: int) -> str:
        """Return the verdict of the energy ledger of one replica.

        Parameters
        ----------
        replica : int
            Number of the replica, from 0.

        Returns
        -------
        str
            ``"holds"``, ``"conditional"`` or ``"violated"``.

        Raises
        ------
        IndexError
            There is no such replica.
        """
        return self._core.certificate(whole(replica, "`replica`"))

    def statuses(self) -> Dict[str, Any]:
        """Return the status of all replicas.

        Returns
        -------
        dict of str to (N,) ndarray
            As `status`: ``"failed"`` of bool; ``"steps"``, ``"iterations"``, ``"not_converged"`` and
            ``"guard_uses"`` of int; ``"error"`` and ``"part"`` of str objects.
        """
        each = [self._core.status(i) for i in range(self.replicas)]
        kinds = {"failed": bool, "error": object, "part": object}
        return {
            key: np.array([own[key] for own in each], dtype=kinds.get(key, np.int64))
            for key in each[0]
        }

    def energies(self) -> Dict[str, Floats]:
        """Return the energy ledgers of all replicas.

        Returns
        -------
        dict of str to (N,) ndarray
            The ledgers [J], with the keys of `energy`.
        """
        each = [self._core.energy(i) for i in range(self.replicas)]
        return {key: np.array([own[key] for own in each]) for key in each[0]}

    def certificates(self) -> List[str]:
        """Return the verdicts of the energy ledgers of all replicas.

        Returns
        -------
        list of str
            N times ``"holds"``, ``"conditional"`` or ``"violated"``.
        """
        return [self._core.certificate(i) for i in range(self.replicas)]

    def __repr__(self) -> str:
        return f"<portwave.Ensemble of {self.replicas} replicas: {self.execution}>"

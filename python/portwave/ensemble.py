"""Many replicas of one system, side by side."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _portwave
from .arrays import Floats, as_floats, flag, whole
from .arrays import dimensions as count_dimensions
from .errors import UnknownName
from .stepper import warn_of
from .system import System, pointers, scenario_of


class Ensemble:
    """N replicas of a system, each with parameters, initial states and inputs of its own.

    Alike linear and nonlinear parts of all replicas are stepped together, in the lanes of the
    processor's vector units and on several threads. Each replica has the bits that a ``Stepper`` of
    its own would have; one that fails stops alone, and its rows are NaN from then on.
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
        set: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """``replicas``: N; not needed where ``parameters`` says it.
        ``parameters``: numbers of parts, ``{"load.inertia_kgm2": array[N]}``.
        ``chunk``: replicas that are stepped together; 0: as many as suit the caches.
        Others as for ``Stepper``. Errors: ``ConfigError``; ``ValueError`` for shapes.
        """
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
        try:
            self._core = _portwave.Ensemble(
                own.to_json(),
                str(own.folder),
                list(pointers(set or {})),
                replicas,
                list(columns),
                values,
                whole(threads, "`threads`"),
                whole(chunk, "`chunk`"),
                flag(certify, "`certify`"),
            )
        except IndexError as error:
            raise UnknownName(str(error)) from None
        warn_of(self._core.notes)
        # Of parts that are cut, whose pieces hold copies of states: what stands where.
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
        """A new run from t = 0 of T steps: states [N, T/every, n] after every ``every``-th of them.

        ``x0`` [N, n], or [n] for all; none: as the system says. ``u`` [N, T, m], or [T, m] for all,
        held over each step; none: inputs stay as they are. ``steps``: T, where ``u`` does not say it.
        ``out``: an array of that shape to write to. No copies are made of arrays of float64 in C order,
        but where a part is cut. Errors: ``ValueError`` for another shape, and for an input that is not
        finite, before the first step. A replica whose ``x0`` is not finite fails alone.
        """
        n, m = len(self.state_names), len(self.input_names)
        steps = None if steps is None else whole(steps, "`steps`")
        every = whole(every, "`every`")
        if u is not None:
            u = self._spread(u, 3, "u", (None, m))
            if steps is not None and steps != u.shape[1]:
                raise ValueError(f"u is for {u.shape[1]} steps, and `steps` is {steps}")
            steps = u.shape[1]
        if steps is None:
            raise ValueError("say how many steps, or give `u`")
        if steps < 0:
            raise ValueError(f"`steps` must be at least 0, got {steps}")
        if x0 is not None:
            x0 = self._of_pieces(self._spread(x0, 2, "x0", (n,), finite=False))
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
        finite: bool = True,
    ) -> Floats:
        for_all = count_dimensions(given) == dimensions - 1
        wanted = rest if for_all else (self.replicas, *rest)
        array = as_floats(given, wanted, "T" * len(wanted), name, finite=finite)
        if for_all:
            array = np.broadcast_to(array, (self.replicas, *array.shape))
        return np.ascontiguousarray(array)

    def run(self, steps: int) -> None:
        """So many steps more of all replicas that have not failed."""
        steps = whole(steps, "`steps`")
        if steps < 0:
            raise ValueError(f"`steps` must be at least 0, got {steps}")
        self._core.run(steps)

    def states(self) -> Floats:
        """States [N, n], in the order of ``state_names``."""
        names = self.state_names if self._copies is None else self._copies
        out = np.empty((self.replicas, len(names)))
        self._core.states(out)
        return out if self._kept is None else out[:, self._kept]

    def start_from(self, x0: Any) -> None:
        """Begins a new run at t = 0 from states [N, n], or [n] for all."""
        x0 = self._spread(x0, 2, "x0", (len(self.state_names),), finite=False)
        self._core.set_states(self._of_pieces(x0))

    def set_inputs(self, u: Any) -> None:
        """Settable inputs [N, m], or [m] for all, for the steps to come."""
        self._core.set_inputs(self._spread(u, 2, "u", (len(self.input_names),)))

    @property
    def replicas(self) -> int:
        """N."""
        return self._core.replicas

    def __len__(self) -> int:
        return self._core.replicas

    @property
    def state_names(self) -> List[str]:
        """"part.state", n of them."""
        return self._core.state_names

    @property
    def input_names(self) -> List[str]:
        """Settable inputs, m of them."""
        return self._core.input_names

    @property
    def step_s(self) -> float:
        """Step size [s]."""
        return self._core.step_s

    @property
    def step_index(self) -> int:
        """Steps of this run."""
        return self._core.step_index

    @property
    def failures(self) -> int:
        """Replicas that have failed."""
        return self._core.failures

    @property
    def execution(self) -> str:
        """How the replicas are stepped, and why not in lanes where they are not."""
        return self._core.execution

    @property
    def method(self) -> str:
        """The method that was chosen, and why."""
        return self._core.method

    def status(self, replica: int) -> Dict[str, Any]:
        """What became of a replica: ``failed``, ``error``, ``steps``, ``iterations``, …"""
        return self._core.status(whole(replica, "`replica`"))

    def energy(self, replica: int) -> Dict[str, float]:
        """The energy book of a replica [J]."""
        return self._core.energy(whole(replica, "`replica`"))

    def certificate(self, replica: int) -> str:
        """What that comes to: "holds", "conditional" or "violated"."""
        return self._core.certificate(whole(replica, "`replica`"))

    def __repr__(self) -> str:
        return f"<portwave.Ensemble of {self.replicas} replicas: {self.execution}>"

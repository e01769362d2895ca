"""Many replicas of one system, side by side."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _portwave
from .arrays import Floats
from .errors import UnknownName
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
            name: np.asarray(values, dtype=np.float64)
            for name, values in (parameters or {}).items()
        }
        for name, column in columns.items():
            if column.ndim != 1:
                raise ValueError(f"{name!r} must have one number per replica, got shape {column.shape}")
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
                json.dumps(own.to_dict()),
                str(own.folder),
                list(pointers(set or {})),
                replicas,
                list(columns),
                values,
                threads,
                chunk,
                certify,
            )
        except IndexError as error:
            raise UnknownName(str(error)) from None

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
        ``out``: an array of that shape to write to. No copies are made of arrays of float64 in C order.
        """
        n, m = len(self.state_names), len(self.input_names)
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
            x0 = self._spread(x0, 2, "x0", (n,))
        if every < 1 or steps % every != 0:
            raise ValueError(f"`every` must divide the {steps} steps, got {every}")
        shape = (self.replicas, steps // every, n)
        if out is None:
            out = np.empty(shape)
        elif out.shape != shape or out.dtype != np.float64 or not out.flags.c_contiguous:
            raise ValueError(f"`out` must be of shape {shape}, float64, in C order")
        self._core.rollout(x0, u, steps, out, every)
        return out

    def _spread(self, given: Any, dimensions: int, name: str, rest: Tuple[Optional[int], ...]) -> Floats:
        array = np.asarray(given, dtype=np.float64)
        wanted = (self.replicas, *rest)
        if array.ndim == dimensions - 1:
            array = np.broadcast_to(array, (self.replicas, *array.shape))
        fits = array.ndim == dimensions and all(
            size is None or size == own for size, own in zip(wanted, array.shape)
        )
        if not fits:
            shown = ", ".join("T" if size is None else str(size) for size in wanted)
            raise ValueError(f"{name} must be of shape [{shown}], got {list(np.shape(given))}")
        return np.ascontiguousarray(array)

    def run(self, steps: int) -> None:
        """So many steps more of all replicas that have not failed."""
        if steps < 0:
            raise ValueError(f"`steps` must be at least 0, got {steps}")
        self._core.run(steps)

    def states(self) -> Floats:
        """States [N, n], in the order of ``state_names``."""
        out = np.empty((self.replicas, len(self.state_names)))
        self._core.states(out)
        return out

    def start_from(self, x0: Any) -> None:
        """Begins a new run at t = 0 from states [N, n], or [n] for all."""
        self._core.set_states(self._spread(x0, 2, "x0", (len(self.state_names),)))

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
        return self._core.status(replica)

    def energy(self, replica: int) -> Dict[str, float]:
        """The energy book of a replica [J]."""
        return self._core.energy(replica)

    def certificate(self, replica: int) -> str:
        """What that comes to: "holds", "conditional" or "violated"."""
        return self._core.certificate(replica)

    def __repr__(self) -> str:
        return f"<portwave.Ensemble of {self.replicas} replicas: {self.execution}>"

"""What a run has recorded."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Sequence

import numpy as np

from .arrays import Floats
from .errors import UnknownName


class Result:
    """Recorded quantities over time.

    ``time_s``: times of the rows [s], shape [T]. ``values``: shape [T, k]. ``names`` and ``units``:
    of the k quantities. ``result["load.angle"]`` is one of them, shape [T]. ``energy``: the energy
    book of the run [J]. ``certificate``: "holds", "conditional" or "violated".
    ``coupling``, ``starts_at_odds``, ``resolution``, ``all_well``: as those of ``Stepper``.
    """

    def __init__(
        self,
        table: Floats,
        names: Sequence[str],
        units: Sequence[str],
        energy: Dict[str, float],
        certificate: str,
        starts_at_odds: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.time_s = table[:, 0]
        self.values = table[:, 1:]
        self.names: List[str] = list(names)
        self.units: List[str] = list(units)
        self.energy = energy
        self.certificate = certificate
        self.coupling: Dict[str, Any] = {}
        self.resolution: Optional[Dict[str, Any]] = None
        self.all_well: Optional[bool] = None
        self.starts_at_odds = starts_at_odds

    def __getitem__(self, name: str) -> Floats:
        try:
            return self.values[:, self.names.index(name)]
        except ValueError:
            raise UnknownName(f"{name!r} was not recorded; recorded: {', '.join(self.names)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.time_s)

    def __repr__(self) -> str:
        span = f"{self.time_s[0]:g} to {self.time_s[-1]:g} s" if len(self) else "empty"
        return f"<portwave.Result: {len(self)} rows, {span}: {', '.join(self.names)}>"

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``, one column per quantity, the index being the time [s]."""
        import pandas

        index = pandas.Index(self.time_s, name="time_s")
        return pandas.DataFrame(self.values, index=index, columns=self.names)

    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` over ``time_s``, each variable with its unit."""
        import xarray

        variables = {
            name: ("time_s", self[name], {"units": unit}) for name, unit in zip(self.names, self.units)
        }
        time = xarray.Variable("time_s", self.time_s, {"units": "s"})
        return xarray.Dataset(variables, coords={"time_s": time}, attrs=dict(self.energy))

    def plot(self, names: Sequence[str] | None = None, axes: Any = None) -> Any:
        """Draws quantities over time by matplotlib, one axis per unit. Returns the axes."""
        import matplotlib.pyplot as plt

        names = list(names) if names is not None else self.names
        by_unit: Dict[str, List[str]] = {}
        for name in names:
            self[name]  # says what is there
            by_unit.setdefault(self.units[self.names.index(name)], []).append(name)
        if axes is None:
            _, grid = plt.subplots(len(by_unit), 1, sharex=True, squeeze=False, layout="constrained")
            axes = grid[:, 0]
        axes = np.atleast_1d(axes)
        if len(axes) != len(by_unit):
            raise ValueError(f"{len(by_unit)} axes are needed, one per unit, and {len(axes)} given")
        for axis, (unit, group) in zip(axes, by_unit.items()):
            for name in group:
                axis.plot(self.time_s, self[name], label=name)
            axis.set_ylabel(f"[{unit}]" if unit else "")
            axis.legend(loc="best", frameon=False)
            axis.grid(alpha=0.3)
        axes[-1].set_xlabel("time [s]")
        return axes

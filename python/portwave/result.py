"""Recorded quantities over time."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Sequence

import numpy as np

from .arrays import Floats
from .errors import UnknownName


class Result:
    """Quantities that `Stepper.record` has recorded, laid out as by ``scipy.integrate.solve_ivp``.

    Attributes
    ----------
    t : (n,) ndarray
        Times of the recorded points [s].
    y : (k, n) ndarray
        Values of the k quantities at these times, in `units`. ``result[name]`` is one of its rows.
    names : list of str
        Names of the k quantities, such as ``"load.angle"``.
    units : list of str
        Their units, such as ``"rad"``; empty for a pure number.
    success : bool
        Whether every check of the run holds: energy certificate, tolerance, coupling, resolution.
        A step that fails raises `StepError`, so the recorded run has always reached its end, or an
        event that ends it.
    message : str
        The outcome in words; where `success` is False, everything that is amiss.
    energy : dict of str to float
        Energy ledger of the run [J], as `Stepper.energy`.
    certificate : str
        ``"holds"``, ``"conditional"`` or ``"violated"``, as `Stepper.certificate`.
    coupling : dict
        How well the parts agree, as `Stepper.coupling`.
    resolution : dict or None
        Worst motion that the steps do not resolve, as `Stepper.resolution`.
    starts_at_odds : dict or None
        Steps from states that violate a rigid joint, as `Stepper.starts_at_odds`.
    impulses : dict or None
        Impulses that acted on states which violated a rigid joint, as `Stepper.impulses`.
    events : list of dict
        Events of the recorded steps, as `Stepper.events`.
    ended_by : str or None
        Name of the event with ``"end_run"`` that ended the run; None: it reached its end.

    Notes
    -----
    ``len(result)`` is the number n of points, and iterating over a result gives its names.

    Examples
    --------
    >>> result = pw.Stepper("examples/two_oscillators.json").record(until=10.0, every=10)
    >>> result.t.shape, result.y.shape
    ((101,), (2, 101))
    >>> result.success
    True
    """

    def __init__(
        self,
        *,
        t: Floats,
        y: Floats,
        names: Sequence[str],
        units: Sequence[str],
        shortcomings: Sequence[str],
        energy: Dict[str, float],
        certificate: str,
        coupling: Dict[str, Any],
        resolution: Optional[Dict[str, Any]],
        starts_at_odds: Optional[Dict[str, Any]],
        impulses: Optional[Dict[str, Any]],
        events: Sequence[Dict[str, Any]] = (),
        ended_by: Optional[str] = None,
    ) -> None:
        self.t = t
        self.y = y
        self.names: List[str] = list(names)
        self.units: List[str] = list(units)
        self.success: bool = not shortcomings
        reached = "reached its end" if ended_by is None else f'was ended by the event "{ended_by}"'
        checks = "but " + "; ".join(shortcomings) if shortcomings else "and every check holds"
        self.message: str = f"The run {reached}, {checks}."
        self.energy = energy
        self.certificate = certificate
        self.coupling = coupling
        self.resolution = resolution
        self.starts_at_odds = starts_at_odds
        self.impulses = impulses
        self.events: List[Dict[str, Any]] = list(events)
        self.ended_by = ended_by

    @property
    def time_s(self) -> Floats:
        """The same as `t` [s], shape (n,), by the name that result files use."""
        return self.t

    @property
    def values(self) -> Floats:
        """Transpose of `y`, shape (n, k), one column per quantity."""
        return self.y.T

    def __getitem__(self, name: str) -> Floats:
        """Return the values (n,) of one quantity."""
        if name not in self.names:
            raise UnknownName(f"{name!r} was not recorded; recorded: {', '.join(self.names)}")
        row: Floats = self.y[self.names.index(name)]
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        span = f"{self.t[0]:g} to {self.t[-1]:g} s" if len(self) else "empty"
        outcome = "success" if self.success else "no success"
        return f"<portwave.Result: {len(self)} points, {span}, {outcome}: {', '.join(self.names)}>"

    def to_dataframe(self) -> Any:
        """Convert the result to a pandas table.

        Returns
        -------
        pandas.DataFrame
            One row per point and one column per quantity; the index ``time_s`` is the time [s].
        """
        import pandas

        index = pandas.Index(self.t, name="time_s")
        return pandas.DataFrame(self.values, index=index, columns=self.names)

    def to_xarray(self) -> Any:
        """Convert the result to an xarray data set.

        Returns
        -------
        xarray.Dataset
            One variable per quantity over ``time_s`` [s], each with its unit in ``attrs["units"]``;
            the energy ledger [J] is in the ``attrs`` of the data set.
        """
        import xarray

        variables = {
            name: ("time_s", row, {"units": unit})
            for name, row, unit in zip(self.names, self.y, self.units)
        }
        time = xarray.Variable("time_s", self.t, {"units": "s"})
        return xarray.Dataset(variables, coords={"time_s": time}, attrs=dict(self.energy))

    def plot(self, names: Optional[Sequence[str]] = None, axes: Any = None) -> Any:
        """Draw quantities over time by matplotlib.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the quantities to draw. Default: all.
        axes : matplotlib.axes.Axes or sequence of them, optional
            Where to draw, one per unit. Default: a new figure.

        Returns
        -------
        (u,) ndarray of matplotlib.axes.Axes
            The axes, one for each of the u units, in the order in which the units first appear.

        Raises
        ------
        UnknownName
            A name in `names` was not recorded.
        ValueError
            `axes` does not hold one entry per unit.
        """
        import matplotlib.pyplot as plt

        names = list(names) if names is not None else self.names
        by_unit: Dict[str, List[str]] = {}
        for name in names:
            self[name]  # raises where it was not recorded
            by_unit.setdefault(self.units[self.names.index(name)], []).append(name)
        if axes is None:
            _, grid = plt.subplots(len(by_unit), 1, sharex=True, squeeze=False, layout="constrained")
            axes = grid[:, 0]
        axes = np.atleast_1d(axes)
        if len(axes) != len(by_unit):
            raise ValueError(f"{len(by_unit)} axes are needed, one per unit, and {len(axes)} given")
        for axis, (unit, group) in zip(axes, by_unit.items()):
            for name in group:
                axis.plot(self.t, self[name], label=name)
            axis.set_ylabel(f"[{unit}]" if unit else "")
            axis.legend(loc="best", frameon=False)
            axis.grid(alpha=0.3)
        axes[-1].set_xlabel("time [s]")
        return axes

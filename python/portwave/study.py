"""Studies: many runs of one system, as tables.

    table = portwave.study.order("chain.json", [0.01, 0.005, 0.0025])
    table["error"]           # NumPy array
    table.to_pandas()
    table.plot()

They are those of ``portwave study``, described in docs/reference/studies.md. The system is given as to
a ``Stepper``; ``set``: JSON pointers and values. Ctrl-C ends a study between its runs. Errors:
``ConfigError`` with all defects; a run that fails is a row, with the reason in its ``failure``.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _portwave
from .arrays import flag, number, whole
from .errors import UnknownName
from .stepper import warn_of
from .system import System, pointers, scenario_of

Given = Union[System, Mapping[str, Any], str, "os.PathLike[str]"]
Row = Dict[str, Any]

__all__ = ["Table", "budget", "iterations", "order", "rate", "scaling", "tolerance", "tune"]


class Table:
    """Rows of a study.

    ``rows``: dictionaries. ``names``: of the columns. ``facts``: what holds for all rows, such as
    ``"reference"``. ``table["error"]``: a column as an array, NaN where there is no number.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        facts: Mapping[str, Any],
        *,
        x: str,
        y: Sequence[str],
        by: Sequence[str] = (),
        log: str = "xy",
    ) -> None:
        """``x``, ``y``, ``by``, ``log``: what ``plot`` shows."""
        self.rows: List[Row] = [dict(row) for row in rows]
        self.facts: Dict[str, Any] = dict(facts)
        self.names: List[str] = list(self.rows[0]) if self.rows else []
        self._x, self._y, self._by, self._log = x, list(y), list(by), log

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.names:
            raise UnknownName(f"there is no column {name!r}; there are: {', '.join(self.names)}")
        values = [row[name] for row in self.rows]
        if all(value is None or isinstance(value, (bool, int, float)) for value in values):
            return np.array([np.nan if value is None else value for value in values])
        return np.array(values, dtype=object)

    def where(self, **wanted: Any) -> "Table":
        """The rows with these values: ``table.where(method="strang")``."""
        for name in wanted:
            self[name]  # says what is there
        rows = [row for row in self.rows if all(row[n] == value for n, value in wanted.items())]
        out = Table(rows, self.facts, x=self._x, y=self._y, by=self._by, log=self._log)
        out.names = self.names
        return out

    @property
    def failures(self) -> List[str]:
        """Why rows have no numbers, of those that have none."""
        return [row["failure"] for row in self.rows if row.get("failure")]

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``, a row for each; ``facts`` are its ``attrs``."""
        import pandas

        frame = pandas.DataFrame.from_records(self.rows, columns=self.names)
        frame.attrs.update(self.facts)
        return frame

    def plot(self, y: Optional[Sequence[str]] = None, *, axes: Any = None) -> Any:
        """Draws columns by matplotlib, a line for each method and the like. Returns the axes.
        ``y``: columns in place of the usual ones."""
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(layout="constrained")
        columns = list(y) if y is not None else self._y
        groups: Dict[Tuple[Any, ...], List[Row]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row[name] for name in self._by), []).append(row)
        for key, rows in groups.items():
            for column in columns:
                points = [
                    (row[self._x], row[column])
                    for row in rows
                    if row[column] is not None and np.isfinite(row[column])
                ]
                if not points:
                    continue
                words = [str(part) for part in key if part != ""]
                if len(columns) > 1 or not words:
                    words.append(column)
                axes.plot(*zip(*points), marker="o", markersize=3, label=", ".join(words))
        if "x" in self._log:
            axes.set_xscale("log")
        if "y" in self._log:
            axes.set_yscale("log")
        axes.set_xlabel(_label(self._x))
        axes.set_ylabel(_label(columns[0]) if len(columns) == 1 else "")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="best", frameon=False)
        axes.grid(alpha=0.3)
        return axes

    def __repr__(self) -> str:
        return f"<portwave.study.Table: {len(self)} rows: {', '.join(self.names)}>"


def _label(column: str) -> str:
    """ "step_s" is a step in seconds."""
    for ending, unit in (("_s", "s"), ("_J", "J")):
        if column.endswith(ending):
            return f"{column[: -len(ending)].replace('_', ' ')} [{unit}]"
    return column.replace("_", " ")


def _wholes(values: Sequence[int], name: str) -> List[int]:
    return [whole(value, f"a number of {name}") for value in values]


def _numbers(values: Sequence[float], name: str) -> List[float]:
    return [number(value, f"a number of {name}") for value in values]


def _given(system: Given, changes: Optional[Mapping[str, Any]]) -> Tuple[str, str, List[Tuple[str, str]]]:
    own = scenario_of(system)
    given = own.to_json(), str(own.folder), pointers(changes or {})
    warn_of(_portwave.scenario_notes(*given), 4)
    return given


def _read(text: str) -> Tuple[List[Row], Row]:
    """The rows of a study and what holds for all of them, from its JSON."""
    out = json.loads(text)
    rows, facts = (out, {}) if isinstance(out, list) else (out.pop("rows", []), out)
    for row in rows:
        if "failure" in row:
            row["failure"] = row["failure"] or ""
    return rows, facts


def budget(
    system: Given,
    budgets: Sequence[int] = (0, 3, 8, 20, 35, 50),
    *,
    methods: Sequence[str] = (),
    impedances: Sequence[str] = (),
    guard: Sequence[bool] = (),
    threads: int = 1,
    set: Optional[Mapping[str, Any]] = None,
) -> Table:
    """The error that a budget of inner iterations leaves, against the monolithic reference.

    ``budgets``: inner iterations per step, a run for each. ``methods``: such as "peaceman-rachford",
    ``impedances``: such as "matched", ``guard``: with or without; empty: as the system says. Columns:
    ``iterations``, ``method``, ``impedance``, ``guard``, ``rms``, ``max`` and ``final`` (distances of
    the observed states, in their units), ``max_passivity_residual_J`` [J], ``guard_steps``,
    ``status``, ``failure``."""
    out = _portwave.study_budget(
        *_given(system, set),
        _wholes(budgets, "`budgets`"),
        list(methods),
        list(impedances),
        [flag(own, "`guard`") for own in guard],
        whole(threads, "`threads`"),
    )
    return Table(
        *_read(out), x="iterations", y=["rms"], by=["method", "impedance", "guard"], log="y"
    )


def order(
    system: Given,
    steps_s: Sequence[float],
    *,
    methods: Optional[Sequence[str]] = None,
    repeat: int = 3,
    threads: int = 1,
    set: Optional[Mapping[str, Any]] = None,
) -> Table:
    """Errors, observed orders and times of methods for a linear system, by step size.

    ``steps_s``: step sizes [s], each dividing the end time. ``methods``: such as ["strang"]; None: the
    system's, and Strang splitting where it applies; the midpoint rule takes part anyway. ``repeat``:
    runs of each row, the fastest counts. Columns: ``method``, ``step_s`` [s], ``steps``, ``error``
    (Euclidean norm over all states at the end), ``order``, ``operations``, ``operations_sparse``,
    ``time_s`` [s], ``failure``. Facts: ``states``, ``end_s`` [s], ``reference``, ``equal_error``."""
    out = _portwave.study_order(
        *_given(system, set),
        _numbers(steps_s, "`steps_s`"),
        None if methods is None else list(methods),
        whole(repeat, "`repeat`"),
        whole(threads, "`threads`"),
    )
    return Table(*_read(out), x="step_s", y=["error"], by=["method"])


def rate(
    system: Given,
    *,
    steps: int = 20,
    limit: int = 100,
    set: Optional[Mapping[str, Any]] = None,
) -> Table:
    """Predicted and observed contraction of the inner iteration per evaluation, for every rule of
    impedances.

    ``steps``: macro-steps to observe. ``limit``: evaluations of one step. Columns: ``impedance``,
    ``method``, ``relaxation``, ``predicted``, ``observed`` and ``worst`` (factors, 0 to 1),
    ``predicted_evaluations`` and ``observed_evaluations`` (to reduce the residual by 1e-10),
    ``not_converged`` (steps), ``failure``."""
    found, _ = _read(
        _portwave.study_rate(*_given(system, set), whole(steps, "`steps`"), whole(limit, "`limit`"))
    )
    rows = [
        {name: row[name] for name in ("impedance", "method", "relaxation")}
        | {
            "predicted": (row["predicted"] or {}).get("contraction"),
            "observed": row["observed"]["contraction"],
            "worst": row["observed"]["worst_contraction"],
            "predicted_evaluations": (row["predicted"] or {}).get("evaluations"),
            "observed_evaluations": row["observed"]["max_evaluations"],
            "not_converged": row["observed"]["not_converged"],
            "failure": row["problem"] or "",
        }
        for row in found
    ]
    return Table(
        rows, {}, x="impedance", y=["predicted", "observed"], by=["method"], log="y"
    )


def iterations(
    system: Given,
    iterations: int = 20,
    *,
    windows: int = 1,
    start_error: Optional[Tuple[float, float]] = None,
    set: Optional[Mapping[str, Any]] = None,
) -> Table:
    """A dynamic iteration, iterate by iterate, against what it converges to.

    ``iterations``: of each window. ``windows``: so many from the start. ``start_error``: (size [1/s],
    decay [1/s]) of an error that each window starts with, of Jacobi and Gauss-Seidel. Columns:
    ``start_s`` of the window [s], ``iteration``, ``x_error``, ``x_relative``, ``x_largest``,
    ``z_error``, ``z_weighted``, ``ratio``. Facts: ``method``, ``integrator``, ``states``, ``step_s``
    [s], ``window_steps``, ``failures``."""
    error = None if start_error is None else tuple(_numbers(start_error, "`start_error`"))
    out = _portwave.study_iteration(
        *_given(system, set), whole(iterations, "`iterations`"), whole(windows, "`windows`"), error
    )
    _, facts = _read(out)
    found = facts.pop("windows")
    rows = [{"start_s": window["start_s"], **row} for window in found for row in window["rows"]]
    facts["failures"] = [(one["start_s"], one["failure"]) for one in found if one["failure"]]
    return Table(rows, facts, x="iteration", y=["x_relative"], by=["start_s"], log="y")


def tolerance(
    system: Given,
    tolerances: Sequence[float] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
    *,
    stages: Sequence[int] = (),
    repeat: int = 1,
    threads: int = 1,
    set: Optional[Mapping[str, Any]] = None,
) -> Table:
    """What a tolerance of steps that choose their size comes to at the end of a run, and costs.

    ``tolerances``: a run for each, with each number of ``stages`` (empty: the system's). ``repeat``:
    runs of each row, the fastest counts. Columns: ``stages``, ``tolerance``, ``error`` (relative, all
    states at the end), ``steps``, ``rejected``, ``smallest_s`` and ``largest_s`` [s], ``missed``,
    ``evaluations``, ``time_s`` [s], ``failure``. Facts: ``end_s`` [s], ``reference``."""
    out = _portwave.study_tolerance(
        *_given(system, set),
        _numbers(tolerances, "`tolerances`"),
        _wholes(stages, "`stages`"),
        whole(repeat, "`repeat`"),
        whole(threads, "`threads`"),
    )
    return Table(*_read(out), x="tolerance", y=["error"], by=["stages"])


def scaling(
    system: Given,
    threads: Sequence[int] = (1, 2, 4),
    *,
    repetitions: int = 9,
    steps: int = 0,
    cores: int = 0,
    set: Optional[Mapping[str, Any]] = None,
) -> Table:
    """What threads bring: wall time of a macro-step by the number of threads.

    ``steps``: macro-steps of one measurement; 0: chosen, about 50 ms. ``cores``: of this machine; more
    threads are predicted, not measured; 0: ask the system. Columns: ``threads``, ``predicted``,
    ``step_s`` [s] (median), ``spread``, ``speed_up``, ``efficiency``, ``predicted_step_s`` [s],
    ``tasks``, ``imbalance``, ``execution``, and those of ``portwave study scaling``. Facts: ``cores``,
    ``repetitions``, ``steps_per_repetition``."""
    out = _portwave.study_scaling(
        *_given(system, set),
        _wholes(threads, "`threads`"),
        whole(repetitions, "`repetitions`"),
        whole(steps, "`steps`"),
        whole(cores, "`cores`"),
    )
    rows, facts = _read(out)
    rows = [{**row, "predicted": row["source"] == "predicted"} for row in rows]
    return Table(rows, facts, x="threads", y=["speed_up"], log="")


def tune(
    system: Given,
    *,
    impedances: str = "auto",
    set: Optional[Mapping[str, Any]] = None,
) -> Table:
    """What each rule of impedances promises at the initial state, and which one is chosen.

    ``impedances``: the rule to choose with, "auto" for any. Columns: ``impedance``, ``method``,
    ``contraction`` (per evaluation, 0 to 1), ``evaluations`` (to reduce the residual by 1e-10),
    ``converges``, ``failure``. Facts: the choice, by ``method``, ``impedance`` and ``reason``; ``ports``
    with their impedances, ``parts`` with their margins."""
    _, facts = _read(_portwave.tune(*_given(system, set), impedances))
    unknown = {"contraction": None, "evaluations": 0, "converges": False}
    rows: List[Row] = []
    for rule in facts.pop("rules"):
        failure = rule.pop("problem") or ""
        name = rule.pop("impedance")
        for method, found in (rule or {"": unknown}).items():
            rows.append({"impedance": name, "method": method, **found, "failure": failure})
    facts.update(facts.pop("choice"))
    return Table(
        rows, facts, x="impedance", y=["contraction"], by=["method"], log="y"
    )

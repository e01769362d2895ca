"""Studies: many runs of one system, as tables.

They are the studies of ``portwave study``, described in docs/reference/studies.md. Ctrl-C ends a
study between two runs. A run that fails is a row whose ``failure`` gives the reason.

Examples
--------
>>> table = pw.study.order("examples/msd_singlerate.json", [1 / 128, 1 / 256], repeat=1)
>>> table.where(method="strang")["error"].shape
(2,)
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, cast

import numpy as np
from numpy.typing import NDArray

from . import _portwave
from .arrays import flag, number, whole
from .errors import UnknownName, issue_warnings
from .system import System, pointers, scenario_of

Given = Union[System, Mapping[str, Any], str, "os.PathLike[str]"]
Row = Dict[str, Any]

__all__ = ["Table", "accuracy", "budget", "iterations", "order", "rate", "scaling", "tolerance", "tune"]


class Table:
    """The table of a study.

    Parameters
    ----------
    rows : sequence of dict
        The rows, by name of the column; all have the same names.
    facts : mapping
        What holds for all rows.
    x : str
        The column that `plot` draws over.
    y : sequence of str
        The columns that `plot` draws by default.
    by : sequence of str, optional
        Columns that tell the lines of a plot apart. Default: one line.
    log : {"xy", "x", "y", ""}, optional
        The logarithmic axes of a plot. Default: both.

    Attributes
    ----------
    rows : list of dict
        The rows, by name of the column.
    names : list of str
        Names of the columns.
    facts : dict
        What holds for all rows, such as ``"reference"``.

    Notes
    -----
    ``table[name]`` is a column as an array, with NaN where a row has no number. Iterating over a
    table gives its rows.
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
        self.rows: List[Row] = [dict(row) for row in rows]
        self.facts: Dict[str, Any] = dict(facts)
        self.names: List[str] = list(self.rows[0]) if self.rows else []
        self._x, self._y, self._by, self._log = x, list(y), list(by), log

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column as an array, one entry per row."""
        if name not in self.names:
            raise UnknownName(f"there is no column {name!r}; there are: {', '.join(self.names)}")
        values = [row[name] for row in self.rows]
        if all(value is None or isinstance(value, (bool, int, float)) for value in values):
            return np.array([np.nan if value is None else value for value in values])
        return np.array(values, dtype=object)

    def where(self, **wanted: Any) -> "Table":
        """Select rows.

        Parameters
        ----------
        **wanted
            Values by name of the column, such as ``method="strang"``.

        Returns
        -------
        Table
            The rows that have all these values.

        Raises
        ------
        UnknownName
            There is no such column.
        """
        for name in wanted:
            self[name]  # raises where there is no such column
        rows = [row for row in self.rows if all(row[n] == value for n, value in wanted.items())]
        out = Table(rows, self.facts, x=self._x, y=self._y, by=self._by, log=self._log)
        out.names = self.names
        return out

    @property
    def failures(self) -> List[str]:
        """The reasons of the runs that failed."""
        return [row["failure"] for row in self.rows if row.get("failure")]

    def to_dataframe(self) -> Any:
        """Convert the table to a pandas table.

        Returns
        -------
        pandas.DataFrame
            The same rows and columns, with `facts` in its ``attrs``.
        """
        import pandas

        frame = pandas.DataFrame.from_records(self.rows, columns=self.names)
        frame.attrs.update(self.facts)
        return frame

    def plot(self, y: Optional[Sequence[str]] = None, *, axes: Any = None) -> Any:
        """Draw columns by matplotlib, one line for each method or other kind of row.

        Parameters
        ----------
        y : sequence of str, optional
            Names of the columns to draw. Default: those that the study is about.
        axes : matplotlib.axes.Axes, optional
            Where to draw. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
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
    """Return the label of a column: "step_s" is "step [s]"."""
    for ending, unit in (("_s", "s"), ("_J", "J")):
        if column.endswith(ending):
            return f"{column[: -len(ending)].replace('_', ' ')} [{unit}]"
    return column.replace("_", " ")


def _list(values: Any, name: str) -> List[Any]:
    if isinstance(values, str) or not np.iterable(values):
        raise TypeError(f"{name} must be a list, got {values!r}")
    return list(values)


def _wholes(values: Sequence[int], name: str) -> List[int]:
    return [whole(value, f"a number of {name}") for value in _list(values, name)]


def _numbers(values: Sequence[float], name: str) -> List[float]:
    return [number(value, f"a number of {name}") for value in _list(values, name)]


def _given(
    system: Given, overrides: Optional[Mapping[str, Any]]
) -> Tuple[str, str, bool, List[Tuple[str, str]]]:
    own = scenario_of(system)
    given = own.to_json(), str(own.folder), own._may_load_plugins(), pointers(overrides or {})
    issue_warnings(_portwave.scenario_notes(given), 4)
    return given


def _read(text: str) -> Tuple[List[Row], Row]:
    """Return the rows of a study and the facts that hold for all of them, from its JSON."""
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
    overrides: Optional[Mapping[str, Any]] = None,
) -> Table:
    """Compare budgets of inner iterations with the monolithic reference.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        A system, a scenario as a dictionary, or the path of a scenario file.
    budgets : sequence of int, optional
        Inner iterations per step, one run for each. Default: 0, 3, 8, 20, 35, 50.
    methods : sequence of str, optional
        Methods to compare, such as ``"peaceman-rachford"``. Default: that of the system.
    impedances : sequence of str, optional
        Rules of impedances to compare, such as ``"matched"``. Default: that of the system.
    guard : sequence of bool, optional
        Runs with and without the passivity guard. Default: as the system says.
    threads : int, optional
        Number of threads. Default: 1.
    overrides : mapping of str to object, optional
        Values by JSON pointer that replace those of the scenario.

    Returns
    -------
    Table
        Columns: ``iterations``, ``method``, ``impedance``, ``guard``, ``rms``, ``max`` and ``final``
        (distances of the observed states, in their units), ``max_passivity_residual_J`` [J],
        ``guard_steps``, ``status``, ``failure``.

    Raises
    ------
    ConfigError
        The system or an option has defects.
    """
    out = _portwave.study_budget(
        _given(system, overrides),
        _wholes(budgets, "`budgets`"),
        _list(methods, "`methods`"),
        _list(impedances, "`impedances`"),
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
    overrides: Optional[Mapping[str, Any]] = None,
) -> Table:
    """Measure errors, orders and times of methods for a linear system, by step size.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        A system, a scenario as a dictionary, or the path of a scenario file.
    steps_s : sequence of float
        Step sizes [s], each of which divides the end time.
    methods : sequence of str, optional
        Methods to compare, such as ``["strang"]``; the midpoint rule is always added. Default: that
        of the system, and Strang splitting where it applies.
    repeat : int, optional
        Number of runs per row, of which the fastest counts. Default: 3.
    threads : int, optional
        Number of threads. Default: 1.
    overrides : mapping of str to object, optional
        Values by JSON pointer that replace those of the scenario.

    Returns
    -------
    Table
        Columns: ``method``, ``step_s`` [s], ``steps``, ``error`` (Euclidean norm over all states at
        the end), ``order``, ``operations``, ``operations_sparse``, ``time_s`` [s], ``failure``.
        Facts: ``states``, ``end_s`` [s], ``reference``, ``equal_error``.

    Raises
    ------
    ConfigError
        The system or an option has defects.
    """
    out = _portwave.study_order(
        _given(system, overrides),
        _numbers(steps_s, "`steps_s`"),
        None if methods is None else _list(methods, "`methods`"),
        whole(repeat, "`repeat`"),
        whole(threads, "`threads`"),
    )
    return Table(*_read(out), x="step_s", y=["error"], by=["method"])


def rate(
    system: Given,
    *,
    steps: int = 20,
    limit: int = 100,
    overrides: Optional[Mapping[str, Any]] = None,
) -> Table:
    """Compare predicted and observed contraction for every rule of impedances.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        A system, a scenario as a dictionary, or the path of a scenario file.
    steps : int, optional
        Number of macro-steps to observe. Default: 20.
    limit : int, optional
        Largest number of evaluations in one step. Default: 100.
    overrides : mapping of str to object, optional
        Values by JSON pointer that replace those of the scenario.

    Returns
    -------
    Table
        Columns: ``impedance``, ``method``, ``relaxation``, ``predicted``, ``observed`` and ``worst``
        (factors per evaluation, 0 to 1), ``predicted_evaluations`` and ``observed_evaluations`` (to
        reduce the residual by 1e-10), ``not_converged`` (steps), ``failure``.

    Raises
    ------
    ConfigError
        The system or an option has defects.
    """
    found, _ = _read(
        _portwave.study_rate(_given(system, overrides), whole(steps, "`steps`"), whole(limit, "`limit`"))
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
    overrides: Optional[Mapping[str, Any]] = None,
) -> Table:
    """Compare the iterates of a dynamic iteration with their limit.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        A system, a scenario as a dictionary, or the path of a scenario file.
    iterations : int, optional
        Number of iterates of each window. Default: 20.
    windows : int, optional
        Number of windows from the start. Default: 1.
    start_error : (float, float), optional
        Size [1/s] and decay [1/s] of an error with which each window starts; for Jacobi and
        Gauss-Seidel. Default: none.
    overrides : mapping of str to object, optional
        Values by JSON pointer that replace those of the scenario.

    Returns
    -------
    Table
        Columns: ``start_s`` of the window [s], ``iteration``, ``x_error``, ``x_relative``,
        ``x_largest``, ``z_error``, ``z_weighted``, ``ratio``. Facts: ``method``, ``integrator``,
        ``states``, ``step_s`` [s], ``window_steps``, ``failures``.

    Raises
    ------
    ConfigError
        The system or an option has defects.
    """
    error = None if start_error is None else tuple(_numbers(start_error, "`start_error`"))
    out = _portwave.study_iteration(
        _given(system, overrides), whole(iterations, "`iterations`"), whole(windows, "`windows`"), error
    )
    _, facts = _read(out)
    found = facts.pop("windows")
    rows = [{"start_s": window["start_s"], **row} for window in found for row in window["rows"]]
    facts["failures"] = [(one["start_s"], one["failure"]) for one in found if one["failure"]]
    return Table(rows, facts, x="iteration", y=["x_relative"], by=["start_s"], log="y")


def accuracy(
    system: Given, *, whole: bool = False, overrides: Optional[Mapping[str, Any]] = None
) -> Optional[Row]:
    """Run a system twice, the second time with finer steps, and compare all states.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        A system, a scenario as a dictionary, or the path of a scenario file.
    whole : bool, optional
        Compare the whole run. Default: its beginning, about a second of work.
    overrides : mapping of str to object, optional
        Values by JSON pointer that replace those of the scenario.

    Returns
    -------
    dict or None
        The line ``accuracy`` of ``portwave run``: ``share``, the largest lasting difference of a
        state relative to its range; the ``state`` and ``time_s`` [s] of it; ``error``, what error of
        the run that comes to; ``instant``, the same of the largest difference at any instant; ``far``,
        whether ``share`` is more than an eighth; ``until_s`` [s], ``whole`` and ``instants``, what was compared;
        ``step_s`` [s] or ``tolerance`` of the finer run, and its ``failure``. None where there is
        nothing to compare.

    Raises
    ------
    ConfigError
        The system has defects.
    StepError
        A step of the run itself fails.

    Examples
    --------
    >>> pw.study.accuracy("examples/first_scenario.json")["far"]
    False
    """
    return _portwave.study_accuracy(_given(system, overrides), flag(whole, "`whole`"))


def tolerance(
    system: Given,
    tolerances: Sequence[float] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
    *,
    stages: Sequence[int] = (),
    repeat: int = 1,
    threads: int = 1,
    overrides: Optional[Mapping[str, Any]] = None,
) -> Table:
    """Measure error and cost of steps that choose their size, by their tolerance.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        A system, a scenario as a dictionary, or the path of a scenario file.
    tolerances : sequence of float, optional
        Tolerances, one run for each and each number of stages. Default: 1e-3 to 1e-8.
    stages : sequence of int, optional
        Numbers of stages. Default: that of the system.
    repeat : int, optional
        Number of runs per row, of which the fastest counts. Default: 1.
    threads : int, optional
        Number of threads. Default: 1.
    overrides : mapping of str to object, optional
        Values by JSON pointer that replace those of the scenario.

    Returns
    -------
    Table
        Columns: ``stages``, ``tolerance``, ``error`` (relative, all states at the end), ``steps``,
        ``rejected``, ``smallest_s`` and ``largest_s`` [s], ``missed``, ``evaluations``, ``time_s``
        [s], ``failure``. ``stages`` is 0 for methods without waves. Facts: ``end_s`` [s],
        ``method``, ``reference``.

    Raises
    ------
    ConfigError
        The system or an option has defects.
    """
    out = _portwave.study_tolerance(
        _given(system, overrides),
        _numbers(tolerances, "`tolerances`"),
        _wholes(stages, "`stages`"),
        whole(repeat, "`repeat`"),
        whole(threads, "`threads`"),
    )
    return Table(*_read(out), x="tolerance", y=["error"], by=["stages"])


def scaling(
    system: Union[Given, Sequence[Given]],
    threads: Sequence[int] = (1, 2, 4),
    *,
    executors: Sequence[str] = ("auto",),
    repetitions: int = 9,
    steps: int = 0,
    cores: int = 0,
    figure: Optional[Union[str, "os.PathLike[str]"]] = None,
    overrides: Optional[Mapping[str, Any]] = None,
) -> Table:
    """Measure the wall time of a macro-step by the number of threads, and by size.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike, or a sequence of these
        A system, a scenario as a dictionary, or the path of a scenario file; or several, such as one
        network in several sizes. Where sizes grow as the threads do, there is weak scaling as well.
    threads : sequence of int, optional
        Numbers of threads. Default: 1, 2, 4.
    executors : sequence of str, optional
        Executors to compare: ``"auto"``, ``"serial"``, ``"async"``, ``"graph"``. Default: ``"auto"``.
    repetitions : int, optional
        Number of measurements per row. Default: 9.
    steps : int, optional
        Number of macro-steps per measurement; 0: as many as take about 50 ms. Default: 0.
    cores : int, optional
        Number of cores of this machine; times on more threads are predicted, not measured. 0: ask
        the operating system. Default: 0.
    figure : str or os.PathLike, optional
        A file ``.pdf`` or ``.svg`` for the figure of a paper: speed-up with the ideal line, efficiency,
        time per step, and weak efficiency or rate. Default: none is drawn.
    overrides : mapping of str to object, optional
        Values by JSON pointer that replace those of the scenario, or of every one.

    Returns
    -------
    Table
        Columns: ``size`` (parts), ``threads``, ``executor``, ``predicted``, ``step_s`` [s] (median), ``spread``,
        ``speed_up``, ``efficiency``, ``weak_efficiency``, ``parts_steps_per_s`` [1/s], ``energy_per_step_J`` [J],
        ``predicted_step_s`` [s], ``tasks``, ``imbalance``, ``execution``, and those of ``portwave
        study scaling``. Facts: ``cores``, ``repetitions``, ``steps_per_repetition``.

    Raises
    ------
    ConfigError
        A system or an option has defects.
    ValueError
        There is no system, or `figure` ends with neither ``.pdf`` nor ``.svg``.
    """
    is_one = isinstance(system, (System, Mapping, str, os.PathLike))
    systems: List[Given] = [cast(Given, system)] if is_one else list(cast(Sequence[Given], system))
    if not systems:
        raise ValueError("no system is given: there is nothing to measure")
    ending = "" if figure is None else os.path.splitext(os.fspath(figure))[1][1:].lower()
    if figure is not None and ending not in ("pdf", "svg"):
        raise ValueError(f"`figure` must end with .pdf or .svg, not as {os.fspath(figure)!r}")
    out, drawn = _portwave.study_scaling(
        [_given(own, overrides) for own in systems],
        _wholes(threads, "`threads`"),
        _list(executors, "`executors`"),
        whole(repetitions, "`repetitions`"),
        whole(steps, "`steps`"),
        whole(cores, "`cores`"),
        ending,
    )
    if figure is not None:
        with open(figure, "wb") as file:
            file.write(drawn)
    rows, facts = _read(out)
    rows = [{**row, "predicted": row["source"] == "predicted"} for row in rows]
    by = ["size", "executor"] if len(systems) > 1 else ["executor"]
    return Table(rows, facts, x="threads", y=["speed_up"], by=by, log="")


def tune(
    system: Given,
    *,
    impedances: str = "auto",
    overrides: Optional[Mapping[str, Any]] = None,
) -> Table:
    """Predict the contraction of each rule of impedances at the initial state, and choose.

    Parameters
    ----------
    system : System, mapping, str or os.PathLike
        A system, a scenario as a dictionary, or the path of a scenario file.
    impedances : str, optional
        Rule to choose with; ``"auto"``: any. Default: ``"auto"``.
    overrides : mapping of str to object, optional
        Values by JSON pointer that replace those of the scenario.

    Returns
    -------
    Table
        Columns: ``impedance``, ``method``, ``contraction`` (per evaluation, 0 to 1), ``evaluations``
        (to reduce the residual by 1e-10), ``converges``, ``failure``. Facts: the choice, by
        ``method``, ``impedance`` and ``reason``; ``ports`` with their impedances, ``parts`` with
        their margins.

    Raises
    ------
    ConfigError
        The system or an option has defects.
    """
    _, facts = _read(_portwave.tune(_given(system, overrides), impedances))
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

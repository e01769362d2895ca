"""Errors and warnings."""

from __future__ import annotations

import math
import re
import warnings
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple


class ConfigError(ValueError):
    """A system or an option cannot be used.

    Attributes
    ----------
    issues : list of tuple of (str, str)
        Every defect as a pair ``(where, what)``: a JSON pointer into the scenario, such as
        ``"/subsystems/0/parameters/mass_kg"``, and a text.
    """

    issues: List[Tuple[str, str]] = []


class UnknownName(KeyError):
    """A name stands for nothing; the message names the nearest one.

    Unlike that of other `KeyError` s, its text is shown without quotes.
    """

    def __str__(self) -> str:
        return str(self.args[0])


class _UnknownNames:
    """Let an `IndexError` of the compiled half, for a name that it does not know, be an `UnknownName`."""

    def __enter__(self) -> None:
        """Nothing is to be done before."""

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        if isinstance(error, IndexError):
            raise UnknownName(str(error)) from None


unknown_names = _UnknownNames()


class ScenarioWarning(UserWarning):
    """A system is allowed but probably not what was meant.

    One example are shafts that are joined so that they turn against each other.
    ``portwave validate`` prints the same notes.
    """


class StepError(RuntimeError):
    """A step failed. The stepper keeps the state before it and stays usable.

    Attributes
    ----------
    part : str
        Name of the part that failed; empty for the network as a whole.
    step : int
        Number of the step, from 0.
    iteration : int
        Inner iteration, from 0; -1: before the first one.
    fault : str
        ``"not_converged"``, ``"not_finite"``, ``"threw"``, ``"too_inaccurate"``, or ``"at_odds"``
        where states violate a rigid joint.
    state : list of float
        States of the part before the step, in their units; empty where unknown.
    inputs : list of float
        External inputs of the part, in their units; empty where unknown.
    waves : list of float
        Incident waves at the ports of the part [sqrt(J)]; empty where unknown.
    residual : float
        Residual of the equations of the step, relative to their terms; NaN where unknown.
    """

    part: str = ""
    step: int = -1
    iteration: int = -1
    fault: str = ""
    state: List[float] = []
    inputs: List[float] = []
    waves: List[float] = []
    residual: float = math.nan


def issue_warnings(notes: Sequence[Tuple[str, str]], level: int = 3) -> None:
    """Issue a `ScenarioWarning` for each note on a system.

    The warning points at the code ``level`` calls away: by default the caller of the caller.
    """
    for where, what in notes:
        warnings.warn(f"{where}: {what}", ScenarioWarning, stacklevel=level)


@contextmanager
def errors_that_name(part_at: Callable[[int], Optional[Tuple[str, str]]]) -> Iterator[None]:
    """Let each issue of a `ConfigError` name its part.

    `part_at` returns the name and the type of a part by its place in ``"/subsystems"``.
    """
    try:
        yield
    except ConfigError as error:
        error.issues = [(where, _with_part(where, what, part_at)) for where, what in error.issues]
        if error.issues:
            error.args = ("\n".join(f"{where}: {what}" if where else what for where, what in error.issues),)
        raise


def _with_part(where: str, what: str, part_at: Callable[[int], Optional[Tuple[str, str]]]) -> str:
    place = re.match(r"/subsystems/(\d+)(/|$)", where)
    part = part_at(int(place.group(1))) if place else None
    if part is None or f'"{part[0]}"' in what or f'"{part[0]}.' in what:
        return what
    return f'"{part[0]}" ({part[1]}): {what}'

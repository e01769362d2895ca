"""Errors. Bad input gives all of its defects at once."""

from __future__ import annotations

import math
from typing import List, Tuple


class ConfigError(ValueError):
    """A system or an option that cannot be used.

    ``issues`` holds every defect as ``(where, what)``, where being a JSON pointer into the scenario,
    such as ``"/subsystems/0/parameters/mass_kg"``.
    """

    issues: List[Tuple[str, str]] = []


class UnknownName(KeyError):
    """A name that stands for nothing. Its text is for people, several lines and all, where that of a
    ``KeyError`` is in quotes."""

    def __str__(self) -> str:
        return str(self.args[0])


class ScenarioWarning(UserWarning):
    """What a system may say, but probably does not mean, such as shafts that are joined so that they turn
    against each other. ``portwave validate`` notes the same."""


class StepError(RuntimeError):
    """A step failed. The stepper keeps the state before it and stays usable.

    ``part``: name of the part, "" for the network as a whole. ``step``: number of the step.
    ``iteration``: inner iteration, -1 before the first. ``fault``: "not_converged", "not_finite",
    "threw", "too_inaccurate", or "at_odds" where states violate a rigid joint. Of the part, as far as
    known (else empty, and NaN): ``state`` before the step, ``inputs``, its external inputs, ``waves``,
    those incident at its ports [sqrt(J)], and ``residual``, what was left of the equations of the
    step as a share of their terms.
    """

    part: str = ""
    step: int = -1
    iteration: int = -1
    fault: str = ""
    state: List[float] = []
    inputs: List[float] = []
    waves: List[float] = []
    residual: float = math.nan

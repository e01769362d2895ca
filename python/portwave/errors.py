"""Errors. Bad input gives all of its defects at once."""

from __future__ import annotations

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


class StepError(RuntimeError):
    """A step failed. The stepper keeps the state before it and stays usable.

    ``part``: name of the part, "" for the network as a whole. ``step``: number of the step.
    ``iteration``: inner iteration, -1 before the first. ``fault``: "not_converged", "not_finite",
    "threw", "too_inaccurate", or "at_odds" where states violate a rigid joint.
    """

    part: str = ""
    step: int = -1
    iteration: int = -1
    fault: str = ""

"""Passive co-simulation of port-Hamiltonian subsystems.

    import portwave as pw

    stepper = pw.Stepper("servo.json")
    while stepper.time_s < 2.0:
        stepper["supply.effort"] = controller(stepper["load.angle"])
        stepper.step()

See docs/tutorial/embedding.md.
"""

from .ensemble import Ensemble
from .errors import ConfigError, ScenarioWarning, StepError, UnknownName
from ._portwave import Snapshot, __version__
from .linear import Linearisation
from .parts import add_block_kind, add_part_type, sweep
from .result import Result
from . import study
from .stepper import Stepper
from .system import System

__all__ = [
    "ConfigError",
    "Ensemble",
    "Linearisation",
    "Result",
    "ScenarioWarning",
    "Snapshot",
    "StepError",
    "Stepper",
    "System",
    "UnknownName",
    "add_block_kind",
    "add_part_type",
    "study",
    "sweep",
    "__version__",
]

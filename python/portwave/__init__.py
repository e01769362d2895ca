"""Passive co-simulation of port-Hamiltonian subsystems.

Functions such as `mass` describe parts, `System` holds them and how they are joined, `Stepper`
advances a system, `Ensemble` advances thousands of its replicas, and `study` compares methods.
Names of quantities are ``"part.state"``,
``"part.port.effort"``, ``"part.port.flow"`` and ``"part.storage"``; units are those of the
catalogue of parts (SI).

Examples
--------
>>> import portwave as pw
>>> result = pw.Stepper("examples/two_oscillators.json").record(until=10.0)
>>> result.success
True

A program can own the loop:

>>> stepper = pw.Stepper("examples/embedding/servo.json")
>>> while stepper.time_s < 2.0:
...     stepper["supply.effort"] = 30.0 * (1.0 - stepper["load.angle"])
...     stepper.step()
"""

from . import catalogue
from .catalogue import *
from .catalogue_part import CataloguePart
from .derivatives import Gradient, RolloutDerivatives
from .ensemble import Ensemble
from .errors import ConfigError, ScenarioWarning, StepError, UnknownName
from .inverse_dynamics import InverseDynamics
from ._portwave import Arena, Snapshot, __version__
from .linear import Linearisation
from .parts import add_block_kind, add_part_type, sweep
from .plugins import Plugin, load_plugin
from .result import Result
from . import study
from .stepper import Stepper
from .symbols import Symbol, maximum, minimum, select, traced
from .system import System

__all__ = [
    "Arena",
    "CataloguePart",
    "ConfigError",
    "Ensemble",
    "Gradient",
    "InverseDynamics",
    "Linearisation",
    "Plugin",
    "Result",
    "RolloutDerivatives",
    "ScenarioWarning",
    "Snapshot",
    "StepError",
    "Stepper",
    "Symbol",
    "System",
    "UnknownName",
    "add_block_kind",
    "add_part_type",
    "load_plugin",
    "maximum",
    "minimum",
    "select",
    "study",
    "sweep",
    "traced",
    "__version__",
]
__all__ += catalogue.__all__

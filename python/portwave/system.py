"""Systems, built part by part or read from scenario files."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

JSON = Dict[str, Any]


class System:
    """Parts, their couplings and a method: what a scenario file holds.

    >>> system = System(step_s=0.01)
    >>> system.add("mass", "mass", mass_kg=2.0)
    >>> system.add("spring", "spring", stiffness_N_per_m=50.0)
    >>> system.connect("mass.port", "spring.left")

    Types of parts, their parameters (with units) and ports are those of ``portwave list``; the keys
    are those of the scenario reference. Nothing is checked before a stepper is made, which then tells
    all defects at once (``ConfigError``).
    """

    def __init__(
        self,
        name: str = "system",
        *,
        step_s: Optional[float] = 0.01,
        end_s: Optional[float] = None,
        tolerance: Optional[float] = None,
        method: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """``step_s``: size of the steps [s]. With ``tolerance`` in its place steps choose their size;
        ``end_s`` [s] is then required. ``method``: as in scenario files, else ``{"kind": "auto"}``.
        """
        time: JSON = {}
        if tolerance is not None:
            time["step"] = {"kind": "adaptive", "tolerance": tolerance}
        elif step_s is not None:
            time["step_s"] = step_s
        if end_s is not None:
            time["end_s"] = end_s
        elif tolerance is None:
            time["steps"] = 1  # a stepper steps as long as it is asked to
        self.folder = Path(".")
        self._document: JSON = {
            "name": name,
            "time": time,
            "subsystems": [],
            "couplings": [],
            "method": dict(method) if method is not None else {"kind": "auto"},
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], folder: Union[str, os.PathLike] = ".") -> "System":
        """A scenario as a dictionary. ``folder``: what relative paths in it are relative to."""
        system = cls.__new__(cls)
        system.folder = Path(folder)
        system._document = copy.deepcopy(dict(document))
        return system

    @classmethod
    def from_file(cls, path: Union[str, os.PathLike]) -> "System":
        """A scenario file. Errors: ``OSError``; ``json.JSONDecodeError`` (a ``ValueError``)."""
        path = Path(path)
        return cls.from_dict(json.loads(path.read_text(encoding="utf-8")), path.parent)

    def to_dict(self) -> JSON:
        """The scenario, a copy."""
        return copy.deepcopy(self._document)

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes a scenario file, which ``portwave run`` takes."""
        Path(path).write_text(json.dumps(self._document, indent=2) + "\n", encoding="utf-8")

    def copy(self) -> "System":
        return System.from_dict(self._document, self.folder)

    def add(
        self,
        name: str,
        type: str,
        *,
        initial_state: Optional[Mapping[str, float]] = None,
        inputs: Optional[Mapping[str, Union[float, str, Mapping[str, Any]]]] = None,
        substeps: Optional[int] = None,
        **parameters: Any,
    ) -> "System":
        """Adds a part. ``inputs``: by name, a number (constant), ``"settable"`` or a signal as in
        scenario files. ``parameters``: by name, with their units. Returns the system."""
        part: JSON = {"name": name, "type": type}
        if parameters:
            part["parameters"] = parameters
        if initial_state:
            part["initial_state"] = dict(initial_state)
        if inputs:
            part["inputs"] = {key: _signal(value) for key, value in inputs.items()}
        if substeps is not None:
            part["substeps"] = substeps
        self._document.setdefault("subsystems", []).append(part)
        return self

    def connect(self, port_1: str, port_2: str) -> "System":
        """Joins two ports: equal efforts, opposite flows."""
        return self.join("connection", port_1, port_2)

    def join(self, kind: str, *ports: str, **options: Any) -> "System":
        """Joins ports by a coupling of any kind, such as ``join("common_flow", "a.shaft", "b.shaft")``
        or ``join("transformer", "a.port", "b.port", ratio=3)``."""
        self._document.setdefault("couplings", []).append(
            {"kind": kind, "ports": list(ports), **options}
        )
        return self

    def observe(self, *names: str) -> "System":
        """Quantities that are recorded where none are asked for."""
        self._document.setdefault("outputs", {}).setdefault("observe", []).extend(names)
        return self

    def set(self, pointer: str, value: Any) -> "System":
        """Sets what a JSON pointer names, as ``--set`` does: ``set("/time/step_s", 1e-3)``."""
        keys = [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]
        if not pointer.startswith("/") or not keys:
            raise ValueError(f"a JSON pointer begins with '/', got {pointer!r}")
        at: Any = self._document
        for key in keys[:-1]:
            at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
        if isinstance(at, list):
            at[int(keys[-1])] = value
        else:
            at[keys[-1]] = value
        return self

    @property
    def parts(self) -> List[str]:
        return [part.get("name", "") for part in self._document.get("subsystems", [])]

    def __repr__(self) -> str:
        return f"<portwave.System {self._document.get('name', '')!r}: {len(self.parts)} parts>"


def _signal(value: Union[float, str, Mapping[str, Any]]) -> JSON:
    if isinstance(value, str):
        return {"kind": value}
    if isinstance(value, Mapping):
        return dict(value)
    return {"kind": "constant", "value": float(value)}


def scenario_of(system: Union[System, Mapping[str, Any], str, os.PathLike]) -> System:
    """A system from what users have: a ``System``, a dictionary, or the path of a scenario file."""
    if isinstance(system, System):
        return system
    if isinstance(system, Mapping):
        return System.from_dict(system)
    return System.from_file(system)


def pointers(changes: Mapping[str, Any]) -> Sequence[tuple]:
    """Overrides as the compiled half takes them: pointer and JSON."""
    return [(pointer, json.dumps(value)) for pointer, value in changes.items()]

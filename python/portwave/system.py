"""Systems, built part by part or read from scenario files."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from itertools import count
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _portwave
from .arrays import number, plain, whole
from .errors import UnknownName

JSON = Dict[str, Any]

_controllers = count()


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
        start_s: float = 0.0,
        end_s: Optional[float] = None,
        tolerance: Optional[float] = None,
        method: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """``step_s``: size of the steps [s]. With ``tolerance`` in its place steps choose their size;
        ``end_s`` [s] is then required. ``start_s``: the time at which runs begin [s]. ``method``: as in scenario files, else ``{"kind": "auto"}``.
        """
        time: JSON = {}
        if tolerance is not None:
            time["step"] = {"kind": "adaptive", "tolerance": number(tolerance, "`tolerance`")}
        elif step_s is not None:
            time["step_s"] = number(step_s, "`step_s`")
        if start_s != 0.0:
            time["start_s"] = number(start_s, "`start_s`")
        if end_s is not None:
            time["end_s"] = number(end_s, "`end_s`")
        elif tolerance is None:
            time["steps"] = 1  # a stepper steps as long as it is asked to
        self.folder = Path(".")
        self._document: JSON = {
            "name": name,
            "time": time,
            "subsystems": [],
            "couplings": [],
            "method": plain(method) if method is not None else {"kind": "auto"},
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], folder: Union[str, "os.PathLike[str]"] = ".") -> "System":
        """A scenario as a dictionary. ``folder``: what relative paths in it are relative to; files that it
        names must lie there or below."""
        system = cls.__new__(cls)
        system.folder = Path(folder)
        system._document = copy.deepcopy(plain(document))
        return system

    @classmethod
    def from_file(cls, path: Union[str, "os.PathLike[str]"]) -> "System":
        """A scenario file. Errors: ``OSError``; ``json.JSONDecodeError`` (a ``ValueError``)."""
        path = Path(path)
        return cls.from_dict(json.loads(path.read_text(encoding="utf-8-sig")), path.parent)

    def to_dict(self) -> JSON:
        """The scenario, a copy."""
        return copy.deepcopy(self._document)

    def to_json(self) -> str:
        """The same as text, as a scenario file has it."""
        return json.dumps(self._document)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a scenario file, which ``portwave run`` takes; functions from Python are not in it.

        The file that the system was read from may be written over: the new one takes its place in one
        piece. Errors: ``ValueError``, nothing having been written, where ``path`` is a table, a matrix or
        a plugin that the system names."""
        path = Path(path)
        for name in _files_named(self._document):
            if _is_same_file(path, self.folder / name):
                raise ValueError(
                    f"{str(path)!r} is a file that the system reads ({name!r}), and the scenario would take "
                    "its place: save it under another name"
                )
        text = json.dumps(self._document, indent=2) + "\n"
        real = Path(os.path.realpath(path))
        if real.exists() and not real.is_file():  # a pipe, say, which nothing can take the place of
            path.write_text(text, encoding="utf-8")
            return
        part = real.with_name(f".{real.name}.{os.getpid()}.part")
        try:
            part.write_text(text, encoding="utf-8")
            if real.exists():
                os.chmod(part, real.stat().st_mode & 0o7777)
            os.replace(part, real)
        finally:
            part.unlink(missing_ok=True)

    def copy(self) -> "System":
        """Another one, which changes by itself."""
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
            part["parameters"] = plain(parameters)
        if initial_state:
            part["initial_state"] = plain(initial_state)
        if inputs:
            part["inputs"] = {key: _signal(value) for key, value in inputs.items()}
        if substeps is not None:
            part["substeps"] = whole(substeps, "`substeps`")
        self._document.setdefault("subsystems", []).append(part)
        return self

    def connect(self, port_1: str, port_2: str) -> "System":
        """Joins two ports: equal efforts, opposite flows."""
        return self.join("connection", port_1, port_2)

    def join(self, kind: str, *ports: str, **options: Any) -> "System":
        """Joins ports by a coupling of any kind, such as ``join("common_flow", "a.shaft", "b.shaft")``
        or ``join("transformer", "a.port", "b.port", ratio=3)``."""
        self._document.setdefault("couplings", []).append(
            {"kind": kind, "ports": list(ports), **plain(options)}
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
        value = plain(value)
        at: Any = self._document
        for key in keys[:-1]:
            at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
        if isinstance(at, list):
            at[int(keys[-1])] = value
        else:
            at[keys[-1]] = value
        return self

    def add_block(
        self,
        name: str,
        kind: str,
        *,
        every: Optional[int] = None,
        drives: Union[str, Sequence[str], None] = None,
        **options: Any,
    ) -> "System":
        """Adds a block of a controller, of one of the kinds of ``portwave list --blocks`` or one's own
        (``add_block_kind``). ``every``: sampled before every so many steps. ``drives``: inputs of
        parts that its outputs are held at, ``"supply.effort"``, one for each. ``options``: keys of the
        kind; a signal is the name of a block, a quantity ``"load.angle"`` or a number."""
        block: JSON = {"name": name, "kind": kind}
        if every is not None:
            block["every"] = whole(every, "`every`")
        block.update(plain(options))
        self._document.setdefault("signals", {}).setdefault("blocks", []).append(block)
        inputs = [drives] if isinstance(drives, str) else list(drives or ())
        for i, own in enumerate(inputs):
            self.drive(own, name if len(inputs) == 1 else f"{name}[{i}]")
        return self

    def add_controller(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        inputs: Sequence[Union[str, float]] = (),
        outputs: int = 1,
        state: Sequence[float] = (),
        every: Optional[int] = None,
        drives: Union[str, Sequence[str], None] = None,
    ) -> "System":
        """Adds a block whose law is a Python function, as ``add_block_kind`` describes it:

        >>> system.add_controller("law", lambda t, u: 30.0 * (1.0 - u[0]) - 0.15 * u[1],
        ...                       inputs=["load.angle", "motor.speed"], drives="supply.effort")

        ``inputs``: signals, in the order of u: names of blocks, quantities or numbers. ``state``: the
        initial x; the function then returns ``(y, x_next)``. The function is kept to the end of the
        program. Errors: ``ConfigError``."""
        kind = f"python/{next(_controllers)}"
        names = [f"u{i + 1}" for i in range(len(inputs))]
        start = [number(x, "a number of `state`") for x in state]
        outputs = whole(outputs, "`outputs`")
        _portwave.add_block_kind(kind, "A block from Python.", function, names, outputs, start, [])
        signals = dict(zip(names, inputs))
        driven = [drives] if isinstance(drives, str) else list(drives or ())
        if driven and len(driven) != outputs:
            raise ValueError(f"{name!r} has {outputs} outputs, and drives {len(driven)} inputs")
        return self.add_block(name, kind, every=every, drives=driven, **signals)

    def drive(self, input: str, signal: Union[str, float]) -> "System":
        """Holds an input of a part, ``"supply.effort"``, at a signal: a block's output, a quantity or a
        number. Errors: ``KeyError`` where there is no such part."""
        part, _, channel = input.rpartition(".")
        for own in self._document.get("subsystems", []):
            if own.get("name") == part:
                own.setdefault("inputs", {})[channel] = {"kind": "signal", "signal": plain(signal)}
                return self
        raise UnknownName(f"{input!r} is no input: there is no part {part!r}; add parts first")

    @property
    def parts(self) -> List[str]:
        """Their names."""
        return [part.get("name", "") for part in self._document.get("subsystems", [])]

    def __repr__(self) -> str:
        return f"<portwave.System {self._document.get('name', '')!r}: {len(self.parts)} parts>"


def _files_named(value: Any) -> Iterator[str]:
    """Tables, matrices and plugins that a scenario names."""
    if isinstance(value, Mapping):
        for key, member in value.items():
            if key == "file" and isinstance(member, str):
                yield member
            elif key == "plugins" and isinstance(member, list):
                yield from (own for own in member if isinstance(own, str))
            else:
                yield from _files_named(member)
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from _files_named(member)


def _is_same_file(a: Path, b: Path) -> bool:
    try:
        return os.path.samefile(a, b)
    except (OSError, ValueError):  # one of them is not there, or is no path
        return False


def _signal(value: Union[float, str, Mapping[str, Any]]) -> JSON:
    if isinstance(value, str):
        return {"kind": value}
    if isinstance(value, Mapping):
        return plain(value)
    return {"kind": "constant", "value": number(value, "an input")}


def scenario_of(system: Union[System, Mapping[str, Any], str, "os.PathLike[str]"]) -> System:
    """A system from what users have: a ``System``, a dictionary, or the path of a scenario file."""
    if isinstance(system, System):
        return system
    if isinstance(system, Mapping):
        return System.from_dict(system)
    return System.from_file(system)


def pointers(changes: Mapping[str, Any]) -> List[Tuple[str, str]]:
    """Overrides as the compiled half takes them: pointer and JSON."""
    return [(pointer, json.dumps(plain(value))) for pointer, value in changes.items()]

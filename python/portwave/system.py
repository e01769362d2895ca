"""Systems, built part by part or read from scenario files."""

from __future__ import annotations

import copy
import json
import os
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._portwave import (
    is_structure_file,
    read_structure,
    show_portwave_to_plugins,
    write_fmu,
    write_ssp,
)
from .arrays import flag, number, plain, refuse_text, whole
from .catalogue_part import CataloguePart, written_down
from .controllers import Controllers
from .errors import ScenarioWarning, issue_warnings
from .matrices import Handed, Handover, as_parameter, json_default, written_out
from .second_order import second_order_parameters

JSON = Dict[str, Any]


class System(Controllers):
    """Parts, their couplings, the time and a method: the contents of a scenario file.

    Parameters
    ----------
    name : str, optional
        Name of the scenario. Default: ``"system"``.
    step_s : float or None, optional
        Macro-step h [s]. Default: 0.01.
    start_s : float, optional
        Start of the run [s]. Default: 0.
    end_s : float, optional
        End of the run [s], later than start_s. `Stepper.record` ends there by default. Required
        with `tolerance`.
    tolerance : float, optional
        Relative tolerance of the local error. Steps then choose their size, in place of `step_s`.
    method : mapping, optional
        Coupling method as in scenario files. Default: ``{"kind": "auto"}``.
    allow_plugins : bool, optional
        Whether FMUs and plugins that the system names are loaded. Default: False.

    Attributes
    ----------
    folder : pathlib.Path
        Folder to which relative paths in the scenario refer.
    allow_plugins : bool
        Whether FMUs and plugins that the system names are loaded: code that may do all that this process
        may.

    Notes
    -----
    Types of parts, their ports and parameters (with units) are those of ``portwave list``; keys are
    those of the scenario reference. A system checks nothing itself: the stepper that is made of it
    reports all defects at once (`ConfigError`). Methods that change the system return it, so that
    calls can be chained.

    Examples
    --------
    >>> system = pw.System("mass on a spring", step_s=0.01)
    >>> system.add("mass", "mass", mass_kg=2.0, initial_state={"velocity": 1.0})
    <portwave.System 'mass on a spring': 1 parts>
    >>> system.add("spring", "spring", stiffness_N_per_m=50.0)
    <portwave.System 'mass on a spring': 2 parts>
    >>> system.add("wall", "flow_source", domain="translation", inputs={"flow": 0.0})
    <portwave.System 'mass on a spring': 3 parts>
    >>> system.connect("mass.port", "spring.left").connect("spring.right", "wall.port")
    <portwave.System 'mass on a spring': 3 parts>
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
        allow_plugins: bool = False,
    ) -> None:
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
        self.allow_plugins = flag(allow_plugins, "`allow_plugins`")
        self._kept: Any = None
        self._document: JSON = {
            "name": name,
            "time": time,
            "subsystems": [],
            "couplings": [],
            "method": plain(method) if method is not None else {"kind": "auto"},
        }

    @classmethod
    def from_dict(
        cls,
        document: Mapping[str, Any],
        folder: Union[str, "os.PathLike[str]"] = ".",
        *,
        allow_plugins: bool = False,
    ) -> "System":
        """Create a system from a scenario in the form of a dictionary.

        Parameters
        ----------
        document : mapping
            The scenario, with the keys of a scenario file.
        folder : str or os.PathLike, optional
            Folder to which relative paths in the scenario refer; files that it names must lie there
            or below. Default: the working folder.
        allow_plugins : bool, optional
            Whether its FMUs and plugins may be loaded. Default: False.

        Returns
        -------
        System
            The system; later changes of `document` do not affect it.

        Raises
        ------
        TypeError
            The scenario holds complex numbers or other values that JSON cannot hold.
        """
        system = cls.__new__(cls)
        system.folder = Path(folder)
        system.allow_plugins = flag(allow_plugins, "`allow_plugins`")
        system._kept = None
        system._document = copy.deepcopy(plain(document))
        return system

    @classmethod
    def from_file(cls, path: Union[str, "os.PathLike[str]"], *, allow_plugins: bool = False) -> "System":
        """Read a scenario file, or a system structure of FMUs.

        Parameters
        ----------
        path : str or os.PathLike
            Path of the file: a scenario (JSON in UTF-8), a system structure of SSP (``.ssp``, ``.ssd``) or an
            ``OspSystemStructure.xml``.
        allow_plugins : bool, optional
            Whether its FMUs and plugins may be loaded: code that may do all that this process may.
            Default: False.

        Returns
        -------
        System
            The system that the file describes.

        Raises
        ------
        OSError
            The file cannot be read.
        json.JSONDecodeError
            The file is not JSON (a ``ValueError``).
        ConfigError
            What is wrong with a system structure, all at once; also that `allow_plugins` is missing.

        Warns
        -----
        ScenarioWarning
            What was chosen or left out of a system structure.
        """
        path = Path(path)
        if is_structure_file(str(path)):
            text, notes, kept = read_structure(str(path), flag(allow_plugins, "`allow_plugins`"))
            issue_warnings(notes, level=2)
            system = cls.from_dict(json.loads(text), path.parent, allow_plugins=allow_plugins)
            system._kept = kept
            return system
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        return cls.from_dict(document, path.parent, allow_plugins=allow_plugins)

    def to_dict(self) -> JSON:
        """Return the scenario as a dictionary.

        Returns
        -------
        dict
            A copy, with the keys of a scenario file.
        """
        return written_out(copy.deepcopy(self._document))

    def to_json(self) -> str:
        """Return the scenario as text.

        Returns
        -------
        str
            The contents of a scenario file.
        """
        return json.dumps(self._document, default=json_default)

    def _may_load_plugins(self) -> bool:
        """Return whether its foreign code may be loaded, after what its plugins need."""
        if self.allow_plugins and self._document.get("plugins"):
            show_portwave_to_plugins()
        return self.allow_plugins

    def _handed_over(self) -> Tuple[str, List[Handed]]:
        """Return the scenario as text in which large matrices are names, and these matrices."""
        handover = Handover()
        return json.dumps(self._document, default=handover.default), handover.matrices

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Write a scenario file for ``portwave run``. Python functions are not part of it.

        An existing scenario file is replaced in one piece.

        Parameters
        ----------
        path : str or os.PathLike
            Path of the file.

        Raises
        ------
        ValueError
            The path is that of a table, matrix or plugin that the system names; nothing was written.
        OSError
            The file cannot be written.
        """
        path = Path(path)
        for name in _files_named(self._document):
            if _is_same_file(path, self.folder / name):
                raise ValueError(
                    f"{str(path)!r} is a file that the system reads ({name!r}), and the scenario would take "
                    "its place: save it under another name"
                )
        text = json.dumps(self._document, indent=2, default=json_default) + "\n"
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

    def to_fmu(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        parameters: Sequence[str] = (),
        ports: Sequence[str] = (),
        fmi: int = 2,
        name: str = "",
    ) -> Path:
        """Write the system as an FMU for co-simulation, with the engine inside.

        Parameters
        ----------
        path : str or os.PathLike
            Path of the FMU.
        inputs : sequence of str, optional
            External inputs ``"part.input"``. Default: all that are ``"settable"``.
        outputs : sequence of str, optional
            Quantities as of `observe`, and energies of the whole such as ``"energy.stored"``. Default: those
            that are observed, else all states.
        parameters : sequence of str, optional
            Numbers of parts ``"part.mass_kg"``: tunable parameters of the FMU.
        ports : sequence of str, optional
            Ports ``"part.port"`` that are free, fixed or not joined: power ports of the FMU.
            ``"part.port=effort"`` and ``"part.port=flow"`` say what it takes.
        fmi : {2, 3}, optional
            Version of FMI. Default: 2.
        name : str, optional
            Name of the model. Default: that of the system.

        Returns
        -------
        pathlib.Path
            The FMU, which needs no portwave where it runs, but Linux on this kind of machine.

        Raises
        ------
        ConfigError
            Unknown names, ports that are joined, Python functions in the system, files outside its folder:
            all at once; nothing was written.

        Warns
        -----
        ScenarioWarning
            What a user of the FMU should know, such as that it has one step size.
        """
        path = Path(path)
        for note in write_fmu(
            self.to_json(),
            str(self.folder),
            str(path),
            list(inputs),
            list(outputs),
            list(parameters),
            list(ports),
            whole(fmi, "`fmi`"),
            name,
            str(Path(__file__).resolve().parent / "portwave_fmu"),
        ):
            warnings.warn(note, ScenarioWarning, stacklevel=2)
        return path

    def to_ssp(self, path: Union[str, "os.PathLike[str]"]) -> Path:
        """Write the system, whose parts are FMUs, as a package of a system structure (SSP 1.0).

        Parameters
        ----------
        path : str or os.PathLike
            Path of the package.

        Returns
        -------
        pathlib.Path
            The package.

        Raises
        ------
        ConfigError
            Parts that are no FMUs, couplings and blocks that connections cannot say: all at once; nothing was
            written.

        Warns
        -----
        ScenarioWarning
            What other tools do not learn from it.
        """
        path = Path(path)
        for note in write_ssp(self.to_json(), str(self.folder), str(path), self.allow_plugins):
            warnings.warn(note, ScenarioWarning, stacklevel=2)
        return path

    def copy(self) -> "System":
        """Create an independent copy.

        Returns
        -------
        System
            The copy.
        """
        own = System.from_dict(self._document, self.folder, allow_plugins=self.allow_plugins)
        own._kept = self._kept
        return own

    def add(
        self,
        name: str,
        part_type: Union[str, CataloguePart],
        *,
        initial_state: Optional[Mapping[str, float]] = None,
        inputs: Optional[Mapping[str, Union[float, str, Mapping[str, Any]]]] = None,
        substeps: Optional[int] = None,
        integrator: Optional[str] = None,
        damped_states: Optional[Sequence[str]] = None,
        theta: Optional[float] = None,
        **parameters: Any,
    ) -> "System":
        """Add a part.

        Parameters
        ----------
        name : str
            Name of the part.
        part_type : CataloguePart or str
            The part, such as ``pw.mass(mass_kg=2)``; or its type, one of `part_types`, with its
            parameters as further arguments.
        initial_state : mapping of str to float, optional
            States by name, the others keep their defaults. Values are in the units of the states.
        inputs : mapping, optional
            External inputs by name, others are 0. Each is a number (constant, in the unit of the
            input), ``"settable"``, or a signal as in scenario files. Others stay at 0.
        substeps : int, optional
            Steps that the part takes within each step. Default: 1.
        integrator : {"gauss", "damped", "auto"}, optional
            Whether stiff motion of the part dies. Default: as the method says.
        damped_states : sequence of str, optional
            Of a damped part: the states whose motion dies. Default: all.
        theta : float, optional
            Of a damped part: how much of the damping it has, 0 to 1. Default: 1.
        **parameters
            Its parameters by name, in the units that their names state, where a type is given. What is an
            expression may be a function, as of `traced`, or a `Symbol`.

        Returns
        -------
        System
            The system itself.

        Raises
        ------
        TypeError
            Parameters beside a `CataloguePart`; a function that cannot be written down.
        ValueError
            Likewise, or functions as parameters of a type that there is not.

        Examples
        --------
        >>> pw.System().add("wheel", pw.mass(mass_kg=2, ports=2), initial_state={"velocity": 1.0})
        <portwave.System 'system': 1 parts>
        """
        part: JSON = {"name": name}
        if isinstance(part_type, CataloguePart):
            if parameters:
                raise TypeError(f"{name!r} has its parameters already, and further ones: {', '.join(parameters)}")
            part["type"] = part_type.part_type
            parameters = part_type.parameters
            if part_type.allow_active:
                part["allow_active"] = True
        else:
            part["type"] = part_type
        if parameters:
            parameters = written_down(part["type"], parameters)
            try:
                parameters = {key: as_parameter(own) for key, own in parameters.items()}
            except TypeError as error:
                raise TypeError(f"{name!r}: a matrix {error}") from None
            part["parameters"] = plain(parameters)
        if initial_state:
            part["initial_state"] = plain(initial_state)
        if inputs:
            part["inputs"] = {key: _signal(value) for key, value in inputs.items()}
        if substeps is not None:
            part["substeps"] = whole(substeps, "`substeps`")
        if integrator is not None:
            part["integrator"] = integrator
        if damped_states is not None:
            part["damped_states"] = plain(damped_states)
        if theta is not None:
            part["theta"] = plain(theta)
        self._document.setdefault("subsystems", []).append(part)
        return self

    def add_fmu(
        self,
        name: str,
        path: Union[str, "os.PathLike[str]"],
        *,
        ports: Sequence[Mapping[str, Any]] = (),
        start: Optional[Mapping[str, Any]] = None,
        outputs: Sequence[str] = (),
        inputs: Optional[Mapping[str, Union[float, str, Mapping[str, Any]]]] = None,
        rollback: Optional[bool] = None,
        process: bool = False,
        time_limit_s: Optional[float] = None,
        held_J: Optional[float] = None,
    ) -> "System":
        """Add an FMU for co-simulation, FMI 2.0 or 3.0, as a part. It is loaded only with `allow_plugins`.

        Parameters
        ----------
        name : str
            Name of the part.
        path : str or os.PathLike
            Its file.
        ports : sequence of mapping, optional
            Pairs of variables that carry power, as in scenario files: ``{"name": "flange", "effort": "F",
            "flow": "v", "input": "effort"}``. Default: those that its terminals or its OSP description name.
        start : mapping, optional
            Start values of its variables by name, in their units; of arrays all numbers, as lists or arrays.
        outputs : sequence of str, optional
            Variables that may be observed. Default: all outputs. Elements of arrays are ``"y[1]"``, ``"A[1,2]"``.
        inputs : mapping, optional
            Its inputs by name, each a number, ``"settable"``, or a signal as in scenario files.
        rollback : bool, optional
            Whether its steps are taken back and repeated. Default: where it can. Without, what a step will answer is
            foretold, and each step is taken once.
        process : bool, optional
            Whether it runs in a process of its own, which may crash or hang. Default: False.
        time_limit_s : float, optional
            So long may a call of one of its functions take, with `process` [s]. Default: 10.
        held_J : float, optional
            What it holds at the start, at most, where it has no source [J]: giving more than that and what it
            received violates the certificate. Default: it may be a source.

        Returns
        -------
        System
            The system itself.

        Examples
        --------
        >>> system = pw.System(step_s=0.01, allow_plugins=True)
        >>> flange = {"name": "flange", "effort": "F", "flow": "v", "input": "effort"}
        >>> system.add_fmu("mass", "mass.fmu", ports=[flange], start={"m": 2.0})
        <portwave.System 'system': 1 parts>
        """
        refuse_text(outputs)
        if isinstance(ports, (str, Mapping)):
            raise TypeError(f"`ports` is a list of mappings, one for each port, got {ports!r}")
        part: JSON = {"name": name, "type": "fmu", "path": os.fspath(path)}
        if ports:
            part["ports"] = plain(list(ports))
        if start:
            part["start"] = plain(start)
        if outputs:
            part["outputs"] = plain(list(outputs))
        if inputs:
            part["inputs"] = {key: _signal(value) for key, value in inputs.items()}
        if rollback is not None:
            part["rollback"] = flag(rollback, "`rollback`")
        if process:
            part["process"] = flag(process, "`process`")
        if time_limit_s is not None:
            part["time_limit_s"] = number(time_limit_s, "`time_limit_s`")
        if held_J is not None:
            part["held_J"] = number(held_J, "`held_J`")
        self._document.setdefault("subsystems", []).append(part)
        return self

    def add_second_order(
        self,
        name: str,
        M: Any,
        K: Any,
        D: Any = None,
        B: Any = None,
        *,
        ports: Sequence[Any] = (),
        input_names: Optional[Sequence[Any]] = None,
        coordinates: Union[str, Sequence[str]] = "q",
        unit: str = "m",
        cut: Optional[int] = None,
        initial_state: Optional[Mapping[str, float]] = None,
        inputs: Optional[Mapping[str, Any]] = None,
    ) -> "System":
        """Add a linear structure, M q'' + D q' + K q = B u, whole or in pieces.

        Parameters
        ----------
        name : str
            Name of the part.
        M, K, D : sparse matrix or array_like
            Mass (symmetric, positive definite), stiffness and damping (positive semidefinite; D may have a
            skew part, none: zero), shape [n, n]: of ``scipy.sparse``, never made dense, or dense.
        B : sparse matrix or array_like, optional
            Shape [n, m]: the columns of the scalar ports, then those of the inputs.
        ports : sequence of str or mapping, optional
            Names of ports that take a force, or ports as in scenario files.
        input_names : sequence of str or mapping, optional
            Names of the external inputs. Default: ``"u1"``, ``"u2"``, … for the other columns of B.
        coordinates, unit : str, or sequence of str, optional
            Names of the n coordinates, or what they begin with, and their unit. Default: ``"q1"``, … in m;
            the states are these and their rates ``"q1_rate"``.
        cut : int, optional
            Number of pieces that step in parallel, 1 to n. The part keeps its names. Default: whole.
        initial_state, inputs : mapping, optional
            As of `add`.

        Returns
        -------
        System
            The system itself.

        Raises
        ------
        ConfigError
            Shapes, symmetry, finite entries, `cut`: all defects at once; nothing was added. The stepper finds
            whether M and K are definite.
        """
        parameters, pieces = second_order_parameters(M, K, D, B, ports, input_names, coordinates, unit, cut, name)
        self.add(name, "second_order_system", initial_state=initial_state, inputs=inputs)
        part = self._document["subsystems"][-1]
        part["parameters"] = parameters
        if pieces is not None:
            part["cut"] = {"parts": pieces}
        return self

    def connect(self, port_1: str, port_2: str) -> "System":
        """Connect two ports: equal efforts, opposite flows.

        Parameters
        ----------
        port_1, port_2 : str
            The ports, as ``"part.port"``.

        Returns
        -------
        System
            The system itself.
        """
        return self.join("connection", port_1, port_2)

    def join(self, kind: str, *ports: str, **options: Any) -> "System":
        """Join ports by a coupling of any kind.

        Parameters
        ----------
        kind : str
            Kind of the coupling, such as ``"common_flow"`` or ``"transformer"``.
        *ports : str
            The ports, as ``"part.port"``.
        **options
            Further keys of the coupling, such as ``ratio=3``.

        Returns
        -------
        System
            The system itself.

        Examples
        --------
        >>> system = pw.System()
        >>> system.join("common_flow", "motor.shaft", "load.shaft")  # they turn together
        <portwave.System 'system': 0 parts>
        """
        self._document.setdefault("couplings", []).append(
            {"kind": kind, "ports": list(ports), **plain(options)}
        )
        return self

    def observe(self, *names: str) -> "System":
        """Choose quantities that are recorded by default.

        Parameters
        ----------
        *names : str
            Names of the quantities, such as ``"load.angle"``; they are added to earlier ones.

        Returns
        -------
        System
            The system itself.
        """
        self._document.setdefault("outputs", {}).setdefault("observe", []).extend(names)
        return self

    def override(self, pointer: str, value: Any) -> "System":
        """Replace or add one value of the scenario, as ``portwave run --set`` does.

        Parameters
        ----------
        pointer : str
            JSON pointer of the value, such as ``"/time/step_s"``.
        value : object
            The new value; numbers and arrays of NumPy will do.

        Returns
        -------
        System
            The system itself.

        Raises
        ------
        ValueError
            `pointer` is not a JSON pointer.

        Examples
        --------
        >>> pw.System().override("/time/step_s", 1e-3).to_dict()["time"]["step_s"]
        0.001
        """
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

    @property
    def parts(self) -> List[str]:
        """Names of the parts, in order."""
        return [part.get("name", "") for part in self._document.get("subsystems", [])]

    def part_at(self, place: int) -> Optional[Tuple[str, str]]:
        """Return the name and the type of a part.

        Parameters
        ----------
        place : int
            Its place in the order of the parts, from 0.

        Returns
        -------
        tuple of (str, str) or None
            Name and type; None where there is no such part.
        """
        parts = self._document.get("subsystems")
        part = parts[place] if isinstance(parts, list) and 0 <= place < len(parts) else None
        if not isinstance(part, Mapping) or "name" not in part:
            return None
        return str(part["name"]), str(part.get("type", part.get("assembly", "")))

    def __repr__(self) -> str:
        return f"<portwave.System {self._document.get('name', '')!r}: {len(self.parts)} parts>"


def _files_named(value: Any) -> Iterator[str]:
    """Yield the tables, matrices and plugins that a scenario names."""
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
    """Return a system from a `System`, a dictionary, or the path of a scenario file."""
    if isinstance(system, System):
        return system
    if isinstance(system, Mapping):
        return System.from_dict(system)
    return System.from_file(system)


def pointers(overrides: Mapping[str, Any]) -> List[Tuple[str, str]]:
    """Return overrides as the compiled half takes them: pairs of a JSON pointer and JSON text."""
    return [(pointer, json.dumps(plain(value))) for pointer, value in overrides.items()]

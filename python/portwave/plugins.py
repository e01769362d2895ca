"""Types of parts from shared libraries."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple, Union

from . import _portwave
from .catalogue import part_types, type_function
from .catalogue_part import CataloguePart


class Plugin:
    """A plugin in this process: its types of parts as functions, as `portwave.mass` is one.

    Attributes
    ----------
    file : pathlib.Path
        The library, absolute, links resolved.
    part_types : tuple of str
        Names of its types, in the order in which it added them.
    """

    file: Path
    part_types: Tuple[str, ...]

    def __init__(self, file: str, types: List[str]) -> None:
        self.file = Path(file)
        self.part_types = tuple(types)
        described = part_types()
        self._functions: Dict[str, Callable[..., CataloguePart]] = {
            name: type_function(described[name]) for name in types
        }

    def __getattr__(self, name: str) -> Callable[..., CataloguePart]:
        functions = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        near = difflib.get_close_matches(name, functions, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; its types are {', '.join(functions)}"
        raise AttributeError(f"the plugin {str(self.__dict__.get('file'))!r} has no {name!r}{hint}")

    def __dir__(self) -> List[str]:
        return sorted({*object.__dir__(self), *self._functions})

    def __repr__(self) -> str:
        return f"<portwave.Plugin {str(self.file)!r}: {', '.join(self.part_types)}>"


def load_plugin(path: Union[str, "os.PathLike[str]"]) -> Plugin:
    """Load a plugin, a shared library with types of parts that are written in C++.

    Its types are in the catalogue from then on, until the program ends, and work as all others: in systems,
    ensembles and studies, and in scenarios that name the library in ``"plugins"``.

    Parameters
    ----------
    path : str or os.PathLike
        The library. Nothing is searched for: the path is absolute or relative to the working folder.

    Returns
    -------
    Plugin
        The plugin, with a function for each of its types. A library that is loaded already stays as it is.

    Raises
    ------
    ConfigError
        There is no such file; it is no plugin; it was built with another version of portwave, another standard
        library or Eigen; it has changed since it was loaded; it needs symbols that are nowhere; it fails; or
        it has types that cannot be used, such as one whose name is taken. Nothing is added then.

    Notes
    -----
    A plugin is code that may do all that the program may. It is checked before any of its code runs, and uses
    portwave's functions from this package: build it against the same version (``portwave.__version__``) and link
    it to nothing of portwave. Do not load one while another thread runs a study.

    Examples
    --------
    >>> solenoid = pw.load_plugin("build/libsolenoid.so")  # doctest: +SKIP
    >>> system.add("coil", solenoid.solenoid(turns=800, mass_kg=0.05))  # doctest: +SKIP
    """
    file, types = _portwave.load_plugin(os.fspath(path))
    return Plugin(file, types)

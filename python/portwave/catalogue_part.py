"""Parts of the catalogue's types, as they are described."""

from __future__ import annotations

import difflib
import json
from typing import Any, Dict

from . import _portwave
from .symbols import is_to_be_traced, traced_parameters


class CataloguePart:
    """A part of a type of the catalogue: its type and parameters, for `System.add`.

    The functions of the package such as `portwave.mass` make one for each type; types that a program
    or a plugin has added are named here.

    Parameters
    ----------
    part_type : str
        Type of the part: one of `part_types`.
    allow_active : bool, optional
        Whether the part may create energy. Default: False.
    **parameters
        Its parameters by name, in the units that their names state. Those that are ``None`` are not
        given.

    Attributes
    ----------
    part_type : str
        The type.
    parameters : dict
        The parameters that are given.
    allow_active : bool
        Whether the part may create energy.

    Examples
    --------
    >>> pw.CataloguePart("mass", mass_kg=2.0)
    portwave.CataloguePart('mass', mass_kg=2.0)
    """

    def __init__(self, part_type: str, *, allow_active: bool = False, **parameters: Any) -> None:
        self.part_type = part_type
        self.allow_active = allow_active
        self.parameters: Dict[str, Any] = {
            name: value for name, value in parameters.items() if value is not None
        }

    def __repr__(self) -> str:
        given = [repr(self.part_type), *(f"{name}={value!r}" for name, value in self.parameters.items())]
        if self.allow_active:
            given.append("allow_active=True")
        return f"portwave.CataloguePart({', '.join(given)})"


def written_down(part_type: str, parameters: Dict[str, Any]) -> Dict[str, Any]:
    """Return parameters with functions and symbols written down, where the type has expressions for them."""
    if not any(map(is_to_be_traced, parameters.values())):
        return parameters
    types = {each["type"]: each for each in json.loads(_portwave.part_types())}
    if part_type not in types:
        near = difflib.get_close_matches(part_type, types, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no type {part_type!r} whose parameters could be functions{hint}")
    return traced_parameters(parameters, {each["name"]: each["kind"] for each in types[part_type]["parameters"]})

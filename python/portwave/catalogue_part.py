"""Parts of the catalogue's types, as they are described."""

from __future__ import annotations

from typing import Any, Dict


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

"""A function for each type of part that portwave has, made from the catalogue."""

from __future__ import annotations

import difflib
import inspect
import json
import textwrap
from typing import Any, Callable, Dict, List

from . import _portwave
from .catalogue_part import CataloguePart
from .symbols import traced_parameters

_WORDS = {
    "number": "float",
    "integer": "int",
    "boolean": "bool",
    "choice": "str",
    "numbers": "sequence of float",
    "matrix": "array_like or mapping",
    "ports": "sequence of mapping",
    "inputs": "sequence of str or mapping",
    "states": "sequence of str or mapping, or mapping of str to str",
    "expression": "str, Symbol or callable",
    "expressions": "sequence of str, Symbol or callable",
    "expression_matrix": "sequence of sequence of str or float, or matrix, or callable",
    "constants": "mapping of str to float",
    "texts": "sequence of str",
}

_SIMPLE = ("number", "integer", "boolean", "choice", "expression")


def part_types() -> Dict[str, Dict[str, Any]]:
    """Describe the types of parts that there are now, those that the program has added included.

    Returns
    -------
    dict
        By name: a dictionary with ``"summary"``, ``"equations"``, ``"parameters"`` (with units, defaults
        and ranges), and the ``"ports"``, ``"states"`` and ``"inputs"`` of an example. The form is that of
        ``portwave list TYPE --json``.

    Examples
    --------
    >>> [parameter["name"] for parameter in pw.part_types()["mass"]["parameters"]]
    ['mass_kg', 'damping_Ns_per_m', 'ports']
    """
    return {own["type"]: own for own in json.loads(_portwave.part_types())}


def _default(parameter: Dict[str, Any]) -> Any:
    if parameter["required"]:
        return inspect.Parameter.empty
    return parameter["default"] if parameter["kind"] in _SIMPLE else None


def _range(parameter: Dict[str, Any]) -> str:
    bounds = []
    if parameter["minimum"] is not None:
        bounds.append(f"{'>' if parameter['minimum_excluded'] else '>='} {parameter['minimum']:g}")
    if parameter["maximum"] is not None:
        bounds.append(f"<= {parameter['maximum']:g}")
    if parameter.get("choices"):
        bounds.append("one of " + ", ".join(f'``"{choice}"``' for choice in parameter["choices"]))
    return " and ".join(bounds) + (" (less with `allow_active`)" if parameter["passive_only"] else "")


def _paragraph(text: str, indent: str = "    ") -> str:
    return textwrap.fill(text, 100, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _docstring(own: Dict[str, Any], parameters: List[Dict[str, Any]]) -> str:
    lines = [own["summary"], "", "Parameters", "----------"]
    for each in parameters:
        unit = f" [{each['unit']}]" if each["unit"] else ""
        told = "; ".join(filter(None, [each["summary"] + unit, _range(each)]))
        default = _default(each)
        if default not in (None, inspect.Parameter.empty):
            told += f". Default: {f'``{default!r}``' if isinstance(default, (str, bool)) else f'{default:g}'}"
        lines.append(f"{each['name']} : {_WORDS[each['kind']]}{'' if each['required'] else ', optional'}")
        lines.append(_paragraph(told[0].upper() + told[1:] + "."))
    lines += ["", "Returns", "-------", "CataloguePart", "    The part, for `System.add`.", "", "Notes", "-----"]
    lines += ["::", "", *(f"    {line}" for line in own["equations"].splitlines())]
    for title in ("ports", "states", "inputs"):
        names = [each["name"] + (f" [{each['unit']}]" if each.get("unit") else "") for each in own[title]]
        if names:
            shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            lines += ["", _paragraph(f"{title.capitalize()}, of an example: {shown}.", "")]
    return "\n".join(lines)


def type_function(own: Dict[str, Any]) -> Callable[..., CataloguePart]:
    """Return the function that makes parts of a type, from its description in `part_types`."""
    active = {"name": "allow_active", "kind": "boolean", "unit": "", "required": False, "default": False}
    active.update({"summary": "whether the part may create energy", "minimum": None, "maximum": None})
    active["passive_only"] = False
    parameters = sorted(own["parameters"], key=lambda each: not each["required"]) + [active]
    signature = inspect.Signature(
        [
            inspect.Parameter(each["name"], inspect.Parameter.KEYWORD_ONLY, default=_default(each))
            for each in parameters
        ],
        return_annotation="CataloguePart",
    )
    name = own["type"]
    kinds = {each["name"]: each["kind"] for each in parameters}

    def make(**given: Any) -> CataloguePart:
        for unknown in given.keys() - signature.parameters.keys():
            near = difflib.get_close_matches(unknown, signature.parameters, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(signature.parameters)}"
            raise TypeError(f"{name}(): there is no parameter {unknown!r}{hint}")
        try:
            signature.bind(**given)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        return CataloguePart(name, **traced_parameters(given, kinds))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = _docstring(own, parameters)
    setattr(make, "__signature__", signature)
    return make


_functions = {name: type_function(own) for name, own in part_types().items()}
globals().update(_functions)

__all__ = ["part_types", *_functions]

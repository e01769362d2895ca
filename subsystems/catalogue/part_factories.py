#!/usr/bin/env python3
"""Writes the functions that make parts of the catalogue's types in C++, and their stub in Python, from the catalogue:

    portwave list --json | python3 subsystems/catalogue/part_factories.py [--write] SOURCES

Without --write, names the files that differ and ends with 1.
"""

import argparse
import json
import sys
import textwrap
from pathlib import Path

HEADERS = "subsystems/include/portwave/subsystems/catalogue"
SOURCE = "subsystems/src/catalogue/part_factories.cpp"
PYTHON = "python/portwave/catalogue.pyi"
NOTE = "Made from the catalogue by subsystems/catalogue/part_factories.py: change the type there."
WIDTH = 100
ACTIVE = {"name": "allow_active", "kind": "boolean", "unit": "", "required": False, "default": False, "minimum": None,
          "maximum": None, "minimum_excluded": False, "passive_only": False, "summary": "the part may create energy"}


def upper_camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


def quoted(value):
    return json.dumps(value, ensure_ascii=False)


def number(value):
    """As both languages write it, and as short as possible."""
    return repr(float(value))


def bounds(info):
    out = []
    if info["minimum"] is not None:
        out.append(f"{'>' if info['minimum_excluded'] else '>='} {info['minimum']:g}")
    if info["maximum"] is not None:
        out.append(f"<= {info['maximum']:g}")
    return " and ".join(out) + (" (less with allow_active)" if info["passive_only"] else "")


def told(info):
    """The meaning of a parameter, with its unit and range."""
    text = info["summary"] + (f" [{info['unit']}]" if info["unit"] else "")
    parts = [text, bounds(info), "one of " + ", ".join(map(quoted, info["choices"])) if info.get("choices") else ""]
    return "; ".join(filter(None, parts))


def places(part):
    """Ports, states and inputs of the example, each as a line."""
    ports = [f"{each['name']} ({each['domain']}{', ' + str(each['dimension']) + ' entries' if each['dimension'] > 1 else ''})"
             for each in part["ports"]]
    named = {kind: [each["name"] + (f" [{each['unit']}]" if each["unit"] else "") for each in part[kind]]
             for kind in ("states", "inputs")}
    return [(title, ", ".join(list[:6]) + (", ..." if len(list) > 6 else ""))
            for title, list in (("Ports", ports), ("States", named["states"]), ("Inputs", named["inputs"])) if list]


# ---------------------------------------------------------------- C++

def cpp_member(info):
    kind, default = info["kind"], info["default"]
    if kind in ("number", "integer", "boolean"):
        own = {"number": "double", "integer": "int", "boolean": "bool"}[kind]
        if info["required"]:
            return f"std::optional<{own}> {info['name']} = {{}};"
        shown = {"number": number, "integer": str, "boolean": lambda value: str(value).lower()}[kind](default)
        return f"{own} {info['name']} = {shown};"
    own = {"choice": "std::string", "numbers": "std::vector<double>", "matrix": "MatrixParameter",
           "ports": "std::vector<Port>", "inputs": "std::vector<ExternalInput>",
           "states": "std::vector<StateVariable>", "expression": "std::string",
           "expressions": "std::vector<std::string>", "expression_matrix": "ExpressionMatrixParameter",
           "constants": "std::vector<NamedNumber>", "texts": "std::vector<std::string>"}[kind]
    is_text = kind in ("choice", "expression")
    return f"{own} {info['name']} = {quoted(default) if is_text and default else '{}'};"


def cpp_comment(prefix, text):
    return "\n".join(textwrap.wrap(text, WIDTH, initial_indent=prefix, subsequent_indent=prefix + " " * 2,
                                   break_long_words=False, break_on_hyphens=False)) + "\n"


def cpp_struct(part):
    out = f"/// Parameters of `{part['type']}`.\nstruct {upper_camel(part['type'])}Parameters {{\n"
    for info in part["parameters"] + [ACTIVE]:
        required = "; required" if info["required"] else ""
        out += cpp_comment("  /// ", told(info) + required)
        out += f"  {cpp_member(info)}\n"
    return out + "};\n"


def cpp_declaration(part):
    out = cpp_comment("/// ", part["summary"])
    out += "".join(f"///   {line}\n" for line in part["equations"].splitlines())
    out += "".join(cpp_comment("/// ", f"{title + ':':9}{text}") for title, text in places(part))
    return out + f"CataloguePart {part['type']}(const {upper_camel(part['type'])}Parameters& parameters);\n"


def cpp_header(parts):
    return f"""#pragma once

// {NOTE}
// clang-format off

#include <optional>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/catalogue/catalogue_part.hpp"

namespace PORTWAVE_EXPORT portwave {{
namespace parts {{

""" + "\n".join(cpp_struct(part) + "\n" + cpp_declaration(part) for part in parts) + """
}  // namespace parts
}  // namespace portwave
"""


def cpp_source(groups):
    out = f"""// {NOTE}
// clang-format off

#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::parts {{
namespace {{

/// Values in the order of the catalogue, and at last that of allow_active.
template <class... Values>
CataloguePart part_of(const char* type, const Values&... values) {{
  CataloguePart part(type);
  const std::vector<ParameterInfo>& known = find_part_type(type)->parameters;
  std::size_t i = 0;
  const auto next_name = [&] {{ return i < known.size() ? known[i++].name : "allow_active"; }};
  (part.give(next_name(), values), ...);
  return part;
}}

}}  // namespace
"""
    for part in (part for parts in groups.values() for part in parts):
        values = ", ".join(f"p.{info['name']}" for info in part["parameters"] + [ACTIVE])
        call = textwrap.fill(f"return part_of({quoted(part['type'])}, {values});", WIDTH, initial_indent="  ",
                             subsequent_indent=" " * 17, break_long_words=False, break_on_hyphens=False)
        parameters = upper_camel(part["type"]) + "Parameters"
        out += f"\nCataloguePart {part['type']}(const {parameters}& p) {{\n{call}\n}}\n"
    return out + "\n}  // namespace portwave::parts\n"


def cpp_umbrella(groups):
    includes = "".join(f'#include "portwave/subsystems/catalogue/parts/{group}.hpp"\n' for group in sorted(groups))
    return f"""#pragma once

// {NOTE}
// clang-format off

{includes}
/// A function for each type of the catalogue. It describes a part, which is checked and built where it is used:
///   network.add("wheel", portwave::parts::mass({{.mass_kg = 2, .ports = 2}}));
/// Defaults are those of the catalogue. Matrices, lists of numbers and texts that are empty count as not given.
namespace portwave::parts {{}}
"""


# ---------------------------------------------------------------- Python

def python_type(info):
    return {"number": "float", "integer": "int", "boolean": "bool", "choice": "str", "numbers": "Sequence[float]",
            "matrix": "Any", "ports": "Sequence[Mapping[str, Any]]",
            "inputs": "Union[Sequence[Any], Mapping[str, Any]]",
            "states": "Union[Sequence[Any], Mapping[str, Any]]", "expression": "str",
            "expressions": "Sequence[str]", "expression_matrix": "Any",
            "constants": "Mapping[str, float]", "texts": "Sequence[str]"}[info["kind"]]


def python_parameter(info):
    own = python_type(info)
    if info["required"]:
        return f"{info['name']}: {own}"
    shown = {"number": number, "integer": str, "boolean": str, "choice": quoted, "expression": quoted}
    if info["kind"] not in shown:
        return f"{info['name']}: Optional[{own}] = None"
    return f"{info['name']}: {own} = {shown[info['kind']](info['default'])}"


def python_function(part):
    # What is required comes first, as in the signature that the package makes.
    infos = sorted(part["parameters"], key=lambda info: not info["required"]) + [ACTIVE]
    parameters = "".join(f"    {python_parameter(info)},\n" for info in infos)
    return f"def {part['type']}(\n    *,\n{parameters}) -> CataloguePart: ...\n"


def python_stub(groups):
    parts = [part for parts in groups.values() for part in parts]
    names = "".join(f"    {quoted(part['type'])},\n" for part in parts)
    return f"""# {NOTE}
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from .catalogue_part import CataloguePart

__all__ = [
    "part_types",
{names}]

def part_types() -> Dict[str, Dict[str, Any]]: ...
""" + "".join(python_function(part) for part in parts)


def files_of(catalogue):
    groups = {}
    for part in catalogue:
        groups.setdefault(part["group"], []).append(part)
    files = {f"{HEADERS}/parts/{group}.hpp": cpp_header(parts) for group, parts in groups.items()}
    return files | {f"{HEADERS}/parts.hpp": cpp_umbrella(groups), SOURCE: cpp_source(groups),
                    PYTHON: python_stub(groups)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("sources", type=Path)
    arguments = parser.parse_args()
    files = files_of(json.load(sys.stdin))
    known = {str(path.relative_to(arguments.sources)) for path in (arguments.sources / HEADERS / "parts").glob("*")}
    differ = sorted(known - set(files))
    for name, text in files.items():
        path = arguments.sources / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        differ.append(name)
        if arguments.write:
            path.write_text(text, encoding="utf-8")
    if differ and not arguments.write:
        sys.exit("these files differ from the catalogue (--write):\n  " + "\n  ".join(differ))


main()

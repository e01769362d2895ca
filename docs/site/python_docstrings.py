#!/usr/bin/env python3
"""Keeps parameters of Python that are keys of scenario files in the words of their JSON Schema:

    portwave schema | python3 docs/site/python_docstrings.py [--write] python/portwave

The first sentence of such a parameter in its docstring is the description of the key; sentences after it are
Python's own. Without --write, prints the parameters that differ and ends with 1.
"""

import argparse
import ast
import json
import re
import sys
import textwrap
from pathlib import Path

TIME = "properties/time/properties/"
STEP = TIME + "step/allOf/0/then/properties/"
PART = "definitions/subsystem/properties/"
BLOCK = "properties/signals/properties/blocks/items/allOf/0/then/properties/"
KEYS = {  # of each docstring: its parameters, and where the schema describes them
    ("system.py", "System"): {
        "name": "properties/name", "step_s": TIME + "step_s", "start_s": TIME + "start_s", "end_s": TIME + "end_s",
        "tolerance": STEP + "tolerance"},
    ("system.py", "System.add"): {
        "name": PART + "name", "initial_state": PART + "initial_state", "inputs": PART + "inputs",
        "substeps": PART + "substeps"},
    ("controllers.py", "Controllers.add_block"): {"every": BLOCK + "every"},
    ("controllers.py", "Controllers.add_controller"): {"every": BLOCK + "every"},
    ("stepper.py", "Stepper.record"): {"every": "properties/outputs/properties/every"},
}
WIDTH = 100


def sentence(schema, pointer):
    """The description of a key up to its first semicolon, as a sentence."""
    at = schema
    for step in pointer.split("/"):
        at = at[int(step) if isinstance(at, list) else step]
    text = at["description"].split(";")[0]
    return text[0].upper() + re.sub(r'"([^"]*)"', r'``"\1"``', text[1:]) + "."


def docstring(tree, path):
    """The expression that holds the docstring of a class or method."""
    at = tree
    for name in path.split("."):
        at = next(each for each in at.body
                  if isinstance(each, (ast.ClassDef, ast.FunctionDef)) and each.name == name)
    return at.body[0]


def with_sentence(lines, first, last, name, wanted):
    """Gives a parameter its sentence in lines[first:last]. Returns the range of its paragraph, and new lines."""
    start = next(i for i in range(first, last) if re.match(rf"\s+{name} : ", lines[i])) + 1
    indent = re.match(r"\s*", lines[start]).group()
    end = start
    while lines[end].startswith(indent) and lines[end].strip():
        end += 1
    text = " ".join(line.strip() for line in lines[start:end])
    rest = text.split(". ", 1)[1] if ". " in text else ""
    new = f"{wanted} {rest}".strip()
    return start, end, textwrap.wrap(new, WIDTH, initial_indent=indent, subsequent_indent=indent,
                                     break_long_words=False, break_on_hyphens=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("package", type=Path)
    arguments = parser.parse_args()
    schema = json.load(sys.stdin)
    differ = []
    for (file, path), parameters in KEYS.items():
        source = arguments.package / file
        for name, pointer in parameters.items():
            text = source.read_text(encoding="utf-8")
            lines = text.splitlines()
            own = docstring(ast.parse(text), path)
            start, end, new = with_sentence(lines, own.lineno - 1, own.end_lineno, name, sentence(schema, pointer))
            if lines[start:end] == new:
                continue
            differ.append(f"{file}: {path}, {name}: {' '.join(line.strip() for line in new)}")
            if arguments.write:
                source.write_text("\n".join(lines[:start] + new + lines[end:]) + "\n", encoding="utf-8")
    if differ and not arguments.write:
        sys.exit("docstrings differ from the schema (--write):\n  " + "\n  ".join(differ))


main()

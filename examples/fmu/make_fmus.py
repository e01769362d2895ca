#!/usr/bin/env python3
"""Compiles two_models.c and packs it as mass.fmu and spring.fmu in a folder (the present one, unless one is named).

    make_fmus.py [FOLDER]

An FMU is a zip archive: modelDescription.xml says what is in it, and binaries/ holds a library for each platform.
"""

import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

UNITS = """  <UnitDefinitions>
    <Unit name="N"><BaseUnit kg="1" m="1" s="-2"/></Unit>
    <Unit name="m/s"><BaseUnit m="1" s="-1"/></Unit>
    <Unit name="m"><BaseUnit m="1"/></Unit>
    <Unit name="kg"><BaseUnit kg="1"/></Unit>
    <Unit name="N/m"><BaseUnit kg="1" s="-2"/></Unit>
    <Unit name="N.s/m"><BaseUnit kg="1" s="-1"/></Unit>
  </UnitDefinitions>
"""
# name, value reference, causality, unit, start
MASS = [("F", 0, "input", "N", "0"), ("v", 1, "output", "m/s", None), ("x", 2, "output", "m", None),
        ("m", 3, "parameter", "kg", "1"), ("x0", 2, "parameter", "m", "0")]
SPRING = [("v", 1, "input", "m/s", "0"), ("F", 0, "output", "N", None), ("x", 2, "output", "m", None),
          ("k", 4, "parameter", "N/m", "100"), ("d", 5, "parameter", "N.s/m", "1"),
          ("x0", 2, "parameter", "m", "0")]


def description(name, variables):
    lines = ['<?xml version="1.0" encoding="UTF-8"?>',
             f'<fmiModelDescription fmiVersion="2.0" modelName="{name}" guid="{{{name}-1}}">',
             f'  <CoSimulation modelIdentifier="{name}" canHandleVariableCommunicationStepSize="true" '
             'canGetAndSetFMUstate="true"/>', UNITS + "  <ModelVariables>"]
    for variable, reference, causality, unit, start in variables:
        variability = ' variability="fixed"' if causality == "parameter" else ""
        given = f' start="{start}"' if start is not None else ""
        lines.append(f'    <ScalarVariable name="{variable}" valueReference="{reference}" causality="{causality}"'
                     f'{variability}><Real unit="{unit}"{given}/></ScalarVariable>')
    outputs = "".join(f'<Unknown index="{i}"/>' for i, own in enumerate(variables, 1) if own[2] == "output")
    return "\n".join(lines + ["  </ModelVariables>",
                              f"  <ModelStructure><Outputs>{outputs}</Outputs>"
                              f"<InitialUnknowns>{outputs}</InitialUnknowns></ModelStructure>",
                              "</fmiModelDescription>", ""])


def pack(folder, name, variables, flags):
    here = Path(__file__).resolve().parent
    place = "linux64" if platform.machine() == "x86_64" else f"{platform.machine()}-linux"
    with tempfile.TemporaryDirectory() as scratch:
        library = Path(scratch) / f"{name}.so"
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", *flags, "-o", str(library),
                        str(here / "two_models.c")], check=True)
        with zipfile.ZipFile(folder / f"{name}.fmu", "w", zipfile.ZIP_DEFLATED) as fmu:
            fmu.writestr("modelDescription.xml", description(name, variables))
            fmu.write(library, f"binaries/{place}/{name}.so")


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    pack(folder, "mass", MASS, ["-DMASS"])
    pack(folder, "spring", SPRING, [])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes chassis.fmu and wheel.fmu, a quarter of a car, in a folder (the present one, unless one is named).

    make_quarter_car.py [FOLDER] [--by c|pythonfmu|pythonfmu3|portwave]

    c           two_bodies.c, compiled: FMI 2.0
    pythonfmu   two_bodies.py, packed by pythonfmu (pip install pythonfmu): FMI 2.0
    pythonfmu3  the same by pythonfmu3: FMI 3.0
    portwave    parts of the catalogue, exported: FMI 2.0. Ports and variables have other names then.
"""

import argparse
import os
import platform
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACE = "linux64" if platform.machine() == "x86_64" else f"{platform.machine()}-linux"

UNITS = """  <UnitDefinitions>
    <Unit name="N"><BaseUnit kg="1" m="1" s="-2"/></Unit>
    <Unit name="N.s"><BaseUnit kg="1" m="1" s="-1"/></Unit>
    <Unit name="m/s"><BaseUnit m="1" s="-1"/></Unit>
    <Unit name="m"><BaseUnit m="1"/></Unit>
    <Unit name="kg"><BaseUnit kg="1"/></Unit>
    <Unit name="N/m"><BaseUnit kg="1" s="-2"/></Unit>
    <Unit name="N.s/m"><BaseUnit kg="1" s="-1"/></Unit>
  </UnitDefinitions>
"""
# name, value reference in two_bodies.c, causality, unit, start
CHASSIS = [("v", 3, "input", "m/s", "0"), ("F", 4, "output", "N", None), ("x", 2, "output", "m", None),
           ("vc", 1, "output", "m/s", None), ("impulse", 5, "output", "N.s", None),
           ("m", 6, "parameter", "kg", "400"), ("k", 7, "parameter", "N/m", "15000"),
           ("d", 8, "parameter", "N.s/m", "1000")]
WHEEL = [("F", 2, "input", "N", "0"), ("v", 1, "output", "m/s", None), ("x", 0, "output", "m", None),
         ("m", 3, "parameter", "kg", "40"), ("k", 4, "parameter", "N/m", "150000"),
         ("d", 5, "parameter", "N.s/m", "0"), ("road", 6, "parameter", "m", "0.1")]
FEEDTHROUGH = {"F": "v"}  # the force of the chassis jumps with the velocity beneath it


def description(name, variables):
    lines = ['<?xml version="1.0" encoding="UTF-8"?>',
             f'<fmiModelDescription fmiVersion="2.0" modelName="{name}" guid="{{{name}-of-a-quarter-car-1}}">',
             f'  <CoSimulation modelIdentifier="{name}" canHandleVariableCommunicationStepSize="true" '
             'canNotUseMemoryManagementFunctions="true" canGetAndSetFMUstate="true"/>', UNITS + "  <ModelVariables>"]
    places = {own[0]: str(i) for i, own in enumerate(variables, 1)}
    for variable, reference, causality, unit, start in variables:
        kind = 'variability="fixed" initial="exact"' if causality == "parameter" else 'variability="continuous"'
        if causality == "output":
            kind += ' initial="calculated"'
        given = f' start="{start}"' if start is not None else ""
        lines.append(f'    <ScalarVariable name="{variable}" valueReference="{reference}" causality="{causality}" '
                     f'{kind}><Real unit="{unit}"{given}/></ScalarVariable>')
    outputs = [own[0] for own in variables if own[2] == "output"]
    unknowns = "".join(f'<Unknown index="{places[own]}" dependencies="{places.get(FEEDTHROUGH.get(own), "")}"/>'
                       for own in outputs)
    initial = "".join(f'<Unknown index="{places[own]}"/>' for own in outputs)
    return "\n".join(lines + ["  </ModelVariables>",
                              f"  <ModelStructure><Outputs>{unknowns}</Outputs>"
                              f"<InitialUnknowns>{initial}</InitialUnknowns></ModelStructure>",
                              "</fmiModelDescription>", ""])


def by_c(folder):
    for name, variables, flags in (("chassis", CHASSIS, ["-DCHASSIS"]), ("wheel", WHEEL, [])):
        with tempfile.TemporaryDirectory() as scratch:
            library = Path(scratch) / f"{name}.so"
            subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden",
                            *flags, "-o", str(library), str(HERE / "two_bodies.c"), "-lm"], check=True)
            with zipfile.ZipFile(folder / f"{name}.fmu", "w", zipfile.ZIP_DEFLATED) as fmu:
                fmu.writestr("modelDescription.xml", description(name, variables))
                fmu.write(library, f"binaries/{PLACE}/{name}.so")


# A class for packages that make FMUs from Python. A saved state is what no output follows from.
SLAVE = """from PACKAGE import FmiNSlave, FmiNCausality, FmiNInitial, FmiNVariability, REAL
from two_bodies import NAMEBody


class NAME(FmiNSlave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._body = NAMEBody()
        self._add([NAMEBody.INPUT], FmiNCausality.input, variability=FmiNVariability.continuous)
        self._add(NAMEBody.OUTPUTS, FmiNCausality.output, initial=FmiNInitial.calculated)
        self._add(NAMEBody.PARAMETERS, FmiNCausality.parameter, variability=FmiNVariability.fixed)

    def _add(self, names, causality, **options):
        for name in names:
            set_it = None
            if causality != FmiNCausality.output:
                set_it = lambda value, name=name: setattr(self._body, name, value)
            self.register_variable(REAL(name, causality=causality, getter=lambda name=name: getattr(self._body, name),
                                        setter=set_it, **options))

    def do_step(self, current_time, step_size):
        self._body.advance(step_size)
        return DONE

    def _get_fmu_state(self):
        return self._body.state()

    def _set_fmu_state(self, state):
        self._body.go_back(state)
"""


def by_python(folder, version):
    """By pythonfmu or pythonfmu3."""
    if version == 2:
        from pythonfmu import FmuBuilder

        words = {"PACKAGE": "pythonfmu", "REAL": "Real", "DONE": "True", "FmiN": "Fmi2"}
        options = {"canGetAndSetFMUstate": "true"}
    else:
        from pythonfmu3 import FmuBuilder

        words = {"PACKAGE": "pythonfmu3", "REAL": "Float64", "DONE": "Fmi3StepResult()", "FmiN": "Fmi3",
                 "(FmiNSlave)": "(Fmi3Slave, CoSimulation)", "import FmiNSlave":
                 "import CoSimulation, Fmi3StepResult, Fmi3Slave"}
        options = {"canGetAndSetFMUState": "true"}
    for name in ("Chassis", "Wheel"):
        text = SLAVE.replace("NAME", name)
        for word in sorted(words, key=len, reverse=True):
            text = text.replace(word, words[word])
        with tempfile.TemporaryDirectory() as scratch:
            # A program keeps modules of Python by name: those of both versions go beside one another.
            script = Path(scratch) / f"{name.lower()}_fmi{version}.py"
            script.write_text(text, encoding="utf-8")
            made = FmuBuilder.build_FMU(script, dest=scratch, project_files=[HERE / "two_bodies.py"], **options)
            shutil.move(made, folder / f"{name.lower()}.fmu")


def by_portwave(folder, chassis=None, wheel=None):
    """The same physics as scenarios: a mass on a strut whose lower end is free, and a mass on a tyre."""
    import portwave as pw

    values = {}
    for name, variables, given in (("chassis", CHASSIS, chassis), ("wheel", WHEEL, wheel)):
        values[name] = {own[0]: float(own[4]) for own in variables if own[2] == "parameter"} | (given or {})
    c, w = values["chassis"], values["wheel"]
    # Of order 6, so that their own steps are as good as exact.
    own = {"step_s": 0.001, "method": {"kind": "auto", "stages": 3}}
    above = pw.System("chassis", **own)
    above.add("body", "mass", mass_kg=c["m"])
    above.add("strut", "spring_damper", stiffness_N_per_m=c["k"], damping_Ns_per_m=c["d"])
    above.connect("body.port", "strut.left")
    above.to_fmu(folder / "chassis.fmu", ports=["strut.right=flow"], outputs=["body.position"])
    below = pw.System("wheel", **own)
    below.add("body", "mass", mass_kg=w["m"], damping_Ns_per_m=w["d"], ports=2)
    below.add("tyre", "spring", stiffness_N_per_m=w["k"], initial_state={"elongation": -w["road"]})
    below.connect("body.port_1", "tyre.right").join("fixed", "tyre.left")
    below.to_fmu(folder / "wheel.fmu", ports=["body.port_2=effort"], outputs=["body.position", "body.velocity"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", default=".", type=Path)
    parser.add_argument("--by", choices=["c", "pythonfmu", "pythonfmu3", "portwave"], default="c")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    {"c": by_c, "pythonfmu": lambda own: by_python(own, 2), "pythonfmu3": lambda own: by_python(own, 3),
     "portwave": by_portwave}[given.by](given.folder)


if __name__ == "__main__":
    main()

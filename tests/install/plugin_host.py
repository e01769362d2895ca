"""Loads a plugin and runs its scenario: plugin_host.py <prefix> <library> <scenario>."""

import sys

import portwave as pw

prefix, library, scenario = sys.argv[1:]
assert pw.__file__.startswith(prefix), f"{pw.__file__} is not the installed package"

plugin = pw.load_plugin(library)         # plugin.solenoid(turns=800, ...) makes a part, as pw.mass does
stepper = pw.Stepper(scenario)           # which may name the library in "plugins" from now on

print(plugin, plugin.solenoid.__doc__.splitlines()[0])
stepper.step(1000)
print(f"armature at {1e3 * stepper['coil.position']:.4f} mm")
assert stepper["coil.position"] > 1e-3

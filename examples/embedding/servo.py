"""A position servo: the program owns the loop and is the controller.

See docs/tutorial/embedding.md.
"""

import sys

import portwave as pw

file = sys.argv[1] if len(sys.argv) > 1 else "examples/embedding/servo.json"
# [servo]
servo = pw.Stepper(file)

while servo.time_s < 2.0:
    error = 1.0 - servo["load.angle"]
    wanted = 30.0 * error - 0.15 * servo["motor.speed"]
    servo["supply.effort"] = min(max(wanted, -24.0), 24.0)
    servo.step()

# Try half a second at full voltage, then return.
now = servo.snapshot()
servo["supply.effort"] = 24.0
servo.run_until(2.5)
if_full_voltage = servo["load.angle"]
servo.restore(now)
# [servo]

print(
    f"{servo['load.angle']:.9f} rad at {servo.time_s:g} s, "
    f"{if_full_voltage:.9f} rad with full voltage, {servo.energy['supplied_J']:g} J supplied"
)

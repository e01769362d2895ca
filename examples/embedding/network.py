"""A network of 2000 parts that is built in code, stepped under a deadline, changed and rolled back.

See docs/tutorial/network-in-code.md.
"""

import sys

import portwave as pw

# [build]
CELLS = 500
network = pw.System("ring", step_s=1e-3)
for i in range(CELLS):
    network.add(
        f"cell{i}/mass",
        pw.mass(mass_kg=1.0 + 0.001 * i, ports=4),
        initial_state={"velocity": 2.0} if i == 0 else None,
        inputs={"force": "settable"} if i == 250 else None,
    )
    network.add(f"cell{i}/spring", pw.spring_damper(stiffness_N_per_m=400, damping_Ns_per_m=0.1))
    network.add(
        f"cell{i}/oscillator",
        pw.duffing_oscillator(
            mass_kg=0.5,
            stiffness_N_per_m=20,
            cubic_stiffness_N_per_m3=2000,
            coupling_stiffness_N_per_m=50,
        ),
    )
    network.add(f"cell{i}/friction", pw.coulomb_damper(friction_N=0.05, creep_speed_m_per_s=0.01))
for i in range(CELLS):
    network.connect(f"cell{i}/mass.port_1", f"cell{i}/spring.left")
    network.connect(f"cell{(i + 1) % CELLS}/mass.port_2", f"cell{i}/spring.right")
    network.connect(f"cell{i}/mass.port_3", f"cell{i}/oscillator.coupling")
    network.connect(f"cell{i}/mass.port_4", f"cell{i}/friction.end")
# [build]

# [options]
arena = pw.Arena(2)  # whoever shares it shares its two threads
stepper = pw.Stepper(network, threads=2, arena=arena, deadline_s=2e-3)
# [options]

# [loop]
watched = stepper.find_all([f"cell{i}/mass.velocity" for i in range(0, CELLS, 5)])
for step in range(200):
    stepper["cell250/mass.force"] = 5.0 if step < 100 else 0.0
    stepper.step()
    values = stepper.read_all(watched)
# [loop]

# [rollback]
stepper.set_parameter("cell0/oscillator.stiffness_N_per_m", 80.0)
now = stepper.snapshot()
stepper["cell250/mass.force"] = 50.0
stepper.step(100)
if_pushed = stepper.read_all(watched)[50]
stepper.restore(now)
# [rollback]

print(
    f"{len(network.parts)} parts, {len(values)} velocities, {values[50]:g} m/s at {stepper.time_s:g} s, "
    f"{if_pushed:g} m/s if pushed, {stepper.deadline['steps']} steps under a deadline"
)
sys.exit(1 if stepper.certificate == "violated" else 0)

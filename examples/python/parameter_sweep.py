# %% [markdown]
"""
# A parameter sweep

Shows `sweep`: the overshoot of a controlled drive over two parameters. In drive_pid.json a motor turns a
load through a gear and an elastic shaft, and a PID controller holds the angle of the load; the gain of the
integral and the inertia of the load vary. The method is chosen automatically (`"kind": "auto"`).

Run it from the root of the repository, as a script or cell by cell.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import portwave as pw

INTEGRAL = "/signals/blocks/1/integral"  # [V/(rad s)]
INERTIA = "/subsystems/3/parameters/inertia_kgm2"

integrals = [60.0, 120.0, 240.0, 480.0]
inertias = [0.1, 0.2, 0.4]

runs = pw.sweep(
    "examples/drive_pid.json",
    {INTEGRAL: integrals, INERTIA: inertias},
    until=3.0,  # s
    observe=["target", "load.angle"],
    every=4,
)

# %% [markdown]
# Each run consists of its overrides and its result.


# %%
def overshoot(result: pw.Result) -> float:
    """Largest excess of the angle over the target, relative to the target."""
    target = result["target"][-1]
    return float(result["load.angle"].max() / target - 1.0)


table = np.array([overshoot(result) for _, result in runs]).reshape(len(integrals), len(inertias))
for integral, row in zip(integrals, table):
    print(f"integral {integral:3g} V/(rad s):", *(f"{100 * value:5.1f} %" for value in row))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for overrides, result in runs:
    if overrides[INERTIA] == 0.4:
        left.plot(result.t, result["load.angle"], label=f"{overrides[INTEGRAL]:g} V/(rad s)")
left.set(xlabel="time [s]", ylabel="angle of the load [rad]", title="load of 0.4 kg m$^2$")
left.legend(frameon=False)
for j, inertia in enumerate(inertias):
    right.plot(integrals, 100 * table[:, j], marker="o", label=f"{inertia:g} kg m$^2$")
right.set(xlabel="gain of the integral [V/(rad s)]", ylabel="overshoot [%]", xscale="log")
right.legend(frameon=False)
plt.show()

# %% [markdown]
# # A parameter sweep
#
# A motor turns a load by a gear and an elastic shaft, and a PID controller holds the angle of the load
# (drive_pid.json). How much does it overshoot, by the gain of the integral and by the load?
#
# Run it from the root of the repository, as a script or cell by cell.

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
# Each run is its settings and its result. The overshoot is what the angle goes beyond the target.


# %%
def overshoot(result: pw.Result) -> float:
    """Of the step of the target, 1 being all of it."""
    target = result["target"][-1]
    return float(result["load.angle"].max() / target - 1.0)


table = np.array([overshoot(result) for _, result in runs]).reshape(len(integrals), len(inertias))
for integral, row in zip(integrals, table):
    print(f"integral {integral:3g} V/(rad s):", *(f"{100 * value:5.1f} %" for value in row))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for settings, result in runs:
    if settings[INERTIA] == 0.4:
        left.plot(result.t, result["load.angle"], label=f"{settings[INTEGRAL]:g} V/(rad s)")
left.set(xlabel="time [s]", ylabel="angle of the load [rad]", title="load of 0.4 kg m$^2$")
left.legend(frameon=False)
for j, inertia in enumerate(inertias):
    right.plot(integrals, 100 * table[:, j], marker="o", label=f"{inertia:g} kg m$^2$")
right.set(xlabel="gain of the integral [V/(rad s)]", ylabel="overshoot [%]", xscale="log")
right.legend(frameon=False)
plt.show()

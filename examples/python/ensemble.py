# %% [markdown]
"""
# An ensemble: the spread of five hundred drives

Shows `Ensemble`: the loads, shafts and motors of five hundred drives differ by a few per cent, as production
makes them. One ensemble steps all of them under the same voltage; the plot shows how far apart they are.

Run it from the root of the repository, as a script or cell by cell.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import portwave as pw

SERVO = "examples/embedding/servo.json"
N, STEPS, EVERY = 500, 600, 5  # steps of 1 ms

random = np.random.default_rng(1)


def produced(nominal: float, deviation: float) -> np.ndarray:
    """Values (N,) around the nominal one; `deviation` is the relative standard deviation."""
    return nominal * np.exp(deviation * random.standard_normal(N))


drives = pw.Ensemble(
    SERVO,
    parameters={
        "load.inertia_kgm2": produced(0.2, 0.05),
        "joint.stiffness_Nm_per_rad": produced(200.0, 0.05),
        "motor.motor_constant_Vs_per_rad": produced(0.05, 0.03),
    },
)
voltage = np.where(np.arange(STEPS) < STEPS // 2, 24.0, -12.0)[:, None]  # V, (T, 1), for all drives
x = drives.rollout(u=voltage, every=EVERY)
angle = x[:, :, drives.state_names.index("load.angle")]  # (N, T), rad

# %% [markdown]
# A stepper of its own runs the nominal drive.

# %%
nominal = pw.Stepper(SERVO).rollout(voltage, ["load.angle"])[EVERY - 1 :: EVERY, 0]
low, middle, high = np.quantile(angle, [0.05, 0.5, 0.95], axis=0)
end_spread = float(angle[:, -1].std())
print(drives)
print(f"at the end {middle[-1]:.4f} rad, 90 % within {low[-1]:.4f} to {high[-1]:.4f} rad")

# %%
t = 0.001 * EVERY * np.arange(1, len(nominal) + 1)
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.fill_between(t, low, high, alpha=0.3, label="90 % of the drives")
axes.plot(t, nominal, label="nominal drive")
axes.set(xlabel="time [s]", ylabel="angle of the load [rad]")
axes.legend(frameon=False)
plt.show()

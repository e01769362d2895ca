# %% [markdown]
"""
# A part of one's own

Shows a part given by its energy, in two ways: a bead slides on a parabolic wire z = a x^2 / 2, so that its mass, seen along the wire,
depends on its place. With the momentum p its energy is

    H(x, p) = p^2 / (2 m (1 + a^2 x^2)) + m g a x^2 / 2.

With `port_hamiltonian` the energy is written down as an expression and differentiated: no Python runs in a step.
With `add_part_type` energy and gradient stay functions of Python, which may do what no expression says. Both work with
any part of the catalogue, here a spring with a damper.

Run it from the root of the repository, as a script or cell by cell.
"""

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

import portwave as pw

MASS, CURVATURE, GRAVITY = 0.5, 2.0, 9.81  # kg, 1/m, m/s^2


def energy(state: np.ndarray) -> float:
    """Stored energy [J]."""
    x, p = state
    along = 1.0 + (CURVATURE * x) ** 2
    return 0.5 * p**2 / (MASS * along) + 0.5 * MASS * GRAVITY * CURVATURE * x**2


# %% [markdown]
# Traced: the function is called once, with symbols.

# %%
bead = pw.port_hamiltonian(
    states={"x": "m", "p": "kg m/s"},
    energy=energy,
    J=[[0, 1], [-1, 0]],
    G=[[0], [1]],
    ports=[{"name": "hook", "causality": "effort_in", "domain": "translation"}],  # a force in, a velocity out
)
print(bead.parameters["energy"])

# %% [markdown]
# Called in every step: a type of part, with the gradient by hand.


# %%
def gradient(state: np.ndarray) -> list:
    """Gradient of the energy: force [N] and velocity [m/s]."""
    x, p = state
    along = 1.0 + (CURVATURE * x) ** 2
    force = MASS * GRAVITY * CURVATURE * x - p**2 * CURVATURE**2 * x / (MASS * along**2)
    return [force, p / (MASS * along)]


pw.add_part_type(
    "bead",
    states=[("x", "m"), ("p", "kg m/s")],
    ports=[("hook", "translation", "effort_in")],  # a force in, a velocity out
    energy=energy,
    gradient=gradient,
    J=[[0, 1], [-1, 0]],
    G=[[0], [1]],
    summary="A bead on a parabolic wire.",
)

# %% [markdown]
# Alone, the bead keeps its energy for any step size, to the tolerance of the iteration. Both ways are of second order;
# they take the gradient's mean along a step differently, and agree to the error of the steps.


# %%
def swing(part) -> tuple:
    """Ten seconds from 0.4 m, and how much energy is gone then."""
    alone = pw.System("bead", step_s=0.01)
    alone.add("bead", part, initial_state={"x": 0.4})
    alone.join("free", "bead.hook")
    stepper = pw.Stepper(alone)
    begun = time.perf_counter()
    out = stepper.record(until=10.0, observe=["bead.x", "bead.storage"])
    microseconds = 1e6 * (time.perf_counter() - begun) / stepper.step_index
    drift = float(np.abs(out["bead.storage"] / out["bead.storage"][0] - 1.0).max())
    print(f"energy within {drift:.1e} of its start, {microseconds:.0f} us per step")
    return out, drift


free, drift = swing(bead)
called, drift_called = swing("bead")
apart = float(np.abs(free["bead.x"] - called["bead.x"]).max())
print(f"places agree within {apart:.1e} m")

# %% [markdown]
# Held by a spring with a damper, the bead comes to rest, and the energy ledger closes.

# %%
held = pw.System("bead on a spring", step_s=0.01)
held.add("bead", bead, initial_state={"x": 0.4})
held.add("spring", "spring_damper", stiffness_N_per_m=20.0, damping_Ns_per_m=1.5)
held.add("wall", "flow_source", domain="translation", inputs={"flow": 0.0})
held.connect("spring.left", "bead.hook")
held.connect("spring.right", "wall.port")
damped = pw.Stepper(held).record(until=10.0, observe=["bead.x", "bead.storage"])
ledger = damped.energy
gap = ledger["final_J"] - ledger["initial_J"] - (
    ledger["supplied_J"] - ledger["dissipated_J"] - ledger["mismatch_J"]
)
print(f"{ledger['dissipated_J']:.4f} J dissipated of {ledger['initial_J']:.4f} J; gap {gap:.1e} J")

# %%
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(free.t, free["bead.x"], label="alone")
axes.plot(damped.t, damped["bead.x"], label="with a spring and a damper")
axes.set(xlabel="time [s]", ylabel="bead [m]")
axes.legend(frameon=False)
plt.show()

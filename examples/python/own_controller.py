# %% [markdown]
"""
# A controller of one's own

Shows `linearise` and `add_controller`: a motor turns a load through a gear with a flexible shaft (servo.json).
The controller is a Python function that the stepper samples at 500 Hz: state feedback from a linear-quadratic
design on the linearised system, with an integral as its own state.

Run it from the root of the repository, as a script or cell by cell.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import portwave as pw

SERVO = "examples/embedding/servo.json"
EVERY, STEP = 2, 0.001  # steps between samples, s
PERIOD = EVERY * STEP
LIMIT = 24.0  # V
TARGET = 1.0  # rad

# %% [markdown]
# The sampled form of dx/dt = A x + B u is x+ = F x + g u, here from the Taylor series of the matrix
# exponential over a short time, squared. The angles of motor and joint are left out: the angle of the load and
# the twist determine them.

# %%
linear = pw.Stepper(SERVO).linearise(["load.angle"])
kept = [i for i, name in enumerate(linear.state_names) if name not in ("motor.angle", "joint.angle")]
names = [linear.state_names[i] for i in kept]
n = len(names)
A = np.zeros((n + 2, n + 2))  # with the integral of the angle, and the input
A[:n, :n] = linear.A[np.ix_(kept, kept)]
A[:n, n + 1] = linear.B[kept, 0]
A[n, names.index("load.angle")] = 1.0
sampled, term = np.eye(n + 2), np.eye(n + 2)
for k in range(1, 12):
    term = term @ A * (PERIOD / 64 / k)
    sampled = sampled + term
for _ in range(6):
    sampled = sampled @ sampled
F, g = sampled[: n + 1, : n + 1], sampled[: n + 1, n + 1]

# %% [markdown]
# The gains of least cost follow from Riccati's recursion, iterated until it stands still.

# %%
weights = np.zeros(n + 1)
weights[names.index("load.angle")] = 2000.0
weights[names.index("load.speed")] = 2.0
weights[n] = 100000.0  # of the integral
P = np.diag(weights)
for _ in range(20000):
    gain = (g @ P @ F) / (0.3 + g @ P @ g)
    after = F.T @ P @ (F - np.outer(g, gain)) + np.diag(weights)
    after = 0.5 * (after + after.T)
    done = np.abs(after - P).max() < 1e-12 * np.abs(P).max()
    P = after
    if done:
        break
slowest = float(np.abs(np.linalg.eigvals(F - np.outer(g, gain))).max())
print(f"gains of {', '.join(names)}, integral: {np.round(gain, 3)}; slowest pole {slowest:.4f}")


# %%
angle = names.index("load.angle")


def law(t, u, x):
    """Voltage [V] and next state; u: target [rad] and states, x: integral of the error [rad s]."""
    state = u[1:].copy()
    state[angle] -= u[0]
    wanted = -(gain[:n] @ state + gain[n] * x[0])
    voltage = min(max(wanted, -LIMIT), LIMIT)
    # The integral waits while the voltage is at its limit.
    following = x[0] + PERIOD * state[angle] if voltage == wanted else x[0]
    return voltage, [following]


system = pw.System.from_file(SERVO)
# From 2 s on a torque pulls at the load.
system.override("/subsystems/3/inputs", {"torque": {"kind": "signal", "signal": "pull"}})
system.add_block("pull", "step", time_s=2.0, after=-20.0)  # N m
system.add_block("target", "step", time_s=0.1, after=TARGET)
system.add_controller(
    "law", law, inputs=["target", *names], state=[0.0], every=EVERY, drives="supply.effort"
)
stepper = pw.Stepper(system)
result = stepper.record(until=4.0, observe=["target", "load.angle", "joint.twist", "law"])
off_before = float(abs(result["load.angle"][1999] - TARGET))
off_after = float(abs(result["load.angle"][-1] - TARGET))
print(f"off by {off_before:.1e} rad before the pull, by {off_after:.1e} rad at the end")

# %% [markdown]
# Snapshots hold the state of the controller, so a run that returns to one repeats bit by bit.

# %%
again = pw.Stepper(system)
again.step(1000)
middle = again.snapshot()
first = again.record(steps=500, observe=["load.angle"])["load.angle"]
again.restore(middle)
second = again.record(steps=500, observe=["load.angle"])["load.angle"]
repeats = bool(np.array_equal(first, second))
print("repeats bit by bit:", repeats)

# %%
result.plot(["target", "load.angle", "law"])
plt.show()

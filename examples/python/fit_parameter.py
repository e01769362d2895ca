# %% [markdown]
"""
# Parameters from noisy data

Shows a fit with `Ensemble`: the inertia of a load and the stiffness of its shaft from a noisy record of the
speed. Gauss and Newton's method takes its gradients from differences between five replicas. A grid of 31 x 31
replicas then checks the uncertainty that the method states.

Run it from the root of the repository, as a script or cell by cell.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import portwave as pw

SERVO = "examples/embedding/servo.json"
NAMES = ["load.inertia_kgm2", "joint.stiffness_Nm_per_rad"]
TRUTH = np.array([0.2, 200.0])
NOISE = 0.02  # rad/s, standard deviation
STEPS, EVERY = 400, 4  # steps of 1 ms; the record has a sample every 4 steps

# A voltage that shakes the shaft: +-12 V, changing at irregular times.
voltage = np.repeat([12.0, -12.0, 12.0, 12.0, -12.0, 12.0, -12.0, -12.0], STEPS // 8)[:, None]


def replicas(parameters: np.ndarray) -> np.ndarray:
    """Speeds of the load (N, T) [rad/s] for parameters (N, 2)."""
    ensemble = pw.Ensemble(SERVO, parameters=dict(zip(NAMES, parameters.T)))
    x = ensemble.rollout(u=voltage, every=EVERY)
    return x[:, :, ensemble.state_names.index("load.speed")]


exact = replicas(TRUTH[None])[0]
record = exact + np.random.default_rng(7).normal(0.0, NOISE, exact.shape)

# %% [markdown]
# Each iteration steps five replicas: the guess, and one on either side of it for each parameter. The
# unknowns are the logarithms of the parameters, so that all guesses are positive.

# %%
guess = np.log(TRUTH * [1.5, 0.6])
print("guess   ", np.exp(guess))
for iteration in range(12):
    d = 1e-4
    shifts = np.array([[0, 0], [d, 0], [-d, 0], [0, d], [0, -d]])
    speeds = replicas(np.exp(guess + shifts))
    J = (speeds[1::2] - speeds[2::2]).T / (2 * d)
    change = np.linalg.lstsq(J, record - speeds[0], rcond=None)[0]
    guess = guess + np.clip(change, -0.3, 0.3)
    if np.abs(change).max() < 1e-6:
        break
estimate = np.exp(guess)
covariance = NOISE**2 * np.linalg.inv(J.T @ J)  # of the logarithms
uncertainty = estimate * np.sqrt(np.diag(covariance))
for name, value, sigma, true in zip(NAMES, estimate, uncertainty, TRUTH):
    print(f"{name}: {value:.5g} +- {sigma:.2g}, truth {true:g}")

# %% [markdown]
# The posterior for a flat prior, on a grid of 31 x 31 replicas around the estimate.

# %%
width = np.linspace(-4.0, 4.0, 31)
grid = [value + sigma * width for value, sigma in zip(estimate, uncertainty)]
first, second = np.meshgrid(*grid, indexing="ij")
speeds = replicas(np.column_stack([first.ravel(), second.ravel()]))
misfit = 0.5 * ((speeds - record) ** 2).sum(axis=1) / NOISE**2
posterior = np.exp(misfit.min() - misfit).reshape(first.shape)
posterior /= posterior.sum()
mean = np.array([(posterior * first).sum(), (posterior * second).sum()])
spread = np.array(
    [np.sqrt((posterior * (p - m) ** 2).sum()) for p, m in zip((first, second), mean)]
)
print("posterior:", *(f"{m:.5g} +- {s:.2g}" for m, s in zip(mean, spread)))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
t = 0.001 * EVERY * np.arange(1, len(record) + 1)
left.plot(t, record, ".", markersize=3, label="record")
left.plot(t, replicas(estimate[None])[0], label="fit")
left.set(xlabel="time [s]", ylabel="speed of the load [rad/s]")
left.legend(frameon=False)
right.contourf(first, second, posterior, levels=12)
right.plot(*TRUTH, "r+", markersize=10, label="truth")
right.set(xlabel="inertia of the load [kg m$^2$]", ylabel="stiffness of the shaft [N m/rad]")
right.legend(frameon=False)
plt.show()

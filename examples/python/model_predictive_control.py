# %% [markdown]
"""
# Model-predictive control of a crane

Shows `clone`, `restore` and `rollout`: a trolley of 500 kg carries a load of 1000 kg on 6 m of rope and has to
move 5 m, with a drive of at most 2 kN and without sway. Every half second the controller looks 6 s ahead: it
tries plans on a clone of the crane, improves its plan and carries out the first piece. From 12 s to 13 s an
unforeseen wind pushes the load.

Run it from the root of the repository, as a script or cell by cell.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import portwave as pw

STEP = 0.02  # s
PIECE = 25  # steps over which a force is held
PIECES = 12  # of a plan
LIMIT = 2000.0  # N
TARGET = 5.0  # m
END = 24.0  # s


def crane() -> pw.Stepper:
    system = pw.System("crane", step_s=STEP)
    system.add(
        "crane", "cart_pendulum", cart_mass_kg=500, mass_kg=1000, length_m=6,
        cart_damping_Ns_per_m=50, damping_Nms_per_rad=200,
        inputs={"force": "settable", "torque": "settable"},
    )
    system.join("free", "crane.cart")
    return pw.Stepper(system)


SEEN = ["crane.position", "crane.angle", "crane.momentum", "crane.angular_momentum"]
# Weights of unit deviations in m, rad, kg m/s and kg m^2/s, relative to the limit of the force.
WEIGHTS = np.array([1.0, 8.0, 1.0 / 3000.0, 1.0 / 18000.0])
EFFORT = 0.05


def wind(time_s: float) -> float:
    """Torque about the trolley [N m]."""
    return 6000.0 if 12.0 <= time_s < 13.0 else 0.0


# %% [markdown]
# One `restore` and one `rollout` try out a plan. Its cost is the sum of squares of the residuals, whose
# derivatives with respect to the pieces of the plan are differences of roll-outs.


# %%
class Planner:
    def __init__(self, plant: pw.Stepper) -> None:
        self.model = plant.clone()
        self.forces = np.zeros(PIECES)  # in units of the limit
        self.roll_outs = 0

    def residuals(self, now: pw.Snapshot, forces: np.ndarray) -> np.ndarray:
        inputs = np.zeros((PIECES * PIECE, 2))
        inputs[:, 0] = LIMIT * np.repeat(forces, PIECE)
        self.model.restore(now)
        seen = self.model.rollout(inputs, SEEN)[PIECE - 1 :: PIECE]
        self.roll_outs += 1
        seen[:, 0] -= TARGET
        return np.concatenate([(WEIGHTS * seen).ravel(), EFFORT * forces])

    def plan(self, now: pw.Snapshot) -> float:
        """Force to apply [N], from one step of Gauss and Newton within the limits."""
        self.forces = np.append(self.forces[1:], self.forces[-1])
        r = self.residuals(now, self.forces)
        J = np.empty((len(r), PIECES))
        for i in range(PIECES):
            other = self.forces.copy()
            other[i] += 1e-3
            J[:, i] = (self.residuals(now, other) - r) / 1e-3
        self.forces = least_squares_in_a_box(J, J @ self.forces - r)
        return LIMIT * float(self.forces[0])


def least_squares_in_a_box(J: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Minimises |J x - b| over -1 <= x <= 1, coordinate by coordinate."""
    H, g = J.T @ J, J.T @ b
    x = np.clip(np.linalg.solve(H, g), -1.0, 1.0)
    for _ in range(200):
        for i in range(len(x)):
            x[i] = np.clip(x[i] + (g[i] - H[i] @ x) / H[i, i], -1.0, 1.0)
    return x


# %%
def run(force_at) -> np.ndarray:
    """Rows of the time, the seen quantities and the force; `force_at(plant)` is the next force [N]."""
    plant, rows = crane(), []
    while plant.time_s < END - STEP / 2:
        plant.set_inputs([force_at(plant), wind(plant.time_s)])
        for _ in range(PIECE):
            rows.append([plant.time_s, *(plant[name] for name in SEEN), plant["crane.force"]])
            plant.step()
    return np.array(rows)


planner = Planner(crane())
closed = run(lambda plant: planner.plan(plant.snapshot()))


def full_force(plant: pw.Stepper) -> float:
    """Force [N] that would be fastest without a rope: full ahead, then full back."""
    half = np.sqrt(TARGET * 1500.0 / LIMIT)
    return LIMIT if plant.time_s < half else -LIMIT if plant.time_s < 2.0 * half else 0.0


open_loop = run(full_force)

# %%
degrees = np.degrees


def sway(rows: np.ndarray, since_s: float, until_s: float) -> float:
    """Largest angle of the rope [deg]."""
    within = (rows[:, 0] >= since_s) & (rows[:, 0] < until_s)
    return float(degrees(np.abs(rows[within, 2]).max()))


sway_closed, sway_open = sway(closed, 10.0, 12.0), sway(open_loop, 10.0, 12.0)
sway_after_wind = sway(closed, 22.0, END)
off_target = float(np.abs(closed[-1, 1] - TARGET))
print(f"{planner.roll_outs} roll-outs of {PIECES * PIECE} steps")
print(f"sway before the wind: {sway_closed:.2f} deg, in open loop {sway_open:.2f} deg")
print(f"10 s after the wind: {sway_after_wind:.2f} deg, {1000 * off_target:.0f} mm off the target")

# %%
figure, axes = plt.subplots(3, 1, sharex=True, figsize=(7, 6), layout="constrained")
for rows, label in ((open_loop, "open loop"), (closed, "predictive")):
    axes[0].plot(rows[:, 0], rows[:, 1], label=label)
    axes[1].plot(rows[:, 0], degrees(rows[:, 2]))
    axes[2].plot(rows[:, 0], rows[:, 5] / 1000.0)
axes[0].set_ylabel("trolley [m]")
axes[1].set_ylabel("angle of the rope [deg]")
axes[2].set(xlabel="time [s]", ylabel="drive [kN]")
axes[0].legend(frameon=False)
plt.show()

# %% [markdown]
"""
# A plate in eight pieces

Shows `add_second_order`: a plate from the sparse matrices of SciPy, simply supported at its edge, which is struck in
the middle. It is cut into eight pieces that step in parallel, and keeps its names. Its first natural frequency, and
the same plate in one piece, say that the pieces are the plate.

Run it from the root of the repository, as a script or cell by cell. It needs SciPy.
"""

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sparse

import portwave as pw

SIDE = 50  # nodes along an edge, inside of it
STEP_S = 2e-4
LENGTH_M, THICKNESS_M = 1.0, 4e-3
DENSITY_KG_PER_M3, YOUNG_PA, POISSON = 7850.0, 2.1e11, 0.3

# %% [markdown]
# Kirchhoff's plate by differences: the bending stiffness times the square of Laplace's operator. With its edge simply
# supported the square of the matrix is the matrix of the square.

# %%
spacing = LENGTH_M / (SIDE + 1)
line = sparse.diags([2.0 * np.ones(SIDE), -np.ones(SIDE - 1), -np.ones(SIDE - 1)], [0, 1, -1]) / spacing**2
laplace = sparse.kron(line, sparse.eye(SIDE)) + sparse.kron(sparse.eye(SIDE), line)
bending = YOUNG_PA * THICKNESS_M**3 / (12.0 * (1.0 - POISSON**2))  # [N m]

n = SIDE * SIDE
K = (bending * spacing**2) * (laplace @ laplace)  # [N/m]
M = (DENSITY_KG_PER_M3 * THICKNESS_M * spacing**2) * sparse.eye(n)  # [kg]
D = 2.0 * M + 1e-7 * K  # [N s/m]
middle = (SIDE // 2) * SIDE + SIDE // 2
B = sparse.csc_matrix(([1.0], ([middle], [0])), shape=(n, 1))  # a force on the node in the middle


# %%
def plate(cut: "int | None") -> pw.System:
    system = pw.System("plate", step_s=STEP_S)
    return system.add_second_order(
        "plate", M, K, D, B, input_names=["hammer"], inputs={"hammer": "settable"}, cut=cut
    )


def struck(stepper: pw.Stepper, steps: int = 2500) -> np.ndarray:
    """The deflection of the middle [m] after a blow of 1 ms with 100 N."""
    watched = stepper.find(f"plate.q{middle + 1}")
    deflection = np.zeros(steps)
    for step in range(steps):
        stepper["plate.hammer"] = 100.0 if step < 5 else 0.0
        stepper.step()
        deflection[step] = stepper.read(watched)
    return deflection


# %%
begin = time.perf_counter()
pieces = pw.Stepper(plate(8), threads=2)
ready_s = time.perf_counter() - begin
deflection = struck(pieces)
whole = struck(pw.Stepper(plate(None)), 50)

spectrum = np.abs(np.fft.rfft(deflection - deflection.mean(), 16 * len(deflection)))
measured_Hz = np.fft.rfftfreq(16 * len(deflection), STEP_S)[spectrum.argmax()]
first_Hz = np.pi / LENGTH_M**2 * np.sqrt(bending / (DENSITY_KG_PER_M3 * THICKNESS_M))

print(f"{2 * n} states in eight pieces, ready after {ready_s:.2f} s")
print(f"first frequency {measured_Hz:.1f} Hz, of Kirchhoff's plate {first_Hz:.1f} Hz")
print(f"pieces and whole differ by {np.abs(deflection[:50] - whole).max() / np.abs(whole).max():.0e} of the deflection")
print("certificate:", pieces.certificate)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.plot(STEP_S * np.arange(1, len(deflection) + 1), 1e3 * deflection)
left.set(xlabel="time [s]", ylabel="deflection of the middle [mm]")
places = [pieces.find(f"plate.q{k + 1}") for k in range(n)]
shape = right.imshow(1e3 * pieces.read_all(places).reshape(SIDE, SIDE), extent=(0, LENGTH_M, 0, LENGTH_M))
right.set(xlabel="[m]", ylabel="[m]", title="at the end")
figure.colorbar(shape, ax=right, orientation="horizontal").set_label("deflection [mm]")
plt.show()

"""The examples run and give the results that they state."""

import ast
import pathlib
import runpy

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


@pytest.fixture(autouse=True)
def shows_nothing(monkeypatch):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


def outcome(name):
    import matplotlib.pyplot as plt

    own = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    axes = [axis for number in plt.get_fignums() for axis in plt.figure(number).axes]
    assert axes and all(axis.has_data() for axis in axes)
    assert all(axis.get_xlabel() or axis is not axes[-1] for axis in axes)
    return own


def test_all_of_them_are_tested_and_open_as_notebooks():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {
        "ensemble", "fit_parameter", "model_predictive_control", "own_controller", "own_part",
        "parameter_sweep", "plate",
    }
    for name in names:
        text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        assert text.startswith('# %% [markdown]\n"""\n# ') and text.count("\n# %%\n") >= 2
        assert "\n\nShows " in (ast.get_docstring(ast.parse(text)) or ""), name


def test_a_sweep_shows_more_overshoot_with_more_of_the_integral():
    table = outcome("parameter_sweep")["table"]
    assert table.shape == (4, 3)
    assert np.all(table[3] > table[1])
    assert np.all(np.abs(table[1]) < 0.02)
    assert table.max() > 0.05


def test_predictive_control_brings_the_load_there_without_sway():
    own = outcome("model_predictive_control")
    assert own["sway_closed"] < 1.0
    assert own["sway_open"] > 10.0  # the control: the same way without looking ahead
    assert own["sway_after_wind"] < 1.0
    assert own["off_target"] < 0.02
    forces = own["closed"][:, 5]
    assert np.abs(forces).max() <= own["LIMIT"]
    assert np.abs(forces).max() > 0.9 * own["LIMIT"]  # it has to use its limits
    pushed = own["closed"][(own["closed"][:, 0] > 12.5) & (own["closed"][:, 0] < 16.0), 2]
    assert np.abs(np.degrees(pushed)).max() > 1.0  # the wind was there


def test_an_own_part_keeps_and_loses_its_energy():
    own = outcome("own_part")
    assert own["drift"] < 1e-8
    assert own["drift_called"] < 1e-8
    assert own["apart"] < 1e-3
    ledger = own["ledger"]
    assert abs(own["gap"]) < 1e-12 * ledger["initial_J"]
    assert ledger["dissipated_J"] > 0.1 * ledger["initial_J"]
    # A bead on a wire whose mass did not depend on the place would swing faster.
    x = own["free"]["bead.x"]
    turns = np.flatnonzero(np.diff(np.sign(x)))
    period = 2.0 * 0.01 * np.diff(turns).mean()
    assert period > 1.05 * 2.0 * np.pi / np.sqrt(own["GRAVITY"] * own["CURVATURE"])


def test_an_own_controller_holds_against_a_pull_and_repeats():
    own = outcome("own_controller")
    assert own["off_before"] < 1e-4
    assert own["off_after"] < 1e-4
    assert own["slowest"] < 0.999
    assert own["repeats"]
    assert np.abs(own["result"]["law"]).max() <= own["LIMIT"]
    pulled = own["result"]["load.angle"][2000:2500]
    assert np.abs(pulled - own["TARGET"]).max() > 1e-3  # the pull was there


def test_a_fit_finds_the_truth_within_its_uncertainty():
    own = outcome("fit_parameter")
    off = np.abs(own["estimate"] - own["TRUTH"]) / own["uncertainty"]
    assert np.all(off < 3.0)
    assert np.all(own["uncertainty"] < 0.05 * own["TRUTH"])
    # The posterior on the grid is what the linearisation says.
    np.testing.assert_allclose(own["spread"], own["uncertainty"], rtol=0.1)
    assert np.all(np.abs(own["mean"] - own["estimate"]) < 0.3 * own["uncertainty"])
    # The control: the guess is many of its uncertainties away.
    assert np.all(np.abs(own["TRUTH"] * [1.5, 0.6] - own["TRUTH"]) > 10.0 * own["uncertainty"])


def test_an_ensemble_is_around_the_nominal_drive():
    own = outcome("ensemble")
    assert np.all(own["low"] <= own["high"])
    assert own["low"][-1] < own["nominal"][-1] < own["high"][-1]
    assert abs(own["middle"][-1] - own["nominal"][-1]) < 0.2 * own["end_spread"]
    assert own["drives"].failures == 0


def test_a_plate_in_pieces_is_the_plate():
    pytest.importorskip("scipy.sparse")
    own = outcome("plate")
    assert abs(own["measured_Hz"] / own["first_Hz"] - 1.0) < 0.02
    off = np.abs(own["deflection"][:50] - own["whole"]).max()
    assert np.abs(own["whole"]).max() > 1e-6 and off < 1e-6 * np.abs(own["whole"]).max()
    assert own["pieces"].certificate == "holds"

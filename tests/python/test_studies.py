"""Studies as tables."""

import numpy as np
import pytest

import portwave as pw

PAIR = "examples/published_douglas_rachford.json"
BUDGETS = [3, 8, 20]


def test_the_order_of_methods_is_two():
    table = pw.study.order("examples/msd_singlerate.json", [1 / 128, 1 / 512], repeat=1)
    assert isinstance(table, pw.study.Table)
    strang = table.where(method="strang")
    assert len(strang) == 2 and np.isnan(strang["order"][0])
    assert strang["order"][1] == pytest.approx(2.0, abs=0.1)
    assert strang["error"][1] < strang["error"][0]
    assert table.facts["states"] > 0 and "exponential" in table.facts["reference"]
    assert {"method", "baseline", "time"} <= set(table.facts["equal_error"][0])
    other = pw.study.order("examples/msd_singlerate.json", [1 / 512], methods=["auto"], repeat=1)
    assert "auto" in set(other["method"]) and "strang" not in set(other["method"])


def test_budgets_leave_less_error_the_larger_they_are():
    table = pw.study.budget(PAIR, BUDGETS)
    assert table["iterations"].tolist() == BUDGETS
    assert np.all(np.diff(table["rms"]) < 0.0)
    both = pw.study.budget(PAIR, [8], guard=[True, False], methods=["peaceman-rachford"])
    assert sorted(both["guard"].tolist()) == [False, True]
    # Settings reach the study.
    heavier = pw.study.budget(PAIR, BUDGETS, overrides={"/subsystems/1/parameters/mass_kg": 9.0})
    assert not np.array_equal(heavier["rms"], table["rms"])


def test_predictions_of_rates_hold_for_linear_systems():
    table = pw.study.rate("examples/chain_64.json", steps=3).where(failure="")
    assert len(table) > 0
    assert np.all((table["predicted"] >= 0.0) & (table["predicted"] <= 1.0))
    sure = np.isfinite(table["observed"]) & (table["not_converged"] == 0)
    assert sure.any()
    assert np.all(table["observed"][sure] <= table["predicted"][sure] + 0.1)


def test_tuning_names_its_choice():
    table = pw.study.tune(PAIR)
    assert {"uniform", "matched"} <= set(table["impedance"])
    assert table.facts["reason"] and len(table.facts["ports"]) == 2
    assert {own["part"] for own in table.facts["parts"]} == {"A", "B"}
    assert pw.study.tune(PAIR, impedances="matched").facts["impedance"] == "matched"


def test_accuracy_is_measured_with_finer_steps():
    coarse, fine = (
        pw.study.accuracy(PAIR, overrides={"/method": {"kind": "auto"}, "/time": {"step_s": h, "end_s": 2}})
        for h in (0.02, 0.01)
    )
    assert coarse["step_s"] == 0.01 and coarse["whole"] and coarse["instants"] == 100
    assert fine["share"] < 0.4 * coarse["share"] < 0.1
    assert not fine["far"] and fine["failure"] is None
    assert pw.study.accuracy(PAIR, whole=True, overrides={"/time": {"step_s": 0.1, "end_s": 10}})["far"]
    chosen = {"step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": 2}
    found = pw.study.accuracy(PAIR, overrides={"/method": {"kind": "auto"}, "/time": chosen})
    assert found["tolerance"] == pytest.approx(1e-6) and found["whole"] and found["share"] < 1e-3


def test_tolerances_bound_steps():
    table = pw.study.tolerance(
        PAIR, [1e-3, 1e-5], overrides={"/method": {"kind": "auto"}, "/time": {"step_s": 0.01, "end_s": 2}},
    )
    assert table["tolerance"].tolist() == [1e-3, 1e-5]
    assert table["error"][1] < table["error"][0]
    assert table["steps"][1] > table["steps"][0]


def test_tolerances_bound_steps_without_waves():
    for order in (4, 6):
        method = {"/method": {"kind": "kick-drift", "order": order}}
        table = pw.study.tolerance(PAIR, [1e-4, 1e-7], overrides=method)
        assert table["stages"].tolist() == [0, 0]
        assert table.facts["method"] == f"kick-drift, order {order}"
        assert (table["error"] < 20 * table["tolerance"]).all()
        assert (table["error"] > 1e-3 * table["tolerance"]).all()
        assert table["steps"][1] > table["steps"][0]
        with pytest.raises(pw.ConfigError, match="/stages"):
            pw.study.tolerance(PAIR, [1e-4], stages=[2], overrides=method)


def test_iterations_of_jacobi_grow_before_they_fall():
    table = pw.study.iterations("examples/jacobi_failure.json", 12)
    assert table.facts["method"] == "jacobi"
    assert table["iteration"].tolist() == list(range(13))
    assert table["x_error"].max() > 1e3 * table["x_error"][0]


def test_scaling_has_a_row_for_each_number_of_threads():
    table = pw.study.scaling(
        "examples/msd_chains.json", [1, 2], executors=["auto"], repetitions=1, steps=2, cores=1
    )
    assert table["threads"].tolist() == [1, 2]
    assert table["predicted"].tolist() == [False, True]
    assert np.all(table["step_s"] > 0.0)


def ring(cells):
    network = pw.System(f"ring of {cells}", step_s=0.01)
    for i in range(cells):
        network.add(f"m{i}", pw.mass(mass_kg=1.0 + i, ports=2))
        network.add(f"s{i}", pw.spring_damper(stiffness_N_per_m=100, damping_Ns_per_m=0.1))
    for i in range(cells):
        network.connect(f"m{i}.port_1", f"s{i}.left")
        network.connect(f"m{(i + 1) % cells}.port_2", f"s{i}.right")
    return network


def test_scaling_of_several_sizes_is_one_table_and_one_figure(tmp_path):
    sizes = [ring(cells) for cells in (4, 8)]
    figure = tmp_path / "scaling.svg"
    table = pw.study.scaling(sizes, [1, 2], repetitions=1, steps=2, cores=1, figure=figure)
    assert table["size"].tolist() == [8, 8, 16, 16]
    assert table["threads"].tolist() == [1, 2, 1, 2]
    # Sixteen parts on two threads beside eight on one.
    assert np.isfinite(table["weak_efficiency"]).tolist() == [True, False, True, True]
    assert len(table.plot().get_lines()) == 2
    assert figure.read_text().count("speed-up") == 1
    assert pw.study.scaling(sizes[0], [1], repetitions=1, steps=2).names == table.names
    with pytest.raises(ValueError, match=r"must end with \.pdf or \.svg, not as 'a.png'"):
        pw.study.scaling(sizes, [1], figure="a.png")
    with pytest.raises(ValueError, match="no system is given"):
        pw.study.scaling([], [1])
    with pytest.raises(TypeError, match="`threads` must be a list, got 2"):
        pw.study.scaling(sizes, 2)
    with pytest.raises(TypeError, match="`executors` must be a list, got 'async'"):
        pw.study.scaling(sizes, [1], executors="async")


def test_tables_become_frames_and_plots():
    table = pw.study.budget(PAIR, BUDGETS)
    frame = table.to_dataframe()
    assert list(frame.columns) == table.names and len(frame) == len(BUDGETS)
    assert table.to_dataframe()["rms"].tolist() == table["rms"].tolist()
    axes = table.plot()
    assert axes.get_yscale() == "log" and axes.get_xlabel() == "iterations"
    assert axes.get_lines()[0].get_ydata().tolist() == table["rms"].tolist()
    assert len(table.plot(["rms", "max"]).get_lines()) == 2
    assert pw.study.order("examples/msd_singlerate.json", [1 / 128], repeat=1).plot().get_xlabel() == "step [s]"
    with pytest.raises(KeyError, match="rms"):
        table["rsm"]
    assert "3 rows" in repr(table)


def test_what_a_study_cannot_do_is_told():
    with pytest.raises(pw.ConfigError) as caught:
        pw.study.order("examples/msd_singlerate.json", [0.3])
    assert caught.value.issues
    with pytest.raises(ValueError, match="no method is named.*strang"):
        pw.study.order("examples/msd_singlerate.json", [1 / 128], methods=["strange"])
    with pytest.raises(ValueError, match="no rule of impedances is named.*matched"):
        pw.study.tune(PAIR, impedances="mached")
    failed = pw.study.budget(PAIR, [8], methods=["jacobi"])
    assert failed.failures == [row["failure"] for row in failed if row["failure"]]

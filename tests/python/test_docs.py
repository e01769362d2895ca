"""What the pages show in Python runs, block after block."""

import importlib.util
import pathlib
import re
import warnings

import numpy as np
import pytest

import portwave as pw

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.S | re.M)


def blocks(page):
    """The blocks of a page that can run here: without Numba, those without it."""
    own = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [block for block in own if importlib.util.find_spec("numba") or "from numba import" not in block]


PAGES = [
    "README.md",
    "docs/reference/python.md",
    "docs/concepts/ensembles.md",
    "docs/concepts/events.md",
    "docs/guides/robots.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_a_page_run_in_their_order(page):
    own = blocks(page)
    assert own
    names = {}
    with warnings.catch_warnings():  # no shafts that turn against each other
        warnings.simplefilter("error", pw.ScenarioWarning)
        for i, block in enumerate(own):
            exec(compile(block, f"{page}, block {i + 1}", "exec"), names)
    if "system" in names:
        pw.Stepper(names["system"])


def test_the_system_that_the_page_builds_turns_together():
    names = {}
    exec(next(block for block in blocks("docs/reference/python.md") if "pw.System(" in block), {"pw": pw}, names)
    stepper = pw.Stepper(names["system"])
    stepper["supply.effort"] = 5.0
    stepper.step(500)
    assert stepper["load.speed"] == pytest.approx(stepper["motor.speed"], rel=1e-9)
    assert stepper["load.speed"] > 0.0


def test_the_page_of_the_package_shows_what_it_says():
    names = {}
    for block in blocks("docs/reference/python.md"):
        exec(block, names)
    assert names["x"].shape[:2] == (3, 100)
    assert names["samples"].shape[:2] == (3, 40)
    assert names["u"].max() > names["u"].min()
    true = pw.Stepper("examples/embedding/servo.json")
    true.set_parameter("load.inertia_kgm2", 0.17)
    data = true.differentiate([[24.0]] * 100).states
    assert names["fit"](0.2, [[24.0]] * 100, data) == pytest.approx(0.17, rel=1e-8)
    assert names["table"]["rms"][-1] < names["table"]["rms"][0]
    assert names["result"].to_dataframe().index[-1] == pytest.approx(10.0)


def test_the_top_of_the_page_spins_and_compiled_and_plain_pendulum_are_the_same():
    names = {}
    for block in blocks("docs/reference/python.md"):
        exec(block, names)
    types = pw.part_types()
    top = pw.System(step_s=0.01).add("top", "my_top", initial_state={"L1": 1.0, "L2": 0.1, "L3": 2.0})
    spinning = pw.Stepper(top.join("free", "top.torque"))
    spinning.step(200)
    assert np.linalg.norm(spinning.state("top")) == pytest.approx(np.sqrt(5.01), rel=1e-13)
    assert abs(spinning["top.L1"] - 1.0) > 0.1
    if "my_compiled_pendulum" not in types:
        pytest.skip("Numba is not installed: its block was left out")
    ends = []
    for name in ("my_pendulum", "my_compiled_pendulum"):
        system = pw.System(step_s=0.01).add("p", name, initial_state={"angle": 1.0})
        stepper = pw.Stepper(system.join("free", "p.pivot"))
        stepper.step(100)
        ends.append(stepper["p.angle"])
    assert ends[0] == pytest.approx(ends[1], rel=1e-11)


def test_every_example_that_is_linked_is_there():
    text = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    linked = {ROOT / "docs/reference" / name for name in re.findall(r"\]\((\.\./[^)#]+)", text)}
    assert len(linked) > 6
    assert all(path.exists() for path in linked)

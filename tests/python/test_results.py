"""Results as HDF5, opened as users do."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
ROOT = Path(__file__).resolve().parents[2]


def run(program, scenario, out, *settings):
    command = [program, "run", str(scenario), "--quiet", "--out", str(out)]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def program():
    path = ROOT / "build/dev/bin/portwave"
    if not path.exists():
        pytest.skip("the program is not built")
    return str(path)


def csv_of(path):
    return np.genfromtxt(path, delimiter=",", names=True, deletechars="", replace_space=" ")


def test_hdf5_holds_what_the_texts_hold(program, tmp_path):
    scenario = ROOT / "examples/published_douglas_rachford.json"
    text = run(program, scenario, tmp_path / "csv", "/outputs/energies=true")
    binary = run(program, scenario, tmp_path / "h5", "/outputs/energies=true", "/outputs/format=hdf5")
    if "built without HDF5" in binary.stderr:
        pytest.skip("built without HDF5")
    assert text.returncode == binary.returncode == 0, binary.stderr
    with h5py.File(tmp_path / "h5/results.h5") as file:
        assert file.attrs["title"] == "published_douglas_rachford"
        for table in ["trajectory", "energy", "energy_parts", "energy_junctions"]:
            expected = csv_of(tmp_path / f"csv/{table}.csv")
            assert set(file[table]) == set(expected.dtype.names)
            for name in expected.dtype.names:
                assert np.array_equal(file[table][name][:], expected[name]), (table, name)
        assert file["trajectory/A.q1"].attrs["units"] == "m"
        assert file["energy/step"].dtype == np.int64


def test_xarray_finds_the_dimensions(program, tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    done = run(program, ROOT / "examples/published_douglas_rachford.json", tmp_path, "/outputs/format=hdf5")
    if "built without HDF5" in done.stderr:
        pytest.skip("built without HDF5")
    with xarray.open_dataset(tmp_path / "results.h5", group="trajectory", engine="h5netcdf") as data:
        assert dict(data.sizes) == {"time_s": 1001}
        assert set(data.data_vars) == {"A.q1", "B.q2"}
        assert data["A.q1"].dims == ("time_s",)
        assert data["A.q1"].sel(time_s=0.0).item() == 0.4
        assert data.time_s.attrs["units"] == "s"


def test_many_quantities_are_one_matrix(program, tmp_path):
    blocks = 600
    scenario = {
        "name": "wide",
        "time": {"step_s": 0.01, "steps": 5},
        "subsystems": [
            {"name": f"b/{i}", "type": "linear_oscillator", "initial_state": {"q2": 1 + i},
             "parameters": {"mass_kg": 1, "stiffness_N_per_m": 1, "damping_Ns_per_m": 0}}
            for i in range(blocks)],
        "couplings": [{"kind": "free", "ports": [f"b/{i}.coupling"]} for i in range(blocks)],
        "method": {"kind": "auto"},
        "outputs": {"format": "hdf5"},
    }
    (tmp_path / "wide.json").write_text(json.dumps(scenario))
    done = run(program, tmp_path / "wide.json", tmp_path / "out")
    if "built without HDF5" in done.stderr:
        pytest.skip("built without HDF5")
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "out/results.h5") as file:
        group = file["trajectory"]
        assert set(group) == {"time_s", "quantity", "units", "values"}
        labels = [label.decode() for label in group["quantity"][:]]
        assert group["values"].shape == (6, len(labels)) and len(labels) > 1000
        assert group["values"][0, labels.index("b/17.q2")] == 18.0
        assert group["values"].dims[0].keys() == ["time_s"]

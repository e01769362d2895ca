import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch):
    """Examples are named from the root of the repository."""
    monkeypatch.chdir(ROOT)
    os.environ.setdefault("MPLBACKEND", "Agg")

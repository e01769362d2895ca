"""The plugins that the build makes for tests."""

import os
import pathlib

import pytest

import portwave as pw


def built_plugin(stem):
    """A plugin of tests/fixtures/plugins, or of the example, that was built beside the package."""
    beside = pathlib.Path(pw.__file__).resolve().parents[2] / "tests" / "plugins"
    folder = pathlib.Path(os.environ.get("PORTWAVE_TEST_PLUGINS", beside))
    file = folder / f"{stem}.so"
    if not file.exists():
        pytest.skip(f"{file} is not built: PORTWAVE_TEST_PLUGINS names the folder of the tests' plugins")
    return file

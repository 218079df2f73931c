"""The pages are run as tests; one of them on real data, as its marker says."""

import os
from pathlib import Path

import pytest

collect_ignore = ["hooks.py", "notebooks.py", "folding.py"]  # run by mkdocs, tested by tests/test_site.py


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the page that needs Adult."""
    for item in items:
        if item.name == "when-the-formula-does-not-help.md":
            item.add_marker(pytest.mark.data)


@pytest.fixture(autouse=True)
def own_folder(tmp_path):
    """A page writes its files to a folder of its own; SETMINUS_PICTURES=docs renews the pictures that it saves."""
    folder = Path.cwd()
    for name in ("results", "examples"):  # what pages read
        (tmp_path / name).symlink_to(Path(__file__).parents[1] / name)
    os.chdir(os.environ.get("SETMINUS_PICTURES", tmp_path))
    yield
    os.chdir(folder)

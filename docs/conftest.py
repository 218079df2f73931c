"""The pages are run as tests; one of them on real data, as its marker says."""

import os
from pathlib import Path

import pytest

collect_ignore = ["hooks.py"]  # run by mkdocs, tested by tests/test_site.py


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the page that needs Adult."""
    for item in items:
        if item.name == "when-the-formula-does-not-help.md":
            item.add_marker(pytest.mark.data)


@pytest.fixture(autouse=True)
def same_folder():
    """A page may change the working folder; the next one starts where it did."""
    folder = Path.cwd()
    yield
    os.chdir(folder)

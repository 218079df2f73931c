"""The pages are run as tests; one of them on real data, as its marker says."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

NAV = yaml.safe_load((Path(__file__).parents[1] / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
TUTORIALS = {Path(path).name for part in NAV for page in part.get("Tutorials", ()) for path in page.values()}
collect_ignore = ["hooks.py", "notebooks.py", "folding.py"]  # run by mkdocs, tested by tests/test_site.py


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the page that needs Adult, and leave tutorials to their notebooks, whose tests compare the same results."""
    notebooks = find_spec("nbclient") and find_spec("ipykernel") and "SETMINUS_PICTURES" not in os.environ
    for item in items:
        if item.name == "when-the-formula-does-not-help.md":
            item.add_marker(pytest.mark.data)
        if notebooks and item.name in TUTORIALS and isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.skip(reason="run as a notebook by tests/test_notebooks.py"))


@pytest.fixture(autouse=True)
def own_folder(tmp_path):
    """A page writes its files to a folder of its own; SETMINUS_PICTURES=docs renews the pictures that it saves."""
    folder = Path.cwd()
    for name in ("results", "examples"):  # what pages read
        (tmp_path / name).symlink_to(Path(__file__).parents[1] / name)
    os.chdir(os.environ.get("SETMINUS_PICTURES", tmp_path))
    yield
    os.chdir(folder)

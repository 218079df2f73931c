"""What holds for the package as a whole: cheap to import, documented, and free of any one machine's traces."""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import setminus

ROOT = Path(__file__).parents[1]


def imported_by(statement):
    """Top-level packages that a fresh interpreter has loaded after a statement."""
    code = f"import sys; before = {{*sys.modules}}; {statement}; print(*({{*sys.modules}} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_the_package_loads_the_standard_library_only():
    assert imported_by("import setminus") - sys.stdlib_module_names == {"setminus"}
    # the negative control: the check sees what a public name brings with it
    assert "numpy" in imported_by("import setminus; setminus.orthogonalize")


def test_a_model_of_scikit_learn_is_written_and_read_without_torch(tmp_path):
    fitted = "setminus.GroupPrincipal().fit(None, [0, 1], sensitive_features=['f', 'm'])"
    path = tmp_path / "model.skops"
    loaded = imported_by(f"import setminus; setminus.load(setminus.save({fitted}, {str(path)!r}))")
    assert "skops" in loaded and not loaded & {"torch", "dask"}


def test_the_page_is_built_without_torch_or_scikit_learn():
    assert not imported_by("import setminus.report.page") & {"torch", "sklearn"}


@pytest.mark.parametrize("name", setminus.__all__)
def test_every_public_name_exists_and_is_documented(name):
    assert inspect.getdoc(getattr(setminus, name))
    assert getattr(setminus, name).__name__ == name


def test_public_names_are_listed_once_and_in_order():
    assert sorted(set(setminus.__all__)) == setminus.__all__ == sorted(setminus._HOMES)
    assert {*setminus.__all__} <= {*dir(setminus)}
    with pytest.raises(AttributeError, match="no attribute 'orthogonalise'"):
        _ = setminus.orthogonalise


def test_the_documents_list_every_public_name():
    listed = (ROOT / "docs" / "public-names.md").read_text()
    assert [name for name in setminus.__all__ if not re.search(rf"`{name}\b", listed)] == []


def test_the_readme_is_short_enough_to_be_read():
    assert len((ROOT / "README.md").read_text().split()) <= 900


def test_there_is_one_version():
    """The library's own; packages that cannot read it there say the same."""
    project, paper = (tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"] for name in (".", "paper"))
    assert "version" in project["dynamic"] and paper["version"] == setminus.__version__
    assert f"version: {setminus.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == setminus.__version__


def own_files():
    """Text files of the project, tracked or about to be; in a source archive, where there is no git, all of them."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    names = listed.stdout.splitlines() if listed.returncode == 0 else []
    paths = [ROOT / name for name in names] or [*ROOT.glob("*.*"), *(ROOT / "src").rglob("*.py")]
    return [path for path in paths if path.is_file() and path.suffix not in {".png", ".npz"} and path != Path(__file__)]


MACHINE = re.compile(r"(?<![\w.])/(?:home|root|work|Users|mnt|opt)/\w|[A-Z]:\\\\Users|(?:pypi|pythonhosted)\.org")


def test_no_file_speaks_of_one_machine_or_registry():
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in own_files()
        for match in MACHINE.finditer(path.read_text(errors="replace"))
    ]
    assert found == []
    assert len(own_files()) > 20


@pytest.mark.parametrize("trace", [f"/{'home'}/ada/data", f"file:///{'work'}/main", f"https://{'pypi'}.org/simple"])
def test_such_traces_would_be_found(trace):
    assert MACHINE.search(f"see {trace} there")

"""What `pip install setminus` brings: the library alone, whose commands work without the rest of this repository."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import setminus
from tests.golden.inputs import write_inputs

ROOT = Path(__file__).parents[1]
# one process for all: torch and scikit-learn take longer to load than the commands to run
RUN = """
import contextlib, io, json, sys

sys.path += sys.argv[1:3]
import setminus.commands

done = {}
for line in json.loads(sys.argv[3]):
    sys.argv = ["setminus", *line]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            setminus.commands.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    done[" ".join(line)] = [code, out.getvalue(), err.getvalue()]
ours = {name: module.__file__ for name, module in sys.modules.items() if name.split(".")[0].startswith("setminus")}
print(json.dumps([done, ours]))
"""


def build(folder):
    """Both packages as for a release: an sdist and a wheel of each."""
    pytest.importorskip("hatchling", reason="packages are built with the dependency group release")
    for package in ROOT, ROOT / "paper":
        command = [sys.executable, "-m", "hatchling", "build", "-d", folder, "-t", "sdist", "-t", "wheel"]
        subprocess.run(command, check=True, capture_output=True, cwd=package)
    return {file.name: file for file in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def wheel(packages, tmp_path_factory):
    """The library's wheel, unpacked."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(packages[f"setminus-{setminus.__version__}-py3-none-any.whl"]) as archive:
        archive.extractall(unpacked)
    return unpacked


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory):
    """What is installed, without this project: neither its packages nor what they register."""
    folder = tmp_path_factory.mktemp("dependencies")
    for place in map(Path, sys.path):
        if place.name == "site-packages":
            for entry in place.iterdir():
                if "setminus" not in entry.name and not (folder / entry.name).exists():
                    (folder / entry.name).symlink_to(entry)
    return folder


def run(wheel, dependencies, folder, *lines):
    """Run commands in a fresh process that has nothing but the wheel and the dependencies."""
    command = [sys.executable, "-I", "-S", "-c", RUN, wheel, dependencies, json.dumps([line.split() for line in lines])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    found, ours = json.loads(done.stdout.splitlines()[-1])
    assert all(Path(file).is_relative_to(wheel) for file in ours.values()), ours
    return found


def test_packages_are_the_same_bytes_when_built_again(packages, tmp_path):
    again = build(tmp_path)
    assert len(packages) == 4
    assert {name: file.read_bytes() for name, file in again.items()} == {
        name: file.read_bytes() for name, file in packages.items()
    }


def test_packages_are_accepted_by_an_index(packages, tmp_path):
    check = pytest.importorskip("twine.commands.check")
    assert not check.check([str(file) for file in packages.values()], strict=True)
    with zipfile.ZipFile(tmp_path / "empty-1.0-py3-none-any.whl", "w") as broken:
        broken.writestr("empty/__init__.py", "")
    with pytest.raises(Exception, match="METADATA"):
        check.check([broken.filename], strict=True)


def test_the_reproduction_has_its_own_packages_with_its_templates(packages):
    with zipfile.ZipFile(packages[f"setminus_paper-{setminus.__version__}-py3-none-any.whl"]) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "setminus_paper",
        f"setminus_paper-{setminus.__version__}.dist-info",
    }
    assert any(name.endswith((".j2", ".md")) for name in names)
    with tarfile.open(packages[f"setminus-{setminus.__version__}.tar.gz"]) as archive:
        parts = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"src", "tests", "LICENSE", "README.md", "pyproject.toml"} <= parts
    assert not parts & {"results", "docs", "benchmarks", "site", ".venv"}


def test_the_wheel_holds_the_library_and_nothing_of_the_reproduction(wheel):
    assert {path.name for path in wheel.iterdir()} == {"setminus", next(wheel.glob("setminus-*.dist-info")).name}
    assert (wheel / "setminus" / "commands" / "fit.py").is_file()
    assert list((wheel / "setminus" / "report").rglob("*.j2"))
    texts = [path.read_text() for path in wheel.rglob("*.py")]
    assert not any("import setminus_paper" in text or "from setminus_paper" in text for text in texts)


def test_every_command_but_one_works_from_the_wheel_alone(wheel, dependencies, tmp_path):
    pytest.importorskip("torch")
    write_inputs(tmp_path)
    tiny = "--size 16 --width 4 --batch-size 8 --steps 2 --every 1 --quiet"
    lines = [
        "--help",
        "fit people.csv --label income --ignore sex --full logistic --out fit/model.skops --quiet",
        "info fit/model.skops",
        "apply fit/model.skops people.csv --out scored.csv --quiet",
        "audit scored.csv --label income --ignore sex --quiet",
        "report fit",
        "adapt old.csv new.csv --label outcome --steps 2 --out adapted/model.skops --quiet",
        f"transfer fit pictures/A pictures/B --labels pictures/labels.csv --change ink --out styles {tiny}",
        "transfer apply styles pictures/A --out translated --quiet",
        "data list",
        "demo --help",
    ]
    done = run(wheel, dependencies, tmp_path, *lines)
    assert {line: (code, err) for line, (code, _, err) in done.items() if code} == {}
    assert (tmp_path / "styles" / "report.html").is_file() and (tmp_path / "adapted" / "model.report.html").is_file()


def test_the_wheel_works_where_pip_installed_it(packages, dependencies, tmp_path):
    """As `make dist` does, with the dependencies that are here instead of fetched ones."""
    venv.create(tmp_path, with_pip=False)
    python = tmp_path / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*install, packages[f"setminus-{setminus.__version__}-py3-none-any.whl"]], check=True)
    where = [python, "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    place = subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip()
    Path(place, "dependencies.pth").write_text(str(dependencies))
    smoke = shutil.copy(ROOT / "tests" / "release_smoke.py", tmp_path)
    done = subprocess.run([python, "-I", smoke], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "works from its wheel" in done.stdout, done.stderr


def test_reproduce_says_in_two_lines_how_to_install_it(wheel, dependencies, tmp_path):
    wanted = {"reproduce table3 --seeds 2": "setminus-paper", "demo --parts theory": "fairness"}
    for line, (code, out, err) in run(wheel, dependencies, tmp_path, *wanted).items():
        assert (code, out, len(err.splitlines())) == (2, "", 2), err
        assert wanted[line] in err

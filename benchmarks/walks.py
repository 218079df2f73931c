"""Count the files of ours that a job crosses: ``python -m benchmarks.walks [fit] [transfer] [table3]``.

A file is a Python module of the library or of the reproduction. It counts where the body of at least one of its
functions runs. What runs while a module is imported does not count, nor do the methods that `dataclass` writes. Each
walk is one command in this process, with the page that it writes; files are listed in the order in which they are first
entered. A walk is named by its command alone, so that modules may move.

The walk of table 3 trains few steps on real digits: they come from the folder ``SETMINUS_DATA``, or are fetched.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from types import FrameType
from typing import Any

from tests.golden.commands import TRANSFER, setminus
from tests.golden.inputs import write_inputs

ROOT = Path(__file__).parents[1]
OURS = (str(ROOT / "src"), str(ROOT / "paper"))
NO_FUNCTIONS = {"<module>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}
BEFORE = {"fit": 64, "transfer": 53, "table3": 55}
"""As first counted by this script, with 296 files in src/setminus."""


def main(wanted: list[str]) -> None:
    """Print the number of files and their list for each walk."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_inputs(home)
        for name in wanted or BEFORE:
            files = walked(WALKS[name], home)
            print(f"{name}: {len(files)} files (at first {BEFORE[name]})")
            print(*(f"  {file}" for file in files), sep="\n")


def fit(home: Path) -> None:
    """``setminus fit`` on a small CSV."""
    setminus("fit", home / "people.csv", "--label", "income", "--ignore", "sex", "--out", home / "fit" / "model.skops")


def transfer(home: Path) -> None:
    """``setminus transfer fit`` on tiny pictures."""
    folders = [home / "pictures" / one for one in ("A", "B")]
    labels = ["--labels", home / "pictures" / "labels.csv"]
    setminus("transfer", "fit", *folders, *labels, *TRANSFER, "--out", home / "transfer")


def table3(home: Path) -> None:
    """``setminus reproduce table3``, from the config to the page."""
    chosen = ["--pairs", "mnist-usps", "--methods", "vada,vada_orthogonal_em", "--seeds", 1]
    with few_steps():
        setminus("reproduce", "table3", *chosen, "--jobs", 1, "--out", home / "table3")


WALKS: dict[str, Callable[[Path], None]] = {"fit": fit, "transfer": transfer, "table3": table3}


def walked(walk: Callable[[Path], None], home: Path) -> list[str]:
    """The files that a walk crosses, in the order of first entry."""
    found: dict[str, None] = {}

    def enter(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_filename in found or not ours(code.co_filename):
            return
        # the body of a class is no function either
        if code.co_flags & inspect.CO_OPTIMIZED and code.co_name not in NO_FUNCTIONS and not _importing(frame):
            found[code.co_filename] = None

    def traced(home: Path) -> None:
        threading.setprofile(enter)
        sys.setprofile(enter)
        try:
            walk(home)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    traced(home)
    return [str(Path(file).relative_to(ROOT)) for file in found]


def ours(file: str) -> bool:
    """Whether a file is a module of the library or of the reproduction."""
    return file.startswith(OURS) and file.endswith(".py")


def _importing(frame: FrameType | None) -> bool:
    """Whether a function runs on behalf of a module that is being imported, up to the start of the walk."""
    while frame is not None and frame.f_code.co_name != "traced":
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


@contextmanager
def few_steps() -> Iterator[None]:
    """Make the quick size of table 3 tiny, in whichever module it stands."""
    packages = [name for name in ("setminus", "setminus_paper") if find_spec(name)]
    roots = [(name, import_module(name).__path__) for name in packages]
    names = [one.name for name, path in roots for one in walk_packages(path, f"{name}.")]
    modules = [import_module(name) for name in names if "adaptation" in name or "table3" in name]
    values = [value.get("quick") for module in modules for value in vars(module).values() if isinstance(value, dict)]
    sizes = {id(one): one for one in values if hasattr(one, "most_rows") and hasattr(one, "warmup")}
    if len(sizes) != 1:
        raise SystemExit(f"{len(sizes)} quick sizes of table 3 were found instead of one: correct benchmarks/walks.py.")
    (size,) = sizes.values()
    tiny = {"steps": 4, "warmup": 2, "estimate_every": 1, "evaluations": 2, "most_rows": 400, "width": 4}
    before = {name: getattr(size, name) for name in tiny}
    try:
        for name, value in tiny.items():
            object.__setattr__(size, name, value)
        yield
    finally:
        for name, value in before.items():
            object.__setattr__(size, name, value)


if __name__ == "__main__":
    main(sys.argv[1:])

import fcntl
import logging
import os
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import sklearn


@pytest.fixture(autouse=True)
def scikit_learn_settings():
    """The settings of scikit-learn are the same before and after each test: importing skada changes them."""
    with sklearn.config_context():
        yield


class Rows:
    """A table where the group says something of y and the rest something else, independent given y."""

    def __init__(self, n=3000, n_classes=2, seed=0):
        rng = np.random.default_rng(seed)
        self.y = rng.choice(n_classes, size=n, p=np.linspace(1, 2, n_classes) / np.linspace(1, 2, n_classes).sum())
        self.male = rng.random(n) < 0.15 + 0.7 * self.y / (n_classes - 1)
        self.sex = np.where(self.male, "m", "f")
        self.X = np.column_stack([self.y + rng.normal(size=n), self.male, rng.normal(size=n)])


@pytest.fixture(scope="session")
def rows():
    return Rows()


@pytest.fixture(scope="session")
def many():
    return Rows(n_classes=3, seed=1)


TOY_EXPERIMENT = '''
import os, signal, time
from functools import partial
from pathlib import Path

from setminus.progress import tracked
from setminus_paper.run import Run

CLAIM = "A seed and <b>a half</b> is more than the seed."
DEFAULT_SEEDS = 2
METHODS = ("halves", "wholes")


def plan(scale, seeds, methods):
    return [Run("toy", {"scale": scale, "method": one}, seeds, partial(measure, method=one)) for one in methods]


def measure(seeds, *, method="halves", seconds=0.0):
    for seed in seeds:
        with tracked(f"seed {seed}"):
            time.sleep(seconds)
        yield {"value": seed + (0.5 if method == "halves" else 1), "process": os.getpid()}


def threads(seeds):
    import numpy
    from threadpoolctl import threadpool_info

    return [{"threads": [pool["num_threads"] for pool in threadpool_info()]} for seed in seeds]


def dies_at(seeds, *, seed, alive):
    """As `measure`, but the process is killed at one seed as long as a file is not there."""
    for one in seeds:
        if one == seed and not Path(alive).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        yield {"value": one}


def raises(seeds):
    yield {"value": 0}
    raise ZeroDivisionError("no half of nothing")


from setminus.charts.chart import Area, Bars, Chart, Line, Points, Rule, Surface


def charts(records):
    seeds, values = [r["seed"] for r in records], [r["metrics"]["value"] for r in records]
    low, high = [v - 0.1 for v in values], [v + 0.1 for v in values]
    many = [i / 10 for i in range(1, 31)]
    some = [Line(seeds, values, "measured <i>", low, high), Points(seeds, values, "each"), Rule(0.5, "truth $x")]
    return [
        Chart("Values <b>by</b> seed", "seed", "value {y}", some, "Larger than the seed & so on."),
        Chart("Around", "n", "error", [
            Line(many, many, "measured <i>", [m / 2 for m in many], [2 * m for m in many], markers=False),
            Area(many, [m / 4 for m in many], [4 * m for m in many], "allowed"),
            Rule(1.0, "one", axis="x"),
        ], x_scale="log", y_scale="log"),
        Chart("Shares", "kind", "share", [
            Bars(["a", "b"], [0.25, None], "ours", [0.2, None], [0.3, None]), Bars(["a", "b"], [0.5, 0.5], "theirs"),
        ]),
        Chart("Histogram", "score", "share", [Bars([0.25, 0.75], [0.5, 0.5], "rows")]),
        Chart("Plane", "z1", "z2", [
            Surface([-1, 0, 1], [-2, 0, 2], [[0.0, 0.25, 0.5], [0.25, 0.5, 0.75], [0.5, 0.75, 1.0]], "probability"),
            Points([-0.5, 0.5], [0.0, 1.0], "rows"),
        ], square=True),
    ]


def summary(records):
    return [("mean <b>value</b>", "more than 0", str(sum(r["metrics"]["value"] for r in records) / len(records)))]
'''


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """A small experiment called toy, with charts of every kind; gives its module."""
    from setminus_paper.reproduce import EXPERIMENTS

    folder = tmp_path_factory.mktemp("experiment")
    (folder / "toy_experiment.py").write_text(TOY_EXPERIMENT)
    with pytest.MonkeyPatch.context() as patch:
        # other processes get this path, too
        patch.syspath_prepend(folder)
        patch.setitem(EXPERIMENTS, "toy", "toy_experiment")
        yield import_module("toy_experiment")


@pytest.fixture(scope="session")
def toy_records(toy, tmp_path_factory):
    """What `setminus reproduce toy` records."""
    from setminus_paper.reproduce import run_experiment

    return run_experiment("toy", tmp_path_factory.mktemp("runs") / "records.jsonl")


@pytest.fixture(autouse=True)
def same_draws():
    """Start torch's generator anew for each test, so that a network drawn in one is the same in every run."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """Make a file or folder by calling ``make(path)`` in one of all workers; the others wait for it and take it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name, make):
        path, partial = base / name, base / f"{name}.partial"
        with (base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                make(partial)
                partial.rename(path)
        return path.resolve()

    return made


@pytest.fixture(scope="session")
def site(once):
    """The documentation, built as by ``make docs``: a warning fails it."""
    pytest.importorskip("material", reason="the site is built with the dependency group docs")
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = str(Path(__file__).parents[1] / "mkdocs.yml")
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    return once("site", lambda folder: build(load_config(config, strict=True, site_dir=str(folder))))

import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from setminus.commands import main
from setminus.estimators.principals import ProxyPrincipal
from setminus.estimators.tuned import TunedOrthogonalClassifier


@dataclass
class Done:
    code: int
    out: str
    err: str


@pytest.fixture(scope="module", autouse=True)
def small_work():
    """Small defaults and one Dask worker: what a command reads, writes and says does not change."""
    small = {
        HistGradientBoostingClassifier: ("max_iter", 20),
        TunedOrthogonalClassifier: ("cv", 2),
        ProxyPrincipal: ("cv", 2),
    }
    with pytest.MonkeyPatch.context() as patch:
        for kind, (name, value) in small.items():
            assert name in kind.__init__.__kwdefaults__
            patch.setitem(kind.__init__.__kwdefaults__, name, value)
        patch.setattr("setminus.scale.dask_parts.WORKERS", 1)
        yield


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command in this process, which is quick, as its own would be."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["setminus", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def people():
    """A small table: income from skill, and from sex by way of a job that depends on it."""
    rng = np.random.default_rng(0)
    n = 600
    sex = rng.choice(["f", "m"], n)
    skill = rng.normal(size=n)
    income = skill + (sex == "m") + rng.normal(size=n) > 0.5
    return pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "skill": skill.round(4),
            "job": np.where(rng.random(n) < 0.8, np.where(sex == "m", "miner", "nurse"), "clerk"),
            "sex": sex,
            "income": np.where(income, "high", "low"),
        }
    )

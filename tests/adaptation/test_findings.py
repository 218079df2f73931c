"""Each condition of adaptation is told apart: it holds where it should, and fails where it should not."""

from dataclasses import replace

import pytest

from setminus.adaptation.findings import HELPS, Seen, adaptation_findings, adaptation_verdict
from setminus.adaptation.judged import Judged

GOOD = Seen(
    method="vada_orthogonal",
    shrinkage=0.0,
    classes=("well", "ill"),
    strange={"age": 0.0, "sex": 0.01},
    recall=0.9,
    n_held=100,
    auc=0.8,
    source_mix=[0.8, 0.2],
    estimates={"the model": [0.3, 0.7], "EM": [0.31, 0.69], "BBSE": [0.35, 0.65]},
    answers=[0.32, 0.68],
    decided=[0.4, 0.6],
    alike=0.97,
)
HELPED = Judged(n=300, strangers=0, before=150, after=240, gained=95, lost=5, mix=(0.3, 0.7))


def doubts(judged=None, **changes):
    return {one.name: one.status for one in adaptation_findings(replace(GOOD, **changes), judged) if one.status != "ok"}


def estimates(other):
    return {"the model": [0.3, 0.7], "EM": other, "BBSE": [0.3, 0.7]}


@pytest.mark.parametrize(
    ("changes", "name", "status"),
    [
        ({"strange": {"age": 0.1, "sex": 0.0}}, "the columns hold the same in both tables", "warn"),
        ({"strange": {"age": 1.0, "sex": 0.0}}, "the columns hold the same in both tables", "fail"),
        ({"recall": 0.7}, "the columns tell the classes apart", "warn"),
        ({"recall": 0.52}, "the columns tell the classes apart", "fail"),
        ({"auc": 0.52}, "rows of a class look different in the two tables", "warn"),
        ({"source_mix": [0.32, 0.68]}, "the class mix changed", "warn"),
        ({"method": "vada"}, "the class mix is the same", "warn"),
        ({"estimates": estimates([0.5, 0.5])}, "estimates of the new mix agree", "warn"),
        ({"estimates": estimates([0.9, 0.1])}, "estimates of the new mix agree", "fail"),
        ({"answers": [0.5, 0.5]}, "the adapted model's probabilities add up to the estimate", "warn"),
        ({"answers": [0.9, 0.1]}, "the adapted model's probabilities add up to the estimate", "fail"),
        ({"decided": [0.0, 1.0]}, "every class is still found", "warn"),
        ({"alike": 0.9}, "another seed decides alike", "warn"),
        ({"alike": 0.6}, "another seed decides alike", "fail"),
    ],
)
def test_one_condition_at_a_time(changes, name, status):
    assert doubts(**changes) == {name: status}


@pytest.mark.parametrize(
    ("changes", "name", "status"),
    [
        ({"strangers": 3}, "the source has the classes of the target", "warn"),
        ({"strangers": 100}, "the source has the classes of the target", "fail"),
        ({"mix": (0.45, 0.55)}, "the estimate fits the labelled rows", "warn"),
        ({"mix": (0.8, 0.2), "after": 290}, "the estimate fits the labelled rows", "fail"),
        ({"gained": 2, "lost": 2}, HELPS, "warn"),
        ({"gained": 0, "lost": 0}, HELPS, "warn"),
        ({"gained": 5, "lost": 95}, HELPS, "fail"),
        # better than without, and worse than no model at all
        ({"after": 200, "mix": (0.3, 0.7)}, "it is right more often than one class for all", "warn"),
    ],
)
def test_labelled_rows_one_condition_at_a_time(changes, name, status):
    assert doubts(replace(HELPED, **changes)) == {name: status}


def test_all_hold_and_nobody_is_advised():
    assert doubts() == doubts(HELPED) == {}
    assert {one.advice for one in adaptation_findings(GOOD, HELPED)} == {""}
    assert all(one.advice for one in adaptation_findings(replace(GOOD, alike=0.1)) if one.status != "ok")


def test_few_labelled_rows_do_not_tell_whether_the_estimate_fits():
    few = Judged(n=8, strangers=0, before=0, after=8, gained=8, lost=0, mix=(0.5, 0.5))
    assert doubts(few) == {"the estimate fits the labelled rows": "warn"}
    (told,) = [one for one in adaptation_findings(GOOD, few) if one.status == "warn"]
    assert told.advice.startswith("Label more rows")


def test_guessing_among_many_classes_is_no_telling_apart():
    many = {"classes": tuple("abcdefghij")}
    assert doubts(recall=0.12, **many)["the columns tell the classes apart"] == "fail"
    assert "the columns tell the classes apart" not in doubts(recall=0.6, **many)


def test_no_advice_is_given_that_is_followed_already_or_cannot_be():
    far = estimates([0.9, 0.1])

    def advice(**changes):
        return " ".join(one.advice for one in adaptation_findings(replace(GOOD, estimates=far, **changes)))

    assert "--shrinkage" in advice()
    assert "--shrinkage" not in advice(shrinkage=0.5) + advice(method="vada")
    assert "--method vada " not in advice(method="vada")
    assert HELPS not in {one.name for one in adaptation_findings(replace(GOOD, method="source_only"), HELPED)}


def test_labelled_rows_have_the_first_word():
    def said(judged=None, **changes):
        return adaptation_verdict(adaptation_findings(replace(GOOD, **changes), judged))

    assert said().startswith("Nothing that was measured speaks against it. Labelled target rows")
    assert said(HELPED) == "It helps on labelled target rows."
    assert said(HELPED, alike=0.6) == (
        "It helps on labelled target rows. All the same, it is doubtful that another seed decides alike."
    )
    assert said(replace(HELPED, gained=5, lost=95)).startswith("Do not use it")
    assert said(replace(HELPED, gained=2, lost=2)).endswith("labelled target rows do not tell that it helps.")
    below = said(replace(HELPED, gained=4, lost=2, before=60, after=62))
    assert below == "Usable with care. Doubtful that it is right more often than one class for all."
    assert said(alike=0.9) == "Usable with care. Doubtful that another seed decides alike."
    assert said(alike=0.9, recall=0.5, answers=[0.9, 0.1]) == (
        "Do not rely on it yet: not true that the columns tell the classes apart; that the adapted model's "
        "probabilities add up to the estimate."
    )

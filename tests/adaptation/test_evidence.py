"""Each condition of adaptation is checked by itself: it holds where it should, and fails where it should not."""

from dataclasses import replace

import pytest

from setminus.adaptation.evidence import (
    EXPECTED,
    HELPS,
    AdaptationEvidence,
    TargetScores,
    adaptation_findings,
    adaptation_verdict,
)

GOOD = AdaptationEvidence(
    method="vada_orthogonal",
    shrinkage=0.0,
    classes=("well", "ill"),
    drift={"age": 0.0, "sex": 0.01},
    recall=0.9,
    n_held=100,
    auc=0.8,
    auc_error=0.05,
    source_mix=[0.8, 0.2],
    estimates={"the model": [0.3, 0.7], "EM": [0.31, 0.69], "BBSE": [0.35, 0.65]},
    answers=[0.32, 0.68],
    decided=[0.4, 0.6],
    agreement=0.97,
    corrected=[0.35, 0.65],
    least=[0.2, 0.55],
)
HELPED = TargetScores(n=300, unseen_class=0, before=150, after=240, gained=95, lost=5, mix=(0.3, 0.7))


def doubts(judged=None, **changes):
    return {one.name: one.status for one in adaptation_findings(replace(GOOD, **changes), judged) if one.status != "ok"}


def estimates(other):
    return {"the model": [0.3, 0.7], "EM": other, "BBSE": [0.3, 0.7]}


@pytest.mark.parametrize(
    ("changes", "name", "status"),
    [
        ({"drift": {"age": 0.1, "sex": 0.0}}, "target values were seen in the source", "warn"),
        ({"drift": {"age": 1.0, "sex": 0.0}}, "target values were seen in the source", "fail"),
        ({"recall": 0.7}, "the columns predict the class", "warn"),
        ({"recall": 0.52}, "the columns predict the class", "fail"),
        ({"auc": 0.52}, "rows of a class differ between the tables", "warn"),
        ({"auc": 0.49}, "rows of a class differ between the tables", "fail"),
        ({"auc": 0.52, "auc_error": 0.03}, "rows of a class differ between the tables", "fail"),
        ({"source_mix": [0.32, 0.68]}, "the class frequencies changed", "warn"),
        ({"method": "vada"}, "the class frequencies are the same", "warn"),
        ({"estimates": estimates([0.5, 0.5])}, "estimates of the class frequencies agree", "warn"),
        ({"estimates": estimates([0.9, 0.1])}, "estimates of the class frequencies agree", "fail"),
        ({"answers": [0.5, 0.5]}, "the adapted model's mean probabilities agree with the estimate", "warn"),
        ({"answers": [0.9, 0.1]}, "the adapted model's mean probabilities agree with the estimate", "fail"),
        ({"decided": [0.0, 1.0]}, "every class is predicted", "fail"),
        ({"decided": [0.02, 0.98]}, "every class is predicted", "fail"),
        ({"agreement": 0.9}, "another seed gives the same predictions", "warn"),
        ({"agreement": 0.6}, "another seed gives the same predictions", "fail"),
    ],
)
def test_one_condition_at_a_time(changes, name, status):
    assert doubts(**changes) == {name: status}


@pytest.mark.parametrize("changes", [{"method": "corrected"}, {"method": "auto", "trust": 1.0}])
def test_models_that_are_made_for_other_frequencies_alone_do_not_fail_where_nothing_else_changed(changes):
    name = "rows of a class differ between the tables"
    assert doubts(auc=0.4)[name] == "fail"
    assert doubts(auc=0.4, **changes)[name] == "warn"


def test_a_class_that_the_model_misses_in_its_estimate_too_is_lost_where_another_estimate_has_it():
    alike = {"method": "auto", "trust": 1.0, "assumed": [1.0, 0.0], "answers": [1.0, 0.0], "decided": [1.0, 0.0]}
    assert doubts(**alike, least=[0.1, 0.0])["every class is predicted"] == "warn"
    lost = adaptation_findings(replace(GOOD, **alike, least=[0.1, 0.3]))
    assert {one.name for one in lost if one.status == "fail"} == {"every class is predicted"}
    assert adaptation_verdict(lost).recommended == "auto"


@pytest.mark.parametrize(("adapted", "recommended"), [(0.54, "auto"), (0.56, "adapted"), (0.8, "adapted")])
def test_a_trained_model_is_judged_by_its_expected_accuracy_and_by_nothing_else(adapted, recommended):
    for accuracy in ({"source only": 0.6, "corrected": 0.5}, {"source only": 0.1, "corrected": 0.6}):
        judged = replace(GOOD, expected_accuracy={**accuracy, "adapted": adapted})
        found = adaptation_findings(judged)
        assert adaptation_verdict(found, None, judged.decisive).recommended == recommended
        (one,) = [one for one in found if one.name == EXPECTED]
        assert one.status == ("ok" if recommended == "adapted" else "fail")
        assert all(f"{100 * share:.1f} %" in one.evidence for share in judged.expected_accuracy.values())
        # a check that decides where there is no such comparison
        lost = replace(judged, decided=[0.02, 0.98])
        assert adaptation_verdict(adaptation_findings(lost), None, lost.decisive).recommended == recommended


@pytest.mark.parametrize(
    ("changes", "recommended", "words"),
    [
        ({"method": "corrected"}, "auto", "Do not use it. Failed checks: every class is predicted."),
        (
            {"method": "corrected", "expected_accuracy": {"source only": 0.61, "corrected": 0.6, "adapted": 0.6}},
            "auto",
            "Do not use it. Failed checks: it is expected to be as accurate as without adaptation.",
        ),
        (
            {"method": "corrected", "expected_accuracy": {"source only": 0.5, "corrected": 0.6, "adapted": 0.6}},
            "adapted",
            "The evidence is weak. Failed checks: every class is predicted.",
        ),
        # the best of the models without labels, also there
        ({"method": "auto", "trust": 1.0}, "adapted", "The evidence is weak. Failed checks: every class is predicted."),
    ],
)
def test_a_missed_class_decides_where_nothing_better_is_known(changes, recommended, words):
    evidence = replace(GOOD, **changes, decided=[0.02, 0.98])
    verdict = adaptation_verdict(adaptation_findings(evidence), None, evidence.decisive)
    assert verdict.recommended == recommended and verdict.text.startswith(words)


@pytest.mark.parametrize(("trust", "status"), [(1.0, "fail"), (0.0, "warn")])
def test_predictions_need_not_follow_an_estimate_that_is_not_trusted(trust, status):
    labelled = replace(HELPED, mix=(0.8, 0.2), after=290)
    found = doubts(labelled, trust=trust, unexplained=0.3, answers=[0.9, 0.1], decided=[0.0, 1.0])
    assert found["every class is predicted"] == found["the estimate fits the labelled target rows"] == status
    assert ("the adapted model's mean probabilities agree with the estimate" in found) == (trust == 1)
    assert ("other class frequencies explain the target's predictions" in found) == (trust < 1)


@pytest.mark.parametrize(
    ("changes", "name", "status"),
    [
        ({"unseen_class": 3}, "the source has the classes of the target", "warn"),
        ({"unseen_class": 100}, "the source has the classes of the target", "fail"),
        ({"mix": (0.45, 0.55)}, "the estimate fits the labelled target rows", "warn"),
        ({"mix": (0.8, 0.2), "after": 290}, "the estimate fits the labelled target rows", "fail"),
        ({"recalls": ((90, 0.02), (210, 0.9))}, "every class with labelled target rows is recognised", "fail"),
        ({"gained": 2, "lost": 2}, HELPS, "warn"),
        ({"gained": 0, "lost": 0}, HELPS, "warn"),
        ({"gained": 5, "lost": 95}, HELPS, "fail"),
        # better than without, and worse than no model at all
        ({"after": 200, "mix": (0.3, 0.7)}, "it is more accurate than the most frequent class", "warn"),
    ],
)
def test_labelled_rows_one_condition_at_a_time(changes, name, status):
    assert doubts(replace(HELPED, **changes)) == {name: status}


def test_all_hold_and_nobody_is_advised():
    assert doubts() == doubts(HELPED) == {}
    assert {one.advice for one in adaptation_findings(GOOD, HELPED)} == {""}
    assert all(one.advice for one in adaptation_findings(replace(GOOD, agreement=0.1)) if one.status != "ok")


def test_few_labelled_rows_do_not_tell_whether_the_estimate_fits():
    few = TargetScores(n=8, unseen_class=0, before=0, after=8, gained=8, lost=0, mix=(0.5, 0.5))
    assert doubts(few) == {"the estimate fits the labelled target rows": "warn"}
    (weak,) = [one for one in adaptation_findings(GOOD, few) if one.status == "warn"]
    assert weak.advice.startswith("Label more rows")


def test_guessing_among_many_classes_is_no_telling_apart():
    many = {"classes": tuple("abcdefghij")}
    assert doubts(recall=0.12, **many)["the columns predict the class"] == "fail"
    assert "the columns predict the class" not in doubts(recall=0.6, **many)


def test_no_advice_is_given_that_is_followed_already_or_cannot_be():
    far = estimates([0.9, 0.1])

    def advice(**changes):
        return " ".join(one.advice for one in adaptation_findings(replace(GOOD, estimates=far, **changes)))

    assert "--shrinkage" in advice()
    # "auto" does not shrink the estimate, it weighs the corrected prediction
    assert "--shrinkage" not in advice(shrinkage=0.5) + advice(method="vada") + advice(method="auto", trust=0.5)
    assert "--method vada " not in advice(method="vada")
    assert HELPS not in {one.name for one in adaptation_findings(replace(GOOD, method="source_only"), HELPED)}


def test_a_corrected_model_is_for_class_frequencies_that_changed():
    assert doubts(method="corrected") == {}
    (same,) = [
        one for one in adaptation_findings(replace(GOOD, method="corrected", source_mix=[0.3, 0.7])) if one.advice
    ]
    assert same.name == "the class frequencies changed" and same.advice.startswith("There is nothing to correct")


def test_few_rows_of_a_class_do_not_show_that_it_is_lost():
    assert doubts(replace(HELPED, recalls=((9, 0.0), (291, 0.9)))) == {}


def test_a_class_that_is_estimated_to_be_absent_need_not_be_predicted():
    three = {"classes": ("a", "b", "c"), "source_mix": [0.7, 0.2, 0.1], "answers": [0.3, 0.7, 0.0], "least": [0, 0, 0]}
    mixes = {"the model": [0.3, 0.7, 0.0], "EM": [0.3, 0.7, 0.0], "BBSE": [0.3, 0.7, 0.0]}
    assert doubts(**three, estimates=mixes, decided=[0.3, 0.7, 0.0]) == {"every class is predicted": "warn"}
    # 6.9 % of a class that is never predicted
    mixes = {name: [0.3, 0.631, 0.069] for name in mixes}
    answers = {**three, "answers": [0.3, 0.631, 0.069]}
    assert doubts(**answers, estimates=mixes, decided=[0.3, 0.7, 0.0]) == {"every class is predicted": "fail"}
    # also behind a class that is absent
    mixes = {name: [0.0, 0.6, 0.4] for name in mixes}
    answers = {**three, "answers": [0.0, 0.6, 0.4]}
    assert doubts(**answers, estimates=mixes, decided=[0.0, 1.0, 0.0])["every class is predicted"] == "fail"


def test_labelled_rows_decide_the_verdict():
    def verdict(scores=None, **changes):
        found = adaptation_verdict(adaptation_findings(replace(GOOD, **changes), scores), scores)
        assert found.use == (not found.text.startswith("Do not use it"))
        return found.text

    stable, better = "another seed gives the same predictions", "Adaptation improves the accuracy"
    assert verdict().startswith("No check failed. Without labelled target rows")
    assert verdict(HELPED).startswith(better) and "Weak" not in verdict(HELPED)
    assert verdict(HELPED, agreement=0.6).startswith(better) and verdict(HELPED, agreement=0.6).endswith(f": {stable}.")
    worse = replace(HELPED, gained=5, lost=95, reference="corrected")
    assert verdict(worse).endswith("less accurate than the model 'corrected'.")
    assert adaptation_verdict(adaptation_findings(GOOD, worse), worse).recommended == "corrected"
    assert verdict(replace(HELPED, gained=2, lost=2)).endswith("not significantly higher.")
    below = verdict(replace(HELPED, gained=4, lost=2, before=60, after=62))
    assert below == "Usable with care. Weak checks: it is more accurate than the most frequent class."
    assert verdict(agreement=0.9) == f"Usable with care. Weak checks: {stable}."
    # a failed check that says nothing of the adaptation does not advise against it
    poor = verdict(agreement=0.9, recall=0.5)
    assert poor.startswith("The evidence is weak. Failed checks: the columns predict the class. A model without")
    failed = verdict(agreement=0.9, recall=0.5, answers=[0.9, 0.1])
    assert failed.startswith("Do not use it. Failed checks: the adapted model's mean") and stable not in failed

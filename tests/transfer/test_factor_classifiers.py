"""Classifiers of two folders: they know the column and not what goes along with it, or they say that they do not."""

import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus.transfer import factor_classifiers  # noqa: E402
from setminus.transfer.factor_classifiers import (  # noqa: E402
    Factor,
    check_principal,
    deal_out,
    fit_factor_classifiers,
    held_out_accuracy,
)
from setminus.transfer.fitting import fitting_notes  # noqa: E402
from setminus.transfer.networks import signed  # noqa: E402
from tests.made_pictures import folder_squares, painted_squares  # noqa: E402

QUICK = {"width": 4, "steps": 300, "seed": 0}


def fitted(images, role, **options):
    return fit_factor_classifiers(*deal_out(images, 0.2, 0), role, **{**QUICK, **options})


@pytest.fixture(scope="module", params=["change", "keep"])
def learned(request):
    images, _ = folder_squares("digit" if request.param == "change" else "background")
    return request.param, images, fitted(images, request.param)


def test_the_ratio_is_that_of_the_backgrounds_whichever_column_is_given(learned):
    role, _, classifiers = learned
    new = painted_squares(300, seed=9)
    values = classifiers.log_ratio(role, 30.0)(signed(torch.from_numpy(new.x).permute(0, 3, 1, 2))).numpy()
    for z2, exact in ((0, math.log(9)), (1, -math.log(9))):
        for z1 in (0, 1):
            rows = (new.z1 == z1) & (new.z2 == z2)
            assert values[rows].mean() == pytest.approx(exact, abs=1.0)


def test_judges_see_what_is_there(learned):
    role, _, classifiers = learned
    new = painted_squares(300, seed=9)
    found = classifiers.log_probas(torch.from_numpy(new.x).permute(0, 3, 1, 2))
    predicted = {name: values.argmax(1) for name, values in found.items()}
    column, rest = (new.z1, new.z2) if role == "change" else (new.z2, new.z1)
    assert np.mean(predicted["column"] == column) > 0.98
    assert np.mean(predicted["rest"] == rest) > 0.9
    assert classifiers.accuracy["column"].above_chance and classifiers.accuracy["judge_domain"].accuracy > 0.85


def test_the_generators_classifiers_are_not_the_judges(learned):
    _, _, classifiers = learned
    weights = [next(classifiers.modules[name].parameters()) for name in ("column", "judge_column")]
    assert not torch.equal(*weights)


def test_shares_are_those_of_the_labels(learned):
    _, _, classifiers = learned
    assert classifiers.factors["column"].a[0] == pytest.approx(0.9, abs=0.05)
    assert classifiers.factors["column"].b[0] == pytest.approx(0.1, abs=0.05)
    assert sum(classifiers.domain_prior) == pytest.approx(1)


def test_labels_elsewhere_are_enough_and_shares_are_then_estimated():
    images, _ = folder_squares("digit")
    more = painted_squares(200, seed=5)
    joined = replace(
        images,
        x=np.concatenate([images.x, more.x]),
        y=np.concatenate([images.y, np.full(200, -1)]),
        z=np.concatenate([np.full(600, -1), more.z1]),
    )
    classifiers = fitted(joined, "change")
    assert classifiers.factors["column"].a[0] == pytest.approx(0.9, abs=0.07)
    assert classifiers.factors["column"].b[0] == pytest.approx(0.1, abs=0.07)


def test_a_column_that_does_not_show_stops_before_anything_long():
    images, _ = folder_squares("digit", n=300)
    guessed = replace(images, z=np.arange(300) % 2)
    with pytest.raises(ValueError, match=r"held-out images, and guessing reaches .* visible"):
        fitted(guessed, "keep")


def test_too_few_labels_to_hold_any_out():
    images, _ = folder_squares("digit", n=100)
    z = np.full(100, -1)
    z[[0, 1, -1]] = 0, 1, 1
    counts = r"too few images have labels to hold any out \(of each value 1 and 1 in folder A, 0 and 1 in folder B\)"
    with pytest.raises(ValueError, match=counts):
        fitted(replace(images, z=z), "change")
    # one right image of each value could be luck, and is no reason to say that nothing can be seen
    with pytest.raises(ValueError, match="only 2 labelled images are held out"):
        factor_classifiers._check_column(held_out_accuracy(np.array([0, 1]), np.array([0, 1]), np.ones(2)))


def test_a_visible_column_is_not_refused_for_the_weight_of_four_rare_images():
    truth, weights = np.repeat([0, 1], [75, 4]), np.repeat([4 / 75, 1.0], [75, 4])
    seen, unseen = truth.copy(), np.zeros_like(truth)
    seen[-2:], seen[:7] = 0, 1
    found = held_out_accuracy(seen, truth, weights)
    assert not found.above_chance and 0.7 < found.accuracy < found.by_chance
    factor_classifiers._check_column(found)
    with pytest.raises(ValueError, match="guessing reaches"):
        factor_classifiers._check_column(held_out_accuracy(unseen, truth, weights))


@pytest.mark.parametrize("share", [0.0, 0.15])
def test_the_fraction_of_wrong_labels_is_estimated_and_said(share):
    images, _ = folder_squares("digit", n=1_000)
    rng = np.random.default_rng(1)
    noisy = replace(images, z=np.where(rng.random(len(images.z)) < share, 1 - images.z, images.z))
    classifiers = fitted(noisy, "change")
    estimate, low, high = classifiers.factors["column"].wrong_labels
    assert low <= share + 1e-9 and share <= high and abs(estimate - share) < 0.06
    notes = " ".join(fitting_notes(noisy, classifiers, "change", "hair"))
    assert ("of the labels of 'hair' look wrong" in notes) == (share > 0)


def test_accuracy_is_balanced():
    verdicts, truth = np.zeros(100, dtype=int), np.repeat([0, 1], [90, 10])
    balanced = 1 / np.bincount(truth)[truth]
    assert held_out_accuracy(verdicts, truth, np.ones(100)).accuracy == 0.9
    assert held_out_accuracy(verdicts, truth, balanced).accuracy == pytest.approx(0.5)
    assert not held_out_accuracy(verdicts, truth, balanced).above_chance
    # one right image of each class could be luck
    assert not held_out_accuracy(np.array([0, 1]), np.array([0, 1]), np.ones(2)).above_chance
    assert held_out_accuracy(np.array([0, 1]), np.array([0, 1]), np.ones(2)).by_chance == 1


class Gives(torch.nn.Module):
    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, images):
        if self.logits is None:
            raise RuntimeError("wants 128 pixels")
        return self.logits


@pytest.mark.parametrize(
    ("logits", "words"),
    [
        (torch.zeros(2, 10), r"gives \(2, 10\) for 2 images: .*other classes"),
        (torch.zeros(2), r"gives \(2,\)"),
        ("text", r"gives \(\)"),
        (torch.full((2, 2), math.nan), "not finite"),
        (None, r"does not take images .*wants 128 pixels"),
    ],
)
def test_a_principal_classifier_of_other_classes_is_refused(logits, words):
    with pytest.raises(ValueError, match=words):
        check_principal(Gives(logits), torch.zeros(2, 3, 12, 12))
    check_principal(Gives(torch.zeros(2, 2)), torch.zeros(2, 3, 12, 12))


def test_notes_say_what_is_weak(learned):
    role, images, classifiers = learned
    assert fitting_notes(images, classifiers, role, "hair") == []
    weak = replace(classifiers.accuracy["column"], accuracy=0.7)
    none = replace(classifiers.accuracy["judge_domain"], accuracy=0.5)
    bad = replace(
        classifiers,
        factors={"column": Factor([0.5, 0.5], [0.5, 0.5], [0.45, 0.55])},
        accuracy={**classifiers.accuracy, "column": weak, "judge_domain": none},
    )
    few = replace(images, x=images.x[:100], y=np.repeat([0, 1], 50), z=np.repeat([0, 1], 50))
    notes = " ".join(fitting_notes(few, bad, role, "hair"))
    for words in ("only 70%", "about as frequent", "all the same", "than guessing", "folder A has 50 images"):
        assert words in notes
    assert ("large errors" in notes) == (role == "change")

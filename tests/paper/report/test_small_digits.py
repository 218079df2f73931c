import pytest
from setminus_paper.report import small_digits

from setminus.charts.chart import Bars

LABELS = {"source_only": "Source only", "vada": "VADA", "vada_orthogonal": "VADA + w_x \\ w_1 (EM)"}


def record(method, seed, accuracy):
    return {
        "name": "small_digits",
        "config": {"method": method, "shift": 0.9, "steps": 1500},
        "seed": seed,
        "metrics": {
            "label": LABELS[method],
            "accuracy": accuracy,
            "class_accuracy": [accuracy, None if seed else 0.5, 1.0, accuracy],
            "prior": {
                "source": [0.4, 0.4, 0.1, 0.1],
                "target": [0.1, 0.1, 0.4, 0.4],
                "estimated": [0.1, 0.2, 0.3, 0.4],
            },
            "rows": {"source": 2000, "target": 450, "scored": 449},
        },
    }


@pytest.fixture
def records():
    shares = {"source_only": (0.5, 0.54), "vada": (0.6, 0.6), "vada_orthogonal": (0.7, 0.74)}
    return [record(method, seed, share) for method, some in shares.items() for seed, share in enumerate(some)]


def test_accuracies_with_their_spread_classes_and_the_mix(records):
    accuracy, classes, mix = small_digits.charts(records)
    (bars,) = accuracy.marks
    assert bars.x == [*LABELS.values()]
    assert bars.y == pytest.approx([52, 60, 72])
    assert (bars.low[2], bars.high[2]) == pytest.approx((70, 74))
    assert "2,000 images of MNIST with labels, 450 of UCI without, 449 others to score with" in accuracy.caption
    assert [type(mark) for mark in classes.marks] == [Bars] * 3
    # a class that one seed has no rows of is that of the others
    assert classes.marks[0].y == [52.0, 50.0, 100.0, 52.0]
    assert "The digits 0 to 1 are 90 % of the source, and 10 % of the target." in classes.caption
    assert [mark.name for mark in mix.marks] == ["source", "target, true", "target, estimated"]
    assert len(small_digits.charts(records[:2])) == 2


def test_the_gain_is_taken_seed_by_seed_and_may_be_a_loss(records):
    rows = {what: (expected, measured) for what, expected, measured in small_digits.summary(records)}
    assert rows["VADA: accuracy on the target, %"] == ("", "60.0 ± 0.0")
    assert rows["VADA + w_x \\ w_1 (EM) less VADA, points"] == ("more than 0", "12.0 ± 2.0")
    worse = [*records[:4], record("vada_orthogonal", 0, 0.4)]
    assert small_digits.summary(worse)[-1] == ("VADA + w_x \\ w_1 (EM) less VADA, points", "more than 0", "-20.0")
    assert len(small_digits.summary(records[:4])) == 2

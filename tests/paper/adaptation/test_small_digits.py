"""The small adaptation: shares as planned, no target label in training, no scored row among those adapted to."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from setminus_paper.adaptation import small_digits

from setminus.charts.chart import Bars
from setminus.datasets.split import Split

SIZE = small_digits.Size(shift=0.8, source_rows=400, steps=40)


@pytest.fixture
def squares(monkeypatch):
    """Frames with a bar for each digit in place of MNIST: no data is needed."""
    y = np.arange(600) % 10
    images = np.zeros((600, 28, 28, 1), dtype=np.uint8)
    images[:, 4:24, [9, 18]] = 255
    for image, digit in zip(images, y, strict=True):
        image[4 + 2 * digit : 6 + 2 * digit, 9:19] = 255
    monkeypatch.setattr(small_digits, "load_images", lambda name: Split(x=images, y=y))


def test_the_mix_is_turned_round_and_scored_rows_are_others(squares):
    pair = small_digits.load_pair(SIZE, seed=1)
    low = [np.mean(part.y < 5) for part in (pair.source, pair.target, pair.scored)]
    assert low == pytest.approx([0.8, 0.2, 0.2], abs=0.01)
    target, scored = ({row.tobytes() for row in part.x} for part in (pair.target, pair.scored))
    assert not target & scored
    assert len(target) == len(pair.target)
    other = small_digits.load_pair(SIZE, seed=2)
    assert not np.array_equal(pair.target.y, other.target.y)


def test_a_record_is_plain_and_says_what_was_scored(squares):
    (found,) = small_digits.measure((0,), method="vada_orthogonal", size=SIZE)
    json.dumps(found, allow_nan=False)
    assert found["label"] == "VADA + w_x \\ w_1 (EM)"
    assert sum(found["prior"]["target"][:5]) == pytest.approx(0.2, abs=0.01)
    assert sum(found["prior"]["estimated"]) == pytest.approx(1, abs=1e-3)
    assert found["rows"]["source"] == pytest.approx(200, abs=20)


def test_labels_of_the_target_do_not_matter_and_those_of_the_source_do(squares, monkeypatch):
    pair = small_digits.load_pair(SIZE, seed=0)

    def estimate(pair):
        monkeypatch.setattr(small_digits, "load_pair", lambda size, seed: pair)
        (found,) = small_digits.measure((0,), method="vada_orthogonal", size=SIZE)
        return found["accuracy"], found["prior"]["estimated"]

    first = estimate(pair)
    noise = replace(pair.target, y=np.zeros_like(pair.target.y))
    assert estimate(replace(pair, target=noise)) == first
    other = replace(pair.source, y=pair.source.y[::-1].copy())
    assert estimate(replace(pair, source=other)) != first


def test_digits_are_stretched_to_the_size_of_the_others():
    images = np.zeros((3, 28, 28, 1), dtype=np.uint8)
    images[0, 4:24, 9:19] = 200
    images[1, 10:12, 3:25] = 200
    found = small_digits.stretched(images)
    # wherever it was and whatever its size, and an empty one stays empty
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0, :, 1:7].min() == 200 and found[2].max() == 0
    # as in most of the target, the outer columns are empty
    assert np.mean(small_digits.uci_digits().x[:, :, [0, 7]]) < 12 < 100 < np.mean(found[0])


def test_the_plan_has_the_same_settings_for_all_methods():
    runs = small_digits.plan("quick", (0, 1))
    assert [run.config.pop("method") for run in runs] == ["source_only", "vada", "vada_orthogonal"]
    assert runs[0].config == runs[1].config == runs[2].config
    json.dumps(runs[0].config)


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
    assert all(number in accuracy.caption for number in ("2,000", "450", "449", "1,500"))
    assert [type(mark) for mark in classes.marks] == [Bars] * 3
    # a class that one seed has no rows of is that of the others
    assert classes.marks[0].y == [52.0, 50.0, 100.0, 52.0]
    assert all(number in classes.caption for number in ("90 %", "10 %"))
    assert [mark.name for mark in mix.marks] == ["source", "target, true", "target, estimated"]
    assert len(small_digits.charts(records[:2])) == 2


def test_the_gain_is_taken_seed_by_seed_and_may_be_a_loss(records):
    rows = {what: (expected, measured) for what, expected, measured in small_digits.summary(records)}
    assert rows["VADA: accuracy on the target, %"] == ("", "60.0 ± 0.0")
    assert rows["VADA + w_x \\ w_1 (EM) less VADA, points"] == ("more than 0", "12.0 ± 2.0")
    worse = [*records[:4], record("vada_orthogonal", 0, 0.4)]
    assert small_digits.summary(worse)[-1] == ("VADA + w_x \\ w_1 (EM) less VADA, points", "more than 0", "-20.0")
    assert len(small_digits.summary(records[:4])) == 2

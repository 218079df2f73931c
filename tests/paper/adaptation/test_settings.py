"""Pairs of image sets on made images: the shift is exact, the target's labels go to scoring alone."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from setminus_paper.adaptation import settings
from setminus_paper.adaptation.settings import PAIRS, load_pair, shared_classes, shifted_pair
from setminus_paper.data.images import AbsentPartError, class_names

from setminus.datasets.sources import DataUnavailableError
from setminus.datasets.split import Split

DIGITS = tuple("0123456789")


def images(n, n_classes=10, seed=0, shape=(28, 28, 1)):
    rng = np.random.default_rng(seed)
    return Split(x=rng.integers(0, 256, (n, *shape), dtype=np.uint8), y=rng.permutation(np.arange(n) % n_classes))


def first_half(labels, n_classes=10):
    return int(np.sum(np.asarray(labels) < n_classes // 2))


def source_labels(pair):
    return torch.cat([pair.data.source_labels, pair.data.held_out_labels]).numpy()


@pytest.mark.parametrize("shift", [0.5, 0.7, 0.85, 0.95])
def test_the_shift_is_exact_and_reversed_on_both_parts_of_the_target(shift):
    pair = shifted_pair(images(2000), images(1200, seed=1), images(400, seed=2), DIGITS, shift=shift)
    labels = source_labels(pair)
    assert (first_half(labels), len(labels)) == (round(1000 * shift), 1000)
    assert len(pair.data.target) == 600
    assert pair.scoring.target_prior[:5].sum() == pytest.approx(1 - shift)
    assert (first_half(pair.scoring.labels), len(pair.scoring.labels)) == (round(200 * (1 - shift)), 200)


def test_images_are_of_one_size_in_color_and_from_minus_one_to_one():
    pair = shifted_pair(images(400), images(400, shape=(16, 16, 1)), images(200, shape=(32, 32, 3)), DIGITS)
    for part in (pair.data.source, pair.data.held_out, pair.data.target, pair.scoring.images):
        assert part.shape[1:] == (3, 32, 32) and part.dtype == torch.float32
        assert -1 <= part.min() < -0.5 < 0.5 < part.max() <= 1
        assert part.is_contiguous(memory_format=torch.channels_last)


def test_held_out_rows_have_all_classes_and_are_not_trained_on():
    pair = shifted_pair(images(2000), images(400), images(400), DIGITS)
    assert len(pair.data.held_out) == pytest.approx(200, abs=5)
    assert set(pair.data.held_out_labels.tolist()) == set(range(10))
    trained = {row.numpy().tobytes() for row in pair.data.source}
    assert not trained & {row.numpy().tobytes() for row in pair.data.held_out}


def test_a_seed_gives_its_rows_and_another_one_others():
    one, same, other = (shifted_pair(images(400), images(400), images(400), DIGITS, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.data.target, same.data.target) and torch.equal(one.data.source, same.data.source)
    assert not torch.equal(one.data.target, other.data.target)


def test_most_rows_keeps_the_shift():
    pair = shifted_pair(images(3000), images(3000), images(300), DIGITS, most_rows=1000)
    labels = source_labels(pair)
    assert 400 < len(labels) <= 500
    assert first_half(labels) / len(labels) == pytest.approx(0.7, abs=2e-3)


@pytest.fixture
def made_sets(monkeypatch):
    """Every set is made up, STL-10 without a test part; the first pixel of an image says its class by name."""
    return make_sets(monkeypatch, absent=("stl10", "test"))


def make_sets(monkeypatch, absent=None):
    asked = []

    def load(name, part="train"):
        if (name, part) == absent:
            raise AbsentPartError("it has train and unlabelled")
        asked.append((name, part))
        names = class_names(name)
        split = images(len(names) * 40, len(names), seed=len(asked), shape=(32, 32, 3))
        split.x[:, 0, 0, 0] = [5 * sorted(names).index(names[k]) for k in split.y]
        return split

    monkeypatch.setattr(settings, "load_images", load)
    return asked


@pytest.mark.parametrize("name", PAIRS)
def test_every_pair_of_the_paper_can_be_made(name, made_sets):
    pair = load_pair(name)
    known = PAIRS[name]
    assert pair.data.n_classes == len(pair.classes) == {"syn_signs": 43, "cifar10": 9, "stl10": 9}.get(known.source, 10)
    assert first_half(source_labels(pair), len(pair.classes)) > 0.6 * len(source_labels(pair))
    parts = [(known.source, "train"), (known.target, "train")]
    assert made_sets == (parts if known.target == "stl10" else [*parts, (known.target, "test")])


def test_classes_of_cifar_and_stl_are_matched_by_name(made_sets):
    shared = shared_classes("cifar10", "stl10")
    assert len(shared) == 9 and not {"frog", "monkey"} & {*shared}
    # the halves hold the same classes in both directions
    assert {*shared[:4]} == {*shared_classes("stl10", "cifar10")[:4]} == {"airplane", "automobile", "bird", "cat"}
    pair = load_pair("cifar10-stl10")
    level = ((pair.scoring.images[:, 0, 0, 0] + 1) * 127.5).round().int() // 5
    order = sorted(class_names("stl10"))
    renamed = ["automobile" if order[k] == "car" else order[k] for k in level.tolist()]
    assert renamed == [pair.classes[k] for k in pair.scoring.labels]


def test_stl_as_target_is_adapted_to_and_scored_on_different_rows(made_sets):
    pair = load_pair("cifar10-stl10")
    adapted = {row.numpy().tobytes() for row in pair.data.target}
    assert not adapted & {row.numpy().tobytes() for row in pair.scoring.images}
    # 360 labelled rows of nine classes: 30 % to score, and the shift keeps half of the smaller half twice
    assert (len(pair.data.target), len(pair.scoring.labels)) == (112, 48)


def test_stl_is_scored_on_its_test_part_where_that_exists(monkeypatch):
    asked = make_sets(monkeypatch)
    pair = load_pair("cifar10-stl10")
    assert asked[-1] == ("stl10", "test")
    assert (len(pair.data.target), len(pair.scoring.labels)) == (160, 160)


def test_another_target_without_a_test_part_is_refused(monkeypatch):
    make_sets(monkeypatch, absent=("usps", "test"))
    with pytest.raises(AbsentPartError):
        load_pair("mnist-usps")


def test_the_targets_labels_choose_rows_and_are_not_passed_on():
    target = images(400, seed=3)
    pair = shifted_pair(images(400), target, images(200), DIGITS)
    fields = {name: value for name, value in vars(pair.data).items() if value is not None}
    assert {*fields} == {"source", "source_labels", "target", "n_classes", "held_out", "held_out_labels"}
    # another name for each class within its half: the same rows, hence the same data to learn from
    renamed = replace(target, y=np.where(target.y < 5, 4 - target.y, 14 - target.y))
    other = shifted_pair(images(400), renamed, images(200), DIGITS)
    assert torch.equal(other.data.target, pair.data.target)
    assert other.scoring.target_prior.tolist() != pair.scoring.target_prior.tolist()


def test_wrong_arguments_are_refused():
    for shift in (0.0, 1.0, 70):
        with pytest.raises(ValueError, match="expected the first half's share in the source, between 0 and 1"):
            shifted_pair(images(40), images(40), images(40), DIGITS, shift=shift)
    with pytest.raises(ValueError, match="most_rows is 0"):
        shifted_pair(images(40), images(40), images(40), DIGITS, most_rows=0)
    with pytest.raises(ValueError, match="the target domain has no rows"):
        shifted_pair(images(40), images(0), images(40), DIGITS)


def test_a_class_that_the_shift_takes_away_from_the_source_is_named():
    with pytest.raises(ValueError, match=r"no rows of [5-9].* after the shift: give more rows, or a smaller shift"):
        shifted_pair(images(40), images(400), images(400), DIGITS, shift=0.95)


def test_missing_data_says_what_is_missing(monkeypatch):
    def load(name, part="train"):
        raise DataUnavailableError(f"{name} could not be had from any source.")

    monkeypatch.setattr(settings, "load_images", load)
    with pytest.raises(DataUnavailableError, match="svhn could not be had"):
        load_pair("svhn-mnist")

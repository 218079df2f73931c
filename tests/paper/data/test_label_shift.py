import numpy as np
import pytest
from setminus_paper.data.label_shift import keep_classes, shift_by_halves

from setminus.datasets.split import Split


def labelled(counts, seed=0):
    """Rows in random order; `x` is the number of the row, so that rows can be told apart."""
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    return Split(x=np.arange(len(y))[:, None], y=y, z1=np.arange(len(y)))


def assert_a_choice_of_rows(part, whole):
    assert np.all(np.diff(part.z1) > 0)
    np.testing.assert_array_equal(part.y, whole.y[part.z1])
    np.testing.assert_array_equal(part.x, whole.x[part.z1])


def test_the_source_of_the_paper_and_its_target():
    # the second half is the larger one: 400 against 600
    whole = labelled([80] * 5 + [120] * 5)
    source, target = shift_by_halves(whole, seed=0), shift_by_halves(whole, 0.3, 0.7, seed=0)
    for part, first, second in ((source, 280, 120), (target, 120, 280)):
        assert (np.sum(part.y < 5), np.sum(part.y >= 5)) == (first, second)
        assert_a_choice_of_rows(part, whole)


@pytest.mark.parametrize(("n_classes", "half"), [(9, 4), (43, 21), (10, 5), (2, 1)])
def test_an_odd_class_belongs_to_the_second_half(n_classes, half):
    whole = labelled([40] * n_classes)
    kept = shift_by_halves(whole, 1, 0, seed=0)
    assert set(kept.y) == set(range(half))
    assert len(kept) == 40 * half


def test_within_a_half_rows_are_chosen_by_chance():
    whole = labelled([1000] * 10)
    kept = np.bincount(shift_by_halves(whole, seed=0).y)
    assert np.all(np.abs(kept[:5] - 700) < 5 * np.sqrt(1000 * 0.7 * 0.3))
    assert np.all(np.abs(kept[5:] - 300) < 5 * np.sqrt(1000 * 0.7 * 0.3))
    # no balancing of single classes: that would be another shift
    assert len(set(kept[:5])) > 1


def test_the_seed_decides():
    whole = labelled([100, 100])
    first, again, other = (shift_by_halves(whole, seed=seed).z1.tolist() for seed in (0, 0, 1))
    assert first == again != other


def test_classes_without_rows_count_if_they_are_known():
    whole = labelled([30, 30])
    assert set(shift_by_halves(whole, 1, 0, seed=0).y) == {0}
    with pytest.raises(ValueError, match="all 60 rows are in one half of the 4 classes"):
        shift_by_halves(whole, seed=0, n_classes=4)


def test_classes_are_kept_and_counted_anew():
    whole = labelled([5, 6, 7, 8])
    kept = keep_classes(whole, [3, 1])
    assert np.bincount(kept.y).tolist() == [8, 6]
    np.testing.assert_array_equal(np.array([3, 1])[kept.y], whole.y[kept.z1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: shift_by_halves(s, 1.2, seed=0), r"first is 1.2: it is a share"),
        (lambda s: shift_by_halves(s, 0.5, -0.1, seed=0), r"second is -0.1"),
        (lambda s: shift_by_halves(s, seed=0, n_classes=1), "n_classes is 1, but y has the label 1: give at least 2"),
        (lambda s: shift_by_halves(s.take(s.y == 0), seed=0), "there is 1 class: two halves need"),
        (lambda s: shift_by_halves(s.take(slice(0)), seed=0), "y has 0 rows"),
        (lambda s: shift_by_halves(Split(x=s.x, y=s.y - 1), seed=0), "label shift needs integer labels from 0"),
        (lambda s: shift_by_halves(Split(x=s.x, y=s.y / 2), seed=0), "rows of float64: label shift needs integer"),
        (lambda s: keep_classes(s, [0, 0]), r"classes are \[0, 0\]: they must be different labels between 0 and 1"),
        (lambda s: keep_classes(s, [2]), "different labels between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(labelled([10, 10]))

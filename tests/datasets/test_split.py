import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.datasets.split import Split, random_split


def whole(n=100, n_classes=3):
    y = np.random.default_rng(0).integers(n_classes, size=n)
    return Split(x=np.arange(n)[:, None], y=y, z1=np.arange(n) + 1000, z2=np.arange(n) + 2000)


def test_take_keeps_roles_together_and_in_order():
    part = whole().take([7, 3])
    assert len(part) == 2
    np.testing.assert_array_equal(part.x[:, 0], [7, 3])
    np.testing.assert_array_equal(part.z1, [1007, 1003])
    np.testing.assert_array_equal(part.z2, [2007, 2003])


def test_take_accepts_masks_and_slices_and_absent_roles():
    split = Split(x=np.eye(3), y=np.array([0, 1, 1]), feature_names=("a", "b", "c"))
    assert len(split.take(split.y == 1)) == len(split.take(slice(1, None))) == 2
    assert split.take([0]).z1 is None
    assert split.take([0]).feature_names == ("a", "b", "c")


@pytest.mark.parametrize("role", ["y", "z1", "z2"])
def test_lengths_must_agree(role):
    roles = {"y": np.zeros(3), role: np.zeros(4)}
    with pytest.raises(ValueError, match=f"{role} has 4 rows, x has 3: give one entry per row"):
        Split(x=np.zeros((3, 2)), **roles)


def test_names_must_fit_the_columns():
    with pytest.raises(ValueError, match=r"feature_names has 1 names, x has shape \(3, 2\)"):
        Split(x=np.zeros((3, 2)), y=np.zeros(3), feature_names=("a",))
    with pytest.raises(ValueError, match=r"\['c'\] are called categorical but are not among"):
        Split(x=np.zeros((3, 2)), y=np.zeros(3), feature_names=("a", "b"), categorical=("c",))


def test_a_split_travels_to_worker_processes():
    split = Split(x=np.eye(2), y=np.zeros(2), feature_names=("a", "b"), categories={"a": ("u", "v")})
    assert pickle.loads(pickle.dumps(split)).categories == {"a": ("u", "v")}


@given(
    n=st.integers(10, 200),
    shares=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=50)
def test_parts_are_disjoint_and_cover_everything(n, shares, seed):
    fractions = np.array(shares) / sum(shares)
    parts = random_split(whole(n), fractions, seed)
    rows = np.concatenate([part.x[:, 0] for part in parts])
    np.testing.assert_array_equal(np.sort(rows), np.arange(n))
    assert all(abs(len(part) - f * n) <= 3 for part, f in zip(parts, fractions, strict=True))


def test_parts_have_the_class_shares():
    split = Split(x=np.zeros((1000, 1)), y=(np.arange(1000) < 50).astype(int))
    assert [part.y.sum() for part in random_split(split, (0.6, 0.4), seed=0)] == [30, 20]


def test_the_seed_decides():
    first, again, other = (random_split(whole(), (0.5, 0.5), seed)[0].x for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("fractions", [(0.5, 0.4), (1.2, -0.2), (), ((0.5, 0.5),)])
def test_fractions_must_be_shares(fractions):
    with pytest.raises(ValueError, match="must be positive and sum to 1"):
        random_split(whole(), fractions, seed=0)

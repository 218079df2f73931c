"""Shares of scores against rows counted one by one."""

import numpy as np
import pytest

from setminus.auditing.histograms import score_histograms
from setminus.auditing.inputs import Scored, read_scored


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_shares_are_those_of_the_rows(n_classes, weighted):
    rng = np.random.default_rng(0)
    y, group = rng.integers(n_classes, size=300), rng.integers(2, size=300)
    proba = rng.dirichlet(np.ones(n_classes), size=300)
    weight = rng.uniform(size=300) if weighted else np.ones(300)
    rows = read_scored(y, proba, np.array(["a", "b"])[group], sample_weight=weight if weighted else None)
    found = score_histograms(rows, n_bins=7)
    assert [(one.group, one.label) for one in found] == [(g, c) for c in range(n_classes) for g in "ab"]
    for one in found:
        held = (y == one.label) & (group == "ab".index(one.group))
        # two classes: of the second, whatever the row's label is
        score = proba[:, 1 if n_classes == 2 else one.label]
        np.testing.assert_allclose(one.edges, np.arange(8) / 7)
        for k in range(7):
            inside = held & (score >= k / 7) & (score < (k + 1) / 7)
            assert one.share[k] == pytest.approx(weight[inside].sum() / weight[held].sum())


def test_fifty_bins_and_the_ends_belong_to_them():
    y, group = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    rounded = np.array([[1.0, 0.0], [1 + 1e-12, -1e-12], [0.0, 1.0], [-1e-12, 1 + 1e-12]])
    found = score_histograms(Scored(y, group, rounded, None, ["n", "y"], ["a", "b"]))
    assert len(found) == 4
    for one in found:
        assert len(one.share) == 50 and one.share.sum() == 1
        assert one.share[-1 if one.label == "y" else 0] == 1


def test_a_cell_without_rows_or_weight_has_none():
    y, group = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0])
    proba = np.full((4, 2), 0.5)
    cells = [(one.label, one.group) for one in score_histograms(Scored(y, group, proba, None, [0, 1], [0, 1]))]
    assert cells == [(0, 0), (0, 1), (1, 0)]
    weight = np.array([0.0, 1, 1, 1])
    cells = [(one.label, one.group) for one in score_histograms(Scored(y, group, proba, weight, [0, 1], [0, 1]))]
    assert cells == [(0, 1), (1, 0)]

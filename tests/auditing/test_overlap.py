"""Overlap by hand."""

import numpy as np
import pytest

from setminus.auditing.overlap import Cell, overlap, small_cells


def test_a_principal_that_says_nothing_costs_nothing():
    result = overlap(np.array([0, 1, 1, 0]), np.full((4, 2), 0.5))
    assert (result.smallest, result.share_beyond, result.effective_share) == (0.5, 0, 1)


def test_a_principal_that_knows_costs_rows():
    y = np.array([0, 1] * 50)
    principal = np.tile([[0.98, 0.02], [0.02, 0.98]], (50, 1))
    principal[0] = [0.02, 0.98]
    result = overlap(y, principal)
    assert result.smallest == pytest.approx(0.02)
    assert result.share_beyond == 1
    weights = 0.5 / np.where(np.arange(100) == 0, 0.02, 0.98)
    assert result.effective_share == pytest.approx(weights.sum() ** 2 / (weights**2).sum() / 100)
    assert overlap(y, principal, factor=30).share_beyond == 0


def test_a_zero_at_the_own_label_leaves_nothing():
    result = overlap(np.array([0, 1]), np.array([[0.0, 1.0], [0.5, 0.5]]))
    assert result.smallest == 0 and np.isnan(result.effective_share)


def test_small_cells_come_smallest_first():
    counts = np.array([[5, 40], [2, 0]])
    cells = small_cells(counts, ["a", "b"], ["n", "y"], below=10)
    assert cells == (Cell("b", "y", 0), Cell("b", "n", 2), Cell("a", "n", 5))
    assert small_cells(counts, ["a", "b"], ["n", "y"], below=0) == ()


def test_a_correction_counts_from_beyond_the_factor():
    y = np.array([0, 1, 0, 1])
    at = np.array([[0.95, 0.05], [0.5, 0.5], [0.04, 0.96], [0.5, 0.5]])
    # 0.5 / 0.05 is ten, which is not beyond ten
    assert overlap(y, at).share_beyond == 0.25 and overlap(y, at).factor == 10
    assert overlap(y, at, factor=9.9).share_beyond == 0.5
    # the labels' frequencies are the prior
    uneven = overlap(np.array([0, 0, 0, 1]), np.full((4, 2), [0.92, 0.08]), factor=3)
    assert uneven.share_beyond == 1 and overlap(y, np.full((4, 2), [0.92, 0.08]), factor=7).share_beyond == 0


def test_more_classes():
    rng = np.random.default_rng(0)
    y, principal = rng.integers(3, size=60), rng.dirichlet(np.full(3, 4.0), size=60)
    result = overlap(y, principal)
    prior = np.bincount(y) / 60
    weights = prior[y] / principal[np.arange(60), y]
    assert result.effective_share == pytest.approx(weights.sum() ** 2 / (weights**2).sum() / 60)
    assert result.smallest == principal.min()
    assert result.share_beyond == np.mean([(prior / row > 10).any() for row in principal])


def test_a_cell_is_small_below_the_limit():
    cells = small_cells(np.array([[30, 29], [31, 28]]), ["a", "b"], ["n", "y"], below=30)
    assert cells == (Cell("b", "y", 28), Cell("a", "y", 29))

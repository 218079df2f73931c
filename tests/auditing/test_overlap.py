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

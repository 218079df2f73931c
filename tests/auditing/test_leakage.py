"""The leakage test is exact where nothing leaks, sees what leaks, and its bits are the information."""

import numpy as np
import pytest
from scipy.special import expit, xlogy
from scipy.stats import binomtest

from setminus.auditing import leakage as leakage_module
from setminus.auditing.leakage import leakage, score_cells


def test_orthogonal_tells_nothing_where_full_tells(exact):
    rows = exact(5000, 0)
    orthogonal = leakage(rows.y, rows.orthogonal, sensitive_features=rows.group)
    full = leakage(rows.y, rows.full, sensitive_features=rows.group)
    assert orthogonal.bits < 0.02 < full.bits
    assert full.p_value < 0.01 < orthogonal.p_value
    assert abs(orthogonal.auc - 0.5) < 0.03 < full.auc - 0.5


@pytest.mark.parametrize("n", [80, 500])
def test_type_one_error_is_alpha(exact, n):
    p_values = []
    for seed in range(400):
        rows = exact(n, seed)
        result = leakage(rows.y, rows.orthogonal, sensitive_features=rows.group, n_permutations=99, random_state=seed)
        p_values.append(result.p_value)
    for alpha in (0.05, 0.2, 0.5):
        rejected = int((np.array(p_values) <= alpha).sum())
        assert binomtest(rejected, 400, alpha).pvalue > 0.001


def test_type_one_error_with_more_classes_and_groups():
    p_values = []
    for seed in range(150):
        rng = np.random.default_rng([seed, 3])
        y = rng.integers(3, size=300)
        group = (y + rng.integers(3, size=300) * rng.integers(2, size=300)) % 3
        proba = rng.dirichlet(np.ones(3), size=300) + np.eye(3)[y]
        result = leakage(y, proba / 2, sensitive_features=group, n_permutations=49, random_state=seed)
        p_values.append(result.p_value)
    assert binomtest(int((np.array(p_values) <= 0.1).sum()), 150, 0.1).pvalue > 0.001


def test_power(exact):
    """A full score is told from an orthogonal one with 300 rows, nearly always."""
    found = sum(
        leakage(rows.y, rows.full, sensitive_features=rows.group, n_permutations=99).p_value <= 0.05
        for rows in (exact(300, seed) for seed in range(40))
    )
    assert found >= 38


def test_bits_are_the_conditional_information():
    """A score with four values: I(score; z1 | y) by hand from its table."""
    rng = np.random.default_rng(0)
    score_given = np.array([[[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]], [[0.25] * 4, [0.1, 0.4, 0.4, 0.1]]])
    y, z1 = rng.integers(2, size=(2, 40_000))
    level = (rng.uniform(size=(40_000, 1)) > score_given[y, z1].cumsum(axis=1)).sum(axis=1)
    joint = score_given / 4
    given_y = joint.sum(axis=1, keepdims=True) * joint.sum(axis=2, keepdims=True)
    information = xlogy(joint, joint * 0.5 / given_y).sum() / np.log(2)
    result = leakage(y, level / 3, sensitive_features=z1)
    assert result.n_cells == 4
    assert result.bits == pytest.approx(information, abs=0.005)
    assert result.share == pytest.approx(information, abs=0.005)


def test_a_score_that_is_the_group_tells_all_there_is():
    """Then bits = H(z1 | y), by hand from uneven shares, the area is one and no permutation does as well."""
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=40_000) < 0.3).astype(int)
    given_y = np.array([[0.2, 0.8], [0.9, 0.1]])
    z1 = (rng.uniform(size=40_000) > given_y[y, 0]).astype(int)
    entropy = -np.array([0.7, 0.3]) @ (given_y * np.log2(given_y)).sum(axis=1)
    result = leakage(y, 0.1 + 0.5 * z1, sensitive_features=z1, n_permutations=50)
    assert result.bits == pytest.approx(entropy, abs=0.01)
    assert result.share == pytest.approx(1, abs=0.01)
    assert result.auc == 1
    assert result.p_value == 1 / 51 and result.n_permutations == 50 and result.n_cells == 2


def test_the_area_is_that_of_the_pairs():
    """A score of three levels: P(larger) + P(equal) / 2 between groups of one label, by hand."""
    rng = np.random.default_rng(0)
    y, z1 = rng.integers(2, size=(2, 60_000))
    level_given = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    level = (rng.uniform(size=(60_000, 1)) > level_given[z1].cumsum(axis=1)).sum(axis=1)
    low, high = level_given
    area = sum(high[i] * low[j] * (1.0 if i > j else 0.5 if i == j else 0.0) for i in range(3) for j in range(3))
    assert leakage(y, level / 4, sensitive_features=z1, n_permutations=5).auc == pytest.approx(area, abs=0.005)


def test_cells_are_the_cube_root_of_the_rows_within_limits():
    rng = np.random.default_rng(0)
    for n, expected in [(5, 2), (1000, 10), (8000, 20), (100_000, 32)]:
        score = rng.uniform(size=n)
        cells = score_cells(np.column_stack([1 - score, score]))
        assert cells.max() + 1 == expected
        sizes = np.bincount(cells)
        assert sizes.max() - sizes.min() <= 1
        # in the order of the score
        assert (np.diff(cells[np.argsort(score)]) >= 0).all()


def test_cells_of_more_classes_are_clusters():
    rng = np.random.default_rng(0)
    centres = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]])
    which = rng.integers(4, size=12_000)
    proba = centres[which] + rng.uniform(-0.01, 0.01, size=(12_000, 1)) * [1, -1, 0]
    cells = score_cells(proba, 4)
    assert {len(np.unique(cells[which == k])) for k in range(4)} == {1}
    assert np.array_equal(np.unique(cells), np.arange(4))
    # no more cells than different rows
    assert score_cells(centres[which], 10).max() + 1 == 4
    assert score_cells(np.tile(centres[0], (50, 1)), 10).max() == 0


def test_dependence_without_a_shift_is_seen():
    """z1 changes the spread of the score, not its mean: no rank test on the score would see it."""
    rng = np.random.default_rng(0)
    y, z1 = rng.integers(2, size=(2, 4000))
    result = leakage(y, expit(y - 0.5 + rng.normal(size=4000) * (1 + 2 * z1)), sensitive_features=z1)
    assert result.p_value < 0.01 and result.bits > 0.02 and result.auc > 0.55


def test_what_y_explains_is_no_leakage():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3000)
    z1 = np.where(rng.uniform(size=3000) < 0.9, y, 1 - y)
    assert leakage(y, 0.2 + 0.6 * y, sensitive_features=z1).p_value > 0.05
    assert leakage(y, 0.2 + 0.6 * z1, sensitive_features=z1).share > 0.9


def test_constant_score_and_lone_groups():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    constant = leakage(y, np.full(200, 0.3), sensitive_features=rng.integers(2, size=200))
    # one cell alone gains exactly nothing
    assert constant.bits == pytest.approx(0, abs=1e-12) and constant.p_value == 1
    assert constant.share == pytest.approx(0, abs=1e-12) and constant.auc == 0.5 and constant.n_cells == 1
    lone = leakage(y, rng.uniform(size=200), sensitive_features=["a"] * 199 + ["b"])
    assert np.isfinite([lone.bits, lone.auc, lone.share]).all()


def test_same_seed_same_answer_other_seed_other_folds(exact):
    rows = exact(500, 0)
    first, again, other = (
        leakage(rows.y, rows.full, sensitive_features=rows.group, random_state=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_cells_keep_equal_scores_together():
    rng = np.random.default_rng(0)
    score = rng.choice([0.0, 0.1, 0.1001, 0.5, 0.9], p=[0.7, 0.1, 0.1, 0.05, 0.05], size=500)
    for n_cells in (2, 3, 10):
        cells = score_cells(np.column_stack([1 - score, score]), n_cells)
        assert {len(np.unique(cells[score == value])) for value in np.unique(score)} == {1}
        assert np.array_equal(np.unique(cells), np.arange(cells.max() + 1))
        assert cells.max() + 1 <= n_cells
    proba = rng.dirichlet(np.ones(4), size=300)
    np.testing.assert_array_equal(score_cells(proba), score_cells(proba))


def test_refusals(exact):
    rows = exact(50, 0)
    with pytest.raises(ValueError, match="n_permutations is 0"):
        leakage(rows.y, rows.full, sensitive_features=rows.group, n_permutations=0)
    with pytest.raises(ValueError, match="n_folds 1"):
        leakage(rows.y, rows.full, sensitive_features=rows.group, n_folds=1)
    with pytest.raises(ValueError, match="n_cells is 1"):
        leakage(rows.y, rows.full, sensitive_features=rows.group, n_cells=1)


@pytest.mark.parametrize(("n", "fitted"), [(4000, 4000), (5001, 5001), (10_000, 5000), (23_000, 5750)])
def test_the_cells_of_many_rows_are_found_on_an_even_pick_of_them(n, fitted, monkeypatch):
    """k-means looks at 5,000 to 10,000 rows, from the first to the last; every row gets a cell."""
    seen = []

    class Watched(leakage_module.KMeans):
        def fit(self, X, y=None, sample_weight=None):
            seen.append(X.copy())
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(leakage_module, "KMeans", Watched)
    rng = np.random.default_rng(0)
    # sorted by the score: a pick of the first rows only would know one end of it
    first = np.sort(rng.uniform(0.05, 0.9, size=n))
    proba = np.column_stack([first, (1 - first) / 2, (1 - first) / 2])
    cells = score_cells(proba)
    assert [len(rows) for rows in seen] == [fitted]
    np.testing.assert_array_equal(seen[0], proba[:: n // fitted])
    assert len(cells) == n
    counts = np.bincount(cells)
    assert counts.min() > 0.2 * counts.mean()


def test_what_leaks_of_many_rows_and_classes():
    rng = np.random.default_rng(0)
    n = 12_000
    y, group = rng.integers(3, size=n), rng.integers(2, size=n)
    score = np.eye(3)[y] + rng.normal(size=(n, 3))
    silent, tells = (np.exp(s) / np.exp(s).sum(axis=1, keepdims=True) for s in (score, score + np.eye(3)[group]))
    found, control = (leakage(y, proba, sensitive_features=group) for proba in (tells, silent))
    assert control.bits < 0.01 < 0.05 < found.bits
    assert found.p_value < 0.01 < control.p_value


def test_bits_by_hand():
    """The cross-fitted gain of the docstrings, row by row: shrunken shares of the other folds, in loops."""
    rng = np.random.default_rng(0)
    n, n_folds, n_groups = 60, 3, 3
    y, group = rng.integers(2, size=n), rng.integers(n_groups, size=n)
    score = rng.choice([0.1, 0.4, 0.7], size=n)
    proba = np.column_stack([1 - score, score])
    found = leakage_module.leakage_from_codes(y, proba, group, n_folds=n_folds, n_cells=3, n_permutations=1)
    folds = leakage_module._folds(y, n_folds, np.random.default_rng(0))
    cells = np.unique(score, return_inverse=True)[1]
    # four rows of the share without the score
    shrinkage, bits = 4.0, 0.0
    for i in range(n):
        others = (y == y[i]) & (folds != folds[i])

        def weights(cell, others=others):
            rows = others & (cells == cell)
            # half a row of each group, spread over the cells as their rows are
            spread = 0.5 * (rows.sum() + 1 / 3) / (others.sum() + 1)
            return np.array([(rows & (group == g)).sum() + spread for g in range(n_groups)])

        base = sum(weights(cell) for cell in range(3))
        base = base / base.sum()
        here = weights(cells[i])
        fitted = (here + shrinkage * base) / (here.sum() + shrinkage)
        bits += np.log2(fitted[group[i]] / base[group[i]])
    assert found.bits == pytest.approx(bits / n, abs=1e-12)


def test_as_many_values_as_cells_are_kept_apart():
    score = np.array([0.1] * 10 + [0.2, 0.3])
    cells = score_cells(np.column_stack([1 - score, score]), n_cells=3)
    assert cells.tolist() == [0] * 10 + [1, 2]

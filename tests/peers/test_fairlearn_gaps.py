"""Where Fairlearn defines the same number, ours is the same number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.core.gaps import demographic_parity_gap, equal_opportunity_gap, equalized_odds_gap

metrics = pytest.importorskip("fairlearn.metrics")


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n_groups=st.integers(2, 5),
    n=st.integers(0, 60),
    weighted=st.booleans(),
)
def test_equal_to_fairlearn(seed, n_groups, n, weighted):
    rng = np.random.default_rng(seed)
    # one row in each (group, label) cell: beyond that Fairlearn fills in zeros and we refuse
    y = np.concatenate([np.tile([0, 1], n_groups), rng.integers(2, size=n)])
    group = np.concatenate([np.repeat(np.arange(n_groups), 2), rng.integers(n_groups, size=n)])
    prediction = rng.integers(2, size=len(y))
    weight = rng.uniform(0.1, 5, size=len(y)) if weighted else None
    options = {"sensitive_features": group, "sample_weight": weight}
    for ours, theirs in [
        (demographic_parity_gap, metrics.demographic_parity_difference),
        (equalized_odds_gap, metrics.equalized_odds_difference),
        (equal_opportunity_gap, metrics.equal_opportunity_difference),
    ]:
        assert ours(y, prediction, **options) == pytest.approx(theirs(y, prediction, **options), abs=1e-12)


def test_the_sum_is_another_number():
    """The negative control: the paper's Delta_EO is not Fairlearn's."""
    y, prediction, group = [1, 1, 0, 0, 1, 1, 0, 0], [1, 0, 0, 0, 1, 1, 1, 0], [0] * 4 + [1] * 4
    theirs = metrics.equalized_odds_difference(y, prediction, sensitive_features=group)
    assert equalized_odds_gap(y, prediction, sensitive_features=group, agg="sum") == 2 * theirs == 1.0

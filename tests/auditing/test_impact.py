"""Selection rates and impact ratios: by hand, by enumeration, and with unknown and small groups."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from scipy.stats.contingency import relative_risk

from setminus import audit
from setminus.auditing.impact import impact_tables, ratio_interval
from setminus.errors import UserError


def coverage(n, p, n_base, p_base, interval):
    """How often the interval holds the true ratio, over all tables that can occur with a reference above 0."""
    held = 0.0
    for x, likely in enumerate(binom.pmf(range(n + 1), n, p)):
        for x_base, likely_base in enumerate(binom.pmf(range(n_base + 1), n_base, p_base)):
            if x_base and likely * likely_base > 1e-7:
                low, high = interval(x, n, x_base, n_base)
                held += likely * likely_base * (low <= p / p_base <= high)
    return held / (1 - binom.pmf(0, n_base, p_base))


def koopman(x, n, x_base, n_base):
    found = ratio_interval(x / n, n, x_base / n_base, n_base)
    return found.low, found.high


def usual(x, n, x_base, n_base):
    """The interval on the log scale, which has no width where nobody or everybody is selected."""
    if x in (0, n) and x_base in (0, n_base):
        return x / n / (x_base / n_base), x / n / (x_base / n_base)
    low, high = relative_risk(x, n, x_base, n_base).confidence_interval(0.95)
    return low, high


def test_the_interval_is_that_of_the_article():
    found = ratio_interval(36 / 40, 40, 16 / 80, 80)
    assert (round(found.low, 2), round(found.high, 2)) == (2.94, 7.15)


@pytest.mark.parametrize(
    ("n", "p", "n_base", "p_base"), [(20, 0.2, 30, 0.3), (15, 0.05, 15, 0.5), (40, 0.5, 20, 0.9), (30, 0.1, 90, 0.12)]
)
def test_the_interval_holds_the_true_ratio(n, p, n_base, p_base):
    assert 0.93 < coverage(n, p, n_base, p_base, koopman) < 0.98


def test_the_usual_interval_would_not():
    """The control: near the borders the simulation can tell."""
    assert coverage(15, 0.9, 15, 0.97, usual) < 0.9 < coverage(15, 0.9, 15, 0.97, koopman)


def test_borders_have_limits():
    assert ratio_interval(0.0, 10, 0.5, 10).low == 0 < ratio_interval(0.0, 10, 0.5, 10).high < 1
    every = ratio_interval(1.0, 10, 1.0, 10)
    assert every.low < every.value == 1 < every.high
    assert np.isnan(ratio_interval(0.0, 10, 0.0, 10).value)


@pytest.fixture(scope="module")
def people():
    """400 rows; 60 % and 30 % are selected by sex; a rare race of which all are selected, and unknown ones."""
    sex = np.repeat(["m", "f"], 200).astype(object)
    race = np.tile(["a", "b"], 200).astype(object)
    chosen = np.concatenate([np.arange(200) < 120, np.arange(200) < 60])
    race[:5], chosen[:5] = "c", True
    sex[-10:], race[-4:] = None, None
    return pd.DataFrame({"sex": sex, "race": race}), chosen


def test_rates_ratios_and_counts_are_those_by_hand(people):
    frame, chosen = people
    sex, race, crossed = audit(y_pred=chosen, sensitive_features=frame).impact
    assert [sex.attribute, race.attribute, crossed.attribute] == ["sex", "race", "sex x race"]
    assert (sex.n_unknown, race.n_unknown, crossed.n_unknown) == (10, 4, 10)
    women, men = sex.rows
    assert (women.group, women.n, women.selected) == ("f", 190, 60) and (men.n, men.selected) == (200, 120)
    assert women.impact_ratio.value == pytest.approx((60 / 190) / 0.6) and women.below_four_fifths
    assert sex.reference == "m" and men.impact_ratio.value == 1 and not men.below_four_fifths
    assert women.impact_ratio.low < women.impact_ratio.value < women.impact_ratio.high < 0.8
    for table in (sex, race, crossed):
        assert sum(row.n for row in table.rows) + table.n_unknown == len(frame)
        assert sum(row.share for row in table.rows) == pytest.approx(1)


def test_a_small_group_is_counted_and_compared_with_nothing(people):
    frame, chosen = people
    (table,) = impact_tables(chosen, {"race": frame["race"]})
    small = table.rows[2]
    assert (small.group, small.n, small.selected, small.left_out) == ("c", 5, 5, True)
    assert np.isnan(small.impact_ratio.value) and small.below_four_fifths is None and table.reference != "c"
    # the control: compared, a handful of rows would be the measure of all others
    (all_of_them,) = impact_tables(chosen, {"race": frame["race"]}, min_share=0)
    assert all_of_them.reference == "c" and all_of_them.rows[0].impact_ratio.value < 0.6


def test_the_ratio_is_of_the_favourable_class():
    y_pred, group = np.repeat(["no", "yes", "no", "yes"], [10, 30, 30, 10]), np.repeat(["f", "m"], 40)
    ratios = {
        favorable: [row.impact_ratio.value for row in impact.rows]
        for favorable in ("no", "yes")
        for impact in audit(y_pred=y_pred, sensitive_features=group, favorable_label=favorable).impact
    }
    assert ratios["yes"] == [1, pytest.approx(1 / 3)] and ratios["no"] == [pytest.approx(1 / 3), 1]
    assert audit(y_pred=y_pred, sensitive_features=group).impact[0].reference == "f"
    with pytest.raises(UserError, match="favorable_label is 'maybe'"):
        audit(y_pred=y_pred, sensitive_features=group, favorable_label="maybe")


def test_more_classes_need_a_favourable_one():
    y_pred, group = np.tile(["a", "b", "c"], 20), np.repeat(["f", "m"], 30)
    assert audit(y_pred=y_pred, sensitive_features=group).impact == ()
    (table,) = audit(y_pred=y_pred, sensitive_features=group, favorable_label="b").impact
    assert [row.selected for row in table.rows] == [10, 10]


def test_scores_decide_for_all_rows_and_weights_count():
    rng = np.random.default_rng(0)
    y, sex = rng.integers(2, size=300), rng.choice(["f", "m"], 300).astype(object)
    proba, weight = rng.random(300), rng.integers(1, 4, size=300)
    race = rng.choice(["a", "b"], 300)
    sex[:30] = None
    found = audit(
        y,
        proba,
        sensitive_features=sex,
        attributes={"sex": sex, "race": race},
        threshold=0.7,
        sample_weight=weight,
        n_permutations=2,
    )
    by_sex, by_race = found.impact
    assert (by_sex.n_unknown, by_race.n_unknown) == (30, 0)
    row, own = by_race.rows[0], race == "a"
    assert row.selected == (proba[own] >= 0.7).sum()
    assert row.selection_rate.value == pytest.approx(np.average(proba[own] >= 0.7, weights=weight[own]))
    assert found.to_dict()["impact"][1]["rows"][0]["selected"] == row.selected


def test_nobody_selected_has_no_ratio():
    (table,) = impact_tables(np.zeros(20, bool), {"sex": ["f", "m"] * 10})
    assert all(np.isnan(row.impact_ratio.value) and row.below_four_fifths is None for row in table.rows)


def test_scoring_rates_are_the_shares_above_the_median_of_all_rows():
    rng = np.random.default_rng(0)
    sex = np.array(["f"] * 60 + ["m"] * 140 + [None] * 11, dtype=object)
    score = np.clip(rng.normal(np.where(sex == "f", 0.4, 0.5), 0.1), 0, 1)
    found = audit(None, score, sensitive_features=sex, threshold=0.9)
    (table,), median = found.scoring, np.median(score)
    by_hand = {group: (score[sex == group] > median).mean() for group in ("f", "m")}
    assert {row.group: row.selection_rate.value for row in table.rows} == pytest.approx(by_hand)
    assert found.median_score == median and table.n_unknown == 11
    # not the selection rates
    assert found.impact[0].rows[0].selection_rate.value < 0.05 < by_hand["f"] < by_hand["m"]
    assert audit(y_pred=score > 0.5, sensitive_features=sex).scoring == ()

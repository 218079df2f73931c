"""The tuned classifier with groups as data have them: small, missing, cut at given edges, and several of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression

import setminus
from setminus import GroupPrincipal, ProxyPrincipal, TunedOrthogonalClassifier, equalized_odds_gap
from setminus.core.gaps import equalized_odds_from_table
from setminus.errors import UserError
from setminus.estimators.frontier import OPTIMISM

QUICK = {
    "cv": 2,
    "strengths": [0.0, 0.5, 1.0],
    "group_offsets": False,
    "confidence": None,
    "min_lead": 0.0,
    "min_rate_ratio": 0.0,
}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 1200
    race = rng.choice(["a", "b"], n).astype(object)
    race[:12], race[12:14] = "c", "d"
    age = rng.integers(20, 80, n)
    y = (rng.normal(size=n) + (race == "a") + 0.5 * (age >= 40) > 0.8).astype(int)
    x = np.column_stack([y + rng.normal(size=n), (race == "a") + 0.3 * rng.normal(size=n)])
    race[rng.random(n) < 0.1] = None
    return x, y, pd.DataFrame({"race": race, "age": age})


def fitted(people, groups, principal=None, **options):
    x, y, _ = people
    model = TunedOrthogonalClassifier(LogisticRegression(), principal, **{**QUICK, "tolerance": 0.1, **options})
    return model.fit(x, y, sensitive_features=groups)


@pytest.mark.parametrize("principal", [GroupPrincipal(), ProxyPrincipal(LogisticRegression(), method="mixture")])
def test_small_and_missing_groups_train_and_do_not_count_in_the_gap(people, principal, tmp_path):
    x, y, groups = people
    race = groups["race"]
    with pytest.warns(UserWarning, match="rows have no race: they train the model and count in no gap"):
        model = fitted(people, race, principal, min_group_size=20, small_groups="drop")
    assert model.groups_.names == ["a", "b"] and model.groups_.crossed.dropped.keys() == {"c", "d"}
    # the gap is that of rows with a group: the others are as if they were not there
    keyword = {"sensitive_features": race} if isinstance(principal, GroupPrincipal) else {}
    decisions = model.predict(x, **keyword)
    inside = race.isin(["a", "b"]).to_numpy()
    assert equalized_odds_gap(y[inside], decisions[inside], sensitive_features=race[inside]) < 0.2
    again = setminus.load(setminus.save(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.predict(x, **keyword), decisions)


@pytest.mark.filterwarnings("ignore:.*train the model:UserWarning")
def test_a_group_is_missed_only_where_the_constraint_needs_it(people):
    x, y, groups = people
    lacks = np.where((groups["race"] == "b") & (y == 1), 0, y)
    model = TunedOrthogonalClassifier(LogisticRegression(), constraint="demographic_parity", min_group_size=20, **QUICK)
    model.fit(x, lacks, sensitive_features=groups["race"])
    assert "b" in model.groups_.names
    with pytest.raises(ValueError, match="fewer than two groups have enough rows"):
        model.set_params(constraint="equalized_odds", min_group_size=20).fit(
            x, lacks, sensitive_features=groups["race"]
        )
    with pytest.raises(ValueError, match="groups with too few rows"):
        model.set_params(small_groups="raise").fit(x, lacks, sensitive_features=groups["race"])


@pytest.mark.filterwarnings("ignore:.*(train the model|merged):UserWarning")
def test_each_attribute_is_within_the_tolerance_and_the_crossing_where_asked(people):
    _, _, groups = people
    found = {}
    for over in ("each", "both"):
        model = fitted(people, groups, constraint_over=over, bins={"age": [40]}, min_group_size=20)
        frontier = model.frontier_
        found[over] = model.groups_.titles
        assert frontier.gap[frontier.chosen] <= 0.1 or model.warnings_
        by_cell = frontier.tables[frontier.chosen]
        gaps = [equalized_odds_from_table(table) for _, _, table in model.groups_.each(by_cell)]
        assert frontier.gap[frontier.chosen] == pytest.approx(max(gaps))
    assert found == {"each": ["race", "age"], "both": ["race", "age", "race x age"]}


@pytest.mark.filterwarnings("ignore:.*(train the model|strength):UserWarning")
def test_the_favourable_label_is_the_one_that_equal_opportunity_compares(people):
    x, y, groups = people
    names = np.where(y == 1, "denied", "granted")
    race = groups["race"].where(groups["race"].isin(["a", "b"]), None)
    gaps = {}
    for favorable in ("granted", "denied"):
        model = TunedOrthogonalClassifier(
            LogisticRegression(), constraint="equal_opportunity", favorable_label=favorable, tolerance=0.02, **QUICK
        ).fit(x, names, sensitive_features=race)
        frontier = model.frontier_
        table = model.groups_.table(frontier.tables[frontier.untouched])
        gaps[favorable] = float(frontier.gap[frontier.untouched])
        at = ["denied", "granted"].index(favorable)
        recall = table[:, at, at] / table[:, at].sum(axis=1)
        assert gaps[favorable] == pytest.approx(np.ptp(recall))
    assert abs(gaps["granted"] - gaps["denied"]) > 0.01, "otherwise the two could not be told apart"
    with pytest.raises(ValueError, match=r"favorable_label is 'given', y holds .*: name one of these\.$"):
        model.set_params(favorable_label="given").fit(x, names, sensitive_features=race)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_certificate_over_several_groupings_holds_for_each(people):
    _, _, groups = people
    model = fitted(
        people, groups, constraint_over="each", bins={"age": [40]}, min_group_size=20, confidence=0.9, tolerance=0.3
    )
    one = fitted(people, groups["race"], min_group_size=20, confidence=0.9, tolerance=0.3)
    assert model.certificate_ is not None and model.frontier_.candidates.members is not None
    candidates = model.frontier_.candidates
    for i in range(0, len(candidates.points), 4):
        level = 0.1 / OPTIMISM  # the rows of the search test their own choice
        each = [setminus.certify(table, tolerance=0.3, confidence=1 - level).bound for table, _ in candidates.counts(i)]
        assert candidates.certificate(i, 0.3, 0.9, "equalized_odds", "max", certified=True).bound == pytest.approx(
            max(each)
        )
    assert len(one.groups_.members_each) == 1


def test_a_model_with_offsets_by_group_asks_for_the_groups(people):
    x, _, groups = people
    race = np.where(groups["race"] == "a", "a", "b")
    model = fitted(people, race, tolerance=0.02, group_offsets=True, levelling="up")
    direction = model.frontier_.direction[model.frontier_.chosen]
    np.testing.assert_array_equal(model.group_offsets_, model.frontier_.directions[direction])
    with pytest.raises(ValueError, match=r"needs the groups at predict time: pass sensitive_features="):
        model.predict(x)
    with pytest.raises(ValueError, match=r"unseen group 'z' in 1200 rows"):
        model.predict(x, sensitive_features=["z"] * len(x))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_said_of_the_chosen_decision(people):
    race = np.where(people[2]["race"] == "a", "a", "b")

    def said(**options):
        return " ".join(fitted(people, race, **options).warnings_)

    # 1 is the label whose recall counts, unless the other one is favourable
    assert "the recall of 1 falls by up to 0.7" in said(tolerance=0.02)
    assert "the recall of 1 falls by up to 0.7" in said(tolerance=0.02, favorable_label=1)
    assert said(tolerance=0.02, favorable_label=0) == ""
    # what lies beyond the largest strength is unknown only where that one was chosen
    assert said(tolerance=0.1) == "the chosen strength 1 is the largest that was tried: try larger strengths."
    assert "the chosen strength 0.5 is the largest" in said(tolerance=0.1, strengths=0.5)
    assert said(tolerance=0.1, strengths=None) == ""
    assert "no useful decision keeps the equalized odds gap within 0 out" in said(
        tolerance=0.0, strengths=[0.0], min_lead=0.9
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_settings_reach_the_classifier_inside(people):
    race = np.where(people[2]["race"] == "a", "a", "b")
    options = {"calibration": "sigmoid", "prior": "uniform", "on_violation": "clip", "principal_columns": [0]}
    inside = fitted(people, race, **options).model_
    assert {name: getattr(inside, name) for name in options} == options
    assert isinstance(inside.full_, CalibratedClassifierCV)


def unequally_told(rows, seed):
    """One feature that separates the labels by three deviations in group a and by one in group b."""
    rng = np.random.default_rng(seed)
    y, group = rng.integers(0, 2, rows), rng.choice(["a", "b"], rows)
    x = (2 * y - 1) * np.where(group == "a", 1.5, 0.5) + rng.normal(size=rows)
    return np.column_stack([x, x * (group == "a"), group == "a"]), y, group


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_bands_reach_equal_rates_that_no_thresholds_reach():
    """Group a's ROC curve lies above group b's: equal rates are a chord of it, or a constant decision."""
    (X, y, group), (new, truth, of) = unequally_told(12000, 0), unequally_told(12000, 1)
    accuracy, gap, answers = {}, {}, {}
    for bands in (False, True):
        model = TunedOrthogonalClassifier(
            LogisticRegression(), GroupPrincipal(interpolate=bands), tolerance=0.02, confidence=None, min_lead=0.0
        )
        model.set_params(min_rate_ratio=0.0).fit(X, y, sensitive_features=group)
        answers[bands] = model.predict(new, sensitive_features=of)
        accuracy[bands] = (answers[bands] == truth).mean()
        gap[bands] = equalized_odds_gap(truth, answers[bands], sensitive_features=of)
    # the optimum is the accuracy of group b alone, Phi(0.5) = 0.69
    assert accuracy[False] < 0.6 < 0.67 < accuracy[True] < 0.72
    assert gap[True] < 0.05
    np.testing.assert_array_equal(model.predict(new, sensitive_features=of), answers[True])
    # the order of the rows, and what stands beside them, change no decision
    one = model.predict(new[17:18], sensitive_features=of[17:18])
    assert one[0] == answers[True][17]


def test_bands_are_for_two_classes():
    X, y, group = unequally_told(300, 0)
    with pytest.raises(UserError, match="there are 3 classes: expected two: interpolate"):
        GroupPrincipal(interpolate=True).fit(X, y + (X[:, 0] > 2), sensitive_features=group)

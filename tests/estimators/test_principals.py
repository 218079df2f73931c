import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from setminus import GroupPrincipal, OrthogonalClassifier, ProxyPrincipal


class TestGroupPrincipal:
    def test_counts(self, rows):
        principal = GroupPrincipal(smoothing=0).fit(None, rows.y, sensitive_features=rows.sex)
        expected = [rows.y[rows.sex == sex].mean() for sex in ("f", "m")]
        np.testing.assert_allclose(principal.group_proba_[:, 1], expected)
        assert principal.groups_.labels == ["f", "m"]

    def test_smoothing_draws_small_groups_to_the_whole(self):
        group, y = np.repeat(["a", "b"], [2, 1000]), np.r_[0, 1, np.arange(1000) % 10 == 0]
        proba = GroupPrincipal(smoothing=98).fit(None, y, sensitive_features=group).group_proba_[:, 1]
        assert proba[0] == pytest.approx((1 + 98 * y.mean()) / 100)
        assert proba[1] == pytest.approx(0.1, abs=0.001)

    def test_columns_are_crossed(self, rows):
        frame = pd.DataFrame({"sex": rows.sex, "old": rows.X[:, 2] > 0})
        principal = GroupPrincipal().fit(None, rows.y, sensitive_features=frame)
        assert len(principal.groups_.labels) == 4
        one = frame.iloc[[0]]
        mask = (frame == one.iloc[0]).all(axis=1)
        found = principal.predict_proba(None, sensitive_features=one)[0, 1]
        assert found == pytest.approx(rows.y[mask].mean(), abs=0.01)

    def test_numbers_are_cut_at_quantiles(self, rows):
        principal = GroupPrincipal(n_bins=4).fit(None, rows.y, sensitive_features=rows.X[:, 0])
        assert len(principal.groups_.labels) == 4
        assert principal.groups_.labels[0].startswith("below")
        proba = principal.predict_proba(None, sensitive_features=[-100.0, 100.0])
        assert proba[0, 1] < 0.45 < 0.8 < proba[1, 1]

    def test_a_bin_without_a_class_is_no_bin(self):
        y = (np.arange(100) >= 50).astype(int)
        principal = GroupPrincipal().fit(None, y, sensitive_features=np.arange(100.0))
        assert principal.groups_.labels == ["all"]

    def test_unseen_group_is_named_never_guessed(self, rows):
        principal = GroupPrincipal().fit(None, rows.y, sensitive_features=rows.sex)
        with pytest.raises(ValueError, match=r"unseen group 'x' in 2 rows: at fit time there were 'f', 'm'"):
            principal.predict_proba(None, sensitive_features=["f", "x", "x"])
        lenient = GroupPrincipal(unseen="prior").fit(None, rows.y, sensitive_features=rows.sex)
        np.testing.assert_allclose(
            lenient.predict_proba(None, sensitive_features=["x"]), [np.bincount(rows.y) / len(rows.y)]
        )

    def test_unseen_combination_is_named(self):
        sex, old = np.tile(["f", "m"], 50), np.repeat(["old", "young"], 50)
        frame = pd.DataFrame({"sex": sex, "old": old})[~((sex == "f") & (old == "old"))]
        principal = GroupPrincipal().fit(None, np.arange(len(frame)) // 2 % 2, sensitive_features=frame)
        with pytest.raises(ValueError, match="unseen group 'f, old'"):
            principal.predict_proba(None, sensitive_features=pd.DataFrame({"sex": ["f"], "old": ["old"]}))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"smoothing": -1}, "smoothing is -1"),
            ({"smoothing": np.inf}, "smoothing is inf: expected a finite number"),
            ({"n_bins": 1}, "n_bins is 1: expected at least 2"),
            ({"unseen": "skip"}, "unseen is 'skip'"),
        ],
    )
    def test_parameters(self, rows, change, message):
        with pytest.raises(ValueError, match=message):
            GroupPrincipal(**change).fit(None, rows.y, sensitive_features=rows.sex)

    def test_no_rows_at_all(self):
        with pytest.raises(ValueError, match="y has no rows"):
            GroupPrincipal().fit(None, [], sensitive_features=[])

    def test_rows_of_x_and_groups_must_agree(self, rows):
        with pytest.raises(ValueError, match="X has 10 rows, sensitive_features 3000"):
            GroupPrincipal().fit(rows.X[:10], rows.y, sensitive_features=rows.sex)
        with pytest.raises(ValueError, match="columns, it had 1 at fit time"):
            GroupPrincipal().fit(None, rows.y, sensitive_features=rows.sex).predict_proba(
                None, sensitive_features=rows.X[:, :2]
            )


class TestProxyPrincipal:
    def test_mixture_is_the_average_over_the_groups(self, rows):
        proxy = ProxyPrincipal(LogisticRegression()).fit(rows.X, rows.y, sensitive_features=rows.sex)
        attribute = LogisticRegression().fit(rows.X, rows.sex).predict_proba(rows.X)
        counts = GroupPrincipal().fit(None, rows.y, sensitive_features=rows.sex).group_proba_
        np.testing.assert_allclose(proxy.predict_proba(rows.X), attribute @ counts)

    def test_score_is_calibrated_and_no_wider_than_what_the_group_says(self, rows):
        proxy = ProxyPrincipal(LogisticRegression(), method="score").fit(rows.X, rows.y, sensitive_features=rows.sex)
        proba = proxy.predict_proba(rows.X)[:, 1]
        for low, high in ((0, 0.5), (0.5, 1)):
            inside = (proba >= low) & (proba < high)
            assert proba[inside].mean() == pytest.approx(rows.y[inside].mean(), abs=0.03)

    @pytest.mark.parametrize("method", ["mixture", "score"])
    def test_needs_no_group_at_predict_time_and_takes_out_most_of_it(self, rows, method):
        model = OrthogonalClassifier(LogisticRegression(), ProxyPrincipal(LogisticRegression(), method=method))
        model.fit(rows.X, rows.y, sensitive_features=rows.sex)
        male = np.array([[0.5, 1.0, 0.0], [0.5, 0.0, 0.0]])
        full, orthogonal = (np.diff(m.predict_proba(male)[:, 1])[0] for m in (model.full_, model))
        assert abs(orthogonal) < 0.25 < abs(full)

    @pytest.mark.parametrize("method", ["mixture", "score"])
    def test_a_fitted_attribute_model_with_its_own_order(self, rows, method):
        attribute = LogisticRegression().fit(rows.X, rows.sex)
        proxy = ProxyPrincipal(FrozenEstimator(attribute), method=method)
        proxy.fit(rows.X, rows.y, sensitive_features=rows.sex)
        assert proxy.attribute_model_.estimator is attribute
        assert proxy.predict_proba(rows.X).shape == (len(rows.y), 2)

    def test_weights_reach_the_out_of_fold_scores(self, rows):
        """Rows of weight 0 are no rows, also for the models that score the others."""
        keep = np.arange(len(rows.y)) % 5 < 2  # fewer than half: without weights the scores say the opposite
        strange = np.where(keep, rows.sex, np.where(rows.male, "f", "m"))
        options = {"method": "score", "cv": 2}
        weighted, unweighted, fewer = (ProxyPrincipal(LogisticRegression(), **options) for _ in range(3))
        weighted.fit(rows.X, rows.y, sensitive_features=strange, sample_weight=keep.astype(float))
        unweighted.fit(rows.X, rows.y, sensitive_features=strange)
        fewer.fit(rows.X[keep], rows.y[keep], sensitive_features=rows.sex[keep])
        answers = [proxy.predict_proba(rows.X) for proxy in (weighted, unweighted, fewer)]
        assert abs(answers[0] - answers[2]).max() < 0.1 < abs(answers[1] - answers[2]).max()

    def test_several_columns_and_the_default_model(self, rows):
        frame = pd.DataFrame({"sex": rows.sex, "old": rows.X[:, 2] > 0})
        proxy = ProxyPrincipal().fit(rows.X, rows.y, sensitive_features=frame)
        assert isinstance(proxy.attribute_model_, HistGradientBoostingClassifier)
        assert proxy.group_proba_.shape == (4, 2)

    def test_refusals(self, rows):
        with pytest.raises(ValueError, match="method is 'magic'"):
            ProxyPrincipal(method="magic").fit(rows.X, rows.y, sensitive_features=rows.sex)
        with pytest.raises(ValueError, match="one group only, 'f'"):
            ProxyPrincipal().fit(rows.X, rows.y, sensitive_features=["f"] * len(rows.y))
        with pytest.raises(ValueError, match="ProxyPrincipal needs the groups"):
            ProxyPrincipal().fit(rows.X, rows.y)
        other = FrozenEstimator(LogisticRegression().fit(rows.X, rows.male))
        with pytest.raises(ValueError, match="attribute_model tells"):
            ProxyPrincipal(other).fit(rows.X, rows.y, sensitive_features=rows.sex)


def test_float32_columns_fall_into_the_bins_they_made():
    rng = np.random.default_rng(0)
    values = rng.normal(size=40).astype(np.float32)
    for seed in range(20):
        y = np.random.default_rng(seed).integers(0, 2, 40)
        principal = GroupPrincipal().fit(None, y, sensitive_features=values)
        counts = np.bincount(principal.groups_.codes(values), minlength=len(principal.groups_.labels))
        assert (counts > 0).all()


def test_a_proxy_does_not_see_the_columns_it_stands_for(rows):
    frame = pd.DataFrame({"score": rows.X[:, 0], "sex": rows.male.astype(int), "noise": rows.X[:, 2]})
    model = OrthogonalClassifier(LogisticRegression(), ProxyPrincipal(LogisticRegression()), sensitive_columns=["sex"])
    model.fit(frame, rows.y)
    assert model.principals_[0].attribute_model_.feature_names_in_.tolist() == ["score", "noise"]
    flipped = frame.assign(sex=1 - frame["sex"])
    principal = model._parts(frame, None)[1][0]
    np.testing.assert_array_equal(principal, model._parts(flipped, None)[1][0])

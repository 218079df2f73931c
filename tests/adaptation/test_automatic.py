"""Which model the method "auto" keeps, and that it never predicts far worse than the models it had."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setminus.adaptation.automatic import (
    TYPICAL_ERROR,
    Trainer,
    _as_spread,
    _checked,
    _Model,
    cautious,
    common_scale,
    information,
    joined,
    network_logits,
)
from setminus.adaptation.label_shift import mix_distance
from setminus.adaptation.linear_source import column_error, fit_linear_source, prior_evidence, trust
from setminus.adaptation.prior_correction import PriorCorrectedClassifier

FEW_STEPS = {"steps": 150, "learning_rate": 5e-3}


def mixed(n, share, rng):
    return (rng.random(n) < share).astype(int)


def weak(seed=0, moved=0.0):
    """100 weak features of two classes, 85 to 15 in the source and 15 to 85 in the target."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(2, 100)) * 1.5 / np.sqrt(200)
    y, labels = mixed(500, 0.15, rng), mixed(500, 0.85, rng)
    x = means[y] + rng.normal(size=(500, 100))
    # each half of the features moves in a direction of its own
    drift = moved * (means[1] - means[0]) * np.where(np.arange(100) < 50, 1, -1)
    return x, y, means[labels] + drift + rng.normal(size=(500, 100)), labels


def rows(x, y, target):
    return (
        np.concatenate([x, target]),
        np.concatenate([y, np.full(len(target), -1)]),
        np.repeat([1, -1], [len(x), len(target)]),
    )


def test_a_shift_of_the_frequencies_alone_is_estimated_and_trusted():
    x, y, target, labels = weak()
    found = prior_evidence(fit_linear_source(x, y, target, seed=0), x, y, target, seed=0)
    assert found.estimate[1] == pytest.approx(labels.mean(), abs=0.15)
    assert found.unexplained < 0.05
    assert found.trust == 1.0


def test_an_estimate_is_not_trusted_where_the_features_shifted():
    rng = np.random.default_rng(0)
    means = 2.0 * rng.normal(size=(4, 20)) / np.sqrt(10)
    y, labels = rng.integers(4, size=500), rng.integers(4, size=500)
    x = means[y] + rng.normal(size=(500, 20))
    trusts = []
    for moved in (0.0, 2.0):
        target = means[labels] + moved * rng.normal(size=20) + rng.normal(size=(500, 20))
        trusts.append(prior_evidence(fit_linear_source(x, y, target, seed=0), x, y, target, seed=0).trust)
    assert trusts[1] < 0.5 < trusts[0]


def test_trust_falls_between_its_two_ends():
    assert trust(0.15, float("nan"), 0.0, 0.5, 1, 100) == pytest.approx(0.5)
    assert trust(0.15, 0.15, 0.0, 0.5, 1, 100) == pytest.approx(0.5)
    assert trust(0.3, 0.1125, 0.0, 0.5, 1, 100) == pytest.approx(0.5)
    # halves that agree by chance do not outweigh predictions that the frequencies do not explain
    assert trust(0.5, 0.0, 0.0, 0.5, 1, 100) == 0.0
    # halves that predict well and disagree outweigh predictions that one class explains; weak halves do not
    assert trust(0.0, 0.5, 0.0, 0.5, 0.7, 100) == 0.0
    assert trust(0.0, 0.5, 0.0, 0.5, 0.5, 100) == 1.0
    assert trust(0.0, 0.0, 0.0, 0.5, 1, 10) == pytest.approx(0.5)
    assert trust(0.0, 0.0, 0.0, 0.5, 1, 5) == 0.0
    assert trust(0.0, 0.0, 0.125, 0.5, 1, 100) == pytest.approx(0.5)
    assert trust(0.0, 0.0, 0.2, 0.5, 1, 100) == 0.0


def test_few_columns_that_moved_make_an_estimate_wrong_that_no_other_check_is_against():
    rng = np.random.default_rng(0)
    found = []
    for share, moved in ((0.85, 0.0), (0.5, 0.8)):
        y, labels = mixed(3_000, 0.5, rng), mixed(3_000, share, rng)
        x, target = (0.4 * codes[:, None] + rng.normal(size=(3_000, 6)) for codes in (y, labels))
        target[:, 0] += moved
        found.append(prior_evidence(fit_linear_source(x, y, target, seed=0), x, y, target, seed=0))
        assert found[-1].unexplained < 0.1
        assert abs(found[-1].estimate[1] - share) < 0.1 or moved
    alone, wrong = found
    assert alone.trust == 1.0
    assert abs(wrong.estimate[1] - 0.5) > 0.15
    assert wrong.trust == 0.0


def test_the_column_error_of_exact_means():
    """Two classes at 0 and 1 in each of d columns of equal weight: a gap of `moved` counts as `moved / d` rows."""
    for d, moved in ((4, 0.5), (9, -0.2)):
        codes = np.repeat([0, 1], 30)
        x = np.repeat(1.0 * codes[:, None], d, axis=1)
        for shifted in (1, d):
            target = x + np.where(np.arange(d) < shifted, moved, 0.0)
            # the weights of classes may have a common part, which no probability depends on
            weight = np.tile([3.0, 5.0], (d, 1))
            error = column_error(weight, x, codes, target, np.array([0.5, 0.5]))
            assert error == pytest.approx(abs(moved) / d * np.sqrt(shifted))


def test_the_column_error_of_three_classes_does_not_depend_on_units():
    rng = np.random.default_rng(1)
    y = np.arange(600) % 3
    x = rng.normal(size=(3, 5))[y] + rng.normal(size=(600, 5))
    target, weight = x[: 3 * 100] + rng.normal(size=5), rng.normal(size=(5, 3))
    mix, units = np.array([0.2, 0.3, 0.5]), np.array([1.0, 10.0, 0.1, 100.0, 5.0])
    error = column_error(weight, x, y, target, mix)
    assert error > 0.01
    assert column_error(weight / units[:, None], x * units, y, target * units, mix) == pytest.approx(error)


def test_an_estimate_is_used_up_to_its_error_and_never_beyond_the_source():
    rng = np.random.default_rng(0)
    for classes in (2, 5):
        for _ in range(50):
            estimate, prior = rng.dirichlet(np.full(classes, 0.5), size=2)
            error, before = rng.uniform(0, 0.5), mix_distance(estimate, prior)
            used = cautious(estimate, prior, error)
            assert used.sum() == pytest.approx(1) and used.min() >= 0
            expected = max(before - np.hypot(error, TYPICAL_ERROR), 0)
            assert mix_distance(used, prior) == pytest.approx(expected)
            # on the way from the one to the other
            assert mix_distance(used, prior) + mix_distance(used, estimate) == pytest.approx(before)
    # no class is impossible
    assert cautious(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 0.0).min() > 0.05


def test_a_network_of_all_rows_is_no_surer_than_those_that_were_calibrated():
    rng = np.random.default_rng(0)
    target, weight = rng.normal(size=(200, 3)), rng.normal(size=(3, 4))
    calibrated = [(weight, np.zeros(4))]
    networks = _Model(calibrated, target @ weight, target @ weight, np.zeros(4))
    sure, unsure = ([(strength * weight, np.ones(4))] for strength in (20.0, 0.1))
    assert np.allclose(network_logits(_as_spread(sure, networks, target), target) - 1 / 20, target @ weight)
    assert np.allclose(network_logits(_as_spread(unsure, networks, target), target), network_logits(unsure, target))


def test_the_strongest_regularisation_within_an_error_of_the_best_is_taken():
    x, y, target, _ = weak()
    strong = fit_linear_source(x, y, target, seed=0).strength
    # separated classes are predicted better by a weak one
    clear = np.column_stack([3.0 * y, x[:, 0]])
    assert strong < fit_linear_source(clear, y, clear, seed=0).strength


def test_a_linear_source_is_logistic_regression_that_is_calibrated():
    x, y, target, _ = weak()
    fitted = fit_linear_source(x, y, target, seed=0)
    plain = LogisticRegression(C=fitted.strength, max_iter=200, tol=1e-3).fit(x, y)
    logits = target @ fitted.weight + fitted.bias
    assert np.corrcoef(logits[:, 1] - logits[:, 0], plain.decision_function(target))[0, 1] > 0.999


@pytest.mark.parametrize("inner", [0, 1, 2])
def test_a_weighted_sum_of_linear_models_and_networks_is_one_network(inner):
    rng = np.random.default_rng(inner)
    widths = [5, *([7] * (inner + 1)), 3]
    layers = [(rng.normal(size=shape), rng.normal(size=shape[1])) for shape in pairwise(widths)]
    linear = [[(rng.normal(size=(5, 3)), rng.normal(size=3))] for _ in range(2)]
    x = rng.normal(size=(50, 5))
    members = [(0.2, linear[0]), (0.5, layers), (0.0, layers), (0.3, linear[1])]
    both = sum(share * network_logits(member, x) for share, member in members)
    assert np.allclose(network_logits(joined(members), x), both)
    assert len(joined([(1.0, linear[0]), (0.0, layers)])) == 1
    assert not np.allclose(network_logits(layers, x), both)


def test_information_is_that_of_rows_and_classes():
    rng = np.random.default_rng(0)
    sure, weights = 50 * np.eye(3)[rng.integers(3, size=300)], np.ones(300)
    assert information(sure, weights) == pytest.approx(np.log(3), abs=0.01)
    assert information(sure[:1]) == pytest.approx(0.0, abs=1e-9)


def test_columns_of_one_unit_share_their_scale_and_others_do_not():
    assert np.ptp(common_scale(np.array([0.0, 0.5, 1.0, 2.0]))) == 0
    assert np.array_equal(common_scale(np.array([0.0, 1.0, 1.0, 50.0])), [1.0, 1.0, 1.0, 50.0])
    assert np.array_equal(common_scale(np.zeros(2)), [1.0, 1.0])


@pytest.fixture
def adapter():
    pytest.importorskip("torch")
    from setminus.adaptation.adapter import OrthogonalAdapter

    return OrthogonalAdapter


def test_on_weak_features_it_is_far_above_the_adapted_network_alone(adapter):
    x, y, target, labels = weak()
    X, Y, domain = rows(x, y, target)
    auto = adapter(**FEW_STEPS).fit(X, Y, sample_domain=domain)
    alone = adapter("vada_orthogonal", **FEW_STEPS).fit(X, Y, sample_domain=domain)
    assert auto.score(target, labels) > 0.78 > 0.6 > alone.score(target, labels)
    assert auto.evidence_["kept"] in {"linear", "average"}
    assert auto.evidence_["trust"] == 1.0
    plain = PriorCorrectedClassifier(LogisticRegression(), shrinkage=0.0, cv=3).fit(X, Y, sample_domain=domain)
    assert auto.score(target, labels) > plain.score(target, labels) - 0.02
    assert auto.target_prior_[1] == pytest.approx(0.85, abs=0.15)


def test_where_a_linear_model_cannot_work_a_network_is_kept(adapter):
    rng = np.random.default_rng(0)
    y, labels = mixed(500, 0.3, rng), mixed(500, 0.7, rng)

    def rings(labels):
        angle, radius = rng.uniform(0, 2 * np.pi, len(labels)), 1 + 2 * labels + 0.2 * rng.normal(size=len(labels))
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    x, target = rings(y), rings(labels)
    model = adapter(**FEW_STEPS).fit(*rows(x, y, target))
    assert model.evidence_["kept"] == "networks"
    assert model.score(target, labels) > 0.95


def test_a_known_mix_is_used_as_it_is(adapter):
    x, y, target, _ = weak()
    model = adapter(target_prior=[0.4, 0.6], steps=20).fit(*rows(x, y, target))
    assert model.target_prior_ == pytest.approx([0.4, 0.6])
    assert model.evidence_["trust"] == 1.0


def test_an_extreme_estimate_by_a_column_that_moved_costs_little(adapter):
    """Frequencies as before, one of four columns moved: the estimate says that a class is gone."""
    rng = np.random.default_rng(3)
    y, labels = mixed(300, 0.3, rng), mixed(1_000, 0.3, rng)
    x, target = (0.9 * codes[:, None] + rng.normal(size=(len(codes), 4)) for codes in (y, labels))
    target[:, 0] -= 1.5
    X, Y, domain = rows(x, y, target)
    model = adapter(**FEW_STEPS).fit(X, Y, sample_domain=domain)
    assert model.evidence_["estimate"][1] < 0.05
    assert model.target_prior_[1] > 0.1
    alone = adapter("source_only", **FEW_STEPS).fit(X, Y, sample_domain=domain)
    assert model.score(target, labels) > alone.score(target, labels) - 0.02


def test_weak_columns_of_a_target_without_another_mix_keep_the_frequencies_of_the_source(adapter):
    """With equal frequencies nearly half of the rows would be taken for the rare class."""
    rng = np.random.default_rng(3)
    y, labels = mixed(1_500, 0.25, rng), mixed(1_500, 0.25, rng)
    x, target = (0.15 * codes[:, None] + rng.normal(size=(len(codes), 12)) for codes in (y, labels))
    target += 0.3 * rng.normal(size=12)
    X, Y, domain = rows(x, y, target)
    model = adapter(**FEW_STEPS).fit(X, Y, sample_domain=domain)
    assert model.evidence_["trust"] < 0.5
    assert model.evidence_["unchanged"] > 0.3
    equal = model.set_params(predict_prior="equal").score(target, labels)
    assert model.set_params(predict_prior="auto").score(target, labels) > equal + 0.05


def test_predictions_are_for_the_target_unless_asked_for_equal_frequencies(adapter):
    x, y, target, _ = weak()
    model = adapter(steps=20).fit(*rows(x, y, target))
    ratio = model.predict_proba(target) / model.set_params(predict_prior="equal").predict_proba(target)
    odds = ratio[:, 1] / ratio[:, 0]
    assert np.allclose(odds, model.target_prior_[1] / model.target_prior_[0])


def test_a_second_fit_without_a_target_forgets_the_evidence_of_the_first(adapter):
    x, y, target, _ = weak()
    model = adapter(steps=20).fit(*rows(x, y, target))
    with pytest.warns(UserWarning, match="sample_domain is missing"):
        model.fit(x, y)
    assert not hasattr(model, "evidence_")


def test_classes_with_one_row_and_few_rows_in_all_are_fitted(adapter):
    rng = np.random.default_rng(0)
    y = np.array([0, 0, 0, 1, 1, 2])
    x, target = rng.normal(size=(6, 5)) + 3 * y[:, None], rng.normal(size=(4, 5))
    model = adapter(steps=5).fit(*rows(x, y, target))
    assert model.evidence_["kept"] == "linear"
    assert np.allclose(model.predict_proba(target).sum(axis=1), 1)


def test_where_the_features_shifted_predictions_are_for_equal_frequencies_and_may_be_adapted(adapter):
    rng = np.random.default_rng(0)
    means = 4.0 * rng.normal(size=(4, 20)) / np.sqrt(10)
    y, labels = rng.integers(4, size=400), rng.integers(4, size=400)
    x = means[y] + rng.normal(size=(400, 20))
    target = means[labels] + 1.5 * rng.normal(size=20) + rng.normal(size=(400, 20))
    X, Y, domain = rows(x, y, target)
    model = adapter(**FEW_STEPS).fit(X, Y, sample_domain=domain)
    alone = adapter("source_only", **FEW_STEPS).fit(X, Y, sample_domain=domain)
    assert model.evidence_["trust"] < 0.5
    assert {"adapted_gain", "adapted_information"} <= set(model.evidence_)
    assert model.score(target, labels) > alone.score(target, labels) - 0.03


@pytest.mark.parametrize(("swapped", "used"), [(False, True), (True, False)])
def test_an_adapted_network_that_swaps_the_classes_is_not_used(swapped, used):
    # two columns tell the class, and a half of the columns has moved in the target; the network trusts the second
    rng = np.random.default_rng(0)
    y, labels = rng.integers(2, size=300), rng.integers(2, size=300)
    x, target = rng.normal(size=(300, 6)), rng.normal(size=(300, 6))
    for rows_, classes in ((x, y), (target, labels)):
        rows_[:, :2] += 2.0 * (2 * classes - 1)[:, None]
    target[:, 1] *= -1 if swapped else 1
    target[:, 2:] += 3.0
    target[:, 3:] -= 6.0

    def by(column, strength):
        weight = np.zeros((6, 2))
        weight[column] = [-strength, strength]
        # as a network: u = relu(u) - relu(-u)
        return [(np.hstack([weight, -weight]), np.zeros(4)), (np.vstack([np.eye(2), -np.eye(2)]), np.zeros(2))]

    held = np.arange(300) % 3 == 0
    both = joined([(1.0, by(0, 2.0)), (1.0, by(1, 2.0))])
    trainer = Trainer(
        fold_networks=lambda folds: [by(0, 1.0) for _ in folds],
        adapted=lambda known: by(1, 5.0) if swapped else both,
        single=lambda: by(0, 1.0),
        held=held,
    )
    linear, networks = (
        _Model(by(0, 0.5), network_logits(by(0, 0.5), x), network_logits(by(0, 0.5), target), np.log([0.5, 0.5]))
        for _ in range(2)
    )
    model, numbers = _checked(linear, networks, trainer, x, y, target, None)
    assert numbers["adapted_gain"] > 0
    assert numbers["networks_information"] <= numbers["adapted_information"]
    assert (numbers["adapted_agreement"] > 0.4) == used
    assert (model is not None) == used


def test_networks_of_folds_stop_early_and_predict_the_rows_that_they_left_out():
    pytest.importorskip("torch")
    from setminus.adaptation.small_networks import fold_networks
    from setminus.progress import listen

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [150, 50])
    x = rng.normal(size=(200, 5)) + 2 * y[:, None]
    rows = np.arange(200)
    folds = [(rows[rows % 2 == k], rows[rows % 2 != k]) for k in (0, 1)]
    events = []
    with listen(events.append):
        networks = fold_networks(x, y, folds, width=16, steps=5_000, batch=32, rate=1e-2, seed=0)
    assert events[-1].done < 5_000
    for layers, (_, unseen) in zip(networks, folds, strict=True):
        assert np.mean(network_logits(layers, x[unseen]).argmax(axis=1) == y[unseen]) > 0.9

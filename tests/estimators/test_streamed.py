"""A tuned classifier from batches: the counts behind its certificate are those of its own decisions on fresh rows."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from setminus import GroupPrincipal, ProxyPrincipal, TunedOrthogonalClassifier, equalized_odds_gap
from setminus.core.gaps import count_table
from setminus.estimators.streamed import FreshRows, fit_streamed
from setminus.estimators.tuned import SEARCH_SHARE

EFFECT = 0.3


def draw(n, seed, n_classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    sex = np.where(rng.random(n) < 0.5 + EFFECT * (y / (n_classes - 1) - 0.5), "m", "f")
    X = np.column_stack([y + rng.normal(size=n), (sex == "m") + 0.5 * rng.normal(size=n)])
    return FreshRows(X, y, sex)


def fitted(tolerance=0.1, n_classes=2, batches=(20_000, 1, 15_000, 25_000), principal=None, **settings):
    model = TunedOrthogonalClassifier(LogisticRegression(), principal, tolerance=tolerance, **settings)
    sample, pilot = draw(3000, 1, n_classes), draw(5000, 2, n_classes)
    fresh = [draw(n, 10 + k, n_classes) for k, n in enumerate(batches)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rows = fit_streamed(
            model, sample.X, sample.y, sensitive_features=sample.groups, pilot=pilot, fresh=lambda: iter(fresh)
        )
    return model, rows, fresh


@pytest.mark.parametrize("principal", [None, ProxyPrincipal(LogisticRegression())])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_counts_are_those_of_the_models_own_decisions(principal, n_classes):
    model, rows, fresh = fitted(principal=principal, n_classes=n_classes, tolerance=0.15)
    rng = np.random.default_rng([0, 2])
    measured, tested = np.zeros((2, 2, n_classes, n_classes))
    for batch in fresh:
        known = {"sensitive_features": batch.groups} if principal is None else {}
        predicted = model.predict(batch.X, **known)
        searched = rng.random(len(batch.y)) < SEARCH_SHARE
        for table, kept in ((measured, searched), (tested, ~searched)):
            codes = (batch.groups[kept] == "m").astype(int), batch.y[kept], predicted[kept]
            table += count_table(*codes, (2, n_classes, n_classes))
    frontier = model.frontier_
    chosen = frontier.candidates.points.tolist().index(frontier.chosen)
    assert (frontier.tables[frontier.chosen] == measured).all()
    assert (frontier.candidates.tables[chosen] == tested).all()
    assert frontier.candidates.fresh
    assert (rows.searched, rows.tested, rows.left_out) == (measured.sum(), tested.sum(), 0)
    # the score and the gap are of these rows, not of the pilot
    accuracy = np.trace(measured.sum(axis=0)) / measured.sum()
    assert frontier.score[frontier.chosen] == pytest.approx(accuracy, abs=1e-12)


def test_the_certificate_holds_on_other_rows_and_is_refused_where_it_cannot():
    model, _, _ = fitted(tolerance=0.1)
    assert model.choice_ == "certified" and model.certificate_.certified
    new = draw(400_000, 99)
    gap = equalized_odds_gap(new.y, model.predict(new.X, sensitive_features=new.groups), sensitive_features=new.groups)
    assert gap <= 0.1 < equalized_odds_gap(new.y, model.model_.full_.predict(new.X), sensitive_features=new.groups)
    refused, _, _ = fitted(tolerance=0.0005)
    assert not refused.certificate_.certified


def test_batches_do_not_matter():
    whole, _, fresh = fitted()
    one = FreshRows(*(np.concatenate(parts) for parts in zip(*fresh, strict=True)))
    model = TunedOrthogonalClassifier(LogisticRegression(), tolerance=0.1)
    sample = draw(3000, 1)
    fit_streamed(model, sample.X, sample.y, sensitive_features=sample.groups, pilot=draw(5000, 2), fresh=lambda: [one])
    assert (model.frontier_.tables == whole.frontier_.tables).all()
    assert (model.strength_, model.threshold_) == (whole.strength_, whole.threshold_)


def test_the_labels_of_the_pilot_choose_nothing():
    sample, fresh, found = draw(3000, 1), draw(30_000, 10), []
    pilot = draw(5000, 2)
    for rows in (pilot, pilot._replace(y=pilot.y[::-1])):
        model = TunedOrthogonalClassifier(LogisticRegression(), tolerance=0.1, group_offsets=False)
        fit_streamed(model, sample.X, sample.y, sensitive_features=sample.groups, pilot=rows, fresh=lambda: [fresh])
        found.append(model.frontier_)
    honest, misled = found
    assert honest.chosen == misled.chosen and honest.n_tried == misled.n_tried > 5000
    assert (honest.offsets == misled.offsets).all() and (honest.tables == misled.tables).all()


def test_without_a_confidence_every_row_is_searched():
    model, rows, fresh = fitted(confidence=None)
    assert (rows.searched, rows.tested) == (sum(len(batch.y) for batch in fresh), 0)
    assert model.choice_ == "searched" and model.certificate_ is None


def test_groups_that_the_sample_lacks_are_counted_and_left_out():
    model = TunedOrthogonalClassifier(LogisticRegression(), GroupPrincipal(), tolerance=0.2)
    sample, batch = draw(3000, 1), draw(9000, 3)
    groups = batch.groups.astype(object)
    groups[:70] = "other"
    frames = [pa.table({"a": X[:, 0], "b": X[:, 1]}) for X in (sample.X, draw(5000, 2).X, batch.X)]
    pilot = draw(5000, 2)._replace(X=frames[1])
    rows = fit_streamed(
        model,
        frames[0],
        sample.y,
        sensitive_features=sample.groups,
        pilot=pilot._replace(groups=pa.array(pilot.groups)),
        fresh=lambda: [FreshRows(frames[2], batch.y, pa.array(groups))],
    )
    assert rows.left_out == 70 and rows.searched + rows.tested == 8930

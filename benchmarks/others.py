"""Other libraries' methods for equalized odds, each called as its documentation says.

Post-processing methods get rows that the base model has not seen: a hold-out part, which is how they are documented,
and for some also out-of-fold scores of all rows with the base model fitted on all of them, which is what our own
tuning does. The second tells the method from the better use of the rows.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.adult import Adult, Scored
from benchmarks.method import Answer, Method
from benchmarks.ours import TOLERANCES

BOUNDS = (0.01, 0.02, 0.05)
"""Of the larger equalized-odds difference, on the training rows: what ExponentiatedGradient takes."""
ITERATIONS = 20

CROSSFIT = {"scores": "out of fold"}
HOLDOUT = {"scores": "30 % held out"}


class _Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose rows already are its probabilities."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> _Given:
        """Nothing to learn."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """The first two columns."""
        return np.asarray(X)[:, :2].copy()

    def predict(self, X: Any) -> Any:
        """The larger of them."""
        return self.predict_proba(X).argmax(axis=1)


def threshold_optimizer(data: Adult, scored: Scored) -> Iterator[Answer]:
    """Fairlearn: randomised thresholds for each group."""
    from fairlearn.postprocessing import ThresholdOptimizer

    start = time.perf_counter()
    model = ThresholdOptimizer(
        estimator=_Given(), constraints="equalized_odds", prefit=True, predict_method="predict_proba"
    )
    model.fit(scored.tune, scored.rows.y, sensitive_features=scored.rows.z1)
    seconds = scored.seconds + time.perf_counter() - start
    groups = data.test.z1
    predictions = model.predict(scored.test, sensitive_features=groups, random_state=data.seed)
    # the chance that its coin says 1: the only probability it has
    yield Answer(predictions, model._pmf_predict(scored.test, sensitive_features=groups)[:, 1], seconds)


def exponentiated_gradient(data: Adult) -> Iterator[Answer]:
    """Fairlearn: a random mixture of models, each fitted with other weights."""
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

    for bound in BOUNDS:
        start = time.perf_counter()
        model = ExponentiatedGradient(data.model, EqualizedOdds(difference_bound=bound), max_iter=ITERATIONS)
        model.fit(data.train.x, data.train.y, sensitive_features=data.train.z1)
        seconds = time.perf_counter() - start
        predictions = model.predict(data.test.x, random_state=data.seed)
        chosen = {"models": len(model.predictors_), "iterations": model.last_iter_ + 1}
        yield Answer(predictions, model._pmf_predict(data.test.x)[:, 1], seconds, bound, chosen)


def equalized_odds_flips(data: Adult) -> Iterator[Answer]:
    """AIF360's EqOddsPostprocessing: labels flipped at random, with rates by group from a linear program."""
    _quietly_import_aif360()
    from aif360.algorithms.postprocessing import EqOddsPostprocessing

    scored = data.scored_holdout
    start = time.perf_counter()
    model = EqOddsPostprocessing([{"male": 0}], [{"male": 1}], seed=data.seed)
    model.fit(_label_dataset(scored.rows.z1, scored.rows.y), _label_dataset(scored.rows.z1, scored.tune[:, 1] >= 0.5))
    seconds = scored.seconds + time.perf_counter() - start
    flipped = model.predict(_label_dataset(data.test.z1, scored.test[:, 1] >= 0.5))
    yield Answer(flipped.labels.ravel().astype(int), None, seconds)


def calibrated_equalized_odds(data: Adult) -> Iterator[Answer]:
    """AIF360's CalibratedEqualizedOdds: some of one group's scores replaced by its base rate."""
    _quietly_import_aif360()
    from aif360.sklearn.postprocessing import CalibratedEqualizedOdds

    scored = data.scored_holdout
    start = time.perf_counter()
    tune, test = (
        pd.DataFrame(scores[:, :2], index=pd.Index(groups, name="sex"))
        for scores, groups in ((scored.tune, scored.rows.z1), (scored.test, data.test.z1))
    )
    model = CalibratedEqualizedOdds("sex", random_state=data.seed).fit(tune, pd.Series(scored.rows.y, index=tune.index))
    seconds = scored.seconds + time.perf_counter() - start
    proba = model.predict_proba(test)
    yield Answer(proba.argmax(axis=1), proba[:, 1], seconds)


def oxonfair(data: Adult, scored: Scored, *, inferred: bool) -> Iterator[Answer]:
    """OxonFair: a threshold for each group, known or inferred, searched for accuracy within a gap."""
    from oxonfair import DataDict, FairPredictor
    from oxonfair import group_metrics as metrics

    start = time.perf_counter()
    groups = scored.rows.z1
    model = FairPredictor(
        _Given(),
        DataDict(scored.rows.y, scored.tune, groups),
        inferred_groups=(lambda rows: rows[:, 2:].copy()) if inferred else False,
    )
    # its equalized odds is the mean of the two differences, ours their sum
    model.fit(metrics.accuracy, metrics.equalized_odds, TOLERANCES[0] / 2)
    seconds = scored.seconds + time.perf_counter() - start
    test = DataDict(data.test.y, scored.test, data.test.z1)
    for tolerance in TOLERANCES:
        model.fit(metrics.accuracy, metrics.equalized_odds, tolerance / 2, recompute=False)
        proba = model.predict_proba(test, force_normalization=True)[:, 1]
        yield Answer(np.asarray(model.predict(test)), proba, seconds, tolerance, {"offset": model.offset.tolist()})


def _label_dataset(groups: Any, labels: Any) -> Any:
    from aif360.datasets import BinaryLabelDataset

    frame = pd.DataFrame({"male": (groups == "Male").astype(float), "label": np.asarray(labels, dtype=float)})
    return BinaryLabelDataset(df=frame, label_names=["label"], protected_attribute_names=["male"])


def _quietly_import_aif360() -> None:
    # on import it warns of every optional dependency that is missing
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            import aif360.algorithms.postprocessing
            import aif360.sklearn.postprocessing  # noqa: F401
    finally:
        logging.disable(logging.NOTSET)


def _oxonfair(name: str, way: str, inferred: bool) -> Method:
    config = {**(HOLDOUT if way == "holdout" else CROSSFIT), "tolerances": TOLERANCES, "constraint": "sum"}
    return Method(
        name,
        lambda data: oxonfair(data, getattr(data, f"scored_{way}"), inferred=inferred),
        needs_attribute=not inferred,
        config=config,
    )


def _threshold_optimizer(name: str, way: str) -> Method:
    return Method(
        name,
        lambda data: threshold_optimizer(data, getattr(data, f"scored_{way}")),
        needs_attribute=True,
        deterministic=False,
        config=HOLDOUT if way == "holdout" else CROSSFIT,
    )


METHODS = (
    _threshold_optimizer("Fairlearn ThresholdOptimizer", "holdout"),
    _threshold_optimizer("Fairlearn ThresholdOptimizer, cross-fitted", "crossfit"),
    Method(
        "Fairlearn ExponentiatedGradient",
        exponentiated_gradient,
        deterministic=False,
        config={"tolerances": BOUNDS, "constraint": "max, on the training rows", "max_iter": ITERATIONS},
    ),
    Method("AIF360 EqOdds", equalized_odds_flips, needs_attribute=True, deterministic=False, config=HOLDOUT),
    Method(
        "AIF360 CalibratedEqOdds", calibrated_equalized_odds, needs_attribute=True, deterministic=False, config=HOLDOUT
    ),
    _oxonfair("OxonFair, group", "holdout", inferred=False),
    _oxonfair("OxonFair, group, cross-fitted", "crossfit", inferred=False),
    _oxonfair("OxonFair, inferred groups", "holdout", inferred=True),
    _oxonfair("OxonFair, inferred groups, cross-fitted", "crossfit", inferred=True),
)

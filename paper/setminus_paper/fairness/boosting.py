"""Gradient boosting as the full classifier: trees on the table as it is, by the package's own estimators."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from setminus.estimators.principals import ProxyPrincipal
from setminus.estimators.tuned import TunedOrthogonalClassifier
from setminus_paper.fairness.predictions import Part, Predictions
from setminus_paper.fairness.trials import Codes, Trials
from setminus_paper.fairness.tuned import TOLERANCE

__all__ = ["boosting", "tuned_boosting"]


def boosting(trials: Trials) -> Predictions:
    """Scikit-learn's gradient boosting, nothing done about fairness.

    There is no epoch to pick, hence the validation rows are learned from, too.

    Parameters
    ----------
    trials : Trials
        With the "raw" encoding.

    Returns
    -------
    Predictions
    """

    def fit(seed: int, learned: Codes) -> Any:
        return _model(trials, seed).fit(trials.x[learned], trials.y[learned])

    return _one_by_one(trials, fit)


def tuned_boosting(trials: Trials, *, tolerance: float = TOLERANCE) -> Predictions:
    """`TunedOrthogonalClassifier` around it, with a proxy by gradient boosting: no group is used when predicting.

    Strength and threshold are picked on out-of-fold predictions of the training and validation rows.

    Parameters
    ----------
    trials : Trials
        With the "raw" encoding.
    tolerance : float
        The summed equalized-odds gap to keep, out of fold.

    Returns
    -------
    Predictions
        With the settings "strength" and "threshold".
    """

    def fit(seed: int, learned: Codes) -> Any:
        model = TunedOrthogonalClassifier(
            _model(trials, seed),
            ProxyPrincipal(_model(trials, seed)),
            agg="sum",
            tolerance=tolerance,
            random_state=seed,
        )
        return model.fit(trials.x[learned], trials.y[learned], sensitive_features=trials.u[learned])

    # on few rows no point may keep the tolerance; the one of the smallest gap is then what the row shows
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return _one_by_one(trials, fit)


def _model(trials: Trials, seed: int) -> Any:
    return HistGradientBoostingClassifier(categorical_features=list(trials.categorical), random_state=seed)


def _one_by_one(trials: Trials, fit: Callable[[int, Codes], Any]) -> Predictions:
    start = time.perf_counter()
    learned = np.concatenate([trials.train, trials.validation], axis=1)
    models = [fit(seed, rows) for seed, rows in zip(trials.seeds, learned, strict=True)]
    x = [trials.x[rows] for rows in trials.test]
    proba = np.stack([model.predict_proba(rows)[None, :, 1] for model, rows in zip(models, x, strict=True)])
    decisions = np.stack([model.predict(rows)[None] == 1 for model, rows in zip(models, x, strict=True)])
    settings = {
        name: np.array([[getattr(model, f"{name}_")] for model in models])
        for name in ("strength", "threshold")
        if hasattr(models[0], f"{name}_")
    }
    return Predictions(None, Part(proba, decisions), (time.perf_counter() - start) / len(models), settings)

"""Other libraries' methods for equalized odds on the same rows; they come with ``pip install "setminus[bench]"``.

Those that mend a fitted model are given the network's probabilities of the validation rows, at the epoch that
validation picks; those that fit models themselves fit logistic regression on the training and validation rows.
"""

from __future__ import annotations

import importlib
import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from setminus.errors import MissingExtraError
from setminus_paper.fairness.measuring import best_epochs
from setminus_paper.fairness.predictions import Part, Predictions
from setminus_paper.fairness.training import EPOCHS
from setminus_paper.fairness.trials import Codes, Floats, Trials
from setminus_paper.fairness.tuned import TOLERANCE
from setminus_paper.fairness.vanilla import vanilla

__all__ = ["eq_odds_flips", "exponentiated_gradient", "leace", "oxonfair", "threshold_optimizer"]

ITERATIONS = 20


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows with the network's probabilities of both labels, of shape (n, 2), their labels and groups."""

    proba: Floats
    y: Codes
    u: Codes


Answer = tuple[NDArray[Any], Floats]
"""Decisions and probabilities of the test rows."""


def threshold_optimizer(trials: Trials, *, epochs: int = EPOCHS) -> Predictions:
    """Fairlearn's ThresholdOptimizer: thresholds for each group, drawn at random. Groups known when predicting."""
    postprocessing = _library("fairlearn.postprocessing", "fairlearn")

    def mend(seed: int, tune: Scored, test: Scored) -> Answer:
        model = postprocessing.ThresholdOptimizer(
            estimator=_Given(), constraints="equalized_odds", prefit=True, predict_method="predict_proba"
        )
        model.fit(tune.proba, tune.y, sensitive_features=tune.u)
        decided = model.predict(test.proba, sensitive_features=test.u, random_state=seed)
        # the chance that its coin says 1: the only probability it has
        return decided, model._pmf_predict(test.proba, sensitive_features=test.u)[:, 1]

    return _mended(trials, mend, epochs)


def eq_odds_flips(trials: Trials, *, epochs: int = EPOCHS) -> Predictions:
    """AIF360's EqOddsPostprocessing: decisions flipped at random, at rates by group. Groups known when predicting."""
    postprocessing = _library("aif360.algorithms.postprocessing", "aif360")
    datasets, pandas = _library("aif360.datasets", "aif360"), _library("pandas", "pandas")

    def labelled(u: Codes, labels: Any) -> Any:
        frame = pandas.DataFrame({"u": u.astype(float), "y": np.asarray(labels, dtype=float)})
        return datasets.BinaryLabelDataset(df=frame, label_names=["y"], protected_attribute_names=["u"])

    def mend(seed: int, tune: Scored, test: Scored) -> Answer:
        model = postprocessing.EqOddsPostprocessing([{"u": 0}], [{"u": 1}], seed=seed)
        model.fit(labelled(tune.u, tune.y), labelled(tune.u, tune.proba[:, 1] >= 0.5))
        flipped = model.predict(labelled(test.u, test.proba[:, 1] >= 0.5)).labels.ravel()
        return flipped, flipped

    return _mended(trials, mend, epochs)


def oxonfair(trials: Trials, *, tolerance: float = TOLERANCE, epochs: int = EPOCHS) -> Predictions:
    """OxonFair: a threshold for each group, searched for accuracy within a gap. Groups known when predicting."""
    library = _library("oxonfair", "oxonfair")
    metrics = library.group_metrics

    def mend(seed: int, tune: Scored, test: Scored) -> Answer:
        model = library.FairPredictor(_Given(), library.DataDict(tune.y, tune.proba, tune.u))
        # its equalized odds is the mean of the two differences, ours their sum
        model.fit(metrics.accuracy, metrics.equalized_odds, tolerance / 2)
        rows = library.DataDict(test.y, test.proba, test.u)
        return np.asarray(model.predict(rows)), model.predict_proba(rows, force_normalization=True)[:, 1]

    return _mended(trials, mend, epochs)


def exponentiated_gradient(trials: Trials, *, tolerance: float = TOLERANCE) -> Predictions:
    """Fairlearn's ExponentiatedGradient: a random mixture of logistic regressions, fitted with other weights each."""
    reductions = _library("fairlearn.reductions", "fairlearn")

    def fit(seed: int, learned: Codes, rows: Codes) -> Answer:
        model = reductions.ExponentiatedGradient(
            LogisticRegression(max_iter=1000),
            # it bounds the larger of the two differences, ours is their sum
            reductions.EqualizedOdds(difference_bound=tolerance / 2),
            max_iter=ITERATIONS,
        )
        model.fit(trials.x[learned], trials.y[learned], sensitive_features=trials.u[learned])
        return model.predict(trials.x[rows], random_state=seed), model._pmf_predict(trials.x[rows])[:, 1]

    return _fitted(trials, fit)


def leace(trials: Trials) -> Predictions:
    """LEACE (Belrose et al. 2023): rows changed as little as hides the group from linear models; then a linear one."""
    torch, library = _library("torch", "torch"), _library("concept_erasure", "concept-erasure")

    def fit(seed: int, learned: Codes, rows: Codes) -> Answer:
        x, u = torch.from_numpy(trials.x), torch.from_numpy(trials.u)
        eraser = library.LeaceEraser.fit(x[learned], u[learned])
        model = LogisticRegression(max_iter=1000).fit(eraser(x[learned]).numpy(), trials.y[learned])
        proba = model.predict_proba(eraser(x[rows]).numpy())[:, 1]
        return proba >= 0.5, proba

    return _fitted(trials, fit)


class _Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose rows already are its probabilities."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> _Given:
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X).copy()

    def predict(self, X: Any) -> Any:
        return self.predict_proba(X).argmax(axis=1)


def _mended(trials: Trials, mend: Callable[[int, Scored, Scored], Answer], epochs: int) -> Predictions:
    full = vanilla(trials, epochs=epochs)
    start = time.perf_counter()
    picked = best_epochs(full.on_validation, trials.y[trials.validation], trials.u[trials.validation])

    def scored(part: Part, rows: Codes, k: int) -> Scored:
        proba = part.proba[k, picked[k]]
        return Scored(np.column_stack([1 - proba, proba]), trials.y[rows[k]], trials.u[rows[k]])

    answers = [
        mend(seed, scored(full.on_validation, trials.validation, k), scored(full.test, trials.test, k))
        for k, seed in enumerate(trials.seeds)
    ]
    return _predictions(answers, full.seconds + (time.perf_counter() - start) / len(answers))


def _fitted(trials: Trials, fit: Callable[[int, Codes, Codes], Answer]) -> Predictions:
    start = time.perf_counter()
    learned = np.concatenate([trials.train, trials.validation], axis=1)
    with warnings.catch_warnings(action="ignore"):
        answers = [fit(*given) for given in zip(trials.seeds, learned, trials.test, strict=True)]
    return _predictions(answers, (time.perf_counter() - start) / len(answers))


def _predictions(answers: list[Answer], seconds: float) -> Predictions:
    decisions, proba = (np.stack(parts)[:, None] for parts in zip(*answers, strict=True))
    return Predictions(None, Part(proba.astype(np.float64), decisions.astype(bool)), seconds)


def _library(module: str, package: str) -> Any:
    # some warn of every optional dependency that is missing
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError("this row", package, extra="bench") from error
    finally:
        logging.disable(logging.NOTSET)

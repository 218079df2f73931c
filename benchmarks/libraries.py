"""Other libraries, each wrapped once and called as its documentation says: ``pip install "setminus[bench]"``.

Fairlearn, AIF360 and OxonFair for equalized odds, LEACE for concept erasure, skada for domain adaptation.
"""

from __future__ import annotations

import importlib
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import config_context, set_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC

Floats = NDArray[np.float64]

ITERATIONS = 20
"""Of ExponentiatedGradient."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows for a post-processing method.

    Attributes
    ----------
    proba : ndarray of shape (n, 2) or (n, 4)
        p(y=0 | x), p(y=1 | x), and for methods that infer the group also p(u=0 | x), p(u=1 | x).
    y, u : ndarray of shape (n,)
        Labels 0 and 1, and groups.
    """

    proba: Floats
    y: NDArray[Any]
    u: NDArray[Any]

    @property
    def decisions(self) -> NDArray[np.bool_]:
        """The more probable label."""
        return self.proba[:, 1] >= 0.5

    @property
    def group_codes(self) -> Floats:
        """Groups as 0.0 and 1.0, in the order of their names."""
        return np.unique(self.u, return_inverse=True)[1].astype(float)


@dataclass(frozen=True, eq=False)
class Answer:
    """Predictions of a fitted method for the test rows.

    Attributes
    ----------
    predictions : ndarray of shape (n,)
    proba : ndarray of shape (n,) or None
        The probability of class 1, where the method has one.
    seconds : float
        Time to fit; one fit may serve several tolerances.
    tolerance : float or None
        The gap that was asked for.
    settings : mapping
        Settings that the fit chose.
    """

    predictions: NDArray[Any]
    proba: Floats | None
    seconds: float
    tolerance: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


def threshold_optimizer(tune: Scored, test: Scored, seed: int) -> Answer:
    """Fairlearn's ThresholdOptimizer: randomised thresholds for each group."""
    library = load("fairlearn.postprocessing", "fairlearn")
    start = time.perf_counter()
    model = library.ThresholdOptimizer(
        estimator=_Given(), constraints="equalized_odds", prefit=True, predict_method="predict_proba"
    )
    model.fit(tune.proba, tune.y, sensitive_features=tune.u)
    seconds = time.perf_counter() - start
    predictions = model.predict(test.proba, sensitive_features=test.u, random_state=seed)
    # the chance of answering 1 is the only probability that it has
    return Answer(predictions, model._pmf_predict(test.proba, sensitive_features=test.u)[:, 1], seconds)


def exponentiated_gradient(
    model: Any, train: Sequence[Any], test_x: Floats, bounds: Sequence[float], seed: int
) -> Iterator[Answer]:
    """Fairlearn's ExponentiatedGradient: a random mixture of models fitted with different weights.

    `train` is (x, y, groups), `bounds` of the larger equalized-odds difference on these rows.
    """
    library = load("fairlearn.reductions", "fairlearn")
    x, y, groups = train
    for bound in bounds:
        start = time.perf_counter()
        constraint = library.EqualizedOdds(difference_bound=bound)
        mixture = library.ExponentiatedGradient(model, constraint, max_iter=ITERATIONS)
        mixture.fit(x, y, sensitive_features=groups)
        seconds = time.perf_counter() - start
        chosen = {"models": len(mixture.predictors_), "iterations": mixture.last_iter_ + 1}
        predictions = mixture.predict(test_x, random_state=seed)
        yield Answer(predictions, mixture._pmf_predict(test_x)[:, 1], seconds, bound, chosen)


def equalized_odds_flips(tune: Scored, test: Scored, seed: int) -> Answer:
    """AIF360's EqOddsPostprocessing: labels flipped at random, at rates by group from a linear program."""
    library, datasets = load("aif360.algorithms.postprocessing", "aif360"), load("aif360.datasets", "aif360")

    def labelled(rows: Scored, labels: Any) -> Any:
        frame = pd.DataFrame({"group": rows.group_codes, "label": np.asarray(labels, dtype=float)})
        return datasets.BinaryLabelDataset(df=frame, label_names=["label"], protected_attribute_names=["group"])

    start = time.perf_counter()
    model = library.EqOddsPostprocessing([{"group": 0}], [{"group": 1}], seed=seed)
    model.fit(labelled(tune, tune.y), labelled(tune, tune.decisions))
    seconds = time.perf_counter() - start
    return Answer(model.predict(labelled(test, test.decisions)).labels.ravel().astype(int), None, seconds)


def calibrated_equalized_odds(tune: Scored, test: Scored, seed: int) -> Answer:
    """AIF360's CalibratedEqualizedOdds: some scores of one group replaced by its base rate."""
    library = load("aif360.sklearn.postprocessing", "aif360")
    start = time.perf_counter()
    frames = [pd.DataFrame(rows.proba[:, :2], index=pd.Index(rows.u, name="group")) for rows in (tune, test)]
    model = library.CalibratedEqualizedOdds("group", random_state=seed)
    model.fit(frames[0], pd.Series(tune.y, index=frames[0].index))
    seconds = time.perf_counter() - start
    proba = model.predict_proba(frames[1])
    return Answer(proba.argmax(axis=1), proba[:, 1], seconds)


def oxonfair(tune: Scored, test: Scored, tolerances: Sequence[float], *, inferred: bool = False) -> Iterator[Answer]:
    """OxonFair: a threshold for each group, known or inferred, searched for accuracy within a summed gap."""
    library = load("oxonfair", "oxonfair")
    metrics = library.group_metrics
    start = time.perf_counter()
    groups: Any = (lambda rows: rows[:, 2:].copy()) if inferred else False
    model = library.FairPredictor(_Given(), library.DataDict(tune.y, tune.proba, tune.u), inferred_groups=groups)
    # its equalized odds is the mean of the two differences, ours their sum
    model.fit(metrics.accuracy, metrics.equalized_odds, tolerances[0] / 2)
    seconds = time.perf_counter() - start
    rows = library.DataDict(test.y, test.proba, test.u)
    for tolerance in tolerances:
        model.fit(metrics.accuracy, metrics.equalized_odds, tolerance / 2, recompute=False)
        proba = model.predict_proba(rows, force_normalization=True)[:, 1]
        yield Answer(np.asarray(model.predict(rows)), proba, seconds, tolerance, {"offset": model.offset.tolist()})


def leace(x: Floats, groups: NDArray[Any]) -> Callable[[Floats], Floats]:
    """LEACE (Belrose et al. 2023): the smallest change of rows that hides the group from linear models."""
    torch, library = load("torch", "torch"), load("concept_erasure", "concept-erasure")
    eraser = library.LeaceEraser.fit(torch.from_numpy(x), torch.from_numpy(groups))
    return lambda rows: eraser(torch.from_numpy(rows)).numpy()


def skada(
    method: str, X: Floats, y: NDArray[np.int64], sample_domain: NDArray[np.int64], seed: int, **options: Any
) -> Callable[[Floats], NDArray[np.int64]]:
    """A method of skada, by its name there, with scikit-learn's SVC; "" is the SVC without adaptation."""
    with config_context():
        library = load("skada", "skada")
        # importing it sets this for good; the context restores the setting
        set_config(enable_metadata_routing=True)
        if method == "JDOTClassifier":
            model = library.JDOTClassifier(SVC(random_state=seed), metric="hinge", **options)
        else:
            machine = SVC(random_state=seed).set_fit_request(sample_weight=True)
            steps = (getattr(library, method)(**options), machine) if method else (machine,)
            model = library.make_da_pipeline(*steps)
        model.fit(X, y, sample_domain=sample_domain)

    def predict(rows: Floats) -> NDArray[np.int64]:
        with config_context(enable_metadata_routing=True):
            predicted: NDArray[np.int64] = model.predict(rows, sample_domain=np.full(len(rows), -1))
            return predicted

    return predict


class _Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose rows already are its probabilities."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> _Given:
        """Learn nothing."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """The first two columns."""
        return np.asarray(X)[:, :2].copy()

    def predict(self, X: Any) -> Any:
        """The larger of them."""
        return self.predict_proba(X).argmax(axis=1)


def load(module: str, package: str) -> Any:
    """Import a library without its warnings about optional dependencies."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f'this comparison needs {package}: pip install "setminus[bench]"') from error
    finally:
        logging.disable(logging.NOTSET)

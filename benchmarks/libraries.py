"""Other libraries, each wrapped once and called as its documentation says: ``pip install "setminus[bench]"``.

Fairlearn, AIF360, OxonFair and error-parity for equalized odds, LEACE for concept erasure, skada for domain adaptation.
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
from sklearn import config_context
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
    proba : ndarray of shape (n, 2)
        p(y=0 | x), p(y=1 | x).
    y, u : ndarray of shape (n,)
        Labels 0 and 1, and groups.
    given : ndarray of shape (n, 2, groups) or None
        p(u | y, x) for y of 0 and 1, for methods that infer the group.
    """

    proba: Floats
    y: NDArray[Any]
    u: NDArray[Any]
    given: Floats | None = None

    @property
    def decisions(self) -> NDArray[np.bool_]:
        """The more probable label."""
        return self.proba[:, 1] >= 0.5

    @property
    def group_codes(self) -> Floats:
        """Groups as 0.0, 1.0, ..., in the order of their names."""
        return np.unique(self.u, return_inverse=True)[1].astype(float)

    @property
    def with_groups(self) -> Floats:
        """The probabilities of the labels and, where groups are inferred, of the groups: p(u | x)."""
        if self.given is None:
            return self.proba
        return np.column_stack([self.proba, (self.proba[:, :, None] * self.given).sum(axis=1)])


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
    score : ndarray of shape (n,) or None
        What ranks the rows, where that is no probability.
    """

    predictions: NDArray[Any]
    proba: Floats | None
    seconds: float
    tolerance: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    score: Floats | None = None


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
    frames = [pd.DataFrame(rows.proba, index=pd.Index(rows.u, name="group")) for rows in (tune, test)]
    model = library.CalibratedEqualizedOdds("group", random_state=seed)
    model.fit(frames[0], pd.Series(tune.y, index=frames[0].index))
    seconds = time.perf_counter() - start
    proba = model.predict_proba(frames[1])
    return Answer(proba.argmax(axis=1), proba[:, 1], seconds)


def error_parity(tune: Scored, test: Scored, tolerances: Sequence[float], seed: int) -> Iterator[Answer]:
    """error-parity's RelaxedThresholdOptimizer: randomised thresholds for each group from a linear program."""
    install = 'pip install "setminus[parity]" && pip install --no-deps error-parity==0.3.12'
    library = load("error_parity", "error-parity", install)
    for tolerance in tolerances:
        start = time.perf_counter()
        model = library.RelaxedThresholdOptimizer(
            predictor=lambda rows: rows[:, 1], constraint="equalized_odds", tolerance=tolerance, seed=seed
        )
        with warnings.catch_warnings(action="ignore"):
            model.fit(tune.proba, tune.y, group=tune.group_codes.astype(int))
        seconds = time.perf_counter() - start
        predictions = np.asarray(model.predict(test.proba, group=test.group_codes.astype(int))).astype(int)
        yield Answer(predictions, None, seconds, tolerance)


def oxonfair(
    tune: Scored, test: Scored, tolerances: Sequence[float], *, inferred: bool = False, agg: str = "sum"
) -> Iterator[Answer]:
    """OxonFair: a threshold for each group, known or inferred, searched for accuracy within a gap."""
    library = load("oxonfair", "oxonfair")
    metrics = library.group_metrics
    # its equalized odds is the mean of the two differences, ours their sum or the larger
    constraint, scale = (metrics.equalized_odds, 0.5) if agg == "sum" else (metrics.equalized_odds_max, 1.0)
    start = time.perf_counter()
    groups: Any = (lambda rows: rows[:, 2:].copy()) if inferred else False
    # with three groups or more, its further group of uncertain rows makes the grid too large for the memory
    options = {"threshold": 0} if inferred and len(np.unique(tune.u)) > 2 else {}
    seen = library.DataDict(tune.y, tune.with_groups, tune.u)
    model = library.FairPredictor(_Given(), seen, inferred_groups=groups, **options)
    model.fit(metrics.accuracy, constraint, scale * tolerances[0])
    seconds = time.perf_counter() - start
    rows = library.DataDict(test.y, test.with_groups, test.u)
    for tolerance in tolerances:
        model.fit(metrics.accuracy, constraint, scale * tolerance, recompute=False)
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
    library = load("skada", "skada")
    with config_context(enable_metadata_routing=True):
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


def load(module: str, package: str, install: str = 'pip install "setminus[bench]"') -> Any:
    """Import a library without its warnings about optional dependencies and without its settings of scikit-learn."""
    logging.disable(logging.WARNING)
    try:
        # skada enables metadata routing for the whole process when it is imported
        with config_context(), warnings.catch_warnings(action="ignore"):
            return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this comparison needs {package}: {install}") from error
    finally:
        logging.disable(logging.NOTSET)

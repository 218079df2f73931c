r"""Our rows of tables 4 and 5: w_x \ w_1 by the formula, with a proxy of the group, tuned, and with gradient boosting.

The principal classifier is ``w_1 = p(y | u)`` by counting where the group u is known when predicting, or
``w_1(x) = sum over u of p(u | x) p(y | u)`` with a network for p(u | x) where it is not.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from setminus.core.orthogonalize import log_setminus, orthogonalize
from setminus.estimators.frontier import gap_of
from setminus.estimators.principals import ProxyPrincipal
from setminus.estimators.search import Problem, search
from setminus.estimators.tuned import STRENGTHS, TunedOrthogonalClassifier
from setminus_paper.fairness.training import EPOCHS, FairTask, trained, vanilla
from setminus_paper.fairness.trials import (
    Codes,
    Floats,
    Part,
    Predictions,
    Trials,
    accuracies,
    best_epochs,
    count_tables,
)

__all__ = [
    "FOLDS",
    "TOLERANCE",
    "attribute_network",
    "boosting",
    "fold",
    "orthogonal",
    "orthogonal_proxy",
    "principals",
    "tuned",
    "tuned_boosting",
    "tuned_on_folds",
]

Prior = Literal["empirical", "uniform"]
Kind = Literal["group", "proxy"]

TOLERANCE = 0.05
"""Largest summed equalized-odds gap, on the rows that strength and threshold are chosen by."""
FOLDS = 5


def orthogonal(trials: Trials, *, prior: Prior = "empirical", epochs: int = EPOCHS) -> Predictions:
    """The paper's formula, with the groups known when predicting.

    The prior is p(y) of the training rows, as in the formula, or uniform, as in the code behind the paper's table.
    """
    validation, test, _ = principals("group", trials, epochs)
    return _without(vanilla(trials, epochs=epochs), validation, test, trials, prior)


def orthogonal_proxy(trials: Trials, *, epochs: int = EPOCHS) -> Predictions:
    """The paper's formula where the groups are not known when predicting."""
    validation, test, seconds = principals("proxy", trials, epochs)
    found = _without(vanilla(trials, epochs=epochs), validation, test, trials)
    return replace(found, seconds=found.seconds + seconds)


def tuned(
    trials: Trials, *, principal: Kind = "group", tolerance: float = TOLERANCE, epochs: int = EPOCHS
) -> Predictions:
    """Choose strength and threshold on the validation rows, by the search of `TunedOrthogonalClassifier`.

    Returns
    -------
    Predictions
        With the settings "strength" and "threshold".
    """
    full = vanilla(trials, epochs=epochs)
    validation, test, seconds = principals(principal, trials, epochs)
    start = time.perf_counter()
    proba = {"validation": full.on_validation.proba.copy(), "test": full.test.proba.copy()}
    settings = {name: np.empty(proba["test"].shape[:2]) for name in ("strength", "threshold")}
    log_prior = np.log(_label_prior(trials))
    for k, epoch in np.ndindex(*proba["test"].shape[:2]):
        rows = trials.validation[k]
        log_full, log_principal = _logs(proba["validation"][k, epoch]), np.log(validation[k])
        strength, threshold = _choose(log_full, log_principal, log_prior[k], trials.y[rows], trials.u[rows], tolerance)
        settings["strength"][k, epoch], settings["threshold"][k, epoch] = strength, threshold
        for name, principal_proba in (("validation", validation), ("test", test)):
            log_proba = log_setminus(_logs(proba[name][k, epoch]), np.log(principal_proba[k]), log_prior[k], strength)
            proba[name][k, epoch] = np.exp(log_proba[:, 1])
    seconds += full.seconds + (time.perf_counter() - start) / len(trials.seeds)
    cut = settings["threshold"][..., None]
    return Predictions(Part.of(proba["validation"], cut), Part.of(proba["test"], cut), seconds, settings)


def tuned_on_folds(
    trials: Trials, *, principal: Kind = "group", tolerance: float = TOLERANCE, epochs: int = EPOCHS
) -> Predictions:
    """The same search on out-of-fold predictions of all training and validation rows.

    A gap between groups is the difference of two rates of few rows, hence noisy: a strength and a threshold that keep
    it on a quarter of the rows do not keep it elsewhere. Here each row is predicted by the network that did not see
    it; new rows get the mean of the folds' networks.

    Returns
    -------
    Predictions
        Of one epoch, the one of the highest accuracy out of fold, with "strength", "threshold" and "folds_epoch".
    """
    folds = fold(trials)
    full = _fold_networks(trials, epochs, "label")
    seconds = full.seconds * FOLDS
    out_of_fold, test, epoch = _best(full, folds, folds.y)
    groups = None
    if principal == "proxy":
        attribute = _fold_networks(trials, epochs, "group")
        seconds += attribute.seconds * FOLDS
        groups = _best(attribute, folds, folds.u)[:2]
    start = time.perf_counter()
    settings = np.empty((3, len(trials.seeds), 1))
    proba = np.empty((len(trials.seeds), 1, trials.test.shape[1]))
    for k in range(len(trials.seeds)):
        rows = folds.validation.reshape(len(trials.seeds), -1)[k]
        counts = np.array([[np.sum((folds.u[rows] == u) & (folds.y[rows] == y)) for y in (0, 1)] for u in (0, 1)])
        given_group = counts / counts.sum(axis=1, keepdims=True)
        log_prior = np.log(counts.sum(axis=0) / counts.sum())
        ours, theirs = (
            np.log(given_group[trials.u[some]] if known is None else _mixture(known[k], given_group))
            for some, known in zip((rows, trials.test[k]), groups or (None, None), strict=True)
        )
        strength, threshold = _choose(_logs(out_of_fold[k]), ours, log_prior, folds.y[rows], folds.u[rows], tolerance)
        settings[:, k, 0] = strength, threshold, epoch[k] + 1
        proba[k, 0] = np.exp(log_setminus(_logs(test[k]), theirs, log_prior, strength)[:, 1])
    seconds += (time.perf_counter() - start) / len(trials.seeds)
    named = dict(zip(("strength", "threshold", "folds_epoch"), settings, strict=True))
    return Predictions(None, Part.of(proba, named["threshold"][..., None]), seconds, named)


def boosting(trials: Trials) -> Predictions:
    """Scikit-learn's gradient boosting on the "raw" encoding, without any regard to fairness.

    There is no epoch to pick, hence it learns from the validation rows as well.
    """

    def fit(seed: int, rows: Codes) -> Any:
        return _boosting(trials, seed).fit(trials.x[rows], trials.y[rows])

    return _fit_per_seed(trials, fit)


def tuned_boosting(trials: Trials, *, tolerance: float = TOLERANCE) -> Predictions:
    """`TunedOrthogonalClassifier` around gradient boosting with a proxy: no group is used when predicting.

    Returns
    -------
    Predictions
        With the settings "strength" and "threshold".
    """

    def fit(seed: int, rows: Codes) -> Any:
        model = TunedOrthogonalClassifier(
            _boosting(trials, seed),
            ProxyPrincipal(_boosting(trials, seed), method="mixture"),
            agg="sum",
            tolerance=tolerance,
            confidence=None,
            min_lead=0,
            min_rate_ratio=0,
            group_offsets=False,
            random_state=seed,
        )
        return model.fit(trials.x[rows], trials.y[rows], sensitive_features=trials.u[rows])

    # on few rows no point may keep the tolerance; the row then shows the point of the smallest gap
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return _fit_per_seed(trials, fit)


def principals(kind: Kind, trials: Trials, epochs: int = EPOCHS) -> tuple[Floats, Floats, float]:
    """The principal classifier on validation and test rows, each (seeds, rows, 2), and the seconds that it took.

    The network of a proxy is taken at the epoch that predicts the groups of the validation rows best.
    """
    counts = trials.group_counts
    given_group = counts / counts.sum(axis=2, keepdims=True)
    seed = np.arange(len(trials.seeds))
    if kind == "group":
        validation, test = (given_group[seed[:, None], trials.u[rows]] for rows in (trials.validation, trials.test))
        return validation, test, 0.0
    attribute = attribute_network(trials, epochs)
    # the group is what is predicted here, in place of the label
    epoch = best_epochs(attribute.on_validation, trials.u[trials.validation], trials.y[trials.validation])
    validation, test = (
        _mixture(part.proba[seed, epoch], given_group) for part in (attribute.on_validation, attribute.test)
    )
    return validation, test, attribute.seconds


# several rows use it
@lru_cache(maxsize=2)
def attribute_network(trials: Trials, epochs: int) -> Predictions:
    """p(u | x): the paper's network, trained on the group instead of the label."""
    return trained(FairTask(trials, target=trials.u), epochs)


def fold(trials: Trials) -> Trials:
    """Split each seed's training and validation rows into folds: one trial for each fold that is held out.

    Examples
    --------
    >>> rows = np.arange(100)
    >>> train, validation, test = np.split(rows[None], [60, 80], axis=1)
    >>> one = Trials(np.zeros((100, 1)), rows % 2, rows // 50, (3,), train, validation, test)
    >>> folds = fold(one)
    >>> folds.train.shape, folds.validation.shape, sorted(folds.validation.ravel()) == list(range(80))
    ((5, 64), (5, 16), True)
    """
    pooled = np.concatenate([trials.train, trials.validation], axis=1)
    # networks that are trained together need the same number of rows: up to four are left over
    kept = pooled.shape[1] // FOLDS * FOLDS
    parts = np.stack(
        [
            np.random.default_rng([seed, FOLDS]).permutation(rows)[:kept].reshape(FOLDS, -1)
            for seed, rows in zip(trials.seeds, pooled, strict=True)
        ]
    )
    train = [np.delete(one, held, axis=0).ravel() for one in parts for held in range(FOLDS)]
    return replace(
        trials,
        seeds=tuple(FOLDS * seed + held for seed in trials.seeds for held in range(FOLDS)),
        train=np.stack(train),
        validation=parts.reshape(-1, parts.shape[-1]),
        test=np.repeat(trials.test, FOLDS, axis=0),
    )


# rows of other tolerances share them
@lru_cache(maxsize=2)
def _fold_networks(trials: Trials, epochs: int, target: Literal["label", "group"]) -> Predictions:
    folds = fold(trials)
    return trained(FairTask(folds, target=folds.u if target == "group" else None), epochs)


def _best(found: Predictions, folds: Trials, target: Codes) -> tuple[Floats, Floats, Codes]:
    """Probabilities out of fold and for the test rows, at each seed's best epoch, and that epoch."""
    held_out, test = found.on_validation.proba, found.test.proba
    seeds = len(folds.seeds) // FOLDS
    # (seeds, folds, epochs, rows) to (seeds, epochs, all rows)
    by_epoch = held_out.reshape(seeds, FOLDS, *held_out.shape[1:]).transpose(0, 2, 1, 3)
    by_seed = by_epoch.reshape(seeds, held_out.shape[1], -1)
    truth = target[folds.validation].reshape(seeds, -1)
    epoch = np.argmax(accuracies(count_tables(by_seed >= 0.5, truth, truth)), axis=1)
    mean_of_folds = test.reshape(seeds, FOLDS, *test.shape[1:]).mean(axis=1)
    seed = np.arange(seeds)
    return by_seed[seed, epoch], mean_of_folds[seed, epoch], epoch


def _without(
    full: Predictions, validation: Floats, test: Floats, trials: Trials, prior: Prior = "empirical"
) -> Predictions:
    """Remove a principal classifier, (seeds, rows, 2) on either part, from predictions in all epochs."""
    start = time.perf_counter()
    # one prior for each seed, the same for its epochs and rows
    frequencies = _label_prior(trials) if prior == "empirical" else np.full((len(trials.seeds), 2), 0.5)

    def part(proba: Floats, principal: Floats) -> Part:
        both = np.stack([1 - proba, proba], axis=-1)
        per_row = np.broadcast_to(frequencies[:, None, None], both.shape)
        return Part.of(orthogonalize(both, np.broadcast_to(principal[:, None], both.shape), per_row)[..., 1])

    parts = part(full.on_validation.proba, validation), part(full.test.proba, test)
    return Predictions(*parts, full.seconds + (time.perf_counter() - start) / len(trials.seeds))


def _choose(
    log_full: Floats, log_principal: Floats, log_prior: Floats, y: Codes, u: Codes, tolerance: float
) -> tuple[float, float]:
    """The strength and the threshold of the highest accuracy within the tolerance."""
    gap = gap_of("equalized_odds", "sum")
    problem = Problem(y, u, np.arange(2), 2, np.ones(len(y)), gap)

    def best_of(strength: float) -> tuple[float, float, float, float]:
        found = search(problem, strength, log_setminus(log_full, log_principal, log_prior, strength))
        point = found.best(tolerance)
        # in this order: within the tolerance, then the accuracy, then the smaller change
        over = max(float(found.gap[point]) - tolerance, 0.0)
        return over, -float(found.score[point]), strength, float(found.threshold[point])

    _, _, strength, threshold = min(map(best_of, STRENGTHS))
    return strength, threshold


def _label_prior(trials: Trials) -> Floats:
    """p(y) of the training rows, of shape (seeds, labels)."""
    counts = trials.group_counts.sum(axis=1)
    prior: Floats = counts / counts.sum(axis=1, keepdims=True)
    return prior


def _mixture(second_group: Floats, given_group: Floats) -> Floats:
    """``sum over u of p(u | x) p(y | u)``, from p(u = 1 | x)."""
    mixed: Floats = np.stack([1 - second_group, second_group], axis=-1) @ given_group
    return mixed


def _logs(proba: Floats) -> Floats:
    """Log-probabilities of both labels, from the probability of label 1."""
    logs: Floats = np.log(np.maximum(np.stack([1 - proba, proba], axis=-1), np.finfo(np.float64).tiny))
    return logs


def _boosting(trials: Trials, seed: int) -> Any:
    return HistGradientBoostingClassifier(categorical_features=list(trials.categorical), random_state=seed)


def _fit_per_seed(trials: Trials, fit: Callable[[int, Codes], Any]) -> Predictions:
    start = time.perf_counter()
    rows = trials.learning_from_all().train
    models = [fit(seed, own) for seed, own in zip(trials.seeds, rows, strict=True)]
    x = [trials.x[own] for own in trials.test]
    proba = np.stack([model.predict_proba(own)[None, :, 1] for model, own in zip(models, x, strict=True)])
    decisions = np.stack([model.predict(own)[None] == 1 for model, own in zip(models, x, strict=True)])
    settings = {
        name: np.array([[getattr(model, f"{name}_")] for model in models])
        for name in ("strength", "threshold")
        if hasattr(models[0], f"{name}_")
    }
    return Predictions(None, Part(proba, decisions), (time.perf_counter() - start) / len(models), settings)

r"""w_x \ w_1, tuned on predictions out of fold: every row that is not for testing helps to choose.

A gap between groups is the difference of two rates of few rows, hence noisy: chosen on a quarter of the rows, a
strength and a threshold that keep it there do not keep it elsewhere. Here each row is predicted by the network that did
not see it, as in `TunedOrthogonalClassifier`; new rows get the mean of the folds' networks.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np

from setminus.core.orthogonalize import log_setminus
from setminus_paper.fairness.measuring import accuracies, count_tables
from setminus_paper.fairness.predictions import Part, Predictions
from setminus_paper.fairness.training import EPOCHS, FairTask, trained
from setminus_paper.fairness.trials import Codes, Floats, Trials
from setminus_paper.fairness.tuned import TOLERANCE, logs, picked

__all__ = ["FOLDS", "fold", "tuned_on_folds"]

FOLDS = 5


def tuned_on_folds(
    trials: Trials,
    *,
    principal: Literal["group", "proxy"] = "group",
    tolerance: float = TOLERANCE,
    epochs: int = EPOCHS,
) -> Predictions:
    """Strength and threshold by the search of `TunedOrthogonalClassifier`, out of fold.

    Parameters
    ----------
    trials : Trials
        Training and validation rows are dealt into folds together.
    principal : {"group", "proxy"}
        p(y | u) with the groups known when predicting, or what x betrays of them.
    tolerance : float
        The summed equalized-odds gap to keep out of fold.
    epochs : int
        Of the networks; a seed's folds share the epoch of the highest accuracy out of fold.

    Returns
    -------
    Predictions
        Of one epoch, with the settings "strength", "threshold" and "folds_epoch".
    """
    folds = fold(trials)
    full = _label_networks(trials, epochs)
    seconds = full.seconds * FOLDS
    out_of_fold, test, epoch = _best(full, folds, folds.y)
    groups = None
    if principal == "proxy":
        attribute = _group_networks(trials, epochs)
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
            np.log(given_group[trials.u[some]] if known is None else _mixed(known[k], given_group))
            for some, known in zip((rows, trials.test[k]), groups or (None, None), strict=True)
        )
        strength, threshold = picked(logs(out_of_fold[k]), ours, log_prior, folds.y[rows], folds.u[rows], tolerance)
        settings[:, k, 0] = strength, threshold, epoch[k] + 1
        proba[k, 0] = np.exp(log_setminus(logs(test[k]), theirs, log_prior, strength)[:, 1])
    seconds += (time.perf_counter() - start) / len(trials.seeds)
    named = dict(zip(("strength", "threshold", "folds_epoch"), settings, strict=True))
    return Predictions(None, Part.of(proba, named["threshold"][..., None]), seconds, named)


def fold(trials: Trials) -> Trials:
    """Each seed's training and validation rows, dealt into folds: what holds one of them out is a trial of its own.

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
    # networks that are trained together learn from equally many rows: up to four are left over
    kept = pooled.shape[1] // FOLDS * FOLDS
    dealt = np.stack(
        [
            np.random.default_rng([seed, FOLDS]).permutation(rows)[:kept].reshape(FOLDS, -1)
            for seed, rows in zip(trials.seeds, pooled, strict=True)
        ]
    )
    train = [np.delete(parts, held, axis=0).ravel() for parts in dealt for held in range(FOLDS)]
    return replace(
        trials,
        seeds=tuple(FOLDS * seed + held for seed in trials.seeds for held in range(FOLDS)),
        train=np.stack(train),
        validation=dealt.reshape(-1, dealt.shape[-1]),
        test=np.repeat(trials.test, FOLDS, axis=0),
    )


# rows of other tolerances share them
@lru_cache(maxsize=1)
def _label_networks(trials: Trials, epochs: int) -> Predictions:
    return trained(FairTask(fold(trials)), epochs)


@lru_cache(maxsize=1)
def _group_networks(trials: Trials, epochs: int) -> Predictions:
    folds = fold(trials)
    return trained(FairTask(folds, target=folds.u), epochs)


def _best(found: Predictions, folds: Trials, target: Codes) -> tuple[Floats, Floats, Codes]:
    """Out of fold and for the test rows, at each seed's best epoch, and which that is."""
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


def _mixed(second_group: Floats, given_group: Floats) -> Floats:
    """``sum over u of p(u | x) p(y | u)``."""
    mixed: Floats = np.stack([1 - second_group, second_group], axis=-1) @ given_group
    return mixed

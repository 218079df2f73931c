r"""w_x \ w_1: the full classifier without what the group alone says of the label. Nothing is trained beyond w_x."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np

from setminus.core.orthogonalize import orthogonalize
from setminus_paper.fairness.predictions import Part, Predictions
from setminus_paper.fairness.training import EPOCHS
from setminus_paper.fairness.trials import Floats, Trials
from setminus_paper.fairness.vanilla import vanilla

__all__ = ["Prior", "label_given_group", "orthogonal", "without"]

Prior = Literal["empirical", "uniform"]


def orthogonal(trials: Trials, *, prior: Prior = "empirical", epochs: int = EPOCHS) -> Predictions:
    """The paper's formula, with the groups known when predicting: ``w_1(x) = p(y | u(x))`` by counting.

    Parameters
    ----------
    trials : Trials
    prior : {"empirical", "uniform"}
        p(y) of the training rows, as the formula says, or none, as what ran behind the paper's table.
    epochs : int
        Of the full classifier.

    Returns
    -------
    Predictions
    """
    group_proba = label_given_group(trials)
    seed = np.arange(len(trials.seeds))[:, None]
    principals = [group_proba[seed, trials.u[rows]] for rows in (trials.validation, trials.test)]
    return without(vanilla(trials, epochs=epochs), principals[0], principals[1], trials, prior)


def label_given_group(trials: Trials) -> Floats:
    """p(y | u) of the training rows, of shape (seeds, groups, labels)."""
    counts = trials.group_counts
    proba: Floats = counts / counts.sum(axis=2, keepdims=True)
    return proba


def label_prior(trials: Trials) -> Floats:
    """p(y) of the training rows, of shape (seeds, labels)."""
    counts = trials.group_counts.sum(axis=1)
    prior: Floats = counts / counts.sum(axis=1, keepdims=True)
    return prior


def without(
    full: Predictions, validation: Floats, test: Floats, trials: Trials, prior: Prior = "empirical"
) -> Predictions:
    """Take a principal classifier out of predictions, in all epochs.

    Parameters
    ----------
    full : Predictions
        With predictions of the validation rows.
    validation, test : ndarray of shape (seeds, rows, 2)
        The principal classifier on the same rows.
    trials : Trials
        Where the prior comes from.
    prior : {"empirical", "uniform"}

    Returns
    -------
    Predictions
        With the seconds of `full` added.
    """
    start = time.perf_counter()
    # one prior for each seed, the same for its epochs and rows
    frequencies = label_prior(trials) if prior == "empirical" else np.full((len(trials.seeds), 2), 0.5)

    def part(proba: Floats, principal: Floats) -> Part:
        both = np.stack([1 - proba, proba], axis=-1)
        per_row = np.broadcast_to(frequencies[:, None, None], both.shape)
        return Part.of(orthogonalize(both, np.broadcast_to(principal[:, None], both.shape), per_row)[..., 1])

    parts = part(full.on_validation.proba, validation), part(full.test.proba, test)
    return Predictions(*parts, full.seconds + (time.perf_counter() - start) / len(trials.seeds))

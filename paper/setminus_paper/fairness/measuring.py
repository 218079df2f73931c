"""From predictions to the numbers of the tables, under two rules that pick the epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from setminus.core.gaps import demographic_parity_from_table, equalized_odds_from_table
from setminus_paper.fairness.predictions import Part, Predictions
from setminus_paper.fairness.trials import Codes, Floats, Trials

__all__ = ["accuracies", "best_epochs", "count_tables", "measure"]


def count_tables(decisions: NDArray[np.bool_], y: Codes, u: Codes) -> Floats:
    """Rows by group, label and decision, for each seed and epoch.

    Parameters
    ----------
    decisions : ndarray of bool of shape (seeds, epochs, rows)
    y, u : ndarray of int of shape (seeds, rows)
        Labels and groups of the same rows.

    Returns
    -------
    ndarray of shape (seeds, epochs, 2, 2, 2)

    Examples
    --------
    >>> y = u = np.array([[0, 1, 1]])
    >>> count_tables(np.array([[[False, True, False]]]), y, u)[0, 0].tolist()
    [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]]
    """
    seeds, epochs, _ = decisions.shape
    which = np.arange(seeds * epochs).reshape(seeds, epochs, 1)
    cells = ((2 * which + u[:, None]) * 2 + y[:, None]) * 2 + decisions
    return np.bincount(cells.ravel(), minlength=8 * seeds * epochs).reshape(seeds, epochs, 2, 2, 2).astype(float)


def accuracies(tables: Floats) -> Floats:
    """The share of rows whose decision is their label, for each table of `count_tables`."""
    confusion = tables.sum(axis=-3)
    accuracy: Floats = np.trace(confusion, axis1=-2, axis2=-1) / confusion.sum(axis=(-2, -1))
    return accuracy


def best_epochs(part: Part, y: Codes, u: Codes) -> Codes:
    """The epoch, from 0, of the highest accuracy on these rows, for each seed; the first of equals."""
    best: Codes = np.argmax(accuracies(count_tables(part.decisions, y, u)), axis=1)
    return best


def measure(predictions: Predictions, trials: Trials, whole: Predictions | None = None) -> list[dict[str, Any]]:
    """Accuracy and gaps on the test rows, for each seed.

    Parameters
    ----------
    predictions : Predictions
    trials : Trials
        What they were made from.
    whole : Predictions, optional
        The same method on ``trials.learning_from_all()``, for "test_oracle": who picks the epoch on the test rows
        holds no others out. By default both rules read `predictions`.

    Returns
    -------
    list of dict
        For each seed: "validation", with the epoch of the highest accuracy on the validation rows, "test_oracle",
        with the epoch of the highest accuracy on the test rows themselves, and "seconds_per_seed". Both rules read
        the method's own decisions. `eo_gap` is the sum over the labels, as in the paper.
    """
    oracle = predictions if whole is None else whole
    y, u = trials.y[trials.test], trials.u[trials.test]
    by_accuracy = best_epochs(oracle.test, y, u)
    blocks = {
        "validation": _blocks(predictions, _validated(predictions, trials), y, u),
        "test_oracle": _blocks(oracle, by_accuracy, y, u),
    }
    return [
        {**{rule: found[k] for rule, found in blocks.items()}, "seconds_per_seed": round(predictions.seconds, 4)}
        for k in range(len(trials.seeds))
    ]


def _blocks(predictions: Predictions, epochs: Codes, y: Codes, u: Codes) -> list[dict[str, Any]]:
    """The numbers of each seed on the test rows, at its epoch."""
    tables = count_tables(predictions.test.decisions, y, u)
    measured = {
        "accuracy": accuracies(tables),
        "dp_gap": demographic_parity_from_table(tables),
        "eo_gap": equalized_odds_from_table(tables, "sum"),
        **predictions.settings,
    }
    return [
        {
            **{name: float(values[k, epoch]) for name, values in measured.items()},
            "auc": float(roc_auc_score(y[k], predictions.test.proba[k, epoch])),
            "epoch": int(epoch) + 1,
        }
        for k, epoch in enumerate(epochs)
    ]


def _validated(predictions: Predictions, trials: Trials) -> Codes:
    if predictions.validation is None and predictions.test.proba.shape[1] == 1:
        return np.zeros(len(trials.seeds), dtype=np.intp)
    return best_epochs(predictions.on_validation, trials.y[trials.validation], trials.u[trials.validation])

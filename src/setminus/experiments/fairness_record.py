"""The parts of a fairness record: what was searched, what the features betray, how long each step took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from setminus.estimators.tuned import TunedOrthogonalClassifier

__all__ = ["Step", "Stopwatch", "betrayed", "frontier_points"]

Step = Callable[[str], AbstractContextManager[Any]]
"""Given the name of a step, a context manager around its work: a progress display, or nothing."""


class Stopwatch:
    """Steps that are shown by `step` and timed here.

    Examples
    --------
    >>> watch = Stopwatch()
    >>> with watch("wait"):
    ...     pass
    >>> list(watch.seconds)
    ['wait']
    """

    def __init__(self, step: Step = nullcontext):
        self.step = step
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Around the work of one step."""
        start = time.perf_counter()
        with self.step(name):
            yield
        self.seconds[name] = time.perf_counter() - start


def betrayed(attribute_model: Any, X: Any, groups: Any) -> dict[str, float | None]:
    """How well the features tell the groups that were left out."""
    groups = np.asarray(groups)
    names, counts = np.unique(groups, return_counts=True)
    proba = attribute_model.predict_proba(X)
    # with more groups than two, or one that the test rows lack, there is no single AUC
    auc = float(roc_auc_score(groups, proba[:, 1])) if len(names) == proba.shape[1] == 2 else None
    return {
        "auc": auc,
        "accuracy": float(np.mean(attribute_model.predict(X) == groups)),
        "largest_group": float(counts.max() / counts.sum()),
    }


def frontier_points(tuned: TunedOrthogonalClassifier) -> dict[str, Any]:
    """The best trades, the chosen one, and the model as it was; the thousands of others stay out of the record."""
    searched = tuned.frontier_
    binary = searched.offsets.shape[1] == 2
    untouched = np.flatnonzero(searched.strength == searched.strength.min())
    untouched = untouched[np.argmin(np.abs(searched.offsets[untouched]).sum(axis=1))]

    def point(index: Any) -> dict[str, Any]:
        found: dict[str, Any] = {name: float(getattr(searched, name)[index]) for name in ("strength", "score", "gap")}
        if binary:
            return {**found, "threshold": float(searched.threshold[index])}
        return {**found, "offsets": searched.offsets[index].tolist()}

    return {
        "best": [point(index) for index in searched.pareto()],
        "chosen": point(searched.chosen),
        "untouched": point(untouched),
        "searched": searched.n_tried,
        "score_name": searched.score_name,
        "gap_name": searched.gap_name,
        "tolerance": tuned.tolerance,
    }

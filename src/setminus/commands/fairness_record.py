"""The parts of a fairness record: the points of the search, and how well the features predict the attribute."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from setminus.estimators.tuned import TunedOrthogonalClassifier

__all__ = ["attribute_predictability", "frontier_points"]


def attribute_predictability(attribute_model: Any, X: Any, groups: Any) -> dict[str, float | None]:
    """How well the features predict the groups that were left out."""
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

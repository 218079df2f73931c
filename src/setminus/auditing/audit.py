"""The audit: rates and gaps of groups under a score, and whether the method's conditions hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import log_loss, roc_auc_score

from setminus.auditing.calibration import Calibration, calibration, score_histograms
from setminus.auditing.diagnosis import ROWS_PER_CELL, diagnose, overlap, small_cells
from setminus.auditing.leakage import Leakage, leakage_from_codes
from setminus.auditing.rates import (
    Interval,
    Scored,
    bootstrap_tables,
    check_proba,
    gap_interval,
    group_rates,
    rate_interval,
    read_scored,
)
from setminus.auditing.result import Audit
from setminus.core.gaps import (
    count_table,
    demographic_parity_from_rates,
    equal_opportunity_from_rates,
    equalized_odds_from_rates,
)
from setminus.core.groups import encode_labels, recode
from setminus.errors import UserError

__all__ = ["audit"]

Floats = NDArray[np.float64]


def audit(
    y: ArrayLike,
    proba: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    full_proba: ArrayLike | None = None,
    principal_proba: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    threshold: float | None = None,
    y_pred: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
    n_bootstrap: int = 1000,
    n_permutations: int = 200,
    random_state: int = 0,
) -> Audit:
    """Audit a score: gaps with intervals, remaining information about the groups, and the method's conditions.

    Pass held-out rows: on the rows of the fit, calibration and gaps look better than they are.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any type.
    proba : array-like of shape (n, n_classes), or (n,) with P(second class)
        The score under audit, for example an orthogonal classifier's.
    sensitive_features : array-like of shape (n,) or (n, k)
        z1, the group of each row; several columns are crossed. Each value is a group: cut a number such as an age
        into bins first, for example by `pandas.qcut` (the classifiers of this package do so in `fit`).
    full_proba, principal_proba : array-like like `proba`, optional
        The classifiers that the score was computed from; needed to check their calibration and overlap.
    classes : sequence, optional
        The class of each column of `proba`; by default the sorted labels of `y`.
    threshold : float, optional
        Two classes only: predict the second where its probability is at least this. By default the most
        probable class is predicted.
    y_pred : array-like of shape (n,), optional
        Predictions to audit instead of those of `threshold`.
    sample_weight : array-like of shape (n,), optional
        Weights in rates, gaps and calibration. The leakage test and the counts of rows are unweighted.
    confidence : float
        Of all intervals.
    n_bootstrap, n_permutations : int
        Draws behind the intervals, and behind the leakage test's p-value.
    random_state : int

    Returns
    -------
    Audit

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, group = rng.integers(2, size=(2, 1000))
    >>> result = audit(y, 0.2 + 0.3 * y + 0.3 * group, sensitive_features=group)
    >>> result.equalized_odds_max.value
    1.0
    >>> print(result.verdict)
    The guarantee does not hold here. Failed conditions: 'score independent of the groups given the label'. Rely on the
    measured gaps and their intervals.
    """
    if not 0 < confidence < 1 or n_bootstrap < 1:
        raise UserError(
            f"confidence is {confidence} and n_bootstrap {n_bootstrap}",
            expected="a share between 0 and 1, and at least one draw",
        )
    rows = read_scored(y, proba, sensitive_features, classes=classes, sample_weight=sample_weight)
    predicted = _predictions(rows, threshold, y_pred)
    shape = (len(rows.groups), len(rows.classes), len(rows.classes))
    table = count_table(rows.group, rows.y, predicted, shape, rows.weight)
    squares = table if rows.weight is None else count_table(rows.group, rows.y, predicted, shape, rows.weight**2)
    counts = count_table(rows.group, rows.y, predicted, shape).sum(axis=-1)
    centre, draws = bootstrap_tables(
        rows.group,
        rows.y,
        predicted,
        shape,
        weights=rows.weight,
        n_bootstrap=n_bootstrap,
        random_state=random_state,
    )

    def gap(of_rates: Callable[[Floats], Floats], limit: float = 1.0) -> Interval:
        return gap_interval(of_rates, table, centre, draws, confidence=confidence, limit=limit)

    def leaks(score: Floats) -> Leakage:
        return leakage_from_codes(rows.y, score, rows.group, n_permutations=n_permutations, random_state=random_state)

    full = _behind(rows, full_proba, "full_proba")
    principal = _behind(rows, principal_proba, "principal_proba")
    measured: dict[str, Any] = {
        "leakage": leaks(rows.proba),
        "full_leakage": None if full is None else leaks(full.proba),
        "full_calibration": _calibration(full, random_state),
        "principal_calibration": _calibration(principal, random_state),
        "overlap": None if principal is None else overlap(rows.y, principal.proba),
    }
    cells = small_cells(counts, rows.groups, rows.classes, below=ROWS_PER_CELL[0])
    return Audit(
        n=len(rows.y),
        classes=tuple(rows.classes),
        groups=tuple(rows.groups),
        confidence=confidence,
        accuracy=rate_interval(
            float(np.trace(table, axis1=-2, axis2=-1).sum() / table.sum()),
            float(table.sum() ** 2 / squares.sum()),
            confidence,
        ),
        demographic_parity=gap_interval(
            demographic_parity_from_rates,
            table.sum(axis=-2),
            centre.sum(axis=-2),
            draws.sum(axis=-2),
            confidence=confidence,
        ),
        equalized_odds_max=gap(equalized_odds_from_rates),
        equalized_odds_sum=gap(partial(equalized_odds_from_rates, agg="sum"), limit=len(rows.classes)),
        equal_opportunity=gap(equal_opportunity_from_rates),
        log_loss=float(log_loss(rows.y, rows.proba, sample_weight=rows.weight, labels=range(shape[1]))),
        roc_auc=_roc_auc(rows),
        group_rates=group_rates(
            table, squares, counts.sum(axis=1).astype(np.intp), rows.groups, rows.classes, confidence
        ),
        calibration=calibration(rows, random_state=random_state),
        findings=diagnose(cells=cells, **measured),
        histograms=score_histograms(rows),
        **measured,
    )


def _predictions(rows: Scored, threshold: float | None, y_pred: ArrayLike | None) -> NDArray[np.intp]:
    if y_pred is not None:
        if threshold is not None:
            raise UserError("threshold and y_pred were both given", do="pass one of them.")
        codes, labels = encode_labels(y_pred, name="y_pred")
        unknown = [label for label in labels if label not in rows.classes]
        if unknown or len(codes) != len(rows.y):
            raise UserError(
                f"y_pred has {len(codes)} rows with labels {labels}, y has {len(rows.y)} rows of {rows.classes}",
                expected="as many rows, and no other labels",
            )
        return recode(codes, labels, rows.classes)
    if threshold is None:
        return np.asarray(rows.proba.argmax(axis=1), dtype=np.intp)
    if len(rows.classes) != 2 or not 0 <= threshold <= 1:
        raise UserError(
            f"threshold is {threshold} with {len(rows.classes)} classes",
            do="expected a probability, for two classes only. Pass y_pred instead.",
        )
    return np.asarray(rows.proba[:, 1] >= threshold, dtype=np.intp)


def _behind(rows: Scored, proba: ArrayLike | None, name: str) -> Scored | None:
    """The same rows, scored by another classifier."""
    if proba is None:
        return None
    checked = check_proba(proba, len(rows.y), len(rows.classes), name=name)
    return Scored(rows.y, rows.group, checked, rows.weight, rows.classes, rows.groups)


def _calibration(rows: Scored | None, random_state: int) -> Calibration | None:
    return None if rows is None else calibration(rows, random_state=random_state)


def _roc_auc(rows: Scored) -> float:
    score = rows.proba[:, 1] if len(rows.classes) == 2 else rows.proba
    return float(roc_auc_score(rows.y, score, sample_weight=rows.weight, multi_class="ovr"))

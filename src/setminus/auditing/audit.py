"""The audit: rates and gaps of groups under a score, and whether the method's conditions hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import log_loss, roc_auc_score

from setminus.auditing.calibration import BinnedScores, Calibration, calibration, score_histograms
from setminus.auditing.diagnosis import ROWS_PER_CELL, diagnose, overlap, small_cells
from setminus.auditing.impact import attributes_of, impact_tables
from setminus.auditing.leakage import Leakage, leakage_from_codes
from setminus.auditing.rates import (
    Decided,
    Interval,
    Scored,
    bootstrap_tables,
    check_proba,
    gap_interval,
    group_rates,
    rate_interval,
    read_decided,
    read_scored,
)
from setminus.auditing.result import Audit
from setminus.core import Agg, Constraint, Gap
from setminus.core.certificate import certify, noise_floor, rows_needed, smallest_tolerance
from setminus.core.checks import encode_labels, missing_groups, recode
from setminus.errors import UserError

__all__ = ["Audit", "audit", "audit_counted"]

Floats = NDArray[np.float64]

GAPS: dict[Gap, tuple[Constraint, Agg]] = {
    "demographic_parity": ("demographic_parity", "max"),
    "equalized_odds_max": ("equalized_odds", "max"),
    "equalized_odds_sum": ("equalized_odds", "sum"),
    "equal_opportunity": ("equal_opportunity", "max"),
}
"""The gaps of an audit, and what they are called elsewhere."""


def audit(
    y: ArrayLike | None = None,
    proba: ArrayLike | None = None,
    *,
    sensitive_features: ArrayLike,
    full_proba: ArrayLike | None = None,
    principal_proba: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    threshold: float | None = None,
    y_pred: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    favorable_label: Any = None,
    attributes: Mapping[str, ArrayLike] | None = None,
    constraint: Constraint | None = None,
    agg: Agg = "max",
    tolerance: float | None = None,
    confidence: float = 0.95,
    n_bootstrap: int = 1000,
    n_permutations: int = 200,
    random_state: int = 0,
) -> Audit:
    """Audit a score: gaps with intervals, remaining information about the groups, and the method's conditions.

    Pass held-out rows: on the rows of the fit, calibration and gaps look better than they are.

    Parameters
    ----------
    y : array-like of shape (n,), optional
        Labels of any type. Without them only selection rates and demographic parity are known.
    proba : array-like of shape (n, n_classes), or (n,) with P(second class), optional
        The score under audit, for example an orthogonal classifier's. Without it pass the decisions as `y_pred`.
    sensitive_features : array-like of shape (n,) or (n, k)
        z1, the group of each row; several columns are crossed. Each value is a group: cut a number such as an age
        into bins first, for example by `pandas.qcut` (the classifiers of this package do so in `fit`). Rows without a
        group are counted, and left out.
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
    favorable_label : label, optional
        The class that the selection rates and impact ratios of ``Audit.impact`` are of; by default the second of two.
    attributes : mapping of str to array-like of shape (n,), optional
        Groups of the rows for ``Audit.impact``, by the name of the attribute; by default each column of
        `sensitive_features`, and their crossing.
    constraint : {"equalized_odds", "demographic_parity", "equal_opportunity"}, optional
        The gap that `tolerance` limits; by default equalized odds, without labels demographic parity.
    agg : {"max", "sum"}
        How equalized odds puts the gaps of the labels together.
    tolerance : float, optional
        Certify that this gap is at most so large for new rows, or refuse to: see `setminus.certify`. The rows must be
        fresh: not those that the model or its threshold was chosen on.
    confidence : float
        Of all intervals, and of the certificate.
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
    if proba is None and (full_proba is not None or principal_proba is not None or threshold is not None):
        raise UserError("there are no scores", do="pass proba, or leave full_proba, principal_proba and threshold out.")
    return _audited(
        y,
        proba,
        sensitive_features,
        full_proba=full_proba,
        principal_proba=principal_proba,
        classes=classes,
        threshold=threshold,
        y_pred=y_pred,
        sample_weight=sample_weight,
        favorable_label=favorable_label,
        attributes=attributes,
        constraint=constraint,
        agg=agg,
        tolerance=tolerance,
        confidence=confidence,
        n_bootstrap=n_bootstrap,
        n_permutations=n_permutations,
        random_state=random_state,
    )


def _audited(
    y: Any,
    proba: Any,
    sensitive_features: Any,
    *,
    classes: Sequence[Any] | None,
    threshold: float | None,
    y_pred: Any,
    favorable_label: Any,
    attributes: Mapping[str, ArrayLike] | None,
    constraint: Constraint | None,
    agg: Agg,
    tolerance: float | None,
    confidence: float,
    random_state: int,
    n_bootstrap: int = 1000,
    n_permutations: int = 200,
    full_proba: Any = None,
    principal_proba: Any = None,
    sample_weight: Any = None,
    by_score: bool = True,
) -> Audit:
    """As `audit`, without checks of the settings; `by_score`: whether calibration and histograms are wanted."""
    known = ~missing_groups(sensitive_features)
    n_unknown = int((~known).sum())
    everyone = (proba, y_pred, sample_weight)
    attributes = attributes_of(sensitive_features) if attributes is None else attributes
    if n_unknown:
        sensitive_features = _rows_of(sensitive_features, known)
        y, proba, full_proba, principal_proba, y_pred, sample_weight = (
            None if one is None else _rows_of(one, known)
            for one in (y, proba, full_proba, principal_proba, y_pred, sample_weight)
        )
    rows, scored = _encoded(y, proba, sensitive_features, classes, threshold, y_pred, sample_weight)
    measured = _measured(scored, full_proba, principal_proba, n_permutations, random_state)
    return Audit(
        **_counted(rows, measured, constraint, agg, tolerance, confidence, n_bootstrap, random_state),
        log_loss=float("nan")
        if scored is None
        else float(log_loss(scored.y, scored.proba, sample_weight=rows.weight, labels=range(rows.shape[1]))),
        roc_auc=float("nan") if scored is None else _roc_auc(scored),
        calibration=_calibration(scored if by_score else None, random_state),
        histograms=score_histograms(scored) if scored is not None and by_score else (),
        **measured,
        n_unknown_group=n_unknown,
        **_impact(rows, favorable_label, attributes, *everyone, threshold, confidence),
        _rows=(rows, None if scored is None else scored.proba),
    )


def audit_counted(
    counts: NDArray[np.int64],
    cells: Mapping[str, Any],
    sample: Mapping[str, Any],
    binned: BinnedScores | None = None,
    *,
    confidence: float = 0.95,
) -> Audit:
    """The audit of more rows than memory holds: rates, gaps, intervals and certificate from the counts of all rows.

    Parameters
    ----------
    counts : ndarray of int of shape (n,)
        How many rows each entry of `cells` represents.
    cells : mapping
        Arguments of `audit` with an entry for each group, label and decision.
    sample : mapping
        Arguments of `audit` with random rows: leakage, log loss, ROC AUC and scoring rates are theirs.
    binned : BinnedScores, optional
        The scores of the rows of each entry, for two classes; without it calibration and histograms are those of the
        sample.
    confidence : float
        As in `audit`.

    Returns
    -------
    Audit

    Examples
    --------
    >>> def rows(y, group):
    ...     settings = dict.fromkeys(("proba", "classes", "threshold", "favorable_label", "constraint", "tolerance"))
    ...     settings |= {"attributes": {"sex": group}, "agg": "max", "random_state": 0}
    ...     return {"y": y, "y_pred": y, "sensitive_features": group, **settings}
    >>> few = rows(np.tile([0, 1], 50), np.repeat(["f", "m"], 50))
    >>> audit_counted(np.full(4, 500), rows([0, 1, 0, 1], ["f", "f", "m", "m"]), few).n
    2000
    """
    few = _audited(**sample, confidence=confidence, by_score=binned is None)
    known = ~missing_groups(cells["sensitive_features"])
    labels, scores, decisions = (
        None if cells[name] is None else _rows_of(cells[name], known) for name in ("y", "proba", "y_pred")
    )
    groups = _rows_of(cells["sensitive_features"], known)
    rows, _ = _encoded(labels, scores, groups, cells["classes"], cells["threshold"], decisions, None)
    rows = replace(rows, count=counts[known].astype(np.float64))
    measured = {
        name: getattr(few, name)
        for name in ("leakage", "full_leakage", "full_calibration", "principal_calibration", "overlap")
    }
    settings = (cells["constraint"], cells["agg"], cells["tolerance"], confidence)
    exact = _counted(rows, measured, *settings, n_bootstrap=1000, random_state=cells["random_state"])
    impact = _impact(
        rows,
        cells["favorable_label"],
        cells["attributes"],
        cells["proba"],
        cells["y_pred"],
        None,
        cells["threshold"],
        confidence,
        counts.astype(np.float64),
    )
    # the median needs the score of each row
    impact |= {"scoring": few.scoring, "median_score": few.median_score}
    if binned is not None:
        by_cell = binned.take(known).by_cell(rows.group, rows.labels, (len(rows.groups), 2))
        exact["histograms"] = by_cell.histograms(rows.groups, rows.classes)
        exact["calibration"] = by_cell.calibration(rows.groups, rows.classes, random_state=cells["random_state"])
    return replace(few, **exact, n_unknown_group=int(counts[~known].sum()), **impact)


def _encoded(
    y: ArrayLike | None,
    proba: ArrayLike | None,
    sensitive_features: ArrayLike,
    classes: Sequence[Any] | None,
    threshold: float | None,
    y_pred: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> tuple[Decided, Scored | None]:
    """The decisions in codes, and the scores where there are labels for them."""
    scored: Scored | None = None
    if y is not None and proba is not None:
        scored = read_scored(y, proba, sensitive_features, classes=classes, sample_weight=sample_weight)
        predicted = _predictions(scored.proba, scored.classes, threshold, y_pred)
        rows = Decided(scored.y, scored.group, predicted, scored.weight, scored.classes, scored.groups)
    else:
        if proba is not None and y_pred is None:
            y_pred, classes = _unlabelled_predictions(proba, classes, threshold)
        if y_pred is None:
            raise UserError("neither proba nor y_pred was given", do="pass scores or decisions.")
        rows = read_decided(y, y_pred, sensitive_features, classes=classes, sample_weight=sample_weight)
    return rows, scored


def _counted(
    rows: Decided,
    measured: dict[str, Any],
    constraint: Constraint | None,
    agg: Agg,
    tolerance: float | None,
    confidence: float,
    n_bootstrap: int,
    random_state: int,
) -> dict[str, Any]:
    """What follows from the counts by group, label and decision, and the findings."""
    table = rows.table(rows.weight)
    squares = None if rows.weight is None else rows.table(rows.weight**2)
    square = table if squares is None else squares
    counts = rows.table(None).sum(axis=-1)
    centre, draws = bootstrap_tables(
        rows.group,
        rows.labels,
        rows.predicted,
        rows.shape,
        weights=rows.weight,
        counts=rows.count,
        n_bootstrap=n_bootstrap,
        random_state=random_state,
    )
    undefined = Interval(float("nan"), float("nan"), float("nan"))

    def gap(key: Gap) -> Interval:
        kind, how = GAPS[key]
        if rows.y is None and kind != "demographic_parity":
            return undefined
        return gap_interval(table, centre, draws, constraint=kind, agg=how, confidence=confidence)

    labels = rows.classes if rows.y is not None else ["any"]
    cells = small_cells(counts, rows.groups, labels, below=ROWS_PER_CELL[0])
    return {
        "n": rows.n,
        "classes": tuple(rows.classes),
        "groups": tuple(rows.groups),
        "confidence": confidence,
        "accuracy": undefined
        if rows.y is None
        else rate_interval(
            float(np.trace(table, axis1=-2, axis2=-1).sum() / table.sum()),
            float(table.sum() ** 2 / square.sum()),
            confidence,
        ),
        "demographic_parity": gap("demographic_parity"),
        "equalized_odds_max": gap("equalized_odds_max"),
        "equalized_odds_sum": gap("equalized_odds_sum"),
        "equal_opportunity": gap("equal_opportunity"),
        "group_rates": group_rates(
            table, square, counts.sum(axis=1).astype(np.intp), rows.groups, rows.classes, confidence
        ),
        "findings": diagnose(cells=cells, **measured),
        "noise_floors": {
            key: noise_floor(table, constraint=kind, agg=how, squares=squares)
            for key, (kind, how) in GAPS.items()
            if rows.y is not None or kind == "demographic_parity"
        },
        **_certified(rows, table, squares, constraint, agg, tolerance, confidence),
    }


def _impact(
    rows: Decided,
    favorable_label: Any,
    attributes: Mapping[str, ArrayLike],
    proba: ArrayLike | None,
    y_pred: ArrayLike | None,
    sample_weight: ArrayLike | None,
    threshold: float | None,
    confidence: float,
    counts: Floats | None = None,
) -> dict[str, Any]:
    """The impact tables of all rows, by decision and by score: one whose race is unknown counts by sex."""
    if favorable_label is None and len(rows.classes) > 2:
        return {}
    if favorable_label is not None and favorable_label not in rows.classes:
        raise UserError(f"favorable_label is {favorable_label!r}", expected=f"one of {rows.classes}")
    at = len(rows.classes) - 1 if favorable_label is None else rows.classes.index(favorable_label)
    how: dict[str, Any] = {"sample_weight": sample_weight, "counts": counts, "confidence": confidence}
    scores = None if proba is None else check_proba(proba, len(np.asarray(proba)), len(rows.classes), name="proba")
    if y_pred is not None:
        selected = np.asarray(y_pred) == rows.classes[at]
    elif scores is not None:
        selected = _predictions(scores, rows.classes, threshold, None) == at
    found: dict[str, Any] = {"impact": impact_tables(selected, attributes, **how)}
    if scores is not None:
        median = float(np.median(scores[:, at]))
        found |= {"scoring": impact_tables(scores[:, at] > median, attributes, **how), "median_score": median}
    return found


def _measured(
    rows: Scored | None,
    full_proba: ArrayLike | None,
    principal_proba: ArrayLike | None,
    n_permutations: int,
    random_state: int,
) -> dict[str, Any]:
    """What is measured of probabilities, by the names of `diagnose`."""
    if rows is None:
        return dict.fromkeys(("leakage", "full_leakage", "full_calibration", "principal_calibration", "overlap"))

    def leaks(score: Floats) -> Leakage:
        return leakage_from_codes(rows.y, score, rows.group, n_permutations=n_permutations, random_state=random_state)

    full = _behind(rows, full_proba, "full_proba")
    principal = _behind(rows, principal_proba, "principal_proba")
    return {
        "leakage": leaks(rows.proba),
        "full_leakage": None if full is None else leaks(full.proba),
        "full_calibration": _calibration(full, random_state),
        "principal_calibration": _calibration(principal, random_state),
        "overlap": None if principal is None else overlap(rows.y, principal.proba),
    }


def _certified(
    rows: Decided,
    table: Floats,
    squares: Floats | None,
    constraint: Constraint | None,
    agg: Agg,
    tolerance: float | None,
    confidence: float,
) -> dict[str, Any]:
    """The certificate, and where it is refused for want of rows, how many are missing."""
    if tolerance is None:
        return {}
    asked: Constraint = constraint or ("equalized_odds" if rows.y is not None else "demographic_parity")
    if rows.y is None and asked != "demographic_parity":
        raise UserError(f"constraint is {asked!r}, and there are no labels", do="only demographic parity needs none.")
    kind: dict[str, Any] = {"constraint": asked, "agg": agg if asked == "equalized_odds" else "max", "squares": squares}
    found = certify(table, tolerance=tolerance, confidence=confidence, **kind)
    if found.certified or found.empty or tolerance == 0:
        return {"certificate": found}
    reachable = smallest_tolerance(table, confidence=confidence, **kind)
    lacking = None
    if reachable > tolerance:
        lacking = tuple(int(n) for n in rows_needed(table, tolerance, confidence=confidence, **kind))
    return {"certificate": found, "smallest_tolerance": reachable, "rows_needed": lacking}


def _rows_of(values: ArrayLike, chosen: NDArray[np.bool_]) -> NDArray[Any]:
    array = np.asarray(values)
    if len(array) != len(chosen):
        raise UserError(f"sensitive_features has {len(chosen)} rows, another input {len(array)}", expected="as many")
    return array[chosen]


def _unlabelled_predictions(
    proba: ArrayLike, classes: Sequence[Any] | None, threshold: float | None
) -> tuple[NDArray[Any], list[Any]]:
    """The decisions of scores without labels, and the classes: 0, 1, ... unless they are named."""
    shape = np.shape(proba)
    names = [*range(2 if len(shape) == 1 else shape[-1])] if classes is None else np.asarray(classes).tolist()
    checked = check_proba(proba, shape[0], len(names), name="proba")
    return np.asarray(names)[_predictions(checked, names, threshold, None)], names


def _predictions(
    proba: Floats, classes: list[Any], threshold: float | None, y_pred: ArrayLike | None
) -> NDArray[np.intp]:
    if y_pred is not None:
        if threshold is not None:
            raise UserError("threshold and y_pred were both given", do="pass one of them.")
        codes, labels = encode_labels(y_pred, name="y_pred")
        unknown = [label for label in labels if label not in classes]
        if unknown or len(codes) != len(proba):
            raise UserError(
                f"y_pred has {len(codes)} rows with labels {labels}, y has {len(proba)} rows of {classes}",
                expected="as many rows, and no other labels",
            )
        return recode(codes, labels, classes)
    if threshold is None:
        return np.asarray(proba.argmax(axis=1), dtype=np.intp)
    if len(classes) != 2 or not 0 <= threshold <= 1:
        raise UserError(
            f"threshold is {threshold} with {len(classes)} classes",
            do="expected a probability, for two classes only. Pass y_pred instead.",
        )
    return np.asarray(proba[:, 1] >= threshold, dtype=np.intp)


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

"""Scored rows, checked and encoded once, and the rates and gaps of their groups with confidence intervals.

The intervals are valid at the borders too: at rates of 0 and 1, and at a true gap of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from setminus.core.gaps import count_table, rates
from setminus.core.groups import check_weights, encode_groups, encode_labels, group_name, recode
from setminus.errors import UserError

__all__ = [
    "GroupRates",
    "Interval",
    "Scored",
    "bootstrap_tables",
    "check_proba",
    "gap_interval",
    "group_rates",
    "rate_interval",
    "read_scored",
]


Floats = NDArray[np.float64]

# half a row of each prediction, as in Jeffreys' prior: otherwise a cell where all rows agree would have no variance
_PSEUDO_ROWS = 0.5


@dataclass(frozen=True)
class Scored:
    """Scored rows: codes into `classes` and `groups`, and one probability per class.

    Attributes
    ----------
    y, group : ndarray of int of shape (n,)
    proba : ndarray of shape (n, n_classes)
    weight : ndarray of shape (n,) or None
    classes, groups : list
        What the codes stand for.
    """

    y: NDArray[np.intp]
    group: NDArray[np.intp]
    proba: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    classes: list[Any]
    groups: list[Any]


def read_scored(
    y: ArrayLike,
    proba: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> Scored:
    """Check and encode what a user passes to `audit`, which documents the parameters.

    Examples
    --------
    >>> rows = read_scored(["no", "yes"], [0.1, 0.8], ["f", "m"])
    >>> rows.classes, rows.y.tolist(), rows.proba.shape
    (['no', 'yes'], [0, 1], (2, 2))
    """
    codes, labels = encode_labels(y, name="y")
    group, groups = encode_groups(sensitive_features)
    n = len(codes)
    if len(group) != n:
        raise UserError(f"y has {n} rows and sensitive_features {len(group)}", expected="the same number")
    if len(groups) < 2:
        raise UserError(
            f"sensitive_features holds one group only ({group_name(groups[0])})", do="an audit compares at least two."
        )
    names = labels if classes is None else np.asarray(classes).tolist()
    if len(names) < 2:
        raise UserError(f"y holds one class only ({labels[0]})", do="an audit needs rows of at least two classes.")
    if set(names) != set(labels) or len(set(names)) != len(names):
        raise UserError(f"classes is {names}, y holds {labels}", expected="each class once, and rows of every class")
    return Scored(
        y=recode(codes, labels, names),
        group=group,
        proba=check_proba(proba, n, len(names), name="proba"),
        weight=check_weights(sample_weight, n),
        classes=names,
        groups=groups,
    )


def check_proba(proba: ArrayLike, n: int, n_classes: int, *, name: str) -> NDArray[np.float64]:
    """Probabilities as an (n, n_classes) array whose rows sum to one.

    Examples
    --------
    >>> check_proba([0.25], 1, 2, name="proba").tolist()
    [[0.75, 0.25]]
    """
    array = np.asarray(proba, dtype=np.float64)
    if array.ndim == 1 and n_classes == 2:
        array = np.column_stack([1 - array, array])
    if array.shape != (n, n_classes):
        allowed = f"({n}, {n_classes})" + (f" or ({n},)" if n_classes == 2 else "")
        raise UserError(
            f"{name} has shape {np.shape(proba)}",
            do=f"expected {allowed}, one row for each row of y and one "
            "column for each of its classes. A class without rows cannot be audited: drop its column.",
        )
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).any(axis=1).sum())
        raise UserError(f"{name} has missing or infinite values in {bad} of {n} rows", do="drop or score them again.")
    off = np.abs(array.sum(axis=1) - 1)
    if off.max() > 1e-4 or array.min() < 0:
        raise UserError(
            f"{name} is not a probability",
            do=f"values from {array.min():g} to {array.max():g}, row sums off by "
            f"up to {off.max():g}. Expected values >= 0 that sum to 1 in each row (not logits, not labels).",
        )
    # single precision leaves sums of 1 - 1e-7, which stricter readers would warn about
    return np.asarray(array / array.sum(axis=1, keepdims=True), dtype=np.float64)


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence limits.

    Examples
    --------
    >>> print(Interval(0.5, 0.41, 0.6))
    0.500 [0.410, 0.600]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return "undefined" if np.isnan(self.value) else f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def rate_interval(rate: float, n: float, confidence: float = 0.95) -> Interval:
    """Wilson's interval for a share of n rows; with weights, n is their effective sample size.

    Examples
    --------
    >>> print(rate_interval(0.0, 5))
    0.000 [0.000, 0.434]
    """
    if np.isnan(rate) or not n > 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    z = float(ndtri((1 + confidence) / 2))
    centre = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    # rounding must not push the estimate out of its own interval
    return Interval(rate, max(min(float(centre - half), rate), 0.0), min(max(float(centre + half), rate), 1.0))


def bootstrap_tables(
    groups: NDArray[np.intp],
    labels: NDArray[np.intp],
    predictions: NDArray[np.intp],
    shape: tuple[int, int, int],
    *,
    weights: Floats | None = None,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> tuple[Floats, Floats]:
    """The table that is resampled (`centre`), and the count tables of resampled rows (`draws`).

    The centre is the counts, plus half a row of each prediction wherever the group has rows of the label. Without
    weights, rows of one cell are exchangeable: resampling rows is drawing the cells' counts from a multinomial, at a
    cost that does not depend on the number of rows. Weighted rows are drawn one by one.

    Examples
    --------
    >>> codes = np.array([0, 1, 1])
    >>> centre, draws = bootstrap_tables(codes, codes, codes, (2, 2, 2), n_bootstrap=5)
    >>> centre.sum(), draws.sum(axis=(1, 2, 3)).tolist()
    (np.float64(5.0), [3.0, 3.0, 3.0, 3.0, 3.0])
    """
    rng = np.random.default_rng(random_state)
    n = len(groups)
    table = count_table(groups, labels, predictions, shape, weights)
    pseudo = np.where(table.sum(axis=-1, keepdims=True) > 0, _PSEUDO_ROWS * table.sum() / n, np.zeros(shape))
    centre = table + pseudo
    if weights is None:
        draws = rng.multinomial(n, (centre / centre.sum()).ravel(), size=n_bootstrap)
        return centre, draws.astype(np.float64).reshape(n_bootstrap, *shape)
    cells = np.concatenate([np.ravel_multi_index((groups, labels, predictions), shape), np.flatnonzero(pseudo)])
    mass = np.concatenate([weights, pseudo[pseudo > 0]])
    drawn = np.empty((n_bootstrap, centre.size))
    for draw in drawn:
        rows = rng.integers(len(cells), size=n)
        draw[:] = np.bincount(cells[rows], weights=mass[rows], minlength=centre.size)
    return centre, drawn.reshape(n_bootstrap, *shape)


def gap_interval(
    gap: Callable[[Floats], Floats],
    table: Floats,
    centre: Floats,
    draws: Floats,
    *,
    confidence: float = 0.95,
    limit: float = 1.0,
) -> Interval:
    """A gap with confidence limits.

    A gap is a seminorm of the rates: ``|gap(estimate) - gap(truth)| <= gap(estimate - truth)``. The right-hand
    side is bootstrapped, and its quantile is the half-width of the interval. Percentiles of resampled gaps would
    be wrong: resampled gaps are biased upwards near 0, so that such an interval never contains a true gap of 0.

    Parameters
    ----------
    gap : callable
        From rates, with leading axes, to gaps; a `..._from_rates` function.
    table : ndarray of shape (..., n_classes)
        The counts.
    centre, draws : ndarray
        From `bootstrap_tables`, summed over labels where the gap does not look at them.
    confidence : float
    limit : float
        The largest value that the gap can have.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from setminus.core.gaps import demographic_parity_from_rates
    >>> table = np.array([[30.0, 10.0], [20.0, 20.0]])
    >>> draws = np.random.default_rng(0).multinomial(40, [[0.75, 0.25], [0.5, 0.5]], size=(1000, 2))
    >>> print(gap_interval(demographic_parity_from_rates, table, table, draws))
    0.250 [0.050, 0.450]
    """
    value = float(gap(rates(table)))
    errors = gap(rates(draws) - rates(centre))
    errors = errors[~np.isnan(errors)]
    if np.isnan(value) or len(errors) == 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    reach = float(np.quantile(errors, confidence))
    return Interval(value, max(value - reach, 0.0), max(min(value + reach, limit), value))


@dataclass(frozen=True)
class GroupRates:
    """Rates of one class in one group.

    Attributes
    ----------
    group, label : label
    n : int
        Number of rows of the group.
    base_rate : float
        P(y = label | group).
    selection_rate : Interval
        P(prediction = label | group).
    true_positive_rate, false_positive_rate : Interval
        The same among rows of the label, and among the others.
    accuracy : Interval
        P(prediction = y | group); of all classes, hence the same for each label.
    """

    group: Any
    label: Any
    n: int
    base_rate: float
    selection_rate: Interval
    true_positive_rate: Interval
    false_positive_rate: Interval
    accuracy: Interval


def group_rates(
    table: Floats,
    squares: Floats,
    sizes: NDArray[np.intp],
    groups: list[Any],
    classes: list[Any],
    confidence: float,
) -> tuple[GroupRates, ...]:
    """Rates by group for the second of two classes, or for each of more.

    Parameters
    ----------
    table : ndarray of shape (n_groups, n_classes, n_classes)
        Counts, or weights, by (group, label, prediction).
    squares : ndarray of the same shape
        Squared weights, counted in the same way; the counts themselves where there are no weights.
    sizes : ndarray of shape (n_groups,)
        Numbers of rows.
    groups, classes : list
        What the axes of the table stand for.
    confidence : float

    Returns
    -------
    tuple of GroupRates

    Examples
    --------
    >>> table = np.array([[[3.0, 1.0], [1.0, 3.0]], [[4.0, 0.0], [0.0, 4.0]]])
    >>> first, _ = group_rates(table, table, np.array([8, 8]), ["f", "m"], [0, 1], 0.95)
    >>> first.group, first.selection_rate.value, first.true_positive_rate.value
    ('f', 0.5, 0.75)
    """
    everything = np.ones(table.shape[1:], dtype=bool)

    def interval(g: int, counted: NDArray[np.bool_], among: NDArray[np.bool_]) -> Interval:
        whole, square = table[g][among].sum(), squares[g][among].sum()
        if whole <= 0:
            return rate_interval(float("nan"), 0, confidence)
        return rate_interval(float(table[g][counted & among].sum() / whole), float(whole**2 / square), confidence)

    rows = []
    for g, group in enumerate(groups):
        for c in [1] if len(classes) == 2 else range(len(classes)):
            labelled, predicted = np.zeros_like(everything), np.zeros_like(everything)
            labelled[c], predicted[:, c] = True, True
            rows.append(
                GroupRates(
                    group=group,
                    label=classes[c],
                    n=int(sizes[g]),
                    base_rate=interval(g, labelled, everything).value,
                    selection_rate=interval(g, predicted, everything),
                    true_positive_rate=interval(g, predicted, labelled),
                    false_positive_rate=interval(g, predicted, ~labelled),
                    accuracy=interval(g, np.eye(len(classes), dtype=bool), everything),
                )
            )
    return tuple(rows)

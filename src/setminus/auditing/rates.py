"""Scored rows, checked and encoded once, and the rates, gaps and any metric of their groups with intervals.

The intervals are valid at the borders too: at rates of 0 and 1, and at a true gap of 0.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from setminus.core import Agg, Constraint
from setminus.core.checks import check_weights, encode_groups, encode_labels, group_name, recode
from setminus.core.gaps import count_table, rates
from setminus.errors import UserError

__all__ = [
    "Decided",
    "GroupRates",
    "Interval",
    "Metrics",
    "Scored",
    "bootstrap_tables",
    "check_proba",
    "gap_interval",
    "group_rates",
    "metrics_by_group",
    "rate_interval",
    "read_decided",
    "read_scored",
]


Floats = NDArray[np.float64]

# half a row of each prediction, as in Jeffreys' prior: otherwise a cell where all rows agree would have no variance
_PSEUDO_ROWS = 0.5
_SIDE = 3.0


@dataclass(frozen=True)
class Scored:
    """Scored rows: codes into `classes` and `groups`, and one probability per class.

    Attributes
    ----------
    y, group : ndarray of int of shape (n,)
    proba : ndarray of shape (n, n_classes)
    weight : ndarray of shape (n,) or None
    classes, groups : list
        The names of the codes.
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


@dataclass(frozen=True)
class Decided:
    """Decisions by group, and by label where it is known: codes into `classes` and `groups`.

    Attributes
    ----------
    y : ndarray of int of shape (n,) or None
    group, predicted : ndarray of int of shape (n,)
    weight : ndarray of shape (n,) or None
    classes, groups : list
        The names of the codes.
    count : ndarray of shape (n,) or None
        How many rows each represents; one by default. Not together with weights.
    """

    y: NDArray[np.intp] | None
    group: NDArray[np.intp]
    predicted: NDArray[np.intp]
    weight: NDArray[np.float64] | None
    classes: list[Any]
    groups: list[Any]
    count: Floats | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.group) if self.count is None else int(self.count.sum())

    def table(self, weights: Floats | None) -> Floats:
        """Counts by (group, label, prediction); without labels all rows have the same one."""
        each = self.count if weights is None else weights
        return count_table(self.group, self.labels, self.predicted, self.shape, each)

    @property
    def labels(self) -> NDArray[np.intp]:
        """The codes of the labels, or zeros."""
        return np.zeros_like(self.predicted) if self.y is None else self.y

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the table of counts."""
        return len(self.groups), 1 if self.y is None else len(self.classes), len(self.classes)


def read_decided(
    y: ArrayLike | None,
    y_pred: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> Decided:
    """Check and encode decisions without scores, which `audit` documents.

    Examples
    --------
    >>> rows = read_decided(None, ["no", "yes"], ["f", "m"])
    >>> rows.y, rows.classes, rows.shape
    (None, ['no', 'yes'], (2, 1, 2))
    """
    predicted, decisions = encode_labels(y_pred, name="y_pred")
    codes, labels = (None, decisions) if y is None else encode_labels(y, name="y")
    group, groups = encode_groups(sensitive_features)
    n = len(predicted)
    if len(group) != n or (codes is not None and len(codes) != n):
        raise UserError(
            f"y_pred has {n} rows, sensitive_features {len(group)}" + ("" if codes is None else f" and y {len(codes)}"),
            expected="the same number",
        )
    if len(groups) < 2:
        raise UserError(
            f"sensitive_features holds one group only ({group_name(groups[0])})", do="an audit compares at least two."
        )
    try:
        names = sorted({*labels, *decisions}) if classes is None else np.asarray(classes).tolist()
    except TypeError:
        raise UserError(f"y holds {labels} and y_pred {decisions}", expected="labels of one type in both") from None
    if len(names) < 2:
        raise UserError(f"y_pred holds one class only ({names[0]})", do="name all of them: classes=[...].")
    unknown = [label for label in (*labels, *decisions) if label not in names]
    if unknown:
        raise UserError(f"classes is {names}, y or y_pred holds {unknown[0]!r}", expected="each class once")
    return Decided(
        y=None if codes is None else recode(codes, labels, names),
        group=group,
        predicted=recode(predicted, decisions, names),
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
    counts: Floats | None = None,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> tuple[Floats, Floats]:
    """The table that is resampled (`centre`), and the count tables of resampled rows (`draws`).

    The centre is the counts, plus half a row of each prediction wherever the group has rows of the label. Without
    weights, rows of one cell are exchangeable: resampling rows is drawing the cells' counts from a multinomial, at a
    cost that does not depend on the number of rows. Weighted rows are drawn one by one. `counts` says how many
    rows each entry represents.

    Examples
    --------
    >>> codes = np.array([0, 1, 1])
    >>> centre, draws = bootstrap_tables(codes, codes, codes, (2, 2, 2), n_bootstrap=5)
    >>> centre.sum(), draws.sum(axis=(1, 2, 3)).tolist()
    (np.float64(5.0), [3.0, 3.0, 3.0, 3.0, 3.0])
    """
    rng = np.random.default_rng(random_state)
    n = len(groups) if counts is None else int(counts.sum())
    table = count_table(groups, labels, predictions, shape, counts if weights is None else weights)
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
    table: Floats,
    centre: Floats,
    draws: Floats,
    *,
    constraint: Constraint = "equalized_odds",
    agg: Agg = "max",
    confidence: float = 0.95,
) -> Interval:
    """A gap with confidence limits.

    A gap is the largest of many distances, one for each two groups and each label. The upper limit is the largest upper
    limit of one of them. The lower limit allows for the choice of the largest: each distance less a multiple of its
    standard error, which the errors of all that may be the largest exceed in half of ``1 - confidence`` of the draws.
    Percentiles of resampled gaps would be wrong: resampled gaps are biased upwards near 0, so that such an interval
    never contains a true gap of 0.

    Parameters
    ----------
    table : ndarray of shape (n_groups, n_labels, n_classes)
        The counts.
    centre, draws : ndarray
        From `bootstrap_tables`.
    constraint : {"equalized_odds", "demographic_parity", "equal_opportunity"}
    agg : {"max", "sum"}
        How equalized odds puts the gaps of the labels together.
    confidence : float

    Examples
    --------
    >>> table = np.array([[[30.0, 10.0]], [[20.0, 20.0]]])
    >>> draws = np.random.default_rng(0).multinomial(40, table / 40, size=(1000, 2, 1))
    >>> print(gap_interval(table, table, draws, constraint="demographic_parity"))
    0.250 [0.025, 0.450]
    """
    tail = (1 - confidence) / 2
    rate = rates(_compared(table, constraint))
    errors = rates(_compared(draws, constraint)) - rates(_compared(centre, constraint))
    # numpy is slow where it has to look for missing values, and draws that miss a group are rare
    missing = bool(np.isnan(errors).any())
    quantile, deviation = (np.nanquantile, np.nanstd) if missing else (np.quantile, np.std)
    parts = [
        (distance, deviation(error, axis=0), -quantile(error, tail, axis=0)) for distance, error in _pairs(rate, errors)
    ]
    distance, spread, reach = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    known = ~np.isnan(distance + spread)
    if not known.any():
        return Interval(float("nan"), float("nan"), float("nan"))
    distance = np.where(known, distance, -np.inf)
    spread, reach = np.where(known, spread, 0.0), np.where(known, reach, 0.0)
    # those that may be the largest: 3 standard errors on either side
    above = (distance - _SIDE * spread).max(axis=1, keepdims=True)
    near = distance + _SIDE * spread >= (above if agg == "sum" else above.max())
    largest, first = np.zeros((len(draws), len(rate))), 0
    for some, error in _pairs(rate, errors):
        own = slice(first, first + some.shape[1])
        first = own.stop
        unit = np.where(spread[:, own] > 0, spread[:, own], np.inf) if agg == "max" else 1.0
        largest = np.fmax(largest, np.fmax.reduce(np.where(near[:, own], np.abs(error) / unit, 0.0), axis=2))
    if agg == "max":
        value = float(distance.max())
        low = float((distance - np.quantile(largest.max(axis=1), 1 - tail) * spread)[near].max())
        return Interval(value, min(max(low, 0.0), value), min(max(float((distance + reach).max()), value), 1.0))
    judged = known.any(axis=1)
    value = float(distance[judged].max(axis=1).sum())
    low = value - float(np.quantile(largest[:, judged].sum(axis=1), 1 - tail))
    return Interval(value, max(low, 0.0), min(_sum_above(distance[judged], spread[judged], tail), float(judged.sum())))


def _compared(tables: Floats, constraint: Constraint) -> Floats:
    """The counts whose rates a gap compares, of shape (..., n_labels, n_groups, n_classes)."""
    if constraint == "demographic_parity":
        selected: Floats = tables.sum(axis=-2)[..., None, :, :]
        return selected
    if constraint == "equalized_odds":
        return np.swapaxes(tables, -3, -2)
    hits = np.diagonal(tables, axis1=-2, axis2=-1)
    recalls: Floats = np.swapaxes(np.stack([tables.sum(axis=-1) - hits, hits], axis=-1), -3, -2)
    return recalls[..., [1], :, :] if tables.shape[-1] == 2 else recalls


def _pairs(rate: Floats, errors: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Distances of a group from those after it, NaN where undefined, and the draws' errors in these directions."""
    # a distance of 0 has a direction, too
    tie = np.linspace(-1e-12, 1e-12, rate.shape[-1])
    for g in range(rate.shape[1] - 1):
        difference = rate[:, g + 1 :] - rate[:, [g]]
        error = 0.5 * (np.sign(difference + tie) * (errors[:, :, g + 1 :] - errors[:, :, [g]])).sum(axis=-1)
        undefined = np.isnan(error).all(axis=0)
        distance = np.where(undefined, np.nan, 0.5 * np.abs(difference).sum(axis=-1))
        yield distance, np.where(undefined, 0.0, error)


def _sum_above(distance: Floats, spread: Floats, tail: float) -> float:
    """The upper limit of a sum over labels: for any choice of pairs, the sum and its standard error."""
    z = float(ndtri(1 - tail))
    # sqrt(sum of squares) is the smallest, over w, of (w + sum of squares / w) / 2: each label then chooses alone
    widths = np.sqrt((spread.max(axis=1) ** 2).sum()) * np.geomspace(0.1, 2, 60) + 1e-12
    limits = [(distance + z * spread**2 / (2 * w)).max(axis=1).sum() + z * w / 2 for w in widths]
    return float(min(limits))


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
    table : ndarray of shape (n_groups, n_classes, n_classes), or (n_groups, 1, n_classes) without labels
        Counts, or weights, by (group, label, prediction).
    squares : ndarray of the same shape
        Squared weights, counted in the same way; the counts themselves where there are no weights.
    sizes : ndarray of shape (n_groups,)
        Numbers of rows.
    groups, classes : list
        The names of the axes of the table.
    confidence : float

    Examples
    --------
    >>> table = np.array([[[3.0, 1.0], [1.0, 3.0]], [[4.0, 0.0], [0.0, 4.0]]])
    >>> first, _ = group_rates(table, table, np.array([8, 8]), ["f", "m"], [0, 1], 0.95)
    >>> first.group, first.selection_rate.value, first.true_positive_rate.value
    ('f', 0.5, 0.75)
    """
    everything = np.ones(table.shape[1:], dtype=bool)
    known = table.shape[1] == len(classes)
    undefined = rate_interval(float("nan"), 0, confidence)

    def interval(g: int, counted: NDArray[np.bool_], among: NDArray[np.bool_]) -> Interval:
        whole, square = table[g][among].sum(), squares[g][among].sum()
        if whole <= 0:
            return undefined
        return rate_interval(float(table[g][counted & among].sum() / whole), float(whole**2 / square), confidence)

    rows = []
    for g, group in enumerate(groups):
        for c in [1] if len(classes) == 2 else range(len(classes)):
            labelled, predicted = np.zeros_like(everything), np.zeros_like(everything)
            predicted[:, c] = True
            if known:
                labelled[c] = True
            rows.append(
                GroupRates(
                    group=group,
                    label=classes[c],
                    n=int(sizes[g]),
                    base_rate=interval(g, labelled, everything).value if known else undefined.value,
                    selection_rate=interval(g, predicted, everything),
                    true_positive_rate=interval(g, predicted, labelled) if known else undefined,
                    false_positive_rate=interval(g, predicted, ~labelled) if known else undefined,
                    accuracy=interval(g, np.eye(len(classes), dtype=bool), everything) if known else undefined,
                )
            )
    return tuple(rows)


Metrics = Callable[..., float] | Mapping[str, Callable[..., float]]
"""One metric or several by name: from labels and predictions, as arrays, to a number."""


BACKENDS: tuple[Literal["pandas", "polars", "pyarrow"], ...] = ("pandas", "polars", "pyarrow")


def metrics_by_group(
    rows: Decided,
    proba: Floats | None,
    metrics: Metrics,
    *,
    of: str,
    confidence: float,
    n_bootstrap: int,
    random_state: int,
) -> Any:
    """The table of `Audit.by_group`, which documents the parameters."""
    named = dict(metrics) if isinstance(metrics, Mapping) else {_name(metrics): metrics}
    if of not in ("decisions", "proba"):
        raise UserError(f"of is {of!r}", expected="'decisions' or 'proba'")
    if rows.y is None:
        raise UserError("the audit has no labels", do="only selection rates are known: see group_rates.")
    if of == "proba" and proba is None:
        raise UserError("the audit has no scores", do="pass proba to audit, or metrics of decisions.")
    classes = np.asarray(rows.classes)
    y = classes[rows.y]
    scores = proba[:, 1] if proba is not None and len(classes) == 2 else proba
    judged: NDArray[Any] = classes[rows.predicted] if of == "decisions" or scores is None else scores
    rng = np.random.default_rng(random_state)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    everyone = [(group_name(group), np.flatnonzero(rows.group == g)) for g, group in enumerate(rows.groups)]
    columns: dict[str, list[Any]] = {"group": [], "n": []}
    for name in named:
        columns |= {name: [], f"{name}_low": [], f"{name}_high": []}
    for group, members in [*everyone, ("all rows", np.arange(len(y)))]:
        columns["group"].append(group)
        columns["n"].append(len(members))
        drawn = [members, *(rng.choice(members, size=len(members)) for _ in range(n_bootstrap))]
        for name, metric in named.items():
            value, *draws = (_value(metric, y[chosen], judged[chosen], rows.weight, chosen) for chosen in drawn)
            known = np.array([draw for draw in draws if not np.isnan(draw)])
            low, high = np.quantile(known, tails) if len(known) else (np.nan, np.nan)
            columns[name].append(value)
            columns[f"{name}_low"].append(float(low))
            columns[f"{name}_high"].append(float(high))
    return nw.from_dict(columns, backend=_backend()).to_native()


def _name(metric: Callable[..., float]) -> str:
    return getattr(metric, "__name__", "metric")


def _value(
    metric: Callable[..., float], y: NDArray[Any], judged: NDArray[Any], weight: Floats | None, chosen: NDArray[np.intp]
) -> float:
    """The metric of some rows; NaN where it is undefined, for example without rows of a class."""
    try:
        return float(metric(y, judged) if weight is None else metric(y, judged, sample_weight=weight[chosen]))
    except (ValueError, ZeroDivisionError):
        return float("nan")


def _backend() -> Literal["pandas", "polars", "pyarrow"]:
    for name in BACKENDS:
        if importlib.util.find_spec(name):
            return name
    raise UserError("no data frame library is installed", do="install one of " + ", ".join(BACKENDS) + ".")

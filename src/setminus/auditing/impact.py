"""Selection rates and impact ratios: of New York's Local Law 144, and of the EEOC's four-fifths rule.

The impact ratio of a group is its selection rate over that of the group with the highest one. Where a tool scores
people, 6 RCNY 5-301 (c) takes the scoring rate in its place: the share of the group above the median score of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from setminus.auditing.rates import Interval, rate_interval
from setminus.core.checks import encode_groups, group_name, missing_groups
from setminus.errors import UserError

__all__ = ["FOUR_FIFTHS", "MIN_SHARE", "ImpactRow", "ImpactTable", "attributes_of", "impact_tables", "ratio_interval"]

Floats = NDArray[np.float64]

FOUR_FIFTHS = 0.8
"""29 CFR 1607.4 D: a smaller ratio is generally regarded as evidence of adverse impact."""

MIN_SHARE = 0.02
"""6 RCNY 5-301 (d): a smaller category may be left out of the impact ratios, with the reason and its numbers."""

NAN = float("nan")


@dataclass(frozen=True)
class ImpactRow:
    """One group of an `ImpactTable`.

    Attributes
    ----------
    group : str
    n, selected : int
        Rows, and rows with the favourable decision.
    share : float
        Of the rows whose group is known.
    selection_rate : Interval
    impact_ratio : Interval
        Undefined (NaN) where the group is left out, or nobody is selected; 1 without limits for the group that the
        others are compared with.
    left_out : bool
        Whether the group is too small to be compared.
    below_four_fifths : bool or None
        None where the ratio is undefined.
    """

    group: str
    n: int
    selected: int
    share: float
    selection_rate: Interval
    impact_ratio: Interval
    left_out: bool
    below_four_fifths: bool | None


@dataclass(frozen=True)
class ImpactTable:
    """Selection rates and impact ratios of the groups of one attribute, or of several crossed.

    Attributes
    ----------
    attribute : str
    reference : str or None
        The group with the highest selection rate, among those that are compared.
    rows : tuple of ImpactRow
    n_unknown : int
        Rows whose group is unknown: they are in no rate.
    min_share : float
        Groups with a smaller share of the rows are left out of the ratios.
    """

    attribute: str
    reference: str | None
    rows: tuple[ImpactRow, ...]
    n_unknown: int
    min_share: float


def impact_tables(
    selected: ArrayLike,
    attributes: Mapping[str, ArrayLike],
    *,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    confidence: float = 0.95,
    min_share: float = MIN_SHARE,
) -> tuple[ImpactTable, ...]:
    """Selection rates and impact ratios by group.

    Parameters
    ----------
    selected : array-like of bool of shape (n,)
        Which rows have the favourable decision.
    attributes : mapping of str to array-like of shape (n,)
        The group of each row, None or NaN where it is unknown, by the name of the attribute.
    sample_weight : array-like of shape (n,), optional
        Weights of the rates; the counts are unweighted.
    counts : array-like of int of shape (n,), optional
        How many rows each entry represents; one by default.
    confidence : float
        Of the intervals: Wilson's for a rate, Koopman's for a ratio. The group with the highest rate is taken as if it
        were known beforehand.
    min_share : float
        Groups with a smaller share of the rows are left out of the ratios.

    Returns
    -------
    tuple of ImpactTable
        One for each attribute.

    Examples
    --------
    >>> sex = ["f"] * 100 + ["m"] * 100 + [None]
    >>> (table,) = impact_tables([True] * 30 + [False] * 70 + [True] * 50 + [False] * 51, {"sex": sex})
    >>> table.reference, table.n_unknown
    ('m', 1)
    >>> print(table.rows[0].impact_ratio)
    0.600 [0.417, 0.852]
    """
    chosen = np.asarray(selected, dtype=bool)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    rows = np.ones(len(chosen)) if counts is None else np.asarray(counts, dtype=np.float64)
    return tuple(
        _table(name, groups, chosen, rows, weights, confidence, min_share) for name, groups in attributes.items()
    )


def _table(
    attribute: str,
    groups: ArrayLike,
    selected: NDArray[np.bool_],
    counts: Floats,
    weights: Floats | None,
    confidence: float,
    min_share: float,
) -> ImpactTable:
    unknown = missing_groups(groups)
    if len(unknown) != len(selected):
        raise UserError(f"{attribute} has {len(unknown)} rows, there are {len(selected)} decisions", expected="as many")
    if unknown.all():
        return ImpactTable(attribute, None, (), int(counts.sum()), min_share)
    codes, labels = encode_groups(np.asarray(groups)[~unknown] if unknown.any() else groups)
    chosen, rows = selected[~unknown], counts[~unknown]
    n: Floats = np.bincount(codes, rows, minlength=len(labels)).astype(np.float64)
    hits = np.bincount(codes, rows * chosen, minlength=len(labels))
    if weights is None:
        rates, sizes = hits / n, n
    else:
        own = weights[~unknown]
        total = np.bincount(codes, own, minlength=len(labels))
        rates = np.bincount(codes, own * chosen, minlength=len(labels)) / total
        # Kish's effective number of rows
        sizes = total**2 / np.bincount(codes, own**2, minlength=len(labels))
    shares = n / n.sum()
    left_out = shares < min_share
    if left_out.all():
        left_out[:] = False
    best = int(np.argmax(np.where(left_out, -1.0, rates)))

    def ratio(g: int) -> Interval:
        if left_out[g] or rates[best] == 0:
            return Interval(NAN, NAN, NAN)
        if g == best:
            return Interval(1.0, NAN, NAN)
        return ratio_interval(rates[g], sizes[g], rates[best], sizes[best], confidence)

    ratios = [ratio(g) for g in range(len(labels))]
    return ImpactTable(
        attribute=attribute,
        reference=group_name(labels[best]),
        rows=tuple(
            ImpactRow(
                group=group_name(label),
                n=int(n[g]),
                selected=int(hits[g]),
                share=float(shares[g]),
                selection_rate=rate_interval(float(rates[g]), float(sizes[g]), confidence),
                impact_ratio=ratios[g],
                left_out=bool(left_out[g]),
                below_four_fifths=None if np.isnan(ratios[g].value) else bool(ratios[g].value < FOUR_FIFTHS),
            )
            for g, label in enumerate(labels)
        ),
        n_unknown=int(counts[unknown].sum()),
        min_share=min_share,
    )


def ratio_interval(rate: float, n: float, base: float, n_base: float, confidence: float = 0.95) -> Interval:
    """Koopman's score interval for the ratio of two independent rates, ``rate / base``.

    It holds the ratios r for which the score test does not reject ``rate = r * base``, at rates of 0 and 1 too, where
    the usual interval on the log scale does not exist.

    Koopman (1984), Confidence intervals for the ratio of two binomial proportions, Biometrics 40.

    Parameters
    ----------
    rate, base : float
    n, n_base : float
        Rows behind each; of weighted rows the effective number.
    confidence : float

    Examples
    --------
    >>> print(ratio_interval(0.9, 40, 0.5, 40))
    1.800 [1.341, 2.585]
    """
    if not base > 0:
        return Interval(NAN, NAN, NAN)
    limit = float(ndtri((1 + confidence) / 2))

    def excess(log_ratio: float) -> float:
        r = np.exp(log_ratio)
        # the most likely rates with this ratio solve a quadratic equation
        a, b, c = (n + n_base) * r, n * r + n * rate + n_base + n_base * base * r, n * rate + n_base * base
        low = 2 * c / (b + np.sqrt(max(b**2 - 4 * a * c, 0.0)))
        variance = r * low * (1 - min(r * low, 1.0)) / n + r**2 * low * (1 - min(low, 1.0)) / n_base
        difference = rate - r * base
        return float(difference / np.sqrt(variance)) if variance > 0 else float(1e9 * np.sign(difference))

    def solve(target: float, start: float, step: float) -> float:
        end = start
        while (excess(end) - target) * np.sign(step) > 0:
            end += step
            if abs(end) > 50:
                return end
        return float(brentq(lambda at: excess(at) - target, *sorted((end - step, end)), xtol=1e-10))

    # the test statistic falls as the ratio rises
    centre = np.log(max(rate, 0.5 / n) / base)
    low = 0.0 if rate == 0 else float(np.exp(solve(limit, centre, -0.5)))
    high = float(np.exp(solve(-limit, centre, 0.5)))
    return Interval(float(rate / base), low, high)


def attributes_of(sensitive_features: Any) -> dict[str, Any]:
    """Each column of sensitive features by its name, and where there are several, all of them crossed.

    Examples
    --------
    >>> {name: np.shape(groups) for name, groups in attributes_of([["f", "a"], ["m", "b"]]).items()}
    {'column 0': (2,), 'column 1': (2,), 'column 0 x column 1': (2, 2)}
    """
    values = np.asarray(sensitive_features)
    if values.ndim == 1:
        return {str(getattr(sensitive_features, "name", None) or "group"): sensitive_features}
    names = [str(name) for name in getattr(sensitive_features, "columns", range(values.shape[1]))]
    if not hasattr(sensitive_features, "columns"):
        names = [f"column {name}" for name in names]
    if len(names) != values.shape[1]:
        # an arrow table lists its columns, not their names
        names = [str(name) for name in sensitive_features.column_names]
    each = dict(zip(names, values.T, strict=True))
    return each if len(names) == 1 else {**each, " x ".join(names): values}

"""A certificate that the gap between groups is at most a tolerance, for new rows of the same distribution.

A gap is the largest of many differences: of each two groups, in the rate of each prediction, for each label (see
`setminus.core.gaps`). It is above the tolerance exactly where one of them is. So "gap <= tolerance" is certified where
the test of `setminus.core.differences` rejects "difference >= tolerance" for every one of them at the level
1 - confidence. As all of them have to be rejected, no correction for their number is needed (an intersection-union
test): if the true gap is above the tolerance, the probability of a certificate is at most 1 - confidence.

The rows must be fresh: not those that the model or its threshold was chosen on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from setminus.core import Agg, Constraint
from setminus.core.differences import EXACT_ROWS, UNCLEAR, largest_exact_p_value, largest_p_values
from setminus.core.gaps import equalized_odds_from_table, rates
from setminus.errors import UserError

__all__ = [
    "Certificate",
    "NoiseFloor",
    "certify",
    "noise_floor",
    "p_value",
    "rows_needed",
    "smallest_tolerance",
    "upper_gaps",
]

Floats = NDArray[np.float64]

_MAX_SUBSETS_OF = 6
"""Classes up to which each set of predictions is compared; for more, a bound that does not depend on their number."""
_SHARES = 40
"""Steps in which the tolerance is divided among the labels, for the sum of their gaps."""
_PRECISION = 5e-4
_DRAWS = 1000


@dataclass(frozen=True)
class NoiseFloor:
    """The gap that groups of these sizes show by chance where their true rates are equal.

    Attributes
    ----------
    expected : float
        The noise floor: the mean.
    quantile : float
        In 95 % of samples the gap is below.
    p_value : float
        Of "the groups have the same rates": the share of samples in which the largest difference of a group's rate from
        the rate of all, over its standard error, is at least that of these rows. The gap itself is a weak test: a group
        of few rows has a large gap by chance, among which a difference of two large groups does not show.
    """

    expected: float
    quantile: float
    # certificates of version 0.2.0 have none
    p_value: float = float("nan")


@dataclass(frozen=True)
class Certificate:
    """Whether "gap <= tolerance" is certified, and the evidence.

    Attributes
    ----------
    certified : bool
    tolerance, confidence : float
        As asked for.
    bound : float
        The smallest tolerance that these rows would certify: the upper confidence bound of the gap.
    gap : float
        As measured on these rows.
    noise_floor : NoiseFloor
    constraint, agg : str
    rows : tuple of tuple of float
        By group and label, or by group alone under demographic parity; of weighted rows the effective number.
    empty : tuple of (int, int)
        The group and label of the cells without rows: with one of them nothing is certified.
    method : str
        "exact", "asymptotic" (groups of more than 4,000 rows), "exact and asymptotic", or
        "approximate, weighted rows".
    """

    certified: bool
    tolerance: float
    confidence: float
    bound: float
    gap: float
    noise_floor: NoiseFloor
    constraint: Constraint
    agg: Agg
    rows: tuple[tuple[float, ...], ...]
    empty: tuple[tuple[int, int], ...]
    method: str

    def as_dict(self) -> dict[str, Any]:
        """The certificate in plain types, ready for JSON."""
        return {
            key: None if isinstance(value, float) and np.isnan(value) else value for key, value in asdict(self).items()
        }


def certify(
    table: ArrayLike,
    *,
    constraint: Constraint = "equalized_odds",
    agg: Agg = "max",
    tolerance: float,
    confidence: float = 0.95,
    pos: int | None = None,
    squares: ArrayLike | None = None,
) -> Certificate:
    """Certify that the gap of the distribution behind a table of counts is at most the tolerance, or refuse to.

    Parameters
    ----------
    table : array-like of shape (n_groups, n_labels, n_classes)
        Fresh rows, or their weights, counted by (group, label, prediction): see `setminus.core.gaps.count_table`.
    constraint : {"equalized_odds", "demographic_parity", "equal_opportunity"}
    agg : {"max", "sum"}
        How equalized odds puts the gaps of the labels together.
    tolerance : float
    confidence : float
        One minus the probability of a certificate where the true gap is above the tolerance.
    pos : int, optional
        Equal opportunity only: the class whose recall counts. By default the second of two, of more classes all.
    squares : array-like like `table`, optional
        Squared weights, counted in the same way, where the rows have weights. The rows of a cell are then replaced by
        Kish's effective number, and the certificate is approximate.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> table = [[[450, 50], [100, 400]], [[460, 40], [110, 390]]]
    >>> found = certify(table, tolerance=0.1)
    >>> found.certified, round(found.gap, 3), found.method
    (True, 0.02, 'exact')
    >>> certify(table, tolerance=0.03).certified
    False
    """
    _check(tolerance, confidence)
    counts = _Counts.of(table, constraint, agg, pos, squares)
    level = 1 - confidence
    empty = tuple((int(g), int(counts.judged[y])) for g, y in np.argwhere(counts.rows <= 0))

    def holds(margin: float) -> bool:
        return counts.p_value(margin, enough=np.nextafter(level, 1)) <= level

    certified = holds(tolerance)
    # with the tolerance as one end, bound and certificate agree
    low, high = (0.0, float(tolerance)) if certified else (float(tolerance), counts.limit)
    bound = (
        counts.limit
        if empty or tolerance >= counts.limit
        else _bound(holds, low, high, _approximate_bound(counts, level))
    )
    return Certificate(
        certified=certified,
        tolerance=float(tolerance),
        confidence=float(confidence),
        bound=bound,
        gap=counts.gap,
        noise_floor=noise_floor(table, constraint=constraint, agg=agg, pos=pos, squares=squares),
        constraint=constraint,
        agg=agg,
        rows=tuple(tuple(round(float(n), 1) for n in of_group) for of_group in counts.rows),
        empty=empty,
        method=counts.method,
    )


def p_value(
    table: ArrayLike,
    tolerance: float,
    *,
    constraint: Constraint = "equalized_odds",
    agg: Agg = "max",
    pos: int | None = None,
    squares: ArrayLike | None = None,
    exact: bool = True,
    enough: float = UNCLEAR,
) -> float:
    """P-value of "gap >= tolerance", the largest of all comparisons; the parameters are those of `certify`.

    Parameters
    ----------
    exact : bool
        Whether groups of up to 4,000 rows are tested exactly. Without, the normal approximation serves all, for a first
        look at many tables.
    enough : float
        From this p-value on it need not be exact: a test at the level 0.05 alone is quicker with a value just above.

    Returns
    -------
    float
        1 where a cell that the gap compares has no rows.

    Examples
    --------
    >>> table = [[[450, 50], [100, 400]], [[460, 40], [110, 390]]]
    >>> p_value(table, 0.1) < 0.01 < 0.3 < p_value(table, 0.03)
    True
    """
    return _Counts.of(table, constraint, agg, pos, squares).p_value(tolerance, exact=exact, enough=enough)


def noise_floor(
    table: ArrayLike,
    *,
    constraint: Constraint = "equalized_odds",
    agg: Agg = "max",
    pos: int | None = None,
    squares: ArrayLike | None = None,
) -> NoiseFloor:
    """The gap that the groups of a table would show by chance if all had the rates of the whole table.

    The parameters are those of `certify`. It is simulated with a fixed seed: the same table has the same floor.

    Examples
    --------
    >>> floor = noise_floor([[[90, 10], [20, 80]], [[900, 100], [200, 800]]])
    >>> 0.03 < floor.expected < floor.quantile < 0.12 < floor.p_value
    True
    """
    counts = _Counts.of(table, constraint, agg, pos, squares)
    drawn = counts.equal_groups(counts.rows)
    gaps = counts.gaps(drawn)
    known = gaps[~np.isnan(gaps)]
    if len(known) == 0:
        return NoiseFloor(float("nan"), float("nan"))
    # a margin for the rounding of equal counts
    as_large = _deviation(drawn) >= _deviation(counts.outcomes) - 1e-9
    p_value = (1 + as_large.sum()) / (1 + len(drawn))
    return NoiseFloor(float(known.mean()), float(np.quantile(known, 0.95)), float(p_value))


def upper_gaps(
    tables: Floats,
    *,
    constraint: Constraint = "equalized_odds",
    agg: Agg = "max",
    pos: int | None = None,
    level: float = 0.05,
    times: float = 1.0,
) -> Floats:
    """About the bound that each of many tables would certify: quick, for ordering decisions before a test.

    A difference counts with its own margin, the normal quantile times its standard error, so that a rate of many rows
    may differ more than one of few rows.

    Parameters
    ----------
    tables : ndarray of shape (..., n_groups, n_labels, n_classes)
    constraint, agg, pos
        See `certify`.
    level : float, default=0.05
        One minus the confidence.
    times : float, default=1.0
        How many times as many rows will be tested.

    Returns
    -------
    ndarray of shape (...)
        NaN where nothing can be compared.

    Examples
    --------
    >>> few, many = np.array([[[[9, 1], [3, 7]]] * 2]), np.array([[[[900, 100], [300, 700]]] * 2])
    >>> upper_gaps(np.concatenate([few, many])).round(2).tolist()
    [0.35, 0.03]
    """
    table = np.asarray(tables, dtype=np.float64)
    if constraint == "demographic_parity":
        table = table.sum(axis=-2, keepdims=True)
    rate, rows = rates(table), table.sum(axis=-1, keepdims=True)
    # one more row of each prediction: a rate of 0 or 1 has an error, too
    likely = (table + 1) / (rows + table.shape[-1])
    variance = likely * (1 - likely) / np.maximum(rows * times, 1e-300)
    if constraint == "equal_opportunity":
        rate, variance = (np.diagonal(found, axis1=-2, axis2=-1)[..., None] for found in (rate, variance))
        wanted = 1 if pos is None and rate.shape[-2] == 2 else pos
        if wanted is not None:
            rate, variance = rate[..., [wanted], :], variance[..., [wanted], :]
    elif rate.shape[-1] == 2:
        rate, variance = rate[..., 1:], variance[..., 1:]
    # the total variation of more than two rates counts each difference twice
    half = 1.0 if rate.shape[-1] == 1 else 0.5
    largest = np.full((*rate.shape[:-3], rate.shape[-2]), np.nan)
    z = -float(ndtri(level))
    for g in range(rate.shape[-3] - 1):
        difference = np.abs(rate[..., g + 1 :, :, :] - rate[..., g : g + 1, :, :])
        margin = z * np.sqrt(variance[..., g + 1 :, :, :] + variance[..., g : g + 1, :, :])
        upper = half * (difference + margin).sum(axis=-1)
        largest = np.fmax(largest, np.fmax.reduce(upper, axis=-2))
    top: Floats = np.fmax.reduce(largest, axis=-1)
    if constraint == "equalized_odds" and agg == "sum":
        return np.where(np.isnan(top), np.nan, np.nansum(largest, axis=-1))
    return top


def smallest_tolerance(
    table: ArrayLike,
    *,
    constraint: Constraint = "equalized_odds",
    agg: Agg = "max",
    confidence: float = 0.95,
    pos: int | None = None,
    squares: ArrayLike | None = None,
) -> float:
    """The smallest tolerance that as many rows would certify if the groups were equal, in half of all samples.

    The parameters are those of `certify`; the predictions of the table count only through the rates of the whole
    table, so that any rough model's will do. Groups that differ need more.

    Examples
    --------
    >>> small, large = [[[90, 10], [20, 80]]] * 2, [[[900, 100], [200, 800]]] * 2
    >>> smallest_tolerance(large) < 0.06 < smallest_tolerance(small)
    True
    """
    _check(0.0, confidence)
    counts = _Counts.of(table, constraint, agg, pos, squares)
    return counts.limit if (counts.rows <= 0).any() else _median_bound(counts, 1 - confidence)


def rows_needed(
    table: ArrayLike,
    tolerance: float,
    *,
    constraint: Constraint = "equalized_odds",
    agg: Agg = "max",
    confidence: float = 0.95,
    pos: int | None = None,
    squares: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """The rows by which each group has to grow until equal groups would be certified in half of all samples.

    The parameters are those of `certify`. The smallest cells are filled first; each group is taken to keep its mix of
    labels (that of the whole table, where it has none).

    Returns
    -------
    ndarray of int of shape (n_groups,)
        Zeros where the rows suffice.

    Examples
    --------
    >>> table = [[[90, 10], [20, 80]], [[900, 100], [200, 800]]]
    >>> more = rows_needed(table, 0.06)
    >>> bool(more[0] > 500 and more[1] == 0)
    True
    """
    _check(tolerance, confidence)
    if tolerance <= 0:
        raise UserError(f"tolerance is {tolerance}", do="no number of rows certifies a gap of 0: ask for more than 0.")
    counts = _Counts.of(table, constraint, agg, pos, squares)
    rate = np.clip(counts.pooled, 0, 1)
    # a cell needs rows in proportion to the variance of its rate, at the worst rate within the tolerance
    spread = np.maximum((rate * (1 - rate)).max(axis=-1), tolerance * (1 - min(tolerance, 0.5)) / 2)

    # a margin of the bisection of `_approximate_bound`, so that both agree
    step = counts.limit / 2.0 ** np.ceil(np.log2(counts.limit / min(1e-3, tolerance / 10)))
    margin = float(step * (tolerance // step))

    def enough(scale: float) -> bool:
        typical = _typical_samples(counts, np.maximum(counts.rows, scale * spread))
        return sum(one.p_value(margin, exact=False) <= 1 - confidence for one in typical) > len(typical) / 2

    low, high = 0.0, 1.0
    if (counts.rows > 0).all() and enough(low):
        return np.zeros(len(counts.rows), dtype=np.int64)
    while not enough(high):
        low, high = high, 4 * high
    while high > 1.02 * low:
        low, high = (low, (low + high) / 2) if enough((low + high) / 2) else ((low + high) / 2, high)
    wanted = np.maximum(high * spread - counts.rows, 0)
    whole = counts.cells.sum(axis=0) / counts.cells.sum()
    mix = (counts.cells + whole) / (counts.cells.sum(axis=1, keepdims=True) + 1)
    return np.asarray(np.ceil((wanted / mix[:, counts.judged]).max(axis=1)), dtype=np.int64)


@dataclass(frozen=True)
class _Counts:
    """What the gap compares: the counts of `outcomes` in each group (last but one axis) and judged label."""

    outcomes: Floats
    """Predictions of each group for each judged label, of shape (n_judged, n_groups, n_classes)."""
    cells: Floats
    """Rows by group and label, of all labels."""
    judged: NDArray[np.intp]
    agg: Agg
    weighted: bool

    @classmethod
    def of(
        cls, table: ArrayLike, constraint: Constraint, agg: Agg, pos: int | None, squares: ArrayLike | None
    ) -> _Counts:
        found = np.asarray(table, dtype=np.float64)
        if found.ndim != 3 or len(found) < 2 or found.shape[-1] < 2 or not (found >= 0).all():
            raise UserError(
                f"table has shape {found.shape}",
                expected="counts of rows by (group, label, prediction), of at least two groups and two predictions",
            )
        if squares is None and (found != np.round(found)).any():
            raise UserError(
                "table holds parts of rows", do="pass the squared weights, counted in the same way, as squares."
            )
        square = None if squares is None else np.asarray(squares, dtype=np.float64)
        if constraint == "demographic_parity":
            found = found.sum(axis=1, keepdims=True)
            square = None if square is None else square.sum(axis=1, keepdims=True)
            judged = np.array([0])
        elif constraint == "equalized_odds":
            judged = np.flatnonzero(found.sum(axis=(0, 2)) > 0)
        elif constraint == "equal_opportunity":
            if found.shape[1] != found.shape[2]:
                raise UserError(f"table has shape {found.shape}", expected="labels and predictions in the same order")
            every = np.flatnonzero(found.sum(axis=(0, 2)) > 0)
            judged = np.array([pos]) if pos is not None else np.array([1]) if found.shape[1] == 2 else every
        else:
            raise UserError(f"constraint is {constraint!r}", expected=", ".join(get_args(Constraint)))
        if agg not in get_args(Agg):
            raise UserError(f"agg is {agg!r}", expected="'max' or 'sum'")
        if square is not None:
            # Kish: rows of equal weight that would be as informative
            total = square.sum(axis=-1, keepdims=True)
            found = found * np.divide(
                found.sum(axis=-1, keepdims=True), total, out=np.zeros_like(total), where=total > 0
            )
        outcomes = np.swapaxes(found[:, judged], 0, 1)
        if constraint == "equal_opportunity":
            hits = found[:, judged, judged].T
            outcomes = np.stack([outcomes.sum(axis=-1) - hits, hits], axis=-1)
        total_agg: Agg = agg if constraint == "equalized_odds" else "max"
        return cls(outcomes, found.sum(axis=-1), judged, total_agg, square is not None)

    @property
    def rows(self) -> Floats:
        """Rows by group and judged label."""
        rows: Floats = self.outcomes.sum(axis=-1).T
        return rows

    @property
    def limit(self) -> float:
        """The largest gap there can be."""
        return float(len(self.judged)) if self.agg == "sum" else 1.0

    @property
    def pooled(self) -> Floats:
        """The rates of all groups together, by judged label: of shape (n_judged, n_classes)."""
        total = self.outcomes.sum(axis=1)
        rows = total.sum(axis=-1, keepdims=True)
        shares: Floats = np.divide(total, rows, out=np.full_like(total, 1 / total.shape[-1]), where=rows > 0)
        return shares

    @property
    def gap(self) -> float:
        return float(self.gaps(self.outcomes[None])[0])

    def gaps(self, outcomes: Floats) -> Floats:
        """The point gap of each draw of `outcomes`."""
        # the gaps take groups before labels
        table = np.swapaxes(outcomes, -3, -2)
        return equalized_odds_from_table(table, self.agg)

    def equal_groups(self, rows: Floats) -> Floats:
        """Outcomes of groups of so many rows that all have the pooled rates: draws before the axes of `outcomes`."""
        rng = np.random.default_rng(0)
        n = np.round(rows.T).astype(np.int64)
        drawn = rng.multinomial(n, self.pooled[:, None, :], size=(_DRAWS, *n.shape))
        return drawn.astype(np.float64)

    @property
    def method(self) -> str:
        if self.weighted:
            return "approximate, weighted rows"
        if self.outcomes.shape[-1] > _MAX_SUBSETS_OF:
            return "exact"
        # of two groups the smaller one decides: all but the largest group are the smaller one of some pair
        smaller = np.sort(self.rows, axis=0)[:-1]
        large = smaller > EXACT_ROWS
        return "asymptotic" if large.all() else "exact and asymptotic" if large.any() else "exact"

    def p_value(self, margin: float, *, exact: bool = True, enough: float = UNCLEAR) -> float:
        """P-value of "gap >= margin"; from `enough` on it need not be exact."""
        if (self.rows <= 0).any():
            return 1.0
        if margin >= self.limit:
            return 0.0
        if self.outcomes.shape[-1] > _MAX_SUBSETS_OF:
            return self._many_classes_p_value(margin)
        exact = exact and not self.weighted
        if self.agg == "sum":
            return self._sum_p_value(margin, exact, enough)
        largest = max(float(largest_p_values(of_label, np.array([margin]))[0]) for of_label in self.outcomes)
        for of_label in self.outcomes:
            if exact and largest < enough:
                largest = max(largest, largest_exact_p_value(of_label, margin, enough))
        return largest

    def _many_classes_p_value(self, margin: float) -> float:
        """McDiarmid: the mean distance of samples is at least the true one, and a row moves it by 1 / n at most."""
        rows = self.rows.T
        rate = self.outcomes / rows[..., None]
        one, other = np.triu_indices(rows.shape[1], k=1)
        distance = 0.5 * np.abs(rate[:, one] - rate[:, other]).sum(axis=-1)
        moves = 1 / rows[:, one] + 1 / rows[:, other]
        if self.agg == "sum":
            distance, moves = distance.max(axis=1).sum(), moves.max(axis=1).sum()
        return float(np.exp(-2 * np.maximum(margin - distance, 0) ** 2 / moves).max())

    def _sum_p_value(self, margin: float, exact: bool, enough: float) -> float:
        """The sum is above the margin only where each label's gap is above its share: the shares that are least clear.

        The labels' rows are independent, so that Stouffer's method combines their p-values, with weights that depend
        on the numbers of rows alone.
        """
        weights = np.sqrt((1 / self.rows).max(axis=0))
        weights /= np.sqrt((weights**2).sum())
        share = margin * np.arange(_SHARES + 1) / _SHARES
        scores = [
            weight * _normal_score(largest_p_values(of_label, share))
            for weight, of_label in zip(weights, self.outcomes, strict=True)
        ]
        # the least clear total of the first labels, for each number of steps that they use
        totals = [scores[0]]
        for score in scores[1:]:
            totals.append(np.array([(totals[-1][: k + 1] + score[k::-1]).max() for k in range(_SHARES + 1)]))
        # shares between the steps are at least those of the step below: one step less for each label but one
        left = _SHARES + 1 - len(scores)
        approximate = float(ndtr(totals[-1][left]))
        if not exact or approximate >= enough:
            return approximate
        steps = []
        for before, score in zip(totals[-2::-1], scores[:0:-1], strict=True):
            steps.append(int((before[: left + 1] + score[left::-1]).argmax()))
            steps[-1], left = left - steps[-1], steps[-1]
        steps = [left, *reversed(steps)]
        pairs = zip(self.outcomes, steps, strict=True)
        found = [largest_exact_p_value(of_label, float(share[k])) for of_label, k in pairs]
        return max(approximate, float(ndtr(weights @ _normal_score(np.array(found)))))


def _deviation(outcomes: Floats) -> Floats:
    """The largest difference of a group's rate from the rate of all groups, in standard errors."""
    rows = outcomes.sum(axis=-1, keepdims=True)
    total = rows.sum(axis=-2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = outcomes.sum(axis=-2, keepdims=True) / total
        error = np.sqrt(pooled * (1 - pooled) * (1 / rows - 1 / total))
        deviation = np.abs(outcomes / rows - pooled) / error
    # groups without rows do not count
    found: Floats = np.nan_to_num(deviation, nan=0.0, posinf=0.0).max(axis=(-3, -2, -1))
    return found


def _normal_score(p_values: Floats) -> Floats:
    scores: Floats = ndtri(np.clip(p_values, 1e-300, 1 - 1e-16))
    return scores


def _bound(certified: Callable[[float], bool], low: float, high: float, guess: float) -> float:
    """The smallest margin between `low`, which is not certified, and `high`, which is; it is near the guess."""

    def halve(low: float, high: float, middle: float) -> tuple[float, float]:
        return (low, middle) if certified(middle) else (middle, high)

    around = 0.05 * guess + _PRECISION
    for near in (guess + around, guess - around):
        if low < near < high:
            low, high = halve(low, high, near)
    while high - low > _PRECISION:
        low, high = halve(low, high, (low + high) / 2)
    return high


def _approximate_bound(counts: _Counts, level: float, precision: float = _PRECISION) -> float:
    low, high = 0.0, counts.limit
    while high - low > precision:
        middle = (low + high) / 2
        low, high = (low, middle) if counts.p_value(middle, exact=False) <= level else (middle, high)
    return high


def _median_bound(counts: _Counts, level: float) -> float:
    """The median of the bounds of typical samples of as many rows."""
    return float(np.median([_approximate_bound(one, level, 1e-3) for one in _typical_samples(counts, counts.rows)]))


def _typical_samples(counts: _Counts, rows: Floats) -> list[_Counts]:
    """Five samples with these numbers of rows, of groups with equal rates, whose gaps are near the median."""
    drawn = counts.equal_groups(rows)
    middle = len(drawn) // 2
    typical = np.argsort(counts.gaps(drawn))[middle - 2 : middle + 3]
    return [replace(counts, outcomes=drawn[k], weighted=True) for k in typical]


def _check(tolerance: float, confidence: float) -> None:
    if not (tolerance >= 0 and 0.5 <= confidence < 1):
        raise UserError(
            f"tolerance is {tolerance} and confidence {confidence}",
            expected="a tolerance of at least 0, and a confidence from 0.5 to below 1",
        )

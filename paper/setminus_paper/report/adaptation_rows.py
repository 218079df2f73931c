"""Records of table 3, gathered to pairs of domains and rows: each method's accuracies by seed, and the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal

from scipy.special import stdtrit

__all__ = [
    "CHOSEN",
    "CONFIDENCE",
    "ESTIMATES",
    "PAPERS",
    "PAPER_SHIFT",
    "RULES",
    "Difference",
    "Pair",
    "Row",
    "difference",
    "over_seeds",
    "pairs_of",
    "spread",
    "usual_seeds",
]

Record = dict[str, Any]
Rule = Literal["information", "test_oracle"]

RULES: tuple[Rule, ...] = ("information", "test_oracle")
"""How the evaluation of a run that counts was picked: without labels of the target, or by them."""
PAPER_SHIFT = 0.7
"""Shares of the two halves of the classes in the paper: 70 and 30 percent, reversed on the target."""
ESTIMATES = {
    "vada_orthogonal_em": "EM",
    "vada_orthogonal_bbse": "BBSE",
    "vada_orthogonal_shrunk": "shrunk pseudo-labels",
    "vada_orthogonal_pseudo": "pseudo-labels",
}
"""The rows that differ in how the target's class frequencies are estimated."""
PAPERS = "vada_orthogonal_pseudo"
"""That of the paper."""
CHOSEN = "vada_orthogonal_chosen"
"""The row that stands for `ESTIMATES` on a pair: that with the most information, the same for all seeds. To take for
each seed that of its networks that says the most would compare the best of several with one of VADA's."""
ORDER = ("source_only", "dann", "adda", "cycada", "vada", "vada_iw", *ESTIMATES, CHOSEN)
"""A file has records in the order in which they were measured."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Row:
    """A method on a pair of domains at one shift.

    Attributes
    ----------
    method, label : str
        For commands, and for readers.
    paper : float or None
        The paper's accuracy.
    metrics : dict
        What was measured, by seed.
    picked : str
        The estimate that was chosen, where the row stands for several.
    """

    method: str
    label: str
    paper: float | None
    metrics: dict[int, dict[str, Any]]
    picked: str = ""

    def accuracies(self, rule: str = RULES[0]) -> dict[int, float]:
        """By seed."""
        return {
            seed: (one if rule == RULES[0] else one[rule])["accuracy"] for seed, one in sorted(self.metrics.items())
        }

    def mean(self, rule: str = RULES[0]) -> float:
        """Over the seeds."""
        return fmean(self.accuracies(rule).values())

    def deviation(self, rule: str = RULES[0]) -> float | None:
        """Over the seeds; None of a single one."""
        return stdev(self.accuracies(rule).values()) if len(self.metrics) > 1 else None


@dataclass(frozen=True)
class Pair:
    """Two domains at one shift.

    Attributes
    ----------
    name : str
    shift : float
    rows : dict of str to Row
        By method, in the paper's order.
    other_source : str
        What the paper had in place of the source, if it was another.
    """

    name: str
    shift: float
    rows: dict[str, Row]
    other_source: str = ""

    @property
    def n_seeds(self) -> int:
        """The most that a row has. Which these are differs between pairs."""
        return max(len(row.metrics) for row in self.rows.values())

    @property
    def repeated(self) -> bool:
        """Whether any row has several seeds."""
        return self.n_seeds > 1

    @property
    def images(self) -> str:
        """How many the domains have, in words; the same for all of its rows, and nothing where no record tells.

        Examples
        --------
        >>> rows = {"source": 800, "held_out": 200, "target": 1_000, "scored": 500}
        >>> Pair("a-b", 0.7, {"vada": Row("vada", "VADA", None, {0: {"rows": rows}})}).images
        '800 of the source and 200 held out, 1,000 of the target, 500 scored'
        """
        every = (one for row in self.rows.values() for one in row.metrics.values())
        counts = next((one["rows"] for one in every if "rows" in one), None)
        if counts is None:
            return ""
        return (
            f"{counts['source']:,} of the source and {counts['held_out']:,} held out, {counts['target']:,} of the "
            f"target, {counts['scored']:,} scored"
        )

    @property
    def ours(self) -> Row | None:
        r"""The row that stands for ``w_x \ w_1``: the chosen one, or the only estimate that was measured."""
        return next((self.rows[name] for name in (CHOSEN, *ESTIMATES) if name in self.rows), None)


@dataclass(frozen=True)
class Difference:
    """One row less another over the seeds of both: the mean, and its 95 % interval where there are several seeds."""

    mean: float
    low: float | None
    high: float | None

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def pairs_of(records: Iterable[Record]) -> list[Pair]:
    """The pairs and shifts that were measured, those with several seeds first, with the row that is chosen of others.

    Parameters
    ----------
    records : iterable of dict
        Of table 3 at one scale. Of a seed that was measured again, the last record counts.

    Returns
    -------
    list of Pair
    """
    found: dict[tuple[str, float], dict[str, list[Record]]] = {}
    for record in records:
        config = record["config"]
        found.setdefault((config["pair"], config["shift"]), {}).setdefault(config["method"], []).append(record)
    pairs = [_pair(name, shift, by_method) for (name, shift), by_method in found.items()]
    return sorted(pairs, key=lambda pair: not pair.repeated)


def difference(one: Row, other: Row, rule: str = RULES[0]) -> Difference | None:
    """The first less the second, seed by seed; None where they have no seed in common.

    The interval is that of the mean by Student's t: a seed deals the same rows to both.

    Examples
    --------
    >>> def row(*values):
    ...     return Row("m", "M", None, {seed: {"accuracy": value} for seed, value in enumerate(values)})
    >>> found = difference(row(0.5, 0.7, 0.9), row(0.4, 0.5, 0.6))
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3), found.clear
    (0.2, -0.048, 0.448, False)
    >>> difference(row(0.5), row(0.25))
    Difference(mean=0.25, low=None, high=None)
    """
    first, second = one.accuracies(rule), other.accuracies(rule)
    shared = [first[seed] - second[seed] for seed in first if seed in second]
    return over_seeds(shared) if shared else None


def over_seeds(values: Sequence[float], confidence: float = CONFIDENCE) -> Difference:
    """The mean of what each seed has, with its interval by Student's t."""
    mean = fmean(values)
    if len(values) == 1:
        return Difference(mean, None, None)
    reach = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * stdev(values) / len(values) ** 0.5
    return Difference(mean, mean - reach, mean + reach)


def spread(row: Row, rule: str = RULES[0]) -> str:
    """Mean and standard deviation in percent, as the tables write them.

    Examples
    --------
    >>> spread(Row("m", "M", None, {0: {"accuracy": 0.5}, 1: {"accuracy": 0.52}}))
    '51.0 ± 1.4'
    """
    deviation = row.deviation(rule)
    return f"{100 * row.mean(rule):.1f}" + ("" if deviation is None else f" ± {100 * deviation:.1f}")


def usual_seeds(pairs: Sequence[Pair]) -> int:
    """How many a pair with several has at the paper's shift, if not more; 1 where there is no such pair."""
    return min((pair.n_seeds for pair in pairs if pair.shift == PAPER_SHIFT and pair.repeated), default=1)


def _pair(name: str, shift: float, by_method: Mapping[str, Sequence[Record]]) -> Pair:
    known = [method for method in ORDER if method in by_method]
    rows: dict[str, Row] = {}
    for method in [*known, *(method for method in by_method if method not in ORDER)]:
        metrics = {record["seed"]: record["metrics"] for record in by_method[method]}
        about = by_method[method][-1]["metrics"]["row"]
        rows[method] = Row(method, about["label"], about["paper"] if shift == PAPER_SHIFT else None, metrics)
    chosen = _chosen([rows[method] for method in ESTIMATES if method in rows])
    if chosen is not None:
        rows[CHOSEN] = chosen
    others = [record["metrics"]["row"].get("other_source", "") for some in by_method.values() for record in some]
    return Pair(name, shift, rows, next(filter(None, others), ""))


def _chosen(rows: Sequence[Row]) -> Row | None:
    """The row with the most information at the evaluations that count, by the mean over the seeds that all rows have.

    It looks at no target label.
    """
    seeds = sorted(set.intersection(*({*row.metrics} for row in rows))) if rows else []
    if len(rows) < 2 or not seeds:
        return None
    best = max(rows, key=lambda row: fmean(row.metrics[seed]["information"] for seed in seeds))
    label = "VADA + w_x \\ w_1 (chosen estimate)"
    return Row(CHOSEN, label, best.paper, {seed: best.metrics[seed] for seed in seeds}, ESTIMATES[best.method])

"""What the fairness tables say: how near the paper's numbers are, whose order differs, and where we lose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from setminus_paper.report.fairness_rows import METRICS, Row, difference, estimate

__all__ = ["NAMES", "frontier", "near_the_paper", "of_the_paper", "order_of_rows", "shown", "standing"]

NAMES = {"accuracy": "accuracy", "dp_gap": "demographic parity gap", "eo_gap": "equalized odds gap"}
ERRORS = 2
"""Standard errors beyond which two rows differ."""


def shown(metric: str, value: float | None) -> str:
    """A number as the tables write it: accuracy in percent, a gap with three decimals.

    Examples
    --------
    >>> shown("accuracy", 0.8412), shown("eo_gap", -0.0001), shown("eo_gap", None)
    ('84.1', '0.000', 'n/a')
    """
    if value is None:
        return "n/a"
    # adding 0 makes a zero of minus zero
    return f"{100 * value:.1f}" if metric == "accuracy" else f"{round(value, 3) + 0.0:.3f}"


def of_the_paper(metric: str, value: float) -> str:
    """A number of the paper, with the digits that it has there.

    Examples
    --------
    >>> of_the_paper("accuracy", 0.845), of_the_paper("eo_gap", 0.2)
    ('84.5', '0.20')
    """
    return shown(metric, value) if metric == "accuracy" else f"{value:.2f}"


def near_the_paper(rows: Sequence[Row], rule: str) -> str:
    """How many of the paper's numbers one more run could have given, and how far off all of them are."""
    inside = total = 0
    distances: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for row in rows:
        for metric, expected in (row.paper or {}).items():
            found = estimate(row.measured[rule][metric])
            distances[metric].append(abs(found.mean - expected))
            # the paper's numbers are rounded
            half = 0.0005 if metric == "accuracy" else 0.005
            total += 1
            inside += (
                found.low is not None and found.high is not None and found.low - half <= expected <= found.high + half
            )
    if not total:
        return "None of these rows is in the paper."
    far = [f"{100 * max(distances['accuracy']):.1f} points in accuracy"]
    far += [f"{max(distances[metric]):.2f} in the {NAMES[metric]}" for metric in METRICS[1:]]
    return (
        f"{inside} of the paper's {total} numbers are such as one more run would give (95 %); "
        f"at most, they are off by {_join(far)}."
    )


def order_of_rows(rows: Sequence[Row], rule: str) -> list[tuple[str, str]]:
    """For each metric, which pairs of rows stand as in the paper, and which stand the other way round.

    Pairs whose numbers are equal in the paper have no order. Seeds are compared each with itself.
    """
    told = []
    for metric in METRICS:
        as_there = unclear = 0
        turned: list[tuple[str, str]] = []
        for one, other in combinations([row for row in rows if row.paper], 2):
            expected = (one.paper or {})[metric] - (other.paper or {})[metric]
            if expected == 0:
                continue
            found, error = difference(one, other, metric, rule)
            if abs(found) <= ERRORS * error:
                unclear += 1
            elif found * expected > 0:
                as_there += 1
            else:
                turned.append((one.label, other.label) if found > 0 else (other.label, one.label))
        count = as_there + unclear + len(turned)
        words = f"of {count} pairs, {as_there} stand as in the paper and {unclear} are too close to tell"
        words += f". The other way round: {_above(turned)}." if turned else "; none stands the other way round."
        told.append((NAMES[metric], words))
    return told


def frontier(rows: Sequence[Row], rule: str) -> list[Row]:
    """The rows that no other beats in both accuracy and equalized odds, from the smallest gap to the largest."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: (row.mean("eo_gap", rule), -row.mean("accuracy", rule))):
        if not kept or row.mean("accuracy", rule) > kept[-1].mean("accuracy", rule):
            kept.append(row)
    return kept


def standing(rows: Sequence[Row], rule: str) -> list[tuple[str, str, str]]:
    """Each rival beside ours: its label, "lose", "level" or "win", and why.

    A rival is compared with those rows of ours that stand on the same features and do not need the group where it
    does not. We win where one of them is better in accuracy or in the equalized odds gap by more than two standard
    errors and not worse in the other; we are level where one of them is not clearly worse in either; else we lose.
    """
    found = []
    for rival in rows:
        if rival.ours or rival.method == "vanilla":
            continue
        ours = [
            row
            for row in rows
            if row.ours and row.encoding == rival.encoding and (rival.needs_group or not row.needs_group)
        ]
        if ours:
            found.append((rival.label, *_beside(rival, ours, rule)))
    order = ("lose", "level", "win")
    return sorted(found, key=lambda one: order.index(one[1]))


def _beside(rival: Row, ours: Sequence[Row], rule: str) -> tuple[str, str]:
    leads = []
    # the fairest first: of several that win, it is the one to name
    for row in sorted(ours, key=lambda row: row.mean("eo_gap", rule)):
        accuracy, accuracy_error = difference(row, rival, "accuracy", rule)
        gap, gap_error = difference(rival, row, "eo_gap", rule)
        leads.append((row, (accuracy, gap), (ERRORS * accuracy_error, ERRORS * gap_error)))
    for row, lead, least in leads:
        if min(lead) >= 0 and (lead[0] > least[0] or lead[1] > least[1]):
            return "win", f"{_point(rival, rule)}; {row.label} has {_point(row, rule)}."
    for row, lead, least in leads:
        if lead[0] >= -least[0] and lead[1] >= -least[1]:
            return "level", f"{_point(rival, rule)}; {row.label} has {_point(row, rule)}."
    best = all(lead[0] < 0 and lead[1] < 0 for _, lead, _ in leads)
    nearest = min(ours, key=lambda row: abs(row.mean("eo_gap", rule) - rival.mean("eo_gap", rule)))
    why = "more accurate and fairer than all of ours" if best else "none of ours is both as accurate and as fair"
    return "lose", f"{_point(rival, rule)}: {why}; the nearest in gap, {nearest.label}, has {_point(nearest, rule)}."


def _point(row: Row, rule: str) -> str:
    accuracy, gap = (shown(metric, row.mean(metric, rule)) for metric in ("accuracy", "eo_gap"))
    return f"{accuracy} % at a gap of {gap}"


def _above(pairs: Sequence[tuple[str, str]]) -> str:
    """Which row is above which, gathered by the upper or by the lower one, whatever is shorter."""
    by_upper: dict[str, list[str]] = {}
    by_lower: dict[str, list[str]] = {}
    for upper, lower in pairs:
        by_upper.setdefault(upper, []).append(lower)
        by_lower.setdefault(lower, []).append(upper)
    if len(by_upper) <= len(by_lower):
        return "; ".join(f"{upper} is above {_join(some)}" for upper, some in by_upper.items())
    return "; ".join(f"{lower} is below {_join(some)}" for lower, some in by_lower.items())


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

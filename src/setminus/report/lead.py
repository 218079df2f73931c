"""The sentence that a section opens with: what the decisions do to the groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setminus.report.drawn import Drawn
from setminus.report.numbers import gap_title
from setminus.report.theme import group_name

__all__ = ["lead"]

MOST_NAMED = 3


def lead(audits: Sequence[dict[str, Any]], gap: str, drawn: Drawn) -> str:
    """What one score does, or what a model did before and does after.

    Two classes: the rate that the gap compares, of each group, or of the two extreme ones where there are many.
    More: the gap itself.

    Parameters
    ----------
    audits : sequence of dict
        One, or two: before and after.
    gap : str
        The key of the gap that matters.
    drawn : Drawn

    Examples
    --------
    >>> rates = [{"group": g, "true_positive_rate": {"value": v}} for g, v in (("f", 0.5), ("m", 0.75))]
    >>> drawn = Drawn(("f", "m"), {}, (1,), (0, 1), {"1": "good"}, "")
    >>> lead([{"classes": [0, 1], "group_rates": rates}], "equalized_odds_max", drawn)
    'Of the rows labelled good, the score finds 50.0 % in the group f and 75.0 % in the group m.'
    """
    classes = audits[-1]["classes"]
    if len(classes) > 2:
        values = [_number(audit[gap]["value"]) for audit in audits]
        subject = f"Between the {len(drawn.groups)} groups, the {gap_title(gap).lower()}"
        return subject + (f" is {values[0]}." if len(values) == 1 else f" was {values[0]}. Now it is {values[1]}.")
    parity = gap == "demographic_parity"
    rate, verb = ("selection_rate", "select") if parity else ("true_positive_rate", "find")
    first, *others = ([row for row in audit["group_rates"] if row[rate]["value"] is not None] for audit in audits)
    shares = [_shares(first, rate)]
    # the same groups in the same order need no second naming
    shares += [_shares(rows, rate, named=[r["group"] for r in rows] != [r["group"] for r in first]) for rows in others]
    opening = "The" if parity else f"Of the rows labelled {drawn.class_name(classes[1])}, the"
    if len(shares) == 1:
        return f"{opening} score {verb}s {shares[0]}."
    return f"{opening} model used to {verb} {shares[0]}. Now it {verb}s {shares[1]}."


def _shares(rows: Sequence[dict[str, Any]], rate: str, *, named: bool = True) -> str:
    known = [(row[rate]["value"], group_name(row["group"])) for row in rows]
    if not known:
        return "a share that is not defined"
    if len(known) > MOST_NAMED:
        (low, lowest), (high, highest) = min(known), max(known)
        return f"between {100 * low:.1f} % (group {lowest}) and {100 * high:.1f} % (group {highest})"
    *first, last = (f"{100 * value:.1f} %" + (f" in the group {name}" if named else "") for value, name in known)
    return f"{', '.join(first)} and {last}" if first else last


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.3f}"

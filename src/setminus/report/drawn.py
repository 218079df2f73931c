"""Which groups and classes the figures show: as many as an eye can tell apart, and a sentence on the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from setminus.report.theme import SIGNS, group_name

__all__ = ["MOST_CLASSES", "Drawn", "choose_drawn"]

MOST_CLASSES = 4


@dataclass(frozen=True)
class Drawn:
    """What is drawn of an audit.

    Attributes
    ----------
    groups : tuple of str
        All groups.
    places : dict of str to int
        The groups that have a sign of their own, and which.
    judged : tuple
        Classes that have rates and a reliability curve: the second of two, the most frequent of more.
    labels : tuple
        Classes whose rows have histograms.
    names : dict of str to str
        What to call a class, where that is not its own name.
    left_out : str
        A sentence, empty where everything is drawn.
    """

    groups: tuple[str, ...]
    places: dict[str, int]
    judged: tuple[Any, ...]
    labels: tuple[Any, ...]
    names: Mapping[str, str]
    left_out: str

    def class_name(self, label: Any) -> str:
        """What to call a class."""
        return self.names.get(str(label), str(label))

    def has(self, group: Any) -> bool:
        """Whether a group, as the record holds it, has a sign of its own."""
        return group_name(group) in self.places


def choose_drawn(audit: Mapping[str, Any], names: Mapping[str, str]) -> Drawn:
    """The largest groups and the most frequent classes of an audit.

    Parameters
    ----------
    audit : mapping
        Of `Audit.to_dict()`.
    names : mapping of str to str
        Names of the classes.

    Returns
    -------
    Drawn

    Examples
    --------
    >>> rates = [{"group": g, "label": 1, "n": n, "base_rate": 0.5} for g, n in zip("abcdefgh", range(8))]
    >>> drawn = choose_drawn({"classes": [0, 1], "group_rates": rates}, {"1": "yes"})
    >>> list(drawn.places), drawn.class_name(1)
    (['c', 'd', 'e', 'f', 'g', 'h'], 'yes')
    >>> drawn.left_out
    'Curves are drawn for the 6 largest of 8 groups; all are in the tables.'
    """
    rates: Sequence[Mapping[str, Any]] = audit["group_rates"]
    sizes = {group_name(row["group"]): row["n"] for row in rates}
    largest = sorted(sizes, key=lambda group: -sizes[group])[: len(SIGNS)]
    groups = tuple(sorted(sizes))
    shown = [group for group in groups if group in largest]
    frequency: dict[Any, float] = {}
    for row in rates:
        frequency[row["label"]] = frequency.get(row["label"], 0.0) + row["n"] * (row["base_rate"] or 0.0)
    frequent = sorted(frequency, key=lambda label: -frequency[label])[:MOST_CLASSES]
    judged = tuple(label for label in frequency if label in frequent)
    parts = []
    if len(shown) < len(groups):
        parts.append(f"the {len(shown)} largest of {len(groups)} groups")
    if len(judged) < len(frequency):
        parts.append(f"the {len(judged)} most frequent of {len(frequency)} classes")
    return Drawn(
        groups=groups,
        places={group: place for place, group in enumerate(shown)},
        judged=judged,
        labels=tuple(audit["classes"]) if len(audit["classes"]) == 2 else judged,
        names=names,
        left_out=f"Curves are drawn for {' and '.join(parts)}; all are in the tables." if parts else "",
    )

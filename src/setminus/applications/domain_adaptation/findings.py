"""Does adaptation apply here? What can be told of a target without labels, or with a few, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from setminus.applications.domain_adaptation.label_shift import class_frequencies
from setminus.auditing.diagnosis import Finding, Status, grade

__all__ = ["Judged", "adaptation_findings", "adaptation_verdict", "mix_distance"]

MISSED = (0.5, 0.9)
"""Of the way from always right to guessing, on source rows held out; here and below: where to warn, where to fail."""
MOVED = 0.05
"""A class mix closer than this has not changed to speak of."""
APART = (0.15, 0.3)
"""Distances of two class mixes that should be one."""
UNSTEADY = (0.05, 0.15)
"""Shares of target rows that another seed decides otherwise."""
SIGNIFICANCE = 0.05
HELPS = "it helps on labelled target rows"


@dataclass(frozen=True)
class Judged:
    """Answers on labelled target rows.

    Attributes
    ----------
    n : int
        Rows whose class the source has.
    before, after : int
        How many are right without and with adaptation.
    gained, lost : int
        How many only the second gets right, and only the first.
    mix : tuple of float
        Their class frequencies.
    """

    n: int
    before: int
    after: int
    gained: int
    lost: int
    mix: tuple[float, ...]

    @classmethod
    def of(cls, labels: ArrayLike, before: ArrayLike, after: ArrayLike, n_classes: int) -> Judged:
        """Count two models' answers; classes are numbers from 0.

        Examples
        --------
        >>> Judged.of([0, 1, 1, 1], before=[0, 0, 0, 0], after=[1, 1, 0, 1], n_classes=2)
        Judged(n=4, before=1, after=2, gained=2, lost=1, mix=(0.25, 0.75))
        """
        truth = np.asarray(labels)
        first, second = np.asarray(before) == truth, np.asarray(after) == truth
        return cls(
            n=len(truth),
            before=int(first.sum()),
            after=int(second.sum()),
            gained=int((second & ~first).sum()),
            lost=int((first & ~second).sum()),
            mix=tuple(class_frequencies(truth, n_classes).tolist()),
        )


def mix_distance(one: ArrayLike, other: ArrayLike) -> float:
    """Half the sum of absolute differences: the share of rows that would have to change their class.

    Examples
    --------
    >>> round(mix_distance([0.8, 0.2], [0.5, 0.5]), 3)
    0.3
    """
    return float(np.abs(np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)).sum() / 2)


def adaptation_findings(
    *,
    recall: float,
    n_classes: int,
    source_mix: ArrayLike,
    estimates: Mapping[str, ArrayLike],
    target_mix: ArrayLike,
    decided: ArrayLike,
    alike: float,
    judged: Judged | None = None,
) -> tuple[Finding, ...]:
    """The conditions of adaptation under label shift, each with its status.

    Parameters
    ----------
    recall : float
        Mean over classes of the share that a classifier of the source gets right, on source rows held out.
    n_classes : int
    source_mix : array of shape (C,)
        Class frequencies of the source.
    estimates : mapping of str to array of shape (C,)
        Two estimates of the target's from that classifier, by name.
    target_mix, decided : array of shape (C,)
        The estimate that adaptation used, and the shares of the adapted model's decisions.
    alike : float
        The share of target rows that an adapted model of another seed decides alike.
    judged : Judged, optional
        Where some target rows have labels.

    Returns
    -------
    tuple of Finding

    Examples
    --------
    >>> found = adaptation_findings(
    ...     recall=0.9, n_classes=2, source_mix=[0.8, 0.2], estimates={"EM": [0.3, 0.7], "BBSE": [0.35, 0.65]},
    ...     target_mix=[0.3, 0.7], decided=[0.32, 0.68], alike=0.97,
    ... )
    >>> {finding.status for finding in found}
    {'ok'}
    """
    found = [
        _told_apart(recall, n_classes),
        _changed(mix_distance(source_mix, target_mix)),
        _estimates_agree(estimates),
        _decisions_agree(mix_distance(target_mix, decided)),
        _steady(alike),
    ]
    return (*found, _fits(judged, target_mix), _helps(judged)) if judged else tuple(found)


def adaptation_verdict(findings: tuple[Finding, ...]) -> str:
    """One sentence over all findings.

    Examples
    --------
    >>> adaptation_verdict((Finding("the estimates agree", "fail", "..."),))
    'Do not rely on it yet: not true that the estimates agree.'
    """
    for status, said in (("fail", "Do not rely on it yet: not true that"), ("warn", "Usable with care. Doubtful that")):
        names = [finding.name for finding in findings if finding.status == status]
        if names:
            return f"{said} {'; that '.join(names)}."
    if any(finding.name == HELPS for finding in findings):
        return "It helps on labelled target rows, and nothing that was measured speaks against it."
    return "Nothing that was measured speaks against it. Labelled target rows, if you can get some, have the last word."


def _told_apart(recall: float, n_classes: int) -> Finding:
    chance = 1 / n_classes
    return _finding(
        "the columns tell the classes apart",
        grade((1 - recall) / (1 - chance), MISSED),
        f"{_percent(recall)} of a class are found on source rows held out, {_percent(chance)} by guessing",
        "Look for better columns first: where classes overlap in the source, no mix can be told from another.",
    )


def _changed(distance: float) -> Finding:
    return _finding(
        "the class mix changed",
        "ok" if distance > MOVED else "warn",
        f"the estimate differs from the source's mix by {_percent(distance)} of the rows",
        "Plain --method vada does the same with one estimate less that could be wrong.",
    )


def _estimates_agree(estimates: Mapping[str, ArrayLike]) -> Finding:
    (first, one), (second, other) = estimates.items()
    distance = mix_distance(one, other)
    return _finding(
        "two estimates of the new mix agree",
        grade(distance, APART),
        f"{first} and {second}, both from the model without adaptation, differ by {_percent(distance)} of the rows",
        "Rows of one class may look too different in the two files: --shrinkage 0.5 trusts the estimate by half.",
    )


def _decisions_agree(distance: float) -> Finding:
    return _finding(
        "decisions come in the estimated mix",
        grade(distance, APART),
        f"the shares of the adapted model's decisions differ from the estimate by {_percent(distance)} of the rows",
        "Trust neither: label some target rows, or train longer (--steps).",
    )


def _steady(alike: float) -> Finding:
    return _finding(
        "another seed decides alike",
        grade(1 - alike, UNSTEADY),
        f"{_percent(alike)} of the target rows get the same class from a second training",
        "Train longer (--steps), and look at several seeds (--seed).",
    )


def _fits(judged: Judged, target_mix: ArrayLike) -> Finding:
    distance = mix_distance(judged.mix, target_mix)
    # two standard errors of a share of one half: so far off may be the labelled rows
    return _finding(
        "the estimate fits the labelled rows",
        grade(max(distance - judged.n**-0.5, 0.0), APART),
        f"the mix of {judged.n:,} labelled target rows differs from the estimate by {_percent(distance)} of the rows",
        "If these rows were drawn at random, believe them: try --shrinkage 0.5, or leave out columns that moved.",
    )


def _helps(judged: Judged) -> Finding:
    differ = judged.gained + judged.lost
    clear = differ > 0 and binomtest(judged.gained, differ).pvalue <= SIGNIFICANCE
    status: Status = "warn" if not clear else "ok" if judged.gained > judged.lost else "fail"
    return _finding(
        HELPS,
        status,
        f"of {judged.n:,}, {judged.after:,} are right with adaptation and {judged.before:,} without",
        "Use the model without adaptation, or another --method." if status == "fail" else "Label more rows to tell.",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _finding(name: str, status: Status, evidence: str, advice: str) -> Finding:
    return Finding(name, status, evidence, "" if status == "ok" else advice)

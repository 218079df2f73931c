"""Does adaptation apply here? What can be told of a target without labels, or with a few, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from setminus.adaptation.adapter_parameters import WITH_PRIOR, Method
from setminus.adaptation.judged import Judged
from setminus.adaptation.label_shift import mix_distance
from setminus.auditing.diagnosis import Finding, Status, grade

__all__ = ["Seen", "adaptation_findings", "adaptation_verdict"]

STRANGE = (0.05, 0.5)
"""Shares of target rows with values that the source gives no idea of; here and below: where to warn, where to fail."""
MISSED = (0.5, 0.9)
"""Of the way from always right to guessing, on source rows held out."""
ALIKE_AUC = 0.6
"""Below it rows of one class can hardly be told apart by their domain; 0.5 is not at all."""
MOVED = 0.05
"""A class mix closer than this has not changed to speak of."""
APART = (0.15, 0.3)
"""Distances of two class mixes that should be one."""
UNSTEADY = (0.05, 0.15)
"""Shares of target rows that another seed decides otherwise."""
UNKNOWN = (1e-9, 0.1)
"""Shares of labelled target rows of classes that the source lacks."""
SIGNIFICANCE = 0.05
HELPS = "it helps on labelled target rows"


@dataclass(frozen=True)
class Seen:
    """What can be measured of an adaptation without labels of the target.

    Attributes
    ----------
    method : str
        See `OrthogonalAdapter`.
    shrinkage : float
    classes : sequence of str
    strange : mapping of str to float
        See `unseen_fraction`.
    recall, n_held : float, int
        Mean over classes of the share that a classifier of the source gets right, on how many source rows held out.
    auc : float
        How well rows are told apart by their domain, with source rows weighted to the estimated mix.
    source_mix : array of shape (C,)
    estimates : mapping of str to array of shape (C,)
        Of the target's class frequencies, by name; the first is the one that was used, not shrunk.
    answers : array of shape (C,)
        The mean over target rows of the adapted model's probabilities, given that estimate.
    decided : array of shape (C,)
        The shares of its decisions.
    alike : float
        The share of target rows that an adapted model of another seed decides alike.
    """

    method: Method
    shrinkage: float
    classes: tuple[str, ...]
    strange: Mapping[str, float]
    recall: float
    n_held: int
    auc: float
    source_mix: ArrayLike
    estimates: Mapping[str, ArrayLike]
    answers: ArrayLike
    decided: ArrayLike
    alike: float

    @property
    def used(self) -> ArrayLike:
        """The estimate that was used."""
        return next(iter(self.estimates.values()))


def adaptation_findings(seen: Seen, judged: Judged | None = None) -> tuple[Finding, ...]:
    """The conditions of adaptation under label shift, each with its status.

    Parameters
    ----------
    seen : Seen
    judged : Judged, optional
        Where some target rows have labels.

    Returns
    -------
    tuple of Finding
    """
    found = [
        _same_columns(seen),
        _told_apart(seen),
        _look_different(seen),
        _mix(seen),
        _estimates_agree(seen),
        _adds_up(seen),
        _every_class(seen),
        _steady(seen),
    ]
    if judged is not None:
        found += [_known_classes(judged), _fits(seen, judged), _above_one_class(judged)]
        found += [_helps(judged)] if seen.method != "source_only" else []
    return tuple(found)


def adaptation_verdict(findings: tuple[Finding, ...]) -> str:
    """One sentence over all findings; labelled rows have the first word.

    Examples
    --------
    >>> adaptation_verdict((Finding("two estimates agree", "fail", "..."),))
    'Do not rely on it yet: not true that two estimates agree.'
    """
    helps = next((finding.status for finding in findings if finding.name == HELPS), None)
    others = [finding for finding in findings if finding.name != HELPS and finding.status != "ok"]
    doubts = "; that ".join(finding.name for finding in others)
    if helps == "fail":
        return "Do not use it: on labelled target rows it is worse than no adaptation."
    if helps == "ok":
        return "It helps on labelled target rows." + (f" All the same, it is doubtful that {doubts}." if doubts else "")
    failed = [finding.name for finding in others if finding.status == "fail"]
    if failed:
        return f"Do not rely on it yet: not true that {'; that '.join(failed)}."
    if doubts:
        return f"Usable with care. Doubtful that {doubts}."
    if helps == "warn":
        return "Nothing speaks against it, but labelled target rows do not tell that it helps."
    return "Nothing that was measured speaks against it. Labelled target rows, if you can get some, have the last word."


def _same_columns(seen: Seen) -> Finding:
    name, share = max(seen.strange.items(), key=lambda item: item[1])
    return _finding(
        "the columns hold the same in both tables",
        grade(share, STRANGE),
        f"at most {_percent(share)} of the target's rows have a value that the source gives no idea of, in {name!r}",
        "Bring it to one form in both tables, or leave it out of both.",
    )


def _told_apart(seen: Seen) -> Finding:
    chance = 1 / len(seen.classes)
    return _finding(
        "the columns tell the classes apart",
        grade((1 - seen.recall) / (1 - chance), MISSED),
        f"{_percent(seen.recall)} of a class are found on {seen.n_held:,} source rows held out, {_percent(chance)} by "
        "guessing",
        "Look for better columns first: where classes overlap in the source, no mix can be told from another.",
    )


def _look_different(seen: Seen) -> Finding:
    return _finding(
        "rows of a class look different in the two tables",
        "ok" if seen.auc >= ALIKE_AUC else "warn",
        f"with the source weighted to the estimated mix, a classifier tells them apart with an AUC of {seen.auc:.2f}",
        "If only the mix changed, train nothing: multiply the probabilities of the model you have by new over old mix.",
    )


def _mix(seen: Seen) -> Finding:
    distance = mix_distance(seen.source_mix, seen.used)
    evidence = f"the estimate differs from the source's mix by {_percent(distance)} of the rows"
    if seen.method in WITH_PRIOR:
        advice = "Plain --method vada does the same with one estimate less that could be wrong."
        return _finding("the class mix changed", "ok" if distance > MOVED else "warn", evidence, advice)
    advice = "This method takes the mix for the same: --method vada_orthogonal does not."
    return _finding("the class mix is the same", "warn" if distance > MOVED else "ok", evidence, advice)


def _estimates_agree(seen: Seen) -> Finding:
    used, *others = seen.estimates
    apart = {name: mix_distance(seen.used, seen.estimates[name]) for name in others}
    name = max(apart, key=lambda one: apart[one])
    return _finding(
        "estimates of the new mix agree",
        grade(apart[name], APART),
        f"those by {used} and by {name} differ by {_percent(apart[name])} of the rows, others by less",
        "Rows of a class may look too different in the two tables: train longer (--steps)" + _shrink(seen),
    )


def _adds_up(seen: Seen) -> Finding:
    distance = mix_distance(seen.used, seen.answers)
    return _finding(
        "the adapted model's probabilities add up to the estimate",
        grade(distance, APART),
        f"with that mix taken for granted their mean differs from it by {_percent(distance)} of the rows",
        "Trust neither: label some target rows, or train longer (--steps).",
    )


def _every_class(seen: Seen) -> Finding:
    shares = np.asarray(seen.decided, dtype=np.float64)
    rarest = int(shares.argmin())
    return _finding(
        "every class is still found",
        "warn" if shares[rarest] == 0 else "ok",
        f"{_percent(shares[rarest])} of the target rows are given {seen.classes[rarest]!r}, the fewest of all",
        "If you expect some, a model that has given up a class agrees with itself all the same: do not rely on it.",
    )


def _steady(seen: Seen) -> Finding:
    return _finding(
        "another seed decides alike",
        grade(1 - seen.alike, UNSTEADY),
        f"{_percent(seen.alike)} of the target rows get the same class from a second training",
        "Train longer (--steps), and look at several seeds (--seed).",
    )


def _known_classes(judged: Judged) -> Finding:
    share = judged.strangers / judged.n
    return _finding(
        "the source has the classes of the target",
        grade(share, UNKNOWN),
        f"{judged.strangers:,} of {judged.n:,} labelled target rows are of classes that it lacks, and count as wrong",
        "No method can predict these: label some of them for the source, or keep such rows out of the target.",
    )


def _fits(seen: Seen, judged: Judged) -> Finding:
    distance, chance = mix_distance(judged.mix, seen.used), judged.chance_distance(seen.used)
    if distance <= chance:
        status: Status = "ok" if chance < APART[0] else "warn"
        advice = "Label more rows: so few are as far from any mix by chance."
    else:
        status = "fail" if grade(distance, APART) == "fail" else "warn"
        advice = f"If these rows were drawn at random, believe them: leave out columns that moved{_shrink(seen)}"
    return _finding(
        "the estimate fits the labelled rows",
        status,
        f"their mix differs from it by {_percent(distance)} of the rows, where chance makes up to {_percent(chance)}",
        advice,
    )


def _above_one_class(judged: Judged) -> Finding:
    return _finding(
        "it is right more often than one class for all",
        "ok" if judged.after > judged.most_frequent else "warn",
        f"of {judged.n:,} labelled target rows {judged.after:,} are right, and {judged.most_frequent:,} are of the "
        "most frequent class",
        "Where a rare class is what you look for, that may be. Otherwise look for better columns first.",
    )


def _helps(judged: Judged) -> Finding:
    clear, better = judged.p_value <= SIGNIFICANCE, judged.gained > judged.lost
    status: Status = "warn" if not clear else "ok" if better else "fail"
    evidence = f"of {judged.n:,}, {judged.after:,} are right with adaptation, and {judged.before:,} without"
    advice = {
        "fail": "Use --method source_only, or another.",
        "warn": "Label more rows to tell, or do without adaptation.",
    }
    return _finding(HELPS, status, evidence, advice.get(status, ""))


def _shrink(seen: Seen) -> str:
    """The end of an advice; only where it can still be followed."""
    return ", or try --shrinkage 0.5." if seen.method in WITH_PRIOR and not seen.shrinkage else "."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _finding(name: str, status: Status, evidence: str, advice: str) -> Finding:
    return Finding(name, status, evidence, "" if status == "ok" else advice)

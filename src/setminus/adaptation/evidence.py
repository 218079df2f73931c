"""Is an adaptation reliable? Checks without target labels, checks with some, and a verdict over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from setminus.adaptation.adapter_parameters import WITH_PRIOR
from setminus.adaptation.label_shift import class_frequencies, mix_distance
from setminus.auditing.diagnosis import Finding, Status, grade

__all__ = [
    "DECISIVE",
    "EXPECTED",
    "AdaptationEvidence",
    "TargetScores",
    "Verdict",
    "adaptation_findings",
    "adaptation_verdict",
]

# pairs of thresholds: a check warns above the first and fails above the second
DRIFT = (0.05, 0.5)
"""Fraction of target rows with a value outside the range or levels seen in the source."""
MISSED = (0.5, 0.9)
"""Balanced error on held-out source rows, as a fraction of the error of guessing."""
MIN_DOMAIN_AUC, AUC_ERRORS = 0.6, 2.0
"""Below the first, rows of one class hardly differ between the domains; 0.5 is chance. By that many standard errors
below it, they do not: then only the class frequencies changed, and the corrected model is the right one."""
MIN_SHIFT = 0.05
"""A smaller distance of two class frequencies counts as no change."""
DISAGREEMENT = (0.15, 0.3)
"""Distance of two class frequencies that should be equal."""
INSTABILITY = (0.05, 0.15)
"""Fraction of target rows that another seed predicts differently."""
UNSEEN_CLASSES = (1e-9, 0.1)
"""Fraction of labelled target rows of classes that the source lacks."""
MIN_SHARE, MISSING_CLASS = 0.02, 0.1
"""A class with an estimated share of at least the first counts as lost where its share of the predictions, or its
recall on labelled rows, is below the second times what it should be."""
MIN_TRUST = 0.5
"""Below it, predictions need not follow the estimate of the class frequencies."""
MAX_EXPECTED_LOSS, OF_CORRECTED = 0.05, 0.0
"""The largest expected loss of accuracy beside the better of the other models, by the probabilities of the method
"auto": the mean of those that it gives to the predictions of each model on target rows. It is rarely far below a model
without adaptation; a network that contradicts it has usually aligned classes wrongly. The second is for "corrected",
which differs less from the model of the source. Chosen on the settings for development of ``python -m benchmarks
verdicts``."""
MIN_RECALL_ROWS = 10
"""Labelled rows of a class from which its recall is judged."""
SIGNIFICANCE = 0.05
DRAWS = 2_000
UNADAPTED = ("source only", "corrected")
HELPS = "adaptation improves the accuracy on labelled target rows"
EXPECTED = "it is expected to be as accurate as without adaptation"
DECISIVE = frozenset(
    {
        EXPECTED,
        "every class is predicted",
        "the adapted model's mean probabilities agree with the estimate",
    }
)
"""Checks that, if they fail, advise against a model. Where `EXPECTED` is measured it is the only one: it was right more
often than the others. "auto" has none: on the settings for development it was the best of the models also where one
failed."""


@dataclass(frozen=True)
class TargetScores:
    """Predictions without and with adaptation, counted on labelled target rows.

    Attributes
    ----------
    n : int
        Labelled rows. Predictions for a class that the source lacks are always wrong.
    unseen_class : int
        Rows of classes that the source lacks.
    before, after : int
        Correct predictions without and with adaptation.
    gained, lost : int
        Rows that are correct only with adaptation, and only without.
    mix : tuple of float
        The frequencies of the source's classes among the other rows.
    recalls : tuple of (int, float)
        For each class of the source, its labelled rows and the share of them that is predicted correctly with
        adaptation.
    reference : str
        The model without adaptation.
    """

    n: int
    unseen_class: int
    before: int
    after: int
    gained: int
    lost: int
    mix: tuple[float, ...]
    recalls: tuple[tuple[int, float], ...] = ()
    reference: str = "source only"

    @classmethod
    def of(
        cls, labels: ArrayLike, before: ArrayLike, after: ArrayLike, n_classes: int, reference: str = "source only"
    ) -> TargetScores:
        """Count the predictions of two models.

        Parameters
        ----------
        labels : array of int of shape (n,)
            Classes from 0, and -1 for one that the source lacks; at least one must be the source's.
        before, after : array of int of shape (n,)
        n_classes : int
        reference : str
            The name of the model without adaptation.

        Examples
        --------
        >>> scores = TargetScores.of([0, 1, 1, 1, -1], before=[0, 0, 0, 0, 0], after=[1, 1, 0, 1, 0], n_classes=2)
        >>> scores.before, scores.after, scores.gained, scores.lost
        (1, 2, 2, 1)
        >>> scores.mix, scores.recalls[0]
        ((0.25, 0.75), (1, 0.0))
        """
        truth = np.asarray(labels)
        known = truth >= 0
        first, second = np.asarray(before) == truth, np.asarray(after) == truth
        of_class = [second[truth == k] for k in range(n_classes)]
        return cls(
            n=len(truth),
            unseen_class=int((~known).sum()),
            before=int(first.sum()),
            after=int(second.sum()),
            gained=int((second & ~first).sum()),
            lost=int((first & ~second).sum()),
            mix=tuple(class_frequencies(truth[known], n_classes).tolist()),
            recalls=tuple((len(right), float(right.mean()) if len(right) else 0.0) for right in of_class),
            reference=reference,
        )

    @property
    def most_frequent(self) -> int:
        """Correct predictions of the most frequent class for every row."""
        return round(max(self.mix) * (self.n - self.unseen_class))

    @property
    def p_value(self) -> float:
        """Sign test of `gained` against `lost`."""
        differ = self.gained + self.lost
        return float(binomtest(self.gained, differ).pvalue) if differ else 1.0

    def chance_distance(self, mix: ArrayLike, confidence: float = 0.95) -> float:
        """Quantile of the distance between `mix` and the class frequencies of a random sample of this size.

        Examples
        --------
        >>> few, many = (TargetScores(n, 0, 0, 0, 0, 0, mix=(0.5, 0.5)) for n in (10, 1_000))
        >>> round(few.chance_distance([0.5, 0.5]), 2), round(many.chance_distance([0.5, 0.5]), 2)
        (0.3, 0.03)
        """
        rng = np.random.default_rng(0)
        shares = np.asarray(mix, dtype=np.float64)
        rows = self.n - self.unseen_class
        samples = rng.multinomial(rows, shares / shares.sum(), size=DRAWS) / rows
        return float(np.quantile([mix_distance(sample, shares) for sample in samples], confidence))


@dataclass(frozen=True)
class AdaptationEvidence:
    """What can be measured of an adaptation without labels of the target.

    Attributes
    ----------
    method : str
        See `OrthogonalAdapter`; or "corrected".
    shrinkage : float
    classes : sequence of str
    drift : mapping of str to float
        For each column, the fraction of target rows with a value outside the range or levels seen in the source.
    recall, n_held : float, int
        Balanced accuracy of a classifier of the source on held-out source rows, and their number.
    auc, auc_error : float
        AUC of a classifier of the domain, with source rows weighted to the estimated class frequencies, and its
        standard error.
    source_mix : array of shape (C,)
        The class frequencies of the source.
    estimates : mapping of str to array of shape (C,)
        Estimates of the target's class frequencies, by name; the first is the one that was used, before shrinkage.
    answers : array of shape (C,)
        The adapted model's mean probabilities over target rows, for a target with the estimated frequencies.
    decided : array of shape (C,)
        The frequencies of its predictions.
    agreement : float
        The fraction of target rows for which a model of another seed predicts the same class.
    corrected : array of shape (C,)
        The frequencies of the corrected model's predictions.
    least : array of shape (C,)
        The lower ends of the intervals of the target's class frequencies, by the corrected model.
    assumed : array of shape (C,), optional
        The class frequencies that the model assumes, where it trusts the estimate only in part.
    trust : float, optional
        How far the model trusts the estimate, from 0 to 1, where it checks that itself.
    unexplained : float, optional
        The part of the difference between the predictions for both tables that the estimate does not explain.
    column_error : float, optional
        The error of the estimate by shifts of single columns.
    expected_accuracy : mapping of str to float, optional
        The mean probability that the method "auto" gives to the predictions of "source only", "corrected" and
        "adapted", for other methods.
    """

    method: str
    shrinkage: float
    classes: tuple[str, ...]
    drift: Mapping[str, float]
    recall: float
    n_held: int
    auc: float
    auc_error: float
    source_mix: ArrayLike
    estimates: Mapping[str, ArrayLike]
    answers: ArrayLike
    decided: ArrayLike
    agreement: float
    corrected: ArrayLike
    least: ArrayLike
    assumed: ArrayLike | None = None
    trust: float | None = None
    unexplained: float | None = None
    column_error: float | None = None
    expected_accuracy: Mapping[str, float] | None = None

    @property
    def used(self) -> ArrayLike:
        """The estimate that was used."""
        return next(iter(self.estimates.values()))

    @property
    def expected(self) -> ArrayLike:
        """The class frequencies that the predictions should have."""
        return self.used if self.assumed is None else self.assumed

    @property
    def decisive(self) -> frozenset[str]:
        """The checks that, if they fail, advise against the model; see `DECISIVE`."""
        if self.trust is not None:
            return frozenset()
        return DECISIVE - {EXPECTED} if self.expected_accuracy is None else frozenset({EXPECTED})

    @property
    def expected_gain(self) -> float | None:
        """The expected accuracy less that of the better model without adaptation."""
        if self.expected_accuracy is None:
            return None
        return self.expected_accuracy["adapted"] - max(self.expected_accuracy[name] for name in UNADAPTED)

    @property
    def measures(self) -> dict[str, float]:
        """The numbers that the checks compare with thresholds."""
        others = list(self.estimates.values())[1:]
        return {
            "drift": max(self.drift.values()),
            "recall": self.recall,
            "auc": self.auc,
            "auc_error": self.auc_error,
            "shift": mix_distance(self.source_mix, self.used),
            "disagreement": max(mix_distance(self.used, other) for other in others),
            "mass_distance": mix_distance(self.expected, self.answers),
            "decided_distance": mix_distance(self.expected, self.decided),
            "corrected_distance": mix_distance(self.corrected, self.decided),
            "agreement": self.agreement,
        } | {
            name: value
            for name, value in (("trust", self.trust), ("expected_gain", self.expected_gain))
            if value is not None
        }


def adaptation_findings(evidence: AdaptationEvidence, scores: TargetScores | None = None) -> tuple[Finding, ...]:
    """The conditions of adaptation under label shift, each with its status.

    Parameters
    ----------
    evidence : AdaptationEvidence
    scores : TargetScores, optional
        Where some target rows have labels.

    Returns
    -------
    tuple of Finding
    """
    found = [
        _values_seen(evidence),
        _classes_predictable(evidence),
        _features_differ(evidence),
        _frequencies_changed(evidence),
        _estimates_agree(evidence) if evidence.trust is None else _estimate_trusted(evidence),
        *([_predictions_agree(evidence)] if _follows_estimate(evidence) else []),
        _every_class_predicted(evidence),
        *([] if evidence.expected_gain is None else [_expected(evidence)]),
        _stable(evidence),
    ]
    if scores is not None:
        found += [_classes_known(scores), _estimate_fits(evidence, scores), _above_majority(scores)]
        found += [_every_class_recalled(evidence, scores)]
        found += [_helps(scores)] if evidence.method != "source_only" else []
    return tuple(found)


@dataclass(frozen=True)
class Verdict:
    """What to do with an adapted model.

    Attributes
    ----------
    text : str
    recommended : str
        The model to use: "adapted", "auto" for that of the method "auto", or the name of one without adaptation.
    """

    text: str
    recommended: str

    @property
    def use(self) -> bool:
        """Whether the adapted model is the one to use."""
        return self.recommended == "adapted"


def adaptation_verdict(
    findings: tuple[Finding, ...], scores: TargetScores | None = None, decisive: Set[str] = DECISIVE
) -> Verdict:
    """The verdict over all findings; the check on labelled target rows counts most.

    Parameters
    ----------
    findings : tuple of Finding
    scores : TargetScores, optional
        Those of `adaptation_findings`.
    decisive : set of str
        The checks that advise against the model; other failed checks make the evidence weak.

    Examples
    --------
    >>> adaptation_verdict((Finding("every class is predicted", "fail", "..."),)).text
    'Do not use it. Failed checks: every class is predicted. Use the auto model instead.'
    """
    helps = next((finding.status for finding in findings if finding.name == HELPS), None)
    others = [finding for finding in findings if finding.name != HELPS and finding.status != "ok"]
    failed = [finding.name for finding in others if finding.status == "fail"]
    against = "; ".join(name for name in failed if name in decisive)
    weak = "; ".join(finding.name for finding in others)
    if helps == "fail" and scores is not None:
        return Verdict(
            f"Do not use it: on labelled target rows it is less accurate than the model {scores.reference!r}.",
            scores.reference,
        )
    if helps == "ok":
        weak = f" Weak checks: {weak}." if weak else ""
        return Verdict(f"Adaptation improves the accuracy on labelled target rows.{weak}", "adapted")
    if against:
        return Verdict(f"Do not use it. Failed checks: {against}. Use the auto model instead.", "auto")
    if failed:
        return Verdict(
            f"The evidence is weak. Failed checks: {'; '.join(failed)}. A model without adaptation is still expected "
            "to be worse; label some target rows to find out.",
            "adapted",
        )
    if weak:
        return Verdict(f"Usable with care. Weak checks: {weak}.", "adapted")
    if helps == "warn":
        text = "No check failed, but the accuracy on labelled target rows is not significantly higher."
        return Verdict(text, "adapted")
    text = "No check failed. Without labelled target rows the gain in accuracy is not measured; label some if you can."
    return Verdict(text, "adapted")


def _values_seen(evidence: AdaptationEvidence) -> Finding:
    name, fraction = max(evidence.drift.items(), key=lambda item: item[1])
    return _finding(
        "target values were seen in the source",
        grade(fraction, DRIFT),
        f"at most {_percent(fraction)} of the target rows have a value outside the range or levels seen in the source, "
        f"in {name!r}",
        "Use the same units and codes in both tables, or leave the column out of both.",
    )


def _classes_predictable(evidence: AdaptationEvidence) -> Finding:
    chance = 1 / len(evidence.classes)
    return _finding(
        "the columns predict the class",
        grade((1 - evidence.recall) / (1 - chance), MISSED),
        f"balanced accuracy {_percent(evidence.recall)} on {evidence.n_held:,} held-out source rows, "
        f"{_percent(chance)} by guessing",
        "Find better columns first: where classes overlap in the source, class frequencies cannot be estimated.",
    )


def _features_differ(evidence: AdaptationEvidence) -> Finding:
    status: Status = "ok" if evidence.auc >= MIN_DOMAIN_AUC else "warn"
    # a corrected model and "auto" are for this case
    trains = evidence.method != "corrected" and evidence.trust is None
    changed = mix_distance(evidence.source_mix, evidence.used) > MIN_SHIFT
    if trains and changed and evidence.auc + AUC_ERRORS * evidence.auc_error < MIN_DOMAIN_AUC:
        status = "fail"
    return _finding(
        "rows of a class differ between the tables",
        status,
        "with source rows weighted to the estimated class frequencies, a classifier of the table has an AUC of "
        f"{evidence.auc:.2f}, with a standard error of {evidence.auc_error:.2f}",
        "If only the class frequencies changed, do not train: multiply the probabilities of your model by new over old "
        "frequencies, as --method corrected does.",
    )


def _frequencies_changed(evidence: AdaptationEvidence) -> Finding:
    distance = mix_distance(evidence.source_mix, evidence.used)
    measured = f"the estimate differs from the source's frequencies by {_percent(distance)} of the rows"
    corrects = evidence.method == "corrected"
    if evidence.method in WITH_PRIOR or corrects:
        advice = "--method vada does the same without an estimate that could be wrong."
        if corrects:
            advice = "There is nothing to correct: use the model without adaptation."
        return _finding("the class frequencies changed", "ok" if distance > MIN_SHIFT else "warn", measured, advice)
    advice = "This method assumes equal class frequencies in both tables; --method vada_orthogonal does not."
    return _finding("the class frequencies are the same", "warn" if distance > MIN_SHIFT else "ok", measured, advice)


def _estimates_agree(evidence: AdaptationEvidence) -> Finding:
    used, *others = evidence.estimates
    distances = {name: mix_distance(evidence.used, evidence.estimates[name]) for name in others}
    name = max(distances, key=lambda one: distances[one])
    return _finding(
        "estimates of the class frequencies agree",
        grade(distances[name], DISAGREEMENT),
        f"the largest difference, between the estimates by {used} and by {name}, is {_percent(distances[name])} of the "
        "rows",
        "Rows of a class may differ too much between the tables: train longer (--steps)" + _shrink(evidence),
    )


def _estimate_trusted(evidence: AdaptationEvidence) -> Finding:
    trust, unexplained = evidence.trust or 0.0, evidence.unexplained or 0.0
    error = evidence.column_error or 0.0
    return _finding(
        "other class frequencies explain the target's predictions",
        "ok" if trust == 1 else "warn",
        f"the estimate has a weight of {_percent(trust)}; it leaves {_percent(unexplained)} of the difference between "
        f"the tables unexplained, and shifts of single columns could make it wrong by {_percent(min(error, 1.0))} of "
        "the rows",
        "The features changed as well. The model relies less on the estimate; label some target rows to check it.",
    )


def _follows_estimate(evidence: AdaptationEvidence) -> bool:
    """Whether the model trusts the estimate: otherwise its mistakes are no reason against the predictions."""
    return evidence.trust is None or evidence.trust >= MIN_TRUST


def _without_trust(evidence: AdaptationEvidence, status: Status) -> Status:
    return "warn" if status == "fail" and not _follows_estimate(evidence) else status


def _predictions_agree(evidence: AdaptationEvidence) -> Finding:
    distance = mix_distance(evidence.expected, evidence.answers)
    return _finding(
        "the adapted model's mean probabilities agree with the estimate",
        grade(distance, DISAGREEMENT),
        f"for a target with the estimated frequencies they differ from them by {_percent(distance)} of the rows",
        "Trust neither: label some target rows, or train longer (--steps).",
    )


def _every_class_predicted(evidence: AdaptationEvidence) -> Finding:
    shares = np.asarray(evidence.decided, dtype=np.float64)
    # the model's own estimate may be wrong in the same way as its predictions
    expected = np.maximum(evidence.expected, evidence.least)
    ratio = shares / np.maximum(expected, MIN_SHARE)
    lost = (expected >= MIN_SHARE) & (ratio < MISSING_CLASS)
    # the most frequent of the lost classes
    rarest = int(np.argmax(lost * expected) if lost.any() else ratio.argmin())
    return _finding(
        "every class is predicted",
        _without_trust(evidence, "fail" if lost.any() else "warn" if shares.min() == 0 else "ok"),
        f"{_percent(shares[rarest])} of the target rows are predicted as {evidence.classes[rarest]!r}, and by the "
        f"estimates {_percent(expected[rarest])} or more are of this class",
        "Do not rely on it for this class; label some target rows to find out whether they are of it.",
    )


def _expected(evidence: AdaptationEvidence) -> Finding:
    limit = OF_CORRECTED if evidence.method == "corrected" else MAX_EXPECTED_LOSS
    accuracies = (f"{name} {_percent(share)}" for name, share in (evidence.expected_accuracy or {}).items())
    return _finding(
        EXPECTED,
        "ok" if (evidence.expected_gain or 0.0) >= -limit else "fail",
        f"the accuracies are, by the probabilities of the method auto: {', '.join(accuracies)}",
        "Use --method auto, or label some target rows to find out which of the two is right.",
    )


def _every_class_recalled(evidence: AdaptationEvidence, scores: TargetScores) -> Finding:
    counted = [k for k, (rows, _) in enumerate(scores.recalls) if rows >= MIN_RECALL_ROWS]
    name = "every class with labelled target rows is recognised"
    if not counted:
        return _finding(name, "ok", f"no class has {MIN_RECALL_ROWS} labelled target rows", "")
    worst = min(counted, key=lambda k: scores.recalls[k][1])
    rows, recall = scores.recalls[worst]
    return _finding(
        name,
        "fail" if recall < MISSING_CLASS else "ok",
        f"the lowest recall is {_percent(recall)}, of {rows:,} rows of class {evidence.classes[worst]!r}",
        "Do not rely on predictions of this class.",
    )


def _stable(evidence: AdaptationEvidence) -> Finding:
    return _finding(
        "another seed gives the same predictions",
        grade(1 - evidence.agreement, INSTABILITY),
        f"{_percent(evidence.agreement)} of the target rows get the same class from a second training",
        "Train longer (--steps), and compare several seeds (--seed).",
    )


def _classes_known(scores: TargetScores) -> Finding:
    return _finding(
        "the source has the classes of the target",
        grade(scores.unseen_class / scores.n, UNSEEN_CLASSES),
        f"{scores.unseen_class:,} of {scores.n:,} labelled target rows are of classes that it lacks and count as wrong",
        "No method can predict these: add labelled rows of them to the source, or remove them from the target.",
    )


def _estimate_fits(evidence: AdaptationEvidence, scores: TargetScores) -> Finding:
    distance, chance = mix_distance(scores.mix, evidence.used), scores.chance_distance(evidence.used)
    if distance <= chance:
        status: Status = "ok" if chance < DISAGREEMENT[0] else "warn"
        advice = "Label more rows: with so few, any estimate would fit."
    else:
        status = _without_trust(evidence, "fail" if grade(distance, DISAGREEMENT) == "fail" else "warn")
        advice = f"If these rows are a random sample, trust them: leave out columns that shifted{_shrink(evidence)}"
    return _finding(
        "the estimate fits the labelled target rows",
        status,
        f"their class frequencies differ from it by {_percent(distance)} of the rows, and by chance up to "
        f"{_percent(chance)}",
        advice,
    )


def _above_majority(scores: TargetScores) -> Finding:
    return _finding(
        "it is more accurate than the most frequent class",
        "ok" if scores.after > scores.most_frequent else "warn",
        f"of {scores.n:,} labelled target rows {scores.after:,} are predicted correctly, and {scores.most_frequent:,} "
        "are of the most frequent class",
        "This can be fine where a rare class matters most. Otherwise find better columns first.",
    )


def _helps(scores: TargetScores) -> Finding:
    clear, better = scores.p_value <= SIGNIFICANCE, scores.gained > scores.lost
    status: Status = "warn" if not clear else "ok" if better else "fail"
    measured = (
        f"of {scores.n:,}, {scores.after:,} are correct with adaptation, and {scores.before:,} by the model "
        f"{scores.reference!r}"
    )
    advice = {"fail": f"Use the model {scores.reference!r}.", "warn": "Label more rows, or do not adapt."}
    return _finding(HELPS, status, measured, advice.get(status, ""))


def _shrink(evidence: AdaptationEvidence) -> str:
    """The end of an advice: shrinkage, where the method has it and it is not used yet; "auto" checks the estimate."""
    shrinks = evidence.method in WITH_PRIOR and evidence.trust is None
    return ", or try --shrinkage 0.5." if shrinks and not evidence.shrinkage else "."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _finding(name: str, status: Status, measured: str, advice: str) -> Finding:
    return Finding(name, status, measured, "" if status == "ok" else advice)

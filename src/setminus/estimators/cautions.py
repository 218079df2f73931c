"""What a user should know of a tuned classifier before using it: warnings, in the words of Python or of options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.core.gaps import rates
from setminus.errors import UserError

__all__ = ["OPTIONS", "Caution", "NotCertified", "group_cautions"]

Floats = NDArray[np.float64]

NEAR_CONSTANT = 0.98
"""A caution is given where more than this share of the rows gets one class, and fewer did by the full classifier."""

LEVELS_DOWN = 0.05
"""A caution is given where recall falls by more than this in a group and rises in none."""

SENTENCES = {
    "few rows": (
        "with these rows the smallest {gap} gap that can be certified at {confidence:g}{where} is about "
        "{smallest:.2g}, the tolerance is {tolerance:g}",
        "{more}raise the tolerance, merge small groups, or {no_certificate}.",
    ),
    "not certified": (
        "no useful decision is certified to keep the {gap} gap within {tolerance:g}; the most likely one has a gap of "
        "{measured:.3g} and a bound of {bound:.3g}",
        "raise the tolerance, lower {min_lead} or {min_rate_ratio}, or use more rows.",
    ),
    "within noise": (
        "the {gap} gap of the full classifier, {measured:.3g}, may be chance: equal groups of these sizes differ as "
        "much in {percent:.0f} % of samples. It may also be as large as {bound:.3g}; the classifier is left as it is, "
        "without a certificate",
        "use more rows, or raise the tolerance.",
    ),
    "gap too large": (
        "no useful decision keeps the {gap} gap within {tolerance:g} out of fold; the smallest gap is {measured:.3g}",
        "raise the tolerance, lower {min_lead} or {min_rate_ratio}, or try another principal.",
    ),
    "floors": ("no decision keeps the floors ({min_lead} and others)", "lower them, or raise the tolerance."),
    "near constant": ("a near constant decision", "{percent:.1f} % of the rows are predicted to be {label}."),
    "levels down": (
        "out of fold the recall of {label} falls by up to {fall:.2f} in a group and rises in none",
        "the groups are levelled down. {level_up} forbids it.",
    ),
    "largest strength": ("the chosen strength {strength:g} is the largest that was tried", "{larger}"),
}
"""By kind: what was found, and what to do. A name that no value fills is a setting, in the words of Python or of the
command."""

PYTHON = {
    "no_certificate": "set confidence=None",
    "min_lead": "min_lead",
    "min_rate_ratio": "min_rate_ratio",
    "level_up": "levelling='up'",
    "larger": "try larger strengths.",
}
OPTIONS = {
    "no_certificate": "ask for no certificate: --confidence 0",
    "min_lead": "--min-lead",
    "min_rate_ratio": "--min-rate-ratio",
    "level_up": "--level-up",
    "larger": "its correction may be too weak.",
}
"""The settings as options of ``setminus fit``."""


class Caution(UserWarning):
    """A warning whose sentence can name settings as Python or as options.

    Parameters
    ----------
    kind : str
        A key of `SENTENCES`.
    values : mapping, optional
        What fills the sentence, here or by name; ``label`` is a class.

    Examples
    --------
    >>> caution = Caution("levels down", label=1, fall=0.14)
    >>> caution.parts()[1]
    "the groups are levelled down. levelling='up' forbids it."
    >>> caution.text(OPTIONS, {"1": "hired"})[:32]
    'out of fold the recall of hired '
    """

    def __init__(self, kind: str, values: Mapping[str, Any] | None = None, **named: Any):
        self.kind: str = kind
        self.values: dict[str, Any] = {**(values or {}), **named}
        # its arguments, so that another process can make it again
        super().__init__(kind, self.values)

    def __str__(self) -> str:
        return self.text()

    def text(self, words: Mapping[str, str] = PYTHON, labels: Mapping[str, str] | None = None) -> str:
        """The sentence; `labels` are the names of classes that stand for codes."""
        return ": ".join(filter(None, self.parts(words, labels)))

    def parts(self, words: Mapping[str, str] = PYTHON, labels: Mapping[str, str] | None = None) -> tuple[str, str]:
        """What was found, and what to do."""
        if self.kind not in SENTENCES:  # a sentence: `warnings.warn(str(caution), Caution)` says it again
            return self.kind, ""
        values = dict(self.values)
        if "label" in values:
            name = (labels or {}).get(str(values["label"]))
            values["label"] = repr(values["label"]) if name is None else name
        found, do = (part.format(**words, **values) for part in SENTENCES[self.kind])
        return found, do


class NotCertified(UserError):
    """No decision is certified, and an error was asked for."""

    def __init__(self, caution: Caution, words: Mapping[str, str] = PYTHON):
        self.caution: Caution = caution
        self._words: Mapping[str, str] = words
        came, do = caution.parts(words)
        super().__init__(came, do=do)

    def __reduce__(self) -> tuple[Any, ...]:
        return NotCertified, (self.caution, dict(self._words))


def group_cautions(before: Floats, after: Floats, classes: list[Any], selected: int) -> list[Caution]:
    """Whether a decision is nearly constant, and whether it levels the groups down.

    Parameters
    ----------
    before, after : ndarray of shape (n_groups, n_classes, n_classes)
        Rows by (group, label, prediction), of the full classifier and of the chosen decision.
    classes : list
    selected : int
        The class whose recall counts, of two.

    Examples
    --------
    >>> before, after = np.array([[[50, 50], [20, 80]]] * 2), np.array([[[80, 20], [50, 50]]] * 2)
    >>> [caution.kind for caution in group_cautions(before, after, ["no", "yes"], 1)]
    ['levels down']
    """
    found = []
    shares = after.sum(axis=(0, 1)) / after.sum()
    if shares.max() > NEAR_CONSTANT > before.sum(axis=(0, 1)).max() / before.sum():
        found.append(Caution("near constant", percent=100 * shares.max(), label=classes[int(shares.argmax())]))
    if len(classes) == 2:
        change = rates(after)[:, selected, selected] - rates(before)[:, selected, selected]
        if np.nanmax(change) <= 0 and np.nanmin(change) < -LEVELS_DOWN:
            found.append(Caution("levels down", label=classes[selected], fall=-float(np.nanmin(change))))
    return found

"""What a method says of the rows that it has not learned from, after each epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.errors import UserError

__all__ = ["Part", "Predictions"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """Answers for some rows.

    Attributes
    ----------
    proba : ndarray of shape (seeds, epochs, rows)
        The probability of label 1.
    decisions : ndarray of bool of the same shape
        What is decided: ``proba >= 0.5`` unless the method has a rule of its own.
    """

    proba: Floats
    decisions: NDArray[np.bool_]

    @classmethod
    def of(cls, proba: Floats, threshold: Any = 0.5) -> Part:
        """Decide at a threshold: one for all, or one for each seed and epoch, of shape (seeds, epochs, 1)."""
        return cls(proba, proba >= threshold)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers of one method, all seeds.

    Attributes
    ----------
    validation : Part or None
        What picks the epoch; None where there is one epoch only.
    test : Part
    seconds : float
        To learn and to predict, for each seed; all that the method needs is in it, such as a full classifier.
    settings : mapping of str to ndarray of shape (seeds, epochs)
        What the method chose on the validation rows.
    """

    validation: Part | None
    test: Part
    seconds: float
    settings: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def on_validation(self) -> Part:
        """The predictions of the validation rows, or an error that says that there are none."""
        if self.validation is None:
            raise UserError("there are no predictions of the validation rows", expected="them, to pick an epoch")
        return self.validation

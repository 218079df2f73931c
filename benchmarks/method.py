"""What a row of the comparison is: a method, and its answers on the test rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.adult import Adult


@dataclass(frozen=True, eq=False)
class Answer:
    """What a fitted method says of the test rows.

    Attributes
    ----------
    predictions : ndarray of shape (n,)
    proba : ndarray of shape (n,) or None
        The probability of class 1 that the method gives, where it gives one.
    seconds : float
        To fit all that is needed, base models included; one fit may serve several tolerances.
    tolerance : float or None
        The gap that was asked for.
    settings : mapping
        What the fit chose.
    """

    predictions: NDArray[Any]
    proba: NDArray[np.float64] | None
    seconds: float
    tolerance: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A named way to get answers.

    Attributes
    ----------
    name : str
    answers : callable
        From a split to one answer, or to one for each tolerance.
    needs_attribute : bool
        Whether the group must be known when predicting.
    deterministic : bool
        Whether a row's prediction is a function of the row.
    config : mapping
        What to write into the record beside the protocol; "tolerances" tells how many answers to expect.
    """

    name: str
    answers: Callable[[Adult], Iterator[Answer]]
    needs_attribute: bool = False
    deterministic: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tolerances(self) -> tuple[float | None, ...]:
        """One for each answer."""
        return tuple(self.config.get("tolerances", (None,)))

"""How a number that several seeds gave is written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["mean_and_deviation"]


def mean_and_deviation(values: Sequence[float] | NDArray[np.float64], form: str = ".3f") -> str:
    """The mean with the standard deviation over seeds, where there are several.

    Examples
    --------
    >>> mean_and_deviation([0.1, 0.3]), mean_and_deviation([0.25])
    ('0.200 ± 0.100', '0.250')
    """
    return format(np.mean(values), form) + (f" ± {np.std(values):{form}}" if len(values) > 1 else "")

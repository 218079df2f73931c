"""The method on arrays: no estimators, no frames, no files."""

from __future__ import annotations

from typing import Literal

__all__ = ["Agg", "Constraint", "ConstraintOver", "Gap"]

# here, where they load without numpy: the command line needs them for its options
Constraint = Literal["equalized_odds", "demographic_parity", "equal_opportunity"]
"""The gap that is bounded."""

Agg = Literal["max", "sum"]
"""How equalized odds puts the gaps of the labels together: Fairlearn takes the max, the paper the sum."""

ConstraintOver = Literal["crossed", "each", "both"]
"""The groups that are compared where there are several sensitive columns: those of their crossing, of each, or both."""

Gap = Literal["equalized_odds_max", "equalized_odds_sum", "demographic_parity", "equal_opportunity"]
"""The gaps that an audit measures, by their keys in its record."""

"""The formula on columns that hold probabilities already; needs no model, and no scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setminus.core.checks import OnViolation
from setminus.core.orthogonalize import orthogonalize
from setminus.scale.parts import score_column
from setminus.tables.drift import ColumnDrift
from setminus.tables.errors import TableError, check_names
from setminus.tables.reading import Table

__all__ = ["ProbabilityScorer"]

Proba = NDArray[np.float64]


@dataclass(frozen=True)
class ProbabilityScorer:
    r"""``full \ principal`` on columns that hold probabilities already.

    Parameters
    ----------
    full, principal : sequence of str
        The columns of the full and of the principal probabilities, one for each class in the same order. A single
        column holds the probability of the second of two classes.
    prior : sequence of float, or "uniform"
        p(y) of the data that the principal classifier was fitted on.
    strength : float, default=1.0
    on_violation : {"raise", "clip", "warn"}, default="raise"
        See `orthogonalize`.
    name : str, default="orthogonal"
        What to call the scores: a single column where `full` is one, else ``orthogonal_0``, ``orthogonal_1`` ...

    Examples
    --------
    >>> rows = pa.table({"p": [0.8], "q0": [0.4], "q1": [0.6]})
    >>> ProbabilityScorer(["p"], ["q0", "q1"], "uniform").score(rows).to_pydict()
    {'orthogonal': [0.727...]}
    """

    full: Sequence[str]
    principal: Sequence[str]
    prior: Sequence[float] | str
    strength: float = 1.0
    on_violation: OnViolation = "raise"
    name: str = "orthogonal"

    def columns(self, table: Table) -> list[str]:
        """The columns of probabilities, which must be there and hold numbers."""
        for role, names in (("full", self.full), ("principal", self.principal)):
            if isinstance(names, str) or not names:
                raise TableError(f"{role} is {names!r}", "Give the names of its columns, one for each class.")
            check_names(names, table.names, table.path.name)
            for name in names:
                kind = table.schema.field(name).type
                if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                    raise TableError(f"column {name!r} holds {kind}, not probabilities", "Name a column of numbers.")
        full, principal = (max(2, len(names)) for names in (self.full, self.principal))
        if full != principal:
            raise TableError(
                f"full names {full} classes and principal {principal}", "Give both a column for the same classes."
            )
        try:
            # refused here, not in the first part
            even = np.full((1, full), 1 / full)
            orthogonalize(even, even, self.prior, strength=self.strength, on_violation=self.on_violation)
        except ValueError as error:
            raise TableError.of(error) from error
        return [*self.full, *self.principal]

    def score(self, rows: pa.Table) -> pa.Table:
        """The orthogonal probabilities."""
        full = _stacked(rows, self.full)
        orthogonal = orthogonalize(
            full,
            _stacked(rows, self.principal),
            self.prior,
            strength=self.strength,
            on_violation=self.on_violation,
            out=np.empty_like(full),
        )
        if len(self.full) == 1:
            return pa.table({self.name: score_column(orthogonal, 1)})
        return pa.table({f"{self.name}_{k}": score_column(orthogonal, k) for k in range(len(self.full))})

    def drift(self, rows: pa.Table) -> dict[str, ColumnDrift]:
        """Nothing: there was no training."""
        return {}


def _stacked(rows: pa.Table, names: Sequence[str]) -> Proba:
    """Columns side by side; a single one gets its complement."""
    columns = [rows.column(name).cast(pa.float64()).to_numpy() for name in names]
    proba = np.empty((rows.num_rows, max(2, len(columns))))
    if len(columns) == 1:
        np.subtract(1, columns[0], out=proba[:, 0])
        proba[:, 1] = columns[0]
    else:
        for k, column in enumerate(columns):
            proba[:, k] = column
    return proba

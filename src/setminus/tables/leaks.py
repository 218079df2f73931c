"""Columns that predict the label nearly alone: often an outcome that is known only afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import rankdata

from setminus.tables.columns import ColumnSummary
from setminus.tables.encoding import TableEncoder

__all__ = ["LEAK", "single_column_auc"]

LEAK = 0.99
"""The area under the ROC curve of one column from which a warning is given."""

MAX_ROWS, BINS = 50_000, 50
"""Rows that are looked at, and quantile bins of a number."""

MIN_ROWS = 20
"""Rows of a class on either side of the split, below which its AUC is a guess."""

Floats = NDArray[np.float64]


def single_column_auc(table: pa.Table, columns: Sequence[ColumnSummary], y: NDArray[Any]) -> dict[str, float]:
    """How well each column alone predicts the label: the largest AUC of a class against all others.

    The rate of the class in each bin or level is counted on every second row, and the AUC of these rates is taken on
    the others: levels that name rows do not help.

    Parameters
    ----------
    table : pyarrow.Table
    columns : sequence of ColumnSummary
        Those to look at.
    y : ndarray of shape (n,)

    Returns
    -------
    dict of str to float
        By column; columns whose AUC cannot be measured are left out.

    Examples
    --------
    >>> from setminus.tables.columns import describe
    >>> people = pa.table({"paid": ["no", "yes"] * 50})
    >>> single_column_auc(people, describe(people), np.array([0, 1] * 50))
    {'paid': 1.0}
    """
    kinds = {column.name: column.kind for column in columns if column.kept}
    if not kinds:
        return {}
    order = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS]
    rows = table.select([*kinds]).take(order)
    classes, codes = np.unique(y[order], return_inverse=True)
    values = TableEncoder("ordinal", kinds=kinds).fit_transform(rows)
    half = len(order) // 2
    found = {}
    for at, (name, kind) in enumerate(kinds.items()):
        bins = _bins(values[:, at], kind != "category")
        aucs = [_auc(bins, codes == k, half) for k in range(1 if len(classes) == 2 else 0, len(classes))]
        measured = [auc for auc in aucs if auc is not None]
        if measured:
            found[name] = max(measured)
    return found


def _bins(column: Floats, number: bool) -> NDArray[np.intp]:
    """The level of each row, or its bin between quantiles; missing is one more."""
    missing = np.isnan(column)
    if not number or missing.all():
        return np.where(missing, -1, column).astype(np.intp) + 1
    edges = np.unique(np.quantile(column[~missing], np.linspace(0, 1, BINS + 1), method="lower"))
    return np.where(missing, 0, np.searchsorted(edges, column, side="right") + 1).astype(np.intp)


def _auc(bins: NDArray[np.intp], positive: NDArray[np.bool_], half: int) -> float | None:
    """The AUC on the second half of the rate of positive rows in each bin of the first half."""
    hits = np.bincount(bins[:half], positive[:half], minlength=bins.max() + 1)
    sizes = np.bincount(bins[:half], minlength=bins.max() + 1)
    n, n_positive = len(bins) - half, int(positive[half:].sum())
    if min(n_positive, n - n_positive, int(positive[:half].sum())) < MIN_ROWS:
        return None
    # towards the rate of all rows, which a bin without rows has
    score = ((hits + positive[:half].mean()) / (sizes + 1))[bins[half:]]
    ranks = rankdata(score)[positive[half:]].sum()
    return float((ranks - n_positive * (n_positive + 1) / 2) / (n_positive * (n - n_positive)))

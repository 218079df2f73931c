"""Groups of rows from sensitive features, learned in `fit` and applied in `predict`; and columns of X by name.

X is an array, a sparse matrix, or a frame of pandas, polars or arrow.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from setminus.core.checks import check_unmasked
from setminus.core.groups import as_columns, distinct, group_name
from setminus.errors import UserError

__all__ = [
    "Groups",
    "as_rows",
    "check_every_class",
    "column_arrays",
    "drop_columns",
    "group_frequencies",
    "known_columns",
    "take_columns",
]


def as_rows(X: Any) -> Any:
    """X itself where it is a frame; otherwise a 2-D array or sparse matrix whose columns can be taken.

    Examples
    --------
    >>> as_rows([[1, 2]])
    array([[1, 2]])
    """
    if isinstance(nw.from_native(X, pass_through=True, eager_only=True), nw.DataFrame):
        return X
    check_unmasked("X", X)
    # the full classifier checks the values of X
    return check_array(X, accept_sparse=["csr", "csc"], dtype=None, ensure_all_finite=False)


def take_columns(X: Any, columns: Sequence[str | int], *, parameter: str) -> Any:
    """The chosen columns of X, of the same kind as X.

    `columns` holds positions, or names where X is a frame; `parameter` is its name in an error message.

    Examples
    --------
    >>> import numpy as np
    >>> take_columns(np.arange(6).reshape(2, 3), [2], parameter="principal_columns")
    array([[2],
           [5]])
    """
    if isinstance(columns, (str, int)) or len(columns) == 0:
        raise UserError(f"{parameter} is {columns!r}", expected="a list of column names or positions, such as ['sex']")
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    names = list(frame.columns) if isinstance(frame, nw.DataFrame) else None
    width = len(names) if names is not None else X.shape[1]
    positions = [_position(column, names, width, parameter) for column in columns]
    if names is not None:
        return frame[:, positions].to_native()
    return X[:, positions]


def drop_columns(X: Any, columns: Sequence[str | int], *, parameter: str) -> Any:
    """X without the chosen columns, of the same kind as X.

    Examples
    --------
    >>> import numpy as np
    >>> drop_columns(np.arange(6).reshape(2, 3), [-1], parameter="sensitive_columns")
    array([[0, 1],
           [3, 4]])
    """
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    names = list(frame.columns) if isinstance(frame, nw.DataFrame) else None
    width = len(names) if names is not None else X.shape[1]
    dropped = {_position(column, names, width, parameter) for column in columns}
    return take_columns(X, [i for i in range(width) if i not in dropped], parameter=parameter)


def known_columns(model: Any, X: Any) -> Any:
    """The columns of X that a fitted model was fitted on, in its order; all of X where the model has no column names.

    Examples
    --------
    >>> import pandas as pd
    >>> from types import SimpleNamespace
    >>> known_columns(SimpleNamespace(feature_names_in_=["b"]), pd.DataFrame({"a": [1], "b": [2]})).columns.tolist()
    ['b']
    """
    names = list(getattr(model, "feature_names_in_", ()))
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    if not names or not isinstance(frame, nw.DataFrame) or not {*names} <= {*frame.columns} or names == frame.columns:
        return X
    return take_columns(X, names, parameter="feature_names_in_")


def column_arrays(sensitive_features: Any) -> list[NDArray[Any]]:
    """Sensitive features as 1-D arrays that keep their own types; missing values raise.

    Examples
    --------
    >>> [column.tolist() for column in column_arrays(["f", "m"])]
    [['f', 'm']]
    """
    native = nw.from_native(sensitive_features, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(native, nw.DataFrame):
        if len(native.columns) == 0:
            raise UserError("sensitive_features is a frame with no columns", expected="at least one")
        # by position: narwhals would read a column name such as 0 as a row
        return [as_columns(native[:, i].to_numpy())[0] for i in range(len(native.columns))]
    if isinstance(native, nw.Series):
        return as_columns(native.to_numpy())
    return as_columns(sensitive_features)


def _position(column: str | int, names: list[str] | None, width: int, parameter: str) -> int:
    if isinstance(column, str):
        if names is None:
            raise UserError(
                f"{parameter} names the column {column!r}, but X has no column names", do="pass a frame, or positions."
            )
        if column not in names:
            near = difflib.get_close_matches(column, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "pass a column of X."
            raise UserError(f"{parameter} names the column {column!r}, which X does not have", do=hint)
        return names.index(column)
    if not -width <= column < width:
        raise UserError(f"{parameter} names column {column}, but X has {width} columns", expected="positions from 0")
    return int(column) % width


Codes = NDArray[np.intp]


class Groups:
    """The groups of the training rows, and the group of each new row.

    A column with few values has one group for each value. A numeric column is cut at quantiles if it has fractions,
    more than `max_values` values, or more than one value for every ten rows. Several columns are crossed. A cut that
    leaves a bin with fewer than `least` rows of a class is dropped.

    Parameters
    ----------
    n_bins : int, default=5
        Quantile bins of a continuous column.
    max_values : int, default=20
        A numeric column with more distinct values than this is continuous.
    least : int, default=1
        Rows of each class that a bin must have.

    Attributes
    ----------
    labels : list
        The label of each group; a tuple where columns are crossed.
    """

    def __init__(self, n_bins: int = 5, max_values: int = 20, least: int = 1):
        self.n_bins = n_bins
        self.max_values = max_values
        self.least = least

    def learn(self, sensitive_features: Any, y_codes: Codes) -> Codes:
        """Learn the groups and return each row's code."""
        columns = _columns(sensitive_features)
        if len(columns[0]) != len(y_codes):
            raise UserError(
                f"sensitive_features has {len(columns[0])} rows, y has {len(y_codes)}",
                expected="one group for each row",
            )
        self.edges: list[Any] = []
        self.values: list[list[Any]] = []
        for column in columns:
            edges = _cut(column, y_codes, self.n_bins, self.least) if self._continuous(column) else None
            self.edges.append(edges)
            self.values.append(distinct(column)[0].tolist() if edges is None else _bin_names(edges))
        crossed = self._crossed(columns)
        self.present: list[int] = np.unique(crossed).tolist()
        sizes = [len(values) for values in self.values]
        parts = np.array(np.unravel_index(self.present, sizes)).T
        named = [tuple(self.values[k][i] for k, i in enumerate(part)) for part in parts]
        self.labels: list[Any] = [label[0] for label in named] if len(columns) == 1 else named
        return np.searchsorted(self.present, crossed).astype(np.intp)

    def codes(self, sensitive_features: Any) -> Codes:
        """Each row's code; -1 for a group that was not there at fit time."""
        columns = _columns(sensitive_features)
        if len(columns) != len(self.values):
            raise UserError(
                f"sensitive_features has {len(columns)} columns, it had {len(self.values)} at fit time",
                do="pass the same.",
            )
        crossed = self._crossed(columns)
        at = np.minimum(np.searchsorted(self.present, crossed), len(self.present) - 1)
        return np.where(np.asarray(self.present)[at] == crossed, at, -1).astype(np.intp)

    def unseen(self, sensitive_features: Any, codes: Codes) -> str:
        """The groups behind code -1, for a message."""
        rows = np.flatnonzero(codes < 0)
        columns = [column[rows].tolist() for column in _columns(sensitive_features)]
        names = sorted({", ".join(map(str, values)) for values in zip(*columns, strict=True)})
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        return ", ".join(map(repr, names[:5])) + more

    def _continuous(self, column: NDArray[Any]) -> bool:
        if column.dtype.kind not in "fiu":
            return False
        numbers = np.unique(column)
        many = len(numbers) > min(self.max_values, len(column) // 10)
        return len(numbers) > 2 and (many or bool((numbers % 1 != 0).any()))

    def _crossed(self, columns: list[NDArray[Any]]) -> Codes:
        parts = [_codes(index, *spec) for index, spec in enumerate(zip(columns, self.values, self.edges, strict=True))]
        crossed = np.ravel_multi_index([np.maximum(part, 0) for part in parts], [len(v) for v in self.values])
        return np.where(np.min(parts, axis=0) < 0, -1, crossed).astype(np.intp)


def check_every_class(
    codes: Codes, y_codes: Codes, labels: list[Any], classes: NDArray[Any], weights: Any = None, least: int = 1
) -> None:
    """Raise where a group has fewer than `least` rows of a class, not counting rows of weight 0."""
    counts = np.zeros((len(labels), len(classes)), dtype=np.intp)
    np.add.at(counts, (codes, y_codes), 1 if weights is None else (weights > 0).astype(np.intp))
    lacking = np.argwhere(counts < least)
    if len(lacking):
        group, label = lacking[0]
        others = f" (and {len(lacking) - 1} more such cells)" if len(lacking) > 1 else ""
        rows = "rows" if weights is None or (weights > 0).all() else "rows of weight above 0"
        raise UserError(
            f"group {group_name(labels[group])!r} has {counts[group, label]} {rows} of class "
            f"{classes.tolist()[label]!r} among its {counts[group].sum()}{others}",
            do=f"expected at least {least}. Merge it with another group, or drop it.",
        )


def group_frequencies(
    codes: Codes, y_codes: Codes, shape: tuple[int, int], weights: NDArray[np.float64], smoothing: float
) -> NDArray[np.float64]:
    """p(y | group), shrunk towards p(y) by `smoothing` pseudo-rows for each group.

    ``(n[u, y] + smoothing * p(y)) / (n[u] + smoothing)``

    Examples
    --------
    >>> one, two = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    >>> group_frequencies(one, two, (2, 2), np.ones(4), 0.0).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    counts = np.zeros(shape)
    np.add.at(counts, (codes, y_codes), weights)
    prior = counts.sum(axis=0) / counts.sum()
    frequencies: NDArray[np.float64] = (counts + smoothing * prior) / (counts.sum(axis=1, keepdims=True) + smoothing)
    return frequencies


def _columns(sensitive_features: Any) -> list[NDArray[Any]]:
    """The columns as arrays; objects that are numbers become numbers, floats become float64."""
    columns = []
    for column in column_arrays(sensitive_features):
        if column.dtype.kind == "O" and all(type(v) in (int, float) or isinstance(v, np.number) for v in column):
            column = np.array(column.tolist())  # integers stay integers: floats would merge large ones
        columns.append(column.astype(np.float64) if column.dtype.kind == "f" else column)
    return columns


def _cut(column: NDArray[Any], y_codes: Codes, n_bins: int, least: int) -> list[float]:
    """Inner edges of quantile bins, each bin with at least `least` rows of every class."""
    if not np.isfinite(column).all():
        raise UserError(
            f"sensitive_features has {int((~np.isfinite(column)).sum())} infinite numbers in a column that is cut at "
            "quantiles",
            do="drop those rows, or give them a finite number.",
        )
    inner = np.unique(np.quantile(column, np.linspace(0, 1, n_bins + 1)[1:-1]))
    n_classes = int(y_codes.max()) + 1

    def enough(inside: NDArray[np.bool_]) -> bool:
        return bool(np.bincount(y_codes[inside], minlength=n_classes).min() >= least)

    kept: list[float] = []
    for edge in inner.tolist():
        low = kept[-1] if kept else -np.inf
        if enough((column >= low) & (column < edge)):
            kept.append(edge)
    # the bin above the last edge must have every class too
    while kept and not enough(column >= kept[-1]):
        kept.pop()
    return kept


def _bin_names(edges: list[float]) -> list[str]:
    bounds = [f"{edge:g}" for edge in edges]
    if not bounds:
        return ["all"]
    between = [f"{low} to {high}" for low, high in pairwise(bounds)]
    return [f"below {bounds[0]}", *between, f"{bounds[-1]} and above"]


def _codes(index: int, column: NDArray[Any], values: list[Any], edges: list[float] | None) -> Codes:
    for value in column[:1].tolist():  # all values of a column are of one kind, otherwise they could not be sorted
        found, fitted = _kind(value), "numbers" if edges is not None else _kind(values[0])
        if found != fitted:
            # not converted: '01', '1.0' and 'True' may or may not mean 1
            known = "" if edges is not None else f", such as {values[0]!r}"
            raise UserError(
                f"sensitive_features column {index} holds {found}, such as {value!r}, where {fitted} were fitted"
                f"{known}",
                do=f"convert the column to {fitted}, as at fit time.",
            )
    if edges is not None:
        return np.searchsorted(edges, column, side="right").astype(np.intp)
    where = {value: code for code, value in enumerate(values)}
    present, inverse = distinct(column)
    return np.array([where.get(value, -1) for value in present.tolist()], dtype=np.intp)[inverse]


def _kind(value: Any) -> str:
    """The kind of a group's value: values of different kinds are never equal; 1, 1.0 and True are."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, Number | np.bool_):
        return "numbers"
    return "dates" if isinstance(value, date) else f"values of type {type(value).__name__}"

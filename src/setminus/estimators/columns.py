"""Columns of whatever X is: arrays, sparse matrices, and frames of pandas, polars and arrow."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import narwhals as nw
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from setminus.core.checks import check_unmasked
from setminus.core.groups import as_columns
from setminus.errors import UserError

__all__ = ["as_rows", "column_arrays", "drop_columns", "known_columns", "take_columns"]


def as_rows(X: Any) -> Any:
    """X as it came where it is a frame; otherwise a 2-D array or sparse matrix whose columns can be taken.

    Examples
    --------
    >>> as_rows([[1, 2]])
    array([[1, 2]])
    """
    if isinstance(nw.from_native(X, pass_through=True, eager_only=True), nw.DataFrame):
        return X
    check_unmasked("X", X)
    # what values X may hold is the full classifier's business
    return check_array(X, accept_sparse=["csr", "csc"], dtype=None, ensure_all_finite=False)


def take_columns(X: Any, columns: Sequence[str | int], *, parameter: str) -> Any:
    """The chosen columns of X, of the same kind as X.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n, d)
    columns : sequence of str or int
        Names, where X is a frame; positions otherwise and there too.
    parameter : str
        What to call `columns` in an error.

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
    """The columns of X that a fitted model knows by name, in its order; X as it came where it cannot be told.

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
        # by position: a column may be called 0, which would be a row
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
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{parameter} names the column {column!r}, which X does not have.{hint}")
        return names.index(column)
    if not -width <= column < width:
        raise ValueError(f"{parameter} asks for column {column}, but X has {width} columns.")
    return int(column) % width

"""The values of a column in one of the forms that models take: numbers, days, flags, text."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from setminus.tables.errors import TableError, check_unique
from setminus.tables.sniffing import MISSING

__all__ = ["FLAGS", "from_frame", "is_text", "plain", "to_days", "to_flags", "to_numbers", "to_text"]

FLAGS = {"yes": 1, "no": 0, "y": 1, "n": 0, "true": 1, "false": 0, "t": 1, "f": 0, "1": 1, "0": 0}
"""Words for yes and no, in small letters."""

Floats = NDArray[np.float64]


def from_frame(X: Any) -> pa.Table:
    """A frame of pandas, polars or arrow as an arrow table.

    Examples
    --------
    >>> from_frame(pa.table({"age": [39]})).column_names
    ['age']
    """
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        names = [str(name) for name in frame.columns] if isinstance(frame, nw.DataFrame) else []
        check_unique(names, "X")
    except DuplicateError as error:
        raise TableError("X has two columns of the same name", "Give each column a name of its own.") from error
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(f"X is {type(X).__name__}: expected a frame of pandas, polars or pyarrow.")
    if isinstance(X, pa.Table):
        return X
    columns = []
    # by position: names may be numbers, and the index of pandas is no column
    for position, name in enumerate(names):
        try:
            columns.append(frame[:, position].to_arrow())
        except (pa.ArrowException, TypeError) as error:
            raise TableError(
                f"column {name!r} mixes values of several types", "Give it one type, such as text or numbers."
            ) from error
    return pa.table(columns, names=names)


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds words, or codes that stand for words."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values themselves where codes stand for them, with NaN as missing.

    Examples
    --------
    >>> plain(pa.chunked_array([[1.5, float("nan")]])).to_pylist()
    [1.5, None]
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # pyarrow computes with neither
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return pc.if_else(pc.is_nan(column), None, column) if pa.types.is_floating(column.type) else column


def to_numbers(column: pa.ChunkedArray, name: str) -> Floats:
    """A column as float64; NaN for what is missing or not finite.

    Examples
    --------
    >>> to_numbers(pa.chunked_array([["39", "?", None]]), "age").tolist()
    [39.0, nan, nan]
    """
    column = plain(column)
    if is_text(column.type):
        column = _present(column)
    values = _cast(column, pa.float64(), name, "a number").to_numpy()
    return np.where(np.isfinite(values), values, np.nan)


def to_days(column: pa.ChunkedArray, name: str) -> Floats:
    """Dates as days since 1970, times of day as parts of a day; NaN for what is missing.

    Examples
    --------
    >>> to_days(pa.chunked_array([["1970-01-03", None]]), "born").tolist()
    [2.0, nan]
    """
    column = plain(column)
    if is_text(column.type):
        column = _present(column)
    kind = pa.time64("us") if pa.types.is_time(column.type) else pa.timestamp("us")
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        kind = pa.timestamp("us", tz=column.type.tz)
    moments = _cast(column, kind, name, "a date")
    microseconds: Floats = moments.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy()
    return microseconds / 86_400e6


def to_flags(column: pa.ChunkedArray, name: str) -> Floats:
    """Yes as 1, no as 0; NaN for what is missing or neither.

    Examples
    --------
    >>> to_flags(pa.chunked_array([["Yes", "no", "perhaps"]]), "member").tolist()
    [1.0, 0.0, nan]
    """
    words = pc.utf8_lower(to_text(column))
    at = pc.index_in(words, value_set=pa.array(list(FLAGS)))
    flags = np.array([*FLAGS.values(), np.nan], dtype=np.float64)
    codes: NDArray[np.int32] = pc.fill_null(at, len(FLAGS)).to_numpy()
    return flags[codes]


def to_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as words; a whole number is written without a point, whatever type it came in.

    Examples
    --------
    >>> to_text(pa.chunked_array([[1.0, None]])).to_pylist()
    ['1', None]
    """
    column = plain(column)
    if pa.types.is_floating(column.type):
        values = column.drop_null().to_numpy()
        if (np.isfinite(values) & (values % 1 == 0) & (abs(values) < 2**53)).all():
            column = column.cast(pa.int64())
    try:
        return column.cast(pa.string())
    except pa.ArrowNotImplementedError as error:
        raise TableError(
            f"a column of {column.type} came where words were expected", "Name a column of words or numbers."
        ) from error


def _present(column: pa.ChunkedArray) -> pa.ChunkedArray:
    words = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pc.is_in(words, value_set=pa.array(MISSING)), None, words)


def _cast(column: pa.ChunkedArray, kind: pa.DataType, name: str, what: str) -> pa.ChunkedArray:
    try:
        # not safe only among numbers: a large integer may lose its last digits
        return column.cast(kind, safe=is_text(column.type))
    except pa.ArrowException as error:
        raise TableError(
            f"column {name!r} holds something that is not {what}: {str(error).splitlines()[0]}",
            f"It held {what} in every row when the model was fitted; mend or drop those rows.",
        ) from error

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

__all__ = [
    "FLAGS",
    "coded_text",
    "distinct_words",
    "familiar",
    "familiar_type",
    "from_frame",
    "is_text",
    "plain",
    "to_days",
    "to_flags",
    "to_numbers",
    "to_text",
]

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
        return familiar(X)
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


def familiar_type(kind: pa.DataType) -> pa.DataType:
    """The type to take instead of one that pyarrow cannot compute with: strings for the views that polars writes.

    Examples
    --------
    >>> str(familiar_type(pa.list_(pa.string_view())))
    'list<item: large_string>'
    """
    if pa.types.is_string_view(kind):
        # large: a batch of polars may hold more than the 2 GB of a string
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, familiar_type(kind.value_type), kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        return familiar_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(familiar_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(familiar_type(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(familiar_type(kind.value_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(familiar_type(kind.value_type)), kind.list_size)
    return kind


def familiar(table: pa.Table) -> pa.Table:
    """A table with the `familiar_type` of each column.

    Examples
    --------
    >>> familiar(pa.table({"x": pa.array(["a"], pa.string_view())})).schema.types
    [DataType(large_string)]
    """
    for index, field in enumerate(table.schema):
        kind = familiar_type(field.type)
        if kind == field.type:
            continue
        column = table.column(index)
        if pa.types.is_run_end_encoded(field.type):
            column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], field.type.value_type)
        table = table.set_column(index, field.with_type(kind), column.cast(kind))
    return table


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds words, or codes that stand for words."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values themselves where codes stand for them, text without spaces around it, with NaN as missing.

    Examples
    --------
    >>> plain(pa.chunked_array([[1.5, float("nan")]])).to_pylist()
    [1.5, None]
    >>> plain(pa.chunked_array([["clerk ", " cook"]])).to_pylist()
    ['clerk', 'cook']
    """
    column = familiar(pa.table([column], names=[""])).column(0)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = _computable(column)
    if is_text(column.type):
        return pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_nan(column), None, column) if pa.types.is_floating(column.type) else column


def distinct_words(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, NDArray[np.int64]]:
    """The values of a column as words, each once or a few times, and where each row's word stands among them.

    A large column has few words: what is looked up for each word, not for each row, costs little.

    Returns
    -------
    words : pyarrow.ChunkedArray of str
        As `to_text` gives them. The last one is missing.
    places : ndarray of int of shape (n,)

    Examples
    --------
    >>> words, places = distinct_words(pa.chunked_array([["f", "m ", None, "f"]]))
    >>> words.to_pylist(), places.tolist()
    (['f', 'm', None], [0, 1, 2, 0])
    """
    try:
        column = familiar(pa.table([column], names=[""])).column(0)
        coded = column if pa.types.is_dictionary(column.type) else _computable(column).dictionary_encode()
    except pa.ArrowNotImplementedError as error:
        raise _no_words(column.type) from error
    coded = coded.unify_dictionaries().combine_chunks()
    words = to_text(pa.chunked_array([coded.dictionary])).combine_chunks()
    places = pc.fill_null(coded.indices.cast(pa.int64()), len(words)).to_numpy()
    return pa.chunked_array([words, pa.nulls(1, pa.string())]), places


def coded_text(table: pa.Table) -> pa.Table:
    """The same table with text as codes of its words, without spaces around them: found once for all who ask.

    Examples
    --------
    >>> coded_text(pa.table({"sex": ["f", "f "]})).column("sex").chunk(0).dictionary.to_pylist()
    ['f']
    """
    for position, field in enumerate(table.schema):
        if is_text(field.type):
            words, places = distinct_words(table.column(position))
            # coded again: two words may be the same without their spaces
            again = words.combine_chunks().dictionary_encode()
            codes = pa.DictionaryArray.from_arrays(again.indices.take(pa.array(places)), again.dictionary)
            table = table.set_column(position, field.name, codes)
    return table


def to_numbers(column: pa.ChunkedArray, name: str) -> Floats:
    """A column as float64, a duration as days; NaN for what is missing or not finite.

    Examples
    --------
    >>> to_numbers(pa.chunked_array([["39", "?", None]]), "age").tolist()
    [39.0, nan, nan]
    """
    column = plain(column)
    if is_text(column.type):
        column = _present(column)
    if pa.types.is_duration(column.type):
        return _in_days(column, pa.duration("us"), name)
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
    elif not (pa.types.is_temporal(column.type) or pa.types.is_null(column.type)):
        # arrow would take any number for microseconds since 1970
        raise TableError(
            f"column {name!r} holds {column.type}, not dates",
            "It held dates when the model was fitted: write dates, or text such as 2020-01-31.",
        )
    kind = pa.time64("us") if pa.types.is_time(column.type) else pa.timestamp("us")
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        kind = pa.timestamp("us", tz=column.type.tz)
    return _in_days(column, kind, name)


def to_flags(column: pa.ChunkedArray, name: str) -> Floats:
    """Yes as 1, no as 0; NaN for what is missing or neither.

    Examples
    --------
    >>> to_flags(pa.chunked_array([["Yes", "no", "perhaps"]]), "member").tolist()
    [1.0, 0.0, nan]
    """
    words, places = distinct_words(column)
    at = pc.index_in(pc.utf8_lower(words), value_set=pa.array(list(FLAGS)))
    flags = np.array([*FLAGS.values(), np.nan], dtype=np.float64)
    of_words: Floats = flags[pc.fill_null(at, len(FLAGS)).to_numpy()]
    return of_words[places]


def to_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as words without spaces around them; a whole number has no point, whatever type it came in.

    Examples
    --------
    >>> to_text(pa.chunked_array([[1.0, None]])).to_pylist()
    ['1', None]
    """
    column = plain(column)
    try:
        words = column.cast(pa.string())
    except pa.ArrowException as error:
        raise _no_words(column.type) from error
    if not pa.types.is_floating(column.type):
        return words
    # value by value: a block of whole numbers must give the words that a block with fractions gives
    column = column.cast(pa.float64())
    whole = pc.and_(pc.equal(column, pc.trunc(column)), pc.less(pc.abs(column), 2.0**53))
    return pc.if_else(whole, pc.if_else(whole, column, None).cast(pa.int64()).cast(pa.string()), words)


def _no_words(kind: pa.DataType) -> TableError:
    return TableError(f"a column of {kind} came where words were expected", "Name a column of words or numbers.")


def _present(column: pa.ChunkedArray) -> pa.ChunkedArray:
    words = column.cast(pa.string())
    return pc.if_else(pc.is_in(words, value_set=pa.array(MISSING)), None, words)


def _computable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # pyarrow does not compute with it
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _in_days(column: pa.ChunkedArray, microseconds: pa.DataType, name: str) -> Floats:
    moments = _cast(column, microseconds, name, "a date")
    counted: Floats = moments.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy()
    return counted / 86_400e6


def _cast(column: pa.ChunkedArray, kind: pa.DataType, name: str, what: str) -> pa.ChunkedArray:
    try:
        # not safe only among numbers: a large integer may lose its last digits
        return column.cast(kind, safe=is_text(column.type))
    except pa.ArrowException as error:
        raise TableError(
            f"column {name!r} holds something that is not {what}: {str(error).splitlines()[0]}",
            f"It held {what} in every row when the model was fitted; mend or drop those rows.",
        ) from error

"""The columns of a table: their names, their values as numbers, days, flags or words, and the kind of each."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from setminus.errors import UserError

__all__ = [
    "FLAGS",
    "KEPT",
    "MISSING",
    "ColumnKind",
    "ColumnSummary",
    "check_names",
    "check_unique",
    "coded_text",
    "describe",
    "distinct_words",
    "familiar",
    "familiar_type",
    "from_frame",
    "is_text",
    "plain",
    "shown",
    "to_days",
    "to_flags",
    "to_numbers",
    "to_text",
]

MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "null", "NULL", "nan", "NaN")
"""Text that stands for a missing value."""

FLAGS = {"yes": 1, "no": 0, "y": 1, "n": 0, "true": 1, "false": 0, "t": 1, "f": 0, "1": 1, "0": 0}
"""Words for yes and no, in lower case."""

ColumnKind = Literal["number", "category", "yes/no", "date", "identifier", "constant", "other"]

KEPT: tuple[ColumnKind, ...] = ("number", "category", "yes/no", "date")
"""Kinds that models are given; columns of the other kinds are left out."""

MAX_LEVELS = 200
"""Levels of a category at most: gradient boosting distinguishes 255, and more are seldom a category."""

FEW_LEVELS = 20
"""Levels that a category may have however few rows there are."""

IDENTIFIER = re.compile(
    r"(?i:(?:^|[_\s.-])(?:id|uuid|guid|key|no|nr|number)$|^(?:unnamed: \d+|index|rownames)$)|(?<=[a-z])I[Dd]$"
)
"""How a column is called whose whole numbers, all different, name rows."""

MUCH_MISSING = 0.4
MAX_SHOWN = 60
"""Characters of a name or a value that an error repeats."""

Floats = NDArray[np.float64]


def shown(text: str) -> str:
    r"""A name or a value in quotes on one line, cut where it is long.

    Examples
    --------
    >>> shown("two\nlines"), len(shown("x" * 10_000))
    ("'two\\nlines'", 65)
    """
    return repr(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}...")


def check_names(wanted: Iterable[str], present: Sequence[str], where: str, what: str = "column") -> None:
    """Raise where a wanted name is not among those present, and suggest the nearest one.

    Examples
    --------
    >>> check_names(["sexx"], ["age", "sex"], "people.csv")
    Traceback (most recent call last):
    setminus.errors.UserError: people.csv has no column 'sexx': did you mean 'sex'?
    """
    known = set(present)
    for name in wanted:
        if name in known:
            continue
        folded = {other.casefold().strip(): other for other in present}
        near = difflib.get_close_matches(name.casefold().strip(), folded, n=1)
        more = f" and {len(present) - 12} more" if len(present) > 12 else ""
        listed = ", ".join(map(shown, present[:12])) + more
        advice = f"did you mean {shown(folded[near[0]])}?" if near else f"it has {listed}."
        if "," in name and known.issuperset(part.strip() for part in name.split(",")):
            advice = "these are several columns: repeat the option for each."
        raise UserError(f"{where} has no {what} {shown(name)}", do=advice)


def check_unique(names: Sequence[str], where: str, otherwise: str = "") -> None:
    """Raise where two columns have the same name.

    Examples
    --------
    >>> check_unique(["a", "b", "a"], "people.csv")
    Traceback (most recent call last):
    setminus.errors.UserError: people.csv has 2 columns called 'a': give each column a different name.
    """
    name, count = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise UserError(
            f"{where} has {count} columns called {shown(name)}", do=f"give each column a different name{otherwise}."
        )


def from_frame(X: Any) -> pa.Table:
    """Convert a frame of pandas, polars or arrow to an arrow table.

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
        raise UserError("X has two columns of the same name", do="give each column a different name.") from error
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
            raise UserError(
                f"column {name!r} mixes values of several types", do="give it one type, such as text or numbers."
            ) from error
    return pa.table(columns, names=names)


def familiar_type(kind: pa.DataType) -> pa.DataType:
    """The type to convert to where pyarrow cannot compute with a type, such as the string views of polars.

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
    """Convert each column to its `familiar_type`.

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
    """Whether a type holds text, or codes that stand for text."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a column: codes replaced by their words, text trimmed, NaN as missing.

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
    """The distinct values of a column as words, and the position of each row's word among them.

    A large column has few words: a lookup for each word is cheaper than one for each row.

    Returns
    -------
    words : pyarrow.ChunkedArray of str
        As `to_text` gives them, perhaps with repetitions. The last one is missing.
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
    """Dictionary-encode the text of a table, trimmed, so that its words are looked up once for all callers.

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
    """A column as float64, a duration in days; NaN where a value is missing or not finite.

    Examples
    --------
    >>> to_numbers(pa.chunked_array([["39", "?", None]]), "age").tolist()
    [39.0, nan, nan]
    """
    column = _present(plain(column))
    if pa.types.is_duration(column.type):
        return _in_days(column, pa.duration("us"), name)
    values = _cast(column, pa.float64(), name, "a number").to_numpy()
    return np.where(np.isfinite(values), values, np.nan)


def to_days(column: pa.ChunkedArray, name: str) -> Floats:
    """Dates as days since 1970, times of day as fractions of a day; NaN where a value is missing.

    Examples
    --------
    >>> to_days(pa.chunked_array([["1970-01-03", None]]), "born").tolist()
    [2.0, nan]
    """
    column = _present(plain(column))
    if not (is_text(column.type) or pa.types.is_temporal(column.type) or pa.types.is_null(column.type)):
        # arrow would take any number for microseconds since 1970
        raise UserError(
            f"column {name!r} holds {column.type}, not dates",
            do="it held dates when the model was fitted: write dates, or text such as 2020-01-31.",
        )
    kind = pa.time64("us") if pa.types.is_time(column.type) else pa.timestamp("us")
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        kind = pa.timestamp("us", tz=column.type.tz)
    return _in_days(column, kind, name)


def to_flags(column: pa.ChunkedArray, name: str) -> Floats:
    """Yes as 1, no as 0; NaN where a value is missing or neither.

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
    """A column as trimmed words; a whole number is written without a point, whatever its type.

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


def _no_words(kind: pa.DataType) -> UserError:
    return UserError(f"a column of {kind} was given where words were expected", do="name a column of words or numbers.")


def _present(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text with null for what stands for a missing value; other columns as they are."""
    if not is_text(column.type):
        return column
    words = column.cast(pa.string())
    return pc.if_else(pc.is_in(words, value_set=pa.array(MISSING)), None, words)


def _computable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # pyarrow does not compute with half floats
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
        raise UserError(
            f"column {name!r} holds something that is not {what}: {str(error).splitlines()[0]}",
            do=f"it held {what} in every row when the model was fitted; mend or drop those rows.",
        ) from error


@dataclass(frozen=True)
class ColumnSummary:
    """The kind of one column, and what is done with it.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "yes/no", "date", "identifier", "constant", "other"}
    missing : float
        Fraction of rows without a value.
    distinct : int
        Number of distinct values, without the missing one.
    use : str
        How models are given the column, in words.
    warning : str or None
        A problem that the user should look at.
    """

    name: str
    kind: ColumnKind
    missing: float
    distinct: int
    use: str
    warning: str | None = None

    @property
    def kept(self) -> bool:
        """Whether models are given this column."""
        return self.kind in KEPT


def describe(table: pa.Table) -> list[ColumnSummary]:
    """Determine the kind of each column of a table.

    Numbers, dates and truth values are recognised by their type. Other columns are categories, unless they identify
    rows. Identifiers are:

    - text with more than 200 distinct values, or with more than 20 and fewer than two rows for each on average;
    - whole numbers that count the rows, of which some may be missing;
    - whole numbers that are all different, in a column called id, customer_id or the like.

    Identifiers, columns with a single value and columns of a type that no model takes are left out.

    Returns
    -------
    list of ColumnSummary
        In the order of the columns.

    Examples
    --------
    >>> people = pa.table({"age": [39, None, 28], "sex": ["m", "f", "f"], "from": ["earth"] * 3})
    >>> for column in describe(people):
    ...     print(column.name, "|", column.kind, "|", column.use)
    age | number | as a number; missing is marked
    sex | category | one of 2 levels
    from | constant | left out: it has one value only
    """
    return [_summary(name, table.column(position)) for position, name in enumerate(table.column_names)]


def _summary(name: str, column: pa.ChunkedArray) -> ColumnSummary:
    if _nested(column.type):
        share = column.null_count / max(1, len(column))
        return ColumnSummary(name, "other", share, 0, f"left out: no model takes {column.type}")
    values = plain(column)
    missing = values.null_count
    share = missing / max(1, len(values))
    distinct = pc.count_distinct(values, mode="only_valid").as_py() if missing < len(values) else 0
    kind = _kind(values, distinct, missing, name)
    warning = f"{share:.0%} of its values are missing" if share > MUCH_MISSING and kind in KEPT else None
    return ColumnSummary(name, kind, share, distinct, _use(kind, distinct, missing), warning)


def _kind(values: pa.ChunkedArray, distinct: int, missing: int, name: str = "") -> ColumnKind:
    kind, present = values.type, len(values) - missing
    # one value beside missing ones still distinguishes two sorts of rows
    if distinct == 0 or (distinct == 1 and missing == 0):
        return "constant"
    if distinct == 2 and (is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind)):
        words = {word.lower() for word in pc.unique(to_text(values)).to_pylist() if word is not None}
        if words <= set(FLAGS) and {FLAGS[word] for word in words} == {0, 1}:
            return "yes/no"
    if is_text(kind) or pa.types.is_boolean(kind):
        names_rows = distinct > MAX_LEVELS or (distinct > FEW_LEVELS and 2 * distinct > present)
        return "identifier" if names_rows else "category"
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        return "date"
    if pa.types.is_integer(kind) and distinct == present > FEW_LEVELS:
        ends = pc.min_max(values).as_py()
        # with gaps, since rows that count up may have been dropped, held out, or drawn from ten times as many; of
        # measured values in so narrow a range, twenty pairs or more would be equal
        widest = max(1.5 * present, min(10 * present, present**2 / 40))
        if ends["max"] - ends["min"] < widest or IDENTIFIER.search(name):
            return "identifier"
    return "number"


def _nested(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _nested(kind.value_type)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    simple = pa.types.is_boolean(kind) or pa.types.is_null(kind) or is_text(kind)
    moment = pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind)
    return not (number or simple or moment or pa.types.is_duration(kind))


def _use(kind: ColumnKind, distinct: int, missing: int) -> str:
    if kind == "identifier":
        return f"left out: its {distinct} values name rows rather than describe them"
    if kind == "constant":
        return "left out: it has no values" if distinct == 0 else "left out: it has one value only"
    uses = {"number": "as a number", "date": "as a number of days", "yes/no": "as 1 and 0"}
    use = uses.get(kind, f"one of {distinct} levels")
    if not missing:
        return use
    return use + (", missing is one more" if kind == "category" else "; missing is marked")

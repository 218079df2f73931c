"""What a second table holds that the first did not: values that a model of the first can make nothing of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setminus.tables.encoding import NUMBERS
from setminus.tables.values import to_text

__all__ = ["strange_shares"]


def strange_shares(first: pa.Table, second: pa.Table, columns: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Of each column the share of the second table's rows with a value that the first gives no idea of.

    That is a level that it lacks, a number further from its range than the range is wide, or no value, as far as more
    rows have none than in the first.

    Parameters
    ----------
    first, second : pyarrow.Table
    columns : sequence of dict
        ``TableEncoder.columns_`` of an encoder fitted on the first.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> from setminus.tables.encoding import TableEncoder
    >>> old, new = pa.table({"age": [20, 30, 40], "sex": list("fmf")}), pa.table({"age": [25, 35], "sex": ["f", "x"]})
    >>> strange_shares(old, new, TableEncoder().fit(old).columns_)
    {'age': 0.0, 'sex': 0.5}
    """
    return {
        column["name"]: _strange(column, first.column(column["name"]), second.column(column["name"]))
        for column in columns
    }


def _strange(column: dict[str, Any], first: pa.ChunkedArray, second: pa.ChunkedArray) -> float:
    if column["kind"] == "category":
        known = pa.array(column["levels"], pa.string())
        before, after = to_text(first), to_text(second)
        missing = [words.null_count / len(words) for words in (before, after)]
        strangers = pc.and_(pc.is_valid(after), pc.invert(pc.is_in(after, value_set=known)))
        outside = float(pc.mean(strangers).as_py())
    else:
        numbers = [NUMBERS[column["kind"]](values, column["name"]) for values in (first, second)]
        missing = [float(np.isnan(some).mean()) for some in numbers]
        low, high = np.nanmin(numbers[0]), np.nanmax(numbers[0])
        width = high - low
        outside = float(np.mean((numbers[1] < low - width) | (numbers[1] > high + width)))
    return float(outside + max(missing[1] - missing[0], 0.0))

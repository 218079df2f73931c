"""A table with labels and one to adapt to, as numbers of the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setminus.jobs.rows import Roles, read_rows
from setminus.tables.columns import describe
from setminus.tables.encoding import TableEncoder
from setminus.tables.errors import TableError, check_names
from setminus.tables.reading import Table
from setminus.tables.values import to_text

__all__ = ["Domains", "read_domains"]

Floats = NDArray[np.float64]

LEAST_ROWS = 10
"""Source rows of each class, and target rows, below which all that could be said is a guess."""


@dataclass(frozen=True)
class Domains:
    """Both tables as numbers, and labels of the target, which no model is given.

    Attributes
    ----------
    encoder : TableEncoder
        From a frame to these numbers.
    source, target : ndarray of shape (n, d) and (m, d)
    classes : ndarray of str of shape (C,)
    codes : ndarray of int of shape (n,)
        Places of the source's labels among `classes`.
    labelled, truth : ndarray of int
        The target's rows with a label that the source has, and its place among `classes`.
    about : dict
        What was read, for a record.
    """

    encoder: TableEncoder
    source: Floats
    target: Floats
    classes: NDArray[np.str_]
    codes: NDArray[np.int64]
    labelled: NDArray[np.int64]
    truth: NDArray[np.int64]
    about: dict[str, Any]


def read_domains(source: Table, target: Table, label: str) -> Domains:
    """Read the source's labels, and the columns that both tables have to offer a model.

    Parameters
    ----------
    source, target : Table
        The second may have the label, too, in some rows or in all.
    label : str

    Returns
    -------
    Domains

    Raises
    ------
    TableError
        Where a column is missing, the label has one value or too many, or there are too few rows.
    """
    rows = read_rows(source, Roles(label, ()))
    classes, codes = np.unique(rows.y, return_inverse=True)
    counts = np.bincount(codes)
    if counts.min() < LEAST_ROWS:
        raise TableError(
            f"{source.path.name} has {counts.min()} rows with the label {str(classes[counts.argmin()])!r}",
            f"At least {LEAST_ROWS} are needed: leave that class out, or merge it with another.",
        )
    columns = describe(rows.X)
    kinds = {column.name: column.kind for column in columns if column.kept}
    check_names(kinds, target.names, target.path.name)
    frame = target.read()
    if len(frame) < LEAST_ROWS:
        raise TableError(f"{target.path.name} has {len(frame)} rows", f"At least {LEAST_ROWS} are needed to adapt to.")
    words = to_text(frame.column(label)).to_pylist() if label in frame.column_names else []
    places = {str(word): code for code, word in enumerate(classes)}
    labelled = [row for row, word in enumerate(words) if word in places]
    encoder = TableEncoder("onehot", kinds=kinds).fit(_features(rows.X, kinds))
    return Domains(
        encoder,
        encoder.transform(rows.X),
        encoder.transform(frame),
        classes,
        codes.astype(np.int64),
        np.array(labelled, dtype=np.int64),
        np.array([places[words[row]] for row in labelled], dtype=np.int64),
        about={
            "data": f"{source.path.name} to {target.path.name}",
            "label": label,
            "classes": classes.tolist(),
            "rows": {"source": len(rows), "target": len(frame), "labelled": len(labelled)},
            "features": list(kinds),
            "columns": [asdict(column) for column in columns],
            "notes": [*rows.notes, *target.notes, *_strangers(words, places, target.path.name)],
        },
    )


def _features(table: pa.Table, kinds: dict[str, Any]) -> pa.Table:
    if not kinds:
        raise TableError("no column is left to learn from", "Every one is constant, or names rows.")
    return table.select(list(kinds))


def _strangers(words: Sequence[str | None], known: dict[str, int], name: str) -> list[str]:
    """A note on labels that no model of the source can give."""
    rows = [word for word in words if word is not None and word not in known]
    if not rows:
        return []
    shown = sorted({*rows})
    told = ", ".join(map(repr, shown[:3])) + (" and others" if len(shown) > 3 else "")
    return [
        f"{len(rows):,} rows of {name} are labelled {told}, which the source lacks: their classes cannot be predicted"
    ]

"""A table with labels and one to adapt to, as numbers of the same columns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setminus.commands.rows import Roles, read_rows
from setminus.errors import UserError
from setminus.tables.columns import check_names, describe, to_text
from setminus.tables.drift import unseen_fraction
from setminus.tables.encoding import TableEncoder
from setminus.tables.reading import Table

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
        The target's rows with a label, and its place among `classes`; -1 for one that the source lacks.
    strange : dict of str to float
        See `unseen_fraction`.
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
    strange: dict[str, float]
    about: dict[str, Any]


def read_domains(source: Table, target: Table, roles: Roles) -> Domains:
    """Read the source's labels, and the columns that both tables have to offer a model.

    Parameters
    ----------
    source, target : Table
        The second may have the label, too, in some rows or in all.
    roles : Roles

    Returns
    -------
    Domains

    Raises
    ------
    UserError
        Where a column is missing, the label has one value or too many, or there are too few rows.
    """
    rows = read_rows(source, roles)
    classes, codes = np.unique([roles.class_names.get(str(label), str(label)) for label in rows.y], return_inverse=True)
    counts = np.bincount(codes)
    if counts.min() < LEAST_ROWS:
        raise UserError(
            f"{source.path.name} has {counts.min()} rows with the label {str(classes[counts.argmin()])!r}",
            do=f"at least {LEAST_ROWS} are needed: leave that class out, or merge it with another.",
        )
    columns = describe(rows.X)
    kinds = {column.name: column.kind for column in columns if column.kept}
    if not kinds:
        raise UserError("no column is left to learn from", do="every one is constant, or names rows.")
    check_names(kinds, target.names, target.path.name)
    target, frame = target.like(rows.decimal).load()
    if len(frame) < LEAST_ROWS:
        raise UserError(f"{target.path.name} has {len(frame)} rows", do=f"at least {LEAST_ROWS} are needed.")
    labelled, truth, notes = _labels(frame, roles, classes, target.path.name)
    encoder = TableEncoder("onehot", kinds=kinds).fit(rows.X.select(list(kinds)))
    return Domains(
        encoder,
        encoder.transform(rows.X),
        encoder.transform(frame),
        classes,
        codes.astype(np.int64),
        labelled,
        truth,
        unseen_fraction(frame, encoder.columns_),
        about={
            "data": f"{source.path.name} to {target.path.name}",
            "label": roles.question,
            "classes": classes.tolist(),
            "rows": {"source": len(rows), "target": len(frame), "labelled": len(labelled)},
            "features": list(kinds),
            "columns": [asdict(column) for column in columns],
            "notes": [*rows.notes, *target.notes, *notes],
            "decimal": None if rows.decimal is None else rows.decimal._asdict(),
        },
    )


def _labels(
    frame: pa.Table, roles: Roles, classes: NDArray[np.str_], name: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """The rows with a label, their codes, and a note on labels that no model of the source can give."""
    words = to_text(frame.column(roles.label)).to_pylist() if roles.label in frame.column_names else []
    labelled = np.array([row for row, word in enumerate(words) if word is not None], dtype=np.int64)
    named = [words[row] for row in labelled]
    if roles.positive is not None:
        named = [word if word == roles.positive else f"not {roles.positive}" for word in named]
    places = {str(word): code for code, word in enumerate(classes)}
    truth = np.array([places.get(word, -1) for word in named], dtype=np.int64)
    strangers = sorted({word for word in named if word not in places})
    if not strangers:
        return labelled, truth, []
    if (truth < 0).all():
        check_names(strangers, list(places), "the source", what="label")
    told = ", ".join(map(repr, strangers[:3])) + (" and others" if len(strangers) > 3 else "")
    note = f"{(truth < 0).sum():,} rows of {name} are labelled {told}, which the source lacks: they count as wrong"
    return labelled, truth, [note]

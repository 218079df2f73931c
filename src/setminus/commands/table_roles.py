"""Which column of a user's table is what: the label, the groups to ignore, the features; and two tables to adapt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from setminus.core.groups import group_name
from setminus.errors import UserError
from setminus.estimators.groups import Groups
from setminus.tables.columns import ColumnSummary, check_names, coded_text, describe, is_text, plain, to_text
from setminus.tables.drift import unseen_fraction
from setminus.tables.encoding import TableEncoder
from setminus.tables.numerals import DecimalSign
from setminus.tables.reading import Table

__all__ = ["Domains", "Roles", "Rows", "group_names", "read_domains", "read_rows", "split_rows"]

MIN_ROWS = 10
"""Rows of each group and label, or of each class of a source table, below which a rate is a guess."""

MAX_CLASSES = 20
MISSING_GROUP = "(missing)"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Roles:
    """Which column is what.

    Parameters
    ----------
    label : str
        The column to predict.
    ignore : sequence of str
        The columns that must not matter.
    positive : str, optional
        The value of the label that counts as 1; all others are 0.
    """

    label: str
    ignore: Sequence[str]
    positive: str | None = None

    @property
    def question(self) -> str:
        """What is predicted, in words."""
        return self.label if self.positive is None else f"{self.label} = {self.positive}"

    @property
    def class_names(self) -> dict[str, str]:
        """What 0 and 1 stand for, where one value counts against all others."""
        return {} if self.positive is None else {"0": f"not {self.positive}", "1": self.positive}


@dataclass(frozen=True)
class Rows:
    """Rows with their roles.

    Attributes
    ----------
    X : pyarrow.Table
        Every column but the label.
    y : ndarray of str, or of 0 and 1
    groups : pyarrow.Table
        The ignored columns; words are words, a missing one is a group of its own.
    notes : tuple of str
        What was dropped or guessed.
    decimal : DecimalSign or None
        That of the file, where it is text.
    """

    X: pa.Table
    y: NDArray[Any]
    groups: pa.Table
    notes: tuple[str, ...] = field(default=())
    decimal: DecimalSign | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: NDArray[Any]) -> Rows:
        """Some of the rows."""
        return Rows(self.X.take(rows), self.y[rows], self.groups.take(rows), self.notes, self.decimal)

    def features(self, roles: Roles) -> list[ColumnSummary]:
        """What each column that a model may learn from is, and what is done with it."""
        # once each: pyarrow drops a column by its place, and of a name that comes twice the next one, too
        return describe(self.X.drop_columns([*dict.fromkeys(roles.ignore)]))


def read_rows(table: Table, roles: Roles) -> Rows:
    """Read a table by its roles; rows without a label are left out, which is noted.

    Parameters
    ----------
    table : Table
    roles : Roles

    Returns
    -------
    Rows

    Raises
    ------
    UserError
        Where a column is missing, the label has one value or too many, or there is nothing to learn from.
    """
    name = table.path.name
    check_names([roles.label, *roles.ignore], table.names, name)
    if roles.label in roles.ignore:
        raise UserError(f"the label {roles.label!r} is also to be ignored", do="name another column to ignore.")
    table, data = table.load()
    words = to_text(data.column(roles.label))
    notes = list(table.notes)
    if words.null_count:
        notes.append(f"{words.null_count:,} of {len(words):,} rows have no {roles.label} and were left out")
        present = pc.is_valid(words)
        data, words = data.filter(present), words.filter(present)
    y = _labels(np.asarray(words.to_pylist(), dtype=str), roles, name)
    index = [column for column in data.column_names if re.fullmatch(r"__index_level_\d+__", column)]
    if index:
        notes.append(f"{', '.join(index)} is the index of a data frame and was left out")
    X = coded_text(data.drop_columns([roles.label, *index]))
    groups = pa.table({column: _group_column(data.column(column)) for column in dict.fromkeys(roles.ignore)})
    for column in groups.column_names:
        missing = data.column(column).null_count
        if missing:
            notes.append(f"{missing:,} rows have no {column}: they are the group {MISSING_GROUP}")
    return Rows(X, y, groups, tuple(notes), table.decimal)


def group_names(known: Groups, groups: pa.Table, codes: NDArray[np.intp] | None = None) -> NDArray[Any]:
    """The name of each row's group, as it is shown; empty for one that was not there at fit time."""
    codes = known.codes(groups) if codes is None else codes
    names = np.array([*map(group_name, known.labels), ""])
    return names[codes]


def split_rows(rows: Rows, test_size: float, seed: int) -> tuple[Rows, Rows]:
    """Rows to learn from and rows to judge by, with every group and label in both."""
    if not 0 < test_size < 1:
        raise UserError(f"the test size is {test_size:g}", do="give a share of the rows between 0 and 1, such as 0.25.")
    codes = np.unique(rows.y, return_inverse=True)[1].astype(np.intp)
    known = Groups(least=MIN_ROWS)
    group = known.learn(rows.groups, codes)
    _check_cells(rows, known, group, codes)
    strata = group * (codes.max() + 1) + codes
    train, test = train_test_split(np.arange(len(rows)), test_size=test_size, random_state=seed, stratify=strata)
    return rows.take(np.sort(train)), rows.take(np.sort(test))


def _check_cells(rows: Rows, known: Groups, group: NDArray[np.intp], codes: NDArray[np.intp]) -> None:
    counts = np.zeros((len(known.labels), codes.max() + 1), dtype=np.intp)
    np.add.at(counts, (group, codes), 1)
    ignored = ", ".join(rows.groups.column_names)
    if len(known.labels) < 2:
        raise UserError(
            f"{ignored} has one value only, {group_name(known.labels[0])!r}", do="there is nothing to ignore in it."
        )
    few = np.argwhere(counts < MIN_ROWS)
    if len(few):
        at, label = few[0]
        raise UserError(
            f"the group {group_name(known.labels[at])!r} of {ignored} has {counts[at, label]} rows with the label "
            f"{np.unique(rows.y).tolist()[label]!r}",
            do=f"at least {MIN_ROWS} are needed: merge it with another group in the file, or leave its rows out.",
        )


def _labels(words: NDArray[Any], roles: Roles, name: str) -> NDArray[Any]:
    values, counts = np.unique(words, return_counts=True)
    if len(values) < 2:
        found = repr(str(values[0])) if len(values) else "no value"
        raise UserError(
            f"the label {roles.label!r} of {name} has one value only, {found}", do="give rows of two classes or more."
        )
    if roles.positive is not None:
        present = [str(value) for value in values]
        check_names([roles.positive], present, f"the label {roles.label!r}", what="value")
        others = roles.class_names["0"]
        if others in present and len(present) > 2:
            raise UserError(
                f"the label {roles.label!r} has the value {others!r}, which also stands for all but {roles.positive!r}",
                do="rename that value, or leave --positive out.",
            )
        return np.asarray(words == roles.positive, dtype=np.int64)
    if len(values) > MAX_CLASSES:
        raise UserError(
            f"the label {roles.label!r} has {len(values)} values, such as {str(values[np.argmax(counts)])!r}",
            do="choose a column with few values, or name one value of it: --positive VALUE.",
        )
    return words


def _group_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = plain(column)
    numeric = not is_text(values.type) and (pa.types.is_integer(values.type) or pa.types.is_floating(values.type))
    if numeric and values.null_count == 0:
        return values
    return pc.fill_null(to_text(values), MISSING_GROUP)


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
    unseen : dict of str to float
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
    unseen: dict[str, float]
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
    if counts.min() < MIN_ROWS:
        raise UserError(
            f"{source.path.name} has {counts.min()} rows with the label {str(classes[counts.argmin()])!r}",
            do=f"at least {MIN_ROWS} are needed: leave that class out, or merge it with another.",
        )
    columns = describe(rows.X)
    kinds = {column.name: column.kind for column in columns if column.kept}
    if not kinds:
        raise UserError("no column is left to learn from", do="every one is constant, or names rows.")
    check_names(kinds, target.names, target.path.name)
    target, frame = target.like(rows.decimal).load()
    if len(frame) < MIN_ROWS:
        raise UserError(f"{target.path.name} has {len(frame)} rows", do=f"at least {MIN_ROWS} are needed.")
    labelled, truth, notes = _target_labels(frame, roles, classes, target.path.name)
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


def _target_labels(
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
    unknown = sorted({word for word in named if word not in places})
    if not unknown:
        return labelled, truth, []
    if (truth < 0).all():
        check_names(unknown, list(places), "the source", what="label")
    named_first = ", ".join(map(repr, unknown[:3])) + (" and others" if len(unknown) > 3 else "")
    note = (
        f"{(truth < 0).sum():,} rows of {name} are labelled {named_first}, which the source lacks: they count as wrong"
    )
    return labelled, truth, [note]

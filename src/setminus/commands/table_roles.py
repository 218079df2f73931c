"""Which column of a user's table is what: the label, the groups to ignore, the features; and two tables to adapt."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from setminus.core import Agg
from setminus.errors import UserError
from setminus.estimators.groupings import Groupings
from setminus.estimators.groups import Groups
from setminus.tables.columns import FLAGS, ColumnSummary, check_names, coded_text, describe, is_text, plain, to_text
from setminus.tables.drift import unseen_fraction
from setminus.tables.encoding import LEAK, TableEncoder, single_column_auc
from setminus.tables.numerals import DecimalSign
from setminus.tables.reading import Table

__all__ = [
    "Domains",
    "Roles",
    "Rows",
    "check_bins",
    "check_limit",
    "check_roles",
    "group_names",
    "read_bins",
    "read_domains",
    "read_groups",
    "read_rows",
    "split_rows",
    "to_rows",
    "without_rare_labels",
]

MIN_ROWS = 10
"""Rows of each group and label, or of each class of a source table, below which a rate is a guess."""

MAX_CLASSES = 20

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
    drop : sequence of str
        Columns that no model may learn from.
    features : sequence of str
        The only columns that a model may learn from; all by default.
    favorable : str, optional
        The value of the label that is good for a person.
    """

    label: str
    ignore: Sequence[str]
    positive: str | None = None
    drop: Sequence[str] = ()
    features: Sequence[str] = ()
    favorable: str | None = None

    @property
    def question(self) -> str:
        """What is predicted, in words."""
        return self.label if self.positive is None else f"{self.label} = {self.positive}"

    @property
    def class_names(self) -> dict[str, str]:
        """The names of 0 and 1, where one value counts against all others."""
        return {} if self.positive is None else {"0": f"not {self.positive}", "1": self.positive}

    @property
    def favorable_name(self) -> str | None:
        """The name of the class that the favourable value is in."""
        if self.favorable is None or self.positive is None or self.favorable == self.positive:
            return self.favorable
        return self.class_names["0"]


@dataclass(frozen=True)
class Rows:
    """Rows with their roles.

    Attributes
    ----------
    X : pyarrow.Table
        Every column but the label.
    y : ndarray of str, or of 0 and 1
    groups : pyarrow.Table
        The ignored columns; words are words.
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

    def labelled_by(self, classes: NDArray[Any], roles: Roles, model: str) -> tuple[Rows, dict[str, str]]:
        """The same rows with labels among the classes of a saved model, and the label's own words for these classes.

        The words of the file are compared with the classes as text: 1, 1.0 and "1" are one label. Words for yes and no
        also stand for 1 and 0.
        """
        own = [to_text(pa.chunked_array([[label]]))[0].as_py() for label in classes.tolist()]
        words = [roles.class_names.get(str(label), str(label)) for label in np.unique(self.y)]
        if roles.positive is not None and roles.positive in own and len(own) == 2:
            at = own.index(roles.positive)
            place = {word: at if word == roles.positive else 1 - at for word in words}
        elif roles.positive is not None:
            place = _places({word: "yes" if word == roles.positive else "no" for word in words}, own)
        else:
            place = _places({word: word for word in words}, own)
        if not place:
            raise UserError(
                f"{model} predicts {', '.join(map(repr, own[:5]))}, the label {roles.label!r} holds "
                f"{', '.join(map(repr, words[:5]))}",
                do="name the value of the label that the model predicts as 1: --positive VALUE"
                if sorted(own) in (["0", "1"], ["false", "true"]) and roles.positive is None
                else "give the label in the words that the model was fitted on.",
            )
        codes = np.unique(self.y, return_inverse=True)[1]
        y = classes[np.array([place[word] for word in words])[codes]]
        names = {str(classes[at]): word for word, at in place.items() if str(classes[at]) != word}
        return replace(self, y=y), names

    def features(self, roles: Roles) -> list[ColumnSummary]:
        """What each column that a model may learn from is, and what is done with it."""
        names = self.X.column_names
        hidden = {*roles.ignore, *split_names(roles.drop, names)}
        wanted = {*(split_names(roles.features, names) or names)}
        shown = [name for name in names if name in wanted - hidden]
        found = describe(self.X.select(shown))
        leaks = single_column_auc(self.X, found, self.y)
        return [
            replace(
                column,
                warning=f"predicts the label nearly alone, with an AUC of {leaks[column.name]:.3f}. Is it known before "
                f"the outcome? If not: --drop {shlex.quote(column.name)}",
            )
            if leaks.get(column.name, 0) > LEAK
            else column
            for column in found
        ]


def read_rows(table: Table, roles: Roles) -> Rows:
    """Read a table by its roles; rows without a label are left out, which is noted.

    Raises
    ------
    UserError
        Where a column is missing, the label has one value or too many, or there is nothing to learn from.
    """
    roles = check_roles(table, roles)
    table, data = table.load()
    return to_rows(data, roles, table)


def check_roles(table: Table, roles: Roles) -> Roles:
    """The roles with one name to each entry; raise where the table lacks a column, or one has two roles."""
    name = table.path.name
    drop, features = (split_names(names, table.names) for names in (roles.drop, roles.features))
    roles = replace(roles, drop=drop, features=features)
    check_names([roles.label, *roles.ignore, *roles.drop, *roles.features], table.names, name)
    if roles.label in roles.ignore:
        raise UserError(f"the label {roles.label!r} is also to be ignored", do="name another column to ignore.")
    for option, columns in (("--features", roles.features), ("--drop", roles.drop)):
        if roles.label in columns:
            raise UserError(f"the label {roles.label!r} is also in {option}", do=f"leave it out of {option}.")
    both = [column for column in roles.features if column in {*roles.drop, *roles.ignore}]
    if both:
        raise UserError(
            f"{both[0]!r} is in --features, and in --drop or --ignore", do="name it once: it is used, or it is not."
        )
    return roles


def to_rows(data: pa.Table, roles: Roles, table: Table, classes: NDArray[Any] | None = None) -> Rows:
    """Rows of a table by their roles.

    Parameters
    ----------
    data : pyarrow.Table
        Some rows of the table, or all.
    roles : Roles
    table : Table
    classes : ndarray, optional
        The labels that are known: rows of others are left out. By default the rows must hold those of a task.
    """
    words = to_text(data.column(roles.label))
    notes = list(table.notes)
    if words.null_count:
        notes.append(f"{words.null_count:,} of {len(words):,} rows have no {roles.label} and were left out")
        present = pc.is_valid(words)
        data, words = data.filter(present), words.filter(present)
    y = _labels(np.asarray(words.to_pylist(), dtype=str), roles, table.path.name, classes is None)
    index = [column for column in data.column_names if re.fullmatch(r"__index_level_\d+__", column)]
    if index:
        notes.append(f"{', '.join(index)} is the index of a data frame and was left out")
    X = coded_text(data.drop_columns([roles.label, *index]))
    groups, missing = read_groups(data, roles.ignore)
    rows = Rows(X, y, groups, (*notes, *missing), table.decimal)
    return rows if classes is None else rows.take(np.flatnonzero(np.isin(y, classes)))


def read_groups(data: pa.Table, ignore: Sequence[str]) -> tuple[pa.Table, list[str]]:
    """The columns whose groups are compared, and notes on missing values."""
    groups = pa.table({column: _group_column(data.column(column)) for column in dict.fromkeys(ignore)})
    counts = {column: groups.column(column).null_count for column in groups.column_names}
    return groups, [f"{n:,} rows have no {column}: they count in no gap" for column, n in counts.items() if n]


def read_bins(texts: Sequence[str], ignore: Sequence[str]) -> dict[str | int, Sequence[float]]:
    """The edges of ``--bins``, by column.

    Examples
    --------
    >>> read_bins(["age=40,62"], ["sex", "age"])
    {'age': [40.0, 62.0]}
    """
    found: dict[str | int, Sequence[float]] = {}
    for text in texts:
        column, _, numbers = text.rpartition("=")
        try:
            edges = [float(number) for number in numbers.split(",")]
        except ValueError:
            column = ""
        # several names in one are refused where the columns are known
        if column not in {*ignore, *",".join(ignore).split(",")}:
            raise UserError(
                f"--bins is {text!r}",
                expected=f"a column of --ignore and numbers in rising order, such as {ignore[0]}=40,62",
            )
        if column in found:
            raise UserError(f"--bins has two entries for {column!r}", do=f"give all edges in one: {column}=40,62")
        found[column] = edges
    return found


def check_bins(edges: Mapping[str | int, Sequence[float]], groups: pa.Table) -> None:
    """Raise where the edges of a column put all rows into one group: a typing error, or another unit."""
    for column, inner in edges.items():
        values = groups.column(column).drop_null()
        if is_text(values.type) or not len(values):
            continue
        numbers = values.to_numpy().astype(np.float64)
        if len(np.unique(np.searchsorted(inner, numbers, side="right"))) < 2:
            raise UserError(
                f"--bins {column}={','.join(f'{edge:g}' for edge in inner)} puts all rows into one group",
                do=f"choose edges between {numbers.min():g} and {numbers.max():g}.",
            )


def check_limit(option: str, value: float | None, agg: Agg) -> None:
    """Raise for a limit that no gap exceeds: 5, meant as 5 %, would certify everything."""
    if value is not None and value > 1 and agg == "max":
        raise UserError(
            f"{option} is {value:g}", expected="a difference of two rates, from 0 to 1", do="5 % is written as 0.05."
        )


def split_names(texts: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, several of which may be in one text, separated by commas.

    Examples
    --------
    >>> split_names(["a,b", "c, d"], ["a", "b", "c, d"])
    ('a', 'b', 'c, d')
    """
    return tuple(
        name for text in texts for name in ([text] if text in names else (part.strip() for part in text.split(",")))
    )


def group_names(known: Groups, groups: pa.Table, codes: NDArray[np.intp] | None = None) -> NDArray[Any]:
    """The name of each row's group, as it is shown; empty for one that was not there at fit time, None for none."""
    codes = known.codes(groups) if codes is None else codes
    # the last two by the codes UNSEEN and NOT_COMPARED
    names = np.array([*known.names, None, ""], dtype=object)
    return names[codes]


def without_rare_labels(rows: Rows, roles: Roles) -> Rows:
    """The rows whose label is not rare, and a note on the others: nothing can be learned or judged from a few."""
    values, codes, counts = np.unique(rows.y, return_inverse=True, return_counts=True)
    rare = counts < MIN_ROWS
    if not rare.any() or (~rare).sum() < 2:
        return rows
    named = ", ".join(f"{str(value)!r} ({n})" for value, n in zip(values[rare][:5], counts[rare][:5], strict=True))
    note = f"rows of labels with fewer than {MIN_ROWS} rows were left out: {roles.label} {named}"
    kept = rows.take(np.flatnonzero(~rare[codes]))
    return replace(kept, notes=(*kept.notes, note))


def split_rows(rows: Rows, test_size: float, seed: int, known: Groupings, needed: Sequence[int]) -> tuple[Rows, Rows]:
    """Rows to learn from and rows to judge by, each with its share of every group and label.

    Parameters
    ----------
    rows : Rows
    test_size : float
    seed : int
    known : Groupings
        How the rows are grouped; it learns the groups of all rows.
    needed : sequence of int
        See `Groups.learn`.
    """
    if not 0 < test_size < 1:
        raise UserError(f"the test size is {test_size:g}", do="give a share of the rows between 0 and 1, such as 0.25.")
    if round(len(rows) * (1 - test_size)) < MIN_ROWS:
        raise UserError(f"a test size of {test_size:g} leaves no rows to learn from", do="give a smaller --test-size.")
    codes = np.unique(rows.y, return_inverse=True)[1].astype(np.intp)
    cells = known.learn(rows.groups, codes, needed=needed)
    if not known.compares:
        ignored = ", ".join(rows.groups.column_names)
        raise UserError(f"{ignored} has one value only, {known.names[0]!r}", do="there is nothing to ignore in it.")
    strata = cells * (codes.max() + 1) + codes
    # a stratum of one row cannot be split
    counts = np.bincount(strata)
    strata = np.where(counts[strata] < 2, len(counts) + codes, strata)
    strata = np.where(np.bincount(strata)[strata] < 2, -1, strata)
    alone = (strata == -1).sum() == 1 or test_size * len(rows) < len(np.unique(strata))
    train, test = train_test_split(
        np.arange(len(rows)), test_size=test_size, random_state=seed, stratify=codes if alone else strata
    )
    return rows.take(np.sort(train)), rows.take(np.sort(test))


def _labels(words: NDArray[Any], roles: Roles, name: str, checked: bool) -> NDArray[Any]:
    if not checked:
        return words if roles.positive is None else np.asarray(words == roles.positive, dtype=np.int64)
    values, counts = np.unique(words, return_counts=True)
    if len(values) < 2:
        found = repr(str(values[0])) if len(values) else "no value"
        raise UserError(
            f"the label {roles.label!r} of {name} has one value only, {found}", do="give rows of two classes or more."
        )
    present = [str(value) for value in values]
    others = roles.class_names.get("0", "")
    known = present if roles.positive is None else [*present, others]
    if roles.favorable not in (None, *known):
        check_names([str(roles.favorable)], present, f"the label {roles.label!r}", what="value")
    if roles.positive is not None:
        check_names([roles.positive], present, f"the label {roles.label!r}", what="value")
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


def _places(words: Mapping[str, str], own: Sequence[str]) -> dict[str, int]:
    """The place of each word among a model's own words: the same word, or the one for the same yes or no."""
    exact = {word: own.index(stands) for word, stands in words.items() if stands in own}
    if len(exact) == len(words):
        return exact
    flags = {FLAGS.get(one.lower()): at for at, one in enumerate(own)}
    found = {word: flags.get(FLAGS.get(stands.lower())) for word, stands in words.items()}
    if None in flags or len(flags) < len(own) or None in found.values() or len({*found.values()}) < len(found):
        return {}
    return {word: at for word, at in found.items() if at is not None}


def _group_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = plain(column)
    numeric = not is_text(values.type) and (pa.types.is_integer(values.type) or pa.types.is_floating(values.type))
    return values if numeric else to_text(values)


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

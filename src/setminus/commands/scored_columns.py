"""What the columns of a scored file mean: which class a score is of, and which class a decision is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setminus.commands.table_roles import Roles
from setminus.errors import UserError
from setminus.tables.columns import check_names, is_text, to_numbers, to_text
from setminus.tables.reading import Table
from setminus.tables.writing import original_words

__all__ = ["ScoredColumns"]

PREFIX = "proba_"
CODES = ("0", "1")


@dataclass(frozen=True)
class ScoredColumns:
    """The scores and decisions of a file, in the label's own values.

    ``proba_X`` is the probability of the value X of the label, and a decision is one of its values; both may also be
    ``not V``, of the value V that counts against all others. Where that leaves two readings, the file is refused.

    Parameters
    ----------
    table : Table
    roles : Roles
    values : tuple of str
        Of the label, in sorted order.
    labelled : pyarrow.ChunkedArray of bool
        Which rows of the table have a label: the others are not audited.
    """

    table: Table
    roles: Roles
    values: tuple[str, ...]
    labelled: pa.ChunkedArray

    @classmethod
    def of(cls, table: Table, roles: Roles) -> ScoredColumns:
        """Look at the label."""
        words = to_text(table.read([roles.label]).column(roles.label))
        return cls(table, roles, tuple(sorted(words.unique().drop_null().to_pylist())), pc.is_valid(words))

    @property
    def classes(self) -> list[Any]:
        """The classes of the audit: 0 and 1 where one value counts against all others, else the label's values."""
        return [*self.values] if self.roles.positive is None else [0, 1]

    @property
    def class_of(self) -> dict[str, int]:
        """The position of the class of each word."""
        positive = self.roles.positive
        if positive is None:
            return {value: k for k, value in enumerate(self.values)}
        return {self._other: 0, **{value: int(value == positive) for value in self.values}}

    @property
    def are_codes(self) -> bool:
        """Whether the label itself has the values 0 and 1: codes of an earlier version look the same."""
        return self.values == CODES

    @property
    def has_scores(self) -> bool:
        """Whether the file has columns that look like those of ``setminus apply``."""
        return any(name.startswith(PREFIX) for name in self.table.names)

    def scores(self, named: Sequence[str]) -> dict[int, str]:
        """The column of scores by the position of its class; one column may do for two classes.

        Parameters
        ----------
        named : sequence of str
            Columns that the user named. One is the probability of the second class, several are those of the classes
            in order, unless they are called ``proba_X``. Without them the columns of that name are looked for.
        """
        looked_at = named or self.table.names
        self._check_scored_for([name.removeprefix(PREFIX) for name in looked_at if name.startswith(PREFIX)])
        return self._given(named) if named else self._found()

    def proba(self, X: pa.Table, columns: dict[int, str]) -> NDArray[np.float64]:
        """The probability of each class; of two classes, one without a column has one minus the other."""
        found = {k: to_numbers(X.column(name), name) for k, name in columns.items()}
        missing = int(np.isnan(np.column_stack([*found.values()])).any(axis=1).sum())
        if missing:
            raise UserError(
                f"{missing:,} rows have no score in {', '.join(columns.values())}",
                do="leave those rows out, or score them.",
            )
        if len(found) == 1:
            ((k, column),) = found.items()
            found[1 - k] = 1 - column
        return np.column_stack([found[k] for k in range(len(self.classes))])

    def decisions(self, X: pa.Table, name: str, own: bool) -> tuple[NDArray[Any], list[str]]:
        """The class that each row of a column decides for, and notes on how it was read.

        Parameters
        ----------
        X : pyarrow.Table
            The labelled rows.
        name : str
        own : bool
            Whether the user named the column: 0 and 1 may then be codes, where the label has neither.
        """
        check_names([name], self.table.names, self.table.path.name)
        self._check_not_label([name], "prediction")
        class_of = self.class_of
        may_be_codes = self.roles.positive is not None and not {*CODES} & {*self.values}
        if own and may_be_codes:
            class_of |= {code: int(code) for code in CODES}
        read = self._words(X, name, class_of)
        words = [word for word in read if word is not None]
        missing = len(read) - len(words)
        if missing:
            raise UserError(f"{missing:,} rows have no decision in {name}", do="leave those rows out, or decide them.")
        # `setminus apply` sets an apostrophe before words that a spreadsheet would run
        original = original_words(words, class_of.keys())
        unknown = sorted({*original.values()} - class_of.keys())
        if unknown:
            self._check_scored_for(unknown)
            # nothing is guessed: "yes" taken for a no would pass for fair
            raise UserError(
                f"the predictions hold {unknown[0]!r}, the label {', '.join(self.values)}",
                do=self._advice(unknown[0], name, may_be_codes),
            )
        notes = []
        if may_be_codes and {*words} & {*CODES}:
            notes.append(f"1 in {name} was read as {self.roles.positive!r}, 0 as {self._other!r}")
        return np.array(self.classes)[[class_of[original[word]] for word in words]], notes

    @property
    def _other(self) -> str:
        return self.roles.class_names["0"]

    @property
    def _listed(self) -> str:
        return ", ".join(map(str, self.classes))

    def _columns(self) -> dict[str, int]:
        """The columns that hold the probability of a class, the surest first."""
        positive = self.roles.positive
        if positive is None:
            return {PREFIX + value: k for k, value in enumerate(self.values)}
        # one of several values that do not count is less than its class
        others = [value for value in self.values if value != positive] if len(self.values) == 2 else []
        return {PREFIX + positive: 1, PREFIX + self._other: 0, **{PREFIX + value: 0 for value in others}}

    def _found(self) -> dict[int, str]:
        names, file = {*self.table.names}, self.table.path.name
        columns = [(name, k) for name, k in self._columns().items() if name in names]
        own = {PREFIX + value for value in self.values} <= names
        of_positive = self.roles.positive is not None and PREFIX + self._other in names
        if {PREFIX + code for code in CODES} <= names and not (self.are_codes or own or of_positive):
            raise UserError(
                f"{file} has the columns proba_0 and proba_1, the label the values {', '.join(self.values)}: an "
                "earlier version wrote codes, which have two readings",
                do="apply the model again; the scores are then named by the values of the label.",
            )
        if not columns or (len(columns) < len(self.classes) > 2):
            wanted = [PREFIX + value for value in self.values]
            raise UserError(f"{file} has no columns {', '.join(wanted)}", do="name the scores: --score COLUMN")
        return {k: name for name, k in (columns if self.roles.positive is None else columns[:1])}

    def _given(self, named: Sequence[str]) -> dict[int, str]:
        check_names(named, self.table.names, self.table.path.name)
        self._check_not_label(named, "score")
        columns, n = self._columns(), len(self.classes)
        if len(named) != n and (len(named), n) != (1, 2):
            raise UserError(
                f"{len(named)} columns of scores are named for {n} classes, {self._listed}",
                do="give one for each class in this order"
                + (", or the second one's." if n == 2 else ", or the class that counts with --positive."),
            )
        found: dict[int, str] = {}
        for k, name in enumerate(named, start=n - len(named)):
            value = name.removeprefix(PREFIX)
            if name not in columns and value != name and value in self.values:
                raise UserError(
                    f"{name} is the probability of {value!r}, not of {self.roles.positive!r}",
                    do=f"name the score of {self.roles.positive!r}, or call the column something else.",
                )
            found[columns.get(name, k)] = name
        if len(found) < len(named):
            raise UserError(
                f"two of the columns {', '.join(named)} are of one class", do=f"give one for each of {self._listed}."
            )
        return found

    def _check_not_label(self, names: Sequence[str], option: str) -> None:
        if self.roles.label in names:
            raise UserError(
                f"{self.roles.label!r} is both the label and the {option}", do=f"name another column: --{option} COLUMN"
            )

    def _check_scored_for(self, words: Sequence[str]) -> None:
        """Raise where a file was scored for one value against all others, and --positive does not name it."""
        for word in words:
            value = word.removeprefix("not ")
            if value != word and word not in self.class_of and value in self.values:
                raise UserError(
                    f"{self.table.path.name} holds {word!r}: it was scored for {self.roles.label} = {value} against "
                    "all other values",
                    do=f"audit it so: --positive {shlex.quote(value)}",
                )

    def _words(self, X: pa.Table, name: str, known: dict[str, int]) -> list[str | None]:
        column = X.column(name)
        typed: list[str | None] = to_text(column).to_pylist()
        if is_text(column.type) or self.table.format != "csv":
            return typed
        # the text of a CSV first: decisions that all look like numbers were taken for numbers, and 01 for 1
        stands = to_text(self.table.as_text().read([name]).column(name)).filter(self.labelled).to_pylist()
        return stands if {*stands} <= known.keys() else typed

    def _advice(self, unknown: str, name: str, may_be_codes: bool) -> str:
        if unknown not in CODES or self.roles.positive is None:
            return "Give predictions of the same classes."
        if may_be_codes:
            return f"If 1 stands for {self.roles.positive!r}, name the column: --prediction {shlex.quote(name)}"
        return (
            "Give predictions in the label's own values: 0 and 1 have two readings here. If setminus apply wrote the "
            "file, apply the model again."
        )

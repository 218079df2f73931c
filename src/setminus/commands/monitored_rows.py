"""The rows of a scored table that ``setminus monitor`` compares: scores or decisions, groups, and labels if any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setminus.commands.scored_columns import PREFIX, ScoredColumns
from setminus.commands.table_roles import MAX_CLASSES, Roles, group_names, read_groups
from setminus.errors import UserError
from setminus.estimators.groups import Groups
from setminus.tables.columns import check_names, coded_text, to_numbers, to_text
from setminus.tables.reading import open_table

if TYPE_CHECKING:
    from setminus.commands.monitor import MonitorConfig

__all__ = ["MonitoredRows", "read_monitored"]


@dataclass(frozen=True)
class MonitoredRows:
    """The rows of one file: the labels are None where a row has none."""

    name: str
    X: pa.Table
    groups: pa.Table
    proba: NDArray[np.float64] | None
    decisions: NDArray[Any] | None
    words: NDArray[Any] | None
    values: tuple[str, ...]
    classes: list[Any]
    taken: set[str]
    """Columns of scores, decisions, labels and groups: all others are features."""

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which rows have a label."""
        if self.words is None:
            return np.zeros(len(self.X), dtype=bool)
        return np.array([word is not None for word in self.words], dtype=bool)

    @property
    def named_groups(self) -> NDArray[Any]:
        """The group of each row by name, None for a row without one."""
        known = Groups()
        return group_names(known, self.groups, known.learn(self.groups, np.zeros(len(self.groups), dtype=np.intp)))

    def codes(self, positive: str | None) -> NDArray[Any]:
        """The labels of the labelled rows, in the terms of `classes`."""
        words = np.array([] if self.words is None else self.words[self.labelled].tolist(), dtype=str)
        return words if positive is None else (words == positive).astype(np.int64)


def read_monitored(path: str, config: MonitorConfig, like: MonitoredRows | None = None) -> MonitoredRows:
    """Read a scored file; the second one by what the first one holds."""
    opened = open_table(path, header=config.header, encoding=config.encoding, decimal=config.decimal)
    table, data = opened.load()
    name = table.path.name
    if data.num_rows == 0:
        raise UserError(f"{name} has no rows", do="give a table with rows.")
    check_names(config.ignore, table.names, name)
    groups, _ = read_groups(data, config.ignore)
    judged = config.prediction or ("prediction" if "prediction" in table.names else None)
    if config.label is None:
        named = list(config.score) or [column for column in table.names if column.startswith(PREFIX)]
        check_names([*named, *filter(None, [judged])], table.names, name)
        if judged is None:
            raise UserError("without --label, the decisions are needed", do="name them: --prediction COLUMN")
        proba = np.column_stack([to_numbers(data.column(one), one) for one in named]) if named else None
        if proba is not None and np.isnan(proba).any():
            raise UserError(f"{name} has rows without a score", do="leave those rows out, or score them.")
        decided = to_text(data.column(judged))
        if decided.null_count:
            raise UserError(f"{decided.null_count:,} rows have no decision in {judged}", do="leave those rows out.")
        decisions = np.array(decided.to_pylist(), dtype=str)
        classes = sorted({*decisions.tolist(), *(like.classes if like else ())})
        taken = {*named, judged, *config.ignore}
        return MonitoredRows(name, coded_text(data), groups, proba, decisions, None, (), classes, taken)
    roles = Roles(config.label, config.ignore, config.positive)
    if like is None:
        check_names([config.label], table.names, name)
    words = to_text(data.column(config.label)) if config.label in table.names else None
    known = [] if words is None else words.unique().drop_null().to_pylist()
    values = tuple(sorted(known)) if like is None else like.values
    if like is None and (len(values) < 2 or (config.positive is None and len(values) > MAX_CLASSES)):
        raise UserError(
            f"the label {config.label!r} of {name} has {len(values)} values",
            expected=f"2 to {MAX_CLASSES}",
            do="name the one that counts: --positive VALUE." if len(values) > 2 else "",
        )
    if like is None and config.positive is not None:
        check_names([config.positive], values, f"the label {config.label!r}", what="value")
    listed = None if words is None else np.array(words.to_pylist(), dtype=object)
    strange = sorted({*known} - {*values})
    if strange:
        raise UserError(
            f"the label {config.label!r} of {name} has the value {strange[0]!r}", expected=f"one of {values}"
        )
    columns = ScoredColumns(table, roles, values, pa.chunked_array([np.ones(data.num_rows, dtype=bool)]))
    X = coded_text(data)
    scores = columns.scores(config.score) if config.score or columns.has_scores else {}
    if not scores and judged is None:
        raise UserError(f"{name} has neither scores nor decisions", do="name them: --score or --prediction COLUMN")
    return MonitoredRows(
        name,
        X,
        groups,
        columns.proba(X, scores) if scores else None,
        columns.decisions(X, judged, own=config.prediction is not None)[0] if judged else None,
        listed,
        values,
        columns.classes,
        {*scores.values(), *filter(None, [judged]), config.label, *config.ignore},
    )

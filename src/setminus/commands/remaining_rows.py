"""The rows of a large file that `setminus fit` does not learn from: they search and certify, a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from setminus.commands.table_roles import Roles, Rows, check_roles, to_rows, without_rare_labels
from setminus.estimators.proposals import SEARCH_ROWS
from setminus.estimators.streamed import FreshRows, RowCounts, fit_streamed
from setminus.scale.drawing import draw_rows, gather
from setminus.tables.columns import is_text
from setminus.tables.reading import Table, ahead

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from setminus.commands.fit import FitConfig
    from setminus.estimators.tuned import TunedOrthogonalClassifier

__all__ = ["MAX_TEST_ROWS", "RemainingRows", "draw"]

MAX_TEST_ROWS = 250_000
"""Rows of a large file that are held out for the evaluation, at most."""

BATCH = 1 << 17
"""Rows that are scored at a time."""


@dataclass(frozen=True)
class RemainingRows:
    """The rows of a file that are in no sample, and random ones that fit the offsets of the search."""

    table: Table
    roles: Roles
    classes: NDArray[Any]
    pilot: Rows
    taken: NDArray[np.int64]
    """The places of all rows that were drawn, in rising order."""
    by: tuple[str, ...]
    n_train: int
    change: Callable[[Rows], Rows] = field(default=lambda rows: rows)

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return self.table.starts[-1] - len(self.taken)

    def fit(self, model: TunedOrthogonalClassifier, train: Rows, visible: list[str]) -> RowCounts:
        """Fit a model on the training rows; choose its decision, and certify it, on these."""
        grouped = model.sensitive_columns is not None

        def fresh(rows: Rows) -> FreshRows:
            rows = self.change(rows)
            return FreshRows(rows.X.select(visible), rows.y, None if grouped else rows.groups)

        def batches() -> Iterator[FreshRows]:
            with closing(self._batches()) as parts:
                yield from map(fresh, parts)

        return fit_streamed(
            model,
            train.X.select(visible),
            train.y,
            sensitive_features=None if grouped else train.groups,
            pilot=fresh(self.pilot),
            fresh=batches,
            n_rows=self.n_rows,
        )

    def note(self, counted: RowCounts, n_test: int) -> str:
        """What each row was used for."""
        left_out = f"; {counted.left_out:,} are in groups that those lack" if counted.left_out else ""
        return (
            f"of {self.table.starts[-1]:,} rows the classifiers learned from {self.n_train:,} (--max-train-rows), "
            f"stratified by {' and '.join(self.by)}; {len(self.pilot):,} others fitted offsets and spaced "
            f"thresholds, {counted.searched:,} were searched, {counted.tested:,} tested the result for the "
            f"certificate{left_out}; "
            f"{n_test:,} evaluate the model"
        )

    def _batches(self) -> Generator[Rows]:
        start = 0
        with closing(ahead(self.table.batches())) as parts:
            for part in parts:
                mine = self.taken[slice(*np.searchsorted(self.taken, [start, start + part.num_rows]))] - start
                start += part.num_rows
                kept = np.ones(part.num_rows, dtype=bool)
                kept[mine] = False
                part = part.filter(pa.array(kept))
                for first in range(0, part.num_rows, BATCH):
                    rows = to_rows(part.slice(first, BATCH), self.roles, self.table, self.classes)
                    if len(rows):
                        yield rows


def draw(table: Table, config: FitConfig) -> tuple[Rows, Rows, RemainingRows]:
    """Rows to learn from and rows to evaluate on, stratified by the label and the ignored words, and the other rows."""
    roles = check_roles(table, config.roles)
    table = table.scanned()
    n = table.starts[-1]
    # ignored numbers are cut into groups later
    words = [name for name in dict.fromkeys(roles.ignore) if is_text(table.schema.field(name).type)]
    by = (roles.label, *words)
    n_test = min(int(config.test_size * n), MAX_TEST_ROWS)
    n_train = min(config.max_train_rows, (n - n_test) // 2)
    sizes = [n_train, n_test, min(SEARCH_ROWS, (n - n_test - n_train) // 10)]
    places = draw_rows(table, by, sizes, config.seed)
    train, test, pilot = gather(table, places)
    learned = without_rare_labels(to_rows(train, roles, table), roles)
    classes = np.unique(learned.y)
    others = [to_rows(rows, roles, table, classes) for rows in (test, pilot)]
    taken = np.sort(np.concatenate(places))
    return learned, others[0], RemainingRows(table, roles, classes, others[1], taken, by, len(learned))

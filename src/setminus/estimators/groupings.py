"""Several groupings of the same rows, such as by sex, by age, and by both: a gap is the largest over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.core import Constraint, ConstraintOver
from setminus.core.gaps import grouped_table
from setminus.errors import UserError
from setminus.estimators.groups import (
    NOT_COMPARED,
    UNSEEN,
    Codes,
    Groups,
    SensitiveColumn,
    SmallGroups,
    check_every_class,
    sensitive_columns,
)

__all__ = ["Groupings", "needed_labels"]

Floats = NDArray[np.float64]


def needed_labels(constraint: Constraint, n_classes: int, favorable: int | None = None) -> list[int]:
    """The labels within which a constraint compares groups, as codes; none for demographic parity.

    Examples
    --------
    >>> needed_labels("equalized_odds", 2), needed_labels("equal_opportunity", 2)
    ([0, 1], [1])
    >>> needed_labels("demographic_parity", 2)
    []
    """
    if constraint == "demographic_parity":
        return []
    if constraint == "equal_opportunity" and (favorable is not None or n_classes == 2):
        return [1 if favorable is None else favorable]
    return [*range(n_classes)]


class Groupings:
    """The groups of each sensitive column, those of their crossing, or both.

    Each row is in one cell: the rows of a cell are in the same group of every grouping. Counts are made by cell, and
    the groups of all groupings are sums of cells.

    Parameters
    ----------
    over : {"crossed", "each", "both"}, default="crossed"
        The groupings that are compared, where there are several columns.
    least, small, bins
        See `Groups`.

    Attributes
    ----------
    crossed : Groups
        The crossing of all columns, which a principal classifier is given; with ``over="each"`` it is in no gap.
    groupings : list of Groups
        Those that are compared.
    titles : list of str
        The columns of each grouping.
    n_cells : int
    members : ndarray of bool of shape (G, n_cells)
        Which cells are in each group, for the groups of all groupings in order.
    grouping : ndarray of int of shape (G,)
        The grouping that each of these groups belongs to: groups are compared within one.

    Examples
    --------
    >>> import pandas as pd
    >>> from setminus.core.gaps import count_table, demographic_parity_from_table
    >>> people = pd.DataFrame({"sex": ["f", "f", "m", "m"], "old": ["no", "yes", "no", "yes"]})
    >>> known = Groupings("each", least=1)
    >>> cells = known.learn(people, np.zeros(4, dtype=int), needed=[])
    >>> table = count_table(cells, np.zeros(4, dtype=int), np.array([1, 1, 1, 0]), (known.n_cells, 1, 2))
    >>> float(known.gap(demographic_parity_from_table)(table))
    0.5
    >>> known.names, known.grouping.tolist()
    (['f', 'm', 'old no', 'old yes'], [0, 0, 1, 1])
    """

    groupings: list[Groups]
    titles: list[str]

    def __init__(
        self,
        over: ConstraintOver = "crossed",
        *,
        least: int | None = None,
        small: SmallGroups | None = "merge",
        bins: Mapping[str | int, Sequence[float]] | None = None,
    ):
        self.over = over
        self.least = least
        self.small = small
        self.bins = bins

    def learn(
        self, sensitive_features: Any, y_codes: Codes, *, needed: Sequence[int] | None = None, weights: Any = None
    ) -> Codes:
        """Learn the groups and return each row's cell; the parameters are those of `Groups.learn`."""
        if self.over not in ("crossed", "each", "both"):
            raise UserError(f"constraint_over is {self.over!r}", expected="'crossed', 'each' or 'both'")
        columns = sensitive_columns(sensitive_features)
        several = len(columns) > 1
        # what is not compared may be small, and must not stop the work
        alone = several and self.over == "each"
        self.crossed: Groups = Groups(
            least=self.least, small="merge" if alone and self.small else self.small, bins=self.bins
        )
        codes = [self.crossed.learn(sensitive_features, y_codes, needed=needed, weights=weights)]
        self.groupings, self.titles = [self.crossed], [" x ".join(column.name for column in columns if column.name)]
        if several and self.over != "crossed":
            for index, column in enumerate(columns):
                bins = (self.bins or {}).get(column.name or index)
                one = Groups(least=self.least, small=self.small, bins=None if bins is None else {0: bins})
                codes.append(one.learn(_with_missing(column), y_codes, needed=needed, weights=weights))
                one.columns = [column.name]
                self.groupings.append(one)
                self.titles.append(column.name or f"column {index}")
            # each column first, their crossing last
            self.groupings, self.titles, codes = (
                [*part[1:], *part[:1]][: len(part) - alone] for part in (self.groupings, self.titles, codes)
            )
        cells, found = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        self.n_cells: int = len(cells)
        self.members: NDArray[np.bool_] = np.concatenate(
            [cells[:, k] == np.arange(len(one.labels))[:, None] for k, one in enumerate(self.groupings)]
        )
        self.grouping: NDArray[np.intp] = np.repeat(
            np.arange(len(self.groupings)), [len(one.labels) for one in self.groupings]
        )
        return found.ravel().astype(np.intp)

    def cells(self, sensitive_features: Any) -> Codes:
        """Each row's cell; -1 for a row whose groups, or their combination, were not there at fit time."""
        found = np.stack([codes + 2 for _, codes in self._codes_each(sensitive_features)])
        known = []
        for k in range(len(self.groupings)):
            inside = self.members[self.grouping == k]
            known.append(np.where(inside.any(axis=0), inside.argmax(axis=0), NOT_COMPARED) + 2)
        sizes = [len(one.labels) + 2 for one in self.groupings]
        keys, wanted = (np.ravel_multi_index(list(codes), sizes) for codes in (np.stack(known), found))
        order = np.argsort(keys)
        place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
        return np.where(keys[order][place] == wanted, order[place], UNSEEN).astype(np.intp)

    @property
    def names(self) -> list[str]:
        """The name of each group, of all groupings in order."""
        return [name for one in self.groupings for name in one.names]

    @property
    def labels(self) -> list[Any]:
        """The label of each group, of all groupings in order."""
        return [label for one in self.groupings for label in one.labels]

    @property
    def compares(self) -> bool:
        """Whether some grouping has two groups."""
        return any(len(one.labels) > 1 for one in self.groupings)

    @property
    def regroups(self) -> bool:
        """Whether the crossed groups differ from the values of the columns: some are small, missing, or bins."""
        return bool(self.bins or self.crossed.merged or self.crossed.dropped or self.crossed.n_missing)

    @property
    def members_each(self) -> list[NDArray[np.bool_]]:
        """The members of the groups of each grouping that has two or more."""
        parts = [self.members[self.grouping == k] for k in range(len(self.groupings))]
        return [part for part in parts if len(part) > 1]

    def each(self, tables: Floats) -> list[tuple[str, list[str], Floats]]:
        """Title, names of the groups and counts by group, for each grouping, from counts by cell."""
        by_group = self.table(tables)
        return [
            (title, one.names, by_group[..., self.grouping == k, :, :])
            for k, (title, one) in enumerate(zip(self.titles, self.groupings, strict=True))
        ]

    def check(self, cells: Codes, y_codes: Codes, classes: NDArray[Any], weights: Any, needed: Sequence[int]) -> None:
        """Raise where some rows lack a needed label in a group."""
        for k, one in enumerate(self.groupings):
            inside = self.members[self.grouping == k][:, cells]
            codes = np.where(inside.any(axis=0), inside.argmax(axis=0), NOT_COMPARED)
            check_every_class(codes, y_codes, one.labels, classes, weights, needed=needed)

    def notes(self, missing: bool = True) -> list[str]:
        """What was done with rows without a group, unless `missing` is False, and with small groups."""
        return [*dict.fromkeys(note for one in self.groupings for note in one.notes(missing))]

    def table(self, tables: Floats) -> Floats:
        """Counts by group, of shape (..., G, n_labels, n_classes), from counts by cell."""
        return grouped_table(tables, self.members)

    def gap(self, gap: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
        """The same gap for counts by cell: the largest over the groupings, 0 where no grouping has two groups."""
        several = self.members_each
        if len(several) == 1 and np.array_equal(several[0], np.eye(self.n_cells)):
            return gap

        def largest(tables: Floats) -> Floats:
            gaps = [gap(grouped_table(tables, members)) for members in several]
            found: Floats = np.fmax.reduce(gaps) if gaps else np.zeros(tables.shape[:-3])
            return found

        return largest

    def named_each(self, sensitive_features: Any) -> list[tuple[str, NDArray[Any]]]:
        """The title of each grouping, and the group of each row by name, None for a row in no group."""
        found = []
        for title, (one, codes) in zip(self.titles, self._codes_each(sensitive_features), strict=True):
            names = np.array([*one.names, None], dtype=object)
            found.append((title, names[np.where(codes < 0, len(names) - 1, codes)]))
        return found

    def _codes_each(self, sensitive_features: Any) -> list[tuple[Groups, Codes]]:
        columns = sensitive_columns(sensitive_features)
        return [
            (one, one.codes(sensitive_features if one is self.crossed else _with_missing(columns[k])))
            for k, one in enumerate(self.groupings)
        ]

    def named(self, sensitive_features: Any) -> NDArray[Any]:
        """The crossed group of each row by name, None for a row in no group: what a principal classifier is given."""
        codes = self.crossed.codes(sensitive_features)
        names = np.array([*self.crossed.names, None], dtype=object)
        return names[np.where(codes < 0, len(names) - 1, codes)]


def _with_missing(column: SensitiveColumn) -> NDArray[Any]:
    """The values of a column, None for a missing one."""
    values = column.values.astype(object)
    values[column.missing] = None
    return values

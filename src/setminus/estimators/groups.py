"""Groups of rows from sensitive features, learned in `fit` and applied in `predict`; and columns of X by name.

X is an array, a sparse matrix, or a frame of pandas, polars or arrow.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from numbers import Number
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_array

from setminus.core.checks import as_columns, check_unmasked, distinct, group_name, missing_groups
from setminus.errors import UserError

__all__ = [
    "NOT_COMPARED",
    "UNSEEN",
    "Groups",
    "SensitiveColumn",
    "SmallGroups",
    "as_rows",
    "check_every_class",
    "drop_columns",
    "group_frequencies",
    "known_columns",
    "rows_with_groups",
    "sensitive_columns",
    "take_columns",
]

SmallGroups = Literal["merge", "drop", "raise"]
"""What is done with groups of few rows."""


def as_rows(X: Any) -> Any:
    """X itself where it is a frame; otherwise a 2-D array or sparse matrix whose columns can be taken.

    Examples
    --------
    >>> as_rows([[1, 2]])
    array([[1, 2]])
    """
    if isinstance(nw.from_native(X, pass_through=True, eager_only=True), nw.DataFrame):
        return X
    check_unmasked("X", X)
    # the full classifier checks the values of X
    return check_array(X, accept_sparse=["csr", "csc"], dtype=None, ensure_all_finite=False)


def take_columns(X: Any, columns: Sequence[str | int], *, parameter: str) -> Any:
    """The chosen columns of X, of the same kind as X.

    `columns` holds positions, or names where X is a frame; `parameter` is its name in an error message.

    Examples
    --------
    >>> import numpy as np
    >>> take_columns(np.arange(6).reshape(2, 3), [2], parameter="principal_columns")
    array([[2],
           [5]])
    """
    if isinstance(columns, (str, int)) or len(columns) == 0:
        raise UserError(f"{parameter} is {columns!r}", expected="a list of column names or positions, such as ['sex']")
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    names = list(frame.columns) if isinstance(frame, nw.DataFrame) else None
    width = len(names) if names is not None else X.shape[1]
    positions = [_position(column, names, width, parameter) for column in columns]
    if names is not None:
        return frame[:, positions].to_native()
    return X[:, positions]


def drop_columns(X: Any, columns: Sequence[str | int], *, parameter: str) -> Any:
    """X without the chosen columns, of the same kind as X.

    Examples
    --------
    >>> import numpy as np
    >>> drop_columns(np.arange(6).reshape(2, 3), [-1], parameter="sensitive_columns")
    array([[0, 1],
           [3, 4]])
    """
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    names = list(frame.columns) if isinstance(frame, nw.DataFrame) else None
    width = len(names) if names is not None else X.shape[1]
    dropped = {_position(column, names, width, parameter) for column in columns}
    return take_columns(X, [i for i in range(width) if i not in dropped], parameter=parameter)


def known_columns(model: Any, X: Any) -> Any:
    """The columns of X that a fitted model was fitted on, in its order; all of X where the model has no column names.

    Examples
    --------
    >>> import pandas as pd
    >>> from types import SimpleNamespace
    >>> known_columns(SimpleNamespace(feature_names_in_=["b"]), pd.DataFrame({"a": [1], "b": [2]})).columns.tolist()
    ['b']
    """
    names = list(getattr(model, "feature_names_in_", ()))
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    if not names or not isinstance(frame, nw.DataFrame) or not {*names} <= {*frame.columns} or names == frame.columns:
        return X
    return take_columns(X, names, parameter="feature_names_in_")


class SensitiveColumn(NamedTuple):
    """One column of sensitive features.

    Attributes
    ----------
    name : str
        Empty where the features have no names.
    values : ndarray of shape (n,)
        In their own type; a missing value is replaced by some value of the column.
    missing : ndarray of bool of shape (n,)
    """

    name: str
    values: NDArray[Any]
    missing: NDArray[np.bool_]


def sensitive_columns(sensitive_features: Any) -> list[SensitiveColumn]:
    """The columns of sensitive features: an array, a list, a series, or a frame of pandas, polars or arrow.

    Examples
    --------
    >>> (sex,) = sensitive_columns(["f", None, "m"])
    >>> sex.values.tolist(), sex.missing.tolist()
    (['f', 'f', 'm'], [False, True, False])
    """
    native = nw.from_native(sensitive_features, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(native, nw.DataFrame):
        if len(native.columns) == 0:
            raise UserError("sensitive_features is a frame with no columns", expected="at least one")
        # by position: narwhals would read a column name such as 0 as a row
        named = [(str(name), native[:, i].to_numpy()) for i, name in enumerate(native.columns)]
    elif isinstance(native, nw.Series):
        named = [(str(native.name or ""), native.to_numpy())]
    else:
        check_unmasked("sensitive_features", sensitive_features)
        listed = isinstance(sensitive_features, list | tuple) and missing_groups(sensitive_features).any()
        values = np.asarray(sensitive_features, dtype=object if listed else None)
        # a wrong shape is named below
        named = [("", column) for column in ([values] if values.ndim != 2 or not values.shape[1] else values.T)]
    return [_filled(index, name, values) for index, (name, values) in enumerate(named)]


def _filled(index: int, name: str, values: NDArray[Any]) -> SensitiveColumn:
    """A column without its missing values; objects that are numbers become numbers, floats become float64."""
    missing = missing_groups(values)
    if missing.any():
        if missing.all():
            raise UserError(f"sensitive_features column {index} has no values", do="name a column that has some.")
        values = values.copy()
        values[missing] = values[~missing][0]
        # a missing value turns integers into floats
        if values.dtype.kind == "f" and (values % 1 == 0).all() and (np.abs(values) < 2**53).all():
            values = values.astype(np.int64)
    (column,) = as_columns(values)
    if column.dtype.kind == "O" and all(type(v) in (int, float) or isinstance(v, np.number) for v in column):
        column = np.array(column.tolist())  # integers stay integers: floats would merge large ones
    return SensitiveColumn(name, column.astype(np.float64) if column.dtype.kind == "f" else column, missing)


def _position(column: str | int, names: list[str] | None, width: int, parameter: str) -> int:
    if isinstance(column, str):
        if names is None:
            raise UserError(
                f"{parameter} names the column {column!r}, but X has no column names", do="pass a frame, or positions."
            )
        if column not in names:
            near = difflib.get_close_matches(column, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "pass a column of X."
            raise UserError(f"{parameter} names the column {column!r}, which X does not have", do=hint)
        return names.index(column)
    if not -width <= column < width:
        raise UserError(f"{parameter} names column {column}, but X has {width} columns", expected="positions from 0")
    return int(column) % width


Codes = NDArray[np.intp]

UNSEEN, NOT_COMPARED = -1, -2
"""Codes of rows in no group: a group that was not there at fit time; a missing or a small one."""

OTHER = "other"
"""The label of small groups that are merged."""

PLAIN = re.compile(r"[-+.\d]+|yes|no|y|n|true|false|t|f|1|0", re.IGNORECASE)
"""Words that say nothing without the name of their column."""


ENOUGH, FEWEST = 20, 2
"""Rows that a group has by default, of each label that is compared, and where fewer than two groups have as many."""


class Groups:
    """The groups of the training rows, and the group of each new row.

    A column with few values has one group for each value. A numeric column is cut at the edges in `bins`, or at
    quantiles if it has fractions, more than `max_values` values, or more than one value for every ten rows. Several
    columns are crossed. A row with a missing value is in no group.

    Parameters
    ----------
    n_bins : int, default=5
        Quantile bins of a continuous column.
    max_values : int, default=20
        A numeric column with more distinct values than this is continuous.
    least : int or None, default=1
        Rows that a group must have, of each label that is compared. A quantile that leaves a bin with fewer is dropped.
        None: 20, or 2 where fewer than two groups have 20.
    small : {None, "merge", "drop", "raise"}, default=None
        Groups with fewer rows than `least`: None keeps them; "merge" makes one group of them, which is dropped where
        it is still too small; "drop" leaves their rows in no group; "raise" refuses them.
    bins : mapping, optional
        Edges of numeric columns, by the name of the column, or its position where there are no names; an edge belongs
        to the bin above it.

    Attributes
    ----------
    labels : list
        The label of each group; a tuple where columns are crossed.
    names : list of str
        The same for people: with the name of the column where the label alone says nothing.
    merged, dropped : dict of str to int
        Names and rows of the small groups that were merged or dropped.
    n_missing : int
        Rows without a value.

    Examples
    --------
    >>> import pandas as pd
    >>> groups = Groups(least=2, small="drop", bins={"age": [40, 62]})
    >>> groups.learn(pd.DataFrame({"age": [20, 39, 40, 61, 70]}), np.zeros(5, dtype=int)).tolist()
    [0, 0, 1, 1, -2]
    >>> groups.names, groups.dropped
    (['age below 40', 'age 40 to 61'], {'age 62 and above': 1})
    """

    def __init__(
        self,
        n_bins: int = 5,
        max_values: int = 20,
        least: int | None = 1,
        small: SmallGroups | None = None,
        bins: Mapping[str | int, Sequence[float]] | None = None,
    ):
        self.n_bins = n_bins
        self.max_values = max_values
        self.least = least
        self.small = small
        self.bins = bins

    def learn(
        self, sensitive_features: Any, y_codes: Codes, *, needed: Sequence[int] | None = None, weights: Any = None
    ) -> Codes:
        """Learn the groups and return each row's code.

        Parameters
        ----------
        sensitive_features : array or frame of shape (n,) or (n, k)
        y_codes : ndarray of int of shape (n,)
        needed : sequence of int, optional
            The labels that are compared within groups; all by default. Demographic parity needs none: the rows of a
            group are then counted together.
        weights : ndarray of shape (n,), optional
            Rows of weight 0 are not counted.

        Returns
        -------
        ndarray of int of shape (n,)
            `NOT_COMPARED` for a row without a group, or of a small group that is dropped.
        """
        columns = sensitive_columns(sensitive_features)
        if len(columns[0].values) != len(y_codes):
            raise UserError(
                f"sensitive_features has {len(columns[0].values)} rows, y has {len(y_codes)}",
                expected="one group for each row",
            )
        if self.small not in (None, "merge", "drop", "raise"):
            raise UserError(f"small_groups is {self.small!r}", expected="'merge', 'drop' or 'raise'")
        labels = range(int(y_codes.max()) + 1) if needed is None else needed
        self.columns: list[str] = [column.name for column in columns]
        self._check_bins()
        self.edges: list[Any] = []
        self.values: list[list[Any]] = []
        for index, column in enumerate(columns):
            edges = self._edges(index, column, y_codes, labels)
            present = column.values[~column.missing]
            self.edges.append(edges)
            whole = column.values.dtype.kind in "iu"
            self.values.append(distinct(present)[0].tolist() if edges is None else _bin_names(edges, whole))
        crossed = self._crossed(columns)
        self.n_missing: int = int((crossed == NOT_COMPARED).sum())
        self.present: list[int] = np.unique(crossed[crossed >= 0]).tolist()
        sizes = [len(values) for values in self.values]
        parts = np.array(np.unravel_index(self.present, sizes)).T
        named = [tuple(self.values[k][i] for k, i in enumerate(part)) for part in parts]
        self.labels: list[Any] = [label[0] for label in named] if len(columns) == 1 else named
        self.merged: dict[str, int] = {}
        self.dropped: dict[str, int] = {}
        self.place: list[int] | None = None
        codes = self._found(crossed)
        counts = _cell_counts(codes, y_codes, len(self.labels), weights)
        short = self._short(counts, labels)
        if self.small is not None and short.any():
            self._set_apart(counts, labels, short)
            codes = self._found(crossed)
        return codes

    @property
    def names(self) -> list[str]:
        """The name of each group, for people."""
        return [self._name(label) for label in self.labels]

    def codes(self, sensitive_features: Any) -> Codes:
        """Each row's code; `UNSEEN` or `NOT_COMPARED` for a row in no group."""
        columns = sensitive_columns(sensitive_features)
        if len(columns) != len(self.values):
            raise UserError(
                f"sensitive_features has {len(columns)} columns, it had {len(self.values)} at fit time",
                do="pass the same.",
            )
        return self._found(self._crossed(columns))

    def unseen(self, sensitive_features: Any, codes: Codes) -> str:
        """The groups behind the code `UNSEEN`, for a message."""
        rows = np.flatnonzero(codes == UNSEEN)
        columns = [column.values[rows].tolist() for column in sensitive_columns(sensitive_features)]
        names = sorted({", ".join(map(str, values)) for values in zip(*columns, strict=True)})
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        return ", ".join(map(repr, names[:5])) + more

    def notes(self, missing: bool = True) -> list[str]:
        """What was done with rows without a group, unless `missing` is False, and with small groups."""
        found = []
        if self.n_missing and missing:
            found.append(
                f"{self.n_missing:,} rows have no {' or '.join(filter(None, self.columns)) or 'group'}: they "
                "train the model and count in no gap"
            )
        few = f"fewer than {self.enough:,} rows" + ("" if self.enough == 1 else " of a label that is compared")
        if self.merged:
            found.append(f"small groups ({few}) are merged into {OTHER!r}: {_counted(self.merged)}")
        if self.dropped:
            found.append(f"small groups ({few}) count in no gap: {_counted(self.dropped)}")
        return found

    def _edges(self, index: int, column: SensitiveColumn, y_codes: Codes, labels: Sequence[int]) -> list[float] | None:
        given = (self.bins or {}).get(column.name or index)
        if given is not None:
            if column.values.dtype.kind not in "fiu":
                raise UserError(
                    f"bins are given for the column {column.name or index!r}, which holds "
                    f"{_kind(column.values.tolist()[0])}",
                    expected="a column of numbers",
                )
            return [float(edge) for edge in given]
        if not self._continuous(column.values):
            return None
        present = ~column.missing
        column_values, codes = column.values[present], y_codes[present]
        if self.least is not None:
            return _cut(column_values, codes, self.n_bins, self.least, labels)
        return _cut(column_values, codes, self.n_bins, ENOUGH, labels) or _cut(
            column_values, codes, self.n_bins, FEWEST, labels
        )

    def _check_bins(self) -> None:
        """Raise where bins are of no column, or do not rise."""
        names = [name or index for index, name in enumerate(self.columns)]
        for name, edges in (self.bins or {}).items():
            if name not in names:
                raise UserError(f"bins names the column {name!r}", expected=f"one of {', '.join(map(repr, names))}")
            rising = all(low < high for low, high in pairwise(edges))
            if not len(edges) or not rising or not np.isfinite(np.asarray(edges, dtype=np.float64)).all():
                raise UserError(f"the bins of {name!r} are {[*edges]}", expected="finite numbers in rising order")

    def _short(self, counts: Codes, labels: Sequence[int]) -> NDArray[np.bool_]:
        """Which groups have too few rows, by `least` or by these groups."""
        several = (~_short(counts, labels, ENOUGH)).sum() > 1
        self.enough: int = (ENOUGH if several else FEWEST) if self.least is None else self.least
        return _short(counts, labels, self.enough)

    def _set_apart(self, counts: Codes, labels: Sequence[int], short: NDArray[np.bool_]) -> None:
        """Merge or drop the small groups, or refuse them."""
        sizes = {self._name(self.labels[at]): int(counts[at].sum()) for at in np.flatnonzero(short)}
        if self.small == "raise":
            raise UserError(
                f"groups with too few rows: {_counted(sizes)}",
                expected=f"at least {self.enough} rows" + (" of each compared class" if len(labels) else ""),
                do="merge or drop them: small_groups='merge' or 'drop'.",
            )
        union = counts[short].sum(axis=0, keepdims=True)
        merged = self.small == "merge" and short.sum() > 1 and not _short(union, labels, self.enough)[0]
        kept = np.flatnonzero(~short)
        if len(self.labels) > 1 and len(kept) + merged < 2:
            raise UserError(
                f"fewer than two groups have enough rows; too few are in {_counted(sizes)}",
                expected=f"at least {self.enough} rows" + (" of each compared class" if len(labels) else ""),
                do="give more rows, fewer or wider groups, or a smaller min_group_size.",
            )
        place = np.full(len(self.labels), NOT_COMPARED)
        place[kept] = np.arange(len(kept))
        if merged:
            place[short] = len(kept)
        taken = [self.labels[at] for at in kept]
        self.place = place.tolist()
        self.labels = [*taken, OTHER if OTHER not in taken else f"{OTHER} groups"] if merged else taken
        self.merged, self.dropped = (sizes, {}) if merged else ({}, sizes)

    def _name(self, label: Any) -> str:
        # models of earlier versions lack the names
        columns = getattr(self, "columns", [""] * len(self.values))
        if not isinstance(label, tuple) and len(columns) > 1:
            return str(label)
        parts = label if isinstance(label, tuple) else (label,)
        return ", ".join(
            f"{column} {part}" if column and part != OTHER and _says_nothing(values, edges) else str(part)
            for column, part, values, edges in zip(columns, parts, self.values, self.edges, strict=True)
        )

    def _continuous(self, column: NDArray[Any]) -> bool:
        if column.dtype.kind not in "fiu":
            return False
        numbers = np.unique(column)
        many = len(numbers) > min(self.max_values, len(column) // 10)
        return len(numbers) > 2 and (many or bool((numbers % 1 != 0).any()))

    def _crossed(self, columns: list[SensitiveColumn]) -> Codes:
        parts = []
        for index, (column, values, edges) in enumerate(zip(columns, self.values, self.edges, strict=True)):
            parts.append(np.where(column.missing, NOT_COMPARED, _codes(index, column.values, values, edges)))
        crossed = np.ravel_multi_index([np.maximum(part, 0) for part in parts], [len(v) for v in self.values])
        lowest = np.min(parts, axis=0)
        return np.where(lowest < 0, lowest, crossed).astype(np.intp)

    def _found(self, crossed: Codes) -> Codes:
        """Codes of groups from codes of all combinations of values."""
        at = np.minimum(np.searchsorted(self.present, crossed), len(self.present) - 1)
        place = getattr(self, "place", None)
        place = np.arange(len(self.present)) if place is None else np.asarray(place)
        known = np.asarray(self.present)[at] == crossed
        found: Codes = np.where(known, place[at], np.minimum(crossed, UNSEEN)).astype(np.intp)
        return found


def check_every_class(
    codes: Codes,
    y_codes: Codes,
    labels: list[Any],
    classes: NDArray[Any],
    weights: Any = None,
    least: int = 1,
    needed: Sequence[int] | None = None,
) -> None:
    """Raise where a group has fewer than `least` rows of a needed class, not counting rows of weight 0.

    All classes are needed by default; of none, the rows of a group are counted together.
    """
    counts = _cell_counts(codes, y_codes, len(labels), weights, len(classes))
    judged = range(len(classes)) if needed is None else needed
    lacking = np.argwhere(counts[:, judged] < least) if len(judged) else np.argwhere(counts.sum(axis=1) < least)
    if len(lacking):
        group = lacking[0][0]
        others = f" (and {len(lacking) - 1} more such cells)" if len(lacking) > 1 else ""
        rows = "rows" if weights is None or (weights > 0).all() else "rows of weight above 0"
        if len(judged):
            label = judged[lacking[0][1]]
            few = f"{counts[group, label]} {rows} of class {classes.tolist()[label]!r} among its {counts[group].sum()}"
        else:
            few = f"{counts[group].sum()} {rows}"
        raise UserError(
            f"group {group_name(labels[group])!r} has {few}{others}",
            do=f"expected at least {least}. Merge it with another group, or drop it.",
        )


def _cell_counts(codes: Codes, y_codes: Codes, n_groups: int, weights: Any, n_classes: int | None = None) -> Codes:
    """Rows by group and label, without rows of weight 0 and rows in no group."""
    counts = np.zeros((n_groups, int(y_codes.max()) + 1 if n_classes is None else n_classes), dtype=np.intp)
    inside = codes >= 0
    ones = np.ones(len(codes), dtype=np.intp) if weights is None else (np.asarray(weights) > 0).astype(np.intp)
    np.add.at(counts, (codes[inside], y_codes[inside]), ones[inside])
    return counts


def _short(counts: Codes, needed: Sequence[int], least: int) -> NDArray[np.bool_]:
    """Which groups have fewer than `least` rows of a needed label, or at all where none is needed."""
    judged = counts[:, [*needed]] if len(needed) else counts.sum(axis=1, keepdims=True)
    return np.asarray((judged < least).any(axis=1))


def _counted(sizes: Mapping[str, int]) -> str:
    """Names of groups with their rows, the first five."""
    listed = [f"{name!r} ({rows:,})" for name, rows in [*sizes.items()][:5]]
    return ", ".join(listed) + (f" and {len(sizes) - 5} more" if len(sizes) > 5 else "")


def _says_nothing(values: list[Any], edges: list[float] | None) -> bool:
    """Whether values need the name of their column: numbers, bins, and words such as yes and no."""
    return edges is not None or all(not isinstance(value, str) or PLAIN.fullmatch(value) for value in values)


def rows_with_groups(X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
    """The rows whose group is known, of X, y, the groups and the weights; all but y may be None.

    Examples
    --------
    >>> rows_with_groups(None, [0, 1, 1], ["f", None, "m"], None)[1:3]
    ([0, 1], ['f', 'm'])
    """
    columns = [] if sensitive_features is None else sensitive_columns(sensitive_features)
    missing = np.any([column.missing for column in columns], axis=0)
    if not missing.any():
        return X, y, sensitive_features, sample_weight
    rows = np.flatnonzero(~missing)
    if len(missing) != _num_samples(y):
        raise UserError(
            f"sensitive_features has {len(missing)} rows, y has {_num_samples(y)}", expected="one group for each row"
        )
    X, y, groups, weights = (
        None if part is None else _safe_indexing(part, rows) for part in (X, y, sensitive_features, sample_weight)
    )
    return X, y, groups, weights


def group_frequencies(
    codes: Codes, y_codes: Codes, shape: tuple[int, int], weights: NDArray[np.float64], smoothing: float
) -> NDArray[np.float64]:
    """p(y | group), shrunk towards p(y) by `smoothing` pseudo-rows for each group.

    ``(n[u, y] + smoothing * p(y)) / (n[u] + smoothing)``

    Examples
    --------
    >>> one, two = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    >>> group_frequencies(one, two, (2, 2), np.ones(4), 0.0).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    counts = np.zeros(shape)
    inside = codes >= 0
    np.add.at(counts, (codes[inside], y_codes[inside]), weights[inside])
    prior = counts.sum(axis=0) / counts.sum()
    frequencies: NDArray[np.float64] = (counts + smoothing * prior) / (counts.sum(axis=1, keepdims=True) + smoothing)
    return frequencies


def _cut(column: NDArray[Any], y_codes: Codes, n_bins: int, least: int, needed: Sequence[int]) -> list[float]:
    """Inner edges of quantile bins, each bin with at least `least` rows of every needed class."""
    if not np.isfinite(column).all():
        raise UserError(
            f"sensitive_features has {int((~np.isfinite(column)).sum())} infinite numbers in a column that is cut at "
            "quantiles",
            do="drop those rows, or give them a finite number.",
        )
    inner = np.unique(np.quantile(column, np.linspace(0, 1, n_bins + 1)[1:-1]))
    n_classes = max(int(y_codes.max()), *needed, 0) + 1

    def enough(inside: NDArray[np.bool_]) -> bool:
        return not _short(np.bincount(y_codes[inside], minlength=n_classes)[None], needed, least)[0]

    kept: list[float] = []
    for edge in inner.tolist():
        low = kept[-1] if kept else -np.inf
        if enough((column >= low) & (column < edge)):
            kept.append(edge)
    # the bin above the last edge must have every class too
    while kept and not enough(column >= kept[-1]):
        kept.pop()
    return kept


def _bin_names(edges: list[float], whole: bool) -> list[str]:
    """Names of bins; an edge belongs to the bin above it. In whole numbers the last one of each bin is named."""
    if not edges:
        return ["all"]
    firsts = [np.ceil(edge) if whole else edge for edge in edges]
    first = [f"{edge:g}" if abs(edge) < 1e6 else f"{edge:.12g}" for edge in firsts]
    if not whole:
        between = [f"{low} to below {high}" for low, high in pairwise(first)]
    else:
        between = [
            f"{low}" if start == end - 1 else f"{low} to {end - 1:.12g}"
            for low, (start, end) in zip(first, pairwise(firsts), strict=False)
        ]
    return [f"below {first[0]}", *between, f"{first[-1]} and above"]


def _codes(index: int, column: NDArray[Any], values: list[Any], edges: list[float] | None) -> Codes:
    for value in column[:1].tolist():  # all values of a column are of one kind, otherwise they could not be sorted
        found, fitted = _kind(value), "numbers" if edges is not None else _kind(values[0])
        if found != fitted:
            # not converted: '01', '1.0' and 'True' may or may not mean 1
            known = "" if edges is not None else f", such as {values[0]!r}"
            raise UserError(
                f"sensitive_features column {index} holds {found}, such as {value!r}, where {fitted} were fitted"
                f"{known}",
                do=f"convert the column to {fitted}, as at fit time.",
            )
    if edges is not None:
        return np.searchsorted(edges, column, side="right").astype(np.intp)
    where = {value: code for code, value in enumerate(values)}
    present, inverse = distinct(column)
    return np.array([where.get(value, -1) for value in present.tolist()], dtype=np.intp)[inverse]


def _kind(value: Any) -> str:
    """The kind of a group's value: values of different kinds are never equal; 1, 1.0 and True are."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, Number | np.bool_):
        return "numbers"
    return "dates" if isinstance(value, date) else f"values of type {type(value).__name__}"

"""Encode a frame of any columns as the numbers that a model takes; how well one column alone predicts the label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

from setminus.errors import UserError
from setminus.estimators.sklearn_bases import BaseEstimator, TransformerMixin
from setminus.tables.columns import (
    KEPT,
    ColumnKind,
    ColumnSummary,
    check_names,
    describe,
    distinct_words,
    from_frame,
    to_days,
    to_flags,
    to_numbers,
    to_text,
)

__all__ = ["LEAK", "NUMBERS", "TableEncoder", "learned_columns", "level_words", "single_column_auc"]

Floats = NDArray[np.float64]

NUMBERS = {"number": to_numbers, "date": to_days, "yes/no": to_flags}
"""The conversion to numbers for each kind but a category."""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode frames of pandas, polars or arrow as float64 arrays, without identifiers and constant columns.

    Parameters
    ----------
    form : {"ordinal", "onehot"}, default="ordinal"
        "ordinal" is for gradient boosting: numbers as they are, categories as codes, NaN for missing values and unseen
        levels. "onehot" is for linear models: numbers scaled to mean 0 and deviation 1, with the median for a missing
        value and a column that marks it; one column for each level of a category and one for missing; an unseen level
        is 0 in all of them.
    kinds : mapping of str to str, optional
        The kind of each column by name, as in `describe`; columns that are not in it are left out. By default
        determined in `fit`, which may differ from fold to fold in a cross-validation: give them there.

    Attributes
    ----------
    columns_ : list of dict
        What was learned of each column that is kept: its `kind`, the fraction of rows without a value (`missing`), the
        `levels` of a category, or the range (`low`, `high`) and the scale of a number. See `column_drift`.
    categorical_mask_ : ndarray of bool
        Which output columns are codes of categories, for ``HistGradientBoostingClassifier(categorical_features=)``.
    feature_names_in_ : ndarray of str
    n_features_in_ : int

    Examples
    --------
    >>> people = pa.table({"age": [39, 50, None], "sex": ["m", "f", "f"]})
    >>> TableEncoder().fit_transform(people)
    array([[39.,  1.],
           [50.,  0.],
           [nan,  0.]])
    >>> TableEncoder("onehot").fit(people).get_feature_names_out().tolist()
    ['age', 'age missing', 'sex=f', 'sex=m']
    """

    feature_names_in_: NDArray[Any]
    n_features_in_: int
    columns_: list[dict[str, Any]]
    categorical_mask_: NDArray[np.bool_]

    def __init__(
        self, form: Literal["ordinal", "onehot"] = "ordinal", *, kinds: Mapping[str, ColumnKind] | None = None
    ):
        self.form = form
        self.kinds = kinds

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn the kinds, the levels and the scales of the columns."""
        if self.form not in ("ordinal", "onehot"):
            raise UserError(f"form is {self.form!r}", expected="'ordinal' or 'onehot'")
        table = from_frame(X)
        kinds = {c.name: c.kind for c in describe(table)} if self.kinds is None else dict(self.kinds)
        check_names(kinds, table.column_names, "X")
        self.feature_names_in_ = np.array(table.column_names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.columns_ = [
            _learned(name, kinds[name], table.column(name))
            for name in table.column_names
            if kinds.get(name, "other") in KEPT
        ]
        if not self.columns_:
            raise UserError(
                "no column is left to learn from", do="every one has a single value, or a new value in each row."
            )
        categorical = [column["kind"] == "category" for column in self.columns_]
        self.categorical_mask_ = np.array(categorical) & (self.form == "ordinal")
        if self.form == "onehot":
            self.categorical_mask_ = np.zeros(len(self.get_feature_names_out()), dtype=bool)
        return self

    def transform(self, X: Any) -> Floats:
        """The array of a frame that has the kept columns, in any order, and perhaps others.

        Returns
        -------
        ndarray of shape (n, d)
        """
        check_is_fitted(self)
        table = from_frame(X)
        check_names([column["name"] for column in self.columns_], table.column_names, "X")
        fill = _fill_ordinal if self.form == "ordinal" else _fill_onehot
        ends = np.cumsum([0, *(len(self._names_out(column)) for column in self.columns_)]).tolist()
        # filled in place: side by side at the end, blocks would be copied once more
        encoded = np.zeros((table.num_rows, ends[-1]))
        for column, (start, stop) in zip(self.columns_, pairwise(ends), strict=True):
            fill(encoded[:, start:stop], column, table.column(column["name"]))
        return encoded

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the output columns."""
        check_is_fitted(self, "columns_")
        return np.array([name for column in self.columns_ for name in self._names_out(column)], dtype=object)

    def _names_out(self, column: dict[str, Any]) -> list[str]:
        name = column["name"]
        if self.form == "ordinal":
            return [name]
        names = [f"{name}={level}" for level in column["levels"]] if column["kind"] == "category" else [name]
        return [*names, f"{name} missing"] if column["missing"] else names


def level_words(column: dict[str, Any]) -> pa.Array:
    """The levels of a category, in the order of their codes."""
    # models saved before text was trimmed hold levels with spaces around them
    return pc.utf8_trim_whitespace(pa.array(column["levels"], pa.string()))


def learned_columns(model: Any) -> list[dict[str, Any]]:
    """What the encoders in a model learned of each column; the first encoder that knows a column counts.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> encoder = TableEncoder().fit(pa.table({"age": [39, 50, None]}))
    >>> [column["name"] for column in learned_columns(make_pipeline(encoder, "passthrough"))]
    ['age']
    """
    known: dict[str, dict[str, Any]] = {}
    for encoder in _encoders(model):
        for column in encoder.columns_:
            known.setdefault(column["name"], column)
    return list(known.values())


def _encoders(part: Any) -> list[TableEncoder]:
    """The fitted encoders in a model: in its pipelines, its principals and its other parts."""
    if isinstance(part, TableEncoder):
        return [part] if hasattr(part, "columns_") else []
    if isinstance(part, BaseEstimator):
        part = vars(part).values()
    elif not isinstance(part, (list, tuple)):
        return []
    return [encoder for inner in part for encoder in _encoders(inner)]


def _learned(name: str, kind: ColumnKind, values: pa.ChunkedArray) -> dict[str, Any]:
    """What to remember of a column, in plain types that can be saved."""
    if kind == "category":
        words = to_text(values)
        levels = sorted(word for word in pc.unique(words).to_pylist() if word is not None)
        return {"name": name, "kind": kind, "levels": levels, "missing": words.null_count / max(1, len(words))}
    numbers = NUMBERS[kind](values, name)
    present = numbers[~np.isnan(numbers)]
    filled = float(np.median(present)) if len(present) else 0.0
    complete = np.where(np.isnan(numbers), filled, numbers)
    return {
        "name": name,
        "kind": kind,
        "missing": float(np.isnan(numbers).mean()),
        "median": filled,
        "mean": float(complete.mean()),
        "deviation": float(complete.std()) or 1.0,
        "low": float(present.min(initial=np.inf)),
        "high": float(present.max(initial=-np.inf)),
        "clock": pa.types.is_time(values.type),
    }


def _codes(column: dict[str, Any], values: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The code of each row's level, -1 for none, and which rows are missing."""
    words, places = distinct_words(values)
    codes = pc.fill_null(pc.index_in(words, value_set=level_words(column)), -1).to_numpy().astype(np.int64)
    return codes[places], pc.is_null(words).to_numpy()[places]


def _fill_ordinal(block: Floats, column: dict[str, Any], values: pa.ChunkedArray) -> None:
    if column["kind"] == "category":
        codes, _ = _codes(column, values)
        block[:, 0] = np.where(codes < 0, np.nan, codes)
    else:
        block[:, 0] = NUMBERS[column["kind"]](values, column["name"])


def _fill_onehot(block: Floats, column: dict[str, Any], values: pa.ChunkedArray) -> None:
    """Write into a block of zeros."""
    if column["kind"] == "category":
        codes, missing = _codes(column, values)
        known = np.flatnonzero(codes >= 0)
        block[known, codes[known]] = 1
    else:
        numbers = NUMBERS[column["kind"]](values, column["name"])
        missing = np.isnan(numbers)
        block[:, 0] = (np.where(missing, column["median"], numbers) - column["mean"]) / column["deviation"]
    if column["missing"]:
        block[:, -1] = missing


LEAK = 0.99
"""The area under the ROC curve of one column from which a warning is given."""

MAX_ROWS, BINS = 50_000, 50
"""Rows that are looked at, and quantile bins of a number."""

MIN_ROWS = 20
"""Rows of a class on either side of the split, below which its AUC is a guess."""


def single_column_auc(table: pa.Table, columns: Sequence[ColumnSummary], y: NDArray[Any]) -> dict[str, float]:
    """How well each column alone predicts the label: the largest AUC of a class against all others.

    The rate of the class in each bin or level is counted on every second row, and the AUC of these rates is taken on
    the others: levels that name rows do not help.

    Parameters
    ----------
    table : pyarrow.Table
    columns : sequence of ColumnSummary
        Those to look at.
    y : ndarray of shape (n,)

    Returns
    -------
    dict of str to float
        By column; columns whose AUC cannot be measured are left out.

    Examples
    --------
    >>> from setminus.tables.columns import describe
    >>> people = pa.table({"paid": ["no", "yes"] * 50})
    >>> single_column_auc(people, describe(people), np.array([0, 1] * 50))
    {'paid': 1.0}
    """
    kinds = {column.name: column.kind for column in columns if column.kept}
    if not kinds:
        return {}
    order = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS]
    rows = table.select([*kinds]).take(order)
    classes, codes = np.unique(y[order], return_inverse=True)
    values = TableEncoder("ordinal", kinds=kinds).fit_transform(rows)
    half = len(order) // 2
    found = {}
    for at, (name, kind) in enumerate(kinds.items()):
        bins = _bins(values[:, at], kind != "category")
        aucs = [_auc(bins, codes == k, half) for k in range(1 if len(classes) == 2 else 0, len(classes))]
        measured = [auc for auc in aucs if auc is not None]
        if measured:
            found[name] = max(measured)
    return found


def _bins(column: Floats, number: bool) -> NDArray[np.intp]:
    """The level of each row, or its bin between quantiles; missing is one more."""
    missing = np.isnan(column)
    if not number or missing.all():
        return np.where(missing, -1, column).astype(np.intp) + 1
    edges = np.unique(np.quantile(column[~missing], np.linspace(0, 1, BINS + 1), method="lower"))
    return np.where(missing, 0, np.searchsorted(edges, column, side="right") + 1).astype(np.intp)


def _auc(bins: NDArray[np.intp], positive: NDArray[np.bool_], half: int) -> float | None:
    """The AUC on the second half of the rate of positive rows in each bin of the first half."""
    hits = np.bincount(bins[:half], positive[:half], minlength=bins.max() + 1)
    sizes = np.bincount(bins[:half], minlength=bins.max() + 1)
    n, n_positive = len(bins) - half, int(positive[half:].sum())
    if min(n_positive, n - n_positive, int(positive[:half].sum())) < MIN_ROWS:
        return None
    # towards the rate of all rows, which a bin without rows has
    score = ((hits + positive[:half].mean()) / (sizes + 1))[bins[half:]]
    ranks = rankdata(score)[positive[half:]].sum()
    return float((ranks - n_positive * (n_positive + 1) / 2) / (n_positive * (n - n_positive)))

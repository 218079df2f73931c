"""Rows that look like those a saved model was fitted on, drawn from what its encoders and groups learned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from setminus.errors import UserError
from setminus.estimators.groups import Groups
from setminus.tables.encoding import learned_columns, level_words

__all__ = ["sample_rows"]

MISSING, UNSEEN = 0.1, 0.05
"""Shares of the values of a column that are missing, and that training did not have."""


def sample_rows(model: Any, n_rows: int = 2000, seed: int = 0) -> pa.Table:
    """A table with the columns of a model: random values of training, missing ones, and unseen ones.

    Groups that the model reads are always known or missing, since an unseen one may be refused.

    Parameters
    ----------
    model : classifier
        Fitted; its columns are in a `TableEncoder`, or in the groups of a principal.
    n_rows : int
    seed : int

    Examples
    --------
    >>> from setminus.tables.encoding import TableEncoder
    >>> encoder = TableEncoder().fit(pa.table({"age": [39, 50], "sex": ["f", "m"]}))
    >>> sample_rows(encoder, 3).schema.types
    [DataType(double), DataType(string)]
    """
    rng = np.random.default_rng(seed)
    known = {column["name"]: column for column in learned_columns(model)}
    groups = _sensitive(model)
    names = list(getattr(model, "feature_names_in_", [])) or [*known, *groups]
    unknown = [name for name in names if name not in known and name not in groups]
    if unknown or not names:
        what = f"the values of the column {unknown[0]!r}" if unknown else "the columns"
        raise UserError(f"the model does not say {what}", do="give rows of its training table: --sample TABLE")
    columns = {}
    for name in names:
        values = _group_values(groups[name], n_rows, rng) if name in groups else _values(known[name], n_rows, rng)
        missing = rng.random(n_rows) < MISSING
        # of the group only a few: each is a row without a correction
        columns[name] = pa.array([None if gone else value for value, gone in zip(values, missing, strict=True)])
    return pa.table(columns)


def _sensitive(model: Any) -> dict[str, tuple[Groups, int]]:
    """The columns that a model reads its groups from, with their place among them."""
    inner = getattr(model, "model_", model)
    names = getattr(inner, "sensitive_columns", None) or []
    groupings = getattr(inner, "groupings", None)
    learned = [groupings.crossed] if groupings is not None else []
    learned += [part.groups_ for part in getattr(inner, "principals_", []) if hasattr(part, "groups_")]
    return {name: (learned[0], at) for at, name in enumerate(names)} if learned else {}


def _group_values(place: tuple[Groups, int], n: int, rng: np.random.Generator) -> list[Any]:
    groups, at = place
    # of groups that occurred: another combination of values is unseen
    crossed = rng.choice(groups.present, n)
    codes = np.unravel_index(crossed, [len(values) for values in groups.values])[at]
    edges = groups.edges[at]
    if edges is None:
        return [groups.values[at][code] for code in codes]
    ends = np.array([edges[0] - 1, *edges]) if edges else np.zeros(1)
    return [float(end) for end in ends[codes]]


def _values(column: dict[str, Any], n: int, rng: np.random.Generator) -> list[Any]:
    unseen = rng.random(n) < UNSEEN
    if column["kind"] in ("category", "yes/no"):
        words = level_words(column).to_pylist() if column["kind"] == "category" else ["yes", "no", "True", "0"]
        drawn = [words[at] for at in rng.integers(0, len(words), n)]
        return ["a word that training did not have" if new else word for word, new in zip(drawn, unseen, strict=True)]
    low, high = column.get("low", column["mean"] - column["deviation"]), column.get("high", column["mean"])
    width = max(high - low, 1.0)
    numbers = np.where(unseen, high + width, low + width * rng.random(n))
    # half of them whole, as thresholds of trees lie between whole numbers
    numbers = np.where(rng.random(n) < 0.5, np.round(numbers), numbers)
    if column["kind"] == "number":
        return [float(number) for number in numbers]
    start = datetime(1970, 1, 1, tzinfo=UTC)
    moments = [start + timedelta(days=float(number) % 1 if column["clock"] else float(number)) for number in numbers]
    return [moment.time() if column["clock"] else moment.replace(tzinfo=None) for moment in moments]

"""UCI Adult and German credit: the paper's 0/1 encoding, codes for gradient boosting, or the plain table."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setminus.datasets.sources import read_bytes
from setminus.datasets.split import Split
from setminus.errors import UserError

Encoding = Literal["onehot", "raw"]
Table = dict[str, NDArray[Any]]

MISSING = "?"

# the columns in the order of the files: quantities are float, categories are str
ADULT_COLUMNS: dict[str, type] = {
    "age": float,
    "workclass": str,
    "fnlwgt": float,
    "education": str,
    "education-num": float,
    "marital-status": str,
    "occupation": str,
    "relationship": str,
    "race": str,
    "sex": str,
    "capital-gain": float,
    "capital-loss": float,
    "hours-per-week": float,
    "native-country": str,
    "income": str,
}
GERMAN_COLUMNS: dict[str, type] = {
    "checking": str,
    "duration": float,
    "history": str,
    "purpose": str,
    "amount": float,
    "savings": str,
    "employment": str,
    "installment-rate": float,
    "personal-status": str,
    "debtors": str,
    "residence": float,
    "property": str,
    "age": float,
    "other-installments": str,
    "housing": str,
    "existing-credits": float,
    "job": str,
    "liable": float,
    "telephone": str,
    "foreign": str,
    "credit": str,
}


def adult_table(part: Literal["train", "test"] = "train", drop_missing: bool = False) -> Table:
    """Read one of the two original files of Adult, column by column.

    Parameters
    ----------
    part : {"train", "test"}
        The file ``adult.data`` or ``adult.test``.
    drop_missing : bool
        Leave out the rows with a ``"?"``: 30,162 of 32,561 rows stay in train, 15,060 of 16,281 in test.

    Returns
    -------
    dict of str to array
        Strings or floats by column name, ready for a data frame. Missing values are ``"?"`` as in the file;
        the full stop after the labels of the test file is removed.
    """
    files = {"train": "adult.data", "test": "adult.test"}
    if part not in files:
        raise UserError(f"part is {part!r}", do="it must be 'train' or 'test'.")
    lines = read_bytes(files[part]).decode("ascii").replace(" ", "").splitlines()
    # the test file opens with a comment line, both end with an empty one
    rows = [line.removesuffix(".").split(",") for line in lines if line and not line.startswith("|")]
    if drop_missing:
        rows = [row for row in rows if MISSING not in row]
    return _table(rows, ADULT_COLUMNS)


def german_table() -> Table:
    """Read the original file of German credit, column by column.

    Returns
    -------
    dict of str to array
        1,000 entries by column name: the file's codes ("A11", ...) as strings, quantities as floats.
        ``credit`` is "1" for good and "2" for bad.
    """
    rows = [line.split() for line in read_bytes("german.data").decode("ascii").splitlines()]
    return _table(rows, GERMAN_COLUMNS)


def load_adult(*, encoding: Encoding = "onehot", drop_missing: bool | None = None) -> tuple[Split, Split]:
    """Load Adult: `y` is 1 where a person earns more than 50K a year, `z1` is the sex.

    ``encoding="onehot"`` is the paper's: 102 columns of 0 and 1. Rows with a ``"?"`` are dropped; the seven
    categorical columns other than sex become one column per category (96 in all, native country included);
    the six numeric ones, ``fnlwgt`` and ``education-num`` among them, become 1 where they exceed the median.

    ``encoding="raw"`` is for trees: 13 columns, quantities as they are, categories as codes 0, 1, ... in
    sorted order, missing ones as NaN; all rows are kept.

    Categories and medians are learned from the training rows. Sex is not among the features; other columns
    can encode it, above all relationship ("Husband", "Wife").

    Parameters
    ----------
    encoding : {"onehot", "raw"}
        How `x` is written.
    drop_missing : bool, optional
        Whether rows with a ``"?"`` are dropped; by default under "onehot". A missing category that is kept
        under "onehot" is 0 in all columns of its attribute.

    Returns
    -------
    train, test : Split
        The two original files. `y` is int, `z1` is "Female" or "Male".
    """
    if drop_missing is None:
        drop_missing = encoding == "onehot"
    features = [name for name in ADULT_COLUMNS if name not in ("income", "sex")]
    train, test = adult_table("train", drop_missing), adult_table("test", drop_missing)

    def split(table: Table) -> Split:
        y = (table["income"] == ">50K").astype(int)
        return Split(y=y, z1=table["sex"], **_encode(table, train, features, encoding))

    return split(train), split(test)


def load_german(*, encoding: Encoding = "onehot", seed: int | None = 0) -> Split:
    """Load German credit: `y` is 1 where a loan is bad, `z1` is whether a person is older than the median.

    ``encoding="onehot"`` has the paper's 58 columns of 0 and 1: the 11 attributes with three categories or
    more become one column per category (50), the two with two categories (telephone, foreign) one column
    each, the six quantities other than age become 1 where they exceed the median.

    ``encoding="raw"`` is for trees: 19 columns, quantities as they are, categories as codes 0, 1, ... in
    sorted order.

    The set has no test part: medians are those of all rows.

    Parameters
    ----------
    encoding : {"onehot", "raw"}
        How `x` is written.
    seed : int or None
        Seed of the order of the rows, so that the first rows are a random part; None keeps the file's order.

    Returns
    -------
    Split
        1,000 rows. `y` is int, `z1` is "age<=33" or "age>33".
    """
    table = german_table()
    features = [name for name in GERMAN_COLUMNS if name not in ("credit", "age")]
    median = np.median(table["age"])
    split = Split(
        y=(table["credit"] == "2").astype(int),
        z1=np.where(table["age"] > median, f"age>{median:g}", f"age<={median:g}"),
        **_encode(table, table, features, encoding),
    )
    return split if seed is None else split.take(np.random.default_rng(seed).permutation(len(split)))


def _table(rows: list[list[str]], columns: dict[str, type]) -> Table:
    return {
        name: np.array(values, dtype=kind)
        for (name, kind), values in zip(columns.items(), zip(*rows, strict=True), strict=True)
    }


def _encode(table: Table, train: Table, features: list[str], encoding: Encoding) -> dict[str, Any]:
    """Write `table` with the categories and medians of `train`: `x` and its names, as fields of `Split`."""
    categories = {
        name: tuple(sorted({*train[name].tolist()} - {MISSING})) for name in features if train[name].dtype.kind == "U"
    }
    if encoding == "onehot":
        return _onehot(table, train, features, categories)
    if encoding == "raw":
        return _raw(table, features, categories)
    raise UserError(f"encoding is {encoding!r}", do="it must be 'onehot' or 'raw'.")


def _onehot(table: Table, train: Table, features: list[str], categories: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    blocks: list[NDArray[np.bool_]] = []
    names: list[str] = []
    for name in features:
        if name in categories:
            # of two categories one column says all
            shown = categories[name][1:] if len(categories[name]) == 2 else categories[name]
            blocks.append(table[name][:, None] == np.array(shown))
            names += [f"{name}={value}" for value in shown]
        else:
            median = np.median(train[name])
            blocks.append(table[name][:, None] > median)
            names.append(f"{name}>{median:g}")
    return {"x": np.hstack(blocks).astype(float), "feature_names": tuple(names)}


def _raw(table: Table, features: list[str], categories: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    columns = []
    for name in features:
        if name in categories:
            code = {value: float(index) for index, value in enumerate(categories[name])}
            columns.append(np.array([code.get(value, np.nan) for value in table[name].tolist()]))
        else:
            columns.append(table[name])
    return {
        "x": np.column_stack(columns),
        "feature_names": tuple(features),
        "categorical": tuple(categories),
        "categories": categories,
    }

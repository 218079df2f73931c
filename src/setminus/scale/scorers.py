"""What scores the rows of a file: the formula on columns of probabilities, or a saved model."""

from __future__ import annotations

import functools
import os
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from setminus.core.checks import OnViolation
from setminus.core.orthogonalize import orthogonalize
from setminus.errors import UserError
from setminus.estimators.frontier import decide
from setminus.estimators.orthogonal import OrthogonalClassifier
from setminus.estimators.persistence import load, model_errors
from setminus.estimators.tuned import TunedOrthogonalClassifier
from setminus.tables.columns import check_names, coded_text
from setminus.tables.drift import ColumnDrift, Drift, column_drift
from setminus.tables.encoding import learned_columns
from setminus.tables.numerals import DecimalSign
from setminus.tables.reading import Table

__all__ = ["ModelScorer", "Parts", "ProbabilityScorer", "Scorer", "score_column", "score_rows"]

Parts = Generator[tuple[pa.Table, pa.Table, Drift]]
"""The rows, their scores and their drift, part by part in the order of the file."""


class Scorer(Protocol):
    """Scores the rows of a file. It is sent to worker processes, so it holds settings and no data.

    It is given the columns that it needs, with text dictionary-encoded and trimmed.
    """

    def columns(self, table: Table) -> list[str]:
        """The columns that `score` needs; raises where the table cannot be scored."""
        ...

    def score(self, rows: pa.Table) -> pa.Table:
        """One or more columns of scores, a row for each row."""
        ...

    def drift(self, rows: pa.Table) -> dict[str, ColumnDrift]:
        """How the rows differ from those of training, by column; empty where that is not known."""
        ...


def score_rows(scorer: Scorer, rows: pa.Table, start: int, where: str) -> tuple[pa.Table, Drift]:
    """The scores and the drift of one part of the file `where` that begins at row `start`.

    An error for a value names the range of rows that it is in.
    """
    try:
        rows = coded_text(rows)
        drift = scorer.drift(rows)
        scores = scorer.score(rows)
    except ValueError as error:
        place = f"in rows {start + 1:,} to {start + rows.num_rows:,} of {where}"
        if isinstance(error, UserError):
            raise UserError(f"{place}, {error.came}", error.expected, error.do) from error
        raise UserError(
            f"{place}, {str(error).rstrip('.')}", do="change those values, or leave the rows out."
        ) from error
    if scores.num_rows != rows.num_rows:
        raise UserError(f"the scorer gave {scores.num_rows} scores for {rows.num_rows} rows", expected="one for each")
    return scores, drift


def score_column(scores: NDArray[np.float64], k: int) -> pa.Array:
    """One column of an array of scores, as an arrow array.

    Examples
    --------
    >>> score_column(np.array([[0.25, 0.75]]), 1).to_pylist()
    [0.75]
    """
    return pa.array(np.ascontiguousarray(scores[:, k]))


Proba = NDArray[np.float64]


@dataclass(frozen=True)
class ProbabilityScorer:
    r"""``full \ principal`` on columns that hold probabilities already.

    Parameters
    ----------
    full, principal : sequence of str
        The columns of the full and of the principal probabilities, one for each class in the same order. A single
        column holds the probability of the second of two classes.
    prior : sequence of float, or "uniform"
        p(y) of the data that the principal classifier was fitted on.
    strength : float, default=1.0
    on_violation : {"raise", "clip", "warn"}, default="raise"
        See `orthogonalize`.
    name : str, default="orthogonal"
        The name of the scores: a single column where `full` is one, else ``orthogonal_0``, ``orthogonal_1`` ...

    Examples
    --------
    >>> rows = pa.table({"p": [0.8], "q0": [0.4], "q1": [0.6]})
    >>> ProbabilityScorer(["p"], ["q0", "q1"], "uniform").score(rows).to_pydict()
    {'orthogonal': [0.727...]}
    """

    full: Sequence[str]
    principal: Sequence[str]
    prior: Sequence[float] | str
    strength: float = 1.0
    on_violation: OnViolation = "raise"
    name: str = "orthogonal"

    def columns(self, table: Table) -> list[str]:
        """The columns of probabilities, which must be there and hold numbers."""
        for role, names in (("full", self.full), ("principal", self.principal)):
            if isinstance(names, str) or not names:
                raise UserError(f"{role} is {names!r}", do="give the names of its columns, one for each class.")
            check_names(names, table.names, table.path.name)
            for name in names:
                kind = table.schema.field(name).type
                if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                    raise UserError(f"column {name!r} holds {kind}, not probabilities", do="name a column of numbers.")
        full, principal = (max(2, len(names)) for names in (self.full, self.principal))
        if full != principal:
            raise UserError(
                f"full names {full} classes and principal {principal}", do="give both a column for the same classes."
            )
        # a wrong prior or strength is refused here, not in the first part
        even = np.full((1, full), 1 / full)
        orthogonalize(even, even, self.prior, strength=self.strength, on_violation=self.on_violation)
        return list(dict.fromkeys([*self.full, *self.principal]))

    def score(self, rows: pa.Table) -> pa.Table:
        """The orthogonal probabilities."""
        full = _stacked(rows, self.full)
        orthogonal = orthogonalize(
            full,
            _stacked(rows, self.principal),
            self.prior,
            strength=self.strength,
            on_violation=self.on_violation,
            out=np.empty_like(full),
        )
        if len(self.full) == 1:
            return pa.table({self.name: score_column(orthogonal, 1)})
        return pa.table({f"{self.name}_{k}": score_column(orthogonal, k) for k in range(len(self.full))})

    def drift(self, rows: pa.Table) -> dict[str, ColumnDrift]:
        """Nothing: there was no training."""
        return {}


def _stacked(rows: pa.Table, names: Sequence[str]) -> Proba:
    """Columns side by side; a single one gets its complement."""
    columns = [rows.column(name).cast(pa.float64()).to_numpy() for name in names]
    proba = np.empty((rows.num_rows, max(2, len(columns))))
    if len(columns) == 1:
        np.subtract(1, columns[0], out=proba[:, 0])
        proba[:, 1] = columns[0]
    else:
        for k, column in enumerate(columns):
            proba[:, k] = column
    return proba


@dataclass(frozen=True)
class ModelScorer:
    """A saved model's probabilities, ``proba_<class>``, and its ``prediction``.

    Classes are named by the values of the label. For a model of one value against all others, as by
    ``setminus fit --positive V``, the columns are ``proba_not V`` and ``proba_V``, and predictions are ``not V`` or
    ``V``. The model is loaded once in each process. It is given an arrow table of the columns that it was fitted on.

    Parameters
    ----------
    path : path
        A file written by `setminus.save`; every worker must be able to read it.
    trusted : iterable of str
        See `setminus.load`.
    """

    path: str | os.PathLike[str]
    trusted: Iterable[str] = ()

    def __post_init__(self) -> None:
        # a worker may run in another folder
        object.__setattr__(self, "path", Path(self.path).absolute())

    def decimal(self) -> DecimalSign | None:
        """The decimal sign of the CSV that the model was fitted on, where it is known."""
        about = getattr(self._model(), "about_", {})
        match about.get("task") if isinstance(about, dict) else None:
            case {"decimal": {"sign": "." | "," as sign, "assumed": bool() as assumed}}:
                return DecimalSign(sign, assumed)
        return None

    def columns(self, table: Table) -> list[str]:
        """The columns that the model was fitted on, which must be there."""
        names = self._inputs() or list(table.names)
        check_names(names, table.names, table.path.name)
        return names

    def score(self, rows: pa.Table) -> pa.Table:
        """The probabilities of each class, and the class that the model predicts."""
        model = self._model()
        X = rows.select(self._inputs() or rows.column_names)
        with model_errors(Path(self.path).name):
            proba = np.asarray(model.predict_proba(X), dtype=np.float64)
            predicted = np.searchsorted(model.classes_, _predicted(model, X, proba))
            names = _class_names(model)
            columns = {f"proba_{name}": score_column(proba, k) for k, name in enumerate(names.tolist())}
            return pa.table({**columns, "prediction": pa.array(names[predicted])})

    def drift(self, rows: pa.Table) -> dict[str, ColumnDrift]:
        """How the rows differ from those that the encoders of the model were fitted on."""
        model = self._model()
        with model_errors(Path(self.path).name):
            return column_drift(rows, learned_columns(model))

    def _model(self) -> Any:
        path = Path(self.path)
        changed = path.stat().st_mtime_ns if path.exists() else 0
        return _loaded(path, changed, tuple(self.trusted))

    def _inputs(self) -> list[str]:
        model = self._model()
        with model_errors(Path(self.path).name):
            names = list(getattr(model, "feature_names_in_", ()))
            if not all(isinstance(name, str) for name in names):
                raise TypeError("a column whose name is no text")
            return names


@functools.lru_cache(maxsize=2)
def _loaded(path: Path, changed: int, trusted: tuple[str, ...]) -> Any:
    return load(path, trusted=trusted)


def _class_names(model: Any) -> NDArray[Any]:
    """The value of the label for each class: `fit --positive` has codes 0 and 1, a saved model may have any."""
    labels = getattr(model, "about_", {}).get("task", {}).get("labels", {})
    return np.array([labels.get(str(label), str(label)) for label in model.classes_]) if labels else model.classes_


def _predicted(model: Any, X: pa.Table, proba: Proba) -> Any:
    # our own decide by the probabilities, which need not be computed twice
    if type(model) is OrthogonalClassifier:
        return model.classes_[np.argmax(proba, axis=1)]
    if type(model) is TunedOrthogonalClassifier:
        with np.errstate(divide="ignore"):
            return model.classes_[decide(np.log(proba), model.offsets_)]
    return model.predict(X)

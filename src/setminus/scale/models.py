"""A saved model on the columns that it was fitted on."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from setminus.estimators.orthogonal import OrthogonalClassifier
from setminus.estimators.persistence import load, model_errors
from setminus.estimators.search import decide
from setminus.estimators.tuned import TunedOrthogonalClassifier
from setminus.scale.parts import score_column
from setminus.tables.drift import ColumnDrift, column_drift
from setminus.tables.encoding import TableEncoder
from setminus.tables.errors import check_names
from setminus.tables.numerals import DecimalSign
from setminus.tables.reading import Table

__all__ = ["ModelScorer"]

Proba = NDArray[np.float64]


@dataclass(frozen=True)
class ModelScorer:
    """A saved model's probabilities, ``proba_<class>``, and its ``prediction``.

    Classes are called by the label's own values: of a model that was fitted for one value against all others, as by
    ``setminus fit --positive V``, the columns are ``proba_not V`` and ``proba_V``, and predictions are ``not V`` or
    ``V``. The model is loaded once in each process. It is given an arrow table of the columns that it was fitted on.

    Parameters
    ----------
    path : path
        What `setminus.save` wrote; must be there for every worker.
    trusted : iterable of str
        See `setminus.load`.
    sensitive : sequence of str
        Columns to pass as `sensitive_features`, for a model that needs them and does not read them from X itself.
    """

    path: str | os.PathLike[str]
    trusted: Iterable[str] = ()
    sensitive: Sequence[str] = ()

    def __post_init__(self) -> None:
        # a worker may stand in another folder
        object.__setattr__(self, "path", Path(self.path).absolute())

    def decimal(self) -> DecimalSign | None:
        """The decimal sign of the text table that the model was fitted on, where it says so."""
        about = getattr(self._model(), "about_", {})
        match about.get("task") if isinstance(about, dict) else None:
            case {"decimal": {"sign": "." | "," as sign, "assumed": bool() as assumed}}:
                return DecimalSign(sign, assumed)
        return None

    def columns(self, table: Table) -> list[str]:
        """The columns that the model was fitted on, which must be there."""
        names = self._inputs() or list(table.names)
        check_names([*names, *self.sensitive], table.names, table.path.name)
        return list(dict.fromkeys([*names, *self.sensitive]))

    def score(self, rows: pa.Table) -> pa.Table:
        """The probabilities of each class, and the class that the model predicts."""
        model = self._model()
        X = rows.select(self._inputs() or rows.column_names)
        groups = {"sensitive_features": rows.select(list(self.sensitive))} if self.sensitive else {}
        with model_errors(Path(self.path).name):
            proba = np.asarray(model.predict_proba(X, **groups), dtype=np.float64)
            predicted = np.searchsorted(model.classes_, _predicted(model, X, proba, groups))
            names = _class_names(model)
            columns = {f"proba_{name}": score_column(proba, k) for k, name in enumerate(names.tolist())}
            return pa.table({**columns, "prediction": pa.array(names[predicted])})

    def drift(self, rows: pa.Table) -> dict[str, ColumnDrift]:
        """How the rows differ from those that the encoders of the model were fitted on."""
        model = self._model()
        with model_errors(Path(self.path).name):
            return column_drift(rows, _known_columns(model))

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
    """The label's own value for each class; codes 0 and 1 are what `fit` learns from where one value counts."""
    labels = getattr(model, "about_", {}).get("task", {}).get("labels", {})
    return np.array([labels["0"], labels["1"]]) if labels else model.classes_


def _known_columns(model: Any) -> list[dict[str, Any]]:
    """What was learned of each column; a full model that was there before comes first, as in the attributes."""
    known: dict[str, dict[str, Any]] = {}
    for encoder in _encoders(model):
        for column in encoder.columns_:
            known.setdefault(column["name"], column)
    return list(known.values())


def _encoders(part: Any) -> list[TableEncoder]:
    """The fitted encoders in a model: in its pipelines, its principals, and what else it is made of."""
    if isinstance(part, TableEncoder):
        return [part] if hasattr(part, "columns_") else []
    if isinstance(part, BaseEstimator):
        part = vars(part).values()
    elif not isinstance(part, (list, tuple)):
        return []
    return [encoder for inner in part for encoder in _encoders(inner)]


def _predicted(model: Any, X: pa.Table, proba: Proba, groups: dict[str, Any]) -> Any:
    # our own decide by the probabilities, which need not be computed twice
    if type(model) is OrthogonalClassifier:
        return model.classes_[np.argmax(proba, axis=1)]
    if type(model) is TunedOrthogonalClassifier:
        with np.errstate(divide="ignore"):
            return model.classes_[decide(np.log(proba), model.offsets_)]
    return model.predict(X, **groups)

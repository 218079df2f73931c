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

from setminus.estimators.orthogonal import OrthogonalClassifier
from setminus.estimators.persistence import load
from setminus.estimators.search import decide
from setminus.estimators.tuned import TunedOrthogonalClassifier
from setminus.scale.parts import score_column
from setminus.tables.errors import check_names
from setminus.tables.reading import Table

__all__ = ["ModelScorer"]

Proba = NDArray[np.float64]


@dataclass(frozen=True)
class ModelScorer:
    """A saved model's probabilities, ``proba_<class>``, and its ``prediction``.

    The model is loaded once in each process. It is given an arrow table of the columns that it was fitted on.

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
        proba = np.asarray(model.predict_proba(X, **groups), dtype=np.float64)
        columns = {f"proba_{label}": score_column(proba, k) for k, label in enumerate(model.classes_.tolist())}
        return pa.table({**columns, "prediction": pa.array(_predicted(model, X, proba, groups))})

    def _model(self) -> Any:
        path = Path(self.path)
        changed = path.stat().st_mtime_ns if path.exists() else 0
        return _loaded(path, changed, tuple(self.trusted))

    def _inputs(self) -> list[str]:
        return list(getattr(self._model(), "feature_names_in_", ()))


@functools.lru_cache(maxsize=2)
def _loaded(path: Path, changed: int, trusted: tuple[str, ...]) -> Any:
    return load(path, trusted=trusted)


def _predicted(model: Any, X: pa.Table, proba: Proba, groups: dict[str, Any]) -> Any:
    # our own decide by the probabilities, which need not be computed twice
    if type(model) is OrthogonalClassifier:
        return model.classes_[np.argmax(proba, axis=1)]
    if type(model) is TunedOrthogonalClassifier:
        with np.errstate(divide="ignore"):
            return model.classes_[decide(np.log(proba), model.offsets_)]
    return model.predict(X, **groups)

"""A set split by a seed, with the base model and the scores that the methods share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.fairness_sets import Set, load
from benchmarks.libraries import Scored
from setminus.datasets.tabular import load_adult
from setminus.files import atomic_write

FOLDS = 5
TEST_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a set: features, labels of 0 and 1, and groups by name."""

    x: NDArray[np.float64]
    y: NDArray[np.int64]
    u: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Task:
    """One split of one set; the shared scores are computed when first needed.

    Attributes
    ----------
    data : Set
    seed : int
        Seed of the split, the models and the folds.
    train, test : Part
        Rows to learn and tune on, and rows to measure on.
    scores : Path or None
        A folder where scores are kept for later runs.
    """

    data: Set
    seed: int
    train: Part
    test: Part
    scores: Path | None = None

    @property
    def model(self) -> Any:
        """The base model, not fitted: scikit-learn's gradient boosting with its defaults and categorical columns."""
        return HistGradientBoostingClassifier(categorical_features=self.data.categorical, random_state=self.seed)

    @property
    def group_model(self) -> Any:
        """The same for a table with the label as one more column."""
        columns = np.append(self.data.categorical, False)
        return HistGradientBoostingClassifier(categorical_features=columns, random_state=self.seed)

    @cached_property
    def labels(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """p(y=1 | x) out of fold for training rows and by a model of all of them for test rows, and the seconds."""
        return self._kept("label", self._label_scores)

    @cached_property
    def groups(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """p(u | y, x) in the same way, of shape (n, 2, groups)."""
        return self._kept("group", self._group_scores)

    def scored(self, inferred: bool) -> tuple[Scored, Scored, float]:
        """Training and test rows for post-processing, and the seconds of the models behind them."""
        learned, new, seconds = self.labels
        given: list[Any] = [None, None]
        if inferred:
            *given, more = self.groups
            seconds += more
        parts = zip((learned, new), given, (self.train, self.test), strict=True)
        tune, test = (Scored(np.column_stack([1 - p, p]), part.y, part.u, g) for p, g, part in parts)
        return tune, test, seconds

    def remembered(self) -> tuple[Remembered, Remembered, NDArray[np.float64], NDArray[np.float64]]:
        """Models of label and group that repeat the shared scores, and the training and test rows for them."""
        tune, test, _ = self.scored(inferred=True)
        labels, groups = (
            np.concatenate([part[:, columns] for part in (tune.with_groups, test.with_groups)])
            for columns in (slice(0, 2), slice(2, None))
        )
        numbers = np.arange(len(labels), dtype=float)[:, None]
        learned = len(self.train.y)
        return (
            Remembered(labels, np.array([0, 1])),
            Remembered(groups, np.unique(self.train.u)),
            numbers[:learned],
            numbers[learned:],
        )

    def _label_scores(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        train, out = self.train, np.empty(len(self.train.y))
        for fit, score in self._folds():
            out[score] = self.model.fit(train.x[fit], train.y[fit]).predict_proba(train.x[score])[:, 1]
        return out, self.model.fit(train.x, train.y).predict_proba(self.test.x)[:, 1]

    def _group_scores(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        train = self.train
        out = np.empty((len(train.y), 2, len(np.unique(train.u))))
        table = np.column_stack([train.x, train.y])
        for fit, score in self._folds():
            out[score] = _given_labels(self.group_model.fit(table[fit], train.u[fit]), train.x[score])
        return out, _given_labels(self.group_model.fit(table, train.u), self.test.x)

    def _folds(self) -> Any:
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=self.seed)
        return folds.split(self.train.x, _strata(self.train.y, self.train.u))

    def _kept(self, kind: str, compute: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        path = self.scores / f"{self.data.name}-{self.seed}-{kind}.npz" if self.scores else None
        if path is not None and path.exists():
            with np.load(path) as kept:
                return kept["train"], kept["test"], float(kept["seconds"])
        start = time.perf_counter()
        train, test = compute()
        seconds = time.perf_counter() - start
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as partial, partial.open("wb") as file:
                np.savez(file, train=train, test=test, seconds=seconds)
        return train, test, seconds


class Remembered(ClassifierMixin, BaseEstimator):
    """A classifier that repeats known scores: its rows are row numbers.

    It gives an estimator that fits models out of fold the same scores as every other method, each from a model that has
    not seen the row.
    """

    def __init__(self, table: NDArray[np.float64], classes: NDArray[Any]):
        self.table = table
        self.classes = classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Remembered:
        """Learn nothing."""
        self.classes_ = self.classes
        return self

    def predict_proba(self, X: Any) -> Any:
        """The scores of the rows with these numbers."""
        return self.table[np.asarray(X)[:, 0].astype(int)]

    def predict(self, X: Any) -> Any:
        """The most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def split(name: str, seed: int, scores: Path | None = None) -> Task:
    """A set by its name, split 70 to 30 and stratified by label and group."""
    data = load(name)
    rows = np.arange(len(data.y))
    strata = _strata(data.y, data.groups)
    train, test = train_test_split(rows, test_size=TEST_SHARE, random_state=seed, stratify=strata)
    parts = (Part(data.X[rows], data.y[rows], data.groups[rows]) for rows in (train, test))
    return Task(data, seed, *parts, scores=scores)


def original(seed: int) -> Task:
    """The two original files of Adult as they are; the seed moves the models and the folds only."""
    train, test = load_adult(encoding="raw")
    categorical = np.isin(train.feature_names, train.categorical)
    data = Set(train.x, train.y, np.asarray(train.z1), categorical, "adult files", "development", "income; sex")
    return Task(data, seed, *(Part(part.x, part.y, np.asarray(part.z1)) for part in (train, test)))


def _strata(y: NDArray[np.int64], u: NDArray[Any]) -> NDArray[Any]:
    return np.char.add(y.astype(str), u.astype(str))


def _given_labels(model: Any, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """p(u | y, x) for both labels, of shape (n, 2, groups)."""
    return np.stack([model.predict_proba(np.column_stack([x, np.full(len(x), y)])) for y in (0, 1)], axis=1)

"""Adult without sex among the features, split by a seed, with the base models that the methods share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks.libraries import Scored
from setminus.datasets.split import Split, random_split
from setminus.datasets.tabular import load_adult

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Adult:
    """One split with the base models that methods share; each property is computed when first needed.

    Attributes
    ----------
    seed : int
        Seed of the split, the models and the folds.
    train, test : Split
        Rows to learn and tune on, and rows to measure on.
    """

    seed: int
    train: Split
    test: Split

    @property
    def model(self) -> Any:
        """The base model, not fitted: scikit-learn's gradient boosting with its defaults and categorical columns."""
        columns = [self.train.feature_names.index(name) for name in self.train.categorical]
        return HistGradientBoostingClassifier(categorical_features=columns, random_state=self.seed)

    @cached_property
    def holdout(self) -> tuple[Split, Split]:
        """The training rows as 70 % to fit on and 30 % to tune on, for methods that need rows unseen by the model."""
        fit, tune = random_split(self.train, (0.7, 0.3), seed=self.seed)
        return fit, tune

    @cached_property
    def scored_holdout(self) -> tuple[Scored, Scored, float]:
        """The 30 % and the test rows with labels and groups predicted by models of the 70 %, and their seconds."""
        start = time.perf_counter()
        fit, tune = self.holdout
        label, group = self.model.fit(fit.x, fit.y), self.model.fit(fit.x, fit.z1)
        scored = [_scored(rows, _scores(label, group, rows)) for rows in (tune, self.test)]
        return scored[0], scored[1], time.perf_counter() - start

    @cached_property
    def scored_crossfit(self) -> tuple[Scored, Scored, float]:
        """The same with all training rows out of fold, and the test rows by models of all training rows."""
        start = time.perf_counter()
        rows = self.train
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=self.seed)
        strata = np.char.add(rows.y.astype(str), rows.z1)
        out_of_fold = np.hstack(
            [
                cross_val_predict(self.model, rows.x, target, cv=folds.split(rows.x, strata), method="predict_proba")
                for target in (rows.y, rows.z1)
            ]
        )
        label, group = self.model.fit(rows.x, rows.y), self.model.fit(rows.x, rows.z1)
        test = _scored(self.test, _scores(label, group, self.test))
        return _scored(rows, out_of_fold), test, time.perf_counter() - start


def pooled(seed: int) -> Adult:
    """Both original files shuffled together (48,842 rows) and split 70 to 30, stratified by label."""
    first, second = load_adult(encoding="raw")
    both = Split(
        x=np.concatenate([first.x, second.x]),
        y=np.concatenate([first.y, second.y]),
        z1=np.concatenate([first.z1, second.z1]),
        feature_names=first.feature_names,
        categorical=first.categorical,
        categories=first.categories,
    )
    return Adult(seed, *random_split(both, (0.7, 0.3), seed=seed))


def original(seed: int) -> Adult:
    """The two original files as they are; the seed moves the models and the folds only."""
    return Adult(seed, *load_adult(encoding="raw"))


def _scored(rows: Split, proba: NDArray[np.float64]) -> Scored:
    return Scored(proba, rows.y, rows.z1)


def _scores(label: Any, group: Any, rows: Split) -> NDArray[np.float64]:
    return np.hstack([label.predict_proba(rows.x), group.predict_proba(rows.x)])

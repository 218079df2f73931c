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

from setminus.datasets.split import Split, random_split
from setminus.datasets.tabular import load_adult

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Adult:
    """One split, and what several methods need of it; each property is computed when first asked for.

    Attributes
    ----------
    seed : int
        Of the split, the models and the folds.
    train, test : Split
        Where methods learn and tune, and where they are measured.
    """

    seed: int
    train: Split
    test: Split

    @property
    def model(self) -> Any:
        """The base model, not fitted: scikit-learn's gradient boosting as it comes, told which columns are codes."""
        return self.boosting(self.seed)

    def boosting(self, seed: int) -> Any:
        """The base model with another seed."""
        columns = [self.train.feature_names.index(name) for name in self.train.categorical]
        return HistGradientBoostingClassifier(categorical_features=columns, random_state=seed)

    @cached_property
    def holdout(self) -> tuple[Split, Split]:
        """The training rows as 70 % to fit on and 30 % to tune on, for methods that need rows unseen by the model."""
        fit, tune = random_split(self.train, (0.7, 0.3), seed=self.seed)
        return fit, tune

    @cached_property
    def scored_holdout(self) -> Scored:
        """Labels and groups predicted on the 30 % and on the test rows, by models of the 70 %."""
        start = time.perf_counter()
        fit, tune = self.holdout
        label, group = self.model.fit(fit.x, fit.y), self.model.fit(fit.x, fit.z1)
        return Scored(tune, _scores(label, group, tune), _scores(label, group, self.test), time.perf_counter() - start)

    @cached_property
    def scored_crossfit(self) -> Scored:
        """The same on all training rows out of fold, and on the test rows by models of all training rows."""
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
        return Scored(rows, out_of_fold, _scores(label, group, self.test), time.perf_counter() - start)


@dataclass(frozen=True, eq=False)
class Scored:
    """What a post-processing method is given: rows to tune on and test rows, each as p(y | x) beside p(u | x).

    Attributes
    ----------
    rows : Split
        The rows to tune on.
    tune, test : ndarray of shape (n, 4)
        p(y=0 | x), p(y=1 | x), p(Female | x), p(Male | x).
    seconds : float
        What the models behind the scores took.
    """

    rows: Split
    tune: NDArray[np.float64]
    test: NDArray[np.float64]
    seconds: float


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


def _scores(label: Any, group: Any, rows: Split) -> NDArray[np.float64]:
    return np.hstack([label.predict_proba(rows.x), group.predict_proba(rows.x)])

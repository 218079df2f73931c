"""Out-of-fold predictions of a full and a principal classifier, for a search that must not see training rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from setminus.errors import UserError
from setminus.progress import tracked

__all__ = ["Fold", "Parts", "check_folds", "out_of_fold_parts", "stratified_folds"]

Proba = NDArray[np.float64]
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


class Parts(NamedTuple):
    """What the models of one fold predict of their test rows."""

    full: Proba
    principals: list[Proba]
    prior: Proba
    features: Proba | None = None
    """What is known of each row's group, where the principal can give it."""

    def take(self, rows: NDArray[np.bool_]) -> Parts:
        """The same for some of the rows."""
        features = None if self.features is None else self.features[rows]
        return Parts(self.full[rows], [one[rows] for one in self.principals], self.prior, features)


def stratified_folds(cv: Any, X: Any, y: Any, strata: tuple[NDArray[np.intp], ...], seed: int) -> list[Fold]:
    """Rows to learn from and rows to predict, for each fold.

    Parameters
    ----------
    cv : int or splitter
        A number deals the rows out stratum by stratum, so that every fold has rows of each one that can be spread.
    X, y : the rows
    strata : arrays of codes
        Rows that agree in all of them are one stratum.
    seed : int
    """
    if not isinstance(cv, int | np.integer):
        return list(check_cv(cv, y, classifier=True).split(X, y))
    if not 2 <= cv <= len(y):
        raise UserError(f"cv is {cv} with {len(y)} rows", expected="at least 2 folds, and a row for each")
    shuffled = np.random.default_rng(seed).permutation(len(y))
    dealt = shuffled[np.lexsort([codes[shuffled] for codes in strata])]
    fold = np.empty(len(y), dtype=np.intp)
    fold[dealt] = np.arange(len(y)) % cv
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(cv)]


def check_folds(folds: list[Fold], y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise where a fold has no rows to predict, or its training rows lack a class."""
    for k, (train, test) in enumerate(folds, start=1):
        absent = np.setdiff1d(classes, y[train]).tolist()
        if absent or len(test) == 0:
            lack = f"no row of class {absent} to learn from" if absent else "no row to predict"
            raise UserError(
                f"fold {k} of {len(folds)} has {lack}", do="pass a cv that shuffles and stratifies, such as a number."
            )


def out_of_fold_parts(
    model: Any, X: Any, y: Any, groups: Any, sample_weight: Any, folds: list[Fold], n_jobs: int | None
) -> list[Parts]:
    """The parts of each fold's rows, by clones of an `OrthogonalClassifier` fitted on the other rows."""
    jobs = (delayed(_parts)(model, X, y, groups, sample_weight, *fold) for fold in folds)
    found = []
    with tracked("fit on each fold", total=len(folds), unit="fits") as fits:
        # as they are ready: progress is reported in this process, wherever the fits are done
        for parts in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            fits.advance()
            found.append(parts)
    return found


def _parts(model: Any, X: Any, y: Any, groups: Any, sample_weight: Any, train: Any, test: Any) -> Parts:
    """Full and principal probabilities of the rows `test`, by models that have seen `train` only, and their prior."""
    take = _safe_indexing
    fitted = clone(model).fit(
        take(X, train),
        y[train],
        sensitive_features=None if groups is None else take(groups, train),
        sample_weight=None if sample_weight is None else sample_weight[train],
    )
    full, principals, features = fitted._parts(
        take(X, test), None if groups is None else take(groups, test), features=True
    )
    return Parts(full, principals, fitted.class_prior_, features)

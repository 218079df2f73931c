"""What the methods of tables 4 and 5 share: rows split once per seed, the form of predictions, and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from setminus.core.gaps import demographic_parity_from_table, equalized_odds_from_table
from setminus.datasets.split import Split, random_split
from setminus.datasets.tabular import Encoding, load_adult, load_german
from setminus.errors import UserError

__all__ = [
    "Part",
    "Predictions",
    "Trials",
    "accuracies",
    "adult_trials",
    "best_epochs",
    "count_tables",
    "german_split_trials",
    "german_trials",
    "measure",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

VALIDATION = 0.25
"""Share of the rows outside the test part that picks the epoch, and nothing else."""
GERMAN_TEST = 0.2
GERMAN_SPLIT = (800, 900)


# eq=False: compared and hashed as an object, so that what was trained on it can be found again
@dataclass(frozen=True, eq=False)
class Trials:
    """A table with two labels and two groups, and the training, validation and test rows of each seed.

    `x` has the shape (n, d), with category codes in the columns `categorical`; `y` and `u` are label and group, 0 or 1.
    `train`, `validation` and `test`, of shape (seeds, rows), have row numbers. `seeds` are those of the split, the
    networks, the batches and the noise.
    """

    x: Floats
    y: Codes
    u: Codes
    seeds: tuple[int, ...]
    train: Codes
    validation: Codes
    test: Codes
    categorical: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("y", "u"):
            found = np.unique(getattr(self, name)).tolist()
            if found != [0, 1]:
                raise UserError(f"{name} holds {found}", expected="the codes 0 and 1, both of them")
        for name in ("train", "validation", "test"):
            shape = getattr(self, name).shape
            if len(shape) != 2 or shape[0] != len(self.seeds):
                raise UserError(f"{name} has shape {shape}", expected=f"({len(self.seeds)}, rows), one for each seed")

    @property
    def group_counts(self) -> Floats:
        """Training rows of each seed by group and label, of shape (seeds, 2, 2)."""
        cells = 2 * self.u[self.train] + self.y[self.train]
        return np.stack([(cells == cell).sum(axis=1) for cell in range(4)], axis=1).reshape(-1, 2, 2).astype(float)

    def learning_from_all(self) -> Trials:
        """The same with the validation rows added to the training rows, for methods that pick no epoch."""
        return replace(self, train=np.concatenate([self.train, self.validation], axis=1))

    @classmethod
    def from_split(cls, split: Split, seeds: Sequence[int], test: Split | None = None) -> Trials:
        """Split a table anew for each seed; without `test` rows each seed holds out its own fifth of `split`.

        Examples
        --------
        >>> rows = Split(x=np.zeros((100, 3)), y=np.arange(100) % 2, z1=np.arange(100) // 50)
        >>> trials = Trials.from_split(rows, seeds=(0, 1))
        >>> trials.train.shape, trials.validation.shape, trials.test.shape
        ((2, 60), (2, 20), (2, 20))
        """
        held_out = GERMAN_TEST if test is None else 0.0
        shares = [(1 - held_out) * (1 - VALIDATION), (1 - held_out) * VALIDATION, *([held_out] if held_out else [])]
        # row numbers are split instead of rows, so that all seeds share one table
        numbers = Split(x=np.arange(len(split))[:, None], y=split.y)
        by_seed = [[part.x[:, 0] for part in random_split(numbers, shares, seed)] for seed in seeds]
        parts = [np.stack(rows) for rows in zip(*by_seed, strict=True)]
        tables = [split]
        if test is not None:
            tables.append(test)
            parts.append(np.tile(len(split) + np.arange(len(test)), (len(seeds), 1)))
        train_rows, validation_rows, test_rows = parts
        columns = tuple(split.feature_names.index(name) for name in split.categorical)
        groups = np.concatenate([table.z1 for table in tables if table.z1 is not None])
        return cls(
            np.concatenate([table.x for table in tables]).astype(np.float64),
            np.concatenate([table.y for table in tables]).astype(np.intp),
            np.unique(groups, return_inverse=True)[1].astype(np.intp),
            tuple(seeds),
            train_rows,
            validation_rows,
            test_rows,
            columns,
        )


def adult_trials(seeds: Sequence[int], encoding: Encoding = "onehot") -> Trials:
    """Adult: one test file for all seeds; a quarter of the training file validates, another one for each seed.

    Group 1 is "Male". The paper's encoding is "onehot"; see `load_adult`.
    """
    train, test = load_adult(encoding=encoding)
    return Trials.from_split(train, seeds, test)


def german_trials(seeds: Sequence[int], encoding: Encoding = "onehot") -> Trials:
    """German credit: 600 training, 200 validation and 200 test rows, split anew for each seed.

    Group 1 is older than the median. The paper's encoding is "onehot"; see `load_german`.
    """
    return Trials.from_split(load_german(encoding=encoding, seed=None), seeds)


def german_split_trials(seeds: Sequence[int], encoding: Encoding = "onehot") -> Trials:
    """German credit on the split of the paper's public code: 800 rows to learn from, the next 100 to test, in order.

    A quarter of the 800 validates, another one for each seed; the last 100 rows of the file are not used.
    """
    rows = load_german(encoding=encoding, seed=None)
    first, kept = GERMAN_SPLIT
    return Trials.from_split(rows.take(np.arange(first)), seeds, rows.take(np.arange(first, kept)))


@dataclass(frozen=True, eq=False)
class Part:
    """Probabilities of label 1 and decisions for some rows, both of shape (seeds, epochs, rows)."""

    proba: Floats
    decisions: NDArray[np.bool_]

    @classmethod
    def of(cls, proba: Floats, threshold: Any = 0.5) -> Part:
        """Decide at a threshold: one for all, or one for each seed and epoch, of shape (seeds, epochs, 1)."""
        return cls(proba, proba >= threshold)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of one method for all seeds.

    `validation` picks the epoch; it is None where there is only one. `seconds` is the time to train and predict per
    seed, the full classifier included. `settings`, each of shape (seeds, epochs), were chosen on the validation rows.
    """

    validation: Part | None
    test: Part
    seconds: float
    settings: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def on_validation(self) -> Part:
        """The predictions of the validation rows, or an error that says that there are none."""
        if self.validation is None:
            raise UserError("there are no predictions of the validation rows", expected="them, to pick an epoch")
        return self.validation


def count_tables(decisions: NDArray[np.bool_], y: Codes, u: Codes) -> Floats:
    """Count rows by group, label and decision: (seeds, epochs, 2, 2, 2) from decisions of shape (seeds, epochs, rows).

    Examples
    --------
    >>> y = u = np.array([[0, 1, 1]])
    >>> count_tables(np.array([[[False, True, False]]]), y, u)[0, 0].tolist()
    [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]]
    """
    seeds, epochs, _ = decisions.shape
    which = np.arange(seeds * epochs).reshape(seeds, epochs, 1)
    cells = ((2 * which + u[:, None]) * 2 + y[:, None]) * 2 + decisions
    return np.bincount(cells.ravel(), minlength=8 * seeds * epochs).reshape(seeds, epochs, 2, 2, 2).astype(float)


def accuracies(tables: Floats) -> Floats:
    """The share of correct decisions in each table of `count_tables`."""
    confusion = tables.sum(axis=-3)
    accuracy: Floats = np.trace(confusion, axis1=-2, axis2=-1) / confusion.sum(axis=(-2, -1))
    return accuracy


def best_epochs(part: Part, y: Codes, u: Codes) -> Codes:
    """The epoch, from 0, of the highest accuracy on these rows, for each seed; the first of equals."""
    best: Codes = np.argmax(accuracies(count_tables(part.decisions, y, u)), axis=1)
    return best


def measure(predictions: Predictions, trials: Trials, whole: Predictions | None = None) -> list[dict[str, Any]]:
    """Accuracy and gaps on the test rows, for each seed; `eo_gap` is the sum over the labels, as in the paper.

    "validation" has the epoch of the highest accuracy on the validation rows, "test_oracle" that of the highest on the
    test rows. A method that picks the epoch on the test rows needs no validation rows: `whole` has its predictions
    after ``trials.learning_from_all()``; by default both rules read `predictions`.
    """
    oracle = predictions if whole is None else whole
    y, u = trials.y[trials.test], trials.u[trials.test]
    if predictions.validation is None and predictions.test.proba.shape[1] == 1:
        validated: Codes = np.zeros(len(trials.seeds), dtype=np.intp)
    else:
        validated = best_epochs(predictions.on_validation, trials.y[trials.validation], trials.u[trials.validation])
    blocks = {
        "validation": _scores(predictions, validated, y, u),
        "test_oracle": _scores(oracle, best_epochs(oracle.test, y, u), y, u),
    }
    return [
        {**{rule: found[k] for rule, found in blocks.items()}, "seconds_per_seed": round(predictions.seconds, 4)}
        for k in range(len(trials.seeds))
    ]


def _scores(predictions: Predictions, epochs: Codes, y: Codes, u: Codes) -> list[dict[str, Any]]:
    """The numbers of each seed on the test rows, at its epoch."""
    tables = count_tables(predictions.test.decisions, y, u)
    measured = {
        "accuracy": accuracies(tables),
        "dp_gap": demographic_parity_from_table(tables),
        "eo_gap": equalized_odds_from_table(tables, "sum"),
        **predictions.settings,
    }
    return [
        {
            **{name: float(values[k, epoch]) for name, values in measured.items()},
            "auc": float(roc_auc_score(y[k], predictions.test.proba[k, epoch])),
            "epoch": int(epoch) + 1,
        }
        for k, epoch in enumerate(epochs)
    ]

"""Other libraries' rows of tables 4 and 5, on the rows and seeds of the paper's network.

Post-processing methods get the network's probabilities of the validation rows, at the epoch that validation picks.
Methods that fit a model fit logistic regression on the training and validation rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from setminus_paper.fairness.orthogonal import TOLERANCE
from setminus_paper.fairness.tables import JOB, Method, Table, runs
from setminus_paper.fairness.training import EPOCHS, vanilla
from setminus_paper.fairness.trials import Codes, Part, Predictions, Trials, best_epochs
from setminus_paper.run import Run, execute
from sklearn.linear_model import LogisticRegression

from benchmarks import libraries
from benchmarks.libraries import Answer, Scored

Correct = Callable[[Scored, Scored, int], Answer]
Fit = Callable[[Trials, Codes, Codes, int], Answer]


def run(results: Path, seeds: int = 10) -> None:
    """Measure what the records of both tables lack."""
    for table in ("table4", "table5"):
        command = "python -m benchmarks table_peers"
        execute(plan(table, tuple(range(seeds))), results / table / "records.jsonl", command=command, job=JOB)


def plan(table: Table, seeds: tuple[int, ...], methods: Sequence[str] = ()) -> list[Run]:
    """One run for each library."""
    return runs(table, "quick", seeds, tuple(methods) or tuple(METHODS), known=METHODS)


def post_processed(trials: Trials, correct: Correct, *, epochs: int = EPOCHS) -> Predictions:
    """Correct the network's probabilities, seed by seed."""
    full = vanilla(trials, epochs=epochs)
    start = time.perf_counter()
    epoch = best_epochs(full.on_validation, trials.y[trials.validation], trials.u[trials.validation])

    def scored(part: Part, rows: Codes, k: int) -> Scored:
        proba = part.proba[k, epoch[k]]
        return Scored(np.column_stack([1 - proba, proba]), trials.y[rows[k]], trials.u[rows[k]])

    answers = [
        correct(scored(full.on_validation, trials.validation, k), scored(full.test, trials.test, k), seed)
        for k, seed in enumerate(trials.seeds)
    ]
    return _predictions(answers, full.seconds + (time.perf_counter() - start) / len(answers))


def fitted(trials: Trials, fit: Fit) -> Predictions:
    """Fit a model per seed."""
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        answers = [
            fit(trials, rows, test, seed)
            for seed, rows, test in zip(trials.seeds, trials.learning_from_all().train, trials.test, strict=True)
        ]
    return _predictions(answers, (time.perf_counter() - start) / len(answers))


def _predictions(answers: list[Answer], seconds: float) -> Predictions:
    decisions = np.stack([answer.predictions for answer in answers])[:, None]
    proba = np.stack([answer.predictions if answer.proba is None else answer.proba for answer in answers])[:, None]
    return Predictions(None, Part(proba.astype(np.float64), decisions.astype(bool)), seconds)


def _oxonfair(tune: Scored, test: Scored, seed: int) -> Answer:
    (answer,) = libraries.oxonfair(tune, test, (TOLERANCE,))
    return answer


def _exponentiated_gradient(trials: Trials, rows: Codes, test: Codes, seed: int) -> Answer:
    train = trials.x[rows], trials.y[rows], trials.u[rows]
    model = LogisticRegression(max_iter=1000)
    # it bounds the larger of the two differences, ours is their sum
    (answer,) = libraries.exponentiated_gradient(model, train, trials.x[test], (TOLERANCE / 2,), seed)
    return answer


def _leace(trials: Trials, rows: Codes, test: Codes, seed: int) -> Answer:
    erase = libraries.leace(trials.x[rows], trials.u[rows])
    model = LogisticRegression(max_iter=1000).fit(erase(trials.x[rows]), trials.y[rows])
    proba = model.predict_proba(erase(trials.x[test]))[:, 1]
    return Answer(proba >= 0.5, proba, 0.0)


def _row(
    label: str, way: Callable[..., Predictions], *, needs_group: bool = False, **call: Callable[..., Answer]
) -> Method:
    return Method(label, partial(way, **call), "peer", needs_group=needs_group)


METHODS: dict[str, Method] = {
    "threshold_optimizer": _row(
        "Fairlearn ThresholdOptimizer", post_processed, correct=libraries.threshold_optimizer, needs_group=True
    ),
    "exponentiated_gradient": _row("Fairlearn ExponentiatedGradient", fitted, fit=_exponentiated_gradient),
    "aif360": _row("AIF360 EqOdds", post_processed, correct=libraries.equalized_odds_flips, needs_group=True),
    "oxonfair": _row("OxonFair", post_processed, correct=_oxonfair, needs_group=True),
    "leace": _row("LEACE", fitted, fit=_leace),
}

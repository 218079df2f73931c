"""Accuracy against equalized odds on Adult, our methods and other libraries' on the same splits.

For each seed both original files are pooled and split 70 to 30. Methods learn, and choose their settings, on the 70 %;
the 30 % are only for measuring. One record for each seed, method and tolerance; existing ones are not run again.

Post-processing methods get rows that the base model has not seen: 30 % held out, as in their documentation, and for
some also out-of-fold scores of all rows, as in our own tuning, to tell the method from the better use of the rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks import libraries
from benchmarks.adult import Adult, pooled
from benchmarks.libraries import ITERATIONS, Answer
from benchmarks.resuming import existing_keys
from setminus import (
    GroupPrincipal,
    ImportanceWeightedClassifier,
    OrthogonalClassifier,
    ProxyPrincipal,
    TunedOrthogonalClassifier,
    demographic_parity_gap,
    equalized_odds_gap,
)
from setminus.datasets.split import Split
from setminus.records import append_record, versions

SEEDS = range(5)
TOLERANCES = (0.01, 0.02, 0.03, 0.05, 0.08)
"""Of the summed equalized-odds gap, for every method that takes one."""
BOUNDS = (0.01, 0.02, 0.05)
"""Of the larger equalized-odds difference on the training rows, which ExponentiatedGradient takes."""
PROTOCOL = {
    "data": "Adult, both files pooled, sex not among the features",
    "split": "70 % to learn and tune, 30 % to test, stratified by label",
    "base": "HistGradientBoostingClassifier, defaults, categorical_features given",
    "threads": "1",
}


@dataclass(frozen=True)
class Method:
    """A row of the comparison.

    Attributes
    ----------
    name : str
    answers : callable
        From a split to one answer, or to one for each tolerance.
    needs_attribute : bool
        Whether the group must be known when predicting.
    deterministic : bool
        Whether the same row always gets the same prediction.
    config : mapping
        Written into the record beside the protocol; "tolerances" has one value for each answer.
    """

    name: str
    answers: Callable[[Adult], Iterator[Answer]]
    needs_attribute: bool = False
    deterministic: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tolerances(self) -> tuple[float | None, ...]:
        """One for each answer."""
        return tuple(self.config.get("tolerances", (None,)))


def run(seeds: Sequence[int], methods: Sequence[Method], records: Path, again: str | None = None) -> None:
    """Run missing methods and append their records."""
    done = existing_keys(records, key, again)
    for seed in seeds:
        missing = [m for m in methods if any((seed, m.name, t) not in done for t in m.tolerances)]
        data = pooled(seed) if missing else None
        for method in missing:
            start = time.perf_counter()
            # one thread: two that wait for each other on a shared machine take five times as long
            with threadpool_limits(1):
                found = run_method(data, method, PROTOCOL)
            for record in found:
                if key(record) not in done:
                    append_record(records, record)
            print(f"seed {seed}: {method.name}, {time.perf_counter() - start:.1f} s", flush=True)


def run_method(data: Adult, method: Method, protocol: dict[str, str]) -> list[dict[str, Any]]:
    """The records of one method on one split."""
    software = versions("fairlearn", "aif360", "oxonfair")
    return [
        {
            "name": method.name,
            "config": {
                **protocol,
                **method.config,
                "needs_attribute": method.needs_attribute,
                "deterministic": method.deterministic,
                "tolerance": answer.tolerance,
            },
            "seed": data.seed,
            "versions": software,
            "metrics": {**measure(answer, data.test), **answer.settings},
            "seconds": round(answer.seconds, 3),
        }
        for answer in method.answers(data)
    ]


def measure(answer: Answer, test: Split) -> dict[str, float | None]:
    """The scores of one answer; None where there is no probability."""
    groups = {"sensitive_features": test.z1}
    metrics: dict[str, float | None] = {
        "accuracy": accuracy_score(test.y, answer.predictions),
        "equalized_odds_sum": equalized_odds_gap(test.y, answer.predictions, agg="sum", **groups),
        "equalized_odds_max": equalized_odds_gap(test.y, answer.predictions, agg="max", **groups),
        "demographic_parity": demographic_parity_gap(test.y, answer.predictions, **groups),
        "auc": None,
        "log_loss": None,
    }
    if answer.proba is not None:
        metrics["auc"] = roc_auc_score(test.y, answer.proba)
        # a certain and wrong prediction would have an infinite loss
        metrics["log_loss"] = log_loss(test.y, np.clip(answer.proba, 1e-6, 1 - 1e-6))
    return metrics


def key(record: dict[str, Any]) -> tuple[int, str, float | None]:
    """What identifies a record."""
    return record["seed"], record["name"], record["config"]["tolerance"]


def _base(data: Adult) -> Iterator[Answer]:
    start = time.perf_counter()
    model = data.model.fit(data.train.x, data.train.y)
    yield _answer(model, data, None, time.perf_counter() - start)


def _tuned(data: Adult, principal: str) -> Iterator[Answer]:
    """One fit, taken at each tolerance."""
    start = time.perf_counter()
    model = TunedOrthogonalClassifier(
        data.model, _principal(principal, data), agg="sum", tolerance=0.05, random_state=data.seed
    ).fit(data.train.x, data.train.y, sensitive_features=data.train.z1)
    seconds = time.perf_counter() - start
    for tolerance in TOLERANCES:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            point = model.at(tolerance=tolerance)
        yield _answer(point, data, tolerance, seconds, groups=principal == "group")


def _formula(data: Adult, principal: str) -> Iterator[Answer]:
    """The paper's formula: strength 1, the most probable class."""
    start = time.perf_counter()
    model = OrthogonalClassifier(data.model, _principal(principal, data))
    model.fit(data.train.x, data.train.y, sensitive_features=data.train.z1)
    yield _answer(model, data, None, time.perf_counter() - start, groups=principal == "group")


def _importance(data: Adult) -> Iterator[Answer]:
    """The paper's alternative: the base model fitted with weights p(y) / p(y | u)."""
    start = time.perf_counter()
    model = ImportanceWeightedClassifier(data.model, GroupPrincipal())
    model.fit(data.train.x, data.train.y, sensitive_features=data.train.z1)
    yield _answer(model, data, None, time.perf_counter() - start)


def _principal(kind: str, data: Adult) -> Any:
    return GroupPrincipal() if kind == "group" else ProxyPrincipal(data.model, method=kind)


def _answer(model: Any, data: Adult, tolerance: float | None, seconds: float, groups: bool = False) -> Answer:
    keywords = {"sensitive_features": data.test.z1} if groups else {}
    proba = model.predict_proba(data.test.x, **keywords)[:, 1]
    settings = {name: getattr(model, f"{name}_") for name in ("strength", "threshold") if hasattr(model, f"{name}_")}
    return Answer(model.predict(data.test.x, **keywords), proba, seconds, tolerance, settings)


def _post_processed(data: Adult, correct: Callable[..., Answer], scores: str) -> Iterator[Answer]:
    tune, test, seconds = getattr(data, f"scored_{scores}")
    answer = correct(tune, test, data.seed)
    yield replace(answer, seconds=seconds + answer.seconds)


def _oxonfair(data: Adult, scores: str, inferred: bool) -> Iterator[Answer]:
    tune, test, seconds = getattr(data, f"scored_{scores}")
    for answer in libraries.oxonfair(tune, test, TOLERANCES, inferred=inferred):
        yield replace(answer, seconds=seconds + answer.seconds)


def _exponentiated_gradient(data: Adult) -> Iterator[Answer]:
    train = data.train.x, data.train.y, data.train.z1
    yield from libraries.exponentiated_gradient(data.model, train, data.test.x, BOUNDS, data.seed)


_SEARCH = {"agg": "sum", "cv": 5, "selection": "validation", "tolerances": TOLERANCES}
OURS = (
    Method("base", _base),
    Method("setminus tuned, proxy mixture", partial(_tuned, principal="mixture"), config=_SEARCH),
    Method("setminus tuned, proxy score", partial(_tuned, principal="score"), config=_SEARCH),
    Method("setminus tuned, group", partial(_tuned, principal="group"), needs_attribute=True, config=_SEARCH),
    Method("setminus formula, proxy mixture", partial(_formula, principal="mixture"), config={"strength": 1}),
    Method(
        "setminus formula, group", partial(_formula, principal="group"), needs_attribute=True, config={"strength": 1}
    ),
    Method("setminus importance weights", _importance, config={"principal": "group"}),
)
_SCORES = {"holdout": {"scores": "30 % held out"}, "crossfit": {"scores": "out of fold"}}


def _random(name: str, correct: Callable[..., Answer], scores: str = "holdout") -> Method:
    """A post-processing method that answers at random and needs the group."""
    answers = partial(_post_processed, correct=correct, scores=scores)
    return Method(name, answers, needs_attribute=True, deterministic=False, config=_SCORES[scores])


def _thresholds(name: str, scores: str, inferred: bool) -> Method:
    config = {**_SCORES[scores], "tolerances": TOLERANCES, "constraint": "sum"}
    return Method(
        name, partial(_oxonfair, scores=scores, inferred=inferred), needs_attribute=not inferred, config=config
    )


OTHERS = (
    _random("Fairlearn ThresholdOptimizer", libraries.threshold_optimizer),
    _random("Fairlearn ThresholdOptimizer, cross-fitted", libraries.threshold_optimizer, "crossfit"),
    Method(
        "Fairlearn ExponentiatedGradient",
        _exponentiated_gradient,
        deterministic=False,
        config={"tolerances": BOUNDS, "constraint": "max, on the training rows", "max_iter": ITERATIONS},
    ),
    _random("AIF360 EqOdds", libraries.equalized_odds_flips),
    _random("AIF360 CalibratedEqOdds", libraries.calibrated_equalized_odds),
    _thresholds("OxonFair, group", "holdout", inferred=False),
    _thresholds("OxonFair, group, cross-fitted", "crossfit", inferred=False),
    _thresholds("OxonFair, inferred groups", "holdout", inferred=True),
    _thresholds("OxonFair, inferred groups, cross-fitted", "crossfit", inferred=True),
)
METHODS = (*OURS, *OTHERS)

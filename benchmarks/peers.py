"""Accuracy against equalized odds on real sets, our methods and other libraries' on the same splits.

For each seed a set is split 70 to 30. Methods learn, and choose their settings, on the 70 %; the 30 % are only for
measuring. One record for each set, seed, method and tolerance; existing ones are not run again, so that a stopped run
continues. The order is seed by seed: every beginning of a run is a complete comparison on fewer splits.

All methods have the same base model, which does not see the group. Post-processing methods get its out-of-fold scores
of all training rows, as our own tuning does, so that no method has fewer rows than another.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks import libraries
from benchmarks.libraries import ITERATIONS, Answer
from benchmarks.linear_post import linear_post
from benchmarks.provenance import provenance
from benchmarks.resuming import existing_keys
from benchmarks.splits import Part, Task, split
from setminus import (
    GroupPrincipal,
    OrthogonalClassifier,
    ProxyPrincipal,
    TunedOrthogonalClassifier,
    demographic_parity_gap,
    equalized_odds_gap,
)
from setminus.core.certificate import noise_floor
from setminus.core.gaps import count_table
from setminus.records import append_record

SEEDS = 10
TOLERANCES = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Of the larger equalized-odds difference between any two groups, for every method that takes one."""
REFITTED = (0.02, 0.1)
"""Those of a method that fits many models for each of them."""
PROTOCOL = {
    "split": "70 % to learn and tune, 30 % to test, stratified by label and group",
    "base": "HistGradientBoostingClassifier, defaults, categorical_features given, group not among the features",
    "scores": "out of fold, 5 folds, on all rows to learn",
    "gap": "largest difference of true or false positive rates between two groups",
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
    tolerances : tuple of float or None
        One for each answer.
    max_groups : int or None
        Sets with more groups are left out.
    sets : tuple of str
        The only sets to run on; empty: all.
    config : mapping
        Written into the record beside the protocol.
    """

    name: str
    answers: Callable[[Task], Iterator[Answer]]
    needs_attribute: bool = False
    deterministic: bool = True
    tolerances: tuple[float | None, ...] = TOLERANCES
    max_groups: int | None = None
    sets: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)

    def applies(self, task: Task) -> bool:
        """Whether the method can run on this set."""
        groups = len(np.unique(task.train.u))
        return (self.max_groups is None or groups <= self.max_groups) and (not self.sets or task.data.name in self.sets)


def run(
    sets: Sequence[str],
    seeds: Sequence[int],
    methods: Sequence[Method],
    records: Path,
    *,
    again: str | None = None,
    jobs: int = 1,
    scores: Path | None = None,
) -> None:
    """Run missing methods and append their records; a method that fails is named at the end."""
    done = existing_keys(records, key, again)
    work = partial(_run_split, methods=tuple(methods), records=records, done=done, scores=scores)
    places = [(name, seed) for seed in seeds for name in sets]
    if jobs == 1:
        failures = [failure for place in places for failure in work(place)]
    else:
        with ProcessPoolExecutor(jobs) as pool:
            failures = [failure for found in pool.map(work, places) for failure in found]
    if failures:
        raise RuntimeError("not measured:\n" + "\n".join(failures))


def _run_split(
    place: tuple[str, int], methods: Sequence[Method], records: Path, done: set[Any], scores: Path | None
) -> list[str]:
    name, seed = place
    missing = [m for m in methods if any((name, seed, m.name, t) not in done for t in m.tolerances)]
    missing = [m for m in missing if not m.sets or name in m.sets]
    failures: list[str] = []
    task = split(name, seed, scores) if missing else None
    for method in missing:
        if task is None or not method.applies(task):
            continue
        start = time.perf_counter()
        try:
            # one thread: two that wait for each other on a shared machine take five times as long
            with threadpool_limits(1):
                found = run_method(task, method, PROTOCOL)
        except ImportError as error:
            print(f"{name}, seed {seed}: {method.name} is left out, {error}", flush=True)
            continue
        except Exception as error:
            # hours of other measurements must not end with one method
            failures.append(f"{name}, seed {seed}, {method.name}: {type(error).__name__}: {error}")
            print(failures[-1], flush=True)
            continue
        for record in found:
            if key(record) not in done:
                append_record(records, record)
        print(f"{name}, seed {seed}: {method.name}, {time.perf_counter() - start:.1f} s", flush=True)
    return failures


def run_method(task: Task, method: Method, protocol: Mapping[str, str]) -> list[dict[str, Any]]:
    """The records of one method on one split."""
    shared = {
        "seed": task.seed,
        **provenance("python -m benchmarks peers", "fairlearn", "aif360", "oxonfair", "error-parity"),
    }
    config = {
        **protocol,
        "set": task.data.name,
        "role": task.data.role,
        "groups": len(np.unique(task.train.u)),
        **method.config,
        "needs_attribute": method.needs_attribute,
        "deterministic": method.deterministic,
    }
    return [
        {
            "name": method.name,
            "config": {**config, "tolerance": answer.tolerance},
            **shared,
            "metrics": {**measure(answer, task.test), **answer.settings},
            "seconds": round(answer.seconds, 3),
        }
        for answer in method.answers(task)
    ]


def measure(answer: Answer, test: Part) -> dict[str, float | None]:
    """The scores of one answer; None where there is no probability."""
    groups = {"sensitive_features": test.u}
    metrics: dict[str, float | None] = {
        "accuracy": accuracy_score(test.y, answer.predictions),
        "balanced_accuracy": balanced_accuracy_score(test.y, answer.predictions),
        "selection_rate": float(np.mean(answer.predictions)),
        "equalized_odds_sum": equalized_odds_gap(test.y, answer.predictions, agg="sum", **groups),
        "equalized_odds_max": equalized_odds_gap(test.y, answer.predictions, agg="max", **groups),
        "demographic_parity": demographic_parity_gap(test.y, answer.predictions, **groups),
        "auc": None,
        "log_loss": None,
    }
    ranks = answer.score if answer.proba is None else answer.proba
    if ranks is not None:
        metrics["auc"] = roc_auc_score(test.y, ranks)
    if answer.proba is not None:
        # a certain and wrong prediction would have an infinite loss
        metrics["log_loss"] = log_loss(test.y, np.clip(answer.proba, 1e-6, 1 - 1e-6))
    return metrics


def key(record: Mapping[str, Any]) -> tuple[str, int, str, float | None]:
    """What identifies a record."""
    return record["config"]["set"], record["seed"], record["name"], record["config"]["tolerance"]


def base(task: Task) -> Iterator[Answer]:
    """The base model alone, with the gap that equal groups of these sizes would show on test rows by chance."""
    start = time.perf_counter()
    model = task.model.fit(task.train.x, task.train.y)
    answer = _answer(model, task, None, time.perf_counter() - start, task.test.x)
    groups = np.unique(task.test.u, return_inverse=True)[1]
    table = count_table(groups, task.test.y, answer.predictions, (groups.max() + 1, 2, 2))
    yield replace(answer, settings={"noise_floor": noise_floor(table).expected})


def tuned(task: Task, known: bool, interpolate: bool = False, **options: Any) -> Iterator[Answer]:
    """Our tuned classifier: one fit, taken at each tolerance."""
    label, group, rows, new_rows = task.remembered()
    start = time.perf_counter()
    principal = GroupPrincipal(interpolate=interpolate) if known else ProxyPrincipal(group, method="joint")
    model = TunedOrthogonalClassifier(label, principal, random_state=task.seed, **options)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model.fit(rows, task.train.y, sensitive_features=task.train.u)
        seconds = task.labels[2] + (0 if known else task.groups[2]) + time.perf_counter() - start
        for tolerance in TOLERANCES:
            yield _answer(model.at(tolerance=tolerance), task, tolerance, seconds, new_rows, groups=known)


def _formula(task: Task, known: bool) -> Iterator[Answer]:
    """The paper's formula: strength 1, the most probable class."""
    start = time.perf_counter()
    principal = GroupPrincipal() if known else ProxyPrincipal(task.model, method="mixture")
    model = OrthogonalClassifier(task.model, principal)
    model.fit(task.train.x, task.train.y, sensitive_features=task.train.u)
    yield _answer(model, task, None, time.perf_counter() - start, task.test.x, groups=known)


def _answer(model: Any, task: Task, tolerance: float | None, seconds: float, rows: Any, groups: bool = False) -> Answer:
    keywords = {"sensitive_features": task.test.u} if groups else {}
    proba = model.predict_proba(rows, **keywords)[:, 1]
    settings = {name: getattr(model, f"{name}_") for name in ("strength", "threshold") if hasattr(model, f"{name}_")}
    certificate = getattr(model, "certificate_", None)
    if certificate is not None:
        settings |= {"certified": certificate.certified, "bound": certificate.bound}
    return Answer(model.predict(rows, **keywords), proba, seconds, tolerance, settings)


def _one_point(task: Task, correct: Callable[..., Answer]) -> Iterator[Answer]:
    """A post-processing method with known groups that has no tolerance."""
    tune, test, seconds = task.scored(inferred=False)
    answer = correct(tune, test, task.seed)
    yield replace(answer, seconds=seconds + answer.seconds)


def _relaxed(task: Task, correct: Callable[..., Iterator[Answer]], inferred: bool = False) -> Iterator[Answer]:
    """A post-processing method that takes tolerances."""
    tune, test, seconds = task.scored(inferred)
    for answer in correct(tune, test, TOLERANCES, task.seed, inferred):
        yield replace(answer, seconds=seconds + answer.seconds)


def _error_parity(tune: Any, test: Any, tolerances: Sequence[float], seed: int, inferred: bool) -> Iterator[Answer]:
    return libraries.error_parity(tune, test, tolerances, seed)


def _oxonfair(tune: Any, test: Any, tolerances: Sequence[float], seed: int, inferred: bool) -> Iterator[Answer]:
    return libraries.oxonfair(tune, test, tolerances, inferred=inferred, agg="max")


def _linear_post(tune: Any, test: Any, tolerances: Sequence[float], seed: int, inferred: bool) -> Iterator[Answer]:
    return linear_post(tune, test, tolerances, seed, inferred=inferred)


def _exponentiated_gradient(task: Task) -> Iterator[Answer]:
    train = task.train.x, task.train.y, task.train.u
    # it bounds the distance of a group's rate from that of all rows: two groups differ by at most twice as much
    bounds = [tolerance / 2 for tolerance in REFITTED]
    for answer in libraries.exponentiated_gradient(task.model, train, task.test.x, bounds, task.seed):
        yield replace(answer, tolerance=2 * (answer.tolerance or 0))


def _ours(name: str, known: bool, **options: Any) -> Method:
    return Method(name, partial(tuned, known=known, **options), needs_attribute=known, config=options)


_ALL_GROUPS = {"min_group_size": 2}
"""No peer merges small groups."""
_SEARCH = {"confidence": None, "min_lead": 0.0, "min_rate_ratio": 0.0, **_ALL_GROUPS}
"""The search alone: no peer has floors of usefulness, or a promise."""
_PROMISE = {"confidence": 0.95, **_ALL_GROUPS}
"""The defaults otherwise."""
OURS = (
    Method("base", base, tolerances=(None,)),
    _ours("setminus", known=False, **_SEARCH),
    _ours("setminus, 95 %", known=False, **_PROMISE),
    _ours("setminus, group", known=True, **_SEARCH),
    _ours("setminus, group, 95 %", known=True, **_PROMISE),
    _ours("setminus, group, interpolated", known=True, interpolate=True, **_SEARCH),
    Method("setminus formula", partial(_formula, known=False), tolerances=(None,), sets=("adult",)),
    Method("setminus formula, group", partial(_formula, known=True), True, tolerances=(None,), sets=("adult",)),
)
OTHERS = (
    Method(
        "Fairlearn ThresholdOptimizer",
        partial(_one_point, correct=libraries.threshold_optimizer),
        needs_attribute=True,
        deterministic=False,
        tolerances=(None,),
    ),
    Method(
        "error-parity",
        partial(_relaxed, correct=_error_parity),
        needs_attribute=True,
        deterministic=False,
    ),
    Method(
        "AIF360 EqOdds",
        partial(_one_point, correct=libraries.equalized_odds_flips),
        needs_attribute=True,
        deterministic=False,
        tolerances=(None,),
        max_groups=2,
    ),
    Method(
        "AIF360 CalibratedEqOdds",
        partial(_one_point, correct=libraries.calibrated_equalized_odds),
        needs_attribute=True,
        deterministic=False,
        tolerances=(None,),
        max_groups=2,
    ),
    # the points of its grid are 30 to the power of the number of groups, and need 30 GB with five or more
    Method("OxonFair, group", partial(_relaxed, correct=_oxonfair), needs_attribute=True, max_groups=4),
    Method("OxonFair, inferred groups", partial(_relaxed, correct=_oxonfair, inferred=True), max_groups=4),
    Method("LinearPost (written here), group", partial(_relaxed, correct=_linear_post), needs_attribute=True),
    Method("LinearPost (written here)", partial(_relaxed, correct=_linear_post, inferred=True)),
    Method(
        "Fairlearn ExponentiatedGradient",
        _exponentiated_gradient,
        deterministic=False,
        tolerances=REFITTED,
        config={"bound": "half the tolerance, on the training rows", "max_iter": ITERATIONS},
    ),
)
METHODS = (*OURS, *OTHERS)

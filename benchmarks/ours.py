"""The methods of this package, as rows of the comparison."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

from benchmarks.adult import Adult
from benchmarks.method import Answer, Method
from setminus import (
    GroupPrincipal,
    ImportanceWeightedClassifier,
    OrthogonalClassifier,
    ProxyPrincipal,
    TunedOrthogonalClassifier,
)

TOLERANCES = (0.01, 0.02, 0.03, 0.05, 0.08)
"""Of the summed equalized-odds gap, as for every peer that takes one."""


def base(data: Adult) -> Iterator[Answer]:
    """Gradient boosting, nothing done about fairness."""
    start = time.perf_counter()
    model = data.model.fit(data.train.x, data.train.y)
    yield _answer(model, data, None, time.perf_counter() - start)


def tuned(data: Adult, principal: str) -> Iterator[Answer]:
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


def formula(data: Adult, principal: str) -> Iterator[Answer]:
    """The paper's formula: strength 1, the most probable class."""
    start = time.perf_counter()
    model = OrthogonalClassifier(data.model, _principal(principal, data))
    model.fit(data.train.x, data.train.y, sensitive_features=data.train.z1)
    yield _answer(model, data, None, time.perf_counter() - start, groups=principal == "group")


def importance(data: Adult) -> Iterator[Answer]:
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


_SEARCH = {"agg": "sum", "cv": 5, "selection": "validation", "tolerances": TOLERANCES}

METHODS = (
    Method("base", base),
    Method("setminus tuned, proxy mixture", lambda data: tuned(data, "mixture"), config=_SEARCH),
    Method("setminus tuned, proxy score", lambda data: tuned(data, "score"), config=_SEARCH),
    Method("setminus tuned, group", lambda data: tuned(data, "group"), needs_attribute=True, config=_SEARCH),
    Method("setminus formula, proxy mixture", lambda data: formula(data, "mixture"), config={"strength": 1}),
    Method(
        "setminus formula, group", lambda data: formula(data, "group"), needs_attribute=True, config={"strength": 1}
    ),
    Method("setminus importance weights", importance, config={"principal": "group"}),
)

r"""A classifier minus a classifier: predict as well as possible without what must be ignored.

``full \ principal = prior * full / principal``, normalised. The names below are loaded on first use, so that importing
the package is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from setminus.adaptation.adapter import OrthogonalAdapter
    from setminus.auditing.audit import audit
    from setminus.auditing.leakage import leakage
    from setminus.auditing.result import Audit
    from setminus.core.bounds import generalization_bound, importance_variance
    from setminus.core.gaps import demographic_parity_gap, equal_opportunity_gap, equalized_odds_gap
    from setminus.core.importance import effective_sample_size, importance_weights
    from setminus.core.orthogonalize import orthogonalize, orthogonalize_log
    from setminus.estimators.importance import ImportanceWeightedClassifier
    from setminus.estimators.orthogonal import OrthogonalClassifier
    from setminus.estimators.persistence import load, save
    from setminus.estimators.principals import GroupPrincipal, ProxyPrincipal
    from setminus.estimators.tuned import TunedOrthogonalClassifier

_HOMES = {
    "Audit": "auditing.result",
    "GroupPrincipal": "estimators.principals",
    "ImportanceWeightedClassifier": "estimators.importance",
    "OrthogonalAdapter": "adaptation.adapter",
    "OrthogonalClassifier": "estimators.orthogonal",
    "ProxyPrincipal": "estimators.principals",
    "TunedOrthogonalClassifier": "estimators.tuned",
    "audit": "auditing.audit",
    "demographic_parity_gap": "core.gaps",
    "effective_sample_size": "core.importance",
    "equal_opportunity_gap": "core.gaps",
    "equalized_odds_gap": "core.gaps",
    "generalization_bound": "core.bounds",
    "importance_variance": "core.bounds",
    "importance_weights": "core.importance",
    "leakage": "auditing.leakage",
    "load": "estimators.persistence",
    "orthogonalize": "core.orthogonalize",
    "orthogonalize_log": "core.orthogonalize",
    "save": "estimators.persistence",
}

__all__ = [
    "Audit",
    "GroupPrincipal",
    "ImportanceWeightedClassifier",
    "OrthogonalAdapter",
    "OrthogonalClassifier",
    "ProxyPrincipal",
    "TunedOrthogonalClassifier",
    "audit",
    "demographic_parity_gap",
    "effective_sample_size",
    "equal_opportunity_gap",
    "equalized_odds_gap",
    "generalization_bound",
    "importance_variance",
    "importance_weights",
    "leakage",
    "load",
    "orthogonalize",
    "orthogonalize_log",
    "save",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'setminus' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"setminus.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

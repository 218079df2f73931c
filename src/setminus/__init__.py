r"""A classifier minus a classifier: predict as well as possible without what must be ignored.

``full \ principal = prior * full / principal``, normalised. The names below are loaded on first use, so that importing
the package is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from setminus.adaptation.adapter import OrthogonalAdapter
    from setminus.adaptation.prior_correction import PriorCorrectedClassifier, PriorCorrection, prior_correction
    from setminus.auditing.audit import Audit, audit
    from setminus.auditing.leakage import leakage
    from setminus.core.certificate import Certificate, certify
    from setminus.core.gaps import demographic_parity_gap, equal_opportunity_gap, equalized_odds_gap
    from setminus.core.importance import (
        effective_sample_size,
        generalization_bound,
        importance_variance,
        importance_weights,
    )
    from setminus.core.orthogonalize import orthogonalize, orthogonalize_log
    from setminus.estimators.importance import ImportanceWeightedClassifier
    from setminus.estimators.orthogonal import OrthogonalClassifier
    from setminus.estimators.persistence import load, save
    from setminus.estimators.principals import GroupPrincipal, ProxyPrincipal
    from setminus.estimators.tuned import TunedOrthogonalClassifier
    from setminus.export.onnx import export_onnx, onnx_inputs
    from setminus.export.sql import export_sql
    from setminus.transfer.translator import OrthogonalTranslator

_HOMES = {
    "Audit": "auditing.audit",
    "Certificate": "core.certificate",
    "GroupPrincipal": "estimators.principals",
    "ImportanceWeightedClassifier": "estimators.importance",
    "OrthogonalAdapter": "adaptation.adapter",
    "OrthogonalClassifier": "estimators.orthogonal",
    "OrthogonalTranslator": "transfer.translator",
    "PriorCorrectedClassifier": "adaptation.prior_correction",
    "PriorCorrection": "adaptation.prior_correction",
    "ProxyPrincipal": "estimators.principals",
    "TunedOrthogonalClassifier": "estimators.tuned",
    "audit": "auditing.audit",
    "certify": "core.certificate",
    "demographic_parity_gap": "core.gaps",
    "effective_sample_size": "core.importance",
    "equal_opportunity_gap": "core.gaps",
    "equalized_odds_gap": "core.gaps",
    "export_onnx": "export.onnx",
    "export_sql": "export.sql",
    "generalization_bound": "core.importance",
    "importance_variance": "core.importance",
    "importance_weights": "core.importance",
    "leakage": "auditing.leakage",
    "load": "estimators.persistence",
    "onnx_inputs": "export.onnx",
    "orthogonalize": "core.orthogonalize",
    "orthogonalize_log": "core.orthogonalize",
    "prior_correction": "adaptation.prior_correction",
    "save": "estimators.persistence",
}

__all__ = [
    "Audit",
    "Certificate",
    "GroupPrincipal",
    "ImportanceWeightedClassifier",
    "OrthogonalAdapter",
    "OrthogonalClassifier",
    "OrthogonalTranslator",
    "PriorCorrectedClassifier",
    "PriorCorrection",
    "ProxyPrincipal",
    "TunedOrthogonalClassifier",
    "audit",
    "certify",
    "demographic_parity_gap",
    "effective_sample_size",
    "equal_opportunity_gap",
    "equalized_odds_gap",
    "export_onnx",
    "export_sql",
    "generalization_bound",
    "importance_variance",
    "importance_weights",
    "leakage",
    "load",
    "onnx_inputs",
    "orthogonalize",
    "orthogonalize_log",
    "prior_correction",
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

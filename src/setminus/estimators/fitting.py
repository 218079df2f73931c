"""Fitting one part, a full or a principal classifier, with what it can take."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from setminus.errors import UserError

__all__ = ["calibrated", "check_classes", "check_known_labels", "fit_part", "needs_groups", "takes_groups"]


def takes_groups(method: Any) -> bool:
    """Whether a bound method spells out the keyword `sensitive_features`.

    Examples
    --------
    >>> from setminus import GroupPrincipal
    >>> takes_groups(GroupPrincipal().fit), takes_groups(print)
    (True, False)
    """
    return "sensitive_features" in inspect.signature(method).parameters


def needs_groups(part: Any) -> bool:
    """Whether a principal wants the groups when it predicts.

    Examples
    --------
    >>> from setminus import GroupPrincipal, ProxyPrincipal
    >>> needs_groups(GroupPrincipal()), needs_groups(ProxyPrincipal())
    (True, False)
    """
    return hasattr(part, "predict_proba") and takes_groups(part.predict_proba)


def calibrated(estimator: Any, method: str | None) -> Any:
    """The estimator, followed by a calibration of its probabilities where one is asked for."""
    if method is None:
        return estimator
    if method not in ("sigmoid", "isotonic", "temperature"):
        raise UserError(f"calibration is {method!r}", expected="None, 'sigmoid', 'isotonic' or 'temperature'")
    return CalibratedClassifierCV(estimator, method=method)


def fit_part(role: str, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Any:
    """A fitted clone of `estimator`; a frozen one comes back as it is.

    Parameters
    ----------
    role : str
        "full", "principal" or what else to call it in an error.
    estimator : classifier
    X, y : the rows
    sample_weight : array of shape (n,), optional
        Reaches the estimator, or the last step of a pipeline; one that cannot take weights is refused.
    groups : sensitive features, optional
        Passed where `fit` takes them.
    """
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params") or isinstance(estimator, type):
        raise TypeError(
            f"{role} is {estimator!r}: expected a scikit-learn classifier, or FrozenEstimator(a fitted model)."
        )
    part = clone(estimator)
    keywords: dict[str, Any] = {}
    if sample_weight is not None and not isinstance(part, FrozenEstimator):
        keywords[_weight_keyword(role, part)] = sample_weight
    if groups is not None and takes_groups(part.fit):
        keywords["sensitive_features"] = groups
    part.fit(X, y, **keywords)
    if not hasattr(part, "predict_proba"):
        raise TypeError(
            f"{role} is {type(part).__name__}, which has no predict_proba: the method divides probabilities. "
            "Wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    return part


def check_classes(role: str, found: NDArray[Any], classes: NDArray[Any], other: str = "full") -> None:
    """Raise unless both speak of the same classes."""
    if len(found) != len(classes) or not np.array_equal(found, classes):
        raise UserError(
            f"{role} has {len(found)} classes {found}, {other} has {len(classes)} {classes}",
            do="fit both on the same y.",
        )


def check_known_labels(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise unless every label of y is a class of the frozen full classifier, whose classes must be sorted."""
    unknown = np.setdiff1d(y, classes).tolist()
    if unknown or not np.array_equal(np.unique(classes), classes):
        raise UserError(
            f"y holds {np.unique(y).tolist()[:10]}, the frozen full classifier has the classes "
            f"{np.asarray(classes).tolist()}",
            do="pass labels of these classes, and a model whose classes_ are sorted.",
        )


def _weight_keyword(role: str, part: Any) -> str:
    """The keyword of `fit` by which weights reach `part`; where scikit-learn routes metadata, `part` asks for them."""
    routed = sklearn.get_config()["enable_metadata_routing"]
    if isinstance(part, Pipeline):
        name, last = part.steps[-1]
        keyword = _weight_keyword(role, last)
        if not routed:
            return f"{name}__{keyword}"
        for _, step in part.steps[:-1]:
            if hasattr(step, "fit") and has_fit_parameter(step, "sample_weight"):
                step.set_fit_request(sample_weight=False)
        return keyword
    # a frozen model is not fitted, only its calibration is
    inner = part.estimator if isinstance(part, CalibratedClassifierCV) else None
    fitted = inner is not None and not isinstance(inner, FrozenEstimator)
    if fitted and _weight_keyword(role, inner) != "sample_weight":
        raise UserError(
            f"{role} is a calibrated Pipeline, whose steps get no weights from the calibration",
            do="calibrate its last "
            "step instead, make_pipeline(..., CalibratedClassifierCV(...)), or leave the weights away.",
        )
    if not has_fit_parameter(part, "sample_weight"):
        raise UserError(
            f"{role} is {type(part).__name__}, whose fit takes no sample_weight", do="leave the weights away."
        )
    if routed:
        part.set_fit_request(sample_weight=True)
    return "sample_weight"

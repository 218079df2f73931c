"""The numbers of an audit, as rows of a table: what each is called, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["gap_key", "gap_title", "look_up", "number_rows"]

Models = Sequence[dict[str, Any]]

GAPS = {
    "equalized_odds_sum": "Equalized odds gap (sum)",
    "equalized_odds_max": "Equalized odds gap (max)",
    "equal_opportunity": "Equal opportunity gap",
    "demographic_parity": "Demographic parity gap",
}
ABOUT_TWO_CLASSES = {
    "equalized_odds_sum": "differences of true and of false positive rates, added; 0 is fair",
    "equalized_odds_max": "the larger of the two, as Fairlearn counts it; 0 is fair",
    "equal_opportunity": "difference of true positive rates; 0 is fair",
    "demographic_parity": "difference of selection rates; 0 is parity",
}
ABOUT_MORE_CLASSES = {
    "equalized_odds_sum": "distances of the groups' decisions given the label, added; 0 is fair",
    "equalized_odds_max": "the largest of them; 0 is fair",
    "equal_opportunity": "largest difference of true positive rates of a class; 0 is fair",
    "demographic_parity": "distance of the groups' decisions; 0 is parity",
}
REST = (
    ("roc_auc", "ROC AUC", "how well the probabilities rank; 1 is perfect"),
    ("log_loss", "Log loss", "how far the probabilities are off, in nats; less is better"),
    ("leakage.bits", "Leakage", "bits that the probabilities give about the group beyond the label; 0 or less is none"),
    ("calibration.overall.ece", "Calibration error", "mean distance of probability and frequency; less is better"),
)


def gap_key(name: str) -> str:
    """The key of a gap in an audit, given the name that a frontier has for it.

    Examples
    --------
    >>> gap_key("equalized_odds (sum)"), gap_key("demographic_parity")
    ('equalized_odds_sum', 'demographic_parity')
    """
    return name.replace(" (", "_").rstrip(")")


def gap_title(key: str) -> str:
    """A gap's name in words."""
    return GAPS[key]


def look_up(audit: dict[str, Any], metric: str) -> dict[str, Any]:
    """A number of an audit by its dotted path, as an interval whose ends may be missing.

    Examples
    --------
    >>> look_up({"leakage": {"bits": 0.1}}, "leakage.bits")
    {'value': 0.1, 'low': None, 'high': None}
    """
    found: Any = audit
    for key in metric.split("."):
        found = found[key]
    return found if isinstance(found, dict) else {"value": found, "low": None, "high": None}


def number_rows(models: Models, bounded: str | None = None) -> list[dict[str, Any]]:
    """Rows of the table that compares audited models.

    Parameters
    ----------
    models : sequence of dict
        Each with a `title` and an `audit`.
    bounded : str, optional
        The gap that was to be small: it comes first, and says so.

    Returns
    -------
    list of dict
        `metric`, `name`, `about`, and `cells`, an interval for each model.
    """
    about = ABOUT_TWO_CLASSES if len(models[0]["audit"]["classes"]) == 2 else ABOUT_MORE_CLASSES
    gaps = sorted(GAPS, key=lambda key: key != bounded)
    named = [
        ("accuracy", "Accuracy", "share of right decisions; more is better"),
        *((key, GAPS[key], about[key]) for key in gaps),
        *REST,
    ]
    return [
        {
            "metric": metric,
            "name": name,
            "about": text,
            "bounded": metric == bounded,
            "cells": [look_up(model["audit"], metric) for model in models],
        }
        for metric, name, text in named
    ]

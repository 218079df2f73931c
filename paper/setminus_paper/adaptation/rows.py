"""The rows of table 3, and what the paper has in each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ORTHOGONAL", "OTHER_SOURCE", "PAPER", "ROWS", "Row"]


@dataclass(frozen=True)
class Row:
    """One row of the table: which method, and with which options."""

    label: str
    task: str
    options: dict[str, Any] = field(default_factory=dict)


FOLLOWING: dict[str, Any] = {"every_epoch": True, "momentum": 0.5, "rows": 1_000}
"""Networks of so few steps say little of the target before the domains meet: estimates are made again and again, with
half of the one before in each, as in the paper's importance weights."""

ROWS: dict[str, Row] = {
    "source_only": Row("Source-Only", "source_only"),
    "dann": Row("DANN", "dann"),
    "adda": Row("ADDA", "adda"),
    "cycada": Row("CyCADA", "cycada"),
    "vada": Row("VADA", "vada"),
    "vada_iw": Row("VADA + IW", "vada_iw", {"label_shift": {"estimator": "bbse", **FOLLOWING}}),
    "vada_orthogonal_em": Row(
        "VADA + w_x \\ w_1 (EM)",
        "vada_orthogonal",
        {"label_shift": {"estimator": "em", **FOLLOWING}, "discriminator": "orthogonal"},
    ),
    "vada_orthogonal_bbse": Row(
        "VADA + w_x \\ w_1 (BBSE)",
        "vada_orthogonal",
        {"label_shift": {"estimator": "bbse", **FOLLOWING}, "discriminator": "orthogonal"},
    ),
    "vada_orthogonal_shrunk": Row(
        "VADA + w_x \\ w_1 (shrunk)",
        "vada_orthogonal",
        {"label_shift": {"estimator": "pseudo_soft", **FOLLOWING, "shrinkage": 0.5}, "discriminator": "orthogonal"},
    ),
    # the paper's own estimate, discriminator and classes of target rows
    "vada_orthogonal_pseudo": Row(
        "VADA + w_x \\ w_1 (pseudo-labels)",
        "vada_orthogonal",
        {"label_shift": {"estimator": "pseudo_hard"}, "discriminator": "full", "target_classes": "hard"},
    ),
}
ORTHOGONAL = tuple(name for name, row in ROWS.items() if row.task == "vada_orthogonal")

_PRINTED: dict[str, tuple[float, ...]] = {
    "source_only": (51.8, 75.7, 34.5, 85.0, 74.7, 68.7, 47.7),
    "adda": (89.7, 78.2, 38.4, 86.0, 90.6, 66.8, 50.4),
    "cycada": (math.nan, 82.8, 39.6, math.nan, math.nan, math.nan, math.nan),
    "vada": (77.8, 79.0, 35.7, 90.3, 93.6, 72.4, 53.1),
    "vada_iw": (71.2, 87.1, 34.5, 90.7, 95.4, 74.0, 53.8),
    **dict.fromkeys(ORTHOGONAL, (79.1, 88.0, 40.5, 90.6, 95.2, 74.5, 54.1)),
}
# for drawn digits what it printed for SYN-DIGITS, whose place they take
_COLUMNS = (
    *("mnist-mnist_m", "svhn-mnist", "mnist-svhn", "drawn_digits-svhn"),
    *("syn_signs-gtsrb", "cifar10-stl10", "stl10-cifar10"),
)
PAPER: dict[str, dict[str, float]] = {
    pair: {method: round(row[k] / 100, 3) for method, row in _PRINTED.items() if not math.isnan(row[k])}
    for k, pair in enumerate(_COLUMNS)
}
"""The paper's accuracies by pair and row, by "test_oracle". Its one row of w_x \\ w_1 stands beside each estimate."""
OTHER_SOURCE = {"drawn_digits-svhn": "the paper's source is SYN-DIGITS"}
"""Pairs whose images are not the paper's, and what its number is of."""

"""The result of an audit, as numbers, text, HTML or a chart."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from setminus.auditing.calibration import Calibration, ScoreHistogram
from setminus.auditing.diagnosis import Finding, Overlap, verdict
from setminus.auditing.leakage import Leakage
from setminus.auditing.rates import GroupRates, Interval
from setminus.core.groups import group_name
from setminus.errors import printable

if TYPE_CHECKING:
    from setminus.charts.picture import Plot

__all__ = ["Audit"]


@dataclass(frozen=True, repr=False, eq=False)
class Audit:
    """The result of `audit`: print it, show it in a notebook, plot it, or write `to_dict()` to a file.

    Attributes
    ----------
    n : int
    classes, groups : tuple
    confidence : float
        Of all intervals.
    accuracy, demographic_parity, equalized_odds_max, equalized_odds_sum, equal_opportunity : Interval
    log_loss, roc_auc : float
    group_rates : tuple of GroupRates
    leakage : Leakage
        Of the score under audit.
    calibration : Calibration
        Of the score under audit.
    full_leakage, full_calibration : Leakage, Calibration or None
    principal_calibration, overlap : Calibration, Overlap or None
    findings : tuple of Finding
    histograms : tuple of ScoreHistogram
    """

    n: int
    classes: tuple[Any, ...]
    groups: tuple[Any, ...]
    confidence: float
    accuracy: Interval
    demographic_parity: Interval
    equalized_odds_max: Interval
    equalized_odds_sum: Interval
    equal_opportunity: Interval
    log_loss: float
    roc_auc: float
    group_rates: tuple[GroupRates, ...]
    leakage: Leakage
    calibration: Calibration
    full_leakage: Leakage | None
    full_calibration: Calibration | None
    principal_calibration: Calibration | None
    overlap: Overlap | None
    findings: tuple[Finding, ...]
    histograms: tuple[ScoreHistogram, ...]

    @property
    def verdict(self) -> str:
        """The conclusion from all findings."""
        return verdict(self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The audit in plain Python types, ready for JSON: undefined numbers are None."""
        return {"verdict": self.verdict, **_plain(self)}

    def plot(self) -> Plot:
        """Rates by group, reliability by group, scores by group and label: shown by a notebook, or saved to a file.

        ``audit.plot().save("audit.png")`` writes a PNG or SVG file; needs the extra `cli`.
        """
        from setminus.auditing.plot import plot_audit

        return plot_audit(self)

    def headline(self) -> list[tuple[str, str]]:
        """The main numbers by name, formatted for text and page."""
        return [
            ("accuracy", str(self.accuracy)),
            ("demographic parity gap", str(self.demographic_parity)),
            ("equalized odds gap (max)", str(self.equalized_odds_max)),
            ("equalized odds gap (sum)", str(self.equalized_odds_sum)),
            ("equal opportunity gap", str(self.equal_opportunity)),
            ("log loss", f"{self.log_loss:.4f}"),
            ("ROC AUC", f"{self.roc_auc:.4f}"),
            ("leakage, bits", f"{max(self.leakage.bits, 0):.4f} (p = {self.leakage.p_value:.3f})"),
            ("calibration error", _error(self.calibration)),
        ]

    def table(self) -> list[list[str]]:
        """The group table as text: a header, then one row for each group (and each of more than two classes)."""
        header = ["group", "class", "rows", "base rate", "selection rate", "TPR", "FPR", "accuracy"]
        return [header] + [
            [
                group_name(row.group),
                str(row.label),
                str(row.n),
                f"{row.base_rate:.3f}",
                str(row.selection_rate),
                str(row.true_positive_rate),
                str(row.false_positive_rate),
                str(row.accuracy),
            ]
            for row in self.group_rates
        ]

    def __repr__(self) -> str:
        return f"Audit(n={self.n}, groups={len(self.groups)}, verdict={self.verdict!r})"

    def __str__(self) -> str:
        numbers = self.headline()
        width = max(len(name) for name, _ in numbers)
        lines = [
            f"Audit of {self.n} rows, {len(self.groups)} groups, {len(self.classes)} classes "
            f"({100 * self.confidence:g} % intervals)",
            "",
            *(f"  {name:<{width}}  {value}" for name, value in numbers),
            "",
            *_columns(self.table()),
            "",
        ]
        for finding in self.findings:
            lines.append(f"  [{finding.status:^4}] {finding.name}: {printable(finding.evidence)}.")
            if finding.advice:
                lines.append(f"         {printable(finding.advice)}")
        return "\n".join([*lines, "", self.verdict])

    def _repr_html_(self) -> str:
        from setminus.auditing.page import audit_html

        return audit_html(self)


def _error(calibration: Calibration) -> str:
    return f"{calibration.overall.ece:.4f} ({calibration.overall.expected:.4f} expected for exact probabilities)"


def _columns(table: list[list[str]]) -> list[str]:
    table = [[*map(printable, row)] for row in table]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return ["  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    # a label may be a date, or anything that sorts
    return value if value is None or isinstance(value, bool | int | str) else str(value)

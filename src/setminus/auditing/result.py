"""The result of an audit: its numbers, and how it prints, shows itself in a notebook and becomes JSON."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from setminus.auditing.calibration import Calibration, ScoreHistogram
from setminus.auditing.diagnosis import Finding, Overlap, verdict
from setminus.auditing.impact import ImpactTable
from setminus.auditing.leakage import Leakage
from setminus.auditing.rates import Decided, GroupRates, Interval, Metrics, metrics_by_group
from setminus.core.certificate import Certificate, NoiseFloor
from setminus.core.checks import group_name
from setminus.core.gaps import GAP_NAMES, gap_key
from setminus.errors import UserError, printable

if TYPE_CHECKING:
    from setminus.charts.picture import Plot

__all__ = ["Audit"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Audit:
    """The result of `audit`: print it, show it in a notebook, plot it, or write `to_dict()` to a file.

    Attributes
    ----------
    n : int
        Rows whose group is known.
    classes, groups : tuple
    confidence : float
        Of all intervals, and of the certificate.
    accuracy, demographic_parity, equalized_odds_max, equalized_odds_sum, equal_opportunity : Interval
        Undefined (NaN) where they need labels and there are none.
    log_loss, roc_auc : float
        NaN without scores.
    group_rates : tuple of GroupRates
    leakage, calibration : Leakage and Calibration, or None without scores
        Of the score under audit.
    full_leakage, full_calibration : Leakage, Calibration or None
    principal_calibration, overlap : Calibration, Overlap or None
    findings : tuple of Finding
    histograms : tuple of ScoreHistogram
    noise_floors : dict of str to NoiseFloor
        By the name of the gap: what groups of these sizes show by chance where their true rates are equal.
    certificate : Certificate or None
        Whether the gap is at most `tolerance` for new rows, where one was given. Its cells are in the order of `groups`
        and `classes`.
    smallest_tolerance : float or None
        Where the certificate was refused: the smallest tolerance that so many rows of equal groups would certify.
    rows_needed : tuple of int or None
        Where that is above the tolerance: the rows that each group lacks.
    n_unknown_group : int
        Rows whose group is missing: they are in no rate and no gap.
    impact : tuple of ImpactTable
        Selection rates and impact ratios, by attribute and crossed; empty for more than two classes without a
        `favorable_label`.
    scoring : tuple of ImpactTable
        The same where a row counts as selected if its score of that class is above `median_score`: the scoring rates
        of New York's Local Law 144. Empty without scores.
    median_score : float
        Of all rows; NaN without scores.
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
    leakage: Leakage | None
    calibration: Calibration | None
    full_leakage: Leakage | None
    full_calibration: Calibration | None
    principal_calibration: Calibration | None
    overlap: Overlap | None
    findings: tuple[Finding, ...]
    histograms: tuple[ScoreHistogram, ...]
    noise_floors: dict[str, NoiseFloor] = field(default_factory=dict)
    certificate: Certificate | None = None
    smallest_tolerance: float | None = None
    rows_needed: tuple[int, ...] | None = None
    n_unknown_group: int = 0
    impact: tuple[ImpactTable, ...] = ()
    scoring: tuple[ImpactTable, ...] = ()
    median_score: float = float("nan")
    _rows: tuple[Decided, Floats | None] | None = None

    @property
    def verdict(self) -> str:
        """The conclusion from all findings."""
        return verdict(self.findings, scored=self.leakage is not None)

    def by_group(
        self,
        metrics: Metrics,
        *,
        of: Literal["decisions", "proba"] = "decisions",
        n_bootstrap: int = 200,
        random_state: int = 0,
    ) -> Any:
        """Any metric by group, with intervals, as a frame of pandas, polars or arrow: the first one installed.

        Parameters
        ----------
        metrics : callable, or dict of str to callable
            ``metric(y, decisions)`` as in `sklearn.metrics`; also given ``sample_weight=`` where the audit has weights.
        of : {"decisions", "proba"}
            What is passed after the labels: decisions, or probabilities (of the second of two classes).
        n_bootstrap : int
            Draws behind the intervals, which are percentiles at the audit's confidence: rough for small groups.
        random_state : int

        Returns
        -------
        frame
            A row for each group and one for all rows; columns ``group, n, METRIC, METRIC_low, METRIC_high``. A metric
            that raises ValueError for a group is NaN there.

        Examples
        --------
        >>> from sklearn.metrics import f1_score
        >>> from setminus import audit
        >>> y, group = np.tile([0, 1], 50), np.repeat(["f", "m"], 50)
        >>> result = audit(y, y_pred=y, sensitive_features=group)
        >>> result.by_group(f1_score)["f1_score"].to_list()
        [1.0, 1.0, 1.0]
        """
        if self._rows is None:
            raise UserError("this audit holds no rows", do="call by_group on the result of audit.")
        rows, proba = self._rows
        return metrics_by_group(
            rows,
            proba,
            metrics,
            of=of,
            confidence=self.confidence,
            n_bootstrap=n_bootstrap,
            random_state=random_state,
        )

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
        found = [
            ("accuracy", str(self.accuracy)),
            *((name, self._gap(key)) for key, name in GAP_NAMES.items()),
        ]
        if self.leakage is not None and self.calibration is not None:
            found += [
                ("log loss", f"{self.log_loss:.4f}"),
                ("ROC AUC", f"{self.roc_auc:.4f}"),
                ("leakage, bits", f"{max(self.leakage.bits, 0):.4f} (p = {self.leakage.p_value:.3f})"),
                ("calibration error", _error(self.calibration)),
            ]
        return [(name, value) for name, value in found if value != "undefined"]

    def _gap(self, key: str) -> str:
        interval, floor = getattr(self, key), self.noise_floors.get(key)
        if floor is None or np.isnan(floor.expected) or np.isnan(interval.value):
            return str(interval)
        return f"{interval}, noise floor {floor.expected:.3f} (95 % below {floor.quantile:.3f})"

    def certificate_lines(self) -> list[str]:
        """The certificate in words; nothing where no tolerance was given."""
        found = self.certificate
        if found is None:
            return []
        claim = f"{GAP_NAMES[gap_key(found.constraint, found.agg)]} <= {found.tolerance:g}"
        level = f"{100 * found.confidence:g} % confidence ({found.method})"
        if found.certified:
            return [f"Certified: {claim} for new rows, at {level}. Upper bound of the gap: {found.bound:.3f}."]
        if found.empty:
            g, c = found.empty[0]
            of = group_name(self.groups[g]) + (f" with label {self.classes[c]}" if len(found.rows[0]) > 1 else "")
            return [f"Not certified: {claim}. The group {of} has no rows."]
        lines = [f"Not certified: {claim} at {level}. Upper bound of the gap: {found.bound:.3f}."]
        if self.rows_needed is not None:
            named = [
                f"{n:,} of {group_name(group)}" for group, n in zip(self.groups, self.rows_needed, strict=True) if n
            ]
            lines.append(
                f"With these rows the smallest gap that can be checked is {self.smallest_tolerance:.3f}. "
                f"More rows needed: {', '.join(named)}."
            )
        return lines

    def impact_lines(self) -> list[str]:
        """The lowest impact ratio of each attribute; the page and `impact` have all."""
        lines = []
        for found in self.impact:
            known = [row for row in found.rows if not np.isnan(row.impact_ratio.low)]
            if known:
                low = min(known, key=lambda row: row.impact_ratio.value)
                lines.append(
                    f"Lowest impact ratio by {found.attribute}: {low.impact_ratio} ({low.group} against "
                    f"{found.reference}); the four-fifths line is 0.8"
                )
        return lines

    def table(self) -> list[list[str]]:
        """The group table as text: a header, then one row for each group (and each of more than two classes)."""
        header = ["group", "class", "rows", "base rate", "selection rate", "TPR", "FPR", "accuracy"]
        rows = [
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
        if all(np.isnan(row.base_rate) for row in self.group_rates):
            # without labels
            return [[*row[:3], row[4]] for row in [header, *rows]]
        return [header, *rows]

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
            *(["", *(f"  {printable(line)}" for line in self.certificate_lines())] if self.certificate else []),
            *(["", f"  {self.n_unknown_group} rows have no group: they are in no gap"] if self.n_unknown_group else []),
            "",
            *_columns(self.table()),
            *(f"  {printable(line)}" for line in self.impact_lines()),
            "",
        ]
        for finding in self.findings:
            lines.append(f"  [{finding.status:^4}] {finding.name}: {printable(finding.evidence)}.")
            if finding.advice:
                lines.append(f"         {printable(finding.advice)}")
        return "\n".join([*lines, "", self.verdict])

    def _repr_html_(self) -> str:
        return _html(self)


def _error(calibration: Calibration) -> str:
    return f"{calibration.overall.ece:.4f} ({calibration.overall.expected:.4f} expected for exact probabilities)"


def _columns(table: list[list[str]]) -> list[str]:
    table = [[*map(printable, row)] for row in table]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return ["  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if not one.name.startswith("_")}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    # a label may be a date, or anything that sorts
    return value if value is None or isinstance(value, bool | int | str) else str(value)


# dark enough for white and light enough for black pages; the word carries the status, the colour repeats it
_COLOUR = {"ok": "#2e7d5b", "warn": "#b26a00", "fail": "#c0392b"}
_STYLE = """
.setminus-audit{font:14px/1.45 system-ui,sans-serif;overflow-x:auto}
.setminus-audit table{border-collapse:collapse;margin:.6em 0}
.setminus-audit th,.setminus-audit td{padding:.2em .8em .2em 0;text-align:left;vertical-align:top;
border-bottom:1px solid rgba(128,128,128,.35);font-variant-numeric:tabular-nums;white-space:nowrap}
.setminus-audit td.words{white-space:normal;max-width:36em}
.setminus-audit th{font-weight:600}
"""


def _html(audit: Audit) -> str:
    """An audit as a piece of html: self-contained, and harmless whatever groups and classes are called."""
    numbers = "".join(f"<tr><th scope='row'>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in audit.headline())
    header, *rows = audit.table()
    findings = "".join(
        f"<tr><td><strong style='color:{_COLOUR[finding.status]}'>{finding.status}</strong></td>"
        f"<td class='words'>{escape(finding.name)}</td><td class='words'>{escape(finding.evidence)}.</td>"
        f"<td class='words'>{escape(finding.advice)}</td></tr>"
        for finding in audit.findings
    )
    return (
        f"<div class='setminus-audit'><style>{_STYLE}</style>"
        f"<p><strong>{escape(audit.verdict)}</strong><br>{audit.n} rows, {len(audit.groups)} groups, "
        f"{len(audit.classes)} classes, {100 * audit.confidence:g} % intervals</p>"
        f"<table><tbody>{numbers}</tbody></table>"
        f"{''.join(f'<p>{escape(line)}</p>' for line in audit.certificate_lines())}"
        f"<table><thead>{_row(header, 'th')}</thead>"
        f"<tbody>{''.join(_row(row, 'td') for row in rows)}</tbody></table>"
        "<table><thead><tr><th>status</th><th>condition</th><th>evidence</th><th>advice</th></tr></thead>"
        f"<tbody>{findings}</tbody></table></div>"
    )


def _row(cells: list[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

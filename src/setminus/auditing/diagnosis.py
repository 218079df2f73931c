"""Does the method apply here? The overlap of groups and labels, and the findings and verdict of an audit.

The principal classifier is a divisor, so every label must occur with every z1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setminus.auditing.calibration import Calibration, CalibrationError
from setminus.auditing.leakage import Leakage
from setminus.core.checks import group_name
from setminus.core.importance import effective_sample_size, importance_weights

__all__ = [
    "Cell",
    "Finding",
    "Overlap",
    "Status",
    "diagnose",
    "grade",
    "overlap",
    "small_cells",
    "verdict",
]


Status = Literal["ok", "warn", "fail"]
# with enough rows a test alone would call any dependence a failure: a finding needs a p-value and a size
SIGNIFICANCE = 0.05
LEAKAGE_BITS = (0.005, 0.02)
CALIBRATION_EXCESS = (0.01, 0.05)
EFFECTIVE_SHARE = (0.5, 0.1)
SHARE_BEYOND = (0.01, 0.1)
ROWS_PER_CELL = (30, 5)


@dataclass(frozen=True)
class Overlap:
    """How large the corrections by the principal classifier are.

    Attributes
    ----------
    smallest : float
        The smallest probability that the principal classifier gives to any class.
    factor : float
        The correction `prior / principal` beyond which a row counts as extreme.
    share_beyond : float
        Share of rows where the correction of some class is above `factor`.
    effective_share : float
        Effective sample size of the importance weights over the number of rows; NaN where a weight is
        infinite.
    """

    smallest: float
    factor: float
    share_beyond: float
    effective_share: float


@dataclass(frozen=True)
class Cell:
    """Number of rows of one group with one label."""

    group: Any
    label: Any
    count: int


def overlap(y: NDArray[np.intp], principal_proba: NDArray[np.float64], *, factor: float = 10.0) -> Overlap:
    """Measure the overlap of label codes and principal probabilities, with the labels' frequencies as prior.

    Examples
    --------
    >>> even = overlap(np.array([0, 1]), np.full((2, 2), 0.5))
    >>> even.smallest, even.share_beyond, even.effective_share
    (0.5, 0.0, 1.0)
    """
    prior = np.bincount(y, minlength=principal_proba.shape[1]) / len(y)
    beyond = (prior > factor * principal_proba).any(axis=1)
    if (np.take_along_axis(principal_proba, y[:, None], axis=1) > 0).all():
        effective = effective_sample_size(importance_weights(y, principal_proba, prior)) / len(y)
    else:
        effective = float("nan")
    return Overlap(float(principal_proba.min()), factor, float(beyond.mean()), effective)


def small_cells(table: NDArray[np.float64], groups: list[Any], classes: list[Any], *, below: int) -> tuple[Cell, ...]:
    """The (group, label) cells of an (n_groups, n_classes) table with fewer than `below` rows, smallest first.

    Examples
    --------
    >>> small_cells(np.array([[40, 2], [30, 50]]), ["f", "m"], ["no", "yes"], below=30)
    (Cell(group='f', label='yes', count=2),)
    """
    cells = [Cell(groups[g], classes[c], int(table[g, c])) for g, c in np.argwhere(table < below)]
    return tuple(sorted(cells, key=lambda cell: cell.count))


@dataclass(frozen=True)
class Finding:
    """One condition of the method, whether it holds, on what evidence, and what to do.

    Attributes
    ----------
    name : str
    status : {"ok", "warn", "fail"}
    evidence : str
        The numbers behind the status.
    advice : str
        Empty where the status is "ok".
    """

    name: str
    status: Status
    evidence: str
    advice: str = ""


def diagnose(
    *,
    leakage: Leakage | None,
    cells: tuple[Cell, ...],
    full_leakage: Leakage | None = None,
    full_calibration: Calibration | None = None,
    principal_calibration: Calibration | None = None,
    overlap: Overlap | None = None,
) -> tuple[Finding, ...]:
    """The conditions of the method that were measured, each with its status.

    Parameters
    ----------
    leakage : Leakage or None
        Of the score under audit; None where there are decisions only.
    cells : tuple of Cell
        The (group, label) cells with few rows.
    full_leakage, full_calibration : optional
        Of the full classifier.
    principal_calibration, overlap : optional
        Of the principal classifier.

    Examples
    --------
    >>> silent = Leakage(bits=-0.001, share=-0.001, auc=0.5, p_value=0.6, n_cells=20, n_permutations=200)
    >>> for finding in diagnose(leakage=silent, cells=()):
    ...     print(finding.status, finding.name)
    ok score independent of the groups given the label
    ok enough rows of each group and label
    """
    calibrations = []
    if full_calibration is not None:
        calibrations.append(_calibrated("full", full_calibration))
    if principal_calibration is not None:
        calibrations.append(_calibrated("principal", principal_calibration))
    findings = [] if leakage is None else [_independent(leakage, full_leakage, calibrations)]
    findings += calibrations
    if overlap is not None:
        findings.append(_overlaps(overlap))
    return (*findings, _enough_rows(cells))


def verdict(findings: tuple[Finding, ...], *, scored: bool = True) -> str:
    """The conclusion from all findings, of decisions alone where no scores were audited.

    Examples
    --------
    >>> verdict((Finding("overlap", "fail", "..."),))
    'The guarantee does not hold here. Failed conditions: overlap. Rely on the measured gaps and their intervals.'
    """
    if not scored:
        return "Decisions only: the gaps and their intervals show how much they differ between groups."
    failed = [finding.name for finding in findings if finding.status == "fail"]
    warned = [finding.name for finding in findings if finding.status == "warn"]
    if failed:
        return (
            f"The guarantee does not hold here. Failed conditions: {_join(failed)}. "
            "Rely on the measured gaps and their intervals."
        )
    if warned:
        return f"Usable with care. Doubtful conditions: {_join(warned)}."
    return (
        "All measured conditions of the method hold. The gaps and their intervals show how much the decisions still "
        "differ between groups."
    )


def grade(size: float, limits: tuple[float, float]) -> Status:
    """The status of a number that should be small: "ok" below the first limit, "fail" from the second on."""
    return "ok" if size < limits[0] else "warn" if size < limits[1] else "fail"


def _independent(leakage: Leakage, full: Leakage | None, calibrations: list[Finding]) -> Finding:
    significant = leakage.p_value <= SIGNIFICANCE
    status: Status = grade(leakage.bits if significant else 0.0, LEAKAGE_BITS)
    evidence = (
        f"the score holds {max(leakage.bits, 0):.4f} bits about the group beyond the label "
        f"({100 * max(leakage.share, 0):.1f} % of the largest possible value), within-label AUC {leakage.auc:.3f}, "
        f"permutation p = {leakage.p_value:.3f}"
    )
    if full is not None:
        evidence += f"; the full classifier holds {max(full.bits, 0):.4f} bits, AUC {full.auc:.3f}"
    name = "score independent of the groups given the label"
    if status == "ok":
        return Finding(name, status, evidence)
    if any(finding.status != "ok" for finding in calibrations):
        advice = "First calibrate the classifiers that fail below, then audit again."
    elif full is not None:
        advice = (
            "The features beyond z1 still depend on z1 given the label: tune strength and threshold "
            "under a constraint (TunedOrthogonalClassifier). If the full classifier does not see the groups, use "
            "ProxyPrincipal, which removes no more than the features predict of them."
        )
    else:
        advice = (
            "Orthogonalize the score (OrthogonalClassifier) or, if that is done, tune the strength under a "
            "constraint (TunedOrthogonalClassifier). Pass full_proba and principal_proba to see which "
            "condition fails."
        )
    return Finding(name, status, evidence, advice)


def _calibrated(which: str, calibration: Calibration) -> Finding:
    overall = calibration.overall
    # each group is one more chance of a false alarm; 200 simulations cannot show a p-value below 1/201
    limit = max(SIGNIFICANCE / len(calibration.groups), 0.005)
    suspects = [overall] if overall.p_value <= SIGNIFICANCE else []
    # a principal classifier is p(y | z1) over all rows: where z1 is not the group, it may be uncalibrated in a group
    suspects += [group for group in calibration.groups if which == "full" and group.p_value <= limit]
    worst = max(suspects, key=lambda error: error.excess, default=overall)
    status: Status = grade(worst.excess if suspects else 0.0, CALIBRATION_EXCESS)
    evidence = _calibration_evidence(worst)
    advice = {
        "full": "Calibrate the full classifier on held-out rows: calibration='isotonic' in "
        "OrthogonalClassifier, or CalibratedClassifierCV.",
        "principal": "Fit the principal classifier on the same rows as the full one, and calibrate it "
        "(CalibratedClassifierCV). The mixture of ProxyPrincipal is a heuristic and seldom calibrated: tune its "
        "strength (TunedOrthogonalClassifier), or use method='score'.",
    }[which]
    return Finding(f"{which} classifier calibrated", status, evidence, "" if status == "ok" else advice)


def _calibration_evidence(error: CalibrationError) -> str:
    whose = "all rows" if error.group is None else f"group {group_name(error.group)}"
    return (
        f"{whose} (n = {error.n}): calibration error {error.ece:.4f}, expected "
        f"{error.expected:.4f} for exact probabilities, p = {error.p_value:.3f}"
    )


def _overlaps(overlap: Overlap) -> Finding:
    evidence = (
        f"smallest principal probability {overlap.smallest:.2g}; {100 * overlap.share_beyond:.1f} % of rows "
        f"corrected by more than {overlap.factor:g}x; effective sample size of the importance weights "
        f"{100 * overlap.effective_share:.0f} % of the rows"
    )
    nothing_left = not overlap.effective_share > EFFECTIVE_SHARE[1]
    status: Status = "ok"
    if overlap.share_beyond > SHARE_BEYOND[0] or overlap.effective_share < EFFECTIVE_SHARE[0]:
        status = "warn"
    if overlap.smallest <= 0 or nothing_left or overlap.share_beyond > SHARE_BEYOND[1]:
        status = "fail"
    advice = (
        "Collapse groups where some label is very rare, smooth the principal classifier, or lower the "
        "strength (TunedOrthogonalClassifier)."
    )
    return Finding("overlap", status, evidence, "" if status == "ok" else advice)


def _enough_rows(cells: tuple[Cell, ...]) -> Finding:
    name = "enough rows of each group and label"
    few = [cell for cell in cells if cell.count < ROWS_PER_CELL[0]]
    if not few:
        return Finding(name, "ok", f"every group has at least {ROWS_PER_CELL[0]} rows of each label")
    smallest = min(cell.count for cell in few)
    listed = "; ".join(f"{group_name(cell.group)} with {cell.label}: {cell.count}" for cell in few[:5])
    more = f"; and {len(few) - 5} more" if len(few) > 5 else ""
    evidence = (
        f"{len(few)} of the combinations of group and label have fewer than {ROWS_PER_CELL[0]} rows ({listed}{more})"
    )
    if smallest == 0:
        evidence += "; combinations without rows are left out of the gaps"
    advice = "Collapse small groups before fitting and auditing, or collect more rows of them."
    return Finding(name, "fail" if smallest < ROWS_PER_CELL[1] else "warn", evidence, advice)


def _join(names: list[str]) -> str:
    quoted = [f"'{name}'" if " " in name else name for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " and " + quoted[-1]

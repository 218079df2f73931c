"""Does the method apply here? Numbers to findings, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from setminus.auditing.calibration import Calibration, CalibrationError
from setminus.auditing.leakage import Leakage
from setminus.auditing.overlap import Cell, Overlap
from setminus.core.groups import group_name

__all__ = ["Finding", "Status", "diagnose", "grade", "verdict"]

Status = Literal["ok", "warn", "fail"]

# a test alone would call any dependence a failure, given rows enough: both a p-value and a size must speak
SIGNIFICANCE = 0.05
LEAKAGE_BITS = (0.005, 0.02)
CALIBRATION_EXCESS = (0.01, 0.05)
EFFECTIVE_SHARE = (0.5, 0.1)
SHARE_BEYOND = (0.01, 0.1)
ROWS_PER_CELL = (30, 5)


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
    leakage: Leakage,
    cells: tuple[Cell, ...],
    full_leakage: Leakage | None = None,
    full_calibration: Calibration | None = None,
    principal_calibration: Calibration | None = None,
    overlap: Overlap | None = None,
) -> tuple[Finding, ...]:
    """The conditions of the method, each with its status; what was not measured is not judged.

    Parameters
    ----------
    leakage : Leakage
        Of the score under audit.
    cells : tuple of Cell
        The (group, label) cells with few rows.
    full_leakage, full_calibration : optional
        Of the full classifier.
    principal_calibration, overlap : optional
        Of the principal classifier.

    Returns
    -------
    tuple of Finding

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
    findings = [_independent(leakage, full_leakage, calibrations), *calibrations]
    if overlap is not None:
        findings.append(_overlaps(overlap))
    return (*findings, _enough_rows(cells))


def verdict(findings: tuple[Finding, ...]) -> str:
    """One sentence over all findings.

    Examples
    --------
    >>> verdict((Finding("overlap", "fail", "..."),))
    'The guarantee does not hold here, since overlap fails: go by the measured gaps and their intervals.'
    """
    failed = [finding.name for finding in findings if finding.status == "fail"]
    warned = [finding.name for finding in findings if finding.status == "warn"]
    if failed:
        return (
            f"The guarantee does not hold here, since {_join(failed)} {'fail' if len(failed) > 1 else 'fails'}: "
            "go by the measured gaps and their intervals."
        )
    if warned:
        return f"Usable with care: look at {_join(warned)}."
    return (
        "Every condition of the method that was measured holds; the gaps and their intervals say how far the decisions "
        "of the groups still differ."
    )


def _independent(leakage: Leakage, full: Leakage | None, calibrations: list[Finding]) -> Finding:
    significant = leakage.p_value <= SIGNIFICANCE
    status: Status = grade(leakage.bits if significant else 0.0, LEAKAGE_BITS)
    evidence = (
        f"the score gives {max(leakage.bits, 0):.4f} bits about the group beyond the label "
        f"({100 * max(leakage.share, 0):.1f} % of what there is to know), within-label AUC {leakage.auc:.3f}, "
        f"permutation p = {leakage.p_value:.3f}"
    )
    if full is not None:
        evidence += f"; the full classifier gives {max(full.bits, 0):.4f} bits, AUC {full.auc:.3f}"
    name = "score independent of the groups given the label"
    if status == "ok":
        return Finding(name, status, evidence)
    if any(finding.status != "ok" for finding in calibrations):
        advice = "First see to what is not calibrated below, then audit again."
    elif full is not None:
        advice = (
            "What the full classifier knows beyond z1 still depends on z1 given the label: tune strength and "
            "threshold under a constraint (TunedOrthogonalClassifier). Where it does not see the groups "
            "themselves, ProxyPrincipal divides by no more than it can know of them."
        )
    else:
        advice = (
            "Orthogonalize the score (OrthogonalClassifier) or, if that is done, tune the strength under a "
            "constraint (TunedOrthogonalClassifier). Pass full_proba and principal_proba to learn which "
            "condition fails."
        )
    return Finding(name, status, evidence, advice)


def _calibrated(which: str, calibration: Calibration) -> Finding:
    overall = calibration.overall
    # each group is one more chance of a false alarm; 200 simulations cannot show a p-value below 1/201
    limit = max(SIGNIFICANCE / len(calibration.groups), 0.005)
    suspects = [overall] if overall.p_value <= SIGNIFICANCE else []
    # a principal classifier is p(y | z1) over all rows; where z1 is not the group, it owes nothing to a single group
    suspects += [group for group in calibration.groups if which == "full" and group.p_value <= limit]
    worst = max(suspects, key=lambda error: error.excess, default=overall)
    status: Status = grade(worst.excess if suspects else 0.0, CALIBRATION_EXCESS)
    evidence = _calibration_evidence(worst)
    advice = {
        "full": "Calibrate the full classifier on held-out rows: calibration='isotonic' in "
        "OrthogonalClassifier, or CalibratedClassifierCV.",
        "principal": "Fit the principal classifier on the same rows as the full one, and calibrate it "
        "(CalibratedClassifierCV). ProxyPrincipal's mixture is a heuristic that seldom is calibrated: tune its "
        "strength (TunedOrthogonalClassifier), or use method='score'.",
    }[which]
    return Finding(f"{which} classifier calibrated", status, evidence, "" if status == "ok" else advice)


def _calibration_evidence(error: CalibrationError) -> str:
    whose = "all rows" if error.group is None else f"group {group_name(error.group)}"
    return (
        f"{whose} (n = {error.n}): calibration error {error.ece:.4f}, where exact probabilities would show "
        f"{error.expected:.4f}, p = {error.p_value:.3f}"
    )


def _overlaps(overlap: Overlap) -> Finding:
    evidence = (
        f"smallest principal probability {overlap.smallest:.2g}; {100 * overlap.share_beyond:.1f} % of rows "
        f"corrected by more than {overlap.factor:g}x; importance weights worth "
        f"{100 * overlap.effective_share:.0f} % of the rows"
    )
    nothing_left = not overlap.effective_share > EFFECTIVE_SHARE[1]
    status: Status = "ok"
    if overlap.share_beyond > SHARE_BEYOND[0] or overlap.effective_share < EFFECTIVE_SHARE[0]:
        status = "warn"
    if overlap.smallest <= 0 or nothing_left or overlap.share_beyond > SHARE_BEYOND[1]:
        status = "fail"
    advice = (
        "Collapse groups that hardly ever have some label, smooth the principal classifier, or lower the "
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
    evidence = f"{len(few)} cells have fewer than {ROWS_PER_CELL[0]} rows ({listed}{more})"
    if smallest == 0:
        evidence += "; empty cells are left out of the gaps"
    advice = "Collapse small groups before fitting and auditing, or collect more rows of them."
    return Finding(name, "fail" if smallest < ROWS_PER_CELL[1] else "warn", evidence, advice)


def grade(size: float, limits: tuple[float, float]) -> Status:
    """What to call something that should be small: below the first limit ok, from the second on a failure."""
    return "ok" if size < limits[0] else "warn" if size < limits[1] else "fail"


def _join(names: list[str]) -> str:
    quoted = [f"'{name}'" if " " in name else name for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " and " + quoted[-1]

"""Any system's scores in a file, audited."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from setminus.auditing.audit import audit
from setminus.auditing.report import Audit
from setminus.estimators.frontier import Constraint
from setminus.estimators.groups import Groups
from setminus.experiments.fairness_record import Step, Stopwatch
from setminus.experiments.records import Record, versions
from setminus.jobs.rows import Roles, group_names, read_rows
from setminus.tables.errors import TableError, check_names
from setminus.tables.reading import Table, open_table
from setminus.tables.values import to_numbers, to_text

__all__ = ["AuditConfig", "audit_table"]

PREFIX = "proba_"


@dataclass(frozen=True)
class AuditConfig:
    """What to audit, and how large a gap may be.

    Parameters
    ----------
    table : str
    label : str
    ignore : tuple of str
        The columns whose groups are compared.
    score : tuple of str
        One column with the probability of the positive class, or one for each class; by default the columns
        ``proba_<class>`` that ``setminus apply`` writes.
    prediction : str, optional
        A column of decisions. By default that of `threshold`; else, where the scores are those that ``setminus
        apply`` wrote, its column ``prediction``; else the most probable class.
    positive : str, optional
        The value of the label that counts as 1.
    threshold : float, optional
    constraint, agg : str
        The gap that `fail_above` bounds.
    fail_above : float, optional
    seed : int
    header : bool, optional
    encoding : str
    """

    table: str
    label: str
    ignore: tuple[str, ...]
    score: tuple[str, ...] = ()
    prediction: str | None = None
    positive: str | None = None
    threshold: float | None = None
    constraint: Constraint = "equalized_odds"
    agg: Literal["max", "sum"] = "max"
    fail_above: float | None = None
    seed: int = 0
    header: bool | None = None
    encoding: str = "utf-8"


def audit_table(config: AuditConfig, step: Step = nullcontext, command: str = "") -> tuple[Audit, Record]:
    """Audit the scores of a file.

    Parameters
    ----------
    config : AuditConfig
    step : callable
        A progress display, see `Step`.
    command : str
        What the user typed, for the record.

    Returns
    -------
    audit : Audit
    record : dict
        With the audit as numbers; ``record["limit"]`` says whether the gap keeps `fail_above`, where that is given.

    Raises
    ------
    TableError
        Where the file cannot be audited as asked.
    """
    try:
        return _audit(config, Stopwatch(step), command)
    except ValueError as error:
        raise TableError.of(error) from error


def _audit(config: AuditConfig, timed: Stopwatch, command: str) -> tuple[Audit, Record]:
    with timed(f"read {Path(config.table).name}"):
        table = open_table(config.table, header=config.header, encoding=config.encoding)
        roles = Roles(config.label, config.ignore, config.positive)
        rows = read_rows(table, roles)
        classes = np.unique(rows.y).tolist()
        scores = _score_columns(config, table, classes)
        proba = np.column_stack([to_numbers(rows.X.column(name), name) for name in scores])
        if np.isnan(proba).any():
            raise TableError(
                f"{int(np.isnan(proba).any(axis=1).sum()):,} rows have no score in {', '.join(scores)}",
                "Leave those rows out, or score them.",
            )
        known = Groups(least=1)
        codes = known.learn(rows.groups, np.searchsorted(classes, rows.y).astype(np.intp))
        groups = group_names(known, rows.groups, codes)
        notes = list(rows.notes)
        judged = config.prediction
        if judged is None and config.threshold is None and not config.score and "prediction" in table.names:
            judged = "prediction"
            notes.append("the decisions are those of the column prediction")
        decisions = _decisions(judged, config, rows.X, _class_of(table, config, classes))
    with timed(f"audit {len(rows):,} rows"):
        result = audit(
            rows.y,
            proba[:, 0] if proba.shape[1] == 1 else proba,
            sensitive_features=groups,
            classes=classes,
            threshold=config.threshold,
            y_pred=decisions,
            random_state=config.seed,
        )
    audited = result.to_dict()
    record: Record = {
        "name": "audit",
        "job": "audit",
        "config": asdict(config),
        "seed": config.seed,
        "versions": versions("pyarrow"),
        "command": command,
        "task": {
            "data": Path(config.table).name,
            "label": roles.question,
            "labels": roles.class_names,
            "score": ", ".join(scores),
            "ignored": ", ".join(config.ignore),
            "rows": {"test": len(rows)},
            "notes": notes,
        },
        "metrics": {"models": [{"title": "score", "about": f"The column {', '.join(scores)}.", "audit": audited}]},
        "steps": timed.seconds,
        "seconds": sum(timed.seconds.values()),
    }
    if config.fail_above is not None:
        record["limit"] = _limit(config, audited)
    return result, record


def _limit(config: AuditConfig, audited: dict[str, Any]) -> dict[str, Any]:
    name = config.constraint + (f"_{config.agg}" if config.constraint == "equalized_odds" else "")
    value = audited[name]["value"]
    passed = value is not None and value <= config.fail_above
    return {"name": name, "limit": config.fail_above, "value": value, "passed": passed}


def _score_columns(config: AuditConfig, table: Table, classes: list[Any]) -> Sequence[str]:
    """The columns of scores, in the order of the classes."""
    names = config.score or tuple(f"{PREFIX}{label}" for label in classes)
    if not config.score and not set(names) <= set(table.names):
        raise TableError(f"{table.path.name} has no columns {', '.join(names)}", "Name the scores: --score COLUMN")
    check_names(names, table.names, table.path.name)
    prefixed = {f"{PREFIX}{label}" for label in classes}
    if set(names) == prefixed:
        return [f"{PREFIX}{label}" for label in classes]
    if len(names) not in (1, len(classes)):
        raise TableError(
            f"{len(names)} columns of scores came for {len(classes)} classes, {', '.join(map(str, classes))}",
            "Give one for each class in this order, or for two classes the second one's.",
        )
    if len(names) == 1 and len(classes) != 2:
        raise TableError(
            f"one column of scores came for {len(classes)} classes, {', '.join(map(str, classes))}",
            "Give one for each class, or the class that counts with --positive.",
        )
    return names


def _class_of(table: Table, config: AuditConfig, classes: list[Any]) -> dict[str, Any]:
    """The class that each word of a decision stands for: the classes, and with --positive the label's own values."""
    words = {str(label): label for label in classes}
    if config.positive is not None:
        values = to_text(table.read([config.label]).column(config.label)).unique().to_pylist()
        words |= {value: int(value == config.positive) for value in values if value is not None}
    return words


def _decisions(judged: str | None, config: AuditConfig, X: Any, class_of: dict[str, Any]) -> Any:
    if judged is None:
        return None
    check_names([judged], X.column_names, Path(config.table).name)
    words = to_text(X.column(judged)).to_pylist()
    missing = sum(word is None for word in words)
    if missing:
        raise TableError(f"{missing:,} rows have no decision in {judged}", "Leave those rows out, or decide them.")
    unknown = sorted({*words} - class_of.keys())
    if unknown:
        # nothing is guessed: "yes" taken for a no would pass for fair
        raise TableError(
            f"the predictions hold {unknown[0]!r}, the label {', '.join(class_of)}",
            "Give predictions of the same classes.",
        )
    return np.array([class_of[word] for word in words])

"""The rows of two scored tables that ``setminus monitor`` compares, and what changed between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from setminus.adaptation.label_shift import mix_distance
from setminus.adaptation.prior_correction import prior_correction
from setminus.commands.scored_columns import PREFIX, ScoredColumns
from setminus.commands.table_roles import MAX_CLASSES, Roles, group_names, read_groups
from setminus.errors import UserError
from setminus.estimators.groups import Groups
from setminus.tables.columns import check_names, coded_text, describe, to_numbers, to_text
from setminus.tables.drift import column_drift, drift_text
from setminus.tables.encoding import TableEncoder
from setminus.tables.reading import open_table

if TYPE_CHECKING:
    from setminus.commands.monitor import MonitorConfig

__all__ = ["MonitoredRows", "find_drift", "read_monitored"]

MAX_ESTIMATED = 20_000
"""The class mix is estimated from this many random rows of each file: more hardly change it."""

N_DRAWS = 2000
"""Simulated samples behind the noise of a distance."""


@dataclass(frozen=True)
class MonitoredRows:
    """The rows of one file: the labels are None where a row has none."""

    name: str
    X: pa.Table
    groups: pa.Table
    proba: NDArray[np.float64] | None
    decisions: NDArray[Any] | None
    words: NDArray[Any] | None
    values: tuple[str, ...]
    classes: list[Any]
    taken: set[str]
    """Columns of scores, decisions, labels and groups: all others are features."""

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which rows have a label."""
        if self.words is None:
            return np.zeros(len(self.X), dtype=bool)
        return np.array([word is not None for word in self.words], dtype=bool)

    @property
    def named_groups(self) -> NDArray[Any]:
        """The group of each row by name, None for a row without one."""
        known = Groups()
        return group_names(known, self.groups, known.learn(self.groups, np.zeros(len(self.groups), dtype=np.intp)))

    def codes(self, positive: str | None) -> NDArray[Any]:
        """The labels of the labelled rows, in the terms of `classes`."""
        words = np.array([] if self.words is None else self.words[self.labelled].tolist(), dtype=str)
        return words if positive is None else (words == positive).astype(np.int64)


def read_monitored(path: str, config: MonitorConfig, like: MonitoredRows | None = None) -> MonitoredRows:
    """Read a scored file; the second one by what the first one holds."""
    opened = open_table(path, header=config.header, encoding=config.encoding, decimal=config.decimal)
    table, data = opened.load()
    name = table.path.name
    if data.num_rows == 0:
        raise UserError(f"{name} has no rows", do="give a table with rows.")
    check_names(config.ignore, table.names, name)
    groups, _ = read_groups(data, config.ignore)
    judged = config.prediction or ("prediction" if "prediction" in table.names else None)
    if config.label is None:
        named = list(config.score) or [column for column in table.names if column.startswith(PREFIX)]
        check_names([*named, *filter(None, [judged])], table.names, name)
        if judged is None:
            raise UserError("without --label, the decisions are needed", do="name them: --prediction COLUMN")
        proba = np.column_stack([to_numbers(data.column(one), one) for one in named]) if named else None
        if proba is not None and np.isnan(proba).any():
            raise UserError(f"{name} has rows without a score", do="leave those rows out, or score them.")
        decided = to_text(data.column(judged))
        if decided.null_count:
            raise UserError(f"{decided.null_count:,} rows have no decision in {judged}", do="leave those rows out.")
        decisions = np.array(decided.to_pylist(), dtype=str)
        classes = sorted({*decisions.tolist(), *(like.classes if like else ())})
        taken = {*named, judged, *config.ignore}
        return MonitoredRows(name, coded_text(data), groups, proba, decisions, None, (), classes, taken)
    roles = Roles(config.label, config.ignore, config.positive)
    if like is None:
        check_names([config.label], table.names, name)
    words = to_text(data.column(config.label)) if config.label in table.names else None
    known = [] if words is None else words.unique().drop_null().to_pylist()
    values = tuple(sorted(known)) if like is None else like.values
    if like is None and (len(values) < 2 or (config.positive is None and len(values) > MAX_CLASSES)):
        raise UserError(
            f"the label {config.label!r} of {name} has {len(values)} values",
            expected=f"2 to {MAX_CLASSES}",
            do="name the one that counts: --positive VALUE." if len(values) > 2 else "",
        )
    if like is None and config.positive is not None:
        check_names([config.positive], values, f"the label {config.label!r}", what="value")
    listed = None if words is None else np.array(words.to_pylist(), dtype=object)
    strange = sorted({*known} - {*values})
    if strange:
        raise UserError(
            f"the label {config.label!r} of {name} has the value {strange[0]!r}", expected=f"one of {values}"
        )
    columns = ScoredColumns(table, roles, values, pa.chunked_array([np.ones(data.num_rows, dtype=bool)]))
    X = coded_text(data)
    scores = columns.scores(config.score) if config.score or columns.has_scores else {}
    if not scores and judged is None:
        raise UserError(f"{name} has neither scores nor decisions", do="name them: --score or --prediction COLUMN")
    return MonitoredRows(
        name,
        X,
        groups,
        columns.proba(X, scores) if scores else None,
        columns.decisions(X, judged, own=config.prediction is not None)[0] if judged else None,
        listed,
        values,
        columns.classes,
        {*scores.values(), *filter(None, [judged]), config.label, *config.ignore},
    )


def find_drift(old: MonitoredRows, new: MonitoredRows, config: MonitorConfig) -> tuple[list[dict[str, Any]], list[str]]:
    """The distances of the two files, and notes."""
    rng = np.random.default_rng(config.seed)
    checks: dict[str, Callable[[float], tuple[float, float, str]]] = {}
    if old.proba is not None and new.proba is not None:
        if old.proba.shape[1] != new.proba.shape[1]:
            raise UserError("the two files have scores of different classes", do="name the same columns: --score")
        checks["scores"] = partial(_score_distance, old.proba, new.proba)
    if old.decisions is not None and new.decisions is not None:
        checks["decisions"] = partial(_share_distance, old.decisions, new.decisions, rng)
    checks["group shares"] = partial(_share_distance, *_group_names(old, new), rng)
    if new.labelled.any():
        checks["class mix"] = partial(_share_distance, old.codes(config.positive), new.codes(config.positive), rng)
    if config.label is not None and old.proba is not None and new.proba is not None:
        checks["estimated class mix"] = partial(_estimated_mix, old, new, config, rng)
    # all checks share the level: equal rows sound an alarm with a chance of 1 - confidence, at most
    confidence = 1 - (1 - config.confidence) / len(checks)
    found = [_entry(what, *check(confidence), config.max_drift) for what, check in checks.items()]
    columns, notes = _unseen(old, new)
    if columns is not None:
        found.append(_entry("unseen values", columns[0], None, columns[1], config.max_drift))
    return found, notes


def _entry(what: str, distance: float, noise: float | None, detail: str, limit: float) -> dict[str, Any]:
    """A distance with its noise, and whether it is above the limit and the noise."""
    above = distance > limit and (noise is None or distance > noise)
    return {
        "what": what,
        "distance": float(distance),
        "noise": None if noise is None else float(noise),
        "limit": limit,
        "above": bool(above),
        "detail": detail,
    }


def _score_distance(old: NDArray[np.float64], new: NDArray[np.float64], confidence: float) -> tuple[float, float, str]:
    """The largest distance of the distribution functions (Kolmogorov-Smirnov) of a class, and that of equal ones."""
    columns = range(old.shape[1]) if old.shape[1] > 2 else [old.shape[1] - 1]
    distance = max(float(ks_2samp(old[:, k], new[:, k], method="asymp").statistic) for k in columns)
    # the level is shared by the classes
    level = (1 - confidence) / len(columns)
    noise = np.sqrt(-np.log(level / 2) / 2 * (1 / len(old) + 1 / len(new)))
    return distance, float(noise), ""


def _share_distance(
    old: NDArray[Any], new: NDArray[Any], rng: np.random.Generator, confidence: float
) -> tuple[float, float, str]:
    """The total variation distance of shares, and that which equal ones exceed by chance."""
    values, codes = np.unique([*map(str, old), *map(str, new)], return_inverse=True)
    counts = [np.bincount(part, minlength=len(values)) for part in (codes[: len(old)], codes[len(old) :])]
    shares = [count / max(count.sum(), 1) for count in counts]
    pooled = (counts[0] + counts[1]) / len(codes)
    drawn = [rng.multinomial(len(part), pooled, N_DRAWS) / max(len(part), 1) for part in (old, new)]
    noise = np.quantile(np.abs(drawn[0] - drawn[1]).sum(axis=1) / 2, confidence)
    most = int(np.abs(shares[0] - shares[1]).argmax())
    detail = f"{values[most]}: {shares[0][most]:.1%} to {shares[1][most]:.1%}"
    return float(np.abs(shares[0] - shares[1]).sum() / 2), float(noise), detail


def _group_names(old: MonitoredRows, new: MonitoredRows) -> tuple[NDArray[Any], NDArray[Any]]:
    """The groups of both files by the bins and names of the first; None for a row without one."""
    known = Groups()
    codes = known.learn(old.groups, np.zeros(len(old.X), dtype=np.intp))
    names = group_names(known, old.groups, codes), group_names(known, new.groups)
    return names[0], np.array(["unseen" if name == "" else name for name in names[1]], dtype=object)


def _estimated_mix(
    old: MonitoredRows, new: MonitoredRows, config: MonitorConfig, rng: np.random.Generator, confidence: float
) -> tuple[float, float, str]:
    """The class mix of the new rows as estimated without their labels (EM), against that of the reference.

    The noise is the half width of the widest interval.
    """
    assert old.proba is not None and new.proba is not None  # noqa: S101 - the caller looked
    labels, proba = old.codes(config.positive), old.proba[old.labelled]
    kept = _some(len(labels), rng)
    target = new.proba[_some(len(new.proba), rng)]
    if len(np.unique(labels[kept])) < len(old.classes):
        raise UserError(f"{old.name} lacks rows of some class", do="give more labelled rows of the reference.")
    found = prior_correction(
        proba[kept], labels[kept], target, shrinkage=0.0, confidence=confidence, random_state=config.seed
    )
    low, high = found.target_prior_interval
    most = int(np.abs(found.target_prior - found.source_prior).argmax())
    names = old.values if config.positive is None else (f"not {config.positive}", config.positive)
    detail = (
        f"{names[most]}: {found.source_prior[most]:.1%} to {found.target_prior[most]:.1%} "
        f"({low[most]:.1%} to {high[most]:.1%})"
    )
    return mix_distance(found.target_prior, found.source_prior), float((high - low).max() / 2), detail


def _some(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.arange(n) if n <= MAX_ESTIMATED else np.sort(rng.choice(n, MAX_ESTIMATED, replace=False))


def _unseen(old: MonitoredRows, new: MonitoredRows) -> tuple[tuple[float, str] | None, list[str]]:
    """The largest share of new rows whose value of a column the reference did not have, with the columns in words."""
    features = old.X.select([name for name in old.X.column_names if name not in old.taken])
    kinds = {column.name: column.kind for column in describe(features) if column.kept}
    absent = [name for name in kinds if name not in new.X.column_names]
    notes = [f"{new.name} has no column {name!r}" for name in absent]
    if not kinds:
        return None, notes
    drift = column_drift(new.X, TableEncoder(kinds=kinds).fit(features).columns_)
    worst = max((part.fraction for part in drift.values()), default=0.0)
    return (worst, drift_text(drift)), notes

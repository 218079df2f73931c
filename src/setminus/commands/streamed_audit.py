"""The audit of a file of any size, in one pass over the columns that are used."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from setminus.auditing.audit import audit_counted
from setminus.commands.audited_rows import AuditedRows, class_order, judged_column, read_audited, read_scores
from setminus.commands.scored_columns import ScoredColumns
from setminus.commands.table_roles import Roles
from setminus.core import Constraint
from setminus.progress import tracked
from setminus.scale.part_files import engine_tasks
from setminus.scale.summary import Score, distinct_values, summarize
from setminus.tables.columns import to_text
from setminus.tables.reading import Table, open_table
from setminus.tables.writing import writing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from setminus.auditing.audit import Audit
    from setminus.commands.audit import AuditConfig

__all__ = ["SAMPLE_ROWS", "audit_streamed"]

SAMPLE_ROWS = 100_000
"""Random rows for what needs each score: leakage, log loss, ROC AUC and scoring rates."""


def audit_streamed(table: Table, config: AuditConfig, constraint: Constraint) -> tuple[AuditedRows, Audit]:
    """Audit a file in one pass.

    Rates, gaps, their intervals and the certificate follow from the counts of all rows, and so do histograms and
    calibration of the scores of two classes; what needs each score comes from a random sample. Counts and sample are
    read as any file is.
    """
    scores, last = _scores(table, config)
    decisions = [*filter(None, [judged_column(table, config)])]
    values = [*([config.label] if config.label is not None else []), *config.ignore, *decisions]
    required = values[: len(values) - len(decisions)]
    with ExitStack() as stack:
        run = None
        if config.engine != "arrow":
            place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            run = stack.enter_context(engine_tasks(config.engine, config.scheduler, config.master, place))
        summary = summarize(
            table,
            values,
            scores,
            threshold=config.threshold,
            decide=not decisions,
            score=last,
            required=required,
            max_rows=SAMPLE_ROWS,
            seed=config.seed,
            run=run,
        )
    with tempfile.TemporaryDirectory() as folder, tracked(f"audit {summary.n_rows:,} rows"):
        parts = []
        cells, counts, binned = summary.cells, summary.counts, summary.binned
        unlabelled = 0
        if config.label is not None:
            labelled = cells.column(config.label).is_valid().to_numpy()
            unlabelled = int(counts[~labelled].sum())
            cells, counts = cells.filter(labelled), counts[labelled]
            binned = None if binned is None else binned.take(labelled)
        for name, rows in (("sample", summary.sample), ("cells", cells)):
            # under the same name, which errors give
            path = Path(folder, name, table.path.name)
            path.parent.mkdir()
            with writing(path) as writer:
                writer.write(rows)
            parts.append(read_audited(open_table(path), config))
        found, exact = parts
        groupings = exact.groupings(config, constraint, counts)
        of_cells, of_sample = (part.asked(config, constraint, groupings) for part in (exact, found))
        result = audit_counted(counts, of_cells, of_sample, binned, confidence=config.confidence)
    found.notes.extend(groupings[1].notes(missing=False))
    if unlabelled:
        found.notes.append(f"{unlabelled:,} of {summary.n_rows:,} rows have no {config.label} and were left out")
    sampled = ["leakage", "log loss", "ROC AUC", "scoring rates"] if scores else []
    sampled += ["calibration", "histograms"] if scores and binned is None else []
    found.notes.append(
        f"rates, gaps, intervals{', calibration, histograms' if binned is not None else ''} and certificate are of all "
        f"{summary.n_rows:,} rows"
        + (f"; {', '.join(sampled)} are of {len(found.groups):,} random ones" if sampled else "")
    )
    return found, result


def _scores(table: Table, config: AuditConfig) -> tuple[list[str], Score | None]:
    """The columns of scores, and how the probability of the last of two classes follows from them."""
    if config.label is None:
        return [*config.score], None
    roles = Roles(config.label, config.ignore, config.positive, favorable=config.favorable)
    words = to_text(distinct_values(table, config.label)).drop_null()
    columns = ScoredColumns(table, roles, tuple(sorted(words.unique().to_pylist())), pa.chunked_array([], pa.bool_()))
    found = read_scores(columns, config)
    if not found or len(columns.classes) != 2:
        return [*found.values()], None
    order = [[*found].index(k) if k in found else None for k in class_order(columns, roles)]
    return [*found.values()], partial(_last, order)


def _last(order: list[int | None], scores: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The probability of the last of two classes, rounded as that of rows in memory; None is one minus the other."""
    first, last = (1 - scores[0] if at is None else scores[at] for at in order)
    return last / (first + last)

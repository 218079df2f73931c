"""``setminus audit``: the gaps between groups of any system's scores, with intervals and a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from setminus.commands import ExitCode
from setminus.commands.options import (
    Decimal,
    Encoding,
    Header,
    Json,
    Positive,
    Quiet,
    Seed,
    finite,
    gap_key,
    typed_command,
)
from setminus.commands.outputs import check_outputs
from setminus.core import Agg, Constraint
from setminus.errors import UserError
from setminus.progress import listen, seconds_by_name, tracked
from setminus.records import Record, to_json, versions, write_json

if TYPE_CHECKING:
    from setminus.auditing.result import Audit

__all__ = ["AuditConfig", "audit", "audit_table"]


def audit(
    table: Annotated[
        Path,
        typer.Argument(
            help="Table with labels and scores or decisions: CSV (also .gz), Parquet or Arrow.", show_default=False
        ),
    ],
    label: Annotated[str, typer.Option(help="Column with the true labels.", show_default=False)],
    ignore: Annotated[
        list[str],
        typer.Option(
            help="Column whose groups are compared. Repeat the option for several: their combinations are then the "
            "groups.",
            show_default=False,
        ),
    ],
    score: Annotated[
        list[str] | None,
        typer.Option(
            help="Column with the probability of the --positive value, or of the second class. With more than two "
            "classes, repeat the option: one column for each class. By default the columns that `setminus apply` wrote."
        ),
    ] = None,
    prediction: Annotated[
        str | None, typer.Option(help="Column with the decisions to audit, in the values of the label.")
    ] = None,
    positive: Positive = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            callback=finite, min=0, max=1, help="Predict the positive class if its probability is at least this."
        ),
    ] = None,
    constraint: Annotated[
        Constraint,
        typer.Option(
            help="Gap that --fail-above limits. equal_opportunity compares the recall of the --positive value, or of "
            "the second of two classes."
        ),
    ] = "equalized_odds",
    agg: Annotated[
        Agg, typer.Option(help="How equalized odds combines the gaps of the classes: their maximum, or their sum.")
    ] = "max",
    fail_above: Annotated[
        float | None,
        typer.Option(
            callback=finite, min=0, help="Exit with code 1 if the gap is larger than this, and 3 if it is undefined."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="JSON file to write the audit to.")] = None,
    page: Annotated[Path | None, typer.Option(help="HTML page to write about the audit.")] = None,
    seed: Seed = 0,
    header: Header = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Audit the scores of any system for gaps between groups.

    Prints the gaps with confidence intervals, how well the score still predicts the group, and a verdict.

    Example: setminus audit scored.parquet --label income --ignore sex --score p --fail-above 0.1
    """
    outputs = {"the audit record": out, "the page": page}
    check_outputs({what: path for what, path in outputs.items() if path is not None}, [table], option="--out or --page")
    from setminus.commands.terminal import Display, echo
    from setminus.files import atomic_writes
    from setminus.report.page import write_page

    display = Display(quiet or json)
    config = AuditConfig(
        table=str(table),
        label=label,
        ignore=tuple(ignore),
        score=tuple(score or ()),
        prediction=prediction,
        positive=positive,
        threshold=threshold,
        constraint=constraint,
        agg=agg,
        fail_above=fail_above,
        seed=seed,
        header=header,
        encoding=encoding,
        decimal=decimal,
    )
    with listen(display):
        result, record = audit_table(config, typed_command())
    wanted = [path for path in (out, page) if path is not None]
    with atomic_writes(*wanted) as partials:
        for partial, path in zip(partials, wanted, strict=True):
            if path is out:
                write_json(partial, record)
            else:
                write_page(partial, [record])
    if json:
        typer.echo(to_json(record))
    display.text(str(result))
    display.say(*(f"Note: {note}" for note in record["task"]["notes"]))
    limit = record.get("limit")
    if limit is not None and limit["undefined"]:
        echo(f"{limit['name']} gap is undefined: some group has no rows of a label", err=True)
        raise typer.Exit(ExitCode.UNJUDGED)
    if limit is not None and not limit["passed"]:
        echo(f"{limit['name']} gap {limit['value']:.3f} is above {limit['limit']:g}", err=True)
        raise typer.Exit(ExitCode.GAP_TOO_LARGE)


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
        One column with the probability of `positive`, without it of the second class in sorted order; or one for each
        class. A column ``proba_X`` is always the probability of the value X of the label. By default the columns of
        that name, which ``setminus apply`` writes.
    prediction : str, optional
        A column of decisions, in the label's own values or ``not V`` for all but the `positive` value V; with
        `positive` also in codes 0 and 1, where the label has neither value. By default that of `threshold`; else,
        where the scores are those that ``setminus apply`` wrote, its column ``prediction``; else the most probable
        class.
    positive : str, optional
        The value of the label that counts as 1.
    threshold : float, optional
    constraint, agg : str
        The gap that `fail_above` bounds.
    fail_above : float, optional
    seed : int
    header : bool, optional
    encoding : str
    decimal : str, optional
        The decimal sign of the file; all rows decide by default.
    """

    table: str
    label: str
    ignore: tuple[str, ...]
    score: tuple[str, ...] = ()
    prediction: str | None = None
    positive: str | None = None
    threshold: float | None = None
    constraint: Constraint = "equalized_odds"
    agg: Agg = "max"
    fail_above: float | None = None
    seed: int = 0
    header: bool | None = None
    encoding: str = "utf-8"
    decimal: str | None = None


def audit_table(config: AuditConfig, command: str = "") -> tuple[Audit, Record]:
    """Audit the scores of a file.

    Parameters
    ----------
    config : AuditConfig
    command : str
        What the user typed, for the record.

    Returns
    -------
    audit : Audit
    record : dict
        With the audit as numbers; ``record["limit"]`` says whether the gap keeps `fail_above`, where that is given.

    Raises
    ------
    UserError
        Where the file cannot be audited as asked.
    """
    with seconds_by_name() as seconds:
        return _audit(config, seconds, command)


def _audit(config: AuditConfig, seconds: dict[str, float], command: str) -> tuple[Audit, Record]:
    from setminus.auditing.audit import audit
    from setminus.commands.scored_columns import ScoredColumns
    from setminus.commands.table_roles import Roles, group_names, read_rows
    from setminus.estimators.groups import Groups
    from setminus.tables.reading import open_table

    with tracked(f"read {Path(config.table).name}"):
        table = open_table(config.table, header=config.header, encoding=config.encoding, decimal=config.decimal)
        roles = Roles(config.label, config.ignore, config.positive)
        rows = read_rows(table, roles)
        columns = ScoredColumns.of(table, roles)
        classes = columns.classes
        scores = columns.scores(config.score)
        proba = columns.proba(rows.X, scores)
        known = Groups(least=1)
        codes = known.learn(rows.groups, np.searchsorted(classes, rows.y).astype(np.intp))
        groups = group_names(known, rows.groups, codes)
        notes = list(rows.notes)
        judged, decisions = config.prediction, None
        if judged is None and config.threshold is None and not config.score and "prediction" in table.names:
            judged = "prediction"
            notes.append("the decisions are those of the column prediction")
        if judged is not None:
            decisions, how = columns.decisions(rows.X, judged, own=config.prediction is not None)
            notes += how
    with tracked(f"audit {len(rows):,} rows"):
        result = audit(
            rows.y,
            proba,
            sensitive_features=groups,
            classes=classes,
            threshold=config.threshold,
            y_pred=decisions,
            random_state=config.seed,
        )
    shown = ", ".join(scores[k] for k in sorted(scores))
    if columns.are_codes and not config.score and result.roc_auc < 0.5:
        # an earlier version called the value 0 proba_1 where it was the --positive one: the file does not say which
        raise UserError(
            f"{shown} of {table.path.name} rank the labels backwards, with an AUC of {result.roc_auc:.3f}: an earlier "
            "version wrote codes, which have two readings",
            do=f"apply the model again. If the scores are that bad, name them: --score {scores[max(scores)]}",
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
            "score": shown,
            "ignored": ", ".join(config.ignore),
            "ignored_columns": [*config.ignore],
            "rows": {"test": len(rows)},
            "notes": notes,
        },
        "metrics": {"models": [{"title": "score", "about": f"The column {shown}.", "audit": audited}]},
        "steps": seconds,
        "seconds": sum(seconds.values()),
    }
    if config.fail_above is not None:
        record["limit"] = _limit(config, audited)
    return result, record


def _limit(config: AuditConfig, audited: dict[str, Any]) -> dict[str, Any]:
    name = gap_key(config.constraint, config.agg)
    value = audited[name]["value"]
    exceeded = value is not None and value > config.fail_above
    # equalized odds compares the rates that there are: below the limit, a missing one may still be above it
    missing = value is None or (config.constraint == "equalized_odds" and _some_rate_is_undefined(audited))
    undefined = missing and not exceeded
    passed = not exceeded and not undefined
    return {"name": name, "limit": config.fail_above, "value": value, "passed": passed, "undefined": undefined}


def _some_rate_is_undefined(audited: dict[str, Any]) -> bool:
    rates = ("true_positive_rate", "false_positive_rate")
    return any(row[rate]["value"] is None for row in audited["group_rates"] for rate in rates)

"""``setminus audit``: the gaps between groups of any system's scores, with intervals and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from setminus.commands import ExitCode, options
from setminus.commands.filing import Filing, write_outputs
from setminus.commands.terminal import Display, check_outputs, configured, echo, finite, typed_command
from setminus.core import Agg, Constraint
from setminus.errors import UserError
from setminus.progress import listen, seconds_by_name, tracked
from setminus.records import Record, run_record, to_json
from setminus.scale import Engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from setminus.auditing.audit import Audit

CHOICES = (
    "constraint",
    "agg",
    "certify",
    "fail_above",
    "fail_by",
    "confidence",
    "favorable",
    "threshold",
    "bins",
    "min_group_size",
)
"""Settings that decide what counts as fair."""

FailBy = Literal["point", "bound"]
"""What `--fail-above` limits."""

MAX_ROWS = 500_000
"""Rows of a Parquet or Arrow file that are read whole; a larger one is audited in one pass."""

__all__ = ["AuditConfig", "audit", "audit_table"]


def audit(
    table: Annotated[
        Path,
        typer.Argument(
            help="Table with labels and scores or decisions: CSV (also .gz), Parquet or Arrow.", show_default=False
        ),
    ],
    ignore: Annotated[
        list[str],
        typer.Option(
            help="Column whose groups are compared. Repeat the option for several: their combinations are then the "
            "groups.",
            show_default=False,
        ),
    ],
    label: Annotated[
        str | None,
        typer.Option(
            help="Column with the true labels. Without it the selection rates of --prediction, or of one --score, are "
            "compared (demographic parity).",
            show_default=False,
        ),
    ] = None,
    score: options.Score = None,
    prediction: Annotated[
        str | None,
        typer.Option(
            help="Column with the decisions to audit, in the values of the label. Scores are not needed then."
        ),
    ] = None,
    positive: options.Positive = None,
    favorable: options.Favorable = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            callback=finite, min=0, max=1, help="Predict the positive class if its probability is at least this."
        ),
    ] = None,
    bins: options.Bins = None,
    min_group_size: Annotated[
        int,
        typer.Option(
            min=1,
            help="Groups with fewer rows of a label that the constraint compares are merged into one for the gaps. "
            "Impact ratios show each of them.",
        ),
    ] = 1,
    constraint: Annotated[
        Constraint,
        typer.Option(
            help="Gap that --fail-above and --certify limit. equal_opportunity compares the recall of the --positive "
            "value, or of the second of two classes."
        ),
    ] = "equalized_odds",
    agg: options.Aggregate = "max",
    fail_above: Annotated[
        float | None,
        typer.Option(
            callback=finite, min=0, help="Exit with code 1 if the gap is larger than this, and 3 if it is undefined."
        ),
    ] = None,
    fail_by: Annotated[
        FailBy,
        typer.Option(help="What --fail-above limits: the measured gap, or its upper bound at the --confidence."),
    ] = "point",
    certify: Annotated[
        float | None,
        typer.Option(
            callback=finite,
            min=0,
            help="Certify that the gap is at most this for new rows, at the --confidence, or refuse and exit with code "
            "1 (3 if some group has no rows). The rows must be fresh: not those the model was fitted or tuned on.",
        ),
    ] = None,
    confidence: options.Confidence = 0.95,
    out: Annotated[Path | None, typer.Option(help="JSON file to write the audit to.")] = None,
    page: Annotated[Path | None, typer.Option(help="HTML page to write about the audit.")] = None,
    junit: Annotated[
        Path | None, typer.Option(help="JUnit XML file to write the results of --fail-above and --certify to.")
    ] = None,
    sarif: Annotated[Path | None, typer.Option(help="SARIF file to write the same results to.")] = None,
    card: options.Card = None,
    pdf: options.Pdf = None,
    model: Annotated[
        Path | None,
        typer.Option(rich_help_panel="Evidence", help="Model file that the scores come from: its SHA-256 is recorded."),
    ] = None,
    approved_by: options.ApprovedBy = None,
    notes: options.Notes = None,
    engine: options.Engine = "arrow",
    scheduler: options.Scheduler = None,
    master: options.Master = None,
    seed: options.Seed = 0,
    header: options.Header = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Audit the scores of any system for gaps between groups.

    Prints the gaps with confidence intervals, how well the score still predicts the group, and a verdict.

    Example: setminus audit scored.parquet --label income --ignore sex --score p --certify 0.1
    """
    engine = "dask" if scheduler else "spark" if master else engine
    config = configured(AuditConfig, locals())
    files = {"record": out, "page": page, "card": card, "pdf": pdf, "junit": junit, "sarif": sarif}
    outputs = "--out, --page, --card, --pdf, --junit or --sarif"
    check_outputs(files, [table, model, notes], option=outputs, force=force)
    if (junit or sarif) and fail_above is None and certify is None:
        raise UserError("there is nothing to report without a limit", do="give --fail-above or --certify.")
    if model is not None and not model.is_file():
        raise UserError(
            f"there is no file {model}", do="name the model that the scores come from, or leave --model out."
        )
    filing = Filing.of(approved_by, notes, pdf)
    display = Display(quiet or json)
    with listen(display):
        result, record = audit_table(config, typed_command(), filing)
    write_outputs(record, files)
    if json:
        typer.echo(to_json(record))
    display.text(str(result))
    display.say(*(f"Note: {note}" for note in record["task"]["notes"]))
    limit = record.get("limit")
    if limit is not None and limit["undefined"]:
        echo(f"{limit['name']} gap is undefined: some group has no rows of a label", err=True)
        raise typer.Exit(ExitCode.UNJUDGED)
    if limit is not None and not limit["passed"]:
        measured = "gap" if fail_by == "point" else "bound of the gap"
        echo(f"{limit['name']} {measured} {limit['value']:.3f} is above {limit['limit']:g}", err=True)
        raise typer.Exit(ExitCode.GAP_TOO_LARGE)
    certificate = result.certificate if certify is not None else None
    if certificate is not None and not certificate.certified:
        for line in result.certificate_lines():
            echo(line, err=True)
        raise typer.Exit(ExitCode.UNJUDGED if certificate.empty else ExitCode.GAP_TOO_LARGE)


@dataclass(frozen=True)
class AuditConfig:
    """The options of `audit`, by name: what to audit, and how large a gap may be.

    A column ``proba_X`` in `score` is always the probability of the value X of the label. Decisions are in the label's
    own values, or ``not V`` for all but the `positive` value V; with `positive` also in codes 0 and 1, where the label
    has neither value. They are those of `prediction`, else of `threshold`, else, where ``setminus apply`` wrote the
    scores, of its column ``prediction``; else the most probable class. Without `label` only selection rates are
    audited.
    """

    table: str
    label: str | None
    ignore: tuple[str, ...]
    score: tuple[str, ...] = ()
    prediction: str | None = None
    positive: str | None = None
    favorable: str | None = None
    threshold: float | None = None
    bins: tuple[str, ...] = ()
    min_group_size: int = 1
    constraint: Constraint = "equalized_odds"
    agg: Agg = "max"
    fail_above: float | None = None
    fail_by: FailBy = "point"
    certify: float | None = None
    confidence: float = 0.95
    engine: Engine = "arrow"
    scheduler: str | None = None
    master: str | None = None
    seed: int = 0
    header: bool | None = None
    encoding: str = "utf-8"
    decimal: str | None = None
    model: str | None = None

    @property
    def edges(self) -> dict[str | int, Sequence[float]]:
        """The edges in `bins`, by column."""
        from setminus.commands.table_roles import read_bins

        return read_bins(self.bins, self.ignore)

    def check(self) -> None:
        """Raise for settings that contradict each other, before the file is read."""
        from setminus.commands.table_roles import check_limit

        check_limit("--fail-above", self.fail_above, self.agg)
        check_limit("--certify", self.certify, self.agg)
        if self.fail_by == "bound" and self.fail_above is None:
            raise UserError("--fail-by bound needs a limit", do="give one: --fail-above 0.1")
        if self.fail_above is not None and self.certify is not None and self.fail_by == "bound":
            raise UserError(
                "--certify and --fail-above with --fail-by bound ask for the same thing", do="give one of the two."
            )
        if self.threshold is not None and self.prediction is not None:
            raise UserError("--threshold and --prediction both decide", do="give one of them.")
        if self.label is None and self.prediction is not None and self.score:
            raise UserError("without --label only the decisions count, not --score", do="leave --score out.")
        repeated = [name for name in self.score if self.score.count(name) > 1]
        if repeated:
            raise UserError(f"--score names the column {repeated[0]!r} twice", do="name one column for each class.")
        judged = [name for name in (*self.score, self.prediction) if name in self.ignore]
        if judged:
            raise UserError(
                f"{judged[0]!r} is both what is audited and a group", do="name another column with --ignore."
            )


def audit_table(config: AuditConfig, command: str = "", filing: Filing | None = None) -> tuple[Audit, Record]:
    """Audit the scores of a file; for the record, `command` is what the user typed.

    The record has the audit as numbers; ``record["limit"]`` says whether the gap keeps `fail_above`, where it is given.
    """
    with seconds_by_name() as seconds:
        return _audit(config, seconds, command, filing or Filing())


def _audit(config: AuditConfig, seconds: dict[str, float], command: str, filing: Filing) -> tuple[Audit, Record]:
    from setminus.auditing.audit import audit
    from setminus.commands.audited_rows import read_audited
    from setminus.commands.streamed_audit import audit_streamed
    from setminus.tables.reading import open_table

    config.check()
    # the selection rates are all that is known without labels
    constraint: Constraint = config.constraint if config.label is not None else "demographic_parity"
    table = open_table(config.table, header=config.header, encoding=config.encoding, decimal=config.decimal)
    if config.engine != "arrow" and table.format == "csv":
        raise UserError(f"--engine {config.engine} needs parts that workers can find", do="give Parquet or Arrow.")
    if config.engine != "arrow" or (table.format != "csv" and (table.n_rows or 0) > MAX_ROWS):
        found, result = audit_streamed(table, config, constraint)
    else:
        with tracked(f"read {table.path.name}"):
            found = read_audited(table, config)
        with tracked(f"audit {len(found.groups):,} rows"):
            groupings = found.groupings(config, constraint)
            result = audit(**found.asked(config, constraint, groupings), confidence=config.confidence)
        found.notes.extend(groupings[1].notes(missing=False))
    if found.codes_or_values is not None and result.roc_auc < 0.5:
        # an earlier version called the value 0 proba_1 where it was the --positive one: the file does not say which
        raise UserError(
            f"{found.scored_by} of {table.path.name} rank the labels backwards, with an AUC of {result.roc_auc:.3f}: "
            "an earlier version wrote codes, which have two readings",
            do=f"apply the model again. If the scores are that bad, name them: --score {found.codes_or_values}",
        )
    notes = found.notes
    if result.n_unknown_group:
        notes.append(f"{result.n_unknown_group:,} rows without a group that is compared are in no rate and no gap")
    audited = result.to_dict()
    record = run_record(
        "audit",
        "audit",
        config,
        command=command,
        task={
            "data": Path(config.table).name,
            "label": found.question,
            "favorable": config.favorable,
            "score": found.scored_by,
            "ignored": ", ".join(config.ignore),
            "ignored_columns": [*config.ignore],
            "rows": {"test": result.n, "unknown_group": result.n_unknown_group},
            "notes": notes,
        },
        metrics={"models": [{"title": "score", "about": f"The column {found.scored_by}.", "audit": audited}]},
        steps=seconds,
        packages=("pyarrow",),
    )
    record["provenance"] = filing.provenance(
        command, record["config"], CHOICES, {"table": config.table, "model": config.model}
    )
    if config.fail_above is not None:
        record["limit"] = _limit(config, constraint, audited)
    return result, record


def _limit(config: AuditConfig, constraint: Constraint, audited: dict[str, Any]) -> dict[str, Any]:
    from setminus.core.gaps import gap_key

    name = gap_key(constraint, config.agg)
    certificate = audited["certificate"] if config.fail_by == "bound" else None
    value = audited[name]["value"] if certificate is None else certificate["bound"]
    exceeded = value is not None and value > config.fail_above
    # equalized odds compares the rates that there are: below the limit, a missing one may still be above it
    missing = value is None or (constraint == "equalized_odds" and _some_rate_is_undefined(audited))
    if certificate is not None:
        missing, exceeded = bool(certificate["empty"]), not certificate["empty"] and not certificate["certified"]
    undefined = missing and not exceeded
    passed = not exceeded and not undefined
    return {
        "name": name,
        "limit": config.fail_above,
        "value": value,
        "by": config.fail_by,
        "passed": passed,
        "undefined": undefined,
    }


def _some_rate_is_undefined(audited: dict[str, Any]) -> bool:
    rates = ("true_positive_rate", "false_positive_rate")
    return any(row[rate]["value"] is None for row in audited["group_rates"] for rate in rates)

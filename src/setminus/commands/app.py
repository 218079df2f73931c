"""The commands: each reads its options and calls the library."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import setminus
from setminus.commands.adapt import adapt
from setminus.commands.data import data_app
from setminus.commands.demo import demo
from setminus.commands.errors import ExitCode, check_outputs
from setminus.commands.options import (
    Agg,
    Constraint,
    Decimal,
    Encoding,
    Engine,
    Header,
    Ignore,
    Json,
    Label,
    Positive,
    Principal,
    Quiet,
    Seed,
    Trusted,
    finite,
)
from setminus.commands.streams import echo
from setminus.commands.transfer import transfer_app
from setminus.commands.usage import typed_command, usage
from setminus.errors import UserError
from setminus.progress import listen, tracked

__all__ = ["app"]


class _Commands(TyperGroup):
    """All commands; what click would take for the end of a prompt, with exit code 1, is an error like others."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise UserError("a file ends too early", do="it may be damaged or not complete: copy it again.") from error


# nothing heavy is imported up here: --help must answer at once
app = typer.Typer(
    cls=_Commands,
    help="Predict as well as you can without what you must ignore.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with:  setminus demo,  or:  setminus fit people.csv --label income --ignore sex --out model.skops\n\n"
    "Exit codes: 0 done; 1 the gap is above audit --fail-above; 2 the input or the call has to be mended; 3 could not "
    "judge (the gap is undefined, or setminus failed); 130 interrupted.",
)
app.add_typer(data_app, name="data")
app.add_typer(transfer_app, name="transfer")
app.command()(demo)
app.command(no_args_is_help=True)(adapt)


def _reproduce(context: typer.Context) -> None:
    """Measure the paper's figures, tables and claims again: comes with the package setminus-paper."""
    raise UserError(
        "setminus reproduce comes with the package setminus-paper, which is not installed",
        do="install it from the folder paper of the repository: pip install ./paper",
    )


_others = {point.name: point for point in entry_points(group="setminus.commands")}
if "reproduce" in _others:
    app.command(no_args_is_help=True)(_others["reproduce"].load())
else:
    # whatever options were typed, the answer is the same
    app.command("reproduce", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(_reproduce)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"setminus {setminus.__version__}")
        raise typer.Exit


@app.callback()
def setminus_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options that every command shares."""


@app.command()
def fit(
    table: Annotated[Path, typer.Argument(help="CSV (also .gz), Parquet or Arrow file to learn from.")],
    label: Label,
    ignore: Ignore,
    out: Annotated[Path, typer.Option(help="Where to write the model; audit.json and report.html go beside it.")],
    positive: Positive = None,
    full: Annotated[
        str, typer.Option(help="hist_gradient_boosting, logistic, or a model file to take as it is.")
    ] = "hist_gradient_boosting",
    principal: Annotated[
        Principal, typer.Option(help="proxy: the groups are unknown when the model is used; group: they are known.")
    ] = "proxy",
    constraint: Annotated[
        Constraint,
        typer.Option(
            help="The gap between groups to bound. equal_opportunity: of the --positive label, else the second of two."
        ),
    ] = "equalized_odds",
    agg: Annotated[
        Agg, typer.Option(help="Equalized odds: the larger difference, or the sum as in the paper.")
    ] = "max",
    tolerance: Annotated[float, typer.Option(callback=finite, min=0, help="How large that gap may be.")] = 0.05,
    test: Annotated[Path | None, typer.Option(help="A file to judge by, instead of held-out rows.")] = None,
    test_size: Annotated[float, typer.Option(callback=finite, help="Share of the rows to hold out.")] = 0.25,
    seed: Seed = 0,
    header: Header = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = None,
    trust: Trusted = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a model that ignores columns, tune how much, audit it, write it with a page about it.

    Example: setminus fit adult.csv --label income --ignore sex --out model.skops
    """
    audit_file, page = out.parent / "audit.json", out.parent / "report.html"
    check_outputs(
        {"the model": out, "its audit": audit_file, "its page": page},
        [table, Path(full), *([] if test is None else [test])],
    )
    from setminus.commands.display import Display
    from setminus.commands.fitting import FitConfig, fit_table
    from setminus.files import atomic_writes
    from setminus.records import to_json, write_json
    from setminus.report.page import write_page

    display = Display(quiet or json)
    config = FitConfig(
        table=str(table),
        label=label,
        ignore=tuple(ignore),
        positive=positive,
        full=full,
        principal=principal,
        constraint=constraint,
        agg=agg,
        tolerance=tolerance,
        test=None if test is None else str(test),
        test_size=test_size,
        seed=seed,
        header=header,
        encoding=encoding,
        decimal=decimal,
        trusted=tuple(trust or ()),
    )
    with listen(display):
        model, record = fit_table(config, typed_command())
    needs = (
        "with the ignored columns" if record["task"]["groups_needed"] else "without the ignored columns, if you like"
    )
    record["usage"], record["usage_command"] = usage(out, needs)
    writing = tracked("write the model, the audit and the page")
    with listen(display), writing, atomic_writes(audit_file, page, out) as partials:
        write_json(partials[0], record)
        write_page(partials[1], [record])
        setminus.save(model, partials[2])
    if json:
        typer.echo(to_json(record))
        return
    display.columns(record["task"])
    display.models(record)
    display.say(f"model  {out}", f"audit  {audit_file}", f"page   {page.resolve()}")


@app.command()
def apply(
    arguments: Annotated[
        list[Path], typer.Argument(metavar="[MODEL] DATA", help="A model file and the table to score, or the table.")
    ],
    out: Annotated[Path, typer.Option(help="Where to write the table with its scores; the ending says the format.")],
    full: Annotated[str | None, typer.Option(help="Columns of full probabilities, separated by commas.")] = None,
    principal: Annotated[str | None, typer.Option(help="Columns of principal probabilities, likewise.")] = None,
    prior: Annotated[
        str | None, typer.Option(help="Class frequencies of the principal's data, by commas, or uniform.")
    ] = None,
    strength: Annotated[
        float, typer.Option(callback=finite, min=0, help="How much to subtract; 1 is the paper's formula.")
    ] = 1.0,
    engine: Annotated[Engine, typer.Option(help="arrow: here; dask: 2 processes, or a cluster.")] = "arrow",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a running Dask scheduler; on another machine, tls://.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a table with values that training did not have, before scoring it.")
    ] = False,
    neutralize_formulas: Annotated[
        bool | None,
        typer.Option(
            help="CSV: put ' before text that a spreadsheet would run; by default only before text from the model."
        ),
    ] = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = None,
    trust: Trusted = None,
    quiet: Quiet = False,
) -> None:
    """Score a table of any size with a model, or subtract columns of probabilities without one.

    Example: setminus apply model.skops big.parquet --out scored.parquet
    Example: setminus apply scores.parquet --full p0,p1 --principal q0,q1 --prior 0.7,0.3 --out scored.parquet
    """
    check_outputs({"the scored table": out}, arguments)
    from setminus.commands.applying import apply_file
    from setminus.commands.display import Display
    from setminus.tables.drift import drift_text, unranged_text

    display = Display(quiet)
    with listen(display):
        done = apply_file(
            arguments,
            out,
            full=full,
            principal=principal,
            prior=prior,
            strength=strength,
            engine=engine if scheduler is None else "dask",
            scheduler=scheduler,
            header=header,
            encoding=encoding,
            decimal=decimal,
            neutralize=neutralize_formulas,
            trusted=tuple(trust or ()),
            strict=strict,
        )
    # also when quiet: the scores of such rows are guesses
    if unseen := drift_text(done.drift):
        echo(f"Warning: values that training did not have: {unseen}. --strict refuses such a table.", err=True)
    if unranged := unranged_text(done.drift):
        echo(f"Warning: not compared with training, as the model lacks their range: {unranged}.", err=True)
    display.say(*(f"Note: {note}" for note in done.notes))
    display.say(f"{done.n_rows:,} rows with {', '.join(done.scores)} in {out}")


@app.command()
def audit(
    table: Annotated[Path, typer.Argument(help="CSV (also .gz), Parquet or Arrow file with labels and scores.")],
    label: Label,
    ignore: Ignore,
    score: Annotated[
        list[str] | None,
        typer.Option(
            help="Column with the probability of --positive, else of the second class; or one for each class (repeat)."
        ),
    ] = None,
    prediction: Annotated[
        str | None, typer.Option(help="Column of decisions to judge, in the label's own values.")
    ] = None,
    positive: Positive = None,
    threshold: Annotated[
        float | None, typer.Option(callback=finite, min=0, max=1, help="Decide by this score.")
    ] = None,
    constraint: Annotated[
        Constraint,
        typer.Option(
            help="The gap that --fail-above bounds. equal_opportunity: of the --positive label, else the second of two."
        ),
    ] = "equalized_odds",
    agg: Annotated[Agg, typer.Option(help="Equalized odds: the larger difference, or the sum.")] = "max",
    fail_above: Annotated[
        float | None,
        typer.Option(callback=finite, min=0, help="Exit with 1 where the gap is larger, with 3 where it is undefined."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the audit as JSON to this file.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write a page about it to this file.")] = None,
    seed: Seed = 0,
    header: Header = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Audit any system's scores: gaps with intervals, what they still say of the groups, and a verdict.

    Example: setminus audit scored.parquet --label income --ignore sex --score p --fail-above 0.1
    """
    outputs = {"the audit": out, "the page": page}
    check_outputs({what: path for what, path in outputs.items() if path is not None}, [table], option="--out or --page")
    from setminus.commands.auditing import AuditConfig, audit_table
    from setminus.commands.display import Display
    from setminus.files import atomic_writes
    from setminus.records import to_json, write_json
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


@app.command()
def info(
    model: Annotated[Path, typer.Argument(help="A model file that setminus wrote.")],
    trust: Trusted = None,
    json: Json = False,
) -> None:
    """Say what a model file holds: what it predicts, what it ignores, which columns it needs, how it was judged."""
    from setminus.commands.describing import describe_model
    from setminus.commands.display import Display
    from setminus.records import to_json

    about = describe_model(model, tuple(trust or ()))
    if json:
        typer.echo(to_json(about))
    else:
        Display().about(about)


@app.command()
def report(
    runs: Annotated[Path, typer.Argument(help="A folder with records.jsonl or audit.json, or such a file.")],
    out: Annotated[Path | None, typer.Option(help="Where to write the page; beside the records by default.")] = None,
) -> None:
    """Make the page again, from the records alone."""
    from setminus.commands.reporting import record_files, write_records_page

    files = record_files(runs)
    page = (runs.parent if runs.is_file() else runs) / "report.html" if out is None else out
    check_outputs({"the page": page}, files)
    echo(write_records_page(files, page).resolve())

"""``setminus apply``: score a table with a model, or subtract columns that hold probabilities already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setminus.commands import options
from setminus.commands.terminal import Display, check_outputs, echo, finite
from setminus.errors import UserError
from setminus.progress import listen

if TYPE_CHECKING:
    from setminus.scale.scorers import Scorer
    from setminus.tables.reading import Table

__all__ = ["apply", "parse_prior"]


def apply(
    arguments: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MODEL] DATA",
            help="A model file and the table to score. With --full, --principal and --prior: the table alone.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Table to write, with the scores added. The ending of its name, such as .csv, chooses the format.",
            show_default=False,
        ),
    ],
    full: Annotated[
        str | None, typer.Option(help="Columns with the probabilities of the full classifier, separated by commas.")
    ] = None,
    principal: Annotated[
        str | None, typer.Option(help="Columns with the probabilities of the principal classifier, in the same order.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Class frequencies of the data that the principal classifier was trained on, separated by commas; or "
            "uniform."
        ),
    ] = None,
    strength: Annotated[
        float,
        typer.Option(
            callback=finite, min=0, help="How much of the principal classifier to remove. 1 is the paper's formula."
        ),
    ] = 1.0,
    engine: options.Engine = "arrow",
    scheduler: options.Scheduler = None,
    master: options.Master = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail if the table has values outside the range or levels seen in training."),
    ] = False,
    neutralize_formulas: Annotated[
        bool | None,
        typer.Option(
            help="CSV: write ' before text that a spreadsheet would execute as a formula. By default only before text "
            "that comes from the model."
        ),
    ] = None,
    header: options.Header = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = None,
    trust: options.Trusted = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Add predictions and probabilities to a table of any size.

    With a model file, its predictions and probabilities are added to the table. Without a model file, the table must
    already hold the probabilities of a full and a principal classifier: what the principal predicts is removed from the
    full classifier.

    Example: setminus apply model.skops big.parquet --out scored.parquet

    Example: setminus apply scores.parquet --full p0,p1 --principal q0,q1 --prior 0.7,0.3 --out scored.parquet
    """
    check_outputs({"table": out}, arguments, force=force)
    from setminus.scale.scoring import score_file
    from setminus.tables.drift import drift_text, unranged_text

    display = Display(quiet)
    with listen(display):
        scorer, table = _opened(
            arguments,
            {"--full": full, "--principal": principal, "--prior": prior},
            strength,
            strict=strict,
            trusted=tuple(trust or ()),
            header=header,
            encoding=encoding,
            decimal=decimal,
        )
        done = score_file(
            table,
            out,
            scorer,
            neutralize=neutralize_formulas,
            engine="dask" if scheduler else "spark" if master else engine,
            scheduler=scheduler,
            master=master,
            strict=strict,
        )
    # also when quiet: the scores of such rows are guesses
    if unseen := drift_text(done.drift):
        echo(f"Warning: values that were not seen in training: {unseen}. --strict refuses such a table.", err=True)
    if unranged := unranged_text(done.drift):
        echo(f"Warning: not compared with training, as the model does not hold their range: {unranged}.", err=True)
    display.say(*(f"Note: {note}" for note in done.notes))
    display.say(f"{done.n_rows:,} rows with {', '.join(done.scores)} in {out}")


def _opened(
    files: Sequence[Path],
    columns: dict[str, str | None],
    strength: float,
    *,
    strict: bool,
    trusted: tuple[str, ...],
    **reading: Any,
) -> tuple[Scorer, Table]:
    """What scores, and the table: a model and its table, or columns of probabilities by option and a table alone."""
    from setminus.scale.scorers import ModelScorer, ProbabilityScorer
    from setminus.tables.reading import open_table

    given = [value for value in columns.values() if value is not None]
    if len(files) != (1 if given else 2):
        raise UserError(
            f"the number of files is {len(files)}",
            do="give the table alone with --full, --principal and --prior." if given else "give a model and a table.",
        )
    if given and strict:
        raise UserError(
            "--strict was given without a model", do="leave it out: columns of probabilities have no training data."
        )
    table = open_table(files[-1], **reading)
    if not given:
        model = ModelScorer(files[0], trusted)
        return model, table.like(model.decimal())
    if len(given) < len(columns):
        raise UserError(
            "without a model file, three things are needed",
            do="give --full COLUMNS --principal COLUMNS --prior NUMBERS.",
        )
    full, principal, prior = given
    names = table.names
    return ProbabilityScorer(_columns(full, names), _columns(principal, names), parse_prior(prior), strength), table


def _columns(text: str, names: Sequence[str]) -> list[str]:
    # a column whose name has a comma in it is still one column
    return [text] if text in names else [name.strip() for name in text.split(",")]


def parse_prior(text: str) -> list[float] | str:
    """Class frequencies from what was typed."""
    if text == "uniform":
        return text
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise UserError(f"the prior is {text!r}", do="give class frequencies such as 0.7,0.3, or uniform.") from None

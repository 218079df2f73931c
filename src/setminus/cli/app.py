"""The commands: each reads its options and calls the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import setminus
from setminus.cli.errors import check_folder

__all__ = ["app"]

# nothing heavy is imported up here: --help must answer at once
app = typer.Typer(
    help="Predict as well as you can without what you must ignore.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its record.")] = Path("report"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the fits, the folds and the audit.")] = 0,
    picture: Annotated[Path | None, typer.Option(help="Draw the result as a PNG file, too.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the path of the page only.")] = False,
) -> None:
    """Take the tour: make a model on real census data ignore sex, audit it, write a page about it."""
    check_folder(out, "--out")
    if picture is not None:
        check_folder(picture.parent, "--picture")
    from setminus.cli.display import Display
    from setminus.experiments.demo import DemoConfig, run_demo
    from setminus.experiments.records import append_record, read_records
    from setminus.report.page import write_page

    display = Display(quiet)
    append_record(out / "records.jsonl", run_demo(DemoConfig(seed=seed), display.step))
    # the page sees nothing but what the file holds
    record = read_records(out / "records.jsonl")[-1]
    with display.step("write the page"):
        page = write_page(out / "index.html", [record])
    if picture is not None:
        from setminus.report.picture import draw_picture

        with display.step("draw the picture"):
            draw_picture(record, picture)
    display.fairness(record)
    typer.echo(page.resolve())

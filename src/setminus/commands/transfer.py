"""``setminus transfer``: pictures of one folder's style in the other's, with one factor changed or kept."""

from __future__ import annotations

import logging
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from setminus.commands.errors import ExitCode, check_outputs
from setminus.commands.options import Quiet, finite
from setminus.commands.streams import echo
from setminus.commands.usage import typed_command
from setminus.errors import MissingExtraError, UserError
from setminus.progress import listen

if TYPE_CHECKING:
    from setminus.commands.display import Display

__all__ = ["transfer_app"]

transfer_app = typer.Typer(
    help="Translate pictures between two folders, and say which factor is to change, or which is to stay.",
    no_args_is_help=True,
)


@transfer_app.command("fit", no_args_is_help=True)
def transfer_fit(
    a_dir: Annotated[Path, typer.Argument(metavar="A_DIR", help="Pictures of the one style.", show_default=False)],
    b_dir: Annotated[Path, typer.Argument(metavar="B_DIR", help="Pictures of the other.", show_default=False)],
    labels: Annotated[
        Path,
        typer.Option(
            help="CSV: first column file names (as in A_DIR or B_DIR, or a path from the CSV), then labels. It need "
            "not list all pictures, only some taken at random, and may list others.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the model, samples, records and the page.", show_default=False)],
    change: Annotated[
        str | None, typer.Option(help="Column with the factor to change; what else differs stays.", show_default=False)
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="Column with the factor to keep; what else differs changes.", show_default=False)
    ] = None,
    size: Annotated[int, typer.Option(help="Pictures are cut to squares of so many pixels a side.")] = 64,
    steps: Annotated[int, typer.Option(min=1, help="Steps of training; twice as many take twice as long.")] = 2_000,
    width: Annotated[int, typer.Option(min=1, help="Channels of the networks' first layers.")] = 32,
    batch_size: Annotated[int, typer.Option(min=1, help="Pictures of each folder in a step.")] = 16,
    rate: Annotated[float, typer.Option(callback=finite, help="Learning rate of the generators.")] = 2e-4,
    every: Annotated[int, typer.Option(min=1, help="Steps between two sample grids and checkpoints.")] = 500,
    allow_grey: Annotated[
        bool, typer.Option("--allow-grey", help="Take grey pictures, too, which are refused otherwise.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split, the weights and the batches.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Begin anew where OUT holds a model already.")] = False,
    quiet: Quiet = False,
) -> None:
    """Learn to translate pictures of A_DIR to the style of B_DIR and back.

    The folders differ in more than one factor: the men in A are mostly dark-haired, the women in B mostly blond. The
    column tells one of them. --change sex turns men into women and keeps their hair; --keep hair does, too, and needs
    no label of sex. The column must vary in one folder at least, or among pictures listed from elsewhere: otherwise
    nobody can tell the two factors apart.

    While it trains, OUT/samples has a grid every so often: A, A to B, B, B to A. A training that was stopped goes on
    with the same command and --resume.

    Example: setminus transfer fit men/ women/ --labels people.csv --change sex --out model/
    Example: setminus transfer fit men/ women/ --labels people.csv --keep hair --out model/ --size 32 --steps 500
    """
    column, role = _one_of(change, keep)
    for name, folder in (("A_DIR", a_dir), ("B_DIR", b_dir)):
        if os.path.realpath(out) == os.path.realpath(folder):
            raise UserError(f"{out} is {name}, whose pictures are read", do="name another folder: --out FOLDER")
    check_outputs({"the page": out / "report.html", "the record": out / "records.jsonl"}, [labels])
    from setminus.commands.display import Display

    _prepare_torch()
    from setminus.commands.translating import CHECKPOINTS, FoldersConfig, fit_folders
    from setminus.transfer.folder_translation import TranslationConfig

    display = Display(quiet)
    config = FoldersConfig(
        a_folder=str(a_dir),
        b_folder=str(b_dir),
        labels=str(labels),
        column=column,
        size=size,
        allow_grey=allow_grey,
        translation=TranslationConfig(
            role, steps=steps, batch_size=batch_size, rate=rate, width=width, every=every, seed=seed
        ),
    )
    command = typed_command("--resume", "--force")
    try:
        with listen(display):
            record = fit_folders(
                config,
                out,
                resume=resume,
                force=force,
                note=lambda text: display.say(f"Note: {text}."),
                command=command,
            )
    except KeyboardInterrupt:
        begun = (out / CHECKPOINTS).exists()
        advice = f"Go on with: {command} --resume" if begun else "Nothing was kept: begin again with the same command."
        echo(f"Stopped. {advice}", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _show(record, display)
    display.say(
        f"model  {out}",
        f"page   {(out / 'report.html').resolve()}",
        f"use    setminus transfer apply {shlex.quote(str(out))} NEW_PICTURES --out translated/",
    )


@transfer_app.command("apply", no_args_is_help=True)
def transfer_apply(
    model: Annotated[Path, typer.Argument(help="A folder that `setminus transfer fit` wrote.", show_default=False)],
    images: Annotated[
        list[Path], typer.Argument(metavar="IMAGES", help="Pictures, or a folder of them.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder for the new pictures.", show_default=False)],
    direction: Annotated[
        Literal["a-to-b", "b-to-a"], typer.Option(help="From the style of which folder to that of which.")
    ] = "a-to-b",
    force: Annotated[bool, typer.Option("--force", help="Replace files that OUT has already.")] = False,
    quiet: Quiet = False,
) -> None:
    """Translate pictures with a model: each is written as a PNG of its name, in the model's size.

    Pictures may be of any size and kind, grey or in color; they are cut to the square in their middle. All are read
    before the first is written, and none is ever overwritten by its translation.

    Example: setminus transfer apply model/ new_men/ --out as_women/
    Example: setminus transfer apply model/ ann.jpg eve.png --direction b-to-a --out as_men/
    """
    _prepare_torch()
    from setminus.commands.display import Display
    from setminus.commands.restyling import translate_files

    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file", do="name a folder: --out FOLDER")
    if out.is_symlink() and not out.exists():
        raise UserError(f"{out} is a link that leads to no folder", do="name a folder: --out FOLDER")
    display = Display(quiet)
    with listen(display):
        written = translate_files(
            model,
            images,
            out,
            direction="a_to_b" if direction == "a-to-b" else "b_to_a",
            force=force,
        )
    display.say(f"{len(written):,} pictures in {out}")


def _one_of(change: str | None, keep: str | None) -> tuple[str, Literal["change", "keep"]]:
    if change is not None and keep is None:
        return change, "change"
    if keep is not None and change is None:
        return keep, "keep"
    came = "both came" if change is not None else "neither came"
    raise UserError(
        f"of --change and --keep {came}",
        do="give one: --change COLUMN for what is to change, --keep COLUMN for what stays.",
    )


def _prepare_torch() -> None:
    """Say what to install before the modules that need it say what they lack; and keep the output ours."""
    for name in ("torch", "lightning_fabric", "safetensors", "PIL"):
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            raise MissingExtraError("style transfer", name, extra="nn") from error
    # which precision it takes is no news for whoever asked for pictures; after its import, which sets the level
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)


def _show(record: dict[str, Any], display: Display) -> None:
    from setminus.report.translation import summary

    rows = summary(record)
    widest = max(len(what) for what, _, _ in rows)
    judged = record["task"]["images"]
    display.say("", f"Of {judged['a_held'] + judged['b_held']:,} held-out pictures, as classifiers see them:")
    display.say(*(f"  {what:{widest}}  {share:>7}   ({judge})" for what, share, judge in rows), "")

"""``setminus transfer``: translate pictures between the styles of two folders, with one factor changed or kept."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from setminus.commands import ExitCode, options
from setminus.commands.terminal import Display, check_outputs, echo, finite, typed_command
from setminus.errors import MissingExtraError, UserError
from setminus.files import atomic_write
from setminus.progress import listen, seconds_by_name, tracked
from setminus.records import Record, append_record, run_record

if TYPE_CHECKING:
    from setminus.datasets.images import Bytes
    from setminus.transfer.translator import OrthogonalTranslator

__all__ = ["transfer_app"]

CHECKPOINTS = "checkpoints"
"""Within the model's folder."""
PARTS = ("classifiers", "training", "baseline")
"""What is in there."""
PER_ROW = 4
"""Of the samples on the page: large enough to see on a telephone."""

transfer_app: typer.Typer = typer.Typer(
    help="Translate pictures between two folders, and choose which factor changes and which stays.",
    no_args_is_help=True,
)


@transfer_app.command("fit", no_args_is_help=True)
def transfer_fit(
    a_dir: Annotated[
        Path, typer.Argument(metavar="A_DIR", help="Folder with pictures of the first style.", show_default=False)
    ],
    b_dir: Annotated[
        Path, typer.Argument(metavar="B_DIR", help="Folder with pictures of the second style.", show_default=False)
    ],
    labels: Annotated[
        Path,
        typer.Option(
            help="CSV file. First column: names of pictures, as in A_DIR or B_DIR, or paths relative to the CSV file. "
            "Other columns: labels. It may list a random sample of the pictures, and pictures of other folders.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for the model, sample pictures, records and the page.", show_default=False)
    ],
    change: Annotated[
        str | None,
        typer.Option(help="Column with the factor that changes. All other differences stay.", show_default=False),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(help="Column with the factor that stays. All other differences change.", show_default=False),
    ] = None,
    size: Annotated[int, typer.Option(help="Pixels per side. Pictures are cropped to squares and resized.")] = 64,
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps.")] = 2_400,
    width: Annotated[int, typer.Option(min=1, help="Channels of the first layer of each network.")] = 16,
    batch_size: Annotated[int, typer.Option(min=1, help="Pictures of each folder in one training step.")] = 8,
    rate: Annotated[float, typer.Option(callback=finite, help="Learning rate of the generators.")] = 5e-4,
    every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Steps between sample pictures, and between checkpoints. Default: a quarter of --steps."
        ),
    ] = None,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Train plain CycleGAN as well, to compare. Takes twice the time.")
    ] = False,
    allow_grey: Annotated[
        bool, typer.Option("--allow-grey", help="Accept grey pictures, which are refused by default.")
    ] = False,
    device: Annotated[
        Literal["auto", "cpu", "cuda", "mps"], typer.Option(help="Where to train. auto: a GPU where there is one.")
    ] = "auto",
    devices: Annotated[int, typer.Option(min=1, help="Processes, one on each device, which share each batch.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads of each process. Default: all cores.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the split, the weights and the batches.")] = 0,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue a training that was stopped, or train on with a larger --steps."),
    ] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="Remove the checkpoints at the end. --resume is not possible afterwards.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Start again and replace the model or the checkpoints in OUT.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn to translate pictures of A_DIR to the style of B_DIR and back.

    Two folders often differ in several factors: in A men, mostly dark-haired; in B women, mostly blond. One labelled
    column chooses what the translation changes. --change sex turns men into women and keeps their hair. --keep hair
    does the same and needs no labels of sex. The column must vary within at least one folder, or among other listed
    pictures: otherwise the factors cannot be separated.

    With both options the labels of --keep choose what stays, and those of --change measure what changes.

    During training, sample pictures are written to OUT/samples: a grid of A, A to B, B, B to A. To continue a training
    that was stopped, repeat the command with --resume; to train a finished model further, add --steps with a
    larger number.

    Example: setminus transfer fit men/ women/ --labels people.csv --change sex --out model/

    Example: setminus transfer fit men/ women/ --labels people.csv --keep hair --out model/ --size 32 --steps 500
    """
    if change is None and keep is None:
        raise UserError(
            "of --change and --keep neither came",
            do="give one: --change COLUMN for what is to change, --keep COLUMN for what stays.",
        )
    for name, folder in (("A_DIR", a_dir), ("B_DIR", b_dir)):
        if os.path.realpath(out) == os.path.realpath(folder):
            raise UserError(f"{out} is {name}, whose pictures are read", do="name another folder: --out FOLDER")
    check_outputs({"page": out / "report.html", "record": out / "records.jsonl"}, [labels])
    _check_packages()
    from setminus.transfer.networks import kind_for
    from setminus.transfer.translator import OrthogonalTranslator

    kind_for(size)
    # a further process of several, which the first one started
    helper = os.environ.get("LOCAL_RANK", "0") != "0"
    display = Display(quiet or helper)
    command = typed_command("--resume", "--force")
    translator = OrthogonalTranslator(
        change,
        keep,
        steps=steps,
        batch_size=batch_size,
        learning_rate=rate,
        width=width,
        every=every,
        baseline=baseline,
        device=device,
        devices=devices,
        threads=threads,
        random_state=seed,
    )
    if not helper:
        _check_out(out, resume, force)
        if force and not resume:
            _remove_begun(out)
    try:
        with listen(display), seconds_by_name() as seconds:
            translator.fit_folders(
                a_dir,
                b_dir,
                labels,
                size=size,
                allow_grey=allow_grey,
                checkpoints=out / CHECKPOINTS,
                resume=resume or helper,
                ready=lambda found: _announce(found, display),
                look=lambda done, grid: _write_png(out / "samples" / f"step-{done:06d}.png", grid),
            )
            if helper:
                return
            # with the steps of an earlier process, where it was resumed
            seconds["train the generators"] = translator.report_["seconds"]
            record = translation_record(translator, {"size": size, "allow_grey": allow_grey}, seconds, command)
            _write_model(translator, record, out)
    except KeyboardInterrupt:
        begun = (out / CHECKPOINTS).exists()
        advice = f"Go on with: {command} --resume" if begun else "Nothing was kept: begin again with the same command."
        echo(f"Stopped. {advice}", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if finish:
        _remove_checkpoints(out)
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
        list[Path], typer.Argument(metavar="IMAGES", help="Pictures, or a folder of pictures.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder for the translated pictures.", show_default=False)],
    direction: Annotated[
        Literal["a-to-b", "b-to-a"],
        typer.Option(help="a-to-b: from the style of A_DIR to that of B_DIR. b-to-a: the reverse."),
    ] = "a-to-b",
    keep_size: Annotated[
        bool,
        typer.Option(
            "--keep-size", help="Write pictures in their own size: the change is enlarged and added to the original."
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Leave out pictures that OUT has already.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist in OUT.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Translate pictures with a trained model.

    Each picture is turned upright, cropped to the square in its middle, resized to the size of the model, and written
    as PNG under its own name, in folders as they were. Originals are never overwritten. Pictures that cannot be read
    are named at the end. To continue after an interruption, repeat the command with --resume.

    Example: setminus transfer apply model/ new_men/ --out as_women/

    Example: setminus transfer apply model/ ann.jpg eve.png --direction b-to-a --out as_men/
    """
    _check_packages()

    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file", do="name a folder: --out FOLDER")
    if out.is_symlink() and not out.exists():
        raise UserError(f"{out} is a link that leads to no folder", do="name a folder: --out FOLDER")
    from setminus.transfer.picture_files import translate_files
    from setminus.transfer.translator import OrthogonalTranslator

    display = Display(quiet)
    try:
        with listen(display):
            written = translate_files(
                OrthogonalTranslator.load(model),
                images,
                out,
                to="b" if direction == "a-to-b" else "a",
                keep_size=keep_size,
                resume=resume,
                force=force,
            )
    except KeyboardInterrupt:
        echo(f"Stopped. Go on with: {typed_command('--resume', '--force')} --resume", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    display.say(f"{len(written):,} pictures in {out}")


def _announce(found: dict[str, Any], display: Display) -> None:
    display.say(*(f"Note: {text}." for text in found["notes"]))
    if found["seconds"] is not None:
        display.say(f"The training takes about {_duration(found['seconds'])}.")


def _duration(seconds: float) -> str:
    """A time in words.

    Examples
    --------
    >>> _duration(40), _duration(400), _duration(10_000)
    ('40 seconds', '7 minutes', '2.8 hours')
    """
    if seconds < 100:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 6_000 else f"{seconds / 3600:.1f} hours"


def _write_model(translator: OrthogonalTranslator, record: Record, out: Path) -> None:
    from setminus.report.page import write_page

    # the page is complete before the model is replaced: a full disk must not leave one without the other
    with tracked("write the model and the page"), atomic_write(out / "report.html") as page:
        write_page(page, [record])
        translator.save(out)
        append_record(out / "records.jsonl", record)


def _check_out(out: Path, resume: bool, force: bool) -> None:
    from setminus.transfer.model_files import CONFIG

    finished, begun = (out / CONFIG).exists(), (out / CHECKPOINTS).exists()
    if resume and not begun:
        state = "is finished and has no checkpoints" if finished else "holds nothing that was begun"
        raise UserError(f"{str(out)!r} {state}, there is nothing to resume", do="leave --resume out.")
    if resume or force:
        return
    if finished:
        raise UserError(
            f"{str(out)!r} holds a model",
            do="choose another --out, replace it with --force, or train it further with --resume and more --steps.",
        )
    if begun:
        raise UserError(
            f"{str(out)!r} holds a training that was stopped",
            do="go on with --resume, begin anew with --force, or choose another --out.",
        )


def _remove_begun(out: Path) -> None:
    _remove_checkpoints(out)
    for sample in (out / "samples").glob("step-*.png"):
        sample.unlink()


def _remove_checkpoints(out: Path) -> None:
    for part in PARTS:
        shutil.rmtree(out / CHECKPOINTS / part, ignore_errors=True)
    # whatever else somebody has put there is not ours
    if (out / CHECKPOINTS).is_dir() and not any((out / CHECKPOINTS).iterdir()):
        (out / CHECKPOINTS).rmdir()


def _write_png(path: Path, image: Bytes) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as partial:
        Image.fromarray(image).save(partial, format="PNG")


def translation_record(
    translator: OrthogonalTranslator, reading: dict[str, Any], seconds: dict[str, float], command: str
) -> Record:
    """What the page shows of a fitted translator.

    Parameters
    ----------
    translator : OrthogonalTranslator
    reading : dict
        How its pictures were read.
    seconds : dict of str to float
        Times of its parts.
    command : str
        The command that repeats it.
    """
    from setminus.transfer.fitting import strip_png
    from setminus.transfer.networks import kind_for

    report, about = translator.report_, translator.about_
    # paths of the user's disk are no part of it
    settings = {name: value for name, value in translator.get_params().items() if not name.startswith("principal")}
    return run_record(
        "transfer",
        "translation",
        {**settings, **reading},
        command=command,
        task={
            **about,
            "folders": list(translator.domains_),
            "kept_column": translator.keep if translator.change is not None else None,
            "network": kind_for(translator.size_),
            **{name: report[name] for name in ("images", "labelled", "notes")},
        },
        metrics={
            **{name: report[name] for name in ("verdict", "directions", "baseline", "accuracy", "factors")},
            **{name: report[name] for name in ("curves", "losses")},
            "samples": {name: strip_png(strip, PER_ROW) for name, strip in translator.samples_.items()},
            "baseline_samples": {
                name: strip_png(strip, PER_ROW) for name, strip in translator.baseline_samples_.items()
            },
            "seconds_per_step": round(report["seconds"] / report["steps"], 4),
        },
        steps=seconds,
        packages=("torch", "safetensors", "pillow"),
        seed=translator.random_state,
    )


def _check_packages() -> None:
    """Raise if a package of style transfer is missing."""
    for name in ("torch", "lightning_fabric", "safetensors", "PIL"):
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            raise MissingExtraError("style transfer", name, extra="nn") from error


def _show(record: dict[str, Any], display: Display) -> None:
    from setminus.report.translation import summary

    images = record["task"]["images"]
    display.say("", f"Of {images['a_held'] + images['b_held']:,} held-out pictures, as classifiers see them:")
    display.table(*summary(record))
    display.say("", f"verdict  {record['metrics']['verdict']}", "")

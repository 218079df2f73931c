"""``setminus transfer``: translate pictures between the styles of two folders, with one factor changed or kept."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from setminus.commands import ExitCode
from setminus.commands.terminal import Display, Quiet, check_outputs, echo, finite, typed_command
from setminus.errors import MissingExtraError, UserError
from setminus.files import atomic_write
from setminus.progress import listen, seconds_by_name, tracked
from setminus.records import Record, append_record, run_record

if TYPE_CHECKING:
    from setminus.datasets.images import Bytes
    from setminus.datasets.two_factor_folder import LabelledImages
    from setminus.nn.losses import Direction
    from setminus.transfer.folder_classifiers import FolderClassifiers, Role
    from setminus.transfer.folder_translation import FolderTranslation, TranslationConfig

__all__ = ["FoldersConfig", "fit_folders", "transfer_app", "translate_files"]

CHECKPOINTS = "checkpoints"
"""Within the model's folder, as long as the training goes on."""
PARTS = ("classifiers", "training")
"""What is in there."""
AT_ONCE = 64
"""Pictures that are translated in one batch."""

transfer_app = typer.Typer(
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
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps.")] = 2_000,
    width: Annotated[int, typer.Option(min=1, help="Channels of the first layer of each network.")] = 32,
    batch_size: Annotated[int, typer.Option(min=1, help="Pictures of each folder in one training step.")] = 16,
    rate: Annotated[float, typer.Option(callback=finite, help="Learning rate of the generators.")] = 2e-4,
    every: Annotated[int, typer.Option(min=1, help="Steps between two sample pictures, and two checkpoints.")] = 500,
    allow_grey: Annotated[
        bool, typer.Option("--allow-grey", help="Accept grey pictures, which are refused by default.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the split, the weights and the batches.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a training that was stopped.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Start again and replace the model or the checkpoints in OUT.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Learn to translate pictures of A_DIR to the style of B_DIR and back.

    Two folders often differ in several factors: in A men, mostly dark-haired; in B women, mostly blond. One labelled
    column chooses what the translation changes. --change sex turns men into women and keeps their hair. --keep hair
    does the same and needs no labels of sex. The column must vary within at least one folder, or among other listed
    pictures: otherwise the factors cannot be separated.

    During training, OUT/samples gets a grid of pictures from time to time: A, A to B, B, B to A. To continue a
    training that was stopped, repeat the command with --resume.

    Example: setminus transfer fit men/ women/ --labels people.csv --change sex --out model/

    Example: setminus transfer fit men/ women/ --labels people.csv --keep hair --out model/ --size 32 --steps 500
    """
    column, role = _one_of(change, keep)
    for name, folder in (("A_DIR", a_dir), ("B_DIR", b_dir)):
        if os.path.realpath(out) == os.path.realpath(folder):
            raise UserError(f"{out} is {name}, whose pictures are read", do="name another folder: --out FOLDER")
    check_outputs({"the page": out / "report.html", "the record": out / "records.jsonl"}, [labels])
    _prepare_torch()
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
        list[Path], typer.Argument(metavar="IMAGES", help="Pictures, or a folder of pictures.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder for the translated pictures.", show_default=False)],
    direction: Annotated[
        Literal["a-to-b", "b-to-a"],
        typer.Option(help="a-to-b: from the style of A_DIR to that of B_DIR. b-to-a: the reverse."),
    ] = "a-to-b",
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist in OUT.")] = False,
    quiet: Quiet = False,
) -> None:
    """Translate pictures with a trained model.

    Each picture is cropped to the square in its middle, resized to the size of the model, and written as PNG under
    its own name. All pictures are read before the first is written, and originals are never overwritten.

    Example: setminus transfer apply model/ new_men/ --out as_women/

    Example: setminus transfer apply model/ ann.jpg eve.png --direction b-to-a --out as_men/
    """
    _prepare_torch()

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


@dataclass(frozen=True)
class FoldersConfig:
    """Which pictures, which column, and how.

    Parameters
    ----------
    a_folder, b_folder, labels, column, size, allow_grey
        See `TwoFactorFolder`.
    translation : TranslationConfig
    """

    a_folder: str
    b_folder: str
    labels: str
    column: str
    translation: TranslationConfig
    size: int = 64
    allow_grey: bool = False


def fit_folders(
    config: FoldersConfig,
    out: Path,
    *,
    resume: bool = False,
    force: bool = False,
    note: Callable[[str], None] = lambda text: None,
    command: str = "",
) -> Record:
    """Learn a translation and write it: the model, samples on the way, a record, and a page.

    Parameters
    ----------
    config : FoldersConfig
    out : Path
        A folder; a model is in there as soon as the training has ended, and only then.
    resume : bool
        Go on with what was stopped in `out`.
    force : bool
        Begin anew where `out` holds a model, or part of one.
    note : callable
        Told what to be careful about, before the training begins.
    command : str
        What the user typed, for the record.

    Returns
    -------
    dict
        The record.

    Raises
    ------
    ValueError
        Before the training, where the pictures or the labels cannot be used as asked.
    """
    from setminus.transfer.translator import kind_for

    kind_for(config.size)
    _check_out(out, resume, force)
    with seconds_by_name() as seconds:
        return _fit(config, out, resume, force, note, command, seconds)


def _fit(
    config: FoldersConfig,
    out: Path,
    resume: bool,
    force: bool,
    note: Callable[[str], None],
    command: str,
    seconds: dict[str, float],
) -> Record:
    from setminus.datasets.two_factor_folder import TwoFactorFolder
    from setminus.nn.training import NotFiniteError
    from setminus.report.page import write_page
    from setminus.transfer.folder_translation import fit_translation, folder_notes
    from setminus.transfer.translator import save_translator

    with tracked("read the pictures"):
        folders = TwoFactorFolder(
            config.a_folder, config.b_folder, config.labels, config.column, config.size, config.allow_grey
        )
        images = folders.load()
    if force and not resume:
        _remove_begun(out)
    notes: list[str] = []

    def checked(classifiers: FolderClassifiers, counts: dict[str, int]) -> None:
        notes.extend(folder_notes(images, classifiers, config.translation.role, config.column))
        for text in notes:
            note(text)

    try:
        made = fit_translation(
            images,
            config.translation,
            folder=out / CHECKPOINTS,
            resume=resume,
            checked=checked,
            look=lambda done, grid: _write_png(out / "samples" / f"step-{done:06d}.png", grid),
        )
    except NotFiniteError as error:
        raise UserError(
            f"the training broke down ({error})", do="begin anew with --force and a smaller --rate."
        ) from error
    # with the steps of an earlier process, where it was resumed
    seconds["train the generators"] = made.outcome.seconds
    record = _record(config, images, made, notes, seconds, command)
    about = {key: record["task"][key] for key in ("column", "values", "role", "data")}
    # the page is complete before the model is replaced: a full disk must not leave one without the other
    with tracked("write the model and the page"), atomic_write(out / "report.html") as page:
        write_page(page, [record])
        save_translator(replace(made.translator, about=about), out, made.classifiers.modules)
        append_record(out / "records.jsonl", record)
    _remove_checkpoints(out)
    return record


def _check_out(out: Path, resume: bool, force: bool) -> None:
    from setminus.transfer.translator import CONFIG

    finished, begun = (out / CONFIG).exists(), (out / CHECKPOINTS).exists()
    if resume and not begun:
        state = "is finished" if finished else "holds nothing that was begun"
        raise UserError(f"{str(out)!r} {state}, there is nothing to resume", do="leave --resume out.")
    if resume or force:
        return
    if begun:
        raise UserError(
            f"{str(out)!r} holds a training that was stopped",
            do="go on with --resume, begin anew with --force, or choose another --out.",
        )
    if finished:
        raise UserError(f"{str(out)!r} holds a model", do="choose another --out, or replace it with --force.")


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


def _record(
    config: FoldersConfig,
    images: LabelledImages,
    made: FolderTranslation,
    notes: list[str],
    seconds: dict[str, float],
    command: str,
) -> Record:
    from setminus.datasets.split import UNLABELLED
    from setminus.transfer.folder_translation import strip_png
    from setminus.transfer.translator import kind_for

    found, looks, history = made.classifiers, made.outcome.evaluations, made.outcome.history
    # resolved: a folder may have been given as a dot
    names = [Path(folder).resolve().name for folder in (config.a_folder, config.b_folder)]
    return run_record(
        "transfer",
        "translation",
        config,
        command=command,
        task={
            "data": " and ".join(names),
            "folders": names,
            "column": config.column,
            "values": list(images.values),
            "role": config.translation.role,
            "network": kind_for(config.size),
            "images": {**made.images, "elsewhere": int((images.y == UNLABELLED).sum())},
            "labelled": int((images.z != UNLABELLED).sum()),
            "notes": notes,
        },
        metrics={
            "accuracy": {name: asdict(one) for name, one in found.accuracy.items()},
            "given": found.given,
            "changed": made.scores,
            "curves": {
                "step": [one["step"] for one in looks],
                **{name: [one["both"][name] for one in looks] for name in ("domain", "column", "rest")},
            },
            "losses": {name: [round(entry[name], 4) for entry in history] for name in history[0]},
            "samples": {name: strip_png(strip) for name, strip in made.strips.items()},
            "seconds_per_step": round(made.outcome.seconds / made.outcome.steps, 4),
        },
        steps=seconds,
        packages=("torch", "safetensors", "pillow"),
        seed=config.translation.seed,
    )


def translate_files(
    model: Path,
    pictures: Sequence[Path],
    out: Path,
    *,
    direction: Direction = "a_to_b",
    force: bool = False,
) -> list[Path]:
    """Translate pictures and write them.

    Nothing is written before every picture was read; a picture itself is never overwritten.

    Parameters
    ----------
    model : Path
        A folder that `fit_folders` wrote.
    pictures : sequence of Path
        Files, or folders of files; folders within them are not entered.
    out : Path
        A folder.
    direction : {"a_to_b", "b_to_a"}
    force : bool
        Replace files that `out` has already.

    Returns
    -------
    list of Path
        The new files, in the order of the pictures.

    Raises
    ------
    ValueError
        If the model or a picture cannot be read, or a file would be overwritten.
    """
    from PIL import Image

    from setminus.datasets.images import decode_into
    from setminus.transfer.translator import load_translator

    translator = load_translator(model)
    files = [file for given in pictures for file in _files(given)]
    targets = [out / file.with_suffix(".png").name for file in files]
    _check_targets(files, targets, force)
    images = np.empty((len(files), translator.size, translator.size, 3), dtype=np.uint8)
    decode_into(images, ((row, str(file), file) for row, file in enumerate(files)))
    out.mkdir(parents=True, exist_ok=True)
    with tracked("translate the pictures", total=len(files), unit="pictures") as progress:
        for start in range(0, len(files), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            translated = translator.translate(images[part], direction)
            for image, target in zip(translated, targets[part], strict=True):
                with atomic_write(target) as partial:
                    Image.fromarray(image).save(partial, format="PNG")
            progress.advance(len(translated))
    return targets


def _one_of(change: str | None, keep: str | None) -> tuple[str, Role]:
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
    """Raise if a package of style transfer is missing, and silence Lightning's messages."""
    for name in ("torch", "lightning_fabric", "safetensors", "PIL"):
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            raise MissingExtraError("style transfer", name, extra="nn") from error
    # after its import, which sets the level
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)


def _files(given: Path) -> list[Path]:
    from setminus.datasets.images import SUFFIXES

    if given.is_file():
        return [given]
    if not given.is_dir():
        raise UserError(f"{str(given)!r} does not exist", do="give pictures, or a folder of them.")
    found = [
        file
        for file in sorted(given.iterdir())
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()
    ]
    if not found:
        raise UserError(f"{str(given)!r} has no pictures ({', '.join(sorted(SUFFIXES))})", do="give a folder of some.")
    return found


def _check_targets(files: Sequence[Path], targets: Sequence[Path], force: bool) -> None:
    from setminus.datasets.images import show_names

    twice = [name for name, count in Counter(str(target) for target in targets).items() if count > 1]
    if twice:
        raise UserError(
            f"several pictures would be written to {show_names(twice)}",
            do="translate them one after another, each to its own --out.",
        )
    originals = {file.resolve() for file in files}
    own = [str(target) for target in targets if target.resolve() in originals]
    if own:
        raise UserError(f"the pictures themselves would be overwritten, {show_names(own)}", do="choose another --out.")
    there = [str(target) for target in targets if target.exists()]
    if there and not force:
        raise UserError(
            f"{len(there)} of {len(targets)} files are there already, {show_names(there)}",
            do="choose another --out, or replace them with --force.",
        )


def _show(record: dict[str, Any], display: Display) -> None:
    from setminus.report.translation import summary

    rows = summary(record)
    widest = max(len(what) for what, _, _ in rows)
    judged = record["task"]["images"]
    display.say("", f"Of {judged['a_held'] + judged['b_held']:,} held-out pictures, as classifiers see them:")
    display.say(*(f"  {what:{widest}}  {share:>7}   ({judge})" for what, share, judge in rows), "")

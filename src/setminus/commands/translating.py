"""From two folders of pictures to a model that translates them, with samples on the way and a page at the end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from setminus.datasets.images import Bytes
from setminus.datasets.split import UNLABELLED
from setminus.datasets.two_factor_folder import LabelledImages, TwoFactorFolder
from setminus.errors import UserError
from setminus.files import atomic_write
from setminus.nn.training import NotFiniteError
from setminus.progress import seconds_by_name, tracked
from setminus.records import Record, append_record, versions
from setminus.report.page import write_page
from setminus.transfer.folder_classifiers import FolderClassifiers
from setminus.transfer.folder_translation import (
    FolderTranslation,
    TranslationConfig,
    fit_translation,
    folder_notes,
    strip_png,
)
from setminus.transfer.networks import kind_for
from setminus.transfer.translator import CONFIG, save_translator

__all__ = ["FoldersConfig", "fit_folders"]

CHECKPOINTS = "checkpoints"
"""Within the model's folder, as long as the training goes on."""
PARTS = ("classifiers", "training")
"""What is in there."""


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
    found, looks, history = made.classifiers, made.outcome.evaluations, made.outcome.history
    # resolved: a folder may have been given as a dot
    names = [Path(folder).resolve().name for folder in (config.a_folder, config.b_folder)]
    return {
        "name": "transfer",
        "job": "translation",
        "config": asdict(config),
        "seed": config.translation.seed,
        "versions": versions("torch", "safetensors", "pillow"),
        "command": command,
        "task": {
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
        "metrics": {
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
        "steps": dict(seconds),
        "seconds": sum(seconds.values()),
    }

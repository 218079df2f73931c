"""Pictures through a model that translates them, each to a PNG of its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from setminus.datasets.images import SUFFIXES, decode_into, show_names
from setminus.errors import UserError
from setminus.files import atomic_write
from setminus.progress import tracked
from setminus.transfer.translator import Direction, load_translator

__all__ = ["translate_files"]

AT_ONCE = 64


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
    translator = load_translator(model)
    files = [file for given in pictures for file in _files(given)]
    targets = [out / file.with_suffix(".png").name for file in files]
    _check_targets(files, targets, force)
    images = np.empty((len(files), translator.size, translator.size, 3), dtype=np.uint8)
    decode_into(images, ((row, str(file), file) for row, file in enumerate(files)))
    from PIL import Image

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


def _files(given: Path) -> list[Path]:
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

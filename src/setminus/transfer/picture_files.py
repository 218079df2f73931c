"""Pictures in files through a translator: a stream of any length, in bounded memory, that goes on where it stopped."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setminus.datasets.images import (
    SUFFIXES,
    Bytes,
    UnreadableImageError,
    decode_image,
    read_upright,
    show_names,
)
from setminus.errors import UserError
from setminus.files import atomic_write
from setminus.progress import tracked

if TYPE_CHECKING:
    from setminus.transfer.translator import OrthogonalTranslator

__all__ = ["translate_files"]

AT_ONCE = 64
"""Pictures that are translated in one batch."""
AHEAD = 2
"""Batches that are read while another is translated."""

Pair = tuple[Path, Path]


def translate_files(
    translator: OrthogonalTranslator,
    pictures: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    to: str = "b",
    keep_size: bool = False,
    resume: bool = False,
    force: bool = False,
) -> list[Path]:
    """Translate pictures in files and write them as PNG under their names, in the folders that they are in.

    Each picture is turned upright as its EXIF orientation says, and the square in its middle is translated. Originals
    are never overwritten. What cannot be read is passed over, and named in an error at the end.

    Parameters
    ----------
    translator : OrthogonalTranslator
        A fitted one.
    pictures : sequence of path
        Files, or folders of files and of further folders; hidden ones and `out` are not entered.
    out : path
        A folder.
    to : "a", "b" or a label of the domains
    keep_size : bool
        Write pictures in their own size: what the translation adds to the small square is enlarged and added to the
        original. By default the small square is written.
    resume : bool
        Leave out pictures that `out` has already.
    force : bool
        Replace files that `out` has already.

    Returns
    -------
    list of Path
        The new files, in the order of the pictures.

    Raises
    ------
    ValueError
        If a file would be overwritten, before the first is written; if pictures could not be read, at the end.
    """
    home, direction = Path(out), translator.direction(to)
    found = [pair for given in pictures for pair in _found(Path(given), home)]
    files, targets = [file for file, _ in found], [home / name.with_suffix(".png") for _, name in found]
    _check_targets(files, targets, force or resume)
    todo = [pair for pair in zip(files, targets, strict=True) if not (resume and pair[1].exists())]
    for folder in {home, *(target.parent for _, target in todo)}:
        folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    unread: dict[str, UnreadableImageError] = {}
    with (
        ThreadPoolExecutor(os.cpu_count()) as pool,
        tracked("translate the pictures", total=len(files), unit="pictures") as progress,
    ):
        progress.advance(len(files) - len(todo))
        for pairs, images, errors in _batches(pool, todo, translator.size_):
            unread |= errors
            if pairs:
                translated = translator.translator_.translate(images, direction)
                writes = [
                    pool.submit(_write, file, target, small, new, keep_size)
                    for (file, target), small, new in zip(pairs, images, translated, strict=True)
                ]
                written += [write.result() for write in writes]
            progress.advance(len(pairs) + len(errors))
    if unread:
        first, others = next(iter(unread.values())), len(files) - len(unread)
        names = f", {show_names(unread)}" if len(unread) > 1 else ""
        raise UnreadableImageError(
            f"{len(unread)} of {len(files)} pictures were not translated{names}; {first.came}",
            do=f"{first.do} The other {others:,} are in {home}.",
        )
    return written


def _batches(
    pool: ThreadPoolExecutor, todo: Sequence[Pair], size: int
) -> Iterator[tuple[list[Pair], Bytes, dict[str, UnreadableImageError]]]:
    """Batches of pictures, the next ones read meanwhile: their files, their pixels, and what could not be read."""
    waiting: deque[list[tuple[Pair, Future[Bytes]]]] = deque()
    starts = iter(range(0, len(todo), AT_ONCE))
    while True:
        for start in starts:
            pairs = todo[start : start + AT_ONCE]
            waiting.append([(pair, pool.submit(decode_image, pair[0], size, str(pair[0]))) for pair in pairs])
            if len(waiting) > AHEAD:
                break
        if not waiting:
            return
        read: list[Pair] = []
        images: list[Bytes] = []
        errors: dict[str, UnreadableImageError] = {}
        for pair, future in waiting.popleft():
            try:
                images.append(future.result())
                read.append(pair)
            except UnreadableImageError as error:
                errors[str(pair[0])] = error
        yield read, np.stack(images) if images else np.empty((0, size, size, 3), np.uint8), errors


def _write(file: Path, target: Path, small: Bytes, translated: Bytes, keep_size: bool) -> Path:
    from PIL import Image

    # opened again: the originals of a whole batch would fill the memory
    image = _pasted(read_upright(file, str(file)), small, translated) if keep_size else Image.fromarray(translated)
    with atomic_write(target) as partial:
        image.save(partial, format="PNG")
    return target


def _pasted(original: Any, small: Bytes, translated: Bytes) -> Any:
    """The original, with the difference of the two small squares added to the square in its middle."""
    from PIL import Image

    side = min(original.size)
    left, top = ((length - side) // 2 for length in original.size)
    pixels = np.array(original)
    square = pixels[top : top + side, left : left + side]
    change = translated.astype(np.float32) - small
    for channel in range(3):
        enlarged = Image.fromarray(change[..., channel]).resize((side, side), Image.Resampling.BILINEAR)
        square[..., channel] = np.rint(square[..., channel] + np.asarray(enlarged)).clip(0, 255)
    return Image.fromarray(pixels)


def _found(given: Path, out: Path) -> list[Pair]:
    """A file and its name, or the pictures of a folder and their paths within it."""
    if given.is_file():
        return [(given, Path(given.name))]
    if not given.is_dir():
        raise UserError(f"{str(given)!r} does not exist", do="give pictures, or a folder of them.")
    found: list[Pair] = []
    for folder, within, names in os.walk(given):
        here = Path(folder)
        # what an earlier run wrote is no picture to translate
        within[:] = sorted(name for name in within if name[0] != "." and (here / name).resolve() != out.resolve())
        files = [here / name for name in sorted(names) if name[0] != "."]
        found += [
            (file, file.relative_to(given)) for file in files if file.suffix.lower() in SUFFIXES and file.is_file()
        ]
    if not found:
        raise UserError(f"{str(given)!r} has no pictures ({', '.join(sorted(SUFFIXES))})", do="give a folder of some.")
    return found


def _check_targets(files: Sequence[Path], targets: Sequence[Path], may_exist: bool) -> None:
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
    there = [] if may_exist else [str(target) for target in targets if target.exists()]
    if there:
        raise UserError(
            f"{len(there)} of {len(targets)} files are there already, {show_names(there)}",
            do="go on with --resume, replace them with --force, or choose another --out.",
        )

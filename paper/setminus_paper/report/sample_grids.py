"""Images of a table of style transfer and what each method made of them, row below row."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setminus.errors import UserError
from setminus.files import atomic_write
from setminus.report.translation import checked_png
from setminus_paper.published import TABLE1

__all__ = ["Grid", "Strip", "draw_grids", "sample_grids"]

Record = dict[str, Any]

DIRECTIONS = (("a", "a_to_b", "From domain A to B"), ("b", "b_to_a", "From domain B to A"))
MARGIN, GAP, TITLE = 12, 6, 26
"""Pixels around a picture, between its rows, and for the titles."""


@dataclass(frozen=True)
class Strip:
    """Images side by side: a PNG in base64."""

    label: str
    png: str


@dataclass(frozen=True)
class Grid:
    """The images of one domain in the first strip, and below it what each method made of them."""

    title: str
    seed: int
    strips: list[Strip]


def sample_grids(records: Sequence[Record], *, seed: Literal["first", "last"] = "first") -> list[Grid]:
    """A grid for each domain, the same images in every row; none where no record of the table has images.

    `seed` is the first or the last of those for which most methods were measured.
    """
    by_seed: dict[int, list[Record]] = {}
    order = [*TABLE1]
    for record in sorted(records, key=lambda one: _place(one["config"]["method"], order)):
        if record["metrics"].get("samples"):
            by_seed.setdefault(record["seed"], []).append(record)
    if not by_seed:
        return []
    most = max(map(len, by_seed.values()))
    whole = sorted(one for one, found in by_seed.items() if len(found) == most)
    chosen = whole[0] if seed == "first" else whole[-1]
    samples = [(one["metrics"]["row"]["label"], one["metrics"]["samples"]) for one in by_seed[chosen]]
    first = samples[0][1]
    # one that was planned with other images has no place below these
    samples = [(label, own) for label, own in samples if all(own[domain] == first[domain] for domain, *_ in DIRECTIONS)]
    grids = []
    for domain, direction, title in DIRECTIONS:
        strips = [Strip(label, checked_png(own[direction])) for label, own in samples]
        grids.append(Grid(title, chosen, [Strip("Input", checked_png(first[domain])), *strips]))
    return grids


def draw_grids(grids: Sequence[Grid], path: str | os.PathLike[str], *, scale: int = 3) -> None:
    """Draw grids of the same rows side by side as PNG, every pixel of an image as a square of `scale` pixels."""
    from PIL import Image, ImageDraw, ImageFont

    if not grids:
        raise UserError("there are no images", do="a picture needs records that have samples.")
    labels = [strip.label for strip in grids[0].strips]
    panels = [[_enlarged(strip.png, scale) for strip in grid.strips] for grid in grids]
    height, width = panels[0][0].shape[:2]
    font = ImageFont.load_default(13)
    names = round(max(font.getlength(label) for label in labels)) + MARGIN
    size = 2 * MARGIN + names + len(grids) * (width + MARGIN), 2 * MARGIN + TITLE + len(labels) * (height + GAP)
    picture = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(picture)
    for column, (grid, panel) in enumerate(zip(grids, panels, strict=True)):
        left = MARGIN + names + column * (width + MARGIN)
        pen.text((left, MARGIN), grid.title, fill="black", font=font)
        for place, image in enumerate(panel):
            top = MARGIN + TITLE + place * (height + GAP)
            picture.paste(Image.fromarray(image), (left, top))
            if column == 0:
                pen.text((MARGIN, top + height // 2), labels[place], fill="black", font=font, anchor="lm")
    with atomic_write(Path(path)) as partial:
        # a third of the bytes, and no difference to see
        picture.quantize(256, dither=Image.Dither.NONE).save(partial, format="PNG", optimize=True)


def _enlarged(png: str, scale: int) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(png))) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=np.uint8)
    return pixels.repeat(scale, axis=0).repeat(scale, axis=1)


def _place(method: str, order: list[str]) -> int:
    return order.index(method) if method in order else len(order)

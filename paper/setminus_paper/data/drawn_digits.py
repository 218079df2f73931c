"""House numbers drawn from fonts: a labelled digit in the middle, neighbours cut at the edges, any colors.

They take the place of SYN-DIGITS, which can no longer be had, and are made as that set is described: numbers of one
to three digits in many fonts, places, turns, colors and blurs. They are not that set, nor taken from it.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setminus.datasets.images import Bytes
from setminus.datasets.split import Split
from setminus.errors import UserError

if TYPE_CHECKING:
    from PIL import Image

Floats = NDArray[np.float64]

SMALLEST = 16
"""The smallest height and width at which the digits are legible."""
FINE = 2
"""Shapes are drawn so many times larger, then averaged: their edges are smooth at any turn."""

FONTS = (
    *("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSans-Oblique.ttf", "DejaVuSans-BoldOblique.ttf"),
    *("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf", "DejaVuSansMono-Oblique.ttf", "DejaVuSansMono-BoldOblique.ttf"),
    *("DejaVuSerif.ttf", "DejaVuSerif-Bold.ttf", "DejaVuSerif-Italic.ttf", "DejaVuSerif-BoldItalic.ttf"),
    *("STIXGeneral.ttf", "STIXGeneralBol.ttf", "STIXGeneralItalic.ttf", "STIXGeneralBolIta.ttf"),
    *("cmr10.ttf", "cmb10.ttf", "cmss10.ttf", "cmti10.ttf", "cmtt10.ttf"),
    "",
)
"""Files that matplotlib brings; the last is pillow's own font. They are named, because another version of
matplotlib with more fonts must not change the images, and some have signs in place of digits."""

LUMINANCE = np.array([0.299, 0.587, 0.114])
CONTRAST = 55.0
"""The least difference in luminance, of 255, between the digits and every point of the ground."""

DRAWN_SETS = {"train": (10_000, 0), "test": (2_000, 1)}
"""Number of images and `random_state` of each part, as `setminus_paper.data.images.load_images` has them."""


def draw_digits(n: int, *, size: int = 32, random_state: int = 0) -> Split:
    """Draw `n` digits in color from the fonts of matplotlib, at least 16 pixels high.

    Each row has a separate generator, so that fewer rows are the first of more; ten rows in turn have the ten
    digits in some order, so that any number of rows is as balanced as it can be. `y` is the digit in the middle.

    Examples
    --------
    >>> few, many = draw_digits(10), draw_digits(20)
    >>> few.x.shape, sorted(few.y.tolist())
    ((10, 32, 32, 3), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    >>> np.array_equal(few.x, many.x[:10])
    True
    """
    for name, value, least in (("n", n, 1), ("size", size, SMALLEST), ("random_state", random_state, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise UserError(f"{name} is {value!r}", expected=f"a whole number of at least {least}")
    _font_folder()
    digits = np.concatenate(
        [np.random.default_rng((random_state, 1, block)).permutation(10) for block in range(-(-n // 10))]
    )[:n]
    images = np.empty((n, size, size, 3), dtype=np.uint8)
    for row, digit in enumerate(digits):
        images[row] = _draw(int(digit), size, np.random.default_rng((random_state, 0, row)))
    return Split(x=images, y=digits.astype(np.int64))


def _draw(digit: int, size: int, rng: np.random.Generator) -> Bytes:
    ground, ink, edge = _colors(size, rng)
    digits, outlined = _shapes(digit, size, rng)
    return _photographed(_cover(_cover(ground, outlined, edge), digits, ink), rng)


def _colors(size: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """A ground that changes evenly from one color to another, a color that differs from all of it, any third."""
    first, edge, *others = _muted(22, rng)
    ends = np.array([first, (first + rng.normal(scale=25, size=3)).clip(0, 255)])
    # black and white come last: where no other color differs enough, one of them does, as the ends are not far apart
    inks = np.array([*others, np.zeros(3), np.full(3, 255.0)])
    lighter = (inks @ LUMINANCE)[:, None] - ends @ LUMINANCE
    # beyond both ends on one side, hence beyond everything between them
    stands_out = (np.abs(lighter).min(axis=1) >= CONTRAST) & (lighter.prod(axis=1) > 0)
    angle = rng.uniform(0, 2 * np.pi)
    across = np.linspace(-1, 1, size)
    along = np.add.outer(np.sin(angle) * across, np.cos(angle) * across)
    share = (along - along.min()) / np.ptp(along)
    return ends[0] + share[..., None] * (ends[1] - ends[0]), inks[stands_out.argmax()], edge


def _muted(n: int, rng: np.random.Generator) -> Floats:
    """Colors somewhere between any and their own grey."""
    colors = rng.uniform(10, 245, size=(n, 3))
    grey = (colors @ LUMINANCE)[:, None]
    muted: Floats = grey + rng.uniform(size=(n, 1)) * (colors - grey)
    return muted


def _shapes(digit: int, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """How much of each pixel the digits cover, and how much they cover with an outline, where they have one."""
    from PIL import Image

    fine = FINE * size
    font = FONTS[rng.integers(len(FONTS))]
    # what is screwed to a house is seldom as thin as print
    weight = int(rng.integers(1 + fine // 24))
    outline = int(rng.integers(1, 2 + fine // 24)) if rng.random() < 0.3 else 0
    _, (_, top, _, bottom) = _glyph(font, digit, fine, weight)
    line, affine = _line(digit, font, fine, weight, rng), _affine(fine, bottom - top, rng)

    def seen(stroke: int) -> Floats:
        drawn = Image.new("L", (2 * fine, 2 * fine))
        for one, x, y in line:
            shape, (left, top, _, _) = _glyph(font, one, fine, stroke)
            drawn.paste(255, (x + left, y + top), shape)
        turned = drawn.transform((fine, fine), Image.Transform.AFFINE, affine, Image.Resampling.BILINEAR)
        return np.asarray(turned.reduce(FINE), dtype=np.float64) / 255

    digits = seen(weight)
    return digits, seen(weight + outline) if outline else digits


def _line(digit: int, font: str, fine: int, weight: int, rng: np.random.Generator) -> list[tuple[int, int, int]]:
    """The labelled digit with its middle at (fine, fine), and neighbours: each with the place of its pen."""
    _, (left, top, right, bottom) = _glyph(font, digit, fine, weight)
    baseline = fine - (top + bottom) // 2
    line = [(digit, fine - (left + right) // 2, baseline)]
    reach = (right - left) // 2 + round(rng.uniform(0.05, 0.25) * (bottom - top))
    for side, other in zip((-1, 1), rng.integers(10, size=2).tolist(), strict=True):
        if rng.random() < 0.6:
            _, (left, _, right, _) = _glyph(font, other, fine, weight)
            line.append((other, fine + side * reach - (left if side > 0 else right), baseline))
    return line


def _affine(fine: int, height: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Where in the drawn line, with its middle at (fine, fine), each pixel of the image looks: as pillow wants it."""
    share = rng.uniform(0.6, 0.95)
    scale = share * fine / height
    angle, slant, narrow = np.deg2rad(rng.uniform(-12, 12)), rng.uniform(-0.15, 0.15), rng.uniform(0.8, 1.1)
    # the labelled digit may move as far as it stays within the image
    spare = (1 - share) / 2 * fine
    middle = fine / 2 + np.array([rng.uniform(-0.08, 0.08) * fine, rng.uniform(-spare, spare)])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    back = np.linalg.inv(turn @ [[narrow * scale, slant * scale], [0, scale]])
    start = fine - back @ middle
    return (*back[0], start[0], *back[1], start[1])


def _cover(image: Floats, share: Floats, color: Floats) -> Floats:
    return image + share[..., None] * (color - image)


def _photographed(image: Floats, rng: np.random.Generator) -> Bytes:
    """Blurred and noisy."""
    from PIL import Image, ImageFilter

    blur = ImageFilter.GaussianBlur(rng.uniform(0, 0.04) * len(image))
    blurred = np.asarray(Image.fromarray(image.round().astype(np.uint8)).filter(blur))
    noise = rng.normal(scale=rng.uniform(0, 8), size=image.shape)
    return np.rint(blurred + noise).clip(0, 255).astype(np.uint8)


@lru_cache(maxsize=10_000)
def _glyph(font: str, digit: int, em: int, stroke: int) -> tuple[Image.Image, tuple[int, int, int, int]]:
    """The shape of a digit, cut to its ink, and the box of that ink as seen from the pen."""
    from PIL import Image, ImageDraw

    canvas = Image.new("L", (3 * em, 3 * em))
    pen = (em, 2 * em)
    draw = ImageDraw.Draw(canvas)
    draw.text(pen, str(digit), fill=255, font=_font(font, em), anchor="ls", stroke_width=stroke)
    ink = canvas.getbbox()
    if ink is None:
        raise OSError(f"the font {font or 'of pillow'} has no digit {digit}: install matplotlib and pillow anew.")
    return canvas.crop(ink), (ink[0] - pen[0], ink[1] - pen[1], ink[2] - pen[0], ink[3] - pen[1])


@lru_cache(maxsize=1_000)
def _font(name: str, em: int) -> Any:
    from PIL import ImageFont

    if not name:
        return ImageFont.load_default(em)
    path = _font_folder() / name
    if not path.is_file():
        raise FileNotFoundError(f"{path}, a font of matplotlib, is not there: install matplotlib anew.")
    return ImageFont.truetype(path, em)


def _font_folder() -> Path:
    """Where the fonts are. They are read as files: nothing of matplotlib is imported."""
    found = importlib.util.find_spec("matplotlib"), importlib.util.find_spec("PIL")
    if found[0] is None or found[1] is None or found[0].origin is None:
        raise ImportError("drawing digits needs pillow, and the fonts of matplotlib: pip install matplotlib pillow")
    return Path(found[0].origin).parent / "mpl-data" / "fonts" / "ttf"

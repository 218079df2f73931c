"""Drawn digits: the same for all who draw them, balanced, and legible."""

import random
import subprocess
import sys

import numpy as np
import pytest
from setminus_paper.data import drawn_digits
from setminus_paper.data.drawn_digits import CONTRAST, DRAWN_SETS, FONTS, LUMINANCE, draw_digits
from setminus_paper.data.images import class_names, load_images
from sklearn.neighbors import KNeighborsClassifier

from setminus.datasets.images import resize


@pytest.fixture(scope="module")
def drawn():
    return draw_digits(1500), draw_digits(400, random_state=1)


def middles(images):
    """The middle of each image in grey, small, with the digit lighter than its ground."""
    grey = images @ LUMINANCE
    middle = (grey - np.median(grey, axis=(1, 2), keepdims=True))[:, 2:30, 5:27]
    middle *= np.sign((middle**3).sum(axis=(1, 2), keepdims=True)) / middle.std(axis=(1, 2), keepdims=True)
    return resize((40 * middle + 60).clip(0, 255).astype(np.uint8), (14, 11)).reshape(len(images), -1)


def accuracies(seen, labels, asked, answers):
    """By digit, of the nearest neighbours in what was seen."""
    found = KNeighborsClassifier(5, weights="distance").fit(seen, labels).predict(asked)
    return np.array([np.mean(found[answers == digit] == digit) for digit in range(10)])


def test_every_digit_is_legible(drawn):
    train, test = drawn
    right = accuracies(middles(train.x), train.y, middles(test.x), test.y)
    assert right.mean() > 0.8
    assert right.min() > 0.6
    # the negative control: nothing is learned from labels of other images
    others = np.random.default_rng(0).permutation(train.y)
    assert accuracies(middles(train.x), others, middles(test.x), test.y).mean() < 0.2


def test_colors_say_nothing_of_the_digit(drawn):
    train, test = (split.x.mean(axis=(1, 2)) for split in drawn)
    assert accuracies(train, drawn[0].y, test, drawn[1].y).mean() < 0.2


def test_digits_stand_out_from_their_ground(drawn):
    grey = drawn[0].x @ LUMINANCE
    low, high = np.percentile(grey, [2, 98], axis=(1, 2))
    assert (high - low).min() > 30
    for seed in range(300):
        ground, ink, _ = drawn_digits._colors(32, np.random.default_rng(seed))
        beyond = ink @ LUMINANCE - ground @ LUMINANCE
        assert np.abs(beyond).min() >= CONTRAST
        assert len(np.unique(np.sign(beyond))) == 1


def test_one_state_gives_the_same_images_and_another_one_others(drawn):
    first, again, other = draw_digits(20), draw_digits(20), draw_digits(20, random_state=1)
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)
    # nor has any image of one part a twin in the other
    train, test = ({image.tobytes() for image in split.x} for split in drawn)
    assert (len(train), len(test)) == (1500, 400)
    assert not train & test


@pytest.mark.parametrize("n", [1, 10, 37])
def test_fewer_are_the_first_of_more(n, drawn):
    few = draw_digits(n)
    np.testing.assert_array_equal(few.x, drawn[0].x[:n])
    np.testing.assert_array_equal(few.y, drawn[0].y[:n])


def test_any_number_of_rows_is_balanced(drawn):
    for n in (1, 9, 10, 123, 1500):
        counts = np.bincount(drawn[0].y[:n], minlength=10)
        assert counts.max() - counts.min() <= (n % 10 > 0)
    # but the order is not the same in every ten
    tens = drawn[0].y.reshape(-1, 10)
    assert len({tuple(ten) for ten in tens.tolist()}) > 130


@pytest.mark.parametrize("size", [16, 33, 64])
def test_any_size(size):
    split = draw_digits(5, size=np.int64(size))
    assert split.x.shape == (5, size, size, 3)
    assert split.x.dtype == np.uint8
    assert split.y.dtype == np.int64
    assert split.x.std(axis=(1, 2, 3)).min() > 5


def test_the_fonts_have_ten_different_digits_as_high_as_capitals():
    def tops(font):
        return [-drawn_digits._glyph(font, digit, 64, 0)[1][1] for digit in range(10)]

    for font in FONTS:
        shapes = [drawn_digits._glyph(font, digit, 64, 0)[0] for digit in range(10)]
        assert len({(shape.size, shape.tobytes()) for shape in shapes}) == 10
        assert max(tops(font)) < 1.1 * min(tops(font))
    # the negative control: old figures, of which some are as low as small letters
    assert max(tops("cmmi10.ttf")) > 1.1 * min(tops("cmmi10.ttf"))


def test_nothing_global_is_seeded_or_advanced():
    def states():
        # the old generator is what is watched here
        return random.getstate(), repr(np.random.get_state(legacy=False))  # noqa: NPY002

    before = states()
    draw_digits(3)
    assert states() == before
    random.random()
    assert states() != before


def test_matplotlib_lends_its_fonts_and_is_not_imported():
    code = (
        "import sys; from setminus_paper.data.drawn_digits import draw_digits; "
        "assert 'PIL' not in sys.modules; draw_digits(1); sys.exit('matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("absent", ["PIL", "matplotlib"])
def test_what_is_not_installed_is_named_with_its_extra(monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(
        ImportError, match=r"drawing digits needs pillow, and the fonts .* pip install matplotlib pillow"
    ):
        draw_digits(1)


def test_fonts_that_are_not_there_or_have_no_digits_are_named(monkeypatch, tmp_path):
    with pytest.raises(OSError, match=r"the font DejaVuSansDisplay\.ttf has no digit 3"):
        drawn_digits._glyph("DejaVuSansDisplay.ttf", 3, 64, 0)
    monkeypatch.setattr(drawn_digits, "_font_folder", lambda: tmp_path)
    monkeypatch.setattr(drawn_digits, "FONTS", ("absent.ttf",))
    with pytest.raises(FileNotFoundError, match=r"absent\.ttf, a font of matplotlib, is not there"):
        draw_digits(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0: expected a whole number of at least 1"),
        ({"n": 2.5}, r"n is 2\.5: expected a whole number"),
        ({"n": True}, "n is True: expected a whole number"),
        ({"n": 1, "size": 15}, "size is 15: expected a whole number of at least 16"),
        ({"n": 1, "random_state": -1}, "random_state is -1: expected a whole number of at least 0"),
        ({"n": 1, "random_state": None}, "random_state is None: expected a whole number"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        draw_digits(**options)


def test_the_set_has_its_parts(monkeypatch, drawn):
    assert DRAWN_SETS == {"train": (10_000, 0), "test": (2_000, 1)}
    for part, split in zip(("train", "test"), drawn, strict=True):
        # the first rows stand for all
        monkeypatch.setitem(DRAWN_SETS, part, (30, DRAWN_SETS[part][1]))
        loaded = load_images("drawn_digits", part)
        np.testing.assert_array_equal(loaded.x, split.x[:30])
        np.testing.assert_array_equal(loaded.y, split.y[:30])
    assert class_names("drawn_digits") == class_names("svhn")
    with pytest.raises(ValueError, match=r"drawn_digits has no part 'unlabelled': it has \['test', 'train'\]"):
        load_images("drawn_digits", "unlabelled")

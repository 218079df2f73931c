import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from setminus_paper.data.images import load_images

from setminus.datasets.colored_digits import BACKGROUND_COLORS, DIGIT_COLORS, ColoredDigits
from setminus.datasets.images import from_signed_nchw, to_signed_nchw
from setminus.datasets.sources import DataUnavailableError

COLORS = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


def blobs(n, side=28, seed=0):
    """Grey disks of different places, sizes and levels: what a set of digits looks like from here."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:side, :side]
    center = rng.uniform(0.3, 0.7, size=(n, 2, 1, 1)) * side
    radius = rng.uniform(0.12, 0.25, size=(n, 1, 1)) * side
    inside = (row - center[:, 0]) ** 2 + (column - center[:, 1]) ** 2 < radius**2
    return (inside * rng.integers(1, 256, size=inside.shape)).astype(np.uint8)


def dots(n):
    """As little as a digit may be: one pixel of four. For what is about colors alone."""
    digits = np.zeros((n, 2, 2), dtype=np.uint8)
    digits[:, 0, 0] = 1
    return digits


@pytest.fixture(scope="module")
def sample():
    return ColoredDigits().paint(dots(200_000), seed=0)


def frequencies(split, *colors):
    """How often y is 1 in each cell of the colors, and the standard error of that."""
    cells = {}
    for key in np.ndindex(*(2 for _ in colors)):
        y = split.y[np.all([color == value for color, value in zip(colors, key, strict=True)], axis=0)]
        cells[key] = y.mean(), np.sqrt(0.25 / len(y))
    return cells


def test_the_posteriors_of_the_paper():
    model = ColoredDigits(lambda_digit=0.9, lambda_background=0.8)
    np.testing.assert_allclose(model.orthogonal([0, 1])[:, 1], [0.1, 0.9], atol=1e-15)
    np.testing.assert_allclose(model.principal([0, 1])[:, 1], [0.05, 0.95], atol=1e-15)
    # red on brown: .95 * .1 against .05 * .9
    np.testing.assert_allclose(model.full(0, 1), [0.095 / 0.14, 0.045 / 0.14])
    np.testing.assert_array_equal(model.prior, [0.5, 0.5])


def test_the_posteriors_are_the_frequencies(sample):
    model = ColoredDigits()
    full, principal = frequencies(sample, sample.z1, sample.z2), frequencies(sample, sample.z1)
    orthogonal = frequencies(sample, sample.z2)
    for key, (seen, error) in full.items():
        assert abs(seen - model.full(*key)[1]) < 4 * error
    for (color,), (seen, error) in principal.items():
        assert abs(seen - model.principal(color)[1]) < 4 * error
        # another model gives other posteriors
        assert abs(seen - ColoredDigits(lambda_digit=0.85).principal(color)[1]) > 4 * error
    for (color,), (seen, error) in orthogonal.items():
        assert abs(seen - model.orthogonal(color)[1]) < 4 * error
        assert abs(seen - ColoredDigits(lambda_background=0.75).orthogonal(color)[1]) > 4 * error


def test_the_domains_are_equally_frequent_and_the_colors_independent_given_the_domain(sample):
    assert abs(sample.y.mean() - 0.5) < 4 * np.sqrt(0.25 / len(sample))
    for domain in (0, 1):
        rows = sample.y == domain
        assert abs(np.corrcoef(sample.z1[rows], sample.z2[rows])[0, 1]) < 4 / np.sqrt(rows.sum())
    # without the domain they are not
    assert np.corrcoef(sample.z1, sample.z2)[0, 1] > 0.5


@given(st.floats(0, 0.99), st.floats(0, 0.99))
@settings(deadline=None, max_examples=50)
def test_full_over_principal_is_the_orthogonal_one(lambda_digit, lambda_background):
    """The method's own line, by hand: it must hold exactly where the colors are independent given y."""
    model = ColoredDigits(lambda_digit, lambda_background)
    ratio = model.full(*COLORS) / (model.principal(COLORS[0]) / model.prior)
    np.testing.assert_allclose(ratio / ratio.sum(axis=1, keepdims=True), model.orthogonal(COLORS[1]), atol=1e-13)


def test_a_lambda_of_zero_says_nothing():
    blind = ColoredDigits(0, 0)
    for posterior in (blind.full(*COLORS), blind.principal(COLORS[0]), blind.orthogonal(COLORS[1])):
        np.testing.assert_array_equal(posterior, 0.5)
    split = blind.paint(dots(100_000), seed=0)
    for color in (split.z1, split.z2):
        assert abs(np.corrcoef(color, split.y)[0, 1]) < 4 / np.sqrt(len(split))
    telling = ColoredDigits().paint(dots(1000), seed=0)
    assert np.corrcoef(telling.z2, telling.y)[0, 1] > 0.5


def test_a_lambda_of_one_says_all():
    sure = ColoredDigits(1, 1)
    split = sure.paint(dots(1000), seed=0)
    np.testing.assert_array_equal(split.z1, split.y)
    np.testing.assert_array_equal(split.z2, split.y)
    np.testing.assert_array_equal(sure.full([0, 1], [0, 1]), np.eye(2))
    with pytest.raises(ValueError, match="colors of two domains, which never happens"):
        sure.full(0, 1)


def test_the_variants():
    model = ColoredDigits(0.7, 0.6)
    assert model.oracle_principal() == ColoredDigits(0.7, 0)
    assert model.oracle_orthogonal() == ColoredDigits(0, 0.6)
    assert model.environments() == [ColoredDigits(0.7, 0.8), ColoredDigits(0.7, 0.4)]
    assert model.environments([0.1]) == [ColoredDigits(0.7, 0.1)]
    np.testing.assert_array_equal(model.oracle_principal().full(*COLORS), model.principal(COLORS[0]))
    np.testing.assert_array_equal(model.oracle_orthogonal().full(*COLORS), model.orthogonal(COLORS[1]))
    one, other = model.environments()
    np.testing.assert_array_equal(one.principal([0, 1]), other.principal([0, 1]))
    assert np.abs(one.orthogonal([0, 1]) - other.orthogonal([0, 1])).max() > 0.1


def test_every_pixel_has_the_color_of_what_it_shows():
    digits = blobs(300)
    split = ColoredDigits(0, 0).paint(digits, seed=0)
    for image, digit, z1, z2 in zip(split.x, digits, split.z1, split.z2, strict=True):
        np.testing.assert_array_equal(image[digit > 0], np.tile(DIGIT_COLORS[z1], (np.sum(digit > 0), 1)))
        np.testing.assert_array_equal(image[digit == 0], np.tile(BACKGROUND_COLORS[z2], (np.sum(digit == 0), 1)))
    assert {*zip(split.z1.tolist(), split.z2.tolist(), strict=True)} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert split.x.dtype == np.uint8
    np.testing.assert_array_equal(DIGIT_COLORS, [[255, 0, 0], [0, 0, 255]])


def test_the_seed_decides_and_the_channel_axis_does_not():
    digits = blobs(50, side=20)
    first, again, other = (ColoredDigits().paint(digits, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.y, other.y)
    np.testing.assert_array_equal(ColoredDigits().paint(digits[..., None], seed=0).x, first.x)
    assert first.x.shape == (50, 20, 20, 3)


def test_colors_are_measured_in_painted_images():
    split = ColoredDigits(0, 0).paint(blobs(3000), seed=0)
    z1, z2 = ColoredDigits.measure_colors(split.x)
    np.testing.assert_array_equal(z1, split.z1)
    np.testing.assert_array_equal(z2, split.z2)


def test_colors_are_measured_in_pale_blurred_and_noisy_images():
    """What a half-trained generator makes of them."""

    def rough(images):
        batch = to_signed_nchw(images)
        blurred = sum(np.roll(batch, (i, j), axis=(2, 3)) for i in (-1, 0, 1) for j in (-1, 0, 1)) / 9
        return from_signed_nchw(0.7 * blurred + np.random.default_rng(0).normal(scale=0.15, size=batch.shape))

    digits = blobs(1000)
    split = ColoredDigits(0, 0).paint(digits, seed=0)
    z1, z2 = ColoredDigits.measure_colors(rough(split.x))
    assert np.mean(z1 == split.z1) > 0.99
    assert np.mean(z2 == split.z2) > 0.99
    # where the digit alone changes its color, z1 alone follows
    split.x[digits > 0] = DIGIT_COLORS[1 - split.z1].repeat(np.sum(digits > 0, axis=(1, 2)), axis=0)
    z1, z2 = ColoredDigits.measure_colors(rough(split.x))
    assert np.mean(z1 == split.z1) < 0.01
    assert np.mean(z2 == split.z2) > 0.99


def test_a_color_that_is_not_there_is_neither():
    ground = np.broadcast_to(BACKGROUND_COLORS[:, None, None], (2, 28, 28, 3))
    z1, z2 = ColoredDigits.measure_colors(ground)
    assert (z1.tolist(), z2.tolist()) == ([-1, -1], [0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ColoredDigits(1.1), r"lambda_digit is 1\.1: it is a probability"),
        (lambda: ColoredDigits(lambda_background=-0.1), r"lambda_background is -0\.1"),
        (lambda: ColoredDigits(float("nan")), "lambda_digit is nan"),
        (lambda: ColoredDigits().environments([2]), "lambda_background is 2"),
        (lambda: ColoredDigits().orthogonal([0, 2]), r"colors are \[0 2\]: they must be 0"),
        (lambda: ColoredDigits().paint(np.zeros((2, 28, 28)), seed=0), r"float64 of shape \(2, 28, 28\): they must"),
        (lambda: ColoredDigits().paint(np.zeros((2, 8, 8, 3), np.uint8), seed=0), r"uint8 of shape \(2, 8, 8, 3\)"),
        (lambda: ColoredDigits.measure_colors(np.zeros((2, 28, 28), np.uint8)), r"\(n, height, width, 3\)"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.data
def test_real_digits_are_seen_whole():
    try:
        digits = load_images("mnist", "test").x
    except DataUnavailableError as error:
        pytest.skip(str(error))
    split = ColoredDigits().paint(digits, seed=0)
    z1, z2 = ColoredDigits.measure_colors(split.x)
    np.testing.assert_array_equal(z1, split.z1)
    np.testing.assert_array_equal(z2, split.z2)

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.datasets import image_arrays
from setminus.datasets.image_arrays import from_signed_nchw, resize, to_rgb, to_signed_nchw

Image = pytest.importorskip("PIL.Image")


def noise(*shape):
    return np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)


def pillow(images, size, method):
    return np.stack([np.asarray(Image.fromarray(image).resize((size, size), method)) for image in images])


def levels_apart(a, b):
    return np.abs(a.astype(int) - b.astype(int)).max()


@pytest.mark.parametrize(("old", "new"), [(28, 32), (16, 28), (16, 32)])
def test_growing_is_bilinear_as_in_pillow(old, new):
    images = noise(5, old, old, 3)
    assert levels_apart(resize(images, new), pillow(images, new, Image.Resampling.BILINEAR)) <= 1
    # the check can fail
    assert levels_apart(resize(images, new), pillow(images, new, Image.Resampling.NEAREST)) > 1


@pytest.mark.parametrize(("old", "new"), [(96, 32), (32, 16)])
def test_shrinking_by_whole_factors_is_the_box_of_pillow(old, new):
    images = noise(5, old, old, 3)
    assert levels_apart(resize(images, new), pillow(images, new, Image.Resampling.BOX)) <= 1
    assert levels_apart(resize(images, new), pillow(images, new, Image.Resampling.NEAREST)) > 1


@given(st.integers(1, 12), st.integers(1, 12))
@settings(deadline=None, max_examples=50)
def test_shrinking_averages_the_covered_area(a, b):
    old, new = max(a, b), min(a, b)
    images = noise(3, old, old)
    # every pixel repeated `new` times: then each new pixel covers whole ones
    fine = images.astype(float).repeat(new, axis=1).repeat(new, axis=2)
    expected = fine.reshape(3, new, old, new, old).mean(axis=(2, 4))
    assert np.abs(resize(images, new) - expected).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("size", [5, 32, (20, 40)])
@pytest.mark.parametrize("level", [0, 77, 255])
def test_a_flat_image_stays_flat(size, level):
    resized = resize(np.full((2, 28, 28, 1), level, dtype=np.uint8), size)
    assert resized.shape == (2, *((size, size) if isinstance(size, int) else size), 1)
    assert np.all(resized == level)


def test_images_channels_and_axes_do_not_mix(monkeypatch):
    images = noise(7, 10, 12, 3)
    whole = resize(images, (14, 9))
    alone = np.stack([resize(images[..., channel], (14, 9)) for channel in range(3)], axis=-1)
    # products of other shapes may add up in another order, and a sum of half a level is rounded either way
    assert levels_apart(whole, alone) <= 1
    assert levels_apart(whole, alone[..., ::-1]) > 50
    turned = resize(images.transpose(0, 2, 1, 3), (9, 14)).transpose(0, 2, 1, 3)
    assert levels_apart(whole, turned) <= 1
    monkeypatch.setattr(image_arrays, "CHUNK", 2)
    assert levels_apart(resize(images, (14, 9)), whole) <= 1


def test_grey_gets_three_equal_channels_and_color_stays():
    grey, color = noise(2, 4, 4), noise(2, 4, 4, 3)
    for channel in range(3):
        np.testing.assert_array_equal(to_rgb(grey)[..., channel], grey)
    np.testing.assert_array_equal(to_rgb(grey[..., None]), to_rgb(grey))
    assert to_rgb(color) is color


def test_every_level_survives_the_way_to_the_network_and_back():
    images = np.arange(256 * 3, dtype=np.uint16).astype(np.uint8).reshape(1, 16, 16, 3)
    batch = to_signed_nchw(images)
    assert batch.shape == (1, 3, 16, 16)
    assert batch.dtype == np.float32
    assert (batch.min(), batch.max()) == (-1, 1)
    np.testing.assert_array_equal(batch[:, 1, 2, 3], images[:, 2, 3, 1] / np.float32(127.5) - 1)
    np.testing.assert_array_equal(from_signed_nchw(batch), images)
    assert not np.array_equal(from_signed_nchw(batch + np.float32(0.01)), images)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resize(np.zeros((2, 4, 4)), 8), r"images are float64 of shape \(2, 4, 4\): they must be uint8"),
        (lambda: resize(noise(2, 4, 4), (8, 0)), r"size is \(8, 0\): height and width must be at least 1"),
        (lambda: to_rgb(noise(4, 4)), r"uint8 of shape \(4, 4\)"),
        (lambda: to_rgb(noise(2, 4, 4, 2)), "2 channels: give grey ones"),
        (lambda: to_signed_nchw(noise(2, 4, 4)), "to_rgb adds channels"),
        (lambda: from_signed_nchw(noise(2, 3, 4, 4)), "batch is uint8 .* it must be float"),
    ],
)
def test_other_arrays_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()

import contextlib
import io
import sys
import tarfile
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.datasets import images as images_module
from setminus.datasets.images import (
    UnreadableImageError,
    check_size,
    decode_image,
    decode_into,
    from_signed_nchw,
    resize,
    stored_files,
    to_rgb,
    to_signed_nchw,
)
from setminus.datasets.sources import ChecksumError

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
    monkeypatch.setattr(images_module, "CHUNK", 2)
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


def encoded(levels, kind="PNG", **options):
    file = io.BytesIO()
    Image.fromarray(np.asarray(levels)).save(file, kind, **options)
    return file.getvalue()


def halves(height=20, width=20):
    """Red above, blue below."""
    image = np.zeros((height, width, 3), dtype=np.uint8)
    image[: height // 2, :, 0] = image[height // 2 :, :, 2] = 255
    return image


def test_an_image_of_the_right_size_comes_back_as_it_is():
    image = np.random.default_rng(0).integers(256, size=(16, 16, 3), dtype=np.uint8)
    np.testing.assert_array_equal(decode_image(encoded(image), 16, "x"), image)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM"])
def test_every_kind_is_read(kind):
    x = decode_image(encoded(halves(), kind), 10, "x")
    assert x.shape == (10, 10, 3) and x.dtype == np.uint8
    # where the halves meet they mix
    np.testing.assert_allclose(x[[0, -1]], halves(10, 10)[[0, -1]], atol=20)


def test_the_square_is_cut_from_the_middle():
    wide = np.zeros((8, 24, 3), dtype=np.uint8)
    wide[:, 8:16] = 200
    assert np.all(decode_image(encoded(wide), 8, "x") == 200)
    assert np.all(decode_image(encoded(wide.transpose(1, 0, 2)), 4, "x") == 200)
    # and not from the edge
    assert not np.all(decode_image(encoded(np.roll(wide, 8, axis=1)), 8, "x") == 200)


def test_the_orientation_of_the_camera_is_applied():
    exif = Image.Exif()
    # 6: the top of the scene is at the right of the stored image
    exif[0x0112] = 6
    stored = np.rot90(halves()).copy()
    turned = decode_image(encoded(stored, "PNG", exif=exif), 20, "x")
    np.testing.assert_array_equal(turned, halves())
    assert np.any(decode_image(encoded(stored), 20, "x") != halves())


@pytest.mark.parametrize("levels", [np.full((4, 4), 200, np.uint8), np.full((4, 4), 200 * 256 + 7, np.uint16)])
def test_grey_becomes_three_equal_channels_also_with_16_bits(levels):
    assert np.all(decode_image(encoded(levels), 4, "x") == 200)


def test_what_is_transparent_shows_white():
    hidden = np.zeros((4, 4, 4), dtype=np.uint8)
    hidden[:2, :, 3] = 255
    x = decode_image(encoded(hidden), 4, "x")
    assert np.all(x[:2] == 0) and np.all(x[2:] == 255)


def test_levels_without_a_range_are_refused():
    with pytest.raises(UnreadableImageError, match=r"'x\.tif' .* no known range: save it with 8 or 16 bits"):
        decode_image(encoded(np.ones((4, 4), np.float32), "TIFF"), 4, "x.tif")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a file of the kinds JPEG"),
        (b"<html>", "not a file of the kinds JPEG"),
        # pillow would hand this to another program
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a file of the kinds JPEG"),
        (encoded(np.random.default_rng(0).integers(256, size=(64, 64, 3), dtype=np.uint8), "JPEG")[:-900], "truncated"),
        (b"P5 60000 60000 255 ", "more than 100 megapixels"),
    ],
)
def test_a_damaged_file_is_named(content, reason):
    with pytest.raises(UnreadableImageError, match=rf"'face\\n\.jpg' cannot be read as an image \(.*{reason}"):
        decode_image(content, 8, "face\n.jpg")


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@given(st.data())
@settings(deadline=None, max_examples=50)
def test_any_damage_is_an_image_or_the_one_error(data):
    kind = data.draw(st.sampled_from(["JPEG", "PNG", "WEBP", "GIF", "TIFF"]))
    content = bytearray(encoded(halves(), kind))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableImageError):
        assert decode_image(bytes(content), 8, "x").shape == (8, 8, 3)


def test_all_damaged_files_are_counted_and_five_named(tmp_path):
    good = tmp_path / "good.png"
    good.write_bytes(encoded(halves()))
    x = np.zeros((8, 20, 20, 3), dtype=np.uint8)
    files = [(0, "good", good), *((k, f"bad{k}", b"no image") for k in range(1, 8))]
    with pytest.raises(UnreadableImageError, match=r"7 of 8 files .*'bad1', .*'bad5' and 2 more; 'bad1' cannot"):
        decode_into(x, files)
    np.testing.assert_array_equal(x[0], halves())
    with pytest.raises(UnreadableImageError, match=r"^'bad1' cannot .*: replace or remove it\.$"):
        decode_into(x, files[:2])


@pytest.mark.parametrize("size", [0, -3, 2.5, True, "64"])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(ValueError, match=r"size is .*: give the height and width"):
        check_size(size)


def test_without_pillow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r'pip install "setminus\[nn\]"'):
        decode_image(b"", 8, "x")


def test_an_encrypted_or_cut_archive_is_an_error(tmp_path):
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.jpg", b"1234")
    whole = archive.read_bytes()
    assert list(stored_files(archive, ["a.jpg", "b.jpg"])) == [("a.jpg", b"1234")]
    # the flag that says the member is encrypted, here and in the directory
    locked = bytearray(whole)
    locked[6] |= 1
    locked[whole.index(b"PK\x01\x02") + 8] |= 1
    for content in (bytes(locked), whole[:-5], whole.replace(b"1234", b"1235")):
        archive.write_bytes(content)
        with pytest.raises(ChecksumError, match=r"a\.zip cannot be read as an archive"):
            list(stored_files(archive, ["a.jpg"]))


def test_members_that_are_no_files_are_passed_over(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        folder = tarfile.TarInfo("a.jpg")
        folder.type = tarfile.DIRTYPE
        file.addfile(folder)
    assert list(stored_files(tmp_path / "a.tar", ["a.jpg"])) == []

"""A strip of images comes back from its PNG pixel by pixel."""

import base64
import io

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")

from setminus.transfer.samples import strip_png  # noqa: E402


def test_the_pixels_come_back():
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
    back = np.asarray(Image.open(io.BytesIO(base64.b64decode(strip_png(images)))))
    assert back.shape == (4, 15, 3)
    assert np.array_equal(back[:, 5:10], images[1])


@pytest.mark.parametrize(
    "images", [np.zeros((0, 4, 4, 3), np.uint8), np.zeros((2, 4, 4, 1), np.uint8), np.zeros((2, 4, 4, 3))]
)
def test_what_is_no_color_image_is_refused(images):
    with pytest.raises(ValueError, match=r"expected uint8 of shape \(n, height, width, 3\)"):
        strip_png(images)

"""Bytes in memory, the networks' scale in a batch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus.datasets.images import to_signed_nchw  # noqa: E402
from setminus.transfer.networks import image_tensor, signed  # noqa: E402


def test_it_is_what_the_data_layer_says():
    images = np.random.default_rng(0).integers(0, 256, (3, 8, 4, 3), dtype=np.uint8)
    tensor = image_tensor(images)
    assert np.allclose(signed(tensor).numpy(), to_signed_nchw(images), atol=1e-6)
    assert tensor.is_contiguous(memory_format=torch.channels_last)
    assert signed(tensor).is_contiguous(memory_format=torch.channels_last)


def test_floats_stay_as_they_are():
    x = torch.rand(2, 3, 4, 4)
    assert signed(x) is x


def test_what_is_no_image_is_refused():
    with pytest.raises(ValueError, match=r"float64 of shape \(2, 8, 8, 3\): expected uint8"):
        image_tensor(np.zeros((2, 8, 8, 3)))
    with pytest.raises(ValueError, match=r"of shape \(2, 8, 8\)"):
        image_tensor(np.zeros((2, 8, 8), dtype=np.uint8))

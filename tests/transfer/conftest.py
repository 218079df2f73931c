"""Squares of ink instead of digits, and classifiers that are exact on them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus.datasets.colored_digits import ColoredDigits  # noqa: E402
from setminus.transfer.networks import image_tensor  # noqa: E402

MODEL = ColoredDigits()


class Exact(torch.nn.Module):
    """Logits of the exact posterior, from a pixel of the digit and one of the background."""

    def __init__(self, posterior):
        super().__init__()
        self.register_buffer("log_proba", torch.from_numpy(np.log(posterior)).float().reshape(2, 2, 2))

    def forward(self, images):
        side = images.shape[-1]
        # blue beats red in the digits of B, red beats green in the backgrounds of B
        z1 = (images[:, 2, side // 2, side // 2] > images[:, 0, side // 2, side // 2]).long()
        z2 = (images[:, 0, 0, 0] > images[:, 1, 0, 0]).long()
        return self.log_proba[z1, z2]


@pytest.fixture(scope="session")
def exact():
    """The full, the principal and the orthogonal classifier."""
    z1, z2 = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    return {
        "full": Exact(MODEL.full(z1, z2)),
        "principal": Exact(MODEL.principal(z1)),
        "orthogonal": Exact(MODEL.orthogonal(z2)),
    }


@pytest.fixture(scope="session")
def squares():
    """600 painted squares: the split, and its images as a tensor."""
    ink = np.zeros((600, 8, 8), dtype=np.uint8)
    ink[:, 2:6, 2:6] = 255
    split = MODEL.paint(ink, seed=0)
    return split, image_tensor(split.x)

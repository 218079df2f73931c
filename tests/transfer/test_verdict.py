"""The word follows the numbers: good where both are, not usable where what must stay is lost for good."""

import numpy as np
import pytest

from setminus.transfer.verdict import edge_correlation, verdict

GOOD = {"changed": 0.95, "kept": 0.95, "structure": 0.7, "unrelated": 0.1}


@pytest.mark.parametrize(
    ("scores", "halfway", "word"),
    [
        ({}, {}, "good"),
        ({"changed": 0.85}, {}, "train longer"),
        ({"kept": 0.8}, {}, "train longer"),
        ({"kept": 0.31}, {"kept": 0.31}, "do not use"),
        ({"kept": 0.6}, {"kept": 0.4}, "train longer"),
        ({"structure": 0.15}, {"structure": 0.15}, "do not use"),
        ({"structure": 0.15}, {"structure": 0.0}, "train longer"),
    ],
)
def test_the_word(scores, halfway, word):
    last = {**GOOD, **scores}
    assert verdict(last, [{**last, **halfway}, {**last, **halfway}, last]) == word


def test_structure_is_one_for_other_colors_and_near_nothing_for_noise():
    rng = np.random.default_rng(0)
    pictures = np.zeros((8, 3, 32, 32), dtype=np.float32)
    for k, (top, left) in enumerate(rng.integers(4, 18, size=(8, 2))):
        pictures[k, :, top : top + 10, left : left + 10] = 1
    recolored = -0.5 * pictures + 0.2
    noise = rng.normal(size=pictures.shape).astype(np.float32)
    assert edge_correlation(pictures, recolored) == pytest.approx(np.ones(8), abs=1e-5)
    assert np.abs(edge_correlation(pictures, noise)).max() < 0.2
    assert edge_correlation(pictures, np.zeros_like(pictures)).tolist() == [0.0] * 8

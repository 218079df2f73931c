"""The ways to train several seeds that are timed end with the same weights."""

import pytest

pytest.importorskip("torch")

from benchmarks.stacked_seeds import difference, train_seeds


def test_stacked_seeds_are_the_seeds_alone():
    together, work = train_seeds([0, 1, 2], steps=10)
    alone = {seed: train_seeds([seed], steps=10)[0][seed] for seed in (0, 1, 2)}
    assert work > 0
    assert difference(together, alone) < 1e-5
    # the negative control: seeds differ, and ten steps move a weight further than that
    assert difference({0: alone[1]}, alone) > 0.1
    assert difference(train_seeds([0], steps=5)[0], alone) > 1e-3

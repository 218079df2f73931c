"""The same seed gives the same weights, and nobody else notices."""

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.networks.image_translation import DigitGenerator  # noqa: E402
from setminus.nn.networks.initialization import seeded  # noqa: E402


def weights(seed):
    return torch.cat([w.flatten() for w in seeded(seed, lambda: DigitGenerator(width=4)).parameters()])


def test_a_seed_gives_the_same_weights_whatever_was_drawn_before():
    one = weights(0)
    torch.rand(7)
    assert torch.equal(one, weights(0))
    assert not torch.equal(one, weights(1))


def test_the_global_generator_is_left_alone():
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        expected = torch.rand(3)
        torch.default_generator.manual_seed(5)
        seeded(0, lambda: torch.nn.Linear(4, 4))
        assert torch.equal(torch.rand(3), expected)
        # the negative control: building without it moves the generator
        torch.default_generator.manual_seed(5)
        torch.nn.Linear(4, 4)
        assert not torch.equal(torch.rand(3), expected)


def test_the_generator_comes_back_after_an_error():
    before = torch.random.get_rng_state()
    with pytest.raises(ZeroDivisionError):
        seeded(0, lambda: torch.rand(3).sum().item() * (1 / 0))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_weights_are_those_of_torch():
    plain = seeded(3, lambda: torch.nn.Linear(2, 2))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        assert torch.equal(plain.weight, torch.nn.Linear(2, 2).weight)

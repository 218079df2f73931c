"""Sizes, seeds and refusals of the networks that classify."""

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.cyclegan import DigitGenerator  # noqa: E402
from setminus.nn.networks import (  # noqa: E402
    AdaptationNetwork,
    DigitClassifier,
    DomainDiscriminator,
    GaussianNoise,
    mlp,
    seeded,
)


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


def test_mlp_by_hand():
    network, x = mlp((3, 5, 4, 2), torch.nn.Tanh), torch.randn(6, 3)
    linear = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    by_hand = linear[2](torch.tanh(linear[1](torch.tanh(linear[0](x)))))
    torch.testing.assert_close(network(x), by_hand)
    assert isinstance(network[-1], torch.nn.Linear)


def test_mlp_without_a_hidden_layer_is_linear():
    network = mlp((3, 2))
    assert [type(layer) for layer in network] == [torch.nn.Linear]


@pytest.mark.parametrize("sizes", [(3,), (), (3, 0, 2)])
def test_mlp_refuses_sizes_of_no_layer(sizes):
    with pytest.raises(ValueError, match="expected two or more positive numbers, inputs first, outputs last"):
        mlp(sizes or (1,))


def test_the_classifier_s_sizes_are_the_paper_s():
    network = DigitClassifier()
    convolutions = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d)]
    assert [(m.in_channels, m.out_channels, m.stride[0]) for m in convolutions] == [
        (3, 64, 1),
        (64, 128, 2),
        (128, 128, 1),
    ]
    assert (network.head.in_features, network.head.out_features) == (128, 2)


@pytest.mark.parametrize("size", [16, 28, 32])
def test_any_size_gives_logits(size):
    assert DigitClassifier(5, width=4)(torch.zeros(3, 3, size, size)).shape == (3, 5)


def test_it_learns_a_color():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(32) % 2
    images = torch.rand(32, 3, 16, 16, generator=generator)
    images[:, 0] += 0.5 * labels[:, None, None]
    network = seeded(0, lambda: DigitClassifier(width=4))
    losses = []
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for _ in range(30):
        losses.append(torch.nn.functional.cross_entropy(network(images), labels))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.1 < 0.5 < losses[0]


def test_channels_at_the_end_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"move the channels to the front: images.permute\(0, 3, 1, 2\)"):
        DigitClassifier(width=4)(torch.zeros(2, 28, 28, 3))
    with pytest.raises(ValueError, match=r"expected \(n, 3, height, width\); pass a batch of images with 3 channels"):
        DigitClassifier(width=4)(torch.zeros(2, 1, 28, 28))


@pytest.mark.parametrize("width", [64, 192])
def test_the_adaptation_network_s_sizes_are_the_paper_s(width):
    with torch.device("meta"):
        network = AdaptationNetwork(9, width=width)
        discriminator = DomainDiscriminator(network.n_features)
    convolutions = [(m.out_channels, m.kernel_size[0]) for m in network.modules() if isinstance(m, torch.nn.Conv2d)]
    assert convolutions == [(width, 3)] * 9 + [(9, 1)]
    linear = [(m.in_features, m.out_features) for m in discriminator.modules() if isinstance(m, torch.nn.Linear)]
    assert linear == [(width * 8 * 8, 100), (100, 1)]


@pytest.mark.parametrize("size", [16, 32])
def test_features_have_the_size_that_is_promised(size):
    network = AdaptationNetwork(4, width=3, size=size)
    images = torch.randn(2, 3, size, size)
    features = network.encoder(images)
    assert features.flatten(1).shape == (2, network.n_features)
    assert DomainDiscriminator(network.n_features, width=5)(features).shape == (2,)
    assert network.eval()(images).shape == (2, 4)
    torch.testing.assert_close(network(images), network.head(network.encoder(images)))


def test_brightness_and_contrast_of_an_image_do_not_matter():
    network, images = AdaptationNetwork(4, width=4, dropout=0.0, noise=0.0), torch.randn(3, 3, 32, 32)
    torch.testing.assert_close(network(5 * images + 2), network(images), rtol=1e-3, atol=1e-3)
    assert not torch.allclose(network(images.flip(2)), network(images), atol=1e-2)


def test_noise_has_its_scale_and_only_while_training():
    noise, x = GaussianNoise(2.0), torch.ones(100, 100)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        added = noise(x) - x
    assert added.std().item() == pytest.approx(2.0, rel=0.05)
    assert abs(added.mean().item()) < 0.1
    assert torch.equal(noise.eval()(x), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_noise_comes_from_torch_s_generator_whatever_the_layout(dtype):
    noise, x = GaussianNoise(), torch.zeros(2, 3, 4, 4, dtype=dtype)
    drawn = []
    with torch.random.fork_rng(devices=[]):
        for layout in (torch.contiguous_format, torch.channels_last):
            torch.default_generator.manual_seed(0)
            drawn.append(noise(x.to(memory_format=layout)))
        again = noise(x)
    assert drawn[0].dtype == dtype
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0], again)


def test_what_is_refused():
    with pytest.raises(ValueError, match="images are 28 x 28: expected 32 x 32"):
        AdaptationNetwork(10, width=4).encoder(torch.zeros(2, 3, 28, 28))
    with pytest.raises(ValueError, match="size is 30: expected a multiple of 4"):
        AdaptationNetwork(10, size=30)
    with pytest.raises(ValueError, match="20 numbers a row: expected 16; build the discriminator with the encoder's"):
        DomainDiscriminator(16)(torch.zeros(2, 5, 2, 2))
    with pytest.raises(ValueError, match="scale is -1: expected a standard deviation"):
        GaussianNoise(-1)

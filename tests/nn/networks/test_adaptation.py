"""The networks of adaptation: sizes, what InstanceNorm takes out, noise, and what they refuse."""

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.networks.adaptation import AdaptationNetwork, DomainDiscriminator, GaussianNoise  # noqa: E402


@pytest.mark.parametrize("width", [64, 192])
def test_the_sizes_are_the_paper_s(width):
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

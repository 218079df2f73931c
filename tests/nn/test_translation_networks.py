"""Sizes, symmetries and refusals of generators and discriminators."""

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.passes import sees_whole_batch  # noqa: E402
from setminus.nn.translation_networks import DigitDiscriminator, DigitGenerator, PatchDiscriminator, UNetGenerator  # noqa: E402  # noqa: E402


def test_the_sizes_for_digits_are_the_paper_s():
    layers = [m for m in DigitGenerator().modules() if isinstance(m, torch.nn.Conv2d | torch.nn.ConvTranspose2d)]
    found = [(m.in_channels, m.out_channels, m.kernel_size[0], m.stride[0]) for m in layers]
    assert found == [
        (3, 128, 4, 2),
        (128, 256, 4, 2),
        (256, 256, 3, 1),
        (256, 256, 3, 1),
        (256, 128, 4, 2),
        (128, 3, 4, 2),
    ]
    discriminator = DigitDiscriminator()
    layers = [m for m in discriminator.modules() if isinstance(m, torch.nn.Conv2d)]
    assert [(m.out_channels, m.kernel_size[0], m.stride[0]) for m in layers] == [
        (16, 3, 2),
        (32, 3, 2),
        (64, 3, 2),
        (128, 3, 2),
    ]
    assert sum(isinstance(m, torch.nn.Linear) for m in discriminator.modules()) == 1


@pytest.mark.parametrize("size", [16, 28, 32])
def test_images_of_these_sizes_come_back_in_range(size):
    images = torch.randn(3, 3, size, size)
    made = DigitGenerator(width=4)(images)
    assert made.shape == images.shape
    assert made.abs().max() <= 1
    assert DigitDiscriminator(size, width=4)(images).shape == (3, 1)


@pytest.mark.parametrize("size", [8, 9, 16, 28])
def test_the_discriminator_tells_images_apart_at_every_size(size):
    """Also where its last maps are a single pixel, which InstanceNorm would make the same for all images."""
    logits = DigitDiscriminator(size, width=4)(torch.randn(4, 3, size, size))
    assert logits.std() > 1e-4


def test_only_the_generator_sees_its_batch():
    assert sees_whole_batch(DigitGenerator(width=4))
    assert not sees_whole_batch(DigitDiscriminator(width=4))
    discriminator, images = DigitDiscriminator(width=4, dropout=0.0), torch.randn(4, 3, 28, 28)
    torch.testing.assert_close(discriminator(images)[:1], discriminator(images[:1]))
    generator = DigitGenerator(width=4)
    assert not torch.allclose(generator(images)[:1], generator(images[:1]), atol=1e-3)


@pytest.mark.parametrize("norm", ["group", "instance"])
def test_other_norms_let_every_image_stand_for_itself(norm):
    generator, images = DigitGenerator(width=6, norm=norm), torch.randn(4, 3, 16, 16)
    assert not sees_whole_batch(generator)
    torch.testing.assert_close(generator(images)[:1], generator(images[:1]))
    torch.testing.assert_close(generator(images), generator.eval()(images))
    assert not any(isinstance(layer, torch.nn.BatchNorm2d) for layer in generator.modules())


def test_what_is_refused_for_digits():
    with pytest.raises(ValueError, match="norm is 'layer': expected one of batch, group, instance"):
        DigitGenerator(norm="layer")
    with pytest.raises(ValueError, match="images are 30 x 30: expected sides of 8 or more that are multiples of 4"):
        DigitGenerator(width=4)(torch.zeros(2, 3, 30, 30))
    with pytest.raises(ValueError, match="images are 32 x 32: expected 28 x 28; resize them, or build the network"):
        DigitDiscriminator(28, width=4)(torch.zeros(2, 3, 32, 32))
    with pytest.raises(ValueError, match="size is 7: expected images of 8 x 8 or more"):
        DigitDiscriminator(7)


def test_the_sizes_are_the_paper_s_for_faces():
    with torch.device("meta"):
        layers = list(UNetGenerator().modules())
    down = [m.out_channels for m in layers if isinstance(m, torch.nn.Conv2d)]
    up = [m.out_channels for m in layers if isinstance(m, torch.nn.ConvTranspose2d)]
    assert down == [64, 128, 256, 512, 512, 512, 512]
    assert up == [512, 512, 512, 256, 128, 64, 3]


@pytest.mark.parametrize("size", [32, 64, 128])
def test_images_of_a_power_of_two_come_back_in_range(size):
    images = torch.randn(2, 3, size, size)
    made = UNetGenerator(size, width=2)(images)
    assert made.shape == images.shape
    assert made.abs().max() <= 1


def test_each_image_is_for_itself():
    images = torch.randn(3, 3, 32, 32)
    for network in (UNetGenerator(32, width=2), PatchDiscriminator(width=2)):
        torch.testing.assert_close(network(images)[:1], network(images[:1]), rtol=1e-4, atol=1e-5)


def test_details_pass_across():
    """With everything below the first level cut off, the answer still follows the image."""
    network = UNetGenerator(32, width=2)
    one, other = torch.randn(2, 1, 3, 32, 32)
    assert not torch.allclose(network(one), network(other))
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if ".inner." in name:
                weight.zero_()
    assert not torch.allclose(network(one), network(other))


def test_a_logit_sees_a_patch_of_70_pixels():
    network = PatchDiscriminator(width=2)
    # InstanceNorm sees the whole image, in its mean; without it a logit sees its patch alone
    network.layers = torch.nn.Sequential(*(m for m in network.layers if not isinstance(m, torch.nn.InstanceNorm2d)))
    images = torch.randn(1, 3, 128, 128, requires_grad=True)
    network(images)[0, 0, 7, 7].backward()
    seen = images.grad[0].abs().sum(0) > 0
    assert seen.any(0).sum() == 70
    assert seen.any(1).sum() == 70


def test_what_is_refused_for_faces():
    with pytest.raises(ValueError, match="size is 96: expected a power of 2, 32 or more"):
        UNetGenerator(96)
    with pytest.raises(ValueError, match="size is 16: expected a power of 2"):
        UNetGenerator(16)
    with pytest.raises(ValueError, match="images are 64 x 32: expected 64 x 64"):
        UNetGenerator(64, width=2)(torch.zeros(1, 3, 64, 32))
    with pytest.raises(ValueError, match="images are 16 x 16: expected sides of 32 or more"):
        PatchDiscriminator(width=2)(torch.zeros(1, 3, 16, 16))

"""The pair that translates faces: sizes, ways across, patches, and what they refuse."""

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.networks.unet import PatchDiscriminator, UNetGenerator  # noqa: E402


def test_the_sizes_are_the_paper_s():
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


def test_what_is_refused():
    with pytest.raises(ValueError, match="size is 96: expected a power of 2, 32 or more"):
        UNetGenerator(96)
    with pytest.raises(ValueError, match="size is 16: expected a power of 2"):
        UNetGenerator(16)
    with pytest.raises(ValueError, match="images are 64 x 32: expected 64 x 64"):
        UNetGenerator(64, width=2)(torch.zeros(1, 3, 64, 32))
    with pytest.raises(ValueError, match="images are 16 x 16: expected sides of 32 or more"):
        PatchDiscriminator(width=2)(torch.zeros(1, 3, 16, 16))

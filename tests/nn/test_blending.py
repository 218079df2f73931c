"""The blend is the picture where its share is 0; the discriminator sees texture, shape and the strength of noise."""

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.blending import BlendingGenerator, ScaleDiscriminator  # noqa: E402


@pytest.mark.parametrize("size", [16, 28, 64])
def test_a_blend_is_the_image_where_its_share_is_0_and_lies_between_otherwise(size):
    network, images = BlendingGenerator(size, width=2), torch.rand(2, 3, size, size) * 2 - 1
    made = network(images)
    assert made.shape == images.shape
    assert not torch.allclose(made, images, atol=0.1) and made.abs().max() <= 1
    with torch.no_grad():
        network.last[1].bias[3] = -100
    torch.testing.assert_close(network(images), images)
    with torch.no_grad():
        network.last[1].bias[3], network.last[1].bias[:3] = 100, 50
    torch.testing.assert_close(network(images), torch.ones_like(images))


def test_a_translation_begins_near_the_picture():
    images = torch.rand(4, 3, 28, 28, generator=torch.Generator().manual_seed(0)) * 2 - 1
    torch.manual_seed(0)
    network = BlendingGenerator(28, width=8)
    before = (network(images) - images).abs().mean()
    assert before < 0.06
    # from a share of a half it begins with noise that must go again
    with torch.no_grad():
        network.last[1].bias[3] = 0
    assert (network(images) - images).abs().mean() > 5 * before


def test_a_flat_picture_stays_flat_away_from_its_edges():
    # InstanceNorm would enlarge what rounding leaves of a flat ground
    made = BlendingGenerator(128, width=4)(torch.full((1, 3, 128, 128), 0.3))
    middle = made[..., 56:72, 56:72].detach()
    # transposed convolutions of stride 2 three times: a pattern of 8 pixels at most, the same everywhere
    torch.testing.assert_close(middle[..., :8, :8], middle[..., 8:, 8:])


@pytest.mark.parametrize(("scale", "side"), [(0, 18), (1, 78)])
def test_logits_see_small_and_large_patches(scale, side):
    network = ScaleDiscriminator(width=2).eval()
    images = torch.randn(1, 3, 160, 160, requires_grad=True)
    network(images)[0, scale, 20, 20].backward()
    seen = images.grad[0].abs().sum(0) > 0
    assert seen.any(0).sum() == seen.any(1).sum() == side


def test_both_scales_have_half_of_the_weight():
    network = ScaleDiscriminator(width=2).eval()
    with torch.no_grad():
        for one, bias in ((network.small, 1.0), (network.large, 3.0)):
            one.weight.zero_()
            one.bias.fill_(bias)
    assert network(torch.rand(2, 3, 28, 28)).mean() == 2


def test_small_images_are_refused():
    with pytest.raises(ValueError, match="size is 12: expected 16 or more"):
        BlendingGenerator(12)
    with pytest.raises(ValueError, match="images are 12 x 12"):
        ScaleDiscriminator()(torch.zeros(1, 3, 12, 12))

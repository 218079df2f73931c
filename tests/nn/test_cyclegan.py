"""The CycleGAN step against its equations, who gets gradients, and what it learns."""

import copy
import math

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.cyclegan import (  # noqa: E402
    CycleGAN,
    CycleGANWeights,
    DigitDiscriminator,
    DigitGenerator,
    PatchDiscriminator,
    UNetGenerator,
    cyclegan_step,
    discriminator_losses,
    generator_losses,
    gradient_penalty,
)
from setminus.nn.losses import orthogonal_generator_loss  # noqa: E402
from setminus.nn.networks import seeded  # noqa: E402
from setminus.nn.passes import (  # noqa: E402
    adam,
    sees_whole_batch,
)


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
    with pytest.raises(ValueError, match="images are 6 x 6: expected sides of 8 or more"):
        DigitGenerator(width=4)(torch.zeros(2, 3, 6, 6))
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


@pytest.mark.parametrize("size", [24, 28, 32, 50, 64, 96, 128])
def test_images_of_any_size_come_back_in_range(size):
    images = torch.randn(2, 3, size, size)
    made = UNetGenerator(size, width=2)(images)
    assert made.shape == images.shape
    assert made.abs().max() <= 1


@pytest.mark.parametrize("build", [lambda size: UNetGenerator(size, width=2), lambda size: DigitGenerator(width=2)])
def test_a_margin_is_a_repeated_edge_that_is_cut_off_again(build):
    network, images = build(30).eval(), torch.randn(1, 3, 30, 30)
    by_hand = torch.nn.functional.pad(images, (1, 1, 1, 1), mode="replicate")
    torch.testing.assert_close(network(images), network.layers(by_hand)[..., 1:31, 1:31])


@pytest.mark.parametrize("size", [28, 48])
def test_the_lowest_level_is_the_convolution_it_stands_for(size):
    images, fast = torch.randn(2, 3, size, size), UNetGenerator(size, width=4)
    plain, n_replaced = copy.deepcopy(fast), 0
    for module in plain.modules():
        for kind in (torch.nn.Conv2d, torch.nn.ConvTranspose2d):
            if isinstance(module, kind) and type(module) is not kind:
                module.__class__, n_replaced = kind, n_replaced + 1
    # 48 pixels are halved to 3, where the whole kernel is used
    assert n_replaced == (2 if size == 28 else 1)
    for network in (fast, plain):
        network(images).square().mean().backward()
    torch.testing.assert_close(fast(images), plain(images), atol=1e-5, rtol=1e-4)
    for one, other in zip(fast.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-3)


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
    with pytest.raises(ValueError, match="size is 16: expected 24 or more"):
        UNetGenerator(16)
    with pytest.raises(ValueError, match="images are 64 x 32: expected 64 x 64"):
        UNetGenerator(64, width=2)(torch.zeros(1, 3, 64, 32))
    with pytest.raises(ValueError, match="images are 16 x 16: expected sides of 24 or more"):
        PatchDiscriminator(width=2)(torch.zeros(1, 3, 16, 16))


def digits(width=3):
    generators = [DigitGenerator(width=width) for _ in range(2)]
    return CycleGAN(*generators, *(DigitDiscriminator(16, width=3, dropout=0.0) for _ in range(2)))


def faces():
    return CycleGAN(*(UNetGenerator(32, width=2) for _ in range(2)), *(PatchDiscriminator(width=2) for _ in range(2)))


def images(size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(2, 4, 3, size, size, generator=generator, dtype=torch.float64) * 2 - 1


def by_hand(networks, a, b):
    """The equations, term by term, with sigmoids."""
    g, f = networks.a_to_b, networks.b_to_a
    fake_b, fake_a = g(a), f(b)
    b_from_b, a_from_a = g(b), f(a)
    b_again, a_again = g(fake_a), f(fake_b)
    d_a, d_b = networks.discriminator_a, networks.discriminator_b
    return {
        "a_to_b": -d_b(fake_b).sigmoid().log().mean(),
        "b_to_a": -d_a(fake_a).sigmoid().log().mean(),
        "cycle": (a_again - a).abs().mean() + (b_again - b).abs().mean(),
        "identity": (a_from_a - a).abs().mean() + (b_from_b - b).abs().mean(),
        "discriminator_a": -d_a(a).sigmoid().log().mean() - (1 - d_a(fake_a.detach()).sigmoid()).log().mean(),
        "discriminator_b": -d_b(b).sigmoid().log().mean() - (1 - d_b(fake_b.detach()).sigmoid()).log().mean(),
    }


def doubled(networks):
    parts = (networks.a_to_b, networks.b_to_a, networks.discriminator_a, networks.discriminator_b)
    return CycleGAN(*(part.double() for part in parts))


@pytest.mark.parametrize(("build", "size"), [(digits, 16), (faces, 32)])
def test_losses_gradients_and_statistics_are_those_of_separate_passes(build, size):
    ours = doubled(seeded(0, build))
    theirs = copy.deepcopy(ours)
    a, b = images(size)
    made = generator_losses(ours, a, b, CycleGANWeights(cycle=7.0, identity=3.0))
    discriminated = discriminator_losses(ours, a, b, made.fake_a, made.fake_b)
    expected = by_hand(theirs, a, b)
    for name, loss in {**made.terms, **discriminated}.items():
        torch.testing.assert_close(loss, expected[name], msg=name)
    total = expected["a_to_b"] + expected["b_to_a"] + 7 * expected["cycle"] + 3 * expected["identity"]
    torch.testing.assert_close(made.total, total)
    made.total.backward()
    total.backward()
    for one, other in zip(ours.generators.parameters(), theirs.generators.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-6, atol=1e-9)
    for one, other in zip(ours.generators.buffers(), theirs.generators.buffers(), strict=True):
        torch.testing.assert_close(one, other)
    # the generators' loss leaves no gradient on our discriminators; on the plain ones it does
    assert all(weight.grad is None for weight in ours.discriminators.parameters())
    assert any(weight.grad is not None for weight in theirs.discriminators.parameters())


def test_discriminators_train_and_generators_do_not_get_their_gradients():
    networks = doubled(seeded(0, digits))
    a, b = images(16)
    made = generator_losses(networks, a, b)
    sum(discriminator_losses(networks, a, b, made.fake_a, made.fake_b).values()).backward()
    assert all(weight.grad is None for weight in networks.generators.parameters())
    assert all(weight.grad is not None for weight in networks.discriminators.parameters())


def test_without_the_identity_term_its_passes_are_saved():
    networks = seeded(0, faces)
    a, b = images(32).float()
    passed = []
    networks.a_to_b.register_forward_hook(lambda module, inputs, output: passed.append(len(output)))
    with_identity = generator_losses(networks, a, b)
    assert sum(passed) == 3 * len(a)
    passed.clear()
    without = generator_losses(networks, a, b, CycleGANWeights(identity=0))
    assert sum(passed) == 2 * len(a)
    assert set(with_identity.terms) - set(without.terms) == {"identity"}
    torch.testing.assert_close(with_identity.total - 5 * with_identity.terms["identity"], without.total)


def test_the_identity_term_of_a_part_is_that_of_every_so_many_images():
    networks = CycleGAN(
        *(DigitGenerator(width=4, norm="group") for _ in range(2)), *(DigitDiscriminator(width=4) for _ in range(2))
    )
    real_a, real_b = torch.rand(2, 8, 3, 28, 28)
    part = generator_losses(networks, real_a, real_b, CycleGANWeights(identity_part=4)).terms
    some = generator_losses(networks, real_a[::4], real_b[::4]).terms
    whole = generator_losses(networks, real_a, real_b).terms
    torch.testing.assert_close(part["identity"], some["identity"])
    torch.testing.assert_close(part["cycle"], whole["cycle"])
    assert not torch.isclose(part["identity"], whole["identity"], rtol=1e-4)


def test_the_change_term_is_the_distance_between_pictures_and_their_translations():
    networks = CycleGAN(
        *(DigitGenerator(width=4, norm="group") for _ in range(2)), *(DigitDiscriminator(width=4) for _ in range(2))
    )
    real_a, real_b = torch.rand(2, 4, 3, 28, 28)
    without, made = (generator_losses(networks, real_a, real_b, CycleGANWeights(change=one)) for one in (0.0, 2.0))
    assert "change" not in without.terms
    moved = (made.fake_b - real_a).abs().mean() + (made.fake_a - real_b).abs().mean()
    torch.testing.assert_close(made.terms["change"], moved)
    cycle_and_identity = without.total - without.terms["a_to_b"] - without.terms["b_to_a"]
    adversarial = made.terms["a_to_b"] + made.terms["b_to_a"]
    torch.testing.assert_close(made.total, adversarial + cycle_and_identity + 2 * moved, rtol=1e-4, atol=1e-4)


def test_the_adversarial_term_can_be_the_orthogonal_one():
    networks = doubled(seeded(0, digits))
    a, b = images(16)
    plain = generator_losses(networks, a, b)
    log_ratio = math.log(3.0)
    seen = []

    def orthogonal(logits, fakes, direction):
        seen.append((direction, fakes.shape))
        return orthogonal_generator_loss(logits, torch.full((len(fakes),), log_ratio).double(), direction)

    made = generator_losses(networks, a, b, adversarial=orthogonal)
    assert seen == [("a_to_b", a.shape), ("b_to_a", b.shape)]
    # r = 3 makes fakes of B more believable, those of A less
    assert made.terms["a_to_b"] < plain.terms["a_to_b"]
    assert made.terms["b_to_a"] > plain.terms["b_to_a"]
    torch.testing.assert_close(made.terms["cycle"], plain.terms["cycle"])


def step_with(networks, a, b, precision="32-true", steps=1, **options):
    optimizers = {
        "generators": adam(networks.generators.parameters(), 1e-2),
        "discriminators": adam(networks.discriminators.parameters(), 1e-2),
    }
    updates, history = [], []

    def update(name, loss):
        updates.append(name)
        optimizers[name].zero_grad()
        loss.backward()
        optimizers[name].step()

    for _ in range(steps):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16-mixed"):
            history.append({k: v.item() for k, v in cyclegan_step(networks, a, b, update, **options).items()})
    assert updates == ["generators", "discriminators"] * steps
    return history


def test_a_step_moves_both_players_and_logs_every_term():
    networks = seeded(0, digits)
    before = copy.deepcopy(networks)
    (logged,) = step_with(networks, *images(16).float())
    assert list(logged) == ["a_to_b", "b_to_a", "cycle", "identity", "discriminator_a", "discriminator_b"]
    for part in ("a_to_b", "b_to_a", "discriminator_a", "discriminator_b"):
        moved = zip(getattr(before, part).parameters(), getattr(networks, part).parameters(), strict=True)
        assert all(not torch.equal(old, new) for old, new in moved), part


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_steps_lower_the_consistency_losses(precision):
    squares = images(2).float().repeat_interleave(8, 3).repeat_interleave(8, 4)
    history = step_with(seeded(0, lambda: digits(width=8)), *squares, precision, steps=20)
    for term in ("cycle", "identity"):
        assert history[-1][term] < 0.8 * history[0][term]


def test_the_cycle_term_of_a_part_is_that_of_every_so_many_images():
    networks = CycleGAN(
        *(DigitGenerator(width=2, norm="group") for _ in range(2)),
        *(DigitDiscriminator(16, width=2, dropout=0.0) for _ in range(2)),
    )
    a, b = torch.rand(2, 4, 3, 16, 16)
    part = generator_losses(networks, a, b, CycleGANWeights(cycle_part=2)).terms["cycle"]
    whole = generator_losses(networks, a[::2], b[::2]).terms["cycle"]
    torch.testing.assert_close(part, whole)
    assert not torch.allclose(part, generator_losses(networks, a, b).terms["cycle"])


def test_the_penalty_is_that_of_finite_differences_and_reaches_the_discriminators_alone():
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    network.double()
    image = torch.rand(1, 3, 2, 2, dtype=torch.float64)
    steps = 1e-6 * torch.eye(12, dtype=torch.float64).view(12, 3, 2, 2)
    slopes = (network(image + steps).mean(1) - network(image - steps).mean(1)) / 2e-6
    torch.testing.assert_close(gradient_penalty(network, image), slopes.square().sum())
    losses = {}
    networks = CycleGAN(
        *(DigitGenerator(width=2, norm="group") for _ in range(2)),
        *(DigitDiscriminator(16, width=2, dropout=0.0) for _ in range(2)),
    )
    for penalty in (0.0, 1.0):
        updates = {}
        torch.manual_seed(0)
        cyclegan_step(networks, *torch.ones(2, 2, 3, 16, 16), updates.__setitem__, penalty=penalty)
        losses[penalty] = updates
    assert losses[1.0]["generators"] == losses[0.0]["generators"]
    assert losses[1.0]["discriminators"] > losses[0.0]["discriminators"]


def test_weights_below_zero_are_refused():
    with pytest.raises(ValueError, match=r"cycle is -1, identity is 5\.0, .*: expected weights of 0 or more"):
        CycleGANWeights(cycle=-1)
    with pytest.raises(ValueError, match="change is -2"):
        CycleGANWeights(change=-2)
    with pytest.raises(ValueError, match="identity_part is 0"):
        CycleGANWeights(identity_part=0)

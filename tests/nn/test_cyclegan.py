"""The CycleGAN step against its equations, who gets gradients, and what it learns."""

import copy
import math

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.cyclegan import (  # noqa: E402
    CycleGAN,
    CycleGANWeights,
    cyclegan_step,
    discriminator_losses,
    generator_losses,
)
from setminus.nn.losses import orthogonal_generator_loss  # noqa: E402
from setminus.nn.networks import seeded  # noqa: E402
from setminus.nn.passes import adam, autocast  # noqa: E402
from setminus.nn.translation_networks import DigitDiscriminator, DigitGenerator, PatchDiscriminator, UNetGenerator  # noqa: E402


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
        with autocast(precision):
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


def test_weights_below_zero_are_refused():
    with pytest.raises(ValueError, match=r"cycle is -1, identity is 5\.0: expected weights of 0 or more"):
        CycleGANWeights(cycle=-1)
